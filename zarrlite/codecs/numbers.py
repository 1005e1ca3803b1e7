"""Real-number types, and exact conversions between them, for `cast_value` and `scale_offset`.

Rules
- A conversion rounds the exact value once, as if exponents had no bound, and then compares the result with the range
  of the type.
- Numbers are converted as integers times powers of two, or by numpy where numpy rounds only once.
- The properties of floating-point types that are not built into numpy are derived from lists of all their values.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from zarrlite.codecs.bitround import bit_length
from zarrlite.data_types import DataType
from zarrlite.pipeline.elements import NDArray

ROUNDINGS: Final = ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")
_NATIVE: Final = ("float16", "float32", "float64")
_integer_name = re.compile(r"(u?)int(2|4|8|16|32|64)").fullmatch
_float_name = re.compile(r"bfloat16|float(?:4|6|8|16|32|64)(?:_\w+)?").fullmatch


@dataclass(frozen=True)
class Integers:
    """An integer type, unsigned or in two's complement."""

    dtype: np.dtype[Any]
    low: int
    high: int

    @property
    def bits(self) -> int:
        """The number of bits."""
        return (self.high - self.low).bit_length()


@dataclass(frozen=True)
class Floats:
    """A floating-point type."""

    dtype: np.dtype[Any]
    precision: int  # significant bits
    exponent: int  # exponent of the smallest normal number
    low: float
    high: float
    has_negative_zero: bool
    has_infinity: bool
    has_nan: bool

    @property
    def is_native(self) -> bool:
        """Whether this type is built into numpy."""
        return self.dtype.name in _NATIVE


