"""The coverage table: every statement of the specifications, and the cases that follow from it.

Rules
- `spec_fixtures/statements/` holds the statements as data; `docs/coverage.md` is made of them and never edited.
- A statement has `cases` (ids, or beginnings of ids with `*`), or a `reason` why no case is possible.

`python -m tests.coverage_table` writes the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "spec_fixtures"
PAGE = ROOT / "docs/coverage.md"
SHOWN = 4  # cases that a row of the table names

HEAD = """# Coverage

Every normative statement that concerns a reader or a writer, in the order of the texts: those of the Zarr v3 core
specification and the documents that it lists, and those of the five proposals. Each has cases in
[spec_fixtures](../spec_fixtures/README.md), or a reason why no case is possible. A `*` stands
for all cases whose id begins so.

This page is made of `spec_fixtures/statements/`, where every case is listed, by `python -m tests.coverage_table`.
{statements} statements: {covered} with cases, {reasons} with a reason.
"""


def load_tables() -> list[dict[str, Any]]:
    """The tables of statements: core first, then its parts, then the proposals."""
    tables = [json.loads(path.read_text("utf-8")) for path in sorted(FIXTURES.glob("statements/*.json"))]
    return sorted(tables, key=lambda table: (table["document"][:4] != "zarr", "/core/" not in table["document"]))


def load_ids() -> list[str]:
    """The ids of all cases."""
    suite = json.loads((FIXTURES / "suite.json").read_text("utf-8"))
    files = [path for folder in suite["folders"] for path in sorted((FIXTURES / folder).rglob("*.json"))]
    return [case["id"] for path in files for case in json.loads(path.read_text("utf-8"))["cases"]]


def resolve(name: str, ids: list[str]) -> list[str]:
    """The ids that an entry of `cases` means."""
    if name.endswith("*"):
        return [case_id for case_id in ids if case_id.startswith(name[:-1])]
    return [case_id for case_id in ids if case_id == name]


def cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def row(statement: dict[str, Any], ids: list[str]) -> str:
    """One line of a table."""
    if "reason" in statement:
        last = cell(statement["reason"])
    else:
        names = statement["cases"]
        last = ", ".join(f"`{name}`" for name in names[:SHOWN])
        more = sum(len(resolve(name, ids)) for name in names[SHOWN:])
        last += f" and {more} more" if more else ""
    return f"| {cell(statement['section'])} | {cell(statement['quote'])} | {statement['level']} | {last} |"


def lines() -> Iterator[str]:
    tables, ids = load_tables(), load_ids()
    statements = [statement for table in tables for statement in table["statements"]]
    reasons = sum("reason" in statement for statement in statements)
    yield HEAD.format(statements=len(statements), covered=len(statements) - reasons, reasons=reasons)
    for table in tables:
        yield f"## {table['document']}\n"
        yield "| section | statement | level | cases, or why there are none |"
        yield "|---|---|---|---|"
        yield from (row(statement, ids) for statement in table["statements"])
        yield ""


def page() -> str:
    """The whole page."""
    return "\n".join(lines()).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
