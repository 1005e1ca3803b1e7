"""zarrlite itself. This is the only shipped harness that claims all operations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from loop import CORE_TYPES, Json, elements, index, serve, stored, to_write, values

sys.path.insert(0, str(Path(__file__).parents[4]))  # the zarrlite that this file belongs to
import zarrlite
from zarrlite.extensions import registry
from zarrlite.extensions.config import non_finite
from zarrlite.tools.conformance.reference import RecordingStore, details, run_operations


def array(message: Json, mode: Any = "r") -> zarrlite.Array:
    return zarrlite.open_array(RecordingStore(values(message)), mode=mode, path=message["path"])


def open_node(message: Json) -> Json:
    document = zarrlite.open(values(message), mode="r", path=message["path"]).metadata.to_json()
    return {"document": None if any(non_finite(document)) else document}  # an answer is JSON and cannot contain NaN


def read(message: Json) -> Json:
    a = array(message)
    return elements(a[index(message)], a.dtype)


def write(message: Json) -> Json:
    a = array(message, "r+")
    a[...] = to_write(message, a.dtype, a.shape, text=a.metadata.data_type.name == "string")
    return stored({key: bytes(a.store.get(key)) for key in a.store.list()})


def rounds(message: Json) -> Json:
    a = array(message, "r+")
    a.store.rounds.clear()
    a[index(message)]
    return {"rounds": a.store.rounds}


def keys(message: Json) -> Json:
    a = array(message)
    return {"coords": [a.metadata.chunk_key_encoding.decode(key, a.ndim) for key in message["keys"]]}


def store(message: Json) -> Json:
    results, below = run_operations(message["document"], values(message), message["operations"])
    return {"results": results, **stored(below)}


points = {"codec": "codecs", "storage_transformer": "storage_transformers"}
claims = {points.get(kind, kind): extensions.names() for kind, extensions in registry.REGISTRIES.items()}
claims |= {"data_type": [*claims["data_type"], *CORE_TYPES, "r*"], "zarr_format": ["2"]}
operations = {"open": open_node, "read": read, "write": write, "rounds": rounds, "keys": keys, "store": store}
serve("zarrlite", zarrlite.__version__, claims, operations, details, unsupported=(zarrlite.DependencyError,))