@functools.lru_cache(maxsize=256)
def number_type(data_type: DataType) -> Integers | Floats | None:
    """Return the number type of a data type. Returns None if its elements are not real numbers."""
    name, dtype = data_type.name, data_type.dtype
    if found := _integer_name(name):
        bits = int(found[2])
        return Integers(dtype, 0, 2**bits - 1) if found[1] else Integers(dtype, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if name in _NATIVE:
        return _native(dtype)
    return _listed(name, dtype) if _float_name(name) else None


def _native(dtype: np.dtype[Any]) -> Floats:
    info = np.finfo(dtype)
    largest = float(info.max)
    return Floats(dtype, info.nmant + 1, int(info.minexp), -largest, largest, True, True, True)


FLOAT64: Final = _native(np.dtype("f8"))


def _listed(name: str, dtype: np.dtype[Any]) -> Floats:
    """Derive the properties of a floating-point type with at most 16 bits from a list of all its values."""
    bits = int(re.findall(r"\d+", name)[0])
    with np.errstate(invalid="ignore"):  # the signalling NaNs among the values would cause a warning
        values = np.arange(2**bits, dtype=f"u{dtype.itemsize}").view(dtype).astype("f8")
    finite = values[np.isfinite(values)]
    next_after_one = float(finite[finite > 1].min())
    precision = 1 - int(np.log2(next_after_one - 1))
    smallest = int(np.log2(finite[finite > 0].min()))
    return Floats(
        dtype,
        precision,
        smallest + precision - 1,
        float(finite.min()),
        float(finite.max()),
        bool(np.signbit(finite[finite == 0]).any()),
        bool(np.isinf(values).any()),
        bool(np.isnan(values).any()),
    )


def convert(
    array: NDArray, source: Integers | Floats, target: Integers | Floats, rounding: str, out_of_range: str | None
) -> NDArray:
    """Convert numbers. Raises ValueError if one of them cannot be converted."""
    with np.errstate(all="ignore"):
        return _convert(array, source, target, rounding, out_of_range)


def _convert(
    array: NDArray, source: Integers | Floats, target: Integers | Floats, rounding: str, out_of_range: str | None
) -> NDArray:
    if isinstance(target, Integers):
        if isinstance(source, Integers):
            return _integers_to_integers(_wide(array, source), target, out_of_range)
        return _floats_to_integers(array.astype("f8"), target, rounding, out_of_range)
    if isinstance(source, Floats):
        array = array if source.is_native else array.astype("f8")
        _check_special(array, target)
    if rounding == "nearest-even" and target.is_native:
        result = array.astype(target.dtype)
        if out_of_range is None:
            _refuse(array, np.isinf(result) & np.isfinite(array), target)
        return result
    return _to_floats(array, source, target, rounding, out_of_range)


def _wide(array: NDArray, source: Integers) -> NDArray:
    """Return integers as 64-bit integers."""
    return array.astype("u8" if source.low == 0 else "i8")


def _refuse(array: NDArray, faults: Any, target: Integers | Floats) -> None:
    """Raise ValueError for the first element that is marked as a fault, if there is one."""
    if faults.any():
        value = array[faults].flat[0] if array.ndim else array[()]
        raise ValueError(f"{value} cannot be stored as {target.dtype}")


def _check_special(array: NDArray, target: Integers | Floats) -> None:
    # cast_value, Special values: "If the output data type does not support NaN or transfinite values"
    if isinstance(target, Integers) or not target.has_nan:
        _refuse(array, np.isnan(array), target)
    if isinstance(target, Integers) or not target.has_infinity:
        _refuse(array, np.isinf(array), target)


def _integers_to_integers(array: NDArray, target: Integers, out_of_range: str | None) -> NDArray:
    below, above = array < target.low, array > target.high
    if out_of_range == "wrap":
        return _wrapped(array.astype("u8"), target)
    if out_of_range is None:
        _refuse(array, below | above, target)
    else:
        array = np.where(below, _within(target.low, array.dtype), array)
        array = np.where(above, _within(target.high, array.dtype), array)
    return array.astype(target.dtype)


def _within(value: int, dtype: np.dtype[Any]) -> Any:
    """Return a bound as a scalar of the dtype of the elements. A bound beyond the range of the dtype is clamped."""
    info = np.iinfo(dtype)
    return dtype.type(min(max(value, int(info.min)), int(info.max)))


def _wrapped(residue: NDArray, target: Integers) -> NDArray:
    """Return the integers of a type that are congruent to the given residues modulo 2**64."""
    # cast_value, out_of_range: "congruent to that input value modulo `2^N`"
    residue = residue & np.uint64(2**target.bits - 1)
    if target.low == 0:
        return residue.astype(target.dtype)
    sign = np.uint64(2 ** (target.bits - 1))
    return ((residue ^ sign) - sign).view("i8").astype(target.dtype)


def _floats_to_integers(array: NDArray, target: Integers, rounding: str, out_of_range: str | None) -> NDArray:
    _check_special(array, target)
    rounded = _rounded(array, rounding)
    # both bounds are powers of two, or 0, and therefore exact in double precision
    below, above = rounded < float(target.low), rounded >= float(target.high + 1)
    if out_of_range is None:
        _refuse(array, below | above, target)
    inside = np.where(below | above, 0.0, rounded)
    result = inside.astype("u8" if target.low == 0 else "i8").astype(target.dtype)
    if out_of_range == "clamp":
        result = np.where(below, target.dtype.type(target.low), result)
        return np.where(above, target.dtype.type(target.high), result)
    if (below | above).any():
        rest = np.fmod(rounded, 2.0**target.bits)
        magnitude = abs(rest).astype("u8")
        return _wrapped(np.where(rest < 0, np.negative(magnitude), magnitude), target)
    return result


def _rounded(array: NDArray, rounding: str) -> NDArray:
    """Round floating-point numbers to integers."""
    if rounding == "nearest-away":
        whole = np.trunc(array)
        return whole + np.copysign(abs(array - whole) >= 0.5, array)
    functions = {
        "nearest-even": np.rint,
        "towards-zero": np.trunc,
        "towards-positive": np.ceil,
        "towards-negative": np.floor,
    }
    rounded: NDArray = functions[rounding](array)
    return rounded


def _to_floats(
    array: NDArray, source: Integers | Floats, target: Floats, rounding: str, out_of_range: str | None
) -> NDArray:
    negative, magnitude, exponent = _parts(array, source)
    length = bit_length(magnitude).astype("i8")
    # the lowest bit that is kept has the value 2**unit
    unit = np.maximum(length - 1 + exponent, target.exponent) - (target.precision - 1)
    dropped = np.clip(unit - exponent, 0, 63).astype("u8")
    one = np.uint64(1)
    kept = magnitude >> dropped
    rest = magnitude - (kept << dropped)
    half = one << np.maximum(dropped, one) - one
    match rounding:
        case "nearest-even":
            up = (rest > half) | ((rest == half) & (kept & one == one))
        case "nearest-away":
            up = rest >= half
        case "towards-zero":
            up = np.zeros(rest.shape, bool)
        case "towards-positive":
            up = ~negative
        case _:
            up = negative
    kept = kept + (up & (rest > 0))
    value = np.ldexp(kept.astype("f8"), np.where(dropped > 0, unit, exponent).astype("i4"))
    value = np.where(negative, -value, value)
    finite = np.isfinite(array)
    below, above = (value < target.low) & finite, (value > target.high) & finite
    if out_of_range is None:
        _refuse(array, below | above, target)
    # cast_value, out_of_range: "values outside the finite range of the data type MUST be mapped to ±Infinity"
    low, high = (-np.inf, np.inf) if target.has_infinity else (target.low, target.high)
    value = np.where(below, low, np.where(above, high, value))
    if isinstance(source, Floats):
        value = np.where(finite, value, array)
    if not target.has_negative_zero:
        value = value + 0.0
    result: NDArray = value.astype(target.dtype)
    return result


def _parts(array: NDArray, source: Integers | Floats) -> tuple[NDArray, NDArray, NDArray]:
    """Return signs, integer significands and exponents of two; the significand of NaN and infinity is 0."""
    if isinstance(source, Integers):
        wide = _wide(array, source)
        negative = wide < 0
        magnitude = wide.astype("u8")
        return negative, np.where(negative, np.negative(magnitude), magnitude), np.zeros(array.shape, "i8")
    array = array.astype("f8")
    fraction, exponent = np.frexp(np.where(np.isfinite(array), array, 0.0))
    magnitude = np.ldexp(abs(fraction), 53).astype("u8")
    return np.signbit(array), magnitude, exponent.astype("i8") - 53
