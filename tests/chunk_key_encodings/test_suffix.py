"""The `suffix` chunk key encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from zarrlite.chunk_key_encodings import DefaultKeys, SuffixKeys, V2Keys
from zarrlite.errors import MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context
from zarrlite.testing import KeyEncodingLaws


def parse(**configuration: Any) -> SuffixKeys:
    encoding = {"name": "suffix", "configuration": configuration}
    return registry.chunk_key_encodings.parse(encoding, "/chunk_key_encoding", Context())


@pytest.mark.parametrize(
    ("configuration", "coords", "key"),
    [
        ({"suffix": ".tiff"}, (1, 2), "c/1/2.tiff"),
        ({"suffix": ".shard.zip", "base-encoding": {"name": "v2"}}, (1, 2), "1.2.shard.zip"),
        ({"suffix": ".shard.zip", "base_encoding": "v2"}, (1, 2), "1.2.shard.zip"),
        ({"suffix": ".tiff"}, (), "c.tiff"),
        ({"suffix": ".tiff", "base_encoding": "v2"}, (), "0.tiff"),
        ({"suffix": ""}, (3,), "c/3"),
        ({"suffix": "0"}, (3,), "c/30"),
        ({"suffix": "_x/data.bin"}, (3,), "c/3_x/data.bin"),
        ({"suffix": ".b", "base_encoding": {"name": "suffix", "configuration": {"suffix": ".a"}}}, (4, 5), "c/4/5.a.b"),
        ({"suffix": ".t", "base_encoding": "v2", "base-encoding": {"name": "v2"}}, (4, 5), "4.5.t"),
    ],
)
def test_keys_are_encoded_and_decoded(configuration: dict[str, Any], coords: Any, key: str) -> None:
    encoding = parse(**configuration)
    assert encoding.encode(coords) == key
    assert encoding.decode(key, len(coords)) == coords
    assert encoding.decode(key, len(coords) + 2) is None
    assert encoding.decode(key + "x", len(coords)) is None


@pytest.mark.parametrize(
    "key", ["c/1/2", "c/1/2.tif", "c/01/2.tiff", "c/+1/2.tiff", "c/1/2.tiff.tiff", ".tiff", "c/1/٢.tiff", "c/1/2 .tiff"]
)
def test_malformed_keys_are_not_decoded(key: str) -> None:
    assert SuffixKeys(".tiff").decode(key, 2) is None


@given(
    st.sampled_from([DefaultKeys("/"), DefaultKeys("."), V2Keys("."), V2Keys("/"), SuffixKeys("9", V2Keys())]),
    st.text("0.a-_", max_size=4).filter(lambda text: text not in (".", "..")),
    st.lists(st.integers(0, 200), min_size=1, max_size=3).map(tuple),
    st.lists(st.integers(0, 200), min_size=1, max_size=3).map(tuple),
)
def test_encoding_is_one_to_one(base: Any, suffix: str, one: Any, other: Any) -> None:
    encoding = SuffixKeys(suffix, base)
    assert encoding.decode(encoding.encode(one), len(one)) == one
    if len(one) == len(other):
        assert (encoding.encode(one) == encoding.encode(other)) == (one == other)


SLASHES = "must not start or end with '/' and must not contain '//'"
CHARACTERS = "must not contain backslashes or control characters"
PERIODS = "must not have '.' or '..' as a segment"
RESERVED = "must not have a segment that is 'zarr.json' or starts with '__'"

UNSAFE = [
    ("/data", SLASHES),
    ("/a", SLASHES),
    ("a/", SLASHES),
    ("a//b", SLASHES),
    ("\\", CHARACTERS),
    ("a\0", CHARACTERS),
    ("a\n", CHARACTERS),
    ("\x85", CHARACTERS),
    ("..", PERIODS),
    (".", PERIODS),
    ("x/../y", PERIODS),
    ("x/.", PERIODS),
    ("a/zarr.json", RESERVED),
    ("x/__y", RESERVED),
    ("__zarrlite.journal", "must not start with '__zarrlite.', the prefix of zarrlite's own keys"),
    ("\ud800", "must not contain lone surrogates"),
]


@pytest.mark.parametrize(("suffix", "rule"), UNSAFE, ids=[repr(suffix) for suffix, _ in UNSAFE])
def test_a_suffix_that_could_move_a_key_is_refused(suffix: str, rule: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse(suffix=suffix)
    assert (caught.value.pointer, caught.value.kind) == ("/chunk_key_encoding/configuration/suffix", "value")
    assert caught.value.message == f"{suffix!r} {rule}"


@pytest.mark.parametrize(
    ("configuration", "pointer", "kind"),
    [
        ({}, "/suffix", "missing"),
        ({"suffix": 1}, "/suffix", "type"),
        ({"suffix": ".x", "extra": 1}, "/extra", "unknown-member"),
        ({"suffix": ".x", "base_encoding": 5}, "/base_encoding", "type"),
        ({"suffix": ".x", "base-encoding": "nope"}, "/base-encoding", "unknown-extension"),
        ({"suffix": ".x", "base_encoding": "v2", "base-encoding": "default"}, "/base-encoding", "conflict"),
        ({"suffix": ".x", "base_encoding": {"name": "v2", "configuration": {"separator": "-"}}},
         "/base_encoding/configuration/separator", "value"),
    ],
)  # fmt: skip
def test_invalid_configurations_are_refused_with_a_pointer(
    configuration: dict[str, Any], pointer: str, kind: str
) -> None:
    with pytest.raises(MetadataError) as caught:
        parse(**configuration)
    assert (caught.value.pointer, caught.value.kind) == ("/chunk_key_encoding/configuration" + pointer, kind)


def test_the_base_encoding_is_always_written_as_an_object() -> None:
    for encoding in (parse(suffix=".x"), parse(**{"suffix": ".x", "base-encoding": "default"}), SuffixKeys(".x")):
        assert encoding.to_json() == {
            "name": "suffix",
            "configuration": {
                "suffix": ".x",
                "base_encoding": {"name": "default", "configuration": {"separator": "/"}},
            },
        }


@pytest.mark.parametrize("shards", [None, (4, 4)])
def test_keys_of_chunks_and_shards_have_the_suffix(shards: Any) -> None:
    store = zarrlite.MemoryStore()
    array = zarrlite.create_array(
        store, data=np.arange(16).reshape(4, 4), chunks=(2, 2), shards=shards, chunk_key_encoding=SuffixKeys(".bin")
    )
    keys = ["c/0/0.bin"] if shards else ["c/0/0.bin", "c/0/1.bin", "c/1/0.bin", "c/1/1.bin"]
    assert [key for key in store.list() if key != "zarr.json"] == keys
    assert array.nchunks_initialized == 4
    array.resize((2, 2))
    assert zarrlite.open(store)[...].tolist() == [[0, 1], [4, 5]]


class TestSuffixKeys(KeyEncodingLaws):
    encoding = SuffixKeys(".shard.zip")


class TestSuffixOfASuffix(KeyEncodingLaws):
    encoding = SuffixKeys("7", SuffixKeys("_1", V2Keys("/")))
