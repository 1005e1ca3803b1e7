"""What is done for many chunks at once gives what is done for each of them: decoding, writing, replacing, new files."""

from __future__ import annotations

import bisect
import itertools
import json
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from zarrlite.buffers.batch import Run, lengths

import zarrlite
from zarrlite.buffers import scratch
from zarrlite.buffers.pieces import join
from zarrlite.buffers.ranges import ALL
from zarrlite.chunk_grids import ChunkGrid
from zarrlite.chunks.chunks import Chunks
from zarrlite.codecs import Bytes, BytesBytesCodec, Crc32c, Packbits, Pad, ShardingIndexed, Zstd
from zarrlite.codecs.zstd import _is_one_frame
from zarrlite.errors import ChecksumError, DataError, MissingChunkError, TruncatedError, ZarrliteError
from zarrlite.extensions import registry
from zarrlite.pipeline import pipeline as pipelines
from zarrlite.selections.selection import Selection, Span
from zarrlite.shards.format import boxes
from zarrlite.shards.reading import ShardSource
from zarrlite.shards.writing import ShardWriter, Writing
from zarrlite.stores import LocalStore, MemoryStore, files

SMALL = [Bytes(), Zstd(1), Crc32c()]
DATA = np.arange(64 * 64, dtype="u2").reshape(64, 64) % 1000


def frame(data: bytes, **options: Any) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(data)


FRAMES = {
    "of one block": frame(b"text" * 100),
    "of several blocks": frame(np.random.default_rng(0).bytes(500_000)),
    "of one byte again and again": frame(bytes(100_000)),
    "with a checksum": frame(b"text" * 100, write_checksum=True),
    "without a content size": frame(b"text" * 100, write_content_size=False),
    "of nothing": frame(b""),
}


@pytest.mark.parametrize("data", FRAMES.values(), ids=FRAMES)
def test_a_frame_is_one_frame_and_nothing_else(data: bytes) -> None:
    assert _is_one_frame(data)
    assert not _is_one_frame(data + b"\0")
    assert not _is_one_frame(data[:-1])
    assert not _is_one_frame(data + data)
    assert not any(_is_one_frame(data[:n]) for n in range(min(len(data), 300)))


def outcome(do: Any) -> Any:
    try:
        return [bytes(value) for value in do()]
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("codec", [Zstd(), Crc32c()], ids=["zstd", "crc32c"])
@given(st.lists(st.sampled_from([b"", b"a" * 8, b"text" * 16, bytes(100)]), min_size=1), st.data())
def test_decoding_many_is_decoding_each(codec: BytesBytesCodec, values: list[bytes], data: st.DataObject) -> None:
    encoded = [
        bytes(codec.encode(value)) + data.draw(st.sampled_from([b"", b"", b"", b"\0", codec.encode(b"a")]))
        for value in values
    ]
    encoded[0] = encoded[0][: data.draw(st.sampled_from([None, None, None, 0, 3, -1]))]
    views = [memoryview(bytearray(value)) for value in encoded]  # as they come out of a shard
    each = outcome(lambda: [codec.decode(v, 100) for v in encoded])
    assert outcome(lambda: codec.decode_many(encoded, 100)) == each
    assert outcome(lambda: codec.decode_many(views, 100)) == each


@st.composite
def frames_in_a_row(draw: st.DrawFn) -> tuple[int, list[bytes]]:
    """Frames, most of which decode to one size, some damaged."""
    size = draw(st.sampled_from([1, 8, 255, 256, 300, 5000]))
    plain = np.random.default_rng(size).bytes(size)
    whole = [frame(bytes(size)), frame(plain), frame((b"ab" * size)[:size])]
    usual = st.sampled_from(whole)
    unusual = st.sampled_from(
        [
            frame(plain, write_checksum=True),
            frame(plain, write_content_size=False),
            frame(plain) + b"\0",
            frame(plain)[:-1],
            frame(plain) + frame(b""),
            frame(plain + b"\0"),
            frame(plain[:-1]),
            frame(b""),
            b"",
            bytes(30),
            frame(bytes(2**20)),
            b"\x50\x2a\x4d\x18\4\0\0\0skip" + frame(plain),
        ]
    )
    return size, draw(st.lists(st.one_of(usual, usual, usual, unusual), min_size=1, max_size=40))


