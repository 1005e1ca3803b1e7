"""Batches: reading or writing many chunks together has the same result as doing so one by one."""

from __future__ import annotations

import bisect
import itertools
import json
import struct
import tempfile
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from zarrlite.buffers import scratch
from zarrlite.buffers.pieces import join
from zarrlite.buffers.ranges import ALL
from zarrlite.chunk_grids import ChunkGrid
from zarrlite.codecs import (
    ArraySpec,
    Bytes,
    BytesBytesCodec,
    Crc32c,
    Gzip,
    Packbits,
    Pad,
    ShardingIndexed,
    Transpose,
    Zstd,
)
from zarrlite.codecs.zstd import _is_one_frame
from zarrlite.errors import ChecksumError, DataError, MissingChunkError, TruncatedError, ZarrliteError
from zarrlite.extensions import registry
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.pipeline.reading import FailedPart, read_from_sources
from zarrlite.selections.selection import Selection, Span
from zarrlite.shards.format import boxes
from zarrlite.shards.writing import ShardWriter, Writing
from zarrlite.stores import LocalStore, MemoryStore
from zarrlite.stores.base import IN_MEMORY
from zarrlite.stores.open_file import OpenFile
from zarrlite.tuning import MAX_SCRATCH_BYTES

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
def test_a_single_frame_is_distinguished_from_other_values(data: bytes) -> None:
    assert _is_one_frame(data)
    assert not _is_one_frame(data + b"\0")
    assert not _is_one_frame(data[:-1])
    assert not _is_one_frame(data + data)
    assert not any(_is_one_frame(data[:n]) for n in range(min(len(data), 300)))


def error_of(do: Any) -> tuple[type, str] | None:
    try:
        do()
    except Exception as error:
        return type(error), str(error)
    return None


