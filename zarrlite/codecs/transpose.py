"""The `transpose` codec: `B = numpy.transpose(A, order)`.

Rules (codecs/transpose, Configuration parameters)
- `order` is a permutation of the dimensions. The former constants "C" and "F" are refused (Change log).
- Partial reads and writes do not move any elements: they pass on the selection with its dimensions relabelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from zarrlite.errors import MetadataError
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayArrayCodec, ArraySpec
from zarrlite.pipeline.elements import ElementLayout, NDArray
from zarrlite.selections.selection import Selection


@register
@dataclass(frozen=True)
class Transpose(ArrayArrayCodec):
    """A permutation of the dimensions."""

    name = "transpose"
    order: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", tuple(self.order))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        order = config.integers("order")
        # codecs/transpose, Configuration parameters: "array of integers specifying a permutation"
        if sorted(order) != list(range(len(order))):
            raise config.error(f"must be a permutation of 0 to {len(order) - 1}, not {list(order)}", "order")
        return cls(order)

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        if sorted(self.order) != list(range(len(spec.shape))):
            message = f"must be a permutation of the {len(spec.shape)} dimensions, not {list(self.order)}"
            raise MetadataError(message, pointer="/configuration/order", kind="conflict")
        # codecs/transpose, Format and algorithm: "B_shape[i] = A_shape[order[i]]"
        return spec.reshaped(tuple(spec.shape[i] for i in self.order))

    def encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        return array.transpose(self.order)

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        return array.transpose(np.argsort(self.order))

    def encode_selection(self, selection: Selection) -> Selection:
        return selection.relabel(self.order)

    def decoded_layout(self, layout: ElementLayout) -> ElementLayout:
        return layout.transposed(self.order)

    def decoded_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(shape[i] for i in np.argsort(self.order))
