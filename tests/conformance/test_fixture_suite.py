"""The suite as a whole: its version, tags and ids, and the statements that its cases test."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import coverage_table
import jsonschema
import pytest
from fixture_files import CASES, DOCUMENTS, FILES, ROOT

SUITE = json.loads((ROOT / "suite.json").read_text("utf-8"))
SCHEMA = json.loads((ROOT / "schema.json").read_text("utf-8"))
IDS = [case["id"] for case in CASES]
TABLES = {table["document"]: table["statements"] for table in coverage_table.load_tables()}
STATEMENTS = [(document, statement) for document, statements in TABLES.items() for statement in statements]


def without_markup(text: str) -> str:
    """Return text in lower case without markup and extra spaces, so that markup does not make quotes differ."""
    return " ".join(re.sub(r"[`*]", "", text).split()).lower()


# the suite


def test_every_file_of_the_suite_is_loaded() -> None:
    paths = [path for folder in SUITE["folders"] for path in (ROOT / folder).rglob("*.json")]
    assert sorted(paths) == FILES


def test_every_kind_of_case_in_the_schema_is_run() -> None:
    kinds = {reference["$ref"].rsplit("/", 1)[1] for reference in SCHEMA["$defs"]["case"]["oneOf"]}
    assert {case["kind"] for case in CASES} == kinds
    files = [Path(__file__).with_name(name) for name in ("test_fixtures.py", "test_fixture_stores.py")]
    code = "".join(path.read_text("utf-8") for path in files)
    assert set(re.findall(r'^@cases\("(\w+)"\)$', code, re.MULTILINE)) == kinds


def test_no_case_is_newer_than_the_suite() -> None:
    assert SUITE["name"] == "zarrlite conformance suite"
    major, minor, _ = map(int, SUITE["version"].split("."))
    for case in CASES:
        assert tuple(map(int, case["tags"]["since"].split("."))) <= (major, minor), case["id"]


def test_retired_ids_are_not_reused() -> None:
    assert not set(IDS) & set(SUITE["retired"])
    assert len(set(SUITE["retired"])) == len(SUITE["retired"])


def refuses(case: dict[str, Any]) -> bool:
    operations = case.get("operations", ())
    return "refuse" in case or "error" in case or any("error" in op for op in operations) or bool(case.get("refused"))


def test_there_are_at_least_500_cases_and_a_third_of_them_are_refusals() -> None:
    assert len(CASES) >= 500
    assert 3 * sum(map(refuses, CASES)) >= len(CASES)


# tags


@pytest.mark.parametrize(
    "tags",
    [
        None,
        {"feature": "pad", "level": "must"},
        {"feature": "pad", "level": "shall", "since": "1.0"},
        {"feature": "Pad", "level": "must", "since": "1.0"},
        {"feature": "two words", "level": "must", "since": "1.0"},
        {"feature": "pad", "level": "must", "since": "1.0.0"},
        {"feature": "pad", "level": "must", "since": "1.0", "more": 1},
    ],
    ids=str,
)
def test_schema_refuses_invalid_tags(tags: Any) -> None:
    case = {**CASES[0], "tags": tags}
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid({"topic": "one", "cases": [case]})


def test_feature_of_a_proposal_case_is_the_proposal() -> None:
    for case in CASES:
        if case["id"].startswith("proposals/"):
            assert case["tags"]["feature"] == case["id"].split("/")[1], case["id"]


# statements


def test_every_statement_has_cases_or_a_reason() -> None:
    for document, statement in STATEMENTS:
        members = {"section", "quote", "level"}
        assert set(statement) - members in ({"cases"}, {"reason"}), (document, statement["quote"])
        assert statement["level"] in ("must", "should", "may")
        assert len(statement["quote"].split()) <= 12, statement["quote"]
        assert statement.get("cases") or statement.get("reason")


def test_statements_are_unique_within_a_document() -> None:
    for document, statements in TABLES.items():
        places = [(statement["section"], without_markup(statement["quote"])) for statement in statements]
        assert len(places) == len(set(places)), document


def test_every_case_named_by_a_statement_exists() -> None:
    for document, statement in STATEMENTS:
        for name in statement.get("cases", ()):
            assert coverage_table.resolve(name, IDS), (document, name)


def test_every_case_is_named_by_a_statement_of_its_document() -> None:
    """A statement must name all cases that quote it.

    Every other case must be named by some statement from the specification document that the case cites.
    """
    for document, statements in TABLES.items():
        named_by_quote: dict[str, set[str]] = {}
        for statement in statements:
            cases = {case_id for name in statement.get("cases", ()) for case_id in coverage_table.resolve(name, IDS)}
            named_by_quote.setdefault(without_markup(statement["quote"]), set()).update(cases)
        named_anywhere = set().union(*named_by_quote.values())
        for case in CASES:
            spec = case.get("spec", {})
            if spec.get("document") == document:
                assert case["id"] in named_by_quote.get(without_markup(spec.get("quote", "")), named_anywhere), case[
                    "id"
                ]


def test_every_quoted_document_has_statements() -> None:
    quoted = {case["spec"]["document"] for case in CASES if "spec" in case}
    assert set(TABLES) >= {name for name in quoted if not name.startswith("RFC")}


def test_coverage_page_is_up_to_date() -> None:
    assert coverage_table.PAGE.read_text("utf-8") == coverage_table.page(), "run python -m tests.coverage_table"


# the README


def test_runner_in_the_readme_has_at_most_20_lines_and_finds_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(code.splitlines()) <= 20
    monkeypatch.chdir(ROOT.parent)
    with redirect_stdout(io.StringIO()) as out:
        exec(code, {})
    assert out.getvalue() == ""


def test_runner_in_the_readme_finds_all_files() -> None:
    assert sorted(ROOT.glob("[cop]*/**/*.json")) == FILES
    assert len(DOCUMENTS) == len(FILES)
