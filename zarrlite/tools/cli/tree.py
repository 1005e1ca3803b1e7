"""`zarrlite tree`: show a hierarchy, one line for each node."""

from __future__ import annotations

import argparse
from typing import Any

from zarrlite.errors import ZarrliteError
from zarrlite.nodes.array import Array
from zarrlite.tools.cli.console import Console, clean
from zarrlite.tools.cli.locate import open_node
from zarrlite.tools.cli.nodes import Node, kind, walk

HELP = "show a hierarchy, one line for each node"
EXAMPLE = "zarrlite tree experiment.zarr --level 2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of a group")
    parser.add_argument("-L", "--level", type=int, metavar="N", help="show at most N levels")


def run(args: argparse.Namespace, console: Console) -> int:
    root = open_node(args.location)
    refused = False
    rows = []
    if not console.as_json:
        console.print(_label(console, root.name, root))
    for descendant in walk(root, args.level):
        refused |= isinstance(descendant.node, ZarrliteError)
        if console.as_json:
            rows.append({"path": descendant.path, **_summary(descendant.node)})
        else:
            indent = "".join("    " if last else "│   " for last in descendant.is_last[:-1])
            branch = "└── " if descendant.is_last[-1] else "├── "
            console.print(indent + branch + _label(console, descendant.name, descendant.node))
    if console.as_json:
        console.json({"path": "", **_summary(root), "nodes": rows})
    return 1 if refused else 0


def _label(console: Console, name: str, node: Node) -> str:
    if isinstance(node, Array):
        return f"{console.style(name, 'name')} {node.shape} {node.metadata.data_type.name}"
    if isinstance(node, ZarrliteError):
        return f"{clean(name)} {console.style(f'refused: {node}', 'bad')}"
    return console.style(name, "bold")


def _summary(node: Node) -> dict[str, Any]:
    summary: dict[str, Any] = {"type": kind(node)}
    if isinstance(node, ZarrliteError):
        summary["error"] = str(node)
    if isinstance(node, Array):
        summary |= {"shape": node.shape, "data_type": node.metadata.data_type.name}
    return summary
