"""The plain view: every reader of Zarr v3 reads hierarchies with extensions through it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import zarr

import zarrlite
from zarrlite import ByteRange, MemoryStore, ReadOnlyError, Store
from zarrlite.adapters.plain import plain
from zarrlite.adapters.zarr_stores import ZarrStore
from zarrlite.codecs import Bytes, Crc32c, Offset, Pad, ShardingIndexed, Zstd

DATA = np.arange(600, dtype="i4").reshape(20, 30)
INDEX = 6 * 16 + 4  # bytes of the index of a shard of six inner chunks


def parts(*sizes: int | None) -> list[dict[str, Any]]:
    """Return a `concat-parts` with parts of these sizes."""
    members = [{"key_suffix": f".{i}" if n else "", **({"size": n} if n else {})} for i, n in enumerate(sizes)]
    return [{"name": "concat-parts", "configuration": {"parts": members}}]


DRAFT = [{"name": "sharding", "configuration": {"chunks_per_shard": [2, 2]}}]
PADDED = [Zstd(), Pad("start", 7), Pad("end", 3)]
SHARDS = ShardingIndexed((5, 10), (Bytes(), Zstd()), (Bytes(), Crc32c()), "end")
ARRAYS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no extension": ({"chunks": (5, 10)}, ["bytes", "zstd"]),
    "padding outside": (
        {"chunks": (5, 10), "compressors": [Zstd(), Pad("start", 7), Pad("end", 3)]},
        ["bytes", "zstd"],
    ),
    "offset outside": ({"chunks": (5, 10), "compressors": [Zstd(), Offset(9)]}, ["bytes", "zstd"]),
    "padding below a compressor": ({"chunks": (5, 10), "compressors": [Pad("start", 7), Zstd()]}, ["bytes"]),
    "suffix": (
        {"chunks": (5, 10), "chunk_key_encoding": {"name": "suffix", "configuration": {"suffix": ".tif"}}},
        ["bytes", "zstd"],
    ),
    "parts": ({"chunks": (5, 10), "storage_transformers": parts(None, 4)}, ["bytes", "zstd"]),
    "draft shards": (
        {
            "chunks": (5, 10),
            "storage_transformers": [{"name": "sharding", "configuration": {"chunks_per_shard": [2, 2]}}],
        },
        ["sharding_indexed"],
    ),
    "shards": ({"chunks": (5, 10), "shards": (10, 30)}, ["sharding_indexed"]),
    "padding of inner chunks": (
        {"chunks": (5, 10), "shards": (10, 30), "compressors": [Zstd(), Pad("start", 7), Pad("end", 2)]},
        ["sharding_indexed"],
    ),
    "padded index": (
        {
            "chunks": (10, 30),
            "codecs": [ShardingIndexed((5, 10), (Bytes(),), (Bytes(), Pad("start", 5), Crc32c()), "start")],
        },
        ["sharding_indexed"],
    ),
    "a shard with a header in parts": (
        {"chunks": (10, 30), "codecs": [SHARDS, Pad("start", 64)], "storage_transformers": parts(64, None, INDEX)},
        ["sharding_indexed"],
    ),
}
every_array = pytest.mark.parametrize("name", ARRAYS)


def hierarchy(name: str) -> MemoryStore:
    store = MemoryStore()
    group = zarrlite.create_group(store, attributes={"title": name})
    group.create_array("x/c/y", data=DATA, fill_value=-1, attributes={"a": 1}, **ARRAYS[name][0])
    return store


@every_array
def test_zarr_python_reads_every_array(name: str) -> None:
    group = zarr.open_group(ZarrStore(plain(hierarchy(name))), mode="r")
    array = group["x/c/y"]
    assert (array[...] == DATA).all()
    assert (array[3:9, 5:17] == DATA[3:9, 5:17]).all()
    assert (dict(array.attrs), array.fill_value, dict(group.attrs)) == ({"a": 1}, -1, {"title": name})


@every_array
def test_codecs_are_those_that_every_reader_knows(name: str) -> None:
    document = zarrlite.open(plain(hierarchy(name)), mode="r")["x/c/y"].metadata.to_json()
    assert [codec["name"] for codec in document["codecs"]] == ARRAYS[name][1]
    assert document["chunk_key_encoding"]["name"] == "default"
    assert "storage_transformers" not in document


@every_array
def test_missing_chunks_stay_missing(name: str) -> None:
    store = MemoryStore()
    array = zarrlite.create_array(store, shape=DATA.shape, dtype="i4", fill_value=-1, **ARRAYS[name][0])
    array[:5, :10] = DATA[:5, :10]
    view = zarr.open_array(ZarrStore(plain(store)), mode="r")
    assert (view[...] == array[...]).all()
    assert len([key for key in plain(store).list() if key.startswith("c/")]) == 1


class Recording(Store):
    """A store that records which bytes are requested."""

    def __init__(self, store: Store) -> None:
        self.store, self.requests = store, []  # type: list[tuple[str, ByteRange]]

    def get(self, key: str, byte_range: ByteRange = ByteRange()) -> Any:
        self.requests.append((key, byte_range))
        return self.store.get(key, byte_range)

    def size(self, key: str) -> int | None:
        return self.store.size(key)

    def list(self) -> Any:
        return self.store.list()


def test_a_shard_with_a_header_in_parts_is_read_in_two_small_requests() -> None:
    store = Recording(hierarchy("a shard with a header in parts"))
    view = zarrlite.open(plain(store), mode="r")["x/c/y"]
    store.requests.clear()
    assert view[7, 13] == DATA[7, 13]
    assert [key for key, _ in store.requests if not key.endswith("zarr.json")] == ["x/c/y/c/0/0.2", "x/c/y/c/0/0"]


def test_the_view_cannot_be_written_and_can_be_pickled() -> None:
    view = plain(hierarchy("parts"))
    with pytest.raises(ReadOnlyError, match="cannot be written"):
        view.set("x/zarr.json", b"{}")
    assert (zarrlite.open(pickle.loads(pickle.dumps(view)), mode="r")["x/c/y"][...] == DATA).all()


def test_listing_has_documents_and_plain_chunk_keys() -> None:
    keys = set(plain(hierarchy("suffix")).list())
    assert keys == {key.removesuffix(".tif") for key in hierarchy("suffix").list()}
