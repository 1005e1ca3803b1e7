"""Bytes that are read when they are looked at: of a stored object, of a decoded value, of several one behind the other.

Rules
- The size is known beforehand and nothing else is read beforehand.
- Bytes that are not there any more when they are asked for are a TruncatedError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.errors import TruncatedError
from zarrlite.stores import Store

Read = Callable[[int, int], Buffer | None]
BLOCK = 2**22  # bytes at a time, where a value is gone through from end to end


class Extent:
    """Some bytes: pieces of what can be read, each with its start and its length."""

    def __init__(self, pieces: Iterable[tuple[Read, int, int]]) -> None:
        self._pieces = [piece for piece in pieces if piece[2]]
        self.size = sum(length for _, _, length in self._pieces)

    @classmethod
    def stored(cls, store: Store, key: str, size: int) -> Extent:
        """A value of a store."""
        return cls([(lambda start, stop: store.get(key, ByteRange(start, stop)), 0, size)])

    @classmethod
    def held(cls, data: Buffer) -> Extent:
        """A value in memory."""
        view = memoryview(data)
        return cls([(lambda start, stop: view[start:stop], 0, len(view))])

    @classmethod
    def joined(cls, extents: Iterable[Extent]) -> Extent:
        """Several, one behind the other."""
        return cls(piece for extent in extents for piece in extent._pieces)

    def cut(self, start: int, stop: int) -> Extent:
        """The part between two positions, which lie within."""
        found, at = [], 0
        for read, begin, length in self._pieces:
            low, high = max(start - at, 0), min(stop - at, length)
            if low < high:
                found.append((read, begin + low, high - low))
            at += length
        return Extent(found)

    def read(self) -> Buffer:
        """All of it."""
        pieces = [self._read(*piece) for piece in self._pieces]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def blocks(self) -> Iterator[Buffer]:
        """All of it, a block at a time."""
        for read, begin, length in self._pieces:
            for at in range(0, length, BLOCK):
                yield self._read(read, begin + at, min(BLOCK, length - at))

    @staticmethod
    def _read(read: Read, start: int, length: int) -> Buffer:
        data = read(start, start + length)
        if data is None or len(data) != length:
            raise TruncatedError(f"{length} bytes at {start} are not there any more")
        return data
