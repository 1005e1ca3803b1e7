"""Arrays: the class that users index. The package `chunks` reads and writes the chunks.

Rules
- A chunk that is written as a whole is replaced atomically; a chunk that is written in part is changed under the lock
  of its key. A write to several chunks is not atomic as a whole: readers may see new values in some chunks while others
  still have their old values.
- A resize changes the shape before it removes chunks. If it is interrupted, no chunk inside the stored shape is lost,
  but chunks outside the new shape, which readers never see, may remain in the store. The key `__zarrlite.resize` exists
  until all of these chunks have been removed; the next change to the shape removes them first, so that they never
  reappear.
- The stored shape determines which chunks are outside the array; it is read under the lock of the document.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from zarrlite.cached import cached_property
from zarrlite.chunks.chunks import ArrayOptions, Chunks
from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.extensions.config import MAX_LENGTH, Config, Context, dump_json, load_json
from zarrlite.extensions.extension import Ignored
from zarrlite.metadata.documents import ArrayMetadata, parse_node
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes.arguments import ConfigLike, ShapeLike, override_options
from zarrlite.nodes.futures import AsyncAccess
from zarrlite.nodes.node import Node
from zarrlite.pipeline.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec
from zarrlite.pipeline.decoding import chunk_limit
from zarrlite.selections import indexing
from zarrlite.selections.casting import allocate, cast, normalize_shape, split_fields
from zarrlite.selections.selection import Shape
from zarrlite.stores import Store

if TYPE_CHECKING:
    from zarrlite.nodes.info import Info

NDArray = np.ndarray[Any, Any]
MAX_SIZES = 2**20  # chunks along a dimension; `write_chunk_sizes` refuses to list more
RESIZING = "__zarrlite.resize"  # key below the array; if it exists, chunks outside the shape may still be stored


class Array(Node, AsyncAccess):
    """A Zarr array: indexed like a numpy array, stored in chunks.

    `create_array`, `open_array` and the methods of `Group` return arrays. Calling the class directly neither reads
    nor checks anything in the store.

    Reading returns new numpy arrays, or numpy scalars for single elements. Missing chunks read as the fill value.
    Assigned values are cast and broadcast as in numpy. An array can be pickled if its store can. Several threads,
    and several processes with their own `Array` objects, can read and write the same stored array.

    Parameters
    ----------
    store : Store
        The store that holds the hierarchy.
    path : str
        Path of the array in the store, without a leading slash; empty for the root.
    metadata : ArrayMetadata
        The metadata of the array.
    options : ArrayOptions, optional
        The runtime options `missing_chunks`, `write_empty_chunks` and `max_chunk_bytes`, which `open_array` describes.

    Attributes
    ----------
    metadata : ArrayMetadata
        The parsed metadata document, as it was when the array was opened or last changed through this object.
    options : ArrayOptions
        The runtime options; they are not stored.

    Examples
    --------
    >>> import zarrlite
    >>> a = zarrlite.create_array("memory://", shape=(4, 6), dtype="int16", chunks=(2, 3))
    >>> a[1:3, 2:5] = 7
    >>> a[1]
    array([0, 0, 7, 7, 7, 0], dtype=int16)
    >>> a
    <Array / shape=(4, 6) dtype=int16>
    """

    metadata: ArrayMetadata

    def __init__(
        self, store: Store, path: str, metadata: ArrayMetadata, options: ArrayOptions = ArrayOptions()
    ) -> None:
        super().__init__(store, path)
        self.metadata = metadata
        self.options = options
        if options.missing_chunks not in ("fill", "error"):
            raise ArgumentError(f"missing_chunks must be 'fill' or 'error', not {options.missing_chunks!r}")
        if options.max_chunk_bytes is not None:
            chunk_limit(options.max_chunk_bytes)  # raises if the size is invalid
        data_type = metadata.data_type
        self._has_scalars = data_type.dtype.kind in "biufcmM" or data_type.is_number  # elements are numpy scalars

    @cached_property
    def _chunks(self) -> Chunks:
        options = self.options
        kind = Chunks if options.cache is None and options.progress is None else chunks_with(options)
        return kind(self._base, key_prefix(self.path), self.metadata, self.options, fold=True)

    def __eq__(self, other: object) -> bool:
        """Whether the other object is the same array in the same store, with the same metadata."""
        if not isinstance(other, Array):
            return NotImplemented
        return (self.store, self.path, self.metadata) == (other.store, other.path, other.metadata)

    def __hash__(self) -> int:
        return hash((self.store, self.path))

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self.store, self.path, self.metadata, self.options._replace(progress=None))

    def __repr__(self) -> str:
        return f"<Array {self._where} shape={self.shape} dtype={self.dtype}>"

    # properties

    @property
    def shape(self) -> Shape:
        """The length of each dimension. Assigning a shape resizes the array, as `resize` does.

        Examples
        --------
        >>> import zarrlite
        >>> a = zarrlite.create_array("memory://", shape=(4, 6), dtype="int16")
        >>> a.shape
        (4, 6)
        >>> a.shape = (2, 8)
        >>> a[...].shape
        (2, 8)
        """
        return self.metadata.shape

    @shape.setter
    def shape(self, shape: ShapeLike) -> None:
        self.resize(shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(4, 6), dtype="int16").ndim
        2
        """
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(4, 6), dtype="int16").size
        24
        """
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of the elements that a read returns, in the byte order of this machine.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(4, 6), dtype=">i2").dtype
        dtype('int16')
        """
        return self.metadata.data_type.dtype

    @property
    def fill_value(self) -> Any:
        """The value of elements that were never written.

        Examples
        --------
        >>> import zarrlite
        >>> int(zarrlite.create_array("memory://", shape=(4, 6), dtype="int16", fill_value=-1).fill_value)
        -1
        """
        return self.metadata.fill_value

    @property
    def nbytes(self) -> int:
        """The number of bytes that all decoded elements occupy in memory.

        For elements of variable length, only the references stored in the numpy array are counted.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(4, 6), dtype="int16").nbytes
        48
        """
        return self.size * self.dtype.itemsize

    @property
    def _grid_chunk_shape(self) -> Shape:
        return self.metadata.chunk_grid.largest_chunk(self.ndim)

    @property
    def chunks(self) -> Shape:
        """The shape of a chunk, or of an inner chunk if the array has shards.

        If chunks differ in shape, this is the largest length along each dimension; `write_chunk_sizes` lists them all.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(9, 9), dtype="int16", chunks=(2, 2), shards=(4, 4)).chunks
        (2, 2)
        """
        return self._inner_chunk_shape or self._grid_chunk_shape

    @property
    def shards(self) -> Shape | None:
        """The shape of a shard. None if the array has no shards.

        If shards differ in shape, this is the largest length along each dimension.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(9, 9), dtype="int16", chunks=(2, 2), shards=(4, 4)).shards
        (4, 4)
        """
        if self._inner_chunk_shape:
            return self._grid_chunk_shape
        folded = self.metadata.folded().chunk_grid.largest_chunk(self.ndim)  # a storage transformer may define shards
        return folded if folded != self._grid_chunk_shape else None

    @property
    def write_chunk_sizes(self) -> tuple[Shape, ...]:
        """The lengths of all chunks, or of all shards, along each dimension, excluding the parts outside the array.

        Raises
        ------
        ArgumentError
            If there are more than a million chunks along a dimension.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(9, 9), dtype="int16", chunks=[[2, 3, 4], 5]).write_chunk_sizes
        ((2, 3, 4), (5, 4))
        """
        grid = self.metadata.chunk_grid
        counts = grid.grid_shape(self.shape)
        if any(count > MAX_SIZES for count in counts):
            raise ArgumentError(f"the array must have at most {MAX_SIZES} chunks along each dimension, not {counts}")
        return tuple(
            tuple(min(stop, self.shape[dim]) - start for start, stop in map(self._chunk_bounds(dim), range(count)))
            for dim, count in enumerate(counts)
        )

    @property
    def read_chunk_sizes(self) -> tuple[Shape, ...]:
        """The lengths of all chunks, or of all inner chunks if the array has shards, along each dimension.

        Raises
        ------
        ArgumentError
            If there are more than a million chunks along a dimension.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=9, dtype="int16", chunks=2, shards=[[4, 6]]).read_chunk_sizes
        ((2, 2, 2, 2, 1),)
        """
        inner = self._inner_chunk_shape
        if not inner:
            return self.write_chunk_sizes
        if any(count > MAX_SIZES for count in self.cdata_shape):
            message = f"the array must have at most {MAX_SIZES} chunks along each dimension, not {self.cdata_shape}"
            raise ArgumentError(message)
        return tuple(tuple(min(c, n - i) for i in range(0, n, c)) for n, c in zip(self.shape, inner, strict=True))

    def _chunk_bounds(self, dim: int) -> Callable[[int], tuple[int, int]]:
        """Return a function that maps the index of a chunk along a dimension to the chunk's start and stop."""
        grid = self.metadata.chunk_grid

        def bounds(number: int) -> tuple[int, int]:
            coords = tuple(number if d == dim else 0 for d in range(self.ndim))
            start = grid.origin(coords)[dim]
            return start, start + grid.chunk_shape(coords)[dim]

        return bounds

    @property
    def _inner_chunk_shape(self) -> Shape | None:
        return self.metadata.inner_chunk_shape

    def _chain(self) -> Sequence[Codec | Ignored]:
        """Return the codecs of a chunk, or of an inner chunk if the array has shards."""
        codecs: Any = self.metadata.codecs
        while inner := [codec.codecs for codec in codecs if getattr(codec, "inner_chunk_shape", None)]:
            (codecs,) = inner
        return codecs  # type: ignore[no-any-return]

    @property
    def filters(self) -> tuple[ArrayArrayCodec, ...]:
        """The array -> array codecs; if the array has shards, those of the inner chunks.

        Examples
        --------
        >>> import zarrlite
        >>> from zarrlite.codecs import Transpose
        >>> zarrlite.create_array("memory://", shape=(2, 3), dtype="int16", filters=Transpose((1, 0))).filters
        (Transpose(order=(1, 0)),)
        """
        return tuple(codec for codec in self._chain() if isinstance(codec, ArrayArrayCodec))

    @property
    def serializer(self) -> ArrayBytesCodec:
        """The array -> bytes codec; if the array has shards, that of the inner chunks.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(2, 3), dtype="int16", chunks=1, shards=2).serializer
        Bytes(endian='little')
        """
        return next(codec for codec in self._chain() if isinstance(codec, ArrayBytesCodec))

    @property
    def compressors(self) -> tuple[BytesBytesCodec, ...]:
        """The bytes -> bytes codecs; if the array has shards, those of the inner chunks.

        Examples
        --------
        >>> import zarrlite
        >>> [codec.name for codec in zarrlite.create_array("memory://", shape=2, dtype="int16").compressors]
        ['zstd']
        """
        return tuple(codec for codec in self._chain() if isinstance(codec, BytesBytesCodec))

    @property
    def cdata_shape(self) -> Shape:
        """The number of chunks, or of inner chunks if the array has shards, along each dimension.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(9, 6), dtype="int16", chunks=(2, 3)).cdata_shape
        (5, 2)
        """
        return self._count_chunks(self.shape)

    def _count_chunks(self, shape: Shape) -> Shape:
        if not self._inner_chunk_shape:
            return self.metadata.chunk_grid.grid_shape(shape)
        return tuple(-(-n // c) for n, c in zip(shape, self.chunks, strict=True))

    @property
    def nchunks(self) -> int:
        """The number of chunks, or of inner chunks if the array has shards, whether stored or not.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(9, 6), dtype="int16", chunks=(2, 3)).nchunks
        10
        """
        return math.prod(self.cdata_shape)

    @property
    def nchunks_initialized(self) -> int:
        """The number of stored chunks, found by listing the store. All inner chunks of a stored shard are counted.

        Examples
        --------
        >>> import zarrlite
        >>> a = zarrlite.create_array("memory://", shape=(9, 6), dtype="int16", chunks=(2, 3))
        >>> a[0, 0] = 1
        >>> a.nchunks_initialized
        1
        """
        grid = self.metadata.chunk_grid.grid_shape(self.shape)
        chunks = Chunks(self._base, key_prefix(self.path), self.metadata, self.options)
        stored = [coords for coords, _ in chunks.stored() if all(c < n for c, n in zip(coords, grid, strict=True))]
        if not self._inner_chunk_shape:
            return len(stored)
        return sum(math.prod(self._count_chunks(chunks.shape_inside(coords))) for coords in stored)

    def nbytes_stored(self) -> int:
        """Return the number of bytes stored for the array, including its metadata document.

        Lists the store and requests the size of every value below the array.

        Returns
        -------
        int
            The sum of the sizes.

        Examples
        --------
        >>> import zarrlite
        >>> a = zarrlite.create_array("memory://", shape=9, dtype="int16", compressors=None)
        >>> before = a.nbytes_stored()
        >>> a[...] = 1
        >>> a.nbytes_stored() - before
        18
        """
        return sum(self._base.size(key) or 0 for key in self._base.list_prefix(""))

    @property
    def info(self) -> Info:
        """A printable summary, produced without reading chunks.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(4, 6), dtype="int16", chunks=(2, 3)).info
        Type           : Array
        Name           : /
        Shape          : (4, 6)
        Data type      : int16
        Fill value     : 0
        Chunk shape    : (2, 3)
        Chunk keys     : c/0/0 ...
        Codecs         : bytes -> zstd
        Store          : MemoryStore(1 key)
        Read-only      : False
        Bytes, decoded : 48
        """
        from zarrlite.nodes.info import array_info  # imported here: keeps `import zarrlite` light

        return array_info(self, self.metadata, self.chunks, self.shards)

    def info_complete(self) -> Info:
        """Return the summary together with the numbers of stored chunks and bytes, found by listing the store.

        Returns
        -------
        Info
            The printable summary.

        Examples
        --------
        >>> import zarrlite
        >>> a = zarrlite.create_array("memory://", data=[1, 2], compressors=None)
        >>> a.info_complete().items()[-1]
        ('Chunks, stored', '1 of 1')
        """
        from zarrlite.nodes.info import Info, human  # imported here: keeps `import zarrlite` light

        stored = [
            ("Bytes, stored", human(self.nbytes_stored())),
            ("Chunks, stored", f"{self.nchunks_initialized} of {self.nchunks}"),
        ]
        return Info([*self.info.items(), *stored])

    @property
    def order(self) -> Literal["C", "F"]:
        """The memory order of the numpy arrays that reads return.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(2, 2), dtype="int8", order="F").order
        'F'
        """
        return self.options.order

    @property
    def config(self) -> ArrayOptions:
        """The runtime options, under zarr-python's name.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=2, dtype="int8").config.write_empty_chunks
        False
        """
        return self.options

    def with_config(self, config: ConfigLike) -> Array:
        """Return the same array with other runtime options. Nothing is stored.

        Parameters
        ----------
        config : mapping
            A mapping with one or both of the members `order` and `write_empty_chunks`.

        Returns
        -------
        Array
            The array with these options.

        Examples
        --------
        >>> import zarrlite
        >>> a = zarrlite.create_array("memory://", shape=(2, 2), dtype="int8")
        >>> a.with_config({"order": "F"})[...].flags.f_contiguous
        True
        """
        return Array(self.store, self.path, self.metadata, override_options(self.options, config))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("an array without dimensions has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("an array without dimensions cannot be iterated over")
        step = self.chunks[0]
        for start in range(0, self.shape[0], step):
            yield from self[start : start + step]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        if copy is False:
            raise ValueError("a Zarr array cannot be converted to a numpy array without a copy")
        array: NDArray = self[...]
        return array if dtype is None else array.astype(dtype, copy=False)

    def to_dask(self, chunks: Any = None) -> Any:
        """Return a dask array that reads this array lazily, with one block for each shard or chunk.

        Parameters
        ----------
        chunks : int, tuple or str, optional
            Block lengths to use instead, in any form that dask accepts.

        Returns
        -------
        dask.array.Array
            The dask array.

        Raises
        ------
        DependencyError
            If dask is not installed.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> zarrlite.create_array("memory://", data=np.arange(6), chunks=4).to_dask().sum().compute()
        np.int64(15)
        """
        from zarrlite.adapters.dask import to_dask  # imported here: the adapter imports dask

        return to_dask(self, chunks)

    # reading and writing

    def _store_of_requests(self) -> Store:
        return self.store

    def __getitem__(self, index: Any) -> Any:
        shape = self.metadata.shape
        coords = indexing.element(index, shape)
        if coords is not None and self._has_scalars:
            return self._chunks.element(coords)
        box = indexing.box(index, shape)
        if box is not None:
            selection, result_shape = box
            out = allocate(selection.shape, self.metadata.data_type.dtype, self.options.order)
            if out.size:
                self._chunks.read(selection, out)
            return out if result_shape == selection.shape else out.reshape(result_shape)[()]
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
        """Orthogonal indexing: every dimension is indexed independently.

        Accepts integers, slices, integer arrays and boolean arrays, one for each dimension.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(12).reshape(3, 4))
        >>> a.oindex[[0, 2], [1, 3]]
        array([[ 1,  3],
               [ 9, 11]])
        """
        return Indexer(self, lambda index: indexing.orthogonal(index, self.shape))

    @property
    def vindex(self) -> Indexer:
        """Point indexing: index arrays are broadcast together, and each position in them selects one point.

        Accepts integers, slices and integer arrays, or a boolean array with the same shape as the array.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(12).reshape(3, 4))
        >>> a.vindex[[0, 2], [1, 3]]
        array([ 1, 11])
        """
        return Indexer(self, lambda index: indexing.points(index, self.shape))

    @property
    def blocks(self) -> Indexer:
        """Indexing by chunks: integers and slices select chunks of the grid instead of elements.

        With the codec `sharding_indexed`, the chunks of the grid are the shards. A dimension indexed by an integer is
        kept in the result.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> a.blocks[0, 1]
        array([[2, 3],
               [6, 7]])
        """
        counts = self.metadata.chunk_grid.grid_shape(self.shape)
        return Indexer(self, lambda index: indexing.blocks(index, self.shape, counts, self._chunk_bounds))

    def get_basic_selection(
        self, selection: Any = ..., *, out: NDArray | None = None, fields: str | list[str] | None = None
    ) -> Any:
        """Read the elements selected by integers and slices, as in `a[...]`.

        Parameters
        ----------
        selection : index, optional
            The elements to read.
        out : numpy.ndarray, optional
            The array that receives the elements; it must have the shape of the result.
        fields : str or list of str, optional
            Fields of a structured data type; all fields if omitted.

        Returns
        -------
        numpy.ndarray or scalar
            The elements.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(6).reshape(2, 3))
        >>> a.get_basic_selection((0, slice(1, 3)))
        array([1, 2])
        """
        return _into(out, self[_with_fields(selection, fields)])

    def set_basic_selection(self, selection: Any, value: Any, *, fields: str | list[str] | None = None) -> None:
        """Write the elements selected by integers and slices, as in `a[...]`.

        Parameters
        ----------
        selection : index
            The elements to write.
        value : array_like
            The new elements, cast and broadcast as in numpy.
        fields : str or list of str, optional
            Fields of a structured data type; all fields if omitted.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(6).reshape(2, 3))
        >>> a.set_basic_selection((0, slice(1, 3)), 9)
        >>> int((a[...] == 9).sum())
        2
        """
        self[_with_fields(selection, fields)] = value

    def get_orthogonal_selection(
        self, selection: Any, *, out: NDArray | None = None, fields: str | list[str] | None = None
    ) -> Any:
        """Read the elements selected by an integer, slice or index array for each dimension, as in `a.oindex[...]`.

        Parameters
        ----------
        selection : index
            The elements to read.
        out : numpy.ndarray, optional
            The array that receives the elements; it must have the shape of the result.
        fields : str or list of str, optional
            Fields of a structured data type; all fields if omitted.

        Returns
        -------
        numpy.ndarray or scalar
            The elements.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(6).reshape(2, 3))
        >>> a.get_orthogonal_selection(([0, 1], [0, 2]))
        array([[0, 2],
               [3, 5]])
        """
        return _into(out, self.oindex[_with_fields(selection, fields)])

    def set_orthogonal_selection(self, selection: Any, value: Any, *, fields: str | list[str] | None = None) -> None:
        """Write the elements selected by an integer, slice or index array for each dimension, as in `a.oindex[...]`.

        Parameters
        ----------
        selection : index
            The elements to write.
        value : array_like
            The new elements, cast and broadcast as in numpy.
        fields : str or list of str, optional
            Fields of a structured data type; all fields if omitted.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(6).reshape(2, 3))
        >>> a.set_orthogonal_selection(([0, 1], [0, 2]), 9)
        >>> int((a[...] == 9).sum())
        4
        """
        self.oindex[_with_fields(selection, fields)] = value

    def get_coordinate_selection(
        self, selection: Any, *, out: NDArray | None = None, fields: str | list[str] | None = None
    ) -> Any:
        """Read the elements selected by index arrays that are broadcast together, as in `a.vindex[...]`.

        Parameters
        ----------
        selection : index
            The elements to read.
        out : numpy.ndarray, optional
            The array that receives the elements; it must have the shape of the result.
        fields : str or list of str, optional
            Fields of a structured data type; all fields if omitted.

        Returns
        -------
        numpy.ndarray or scalar
            The elements.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(6).reshape(2, 3))
        >>> a.get_coordinate_selection(([0, 1], [0, 2]))
        array([0, 5])
        """
        return _into(out, self.vindex[_with_fields(selection, fields)])

    def set_coordinate_selection(self, selection: Any, value: Any, *, fields: str | list[str] | None = None) -> None:
        """Write the elements selected by index arrays that are broadcast together, as in `a.vindex[...]`.

        Parameters
        ----------
        selection : index
            The elements to write.
        value : array_like
            The new elements, cast and broadcast as in numpy.
        fields : str or list of str, optional
            Fields of a structured data type; all fields if omitted.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(6).reshape(2, 3))
        >>> a.set_coordinate_selection(([0, 1], [0, 2]), 9)
        >>> int((a[...] == 9).sum())
        2
        """
        self.vindex[_with_fields(selection, fields)] = value

    def get_mask_selection(
        self, mask: Any, *, out: NDArray | None = None, fields: str | list[str] | None = None
    ) -> Any:
        """Read the elements selected by a boolean array with the same shape as the array, as in `a.vindex[...]`.

        Parameters
        ----------
        mask : index
            The elements to read.
        out : numpy.ndarray, optional
            The array that receives the elements; it must have the shape of the result.
        fields : str or list of str, optional
            Fields of a structured data type; all fields if omitted.

        Returns
        -------
        numpy.ndarray or scalar
            The elements.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(6).reshape(2, 3))
        >>> a.get_mask_selection(np.array([[1, 0, 0], [0, 0, 1]], bool))
        array([0, 5])
        """
        return _into(out, self.vindex[_with_fields(mask, fields)])

    def set_mask_selection(self, mask: Any, value: Any, *, fields: str | list[str] | None = None) -> None:
        """Write the elements selected by a boolean array with the same shape as the array, as in `a.vindex[...]`.

        Parameters
        ----------
        mask : index
            The elements to write.
        value : array_like
            The new elements, cast and broadcast as in numpy.
        fields : str or list of str, optional
            Fields of a structured data type; all fields if omitted.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(6).reshape(2, 3))
        >>> a.set_mask_selection(np.array([[1, 0, 0], [0, 0, 1]], bool), 9)
        >>> int((a[...] == 9).sum())
        2
        """
        self.vindex[_with_fields(mask, fields)] = value

    def get_block_selection(
        self, selection: Any, *, out: NDArray | None = None, fields: str | list[str] | None = None
    ) -> Any:
        """Read the elements of chunks that are selected by integers and slices, as in `a.blocks[...]`.

        Parameters
        ----------
        selection : index
            The elements to read.
        out : numpy.ndarray, optional
            The array that receives the elements; it must have the shape of the result.
        fields : str or list of str, optional
            Fields of a structured data type; all fields if omitted.

        Returns
        -------
        numpy.ndarray or scalar
            The elements.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(6).reshape(2, 3))
        >>> a.get_block_selection((0, 0))
        array([[0, 1, 2],
               [3, 4, 5]])
        """
        return _into(out, self.blocks[_with_fields(selection, fields)])

    def set_block_selection(self, selection: Any, value: Any, *, fields: str | list[str] | None = None) -> None:
        """Write the elements of chunks that are selected by integers and slices, as in `a.blocks[...]`.

        Parameters
        ----------
        selection : index
            The elements to write.
        value : array_like
            The new elements, cast and broadcast as in numpy.
        fields : str or list of str, optional
            Fields of a structured data type; all fields if omitted.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(6).reshape(2, 3))
        >>> a.set_block_selection((0, 0), 9)
        >>> int((a[...] == 9).sum())
        6
        """
        self.blocks[_with_fields(selection, fields)] = value

    def _get(self, request: indexing.Request) -> Any:
        selection = request.selection
        out = allocate(selection.shape, self.dtype, self.options.order)
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

    def resize(self, new_shape: ShapeLike) -> None:
        """Change the shape of the array in the store.

        Elements outside the new shape are removed. New elements have the fill value, even where an earlier resize
        removed data. The document is changed first, atomically: readers see either the old or the new shape. If the
        removal is interrupted, chunks that readers never see stay in the store, and the next change to the shape
        removes them. Data that other writers append during a resize is kept.

        Parameters
        ----------
        new_shape : int or sequence of int
            The new length of each dimension.

        Raises
        ------
        ArgumentError
            If the number of dimensions differs, or a length is negative or too large.
        ReadOnlyError
            If the array is read-only.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.arange(4))
        >>> a.resize(2)
        >>> a.resize(5)
        >>> a[...]
        array([0, 1, 0, 0, 0])
        """
        new = normalize_shape(new_shape)
        if len(new) != self.ndim:
            raise ArgumentError(f"a new shape must have {self.ndim} lengths, not {len(new)}")
        old = self._reshape(lambda stored: new)
        if _is_smaller(new, old):
            self._complete_resize()

    def _complete_resize(self) -> None:
        """Remove chunks outside the stored shape, if a resize has not removed them yet."""
        with self._base.lock(DOCUMENT):
            stored = self._base.get(DOCUMENT)
            if stored is not None:  # another writer may have deleted the array
                self._trim(parse_node(stored, strict=False))

    def _reshape(self, change: Callable[[Shape], Shape]) -> Shape:
        """Change the stored shape, which another writer may already have changed. Returns the old stored shape."""
        old = self.shape

        def reshaped(stored: ArrayMetadata) -> ArrayMetadata:
            nonlocal old
            old = stored.shape
            new = stored.with_shape(change(old))
            self._trim(stored)
            if _is_smaller(new.shape, old):
                self._base.set(RESIZING, dump_json({"shape": old}))
            return new

        self.metadata = self.metadata.with_shape_of(self._change_metadata(reshaped))
        self.__dict__.pop("_chunks", None)
        return old

    def _trim(self, stored: Any) -> None:
        """Remove chunks outside the stored shape that an unfinished resize left. Requires the lock of the document.

        The value at `RESIZING` is the shape before that resize: only dimensions that became shorter can have chunks
        outside the stored shape.
        """
        mark = self._base.get(RESIZING)
        if mark is None:
            return
        old = Config(load_json(mark, RESIZING), "", Context(document=RESIZING)).integers("shape")
        if len(old) != len(stored.shape):  # an earlier array at this path left the key `RESIZING`
            old = (MAX_LENGTH,) * len(stored.shape)
        metadata = self.metadata.with_shape_of(stored)
        chunks = Chunks(self._base, key_prefix(self.path), metadata, self.options, fold=True)
        for coords, key in list(chunks.stored()):
            chunks.trim(coords, key, old)
        self._base.erase(RESIZING)

    def append(self, data: npt.ArrayLike, axis: int = 0) -> Shape:
        """Append data along one dimension.

        The array is resized first, atomically, based on the shape stored at that moment, so that concurrent appends get
        different regions. Then the new region is written, chunk by chunk. A chunk that has not been written yet, or
        is never written because of an interruption, reads as the fill value.

        Parameters
        ----------
        data : array_like
            The data. Its shape must equal that of the array in all dimensions except `axis`.
        axis : int, optional
            The dimension that grows. A negative number counts from the end.

        Returns
        -------
        tuple of int
            The new shape.

        Raises
        ------
        ArgumentError
            If the data cannot be cast to the data type of the array, or its shape does not match that of the array.
            Nothing is changed.
        SelectionError
            If the array has no dimension `axis`.
        ReadOnlyError
            If the array is read-only.

        Examples
        --------
        >>> import numpy as np, zarrlite
        >>> a = zarrlite.create_array("memory://", data=np.zeros((2, 3)))
        >>> a.append(np.ones((1, 3)))
        (3, 3)
        >>> a.append(np.ones((3, 2)), axis=1)
        (3, 5)
        """
        values = cast(data, self.dtype)
        if not -self.ndim <= axis < self.ndim:
            raise SelectionError(f"axis {axis} is out of bounds for an array of {self.ndim} dimensions")
        axis %= self.ndim

        def grown(old: Shape) -> Shape:
            new = values.shape
            if len(new) != len(old) or new[:axis] != old[:axis] or new[axis + 1 :] != old[axis + 1 :]:
                raise ArgumentError(f"data of shape {new} cannot be appended to shape {old} along axis {axis}")
            return normalize_shape((*old[:axis], old[axis] + new[axis], *old[axis + 1 :]))

        start = self._reshape(grown)[axis]
        region = [slice(None)] * self.ndim
        region[axis] = slice(start, start + values.shape[axis])
        self[tuple(region)] = values
        return self.shape


def chunks_with(options: ArrayOptions) -> type[Chunks]:
    """Return the subclass of `Chunks` for arrays with a chunk cache, with progress reports, or with both."""
    from zarrlite.chunks.cached_chunks import CachedChunks  # imported here: keeps `import zarrlite` light
    from zarrlite.chunks.progress import ReportedCachedChunks, ReportedChunks

    if options.progress is None:
        return CachedChunks
    return ReportedChunks if options.cache is None else ReportedCachedChunks


def _into(out: NDArray | None, result: Any) -> Any:
    """Copy a result into `out`, and return `out`. Returns the result itself if `out` is None."""
    if out is None:
        return result
    if out.shape != np.shape(result):
        raise ArgumentError(f"out must have the shape of the result, {np.shape(result)}, not {out.shape}")
    out[...] = result
    return out


def _with_fields(selection: Any, fields: str | list[str] | None) -> Any:
    """Combine field names with an index into the elements, in the form that `split_fields` accepts."""
    if fields is None:
        return selection
    return (fields, *selection) if isinstance(selection, tuple) else (fields, selection)


def _is_smaller(new: Shape, old: Shape) -> bool:
    """Whether any dimension of the new shape is shorter than before."""
    return any(n < o for n, o in zip(new, old, strict=True))


class Indexer(AsyncAccess):
    """A view of an array with another kind of indexing: `a.oindex`, `a.vindex`, `a.blocks`.

    Parameters
    ----------
    array : Array
        The array.
    request : callable
        A function that translates an index into a selection.

    Examples
    --------
    >>> import numpy as np, zarrlite
    >>> a = zarrlite.create_array("memory://", data=np.zeros((2, 2), "int8"))
    >>> a.vindex[[0, 1], [0, 1]] = 5
    >>> a[...]
    array([[5, 0],
           [0, 5]], dtype=int8)
    """

    def __init__(self, array: Array, request: Callable[[Any], indexing.Request]) -> None:
        self._array = array
        self._request = request

    def _store_of_requests(self) -> Store:
        return self._array.store

    def __getitem__(self, index: Any) -> Any:
        fields, index = split_fields(index, self._array.dtype)
        result = self._array._get(self._request(index))
        return result if fields is None else result[fields]

    def __setitem__(self, index: Any, value: Any) -> None:
        fields, index = split_fields(index, self._array.dtype)
        self._array._set(self._request(index), value, fields)
