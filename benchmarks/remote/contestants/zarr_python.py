"""zarr-python with its ObjectStore, which uses obstore."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import zarr
from zarr.storage import LocalStore, ObjectStore

from benchmarks.contestants.zarr_python import ZarrPython
from benchmarks.data import Array
from benchmarks.remote.contestants.base import Remote
from benchmarks.remote.place import Place


class ZarrPython10(ZarrPython, Remote):
    """zarr-python with its default of ten concurrent requests."""

    name = "zarr-python 10"
    packages = ("zarr", "numcodecs", "obstore")
    requests = 10

    def session(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = zarr.config.set({"async.concurrency": self.requests})
        return context

    def connect(self, place: Place) -> Any:
        return ObjectStore(place.s3_store())

    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        return zarr.open_array(self.client(place), path=place.path, mode="r+" if write else "r")

    def members(self, place: Any) -> dict[str, Any]:
        return dict(zarr.open_group(self.client(place), path=place.path, mode="r").members())

    def open_dataset(self, place: Any) -> Any:
        stores = self.__dict__.setdefault("_datasets", {})
        if place not in stores:
            stores[place] = ObjectStore(place.s3_store(place.path))
        return super().open_dataset(stores[place])

    def get_points(self, array: Any, points: tuple[Array, Array]) -> Any:
        return array.vindex[points]

    def upload(self, path: str, place: Place) -> None:
        source = zarr.open_array(path, mode="r")
        zarr.from_array(self.client(place), data=source, name=place.path)

    def download(self, place: Place, path: str) -> None:
        source = zarr.open_array(self.client(place), path=place.path, mode="r")
        zarr.from_array(LocalStore(path), data=source)


class ZarrPython64(ZarrPython10):
    """zarr-python with 64 concurrent requests."""

    name = "zarr-python 64"
    requests = 64
