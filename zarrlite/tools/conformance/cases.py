"""Find, load and select the cases of the corpus.

Rules
- The corpus is a folder of data: in a checkout `spec_fixtures/`, otherwise the package zarrlite-conformance.
- A filter is a pattern for ids, or `name=pattern` where name is a tag, `kind` or `extension`; a case must match all
  filters.
"""

from __future__ import annotations

import difflib
import fnmatch
import importlib.util
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from zarrlite.errors import ArgumentError, DependencyError
from zarrlite.tools.conformance.extensions import required_extensions
from zarrlite.tools.conformance.steps import Step, steps_of

Json = dict[str, Any]
FOLDERS = ("core", "optional", "proposals")
LEVELS = ("must", "should", "may")
FILTERS = ("feature", "level", "since", "kind", "extension")
_CHECKOUT = Path(__file__).parents[3] / "spec_fixtures"
_PACKAGE = "zarrlite_conformance"  # a package that contains data, but no modules


@dataclass(frozen=True, eq=False)
class Case:
    """One case of the corpus; `data` is its JSON object in the corpus."""

    data: Json

    @property
    def id(self) -> str:
        return str(self.data["id"])

    @property
    def kind(self) -> str:
        return str(self.data["kind"])

    @property
    def tags(self) -> dict[str, str]:
        return dict(self.data["tags"])

    @property
    def feature(self) -> str:
        return self.tags["feature"]

    @property
    def level(self) -> str:
        return self.tags["level"]

    @property
    def section(self) -> str:
        """The top-level folder that the case is in: core, optional or proposals."""
        return self.id.split("/", 1)[0]

    @cached_property
    def steps(self) -> list[Step]:
        return steps_of(self.data)

    @cached_property
    def extensions(self) -> set[str]:
        """The names of all extensions that the documents of the case use."""
        return {name for step in self.steps for _, name in required_extensions(step.document)}


@dataclass(frozen=True, eq=False)
class Corpus:
    """All cases, in the order of the files."""

    name: str
    version: str
    cases: list[Case]

    def find(self, case_id: str) -> Case:
        """Return the case with this id."""
        for case in self.cases:
            if case.id == case_id:
                return case
        similar = difflib.get_close_matches(case_id, [case.id for case in self.cases], 1)
        hint = f"did you mean {similar[0]!r}?" if similar else "`zarrlite conformance list` shows all ids"
        raise ArgumentError(f"no case has the id {case_id!r}; {hint}")

    def select(self, filters: Sequence[str]) -> list[Case]:
        """Return the cases that match all filters."""
        parsed = [_parse_filter(text) for text in filters]
        return [case for case in self.cases if all(_matches(case, name, pattern) for name, pattern in parsed)]


def load(folder: str | Path | None = None) -> Corpus:
    """Load the corpus in a folder; by default the installed corpus."""
    root = _installed() if folder is None else Path(folder)
    try:
        suite = json.loads((root / "suite.json").read_text("utf-8"))
        paths = [path for name in FOLDERS for path in sorted((root / name).rglob("*.json"))]
        documents = [json.loads(path.read_text("utf-8")) for path in paths]
        cases = [Case(case) for document in documents for case in document["cases"]]
        corpus = Corpus(suite["name"], suite["version"], cases)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"{root} is not a corpus: {error}") from error
    for case in cases:
        _check(case)
    return corpus


def _installed() -> Path:
    """Return the folder of the corpus in this checkout, or in the installed package."""
    if _CHECKOUT.is_dir():
        return _CHECKOUT
    spec = importlib.util.find_spec(_PACKAGE)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    if not folders:
        raise DependencyError(
            "the cases are not installed: pip install zarrlite-conformance, or pass their folder with --corpus"
        )
    return Path(folders[0])


def _check(case: Case) -> None:
    """Check the members that the runner will use, since a user's corpus may contain anything."""
    try:
        known = case.level in LEVELS and case.section in FOLDERS
        texts = isinstance(case.feature, str) and isinstance(case.data["description"], str)
        valid = bool(case.steps) and known and texts
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ArgumentError(f"{case.data!r:.80} is not a case: {error!r}") from error
    if not valid:
        raise ArgumentError(
            f"{case.id} is not a case: it must have steps, a level ({', '.join(LEVELS)}), a feature, "
            f"a description, and an id that starts with {', '.join(FOLDERS)}"
        )


def _parse_filter(text: str) -> tuple[str, str]:
    """Split a filter into a name and the pattern that the value must match."""
    name, equals, pattern = text.partition("=")
    if not equals:
        return "id", text
    if name not in FILTERS:
        raise ArgumentError(f"{text!r} must not filter by {name!r}; use one of {', '.join(FILTERS)}")
    return name, pattern


def _matches(case: Case, name: str, pattern: str) -> bool:
    if name == "id":
        return fnmatch.fnmatchcase(case.id, pattern) or case.id.startswith(pattern)
    values: Iterable[str] = case.extensions if name == "extension" else [case.tags.get(name, case.kind)]
    return any(fnmatch.fnmatchcase(value, pattern) for value in values)
