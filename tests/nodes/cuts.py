"""Killed writers: stores whose process dies before its n-th change, and the state that a reader finds afterwards.

After such an interruption, here called a cut, the store contains exactly what was stored before it: not even exception
handlers can change it. `run_in_memory` interrupts changes to an in-memory store, which erases prefixes key by key, in
sorted order; `run_on_disk` kills a forked child before one of the system calls that change the names of files.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import zarrlite
from zarrlite import Array, ByteRange, LocalStore
from zarrlite.buffers.ranges import ALL
from zarrlite.stores import Store

NAME_CHANGES = ("replace", "rename", "link", "unlink", "rmdir", "mkdir")
_KILLED = 9  # exit status of a child that ends without cleaning up, as if killed


class Cut(BaseException):
    """The process is dead."""


class SortedStore(Store):
    """A user-defined store with the four required operations.

    It lists keys in sorted order, and dies after a given number of changes.
    """

    def __init__(self, values: dict[str, bytes], changes: int | None = None) -> None:
        self.values = values
        self.changes = changes  # the number of changes before the store dies; None if it never dies

    def _change(self) -> None:
        if self.changes == 0:
            raise Cut
        if self.changes is not None:
            self.changes -= 1

    def get(self, key: str, byte_range: ByteRange = ALL) -> bytes | None:
        value = self.values.get(key)
        return None if value is None else byte_range.of(value)

    def set(self, key: str, value: Any) -> None:
        self._change()
        self.values[key] = bytes(value)

    def erase(self, key: str) -> None:
        self._change()
        self.values.pop(key, None)

    def list(self) -> Iterator[str]:
        return iter(sorted(self.values))


class Seen(NamedTuple):
    """A node as a reader sees it."""

    attributes: str
    values: Any = None  # nested lists for an array


State = dict[str, Seen]


def look(store: Store) -> State:
    """Open every node that has a document, and check that consolidated metadata matches the stored documents."""
    state: State = {}
    documents: dict[str, Any] = {}
    for key in sorted(store.list()):
        if f"/{key}".endswith("/zarr.json"):
            path = key[: -len("zarr.json")].rstrip("/")
            node = zarrlite.open(store, path=path, mode="r", use_consolidated=False)
            values = node[...].tolist() if isinstance(node, Array) else None
            state[path] = Seen(json.dumps(dict(node.attrs)), values)
            documents[path] = json.loads(bytes(store.get(key) or b""))
    copies = {path: document.pop("consolidated_metadata", None) for path, document in documents.items()}
    for path, found in copies.items():
        if found is not None:
            prefix = f"{path}/" if path else ""
            below = {
                name[len(prefix) :]: d for name, d in documents.items() if name != path and name.startswith(prefix)
            }
            assert found["metadata"] == below, f"consolidated metadata of {path!r} is stale"
    return state


Judge = Callable[[Store], object]


def run_in_memory(prepare: Callable[[Store], object], operate: Callable[[Store], object], judge: Judge) -> int:
    """Interrupt an operation before each of its changes, and call `judge` each time. Returns the number of cuts."""
    before: dict[str, bytes] = {}
    prepare(SortedStore(before))
    changes = 0
    while True:
        values = dict(before)
        try:
            operate(SortedStore(values, changes))
        except Cut:
            _judge(judge, SortedStore(values), f"cut before change {changes}")
            changes += 1
            continue
        _judge(judge, SortedStore(values), "complete")
        return changes


def run_on_disk(
    prepare: Callable[[Store], object], operate: Callable[[Store], object], judge: Judge, root: Path
) -> int:
    """Kill an operation before each system call that changes the name of a file. Returns the number of kills."""
    if not hasattr(os, "fork"):
        pytest.skip("this platform has no fork")
    (root / "before").mkdir()
    prepare(LocalStore(root / "before"))
    calls = 0
    while True:
        directory = root / f"cut{calls}"
        shutil.copytree(root / "before", directory)
        killed = _fork(lambda directory=directory: operate(LocalStore(directory)), calls)  # type: ignore[misc]
        _judge(judge, LocalStore(directory), f"killed before call {calls}" if killed else "complete")
        shutil.rmtree(directory)
        if not killed:
            return calls
        calls += 1


def _fork(operate: Callable[[], object], calls: int) -> bool:
    """Run an operation in a child that is killed before one of its system calls. Returns whether it was killed."""
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, _KILLED), "the operation failed without being killed"
        return status == _KILLED
    status = 1
    try:
        left = calls

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal left
                if not left:
                    os._exit(_KILLED)
                left -= 1
                return function(*args, **kwargs)

            return call

        for name in NAME_CHANGES:
            setattr(os, name, counted(getattr(os, name)))
        operate()
        status = 0
    finally:
        os._exit(status)


def _judge(judge: Judge, store: Store, when: str) -> None:
    try:
        judge(store)
    except Exception as error:
        raise AssertionError(f"{when}: {error}") from error
