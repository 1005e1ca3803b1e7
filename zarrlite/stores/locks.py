"""Locks by key, among the threads of one process.

Rules
- A table has an entry for a key only while a thread holds its lock or waits for it: it never grows with the keys that
  were ever locked.
- A lock is re-entrant in the thread that holds it; `LockEntry.depth` counts how often that thread has acquired it.
- A table pickles as an empty one and is emptied in a forked child: the threads that could release the locks do not
  exist there.

This module owns tables and entries. The resource of an entry belongs to the module that owns the table.
"""

from __future__ import annotations

import os
import weakref
from _thread import RLock
from collections.abc import Hashable
from typing import Any, cast


class LockEntry:
    """The entry of one key in a table: its lock, and a count of the threads that use it."""

    __slots__ = ("depth", "key", "lock", "resource", "users")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.lock = RLock()
        self.users = 0  # acquisitions and waiting threads
        self.depth = 0  # how often the holder has acquired the lock
        self.resource: Any = None  # set by the holder and valid while it holds the lock


class LockTable:
    """A table of locks by key.

    >>> locks = LockTable()
    >>> with locks("c/0"), locks("c/0") as entry:
    ...     entry.depth, len(locks)
    (2, 1)
    >>> len(locks)
    0
    """

    def __init__(self) -> None:
        self.reset()
        _tables.add(self)

    def reset(self) -> None:
        """Drop every entry."""
        self.guard = RLock()  # re-entrant: a finalizer or a signal handler may run while it is held
        self._entries: dict[Hashable, LockEntry] = {}

    def acquire(self, key: Hashable, wait: bool = True) -> LockEntry | None:
        """Acquire the lock of a key. Returns None if `wait` is false and another thread holds it."""
        with self.guard:
            entry = self._entries.get(key) or self._entries.setdefault(key, LockEntry(key))
            entry.users += 1
        acquired = False
        try:
            acquired = entry.lock.acquire(blocking=wait)
        finally:
            if not acquired:  # the lock is busy, or waiting was interrupted
                self._leave(entry)
        if not acquired:
            return None
        entry.depth += 1
        return entry

    def release(self, entry: LockEntry) -> None:
        """Release a lock that was acquired, once."""
        entry.depth -= 1
        entry.lock.release()
        self._leave(entry)

    def _leave(self, entry: LockEntry) -> None:
        with self.guard:
            entry.users -= 1
            if not entry.users and self._entries.get(entry.key) is entry:  # a fork may have reset the table
                del self._entries[entry.key]

    def __call__(self, key: Hashable) -> _LockContext:
        """Return a context that holds the lock of a key."""
        return _LockContext(self, key)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[type[LockTable], tuple[()]]:
        return type(self), ()


class _LockContext:
    """A context that holds the lock of a key."""

    __slots__ = ("entry", "key", "table")

    def __init__(self, table: LockTable, key: Hashable) -> None:
        self.table = table
        self.key = key

    def __enter__(self) -> LockEntry:
        self.entry = cast("LockEntry", self.table.acquire(self.key))  # never None: it waits
        return self.entry

    def __exit__(self, *exception: object) -> None:
        self.table.release(self.entry)


_tables: weakref.WeakSet[LockTable] = weakref.WeakSet()


def _reset_tables() -> None:
    for table in list(_tables):
        table.reset()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_reset_tables)
