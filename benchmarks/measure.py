"""Contestants take turns; the minimum of all rounds counts.

Rules
- In every round each contestant has one turn; who begins changes from round to round.
- The first turn of each is checked for equality. Its time counts too: a minimum cannot be spoilt.
- Before every turn the disk has written what was left to write, and files are emptied between rounds, not between
  turns: both slow down whoever comes next.
- What contestants have freed is given back to the system before full reads and writes, where the C library can do that:
  new memory costs more than the copy into it, and what one has left would be found by whoever comes next.
- Rounds go on until there are enough of them and the fastest has worked for a while: short turns are easily disturbed.
- Where the best turn of anybody near the fastest stands alone, there are more rounds later, when the others have had
  theirs: what was reached twice can be reached, whoever profits from it, and a machine is disturbed for minutes.
- Whoever has had two turns, used up its time and is more than three times slower than the fastest has no further one.
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

FAR_BEHIND = 3.0
LEAST_TURNS = 2  # before anybody is left behind: one may have been disturbed
MOST_ROUNDS = 8  # as a multiple of the rounds that are asked for
NEAR = 1.5
ALIKE = 1.02  # the two best turns of a contestant

Progress = Callable[[str], None]


@dataclass
class Entry:
    """What a contestant achieved in a workload."""

    times: list[float] = field(default_factory=list)  # of one operation, in seconds (or MiB)
    status: str = "ok"  # or why there is no time: "-" cannot do it, "absent", "wrong", "error"
    note: str = ""
    atomic: bool = False
    spent: float = 0.0

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
    """Run a workload with everybody who is there; what came out before is added to."""
    result = before or {name: Entry() for name in workload.entrants}
    for name, entry in result.items():
        if workload.contestant(name) not in contestants:
            entry.status = "absent"
    space.keep(workload.layouts)
    scale = space.scale
    settle, most = (scale.settle * workload.patience, MOST_ROUNDS * rounds) if workload.repeated else (0.0, 0)
    rounds = rounds if workload.repeated else min(rounds, scale.processes)
    count = 0
    while count < rounds or (count < most and _fastest(result).spent < settle):
        for name in _turns(result, count, scale):
            progress(f"{workload.name}  {name}  round {count + 1}")
            _turn(workload, space, contestants[workload.contestant(name)], name, result[name])
        space.clear_new()
        count += 1
    return result


def _fastest(result: Result) -> Entry:
    """Whoever is ahead so far; anybody, if nobody has a time."""
    return min(result.values(), key=lambda entry: math.inf if entry.best is None else entry.best)


def settled(workload: Workload, result: Result) -> bool:
    """Whether more rounds would tell nothing."""
    fastest = _fastest(result).best
    near = [entry.times for entry in result.values() if entry.best and fastest and entry.best < NEAR * fastest]
    return not workload.repeated or all(sum(time <= ALIKE * min(times) for time in times) > 1 for times in near)


def _turns(result: Result, count: int, scale: Scale) -> Iterable[str]:
    """Who runs in this round, in which order."""
    fastest = _fastest(result).best or 0.0
    names = []
    for name, entry in result.items():
        slow = entry.best is not None and entry.best > FAR_BEHIND * fastest and entry.spent > scale.budget
        if entry.status == "ok" and not (slow and len(entry.times) >= LEAST_TURNS):
            names.append(name)
    start = count % max(1, len(names))
    return names[start:] + names[:start]


def _turn(workload: Workload, space: Workspace, contestant: Contestant, name: str, entry: Entry) -> None:
    try:
        with contestant.session():
            run = workload.prepare(space, contestant, name)
            os.sync()  # nobody waits for what others have written
            gc.collect()
            if workload.fresh:
                _trim()
            begin = time.perf_counter()
            found = run()
            taken = time.perf_counter() - begin
            if not entry.times:
                workload.check(space, contestant, found)
    except Unsupported as reason:
        entry.status, entry.note = "-", str(reason)
    except WrongResult as reason:
        entry.status, entry.note = "wrong", str(reason)
    except Exception as error:  # a benchmark goes on; the report shows it, and the run fails in the end
        entry.status, entry.note = "error", f"{type(error).__name__}: {error}"[:300]
    else:
        entry.spent += taken
        entry.atomic = workload.writes and workload.is_atomic(contestant, name)
        amount = found[0] if workload.unit == "MiB" else taken / workload.operations(space, name)
        entry.times.append(amount)


def _trim() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def failures(results: dict[str, Result]) -> list[str]:
    """What went wrong, a line each."""
    return [
        f"{workload}: {name}: {entry.status}: {entry.note}"
        for workload, result in results.items()
        for name, entry in result.items()
        if entry.status in ("wrong", "error")
    ]


def summary(entry: Entry) -> dict[str, Any]:
    """An entry as JSON."""
    shown: dict[str, Any] = {"status": entry.status}
    if entry.best is not None:
        shown |= {"best": entry.best, "times": entry.times, "atomic": entry.atomic}
    if entry.note:
        shown["note"] = entry.note
    return shown
