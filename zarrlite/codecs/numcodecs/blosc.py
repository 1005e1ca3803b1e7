"""The `numcodecs.blosc` codec: `blosc` with the configuration of numcodecs.

Rules
- `shuffle` is a number: 0 disables shuffling, 1 shuffles bytes, 2 shuffles bits, and -1 shuffles bits if elements have
  one byte, otherwise bytes.
- The element size is not part of the configuration. A bytes -> bytes codec does not know the data type and assumes
  elements of one byte, for which a `shuffle` of -1 means 2. The runtime option `typesize` sets another size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs import blosc
from zarrlite.extensions.config import Config
from zarrlite.extensions.extension import runtime
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec

AUTOSHUFFLE = -1


@register
@dataclass(frozen=True)
class Blosc(BytesBytesCodec):
    """A meta-compressor that shuffles bytes or bits before compressing them."""

    name = "numcodecs.blosc"
    extra = "numcodecs"
    cname: str = "lz4"
    clevel: int = 5
    shuffle: int = 1
    blocksize: int = 0
    typesize: int = runtime(1)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(
            config.string("cname", blosc.Blosc.compressors, default=cls.cname),
            config.integer("clevel", 0, 9, default=cls.clevel),
            config.integer("shuffle", AUTOSHUFFLE, 2, default=cls.shuffle),
            config.integer("blocksize", 0, 2**31 - 1, default=cls.blocksize),
        )

    @property
    def _registered(self) -> blosc.Blosc:
        """The registered codec that produces the same bytes."""
        shuffle = self.shuffle
        if shuffle == AUTOSHUFFLE:
            shuffle = 2 if self.typesize == 1 else 1
        return blosc.Blosc(self.cname, self.clevel, blosc.Blosc.shuffles[shuffle], self.typesize, self.blocksize)

    def encode(self, data: Buffer) -> Buffer:
        return self._registered.encode(data)

    def decode(self, data: Buffer, limit: int) -> Buffer:
        return self._registered.decode(data, limit)
