"""The chunks of an array: reading and writing selections.

Rules
- Everything that all chunks have in common is prepared once: the key encoding, the bound pipeline, the stack of stores.
- A read has three steps: the pipeline plans which ranges of which values it needs, the store serves them, and the
  pipeline decodes them. Small chunks are processed in batches, because a thread releases the GIL at every system
  call, and doing so for each chunk would cost too much. Several threads process the batches.
- A missing chunk reads as the fill value, or raises an error if the array was opened with `missing_chunks="error"`. A
  damaged chunk raises an error that names its key.
- Chunks that contain only the fill value are not stored, and are erased if they exist. The exception is an update in a
  store to which other machines may write: it stores the fill value, because there is no request that erases a chunk
  only if it is unchanged.
- A chunk is written without reading the old one only if all its elements are written, including those beyond the edge
  of the array, because another writer may have enlarged the array. All other changes are made under the lock of the
  key.
- If all elements of a chunk that are inside the array are written, a damaged old chunk is replaced without an error.
"""

from __future__ import annotations

import errno
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, TypeVar

import numpy as np

from zarrlite import threads
from zarrlite.buffers import scratch
from zarrlite.buffers.pieces import Value
from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.buffers.source import Source, read_current
from zarrlite.chunks.chunk_cache import ChunkCache
from zarrlite.errors import ArgumentError, DataError, MissingChunkError, StoreError, TruncatedError, ZarrliteError
from zarrlite.extensions.extension import Ignored
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.pipeline.codec import ChunkOptions
from zarrlite.pipeline.decoding import beyond_limit, default_limit
from zarrlite.pipeline.elements import NDArray
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.pipeline.reading import FailedPart, MissingInnerChunk, Part, Reading, read_from_sources
from zarrlite.selections.selection import FlatSelection, Selection, Shape, Span
from zarrlite.selections.sparse import SparseBatch, project_sparse
from zarrlite.stores.base import Change, InPlace, Store, Update, WrongSizeError, place_of
from zarrlite.tuning import (
    BATCH_BYTES,
    MAX_BATCH_CHUNKS,
    MAX_SCRATCH_BYTES,
    MIN_SHARED_BYTES,
    READ_BATCH_BYTES,
    SMALL_CHUNK_BYTES,
    THREADED_COPY_BYTES,
    WRITE_BATCH_BYTES,
)

T = TypeVar("T")
_chunk_options = functools.lru_cache(64)(ChunkOptions)  # cached, to save time when many arrays are opened
Job = tuple[Shape, Selection, Selection]  # coordinates of a chunk, selection in the chunk, selection in the result


class ArrayOptions(NamedTuple):
    """The runtime options of an array, which are never stored."""

    missing_chunks: Literal["fill", "error"] = "fill"
    write_empty_chunks: bool = False
    max_chunk_bytes: int | None = None  # decoded bytes; None means `default_limit`
    cache: ChunkCache | None = None  # cache of decoded chunks, shared by the arrays of an opened root
    progress: Callable[[int, int], object] | None = None  # called with the number of finished chunks, and the total
    order: Literal["C", "F"] = "C"  # memory layout of the arrays that reads return


