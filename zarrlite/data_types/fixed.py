"""Text and bytes of fixed length: `fixed_length_utf32`, `null_terminated_bytes`, `raw_bytes`.

Rules
- `length_bytes` is the size of every element; shorter text is padded with NUL, as in numpy.
- A fill value that is too long is refused, never truncated.
- `null_terminated_bytes` and `raw_bytes` have no specification; they follow zarr-python.

In comments, "extension fixed_length_utf32" is data-types/fixed_length_utf32/README.md in zarr-extensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from zarrlite.cached import cached_property
from zarrlite.data_types.base import MAX_ITEMSIZE, DataType, NDArray, refuse
from zarrlite.data_types.scalars import (
    cast_bytes,
    cast_exact_bytes,
    cast_text,
    parse_bytes,
    parse_exact_bytes,
    parse_text,
    write_base64,
)
from zarrlite.extensions.config import Config, Json, show
from zarrlite.extensions.registry import register


@dataclass(frozen=True)
class FixedLength(DataType):
    """The base class of the three data types of fixed length."""

    length_bytes: int
    code: ClassVar[str]  # numpy's type code
    unit: ClassVar[int] = 1  # bytes; the unit in which numpy counts the length of an element

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # extension fixed_length_utf32, Configuration: "positive integer, multiple of 4"
        length = config.integer("length_bytes", 1)
        if length > MAX_ITEMSIZE:
            raise config.error(f"must be at most {MAX_ITEMSIZE}, not {length}", "length_bytes", "limit")
        if length % cls.unit:
            raise config.error(f"must be a multiple of {cls.unit}, not {length}", "length_bytes")
        return cls(length)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"{self.code}{self.length_bytes // self.unit}")

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        return cls(dtype.itemsize)


@register
class FixedLengthUtf32(FixedLength):
    """Strings of at most `length_bytes / 4` code points."""

    name = "fixed_length_utf32"
    code, unit = "U", 4

    @property
    def has_byte_order(self) -> bool:
        return True

    @property
    def _capacity(self) -> int:
        """The largest number of code points in an element."""
        # extension fixed_length_utf32, length_bytes: "UTF-32 uses 4 bytes per code point"
        return self.length_bytes // self.unit

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        text = parse_text(value)
        # extension fixed_length_utf32, JSON scalar encoding: "is invalid and MUST be rejected"
        if len(text) > self._capacity:
            raise refuse(f"must have at most {self._capacity} code points; {show(text)} has {len(text)}")
        return self._scalar(text)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return str(value)

    def cast_scalar(self, value: Any) -> Any:
        text = cast_text(value, self.name)
        if len(text) > self._capacity:
            raise ValueError(f"{self.name} holds at most {self._capacity} code points, but {text!r} has {len(text)}")
        return self._scalar(text)

    def _scalar(self, text: str) -> Any:
        """Return a scalar without trailing padding."""
        # extension fixed_length_utf32, JSON scalar encoding: "trailing U+0000 padding code points removed"
        return np.array(text, self.dtype)[()]

    def check(self, array: NDArray) -> str | None:
        codes = np.ascontiguousarray(array).view(np.dtype("u4").newbyteorder(array.dtype.byteorder))
        invalid = codes[(codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))]
        return f"0x{invalid[0]:x} is not a Unicode character" if invalid.size else None


@register
class NullTerminatedBytes(FixedLength):
    """Byte strings of at most `length_bytes`; trailing NULs are padding."""

    name = "null_terminated_bytes"
    code = "S"

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        data = parse_bytes(value)
        if len(data) > self.length_bytes:
            raise refuse(f"must have at most {self.length_bytes} bytes, not {len(data)}")
        return self._scalar(data)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return write_base64(bytes(value))

    def cast_scalar(self, value: Any) -> Any:
        data = cast_bytes(value, self.name)
        if len(data) > self.length_bytes:
            raise ValueError(f"{self.name} holds at most {self.length_bytes} bytes, not {len(data)}")
        return self._scalar(data)

    def _scalar(self, data: bytes) -> Any:
        return np.array(data, self.dtype)[()]


@register
class RawBytes(FixedLength):
    """Opaque bytes, like the core type `r*`, under the name that zarr-python uses."""

    name = "raw_bytes"
    code = "V"

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> np.void:
        return parse_exact_bytes(value, self.length_bytes)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return write_base64(value.tobytes())

    def cast_scalar(self, value: Any) -> np.void:
        return cast_exact_bytes(value, self.name, self.length_bytes)
