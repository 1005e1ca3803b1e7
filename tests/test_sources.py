"""Every way to read a source gives what a slice of the value gives, or says that it cannot."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.buffers import scratch
from zarrlite.buffers.pieces import LazyPiece, as_list, join, size_of
from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.buffers.source import InMemory, Slice, Source, Window
from zarrlite.codecs import Bytes, Crc32c, Pad, ShardingIndexed
from zarrlite.codecs import bytes as bytes_codec
from zarrlite.errors import DataError, KeyRefusedError, MissingChunkError, TruncatedError
from zarrlite.nodes.creation import array_metadata
from zarrlite.shards import writing
from zarrlite.storage_transformers import ConcatParts, Part
from zarrlite.stores import LocalStore, MemoryStore, Store

VALUE = b"0123456789abcdef"
KEY = "c/0"
RANGES = [(0, 16), (0, 0), (3, 9), (15, 16), (10, 30), (16, 16), (20, 30)]
Maker = Callable[[Store, bytes | None], Source]


def stored(store: Store, value: bytes | None) -> Source:
    if value is not None:
        store.set(KEY, value)
    return store.source(KEY)


def sliced(store: Store, value: bytes | None) -> Source:
    return Slice(stored(store, None if value is None else b"<<" + value + b">>"), 2, len(VALUE))


def windowed(store: Store, value: bytes | None) -> Source:
    return Window(stored(store, None if value is None else b"<<" + value + b">>>"), 2, 3, "pad")


def parted(*parts: Part) -> Maker:
    def make(store: Store, value: bytes | None) -> Source:
        wrapped = ConcatParts(parts).wrap(store, array_metadata((4,), "u1", chunks=(1,)))
        return stored(wrapped, value)

    return make


def padded_in_parts(store: Store, value: bytes | None) -> Source:
    make = parted(Part(".h", 1), Part(""), Part(".i", 4))
    return Window(make(store, None if value is None else b"<" + value + b">>>>>"), 1, 5, "pad")


KINDS: dict[str, Maker] = {
    "stored": stored,
    "slice": sliced,
    "window": windowed,
    "index apart": parted(Part(""), Part(".i", 5)),
    "header and index": parted(Part(".h", 3), Part(""), Part(".i", 5)),
    "all sized": parted(Part(".a", 7), Part(".b", 9)),
    "padding in parts": padded_in_parts,
}


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "store") if request.param == "local" else MemoryStore()


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Maker:
    return KINDS[request.param]


def content(data: Any) -> Any:
    return None if data is None else bytes(data)


@pytest.mark.parametrize(("start", "stop"), RANGES)
def test_all_ways_agree(store: Store, make: Maker, start: int, stop: int) -> None:
    for first in ("read_at", "borrow", "read_one", "known_size", "fill", "read_all"):  # whatever opens it
        source = make(store, VALUE)
        try:
            {
                "read_at": lambda source=source: source.read_at(start, stop),
                "borrow": lambda source=source: source.borrow(),
                "read_one": lambda source=source: source.read_one(ByteRange(-5)),
                "known_size": lambda source=source: source.known_size(),
                "fill": lambda source=source: source.fill(np.empty(2, "u1"), 0),
                "read_all": lambda source=source: source.read_all(),
            }[first]()
            expected = VALUE[start:stop]
            assert content(source.read_at(start, stop)) == expected
            assert content(source.borrow(ByteRange(start, stop))) == expected
            assert content(source.read_one(ByteRange(start, stop))) == expected
            assert content(source.read_one(ByteRange(-5))) == VALUE[-5:]
            assert [content(part) for part in source.read([ByteRange(start, stop), ALL]) or ()] == [expected, VALUE]
            assert content(source.borrow()) == content(source.read_all()) == VALUE
            assert source.known_size() in (None, len(VALUE))
            assert source.size() == len(VALUE)
        finally:
            source.close()


@pytest.mark.parametrize(("start", "stop"), RANGES)
def test_memory_is_filled_with_what_is_there_or_not_at_all(store: Store, make: Maker, start: int, stop: int) -> None:
    source = make(store, VALUE)
    memory = np.zeros(stop - start, "u1")
    if source.fill(memory, start):
        assert memory.tobytes() == VALUE[start:stop]
        assert len(VALUE[start:stop]) == stop - start
    source.close()


def test_files_fill_memory(tmp_path: Path) -> None:
    for name, make in KINDS.items():
        source = make(LocalStore(tmp_path / name), VALUE)
        memory = np.zeros(4, "u1")
        if name != "all sized":  # which has no part that could be the one
            assert source.fill(memory, 5), name
            assert memory.tobytes() == VALUE[5:9]
        source.close()


def test_what_is_missing_is_missing_in_every_way(store: Store, make: Maker) -> None:
    source = make(store, None)
    for found in (
        source.read_at(1, 3),
        source.borrow(),
        source.read_one(ByteRange(-5)),
        source.read_all(),
        source.read([ByteRange(0, 2), ByteRange(4, 5)]),
    ):
        assert found is None
    assert not source.fill(np.empty(3, "u1"), 0)
    source.close()


def test_a_value_that_is_cut_is_noticed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    source = sliced(store, VALUE)
    store.set(KEY, b"<<" + VALUE[:5])
    memory = np.empty(8, "u1")
    assert not source.fill(memory, 0)
    with pytest.raises(TruncatedError, match="missing at offset"):
        source.read_at(0, 8)
    source.close()


@pytest.mark.parametrize("damage", ["main", "index", "longer"])
def test_parts_that_do_not_fit_are_refused_in_every_way(store: Store, damage: str) -> None:
    parted(Part(""), Part(".i", 5))(store, VALUE).close()
    if damage == "longer":
        store.set(KEY + ".i", b"123456")
    else:
        store.erase(KEY + (".i" if damage == "index" else ""))
    source = parted(Part(""), Part(".i", 5))(store, None)
    assert source.known_size() is None
    for read in (source.read_all, source.borrow, source.size):
        with pytest.raises(DataError, match="part"):
            read()
    source.close()


def test_parts_that_are_too_long_are_refused_before_they_are_read(tmp_path: Path) -> None:
    source = parted(Part(""), Part(".i", 5))(LocalStore(tmp_path), VALUE)
    source.max_size = len(VALUE)
    assert source.read_all() == VALUE
    with (tmp_path / KEY).open("r+b") as file:
        file.truncate(2**40)
    source.close()
    source = parted(Part(""), Part(".i", 5))(LocalStore(tmp_path), None)
    source.max_size = len(VALUE)
    with pytest.raises(TruncatedError, match="at most 16 fit"):
        source.read_all()
    source.close()


def test_a_part_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below, opened = LocalStore(tmp_path), []
    source = parted(Part(""), Part(".i", 5))(below, VALUE)
    original = os.open
    monkeypatch.setattr(os, "open", lambda path, *flags: opened.append(Path(path).name) or original(path, *flags))
    for _ in range(3):
        assert source.read_one(ByteRange(-5)) == VALUE[-5:]
        assert source.known_size() == len(VALUE)
        assert source.read_at(2, 4) == VALUE[2:4]
        assert bytes(source.borrow(ByteRange(2, 4)) or b"") == VALUE[2:4]
        assert source.read_at(len(VALUE) - 3, len(VALUE) - 1) == VALUE[-3:-1]
        assert source.read_all() == VALUE
    assert opened == ["0.i", "0"]
    source.close()


@pytest.mark.parametrize(
    ("parts", "end"), [((Part(""), Part(".i", 5)), ByteRange(-5)), ((Part(".i", 5), Part("")), ByteRange(0, 5))]
)
def test_a_part_at_an_end_is_of_one_value_until_it_is_closed(tmp_path: Path, parts: Any, end: ByteRange) -> None:
    below = LocalStore(tmp_path)
    source = parted(*parts)(below, VALUE)
    index = VALUE[end.start : end.stop]
    assert source.read_one(end) == index
    below.set(KEY + ".i", b"other")
    assert source.read_one(end) == index
    assert source.read_all() == VALUE
    source.close()
    assert source.read_one(end) == b"other"
    source.close()
    for damaged in (b"four", b"longer"):
        below.set(KEY + ".i", damaged)
        with pytest.raises(TruncatedError, match=rf"'c/0\.i' has {len(damaged)} bytes, not 5"):
            source.read_one(end)
        source.close()


# single elements


class Reversing(LocalStore):
    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        value = super().get(key)
        return value if value is None or key.endswith("json") else byte_range.of(bytes(value)[::-1])


def test_an_element_is_read_in_one_step_and_checked_as_any_other(tmp_path: Path) -> None:
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    data = np.arange(1, 25, dtype="<u2").reshape(4, 6)
    zarrlite.create_array(tmp_path / "a", data=data, chunks=(2, 3), codecs=codecs)
    array = zarrlite.open_array(tmp_path / "a", mode="r+")
    chunk = tmp_path / "a/c/1/1"
    for index in np.ndindex(4, 6):
        assert array[index] == data[index]
        assert array[tuple(i - n for i, n in zip(index, data.shape, strict=True))] == data[index]
    assert type(array[3, 5]) is np.uint16
    for size in (0, 11, 13, 2**20):
        chunk.write_bytes(bytes(size))
        with pytest.raises(TruncatedError, match=f"has {size} bytes") as caught:
            array[3, 5]
        assert caught.value.key == "c/1/1"
    chunk.unlink()
    assert array[3, 5] == 0
    with pytest.raises(MissingChunkError, match="c/1/1"):
        zarrlite.open_array(tmp_path / "a", mode="r", missing_chunks="error")[3, 5]
    chunk.mkdir()
    assert array[3, 5] == 0
    chunk.rmdir()
    chunk.symlink_to(tmp_path / "a/c/0/1")
    assert array[3, 5] == data[1, 5]
    chunk.unlink()
    (tmp_path / "elsewhere").write_bytes(bytes(12))
    chunk.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeyRefusedError, match="leads out of"):
        array[3, 5]
    assert zarrlite.open_array(Reversing(tmp_path / "a"), mode="r")[0, 0] == data[1, 2].byteswap()


# values in pieces


class Letters(Made):
    def __len__(self) -> int:
        return 6

    def __iter__(self) -> Any:
        memory = bytearray(2)
        for pair in (b"ab", b"cd", b"ef"):
            memory[:] = pair  # lent until the next
            yield memory


def test_pieces_are_joined() -> None:
    for value, expected in (
        (b"0123", b"0123"),
        ([b"01", memoryview(b"23")], b"0123"),
        ([b"0", Letters(), b"1"], b"0abcdef1"),
        ([], b""),
    ):
        assert bytes(join(value)) == expected
        assert size_of(value) == len(expected)
        assert bytes(join(as_list(value))) == expected
    assert join(None) is None


def test_what_lies_within_is_cut_out_of_pieces() -> None:
    pieces = [(0, b"0123"), (4, Letters()), (10, b"45")]
    whole = b"0123abcdef45"
    for start in range(13):
        for stop in range(start, 13):
            found = within(pieces, start, stop)
            assert bytes(join([piece for _, piece in found])) == whole[start:stop]
            assert all(whole[start + at : start + at + len(piece)] == join([piece]) for at, piece in found)
    assert within(pieces, 4, 10)[0][1] is pieces[1][1]  # whole: as it is


def test_a_value_in_pieces_is_stored_whole(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.update_many([("a/b", [b"0", Letters(), b"1"]), ("a/c", [])])  # the directory is missing at first
    store.update("d", lambda old: [Letters(), Letters()])
    assert {key: store.get(key) for key in store.list()} == {"a/b": b"0abcdef1", "a/c": b"", "d": b"abcdef" * 2}


# elements that are read straight to where they are wanted


@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2", "f8", ">f8", "c16", "bool", "M8[s]"])
@pytest.mark.parametrize("shards", [None, (8, 6)])
def test_chunks_are_read_as_they_are_stored(tmp_path: Path, dtype: str, shards: Any) -> None:
    data = (np.arange(48).reshape(8, 6) % 2).astype(dtype)
    for endian in ("little", "big"):
        codecs: list[Any] = [Bytes(endian)]
        if shards:
            codecs = [ShardingIndexed((4, 3), tuple(codecs))]
        array = zarrlite.create_array(
            tmp_path / endian, data=data, chunks=shards or (4, 3), codecs=codecs, write_empty_chunks=True
        )
        for index in ((slice(4, 8), slice(0, 3)), (slice(0, 4), slice(3, 6)), (slice(4, 8), slice(None)), ...):
            found = array[index]
            assert np.array_equal(found, data[index])
            found[...] = found[0, 0]  # it is ours


def test_a_chunk_of_another_size_is_not_read_as_if_it_were_right(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, data=np.ones((4, 4), "<f8"), chunks=(4, 4), codecs=[Bytes()])
    for size in (0, 127, 129):
        (tmp_path / "c/0/0").write_bytes(bytes(size))
        with pytest.raises(TruncatedError, match="c/0/0"):
            array[...]
        with pytest.raises(TruncatedError, match="c/0/0"):
            array[0, 0]


def test_held_values_are_borrowed_as_they_are() -> None:
    assert InMemory(VALUE).borrow(ByteRange(2, 4)) == VALUE[2:4]
    assert not InMemory(None).fill(np.empty(2, "u1"), 0)
    assert not InMemory(VALUE).fill(np.empty(2, "u1"), len(VALUE) - 1)


@pytest.mark.parametrize("dtype", ["u1", ">u2", "M8[s]", [("a", "u1"), ("b", "<u4")]])
def test_held_values_fill_memory_of_any_kind(dtype: Any) -> None:
    for shape in ((), (0,), (1, 1)):
        memory = np.zeros(shape, dtype)
        assert InMemory(VALUE).fill(memory, 3)
        assert memory.tobytes() == VALUE[3 : 3 + memory.nbytes]


# shards on their way to the store


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("empty", [0, 1, 3, 12])
@pytest.mark.parametrize("dtype", ["<u2", ">f4"])
def test_a_shard_is_the_same_in_pieces_and_whole(tmp_path: Path, location: str, empty: int, dtype: str) -> None:
    data = np.arange(1, 12 * 15 + 1).reshape(12, 15).astype(dtype)
    blocks = data.reshape(4, 3, 3, 5).transpose(0, 2, 1, 3)
    for n in range(empty):
        blocks[n // 3, n % 3] = 0
    shard = ShardingIndexed((3, 5), (Bytes("big"),), index_location=location)
    padding = {"name": "pad", "configuration": {"location": "start", "nbytes": 7}}
    index = {"name": "concat-parts", "configuration": {"parts": [{"key_suffix": ".h", "size": 9}, {"key_suffix": ""}]}}
    values: list[Any] = []
    for store in (LocalStore(tmp_path / "store"), MemoryStore()):
        for codecs, transformers in (([shard], None), ([shard, padding], None), ([shard, padding], [index])):
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


def test_a_large_shard_is_packed_some_chunks_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    take = scratch.acquire
    monkeypatch.setattr(writing, "STEP", 100)
    monkeypatch.setattr(scratch, "take", lambda size: taken.append(size) or take(size))
    data = np.arange(1, 24 * 35 * 4 + 1, dtype="<u2").reshape(4, 24, 35)
    codecs = [ShardingIndexed((2, 4, 5), (Bytes(),))]
    array = zarrlite.create_array(tmp_path / "a", data=data, chunks=(4, 24, 35), codecs=codecs)
    assert max(taken) <= 100 + scratch.ALIGNMENT
    assert np.array_equal(array[...], data)


@pytest.mark.parametrize("position", [0, 1, 46, 64, 110])
def test_what_is_packed_is_aligned_as_it_will_be_in_the_file(position: int) -> None:
    image = np.arange(90 * 50, dtype="<f8").reshape(90, 50)
    packed = LazyPiece(image[:, 3:20], [image[:40, 3:20], image[40:, 3:20]])
    expected = image[:, 3:20].tobytes()
    assert (len(packed), bytes(packed.whole()), b"".join(map(bytes, packed))) == (len(expected), expected, expected)
    found = b""
    for bit in packed.written_at(position):
        assert (np.frombuffer(bit, "u1").ctypes.data - position - len(found)) % scratch.ALIGNMENT == 0
        found += bytes(bit)
    assert found == expected


@pytest.mark.parametrize(
    "codecs", [[Bytes()], [Bytes("big")], [Bytes(), Crc32c()], [Bytes(), Pad("start", 3), Crc32c()]]
)
@pytest.mark.parametrize("place", ["local", "memory"])
def test_a_large_chunk_is_packed_as_it_is_written(
    codecs: list[Any], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bytes_codec, "STEP", 2**19)
    store = LocalStore(tmp_path) if place == "local" else MemoryStore()
    data = np.random.default_rng(1).integers(0, 2**30, (3, 700, 500)).astype("<u4")
    array = zarrlite.create_array(store, data=data, chunks=(2, 400, 250), codecs=codecs)
    np.testing.assert_array_equal(array[...], data)
    stored = bytes(array.store.get("c/0/0/1") or b"")
    order = ">u4" if codecs == [Bytes("big")] else "<u4"
    start = 3 if len(codecs) == 3 else 0
    assert stored[start : start + 800_000] == data[:2, :400, 250:].astype(order).tobytes()


def test_a_large_chunk_in_parts_is_packed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    whole = Packed.whole
    monkeypatch.setattr(Packed, "whole", lambda self: made.append(len(self)) or whole(self))
    data = np.random.default_rng(2).integers(0, 200, (1000, 3000)).astype("u1")
    parts = ConcatParts([*(Part(f".{i}", 1000 * i) for i in range(1, 9)), Part("")])
    array = zarrlite.create_array(
        tmp_path, data=data, chunks=(1000, 1500), codecs=[Bytes()], storage_transformers=[parts]
    )
    assert made == [1_500_000, 1_500_000]
    np.testing.assert_array_equal(array[...], data)


class Recording(LocalStore):
    """Knows nothing of values in pieces."""

    def set_many(self, items: Any) -> None:
        items = [(key, bytes(value)) for key, value in items]
        super().set_many(items)


def test_who_stores_several_values_otherwise_gets_them_whole(tmp_path: Path) -> None:
    data = np.random.default_rng(2).integers(0, 200, (1000, 3000)).astype("u1")
    for codecs in ([Bytes()], [Bytes(), Crc32c()], [ShardingIndexed((100, 100), (Bytes(),))]):
        array = zarrlite.create_array(
            Recording(tmp_path), data=data, chunks=(1000, 1500), codecs=codecs, overwrite=True
        )
        np.testing.assert_array_equal(array[...], data)
