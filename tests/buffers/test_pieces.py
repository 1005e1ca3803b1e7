"""Values that consist of several pieces are stored as if they were contiguous."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.buffers import scratch
from zarrlite.buffers.pieces import LazyPiece, as_list, join, overlapping, size_of, split
from zarrlite.codecs import Bytes, Crc32c, Pad, ShardingIndexed
from zarrlite.codecs import bytes as bytes_codec
from zarrlite.shards import writing
from zarrlite.storage_transformers import ConcatParts, Part
from zarrlite.stores import LocalStore, MemoryStore
from zarrlite.tuning import SCRATCH_ALIGNMENT


def letters() -> LazyPiece:
    """Return b"abcdef", generated in blocks of two bytes."""
    array = np.frombuffer(b"a.b.c.d.e.f.", "u1")[::2]
    return LazyPiece(array, [array[i : i + 2] for i in range(0, 6, 2)])


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the size of each lazy piece when it is generated, whether in one step or in blocks."""
    sizes: list[int] = []
    original_join, original_iter = LazyPiece.join, LazyPiece.__iter__

    def recording_iter(self: LazyPiece) -> Iterator[Any]:
        sizes.append(len(self))
        return original_iter(self)

    monkeypatch.setattr(LazyPiece, "join", lambda self: (sizes.append(len(self)), original_join(self))[1])
    monkeypatch.setattr(LazyPiece, "__iter__", recording_iter)
    return sizes


# Pieces


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"0123", b"0123"),
        ([b"01", memoryview(b"23")], b"0123"),
        ([b"0", letters(), bytearray(b"1")], b"0abcdef1"),
        ([], b""),
    ],
)
def test_pieces_are_joined_in_order(value: Any, expected: bytes) -> None:
    assert bytes(join(value)) == expected
    assert size_of(value) == len(expected)
    assert bytes(join(as_list(value))) == expected


def test_a_missing_value_stays_missing_when_it_is_joined() -> None:
    assert join(None) is None


def test_a_buffer_is_not_copied_when_it_is_joined() -> None:
    value = bytearray(b"0123")
    assert join(value) is value


def test_the_parts_of_patches_between_two_offsets_are_found() -> None:
    lazy = letters()
    patches = [(0, b"0123"), (4, lazy), (10, memoryview(b"45"))]
    value = b"0123abcdef45"
    for start in range(13):
        for stop in range(start, 13):
            found = overlapping(patches, start, stop)
            assert bytes(join([piece for _, piece in found])) == value[start:stop]
            assert all(value[start + at : start + at + len(piece)] == join([piece]) for at, piece in found)
    assert overlapping(patches, 4, 10)[0][1] is lazy  # a piece that is needed in full stays lazy


def test_patches_with_gaps_keep_their_offsets() -> None:
    assert overlapping([(8, b"89"), (2, b"23")], 3, 9) == [(5, b"8"), (0, b"3")]


@pytest.mark.parametrize("sizes", [[14], [0, 14], [3, 0, 11], [1] * 14, [4, 6, 4], [7, 7], [14, 0]])
def test_a_value_is_split_into_consecutive_values(sizes: list[int]) -> None:
    expected = b"0123abcdef4567"
    for value in (expected, [b"0123", letters(), b"45", memoryview(b"67")]):
        parts = [bytes(join(part)) for part in split(value, sizes)]
        assert [len(part) for part in parts] == sizes
        assert b"".join(parts) == expected


def test_a_lazy_piece_is_generated_once_however_often_it_is_split(generated: list[int]) -> None:
    split([letters()], [2, 2, 2])
    assert generated == [6]


def test_a_lazy_piece_that_is_not_split_stays_lazy(generated: list[int]) -> None:
    lazy = letters()
    assert split([b"0", lazy, b"1"], [1, 6, 1]) == [[b"0"], [lazy], [b"1"]]
    assert generated == []


# Lazy pieces


@pytest.mark.parametrize("dtype", ["u1", "<f8", ">u2", "M8[s]", "c16", [("a", "u1"), ("b", "<u4")]])
def test_a_lazy_piece_has_the_elements_in_row_major_order(dtype: Any) -> None:
    image = np.zeros((90, 50), dtype)
    image.view("u1")[...] = np.arange(image.nbytes).reshape(image.view("u1").shape) % 251
    part = image[:, 3:20]
    lazy = LazyPiece(part, [part[:40], part[40:70], part[70:]])
    expected = part.tobytes()
    for _ in range(2):  # a lazy piece can be generated repeatedly
        assert (len(lazy), lazy.join(), b"".join(map(bytes, lazy))) == (len(expected), expected, expected)


def test_blocks_are_aligned_and_in_one_scratch_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    acquired: list[int] = []
    acquire = scratch.acquire
    monkeypatch.setattr(scratch, "acquire", lambda size: (acquired.append(size), acquire(size))[1])
    image = np.arange(90 * 50, dtype="<f8").reshape(90, 50)[:, 3:20]
    addresses = {np.frombuffer(block, "u1").ctypes.data for block in LazyPiece(image, [image[:40], image[40:]])}
    assert len(addresses) == 1
    assert addresses.pop() % SCRATCH_ALIGNMENT == 0
    assert acquired == [50 * 17 * 8]


