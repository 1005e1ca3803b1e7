"""Data types for numbers with few bits; their numpy dtypes come from the package ml_dtypes (install zarrlite[ml]).

Rules
- This is the only module that imports ml_dtypes, and it does so when one of its data types is first used.
- An element with fewer than 8 bits takes one byte in memory. Its unused upper bits are ignored when it is read, and
  written as 0.
- A JSON number is rounded only once, to the nearest value (ties to even). A number beyond the range becomes infinity;
  types without infinity refuse it, since other libraries read it as different values. `float8_e8m0fnu` has no zero: 0
  is read as its smallest number, 2^-127.
- `float8_e4m3fn` is not specified in zarr-extensions; it is supported because tensorstore writes it. Its NaN is 0x7f.

All other data types in this module are specified in zarr-extensions, data-types/<name>/README.md.
"""

from __future__ import annotations

import math
import numbers
import re
import sys
from bisect import bisect_right
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Final, Self

import numpy as np

from zarrlite.cached import cached_property
from zarrlite.data_types.base import NamedType, NDArray, Packing, refuse, wrong_type
from zarrlite.data_types.core import Complex, Float, Integer
from zarrlite.data_types.scalars import cast_number, unwrap
from zarrlite.errors import DependencyError
from zarrlite.extensions.config import Config, Json, is_integer, show
from zarrlite.extensions.registry import register

# the bits of "NaN"; types that are not listed have no NaN
_NANS: Final = {
    "bfloat16": 0x7FC0,
    "float8_e3m4": 0x78,
    "float8_e4m3": 0x7C,
    "float8_e4m3fn": 0x7F,
    "float8_e4m3b11fnuz": 0x80,
    "float8_e4m3fnuz": 0x80,
    "float8_e5m2": 0x7E,
    "float8_e5m2fnuz": 0x80,
    "float8_e8m0fnu": 0xFF,
}
_INFINITIES: Final = {"bfloat16": 0x7F80, "float8_e3m4": 0x70, "float8_e4m3": 0x78, "float8_e5m2": 0x7C}
_COMPLEX: Final = {"complex_float16": "complex32", "complex_bfloat16": "bcomplex32"}  # names in ml_dtypes


