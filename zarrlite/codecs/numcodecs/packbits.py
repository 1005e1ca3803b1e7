"""The `numcodecs.packbits` codec: booleans, eight to a byte.

Rules
- This is not the format of the registered codec `packbits`: the first byte is the number of padding bits, and the
  first element is the most significant bit.
- Encoded arrays have one dimension and the data type uint8. They have no fill value, because the first byte is a
  count. A sharding codec cannot follow, because it requires a fill value for absent inner chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zarrlite.data_types import from_dtype
from zarrlite.errors import DataError, MetadataError
from zarrlite.extensions.config import Json
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayArrayCodec, ArraySpec
from zarrlite.pipeline.elements import NDArray


@register
@dataclass(frozen=True)
class PackBits(ArrayArrayCodec):
    """Booleans as bits, preceded by the number of padding bits."""

    name = "numcodecs.packbits"

    def to_json(self) -> Json:
        return {**super().to_json(), "configuration": {}}  # zarr-python requires `configuration`

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        if spec.dtype.kind != "b":
            raise MetadataError(f"{self.name} stores booleans, not {spec.data_type.name}", kind="conflict")
        fault = f"{self.name} cannot encode the fill value of absent chunks; move it to the codecs of the inner chunks"
        return spec.recast(from_dtype("uint8"), 0, fault).reshaped((1 + -(-spec.size // 8),))

    def encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        bits = np.packbits(np.ascontiguousarray(array).reshape(-1))
        return np.concatenate((np.array([-spec.size % 8], "u1"), bits))

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        padding = -spec.size % 8
        if array[0] != padding:
            raise DataError(f"the number of padding bits must be {padding}, not {array[0]}")
        return np.unpackbits(array[1:], count=spec.size).view(bool).reshape(spec.shape)
