"""What the header of a TIFF file says, if the file is one that can be a chunk.

Rules
- The file is not trusted: every offset is checked before it is followed, and no number in it makes much be read.
- What `pad`, `zstd` and `bytes` cannot express is refused, never guessed: tiles, several strips or pages, planes apart,
  predictors, other compressions, bits that are no whole bytes, colours other than grey and RGB, BigTIFF.
- Pixels are not read. Tags that do not change what pixels mean are skipped.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.errors import DataError
from zarrlite.formats.tiff.headers import BYTE_ORDERS, COMPRESSIONS, DATA_TYPES, FORMATS, GREY, MOST, RGB, Header
from zarrlite.stores import Store

_AHEAD = 1024  # bytes that are read at once: most headers are shorter
_NAMES: Final = {
    256: "ImageWidth",
    257: "ImageLength",
    258: "BitsPerSample",
    259: "Compression",
    262: "PhotometricInterpretation",
    266: "FillOrder",
    273: "StripOffsets",
    274: "Orientation",
    277: "SamplesPerPixel",
    278: "RowsPerStrip",
    279: "StripByteCounts",
    284: "PlanarConfiguration",
    317: "Predictor",
    322: "TileWidth",
    339: "SampleFormat",
}
_DEFAULTS: Final = {258: 1, 259: 1, 266: 1, 274: 1, 277: 1, 278: MOST, 284: 1, 317: 1, 339: 1}
_ONLY_DEFAULT: Final = (266, 274, 284, 317)  # another value means other pixels than those that stand there
_DATA_TYPE_OF: Final = {value: name for name, value in DATA_TYPES.items()}
_COMPRESSION_OF: Final = {value: name for name, value in COMPRESSIONS.items()}
_REFUSED_COMPRESSIONS: Final = {5: "LZW", 7: "JPEG", 8: "deflate", 32773: "PackBits", 32946: "deflate"}


class Picture(NamedTuple):
    """A TIFF file as `pad` sees it: a header, bytes in front of the strip, and bytes behind it."""

    header: Header
    before: int
    behind: int


def read_picture(store: Store, key: str) -> Picture:
    """The picture that a file holds; DataError with its key if it cannot be a chunk."""
    try:
        return _parse(_File(store, key))
    except DataError as error:
        raise error.at(key=key) from None


class _File:
    """A file of which only a few bytes are read."""

    def __init__(self, store: Store, key: str) -> None:
        self.store, self.key = store, key
        self.size = store.size(key) or 0
        self._start, self._block = 0, memoryview(b"")

    def read(self, start: int, length: int, what: str) -> Buffer:
        if start + length > self.size:
            raise DataError(f"the {what} at byte {start} does not fit in a file of {self.size} bytes")
        if not self._start <= start <= start + length <= self._start + len(self._block):
            found = self.store.get(self.key, ByteRange(start, start + max(length, _AHEAD)))
            self._start, self._block = start, memoryview(found or b"")
        value = self._block[start - self._start :][:length]
        if len(value) < length:
            raise DataError(f"has become shorter than its {self.size} bytes")
        return value


class _Directory:
    """The tags of the one page of a file."""

    def __init__(self, file: _File) -> None:
        self.file = file
        mark = bytes(file.read(0, 8, "TIFF header"))
        orders = [name for name, (_, start) in BYTE_ORDERS.items() if mark.startswith(start)]
        if not orders:
            raise DataError(f"is not a TIFF file: it starts with {mark[:4]!r}")
        self.byteorder = orders[0]
        self.order = BYTE_ORDERS[self.byteorder][0]
        version, offset = struct.unpack(self.order + "2xHI", mark)
        if version != 42:
            raise DataError(
                "is BigTIFF, which is not handled" if version == 43 else f"is TIFF version {version}, not 42"
            )
        (count,) = struct.unpack(self.order + "H", file.read(offset, 2, "directory"))
        table = bytes(file.read(offset + 2, 12 * count + 4, "directory"))
        self.entries: dict[int, tuple[int, int, bytes]] = {}
        for tag, type_, n, field in struct.iter_unpack(self.order + "HHI4s", table[:-4]):
            if tag in self.entries and tag in _NAMES:
                raise DataError(f"has two tags {_NAMES[tag]}")
            self.entries[tag] = (type_, n, field)
        if table[-4:] != bytes(4):
            raise DataError("has several pages; a chunk is one")

    def values(self, tag: int, most: int = 1) -> tuple[int, ...]:
        """The numbers of a tag, at most so many."""
        name = _NAMES[tag]
        if tag not in self.entries:
            if tag not in _DEFAULTS:
                raise DataError(f"has no tag {name}")
            return (_DEFAULTS[tag],)
        type_, count, field = self.entries[tag]
        if type_ not in FORMATS:
            raise DataError(f"{name} has type {type_}, not SHORT (3) or LONG (4)")
        if not 1 <= count <= most:
            raise DataError(f"{name} has {count} values; it can have {'1' if most == 1 else f'1 to {most}'}")
        form = f"{self.order}{count}{FORMATS[type_]}"
        length = struct.calcsize(form)
        if length <= 4:
            return struct.unpack(form, field[:length])
        (start,) = struct.unpack(self.order + "I", field)
        return struct.unpack(form, self.file.read(start, length, f"value of {name}"))

    def one(self, tag: int) -> int:
        return self.values(tag)[0]

    def same(self, tag: int, samples: int) -> int:
        """The number that a tag has for each sample."""
        values = self.values(tag, samples)
        if len(set(values)) > 1:
            raise DataError(f"{_NAMES[tag]} differs between samples: {', '.join(map(str, values))}")
        return values[0]


def _parse(file: _File) -> Picture:
    tags = _Directory(file)
    if 322 in tags.entries:
        raise DataError("has tiles; a chunk is one strip")
    for tag in (273, 279):
        if tag in tags.entries and (count := tags.entries[tag][1]) > 1:
            raise DataError(f"has {count} strips; a chunk is one")
    for tag in _ONLY_DEFAULT:
        if (value := tags.one(tag)) != _DEFAULTS[tag]:
            raise DataError(f"{_NAMES[tag]} is {value}; only {_DEFAULTS[tag]} can be a chunk")
    samples = _samples(tags)
    kind = (tags.same(339, samples), tags.same(258, samples))
    if kind not in _DATA_TYPE_OF:
        raise DataError(f"SampleFormat {kind[0]} with {kind[1]} bits is none of {', '.join(DATA_TYPES)}")
    compression = tags.one(259)
    if compression not in _COMPRESSION_OF:
        name = _REFUSED_COMPRESSIONS.get(compression)
        raise DataError(
            f"Compression is {compression}{f' ({name})' if name else ''}; only 1 (none) and 50000 (zstd) do"
        )
    height, width = tags.one(257), tags.one(256)
    if not (height and width):
        raise DataError(f"has no pixels: {height} x {width}")
    if (rows := tags.one(278)) < height:
        raise DataError(f"RowsPerStrip is {rows}, and the only strip needs {height}")
    made = Header(height, width, samples, _DATA_TYPE_OF[kind], tags.byteorder, _COMPRESSION_OF[compression])
    return _picture(made, tags.one(273), tags.one(279), file.size)


def _samples(tags: _Directory) -> int:
    colour, samples = tags.one(262), tags.one(277)
    if (colour, samples) not in ((GREY, 1), (RGB, 3), (RGB, 4)):
        wanted = "only grey (1) with 1 and RGB (2) with 3 or 4 do"
        raise DataError(f"PhotometricInterpretation is {colour}, SamplesPerPixel {samples}; {wanted}")
    return samples


def _picture(header: Header, offset: int, count: int, size: int) -> Picture:
    if offset + count > size:
        raise DataError(f"the strip of {count} bytes at byte {offset} does not fit in a file of {size} bytes")
    if header.compression is None and count != header.pixel_bytes:
        raise DataError(f"StripByteCounts is {count}, a picture of shape {header.shape} has {header.pixel_bytes} bytes")
    return Picture(header, offset, size - offset - count)
