"""What codecs read from: sources of bytes and of array elements.

Rules
- A source is a promise to read; bytes move only when `read` is called.
- A missing value is None, all the way up; a short or long one is an error where its meaning is known.
- A codec re-windows a source instead of decoding it where it can; that is all there is to partial reading.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Protocol

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.errors import DataError, TruncatedError, ZarrliteError

if TYPE_CHECKING:
    import numpy as np

    from zarrlite.selections.selection import Selection
    from zarrlite.stores.base import Store


class ByteSource(ABC):
    """A value that can be read in parts."""

    partial: bool = True  # whether reading a part costs less than reading all
    stored_size: int | None = None  # of the stored value behind this one, once that was decoded
    max_size: int | None = None  # what is longer is refused before it is read, where that can be known
    apart: int = 0  # bytes at the end that are a stored object of their own, so that they can be replaced alone

    @abstractmethod
    def read(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """These parts of the value, clamped as slices are; None: there is no such value."""

    def read_one(self, byte_range: ByteRange) -> Buffer | None:
        """One part of the value."""
        found = self.read((byte_range,))
        return None if found is None else found[0]

    def read_all(self) -> Buffer | None:
        """The whole value."""
        return self.read_one(ALL)

    def read_at(self, start: int, stop: int) -> Buffer | None:
        """The part between two offsets that count from the start."""
        return self.read_one(ByteRange(start, stop))

    def fill(self, memory: np.ndarray[Any, Any], start: int) -> bool:
        """Read into contiguous memory from an offset on; False: that could not be done, read it in another way."""
        return False

    lends: bool = False  # whether `borrow` saves anything

    def borrow(self, byte_range: ByteRange = ALL) -> Buffer | None:
        """A part of the value, in memory that is the reader's until it borrows again from here, or closes."""
        return self.read_one(byte_range)

    def size(self) -> int | None:
        """Bytes of the value; None: there is no such value."""
        value = self.read_all()
        return None if value is None else len(value)

    def known_size(self) -> int | None:
        """Bytes of the value, where that takes no request; None: it would, or there is no such value."""
        return None

    def reaches(self, size: int) -> bool:
        """Whether the value has that many bytes at least."""
        found = self.size()
        return found is not None and found >= size

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of what was opened for reading."""


class ArraySource(ABC):
    """An array that can be read in parts."""

    @abstractmethod
    def read(self, selection: Selection, out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any] | None:
        """The selected elements, in any byte order, possibly read-only; None: there is no such chunk.

        `out` has the shape of the result. Whoever can write there at less cost may do so, and returns it.
        """


def decoding_failed(error: Exception, codec: str) -> NoReturn:
    """Whatever a decoder raises is a DataError that names it."""
    if isinstance(error, DataError):
        raise error.at(codec=codec) from error.__cause__
    if isinstance(error, ZarrliteError):
        raise error
    raise DataError(f"cannot be decoded: {error}", codec=codec) from error


class Stored(ByteSource):
    """A value in a store."""

    def __init__(self, store: Store, key: str, *, sized: bool = True) -> None:
        self.store = store
        self.key = key
        self.sized = sized  # whether the store knows sizes without reading values

    def read(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        if len(ranges) == 1:
            value = self.store.get(self.key, ranges[0])
            return None if value is None else [value]
        values = self.store.get_partial_values([(self.key, r) for r in ranges])
        return None if any(v is None for v in values) else values  # type: ignore[return-value]

    def read_all(self) -> Buffer | None:
        return self.store.get(self.key)

    def size(self) -> int | None:
        return self.store.size(self.key)

    def reaches(self, size: int) -> bool:
        if self.sized:
            return super().reaches(size)
        return bool(self.store.get(self.key, ByteRange(size - 1, size)))


class Held(ByteSource):
    """A value in memory, or None."""

    __slots__ = ("value",)
    partial = False

    def __init__(self, value: Buffer | None) -> None:
        self.value = value

    def read(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        return None if self.value is None else [r.of(self.value) for r in ranges]

    def read_one(self, byte_range: ByteRange) -> Buffer | None:
        return None if self.value is None else byte_range.of(self.value)

    def fill(self, memory: np.ndarray[Any, Any], start: int) -> bool:
        if self.value is None or len(self.value) < start + memory.nbytes:
            return False
        memory.reshape(-1).view("u1")[:] = memoryview(self.value)[start : start + memory.nbytes]
        return True

    def known_size(self) -> int | None:
        return None if self.value is None else len(self.value)


class Window(ByteSource):
    """A value without its first `head` and last `tail` bytes."""

    _size: int | None = None  # once it is known

    def __init__(self, source: ByteSource, head: int = 0, tail: int = 0, codec: str | None = None) -> None:
        self.codec = codec  # whose padding it is
        self.source = source
        self.head = head
        self.tail = tail
        self.partial = source.partial
        self.lends = source.lends

    def read(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        if not self.partial or any(r == ALL for r in ranges):
            value = self.source.read_all()
            if value is None:
                return None
            inner = memoryview(value)[self.head : self._end(len(value))]
            return [r.of(inner) for r in ranges]
        need = self.head + self.tail + max(map(self._reach, ranges), default=0)
        size = self.source.known_size()
        if size is None and need > self.head + self.tail and not self.source.reaches(need):
            size = self.source.size()
            if size is None:
                return None
        if size is not None and size < need:
            length = self._end(size) - self.head
            return self.source.read([ByteRange(*(self.head + i for i in r.resolve(length))) for r in ranges])
        return self.source.read([self._shift(r) for r in ranges])

    def read_one(self, byte_range: ByteRange) -> Buffer | None:
        size = self.known_size() if self.partial else None
        if size is None:
            return super().read_one(byte_range)
        low, high = byte_range.resolve(size)
        return self.source.read_at(self.head + low, self.head + high)

    def read_at(self, start: int, stop: int) -> Buffer | None:
        size = (self._size or self.known_size()) if self.partial else None
        if size is None or stop > size:
            return super().read_at(start, stop)
        return self.source.read_at(self.head + start, self.head + stop)

    def borrow(self, byte_range: ByteRange = ALL) -> Buffer | None:
        size = self.known_size()
        if size is None:
            return self.read_one(byte_range)
        low, high = byte_range.resolve(size)
        return self.source.borrow(ByteRange(self.head + low, self.head + high))

    def fill(self, memory: np.ndarray[Any, Any], start: int) -> bool:
        size = self._size or self.known_size()
        return size is not None and start + memory.nbytes <= size and self.source.fill(memory, self.head + start)

    def size(self) -> int | None:
        size = self.source.size()
        return None if size is None else self._end(size) - self.head

    def known_size(self) -> int | None:
        if self._size is None and (size := self.source.known_size()) is not None:
            self._size = self._end(size) - self.head
        return self._size

    @property
    def apart(self) -> int:  # type: ignore[override]
        return max(0, self.source.apart - self.tail)

    @property
    def stored_size(self) -> int | None:  # type: ignore[override]
        return self.source.stored_size

    def _end(self, size: int) -> int:
        if size < self.head + self.tail:
            message = f"the stored value has {size} bytes, its padding alone has {self.head + self.tail}"
            raise TruncatedError(message, codec=self.codec)
        return size - self.tail

    def _reach(self, r: ByteRange) -> int:
        """How long the value must be lest a shifted range run into the padding on its far side."""
        from_start = max(r.start, r.stop or 0) if self.tail else 0
        from_end = -min(r.start, r.stop or 0) if self.head else 0
        return max(from_start, from_end, 0)

    def _shift(self, r: ByteRange) -> ByteRange:
        start = r.start + self.head if r.start >= 0 else r.start - self.tail
        if r.stop is None:
            return ByteRange(start, -self.tail or None)
        return ByteRange(start, r.stop + self.head if r.stop >= 0 else r.stop - self.tail)


class Slice(ByteSource):
    """A part of known place and length of another value: one inner chunk of a shard."""

    def __init__(self, source: ByteSource, start: int, length: int) -> None:
        self.source = source
        self.start = start
        self.length = length
        self.partial = source.partial

    def read(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        bounds = [r.resolve(self.length) for r in ranges]
        found = self.source.read([ByteRange(self.start + low, self.start + high) for low, high in bounds])
        if found is not None:
            for (low, high), value in zip(bounds, found, strict=True):
                if len(value) != high - low:
                    raise TruncatedError(f"{high - low} bytes are missing at offset {self.start + low}")
        return found

    def read_one(self, byte_range: ByteRange) -> Buffer | None:
        return self.read_at(*byte_range.resolve(self.length))

    def read_all(self) -> Buffer | None:
        return self.read_at(0, self.length)

    def borrow(self, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.read_all() if byte_range is ALL else self.read_one(byte_range)

    def read_at(self, start: int, stop: int) -> Buffer | None:
        if stop > self.length:
            start, stop = ByteRange(start, stop).resolve(self.length)
        value = self.source.read_at(self.start + start, self.start + stop)
        if value is not None and len(value) != stop - start:
            raise TruncatedError(f"{stop - start} bytes are missing at offset {self.start + start}")
        return value

    def fill(self, memory: np.ndarray[Any, Any], start: int) -> bool:
        return start + memory.nbytes <= self.length and self.source.fill(memory, self.start + start)

    def size(self) -> int | None:
        return self.length

    known_size = size


class Limit(NamedTuple):
    """How many bytes a value may have once it is decoded: fixed, or in proportion to its stored size."""

    fixed: int
    per_byte: int = 0

    def of(self, stored: int) -> int:
        return max(self.fixed, self.per_byte * stored)


class Budget:
    """How many bytes several values may have together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, size: int) -> None:
        self.spent += size
        if self.spent > self.limit:
            raise TruncatedError(f"decodes to more than the {self.limit} bytes that fit here")


class Decoder(Protocol):
    """The half of a bytes -> bytes codec that reading needs."""

    name: ClassVar[str]

    def decode(self, data: Buffer, limit: int) -> Buffer: ...


class Decoded(ByteSource):
    """A value that must be decoded as a whole; that happens once."""

    partial = False

    def __init__(self, codec: Decoder, source: ByteSource, limit: Limit) -> None:
        self.codec = codec
        self.source = source
        self.limit = limit
        self._value: Buffer | None = None

    def read_all(self) -> Buffer | None:
        if self._value is None:
            data = self.source.read_all()
            if data is None:
                return None
            self._value = self._decode(data)
        return self._value

    def read(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        value = self.read_all()
        return None if value is None else [r.of(value) for r in ranges]

    def _decode(self, data: Buffer) -> Buffer:
        # in proportion to what is stored: limits must not multiply from codec to codec
        self.stored_size = self.source.stored_size or len(data)
        limit = self.limit.of(self.stored_size)
        try:
            value = self.codec.decode(data, limit)
        except Exception as error:
            decoding_failed(error, self.codec.name)
        if len(value) > limit:
            raise TruncatedError(f"decodes to {len(value)} bytes, at most {limit} fit here", codec=self.codec.name)
        return value
