"""Conversions between numeric types in exact rational arithmetic, as the reference for tests of codecs."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from zarrlite.data_types import DataType, from_dtype
from zarrlite.data_types.base import NamedType

ROUNDINGS = ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")
NATIVE_INTEGERS = tuple(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u"))
NATIVE_FLOATS = ("float16", "float32", "float64")
SMALL_INTEGERS = ("int2", "int4", "uint2", "uint4")


class Format(NamedTuple):
    """A floating-point type: significant bits, smallest exponent of a normal number, largest number, special values."""

    precision: int
    exponent: int
    largest: Fraction
    specials: str = "infinity nan zero"


# sources: data-types/<name> in zarr-extensions, and IEEE 754
FLOATS = {
    "float16": Format(11, -14, Fraction(65504)),
    "float32": Format(24, -126, Fraction(2**24 - 1) * 2**104),
    "float64": Format(53, -1022, Fraction(2**53 - 1) * 2**971),
    "bfloat16": Format(8, -126, Fraction(255) * 2**120),
    "float8_e3m4": Format(5, -2, Fraction(31, 2)),
    "float8_e4m3": Format(4, -6, Fraction(240)),
    "float8_e4m3fn": Format(4, -6, Fraction(448), "nan zero"),
    "float8_e4m3b11fnuz": Format(4, -10, Fraction(30), "nan zero"),
    "float8_e4m3fnuz": Format(4, -7, Fraction(240), "nan zero"),
    "float8_e5m2": Format(3, -14, Fraction(57344)),
    "float8_e5m2fnuz": Format(3, -15, Fraction(57344), "nan zero"),
    "float8_e8m0fnu": Format(1, -127, Fraction(2) ** 127, "nan unsigned"),
    "float6_e2m3fn": Format(4, 0, Fraction(15, 2), "zero"),
    "float6_e3m2fn": Format(3, -2, Fraction(28), "zero"),
    "float4_e2m1fn": Format(2, 0, Fraction(6), "zero"),
}


class Small(NamedType):
    """A data type from ml_dtypes, defined as a user of zarrlite would define it."""

    name = "small"

    @property
    def dtype(self) -> np.dtype[Any]:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.name))

    def parse_fill_value(self, value: Any, byte_order: str = "little") -> Any:
        return self.dtype.type(value)

    def fill_value_json(self, value: Any, byte_order: str = "little") -> Any:
        return float(value)


@functools.cache
def data_type(name: str) -> DataType:
    return from_dtype(name) if name in NATIVE_INTEGERS + NATIVE_FLOATS else Small(name)


@functools.cache
def bounds(name: str) -> tuple[Fraction, Fraction]:
    """Return the smallest and the largest finite number of a type."""
    if name in FLOATS:
        float_format = FLOATS[name]
        low = Fraction(2) ** float_format.exponent if "unsigned" in float_format.specials else -float_format.largest
        return low, float_format.largest
    bits = int(name.lstrip("uint"))
    return (
        (Fraction(0), Fraction(2**bits - 1))
        if name[0] == "u"
        else (-Fraction(2 ** (bits - 1)), Fraction(2 ** (bits - 1) - 1))
    )


@functools.lru_cache(maxsize=2**16)
def rounded(value: Fraction, name: str, rounding: str) -> Fraction:
    """Round a number to the precision of a type, as if the type's exponents had no upper bound."""
    unit = Fraction(1)
    if name in FLOATS and value:
        top = value.numerator.bit_length() - value.denominator.bit_length()
        top -= abs(value) < Fraction(2) ** top
        unit = Fraction(2) ** (max(top, FLOATS[name].exponent) - FLOATS[name].precision + 1)
    quotient = value / unit
    low = math.floor(quotient)
    rest = quotient - low
    if rounding == "nearest-even":
        number = round(quotient)  # Python rounds half to even
    elif rounding == "nearest-away":
        number = low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and value > 0))
    elif rounding == "towards-zero":
        number = math.trunc(quotient)
    elif rounding == "towards-positive":
        number = math.ceil(quotient)
    else:
        number = low
    return number * unit


def cast(value: float | Fraction, name: str, rounding: str, out_of_range: str | None) -> Any:
    """Convert a number to a type. Returns None if the conversion must fail.

    Infinities and NaN are floats; all other numbers are fractions.
    """
    specials = FLOATS[name].specials if name in FLOATS else ""
    if isinstance(value, float):
        if math.isnan(value):
            return math.nan if "nan" in specials else None
        return value if "infinity" in specials else None
    low, high = bounds(name)
    result = rounded(value, name, rounding)
    fits = low <= result <= high
    if fits or out_of_range is None:
        return result if fits else None
    if out_of_range == "wrap":
        size = high - low + 1
        return (result - low) % size + low
    if "infinity" in specials:
        return math.inf if result > high else -math.inf
    return high if result > high else low


def elements(array: Any) -> list[Any]:
    """Return the exact elements of an array: finite numbers as fractions, infinities and NaN as floats."""
    numbers = array.astype("f8").tolist() if array.dtype.kind not in "iu" else array.tolist()
    return [x if isinstance(x, float) and not math.isfinite(x) else Fraction(x) for x in numbers]


@functools.cache
def edge_values(name: str) -> Any:
    """Return the edge values of all types, rounded to one type: bounds and their neighbours, ties, special values."""
    candidates = {Fraction(n, 4) for n in range(-10, 11)}
    for other in (*NATIVE_INTEGERS, *SMALL_INTEGERS, *FLOATS):
        for bound in bounds(other):
            steps = {Fraction(n, 2) for n in range(-3, 4)}
            if other in FLOATS:
                unit = abs(bound) / 2 ** FLOATS[other].precision
                steps = {unit * Fraction(n, 4) for n in range(-5, 6)}
            candidates |= {bound + step for step in steps} | {bound * 2}
        if other in FLOATS:
            smallest = Fraction(2) ** (FLOATS[other].exponent - FLOATS[other].precision + 1)
            normal = Fraction(2) ** FLOATS[other].exponent
            candidates |= {s * smallest * Fraction(n, 4) for n in range(8) for s in (1, -1)}
            candidates |= {s * (normal + smallest * Fraction(n, 2)) for n in range(-2, 3) for s in (1, -1)}
            one = Fraction(1, 2 ** (FLOATS[other].precision + 2))
            candidates |= {s * (1 + one * n) for n in (-2, 1, 2, 3, 6, 10) for s in (1, -1)}
    low, high = bounds(name)
    both = {rounded(c, name, way) for c in candidates for way in ("towards-positive", "towards-negative")}
    numbers = sorted(
        n for n in both if low <= n <= high and (n or name not in FLOATS or "zero" in FLOATS[name].specials)
    )
    dtype = data_type(name).dtype
    if name not in FLOATS:
        return np.array([int(n) for n in numbers], "u8" if name[0] == "u" else "i8").astype(dtype)
    specials: list[float] = [-0.0] if "zero" in FLOATS[name].specials else []
    specials += [math.inf, -math.inf] if "infinity" in FLOATS[name].specials else []
    specials += [math.nan] if "nan" in FLOATS[name].specials else []
    return np.array([*map(float, numbers), *specials], "f8").astype(dtype)
