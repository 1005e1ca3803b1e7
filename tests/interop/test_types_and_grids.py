"""Narrow numeric types and rectilinear grids: files are exchanged with tensorstore and with zarrs (in zarrista)."""

from __future__ import annotations

import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required import lacking

import zarrlite
from zarrlite.codecs import Bytes
from zarrlite.data_types import from_dtype

# without `packbits`, which tensorstore does not support
TENSORSTORE = [
    *("bfloat16", "int2", "int4", "float4_e2m1fn", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fn"),
    *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "complex_float32", "complex_float64"),
]
ZARRS = [
    *(name for name in TENSORSTORE if name != "float8_e4m3fn"),
    *("uint2", "uint4", "float6_e2m3fn", "float6_e3m2fn", "float8_e4m3"),
]
SERIALIZERS: dict[str, Any] = {"little": Bytes("little"), "big": Bytes("big"), "packbits": "packbits"}


def peer(name: str) -> Any:
    """Return the module of a peer. Skips the test if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        lacking(f"{name} is not installed")


def every(name: str) -> np.ndarray[Any, Any]:
    """Return all values of a narrow type, or 300 evenly spaced bit patterns; for a complex type, a few numbers."""
    data_type = from_dtype(name)
    if data_type.dtype.itemsize > 2:
        return np.array([1 + 2j, 0, -3.5j, 1, 2, 3, 4] * 3, data_type.dtype)
    count = 2**data_type.packing.bits
    bits = np.linspace(0, count - 1, min(count, 300)).astype(f"u{data_type.dtype.itemsize}")
    return np.resize(bits, max(16, len(bits))).view(data_type.dtype)


def same(found: Any, expected: Any) -> bool:
    """Whether elements are equal. Unused upper bits are ignored, and NaNs are equal whatever their bits."""
    with np.errstate(invalid="ignore"):
        found, expected = (np.asarray(array).astype("complex128") for array in (found, expected))
    return np.array_equal(found, expected, equal_nan=True)


def tensorstore(path: Path, **keywords: Any) -> Any:
    store = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    return peer("tensorstore").open(store, **keywords).result()


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("name", TENSORSTORE)
def test_tensorstore_reads_and_writes_numbers_of_few_bits(tmp_path: Path, name: str, endian: str) -> None:
    data = every(name)
    array = zarrlite.create_array(
        str(tmp_path), data=data, chunks=7, serializer=SERIALIZERS[endian], fill_value=data[-1]
    )
    assert same(tensorstore(tmp_path)[...].read().result(), data)
    tensorstore(tmp_path)[3:9].write(data[:6]).result()
    data[3:9] = data[:6].copy()
    assert same(array[...], data)


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("bfloat16", math.nan, "NaN"),
        ("bfloat16", 0x7FC1, "0x7fc1"),
        ("bfloat16", -math.inf, "-Infinity"),
        ("float8_e4m3fn", math.nan, "NaN"),
        ("float8_e4m3fnuz", math.nan, "NaN"),
        ("float8_e5m2", math.inf, "Infinity"),
        ("float8_e3m4", math.nan, "NaN"),
        ("float4_e2m1fn", 1.5, 1.5),
        ("int4", -3, -3),
        ("int2", -2, -2),
    ],
)
def test_fill_values_of_tensorstore_are_read_bit_for_bit(tmp_path: Path, name: str, value: Any, written: Any) -> None:
    ts = peer("tensorstore")
    scalar = from_dtype(name).parse_fill_value(f"0x{value:04x}") if isinstance(value, int) and value > 99 else value
    tensorstore(tmp_path, create=True, dtype=ts.dtype(name), shape=[4], fill_value=scalar)
    document = json.loads((tmp_path / "zarr.json").read_bytes())
    assert (document["data_type"], document["fill_value"]) == (name, written)
    array = zarrlite.open(str(tmp_path), mode="r")
    expected = from_dtype(name).cast_scalar(scalar)
    assert array[0].tobytes() == expected.tobytes()
    assert array.metadata.to_json()["fill_value"] == written


def test_the_default_fill_value_of_tensorstore_is_read(tmp_path: Path) -> None:
    """tensorstore writes the default fill value 0, which float8_e8m0fnu cannot represent."""
    ts = peer("tensorstore")
    tensorstore(tmp_path, create=True, dtype=ts.dtype("float8_e8m0fnu"), shape=[4])
    assert json.loads((tmp_path / "zarr.json").read_bytes())["fill_value"] == 0
    assert float(zarrlite.open(str(tmp_path), mode="r")[0]) == 2**-127


def zarrs(path: Path) -> Any:
    peer("zarrista")
    store = import_module("zarrista.store").FilesystemStore(str(path))
    return import_module("zarrista").Array.open(store, "/")


def read(array: Any) -> np.ndarray[Any, Any]:
    return np.asarray(array.retrieve_array_subset(tuple(slice(0, n) for n in array.shape)))


@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("name", ZARRS)
def test_zarrs_reads_and_writes_numbers_of_few_bits(tmp_path: Path, name: str, serializer: str) -> None:
    data = every(name)
    array = zarrlite.create_array(
        str(tmp_path), data=data, chunks=7, serializer=SERIALIZERS[serializer], fill_value=data[-1]
    )
    other = zarrs(tmp_path)
    assert same(read(other), data)
    assert other.fill_value.as_bytes()[-1:].hex() == data[-1].tobytes()[-1:].hex() or name.startswith("int")
    other.store_array_subset((slice(3, 9),), data[:6].tobytes())
    data[3:9] = data[:6].copy()
    assert same(array[...], data)


@pytest.mark.parametrize("name", ["complex_float16", "complex_bfloat16"])
def test_zarrs_stores_both_components_in_the_byte_order(tmp_path: Path, name: str) -> None:
    data = np.array([1 + 2j, -3.5j, 4]).astype(from_dtype(name).dtype)
    for endian in ("little", "big"):
        array = zarrlite.create_array(
            str(tmp_path / endian), data=data[::-1], serializer=Bytes(endian), compressors=None, chunks=3
        )
        zarrs(tmp_path / endian).store_array_subset((slice(0, 3),), data.tobytes())
        assert array[...].tobytes() == data.tobytes()


GRIDS: dict[str, Any] = {
    "lists": [[3, 4, 5], [2, 2, 5]],
    "runs": [[[3, 4]], [[1, 3], 6]],
    "a list and a length": [[5, 7], 4],
    "beyond the shape": [[3, 4, 8, 2], [10, 1]],
    "one element each": [[1] * 12, [[1, 9]]],
}


@pytest.mark.parametrize("compressors", [None, "zstd"])
@pytest.mark.parametrize("grid", GRIDS)
def test_zarrs_reads_and_writes_rectilinear_grids(tmp_path: Path, grid: str, compressors: Any) -> None:
    data = np.arange(1, 12 * 9 + 1, dtype="int32").reshape(12, 9)
    array = zarrlite.create_array(str(tmp_path), data=data, chunks=GRIDS[grid], compressors=compressors)
    other = zarrs(tmp_path)
    assert np.array_equal(read(other), data)
    other.store_array_subset((slice(2, 8), slice(1, 6)), -data[2:8, 1:6])
    data[2:8, 1:6] *= -1
    assert np.array_equal(array[...], data)
    array[4:, 3:] = 7
    data[4:, 3:] = 7
    assert np.array_equal(read(other), data)


def test_zarrs_creates_a_rectilinear_grid_that_is_read(tmp_path: Path) -> None:
    peer("zarrista")
    zarrista, stores = import_module("zarrista"), import_module("zarrista.store")
    data = np.arange(60, dtype="uint16").reshape(10, 6)
    document = zarrlite.create_array({}, shape=(10, 6), dtype="uint16", chunks=[[3, 3, 4], [[2, 3]]]).metadata.to_json()
    document["chunk_grid"] = zarrista.ChunkGrid.rectilinear((10, 6), chunk_shapes=[[(3, 2), 4], 2]).metadata
    other = zarrista.Array.from_metadata(document, stores.FilesystemStore(str(tmp_path)), "/")
    other.store_metadata()
    other.store_array_subset((slice(0, 10), slice(0, 6)), data)
    array = zarrlite.open(str(tmp_path), mode="r")
    assert array.write_chunk_sizes == ((3, 3, 4), (2, 2, 2))
    assert np.array_equal(array[...], data)


def test_zarrs_reads_and_writes_rectilinear_shards(tmp_path: Path) -> None:
    data = np.arange(1, 12 * 9 + 1, dtype="int32").reshape(12, 9)
    array = zarrlite.create_array(str(tmp_path), data=data, chunks=(2, 3), shards=[[4, 2, 6], 9])
    other = zarrs(tmp_path)
    assert np.array_equal(read(other), data)
    other.store_array_subset((slice(3, 7), slice(2, 9)), -data[3:7, 2:9])
    data[3:7, 2:9] *= -1
    assert np.array_equal(array[...], data)