@given(frames_in_a_row())
def test_decoding_side_by_side_is_decoding_each(frames: tuple[int, list[bytes]]) -> None:
    size, values = frames
    each = outcome(lambda: [zstandard.ZstdDecompressor().decompress(value) for value in values])
    whole = isinstance(each, list) and all(len(value) == size for value in each) and all(map(_is_one_frame, values))
    for some in (values, in_a_run(values)):
        memory = memoryview(bytearray(size * len(values)))
        done = Zstd().decode_side_by_side(some, memory)
        assert done is whole
        assert not done or bytes(memory) == b"".join(each)


def in_a_run(values: list[bytes], gap: int = 3) -> Run:
    """The same values in one piece of memory, with gaps between them."""
    memory, starts = bytearray(b"?" * gap), []
    for value in values:
        starts.append(len(memory))
        memory += value + b"?" * gap
    return Run(memory, np.array(starts), np.array(starts) + [len(value) for value in values])


@given(st.lists(st.binary(max_size=9), max_size=5))
def test_a_run_is_the_values_in_it(values: list[bytes]) -> None:
    run = in_a_run(values)
    assert [bytes(value) for value in run] == [bytes(run[i]) for i in range(len(run))] == values
    assert [bytes(value) for value in run[1:3]] == values[1:3]
    assert [*lengths(run)] == [*lengths(values)] == [*map(len, values)]
    assert not values or [bytes(value) for value in Run.even(b"".join(v.ljust(9) for v in values), 9)] == [
        value.ljust(9) for value in values
    ]


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5), st.integers(0, 3), st.booleans())
def test_a_checksum_of_a_run_is_that_of_each(values: list[bytes], damage: int, long: bool) -> None:
    values = [value * 300 for value in values] if long else values
    encoded = [Crc32c().encode(value) for value in values]
    assert [join(value) for value in Crc32c().encode_many(in_a_run(values))] == encoded
    encoded[0] = (encoded[0], encoded[0][:-1], encoded[0] + b"\0", b"abc")[damage]
    each = outcome(lambda: [Crc32c().decode(value, 2**20) for value in encoded])
    assert outcome(lambda: Crc32c().decode_many(in_a_run(encoded), 2**20)) == each
    assert (each == values) is (damage == 0)


@pytest.mark.parametrize("codec", [Bytes("big"), Packbits()], ids=["bytes", "packbits"])
@given(st.lists(st.sampled_from([bytes(64), b"\0\1" * 32, b"\1" * 64, b"\2" * 64]), min_size=1))
def test_arrays_of_many_are_the_arrays_of_each(codec: Any, values: list[bytes]) -> None:
    for dtype, shape in (("uint16", (2, 2)), ("bool", (2, 4)), ("bool", (64,))):
        bound = codec.bind(pipelines.ArraySpec(shape, registry.data_types.coerce(dtype), 0))
        some = [value[: bound.encoded_size] for value in values]
        each = outcome(lambda bound=bound, some=some: [bound.decode(v).astype(bound.spec.dtype) for v in some])
        joint = memoryview(b"".join(some))
        assert outcome(lambda bound=bound, joint=joint: bound.decode_many(joint).astype(bound.spec.dtype)) == each


@given(st.lists(st.integers(1, 5), max_size=4), st.integers(1, 200))
def test_boxes_follow_each_other_through_a_grid(grid: list[int], most: int) -> None:
    numbers = np.arange(np.prod(grid, dtype=int)).reshape(grid)
    found = list(boxes(tuple(grid), most))
    assert all(numbers[(*box, ...)].ravel().tolist() == list(range(numbers.size))[part] for box, part in found)
    assert [n for _, part in found for n in range(part.start, part.stop)] == list(range(numbers.size))
    assert max(part.stop - part.start for _, part in found) <= most
    assert len(found) == 1 or most < numbers.size


def test_a_bomb_among_many_is_noticed_before_it_has_gone_off() -> None:
    bomb = Zstd().encode(bytes(2**30))
    with pytest.raises(TruncatedError, match="claims 1073741824 bytes, at most 100 fit here"):
        Zstd().decode_many([Zstd().encode(b"a"), bomb], 100)
    lying = bytearray(Zstd().encode(b"x" * 100))
    lying[5] = 50  # of its content size
    with pytest.raises(zstandard.ZstdError):
        Zstd().decode_many([bytes(lying)] * 2, 100)


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return LocalStore(tmp_path) if request.param == "local" else MemoryStore()


