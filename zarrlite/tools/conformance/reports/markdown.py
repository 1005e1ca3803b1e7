"""Markdown: a table of all results, the matrix, and every case that failed.

Rules
- A cell of the matrix shows the numbers of passed and supported cases, and the number of unsupported cases in brackets.
"""

from __future__ import annotations

import html
import re
from collections import Counter

from zarrlite.tools.conformance.cases import Corpus
from zarrlite.tools.conformance.judge import RESULTS
from zarrlite.tools.conformance.results import FINE, Implementation, Run, matrix


def to_markdown(run: Run, corpus: Corpus, *, cases: bool = True) -> str:
    """Return the report as Markdown; with `cases`, it lists every case that failed."""
    implementations = run.implementations
    ran = max((len(one.results) for one in implementations), default=0)
    lines = [f"{ran} cases of the {run.suite}, version {run.suite_version}.", ""]
    lines += _table(
        ["", *(_name(f"{one.name} {one.version}") for one in implementations)],
        [[result, *(one.count()[result] or "" for one in implementations)] for result in RESULTS],
    )
    section = ""
    for row in matrix(run, corpus):
        if row.section != section:
            section = row.section
            lines += ["", f"**{section}**", "", *_table(["feature", *(_name(one.name) for one in implementations)], [])]
        cells = [cell(one.count(row.ids)) for one in implementations]
        lines.append(_row([row.feature, *cells]))
    if cases:
        for one in implementations:
            lines += _failures(one)
    return "\n".join(lines) + "\n"


def cell(count: Counter[str]) -> str:
    """Return the text of a cell: `12/14 (3)` means that 12 of 14 supported cases passed, and 3 more are unsupported."""
    unsupported = count["unsupported"]
    supported = sum(count.values()) - unsupported
    parts = []
    if supported:
        parts.append(f"{count['pass']}/{supported}")
    if unsupported:
        parts.append(f"({unsupported})")
    return " ".join(parts)


def _failures(implementation: Implementation) -> list[str]:
    """Return a table of the failed cases. Returns an empty list if no case failed."""
    failed = [(case_id, case) for case_id, case in implementation.results.items() if case.result not in FINE]
    if not failed:
        return []
    rows: list[list[object]] = [[f"`{case_id}`", case.result, case.detail[:160]] for case_id, case in failed]
    heading = f"**{_name(f'{implementation.name} {implementation.version}')}**"
    return ["", heading, "", *_table(["case", "result", ""], rows)]


def _table(headers: list[str], rows: list[list[object]]) -> list[str]:
    return [_row(headers), _row(["---"] * len(headers)), *(_row(row) for row in rows)]


def _name(text: str) -> str:
    """Escape a name from a harness, so that Markdown and HTML show it as plain text."""
    return re.sub(r"([\\`*_\[\]])", r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _row(cells: list[object] | list[str]) -> str:
    texts = (str(value).replace("\n", " ").replace("|", "\\|").replace("<", "&lt;") for value in cells)
    return f"| {' | '.join(texts)} |"