class Chunks:
    """The stored chunks of an array.

    With `fold`, chunks that a storage transformer combines into shards are processed shard by shard.
    """

    def __init__(
        self, base: Store, prefix: str, metadata: ArrayMetadata, options: ArrayOptions, *, fold: bool = False
    ) -> None:
        self.unfolded = metadata
        if fold and metadata.storage_transformers:
            metadata = metadata.folded()
        self.metadata = metadata
        self.prefix = prefix  # prefix of the array's keys, for error messages
        self.options = options
        self.grid = metadata.chunk_grid
        required = options.missing_chunks == "error"
        self._options = _chunk_options(options.write_empty_chunks, required, options.max_chunk_bytes)
        # the pipeline that all chunks share; None if they differ in shape
        self._encode_key, self._pipeline = metadata.for_chunks(self._options)
        self._limit = options.max_chunk_bytes or default_limit()
        self.store = base
        # core spec, Storage transformers: the last transformer in the list wraps the store itself
        for transformer in reversed(metadata.storage_transformers or ()):
            if not isinstance(transformer, Ignored):
                self.store = transformer.wrap(self.store, metadata.in_store)

    def _bind(self, shape: Shape) -> Pipeline:
        return self.metadata.pipeline(shape, self._options)

    def pipeline(self, coords: Shape) -> Pipeline:
        """Return the codec chain for one chunk."""
        return self._pipeline or self._bind(self.grid.chunk_shape(coords))

    def shape_inside(self, coords: Shape) -> Shape:
        """Return the shape of the part of a chunk that is inside the array."""
        bounds = zip(self.grid.chunk_shape(coords), self.grid.origin(coords), self.metadata.shape, strict=True)
        return tuple(min(length, n - start) for length, start, n in bounds)

    def stored(self) -> Iterator[tuple[Shape, str]]:
        """Yield the coordinates and keys of all stored chunks, including those outside the grid."""
        for key in self.store.list_prefix(""):
            coords = self.metadata.chunk_key_encoding.decode(key, len(self.metadata.shape))
            if coords is not None:
                yield coords, key

    # Reading

    def read(self, selection: Selection, out: NDArray) -> None:
        """Fill `out` with the selected elements."""
        only = self.grid.only(selection)
        if only is not None:
            coords, inside = only
            self._read([coords], [(inside, out)])
            return
        place = place_of(self.store)
        count, nbytes, held = self._batching(selection, out, one_by_one=place is not None)
        pipeline = self._pipeline
        if pipeline is not None and pipeline.one_request and pipeline.nbytes <= SMALL_CHUNK_BYTES:
            sparse = project_sparse(selection, pipeline.spec.shape, count)
            if sparse is not None:
                threads.run(lambda batch: self._read_sparse(pipeline, batch, out), sparse, nbytes, place, held)
                return
        threads.run(lambda jobs: self._read_jobs(jobs, out), self._batches(selection, count), nbytes, place, held)

    def _batches(self, selection: Selection, count: int) -> Iterator[list[Job]]:
        """Return the chunks of a selection, as lists of at most `count` chunks with the same pipeline."""
        jobs = self.grid.project(selection)
        if self._pipeline is not None:
            return threads.batches(jobs, count)
        return _by_shape(jobs, self.grid.chunk_shape, count)

    @property
    def _estimate(self) -> Pipeline:
        """The pipeline used to estimate sizes: the shared one or, if chunks differ in shape, that of the largest."""
        return self._pipeline or self._bind(self.grid.largest_chunk(len(self.metadata.shape)))

    def _batching(self, selection: Selection, out: NDArray, one_by_one: bool) -> tuple[int, int, int]:
        """Return how many chunks to read together, the amount of work, and the memory that each chunk needs.

        The last two are numbers of bytes. The amount of work determines whether threads are used.
        """
        pipeline = self._estimate
        count = max(1, selection.spread(pipeline.spec.shape))
        work = out.nbytes if pipeline.reads_parts else pipeline.nbytes * count
        read = out.nbytes // count  # bytes of each chunk
        held = 2 * (work // count)  # each chunk is in memory twice: encoded and decoded
        least = pipeline.nbytes // 2 if pipeline.nbytes <= SMALL_CHUNK_BYTES else THREADED_COPY_BYTES
        if pipeline.layout is not None and read < least:
            work = 0  # so few bytes are copied faster by one thread than by two
        if one_by_one or not pipeline.one_request or pipeline.nbytes > SMALL_CHUNK_BYTES:
            return 1, work, held
        room = max(1, pipeline.max_size or pipeline.nbytes) + pipeline.nbytes
        most = max(1, min(READ_BATCH_BYTES // max(1, pipeline.nbytes), MAX_SCRATCH_BYTES // room, MAX_BATCH_CHUNKS))
        if work < MIN_SHARED_BYTES:  # a single thread reads them
            return most, work, held
        # Batches are large, but each thread gets several, so that all threads finish at the same time: about two if
        # threads mostly copy, four if a batch is decoded by one call, and many if chunks are decoded one by one.
        least, batches = (most // 4, 2) if pipeline.reads_parts else (1, 4 if pipeline.decode_batch > 1 else 32)
        return max(1, least, min(most, count // (batches * threads.workers()))), work, held

    def _read_jobs(self, jobs: Sequence[Job], out: NDArray) -> None:
        """Read the selected parts of several chunks into the result."""
        parts: list[Part] = []
        copies: list[tuple[Selection, NDArray]] = []  # selections of `out` that are not views, and their elements
        for _, inside, place in jobs:
            if place.plain:
                parts.append((inside, place.take(out)))
            else:
                parts.append((inside, np.empty(inside.shape, out.dtype)))
                copies.append((place, parts[-1][1]))
        self._read([coords for coords, _, _ in jobs], parts)
        for place, elements in copies:
            place.put(out, elements)

    def _read_sparse(self, pipeline: Pipeline, batch: SparseBatch, out: NDArray) -> None:
        """Read a few elements of each of several chunks, and copy them into the result together."""
        elements = np.empty(len(batch.numbers), out.dtype)
        if not self._gather(pipeline, batch, elements):
            parts = [(selection, elements[part]) for part, selection in batch.parts(pipeline.spec.shape)]
            self._read(batch.coords, parts)
        FlatSelection(batch.places, out.shape).put(out, elements)

    def _gather(self, pipeline: Pipeline, batch: SparseBatch, elements: NDArray) -> bool:
        """Read elements of several chunks and select all of them in one operation.

        Returns False if the chunks are compressed, or if one of them cannot be read. The caller then uses `_read`,
        which raises the error of that chunk.
        """
        if pipeline.layout is None:
            return False
        keys = [*map(self._encode_key, batch.coords)]
        try:
            missing = self._read_at_once(pipeline.read_sparse(keys, batch, elements))
        except (DataError, StoreError):
            return False
        parts = [part for part, _ in batch.parts(pipeline.spec.shape)] if missing else []
        for i in missing:
            elements[parts[i]] = pipeline.spec.fill
        return not missing or self.options.missing_chunks != "error"

    def _read(self, coords: Sequence[Shape], parts: Sequence[Part]) -> None:
        """Read parts of chunks into their target arrays. The chunks must have the same pipeline."""
        pipeline = self._pipeline or self.pipeline(coords[0])
        keys = [*map(self._encode_key, coords)]
        try:
            if pipeline.read_unit > self._limit:
                self._check_limit(pipeline, keys)
            if pipeline.one_request:
                missing = self._read_at_once(pipeline.read(keys, parts, self.store.limits))
            else:
                sources = [*map(self.store.source, keys)]
                missing = read_current(sources, read_from_sources, pipeline.read, sources, parts, self.store.limits)
        except FailedPart as failed:
            self._read_failed(failed.error, coords[failed.number], keys[failed.number], pipeline)
        except Exception as error:
            if len(keys) == 1:
                self._read_failed(error, coords[0], keys[0], pipeline)
            for i, part in enumerate(parts):  # reading the chunk at fault raises the error again, with its key
                self._read([coords[i]], [part])
            raise
        for i in missing:
            if self.options.missing_chunks == "error":
                self._read_failed(MissingChunkError("is missing"), coords[i], keys[i], pipeline, parts[i][0])
            parts[i][1][...] = pipeline.spec.fill

    def _read_at_once(self, reading: Reading[T]) -> T:
        """Run the generator `reading` (see pipeline/reading.py), which requests values by key, all in one round."""
        values = self.store.get_partial_values(*next(reading))
        try:
            threads.work(reading.send, values)
        except StopIteration as done:
            result: T = done.value
            return result
        raise RuntimeError("a read that needs one round of requests began a second one")

    def _check_limit(self, pipeline: Pipeline, keys: Sequence[str]) -> None:
        """Refuse to decode chunks that are too large. Missing chunks are accepted: they read as the fill value."""
        for i, key in enumerate(keys):
            if self.store.size(key) is not None:
                raise FailedPart(i, DataError(beyond_limit(pipeline.read_unit, self._limit)))

    def element(self, coords: Shape) -> Any:
        """Read a single element, as a numpy scalar."""
        chunk, inside = self.grid.locate(coords)
        key = self._encode_key(chunk)
        pipeline = self._pipeline or self.pipeline(chunk)
        layout = pipeline.layout
        try:
            if pipeline.read_unit > self._limit:
                self._check_limit(pipeline, [key])
            if layout is not None and layout.is_number:
                start = layout.position(inside)
                stop = start + layout.dtype.itemsize
                (data,) = self.store.get_partial_values(((key, ByteRange(start, stop), layout.size),))
                if data is not None and len(data) != stop - start:
                    raise TruncatedError(f"ends before byte {stop}", codec=layout.codec)
                found = None if data is None else np.frombuffer(data, layout.dtype)[0]
            elif pipeline.one_request:
                found = self._read_at_once(pipeline.read_element(key, inside))
            else:
                source = self.store.source(key)
                found = read_current((source,), read_from_sources, pipeline.read_element, source, inside)
            if found is None and self.options.missing_chunks == "error":
                raise MissingChunkError("is missing")
        except FailedPart as failed:
            self._read_failed(failed.error, chunk, key, pipeline)
        except Exception as error:
            self._read_failed(error, chunk, key, pipeline, Selection.box(inside, (1,) * len(inside)))
        return pipeline.spec.fill[()] if found is None else found

    # Errors

    def _read_failed(
        self, error: Exception, coords: Shape, key: str, pipeline: Pipeline, selection: Selection | None = None
    ) -> NoReturn:
        """Raise the error of a failed read again, with the key of the chunk."""
        if isinstance(error, WrongSizeError) and pipeline.layout is not None:
            try:
                pipeline.layout.check_size(error.size)
            except DataError as explained:
                error = explained
        if isinstance(error, MissingChunkError) and self.metadata is not self.unfolded:
            key = self._inner_key(error, coords, selection)
        self._failed(error, key, "decoded")

    def _inner_key(self, error: MissingChunkError, coords: Shape, selection: Selection | None) -> str:
        """Return the key of a missing inner chunk, given the coordinates of its shard."""
        shape = self.unfolded.chunk_grid.chunk_shape(coords)
        position = [*self.grid.origin(coords)]
        path: Sequence[Shape] = ()
        if isinstance(error, MissingInnerChunk):
            path = error.path
        elif selection is not None:
            position = [o + i * n for o, i, n in zip(position, next(selection.project(shape))[0], shape, strict=True)]
        codecs: Any = self.metadata.codecs
        for inner in path:
            position = [p + i * n for p, i, n in zip(position, inner, codecs[0].chunk_shape, strict=True)]
            codecs = codecs[0].codecs
        return self._encode_key(tuple(p // n for p, n in zip(position, shape, strict=True)))

    def _failed(self, error: Exception, key: str, what: str) -> NoReturn:
        """Raise an error again, with the name of the chunk unless the error already names it."""
        chunk = self.prefix + key
        if isinstance(error, ArgumentError) and error.message.startswith("chunk "):
            raise error
        if isinstance(error, DataError):
            raise error.at(key=chunk) from error.__cause__
        if isinstance(error, MemoryError):
            raise DataError(f"needs more memory than is available: {error}", key=chunk) from error
        if isinstance(error, ArgumentError):
            raise ArgumentError(f"chunk {chunk}: {error.message}") from error.__cause__
        if isinstance(error, (ZarrliteError, OSError)):
            raise error
        raise ArgumentError(f"chunk {chunk} cannot be {what}: {error}") from error

    # Writing

    def write(self, selection: Selection, values: NDArray, fields: Any = None) -> None:
        """Overwrite the selected elements, or some of their fields, with values of the same shape or a single value."""
        only = self.grid.only(selection)
        if only is not None:
            coords, inside = only
            self._store([self._change(coords, inside, values, fields)])
            return
        pipeline = self._estimate
        nbytes = math.prod(selection.shape) * pipeline.spec.dtype.itemsize
        count = BATCH_BYTES // max(1, pipeline.nbytes)
        if pipeline.nbytes < THREADED_COPY_BYTES and pipeline.layout is not None:
            touched = selection.spread(pipeline.spec.shape)
            count = max(count, min(WRITE_BATCH_BYTES // max(1, pipeline.nbytes), touched // 8))
        place = place_of(self.store)
        count = 1 if place is not None else max(1, min(count, MAX_BATCH_CHUNKS))
        batches = self._batches(selection, count)
        threads.run(lambda jobs: self._write_jobs(jobs, values, fields), batches, nbytes, place, 2 * pipeline.nbytes)

    def _write_jobs(self, jobs: Sequence[Job], values: NDArray, fields: Any) -> None:
        """Write several chunks with one call to the store."""
        pipeline = self.pipeline(jobs[0][0])
        covered = (
            len(jobs) > 1
            and pipeline.decoded_layout is not None
            and pipeline.encode_batch > 1
            and pipeline.write_unit <= self._limit
            and not (pipeline.needs_old or pipeline.filters or fields is not None or not values.ndim)
            and all(inside.covers(pipeline.spec.shape) for _, inside, _ in jobs)
        )
        if not covered:
            changes = (self._change(*self._part(job, values), fields) for job in jobs)
            # chunks whose encoded size is not bounded are encoded one at a time: together, they may not fit in memory
            bounded = pipeline.max_size is not None
            self._store([*changes] if bounded else changes)
            return
        memory = scratch.acquire(len(jobs) * pipeline.nbytes)
        packed: NDArray = np.ndarray((len(jobs), *pipeline.spec.shape), pipeline.spec.dtype, memory)
        for array, (_, _, place) in zip(packed, jobs, strict=True):
            array[...] = place.take(values)
        keys = [self._encode_key(coords) for coords, _, _ in jobs]
        try:
            encoded = threads.work(pipeline.encode_many, packed, [True] * len(jobs))
        except Exception:
            for coords, array in zip([coords for coords, _, _ in jobs], packed, strict=True):
                self._change(
                    coords, Selection.box((0,) * array.ndim, array.shape), array, None
                )  # raises the error again, with the key
            raise
        self._store([*zip(keys, encoded, strict=True)])
        scratch.release(memory)

    @staticmethod
    def _part(job: Job, values: NDArray) -> tuple[Shape, Selection, NDArray]:
        """Return the coordinates of a chunk, the selection in it, and its values (or the value for all chunks)."""
        coords, inside, place = job
        return coords, inside, place.take(values) if values.ndim else values

    def _store(self, changes: Any) -> None:
        try:
            self.store.change(changes)
        except ArgumentError as error:
            key = getattr(error, "key", None)  # set by a store that cannot store the value of this key
            if key is None:
                raise
            raise ArgumentError(f"chunk {self.prefix}{key}: {error.message}") from error

    def _change(self, coords: Shape, inside: Selection, values: NDArray, fields: Any) -> tuple[str, Change]:
        """Return the key of a chunk, and its new value or a function that computes it from the old one."""
        key, pipeline = self._encode_key(coords), self.pipeline(coords)
        try:
            if pipeline.write_unit > self._limit:
                raise ArgumentError(beyond_limit(pipeline.write_unit, self._limit))
            if fields is not None:
                return key, self._updating(
                    key, pipeline, lambda source: self._update_fields(pipeline, source, inside, values, fields)
                )
            if not inside.spans_all(pipeline.spec.shape):
                spans_inside = inside.spans_all(self.shape_inside(coords))
                update = self._update_edge if spans_inside else self._update
                return key, self._updating(key, pipeline, lambda source: update(pipeline, source, inside, values))
            array = values
            if not (values.ndim and inside.plain):
                array = pipeline.spec.filled()
                inside.put(array, values)
            if pipeline.needs_old:
                return key, self._updating(key, pipeline, functools.partial(self._replace, pipeline, array))
            return key, threads.work(pipeline.encode, array)
        except Exception as error:
            self._failed(error, key, "encoded")

    def _updating(self, key: str, pipeline: Pipeline, update: Update) -> Update:
        """Wrap an update function so that its errors name the chunk."""

        def change(source: Source) -> Value | InPlace | None:
            try:
                new = update(source)
                if new is None and self.store.limits.shared:
                    return self._without_elements(pipeline, source.read_one())
                return new
            except Exception as error:
                self._failed(error, key, "encoded")

        return change

    def _without_elements(self, pipeline: Pipeline, old: Buffer | None) -> Value | None:
        """Return the new value of a chunk that contains only the fill value. Returns None if the chunk is to be erased.

        In a store to which other machines may write, an update cannot erase a chunk, and stores fill values instead.
        """
        if old is None or not self.store.limits.shared:
            return None
        return pipeline.encode_always(pipeline.spec.filled(), old)

    @staticmethod
    def _replace(pipeline: Pipeline, array: NDArray, source: Source) -> Value | None:
        """Encode a chunk in which all elements are overwritten, for codecs that need the old value."""
        return threads.work(pipeline.encode, array, source.read_one())

    @staticmethod
    def _update(pipeline: Pipeline, source: Source, inside: Selection, values: NDArray) -> Value | InPlace | None:
        """Return a chunk with some elements overwritten, as patches if the pipeline supports them."""
        patches = pipeline.patch(source, inside, values)
        if patches is not None:
            return InPlace(patches)
        return threads.work(pipeline.update, source.read_one(), inside, values)

    @classmethod
    def _update_edge(
        cls, pipeline: Pipeline, source: Source, inside: Selection, values: NDArray
    ) -> Value | InPlace | None:
        """Return a chunk with all elements inside the array overwritten.

        Elements outside the array are kept, because another writer may have enlarged it; if the old chunk is damaged,
        they are replaced with the fill value.
        """
        try:
            return cls._update(pipeline, source, inside, values)
        except DataError:
            if not source.is_current():
                raise  # the chunk is not damaged, but was replaced during the update: the store starts over
        array = pipeline.spec.filled()
        inside.put(array, values)
        return threads.work(pipeline.encode, array, source.read_one() if pipeline.needs_old else None)

    @staticmethod
    def _update_fields(
        pipeline: Pipeline, source: Source, inside: Selection, values: NDArray, fields: Any
    ) -> Value | None:
        """Return a chunk of structs with some fields of some elements overwritten."""
        old = source.read_one()
        records = np.empty(inside.shape, pipeline.spec.dtype)
        records[...] = pipeline.spec.fill if old is None else threads.work(pipeline.take, old, inside)
        records[fields] = values
        return threads.work(pipeline.update, old, inside, records)

    def erase_leftovers(self) -> None:
        """Remove chunks left by a previous array at this path, which would otherwise appear as data of this array."""
        try:
            leftovers = [key for _, key in self.stored()]
        except StoreError as error:
            if error.errno == errno.ENOTSUP:
                return  # without a listing, leftovers cannot be found
            raise
        self.store.erase_values(leftovers)

    def trim(self, coords: Shape, key: str, old: Shape) -> None:
        """Erase a chunk that is now outside the array. In a chunk at the edge, fill the part that is now outside.

        `old` is the previous shape of the array.
        """
        lengths = self.grid.chunk_shape(coords)
        inside = self.shape_inside(coords)
        if any(n <= 0 for n in inside):
            self.store.erase(key)
            return
        pipeline = self.pipeline(coords)
        if pipeline.write_unit > self._limit:
            self._failed(ArgumentError(beyond_limit(pipeline.write_unit, self._limit)), key, "cut")
        # this pipeline erases the inner chunks of a shard that are completely outside the array
        erasing = self.metadata.pipeline(lengths)
        chunk_shape = self.unfolded.chunk_grid.chunk_shape(coords)
        # in each dimension, the end of the last inner chunk that is at least partly inside the array
        edges = tuple(min(m, -(-n // c) * c) for n, c, m in zip(inside, chunk_shape, lengths, strict=True))
        cut = [d for d, n in enumerate(inside) if n < lengths[d] and self.metadata.shape[d] < old[d]]
        parts = [(d, inside[d], edges[d], edges, pipeline) for d in cut]
        parts += [(d, edges[d], lengths[d], lengths, erasing) for d in cut]
        for dim, start, stop, ends, filling in parts:
            spans = [Span(start, stop - start) if d == dim else Span(0, end) for d, end in enumerate(ends)]
            try:
                if start < stop:
                    self.store.update(key, self._filling(filling, Selection(spans)))
            except Exception as error:
                self._failed(error, key, "cut")

    def _filling(self, pipeline: Pipeline, selection: Selection) -> Callable[[Buffer | None], Value | None]:
        """Return an update that overwrites part of a chunk with the fill value, if the chunk exists."""

        def fill(old: Buffer | None) -> Value | None:
            new = None if old is None else threads.work(pipeline.update, old, selection, pipeline.spec.fill)
            return self._without_elements(pipeline, old) if new is None else new

        return fill


def _by_shape(jobs: Iterator[Job], chunk_shape: Callable[[Shape], Shape], count: int) -> Iterator[list[Job]]:
    """Yield the jobs in lists of at most `count`. All chunks in a list have the same shape.

    To fill the lists, at most `MAX_BATCH_CHUNKS` jobs are held back.
    """
    waiting: dict[Shape, list[Job]] = {}
    held = 0
    for job in jobs:
        shape = chunk_shape(job[0])
        same = waiting.setdefault(shape, [])
        same.append(job)
        held += 1
        if len(same) >= count:
            held -= len(same)
            yield waiting.pop(shape)
        elif held >= MAX_BATCH_CHUNKS:
            yield from waiting.values()
            waiting, held = {}, 0
    yield from waiting.values()
