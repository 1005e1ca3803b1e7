"""The `blosc` codec, implemented by numcodecs (install zarrlite[numcodecs]).

Rules (codecs/blosc, Configuration parameters)
- `typesize` is required unless `shuffle` is "noshuffle".
- The configuration of a codec for a new array may omit every member. By default, the bytes of each element are
  shuffled, or the bits if elements consist of one byte.
- The header of a blosc buffer contains the encoded and the decoded size; both are checked before the library is called.
- Incompressible elements are usually stored as a copy after the header, which is the shortest form, but GDAL stores
  them as blocks with offsets and lengths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.numcodecs.library import library
from zarrlite.errors import DataError, DependencyError, TruncatedError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArraySpec, BytesBytesCodec

_HEADER = 16  # bytes
_FORMATS = {1: "lz4", 2: "snappy", 3: "zlib", 4: "zstd"}  # upper three bits of byte 2 -> compressor; 0 is blosclz


@register
@dataclass(frozen=True)
class Blosc(BytesBytesCodec):
    """A meta-compressor that shuffles bytes or bits before compressing them."""

    name = "blosc"
    extra = "numcodecs"
    compressors: ClassVar[tuple[str, ...]] = ("lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib")
    shuffles: ClassVar[tuple[str, ...]] = ("noshuffle", "shuffle", "bitshuffle")  # each index is blosc's number
    cname: str = "zstd"
    clevel: int = 5
    shuffle: str | None = None  # None: "noshuffle", unless `fitted` chooses according to the element size
    typesize: int | None = None  # None: 1, unless `fitted` replaces it with the element size
    blocksize: int = 0

    @classmethod
    def from_config(cls, config: Config) -> Self:
        typesize = config.integer("typesize", 1, default=None)
        blocksize = config.integer("blocksize", 0, 2**31 - 1, default=0)
        if config.context.defaults:
            shuffle = config.string("shuffle", cls.shuffles, default=None)
            cname = config.string("cname", cls.compressors, default=cls.cname)
            return cls(cname, config.integer("clevel", 0, 9, default=cls.clevel), shuffle, typesize, blocksize)
        shuffle = config.string("shuffle", cls.shuffles)
        # codecs/blosc, Configuration parameters: 'Required unless shuffle is "noshuffle"'
        if typesize is None and shuffle != "noshuffle":
            raise config.error(f"is required with shuffle {shuffle!r}", "typesize", "missing")
        cname = config.string("cname", cls.compressors)
        return cls(cname, config.integer("clevel", 0, 9), shuffle, typesize, blocksize)

    def to_config(self) -> dict[str, Json]:
        return {**super().to_config(), "shuffle": self._shuffle}

    @property
    def _shuffle(self) -> str:
        return self.shuffle or "noshuffle"

    def fitted(self, spec: ArraySpec) -> Self:
        # elements of variable length are treated as single bytes
        typesize = self.typesize or spec.data_type.itemsize or 1
        shuffle = self.shuffle or ("bitshuffle" if typesize == 1 else "shuffle")
        return self if shuffle == "noshuffle" else replace(self, shuffle=shuffle, typesize=typesize)

    def encode(self, data: Buffer) -> Buffer:
        blosc = _library(self.cname)
        # numcodecs takes the typesize from the item size of the buffer
        typesize = self.typesize or 1
        if self._shuffle == "noshuffle" or len(data) % typesize:
            typesize = 1
        items = np.frombuffer(data, f"V{typesize}" if typesize > 1 else "u1")
        shuffle = self.shuffles.index(self._shuffle)
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
            raise TruncatedError(f"claims to decompress to {size} bytes, but at most {limit} are allowed")
        if size == 0:
            return b""
        decoded: Buffer = blosc.decompress(data)
        if len(decoded) != size:
            raise DataError(f"decompresses to {len(decoded)} bytes, but its header says {size}")
        return decoded


def _library(cname: str) -> Any:
    """Return the blosc module of numcodecs. Raises DependencyError unless it supports this compressor."""
    blosc = library("numcodecs.blosc", "blosc")
    if cname not in blosc.list_compressors():
        raise DependencyError(f"the blosc library in the installed numcodecs was built without {cname}")
    return blosc
