"""Locks by key, among the threads of one process.

Rules
- A key has a lock only while somebody uses it: the table never grows with the keys that were ever locked.
- A lock is re-entrant in the thread that holds it; `Held.depth` counts how often.
- A table pickles as an empty one, and is empty in a forked child: the child has none of the threads that could let go.
"""

from __future__ import annotations

import os
import weakref
from _thread import RLock
from collections.abc import Hashable
from typing import Any, cast


class Held:
    """One key in use: its lock, and who counts on it."""

    __slots__ = ("depth", "key", "lock", "resource", "users")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.lock = RLock()
        self.users = 0  # holders and waiters
        self.depth = 0  # how often the holder has taken it
        self.resource: Any = None  # what the holder keeps with it


class KeyLocks:
    """A table of locks.

    >>> locks = KeyLocks()
    >>> with locks("c/0"), locks("c/0") as held:
    ...     held.depth, len(locks)
    (2, 1)
    >>> len(locks)
    0
    """

    def __init__(self) -> None:
        self.reset()
        _tables.add(self)

    def reset(self) -> None:
        """Forget every lock."""
        self.guard = RLock()  # re-entrant: a finalizer or a signal handler may run while it is held
        self._held: dict[Hashable, Held] = {}

    def acquire(self, key: Hashable, wait: bool = True) -> Held | None:
        """Take the lock of a key; None: another thread has it, and we do not wait."""
        with self.guard:
            held = self._held.get(key) or self._held.setdefault(key, Held(key))
            held.users += 1
        taken = False
        try:
            taken = held.lock.acquire(blocking=wait)
        finally:
            if not taken:  # not waited for, or interrupted
                self._leave(held)
        if not taken:
            return None
        held.depth += 1
        return held

    def release(self, held: Held) -> None:
        """Let go, once."""
        held.depth -= 1
        held.lock.release()
        self._leave(held)

    def _leave(self, held: Held) -> None:
        with self.guard:
            held.users -= 1
            if not held.users and self._held.get(held.key) is held:  # another one, if we were forked meanwhile
                del self._held[held.key]

    def __call__(self, key: Hashable) -> Holding:
        """Hold the lock of a key while the context lasts."""
        return Holding(self, key)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __reduce__(self) -> tuple[type[KeyLocks], tuple[()]]:
        return type(self), ()


class Holding:
    """A context in which a lock is held."""

    __slots__ = ("held", "key", "table")

    def __init__(self, table: KeyLocks, key: Hashable) -> None:
        self.table = table
        self.key = key

    def __enter__(self) -> Held:
        self.held = cast("Held", self.table.acquire(self.key))  # who waits, gets it
        return self.held

    def __exit__(self, *exception: object) -> None:
        self.table.release(self.held)


_tables: weakref.WeakSet[KeyLocks] = weakref.WeakSet()


def _forked() -> None:
    for table in list(_tables):
        table.reset()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_forked)
