"""The `numcodecs.bz2` codec: bzip2, one stream or several."""

from __future__ import annotations

import bz2
from dataclasses import dataclass
from typing import Self

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.streams import decompress
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec


@register
@dataclass(frozen=True)
class BZ2(BytesBytesCodec):
    """Bzip2 compression."""

    name = "numcodecs.bz2"
    level: int = 1

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.integer("level", 1, 9, default=cls.level))

    def encode(self, data: Buffer) -> bytes:
        return bz2.compress(data, self.level)

    def decode(self, data: Buffer, limit: int) -> bytes:
        return decompress(data, limit, bz2.BZ2Decompressor, "bzip2")
