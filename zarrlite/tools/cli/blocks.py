"""An array in blocks: how large data is gone through with bounded memory.

Rules
- A block is made of whole chunks of what is written; it grows to whole chunks of what is read as far as memory allows.
- What is not stored costs nothing: an array may be larger than anybody could go through.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from zarrlite.errors import DataError
from zarrlite.nodes.array import Array

Shape = tuple[int, ...]
BLOCK = 2**26  # bytes of a block, if the chunks are not larger
_MOST = 2**20  # blocks in a chunk: more than anybody has memory for


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


def stored_blocks(block: Shape, *arrays: Array) -> list[tuple[slice, ...]]:
    """The blocks in which any of several arrays of one shape has a stored chunk, row by row."""
    found: set[Shape] = set()
    shape = arrays[0].shape
    for chunks in (array._chunks for array in arrays):
        for coords, key in chunks.stored():
            edges = zip(chunks.grid.origin(coords), chunks.grid.chunk_shape(coords), block, shape, strict=True)
            ranges = [range(start // b, -(-min(start + n, end) // b)) for start, n, b, end in edges]
            if math.prod(map(len, ranges)) > _MOST:
                raise DataError("is too large to be gone through", key=chunks.prefix + key)
            found.update(itertools.product(*ranges))  # of a chunk outside of the array there is none
    return [_slices(each, block, shape) for each in sorted(found)]


def all_blocks(block: Shape, shape: Shape) -> Iterator[tuple[slice, ...]]:
    """Every block, row by row."""
    counts = [range(-(-n // b)) for n, b in zip(shape, block, strict=True)]
    return (_slices(each, block, shape) for each in itertools.product(*counts))


def _slices(place: Shape, block: Shape, shape: Shape) -> tuple[slice, ...]:
    return tuple(slice(i * b, min(i * b + b, n)) for i, b, n in zip(place, block, shape, strict=True))
