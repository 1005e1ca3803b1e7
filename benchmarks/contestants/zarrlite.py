"""zarrlite with its default settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import zarrlite
from benchmarks.contestants.base import Contestant
from benchmarks.data import Array


class Zarrlite(Contestant):
    """The library under test."""

    name = "zarrlite"
    atomic = True
    packages: tuple[str, ...] = ("zarrlite", "numpy", "zstandard", "google-crc32c")
    cold_import = "import zarrlite; zarrlite.open"  # accesses a name, because the library is loaded on first access
    cold_read = "import zarrlite; print(zarrlite.open_array({path!r}, mode='r')[{i}, {j}])"
    library: Any = zarrlite

    def memory(self, files: Mapping[str, bytes]) -> Any:
        return self.library.stores.MemoryStore(files)

    def files(self, place: Any) -> dict[str, bytes]:
        return {key: bytes(place.get(key)) for key in place.list()}

    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        options = {"/codecs/0": {"strategy": strategy}} if strategy != "rewrite" else None
        return self.library.open_array(place, mode="r+" if write else "r", options=options)

    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [array[selection] for selection in selections]

    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [array.oindex[selection] for selection in selections]

    def put(self, array: Any, selections: Sequence[Any], values: Sequence[Array]) -> None:
        for selection, value in zip(selections, values, strict=True):
            array[selection] = value

    def open_all(self, paths: Sequence[str]) -> list[Any]:
        return [self.library.open_array(path, mode="r") for path in paths]

    def open_dataset(self, place: Any) -> Any:
        import xarray

        return xarray.open_dataset(place, engine="zarrlite", consolidated=True)

    def members(self, path: str) -> dict[str, Any]:
        return dict(self.library.open_group(path, mode="r").members())

    def describe(self, array: Any) -> tuple[Any, ...]:
        return array.shape, str(array.dtype), array.chunks
