"""The right to write one path, among threads and processes, without lock files.

Rules
- The right belongs to whoever holds flock(LOCK_EX) on the file at the path or, while there is none, on its directory.
- A lock counts only if the locked inode still is the one at the path; otherwise it is let go and taken anew.
- Who goes on holding the path after replacing or removing its file locks what will be there next, before it is there.
- A directory is removed only under its lock: the lock of an absent file must not lose the directory it stands on.
- The kernel gives a lock to a descriptor. Here it belongs to a thread: one that holds an inode already just counts.

Two absent files of one directory exclude each other. That is more than needed; a thread may hold several paths at once
if each further one is only ever written under the lock of the first.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import cast

from zarrlite.errors import StoreError
from zarrlite.stores import inodes
from zarrlite.stores.files import DIRECTORY, MISSING, NO_FILE, READ, make_directories, size
from zarrlite.stores.locks import Held, KeyLocks
from zarrlite.stores.store_errors import store_error

_ATTEMPTS = 100  # to make a directory that others keep removing
_paths = KeyLocks()


class PathLock:
    """The right to write one path, held by this thread."""

    def __init__(self, path: str, floor: str, fsync: bool, held: Held) -> None:
        self.path = path
        self._floor = floor  # this directory and those above it stay, even if empty
        self._fsync = fsync
        self._held = held
        self._inode: Held | None = None
        self._absent = False  # the inode is the directory's

    def acquire(self) -> None:
        """Wait for the right."""
        while inodes.LOCKABLE and not (self._take_file() or self._take_directory()):
            pass  # what we waited for has been replaced by the one who had it

    def release(self) -> None:
        """Let go; a directory that was only made to be locked goes as well."""
        removed = self._absent and self._only_ours() and self._remove_directory()
        self._let_go()
        if removed:
            prune(os.path.dirname(self.directory), self._floor)

    @property
    def directory(self) -> str:
        return os.path.dirname(self.path)

    def _remove_directory(self) -> bool:
        directory = self.directory
        return len(directory) > len(self._floor) and _rmdir(directory)

    def replace(self, temporary: str) -> None:
        """Rename a file to the path."""
        if self._lasts():
            self._move(os.open(temporary, READ), lambda: os.replace(temporary, self.path), absent=False)
        else:
            os.replace(temporary, self.path)
            self._absent = False  # and the directory is not empty

    def remove(self) -> None:
        """Unlink the file at the path, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            # To wait for the directory while holding the file is right only within a longer lock. A plain erase has no
            # claim on what else the directory's holder is about to write, and the two could wait for each other.
            if self._lasts():
                self._move(os.open(self.directory, DIRECTORY), lambda: os.unlink(self.path), absent=True)
            else:
                os.unlink(self.path)

    def _lasts(self) -> bool:
        """Whether the lock goes on after this change."""
        return inodes.LOCKABLE and self._held.depth > 1

    def _move(self, fd: int, change: Callable[[], None], *, absent: bool) -> None:
        """Hold what will stand for the path before the change, let go of what stood for it after."""
        new = inodes.hold(fd)
        try:
            change()
        except BaseException:
            inodes.let_go(new)
            raise
        self._let_go()
        self._inode, self._absent = new, absent

    def _let_go(self) -> None:
        inode, self._inode = self._inode, None
        if inode is not None:
            inodes.let_go(inode)

    def _only_ours(self) -> bool:
        """Whether nobody else counts on the inode: no other path of this thread, no parent of a forked child."""
        return self._inode is not None and self._inode.depth == 1 and self._inode.resource is not None

    def _take_file(self) -> bool:
        try:
            fd = os.open(self.path, READ)
        except OSError as error:
            if error.errno in MISSING or error.errno in NO_FILE:
                return False
            raise
        if size(fd) is None:  # no regular file
            os.close(fd)
            return False
        return self._take(fd, absent=False)

    def _take_directory(self) -> bool:
        return self._take(self._open_directory(), absent=True)

    def _take(self, fd: int, *, absent: bool) -> bool:
        self._inode, self._absent = inodes.hold(fd), absent
        current = self._inode.key == inodes.identity(self.directory if absent else self.path)
        if current and not (absent and os.path.isfile(self.path)):
            return True
        self._let_go()  # not release(): the directory at the path is not the one we hold
        return False

    def _open_directory(self) -> int:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileNotFoundError):
                return os.open(self.directory, DIRECTORY)
            with contextlib.suppress(FileNotFoundError):
                existing = make_directories(self.directory, fsync=self._fsync)
                self._floor = min(self._floor, existing, key=len)
        return os.open(self.directory, DIRECTORY)


class hold:
    """Hold the right to write a path while the context lasts; what is below the floor and empty afterwards goes."""

    __slots__ = ("_floor", "_fsync", "_held", "_path")

    def __init__(self, path: str, floor: str, *, fsync: bool = False) -> None:
        self._path, self._floor, self._fsync = path, floor, fsync

    def __enter__(self) -> PathLock:
        held = self._held = cast("Held", _paths.acquire(self._path))  # who waits, gets it
        if held.depth == 1:
            lock = held.resource = PathLock(self._path, self._floor, self._fsync, held)
            try:
                lock.acquire()
            except BaseException:
                self.__exit__()
                raise
        found: PathLock = held.resource
        return found

    def __exit__(self, *exception: object) -> None:
        try:
            if self._held.depth == 1:
                self._held.resource.release()
        finally:
            _paths.release(self._held)


class KeyLock(hold):
    """The right to write a key of a store."""

    __slots__ = ("_key",)

    def __init__(self, key: str, path: str, root: str, fsync: bool) -> None:
        super().__init__(path, root, fsync=fsync)
        self._key = key

    def __enter__(self) -> PathLock:
        try:
            return super().__enter__()
        except OSError as error:
            raise error if isinstance(error, StoreError) else store_error(error, "locked", self._key) from error


def is_new(path: str) -> bool:
    """Whether nothing is at a path, nobody here is about to write it, and the lock of its directory would do."""
    return inodes.LOCKABLE and path not in _paths and not os.access(path, os.F_OK)


def is_held(path: str) -> bool:
    """Whether somebody here is about to write a path."""
    return path in _paths


@contextlib.contextmanager
def hold_directory(directory: str) -> Iterator[None]:
    """Hold the right to write every path in a directory at which there is nothing. Nothing may be waited for inside."""
    inode = inodes.hold(os.open(directory, DIRECTORY))
    while inode.key != inodes.identity(directory):
        inodes.let_go(inode)
        inode = inodes.hold(os.open(directory, DIRECTORY))
    try:
        yield
    finally:
        inodes.let_go(inode)


def prune(directory: str, floor: str) -> bool:
    """Remove a directory and those above it, up to the floor, while they are empty and nobody holds them."""
    removed = False
    while len(directory) > len(floor) and remove_directory(directory):
        removed, directory = True, os.path.dirname(directory)
    return removed


def remove_directory(directory: str) -> bool:
    """Remove a directory if it is empty and nobody holds it."""
    if not inodes.LOCKABLE:
        return _rmdir(directory)
    try:
        inode = inodes.try_hold(os.open(directory, DIRECTORY))
    except OSError:
        return False
    if inode is None:
        return False
    try:
        return inode.key == inodes.identity(directory) and _rmdir(directory)
    finally:
        inodes.let_go(inode)


def _rmdir(directory: str) -> bool:
    try:
        os.rmdir(directory)
    except OSError:  # not empty, gone, a symlink
        return False
    return True
