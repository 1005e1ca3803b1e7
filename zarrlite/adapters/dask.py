"""Arrays of dask: blocks that are whole chunks or shards of a zarrlite array.

Rules
- A block never shares a chunk or a shard with another one, so that tasks of any scheduler write without waiting for
  each other.
- A task carries the array as a pickle: its location and its document without attributes, and nothing that is open.
- The name of a dask array is a hash of location and document: equal arrays have equal tasks.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np

from zarrlite.errors import ArgumentError, DependencyError
from zarrlite.nodes.arguments import ArrayKeywords
from zarrlite.nodes.array import Array
from zarrlite.nodes.opening import create_array
from zarrlite.selections.selection import Shape
from zarrlite.stores import StoreLike

try:
    import dask.array
    from dask.base import tokenize
except ImportError as error:
    raise DependencyError("arrays of dask need dask: pip install 'zarrlite[dask]'") from error

Alignment = Literal["rechunk", "error"]


def to_dask(array: Array, chunks: Any = None) -> dask.array.Array:
    """Return a dask array that reads a zarrlite array lazily.

    Parameters
    ----------
    array : Array
        The array.
    chunks : int, tuple or str, optional
        The blocks, as dask describes them; by default one for each shard, or for each chunk without shards.

    Returns
    -------
    dask.array.Array
        The dask array.

    Examples
    --------
    >>> import numpy as np, zarrlite
    >>> a = zarrlite.create_array("memory://", data=np.arange(6), chunks=1, shards=4)
    >>> a.to_dask().chunks
    ((4, 2),)
    """
    light = _without_attributes(array)
    name = f"zarrlite-{tokenize(array.store.location(), array.path, light.metadata.to_json(), chunks)}"
    blocks = _block_shape(array) if chunks is None else chunks
    meta = np.empty((0,) * array.ndim, array.dtype)
    found: dask.array.Array = dask.array.from_array(  # type: ignore[no-untyped-call]
        light, blocks, name=name, lock=False, asarray=False, inline_array=True, meta=meta
    )
    return found


def from_dask(
    source: dask.array.Array,
    store: StoreLike,
    *,
    name: str | None = None,
    compute: bool = True,
    **keywords: Unpack[ArrayKeywords],
) -> Any:
    """Create an array from a dask array, block by block.

    Parameters
    ----------
    source : dask.array.Array
        The elements.
    store : Store, path, URI, mapping or None
        The location of the hierarchy, as for `create_array`.
    name : str or None, optional
        Path of the new array in the store; the root if omitted.
    compute : bool, optional
        Whether to write now. False returns a delayed object that writes when it is computed.
    **keywords
        As for `create_array`. By default, chunks are the blocks of the source if these have one shape.

    Returns
    -------
    Array or dask.delayed.Delayed
        The new array, complete; or the delayed write.

    Examples
    --------
    >>> import dask.array as da, zarrlite
    >>> zarrlite.from_dask(da.arange(6, chunks=4), "memory://")[4:]
    array([4, 5])
    """
    if "chunks" not in keywords and "codecs" not in keywords and "shards" not in keywords:
        keywords["chunks"] = tuple(map(int, source.chunksize)) if _is_regular(source) else "auto"
    array = create_array(store, name=name, shape=source.shape, dtype=source.dtype, **keywords)
    written = store_dask(source, array, compute=compute)
    return array if compute else written


def store_dask(source: dask.array.Array, target: Array, *, align: Alignment = "rechunk", compute: bool = True) -> Any:
    """Write a dask array into an existing array of the same shape, block by block.

    Parameters
    ----------
    source : dask.array.Array
        The elements.
    target : Array
        The array, opened for writing.
    align : {"rechunk", "error"}, optional
        What to do if a block shares a chunk or shard of the target with another block: rechunk the source, or refuse
        it.
    compute : bool, optional
        Whether to write now. False returns a delayed object that writes when it is computed.

    Returns
    -------
    None or dask.delayed.Delayed
        The delayed write, with `compute=False`.

    Raises
    ------
    ArgumentError
        If the shapes differ, or with `align="error"`, if blocks share a chunk. Nothing is written.

    Examples
    --------
    >>> import dask.array as da, zarrlite
    >>> a = zarrlite.create_array("memory://", shape=6, dtype="int64", chunks=2)
    >>> zarrlite.store_dask(da.arange(6, chunks=3), a)
    >>> a[...]
    array([0, 1, 2, 3, 4, 5])
    """
    if source.shape != target.shape:
        raise ArgumentError(f"the shape of the dask array must be {target.shape}, not {source.shape}")
    if align not in ("rechunk", "error"):
        raise ArgumentError(f"align must be 'rechunk' or 'error', not {align!r}")
    block = _block_shape(target)
    if not _is_aligned(source, block):
        if align == "error":
            raise ArgumentError(f"blocks {source.chunksize} must be multiples of {block}; use align='rechunk'")
        source = source.rechunk(_aligned_blocks(source, block))  # type: ignore[no-untyped-call]
    return dask.array.store(source, _without_attributes(target), lock=False, compute=compute)


def _without_attributes(array: Array) -> Array:
    """Return the same array with a smaller pickle."""
    return Array(array.store, array.path, array.metadata.replace(attributes=None), array.options)


def _block_shape(array: Array) -> Shape:
    """Return the smallest block that no two tasks share."""
    return array.shards or array.chunks


def _is_regular(source: dask.array.Array) -> bool:
    return all(len({*sizes[:-1]}) <= 1 and sizes[-1] <= sizes[0] for sizes in source.chunks if sizes)


def _is_aligned(source: dask.array.Array, block: Shape) -> bool:
    return all(size % n == 0 for sizes, n in zip(source.chunks, block, strict=True) for size in sizes[:-1])


def _aligned_blocks(source: dask.array.Array, block: Shape) -> Shape:
    """Return a block shape close to that of the source, in multiples of `block`."""
    return tuple(max(n, size - size % n) for size, n in zip(map(int, source.chunksize), block, strict=True))
