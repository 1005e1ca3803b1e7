"""`zarrlite consolidate`: copy the metadata of all nodes below a group into the group's document."""

from __future__ import annotations

import argparse

from zarrlite.errors import NodeNotFoundError
from zarrlite.nodes.group import Group
from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.locate import open_node

HELP = "copy the metadata of all nodes below a group into its document"
EXAMPLE = "zarrlite consolidate experiment.zarr"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of a group")


def run(args: argparse.Namespace, console: Console) -> int:
    group = open_node(args.location, "r+")
    if not isinstance(group, Group):
        raise NodeNotFoundError(
            f"{args.location} is an array, which has no nodes below it; name a group", path=group.path
        )
    nodes = group.consolidate_metadata().metadata.consolidated or {}
    if console.as_json:
        console.json({"path": group.path, "nodes": list(nodes)})
    else:
        console.print(f"consolidated the metadata of {len(nodes)} node{'' if len(nodes) == 1 else 's'}")
    return 0
