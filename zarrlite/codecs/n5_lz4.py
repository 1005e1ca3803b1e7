"""The `zarrlite.n5_lz4` codec: the N5 compression `lz4`, implemented with numcodecs (install zarrlite[numcodecs]).

Rules
- Java's N5 writes blocks, each with a header (lz4-java, LZ4BlockOutputStream): "LZ4Block", a byte with the method, the
  encoded size, the decoded size and a checksum, all little endian. The last block is empty.
- The checksum is the lower 28 bits of the xxHash32 of the decoded block.
- z5 writes a single block without any header, which is supported as well; its decoded size is that of the chunk. A
  block without a header cannot begin with the bytes "LZ4Block": as LZ4 data, they would refer to bytes from before the
  start of the output.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.numcodecs.library import library
from zarrlite.codecs.numcodecs.lz4 import decode_block
from zarrlite.errors import ChecksumError, DataError, TruncatedError
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec
from zarrlite.pipeline.decoding import MAX_EMPTY

_MAGIC = b"LZ4Block"
_HEADER = struct.Struct("<8sBIII")
_RAW, _LZ4 = 0x10, 0x20  # methods, in the upper four bits of a byte whose lower four bits tell readers the block size
_SEED = 0x9747B28C
_SIZES = (64, 2**25)  # bytes; the smallest and the largest block that lz4-java writes
_MASK = 2**32 - 1
_PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)


@register
@dataclass(frozen=True)
class N5Lz4(BytesBytesCodec):
    """LZ4 compression, as Java's N5 stores it."""

    name = "zarrlite.n5_lz4"
    extra = "numcodecs"
    block_size: int = 2**16

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.integer("block_size", *_SIZES, default=cls.block_size))

    def encode(self, data: Buffer) -> bytes:
        compress = library("numcodecs.lz4", self.name).compress
        level = max(0, (self.block_size - 1).bit_length() - 10)
        view, pieces = memoryview(data), []
        for start in range(0, len(view), self.block_size):
            block = bytes(view[start : start + self.block_size])
            encoded, method = compress(block)[4:], _LZ4  # skip the decoded size, which numcodecs puts first
            if len(encoded) >= len(block):
                encoded, method = block, _RAW
            checksum = xxhash32(block, _SEED) & 0xFFFFFFF
            pieces += [_HEADER.pack(_MAGIC, method | level, len(encoded), len(block), checksum), encoded]
        return b"".join((*pieces, _HEADER.pack(_MAGIC, _RAW | level, 0, 0, 0)))

    def decode(self, data: Buffer, limit: int) -> Buffer:
        view = memoryview(data)
        if bytes(view[:8]) != _MAGIC:
            return decode_block(limit.to_bytes(4, "little") + bytes(view), limit, self.name)
        pieces, room, position, empty = [], limit, 0, 0
        while position < len(view):
            if len(view) - position < _HEADER.size:
                raise TruncatedError("ends within the header of a block")
            magic, method, encoded_size, size, checksum = _HEADER.unpack_from(view, position)
            position += _HEADER.size
            room -= size
            if room < 0:
                raise TruncatedError(f"claims to decompress to more than the {limit} bytes that are allowed")
            if magic != _MAGIC or method & 0xF0 not in (_RAW, _LZ4):
                raise DataError("a block must begin with 'LZ4Block' and a known method")
            if encoded_size > len(view) - position:
                raise TruncatedError(f"has only {len(view) - position} of {encoded_size} bytes of a block")
            if not size:
                empty += 1
                if empty > MAX_EMPTY or encoded_size:
                    raise DataError(f"must have at most {MAX_EMPTY} blocks without content")
                continue
            block: Buffer = view[position : position + encoded_size]
            position += encoded_size
            if method & 0xF0 == _LZ4:
                block = decode_block(size.to_bytes(4, "little") + bytes(block), size, self.name)
            if len(block) != size:
                raise DataError(f"a block has {len(block)} bytes, but its header says {size}")
            found = xxhash32(bytes(block), _SEED) & 0xFFFFFFF
            if found != checksum:
                raise ChecksumError(f"the stored checksum is {checksum:08x}, but that of the data is {found:08x}")
            pieces.append(block)
        if not empty:
            raise TruncatedError("must end with an empty block")
        return b"".join(pieces)


def xxhash32(data: bytes, seed: int) -> int:
    """Return the xxHash32 of some bytes (XXH32 in the xxHash specification).

    >>> hex(xxhash32(b"", 0)), hex(xxhash32(b"Nobody inspects the spammish repetition", 0))
    ('0x2cc5d05', '0xe2293b2f')
    """
    p1, p2, p3, p4, p5 = _PRIMES
    end = len(data) & ~15
    if end:
        a, b, c, d = seed + p1 + p2, seed + p2, seed, seed - p1
        for w, x, y, z in struct.iter_unpack("<4I", data[:end]):
            a = (a + w * p2) & _MASK
            a = (a << 13 | a >> 19) * p1 & _MASK
            b = (b + x * p2) & _MASK
            b = (b << 13 | b >> 19) * p1 & _MASK
            c = (c + y * p2) & _MASK
            c = (c << 13 | c >> 19) * p1 & _MASK
            d = (d + z * p2) & _MASK
            d = (d << 13 | d >> 19) * p1 & _MASK
        total = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
    else:
        total = seed + p5
    total += len(data)
    words = end + (len(data) - end) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[end:words]):
        total = _rotated((total + word * p3) & _MASK, 17) * p4
    for byte in data[words:]:
        total = _rotated((total + byte * p5) & _MASK, 11) * p1
    total &= _MASK
    total = (total ^ total >> 15) * p2 & _MASK
    total = (total ^ total >> 13) * p3 & _MASK
    return total ^ total >> 16


def _rotated(value: int, bits: int) -> int:
    """Rotate a 32-bit integer to the left."""
    return (value << bits | value >> (32 - bits)) & _MASK
