"""Partial reads and writes through chains of any codecs have the semantics of numpy."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import zarrlite
from tests.pipeline.arrays import COMPRESSORS, make, parts, read, shards
from zarrlite.buffers.pieces import join
from zarrlite.buffers.source import InMemory, Source
from zarrlite.codecs import (
    ArraySpec,
    Bytes,
    Crc32c,
    Packbits,
    Pad,
    ShardingIndexed,
    Transpose,
    VlenBytes,
    VlenUtf8,
    Zstd,
)
from zarrlite.data_types import from_dtype
from zarrlite.errors import TruncatedError
from zarrlite.pipeline.codec import ChunkOptions
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.indexing import basic
from zarrlite.selections.selection import Selection, everything
from zarrlite.stores.base import StoredValue

RECORD = np.dtype([("x", "i2"), ("y", "f4")])
DTYPES = ["bool", "int8", "uint16", "int32", "float64", "complex64", RECORD, "U2", "r24", "string", "bytes"]
FILLS = {"bool": True, "int8": -1, "uint16": 7, "float64": float("nan"), "string": "fill", "bytes": b"fill"}


@st.composite
def serializers(draw: Any, shape: tuple[int, ...], dtype: Any, depth: int = 0) -> Any:
    """Generate an array -> bytes codec for chunks of this shape, possibly `sharding_indexed`."""
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
    """Generate a chain for chunks of this shape."""
    filters = []
    for _ in range(draw(st.integers(0, 2))):
        order = tuple(draw(st.permutations(range(len(shape)))))
        filters.append(Transpose(order))
        shape = tuple(shape[i] for i in order)
    compressors = draw(st.lists(st.sampled_from(COMPRESSORS), max_size=2))
    return (*filters, draw(serializers(shape, dtype, depth)), *compressors)


@st.composite
def values_of(draw: Any, shape: Any, dtype: Any) -> np.ndarray:
    """Generate an array whose values are drawn from a few, including zero or an empty value."""
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
    """Whether two arrays have elements with the same bits, whatever their byte order."""
    expected = np.asarray(expected)
    found = (
        np.asarray(found, expected.dtype) if expected.dtype.kind in "OT" else np.asarray(found).astype(expected.dtype)
    )
    if expected.dtype.kind in "OT":
        return found.shape == expected.shape and found.tolist() == expected.tolist()
    return found.shape == expected.shape and found.tobytes() == expected.tobytes()


@settings(max_examples=300)
@given(st.data())
def test_any_chain_reads_and_updates_parts_as_numpy_does(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), max_size=3)))
    dtype = data.draw(st.sampled_from(DTYPES))
    data_type = from_dtype(dtype)
    fill = FILLS.get(dtype, data_type.default_fill_value) if isinstance(dtype, str) else data_type.default_fill_value
    write_empty = data.draw(st.booleans())
    spec = ArraySpec(shape, data_type, data_type.cast_scalar(fill), ChunkOptions(write_empty))
    chain = data.draw(chains(shape, dtype))
    bound = Pipeline(chain, spec)
    array = data.draw(values_of(shape, dtype))

    encoded = bytes(bound.encode_always(array))
    assert bound.encoded_size in (None, len(encoded))
    assert len(encoded) <= bound.limit.of(len(encoded))
    store = zarrlite.MemoryStore({"k": encoded})
    whole = everything(shape)
    assert equal(bound.decode(encoded), array)
    padded = Pipeline((*chain, Pad("start", 2), Pad("end", 3)), spec)
    for kind in (InMemory, lambda value: StoredValue(zarrlite.MemoryStore({"k": value}), "k")):
        assert equal(read(bound, kind(encoded), whole), array)
        assert equal(read(padded, kind(b"12" + encoded + b"345"), whole), array)

    selection = basic(data.draw(parts(shape)), shape).selection
    expected = selection.take(array)
    assert equal(bound.take(encoded, selection), expected)
    for source in (InMemory(encoded), StoredValue(store, "k")):
        assert equal(read(bound, source, selection), expected)
    assert equal(read(padded, InMemory(b"12" + encoded + b"345"), selection), expected)

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
            assert equal(bound.decode(join(updated)), start)
    written = bound.encode(array)
    assert (written is None) == (not write_empty and spec.is_fill(array))


@settings(max_examples=100)
@given(st.data())
def test_arrays_of_any_chain_equal_numpy_arrays_after_the_same_writes(data: Any) -> None:
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


def test_an_update_of_a_missing_chunk_starts_from_the_fill_value() -> None:
    bound = Pipeline((Transpose((1, 0)), Bytes(), Crc32c()), ArraySpec((2, 3), from_dtype("u1"), 9))
    assert read(bound, InMemory(None), everything((2, 3))) is None
    updated = join(bound.update(None, basic((0, 1), (2, 3)).selection, np.full((1, 1), 5, "u1")))
    assert bound.decode(updated).tolist() == [[9, 5, 9], [9, 9, 9]]
    assert bound.update(updated, everything((2, 3)), np.array(9, "u1")) is None


@pytest.mark.parametrize("chain", [[VlenBytes()], [ShardingIndexed((), (VlenBytes(),))]])
def test_a_zero_dimensional_array_may_contain_a_byte_string(chain: list[Any]) -> None:
    array = zarrlite.create_array(shape=(), dtype="bytes", chunks=(), codecs=chain)
    array[...] = b"text"
    assert array[()] == b"text"
    array[()] = np.array(b"other", object)
    assert array[...] == np.array(b"other", object)


def test_the_chunks_of_a_sharded_array_are_its_inner_chunks() -> None:
    array = make((4, 4), (4, 4), [Transpose((1, 0)), shards((2, 1))])
    assert (array.chunks, array.shards) == ((1, 2), (4, 4))  # in the array's dimension order, not transposed
    unsharded = make((4, 4), (4, 2), [Bytes()])
    assert (unsharded.chunks, unsharded.shards) == ((4, 2), None)


def test_a_selection_keeps_its_order_of_axes_through_every_codec() -> None:
    array = np.arange(24, dtype="u1").reshape(2, 3, 4)
    bound = Pipeline(
        (Transpose((2, 0, 1)), shards((2, 1, 3), (Transpose((1, 2, 0)), Bytes(), Zstd()))),
        ArraySpec((2, 3, 4), from_dtype("u1"), 0),
    )
    transposed = Selection(everything((4, 2, 3)).parts, [(2,), (0,), (1,)])
    source: Source = InMemory(bound.encode_always(array))
    np.testing.assert_array_equal(read(bound, source, transposed), array.transpose(2, 0, 1))


def test_a_shard_may_have_any_amount_of_unused_space(tmp_path: Path) -> None:
    store = zarrlite.LocalStore(tmp_path)
    array = zarrlite.create_array(store, data=np.arange(4, dtype="u1"), codecs=[shards((2,), (Bytes(),))])
    shard = bytes(store.get("c/0") or b"")
    index = np.frombuffer(shard[4:], "<u8", 4) + np.array([2**20, 0] * 2, "u8")
    encoded = array.metadata.pipeline((4,)).serializer.writer.index(index.reshape(2, 2))
    store.set("c/0", bytes(2**20) + shard[:4] + bytes(encoded))
    assert array[...].tolist() == [0, 1, 2, 3]
    assert array[3] == 3


def test_a_value_longer_than_any_chunk_is_refused_without_reading_it(tmp_path: Path) -> None:
    for codecs, message in (
        ([Bytes()], "has 1099511627776 bytes, but a chunk of shape (4,) has 4"),
        ([Bytes(), Zstd(), Crc32c()], "has more than 65545 bytes, the limit for this chunk"),
    ):
        array = zarrlite.create_array(tmp_path, data=np.arange(4, dtype="u1"), codecs=codecs, overwrite=True)
        with open(tmp_path / "c/0", "r+b") as file:
            file.truncate(2**40)  # sparse: takes no space on disk
        for index in (..., 3):
            with pytest.raises(TruncatedError, match=re.escape(message)):
                array[index]
