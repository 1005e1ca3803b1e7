"""zarrlite and zarr-python read each other's data types and fill values as the same scalars."""

from __future__ import annotations

import importlib
import json
import os
import warnings

import numpy as np
import pytest

from zarrlite.data_types import from_dtype

required = os.environ.get("ZARRLITE_REQUIRE_PEERS")
zarr = importlib.import_module("zarr") if required else pytest.importorskip("zarr")

NAN = np.array(0x7FC00001, np.uint32).view(np.float32)[()]

# numpy dtype or name in zarr-python, fill values
CASES = [
    ("bool", [True, False]),
    *((f"{sign}int{w}", [0, 1, 2 ** (w - 1) - 1]) for sign in ("", "u") for w in (8, 16, 32, 64)),
    ("int64", [-(2**63)]),
    *((f"float{w}", [0.0, -0.0, 0.1, -1.5, float("inf"), float("-inf"), float("nan"), 6e-8]) for w in (16, 32, 64)),
    *((f"complex{w}", [0, 1 + 2j, complex("inf"), complex("nan"), complex(0.1, -0.0)]) for w in (64, 128)),
    ("U5", ["", "abc", "zwölf", "🦓"]),
    ("S5", [b"", b"abc", b"\0a", b"\xff\xfe"]),
    ("V3", [np.void(b"\0\0\0"), np.void(b"\1\2\3")]),
    ("M8[ns]", [np.datetime64("NaT", "ns"), np.datetime64("2020-01-01", "ns"), np.datetime64(-1, "ns")]),
    ("M8[10s]", [np.datetime64(50, "10s")]),
    ("m8[us]", [np.timedelta64("NaT", "us"), np.timedelta64(5, "us")]),
    (np.dtypes.StringDType(), ["", "zwölf 🦓"]),
    ([("x", "f4"), ("y", "S2")], [np.array((1.5, b"ab"), [("x", "f4"), ("y", "S2")])[()]]),
    ([("x", "i2"), ("n", [("z", "c8"), ("t", "M8[s]")])],
     [np.array((-2, (1j, 5)), [("x", "i2"), ("n", [("z", "c8"), ("t", "M8[s]")])])[()]]),
    ("variable_length_bytes", [b"", b"abc", b"\0\xff"]),
]  # fmt: skip


def written_by_zarr_python(dtype, fill_value) -> dict:
    store = zarr.storage.MemoryStore()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr-python warns about types without a specification
        zarr.create_array(store, shape=(1,), dtype=dtype, fill_value=fill_value, compressors=None)
    return json.loads(store._store_dict["zarr.json"].to_bytes())


def as_bytes(data_type, scalar) -> bytes:
    if data_type.itemsize is None:
        return scalar.encode() if isinstance(scalar, str) else scalar
    return np.array(scalar, data_type.dtype).tobytes()


@pytest.mark.parametrize(("dtype", "fill_value"), [(dtype, value) for dtype, values in CASES for value in values])
def test_data_types_written_by_zarr_python_are_read(dtype, fill_value):
    numpy_dtype = dtype if dtype == "variable_length_bytes" else np.dtype(dtype)
    document = written_by_zarr_python(numpy_dtype, fill_value)
    data_type = from_dtype(document["data_type"])
    assert data_type.to_json() == document["data_type"]
    scalar = data_type.parse_fill_value(document["fill_value"])
    assert as_bytes(data_type, scalar) == as_bytes(data_type, data_type.cast_scalar(fill_value))
    if data_type.itemsize is not None:
        assert data_type.dtype == numpy_dtype


@pytest.mark.parametrize(("dtype", "fill_value"), [(dtype, value) for dtype, values in CASES for value in values])
def test_zarr_python_reads_fill_values_of_zarrlite(dtype, fill_value):
    numpy_dtype = dtype if dtype == "variable_length_bytes" else np.dtype(dtype)
    document = written_by_zarr_python(numpy_dtype, fill_value)
    data_type = from_dtype(document["data_type"])
    document["fill_value"] = data_type.fill_value_json(data_type.cast_scalar(fill_value))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metadata = zarr.core.metadata.ArrayV3Metadata.from_dict(document)
    theirs = metadata.fill_value
    assert as_bytes(data_type, theirs) == as_bytes(data_type, data_type.cast_scalar(fill_value))


def test_zarr_python_reads_a_nan_with_a_payload():
    document = written_by_zarr_python(np.dtype("float32"), 0)
    document["fill_value"] = from_dtype("float32").fill_value_json(NAN)
    assert document["fill_value"] == "0x7fc00001"
    assert zarr.core.metadata.ArrayV3Metadata.from_dict(document).fill_value.tobytes() == NAN.tobytes()
