"""Headers of TIFF files with one strip of pixels: the bytes that precede a chunk.

Rules (TIFF 6.0, Section 2; proposal `pad`, Example 1)
- A header is the 8-byte image file header, one image file directory with 12 bytes for each tag, and the values that are
  longer than 4 bytes. The pixels follow it.
- A tag is written only if readers require it or its default would be wrong. The header of a grey 256 x 256 `uint16`
  chunk is therefore exactly the 110 bytes that the proposal shows in base64; the hexdump of 102 bytes in the proposal
  is wrong.
- `StripByteCounts` is the number of bytes after the header, so the header of a compressed chunk depends on the chunk.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs import Bytes, Pad, Zstd
from zarrlite.data_types import from_dtype
from zarrlite.errors import ArgumentError
from zarrlite.formats.tiff.tags import (
    BLACK_IS_ZERO,
    BYTE_ORDERS,
    COMPRESSIONS,
    DATA_TYPES,
    FORMATS,
    LONG,
    MAX_LONG,
    RGB,
    SHORT,
    UNASSOCIATED_ALPHA,
    VERSION,
    Tag,
)
from zarrlite.pipeline.codec import Codec
from zarrlite.selections.casting import normalize_shape
from zarrlite.selections.selection import Shape

Field = tuple[int, tuple[int, ...]]  # type and values


@dataclass(frozen=True)
class Header:
    """The header of a TIFF image, as a padding function for the codecs `pad` and `offset`.

    Called with the bytes of an encoded chunk, it returns the header for them. To create one, use
    `zarrlite.tiff.header`, which checks its arguments.

    Parameters
    ----------
    height, width
        The size of the image in pixels.
    samples
        1 for a grey image, 3 for RGB, 4 for RGB with alpha.
    data_type
        The data type of a sample.
    byteorder
        "little" or "big"; the byte order of the header and of the pixels.
    compression
        None or "zstd".

    Examples
    --------
    >>> Header(2, 3, 1, "uint8")(bytes(6))[:2]
    b'II'
    """

    height: int
    width: int
    samples: int
    data_type: str
    byteorder: str = "little"
    compression: str | None = None

    @property
    def shape(self) -> Shape:
        """The shape of the image: height, width and, for colour images, samples."""
        return (self.height, self.width) if self.samples == 1 else (self.height, self.width, self.samples)

    @property
    def pixel_bytes(self) -> int:
        """The size of the uncompressed pixels in bytes."""
        return math.prod(self.shape) * DATA_TYPES[self.data_type][1] // 8

    @property
    def nbytes(self) -> int:
        """The size of the header in bytes."""
        return len(self._build(0))

    def __call__(self, data: Buffer) -> bytes:
        """Return the header of a strip that consists of these bytes."""
        if self.compression is None and len(data) != self.pixel_bytes:
            message = f"a TIFF image of shape {self.shape} must have {self.pixel_bytes} bytes, not {len(data)}"
            raise ArgumentError(message)
        return self._build(len(data))

    def pad(self) -> Pad:
        """Return the codec that adds this header.

        Its padding is literal, or generated for each chunk if chunks are compressed.
        """
        if self.compression is None:
            return Pad("start", self.nbytes, self._build(self.pixel_bytes))
        return Pad("start", self.nbytes, padding_func=self)

    def codecs(self) -> list[Codec]:
        """Return the complete codec chain of an array whose chunks are TIFF files."""
        compressors = [] if self.compression is None else [Zstd()]
        return [Bytes(self.byteorder), *compressors, self.pad()]

    def _fields(self, strip_offset: int, strip_bytes: int) -> dict[Tag, Field]:
        """Return the directory entries; TIFF 6.0, Section 2: "sorted in ascending order by Tag"."""
        sample_format, bits = DATA_TYPES[self.data_type]
        fields: dict[Tag, Field] = {
            Tag.ImageWidth: _length_field(self.width),
            Tag.ImageLength: _length_field(self.height),
            Tag.BitsPerSample: (SHORT, (bits,) * self.samples),
            Tag.Compression: (SHORT, (COMPRESSIONS[self.compression],)),
            Tag.PhotometricInterpretation: (SHORT, (BLACK_IS_ZERO if self.samples == 1 else RGB,)),
            Tag.StripOffsets: (LONG, (strip_offset,)),
            Tag.SamplesPerPixel: (SHORT, (self.samples,)),
            Tag.RowsPerStrip: _length_field(self.height),
            Tag.StripByteCounts: (LONG, (strip_bytes,)),
            Tag.ExtraSamples: (SHORT, (UNASSOCIATED_ALPHA,)),
            Tag.SampleFormat: (SHORT, (sample_format,) * self.samples),
        }
        is_default = {
            Tag.SamplesPerPixel: self.samples == 1,
            Tag.ExtraSamples: self.samples != 4,
            Tag.SampleFormat: sample_format == 1,
        }
        return {tag: field for tag, field in fields.items() if not is_default.get(tag)}

    def _build(self, strip_bytes: int) -> bytes:
        """Return the header of a strip of this many bytes."""
        order, mark = BYTE_ORDERS[self.byteorder]
        fields = self._fields(0, 0)
        # values of more than 4 bytes are stored after the image file header, the number of entries, the entries, and
        # the offset of the next directory
        values_offset = 8 + 2 + 12 * len(fields) + 4
        strip_offset = values_offset + sum(n for n in map(_value_bytes, fields.values()) if n > 4)
        if strip_offset + strip_bytes > MAX_LONG:
            message = f"a TIFF file must have at most {MAX_LONG} bytes, not {strip_offset + strip_bytes}"
            raise ArgumentError(f"{message}; use smaller chunks")
        directory, long_values = struct.pack(order + "H", len(fields)), b""
        for tag, (field_type, values) in self._fields(strip_offset, strip_bytes).items():
            value = struct.pack(f"{order}{len(values)}{FORMATS[field_type]}", *values)
            directory += struct.pack(order + "HHI", tag, field_type, len(values))
            if len(value) <= 4:
                # TIFF 6.0, Section 2, Value/Offset: "left-justified within the 4-byte Value Offset"
                directory += value.ljust(4, b"\0")
            else:
                directory += struct.pack(order + "I", values_offset + len(long_values))
                long_values += value
        no_next_directory = bytes(4)
        return mark + struct.pack(order + "HI", VERSION, 8) + directory + no_next_directory + long_values


def _length_field(n: int) -> Field:
    """Return the value of ImageWidth, ImageLength or RowsPerStrip, as a SHORT if it fits."""
    return (SHORT if n < 2**16 else LONG), (n,)


def _value_bytes(field: Field) -> int:
    field_type, values = field
    return struct.calcsize(FORMATS[field_type]) * len(values)


def header(
    chunks: int | Sequence[int],
    dtype: Any,
    *,
    rgb: bool = False,
    byteorder: str = "little",
    compression: str | None = None,
) -> Header:
    """Return the header of TIFF images that are chunks of an array.

    Parameters
    ----------
    chunks
        The shape of a chunk: `(..., height, width)`, or `(..., height, width, samples)` with `rgb`. All lengths before
        the height must be 1.
    dtype
        The data type: uint8, uint16, uint32, int8, int16, int32, float32 or float64.
    rgb
        Whether the last dimension contains the samples of a pixel: 3 colours, or 3 colours and alpha.
    byteorder
        "little" or "big"; the byte order of the header and of the pixels.
    compression
        None or "zstd".

    Returns
    -------
    Header
        The header, a padding function for the codecs `pad` and `offset`.

    Raises
    ------
    ArgumentError
        If such chunks cannot be TIFF images. A file must be smaller than 4 GiB; for compressed chunks, this is
        checked when they are written.

    Examples
    --------
    >>> header((256, 256), "uint16").nbytes
    110
    """
    shape = normalize_shape(chunks)
    data_type = from_dtype(dtype).name
    if data_type not in DATA_TYPES:
        raise ArgumentError(f"the data type of a TIFF image must be one of {', '.join(DATA_TYPES)}, not {data_type}")
    if byteorder not in list(BYTE_ORDERS):
        raise ArgumentError(f"byteorder must be 'little' or 'big', not {byteorder!r}")
    if compression not in list(COMPRESSIONS):
        raise ArgumentError(f"compression must be None or 'zstd', not {compression!r}")
    ndim = 3 if rgb else 2
    image_shape, outer_shape = shape[-ndim:], shape[:-ndim]
    if len(image_shape) < ndim or set(outer_shape) - {1}:
        form = "(..., height, width, samples)" if rgb else "(..., height, width)"
        raise ArgumentError(f"chunks of TIFF images must have shape {form} with 1 for all other lengths, not {shape}")
    height, width, samples = (*image_shape, 1)[:3]
    if rgb and samples not in (3, 4):
        raise ArgumentError(f"the last length of chunks of RGB images must be 3, or 4 with alpha, not {samples}")
    if not (1 <= height <= MAX_LONG and 1 <= width <= MAX_LONG):
        message = f"height and width of a TIFF image must be from 1 to {MAX_LONG}, not {height} and {width}"
        raise ArgumentError(message)
    new = Header(height, width, samples, data_type, byteorder, compression)
    if compression is None:
        new.pad()  # refuses images that are too large, before the first chunk is written
    return new
