"""The `blosc` codec, implemented by numcodecs (install zarrlite[numcodecs]).

Rules (codecs/blosc, Configuration parameters)
- `typesize` is required unless `shuffle` is "noshuffle".
- The header of a blosc buffer contains the encoded and the decoded size; both are checked before the library is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.numcodecs.library import library
from zarrlite.errors import DataError, DependencyError, TruncatedError
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec

_HEADER = 16  # bytes
_FORMATS = {1: "lz4", 2: "snappy", 3: "zlib", 4: "zstd"}  # upper three bits of byte 2 -> compressor; 0 is blosclz


@register
@dataclass(frozen=True)
class Blosc(BytesBytesCodec):
    """A meta-compressor that shuffles bytes or bits before compressing them."""

    name = "blosc"
    extra = "numcodecs"
    compressors: ClassVar[tuple[str, ...]] = ("lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib")
    shuffles: ClassVar[tuple[str, ...]] = ("noshuffle", "shuffle", "bitshuffle")  # blosc numbers them 0, 1, 2
    cname: str = "zstd"
    clevel: int = 5
    shuffle: str = "noshuffle"
    typesize: int | None = None
    blocksize: int = 0

    @classmethod
    def from_config(cls, config: Config) -> Self:
        shuffle = config.string("shuffle", cls.shuffles)
        typesize = config.integer("typesize", 1, default=None)
        # codecs/blosc, Configuration parameters: 'Required unless shuffle is "noshuffle"'
        if typesize is None and shuffle != "noshuffle":
            raise config.error(f"is required with shuffle {shuffle!r}", "typesize", "missing")
        cname = config.string("cname", cls.compressors)
        return cls(
            cname,
            config.integer("clevel", 0, 9),
            shuffle,
            typesize,
            config.integer("blocksize", 0, 2**31 - 1, default=0),
        )

    def encode(self, data: Buffer) -> Buffer:
        blosc = _library(self.cname)
        # numcodecs takes the typesize from the item size of the buffer
        typesize = self.typesize or 1
        if self.shuffle == "noshuffle" or len(data) % typesize:
            typesize = 1
        items = np.frombuffer(data, f"V{typesize}" if typesize > 1 else "u1")
        shuffle = self.shuffles.index(self.shuffle)
        encoded: Buffer = blosc.compress(items, self.cname.encode(), self.clevel, shuffle, self.blocksize)
        return encoded

    def decode(self, data: Buffer, limit: int) -> Buffer:
        data = bytes(data)
        if len(data) < _HEADER:
            raise TruncatedError(f"has {len(data)} bytes, but a blosc header alone has {_HEADER}")
        blosc = _library(_FORMATS.get(data[2] >> 5, "blosclz"))
        size, encoded_size = int.from_bytes(data[4:8], "little"), int.from_bytes(data[12:16], "little")
        if encoded_size != len(data):
            raise TruncatedError(f"has {len(data)} bytes, but its header says {encoded_size}")
        if size > limit:
            raise TruncatedError(f"claims {size} bytes, but at most {limit} fit here")
        if size == 0:
            return b""
        decoded: Buffer = blosc.decompress(data)
        if len(decoded) != size:
            raise DataError(f"decompresses to {len(decoded)} bytes, but its header says {size}")
        return decoded

    def max_encoded_size(self, size: int) -> int:
        return size + _HEADER


def _library(cname: str) -> Any:
    """Return the blosc module of numcodecs. Raises DependencyError unless it supports this compressor."""
    blosc = library("numcodecs.blosc", "blosc")
    if cname not in blosc.list_compressors():
        raise DependencyError(f"the blosc of the installed numcodecs was built without {cname}")
    return blosc
