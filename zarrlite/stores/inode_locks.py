"""Locks of inodes: flock, owned by a thread rather than a descriptor, and dropped by a forked child.

Rules
- `acquire` and `try_acquire` take ownership of the descriptor they are passed: they close it, whatever happens.
- A thread that holds an inode through one descriptor holds it through any other: no thread waits for itself.
- A forked child shares the open file and with it the lock. So the child closes its copies of the descriptors, and the
  parent unlocks explicitly: closing alone would leave the lock with the child.
- A large file that has been replaced is freed when its last descriptor is closed, which takes longer than writing it.
  Another thread does that, after the lock has been released (`threads.run_later`).
- Where files cannot be locked (Windows, network file systems without flock), threads exclude each other but processes
  do not.

This module owns a lock table (locks.py) that is keyed by device and inode number. The resource of an entry is the
descriptor that has the flock, or None in a forked child.
"""

from __future__ import annotations

import errno
import os
import warnings
from typing import cast

from zarrlite import threads
from zarrlite.stores.locks import LockEntry, LockTable
from zarrlite.tuning import DEFERRED_SIZE

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

HAS_FLOCK = fcntl is not None
_UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EBADF, errno.EINVAL}


class _InodeTable(LockTable):
    """A lock table that closes its descriptors when a forked child drops it."""

    def reset(self) -> None:
        for entry in list(getattr(self, "_entries", {}).values()):
            _close_resource(entry, unlock=False)
        super().reset()


_table = _InodeTable()


def acquire(fd: int) -> LockEntry:
    """Wait for the lock of the inode that a descriptor refers to."""
    return cast("LockEntry", _acquire(fd, wait=True))  # never None: it waits


def try_acquire(fd: int) -> LockEntry | None:
    """Acquire the lock of a descriptor's inode without waiting.

    Returns None if the lock is held, be it by this thread.
    """
    entry = _acquire(fd, wait=False)
    if entry is not None and entry.depth > 1:
        release(entry)
        return None
    return entry


def release(entry: LockEntry) -> None:
    """Release a lock that was acquired, once."""
    if entry.depth == 1:
        _close_resource(entry, unlock=True)
    _table.release(entry)


def identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode number of a path, which are the key of its lock. Returns None if it is missing."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _acquire(fd: int, wait: bool) -> LockEntry | None:
    entry = None
    try:
        info = os.fstat(fd)
        entry = _table.acquire((info.st_dev, info.st_ino), wait)
    finally:
        if entry is None or entry.depth > 1:
            _close(fd)
    if entry is None or entry.depth > 1:
        return entry
    entry.resource = fd  # before it is locked: a child forked from now on knows what to close
    try:
        if _flock(fd, wait):
            return entry
    except BaseException:
        release(entry)
        raise
    release(entry)
    return None


def _flock(fd: int, wait: bool) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        warnings.warn(
            f"the file system cannot lock files ({error.strerror}): other processes are not excluded from writing",
            RuntimeWarning,
            stacklevel=2,
        )
    return True


def _close_resource(entry: LockEntry, unlock: bool) -> None:
    fd, entry.resource = entry.resource, None  # first: a child forked now must not close a descriptor that was reused
    if fd is None:
        return
    is_large_and_unlinked = False
    try:
        if unlock:
            fcntl.flock(fd, fcntl.LOCK_UN)
            info = os.fstat(fd)
            is_large_and_unlinked = info.st_nlink == 0 and info.st_size >= DEFERRED_SIZE
    except OSError:  # the file system does not support locks
        pass
    if is_large_and_unlinked:  # closing it frees all its pages
        threads.run_later(_close, fd)
    else:
        _close(fd)


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return  # nothing was written, so nothing is lost
