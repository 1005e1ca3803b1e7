"""tensorstore's zarr3 driver with a store in memory. It opens a struct field by field, so `struct` is not claimed."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import tensorstore as ts
from loop import Json, Unsupported, elements, index, serve, stored, to_write, values


def kvstore(message: Json) -> tuple[Any, Any]:
    """Return a store with the values of a message, and its context."""
    context = ts.Context()
    store = ts.KvStore.open({"driver": "memory"}, context=context).result()
    for key, value in values(message).items():
        store[key] = value
    return store, context


def array(message: Json) -> tuple[Any, Any]:
    """Return the store and the array of a message."""
    store, context = kvstore(message)
    path = f"{message['path']}/" if message["path"] else ""
    try:
        node = json.loads(store[f"{path}zarr.json"])
    except (ValueError, KeyError, RecursionError):
        node = None
    if isinstance(node, dict) and node.get("node_type") == "group":
        raise Unsupported("the driver has no groups")
    spec = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": path}, "recheck_cached_data": "open"}
    return store, ts.open(spec, open=True, context=context).result()


def open_node(message: Json) -> Json:
    return {"document": array(message)[1].spec().to_json()["metadata"]}


def read(message: Json) -> Json:
    a = array(message)[1]
    return elements(a[index(message)].read().result(), a.dtype.numpy_dtype)


def write(message: Json) -> Json:
    store, a = array(message)
    a[...].write(to_write(message, a.dtype.numpy_dtype, a.shape, text=True)).result()
    return stored({key.decode(): store[key] for key in store.list().result()})


integers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
claims = {
    "data_type": ["bool", *integers, "float16", "float32", "float64", "complex64", "complex128", "r*", "raw_bytes"],
    "chunk_grid": ["regular"],
    "chunk_key_encoding": ["default", "v2"],
    "codecs": ["blosc", "bytes", "crc32c", "gzip", "sharding_indexed", "transpose", "zstd"],
    "storage_transformers": [],
}
serve("tensorstore", version("tensorstore"), claims, {"open": open_node, "read": read, "write": write})
