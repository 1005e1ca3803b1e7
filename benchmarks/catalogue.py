"""The list of all workloads, and what zarrlite is to reach in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from benchmarks.contestants import Contestant
from benchmarks.data import Layout, Scale, layout, sharded
from benchmarks.processes import ColdImport, ColdRead, PeakMemory
from benchmarks.workloads import FullRead, FullWrite, Members, OpenAll, OpenAndRead, Reads, Run, Update, Workload
from benchmarks.workspace import Workspace

KINDS = ("plain", "pad", "parts", "draft")
CODECS = ("zstd", "raw")


@dataclass(frozen=True)
class Extended(Workload):
    """Another workload on zarrlite's own shards: plain, behind `pad`, in parts, in the draft's transformer."""

    reference = "plain"
    inner: tuple[Workload, ...] = ()  # one for each kind

    @property
    def writes(self) -> bool:  # type: ignore[override]
        return self.inner[0].writes

    @property
    def layouts(self) -> tuple[Layout, ...]:
        return tuple(layout for workload in self.inner for layout in workload.layouts)

    @property
    def entrants(self) -> Sequence[str]:
        return KINDS

    def contestant(self, entrant: str) -> str:
        return "zarrlite"

    def _of(self, entrant: str) -> Workload:
        return self.inner[KINDS.index(entrant)]

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        workload = self._of(entrant)
        run = workload.prepare(space, contestant, "zarrlite")
        return lambda: (workload, run())

    def check(self, space: Workspace, contestant: Contestant, result: tuple[Workload, object]) -> None:
        workload, found = result
        workload.check(space, contestant, found)

    def operations(self, space: Workspace, entrant: str) -> int:
        return self._of(entrant).operations(space, "zarrlite")

    def is_atomic(self, contestant: Contestant, entrant: str) -> bool:
        return contestant.atomic and entrant != "parts"  # each of them is, all of them together are not


def catalogue(scale: Scale) -> Iterator[Workload]:
    """Every workload, those of one layout one after the other."""
    yield from _bulk(scale)
    yield from _shards(scale)
    yield from _start(scale)
    yield from _memory(scale)
    yield from _extensions(scale)


def select(scale: Scale, pattern: str | None) -> list[Workload]:
    """The workloads whose name has a pattern in it."""
    return [w for w in catalogue(scale) if pattern is None or fnmatchcase(w.name, f"*{pattern}*")]


def _bulk(scale: Scale) -> Iterator[Workload]:
    reading = {("zstd", "64K"): 1.15, ("zstd", "1M"): 1.1, ("zstd", "4M"): 1.05}
    writing = {("zstd", "64K"): 1.1, ("zstd", "1M"): 1.05, ("zstd", "4M"): 1.05, ("raw", "64K"): 2.0}
    memory = {"zstd": 1.1, "raw": 1.3}
    for codec in CODECS:
        for size in ("64K", "1M", "4M"):
            form, tail = layout(scale, size, codec), f"{size}/{codec}"
            yield FullRead(f"read/disk/{tail}", "Full reads", form, reading.get((codec, size), 1.15))
            yield FullWrite(f"write/disk/{tail}", "Full writes", form, writing.get((codec, size)))
            yield FullRead(f"read/memory/{tail}", "Full reads", form, memory[codec], "memory")
            yield FullWrite(f"write/memory/{tail}", "Full writes", form, memory[codec], "memory")
            if size == "4M":
                continue
            goal = {"zstd": 1.2, "raw": 1.5}[codec]
            yield Reads(f"elements/{tail}", "Parts of chunks", form, goal, what="elements")
            if size == "1M":
                continue
            goal = {"zstd": 1.3, "raw": 2.0}[codec]
            yield OpenAndRead(f"open+element/{tail}", "Starting", form, goal, what="element")
            for what in ("rows", "columns", "strided", "orthogonal"):
                yield Reads(f"{what}/{tail}", "Parts of chunks", form, what=what)


def _shards(scale: Scale) -> Iterator[Workload]:
    reading = {("zstd", "8K"): 1.15, ("zstd", "64K"): 1.05, ("raw", "8K"): 1.3, ("raw", "64K"): 1.3}
    for size in ("8K", "64K"):
        for codec in CODECS:
            form, tail = sharded(scale, size, codec), f"{size}/{codec}"
            goal = {"zstd": 1.2, "raw": 1.5}[codec]
            yield FullRead(f"shard/read/{tail}", "Shards", form, reading[codec, size])
            yield FullWrite(f"shard/write/{tail}", "Shards", form, {"zstd": 1.05, "raw": 1.2}[codec])
            yield Reads(f"shard/elements/{tail}", "Shards", form, goal, what="elements")
            yield Reads(f"shard/chunks/{tail}", "Shards", form, goal, what="chunks")
            yield Update(f"shard/update/{tail}", "Updates of one inner chunk", form)
            if codec == "raw":
                for strategy in ("in-place", "append"):
                    name = f"shard/update/{tail}/{strategy}"
                    yield Update(name, "Updates of one inner chunk", form, strategy=strategy)


def _start(scale: Scale) -> Iterator[Workload]:
    yield ColdImport("cold/import", "Starting", goal=1.2)
    for codec in CODECS:
        yield ColdRead(f"cold/element/64K/{codec}", "Starting", layout(scale, "64K", codec))
    yield OpenAll("open-all", "Starting", goal=2.0)
    yield Members("list", "Starting", goal=2.0)


def _memory(scale: Scale) -> Iterator[Workload]:
    forms = {"1M": layout(scale, "1M", "zstd"), "4M": layout(scale, "4M", "zstd")}
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
            yield Extended(name, "Extensions", goal=1.1, inner=inner)


def _shard_workload(what: str, form: Layout) -> Workload:
    whole = {"read": FullRead, "write": FullWrite, "update": Update}
    return whole[what]("", "", form) if what in whole else Reads("", "", form, what=what)
