"""Locks by key, for the threads of one process.

Rules
- A table maps each key that is held to the lock of the thread that holds it. Keys that are free are not in the table.
- Locks are re-entrant: when a thread acquires a key again, it becomes another user of the lock that it already holds.
- An interrupt (Ctrl-C) may arrive when a Python function starts or after a C function returns. So the table alone
  determines which thread holds a key, and each change to it is a single call of a C function:
  `(result,) = map(function, (argument,))` stores the result without a check for signals after the call. `release` may
  be called again, and then completes a call that was interrupted.
- No wait exceeds its deadline. The TimeoutError names the holder.
- Locks are added to a table only under the guard of the table. So a thread that holds the guard, and finds no lock for
  a key in the table, may change the value of the key without a lock. It must not wait for anything while it does so.
- A forked child starts with empty tables: the threads that could release the locks do not exist there.
"""

from __future__ import annotations

import errno
import os
from _thread import allocate_lock, get_ident
from collections.abc import Hashable
from io import IOBase
from time import monotonic
from typing import Any

from zarrlite.errors import StoreError
from zarrlite.guard import Guard
from zarrlite.stores.store_errors import store_error

LOCK_TIMEOUT = 300.0  # seconds; a longer wait for a lock is an error

_tables: list[Table] = []


class Table(dict[Hashable, "Lock"]):
    """The locks that are held, by key. The table is emptied in a forked child."""

    __slots__ = ("guard",)

    def __init__(self) -> None:
        self.guard = Guard()
        _tables.append(self)


class Lock:
    """A lock of a key. It can be acquired and released once.

    The first lock that a thread acquires for a key is the holder of the key. The `users` of the holder are all locks
    that the thread has acquired for the key, including the holder itself.
    """

    __slots__ = ("ended", "key", "released", "table", "thread", "users")

    def __init__(self, table: Table, key: Hashable) -> None:
        self.table = table
        self.key = key
        self.users: list[Lock] = []
        self.released: list[bool] = []  # not empty once `release` is complete
        self.ended = allocate_lock()  # locked until this lock is released; other threads wait for it
        self.ended.acquire()

    def acquire(self, deadline: float | None) -> Lock:
        """Wait until no other thread holds the key. Returns the holder: this lock or an earlier one of this thread."""
        self.thread = get_ident()
        while True:
            with self.table.guard:
                (holder,) = map(self.table.setdefault, (self.key,), (self,))
            if holder.thread == self.thread:
                holder.users.append(self)
                return holder
            holder.wait(deadline)

    def wait(self, deadline: float | None) -> None:
        """Wait until this lock is released."""
        seconds = -1 if deadline is None else max(0.0, deadline - monotonic())
        (ended,) = map(self.ended.acquire, (True,), (seconds,))
        if not ended:
            raise timeout(f"thread {self.thread} of this process")
        self.ended.release()  # wakes the next waiting thread

    def release(self) -> None:
        """Release the lock, if it is held. The key is free once all users have released it."""
        holder = self.table.get(self.key)
        if holder is not None:
            if self in holder.users:
                holder.users.remove(self)
            if not holder.users and holder.thread == get_ident():
                holder.free()
                (freed,) = map(self.table.pop, (self.key,), (None,))
                if freed is not None:
                    freed.ended.release()
        self.released.append(True)

    def free(self) -> None:
        """Release the resources of a holder that has no users left."""

    def forget(self) -> None:
        """Close the resources of a holder in a forked child. The parent still holds them."""


class LockContext(IOBase):
    """A context that holds a lock. If a key is passed, an OSError on entry becomes a StoreError that names it.

    `__exit__` and the finalizer of IOBase are C code, and both call `close`. If an interrupt aborts the call by
    `__exit__`, even before its first instruction, the finalizer calls `close` again as soon as the context is dropped.
    After a complete release, the finalizer runs no Python code, because an interrupt would be ignored there.
    """

    __slots__ = ("closed",)

    def __init__(self, lock: Lock, timeout: float | None = LOCK_TIMEOUT, key: str | None = None) -> None:
        self._lock = lock
        self._key = key
        self._timeout = timeout
        self.close = lock.release  # type: ignore[method-assign]
        self.closed = lock.released  # type: ignore[assignment, misc]

    def __enter__(self) -> Any:
        try:
            return self._lock.acquire(None if self._timeout is None else monotonic() + self._timeout)
        except BaseException as error:
            self.close()
            if self._key is not None and isinstance(error, OSError) and not isinstance(error, StoreError):
                raise store_error(error, "locked", self._key) from error
            raise


def holds_locks() -> bool:
    """Whether this thread holds a lock. If so, it must not pass work to other threads, which might wait for it."""
    thread = get_ident()
    return any(holder.thread == thread for table in _tables for holder in [*table.values()])


def timeout(holder: str) -> TimeoutError:
    """Return the error for a lock that was not released in time."""
    message = f"{holder} has not released its lock in time; end it, or increase lock_timeout"
    return TimeoutError(errno.ETIMEDOUT, message)


def _empty_tables() -> None:
    for table in _tables:
        for holder in table.values():
            holder.forget()
        table.clear()
        table.guard = Guard()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_empty_tables)
