"""Reads and writes that run while the caller continues: results, errors, cancellation, and how many run at once."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import subprocess
import sys
import threading
import weakref
from concurrent.futures import CancelledError, Future, wait
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import ByteRange, MemoryStore, SelectionError, StoreError
from zarrlite.stores.base import Limits
from zarrlite.threads import workers

DATA = np.arange(400, dtype="i4").reshape(20, 20)
LIMIT = 60  # seconds; an operation that takes longer fails the test


class Gate(MemoryStore):
    """A store in which requests for chunks wait until a gate is opened. It counts how many wait at the same time."""

    def __init__(self, concurrency: int) -> None:
        super().__init__()
        self.limits = Limits(concurrency=concurrency)
        self.open = threading.Event()
        self.waiting, self.most = 0, 0
        self._lock = threading.Lock()
        self.arrived = threading.Semaphore(0)

    def get(self, key: str, byte_range: ByteRange = ByteRange()) -> Any:
        if "c/" in key:
            with self._lock:
                self.waiting += 1
                self.most = max(self.most, self.waiting)
            self.arrived.release()
            assert self.open.wait(LIMIT)
            with self._lock:
                self.waiting -= 1
        return super().get(key, byte_range)


def gated(concurrency: int) -> tuple[Gate, zarrlite.Array]:
    store = Gate(concurrency)
    array = zarrlite.create_array(store, data=DATA, chunks=(1, 20))
    return store, array


def test_asynchronous_reads_return_the_results_of_indexing() -> None:
    array = zarrlite.create_array("memory://", data=DATA, chunks=(3, 7))
    for selection in (..., 3, (slice(2, 9), slice(None, None, 3)), (4, 5), ([1, 2], slice(3))):
        future = array.read_async(selection)
        assert isinstance(future, Future)
        assert np.array_equal(future.result(LIMIT), array[selection])
    assert np.array_equal(array.read_async().result(LIMIT), DATA)
    assert np.array_equal(array.oindex.read_async(([3, 1], [0, 19])).result(LIMIT), DATA[np.ix_([3, 1], [0, 19])])
    assert np.array_equal(array.vindex.read_async(([3, 1], [0, 19])).result(LIMIT), DATA[[3, 1], [0, 19]])


def test_asynchronous_writes_store_what_assignment_stores(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, shape=DATA.shape, dtype="i4", chunks=(4, 4), shards=(8, 8))
    wait([array.write_async((slice(i, i + 2), slice(j, j + 5)), DATA[i : i + 2, j : j + 5])
          for i in range(0, 20, 2) for j in range(0, 20, 5)])  # fmt: skip
    assert np.array_equal(array[...], DATA)
    assert array.blocks.write_async((0, 0), 7).result(LIMIT) is None
    assert (array[:4, :4] == 7).all()


def test_asynchronous_operations_raise_the_errors_of_indexing() -> None:
    array = zarrlite.create_array("memory://", data=DATA)
    assert isinstance(array.read_async(99).exception(LIMIT), SelectionError)
    with pytest.raises(SelectionError, match="20"):
        array.read_async((0, 20)).result(LIMIT)
    array.store.set("c/0/0", b"damaged")
    with pytest.raises(zarrlite.DataError, match="c/0/0"):
        array.read_async().result(LIMIT)
    assert isinstance(array.write_async(0, ["a"]).exception(LIMIT), zarrlite.ArgumentError)


def test_an_exception_of_a_store_reaches_the_future() -> None:
    class Failing(MemoryStore):
        def get(self, key: str, byte_range: ByteRange = ByteRange()) -> Any:
            if "c/" in key:
                raise OSError("unplugged")
            return super().get(key, byte_range)

    array = zarrlite.create_array(Failing(), data=DATA)
    with pytest.raises(StoreError, match="unplugged"):
        array.read_async().result(LIMIT)


@pytest.mark.parametrize("concurrency", [2, 5, 12])
def test_a_store_gets_no_more_requests_at_once_than_it_takes(concurrency: int) -> None:
    store, array = gated(concurrency)
    futures = [array.read_async(slice(i, i + 3)) for i in range(17)]  # each read requests several chunks
    for _ in range(concurrency - 1):
        assert store.arrived.acquire(timeout=LIMIT)
    store.open.set()
    for i, future in enumerate(futures):
        assert np.array_equal(future.result(LIMIT), DATA[i : i + 3])
    assert concurrency - 1 <= store.most <= concurrency


def test_reads_of_a_store_that_does_not_wait_use_the_cores() -> None:
    running, most = [0], [0]
    lock = threading.Lock()

    class Busy(MemoryStore):
        def get_partial_values(self, *args: Any) -> Any:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            found = super().get_partial_values(*args)
            with lock:
                running[0] -= 1
            return found

    array = zarrlite.create_array(Busy(), data=DATA, chunks=(20, 20))
    wait([array.read_async() for _ in range(200)], LIMIT)
    assert 1 <= most[0] <= workers()


def test_reads_that_have_not_started_can_be_cancelled() -> None:
    store, array = gated(2)
    started = array.read_async(0)
    assert store.arrived.acquire(timeout=LIMIT)
    later = array.read_async(1)
    assert (later.cancel(), started.cancel()) == (True, False)
    store.open.set()
    assert np.array_equal(started.result(LIMIT), DATA[0])
    with pytest.raises(CancelledError):
        later.result(LIMIT)
    assert np.array_equal(array.read_async(2).result(LIMIT), DATA[2])


async def test_futures_are_awaited() -> None:
    store, array = gated(4)
    reads = [asyncio.wrap_future(array.read_async(i)) for i in range(10)]
    while not store.waiting:
        await asyncio.sleep(0.01)
    reads[9].cancel()
    store.open.set()  # reached because waiting reads do not block the event loop
    found = await asyncio.gather(*reads[:9])
    assert np.array_equal(found, DATA[:9])
    with pytest.raises(asyncio.CancelledError):
        await reads[9]
    with pytest.raises(SelectionError):
        await asyncio.wrap_future(array.read_async(99))


def test_a_finished_read_keeps_no_reference_to_its_result() -> None:
    array = zarrlite.create_array("memory://", data=DATA)
    result = array.read_async().result(LIMIT)
    alive = weakref.ref(result)
    del result
    end = zarrlite.create_array("memory://", data=DATA)
    end.read_async().result(LIMIT)  # after this read, the thread no longer refers to the first one
    gc.collect()
    assert alive() is None


def test_a_process_ends_after_its_writes(tmp_path: Path) -> None:
    keywords = "shape=(64, 1000), dtype='i4', chunks=(1, 1000)"
    code = (
        f"import zarrlite; a = zarrlite.create_array({str(tmp_path)!r}, {keywords})\n"
        "for i in range(64): a.write_async(i, i + 1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT)
    assert np.array_equal(zarrlite.open_array(tmp_path, mode="r")[:, 0], np.arange(1, 65))


def _read(array: zarrlite.Array, results: Any) -> None:
    results.put([array.read_async(i).result(LIMIT).tolist() for i in range(4)])


def test_a_forked_child_reads_with_its_own_threads(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, data=DATA, chunks=(1, 20))
    wait([array.read_async(i) for i in range(20)], LIMIT)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_read, args=(array, results))
    child.start()
    found = results.get()
    child.join(LIMIT)
    assert (found, child.exitcode) == (DATA[:4].tolist(), 0)
