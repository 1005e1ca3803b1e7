"""The exclusive right to write a path, among threads and processes, without lock files.

Rules
- The holder of a path has flock(LOCK_EX) on the file at the path or, while there is no such file, on its directory.
- A lock counts only if the locked inode is still the one at the path; otherwise it is released and acquired again.
- A holder that keeps the path after it replaces or removes the file locks the next inode of the path (the new file, or
  the directory) before the change.
- A directory is removed only under its lock: the holder of an absent file must not lose the directory it has locked.
- The kernel grants a lock to a descriptor. Here it belongs to a thread: acquiring it again in that thread only counts.

This module owns a lock table (locks.py) that is keyed by path and excludes the threads of this process. The resource of
an entry is a PathLock, which owns an entry of inode_locks.py; that one owns the descriptor and its flock.

Two absent files of one directory exclude each other. That is more than needed; a thread may hold several paths at once
if each further one is only ever written under the lock of the first.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import cast

from zarrlite.errors import StoreError
from zarrlite.stores import inode_locks
from zarrlite.stores.files import DIRECTORY, MISSING, NOT_A_FILE, READ, make_directories, size
from zarrlite.stores.locks import LockEntry, LockTable
from zarrlite.stores.store_errors import store_error

_ATTEMPTS = 100  # times to create a directory that other processes keep removing
_table = LockTable()


class PathLock:
    """The right to write one path, held by this thread."""

    def __init__(self, path: str, keep: str, fsync: bool, entry: LockEntry) -> None:
        self.path = path
        self._keep = keep  # this directory and its parents are never removed, even if empty
        self._fsync = fsync
        self._entry = entry
        self._inode: LockEntry | None = None
        self._holds_directory = False  # whether the locked inode is the directory: there is no file at the path

    def acquire(self) -> None:
        """Wait for the right."""
        while inode_locks.HAS_FLOCK and not (self._acquire_file() or self._acquire_directory()):
            pass  # the previous holder has replaced the inode that was waited for

    def release(self) -> None:
        """Release the right, and remove a directory that was created only to be locked."""
        removed = self._holds_directory and self._is_sole_user() and self._remove_directory()
        self._release_inode()
        if removed:
            prune(os.path.dirname(self.directory), self._keep)

    @property
    def directory(self) -> str:
        return os.path.dirname(self.path)

    def replace(self, temporary: str) -> None:
        """Rename a file to the path."""
        if self._is_nested():
            self._transfer(os.open(temporary, READ), lambda: os.replace(temporary, self.path), is_directory=False)
        else:
            os.replace(temporary, self.path)
            self._holds_directory = False  # the directory is not empty: `release` need not try to remove it

    def remove(self) -> None:
        """Unlink the file at the path, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            # Waiting for the directory while holding the file is correct only within an outer lock of the path. A
            # single erase has no claim on the other files that the holder of the directory is about to write, and
            # each could wait for the other.
            if self._is_nested():
                self._transfer(os.open(self.directory, DIRECTORY), lambda: os.unlink(self.path), is_directory=True)
            else:
                os.unlink(self.path)

    def _is_nested(self) -> bool:
        """Whether an outer context of this thread holds the path after this change."""
        return inode_locks.HAS_FLOCK and self._entry.depth > 1

    def _transfer(self, fd: int, change: Callable[[], None], *, is_directory: bool) -> None:
        """Acquire the next inode of the path, make the change, and release the previous inode."""
        inode = inode_locks.acquire(fd)
        try:
            change()
        except BaseException:
            inode_locks.release(inode)
            raise
        self._release_inode()
        self._inode, self._holds_directory = inode, is_directory

    def _release_inode(self) -> None:
        inode, self._inode = self._inode, None
        if inode is not None:
            inode_locks.release(inode)

    def _is_sole_user(self) -> bool:
        """Whether no other path of this thread, and no parent of this forked child, relies on the locked inode."""
        return self._inode is not None and self._inode.depth == 1 and self._inode.resource is not None

    def _acquire_file(self) -> bool:
        try:
            fd = os.open(self.path, READ)
        except OSError as error:
            if error.errno in MISSING or error.errno in NOT_A_FILE:
                return False
            raise
        if size(fd) is None:  # not a regular file
            os.close(fd)
            return False
        return self._acquire_inode(fd, is_directory=False)

    def _acquire_directory(self) -> bool:
        return self._acquire_inode(self._open_directory(), is_directory=True)

    def _acquire_inode(self, fd: int, *, is_directory: bool) -> bool:
        """Acquire an inode. Returns False if the path has another inode by now."""
        self._inode, self._holds_directory = inode_locks.acquire(fd), is_directory
        is_current = self._inode.key == inode_locks.identity(self.directory if is_directory else self.path)
        if is_current and not (is_directory and os.path.isfile(self.path)):
            return True
        self._release_inode()  # not release(): the directory at the path is not the locked one
        return False

    def _open_directory(self) -> int:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileNotFoundError):
                return os.open(self.directory, DIRECTORY)
            with contextlib.suppress(FileNotFoundError):
                existing = make_directories(self.directory, fsync=self._fsync)
                self._keep = min(self._keep, existing, key=len)
        return os.open(self.directory, DIRECTORY)

    def _remove_directory(self) -> bool:
        directory = self.directory
        return len(directory) > len(self._keep) and _rmdir(directory)


