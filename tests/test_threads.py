"""The shared thread pool: jobs run once, the first error stops the rest, small work runs inline, forks are safe."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from zarrlite import threads
from zarrlite.tuning import MIN_SHARED_BYTES

LARGE = MIN_SHARED_BYTES
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


@pytest.fixture(autouse=True)
def _four_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use several threads even on a machine with one core."""
    monkeypatch.setattr(threads, "workers", lambda: 4)
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "_deferred", [])
    yield
    if threads._pool is not None:
        threads._pool.shutdown()


@pytest.mark.parametrize("nbytes", [0, LARGE - 1, LARGE, 10 * LARGE])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 500])
def test_every_job_is_done_once(count: int, nbytes: int) -> None:
    done: list[int] = []
    threads.run(done.append, iter(range(count)), nbytes)
    assert sorted(done) == list(range(count))


def test_a_job_may_be_none() -> None:
    done: list[Any] = []
    threads.run(done.append, [None] * 5, LARGE)
    assert done == [None] * 5


@pytest.mark.parametrize(("count", "nbytes"), [(5, LARGE - 1), (1, 10 * LARGE)])
def test_small_work_runs_inline_and_in_order(count: int, nbytes: int) -> None:
    seen: list[Any] = []
    threads.run(lambda job: seen.append((job, threading.get_ident())), range(count), nbytes)
    assert seen == [(i, threading.get_ident()) for i in range(count)]
    assert threads._pool is None


def test_large_work_is_shared() -> None:
    # four jobs that wait for each other need four threads
    meeting = threading.Barrier(4, timeout=60)
    threads.run(lambda job: meeting.wait(), range(4), LARGE)


def test_jobs_are_pulled_as_they_are_needed() -> None:
    pulled = done = 0
    lock = threading.Lock()
    ahead: list[int] = []

    def jobs() -> Iterator[int]:
        nonlocal pulled
        for i in range(200):
            with lock:
                pulled += 1
                ahead.append(pulled - done)
            yield i

    def do(job: int) -> None:
        nonlocal done
        with lock:
            done += 1

    threads.run(do, jobs(), LARGE)
    assert done == 200
    assert max(ahead) <= 4 + 4  # one job for each worker, and four that are pulled to determine the number of threads


class JobError(Exception):
    pass


@pytest.mark.parametrize("bad", [0, 1, 2, 50])
@pytest.mark.parametrize("nbytes", [0, LARGE])
def test_the_first_error_is_raised_and_stops_the_rest(bad: int, nbytes: int) -> None:
    started: list[int] = []

    def do(job: int) -> None:
        started.append(job)
        if job == bad:
            raise JobError(f"job {job}")

    with pytest.raises(JobError, match=f"job {bad}"):
        threads.run(do, itertools.count(), nbytes)  # an endless iterator
    count = len(started)
    done: list[int] = []
    threads.run(done.append, range(10), nbytes)  # the pool still works
    assert sorted(done) == list(range(10))
    assert len(started) == count  # the failed call started no further jobs


def test_an_error_of_the_job_iterator_is_raised() -> None:
    def jobs() -> Iterator[int]:
        yield from range(10)
        raise JobError("from the iterator")

    done: list[int] = []
    with pytest.raises(JobError, match="from the iterator"):
        threads.run(done.append, jobs(), LARGE)
    assert len(set(done)) == len(done) <= 10


def test_nothing_is_running_when_run_returns_with_an_error() -> None:
    running: set[int] = set()
    started = threading.Semaphore(0)

    def do(job: int) -> None:
        if job == 0:
            started.acquire(timeout=60)  # wait until another job has started
            raise JobError
        running.add(job)
        started.release()
        running.remove(job)

    with pytest.raises(JobError):
        threads.run(do, itertools.count(), LARGE)
    assert running == set()


def test_a_keyboard_interrupt_is_raised() -> None:
    def do(job: int) -> None:
        if job == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.run(do, range(1000), LARGE)


def test_nested_work_runs_inline_in_its_worker() -> None:
    done: list[tuple[int, int]] = []
    idents: set[tuple[int, int]] = set()

    def outer(i: int) -> None:
        outer_ident = threading.get_ident()

        def inner(j: int) -> None:
            done.append((i, j))
            idents.add((outer_ident, threading.get_ident()))

        threads.run(inner, range(10), LARGE)

    threads.run(outer, range(20), LARGE)
    assert sorted(done) == [(i, j) for i in range(20) for j in range(10)]
    assert all(outer_ident == inner_ident for outer_ident, inner_ident in idents)


def test_many_threads_may_call_run_at_once() -> None:
    done: list[tuple[int, int]] = []
    with ThreadPoolExecutor(16) as callers:
        list(callers.map(lambda i: threads.run(lambda j: done.append((i, j)), range(50), LARGE), range(32)))
    assert sorted(done) == [(i, j) for i in range(32) for j in range(50)]


def test_the_calling_thread_can_share_work_again_after_an_error() -> None:
    with pytest.raises(JobError):
        threads.run(lambda job: (_ for _ in ()).throw(JobError), range(10), LARGE)
    test_large_work_is_shared()


