"""Arrays whose chunks are TIFF files.

`create_array` writes such an array and `open_array` opens it for writing; each file is both a Zarr chunk and an image.
`open_folder` reads a folder of TIFF files, written by any program, as an array. The mapping from TIFF to codecs is in
formats/tiff.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.chunks.chunks import ArrayOptions
from zarrlite.codecs import Bytes, Offset, Pad, Zstd
from zarrlite.errors import ArgumentError, NodeExistsError
from zarrlite.extensions.config import Json
from zarrlite.formats.tiff.folder import TiffFolder, scan_folder
from zarrlite.formats.tiff.headers import Header, header
from zarrlite.metadata.documents import ArrayMetadata, Options, serialize
from zarrlite.names import DOCUMENT
from zarrlite.nodes import opening
from zarrlite.nodes.array import Array
from zarrlite.nodes.creation import array_metadata
from zarrlite.stores import open_store

__all__ = ["Header", "create_array", "header", "open_array", "open_folder"]


def create_array(
    store: Any = None,
    *,
    name: str | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    data: Any = None,
    chunks: int | Sequence[int],
    rgb: bool = False,
    byteorder: str = "little",
    compression: str | None = None,
    fill_value: Any = None,
    attributes: Mapping[str, Json] | None = None,
    chunk_key_encoding: Any = SuffixKeys(".tiff"),
    dimension_names: Sequence[str | None] | None = None,
    storage_transformers: Sequence[Any] | None = None,
    options: Options | None = None,
    overwrite: bool = False,
    write_data: bool = True,
    write_empty_chunks: bool | None = None,
    missing_chunks: Literal["fill", "error"] | None = None,
    max_chunk_bytes: int | None = None,
    config: Mapping[str, Any] | None = None,
) -> Array:
    """Create an array whose chunks are TIFF files.

    `chunks`, `rgb`, `byteorder` and `compression` determine the codecs. The other parameters are those of
    `zarrlite.create_array`.

    Parameters
    ----------
    store
        Where to create the array: a path, a URI, a mapping or a store; memory by default.
    name
        The path of the array inside the store; the root by default.
    shape
        The length of each dimension; by default, the shape of `data`.
    dtype
        The data type: uint8, uint16, uint32, int8, int16, int32, float32 or float64; by default that of `data`.
    data
        The initial elements of the array.
    chunks
        The shape of a chunk: `(..., height, width)`, or `(..., height, width, samples)` with `rgb`. All lengths before
        the height must be 1.
    rgb
        Whether the last dimension holds the colours of a pixel: 3, or 4 with alpha.
    byteorder
        "little" or "big"; the byte order of the headers and of the pixels.
    compression
        None or "zstd".
    fill_value
        The value of elements that are not stored; zero by default. The image of an edge chunk has this value beyond
        the edge of the array.
    attributes
        The attributes of the array.
    chunk_key_encoding
        The encoding that names the files; by default, the names are like `c/0/1.tiff`.
    dimension_names
        The name of each dimension, or None for a dimension without one.
    storage_transformers
        The storage transformers, in order from the array to the store.
    options
        Runtime options of extensions, by JSON pointer: `{"/codecs/1": {...}}`.
    overwrite
        Whether to replace a node at the same path.
    write_data
        Whether to store `data`; if not, it only supplies the shape and the data type.
    write_empty_chunks
        Whether to store chunks that contain only the fill value; they have no file by default.
    missing_chunks
        "fill" reads a missing chunk as the fill value (default), "error" raises an error.
    max_chunk_bytes
        The maximum decoded size of a chunk; larger ones are refused. By default, this is the value of the environment
        variable `ZARRLITE_MAX_CHUNK_BYTES`, or 1 GiB if that is not set.
    config
        Further runtime options, as in zarr-python: `{"write_empty_chunks": True}`.

    Returns
    -------
    Array
        The new array.

    Raises
    ------
    ArgumentError
        If an argument is not valid, or the chunks cannot be TIFF images.
    NodeExistsError
        If there is already a node at the path and `overwrite` is false.

    Examples
    --------
    >>> a = create_array("memory://", data=np.eye(4, dtype="uint8"), chunks=(2, 2))
    >>> list(a.store.list())
    ['c/0/0.tiff', 'c/1/1.tiff', 'zarr.json']
    """
    if dtype is None and data is not None:
        data = _as_array(data)
        dtype = data.dtype
    if dtype is None:
        raise ArgumentError("an array needs shape= and dtype=, or data=")
    image_header = header(chunks, dtype, rgb=rgb, byteorder=byteorder, compression=compression)
    return opening.create_array(
        store,
        name=name,
        shape=shape,
        dtype=dtype,
        data=data,
        chunks=chunks,
        codecs=image_header.codecs(),
        fill_value=fill_value,
        attributes=attributes,
        chunk_key_encoding=chunk_key_encoding,
        dimension_names=dimension_names,
        storage_transformers=storage_transformers,
        options=options,
        overwrite=overwrite,
        write_data=write_data,
        write_empty_chunks=write_empty_chunks,
        missing_chunks=missing_chunks,
        max_chunk_bytes=max_chunk_bytes,
        config=config,
    )


def _as_array(data: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(data)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"data must be convertible to an array: {error}") from None


def open_array(
    store: Any = None,
    *,
    mode: opening.Mode = "r+",
    path: str | None = None,
    strict: bool = True,
    options: Options | None = None,
    missing_chunks: Literal["fill", "error"] = "fill",
    write_empty_chunks: bool = False,
    max_chunk_bytes: int | None = None,
) -> Array:
    """Open an array whose chunks are TIFF files, so that new chunks get a TIFF header.

    A function generates the headers of compressed chunks, and `zarr.json` cannot contain a function. `open_array`
    reconstructs the function and passes it as a runtime option; otherwise, chunks would be written with a header of
    zeros. `zarrlite.open_array` is enough for reading, and for writing uncompressed chunks, whose header is in
    `zarr.json`.

    Parameters
    ----------
    store
        The store of the array: a path, a URI, a mapping or a store.
    mode
        "r+" reads and writes, "r" only reads.
    path
        The path of the array inside the store; the root by default.
    strict
        Whether to refuse documents that omit required members; if not, they are repaired with a warning.
    options
        Further runtime options of extensions, by JSON pointer: `{"/codecs/1": {...}}`. They take precedence
        over the reconstructed one.
    missing_chunks
        "fill" reads a missing chunk as the fill value, "error" raises an error.
    write_empty_chunks
        Whether to store chunks that contain only the fill value.
    max_chunk_bytes
        The maximum decoded size of a chunk; larger ones are refused. By default, this is the value of the environment
        variable `ZARRLITE_MAX_CHUNK_BYTES`, or 1 GiB if that is not set.

    Returns
    -------
    Array
        The array.

    Raises
    ------
    NodeNotFoundError
        If there is no array at `path`.
    ArgumentError
        If the chunks are not TIFF files: the codecs must be `bytes`, optionally `zstd`, and `pad` or `offset`, and
        the padding must have the size of the header.

    Examples
    --------
    >>> store = {}
    >>> a = create_array(store, shape=(4, 4), dtype="uint8", chunks=(2, 2), compression="zstd")
    >>> open_array(store)[:2, :2] = 7
    >>> store["c/0/0.tiff"][:2]
    b'II'
    """
    array_store = open_store(store)
    metadata = opening.open_array(array_store, mode="r", path=path, strict=strict).metadata
    if not isinstance(options, Mapping | None):
        raise ArgumentError(f"options must be a mapping keyed by JSON pointers, not {options!r}")
    all_options = dict(options or {})
    last_codec = f"/codecs/{len(metadata.codecs) - 1}"
    all_options[last_codec] = {**_header_option(metadata), **all_options.get(last_codec, {})}
    return opening.open_array(
        array_store,
        mode=mode,
        path=path,
        strict=strict,
        options=all_options,
        missing_chunks=missing_chunks,
        write_empty_chunks=write_empty_chunks,
        max_chunk_bytes=max_chunk_bytes,
    )


def _header_option(metadata: ArrayMetadata) -> dict[str, Header]:
    """Return the runtime option that makes the last codec generate headers; empty if the header is in `zarr.json`."""
    chain = _image_chain(metadata)
    if not metadata.chunk_grid.uniform:
        raise ArgumentError("the chunks of a TIFF array must all have the same shape, because they share a header")
    chunks = metadata.chunk_grid.chunk_shape((0,) * len(metadata.shape))
    for rgb in (False, True):
        with contextlib.suppress(ArgumentError):  # raised if the shape does not suit a grey (or RGB) image
            image_header = header(
                chunks, metadata.data_type, rgb=rgb, byteorder=chain.byteorder, compression=chain.compression
            )
            if image_header.nbytes == chain.header_bytes:  # headers of grey and RGB images differ in size
                return {chain.option: image_header} if chain.literal is None else {}
    raise ArgumentError(
        f"the padding must have the size of a TIFF header for {metadata.data_type.name} chunks of shape {chunks}, "
        f"not {chain.header_bytes} bytes"
    )


class _ImageChain(NamedTuple):
    """The codecs of an array whose chunks are TIFF files."""

    byteorder: str
    compression: str | None
    header_bytes: int
    literal: bytes | None  # the header; None if it is not in zarr.json
    option: str  # the runtime option that passes a header function to the last codec


def _image_chain(metadata: ArrayMetadata) -> _ImageChain:
    """Interpret the codecs of an array. Raises ArgumentError if its chunks cannot be TIFF files."""
    message = "the codecs of TIFF images must be bytes, then optionally zstd, then offset or pad with location 'start'"
    error = ArgumentError(message)
    match metadata.codecs:
        case (Bytes() as serializer, last):
            compression = None
        case (Bytes() as serializer, Zstd(), last):
            compression = "zstd"
        case _:
            raise error
    match last:
        case Pad(location="start", nbytes=nbytes, padding=literal):
            return _ImageChain(serializer.byte_order, compression, nbytes, literal, "padding_func")
        case Offset(offset=nbytes, prefix=literal):
            return _ImageChain(serializer.byte_order, compression, nbytes, literal, "prefix_func")
    raise error


def open_folder(
    store: Any,
    *,
    shape: int | Sequence[int] | None = None,
    fill_value: Any = None,
    save: bool = False,
    max_chunk_bytes: int | None = None,
) -> Array:
    """Open a folder of TIFF files as a read-only array.

    Every `.tif` and `.tiff` file must have a name like a chunk key: `c/0/1.tiff`, `c.0.1.tiff`, `0/1.tiff` or
    `0.1.tiff`. The header of every file is read and checked immediately; all images must have the same shape
    and format.

    Parameters
    ----------
    store
        The folder: a path, a URI, a mapping or a store.
    shape
        The shape of the array; by default, the array ends with the last file along each dimension.
    fill_value
        The value of elements whose file is missing; zero by default.
    save
        Whether to write `zarr.json` into the folder, so that any Zarr library that supports `suffix` and `pad` can
        open it.
    max_chunk_bytes
        The maximum decoded size of a chunk; larger ones are refused. By default, this is the value of the environment
        variable `ZARRLITE_MAX_CHUNK_BYTES`, or 1 GiB if that is not set.

    Returns
    -------
    Array
        The read-only array.

    Raises
    ------
    NodeNotFoundError
        If there are no TIFF files.
    DataError
        If the name of a file is not a chunk key, or if a file cannot be a chunk or differs from the first.
    ArgumentError
        If `shape` does not include all files, or `fill_value` is not valid for their data type.
    NodeExistsError
        If `save` is true and the folder already has a `zarr.json`.

    Examples
    --------
    >>> image = header((2, 3), "uint8")
    >>> array = open_folder({"0.0.tif": image(bytes(6)) + bytes(6)})
    >>> array.shape, array.read_only
    ((2, 3), True)
    """
    folder = open_store(store)
    description = scan_folder(folder, shape)
    metadata = array_metadata(
        description.shape,
        description.data_type,
        chunks=description.chunks,
        codecs=description.codecs,
        fill_value=fill_value,
        chunk_key_encoding=description.chunk_key_encoding,
    )
    if save:
        if folder.size(DOCUMENT) is not None:
            raise NodeExistsError(f"there is already a {DOCUMENT} in {folder!r}", path="")
        folder.set(DOCUMENT, serialize(metadata))
    return Array(TiffFolder(folder, metadata), "", metadata, ArrayOptions(max_chunk_bytes=max_chunk_bytes))
