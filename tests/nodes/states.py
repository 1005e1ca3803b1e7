"""Stores with various initial contents for tests of nodes, and helpers to examine and change them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import zarrlite
from zarrlite import MemoryStore

GROUP = b'{"zarr_format": 3, "node_type": "group", "attributes": {"was": "here"}}'
BROKEN = b'{"zarr_format": 3, "node_type": "arr'
DATA = np.arange(6, dtype="int16").reshape(2, 3)
NEW: dict[str, Any] = {"shape": (4,), "dtype": "uint8"}  # arguments for a new array


def nothing() -> MemoryStore:
    return MemoryStore()


def array() -> MemoryStore:
    """Return a store with an array at its root."""
    store = MemoryStore()
    zarrlite.create_array(store, data=DATA, chunks=(1, 3), attributes={"was": "here"})
    return store


def group() -> MemoryStore:
    """Return a store with a group at its root that has one member."""
    store = MemoryStore({"zarr.json": GROUP})
    zarrlite.create_array(store, name="child", data=DATA)
    return store


def version_2() -> MemoryStore:
    """Return a store with a Zarr v2 array."""
    document = {"zarr_format": 2, "shape": [2, 3], "chunks": [2, 3], "dtype": "<i2", "compressor": None}
    document |= {"fill_value": 0, "order": "C", "filters": None}
    values = {".zarray": json.dumps(document).encode(), ".zattrs": b'{"was": "here"}', "0.0": DATA.tobytes()}
    return MemoryStore(values)


def broken() -> MemoryStore:
    """Return a store with a truncated document."""
    return MemoryStore({"zarr.json": BROKEN})


def hierarchy() -> MemoryStore:
    """Return a store with a consolidated hierarchy of three levels."""
    store = MemoryStore()
    top = zarrlite.create_group(store, attributes={"top": 1})
    top.create_array("a", data=DATA, attributes={"n": 1})
    top.create_array("g/b", data=DATA)
    top.create_array("g/h/c", data=DATA)
    zarrlite.consolidate_metadata(store)
    return store


def contents(store: Any) -> dict[str, bytes]:
    """Return all keys and values of a store."""
    return {key: bytes(store.get(key)) for key in store.list()}


def assign(target: Any, index: Any, value: Any) -> None:
    target[index] = value


def delete(target: Any, index: Any) -> None:
    del target[index]
