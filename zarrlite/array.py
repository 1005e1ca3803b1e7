"""Arrays: what users touch.

Rules
- Everything that does not depend on a chunk is prepared once: the key encoding, the bound pipeline, the store stack.
- A missing chunk is the fill value (or an error, if so opened); a damaged one is an error that names its key.
- Chunks that would hold nothing but the fill value are not stored, and are erased if they are there.
- A chunk that is written in part is changed under the lock of its key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from zarrlite import indexing, parallel
from zarrlite.errors import (
    ArgumentError,
    DataError,
    MissingChunkError,
    SelectionError,
    StoreError,
    ZarrliteError,
)
from zarrlite.extension import Ignored
from zarrlite.info import ArrayInfo
from zarrlite.metadata import ArrayMetadata
from zarrlite.names import key_prefix
from zarrlite.node import Node
from zarrlite.pipeline import Pipeline
from zarrlite.ranges import Buffer
from zarrlite.selection import Selection, Shape, Span
from zarrlite.source import Held
from zarrlite.stores import Store
from zarrlite.values import allocate, cast, normalize_shape

NDArray = np.ndarray[Any, Any]
Job = tuple[Shape, Selection, Selection]


class ArrayOptions(NamedTuple):
    """How an array behaves at run time; nothing of it is stored."""

    missing_chunks: Literal["fill", "error"] = "fill"
    write_empty_chunks: bool = False


class Array(Node):
    """A Zarr array: indexed like a numpy array, stored in chunks."""

    metadata: ArrayMetadata

    def __init__(
        self, store: Store, path: str, metadata: ArrayMetadata, options: ArrayOptions = ArrayOptions()
    ) -> None:
        super().__init__(store, path)
        self.metadata = metadata
        self.options = options
        if options.missing_chunks not in ("fill", "error"):
            raise ArgumentError(f"missing_chunks must be 'fill' or 'error', not {options.missing_chunks!r}")
        self._encode_key = metadata.chunk_key_encoding.encode
        self._chunks = self._stack()

    def _stack(self) -> Store:
        """The store that chunks are kept in: the transformers, over the part of the store that is this array's."""
        store = self._base
        # "Array -> first -> ... -> last -> Store": the last one of the list stands on the store itself
        for transformer in reversed(self.metadata.storage_transformers or ()):
            if not isinstance(transformer, Ignored):
                store = transformer.wrap(store, self.metadata)
        return store

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self.store, self.path, self.metadata, self.options)

    def __repr__(self) -> str:
        return f"<Array {self.name} shape={self.shape} dtype={self.dtype}>"

    # what it is

    @property
    def shape(self) -> Shape:
        return self.metadata.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self.resize(shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.metadata.data_type.dtype

    @property
    def fill_value(self) -> Any:
        return self.metadata.fill_value

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, decoded."""
        return self.size * self.dtype.itemsize

    @property
    def _grid_chunk_shape(self) -> Shape:
        return self.metadata.chunk_grid.chunk_shape((0,) * self.ndim)

    @property
    def chunks(self) -> Shape:
        """The shape of a chunk; of an inner chunk, if chunks are shards."""
        return self._inner_chunk_shape or self._grid_chunk_shape

    @property
    def shards(self) -> Shape | None:
        """The shape of a shard, if the array has any."""
        return self._grid_chunk_shape if self._inner_chunk_shape else None

    @property
    def _inner_chunk_shape(self) -> Shape | None:
        pipeline = self._pipeline((0,) * self.ndim)
        shape = pipeline.serializer.codec.inner_chunk_shape
        for codec, _ in reversed(pipeline.filters):
            shape = shape and codec.decoded_shape(shape)
        return shape

    @property
    def cdata_shape(self) -> Shape:
        """The number of chunks (inner ones, if there are shards) along each dimension."""
        return self._count_chunks(self.shape)

    def _count_chunks(self, shape: Shape) -> Shape:
        if not self._inner_chunk_shape:
            return self.metadata.chunk_grid.grid_shape(shape)
        return tuple(-(-n // c) for n, c in zip(shape, self.chunks, strict=True))

    @property
    def nchunks(self) -> int:
        """The number of chunks (inner ones, if there are shards), stored or not."""
        return math.prod(self.cdata_shape)

    @property
    def nchunks_initialized(self) -> int:
        """The number of chunks that are stored, or lie in shards that are."""
        grid = self.metadata.chunk_grid.grid_shape(self.shape)
        stored = [
            coords for coords, _ in self._stored_chunks() if all(c < n for c, n in zip(coords, grid, strict=True))
        ]
        if not self._inner_chunk_shape:
            return len(stored)
        return sum(math.prod(self._count_chunks(self._shape_inside(coords))) for coords in stored)

    def nbytes_stored(self) -> int:
        """Bytes of everything that is stored for this array, its document among it."""
        return sum(self._base.size(key) or 0 for key in self._base.list_prefix(""))

    def _stored_chunks(self) -> Iterator[tuple[Shape, str]]:
        """Coordinates and keys of the chunks that are there, those outside of the grid among them."""
        for key in self._chunks.list_prefix(""):
            coords = self.metadata.chunk_key_encoding.decode(key, self.ndim)
            if coords is not None:
                yield coords, key

    @property
    def info(self) -> ArrayInfo:
        """A summary that prints well."""
        return ArrayInfo(self)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of an array of no dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over an array of no dimensions")
        step = self.chunks[0]
        for start in range(0, self.shape[0], step):
            yield from self[start : start + step]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        if copy is False:
            raise ValueError("a Zarr array cannot be seen as a numpy array without a copy")
        array: NDArray = self[...]
        return array if dtype is None else array.astype(dtype, copy=False)

    # reading and writing

    def __getitem__(self, index: Any) -> Any:
        fields, index = indexing.split_fields(index, self.dtype)
        result = self._get(indexing.basic(index, self.shape))
        return result if fields is None else result[fields]

    def __setitem__(self, index: Any, value: Any) -> None:
        fields, index = indexing.split_fields(index, self.dtype)
        self._set(indexing.basic(index, self.shape), value, fields)

    @property
    def oindex(self) -> Indexer:
        """Every dimension picked from on its own: `a.oindex[[0, 2], [1, 3]]` is a 2 x 2 block."""
        return Indexer(self, lambda index: indexing.orthogonal(index, self.shape))

    @property
    def vindex(self) -> Indexer:
        """Points: `a.vindex[[0, 2], [1, 3]]` is two elements; also a mask of the array's shape."""
        return Indexer(self, lambda index: indexing.points(index, self.shape))

    @property
    def blocks(self) -> Indexer:
        """Whole chunks by their place in the grid: `a.blocks[0, 1:3]`."""
        return Indexer(self, lambda index: indexing.blocks(index, self.shape, self._grid_chunk_shape))

    def _get(self, request: indexing.Request) -> Any:
        selection = request.selection
        out = allocate(selection.shape, self.dtype)
        if out.size:
            jobs = self.metadata.chunk_grid.project(selection)
            parallel.run(lambda job: self._read_chunk(job, out), jobs, out.nbytes)
        return request.outward(out)

    def _read_chunk(self, job: Job, out: NDArray) -> None:
        coords, inside, outside = job
        key = self._encode_key(coords)
        pipeline = self._pipeline(coords)
        source = self._chunks.source(key)
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
        chunk = key_prefix(self.path) + key
        if isinstance(error, DataError):
            raise error.at(key=chunk) from error.__cause__
        if isinstance(error, MemoryError):
            raise DataError(f"needs more memory than there is: {error}", key=chunk) from error
        if isinstance(error, ArgumentError):
            raise ArgumentError(f"chunk {chunk}: {error.message}") from error.__cause__
        if isinstance(error, (ZarrliteError, OSError)):
            raise error
        raise ArgumentError(f"chunk {chunk} cannot be {what}: {error}") from error

    def _pipeline(self, coords: Shape) -> Pipeline:
        shape = self.metadata.chunk_grid.chunk_shape(coords)
        return self.metadata.pipeline(shape, write_empty=self.options.write_empty_chunks)

    def _set(self, request: indexing.Request, value: Any, fields: Any = None) -> None:
        self._check_writable()
        dtype = self.dtype if fields is None else self.dtype[fields]
        values = request.inward(cast(value, dtype))
        selection = request.selection
        if 0 in selection.shape:
            return
        jobs = self.metadata.chunk_grid.project(selection)
        nbytes = math.prod(selection.shape) * self.dtype.itemsize
        parallel.run(lambda job: self._write_chunk(job, values, fields), jobs, nbytes)

    def _write_chunk(self, job: Job, values: NDArray, fields: Any) -> None:
        coords, inside, outside = job
        key = self._encode_key(coords)
        part = outside.take(values) if values.ndim else values
        try:
            if fields is not None:
                self._chunks.update(key, lambda old: self._update_fields(coords, old, inside, part, fields))
            elif inside.spans_all(self.metadata.chunk_grid.chunk_shape(coords)):
                self._replace(key, coords, inside, part)
            else:
                self._chunks.update(key, lambda old: self._pipeline(coords).update(old, inside, part))
        except Exception as error:
            self._failed(error, key, "encoded")

    def _shape_inside(self, coords: Shape) -> Shape:
        """The shape of the part of a chunk that lies inside of the array."""
        grid = self.metadata.chunk_grid
        bounds = zip(grid.chunk_shape(coords), grid.origin(coords), self.shape, strict=True)
        return tuple(min(length, n - start) for length, start, n in bounds)

    def _replace(self, key: str, coords: Shape, inside: Selection, part: NDArray) -> None:
        """Store a chunk of which nothing old remains."""
        pipeline = self._pipeline(coords)
        array = part
        if not (part.ndim and inside.plain):
            array = pipeline.spec.filled()
            inside.put(array, part)
        if pipeline.needs_old:
            self._chunks.update(key, lambda old: pipeline.write(array, old))
        elif (data := pipeline.write(array)) is None:
            self._chunks.erase(key)
        else:
            self._chunks.set(key, data)

    def _update_fields(self, coords: Shape, old: Buffer | None, inside: Selection, part: NDArray, fields: Any) -> Any:
        """A chunk of structs in which some fields of some elements are overwritten."""
        pipeline = self._pipeline(coords)
        records = np.empty(inside.shape, self.dtype)
        records[...] = pipeline.spec.fill if old is None else pipeline.read(Held(old), inside)
        records[fields] = part
        return pipeline.update(old, inside, records)

    def _erase_leftovers(self) -> None:
        """Remove chunks that an array once here left behind: they would show up as data of this one."""
        try:
            leftovers = [key for _, key in self._stored_chunks()]
        except StoreError:
            return  # a store that cannot be listed cannot be searched
        self._chunks.erase_values(leftovers)

    # changing the shape

    def resize(self, shape: Any) -> None:
        """Change the shape; what lies outside of the new one is removed, what is new has the fill value."""
        new = normalize_shape(shape)
        if len(new) != self.ndim:
            raise ArgumentError(f"the array has {self.ndim} dimensions; {len(new)} lengths were given")
        old = self._reshape(lambda stored: new)
        if any(n < o for n, o in zip(new, old, strict=True)):
            for coords, key in list(self._stored_chunks()):
                self._trim(coords, key, old)

    def _reshape(self, change: Callable[[Shape], Shape]) -> Shape:
        """Change the stored shape, which another handle may have changed before; returns the old one.

        Chunks come after: an interrupted removal leaves chunks that nobody sees, never a shape without its data.
        """
        old = self.shape

        def reshaped(stored: ArrayMetadata) -> ArrayMetadata:
            nonlocal old
            old = stored.shape
            return stored.with_shape(change(old))

        self.metadata = self.metadata.with_shape(self._change_metadata(reshaped).shape)
        self._chunks = self._stack()
        return old

    def _trim(self, coords: Shape, key: str, old: Shape) -> None:
        """Remove a chunk outside of the array; fill what a chunk at the edge has outside of it."""
        lengths = self.metadata.chunk_grid.chunk_shape(coords)
        inside = self._shape_inside(coords)
        if any(n <= 0 for n in inside):
            self._chunks.erase(key)
            return
        pipeline = self._pipeline(coords)
        for dim, (n, length) in enumerate(zip(inside, lengths, strict=True)):
            if n < length and self.shape[dim] < old[dim]:
                spans = [Span(n, length - n) if d == dim else Span(0, m) for d, m in enumerate(lengths)]
                outside = Selection(spans)

                def cut(data: Buffer | None, outside: Selection = outside) -> Buffer | None:
                    return None if data is None else pipeline.update(data, outside, pipeline.spec.fill)

                try:
                    self._chunks.update(key, cut)
                except Exception as error:
                    self._failed(error, key, "cut")

    def append(self, data: Any, axis: int = 0) -> Shape:
        """Add data behind the end of one dimension, wherever that is by now; returns the new shape."""
        data = cast(data, self.dtype)
        if not -self.ndim <= axis < self.ndim:
            raise SelectionError(f"axis {axis} is out of bounds for an array of {self.ndim} dimensions")
        axis %= self.ndim

        def grown(old: Shape) -> Shape:
            if data.ndim != len(old) or any(
                n != o for i, (n, o) in enumerate(zip(data.shape, old, strict=False)) if i != axis
            ):
                raise ArgumentError(f"data of shape {data.shape} cannot be appended to shape {old} along axis {axis}")
            return tuple(o + n if i == axis else o for i, (o, n) in enumerate(zip(old, data.shape, strict=True)))

        start = self._reshape(grown)[axis]
        end = start + data.shape[axis]
        self[tuple(slice(start, end) if i == axis else slice(None) for i in range(self.ndim))] = data
        return self.shape


class Indexer:
    """Reads and writes by another kind of index."""

    def __init__(self, array: Array, request: Callable[[Any], indexing.Request]) -> None:
        self._array = array
        self._request = request

    def __getitem__(self, index: Any) -> Any:
        fields, index = indexing.split_fields(index, self._array.dtype)
        result = self._array._get(self._request(index))
        return result if fields is None else result[fields]

    def __setitem__(self, index: Any, value: Any) -> None:
        fields, index = indexing.split_fields(index, self._array.dtype)
        self._array._set(self._request(index), value, fields)
