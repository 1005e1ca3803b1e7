"""What a store is asked for on the paths that matter, and how many calls a chunk costs there: counts, not time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_costs import count_calls

import zarrlite
from zarrlite import Array, ByteRange, MemoryStore
from zarrlite.buffers.ranges import ALL
from zarrlite.codecs import Bytes, Crc32c, Pad, ShardingIndexed, Zstd
from zarrlite.storage_transformers import ConcatParts, Part, Sharding

SMALL = [Bytes(), Zstd(), Crc32c()]
DATA = np.arange(1, 4097, dtype="u2").reshape(64, 64)
INDEX = 4 * 16 + 4  # bytes of the index of a shard of four inner chunks


class Recording(MemoryStore):
    """Remembers what it was asked for; a request for several values is one request."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        self.log.append(f"get {key}")
        return super().get(key, byte_range)

    def get_partial_values(self, key_ranges: Sequence[tuple[str, ByteRange]]) -> Any:
        self.log.append(f"get {' '.join(dict.fromkeys(key for key, _ in key_ranges))}")
        return [MemoryStore.get(self, key, part) for key, part in key_ranges]

    def set(self, key: str, value: Any) -> None:
        self.log.append(f"set {key}")
        super().set(key, value)

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Any]]) -> None:
        items = list(key_start_values)
        self.log.append(f"patch {' '.join(key for key, _, _ in items)}")
        for key, start, piece in items:
            value = bytearray(MemoryStore.get(self, key) or b"")
            value[start : start + len(piece)] = piece
            MemoryStore.set(self, key, bytes(value))

    def erase(self, key: str) -> None:
        self.log.append(f"erase {key}")
        super().erase(key)

    def size(self, key: str) -> int | None:
        self.log.append(f"size {key}")
        return super().size(key)

    def list_dir(self, prefix: str) -> Any:
        self.log.append(f"list {prefix}")
        return super().list_dir(prefix)


def asked(store: Recording, do: Callable[[], Any]) -> list[str]:
    store.log.clear()
    do()
    return list(store.log)


def made(codecs: Any, **keywords: Any) -> tuple[Recording, Array]:
    store = Recording()
    array = zarrlite.create_array(store, data=DATA, chunks=(32, 32), codecs=codecs, **keywords)
    return store, array


CHUNKS = ["c/0/0", "c/0/1", "c/1/0", "c/1/1"]
SHARDED = [ShardingIndexed((16, 16), [Bytes()])]


@pytest.mark.parametrize("codecs", [[Bytes()], SMALL], ids=["raw", "zstd"])
def test_chunks_cost_a_request_each(codecs: Any) -> None:
    store, array = made(codecs)
    assert asked(store, lambda: array[...]) == [f"get {key}" for key in CHUNKS]
    assert asked(store, lambda: array[40, 3]) == ["get c/1/0"]
    assert asked(store, lambda: array[30:34, 5]) == ["get c/0/0", "get c/1/0"]
    assert asked(store, lambda: array.oindex[[1, 40], [2, 3]]) == ["get c/0/0", "get c/1/0"]
    assert asked(store, lambda: array.__setitem__(..., DATA + 1)) == [f"set {key}" for key in CHUNKS]
    assert asked(store, lambda: array.__setitem__((slice(32), slice(32)), 7)) == ["set c/0/0"]
    assert asked(store, lambda: array.__setitem__((0, 0), 8)) == ["get c/0/0", "set c/0/0"]


@pytest.mark.parametrize("extra", [[], [Pad("start", 16)]], ids=["plain", "behind a header"])
def test_a_shard_costs_its_index_and_one_request_for_what_is_wanted(extra: Any) -> None:
    store, array = made([*SHARDED, *extra])
    assert asked(store, lambda: array[40, 3]) == ["get c/1/0"] * 2
    assert asked(store, lambda: array[16:32, :16]) == ["get c/0/0"] * 2
    assert asked(store, lambda: array[10:20, 10:20]) == ["get c/0/0"] * 2
    assert asked(store, lambda: array[:32, :32]) == ["get c/0/0"]
    assert asked(store, lambda: array[...]) == [f"get {key}" for key in CHUNKS]
    assert asked(store, lambda: array.__setitem__(..., DATA + 1)) == [f"set {key}" for key in CHUNKS]


def test_a_shard_of_the_draft_costs_the_same() -> None:
    store = Recording()
    array = zarrlite.create_array(store, data=DATA, chunks=(16, 16), storage_transformers=[Sharding((2, 2))])
    assert asked(store, lambda: array[40, 3]) == ["get c/1/0"] * 2
    assert asked(store, lambda: array[...]) == [f"get {key}" for key in CHUNKS]
    assert asked(store, lambda: array.__setitem__(..., DATA + 1)) == [f"set {key}" for key in CHUNKS]


def test_a_shard_with_its_index_in_a_part_of_its_own_costs_one_request_of_each() -> None:
    store, array = made(SHARDED, storage_transformers=[ConcatParts([Part(""), Part(".index", INDEX)])])
    assert asked(store, lambda: array[40, 3]) == ["get c/1/0.index", "get c/1/0"]
    assert asked(store, lambda: array[:32, :32]) == ["get c/0/0.index c/0/0"]


@pytest.mark.parametrize("strategy", ["in-place", "append"])
def test_an_inner_chunk_that_is_replaced_costs_the_index_and_one_write(strategy: str) -> None:
    store, _ = made(SHARDED)
    array = zarrlite.open_array(store, mode="r+", options={"/codecs/0": {"strategy": strategy}})
    assert asked(store, lambda: array.__setitem__((slice(16), slice(16)), 9)) == ["get c/0/0", "patch c/0/0"]
    assert (array[:16, :16] == 9).all()
    assert (array[16:, 16:] == DATA[16:, 16:]).all()


def test_opening_costs_the_document_and_listing_one_for_each_node() -> None:
    store = Recording()
    for name in ("a", "b"):
        zarrlite.create_array(store, name=name, shape=4, dtype="u1")
    assert asked(store, lambda: zarrlite.open_array(store, path="a", mode="r")) == ["get a/zarr.json"]
    group = zarrlite.open_group(store, mode="r")
    assert asked(store, lambda: dict(group.members())) == ["list ", "get a/zarr.json", "get b/zarr.json"]


MANY = 256


@pytest.mark.parametrize(
    ("codecs", "read", "write"),
    [([Bytes()], 28, 40), (SMALL, 30, 46), ([ShardingIndexed((8, 8), SMALL)], 8, 9)],
    ids=["raw", "zstd", "shard, zstd"],
)
def test_a_chunk_among_many_takes_few_calls(tmp_path: Path, codecs: Any, read: int, write: int) -> None:
    """Of small chunks (inner ones, in the shard), on disk, in one thread: it would hide the calls of the others."""
    data = np.random.default_rng(0).integers(0, 1000, (128, 128)).astype("u2")
    chunk = (128, 128) if isinstance(codecs[0], ShardingIndexed) else (8, 8)
    first, second = (
        zarrlite.create_array(tmp_path / name, shape=data.shape, chunks=chunk, dtype="u2", codecs=codecs)
        for name in ("first", "second")
    )
    first[...] = data  # what is prepared once
    calls = count_calls(lambda: second.__setitem__(..., data))[0] / MANY, count_calls(lambda: second[...])[0] / MANY
    print(f"{calls[0]:.0f} calls to write a chunk, {calls[1]:.0f} to read it")
    assert (second[...] == data).all()
    assert calls[0] < write
    assert calls[1] < read
