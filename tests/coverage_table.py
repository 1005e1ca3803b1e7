"""The coverage table: every statement of the specifications with the cases that test it.

Rules
- `spec_fixtures/statements/` holds the statements as data; `docs/coverage.md` is generated from them.
- A statement has `cases` (ids, or prefixes of ids followed by `*`), or a `reason` why no case is possible.

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
MAX_SHOWN = 4  # maximum number of entries of `cases` shown in a table row; the cases of the others are only counted

HEAD = """# Coverage

Every normative statement that concerns a reader or a writer, in the order of the texts: those of the Zarr v3 core
specification and the documents that it lists, of the registered extensions (zarr-extensions), and of the proposals.
Each has cases in [spec_fixtures](../spec_fixtures/README.md), or a reason why no case is possible. A `*` at the end of
an id matches all cases whose id begins with the rest.

`python -m tests.coverage_table` generates this page from `spec_fixtures/statements/`, which lists every case.
{statements} statements: {covered} with cases, {reasons} with a reason.
"""


def load_tables() -> list[dict[str, Any]]:
    """Load the tables of statements: the core specification first, then the documents that it lists, then others."""
    tables = [json.loads(path.read_text("utf-8")) for path in sorted(FIXTURES.glob("statements/*.json"))]
    return sorted(tables, key=lambda table: (table["document"][:4] != "zarr", "/core/" not in table["document"]))


def load_ids() -> list[str]:
    """Return the ids of all cases."""
    suite = json.loads((FIXTURES / "suite.json").read_text("utf-8"))
    files = [path for folder in suite["folders"] for path in sorted((FIXTURES / folder).rglob("*.json"))]
    return [case["id"] for path in files for case in json.loads(path.read_text("utf-8"))["cases"]]


def resolve(entry: str, ids: list[str]) -> list[str]:
    """Return the ids that an entry of `cases` matches."""
    if entry.endswith("*"):
        return [case_id for case_id in ids if case_id.startswith(entry[:-1])]
    return [case_id for case_id in ids if case_id == entry]


def cell(text: str) -> str:
    """Escape text for a table cell."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def row(statement: dict[str, Any], ids: list[str]) -> str:
    """Return the table row of a statement."""
    if "reason" in statement:
        coverage = cell(statement["reason"])
    else:
        entries = statement["cases"]
        coverage = ", ".join(f"`{entry}`" for entry in entries[:MAX_SHOWN])
        more = sum(len(resolve(entry, ids)) for entry in entries[MAX_SHOWN:])
        coverage += f" and {more} more" if more else ""
    return f"| {cell(statement['section'])} | {cell(statement['quote'])} | {statement['level']} | {coverage} |"


def lines() -> Iterator[str]:
    tables, ids = load_tables(), load_ids()
    statements = [statement for table in tables for statement in table["statements"]]
    reasons = sum("reason" in statement for statement in statements)
    yield HEAD.format(statements=len(statements), covered=len(statements) - reasons, reasons=reasons)
    for table in tables:
        yield f"## {table['document']}\n"
        yield "| section | statement | level | cases, or the reason why there are none |"
        yield "|---|---|---|---|"
        yield from (row(statement, ids) for statement in table["statements"])
        yield ""


def page() -> str:
    """Return the text of the page."""
    return "\n".join(lines()).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
