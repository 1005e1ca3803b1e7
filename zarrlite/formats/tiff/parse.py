"""Parse the header of a TIFF file that is to be used as a chunk.

Rules
- The file is not trusted: every offset is checked before it is followed, and no number in it can cause a large read.
- Features that `pad`, `zstd` and `bytes` cannot express are refused: tiles, several strips or pages, separate planes,
  predictors, other compression schemes, samples that are not whole bytes, colours other than grey and RGB, BigTIFF.
- Pixels are not read. Tags that do not change the meaning of pixels are skipped.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.errors import DataError
from zarrlite.formats.tiff.headers import Header
from zarrlite.formats.tiff.tags import (
    BIG_TIFF,
    BLACK_IS_ZERO,
    BYTE_ORDERS,
    COMPRESSIONS,
    DATA_TYPES,
    FORMATS,
    MAX_LONG,
    RGB,
    VERSION,
    Tag,
)
from zarrlite.stores import Store

_BLOCK = 1024  # bytes per read; most headers are shorter, so that one read is enough
_INTERPRETED: Final = frozenset(Tag) - {Tag.ExtraSamples}
# defaults in TIFF 6.0, Section 8; the last two are in Sections 14 and 19
_DEFAULTS: Final = {
    Tag.BitsPerSample: 1,
    Tag.Compression: 1,
    Tag.FillOrder: 1,
    Tag.Orientation: 1,
    Tag.SamplesPerPixel: 1,
    Tag.RowsPerStrip: MAX_LONG,
    Tag.PlanarConfiguration: 1,
    Tag.Predictor: 1,
    Tag.SampleFormat: 1,
}
# tags that must have their default value; otherwise the stored numbers are not the pixels in row-major order
_DEFAULT_REQUIRED: Final = (Tag.FillOrder, Tag.Orientation, Tag.PlanarConfiguration, Tag.Predictor)
_DATA_TYPE_OF: Final = {value: name for name, value in DATA_TYPES.items()}
_COMPRESSION_OF: Final = {value: name for name, value in COMPRESSIONS.items()}
_OTHER_COMPRESSIONS: Final = {5: "LZW", 7: "JPEG", 8: "deflate", 32773: "PackBits", 32946: "deflate"}


class TiffImage(NamedTuple):
    """A TIFF file: its header, and the number of bytes before and after the strip of pixels."""

    header: Header
    before: int
    after: int


def read_image(store: Store, key: str) -> TiffImage:
    """Read the header of a TIFF file. Raises DataError, which names the key, if the file cannot be a chunk."""
    try:
        return _parse(_File(store, key))
    except DataError as error:
        raise error.at(key=key) from None


class _File:
    """A file that is read in small blocks, and of which the most recent one is kept in memory."""

    def __init__(self, store: Store, key: str) -> None:
        self.store, self.key = store, key
        self.size = store.size(key) or 0
        self._start, self._block = 0, memoryview(b"")

    def read(self, start: int, length: int, what: str) -> Buffer:
        if start + length > self.size:
            raise DataError(f"the {what} at byte {start} does not fit in a file of {self.size} bytes")
        if not self._start <= start <= start + length <= self._start + len(self._block):
            block = self.store.get(self.key, ByteRange(start, start + max(length, _BLOCK)))
            self._start, self._block = start, memoryview(block or b"")
        value = self._block[start - self._start :][:length]
        if len(value) < length:
            raise DataError(f"became shorter than {self.size} bytes while it was read")
        return value


class _Directory:
    """The image file directory of a file with one page (TIFF 6.0, Section 2, Image File Directory)."""

    def __init__(self, file: _File) -> None:
        self.file = file
        start = bytes(file.read(0, 8, "TIFF header"))
        byte_orders = [name for name, (_, mark) in BYTE_ORDERS.items() if start.startswith(mark)]
        if not byte_orders:
            raise DataError(f"is not a TIFF file: it starts with {start[:4]!r}")
        self.byteorder = byte_orders[0]
        self.order = BYTE_ORDERS[self.byteorder][0]
        version, offset = struct.unpack(self.order + "2xHI", start)
        if version == BIG_TIFF:
            raise DataError("is BigTIFF, which zarrlite does not read")
        if version != VERSION:
            raise DataError(f"must have TIFF version {VERSION}, not {version}")
        (count,) = struct.unpack(self.order + "H", file.read(offset, 2, "directory"))
        table = bytes(file.read(offset + 2, 12 * count + 4, "directory"))
        self.entries: dict[int, tuple[int, int, bytes]] = {}  # tag -> type, count, value or offset
        for tag, field_type, n, value in struct.iter_unpack(self.order + "HHI4s", table[:-4]):
            if tag in self.entries and tag in _INTERPRETED:
                raise DataError(f"must not have the tag {Tag(tag).name} twice")
            self.entries[tag] = (field_type, n, value)
        if table[-4:] != bytes(4):
            raise DataError("must have one page, not several")

    def values(self, tag: Tag, max_count: int = 1) -> tuple[int, ...]:
        """Return the values of a tag, or its default. Raises DataError if there are more than `max_count`."""
        if tag not in self.entries:
            if tag not in _DEFAULTS:
                raise DataError(f"must have the tag {tag.name}")
            return (_DEFAULTS[tag],)
        field_type, count, value = self.entries[tag]
        if field_type not in FORMATS:
            raise DataError(f"{tag.name} must have type SHORT (3) or LONG (4), not {field_type}")
        if not 1 <= count <= max_count:
            allowed = "1 value" if max_count == 1 else f"1 to {max_count} values"
            raise DataError(f"{tag.name} must have {allowed}, not {count}")
        form = f"{self.order}{count}{FORMATS[field_type]}"
        length = struct.calcsize(form)
        # TIFF 6.0, Section 2, Value/Offset: "if and only if the Value fits into 4 bytes"
        if length <= 4:
            return struct.unpack(form, value[:length])
        (start,) = struct.unpack(self.order + "I", value)
        return struct.unpack(form, self.file.read(start, length, f"value of {tag.name}"))

    def value(self, tag: Tag) -> int:
        """Return the value of a tag that must have a single value."""
        return self.values(tag)[0]

    def sample_value(self, tag: Tag, samples: int) -> int:
        """Return the value of a tag that must have the same value for each sample."""
        values = self.values(tag, samples)
        if len(set(values)) > 1:
            raise DataError(f"{tag.name} must be equal for all samples, not {', '.join(map(str, values))}")
        return values[0]


def _parse(file: _File) -> TiffImage:
    directory = _Directory(file)
    _check_layout(directory)
    samples = _samples(directory)
    data_type = _data_type(directory, samples)
    compression = _compression(directory)
    height, width = directory.value(Tag.ImageLength), directory.value(Tag.ImageWidth)
    if not (height and width):
        raise DataError(f"ImageLength and ImageWidth must be at least 1, not {height} and {width}")
    if (rows := directory.value(Tag.RowsPerStrip)) < height:
        raise DataError(f"RowsPerStrip must be at least {height} for a single strip, not {rows}")
    header = Header(height, width, samples, data_type, directory.byteorder, compression)
    return _image(header, directory.value(Tag.StripOffsets), directory.value(Tag.StripByteCounts), file.size)


def _check_layout(directory: _Directory) -> None:
    """Refuse tiles, several strips, and unsupported arrangements of pixels."""
    if Tag.TileWidth in directory.entries:
        raise DataError("must have one strip, not tiles")
    for tag in (Tag.StripOffsets, Tag.StripByteCounts):
        if tag in directory.entries and (count := directory.entries[tag][1]) > 1:
            raise DataError(f"must have one strip, not {count}")
    for tag in _DEFAULT_REQUIRED:
        if (value := directory.value(tag)) != _DEFAULTS[tag]:
            raise DataError(f"{tag.name} must be {_DEFAULTS[tag]}, not {value}")


def _samples(directory: _Directory) -> int:
    interpretation, samples = directory.value(Tag.PhotometricInterpretation), directory.value(Tag.SamplesPerPixel)
    if (interpretation, samples) not in ((BLACK_IS_ZERO, 1), (RGB, 3), (RGB, 4)):
        allowed = "1 (grey) with 1 sample per pixel, or 2 (RGB) with 3 or 4"
        raise DataError(f"PhotometricInterpretation must be {allowed}, not {interpretation} with {samples}")
    return samples


def _data_type(directory: _Directory, samples: int) -> str:
    sample_format = directory.sample_value(Tag.SampleFormat, samples)
    bits = directory.sample_value(Tag.BitsPerSample, samples)
    if (sample_format, bits) not in _DATA_TYPE_OF:
        message = f"SampleFormat and BitsPerSample must be those of {', '.join(DATA_TYPES)}"
        raise DataError(f"{message}, not {sample_format} and {bits}")
    return _DATA_TYPE_OF[sample_format, bits]


def _compression(directory: _Directory) -> str | None:
    number = directory.value(Tag.Compression)
    if number not in _COMPRESSION_OF:
        name = _OTHER_COMPRESSIONS.get(number)
        description = f"{number} ({name})" if name else str(number)
        raise DataError(f"Compression must be 1 (none) or 50000 (zstd), not {description}")
    return _COMPRESSION_OF[number]


def _image(header: Header, offset: int, count: int, size: int) -> TiffImage:
    """Return the image, after checking that its strip is inside the file and contains all pixels."""
    if offset + count > size:
        raise DataError(f"the strip of {count} bytes at byte {offset} does not fit in a file of {size} bytes")
    if header.compression is None and count != header.pixel_bytes:
        message = f"StripByteCounts must be {header.pixel_bytes} for an image of shape {header.shape}, not {count}"
        raise DataError(message)
    return TiffImage(header, offset, size - offset - count)
