"""The functions that scripts call: zarr-python's names and keywords.

Modes: "r" reads what is there, "r+" also writes it, "a" creates what is missing, "w" replaces what is there,
"w-" creates and never replaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from zarrlite.chunks.chunks import ArrayOptions
from zarrlite.errors import ArgumentError, MetadataError, NodeExistsError, NodeNotFoundError
from zarrlite.extensions.config import Json
from zarrlite.metadata.documents import ArrayMetadata, Metadata, Options
from zarrlite.names import DOCUMENT, key_prefix, normalize_path
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group, create_group_at
from zarrlite.nodes.node import find_draft, is_version_2, load, make_room, not_found
from zarrlite.stores import ReadOnlyStore, Store, open_store
from zarrlite.stores.open import check_directory

Mode = Literal["r", "r+", "a", "w", "w-"]
_MODES = ("r", "r+", "a", "w", "w-")


def open(  # noqa: A001
    store: Any = None,
    *,
    mode: Mode = "a",
    path: str | None = None,
    strict: bool = True,
    options: Options | None = None,
    missing_chunks: Literal["fill", "error"] = "fill",
    write_empty_chunks: bool = False,
    use_consolidated: bool | None = None,
    **create: Any,
) -> Array | Group:
    """Open an array or a group, or create one: an array if `shape` or `data` is given, else a group.

    `strict=False` repairs what documents often forget, with a warning. `options` are runtime options of extensions, by
    JSON pointer: `{"/codecs/1": {...}}`. `missing_chunks="error"` refuses to take a missing chunk for the fill value.
    `use_consolidated=False` reads every document itself. The other keywords are those of `create_array`.

    >>> a = open("memory://", mode="w", shape=(2, 3), dtype="int16", fill_value=7)
    >>> a[0, 1:]
    array([7, 7], dtype=int16)
    """
    from zarrlite.nodes import creation  # late: keeps the import light

    if create:
        creation.check_keywords(create)
        creation.check_format(create.get("zarr_format"))
    place, where, existing = _locate(store, path, mode, strict, options)
    behaviour = ArrayOptions(missing_chunks, write_empty_chunks)
    if existing is not None:
        return _node(place, where, existing, behaviour, strict, use_consolidated)
    if create.get("shape") is not None or create.get("data") is not None:
        return creation.create_array_at(
            place, where, overwrite=mode == "w", behaviour=behaviour, options=options, **create
        )
    attributes = create.pop("attributes", None)
    create.pop("zarr_format", None)
    if create:
        raise ArgumentError(f"a group takes no {', '.join(create)}; an array needs shape= or data=")
    return create_group_at(place, where, attributes, overwrite=mode == "w", options=behaviour)


def open_array(store: Any = None, *, mode: Mode = "a", path: str | None = None, **kwargs: Any) -> Array:
    """Open an array, or create it if `mode` allows that and `shape` or `data` is given; else as `open`."""
    place = open_store(store, check=False)
    creatable = False
    if kwargs.get("shape") is None and kwargs.get("data") is None:
        if mode in ("w", "w-"):
            raise ArgumentError("an array needs shape= and dtype=, or data=")
        creatable = mode == "a"
        mode = "r+" if creatable else mode  # nothing to create it from
        if kwargs:
            kwargs = {name: value for name, value in kwargs.items() if value is not None}
    try:
        node = open(place, mode=mode, path=path, **kwargs)
    except NodeNotFoundError as error:
        hint = "; to create an array, give shape= and dtype=, or data=" if creatable else ""
        raise NodeNotFoundError(error.message + hint, path=normalize_path(path)) from None
    if not isinstance(node, Array):
        raise NodeExistsError(f"{node.path!r} in {place!r} is a group, not an array", path=node.path)
    return node


def open_group(store: Any = None, *, mode: Mode = "a", path: str | None = None, **kwargs: Any) -> Group:
    """Open a group, or create it if `mode` allows that; else as `open`."""
    for name in ("shape", "data"):
        if kwargs.get(name) is not None:
            raise ArgumentError(f"a group takes no {name}")
    place = open_store(store, check=False)
    node = open(place, mode=mode, path=path, **kwargs)
    if not isinstance(node, Group):
        raise NodeExistsError(f"{node.path!r} in {place!r} is an array, not a group", path=node.path)
    return node


def _locate(
    store: Any, path: str | None, mode: str, strict: bool, options: Options | None
) -> tuple[Store, str, Metadata | None]:
    """The store, the path, and the node that is there if this mode opens it."""
    if mode not in _MODES:
        raise ArgumentError(f"mode must be one of {', '.join(map(repr, _MODES))}, not {mode!r}")
    place = store if isinstance(store, Store) else open_store(store, check=False)
    if mode == "r" and not place.read_only:
        place = ReadOnlyStore(place)
    where = normalize_path(path)
    if mode in ("w", "w-"):
        check_directory(place)
        if mode == "w-" and place.size(key_prefix(where) + DOCUMENT) is not None:
            raise NodeExistsError(f"there is a node at {where!r} in {place!r} already", path=where)
        return place, where, None
    fault = None
    try:
        found = load(place, where, strict=strict, options=options)
    except MetadataError as error:
        found, fault = None, error
    # what is no node may be the entry document of the draft; what is not there may lie below one
    draft = find_draft(place) if fault or (found is None and where) else None
    if draft:
        found = load(draft, where, strict=strict, options=options)
        if found is None and mode == "a":
            raise draft.refuse_new(where)
        place = draft
    elif fault:
        raise fault
    if found is None:
        check_directory(place)
        if mode in ("r", "r+") or is_version_2(place, where):
            raise not_found(place, where)
    return place, where, found


def _node(
    store: Store, path: str, metadata: Metadata, options: ArrayOptions, strict: bool, use_consolidated: bool | None
) -> Array | Group:
    if isinstance(metadata, ArrayMetadata):
        return Array(store, path, metadata, options)
    if use_consolidated and metadata.consolidated is None:
        raise ArgumentError(f"the group at {path!r} has no consolidated metadata")
    if use_consolidated and not store.read_only:
        raise ArgumentError("consolidated metadata is used with mode='r' only: it would go stale under a writer")
    return Group(store, path, metadata, options=options, strict=strict, use_consolidated=use_consolidated is not False)


def create_array(
    store: Any = None,
    *,
    name: str | None = None,
    shape: Any = None,
    dtype: Any = None,
    data: Any = None,
    overwrite: bool = False,
    **kwargs: Any,
) -> Array:
    """Create an array.

    `chunks`, `shards`, `filters`, `serializer`, `compressors`, `fill_value`, `attributes`, `chunk_key_encoding`,
    `dimension_names` and `config` are zarr-python's. `codecs` is the whole chain instead of shards to compressors
    (`chunks` is then the shape of the chunk grid), `storage_transformers` the stack below it. Extensions are given as
    objects, as JSON or by name; `options` are theirs at run time, by JSON pointer. `missing_chunks` and
    `write_empty_chunks` hold for the object returned.

    >>> create_array("memory://", shape=(4, 4), dtype="float32", chunks=(2, 2)).chunks
    (2, 2)
    """
    from zarrlite.nodes.creation import create_array_at  # late: keeps the import light

    place = open_store(store)
    return create_array_at(
        place, normalize_path(name), shape=shape, dtype=dtype, data=data, overwrite=overwrite, **kwargs
    )


def create_group(
    store: Any = None,
    *,
    path: str | None = None,
    attributes: Mapping[str, Json] | None = None,
    overwrite: bool = False,
    zarr_format: int | None = 3,
) -> Group:
    """Create a group."""
    from zarrlite.nodes.creation import check_format  # late: keeps the import light

    check_format(zarr_format)
    return create_group_at(open_store(store), normalize_path(path), attributes, overwrite=overwrite)


def consolidate_metadata(store: Any, path: str | None = None) -> Group:
    """Copy the documents of a whole hierarchy into that of the group at its root, anew."""
    return open_group(store, mode="r+", path=path).consolidate_metadata()


def copy(source: Array | Group, store: Any, path: str | None = None, *, overwrite: bool = False) -> Array | Group:
    """Copy a node, with everything below it, to another place, byte for byte."""
    target, where = open_store(store), normalize_path(path)
    origin, prefix = key_prefix(source.path), key_prefix(where)
    (from_store, from_prefix), (to_store, to_prefix) = source.store.location(origin), target.location(prefix)
    if from_store == to_store and (from_prefix.startswith(to_prefix) or to_prefix.startswith(from_prefix)):
        raise ArgumentError(f"{source!r} cannot be copied onto or into itself")
    make_room(target, where, overwrite=overwrite)
    nodes = [("", source), *(source.members(None) if isinstance(source, Group) else ())]
    for below, node in nodes:
        if isinstance(node, Array):
            Array(target, prefix + below if below else where, node.metadata)._chunks.erase_leftovers()
    # chunks first and documents from the leaves up: what can be opened is complete
    keys = list(source.store.list_prefix(origin))
    documents = [key for key in keys if f"/{key}".endswith(f"/{DOCUMENT}")]
    documents.sort(key=lambda key: -key.count("/"))
    last = set(documents)
    for key in [*(key for key in keys if key not in last), *documents]:
        value = source.store.get(key)
        if value is not None:
            target.set(prefix + key[len(origin) :], value)
    return _node(target, where, source.metadata, source.options, strict=True, use_consolidated=None)
