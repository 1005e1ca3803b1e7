"""The chunks of an array: reading and writing selections of it, one chunk after the other (batches.py: many at once).

Rules
- Everything that does not depend on a chunk is prepared once: the key encoding, the bound pipeline, the store stack.
- A missing chunk is the fill value (or an error, if so opened); a damaged one is an error that names its key.
- Chunks that would hold nothing but the fill value are not stored, and are erased if they are there.
- A chunk is written without a look at the old one only if every element of it is: at the edge of the array another
  handle may have grown into it. Everything else is changed under the lock of its key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from zarrlite.buffers.ranges import Buffer, Pieces, joined
from zarrlite.buffers.source import Held
from zarrlite.errors import ArgumentError, DataError, MissingChunkError, StoreError, ZarrliteError
from zarrlite.extensions.extension import Ignored
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import Selection, Shape, Span
from zarrlite.stores import Store
from zarrlite.stores.base import Change, Update

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
        self._read_many(selection, out)

    def _read_many(self, selection: Selection, out: NDArray) -> None:
        for job in self.grid.project(selection):
            self._read_chunk(*job, out)

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
        self._write_many(selection, values, fields)

    def _write_many(self, selection: Selection, values: NDArray, fields: Any) -> None:
        for job in self.grid.project(selection):
            self._write_chunk(job, values, fields)

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


def _folded(metadata: ArrayMetadata) -> ArrayMetadata:
    """The same array by fewer transformers, as far as the first of them can be said by other means."""
    for transformer in metadata.storage_transformers or ():
        folded = None if isinstance(transformer, Ignored) else transformer.fold(metadata)
        if folded is None:
            break
        metadata = folded
    return metadata
