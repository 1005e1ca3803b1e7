"""From what a caller calls a data type to the data type.

Rules
- Names are those of zarr.json first ("bytes" is the Zarr type, not numpy's S0), then numpy's ("<f4", "datetime64[s]").
- Byte order is no part of a data type: ">f4" is float32.
- What Zarr has no type for is refused with what would be right; no dtype is changed in silence.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from zarrlite.data_types.base import DataType
from zarrlite.errors import ArgumentError
from zarrlite.extensions.extension import Extension
from zarrlite.extensions.registry import data_types

# Types that stand for a variable length, which numpy would take for a length of zero or for any object.
_VARIABLE: Final[dict[Any, str]] = {str: "string", bytes: "bytes", np.dtypes.StringDType: "string"}

# The names of numpy's other types are those of Zarr.
_BY_KIND: Final = {
    "S": "null_terminated_bytes",
    "U": "fixed_length_utf32",
    "T": "string",
    "M": "numpy.datetime64",
    "m": "numpy.timedelta64",
}

_ZERO_SIZE: Final = {
    "S": 'name "bytes" for any length, or S<n>',
    "U": 'name "string" for any length, or U<n>',
    "V": "give a length, as in V<n>, or at least one field",
}


def from_dtype(value: Any) -> DataType:
    """The data type for a numpy dtype, a Python type, a name or the JSON of zarr.json.

    >>> from_dtype(">f4").to_json()
    'float32'
    >>> from_dtype(str).to_json()
    'string'
    >>> from_dtype("U2").to_json()
    {'name': 'fixed_length_utf32', 'configuration': {'length_bytes': 8}}
    """
    if isinstance(value, type) and value in _VARIABLE:
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
        return _coerce(value)  # a name that only a pattern or an installed package knows, or nobody
    raise ArgumentError(f"{value!r} is not a data type: give a numpy dtype, a name or the JSON of zarr.json")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value in data_types.names()


def _coerce(value: Any) -> DataType:
    data_type: DataType = data_types.coerce(value)
    return data_type


def from_numpy(dtype: np.dtype[Any]) -> DataType:
    """The data type for a numpy dtype."""
    if dtype.kind == "O":
        raise ArgumentError('Zarr does not store Python objects: name "string" or "bytes" as the data type')
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        raise ArgumentError(f"Zarr has no subarrays; use {base} and more dimensions {shape} or more fields")
    if dtype.itemsize == 0:
        raise ArgumentError(f"{dtype!r} has no size; {_ZERO_SIZE[dtype.kind]}")
    cls = data_types.find(_name_for(dtype))
    data_type: DataType | None = cls.from_dtype(dtype) if cls else None
    if data_type is None:
        raise ArgumentError(f"Zarr has no data type for {dtype}; the nearest that it has is {_nearest(dtype)}")
    return data_type


def _name_for(dtype: np.dtype[Any]) -> str:
    if dtype.names is not None:
        return "struct"  # of np.record as well
    if dtype.type is np.void:  # others of kind V are extensions of numpy, such as bfloat16
        return "r8"
    return _BY_KIND.get(dtype.kind, dtype.name)


def _nearest(dtype: np.dtype[Any]) -> str:
    return {"f": "float64", "c": "complex128"}.get(dtype.kind, f"r{8 * dtype.itemsize}")
