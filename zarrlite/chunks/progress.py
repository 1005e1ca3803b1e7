"""Progress reports for long reads, writes and copies (`progress=`).

Rules
- A callback receives the number of finished chunks (or copied values) and the total. It is called by several threads,
  one at a time, with increasing numbers. If the operation succeeds, the two numbers are equal in the last call.
- An exception that a callback raises ends the operation and reaches the caller.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self

from zarrlite.chunks.cached_chunks import CachedChunks
from zarrlite.chunks.chunks import Chunks, Job
from zarrlite.guard import Guard
from zarrlite.pipeline.elements import NDArray
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import Selection
from zarrlite.selections.sparse import SparseBatch


class Count:
    """Counts finished steps and reports them."""

    def __init__(self, progress: Callable[[int, int], object], total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self._lock = Guard()

    def advance(self, n: int = 1) -> None:
        """Count `n` more steps as done."""
        with self._lock:
            before, self._done = self._done, min(self._done + n, self._total)
            if self._done > before:
                self._progress(self._done, self._total)

    def finish(self) -> None:
        """Count all steps as done."""
        self.advance(self._total)


class ReportedChunks(Chunks):
    """Chunks whose reads and writes report their progress."""

    _count: Count | None = None  # each read or write has its own count, in a copy of this object

    def _counted(self, selection: Selection) -> tuple[Self, Count]:
        progress: Any = self.options.progress
        pipeline = self._pipeline
        if selection.plain and pipeline is not None:
            total = selection.spread(pipeline.spec.shape)
        else:
            total = sum(1 for _ in self.grid.project(selection))
        counted = copy.copy(self)
        counted._count = count = Count(progress, total)
        return counted, count

    def read(self, selection: Selection, out: NDArray) -> None:
        counted, count = self._counted(selection)
        super(ReportedChunks, counted).read(selection, out)
        count.finish()

    def write(self, selection: Selection, values: NDArray, fields: Any = None) -> None:
        counted, count = self._counted(selection)
        super(ReportedChunks, counted).write(selection, values, fields)
        count.finish()

    def _read_jobs(self, jobs: Sequence[Job], out: NDArray) -> None:
        super()._read_jobs(jobs, out)
        self._advance(len(jobs))

    def _read_sparse(self, pipeline: Pipeline, batch: SparseBatch, out: NDArray) -> None:
        super()._read_sparse(pipeline, batch, out)
        self._advance(len(batch.coords))

    def _write_jobs(self, jobs: Sequence[Job], values: NDArray, fields: Any) -> None:
        super()._write_jobs(jobs, values, fields)
        self._advance(len(jobs))

    def _advance(self, n: int) -> None:
        if self._count is not None:
            self._count.advance(n)


class ReportedCachedChunks(ReportedChunks, CachedChunks):
    """Cached chunks whose reads and writes report their progress."""
