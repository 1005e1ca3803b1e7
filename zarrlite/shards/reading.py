"""Reading shards with generators that do no I/O themselves, but yield requests (see pipeline/reading.py).

Rules
- Any number of shards is read in two rounds of requests: first all indices, then the inner chunks. Inner chunks that
  are close together are read as one range. Inner chunks that are themselves shards add a round of requests.
- A whole shard is read in blocks, and its inner chunks are decoded in batches directly into the result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from operator import floordiv, mod, mul
from typing import Any, TypeVar

import numpy as np

from zarrlite.buffers import scratch
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory
from zarrlite.errors import DataError, ShardError, TruncatedError
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, Serializer
from zarrlite.pipeline.decoding import Budget, Limit
from zarrlite.pipeline.elements import NDArray
from zarrlite.pipeline.pipeline import Pipeline, is_in, memory_of
from zarrlite.pipeline.reading import FailedPart, MissingInnerChunk, Part, Reading, Request, read_from_memory
from zarrlite.selections.selection import Selection, Shape, everything
from zarrlite.shards.format import Box, Entry, ShardFormat, ShardIndex, boxes, coalesce, cut
from zarrlite.stores.base import IN_MEMORY, Limits
from zarrlite.tuning import BATCH_BYTES, COPY_BLOCK_BYTES, MAX_SCRATCH_BYTES

T = TypeVar("T")


class InnerChunk:
    """A handle (see pipeline/reading.py) of an inner chunk: the handle of its shard, and its place in the shard."""

    __slots__ = ("length", "offset", "shard")

    def __init__(self, shard: Any, offset: int, length: int) -> None:
        self.shard = shard
        self.offset = offset
        self.length = length

    @property
    def by_key(self) -> bool:
        by_key: bool = getattr(self.shard, "by_key", False)
        return by_key

    def known_size(self) -> int:
        return self.length


class _Jobs:
    """The inner chunks that are read in one round of requests, and the destinations of their elements."""

    def __init__(self) -> None:
        self.handles: list[InnerChunk] = []
        self.parts: list[Part] = []
        self.origins: list[tuple[int, Shape]] = []  # number of the shard, and coordinates of the inner chunk in it
        # copies to make after reading: the selection in the destination array, that array, and the elements
        self.copies: list[tuple[Selection, NDArray, NDArray]] = []
        self.entries: set[Entry] = set()

    def add(
        self, number: int, coords: Shape, handle: InnerChunk, inside: Selection, place: Selection, out: Any
    ) -> None:
        if place.plain:
            target = place.take(out)
        else:
            target = np.empty(inside.shape, out.dtype)
            self.copies.append((place, out, target))
        self.handles.append(handle)
        self.parts.append((inside, target))
        self.origins.append((number, coords))
        self.entries.add((handle.offset, handle.length))


class ShardReader(Serializer):
    """Reads shards for a codec that is bound to one shard format and one shard shape."""

    def __init__(
        self, codec: ArrayBytesCodec, spec: ArraySpec, form: ShardFormat, inner: Pipeline, *, absent_is_missing: bool
    ) -> None:
        self.format = form
        self.inner = inner  # the chain of inner chunks
        super().__init__(codec, spec)
        self.absent_is_missing = absent_is_missing  # whether an absent inner chunk is an error
        self.chunk_shape = inner.spec.shape
        self._nbytes = spec.size * spec.dtype.itemsize  # size of a decoded shard
        # for each dimension of the grid: the distance in the index between chunks that are neighbours along it
        self._steps = [math.prod(form.grid[i + 1 :]) for i in range(len(form.grid))]
        layout = inner.decoded_layout
        self._has_numbers = layout is not None and layout.is_number

    def _limit(self) -> Limit:
        """Return the maximum size of a stored shard: twice the size of a full one, to allow some unused space."""
        chunk = self.inner.limit
        if chunk.per_byte:
            return Limit(super()._limit().fixed + self.format.index_size, chunk.per_byte)
        return Limit(2 * self.format.count * chunk.fixed + self.format.index_size + 2**16)

    def number(self, coords: Shape) -> int:
        """Return the position of an inner chunk in the index."""
        return sum(map(mul, coords, self._steps))

    def read(self, handles: Sequence[Any], parts: Sequence[Part], limits: Limits) -> Reading[list[int]]:
        if len(parts) == 1:
            selection, target = parts[0]
            only = selection.only_chunk(self.chunk_shape)
            if only is not None and not (selection.shape == self.spec.shape and getattr(handles[0], "by_key", False)):
                return self._read_one(handles[0], *only, target, limits)
        return self._read_several(handles, parts, limits)

    def _read_several(self, handles: Sequence[Any], parts: Sequence[Part], limits: Limits) -> Reading[list[int]]:
        """Read parts of several inner chunks.

        If a store reads shards by key instead of opening them, a whole shard takes one request unless it is large.
        """
        by_key = [getattr(handle, "by_key", False) for handle in handles]
        is_short = self._nbytes <= limits.longest
        whole = [i for i, (s, _) in enumerate(parts) if by_key[i] and is_short and s.covers(self.spec.shape)]
        index_range = self.format.index_range
        requests: list[Request] = [(h, ALL if i in whole else index_range, None) for i, h in enumerate(handles)]
        answers = yield requests, None
        for i in whole:
            self._decode_whole(i, answers[i], parts[i])
        indices = [None if i in whole else self._index(i, a, handles[i]) for i, a in enumerate(answers)]
        # determined now, because the next round of requests may overwrite the answers
        missing = [i for i, answer in enumerate(answers) if answer is None]
        jobs = _Jobs()
        for i, (handle, index, (selection, target)) in enumerate(zip(handles, indices, parts, strict=True)):
            if index is None:
                continue
            try:
                if self._reads_all(selection) and not by_key[i]:
                    yield from self._read_all(handle, index, target)
                else:
                    self._locate(i, handle, index, selection, target, jobs)
            except DataError as error:
                raise FailedPart(i, error) from error.__cause__
        if jobs.handles:
            yield from self._read_inner(jobs, limits)
        return missing

    def _decode_whole(self, i: int, data: Buffer | None, part: Part) -> None:
        """Decode a shard that has been read completely."""
        if data is not None:
            try:
                read_from_memory(self.read([InMemory(data)], [part], IN_MEMORY))
            except FailedPart as failed:
                raise FailedPart(i, failed.error) from failed.error.__cause__

    def _read_one(
        self, handle: Any, coords: Shape, inside: Selection, target: NDArray, limits: Limits
    ) -> Reading[list[int]]:
        """Read part of one inner chunk of one shard."""
        (answer,) = yield [(handle, self.format.index_range, None)], None
        if answer is None:
            return [0]
        try:
            entry = self.format.parse_index(answer, handle.known_size()).entry(self.number(coords))
            if entry is None and self.absent_is_missing:
                raise MissingInnerChunk(coords)
        except DataError as error:
            raise FailedPart(0, error) from error.__cause__
        if entry is None:
            target[...] = self.spec.fill
            return []
        layout = self.inner.layout
        try:
            if layout is not None:
                layout.check_size(entry[1])
                extent = layout.extent(inside, entry[0])
                memory = memory_of(inside, target, layout)
                found: Any = yield [(handle, byte_range, None) for byte_range in extent.ranges], memory
                if None in found:
                    raise vanished()
                if memory is None or not is_in(found[0], memory):
                    target[...] = layout.read(extent, found)
            elif self.inner.one_request:
                (value,) = yield [(handle, ByteRange(entry[0], sum(entry)), None)], None
                self.inner.place(complete(value, *entry), inside, target, self._budget(entry[1]))
            else:
                reading = self.inner.read([InnerChunk(handle, *entry)], [(inside, target)], limits)
                if (yield from within_shards(reading, limits)):
                    raise vanished()
            if getattr(handle, "by_key", False):
                self._check_end(handle, *entry)
        except FailedPart as failed:
            raise FailedPart(0, named(coords, failed.error)) from failed.error.__cause__
        except DataError as error:
            raise FailedPart(0, named(coords, error)) from error.__cause__
        return []

    def _budget(self, stored: int) -> Budget | None:
        """Return a limit for the decoded size of `stored` bytes of inner chunks. Returns None if that size is fixed."""
        return Budget(self.limit.of(stored)) if self.limit.per_byte else None

    def _reads_all(self, selection: Selection) -> bool:
        """Whether a selection is read in blocks instead of one inner chunk at a time."""
        return selection.covers(self.spec.shape) and not (self.limit.per_byte or self.absent_is_missing)

    def _check_end(self, handle: Any, offset: int, length: int) -> None:
        """Raise ShardError if an inner chunk that was read by key overlaps an index at the end of the shard.

        If a shard is stored in several parts, its size may be known only after the read, so a part that is too short
        cannot be detected earlier.
        """
        size = None if self.format.at_start else handle.known_size()
        end = None if size is None else size - self.format.index_size
        if end is not None and offset + length > end:
            raise ShardError(f"ends at {offset + length}, but the chunks of the shard end at {end}")

    def _index(self, i: int, answer: Buffer | None, handle: Any) -> ShardIndex | None:
        """Parse an index. Returns None if the shard is missing."""
        if answer is None:
            return None
        try:
            return self.format.parse_index(answer, handle.known_size())
        except DataError as error:
            raise FailedPart(i, error) from error

    def _locate(
        self, i: int, handle: Any, index: ShardIndex, selection: Selection, target: NDArray, jobs: _Jobs
    ) -> None:
        """Find the inner chunks of a selection. Absent ones are filled immediately."""
        layout = self.inner.layout
        for coords, inside, place in selection.project(self.chunk_shape):
            entry = index.entry(self.number(coords))
            if entry is None:
                if self.absent_is_missing:
                    raise MissingInnerChunk(coords)
                place.put(target, self.spec.fill)
                continue
            if layout is not None and entry[1] != layout.size:
                with _named(coords):
                    layout.check_size(entry[1])
            jobs.add(i, coords, InnerChunk(handle, *entry), inside, place, target)

    def _read_inner(self, jobs: _Jobs, limits: Limits) -> Reading[None]:
        """Read parts of inner chunks."""
        # with elements of variable length, many entries that point at the same bytes could be a decompression bomb
        budget = self._budget(sum(length for _, length in jobs.entries))
        try:
            missing = yield from within_shards(self.inner.read(jobs.handles, jobs.parts, limits, budget), limits)
            if missing:
                raise FailedPart(missing[0], vanished())
            for i, chunk in enumerate(jobs.handles if jobs.handles[0].by_key else ()):
                try:
                    self._check_end(chunk.shard, chunk.offset, chunk.length)
                except ShardError as error:
                    raise FailedPart(i, error) from None
        except FailedPart as failed:
            number, coords = jobs.origins[failed.number]
            raise FailedPart(number, named(coords, failed.error)) from failed.error.__cause__
        for place, out, elements in jobs.copies:
            place.put(out, elements)

    def element(self, handle: Any, coords: Shape) -> Reading[Any]:
        if not self._has_numbers:
            return (yield from super().element(handle, coords))
        (answer,) = yield [(handle, self.format.index_range, None)], None
        if answer is None:
            return None
        chunk = tuple(map(floordiv, coords, self.chunk_shape))
        entry = self.format.parse_index(answer, handle.known_size()).entry(self.number(chunk))
        if entry is None:
            if self.absent_is_missing:
                raise MissingInnerChunk(chunk)
            return self.spec.fill[()]
        inside = tuple(map(mod, coords, self.chunk_shape))
        layout = self.inner.layout
        try:
            if layout is None:
                (value,) = yield [(handle, ByteRange(entry[0], sum(entry)), None)], None
                found = self.inner.element(complete(value, *entry), inside)
            else:
                layout.check_size(entry[1])
                start, itemsize = entry[0] + layout.position(inside), layout.dtype.itemsize
                (value,) = yield [(handle, ByteRange(start, start + itemsize), None)], None
                found = np.frombuffer(complete(value, start, itemsize), layout.dtype)[0]
            if getattr(handle, "by_key", False):
                self._check_end(handle, *entry)
        except DataError as error:
            raise named(chunk, error) from error.__cause__
        return found

    # Whole shards

    def blocks(self, array: NDArray) -> NDArray:
        """Return a view of a shard: its first indices select an inner chunk, and the others an element in it."""
        ndim = len(self.format.grid)
        split = array.reshape([n for pair in zip(self.format.grid, self.chunk_shape, strict=True) for n in pair])
        return split.transpose([*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)])

    def _read_all(self, handle: Any, index: ShardIndex, target: NDArray) -> Reading[None]:
        """Read every element of a shard."""
        blocks = self.blocks(target)
        layout = self.inner.layout
        if layout is not None and layout.contiguous and layout.is_number and self.format.grid:
            first = index.regular(layout.size)
            if first is not None and first >= index.lowest and first + layout.size * self.format.count <= index.end:
                yield from self._copy_rows(handle, first, blocks)
                return
        inner = self.inner
        parts = list(boxes(self.format.grid, max(inner.decode_batch, BATCH_BYTES // max(1, inner.nbytes))))
        memory = scratch.acquire(parts[0][1].stop * inner.decoded_layout.size if inner.decode_batch > 1 else 0)  # type: ignore[union-attr]
        windows = yield from self._windows(handle, index, [numbers for _, numbers in parts])
        longest = max([(w.stop or 0) - w.start for w in windows if isinstance(w, ByteRange)], default=0)
        stored = scratch.acquire(longest) if longest <= MAX_SCRATCH_BYTES else None
        for (box, numbers), window in zip(parts, windows, strict=True):
            data, start = window, 0
            if window == (0, 0):
                data = b""  # all inner chunks are absent
            elif isinstance(window, ByteRange):
                (data,) = yield [(handle, window, None)], stored
                start = window.start
            self._decode(index, numbers, data, start, box, blocks[(*box, ...)], memory)
        scratch.release(memory)
        if stored is not None:
            scratch.release(stored)

    def _copy_rows(self, handle: Any, first: int, blocks: NDArray) -> Reading[None]:
        """Copy uncompressed inner chunks that are consecutive and in index order, a few rows of the grid at a time."""
        layout: Any = self.inner.layout
        row = layout.size * math.prod(self.format.grid[1:])
        step = max(1, COPY_BLOCK_BYTES // row)
        memory = scratch.acquire(step * row) if step * row <= MAX_SCRATCH_BYTES else None
        for i in range(0, self.format.grid[0], step):
            part = blocks[i : i + step]
            start = first + i * row
            (data,) = yield [(handle, ByteRange(start, start + len(part) * row), None)], memory
            if data is None or len(data) != len(part) * row:
                raise vanished()
            part[...] = np.frombuffer(data, layout.dtype).reshape(part.shape)
        if memory is not None:
            scratch.release(memory)

    def _windows(self, handle: Any, index: ShardIndex, parts: Sequence[slice]) -> Reading[list[Any]]:
        """Return the range of bytes that contains the chunks of each of these consecutive parts of the index.

        If these ranges would overlap too much because of the order of the chunks, all chunks are read with one request,
        and the bytes of all chunks are returned for each part instead.
        """
        present = index.check()
        firsts = [part.start for part in parts]
        # absent chunks affect neither starts nor stops: their offset is the largest integer, and their end is set to 0
        ends = np.where(present, index.table.sum(axis=1), 0)
        starts = np.minimum.reduceat(index.table[:, 0], firsts).tolist()
        stops = np.maximum.reduceat(ends, firsts).tolist()
        spans = [(start, stop) if start < stop else (0, 0) for start, stop in zip(starts, stops, strict=True)]
        last = max(stop for _, stop in spans)
        if sum(stop - start for start, stop in spans) <= 2 * last:
            return [ByteRange(start, stop) for start, stop in spans]
        (data,) = yield [(handle, ByteRange(0, last), None)], None
        return [b"" if data is None else bytes(data)] * len(parts)

    def _decode(
        self,
        index: ShardIndex,
        numbers: slice,
        data: Buffer | None,
        start: int,
        box: Box,
        blocks: NDArray,
        memory: memoryview,
    ) -> None:
        """Decode the inner chunks of a box into `blocks`; `data` contains the shard's bytes from offset `start`."""
        view = memoryview(b"" if data is None else data)
        entries = index.table[numbers].tolist()
        places: list[Any] = [*itertools.product(*map(range, blocks.shape[: len(box)]))]
        values: list[memoryview] = []
        present: list[Any] = []
        for coords, (offset, length) in zip(places, entries, strict=True):
            if length > index.longest or offset > index.end:  # absent; damaged entries have been refused already
                blocks[(*coords, ...)] = self.spec.fill
                continue
            value = view[offset - start : offset - start + length]
            if len(value) != length:
                raise vanished()
            values.append(value)
            present.append(coords)
        if self.inner.decode_batch > 1 and values and self._decode_together(values, present, places, blocks, memory):
            return
        for coords, value in zip(present, values, strict=True):
            with _named(tuple(along.start + c for along, c in zip(box, coords, strict=True))):
                self.inner.place(value, everything(self.chunk_shape), blocks[(*coords, ...)])

    def _decode_together(
        self, values: list[memoryview], present: list[Any], places: list[Any], blocks: NDArray, memory: memoryview
    ) -> bool:
        """Decode inner chunks together. Returns False if one of them is damaged."""
        arrays = self.inner.decode_many(values, memory)
        if arrays is None:
            return False
        if len(present) == len(places):
            blocks[...] = arrays.reshape(blocks.shape)
        else:
            for coords, array in zip(present, arrays, strict=True):
                blocks[(*coords, ...)] = array
        return True


