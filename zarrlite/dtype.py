"""Data types under zarr-python's names: `zarrlite.dtype.Int8`, `parse_dtype` and others.

A `ZDType` wraps one of the data types in `zarrlite.data_types`, and has the methods that scripts written for
zarr-python call. Every parameter named `dtype` accepts a `ZDType`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from zarrlite.data_types import DataType, from_dtype
from zarrlite.errors import ArgumentError
from zarrlite.extensions.config import Json

__all__ = [
    "Bool",
    "Complex64",
    "Complex128",
    "DateTime64",
    "FixedLengthUTF32",
    "Float16",
    "Float32",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "NullTerminatedBytes",
    "RawBytes",
    "Struct",
    "Structured",
    "TimeDelta64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "VariableLengthBytes",
    "VariableLengthUTF8",
    "ZDType",
    "parse_dtype",
]

Endianness = Literal["little", "big"]


class ZDType:
    """A data type with zarr-python's interface. Create one with `parse_dtype` or a subclass.

    Parameters
    ----------
    data_type : DataType
        The data type.
    endianness : {"little", "big"}, optional
        The byte order, as Zarr v2 records it. It has no effect in Zarr v3, where the codecs determine the byte order.

    Examples
    --------
    >>> parse_dtype(">i2").to_json(zarr_format=3)
    'int16'
    """

    name: ClassVar[str] = ""  # the name of the data type in zarr.json

    def __init__(self, data_type: DataType, endianness: Endianness = "little") -> None:
        self.data_type = data_type
        self.endianness: Endianness = endianness

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_native_dtype()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZDType) and (self.data_type, self.endianness) == (other.data_type, other.endianness)

    def __hash__(self) -> int:
        return hash((self.data_type, self.endianness))

    @classmethod
    def from_native_dtype(cls, dtype: npt.DTypeLike) -> Self:
        """Return the data type for a numpy dtype. Raises ArgumentError if that data type is of another class."""
        found = parse_dtype(dtype)
        if not isinstance(found, cls):
            raise ArgumentError(f"dtype must correspond to {cls.__name__}, not {dtype!r}, which is {found!r}")
        return found

    def to_native_dtype(self) -> np.dtype[Any]:
        """Return the numpy dtype."""
        dtype = self.data_type.dtype
        return dtype.newbyteorder(">") if self.endianness == "big" and self.data_type.has_byte_order else dtype

    def to_json(self, zarr_format: Literal[2, 3] = 3) -> Json:
        """Return the data type as JSON: as in zarr.json or, for Zarr v2, in the format of zarr-python."""
        if zarr_format == 3:
            return self.data_type.to_json()
        if self.data_type.itemsize is None:
            return {"name": "|O", "object_codec_id": self.data_type.serializer}
        dtype = self.to_native_dtype()
        name: Any = dtype.str if dtype.names is None else [[field, dtype[field].str] for field in dtype.names]
        return {"name": name, "object_codec_id": None}

    def default_scalar(self) -> Any:
        """Return the fill value of arrays that are created without one."""
        return self.data_type.default_fill_value

    def cast_scalar(self, data: object) -> Any:
        """Convert a value to a scalar of this data type. Raises ArgumentError if that is not possible."""
        try:
            return self.data_type.cast_scalar(data)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(f"{data!r} cannot be converted to {self.data_type.name}: {error}") from None

    def to_json_scalar(self, data: object, *, zarr_format: Literal[3] = 3) -> Json:
        """Return a scalar as JSON, in the form that zarr.json uses for fill values."""
        return self.data_type.fill_value_json(self.cast_scalar(data))

    def from_json_scalar(self, data: Json, *, zarr_format: Literal[3] = 3) -> Any:
        """Return a fill value from zarr.json as a scalar. Raises MetadataError if it is invalid."""
        return self.data_type.parse_fill_value(data)


class _Number(ZDType):
    def __init__(self, endianness: Endianness = "little") -> None:
        super().__init__(from_dtype(self.name), endianness)


class Bool(_Number):
    """True or False."""

    name = "bool"


class Int8(_Number):
    """8-bit signed integers."""

    name = "int8"


class Int16(_Number):
    """16-bit signed integers."""

    name = "int16"


class Int32(_Number):
    """32-bit signed integers."""

    name = "int32"


class Int64(_Number):
    """64-bit signed integers."""

    name = "int64"


class UInt8(_Number):
    """8-bit unsigned integers."""

    name = "uint8"


class UInt16(_Number):
    """16-bit unsigned integers."""

    name = "uint16"


class UInt32(_Number):
    """32-bit unsigned integers."""

    name = "uint32"


class UInt64(_Number):
    """64-bit unsigned integers."""

    name = "uint64"


class Float16(_Number):
    """16-bit floating-point numbers."""

    name = "float16"


class Float32(_Number):
    """32-bit floating-point numbers."""

    name = "float32"


class Float64(_Number):
    """64-bit floating-point numbers."""

    name = "float64"


class Complex64(_Number):
    """Complex numbers with two 32-bit components."""

    name = "complex64"


class Complex128(_Number):
    """Complex numbers with two 64-bit components."""

    name = "complex128"


class VariableLengthUTF8(_Number):
    """Text of any length."""

    name = "string"


class VariableLengthBytes(_Number):
    """Bytes of any length."""

    name = "bytes"


class FixedLengthUTF32(ZDType):
    """Text of at most `length` characters."""

    name = "fixed_length_utf32"

    def __init__(self, *, length: int, endianness: Endianness = "little") -> None:
        super().__init__(from_dtype(f"U{length}"), endianness)


class NullTerminatedBytes(ZDType):
    """At most `length` bytes. Trailing zero bytes are not part of the value."""

    name = "null_terminated_bytes"

    def __init__(self, *, length: int) -> None:
        super().__init__(from_dtype(f"S{length}"))


class RawBytes(ZDType):
    """Exactly `length` bytes."""

    name = "raw_bytes"

    def __init__(self, *, length: int) -> None:
        super().__init__(from_dtype({"name": self.name, "configuration": {"length_bytes": length}}))


class _Time(ZDType):
    def __init__(self, *, unit: str = "generic", scale_factor: int = 1, endianness: Endianness = "little") -> None:
        configuration: Json = {"unit": unit, "scale_factor": scale_factor}
        super().__init__(from_dtype({"name": self.name, "configuration": configuration}), endianness)


class DateTime64(_Time):
    """Points in time, counted in steps of `scale_factor` units."""

    name = "numpy.datetime64"


class TimeDelta64(_Time):
    """Durations, counted in steps of `scale_factor` units."""

    name = "numpy.timedelta64"


class Structured(ZDType):
    """Records with named fields."""

    name = "struct"

    def __init__(self, *, fields: tuple[tuple[str, ZDType], ...]) -> None:
        super().__init__(from_dtype([(name, field.to_native_dtype()) for name, field in fields]))


Struct = Structured  # zarr-python 3.4 has a class for each of the two names


_CLASSES: dict[str, type[ZDType]] = {
    cls.name: cls for cls in globals().copy().values() if isinstance(cls, type) and issubclass(cls, ZDType) and cls.name
}
_ALIASES = {"structured": "struct", "variable_length_bytes": "bytes"}


def parse_dtype(dtype_spec: ZDType | npt.DTypeLike | dict[str, Json], *, zarr_format: Literal[2, 3] = 3) -> ZDType:
    """Return the data type for a numpy dtype, a Python type, a name, or JSON from zarr.json.

    Parameters
    ----------
    dtype_spec : data type
        The data type, in any form that `create_array` accepts.
    zarr_format : {2, 3}, optional
        Accepted for compatibility with zarr-python, but ignored: zarrlite has the same data types for both formats.

    Returns
    -------
    ZDType
        The data type.

    Raises
    ------
    ArgumentError
        If there is no such data type.
    MetadataError
        If the JSON or the name is invalid.

    Examples
    --------
    >>> parse_dtype("float32")
    Float32(float32)
    """
    if isinstance(dtype_spec, ZDType):
        return dtype_spec
    data_type = from_dtype(dtype_spec)
    endianness: Endianness = "little"
    try:
        if np.dtype(dtype_spec).byteorder == ">":  # type: ignore[arg-type]
            endianness = "big"
    except (TypeError, ValueError):  # not a numpy dtype, but a name or JSON from zarr.json
        pass
    name = data_type.name if not data_type.name.startswith("r") or data_type.dtype.kind != "V" else "raw_bytes"
    cls = _CLASSES.get(_ALIASES.get(name, name), ZDType)
    found = cls.__new__(cls)
    ZDType.__init__(found, data_type, endianness)
    return found
