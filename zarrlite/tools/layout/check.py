"""Check every stored object of a hierarchy: damaged, missing, or not part of any node.

Rules
- As many objects are read at once as the store takes, one on a local disk, and shards one inner chunk at a time.
  Problems are yielded as they are found, in the order of the keys.
- A problem has a key, a kind, a message and a remedy.
- Nothing is changed here; safe repairs are in repair.py. No program should write meanwhile: an object that is replaced
  during the check can look damaged.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from zarrlite import threads
from zarrlite.buffers.ranges import ByteRange
from zarrlite.errors import (
    ArgumentError,
    MetadataError,
    MetadataWarning,
    NodeNotFoundError,
    UnknownExtensionError,
    ZarrliteError,
)
from zarrlite.extensions.config import MAX_DOCUMENT_BYTES, Json, load_json
from zarrlite.formats.foreign import ForeignStore
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata, Metadata, parse_node
from zarrlite.metadata.validation import validate
from zarrlite.names import DOCUMENT, REMOVAL, key_prefix, name_fault
from zarrlite.nodes import opening
from zarrlite.nodes.array import RESIZING, Array
from zarrlite.stores import Store
from zarrlite.stores.base import place_of
from zarrlite.tools.layout import leftovers
from zarrlite.tools.layout.objects import Stack
from zarrlite.tools.layout.tree import Fault, Range

MAX_REPORTED: Final = 20  # problems reported for one object; the others are only counted
_RESTORE = "restore the chunk from a copy; erase it, with all its parts, to read the fill value in its place"
REMEDIES: Final = {
    "metadata": "correct the document; zarrlite validate lists all its faults",
    "unsupported": "register the extension, or install what it needs",
    "checksum": _RESTORE,
    "index": _RESTORE,
    "size": _RESTORE,
    "data": _RESTORE,
    "part": "restore the part from a copy; erase all parts of the chunk to read the fill value in its place",
    "outside": "it is never read; --repair-outside removes it, resizing the array makes it data again",
    "unknown": "it is never read; move it away if it does not belong there",
    "unreadable": "check the permissions and the disk",
    "limit": "set ZARRLITE_MAX_CHUNK_BYTES to check it, if there is enough memory",
    "journal": "reading takes it into account; --repair completes the change, and so does the next write of the chunk",
    "resize": "--repair removes the chunks that are outside now, and so does the next change of the shape",
    "removal": "--repair completes it, and so does creating a node there or below; a node that is complete is kept",
    "leftover": "--repair removes it if its writer is gone; once it is an hour old if that ran on another machine",
    "consolidated": "--repair-consolidated copies the documents again",
    "document": "create the missing group: zarrlite.create_group(store, path=...)",
}
_FOREIGN: Final = {"attributes.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}  # documents of N5 and of version 2
_OTHERS: Final = {  # files of other libraries, by the end of their names
    ".partial": "the temporary file of a writer of zarr-python",
    ".__lock": "the lock file of a writer of tensorstore",
}
_NOT_BEGUN: Final = "the removal of this node was interrupted before it began"
_MARKS: Final = {  # keys in an array, by which interrupted operations are recognized; kind of problem, message
    RESIZING: ("resize", "the array was made smaller, and some chunks outside of its shape may not be removed yet"),
    REMOVAL: ("removal", _NOT_BEGUN),
}

Copies = list[tuple[str, set[str]]]  # paths of groups with consolidated metadata, and the paths of their copies


class Problem(NamedTuple):
    """A defect of a stored object or of a directory."""

    key: str  # the key of the stored object; a directory ends in `/`
    kind: str
    message: str
    start: int | None = None  # the faulty bytes; None for the whole object
    stop: int | None = None
    node: str = ""  # the path of the array or group
    chunk: str | None = None  # the key of the chunk, if it is outside the grid

    @property
    def remedy(self) -> str:
        """The way to solve it."""
        return REMEDIES[self.kind]

    def to_json(self) -> dict[str, Json]:
        """Return the problem as JSON."""
        content = {"key": self.key, "kind": self.kind, "message": self.message, "remedy": self.remedy}
        return content if self.start is None else {**content, "start": self.start, "stop": self.stop}


def check(
    store: Store, path: str = "", *, strict: bool = True, done: Callable[[str], Any] = lambda key: None
) -> Iterator[Problem]:
    """Yield every problem of the node at a path and of everything below; `done` is called with each checked key."""
    checked, prefix = store, key_prefix(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetadataWarning)
            node = opening.open(store, mode="r", path=path, strict=False, use_consolidated=False)
        if isinstance(node.store, ForeignStore):
            checked, prefix = node.store, ""  # its files have other names
    except ArgumentError:
        raise
    except NodeNotFoundError:
        if store.size(prefix + REMOVAL) is None:
            raise
    except ZarrliteError:
        pass  # reported by the check of its document
    yield from _Check(checked, strict, done).nodes(path)
    for leftover in leftovers.find(store, prefix):
        minutes = f"{leftover.seconds / 60:.0f} minutes"
        writer = "its writer may be at work" if leftover.alive else "its writer is gone"
        message = f"temporary file of {leftover.size} bytes, {minutes} old; {writer}"
        yield Problem(leftover.key, "leftover", message)


class _Check:
    """One pass over a hierarchy."""

    def __init__(self, store: Store, strict: bool, done: Callable[[str], Any]) -> None:
        self.store = store
        self.strict = strict
        self.done = done
        self._pending: list[tuple[str, Copies]] = []  # nodes that are still to be checked, the next one last

    def nodes(self, path: str) -> Iterator[Problem]:
        """Check a node and everything below."""
        self._pending.append((path, []))
        while self._pending:
            yield from self._node(*self._pending.pop())

    def _node(self, path: str, copies: Copies) -> Iterator[Problem]:
        """Check a node, and append its members to the pending ones; `copies` are those of the groups above."""
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
        """Check a directory in a group that is not a node, and the nodes below it."""
        prefix = key_prefix(path)
        if self.store.size(prefix + REMOVAL) is not None:
            for key in self.store.list_prefix(prefix):
                self.done(key)
            yield Problem(prefix + REMOVAL, "removal", "the removal of this node was interrupted", node=path)
            return
        keys = self.store.list_prefix(prefix)
        below = next((key for key in keys if key.endswith(f"/{DOCUMENT}")), None)
        if below is not None:
            yield Problem(prefix, "document", f"has no {DOCUMENT}, so that {below} is not found", node=path)
            yield from self._group(path, GroupMetadata(), copies)
            return
        count = 0
        for key in self.store.list_prefix(prefix):
            count += 1
            self.done(key)
        if count:
            yield Problem(prefix, "unknown", f"is not a node, and contains {count} objects", node=path)

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
            if name == REMOVAL:
                self.done(key)
                yield Problem(key, "removal", _NOT_BEGUN, node=path)
            elif name != DOCUMENT and name not in _FOREIGN:
                self.done(key)
                yield Problem(key, "unknown", _guess(key, "does not belong to the group"), node=path)
        members = []
        for child in prefixes:
            name = child[len(prefix) : -1]
            if name_fault(name):
                yield Problem(child, "unknown", f"cannot be a node: {name_fault(name)}", node=path)
            else:
                members.append((prefix + name, copies))
        self._pending += reversed(members)

    def _copies(self, path: str, consolidated: Any) -> Iterator[Problem]:
        """Check copies of documents against the documents."""
        key = key_prefix(path) + DOCUMENT
        for below, copy in consolidated.items():
            original = key_prefix(path) + key_prefix(below) + DOCUMENT
            try:
                data = self.store.get(original, ByteRange(0, MAX_DOCUMENT_BYTES + 1))
                document = None if data is None else load_json(data, original)
            except (ZarrliteError, OSError):
                continue  # reported by the check of the document itself
            if document is None:
                yield Problem(key, "consolidated", f"has a copy of {original}, which does not exist", node=path)
            elif _own(document) != _own(copy):
                yield Problem(key, "consolidated", f"has a copy of {original} that differs from it", node=path)

    def _array(self, path: str, metadata: ArrayMetadata) -> Iterator[Problem]:
        prefix = key_prefix(path)
        try:
            stack = Stack(Array(self.store, path, metadata))
            is_resized = stack.base.size(RESIZING) is not None  # that is the fault of chunks outside then
            keys = (key for key in stack.base.list_prefix("") if key != DOCUMENT and key not in _FOREIGN)
            held = 2 * math.prod(stack.array.chunks) * stack.array.dtype.itemsize

            def check_key(key: str) -> tuple[str, list[Problem]]:
                return key, list(self._key(key, path, stack))

            for key, problems in threads.ahead(check_key, keys, place_of(self.store), held):
                self.done(prefix + key)
                yield from (problem for problem in problems if problem.kind != "outside" or not is_resized)
        except (ZarrliteError, OSError) as error:
            yield self._problem(prefix, Fault.of(error), path)

    def _key(self, key: str, path: str, stack: Stack) -> Iterator[Problem]:
        """Check an object that is stored under a key of an array."""
        stored = key_prefix(path) + key
        if key in _MARKS:
            kind, message = _MARKS[key]
            yield Problem(stored, kind, message, node=path)
        elif (journal := stack.journal(key)) is not None:
            message = f"chunk {journal[1]} is being changed, or that was interrupted"
            yield Problem(stored, "journal", message, node=path)
        elif (layout := stack.layout(key)) is not None:
            yield from self._object(stored, layout, path, stack)

    def _object(self, key: str, layout: Range, path: str, stack: Stack) -> Iterator[Problem]:
        count = 0
        for above, r in layout.faults():
            if r.fault is None:
                continue
            count += 1
            if count <= MAX_REPORTED:
                place = ": ".join([*above, r.what]) if r.fault.kind not in ("outside", "unknown") else ""
                message = f"{place}: {r.fault.message}" if place else _guess(key, r.fault.message)
                chunk = stack.key(tuple(r.detail["coordinates"])) if r.fault.kind == "outside" else None
                problem = Problem(key, r.fault.kind, message, r.start, r.stop, path, chunk)
                if (r.start, r.stop) == (layout.start, layout.stop):
                    problem = problem._replace(start=None, stop=None)
                yield problem
        if count > MAX_REPORTED:
            yield Problem(key, "data", f"has {count - MAX_REPORTED} more problems", node=path)

    @staticmethod
    def _problem(key: str, fault: Fault, path: str) -> Problem:
        return Problem(key, fault.kind, fault.message, node=path)


def _own(document: Any) -> Any:
    """Return a document without its consolidated metadata."""
    return {k: v for k, v in document.items() if k != "consolidated_metadata"}


def _guess(key: str, message: str) -> str:
    """Return a message with a guess about an unknown object."""
    likely = next((f"; it looks like {what}" for end, what in _OTHERS.items() if key.endswith(end)), "")
    return message + likely
