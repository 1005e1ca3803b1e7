"""What a data type is: a numpy dtype in memory, and fill values in JSON, both ways and bit for bit.

Rules
- `parse_fill_value` is strict: what the specification does not allow is refused, with a pointer relative to the value.
- `fill_value_json` takes a scalar that `parse_fill_value` or `cast_scalar` made, and writes the JSON that parses to it.
- `cast_scalar` takes what a caller of the library gave; it never rounds a fraction away and never cuts anything off.
- Data types compare and hash by value, and pickle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, Self

import numpy as np

from zarrlite.errors import FaultKind, MetadataError
from zarrlite.extensions.config import Config, Json, show
from zarrlite.extensions.extension import Extension

MAX_ITEMSIZE: Final = 2**20  # bytes; a fill value is an element, so elements are what a document makes us hold


class DataType(Extension, ABC):
    """One data type.

    `dtype` is what arrays have in memory, in native byte order; byte order on disk is a matter of codecs.
    """

    kind = "data_type"
    serializer: ClassVar[str] = "bytes"  # the array -> bytes codec that fits unless the user says otherwise
    endian_optional: ClassVar[bool] = False  # whether the bytes codec may lack `endian` and then means little

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype in memory."""

    @property
    def itemsize(self) -> int | None:
        """Bytes of one element as the `bytes` codec stores it; None: of variable length."""
        return self.dtype.itemsize

    @property
    def has_byte_order(self) -> bool:
        """Whether elements differ between little and big endian."""
        return False

    @property
    def default_fill_value(self) -> Any:
        """What a new array is filled with unless the user says otherwise."""
        return np.zeros((), self.dtype)[()]

    @abstractmethod
    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        """A scalar of `dtype` from JSON; raises what `refuse` makes, with a pointer relative to the value."""

    @abstractmethod
    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        """The JSON that parses to this scalar, bit for bit."""

    def cast_scalar(self, value: Any) -> Any:
        """A scalar of `dtype` from what a caller gave; ValueError, TypeError or OverflowError if it does not fit."""
        return np.array(value, dtype=self.dtype)[()]

    def check(self, array: np.ndarray[Any, Any]) -> str | None:
        """What is wrong with elements fresh from disk, where not every bit pattern is a value; None: nothing."""
        return None

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        """The data type for a numpy dtype, if this class serves it."""
        return None


class NamedType(DataType):
    """A data type that is its name and nothing more; one class serves a family of names, each written back as read."""

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
        return self.name

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        return cls(dtype.name) if dtype.name in (cls.name, *cls.aliases) else None


def refuse(message: str, pointer: str = "", kind: FaultKind = "value") -> MetadataError:
    """A fault of a fill value; whoever knows where it stands adds that."""
    return MetadataError(message, pointer=pointer, kind=kind)


def wrong_type(wanted: str, value: Json) -> MetadataError:
    """The fault of a JSON value of the wrong type."""
    return refuse(f"must be {wanted}, not {show(value)}", kind="type")
