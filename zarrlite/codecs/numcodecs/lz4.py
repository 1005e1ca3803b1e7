"""The `numcodecs.lz4` codec: the decoded size as a little-endian integer of four bytes, followed by one LZ4 block.

It is implemented with numcodecs (install zarrlite[numcodecs]).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.numcodecs.library import library
from zarrlite.errors import DataError, TruncatedError
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec


@register
@dataclass(frozen=True)
class LZ4(BytesBytesCodec):
    """LZ4 compression."""

    name = "numcodecs.lz4"
    extra = "numcodecs"
    acceleration: int = 1

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.integer("acceleration", -(2**31), 2**31 - 1, default=cls.acceleration))

    def encode(self, data: Buffer) -> Buffer:
        encoded: Buffer = library("numcodecs.lz4", self.name).compress(bytes(data), self.acceleration)
        return encoded

    def decode(self, data: Buffer, limit: int) -> Buffer:
        return decode_block(data, limit, self.name)


def decode_block(data: Buffer, limit: int, codec: str) -> Buffer:
    """Decode one LZ4 block that is preceded by its decoded size."""
    if len(data) < 4:
        raise TruncatedError(f"has {len(data)} bytes, but its header alone has 4")
    size = int.from_bytes(data[:4], "little")
    if size > limit:
        raise TruncatedError(f"claims to decompress to {size} bytes, but at most {limit} are allowed")
    if size == 0:
        return b""
    decoded: Buffer = library("numcodecs.lz4", codec).decompress(bytes(data))
    if len(decoded) != size:
        raise DataError(f"decompresses to {len(decoded)} bytes, but its header says {size}")
    return decoded
