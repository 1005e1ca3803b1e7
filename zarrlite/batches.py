"""Many chunks of an array at once, by several threads: the same as one after the other, in less time.

Rules
- Threads hand the interpreter over at every system call. So they are given long steps without it: small chunks are
  fetched, decoded and copied, or packed, encoded and stored, many at a time.
- What goes wrong in a batch is done again chunk by chunk, one of which says what is wrong, and with which.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from zarrlite import lent, parallel
from zarrlite.chunks import Chunks, Job, NDArray
from zarrlite.errors import MissingChunkError
from zarrlite.pipeline import BATCH, Pipeline
from zarrlite.ranges import Buffer
from zarrlite.selection import Selection, Shape
from zarrlite.stores.base import Change

SMALL = 2**18  # bytes of a chunk below which a second thread is in the way, if there is nothing to do but copy
RAW = 2**16  # bytes of a chunk of which all is read at once, whatever is needed, if it is stored as it is
READ_BATCH = 2**21  # decoded bytes that are read together at most
WRITE_BATCH = 2**22  # and written, if they are not compressed


class BatchedChunks(Chunks):
    """The stored chunks of an array, read and written many at once."""

    def _read_many(self, selection: Selection, out: NDArray) -> None:
        pipeline = self.pipeline((0,) * selection.ndim)
        nbytes = out.nbytes
        if pipeline.whole:
            nbytes = pipeline.nbytes * selection.spread(pipeline.spec.shape)
        elif self.store.quick_reads and pipeline.nbytes < SMALL:
            nbytes = 0
        jobs = self.grid.project(selection)
        if pipeline.together > 1:
            # as many as still leave something to do for every thread: they meet less often then
            count = min(READ_BATCH // pipeline.nbytes, selection.spread(pipeline.spec.shape) // 8)
            batches = parallel.batches(jobs, max(pipeline.together, count))
            parallel.run(lambda batch: self._read_batch(batch, pipeline, out), batches, nbytes)
        elif pipeline.raw_dtype is not None and self.store.quick_reads and pipeline.nbytes <= RAW:
            self._read_raw(jobs, pipeline, out)
        else:
            parallel.run(lambda job: self._read_chunk(*job, out), jobs, nbytes)

    def _read_batch(self, jobs: list[Job], pipeline: Pipeline, out: NDArray) -> None:
        """Several small chunks: all are fetched, all are decoded, all are copied, so that threads seldom meet."""
        room = (pipeline.max_size or 0) + 1
        memory = lent.take(len(jobs) * room)
        values: list[Buffer | None] = []
        position = 0
        for coords, _, _ in jobs:
            value = self._fetch(coords, pipeline, memory[position : position + room])
            position += 0 if value is None else len(value)
            values.append(value)
        try:
            if None in values and self.options.missing_chunks == "error":
                raise MissingChunkError("is missing")
            arrays = iter(pipeline.decode_each([value for value in values if value is not None]))
        except Exception:
            for job in jobs:  # one of which says what is wrong, and with which chunk
                self._read_chunk(*job, out)
            return
        for (_, inside, outside), value in zip(jobs, values, strict=True):
            outside.put(out, pipeline.spec.fill if value is None else inside.take(next(arrays)))
        lent.give(memory)

    def _read_raw(self, jobs: Iterator[Job], pipeline: Pipeline, out: NDArray) -> None:
        """Small chunks as they are stored."""
        count = max(1, BATCH // pipeline.nbytes)
        memory = lent.take(count * pipeline.nbytes + 1)
        for batch in parallel.batches(jobs, count):
            done = self._read_row(batch, pipeline, out, memory)
            for job in batch[done:]:
                self._read_raw_chunk(job, pipeline, out, memory)
        lent.give(memory)

    def _read_row(self, jobs: list[Job], pipeline: Pipeline, out: NDArray, memory: memoryview) -> int:
        """Whole chunks: all are fetched, then all are copied; how many of the first that could be done with."""
        size, shape = pipeline.nbytes, pipeline.spec.shape
        done = 0
        for coords, inside, _ in jobs:
            view = memory[done * size : (done + 1) * size + 1]
            value = self.store.fetch(self._encode_key(coords), view) if inside.covers(shape) else None
            if type(value) is not memoryview or len(value) != size:  # elsewhere in memory, missing, or damaged
                break
            done += 1
        if done:
            packed: NDArray = np.ndarray((done, *shape), pipeline.raw_dtype, memory)
            places = [outside for _, _, outside in jobs[:done]]
            row = _row(out, places, shape)
            if row is not None:
                row[...] = packed
            else:
                for array, place in zip(packed, places, strict=True):
                    place.put(out, array)
        return done

    def _read_raw_chunk(self, job: Job, pipeline: Pipeline, out: NDArray, memory: memoryview) -> None:
        """A little of a chunk, or all of it, which costs less than to think about it."""
        coords, inside, outside = job
        size, shape, dtype = pipeline.nbytes, pipeline.spec.shape, pipeline.raw_dtype
        key, whole = self._encode_key(coords), inside.covers(shape)
        if not whole and inside.plain and inside.steps is None and 4 * inside.shape[0] <= shape[0]:
            start, length = pipeline.extent(inside)
            value = self.store.peek(key, start, length, size)
            if value is not None and len(value) == length:
                outside.put(out, np.ndarray(inside.shape, dtype, value, strides=pipeline.strides))
                return
        value = self.store.fetch(key, memory[: size + 1])
        if value is None or len(value) != size:
            self._read_chunk(coords, inside, outside, out)  # missing, or damaged, or read otherwise
            return
        array: NDArray = np.ndarray(shape, dtype, value)
        outside.put(out, array if whole else inside.take(array))

    def _fetch(self, coords: Shape, pipeline: Pipeline, memory: memoryview) -> Buffer | None:
        """The stored form of a chunk, perhaps in this memory."""
        key = self._encode_key(coords)
        found = self.store.fetch(key, memory)
        if found is not None:
            return found
        source = self.store.source(key)
        source.max_size = pipeline.max_size
        try:
            return source.read_all()
        except Exception as error:
            self._failed(error, key, "decoded")
        finally:
            source.close()

    def _write_many(self, selection: Selection, values: NDArray, fields: Any) -> None:
        pipeline = self.pipeline((0,) * selection.ndim)
        nbytes = math.prod(selection.shape) * pipeline.spec.dtype.itemsize
        count = BATCH // pipeline.nbytes
        if pipeline.nbytes < SMALL and pipeline.raw_dtype is not None:
            count = max(count, min(WRITE_BATCH // pipeline.nbytes, selection.spread(pipeline.spec.shape) // 8))
        batches = parallel.batches(self.grid.project(selection), max(1, count))
        parallel.run(lambda batch: self._write_batch(batch, values, fields), batches, nbytes)

    def _write_batch(self, jobs: list[Job], values: NDArray, fields: Any) -> None:
        """Several small chunks, which the store gets together."""
        pipeline = self.pipeline(jobs[0][0])
        if len(jobs) > 1 and not pipeline.patches:
            memory = lent.take(len(jobs) * pipeline.nbytes)  # to pack them
            with contextlib.suppress(Exception):
                self.store.update_many(self._changes(jobs, values, fields, memory))
                lent.give(memory)
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
            return list(zip(keys, pipeline.write_many(packed, [True] * len(jobs)), strict=True))
        made = (self._whole(pipeline.write_pieces(outside.take(values))) for _, _, outside in jobs)
        changes = zip(keys, made, strict=True)
        return changes if pipeline.max_size is None else list(changes)  # or there is no telling how much that is


def _row(array: NDArray, places: list[Selection], shape: Shape) -> NDArray | None:
    """Parts of an array, one after the other, as one view, if they lie in a row."""
    count, (*lengths, width) = len(places), shape
    first, last = places[0], places[-1].starts
    if not first.plain or first.starts[:-1] != last[:-1] or last[-1] - first.starts[-1] != (count - 1) * width:
        return None
    row = Selection.box(first.starts, (*lengths, count * width)).take(array)
    return np.moveaxis(row.reshape(*lengths, count, width), -2, 0)
