"""zarrlite with its S3 store."""

from __future__ import annotations

from typing import Any

from benchmarks.contestants.zarrlite import Zarrlite
from benchmarks.data import Array
from benchmarks.remote.contestants.base import Remote
from benchmarks.remote.place import Place
from benchmarks.remote.server import KEY, REGION, SECRET


class RemoteZarrlite(Zarrlite, Remote):
    """zarrlite with its default of 64 concurrent requests."""

    packages = (*Zarrlite.packages, "obstore")

    def connect(self, place: Place) -> Any:
        credentials = {"access_key_id": KEY, "secret_access_key": SECRET}
        return self.library.stores.ObjectStore(
            f"s3://{place.bucket}", endpoint=place.endpoint, region=REGION, credentials=credentials
        )

    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        return self.library.open_array(self.client(place), path=place.path, mode="r+" if write else "r")

    def members(self, place: Any) -> dict[str, Any]:
        return dict(self.library.open_group(self.client(place), path=place.path, mode="r").members())

    def open_dataset(self, place: Any) -> Any:
        return super().open_dataset(self.library.stores.PrefixStore(self.client(place), f"{place.path}/"))

    def get_points(self, array: Any, points: tuple[Array, Array]) -> Any:
        return array.vindex[points]

    def upload(self, path: str, place: Place) -> None:
        self.library.copy(self.library.open_array(path, mode="r"), self.client(place), place.path)

    def download(self, place: Place, path: str) -> None:
        self.library.copy(self.open(place), path)
