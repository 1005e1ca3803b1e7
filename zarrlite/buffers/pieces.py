"""Values in pieces: a value to be written need not be contiguous in memory.

Rules
- A `Value` is one buffer, or a list of buffers and lazy pieces, which stands for their concatenation.
- A lazy piece generates its bytes in blocks and can be iterated repeatedly. A block is valid until the next one is
  requested, and the underlying array must not change before the value is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, overload

from zarrlite.buffers import scratch
from zarrlite.buffers.ranges import Buffer

if TYPE_CHECKING:
    import numpy as np

Patch = tuple[int, Buffer]  # an offset into a value, and the bytes to write there


class LazyPiece:
    """The elements of an array in row-major order, made contiguous block by block in scratch memory."""

    def __init__(self, array: np.ndarray[Any, Any], blocks: Sequence[np.ndarray[Any, Any]]) -> None:
        self.array = array
        self._blocks = blocks  # consecutive parts of the array

    def __len__(self) -> int:
        return self.array.nbytes

    def __iter__(self) -> Iterator[Buffer]:
        import numpy as np  # imported here: stores do not require numpy

        memory = scratch.acquire(max([block.nbytes for block in self._blocks], default=0))
        for block in self._blocks:
            packed: np.ndarray[Any, Any] = np.ndarray(block.shape, block.dtype, memory)
            packed[...] = block
            yield memory[: block.nbytes]
        scratch.release(memory)

    def join(self) -> bytes:
        """Return all bytes as one buffer."""
        return self.array.tobytes()


Value = Buffer | list[Buffer | LazyPiece]


@overload
def join(value: Value) -> Buffer: ...
@overload
def join(value: Value | None) -> Buffer | None: ...
def join(value: Value | None) -> Buffer | None:
    """Return a value as one buffer."""
    if isinstance(value, list):
        return b"".join([piece.join() if isinstance(piece, LazyPiece) else piece for piece in value])
    return value


def as_list(value: Value) -> list[Buffer | LazyPiece]:
    """Return the pieces of a value."""
    return value if isinstance(value, list) else [value]


def size_of(value: Value) -> int:
    """Return the size of a value in bytes."""
    return sum(map(len, value)) if isinstance(value, list) else len(value)


def overlapping(pieces: Iterable[tuple[int, Any]], start: int, stop: int) -> list[tuple[int, Any]]:
    """Return the parts of these patches that are between two offsets, with offsets relative to `start`."""
    found: list[tuple[int, Any]] = []
    for offset, piece in pieces:
        low, high = max(offset, start), min(offset + len(piece), stop)
        if low < high and high - low == len(piece):
            found.append((low - start, piece))
        elif low < high:
            data = piece.join() if isinstance(piece, LazyPiece) else piece
            found.append((low - start, memoryview(data)[low - offset : high - offset]))
    return found


def split(value: Value, sizes: Iterable[int]) -> list[list[Any]]:
    """Split a value into consecutive values of the given sizes, each a list of pieces.

    The sizes must add up to the size of the value. A lazy piece that spans a boundary is generated only once.
    """
    ends = list(accumulate(sizes, initial=0))
    pieces: list[tuple[int, Any]] = []
    position = 0
    for piece in as_list(value):
        stop = position + len(piece)
        if isinstance(piece, LazyPiece) and any(position < end < stop for end in ends):
            pieces.append((position, piece.join()))
        else:
            pieces.append((position, piece))
        position = stop
    return [[piece for _, piece in overlapping(pieces, start, stop)] for start, stop in pairwise(ends)]
