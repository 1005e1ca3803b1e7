"""Conversion of numpy dtypes, Python types, names and JSON to data types.

Rules
- Names from Zarr take precedence over names from numpy, such as "<f4" or "M8[s]": "bytes" is the Zarr data type, not
  numpy's S0.
- Byte order is not part of a data type: ">f4" is float32.
- A dtype that has no equivalent Zarr data type is refused with an error that suggests another one; no dtype is
  silently replaced.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from zarrlite.data_types.base import DataType
from zarrlite.errors import ArgumentError
from zarrlite.extensions.extension import Extension
from zarrlite.extensions.registry import data_types

# Python and numpy types of variable length, for which `np.dtype` would return a dtype of size zero or an object dtype.
_VARIABLE: Final[dict[Any, str]] = {str: "string", "str": "string", bytes: "bytes", np.dtypes.StringDType: "string"}

# numpy's dtype kind -> name of the data type; dtypes of other kinds have the same names in numpy and in Zarr.
_BY_KIND: Final = {
    "S": "null_terminated_bytes",
    "U": "fixed_length_utf32",
    "T": "string",
    "M": "numpy.datetime64",
    "m": "numpy.timedelta64",
}

# name in ml_dtypes -> name of the data type, where they differ
_BY_NAME: Final = {"complex32": "complex_float16", "bcomplex32": "complex_bfloat16"}

# numpy's dtype kind -> the remedy for a dtype with a size of zero bytes
_ZERO_SIZE: Final = {
    "S": 'use "bytes" for any length, or S<n>',
    "U": 'use "string" for any length, or U<n>',
    "V": "use V<n>, or at least one field",
}


def from_dtype(value: Any) -> DataType:
    """Return the data type for a numpy dtype, a Python type, a name or the JSON from zarr.json.

    >>> from_dtype(">f4").to_json()
    'float32'
    >>> from_dtype(str).to_json()
    'string'
    >>> from_dtype("U2").to_json()
    {'name': 'fixed_length_utf32', 'configuration': {'length_bytes': 8}}
    """
    if callable(getattr(value, "to_native_dtype", None)):  # an object from zarr-python or `zarrlite.dtype`
        value = value.to_json(zarr_format=3)
    if isinstance(value, (type, str)) and value in _VARIABLE:
        value = _VARIABLE[value]
    if isinstance(value, Extension) or (isinstance(value, dict) and "name" in value) or _is_name(value):
        return _coerce(value)
    try:
        dtype = np.dtype(value) if value is not None else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is not None:
        return from_numpy(dtype)
    if isinstance(value, str):
        return _coerce(value)  # the name may match a pattern, belong to an installed package, or be unknown
    raise ArgumentError(f"a data type must be a numpy dtype, a name or the JSON from zarr.json, not {value!r}")


def _is_name(value: Any) -> bool:
    """Whether a value is the name of a data type that is registered or built in."""
    return isinstance(value, str) and value in data_types.names()


def _coerce(value: Any) -> DataType:
    """Return the data type that an extension object, JSON or a name denotes."""
    data_type: DataType = data_types.coerce(value)
    return data_type


def from_numpy(dtype: np.dtype[Any]) -> DataType:
    """Return the data type for a numpy dtype."""
    if dtype.kind == "O":
        raise ArgumentError('Python objects cannot be stored; use "string" or "bytes" as the data type')
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        raise ArgumentError(
            f"Zarr has no subarray data types; use {base} with additional dimensions {shape}, or more fields"
        )
    if dtype.itemsize == 0:
        raise ArgumentError(f"{dtype!r} must not have a size of zero; {_ZERO_SIZE[dtype.kind]}")
    cls = data_types.find(_name_for(dtype))
    data_type: DataType | None = cls.from_dtype(dtype) if cls else None
    if data_type is None:
        raise ArgumentError(f"Zarr has no data type for {dtype}; the closest one is {_closest(dtype)}")
    return data_type


def _name_for(dtype: np.dtype[Any]) -> str:
    """Return the name of a data type that may accept a dtype. The name need not be registered."""
    if dtype.names is not None:
        return "struct"  # including np.record
    if dtype.type is np.void:  # other types of kind V are defined by other packages, for example bfloat16
        return "r8"
    return _BY_KIND.get(dtype.kind) or _BY_NAME.get(dtype.name, dtype.name)


def _closest(dtype: np.dtype[Any]) -> str:
    """Return the name of the data type to suggest for a dtype that Zarr does not have."""
    return {"f": "float64", "c": "complex128"}.get(dtype.kind, f"r{8 * dtype.itemsize}")
