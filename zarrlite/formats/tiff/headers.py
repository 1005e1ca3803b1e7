"""The header of a TIFF file that holds one strip of pixels: what stands in front of a chunk.

Rules (TIFF 6.0; proposal `pad`, Example 1)
- 8 bytes, one directory of 12 bytes for each tag, the values that are longer than 4 bytes, then the pixels.
- A tag is there only if a reader needs it or its default does not do. So the header of a grey 256 x 256 `uint16` chunk
  is, byte for byte, the base64 text of the proposal (110 bytes; the hexdump beside it, 102 bytes, is wrong).
- "StripByteCounts" is the number of bytes that follow, so with compression the header depends on the chunk.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, Final

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs import Bytes, Pad, Zstd
from zarrlite.data_types import from_dtype
from zarrlite.errors import ArgumentError
from zarrlite.pipeline.codec import Codec
from zarrlite.selections.casting import normalize_shape
from zarrlite.selections.selection import Shape

SHORT, LONG = 3, 4
FORMATS: Final = {SHORT: "H", LONG: "I"}
# data type -> SampleFormat and BitsPerSample
DATA_TYPES: Final = {
    "uint8": (1, 8),
    "uint16": (1, 16),
    "uint32": (1, 32),
    "int8": (2, 8),
    "int16": (2, 16),
    "int32": (2, 32),
    "float32": (3, 32),
    "float64": (3, 64),
}
COMPRESSIONS: Final = {None: 1, "zstd": 50000}
BYTE_ORDERS: Final = {"little": ("<", b"II"), "big": (">", b"MM")}
GREY, RGB = 1, 2  # PhotometricInterpretation
UNASSOCIATED_ALPHA = 2
MOST = 2**32 - 1  # offsets and byte counts have 32 bits


@dataclass(frozen=True)
class Header:
    """A header function for `pad` and `offset`: called with the bytes that will follow, it makes those in front."""

    height: int
    width: int
    samples: int
    data_type: str
    byteorder: str = "little"
    compression: str | None = None

    @property
    def shape(self) -> Shape:
        """The shape of the picture."""
        return (self.height, self.width) if self.samples == 1 else (self.height, self.width, self.samples)

    @property
    def pixel_bytes(self) -> int:
        """Bytes of all pixels, not compressed."""
        return math.prod(self.shape) * DATA_TYPES[self.data_type][1] // 8

    @property
    def nbytes(self) -> int:
        """Bytes of the header."""
        return len(self._make(0))

    def __call__(self, data: Buffer) -> bytes:
        if self.compression is None and len(data) != self.pixel_bytes:
            raise ArgumentError(f"a TIFF picture of shape {self.shape} has {self.pixel_bytes} bytes, not {len(data)}")
        return self._make(len(data))

    def pad(self) -> Pad:
        """The codec that puts this header in front: literal padding, or made for each chunk if that is compressed."""
        if self.compression is None:
            return Pad("start", self.nbytes, self._make(self.pixel_bytes))
        return Pad("start", self.nbytes, padding_func=self)

    def codecs(self) -> list[Codec]:
        """The whole codec chain of an array whose chunks are TIFF files."""
        return [Bytes(self.byteorder), *([] if self.compression is None else [Zstd()]), self.pad()]

    def _tags(self, offset: int, count: int) -> dict[int, tuple[int, tuple[int, ...]]]:
        """Tag -> type and values, in ascending order."""
        sample_format, bits = DATA_TYPES[self.data_type]
        tags = {
            256: _size(self.width),
            257: _size(self.height),
            258: (SHORT, (bits,) * self.samples),
            259: (SHORT, (COMPRESSIONS[self.compression],)),
            262: (SHORT, (GREY if self.samples == 1 else RGB,)),
            273: (LONG, (offset,)),
            277: (SHORT, (self.samples,)),
            278: _size(self.height),
            279: (LONG, (count,)),
            338: (SHORT, (UNASSOCIATED_ALPHA,)),
            339: (SHORT, (sample_format,) * self.samples),
        }
        defaults = {277: self.samples == 1, 338: self.samples != 4, 339: sample_format == 1}
        return {tag: value for tag, value in tags.items() if not defaults.get(tag)}

    def _make(self, count: int) -> bytes:
        order, mark = BYTE_ORDERS[self.byteorder]
        tags = self._tags(0, 0)
        behind = 8 + 2 + 12 * len(tags) + 4  # where values that are longer than 4 bytes go
        end = behind + sum(n for type_, values in tags.values() if (n := _length(type_, values)) > 4)
        if end + count > MOST:
            raise ArgumentError(f"a TIFF file has at most {MOST} bytes, not {end + count}; use smaller chunks")
        directory, values_behind = struct.pack(order + "H", len(tags)), b""
        for tag, (type_, values) in self._tags(end, count).items():  # TIFF 6.0, section 2, Image File Directory
            packed = struct.pack(f"{order}{len(values)}{FORMATS[type_]}", *values)
            directory += struct.pack(order + "HHI", tag, type_, len(values))
            if len(packed) <= 4:
                directory += packed.ljust(4, b"\0")  # "left-justified within the 4-byte Value Offset"
            else:
                directory += struct.pack(order + "I", behind + len(values_behind))
                values_behind += packed
        return mark + struct.pack(order + "HI", 42, 8) + directory + bytes(4) + values_behind


def _size(n: int) -> tuple[int, tuple[int, ...]]:
    return (SHORT if n < 2**16 else LONG), (n,)


def _length(type_: int, values: tuple[int, ...]) -> int:
    return struct.calcsize(FORMATS[type_]) * len(values)


def header(
    chunks: Any, dtype: Any, *, rgb: bool = False, byteorder: str = "little", compression: str | None = None
) -> Header:
    """The header of chunks of this shape: `(..., height, width)`, or `(..., height, width, 3 or 4)` with `rgb`.

    Whatever stands in front of the picture must have length 1. `compression` is None or "zstd".

    >>> header((256, 256), "uint16").nbytes
    110
    """
    shape = normalize_shape(chunks)
    name = from_dtype(dtype).name
    if name not in DATA_TYPES:
        raise ArgumentError(f"a TIFF picture has {', '.join(DATA_TYPES)}, not {name}")
    if byteorder not in list(BYTE_ORDERS):
        raise ArgumentError(f"byteorder must be 'little' or 'big', not {byteorder!r}")
    if compression not in list(COMPRESSIONS):
        raise ArgumentError(f"compression must be None or 'zstd', not {compression!r}")
    ndim = 3 if rgb else 2
    picture, before = shape[-ndim:], shape[:-ndim]
    if len(picture) < ndim or set(before) - {1}:
        wanted = "(..., height, width, samples)" if rgb else "(..., height, width)"
        raise ArgumentError(f"a chunk that is a TIFF picture has shape {wanted} with 1 for each '...', not {shape}")
    height, width, samples = (*picture, 1)[:3]
    if rgb and samples not in (3, 4):
        raise ArgumentError(f"an RGB picture has 3 samples, or 4 with alpha, as its last length, not {samples}")
    if not (1 <= height <= MOST and 1 <= width <= MOST):
        raise ArgumentError(f"a TIFF picture has a height and a width from 1 to {MOST}, not {height} and {width}")
    made = Header(height, width, samples, name, byteorder, compression)
    if compression is None:
        made._make(made.pixel_bytes)  # refuses what is too large for TIFF now, not when the first chunk is written
    return made
