"""`zarrlite reencode`: copy an array with different chunks, shards, codecs, storage transformers or keys."""

from __future__ import annotations

import argparse
import math
from typing import Any

from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.copy import DASK_HELP
from zarrlite.tools.cli.extensions import parse_lengths, parse_list, parse_one
from zarrlite.tools.cli.locate import open_array, split
from zarrlite.tools.transfer.reencoding import Reencoding, reencoded_metadata

HELP = "copy an array with different chunks, shards, codecs or keys"
EXAMPLE = "zarrlite reencode image.zarr smaller.zarr --chunks 64,64 --shards 1024,1024 --codecs zstd:level=9,crc32c"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    syntax = "JSON, or names with settings"
    parser.add_argument("source", help="a path or URL of an array")
    parser.add_argument("target", help="the location of the new array; rerun the same command to resume")
    parser.add_argument("--chunks", metavar="N,N", help="chunk shape; with shards, the shape of the inner chunks")
    parser.add_argument("--shards", metavar="N,N", help="shard shape, or none")
    parser.add_argument("--codecs", metavar="C,C", help=f"codecs of a chunk: {syntax}, such as bytes,zstd:level=9")
    parser.add_argument("--transformers", metavar="T,T", help=f"storage transformers: {syntax}, or none")
    parser.add_argument("--keys", metavar="K", help="chunk key encoding: JSON or a name, such as v2:separator=/")
    parser.add_argument("--overwrite", action="store_true", help="replace the node at the target")
    parser.add_argument("--dask", metavar="ADDRESS", help=DASK_HELP)


def run(args: argparse.Namespace, console: Console) -> int:
    source = open_array(args.source)
    store, path = split(args.target)
    with store:  # a zip file is complete once its store is closed
        job = Reencoding(source, store, path, reencoded_metadata(source, **_changes(args, source.ndim)))
        with console.progress("reencode", job.total) as progress:
            done = job.run(overwrite=args.overwrite, dask=args.dask, advance=progress.advance)
        before, after = source.nbytes_stored(), job.target.nbytes_stored()
    if console.as_json:
        console.json({"blocks": job.total, "blocks_done_before": done, "bytes_before": before, "bytes_after": after})
    else:
        console.print(f"reencoded {math.prod(source.shape)} values: {before} bytes stored before, {after} after")
    return 0


def _changes(args: argparse.Namespace, ndim: int) -> dict[str, Any]:
    """Return the values of the options as arguments for `reencoded_metadata`."""
    changes: dict[str, Any] = {}
    if args.chunks is not None:
        changes["chunks"] = parse_lengths(args.chunks, "--chunks", ndim)
    if args.shards is not None:
        changes["shards"] = None if args.shards == "none" else parse_lengths(args.shards, "--shards", ndim)
    if args.codecs is not None:
        changes["codecs"] = parse_list(args.codecs, "--codecs")
    if args.keys is not None:
        changes["chunk_key_encoding"] = parse_one(args.keys, "--keys")
    if args.transformers is not None:
        changes["storage_transformers"] = parse_list(args.transformers, "--transformers")
    return changes
