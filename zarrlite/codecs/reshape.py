"""The `reshape` codec: the same elements, in the same order, as an array of another shape.

Rules (codecs/reshape, Configuration parameters)
- A length is a positive integer, a list of input dimensions whose lengths are multiplied, or -1, which stands for the
  only possible length and may occur once.
- Input dimensions are in "strictly monotonically increasing order". The output dimensions before a list must have as
  many elements as the input dimensions before the ones that it names, and likewise for the dimensions after it. (For
  the preceding dimensions, the specification writes `A_shape[input_dims[0]]`, but means `A_shape[:input_dims[0]]`.)
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from zarrlite.errors import MetadataError
from zarrlite.extensions.config import MAX_LENGTH, Config, Json, is_integer, show
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayArrayCodec, ArraySpec
from zarrlite.pipeline.elements import NDArray
from zarrlite.selections.casting import MAX_NDIM

_POINTER = "/configuration/shape"


@register
@dataclass(frozen=True)
class Reshape(ArrayArrayCodec):
    """A change of shape."""

    name = "reshape"
    shape: tuple[int | tuple[int, ...], ...]

    def __post_init__(self) -> None:
        lengths = tuple(tuple(item) if isinstance(item, (list, tuple)) else item for item in self.shape)
        object.__setattr__(self, "shape", lengths)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        items = config.list("shape")
        for i, item in enumerate(items):
            _check_item(config, i, item)
        # codecs/reshape, shape: "the special value `-1`, which must occur at most once"
        if items.count(-1) > 1:
            raise config.error("must contain -1 at most once", "shape")
        dims = [dim for item in items if isinstance(item, list) for dim in item]
        if any(a >= b for a, b in itertools.pairwise(dims)):
            raise config.error(f"must name input dimensions in increasing order, not {dims}", "shape")
        return cls(tuple(items))

    def to_config(self) -> dict[str, Json]:
        return {"shape": [[*item] if isinstance(item, tuple) else item for item in self.shape]}

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        if len(self.shape) > MAX_NDIM:
            message = f"must have at most {MAX_NDIM} items, not {len(self.shape)}"
            raise MetadataError(message, pointer=_POINTER, kind="limit")
        lengths = [self._length(i, spec.shape) for i in range(len(self.shape))]
        known = math.prod(n for n in lengths if n != -1)
        if -1 in lengths and known and spec.size % known == 0:
            lengths[lengths.index(-1)] = spec.size // known
        # codecs/reshape, shape: "Implementations MUST return an error if the invariant" does not hold
        if -1 in lengths or math.prod(lengths) != spec.size:
            message = (
                f"must have as many elements as a chunk of shape {list(spec.shape)}, "
                f"not {show(self.to_config()['shape'])}"
            )
            raise MetadataError(message, pointer=_POINTER, kind="conflict")
        for i, item in enumerate(self.shape):
            if isinstance(item, tuple) and item:
                before, after = spec.shape[: item[0]], spec.shape[item[-1] + 1 :]
                if math.prod(lengths[:i]) != math.prod(before) or math.prod(lengths[i + 1 :]) != math.prod(after):
                    message = (
                        "the items before and after it must have as many elements as the input dimensions before and "
                        f"after {list(item)}"
                    )
                    raise MetadataError(message, pointer=f"{_POINTER}/{i}", kind="conflict")
        return spec.reshaped(tuple(lengths))

    def _length(self, i: int, shape: tuple[int, ...]) -> int:
        """Return an output length, or -1 if it has to be inferred."""
        item = self.shape[i]
        if not isinstance(item, tuple):
            return item
        if item and item[-1] >= len(shape):
            message = f"must be below {len(shape)}, the number of dimensions, not {item[-1]}"
            raise MetadataError(message, pointer=f"{_POINTER}/{i}", kind="conflict")
        return math.prod(shape[dim] for dim in item)

    def encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        return np.ascontiguousarray(array).reshape(self.encoded_spec(spec).shape)

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        return array.reshape(spec.shape)


def _check_item(config: Config, i: int, item: Json) -> None:
    """Raise MetadataError unless an item is a length, a list of dimensions, or -1."""
    pointer = Config({}, config.at("shape"), config.context)
    if isinstance(item, list):
        if not all(is_integer(dim) and 0 <= dim < MAX_NDIM for dim in item):
            raise pointer.error(f"must be an array of dimensions from 0 to {MAX_NDIM - 1}, not {show(item)}", str(i))
    elif not is_integer(item):
        raise pointer.error(f"must be an integer or an array of dimensions, not {show(item)}", str(i), "type")
    elif item != -1 and not 1 <= item <= MAX_LENGTH:
        raise pointer.error(f"must be a positive integer or -1, not {show(item)}", str(i))
