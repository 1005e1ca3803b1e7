"""Counts of the requests and Python calls that reading or writing a chunk takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_costs import count_calls

import zarrlite
from zarrlite import Array, ByteRange, MemoryStore
from zarrlite.buffers.ranges import ALL
from zarrlite.codecs import Bytes, Crc32c, Pad, ShardingIndexed, Zstd
from zarrlite.libraries import zstd
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.stores.base import InPlace, overwrite

COMPRESSED = [Bytes(), Zstd(), Crc32c()]
DATA = np.arange(1, 4097, dtype="u2").reshape(64, 64)
INDEX = 4 * 16 + 4  # bytes; size of the index of a shard with four inner chunks


class RecordingStore(MemoryStore):
    """Records the keys of requests. A batch of values counts as one request, and so does a batch of patches."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, requests: Any, memory: Any = None) -> Any:
        self.log.append(f"get {' '.join(dict.fromkeys(request[0] for request in requests))}")
        return super().get_partial_values(requests, memory)

    def set(self, key: str, value: Any) -> None:
        self.log.append(f"set {key}")
        super().set(key, value)

    def _store(self, key: str, new: Any, old: Any = None) -> None:
        if isinstance(new, InPlace):
            self.log.append(f"patch {key}")
            MemoryStore.set(self, key, overwrite(MemoryStore.get_partial_values(self, [(key, ALL)])[0], new.patches))
        else:
            super()._store(key, new, old)

    def erase(self, key: str) -> None:
        self.log.append(f"erase {key}")
        super().erase(key)

    def size(self, key: str) -> int | None:
        self.log.append(f"size {key}")
        return super().size(key)

    def list_dir(self, prefix: str) -> Any:
        self.log.append(f"list {prefix}")
        return super().list_dir(prefix)


def requests_of(store: RecordingStore, operation: Callable[[], Any]) -> list[str]:
    """Return the requests that an operation makes."""
    store.log.clear()
    operation()
    return list(store.log)


def create(codecs: Any, **keywords: Any) -> tuple[RecordingStore, Array]:
    store = RecordingStore()
    array = zarrlite.create_array(store, data=DATA, chunks=(32, 32), codecs=codecs, **keywords)
    return store, array


CHUNKS = ["c/0/0", "c/0/1", "c/1/0", "c/1/1"]
SHARDED = [ShardingIndexed((16, 16), [Bytes()])]


def assert_all_chunks_are_read_once(requests: list[str]) -> None:
    """Check that every chunk is requested once. Several chunks may share a request."""
    assert [key for request in requests for key in request.removeprefix("get ").split()] == CHUNKS


@pytest.mark.parametrize("codecs", [[Bytes()], COMPRESSED], ids=["uncompressed", "zstd"])
def test_a_chunk_takes_one_request(codecs: Any) -> None:
    store, array = create(codecs)
    assert_all_chunks_are_read_once(requests_of(store, lambda: array[...]))
    assert requests_of(store, lambda: array[40, 3]) == ["get c/1/0"]
    assert requests_of(store, lambda: array[30:34, 5]) == ["get c/0/0 c/1/0"]
    assert requests_of(store, lambda: array.oindex[[1, 40], [2, 3]]) == ["get c/0/0 c/1/0"]
    assert requests_of(store, lambda: array.__setitem__(..., DATA + 1)) == [f"set {key}" for key in CHUNKS]
    assert requests_of(store, lambda: array.__setitem__((slice(32), slice(32)), 7)) == ["set c/0/0"]
    assert requests_of(store, lambda: array.__setitem__((0, 0), 8)) == ["get c/0/0", "set c/0/0"]


@pytest.mark.parametrize(
    "extra", [[], [Pad("start", 16)], [Pad("end", 16)]], ids=["alone", "padded", "padded at the end"]
)
def test_a_shard_takes_a_request_for_its_index_and_one_for_its_chunks(extra: Any) -> None:
    store, array = create([*SHARDED, *extra])
    assert requests_of(store, lambda: array[40, 3]) == ["get c/1/0"] * 2
    assert requests_of(store, lambda: array[16:32, :16]) == ["get c/0/0"] * 2
    assert requests_of(store, lambda: array[10:20, 10:20]) == ["get c/0/0"] * 2
    assert requests_of(store, lambda: array[:32, :32]) == ["get c/0/0"]
    assert_all_chunks_are_read_once(requests_of(store, lambda: array[...]))
    assert requests_of(store, lambda: array.__setitem__(..., DATA + 1)) == [f"set {key}" for key in CHUNKS]


