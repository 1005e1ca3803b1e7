"""Read-only Zarr v3 stores for Zarr v2 hierarchies.

Rules (Zarr v2, Groups)
- The `zarr.json` of a node is generated from its `.zarray` or `.zgroup` and its `.zattrs`; listings omit these three.
  All other keys, including those of chunks, are the same in both versions.
- A node that has a `zarr.json` is read as Zarr v3, with a warning if it also has Zarr v2 documents.
- A group needs no `.zgroup`: a directory that is not inside an array is a group if it contains a `.zattrs`, or if there
  is a node below it.
- If the view was created with a `.zmetadata`, documents are taken from it, and nodes are found without listing the
  store.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any, Final

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.errors import MetadataWarning, StoreError
from zarrlite.extensions.config import MAX_DOCUMENT_BYTES, Config, Context, Json, dump_json, load_json
from zarrlite.formats.foreign import ForeignStore
from zarrlite.formats.v2 import (
    ARRAY,
    ATTRIBUTES,
    CONSOLIDATED,
    DOCUMENTS,
    GROUP,
    convert_array,
    convert_group,
    parse_consolidated,
)
from zarrlite.names import DOCUMENT, REMOVAL, key_prefix
from zarrlite.stores.base import Buffers, Listing, Request, Store, check_prefix

_NODES: Final = (ARRAY, GROUP, ATTRIBUTES)  # names of documents; a directory that contains any of them is a node
_ANY: Final = ByteRange(0, MAX_DOCUMENT_BYTES + 1)  # one byte more than allowed, to detect longer documents


def find_v2(store: Store, path: str, *, use_consolidated: bool | None = None, search: bool = True) -> V2Store | None:
    """Return a view of the Zarr v2 hierarchy that may contain a node at a path. Returns None for other stores.

    With `search`, groups without a document are found by listing the directory.
    """
    tops = dict.fromkeys((path, ""))
    for top in tops:
        view = _view(store, top, use_consolidated)
        if view is not None and (top == path or view.has_node(path)):
            return view
    for top in tops if search else ():
        if _has_members(store, key_prefix(top)) and (top == path or V2Store(store).has_node(path)):
            return V2Store(store)
    return None


def _has_members(store: Store, prefix: str) -> bool:
    """Whether a directory without documents directly contains Zarr v2 nodes. False for a partly removed group."""
    try:
        keys, below = store.list_dir(prefix)
    except StoreError:
        return False  # the store cannot be listed
    if prefix + REMOVAL in keys:
        return False
    return any(store.size(name + node) is not None for name in below for node in _NODES)


def _view(store: Store, path: str, use_consolidated: bool | None) -> V2Store | None:
    """Return a view of the hierarchy at a path. Returns None if there is no Zarr v2 document."""
    prefix = key_prefix(path)
    array, consolidated, *others = (store.size(prefix + name) for name in (ARRAY, CONSOLIDATED, GROUP, ATTRIBUTES))
    if array is None and consolidated is None and others == [None, None]:
        return None
    if array is not None or consolidated is None or use_consolidated is False:
        return V2Store(store)
    data = store.get(prefix + CONSOLIDATED, _ANY)
    return V2Store(store) if data is None else V2Store(store, data, path)


class V2Store(ForeignStore):
    """A Zarr v2 hierarchy as a read-only Zarr v3 store, whose documents are generated from the Zarr v2 documents.

    Parameters
    ----------
    store
        The store that contains the hierarchy.
    consolidated
        The content of a `.zmetadata`, from which documents are taken; None to read each document separately.
    path
        The path of the group that contains the `.zmetadata`.
    """

    format = "Zarr v2"

    def __init__(self, store: Store, consolidated: Buffer | None = None, path: str = "") -> None:
        super().__init__(store)
        self._prefix = key_prefix(path)
        self._copies: Config | None = None
        self._names: dict[str, set[str]] = {}  # path of a group in `.zmetadata` -> names of its members
        if consolidated is not None:
            key = self._prefix + CONSOLIDATED
            self._copies = parse_consolidated(load_json(consolidated, key, nan_anywhere=True), key)
            self._index(self._copies.data)
            self.is_consolidated = True

    def _index(self, keys: Collection[str]) -> None:
        """Collect the names of the members of each group."""
        for key in keys:
            path, _, name = (self._prefix + key).rpartition("/")
            if name not in _NODES:
                continue
            self._names.setdefault(path, set())
            while path != self._prefix[:-1]:
                path, _, below = path.rpartition("/")
                self._names.setdefault(path, set()).add(below)

    def _is_copied(self, path: str) -> bool:
        """Whether the documents of a path, if any, are taken from `.zmetadata`."""
        return self._copies is not None and key_prefix(path).startswith(self._prefix)

    # documents

    def document(self, path: str) -> dict[str, Json] | None:
        data = self._document(key_prefix(path) + DOCUMENT)
        return None if data is None else load_json(data)

    def _document(self, key: str) -> Buffer | None:
        path = key[: -len(DOCUMENT)].rstrip("/")
        if self._is_copied(path):
            converted = self._convert(path, *self._copied(path))
        else:
            prefix = key_prefix(path)
            names = (DOCUMENT, ARRAY, GROUP, ATTRIBUTES)
            stored, *others = self.store.get_partial_values([(prefix + name, _ANY) for name in names])
            if stored is not None:
                if others[0] is not None or others[1] is not None:
                    warn_both(self.store, path)
                return stored
            converted = self._convert(path, *map(_load, others, (prefix + name for name in names[1:])))
        return None if converted is None else dump_json(converted, allow_nan=True)

    def convert(self, path: str) -> dict[str, Json] | None:
        """Return the document of a node, converted from Zarr v2 documents only. Returns None if there is no node."""
        keys = [key_prefix(path) + name for name in (ARRAY, GROUP, ATTRIBUTES)]
        found = self.store.get_partial_values([(key, _ANY) for key in keys])
        return self._convert(path, *map(_load, found, keys))

    def _convert(
        self, path: str, array: Config | None, group: Config | None, attributes: Config | None
    ) -> dict[str, Json] | None:
        """Return the document of a node, given its Zarr v2 documents. Returns None if there is no node."""
        values = {} if attributes is None else attributes.data
        if array is not None:
            return convert_array(array, values)
        if group is not None or attributes is not None or self._is_implicit(path):
            return convert_group(group, values)
        return None

    def _copied(self, path: str) -> list[Config | None]:
        """Return the documents of a node from `.zmetadata`."""
        copies: Any = self._copies
        prefix = key_prefix(path)[len(self._prefix) :]
        keys = (prefix + name for name in (ARRAY, GROUP, ATTRIBUTES))
        return [copies.object(key) if key in copies else None for key in keys]

    def has_document(self, path: str) -> bool:
        """Whether a path has a document."""
        prefix = key_prefix(path)
        return any(self.store.size(prefix + name) is not None for name in (*_NODES, DOCUMENT))

    def has_node(self, path: str) -> bool:
        """Whether there is a node at a path."""
        if self._is_copied(path):
            return path in self._names
        return self.has_document(path) or self._is_implicit(path)

    def _is_implicit(self, path: str) -> bool:
        """Whether a path without documents is a group: there is a node below it, and it is not inside an array."""
        if self._is_copied(path):
            return path in self._names
        return not self._is_inside_array(path) and self._has_members(path)

    def _has_members(self, path: str) -> bool:
        """Whether there is a node below a path."""
        pending = [key_prefix(path)]
        while pending:
            prefix = pending.pop()
            keys, prefixes = self.store.list_dir(prefix)
            if prefix + REMOVAL in keys:
                continue
            if any(self.has_document(below[:-1]) for below in prefixes):
                return True
            pending += prefixes
        return False

    def _is_inside_array(self, path: str) -> bool:
        """Whether a directory above this one is an array."""
        names = path.split("/") if path else []
        above = ("/".join(names[:i]) for i in range(len(names)))
        return any(map(self._is_array, above))

    # values

    def underlying_key(self, key: str) -> str | None:
        return None if key.rpartition("/")[2] in DOCUMENTS else key

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        for request in requests:
            if request[0].endswith((DOCUMENT, *DOCUMENTS)):
                return super().get_partial_values(requests, memory)
        return self.store.get_partial_values(requests, memory)

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return self.store.location(prefix)

    # listing

    def list_dir(self, prefix: str) -> Listing:
        path = check_prefix(prefix)[:-1]
        if self._is_copied(path) and path in self._names and not self._is_array(path):
            return [prefix + DOCUMENT], sorted(f"{prefix}{name}/" for name in self._names[path])
        keys, prefixes = self.store.list_dir(prefix)
        names = {key[len(prefix) :] for key in keys}
        is_node = not names.isdisjoint((*_NODES, DOCUMENT)) or self._is_implicit(path)
        shown = names - DOCUMENTS | ({DOCUMENT} if is_node else set())
        return sorted(prefix + name for name in shown), prefixes

    def list_prefix(self, prefix: str) -> Iterator[str]:
        pending = [check_prefix(prefix)]
        inside = self._is_inside_array(prefix[:-1])
        while pending:
            entry = pending.pop()
            if entry and not entry.endswith("/"):
                yield entry
            elif inside or self._is_array(entry[:-1]):
                yield from sorted(self._array_keys(entry, inside))
            else:
                keys, prefixes = self.list_dir(entry)
                pending += sorted([*keys, *prefixes], reverse=True)

    def _is_array(self, path: str) -> bool:
        key = key_prefix(path) + ARRAY
        if self._copies is not None and key.startswith(self._prefix):
            return key[len(self._prefix) :] in self._copies
        return self.store.size(key) is not None

    def _array_keys(self, prefix: str, inside: bool) -> set[str]:
        """Return the keys of an array under its own prefix or, with `inside`, under a prefix within the array."""
        keys = {key for key in self.store.list_prefix(prefix) if key.rpartition("/")[2] not in DOCUMENTS}
        return keys if inside else {*keys, prefix + DOCUMENT}


def warn_both(store: Store, path: str) -> None:
    """Warn about a node that has documents of both Zarr v2 and Zarr v3."""
    message = f"{key_prefix(path)}{DOCUMENT} in {store!r} is read; the documents of Zarr v2 next to it are ignored"
    warnings.warn(MetadataWarning(message), stacklevel=2)


def _load(data: Buffer | None, key: str) -> Config | None:
    """Parse a Zarr v2 document. Returns None if it is missing."""
    return None if data is None else Config(load_json(data, key, nan_anywhere=True), "", Context(document=key))
