"""`zarrlite reencode`: an array with other chunks, shards, codecs, storage transformers or keys.

Rules
- What no flag names stays as it is: data type, fill value, attributes, names of dimensions, and the rest.
- Data moves in blocks of whole stored objects of the target; memory is bounded by a block, or by the largest object.
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
from zarrlite.tools.cli.blocks import block_shape, stored_blocks
from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.extensions import parse_lengths, parse_list, parse_one
from zarrlite.tools.cli.locate import open_array, split
from zarrlite.tools.cli.transfer import Transfer

HELP = "copy an array with other chunks, shards, codecs or keys"
EXAMPLE = "zarrlite reencode image.zarr smaller.zarr --chunks 64,64 --shards 1024,1024 --codecs zstd:level=9,crc32c"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    extensions = "JSON, or names with members"
    parser.add_argument("source", help="a path or file:// URL of an array")
    parser.add_argument("target", help="where the new array will be; an interrupted run is gone on with")
    parser.add_argument("--chunks", metavar="N,N", help="the shape of a chunk; of an inner chunk, with shards")
    parser.add_argument("--shards", metavar="N,N", help="the shape of a shard, or none")
    parser.add_argument("--codecs", metavar="C,C", help=f"of a chunk: {extensions}, such as bytes,zstd:level=9")
    parser.add_argument("--transformers", metavar="T,T", help=f"storage transformers: {extensions}, or none")
    parser.add_argument("--keys", metavar="K", help="chunk key encoding: JSON or a name, such as v2:separator=/")
    parser.add_argument("--overwrite", action="store_true", help="replace the node that is there")


def run(args: argparse.Namespace, console: Console) -> int:
    source = open_array(args.source)
    metadata = new_metadata(source, args)
    store, path = split(args.target)
    target = Array(store, path, metadata)
    transfer = Transfer(source, store, path, {"command": "reencode", "document": metadata.to_json()})
    block = block_shape(
        source.shape, source.dtype.itemsize, target.shards or target.chunks, source.shards or source.chunks
    )
    places = stored_blocks(block, source)
    done = transfer.begin(overwrite=args.overwrite)
    with transfer.running(), console.progress("reencode", len(places)) as progress:
        progress.advance(done)
        for where in places[done : done + 1]:
            _clear(target, where)
        for where in places[done:]:
            target[where] = source[where]
            transfer.advance()
            progress.advance()
        transfer.check_source()
    store.set(key_prefix(path) + DOCUMENT, serialize(metadata))
    transfer.end()
    before, after = source.nbytes_stored(), target.nbytes_stored()
    if console.as_json:
        console.json({"blocks": len(places), "blocks_done_before": done, "bytes_before": before, "bytes_after": after})
    else:
        console.print(f"reencoded {math.prod(source.shape)} values: {before} bytes stored before, {after} after")
    return 0


def _clear(target: Array, where: tuple[slice, ...]) -> None:
    """Remove what an interrupted step may have left of chunks that consist of several objects."""
    chunks = target._chunks
    for coords, _, _ in chunks.grid.project(indexing.basic(where, target.shape).selection):
        chunks.store.erase(chunks.metadata.chunk_key_encoding.encode(coords))


def new_metadata(source: Array, args: argparse.Namespace) -> ArrayMetadata:
    """The metadata of the source with what the flags say."""
    old = source.metadata
    try:
        grid, codecs = _chunking(source, args)
        transformers: Any = [t for t in old.storage_transformers or () if not isinstance(t, Ignored)]
        if args.transformers is not None:
            transformers = parse_list(args.transformers, "--transformers")
        keys = old.chunk_key_encoding if args.keys is None else parse_one(args.keys, "--keys")
        made = array_metadata(
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
    return made.replace(fill_value=old.fill_value, attributes=old.attributes, extra=old.extra)


def _chunking(source: Array, args: argparse.Namespace) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of the chunk grid and the codec chain."""
    old = source.metadata
    grid = old.chunk_grid.chunk_shape((0,) * source.ndim)
    chain: list[Any] = [codec for codec in old.codecs if not isinstance(codec, Ignored)]
    sharding = next((codec for codec in chain if isinstance(codec, ShardingIndexed)), None)
    if args.chunks is None and args.shards is None and (args.codecs is None or sharding is None):
        return grid, chain if args.codecs is None else _chain(source, args.codecs)
    if sharding is not None and len(chain) > 1 and args.codecs is None:
        raise ArgumentError("the source has codecs around its shards; say with --codecs what the chunks will have")
    shards = None if sharding is None else grid
    if args.shards is not None:
        shards = None if args.shards == "none" else parse_lengths(args.shards, "--shards", source.ndim)
    chunks = grid if sharding is None else sharding.chunk_shape
    if args.chunks is not None:
        chunks = parse_lengths(args.chunks, "--chunks", source.ndim)
    inner = [*sharding.codecs] if sharding is not None else chain
    if args.codecs is not None:
        inner = _chain(source, args.codecs)
    if shards is None:
        return chunks, inner
    if sharding is None:
        return shards, [ShardingIndexed(chunks, tuple(inner))]
    return shards, [dataclasses.replace(sharding, chunk_shape=chunks, codecs=tuple(inner))]


def _chain(source: Array, text: str) -> list[Any]:
    """The codecs that were typed, completed by what makes bytes of this data type if nobody says that."""
    given = [registry.codecs.coerce(codec) for codec in parse_list(text, "--codecs") if codec != "bytes"]
    first = [codec for codec in given if isinstance(codec, ArrayArrayCodec)]
    last = [codec for codec in given if isinstance(codec, BytesBytesCodec)]
    if len(first) + len(last) < len(given):
        return given
    plain = array_metadata((), source.metadata.data_type, compressors=None).codecs
    return [*first, *plain, *last]
