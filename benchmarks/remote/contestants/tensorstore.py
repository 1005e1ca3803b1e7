"""tensorstore with its S3 driver."""

from __future__ import annotations

import os
from typing import Any

import tensorstore

from benchmarks.contestants.tensorstore import SETTINGS, TensorStore
from benchmarks.data import Array
from benchmarks.remote.contestants.base import Remote
from benchmarks.remote.place import Place
from benchmarks.remote.server import KEY, REGION, SECRET


class RemoteTensorStore(TensorStore, Remote):
    """tensorstore with its default of 32 concurrent requests."""

    name = "tensorstore 32"
    requests = 32

    def __init__(self) -> None:
        os.environ |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        self.context = tensorstore.Context({**SETTINGS, "s3_request_concurrency": {"limit": self.requests}})

    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        return tensorstore.open(self._spec(place), context=self.context).result()

    @staticmethod
    def _spec(place: Place) -> dict[str, Any]:
        store = {
            "driver": "s3",
            "bucket": place.bucket,
            "path": f"{place.path}/",
            "endpoint": place.endpoint,
            "aws_region": REGION,
            "aws_credentials": {"type": "environment"},
        }
        return {"driver": "zarr3", "kvstore": store}

    def get_points(self, array: Any, points: tuple[Array, Array]) -> Any:
        return array.vindex[points].read().result()

    def upload(self, path: str, place: Place) -> None:
        self._copy(self._open(path), self._spec(place))

    def download(self, place: Place, path: str) -> None:
        self._copy(self.open(place), {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}})

    def _copy(self, source: Any, spec: dict[str, Any]) -> None:
        metadata = source.spec().to_json()["metadata"]
        target = tensorstore.open({**spec, "metadata": metadata}, create=True, context=self.context).result()
        target.write(source).result()


class RemoteTensorStore64(RemoteTensorStore):
    """tensorstore with 64 concurrent requests."""

    name = "tensorstore 64"
    requests = 64
