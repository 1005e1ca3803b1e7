"""Read N5 containers in place, and write datasets that other programs read as N5.

`open` reads a container without writing to it. `create_array` writes a new dataset. `write_documents` adds `zarr.json`
documents to a container, so that `zarrlite.open` can read and write it. formats/n5.py maps N5 to Zarr v3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from zarrlite.chunks.chunks import ArrayOptions
from zarrlite.codecs.n5_default import n5_header
from zarrlite.errors import ArgumentError, NodeExistsError, ZarrliteError
from zarrlite.extensions.config import Json, dump_json, load_json
from zarrlite.formats.n5 import (
    ATTRIBUTES,
    RESERVED,
    VERSION,
    BlockCodec,
    N5Store,
    array_document,
    parse_user_attributes,
)
from zarrlite.metadata.documents import ArrayMetadata, Options
from zarrlite.names import DOCUMENT, key_prefix, normalize_path
from zarrlite.nodes import opening
from zarrlite.nodes.array import Array
from zarrlite.nodes.creation import array_metadata
from zarrlite.nodes.group import Group
from zarrlite.stores import Store, open_store

__all__ = ["N5Store", "array_document", "create_array", "n5_header", "open", "write_documents"]

_DEFAULT_COMPRESSION: Final = {"type": "gzip", "level": 6}


def open(  # noqa: A001
    store: Any,
    *,
    path: str | None = None,
    options: Options | None = None,
    missing_chunks: Literal["fill", "error"] = "fill",
    max_chunk_bytes: int | None = None,
) -> Array | Group:
    """Open an N5 dataset or group for reading; nothing is written.

    Parameters
    ----------
    store
        The container: a path, a URI, a mapping or a store, as for `zarrlite.open`.
    path
        The path of the dataset or group inside the container; the root by default.
    options
        Runtime options of extensions, by JSON pointer into the generated `zarr.json`: `{"/codecs/0": {...}}`.
    missing_chunks
        "fill" reads a missing block as zeros, "error" raises an error.
    max_chunk_bytes
        The maximum decoded size of a block; larger ones are refused. By default, this is the value of the environment
        variable `ZARRLITE_MAX_CHUNK_BYTES`, or 1 GiB if that is not set.

    Returns
    -------
    Array or Group
        The read-only node. Axes are in N5's order: `shape` is `dimensions` and `chunks` is `blockSize`.

    Raises
    ------
    NodeNotFoundError
        If there is no dataset or group at `path`.
    MetadataError
        If an `attributes.json` is not valid or uses a feature that has no counterpart in Zarr, or if the container
        has a major version above 4.

    Examples
    --------
    >>> container = {"raw/attributes.json": b'''{"dimensions": [2, 3], "blockSize": [2, 3], "dataType": "uint8",
    ...                                          "compression": {"type": "raw"}}'''}
    >>> open(container)["raw"]
    <Array /raw shape=(2, 3) dtype=uint8>
    """
    view = N5Store(open_store(store))
    root = view.attributes("")
    if root is not None:
        parse_user_attributes(root)  # refuses unknown N5 versions; the version is stored at the root
    return opening.open(
        view, mode="r", path=path, options=options, missing_chunks=missing_chunks, max_chunk_bytes=max_chunk_bytes
    )


def write_documents(
    store: Any, *, path: str | None = None, codec: BlockCodec = "n5_default", overwrite: bool = False
) -> list[str]:
    """Write a `zarr.json` for every dataset and group at and below a path.

    Afterwards, the container can be opened with `zarrlite.open`, and with every other library that supports the chosen
    `codec`. Nothing is written if one of the nodes cannot be converted.

    Parameters
    ----------
    store
        The container: a path, a URI, a mapping or a store.
    path
        The path of the dataset or group to start from; the root by default.
    codec
        The codec that handles the block headers, as for `array_document`.
    overwrite
        Whether to replace existing `zarr.json` documents whose content differs.

    Returns
    -------
    list of str
        The keys of the documents, sorted.

    Raises
    ------
    NodeNotFoundError
        If there is no dataset or group at `path`.
    NodeExistsError
        If a `zarr.json` with different content exists and `overwrite` is false.
    MetadataError
        If an `attributes.json` cannot be converted.

    Examples
    --------
    >>> container = {}
    >>> create_array(container, path="a/b", shape=(4,), dtype="uint8")[...] = 1
    >>> write_documents(container)
    ['a/b/zarr.json', 'a/zarr.json', 'zarr.json']
    """
    container = open_store(store)
    top = open(container, path=path)
    nodes = [top]
    for _, node in top._walk(None) if isinstance(top, Group) else ():
        if isinstance(node, ZarrliteError):
            raise node
        nodes.append(node)
    view = N5Store(container)
    documents: dict[str, bytes] = {}
    for node in nodes:
        content = view.document(node.path, codec)
        if content is not None:
            documents[key_prefix(node.path) + DOCUMENT] = dump_json(content, allow_nan=True)
    for key, document in documents.items():
        existing = container.get(key)
        if existing is not None and bytes(existing) != document and not overwrite:
            message = f"{container!r} already has a different {key}; overwrite=True replaces it"
            raise NodeExistsError(message, path=key)
    # leaves first: once the root can be opened, the hierarchy is complete
    container.set_many(sorted(documents.items(), key=lambda item: -item[0].count("/")))
    return sorted(documents)


def create_array(
    store: Any,
    *,
    shape: int | Sequence[int],
    dtype: Any,
    path: str | None = None,
    chunks: Any = "auto",
    compression: Mapping[str, Json] | None = None,
    attributes: Mapping[str, Json] | None = None,
    overwrite: bool = False,
    max_chunk_bytes: int | None = None,
) -> Array:
    """Create an N5 dataset, whose chunks are stored as N5 blocks.

    No `zarr.json` is written, so the shape and the attributes of the array cannot be changed before `write_documents`
    adds this document.

    Parameters
    ----------
    store
        The container: a path, a URI, a mapping or a store. A missing `attributes.json` at its root is created.
    shape
        The length of each dimension, `dimensions` in N5.
    dtype
        The data type: an integer type with 8 to 64 bits, float32 or float64.
    path
        The path of the dataset inside the container; the root by default.
    chunks
        The shape of a block, `blockSize` in N5; "auto" chooses one.
    compression
        The `compression` object of N5, written unchanged; `{"type": "gzip", "level": 6}` by default.
    attributes
        Additional members of `attributes.json`.
    overwrite
        Whether to remove everything at `path` first.
    max_chunk_bytes
        The maximum decoded size of a block that the returned array reads or writes, as for `open`.

    Returns
    -------
    Array
        The new, writable array.

    Raises
    ------
    ArgumentError
        If an argument is not valid, or `attributes` contains a member that N5 defines.
    MetadataError
        If N5 does not support the data type or the shape, or zarrlite does not support the compression.
    NodeExistsError
        If the container already has something at `path` and `overwrite` is false, or if `path` is inside a dataset.

    Examples
    --------
    >>> array = create_array({}, shape=(5, 7), dtype="uint16", chunks=(3, 2))
    >>> array[...] = 1
    >>> sorted(array.store.list())[:2]
    ['0/0', '0/1']
    """
    container, node_path = open_store(store), normalize_path(path)
    metadata = array_metadata(shape, dtype, chunks=chunks, attributes=attributes)
    if not metadata.chunk_grid.uniform:
        raise ArgumentError(f"the blocks of an N5 array must all have the same shape, not {chunks!r}")
    user_attributes = metadata.attributes or {}
    conflicts = sorted(RESERVED.intersection(user_attributes))
    if conflicts:
        raise ArgumentError(f"attributes must not contain {conflicts[0]!r}, which N5 defines itself")
    n5_attributes = {
        "dimensions": list(metadata.shape),
        "blockSize": list(metadata.chunk_grid.chunk_shape((0,) * len(metadata.shape))),
        "dataType": metadata.data_type.name,
        "compression": _DEFAULT_COMPRESSION if compression is None else compression,
    }
    document = load_json(dump_json({**n5_attributes, **user_attributes}), "new array")
    converted = ArrayMetadata.from_json(array_document(document, document="new array"))
    array = Array(container, node_path, converted, ArrayOptions(max_chunk_bytes=max_chunk_bytes))
    _make_room(container, node_path, overwrite=overwrite)
    # N5, item 3: the version "is stored in the "n5" attribute of the root group"
    if not node_path:
        document = {"n5": VERSION, **document}
    elif container.size(ATTRIBUTES) is None:
        container.set(ATTRIBUTES, dump_json({"n5": VERSION}))  # z5py requires the version
    container.set(key_prefix(node_path) + ATTRIBUTES, dump_json(document))
    return array


def _make_room(store: Store, path: str, *, overwrite: bool) -> None:
    """Remove everything at a path if `overwrite` is true. Raises NodeExistsError if no dataset may be created there."""
    prefix = key_prefix(path)
    if N5Store(store).is_inside_dataset(path):
        message = f"{path!r} in {store!r} must not be inside an N5 dataset, whose blocks are stored there"
        raise NodeExistsError(message, path=path)
    if any(store.list_dir(prefix)):
        if not overwrite:
            message = f"{path!r} in {store!r} is not empty; overwrite=True replaces its content"
            raise NodeExistsError(message, path=path)
        store.erase_prefix(prefix)
