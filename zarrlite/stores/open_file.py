"""The source for a value of the local store, which reads from one open file.

Rules
- The first read opens the file, which stays open until the source is closed. So all reads see the version of the value
  that existed at the first read, even if the value is replaced later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.buffers.source import GrowingSource
from zarrlite.errors import StoreError
from zarrlite.stores import files
from zarrlite.stores.store_errors import store_error

_NOTHING: Callable[[], object] = bool  # a finalizer that does nothing
_NO_FILE = -1
_NOT_OPENED = -2


class OpenFile(GrowingSource):
    """A value that is read in parts from one open file."""

    # An interrupt may arrive before the first instruction of `close`. Then the finalizer closes the file. The finalizer
    # of each object is a C function, because Python ignores interrupts that arrive in a `__del__` written in Python.
    __slots__ = ("__del__",)
    _fd = _NOT_OPENED
    _size: int | None = None  # size when opened; bytes appended later belong to another version of the value

    def __init__(self, key: str, path: str, open_file: Callable[[str], int | None]) -> None:
        self.key = key
        self._path = path
        self._open = open_file  # used if the path is a symlink, or cannot be opened directly for another reason
        self.__del__ = _NOTHING

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        size = self._size if self._fd != _NOT_OPENED else self.known_size()
        if size is None:
            return None
        try:
            if len(ranges) == 1:
                start, stop = ranges[0].resolve(size)
                if memory is None:
                    return [files.read(self._fd, start, stop)]
                return [files.read_into(memory, self._fd, start, stop)]
            found: list[Buffer] = []
            for byte_range in ranges:
                start, stop = byte_range.resolve(size)
                found.append(files.read_into(memory, self._fd, start, stop))
                memory = memory[stop - start :] if memory is not None else None
            return found
        except IsADirectoryError:  # some file systems report a size for directories
            return None
        except OSError as error:
            raise store_error(error, "read", self.key) from error

    def known_size(self) -> int | None:
        if self._fd == _NOT_OPENED:
            try:
                fd = self._open_quickly()
                self._fd = _NO_FILE if fd is None else fd  # before any other call, so an interrupt cannot leak `fd`
                if fd is None:
                    return None
                self.__del__ = partial(os.close, fd)
                self._size = files.size(fd)
            except OSError as error:
                raise error if isinstance(error, StoreError) else store_error(error, "read", self.key) from error
        return self._size

    size = known_size

    def _open_quickly(self) -> int | None:
        """Open the file as `open_file` does, but without checking the path again."""
        if files.RESERVED not in self.key:
            try:
                (fd,) = map(os.open, (self._path,), (files.READ_HERE,))
                return fd
            except OSError:
                pass
        return self._open(self.key)

    def is_current(self) -> bool:
        return self._growth() == 0

    def version(self) -> str | None:
        """Return the inode, the size and the change time of the open file. Returns None if no file is open."""
        if self._fd < 0:
            return None
        found = os.fstat(self._fd)
        return f"{found.st_ino:x}-{found.st_size:x}-{found.st_ctime_ns:x}"

    def has_grown(self) -> bool:
        return (self._growth() or 0) > 0

    def _growth(self) -> int | None:
        """Return by how many bytes the file has grown since it was opened. Returns None if it was replaced."""
        if self._fd < 0 or self._size is None:
            return 0
        try:
            found, opened = os.stat(self._path), os.fstat(self._fd)
        except OSError as error:
            if error.errno in files.MISSING:
                return None
            raise store_error(error, "read", self.key) from error
        # a file that was overwritten in place without growing is indistinguishable from the one that was opened
        return found.st_size - self._size if os.path.samestat(found, opened) else None

    def close(self) -> None:
        fd, self._fd, self._size = self._fd, _NOT_OPENED, None
        if fd >= 0:
            self.__del__ = _NOTHING
            try:
                os.close(fd)
            except OSError as error:
                raise store_error(error, "read", self.key) from error
