"""Dask arrays whose blocks are whole chunks or shards of a zarrlite array.

Rules
- No two blocks that are written share a chunk or a shard, so that tasks need not wait for each other, whatever the
  scheduler.
- A task contains the array as a pickle: its location and its document without attributes, but no open resources.
- A task in another process would write to a copy of an in-memory store, so such stores are refused if the scheduler
  uses other processes.
- The name of a dask array is a hash of its location, document and blocks, so that the tasks of equal arrays have equal
  names.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal, Unpack

import numpy as np

from zarrlite.adapters.tasks import check_reachable, for_tasks
from zarrlite.errors import ArgumentError, DependencyError
from zarrlite.nodes.arguments import ArrayKeywords
from zarrlite.nodes.array import Array
from zarrlite.nodes.opening import create_array
from zarrlite.selections.selection import Shape
from zarrlite.stores import StoreLike

try:
    import dask.array
    import dask.threaded
    from dask.array.core import normalize_chunks
    from dask.base import get_scheduler, tokenize
    from dask.local import get_sync
except ImportError as error:
    raise DependencyError("dask arrays need dask: pip install 'zarrlite[dask]'") from error

_IN_THIS_PROCESS = (None, dask.threaded.get, get_sync)  # schedulers; None stands for the default, threads
Alignment = Literal["rechunk", "error"]


def to_dask(array: Array, chunks: Any = None) -> dask.array.Array:
    """Return a dask array that reads a zarrlite array lazily.

    Parameters
    ----------
    array : Array
        The array.
    chunks : int, tuple or str, optional
        The blocks, in any form that dask accepts. By default, there is one block for each shard, or for each chunk if
        there are no shards. Blocks that dask chooses ("auto") are multiples of these.

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
    light = for_tasks(array)
    stored = _stored_lengths(array)
    blocks = normalize_chunks(  # type: ignore[no-untyped-call]
        stored if chunks is None else chunks, array.shape, dtype=array.dtype, previous_chunks=stored
    )
    name = f"zarrlite-{tokenize(array.store.location(), array.path, light.metadata.to_json(), blocks)}"
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
        The array to write.
    store : Store, path, URI, mapping or None
        The location of the hierarchy, as for `create_array`.
    name : str or None, optional
        Path of the new array in the store; the root if omitted.
    compute : bool, optional
        Whether to write now. False returns a delayed object that writes when it is computed.
    **keywords
        As for `create_array`. By default, the chunks are the blocks of the source if these all have the same shape.

    Returns
    -------
    Array or dask.delayed.Delayed
        The complete new array, or the delayed write if `compute` is false.

    Examples
    --------
    >>> import dask.array as da, zarrlite
    >>> zarrlite.from_dask(da.arange(6, chunks=4), "memory://")[4:]
    array([4, 5])
    """
    _check_known(source)
    if "chunks" not in keywords and "codecs" not in keywords and "shards" not in keywords:
        keywords["chunks"] = tuple(max(1, int(n)) for n in source.chunksize) if _is_regular(source) else "auto"
    array = create_array(store, name=name, shape=source.shape, dtype=source.dtype, **keywords)
    written = store_dask(source, array, compute=compute)
    return array if compute else written


def store_dask(source: dask.array.Array, target: Array, *, align: Alignment = "rechunk", compute: bool = True) -> Any:
    """Write a dask array into an existing array of the same shape, block by block.

    Parameters
    ----------
    source : dask.array.Array
        The array to write.
    target : Array
        The existing array, opened for writing.
    align : {"rechunk", "error"}, optional
        Whether to rechunk the source or to refuse it if one of its blocks shares a chunk or shard of the target with
        another block.
    compute : bool, optional
        Whether to write now. False returns a delayed object that writes when it is computed.

    Returns
    -------
    None or dask.delayed.Delayed
        The delayed write if `compute` is false.

    Raises
    ------
    ArgumentError
        If the shapes differ, or if blocks share a chunk and `align` is "error". In both cases, nothing is written.

    Examples
    --------
    >>> import dask.array as da, zarrlite
    >>> a = zarrlite.create_array("memory://", shape=6, dtype="int64", chunks=2)
    >>> zarrlite.store_dask(da.arange(6, chunks=3), a)
    >>> a[...]
    array([0, 1, 2, 3, 4, 5])
    """
    _check_known(source)
    if source.shape != target.shape:
        raise ArgumentError(f"the shape of the dask array must be {target.shape}, not {source.shape}")
    if align not in ("rechunk", "error"):
        raise ArgumentError(f"align must be 'rechunk' or 'error', not {align!r}")
    stored = _stored_lengths(target)
    if not all(map(_is_aligned, source.chunks, stored)):
        if align == "error":
            message = f"blocks of shape {source.chunksize} must consist of whole chunks of shape {stored}"
            raise ArgumentError(f"{message}; use align='rechunk'")
        aligned = tuple(map(_aligned_lengths, source.chunks, stored))
        source = source.rechunk(aligned)  # type: ignore[no-untyped-call]
    if get_scheduler(collections=[source]) not in _IN_THIS_PROCESS:  # type: ignore[no-untyped-call]
        check_reachable(target.store)
    written: Any = _Target(for_tasks(target))
    return dask.array.store(source, written, lock=False, compute=compute)


class _Target:
    """An array that tasks write to. Pickling it is refused if a task in another process would write to a copy."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape, self.ndim, self.dtype = array.shape, array.ndim, array.dtype

    def __setitem__(self, selection: Any, values: Any) -> None:
        self.array[selection] = values

    def __reduce__(self) -> tuple[Any, ...]:
        check_reachable(self.array.store)
        return _Target, (self.array,)

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, self.array.store.location(), self.array.path


def _check_known(source: dask.array.Array) -> None:
    if any(math.isnan(n) for n in source.shape):
        raise ArgumentError(f"the shape of the dask array must be known, not {source.shape}; use compute_chunk_sizes()")


def _stored_lengths(array: Array) -> tuple[int | Shape, ...]:
    """Return, for each dimension, the length of the chunks or shards, or a tuple of all lengths if they may differ."""
    if array.metadata.chunk_grid.uniform:
        return array.shards or array.chunks
    return array.write_chunk_sizes


def _is_regular(source: dask.array.Array) -> bool:
    return all(len({*sizes[:-1]}) <= 1 and sizes[-1] <= sizes[0] for sizes in source.chunks if sizes)


def _is_aligned(sizes: Shape, stored: int | Shape) -> bool:
    """Whether every block ends at the end of a chunk, or at the end of the array."""
    if isinstance(stored, int):
        return all(size % stored == 0 for size in sizes[:-1])
    return {*itertools.accumulate(sizes)} <= {0, *itertools.accumulate(stored)}


def _aligned_lengths(sizes: Shape, stored: int | Shape) -> int | Shape:
    """Return the lengths of blocks that consist of whole chunks.

    No block is longer than the largest of `sizes`, unless it is a single chunk.
    """
    largest = max(sizes, default=0)
    if isinstance(stored, int):
        return max(stored, largest - largest % stored)
    blocks: list[int] = []
    for n in stored:
        if blocks and blocks[-1] + n <= largest:
            blocks[-1] += n
        else:
            blocks.append(n)
    return tuple(blocks)
