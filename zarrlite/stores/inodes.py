"""Locked inodes: flock, shared by the thread that holds it and forgotten by a forked child.

Rules
- A descriptor handed to `hold` or `try_hold` is theirs: they close it, whatever happens.
- A thread that holds an inode through one descriptor holds it through any other: no thread waits for itself.
- A forked child shares the open file and with it the lock, so it closes its copies, and parents unlock in words:
  closing alone would leave the lock with the child.
- A large file that has been replaced is gone when the last descriptor is closed, which takes longer than to write it:
  another thread does that, after the lock has been let go.
- Where files cannot be locked (Windows; network file systems without flock) threads are excluded, processes are not.
"""

from __future__ import annotations

import errno
import os
import warnings
from typing import cast

from zarrlite import threads
from zarrlite.stores.locks import Held, KeyLocks

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

LOCKABLE = fcntl is not None
MUCH = 2**20  # bytes of a file from which on another thread is worth its while
_CANNOT = {errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EBADF, errno.EINVAL}


class _Inodes(KeyLocks):
    def reset(self) -> None:
        for held in list(getattr(self, "_held", {}).values()):
            _close(held, unlock=False)
        super().reset()


_inodes = _Inodes()


def hold(fd: int) -> Held:
    """Wait for the inode behind a descriptor."""
    return cast("Held", _hold(fd, wait=True))  # who waits, gets it


def try_hold(fd: int) -> Held | None:
    """The inode behind a descriptor, if nobody holds it, this thread included."""
    held = _hold(fd, wait=False)
    if held is not None and held.depth > 1:
        let_go(held)
        return None
    return held


def let_go(held: Held) -> None:
    """Let go, once."""
    if held.depth == 1:
        _close(held, unlock=True)
    _inodes.release(held)


def identity(path: str) -> tuple[int, int] | None:
    """What a path leads to; None: nothing."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _hold(fd: int, wait: bool) -> Held | None:
    held = None
    try:
        info = os.fstat(fd)
        held = _inodes.acquire((info.st_dev, info.st_ino), wait)
    finally:
        if held is None or held.depth > 1:
            _shut(fd)
    if held is None or held.depth > 1:
        return held
    held.resource = fd  # before it is locked: a child forked from now on knows what to close
    try:
        if _flock(fd, wait):
            return held
    except BaseException:
        let_go(held)
        raise
    let_go(held)
    return None


def _flock(fd: int, wait: bool) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        warnings.warn(
            f"the file system cannot lock files ({error.strerror}): other processes are not excluded from writing",
            RuntimeWarning,
            stacklevel=2,
        )
    return True


def _close(held: Held, unlock: bool) -> None:
    fd, held.resource = held.resource, None  # first: a child forked meanwhile must not close a number used anew
    if fd is None:
        return
    replaced = False  # a large file that has no name any more, so that closing it frees all its pages
    try:
        if unlock:
            fcntl.flock(fd, fcntl.LOCK_UN)
            info = os.fstat(fd)
            replaced = info.st_nlink == 0 and info.st_size >= MUCH
    except OSError:  # it could not be locked
        pass
    if replaced:
        threads.later(_shut, fd)
    else:
        _shut(fd)


def _shut(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return  # nothing was written, so nothing is lost
