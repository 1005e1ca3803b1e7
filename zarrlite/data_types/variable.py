"""Text and bytes of variable length: `string` and `bytes`.

Rules
- Elements have no fixed size, so the codec `bytes` cannot store them. The default codecs are `vlen-utf8` and
  `vlen-bytes`.
- The name `variable_length_bytes`, which zarr-python uses for `bytes`, is written back if it was read.

In comments, "extension string" and "extension bytes" are data-types/string and data-types/bytes in zarr-extensions.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from zarrlite.cached import cached_property
from zarrlite.data_types.base import NamedType
from zarrlite.data_types.scalars import cast_bytes, cast_text, parse_bytes, parse_text, write_base64
from zarrlite.errors import ArgumentError
from zarrlite.extensions.config import Json
from zarrlite.extensions.registry import register


@register
class String(NamedType):
    """Text of variable length, held in memory as numpy's StringDType."""

    name = "string"
    # extension string, Notes: "only compatible with the vlen-utf8 codec"
    serializer = "vlen-utf8"

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtypes.StringDType()

    @property
    def itemsize(self) -> None:
        return None

    @property
    def default_fill_value(self) -> str:
        return ""

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> str:
        # extension string, Permitted fill values: "must be unicode string"
        return parse_text(value)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return str(value)

    def cast_scalar(self, value: Any) -> str:
        return cast_text(value, self.name)

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        if hasattr(dtype, "na_object"):
            raise ArgumentError(f"missing values cannot be stored; use numpy.dtypes.StringDType(), not {dtype!r}")
        return cls()


@register
class Bytes(NamedType):
    """Byte strings of variable length, held in memory as Python objects."""

    name = "bytes"
    aliases = ("variable_length_bytes",)
    # extension bytes, Codec compatibility: "any codec that can encode variable-length sequences of bytes"
    serializer = "vlen-bytes"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(object)

    @property
    def itemsize(self) -> None:
        return None

    @property
    def default_fill_value(self) -> bytes:
        return b""

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> bytes:
        # extension bytes, Fill value encoding: "must be one of" an array of integers and a base64 string
        return parse_bytes(value)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return write_base64(value)

    def cast_scalar(self, value: Any) -> bytes:
        return cast_bytes(value, self.name)
