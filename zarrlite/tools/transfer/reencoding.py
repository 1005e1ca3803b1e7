"""Copy an array, and change its chunks, shards, codecs, storage transformers or keys.

Rules
- Metadata that no argument changes is kept: data type, fill value, attributes, dimension names, and the rest.
- Data is copied in blocks, each of which consists of whole stored objects of the target. Memory is bounded by the size
  of a block, or by the largest object.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from zarrlite.adapters.tasks import for_tasks
from zarrlite.chunks.progress import Count
from zarrlite.codecs import ShardingIndexed
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.extension import Ignored
from zarrlite.metadata.documents import ArrayMetadata, serialize
from zarrlite.names import DOCUMENT, key_prefix, normalize_path
from zarrlite.nodes.arguments import ChunkKeyEncodingLike, ChunksLike, CodecLike, StorageTransformerLike
from zarrlite.nodes.array import Array
from zarrlite.nodes.creation import array_metadata
from zarrlite.pipeline.codec import ArrayArrayCodec, BytesBytesCodec
from zarrlite.selections.casting import normalize_shape
from zarrlite.selections.selection import Shape
from zarrlite.stores import Store, StoreLike, open_store
from zarrlite.stores.open import StorageOptions
from zarrlite.tools.transfer.blocks import block_shape, stored_blocks
from zarrlite.tools.transfer.journal import Transfer, ignore
from zarrlite.tools.transfer.workers import connected

Keep = Literal["keep"]


def reencode(
    source: Array,
    store: StoreLike,
    path: str | None = None,
    *,
    chunks: ChunksLike | Keep = "keep",
    shards: ChunksLike | Keep | None = "keep",
    codecs: Sequence[CodecLike] | Keep = "keep",
    chunk_key_encoding: ChunkKeyEncodingLike | Keep = "keep",
    storage_transformers: Sequence[StorageTransformerLike] | Keep = "keep",
    overwrite: bool = False,
    progress: Callable[[int, int], object] | None = None,
    storage_options: StorageOptions | None = None,
    dask: Any = None,
) -> Array:
    """Copy an array with different chunks, shards, codecs, storage transformers or keys.

    The array is copied in blocks, in bounded memory. Blocks without stored chunks are skipped. The document of the new
    array is stored last. An interrupted call can be repeated: it resumes where it stopped.

    Parameters
    ----------
    source : Array
        The array to copy. It must not change during the call.
    store : Store, path, URI, mapping or None
        The target, as for `open`.
    path : str or None, optional
        Path of the new array in that store; the root if omitted.
    chunks, shards : int or sequence of int, optional
        Shape of the chunks and of the shards; None for no shards. By default those of the source.
    codecs : sequence, optional
        The codecs of a chunk. If `bytes`, or the default codec of the data type, is missing, it is inserted.
    chunk_key_encoding : ChunkKeyEncoding, str or dict, optional
        The chunk key encoding.
    storage_transformers : sequence, optional
        The storage transformers.
    overwrite : bool, optional
        Whether to replace an existing node, or an unfinished transfer by another call.
    progress : callable, optional
        Called as `progress(done, total)` with the number of blocks copied so far and the total number of blocks.
    storage_options : mapping, optional
        Keyword arguments for `ObjectStore`, if the target is the URL of an object store.
    dask : str or distributed.Client, optional
        The scheduler whose workers copy the blocks, as a client or an address; "local" for processes on this machine.

    Returns
    -------
    Array
        The new array, opened for reading and writing.

    Raises
    ------
    ArgumentError
        If an argument is invalid, source and target contain each other, or workers cannot reach one of them.
    NodeExistsError
        If a node already exists and `overwrite` is not set.
    StoreError
        If the source changes during the call, or workers fail.

    Examples
    --------
    >>> import tempfile, zarrlite
    >>> source = zarrlite.create_array("memory://", data=range(8), chunks=2)
    >>> zarrlite.reencode(source, tempfile.mkdtemp(), chunks=4, codecs=["zstd"]).chunks
    (4,)
    """
    target = open_store(store, storage_options=storage_options)
    metadata = reencoded_metadata(source, chunks, shards, codecs, chunk_key_encoding, storage_transformers)
    job = Reencoding(source, target, normalize_path(path), metadata)
    job.run(overwrite=overwrite, dask=dask, advance=ignore if progress is None else Count(progress, job.total).advance)
    return job.target


class Reencoding:
    """The task of re-encoding an array to a path in a store. Running it again resumes an interrupted run."""

    def __init__(self, source: Array, store: Store, path: str, metadata: ArrayMetadata) -> None:
        self.source = source
        self.target = Array(store, path, metadata)
        old, new = (array.shards or array.chunks for array in (source, self.target))
        block = block_shape(source.shape, source.dtype.itemsize, new, old)
        plan: Any = {"command": "reencode", "document": metadata.to_json(), "block": list(block)}
        self.transfer = Transfer(source, store, path, plan)
        self._blocks = stored_blocks(block, source)
        self.total = len(self._blocks)

    def run(self, *, overwrite: bool, dask: Any = None, advance: Callable[[int], object] = ignore) -> int:
        """Copy the blocks, and call `advance` with the number of blocks in each step.

        Returns the number of blocks that an earlier run had copied.
        """
        source, target = self.source, self.target
        with connected(dask, source.store, target.store) as run_steps:
            done = self.transfer.begin(overwrite=overwrite)
            advance(done)
            work = CopyBlock(for_tasks(source), for_tasks(target))
            with self.transfer.running(), closing(run_steps(work, self._blocks[done:])) as steps:
                for _ in steps:
                    self.transfer.advance()
                    advance(1)
                self.transfer.check_source()
        target.store.set(key_prefix(target.path) + DOCUMENT, serialize(target.metadata))
        self.transfer.end()
        return done


@dataclass(frozen=True)
class CopyBlock:
    """Copies one block, which is the work of one step."""

    source: Array
    target: Array

    def __call__(self, where: tuple[slice, ...]) -> None:
        self.target[where] = self.source[where]


def reencoded_metadata(
    source: Array,
    chunks: ChunksLike | Keep = "keep",
    shards: ChunksLike | Keep | None = "keep",
    codecs: Sequence[CodecLike] | Keep = "keep",
    chunk_key_encoding: ChunkKeyEncodingLike | Keep = "keep",
    storage_transformers: Sequence[StorageTransformerLike] | Keep = "keep",
) -> ArrayMetadata:
    """Return the metadata of the source, changed by the arguments of `reencode`."""
    old = source.metadata
    transformers: Any = storage_transformers
    if _is_kept(storage_transformers):
        transformers = [t for t in old.storage_transformers or () if not isinstance(t, Ignored)]
    try:
        grid, chain = _chunking(source, chunks, shards, codecs)
        metadata = array_metadata(
            old.shape,
            old.data_type,
            chunks=grid,
            codecs=chain,
            chunk_key_encoding=old.chunk_key_encoding if _is_kept(chunk_key_encoding) else chunk_key_encoding,
            dimension_names=old.dimension_names,
            storage_transformers=transformers,
        )
    except MetadataError as error:
        if any(fault.kind == "unknown-extension" for fault in error.problems):
            raise
        raise ArgumentError(str(error)) from None
    return metadata.replace(fill_value=old.fill_value, attributes=old.attributes, extra=old.extra)


def _chunking(source: Array, chunks: Any, shards: Any, codecs: Any) -> tuple[Shape, list[Any]]:
    """Return the chunk shape of the new grid (with shards, the shape of a shard), and the codecs."""
    old = source.metadata
    grid = old.chunk_grid.chunk_shape((0,) * source.ndim)
    chain: list[Any] = [codec for codec in old.codecs if not isinstance(codec, Ignored)]
    sharding = next((codec for codec in chain if isinstance(codec, ShardingIndexed)), None)
    if (_is_kept(chunks) or (sharding is not None and _is_kept(shards))) and not old.chunk_grid.uniform:
        message = "the chunks of the source differ in shape; choose chunks, and also shards if the source has shards"
        raise ArgumentError(message)
    if _is_kept(chunks) and _is_kept(shards) and (_is_kept(codecs) or sharding is None):
        return grid, chain if _is_kept(codecs) else _complete_codecs(source, codecs)
    if sharding is not None and len(chain) > 1 and _is_kept(codecs):
        raise ArgumentError(
            "the source encodes whole shards with further codecs, which cannot be kept; choose codecs for the chunks"
        )
    shard_shape = None if sharding is None else grid
    if not _is_kept(shards):
        shard_shape = None if shards is None else _lengths("shards", shards, source.ndim)
    chunk_shape = grid if sharding is None else sharding.chunk_shape
    if not _is_kept(chunks):
        chunk_shape = _lengths("chunks", chunks, source.ndim)
    chunk_codecs = chain if sharding is None else list(sharding.codecs)
    if not _is_kept(codecs):
        chunk_codecs = _complete_codecs(source, codecs)
    if shard_shape is None:
        return chunk_shape, chunk_codecs
    if sharding is None:
        return shard_shape, [ShardingIndexed(chunk_shape, tuple(chunk_codecs))]
    return shard_shape, [dataclasses.replace(sharding, chunk_shape=chunk_shape, codecs=tuple(chunk_codecs))]


def _is_kept(value: Any) -> bool:
    return isinstance(value, str) and value == "keep"


def _lengths(name: str, lengths: Any, ndim: int) -> Shape:
    """Return a length for each dimension; a single number is used for all of them."""
    found = normalize_shape(lengths)
    if len(found) == 1:
        found *= ndim
    if len(found) != ndim or 0 in found:
        raise ArgumentError(f"{name} must have {ndim} lengths of at least 1, not {lengths!r}")
    return found


def _complete_codecs(source: Array, codecs: Sequence[Any]) -> list[Any]:
    """Insert the data type's default array -> bytes codec, unless `codecs` contains one other than `bytes`."""
    if isinstance(codecs, (str, dict)):
        raise ArgumentError(f"codecs must be a list of codecs, not {codecs!r}")
    chain = [registry.codecs.coerce(codec) for codec in codecs if codec != "bytes"]
    before = [codec for codec in chain if isinstance(codec, ArrayArrayCodec)]
    after = [codec for codec in chain if isinstance(codec, BytesBytesCodec)]
    if len(before) + len(after) < len(chain):  # the chain contains an array -> bytes codec
        return chain
    default = array_metadata((), source.metadata.data_type, compressors=None).codecs
    return [*before, *default, *after]
