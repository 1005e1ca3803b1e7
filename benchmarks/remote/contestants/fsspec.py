"""zarrlite through fsspec, with s3fs."""

from __future__ import annotations

from typing import Any

import s3fs

from benchmarks.remote.contestants.zarrlite import RemoteZarrlite
from benchmarks.remote.place import Place
from benchmarks.remote.server import KEY, REGION, SECRET


class FsspecZarrlite(RemoteZarrlite):
    """zarrlite with an fsspec filesystem."""

    name = "zarrlite fsspec"
    packages = ("zarrlite", "fsspec", "s3fs")

    def __init__(self) -> None:
        if not hasattr(self.library.stores, "FsspecStore"):
            raise ImportError("zarrlite has no store for fsspec")

    def connect(self, place: Place) -> Any:
        settings = {"endpoint_url": place.endpoint, "region_name": REGION}
        filesystem = s3fs.S3FileSystem(key=KEY, secret=SECRET, client_kwargs=settings, skip_instance_cache=True)
        return self.library.stores.FsspecStore(filesystem, place.bucket)
