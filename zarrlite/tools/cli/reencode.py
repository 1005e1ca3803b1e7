"""`zarrlite reencode`: copy an array with different chunks, shards, codecs, storage transformers or keys.

Rules
- Metadata that no option changes is kept: data type, fill value, attributes, dimension names, and the rest.
- Data is copied in blocks of whole stored objects of the target. Memory is bounded by the size of a block, or by the
  largest object.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from typing import Any

from zarrlite.codecs import ShardingIndexed
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.extension import Ignored
from zarrlite.metadata.documents import ArrayMetadata, serialize
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes.array import Array
from zarrlite.nodes.creation import array_metadata
from zarrlite.pipeline.codec import ArrayArrayCodec, BytesBytesCodec
from zarrlite.selections import indexing
from zarrlite.stores import Store
from zarrlite.tools.cli.blocks import block_shape, stored_blocks
from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.extensions import parse_lengths, parse_list, parse_one
from zarrlite.tools.cli.locate import open_array, split
from zarrlite.tools.cli.transfer import Transfer

HELP = "copy an array with different chunks, shards, codecs or keys"
EXAMPLE = "zarrlite reencode image.zarr smaller.zarr --chunks 64,64 --shards 1024,1024 --codecs zstd:level=9,crc32c"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    syntax = "JSON, or names with members"
    parser.add_argument("source", help="a path or URL of an array")
    parser.add_argument("target", help="the location of the new array; rerun the same command to resume")
    parser.add_argument("--chunks", metavar="N,N", help="chunk shape; with shards, the shape of the inner chunks")
    parser.add_argument("--shards", metavar="N,N", help="shard shape, or none")
    parser.add_argument("--codecs", metavar="C,C", help=f"codecs of a chunk: {syntax}, such as bytes,zstd:level=9")
    parser.add_argument("--transformers", metavar="T,T", help=f"storage transformers: {syntax}, or none")
    parser.add_argument("--keys", metavar="K", help="chunk key encoding: JSON or a name, such as v2:separator=/")
    parser.add_argument("--overwrite", action="store_true", help="replace the node at the target")


def run(args: argparse.Namespace, console: Console) -> int:
    source = open_array(args.source)
    store, path = split(args.target)
    with store:  # completes a zip file
        return _reencode(source, store, path, args, console)


def _reencode(source: Array, store: Store, path: str, args: argparse.Namespace, console: Console) -> int:
    metadata = new_metadata(source, args)
    target = Array(store, path, metadata)
    transfer = Transfer(source, store, path, {"command": "reencode", "document": metadata.to_json()})
    block = block_shape(
        source.shape, source.dtype.itemsize, target.shards or target.chunks, source.shards or source.chunks
    )
    blocks = stored_blocks(block, source)
    done = transfer.begin(overwrite=args.overwrite)
    with transfer.running(), console.progress("reencode", len(blocks)) as progress:
        progress.advance(done)
        if done < len(blocks):
            _erase_chunks(target, blocks[done])
        for where in blocks[done:]:
            target[where] = source[where]
            transfer.advance()
            progress.advance()
        transfer.check_source()
    store.set(key_prefix(path) + DOCUMENT, serialize(metadata))
    transfer.end()
    before, after = source.nbytes_stored(), target.nbytes_stored()
    if console.as_json:
        console.json({"blocks": len(blocks), "blocks_done_before": done, "bytes_before": before, "bytes_after": after})
    else:
        console.print(f"reencoded {math.prod(source.shape)} values: {before} bytes stored before, {after} after")
    return 0


def _erase_chunks(target: Array, where: tuple[slice, ...]) -> None:
    """Erase the chunks of a block: an interrupted run may have stored only some objects of a chunk in parts."""
    chunks = target._chunks
    for coords, _, _ in chunks.grid.project(indexing.basic(where, target.shape).selection):
        chunks.store.erase(chunks.metadata.chunk_key_encoding.encode(coords))


def new_metadata(source: Array, args: argparse.Namespace) -> ArrayMetadata:
    """Return the metadata of the source, changed by the options."""
    old = source.metadata
    try:
        grid, codecs = _chunking(source, args)
        transformers: Any = [t for t in old.storage_transformers or () if not isinstance(t, Ignored)]
        if args.transformers is not None:
            transformers = parse_list(args.transformers, "--transformers")
        keys = old.chunk_key_encoding if args.keys is None else parse_one(args.keys, "--keys")
        metadata = array_metadata(
            old.shape,
            old.data_type,
            chunks=grid,
            codecs=codecs,
            chunk_key_encoding=keys,
            dimension_names=old.dimension_names,
            storage_transformers=transformers,
        )
    except MetadataError as error:
        if any(fault.kind == "unknown-extension" for fault in error.problems):
            raise
        raise ArgumentError(str(error)) from None
    return metadata.replace(fill_value=old.fill_value, attributes=old.attributes, extra=old.extra)


def _chunking(source: Array, args: argparse.Namespace) -> tuple[tuple[int, ...], list[Any]]:
    """Return the chunk shape of the grid, which is the shard shape with shards, and the codecs."""
    old = source.metadata
    grid = old.chunk_grid.chunk_shape((0,) * source.ndim)
    chain: list[Any] = [codec for codec in old.codecs if not isinstance(codec, Ignored)]
    sharding = next((codec for codec in chain if isinstance(codec, ShardingIndexed)), None)
    kept = args.chunks is None or (sharding is not None and args.shards is None)
    if kept and not old.chunk_grid.uniform:
        raise ArgumentError("the chunks of the source differ in shape; pass --chunks, and --shards if it has shards")
    if args.chunks is None and args.shards is None and (args.codecs is None or sharding is None):
        return grid, chain if args.codecs is None else _parse_codecs(source, args.codecs)
    if sharding is not None and len(chain) > 1 and args.codecs is None:
        raise ArgumentError(
            "the source has codecs around its shards, which cannot be kept; pass --codecs for the chunks"
        )
    shards = None if sharding is None else grid
    if args.shards is not None:
        shards = None if args.shards == "none" else parse_lengths(args.shards, "--shards", source.ndim)
    chunks = grid if sharding is None else sharding.chunk_shape
    if args.chunks is not None:
        chunks = parse_lengths(args.chunks, "--chunks", source.ndim)
    chunk_codecs = chain if sharding is None else list(sharding.codecs)
    if args.codecs is not None:
        chunk_codecs = _parse_codecs(source, args.codecs)
    if shards is None:
        return chunks, chunk_codecs
    if sharding is None:
        return shards, [ShardingIndexed(chunks, tuple(chunk_codecs))]
    return shards, [dataclasses.replace(sharding, chunk_shape=chunks, codecs=tuple(chunk_codecs))]


def _parse_codecs(source: Array, text: str) -> list[Any]:
    """Parse `--codecs`. Insert the data type's default array -> bytes codec if none, or only `bytes`, is given."""
    codecs = [registry.codecs.coerce(codec) for codec in parse_list(text, "--codecs") if codec != "bytes"]
    before = [codec for codec in codecs if isinstance(codec, ArrayArrayCodec)]
    after = [codec for codec in codecs if isinstance(codec, BytesBytesCodec)]
    if len(before) + len(after) < len(codecs):  # an array -> bytes codec is among them
        return codecs
    default = array_metadata((), source.metadata.data_type, compressors=None).codecs
    return [*before, *default, *after]
