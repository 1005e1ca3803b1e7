"""zarrlite."""

from __future__ import annotations

import base64
import importlib.util
import warnings
from typing import Any

from loop import Json, elements, index, serve, stored, to_write, values

import zarrlite
from zarrlite import registry
from zarrlite.chunks import ArrayOptions, Chunks
from zarrlite.ranges import ALL, ByteRange
from zarrlite.testing.stores import CountingStore


def open_node(message: Json) -> Json:
    return {"document": zarrlite.open(zarrlite.MemoryStore(values(message)), mode="r").metadata.to_json()}


def read(message: Json) -> Json:
    array = zarrlite.open_array(zarrlite.MemoryStore(values(message)), mode="r", path=message["path"])
    return elements(array[index(message)], array.dtype)
