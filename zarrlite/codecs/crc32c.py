"""The `crc32c` codec: four bytes of checksum after the data.

Rules (codecs/crc32c, Format and algorithm)
- The checksum is "a 32-bit unsigned integer represented in little endian".
- It covers the whole value, so the whole value is read: a part of it would go unchecked.
"""

from __future__ import annotations

from dataclasses import dataclass

import google_crc32c
import numpy as np

from zarrlite.buffers.pieces import Value, as_list
from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import ChecksumError
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import Framing

_BYTE = np.dtype("u1")
_RESIDUE = 0x48674BC7  # the checksum of any data that is followed by its own checksum


@register
@dataclass(frozen=True)
class Crc32c(Framing):
    """A checksum that is verified on every read."""

    name = "crc32c"
    tail = 4
    verifies = True
    depends_on_value = True

    def frame(self, value: Value) -> tuple[Buffer, Buffer]:
        found = 0
        for piece in as_list(value):
            found = google_crc32c.extend(found, piece if type(piece) is bytes else np.frombuffer(piece, _BYTE))  # type: ignore[arg-type]
        return b"", found.to_bytes(4, "little")

    def verify(self, data: Buffer) -> None:
        if checksum(data) != _RESIDUE:
            found, expected = int.from_bytes(data[-4:], "little"), checksum(memoryview(data)[:-4])
            raise ChecksumError(f"the checksum is {found:08x}, the data has {expected:08x}")


def checksum(data: Buffer) -> int:
    """Return the CRC32C of some bytes; google_crc32c takes bytes and arrays, not memoryviews."""
    value: int = google_crc32c.value(data if type(data) is bytes else np.frombuffer(data, _BYTE))
    return value
