"""Chains of codecs: whatever stands in them, a part is read and written as numpy would, with the fewest requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import zarrlite
from zarrlite.buffers.pieces import join
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Limit, Source, Stored, Window
from zarrlite.codecs import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    ArraySpec,
    Blosc,
    Bytes,
    BytesBytesCodec,
    Crc32c,
    Gzip,
    Packbits,
    ShardingIndexed,
    Transpose,
    VlenBytes,
    VlenUtf8,
    Zstd,
)
from zarrlite.data_types import from_dtype
from zarrlite.errors import ArgumentError, ChecksumError, DataError, MetadataError, MetadataWarning, TruncatedError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context
from zarrlite.extensions.extension import Ignored
from zarrlite.pipeline.chain import check_chain, parse_chain
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.indexing import basic
from zarrlite.selections.selection import Selection, Span, everything

try:
    import numcodecs.blosc  # noqa: F401

    COMPRESSORS: list[Any] = [Gzip(1), Zstd(1), Crc32c(), Blosc("lz4", 1, "shuffle", 2)]
except ImportError:
    COMPRESSORS = [Gzip(1), Zstd(1), Crc32c()]

RECORD = np.dtype([("x", "i2"), ("y", "f4")])
DTYPES = ["bool", "int8", "uint16", "int32", "float64", "complex64", RECORD, "U2", "r24", "string", "bytes"]
FILLS = {"bool": True, "int8": -1, "uint16": 7, "float64": float("nan"), "string": "fill", "bytes": b"fill"}


class CountingStore(zarrlite.MemoryStore):
    """A store that notes every request: the key and the ranges asked for."""

    def __init__(self, values: Any = None) -> None:
        self.requests: list[tuple[str, list[tuple[int, int | None]]]] = []
        super().__init__(values)

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        self.requests.append((key, [tuple(byte_range)]))
        return super().get(key, byte_range)

    def get_partial_values(self, key_ranges: Sequence[tuple[str, ByteRange]]) -> list[Buffer | None]:
        self.requests.append((key_ranges[0][0], [tuple(r) for _, r in key_ranges]))
        return [zarrlite.MemoryStore.get(self, key, r) for key, r in key_ranges]


def make(shape: tuple[int, ...], chunks: tuple[int, ...], codecs: Any, dtype: Any = "u1", **kwargs: Any) -> Any:
    """An array that counts up, in a store that counts requests."""
    store = CountingStore()
    array = zarrlite.create_array(store, shape=shape, dtype=dtype, chunks=chunks, codecs=codecs, **kwargs)
    array[...] = np.arange(1, 1 + math.prod(shape)).reshape(shape)
    store.requests.clear()
    return array


# strategies


@st.composite
def serializers(draw: Any, shape: tuple[int, ...], dtype: Any, depth: int = 0) -> Any:
    """An array -> bytes codec for chunks of this shape, a shard with any inner chain among them."""
    kinds = [Bytes("little"), Bytes("big")]
    if dtype in ("string", "bytes"):
        kinds = [VlenUtf8() if dtype == "string" else VlenBytes()]
    elif dtype in ("bool", "int8", "uint16", "int32", "float64", "complex64"):
        kinds.append(Packbits(draw(st.sampled_from(["none", "first_byte", "last_byte"]))))
    if depth < 2 and draw(st.integers(0, 2)):
        inner = tuple(draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0])) for n in shape)
        index = draw(st.sampled_from([(Bytes("little"),), (Bytes("big"), Crc32c()), (Bytes("little"), Crc32c())]))
        turned = draw(st.booleans())
        if turned:
            index = (Transpose(tuple(range(len(shape), -1, -1))), *index)
        location = draw(st.sampled_from(["start", "end"]))
        return ShardingIndexed(inner, draw(chains(inner, dtype, depth + 1)), index, location)
    return draw(st.sampled_from(kinds))


@st.composite
def chains(draw: Any, shape: tuple[int, ...], dtype: Any, depth: int = 0) -> tuple[Any, ...]:
    """A whole chain for chunks of this shape."""
    filters = []
    for _ in range(draw(st.integers(0, 2))):
        order = tuple(draw(st.permutations(range(len(shape)))))
        filters.append(Transpose(order))
        shape = tuple(shape[i] for i in order)
    compressors = draw(st.lists(st.sampled_from(COMPRESSORS), max_size=2))
    return (*filters, draw(serializers(shape, dtype, depth)), *compressors)


@st.composite
def values_of(draw: Any, shape: Any, dtype: Any) -> np.ndarray:
    """Random elements, with runs of the fill value."""
    size = math.prod(shape)
    if dtype in ("string", "bytes"):
        texts = draw(st.lists(st.sampled_from(["", "fill", "é", "longer text"]), min_size=size, max_size=size))
        items = texts if dtype == "string" else [t.encode() for t in texts]
        array = np.empty(size, from_dtype(dtype).dtype)
        array[:] = items
        return array.reshape(shape)
    numpy_dtype = from_dtype(dtype).dtype
    if dtype == "U2":
        return (
            np.array(draw(st.lists(st.sampled_from(["", "a", "éz"]), min_size=size, max_size=size)))
            .astype(numpy_dtype)
            .reshape(shape)
        )
    raw = draw(st.binary(min_size=numpy_dtype.itemsize, max_size=numpy_dtype.itemsize))
    pool = np.frombuffer(raw + bytes(numpy_dtype.itemsize), "u1" if dtype == "bool" else numpy_dtype)
    if dtype == "bool":
        pool = (pool % 2).astype(bool)
    return pool[(draw(npst.arrays("i1", shape, elements=st.integers(0, len(pool) - 1))), ...)]


def equal(found: Any, expected: Any) -> bool:
    """Bit for bit, whatever the byte order."""
    expected = np.asarray(expected)
    found = (
        np.asarray(found, expected.dtype) if expected.dtype.kind in "OT" else np.asarray(found).astype(expected.dtype)
    )
    if expected.dtype.kind in "OT":
        return found.shape == expected.shape and found.tolist() == expected.tolist()
    return found.shape == expected.shape and found.tobytes() == expected.tobytes()


@st.composite
def parts(draw: Any, shape: tuple[int, ...]) -> Any:
    """An index that is not empty: slices, integers, points."""
    items: list[Any] = []
    for n in shape:
        kind = draw(st.sampled_from(["all", "slice", "integer", "points"]))
        if kind == "all":
            items.append(slice(None))
        elif kind == "integer":
            items.append(draw(st.integers(0, n - 1)))
        elif kind == "points":
            items.append(draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3).map(np.array)))
        else:
            items.append(slice(draw(st.integers(0, n - 1)), None, draw(st.sampled_from([1, 2, -1]))))
    lengths = [len(i) for i in items if isinstance(i, np.ndarray)]
    if lengths:  # index arrays go together
        items = [i[: min(lengths)] if isinstance(i, np.ndarray) else i for i in items]
    return tuple(items)


@settings(max_examples=300)
@given(st.data())
def test_any_chain_reads_parts_and_updates_parts_as_numpy_does(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), max_size=3)))
    dtype = data.draw(st.sampled_from(DTYPES))
    data_type = from_dtype(dtype)
    fill = FILLS.get(dtype, data_type.default_fill_value) if isinstance(dtype, str) else data_type.default_fill_value
    write_empty = data.draw(st.booleans())
    spec = ArraySpec(shape, data_type, data_type.cast_scalar(fill), write_empty=write_empty)
    chain = data.draw(chains(shape, dtype))
    bound = Pipeline(chain, spec)
    array = data.draw(values_of(shape, dtype))

    encoded = bytes(bound.encode(array))
    assert bound.encoded_size in (None, len(encoded))
    assert len(encoded) <= bound.limit.of(len(encoded))
    store = zarrlite.MemoryStore({"k": encoded})
    whole = everything(shape)
    for source in (
        InMemory(encoded),
        Stored(store, "k"),
        Window(Stored(zarrlite.MemoryStore({"k": b"12" + encoded}), "k"), 2),
    ):
        assert equal(bound.read(source, whole), array)

    selection = basic(data.draw(parts(shape)), shape).selection
    expected = selection.take(array)
    for source in (InMemory(encoded), Stored(store, "k")):
        assert equal(bound.read(source, selection), expected)

    values = data.draw(values_of(selection.shape, dtype))
    changed = array.copy()
    selection.put(changed, values)
    for old, start in ((encoded, changed), (None, spec.filled())):
        if old is None:
            selection.put(start, values)
        updated = bound.update(old, selection, values)
        if updated is None:
            assert not write_empty
            assert spec.is_fill(start)
        else:
            assert equal(bound.read(InMemory(join(updated)), whole), start)
    written = bound.write(array)
    assert (written is None) == (not write_empty and spec.is_fill(array))


@settings(max_examples=100)
@given(st.data())
def test_arrays_of_any_chain_are_the_same_after_the_same_writes(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    chunks = tuple(data.draw(st.sampled_from([1, 2, 4, 6])) for _ in shape)
    dtype = data.draw(st.sampled_from(["uint16", "int32", RECORD]))
    chain = data.draw(chains(chunks, dtype))
    copy = zarrlite.create_array(shape=shape, dtype=dtype, chunks=chunks, codecs=list(chain))
    array = np.zeros(shape, from_dtype(dtype).dtype)
    for _ in range(3):
        index = data.draw(parts(shape))
        if data.draw(st.booleans()):
            values: Any = data.draw(values_of(array[index].shape, dtype))
        else:
            values = np.zeros((), array.dtype)
        array[index] = values
        copy[index] = values
        assert equal(copy[...], array)
        assert equal(copy[index], array[index])
    again = zarrlite.open_array(copy.store, mode="r")
    assert again.metadata == copy.metadata
    assert equal(again[...], array)


def test_a_missing_chunk_is_none_and_an_update_begins_with_the_fill_value() -> None:
    bound = Pipeline((Transpose((1, 0)), Bytes(), Crc32c()), ArraySpec((2, 3), from_dtype("u1"), 9))
    assert bound.read(InMemory(None), everything((2, 3))) is None
    updated = join(bound.update(None, basic((0, 1), (2, 3)).selection, np.full((1, 1), 5, "u1")))
    assert bound.read(InMemory(updated), everything((2, 3))).tolist() == [[9, 5, 9], [9, 9, 9]]
    assert bound.update(updated, everything((2, 3)), np.array(9, "u1")) is None


@pytest.mark.parametrize("chain", [[VlenBytes()], [ShardingIndexed((), (VlenBytes(),))]])
def test_an_array_of_no_dimensions_holds_a_byte_string(chain: list[Any]) -> None:
    array = zarrlite.create_array(shape=(), dtype="bytes", chunks=(), codecs=chain)
    array[...] = b"text"
    assert array[()] == b"text"
    array[()] = np.array(b"other", object)
    assert array[...] == np.array(b"other", object)


# Requests: the exact bytes that a read costs


def shards(
    inner: tuple[int, ...], chain: Any = (Bytes(),), location: str = "end", index: Any = None
) -> ShardingIndexed:
    return ShardingIndexed(inner, tuple(chain), index or (Bytes("little"), Crc32c()), location)


INDEX = 4 * 16 + 4
# chain for chunks of shape (4, 4), what is read, and the requests that this costs
REQUESTS: list[tuple[str, list[Any], Any, list[list[tuple[int, int | None]]]]] = [
    ("a whole chunk", [Bytes()], np.s_[:], [[(0, None)]]),
    ("one element", [Bytes()], np.s_[1, 2], [[(6, 7)]]),
    ("one row", [Bytes()], np.s_[1], [[(4, 8)]]),
    ("one column", [Bytes()], np.s_[:, 1], [[(1, 14)]]),
    ("a block", [Bytes()], np.s_[1:3, 1:3], [[(5, 11)]]),
    ("points", [Bytes()], np.s_[[1, 3], [1, 0]], [[(5, 13)]]),
    ("nothing", [Bytes()], np.s_[2:2], []),
    ("one element behind transpose", [Transpose((1, 0)), Bytes()], np.s_[1, 2], [[(9, 10)]]),
    ("one column behind transpose", [Transpose((1, 0)), Bytes()], np.s_[:, 1], [[(4, 8)]]),
    ("all of it behind transpose", [Transpose((1, 0)), Bytes()], np.s_[:], [[(0, 16)]]),
    ("one element behind a checksum", [Bytes(), Crc32c()], np.s_[1, 2], [[(0, None)]]),
    ("one element of packed bits", [Packbits()], np.s_[1, 2], [[(0, None)]]),
    ("one inner chunk", [shards((2, 2))], np.s_[2:, :2], [[(-INDEX, None)], [(8, 12)]]),
    ("one inner chunk, index first", [shards((2, 2), location="start")], np.s_[2:, :2], [[(0, INDEX)], [(76, 80)]]),
    (
        "one inner chunk behind transpose",
        [Transpose((1, 0)), shards((2, 2))],
        np.s_[2:, :2],
        [[(-INDEX, None)], [(4, 8)]],
    ),
    ("one element of a shard", [shards((2, 2))], np.s_[3, 0], [[(-INDEX, None)], [(10, 11)]]),
    (
        "one element of an inner chunk that is checked",
        [shards((2, 2), (Bytes(), Crc32c()))],
        np.s_[3, 0],
        [[(-INDEX, None)], [(16, 24)]],
    ),
    ("two inner chunks", [shards((2, 2))], np.s_[:, 0], [[(-INDEX, None)], [(0, 12)]]),
    ("three quarters", [shards((2, 2))], np.s_[:3], [[(-INDEX, None)], [(0, 16)]]),
    ("all inner chunks", [shards((2, 2))], np.s_[:], [[(0, None)]]),
    ("points in three inner chunks", [shards((2, 2))], np.s_[[0, 3, 3], [0, 0, 3]], [[(-INDEX, None)], [(0, 16)]]),
    ("a shard behind a checksum", [shards((2, 2)), Crc32c()], np.s_[3, 0], [[(0, None)]]),
]


@pytest.mark.parametrize(
    ("chain", "index", "requests"), [row[1:] for row in REQUESTS], ids=[row[0] for row in REQUESTS]
)
def test_a_read_asks_for_no_more_than_it_needs(chain: list[Any], index: Any, requests: Any) -> None:
    array = make((4, 4), (4, 4), chain)
    np.testing.assert_array_equal(array[index], np.arange(1, 17).reshape(4, 4)[index])
    assert array.store.requests == [("c/0/0", ranges) for ranges in requests]


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda codec: codec.name)
def test_one_compressed_inner_chunk_is_two_small_requests(compressor: Any) -> None:
    array = make((64, 64), (64, 64), [Transpose((1, 0)), shards((16, 16), (Bytes(), compressor))], "u2")
    np.testing.assert_array_equal(array[0:16, 16:20], np.arange(1, 4097).reshape(64, 64)[0:16, 16:20])
    (_, index), (_, entry) = array.store.requests
    assert index == [(-(16 * 16 + 4), None)]
    ((start, stop),) = entry
    assert 0 < stop - start <= 16 * 16 * 2 + 64


def test_inner_chunks_far_apart_are_one_request_of_several_ranges() -> None:
    array = make((8, 8192), (8, 8192), [shards((1, 8192))])
    array[[0, 1, 4, 7], 5]
    index, entries = array.store.requests
    assert index == ("c/0/0", [(-(8 * 16 + 4), None)])
    assert entries == ("c/0/0", [(0, 16384), (32768, 40960), (57344, 65536)])


def test_rows_far_apart_are_one_request_of_several_ranges() -> None:
    array = make((4, 2**16), (4, 2**16), [Bytes()])
    expected = np.arange(1, 2**18 + 1).astype("u1").reshape(4, 2**16)
    np.testing.assert_array_equal(array[1:, 10:12], expected[1:, 10:12])
    row = 2**16
    assert array.store.requests == [("c/0/0", [(n * row + 10, n * row + 12) for n in (1, 2, 3)])]
    array.store.requests.clear()
    np.testing.assert_array_equal(array[1:2, 10:12], expected[1:2, 10:12])
    assert array.store.requests == [("c/0/0", [(row + 10, row + 12)])]
    array.store.erase("c/0/0")
    assert not array[1:, 10:12].any()


def test_an_inner_chunk_that_is_absent_costs_the_index_alone() -> None:
    array = make((4, 4), (4, 4), [shards((2, 2))])
    array[:2, :2] = 0
    array.store.requests.clear()
    assert not array[:2, :2].any()
    assert array.store.requests == [("c/0/0", [(-INDEX, None)])]


def test_a_shard_that_is_absent_costs_one_request() -> None:
    array = make((4, 4), (4, 4), [shards((2, 2))])
    array[...] = 0
    array.store.requests.clear()
    assert not array[1, 1]
    assert array.store.requests == [("c/0/0", [(-INDEX, None)])]


def test_one_element_of_nested_shards_costs_two_indices_and_itself() -> None:
    inner = shards((1, 2), location="start")
    array = make((4, 4), (4, 4), [shards((2, 2), [inner])])
    assert array[3, 1] == 14
    inner_size = 2 * 16 + 4 + 4
    start = 2 * inner_size
    assert array.store.requests == [
        ("c/0/0", [(-INDEX, None)]),
        ("c/0/0", [(start, start + 36)]),
        ("c/0/0", [(start + 39, start + 40)]),
    ]


def test_a_shard_behind_a_header_is_read_in_parts() -> None:
    array = make((4, 4), (4, 4), [shards((2, 2), location="start")])
    store = CountingStore({"k": b"header" + bytes(zarrlite.MemoryStore.get(array.store, "c/0/0"))})
    bound = array.metadata.pipeline((4, 4))
    part = bound.read(Window(Stored(store, "k"), head=6), basic(np.s_[2:, :2], (4, 4)).selection)
    assert part.tolist() == [[9, 10], [13, 14]]
    assert store.requests == [("k", [(6, 6 + INDEX)]), ("k", [(6 + INDEX + 8, 6 + INDEX + 12)])]


def test_a_shard_that_vanishes_between_index_and_entries_is_an_error() -> None:
    class Vanishing(CountingStore):
        def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
            value = super().get(key, byte_range)
            if len(self.requests) > 1 and not key.endswith("zarr.json"):
                return None
            return value

    full = make((4, 4), (4, 4), [shards((2, 2))])
    for index, coords in ((np.s_[3, 3], (1, 1)), (np.s_[:, 3], (0, 1))):
        store = Vanishing({key: zarrlite.MemoryStore.get(full.store, key) for key in full.store.list()})
        array = zarrlite.Array(store, "", full.metadata)
        with pytest.raises(DataError) as caught:
            array[index]
        message = f"chunk c/0/0, codec sharding_indexed: inner chunk {coords}: it has gone while the shard was read"
        assert str(caught.value) == message


# Partial writes


def test_a_partial_write_leaves_untouched_inner_chunks_alone_byte_for_byte() -> None:
    array = make((4, 4), (4, 4), [shards((2, 2), (Bytes(), Crc32c()))])
    shard = bytearray(array.store.get("c/0/0"))
    garbage = b"garbage!"
    shard[8:16] = garbage  # inner chunk (0, 1), whose checksum is wrong now
    array.store.set("c/0/0", shard)
    array[2:, :2] = 0  # the whole inner chunk (1, 0)
    array[0, 0] = 99  # a part of the inner chunk (0, 0)
    stored = bytes(array.store.get("c/0/0"))
    assert stored[8:16] == garbage
    assert array[0, 0] == 99
    assert array[3, 3] == 16
    assert not array[2:, :2].any()
    with pytest.raises(ChecksumError, match=r"inner chunk \(0, 1\)"):
        array[0, 2]
    array[0:2, 2:4] = 5  # written whole, a damaged inner chunk is not looked at
    assert array[...].tolist() == [[99, 2, 5, 5], [5, 6, 5, 5], [0, 0, 11, 12], [0, 0, 15, 16]]


@dataclass(frozen=True)
class Tally(BytesBytesCodec):
    """Changes nothing and counts."""

    name = "test.tally"
    decoded: ClassVar[list[int]] = []
    encoded: ClassVar[list[int]] = []

    def encode(self, data: Buffer) -> Buffer:
        self.encoded.append(len(data))
        return data

    def decode(self, data: Buffer, limit: int) -> Buffer:
        self.decoded.append(len(data))
        return data


@pytest.fixture
def tally() -> Tally:
    registry.register(Tally)
    Tally.decoded.clear()
    Tally.encoded.clear()
    return Tally()


@pytest.mark.parametrize(
    ("index", "decoded", "encoded"),
    [
        (np.s_[0, 0], 1, 1),
        (np.s_[:2, :2], 0, 1),
        (np.s_[:2, :3], 1, 2),
        (np.s_[1:3, 1:3], 4, 4),
        (np.s_[:], 0, 4),
    ],
)
def test_a_write_to_a_shard_decodes_only_inner_chunks_that_it_covers_in_part(
    tally: Tally, index: Any, decoded: int, encoded: int
) -> None:
    array = make((4, 4), (4, 4), [Transpose((1, 0)), shards((2, 2), (Bytes(), tally))])
    expected = array[...]
    tally.decoded.clear()
    tally.encoded.clear()
    array[index] = 77
    assert (len(tally.decoded), len(tally.encoded)) == (decoded, encoded)
    expected[index] = 77
    np.testing.assert_array_equal(array[...], expected)


def test_a_chunk_that_is_written_whole_is_not_read(tally: Tally) -> None:
    array = make((5, 4), (4, 4), [Bytes(), tally])
    array[...] = 3
    tally.decoded.clear()
    array.store.requests.clear()
    array[:4, ::-1] = np.arange(16).reshape(4, 4)
    assert (tally.decoded, array.store.requests) == ([], [])
    array[0, 0] = 1
    assert tally.decoded == [16]
    array[4] = 4  # at the edge: another handle may have grown the array, and the chunk, meanwhile
    assert tally.decoded == [16, 16]


# Codecs of others that know only whole chunks


@dataclass(frozen=True)
class Negated(ArrayArrayCodec):
    """Bitwise not; nothing but encode and decode."""

    name = "test.negated"

    def encode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return ~array

    def decode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return ~array


@dataclass(frozen=True)
class Text(ArrayBytesCodec):
    """Numbers as decimal text; nothing but encode and decode."""

    name = "test.text"

    def encode(self, array: np.ndarray, spec: ArraySpec) -> bytes:
        return " ".join(map(str, array.ravel().tolist())).encode()

    def decode(self, data: Buffer, spec: ArraySpec) -> np.ndarray:
        numbers = np.array(bytes(data).decode().split(), spec.dtype)
        return numbers.reshape(spec.shape if numbers.size == spec.size else -1)


@pytest.fixture
def minimal() -> None:
    registry.register(Negated)
    registry.register(Text)


@settings(max_examples=60)
@given(st.data())
def test_codecs_with_nothing_but_encode_and_decode_read_and_write_parts(minimal: None, data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=0, max_size=2)))
    chunks = tuple(data.draw(st.integers(1, 3)) for _ in shape)
    turned = Transpose(tuple(range(len(shape)))[::-1])
    chain = data.draw(st.sampled_from([[Negated(), Bytes()], [Text()], [Negated(), turned, Text(), Gzip()]]))
    copy = zarrlite.create_array(shape=shape, dtype="i4", chunks=chunks, codecs=chain)
    array = np.zeros(shape, "i4")
    index = data.draw(parts(shape))
    array[index] = 5
    copy[index] = 5
    np.testing.assert_array_equal(copy[...], array)
    np.testing.assert_array_equal(copy[index], array[index])
    copy[index] = 0
    assert copy.nchunks_initialized == 0


@pytest.mark.usefixtures("minimal")
def test_what_a_serializer_raises_is_a_data_error() -> None:
    bound = Pipeline([Text()], ArraySpec((2, 2), from_dtype("i4"), 0))
    for data, message in (
        (b"1 2 3 x", "codec test.text: cannot be decoded: invalid literal for int() with base 10: 'x'"),
        (b"1 2 3", "codec test.text: decodes to shape (3,), the chunk has (2, 2)"),
    ):
        with pytest.raises(DataError) as caught:
            bound.read(InMemory(data), everything((2, 2)))
        assert str(caught.value) == message


@pytest.mark.usefixtures("minimal")
def test_what_a_serializer_cannot_encode_is_an_argument_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> bytes:
        raise RuntimeError("no ink")

    monkeypatch.setattr(Text, "encode", fail)
    array = zarrlite.create_array(shape=(2,), dtype="i4", chunks=(2,), codecs=[Text()])
    with pytest.raises(ArgumentError) as caught:
        array[...] = 1
    assert str(caught.value) == "chunk c/0 cannot be encoded: no ink"


@dataclass(frozen=True)
class Asking(ArrayBytesCodec):
    """A serializer whose decoder asks for what it does not get."""

    name = "test.asking"
    error: ClassVar[Exception]

    def encode(self, array: np.ndarray, spec: ArraySpec) -> bytes:
        return b""

    def decode(self, data: Buffer, spec: ArraySpec) -> np.ndarray:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ChecksumError("differs"), ChecksumError, "codec test.asking: differs"),
        (ArgumentError("needs an option"), ArgumentError, "needs an option"),
    ],
)
def test_errors_of_zarrlite_keep_their_kind(error: Exception, kind: type, message: str) -> None:
    Asking.error = error
    with pytest.raises(kind) as caught:
        Pipeline([Asking()], ArraySpec((1,), from_dtype("u1"), 0)).read(InMemory(b""), everything((1,)))
    assert str(caught.value) == message


# The order of a chain

ORDER = "the order is array -> array codecs, exactly one array -> bytes codec, bytes -> bytes codecs"
NONE = (
    'has no array -> bytes codec; add one, such as {"name": "bytes", "configuration": {"endian": "little"}}, '
    "before the bytes -> bytes codecs"
)


@pytest.mark.parametrize(
    ("chain", "pointer", "kind", "message"),
    [
        ([], "", "missing", NONE),
        ([Gzip()], "", "missing", NONE),
        ([Transpose((0,))], "", "missing", NONE),
        ([Transpose((0,)), Ignored({"name": "x"}), Gzip()], "", "missing", NONE),
        ([Bytes(), Bytes()], "/1", "conflict", f"bytes cannot stand here: {ORDER}"),
        ([Bytes(), Transpose((0,))], "/1", "conflict", f"transpose cannot stand here: {ORDER}"),
        ([Gzip(), Bytes()], "/1", "conflict", f"bytes cannot stand here: {ORDER}"),
        ([Bytes(), Gzip(), Transpose((0,))], "/2", "conflict", f"transpose cannot stand here: {ORDER}"),
    ],
)
def test_a_chain_in_the_wrong_order_is_refused(chain: list[Any], pointer: str, kind: str, message: str) -> None:
    with pytest.raises(MetadataError) as caught:
        check_chain(chain)
    assert (caught.value.message, caught.value.pointer, caught.value.kind) == (message, pointer, kind)
    with pytest.raises(MetadataError):
        Pipeline(chain, ArraySpec((2,), from_dtype("u1"), 0))


def test_a_codec_of_no_stage_cannot_stand_anywhere() -> None:
    class Odd(zarrlite.codecs.Codec):
        name = "odd"

    with pytest.raises(MetadataError, match=r"^zarr.json#/0: odd cannot stand here: "):
        check_chain([Odd(), Bytes()])


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([], ["bytes"]),
        (["gzip"], ["bytes", "gzip"]),
        ([{"name": "transpose", "configuration": {"order": [0]}}, "gzip"], ["transpose", "bytes", "gzip"]),
    ],
)
def test_in_lenient_mode_a_forgotten_serializer_is_put_in(values: list[Any], names: list[str]) -> None:
    with pytest.warns(MetadataWarning) as caught:
        chain = parse_chain(values, "/codecs", Context(strict=False))
    assert [str(w.message) for w in caught] == [
        "zarr.json#/codecs: has no array -> bytes codec; bytes, little endian, is put in"
    ]
    assert [codec.name for codec in chain] == names
    assert next(c for c in chain if isinstance(c, Bytes)).endian == "little"


def test_lenient_mode_repairs_no_wrong_order() -> None:
    with pytest.raises(MetadataError) as caught:
        parse_chain(["gzip", "bytes"], "/codecs", Context(strict=False, document="elsewhere"))
    assert str(caught.value) == f"elsewhere#/codecs/1: bytes cannot stand here: {ORDER}"


def test_codecs_that_may_be_ignored_are_not_applied() -> None:
    chain = [Ignored({"name": "a"}), Bytes(), Ignored({"name": "b"}), Gzip(), Ignored({"name": "c"})]
    plain = Pipeline([Bytes(), Gzip()], ArraySpec((2,), from_dtype("u1"), 0))
    array = np.array([1, 2], "u1")
    assert Pipeline(chain, plain.spec).encode(array) == plain.encode(array)


@pytest.mark.parametrize(
    ("chain", "size"),
    [
        ([Bytes()], 48),
        ([Packbits(last_bit=2), Crc32c()], 5 + 4),
        ([Transpose((1, 0)), Bytes(), Crc32c(), Crc32c()], 56),
        ([Bytes(), Gzip()], None),
        ([Bytes(), Gzip(), Crc32c()], None),
        ([ShardingIndexed((3, 4), (Bytes(),))], None),
    ],
)
def test_the_encoded_size_is_known_where_every_step_knows_its_own(chain: list[Any], size: int | None) -> None:
    assert Pipeline(chain, ArraySpec((3, 4), from_dtype("i4"), 0)).encoded_size == size


def test_limits_grow_along_the_chain() -> None:
    bound = Pipeline([Bytes(), Crc32c(), Gzip(), Crc32c()], ArraySpec((100,), from_dtype("u1"), 0))
    assert [limit.fixed for _, limit in bound.compressors] == [100, 104, 104 + 26 + 2**16]
    assert bound.limit == Limit(104 + 26 + 2**16 + 4)
    text = Pipeline([VlenUtf8(), Gzip()], ArraySpec((100,), from_dtype("string"), ""))
    assert text.compressors[0][1] == Limit(2**24 + 6400, 256)


class Understated(Text):
    """Says that it makes less than it does."""

    def encoded_size(self, spec: ArraySpec) -> int:
        return 1


def test_what_could_not_be_read_again_is_not_written() -> None:
    bound = Pipeline([Understated(), Tally()], ArraySpec((2,), from_dtype("u1"), 0))
    with pytest.raises(ArgumentError) as caught:
        bound.encode(np.array([1, 2], "u1"))
    message = "3 bytes that became 3 could not be read again; use smaller chunks"
    assert str(caught.value) == message


def test_nothing_of_a_chunk_is_read_without_a_request() -> None:
    store = CountingStore()
    bound = Pipeline([Bytes()], ArraySpec((4, 4), from_dtype("i2"), 0))
    nothing = bound.read(Stored(store, "k"), Selection([Span(1, 2), Span(0, 0)]))
    assert (nothing.shape, nothing.dtype, store.requests) == ((2, 0), np.dtype("i2"), [])


def test_the_chunks_of_a_sharded_array_are_its_inner_ones() -> None:
    array = make((4, 4), (4, 4), [Transpose((1, 0)), shards((2, 1))])
    assert (array.chunks, array.shards) == ((1, 2), (4, 4))  # as the array counts its dimensions
    plain = make((4, 4), (4, 2), [Bytes()])
    assert (plain.chunks, plain.shards) == ((4, 2), None)


def test_a_selection_keeps_its_order_of_axes_through_every_codec() -> None:
    array = np.arange(24, dtype="u1").reshape(2, 3, 4)
    bound = Pipeline(
        (Transpose((2, 0, 1)), shards((2, 1, 3), (Transpose((1, 2, 0)), Bytes(), Zstd()))),
        ArraySpec((2, 3, 4), from_dtype("u1"), 0),
    )
    turned = Selection(everything((4, 2, 3)).parts, [(2,), (0,), (1,)])
    source: Source = InMemory(bound.encode(array))
    np.testing.assert_array_equal(bound.read(source, turned), array.transpose(2, 0, 1))


def test_a_shard_may_have_any_amount_of_unused_space(tmp_path: Path) -> None:
    store = zarrlite.LocalStore(tmp_path)
    array = zarrlite.create_array(store, data=np.arange(4, dtype="u1"), codecs=[shards((2,), (Bytes(),))])
    shard = bytes(store.get("c/0") or b"")
    index = np.frombuffer(shard[4:], "<u8", 4) + np.array([2**20, 0] * 2, "u8")
    encoded = array.metadata.pipeline((4,)).serializer.writer.index(index.reshape(2, 2))
    store.set("c/0", bytes(2**20) + shard[:4] + bytes(encoded))
    assert array[...].tolist() == [0, 1, 2, 3]
    assert array[3] == 3


def test_a_value_longer_than_any_chunk_is_refused_before_it_is_read(tmp_path: Path) -> None:
    for codecs in ([Bytes()], [Bytes(), Zstd(), Crc32c()]):
        array = zarrlite.create_array(tmp_path, data=np.arange(4, dtype="u1"), codecs=codecs, overwrite=True)
        with open(tmp_path / "c/0", "r+b") as file:
            file.truncate(2**40)  # a hole, which takes no room on disk
        for index in (..., 3):
            with pytest.raises(TruncatedError, match="has 1099511627776 bytes, "):
                array[index]
