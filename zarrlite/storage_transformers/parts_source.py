"""A chunk in parts as a source.

Rules
- Each part is opened once, and those that were opened before are looked at again after the last one was opened: what is
  read is of one state of the chunk, or an error.
- Parts without a size are read last: an index describes the data that is there when it is read. Parts that a store
  reads by key are requested together, those of several chunks by one batch.
- All parts missing: the chunk is missing. Some missing, or a sized part of another length: an error that names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import Source
from zarrlite.errors import DataError, TruncatedError
from zarrlite.stores.base import Store, WrongSizeError, read_together


class Part(NamedTuple):
    """One object of a chunk."""

    key_suffix: str
    size: int | None = None


class Parts:
    """The parts of every chunk of an array, and which of them hold which bytes."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.all = tuple(parts)
        unsized = [i for i, part in enumerate(self.all) if part.size is None]
        self.first_unsized, self.last_unsized = (unsized[0], unsized[-1]) if unsized else (len(parts), len(parts))
        sizes = [part.size or 0 for part in self.all]
        self.head = sum(sizes[: self.first_unsized])  # bytes of the sized parts at the start
        self.tail = sum(sizes[self.last_unsized + 1 :])  # and at the end
        self.main = self.first_unsized if len(unsized) == 1 else None  # the only part without a size
        # bytes of the last part, if it is sized and follows the one without a size: it can be replaced alone
        self.separate_tail = sizes[-1] if self.last_unsized == len(self.all) - 2 else 0
        # numbers of the parts in the order in which they are read and opened
        self.in_order = sorted(range(len(self.all)), key=lambda i: self.all[i].size is None)


Piece = tuple[int, ByteRange, int | None]  # a part by its number, what of it, and how many bytes that must be


