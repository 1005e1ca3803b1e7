"""A folder of TIFF files that are laid out as chunks, seen as a Zarr array.

Rules
- Every `.tif` and `.tiff` file is a chunk: one that is not named as one, or is unlike the first, is refused by name.
- What stands around the strip is skipped by `pad`, in front and behind (many programs write the header last); so it has
  the same number of bytes in every file.
- The folder is only read. On request `zarr.json` is written beside the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.chunk_key_encodings import DefaultKeys, SuffixKeys, V2Keys
from zarrlite.codecs import Bytes, Pad, Zstd
from zarrlite.errors import ArgumentError, DataError, NodeExistsError, NodeNotFoundError
from zarrlite.extensions.config import Json
from zarrlite.formats.foreign import ForeignStore
from zarrlite.formats.tiff.parse import Picture, read_picture
from zarrlite.metadata.documents import ArrayMetadata, serialize
from zarrlite.names import DOCUMENT
from zarrlite.nodes.array import Array
from zarrlite.nodes.creation import DEFAULT, array_metadata
from zarrlite.pipeline.codec import Codec
from zarrlite.selections.casting import normalize_shape
from zarrlite.selections.selection import Shape
from zarrlite.stores import Listing, Store, open_store

_is_tiff = re.compile(r".*\.tiff?", re.IGNORECASE | re.DOTALL).fullmatch
_split = re.compile(r"(c[/.])?([0-9]+(?:([/.])[0-9]+)*)(\.[^0-9/][^/]*)").fullmatch
_LITERAL = 2**16  # bytes of padding that zarr.json is willing to hold


class TiffFolder(ForeignStore):
    """The chunks of a folder, and the document that makes an array of them."""

    def __init__(self, store: Store, metadata: ArrayMetadata) -> None:
        super().__init__(store)
        self.metadata = metadata

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, TiffFolder) and other.metadata == self.metadata

    __hash__ = ForeignStore.__hash__

    def document(self, path: str) -> dict[str, Json] | None:
        return None if path else self.metadata.to_json()

    def underlying_key(self, key: str) -> str | None:
        return None if self.metadata.chunk_key_encoding.decode(key, len(self.metadata.shape)) is None else key

    def list_prefix(self, prefix: str) -> Iterator[str]:
        chunks = (key for key in self.store.list_prefix(prefix) if self.underlying_key(key))
        return iter(sorted([*chunks, *([] if prefix else [DOCUMENT])]))

    def list_dir(self, prefix: str) -> Listing:
        return Store.list_dir(self, prefix)


def open_folder(store: Any, *, shape: Any = None, fill_value: Any = DEFAULT, save: bool = False) -> Array:
    """Open a folder of TIFF files as a read-only array; the header of every file is checked now.

    Files are named as chunks: `c/0/1.tiff`, `c.0.1.tiff`, `0/1.tiff` or `0.1.tiff`, with any extension that ends with
    `.tif` or `.tiff`. Without `shape` the array ends with the last file in each dimension; where a file is missing it
    has the fill value. `save` writes `zarr.json` into the folder, so that any Zarr library with `suffix` and `pad` can
    open it.
    """
    place = open_store(store)
    metadata = _metadata(place, shape, fill_value)
    if save:
        if place.size(DOCUMENT) is not None:
            raise NodeExistsError(f"there is a {DOCUMENT} in {place!r} already", path="")
        place.set(DOCUMENT, serialize(metadata))
    return Array(TiffFolder(place, metadata), "", metadata)


def _metadata(store: Store, shape: Any, fill_value: Any) -> ArrayMetadata:
    """The metadata that fits every file."""
    keys = sorted(filter(_is_tiff, store.list()))
    if not keys:
        raise NodeNotFoundError(f"no TIFF files in {store!r}", path="")
    encoding, ndim = _encoding(keys[0])
    coords = [_coords(encoding, key, ndim) for key in keys]
    first = read_picture(store, keys[0])
    for key in keys[1:]:
        _check_same(read_picture(store, key), first, key, keys[0])
    made = first.header
    if ndim < len(made.shape):
        message = f"a picture of shape {made.shape} has at least {len(made.shape)} coordinates in its name, not {ndim}"
        raise DataError(message, key=keys[0])
    chunks = (1,) * (ndim - len(made.shape)) + made.shape
    return array_metadata(
        _shape(shape, coords, chunks, keys),
        made.data_type,
        chunks=chunks,
        codecs=_codecs(store, keys[0], first),
        fill_value=fill_value,
        chunk_key_encoding=encoding,
    )


def _encoding(key: str) -> tuple[SuffixKeys, int]:
    """The chunk key encoding that a name follows, and its number of coordinates."""
    parts = _split(key)
    if parts is None:
        raise DataError("is not named as a chunk, such as c/0/1.tiff, c.0.1.tiff, 0/1.tiff or 0.1.tiff", key=key)
    c, numbers, separator, suffix = parts.groups()
    base = DefaultKeys(c[1]) if c else V2Keys(separator or ".")
    return SuffixKeys(suffix, base), len(re.split("[/.]", numbers))


def _coords(encoding: SuffixKeys, key: str, ndim: int) -> Shape:
    coords = encoding.decode(key, ndim)
    if coords is None:
        raise DataError(f"is not named as a chunk in the way of {encoding.encode((0,) * ndim)}", key=key)
    return coords


def _check_same(picture: Picture, first: Picture, key: str, first_key: str) -> None:
    """Refuse a file that the metadata of the first one does not fit."""
    for what in ("shape", "data_type", "byteorder", "compression"):
        mine, wanted = getattr(picture.header, what), getattr(first.header, what)
        if mine != wanted:
            raise DataError(f"has {what} {mine}, {first_key} has {wanted}; the files of a folder are alike", key=key)
    for what in ("before", "behind"):
        mine, wanted = getattr(picture, what), getattr(first, what)
        if mine != wanted:
            raise DataError(
                f"has {mine} bytes {what} its pixels, {first_key} has {wanted}; they must be alike", key=key
            )


def _shape(shape: Any, coords: list[Shape], chunks: Shape, keys: list[str]) -> Shape:
    if shape is None:
        return tuple((max(along) + 1) * n for along, n in zip(zip(*coords, strict=True), chunks, strict=True))
    lengths = normalize_shape(shape)
    if len(lengths) != len(chunks):
        raise ArgumentError(f"shape must have {len(chunks)} lengths, as the names of the files say, not {shape!r}")
    for key, at in zip(keys, coords, strict=True):
        if any(i * n >= length for i, n, length in zip(at, chunks, lengths, strict=True)):
            raise ArgumentError(f"{key} lies outside of shape {lengths}")
    return lengths


def _codecs(store: Store, key: str, picture: Picture) -> list[Codec]:
    made = picture.header
    chain: list[Codec] = [Bytes(made.byteorder)]
    head: Buffer | None = None
    tail: Buffer | None = None
    if made.compression is not None:
        chain.append(Zstd())
    elif picture.before + picture.behind <= _LITERAL:  # then a chunk that somebody writes is a TIFF file again
        head = store.get(key, ByteRange(0, picture.before))
        tail = store.get(key, ByteRange(picture.before + made.pixel_bytes))
    if picture.behind:
        chain.append(Pad("end", picture.behind, None if tail is None else bytes(tail)))
    return [*chain, Pad("start", picture.before, None if head is None else bytes(head))]
