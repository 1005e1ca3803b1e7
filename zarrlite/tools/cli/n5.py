"""`zarrlite n5`: write the metadata that makes an N5 container readable as Zarr."""

from __future__ import annotations

import argparse
import os

from zarrlite import n5
from zarrlite.errors import NodeNotFoundError
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes.group import Group
from zarrlite.stores import LocalStore
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.locate import open_location

HELP = "write the metadata that makes an N5 container readable as Zarr"
EXAMPLE = "zarrlite n5 volume.n5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of an N5 container, group or dataset")
    parser.add_argument(
        "--codec",
        choices=("n5_default", "pad", "offset"),
        default="n5_default",
        help="the codec that handles block headers (default: n5_default; the others cannot read truncated blocks)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the documents, write nothing")
    parser.add_argument("--overwrite", action="store_true", help="replace existing documents")


def run(args: argparse.Namespace, console: Console) -> int:
    store = open_location(args.location)
    if isinstance(store, LocalStore) and not os.path.isdir(store.root):
        raise NodeNotFoundError(f"{args.location} is not a directory", path="")
    if args.dry_run:
        view = n5.N5Store(store)
        root = n5.open(store)
        paths = ["", *(path for path, _ in root.members(None))] if isinstance(root, Group) else [""]
        console.json({key_prefix(path) + DOCUMENT: view.document(path, args.codec) for path in paths})
        return 0
    written = n5.write_documents(store, codec=args.codec, overwrite=args.overwrite)
    if console.as_json:
        console.json({"written": written})
    else:
        for key in written:
            console.print(clean(key))
    return 0
