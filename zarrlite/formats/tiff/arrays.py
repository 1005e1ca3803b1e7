"""Zarr arrays whose chunks are TIFF files: created, and opened again for writing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.codecs import Bytes, Offset, Pad, Zstd
from zarrlite.errors import ArgumentError
from zarrlite.formats.tiff.headers import Header, header
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.nodes import opening
from zarrlite.nodes.array import Array
from zarrlite.stores import open_store


def create_array(
    store: Any = None,
    *,
    chunks: Any,
    dtype: Any = None,
    data: Any = None,
    rgb: bool = False,
    byteorder: str = "little",
    compression: str | None = None,
    chunk_key_encoding: Any = SuffixKeys(".tiff"),
    **kwargs: Any,
) -> Array:
    """Create an array whose chunks are TIFF files: `chunks`, `rgb`, `byteorder` and `compression` as for `header`.

    The other keywords are those of `zarrlite.create_array`.

    >>> a = create_array("memory://", data=np.eye(4, dtype="uint8"), chunks=(2, 2))
    >>> [key for key in a.store.list()]
    ['c/0/0.tiff', 'c/1/1.tiff', 'zarr.json']
    """
    if "codecs" in kwargs:
        raise ArgumentError("the codecs of TIFF pictures follow from rgb=, byteorder= and compression=")
    if dtype is None and data is not None:
        data = _as_array(data)
        dtype = data.dtype
    if dtype is None:
        raise ArgumentError("an array needs shape= and dtype=, or data=")
    made = header(chunks, dtype, rgb=rgb, byteorder=byteorder, compression=compression)
    return opening.create_array(
        store,
        chunks=chunks,
        dtype=dtype,
        data=data,
        codecs=made.codecs(),
        chunk_key_encoding=chunk_key_encoding,
        **kwargs,
    )


def _as_array(data: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(data)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"data cannot be made an array: {error}") from None


def open_array(store: Any = None, *, mode: opening.Mode = "r+", path: str | None = None, **kwargs: Any) -> Array:
    """Open an array whose chunks are TIFF files, with the header function that `zarr.json` cannot hold.

    Without it chunks would be written with a header of zeros. Reading needs no more than `zarrlite.open_array`, and
    neither does writing without compression, where `zarr.json` has the header itself.
    """
    place = open_store(store)
    metadata = opening.open_array(place, mode="r", path=path, strict=kwargs.get("strict", True)).metadata
    options = kwargs.pop("options", None) or {}
    if not isinstance(options, Mapping):
        raise ArgumentError(f"options= takes a mapping of JSON pointers, not {options!r}")
    options = dict(options)
    last = f"/codecs/{len(metadata.codecs) - 1}"
    options[last] = {**_header_option(metadata), **options.get(last, {})}
    return opening.open_array(place, mode=mode, path=path, options=options, **kwargs)


def _header_option(metadata: ArrayMetadata) -> dict[str, Header]:
    """The option of the last codec that makes the headers of an array; none where `zarr.json` has the header."""
    compression: str | None = None
    match metadata.codecs:
        case (Bytes() as first, (Pad(location="start") | Offset()) as last):
            pass
        case (Bytes() as first, Zstd(), (Pad(location="start") | Offset()) as last):
            compression = "zstd"
        case _:
            raise ArgumentError("chunks are TIFF files only with the codecs bytes, zstd if wanted, and pad or offset")
    chunks = metadata.chunk_grid.chunk_shape((0,) * len(metadata.shape))
    for rgb in (False, True):
        with contextlib.suppress(ArgumentError):
            made = header(chunks, metadata.data_type, rgb=rgb, byteorder=first.byte_order, compression=compression)
            if made.nbytes == last.head:  # grey and colour never need the same number of bytes
                option = "padding_func" if isinstance(last, Pad) else "prefix_func"
                return {option: made} if last.literal is None else {}
    raise ArgumentError(
        f"no TIFF header for chunks of shape {chunks} and {metadata.data_type.name} has {last.head} bytes"
    )
