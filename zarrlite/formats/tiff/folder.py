"""A folder of TIFF files whose names are chunk keys, as a read-only Zarr store.

Rules
- Every `.tif` and `.tiff` file is a chunk. A file is refused if its name is not a chunk key, or if its pixels differ
  in shape or format from those of the first file.
- `pad` skips the bytes before and after the strip (many programs write the header last), so every file must have the
  same number of bytes before its strip, and the same number after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from zarrlite.buffers.ranges import ByteRange
from zarrlite.chunk_key_encodings import DefaultKeys, SuffixKeys, V2Keys
from zarrlite.codecs import Bytes, Pad, Zstd
from zarrlite.errors import ArgumentError, DataError, NodeNotFoundError
from zarrlite.extensions.config import Json
from zarrlite.formats.foreign import ForeignStore
from zarrlite.formats.tiff.parse import TiffImage, read_image
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.names import DOCUMENT
from zarrlite.pipeline.codec import Codec
from zarrlite.selections.casting import normalize_shape
from zarrlite.selections.selection import Shape
from zarrlite.stores import Listing, Store

_is_tiff = re.compile(r".*\.tiff?", re.IGNORECASE | re.DOTALL).fullmatch
# regex groups: "c" and the separator after it, coordinates, the last separator between coordinates, suffix
_split_key = re.compile(r"(c[/.])?([0-9]+(?:([/.])[0-9]+)*)(\.[^0-9/][^/]*)").fullmatch
_MAX_LITERAL_BYTES: Final = 2**16  # bytes; longer headers are not copied into zarr.json as literal padding


class TiffFolder(ForeignStore):
    """A read-only view of the files in a folder, with the document of the array whose chunks they are."""

    format = "TIFF files"

    def __init__(self, store: Store, metadata: ArrayMetadata) -> None:
        super().__init__(store)
        self.metadata = metadata

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, TiffFolder) and other.metadata == self.metadata

    __hash__ = ForeignStore.__hash__

    def document(self, path: str) -> dict[str, Json] | None:
        return None if path else self.metadata.to_json()

    def underlying_key(self, key: str) -> str | None:
        coords = self.metadata.chunk_key_encoding.decode(key, len(self.metadata.shape))
        return None if coords is None else key

    def list_prefix(self, prefix: str) -> Iterator[str]:
        keys = [key for key in self.store.list_prefix(prefix) if self.underlying_key(key)]
        if not prefix:
            keys.append(DOCUMENT)
        return iter(sorted(keys))

    def list_dir(self, prefix: str) -> Listing:
        return Store.list_dir(self, prefix)


class FolderDescription(NamedTuple):
    """The metadata of the array whose chunks are the files in a folder."""

    shape: Shape
    data_type: str
    chunks: Shape
    chunk_key_encoding: SuffixKeys
    codecs: list[Codec]


def scan_folder(store: Store, shape: Any = None) -> FolderDescription:
    """Read the headers of all TIFF files and describe the array whose chunks they are.

    Without `shape`, the array ends with the last file in each dimension. Raises DataError, with the key, for a file
    that cannot be a chunk of this array, and NodeNotFoundError if there are no TIFF files.
    """
    keys = sorted(filter(_is_tiff, store.list()))
    if not keys:
        raise NodeNotFoundError(f"no TIFF files in {store!r}", path="")
    encoding, ndim = _key_encoding(keys[0])
    coords = [_coords(encoding, key, ndim) for key in keys]
    first = read_image(store, keys[0])
    for key in keys[1:]:
        _check_same(read_image(store, key), first, key, keys[0])
    image_shape = first.header.shape
    if ndim < len(image_shape):
        message = f"must have at least {len(image_shape)} coordinates in its name, not {ndim}"
        raise DataError(f"{message}, for an image of shape {image_shape}", key=keys[0])
    chunks = (1,) * (ndim - len(image_shape)) + image_shape
    lengths = _default_shape(coords, chunks) if shape is None else _check_shape(shape, coords, chunks, keys)
    codecs = _codecs(store, keys[0], first)
    return FolderDescription(lengths, first.header.data_type, chunks, encoding, codecs)


def _key_encoding(key: str) -> tuple[SuffixKeys, int]:
    """Return the chunk key encoding that produces a file name, and the number of coordinates in the name."""
    parts = _split_key(key)
    if parts is None:
        message = "must have a name like a chunk key, such as c/0/1.tiff, c.0.1.tiff, 0/1.tiff or 0.1.tiff"
        raise DataError(message, key=key)
    c, numbers, separator, suffix = parts.groups()
    base = DefaultKeys(c[1]) if c else V2Keys(separator or ".")
    return SuffixKeys(suffix, base), len(re.split("[/.]", numbers))  # proposal `suffix`, Configuration


def _coords(encoding: SuffixKeys, key: str, ndim: int) -> Shape:
    coords = encoding.decode(key, ndim)
    if coords is None:
        raise DataError(f"must have a name like {encoding.encode((0,) * ndim)}", key=key)
    return coords


def _check_same(image: TiffImage, first: TiffImage, key: str, first_key: str) -> None:
    """Raise DataError if a file differs from the first one, which determines the metadata."""
    header, first_header = image.header, first.header
    for name, actual, expected in (
        ("shape", header.shape, first_header.shape),
        ("data type", header.data_type, first_header.data_type),
        ("byte order", header.byteorder, first_header.byteorder),
        ("compression", header.compression, first_header.compression),
    ):
        if actual != expected:
            raise DataError(f"must have {name} {expected}, like {first_key}, not {actual}", key=key)
    for where, actual_bytes, expected_bytes in (
        ("before", image.before, first.before),
        ("after", image.after, first.after),
    ):
        if actual_bytes != expected_bytes:
            message = f"must have {expected_bytes} bytes {where} its pixels, like {first_key}, not {actual_bytes}"
            raise DataError(message, key=key)


def _default_shape(coords: list[Shape], chunks: Shape) -> Shape:
    """Return the smallest shape that includes all files."""
    return tuple((max(along) + 1) * n for along, n in zip(zip(*coords, strict=True), chunks, strict=True))


def _check_shape(shape: Any, coords: list[Shape], chunks: Shape, keys: list[str]) -> Shape:
    """Return the shape as a tuple. Raises ArgumentError if a file is outside of it."""
    lengths = normalize_shape(shape)
    if len(lengths) != len(chunks):
        message = f"shape must have {len(chunks)} lengths, one for each coordinate in a file name, not {shape!r}"
        raise ArgumentError(message)
    for key, chunk_coords in zip(keys, coords, strict=True):
        if any(i * n >= length for i, n, length in zip(chunk_coords, chunks, lengths, strict=True)):
            raise ArgumentError(f"shape must include all files, but {key} is outside of {lengths}")
    return lengths


def _codecs(store: Store, key: str, image: TiffImage) -> list[Codec]:
    """Return the codec chain of the files.

    If possible, the bytes around the strip become literal padding, so that chunks that are written later are TIFF
    files, too.
    """
    header = image.header
    chain: list[Codec] = [Bytes(header.byteorder)]
    before: bytes | None = None
    after: bytes | None = None
    if header.compression is not None:
        chain.append(Zstd())
    elif image.before + image.after <= _MAX_LITERAL_BYTES:
        before = _read(store, key, ByteRange(0, image.before))
        after = _read(store, key, ByteRange(image.before + header.pixel_bytes))
    if image.after:
        chain.append(Pad("end", image.after, after))
    # proposal `pad`, Description: "To add both a prefix and a suffix", apply it twice
    return [*chain, Pad("start", image.before, before)]


def _read(store: Store, key: str, byte_range: ByteRange) -> bytes | None:
    """Read a range of a file. Returns None if the file is missing."""
    value = store.get(key, byte_range)
    return None if value is None else bytes(value)
