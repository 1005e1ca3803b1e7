"""Sources: stored values that are read in several steps.

Rules
- Opening a source reads nothing. Where the store can guarantee it, all reads see the same version of the value, even if
  another writer replaces it.
- None stands for a missing value at every level.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypeVar, final

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.errors import DataError, TruncatedError

T = TypeVar("T")
MAX_ATTEMPTS: Final = 100  # attempts to read values that are being replaced


class Source(ABC):
    """A value that can be read in parts."""

    separate_tail: int = 0  # bytes; size of the tail, if it is stored as a separate object that can be replaced alone

    @abstractmethod
    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        """Read parts of the value, clamped like slices. Returns None if the value does not exist.

        The parts may be placed in `memory`, consecutively, if it has room for them and this saves an allocation.
        """

    @final
    def read_one(self, byte_range: ByteRange = ALL) -> Buffer | None:
        """Read one part of the value, or all of it."""
        found = self.read((byte_range,))
        return None if found is None else found[0]

    def size(self) -> int | None:
        """Return the size of the value in bytes. Returns None if the value does not exist."""
        value = self.read_one()
        return None if value is None else len(value)

    def known_size(self) -> int | None:
        """Return the size if it is known without a request. Returns None otherwise, or if the value does not exist."""
        return None

    def is_current(self) -> bool:
        """Whether the store still has the value that was opened here, as far as it can detect."""
        return True

    def version(self) -> str | None:
        """Return the version of the value that was read: an ETag, or another text that changes with the value.

        Returns None if the value does not exist, or if its version is not known. Raises ReplacedError if parts were
        read from several versions.
        """
        return None

    def close(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Close everything that was opened for reading."""


class VersionedSource(Source):
    """A value that is read in parts, with a version that shows whether parts from several reads belong together."""

    @abstractmethod
    def version(self) -> str | None: ...


class GrowingSource(Source):
    """A value that other writers may append to in place; the bytes that it had when it was opened stay valid."""

    @abstractmethod
    def has_grown(self) -> bool:
        """Whether the opened value is still the stored one, and has become longer."""


class ReplacedError(DataError):
    """A value was replaced while it was being read, so the bytes read may be from two versions."""


def read_current(sources: Collection[Source], read: Callable[..., T], *args: Any) -> T:
    """Return `read(*args)`, which reads from these sources in several steps, then close the sources.

    Starts over if the call fails and one of the values was replaced during the reads.
    """
    attempts = 0
    while True:
        try:
            return read(*args)
        except Exception:
            attempts += 1
            if attempts == MAX_ATTEMPTS or all(source.is_current() for source in sources):
                raise
        finally:
            for source in sources:
                source.close()


class InMemory(Source):
    """A value in memory; None means that it is missing."""

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

    def version(self) -> str | None:
        return self.source.version()

    def _inner_size(self, size: int | None) -> int | None:
        return None if size is None else inner_size(size, self.head, self.tail, self.codec)


def inner_size(size: int, head: int, tail: int, codec: str) -> int:
    """Return the size of a value without padding. Raises TruncatedError if the padding alone is longer than `size`."""
    if size < head + tail:
        raise TruncatedError(f"the stored value has {size} bytes, but its padding alone has {head + tail}", codec=codec)
    return size - head - tail
