"""`python -m tests.reliability.peers [--rounds N] [--reads N] [--kills N]`: the same trials on zarrlite and its peers.

Prints a Markdown table: updates that are lost when four processes write, reads that return values from two writes,
files that killed writers leave, and the memory that it takes to read bombs. Every process is a new interpreter, because
neither peer supports a fork after its first use.

Rules
- The libraries get the same arrays, with their default settings, in a local directory.
- A trial ends after a given number of operations, not after a given time. A writer is killed after a given number of
  complete writes, during the next one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.reliability.bombs import array as document
from tests.reliability.bombs import rle_frame, sharding

WORKERS = 4
LENGTH = 4096  # elements of the array, which is one chunk, or one shard of 8 chunks
LIBRARIES = ("zarrlite", "zarr-python", "tensorstore")
TIMEOUT = 900  # seconds; after this time, a trial fails instead of hanging
SPAWN = multiprocessing.get_context("spawn")
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}


# the libraries


def create(path: str, is_sharded: bool) -> None:
    """Create an array of one chunk or one shard, identically for all libraries."""
    codecs = (
        [sharding(LENGTH // 8, codecs=[BYTES, ZSTD], index_codecs=[BYTES, {"name": "crc32c"}])]
        if is_sharded
        else [BYTES]
    )
    os.makedirs(path)
    Path(path, "zarr.json").write_bytes(document(codecs, (LENGTH,), data_type="int32", attributes={}))


def open_array(library: str, path: str) -> Any:
    """Open an array with a library."""
    if library == "zarrlite":
        import zarrlite

        return zarrlite.open_array(path, mode="r+")
    if library == "zarr-python":
        import zarr

        return zarr.open_array(path, mode="r+")
    import tensorstore

    store = {"driver": "file", "path": path}
    return tensorstore.open({"driver": "zarr3", "kvstore": store}, open=True).result()


def read(array: Any, index: slice) -> Any:
    """Read part of an array with any library."""
    found = array[index]
    return np.asarray(found.read().result() if hasattr(found, "read") else found)


# lost updates


def update(library: str, path: str, worker: int, rounds: int, barrier: Any, lost: Any) -> None:
    """Write one worker's elements in each round. The first worker counts the rounds in which an update is lost."""
    array = open_array(library, path)
    for value in range(1, rounds + 1):
        barrier.wait(TIMEOUT)
        with contextlib.suppress(Exception):  # a failed write is counted below as lost
            array[worker::WORKERS] = value
        barrier.wait(TIMEOUT)
        if worker == 0:
            try:
                is_lost = bool((read(open_array(library, path), slice(None)) != value).any())
            except Exception:
                is_lost = True
            lost.value += is_lost
        barrier.wait(TIMEOUT)


def set_attributes(library: str, path: str, worker: int, rounds: int, barrier: Any, lost: Any) -> None:
    """Set an attribute in each round. The first worker counts the rounds in which an attribute is lost."""
    array = open_array(library, path)
    for value in range(1, rounds + 1):
        barrier.wait(TIMEOUT)
        with contextlib.suppress(Exception):
            array.attrs[f"{worker} {value}"] = value
        barrier.wait(TIMEOUT)
        if worker == 0:
            stored = json.loads(Path(path, "zarr.json").read_bytes() or b"{}").get("attributes", {})
            lost.value += any(f"{i} {value}" not in stored for i in range(WORKERS))
        barrier.wait(TIMEOUT)


def count_lost(library: str, work: Callable[..., None], rounds: int, is_sharded: bool = False) -> str:
    """Return the number of rounds in which the update by at least one of four processes was lost."""
    with directory() as path:
        create(path, is_sharded)
        barrier, lost = SPAWN.Barrier(WORKERS), SPAWN.Value("i", 0)
        run_all([(work, (library, path, i, rounds, barrier, lost)) for i in range(WORKERS)])
        return f"{lost.value} of {rounds}"


# mixed reads


def keep_writing(library: str, path: str, stop: Any) -> None:
    array = open_array(library, path)
    value = 1
    while not stop.is_set():
        value = value % 10**6 + 1
        array[:] = np.full(LENGTH, value, "int32")


def keep_reading(library: str, path: str, reads: int, stop: Any, counts: Any) -> None:
    """Count reads that return values from two writes, and reads that fail."""
    try:
        array = open_array(library, path)
        for _ in range(reads):
            try:
                values = read(array, slice(100, LENGTH - 100))
                counts[0] += bool((values != values[0]).any())
            except Exception:
                counts[1] += 1
    finally:
        stop.set()


def count_mixed(library: str, reads: int, is_sharded: bool) -> str:
    """Return how many reads during writes return values from two writes, and how many fail."""
    with directory() as path:
        create(path, is_sharded)
        open_array(library, path)[:] = np.full(LENGTH, 1, "int32")
        stop, counts = SPAWN.Event(), SPAWN.Array("i", 2)
        jobs = [(keep_writing, (library, path, stop)), (keep_reading, (library, path, reads, stop, counts))]
        run_all(jobs)
        return f"{counts[0]} mixed, {counts[1]} errors of {reads:,}"


# killed writers