class ChunkInParts(Source):
    """A chunk that is read from its parts."""

    def __init__(self, store: Store, key: str, parts: Parts) -> None:
        self._store = store
        self._key = key
        self._parts = parts
        self._opened: dict[int, Source] = {}
        self._known_size: int | None = None
        self.separate_tail = parts.separate_tail

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        if len(ranges) > 1:
            values: Any = read_plans([(self, byte_range, self._guess(byte_range), None) for byte_range in ranges])
            return None if None in values else values
        found = [value for byte_range in ranges if (value := self._read_range(byte_range, memory)) is not None]
        return found if len(found) == len(ranges) else None

    @property
    def by_key(self) -> bool:
        """Whether the parts are read by their keys, so that one batch of requests can read several chunks."""
        return getattr(self._part(self._parts.in_order[0]), "by_key", False)

    def size(self) -> int | None:
        sizes = self._sizes()
        return None if sizes is None else sum(sizes)

    def known_size(self) -> int | None:
        if self._known_size is None:
            self._known_size = self._find_size()
        return self._known_size

    def _find_size(self) -> int | None:
        total, opened = 0, len(self._opened)
        for number in self._parts.in_order:
            size = self._part(number).known_size()
            if size is None or self._parts.all[number].size not in (None, size):
                return None
            total += size
        if len(self._opened) > max(opened, 1):
            self._verify()
        return total

    def is_current(self) -> bool:
        return all(part.is_current() for part in self._opened.values())

    def close(self) -> None:
        for part in self._opened.values():
            part.close()
        self._opened = {}
        self._known_size = None

    def _part(self, number: int) -> Source:
        found = self._opened.get(number)
        if found is None:
            found = self._opened[number] = self._store.source(self._key + self._parts.all[number].key_suffix)
        return found

    def _verify(self) -> None:
        """Raise DataError if a part was replaced after it was opened and before the last one was."""
        for part in list(self._opened.values())[:-1]:
            if not part.is_current():
                raise DataError("was replaced while it was read; read it again")

    def _read_pieces(self, pieces: Sequence[Piece], memory: memoryview | None = None) -> list[Buffer | None]:
        """Read pieces of parts, those without a size last."""
        if len(pieces) == 1:
            number, byte_range, _ = pieces[0]
            new = number not in self._opened
            (value,) = self._part(number).read((byte_range,), memory) or (None,)
            if new and len(self._opened) > 1:
                self._verify()
            return [value]
        return _read_pieces([(self, piece) for piece in pieces])

    def _read_range(self, byte_range: ByteRange, memory: memoryview | None) -> Buffer | None:
        pieces = self._guess(byte_range)
        return self._complete(byte_range, pieces, self._read_pieces(pieces, memory))

    def _complete(
        self,
        byte_range: ByteRange,
        pieces: Sequence[Piece],
        found: Sequence[Buffer | None],
        expected: int | None = None,
    ) -> Buffer | None:
        """Return a range, given its guessed pieces; reads more if these are not all of it.

        Raises WrongSizeError if the sizes of the parts are needed and their sum is not the expected one.
        """
        if len(found) == 1 and found[0] is not None and pieces[0][2] in (None, len(found[0])):
            return found[0]
        if pieces and all(v is not None and n in (None, len(v)) for v, (_, _, n) in zip(found, pieces, strict=True)):
            joined = b"".join(v for v in found if v is not None)
            start, end = byte_range
            # a plan for all of a chunk has pieces after the end of a range that ends in the part without a size
            return joined[:end] if start == 0 and end is not None and end > 0 else joined
        sizes = self._sizes()  # raises if some parts are missing, or not as long as they must be
        if sizes is None:
            return None
        if expected not in (None, sum(sizes)):
            raise WrongSizeError(sum(sizes), expected or 0)
        start, stop = byte_range.resolve(sum(sizes))
        begin: Buffer = b""
        if len(found) == 1 and found[0] and byte_range != ALL and len(found[0]) < stop - start:
            begin = found[0]  # found by the first guess, and not read again
        pieces = self._cut(0, start + len(begin), stop, sizes)
        rest = self._read_pieces(pieces)
        for value, (number, _, length) in zip(rest, pieces, strict=True):
            if value is None or len(value) != length:
                raise TruncatedError(
                    f"the part {self._key + self._parts.all[number].key_suffix!r} has changed meanwhile"
                )
        return b"".join((begin, *(value for value in rest if value is not None)))

    def plan(self, byte_range: ByteRange, expected: int | None) -> list[Piece]:
        """Return the pieces of a range that is requested alone; the chunk may be expected to have a certain size.

        All of a chunk, also if its size is not known but has a limit, is in pieces of all parts. They end one byte late
        where that shows parts that are too long.
        """
        parts, (start, stop) = self._parts, byte_range
        if (
            parts.main is None
            or start
            or stop is None
            or stop < parts.head + parts.tail
            or expected not in (None, stop)
        ):
            return self._guess(byte_range)
        main: tuple[ByteRange, int | None] = (ByteRange(0, stop - parts.head), None)
        if expected is not None:
            rest = expected - parts.head - parts.tail
            main = (ByteRange(0, rest + 1), rest)
        return [
            (i, *main) if part.size is None else (i, ByteRange(0, part.size + 1), part.size)
            for i, part in enumerate(parts.all)
        ]

    def _guess(self, byte_range: ByteRange) -> list[Piece]:
        """Return the pieces of a range as far as they are known without the sizes; none if they are not."""
        parts, (start, stop) = self._parts, byte_range
        if byte_range == ALL:
            return [(i, ALL, part.size) for i, part in enumerate(parts.all)]
        if parts.first_unsized == len(parts.all):
            return self._cut(0, *byte_range.resolve(parts.head))
        if parts.main is not None and stop is not None and parts.head <= start < stop:
            # most likely all of it is in the part without a size: one request tells, unless that ends too early
            return [(parts.main, ByteRange(start - parts.head, stop - parts.head), stop - start)]
        if start >= 0 and stop is not None and 0 <= stop <= parts.head:
            return self._cut(0, start, stop)
        if -parts.tail <= start < 0 and (stop is None or stop < 0):
            return self._cut(parts.last_unsized + 1, parts.tail + start, parts.tail + (stop or 0))
        return []

    def _cut(self, first: int, start: int, stop: int, sizes: Sequence[int] | None = None) -> list[Piece]:
        """Return the pieces of a range that counts from the start of a part; `sizes` are those of all parts."""
        found: list[Piece] = []
        for number in range(first, len(self._parts.all)):
            size = (self._parts.all[number].size or 0) if sizes is None else sizes[number]
            low, high = max(start, 0), min(stop, size)
            if low < high:
                found.append((number, ALL if high - low == size else ByteRange(low, high), high - low))
            start, stop = start - size, stop - size
        return found

    def _sizes(self) -> list[int] | None:
        """Return the sizes of all parts. Returns None if all of them are missing."""
        opened = len(self._opened)
        sizes: list[int | None] = [None] * len(self._parts.all)
        for number in self._parts.in_order:
            sizes[number] = self._part(number).size()
        if len(self._opened) > max(opened, 1):
            self._verify()
        if all(size is None for size in sizes):
            return None
        for part, size in zip(self._parts.all, sizes, strict=True):
            if size is None:
                raise DataError(f"the part {self._key + part.key_suffix!r} is missing, others are there")
            if part.size not in (None, size):
                raise TruncatedError(f"the part {self._key + part.key_suffix!r} has {size} bytes, not {part.size}")
        self._known_size = sum(size or 0 for size in sizes)
        return [size or 0 for size in sizes]


# a chunk, a range of it, the pieces of that, and the size that the chunk must have, if it is known
Plan = tuple[ChunkInParts, ByteRange, list[Piece], int | None]


def read_plans(plans: Sequence[Plan]) -> list[Buffer | None]:
    """Read ranges of several chunks, None for missing ones; where parts are read by key, by one batch of requests."""
    buffers = iter(_read_pieces([(chunk, piece) for chunk, _, pieces, _ in plans for piece in pieces]))
    return [chunk._complete(r, pieces, [next(buffers) for _ in pieces], size) for chunk, r, pieces, size in plans]


def _read_pieces(pieces: Sequence[tuple[ChunkInParts, Piece]]) -> list[Buffer | None]:
    """Read pieces of the parts of several chunks, those without a size last."""
    opened = {chunk: len(chunk._opened) for chunk, _ in pieces}
    order = sorted(range(len(pieces)), key=lambda i: pieces[i][0]._parts.all[pieces[i][1][0]].size is None)
    # one by one: a part is opened when the one before it has been read
    answers = read_together((chunk._part(number), r) for chunk, (number, r, _) in (pieces[i] for i in order))
    for chunk, before in opened.items():
        if len(chunk._opened) > max(before, 1):
            chunk._verify()
    found: list[Buffer | None] = [None] * len(pieces)
    for i, answer in zip(order, answers, strict=True):
        found[i] = answer
    return found
