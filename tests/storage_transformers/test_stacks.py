"""Random stacks of transformers, with random key encodings, behave like a dict."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from transformer_stacks import ENCODINGS, STORES, stacks

from zarrlite import ByteRange, MetadataError
from zarrlite.chunks.chunks import ArrayOptions, Chunks
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context
from zarrlite.nodes.creation import array_metadata

GRID = (5, 4)
OTHERS = ["notes", "c/readme", "deep/er/notes"]
values = st.binary(min_size=8, max_size=40)  # large enough for every part
ranges = st.builds(ByteRange, st.integers(-45, 45), st.one_of(st.none(), st.integers(-45, 45)))


def stack_of(below: Any, stack: Any, encoding: Any) -> tuple[Any, list[str]]:
    metadata = array_metadata(
        GRID, "u1", chunks=(1, 1), codecs=["bytes"], chunk_key_encoding=encoding, storage_transformers=stack
    )
    keys = [metadata.chunk_key_encoding.encode(coords) for coords in np.ndindex(*GRID)]
    return Chunks(below, "", metadata, ArrayOptions()).store, keys


def content(value: Any) -> Any:
    return None if value is None else bytes(value)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(STORES), stacks, st.sampled_from(ENCODINGS), st.data())
def test_a_stack_of_transformers_behaves_like_a_dict(store_class: Any, stack: Any, encoding: Any, data: Any) -> None:
    below = store_class()
    store, keys = stack_of(below, stack, encoding)
    model: dict[str, bytes] = {}
    key = st.sampled_from(keys[:6] + keys[-3:] + OTHERS)
    prefixes = sorted({"", *(k[: i + 1] for k in keys + OTHERS for i, c in enumerate(k) if c == "/")})
    for _ in range(6):
        match data.draw(st.sampled_from(["set", "set_many", "erase", "erase_prefix", "part", "update"])):
            case "set":
                model[name] = data.draw(values) if (name := data.draw(key)) else b""
                store.set(name, model[name])
            case "set_many":
                many = data.draw(st.dictionaries(key, values, max_size=5))
                store.set_many(many.items())
                model |= many
            case "erase":
                names = data.draw(st.lists(key, max_size=4))
                store.erase_values(names)
                model = {k: v for k, v in model.items() if k not in names}
            case "erase_prefix":
                prefix = data.draw(st.sampled_from(prefixes[1:]))
                store.erase_prefix(prefix)
                model = {k: v for k, v in model.items() if not k.startswith(prefix)}
            case "part":
                name, start, piece = data.draw(key), data.draw(st.integers(0, 12)), data.draw(values)
                old = model.get(name, b"").ljust(start, b"\0")
                model[name] = old[:start] + piece + old[start + len(piece) :]
                store.set_partial_values([(name, start, piece)])
            case "update":
                name = data.draw(key)
                new = None if name in model else data.draw(values)
                store.update(name, lambda old, new=new: new)
                model.pop(name, None)
                if new is not None:
                    model[name] = new
        assert {k: content(store.get(k)) for k in model} == model
        assert sorted(store.list()) == sorted(model)
    requests = [(data.draw(key), data.draw(ranges)) for _ in range(6)]
    answers = list(map(content, store.get_partial_values(requests)))
    assert answers == [model[k][r.start : r.stop] if k in model else None for k, r in requests]
    assert [content(store.get(k, r)) for k, r in requests] == answers
    assert [store.size(k) for k, _ in requests] == [len(model[k]) if k in model else None for k, _ in requests]
    for prefix in prefixes:
        assert sorted(store.list_prefix(prefix)) == sorted(k for k in model if k.startswith(prefix))
        directly = [k[len(prefix) :].partition("/") for k in model if k.startswith(prefix)]
        expected = (
            {prefix + head for head, slash, _ in directly if not slash},
            {prefix + head + slash for head, slash, _ in directly if slash},
        )
        assert tuple(map(sorted, expected)) == tuple(map(list, store.list_dir(prefix)))
    store.erase_values(list(model))
    assert list(below.list()) == []


suffixes = st.text("0127ac./-_x \\\0é", max_size=4)


@settings(max_examples=300, deadline=None)
@given(st.lists(suffixes, min_size=1, max_size=4), st.sampled_from(ENCODINGS))
def test_parts_of_different_chunks_have_different_keys(texts: list[str], encoding: Any) -> None:
    document = {"name": "concat-parts", "configuration": {"parts": [{"key_suffix": text} for text in texts]}}
    try:
        transformer: Any = registry.storage_transformers.parse(document, "", Context())
    except MetadataError:
        return
    encode = registry.chunk_key_encodings.coerce(encoding).encode
    coords = itertools.product([0, 1, 2, 10, 11, 12, 21, 100, 127], repeat=2)
    keys = [encode(c) + part.key_suffix for c in coords for part in transformer.parts]
    assert len(set(keys)) == len(keys)
    assert "zarr.json" not in keys
