"""Several values in one piece of memory, as the chunks of a shard lie there.

Rules
- A run is a sequence of values like any other: who knows nothing of it takes one after the other.
- Who knows it looks at all of them by one numpy operation, or hands them on to a library by one call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from zarrlite.buffers.ranges import Buffer

Places = np.ndarray[Any, Any]  # integers
_BYTE = np.dtype("u1")


class Run(Sequence[Buffer]):
    """Values in one piece of memory, each from a start to a stop."""

    def __init__(self, memory: Buffer, starts: Places, stops: Places) -> None:
        self.memory = memory
        self.bytes = np.frombuffer(memory, _BYTE)
        self.starts = starts
        self.stops = stops

    @classmethod
    def even(cls, memory: Buffer, size: int) -> Self:
        """Values of one size, one behind the other."""
        starts = np.arange(0, len(memory), size)
        return cls(memory, starts, starts + size)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return type(self)(self.memory, self.starts[i], self.stops[i])
        return memoryview(self.memory)[self.starts[i] : self.stops[i]]

    def __iter__(self) -> Iterator[Buffer]:
        view = memoryview(self.memory)
        for start, stop in self.bounds():
            yield view[start:stop]

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Where each of them is."""
        return zip(self.starts.tolist(), self.stops.tolist(), strict=True)

    def without_tails(self, size: int) -> Self:
        """The same values without so many bytes at the end of each."""
        return type(self)(self.memory, self.starts, self.stops - size)


def lengths(values: Sequence[Buffer]) -> Iterable[int]:
    """The bytes of each of several values."""
    return (values.stops - values.starts).tolist() if isinstance(values, Run) else map(len, values)
