"""The exclusive right to write to a path, which excludes other threads and other processes.

Rules
- A writer that has this right (the holder of the path) has an exclusive flock on the file at the path or, if there is
  no such file, on its directory. Where directories cannot be locked (NFS), the holder creates a lock file instead
  (lock_file.py).
- A lock is valid only if the locked inode is still the one at the path; otherwise it is released and acquired again.
- If a holder will still need the right after replacing or removing the file, it first locks the new file or, before a
  removal, the directory.
- A directory is removed only under its lock, because the writer of a new file may have locked the directory.
- With `lock_method="file"`, the holder always creates a lock file, whether or not there is a file at the path.
- The kernel grants a flock to a descriptor. Here, a lock belongs to a thread, which may acquire it repeatedly.

A table (locks.py), keyed by path, makes the threads of this process exclude each other. To exclude other processes, a
PathLock owns inode locks (inode_locks.py) or a lock file. An inode lock consists of a descriptor and its flock.

The locks of two new files in the same directory exclude each other, although this would not be necessary. A thread
may hold the locks of several paths at once if all paths but the first are written only under the lock of the first.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable

from zarrlite.stores import inode_locks
from zarrlite.stores.files import (
    DIRECTORY,
    MISSING,
    NOT_A_FILE,
    NOT_WRITABLE,
    READ,
    READ_AND_WRITE,
    has_entries,
    make_directories,
)
from zarrlite.stores.inode_locks import InodeLock
from zarrlite.stores.lock_file import LockFile
from zarrlite.stores.locks import Lock, LockContext, Table
from zarrlite.stores.paths import Root

_ATTEMPTS = 1000  # attempts to lock a path whose file keeps changing, or to create a directory that keeps disappearing
_table = Table()


class PathLock(Lock):
    """The exclusive right to write to one path."""

    __slots__ = ("_deadline", "_holds_absent", "_keep", "_locks", "_root", "fsync", "path")

    def __init__(self, path: str, root: Root, *, fsync: bool = False) -> None:
        super().__init__(_table, path)
        self.path = path
        self.fsync = fsync
        self._root = root
        self._keep = root.directory  # this directory and its parents are never removed, even if they are empty
        self._locks: list[InodeLock | LockFile] = []
        self._holds_absent = False  # whether the path was absent when it was locked
        self._deadline: float | None = None

    def acquire(self, deadline: float | None) -> Lock:
        """Wait for the right to write. Returns the PathLock that has this right; its methods change the file."""
        holder = super().acquire(deadline)
        holder._deadline = deadline  # type: ignore[attr-defined]
        if holder is self:
            self._acquire_path()
        return holder

    def release(self) -> None:
        super().release()
        if self._holds_absent and not self.users:  # a directory may have been created only for locking
            prune(self.directory, self._keep)

    def free(self) -> None:
        for lock in self._locks:
            lock.release()

    @property
    def directory(self) -> str:
        return os.path.dirname(self.path)

    def replace(self, temporary: str) -> None:
        """Rename a file to the path."""
        self._put(temporary, os.replace)

    def link(self, temporary: str) -> None:
        """Create the path as a hard link to a file. The path must not exist."""
        self._put(temporary, os.link)

    def _put(self, temporary: str, put: Callable[[str, str], None]) -> None:
        if self._is_nested():
            self._transfer(temporary, lambda: put(temporary, self.path))
        else:
            put(temporary, self.path)
        self._holds_absent = False  # the directory is not empty, so `release` need not try to remove it

    def remove(self) -> None:
        """Unlink the file at the path, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            # Waiting for the lock of the directory while holding that of the file is safe only within an outer lock of
            # the path. Otherwise a deadlock is possible: the holder of the directory lock may be about to write to
            # other files, including this one, and would wait for its lock.
            if self._is_nested():
                self._transfer(None, lambda: os.unlink(self.path))
                self._holds_absent = True
            else:
                os.unlink(self.path)

    def _is_nested(self) -> bool:
        """Whether the path must stay locked (with flock) after the change, for an outer context of this thread."""
        return len(self.users) > 1 and _uses_flock(self._root)

    def _transfer(self, next_file: str | None, change: Callable[[], None]) -> None:
        """Lock `next_file` or, if it is None, call `_lock_absent`; make the change; then release the previous locks."""
        previous = self._locks[:]
        try:
            if next_file is None:
                self._lock_absent()
            else:
                self._lock_inode(next_file, READ_AND_WRITE)
            change()
        except BaseException:
            self._release([lock for lock in self._locks if lock not in previous])
            raise
        self._release(previous)

    def _release(self, locks: list[InodeLock | LockFile]) -> None:
        """Release some locks of the path. A lock is removed from the list only after its release."""
        for lock in locks:
            lock.release()
            self._locks.remove(lock)

    def _acquire_path(self) -> None:
        if self._root.lock_method == "file":
            self._create_lock_file()
        elif inode_locks.HAS_FLOCK and not (self._acquire_file() or self._acquire_absent()):
            for _, _ in zip(range(_ATTEMPTS), inode_locks.pauses(self._deadline), strict=False):
                if self._acquire_file() or self._acquire_absent():
                    return
            raise OSError(errno.EAGAIN, "the file was replaced each time it was locked")

    def _acquire_file(self) -> bool:
        """Lock the file at the path. Returns False if the file is missing or has been replaced."""
        try:
            inode = self._lock_inode(self.path, READ_AND_WRITE)
        except OSError as error:
            if error.errno not in MISSING and error.errno not in NOT_A_FILE:
                raise
            inode = None
        if inode is not None and inode.key == inode_locks.identity(self.path):
            self._holds_absent = False
            return True
        self._release(self._locks[:])
        return False

    def _acquire_absent(self) -> bool:
        """Lock a path at which there is no file. Returns False if a file has appeared there."""
        self._holds_absent = True
        if self._lock_absent() and not os.path.isfile(self.path):
            return True
        self._release(self._locks[:])
        return False

    def _lock_inode(self, path: str, flags: int) -> InodeLock | None:
        """Lock a file. Returns None if it is not a regular file."""
        inode = InodeLock()
        self._locks.append(inode)
        try:
            info = inode.open(path, flags)  # for writing, because NFS cannot lock files that are open only for reading
        except OSError as error:
            if error.errno not in NOT_WRITABLE:
                raise
            info = inode.open(path, READ)
        if not stat.S_ISREG(info.st_mode):
            return None
        inode.acquire_if_possible(self._deadline)
        return inode

    def _lock_absent(self) -> bool:
        """Lock the directory or, where directories cannot be locked, create a lock file.

        Returns False if the directory has been replaced.
        """
        if self._root.locks_directories:
            inode = InodeLock()
            self._locks.append(inode)
            self._open_directory(inode)
            try:
                inode.acquire(self._deadline)
            except OSError as error:
                if error.errno not in inode_locks.UNSUPPORTED:
                    raise
                self._root.locks_directories = False
                inode.release()
                self._locks.remove(inode)
            else:
                return inode.key == inode_locks.identity(self.directory)
        self._create_lock_file()
        return True

    def _create_lock_file(self) -> None:
        lock_file = LockFile(self.path)
        self._locks.append(lock_file)
        self._holds_absent = True
        self._keep = min(self._keep, lock_file.acquire(self._deadline, fsync=self.fsync), key=len)

    def _open_directory(self, inode: InodeLock) -> None:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileNotFoundError):
                inode.open(self.directory, DIRECTORY)
                return
            with contextlib.suppress(FileNotFoundError):
                existing = make_directories(self.directory, fsync=self.fsync)
                self._keep = min(self._keep, existing, key=len)
        inode.open(self.directory, DIRECTORY)


