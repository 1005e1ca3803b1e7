"""N5 without other libraries: the block codec, the conversion of `attributes.json`, and containers read in place."""

from __future__ import annotations

import base64
import bz2
import gzip
import itertools
import json
import lzma
import math
import pickle
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from zarrlite import n5
from zarrlite.codecs import Bytes, Gzip, N5Default, N5Lz4, Pad, Transpose, Zstd
from zarrlite.errors import (
    ArgumentError,
    DataError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    TruncatedError,
)
from zarrlite.stores import MemoryStore
from zarrlite.testing import ArrayBytesLaws, BytesBytesLaws

RAW = {"type": "raw"}
COMPRESS = {
    "raw": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lz4": N5Lz4().encode,
    "zstd": zstandard.compress,
}


def block(array: np.ndarray, compression: str = "raw") -> bytes:
    """Encode a block as the N5 specification defines it: mode, number of dimensions, lengths, elements.

    Elements are big-endian and column-major.
    """
    header = struct.pack(f">HH{array.ndim}I", 0, array.ndim, *array.shape)
    return header + COMPRESS[compression](array.astype(array.dtype.newbyteorder(">")).tobytes(order="F"))


def attributes(array: np.ndarray, chunks: tuple[int, ...], compression: str = "raw", **others: Any) -> bytes:
    """Return the `attributes.json` of a dataset that holds an array."""
    members = {"dimensions": array.shape, "blockSize": chunks, "dataType": array.dtype.name}
    return json.dumps({**members, "compression": {"type": compression}, **others}).encode()


