"""Divide an array into blocks, so that large data is processed in bounded memory.

Rules
- A block consists of whole chunks of the array that is written. If the size limit allows it, a block also covers whole
  chunks of the array that is read.
- Blocks without stored chunks are skipped: an array may be far larger than its stored data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from zarrlite.errors import DataError
from zarrlite.nodes.array import Array

Shape = tuple[int, ...]
BLOCK_BYTES = 2**26  # bytes; maximum size of a block, unless a single chunk is larger
_MAX_BLOCKS = 2**20  # maximum number of blocks that a chunk may overlap; beyond that, it is far larger than memory


def block_shape(shape: Shape, itemsize: int, chunks: Shape, source_chunks: Shape | None = None) -> Shape:
    """Return the shape of a block: a multiple of `chunks` that covers whole `source_chunks` if the limit allows it.

    >>> block_shape((1000, 1000), 8, (10, 10), (100, 100)), block_shape((4096, 4096, 4096), 1, (8, 8, 8))
    ((1000, 1000), (8, 2048, 4096))
    """
    block = list(chunks)
    lengths = [-(-max(1, n) // c) * c for n, c in zip(shape, chunks, strict=True)]
    itemsize = max(1, itemsize)

    def grow(axis: int, length: int) -> None:
        other_bytes = math.prod(block) // block[axis] * itemsize
        limit = max(block[axis], BLOCK_BYTES // other_bytes // chunks[axis] * chunks[axis])
        whole_chunks = min(-(-length // chunks[axis]) * chunks[axis], lengths[axis])
        block[axis] = min(limit, max(block[axis], whole_chunks))

    for axis, length in enumerate(source_chunks or ()):
        grow(axis, length)
    for axis in reversed(range(len(shape))):  # elements along the last axis are adjacent in memory
        grow(axis, lengths[axis])
    return tuple(block)


def stored_blocks(block: Shape, *arrays: Array) -> list[tuple[slice, ...]]:
    """Return the blocks that overlap a stored chunk of any array, in row-major order. The arrays have equal shapes."""
    indices: set[Shape] = set()
    shape = arrays[0].shape
    for chunks in (array._chunks for array in arrays):
        for coords, key in chunks.stored():
            edges = zip(chunks.grid.origin(coords), chunks.grid.chunk_shape(coords), block, shape, strict=True)
            ranges = [range(start // b, -(-min(start + n, end) // b)) for start, n, b, end in edges]
            if math.prod(map(len, ranges)) > _MAX_BLOCKS:
                raise DataError(f"is too large to be processed in {_MAX_BLOCKS} blocks", key=chunks.prefix + key)
            indices.update(itertools.product(*ranges))  # a chunk outside the array adds no blocks
    return [_slices(index, block, shape) for index in sorted(indices)]


def all_blocks(block: Shape, shape: Shape) -> Iterator[tuple[slice, ...]]:
    """Yield every block, in row-major order."""
    counts = [range(-(-n // b)) for n, b in zip(shape, block, strict=True)]
    return (_slices(index, block, shape) for index in itertools.product(*counts))


def _slices(index: Shape, block: Shape, shape: Shape) -> tuple[slice, ...]:
    return tuple(slice(i * b, min(i * b + b, n)) for i, b, n in zip(index, block, shape, strict=True))
