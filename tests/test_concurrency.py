"""Concurrent writers of one chunk lose nothing; a killed writer leaves the old value or the new one.

Workers write different elements of the same chunks. No test depends on timing: barriers separate the rounds, and
writers are killed after a counted number of function calls and returns.
"""

from __future__ import annotations

import multiprocessing
import operator
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import Array, LocalStore, MemoryStore, threads

ROUNDS = 50
SIZE = 64
LAYOUTS: dict[str, dict[str, Any]] = {
    "one chunk": {"chunks": SIZE},
    "one shard": {"chunks": 8, "shards": (SIZE,)},
}
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
TIMEOUT = 120  # seconds; after this time, a test fails instead of hanging


@pytest.fixture(autouse=True)
def _four_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use several threads even on a machine with one core."""
    monkeypatch.setattr(threads, "workers", lambda: 4)


def take_part(array: Array, worker: int, workers: int, barrier: Any) -> None:
    """Write as one of several workers, and check after each round that the values of all workers are stored."""
    own = list(range(worker, SIZE, workers))
    try:
        for value in range(1, ROUNDS + 1):
            barrier.wait(TIMEOUT)
            array[worker :: 2 * workers] = value
            array.vindex[own[1::2]] = value
            barrier.wait(TIMEOUT)
            if worker == 0:
                assert array[...].tolist() == [value] * SIZE
    except BaseException:
        barrier.abort()  # the others must not wait for this worker
        raise


def run_threads(work: Callable[[int], None]) -> None:
    """Run sixteen threads. If some fail, raise one of their errors: a BrokenBarrierError only if there is no other."""
    with ThreadPoolExecutor(16) as pool:
        errors = [future.exception() for future in [pool.submit(work, i) for i in range(16)]]
    for error in sorted(filter(None, errors), key=lambda e: isinstance(e, threading.BrokenBarrierError)):
        raise error


# Threads


@layouts
@pytest.mark.parametrize("kind", ["memory", "local", "dict"])
def test_sixteen_threads_with_one_array_lose_nothing(tmp_path: Path, kind: str, layout: dict[str, Any]) -> None:
    store: Any = {"memory": MemoryStore(), "local": LocalStore(tmp_path), "dict": {}}[kind]
    array = zarrlite.create_array(store, shape=SIZE, dtype="int32", **layout)
    barrier = threading.Barrier(16)
    run_threads(lambda i: take_part(array, i, 16, barrier))


@pytest.mark.parametrize("kind", ["memory", "local", "dict"])
def test_sixteen_threads_with_an_array_each_lose_nothing(tmp_path: Path, kind: str) -> None:
    store: Any = {"memory": MemoryStore(), "local": str(tmp_path), "dict": {}}[kind]
    zarrlite.create_array(store, shape=SIZE, dtype="int32", chunks=SIZE)
    barrier = threading.Barrier(16)

    run_threads(lambda i: take_part(zarrlite.open_array(store, mode="r+"), i, 16, barrier))


def test_threads_that_set_attributes_lose_nothing(tmp_path: Path) -> None:
    for store in (MemoryStore(), LocalStore(tmp_path)):
        group = zarrlite.create_group(store)

        def work(worker: int, group: Any = group) -> None:
            for i in range(10):
                group.attrs[f"{worker} {i}"] = i

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(16)))
        assert len(zarrlite.open_group(store, mode="r").attrs) == 160


def test_large_reads_and_writes_from_many_threads_share_the_pool(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, shape=(16, 2**17), dtype="int32", chunks=(16, 2**14))

    def work(row: int) -> None:
        array[row] = row + 1
        assert set(array[row]) == {row + 1}

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert (array[...] == np.arange(1, 17)[:, None]).all()


# Processes


def run_forked(work: Callable[..., None], *arguments: tuple[Any, ...]) -> None:
    """Run one forked process for each tuple of arguments. All of them must succeed."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work, args=args) for args in arguments]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join(TIMEOUT)
        assert [process.exitcode for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()
            process.join()


@forks
@layouts
def test_four_forked_processes_lose_nothing(tmp_path: Path, layout: dict[str, Any]) -> None:
    array = zarrlite.create_array(tmp_path, shape=SIZE, dtype="int32", **layout)
    barrier = multiprocessing.get_context("fork").Barrier(4)
    run_forked(take_part, *[(array, i, 4, barrier) for i in range(4)])
    assert array[...].tolist() == [ROUNDS] * SIZE


@pytest.fixture(scope="module")
def spawned() -> Iterator[Any]:
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        yield pool


@layouts
def test_four_spawned_processes_lose_nothing(tmp_path: Path, spawned: Any, layout: dict[str, Any]) -> None:
    # every job receives a pickled copy of the handle, and writes some elements of the array
    array = zarrlite.create_array(tmp_path, shape=SIZE, dtype="int32", **layout)
    for value in range(1, ROUNDS + 1):
        jobs = [(array, slice(i, None, 8), value) for i in range(8)]
        spawned.starmap(operator.setitem, jobs, chunksize=1)
        assert array[...].tolist() == [value] * SIZE


def test_groups_and_arrays_can_be_sent_to_spawned_processes_and_back(tmp_path: Path, spawned: Any) -> None:
    group = zarrlite.create_group(tmp_path)
    group["a"] = np.arange(10)
    (array,) = spawned.starmap(operator.getitem, [(group, "a")])
    assert repr(array) == repr(group["a"])
    assert array[...].tolist() == list(range(10))
    (read,) = spawned.starmap(operator.getitem, [(array, slice(2, 4))])
    assert read.tolist() == [2, 3]
    with pytest.raises(zarrlite.NodeNotFoundError, match="no array or group at 'nope'"):
        spawned.starmap(operator.getitem, [(group, "nope")])


def test_four_spawned_processes_that_set_attributes_lose_nothing(tmp_path: Path, spawned: Any) -> None:
    array = zarrlite.create_array(tmp_path, shape=1, dtype="u1")
    jobs = [(array.attrs, f"{i}", {"from": i}) for i in range(100)]
    spawned.starmap(operator.setitem, jobs, chunksize=1)
    assert zarrlite.open_array(tmp_path, mode="r").attrs == {f"{i}": {"from": i} for i in range(100)}


@forks
def test_four_forked_processes_that_set_attributes_lose_nothing(tmp_path: Path) -> None:
    group = zarrlite.create_group(tmp_path)

    def work(worker: int) -> None:
        for i in range(25):
            group.attrs[f"{worker} {i}"] = i

    run_forked(work, *[(i,) for i in range(4)])
    assert len(zarrlite.open_group(tmp_path, mode="r").attrs) == 100


@forks
def test_four_processes_can_create_the_same_groups_at_once(tmp_path: Path) -> None:
    group = zarrlite.create_group(tmp_path, attributes={"kept": 1})
    barrier = multiprocessing.get_context("fork").Barrier(4)

    def work(worker: int) -> None:
        for i in range(20):
            barrier.wait(TIMEOUT)
            group.create_array(f"outer {i}/inner/{worker}", data=[worker])

    run_forked(work, *[(i,) for i in range(4)])
    assert group.nmembers(None) == 20 * (1 + 1 + 4)
    assert zarrlite.open_group(tmp_path).attrs == {"kept": 1}


# Forks


@forks
@pytest.mark.parametrize("is_used", [False, True], ids=["unused pool", "used pool"])
def test_arrays_work_after_a_fork(tmp_path: Path, is_used: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_pool", None)
    data = np.arange(2**20, dtype="int32")
    array = zarrlite.create_array(tmp_path, data=data if is_used else None, shape=2**20, dtype="int32", chunks=2**14)
    if is_used:
        assert threads._pool is not None
    else:
        array[:10] = range(10)
        assert threads._pool is None

    def work() -> None:
        assert array[...].sum() == (data.sum() if is_used else 45)
        array[...] = 7

    run_forked(work, ())
    assert set(np.unique(array[...])) == {7}


@forks
@pytest.mark.parametrize("kind", ["memory", "local"])
def test_a_child_forked_while_other_threads_write_does_not_wait_for_their_locks(tmp_path: Path, kind: str) -> None:
    store: Any = LocalStore(tmp_path) if kind == "local" else MemoryStore()
    array = zarrlite.create_array(store, shape=SIZE, dtype="int32", chunks=SIZE)
    stop = threading.Event()

    def work(i: int) -> None:
        array[i] = i
        assert array[i] == i
        array.attrs[f"{i}"] = i

    def keep_writing(i: int) -> None:
        while not stop.is_set():
            array[i] = -1
            array.attrs[f"thread {i}"] = i

    writers = [threading.Thread(target=keep_writing, args=(i,)) for i in (SIZE - 1, SIZE - 2)]
    for thread in writers:
        thread.start()
    try:
        for i in range(1, 31):
            run_forked(work, (i,))
    finally:
        stop.set()
        for thread in writers:
            thread.join(TIMEOUT)
    assert array[SIZE - 2 :].tolist() == [-1, -1]
    if kind == "local":
        assert array[1:31].tolist() == list(range(1, 31))
        assert {f"{i}" for i in range(1, 31)} <= set(zarrlite.open_array(store).attrs)


# Kills


class CountSteps:
    """Count the function calls and returns of some work, and call `do` at one of them."""

    def __init__(self, at: int = -1, do: Callable[[], None] = lambda: None) -> None:
        self.count = 0
        self.at = at
        self.do = do

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        self.count += 1
        if self.count == self.at:
            self.do()

    def run(self, work: Callable[[], None]) -> int:
        sys.setprofile(self)
        try:
            work()
        finally:
            sys.setprofile(None)
        return self.count


def killed_at(step: int, work: Callable[[], None]) -> bool:
    """Do some work in a forked process that is killed at a step. Returns False if it finishes before that step."""
    child = os.fork()
    if child == 0:
        try:
            CountSteps(step, lambda: os.kill(os.getpid(), signal.SIGKILL)).run(work)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def assign(target: Any, index: Any, value: Any) -> None:
    target[index] = value


KILLED: dict[str, tuple[dict[str, Any], Any]] = {
    "part of a chunk": ({"chunks": SIZE}, slice(10, 30)),
    "single elements of a chunk": ({"chunks": SIZE}, [1, 5, 60]),
    "a whole chunk": ({"chunks": SIZE}, slice(None)),
    "part of a shard": ({"chunks": 8, "shards": (SIZE,)}, slice(10, 30)),
    "several chunks": ({"chunks": 16}, slice(10, 60)),
}


@forks
@pytest.mark.parametrize(("layout", "index"), KILLED.values(), ids=KILLED)
def test_a_killed_writer_leaves_the_old_value_or_the_new_one(
    tmp_path: Path, layout: dict[str, Any], index: Any
) -> None:
    array = zarrlite.create_array(tmp_path, data=np.full(SIZE, 1, "int32"), **layout)
    array[index] = 1  # fills caches, so that the counted write takes as many steps as the writes below
    steps = CountSteps().run(lambda: assign(array, index, 1))
    keys = sorted(array.store.list())
    kills = 0
    for value, step in enumerate(np.linspace(1, steps, 100 // len(KILLED)).astype(int).tolist(), start=2):
        before = array[...]
        after = before.copy()
        after[index] = value
        kills += killed_at(step, lambda value=value: assign(array, index, value))  # type: ignore[misc]
        reopened = zarrlite.open_array(tmp_path, mode="r+", missing_chunks="error")
        values = reopened[...]
        size = (array.shards or array.chunks)[0]
        for start in range(0, SIZE, size):
            chunk = slice(start, start + size)
            assert values[chunk].tolist() in (before[chunk].tolist(), after[chunk].tolist())
        assert sorted(reopened.store.list()) == keys
        reopened[0] = 1  # this write would block if the killed writer had left a lock behind
    assert kills >= 100 // len(KILLED) - 1


@forks
def test_a_killed_writer_of_attributes_leaves_the_old_ones_or_the_new_ones(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, data=[1], attributes={"n": 0})
    steps = CountSteps().run(lambda: assign(array.attrs, "n", 0))
    old = 0
    for n, step in enumerate(np.linspace(1, steps, 25).astype(int).tolist(), start=1):
        killed_at(step, lambda n=n: assign(array.attrs, "n", n))  # type: ignore[misc]
        stored = zarrlite.open_array(tmp_path).attrs["n"]
        assert stored in (old, n)
        old = stored
        assert sorted(array.store.list()) == ["c/0", "zarr.json"]


@forks
def test_a_killed_resize_leaves_the_old_shape_or_the_new_one_and_the_values_inside(tmp_path: Path) -> None:
    def create(path: Path) -> Array:
        return zarrlite.create_array(path, data=np.arange(1, SIZE + 1), chunks=16, overwrite=True)

    steps = CountSteps().run(lambda: create(tmp_path / "a").resize(20))
    for step in np.linspace(1, steps, 25).astype(int).tolist():
        array = create(tmp_path / "b")
        killed_at(step, lambda array=array: array.resize(20))  # type: ignore[misc]
        reopened = zarrlite.open_array(tmp_path / "b", mode="r+")
        assert reopened.shape in ((SIZE,), (20,))
        assert reopened[:20].tolist() == list(range(1, 21))
        if reopened.shape == (SIZE,):
            assert reopened[...].tolist() == list(range(1, SIZE + 1))


@forks
def test_deleting_a_node_removes_the_files_that_killed_writers_left(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, name="a", data=np.arange(SIZE), chunks=SIZE)
    steps = CountSteps().run(lambda: assign(array, 3, 7))
    for step in np.linspace(1, steps, 20).astype(int).tolist():
        killed_at(step, lambda: assign(array, 3, 8))
    array.delete()
    assert [p.name for p in tmp_path.rglob("*")] == ["zarr.json"]


# Appending, and edge chunks that grow after a handle was opened


def test_writing_through_a_stale_handle_keeps_elements_that_another_one_appended() -> None:
    store = MemoryStore()
    stale = zarrlite.create_array(store, data=np.ones(3, "i4"), chunks=7, fill_value=-1)
    zarrlite.open_array(store).append([9, 9, 9])
    stale[:] = 1
    stale.append([5])
    assert zarrlite.open_array(store)[...].tolist() == [1, 1, 1, 9, 9, 9, 5]


@pytest.mark.parametrize("is_shared", [True, False], ids=["one handle", "a handle each"])
@pytest.mark.parametrize("chunks", [3, 7, 100])
def test_threads_that_append_lose_nothing(tmp_path: Path, chunks: int, is_shared: bool) -> None:
    first = zarrlite.create_array(tmp_path, shape=0, dtype="i4", chunks=chunks, fill_value=-1)

    def add(n: int) -> None:
        array = first if is_shared else zarrlite.open_array(tmp_path)
        for _ in range(10):
            array.append(np.full(3, n, "i4"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    values = zarrlite.open_array(tmp_path)[...]
    assert np.bincount(values).tolist() == [30] * 4
    assert all(len(set(triple)) == 1 for triple in values.reshape(-1, 3).tolist())


# Reading while others write


@pytest.mark.parametrize("is_local", [True, False], ids=["local", "memory"])
def test_a_reader_of_a_shard_sees_one_version_of_it(tmp_path: Path, is_local: bool) -> None:
    # Reading the index and the inner chunks takes two requests. The shard may be replaced between them.
    store: Any = LocalStore(tmp_path) if is_local else MemoryStore()
    array = zarrlite.create_array(store, data=np.arange(1, 9, dtype="u2"), chunks=2, shards=8, compressors=None)
    stop = threading.Event()

    def toggle() -> None:
        while not stop.is_set():
            array[0:2] = 0  # removes this inner chunk, so that the others move to the front
            array[0:2] = [1, 2]

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(toggle)
        try:
            for _ in range(400):
                assert array[3] == 4
        finally:
            stop.set()
        writer.result()
