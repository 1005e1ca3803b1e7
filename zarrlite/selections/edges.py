"""A dimension divided into chunks of different lengths, stored as runs of chunks of equal length.

Rules
- Only runs are stored, so that memory use does not depend on the number of chunks.
- The last run is unbounded: all further chunks have the same length. Callers check that the chunks cover the dimension.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import mul
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Edges:
    """The chunks along one dimension; `runs` are pairs of a chunk length and the number of chunks of this length."""

    def __init__(self, runs: Sequence[tuple[int, int]]) -> None:
        runs = runs or ((1, 1),)
        self.lengths = [length for length, _ in runs]
        counts = [count for _, count in runs]
        ends = itertools.accumulate(map(mul, self.lengths, counts))
        self._starts = [0, *ends][:-1]  # the first element of each run
        self._firsts = [0, *itertools.accumulate(counts)][:-1]  # the number of the first chunk of each run

    def find(self, position: int) -> tuple[int, int, int]:
        """Return the number of the chunk that contains a position, the position in the chunk, and the chunk length."""
        run = bisect_right(self._starts, position) - 1
        length = self.lengths[run]
        chunk, inside = divmod(position - self._starts[run], length)
        return self._firsts[run] + chunk, inside, length

    def bounds(self, chunk: int) -> tuple[int, int]:
        """Return the first position of a chunk, and its length."""
        run = bisect_right(self._firsts, chunk) - 1
        length = self.lengths[run]
        return self._starts[run] + (chunk - self._firsts[run]) * length, length

    def chunks(self, positions: Array) -> Array:
        """Return the number of the chunk that contains each position."""
        # leave out runs that start after all positions: their starts may be too large for numpy integers
        count = bisect_right(self._starts, int(positions.max())) if positions.size else 1
        starts = np.array(self._starts[:count])
        runs = np.searchsorted(starts, positions, side="right") - 1
        lengths: Array = np.array(self.lengths[:count])[runs]
        inside: Array = (positions - starts[runs]) // lengths
        return np.array(self._firsts[:count])[runs] + inside

    def pieces(self, start: int, length: int, step: int) -> Iterator[tuple[int, int, int, int, slice]]:
        """Divide a slice into one piece per chunk.

        For each piece, yield the number of the chunk, the first position in the chunk, the number of elements, and the
        place of these elements in the result, both as a start and as a slice.
        """
        place = 0
        while place < length:
            chunk, first, chunk_length = self.find(start + place * step)
            stop = min(length, place + (chunk_length - first + step - 1) // step)
            yield chunk, first, stop - place, place, slice(place, stop)
            place = stop
