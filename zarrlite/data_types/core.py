"""The core data types of the specification: bool, integers, floats, complex numbers and raw bits.

Rules
- All core data types are implemented, even the optional ones (data types, Data Types: "SHOULD be implemented by all
  implementations").
- Fill values are read and written exactly. A NaN is created from its bits, never from a Python float, which could
  change them.

In comments, "data types" is the specification of the data types (zarr-specs, docs/v3/data-types/index.rst).
"""

from __future__ import annotations

import math
import numbers
import re
import sys
from typing import Any, ClassVar, Final, Self

import numpy as np

from zarrlite.cached import cached_property
from zarrlite.data_types.base import MAX_ITEMSIZE, NamedType, NDArray, refuse, wrong_type
from zarrlite.data_types.scalars import cast_exact_bytes, cast_number, parse_exact_bytes
from zarrlite.errors import FaultKind, MetadataError
from zarrlite.extensions.config import Config, Json, is_integer, show
from zarrlite.extensions.registry import register

# data types, Permitted fill values: "the sign bit is 0 (positive), the most significant bit (MSB)"
# data types, Permitted fill values: 'for float32, "NaN" is equivalent to "0x7fc00000"'
_NAN_BITS: Final = {2: 0x7E00, 4: 0x7FC0_0000, 8: 0x7FF8_0000_0000_0000}
# data types, Permitted fill values: '"Infinity", denoting positive infinity'
# data types, Permitted fill values: '"-Infinity", denoting negative infinity'
_INFINITIES: Final = {"Infinity": math.inf, "-Infinity": -math.inf}


class _NumpyNamed(NamedType):
    """A data type that has the same name in numpy."""

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.name)

    @property
    def has_byte_order(self) -> bool:
        return self.dtype.itemsize > 1


@register
class Bool(_NumpyNamed):
    """Booleans, stored as one byte: 0 or 1."""

    name = "bool"

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> np.bool:
        # data types, Permitted fill values: "The value must be a JSON boolean (false or true)"
        if not isinstance(value, bool):
            raise wrong_type("true or false", value)
        return np.bool(value)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return bool(value)

    def cast_scalar(self, value: Any) -> np.bool:
        number = cast_number(value, self.name)
        if number not in (0, 1):
            raise ValueError(f"bool needs True or False, not {value!r}")
        return np.bool(number)

    def check(self, array: NDArray) -> str | None:
        stored = array.view(np.uint8)
        if (stored > 1).any():
            return f"bool elements must be stored as 0 or 1, not {stored.max()}"
        return None


