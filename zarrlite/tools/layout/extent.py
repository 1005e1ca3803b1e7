"""Bytes that are read on demand, from a stored object, a decoded value, or a sequence of these.

Rules
- Only the size is known in advance; bytes are read when they are requested.
- TruncatedError is raised if the bytes no longer exist by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.errors import TruncatedError
from zarrlite.stores import Store

Read = Callable[[int, int], Buffer | None]
BLOCK = 2**22  # bytes; the maximum size of a block in `Extent.blocks`


class Extent:
    """Consecutive bytes in pieces, each of which is given as a function that reads it, a start offset and a length."""

    def __init__(self, pieces: Iterable[tuple[Read, int, int]]) -> None:
        self._pieces = [piece for piece in pieces if piece[2]]
        self.size = sum(length for _, _, length in self._pieces)

    @classmethod
    def stored(cls, store: Store, key: str, size: int) -> Extent:
        """Return an extent that covers the bytes of a stored value."""
        return cls([(lambda start, stop: store.get(key, ByteRange(start, stop)), 0, size)])

    @classmethod
    def held(cls, data: Buffer) -> Extent:
        """Return the bytes of a value in memory as an extent."""
        view = memoryview(data)
        return cls([(lambda start, stop: view[start:stop], 0, len(view))])

    @classmethod
    def joined(cls, extents: Iterable[Extent]) -> Extent:
        """Concatenate extents."""
        return cls(piece for extent in extents for piece in extent._pieces)

    def cut(self, start: int, stop: int) -> Extent:
        """Return the part between two offsets, which must be within the extent."""
        pieces, position = [], 0
        for read, begin, length in self._pieces:
            low, high = max(start - position, 0), min(stop - position, length)
            if low < high:
                pieces.append((read, begin + low, high - low))
            position += length
        return Extent(pieces)

    def read(self) -> Buffer:
        """Read everything."""
        pieces = [self._read(*piece) for piece in self._pieces]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def blocks(self) -> Iterator[Buffer]:
        """Read everything, one block at a time."""
        for read, begin, length in self._pieces:
            for offset in range(0, length, BLOCK):
                yield self._read(read, begin + offset, min(BLOCK, length - offset))

    @staticmethod
    def _read(read: Read, start: int, length: int) -> Buffer:
        data = read(start, start + length)
        if data is None or len(data) != length:
            raise TruncatedError(f"the {length} bytes at offset {start} no longer exist")
        return data
