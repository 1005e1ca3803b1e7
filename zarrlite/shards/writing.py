"""Writing shards: the order of chunks, space for a header, and how chunks are changed.

Rules
- "Any configuration parameters for the write strategy must not be part of the metadata" (draft `sharding`): they are
  runtime options, the same for the codec and for the draft's storage transformer.
- `rewrite` builds a new shard that replaces the old one atomically: even after a crash, readers see either the old
  shard or the new one.
- `in-place` overwrites chunks with new ones that are not larger, and then the index if it changes. A crash can damage
  the chunks being written, and the index of a shard whose chunks change in size.
- `append` writes chunks and a new index after the end of the shard, in one write. It overwrites nothing, except an
  index at the start of the shard. During the write, or if it is interrupted by a crash, readers find a shard that does
  not end with its index. The checksum of the index, if there is one, reveals this. If the index is a separate stored
  object, it is replaced atomically after the data: even after a crash, readers see either the old chunks or the new
  ones.
- If a strategy cannot be applied, or if more than half of a shard would be unused, the shard is rewritten. A shard
  whose index is a separate object is never compacted automatically, because that would not be safe: to compact it,
  write the whole shard.
- Shards within shards are always rewritten, because they are not separate values in the store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from zarrlite.buffers.pieces import LazyPiece, Patch, Value
from zarrlite.buffers.ranges import Buffer
from zarrlite.buffers.source import Source
from zarrlite.cached import cached_property
from zarrlite.errors import ArgumentError, DataError
from zarrlite.pipeline.codec import Patches
from zarrlite.pipeline.elements import NDArray
from zarrlite.shards.format import ABSENT, Entry, ShardFormat, ShardIndex, boxes
from zarrlite.tuning import COPY_BLOCK_BYTES, MAX_CACHED_INDEX_BYTES

STRATEGIES: Final = ("rewrite", "in-place", "append")
ORDERS: Final = ("row-major", "column-major", "morton")  # the three orders that the draft `sharding` lists
MAX_CHUNKS: Final = 2**20  # chunks; shards with more chunks are not written
MAX_HEADER: Final = 2**31  # bytes; larger headers are refused
FEW: Final = 8  # chunks; up to this many are checked for overlaps one at a time
Placed = dict[int, Patch | None]  # new chunks by number, each with its offset; None for absent ones


class Writing(NamedTuple):
    """The runtime options for writing shards, in the codec and the storage transformer.

    If `header` is None, the number of unused bytes is `leading_bytes` of the storage transformer that stores the
    shards, or 0 if there is no such transformer.
    """

    strategy: str = "rewrite"
    order: str = "row-major"
    header: int | None = None  # bytes left unused at the start of a shard; offsets in the index include them

    def check(self, location: str) -> None:
        """Raise ArgumentError for an invalid option. `location` is the location of the index."""
        for name, allowed in (("strategy", STRATEGIES), ("order", ORDERS)):
            value = getattr(self, name)
            if value not in allowed:
                raise ArgumentError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
        header = 0 if self.header is None else self.header
        if isinstance(header, bool) or not isinstance(header, int) or not 0 <= header <= MAX_HEADER:
            raise ArgumentError(f"header must be a number of bytes, not {self.header!r}")
        if self.header and location == "start":
            raise ArgumentError("header must be 0 for shards that begin with their index")


class ShardWriter:
    """Builds and changes shards of one format."""

    def __init__(self, form: ShardFormat, writing: Writing) -> None:
        self.form = form
        self.writing = writing
        self.header = writing.header or 0
        self.patches = writing.strategy != "rewrite"  # whether shards can be changed without rewriting them
        # whether a new shard depends on the one it replaces
        self.needs_old = self.header > 0 or form.index_pipeline.needs_old
        # the last index that was read or written: its stored form, the size of its shard, the parsed index
        self._cached: tuple[bytes, int, ShardIndex] | None = None

    @cached_property
    def sequence(self) -> Sequence[int]:
        """The numbers of the chunks in the order in which they are written."""
        if self.writing.order == "row-major":
            return range(self.form.count)
        numbers = np.arange(self.form.count)
        if self.writing.order == "column-major":
            numbers = numbers.reshape(self.form.grid).ravel(order="F")
        else:
            numbers = numbers[np.argsort(_morton(self.form.grid), kind="stable")]
        found: list[int] = numbers.tolist()
        return found

    def check(self) -> None:
        """Raise ArgumentError if a shard has too many chunks to be written."""
        if self.form.count > MAX_CHUNKS:
            raise ArgumentError(f"a shard of {self.form.count} chunks cannot be written; use larger chunks")

    def chunks(self, old: Buffer | None) -> list[Buffer | None]:
        """Return the chunks of an old shard, to be changed and joined again. All are None if there is no old shard."""
        self.check()
        return [None] * self.form.count if old is None else self.form.split(old)

    def join(self, chunks: Sequence[Buffer | None], old: Buffer | None = None) -> Value:
        """Build a shard from these chunks (None for absent ones) without gaps. It replaces `old`."""
        form = self.form
        table = np.full((form.count, 2), ABSENT, np.uint64)
        present = [i for i in self.sequence if chunks[i] is not None]
        pieces: list[Any] = [chunks[i] for i in present]
        lengths = np.fromiter(map(len, pieces), np.uint64, len(pieces))
        table[present, 0] = np.cumsum(lengths) - lengths + self._first_offset()
        table[present, 1] = lengths
        return self._assemble(pieces, table, old)

    def join_uncompressed(self, blocks: NDArray, length: int, old: Buffer | None) -> Value:
        """Build a shard with all chunks present, uncompressed, of equal length, and in the order of the index."""
        form = self.form
        table = np.empty((form.count, 2), np.uint64)
        table[:, 0] = self._first_offset() + np.arange(form.count, dtype=np.uint64) * np.uint64(length)
        table[:, 1] = length
        parts = [blocks[(*box, ...)] for box, _ in boxes(form.grid, COPY_BLOCK_BYTES // length)]
        return self._assemble([LazyPiece(blocks, parts)], table, old)

    def _first_offset(self) -> int:
        return self.form.index_size if self.form.at_start else self.header

    def _assemble(self, chunks: list[Any], table: NDArray, old: Buffer | None) -> Value:
        """Return chunks with their index and, if there is one, the header."""
        index = self.index(table, None if old is None else self.form.index_range.of(memoryview(old)))
        if self.form.at_start:
            return [index, *chunks]
        return [self._header(old), *chunks, index] if self.header else [*chunks, index]

    def replace(self, view: memoryview, index: ShardIndex, changes: Mapping[int, Buffer | None]) -> Value | None:
        """Build a shard with some chunks replaced. Most pieces of the result are long slices of the old shard.

        Returns None if the old shard has gaps or chunks in another order, or if the new shard would be empty.
        """
        form, present = self.form, index.check()
        lengths = np.where(present, index.table[:, 1], np.uint64(0)).astype(np.int64)
        first = self._first_offset()
        ends = first + np.cumsum(lengths)
        starts = ends - lengths
        if self.writing.order != "row-major" or (index.table[:, 0] != starts)[present].any():
            return None
        pieces: list[Any] = []
        position = form.index_size if form.at_start else 0
        for i in sorted(changes):
            pieces.append(view[position : starts[i]])
            new, position = changes[i], ends[i]
            present[i], lengths[i] = new is not None, len(new or b"")
            if new is not None:
                pieces.append(new)
        pieces.append(view[position : ends[-1]])
        if not present.any():
            return None
        table = np.stack((first + np.cumsum(lengths) - lengths, lengths), 1).astype(np.uint64)
        table[~present] = ABSENT
        stored = self.index(table, form.index_range.of(view))
        return [stored, *pieces] if form.at_start else [*pieces, stored]

    def _header(self, old: Buffer | None) -> Buffer:
        """Return the header of the old shard, or zeros if it is missing or its chunks begin in the header."""
        room = self.header
        if room and old is not None and len(old) >= room + self.form.index_size:
            view = memoryview(old)
            with contextlib.suppress(DataError):  # a damaged shard has no header worth keeping
                if not (self.form.index_of(view).table[:, 0] < room).any():
                    return view[:room]
        return bytes(room)

    def index(self, table: NDArray, old: Buffer | None = None) -> Buffer:
        """Return the stored form of an index. `old` is the stored index that it replaces."""
        pipeline = self.form.index_pipeline
        return pipeline.encode_always(table.reshape(pipeline.spec.shape), old)

    def read_index(self, source: Source) -> ShardIndex | None:
        """Read the index of a stored shard. Parsing is often cached. Returns None if the shard is missing."""
        data, size, cached = source.read_one(self.form.index_range), source.known_size(), self._cached
        if data is None:
            return None
        if cached is not None and cached[1] == size and cached[0] == bytes(data):
            return cached[2]
        index = self.form.parse_index(bytes(data), size)
        if size is not None:
            self._cache(data, size, index)
        return index

    def patch(self, source: Source, index: ShardIndex, changes: Mapping[int, Buffer | None]) -> Patches | None:
        """Return the patches that change chunks of a stored shard, in the order in which they must be written.

        Returns None if the shard must be rewritten.
        """
        size = source.known_size()
        size = source.size() if size is None else size
        if size is None:
            return None
        tail = 0 if self.form.at_start else self.form.index_size
        separate = tail > 0 and source.separate_tail == tail  # whether the index is a separate object
        if self.writing.strategy == "append":
            end = size - tail if separate else size
            placed = _appended(end, changes)
            end += sum(len(chunk) for chunk in changes.values() if chunk is not None) + tail
        elif (found := _in_place(index, size - tail, changes)) is not None:
            placed, end = found, size
        else:
            return None
        pieces = [piece for piece in placed.values() if piece is not None]
        entries = {}
        for i, piece in placed.items():
            entry = (ABSENT, ABSENT) if piece is None else (piece[0], len(piece[1]))
            if index.pair(i) != entry:
                entries[i] = entry
        if entries:
            table = index.table.astype(np.uint64)
            for i, entry in entries.items():
                table[i] = entry
            filled = index.filled + sum(_bytes(entry) - _bytes(index.pair(i)) for i, entry in entries.items())
            used = filled + self.form.index_size + self.header
            if (None in placed.values() and (table[:, 1] == ABSENT).all()) or (not separate and used < end / 2):
                return None
            old = source.read_one(self.form.index_range) if self.form.index_pipeline.needs_old else None
            stored = self.index(table, old)
            pieces.append((end - tail if tail else 0, stored))
            new = ShardIndex(self.form, table, end - tail)
            new.filled = filled
            self._cache(stored, end, new)
        # merge patches: the fewer the writes, the fewer the intermediate states that readers can see
        return pieces if separate else _joined(pieces)

    def _cache(self, stored: Buffer, size: int, index: ShardIndex) -> None:
        """Cache the parsed index, keyed by its bytes and the size of its shard, because it depends on nothing else."""
        if len(stored) <= MAX_CACHED_INDEX_BYTES:
            self._cached = bytes(stored), size, index


def _bytes(entry: Entry) -> int:
    return 0 if entry[1] == ABSENT else entry[1]


def _appended(position: int, changes: Mapping[int, Buffer | None]) -> Placed:
    """Place the chunks consecutively, starting at the offset `position`."""
    placed: Placed = {}
    for i, chunk in changes.items():
        placed[i] = None if chunk is None else (position, chunk)
        position += len(chunk or b"")
    return placed


def _in_place(index: ShardIndex, end: int, changes: Mapping[int, Buffer | None]) -> Placed | None:
    """Place each chunk where the old one is. Returns None if that is not possible for one of them."""
    placed: Placed = {}
    shared = set() if index.in_order else _shared(index.table, changes)
    for i, chunk in changes.items():
        entry = None if chunk is None else index.entry(i)
        if chunk is None:
            placed[i] = None
        elif entry is None or len(chunk) > entry[1] or sum(entry) > end or i in shared:
            return None
        else:
            placed[i] = entry[0], chunk
    return placed


def _shared(table: NDArray, numbers: Collection[int]) -> set[int]:
    """Return the chunks that share bytes with other index entries (the format allows this). May over-report."""
    starts = table[:, 0]  # absent chunks start after the end of all others, so that they overlap nothing
    ends = starts + table[:, 1]  # overflows for absent chunks, and for damaged ones (refused elsewhere)
    if len(numbers) <= FEW:
        return {i for i in numbers if np.count_nonzero((starts < ends[i]) & (ends > starts[i])) > 1}
    order = np.argsort(starts, kind="stable")
    first, last = starts[order], ends[order]
    before = first[1:] < np.maximum.accumulate(last)[:-1]
    after = last[:-1] > first[1:]
    return {*order[1:][before].tolist(), *order[:-1][after].tolist()}


def _joined(pieces: Sequence[Patch]) -> Patches:
    """Merge consecutive patches."""
    found: list[tuple[int, list[Buffer]]] = []
    end = -1
    for start, piece in pieces:
        if start == end:
            found[-1][1].append(piece)
        else:
            found.append((start, [piece]))
        end = start + len(piece)
    return [(start, parts[0] if len(parts) == 1 else b"".join(parts)) for start, parts in found]


def _morton(grid: tuple[int, ...]) -> NDArray:
    """Return the Morton number of each chunk, in row-major order: the interleaved bits of its coordinates."""
    coords = np.unravel_index(np.arange(np.prod(grid, dtype=int)), grid) if grid else ()
    number = np.zeros(np.prod(grid, dtype=int), np.uint64)
    place = 0
    for bit in range(max((n - 1).bit_length() for n in grid) if grid else 0):
        for n, c in reversed(list(zip(grid, coords, strict=True))):
            if (n - 1) >> bit:
                number |= ((c.astype(np.uint64) >> np.uint64(bit)) & np.uint64(1)) << np.uint64(place)
                place += 1
    return number