@pytest.mark.parametrize("batch", [1, 2**11, 2**19], ids=["one", "a few", "all"])
@pytest.mark.parametrize(
    "codecs",
    [
        [Bytes()],
        SMALL,
        [Bytes("big"), Zstd(), Pad("start", 3)],
        [ShardingIndexed((4, 8), SMALL)],
        [ShardingIndexed((4, 8), [Bytes("big")])],
        [ShardingIndexed((4, 8), [Bytes()], index_location="start")],
    ],
    ids=["raw", "zstd", "zstd behind pad", "shards", "raw shards", "raw shards, index first"],
)
def test_arrays_are_the_same_in_batches_of_any_size(
    place: Any, codecs: Any, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "BATCH", batch)
    monkeypatch.setattr("zarrlite.chunks.many.BATCH", batch)
    monkeypatch.setattr("zarrlite.chunks.many.READ_BATCH", batch)
    monkeypatch.setattr("zarrlite.shards.reading.BATCH", batch)
    monkeypatch.setattr("zarrlite.shards.reading.ROWS", batch)
    array = zarrlite.create_array(place, shape=DATA.shape, chunks=(16, 16), dtype="u2", codecs=codecs, fill_value=7)
    array[:50, 3:] = DATA[:50, 3:]
    expected = np.full_like(DATA, 7)
    expected[:50, 3:] = DATA[:50, 3:]
    for index in (np.s_[...], np.s_[::3, 5:60:7], np.s_[10:40, 20], np.s_[:, 63:]):
        np.testing.assert_array_equal(array[index], expected[index])
    np.testing.assert_array_equal(array.oindex[[1, 33, 60], [0, 20, 40]], expected[np.ix_([1, 33, 60], [0, 20, 40])])


@pytest.mark.parametrize("codecs", [SMALL, [ShardingIndexed((4, 8), SMALL)]], ids=["chunks", "shards"])
def test_damage_in_a_batch_names_the_chunk_that_it_is_in(codecs: Any) -> None:
    store = MemoryStore()
    array = zarrlite.create_array(store, shape=DATA.shape, chunks=(16, 16), dtype="u2", codecs=codecs)
    array[...] = DATA
    value = bytearray(store.get("c/2/1") or b"")
    value[20] ^= 1
    store.set("c/2/1", bytes(value))
    with pytest.raises(ChecksumError, match="chunk c/2/1"):
        array[...]
    store.set("c/2/1", b"")
    with pytest.raises(DataError, match="chunk c/2/1"):
        array[...]


class Apart(LocalStore):
    """By the plain way only."""

    def fetch(self, keys: Sequence[str], memory: memoryview, room: int) -> list[None]:
        return [None] * len(keys)


class Scattered(LocalStore):
    """In the memory of the reader, but with gaps, or from the last to the first, or equal ones in one place."""

    way = "gaps"

    def fetch(self, keys: Sequence[str], memory: memoryview, room: int) -> list[Any]:
        found: list[Any] = []
        for i, key in enumerate(keys):
            value = self.get(key) or b""
            start = {"gaps": i * room, "backwards": (len(keys) - 1 - i) * len(value), "equal": 0}[self.way]
            memory[start : start + len(value)] = value
            found.append(memory[start : start + len(value)])
        return found


