"""Elements that are stored as they are, packed bit by bit as they are written, in memory that is used again.

Rules
- What is packed must not change until it is stored.
- Each bit lies in memory as it will in the file, as to alignment: a kernel copies that at less cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from zarrlite.buffers import scratch
from zarrlite.buffers.ranges import Buffer, Made

STEP: Final = 2**21  # bytes that are packed at once
Array = np.ndarray[Any, Any]


class Packed(Made):
    """An array, row-major, in parts that follow each other."""

    def __init__(self, array: Array, parts: Sequence[Array]) -> None:
        self.array = array
        self.parts = parts

    def __len__(self) -> int:
        return self.array.nbytes

    def __iter__(self) -> Iterator[Buffer]:
        return self.written_at(0)

    def written_at(self, position: int) -> Iterator[Buffer]:
        memory = scratch.take(max([part.nbytes for part in self.parts], default=0) + scratch.ALIGNMENT)
        for part in self.parts:
            start = position % scratch.ALIGNMENT
            packed: Array = np.ndarray(part.shape, part.dtype, memory, start)
            packed[...] = part
            yield memory[start : start + part.nbytes]
            position += part.nbytes
        scratch.give(memory)

    def whole(self) -> bytes:
        return self.array.tobytes()
