"""What a run has found: the model, its JSON form, and the difference of two runs.

Rules
- A case has the worst result of its requests; what was got is kept where it is not right.
- The JSON form holds nothing that a reader of it must guess: suite, versions, capabilities, every result.
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
from zarrlite.tools.conformance.judge import RESULTS, Result, worst

Json = dict[str, Any]
FORMAT = "zarrlite conformance results"
VERSION = 1
FINE = ("pass", "unsupported")


@dataclass(frozen=True)
class StepResult:
    """One request."""

    op: str
    result: Result
    detail: str = ""
    got: Json | None = None

    def to_json(self) -> Json:
        found = {"op": self.op, "result": self.result, "detail": self.detail, "got": self.got}
        return {name: value for name, value in found.items() if value not in ("", None)}


@dataclass(frozen=True)
class CaseResult:
    """One case of one implementation."""

    steps: tuple[StepResult, ...]
    ms: float = 0.0

    @property
    def result(self) -> Result:
        return worst(step.result for step in self.steps)

    @property
    def detail(self) -> str:
        return next((step.detail for step in self.steps if step.result == self.result), "")

    def to_json(self) -> Json:
        return {"result": self.result, "ms": round(self.ms, 3), "steps": [step.to_json() for step in self.steps]}


@dataclass(frozen=True)
class Implementation:
    """One implementation and all its results, by the id of the case."""

    name: str
    version: str
    capabilities: dict[str, list[str]]
    results: dict[str, CaseResult] = field(default_factory=dict)
    seconds: float = 0.0

    def count(self, ids: Sequence[str] | None = None) -> Counter[str]:
        """How often each result is there."""
        chosen = self.results if ids is None else ids
        return Counter(self.results[name].result for name in chosen if name in self.results)


@dataclass(frozen=True)
class Run:
    """A run of some cases of a suite over some implementations."""

    suite: str
    suite_version: str
    implementations: list[Implementation]

    def to_json(self) -> Json:
        return {
            "format": FORMAT,
            "version": VERSION,
            "suite": {"name": self.suite, "version": self.suite_version},
            "implementations": [
                {
                    "name": one.name,
                    "version": one.version,
                    "capabilities": one.capabilities,
                    "seconds": round(one.seconds, 3),
                    "results": {name: result.to_json() for name, result in one.results.items()},
                }
                for one in self.implementations
            ],
        }

    @classmethod
    def from_json(cls, data: Any) -> Run:
        """The run in a JSON report."""
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
            raise ArgumentError(f"is not a JSON report of version {VERSION}")
        try:
            ones = [_implementation(one) for one in data["implementations"]]
            return cls(data["suite"]["name"], data["suite"]["version"], ones)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArgumentError(f"is a damaged JSON report: {error!r}") from None


def _implementation(one: Json) -> Implementation:
    results = {}
    for name, case in one["results"].items():
        steps = tuple(StepResult(**step) for step in case["steps"])
        if not steps or any(step.result not in RESULTS for step in steps):
            raise ValueError(name)
        results[name] = CaseResult(steps, case["ms"])
    return Implementation(one["name"], one["version"], one["capabilities"], results, one["seconds"])


def load_run(path: str | Path) -> Run:
    """A run from the file that `--json` wrote."""
    try:
        return Run.from_json(json.loads(Path(path).read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path}: {error}") from error


@dataclass(frozen=True)
class Change:
    """A case with another result than before; None: it was not run."""

    implementation: str
    case: str
    before: Result | None
    after: Result | None

    @property
    def worse(self) -> bool:
        """It passed, and does not any more."""
        return self.before == "pass" and self.after != "pass"


def diff(before: Run, after: Run) -> list[Change]:
    """What differs between two runs; implementations are the same if their names are."""
    old = {one.name: one for one in before.implementations}
    new = {one.name: one for one in after.implementations}
    changes = []
    for name in dict.fromkeys([*old, *new]):
        left = old[name].results if name in old else {}
        right = new[name].results if name in new else {}
        for case in dict.fromkeys([*left, *right]):
            was = left[case].result if case in left else None
            now = right[case].result if case in right else None
            if was != now:
                changes.append(Change(name, case, was, now))
    return changes


@dataclass(frozen=True)
class Row:
    """A feature: the ids of its cases."""

    section: str
    feature: str
    ids: list[str]


def matrix(run: Run, corpus: Corpus) -> list[Row]:
    """The features of the cases that were run, section by section, in the order of the corpus."""
    ran = {name for one in run.implementations for name in one.results}
    rows: dict[tuple[str, str], list[str]] = {}
    for case in corpus.cases:
        if case.id in ran:
            rows.setdefault((case.section, case.feature), []).append(case.id)
    order = sorted(rows, key=lambda key: (key[0], key[1]))  # core, optional, proposals
    return [Row(section, feature, rows[section, feature]) for section, feature in order]