@pytest.mark.parametrize("chain", [[Packbits("first_byte"), Crc32c()], [Bytes(), Zstd(), Crc32c()]], ids=["+1", "zstd"])
@pytest.mark.parametrize("way", ["gaps", "backwards"])
@pytest.mark.parametrize("length", [4, 40_000])
def test_what_is_decoded_never_lies_on_what_is_fetched(
    chain: Any, way: str, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = np.random.default_rng(3).integers(0, 200, 100 * length).astype("u1")
    zarrlite.create_array(tmp_path, data=data, chunks=length, codecs=chain)
    monkeypatch.setattr(Scattered, "way", way)
    np.testing.assert_array_equal(zarrlite.open_array(Scattered(tmp_path), mode="r")[...], data)


def test_whatever_is_raised_in_the_quick_way_the_plain_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = []

    def decode_into(self: Zstd, data: Any, memory: memoryview) -> bool:
        raised.append(len(data))
        raise KeyError("never mind")

    data = np.random.default_rng(3).integers(0, 200, (4, 40_000)).astype("u1")
    array = zarrlite.create_array(tmp_path, data=data, chunks=(1, 40_000), codecs=SMALL)
    monkeypatch.setattr(Zstd, "decode_into", decode_into)
    np.testing.assert_array_equal(array[...], data)
    assert len(raised) == 4
    np.testing.assert_array_equal(array[...], data)
    (tmp_path / "c/2/0").write_bytes(b"damage")
    with pytest.raises(ChecksumError, match="c/2/0"):
        array[...]


@pytest.mark.parametrize("way", ["gaps", "backwards", "equal"])
def test_what_is_fetched_may_lie_anywhere(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.tile(DATA[:16, :16], (4, 4)) if way == "equal" else DATA
    zarrlite.create_array(tmp_path, data=data, chunks=(16, 16), codecs=[Bytes()])
    monkeypatch.setattr(Scattered, "way", way)
    np.testing.assert_array_equal(zarrlite.open_array(Scattered(tmp_path), mode="r")[...], data)


@pytest.mark.parametrize("codecs", [[Bytes()], [Bytes("big")], SMALL], ids=["raw", "big endian", "zstd"])
def test_small_chunks_that_are_fetched_are_read_as_any_other(codecs: Any, tmp_path: Path) -> None:
    order = np.arange(64)
    order[:16] = order[:16][::-1]  # all of a chunk, in another order
    selections = [np.s_[...], np.s_[3:40, :], np.s_[:, 20], np.s_[::3, 5:60:7], (order, order), ([1, 33], [60, 2])]
    zarrlite.create_array(tmp_path, data=DATA, chunks=(16, 16), codecs=codecs, fill_value=7)
    quick, plain = (zarrlite.open_array(store, mode="r") for store in (LocalStore(tmp_path), Apart(tmp_path)))
    chunk = tmp_path / "c/2/1"
    whole = chunk.read_bytes()
    for change in ("none", "missing", "short", "long", "empty", "a directory", "a link", "a link that leads out"):
        chunk.unlink(missing_ok=True)
        if change == "a directory":
            chunk.mkdir()
        elif change.startswith("a link"):
            elsewhere = (tmp_path if change == "a link" else tmp_path.parent) / "elsewhere"
            elsewhere.write_bytes(whole)
            chunk.symlink_to(elsewhere)
        elif change != "missing":
            chunk.write_bytes({"none": whole, "short": whole[:-1], "long": whole + b"x", "empty": b""}[change])
        for selection in selections:
            by = "oindex" if isinstance(selection, tuple) and not isinstance(selection[0], slice) else None
            found = [_outcome(getattr(array, by) if by else array, selection) for array in (quick, plain)]
            assert found[0] == found[1], (change, selection)
        strict = zarrlite.open_array(tmp_path, mode="r", missing_chunks="error")
        if change in ("missing", "a directory"):
            with pytest.raises(MissingChunkError, match="c/2/1"):
                strict[...]
        if change == "a directory":
            chunk.rmdir()


def _outcome(array: Any, selection: Any) -> Any:
    try:
        return array[selection].tolist()
    except ZarrliteError as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "index", [("end", [Bytes(), "crc32c"]), ("start", [Bytes("big"), "crc32c"]), ("end", [Bytes()])]
)
@pytest.mark.parametrize("chain", [[Bytes()], [Bytes("big")], SMALL], ids=["raw", "big endian", "zstd"])
def test_an_inner_chunk_in_one_step_is_read_as_any_other(chain: Any, index: Any, tmp_path: Path) -> None:
    location, index_codecs = index
    data = DATA.copy()
    data[8:16, :16] = 7  # an inner chunk that is absent
    codecs = [ShardingIndexed((8, 16), chain, index_codecs, location)]
    zarrlite.create_array(tmp_path, data=data, chunks=(32, 32), codecs=codecs, fill_value=7)
    array = zarrlite.open_array(tmp_path, mode="r")
    shard = tmp_path / "c/0/0"
    whole = shard.read_bytes()
    first = len(whole) // 2  # within a chunk of the middle, if the index is not there
    changes = {
        "none": whole,
        "cut": whole[:-1],
        "longer": whole + bytes(20),
        "index": whole[:40] + b"\1\2\3" + whole[43:] if location == "start" else whole[:-40] + b"\1\2\3" + whole[-37:],
        "chunk": whole[:first] + bytes(9) + whole[first + 9 :],
        "empty": b"",
    }
    for change, value in changes.items():
        shard.write_bytes(value)
        for i, j in np.ndindex(4, 2):
            rows, columns = slice(8 * i, 8 * i + 8), slice(16 * j, 16 * j + 16)
            plain = Selection([Span(8 * i, 8), Span(16 * j, 16)])
            source = ShardSource(array._chunks.pipeline((0, 0)).serializer, array._chunks.store.source("c/0/0"))
            try:
                expected: Any = source.read(plain).tolist()  # type: ignore[union-attr]
            except DataError as error:
                expected = type(error), error.message
            finally:
                source.source.close()
            try:
                found: Any = array[rows, columns].tolist()
            except DataError as error:
                found = type(error), error.message
            assert found == expected, (change, i, j)
            if change == "none":
                assert found == data[rows, columns].tolist()
    shard.unlink()
    assert array[:8, :16].tolist() == [[7] * 16] * 8


@pytest.mark.parametrize("chain", [SMALL, [Bytes("big"), Crc32c()], [Bytes(), Zstd()]], ids=["all", "crc32c", "zstd"])
def test_absent_and_damaged_inner_chunks_in_a_batch(chain: Any) -> None:
    store = MemoryStore()
    data = DATA + 1
    data[8:12, 8:16] = data[60:, 56:] = data[:4] = 7
    codecs = [ShardingIndexed((4, 8), chain)]
    array = zarrlite.create_array(store, data=data, chunks=(64, 64), codecs=codecs, fill_value=7)
    np.testing.assert_array_equal(array[...], data)
    shard = bytearray(store.get("c/0/0") or b"")
    entry = len(shard) - 4 - 16 * 128 + 16 * (5 * 8 + 3)
    assert struct.unpack_from("<2Q", shard, len(shard) - 4 - 16 * 128) == (2**64 - 1,) * 2
    start, length = struct.unpack_from("<2Q", shard, entry)
    shard[start : start + length] = bytes(length)
    store.set("c/0/0", bytes(shard))
    with pytest.raises(DataError, match=r"inner chunk \(5, 3\)") as raised:
        array[...]
    assert raised.value.codec == chain[-1].name


@pytest.mark.parametrize(
    "chain", [SMALL, [Bytes("big"), Crc32c()], [Packbits(), Crc32c()]], ids=["zstd", "crc32c", "packbits"]
)
@given(st.lists(st.lists(st.sampled_from([0, 7, 300]), min_size=3, max_size=3), min_size=1, max_size=5))
def test_writing_many_is_writing_each(chain: Any, values: list[list[int]]) -> None:
    inner = pipelines.Pipeline(chain, pipelines.ArraySpec((3,), registry.data_types.coerce("uint16"), 7))
    arrays = np.array(values, "u2")
    each = [inner.write(array) for array in arrays]
    assert [join(chunk) for chunk in inner.write_many(arrays, [True] * len(values))] == each
    likely = [value[0] == 7 for value in values]
    assert [join(chunk) for chunk in inner.write_many(arrays, likely)] == each


@pytest.mark.parametrize("chain", [SMALL, [Bytes("big"), Zstd()], [Bytes()], [Bytes("big")]])
@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.parametrize("most", [2**20, 3 * 512])
def test_chunks_written_together_are_those_written_one_by_one(
    chain: Any, place: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "zarrlite.chunks.many.BATCH", most
    )  # several rows, or a part of one, or the end of one and the next
    monkeypatch.setattr("zarrlite.chunks.many.WRITE_BATCH", most)
    data = DATA + 1
    data[16:32, :16] = data[48:, 48:] = 7  # nothing but the fill value
    stores: Any = [MemoryStore(), MemoryStore()] if place == "memory" else [LocalStore(tmp_path / n) for n in "ab"]
    together, each = (
        zarrlite.create_array(store, shape=(70, 80), dtype="u2", chunks=(16, 16), codecs=chain, fill_value=7)
        for store in stores
    )
    for values in (data, data[::-1], np.full_like(data, 7), data[:, ::-1].astype("f8")):
        together[:64, 16:] = values
        for i, j in np.ndindex(4, 4):
            part = values[16 * i : 16 * i + 16, 16 * j : 16 * j + 16]
            each[16 * i : 16 * i + 16, 16 * j + 16 : 16 * j + 32] = part
        assert list(stores[0].list()) == list(stores[1].list())
        assert all(stores[0].get(key) == stores[1].get(key) for key in stores[0].list())
        np.testing.assert_array_equal(together[:64, 16:], values)


SLICES = st.tuples(*[st.slices(40).filter(lambda s: (s.step or 1) > 0)] * 2)


@pytest.mark.parametrize("chain", [SMALL, [Bytes()], [Bytes("big")]], ids=["zstd", "raw", "big endian"])
@pytest.mark.parametrize("place", ["memory", "disk"])
@given(st.lists(SLICES, min_size=1, max_size=4), SLICES, st.sampled_from([2**20, 700]))
def test_many_at_once_is_one_after_the_other(chain: Any, place: str, writes: Any, read: Any, most: int) -> None:
    data = np.arange(1, 1601, dtype="u2").reshape(40, 40)
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr("zarrlite.chunks.many.BATCH", most)
        patch.setattr("zarrlite.chunks.many.READ_BATCH", most)
        patch.setattr("zarrlite.chunks.many.WRITE_BATCH", most)
        found = []
        for name, kind in (("many", Chunks), ("each", Chunks)):
            patch.setattr("zarrlite.nodes.array.Chunks", kind)
            store = MemoryStore() if place == "memory" else LocalStore(f"{root}/{name}")
            array = zarrlite.create_array(store, shape=(40, 40), dtype="u2", chunks=(7, 10), codecs=chain)
            for n, selection in enumerate(writes):
                array[selection] = data[selection] * (n % 3)  # now and then nothing but the fill value
            assert type(array._chunks) is kind
            found.append((array[read].tolist(), {key: bytes(store.get(key) or b"") for key in store.list()}))
    assert found[0] == found[1]


@pytest.mark.parametrize("chain", [SMALL, [Bytes()]], ids=["zstd", "raw"])
def test_chunks_of_one_byte_take_little_memory(chain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    take = scratch.acquire
    monkeypatch.setattr(scratch, "take", lambda size: taken.append(size) or take(size))
    data = np.arange(3000, dtype="u2").astype("u1")
    array = zarrlite.create_array("memory://", data=data, chunks=1, codecs=chain)
    np.testing.assert_array_equal(array[...], data)
    assert 0 < max(taken) <= scratch.MOST


@pytest.mark.parametrize("missing", [[(1, 0), (1, 1)], [(1, 0), (1, 1), (2, 1)], [(0, 1)], [(0, 0), (1, 1)]])
def test_chunks_with_others_missing_between_them_keep_their_places(missing: Any, tmp_path: Path) -> None:
    data = np.arange(1, 25, dtype="u2").reshape(6, 4)
    array = zarrlite.create_array(tmp_path, data=data, chunks=(2, 2), codecs=[Bytes()])
    for i, j in missing:
        (tmp_path / f"c/{i}/{j}").unlink()
        data[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = 0
    np.testing.assert_array_equal(array[...], data)
    np.testing.assert_array_equal(array[:, :3], data[:, :3])


@pytest.mark.parametrize("chain", [SMALL, [Bytes()]], ids=["zstd", "raw"])
def test_part_of_a_chunk_is_not_taken_for_a_whole_one_of_another_shape(chain: Any) -> None:
    starts = [0, 4, 12, 16, 24]

    @zarrlite.register
    @dataclass(frozen=True)
    class Uneven(ChunkGrid):
        """Chunks of 4, 8, 4 and 8 elements."""

        name = "example.uneven"

        def check(self, shape: Any) -> None:
            pass

        def grid_shape(self, shape: Any) -> Any:
            return (4,)

        def chunk_shape(self, coords: Any) -> Any:
            return (starts[coords[0] + 1] - starts[coords[0]],)

        def origin(self, coords: Any) -> Any:
            return (starts[coords[0]],)

        def locate(self, coords: Any) -> Any:
            chunk = bisect.bisect_right(starts, coords[0]) - 1
            return (chunk,), (coords[0] - starts[chunk],)

        def project(self, selection: Selection) -> Any:
            (first,), (length,) = selection.starts, selection.shape
            for chunk, (start, stop) in enumerate(itertools.pairwise(starts)):
                low, high = max(start, first), min(stop, first + length)
                if low < high:
                    place = Selection.box((low - first,), (high - low,))
                    yield (chunk,), Selection.box((low - start,), (high - low,)), place

    store = MemoryStore()
    zarrlite.create_array(store, shape=24, dtype="u2", chunks=24, codecs=chain)
    document = json.loads(bytes(store.get("zarr.json") or b""))
    store.set("zarr.json", json.dumps(document | {"chunk_grid": {"name": "example.uneven"}}).encode())
    array, expected = zarrlite.open_array(store), np.arange(1, 25)
    array[:] = expected
    array[:8] = expected[:8] = 99 + np.arange(8)  # all of a chunk, and as much of a longer one
    np.testing.assert_array_equal(array[:], expected)


@pytest.mark.parametrize("order", ["row-major", "morton"])
def test_a_codec_may_hand_on_what_it_gets(order: str) -> None:
    """Although the memory of a batch is used again for the next one."""

    @zarrlite.register
    @dataclass(frozen=True)
    class Same(BytesBytesCodec):
        """Does nothing, to many values at once."""

        name = "example.same"

        def encode(self, data: Any) -> Any:
            return data

        def decode(self, data: Any, limit: int) -> Any:
            return data

        def decode_many(self, values: Any, limit: int) -> Any:
            return values

    data = np.arange(2**20, dtype="u4").reshape(1024, 1024)  # several batches, no two of them alike
    codecs = [ShardingIndexed((32, 32), [Bytes(), Same()], order=order)]
    array = zarrlite.create_array(MemoryStore(), data=data, chunks=data.shape, codecs=codecs)
    np.testing.assert_array_equal(array[...], data)


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("order", ["row-major", "column-major", "morton"])
def test_windows_read_little_more_than_the_shard_has(
    tmp_path: Path, order: str, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "BATCH", 2**9)  # eight of 128 chunks
    monkeypatch.setattr("zarrlite.shards.reading.BATCH", 2**9)
    codecs = [ShardingIndexed((4, 8), SMALL, order=order, index_location=location)]
    data = DATA + 1
    data[8:16] = data[40, 8:32] = 0
    array = zarrlite.create_array(tmp_path, data=data, chunks=(64, 64), codecs=codecs)
    asked: list[int] = []
    fill = files.fill

    def counted(memory: Any, fd: int, start: int, stop: int) -> Any:
        asked.append(stop - start)
        return fill(memory, fd, start, stop)

    monkeypatch.setattr(files, "fill", counted)
    np.testing.assert_array_equal(array[...], data)
    assert len(asked) == (14 if order == "row-major" else 1)
    assert sum(asked) <= (tmp_path / "c/0/0").stat().st_size
    monkeypatch.setattr(files, "fill", lambda *given: fill(*given)[: (given[3] - given[2]) // 2])  # cut meanwhile
    with pytest.raises(DataError, match="chunk c/0/0"):
        array[...]


def test_a_batch_of_chunks_that_are_all_missing_is_asked_for_once() -> None:
    asked: list[str] = []

    class Asked(MemoryStore):
        def get(self, key: str, byte_range: Any = ALL) -> Any:
            asked.append(key)
            return super().get(key, byte_range)

    array = zarrlite.create_array(Asked(), shape=(64, 64), chunks=(16, 16), dtype="u2", codecs=SMALL, fill_value=7)
    asked.clear()
    assert (array[...] == 7).all()
    assert sorted(asked) == sorted(f"c/{i}/{j}" for i in range(4) for j in range(4))


@pytest.mark.parametrize("location", ["start", "end"])
def test_raw_shards_read_by_rows_are_checked_as_ever(tmp_path: Path, location: str) -> None:
    codecs = [ShardingIndexed((4, 8), [Bytes()], index_location=location)]
    array = zarrlite.create_array(tmp_path, data=DATA, chunks=(64, 64), codecs=codecs)
    path = tmp_path / "c/0/0"
    value = path.read_bytes()
    index = 16 * 128 + 4
    cut = value[: len(value) - 512] if location == "start" else value[512:]
    flipped = bytearray(value)
    flipped[8 if location == "start" else len(value) - index + 8] ^= 1
    for damaged in (cut, bytes(flipped), b""):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="chunk c/0/0"):
            array[...]
    path.unlink()
    assert not array[...].any()


def test_a_chunk_that_is_missing_in_a_batch_is_named() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, data=DATA + 1, chunks=(16, 16), codecs=SMALL)
    store.erase("c/1/3")
    assert (zarrlite.open_array(store)[...] == 0).sum() == 256
    with pytest.raises(MissingChunkError, match="chunk c/1/3"):
        zarrlite.open_array(store, missing_chunks="error")[...]


def test_a_batch_that_cannot_be_stored_leaves_what_was_there(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, data=DATA + 1, chunks=(16, 16), codecs=SMALL)
    (tmp_path / "c/2/1").unlink()
    (tmp_path / "c/2/1").mkdir()
    with pytest.raises(ZarrliteError, match="'c/2/1' cannot be written: it is a prefix of other keys"):
        array[...] = DATA + 2
    found = array[...]
    assert (found[32:48, 16:32] == 0).all()
    found[32:48, 16:32] = DATA[32:48, 16:32] + 1
    assert ((found == DATA + 1) | (found == DATA + 2)).all()
    assert not [path for path in tmp_path.rglob("*") if "tmp" in path.name]


@given(
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
    st.dictionaries(st.integers(0, 5), st.none() | st.binary(max_size=4), min_size=1),
    st.sampled_from(["start", "end"]),
    st.sampled_from([0, 5]),
)
def test_a_shard_in_pieces_is_the_shard_that_is_made_anew(
    lengths: list[int], changes: dict[int, bytes | None], location: str, header: int
) -> None:
    codec = ShardingIndexed((1,), [Bytes()], index_location=location)
    spec = pipelines.ArraySpec((6,), registry.data_types.coerce("uint32"), 0)
    form = codec.bind(spec).format  # type: ignore[attr-defined]
    writer = ShardWriter(form, Writing(header=header if location == "end" else 0))
    chunks: list[Any] = [None if n == 3 else bytes([65 + i]) * n for i, n in enumerate(lengths)]
    old = writer.join(chunks)
    view = memoryview(old)
    pieces = writer.replace(view, writer.form.index_of(view), changes)
    for i, chunk in changes.items():
        chunks[i] = chunk
    if pieces is None:
        assert chunks == [None] * 6
    else:
        assert bytes(join(pieces)) == bytes(writer.join(chunks, old))


def test_a_shard_with_a_gap_is_not_taken_to_pieces() -> None:
    codec = ShardingIndexed((1,), [Bytes()])
    form = codec.bind(pipelines.ArraySpec((2,), registry.data_types.coerce("uint8"), 0)).format  # type: ignore[attr-defined]
    writer = ShardWriter(form, Writing())
    index = struct.pack("<4Q", 0, 1, 2, 1)
    shard = b"a.b" + index + Crc32c().encode(index)[-4:]
    view = memoryview(shard)
    assert writer.replace(view, writer.form.index_of(view), {0: b"c"}) is None


def test_new_files_of_one_directory_are_named_under_one_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    store = LocalStore(tmp_path)
    locked: list[int] = []
    flock = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lambda fd, how: (locked.append(how), flock(fd, how)))
    store.set_many((f"c/0/{n}", b"value") for n in range(8))
    assert [how for how in locked if how & fcntl.LOCK_EX] == [fcntl.LOCK_EX]
    store.set_many((f"c/0/{n}", b"new") for n in range(4, 10))
    assert [store.get(f"c/0/{n}") for n in range(10)] == [b"value"] * 4 + [b"new"] * 6


def test_what_is_lent_to_a_reader_is_its_own_until_it_has_done(tmp_path: Path) -> None:
    """A codec may read another array of the same thread while it decodes."""
    other = zarrlite.create_array(tmp_path / "other", data=np.full(4096, 255, "u1"), chunks=4096, codecs=[Bytes()])

    @zarrlite.register
    @dataclass(frozen=True)
    class Nosy(BytesBytesCodec):
        """Looks elsewhere first."""

        name = "example.nosy"

        def encode(self, data: Any) -> bytes:
            return bytes(data)

        def decode(self, data: Any, limit: int) -> Any:
            assert (other[...] == 255).all()
            return data

    data = np.arange(4096, dtype="u1") % 251
    codecs = [Bytes(), Nosy(), Crc32c()]
    array = zarrlite.create_array(tmp_path / "array", data=data, chunks=4096, codecs=codecs)
    for _ in range(3):
        np.testing.assert_array_equal(array[...], data)
