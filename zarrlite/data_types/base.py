"""The base class of data types: a numpy dtype, and the exact conversion of fill values to and from JSON.

Rules
- `parse_fill_value` is strict: it refuses values that the specification does not permit. The JSON pointer in the error
  is relative to the fill value.
- `fill_value_json` takes a scalar from `parse_fill_value` or `cast_scalar`, and returns JSON from which
  `parse_fill_value` restores the same scalar.
- `cast_scalar` takes a value from a caller of the library. It never rounds a fraction to an integer, and never
  truncates text or bytes.
- Data types compare and hash by value, and can be pickled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from zarrlite.errors import FaultKind, MetadataError
from zarrlite.extensions.config import Config, Json, show
from zarrlite.extensions.extension import Extension

NDArray = np.ndarray[Any, Any]
MAX_ITEMSIZE: Final = 2**20  # bytes; larger elements are refused, since parsing a document allocates one element


class Packing(NamedTuple):
    """How the codec `packbits` stores the bits of an element."""

    bits: int  # number of bits in each component
    components: int = 1  # 2 for complex numbers
    signed: bool = False  # whether elements are signed integers, which are sign-extended


class DataType(Extension, ABC):
    """A data type (core spec, Data types).

    `dtype` is the dtype of arrays in memory, in native byte order; codecs determine the byte order on disk.
    """

    kind = "data_type"
    serializer: ClassVar[str] = "bytes"  # the default array -> bytes codec
    endian_optional: ClassVar[bool] = False  # whether the bytes codec may omit `endian`, which then defaults to little

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype in memory, in native byte order."""
        # core spec, Data types: "The native byte order may differ between machines"

    @property
    def itemsize(self) -> int | None:
        """The size of one element in bytes, as stored by the `bytes` codec. None if elements vary in length."""
        # core spec, Data types: "have a fixed size, in the sense that all values require"
        # core spec, Data types: "which MAY have variable sized data types", as extensions
        return self.dtype.itemsize

    @property
    def has_byte_order(self) -> bool:
        """Whether stored elements differ between little and big endian."""
        return False

    @property
    def is_number(self) -> bool:
        """Whether elements are numbers, so that every bit pattern is valid and numpy returns an element as a scalar."""
        return self.dtype.kind in "iufc"

    @property
    def packing(self) -> Packing | None:
        """How `packbits` stores the bits of an element. None if elements are neither numbers nor booleans."""
        kind, components = self.dtype.kind, 2 if self.dtype.kind == "c" else 1
        if kind not in "biufc":
            return None
        return Packing(1 if kind == "b" else 8 * self.dtype.itemsize // components, components, kind == "i")

    def is_raw(self, byte_order: str) -> bool:
        """Whether stored bytes can be viewed as `dtype` in this byte order. If not, `to_bytes` converts elements."""
        return True

    def to_bytes(self, array: NDArray, byte_order: str) -> NDArray:
        """Return the stored bytes of the elements of an array, in row-major order."""
        dtype = self.dtype.newbyteorder(byte_order)  # type: ignore[arg-type]
        return np.ascontiguousarray(array, dtype).reshape(-1).view("u1")

    def from_bytes(self, data: NDArray, byte_order: str) -> NDArray:
        """Return a one-dimensional array of elements, given their stored bytes."""
        dtype = self.dtype.newbyteorder(byte_order)  # type: ignore[arg-type]
        return data.view(dtype).astype(self.dtype, copy=False)

    @property
    def default_fill_value(self) -> Any:
        """The fill value of new arrays, unless the caller passes one."""
        return np.zeros((), self.dtype)[()]

    @abstractmethod
    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        """Return a scalar of `dtype` from JSON. Raises MetadataError, whose JSON pointer is relative to the value.

        Core spec, Array metadata: "Extension data types MUST also define the JSON fill value representation".
        """

    @abstractmethod
    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        """Return the JSON of a scalar. Parsing this JSON restores all bits of the scalar."""

    def cast_scalar(self, value: Any) -> Any:
        """Convert a value from a caller to a scalar of `dtype`. Raises ValueError, TypeError or OverflowError."""
        return np.array(value, dtype=self.dtype)[()]

    def check(self, array: NDArray) -> str | None:
        """Describe an invalid bit pattern in decoded elements. Returns None if all of them are valid."""
        return None

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        """Return the data type for a numpy dtype. Returns None if this class does not support it."""
        return None


class NamedType(DataType):
    """A data type without configuration. A class may have several names; the one that was read is written back."""

    def __init__(self, name: str = "") -> None:
        object.__setattr__(self, "name", name or type(self).name)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.name == other.name

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.name)

    def to_json(self) -> Json:
        # core spec, Array metadata: "the value must be the data type identifier provided as a string"
        # core spec, Data types: "the identifier is a simple ASCII string"
        return self.name

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        return cls(dtype.name) if dtype.name in (cls.name, *cls.aliases) else None


def refuse(message: str, pointer: str = "", kind: FaultKind = "value") -> MetadataError:
    """Return an error about a fill value; its JSON pointer is relative to the fill value."""
    return MetadataError(message, pointer=pointer, kind=kind)


def wrong_type(expected: str, value: Json) -> MetadataError:
    """Return an error about a JSON value of the wrong type."""
    return refuse(f"must be {expected}, not {show(value)}", kind="type")
