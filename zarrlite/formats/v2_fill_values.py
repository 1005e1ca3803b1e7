"""Fill values of Zarr v2, in all the forms that its writers use.

Rules (Zarr v2, Fill value encoding)
- null leaves missing elements undefined; they are read as the default fill value of the data type.
- For strings, byte strings and records, 0 and "" stand for an element whose bytes are all zero, or for an empty one if
  the length can vary. zarr-python 2 writes 0 even for objects.
- A number may be a decimal string (n5-zarr), or the literal NaN or Infinity. An integer may be written as `1.0`.
- A complex number is a pair of numbers, or a single real number.
- Byte strings, raw bytes and records are written as their stored bytes in base64. A byte string that is not valid
  base64 is taken literally (netCDF-C, GDAL).
- A value that is not valid for the data type is refused.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import numpy as np

from zarrlite.data_types import DataType
from zarrlite.data_types.base import refuse
from zarrlite.extensions import registry
from zarrlite.extensions.config import Json, decode_base64, show

_is_integer_text = re.compile(r"[-+]?[0-9]{1,40}").fullmatch
_is_number_text = re.compile(r"[-+]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,4})?").fullmatch
_match_constant = re.compile(r"([-+]?)(nan|inf|infinity)", re.IGNORECASE).fullmatch


def parse_fill_value(value: Json, data_type: DataType, byte_order: str) -> Any:
    """Return a fill value as a scalar. Raises MetadataError, with a JSON pointer relative to the value."""
    if value is None:
        return data_type.default_fill_value
    parse = _NUMBERS.get(data_type.name)
    if parse is not None:
        return data_type.parse_fill_value(parse(value), byte_order)
    if value == "" or (isinstance(value, (int, float)) and value == 0):
        return _zero(data_type)
    if data_type.name == "null_terminated_bytes":
        value = _byte_string(value)
    elif data_type.name == "struct":  # the value is packed bytes, which only the older type `structured` accepts
        data_type = registry.data_types.coerce({**data_type.to_json(), "name": "structured"})
    return data_type.parse_fill_value(value, byte_order)


def _zero(data_type: DataType) -> Any:
    """Return the scalar whose bytes are all zero, or the empty scalar if elements vary in length."""
    if data_type.itemsize is None:
        return data_type.default_fill_value
    return np.frombuffer(bytes(data_type.itemsize), data_type.dtype)[0]


def _boolean(value: Json) -> Json:
    return bool(value) if isinstance(value, (int, float)) and value in (0, 1) else value


def _integer(value: Json) -> Json:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and _is_integer_text(value):
        return int(value)
    number = _number(value)
    if isinstance(number, float) and math.isfinite(number) and number == math.floor(number):
        return int(number)
    return value


def _number(value: Json) -> Json:
    """Return the Zarr v3 JSON of a floating-point number."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    if not isinstance(value, str):
        return value
    constant = _match_constant(value)
    if constant:
        sign, name = constant.groups()
        if name.lower() == "nan":
            return "NaN"
        return "-Infinity" if sign == "-" else "Infinity"
    return float(value) if _is_number_text(value) else value


def _complex(value: Json) -> Json:
    if isinstance(value, list):
        return [_number(part) for part in value]
    return [_number(value), 0.0]


def _time(value: Json) -> Json:
    return value if value == "NaT" else _integer(value)


# data type -> function from the JSON of Zarr v2 to that of Zarr v3
_NUMBERS: Final = {
    "bool": _boolean,
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), _integer),
    **dict.fromkeys(("float16", "float32", "float64"), _number),
    **dict.fromkeys(("complex64", "complex128"), _complex),
    **dict.fromkeys(("numpy.datetime64", "numpy.timedelta64"), _time),
}


def _byte_string(value: Json) -> Json:
    """Convert a byte string to a list of integers, one for each byte."""
    if not isinstance(value, str):
        return value
    try:
        return list(decode_base64(value))
    except ValueError:
        pass
    try:
        return list(value.encode("latin-1"))
    except UnicodeEncodeError:
        raise refuse(f"must be base64 or Latin-1 text, not {show(value)}") from None
