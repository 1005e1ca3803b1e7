"""`zarrlite tiff`: make the metadata that reads a folder of TIFF files, or a file that is copied into a new one."""

from __future__ import annotations

import argparse
import os
import shutil

from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.errors import ArgumentError, NodeExistsError, NodeNotFoundError
from zarrlite.extensions.config import load_json
from zarrlite.formats.tiff.parse import read_image
from zarrlite.nodes.creation import DEFAULT
from zarrlite.stores import LocalStore, open_store
from zarrlite.tiff import open_folder
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.extensions import parse_lengths

HELP = "make the metadata that reads a folder of TIFF files"
EXAMPLE = "zarrlite tiff slices/  (files named as chunks, such as c/0/1.tiff); zarrlite tiff photo.tiff photo.zarr"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a folder of TIFF files, or one TIFF file")
    parser.add_argument("target", nargs="?", help="a new folder, which one TIFF file is copied into")
    parser.add_argument("--shape", metavar="N,N", help="the shape of the array (as far as there are files)")
    parser.add_argument("--fill-value", metavar="JSON", help="where files are missing (the zero of the data type)")
    parser.add_argument("--dry-run", action="store_true", help="print the document and write nothing")


def run(args: argparse.Namespace, console: Console) -> int:
    shape = None if args.shape is None else parse_lengths(args.shape, "--shape", args.shape.count(",") + 1)
    fill = DEFAULT
    if args.fill_value is not None:
        fill = load_json(f'{{"value": {args.fill_value}}}'.encode(), "--fill-value").get("value", DEFAULT)
    folder = open_store(args.location, check=False)
    is_file = isinstance(folder, LocalStore) and os.path.isfile(folder.root)
    if is_file != (args.target is not None):
        raise ArgumentError(
            "one TIFF file is copied into a new folder: name it"
            if is_file
            else "a folder of TIFF files takes no target"
        )
    if isinstance(folder, LocalStore) and not os.path.exists(folder.root):
        raise NodeNotFoundError(f"{args.location}: there is nothing at this path", path="")
    if is_file and args.dry_run:
        raise ArgumentError("--dry-run is for folders; one TIFF file has to be copied first")
    if is_file and isinstance(folder, LocalStore):
        folder = _folder_of(folder.root, args.target)
    array = open_folder(folder, shape=shape, fill_value=fill, save=not args.dry_run)
    if console.as_json or args.dry_run:
        console.json(array.metadata.to_json())
    else:
        console.print(f"{clean(args.target or args.location)}: {array.shape} {array.metadata.data_type.name}")
    return 0


def _folder_of(file: str, target: str) -> LocalStore:
    """A new folder with a picture as its only chunk."""
    if os.path.lexists(target):
        raise NodeExistsError(f"{target} is there already; choose another place", path="")
    place, name = os.path.split(file)
    image = read_image(LocalStore(place), name)
    key = SuffixKeys(".tiff").encode((0,) * len(image.header.shape))
    copy = os.path.join(target, key)
    os.makedirs(os.path.dirname(copy))
    shutil.copyfile(file, copy)
    return LocalStore(target)
