"""The list of all workloads, with the goals of zarrlite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from benchmarks.contestants import Contestant
from benchmarks.data import Layout, Scale, layout, sharded
from benchmarks.datasets import OpenDataset, ReadDataset
from benchmarks.processes import ColdImport, ColdRead, PeakMemory
from benchmarks.workloads import FullRead, FullWrite, Members, OpenAll, OpenAndRead, Reads, Run, Update, Workload
from benchmarks.workspace import Workspace

KINDS = ("plain", "pad", "parts", "draft")
CODECS = ("zstd", "raw")
# goals for random elements and inner chunks: maximum multiple of `limit`'s time, minimum speedup over the best peer
# goals of random reads: the multiple of the limit's time, and how far ahead of the best peer
RANDOM = {"zstd": (1.2, 1.0), "raw": (1.7, 1.0)}
RANDOM_IN_SHARDS = {"zstd": (1.5, 1.0), "raw": (2.1, 1.0)}
PARTS, STARTING, UPDATES = "Parts of chunks", "Starting", "Updates of one inner chunk"


@dataclass(frozen=True)
class Extended(Workload):
    """The same workload on shards that are plain, padded, split into parts, or stored by the transformer `sharding`."""

    reference = "plain"
    inner: tuple[Workload, ...] = ()  # one workload for each kind in KINDS

    @property
    def writes(self) -> bool:  # type: ignore[override]
        return self.inner[0].writes

    @property
    def fresh(self) -> bool:  # type: ignore[override]
        return self.inner[0].fresh

    @property
    def layouts(self) -> tuple[Layout, ...]:
        return tuple(layout for workload in self.inner for layout in workload.layouts)

    @property
    def entrants(self) -> Sequence[str]:
        return KINDS

    def contestant(self, entrant: str) -> str:
        return "zarrlite"

    def _workload(self, entrant: str) -> Workload:
        return self.inner[KINDS.index(entrant)]

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        workload = self._workload(entrant)
        run = workload.prepare(space, contestant, "zarrlite")
        return lambda: (workload, run())

    def check(self, space: Workspace, contestant: Contestant, result: tuple[Workload, object]) -> None:
        workload, outcome = result
        workload.check(space, contestant, outcome)

    def operations(self, space: Workspace, entrant: str) -> int:
        return self._workload(entrant).operations(space, "zarrlite")

    def is_atomic(self, contestant: Contestant, entrant: str) -> bool:
        return contestant.atomic and entrant != "parts"  # each part is replaced atomically, but not the whole shard


def catalogue(scale: Scale) -> Iterator[Workload]:
    """Yield every workload; those that share a layout are consecutive."""
    yield from _bulk(scale)
    yield from _shards(scale)
    yield from _start(scale)
    yield from _memory(scale)
    yield from _extensions(scale)
    yield from _datasets(scale)


def select(scale: Scale, pattern: str | None) -> list[Workload]:
    """Return the workloads whose name contains a pattern."""
    return [w for w in catalogue(scale) if pattern is None or fnmatchcase(w.name, f"*{pattern}*")]


def _bulk(scale: Scale) -> Iterator[Workload]:
    reading = {("zstd", "64K"): 1.3, ("zstd", "1M"): 1.1, ("zstd", "4M"): 1.05, ("raw", "64K"): 1.7}
    writing = {("zstd", "64K"): 1.1, ("zstd", "1M"): 1.05, ("zstd", "4M"): 1.05, ("raw", "64K"): 2.0}
    memory = {"zstd": 1.1, "raw": 1.3}
    for codec in CODECS:
        for size in ("64K", "1M", "4M"):
            form, tail = layout(scale, size, codec), f"{size}/{codec}"
            yield FullRead(f"read/disk/{tail}", "Full reads", form, reading.get((codec, size), 1.2))
            yield FullWrite(f"write/disk/{tail}", "Full writes", form, writing.get((codec, size)))
            yield FullRead(f"read/memory/{tail}", "Full reads", form, memory[codec], place="memory")
            yield FullWrite(f"write/memory/{tail}", "Full writes", form, memory[codec], place="memory")
            if size != "4M":
                yield Reads(f"elements/{tail}", PARTS, form, *RANDOM[codec], what="elements")
        form, tail = layout(scale, "64K", codec), f"64K/{codec}"
        for what in ("rows", "columns", "strided", "orthogonal"):
            yield Reads(f"{what}/{tail}", PARTS, form, what=what)
        yield OpenAndRead(f"open+element/{tail}", STARTING, form, {"zstd": 1.35, "raw": 2.3}[codec], what="element")


def _shards(scale: Scale) -> Iterator[Workload]:
    reading = {("zstd", "8K"): 1.15, ("zstd", "64K"): 1.1, ("raw", "8K"): 1.3, ("raw", "64K"): 1.3}
    for size in ("8K", "64K"):
        for codec in CODECS:
            form, tail = sharded(scale, size, codec), f"{size}/{codec}"
            yield FullRead(f"shard/read/{tail}", "Shards", form, reading[codec, size])
            yield FullWrite(f"shard/write/{tail}", "Shards", form, {"zstd": 1.1, "raw": 1.2}[codec])
            for what in ("elements", "chunks"):
                yield Reads(f"shard/{what}/{tail}", "Shards", form, *RANDOM_IN_SHARDS[codec], what=what)
            yield Update(f"shard/update/{tail}", UPDATES, form.alone(), lead=1.0)
            if codec == "raw":
                for strategy in ("in-place", "append"):
                    yield Update(f"shard/update/{tail}/{strategy}", UPDATES, form.alone(), lead=50.0, strategy=strategy)


def _start(scale: Scale) -> Iterator[Workload]:
    yield ColdImport("cold/import", STARTING, goal=1.4)
    yield ColdRead("cold/element/64K/zstd", STARTING, layout(scale, "64K", "zstd"))
    yield OpenAll("open-all", STARTING, goal=2.0)
    yield Members("list", STARTING, goal=2.0)


def _memory(scale: Scale) -> Iterator[Workload]:
    forms = {"1M": layout(scale, "1M", "zstd")}
    forms |= {f"shard/{size}": sharded(scale, size, "zstd") for size in ("8K", "64K")}
    for name, form in forms.items():
        for operation in ("read", "write"):
            yield PeakMemory(f"peak/{operation}/{name}/zstd", "Peak memory", form, operation=operation)


def _extensions(scale: Scale) -> Iterator[Workload]:
    for codec in CODECS:
        forms = [sharded(scale, "8K", codec).as_kind(kind) for kind in KINDS]
        for what in ("read", "write", "elements", "chunks", "update"):
            name = f"extension/{what}/8K/{codec}"
            inner = tuple(_shard_workload(what, form) for form in forms)
            # an element or inner chunk of a shard in parts needs one more open file
            yield Extended(name, "Extensions", goal=1.9 if what in ("elements", "chunks") else 1.1, inner=inner)


def _datasets(scale: Scale) -> Iterator[Workload]:
    form = layout(scale, "64K", "zstd")
    yield OpenDataset("xarray/open", "Datasets of xarray", form, lead=1.0)
    yield ReadDataset("xarray/read/64K/zstd", "Datasets of xarray", form, lead=1.0)


def _shard_workload(what: str, form: Layout) -> Workload:
    if what == "update":
        return Update("", "", form.alone())
    full = {"read": FullRead, "write": FullWrite}
    return full[what]("", "", form) if what in full else Reads("", "", form, what=what)
