"""The core data types of the specification: bool, integers, floats, complex numbers and raw bits.

Rules (core spec, docs/v3/data-types, "Permitted fill values")
- Integers: "a JSON number with no fraction or exponent part", within the range of the type.
- Floats: a number, rounded half to even; "NaN", "Infinity", "-Infinity"; or the bits as "0x" and hex digits.
- "NaN" is the one with sign 0 and only the first mantissa bit set; every other NaN is written by its bits.
- Complex: an array of two floats. Raw: an array of bytes.

A NaN never passes through a Python float on its way: scalars are made from bits.
"""

from __future__ import annotations

import math
import numbers
import re
import sys
from typing import Any, ClassVar, Final, Self

import numpy as np

from zarrlite.cached import cached_property
from zarrlite.data_types.base import MAX_ITEMSIZE, NamedType, refuse, wrong_type
from zarrlite.data_types.scalars import cast_exact_bytes, cast_number, parse_exact_bytes
from zarrlite.errors import FaultKind, MetadataError
from zarrlite.extensions.config import Config, Json, is_integer, show
from zarrlite.extensions.registry import register

# "the sign bit is 0 (positive), the most significant bit (MSB) of the mantissa is 1"
_NAN_BITS: Final = {2: 0x7E00, 4: 0x7FC0_0000, 8: 0x7FF8_0000_0000_0000}
_INFINITIES: Final = {"Infinity": math.inf, "-Infinity": -math.inf}


class _NumpyNamed(NamedType):
    """A type that numpy knows under the same name."""

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.name)

    @property
    def has_byte_order(self) -> bool:
        return self.dtype.itemsize > 1


@register
class Bool(_NumpyNamed):
    """True or false, one byte each."""

    name = "bool"

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> np.bool:
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

    def check(self, array: np.ndarray[Any, Any]) -> str | None:
        stored = array.view(np.uint8)
        return f"a bool is stored as 0 or 1, not as {stored.max()}" if (stored > 1).any() else None


@register
class Integer(_NumpyNamed):
    """The eight integer types."""

    name = "int8"
    aliases = ("int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

    @cached_property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest value."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        if not is_integer(value):
            raise wrong_type("an integer", value)
        low, high = self.limits
        if not low <= value <= high:
            raise refuse(f"must be an integer from {low} to {high}, not {show(value)}")
        return self.dtype.type(value)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return int(value)

    def cast_scalar(self, value: Any) -> Any:
        number = cast_number(value, self.name)
        whole = int(number)  # raises for NaN and infinity
        if whole != number:
            raise ValueError(f"{self.name} needs a whole number, not {value!r}")
        low, high = self.limits
        if not low <= whole <= high:
            raise OverflowError(f"{self.name} needs a number from {low} to {high}, not {value!r}")
        return self.dtype.type(whole)


@register
class Float(_NumpyNamed):
    """The three IEEE 754 types."""

    name = "float16"
    aliases = ("float32", "float64")

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        if isinstance(value, str):
            return self._from_text(value)
        if not is_integer(value) and not isinstance(value, float):
            raise wrong_type(self._wanted, value)
        if is_integer(value) and self.dtype.itemsize < 8:
            value = _round_to_odd(value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise refuse(f"must be within double precision, not {show(value)}; infinity is written as a string")
        with np.errstate(over="ignore"):  # rounding half to even makes infinity of what is too large
            return self.dtype.type(number)

    def _from_text(self, text: str) -> Any:
        if text in _INFINITIES:
            return self.dtype.type(_INFINITIES[text])
        if text == "NaN":
            return self._from_bits(_NAN_BITS[self.dtype.itemsize])
        if not re.fullmatch(f"0x[0-9a-fA-F]{{{2 * self.dtype.itemsize}}}", text):
            raise refuse(f"must be {self._wanted}, not {show(text)}")
        return self._from_bits(int(text, 16))

    @property
    def _wanted(self) -> str:
        return f'a number, "NaN", "Infinity", "-Infinity" or "0x" with {2 * self.dtype.itemsize} hex digits'

    def _from_bits(self, bits: int) -> Any:
        return np.frombuffer(bits.to_bytes(self.dtype.itemsize, sys.byteorder), self.dtype)[0]

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        if np.isfinite(value):
            shortest = float(str(value))
            return shortest if self.dtype.type(shortest) == value else float(value)
        if np.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        bits = int.from_bytes(value.tobytes(), sys.byteorder)
        return "NaN" if bits == _NAN_BITS[self.dtype.itemsize] else f"0x{bits:0{2 * self.dtype.itemsize}x}"

    def cast_scalar(self, value: Any) -> Any:
        number = cast_number(value, self.name)
        with np.errstate(over="ignore"):
            scalar = np.array(number, self.dtype)[()]
        if np.isinf(scalar) and not math.isinf(number):
            raise OverflowError(f"{value!r} is too large for {self.name}")
        return scalar


def _round_to_odd(value: int) -> int:
    """At most 50 bits, the last one set if any was lost: rounded to double first, it still rounds as if once."""
    excess = value.bit_length() - 50
    if excess <= 0:
        return value
    kept = abs(value) >> excess
    kept |= kept << excess != abs(value)
    return (kept if value > 0 else -kept) << excess


@register
class Complex(_NumpyNamed):
    """The two complex types: pairs of floats."""

    name = "complex64"
    aliases = ("complex128",)
    parts: ClassVar[dict[str, Float]] = {"complex64": Float("float32"), "complex128": Float("float64")}

    @property
    def part(self) -> Float:
        """The type of each of the two components."""
        return self.parts[self.name]

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        if not isinstance(value, list):
            raise wrong_type("an array of two numbers", value)
        if len(value) != 2:
            raise refuse(f"must be an array of two numbers, not of {len(value)}")
        return np.frombuffer(self._component(value, 0) + self._component(value, 1), self.dtype)[0]

    def _component(self, value: list[Json], index: int) -> bytes:
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
            raise OverflowError(f"{value!r} is too large for {self.name}")
        return scalar


@register
class Raw(NamedType):
    """Raw bits, `r8`, `r16` ...: "limited to be a multiple of 8"."""

    name = "r8"
    pattern = r"r[1-9][0-9]*"

    @classmethod
    def from_config(cls, config: Config) -> Self:
        digits = config.name[1:]
        if len(digits) > len(str(8 * MAX_ITEMSIZE)) or int(digits) > 8 * MAX_ITEMSIZE:
            raise _refuse_name(config, f"must have at most {8 * MAX_ITEMSIZE} bits, not {show(config.name)}", "limit")
        if int(digits) % 8:
            raise _refuse_name(config, f"must have a multiple of 8 bits, not {show(config.name)}", "value")
        return cls(config.name)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"V{int(self.name[1:]) // 8}")

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> np.void:
        # The spec says "with length equal to <N>", but N counts bits and the integers are bytes: N / 8.
        return parse_exact_bytes(value, self.dtype.itemsize)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        return list(value.tobytes())

    def cast_scalar(self, value: Any) -> np.void:
        return cast_exact_bytes(value, self.name, self.dtype.itemsize)

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        return cls(f"r{8 * dtype.itemsize}")


def _refuse_name(config: Config, message: str, kind: FaultKind) -> MetadataError:
    """A fault of the name: it stands beside the configuration, not in it."""
    pointer = config.pointer.removesuffix("/configuration")
    return MetadataError(message, pointer=pointer, kind=kind, document=config.context.document)
