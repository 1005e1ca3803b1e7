"""Readers race against writers in other processes: every read returns an old chunk or a new one, and none fails.

Rules
- For each kind of array, a writer continuously replaces, changes and erases chunks, while readers in their own
  processes read whole chunks, slices and single elements. A trial is one read.
- The values of a chunk identify the write they belong to, so that a mixture of two writes is always recognized. A write
  replaces the whole chunk, or sets its first and last elements to the same new number: a reader must see both of these
  changes or neither.
- A race ends after a given number of reads, not after a given time. Writers end after the readers.
- `EXEMPT` lists the documented exceptions for kinds that write into stored objects: during an append or a change in
  place, readers may find a shard without an index; during a change in place, they may also find chunks that mix two
  writes.
"""

from __future__ import annotations

import multiprocessing
import random
import shutil
import tempfile
from typing import Any

import numpy as np

import zarrlite
from tests.reliability.report import Figures
from tests.reliability.scenes import KINDS, SCENES
from zarrlite import ZarrliteError

LENGTH = 8  # elements of an array; its chunks or shards have 4 elements, inner chunks 2
READERS = 2
SAMPLE = 72_000  # reads
FULL = 200_000  # reads per kind of array
TIMEOUT = 3600  # seconds; after this time, a race fails instead of hanging
EXEMPT = {
    "shards appended": {"error"},
    "draft shards appended": {"error"},
    "shards in place": {"error", "mixed"},
    "draft shards in place": {"error", "mixed"},
}
POINT = np.dtype([("x", "<i4"), ("y", "<f8")])
FORK = multiprocessing.get_context("fork")


def numbers(generation: int) -> list[int]:
    """Return the values that one write stores in a chunk. They identify the write, and differ from the fill value."""
    return [n + 10 * (generation + 1) for n in range(4)]


def encode(name: str, values: list[int]) -> Any:
    """Convert numbers to elements of an array of this kind."""
    if name == "strings":
        return np.array([f"{n}," * 9 if n else "" for n in values], "T")
    if name == "structs":
        return np.array([(n, n / 2) for n in values], POINT)
    return np.array(values, "int32")


def decode(name: str, values: Any) -> list[int]:
    """Return elements as numbers. An element that mixes two writes becomes a number that is never written."""
    elements = np.atleast_1d(values).tolist()
    if name == "strings":
        parts = [set(text.split(",")[:-1]) or {"0"} for text in elements]
        return [int(part.pop()) if len(part) == 1 else 5 for part in parts]
    if name == "structs":
        return [x if y == x / 2 else 5 for x, y in elements]
    return list(elements)


def write(path: str, name: str, stop: Any, failed: Any, seed: int) -> None:
    """Replace chunks, change their first and last elements, or erase them, until the readers have ended."""
    random.seed(seed)
    array = zarrlite.open_array(path, mode="r+", path="a", options=KINDS[name].options)
    generation = 0
    try:
        while not stop.is_set():
            generation += 1
            chunk = 4 * random.randrange(2)
            way = random.randrange(8)
            if way == 0:
                array[chunk : chunk + 4] = encode(name, [0] * 4)
            elif way < 6:
                array[chunk : chunk + 4] = encode(name, numbers(generation))
            else:
                array.oindex[[chunk, chunk + 3]] = encode(name, [-generation] * 2)  # both in one write
    except Exception as error:
        failed.put(f"writer: {type(error).__name__}: {error}")


def is_of_one_write(values: Any) -> bool:
    """Whether one write, possibly followed by a change to the first and last elements, can leave a chunk like this."""
    first, second, third, last = values
    inside = (second, third) == (0, 0) or (third - second == 1 and second % 10 == 1)
    if first == last:  # the chunk was erased, or its first and last elements were changed
        return inside and first <= 0
    return inside and (first, last) == (second - 1, third + 1) and second != 0


