"""The `scale_offset` codec: `(x - offset) * scale`, in the arithmetic of the data type.

Rules (codecs/scale_offset, Algorithm)
- A difference, product or quotient that the data type cannot represent is an error: integers must not overflow and
  must be divided without remainder, and finite numbers must not become infinite. Floating-point results are rounded.
- For floating-point types that are not built into numpy, each result is computed in float64 and rounded to the type.
  Since float64 has more than twice as many significant bits, rounding twice does not change the result. In types
  without infinity, arithmetic in the type itself would saturate where an error is required.
- A `scale` of 0, and parameters that are infinite or NaN, are refused, because encoding could not be undone; the
  specification does not mention these values.
- The fill value is encoded like an element.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrlite.codecs.numbers import FLOAT64, Floats, Integers, convert, number_type
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayArrayCodec, ArraySpec
from zarrlite.pipeline.elements import NDArray

Step = tuple[Callable[[Any, Any], Any], Any]  # an operation, and its second operand


@register
@dataclass(frozen=True)
class ScaleOffset(ArrayArrayCodec):
    """Numbers that are shifted, then multiplied."""

    name = "scale_offset"
    elementwise = True
    offset: Any = None  # in the JSON form of a fill value; None means 0
    scale: Any = None  # in the same form; None means 1

    @classmethod
    def from_config(cls, config: Config) -> Self:
        for key in ("offset", "scale"):
            if key in config and not isinstance(config.raw(key), (int, float, str)):
                raise config.error("must be a number in the JSON form of a fill value", key, "type")
        return cls(config.raw("offset", None), config.raw("scale", None))

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        if number_type(spec.data_type) is None:
            raise MetadataError(f"{self.name} encodes real numbers, not {spec.data_type.name}", kind="conflict")
        for key in ("offset", "scale"):
            number = self._parameter(key, spec)
            if not np.isfinite(np.float64(number)) or (key == "scale" and number == 0):
                message = f"must be a finite number{' other than 0' if key == 'scale' else ''}, not {number}"
                raise MetadataError(message, pointer=f"/configuration/{key}")
        try:
            fill = self._encode(spec.fill, spec)
        except ValueError as error:
            message = f"must be able to encode the fill value {spec.fill[()]}: {error}"
            raise MetadataError(message, kind="conflict") from None
        return spec.recast(spec.data_type, fill)

    def _parameter(self, key: str, spec: ArraySpec) -> Any:
        """Return a parameter as a number of the data type."""
        value: Json = getattr(self, key)
        if value is None:  # not parsed as a fill value, because some types cannot represent 0
            return 1 if key == "scale" else 0
        try:
            return spec.data_type.parse_fill_value(value)
        except MetadataError as error:
            raise error.under(f"/configuration/{key}") from None

    def encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        try:
            return self._encode(np.asarray(array), spec)
        except ValueError as error:
            raise ArgumentError(f"{self.name}: {error}") from None

    def _encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        array = np.asarray(array, spec.dtype)
        offset, scale = self._parameter("offset", spec), self._parameter("scale", spec)
        numbers = number_type(spec.data_type)
        if isinstance(numbers, Integers):
            # x - offset and (x - offset) * scale are within the range of the type if x is within these bounds
            low, high = _divided(numbers, int(scale))
            _check(array, low + int(offset), high + int(offset), f"(x - {offset}) * {scale}")
            wide = _wide(numbers)
            return _cast((array.astype(wide) - wide.type(offset)) * wide.type(scale), spec)
        steps = ((operator.sub, offset), (operator.mul, scale))
        return _cast(_computed(array, spec, steps, f"(x - {offset}) * {scale}"), spec)

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        offset, scale = self._parameter("offset", spec), self._parameter("scale", spec)
        array = np.asarray(array, spec.dtype)
        numbers = number_type(spec.data_type)
        if isinstance(numbers, Integers):
            low = max(numbers.low, numbers.low - int(offset))
            high = min(numbers.high, numbers.high - int(offset))
            bounds = (low * int(scale), high * int(scale))
            _check(array, min(bounds), max(bounds), f"x / {scale} + {offset}")
            wide = _wide(numbers)
            values = array.astype(wide)
            rest = values % wide.type(scale) != 0
            if rest.any():
                raise ValueError(f"{values[rest].flat[0]} is not a multiple of the scale {scale}")
            return _cast(values // wide.type(scale) + wide.type(offset), spec)
        steps = ((operator.truediv, scale), (operator.add, offset))
        return _cast(_computed(array, spec, steps, f"x / {scale} + {offset}"), spec)


def _cast(result: Any, spec: ArraySpec) -> NDArray:
    """Convert a result, which may be a numpy scalar and must be within the range of the data type, to that type."""
    return np.asarray(result).astype(spec.dtype)


def _wide(numbers: Integers) -> np.dtype[Any]:
    """Return the 64-bit integer type that can represent every number of the given type."""
    return np.dtype("u8" if numbers.low == 0 else "i8")


def _divided(numbers: Integers, scale: int) -> tuple[int, int]:
    """Return the bounds of the integers of a type whose product with `scale` is in the range of the type."""
    bounds = (numbers.low, numbers.high) if scale > 0 else (-numbers.high, -numbers.low)
    low, high = -(-bounds[0] // abs(scale)), bounds[1] // abs(scale)
    return max(low, numbers.low), min(high, numbers.high)


def _check(array: NDArray, low: int, high: int, formula: str) -> None:
    """Raise ValueError if a number is outside the bounds, which may exceed the range of the array's data type."""
    for number in (array.min(), array.max()) if array.size else ():
        if not low <= int(number) <= high:
            raise ValueError(f"{formula} is beyond the range of {array.dtype} for x = {number}")


def _computed(array: NDArray, spec: ArraySpec, steps: Sequence[Step], formula: str) -> NDArray:
    """Apply operations to numbers, and round each result. Raises ValueError if a finite number has no finite result."""
    numbers: Any = number_type(spec.data_type)
    if not numbers.is_native:
        return _computed_in_float64(array, numbers, steps, formula)
    result, lost = array, np.zeros(array.shape, bool)
    with np.errstate(all="ignore"):
        for operation, operand in steps:
            result = operation(result, operand)
            lost |= np.isfinite(array) & ~np.isfinite(result)
    if lost.any():
        raise ValueError(f"{formula} is beyond the range of {array.dtype} for x = {array[lost].flat[0]}")
    return result


def _computed_in_float64(array: NDArray, numbers: Floats, steps: Sequence[Step], formula: str) -> NDArray:
    for operation, operand in steps:
        with np.errstate(all="ignore"):
            result = np.asarray(operation(array.astype("f8"), float(operand)))
        try:
            array = convert(result, FLOAT64, numbers, "nearest-even", None)
        except ValueError as error:
            raise ValueError(f"{formula} is out of range: {error}") from None
    return array