def write_until_killed(library: str, path: str) -> None:
    """Write values endlessly, and print a line before each write."""
    array = open_array(library, path)
    value = 0
    while True:
        value += 1
        os.write(1, b"\n")
        array[:] = np.full(LENGTH, value, "int32")


def count_leftovers(library: str, kills: int, is_sharded: bool) -> str:
    """Return how many killed writers leave additional files, and how many leave a damaged chunk."""
    leftovers = unreadable = 0
    with directory() as path:
        create(path, is_sharded)
        for kill in range(kills):
            command = [sys.executable, "-c", KILLED, library, path]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
                assert writer.stdout is not None
                for _ in range(3 + kill % 7):
                    writer.stdout.readline()
                writer.send_signal(signal.SIGKILL)
            files = {str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file()}
            leftovers += bool(files - {"zarr.json", "c/0"})
            for name in files - {"zarr.json", "c/0"}:
                os.remove(os.path.join(path, name))
            try:
                values = read(open_array(library, path), slice(None))
                unreadable += bool((values != values[0]).any())
            except Exception:
                unreadable += 1
    return f"{leftovers} with other files, {unreadable} damaged of {kills}"


KILLED = """
import sys
from tests.reliability.peers import write_until_killed
write_until_killed(*sys.argv[1:])
"""


# bombs

GIB = 2**30


def bombs() -> dict[str, tuple[bytes, bytes]]:
    """Return the document and the chunk of each bomb."""
    frame = rle_frame(2 * GIB - 2**20)
    index = struct.pack("<QQ", 0, len(frame)) * 8
    return {
        "zstd: 2 GiB in a chunk of 32 bytes": (document([BYTES, ZSTD], (8,), data_type="int32"), frame),
        "the same as an inner chunk": (
            document([sharding(1, codecs=[BYTES, ZSTD])], (8,), data_type="int32"),
            frame + index,
        ),
        "one element of a chunk of 1.5 GiB": (
            document([BYTES, ZSTD], (3 * GIB // 8,), data_type="int32"),
            rle_frame(3 * GIB // 2),
        ),
    }


BOMB = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30,) * 2)
import numpy
from tests.reliability.peers import open_array, read
library, path, warm = sys.argv[1:]
read(open_array(library, warm), slice(0, 1))  # loads everything that is loaded late
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read(open_array(library, path), slice(0, 1))
    outcome = "read"
except Exception as error:
    outcome = "refused"
print(outcome, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def weigh(library: str, values: tuple[bytes, bytes]) -> str:
    """Return the outcome of reading one element of a bomb, and the memory used."""
    with directory() as path, directory() as warm:
        os.makedirs(os.path.join(path, "c"))
        Path(path, "zarr.json").write_bytes(values[0])
        Path(path, "c", "0").write_bytes(values[1])
        create(warm, is_sharded=True)
        open_array(library, warm)[:] = np.full(LENGTH, 1, "int32")
        command = [sys.executable, "-c", BOMB, library, path, warm]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        outcome, mebibytes = done.stdout.split() if done.stdout else ("killed", "?")
        return f"{outcome}, {mebibytes} MiB"


# running


@contextlib.contextmanager
def directory() -> Iterator[str]:
    base = tempfile.mkdtemp()
    try:
        yield os.path.join(base, "a.zarr")
    finally:
        shutil.rmtree(base)


def run_all(jobs: list[tuple[Callable[..., None], tuple[Any, ...]]]) -> None:
    """Run each job in its own process. All of them must succeed."""
    processes = [SPAWN.Process(target=work, args=arguments) for work, arguments in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join(TIMEOUT)
        process.kill()
    assert [process.exitcode for process in processes] == [0] * len(processes)


def table(rounds: int, reads: int, kills: int) -> str:
    """Run all trials and return the table."""
    rows: dict[str, Callable[[str], str]] = {
        "rounds with lost updates, 4 processes, one chunk": lambda name: count_lost(name, update, rounds),
        "rounds with lost updates, 4 processes, one shard": lambda name: count_lost(
            name, update, rounds, is_sharded=True
        ),
        "rounds with lost updates, 4 processes, attributes": lambda name: (
            "has no attributes" if name == "tensorstore" else count_lost(name, set_attributes, rounds)
        ),
        "reads during writes, one chunk": lambda name: count_mixed(name, reads, is_sharded=False),
        "reads during writes, one shard": lambda name: count_mixed(name, reads, is_sharded=True),
        "writers killed, one chunk": lambda name: count_leftovers(name, kills, is_sharded=False),
        "writers killed, one shard": lambda name: count_leftovers(name, kills, is_sharded=True),
    }
    for bomb, values in bombs().items():
        rows[f"bomb, {bomb}"] = lambda name, values=values: weigh(name, values)  # type: ignore[misc]
    lines = [f"| trial | {' | '.join(LIBRARIES)} |", "|---|" + "---|" * len(LIBRARIES)]
    for title, trial in rows.items():
        lines.append(f"| {title} | {' | '.join(trial(library) for library in LIBRARIES)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability.peers")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--reads", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=20)
    print(table(**vars(parser.parse_args(arguments))))


if __name__ == "__main__":
    main(sys.argv[1:])
