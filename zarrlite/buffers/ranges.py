"""Byte ranges: which part of a value is meant.

Rules
- A range reads as a Python slice: `value[start:stop]`, negative counts from the end, beyond the end is clamped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, overload

Buffer = bytes | bytearray | memoryview


class Made(ABC):
    """A piece of a value that is made bit by bit, as often as it is asked for; each bit is lent until the next."""

    @abstractmethod
    def __len__(self) -> int:
        """Bytes of all of it."""

    @abstractmethod
    def __iter__(self) -> Iterator[Buffer | list[Buffer]]:
        """The bits, in order, each perhaps in pieces again."""

    def written_at(self, position: int) -> Iterator[Buffer | list[Buffer]]:
        """The same for a file, from that position of it on; override where that is of any use."""
        return iter(self)

    def whole(self) -> Buffer:
        """All of it."""
        made = bytearray()
        for bit in self:
            for piece in bit if isinstance(bit, list) else (bit,):
                made += piece
        return made


Pieces = Buffer | list[Buffer | Made]  # a value, or what makes one when it is joined


@overload
def joined(value: Pieces) -> Buffer: ...
@overload
def joined(value: Pieces | None) -> Buffer | None: ...
def joined(value: Pieces | None) -> Buffer | None:
    """A value in one piece."""
    if isinstance(value, list):
        return b"".join([piece.whole() if isinstance(piece, Made) else piece for piece in value])
    return value


def in_pieces(value: Pieces) -> list[Buffer | Made]:
    """A value as a list, whatever it was."""
    return value if isinstance(value, list) else [value]


def size_of(value: Pieces) -> int:
    """The bytes of a value."""
    return sum(map(len, value)) if isinstance(value, list) else len(value)


def within(pieces: Iterable[tuple[int, Any]], start: int, stop: int) -> list[tuple[int, Any]]:
    """What of these pieces falls between two positions, counted from the first."""
    found: list[tuple[int, Any]] = []
    for at, value in pieces:
        low, high = max(at, start), min(at + len(value), stop)
        if low < high and high - low == len(value):
            found.append((low - start, value))
        elif low < high:
            whole = value.whole() if isinstance(value, Made) else value
            found.append((low - start, memoryview(whole)[low - at : high - at]))
    return found


def divided(value: Pieces, sizes: Iterable[int]) -> list[list[Any]]:
    """A value as values of these sizes, which are as long together, each in pieces; what is cut is made once."""
    ends = list(accumulate(sizes, initial=0))
    pieces: list[tuple[int, Any]] = []
    position = 0
    for piece in in_pieces(value):
        stop = position + len(piece)
        whole = isinstance(piece, Made) and any(position < end < stop for end in ends)
        pieces.append((position, piece.whole() if whole else piece))  # type: ignore[union-attr]
        position = stop
    return [[piece for _, piece in within(pieces, start, stop)] for start, stop in pairwise(ends)]


class ByteRange(NamedTuple):
    """`value[start:stop]`.

    >>> ByteRange(-4).of(b"0123456789")
    b'6789'
    """

    start: int = 0
    stop: int | None = None

    def of(self, value: Buffer) -> Buffer:
        """The part of a value that is meant."""
        if self == ALL:
            return value
        return value[self.start : self.stop] if type(value) is bytes else memoryview(value)[self.start : self.stop]

    def resolve(self, size: int) -> tuple[int, int]:
        """Start and stop within a value of known size, clamped as a slice is; stop is never before start."""
        start, stop = self
        if stop is None:
            return (size + start if -size <= start < 0 else min(start, size) if start > 0 else 0), size
        if 0 <= start <= stop:
            return (start, stop) if stop <= size else (min(start, size), size)
        start, stop, _ = slice(start, stop).indices(size)
        return start, max(start, stop)


ALL: Final = ByteRange()
