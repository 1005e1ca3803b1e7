"""The cases: found, loaded and selected.

Rules
- The corpus is data. In a checkout it is `spec_fixtures/`; an installed package has a copy beside this file.
- A filter is a pattern for ids, or `name=value` with a tag, `kind` or `extension`; several filters must all hold.
"""

from __future__ import annotations

import difflib
import fnmatch
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from zarrlite.errors import ArgumentError
from zarrlite.tools.conformance.extensions import extensions_of
from zarrlite.tools.conformance.steps import Step, steps_of

Json = dict[str, Any]
FOLDERS = ("core", "optional", "proposals")
LEVELS = ("must", "should", "may")
_PLACES = (Path(__file__).parent / "corpus", Path(__file__).parents[3] / "spec_fixtures")


@dataclass(frozen=True, eq=False)
class Case:
    """One case of the corpus, as it stands in its file."""

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
        """Core, optional or proposals."""
        return self.id.split("/", 1)[0]

    @cached_property
    def steps(self) -> list[Step]:
        return steps_of(self.data)

    @cached_property
    def extensions(self) -> set[str]:
        """The names of all extensions that its documents use."""
        return {name for step in self.steps for _, name in extensions_of(step.document)}


@dataclass(frozen=True, eq=False)
class Corpus:
    """All cases, in the order of the files."""

    name: str
    version: str
    cases: list[Case]

    def find(self, name: str) -> Case:
        """The case with this id."""
        for case in self.cases:
            if case.id == name:
                return case
        near = difflib.get_close_matches(name, [case.id for case in self.cases], 1)
        hint = f"{near[0]!r} is one" if near else "`zarrlite conformance list` has all"
        raise ArgumentError(f"there is no case {name!r}; {hint}")

    def select(self, filters: Sequence[str]) -> list[Case]:
        """The cases for which all filters hold."""
        tests = [_parse_filter(text) for text in filters]
        return [case for case in self.cases if all(_holds(case, name, value) for name, value in tests)]


def load(folder: str | Path | None = None) -> Corpus:
    """The corpus in a folder; without one, that of this installation."""
    if folder is None:
        root = next((place for place in _PLACES if place.is_dir()), None)
        if root is None:
            raise ArgumentError("no corpus is installed; give its folder with --corpus")
    else:
        root = Path(folder)
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


def _check(case: Case) -> None:
    """A case of somebody else's corpus may be anything; what is used of it is looked at before anything is run."""
    try:
        right = case.steps and case.level in LEVELS and case.section in FOLDERS and isinstance(case.feature, str)
        right = right and isinstance(case.data["description"], str)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ArgumentError(f"{case.data!r:.80} is not a case: {error!r}") from error
    if not right:
        raise ArgumentError(f"{case.id} is not a case that can be run")


def _parse_filter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        return "id", text
    if name not in ("feature", "level", "since", "kind", "extension"):
        raise ArgumentError(f"{text!r} filters by {name!r}; there are feature, level, since, kind and extension")
    return name, value


def _holds(case: Case, name: str, value: str) -> bool:
    if name == "id":
        return fnmatch.fnmatchcase(case.id, value) or case.id.startswith(value)
    values: Iterable[str] = case.extensions if name == "extension" else [case.tags.get(name, case.kind)]
    return any(fnmatch.fnmatchcase(found, value) for found in values)
