"""The one thread pool: every job once, the first error stops, small work runs inline, forks are survived."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from zarrlite import threads

LARGE = threads.WORTHWHILE


@pytest.fixture(autouse=True)
def _four_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads also where the machine has one core."""
    monkeypatch.setattr(threads, "workers", lambda: 4)
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "_left", [])
    yield
    if threads._pool is not None:
        threads._pool.shutdown()


@pytest.mark.parametrize("nbytes", [0, LARGE - 1, LARGE, 10 * LARGE])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 500])
def test_every_job_is_done_once(count: int, nbytes: int) -> None:
    done: list[int] = []
    threads.run(done.append, iter(range(count)), nbytes)
    assert sorted(done) == list(range(count))


def test_none_is_a_job() -> None:
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
    """Four jobs that wait for each other can only be done by four threads."""
    meeting = threading.Barrier(4, timeout=60)
    threads.run(lambda job: meeting.wait(), range(4), LARGE)


def test_jobs_are_pulled_as_they_are_needed() -> None:
    made = done = 0
    lock = threading.Lock()
    ahead: list[int] = []

    def jobs() -> Iterator[int]:
        nonlocal made
        for i in range(200):
            with lock:
                made += 1
                ahead.append(made - done)
            yield i

    def do(job: int) -> None:
        nonlocal done
        with lock:
            done += 1

    threads.run(do, jobs(), LARGE)
    assert done == 200
    assert max(ahead) <= 4 + 2  # one for each worker, and the two that were looked at first


class Trouble(Exception):
    pass


@pytest.mark.parametrize("bad", [0, 1, 2, 50])
@pytest.mark.parametrize("nbytes", [0, LARGE])
def test_the_first_error_is_raised_and_stops_the_rest(bad: int, nbytes: int) -> None:
    started: list[int] = []

    def do(job: int) -> None:
        started.append(job)
        if job == bad:
            raise Trouble(f"job {job}")

    with pytest.raises(Trouble, match=f"job {bad}"):
        threads.run(do, itertools.count(), nbytes)  # would go on for ever
    count = len(started)
    done: list[int] = []
    threads.run(done.append, range(10), nbytes)  # the pool is fine
    assert sorted(done) == list(range(10))
    assert len(started) == count  # and nothing of the old work goes on


def test_an_error_of_the_iterator_is_raised() -> None:
    def jobs() -> Iterator[int]:
        yield from range(10)
        raise Trouble("no more")

    done: list[int] = []
    with pytest.raises(Trouble, match="no more"):
        threads.run(done.append, jobs(), LARGE)
    assert len(set(done)) == len(done) <= 10


def test_nothing_is_running_when_run_returns_with_an_error() -> None:
    running: set[int] = set()
    begun = threading.Semaphore(0)

    def do(job: int) -> None:
        if job == 0:
            begun.acquire(timeout=60)  # not before another one has begun
            raise Trouble
        running.add(job)
        begun.release()
        running.remove(job)

    with pytest.raises(Trouble):
        threads.run(do, itertools.count(), LARGE)
    assert running == set()


def test_an_interrupt_is_an_error_too() -> None:
    def do(job: int) -> None:
        if job == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.run(do, range(1000), LARGE)


def test_nested_work_runs_inline_and_does_not_wait_for_itself() -> None:
    done: list[tuple[int, int]] = []
    where: set[tuple[int, int, int]] = set()

    def outer(i: int) -> None:
        me = threading.get_ident()

        def inner(j: int) -> None:
            done.append((i, j))
            where.add((i, me, threading.get_ident()))

        threads.run(inner, range(10), LARGE)

    threads.run(outer, range(20), LARGE)
    assert sorted(done) == [(i, j) for i in range(20) for j in range(10)]
    assert all(me == ran for _, me, ran in where)


def test_many_callers_at_once() -> None:
    done: list[tuple[int, int]] = []
    with ThreadPoolExecutor(16) as callers:
        list(callers.map(lambda i: threads.run(lambda j: done.append((i, j)), range(50), LARGE), range(32)))
    assert sorted(done) == [(i, j) for i in range(32) for j in range(50)]


def test_the_calling_thread_may_use_threads_again_after_an_error() -> None:
    with pytest.raises(Trouble):
        threads.run(lambda job: (_ for _ in ()).throw(Trouble), range(10), LARGE)
    test_large_work_is_shared()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_one_thing_at_a_time_is_left_for_later() -> None:
    begun, go_on = threading.Event(), threading.Event()
    done: list[tuple[str, threading.Thread]] = []

    def do(name: str) -> None:
        if name == "first":
            begun.set()
            assert go_on.wait(60)
        done.append((name, threading.current_thread()))

    threads.later(do, "first")
    assert begun.wait(60)
    threads.later(do, "second")  # nobody waits for the first: it is done at once
    assert done == [("second", threading.main_thread())]
    go_on.set()
    assert threads.settle()
    assert done[1][0] == "first"
    assert done[1][1] is not threading.main_thread()
    assert not threads.settle()


def test_what_nobody_has_begun_with_is_done_by_who_waits_for_it() -> None:
    go_on = threading.Event()
    done: list[threading.Thread] = []
    busy = [threads._get_pool().submit(go_on.wait, 60) for _ in range(4)]
    threads.later(lambda _: done.append(threading.current_thread()), None)
    assert not done
    assert threads.settle()
    go_on.set()
    assert all(future.result(60) for future in busy)
    threads._get_pool().shutdown()
    assert done == [threading.main_thread()]


def test_what_workers_leave_is_done_at_once() -> None:
    done: list[bool] = []

    def do(job: int) -> None:
        here = threading.current_thread()
        threads.later(lambda _: done.append(threading.current_thread() is here), job)

    threads.run(do, range(20), LARGE)
    assert done == [True] * 20
    assert not threads.settle()


@pytest.mark.parametrize("used", [False, True], ids=["before its first use", "after it was used"])
def test_a_forked_child_has_a_pool_of_its_own(used: bool) -> None:
    if used:
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


LATE = """
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
    found = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=120, check=False)
    assert (found.stdout, found.stderr) == ("True\n", "")
