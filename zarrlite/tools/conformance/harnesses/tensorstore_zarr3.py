"""tensorstore's drivers with a store in memory. They open a struct field by field, so `struct` is not claimed."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import tensorstore as ts
from loop import CORE_TYPES, Json, Unsupported, elements, index, serve, stored, to_write, values


def kvstore(message: Json) -> tuple[Any, Any]:
    """Return a new store that holds the values in a message, and the store's context."""
    context = ts.Context()
    store = ts.KvStore.open({"driver": "memory"}, context=context).result()
    for key, value in values(message).items():
        store[key] = value
    return store, context


def array(message: Json) -> tuple[Any, Any]:
    """Return a new store that holds the values in a message, and the array at the message's path."""
    store, context = kvstore(message)
    path = f"{message['path']}/" if message["path"] else ""
    try:
        node = json.loads(store[f"{path}zarr.json"])
    except (ValueError, KeyError, RecursionError):
        node = None
    driver = "zarr3" if f"{path}zarr.json" in message["store"] else "zarr"
    if isinstance(node, dict) and node.get("node_type") == "group":
        raise Unsupported("the driver has no groups")
    spec = {"driver": driver, "kvstore": {"driver": "memory", "path": path}, "recheck_cached_data": "open"}
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


SMALL = "bfloat16 int2 int4 float4_e2m1fn float8_e3m4 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2"
SMALL += " float8_e5m2fnuz float8_e8m0fnu complex_float32 complex_float64"
claims = {"chunk_grid": ["regular"], "chunk_key_encoding": ["default", "v2"], "zarr_format": ["2"]}
claims |= {
    "data_type": [*CORE_TYPES, *SMALL.split(), "r*", "raw_bytes"],
    "codecs": ["blosc", "bytes", "crc32c", "gzip", "sharding_indexed", "transpose", "zstd"],
}
serve("tensorstore", version("tensorstore"), claims, {"open": open_node, "read": read, "write": write})
