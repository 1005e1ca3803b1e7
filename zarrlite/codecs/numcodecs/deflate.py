"""The `numcodecs.gzip` and `numcodecs.zlib` codecs: RFC 1952 and RFC 1950.

Rules
- `numcodecs.gzip` differs from `gzip` only in its name and in its default level.
- A zlib value is a single stream: bytes after it are an error.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Self

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.gzip import Gzip
from zarrlite.codecs.streams import decompress
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec


@register
@dataclass(frozen=True)
class GZip(Gzip):
    """Deflate compression with the header and the checksum of gzip."""

    name = "numcodecs.gzip"
    level: int = 1


@register
@dataclass(frozen=True)
class Zlib(BytesBytesCodec):
    """Deflate compression with the header and the checksum of zlib."""

    name = "numcodecs.zlib"
    level: int = 1

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.integer("level", -1, 9, default=cls.level))  # -1 is zlib's default level

    def encode(self, data: Buffer) -> bytes:
        return zlib.compress(data, self.level)

    def decode(self, data: Buffer, limit: int) -> bytes:
        return decompress(data, limit, zlib.decompressobj, "zlib", single=True)