def dataset(
    array: np.ndarray, chunks: tuple[int, ...], compression: str = "raw", padding: int | None = None
) -> dict[str, bytes]:
    """Return the keys and values of a dataset whose edge blocks are truncated, or padded with a number."""
    values = {"attributes.json": attributes(array, chunks, compression)}
    for coords in itertools.product(*(range(-(-n // c)) for n, c in zip(array.shape, chunks, strict=True))):
        part = array[tuple(slice(i * c, (i + 1) * c) for i, c in zip(coords, chunks, strict=True))]
        if padding is not None:
            part = np.pad(part, [(0, c - n) for n, c in zip(part.shape, chunks, strict=True)], constant_values=padding)
        values["/".join(map(str, coords))] = block(part, compression)
    return values


def numbers(*shape: int, dtype: str = "uint16") -> np.ndarray:
    return np.arange(1, 1 + math.prod(shape)).reshape(shape).astype(dtype)


# the codec


def test_the_example_block_of_the_n5_specification_is_written_and_read() -> None:
    """N5, File-system specification, item 9: a block of 1 x 2 x 3 elements with the values 1 to 6, column-major."""
    array = np.array([1, 2, 3, 4, 5, 6], "uint16").reshape(3, 2, 1).transpose()
    stored = bytes.fromhex("0000 0003 00000001 00000002 00000003 0001 0002 0003 0004 0005 0006")
    created = n5.create_array({}, shape=(1, 2, 3), dtype="uint16", chunks=(1, 2, 3), compression=RAW)
    created[...] = array
    assert bytes(created.store.get("0/0/0") or b"") == stored
    assert block(array) == stored
    assert created[...].tolist() == array.tolist()
    gzipped = "1f8b080000000000000063606460626066606160656003 00aaea6dbf0c000000"
    store = {"attributes.json": attributes(array, (1, 2, 3), "gzip"), "0/0/0": stored[:16] + bytes.fromhex(gzipped)}
    assert n5.open(store)[...].tolist() == array.tolist()


def chain(ndim: int, *compressors: Any) -> tuple[Any, ...]:
    return (Transpose(tuple(range(ndim))[::-1]), Bytes("big"), *compressors)


class TestRawBlocks(ArrayBytesLaws):
    codec = N5Default(chain(2))
    arrays = (numbers(4, 6), numbers(1, 3, dtype="float64"), np.zeros((3, 3), "uint8"))


class TestCompressedBlocks(ArrayBytesLaws):
    codec = N5Default(chain(3, Zstd()))
    arrays = (numbers(2, 3, 4, dtype="int64"), numbers(5, 1, 2))


class TestLz4(BytesBytesLaws):
    codec = N5Lz4(64)


class TestBlocksOfOneByte(ArrayBytesLaws):
    codec = N5Default((Transpose((0,)), Bytes(None), Gzip()))
    arrays = (numbers(5, dtype="int8"),)


REFUSED_CHAINS = [
    ([Bytes("big")], "", "conflict", "must be transpose, bytes, and at most one bytes -> bytes codec"),
    ([Transpose((1, 0)), Transpose((1, 0)), Bytes("big")], "", "conflict",
     "must be transpose, bytes, and at most one bytes -> bytes codec"),
    ([*chain(2), Gzip(), Zstd()], "", "conflict", "must be transpose, bytes, and at most one bytes -> bytes codec"),
    ([Transpose((0, 1)), Bytes("big")], "/0/configuration/order", "conflict", "must be [1, 0], not [0, 1]"),
    ([*chain(3)], "/0/configuration/order", "conflict", "must be [1, 0], not [2, 1, 0]"),
    ([Transpose((1, 0)), Bytes("little")], "/1/configuration/endian", "conflict", 'must be "big", not "little"'),
]  # fmt: skip


def test_an_omitted_byte_order_of_a_new_array_is_big() -> None:
    array = zarrlite.create_array({}, shape=(4, 6), dtype="uint16", codecs=[N5Default((Transpose((1, 0)), "bytes"))])
    assert array.metadata.codecs == (N5Default((Transpose((1, 0)), Bytes("big"))),)
    document = array.metadata.to_json()
    del document["codecs"][0]["configuration"]["codecs"][1]["configuration"]
    with pytest.raises(MetadataError) as caught:
        zarrlite.ArrayMetadata.from_json(document).check()
    assert caught.value.pointer == "/codecs/0/configuration/codecs/1/configuration/endian"
    assert (caught.value.kind, caught.value.message) == ("missing", 'is required for uint16: "big"')


@pytest.mark.parametrize(("codecs", "pointer", "kind", "message"), REFUSED_CHAINS)
def test_inner_codecs_that_n5_lacks_are_refused(codecs: list[Any], pointer: str, kind: str, message: str) -> None:
    with pytest.raises(MetadataError) as caught:
        zarrlite.create_array({}, shape=(4, 6), dtype="uint16", codecs=[N5Default(tuple(codecs))])
    fault = (caught.value.pointer, caught.value.kind, caught.value.message)
    assert fault == (f"/codecs/0/configuration/codecs{pointer}", kind, message)


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        ("complex64", "N5 has no data type complex64"),
        ("bool", "N5 has no data type bool"),
        ("float16", "N5 has no data type float16"),
    ],
)
def test_a_data_type_that_n5_lacks_is_refused(dtype: str, message: str) -> None:
    with pytest.raises(MetadataError, match=message) as caught:
        zarrlite.create_array({}, shape=(4, 6), dtype=dtype, codecs=[N5Default(chain(2))])
    assert caught.value.pointer == "/codecs/0"


def test_a_block_shape_beyond_the_limits_of_the_header_is_refused() -> None:
    with pytest.raises(MetadataError, match="lengths from 1 to 4294967295"):
        zarrlite.create_array({}, shape=(2**33,), dtype="u1", chunks=(2**32,), codecs=[N5Default(chain(1))])
    with pytest.raises(ArgumentError, match="lengths from 1 to 4294967295"):
        n5.n5_header((3, 2**32))
    with pytest.raises(ArgumentError, match="lengths from 1 to 4294967295"):
        n5.n5_header((3, 0))


BAD_BLOCKS = [
    ("", "has 0 bytes, but the header of a block alone has 12"),
    ("000000020000000300", "has 9 bytes, but the header of a block alone has 12"),
    ("00010002000000030000000200000006", "is a block of mode 1 (varlength); only mode 0 (default) is supported"),
    ("0002000000000006", "is a block of mode 2 (object); only mode 0 (default) is supported"),
    ("00070002", "is a block of mode 7 (unknown); only mode 0 (default) is supported"),
    ("0000000300000003000000020000000100", "is a block of 3 dimensions, but the chunk has 2"),
    ("000000010000000300", "is a block of 1 dimensions, but the chunk has 2"),
    ("000000020000000400000002" + "00" * 8,
     "is a block of shape (4, 2), which is empty or exceeds the chunk shape (3, 2)"),
    ("000000020000000300000000", "is a block of shape (3, 0), which is empty or exceeds the chunk shape (3, 2)"),
    ("00000002ffffffff00000002",
     "is a block of shape (4294967295, 2), which is empty or exceeds the chunk shape (3, 2)"),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "message"), BAD_BLOCKS)
@pytest.mark.parametrize("compression", ["raw", "gzip"])
def test_a_block_header_that_does_not_fit_the_chunk_is_refused(stored: str, message: str, compression: str) -> None:
    array = n5.open({"attributes.json": attributes(numbers(3, 2), (3, 2), compression), "0/0": bytes.fromhex(stored)})
    with pytest.raises(DataError) as caught:
        array[0, 0]
    assert str(caught.value) == f"chunk 0/0, codec n5_default: {message}"


@pytest.mark.parametrize("compression", ["gzip", "bzip2", "xz", "zstd"])
@pytest.mark.parametrize("shape", [(1, 2), (3, 2)])
def test_decompression_stops_at_the_size_in_the_block_header(compression: str, shape: tuple[int, ...]) -> None:
    bomb = block(np.zeros(2**26, "u1"), compression)[8:]
    document = attributes(numbers(3, 2), (3, 2), compression)
    array = n5.open({"attributes.json": document, "0/0": n5.n5_header(shape) + bomb})
    name = NAMES_OF_CODECS.get(compression, compression)
    tracemalloc.start()
    try:
        with pytest.raises(TruncatedError, match=rf"chunk 0/0, codec {name}: .* {2 * math.prod(shape)} "):
            array[...]
        assert tracemalloc.get_traced_memory()[1] < 2**24  # xz alone allocates a dictionary of 2**23 bytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compression", COMPRESS)
def test_a_block_with_fewer_elements_than_its_header_promises_is_refused(compression: str) -> None:
    document = attributes(numbers(3, 2), (3, 2), compression)
    stored = n5.n5_header((3, 2)) + block(numbers(2, 2), compression)[12:]
    array = n5.open({"attributes.json": document, "0/0": stored})
    with pytest.raises(TruncatedError, match=r"^chunk 0/0, codec bytes: has 8 bytes, .* has 12$"):
        array[...]


def test_reading_a_truncated_block_allocates_only_the_selection() -> None:
    """The shape of a chunk comes from a file, so it must not determine how much memory is allocated."""
    document = {"dimensions": [2**40, 2], "blockSize": [2**32 - 1, 2], "dataType": "uint8", "compression": RAW}
    store = {"attributes.json": json.dumps(document).encode(), "0/0": block(numbers(3, 2, dtype="u1"))}
    array = n5.open(store)
    assert array[1:5].tolist() == [[3, 4], [5, 6], [0, 0], [0, 0]]
    assert array[2, 1] == 6
    assert array.vindex[[0, 4], [1, 1]].tolist() == [2, 0]
    assert array.oindex[[0, 2], 1].tolist() == [2, 6]


def test_elements_outside_of_a_truncated_block_are_fill_values() -> None:
    """A dataset that has grown keeps the blocks that were truncated at its former edge."""
    array = zarrlite.create_array(
        {}, shape=(3, 2), dtype="u1", chunks=(3, 2), codecs=[N5Default(chain(2))], fill_value=7
    )
    array.store.set("c/0/0", block(np.array([[1], [2]], "u1")))
    assert array[...].tolist() == [[1, 7], [2, 7], [7, 7]]
    assert array[1:, :1].tolist() == [[2], [7]]


@pytest.mark.parametrize("codec", [N5Default(chain(2)), N5Default(chain(2, Zstd()))])
def test_updating_a_truncated_block_writes_a_full_one(codec: N5Default) -> None:
    array = zarrlite.create_array({}, shape=(3, 2), dtype="u1", chunks=(3, 2), codecs=[codec])
    array.store.set("c/0/0", block(np.array([[1, 2]], "u1"), "zstd" if len(codec.codecs) > 2 else "raw"))
    array[2, 0] = 5
    assert array[...].tolist() == [[1, 2], [0, 0], [5, 0]]
    assert bytes(array.store.get("c/0/0") or b"").startswith(n5.n5_header((3, 2)))
    array[...] = 0
    assert array.store.get("c/0/0") is None


def test_an_inner_codec_can_keep_bytes_of_the_stored_block() -> None:
    codec = N5Default(chain(1, Pad("start", 4, keep_padding=True)))
    array = zarrlite.create_array({}, shape=3, dtype="u1", chunks=3, codecs=[codec])
    for stored in (n5.n5_header(3) + b"KEPT\1\2\3", n5.n5_header(2) + b"KEPT\1\2"):
        array.store.set("c/0", stored)
        array[0] = 9
        assert bytes(array.store.get("c/0") or b"")[:13] == n5.n5_header(3) + b"KEPT\x09"
        array[...] = 8
        assert bytes(array.store.get("c/0") or b"") == n5.n5_header(3) + b"KEPT\x08\x08\x08"


shapes = st.lists(st.integers(1, 7), min_size=1, max_size=3)


@given(st.data(), shapes, st.sampled_from(sorted(COMPRESS)))
def test_any_dataset_reads_as_the_array_it_was_written_from(data: Any, shape: list[int], compression: str) -> None:
    """Blocks at the edge are padded or truncated, and some are missing. The whole array and parts of it are read."""
    chunks = tuple(data.draw(st.integers(1, 5), label="block") for _ in shape)
    dtype = data.draw(st.sampled_from(["int8", "uint16", "int32", "float64"]), label="dtype")
    expected = numbers(*shape, dtype=dtype)
    truncated, padded = dataset(expected, chunks, compression), dataset(expected, chunks, compression, 99)
    store = {key: data.draw(st.sampled_from([value, padded[key]]), label=key) for key, value in truncated.items()}
    for key in data.draw(st.sets(st.sampled_from(sorted(set(store) - {"attributes.json"})), max_size=2)):
        del store[key]
        box = tuple(slice(int(i) * c, (int(i) + 1) * c) for i, c in zip(key.split("/"), chunks, strict=True))
        expected[box] = 0
    array = n5.open(store)
    assert (array.shape, array.chunks, array.dtype) == (tuple(shape), chunks, np.dtype(dtype))
    np.testing.assert_array_equal(array[...], expected)
    part = tuple(data.draw(st.slices(n), label="part") for n in shape)
    np.testing.assert_array_equal(array[part], expected[part])
    points = tuple(data.draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=2)) for n in shape)
    np.testing.assert_array_equal(array.vindex[points], expected[points])


