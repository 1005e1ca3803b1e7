"""Run cases against an implementation, in several processes, each of which is driven by one thread.

Rules
- All requests of a case are sent to one process, in order; after a fault, the rest of the case is skipped.
- A process that ended is restarted for the next case, unless it failed to start several times in a row.
- Operations that an implementation does not claim are not requested.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from zarrlite.errors import ZarrliteError
from zarrlite.tools.conformance.cases import Case
from zarrlite.tools.conformance.extensions import ignorable_extensions, required_extensions, unclaimed
from zarrlite.tools.conformance.judge import judge
from zarrlite.tools.conformance.process import Harness, HarnessFault
from zarrlite.tools.conformance.protocol import Json
from zarrlite.tools.conformance.results import FINE, CaseResult, Implementation, StepResult

LIMIT = 10.0  # seconds; a request that takes longer is a timeout
CASES_PER_PROCESS = 200  # cases; a process is started for each group of this size, up to the number of jobs
MAX_STARTS = 3  # failed starts in a row, after which the harness is not started again
MAX_DETAIL = 1000  # characters; longer details are cut in reports
MAX_KEPT_ANSWER = 100_000  # characters; longer answers are not kept for reports

Progress = Callable[[int], object]


class HarnessError(ZarrliteError):
    """A harness does not start; check its command and its dependencies."""


def run(
    cases: Sequence[Case],
    command: Sequence[str],
    *,
    limit: float = LIMIT,
    jobs: int | None = None,
    progress: Progress = lambda count: None,
) -> Implementation:
    """Run cases against one harness.

    `limit` is the time limit for one request in seconds. `jobs` is the maximum number of processes, by default one for
    each processor. `progress` is called with 1 after every case.
    """
    begin = time.perf_counter()
    first = Harness(command, limit)
    try:
        about = first.start()
    except HarnessFault as fault:
        raise HarnessError(f"{' '.join(command)}: {fault}") from None
    count = max(1, min(jobs or os.cpu_count() or 1, -(-len(cases) // CASES_PER_PROCESS)))
    harnesses = [first, *(Harness(command, limit) for _ in range(count - 1))]
    workers = [_Worker(harness, about, progress) for harness in harnesses]
    queue = _CaseQueue(cases)
    try:
        with ThreadPoolExecutor(count) as pool:
            try:
                by_id = dict(pair for pairs in pool.map(lambda worker: worker.run(queue), workers) for pair in pairs)
            finally:
                queue.close()
    finally:
        for worker in workers:
            worker.harness.stop()
    results = {case.id: by_id[case.id] for case in cases}
    seconds = time.perf_counter() - begin
    return Implementation(about["name"], about["version"], about["capabilities"], results, seconds)


class _CaseQueue:
    """An iterator over cases, which is shared by several threads."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = iter(cases)
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Case]:
        return self

    def __next__(self) -> Case:
        with self._lock:
            return next(self._cases)

    def close(self) -> None:
        """Drop the remaining cases, so that an interrupted run does not wait for them."""
        with self._lock:
            self._cases = iter(())


class _Worker:
    """A thread with its harness process."""

    def __init__(self, harness: Harness, about: Json, progress: Progress) -> None:
        self.harness = harness
        self.capabilities = about["capabilities"]
        self.progress = progress
        self.failed_starts = 0

    def run(self, cases: _CaseQueue) -> list[tuple[str, CaseResult]]:
        """Run cases until the queue is empty; return their ids and results."""
        results = []
        for case in cases:
            results.append((case.id, self.run_case(case)))
            self.progress(1)
        return results

    def run_case(self, case: Case) -> CaseResult:
        steps = []
        seconds = 0.0
        for step in case.steps:
            if step.op not in self.capabilities["operations"]:
                steps.append(StepResult(step.op, "unsupported", "the harness does not claim this operation"))
                continue
            required = unclaimed(required_extensions(step.document), self.capabilities)
            ignorable = unclaimed(ignorable_extensions(step.document), self.capabilities)
            try:
                self._ensure_started()
                begin = time.perf_counter()
                answer = self.harness.ask(case.id, step)
                seconds += time.perf_counter() - begin
            except HarnessFault as fault:
                steps.append(StepResult(step.op, fault.kind, str(fault)))
                break
            result, detail = judge(step, answer, required, ignorable)
            keep = result not in FINE and len(str(answer)) <= MAX_KEPT_ANSWER
            steps.append(StepResult(step.op, result, detail[:MAX_DETAIL], answer if keep else None))
        return CaseResult(tuple(steps), 1000 * seconds)

    def _ensure_started(self) -> None:
        if self.harness.running:
            return
        if self.failed_starts >= MAX_STARTS:
            raise HarnessFault("crash", f"failed to start {MAX_STARTS} times in a row and was not started again")
        self.failed_starts += 1
        self.harness.start()
        self.failed_starts = 0
