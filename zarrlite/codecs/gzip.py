"""The `gzip` codec: RFC 1952, one member or several.

Rules
- Output is reproducible: its header has no file name and no time.
- Decompression stops at the limit. Bytes after the last member are an error.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Self

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import DataError, TruncatedError
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec
from zarrlite.pipeline.decoding import MAX_EMPTY

_GZIP = 16 + zlib.MAX_WBITS
_STEP = 2**8  # bytes; members after the first are read in steps from this size on, since zlib copies unused input


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
        view = memoryview(data)
        pieces: list[bytes] = []
        # one byte more than the limit shows that it is exceeded; besides, zlib takes 0 for "no limit"
        room, position, step, empty = limit + 1, 0, len(view), 0
        while position < len(view) or not pieces:
            member, room_before = zlib.decompressobj(_GZIP), room
            while not member.eof:
                block = view[position : position + step]
                if not block:
                    raise TruncatedError("the gzip stream ends too early")
                step *= 2
                pieces.append(member.decompress(block, room))
                position += len(block) - len(member.unused_data)
                room -= len(pieces[-1])
                if room <= 0:
                    raise TruncatedError(f"decompresses to more than the {limit} bytes that fit here")
            step = _STEP
            empty += room == room_before
            if empty > MAX_EMPTY:
                raise DataError(f"must have at most {MAX_EMPTY} gzip members without content")
        return b"".join(pieces)
