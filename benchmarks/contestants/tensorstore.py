"""tensorstore, without a cache and without fsync."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorstore

from benchmarks.contestants.base import Contestant, Unsupported
from benchmarks.data import Array

SETTINGS = {
    "cache_pool": {"total_bytes_limit": 0},
    "file_io_sync": False,  # no fsync
    "file_io_locking": {"mode": "none"},  # no file locks; a value is still written to a temporary file and renamed
}
_COLD = """
import tensorstore
spec = {{'driver': 'zarr3', 'kvstore': {{'driver': 'file', 'path': {path!r}}}}}
print(tensorstore.open(spec).result()[{i}, {j}].read().result())
"""


class TensorStore(Contestant):
    """The zarr3 driver of tensorstore, with its default number of threads: one for each core."""

    name = "tensorstore"
    atomic = True
    packages = ("tensorstore",)
    cold_import = "import tensorstore"
    cold_read = _COLD

    def __init__(self) -> None:
        self.context = tensorstore.Context(SETTINGS)

    def memory(self, files: Mapping[str, bytes]) -> Any:
        context = tensorstore.Context(SETTINGS)
        store = tensorstore.KvStore.open({"driver": "memory"}, context=context).result()
        for key, value in files.items():
            store[key] = value
        return store, context

    def files(self, place: Any) -> dict[str, bytes]:
        store, _ = place
        return {key.decode(): store[key] for key in store.list().result()}

    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        if isinstance(place, str):
            return self._open(place)
        store, context = place
        return tensorstore.open({"driver": "zarr3"}, kvstore=store, context=context).result()

    def _open(self, path: str) -> Any:
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
        return tensorstore.open(spec, context=self.context).result()

    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [array[selection].read().result() for selection in selections]

    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [array.oindex[selection].read().result() for selection in selections]

    def put(self, array: Any, selections: Sequence[Any], values: Sequence[Array]) -> None:
        for selection, value in zip(selections, values, strict=True):
            array[selection].write(value).result()

    def open_all(self, paths: Sequence[str]) -> list[Any]:
        return [self._open(path) for path in paths]

    def members(self, path: str) -> dict[str, Any]:
        raise Unsupported("tensorstore does not support groups")

    def describe(self, array: Any) -> tuple[Any, ...]:
        return array.shape, array.dtype.name, array.chunk_layout.read_chunk.shape
