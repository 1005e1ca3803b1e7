"""Running cases over implementations: several processes for each, one thread for each process.

Rules
- A case is run by one process, its requests in order; after a fault the rest of that case is not asked.
- A process that ended is started again for the next case, unless it failed to start several times in a row.
- Operations that an implementation does not have are not asked for.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from zarrlite.errors import ZarrliteError
from zarrlite.tools.conformance.cases import Case
from zarrlite.tools.conformance.extensions import extensions_of, ignorable_of, missing
from zarrlite.tools.conformance.judge import judge
from zarrlite.tools.conformance.process import Harness, HarnessFault
from zarrlite.tools.conformance.protocol import Json
from zarrlite.tools.conformance.results import FINE, CaseResult, Implementation, StepResult

LIMIT = 10.0  # seconds for one request
CASES_PER_PROCESS = 200  # fewer are not worth another process
STARTS = 3  # failures in a row until it is left alone
LONGEST_DETAIL, LONGEST_KEPT = 1000, 100_000  # characters of an answer that go into reports

Progress = Callable[[int], object]


class HarnessError(ZarrliteError):
    """A harness does not start; see to its command, or to what it needs."""


def run(
    cases: Sequence[Case],
    command: Sequence[str],
    *,
    limit: float = LIMIT,
    jobs: int | None = None,
    progress: Progress = lambda count: None,
) -> Implementation:
    """Run cases over one harness."""
    begin = time.perf_counter()
    first = Harness(command, limit)
    try:
        about = first.start()
    except HarnessFault as fault:
        raise HarnessError(f"{' '.join(command)}: {fault}") from None
    count = max(1, min(jobs or os.cpu_count() or 1, -(-len(cases) // CASES_PER_PROCESS)))
    workers = [_Worker(first if i == 0 else Harness(command, limit), about, progress) for i in range(count)]
    queue = _Shared(cases)
    try:
        with ThreadPoolExecutor(count) as pool:
            try:
                found = dict(pair for pairs in pool.map(lambda worker: worker.run(queue), workers) for pair in pairs)
            finally:
                queue.close()
    finally:
        for worker in workers:
            worker.harness.stop()
    results = {case.id: found[case.id] for case in cases}
    seconds = time.perf_counter() - begin
    return Implementation(about["name"], about["version"], about["capabilities"], results, seconds)


class _Shared:
    """Cases that several threads take from, one by one."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = iter(cases)
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Case]:
        return self

    def __next__(self) -> Case:
        with self._lock:
            return next(self._cases)

    def close(self) -> None:
        """No more cases: who is interrupted does not wait for all of them."""
        with self._lock:
            self._cases = iter(())


class _Worker:
    """One process and its thread."""

    def __init__(self, harness: Harness, about: Json, progress: Progress) -> None:
        self.harness = harness
        self.capabilities = about["capabilities"]
        self.progress = progress
        self.failed_starts = 0

    def run(self, cases: _Shared) -> list[tuple[str, CaseResult]]:
        found = []
        for case in cases:
            found.append((case.id, self.run_case(case)))
            self.progress(1)
        return found

    def run_case(self, case: Case) -> CaseResult:
        steps = []
        seconds = 0.0
        for step in case.steps:
            if step.op not in self.capabilities["operations"]:
                steps.append(StepResult(step.op, "unsupported", "is not among the operations"))
                continue
            lacking = missing(extensions_of(step.document), self.capabilities)
            ignored = missing(ignorable_of(step.document), self.capabilities)
            try:
                self._ensure_started()
                begin = time.perf_counter()
                answer = self.harness.ask(case.id, step)
                seconds += time.perf_counter() - begin
            except HarnessFault as fault:
                steps.append(StepResult(step.op, fault.kind, str(fault)))
                break
            result, detail = judge(step, answer, lacking, ignored)
            kept = answer if result not in FINE and len(str(answer)) <= LONGEST_KEPT else None
            steps.append(StepResult(step.op, result, detail[:LONGEST_DETAIL], kept))
        return CaseResult(tuple(steps), 1000 * seconds)

    def _ensure_started(self) -> None:
        if self.harness.running:
            return
        if self.failed_starts >= STARTS:
            raise HarnessFault("crash", f"failed to start {STARTS} times in a row and was not started again")
        self.failed_starts += 1
        self.harness.start()
        self.failed_starts = 0
