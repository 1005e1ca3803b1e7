"""The indexed shard format: chunks one after the other, and an index that says where each of them is.

Rules (codecs/sharding-indexed, Binary shard format)
- The index has an offset and a length for each chunk, row-major; "unused space between them is allowed".
- "Empty inner chunks are denoted by setting both offset and nbytes to 2^64 - 1"; only one of the two is damage.
- Entries may overlap and come in any order. One that leaves the shard, or lies in an index at its start, is damage.
- Reading any number of chunks is two requests: the index, and the entries (near ones as one range).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from zarrlite.errors import DataError, ShardError
from zarrlite.pipeline import Pipeline
from zarrlite.ranges import Buffer, ByteRange
from zarrlite.selection import everything
from zarrlite.source import ByteSource, Held, Limit

ABSENT: Final = 2**64 - 1
NEAR: Final = 2**13  # bytes between two entries that cost less to read along than a range of their own
Entry = tuple[int, int]  # offset, length


def row_major(coords: Iterable[int], shape: Iterable[int]) -> int:
    """The place of a chunk in the index.

    >>> row_major((1, 0), (2, 3))
    3
    """
    number = 0
    for c, n in zip(coords, shape, strict=True):
        number = number * n + c
    return number


class ShardIndex(NamedTuple):
    """Where the chunks of one shard are; entries are checked when they are asked for."""

    table: np.ndarray[Any, Any]
    lowest: int  # the first byte that a chunk can have
    end: int  # the byte behind the last one
    longest: int  # the most bytes of a chunk

    def entry(self, i: int) -> Entry | None:
        """Offset and length of a chunk; None: it is absent."""
        offset, length = self.table[i].tolist()
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


class ShardFormat:
    """Shards of `count` chunks whose index goes through `index_pipeline`."""

    def __init__(self, count: int, index_pipeline: Pipeline, location: str, chunk_limit: Limit) -> None:
        self.count = count
        self.index_pipeline = index_pipeline
        self.index_size: int = index_pipeline.encoded_size or 0
        self.at_start = location == "start"
        self.chunk_limit = chunk_limit  # the most bytes that one chunk can have
        self.index_range = ByteRange(0, self.index_size) if self.at_start else ByteRange(-self.index_size)

    def read_index(self, source: ByteSource) -> ShardIndex | None:
        """Where the chunks are; None: there is no shard."""
        found = source.read((self.index_range,))
        return None if found is None else self.parse_index(found[0])

    def parse_index(self, data: Buffer, end: int = ABSENT) -> ShardIndex:
        """The index from its stored form; `end` is where chunks must end, if that is known."""
        if len(data) != self.index_size:
            raise ShardError(f"the index has {self.index_size} bytes, the shard only {len(data)}")
        try:
            table = self.index_pipeline.read(Held(data), everything(self.index_pipeline.spec.shape))
        except DataError as error:
            raise type(error)(f"in the shard index: {error.message}", codec=error.codec) from error
        lowest = self.index_size if self.at_start else 0
        longest = ABSENT if self.chunk_limit.per_byte else self.chunk_limit.fixed
        return ShardIndex(np.asarray(table).reshape(-1, 2), lowest, end, longest)

    def read_chunks(self, source: ByteSource, wanted: Sequence[Entry]) -> list[Buffer] | None:
        """The bytes of these entries, in one request."""
        order = sorted(range(len(wanted)), key=wanted.__getitem__)
        ranges: list[ByteRange] = []
        place: list[tuple[int, int]] = [(0, 0)] * len(wanted)  # which range, and where in it
        for i in order:
            offset, length = wanted[i]
            last = ranges[-1] if ranges else None
            if last is not None and last.stop is not None and offset <= last.stop + NEAR:
                ranges[-1] = ByteRange(last.start, max(last.stop, offset + length))
            else:
                ranges.append(ByteRange(offset, offset + length))
            place[i] = (len(ranges) - 1, offset - ranges[-1].start)
        found = source.read(ranges) if ranges else []
        if found is None:
            return None
        views = [memoryview(data) for data in found]
        chunks: list[Buffer] = []
        for (offset, length), (n, start) in zip(wanted, place, strict=True):
            chunk = views[n][start : start + length]
            if len(chunk) != length:
                raise ShardError(f"an entry at {offset} of {length} bytes leaves the shard")
            chunks.append(chunk)
        return chunks

    def split(self, shard: Buffer) -> list[Buffer | None]:
        """The chunks of a whole shard."""
        view = memoryview(shard)
        end = len(view) - (0 if self.at_start else self.index_size)
        index = self.parse_index(self.index_range.of(view), end)
        entries = (index.entry(i) for i in range(self.count))
        return [None if entry is None else view[entry[0] : sum(entry)] for entry in entries]

    def join(self, chunks: Iterable[Buffer | None], old: Buffer | None = None) -> Buffer | None:
        """A shard of these chunks, row-major without gaps, in place of an old one; None: all are absent."""
        table = np.full((self.count, 2), ABSENT, np.uint64)
        pieces: list[Buffer] = []
        position = self.index_size if self.at_start else 0
        for i, chunk in enumerate(chunks):
            if chunk is not None:
                table[i] = position, len(chunk)
                position += len(chunk)
                pieces.append(chunk)
        if not pieces:
            return None
        index = self.encode_index(table, None if old is None else self.index_range.of(memoryview(old)))
        return b"".join((index, *pieces) if self.at_start else (*pieces, index))

    def encode_index(self, table: np.ndarray[Any, Any], old: Buffer | None = None) -> Buffer:
        """The stored form of an index, in place of an old one."""
        return self.index_pipeline.encode(table.reshape(self.index_pipeline.spec.shape), old)
