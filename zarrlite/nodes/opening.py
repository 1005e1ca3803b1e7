"""The top-level functions, with the names and keywords of zarr-python.

Rules
- Modes: "r" reads an existing node; "r+" reads and writes it; "a" also creates the node if it does not exist; "w"
  replaces or creates a node; "w-" creates a node but never replaces one.
- Nothing is stored or removed before all arguments have been checked.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy.typing as npt

from zarrlite import threads
from zarrlite.chunks.chunk_cache import ChunkCache
from zarrlite.chunks.chunks import ArrayOptions
from zarrlite.errors import (
    ArgumentError,
    KeyRefusedError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    ZarrliteError,
)
from zarrlite.extensions.config import Context, Json
from zarrlite.formats.foreign import ForeignStore
from zarrlite.metadata.documents import ArrayMetadata, Metadata, Options
from zarrlite.names import DOCUMENT, key_prefix, normalize_path
from zarrlite.nodes.arguments import (
    ChunkKeyEncodingLike,
    ChunksLike,
    CodecLike,
    CompressorLike,
    ConfigLike,
    DTypeLike,
    FilterLike,
    MemoryOrder,
    MissingChunks,
    NewNodeKeywords,
    SerializerLike,
    ShapeLike,
    ShardsLike,
    StorageTransformerLike,
    check_format,
    check_runtime,
    override_options,
    suggest_keywords,
)
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group, create_group_at
from zarrlite.nodes.node import clear, find_draft, find_v2, has_text, load, not_found, warn_version_2, write_copies
from zarrlite.nodes.settings import array_options as runtime_options
from zarrlite.stores import ReadOnlyStore, Store, StoreLike, open_store
from zarrlite.stores.base import place_of, slowest_place
from zarrlite.stores.open import StorageOptions, check_directory

Progress: TypeAlias = Callable[[int, int], object]
Mode: TypeAlias = Literal["r", "r+", "a", "w", "w-"]
_MODES = ("r", "r+", "a", "w", "w-")


@suggest_keywords
def open(  # noqa: A001
    store: StoreLike = None,
    *,
    mode: Mode = "a",
    path: str | None = None,
    strict: bool = True,
    options: Options | None = None,
    missing_chunks: MissingChunks = "fill",
    write_empty_chunks: bool | None = None,
    max_chunk_bytes: int | None = None,
    chunk_cache: int | None = None,
    progress: Progress | None = None,
    use_consolidated: bool | None = None,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    data: npt.ArrayLike | None = None,
    chunks: ChunksLike | Literal["auto"] | bool | None = "auto",
    shards: ShardsLike = None,
    filters: FilterLike | Sequence[FilterLike] | None = "auto",
    serializer: SerializerLike = "auto",
    compressors: CompressorLike | Sequence[CompressorLike] | None = "auto",
    codecs: Sequence[CodecLike] | None = None,
    fill_value: Any = None,
    attributes: Mapping[str, Json] | None = None,
    chunk_key_encoding: ChunkKeyEncodingLike | None = None,
    dimension_names: Sequence[str | None] | None = None,
    storage_transformers: Sequence[StorageTransformerLike] | None = None,
    write_data: bool = True,
    config: ConfigLike | None = None,
    order: MemoryOrder | None = None,
    zarr_format: Literal[3] | None = 3,
    storage_options: StorageOptions | None = None,
) -> Array | Group:
    """Open an array or a group, or create one.

    A new node is an array if `shape` or `data` is passed, and a group otherwise. Use `open_array` or `open_group` if
    you know which of the two you want.

    Parameters
    ----------
    store : Store, path, URI, mapping or None, optional
        The location of the hierarchy: a `Store`; the path or `file://` URI of a directory, or of a file whose name ends
        in `.zip` or `.ozx`; a URL that begins with `s3://`, `gs://`, `az://`, `http://` or `https://`, or an obstore
        store; `memory://` or None for a new store in memory, or `memory://name` for one shared by the whole process; or
        a mapping from keys to bytes.
    mode : {"a", "r", "r+", "w", "w-"}, optional
        "r" reads an existing node; "r+" reads and writes it; "a" also creates the node if it does not exist; "w"
        replaces or creates a node; "w-" creates a node but never replaces one.
    path : str or None, optional
        Path of the node in the store; the root if omitted.
    strict : bool, optional
        Whether documents must follow the specification strictly. False repairs common omissions and reports each as a
        `MetadataWarning`.
    options : mapping, optional
        Runtime options of extensions, keyed by JSON pointer: `{"/codecs/1": {"keep_padding": True}}`. They are not
        stored.
    missing_chunks : {"fill", "error"}, optional
        "fill" reads a missing chunk as the fill value; "error" raises `MissingChunkError`.
    write_empty_chunks : bool or None, optional
        Whether to store chunks that contain only the fill value instead of erasing them. None selects the setting in
        `zarrlite.config`, which is False by default.
    max_chunk_bytes : int or None, optional
        The largest decoded size of a chunk, or of an inner chunk of a shard; larger ones are refused. None selects the
        value of the environment variable `ZARRLITE_MAX_CHUNK_BYTES`, or 1 GiB if it is not set. Parts of uncompressed
        chunks can be read regardless of the chunk size.
    chunk_cache : int or None, optional
        Keep up to this many bytes of decoded chunks, so that they are not read and decoded again. Changes made through
        this node, or through nodes opened from it, are noticed; changes made by other writers are not.
    progress : callable, optional
        Called as `progress(done, total)` while the array, or an array in the group, is read or written. Both numbers
        count chunks, or shards if there are any. An exception that the callable raises ends the operation.
    use_consolidated : bool or None, optional
        Whether a group opened with `mode="r"` takes its members from consolidated metadata. None does so if it exists,
        True requires it, and False reads each document separately.
    shape, dtype, data : optional
        The length of each dimension, the data type and the elements of a new array.
    chunks, shards : optional
        The shapes of the chunks and of the shards of a new array.
    filters, serializer, compressors, codecs : optional
        The codecs of a new array.
    fill_value, dimension_names, chunk_key_encoding, storage_transformers : optional
        Further metadata of a new array.
    attributes : mapping, optional
        The attributes of a new node; values are JSON.
    write_data : bool, optional
        Whether to store `data`. False uses only its shape and data type.
    config, order, zarr_format : optional
        Keywords of zarr-python; `config` applies to new and existing arrays.
    storage_options : mapping, optional
        Keywords of `ObjectStore`, if the store is the URL of an object store or an HTTP server.

    Returns
    -------
    Array or Group
        The node.

    Raises
    ------
    NodeNotFoundError
        If there is no node, and `mode` does not create one.
    NodeExistsError
        If there is a node and the mode is "w-", or if the path of a new node leads through an array.
    MetadataError
        If the document is refused. The message and the attributes of the error state where and why.
    ArgumentError
        If an argument is invalid, or a keyword is unknown. Nothing is changed.
    ReadOnlyError
        If a node would have to be created in a read-only store.

    See Also
    --------
    create_array : Describes the keywords for new arrays in detail.

    Examples
    --------
    >>> import zarrlite
    >>> a = zarrlite.open("memory://", mode="w", shape=(2, 3), dtype="int16", fill_value=7)
    >>> a[0, 1:]
    array([7, 7], dtype=int16)
    >>> zarrlite.open(a.store, mode="r")
    <Array / shape=(2, 3) dtype=int16>
    """
    create: NewNodeKeywords = {
        "shape": shape,
        "dtype": dtype,
        "data": data,
        "chunks": chunks,
        "shards": shards,
        "filters": filters,
        "serializer": serializer,
        "compressors": compressors,
        "codecs": codecs,
        "fill_value": fill_value,
        "attributes": attributes,
        "chunk_key_encoding": chunk_key_encoding,
        "dimension_names": dimension_names,
        "storage_transformers": storage_transformers,
        "write_data": write_data,
        "config": config,
        "order": order,
        "zarr_format": zarr_format,
    }
    if storage_options is not None:
        store = open_store(store, check=False, storage_options=storage_options)
    return _open(
        store,
        path,
        mode,
        create,
        strict=strict,
        options=options,
        array_options=runtime_options(
            missing_chunks,
            write_empty_chunks,
            max_chunk_bytes,
            None if chunk_cache is None else ChunkCache(chunk_cache),
            progress,
        ),
        use_consolidated=use_consolidated,
    )


@suggest_keywords
def open_array(
    store: StoreLike = None,
    *,
    mode: Mode = "a",
    path: str | None = None,
    strict: bool = True,
    options: Options | None = None,
    missing_chunks: MissingChunks = "fill",
    write_empty_chunks: bool | None = None,
    max_chunk_bytes: int | None = None,
    chunk_cache: int | None = None,
    progress: Progress | None = None,
    use_consolidated: bool | None = None,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    data: npt.ArrayLike | None = None,
    chunks: ChunksLike | Literal["auto"] | bool | None = "auto",
    shards: ShardsLike = None,
    filters: FilterLike | Sequence[FilterLike] | None = "auto",
    serializer: SerializerLike = "auto",
    compressors: CompressorLike | Sequence[CompressorLike] | None = "auto",
    codecs: Sequence[CodecLike] | None = None,
    fill_value: Any = None,
    attributes: Mapping[str, Json] | None = None,
    chunk_key_encoding: ChunkKeyEncodingLike | None = None,
    dimension_names: Sequence[str | None] | None = None,
    storage_transformers: Sequence[StorageTransformerLike] | None = None,
    write_data: bool = True,
    config: ConfigLike | None = None,
    order: MemoryOrder | None = None,
    zarr_format: Literal[3] | None = 3,
    storage_options: StorageOptions | None = None,
) -> Array:
    """Open an array, or create it if `mode` allows it and `shape` or `data` is passed.

    Parameters
    ----------
    store : Store, path, URI, mapping or None, optional
        The location of the hierarchy, as for `open`.
    mode : {"a", "r", "r+", "w", "w-"}, optional
        "r" reads an existing array; "r+" reads and writes it; "a" also creates the array if it does not exist; "w"
        replaces a node or creates an array; "w-" creates an array but never replaces a node.
    path : str or None, optional
        Path of the array in the store; the root if omitted.
    strict : bool, optional
        Whether documents must follow the specification strictly. False repairs common omissions and reports each as a
        `MetadataWarning`.
    options : mapping, optional
        Runtime options of extensions, keyed by JSON pointer: `{"/codecs/1": {"keep_padding": True}}`. They are not
        stored.
    missing_chunks : {"fill", "error"}, optional
        "fill" reads a missing chunk as the fill value; "error" raises `MissingChunkError`.
    write_empty_chunks : bool or None, optional
        Whether to store chunks that contain only the fill value instead of erasing them. None selects the setting in
        `zarrlite.config`, which is False by default.
    max_chunk_bytes : int or None, optional
        The largest decoded size of a chunk, or of an inner chunk of a shard; larger ones are refused. None selects the
        value of the environment variable `ZARRLITE_MAX_CHUNK_BYTES`, or 1 GiB if it is not set. Parts of uncompressed
        chunks can be read regardless of the chunk size.
    chunk_cache : int or None, optional
        Keep up to this many bytes of decoded chunks, so that they are not read and decoded again. Changes made through
        this node, or through nodes opened from it, are noticed; changes made by other writers are not.
    progress : callable, optional
        Called as `progress(done, total)` while the array, or an array in the group, is read or written. Both numbers
        count chunks, or shards if there are any. An exception that the callable raises ends the operation.
    use_consolidated : bool or None, optional
        Accepted as for `open`. It has an effect only on Zarr v2 hierarchies, since Zarr v3 arrays have no consolidated
        metadata.
    shape, dtype, data : optional
        The length of each dimension, the data type and the elements of a new array.
    chunks, shards : optional
        The shapes of the chunks and of the shards of a new array.
    filters, serializer, compressors, codecs : optional
        The codecs of a new array.
    fill_value, attributes, dimension_names, chunk_key_encoding, storage_transformers : optional
        Further metadata of a new array.
    write_data : bool, optional
        Whether to store `data`. False uses only its shape and data type.
    config, order, zarr_format : optional
        Keywords of zarr-python; `config` applies to new and existing arrays.
    storage_options : mapping, optional
        Keywords of `ObjectStore`, if the store is the URL of an object store or an HTTP server.

    Returns
    -------
    Array
        The array.

    Raises
    ------
    NodeNotFoundError
        If there is no node, and `mode` or a missing shape does not allow creating one.
    NodeExistsError
        If the node is a group, or if there is a node and the mode is "w-".
    MetadataError
        If the document is refused. The message and the attributes of the error state where and why.
    ArgumentError
        If an argument is invalid, or a keyword is unknown. Nothing is changed.
    ReadOnlyError
        If an array would have to be created in a read-only store.

    See Also
    --------
    create_array : Describes the keywords for new arrays in detail.

    Examples
    --------
    >>> import zarrlite
    >>> store = zarrlite.MemoryStore()
    >>> zarrlite.open_array(store, path="a", shape=3, dtype="int8")[1] = 5
    >>> zarrlite.open_array(store, path="a", mode="r")[...]
    array([0, 5, 0], dtype=int8)
    """
    place = open_store(store, check=False, storage_options=storage_options)
    creatable = False
    if shape is None and data is None:
        if mode in ("w", "w-"):
            raise ArgumentError("an array needs shape= and dtype=, or data=")
        creatable = mode == "a"
        mode = "r+" if creatable else mode  # without a shape there is nothing to create
    create: NewNodeKeywords = {
        "shape": shape,
        "dtype": dtype,
        "data": data,
        "chunks": chunks,
        "shards": shards,
        "filters": filters,
        "serializer": serializer,
        "compressors": compressors,
        "codecs": codecs,
        "fill_value": fill_value,
        "attributes": attributes,
        "chunk_key_encoding": chunk_key_encoding,
        "dimension_names": dimension_names,
        "storage_transformers": storage_transformers,
        "write_data": write_data,
        "config": config,
        "order": order,
        "zarr_format": zarr_format,
    }
    try:
        node = _open(
            place,
            path,
            mode,
            create,
            strict=strict,
            options=options,
            array_options=runtime_options(
                missing_chunks,
                write_empty_chunks,
                max_chunk_bytes,
                None if chunk_cache is None else ChunkCache(chunk_cache),
                progress,
            ),
            use_consolidated=use_consolidated,
        )
    except NodeNotFoundError as error:
        hint = "; to create an array, pass shape= and dtype=, or data=" if creatable else ""
        raise NodeNotFoundError(error.message + hint, path=normalize_path(path)) from None
    if not isinstance(node, Array):
        raise NodeExistsError(f"{node.path!r} in {place!r} is a group, not an array", path=node.path)
    return node


@suggest_keywords
def open_group(
    store: StoreLike = None,
    *,
    mode: Mode = "a",
    path: str | None = None,
    strict: bool = True,
    options: Options | None = None,
    missing_chunks: MissingChunks = "fill",
    write_empty_chunks: bool | None = None,
    max_chunk_bytes: int | None = None,
    chunk_cache: int | None = None,
    progress: Progress | None = None,
    use_consolidated: bool | None = None,
    attributes: Mapping[str, Json] | None = None,
    zarr_format: Literal[3] | None = 3,
    storage_options: StorageOptions | None = None,
) -> Group:
    """Open a group, or create it if `mode` allows it.

    Parameters
    ----------
    store : Store, path, URI, mapping or None, optional
        The location of the hierarchy, as for `open`.
    mode : {"a", "r", "r+", "w", "w-"}, optional
        "r" reads an existing group; "r+" reads and writes it; "a" also creates the group if it does not exist; "w"
        replaces a node or creates a group; "w-" creates a group but never replaces a node.
    path : str or None, optional
        Path of the group in the store; the root if omitted.
    strict : bool, optional
        Whether documents, including those of members, must follow the specification strictly. False repairs common
        omissions and reports each as a `MetadataWarning`.
    options : mapping, optional
        Must be None or empty, because the document of a group has no extensions to which options could apply.
    missing_chunks : {"fill", "error"}, optional
        How arrays opened through the group read a missing chunk: as the fill value, or with an error.
    write_empty_chunks : bool or None, optional
        Whether arrays opened through the group store chunks that contain only the fill value, as for `open`.
    max_chunk_bytes : int or None, optional
        The largest chunk of arrays opened through the group, as for `open`.
    chunk_cache : int or None, optional
        How many bytes of decoded chunks to keep for all arrays opened through the group, as for `open`.
    progress : callable, optional
        Called while arrays opened through the group are read or written, as for `open`.
    use_consolidated : bool or None, optional
        Whether a group opened with `mode="r"` takes its members from consolidated metadata. None does so if it exists,
        True requires it, and False reads each document separately.
    attributes : mapping, optional
        The attributes of a new group; values are JSON.
    zarr_format : {3}, optional
        zarr-python's `zarr_format`.
    storage_options : mapping, optional
        Keywords of `ObjectStore`, if the store is the URL of an object store or an HTTP server.

    Returns
    -------
    Group
        The group.

    Raises
    ------
    NodeNotFoundError
        If there is no node, and `mode` does not create one.
    NodeExistsError
        If the node is an array, or if there is a node and the mode is "w-".
    MetadataError
        If the document is refused. The message and the attributes of the error state where and why.
    ArgumentError
        If an argument is invalid, or a keyword is unknown. Nothing is changed.
    ReadOnlyError
        If a group would have to be created in a read-only store.

    Examples
    --------
    >>> import zarrlite
    >>> group = zarrlite.open_group("memory://", attributes={"units": "K"})
    >>> group
    <Group />
    >>> zarrlite.open_group(group.store, mode="r").attrs["units"]
    'K'
    """
    place = open_store(store, check=False, storage_options=storage_options)
    node = _open(
        place,
        path,
        mode,
        {"attributes": attributes, "zarr_format": zarr_format},
        strict=strict,
        options=options,
        array_options=runtime_options(
            missing_chunks,
            write_empty_chunks,
            max_chunk_bytes,
            None if chunk_cache is None else ChunkCache(chunk_cache),
            progress,
        ),
        use_consolidated=use_consolidated,
    )
    if not isinstance(node, Group):
        raise NodeExistsError(f"{node.path!r} in {place!r} is an array, not a group", path=node.path)
    return node


def _open(
    store: StoreLike,
    path: str | None,
    mode: Mode,
    create: NewNodeKeywords,
    *,
    strict: bool,
    options: Options | None,
    array_options: ArrayOptions,
    use_consolidated: bool | None,
) -> Array | Group:
    """Open the node at a path, or create it from the keywords `create`."""
    if create["zarr_format"] != 3:
        check_format(create["zarr_format"])
    place, where, metadata = _locate(store, path, mode, strict, options, array_options.cache, use_consolidated)
    if metadata is not None:
        configured = _configured(array_options, create)
        return _node(place, where, metadata, configured, strict, use_consolidated)
    try:
        return _create(place, where, mode, create, options, array_options)
    except NodeExistsError:
        # another writer has created the node meanwhile, or the path leads through an array and there is still no node
        if mode != "a" or (metadata := load(place, where, strict=strict, options=options)) is None:
            raise
    return _node(place, where, metadata, _configured(array_options, create), strict, use_consolidated)


def _configured(array_options: ArrayOptions, create: NewNodeKeywords) -> ArrayOptions:
    """Return the runtime options of an existing node. Raises ArgumentError for a keyword that would be ignored."""
    config, order = create.get("config"), create.get("order")
    if config is None and order is None:
        return array_options
    check_runtime(order)
    return override_options(array_options, config, order=order)


def _create(
    place: Store,
    where: str,
    mode: Mode,
    create: NewNodeKeywords,
    options: Options | None,
    array_options: ArrayOptions,
) -> Array | Group:
    """Create an array if the keywords include a shape or data, and a group otherwise."""
    from zarrlite.nodes.creation import create_array_at, passed_keywords  # imported here: not needed for existing nodes

    overwrite = mode == "w"
    if create.get("shape") is not None or create.get("data") is not None:
        create["options"] = options
        create["overwrite"] = overwrite
        return create_array_at(place, where, array_options=array_options, **create)
    for_arrays = [name for name in passed_keywords(create) if name not in ("attributes", "zarr_format")]
    if for_arrays:
        raise ArgumentError(f"a group does not accept {', '.join(for_arrays)}; for an array, pass shape= or data=")
    Context(options=options).refuse_unused_options()  # a group has no extensions that options could configure
    return create_group_at(place, where, create.get("attributes"), overwrite=overwrite, options=array_options)


def _locate(
    store: StoreLike,
    path: str | None,
    mode: Mode,
    strict: bool,
    options: Options | None,
    cache: ChunkCache | None,
    use_consolidated: bool | None,
) -> tuple[Store, str, Metadata | None]:
    """Return the store, the path, and the metadata of the node at that path, which is None if there is no node yet."""
    if mode not in _MODES:
        raise ArgumentError(f"mode must be one of {', '.join(map(repr, _MODES))}, not {mode!r}")
    place = store if isinstance(store, Store) else open_store(store, check=False)
    if mode == "r" and not place.read_only:
        place = ReadOnlyStore(place)
    elif cache is not None and not place.read_only:
        check_directory(place)
        place = cache.watch(place)
    where = "" if path is None else normalize_path(path)
    if mode in ("w", "w-"):
        check_directory(place)
        if mode == "w-" and place.size(key_prefix(where) + DOCUMENT) is not None:
            raise NodeExistsError(f"a node already exists at {where!r} in {place!r}; mode='w' replaces it", path=where)
        return place, where, None
    fault = None
    try:
        metadata = load(place, where, strict=strict, options=options)
    except MetadataError as error:
        metadata, fault = None, error
    if metadata is not None:
        warn_version_2(place, where)
        return place, where, metadata
    # a refused document may be the entry document of the 2022 draft; a missing node may be below such a document
    view = find_draft(place) if fault or where else None
    if view is None and fault:
        raise fault
    if view is None and not isinstance(place, ForeignStore):
        view = find_v2(place, where, use_consolidated=use_consolidated, search=mode != "a")
    if view is not None:
        place = view
        metadata = load(place, where, strict=strict, options=options)
        if metadata is None and mode == "a":
            raise view.refuse_new(where)
    if metadata is None:
        check_directory(place)
        if mode in ("r", "r+"):
            raise not_found(place, where)
    return place, where, metadata


def _node(
    store: Store, path: str, metadata: Metadata, options: ArrayOptions, strict: bool, use_consolidated: bool | None
) -> Array | Group:
    if isinstance(metadata, ArrayMetadata):
        return Array(store, path, metadata, options)
    if isinstance(store, ForeignStore) and store.is_consolidated:
        use_consolidated = None  # the view already reads documents from consolidated metadata
    if use_consolidated and metadata.consolidated is None:
        raise ArgumentError(f"use_consolidated must not be True: the group at {path!r} has no consolidated metadata")
    if use_consolidated and not store.read_only:
        raise ArgumentError("use_consolidated=True needs mode='r': writers do not use consolidated metadata")
    return Group(store, path, metadata, options=options, strict=strict, use_consolidated=use_consolidated is not False)


@suggest_keywords
def create_array(
    store: StoreLike = None,
    *,
    name: str | None = None,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    data: npt.ArrayLike | None = None,
    chunks: ChunksLike | Literal["auto"] | bool | None = "auto",
    shards: ShardsLike = None,
    filters: FilterLike | Sequence[FilterLike] | None = "auto",
    serializer: SerializerLike = "auto",
    compressors: CompressorLike | Sequence[CompressorLike] | None = "auto",
    codecs: Sequence[CodecLike] | None = None,
    fill_value: Any = None,
    attributes: Mapping[str, Json] | None = None,
    chunk_key_encoding: ChunkKeyEncodingLike | None = None,
    dimension_names: Sequence[str | None] | None = None,
    storage_transformers: Sequence[StorageTransformerLike] | None = None,
    options: Options | None = None,
    missing_chunks: MissingChunks | None = None,
    write_empty_chunks: bool | None = None,
    max_chunk_bytes: int | None = None,
    progress: Progress | None = None,
    write_data: bool = True,
    overwrite: bool = False,
    config: ConfigLike | None = None,
    order: MemoryOrder | None = None,
    zarr_format: Literal[3] | None = 3,
    storage_options: StorageOptions | None = None,
) -> Array:
    """Create an array, and any missing groups above it.

    The metadata document is written before the data, and each value is written atomically. If writing the data fails,
    the array is removed again. Codecs and other extensions are passed as objects (`zarrlite.codecs.Zstd(9)`), as JSON
    in the form used in zarr.json (`{"name": "zstd", "configuration": {"level": 9}}`), or by name (`"zstd"`).

    Parameters
    ----------
    store : Store, path, URI, mapping or None, optional
        The location of the hierarchy: a `Store`; the path or `file://` URI of a directory, or of a file whose name ends
        in `.zip` or `.ozx`; a URL that begins with `s3://`, `gs://`, `az://`, `http://` or `https://`, or an obstore
        store; `memory://` or None for a new store in memory, or `memory://name` for one shared by the whole process; or
        a mapping from keys to bytes.
    name : str or None, optional
        Path of the new array in the store; the root if omitted.
    shape : int or sequence of int, optional
        The length of each dimension; taken from `data` if omitted.
    dtype : data type, optional
        A numpy dtype, a Python type, the name of a Zarr data type, or JSON as in zarr.json; taken from `data` if
        omitted.
    data : array_like, optional
        The elements to store, cast to `dtype` as numpy does. Strings are stored with variable length, unless they are
        in a numpy array whose dtype has a fixed length.
    chunks : int, sequence of int or of lists, "auto", bool or None, optional
        The shape of a chunk, or of an inner chunk if there are shards. A single number applies to all dimensions.
        "auto", True and None choose chunks of at most 1 MiB, and False stores the array as one chunk. With `codecs`,
        this is the shape of the chunk grid. For chunks of different lengths, pass a list of lengths for each
        dimension, or a number if they are equal: `[[3, 4, 5], 10]`.
    shards : int, sequence of int or of lists, mapping, "auto", bool or None, optional
        The shape of a shard, a multiple of `chunks`. A shard is stored as one value with an index. "auto" and True put
        up to 8 chunks along each dimension into a shard. None and False store each chunk separately. Lists define
        shards of different lengths, as for `chunks`. `{"shape": ..., "index_location": "start"}` puts the index first.
    filters : array -> array codec, list of them, "auto" or None, optional
        Codecs that transform the elements, such as `transpose`. "auto" and None mean no filters.
    serializer : array -> bytes codec or "auto", optional
        The codec that turns elements into bytes. "auto" is `bytes` in little-endian order, or the codec for elements
        of variable length.
    compressors : bytes -> bytes codec, list of them, "auto" or None, optional
        Codecs that compress bytes, or add checksums or padding. "auto" is `zstd`; None stores uncompressed bytes.
    codecs : sequence of codec, optional
        The whole codec chain in encoding order, instead of `shards`, `filters`, `serializer` and `compressors`.
    fill_value : scalar, optional
        The value of elements that were never written: a value that fits the data type, or JSON as in zarr.json. The
        zero of the data type if omitted.
    attributes : mapping, optional
        The attributes; values are JSON.
    chunk_key_encoding : chunk key encoding, optional
        How chunk coordinates become keys. "default" generates keys such as `c/0/1`.
    dimension_names : sequence of str or None, optional
        A name, or None, for each dimension.
    storage_transformers : sequence of storage transformer, optional
        The storage transformers between the array and the store, in this order.
    options : mapping, optional
        Runtime options of extensions, keyed by JSON pointer: `{"/codecs/1": {"keep_padding": True}}`. They are
        an alternative to options set on the objects, and are not stored.
    missing_chunks : {"fill", "error"}, optional
        Whether the returned array reads a missing chunk as the fill value (the default) or raises an error.
    write_empty_chunks : bool, optional
        Whether the returned array stores chunks that contain only the fill value; by default they are erased.
    max_chunk_bytes : int or None, optional
        The largest chunk that the returned array reads and writes, as for `open`.
    progress : callable, optional
        Called as for `open` while the returned array is read or written, including while `data` is written.
    write_data : bool, optional
        Whether to store `data`. False uses only its shape and data type.
    overwrite : bool, optional
        Whether to first remove an existing array or group, with everything below it.
    config : mapping, optional
        zarr-python's `config`: a mapping with the keys `write_empty_chunks` and `order`, or the `config` of another
        array.
    order : {"C", "F"}, optional
        The memory order of the numpy arrays that reads return. A `transpose` filter changes the stored order.
    zarr_format : {3}, optional
        zarr-python's `zarr_format`.
    storage_options : mapping, optional
        Keywords of `ObjectStore`, if the store is the URL of an object store or an HTTP server.

    Returns
    -------
    Array
        The new array.

    Raises
    ------
    ArgumentError
        If an argument is invalid, or a keyword is unknown. Nothing is changed.
    MetadataError
        If the extensions are incompatible with each other. The error contains a JSON pointer into the new document.
        Nothing is changed.
    NodeExistsError
        If the node already exists and `overwrite` is not set, or the path leads through an array.
    ReadOnlyError
        If the store is read-only.

    Examples
    --------
    >>> import numpy as np, zarrlite
    >>> a = zarrlite.create_array("memory://", shape=(4, 4), dtype="float32", chunks=(2, 2))
    >>> a.chunks
    (2, 2)
    >>> b = zarrlite.create_array("memory://", name="b", data=np.arange(6), chunks=2, shards=4, compressors="gzip")
    >>> list(b.store.list())
    ['b/c/0', 'b/c/1', 'b/zarr.json', 'zarr.json']
    """
    from zarrlite.nodes.creation import create_array_at  # imported here: not needed for opening

    return create_array_at(
        open_store(store, storage_options=storage_options),
        normalize_path(name),
        shape=shape,
        dtype=dtype,
        data=data,
        chunks=chunks,
        shards=shards,
        filters=filters,
        serializer=serializer,
        compressors=compressors,
        codecs=codecs,
        fill_value=fill_value,
        attributes=attributes,
        chunk_key_encoding=chunk_key_encoding,
        dimension_names=dimension_names,
        storage_transformers=storage_transformers,
        options=options,
        missing_chunks=missing_chunks,
        write_empty_chunks=write_empty_chunks,
        max_chunk_bytes=max_chunk_bytes,
        array_options=runtime_options(progress=progress),
        write_data=write_data,
        overwrite=overwrite,
        config=config,
        order=order,
        zarr_format=zarr_format,
    )


def create_group(
    store: StoreLike = None,
    *,
    path: str | None = None,
    attributes: Mapping[str, Json] | None = None,
    overwrite: bool = False,
    zarr_format: Literal[3] | None = 3,
    storage_options: StorageOptions | None = None,
) -> Group:
    """Create a group, and any missing groups above it.

    Parameters
    ----------
    store : Store, path, URI, mapping or None, optional
        The location of the hierarchy, as for `open`.
    path : str or None, optional
        Path of the new group in the store; the root if omitted.
    attributes : mapping, optional
        The attributes; values are JSON.
    overwrite : bool, optional
        Whether to first remove an existing array or group, with everything below it.
    zarr_format : {3}, optional
        zarr-python's `zarr_format`.
    storage_options : mapping, optional
        Keywords of `ObjectStore`, if the store is the URL of an object store or an HTTP server.

    Returns
    -------
    Group
        The new group.

    Raises
    ------
    ArgumentError
        If an argument is invalid. Nothing is changed.
    NodeExistsError
        If the node already exists and `overwrite` is not set, or the path leads through an array.
    ReadOnlyError
        If the store is read-only.

    Examples
    --------
    >>> import zarrlite
    >>> group = zarrlite.create_group("memory://", path="a/b", attributes={"units": "K"})
    >>> list(group.store.list())
    ['a/b/zarr.json', 'a/zarr.json', 'zarr.json']
    """
    check_format(zarr_format)
    place = open_store(store, storage_options=storage_options)
    where = normalize_path(path)
    return create_group_at(place, where, attributes, overwrite=overwrite, options=runtime_options())


def consolidate_metadata(
    store: StoreLike, path: str | None = None, *, storage_options: StorageOptions | None = None
) -> Group:
    """Copy the documents of a hierarchy into the document of its root group.

    Readers then find the whole hierarchy in one document. The copies are collected and written atomically, under the
    lock of the document. When this library changes a node, it removes the copies first and restores updated copies
    after the change; if the change is interrupted, the copies are missing. The copies in a document larger than 4 MiB
    are removed but not restored. Changes made by other programs do not update the copies. A node whose document is
    refused is skipped, with a warning.

    Parameters
    ----------
    store : Store, path, URI, mapping or None
        The location of the hierarchy, as for `open`.
    path : str or None, optional
        Path of the group in the store; the root if omitted.
    storage_options : mapping, optional
        Keywords of `ObjectStore`, if the store is the URL of an object store.

    Returns
    -------
    Group
        The group, opened for reading and writing.

    Raises
    ------
    NodeNotFoundError
        If there is no node.
    NodeExistsError
        If the node is an array.
    MetadataError
        If the document of the group is refused, or if it would be too large or too deeply nested to be read back
        together with the copies. Nothing is changed.
    ReadOnlyError
        If the store is read-only.

    Examples
    --------
    >>> import zarrlite
    >>> store = zarrlite.create_array("memory://", name="g/a", shape=3, dtype="int8").store
    >>> zarrlite.consolidate_metadata(store)
    <Group />
    >>> [path for path, node in zarrlite.open_group(store, mode="r").members(None)]
    ['g', 'g/a']
    """
    return open_group(store, mode="r+", path=path, storage_options=storage_options).consolidate_metadata()


def copy(
    source: Array | Group,
    store: StoreLike,
    path: str | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    storage_options: StorageOptions | None = None,
    dask: Any = None,
) -> Array | Group:
    """Copy a node, with everything below it, to another location.

    All values are copied byte for byte, without decoding, including values that do not belong to any node. A node whose
    document is refused is copied as well, with a warning. A node in another format that Zarr v3 cannot express is left
    out, with a warning. Chunks are copied first, then documents from the leaves up, so that a node that can be opened
    at the target is complete. The document of the copy itself comes last, and only one of several writers that copy to
    the same path can store it.

    Parameters
    ----------
    source : Array or Group
        The node to copy.
    store : Store, path, URI, mapping or None
        The target, as for `open`.
    path : str or None, optional
        Path of the copy in that store; the root if omitted.
    overwrite : bool, optional
        Whether to first remove an existing array or group, with everything below it.
    progress : callable, optional
        Called as `progress(done, total)` with the number of values that have been copied, and their total. An exception
        that the callable raises ends the copy.
    storage_options : mapping, optional
        Keywords of `ObjectStore`, if the target is the URL of an object store.
    dask : str or distributed.Client, optional
        The address of a scheduler, whose workers copy the values; "local" for processes on this machine. Such a copy
        keeps a journal: an interrupted call can be repeated, and resumes where it stopped.

    Returns
    -------
    Array or Group
        The copy, opened for reading and writing.

    Raises
    ------
    ArgumentError
        If the node would be copied onto or into itself. Nothing is changed.
    NodeExistsError
        If the node already exists and `overwrite` is not set, or the path leads through an array.
    ReadOnlyError
        If the target is read-only.
    KeyRefusedError
        If the source contains a symbolic link that its store does not follow.

    Examples
    --------
    >>> import zarrlite
    >>> source = zarrlite.create_array("memory://", data=[1, 2, 3])
    >>> zarrlite.copy(source, "memory://", "deep/copy")[...]
    array([1, 2, 3])
    """
    from zarrlite.chunks.progress import Count  # imported here: keeps `import zarrlite` light

    target, where = open_store(store, storage_options=storage_options), normalize_path(path)
    if dask is not None:
        return _copy_by_workers(source, target, where, overwrite, progress, dask)
    origin, prefix = key_prefix(source.path), key_prefix(where)
    (from_store, from_prefix), (to_store, to_prefix) = source.store.location(origin), target.location(prefix)
    if from_store == to_store and (from_prefix.startswith(to_prefix) or to_prefix.startswith(from_prefix)):
        raise ArgumentError(f"{source!r} cannot be copied onto or into itself")
    clear(target, where, overwrite=overwrite)
    arrays = []
    left_out = []  # prefixes of nodes that Zarr v3 cannot express
    held = 0  # bytes; decoded size of the largest chunk or shard
    for below, node in [("", source), *(source._walk(None) if isinstance(source, Group) else ())]:
        if isinstance(node, Array):
            arrays.append(Array(target, prefix + below if below else where, node.metadata))
            held = max(held, math.prod(node.shards or node.chunks) * node.dtype.itemsize)
        elif isinstance(node, KeyRefusedError):
            raise node  # the copy would be incomplete
        elif isinstance(node, ZarrliteError):
            is_copied = has_text(source.store, origin + below)
            if not is_copied:
                left_out.append(f"{origin}{below}/")
            how = "is copied unchecked" if is_copied else "is not copied"
            warnings.warn(f"{source.name}: the node {below!r} {how}: {node}", stacklevel=2)
    threads.gather(lambda array: array._chunks.erase_leftovers(), arrays, place_of(target))
    keys = [key for key in source.store.list_prefix(origin) if not key.startswith(tuple(left_out))]
    documents = {key for key in keys if f"/{key}".endswith(f"/{DOCUMENT}")}

    count = Count(_ignore if progress is None else progress, len(keys))

    def copy_value(key: str) -> None:
        if (value := source.store.get(key)) is not None:
            target.set(prefix + key[len(origin) :], value)
        count.advance()

    place = slowest_place(source.store, target)
    threads.run(copy_value, [key for key in keys if key not in documents], 0, place, held)
    ordered = sorted(documents, key=lambda key: -key.count("/"))
    values = threads.gather(source.store.get, ordered, place_of(source.store))
    pairs = zip(ordered, values, strict=True)
    write_copies(target, where, [(key[len(origin) :], value) for key, value in pairs if value is not None])
    count.finish()
    options = source.options._replace(cache=None, progress=None)
    return _node(target, where, source.metadata, options, strict=True, use_consolidated=None)


def _copy_by_workers(
    source: Array | Group, target: Store, path: str, overwrite: bool, progress: Progress | None, dask: Any
) -> Array | Group:
    from zarrlite.chunks.progress import Count  # imported here: keeps `import zarrlite` light
    from zarrlite.tools.transfer.copying import Copy

    job = Copy(source, target, path)
    job.run(overwrite=overwrite, dask=dask, advance=Count(progress or _ignore, job.total).advance)
    options = source.options._replace(cache=None, progress=None)
    return _node(target, path, source.metadata, options, strict=True, use_consolidated=None)


def _ignore(done: int, total: int) -> None:
    """Report nothing."""
