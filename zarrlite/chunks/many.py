"""Many chunks of an array at once, by several threads: the same as one after the other, in less time.

Rules
- Threads hand the interpreter over at every system call. So they are given long steps without it: small chunks are
  fetched, decoded and copied, or packed, encoded and stored, many at a time.
- What goes wrong in a batch is done again chunk by chunk, one of which says what is wrong, and with which.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from zarrlite import threads
from zarrlite.buffers import scratch
from zarrlite.buffers.ranges import Buffer
from zarrlite.chunks.single import Chunks, Job, NDArray
from zarrlite.errors import MissingChunkError
from zarrlite.pipeline.pipeline import BATCH, Pipeline
from zarrlite.selections.selection import Selection, Shape
from zarrlite.selections.sparse import Scattered, scattered
from zarrlite.stores.base import Change

SMALL = 2**18  # bytes of a chunk below which a second thread is in the way, if there is nothing to do but copy
RAW = 2**16  # bytes of a chunk, stored as it is, of which all is read at once if more than a few rows are needed
READ_BATCH = 2**21  # decoded bytes that are read together at most
WRITE_BATCH = 2**22  # and written, if they are not compressed
MOST_TURNS = 16  # chunks that a thread takes at once, to decode one after the other
MOST_FEW = 32  # chunks of which a few elements are read together: what is read of them stays near
MANY = 2**10  # chunks that are handled together at most, however small they are


class BatchedChunks(Chunks):
    """The stored chunks of an array, read and written many at once."""

    def _read_many(self, selection: Selection, out: NDArray) -> None:
        pipeline = self._pipeline
        if pipeline is None:  # a chain of its own for each chunk
            threads.run(lambda job: self._read_chunk(*job, out), self.grid.project(selection), out.nbytes)
            return
        shape, nbytes = pipeline.spec.shape, pipeline.nbytes
        small = len(shape) > 0 and pipeline.raw_dtype is not None and self.store.quick_reads and nbytes <= RAW
        in_turn = pipeline.together > 1 and pipeline.decoders.take_turns
        few = scattered(selection, shape) if small or in_turn else None
        jobs: Iterator[Job] = self.grid.project(selection) if few is None else few.jobs()
        little = small and selection.plain and selection.steps is None and 4 * selection.shape[0] <= shape[0]
        together = pipeline.together > 1 or (small and not little)
        count = selection.spread(shape)
        work = nbytes * count if pipeline.decoders.whole or together else out.nbytes
        if in_turn:
            some = threads.batches(jobs, max(1, min(MOST_TURNS, count // (32 * threads.workers()))))
            threads.share(lambda shared: self._read_in_turn(shared, pipeline, out), some, work)
        elif few is not None:
            for first in range(0, len(few.chunks), MOST_FEW):
                self._read_few(few, first, pipeline, out)
        elif together:
            # as many as still leave two steps for every thread: they meet less often then
            most = min(READ_BATCH // nbytes, scratch.MOST // sum(_rooms(pipeline)), MANY)
            batches = threads.batches(jobs, max(1, most // 4, min(most, count // (2 * threads.workers()))))
            threads.run(lambda batch: self._read_batch(batch, pipeline, out), batches, work)
        elif little:
            for job in jobs:
                self._read_little(job, pipeline, out)
        else:
            alone = self.store.quick_reads and nbytes < SMALL and not pipeline.decoders.whole
            threads.run(lambda job: self._read_chunk(*job, out), jobs, 0 if alone else work)

    def _read_batch(self, jobs: list[Job], pipeline: Pipeline, out: NDArray) -> None:
        """Several small chunks: all are fetched, all are decoded, all are copied, so that threads seldom meet."""
        room, decoded = _rooms(pipeline)
        memory = scratch.take(len(jobs) * (room + decoded))
        keys = [self._encode_key(coords) for coords, _, _ in jobs]
        values = self.store.fetch(keys, memory[len(jobs) * decoded :], room)  # behind what will be decoded
        if None in values:
            if not pipeline.decoders.whole:  # a part of a chunk may be had at less cost
                for job in [job for job, value in zip(jobs, values, strict=True) if value is None]:
                    self._read_chunk(*job, out)
                jobs = [job for job, value in zip(jobs, values, strict=True) if value is not None]
                values = [value for value in values if value is not None]
            else:
                values = [self._value(key, pipeline) if v is None else v for key, v in zip(keys, values, strict=True)]
        try:
            if None in values and self.options.missing_chunks == "error":
                raise MissingChunkError("is missing")
            arrays = pipeline.decode_each([value for value in values if value is not None], memory)
        except Exception:
            for job in jobs:  # one of which says what is wrong, and with which chunk
                self._read_chunk(*job, out)
            return
        _put(out, jobs, values, arrays, pipeline)
        scratch.give(memory)

    def _read_in_turn(self, batches: Iterator[list[Job]], pipeline: Pipeline, out: NDArray) -> None:
        """Chunks one after the other, all in the same memory, so that it stays near."""
        room, decoded = _rooms(pipeline)
        memory = scratch.take(decoded + room)
        place, fetched = memory[:decoded], memory[decoded:]
        encode_key, fetch, decode_into = self._encode_key, self.store.fetch, pipeline.decoders.decode_into
        array: NDArray = np.ndarray(pipeline.spec.shape, pipeline.serializer.raw_dtype, place)
        for job in itertools.chain.from_iterable(batches):
            coords, inside, outside = job
            (value,) = fetch((encode_key(coords),), fetched, room)
            with contextlib.suppress(Exception):  # which comes again below, with the chunk that it is about
                if value is not None and decode_into(value, place) is place:
                    outside.put(out, inside.take(array))
                    continue
            self._read_chunk(*job, out)
        scratch.give(memory)

    def _value(self, key: str, pipeline: Pipeline) -> Buffer | None:
        """The stored form of a chunk."""
        source = self.store.source(key)
        source.max_size = pipeline.max_size
        try:
            return source.read_all()
        except Exception as error:
            self._failed(error, key, "decoded")
        finally:
            source.close()

    def _read_little(self, job: Job, pipeline: Pipeline, out: NDArray) -> None:
        """A few rows of a chunk that is stored as it is."""
        coords, inside, outside = job
        start, length = pipeline.extent(inside)
        value = self.store.peek(self._encode_key(coords), start, length, pipeline.nbytes)
        if value is None or len(value) != length:
            self._read_chunk(*job, out)  # missing, or damaged, or read otherwise
        else:
            outside.put(out, np.ndarray(inside.shape, pipeline.raw_dtype, value, strides=pipeline.strides))

    def _read_few(self, few: Scattered, first: int, pipeline: Pipeline, out: NDArray) -> None:
        """A few elements of each of some chunks that are stored as they are, and what lies between them."""
        chunks = few.chunks[first : first + MOST_FEW]
        bounds = np.array(few.bounds[first : first + len(chunks) + 1])
        part = slice(bounds[0], bounds[-1])
        elements, firsts = few.elements[part], bounds[:-1] - bounds[0]
        lows = np.minimum.reduceat(elements, firsts)
        lengths = np.maximum.reduceat(elements, firsts) - lows + 1
        size = pipeline.spec.dtype.itemsize
        keys, starts, sizes = map(self._encode_key, chunks), (lows * size).tolist(), (lengths * size).tolist()
        ranges = zip(keys, starts, sizes, strict=True)
        values: list[Any] = [self.store.peek(key, start, n, pipeline.nbytes) for key, start, n in ranges]
        wrong = [i for i, (value, n) in enumerate(zip(values, sizes, strict=True)) if value is None or len(value) != n]
        for i in wrong:
            values[i] = bytes(sizes[i])
        data = np.frombuffer(b"".join(values), pipeline.raw_dtype)
        moved = np.repeat(lengths.cumsum() - lengths - lows, np.diff(bounds))
        out.put(few.places[part], data[elements + moved])
        for i in wrong:  # missing, or damaged, or read otherwise
            self._read_chunk(*few.job(first + i), out)

    def _write_many(self, selection: Selection, values: NDArray, fields: Any) -> None:
        pipeline = self.pipeline((0,) * selection.ndim)
        nbytes = math.prod(selection.shape) * pipeline.spec.dtype.itemsize
        count = BATCH // pipeline.nbytes
        if pipeline.nbytes < SMALL and pipeline.raw_dtype is not None:
            count = max(count, min(WRITE_BATCH // pipeline.nbytes, selection.spread(pipeline.spec.shape) // 8))
        batches = threads.batches(self.grid.project(selection), max(1, min(count, MANY)))
        threads.run(lambda batch: self._write_batch(batch, values, fields), batches, nbytes)

    def _write_batch(self, jobs: list[Job], values: NDArray, fields: Any) -> None:
        """Several small chunks, which the store gets together."""
        pipeline = self.pipeline(jobs[0][0])
        if len(jobs) > 1 and not pipeline.patches:
            memory = scratch.take(len(jobs) * pipeline.nbytes)  # to pack them
            with contextlib.suppress(Exception):
                self.store.update_many(self._changes(jobs, values, fields, memory))
                scratch.give(memory)
                return
        for job in jobs:  # at one of which it fails again, if it has failed
            self._write_chunk(job, values, fields)

    def _changes(
        self, jobs: list[Job], values: NDArray, fields: Any, memory: memoryview
    ) -> Iterable[tuple[str, Change]]:
        """The same as `_change` of each; whole chunks are packed and encoded together where that is best."""
        pipeline = self._pipeline
        plain = pipeline is not None and not pipeline.needs_old and fields is None and values.ndim
        if pipeline is None or not plain or not all(inside.covers(pipeline.spec.shape) for _, inside, _ in jobs):
            return (self._change(job, values, fields) for job in jobs)
        keys = [self._encode_key(coords) for coords, _, _ in jobs]
        if pipeline.together > 1 or (pipeline.raw_dtype is not None and self.store.gathers):
            packed: NDArray = np.ndarray((len(jobs), *pipeline.spec.shape), pipeline.spec.dtype, memory)
            row = _row(values, [outside for _, _, outside in jobs], pipeline.spec.shape)
            if row is not None:
                packed[...] = row
            else:
                for array, (_, _, outside) in zip(packed, jobs, strict=True):
                    array[...] = outside.take(values)
            made = map(self._whole, pipeline.write_many(packed, [True] * len(jobs)))
            return list(zip(keys, made, strict=True))
        each = (self._whole(pipeline.write_pieces(outside.take(values))) for _, _, outside in jobs)
        changes = zip(keys, each, strict=True)
        return changes if pipeline.max_size is None else list(changes)  # or there is no telling how much that is


def _rooms(pipeline: Pipeline) -> tuple[int, int]:
    """Bytes for a stored chunk, one more than it can have, so that a longer one is noticed; and decompressed."""
    return (pipeline.max_size or 0) + 1, (pipeline.serializer.encoded_size or 0) if pipeline.compressors else 0


def _put(out: NDArray, jobs: list[Job], values: list[Any], arrays: Iterable[NDArray], pipeline: Pipeline) -> None:
    """What is read of several chunks to its places, by one operation if they lie side by side; None: it is missing."""
    places = [outside for _, _, outside in jobs]
    if isinstance(arrays, np.ndarray) and len(arrays) == len(jobs):
        row = _row(out, places, pipeline.spec.shape)
        if row is not None and all(inside.covers(pipeline.spec.shape) for _, inside, _ in jobs):
            row[...] = arrays
            return
    there, fill = iter(arrays), pipeline.spec.fill
    parts = (
        np.broadcast_to(fill, inside.shape) if value is None else inside.take(next(there))
        for (_, inside, _), value in zip(jobs, values, strict=True)
    )
    views = all(inside.plain for _, inside, _ in jobs)  # not so if points are picked, perhaps again and again
    side = _side(places) if views and out.dtype.kind in "biufc" else None
    if side is None:
        for place, part in zip(places, parts, strict=True):
            place.put(out, part)
    else:
        axis, box = side
        np.concatenate(list(parts), axis, box.take(out), casting="unsafe")  # as an assignment does


def _side(places: list[Selection]) -> tuple[int, Selection] | None:
    """The axis along which places of a grid lie side by side, and the box that they make; None: they do not."""
    if len(places) < 2:
        return None
    first = places[0]
    ends = zip(first.starts, places[-1].starts, strict=False)  # none, if one of them is not plain
    axes = [axis for axis, (start, last) in enumerate(ends) if start != last]
    if len(axes) != 1:
        return None
    (axis,) = axes
    before, position, behind = first.starts[:axis], first.starts[axis], first.starts[axis + 1 :]
    for place in places:
        if place.starts != (*before, position, *behind):
            return None
        position += place.shape[axis]
    lengths = (*first.shape[:axis], position - first.starts[axis], *first.shape[axis + 1 :])
    return axis, Selection.box(first.starts, lengths)


def _row(array: NDArray, places: list[Selection], shape: Shape) -> NDArray | None:
    """Parts of an array that have one shape, as one view, if they lie in a row."""
    side = _side(places)
    if side is None or any(place.shape != shape for place in places):
        return None
    axis, box = side
    return np.moveaxis(box.take(array).reshape(*shape[:axis], -1, *shape[axis:]), axis, 0)