def _dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of a data type. Raises DependencyError if ml_dtypes is missing or too old."""
    try:
        import ml_dtypes
    except ImportError as error:
        raise DependencyError(f"the data type {name} needs ml_dtypes: pip install 'zarrlite[ml]'") from error
    scalar = getattr(ml_dtypes, _COMPLEX.get(name, name), None)
    if scalar is None:
        version = ml_dtypes.__version__
        raise DependencyError(f"the data type {name} needs a later version of ml_dtypes than {version}")
    dtype: np.dtype[Any] = np.dtype(scalar)
    return dtype


class _Small(NamedType):
    """A data type whose dtype comes from ml_dtypes."""

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return _dtype(self.name)

    @property
    def is_number(self) -> bool:
        return True

    @property
    def bits(self) -> int:
        """The number of bits in an element, or in each component of a complex number."""
        return int(re.findall("[0-9]+", self.name)[0])

    @property
    def packing(self) -> Packing:
        return Packing(self.bits, 2 if self.name in _COMPLEX else 1, self.name.startswith("int"))

    @property
    def _word(self) -> np.dtype[Any]:
        """The integer dtype for the bits of a component."""
        return np.dtype("u2" if self.bits == 16 else "u1")

    # Elements are viewed as integers to swap their bytes, because the byte-swapped dtypes of ml_dtypes are faulty: they
    # swap the components of complex numbers, and assign single values without swapping their bytes.

    def is_raw(self, byte_order: str) -> bool:
        return self.bits == 8 or (self.bits == 16 and byte_order == sys.byteorder)

    def to_bytes(self, array: NDArray, byte_order: str) -> NDArray:
        # data-types/int4, bytes: "it is recommended to set them to a consistent value"
        # data-types/complex_bfloat16, bytes: "(real component followed by imaginary component) 2-byte"
        words: NDArray = np.ascontiguousarray(array, self.dtype).reshape(-1).view(self._word) & (2**self.bits - 1)
        return words.astype(self._word.newbyteorder(byte_order)).view("u1")  # type: ignore[arg-type]

    def from_bytes(self, data: NDArray, byte_order: str) -> NDArray:
        # data-types/int4, bytes: "where the upper IIII bits are ignored"
        # data-types/float4_e2m1fn, bytes: "The upper XXXX bits are ignored"
        words: NDArray = data.view(self._word.newbyteorder(byte_order)) & (2**self.bits - 1)  # type: ignore[arg-type]
        return words.astype(self._word, copy=False).view(self.dtype)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        data_type = cls(config.name)
        _ = data_type.dtype  # raises an error now if ml_dtypes is missing
        return data_type


@register
class SmallInteger(_Small, Integer):
    """Integers with 2 or 4 bits."""

    name = "int2"
    aliases = ("int4", "uint2", "uint4")

    @cached_property
    def limits(self) -> tuple[int, int]:
        if self.name.startswith("u"):
            return 0, 2**self.bits - 1
        return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1

    def cast_scalar(self, value: Any) -> Any:
        return super().cast_scalar(_as_number(value, float))


@register
class SmallFloat(_Small, Float):
    """Floating-point numbers with 4, 6 or 8 bits, and bfloat16."""

    name = "bfloat16"
    aliases = (
        "float4_e2m1fn",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )

    @property
    def signed(self) -> bool:
        """Whether the type has negative numbers and zero."""
        return self.name != "float8_e8m0fnu"

    @property
    def _expected(self) -> str:
        words = ["a number" if self.signed else "a non-negative number"]
        words += ['"NaN"'] if self.name in _NANS else []
        words += ['"Infinity"', '"-Infinity"'] if self.name in _INFINITIES else []
        return f'{", ".join(words)} or "0x" with {2 * self.dtype.itemsize} hex digits'

    def parse_fill_value(self, value: Json, byte_order: str = "little") -> Any:
        if isinstance(value, str):
            return self._from_text(value)
        if not is_integer(value) and not isinstance(value, float):
            raise wrong_type(self._expected, value)
        if abs(value) > sys.float_info.max:
            raise refuse(f"must be within the range of a double, not {show(value)}")
        if not self.signed and value < 0:
            raise refuse(f"must be {self._expected}, not {show(value)}")
        if self._overflows(Fraction(abs(value))) and self.name not in _INFINITIES:
            raise refuse(f"must be at most {_numbers(self.name)[-1]}, the largest {self.name}, not {show(value)}")
        return self._from_bits(self._nearest(value))

    def _from_text(self, text: str) -> Any:
        constants = {"NaN": _NANS.get(self.name), "Infinity": _INFINITIES.get(self.name)}
        constants["-Infinity"] = None if constants["Infinity"] is None else constants["Infinity"] | self._sign
        if constants.get(text) is not None:
            return self._from_bits(constants[text])  # type: ignore[arg-type]
        digits = text[2:] if text.startswith("0x") else ""
        if len(digits) != 2 * self.dtype.itemsize or not all(c in "0123456789abcdefABCDEF" for c in digits):
            raise refuse(f"must be {self._expected}, not {show(text)}")
        bits = int(digits, 16)
        if bits >> self.bits:
            raise refuse(f"must be at most {self._hex(2**self.bits - 1)}, since {self.name} has {self.bits} bits")
        return self._from_bits(bits)

    @property
    def _sign(self) -> int:
        """The sign bit."""
        return 1 << (self.bits - 1) if self.signed else 0

    def _hex(self, bits: int) -> str:
        return f"0x{bits:0{2 * self.dtype.itemsize}x}"

    def _nearest(self, number: Any) -> int:
        """Return the bits of the value nearest to a finite number. A tie goes to the value whose last bit is 0."""
        values, size = _numbers(self.name), Fraction(abs(number))
        bits = max(0, bisect_right(values, size) - 1)
        if bits < len(values) - 1:
            below, above = size - Fraction(values[bits]), Fraction(values[bits + 1]) - size
            bits += below > above or (below == above and bits % 2 == 1)
        elif self._overflows(size):
            bits = _INFINITIES[self.name]
        if math.copysign(1, number) > 0 or (bits == 0 and self.name.endswith("fnuz")):  # fnuz: no negative zero
            return bits
        return bits | self._sign

    def _overflows(self, size: Fraction) -> bool:
        """Whether a magnitude would be rounded to more than the largest finite number."""
        previous, largest = map(Fraction, _numbers(self.name)[-2:])
        return size - largest >= (largest - previous) / 2

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Json:
        bits = int.from_bytes(value.tobytes(), sys.byteorder) & (2**self.bits - 1)
        if bits == _NANS.get(self.name):
            return "NaN"
        infinity = _INFINITIES.get(self.name)
        if infinity is not None and bits & ~self._sign == infinity:
            return "-Infinity" if bits & self._sign else "Infinity"
        number = float(value)
        return number if math.isfinite(number) else self._hex(bits)

    def cast_scalar(self, value: Any) -> Any:
        value = unwrap(value)
        if isinstance(value, self.dtype.type):
            return value
        number = cast_number(_as_number(value, float), self.name)
        if not math.isfinite(number):
            text = "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
            if text not in self._expected:
                raise ValueError(f"{self.name} has no {text}")
            return self._from_text(text)
        number = int(number) if isinstance(number, numbers.Integral) else float(number)
        if not self.signed and number <= 0:
            raise ValueError(f"{self.name} needs a positive number, not {value!r}")
        if self._overflows(Fraction(abs(number))):
            raise OverflowError(f"{value!r} exceeds the range of {self.name}")
        return self._from_bits(self._nearest(number))


@cache
def _numbers(name: str) -> list[float]:
    """Return the non-negative finite numbers of a type, in increasing order. The index of a number equals its bits."""
    data_type = SmallFloat(name)
    bits = np.arange(2 ** (data_type.bits - data_type.signed), dtype=f"u{data_type.dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # some values are signaling NaNs, whose conversion is an invalid operation
        values = bits.view(data_type.dtype).astype("float64").tolist()
    return [value for value in values if math.isfinite(value)]


def _as_number(value: Any, kind: type) -> Any:
    """Convert a scalar from ml_dtypes to a Python number. Returns other scalars unchanged."""
    value = unwrap(value)
    return kind(value) if type(value).__module__ == "ml_dtypes" else value


@register
class SmallComplex(_Small, Complex):
    """Complex numbers with two float16 or two bfloat16 components."""

    name = "complex_float16"
    aliases = ("complex_bfloat16",)
    parts: ClassVar[dict[str, Float]] = {
        "complex_float16": Float("float16"),
        "complex_bfloat16": SmallFloat("bfloat16"),
    }

    def cast_scalar(self, value: Any) -> Any:
        value = unwrap(value)
        if isinstance(value, self.dtype.type):
            return value
        number = cast_number(_as_number(value, complex), self.name, numbers.Complex)
        parts = [self.part.cast_scalar(part) for part in (number.real, number.imag)]
        return np.frombuffer(b"".join(part.tobytes() for part in parts), self.dtype)[0]

    @classmethod
    def from_dtype(cls, dtype: np.dtype[Any]) -> Self | None:
        names = {theirs: ours for ours, theirs in _COMPLEX.items()}
        return cls(names[dtype.name]) if dtype.name in names else None
