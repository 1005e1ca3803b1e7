"""The `gzip` codec: RFC 1952, one member or several.

Rules
- Output is reproducible: its header contains neither a file name nor a time.
- Decompression stops at the limit. Bytes after the last member are an error.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Self

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.streams import decompress
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec

_GZIP = 16 + zlib.MAX_WBITS


@register
@dataclass(frozen=True)
class Gzip(BytesBytesCodec):
    """Deflate compression with a header and a checksum."""

    name = "gzip"
    level: int = 5

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.integer("level", 0, 9, default=cls.level))

    def encode(self, data: Buffer) -> bytes:
        compressor = zlib.compressobj(self.level, zlib.DEFLATED, _GZIP)
        return compressor.compress(data) + compressor.flush()

    def decode(self, data: Buffer, limit: int) -> bytes:
        return decompress(data, limit, lambda: zlib.decompressobj(_GZIP), "gzip")
