"""Hierarchies of the Zarr v3 draft, as zarr-python 2.14 to 2.18 wrote them, seen as Zarr v3.

Rules
- `zarr.json` at the root says what it is. Documents are `meta/root/<path>.array.json` and `.group.json`, chunks lie at
  `data/root/<path>/c0/1`; here they are `<path>/c/0/1`, in the array's own separator.
- A group needs no document: where documents lie below there is one, and at the root there always is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from zarrlite.buffers.ranges import ByteRange
from zarrlite.chunk_key_encodings.base import parse_coords
from zarrlite.extensions.config import MAX_DOCUMENT_BYTES, Json
from zarrlite.formats.draft import parse_array, parse_entry, parse_group
from zarrlite.formats.foreign import ForeignStore
from zarrlite.metadata.documents import GroupMetadata, Metadata
from zarrlite.names import DOCUMENT, key_prefix, name_fault
from zarrlite.stores.base import Listing, Store, check_prefix

_DOCUMENT = ByteRange(0, MAX_DOCUMENT_BYTES + 1)
_chunk = re.compile(r"((?:.*/)?)c((?:/[0-9]+)+|(?:\.[0-9]+)+|)", re.DOTALL).fullmatch
_inside = re.compile(r"(?:(.*)/)?c(?:/[0-9]+)*", re.DOTALL).fullmatch


def find_draft(store: Store) -> DraftStore | None:
    """The hierarchy of the draft that a store holds, if it holds one."""
    suffix = parse_entry(store.get(DOCUMENT, _DOCUMENT))
    return None if suffix is None else DraftStore(store, suffix)


class DraftStore(ForeignStore):
    """A hierarchy of the draft; read-only."""

    format = "the Zarr v3 draft"

    def __init__(self, store: Store, suffix: str = ".json") -> None:
        super().__init__(store)
        self.suffix = suffix  # of metadata keys

    def document(self, path: str) -> dict[str, Json] | None:
        metadata = self._metadata(path)
        return None if metadata is None else metadata.to_json()

    def _key(self, path: str, kind: str) -> str:
        return f"meta/root{'/' if path else ''}{path}.{kind}{self.suffix}"

    def _metadata(self, path: str) -> Metadata | None:
        keys = self._key(path, "array"), self._key(path, "group")
        array, group = self.store.get_partial_values([(key, _DOCUMENT) for key in keys])
        if array is not None:
            return parse_array(array, keys[0])
        if group is not None:
            return parse_group(group, keys[1])
        return GroupMetadata({}) if not path or self._names(path) else None

    def underlying_key(self, key: str) -> str | None:
        match = _chunk(key)
        return match and f"data/root/{match[1]}c{match[2][1:] or 0}"  # the chunk of an array of no dimensions is c0

    def list_dir(self, prefix: str) -> Listing:
        path = check_prefix(prefix)[:-1]
        if self._array_at(path) is not None:
            return Store.list_dir(self, prefix)
        names = self._names(path)
        keys = [prefix + DOCUMENT] if names or self.size(prefix + DOCUMENT) is not None else []
        return keys, sorted(f"{prefix}{name}/" for name in names)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        array = self._array_at(check_prefix(prefix)[:-1])
        if array is None:
            yield from super().list_prefix(prefix)
        else:
            yield from (key for key in sorted(self._array_keys(array)) if key.startswith(prefix))

    def _array_at(self, path: str) -> str | None:
        """The path of the array that has keys under this one, which may lead into its chunks."""
        inside = _inside(path)
        for candidate in (path, inside[1] or "") if inside else (path,):
            if self.store.size(self._key(candidate, "array")) is not None:
                return candidate
        return None

    def _array_keys(self, path: str) -> Iterator[str]:
        """The keys of an array, in no order."""
        yield key_prefix(path) + DOCUMENT
        metadata: Any = self._metadata(path)
        encode, ndim = metadata.chunk_key_encoding.encode, len(metadata.shape)
        root = f"data/root/{key_prefix(path)}c"
        for key in self.store.list_prefix(root[:-1]):
            texts = key[len(root) :].split(metadata.chunk_key_encoding.separator)
            coords = parse_coords(texts, max(ndim, 1)) if key.startswith(root) else None
            if coords is not None and (ndim or coords == (0,)):
                yield key_prefix(path) + encode(coords[:ndim])

    def _names(self, path: str) -> set[str]:
        """The names of the nodes directly below a path."""
        root = f"meta/root/{key_prefix(path)}"
        ends = f".array{self.suffix}", f".group{self.suffix}"
        keys, prefixes = self.store.list_dir(root)
        found = {key[len(root) : -len(end)] for key in keys for end in ends if key.endswith(end)}
        for prefix in prefixes:
            name = prefix[len(root) : -1]
            if name not in found and any(key.endswith(ends) for key in self.store.list_prefix(prefix)):
                found.add(name)
        return {name for name in found if not name_fault(name)}
