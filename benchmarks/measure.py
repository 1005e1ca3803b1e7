"""Measure a workload: contestants take turns, and the result of each is its minimum over all rounds.

Rules
- In every round, each contestant has one turn. The order rotates from round to round.
- The data that each contestant's first turn returns or stores is checked. The time of this first turn counts too,
  because a slow turn cannot raise the minimum.
- Pending writes are flushed to disk before every turn, and files are emptied between rounds, not between turns, so
  that neither slows down the next contestant.
- Before full reads and writes, freed memory is returned to the system if the C library supports that. Obtaining new
  memory takes longer than copying into it, so a contestant would otherwise profit from the memory that the previous
  one freed.
- Rounds continue until there are enough of them and the fastest contestant has run for long enough, because short
  turns are easily disturbed.
- If a contestant close to the fastest reached its best time only once, more rounds are needed: only a time that was
  reached twice is reproducible. These rounds run in a later pass, because disturbances of the machine can last for
  minutes.
- A contestant that has had two turns, has used up its time budget and is more than three times slower than the fastest
  gets no further turns.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.contestants import Contestant, Unsupported
from benchmarks.data import Scale
from benchmarks.workloads import Workload, WrongResult
from benchmarks.workspace import Workspace

FAR_BEHIND = 3.0  # multiple of the fastest time; slower contestants stop when their time budget is used up
MIN_TURNS = 2  # turns; a contestant never stops earlier, since a single turn may have been disturbed
MAX_ROUNDS = 8  # maximum rounds of a workload in one pass, as a multiple of the requested rounds
CONTENDER = 1.5  # multiple of the fastest time; contestants below it must reproduce their best time
SAME = 1.02  # ratio; two turns whose times differ by less count as equal

Progress = Callable[[str], None]


@dataclass
class Entry:
    """The turns of a contestant in a workload."""

    times: list[float] = field(default_factory=list)  # for each turn: seconds (or MiB) per operation
    status: str = "ok"  # or the reason why there is no time: "-" (unsupported), "absent", "wrong", "error"
    note: str = ""
    atomic: bool = False
    spent: float = 0.0  # total seconds of all turns

    @property
    def best(self) -> float | None:
        return min(self.times) if self.times and self.status == "ok" else None


Result = dict[str, Entry]


def measure(
    workload: Workload,
    space: Workspace,
    contestants: dict[str, Contestant],
    rounds: int,
    progress: Progress,
    before: Result | None = None,
) -> Result:
    """Run a workload with all available contestants. New turns are added to those in `before`."""
    result = before or {name: Entry() for name in workload.entrants}
    for name, entry in result.items():
        if workload.contestant(name) not in contestants:
            entry.status = "absent"
    space.keep(workload.layouts)
    scale = space.scale
    if workload.repeated:
        settle, max_rounds = scale.settle * workload.patience, MAX_ROUNDS * rounds
    else:
        settle, max_rounds = 0.0, 0
        rounds = min(rounds, scale.processes)
    count = 0
    while count < rounds or (count < max_rounds and _fastest(result).spent < settle):
        for name in _turns(result, count, scale):
            progress(f"{workload.name}  {name}  round {count + 1}")
            _turn(workload, space, contestants[workload.contestant(name)], name, result[name])
        space.clear_new()
        count += 1
    return result


def _fastest(result: Result) -> Entry:
    """Return the entry with the best time so far; any entry if none has a time."""
    return min(result.values(), key=lambda entry: math.inf if entry.best is None else entry.best)


def settled(workload: Workload, result: Result) -> bool:
    """Whether the workload needs no further rounds."""
    fastest = _fastest(result).best
    contenders = [entry for entry in result.values() if entry.best and fastest and entry.best < CONTENDER * fastest]
    reproduced = [sum(time <= SAME * min(entry.times) for time in entry.times) > 1 for entry in contenders]
    return not workload.repeated or all(reproduced)


def _turns(result: Result, count: int, scale: Scale) -> Iterable[str]:
    """Return the names of the contestants that run in this round, in order."""
    fastest = _fastest(result).best or 0.0
    names = []
    for name, entry in result.items():
        slow = entry.best is not None and entry.best > FAR_BEHIND * fastest and entry.spent > scale.budget
        if entry.status == "ok" and not (slow and len(entry.times) >= MIN_TURNS):
            names.append(name)
    start = count % max(1, len(names))
    return names[start:] + names[:start]


def _turn(workload: Workload, space: Workspace, contestant: Contestant, name: str, entry: Entry) -> None:
    try:
        with contestant.session():
            run = workload.prepare(space, contestant, name)
            os.sync()  # so that no contestant waits for the writes of another one
            gc.collect()
            if workload.fresh:
                _trim()
            begin = time.perf_counter()
            outcome = run()
            elapsed = time.perf_counter() - begin
            if not entry.times:
                workload.check(space, contestant, outcome)
    except Unsupported as reason:
        entry.status, entry.note = "-", str(reason)
    except WrongResult as reason:
        entry.status, entry.note = "wrong", str(reason)
    except Exception as error:  # the benchmark continues; the report shows the error, and the run fails at the end
        entry.status, entry.note = "error", f"{type(error).__name__}: {error}"[:300]
    else:
        entry.spent += elapsed
        entry.atomic = workload.writes and workload.is_atomic(contestant, name)
        amount = outcome[0] if workload.unit == "MiB" else elapsed / workload.operations(space, name)
        entry.times.append(amount)


def _trim() -> None:
    """Return freed memory to the system, if the C library supports that."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def failures(results: dict[str, Result]) -> list[str]:
    """Return a line for each entry with a wrong result or an error."""
    return [
        f"{workload}: {name}: {entry.status}: {entry.note}"
        for workload, result in results.items()
        for name, entry in result.items()
        if entry.status in ("wrong", "error")
    ]


def summary(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON."""
    members: dict[str, Any] = {"status": entry.status}
    if entry.best is not None:
        members |= {"best": entry.best, "times": entry.times, "atomic": entry.atomic}
    if entry.note:
        members["note"] = entry.note
    return members
