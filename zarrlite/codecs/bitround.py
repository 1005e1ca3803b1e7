"""The `bitround` codec: numbers with fewer significant bits.

Rules (codecs/bitround, Format and algorithm)
- Floating-point numbers keep `keepbits` bits of their mantissa, integers `keepbits` bits "from the most significant set
  bit". Ties are rounded to even. Decoding changes nothing.
- The specification does not mention signs: the magnitude of a negative integer is rounded.
- NaN and infinity are kept. A number that rounding would move beyond the range of its data type is truncated instead,
  as in the sample data of the specification: with three bits, the uint8 255 becomes 224.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from zarrlite.errors import MetadataError
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayArrayCodec, ArraySpec
from zarrlite.pipeline.elements import NDArray

_MANTISSA_BITS = {"float16": 10, "float32": 23, "float64": 52, "bfloat16": 7}


@register
@dataclass(frozen=True)
class BitRound(ArrayArrayCodec):
    """Numbers, rounded to a given number of significant bits."""

    name = "bitround"
    elementwise = True
    fewest: ClassVar[int] = 1
    keepbits: int

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # codecs/bitround, keepbits: "Must be at least 1"; the published schema permits 0
        return cls(config.integer("keepbits", cls.fewest, 2**31 - 1))

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        if mantissa_bits(spec.dtype) is None and spec.dtype.kind not in "iuMm":
            raise MetadataError(f"{self.name} cannot round {spec.data_type.name}", kind="conflict")
        return spec.recast(spec.data_type, self.encode(spec.fill, spec.reshaped(())))

    def encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        array = np.array(array, spec.dtype, order="C")
        bits = mantissa_bits(spec.dtype)
        if bits is None:
            _round_integers(array, self.keepbits)
        elif self.keepbits < bits:
            _round_floats(array, bits - self.keepbits, bits)
        return array

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        return array


def mantissa_bits(dtype: np.dtype[Any]) -> int | None:
    """Return the number of mantissa bits, without the implicit one. Returns None for types without a mantissa."""
    return _MANTISSA_BITS.get(f"float{4 * dtype.itemsize}" if dtype.kind == "c" else dtype.name)


def _round_floats(array: NDArray, dropped: int, mantissa: int) -> None:
    """Round floating-point numbers in place, by integer arithmetic on their bits."""
    size = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
    bits = array.reshape(-1).view(f"u{size}")
    one = bits.dtype.type(1)
    special = ((one << (8 * size - 1 - mantissa)) - one) << mantissa  # the bits of infinity
    finite = bits & special != special
    truncated = bits >> dropped << dropped
    # add half of what the last kept bit is worth, minus 1 if that bit is 0: the sum carries into the kept bits if and
    # only if the number must be rounded up
    rounded = bits + ((bits >> dropped & one) + (one << (dropped - 1)) - one) >> dropped << dropped
    overflows = rounded & special == special
    bits[...] = np.where(finite, np.where(overflows, truncated, rounded), bits)


def _round_integers(array: NDArray, keepbits: int) -> None:
    """Round integers in place."""
    size = array.dtype.itemsize
    elements = array.reshape(-1).view(f"{'u' if array.dtype.kind == 'u' else 'i'}{size}")
    negative = elements < 0
    magnitude = elements.astype("u8")
    np.negative(magnitude, out=magnitude, where=negative)
    length = bit_length(magnitude)
    dropped = np.maximum(length - keepbits, 0).astype("u8")
    one = np.uint64(1)
    half = np.where(dropped > 0, one << np.maximum(dropped, one) - one, np.uint64(0))
    rest = magnitude & ((one << np.minimum(dropped, np.uint64(63))) - one)
    kept = magnitude >> dropped
    up = (dropped > 0) & ((rest > half) | ((rest == half) & (kept & one == one)))
    largest = np.uint64(2 ** (8 * size) - 1 if array.dtype.kind == "u" else 2 ** (8 * size - 1) - 1)
    # the magnitude of the smallest integer is one larger than that of the largest; in time types, the smallest integer
    # is NaT, so no number may be rounded to it
    extra = negative & (array.dtype.kind == "i")
    unit = one << dropped
    up &= kept * unit <= largest + extra.astype("u8") - unit
    rounded = (kept + up) * unit
    elements[...] = np.where(negative, np.negative(rounded), rounded).astype(elements.dtype)


def bit_length(magnitude: NDArray) -> NDArray:
    """Return the number of significant bits of each unsigned integer."""
    high = (magnitude >> np.uint64(32)).astype("f8")
    low = (magnitude & np.uint64(2**32 - 1)).astype("f8")
    lengths: NDArray = np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(low)[1])
    return lengths