def within_shards(reading: Reading[T], limits: Limits) -> Reading[T]:
    """Run the generator `reading`, translating its requests for inner chunks into requests for their shards."""
    answers: Sequence[Buffer | None] | None = None
    while True:
        try:
            requests, memory = next(reading) if answers is None else reading.send(answers)
        except StopIteration as done:
            result: T = done.value
            return result
        if len(requests) == 1:
            ((chunk, byte_range, _),) = requests
            low, high = byte_range.resolve(chunk.length)
            answers = yield [(chunk.shard, ByteRange(chunk.offset + low, chunk.offset + high), None)], memory
            if answers[0] is not None:
                complete(answers[0], chunk.offset + low, high - low)
        else:
            answers = yield from _read_ranges(requests, limits)


def _read_ranges(requests: list[Request], limits: Limits) -> Reading[Sequence[Buffer | None]]:
    """Read ranges of several inner chunks. Ranges of one shard that are close together are read as one."""
    by_shard: dict[int, list[int]] = {}
    entries: list[Entry] = []
    for i, (chunk, byte_range, _) in enumerate(requests):
        low, high = byte_range.resolve(chunk.length)
        entries.append((chunk.offset + low, high - low))
        by_shard.setdefault(id(chunk.shard), []).append(i)
    plans = [(numbers, *coalesce([entries[i] for i in numbers], limits)) for numbers in by_shard.values()]
    found = yield [(requests[numbers[0]][0].shard, r, None) for numbers, ranges, _ in plans for r in ranges], None
    buffers = iter(found)
    answers: list[Buffer | None] = [None] * len(requests)
    for numbers, ranges, places in plans:
        held = [next(buffers) for _ in ranges]
        if None in held:
            continue
        chunks = cut([entries[i] for i in numbers], places, held)  # type: ignore[arg-type]
        for i, chunk in zip(numbers, chunks, strict=True):
            answers[i] = chunk
    return answers


class _named:
    """Context manager that adds the coordinates of an inner chunk to a DataError."""

    __slots__ = ("coords",)

    def __init__(self, coords: Shape) -> None:
        self.coords = coords

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, FailedPart):
            error = error.error
        if isinstance(error, DataError):
            raise named(self.coords, error) from error.__cause__


def named(coords: Shape, error: Any) -> Any:
    """Add the coordinates of an inner chunk to an error if it is a DataError. Returns other errors unchanged."""
    if isinstance(error, MissingInnerChunk):
        return MissingInnerChunk(coords, *error.path)
    if not isinstance(error, DataError):
        return error
    return type(error)(f"inner chunk {coords}: {error.message}", codec=error.codec)


def complete(value: Buffer | None, offset: int, length: int) -> Buffer:
    """Return the bytes of an inner chunk. Raises DataError if some are missing."""
    if value is None:
        raise vanished()
    if len(value) != length:
        raise TruncatedError(f"has only {len(value)} of {length} bytes at offset {offset}")
    return value


def vanished() -> DataError:
    """Return the error for an inner chunk that is listed in the index but not stored."""
    return DataError("disappeared while the shard was read", codec="sharding_indexed")
