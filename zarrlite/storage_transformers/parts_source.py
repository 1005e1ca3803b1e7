"""A source that reads a chunk from its parts.

Rules
- All reads see one state of the chunk. A read that one part can serve opens only that part. Every other read opens all
  parts, those with a size first, and checks afterwards that they have not been replaced. If a part was replaced, it
  raises ReplacedError, and the chunk is read again.
- Parts that a store reads by key are requested together, those of several chunks in one batch. Their sizes are
  requested only if the answers do not have the expected lengths.
- If all parts are missing, the chunk is missing. If some are missing, or a part does not have the required size, the
  chunk is read with the help of its journal (parts_journal.py); without a journal, an error names the part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import GrowingSource, InMemory, ReplacedError, Source
from zarrlite.errors import DataError, TruncatedError
from zarrlite.storage_transformers import parts_journal
from zarrlite.storage_transformers.parts_journal import Journal
from zarrlite.stores.base import Store, read_together


class Part(NamedTuple):
    """One of the objects in which a chunk is stored."""

    key_suffix: str
    size: int | None = None


Piece = tuple[int, ByteRange, int | None]  # number of a part, a range of it, and the required length if it is known


class Parts:
    """Describes the parts in which an array's chunks are stored, and which bytes of a chunk each part contains."""

    def __init__(self, parts: Sequence[Part], level: int = 0) -> None:
        self.all = tuple(parts)
        self.level = level  # number of `concat-parts` transformers that are nearer to the array
        self.suffixes = [part.key_suffix for part in self.all]
        self.sizes = [part.size for part in self.all]
        unsized = [i for i, size in enumerate(self.sizes) if size is None]
        self.first_unsized, self.last_unsized = (unsized[0], unsized[-1]) if unsized else (len(parts), len(parts))
        known = [size or 0 for size in self.sizes]
        self.head = sum(known[: self.first_unsized])  # bytes of the sized parts before the first part without a size
        self.tail = sum(known[self.last_unsized + 1 :])  # bytes of the sized parts after the last part without a size
        self.main = self.first_unsized if len(unsized) == 1 else None  # the part without a size, if it is the only one
        # size of the last part if it can be replaced alone (it has a size, but the part before it does not), else 0
        self.separate_tail = known[-1] if self.last_unsized == len(self.all) - 2 else 0
        # number of the part that is emptied while others are replaced; None if no part has a size other than 0
        self.sentinel = max([i for i, size in enumerate(self.sizes) if size], default=None)
        # numbers of the parts in the order in which they are opened
        self.in_order = sorted(range(len(self.all)), key=lambda i: self.sizes[i] is None)
        # pieces for the ranges that cover exactly the first or the last part, for example the range of a shard index
        self._ends: dict[ByteRange, list[Piece]] = {}
        if known[0]:
            self._ends[ByteRange(0, known[0])] = [(0, ALL, known[0])]
        if known[-1]:
            self._ends[ByteRange(-known[-1])] = [(len(self.all) - 1, ALL, known[-1])]

    def guess(self, byte_range: ByteRange) -> list[Piece]:
        """Return the pieces of a range, or the most likely ones, without looking up sizes. Returns [] if unknown."""
        start, stop = byte_range
        if self.main is not None and stop is not None and self.head <= start < stop:
            # most likely the whole range is in the part without a size: reading shows whether that part is too short
            inside = ByteRange(start - self.head, stop - self.head) if self.head else byte_range
            return [(self.main, inside, stop - start)]
        if byte_range in self._ends:
            return self._ends[byte_range]
        if byte_range == ALL:
            return [(i, ALL, size) for i, size in enumerate(self.sizes)]
        if self.first_unsized == len(self.all):
            return cut(self.sizes, *byte_range.resolve(self.head))
        if start >= 0 and stop is not None and 0 <= stop <= self.head:
            return cut(self.sizes[: self.first_unsized], start, stop)
        if -self.tail <= start < 0 and (stop is None or stop < 0):
            first = self.last_unsized + 1
            pieces = cut(self.sizes[first:], self.tail + start, self.tail + (stop or 0))
            return [(first + number, *rest) for number, *rest in pieces]  # type: ignore[misc]
        return []

    def whole(self, most: int, size: int | None) -> list[Piece]:
        """Return the pieces of a whole chunk that has at most `most` bytes, or exactly `size`.

        Where possible, a piece requests one byte more than needed, to detect a part that is too long.
        """
        rest = None if size is None else size - self.head - self.tail
        main = (ByteRange(0, most - self.head if rest is None else rest + 1), rest)
        return [(i, *main) if n is None else (i, ByteRange(0, n + 1), n) for i, n in enumerate(self.sizes)]


