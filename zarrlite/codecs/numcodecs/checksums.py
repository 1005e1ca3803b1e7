"""The checksums of numcodecs: `numcodecs.crc32`, `adler32`, `crc32c`, `fletcher32` and `jenkins_lookup3`.

Rules
- A checksum is four bytes, little endian. `crc32` and `adler32` store it before the value, the other codecs after it.
- For `crc32`, `adler32` and `crc32c`, `location` overrides this position. Metadata contains `location` only if it
  differs from the default, because older versions of numcodecs do not support it.
- A checksum covers the whole value, so every partial read reads the whole value to verify it.
- `fletcher32` is the variant in HDF5 (H5checksum.c). It adds big-endian words of 16 bits modulo 65535; a sum of 0 is
  stored as 65535, unless all words are 0.
"""

from __future__ import annotations

import zlib
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from zarrlite.buffers.pieces import Value, join
from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.numcodecs.library import library
from zarrlite.errors import ChecksumError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import register
from zarrlite.libraries.crc32c import checksum as crc32c
from zarrlite.pipeline.anatomy import Field
from zarrlite.pipeline.codec import Framing

_WORDS = 2**16  # number of 16-bit words summed in one step; the weighted sum of this many words fits in 64 bits
_WEIGHTS = np.arange(_WORDS, 0, -1, dtype="u8")


class _Checksum(Framing):
    """A checksum of four bytes before or after the value."""

    at_start: bool = False
    verifies = True
    depends_on_value = True

    @abstractmethod
    def checksum(self, data: Buffer) -> int:
        """Return the checksum of a value."""

    @property
    def head(self) -> int:  # type: ignore[override]
        return 4 if self.at_start else 0

    @property
    def tail(self) -> int:  # type: ignore[override]
        return 0 if self.at_start else 4

    def to_json(self) -> Json:
        return {**super().to_json(), "configuration": self.to_config()}  # zarr-python requires `configuration`

    def frame(self, value: Value) -> tuple[Buffer, Buffer]:
        checksum = self.checksum(join(value)).to_bytes(4, "little")
        return (checksum, b"") if self.at_start else (b"", checksum)

    def verify(self, data: Buffer) -> None:
        view = memoryview(data)
        stored, value = (view[:4], view[4:]) if self.at_start else (view[-4:], view[:-4])
        expected, computed = int.from_bytes(stored, "little"), self.checksum(value)
        if expected != computed:
            raise ChecksumError(f"the stored checksum is {expected:08x}, but that of the data is {computed:08x}")

    def fields(self) -> tuple[list[Field], list[Field]]:
        field = Field("checksum", 4, "checksum")
        return ([field], []) if self.at_start else ([], [field])


@dataclass(frozen=True)
class _Located(_Checksum):
    """A checksum whose position is configurable."""

    default: ClassVar[str] = "start"
    location: str | None = None  # None: the default

    @property
    def at_start(self) -> bool:  # type: ignore[override]
        return (self.location or self.default) == "start"

    @classmethod
    def from_config(cls, config: Config) -> Self:
        location = config.string("location", ("start", "end"), default=cls.default)
        return cls(None if location == cls.default else location)


@register
@dataclass(frozen=True)
class CRC32(_Located):
    """The CRC-32 of zlib and gzip."""

    name = "numcodecs.crc32"

    def checksum(self, data: Buffer) -> int:
        return zlib.crc32(data)


@register
@dataclass(frozen=True)
class Adler32(_Located):
    """Adler-32 (RFC 1950)."""

    name = "numcodecs.adler32"

    def checksum(self, data: Buffer) -> int:
        return zlib.adler32(data)


@register
@dataclass(frozen=True)
class CRC32C(_Located):
    """CRC-32C; if `location` is "end", the stored bytes are the same as those of `crc32c`."""

    name = "numcodecs.crc32c"
    default = "end"

    def checksum(self, data: Buffer) -> int:
        return crc32c(data)


@register
@dataclass(frozen=True)
class Fletcher32(_Checksum):
    """The Fletcher checksum of HDF5."""

    name = "numcodecs.fletcher32"

    def checksum(self, data: Buffer) -> int:
        data = bytes(data) + b"\0" if len(data) % 2 else data
        words = np.frombuffer(data, ">u2")
        first = second = 0  # the sum of the words, and the sum of the running totals after each word
        for i in range(0, len(words), _WORDS):
            block = words[i : i + _WORDS].astype("u8")
            second += len(block) * first + int(block @ _WEIGHTS[-len(block) :])
            first += int(block.sum())
        return _ones_complement(second) << 16 | _ones_complement(first)


def _ones_complement(total: int) -> int:
    """Reduce a sum modulo 65535, as HDF5 does: nonzero multiples of 65535 become 65535 instead of 0."""
    return (total - 1) % 65535 + 1 if total else 0


@register
@dataclass(frozen=True)
class JenkinsLookup3(_Checksum):
    """The checksum of HDF5's metadata: Bob Jenkins' lookup3."""

    name = "numcodecs.jenkins_lookup3"
    extra = "numcodecs"
    initval: int = 0

    @classmethod
    def from_config(cls, config: Config) -> Self:
        if config.raw("prefix", None) is not None:
            raise config.error("must be null: numcodecs expects bytes, which have no JSON form", "prefix")
        return cls(config.integer("initval", 0, 2**32 - 1, default=0))

    def checksum(self, data: Buffer) -> int:
        jenkins = library("numcodecs.jenkins", self.name)
        checksum: int = jenkins.jenkins_lookup3(np.frombuffer(data, "u1"), self.initval)
        return checksum
