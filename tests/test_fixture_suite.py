"""The suite as a whole: its version, its tags, its ids, and the table of statements that its cases follow from."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from typing import Any

import coverage_table
import jsonschema
import pytest
from fixture_files import CASES, DOCUMENTS, FILES, ROOT

SUITE = json.loads((ROOT / "suite.json").read_text("utf-8"))
SCHEMA = json.loads((ROOT / "schema.json").read_text("utf-8"))
IDS = [case["id"] for case in CASES]
TABLES = {table["document"]: table["statements"] for table in coverage_table.load_tables()}
STATEMENTS = [(document, statement) for document, found in TABLES.items() for statement in found]


def plain(text: str) -> str:
    """Text without markup, so that a quote is the same however it is marked up."""
    return " ".join(re.sub(r"[`*]", "", text).split()).lower()


# the suite


def test_every_file_is_loaded() -> None:
    there = [path for folder in SUITE["folders"] for path in (ROOT / folder).rglob("*.json")]
    assert sorted(there) == FILES


def test_every_kind_of_the_schema_is_run() -> None:
    kinds = {reference["$ref"].rsplit("/", 1)[1] for reference in SCHEMA["$defs"]["case"]["oneOf"]}
    assert {case["kind"] for case in CASES} == kinds
    runners = "".join(
        (ROOT.parent / f"tests/{name}.py").read_text() for name in ("test_fixtures", "test_fixture_stores")
    )
    assert set(re.findall(r'^@cases\("(\w+)"\)$', runners, re.MULTILINE)) == kinds


def test_the_suite_has_a_version_that_no_case_is_newer_than() -> None:
    assert SUITE["name"] == "zarrlite conformance suite"
    major, minor, _ = map(int, SUITE["version"].split("."))
    for case in CASES:
        assert tuple(map(int, case["tags"]["since"].split("."))) <= (major, minor), case["id"]


def test_no_id_is_used_again() -> None:
    assert not set(IDS) & set(SUITE["retired"])
    assert len(set(SUITE["retired"])) == len(SUITE["retired"])


def refuses(case: dict[str, Any]) -> bool:
    operations = case.get("operations", ())
    return "refuse" in case or "error" in case or any("error" in op for op in operations) or bool(case.get("refused"))


def test_there_are_enough_cases_and_a_third_of_them_refuse() -> None:
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
def test_the_schema_refuses_wrong_tags(tags: Any) -> None:
    case = {**CASES[0], "tags": tags}
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid({"topic": "one", "cases": [case]})


def test_cases_of_a_proposal_have_its_name_for_a_feature() -> None:
    for case in CASES:
        if case["id"].startswith("proposals/"):
            assert case["tags"]["feature"] == case["id"].split("/")[1], case["id"]


# the table of statements


def test_every_statement_has_cases_or_a_reason() -> None:
    for document, statement in STATEMENTS:
        members = {"section", "quote", "level"}
        assert set(statement) - members in ({"cases"}, {"reason"}), (document, statement["quote"])
        assert statement["level"] in ("must", "should", "may")
        assert len(statement["quote"].split()) <= 12, statement["quote"]
        assert statement.get("cases") or statement.get("reason")


def test_no_statement_stands_twice() -> None:
    for document, statements in TABLES.items():
        places = [(statement["section"], plain(statement["quote"])) for statement in statements]
        assert len(places) == len(set(places)), document


def test_every_case_that_a_statement_names_exists() -> None:
    for document, statement in STATEMENTS:
        for name in statement.get("cases", ()):
            assert coverage_table.resolve(name, IDS), (document, name)


def test_every_case_is_named_where_its_text_has_a_table() -> None:
    """By the statement that it quotes, if it quotes one word for word, else by any of its document."""
    for document, statements in TABLES.items():
        named: dict[str, set[str]] = {}
        for statement in statements:
            cases = {case_id for name in statement.get("cases", ()) for case_id in coverage_table.resolve(name, IDS)}
            named.setdefault(plain(statement["quote"]), set()).update(cases)
        anywhere = set().union(*named.values())
        for case in CASES:
            spec = case.get("spec", {})
            if spec.get("document") == document:
                assert case["id"] in named.get(plain(spec.get("quote", "")), anywhere), case["id"]


def test_every_text_of_the_core_specification_and_of_the_proposals_has_a_table() -> None:
    quoted = {case["spec"]["document"] for case in CASES if "spec" in case}
    assert set(TABLES) >= {name for name in quoted if name.startswith(("zarr-specs", "proposal", "draft"))}


def test_the_page_is_up_to_date() -> None:
    assert coverage_table.PAGE.read_text("utf-8") == coverage_table.page(), "run python -m tests.coverage_table"


# the README


def test_the_runner_of_the_readme_has_twenty_lines_and_finds_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(code.splitlines()) <= 20
    monkeypatch.chdir(ROOT.parent)
    with redirect_stdout(io.StringIO()) as out:
        exec(code, {})
    assert out.getvalue() == ""


def test_the_runner_of_the_readme_sees_all_files() -> None:
    assert sorted(ROOT.glob("[cop]*/**/*.json")) == FILES
    assert len(DOCUMENTS) == len(FILES)