def cut(sizes: Sequence[int | None], start: int, stop: int) -> list[Piece]:
    """Return the pieces of a range of bytes in consecutive parts of these sizes."""
    found: list[Piece] = []
    for number, size in enumerate(sizes):
        size = size or 0
        low, high = max(start, 0), min(stop, size)
        if low < high:
            found.append((number, ALL if high - low == size else ByteRange(low, high), high - low))
        start, stop = start - size, stop - size
    return found


class ChunkInParts(Source):
    """A chunk that is read from its parts.

    With `by_key`, looking up the size of a part takes a request, and parts are requested concurrently.
    """

    _sizes: list[int] | None = None  # sizes of all parts, once they are known; empty if the chunk is missing
    _belong_together = False  # whether the open parts were found to belong to one state of the chunk
    _has_answered = False  # whether anything was read before all parts were opened
    _is_changing = False  # whether a part that was read alone turned out not to match the others
    _was_replaced = False  # whether this object found that the chunk was replaced; sources of parts may find it as well

    def __init__(self, store: Store, key: str, parts: Parts, by_key: bool) -> None:
        self._store = store
        self._key = key
        self._parts = parts
        self._opened: dict[int, Source] = {}
        self.by_key = by_key
        self.separate_tail = parts.separate_tail

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        if len(ranges) > 1:
            values: Any = read_chunks([(self, byte_range, self.plan(byte_range)) for byte_range in ranges])
            return None if None in values else values
        (byte_range,) = ranges
        pieces = self.plan(byte_range)
        if len(pieces) == 1:
            number, inside, length = pieces[0]
            found = (self._opened.get(number) or self._open(number)).read((inside,), memory)
            if found is not None and len(found[0]) == length:
                if len(self._opened) > 1:
                    self._verify()
                self._has_answered = True
                return found
            value = self._complete(byte_range, pieces, found or [None])
        else:
            value = self._read_into_one(pieces, memory) if self._sizes and not self.by_key else None
            if value is not None:
                return [value]
            (value,) = read_chunks([(self, byte_range, pieces)])
        return None if value is None else [value]

    def _read_into_one(self, pieces: Sequence[Piece], memory: memoryview | None) -> Buffer | None:
        """Read pieces of open parts into one buffer. Returns None if one of the pieces is too short."""
        total = sum(length or 0 for _, _, length in pieces)
        buffer = memory if memory is not None and len(memory) >= total else np.empty(total, np.uint8).data
        start = 0
        for number, inside, length in pieces:
            place = buffer[start : start + (length or 0)]
            found = self._open(number).read((inside,), place)
            if found is None or len(found[0]) != length:
                return None
            if not isinstance(found[0], memoryview) or found[0].obj is not place.obj:
                place[:] = found[0]
            start += length
        if len(self._opened) > 1:
            self._verify()
        return buffer[:total]

    def size(self) -> int | None:
        sizes = self.sizes()
        if len(self._opened) > 1:
            self._verify()
        return sum(sizes) if sizes else None

    def known_size(self) -> int | None:
        if self._sizes is None:
            if self.by_key and any(self._open(number).known_size() is None for number in self._parts.in_order):
                return None
            try:
                self.sizes()
            except DataError:  # reading the chunk raises it
                return None
        return sum(self._sizes) if self._sizes else None

    def is_current(self) -> bool:
        if self._was_replaced or self.by_key:
            return not self._was_replaced and all(part.is_current() for part in self._opened.values())
        for number, part in self._opened.items():
            # a part that was missing must still be missing
            is_back = part.known_size() is None and self._store.size(self._key_of(number)) is not None
            if is_back or not part.is_current():
                return False
        return True

    def version(self) -> str | None:
        """Return the joined versions of all parts. Returns None if one of them is not known."""
        versions = [self._open(number).version() for number in self._parts.in_order] if self.sizes() else [None]
        return None if None in versions else "+".join(version or "" for version in versions)

    def close(self) -> None:
        opened, self._opened, self._sizes = self._opened, {}, None
        self._belong_together = self._has_answered = self._was_replaced = False
        for part in opened.values():
            part.close()

    def _key_of(self, number: int) -> str:
        # proposal concat-parts, Description: "formed by appending the key_suffix to the base key of the chunk"
        return self._key + self._parts.suffixes[number]

    def _open(self, number: int) -> Source:
        """Return the source of a part. Opens it on first use."""
        found = self._opened.get(number)
        if found is None:
            found = self._opened[number] = self._store.source(self._key_of(number))
        return found

    def _verify(self) -> None:
        """Raise ReplacedError if the parts that were read may belong to different states of the chunk."""
        *before, last = self._opened.values()
        # the last part to be opened need not be checked, unless parts were requested together and read in any order
        for part in [*before, last] if self.by_key else before:
            if not part.is_current() and not (self._belong_together and _has_only_grown(last)):
                raise self._replaced("was replaced while it was read; read it again")
        self._belong_together = True

    def _replaced(self, message: str) -> ReplacedError:
        """Return the error for a chunk that was replaced, and mark this source as no longer current."""
        self._was_replaced = True
        return ReplacedError(message)

    def plan(self, byte_range: ByteRange) -> list[Piece]:
        """Return the pieces of a range. If looking up sizes takes requests, returns the most likely pieces instead."""
        pieces = self._parts.guess(byte_range)
        if self._sizes is None:
            is_alone = len(pieces) == 1 and (not self._opened or self._opened.keys() == {pieces[0][0]})
            if (self.by_key or is_alone) and not self._is_changing:
                return pieces
        elif len(pieces) == 1 and self._sizes:
            number, inside, _ = pieces[0]
            if (inside.stop or 0) <= self._sizes[number]:
                return pieces
        sizes = self.sizes()
        return cut(sizes, *byte_range.resolve(sum(sizes)))

    def plan_alone(self, byte_range: ByteRange, size: int | None) -> list[Piece]:
        """Return the pieces of a range that is requested alone. `size` is the size of the chunk, if it is known.

        If the range covers the whole chunk, or the maximum size of a chunk whose size is not known, there is one piece
        for each part.
        """
        parts, (start, stop) = self._parts, byte_range
        is_all = start == 0 and stop is not None and size in (None, stop)
        if self.by_key and is_all and parts.main is not None and (stop or 0) >= parts.head + parts.tail:
            return parts.whole(stop or 0, size)
        return self.plan(byte_range)

    def _complete(
        self, byte_range: ByteRange, pieces: Sequence[Piece], found: Sequence[Buffer | None]
    ) -> Buffer | None:
        """Return the bytes of a range, given those of its pieces. If one has another length, looks up all sizes."""
        if not pieces or not _fits(pieces, found):
            opened = {**self._opened}
            sizes = self.sizes()
            if not sizes:
                return None
            start, stop = byte_range.resolve(sum(sizes))
            begin: Buffer = b""
            if len(found) == 1 and found[0] and self._opened.items() >= opened.items() and byte_range != ALL:
                begin = found[0][: stop - start]  # the part without a size ends within the range; it is not read again
            pieces = cut(sizes, start + len(begin), stop)
            found = _read_pieces([(self, piece) for piece in pieces])
            if not _fits(pieces, found):
                raise TruncatedError("changed while it was read; read it again")
            found = [begin, *found]
        # proposal concat-parts, Description: "reads the content of each part in the specified order"
        joined = b"".join(value for value in found if value is not None)
        first, end = byte_range
        # the pieces for a whole chunk may extend beyond the end of the range
        return joined[:end] if first == 0 and end is not None and end > 0 else joined

    def sizes(self) -> list[int]:
        """Return the sizes of all parts, or [] if all are missing. Raises DataError if they do not form a chunk."""
        if self._sizes is None:
            found: list[Any] = [*self._parts.sizes]
            fault: DataError | None = None
            for number in self._parts.in_order:
                expected = found[number]
                size = found[number] = self._open(number).size()
                if size is None:
                    fault = DataError(f"the part {self._key_of(number)!r} is missing, but other parts exist")
                # proposal concat-parts, Configuration: "The size of the part in bytes."
                elif size != expected and expected is not None:
                    fault = TruncatedError(f"the part {self._key_of(number)!r} has {size} bytes, not {expected}")
            if fault is not None:
                if found.count(None) < len(found):
                    return self._recover(found, fault)
                found = []
            self._sizes = found
        return self._sizes

    def _recover(self, sizes: Sequence[int | None], fault: DataError) -> list[int]:
        """Reconstruct the chunk from its parts and its journal if a change is in progress or was interrupted.

        Raises `fault` if no journal explains the sizes of the parts.
        """
        if self._has_answered:
            self._is_changing = True
            raise self._replaced("is being replaced while it is read; read it again")
        key = parts_journal.key_of(self._key, self._parts.level)
        stored = self._store.get(key)
        journal = None if stored is None else Journal.parse(bytes(stored))
        values = None
        if journal is not None and journal.explains(sizes, self._parts.sizes):
            values = self._values(journal)
        else:
            journal = None
        # the journal belongs to these parts only if they have not changed since their sizes were read
        now = [self._store.size(self._key_of(number)) for number in range(len(sizes))] if self.by_key else sizes
        if now != sizes or not self.is_current() or self._store.get(key) != stored:
            raise self._replaced("was replaced while it was read; read it again")
        if journal is None:
            # After the sizes were read, a missing part may have been stored, its journal removed, and the chunk erased
            # again. If another part still exists then, so does the journal of the erasure, which is found here.
            if self._store.get(key) != stored or not self.is_current():
                self._was_replaced = True
                raise ReplacedError("was replaced while it was read; read it again")
            raise fault
        for part in self._opened.values():
            part.close()
        self._opened = {number: InMemory(value) for number, value in enumerate(values or ())}
        self._sizes = [*map(len, values or ())]
        return self._sizes

    def _values(self, journal: Journal) -> list[Buffer] | None:
        """Return the parts after the change that a journal records. Returns None if it erases the chunk."""
        stored: list[Buffer | None] = [None] * len(self._opened)
        # read the part with the mark last: if it is still the old one, so were the others when they were read
        for number in sorted(self._opened, key=lambda i: journal.mark is not None and i == journal.mark[0]):
            stored[number] = self._opened[number].read_one()
        return journal.remaining(stored).values(stored)


