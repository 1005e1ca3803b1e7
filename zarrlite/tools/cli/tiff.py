"""`zarrlite tiff`: write the metadata that makes a folder of TIFF files readable as Zarr.

A single TIFF file is copied into a new folder, as the only chunk of an array.
"""

from __future__ import annotations

import argparse
import os

from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.errors import ArgumentError, NodeExistsError, NodeNotFoundError
from zarrlite.extensions.config import load_json
from zarrlite.formats.tiff.parse import read_image
from zarrlite.nodes.creation import DEFAULT
from zarrlite.stores import LocalStore, Store
from zarrlite.tiff import open_folder
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.extensions import parse_lengths
from zarrlite.tools.cli.locate import open_location

HELP = "write the metadata that makes a folder of TIFF files readable as Zarr"
EXAMPLE = "zarrlite tiff slices/  (files with names like c/0/1.tiff); zarrlite tiff photo.tiff photo.zarr"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of a folder of TIFF files, or of a single file")
    parser.add_argument("target", nargs="?", help="the new folder that a single TIFF file is copied into")
    parser.add_argument("--shape", metavar="N,N", help="the shape of the array (default: the extent of the files)")
    parser.add_argument(
        "--fill-value", metavar="JSON", help="the value where files are missing (default: the zero of the data type)"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the document, write nothing")


def run(args: argparse.Namespace, console: Console) -> int:
    shape = None if args.shape is None else parse_lengths(args.shape, "--shape", args.shape.count(",") + 1)
    fill_value = DEFAULT
    if args.fill_value is not None:
        fill_value = load_json(f'{{"value": {args.fill_value}}}'.encode(), "--fill-value").get("value", DEFAULT)
    folder = open_location(args.location)
    is_file = _is_file(args.location, folder)
    if is_file and args.target is None:
        raise ArgumentError("pass a target for a single TIFF file: the new folder to copy it into")
    if not is_file and args.target is not None:
        raise ArgumentError("do not pass a target for a folder of TIFF files: it is read in place")
    if isinstance(folder, LocalStore) and not os.path.exists(folder.root):
        raise NodeNotFoundError(f"{args.location} does not exist", path="")
    if is_file and args.dry_run:
        raise ArgumentError("--dry-run must not be used with a single TIFF file, which has to be copied first")
    if is_file:
        folder = _copy_to_folder(args.location, args.target)
    array = open_folder(folder, shape=shape, fill_value=fill_value, save=not args.dry_run)
    if console.as_json or args.dry_run:
        console.json(array.metadata.to_json())
    else:
        console.print(f"{clean(args.target or args.location)}: {array.shape} {array.metadata.data_type.name}")
    return 0


def _is_file(location: str, folder: Store) -> bool:
    """Whether a location is a file. In a store that is not on a local disk, every key is a file."""
    if isinstance(folder, LocalStore):
        return os.path.isfile(folder.root)
    directory, name = _split(location)
    return bool(name) and directory.size(name) is not None


def _split(location: str) -> tuple[Store, str]:
    """Return the store of the directory that contains a file, and the name of the file."""
    directory, name = os.path.split(location)
    return open_location(directory or "."), name


def _copy_to_folder(location: str, target: str) -> Store:
    """Copy a TIFF file into a new folder, under the key of the first chunk."""
    folder = open_location(target)
    if os.path.lexists(folder.root) if isinstance(folder, LocalStore) else any(folder.list_dir("")):
        raise NodeExistsError(f"{target} already exists; choose another target", path="")
    directory, name = _split(location)
    image = read_image(directory, name)
    value = directory.get(name)
    if value is None:
        raise NodeNotFoundError(f"{location} does not exist", path="")
    folder.set(SuffixKeys(".tiff").encode((0,) * len(image.header.shape)), value)
    return folder
