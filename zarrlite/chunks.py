"""The chunks of an array: reading and writing selections of it.

Rules
- Everything that does not depend on a chunk is prepared once: the key encoding, the bound pipeline, the store stack.
- A missing chunk is the fill value (or an error, if so opened); a damaged one is an error that names its key.
- Chunks that would hold nothing but the fill value are not stored, and are erased if they are there.
- A chunk is written without a look at the old one only if every element of it is: at the edge of the array another
  handle may have grown into it. Everything else is changed under the lock of its key.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from zarrlite import lent, parallel
from zarrlite.errors import ArgumentError, DataError, MissingChunkError, StoreError, ZarrliteError
from zarrlite.extension import Ignored
from zarrlite.metadata import ArrayMetadata
from zarrlite.pipeline import BATCH, Pipeline
from zarrlite.ranges import Buffer, Pieces, joined
from zarrlite.selection import Selection, Shape, Span
from zarrlite.source import Held
from zarrlite.stores import Store
from zarrlite.stores.base import Change, Update

SMALL = 2**18  # bytes of a chunk below which a second thread is in the way, if there is nothing to do but copy
RAW = 2**16  # bytes of a chunk of which all is read at once, whatever is needed, if it is stored as it is
READ_BATCH = 2**21  # decoded bytes that are read together at most
WRITE_BATCH = 2**22  # and written, if they are not compressed
NDArray = np.ndarray[Any, Any]
Job = tuple[Shape, Selection, Selection]  # a chunk, the selection inside of it, its place in the result
Only = tuple[Shape, Selection, None]  # of a single one: its place is all of the result


class ArrayOptions(NamedTuple):
    """How an array behaves at run time; nothing of it is stored."""

    missing_chunks: Literal["fill", "error"] = "fill"
    write_empty_chunks: bool = False


class Chunks:
    """The stored chunks of an array."""

    def __init__(
        self, base: Store, prefix: str, metadata: ArrayMetadata, options: ArrayOptions, *, fold: bool = False
    ) -> None:
        if fold and options.missing_chunks == "fill":  # who looks for missing chunks needs to see each of them
            metadata = _folded(metadata)
        self.prefix = prefix  # of the array's keys, for messages
        self.metadata = metadata
        self.options = options
        self.grid = metadata.chunk_grid
        self._encode_key, self._pipeline = metadata.prepared(write_empty=options.write_empty_chunks)
        self.store = base
        # "Array -> first -> ... -> last -> Store": the last one of the list stands on the store itself
        for transformer in reversed(metadata.storage_transformers or ()):
            if not isinstance(transformer, Ignored):
                self.store = transformer.wrap(self.store, metadata)

    def pipeline(self, coords: Shape) -> Pipeline:
        """The codec chain for one chunk."""
        if self._pipeline is not None:
            return self._pipeline
        return self.metadata.pipeline(self.grid.chunk_shape(coords), write_empty=self.options.write_empty_chunks)

    def shape_inside(self, coords: Shape) -> Shape:
        """The shape of the part of a chunk that lies inside of the array."""
        bounds = zip(self.grid.chunk_shape(coords), self.grid.origin(coords), self.metadata.shape, strict=True)
        return tuple(min(length, n - start) for length, start, n in bounds)

    def stored(self) -> Iterator[tuple[Shape, str]]:
        """Coordinates and keys of the chunks that are there, those outside of the grid among them."""
        for key in self.store.list_prefix(""):
            coords = self.metadata.chunk_key_encoding.decode(key, len(self.metadata.shape))
            if coords is not None:
                yield coords, key

    def read(self, selection: Selection, out: NDArray) -> None:
        """Fill `out` with the selected elements."""
        only = self.grid.only(selection)
        if only is not None:
            self._read_chunk(*only, None, out)
            return
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
        """Small chunks as they are stored: a little of one, or all of it, which costs less than to think about it."""
        size, shape, dtype = pipeline.nbytes, pipeline.spec.shape, pipeline.raw_dtype
        memory = lent.take(size + 1)
        view = memory[: size + 1]
        for coords, inside, outside in jobs:
            key, whole = self._encode_key(coords), inside.covers(shape)
            if not whole and inside.plain and inside.steps is None and 4 * inside.shape[0] <= shape[0]:
                start, length = pipeline.extent(inside)
                value = self.store.peek(key, start, length, size)
                if value is not None and len(value) == length:
                    outside.put(out, np.ndarray(inside.shape, dtype, value, strides=pipeline.strides))
                    continue
            value = self.store.fetch(key, view)
            if value is None or len(value) != size:
                self._read_chunk(coords, inside, outside, out)  # missing, or damaged, or read otherwise
                continue
            array: NDArray = np.ndarray(shape, dtype, value)
            outside.put(out, array if whole else inside.take(array))
        lent.give(memory)

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

    def element(self, coords: Shape) -> Any:
        """A single element, as numpy has it."""
        pipeline = self._pipeline
        if pipeline is not None and (dtype := pipeline.raw_dtype) is not None:
            # its place is known: what is not right there is looked at again below
            chunk, offset = self.grid.offset(coords, pipeline.strides)
            data = self.store.peek(self._encode_key(chunk), offset, dtype.itemsize, pipeline.nbytes)
            if data is not None and len(data) == dtype.itemsize:
                return np.frombuffer(data, dtype)[0]
        chunk, inside = self.grid.locate(coords)
        key = self._encode_key(chunk)
        pipeline = pipeline or self.pipeline(chunk)
        source = self.store.source(key)
        source.max_size = pipeline.max_size
        try:
            found = pipeline.element(source, inside)
            if found is None and self.options.missing_chunks == "error":
                raise MissingChunkError("is missing")
        except Exception as error:
            self._failed(error, key, "decoded")
        finally:
            source.close()
        return pipeline.spec.fill[()] if found is None else found

    def _read_chunk(self, coords: Shape, inside: Selection, outside: Selection | None, out: NDArray) -> None:
        """One chunk to its place in the result, or to all of it."""
        key = self._encode_key(coords)
        pipeline = self._pipeline or self.pipeline(coords)
        source = self.store.source(key)
        source.max_size = pipeline.max_size
        target = out if outside is None else outside.take(out) if outside.plain else None  # a view
        try:
            part = pipeline.read(source, inside, out=target)
            if part is None and self.options.missing_chunks == "error":
                raise MissingChunkError("is missing")
        except Exception as error:
            self._failed(error, key, "decoded")
        finally:
            source.close()
        if target is None and outside is not None:
            outside.put(out, pipeline.spec.fill if part is None else part)
        elif target is not None and part is not target:
            target[...] = pipeline.spec.fill if part is None else part

    def _failed(self, error: Exception, key: str, what: str) -> NoReturn:
        """Raise an error that says which chunk it is about, unless it does already."""
        chunk = self.prefix + key
        if isinstance(error, ArgumentError) and error.message.startswith("chunk "):
            raise error
        if isinstance(error, DataError):
            raise error.at(key=chunk) from error.__cause__
        if isinstance(error, MemoryError):
            raise DataError(f"needs more memory than there is: {error}", key=chunk) from error
        if isinstance(error, ArgumentError):
            raise ArgumentError(f"chunk {chunk}: {error.message}") from error.__cause__
        if isinstance(error, (ZarrliteError, OSError)):
            raise error
        raise ArgumentError(f"chunk {chunk} cannot be {what}: {error}") from error

    def write(self, selection: Selection, values: NDArray, fields: Any = None) -> None:
        """Overwrite the selected elements, or some fields of them, with values of that shape, or with a single one."""
        only = self.grid.only(selection)
        if only is not None:
            self._write_chunk((*only, None), values, fields)
            return
        pipeline = self.pipeline((0,) * selection.ndim)
        nbytes = math.prod(selection.shape) * pipeline.spec.dtype.itemsize
        count = BATCH // pipeline.nbytes
        if pipeline.nbytes < SMALL and pipeline.together == 1:
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

    def _changes(self, jobs: list[Job], values: NDArray, fields: Any, memory: memoryview) -> list[tuple[str, Change]]:
        """The same as `_change` of each; whole chunks are packed and encoded together where that is best."""
        pipeline = self._pipeline
        plain = pipeline is not None and not pipeline.needs_old and fields is None and values.ndim
        if pipeline is None or not plain or not all(inside.covers(pipeline.spec.shape) for _, inside, _ in jobs):
            return [self._change(job, values, fields) for job in jobs]
        keys = [self._encode_key(coords) for coords, _, _ in jobs]
        made: Sequence[Pieces | None]
        if pipeline.together > 1 or (pipeline.raw_dtype is not None and self.store.gathers):
            packed = np.frombuffer(memory, pipeline.spec.dtype, len(jobs) * pipeline.spec.size)
            packed = _pack(values, [outside for _, _, outside in jobs], packed.reshape(-1, *pipeline.spec.shape))
            made = pipeline.write_many(packed, [True] * len(jobs))
        else:
            made = [self._whole(pipeline.write_pieces(outside.take(values))) for _, _, outside in jobs]
        return list(zip(keys, made, strict=True))

    def _write_chunk(self, job: Job | Only, values: NDArray, fields: Any) -> None:
        key, change = self._change(job, values, fields)
        try:
            pipeline = self.pipeline(job[0])
            if pipeline.patches and callable(change) and fields is None:
                _, inside, outside = job
                part = values if outside is None or not values.ndim else outside.take(values)
                if not self.store.patch(key, lambda source: pipeline.patch(source, inside, part)):
                    self.store.update(key, change)
            else:
                self.store.update_many([(key, change)])
        except Exception as error:
            self._failed(error, key, "encoded")

    def _change(self, job: Job | Only, values: NDArray, fields: Any) -> tuple[str, Change]:
        """The key of a chunk, and its new value or what makes that of the old one."""
        coords, inside, outside = job
        key, pipeline = self._encode_key(coords), self.pipeline(coords)
        part = values if outside is None or not values.ndim else outside.take(values)
        try:
            if fields is not None:
                return key, self._named(key, lambda old: self._update_fields(coords, old, inside, part, fields))
            if not inside.spans_all(pipeline.spec.shape):
                return key, self._named(key, lambda old: self._whole(pipeline.update(old, inside, part)))
            array = part
            if not (part.ndim and inside.plain):
                array = pipeline.spec.filled()
                inside.put(array, part)
            if pipeline.needs_old:
                return key, self._named(key, lambda old: self._whole(pipeline.write_pieces(array, old)))
            return key, self._whole(pipeline.write_pieces(array))
        except Exception as error:
            self._failed(error, key, "encoded")

    def _named(self, key: str, update: Update) -> Update:
        """An update whose errors say which chunk they are about."""

        def change(old: Buffer | None) -> Pieces | None:
            try:
                return update(old)
            except Exception as error:
                self._failed(error, key, "encoded")

        return change

    def _update_fields(self, coords: Shape, old: Buffer | None, inside: Selection, part: NDArray, fields: Any) -> Any:
        """A chunk of structs in which some fields of some elements are overwritten."""
        pipeline = self.pipeline(coords)
        records = np.empty(inside.shape, pipeline.spec.dtype)
        records[...] = pipeline.spec.fill if old is None else pipeline.read(Held(old), inside)
        records[fields] = part
        return self._whole(pipeline.update(old, inside, records))

    def _whole(self, value: Pieces | None) -> Pieces | None:
        """A new value as the store can take it."""
        return value if value is None or self.store.gathers else joined(value)

    def erase_leftovers(self) -> None:
        """Remove chunks that an array once here left behind: they would show up as data of this one."""
        try:
            leftovers = [key for _, key in self.stored()]
        except StoreError:
            return  # a store that cannot be listed cannot be searched
        self.store.erase_values(leftovers)

    def trim(self, coords: Shape, key: str, old: Shape) -> None:
        """Remove a chunk that the array has left; fill what one at its edge has outside of it. `old` was its shape."""
        lengths = self.grid.chunk_shape(coords)
        inside = self.shape_inside(coords)
        if any(n <= 0 for n in inside):
            self.store.erase(key)
            return
        pipeline = self.pipeline(coords)
        for dim, (n, length) in enumerate(zip(inside, lengths, strict=True)):
            if n < length and self.metadata.shape[dim] < old[dim]:
                spans = [Span(n, length - n) if d == dim else Span(0, m) for d, m in enumerate(lengths)]
                outside = Selection(spans)

                def cut(data: Buffer | None, outside: Selection = outside) -> Pieces | None:
                    return None if data is None else self._whole(pipeline.update(data, outside, pipeline.spec.fill))

                try:
                    self.store.update(key, cut)
                except Exception as error:
                    self._failed(error, key, "cut")


def _pack(values: NDArray, places: list[Selection], packed: NDArray) -> NDArray:
    """Parts of an array that have one shape, one after the other; a row of them is copied at once."""
    count, *lengths, width = packed.shape
    first, last = places[0].starts, places[-1].starts
    if first[:-1] == last[:-1] and last[-1] - first[-1] == (count - 1) * width:
        row = Selection.box(first, (*lengths, count * width)).take(values)
        packed[...] = np.moveaxis(row.reshape(*lengths, count, width), -2, 0)
    else:
        for array, place in zip(packed, places, strict=True):
            array[...] = place.take(values)
    return packed


def _folded(metadata: ArrayMetadata) -> ArrayMetadata:
    """The same array by fewer transformers, as far as the first of them can be said by other means."""
    for transformer in metadata.storage_transformers or ():
        folded = None if isinstance(transformer, Ignored) else transformer.fold(metadata)
        if folded is None:
            break
        metadata = folded
    return metadata
