"""The `numcodecs.shuffle` codec: the first bytes of all elements, then the second bytes, and so on.

Rules
- An `elementsize` of 0 or 1 changes nothing.
- The size of a value must be a multiple of `elementsize`: HDF5 does not shuffle a remainder, and numcodecs
  refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import ArgumentError, TruncatedError
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec


@register
@dataclass(frozen=True)
class Shuffle(BytesBytesCodec):
    """A permutation of bytes that makes values easier to compress."""

    name = "numcodecs.shuffle"
    elementsize: int = 4

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.integer("elementsize", 0, 2**31 - 1, default=cls.elementsize))

    def encode(self, data: Buffer) -> Buffer:
        size = self.elementsize
        if size <= 1:
            return data
        if len(data) % size:
            raise ArgumentError(f"elementsize must divide the chunk size, {len(data)} bytes, evenly; {size} does not")
        return np.ascontiguousarray(np.frombuffer(data, "u1").reshape(-1, size).T).reshape(-1).data

    def decode(self, data: Buffer, limit: int) -> Buffer:
        size = self.elementsize
        if size <= 1:
            return data
        if len(data) % size:
            raise TruncatedError(f"has {len(data)} bytes, which is not a multiple of the elementsize {size}")
        return np.ascontiguousarray(np.frombuffer(data, "u1").reshape(size, -1).T).reshape(-1).data

    def encoded_size(self, size: int) -> int:
        return size
