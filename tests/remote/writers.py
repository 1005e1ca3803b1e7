"""Programs that write to a store, for the tests to start and to kill: `python writers.py NAME ARGUMENTS`."""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import zarrlite
from zarrlite import ObjectStore, StoreError


def update_shards(options: dict[str, Any], first: int, threads: int, updates: int) -> None:
    """Update distinct inner chunks of one shard: each thread writes 1, 2, ... to one of them.

    Each line of the input is the URL of an array. When the updates of an array are done, a line is printed.
    """
    with ThreadPoolExecutor(threads) as pool:
        for url in sys.stdin:
            array = zarrlite.open_array(url.strip(), mode="r+", storage_options=options)

            def work(number: int, array: Any = array) -> None:
                for value in range(1, updates + 1):
                    array[number] = value

            list(pool.map(work, range(first, first + threads)))
            print("done", flush=True)


def write_until_killed(url: str, options: dict[str, Any], row: int) -> None:
    """Write 1, 2, ... to an inner chunk; print each number when it has been acknowledged."""
    array = zarrlite.open_array(url, mode="r+", storage_options=options)
    for value in range(1, 10**6):
        while True:
            try:
                array[row] = value
                break
            except StoreError:
                time.sleep(0.05)
        print(value, flush=True)


def write_parts_until_killed(url: str, options: dict[str, Any]) -> None:
    """Write 1, 2, ... to a chunk that is split into parts; print each number when it has been acknowledged."""
    array = zarrlite.open_array(url, mode="r+", storage_options=options)
    for value in range(int(array[0]) + 1, 10**6):
        if value % 2:
            array[...] = value
        else:
            array[: array.size // 2] = value
            array[array.size // 2 :] = value
        print(value, flush=True)


def create_node(url: str, options: dict[str, Any], name: str) -> None:
    """Create a node, and print whether this process created it."""
    try:
        zarrlite.create_group(ObjectStore(url, **options), path="node", attributes={"by": name})
        print("created")
    except zarrlite.NodeExistsError:
        print("exists")


if __name__ == "__main__":
    globals()[sys.argv[1]](*map(json.loads, sys.argv[2:]))