def lock_path(path: str, root: Root, *, fsync: bool = False, key: str | None = None) -> LockContext:
    """Return a context that holds the right to write to a path. Entering it returns the PathLock.

    On exit, empty directories between the root and the path are removed. If a key is passed, an OSError on entry
    becomes a StoreError that names it.
    """
    return LockContext(PathLock(path, root, fsync=fsync), root.lock_timeout, key)


class _DirectoryLock(InodeLock):
    """A lock of the directory at a path."""

    __slots__ = ("_directory", "_wait")

    def __init__(self, directory: str, *, wait: bool) -> None:
        super().__init__()
        self._directory = directory
        self._wait = wait

    def acquire(self, deadline: float | None) -> bool:  # type: ignore[override]
        """Lock the directory. Returns False if the directory was removed, or if waiting is needed but not allowed."""
        self.open(self._directory, DIRECTORY)
        if self._wait:
            super().acquire(deadline)
        elif not self.try_acquire():
            return False
        return self.key == inode_locks.identity(self._directory)


def lock_directory(directory: str, root: Root) -> LockContext:
    """Return a context that holds the right to create files in a directory.

    The body of the `with` statement must not wait for another lock. Entering the context returns False if another
    writer removed the directory just before it was locked, and raises an OSError if the directory is missing or cannot
    be locked.
    """
    return LockContext(_DirectoryLock(directory, wait=True), root.lock_timeout)


def is_locked(path: str) -> bool:
    """Whether a thread of this process holds the right to write to a path."""
    return path in _table


def is_free(path: str, root: Root) -> bool:
    """Whether a path is absent and not locked in this process: then the lock of its directory suffices to create it."""
    return root.locks_directories and _uses_flock(root) and path not in _table and not os.access(path, os.F_OK)


def prune(directory: str, keep: str) -> str | None:
    """Remove a directory and its parents below `keep` while they are empty and not locked.

    Returns the parent of the last removed directory. Returns None if none was removed.
    """
    changed = None
    while len(directory) > len(keep) and remove_directory(directory):
        changed = directory = os.path.dirname(directory)
    return changed


def remove_directory(directory: str) -> bool:
    """Remove a directory if it is empty and not locked. Returns whether it was removed."""
    if has_entries(directory):  # the usual case, which needs no lock
        return False
    if not inode_locks.HAS_FLOCK:
        return _rmdir(directory)
    try:
        with LockContext(_DirectoryLock(directory, wait=False)) as is_mine:
            return is_mine and _rmdir(directory)
    except OSError as error:
        # where directories cannot be locked, writers of new files create lock files, so the directory is not empty
        return error.errno in inode_locks.UNSUPPORTED and _rmdir(directory)


def _uses_flock(root: Root) -> bool:
    return inode_locks.HAS_FLOCK and root.lock_method == "flock"


def _rmdir(directory: str) -> bool:
    try:
        os.rmdir(directory)
    except OSError:  # not empty, missing, or a symlink
        return False
    return True
