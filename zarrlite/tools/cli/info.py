"""`zarrlite info`: what an array or a group is."""

from __future__ import annotations

import argparse
from typing import Any

from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.info import human
from zarrlite.stores import Store
from zarrlite.stores.views import ReadOnlyStore
from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.locate import open_node

HELP = "what an array or a group is"
EXAMPLE = "zarrlite info image.zarr/raw"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or file:// URL of an array or group")
    parser.add_argument("--storage", action="store_true", help="also count what is stored, which lists all objects")


def run(args: argparse.Namespace, console: Console) -> int:
    node = open_node(args.location)
    stored = _stored(node) if args.storage else {}
    if console.as_json:
        console.json({**_summary(node), **stored, "metadata": node.metadata.to_json()})
        return 0
    rows = [(name, value) for name, value in node.info.items() if name not in ("Store", "Read-only")]
    rows.insert(2, ("Store", _place(node.store)))
    rows += [("Bytes, stored", human(stored["bytes_stored"]))] if stored else []
    rows += (
        [("Chunks, stored", f"{stored['chunks_stored']} of {stored['chunks_total']}")]
        if "chunks_total" in stored
        else []
    )
    rows += [(f"Attribute {name}", value) for name, value in node.attrs.items()]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        console.print(f"{console.style(f'{name:<{width}}', 'bold')} : {console.style(value, 'name')}")
    return 0


def _summary(node: Array | Group) -> dict[str, Any]:
    summary: dict[str, Any] = {"type": node.metadata.node_type, "name": node.name, "store": _place(node.store)}
    if isinstance(node, Array):
        return summary | {"chunks": node.chunks, "shards": node.shards, "bytes": node.nbytes}
    return summary | {"members": list(node)}


def _stored(node: Array | Group) -> dict[str, int]:
    if isinstance(node, Group):
        return {
            "bytes_stored": sum(
                node.store.size(key) or 0 for key in node.store.list_prefix(node.path and f"{node.path}/")
            )
        }
    return {
        "bytes_stored": node.nbytes_stored(),
        "chunks_stored": node.nchunks_initialized,
        "chunks_total": node.nchunks,
    }


def _place(store: Store) -> str:
    """Where a store is, without the wrapping."""
    while isinstance(store, ReadOnlyStore):
        store = store.store
    return str(getattr(store, "root", store))