def test_only_one_job_is_deferred_at_a_time() -> None:
    started, proceed = threading.Event(), threading.Event()
    done: list[tuple[str, threading.Thread]] = []

    def do(name: str) -> None:
        if name == "first":
            started.set()
            assert proceed.wait(60)
        done.append((name, threading.current_thread()))

    threads.run_later(do, "first")
    assert started.wait(60)
    threads.run_later(do, "second")  # runs immediately, without waiting for the first job
    assert done == [("second", threading.main_thread())]
    proceed.set()
    assert threads.finish_deferred()
    assert done[1][0] == "first"
    assert done[1][1] is not threading.main_thread()
    assert not threads.finish_deferred()


def test_a_deferred_job_that_has_not_started_is_done_by_the_thread_that_needs_it() -> None:
    proceed = threading.Event()
    done: list[threading.Thread] = []
    busy = [threads._get_pool().submit(proceed.wait, 60) for _ in range(4)]
    threads.run_later(lambda _: done.append(threading.current_thread()), None)
    assert not done
    assert threads.finish_deferred()
    proceed.set()
    assert all(future.result(60) for future in busy)
    threads._get_pool().shutdown()
    assert done == [threading.main_thread()]


def test_workers_do_deferred_jobs_at_once() -> None:
    done: list[bool] = []

    def do(job: int) -> None:
        worker = threading.current_thread()
        threads.run_later(lambda _: done.append(threading.current_thread() is worker), job)

    threads.run(do, range(20), LARGE)
    assert done == [True] * 20
    assert not threads.finish_deferred()


@forks
@pytest.mark.parametrize("is_used", [False, True], ids=["unused pool", "used pool"])
def test_a_forked_child_has_its_own_pool(is_used: bool) -> None:
    if is_used:
        test_large_work_is_shared()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            meeting = threading.Barrier(4, timeout=60)
            done: list[int] = []
            threads.run(lambda job: (meeting.wait(), done.append(job)), range(8), LARGE)
            code = 0 if sorted(done) == list(range(8)) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    test_large_work_is_shared()


AT_EXIT = """
import atexit, sys
import numpy as np
import zarrlite
from zarrlite import threads

threads.workers = lambda: 4
a = zarrlite.create_array(None, data=np.arange(2**20), chunks=2**16)

@atexit.register
def last():
    a[...] = a[...] + 1
    print(int(a[...].sum()) == 2**20 * (2**20 + 1) // 2)
"""


def test_arrays_can_be_used_while_the_interpreter_shuts_down() -> None:
    process = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=120, check=False)
    assert (process.stdout, process.stderr) == ("True\n", "")


def test_a_call_that_starts_while_a_place_is_full_gets_its_threads_once_they_are_free() -> None:
    place = threads.Place(4)
    first_is_under_way, first_may_end = threading.Barrier(5), threading.Event()
    second_is_under_way = threading.Barrier(4)  # times out unless four jobs run at the same time

    def first(number: int) -> None:
        first_is_under_way.wait(60)
        assert first_may_end.wait(60)

    def second(number: int) -> None:
        if number:
            second_is_under_way.wait(60)
        else:  # this job starts while all threads are busy
            first_may_end.set()

    with ThreadPoolExecutor(1) as other:
        call = other.submit(threads.run, first, range(4), 0, place)
        first_is_under_way.wait(60)
        threads.run(second, range(5), 0, place)
        call.result()


def test_a_place_keeps_no_reference_to_a_call_that_has_ended() -> None:
    place = threads.Place(2)
    arrays = [np.zeros(1)]
    references = [weakref.ref(array) for array in arrays]

    def use(number: int, array: object = arrays.pop()) -> None:
        threads.run(lambda _: array, range(4), 0, place)

    threads.run(use, range(8), 0, place)
    del use
    for _ in range(600):  # a thread of the pool may still hold a reference
        gc.collect()
        if references[0]() is None:
            return
        time.sleep(0.1)
    pytest.fail("the array is still referenced")


def test_no_thread_outlives_a_call_that_is_interrupted_while_it_submits_work(monkeypatch: pytest.MonkeyPatch) -> None:
    started, done = threading.Event(), []
    pool = threads._get_pool()

    def work(jobs: Iterator[int]) -> None:
        for _ in jobs:
            started.set()
            time.sleep(0.05)
            done.append(time.monotonic())

    def submit(self: ThreadPoolExecutor, *args: Any) -> Any:
        found = original(self, *args)
        if self is pool:  # other pools are not interrupted
            started.wait(60)
            raise KeyboardInterrupt
        return found

    original = ThreadPoolExecutor.submit
    with monkeypatch.context() as patch:
        patch.setattr(ThreadPoolExecutor, "submit", submit)
        with pytest.raises(KeyboardInterrupt):
            threads.share(work, range(100), LARGE)
        end = time.monotonic()
    time.sleep(0.2)
    assert done
    assert max(done) < end


def test_a_process_whose_first_shared_call_is_interrupted_ends() -> None:
    code = f"""
import threading
from zarrlite import threads
wait = threading.Event.wait
def interrupted(self, *args):  # a thread is started in here
    found = wait(self, *args)
    if threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt
    return found
threading.Event.wait = interrupted
threads.workers = lambda: 4
try:
    threads.run(print, range(4), {LARGE})
except KeyboardInterrupt:
    pass
threading.Event.wait = wait
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_submitting_to_running_threads_needs_no_lock_that_an_interrupt_could_leave_held() -> None:
    pool: Any = threads._get_pool()
    with pool._idle_semaphore._cond:  # the lock that the base class acquires in Python code
        assert pool.submit(int).result(timeout=30) == 0
