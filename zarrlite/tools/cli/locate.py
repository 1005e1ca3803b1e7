"""Resolve the location of a node: a path, a URL, or a path into a hierarchy.

Rules
- A path into a hierarchy is split at the root node, which is found by going up from the node as long as the parent
  directory is a group.
- A path into a zip file is split at the file.
- The environment variable `ZARRLITE_STORAGE_OPTIONS` contains the `storage_options` for URLs of object stores, as JSON.
- Errors name the location as the user typed it, and say what is there.
"""

from __future__ import annotations

import json
import os
from typing import Any

from zarrlite.errors import ArgumentError, NodeNotFoundError, StoreError
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes import opening
from zarrlite.nodes.array import Array
from zarrlite.nodes.consolidated import DOCUMENT_RANGE
from zarrlite.nodes.group import Group
from zarrlite.stores import LocalStore, Store, open_store
from zarrlite.stores.open import ZIP_SUFFIXES, is_remote, is_zip_path
from zarrlite.tools.transfer.journal import JOURNAL

OPTIONS = "ZARRLITE_STORAGE_OPTIONS"  # environment variable
_VERSION_2 = {".zarray": "array", ".zgroup": "group"}  # documents of Zarr v2 -> node type


def open_location(location: str) -> Store:
    """Return the store at a location without checking the location, which may be a file."""
    return open_store(location, check=False, storage_options=_storage_options() if is_remote(location) else None)


def _storage_options() -> dict[str, Any] | None:
    """Return the storage options set in the environment."""
    text = os.environ.get(OPTIONS)
    if not text:
        return None
    try:
        options = json.loads(text)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise ArgumentError(f"{OPTIONS} must be a JSON object such as '{{\"anonymous\": true}}', not {text!r}")
    return options


def split(location: str) -> tuple[Store, str]:
    """Return the store of the hierarchy that a location is in, and the path in that store. The node need not exist."""
    if is_remote(location):
        return _split_remote(location)
    store = open_store(location, check=False)  # a file is refused below
    if not isinstance(store, LocalStore):
        return store, ""
    if os.path.isfile(store.root):
        raise NodeNotFoundError(f"{location} is a file; a node must be a directory with {DOCUMENT}", path="")
    zip_file = _find_zip_file(store.root)
    root = zip_file or _find_root(store.root)
    path = os.path.relpath(store.root, root)
    opened = open_store(zip_file) if zip_file else LocalStore(root)
    return opened, "" if path == os.curdir else path.replace(os.sep, "/")


def _split_remote(url: str) -> tuple[Store, str]:
    """Return the store of the hierarchy that a URL leads into, and the path in that store."""
    scheme, _, rest = url.partition("://")
    place, *names = rest.strip("/").split("/")
    for i, name in enumerate(names, 1):
        if name.lower().endswith(ZIP_SUFFIXES):
            return open_location(f"{scheme}://{'/'.join([place, *names[:i]])}"), "/".join(names[i:])
    server = open_location(f"{scheme}://{place}")
    depth = len(names)
    while depth and _remote_node_type(server, names[:depth]) is None:
        depth -= 1
    if _remote_node_type(server, names[:depth]) is None:
        depth = len(names)  # the path is not in a hierarchy
    elif depth == len(names) or _remote_node_type(server, names[:depth]) == "group":
        while depth and _remote_node_type(server, names[: depth - 1]) == "group":
            depth -= 1
    return open_location(f"{scheme}://{'/'.join([place, *names[:depth]])}"), "/".join(names[depth:])


def _remote_node_type(server: Store, names: list[str]) -> Any:
    """Return the type of the node at a path on a server. Returns None if there is no readable document."""
    path = "/".join(names)
    try:
        document = json.loads(bytes(server.get(key_prefix(path) + DOCUMENT, DOCUMENT_RANGE) or b""))
    except (StoreError, ValueError, RecursionError):  # a server may refuse access to the folders above
        return None
    return document.get("node_type") if isinstance(document, dict) else None


def _find_zip_file(path: str) -> str | None:
    """Return the zip file that a path leads into. Returns None if there is no such file."""
    while not os.path.lexists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path if os.path.isfile(path) and is_zip_path(path) else None


def _find_root(directory: str) -> str:
    """Return the directory of the root node, or the directory itself if it is not in a hierarchy."""
    nearest = directory
    while not any(os.path.isfile(os.path.join(nearest, name)) for name in (DOCUMENT, *_VERSION_2)):
        parent = os.path.dirname(nearest)
        if parent == nearest:
            return directory
        nearest = parent
    if nearest != directory and _node_type(nearest) == "array":  # an array has chunks below it, but no nodes
        return nearest
    while _node_type(parent := os.path.dirname(nearest)) == "group" and parent != nearest:
        nearest = parent
    return nearest


def _node_type(directory: str) -> Any:
    """Return the type of the node in a directory. Returns None if there is no readable document."""
    if not os.path.exists(os.path.join(directory, DOCUMENT)):
        found = (kind for name, kind in _VERSION_2.items() if os.path.isfile(os.path.join(directory, name)))
        return next(found, None)
    try:
        with open(os.path.join(directory, DOCUMENT), encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return document.get("node_type") if isinstance(document, dict) else None


def open_node(location: str, mode: opening.Mode = "r", **options: Any) -> Array | Group:
    """Open the node at a location; `options` are those of `zarrlite.open`."""
    store, path = split(location)
    try:
        return opening.open(store, mode=mode, path=path, **options)
    except NodeNotFoundError:
        raise _not_found(location, store, path) from None


def open_array(location: str, mode: opening.Mode = "r", **options: Any) -> Array:
    """Open the array at a location. If the location is a group, the error names one of the arrays in it."""
    node = open_node(location, mode, **options)
    if isinstance(node, Array):
        return node
    name = next(iter(node.array_keys()), None)
    advice = "" if name is None else f"; name one of its arrays, such as {location.rstrip('/')}/{name}"
    raise NodeNotFoundError(f"{location} is a group, not an array{advice}", path=node.path)


def _not_found(location: str, store: Store, path: str) -> NodeNotFoundError:
    """Return the error for a location without a node. It says what is there instead, and what to do about it."""

    def has(name: str) -> bool:
        return store.size(key_prefix(path) + name) is not None

    if isinstance(store, LocalStore):
        exists = os.path.lexists(os.path.join(store.root, path))
    else:
        try:
            exists = any(store.list_prefix(key_prefix(path)))
        except StoreError:
            exists = True  # unknown, since the server cannot be listed
    if not exists:
        message = f"{location} does not exist"
    elif has(JOURNAL):
        message = f"{location} is an unfinished copy; rerun the command that created it to finish it"
    elif has("attributes.json"):
        message = f"{location} looks like N5; 'zarrlite n5 {location}' writes the metadata to read it as Zarr"
    else:
        message = f"{location} is not a Zarr v3 array or group: it has no {DOCUMENT}"
    return NodeNotFoundError(message, path=path)
