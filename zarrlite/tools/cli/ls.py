"""`zarrlite ls`: the nodes of a group, or the stored objects of an array.

Rules
- Objects are listed as they lie in the store; sizes are asked for only if they are shown.
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

HELP = "the nodes of a group, or the stored objects of an array"
EXAMPLE = "zarrlite ls -l image.zarr"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or file:// URL of an array or group")
    parser.add_argument("-l", dest="long", action="store_true", help="also what each is, and its size")


def run(args: argparse.Namespace, console: Console) -> int:
    node = open_node(args.location)
    return _objects(node, args.long, console) if isinstance(node, Array) else _nodes(node, args.long, console)


def _nodes(group: Group, long: bool, console: Console) -> int:
    if not long and not console.as_json:
        for name in sorted(group.keys()):
            console.print(clean(name))
        return 0
    found = list(children(group))
    if console.as_json:
        console.json([{"name": name, "type": kind(node), **_facts(node), **_reason(node)} for name, node in found])
    else:
        rows = [[kind(node), *(value or "" for value in _facts(node).values()), name] for name, node in found]
        console.table(["type", "shape", "data type", "chunks", "shards", "name"], rows)
        for name, node in found:
            if isinstance(node, ZarrliteError):
                console.print(f"{clean(name)}: {clean(str(node))}")
    return 1 if any(isinstance(node, ZarrliteError) for _, node in found) else 0


def _reason(node: Node) -> dict[str, str]:
    return {"error": str(node)} if isinstance(node, ZarrliteError) else {}


def _facts(node: Node) -> dict[str, Any]:
    if not isinstance(node, Array):
        return dict.fromkeys(("shape", "data_type", "chunks", "shards"))
    data_type = node.metadata.data_type.name
    return {"shape": node.shape, "data_type": data_type, "chunks": node.chunks, "shards": node.shards}


def _objects(array: Array, long: bool, console: Console) -> int:
    prefix = key_prefix(array.path)
    keys = (key[len(prefix) :] for key in array.store.list_prefix(prefix))
    if not long and not console.as_json:
        for key in keys:
            console.print(clean(key))
        return 0
    rows = [(array.store.size(prefix + key) or 0, _coordinates(array, key), key) for key in keys]
    if console.as_json:
        console.json([{"key": key, "bytes": size, "coordinates": at} for size, at, key in rows])
        return 0
    shown = [(size, "metadata" if key == DOCUMENT else "" if at is None else str(at), key) for size, at, key in rows]
    console.table(["bytes", "coordinates", "key"], shown)
    console.print(f"{len(rows)} objects, bytes: {human(sum(size for size, _, _ in rows))}")
    return 0


def _coordinates(array: Array, key: str) -> tuple[int, ...] | None:
    return array.metadata.chunk_key_encoding.decode(key, array.ndim)
