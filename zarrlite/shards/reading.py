"""A shard of the codec `sharding_indexed` as a source of elements.

Rules
- What is wanted of one inner chunk costs the index and ranges of that chunk; of several, the index and one request.
- All of a shard is read at once, or from a file by windows, and decoded some chunks at a time into their places.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zarrlite.buffers import scratch
from zarrlite.buffers.batch import Run
from zarrlite.buffers.ranges import ByteRange
from zarrlite.buffers.source import ArraySource, Budget, ByteSource, Held, Slice
from zarrlite.errors import DataError
from zarrlite.pipeline.pipeline import BATCH
from zarrlite.selections.selection import Selection, Shape
from zarrlite.shards.format import ABSENT, Box, Entry, ShardIndex, boxes

if TYPE_CHECKING:
    from zarrlite.codecs.sharding_indexed import ShardSerializer

ROWS = 2**21  # bytes of raw inner chunks that are copied at once
Array = np.ndarray[Any, Any]
Job = tuple[Shape, Selection, Selection]  # an inner chunk, what is read of it, where that goes
Found = tuple[list[ByteSource | None], int]  # the inner chunks, None for absent ones, and the bytes they have in all


class ShardSource(ArraySource):
    """A shard read by its index."""

    def __init__(self, serializer: ShardSerializer, source: ByteSource) -> None:
        self.serializer = serializer
        self.source = source

    def read(self, selection: Selection, out: Array | None = None) -> Array | None:
        bound = self.serializer
        if selection.covers(bound.spec.shape) and not bound.limit.per_byte:
            return self._read_whole(out)
        only = selection.only_chunk(bound.codec.chunk_shape) if self.source.partial else None
        if only is not None:
            return self._read_one(*only, out)
        find = self._chunks if not self.source.partial or selection.spans_all(bound.spec.shape) else self._entries
        jobs = list(selection.project(bound.codec.chunk_shape))
        found = find(jobs)
        if found is None:
            return None
        sources, stored = found
        out = np.empty(selection.shape, bound.spec.dtype)
        # where elements vary in length, many entries that point at the same bytes could be a bomb
        budget = Budget(bound.limit.of(stored)) if bound.limit.per_byte else None
        for (coords, inside, outside), source in zip(jobs, sources, strict=True):
            if source is None:
                outside.put(out, bound.spec.fill)
                continue
            try:
                part = bound.inner.read(source, inside, budget)
                if part is None:
                    raise gone()
            except DataError as error:
                raise named(coords, error) from error.__cause__
            outside.put(out, part)
        return out

    def _read_one(self, coords: Shape, inside: Selection, out: Array | None) -> Array | None:
        """What is wanted of a single inner chunk."""
        bound = self.serializer
        entry = bound.format.find(self.source, bound.number(coords))
        if entry is None:
            return None
        if entry[0] == ABSENT:
            return np.broadcast_to(bound.spec.fill, inside.shape)
        try:
            budget = Budget(bound.limit.of(entry[1])) if bound.limit.per_byte else None
            part = bound.inner.read(Slice(self.source, *entry), inside, budget, out)
            if part is None:
                raise gone()
        except DataError as error:
            raise named(coords, error) from error.__cause__
        return part

    def _read_whole(self, out: Array | None) -> Array | None:
        """Every element, chunk by chunk into its place."""
        bound = self.serializer
        source = self.source if self.source.lends else Held(self.source.read_all())
        index = bound.format.read_index(source)
        if index is None:
            return None
        if out is None or out.dtype != bound.spec.dtype:
            out = np.empty(bound.spec.shape, bound.spec.dtype)
        blocks = bound.blocks(out)
        if bound.inner.raw_dtype is not None and self._copy_rows(source, index, blocks):
            return out
        parts = list(boxes(bound.grid, max(bound.inner.together, BATCH // max(1, bound.inner.nbytes))))
        most = parts[0][1].stop * (bound.inner.serializer.encoded_size or 0) if bound.inner.together > 1 else 0
        memory = scratch.take(most)  # of one batch, for all of them
        windows = _windows(source, index, [numbers for _, numbers in parts])
        for (box, _), (chunks, present) in zip(parts, windows, strict=True):
            self._decode(chunks, present, box, blocks[(*box, ...)], memory)
        scratch.give(memory)
        return out

    def _copy_rows(self, source: ByteSource, index: ShardIndex, blocks: Array) -> bool:
        """Raw inner chunks in the order of the index, some rows of them at a time."""
        bound = self.serializer
        length = bound.inner.encoded_size or 0
        first = index.regular(length)
        row = length * math.prod(bound.grid[1:])
        if first is None or not bound.grid or first < index.lowest or first + row * bound.grid[0] > index.end:
            return False
        step = max(1, ROWS // row)
        for i in range(0, bound.grid[0], step):
            part = blocks[i : i + step]
            start = first + i * row
            data = source.borrow(ByteRange(start, start + len(part) * row))
            if data is None or len(data) != len(part) * row:
                return False
            part[...] = np.frombuffer(data, bound.inner.raw_dtype).reshape(part.shape)
        return True

    def _decode(self, chunks: Run, present: Array, box: Box, blocks: Array, memory: memoryview) -> None:
        """Inner chunks into their places, which are a box of the grid; those that are not present are absent."""
        inner, fill = self.serializer.inner, self.serializer.spec.fill
        if inner.together > 1:
            with contextlib.suppress(Exception):  # which comes again below, with the chunk that it is about
                self._decode_together(chunks, present, blocks, memory)
                return
        places: Any = itertools.product(*map(range, blocks.shape[: len(box)]))
        following = iter(chunks)
        for coords, there in zip(places, present.tolist(), strict=True):
            try:
                if there:
                    inner.decode_to(blocks[(*coords, ...)], next(following))
                else:
                    blocks[(*coords, ...)] = fill
            except DataError as error:
                place = tuple(along.start + c for along, c in zip(box, coords, strict=True))
                raise named(place, error) from error.__cause__

    def _decode_together(self, chunks: Run, present: Array, blocks: Array, memory: memoryview) -> None:
        """The same by one copy for all of them: with several threads, each copy is a wait for the others."""
        arrays = self.serializer.inner.decode_together(chunks, memory)
        if len(chunks) == len(present):
            blocks[...] = arrays.reshape(blocks.shape)
            return
        present = present.reshape(blocks.shape[: len(self.serializer.grid)])
        blocks[present] = arrays
        blocks[~present] = self.serializer.spec.fill

    def _chunks(self, jobs: list[Job]) -> Found | None:
        """The inner chunks out of the whole shard, for a source that is read whole anyway."""
        shard = self.source.read_all()
        if shard is None:
            return None
        chunks = self.serializer.format.split(shard)
        found = (chunks[self.serializer.number(coords)] for coords, _, _ in jobs)
        return [None if chunk is None else Held(chunk) for chunk in found], len(shard)

    def _entries(self, jobs: list[Job]) -> Found | None:
        """The inner chunks by their entries: one, or a shard again, by its own ranges; the others by one request."""
        index = self.serializer.format.read_index(self.source)
        if index is None:
            return None
        sources: list[ByteSource | None] = [None] * len(jobs)
        together: list[tuple[int, Entry]] = []
        entries: set[Entry] = set()
        alone = len(jobs) == 1 or self.serializer.inner.serializer.codec.inner_chunk_shape is not None
        for i, (coords, inside, _) in enumerate(jobs):
            entry = index.entry(self.serializer.number(coords))
            if entry is None:
                continue
            entries.add(entry)
            if alone and not inside.spans_all(self.serializer.codec.chunk_shape):
                sources[i] = Slice(self.source, *entry)
            else:
                together.append((i, entry))
        chunks = self.serializer.format.read_chunks(self.source, [entry for _, entry in together])
        for n, (i, _) in enumerate(together):
            sources[i] = Held(None if chunks is None else chunks[n])
        return sources, sum(length for _, length in entries)


def _windows(source: ByteSource, index: ShardIndex, parts: Sequence[slice]) -> Iterator[tuple[Run, Array]]:
    """For parts of the index that follow each other: the inner chunks, and which of them are present.

    The chunks are in memory that is lent until the next part. Where they lie far apart, as they do in another order,
    the whole shard is read at once.
    """
    present = index.check()
    firsts = [part.start for part in parts]
    ends = np.where(present, index.table.sum(axis=1), 0)
    starts = np.minimum.reduceat(index.table[:, 0], firsts).tolist()
    stops = np.maximum.reduceat(ends, firsts).tolist()
    if sum(max(0, stop - start) for start, stop in zip(starts, stops, strict=True)) > 2 * index.end:
        source = Held(source.borrow())
    for part, start, stop in zip(parts, starts, stops, strict=True):
        data = source.borrow(ByteRange(start, stop)) if start < stop else b""
        if data is None or (start < stop and len(data) != stop - start):
            raise gone()
        there = present[part]
        offsets, lengths = index.table[part][there].T
        begin = (offsets - np.uint64(start)).astype(np.int64) if len(offsets) else offsets.astype(np.int64)
        yield Run(data, begin, begin + lengths.astype(np.int64)), there


def gone() -> DataError:
    """An inner chunk that was in the index is not there any more."""
    return DataError("it has gone while the shard was read", codec="sharding_indexed")


def named(coords: Shape, error: DataError) -> DataError:
    """An error that says which inner chunk it is about."""
    return type(error)(f"inner chunk {coords}: {error.message}", codec=error.codec)