@given(st.data(), shapes)
def test_every_block_is_written_in_full_size(data: Any, shape: list[int]) -> None:
    chunks = tuple(data.draw(st.integers(1, 5)) for _ in shape)
    values = numbers(*shape)
    array = n5.create_array({}, shape=shape, dtype="uint16", chunks=chunks, compression=RAW)
    array[...] = values
    blocks = {key: bytes(array.store.get(key) or b"") for key in array.store.list() if key != "attributes.json"}
    expected = dataset(values, chunks, padding=0)
    del expected["attributes.json"]
    assert blocks == expected
    assert (n5.open(array.store)[...] == values).all()


# attributes.json -> zarr.json


def document_of(**others: Any) -> dict[str, Any]:
    """Convert the attributes of a dataset, with some members changed, to a Zarr document."""
    members = {"dimensions": [5, 7], "blockSize": [3, 2], "dataType": "uint16", "compression": RAW}
    return n5.array_document({**members, **others})


def test_the_example_of_the_registered_codec_is_reproduced() -> None:
    document = n5.array_document(
        {
            "dimensions": [256, 128],
            "blockSize": [256, 128],
            "dataType": "float32",
            "compression": {"type": "zstd", "level": 0},
        }
    )
    inner = [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "bytes", "configuration": {"endian": "big"}},
        {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
    ]
    assert document == {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [256, 128],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [256, 128]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "n5_default", "configuration": {"codecs": inner}}],
        "attributes": {},
    }
    assert zarrlite.ArrayMetadata.from_json(document).to_json() == document


