"""The workloads: small classes, all with the same three steps (prepare, run and check).

Rules
- `prepare` is called before every turn. It returns the function that is timed, but is not timed itself.
- `check` compares the result with the image, once for each contestant.
- The name of a workload consists of parts such as kind, location, chunk size and codec, separated by slashes. `--only`
  selects workloads by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contestants import NAMES, Contestant
from benchmarks.data import Array, Layout
from benchmarks.workspace import Workspace

Run = Callable[[], Any]


class WrongResult(Exception):
    """A contestant returned or stored wrong data."""


def same(result: Any, expected: Any) -> None:
    """Raise WrongResult unless the result consists of the expected elements."""
    if not np.array_equal(np.asarray(result), np.asarray(expected)):
        raise WrongResult("differs from the expected elements")


@dataclass(frozen=True)
class Workload(ABC):
    """One operation, or several of the same kind, that every contestant performs."""

    name: str
    section: str
    layout: Layout | None = None
    goal: float | None = None  # target: zarrlite takes at most this multiple of the reference's time
    lead: float | None = None  # how many times faster than the best peer zarrlite should be

    reference = "limit"
    unit = "s"
    writes = False
    repeated = True  # whether rounds are added until the times settle; otherwise, only a few rounds run
    fresh = False  # whether freed memory is returned to the system before each turn
    patience = 1.0  # factor for `Scale.settle`; larger for workloads that are more easily disturbed

    @property
    def layouts(self) -> tuple[Layout, ...]:
        return () if self.layout is None else (self.layout,)

    @property
    def entrants(self) -> Sequence[str]:
        """The names of the entries, which are contestants or variants of the workload."""
        return NAMES

    def contestant(self, entrant: str) -> str:
        """Return the name of the contestant that runs for an entry."""
        return entrant

    @abstractmethod
    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        """Return the function that is timed."""

    @abstractmethod
    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        """Raise WrongResult if the result is wrong."""

    def operations(self, space: Workspace, entrant: str) -> int:
        """Return the number of operations in a turn; the report shows the time of one operation."""
        return 1

    def is_atomic(self, contestant: Contestant, entrant: str) -> bool:
        """Whether files are replaced atomically, by renaming."""
        return contestant.atomic


@dataclass(frozen=True)
class ArrayWorkload(Workload):
    """A workload with one array, on disk or in memory."""

    layout: Layout
    place: str = "disk"

    def existing(self, space: Workspace, contestant: Contestant) -> Any:
        """Return the location of an array with all its chunks."""
        return space.array(self.layout) if self.place == "disk" else space.memory(self.layout, contestant)

    def empty(self, space: Workspace, contestant: Contestant) -> Any:
        """Return the location of a new array without chunks."""
        return (
            contestant.memory({"zarr.json": self.layout.json()}) if self.place == "memory" else space.empty(self.layout)
        )

    def content(self, space: Workspace, contestant: Contestant, place: Any) -> Array:
        """Read an array that a contestant has written."""
        path = space.store(contestant.files(place)) if self.place == "memory" else place
        return space.content(self.layout, path)

    def is_atomic(self, contestant: Contestant, entrant: str) -> bool:
        return contestant.atomic and self.place == "disk"


class FullRead(ArrayWorkload):
    """Read a whole array."""

    fresh = True

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        array = contestant.open(self.existing(space, contestant))
        space.warm(self.layout)
        return lambda: contestant.get(array, [...])

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        same(result[0], space.image(self.layout))


class FullWrite(ArrayWorkload):
    """Write all chunks of an array that only has a `zarr.json`."""

    writes = fresh = True

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        place = self.empty(space, contestant)
        array = contestant.open(place, write=True)
        data = np.ascontiguousarray(space.image(self.layout))
        space.warm(self.layout)

        def run() -> Any:
            contestant.put(array, [...], [data])
            return place

        return run

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        same(self.content(space, contestant, result), space.image(self.layout))


@dataclass(frozen=True)
class Reads(ArrayWorkload):
    """Read parts of an array, one by one."""

    what: str = "elements"

    def selections(self, space: Workspace) -> list[Any]:
        """Return the selections, which are the same for every contestant and round."""
        return SELECTIONS[self.what](space, self.layout)

    def operations(self, space: Workspace, entrant: str) -> int:
        return len(self.selections(space))

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        array = contestant.open(self.existing(space, contestant))
        selections = self.selections(space)
        get = contestant.get_orthogonal if self.what == "orthogonal" else contestant.get
        return lambda: get(array, selections)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        data = space.image(self.layout)
        selections = self.selections(space)
        for selection, part in zip(selections, result, strict=True):
            same(part, data[np.ix_(*selection)] if self.what == "orthogonal" else data[selection])


class OpenAndRead(Reads):
    """Open an array and read one element, repeatedly."""

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        path = space.array(self.layout)
        selections = self.selections(space)
        return lambda: [contestant.get(contestant.open(path), [selection])[0] for selection in selections]


@dataclass(frozen=True)
class Update(ArrayWorkload):
    """Replace inner chunks one by one, either by rewriting the shard or, if supported, in place or by appending."""

    strategy: str = "rewrite"
    writes = True

    def _selections(self, space: Workspace, contestant: str) -> list[Any]:
        return inner_chunks(space, self.layout)[: 2 if self._rewrites(contestant) else space.scale.patches]

    def _rewrites(self, contestant: str) -> bool:
        return self.strategy == "rewrite" or contestant not in ("limit", "zarrlite")

    def operations(self, space: Workspace, entrant: str) -> int:
        return len(self._selections(space, entrant))

    def is_atomic(self, contestant: Contestant, entrant: str) -> bool:
        return contestant.atomic and self._rewrites(contestant.name)

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        path = space.copy(self.layout)
        array = contestant.open(path, write=True, strategy=self.strategy)
        selections = self._selections(space, contestant.name)
        values = [np.ascontiguousarray(space.image(self.layout)[selection][::-1]) for selection in selections]
        space.warm(self.layout)

        def run() -> str:
            contestant.put(array, selections, values)
            return path

        return run

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        expected = space.image(self.layout).copy()
        for selection in self._selections(space, contestant.name):
            expected[selection] = expected[selection][::-1].copy()
        same(space.content(self.layout, result), expected)


class OpenAll(Workload):
    """Open many arrays, each by its path."""

    def operations(self, space: Workspace, entrant: str) -> int:
        return space.scale.nodes

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        paths = [f"{space.group}/{name}" for name in space.names]
        return lambda: contestant.open_all(paths)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        check_group(space, contestant, dict(zip(space.names, result, strict=True)))


class Members(OpenAll):
    """List the arrays of a group with their metadata."""

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        root = space.group
        return lambda: contestant.members(root)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        check_group(space, contestant, result)


def check_group(space: Workspace, contestant: Contestant, arrays: dict[str, Any]) -> None:
    """Raise WrongResult unless these are the arrays of the group."""
    expected = (space.scale.shape, "uint16", space.scale.chunks["1M"])
    described = {name: contestant.describe(array) for name, array in arrays.items()}
    if described != dict.fromkeys(space.names, expected):
        raise WrongResult("differs from the arrays of the group")


def _random(count: int, *bounds: int) -> list[tuple[int, ...]]:
    random = np.random.default_rng(4)
    return list(zip(*(random.integers(0, bound, count).tolist() for bound in bounds), strict=True))


def elements(space: Workspace, layout: Layout) -> list[tuple[int, ...]]:
    """Return the indices of random single elements; fewer if reading each one needs a large compressed chunk."""
    costly = layout.codec == "zstd" and layout.chunk[0] * layout.chunk[1] * 2 > 2**17
    return _random(space.scale.slow_points if costly else space.scale.points, *layout.shape)


def inner_chunks(space: Workspace, layout: Layout) -> list[Any]:
    """Return the selections of random inner chunks, without duplicates."""
    (h, w), (rows, columns) = layout.chunk, layout.shape
    coords = dict.fromkeys(_random(space.scale.slow_points, rows // h, columns // w))
    return [(slice(i * h, i * h + h), slice(j * w, j * w + w)) for i, j in coords]


def _rows(space: Workspace, layout: Layout) -> list[Any]:
    return [(i, slice(None)) for (i,) in _random(10, layout.shape[0])]


def _columns(space: Workspace, layout: Layout) -> list[Any]:
    return [(slice(None), j) for (j,) in _random(10, layout.shape[1])]


def _strided(space: Workspace, layout: Layout) -> list[Any]:
    return [(slice(3, None, 10), slice(5, None, 7))]


def _orthogonal(space: Workspace, layout: Layout) -> list[Any]:
    rows, columns = zip(*_random(100, *layout.shape), strict=True)
    return [(np.unique(rows), np.unique(columns))]


SELECTIONS: dict[str, Callable[[Workspace, Layout], list[Any]]] = {
    "elements": elements,
    "element": lambda space, layout: elements(space, layout)[: space.scale.slow_points],
    "chunks": inner_chunks,
    "rows": _rows,
    "columns": _columns,
    "strided": _strided,
    "orthogonal": _orthogonal,
}
