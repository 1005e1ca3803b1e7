"""Arrays: what users touch. How their chunks are read and written is in chunks.py and batches.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from zarrlite.cached import cached_property
from zarrlite.chunks.many import BatchedChunks
from zarrlite.chunks.single import ArrayOptions, Chunks
from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.names import key_prefix
from zarrlite.nodes.node import Node
from zarrlite.selections import indexing
from zarrlite.selections.casting import allocate, cast, normalize_shape, split_fields
from zarrlite.selections.selection import Shape
from zarrlite.stores import Store

if TYPE_CHECKING:
    from zarrlite.nodes.info import Info

NDArray = np.ndarray[Any, Any]


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
        self._single = metadata.data_type.dtype.kind in "biufcmM"  # whose elements numpy gives as scalars

    @cached_property
    def _chunks(self) -> Chunks:
        return BatchedChunks(self._base, key_prefix(self.path), self.metadata, self.options, fold=True)

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
        if self._inner_chunk_shape:
            return self._grid_chunk_shape
        folded = self._chunks.metadata.chunk_grid.chunk_shape((0,) * self.ndim)  # by a transformer
        return folded if folded != self._grid_chunk_shape else None

    @property
    def _inner_chunk_shape(self) -> Shape | None:
        pipeline = self.metadata.pipeline(self._grid_chunk_shape)
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
        chunks = Chunks(self._base, key_prefix(self.path), self.metadata, self.options)
        stored = [coords for coords, _ in chunks.stored() if all(c < n for c, n in zip(coords, grid, strict=True))]
        if not self._inner_chunk_shape:
            return len(stored)
        return sum(math.prod(self._count_chunks(chunks.shape_inside(coords))) for coords in stored)

    def nbytes_stored(self) -> int:
        """Bytes of everything that is stored for this array, its document among it."""
        return sum(self._base.size(key) or 0 for key in self._base.list_prefix(""))

    @property
    def info(self) -> Info:
        """A summary that prints well."""
        from zarrlite.nodes.info import array_info  # late: keeps the import light

        return array_info(self, self.metadata, self.chunks, self.shards)

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
        shape = self.metadata.shape
        coords = indexing.element(index, shape)
        if coords is not None and self._single:
            return self._chunks.element(coords)
        box = indexing.box(index, shape)
        if box is not None:
            selection, wanted = box
            out = allocate(selection.shape, self.metadata.data_type.dtype)
            if out.size:
                self._chunks.read(selection, out)
            return out if wanted == selection.shape else out.reshape(wanted)[()]
        fields, index = split_fields(index, self.dtype)
        result = self._get(indexing.basic(index, self.shape))
        return result if fields is None else result[fields]

    def __setitem__(self, index: Any, value: Any) -> None:
        box = indexing.box(index, self.metadata.shape)
        if box is not None:
            self._set(indexing.Request(*box, None, scalar=not box[1]), value)
            return
        fields, index = split_fields(index, self.dtype)
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
            self._chunks.read(selection, out)
        return request.outward(out)

    def _set(self, request: indexing.Request, value: Any, fields: Any = None) -> None:
        self._check_writable()
        dtype = self.dtype if fields is None else self.dtype[fields]
        values = request.inward(cast(value, dtype))
        if 0 not in request.selection.shape:
            self._chunks.write(request.selection, values, fields)

    # changing the shape

    def resize(self, shape: Any) -> None:
        """Change the shape; what lies outside of the new one is removed, what is new has the fill value."""
        new = normalize_shape(shape)
        if len(new) != self.ndim:
            raise ArgumentError(f"the array has {self.ndim} dimensions; {len(new)} lengths were given")
        old = self._reshape(lambda stored: new)
        if any(n < o for n, o in zip(new, old, strict=True)):
            for coords, key in list(self._chunks.stored()):
                self._chunks.trim(coords, key, old)

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
        self.__dict__.pop("_chunks", None)
        return old

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
        fields, index = split_fields(index, self._array.dtype)
        result = self._array._get(self._request(index))
        return result if fields is None else result[fields]

    def __setitem__(self, index: Any, value: Any) -> None:
        fields, index = split_fields(index, self._array.dtype)
        self._array._set(self._request(index), value, fields)
