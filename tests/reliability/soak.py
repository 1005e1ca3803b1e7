"""A soak test: two processes work on shared arrays for a long time, without using more and more memory or descriptors.

Rules
- Two processes perform random operations on arrays of all kinds in one store, each on its own elements, and compare
  everything that they read with a model. A trial is one operation.
- The median memory use in the second quarter of the checkpoints is compared with that in the last quarter. It may grow
  by a few percent, plus a few MiB for the allocators. The number of descriptors must not change. At the end, fsck finds
  no problem.
- The length of a soak test is a number of operations, not a time.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import shutil
import statistics
import tempfile
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import zarrlite
from tests.reliability.report import Figures
from tests.reliability.scenes import KINDS
from zarrlite.layout import check
from zarrlite.tools.layout import leftovers

SAMPLE = 3000  # operations
FULL = 400_000  # operations
WORKERS = 2
CHECKPOINTS = 40  # checkpoints per process
LENGTH = 32  # elements of an array; each of the two workers owns every other element
GROWTH = (1.05, 3 * 2**20)  # memory may grow by this factor, plus this number of bytes
TIMEOUT = 6 * 3600  # seconds; after this time, a soak test fails instead of hanging
FORK = multiprocessing.get_context("fork")
# kinds that write into stored objects are left out, because that disturbs readers, as documented
SOAKED = {name: kind for name, kind in KINDS.items() if kind.atomic and name not in ("strings", "structs")}


class Worker:
    """One of the two processes: its open arrays, and the expected values of its elements."""

    def __init__(self, root: str, number: int, seed: int) -> None:
        self.root = root
        self.number = number
        self.random = random.Random(seed * WORKERS + number)
        self.own = np.arange(number, LENGTH, WORKERS)
        self.models = {name: np.zeros(len(self.own), "int32") for name in SOAKED}
        self.arrays = {name: self.open(name) for name in SOAKED}

    def open(self, name: str) -> Any:
        return zarrlite.open_array(self.root, mode="r+", path=f"shared/{name}", options=SOAKED[name].options)

    def step(self) -> None:
        """Perform one operation."""
        name = self.random.choice(list(SOAKED))
        operation = self.random.choices(
            [self.write, self.erase, self.read, self.reopen, self.set_attribute, self.use_own_node],
            [8, 2, 8, 1, 1, 1],
        )[0]
        operation(name)

    def write(self, name: str) -> None:
        chosen = self.random.sample(range(len(self.own)), self.random.randint(1, 6))
        value = self.random.randint(1, 10**6)
        self.models[name][chosen] = value
        self.arrays[name].vindex[self.own[chosen]] = value

    def erase(self, name: str) -> None:
        self.models[name][:] = 0
        self.arrays[name][self.number :: WORKERS] = 0

    def read(self, name: str) -> None:
        found = self.arrays[name][...][self.number :: WORKERS]
        assert found.tolist() == self.models[name].tolist(), f"{name}: {found} is not {self.models[name]}"
        element = self.random.randrange(len(self.own))
        assert self.arrays[name][int(self.own[element])] == self.models[name][element], name

    def reopen(self, name: str) -> None:
        self.arrays[name] = self.open(name)

    def set_attribute(self, name: str) -> None:
        key, value = f"worker {self.number}", self.random.randint(0, 10**6)
        self.arrays[name].attrs[key] = value
        assert self.open(name).attrs[key] == value

    def use_own_node(self, name: str) -> None:
        """Create, append to, shrink, copy and delete an array that only this worker uses."""
        group = zarrlite.open_group(self.root, mode="r+", path=f"own {self.number}")
        kind = SOAKED[name]
        array = group.create_array("a", shape=8, dtype="int32", overwrite=True, **kind.create)
        array[...] = np.arange(1, 9)
        array.append(np.arange(9, 13, dtype="int32"))
        array.resize(6)
        copied = zarrlite.copy(array, group.store, f"own {self.number}/b", overwrite=True)
        assert copied[...].tolist() == array[...].tolist() == [1, 2, 3, 4, 5, 6], name
        for member in ("a", "b"):
            del group[member]


def work(root: str, number: int, operations: int, seed: int, answers: Any) -> None:
    """Perform operations as one of the processes, and report memory use and open descriptors at each checkpoint."""
    series: list[tuple[int, int]] = []
    failures: dict[str, int] = {}
    worker = Worker(root, number, seed)
    for i in range(operations):
        try:
            worker.step()
        except Exception as error:
            operation = traceback.extract_tb(error.__traceback__)[2].name  # the worker's method that `step` called
            text = f"{operation}: {type(error).__name__}: {error}"
            failures[text] = failures.get(text, 0) + 1
        if i % max(1, operations // CHECKPOINTS) == 0:
            gc.collect()
            series.append((_resident(), len(os.listdir("/proc/self/fd"))))
    answers.put((number, series, failures))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(trials: int | None, seed: int) -> Figures:
    """Run a soak of this many operations."""
    figures = Figures("soak", seed)
    _soak(figures, FULL if trials is None else trials, seed)
    return figures


def replay(spec: str) -> Figures:
    """Repeat a soak. Processes are never scheduled the same way twice."""
    figures = Figures("soak", 0)
    operations, seed = map(int, spec.split())
    _soak(figures, operations, seed)
    return figures


def _soak(figures: Figures, operations: int, seed: int) -> None:
    root = tempfile.mkdtemp()
    spec = f"{operations} {seed}"
    try:
        store = zarrlite.LocalStore(root)
        for name, kind in SOAKED.items():
            zarrlite.create_array(store, name=f"shared/{name}", shape=LENGTH, dtype="int32", **kind.create)
        for number in range(WORKERS):
            zarrlite.create_group(store, path=f"own {number}")
        answers = FORK.Queue()
        share = operations // WORKERS
        processes = [FORK.Process(target=work, args=(root, i, share, seed, answers)) for i in range(WORKERS)]
        for process in processes:
            process.start()
        try:
            results = [answers.get(timeout=TIMEOUT) for _ in processes]
        finally:
            for process in processes:
                process.join(TIMEOUT)
                process.kill()
        for number, series, failures in sorted(results):
            figures.passed("operations", "done", share - sum(failures.values()))
            for text, count in failures.items():
                for _ in range(count):
                    figures.failed("operations", "failed", spec, text)
            _compare(figures, number, series, spec)
        problems = [*check(store), *leftovers.find(store, "")]
        _count(figures, "the store at the end", "clean", not problems, spec, str(problems[:3]))
    finally:
        shutil.rmtree(root)


def _compare(figures: Figures, number: int, series: list[tuple[int, int]], spec: str) -> None:
    """Compare memory use in the second quarter with that in the last one, and check the number of descriptors."""
    quarter = len(series) // 4
    early, late = series[quarter : 2 * quarter], series[-quarter:]
    first, last = (int(statistics.median(memory for memory, _ in part)) for part in (early, late))
    described = f"worker {number}: {first / 2**20:.1f} -> {last / 2**20:.1f} MiB"
    figures.notes.append(described)
    _count(figures, "memory", "flat", last <= first * GROWTH[0] + GROWTH[1], spec, described)
    descriptors = {count for _, count in series}
    _count(figures, "descriptors", "constant", len(descriptors) == 1, spec, f"worker {number}: {descriptors}")


def _count(figures: Figures, scene: str, outcome: str, good: bool, spec: str, description: str) -> None:
    if good:
        figures.passed(scene, outcome)
    else:
        figures.failed(scene, f"not {outcome}", spec, description)