COMPRESSIONS = [
    ({"type": "raw"}, None),
    ({"type": "gzip"}, {"level": 6}),
    ({"type": "gzip", "level": -1, "useZlib": False}, {"level": 6}),
    ({"type": "gzip", "level": 9}, {"level": 9}),
    ({"type": "gzip", "level": -1, "useZlib": True}, {"level": -1}),
    ({"type": "gzip", "level": 9, "useZlib": True}, {"level": 9}),
    ({"type": "bzip2"}, {"level": 9}),
    ({"type": "bzip2", "blockSize": 5}, {"level": 5}),
    ({"type": "xz"}, {"format": 1, "check": -1, "preset": 6, "filters": None}),
    ({"type": "xz", "preset": 1}, {"format": 1, "check": -1, "preset": 1, "filters": None}),
    ({"type": "lz4"}, {"block_size": 65536}),
    ({"type": "lz4", "blockSize": 1024}, {"block_size": 1024}),
    ({"type": "lz4", "blockSize": 6}, {"block_size": 65536}),
    ({"type": "zstd"}, {"level": 3, "checksum": False}),
    ({"type": "zstd", "level": -7}, {"level": -7, "checksum": False}),
    ({"type": "zstd", "id": "zstd", "level": 1, "checksum": True}, {"level": 1, "checksum": True}),
    ({"type": "blosc"}, {"cname": "blosclz", "clevel": 6, "shuffle": "noshuffle", "typesize": 2, "blocksize": 0}),
    ({"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
     {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}),
    ({"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0},
     {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}),
    ({"type": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 64, "typesize": 4, "nthreads": 8},
     {"cname": "zstd", "clevel": 3, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 64}),
]  # fmt: skip


NAMES_OF_CODECS = {"bzip2": "numcodecs.bz2", "xz": "numcodecs.lzma", "lz4": "zarrlite.n5_lz4"}


@pytest.mark.parametrize(("compression", "configuration"), COMPRESSIONS)
def test_a_compression_is_converted_to_a_codec(compression: Any, configuration: Any) -> None:
    codecs = document_of(compression=compression)["codecs"][0]["configuration"]["codecs"][2:]
    name = NAMES_OF_CODECS.get(compression["type"], compression["type"])
    name = "numcodecs.zlib" if compression.get("useZlib") else name
    assert codecs == ([] if configuration is None else [{"name": name, "configuration": configuration}])


def test_the_automatic_shuffle_of_blosc_depends_on_the_element_size() -> None:
    codec = document_of(dataType="int8", compression={"type": "blosc", "shuffle": -1})["codecs"][0]
    assert codec["configuration"]["codecs"][2]["configuration"]["shuffle"] == "bitshuffle"


@pytest.mark.parametrize(("name", "codec"), [("raw", None), ("gzip", "gzip")])
def test_the_compression_type_of_n5_version_0_is_read(name: str, codec: str | None) -> None:
    version_0 = {"dimensions": [5], "blockSize": [3], "dataType": "uint16", "compressionType": name}
    inner = n5.array_document(version_0)["codecs"][0]["configuration"]["codecs"]
    assert [c["name"] for c in inner[2:]] == [codec][: codec is not None]
    assert n5.array_document({**version_0, "compression": {"type": "zstd"}})["attributes"] == {}


DATASET = {"dimensions": [5, 7], "blockSize": [3, 2], "dataType": "uint16", "compression": RAW}
NAMES = (
    '"uint8" or "uint16" or "uint32" or "uint64" or "int8" or "int16" or "int32" or "int64" or "float32" or "float64"'
)
REFUSED = [
    ({"dimensions": 5}, "/dimensions", "type", "must be an array, not 5"),
    ({"dimensions": []}, "/dimensions", "limit", "must have 1 to 64 items, not 0"),
    ({"dimensions": [1] * 65, "blockSize": [1] * 65}, "/dimensions", "limit", "must have 1 to 64 items, not 65"),
    ({"dimensions": [5, True]}, "/dimensions/1", "type", "must be an integer, not true"),
    ({"dimensions": [5, -1]}, "/dimensions/1", "value", f"must be an integer from 0 to {2**63 - 1}, not -1"),
    ({"blockSize": [3]}, "/blockSize", "conflict", "must have 2 items, like dimensions, not 1"),
    ({"blockSize": [3, 0]}, "/blockSize/1", "value", "must be an integer from 1 to 4294967295, not 0"),
    ({"blockSize": [3, 2**32]}, "/blockSize/1", "value", f"must be an integer from 1 to 4294967295, not {2**32}"),
    ({"dataType": "object"}, "/dataType", "value", f'must be {NAMES}, not "object"'),
    ({"dataType": 3}, "/dataType", "type", "must be a string, not 3"),
    ({"compression": "gzip"}, "/compression", "type", 'must be an object, not "gzip"'),
    ({"compression": {}}, "/compression/type", "missing", "is required and missing"),
    ({"compression": {"type": "lzo", "blockSize": 65536}}, "/compression/type", "unknown-extension",
     '"lzo" is not a known compression (known: raw, gzip, bzip2, xz, lz4, zstd, blosc)'),
    ({"compression": {"type": "raw", "level": 1}}, "/compression/level", "unknown-member",
     "is not a known member (known: type)"),
    ({"compression": {"type": "gzip", "useZlib": 1}}, "/compression/useZlib", "type", "must be true or false, not 1"),
    ({"compression": {"type": "bzip2", "blockSize": 0}}, "/compression/blockSize", "value",
     "must be an integer from 1 to 9, not 0"),
    ({"compression": {"type": "xz", "preset": 10}}, "/compression/preset", "value",
     "must be an integer from 0 to 9, not 10"),
    ({"compression": {"type": "gzip", "level": 10}}, "/compression/level", "value",
     "must be an integer from -1 to 9, not 10"),
    ({"compression": {"type": "blosc", "shuffle": "byte"}}, "/compression/shuffle", "type",
     'must be an integer, not "byte"'),
    ({"codecs": []}, "/codecs", "unknown-member", "must be absent: zarrlite supports only the member compression"),
    ({"n5": "5.0.0"}, "/n5", "value", 'must be a version up to 4, not "5.0.0"'),
    ({"n5": "new"}, "/n5", "value", 'must be a version up to 4, not "new"'),
    ({"n5": 4}, "/n5", "type", "must be a string, not 4"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "pointer", "kind", "message"), REFUSED)
def test_bad_attributes_are_refused_with_the_place_of_the_fault(
    changes: Any, pointer: str, kind: str, message: str
) -> None:
    with pytest.raises(MetadataError) as caught:
        n5.open({"a/attributes.json": json.dumps({**DATASET, **changes}).encode()}, path="a")
    assert (caught.value.pointer, caught.value.kind, caught.value.message) == (pointer, kind, message)
    assert caught.value.document == "a/attributes.json"
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("missing", DATASET)
def test_a_missing_member_of_a_dataset_is_refused(missing: str) -> None:
    with pytest.raises(MetadataError) as caught:
        n5.array_document({name: value for name, value in DATASET.items() if name != missing})
    assert (caught.value.pointer, caught.value.message) == (f"/{missing}", "is required and missing")


def test_all_faults_of_a_document_are_reported() -> None:
    with pytest.raises(MetadataError) as caught:
        n5.array_document({"dimensions": "x", "blockSize": [0], "dataType": "y", "compression": 1, "n5": "9"})
    pointers = [fault.pointer for fault in caught.value.problems]
    assert pointers == ["/dimensions", "/blockSize/0", "/dataType", "/compression", "/n5"]


# the codecs pad and offset, used as in the proposals

EXAMPLE = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [1024, 1024],
    "data_type": "uint16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [64, 64]}},
    "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
    "fill_value": 0,
}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
HEADER = "AAAAAgAAAEAAAABA"
EXAMPLES_3 = {
    "pad": [BIG, {"name": "zstd"}, {"name": "pad", "configuration": {"location": "start", "nbytes": 12}}],
    "offset": [
        BIG,
        {"name": "zstd", "configuration": {"level": 3}},
        {"name": "offset", "configuration": {"offset": 12, "prefix": HEADER}},
    ],
}


@pytest.mark.parametrize("codec", ["pad", "offset"])
def test_example_3_of_the_proposals_needs_a_transpose(codec: Any) -> None:
    values = numbers(64, 64)
    store = {"1/2": block(values, "zstd")}

    def read(document: dict[str, Any]) -> np.ndarray:
        return zarrlite.open({**store, "zarr.json": json.dumps(document).encode()}, mode="r")[64:128, 128:192]

    verbatim = {**EXAMPLE, "codecs": EXAMPLES_3[codec]}
    assert read(verbatim).tolist() == values.T.tolist()
    assert read({**verbatim, "codecs": [TRANSPOSE, *EXAMPLES_3[codec]]}).tolist() == values.tolist()
    document = n5.array_document(
        {
            "dimensions": [1024, 1024],
            "blockSize": [64, 64],
            "dataType": "uint16",
            "compression": {"type": "zstd", "level": 3},
        },
        codec=codec,
    )
    assert read(document).tolist() == values.tolist()
    padding = document["codecs"][3]["configuration"]["padding" if codec == "pad" else "prefix"]
    assert padding == HEADER == base64.b64encode(n5.n5_header((64, 64))).decode()


@pytest.mark.parametrize("codec", ["pad", "offset"])
@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_pad_and_offset_read_padded_blocks_and_refuse_truncated_ones(codec: Any, compression: str) -> None:
    values = numbers(5, 7)
    padded = MemoryStore(dataset(values, (3, 2), compression, 99))
    truncated = MemoryStore(dataset(values, (3, 2), compression))
    for store in (padded, truncated):
        assert n5.write_documents(store, codec=codec) == ["zarr.json"]
    assert zarrlite.open(padded, mode="r")[...].tolist() == values.tolist()
    array = zarrlite.open(truncated, mode="r")
    assert array[:3, :6].tolist() == values[:3, :6].tolist()
    for index, key, size in [((4, 0), "1/0", 8), ((0, 6), "0/3", 6), ((4, 6), "1/3", 4)]:
        with pytest.raises(TruncatedError) as caught:
            array[index]
        assert str(caught.value) == f"chunk {key}, codec bytes: has {size} bytes, but a chunk of shape (3, 2) has 12"


def test_array_document_takes_the_name_of_a_codec() -> None:
    dataset = {**DATASET, "dimensions": [6, 8]}
    names = [c["name"] for c in n5.array_document(dataset, codec="offset")["codecs"]]
    assert names == ["transpose", "bytes", "offset"]
    with pytest.raises(ArgumentError, match="codec must be 'n5_default', 'pad' or 'offset', not 'skip'"):
        n5.array_document(dataset, codec="skip")  # type: ignore[arg-type]


# containers


def container() -> dict[str, bytes]:
    """Return a container: a root with attributes, groups with and without attributes, datasets at several depths."""
    values = numbers(5, 7)
    return {
        "attributes.json": b'{"n5": "2.1.3", "title": "all"}',
        "setup/attributes.json": b'{"dataType": "uint16", "scales": [[1, 1]]}',
        **{f"setup/bare/s0/{key}": value for key, value in dataset(values, (3, 2)).items()},
        **{f"flat/{key}": value for key, value in dataset(values[0], (4,), "gzip").items()},
        "flat/attributes.json": attributes(values[0], (4,), "gzip", unit="nm", n5="2.1.3"),
        "old/attributes.json": b'{"dimensions": [3], "blockSize": [3], "dataType": "int8", "compressionType": "lzo"}',
    }


def test_a_container_is_opened_as_a_hierarchy_without_writing() -> None:
    store = container()
    before = dict(store)
    root = n5.open(store)
    assert sorted(root) == ["flat", "old", "setup"]
    assert dict(root.attrs) == {"title": "all"}
    assert dict(root["setup"].attrs) == {"dataType": "uint16", "scales": [[1, 1]]}
    assert dict(root["setup/bare"].attrs) == {}
    assert dict(root["flat"].attrs) == {"unit": "nm"}
    assert root["setup/bare/s0"][...].tolist() == numbers(5, 7).tolist()
    assert root["setup"]["bare"]["s0"].nchunks_initialized == 8
    assert str(root["setup"].tree()) == "/setup\n└── bare\n    └── s0 (5, 7) uint16"
    assert n5.open(store, path="flat")[2:5].tolist() == [3, 4, 5]
    assert store == before


def test_a_refused_dataset_does_not_hide_the_others() -> None:
    root = n5.open(container())
    assert "old" in root
    with pytest.raises(MetadataError) as caught:
        root["old"]
    assert str(caught.value) == (
        'old/attributes.json#/compressionType: "lzo" is not a known compression '
        "(known: raw, gzip, bzip2, xz, lz4, zstd, blosc)"
    )


def test_a_copy_leaves_out_and_names_a_refused_dataset() -> None:
    target: dict[str, bytes] = {}
    with pytest.warns(UserWarning, match="the node 'old' is not copied") as caught:
        copied = zarrlite.copy(n5.open(container()), target)
    assert len(caught) == 1
    assert "old" not in copied
    assert not any(key.startswith("old/") for key in target)


@pytest.mark.parametrize("path", ["nowhere", "flat/0", "flat/deep", "setup/bare/s0/0", "setup/bare/s0/0/1"])
def test_blocks_and_missing_paths_are_not_nodes(path: str) -> None:
    with pytest.raises(NodeNotFoundError):
        n5.open(container(), path=path)


def test_an_empty_store_is_not_a_container(tmp_path: Path) -> None:
    with pytest.raises(NodeNotFoundError):
        n5.open({})
    with pytest.raises(NodeNotFoundError):
        n5.open(tmp_path / "nothing")


def test_empty_directories_are_groups(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert list(n5.open(tmp_path)["a"]) == ["b"]
    assert list(n5.open(tmp_path, path="a/b")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"n5": "5.1.0"}', 'attributes.json#/n5: must be a version up to 4, not "5.1.0"'),
        (b"{", "attributes.json#: is not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        (b"[]", "attributes.json#: must be an object, not []"),
    ],
)
def test_the_attributes_of_the_root_are_checked_for_every_path(text: bytes, message: str) -> None:
    for path in ("", "flat"):
        with pytest.raises(MetadataError) as caught:
            n5.open({**container(), "attributes.json": text}, path=path)
        assert str(caught.value) == message


def test_the_root_may_be_a_dataset() -> None:
    assert n5.open(dataset(numbers(5), (3,)))[...].tolist() == [1, 2, 3, 4, 5]


def test_an_opened_container_is_read_only_and_can_be_pickled() -> None:
    root = n5.open(MemoryStore(container()))
    assert root.read_only
    with pytest.raises(ReadOnlyError):
        root["flat"][0] = 1
    with pytest.raises(ReadOnlyError, match="hierarchies of N5"):
        root.create_group("new")
    with pytest.raises(ReadOnlyError):
        root.attrs["title"] = "mine"
    assert pickle.loads(pickle.dumps(root))["flat"][...].tolist() == numbers(7).tolist()


def test_every_listed_key_of_the_view_has_a_value() -> None:
    view = n5.N5Store(MemoryStore({**container(), "flat/0/zarr.json": b"not a node", "old/attributes.json": b"{}"}))
    keys = list(view.list())
    nodes = ["", "flat/", "old/", "setup/", "setup/bare/", "setup/bare/s0/"]
    assert [key for key in keys if key.endswith("zarr.json")] == sorted(f"{node}zarr.json" for node in nodes)
    for key in keys:
        value = bytes(view.get(key) or b"")
        assert view.size(key) == len(value) > 0
        assert bytes(view.get(key, zarrlite.ByteRange(-5, None)) or b"") == value[-5:]
    assert view.get("flat/0/zarr.json") is None


def test_written_documents_open_the_container_as_zarr() -> None:
    store = container()
    del store["old/attributes.json"]
    before = dict(store)
    expected = ["flat/zarr.json", "setup/bare/s0/zarr.json", "setup/bare/zarr.json", "setup/zarr.json", "zarr.json"]
    assert n5.write_documents(store) == expected
    assert n5.write_documents(store) == expected
    assert {key: value for key, value in store.items() if not key.endswith("zarr.json")} == before
    root = zarrlite.open(store, mode="r+")
    assert root["setup/bare/s0"][...].tolist() == numbers(5, 7).tolist()
    assert dict(root["flat"].attrs) == {"unit": "nm"}
    root["flat"][6] = 9
    assert n5.open(store, path="flat")[...].tolist() == [1, 2, 3, 4, 5, 6, 9]


def test_other_documents_are_replaced_only_with_overwrite() -> None:
    store = {**dataset(numbers(4), (2,)), "zarr.json": b"something else"}
    with pytest.raises(NodeExistsError, match=r" already has a different zarr.json; overwrite=True replaces it"):
        n5.write_documents(store)
    assert store["zarr.json"] == b"something else"
    n5.write_documents(store, overwrite=True)
    assert zarrlite.open(store, mode="r")[...].tolist() == [1, 2, 3, 4]


def test_no_document_is_written_if_one_of_them_cannot_be_converted() -> None:
    store = container()
    before = dict(store)
    with pytest.raises(MetadataError, match="lzo"):
        n5.write_documents(store)
    assert store == before
    assert n5.write_documents(store, path="flat") == ["flat/zarr.json"]


# writing


def test_creating_a_dataset_writes_its_attributes_and_the_version_at_the_root(tmp_path: Path) -> None:
    array = n5.create_array(
        tmp_path, path="a/b", shape=(5, 7), dtype="float32", chunks=(3, 2), attributes={"unit": "nm"}
    )
    array[1:, 2] = 1.5
    assert json.loads((tmp_path / "attributes.json").read_text()) == {"n5": "4.0.0"}
    assert json.loads((tmp_path / "a/b/attributes.json").read_text()) == {
        "dimensions": [5, 7],
        "blockSize": [3, 2],
        "dataType": "float32",
        "compression": {"type": "gzip", "level": 6},
        "unit": "nm",
    }
    assert sorted(p.relative_to(tmp_path / "a/b").as_posix() for p in (tmp_path / "a/b").rglob("1")) == [
        "0/1",
        "1",
        "1/1",
    ]
    reopened = n5.open(tmp_path, path="a/b")
    assert reopened[:, 2].tolist() == [0, 1.5, 1.5, 1.5, 1.5]
    assert dict(reopened.attrs) == {"unit": "nm"}
    with pytest.raises(NodeNotFoundError):
        array.resize((9, 9))  # the shape is stored in attributes.json, not in zarr.json


def test_a_new_dataset_at_the_root_has_the_version() -> None:
    store: dict[str, bytes] = {}
    n5.create_array(store, shape=3, dtype="int8", compression=RAW)[...] = 1
    assert json.loads(store["attributes.json"])["n5"] == "4.0.0"
    assert n5.open(store)[...].tolist() == [1, 1, 1]


def test_the_attributes_of_an_existing_root_are_kept() -> None:
    store = {"attributes.json": b'{"n5": "2.0.0", "mine": 1}'}
    n5.create_array(store, path="x", shape=3, dtype="int8")
    assert store["attributes.json"] == b'{"n5": "2.0.0", "mine": 1}'


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"dtype": "bool"}, MetadataError, "new array#/dataType: must be"),
        ({"shape": ()}, MetadataError, "new array#/dimensions: must have 1 to 64 items, not 0"),
        (
            {"compression": {"type": "lzo"}},
            MetadataError,
            'new array#/compression/type: "lzo" is not a known compression',
        ),
        ({"compression": "gzip"}, MetadataError, "new array#/compression: must be an object"),
        (
            {"attributes": {"blockSize": 1}},
            ArgumentError,
            "attributes must not contain 'blockSize', which N5 defines itself",
        ),
        ({"path": "flat"}, NodeExistsError, "'flat' in .* is not empty; overwrite=True replaces its content"),
        ({"path": ""}, NodeExistsError, "'' in .* is not empty; overwrite=True replaces its content"),
        (
            {"path": "flat/7/x"},
            NodeExistsError,
            "'flat/7/x' in .* must not be inside an N5 dataset, whose blocks are stored there",
        ),
    ],
)
def test_a_failed_creation_changes_nothing(keywords: Any, error: type[Exception], message: str) -> None:
    store = container()
    before = dict(store)
    with pytest.raises(error, match=message):
        n5.create_array(store, **{"path": "new", "shape": (4,), "dtype": "uint8", **keywords})
    assert store == before


def test_overwrite_replaces_a_dataset() -> None:
    store = container()
    n5.create_array(store, path="flat", shape=2, dtype="uint8", overwrite=True)[...] = 5
    assert n5.open(store, path="flat")[...].tolist() == [5, 5]
    assert sorted(key for key in store if key.startswith("flat/")) == ["flat/0", "flat/attributes.json"]
