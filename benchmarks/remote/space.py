"""The arrays of a run, stored in buckets of the server.

Rules
- Every array is written to disk by the `limit` baseline of the local benchmark, and its files are copied to a bucket.
- Arrays that contestants write are in a separate bucket, which is removed and created again after each round.
"""

from __future__ import annotations

import json
import os
from functools import cached_property
from typing import Any

import obstore

from benchmarks.data import Layout
from benchmarks.datasets import dataset_files
from benchmarks.remote.data import RemoteScale
from benchmarks.remote.place import Place
from benchmarks.remote.proxy import Proxy
from benchmarks.remote.server import Server
from benchmarks.workspace import Workspace

DATA, NEW = "data", "new"


class RemoteSpace(Workspace):
    """The files and the buckets that the workloads use."""

    scale: RemoteScale

    def __init__(self, root: str, scale: RemoteScale, server: Server, proxy: Proxy) -> None:
        super().__init__(root, scale)
        self.server = f"SeaweedFS {server.version}"
        self._server = server
        self._ports = proxy.ports
        self._uploaded: dict[Layout, str] = {}  # paths in the bucket
        self._uploaded_datasets: dict[Layout, str] = {}
        self._has_new = False
        for bucket in (DATA, NEW):
            server.bucket(bucket)

    @cached_property
    def _clients(self) -> dict[str, Any]:
        """The clients that bypass the proxy, keyed by bucket."""
        return {bucket: Place(self._server.port, bucket, "").s3_store() for bucket in (DATA, NEW)}

    def _upload(self, bucket: str, path: str, files: dict[str, bytes]) -> None:
        for key, value in files.items():
            obstore.put(self._clients[bucket], f"{path}/{key}", value)

    def stored(self, layout: Layout, delay: int) -> Place:
        """Return the location of an array with all its chunks. The array must not be changed."""
        if layout not in self._uploaded:
            path = f"array{len(self._uploaded)}"
            self._upload(DATA, path, self.files(layout))
            self._uploaded[layout] = path
        return Place(self._ports[delay], DATA, self._uploaded[layout])

    def remote_dataset(self, layout: Layout, delay: int) -> Place:
        """Return the location of an xarray dataset that contains the array. The dataset must not be changed."""
        path = self._uploaded_datasets.get(layout)
        if path is None:
            path = self._uploaded_datasets[layout] = f"dataset{len(self._uploaded_datasets)}"
            self._upload(DATA, path, dataset_files(self, layout))
        return Place(self._ports[delay], DATA, path)

    def new(self, delay: int, layout: Layout | None = None) -> Place:
        """Return an unused location in the bucket for new arrays. It contains the document of `layout`, if given."""
        self._has_new = True
        self._count += 1
        place = Place(self._ports[delay], NEW, f"array{self._count}")
        if layout is not None:
            self._upload(NEW, place.path, {"zarr.json": layout.json()})
        return place

    def new_path(self) -> str:
        """Return the path of a directory that does not exist yet. `clear_new` empties it."""
        path = self.directory()
        os.rmdir(path)
        return path

    def fetched(self, place: Place) -> str:
        """Copy the files of an array from a bucket to a new directory, and return its path."""
        client = self._clients[place.bucket]
        found = obstore.list(client, f"{place.path}/").collect()
        keys = [item["path"] for item in found]
        return self.store({key[len(place.path) + 1 :]: bytes(obstore.get(client, key).bytes()) for key in keys})

    def clear_new(self) -> None:
        super().clear_new()
        if self._has_new:
            self._server.remove(NEW)
            self._server.bucket(NEW)
            self._has_new = False

    def remote_group(self, delay: int, consolidated: bool) -> Place:
        """Return the location of a group of many arrays without chunks, with or without consolidated metadata."""
        return Place(self._ports[delay], DATA, self._groups[consolidated])

    @cached_property
    def _groups(self) -> tuple[str, str]:
        files = {}
        for name in ["", *(f"{name}/" for name in self.names)]:
            with open(f"{self.group}/{name}zarr.json", "rb") as file:
                files[f"{name}zarr.json"] = file.read()
        documents = {name: json.loads(files[f"{name}/zarr.json"]) for name in self.names}
        root = json.loads(files["zarr.json"])
        root["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": documents}
        self._upload(DATA, "group", files)
        self._upload(DATA, "consolidated", files | {"zarr.json": json.dumps(root).encode()})
        return "group", "consolidated"
