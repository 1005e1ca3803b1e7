"""How shards are written: the order of their chunks, room for a header, and what is done when some chunks change.

Rules
- "Any configuration parameters for the write strategy must not be part of the metadata" (draft `sharding`): they are
  runtime options, the same for the codec and for the draft's transformer.
- `rewrite` makes a new shard, which replaces the old one whole: readers and crashes see the one or the other.
- `in-place` overwrites chunks that fit where the old ones are, then the index if it changes. A crash can damage the
  chunks that are being written, and the index of a shard whose chunks change in size.
- `append` puts chunks behind the shard and a new index behind them, by one write; nothing old is overwritten, save an
  index at the start. Whoever reads in the middle of it, or after a crash there, finds a shard that ends without its
  index, and notices that by the checksum of the index, if it has one. Where the index is a stored object of its own, it
  is swapped after the data, whole: readers and crashes see the old chunks or the new ones.
- Where that is not possible, or more than half of a shard would be unused, it is rewritten. A shard whose index is an
  object of its own is not made smaller that way: that would not be safe. Write it whole for that.
- Inner shards of shards are always rewritten: they are values within a value.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from zarrlite.buffers.packing import STEP, Packed
from zarrlite.buffers.ranges import Buffer, Pieces, joined
from zarrlite.buffers.source import ByteSource
from zarrlite.cached import cached_property
from zarrlite.errors import ArgumentError, DataError
from zarrlite.pipeline.codec import Piece
from zarrlite.shards.format import ABSENT, ShardFormat, ShardIndex, boxes

STRATEGIES: Final = ("rewrite", "in-place", "append")
MAX_CHUNKS: Final = 2**20  # of a shard that is written
MAX_HEADER: Final = 2**31
MOST_KNOWN: Final = 2**16  # bytes of an index that is kept
FEW: Final = 8  # chunks that are looked at one by one
ORDERS: Final = ("row-major", "column-major", "morton")
Table = np.ndarray[Any, Any]
Placed = dict[int, Piece | None]  # chunks by number, and where they go; None: nowhere, they are absent


class Writing(NamedTuple):
    """The runtime options of both kinds of sharding."""

    strategy: str = "rewrite"
    order: str = "row-major"
    header: int = 0  # unused bytes at the start of a shard; offsets count them

    def check(self, location: str) -> None:
        """Refuse what is no option; `location` is that of the index."""
        for name, allowed in (("strategy", STRATEGIES), ("order", ORDERS)):
            value = getattr(self, name)
            if value not in allowed:
                raise ArgumentError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
        if isinstance(self.header, bool) or not isinstance(self.header, int) or not 0 <= self.header <= MAX_HEADER:
            raise ArgumentError(f"header must be a number of bytes, not {self.header!r}")
        if self.header and location == "start":
            raise ArgumentError("a header has no room at the start of a shard that begins with its index")


class ShardWriter:
    """Makes and changes shards of a format."""

    def __init__(self, form: ShardFormat, writing: Writing) -> None:
        self.form = form
        self.writing = writing
        self.patches = writing.strategy != "rewrite"  # whether a shard can be changed where it lies
        # whether a new shard depends on the one that it replaces
        self.needs_old = writing.header > 0 or form.index_pipeline.needs_old
        # whether the chunks come first in a shard, in the order of the index, and depend on nothing old
        self.streams = not (form.at_start or self.needs_old) and writing.order == "row-major"
        self._known: tuple[bytes, int, ShardIndex] | None = None

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
        """Refuse shards of too many chunks."""
        if self.form.count > MAX_CHUNKS:
            raise ArgumentError(f"a shard of {self.form.count} chunks cannot be written; use larger ones")

    def chunks(self, old: Buffer | None) -> list[Buffer | None]:
        """The chunks of an old shard, all absent if there is none, to be changed and joined again."""
        self.check()
        return [None] * self.form.count if old is None else self.form.split(old)

    def join(self, chunks: Sequence[Buffer | None], old: Buffer | None = None) -> Buffer:
        """A shard of these chunks (None for absent ones) without gaps, in place of an old one."""
        return joined(self.pieces(chunks, old))

    def pieces(self, chunks: Sequence[Buffer | None], old: Buffer | None = None) -> Pieces:
        """The same in pieces."""
        form = self.form
        table = np.full((form.count, 2), ABSENT, np.uint64)
        present = [i for i in self.sequence if chunks[i] is not None]
        pieces: list[Any] = [chunks[i] for i in present]
        lengths = np.fromiter(map(len, pieces), np.uint64, len(pieces))
        table[present, 0] = np.cumsum(lengths) - lengths + (form.index_size if form.at_start else self.writing.header)
        table[present, 1] = lengths
        index = self.index(table, None if old is None else form.index_range.of(memoryview(old)))
        return [index, *pieces] if form.at_start else [self._header(old), *pieces, index]

    def replace(self, view: memoryview, index: ShardIndex, changes: Mapping[int, Buffer | None]) -> Pieces | None:
        """The same in pieces, most of them runs of the old shard; None: it has gaps, another order, or gets empty."""
        form, present = self.form, index.check()
        lengths = np.where(present, index.table[:, 1], np.uint64(0)).astype(np.int64)
        first = form.index_size if form.at_start else self.writing.header
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

    def regular(self, blocks: Table, length: int, old: Buffer | None) -> Pieces:
        """A shard that has all chunks, of one length, as they are, in the order of the index."""
        form, header = self.form, self._header(old)
        table = np.empty((form.count, 2), np.uint64)
        start = form.index_size if form.at_start else len(header)
        table[:, 0] = start + np.arange(form.count, dtype=np.uint64) * np.uint64(length)
        table[:, 1] = length
        index = self.index(table, None if old is None else form.index_range.of(memoryview(old)))
        packed = Packed(blocks, [blocks[(*box, ...)] for box, _ in boxes(form.grid, STEP // length)])
        return [index, packed] if form.at_start else [header, packed, index]

    def _header(self, old: Buffer | None) -> Buffer:
        """What is at the start of the old shard, unless that is a chunk; zeros if there is nothing."""
        room = self.writing.header
        if room and old is not None and len(old) >= room + self.form.index_size:
            view = memoryview(old)
            with contextlib.suppress(DataError):  # a damaged shard has nothing to keep
                if not (self.form.index_of(view).table[:, 0] < room).any():
                    return view[:room]
        return bytes(room)

    def index(self, table: Table, old: Buffer | None = None) -> Buffer:
        """The stored form of an index, in place of an old one."""
        pipeline = self.form.index_pipeline
        return pipeline.encode(table.reshape(pipeline.spec.shape), old)

    def read_index(self, source: ByteSource) -> ShardIndex | None:
        """As by the format; most often it is the one of last time, of this shard or of one like it."""
        data, size, known = source.read_one(self.form.index_range), source.known_size(), self._known
        if data is None:
            return None
        if known is not None and known[1] == size and known[0] == bytes(data):
            return known[2]
        index = self.form.parse_index(data, size)
        if size is not None:
            self._keep(data, size, index)
        return index

    def patch(self, source: ByteSource, index: ShardIndex, changes: Mapping[int, Buffer | None]) -> list[Piece] | None:
        """What to overwrite, in this order, so that chunks of a stored shard change; None: write it anew."""
        size = source.known_size()
        size = source.size() if size is None else size
        if size is None:
            return None
        tail = 0 if self.form.at_start else self.form.index_size
        alone = tail > 0 and source.apart == tail
        if self.writing.strategy == "append":
            end = size - tail if alone else size
            placed = _behind(end, changes)
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
            used = filled + self.form.index_size + self.writing.header
            if (None in placed.values() and (table[:, 1] == ABSENT).all()) or (not alone and used < end / 2):
                return None
            old = source.read_one(self.form.index_range) if self.form.index_pipeline.needs_old else None
            stored = self.index(table, old)
            pieces.append((end - tail if tail else 0, stored))
            new = ShardIndex(self.form, table.data.cast("B"), table.dtype, end - tail)
            new.filled = filled
            self._keep(stored, end, new)
        # by as few writes as can be: what is not there in between cannot be seen
        return pieces if alone else _joined(pieces)

    def _keep(self, stored: Buffer, size: int, index: ShardIndex) -> None:
        """Know an index again when it is read from a shard of this size: what it says depends on nothing else."""
        if len(stored) <= MOST_KNOWN:
            self._known = bytes(stored), size, index


def _bytes(entry: tuple[int, ...]) -> int:
    return 0 if entry[1] == ABSENT else entry[1]


def _behind(position: int, changes: Mapping[int, Buffer | None]) -> Placed:
    """The chunks one after the other from a position on."""
    placed: Placed = {}
    for i, chunk in changes.items():
        placed[i] = None if chunk is None else (position, chunk)
        position += len(chunk or b"")
    return placed


def _in_place(index: ShardIndex, end: int, changes: Mapping[int, Buffer | None]) -> Placed | None:
    """Each chunk where the old one is; None: one does not fit there."""
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


def _shared(table: Table, numbers: Collection[int]) -> set[int]:
    """Those chunks in whose place another one has bytes, for overlapping entries are not forbidden; or some more."""
    starts = table[:, 0]  # of absent ones: behind every end, so that nothing meets them
    ends = starts + table[:, 1]  # which overflows for absent ones, and for damaged ones, which are not looked at here
    if len(numbers) <= FEW:
        return {i for i in numbers if np.count_nonzero((starts < ends[i]) & (ends > starts[i])) > 1}
    order = np.argsort(starts, kind="stable")
    first, last = starts[order], ends[order]
    before = first[1:] < np.maximum.accumulate(last)[:-1]
    behind = last[:-1] > first[1:]
    return {*order[1:][before].tolist(), *order[:-1][behind].tolist()}


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """The same pieces, those that follow each other as one."""
    found: list[tuple[int, list[Buffer]]] = []
    end = -1
    for start, piece in pieces:
        if start == end:
            found[-1][1].append(piece)
        else:
            found.append((start, [piece]))
        end = start + len(piece)
    return [(start, parts[0] if len(parts) == 1 else b"".join(parts)) for start, parts in found]


def _morton(grid: tuple[int, ...]) -> Table:
    """For each chunk, row-major, its number along the Morton curve: the bits of its coordinates, interleaved."""
    coords = np.unravel_index(np.arange(np.prod(grid, dtype=int)), grid) if grid else ()
    number = np.zeros(np.prod(grid, dtype=int), np.uint64)
    place = 0
    for bit in range(max((n - 1).bit_length() for n in grid) if grid else 0):
        for n, c in reversed(list(zip(grid, coords, strict=True))):
            if (n - 1) >> bit:
                number |= ((c.astype(np.uint64) >> np.uint64(bit)) & np.uint64(1)) << np.uint64(place)
                place += 1
    return number
