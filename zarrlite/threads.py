"""The one thread pool.

Rules
- Threads exist nowhere else (locks aside); nothing submits from inside the pool.
- Workers, the calling thread among them, pull jobs from one shared iterator. The first error stops them all.
- The pool starts when it is first needed and is not inherited by a forked child.
- At most one thing is left for later, and nobody waits for it but who needs what it sets free.
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

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

J = TypeVar("J")

_pool: ThreadPoolExecutor | None = None
_left: list[tuple[Future[object], Callable[[], object]]] = []  # for later
_inside = local()
WORTHWHILE = 2**19  # bytes of work below which waking threads costs more than it gains


def workers() -> int:
    """How many threads may be at work at once."""
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
    _left.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def run(do: Callable[[J], object], jobs: Iterable[J], nbytes: int) -> None:
    """Do every job; with several threads if `nbytes` of work make that worthwhile."""

    def work(shared: Iterator[J]) -> None:
        for job in shared:
            do(job)

    share(work, jobs, nbytes)


def share(work: Callable[[Iterator[J]], object], jobs: Iterable[J], nbytes: int) -> None:
    """Let each thread do as many of the jobs as it gets hold of; several threads as by `run`."""
    jobs = iter(jobs)
    if nbytes < WORTHWHILE or getattr(_inside, "yes", False) or (count := workers()) == 1:
        work(jobs)
        return
    first = list(itertools.islice(jobs, 2))
    if len(first) < 2:
        work(iter(first))
        return
    queue = _Queue(itertools.chain(first, jobs))
    others: list[Future[None]] = []
    with contextlib.suppress(RuntimeError):  # while the interpreter shuts down there are no new threads
        others += (_get_pool().submit(_work, work, queue) for _ in range(count - 1))
    try:
        _work(work, queue)
    finally:
        errors = [other.exception() for other in others]  # waits for all of them
    for error in errors:
        if error is not None:
            raise error


def batches(jobs: Iterator[J], count: int) -> Iterator[list[J]]:
    """The same jobs, several at a time."""
    return iter(lambda: list(itertools.islice(jobs, count)), [])


def later(do: Callable[[J], object], job: J) -> None:
    """Do something whose end nobody waits for, while the caller goes on if there is a thread to spare."""
    if not getattr(_inside, "yes", False) and (not _left or _left[-1][0].done()):
        with contextlib.suppress(RuntimeError):  # while the interpreter shuts down there are no new threads
            _left[:] = [(_get_pool().submit(do, job), functools.partial(do, job))]
            return
    do(job)


def settle() -> bool:
    """See to it that what was left for later is done; False: nothing was left since the last time."""
    try:
        future, do = _left.pop()
    except IndexError:
        return False
    if future.cancel():  # nobody has begun with it, and all threads may be waiting for the caller
        do()
    else:
        future.exception()
    return True


class _Queue(Iterator[J]):
    """An iterator that several threads may pull from, and any of them may end."""

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
    _inside.yes = True
    try:
        work(queue)
    except BaseException:
        queue.stop()
        raise
    finally:
        _inside.yes = False
