"""Locks of inodes, based on flock, but owned by a thread instead of a descriptor, and dropped in a forked child.

Rules
- A lock owns the descriptor that it opens. Advancing the iterator `_closing` closes the descriptor, exactly once.
- A thread that has locked an inode through one descriptor has locked it for all its descriptors, so it never waits for
  itself.
- A forked child shares the open file and thus the lock. So the child closes its copies of the descriptors, and the
  parent unlocks explicitly: if the parent only closed its own copy, the child would keep the lock.
- flock has no timeout, so locking is attempted repeatedly, with pauses.
- The space of a replaced file is freed when its last descriptor is closed. Freeing the space of a large file takes
  longer than writing the file, so another thread closes the descriptor after the lock has been released
  (`threads.run_later`).
- Where files cannot be locked (Windows, network file systems without flock), threads exclude each other but processes
  do not.

The key of a lock is the pair of device number and inode number.
"""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterator
from time import monotonic, sleep

from zarrlite import threads
from zarrlite.stores.files import MISSING
from zarrlite.stores.locks import Lock, Table, timeout
from zarrlite.tuning import DEFERRED_SIZE, MAX_LOCK_PAUSE, MIN_LOCK_PAUSE

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

HAS_FLOCK = fcntl is not None
UNSUPPORTED = frozenset(
    {errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EBADF, errno.EINVAL, errno.EPERM, errno.EACCES, errno.ENOTTY}
)
Identity = tuple[int, int]
_table = Table()


class InodeLock(Lock):
    """A lock on the inode of an open file or directory."""

    __slots__ = ("_closing", "_fds", "_unlocked")

    def __init__(self) -> None:
        super().__init__(_table, None)
        self._fds: list[int] = []  # at most one
        self._closing = map(os.close, self._fds)
        self._unlocked = False

    def open(self, path: str, flags: int) -> os.stat_result:
        """Open the file or directory to be locked. Returns its state."""
        self._fds.extend(map(os.open, (path,), (flags,)))
        info = os.fstat(self._fds[0])
        self.key = info.st_dev, info.st_ino
        return info

    def acquire(self, deadline: float | None) -> Lock:
        """Wait for the lock of the opened inode. Raises an OSError with an errno in `UNSUPPORTED` if locking fails."""
        holder = super().acquire(deadline)
        if holder is not self:
            self.forget()
            return holder
        if self._flock():
            return self
        for _ in pauses(deadline):
            if self._flock():
                return self
        raise timeout(_process_with_lock(self.key))  # type: ignore[arg-type]

    def acquire_if_possible(self, deadline: float | None) -> None:
        """Wait for the lock. If the file system cannot lock files, exclude only the threads of this process."""
        try:
            self.acquire(deadline)
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            warnings.warn(
                f"the file system cannot lock files ({error.strerror}): other processes are not excluded from writing; "
                'LocalStore(..., lock_method="file") excludes them',
                RuntimeWarning,
                stacklevel=2,
            )

    def try_acquire(self) -> bool:
        """Acquire the lock of the opened inode without waiting. Returns False if it is held, even by this thread."""
        if self.key in _table:
            return False
        try:
            return super().acquire(monotonic()) is self and self._flock()
        except TimeoutError:
            return False

    def release(self) -> None:
        if not self._unlocked and _table.get(self.key) is not self:  # this lock was never in the table
            self.forget()
        super().release()

    def free(self) -> None:
        if not self._unlocked:
            is_large_and_unlinked = False
            try:
                fcntl.flock(self._fds[0], fcntl.LOCK_UN)
                info = os.fstat(self._fds[0])
                is_large_and_unlinked = info.st_nlink == 0 and info.st_size >= DEFERRED_SIZE
            except OSError:  # the file system does not support locks
                pass
            self._unlocked = True
            if is_large_and_unlinked:  # closing the file frees all its pages, which takes time
                threads.run_later(any, self._closing)
                return
        self.forget()

    def forget(self) -> None:
        try:
            any(self._closing)
        except OSError:
            return  # nothing was written through this descriptor, so an error on closing is harmless

    def _flock(self) -> bool:
        try:
            fcntl.flock(self._fds[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def identity(path: str) -> Identity | None:
    """Return the device and inode numbers of a path, which are the key of its lock.

    Returns None if the path does not exist.
    """
    try:
        info = os.stat(path)
    except OSError as error:
        if error.errno in MISSING:
            return None
        raise
    return info.st_dev, info.st_ino


def pauses(deadline: float | None) -> Iterator[None]:
    """Yield immediately, then after increasing pauses until the deadline has passed."""
    pause = MIN_LOCK_PAUSE
    while True:
        yield
        left = pause if deadline is None else deadline - monotonic()
        if left <= 0:
            return
        sleep(min(pause, left))
        pause = min(2 * pause, MAX_LOCK_PAUSE)


def _process_with_lock(key: Identity) -> str:
    """Return a description of the process that has locked an inode, as far as Linux reports it."""
    device, inode = key
    place = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    try:
        with open("/proc/locks") as file:  # for example: 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
            lines = [line.split() for line in file]
    except OSError:
        lines = []
    found = [words[4] for words in lines if words[1:2] == ["FLOCK"] and words[5:6] == [place]]
    return f"process {found[0]}" if found else "another process"
