"""Workloads that run in separate processes: cold starts and peak memory.

Rules
- Python caches bytecode in the directory of the run. The first start of each process, which fills this cache, is not
  timed.
- Peak memory is the memory that an operation needs in addition to the memory that the process used before and to the
  array that the operation returns.

`python -m benchmarks.processes CONTESTANT read|write PATH IMAGE` is the command whose memory is measured.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from benchmarks.contestants import Contestant, load
from benchmarks.workloads import ArrayWorkload, Run, Workload, WrongResult, elements, same
from benchmarks.workspace import Workspace

ROOT = Path(__file__).parents[1]
STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


def python(space: Workspace, *arguments: str) -> str:
    """Run Python, and return its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = f"{space.root}/pycache"
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        reason = done.stderr.strip().splitlines() or [f"it printed nothing, and its exit code is {done.returncode}"]
        raise RuntimeError(f"a process failed: {reason[-1]}")
    return done.stdout


class ColdImport(Workload):
    """Run `python -c` with code that only imports the library; the reference, `limit`, imports numpy."""

    patience = 3.0

    def code(self, space: Workspace, contestant: Contestant) -> str:
        return contestant.cold_import

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        code = self.code(space, contestant)
        if (self.name, entrant) not in space.started:
            space.started.add((self.name, entrant))
            python(space, "-c", code)
        return lambda: python(space, "-c", code)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        if result:
            raise WrongResult(f"printed {result!r}")


@dataclass(frozen=True)
class ColdRead(ColdImport, ArrayWorkload):
    """Run `python -c` with code that opens an array and prints one element."""

    def code(self, space: Workspace, contestant: Contestant) -> str:
        i, j = elements(space, self.layout)[0]
        return contestant.cold_read.format(path=space.array(self.layout), i=i, j=j)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        same(int(result), space.data[elements(space, self.layout)[0]])


@dataclass(frozen=True)
class PeakMemory(ArrayWorkload):
    """The peak memory of a full read or write; a run returns MiB instead of a time."""

    operation: str = "read"
    unit = "MiB"
    repeated = False

    @property
    def writes(self) -> bool:  # type: ignore[override]
        return self.operation == "write"

    def prepare(self, space: Workspace, contestant: Contestant, entrant: str) -> Run:
        path = space.array(self.layout) if self.operation == "read" else space.empty(self.layout)
        arguments = (contestant.name, self.operation, path, space.data_file)
        return lambda: (float(python(space, "-m", "benchmarks.processes", *arguments)), path)

    def check(self, space: Workspace, contestant: Contestant, result: Any) -> None:
        if self.operation == "write":
            same(space.content(self.layout, result[1]), space.data)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return _status("VmRSS")


def peak() -> int:
    """Return the peak resident memory in bytes, since `forget_peak` or the start of the process."""
    return _status("VmHWM")


def forget_peak() -> None:
    """Reset the peak (Linux only). On systems other than Linux, the peak covers the whole life of the process."""
    if RESET.exists():
        RESET.write_text("5")


def _status(name: str) -> int:
    # ru_maxrss is only a fallback, because a child process inherits its parent's value
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def measure(contestant: Contestant, operation: str, place: Any, image: str) -> float:
    """Return the MiB of memory that an operation needs beyond the array itself."""
    with contestant.session():
        array = contestant.open(place, write=operation == "write")
        data = np.load(image)
        if operation == "read":
            expected = data.copy()
            del data
        forget_peak()
        before = resident()
        if operation == "read":
            result = contestant.get(array, [...])[0]
            needed = peak() - before - int(result.nbytes)
            same(result, expected)
        else:
            contestant.put(array, [...], [data])
            needed = peak() - before
    return needed / 2**20


def print_and_exit(amount: float) -> NoReturn:
    """Print a number and exit immediately, because threads that peers leave running can crash a normal exit."""
    print(amount, flush=True)
    os._exit(0)


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    print_and_exit(measure(load(name), *arguments))