CHAINS: dict[str, list[Any]] = {
    "zstd": [Bytes(), Zstd()],
    "crc32c": [Bytes("big"), Crc32c()],
    "zstd and crc32c": [Bytes("big"), Zstd(1), Crc32c()],
    "gzip": [Bytes(), Gzip()],
    "crc32c and pad": [Bytes(), Crc32c(), Pad("start", 3)],
    "transposed": [Transpose((1, 0)), Bytes(), Zstd()],
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("dtype", ["uint16", "bool"])
@given(st.data())
def test_decoding_many_chunks_equals_decoding_each(chain: list[Any], dtype: str, data: st.DataObject) -> None:
    bound = Pipeline(chain, ArraySpec((2, 4), registry.data_types.coerce(dtype), 0))
    elements = st.lists(st.sampled_from([0, 1]), min_size=8, max_size=8)
    arrays = [np.array(e, dtype).reshape(2, 4) for e in data.draw(st.lists(elements, min_size=1, max_size=6))]
    encoded = [bytes(bound.encode_always(array)) for array in arrays]
    damage = data.draw(st.sampled_from(["none", "cut", "longer", "empty", "twice", "flipped", "invalid"]))
    victim = data.draw(st.integers(0, len(encoded) - 1))
    value = encoded[victim]
    invalid = Pipeline(chain, ArraySpec((2, 4), registry.data_types.coerce(f"uint{8 * bound.spec.dtype.itemsize}"), 0))
    encoded[victim] = {
        "none": value,
        "cut": value[:-1],
        "longer": value + b"\0",
        "empty": b"",
        "twice": value + value,
        "flipped": value[:-1] + bytes([value[-1] ^ 255]),
        "invalid": bytes(invalid.encode_always(np.full((2, 4), 2, invalid.spec.dtype))),
    }[damage]
    values = [memoryview(bytearray(value)) for value in encoded]  # writable, like values in scratch memory
    errors = [error_of(lambda value=value: bound.decode(value)) for value in encoded]
    together = bound.decode_many(values, memoryview(bytearray(len(values) * 16)))
    if any(errors):
        assert together is None
    elif together is not None:
        assert together.tolist() == [bound.decode(value).tolist() for value in encoded]
    if damage == "none":
        assert (together is None) == ("gzip" in [codec.name for codec in chain])


@st.composite
def frames_in_a_row(draw: st.DrawFn) -> tuple[int, list[bytes]]:
    """Generate zstd frames. Most of them decode to the same size, and some are damaged."""
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
def test_zstd_decodes_frames_together_only_if_each_is_a_single_sound_frame(frames: tuple[int, list[bytes]]) -> None:
    size, values = frames
    decoded: list[bytes] = []
    sound = error_of(lambda: decoded.extend(zstandard.ZstdDecompressor().decompress(value) for value in values)) is None
    expected = sound and all(len(value) == size for value in decoded) and all(map(_is_one_frame, values))
    memory = memoryview(bytearray(size * len(values)))
    assert Zstd().decode_into(values, memory, size) is expected
    assert not expected or bytes(memory) == b"".join(decoded)


@given(st.lists(st.integers(1, 5), max_size=4), st.integers(1, 200))
def test_boxes_cover_a_grid_in_row_major_order(grid: list[int], most: int) -> None:
    numbers = np.arange(np.prod(grid, dtype=int)).reshape(grid)
    found = list(boxes(tuple(grid), most))
    assert all(numbers[(*box, ...)].ravel().tolist() == list(range(numbers.size))[part] for box, part in found)
    assert [n for _, part in found for n in range(part.start, part.stop)] == list(range(numbers.size))
    assert max(part.stop - part.start for _, part in found) <= most
    assert len(found) == 1 or most < numbers.size


def test_a_bomb_among_many_is_refused_before_memory_is_allocated() -> None:
    bound = Pipeline([Bytes(), Zstd()], ArraySpec((100,), registry.data_types.coerce("uint8"), 0))
    sound, bomb = Zstd().encode(b"x" * 100), Zstd().encode(bytes(2**30))
    understated = bytearray(sound)
    understated[5] = 50  # the content size in the frame header: 50 instead of 100
    for damaged in (bomb, bytes(understated)):
        tracemalloc.start()
        assert bound.decode_many([sound, damaged], memoryview(bytearray(200))) is None
        error = error_of(lambda damaged=damaged: bound.decode(damaged))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert error is not None
        assert issubclass(error[0], DataError)
        assert peak < 2**24
    assert error_of(lambda: bound.decode(bomb)) == (
        TruncatedError,
        "codec zstd: claims to decompress to 1073741824 bytes, but at most 100 are allowed",
    )


def set_batch_bytes(patch: pytest.MonkeyPatch, size: int) -> None:
    """Set the batch size to `size` bytes. A batch contains at least one chunk."""
    for module, names in {
        "pipeline.pipeline": ["BATCH_BYTES"],
        "chunks.chunks": ["BATCH_BYTES", "READ_BATCH_BYTES", "WRITE_BATCH_BYTES"],
        "shards.reading": ["BATCH_BYTES", "COPY_BLOCK_BYTES"],
    }.items():
        for name in names:
            patch.setattr(f"zarrlite.{module}.{name}", size)


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
    ids=["raw", "zstd", "zstd and pad", "shards", "raw shards", "raw shards, index first"],
)
def test_arrays_are_equal_for_batches_of_any_size(
    place: Any, codecs: Any, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_batch_bytes(monkeypatch, batch)
    array = zarrlite.create_array(place, shape=DATA.shape, chunks=(16, 16), dtype="u2", codecs=codecs, fill_value=7)
    array[:50, 3:] = DATA[:50, 3:]
    expected = np.full_like(DATA, 7)
    expected[:50, 3:] = DATA[:50, 3:]
    for index in (np.s_[...], np.s_[::3, 5:60:7], np.s_[10:40, 20], np.s_[:, 63:]):
        np.testing.assert_array_equal(array[index], expected[index])
    np.testing.assert_array_equal(array.oindex[[1, 33, 60], [0, 20, 40]], expected[np.ix_([1, 33, 60], [0, 20, 40])])


@pytest.mark.parametrize("codecs", [SMALL, [ShardingIndexed((4, 8), SMALL)]], ids=["chunks", "shards"])
def test_damage_in_a_batch_names_its_chunk(codecs: Any) -> None:
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


class OneByOneStore(LocalStore):
    """A store whose values are read one by one, each into new memory."""

    def get_partial_values(self, requests: Any, memory: memoryview | None = None) -> list[Any]:
        return [LocalStore.get_partial_values(self, [request])[0] for request in requests]


class ShuffledStore(LocalStore):
    """A store that returns values in its own memory, or in the requested memory in reverse order or with gaps."""

    way = "gaps"

    def get_partial_values(self, requests: Any, memory: memoryview | None = None) -> list[Any]:
        found = super().get_partial_values(requests)
        if memory is None or None in found or self.way == "elsewhere":
            return found
        gap = (len(memory) - sum(map(len, found))) // len(found) if self.way == "gaps" else 0
        if gap < 0:
            return found
        answers, start = [], 0
        for value in found if self.way == "gaps" else found[::-1]:
            memory[start : start + len(value)] = value
            answers.append(memory[start : start + len(value)])
            start += len(value) + gap
        return answers if self.way == "gaps" else answers[::-1]


@pytest.mark.parametrize(
    "chain",
    [[Packbits("first_byte"), Crc32c()], SMALL, [Bytes()], [Bytes("big")]],
    ids=["packbits", "zstd", "raw", "big"],
)
@pytest.mark.parametrize("way", ["gaps", "backwards", "elsewhere"])
@pytest.mark.parametrize("length", [4, 4000, 40_000])
def test_a_store_may_return_the_values_of_a_batch_in_any_memory(
    chain: Any, way: str, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = np.random.default_rng(3).integers(0, 200, 100 * length).astype("u1")
    zarrlite.create_array(tmp_path, data=data, chunks=length, codecs=chain)
    monkeypatch.setattr(ShuffledStore, "way", way)
    np.testing.assert_array_equal(zarrlite.open_array(ShuffledStore(tmp_path), mode="r")[...], data)


@pytest.mark.parametrize("codecs", [[Bytes()], [Bytes("big")], SMALL], ids=["raw", "big endian", "zstd"])
def test_chunks_read_together_equal_chunks_read_one_by_one(codecs: Any, tmp_path: Path) -> None:
    order = np.arange(64)
    order[:16] = order[:16][::-1]  # every index of the first chunk, in reverse order
    selections = [np.s_[...], np.s_[3:40, :], np.s_[:, 20], np.s_[::3, 5:60:7], (order, order), ([1, 33], [60, 2])]
    zarrlite.create_array(tmp_path, data=DATA, chunks=(16, 16), codecs=codecs, fill_value=7)
    arrays = [zarrlite.open_array(store, mode="r") for store in (LocalStore(tmp_path), OneByOneStore(tmp_path))]
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
            found = [_outcome(getattr(array, by) if by else array, selection) for array in arrays]
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
def test_reading_one_inner_chunk_equals_reading_it_with_others(chain: Any, index: Any, tmp_path: Path) -> None:
    location, index_codecs = index
    data = DATA.copy()
    data[8:16, :16] = 7  # an inner chunk with only the fill value, which is not stored
    codecs = [ShardingIndexed((8, 16), chain, index_codecs, location)]
    zarrlite.create_array(tmp_path, data=data, chunks=(32, 32), codecs=codecs, fill_value=7)
    array = zarrlite.open_array(tmp_path, mode="r")
    shard = tmp_path / "c/0/0"
    whole = shard.read_bytes()
    first = len(whole) // 2  # the middle of the shard is in a chunk, or in the index if the chunks are small
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
            selection = Selection([Span(8 * i, 8), Span(16 * j, 16)])
            reader = array._chunks.pipeline((0, 0)).serializer
            source, target = array._chunks.store.source("c/0/0"), np.empty((8, 16), "u2")
            try:
                read_from_sources(reader._read_several, [source], [(selection, target)], IN_MEMORY)
                expected: Any = target.tolist()
            except FailedPart as failed:
                expected = type(failed.error), failed.error.message  # type: ignore[attr-defined]
            finally:
                source.close()
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
def test_a_batch_fills_absent_inner_chunks_and_names_damaged_ones(chain: Any) -> None:
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


@pytest.mark.parametrize("chain", [SMALL, [Bytes("big"), Crc32c()], [Bytes()], [Bytes(), Crc32c(), Pad("end", 2)]])
@given(st.lists(st.lists(st.sampled_from([0, 7, 300]), min_size=3, max_size=3), min_size=1, max_size=5))
def test_encoding_many_chunks_equals_encoding_each(chain: Any, values: list[list[int]]) -> None:
    inner = Pipeline(chain, ArraySpec((3,), registry.data_types.coerce("uint16"), 7))
    arrays = np.array(values, "u2")
    each = [join(inner.encode(array)) for array in arrays]
    assert [join(chunk) for chunk in inner.encode_many(arrays, [True] * len(values))] == each
    likely = [value[0] == 7 for value in values]
    assert [join(chunk) for chunk in inner.encode_many(arrays, likely)] == each


@pytest.mark.parametrize("chain", [SMALL, [Bytes("big"), Zstd()], [Bytes()], [Bytes("big")]])
@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.parametrize("most", [2**20, 3 * 512])
def test_chunks_written_together_equal_chunks_written_one_by_one(
    chain: Any, place: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_batch_bytes(monkeypatch, most)  # a batch contains several rows of chunks, or only 3 chunks
    data = DATA + 1
    data[16:32, :16] = data[48:, 48:] = 7  # chunks with only the fill value
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
def test_writes_and_reads_in_batches_equal_those_chunk_by_chunk(
    chain: Any, place: str, writes: Any, read: Any, most: int
) -> None:
    data = np.arange(1, 1601, dtype="u2").reshape(40, 40)
    with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        found = []
        for name, batch in (("batches", most), ("each", 1)):
            set_batch_bytes(patch, batch)
            store = MemoryStore() if place == "memory" else LocalStore(f"{root}/{name}")
            array = zarrlite.create_array(store, shape=(40, 40), dtype="u2", chunks=(7, 10), codecs=chain)
            for n, selection in enumerate(writes):
                array[selection] = data[selection] * (n % 3)  # every third write contains only the fill value
            found.append((array[read].tolist(), {key: bytes(store.get(key) or b"") for key in store.list()}))
    assert found[0] == found[1]


def test_batches_of_tiny_chunks_take_little_scratch_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    acquire = scratch.acquire
    monkeypatch.setattr(scratch, "acquire", lambda size: sizes.append(size) or acquire(size))
    data = np.arange(3000, dtype="u2").astype("u1")
    array = zarrlite.create_array("memory://", data=data, chunks=1, codecs=SMALL)
    np.testing.assert_array_equal(array[...], data)
    assert 0 < max(sizes) <= MAX_SCRATCH_BYTES


@pytest.mark.parametrize("missing", [[(1, 0), (1, 1)], [(1, 0), (1, 1), (2, 1)], [(0, 1)], [(0, 0), (1, 1)]])
def test_missing_chunks_do_not_shift_the_others(missing: Any, tmp_path: Path) -> None:
    data = np.arange(1, 25, dtype="u2").reshape(6, 4)
    array = zarrlite.create_array(tmp_path, data=data, chunks=(2, 2), codecs=[Bytes()])
    for i, j in missing:
        (tmp_path / f"c/{i}/{j}").unlink()
        data[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = 0
    np.testing.assert_array_equal(array[...], data)
    np.testing.assert_array_equal(array[:, :3], data[:, :3])


@pytest.mark.parametrize("chain", [SMALL, [Bytes()]], ids=["zstd", "raw"])
def test_chunks_of_different_shapes_are_read_and_written(chain: Any) -> None:
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
    array[:8] = expected[:8] = 99 + np.arange(8)  # all of the first chunk, and half of the second
    np.testing.assert_array_equal(array[:], expected)


@pytest.mark.parametrize("order", ["row-major", "morton"])
def test_a_codec_may_return_its_input(order: str) -> None:
    """The input may be in scratch memory that the next batch overwrites; results must not share that memory."""

    @zarrlite.register
    @dataclass(frozen=True)
    class Same(BytesBytesCodec):
        """A codec that returns its input."""

        name = "example.same"

        def encode(self, data: Any) -> Any:
            return data

        def decode(self, data: Any, limit: int) -> Any:
            return data

    data = np.arange(2**20, dtype="u4").reshape(1024, 1024)  # several batches, each with different elements
    codecs = [ShardingIndexed((32, 32), [Bytes(), Same()], order=order)]
    array = zarrlite.create_array(MemoryStore(), data=data, chunks=data.shape, codecs=codecs)
    np.testing.assert_array_equal(array[...], data)


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("order", ["row-major", "column-major", "morton"])
def test_the_batches_of_a_whole_shard_are_no_larger_than_the_shard(
    tmp_path: Path, order: str, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_batch_bytes(monkeypatch, 2**9)  # a batch contains eight of the 128 inner chunks
    codecs = [ShardingIndexed((4, 8), SMALL, order=order, index_location=location)]
    data = DATA + 1
    data[8:16] = data[40, 8:32] = 0
    array = zarrlite.create_array(tmp_path, data=data, chunks=(64, 64), codecs=codecs)
    sizes: list[int] = []
    read = OpenFile.read

    def counted(self: OpenFile, ranges: Any, memory: memoryview | None = None) -> Any:
        found = read(self, ranges, memory)
        sizes.extend(map(len, found or []))
        return found

    monkeypatch.setattr(OpenFile, "read", counted)
    np.testing.assert_array_equal(array[...], data)
    assert len(sizes) == 1 + (14 if order == "row-major" else 1)  # one read of the index, one per non-empty batch
    assert sum(sizes[1:]) <= (tmp_path / "c/0/0").stat().st_size
    index_size = sizes[0]

    def truncated(self: OpenFile, ranges: Any, memory: memoryview | None = None) -> Any:
        """Read the whole index but only half of each batch, as if the file had been truncated between the reads."""
        found = read(self, ranges, memory) or []
        return [part if len(part) == index_size else part[: len(part) // 2] for part in found]

    monkeypatch.setattr(OpenFile, "read", truncated)
    with pytest.raises(DataError, match="chunk c/0/0"):
        array[...]


def test_each_chunk_of_a_batch_of_missing_chunks_is_requested_once() -> None:
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
def test_damaged_uncompressed_shards_are_refused(tmp_path: Path, location: str) -> None:
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


def test_a_missing_chunk_of_a_batch_is_named() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, data=DATA + 1, chunks=(16, 16), codecs=SMALL)
    store.erase("c/1/3")
    assert (zarrlite.open_array(store)[...] == 0).sum() == 256
    with pytest.raises(MissingChunkError, match="chunk c/1/3"):
        zarrlite.open_array(store, missing_chunks="error")[...]


def test_a_failed_batch_leaves_each_chunk_old_or_new(tmp_path: Path) -> None:
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
def test_replacing_inner_chunks_equals_writing_the_shard_again(
    lengths: list[int], changes: dict[int, bytes | None], location: str, header: int
) -> None:
    codec = ShardingIndexed((1,), [Bytes()], index_location=location)
    spec = ArraySpec((6,), registry.data_types.coerce("uint32"), 0)
    form = codec.bind(spec).format  # type: ignore[attr-defined]
    writer = ShardWriter(form, Writing(header=header if location == "end" else 0))
    chunks: list[Any] = [None if n == 3 else bytes([65 + i]) * n for i, n in enumerate(lengths)]
    old = join(writer.join(chunks))
    view = memoryview(old)
    pieces = writer.replace(view, writer.form.index_of(view), changes)
    for i, chunk in changes.items():
        chunks[i] = chunk
    if pieces is None:
        assert chunks == [None] * 6
    else:
        assert bytes(join(pieces)) == bytes(join(writer.join(chunks, old)))


def test_inner_chunks_of_a_shard_with_a_gap_are_not_replaced() -> None:
    codec = ShardingIndexed((1,), [Bytes()])
    form = codec.bind(ArraySpec((2,), registry.data_types.coerce("uint8"), 0)).format  # type: ignore[attr-defined]
    writer = ShardWriter(form, Writing())
    index = struct.pack("<4Q", 0, 1, 2, 1)
    shard = b"a.b" + index + Crc32c().encode(index)[-4:]
    view = memoryview(shard)
    assert writer.replace(view, writer.form.index_of(view), {0: b"c"}) is None


def test_new_files_of_one_directory_take_one_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    store = LocalStore(tmp_path)
    locked: list[int] = []
    flock = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lambda fd, how: (locked.append(how), flock(fd, how)))
    store.set_many((f"c/0/{n}", b"value") for n in range(8))
    assert len([how for how in locked if how & fcntl.LOCK_EX]) == 1
    store.set_many((f"c/0/{n}", b"new") for n in range(4, 10))
    assert [store.get(f"c/0/{n}") for n in range(10)] == [b"value"] * 4 + [b"new"] * 6


def test_a_codec_may_read_another_array_while_it_decodes(tmp_path: Path) -> None:
    """Scratch memory belongs to the call that acquired it until that call releases it."""
    other = zarrlite.create_array(tmp_path / "other", data=np.full(4096, 255, "u1"), chunks=4096, codecs=[Bytes()])

    @zarrlite.register
    @dataclass(frozen=True)
    class Nosy(BytesBytesCodec):
        """A codec that reads another array before it decodes."""

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