def read(path: str, name: str, reads: int, seed: int, found: Any) -> None:
    """Read in three ways. Report the counts of outcomes and the first failure."""
    random.seed(seed)
    array = zarrlite.open_array(path, mode="r", path="a")
    outcomes = {"right": 0, "mixed": 0, "error": 0, "foreign": 0}
    example = ""
    for _ in range(reads):
        chunk = 4 * random.randrange(2)
        way = random.randrange(3)
        try:
            if way == 0:
                values = decode(name, array[chunk : chunk + 4])
                good = is_of_one_write(values)
            elif way == 1:  # across the boundary between two inner chunks
                values = decode(name, array[chunk + 1 : chunk + 3])
                good = values == [0, 0] or (values[1] - values[0] == 1 and values[0] % 10 == 1)
            else:
                values = decode(name, array[chunk + 1])
                good = values[0] == 0 or values[0] % 10 == 1
            outcome = "right" if good else "mixed"
            described = f"{outcome}: {values}"
        except Exception as error:
            outcome = "error" if isinstance(error, ZarrliteError) else "foreign"
            described = f"{type(error).__name__}: {error}"
        outcomes[outcome] += 1
        if outcome != "right" and outcome not in EXEMPT.get(name, ()):
            example = example or described
    found.put((outcomes, example))


def create(name: str, store: Any) -> Any:
    """Create an array of a kind, and store the values of a first write in it."""
    values = encode(name, [*numbers(0), *numbers(0)])
    array = zarrlite.create_array(store, name="a", shape=LENGTH, **{"dtype": values.dtype, **KINDS[name].create})
    array[:] = values
    return array


def race(name: str, reads: int, seed: int) -> tuple[dict[str, int], str]:
    """Let a writer and readers use one array concurrently. Return the counts of outcomes and the first failure."""
    path = tempfile.mkdtemp()
    try:
        create(name, path)
        stop, found, failed = FORK.Event(), FORK.Queue(), FORK.Queue()
        writer = FORK.Process(target=write, args=(path, name, stop, failed, seed))
        share = -(-reads // READERS)
        readers = [FORK.Process(target=read, args=(path, name, share, seed + i, found)) for i in range(1, READERS + 1)]
        for process in (writer, *readers):
            process.start()
        try:
            results = [found.get(timeout=TIMEOUT) for _ in readers]
        finally:
            stop.set()
            for process in (writer, *readers):
                process.join(TIMEOUT)
                process.kill()
        total = {outcome: sum(counts[outcome] for counts, _ in results) for outcome in results[0][0]}
        examples = [example for _, example in results if example]
        if not failed.empty():
            total["error"] += 1
            examples.insert(0, failed.get())
        return total, examples[0] if examples else ""
    finally:
        shutil.rmtree(path)


def run(trials: int | None, seed: int) -> Figures:
    """Run a race for each kind of array in `RACING` that has a `Scene`, with `trials` reads in total."""
    figures = Figures("races", seed)
    chosen = [name for name in RACING if any(scene.startswith(f"{name}: ") for scene in SCENES)]
    for name in chosen:
        run_kind(name, FULL if trials is None else max(READERS, trials // len(chosen)), seed, figures)
    return figures


def replay(spec: str) -> Figures:
    """Repeat a race. Processes are never scheduled the same way twice, so use many reads."""
    figures = Figures("races", 0)
    name, reads, seed = spec.split("|")
    return run_kind(name, int(reads), int(seed), figures)


def run_kind(name: str, reads: int, seed: int, figures: Figures | None = None) -> Figures:
    """Run a race for one kind of array."""
    figures = figures or Figures("races", seed)
    outcomes, example = race(name, reads, seed)
    spec = f"{name}|{reads}|{seed}"
    for outcome, count in outcomes.items():
        if outcome == "right" or outcome in EXEMPT.get(name, ()):
            figures.passed(name, outcome, count)
        else:
            for _ in range(count):
                figures.failed(name, outcome, spec, example)
    return figures


# kinds of arrays whose chunks or shards have 4 elements
RACING = [name for name in KINDS if (array := create(name, {})).shards or array.chunks == (4,)]
