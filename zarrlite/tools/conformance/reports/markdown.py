"""Markdown: a table of all results, the matrix, and every case that did not pass.

Rules
- A cell of the matrix is what passed of what was run; what is not supported stands apart, in brackets.
"""

from __future__ import annotations

from collections import Counter

from zarrlite.tools.conformance.cases import Corpus
from zarrlite.tools.conformance.judge import RESULTS
from zarrlite.tools.conformance.results import FINE, Implementation, Run, matrix


def to_markdown(run: Run, corpus: Corpus, *, cases: bool = True) -> str:
    """The report as a text; with `cases` it lists every one that did not pass."""
    ones = run.implementations
    ran = max((len(one.results) for one in ones), default=0)
    lines = [f"{ran} cases of the {run.suite}, version {run.suite_version}.", ""]
    lines += _table(
        ["", *(f"{one.name} {one.version}" for one in ones)],
        [[result, *(one.count()[result] or "" for one in ones)] for result in RESULTS],
    )
    section = ""
    for row in matrix(run, corpus):
        if row.section != section:
            section = row.section
            lines += ["", f"**{section}**", "", *_table(["feature", *(one.name for one in ones)], [])]
        cells = [cell(one.count(row.ids)) for one in ones]
        lines.append(_row([row.feature, *cells]))
    if cases:
        for one in ones:
            lines += _failures(one)
    return "\n".join(lines) + "\n"


def cell(count: Counter[str]) -> str:
    """Passed of all that is supported: `12/14`; `(3)` are not supported."""
    total, apart = sum(count.values()), count["unsupported"]
    if not total:
        return ""
    parts = [f"{count['pass']}/{total - apart}"] if total > apart else []
    return " ".join([*parts, *([f"({apart})"] if apart else [])])


def _failures(one: Implementation) -> list[str]:
    failed = [(name, case) for name, case in one.results.items() if case.result not in FINE]
    if not failed:
        return []
    lines = ["", f"**{one.name} {one.version}**", ""]
    return lines + _table(
        ["case", "result", ""], [[f"`{name}`", case.result, case.detail[:160]] for name, case in failed]
    )


def _table(headers: list[str], rows: list[list[object]]) -> list[str]:
    return [_row(headers), _row(["---"] * len(headers)), *(_row(row) for row in rows)]


def _row(cells: list[object] | list[str]) -> str:
    texts = (str(value).replace("\n", " ").replace("|", "\\|").replace("<", "&lt;") for value in cells)
    return f"| {' | '.join(texts)} |"
