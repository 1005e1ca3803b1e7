"""The `crc32c` codec: four bytes of checksum behind the data.

Rules (codecs/crc32c, Format and algorithm)
- The checksum is "a 32-bit unsigned integer represented in little endian".
- It covers the whole value, so the whole value is read: a part of it would go unchecked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numpy as np

from zarrlite.buffers.batch import Run, lengths
from zarrlite.buffers.ranges import Buffer, Made, Pieces, in_pieces
from zarrlite.errors import ChecksumError, TruncatedError
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec

_WITH_ITSELF = 0x48674BC7  # the checksum of anything that is followed by its own
SMALL = 2**13  # bytes of a value below which a copy costs less than another piece
_BYTE = np.dtype("u1")


@register
@dataclass(frozen=True)
class Crc32c(BytesBytesCodec):
    """A checksum that is verified on every read."""

    name = "crc32c"
    verifies = True

    def encode(self, data: Buffer) -> bytes:
        return b"".join((data, checksum(data).to_bytes(4, "little")))

    def encode_pieces(self, data: Pieces, old: Buffer | None) -> Pieces:
        # what is made is kept, or it would be made once for the checksum and once more to be stored
        pieces: list[Any] = [piece.whole() if isinstance(piece, Made) else piece for piece in in_pieces(data)]
        value = 0
        for piece in pieces:
            value = google_crc32c.extend(value, piece if type(piece) is bytes else np.frombuffer(piece, _BYTE))
        return [*pieces, value.to_bytes(4, "little")]

    def encode_many(self, values: Sequence[Buffer]) -> Sequence[Pieces]:
        if max(lengths(values), default=0) < SMALL:
            value, array = google_crc32c.value, np.frombuffer
            return [b"".join((data, value(array(data, _BYTE)).to_bytes(4, "little"))) for data in values]
        return [[value, checksum(value).to_bytes(4, "little")] for value in values]

    def decode(self, data: Buffer, limit: int) -> memoryview:
        if len(data) < 4:
            raise TruncatedError(f"has {len(data)} bytes, the checksum alone has 4")
        body = memoryview(data)[:-4]
        if not self.is_sound(data):
            found, wanted = int.from_bytes(data[-4:], "little"), checksum(body)
            raise ChecksumError(f"the checksum is {found:08x}, the data has {wanted:08x}")
        return body

    def decode_many(self, values: Sequence[Buffer], limit: int) -> Sequence[Buffer]:
        if isinstance(values, Run):
            data, value = values.bytes, google_crc32c.value
            found = {value(data[start:stop]) for start, stop in values.bounds()}
        else:
            found = {*map(checksum, values)}
        if found != {_WITH_ITSELF} or min(lengths(values)) < 4:
            return super().decode_many(values, limit)  # which says what is wrong
        return values.without_tails(4) if isinstance(values, Run) else [memoryview(value)[:-4] for value in values]

    def is_sound(self, data: Buffer) -> bool:
        found: int = google_crc32c.value(data if type(data) is bytes else np.frombuffer(data, _BYTE))
        return found == _WITH_ITSELF

    def encoded_size(self, size: int) -> int:
        return size + 4


def checksum(data: Buffer) -> int:
    """CRC32C; google_crc32c takes bytes and arrays, not memoryviews."""
    value: int = google_crc32c.value(data if type(data) is bytes else np.frombuffer(data, _BYTE))
    return value
