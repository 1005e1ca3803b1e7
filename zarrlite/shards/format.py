"""The indexed shard format: chunks one after the other, and an index that says where each of them is.

Rules (codecs/sharding-indexed, Binary shard format)
- The index has an offset and a length for each chunk, row-major; "unused space between them is allowed".
- "Empty inner chunks are denoted by setting both offset and nbytes to 2^64 - 1"; only one of the two is damage.
- Entries may overlap and come in any order. One that leaves the shard or lies in its index is damage; that it reaches
  into an index at the end is seen where the size of the shard is known.
- Reading any number of chunks is two requests: the index, and the entries (near ones as one range).

How shards are written is in shard_writing.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, Final

import numpy as np

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.buffers.source import ByteSource, Limit, Slice
from zarrlite.cached import cached_property
from zarrlite.errors import DataError, ShardError
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import Shape

ABSENT: Final = 2**64 - 1
NEAR: Final = 2**13  # bytes between two entries that cost less to read along than a range of their own
Entry = tuple[int, int]  # offset, length
Box = tuple[Any, ...]  # of a grid: a slice along each dimension
_PAIR: Final = {order: Struct(f"{order}2Q").unpack_from for order in "<>="}


def row_major(coords: Iterable[int], shape: Iterable[int]) -> int:
    """The place of a chunk in the index.

    >>> row_major((1, 0), (2, 3))
    3
    """
    number = 0
    for c, n in zip(coords, shape, strict=True):
        number = number * n + c
    return number


def boxes(grid: Shape, most: int) -> Iterator[tuple[Box, slice]]:
    """The parts of a grid, at most so many places each, that follow each other row-major; and their numbers.

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
    """Where the chunks of one shard are; entries are checked when they are asked for."""

    def __init__(self, form: ShardFormat, body: Buffer, dtype: np.dtype[Any], end: int) -> None:
        self.body = body  # pairs of integers
        self.dtype = dtype
        self.lowest = form.lowest  # the first byte that a chunk can have
        self.end = end  # the byte behind the last one
        self.longest = form.longest  # the most bytes of a chunk

    @cached_property
    def table(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.body, self.dtype).reshape(-1, 2)

    @cached_property
    def in_order(self) -> bool:
        """Whether all chunks are there, each behind the one before it, so that no two of them share a byte."""
        starts = self.table[:, 0]
        ends = starts + self.table[:, 1]  # which overflows for absent ones, so that they end before they start
        return bool((ends >= starts).all() and (starts[1:] >= ends[:-1]).all())

    @cached_property
    def filled(self) -> int:
        """Bytes of all chunks together."""
        lengths = self.table[:, 1]
        return (int(lengths.sum()) + int(np.count_nonzero(lengths == ABSENT))) % 2**64

    def pair(self, i: int) -> tuple[int, ...]:
        """Offset and length of a chunk, as they are stored."""
        return _PAIR[self.dtype.byteorder](self.body, 16 * i)

    def entry(self, i: int) -> Entry | None:
        """Offset and length of a chunk; None: it is absent."""
        offset, length = _PAIR[self.dtype.byteorder](self.body, 16 * i)
        if self.lowest <= offset and length <= self.longest and offset + length < self.end:
            return offset, length
        if offset == ABSENT and length == ABSENT:
            return None
        if offset == ABSENT or length == ABSENT:
            raise ShardError(f"index entry {i} is half empty: offset {offset}, length {length}")
        if offset < self.lowest:
            raise ShardError(f"index entry {i} starts at {offset}, within the index")
        if length > self.longest:
            raise ShardError(f"index entry {i} has {length} bytes, a chunk has at most {self.longest}")
        if offset + length > self.end:
            raise ShardError(f"index entry {i} ends at {offset + length}, the chunks end at {self.end}")
        return offset, length

    def cut(self, i: int, shard: memoryview) -> Buffer | None:
        """A chunk out of the whole shard; None: it is absent."""
        entry = self.entry(i)
        return None if entry is None else shard[entry[0] : entry[0] + entry[1]]

    def check(self) -> np.ndarray[Any, Any]:
        """Refuse a damaged one; which chunks are present."""
        offsets, lengths = self.table[:, 0], self.table[:, 1]
        present: np.ndarray[Any, Any] = (offsets != ABSENT) | (lengths != ABSENT)
        most = np.uint64(min(self.longest, self.end, ABSENT - 1))
        bad = (lengths > most) | (offsets < self.lowest) | (offsets > np.uint64(self.end) - np.minimum(lengths, most))
        for i in np.flatnonzero(bad & present)[:1]:
            self.entry(int(i))  # which says what is wrong
        return present

    def entries(self) -> list[Entry | None]:
        """All of them, as `entry` gives them."""
        present = self.check()
        found: list[Any] = self.table.tolist()
        return found if present.all() else [e if there else None for e, there in zip(found, present, strict=True)]

    def regular(self, length: int) -> int | None:
        """Where the chunks begin, if all are there, of this length, one behind the other in the order of the index."""
        first = int(self.table[0, 0])
        there = first + np.arange(len(self.table), dtype=np.uint64) * np.uint64(length)
        if (self.table[:, 1] == length).all() and (self.table[:, 0] == there).all():
            return first
        return None


