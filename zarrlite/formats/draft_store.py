"""Read-only Zarr v3 stores for hierarchies in the 2022 draft of Zarr v3, as written by zarr-python 2.14 to 2.18.

Rules (draft, Storage keys)
- `zarr.json` at the root identifies the hierarchy. Documents have keys such as `meta/root/<path>.array.json` or
  `meta/root/<path>.group.json`. A chunk with the key `data/root/<path>/c0/1` has the key `<path>/c/0/1` in the Zarr v3
  store, or `<path>/c.0.1` if the separator of the array is a dot.
- A group needs no document: a path is a group if there are documents below it, and the root is always a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from zarrlite.buffers.ranges import ByteRange
from zarrlite.chunk_key_encodings.base import parse_coords
from zarrlite.errors import MetadataError
from zarrlite.extensions.config import MAX_DOCUMENT_BYTES, Json
from zarrlite.formats.draft import parse_array, parse_entry, parse_group
from zarrlite.formats.foreign import ForeignStore
from zarrlite.metadata.documents import GroupMetadata, Metadata
from zarrlite.names import DOCUMENT, key_prefix, name_fault
from zarrlite.stores.base import Listing, Store, check_prefix

_DOCUMENT_RANGE = ByteRange(0, MAX_DOCUMENT_BYTES + 1)  # one byte more than allowed, to detect longer documents
_match_chunk_key = re.compile(r"((?:.*/)?)c((?:/[0-9]+)+|(?:\.[0-9]+)+|)", re.DOTALL).fullmatch
_match_chunk_prefix = re.compile(r"(?:(.*)/)?c(?:/[0-9]+)*", re.DOTALL).fullmatch


def find_draft(store: Store) -> DraftStore | None:
    """Return a view of a store that contains a hierarchy of the draft. Returns None for other stores."""
    suffix = parse_entry(store.get(DOCUMENT, _DOCUMENT_RANGE))
    return None if suffix is None else DraftStore(store, suffix)


class DraftStore(ForeignStore):
    """A hierarchy in the draft format, as a read-only Zarr v3 store."""

    format = "the Zarr v3 draft"

    def __init__(self, store: Store, suffix: str = ".json") -> None:
        super().__init__(store)
        self.suffix = suffix  # the ending of every document key

    def document(self, path: str) -> dict[str, Json] | None:
        metadata = self._metadata(path)
        return None if metadata is None else metadata.to_json()

    def _metadata_key(self, path: str, kind: str) -> str:
        return f"meta/root{'/' if path else ''}{path}.{kind}{self.suffix}"

    def _metadata(self, path: str) -> Metadata | None:
        """Read the metadata of the node at a path. Returns None if there is no node."""
        array_key, group_key = self._metadata_key(path, "array"), self._metadata_key(path, "group")
        requests = [(array_key, _DOCUMENT_RANGE), (group_key, _DOCUMENT_RANGE)]
        array, group = self.store.get_partial_values(requests)
        if array is not None:
            return parse_array(array, array_key)
        if group is not None:
            return parse_group(group, group_key)
        # draft, Group metadata: "A group does not need a metadata document to exist"
        return GroupMetadata({}) if not path or self._child_names(path) else None

    def underlying_key(self, key: str) -> str | None:
        match = _match_chunk_key(key)
        if match is None:
            return None
        prefix, coords = match[1], match[2][1:]
        return f"data/root/{prefix}c{coords or 0}"  # zarr-python stored the chunk of an array without dimensions as c0

    def list_dir(self, prefix: str) -> Listing:
        path = check_prefix(prefix)[:-1]
        if self._array_at(path) is not None:
            return Store.list_dir(self, prefix)
        names = self._child_names(path)
        keys = [prefix + DOCUMENT] if names or self.size(prefix + DOCUMENT) is not None else []
        return keys, sorted(f"{prefix}{name}/" for name in names)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        array = self._array_at(check_prefix(prefix)[:-1])
        if array is None:
            yield from super().list_prefix(prefix)
        else:
            yield from (key for key in sorted(self._array_keys(array)) if key.startswith(prefix))

    def _array_at(self, path: str) -> str | None:
        """Return the path of the array at this path, or of the array that contains this path.

        Returns None if there is no such array.
        """
        candidates = [path]
        if match := _match_chunk_prefix(path):
            candidates.append(match[1] or "")
        for candidate in candidates:
            if self.store.size(self._metadata_key(candidate, "array")) is not None:
                return candidate
        return None

    def _array_keys(self, path: str) -> Iterator[str]:
        """Iterate over the keys of an array, in no particular order."""
        yield key_prefix(path) + DOCUMENT
        try:
            metadata: Any = self._metadata(path)
        except MetadataError:
            return  # without valid metadata, no chunk has a Zarr v3 key; reading the document raises the error
        key_encoding, ndim = metadata.chunk_key_encoding, len(metadata.shape)
        root = f"data/root/{key_prefix(path)}c"
        for key in self.store.list_prefix(root[:-1]):
            if not key.startswith(root):
                continue
            coords = parse_coords(key[len(root) :].split(key_encoding.separator), max(ndim, 1))
            if coords is not None and (ndim or coords == (0,)):
                yield key_prefix(path) + key_encoding.encode(coords[:ndim])

    def _child_names(self, path: str) -> set[str]:
        """Return the names of the nodes directly below a path (draft, Discover children of a group)."""
        root = f"meta/root/{key_prefix(path)}"
        endings = f".array{self.suffix}", f".group{self.suffix}"
        keys, prefixes = self.store.list_dir(root)
        names = {key[len(root) : -len(ending)] for key in keys for ending in endings if key.endswith(ending)}
        for prefix in prefixes:
            name = prefix[len(root) : -1]
            if name not in names and any(key.endswith(endings) for key in self.store.list_prefix(prefix)):
                names.add(name)
        return {name for name in names if not name_fault(name)}
