"""Every stored object of a hierarchy, looked at: what is damaged, what is missing, what belongs to nobody.

Rules
- Problems come one by one while the objects are read, one object at a time; of a shard, one inner chunk at a time.
- A problem has a key, a kind, what is wrong, and what can be done about it.
- Nothing is changed here; repair.py does that, where it is safe. Nobody should write meanwhile: an object that is
  replaced while it is read can look damaged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from zarrlite.buffers.ranges import ByteRange
from zarrlite.errors import MetadataError, MetadataWarning, NodeNotFoundError, UnknownExtensionError, ZarrliteError
from zarrlite.extensions.config import MAX_DOCUMENT_BYTES, Json, load_json
from zarrlite.formats.foreign import ForeignStore
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata, Metadata, parse_node
from zarrlite.metadata.validation import validate
from zarrlite.names import DOCUMENT, key_prefix, name_fault
from zarrlite.nodes import opening
from zarrlite.nodes.array import Array
from zarrlite.stores import Store
from zarrlite.tools.layout import leftovers
from zarrlite.tools.layout.objects import Stack
from zarrlite.tools.layout.tree import Fault, Range

MOST: Final = 20  # problems of one object that are told one by one
_RESTORE = "restore the chunk from a copy; erase it, with all its parts, to read the fill value in its place"
REMEDIES: Final = {
    "metadata": "correct the document; zarrlite validate tells every fault of it",
    "unsupported": "register the extension, or install what it needs",
    "checksum": _RESTORE,
    "index": _RESTORE,
    "size": _RESTORE,
    "data": _RESTORE,
    "part": "restore the part from a copy; erase all parts of the chunk to read the fill value in its place",
    "outside": "nobody reads it; --repair-outside removes it, resizing the array makes it data again",
    "unknown": "nobody reads it; move it away if it does not belong there",
    "unreadable": "look at the permissions and at the disk",
    "leftover": "--repair removes it once it is an hour old and its writer is gone",
    "consolidated": "--repair-consolidated copies the documents anew",
    "document": "create the group that is missing: zarrlite.create_group(store, path=...)",
}
_FOREIGN: Final = {"attributes.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}  # documents of N5 and of version 2
_OTHERS: Final = {  # what other libraries leave behind
    ".partial": "the temporary file of a writer of zarr-python",
    ".__lock": "the lock file of a writer of tensorstore",
}


Copies = list[tuple[str, set[str]]]  # groups that have copies of documents, and of which


class Problem(NamedTuple):
    """Something that is not as it must be."""

    key: str  # of the stored object; of a directory with a `/` at the end
    kind: str
    message: str
    start: int | None = None  # the bytes that show it; None: all of them
    stop: int | None = None
    node: str = ""  # the path of the array or group
    chunk: str | None = None  # the key of the chunk, of one outside of the grid

    @property
    def remedy(self) -> str:
        """What can be done about it."""
        return REMEDIES[self.kind]

    def to_json(self) -> dict[str, Json]:
        """As JSON."""
        found = {"key": self.key, "kind": self.kind, "message": self.message, "remedy": self.remedy}
        return found if self.start is None else {**found, "start": self.start, "stop": self.stop}


def check(
    store: Store, path: str = "", *, strict: bool = True, done: Callable[[str], Any] = lambda key: None
) -> Iterator[Problem]:
    """Every problem of the node at a path and of everything below; `done` is told each key that was looked at."""
    seen, prefix = store, key_prefix(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetadataWarning)
            node = opening.open(store, mode="r", path=path, strict=False)
        if isinstance(node.store, ForeignStore):
            seen, prefix = node.store, ""  # the files lie elsewhere
    except NodeNotFoundError:
        raise
    except ZarrliteError:
        pass  # what is wrong will be told
    yield from _Check(seen, strict, done).node(path, [])
    for found in leftovers.find(store, prefix):
        minutes = f"{found.seconds / 60:.0f} minutes"
        writer = "its writer may be at work" if found.alive else "its writer is gone"
        message = f"temporary file of {found.size} bytes, {minutes} old; {writer}"
        yield Problem(found.key, "leftover", message)


class _Check:
    """One pass over a hierarchy."""

    def __init__(self, store: Store, strict: bool, done: Callable[[str], Any]) -> None:
        self.store = store
        self.strict = strict
        self.done = done

    def node(self, path: str, copies: Copies) -> Iterator[Problem]:
        """A node and what is below; `copies` are of the groups above."""
        key = key_prefix(path) + DOCUMENT
        self.done(key)
        try:
            data = self.store.get(key, ByteRange(0, MAX_DOCUMENT_BYTES + 1))
        except (ZarrliteError, OSError) as error:
            yield self._problem(key, Fault.of(error), path)
            return
        if data is None:
            yield from self._without_document(path, copies)
            return
        for group, paths in copies:
            if path[len(key_prefix(group)) :] not in paths:
                yield Problem(key_prefix(group) + DOCUMENT, "consolidated", f"has no copy of {key}", node=group)
        for fault in validate(data, strict=self.strict):
            kind = "unsupported" if isinstance(fault, UnknownExtensionError) else "metadata"
            yield Problem(key, kind, f"{fault.pointer or '/'}: {fault.message}", node=path)
        metadata = self._parse(bytes(data), key)
        if isinstance(metadata, ArrayMetadata):
            yield from self._array(path, metadata)
        elif isinstance(metadata, GroupMetadata):
            yield from self._group(path, metadata, copies)

    def _parse(self, data: bytes, key: str) -> Metadata | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MetadataWarning)
                return parse_node(data, document=key, strict=False)
        except MetadataError:
            return None

    def _without_document(self, path: str, copies: Copies) -> Iterator[Problem]:
        """A directory in a group that is no node; what is below is checked all the same."""
        prefix = key_prefix(path)
        keys = self.store.list_prefix(prefix)
        below = next((key for key in keys if key.endswith(f"/{DOCUMENT}")), None)
        if below is not None:
            yield Problem(prefix, "document", f"has no {DOCUMENT}, so that nobody finds {below}", node=path)
            yield from self._group(path, GroupMetadata(), copies)
            return
        count = 0
        for key in self.store.list_prefix(prefix):
            count += 1
            self.done(key)
        if count:
            yield Problem(prefix, "unknown", f"is no node, and holds {count} objects", node=path)

    def _group(self, path: str, metadata: GroupMetadata, copies: Copies) -> Iterator[Problem]:
        prefix = key_prefix(path)
        if metadata.consolidated is not None:
            yield from self._copies(path, metadata.consolidated)
            copies = [*copies, (path, set(metadata.consolidated))]
        try:
            keys, prefixes = self.store.list_dir(prefix)
        except (ZarrliteError, OSError) as error:
            yield self._problem(prefix, Fault.of(error), path)
            return
        for key in keys:
            name = key[len(prefix) :]
            if name != DOCUMENT and name not in _FOREIGN:
                self.done(key)
                yield Problem(key, "unknown", _guess(key, "does not belong to the group"), node=path)
        for child in prefixes:
            name = child[len(prefix) : -1]
            if name_fault(name):
                yield Problem(child, "unknown", f"cannot be a node: {name_fault(name)}", node=path)
            else:
                yield from self.node(prefix + name, copies)

    def _copies(self, path: str, consolidated: Any) -> Iterator[Problem]:
        """Copies of documents that are not what they are copies of."""
        key = key_prefix(path) + DOCUMENT
        for below, copy in consolidated.items():
            original = key_prefix(path) + key_prefix(below) + DOCUMENT
            try:
                data = self.store.get(original, ByteRange(0, MAX_DOCUMENT_BYTES + 1))
                document = None if data is None else load_json(data, original)
            except (ZarrliteError, OSError):
                continue  # what is wrong with it is told where it stands
            if document is None:
                yield Problem(key, "consolidated", f"has a copy of {original}, which is not there", node=path)
            elif _own(document) != _own(copy):
                yield Problem(key, "consolidated", f"has a copy of {original} that differs from it", node=path)

    def _array(self, path: str, metadata: ArrayMetadata) -> Iterator[Problem]:
        prefix = key_prefix(path)
        try:
            stack = Stack(Array(self.store, path, metadata))
            for key in stack.base.list_prefix(""):
                if key == DOCUMENT or key in _FOREIGN:
                    continue
                self.done(prefix + key)
                layout = stack.layout(key)
                if layout is not None:
                    yield from self._object(prefix + key, layout, path, stack)
        except (ZarrliteError, OSError) as error:
            yield self._problem(prefix, Fault.of(error), path)

    def _object(self, key: str, layout: Range, path: str, stack: Stack) -> Iterator[Problem]:
        found = 0
        for above, r in layout.walk():
            if r.fault is None:
                continue
            found += 1
            if found <= MOST:
                place = ": ".join([*above, r.what]) if r.fault.kind not in ("outside", "unknown") else ""
                message = f"{place}: {r.fault.message}" if place else _guess(key, r.fault.message)
                chunk = stack.key(tuple(r.detail["coordinates"])) if r.fault.kind == "outside" else None
                problem = Problem(key, r.fault.kind, message, r.start, r.stop, path, chunk)
                whole = (r.start, r.stop) == (layout.start, layout.stop)
                yield problem._replace(start=None, stop=None) if whole else problem
        if found > MOST:
            yield Problem(key, "data", f"has {found - MOST} more problems", node=path)

    @staticmethod
    def _problem(key: str, fault: Fault, path: str) -> Problem:
        return Problem(key, fault.kind, fault.message, node=path)


def _own(document: Any) -> Any:
    """A document without the copies in it."""
    return {k: v for k, v in document.items() if k != "consolidated_metadata"}


def _guess(key: str, message: str) -> str:
    """A message with what an unknown object may be."""
    likely = next((f"; it looks like {what}" for end, what in _OTHERS.items() if key.endswith(end)), "")
    return message + likely
