"""`python -m benchmarks.reencode`: change the chunk shape of an array on the workers of a dask cluster.

Chunks of full rows become chunks of full columns, both compressed by zstd. Every contestant does the same job with one
and with two single-threaded worker processes, in rotating order; the fastest round is the result. The new array is
compared with the source. The cluster is started before the first round, and starting it is not timed.

- `zarrlite`: `zarrlite.reencode(source, target, chunks=..., dask=client)`
- `zarr-python, rechunked`: `dask.array.from_zarr(source).rechunk(chunks).to_zarr(target)`
- `zarr-python, same blocks`: dask with the same blocks as zarrlite, each consisting of whole chunks of both arrays
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import dask
import dask.array
import numpy as np
import zarr

import zarrlite
from benchmarks.data import image
from zarrlite.tools.transfer.blocks import block_shape

LENGTH = 64  # number of rows in a source chunk, and of columns in a target chunk
WORKERS = (1, 2)
Job = Callable[[Any, str, str], object]


def with_zarrlite(client: Any, source: str, target: str) -> None:
    """Use `reencode`."""
    array = zarrlite.open_array(source, mode="r")
    zarrlite.reencode(array, target, chunks=(array.shape[0], LENGTH), dask=client)


def by_rechunking(client: Any, source: str, target: str) -> None:
    """Let dask split and join the chunks."""
    lazy = dask.array.from_zarr(source)  # type: ignore[no-untyped-call]
    with dask.config.set(scheduler=client):
        lazy = lazy.rechunk((lazy.shape[0], LENGTH))
        dask.array.store(lazy, _new_array(source, target), lock=False)


def with_same_blocks(client: Any, source: str, target: str) -> None:
    """Read and write blocks of whole chunks of both arrays."""
    array, made = zarr.open_array(source, mode="r"), _new_array(source, target)
    block = block_shape(array.shape, array.dtype.itemsize, made.chunks, array.chunks)
    with dask.config.set(scheduler=client):
        lazy: Any = dask.array.from_array(array, block)  # type: ignore[no-untyped-call]
        dask.array.store(lazy, made, lock=False)


def _new_array(source: str, target: str) -> Any:
    array = zarr.open_array(source, mode="r")
    return zarr.create_array(
        target,
        shape=array.shape,
        dtype=array.dtype,
        chunks=(array.shape[0], LENGTH),
        compressors=array.compressors,
    )


JOBS: dict[str, Job] = {
    "zarrlite": with_zarrlite,
    "zarr-python, rechunked": by_rechunking,
    "zarr-python, same blocks": with_same_blocks,
}


def measure(root: str, shape: tuple[int, int], rounds: int) -> dict[tuple[str, int], float]:
    """Return the best time of each contestant in seconds, keyed by its name and the number of workers."""
    import distributed

    cluster: Any = distributed.LocalCluster
    data = image(shape)
    source = f"{root}/source"
    zarrlite.create_array(source, data=data, chunks=(LENGTH, shape[1]), compressors=["zstd"])
    best: dict[tuple[str, int], float] = {}
    for workers in WORKERS:
        with (
            cluster(workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1") as machines,
            distributed.Client(machines, set_as_default=False) as client,  # type: ignore[no-untyped-call]
        ):
            names = list(JOBS)
            for turn in range(rounds):
                for name in names[turn % len(names) :] + names[: turn % len(names)]:
                    target = f"{root}/target"
                    start = time.perf_counter()
                    JOBS[name](client, source, target)
                    seconds = time.perf_counter() - start
                    best[name, workers] = min(seconds, best.get((name, workers), seconds))
                    if not np.array_equal(zarrlite.open_array(target, mode="r")[...], data):
                        raise ValueError(f"{name} has stored wrong elements")
                    shutil.rmtree(target)
    return best


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser("python -m benchmarks.reencode", description=__doc__.splitlines()[0])
    parser.add_argument("--edge", type=int, default=16384, metavar="N", help="rows and columns of the array (16384)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="turns of each contestant (3)")
    parser.add_argument("--dir", metavar="DIR", help="directory for temporary files")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # deprecation warnings of peers
    with tempfile.TemporaryDirectory(prefix="zarrlite-bench-", dir=options.dir) as root:
        best = measure(root, (options.edge, options.edge), options.rounds)
    mebibytes = options.edge**2 * 2 / 2**20
    print("| contestant | " + " | ".join(f"{n} worker{'s' * (n > 1)}" for n in WORKERS) + " |")
    print("|---" + "|--:" * len(WORKERS) + "|")
    for name in JOBS:
        cells = [f"{best[name, n]:.2f} s, {mebibytes / best[name, n]:.0f} MiB/s" for n in WORKERS]
        print(f"| {name} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
