"""Conversions shared by several data types: bytes, text and numbers, from JSON and from callers.

Rules
- Functions named `parse_...` take JSON and raise MetadataError. Functions named `cast_...` take Python objects and
  raise TypeError or ValueError.
- Nothing is truncated or padded here: a value of the wrong size is refused.

In comments, "extension bytes" and "extension string" are data-types/bytes and data-types/string in zarr-extensions.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from zarrlite.data_types.base import refuse, wrong_type
from zarrlite.extensions.config import Json, decode_base64, is_integer, show


def parse_bytes(value: Json) -> bytes:
    """Return bytes from an array of integers or from base64."""
    # extension bytes, Fill value encoding: "a string produced by applying base64 encoding"
    if isinstance(value, str):
        try:
            return decode_base64(value)
        except ValueError as error:
            raise refuse(str(error)) from None
    if not isinstance(value, list):
        raise wrong_type("an array of integers or a base64 string", value)
    # extension bytes, Fill value encoding: "an array of integers from the closed interval [0, 255]"
    for i, item in enumerate(value):
        if not is_integer(item):
            raise wrong_type("an integer", item).under(f"/{i}")
        if not 0 <= item <= 255:
            raise refuse(f"must be an integer from 0 to 255, not {show(item)}", f"/{i}")
    return bytes(value)


def parse_exact_bytes(value: Json, length: int) -> np.void:
    """Return `length` bytes from an array of integers or from base64."""
    data = parse_bytes(value)
    if len(data) != length:
        raise refuse(f"must have {length} bytes, not {len(data)}")
    return np.void(data)


def write_base64(data: bytes) -> str:
    """Encode bytes as base64 (RFC 4648 section 4)."""
    import base64  # imported late, because few arrays need it

    return base64.b64encode(data).decode()


def parse_text(value: Json) -> str:
    """Return a string. Refuses lone surrogates, which JSON can express."""
    if not isinstance(value, str):
        raise wrong_type("a string", value)
    # extension string, Permitted fill values: "must be unicode string"
    if not is_text(value):
        raise refuse(f"must be Unicode text; {show(value)} has a lone surrogate")
    return value


def is_text(value: str) -> bool:
    """Whether a string has no lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def unwrap(value: Any) -> Any:
    """Return the element of a 0-dimensional array. Returns other values unchanged."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def cast_number(value: Any, name: str, kind: type = numbers.Real) -> Any:
    """Return a Python or numpy number. Booleans are accepted; text and durations are refused."""
    value = unwrap(value)
    if not isinstance(value, (kind, np.bool)) or isinstance(value, np.timedelta64):
        raise TypeError(f"{name} needs a number, not {value!r}")
    return value


def cast_bytes(value: Any, name: str) -> bytes:
    """Return the bytes of a bytes-like scalar."""
    value = unwrap(value)
    if isinstance(value, np.void):
        return value.tobytes()
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} needs bytes, not {value!r}")
    return bytes(value)


def cast_exact_bytes(value: Any, name: str, length: int) -> np.void:
    """Return the bytes of a bytes-like scalar, whose length must be `length`."""
    data = cast_bytes(value, name)
    if len(data) != length:
        raise ValueError(f"{name} needs {length} bytes, not {len(data)}")
    return np.void(data)


def cast_text(value: Any, name: str) -> str:
    """Return a Python string without lone surrogates."""
    value = unwrap(value)
    if not isinstance(value, str):
        raise TypeError(f"{name} needs a string, not {value!r}")
    if not is_text(value):
        raise ValueError(f"{name} needs Unicode text; {value!r} has a lone surrogate")
    return str(value)
