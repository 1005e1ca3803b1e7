"""The `numcodecs.bitround` codec: like `bitround`, but only for floating-point numbers.

Rules
- `keepbits` may be 0, but must not exceed the number of mantissa bits of the data type.
"""

from __future__ import annotations

from dataclasses import dataclass

from zarrlite.codecs import bitround
from zarrlite.errors import MetadataError
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArraySpec


@register
@dataclass(frozen=True)
class BitRound(bitround.BitRound):
    """Floating-point numbers, rounded to a given number of mantissa bits."""

    name = "numcodecs.bitround"
    fewest = 0

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        bits = bitround.mantissa_bits(spec.dtype)
        if bits is None or spec.dtype.kind != "f":
            raise MetadataError(f"{self.name} cannot round {spec.data_type.name}", kind="conflict")
        if self.keepbits > bits:
            message = (
                f"must be at most {bits}, the number of mantissa bits of {spec.data_type.name}, not {self.keepbits}"
            )
            raise MetadataError(message, pointer="/configuration/keepbits", kind="conflict")
        return super().encoded_spec(spec)
