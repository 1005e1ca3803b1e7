"""An array in blocks: how large data is gone through with bounded memory.

Rules
- A block is made of whole chunks of what is written; it grows to whole chunks of what is read as far as memory allows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

Shape = tuple[int, ...]
BLOCK = 2**26  # bytes of a block, if the chunks are not larger


def block_shape(shape: Shape, itemsize: int, chunks: Shape, also: Shape | None = None) -> Shape:
    """A multiple of `chunks`, and in each dimension at least `also` if that is not too much.

    >>> block_shape((1000, 1000), 8, (10, 10), also=(100, 100)), block_shape((4096, 4096, 4096), 1, (8, 8, 8))
    ((1000, 1000), (8, 2048, 4096))
    """
    block = list(chunks)
    lengths = [-(-max(1, n) // c) * c for n, c in zip(shape, chunks, strict=True)]
    itemsize = max(1, itemsize)

    def grow(axis: int, wanted: int) -> None:
        others = math.prod(block) // block[axis] * itemsize
        most = max(block[axis], BLOCK // others // chunks[axis] * chunks[axis])
        block[axis] = min(most, max(block[axis], min(-(-wanted // chunks[axis]) * chunks[axis], lengths[axis])))

    for axis, wanted in enumerate(also or ()):
        grow(axis, wanted)
    for axis in reversed(range(len(shape))):  # neighbours in memory first
        grow(axis, lengths[axis])
    return tuple(block)


def blocks(shape: Shape, block: Shape) -> Iterator[tuple[slice, ...]]:
    """The blocks of an array, row by row."""
    starts = [range(0, n, step) for n, step in zip(shape, block, strict=True)]
    for corner in itertools.product(*starts):
        yield tuple(slice(i, min(i + step, n)) for i, step, n in zip(corner, block, shape, strict=True))


def count_blocks(shape: Shape, block: Shape) -> int:
    """How many there are."""
    return math.prod(-(-n // step) for n, step in zip(shape, block, strict=True))