@register
class Integer(_NumpyNamed):
    """The eight integer types.

    Data types, Core data types: from "Integer in [-2^7, 2^7-1]" to "Integer in [0, 2^64-1]".
    """

    name = "int8"
    aliases: ClassVar[tuple[str, ...]] = ("int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

    @cached_property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest value."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        # data types, Permitted fill values: "must be a JSON number with no fraction or exponent part"
        if not is_integer(value):
            raise wrong_type("an integer", value)
        # data types, Permitted fill values: "within the representable range of the data type"
        low, high = self.limits
        if not low <= value <= high:
            raise refuse(f"must be an integer from {low} to {high}, not {show(value)}")
        return self.dtype.type(value)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return int(value)

    def cast_scalar(self, value: Any) -> Any:
        number = cast_number(value, self.name)
        integer = int(number)  # raises for NaN and infinity
        if integer != number:
            raise ValueError(f"{self.name} needs an integer, not {value!r}")
        low, high = self.limits
        if not low <= integer <= high:
            raise OverflowError(f"{self.name} needs an integer from {low} to {high}, not {value!r}")
        return self.dtype.type(integer)


@register
class Float(_NumpyNamed):
    """The three IEEE 754 types.

    Data types, Core data types: 16, 32 and 64 bits; "float16 (optionally supported)".
    """

    name = "float16"
    aliases: ClassVar[tuple[str, ...]] = ("float32", "float64")

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        if isinstance(value, str):
            return self._from_text(value)
        if not is_integer(value) and not isinstance(value, float):
            raise wrong_type(self._expected, value)
        # data types, Permitted fill values: "A JSON number, that will be rounded to the nearest representable value"
        # data types, Permitted fill values: 'the nearest representable value using the "round half to even" rule'
        if is_integer(value) and self.dtype.itemsize < 8:
            value = _round_to_odd(value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise refuse(f"must be within the range of a double, not {show(value)}; write infinity as a string")
        with np.errstate(over="ignore"):  # numbers beyond the range of the type round to infinity
            return self.dtype.type(number)

    def _from_text(self, text: str) -> Any:
        """Return the scalar for a JSON string: infinity, NaN or the bits of any number."""
        if text in _INFINITIES:
            return self.dtype.type(_INFINITIES[text])
        # data types, Permitted fill values: '"NaN", denoting the not-a-number (NaN) value'
        if text == "NaN":
            return self._from_bits(_NAN_BITS[self.dtype.itemsize])
        # data types, Permitted fill values: "specifying the byte representation of the floating point number"
        if not re.fullmatch(f"0x[0-9a-fA-F]{{{2 * self.dtype.itemsize}}}", text):
            raise refuse(f"must be {self._expected}, not {show(text)}")
        return self._from_bits(int(text, 16))

    @property
    def _expected(self) -> str:
        """The permitted fill values, for error messages."""
        return f'a number, "NaN", "Infinity", "-Infinity" or "0x" with {2 * self.dtype.itemsize} hex digits'

    def _from_bits(self, bits: int) -> Any:
        """Return the scalar that has these bits."""
        return np.frombuffer(bits.to_bytes(self.dtype.itemsize, sys.byteorder), self.dtype)[0]

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        if np.isfinite(value):
            shortest = float(str(value))
            return shortest if self.dtype.type(shortest) == value else float(value)
        if np.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        # data types, Permitted fill values: "the only way to specify a NaN value other than"
        bits = int.from_bytes(value.tobytes(), sys.byteorder)
        return "NaN" if bits == _NAN_BITS[self.dtype.itemsize] else f"0x{bits:0{2 * self.dtype.itemsize}x}"

    def cast_scalar(self, value: Any) -> Any:
        number = cast_number(value, self.name)
        with np.errstate(over="ignore"):
            scalar = np.array(number, self.dtype)[()]
        if np.isinf(scalar) and not math.isinf(number):
            raise OverflowError(f"{value!r} exceeds the range of {self.name}")
        return scalar


def _round_to_odd(value: int) -> int:
    """Truncate an integer to 50 significant bits, and set the last of them if the result is not exact.

    Converting the result to double and then to a shorter type rounds exactly as a single conversion of `value` would.
    """
    excess = value.bit_length() - 50
    if excess <= 0:
        return value
    kept = abs(value) >> excess
    kept |= kept << excess != abs(value)
    return (kept if value > 0 else -kept) << excess


@register
class Complex(_NumpyNamed):
    """The two complex types: a real and an imaginary component.

    Data types, Core data types: "real and complex components are each IEEE 754 single-precision floating point",
    or double-precision.
    """

    name = "complex64"
    # data-types/complex_float32: "an alias of the core complex64 data type"
    aliases: ClassVar[tuple[str, ...]] = ("complex128", "complex_float32", "complex_float64")
    parts: ClassVar[dict[str, Float]] = {
        "complex64": Float("float32"),
        "complex128": Float("float64"),
        "complex_float32": Float("float32"),
        "complex_float64": Float("float64"),
    }

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"c{2 * self.part.dtype.itemsize}")

    @property
    def part(self) -> Float:
        """The data type of each component."""
        return self.parts[self.name]

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        # data types, Permitted fill values: "The value must be a two-element array"
        # data types, Permitted fill values: "specifying the real and imaginary components respectively"
        if not isinstance(value, list):
            raise wrong_type("an array of two numbers", value)
        if len(value) != 2:
            raise refuse(f"must be an array of two numbers, not of {len(value)}")
        return np.frombuffer(self._component(value, 0) + self._component(value, 1), self.dtype)[0]

    def _component(self, value: list[Json], index: int) -> bytes:
        """Return the bytes of one component."""
        # data types, Permitted fill values: "where each component is specified as defined above for floating point"
        try:
            component: bytes = self.part.parse_fill_value(value[index]).tobytes()
        except MetadataError as error:
            raise error.under(f"/{index}") from None
        return component

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return [self.part.fill_value_json(x) for x in np.frombuffer(value.tobytes(), self.part.dtype)]

    def cast_scalar(self, value: Any) -> Any:
        number = cast_number(value, self.name, numbers.Complex)
        with np.errstate(over="ignore"):
            scalar = np.array(number, self.dtype)[()]
        if np.isinf(scalar) and not (math.isinf(number.real) or math.isinf(number.imag)):
            raise OverflowError(f"{value!r} exceeds the range of {self.name}")
        return scalar


@register
class Raw(NamedType):
    """Raw bits: `r8`, `r16` ...

    Core spec, Data types: "an implementation should also handle the raw/opaque pass-through type".
    """

    name = "r8"
    pattern = r"r[1-9][0-9]*"

    @classmethod
    def from_config(cls, config: Config) -> Self:
        digits = config.name[1:]
        if len(digits) > len(str(8 * MAX_ITEMSIZE)) or int(digits) > 8 * MAX_ITEMSIZE:
            raise _refuse_name(config, f"must have at most {8 * MAX_ITEMSIZE} bits, not {show(config.name)}", "limit")
        # data types, Core data types: "limited to be a multiple of 8"
        # core spec, Data types: "limited to type sizes that are a multiple of 8 bits"
        if int(digits) % 8:
            raise _refuse_name(config, f"must have a multiple of 8 bits, not {show(config.name)}", "value")
        return cls(config.name)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"V{int(self.name[1:]) // 8}")

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> np.void:
        # data types, Permitted fill values: "An array of integers, with length equal to" <N>
        # data types, Permitted fill values: "where each integer is in the range [0, 255]"
        # The first rule is wrong: N is the number of bits, and each integer is a byte, so the length is N / 8.
        return parse_exact_bytes(value, self.dtype.itemsize)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return list(value.tobytes())

    def cast_scalar(self, value: Any) -> np.void:
        return cast_exact_bytes(value, self.name, self.dtype.itemsize)

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        return cls(f"r{8 * dtype.itemsize}")


def _refuse_name(config: Config, message: str, kind: FaultKind) -> MetadataError:
    """Return an error with a pointer to the data type, since the fault is in its name, not its configuration."""
    pointer = config.pointer.removesuffix("/configuration")
    return MetadataError(message, pointer=pointer, kind=kind, document=config.context.document)