def test_a_draft_shard_takes_as_many_requests_as_one_of_the_codec() -> None:
    store = RecordingStore()
    array = zarrlite.create_array(store, data=DATA, chunks=(16, 16), storage_transformers=[Sharding((2, 2))])
    assert requests_of(store, lambda: array[40, 3]) == ["get c/1/0"] * 2
    assert requests_of(store, lambda: array[:32, :32]) == ["get c/0/0"]
    assert_all_chunks_are_read_once(requests_of(store, lambda: array[...]))
    assert requests_of(store, lambda: array.__setitem__(..., DATA + 1)) == [f"set {key}" for key in CHUNKS]


def test_a_shard_with_its_index_in_a_part_takes_one_request_for_each() -> None:
    store, array = create(SHARDED, storage_transformers=[ConcatParts([Part(""), Part(".index", INDEX)])])
    assert requests_of(store, lambda: array[40, 3]) == ["get c/1/0.index", "get c/1/0"]
    assert requests_of(store, lambda: array[10:20, 10:20]) == ["get c/0/0.index", "get c/0/0"]
    assert requests_of(store, lambda: array[:32, :32]) == ["get c/0/0.index c/0/0"]


@pytest.mark.parametrize("codecs", [[Bytes()], COMPRESSED], ids=["uncompressed", "zstd"])
def test_chunks_in_parts_take_one_request_for_all_parts(codecs: Any) -> None:
    store, array = create(codecs, storage_transformers=[ConcatParts([Part(""), Part(".end", 4)])])
    assert requests_of(store, lambda: array[:32, :32]) == ["get c/0/0.end c/0/0"]
    assert requests_of(store, lambda: array[30:34, 5])[-1] in (
        "get c/0/0.end c/1/0.end c/0/0 c/1/0",  # compressed: all bytes of both chunks
        "get c/0/0 c/1/0",  # uncompressed: only the selected elements of both chunks
    )


@pytest.mark.parametrize("strategy", ["in-place", "append"])
def test_a_replaced_inner_chunk_takes_a_request_for_the_index_and_one_write(strategy: str) -> None:
    store, _ = create(SHARDED)
    array = zarrlite.open_array(store, mode="r+", options={"/codecs/0": {"strategy": strategy}})
    requests = requests_of(store, lambda: array.__setitem__((slice(16), slice(16)), 9))
    assert [request for request in requests if request != "size c/0/0"] == ["get c/0/0", "patch c/0/0"]
    assert (array[:16, :16] == 9).all()
    assert (array[16:, 16:] == DATA[16:, 16:]).all()


def test_opening_takes_a_request_for_the_document_and_listing_one_for_each_node() -> None:
    store = RecordingStore()
    for name in ("a", "b"):
        zarrlite.create_array(store, name=name, shape=4, dtype="u1")
    assert requests_of(store, lambda: zarrlite.open_array(store, path="a", mode="r")) == ["get a/zarr.json"]
    group = zarrlite.open_group(store, mode="r")
    assert requests_of(store, lambda: dict(group.members())) == ["list ", "get a/zarr.json", "get b/zarr.json"]


MANY = 256


@pytest.mark.parametrize(
    ("codecs", "read", "write"),
    [([Bytes()], 28, 40), (COMPRESSED, 30, 46), ([ShardingIndexed((8, 8), COMPRESSED)], 8, 9)],
    ids=["uncompressed", "zstd", "shard, zstd"],
)
def test_a_chunk_among_many_takes_few_calls(tmp_path: Path, codecs: Any, read: int, write: int) -> None:
    """The data is small enough for one thread, because calls in other threads are not counted."""
    data = np.random.default_rng(0).integers(0, 1000, (128, 128)).astype("u2")
    chunk = (128, 128) if isinstance(codecs[0], ShardingIndexed) else (8, 8)
    first, second = (
        zarrlite.create_array(tmp_path / name, shape=data.shape, chunks=chunk, dtype="u2", codecs=codecs)
        for name in ("first", "second")
    )
    first[...] = data  # a first write, because some work is done only once
    calls = count_calls(lambda: second.__setitem__(..., data))[0] / MANY, count_calls(lambda: second[...])[0] / MANY
    print(f"{calls[0]:.0f} calls to write a chunk, {calls[1]:.0f} to read it")
    assert (second[...] == data).all()
    # libraries other than zstandard compress each inner chunk with a call of its own
    assert calls[0] < write + (zstd.library != "zstandard")
    assert calls[1] < read