class lock_path:
    """A context that holds the right to write a path. On exit, empty directories below `keep` are removed."""

    __slots__ = ("_entry", "_fsync", "_keep", "_path")

    def __init__(self, path: str, keep: str, *, fsync: bool = False) -> None:
        self._path, self._keep, self._fsync = path, keep, fsync

    def __enter__(self) -> PathLock:
        entry = self._entry = cast("LockEntry", _table.acquire(self._path))  # never None: it waits
        if entry.depth == 1:
            lock = entry.resource = PathLock(self._path, self._keep, self._fsync, entry)
            try:
                lock.acquire()
            except BaseException:
                self.__exit__()
                raise
        path_lock: PathLock = entry.resource
        return path_lock

    def __exit__(self, *exception: object) -> None:
        try:
            if self._entry.depth == 1:
                self._entry.resource.release()
        finally:
            _table.release(self._entry)


class lock_key(lock_path):
    """`lock_path` for the path of a key: an OSError on entry becomes a StoreError that names the key."""

    __slots__ = ("_key",)

    def __init__(self, key: str, path: str, root: str, fsync: bool) -> None:
        super().__init__(path, root, fsync=fsync)
        self._key = key

    def __enter__(self) -> PathLock:
        try:
            return super().__enter__()
        except OSError as error:
            raise error if isinstance(error, StoreError) else store_error(error, "locked", self._key) from error


@contextlib.contextmanager
def lock_directory(directory: str) -> Iterator[None]:
    """Hold the right to write every absent path of a directory. The body must not wait for another lock."""
    inode = inode_locks.acquire(os.open(directory, DIRECTORY))
    while inode.key != inode_locks.identity(directory):
        inode_locks.release(inode)
        inode = inode_locks.acquire(os.open(directory, DIRECTORY))
    try:
        yield
    finally:
        inode_locks.release(inode)


def is_locked(path: str) -> bool:
    """Whether a thread of this process holds the right to write a path, or waits for it."""
    return path in _table


def is_free(path: str) -> bool:
    """Whether a path is absent and not locked here, so that the lock of its directory is enough to create it."""
    return inode_locks.HAS_FLOCK and path not in _table and not os.access(path, os.F_OK)


def prune(directory: str, keep: str) -> bool:
    """Remove a directory and its parents below `keep`, as far as they are empty and not locked.

    Returns whether any was removed.
    """
    removed = False
    while len(directory) > len(keep) and remove_directory(directory):
        removed, directory = True, os.path.dirname(directory)
    return removed


def remove_directory(directory: str) -> bool:
    """Remove a directory if it is empty and not locked. Returns whether it was removed."""
    if not inode_locks.HAS_FLOCK:
        return _rmdir(directory)
    try:
        inode = inode_locks.try_acquire(os.open(directory, DIRECTORY))
    except OSError:
        return False
    if inode is None:
        return False
    try:
        return inode.key == inode_locks.identity(directory) and _rmdir(directory)
    finally:
        inode_locks.release(inode)


def _rmdir(directory: str) -> bool:
    try:
        os.rmdir(directory)
    except OSError:  # not empty, missing, or a symlink
        return False
    return True
