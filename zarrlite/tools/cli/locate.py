"""What users type as the place of a node: a path, a `file://` URL, or a path into a hierarchy.

Rules
- A path into a hierarchy is split at its root: the highest directory that is reached from the node by groups alone.
- What is not there, or is no Zarr, is said in the words of the command line.
"""

from __future__ import annotations

import json
import os
from typing import Any

from zarrlite.errors import NodeNotFoundError
from zarrlite.names import DOCUMENT
from zarrlite.nodes import opening
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.stores import LocalStore, Store, open_store

JOURNAL = "__zarrlite.transfer.json"  # lies beside data that is still being copied


def split(location: str) -> tuple[Store, str]:
    """The store of the hierarchy that a location lies in, and the path in it; also of what is not there yet."""
    store = open_store(location, check=False)  # a file is spoken of below
    if not isinstance(store, LocalStore):
        return store, ""
    if os.path.isfile(store.root):
        raise NodeNotFoundError(f"{location} is a file; an array or a group is a directory with {DOCUMENT}", path="")
    root = _root(store.root)
    path = os.path.relpath(store.root, root)
    return LocalStore(root), "" if path == os.curdir else path.replace(os.sep, "/")


def _root(place: str) -> str:
    """The directory of the root node, or the place itself if it is in no hierarchy."""
    nearest = place
    while not os.path.isfile(os.path.join(nearest, DOCUMENT)):
        above = os.path.dirname(nearest)
        if above == nearest:
            return place
        nearest = above
    if nearest != place and _node_type(nearest) == "array":  # among its chunks is no node; nor can there be one
        return nearest
    while _node_type(above := os.path.dirname(nearest)) == "group" and above != nearest:
        nearest = above
    return nearest


def _node_type(directory: str) -> Any:
    try:
        with open(os.path.join(directory, DOCUMENT), encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return document.get("node_type") if isinstance(document, dict) else None


def open_node(location: str, mode: opening.Mode = "r", **options: Any) -> Array | Group:
    """The node at a location; `options` are those of `zarrlite.open`."""
    store, path = split(location)
    try:
        return opening.open(store, mode=mode, path=path, **options)
    except NodeNotFoundError as error:
        raise _not_found(location, store, path, error) from None


def open_array(location: str, mode: opening.Mode = "r", **options: Any) -> Array:
    """The array at a location; a group is refused with the names of its arrays."""
    node = open_node(location, mode, **options)
    if isinstance(node, Array):
        return node
    names = [name for name, _ in zip(node.array_keys(), range(3), strict=False)]
    advice = f"; name one of its arrays, such as {location.rstrip('/')}/{names[0]}" if names else ""
    raise NodeNotFoundError(f"{location} is a group, not an array{advice}", path=node.path)


def _not_found(location: str, store: Store, path: str, error: NodeNotFoundError) -> NodeNotFoundError:
    """The same in other words, with what would help."""
    place = os.path.join(store.root, path) if isinstance(store, LocalStore) else ""
    if not os.path.lexists(place):
        message = f"{location}: there is nothing at this path"
    elif os.path.isfile(os.path.join(place, JOURNAL)):
        message = f"{location} is an unfinished copy; run the command that made it again to finish it"
    elif "version 2" in error.message:
        message = f"{location} is Zarr version 2; zarrlite reads version 3"
    elif os.path.isfile(os.path.join(place, "attributes.json")):
        message = f"{location} looks like N5; 'zarrlite n5 {location}' makes the metadata that reads it"
    else:
        message = f"{location} is no Zarr v3 array or group: there is no {DOCUMENT} in it"
    return NodeNotFoundError(message, path=path)
