"""A value of the local store as a source: one open file.

Rules
- It is opened when it is first read, and stays open until it is closed: whatever replaces the value meanwhile, all that
  is read is of the one that was there.
- Whole values are lent in memory that is used again; the reader has it until it closes the source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from zarrlite.buffers import scratch
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import ByteSource, Stored
from zarrlite.errors import StoreError, TruncatedError
from zarrlite.stores import files
from zarrlite.stores.base import Store
from zarrlite.stores.store_errors import store_error


class OpenFile(Stored):
    """A value read in parts from one open file: all of them are of the same value, whatever replaces it meanwhile."""

    sized = True
    _opened = False
    _fd = -1  # there is none
    _size: int | None = None  # once it is open: what is appended later belongs to another state of the value

    def __init__(self, store: Store, key: str, open_file: Callable[[str], int | None]) -> None:
        self.store = store
        self.key = key
        self._open_file = open_file

    def read(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        found: list[Any] = [self.read_one(byte_range) for byte_range in ranges]
        return None if None in found else found

    def read_one(self, byte_range: ByteRange) -> Buffer | None:
        size = self._size if self._opened else self.known_size()
        return None if size is None else self.read_at(*byte_range.resolve(size))

    def read_at(self, start: int, stop: int) -> Buffer | None:
        size = self._size if self._opened else self.known_size()
        if size is None:
            return None
        if self.max_size is not None and size > self.max_size:
            raise TruncatedError(f"has {size} bytes, at most {self.max_size} fit here")
        if stop > size:
            start, stop = ByteRange(start, stop).resolve(size)
        try:
            data = files.pread(self._fd, stop - start, start)
            return data if len(data) == stop - start else files.read(self._fd, start, stop)
        except IsADirectoryError:  # whose size some file systems tell
            return None
        except OSError as error:
            raise store_error(error, "read", self.key) from error

    def fill(self, memory: Any, start: int) -> bool:
        size = self._size if self._opened else self.known_size()
        if size is None or not files.MOST_BORROWED or (self.max_size is not None and size > self.max_size):
            return False
        try:
            found = os.preadv(self._fd, (memory,), start)
        except OSError:
            return False
        return found == int(memory.nbytes)

    read_all = ByteSource.read_all

    lends = files.MOST_BORROWED > 0
    _lent: memoryview | None = None  # until it is closed

    def borrow(self, byte_range: ByteRange = ALL) -> Buffer | None:
        size = self.known_size()
        if not size or (self.max_size is not None and size > self.max_size):
            return self.read_one(byte_range)
        start, stop = byte_range.resolve(size)
        if not 0 < stop - start <= files.MOST_BORROWED:
            return self.read_one(byte_range)
        try:
            if self._lent is None or len(self._lent) < stop - start:
                self._lent = scratch.take(stop - start)
            return files.fill(self._lent, self._fd, start, stop)
        except IsADirectoryError:
            return None
        except OSError as error:
            raise store_error(error, "read", self.key) from error

    def known_size(self) -> int | None:
        if not self._opened:
            try:
                fd = self._open_file(self.key)
                self._opened = True
                if fd is not None:
                    self._fd = fd
                    self._size = files.size(fd)
            except OSError as error:
                raise error if isinstance(error, StoreError) else store_error(error, "read", self.key) from error
        return self._size

    def adopt(self, fd: int) -> None:
        """Read from a file that is open already, and close it in the end."""
        self._fd, self._opened = fd, True
        self._size = files.size(fd)

    def close(self) -> None:
        fd, self._fd, self._opened = self._fd, -1, False
        if self._lent is not None:
            scratch.give(self._lent)
            self._lent = None
        if fd >= 0:
            os.close(fd)
