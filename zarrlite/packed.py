"""Elements that are stored as they are, packed bit by bit as they are written, in memory that is used again.

Rules
- What is packed must not change until it is stored.
- Each bit lies in memory as it will in the file, as to alignment: a kernel copies that at less cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from zarrlite import lent
from zarrlite.ranges import Buffer, Made

STEP: Final = 2**21  # bytes that are packed at once
Array = np.ndarray[Any, Any]


class Packed(Made):
    """Arrays, row-major, one behind the other."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = arrays

    def __len__(self) -> int:
        return sum([array.nbytes for array in self.arrays])

    def __iter__(self) -> Iterator[Buffer]:
        return self.written_at(0)

    def written_at(self, position: int) -> Iterator[Buffer]:
        memory = lent.take(max([array.nbytes for array in self.arrays], default=0) + lent.ALIGNMENT)
        for array in self.arrays:
            start = position % lent.ALIGNMENT
            yield _pack(array, memory, start)
            position += array.nbytes
        lent.give(memory)

    def whole(self) -> Buffer:
        memory, position = np.empty(len(self), np.uint8).data, 0
        for array in self.arrays:
            position += len(_pack(array, memory, position))
        return memory


def _pack(array: Array, memory: memoryview, start: int) -> memoryview:
    packed: Array = np.ndarray(array.shape, array.dtype, memory, start)
    packed[...] = array
    return memory[start : start + packed.nbytes]
