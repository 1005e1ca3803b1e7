"""`zarrlite info`: describe an array or a group."""

from __future__ import annotations

import argparse
from typing import Any

from zarrlite.names import key_prefix
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.info import human
from zarrlite.stores import Store
from zarrlite.stores.views import ReadOnlyStore
from zarrlite.tools.cli.console import Console
from zarrlite.tools.cli.locate import open_node

HELP = "describe an array or a group"
EXAMPLE = "zarrlite info image.zarr/raw"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("location", help="a path or URL of an array or group")
    parser.add_argument("--storage", action="store_true", help="also show the stored size; this lists all objects")


def run(args: argparse.Namespace, console: Console) -> int:
    node = open_node(args.location)
    storage = _storage(node) if args.storage else {}
    if console.as_json:
        console.json({**_summary(node), **storage, "metadata": node.metadata.to_json()})
        return 0
    rows = [(name, value) for name, value in node.info.items() if name not in ("Store", "Read-only")]
    rows.insert(2, ("Store", _location(node.store)))
    if "bytes_stored" in storage:
        rows.append(("Bytes, stored", human(storage["bytes_stored"])))
    if "chunks_stored" in storage:
        rows.append(("Chunks, stored", f"{storage['chunks_stored']} of {storage['chunks_total']}"))
    rows += [(f"Attribute {name}", value) for name, value in node.attrs.items()]
    console.pairs(rows)
    return 0


def _summary(node: Array | Group) -> dict[str, Any]:
    summary: dict[str, Any] = {"type": node.metadata.node_type, "name": node.name, "store": _location(node.store)}
    if isinstance(node, Array):
        return summary | {"chunks": node.chunks, "shards": node.shards, "bytes": node.nbytes}
    return summary | {"members": list(node)}


def _storage(node: Array | Group) -> dict[str, int]:
    """Count the stored bytes of a node, and the stored chunks of an array."""
    if isinstance(node, Group):
        keys = node.store.list_prefix(key_prefix(node.path))
        return {"bytes_stored": sum(node.store.size(key) or 0 for key in keys)}
    return {
        "bytes_stored": node.nbytes_stored(),
        "chunks_stored": node.nchunks_initialized,
        "chunks_total": node.nchunks,
    }


def _location(store: Store) -> str:
    """Return the root directory of a store, or the store as text if it has no root directory."""
    while isinstance(store, ReadOnlyStore):
        store = store.store
    return str(getattr(store, "root", store))
