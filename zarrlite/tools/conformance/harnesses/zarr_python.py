"""zarr-python with its own codec pipeline and a store in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from loop import Json, elements, index, serve, stored, to_write, values, without_plugins_of

with without_plugins_of("zarrlite"):  # its plugins would add extensions to zarr-python
    import zarr
    from zarr.core.buffer import cpu, default_buffer_prototype
    from zarr.core.dtype import data_type_registry
    from zarr.storage import MemoryStore

Opened = tuple[Any, Callable[[], dict[str, bytes]]]  # a store, and a function that returns all its values


@contextmanager
def in_memory(message: Json) -> Iterator[Opened]:
    store = {key: cpu.Buffer.from_bytes(value) for key, value in values(message).items()}
    yield MemoryStore(store), lambda: {key: value.to_bytes() for key, value in store.items()}


def answer_with(
    name: str, version: str, open_store: Callable[[Json], AbstractContextManager[Opened]], **options: Any
) -> None:  # `open_store` creates a store with the values in a message; `options` are passed to `serve`
    def open_node(message: Json) -> Json:
        with open_store(message) as (store, _):
            node = zarr.open(store, mode="r", path=message["path"], zarr_format=3)
            buffers = node.metadata.to_buffer_dict(default_buffer_prototype())
            return {"document": json.loads(buffers["zarr.json"].to_bytes(), parse_constant=str)}

    def read(message: Json) -> Json:
        with open_store(message) as (store, _):
            is_v3 = f"{message['path']}/zarr.json".lstrip("/") in message["store"]
            array = zarr.open_array(store, mode="r", path=message["path"], zarr_format=3 if is_v3 else 2)
            return elements(array[index(message)], array.dtype)

    def write(message: Json) -> Json:
        with open_store(message) as (store, contents):
            array = zarr.open_array(store, mode="r+", zarr_format=3)
            text = array.metadata.data_type.to_json(3) == "string"
            array[...] = to_write(message, array.dtype, array.shape, text=text)
            return stored(contents())

    grids, codecs = ["regular"], list(zarr.config.get("codecs"))
    if "rectilinear_chunks" in zarr.config.get("array"):  # since 3.2
        zarr.config.set({"array.rectilinear_chunks": True})
        grids, codecs = [*grids, "rectilinear"], [*codecs, "cast_value", "scale_offset"]
    claims = {"chunk_grid": grids, "chunk_key_encoding": ["default", "v2"], "codecs": codecs, "zarr_format": ["2"]}
    claims["data_type"] = ["bytes", "structured", *data_type_registry.contents]
    serve(name, version, claims, {"open": open_node, "read": read, "write": write}, **options)


if __name__ == "__main__":
    answer_with("zarr-python", zarr.__version__, in_memory)