def test_a_value_in_pieces_is_stored_as_one_value(tmp_path: Path) -> None:
    for store in (LocalStore(tmp_path), MemoryStore()):
        store.change([("a/b", [b"0", letters(), b"1"]), ("a/c", [])])  # the directory 'a' does not exist yet
        store.update("d", lambda old: [letters(), letters()])
        expected = {"a/b": b"0abcdef1", "a/c": b"", "d": b"abcdef" * 2}
        assert {key: store.get(key) for key in store.list()} == expected


# Storing chunks and shards that consist of pieces


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("empty", [0, 1, 3, 12])
@pytest.mark.parametrize("dtype", ["<u2", ">f4"])
def test_a_shard_is_the_same_in_every_store(tmp_path: Path, location: str, empty: int, dtype: str) -> None:
    data = np.arange(1, 12 * 15 + 1).reshape(12, 15).astype(dtype)
    blocks = data.reshape(4, 3, 3, 5).transpose(0, 2, 1, 3)
    for n in range(empty):
        blocks[n // 3, n % 3] = 0
    shard = ShardingIndexed((3, 5), (Bytes("big"),), index_location=location)
    padding = {"name": "pad", "configuration": {"location": "start", "nbytes": 7}}
    parts = {"name": "concat-parts", "configuration": {"parts": [{"key_suffix": ".h", "size": 9}, {"key_suffix": ""}]}}
    values: list[Any] = []
    for store in (LocalStore(tmp_path / "store"), MemoryStore()):
        for codecs, transformers in (([shard], None), ([shard, padding], None), ([shard, padding], [parts])):
            array = zarrlite.create_array(
                store, data=data, chunks=(12, 15), codecs=codecs, storage_transformers=transformers, overwrite=True
            )
            assert np.array_equal(array[...], data)
            array[3:5, 4:9] = 7
            values.append({key: bytes(store.get(key) or b"") for key in store.list() if key != "zarr.json"})
            changed = data.copy()
            changed[3:5, 4:9] = 7
            assert np.array_equal(zarrlite.open_array(store, mode="r")[...], changed)
    assert values[:3] == values[3:]


@pytest.mark.parametrize("block", [1, 100, 2**21])
def test_a_large_shard_is_copied_a_few_chunks_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    acquired: list[int] = []
    acquire = scratch.acquire
    monkeypatch.setattr(writing, "COPY_BLOCK_BYTES", block)
    monkeypatch.setattr(scratch, "acquire", lambda size: (acquired.append(size), acquire(size))[1])
    data = np.arange(1, 24 * 35 * 4 + 1, dtype="<u2").reshape(4, 24, 35)
    codecs = [ShardingIndexed((2, 4, 5), (Bytes(),))]
    array = zarrlite.create_array(tmp_path / "a", data=data, chunks=(4, 24, 35), codecs=codecs)
    assert acquired
    assert max(acquired) <= max(block, 2 * 4 * 5 * 2)  # a block contains at least one chunk
    assert np.array_equal(array[...], data)


@pytest.mark.parametrize(
    "codecs", [[Bytes()], [Bytes("big")], [Bytes(), Crc32c()], [Bytes(), Pad("start", 3), Crc32c()]]
)
@pytest.mark.parametrize("place", ["local", "memory"])
def test_a_large_strided_chunk_is_copied_in_blocks_while_it_is_written(
    codecs: list[Any], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generated: list[int]
) -> None:
    monkeypatch.setattr(bytes_codec, "COPY_BLOCK_BYTES", 2**19)
    store = LocalStore(tmp_path) if place == "local" else MemoryStore()
    data = np.random.default_rng(1).integers(0, 2**30, (3, 700, 500)).astype("<u4")
    array = zarrlite.create_array(store, data=data, chunks=(2, 400, 250), codecs=codecs)
    if codecs != [Bytes("big")]:  # swapping bytes makes a contiguous copy, which is not lazy
        assert max(generated) == 800_000
    assert len(generated) <= 8  # each chunk is generated at most once
    np.testing.assert_array_equal(array[...], data)
    stored = bytes(array.store.get("c/0/0/1") or b"")
    order = ">u4" if codecs == [Bytes("big")] else "<u4"
    start = 3 if len(codecs) == 3 else 0
    assert stored[start : start + 800_000] == data[:2, :400, 250:].astype(order).tobytes()


def test_a_large_chunk_in_parts_is_generated_once(tmp_path: Path, generated: list[int]) -> None:
    data = np.random.default_rng(2).integers(0, 200, (1000, 3000)).astype("u1")
    parts = ConcatParts([*(Part(f".{i}", 1000 * i) for i in range(1, 9)), Part("")])
    array = zarrlite.create_array(
        tmp_path, data=data, chunks=(1000, 1500), codecs=[Bytes()], storage_transformers=[parts]
    )
    assert generated == [1_500_000, 1_500_000]
    np.testing.assert_array_equal(array[...], data)


class Recording(LocalStore):
    """A store whose `set` does not support values that consist of pieces."""

    def set(self, key: str, value: Any) -> None:
        assert isinstance(value, bytes | bytearray | memoryview)
        super().set(key, value)


def test_a_subclass_that_overrides_set_receives_joined_values(tmp_path: Path) -> None:
    data = np.random.default_rng(2).integers(0, 200, (1000, 3000)).astype("u1")
    for codecs in ([Bytes()], [Bytes(), Crc32c()], [ShardingIndexed((100, 100), (Bytes(),))]):
        array = zarrlite.create_array(
            Recording(tmp_path), data=data, chunks=(1000, 1500), codecs=codecs, overwrite=True
        )
        np.testing.assert_array_equal(array[...], data)
