"""The chunks of an array: reading and writing selections of it.

Rules
- Everything that does not depend on a chunk is prepared once: the key encoding, the bound pipeline, the store stack.
- A missing chunk is the fill value (or an error, if so opened); a damaged one is an error that names its key.
- Chunks that would hold nothing but the fill value are not stored, and are erased if they are there.
- A chunk is written without a look at the old one only if every element of it is: at the edge of the array another
  handle may have grown into it. Everything else is changed under the lock of its key.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from zarrlite import parallel
from zarrlite.errors import ArgumentError, DataError, MissingChunkError, StoreError, ZarrliteError
from zarrlite.extension import Ignored
from zarrlite.metadata import ArrayMetadata
from zarrlite.pipeline import Pipeline
from zarrlite.ranges import Buffer
from zarrlite.selection import Selection, Shape, Span
from zarrlite.source import Held
from zarrlite.stores import Store

NDArray = np.ndarray[Any, Any]
Job = tuple[Shape, Selection, Selection]  # a chunk, the selection inside of it, its place in the result


class ArrayOptions(NamedTuple):
    """How an array behaves at run time; nothing of it is stored."""

    missing_chunks: Literal["fill", "error"] = "fill"
    write_empty_chunks: bool = False


class Chunks:
    """The stored chunks of an array."""

    def __init__(self, base: Store, prefix: str, metadata: ArrayMetadata, options: ArrayOptions) -> None:
        if options.missing_chunks not in ("fill", "error"):
            raise ArgumentError(f"missing_chunks must be 'fill' or 'error', not {options.missing_chunks!r}")
        self.prefix = prefix  # of the array's keys, for messages
        self.metadata = metadata
        self.options = options
        self.grid = metadata.chunk_grid
        self._encode_key = metadata.chunk_key_encoding.encode
        self.store = base
        # "Array -> first -> ... -> last -> Store": the last one of the list stands on the store itself
        for transformer in reversed(metadata.storage_transformers or ()):
            if not isinstance(transformer, Ignored):
                self.store = transformer.wrap(self.store, metadata)

    def pipeline(self, coords: Shape) -> Pipeline:
        """The codec chain for one chunk."""
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
        parallel.run(lambda job: self._read_chunk(job, out), self.grid.project(selection), out.nbytes)

    def _read_chunk(self, job: Job, out: NDArray) -> None:
        coords, inside, outside = job
        key = self._encode_key(coords)
        pipeline = self.pipeline(coords)
        source = self.store.source(key)
        source.max_size = pipeline.max_size
        try:
            part = pipeline.read(source, inside)
            if part is None and self.options.missing_chunks == "error":
                raise MissingChunkError("is missing")
        except Exception as error:
            self._failed(error, key, "decoded")
        finally:
            source.close()
        outside.put(out, pipeline.spec.fill if part is None else part)

    def _failed(self, error: Exception, key: str, what: str) -> NoReturn:
        """Raise an error that says which chunk it is about."""
        chunk = self.prefix + key
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
        nbytes = math.prod(selection.shape) * self.metadata.data_type.dtype.itemsize
        parallel.run(lambda job: self._write_chunk(job, values, fields), self.grid.project(selection), nbytes)

    def _write_chunk(self, job: Job, values: NDArray, fields: Any) -> None:
        coords, inside, outside = job
        key = self._encode_key(coords)
        part = outside.take(values) if values.ndim else values
        try:
            if fields is not None:
                self.store.update(key, lambda old: self._update_fields(coords, old, inside, part, fields))
            elif inside.spans_all(self.grid.chunk_shape(coords)):
                self._replace(key, coords, inside, part)
            else:
                self.store.update(key, lambda old: self.pipeline(coords).update(old, inside, part))
        except Exception as error:
            self._failed(error, key, "encoded")

    def _replace(self, key: str, coords: Shape, inside: Selection, part: NDArray) -> None:
        """Store a chunk of which nothing old remains."""
        pipeline = self.pipeline(coords)
        array = part
        if not (part.ndim and inside.plain):
            array = pipeline.spec.filled()
            inside.put(array, part)
        if pipeline.needs_old:
            self.store.update(key, lambda old: pipeline.write(array, old))
        elif (data := pipeline.write(array)) is None:
            self.store.erase(key)
        else:
            self.store.set(key, data)

    def _update_fields(self, coords: Shape, old: Buffer | None, inside: Selection, part: NDArray, fields: Any) -> Any:
        """A chunk of structs in which some fields of some elements are overwritten."""
        pipeline = self.pipeline(coords)
        records = np.empty(inside.shape, pipeline.spec.dtype)
        records[...] = pipeline.spec.fill if old is None else pipeline.read(Held(old), inside)
        records[fields] = part
        return pipeline.update(old, inside, records)

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

                def cut(data: Buffer | None, outside: Selection = outside) -> Buffer | None:
                    return None if data is None else pipeline.update(data, outside, pipeline.spec.fill)

                try:
                    self.store.update(key, cut)
                except Exception as error:
                    self._failed(error, key, "cut")
