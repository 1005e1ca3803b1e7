"""Sources: stored values that are read in several steps.

Rules
- Opening a source reads nothing. Everything it returns is of one and the same value, whatever replaces that meanwhile,
  where the store can promise that.
- A missing value is None, all the way up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar, final

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.errors import DataError, TruncatedError

T = TypeVar("T")
MAX_ATTEMPTS: Final = 100  # times to start a read of values that are replaced meanwhile


class Source(ABC):
    """A value that can be read in parts."""

    separate_tail: int = 0  # bytes at the end that are an object of their own in the store, and can be replaced alone

    @abstractmethod
    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        """Read parts of the value, clamped as slices are. Returns None if there is no such value.

        The parts may be in `memory`, one after the other, where that saves an allocation and it has room for them.
        """

    @final
    def read_one(self, byte_range: ByteRange = ALL) -> Buffer | None:
        """Read one part of the value, or all of it."""
        found = self.read((byte_range,))
        return None if found is None else found[0]

    def size(self) -> int | None:
        """Return the number of bytes of the value. Returns None if there is no such value."""
        value = self.read_one()
        return None if value is None else len(value)

    def known_size(self) -> int | None:
        """Return the size if that takes no request. Returns None if it would, or if there is no such value."""
        return None

    def is_current(self) -> bool:
        """Whether the store still has the value that was opened here, as far as it can tell."""
        return True

    def close(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Release what was opened for reading."""


class ReplacedError(DataError):
    """A value was replaced while it was read, so that what was read of it may be of two values."""


def read_current(sources: Collection[Source], read: Callable[[], T]) -> T:
    """Return `read()`, which reads from these sources in several steps, and close them.

    Starts over if that fails and one of the values was replaced meanwhile.
    """
    for attempts_left in reversed(range(MAX_ATTEMPTS)):
        try:
            return read()
        except Exception:
            if not attempts_left or all(source.is_current() for source in sources):
                raise
        finally:
            for source in sources:
                source.close()
    raise RuntimeError("the last attempt returns or raises")


class InMemory(Source):
    """A value in memory, or None for a missing one."""

    __slots__ = ("value",)

    def __init__(self, value: Buffer | None) -> None:
        self.value = value

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        return None if self.value is None else [byte_range.of(self.value) for byte_range in ranges]

    def known_size(self) -> int | None:
        return None if self.value is None else len(self.value)

    size = known_size


class Window(Source):
    """A value without its first `head` and last `tail` bytes."""

    def __init__(self, source: Source, head: int, tail: int, codec: str) -> None:
        self.source = source
        self.head = head
        self.tail = tail
        self.codec = codec  # named in errors
        self.separate_tail = max(0, source.separate_tail - tail)

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        size = self.size()
        if size is None:
            return None
        bounds = [byte_range.resolve(size) for byte_range in ranges]
        return self.source.read([ByteRange(self.head + low, self.head + high) for low, high in bounds], memory)

    def size(self) -> int | None:
        return self._inner_size(self.source.size())

    def known_size(self) -> int | None:
        return self._inner_size(self.source.known_size())

    def is_current(self) -> bool:
        return self.source.is_current()

    def _inner_size(self, size: int | None) -> int | None:
        return None if size is None else inner_size(size, self.head, self.tail, self.codec)


def inner_size(size: int, head: int, tail: int, codec: str) -> int:
    """Return the size of a value of `size` bytes without its frame. Raises TruncatedError if it is too short."""
    if size < head + tail:
        raise TruncatedError(f"the stored value has {size} bytes, its padding alone has {head + tail}", codec=codec)
    return size - head - tail
