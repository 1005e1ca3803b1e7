"""The indexed shard format: chunks one after the other, and an index that says where each of them is.

Rules (codecs/sharding-indexed, Binary shard format)
- The index has an offset and a length for each chunk, row-major; "unused space between them is allowed".
- "Empty inner chunks are denoted by setting both offset and nbytes to 2^64 - 1"; only one of the two is damage.
- Entries may overlap and come in any order. One that leaves the shard, or lies in an index at its start, is damage.
- Reading any number of chunks is two requests: the index, and the entries (near ones as one range).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from zarrlite.errors import DataError, ShardError
from zarrlite.pipeline import Pipeline
from zarrlite.ranges import Buffer, ByteRange
from zarrlite.selection import everything
from zarrlite.source import ByteSource, Held, Limit

ABSENT: Final = 2**64 - 1
NEAR: Final = 2**13  # bytes between two entries that cost less to read along than a range of their own
Entry = tuple[int, int]  # offset, length


class ShardFormat:
    """Shards of `count` chunks whose index goes through `index_pipeline`."""

    def __init__(self, count: int, index_pipeline: Pipeline, location: str, chunk_limit: Limit) -> None:
        self.count = count
        self.index_pipeline = index_pipeline
        self.index_size: int = index_pipeline.encoded_size or 0
        self.at_start = location == "start"
        self.chunk_limit = chunk_limit  # the most bytes that one chunk can have
        self.index_range = ByteRange(0, self.index_size) if self.at_start else ByteRange(-self.index_size)

    def read_index(self, source: ByteSource) -> list[Entry | None] | None:
        """The entries of all chunks; None: there is no shard."""
        found = source.read((self.index_range,))
        return None if found is None else self.parse_index(found[0])

    def parse_index(self, data: Buffer) -> list[Entry | None]:
        """The entries, each checked as far as it can be without the rest of the shard."""
        if len(data) != self.index_size:
            raise ShardError(f"the index has {self.index_size} bytes, the shard only {len(data)}")
        try:
            table = self.index_pipeline.read(Held(data), everything(self.index_pipeline.spec.shape))
        except DataError as error:
            raise type(error)(f"in the shard index: {error.message}", codec=error.codec) from error
        pairs: list[list[int]] = np.asarray(table).reshape(-1, 2).tolist()
        lowest = self.index_size if self.at_start else 0
        entries: list[Entry | None] = []
        for i, (offset, length) in enumerate(pairs):
            if offset == ABSENT and length == ABSENT:
                entries.append(None)
                continue
            if offset == ABSENT or length == ABSENT:
                raise ShardError(f"index entry {i} is half empty: offset {offset}, length {length}")
            if offset < lowest:
                raise ShardError(f"index entry {i} starts at {offset}, within the index")
            if not self.chunk_limit.per_byte and length > self.chunk_limit.fixed:
                raise ShardError(f"index entry {i} has {length} bytes, a chunk has at most {self.chunk_limit.fixed}")
            entries.append((offset, length))
        return entries

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
        entries = self.parse_index(self.index_range.of(view))
        end = len(view) - (0 if self.at_start else self.index_size)
        for i, entry in enumerate(entries):
            if entry is not None and sum(entry) > end:
                raise ShardError(f"index entry {i} ends at {sum(entry)}, the chunks end at {end}")
        return [None if entry is None else view[entry[0] : sum(entry)] for entry in entries]

    def join(self, chunks: Iterable[Buffer | None]) -> Buffer | None:
        """A shard of these chunks, row-major without gaps; None: all are absent."""
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
        index = self.encode_index(table)
        return b"".join((index, *pieces) if self.at_start else (*pieces, index))

    def encode_index(self, table: np.ndarray[Any, Any]) -> Buffer:
        """The stored form of an index."""
        return self.index_pipeline.encode(table.reshape(self.index_pipeline.spec.shape))
