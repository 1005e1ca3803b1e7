"""Zarr v2: `zarrlite.open` reads it in place; `write_documents` adds Zarr v3 documents.

formats/v2.py converts documents; formats/v2_store.py defines the view of a store that `zarrlite.open` uses.
"""

from __future__ import annotations

import warnings
from typing import Any

from zarrlite.errors import MetadataWarning, NodeExistsError, NodeNotFoundError, ZarrliteError
from zarrlite.extensions.config import Json, dump_json
from zarrlite.formats.v2 import array_document
from zarrlite.formats.v2_store import V2Store, find_v2
from zarrlite.names import DOCUMENT, key_prefix, normalize_path
from zarrlite.nodes import opening
from zarrlite.nodes.group import Group
from zarrlite.stores import Store, open_store

__all__ = ["V2Store", "array_document", "documents", "write_documents"]


def documents(store: Any, *, path: str | None = None) -> dict[str, dict[str, Json] | ZarrliteError]:
    """Convert the documents of every array and group at and below a path, without writing anything.

    Parameters
    ----------
    store
        The Zarr v2 hierarchy: a path, a URI, a mapping or a store.
    path
        The path of the array or group to start from; the root by default.

    Returns
    -------
    dict
        The content of each `zarr.json` by its key. If a node cannot be converted, the value is the error.

    Raises
    ------
    NodeNotFoundError
        If there is no Zarr v2 array or group at `path`.

    Examples
    --------
    >>> store = {".zgroup": b'{"zarr_format": 2}', ".zattrs": b'{"units": "K"}'}
    >>> documents(store)
    {'zarr.json': {'zarr_format': 3, 'node_type': 'group', 'attributes': {'units': 'K'}}}
    """
    place, where = open_store(store), normalize_path(path)
    view = find_v2(place, where, use_consolidated=False)
    if view is None:
        raise NodeNotFoundError(f"no Zarr v2 array or group at {where!r} in {place!r}", path=where)
    found: dict[str, dict[str, Json] | ZarrliteError] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetadataWarning)  # a `zarr.json` may exist already
        for node_path in _paths(view, where):
            try:
                content: dict[str, Json] | ZarrliteError | None = view.convert(node_path)
            except ZarrliteError as error:
                content = error
            if content is not None:
                found[key_prefix(node_path) + DOCUMENT] = content
    return found


def _paths(view: V2Store, path: str) -> list[str]:
    """Return the paths of all nodes at and below a path, including those that cannot be opened."""
    try:
        top = opening.open(view, mode="r", path=path)
    except NodeNotFoundError:
        raise
    except ZarrliteError:
        return [path]
    below = [name for name, _ in top._walk(None)] if isinstance(top, Group) else []
    return [path, *(key_prefix(path) + name for name in below)]


def write_documents(store: Any, *, path: str | None = None, overwrite: bool = False) -> list[str]:
    """Write a `zarr.json` for every array and group at and below a path. No data is moved or changed.

    Afterwards, the hierarchy is also valid Zarr v3, which zarrlite can read and write. The Zarr v2 documents are kept,
    but zarrlite ignores them: remove them when no other program reads them any more. Nothing is written if a node
    cannot be converted.

    Parameters
    ----------
    store
        The Zarr v2 hierarchy: a path, a URI, a mapping or a store.
    path
        The path of the array or group to start from; the root by default.
    overwrite
        Whether to replace existing `zarr.json` documents whose content differs.

    Returns
    -------
    list of str
        The keys of the documents, sorted.

    Raises
    ------
    NodeNotFoundError
        If there is no Zarr v2 array or group at `path`.
    NodeExistsError
        If a `zarr.json` with different content exists and `overwrite` is false.
    MetadataError
        If a document cannot be converted.

    Examples
    --------
    >>> store = {".zarray": b'''{"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "|u1", "compressor": null,
    ...                          "fill_value": 0, "order": "C", "filters": null}''', "0": bytes([1, 2, 3])}
    >>> write_documents(store)
    ['zarr.json']
    >>> import warnings, zarrlite
    >>> with warnings.catch_warnings(action="ignore"):
    ...     zarrlite.open_array(store)[...]
    array([1, 2, 3], dtype=uint8)
    """
    place = open_store(store)
    contents: dict[str, bytes] = {}
    for key, content in documents(place, path=path).items():
        if isinstance(content, ZarrliteError):
            raise content
        contents[key] = dump_json(content, allow_nan=True)
    for key, document in contents.items():
        existing = None if overwrite else place.get(key)
        if existing is not None and bytes(existing) != document:
            message = f"{place!r} already has a different {key}; overwrite=True replaces it"
            raise NodeExistsError(message, path=key)
    _write(place, contents)
    return sorted(contents)


def _write(store: Store, contents: dict[str, bytes]) -> None:
    """Store documents, leaves first: once the root can be opened, the hierarchy is complete."""
    store.set_many(sorted(contents.items(), key=lambda item: -item[0].count("/")))