def _has_only_grown(part: Source) -> bool:
    """Whether bytes were appended to a part since it was opened. If so, an index that was read earlier is still valid.

    False for a part that was replaced, and for a part of the same size, which may have been overwritten in place.
    """
    return isinstance(part, GrowingSource) and part.has_grown()


Plan = tuple[ChunkInParts, ByteRange, list[Piece]]  # a chunk, a range of it, and the pieces of that range


def read_chunks(plans: Sequence[Plan]) -> list[Buffer | None]:
    """Read ranges of several chunks. Returns None for missing ones. Parts read by key are requested in one batch."""
    buffers = iter(_read_pieces([(chunk, piece) for chunk, _, pieces in plans for piece in pieces]))
    return [chunk._complete(r, pieces, [next(buffers) for _ in pieces]) for chunk, r, pieces in plans]


def _read_pieces(pieces: Sequence[tuple[ChunkInParts, Piece]]) -> list[Buffer | None]:
    """Read pieces of the parts of several chunks. Parts without a size are read last."""
    order = sorted(range(len(pieces)), key=lambda i: pieces[i][0]._parts.sizes[pieces[i][1][0]] is None)
    answers = read_together((chunk._open(number), r) for chunk, (number, r, _) in (pieces[i] for i in order))
    for chunk in {chunk for chunk, _ in pieces}:
        if len(chunk._opened) > 1:
            chunk._verify()
    found: list[Buffer | None] = [None] * len(pieces)
    for i, answer in zip(order, answers, strict=True):
        found[i] = answer
    return found


def _fits(pieces: Sequence[Piece], found: Sequence[Buffer | None]) -> bool:
    """Whether every piece was found, with the length that it must have."""
    return all(v is not None and n in (None, len(v)) for v, (_, _, n) in zip(found, pieces, strict=True))
