"""The interface of the contestants: that of the local benchmark, plus three operations for remote stores.

Rules
- Parameters named `place` are of type `Place`: the location of a node in a bucket.
- Each contestant keeps its clients, and with them its connections, for the whole run.
- Only the operation is timed, not creating the client or opening an array, unless the workload is about that.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from benchmarks.contestants.base import Contestant, Unsupported
from benchmarks.data import Array
from benchmarks.remote.place import Place

__all__ = ["Remote", "Unsupported"]


class Remote(Contestant):
    """A library with its S3 store."""

    _clients: dict[tuple[int, str], Any]

    def client(self, place: Place) -> Any:
        """Return the client for the bucket of `place`. All nodes in a bucket share one client."""
        clients = self.__dict__.setdefault("_clients", {})
        key = place.port, place.bucket
        if key not in clients:
            clients[key] = self.connect(place)
        return clients[key]

    def connect(self, place: Place) -> Any:
        """Return a new client for the bucket of `place`."""
        return place.s3_store()

    @abstractmethod
    def get_points(self, array: Any, points: tuple[Array, Array]) -> Any:
        """Read single elements, given by their rows and columns, in one call if the library supports that."""

    @abstractmethod
    def upload(self, path: str, place: Place) -> None:
        """Copy the array in a directory to `place`, where no node exists yet."""

    @abstractmethod
    def download(self, place: Place, path: str) -> None:
        """Copy the array at `place` to a directory that does not exist yet."""
