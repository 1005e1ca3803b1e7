"""Consolidated metadata above a changing node is removed before the change, then updated and restored.

Rules
- Consolidated metadata is removed and restored, and the node is changed, while the documents that contain consolidated
  metadata are locked. A concurrent consolidation waits for these locks.
- Locks are acquired from the root down; a node's own document is locked last.
- If a writer is killed, consolidated metadata may be missing afterwards, but it is never stale.
- Locks do not exclude writers on other machines. Therefore, in a store that other machines may write to
  (`Limits.shared`), consolidated metadata is removed but not restored.
- A document larger than `MAX_REFRESHED_BYTES` loses its consolidated metadata, because writing it twice for each change
  would cost more than it is worth. A document that would be too large or too deeply nested to be read back also
  loses it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from typing import Self

from zarrlite import threads
from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.errors import MetadataError
from zarrlite.extensions.config import MAX_DOCUMENT_BYTES, Json, load_json
from zarrlite.metadata.documents import consolidated_member, dump_document
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.stores import Store
from zarrlite.stores.base import place_of
from zarrlite.tuning import MAX_REFRESHED_BYTES

DOCUMENT_RANGE = ByteRange(0, MAX_DOCUMENT_BYTES + 1)  # one byte more than allowed, to detect longer documents


def ancestors(path: str) -> Iterator[str]:
    """Yield the paths of the groups above a node, starting with the root."""
    if path:
        names = path.split("/")
        yield from itertools.accumulate(["", *names[:-1]], lambda above, name: f"{above}/{name}" if above else name)


class CopiesAbove:
    """A context manager that locks the documents of some groups above a node.

    Parameters
    ----------
    store : Store
        The store that holds the hierarchy.
    path : str
        Path of the node that is about to change.
    groups : iterable of str
        Paths of the groups above the node, starting with the root.
    """

    def __init__(self, store: Store, path: str, groups: Iterable[str]) -> None:
        self._store = store
        self._path = path
        self._groups = list(groups)
        self._taken: dict[str, dict[str, Json]] = {}  # path of a group -> documents in its consolidated metadata
        self._locks = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as locks:
            for group in self._groups:
                locks.enter_context(self._store.lock(key_prefix(group) + DOCUMENT))
            self._locks = locks.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._locks.close()

    def take_out(self) -> None:
        """Remove the consolidated metadata of these groups. Call this before the first change."""
        keys = [key_prefix(group) + DOCUMENT for group in self._groups]
        documents = threads.gather(lambda key: self._store.get(key, DOCUMENT_RANGE), keys, place_of(self._store))
        for group, key, document in zip(self._groups, keys, documents, strict=True):
            if b'"consolidated_metadata"' in bytes(document or b""):
                self._store.update(key, lambda data, group=group: self._without(group, data))  # type: ignore[misc]

    def _without(self, group: str, data: Buffer | None) -> Buffer | None:
        document = {} if data is None else load_json(data, key_prefix(group) + DOCUMENT)
        member = document.pop("consolidated_metadata", None)
        if member is None:
            return data
        documents = member.get("metadata") if isinstance(member, dict) else None
        if isinstance(documents, dict) and len(data or b"") <= MAX_REFRESHED_BYTES:
            self._taken[group] = documents
        return dump_document(document)

    def put_back(self, changed: Iterable[str], *, replaced: bool = False) -> None:
        """Restore the consolidated metadata, with the current documents of the changed nodes.

        If `replaced` is true, the documents of the node and of the nodes below it are first removed from the
        consolidated metadata.
        """
        if not self._taken or self._store.limits.shared:
            return
        stored = {path: self._store.get(key_prefix(path) + DOCUMENT, DOCUMENT_RANGE) for path in changed}
        for group, documents in self._taken.items():
            prefix = key_prefix(group)
            gone = self._path[len(prefix) :]
            if replaced:
                documents = {
                    path: content
                    for path, content in documents.items()
                    if path != gone and not path.startswith(gone + "/")
                }
            for path, data in stored.items():
                documents.pop(path[len(prefix) :], None)
                content = _load(data, key_prefix(path) + DOCUMENT)
                if content is not None:
                    content.pop("consolidated_metadata", None)
                    documents[path[len(prefix) :]] = content
            self._store.update(prefix + DOCUMENT, lambda data, documents=documents: _with(data, documents))  # type: ignore[misc]
        self._taken = {}


def _load(data: Buffer | None, key: str) -> dict[str, Json] | None:
    """Parse a document. Returns None if it is missing or not JSON: consolidated metadata omits such documents."""
    try:
        return None if data is None else load_json(data, key)
    except MetadataError:
        return None


def _with(data: Buffer | None, documents: dict[str, Json]) -> Buffer | None:
    """Return a group's document with consolidated metadata, unless that makes it too large or too deeply nested."""
    if data is None:
        return None
    content = {**load_json(data), "consolidated_metadata": consolidated_member(documents)}
    try:
        return dump_document(content)
    except MetadataError:
        return data
