"""Everything that is measured, as small classes with the same three steps: prepare, run, check.

Rules
- `prepare` returns what is timed, and is not timed itself; it is called anew for every round.
- `check` compares what came out with the image; it is called once for each contestant.
- A workload's name is a path: kind, place, size, codec; `--only` selects by it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contestants import NAMES, Contestant
from benchmarks.data import Layout
from benchmarks.workspace import Workspace

Run = Callable[[], Any]


class WrongResult(Exception):
    """A contestant returned or stored something else than it should."""


def same(found: Any, expected: Any) -> None:
    """Refuse a result that is not bit for bit the expected one."""
    if not np.array_equal(np.asarray(found), np.asarray(expected)):
        raise WrongResult("not what it should be")


@dataclass(frozen=True)
class Workload(ABC):
    """Something that contestants do with an array."""

    name: str
    section: str
    layout: Layout | None = None
    goal: float | None = None  # zarrlite's time as a multiple of the reference's, to be reached
    lead: float | None = None  # how many times faster than the best peer zarrlite is to be

    reference = "limit"
    unit = "s"
    writes = False
    repeated = True  # as often as time allows; else a few times only
    fresh = False  # whether what was freed before is given back to the system before each turn
    patience = 1.0  # how much longer than others it is repeated, since it is disturbed more easily

    @property
    def layouts(self) -> tuple[Layout, ...]:
        return () if self.layout is None else (self.layout,)

    @property
    def entrants(self) -> Sequence[str]:
        """Who takes part, by name; each is a contestant, or a way to do it."""
        return NAMES

    def contestant(self, entrant: str) -> str:
        return entrant

    @abstractmethod
    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        """What is timed."""

    @abstractmethod
    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        """Refuse a wrong result."""

    def operations(self, space: Workspace, entrant: str) -> int:
        """How many operations are timed together; the report has the time of one."""
        return 1

    def is_atomic(self, contestant: Contestant, entrant: str) -> bool:
        """Whether files are replaced as a whole, by renaming."""
        return contestant.atomic


@dataclass(frozen=True)
class ArrayWorkload(Workload):
    """One that has an array, on disk or in memory."""

    layout: Layout
    place: str = "disk"

    def existing(self, space: Workspace, contestant: Contestant) -> Any:
        return space.array(self.layout) if self.place == "disk" else space.memory(self.layout, contestant)

    def is_atomic(self, contestant: Contestant, entrant: str) -> bool:
        return contestant.atomic and self.place == "disk"


class FullRead(ArrayWorkload):
    """Read all of an array."""

    fresh = True

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        array = contestant.open(self.existing(space, contestant))
        space.warm(self.layout)
        return lambda: contestant.get(array, [...])

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        same(result[0], space.data)


class FullWrite(ArrayWorkload):
    """Write all of an array that has no chunks yet; its document is there."""

    writes = fresh = True

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        place: Any
        if self.place == "memory":
            place = contestant.memory({"zarr.json": self.layout.json()})
        else:
            place = space.empty(self.layout)
        array = contestant.open(place, write=True)
        data = space.data
        space.warm(self.layout)

        def run() -> Any:
            contestant.put(array, [...], [data])
            return place

        return run

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        path = result if isinstance(result, str) else space.store(contestant.files(result))
        same(space.content(self.layout, path), space.data)


@dataclass(frozen=True)
class Reads(ArrayWorkload):
    """Read parts of an array, one after the other."""

    what: str = "elements"

    def selections(self, space: Workspace) -> list[Any]:
        """The same for every contestant and round."""
        return SELECTIONS[self.what](space, self.layout)

    def operations(self, space: Workspace, entrant: str) -> int:
        return len(self.selections(space))

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        array = contestant.open(self.existing(space, contestant))
        selections = self.selections(space)
        get = contestant.get_orthogonal if self.what == "orthogonal" else contestant.get
        return lambda: get(array, selections)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        data = space.data
        selections = self.selections(space)
        for selection, found in zip(selections, result, strict=True):
            same(found, data[np.ix_(*selection)] if self.what == "orthogonal" else data[selection])


class OpenAndRead(Reads):
    """Open the array and read one element of it, again and again."""

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        path = space.array(self.layout)
        selections = self.selections(space)
        return lambda: [contestant.get(contestant.open(path), [selection])[0] for selection in selections]


@dataclass(frozen=True)
class Update(ArrayWorkload):
    """Replace whole inner chunks one by one: by a new shard, or, for whoever can, in place or behind the others."""

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
        described(space, contestant, dict(zip(space.names, result, strict=True)))


class Members(OpenAll):
    """List a group: all its arrays, with their metadata."""

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        root = space.group
        return lambda: contestant.members(root)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        described(space, contestant, result)


def described(space: Workspace, contestant: Contestant, arrays: dict[str, Any]) -> None:
    """Refuse arrays that are not those of the group."""
    expected = (space.scale.shape, "uint16", space.scale.chunks["1M"])
    found = {name: contestant.describe(array) for name, array in arrays.items()}
    if found != dict.fromkeys(space.names, expected):
        raise WrongResult("not the arrays of the group")


def _random(count: int, *bounds: int) -> list[tuple[int, ...]]:
    random = np.random.default_rng(4)
    return list(zip(*(random.integers(0, bound, count).tolist() for bound in bounds), strict=True))


def elements(space: Workspace, layout: Layout) -> list[tuple[int, ...]]:
    """Random single elements; fewer where each costs a large chunk."""
    costly = layout.codec == "zstd" and layout.chunk[0] * layout.chunk[1] * 2 > 2**17
    return _random(space.scale.slow_points if costly else space.scale.points, *layout.shape)


def inner_chunks(space: Workspace, layout: Layout) -> list[Any]:
    """Random whole inner chunks, none twice."""
    (h, w), (rows, columns) = layout.chunk, layout.shape
    places = dict.fromkeys(_random(space.scale.slow_points, rows // h, columns // w))
    return [(slice(i * h, i * h + h), slice(j * w, j * w + w)) for i, j in places]


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
