"""The shared thread pools: one for computation, with a thread per core, and one for threads that wait for requests.

Rules
- No other module starts threads for reading or writing. A worker thread never submits work to its own pool.
- The threads of a call, including the calling one, pull jobs from one shared iterator. The first error in one of these
  threads stops them all.
- Both pools belong to the process: many concurrent calls use no more threads than one call. Requests to one place (a
  bucket, a host) are also limited across all calls. A call waits only for jobs that have started and runs all others
  itself, so that it finishes even if every thread is busy. Threads join a call as soon as they have finished with other
  calls.
- Threads that wait for requests decode and encode inside `work`, which admits at most one of them per core. An admitted
  thread takes over the scratch buffers and compressors of one that was admitted before, so that one set per core is
  enough.
- Jobs that wait for requests declare how many bytes they hold while they wait. All jobs of the process together hold at
  most `MAX_IN_FLIGHT_BYTES`; a single job that is larger runs alone.
- A pool starts when it is first needed. A forked child process does not inherit the pools of its parent.
- An interrupt (Ctrl-C) may stop the calling thread while it submits work, before it receives the future. Each call
  therefore keeps track of its own helper threads (`_Helpers`). For the same reason, the threads of a pool are started
  by another thread: a thread whose start was interrupted would be unknown to its pool and keep the process from
  exiting.
- At most one deferred job (`run_later`) exists at a time. A caller waits for the deferred job (`finish_deferred`) only
  if it needs the space that the job frees.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
from _thread import _local as local
from _thread import allocate_lock, get_ident, start_new_thread
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from zarrlite.guard import Guard
from zarrlite.tuning import (
    IN_FLIGHT_PAUSE,
    MAX_IN_FLIGHT_BYTES,
    MAX_IN_FLIGHT_WAIT,
    MAX_PLACES,
    MAX_REQUESTS,
    MIN_SHARED_BYTES,
)

if TYPE_CHECKING:
    from _thread import LockType
    from concurrent.futures import Future, ThreadPoolExecutor
    from queue import SimpleQueue

J = TypeVar("J")
R = TypeVar("R")

_pool: ThreadPoolExecutor | None = None  # for computation
_waiting_pool: ThreadPoolExecutor | None = None  # for threads that wait for requests
_places: dict[Hashable, Place] = {}
_in_flight: dict[int, int] = {}  # thread -> bytes that its job holds, in the order in which the jobs arrived
_deferred: list[tuple[Future[object], Callable[[], object]]] = []  # at most one job: its future, and the call itself
_max_workers: int | None = None  # threads that compute at the same time; None means one per core
_max_requests: int | None = None  # simultaneous requests to one place; None means as many as the store allows
_seats: SimpleQueue[dict[str, Any]] | None = None  # one per core; a seat contains `kept` for the thread that takes it
_state = local()  # `is_worker`: this thread is pulling jobs from a queue; `waits`: it must take a seat to compute
kept = local()  # scratch buffers and compressors that a thread keeps for its next job


def workers() -> int:
    """Return how many threads may compute at the same time."""
    if _max_workers is not None:
        return _max_workers
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit(max_workers: int | None, max_requests: int | None) -> None:
    """Set how many threads may compute, and how many requests to one place may be in flight. None removes a limit."""
    global _pool, _seats, _max_workers, _max_requests
    has_changed = max_workers != _max_workers
    _max_workers, _max_requests = max_workers, max_requests
    if has_changed:
        _pool = None  # running calls finish on the threads of the old pool
        if _seats is not None:
            _seats = _new_seats()


def _get_pool() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor

        class Pool(ThreadPoolExecutor):
            def _adjust_thread_count(self) -> None:
                # Once all threads run, there is nothing to adjust. The base class would acquire a semaphore, and an
                # interrupt there could leave its lock held, so that no thread of the pool could continue.
                if len(self._threads) < self._max_workers:
                    super()._adjust_thread_count()

        pool = Pool(workers(), thread_name_prefix="zarrlite")
        gate, started = allocate_lock(), allocate_lock()
        started.acquire()
        start_new_thread(_start_threads, (pool, gate, started))
        started.acquire()
        _pool = pool
    return _pool


def _start_threads(pool: ThreadPoolExecutor, gate: LockType, started: LockType) -> None:
    """Start all threads of a pool by submitting one job per thread; each job blocks until all have been submitted."""
    try:
        with contextlib.suppress(RuntimeError), gate:  # no thread can be started while the interpreter is shutting down
            for _ in range(workers()):
                pool.submit(gate.__enter__).add_done_callback(lambda _: gate.release())
    finally:
        started.release()


def _get_waiting_pool() -> ThreadPoolExecutor:
    global _waiting_pool, _seats
    if _waiting_pool is None:
        from concurrent.futures import ThreadPoolExecutor

        _seats = _new_seats()
        _waiting_pool = ThreadPoolExecutor(MAX_REQUESTS, "zarrlite-request", _state.__setattr__, ("waits", True))
    return _waiting_pool


def _new_seats() -> SimpleQueue[dict[str, Any]]:
    from queue import SimpleQueue

    seats: SimpleQueue[dict[str, Any]] = SimpleQueue()
    for _ in range(workers()):
        seats.put({})
    return seats


def _forget_pools() -> None:
    global _pool, _waiting_pool, _seats
    _pool = _waiting_pool = _seats = None
    _deferred.clear()
    _places.clear()
    _in_flight.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


def _submit(calls: Sequence[Callable[[], Any]]) -> list[Future[Any]]:
    return [_get_pool().submit(call) for call in calls]


class Place:
    """A bucket, a host or another destination of requests. All stores that use it share its request limit."""

    def __init__(self, requests: int) -> None:
        self.requests = requests  # maximum number in flight
        self._free = [None] * (requests - 1)  # one item for each thread that may join the calling thread
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()  # calls that no thread has started yet

    def submit(self, calls: Sequence[Callable[[], Any]]) -> list[Future[Any]]:
        """Submit calls to the pool. Each call starts as soon as a thread that serves this place is free."""
        from concurrent.futures import Future

        futures: list[Future[Any]] = [Future() for _ in calls]
        self._waiting.extend(zip(futures, calls, strict=True))
        count = min(len(calls), len(self._free))
        if count:
            start_new_thread(self._start, (count,))
        return futures

    def call(self, work: Callable[[], R]) -> Future[R]:
        """Submit one call, which runs even if the process begins to exit before a thread has started it.

        Raises RuntimeError while the interpreter shuts down.
        """
        from concurrent.futures import Future

        future: Future[R] = Future()
        taken, faults = allocate_lock(), []  # type: ignore[var-annotated]
        taken.acquire()
        self._waiting.append((future, work))
        start_new_thread(self._start, (1, faults.append, taken.release))
        taken.acquire()  # now the call is in the pool, so it runs before the interpreter shuts down
        if faults:
            raise faults[0]
        return future

    def _start(
        self, count: int, report: Callable[[Exception], object] = bool, done: Callable[[], object] = bool
    ) -> None:
        try:
            for _ in range(count):
                _get_waiting_pool().submit(self._join)
        except RuntimeError as error:  # no thread can be started while the interpreter is shutting down
            report(error)
        finally:
            done()

    def _join(self) -> None:
        """Run the waiting calls one by one, unless enough threads are already doing so."""
        while self._waiting:
            try:
                self._free.pop()
            except IndexError:
                return  # enough threads serve this place; they look for further calls before they stop
            try:
                self._call_next()
            finally:
                self._free.append(None)

    def _call_next(self) -> None:
        try:
            future, work = self._waiting.popleft()
        except IndexError:
            return  # another thread has taken the call
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


def place(name: Hashable, requests: int) -> Place:
    """Return the `Place` with this name, which allows at most `requests` requests to be in flight."""
    if _max_requests is not None:
        requests = min(requests, _max_requests)
    found = _places.get((name, requests))
    if found is None:
        if len(_places) >= MAX_PLACES:
            _places.clear()
        found = _places.setdefault((name, requests), Place(requests))
    return found


def submit(work: Callable[[], R], at: Place | None) -> Future[R]:
    """Call `work` on a thread that may wait for requests, within the limit of a place.

    Without a place, at most one call per core runs at the same time.
    """
    return (at or place("calls that do not wait for requests", workers() + 1)).call(work)


# Jobs of one call


def run(do: Callable[[J], object], jobs: Iterable[J], nbytes: int, place: Place | None = None, held: int = 0) -> None:
    """Run every job, on several threads if `place` is passed or if `nbytes` is at least `MIN_SHARED_BYTES`.

    `nbytes` is the amount of work in bytes. `place` is the destination of the requests for which jobs wait. `held` is
    the number of bytes that each job holds while it waits.
    """

    def work(shared: Iterator[J]) -> None:
        for job in shared:
            do(job)

    def wait(shared: Iterator[J]) -> None:
        for job in shared:
            _holding(held, do, job)

    if place is not None:
        _share(wait if held else work, iter(jobs), place.requests, place.submit)
    else:
        share(work, jobs, nbytes)


def share(work: Callable[[Iterator[J]], object], jobs: Iterable[J], nbytes: int) -> None:
    """Call `work` on each thread, with an iterator over the jobs of that thread. Uses as many threads as `run`."""
    if nbytes < MIN_SHARED_BYTES or getattr(_state, "is_worker", False):
        work(iter(jobs))
    else:
        _share(work, iter(jobs), workers(), _submit)


def _share(
    work: Callable[[Iterator[J]], object], jobs: Iterator[J], count: int, submit: Callable[..., list[Future[Any]]]
) -> None:
    first = list(itertools.islice(jobs, count))
    if len(first) < 2:
        work(itertools.chain(first, jobs))
        return
    queue = _Queue(itertools.chain(first, jobs))
    helpers = _Helpers()
    errors: list[BaseException] = []

    def help_with(work: Callable[[Iterator[J]], object]) -> None:
        try:
            _work(work, queue)
        except BaseException as error:
            errors.append(error)

    try:
        with contextlib.suppress(RuntimeError):  # no thread can be started while the interpreter is shutting down
            submit([functools.partial(helpers.call, help_with, work)] * (len(first) - 1))
        _work(work, queue)
    except BaseException:
        queue.stop()
        raise
    finally:
        helpers.stop()
    for error in errors:
        raise error


class _Helpers:
    """The helper threads of one call. None of them works for the call after it has ended."""

    def __init__(self) -> None:
        self._working: list[LockType] = []  # one lock for each thread, held while the thread works
        self._stopped = False

    def call(self, work: Callable[..., R], *args: Any) -> R | None:
        """Call `work`, or return None if the call that these threads help with has already ended."""
        working = allocate_lock()
        with working:
            self._working.append(working)
            found = None if self._stopped else work(*args)
        self._working.remove(working)
        return found

    def stop(self) -> None:
        """Prevent further threads from starting, and wait for those that are working."""
        self._stopped = True
        for working in [*self._working]:
            working.acquire()


def _holding(held: int, do: Callable[[J], R], job: J) -> R:
    """Run a job once there is room for the bytes that it holds."""
    if not held:
        return do(job)
    around = _in_flight.pop(get_ident(), 0)  # bytes held by the job in which this one runs, if any
    try:
        _board(held)
        return do(job)
    finally:
        _in_flight[get_ident()] = around
        if not around:
            _in_flight.pop(get_ident(), None)


def _board(held: int) -> None:
    """Wait until the earlier jobs of this process leave room for `held` bytes.

    This uses no lock, because an interrupt could leave it locked. After `MAX_IN_FLIGHT_WAIT` the job starts anyway.
    """
    thread = get_ident()
    _in_flight[thread] = held
    end = time.monotonic() + MAX_IN_FLIGHT_WAIT
    while not _has_room(thread) and time.monotonic() < end:
        time.sleep(IN_FLIGHT_PAUSE)


def _has_room(thread: int) -> bool:
    if sum([*_in_flight.values()]) <= MAX_IN_FLIGHT_BYTES:  # there is room for all jobs
        return True
    total = 0
    for other, held in list(_in_flight.items()):
        if other == thread:
            return total == 0 or total + held <= MAX_IN_FLIGHT_BYTES
        total += held
    return True


def work(do: Callable[..., R], *args: Any) -> R:
    """Call `do`, which decodes or encodes. A thread of the waiting pool first takes a seat; there is one seat per core.

    The calling thread of a read or write takes no seat, because an interrupt could keep it from returning the seat.
    """
    seats = _seats
    if seats is None or not getattr(_state, "waits", False):
        return do(*args)
    seat = seats.get()
    _state.waits = False
    kept.__dict__.update(seat)
    try:
        return do(*args)
    finally:
        seats.put(kept.__dict__.copy())
        kept.__dict__.clear()
        _state.waits = True


def gather(do: Callable[[J], R], jobs: Sequence[J], place: Place | None) -> list[R]:
    """Return the results of all jobs, in order. Up to `place.requests` jobs run at the same time."""
    if place is None or len(jobs) < 2:
        return [do(job) for job in jobs]
    found: list[Any] = [None] * len(jobs)

    def keep(number: int) -> None:
        found[number] = do(jobs[number])

    run(keep, range(len(jobs)), 0, place)
    return found


def ahead(
    do: Callable[[J], R], jobs: Iterable[J], place: Place | None, held: Callable[[J], int] = lambda job: 0
) -> Iterator[R]:
    """Yield the results of jobs, in order. Up to `place.requests` further jobs run ahead of time.

    `held` returns the number of bytes that a job holds while it waits.
    """
    if place is None:
        yield from map(do, jobs)
        return
    jobs = iter(jobs)
    helpers = _Helpers()
    pending: deque[tuple[Future[list[R] | None] | None, J]] = deque()
    least = max(1, place.requests // 8)  # minimum number of jobs per submission, because each one starts a thread

    def do_ahead(job: J) -> list[R]:
        return [_holding(held(job), do, job)]

    try:
        while True:
            free = place.requests - len(pending)
            new = list(itertools.islice(jobs, free)) if free >= least else []
            alone = not pending and len(new) == 1
            futures: Sequence[Future[list[R] | None] | None] = [None] * len(new)
            with contextlib.suppress(RuntimeError):  # no thread can be started while the interpreter is shutting down
                if not alone:
                    futures = place.submit([functools.partial(helpers.call, do_ahead, job) for job in new])
            pending.extend(zip(futures, new, strict=True))
            if not pending:
                return
            future, job = pending.popleft()
            found = None if future is None or future.cancel() else future.result()
            yield _holding(held(job), do, job) if found is None else found[0]
    finally:
        for future, _ in pending:
            if future is not None:
                future.cancel()
        helpers.stop()


def batches(jobs: Iterator[J], count: int) -> Iterator[list[J]]:
    """Return an iterator over the jobs, in lists of at most `count`."""
    return iter(lambda: list(itertools.islice(jobs, count)), [])


class _Queue(Iterator[J]):
    """An iterator that several threads may pull from, and that any of them may stop."""

    def __init__(self, jobs: Iterator[J]) -> None:
        self._jobs = jobs
        self._lock = Guard()
        self._stopped = False

    def __next__(self) -> J:
        with self._lock:
            if self._stopped:
                raise StopIteration
            return next(self._jobs)

    def stop(self) -> None:
        self._stopped = True


def _work(work: Callable[[Iterator[J]], object], queue: _Queue[J]) -> None:
    was_worker, _state.is_worker = getattr(_state, "is_worker", False), True
    try:
        work(queue)
    except BaseException:
        queue.stop()
        raise
    finally:
        _state.is_worker = was_worker


# Deferred jobs, such as closing large files that were replaced (stores/inode_locks.py)


def run_later(do: Callable[[J], object], job: J) -> None:
    """Call `do(job)` on a thread of the pool while the caller continues.

    The job runs immediately if the caller is a worker, or if an earlier deferred job has not finished.
    """
    if not getattr(_state, "is_worker", False) and (not _deferred or _deferred[-1][0].done()):
        with contextlib.suppress(RuntimeError):  # no thread can be started while the interpreter is shutting down
            _deferred[:] = [(_get_pool().submit(do, job), functools.partial(do, job))]
            return
    do(job)


def finish_deferred() -> bool:
    """Wait for the deferred job, or run it in this thread. Returns False if no job was deferred since the last call."""
    try:
        future, do = _deferred.pop()
    except IndexError:
        return False
    if future.cancel():  # the job has not started: perhaps all threads of the pool wait for this caller
        do()
    else:
        future.exception()
    return True
