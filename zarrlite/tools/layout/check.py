"""Check a hierarchy for stored objects that are damaged, missing, or not part of any node.

Rules
- The number of objects that are read concurrently depends on the store; on a local disk, it is one. A shard is read one
  inner chunk at a time. Problems are yielded as they are found, in the order of the keys.
- A problem has a key, a kind, a message and a remedy.
- This module changes nothing; repairs are in repair.py. No program should write during the check: an object that is
  replaced meanwhile can look damaged.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Final, NamedTuple, cast

from zarrlite import threads
from zarrlite.buffers.ranges import Buffer, ByteRange
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
from zarrlite.stores.base import Listing, place_of
from zarrlite.tools.layout import leftovers
from zarrlite.tools.layout.objects import Stack
from zarrlite.tools.layout.tree import Fault, Range

MAX_REPORTED: Final = 20  # problems reported for one object; the others are only counted
_RESTORE = "restore the chunk from a backup, or erase it with all its parts to read the fill value in its place"
REMEDIES: Final = {
    "metadata": "correct the document; zarrlite validate lists all its faults",
    "unsupported": "register the extension, or install the package that it requires",
    "checksum": _RESTORE,
    "index": _RESTORE,
    "size": _RESTORE,
    "data": _RESTORE,
    "part": "restore the part from a backup, or erase all parts of the chunk to read the fill value in its place",
    "outside": "it is not read unless the array is enlarged; --repair-outside removes it",
    "unknown": "it is never read; move it away if it does not belong there",
    "unreadable": "check the permissions and the disk",
    "limit": "set ZARRLITE_MAX_CHUNK_BYTES to a larger value to check it, if there is enough memory",
    "journal": "reads take it into account; --repair completes the change, and so does the next write of the chunk",
    "resize": "--repair removes the chunks that are now outside of the shape, and so does the next resize",
    "removal": "--repair completes it, and so does creating a node at this path or below; a complete node is kept",
    "leftover": "--repair removes it if its writer is gone, or after an hour if its writer may be on another machine",
    "consolidated": "--repair-consolidated copies the documents again",
    "document": "create the missing group: zarrlite.create_group(store, path=...)",
}
_FOREIGN: Final = {"attributes.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}  # documents of N5 and Zarr v2
_OTHERS: Final = {  # suffix of a key -> what another library stores under it
    ".partial": "a temporary file of zarr-python",
    ".__lock": "a lock file of tensorstore",
}
_NOT_BEGUN: Final = "the removal of this node was interrupted before it began"
_MARKS: Final = {  # keys that an interrupted operation leaves in an array -> kind of problem, message
    RESIZING: ("resize", "the array was shrunk, but some chunks outside of its shape may not have been removed yet"),
    REMOVAL: ("removal", _NOT_BEGUN),
}

# path of a group with consolidated metadata, paths of the nodes listed in that metadata
Copies = list[tuple[str, set[str]]]


class Problem(NamedTuple):
    """A problem with a stored object or a directory."""

    key: str  # the key of the stored object; a directory ends in `/`
    kind: str
    message: str
    start: int | None = None  # the faulty bytes; None for the whole object
    stop: int | None = None
    node: str = ""  # the path of the array or group
    chunk: str | None = None  # the key of the chunk, if it is outside the grid

    @property
    def remedy(self) -> str:
        """How to solve the problem."""
        return REMEDIES[self.kind]

    def to_json(self) -> dict[str, Json]:
        """Return the problem as JSON."""
        content = {"key": self.key, "kind": self.kind, "message": self.message, "remedy": self.remedy}
        return content if self.start is None else {**content, "start": self.start, "stop": self.stop}


def check(
    store: Store, path: str = "", *, strict: bool = True, done: Callable[[str], Any] = lambda key: None
) -> Iterator[Problem]:
    """Yield every problem in the node at a path and in everything below it. `done` is called with each checked key."""
    checked, prefix = store, key_prefix(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetadataWarning)
            node = opening.open(store, mode="r", path=path, strict=False, use_consolidated=False)
        if isinstance(node.store, ForeignStore):
            checked, prefix = node.store, ""  # a Zarr v3 view; the keys in `store` itself are those of another format
    except ArgumentError:
        raise
    except NodeNotFoundError:
        if store.size(prefix + REMOVAL) is None:
            raise
    except ZarrliteError:
        pass  # the check of its document reports this error
    yield from _Check(checked, strict, done).nodes(path)
    for leftover in leftovers.find(store, prefix):
        minutes = f"{leftover.seconds / 60:.0f} minutes"
        writer = "its writer may still be running" if leftover.alive else "its writer is gone"
        message = f"temporary file of {leftover.size} bytes, {minutes} old; {writer}"
        yield Problem(leftover.key, "leftover", message)


class _Step(NamedTuple):
    """A check of one or several stored objects."""

    keys: list[str]  # the keys that count as checked after this step
    find: Callable[[], Iterable[Problem]]
    held: int = 0  # bytes of memory that the check holds while it runs


class _Chunks(NamedTuple):
    """The stored objects of an array."""

    stack: Stack
    keys: Iterator[str]
    is_resized: bool  # whether a resize of the array was interrupted


class _Node(NamedTuple):
    """A node as it was read from the store, or a directory without a document."""

    path: str
    copies: Copies  # the consolidated metadata of the groups that contain the node
    data: Buffer | None = None
    metadata: Metadata | None = None
    below: Listing | _Chunks | None = None
    fault: Exception | None = None  # the reason why the document or a listing could not be read


class _Check:
    """One pass over a hierarchy.

    A walk finds the objects in the order of their keys and yields a step for each of them. If the store takes time to
    answer, several steps run concurrently, and documents and listings are requested ahead of the walk.
    """

    def __init__(self, store: Store, strict: bool, done: Callable[[str], Any]) -> None:
        self.store = store
        self.strict = strict
        self.done = done
        self._place = place_of(store)

    def nodes(self, path: str) -> Iterator[Problem]:
        """Check a node and everything below it."""

        def run(step: _Step) -> tuple[_Step, list[Problem]]:
            return step, list(step.find())

        for step, problems in threads.ahead(run, self._walk(path), self._place, lambda step: step.held):
            for key in step.keys:
                self.done(key)
            yield from problems

    def _walk(self, path: str) -> Iterator[_Step]:
        """Yield the steps for a node and everything below it."""
        levels = [iter([self._look((path, []))])]  # for each level of the current path, the nodes still to be visited
        while levels:
            node = next(levels[-1], None)
            if node is None:
                levels.pop()
                continue
            members = yield from self._node(node)
            levels.append(threads.ahead(self._look, members, self._place))

    def _look(self, member: tuple[str, Copies]) -> _Node:
        """Read the document of a node, and list the contents of the node."""
        path, copies = member
        node = _Node(path, copies)
        key = key_prefix(path) + DOCUMENT
        try:
            data = self.store.get(key, ByteRange(0, MAX_DOCUMENT_BYTES + 1))
            if data is None:
                return node
            metadata = self._parse(bytes(data), key)
            node = node._replace(data=data, metadata=metadata)
            if isinstance(metadata, GroupMetadata):
                return node._replace(below=self.store.list_dir(key_prefix(path)))
            if isinstance(metadata, ArrayMetadata):
                return node._replace(below=self._chunks(path, metadata))
        except (ZarrliteError, OSError) as error:
            return node._replace(fault=error)
        return node

    def _chunks(self, path: str, metadata: ArrayMetadata) -> _Chunks:
        stack = Stack(Array(self.store, path, metadata))
        is_resized = stack.base.size(RESIZING) is not None
        keys = stack.base.list_prefix("")
        first = list(itertools.islice(keys, 1))  # starts the listing now, before it is needed
        return _Chunks(stack, itertools.chain(first, keys), is_resized)

    def _parse(self, data: bytes, key: str) -> Metadata | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MetadataWarning)
                return parse_node(data, document=key, strict=False)
        except MetadataError:
            return None

    def _node(self, node: _Node) -> Generator[_Step, None, list[tuple[str, Copies]]]:
        """Yield the steps for a node, without those for its members. Returns the members."""
        key = key_prefix(node.path) + DOCUMENT
        yield _Step([key], functools.partial(self._document, node, key))
        if node.fault is None and node.data is None:
            return (yield from self._without_document(node))
        if node.fault is None and isinstance(node.metadata, GroupMetadata):
            return (yield from self._group(node, node.metadata))
        if isinstance(node.below, _Chunks):
            yield from self._array(node.path, node.below)
        return []

    def _document(self, node: _Node, key: str) -> Iterator[Problem]:
        """Check the document of a node."""
        if node.data is not None:
            for group, paths in node.copies:
                if node.path[len(key_prefix(group)) :] not in paths:
                    message = f"has no copy of {key}"
                    yield Problem(key_prefix(group) + DOCUMENT, "consolidated", message, node=group)
            for fault in validate(node.data, strict=self.strict):
                kind = "unsupported" if isinstance(fault, UnknownExtensionError) else "metadata"
                yield Problem(key, kind, f"{fault.pointer or '/'}: {fault.message}", node=node.path)
        if node.fault is not None:
            where = key if node.data is None else key_prefix(node.path)
            yield self._problem(where, Fault.of(node.fault), node.path)

    def _without_document(self, node: _Node) -> Generator[_Step, None, list[tuple[str, Copies]]]:
        """Check a directory that is in a group but is not a node. Returns the nodes directly below it."""
        path, prefix = node.path, key_prefix(node.path)
        if self.store.size(prefix + REMOVAL) is not None:
            problem = Problem(prefix + REMOVAL, "removal", "the removal of this node was interrupted", node=path)
            yield _found(problem, self.store.list_prefix(prefix))
            return []
        below = next((key for key in self.store.list_prefix(prefix) if key.endswith(f"/{DOCUMENT}")), None)
        if below is not None:
            yield _found(Problem(prefix, "document", f"has no {DOCUMENT}, so {below} cannot be found", node=path))
            listed = node._replace(below=self.store.list_dir(prefix))
            return (yield from self._group(listed, GroupMetadata()))
        found = list(self.store.list_prefix(prefix))
        if found:
            count = "1 object" if len(found) == 1 else f"{len(found)} objects"
            message = f"is not a node, but contains {count}"
            yield _found(Problem(prefix, "unknown", message, node=path), found)
        return []

    def _group(self, node: _Node, metadata: GroupMetadata) -> Generator[_Step, None, list[tuple[str, Copies]]]:
        """Check the objects and directories directly below a group. Returns its members."""
        path, prefix, copies = node.path, key_prefix(node.path), node.copies
        if metadata.consolidated is not None:
            for below, copy in metadata.consolidated.items():
                yield _Step([], functools.partial(self._copy, path, below, copy))
            copies = [*copies, (path, set(metadata.consolidated))]
        keys, prefixes = cast(Listing, node.below)
        for key in keys:
            name = key[len(prefix) :]
            if name == REMOVAL:
                yield _found(Problem(key, "removal", _NOT_BEGUN, node=path), [key])
            elif name != DOCUMENT and name not in _FOREIGN:
                message = _guess(key, "does not belong to the group")
                yield _found(Problem(key, "unknown", message, node=path), [key])
        members = []
        for child in prefixes:
            name = child[len(prefix) : -1]
            if name_fault(name):
                yield _found(Problem(child, "unknown", f"cannot be a node: {name_fault(name)}", node=path))
            else:
                members.append((prefix + name, copies))
        return members

    def _copy(self, path: str, below: str, copy: Any) -> Iterator[Problem]:
        """Compare a copy of a document in consolidated metadata with the original."""
        key = key_prefix(path) + DOCUMENT
        original = key_prefix(path) + key_prefix(below) + DOCUMENT
        try:
            data = self.store.get(original, ByteRange(0, MAX_DOCUMENT_BYTES + 1))
            document = None if data is None else load_json(data, original)
        except (ZarrliteError, OSError):
            return  # the check of the original reports this error
        if document is None:
            yield Problem(key, "consolidated", f"has a copy of {original}, which does not exist", node=path)
        elif _own(document) != _own(copy):
            yield Problem(key, "consolidated", f"has a copy of {original} that differs from the original", node=path)

    def _array(self, path: str, chunks: _Chunks) -> Iterator[_Step]:
        """Yield the steps for the stored objects of an array."""
        stack, prefix = chunks.stack, key_prefix(path)
        held = 2 * math.prod(stack.array.chunks) * stack.array.dtype.itemsize
        # after an interrupted resize, chunks outside of the shape are not reported one by one
        ignored = "outside" if chunks.is_resized else ""
        try:
            for key in chunks.keys:
                if key != DOCUMENT and key not in _FOREIGN:
                    yield _Step([prefix + key], functools.partial(self._key, key, path, stack, ignored), held)
        except (ZarrliteError, OSError) as error:
            yield _found(self._problem(prefix, Fault.of(error), path))

    def _key(self, key: str, path: str, stack: Stack, ignored: str) -> Iterator[Problem]:
        """Check an object that is stored under a key of an array. Problems of the kind `ignored` are not reported."""
        stored = key_prefix(path) + key
        try:
            if key in _MARKS:
                kind, message = _MARKS[key]
                yield Problem(stored, kind, message, node=path)
            elif (journal := stack.journal(key)) is not None:
                message = f"chunk {journal[1]} is being changed, or a change was interrupted"
                yield Problem(stored, "journal", message, node=path)
            elif (layout := stack.layout(key)) is not None:
                problems = self._object(stored, layout, path, stack)
                yield from (problem for problem in problems if problem.kind != ignored)
        except (ZarrliteError, OSError) as error:
            yield self._problem(stored, Fault.of(error), path)

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


def _found(problem: Problem, keys: Iterable[str] = ()) -> _Step:
    """Return the step for objects whose problem is already known."""
    return _Step(list(keys), lambda: [problem])


def _own(document: Any) -> Any:
    """Return a document without its consolidated metadata."""
    return {k: v for k, v in document.items() if k != "consolidated_metadata"}


def _guess(key: str, message: str) -> str:
    """Return a message about an unknown object, with a guess if another library uses keys with this suffix."""
    likely = next((f"; it looks like {what}" for end, what in _OTHERS.items() if key.endswith(end)), "")
    return message + likely
