"""`zarrlite ls`: list the nodes of a group, or the stored objects of an array.

Rules
- Objects are listed by their keys in the underlying store, below all storage transformers.
- Sizes are requested from the store only if they are shown.
"""

from __future__ import annotations

import argparse
from typing import Any

from zarrlite.errors import ZarrliteError
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.info import human
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.locate import open_node
from zarrlite.tools.cli.nodes import Node, children, kind

HELP = "list the nodes of a group, or the stored objects of an array"
EXAMPLE = "zarrlite ls -l image.zarr"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of an array or group")
    parser.add_argument("-l", dest="long", action="store_true", help="also show types, shapes and sizes")


def run(args: argparse.Namespace, console: Console) -> int:
    node = open_node(args.location)
    if isinstance(node, Array):
        return _list_objects(node, args.long, console)
    return _list_nodes(node, args.long, console)


def _list_nodes(group: Group, long: bool, console: Console) -> int:
    if not long and not console.as_json:
        for name in sorted(group.keys()):
            console.print(clean(name))
        return 0
    nodes = list(children(group))
    if console.as_json:
        console.json([{"name": name, "type": kind(node), **_columns(node), **_error(node)} for name, node in nodes])
    else:
        rows = [[kind(node), *(value or "" for value in _columns(node).values()), name] for name, node in nodes]
        console.table(["type", "shape", "data type", "chunks", "shards", "name"], rows)
        for name, node in nodes:
            if isinstance(node, ZarrliteError):
                console.print(f"{clean(name)}: {clean(str(node))}")
    return 1 if any(isinstance(node, ZarrliteError) for _, node in nodes) else 0


def _error(node: Node) -> dict[str, str]:
    return {"error": str(node)} if isinstance(node, ZarrliteError) else {}


def _columns(node: Node) -> dict[str, Any]:
    if not isinstance(node, Array):
        return dict.fromkeys(("shape", "data_type", "chunks", "shards"))
    data_type = node.metadata.data_type.name
    return {"shape": node.shape, "data_type": data_type, "chunks": node.chunks, "shards": node.shards}


def _list_objects(array: Array, long: bool, console: Console) -> int:
    prefix = key_prefix(array.path)
    keys = (key[len(prefix) :] for key in array.store.list_prefix(prefix))
    if not long and not console.as_json:
        for key in keys:
            console.print(clean(key))
        return 0
    rows = [(array.store.size(prefix + key) or 0, _coordinates(array, key), key) for key in keys]
    if console.as_json:
        console.json([{"key": key, "bytes": size, "coordinates": coordinates} for size, coordinates, key in rows])
        return 0
    table = [(size, _describe_object(key, coordinates), key) for size, coordinates, key in rows]
    console.table(["bytes", "coordinates", "key"], table)
    console.print(f"{len(rows)} objects, bytes: {human(sum(size for size, _, _ in rows))}")
    return 0


def _describe_object(key: str, coordinates: tuple[int, ...] | None) -> str:
    if key == DOCUMENT:
        return "metadata"
    return "" if coordinates is None else str(coordinates)


def _coordinates(array: Array, key: str) -> tuple[int, ...] | None:
    """Return the coordinates of a chunk. Returns None if the key is not a chunk key."""
    return array.metadata.chunk_key_encoding.decode(key, array.ndim)
