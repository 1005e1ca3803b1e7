"""The indexed shard format: consecutive chunks, and an index with the position of each.

Rules (codecs/sharding-indexed, Binary shard format)
- The index contains an offset and a length for each chunk, in row-major order. There may be gaps between the chunks:
  "unused space between them is allowed".
- "Empty inner chunks are denoted by setting both offset and nbytes to 2^64 - 1". An entry in which only the offset or
  only the length is 2^64 - 1 is damaged.
- Chunks may overlap and be in any order. An entry that extends beyond the shard or into its index is damaged. If the
  size of the shard is not known, an entry that extends too far cannot be detected.

Reading is in reading.py, writing in writing.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.cached import cached_property
from zarrlite.errors import DataError, ShardError
from zarrlite.pipeline.decoding import Limit
from zarrlite.pipeline.elements import NDArray
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import Shape
from zarrlite.stores.base import Limits

ABSENT: Final = 2**64 - 1
Entry = tuple[int, int]  # offset, length
Box = tuple[Any, ...]  # a part of a grid: a slice along each dimension


def row_major(coords: Iterable[int], shape: Iterable[int]) -> int:
    """Return the position of a chunk in the index.

    >>> row_major((1, 0), (2, 3))
    3
    """
    number = 0
    for c, n in zip(coords, shape, strict=True):
        number = number * n + c
    return number


def boxes(grid: Shape, most: int) -> Iterator[tuple[Box, slice]]:
    """Divide a grid into boxes, each with at most `most` chunks that are consecutive in row-major order.

    Yields each box, and the numbers of its chunks as a slice.

    >>> [numbers for _, numbers in boxes((2, 3), 2)]
    [slice(0, 2, None), slice(2, 3, None), slice(3, 5, None), slice(5, 6, None)]
    """
    parts: list[list[slice]] = []
    for n in reversed(grid):
        step = min(n, max(1, most))
        parts.append([slice(i, min(i + step, n)) for i in range(0, n, step)])
        most //= n
    number = 0
    for box in itertools.product(*reversed(parts)):
        count = math.prod(along.stop - along.start for along in box)
        yield box, slice(number, number + count)
        number += count


class ShardIndex:
    """The positions of the chunks of one shard. Entries are checked when they are looked up."""

    def __init__(self, form: ShardFormat, pairs: NDArray, end: int) -> None:
        self.pairs = pairs  # offset and length of each chunk in row-major order, as an array of any shape
        self.lowest = form.lowest  # the lowest offset that a chunk can have
        self.end = end  # the highest offset at which a chunk may end
        self.longest = form.longest  # the largest size of a chunk, in bytes

    @cached_property
    def table(self) -> NDArray:
        """The entries, one row each."""
        return self.pairs.reshape(-1, 2)

    @cached_property
    def in_order(self) -> bool:
        """Whether all chunks are present and each begins after the previous one ends, so that no two share a byte."""
        starts = self.table[:, 0]
        ends = starts + self.table[:, 1]  # overflows for absent chunks, whose ends are then less than their starts
        return bool((ends >= starts).all() and (starts[1:] >= ends[:-1]).all())

    @cached_property
    def filled(self) -> int:
        """The total size of all chunks in bytes."""
        lengths = self.table[:, 1]
        return (int(lengths.sum()) + int(np.count_nonzero(lengths == ABSENT))) % 2**64

    def pair(self, number: int) -> Entry:
        """Return the stored offset and length of a chunk."""
        return self.pairs.item(2 * number), self.pairs.item(2 * number + 1)

    def entry(self, number: int) -> Entry | None:
        """Return the offset and length of a chunk. Returns None if it is absent."""
        offset, length = self.pairs.item(2 * number), self.pairs.item(2 * number + 1)
        if self.lowest <= offset and length <= self.longest and offset + length <= self.end:
            return offset, length
        if offset == ABSENT and length == ABSENT:
            return None
        if offset == ABSENT or length == ABSENT:
            raise ShardError(f"index entry {number} is half empty: offset {offset}, length {length}")
        if offset < self.lowest:
            raise ShardError(f"the chunk of index entry {number} starts at {offset}, inside the index itself")
        if length > self.longest:
            raise ShardError(f"index entry {number} has {length} bytes, but a chunk has at most {self.longest}")
        if offset + length > self.end:
            raise ShardError(f"index entry {number} ends at {offset + length}, but the chunks end at {self.end}")
        return offset, length

    def cut(self, number: int, shard: memoryview) -> Buffer | None:
        """Return a chunk from a whole shard. Returns None if it is absent."""
        entry = self.entry(number)
        return None if entry is None else shard[entry[0] : entry[0] + entry[1]]

    def check(self) -> NDArray:
        """Return which chunks are present. Raises ShardError if an entry is damaged."""
        offsets, lengths = self.table[:, 0], self.table[:, 1]
        present: NDArray = (offsets != ABSENT) | (lengths != ABSENT)
        most = np.uint64(min(self.longest, self.end, ABSENT - 1))
        bad = (lengths > most) | (offsets < self.lowest) | (offsets > np.uint64(self.end) - np.minimum(lengths, most))
        for number in np.flatnonzero(bad & present)[:1]:
            self.entry(int(number))  # raises the reason
        return present

    def entries(self) -> list[Entry | None]:
        """Return the result of `entry` for every chunk."""
        present = self.check()
        found: list[Any] = self.table.tolist()
        return found if present.all() else [e if there else None for e, there in zip(found, present, strict=True)]

    def regular(self, length: int) -> int | None:
        """Return the offset of the first chunk if all are present, have this length, and are contiguous in index order.

        Returns None otherwise.
        """
        first = int(self.table[0, 0])
        expected = first + np.arange(len(self.table), dtype=np.uint64) * np.uint64(length)
        if (self.table[:, 1] == length).all() and (self.table[:, 0] == expected).all():
            return first
        return None


class ShardFormat:
    """A shard format: a grid of chunks, and an index encoded by `index_pipeline`."""

    def __init__(self, grid: Shape, index_pipeline: Pipeline, location: str, chunk_limit: Limit) -> None:
        self.grid = grid
        self.count = index_pipeline.spec.size // 2
        self.index_pipeline = index_pipeline
        self.index_size: int = index_pipeline.encoded_size or 0
        self.at_start = location == "start"
        self.lowest = self.index_size if self.at_start else 0
        self.longest = ABSENT if chunk_limit.per_byte else chunk_limit.fixed
        self.index_range = ByteRange(0, self.index_size) if self.at_start else ByteRange(-self.index_size)

    def parse_index(self, data: Buffer, size: int | None = None) -> ShardIndex:
        """Parse a stored index; `size` is the size of the shard, if it is known."""
        if len(data) != self.index_size:
            raise ShardError(f"the index has {self.index_size} bytes, but the shard has only {len(data)}")
        try:
            pairs = self.index_pipeline.decode(data)
        except DataError as error:
            raise type(error)(f"in the shard index: {error.message}", codec=error.codec) from error
        if size is None:
            return ShardIndex(self, pairs, ABSENT - 1)
        return ShardIndex(self, pairs, size if self.at_start else size - self.index_size)

    def index_of(self, shard: memoryview) -> ShardIndex:
        """Parse the index of a whole shard."""
        return self.parse_index(self.index_range.of(shard), len(shard))

    def split(self, shard: Buffer) -> list[Buffer | None]:
        """Return the chunks of a whole shard, None for absent ones."""
        view = memoryview(shard)
        entries = self.index_of(view).entries()
        return [None if entry is None else view[entry[0] : entry[0] + entry[1]] for entry in entries]


def _are_close(last: ByteRange, start: int, stop: int, limits: Limits) -> bool:
    """Whether a range is read together with the one before it. Overlapping ranges always are."""
    end = last.stop or 0
    return start < end or (start <= end + limits.gap and stop - last.start <= limits.longest)


def coalesce(wanted: Sequence[Entry], limits: Limits) -> tuple[list[ByteRange], list[tuple[int, int]]]:
    """Return ranges that contain these entries, and the place of each entry. Entries close together share a range.

    A place is the number of a range and an offset within that range.

    >>> coalesce([(100, 10), (0, 50), (90_000, 1)], Limits(gap=100))
    ([ByteRange(start=0, stop=110), ByteRange(start=90000, stop=90001)], [(0, 100), (0, 0), (1, 0)])
    """
    ranges: list[ByteRange] = []
    places = [(0, 0)] * len(wanted)
    for i in sorted(range(len(wanted)), key=wanted.__getitem__):
        offset, length = wanted[i]
        last = ranges[-1] if ranges else None
        if last is not None and last.stop is not None and _are_close(last, offset, offset + length, limits):
            ranges[-1] = ByteRange(last.start, max(last.stop, offset + length))
        else:
            ranges.append(ByteRange(offset, offset + length))
        places[i] = (len(ranges) - 1, offset - ranges[-1].start)
    return ranges, places


def cut(wanted: Sequence[Entry], places: Sequence[tuple[int, int]], found: Sequence[Buffer]) -> list[Buffer]:
    """Cut the entries out of the ranges that contain them."""
    views = [memoryview(data) for data in found]
    chunks: list[Buffer] = []
    for (offset, length), (n, start) in zip(wanted, places, strict=True):
        chunk = views[n][start : start + length]
        if len(chunk) != length:
            raise ShardError(f"an entry of {length} bytes at offset {offset} extends beyond the shard")
        chunks.append(chunk)
    return chunks
