"""The shared thread pool.

Rules
- No other module starts threads (locks aside). A thread of the pool never submits work to it.
- The workers, including the calling thread, pull jobs from one shared iterator. The first error stops them all.
- The pool starts when it is first needed. A forked child does not inherit it.
- There is at most one deferred job (`run_later`). Only callers that need the space it frees wait for it
  (`finish_deferred`).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from _thread import _local as local
from _thread import allocate_lock
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from zarrlite.tuning import MIN_SHARED_BYTES

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

J = TypeVar("J")

_pool: ThreadPoolExecutor | None = None
_deferred: list[tuple[Future[object], Callable[[], object]]] = []  # at most one: its future and the call itself
_state = local()  # `is_worker`: whether this thread is pulling jobs from a queue


def workers() -> int:
    """Return how many threads may work at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _get_pool() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor

        _pool = ThreadPoolExecutor(workers(), thread_name_prefix="zarrlite")
    return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None
    _deferred.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


# Jobs of one call


def run(do: Callable[[J], object], jobs: Iterable[J], nbytes: int) -> None:
    """Run every job, on several threads if the work is at least `MIN_SHARED_BYTES`."""

    def work(shared: Iterator[J]) -> None:
        for job in shared:
            do(job)

    share(work, jobs, nbytes)


def share(work: Callable[[Iterator[J]], object], jobs: Iterable[J], nbytes: int) -> None:
    """Call `work` on each thread with an iterator over this thread's jobs. Uses as many threads as `run`."""
    jobs = iter(jobs)
    if nbytes < MIN_SHARED_BYTES or getattr(_state, "is_worker", False) or (count := workers()) == 1:
        work(jobs)
        return
    first = list(itertools.islice(jobs, 2))
    if len(first) < 2:
        work(iter(first))
        return
    queue = _Queue(itertools.chain(first, jobs))
    others: list[Future[None]] = []
    try:
        with contextlib.suppress(RuntimeError):  # no thread can be started while the interpreter shuts down
            for _ in range(count - 1):
                others.append(_get_pool().submit(_work, work, queue))
        _work(work, queue)
        errors = [other.exception() for other in others]  # waits for all of them
    except BaseException:  # an interrupt, perhaps while waiting: no thread may outlive the call
        queue.stop()
        for other in others:
            other.exception()
        raise
    for error in errors:
        if error is not None:
            raise error


def batches(jobs: Iterator[J], count: int) -> Iterator[list[J]]:
    """Return the same jobs in lists of at most `count`."""
    return iter(lambda: list(itertools.islice(jobs, count)), [])


class _Queue(Iterator[J]):
    """An iterator that several threads may pull from, and that any of them may stop."""

    def __init__(self, jobs: Iterator[J]) -> None:
        self._jobs = jobs
        self._lock = allocate_lock()
        self._stopped = False

    def __next__(self) -> J:
        with self._lock:
            if self._stopped:
                raise StopIteration
            return next(self._jobs)

    def stop(self) -> None:
        self._stopped = True


def _work(work: Callable[[Iterator[J]], object], queue: _Queue[J]) -> None:
    _state.is_worker = True
    try:
        work(queue)
    except BaseException:
        queue.stop()
        raise
    finally:
        _state.is_worker = False


# Deferred jobs, which no caller waits for: closing large files that were replaced (stores/inode_locks.py)


def run_later(do: Callable[[J], object], job: J) -> None:
    """Call `do(job)` on the pool while the caller continues.

    The caller runs it itself if it is a worker, or if an earlier deferred job has not finished.
    """
    if not getattr(_state, "is_worker", False) and (not _deferred or _deferred[-1][0].done()):
        with contextlib.suppress(RuntimeError):  # no thread can be started while the interpreter shuts down
            _deferred[:] = [(_get_pool().submit(do, job), functools.partial(do, job))]
            return
    do(job)


def finish_deferred() -> bool:
    """Wait for the deferred job, or run it here. Returns False if no job was deferred since the last call."""
    try:
        future, do = _deferred.pop()
    except IndexError:
        return False
    if future.cancel():  # it has not started, and all threads of the pool may be waiting for the caller
        do()
    else:
        future.exception()
    return True
