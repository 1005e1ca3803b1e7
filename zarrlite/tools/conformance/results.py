"""The results of a run: the classes, their JSON form, and the difference between two runs.

Rules
- The result of a case is the worst result of its requests. Wrong answers are kept.
- The JSON form is complete: it contains the suite, the versions, the capabilities and every result.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zarrlite.errors import ArgumentError
from zarrlite.tools.conformance.cases import Corpus
from zarrlite.tools.conformance.judge import RESULTS, Result, worst_result

Json = dict[str, Any]
FORMAT = "zarrlite conformance results"
VERSION = 1
FINE = ("pass", "unsupported")  # results that are not failures


@dataclass(frozen=True)
class StepResult:
    """The result of one request; `got` is the answer if it is wrong."""

    op: str
    result: Result
    detail: str = ""
    got: Json | None = None

    def to_json(self) -> Json:
        members = {"op": self.op, "result": self.result, "detail": self.detail, "got": self.got}
        return {name: value for name, value in members.items() if value not in ("", None)}


@dataclass(frozen=True)
class CaseResult:
    """The results of one case with one implementation, and the milliseconds that its requests took."""

    steps: tuple[StepResult, ...]
    ms: float = 0.0

    @property
    def result(self) -> Result:
        return worst_result(step.result for step in self.steps)

    @property
    def detail(self) -> str:
        return next((step.detail for step in self.steps if step.result == self.result), "")

    def to_json(self) -> Json:
        return {"result": self.result, "ms": round(self.ms, 3), "steps": [step.to_json() for step in self.steps]}


@dataclass(frozen=True)
class Implementation:
    """One implementation, and its results by case id."""

    name: str
    version: str
    capabilities: dict[str, list[str]]
    results: dict[str, CaseResult] = field(default_factory=dict)
    seconds: float = 0.0

    def count(self, ids: Sequence[str] | None = None) -> Counter[str]:
        """Return how many cases have each result. If `ids` is given, only these cases are counted."""
        chosen = self.results if ids is None else ids
        return Counter(self.results[case_id].result for case_id in chosen if case_id in self.results)

    def to_json(self) -> Json:
        return {
            "name": self.name,
            "version": self.version,
            "capabilities": self.capabilities,
            "seconds": round(self.seconds, 3),
            "results": {case_id: result.to_json() for case_id, result in self.results.items()},
        }


@dataclass(frozen=True)
class Run:
    """Cases of a suite, run with one or more implementations."""

    suite: str
    suite_version: str
    implementations: list[Implementation]

    def to_json(self) -> Json:
        return {
            "format": FORMAT,
            "version": VERSION,
            "suite": {"name": self.suite, "version": self.suite_version},
            "implementations": [implementation.to_json() for implementation in self.implementations],
        }

    @classmethod
    def from_json(cls, data: Any) -> Run:
        """Return the run in a JSON report. Raises ArgumentError if `data` is not a report."""
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
            raise ArgumentError(f"must be a JSON report of version {VERSION}, written by `run --json FILE`")
        try:
            implementations = [_parse_implementation(members) for members in data["implementations"]]
            return cls(data["suite"]["name"], data["suite"]["version"], implementations)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArgumentError(f"is a damaged JSON report: {error!r}") from None


def _parse_implementation(data: Json) -> Implementation:
    results = {}
    for case_id, case in data["results"].items():
        steps = tuple(StepResult(**step) for step in case["steps"])
        if not steps or any(step.result not in RESULTS for step in steps):
            raise ValueError(case_id)
        results[case_id] = CaseResult(steps, case["ms"])
    return Implementation(data["name"], data["version"], data["capabilities"], results, data["seconds"])


def load_run(path: str | Path) -> Run:
    """Load a run from a file written by `run --json FILE`."""
    try:
        return Run.from_json(json.loads(Path(path).read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path}: {error}") from error


@dataclass(frozen=True)
class Change:
    """A case whose result differs between two runs; a result is None if the case was not run."""

    implementation: str
    case: str
    before: Result | None
    after: Result | None

    @property
    def worse(self) -> bool:
        """Whether the case passed before and does not pass now."""
        return self.before == "pass" and self.after != "pass"


def diff(before: Run, after: Run) -> list[Change]:
    """Return the cases whose results differ between two runs; implementations are matched by name."""
    old = {implementation.name: implementation.results for implementation in before.implementations}
    new = {implementation.name: implementation.results for implementation in after.implementations}
    changes = []
    for name in dict.fromkeys([*old, *new]):
        old_results, new_results = old.get(name, {}), new.get(name, {})
        for case_id in dict.fromkeys([*old_results, *new_results]):
            was = old_results[case_id].result if case_id in old_results else None
            now = new_results[case_id].result if case_id in new_results else None
            if was != now:
                changes.append(Change(name, case_id, was, now))
    return changes


@dataclass(frozen=True)
class Row:
    """A row of the matrix: a feature and the ids of its cases."""

    section: str
    feature: str
    ids: list[str]


def matrix(run: Run, corpus: Corpus) -> list[Row]:
    """Return a row for each feature with at least one case in the run, sorted by section and feature."""
    ran = {case_id for implementation in run.implementations for case_id in implementation.results}
    ids: dict[tuple[str, str], list[str]] = {}
    for case in corpus.cases:
        if case.id in ran:
            ids.setdefault((case.section, case.feature), []).append(case.id)
    return [Row(section, feature, ids[section, feature]) for section, feature in sorted(ids)]
