"""`zarrlite v2`: write the metadata that makes a Zarr v2 hierarchy readable as Zarr v3, next to its own metadata."""

from __future__ import annotations

import argparse

from zarrlite import v2
from zarrlite.errors import ArgumentError, MetadataError, ZarrliteError
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.locate import split

HELP = "write the metadata that makes a Zarr v2 hierarchy readable as Zarr v3"
EXAMPLE = "zarrlite v2 experiment.zarr --write"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of a Zarr v2 array or group")
    parser.add_argument("--write", action="store_true", help="write the documents; without this they are only checked")
    parser.add_argument("--overwrite", action="store_true", help="replace existing documents")


def run(args: argparse.Namespace, console: Console) -> int:
    store, path = split(args.location)
    if args.write:
        with store:  # a zip file is complete once its store is closed
            written = v2.write_documents(store, path=path, overwrite=args.overwrite)
        if console.as_json:
            console.json({"written": written})
        else:
            for key in written:
                console.print(clean(key))
        return 0
    if args.overwrite:
        raise ArgumentError("--overwrite needs --write")
    found = v2.documents(store, path=path)
    refused = {key: error for key, error in found.items() if isinstance(error, ZarrliteError)}
    if console.as_json:
        converted = {key: content for key, content in found.items() if key not in refused}
        console.json({"documents": converted, "refused": {key: str(error) for key, error in refused.items()}})
    else:
        for key in found:
            reason = f": {clean(str(refused[key]))}" if key in refused else ""
            console.print(console.style(f"{clean(key)}{reason}", "bad" if reason else "good"))
        console.print(f"{len(found)} nodes, {len(refused)} of them refused; nothing is written without --write")
    if not refused:
        return 0
    unknown = (isinstance(e, MetadataError) and e.kind == "unknown-extension" for e in refused.values())
    return 4 if all(unknown) else 1
