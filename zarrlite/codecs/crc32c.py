"""The `crc32c` codec: a checksum of four bytes after the data.

Rules (codecs/crc32c, Format and algorithm)
- The checksum is "a 32-bit unsigned integer represented in little endian".
- It covers the whole value, so every partial read reads the whole value to verify it.
"""

from __future__ import annotations

from dataclasses import dataclass

from zarrlite.buffers.pieces import Value
from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import ChecksumError
from zarrlite.extensions.registry import register
from zarrlite.libraries.crc32c import checksum
from zarrlite.pipeline.codec import Framing

_RESIDUE = 0x48674BC7  # CRC of any value that is followed by its own CRC: always this constant


@register
@dataclass(frozen=True)
class Crc32c(Framing):
    """A checksum that is verified on every read."""

    name = "crc32c"
    tail = 4
    verifies = True
    depends_on_value = True

    def frame(self, value: Value) -> tuple[Buffer, Buffer]:
        value_checksum = 0
        for piece in value if type(value) is list else [value]:
            value_checksum = checksum(piece, value_checksum)  # type: ignore[arg-type]
        # codecs/crc32c, Format and algorithm: "unsigned integer represented in little endian"
        return b"", value_checksum.to_bytes(4, "little")

    def verify(self, data: Buffer) -> None:
        if checksum(data) != _RESIDUE:
            stored, computed = int.from_bytes(data[-4:], "little"), checksum(memoryview(data)[:-4])
            raise ChecksumError(f"the stored checksum is {stored:08x}, but that of the data is {computed:08x}")