class ShardFormat:
    """Shards with a grid of chunks, whose index goes through `index_pipeline`."""

    def __init__(self, grid: Shape, index_pipeline: Pipeline, location: str, chunk_limit: Limit) -> None:
        self.grid = grid
        self.count = index_pipeline.spec.size // 2
        self.index_pipeline = index_pipeline
        self.index_size: int = index_pipeline.encoded_size or 0
        self.at_start = location == "start"
        self.chunk_limit = chunk_limit  # the most bytes that one chunk can have
        self.lowest = self.index_size if self.at_start else 0
        self.longest = ABSENT if chunk_limit.per_byte else chunk_limit.fixed
        self.index_range = ByteRange(0, self.index_size) if self.at_start else ByteRange(-self.index_size)
        self._behind = 0 if self.at_start else self.index_size  # bytes behind the chunks
        # of an index as nearly all shards have it, integers and their checksum: what tells that it is right
        dtype, compressors = index_pipeline.serializer.raw_dtype, index_pipeline.compressors
        usual = dtype is not None and not index_pipeline.filters and len(compressors) == 1
        self._is_sound = compressors[0][0].is_sound if usual else None
        self._unpack = _PAIR["<" if dtype is None else dtype.byteorder]

    def read_index(self, source: ByteSource) -> ShardIndex | None:
        """Where the chunks are; None: there is no shard."""
        found = source.read_one(self.index_range)
        return None if found is None else self.parse_index(found, source.known_size())

    def parse_index(self, data: Buffer, size: int | None = None) -> ShardIndex:
        """The index from its stored form; `size` is that of the shard, if it is known."""
        if len(data) != self.index_size:
            raise ShardError(f"the index has {self.index_size} bytes, the shard only {len(data)}")
        try:
            body, dtype = self.index_pipeline.raw(data)
        except DataError as error:
            raise type(error)(f"in the shard index: {error.message}", codec=error.codec) from error
        if size is None:
            return ShardIndex(self, body, dtype, ABSENT)
        return ShardIndex(self, body, dtype, size if self.at_start else size - self.index_size)

    def find(self, source: ByteSource, number: int) -> Entry | None:
        """Offset and length of one chunk, both ABSENT if it is; None: there is no shard.

        It is what the index says; of a usual one that is right, without making an index of it.
        """
        data, size = source.read_one(self.index_range), source.known_size()
        if data is None:
            return None
        if self._is_sound is not None and size is not None and len(data) == self.index_size and self._is_sound(data):
            offset, length = self._unpack(data, 16 * number)
            if self.lowest <= offset and length <= self.longest and offset + length <= size - self._behind:
                return offset, length
        return self.parse_index(data, size).entry(number) or (ABSENT, ABSENT)

    def read_chunks(self, source: ByteSource, wanted: Sequence[Entry]) -> list[Buffer] | None:
        """The bytes of these entries, in one request."""
        ranges, places = coalesce(wanted)
        found = source.read(ranges) if ranges else []
        return None if found is None else cut(wanted, places, found)

    def split(self, shard: Buffer) -> list[Buffer | None]:
        """The chunks of a whole shard."""
        view = memoryview(shard)
        entries = self.index_of(view).entries()
        return [None if entry is None else view[entry[0] : entry[0] + entry[1]] for entry in entries]

    def index_of(self, shard: memoryview) -> ShardIndex:
        """The index of a whole shard."""
        return self.parse_index(self.index_range.of(shard), len(shard))


def coalesce(wanted: Sequence[Entry]) -> tuple[list[ByteRange], list[tuple[int, int]]]:
    """Ranges that hold these entries, near ones together; for each entry which range it is in, and where.

    >>> coalesce([(100, 10), (0, 50), (90_000, 1)])
    ([ByteRange(start=0, stop=110), ByteRange(start=90000, stop=90001)], [(0, 100), (0, 0), (1, 0)])
    """
    ranges: list[ByteRange] = []
    places = [(0, 0)] * len(wanted)
    for i in sorted(range(len(wanted)), key=wanted.__getitem__):
        offset, length = wanted[i]
        last = ranges[-1] if ranges else None
        if last is not None and last.stop is not None and offset <= last.stop + NEAR:
            ranges[-1] = ByteRange(last.start, max(last.stop, offset + length))
        else:
            ranges.append(ByteRange(offset, offset + length))
        places[i] = (len(ranges) - 1, offset - ranges[-1].start)
    return ranges, places


def cut(wanted: Sequence[Entry], places: Sequence[tuple[int, int]], found: Sequence[Buffer]) -> list[Buffer]:
    """The entries, out of the ranges that hold them."""
    views = [memoryview(data) for data in found]
    chunks: list[Buffer] = []
    for (offset, length), (n, start) in zip(wanted, places, strict=True):
        chunk = views[n][start : start + length]
        if len(chunk) != length:
            raise ShardError(f"an entry at {offset} of {length} bytes leaves the shard")
        chunks.append(chunk)
    return chunks


class ChunkInShard(ByteSource):
    """A chunk of a shard, whose place is looked up once."""

    def __init__(self, shard: ByteSource, form: ShardFormat, number: int) -> None:
        self.shard = shard
        self.format = form
        self.number = number
        self._place: Slice | None = None

    def _found(self) -> Slice | None:
        if self._place is None:
            index = self.format.read_index(self.shard)
            entry = None if index is None else index.entry(self.number)
            self._place = None if entry is None else Slice(self.shard, *entry)
        return self._place

    def read(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        chunk = self._found()
        return None if chunk is None else chunk.read(ranges)

    def size(self) -> int | None:
        chunk = self._found()
        return None if chunk is None else chunk.length

    def known_size(self) -> int | None:
        return None if self._place is None else self._place.length

    def close(self) -> None:
        self.shard.close()
