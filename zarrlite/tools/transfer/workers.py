"""Run the steps of a transfer, in this process or on the workers of a dask cluster.

Rules
- On a cluster, each step runs as one task. The pickled task contains the locations of the source and the target, but no
  open files or connections. A store that a worker cannot reach is refused.
- Steps complete in any order, but are reported in the order of the transfer, so that a journal only needs a count.
- The number of tasks under way is bounded. After a failure or Ctrl-C, the transfer waits for the tasks under way, so
  that no worker writes to the target after the transfer has returned.
- A worker that dies loses nothing: its tasks run again on another one, and each replaces the same values as before.
"""

from __future__ import annotations

import itertools
import logging
import signal
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from zarrlite import threads
from zarrlite.adapters.tasks import check_reachable
from zarrlite.errors import ArgumentError, DependencyError, StoreError, ZarrliteError
from zarrlite.stores import Store

_TASKS_PER_THREAD = 2  # tasks under way for each thread of a worker: the running one and the next one
_MIN_TASKS = 4  # minimum number of tasks under way; an adaptive cluster starts workers only if tasks wait
_CONNECT_SECONDS = 10  # seconds; timeout for connecting to a scheduler
_WORKER_SECONDS = 300  # seconds; after this time without any worker, the transfer fails

# with None as its address, the dashboard would use a fixed port, and warn if that port is taken
_QUIET: Any = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}

Step = TypeVar("Step")
Run = Callable[[Callable[[Any], None], Iterable[Any]], Generator[Any, None, None]]


@contextmanager
def connected(dask: Any, *stores: Store) -> Iterator[Run]:
    """Provide `run(work, steps)`, which runs steps, and yields each one when it and all previous steps are complete.

    `dask` is the address of a scheduler, "local", a `distributed.Client`, or None for this process. `stores` are the
    stores that the work uses.
    """
    if dask is None:
        yield _run_here
        return
    for store in stores:
        check_reachable(store)
    with _client(dask) as client:
        yield partial(_run_tasks, client)


def _run_here(work: Callable[[Step], None], steps: Iterable[Step]) -> Generator[Step, None, None]:
    for step in steps:
        work(step)
        yield step


def _run_tasks(client: Any, work: Callable[[Step], None], steps: Iterable[Step]) -> Generator[Step, None, None]:
    waiting = iter(steps)
    under_way: deque[tuple[Step, Any]] = deque()
    try:
        while True:
            limit = max(_MIN_TASKS, _TASKS_PER_THREAD * sum(client.nthreads().values()))
            for step in itertools.islice(waiting, max(0, limit - len(under_way))):
                under_way.append((step, client.submit(work, step, key=f"{type(work).__name__}-{uuid.uuid4().hex}")))
            if not under_way:
                return
            _complete(client, under_way[0][1])
            yield under_way.popleft()[0]
    finally:
        _await_tasks(client, [future for _, future in under_way])


def _complete(client: Any, future: Any) -> None:
    """Wait for a task, and raise its error as an error of this library."""
    distributed = _distributed()
    while not future.done():
        try:
            with client.as_current():
                distributed.wait(future, timeout=_WORKER_SECONDS)
        except TimeoutError:
            if not client.nthreads():
                raise StoreError(f"the cluster had no workers for {_WORKER_SECONDS} seconds; start workers") from None
    try:
        future.result()
    except ZarrliteError:
        raise
    except distributed.KilledWorker as error:
        raise StoreError(f"several workers died while they ran the same step; give them more memory: {error}") from None
    except Exception as error:
        raise StoreError(f"a worker failed: {type(error).__name__}: {error}") from error


def _await_tasks(client: Any, futures: list[Any]) -> None:
    """Wait until the workers have completed these tasks. If the cluster has no workers, cancel the tasks."""
    distributed = _distributed()
    while any(not future.done() for future in futures) and client.status == "running" and client.nthreads():
        try:
            with client.as_current():
                distributed.wait(futures, timeout=1)
        except TimeoutError:
            continue
    client.cancel(futures)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise DependencyError("dask workers need the package distributed: pip install 'zarrlite[dask]'") from None
    return distributed


@contextmanager
def _client(dask: Any) -> Iterator[Any]:
    """Connect to a scheduler, or start a cluster on this machine."""
    distributed = _distributed()
    if isinstance(dask, distributed.Client):
        yield dask
        return
    if not isinstance(dask, str):
        raise ArgumentError(f"dask must be the address of a scheduler, 'local' or a distributed.Client, not {dask!r}")
    with ExitStack() as stack:
        address: Any = dask
        if dask == "local":
            cores = threads.workers()
            with _sigint_blocked():
                cluster = distributed.LocalCluster(cores, threads_per_worker=1, host="127.0.0.1", **_QUIET)
                address = stack.enter_context(cluster)
        try:
            if dask != "local":
                # refuses a malformed address immediately; creating a client would take seconds
                distributed.comm.get_address_host_port(address)
            client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = "a running scheduler such as tcp://10.0.0.1:8786, or 'local'"
            raise ArgumentError(f"dask must be the address of {reason}, not {dask!r}: {error}") from None
        yield stack.enter_context(client)


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block SIGINT in this thread, and in the threads and processes that it starts.

    A terminal sends SIGINT to all processes of a command. Workers that handle it would end with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # must run already: starting it later would unblock SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
