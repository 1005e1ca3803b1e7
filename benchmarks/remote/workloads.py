"""The workloads on arrays and groups in a bucket.

Rules
- The name of a workload begins with the delay of the proxy; the rest is as in the local benchmark.
- Reading a hundred elements is one operation, and one call if the library supports point selections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contestants import REMOTE, Contestant
from benchmarks.data import Array
from benchmarks.datasets import OpenDataset, ReadDataset
from benchmarks.processes import PeakMemory, python
from benchmarks.remote.contestants.base import Remote
from benchmarks.remote.space import RemoteSpace
from benchmarks.workloads import ArrayWorkload, FullRead, FullWrite, Reads, Run, Workload, check_group, same
from benchmarks.workspace import Workspace


@dataclass(frozen=True)
class OnServer(Workload):
    """A workload on a node in a bucket."""

    delay: int = 0  # milliseconds

    @property
    def entrants(self) -> Sequence[str]:
        return REMOTE


@dataclass(frozen=True)
class OnArray(ArrayWorkload, OnServer):
    """A workload on an array in a bucket."""

    def is_atomic(self, contestant: Contestant, entrant: str) -> bool:
        # the report does not mark atomic writes to a server, which replaces values atomically for every contestant
        return False

    def existing(self, space: Any, contestant: Contestant) -> Any:
        return space.stored(self.layout, self.delay)

    def empty(self, space: Any, contestant: Contestant) -> Any:
        return space.new(self.delay, self.layout)

    def content(self, space: Any, contestant: Contestant, place: Any) -> Array:
        found: Array = space.content(self.layout, space.fetched(place))
        return found


class RemoteRead(OnArray, FullRead):
    """Read a whole array."""


class RemoteWrite(OnArray, FullWrite):
    """Write all chunks of an array that only has a `zarr.json`."""


@dataclass(frozen=True)
class RemoteReads(OnArray, Reads):
    """Read part of an array: half of the rows, one column of every second chunk, or ten rows by ten columns."""

    def selections(self, space: Workspace) -> list[Any]:
        rows = self.layout.shape[0]
        if self.what == "half":  # the lower half of two shards, and the upper half of two others
            return [(slice(rows // 4, rows * 3 // 4), slice(None))]
        if self.what == "every-second":
            return [(slice(None), slice(0, None, 2 * self.layout.chunk[1]))]
        return [tuple(np.unique(part[:10]) for part in self.points(space))]

    def points(self, space: Workspace) -> tuple[Array, Array]:
        """Return the rows and the columns of random elements."""
        random = np.random.default_rng(4)
        rows, columns = (random.integers(0, n, space.scale.points) for n in self.layout.shape)
        return rows, columns


class RemotePoints(RemoteReads):
    """Read random elements."""

    def operations(self, space: Workspace, entrant: str) -> int:
        return 1

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        assert isinstance(contestant, Remote)
        array = contestant.open(self.existing(space, contestant))
        points = self.points(space)
        return lambda: contestant.get_points(array, points)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        same(result, space.image(self.layout)[self.points(space)])


@dataclass(frozen=True)
class OpenGroup(OnServer):
    """Open all arrays of a group."""

    consolidated: bool = False

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        assert isinstance(space, RemoteSpace)
        place: Any = space.remote_group(self.delay, self.consolidated)
        return lambda: contestant.members(place)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        check_group(space, contestant, result)


@dataclass(frozen=True)
class Copy(OnArray):
    """Copy an array from disk to a bucket, or from a bucket to disk."""

    direction: str = "upload"
    writes = True

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        assert isinstance(space, RemoteSpace)
        assert isinstance(contestant, Remote)
        source: Any
        target: Any
        copy: Callable[[Any, Any], None]
        if self.direction == "upload":
            source, target, copy = space.array(self.layout), space.new(self.delay), contestant.upload
        else:
            source, target, copy = self.existing(space, contestant), space.new_path(), contestant.download

        def run() -> Any:
            copy(source, target)
            return target

        return run

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        assert isinstance(space, RemoteSpace)
        path = space.fetched(result) if self.direction == "upload" else result
        same(space.content(self.layout, path), space.image(self.layout))


@dataclass(frozen=True)
class RemoteOpenDataset(OpenDataset):
    """Open an xarray dataset."""

    delay: int = 0  # milliseconds
    reference = "zarr-python 64"

    @property
    def entrants(self) -> Sequence[str]:
        return "zarr-python 64", "zarr-python 10", "zarrlite"

    def dataset(self, space: Any) -> Any:
        return space.remote_dataset(self.layout, self.delay)


class RemoteReadDataset(RemoteOpenDataset, ReadDataset):
    """Open an xarray dataset, and read all of it."""


@dataclass(frozen=True)
class RemotePeakMemory(OnArray, PeakMemory):
    """The peak memory of a full read or write."""

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        place = self.existing(space, contestant) if self.operation == "read" else self.empty(space, contestant)
        arguments = contestant.name, self.operation, *map(str, place), space.data_file
        return lambda: (float(python(space, "-m", "benchmarks.remote.memory", *arguments)), place)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        if self.operation == "write":
            same(self.content(space, contestant, result[1]), space.image(self.layout))
