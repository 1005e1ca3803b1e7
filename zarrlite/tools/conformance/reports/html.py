"""A self-contained HTML page: the matrix of results, in which a click on a cell shows its cases.

Rules
- The page loads nothing. The matrix is static HTML; the cases, which a click shows, are embedded as compressed JSON.
- Text from cases and answers never becomes markup: it is escaped here, and set as textContent in page.js.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections import Counter
from pathlib import Path
from typing import Any

from zarrlite.tools.conformance.cases import Case, Corpus
from zarrlite.tools.conformance.judge import RESULTS
from zarrlite.tools.conformance.reports.markdown import cell
from zarrlite.tools.conformance.results import Implementation, Row, Run, matrix
from zarrlite.tools.conformance.steps import Step

_FOLDER = Path(__file__).parent
_SECTIONS = {
    "core": "Core specification",
    "optional": "Registered extensions",
    "proposals": "Proposed extensions",
}


def to_html(run: Run, corpus: Corpus) -> str:
    """Return the HTML of the report."""
    rows = matrix(run, corpus)
    case_count = sum(len(row.ids) for row in rows)
    page = (_FOLDER / "page.html").read_text("utf-8")
    parts = {
        "STYLE": (_FOLDER / "page.css").read_text("utf-8"),
        "SCRIPT": (_FOLDER / "page.js").read_text("utf-8"),
        "SUITE": html.escape(f"{case_count} cases of the {run.suite}, version {run.suite_version}"),
        "CARDS": "\n".join(_card(implementation) for implementation in run.implementations),
        "LEGEND": "\n".join(f'<span class="chip {result}">{result}</span>' for result in RESULTS),
        "MATRIX": _matrix(run, rows),
        "DATA": _compress(_data(run, corpus, rows)),
    }
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text, 1)
    return page


def _card(implementation: Implementation) -> str:
    count = implementation.count()
    supported = sum(count.values()) - count["unsupported"]
    share = f"{100 * count['pass'] / supported:.1f} %" if supported else "none"
    name, version = html.escape(implementation.name), html.escape(implementation.version)
    return (
        f'<div class="card"><h2>{name} <small>{version}</small></h2>'
        f"<p><b>{share}</b> of {supported}</p>{_bar(count)}"
        f"<p class=dim>{count['unsupported']} unsupported · {implementation.seconds:.1f} s</p></div>"
    )


def _bar(count: Counter[str]) -> str:
    parts = (f'<i class="{r}" style="flex-grow:{count[r]}" title="{count[r]} {r}"></i>' for r in RESULTS if count[r])
    return f'<span class="bar">{"".join(parts)}</span>'


def _matrix(run: Run, rows: list[Row]) -> str:
    implementations = run.implementations
    names = "".join(f"<th scope=col>{html.escape(one.name)}</th>" for one in implementations)
    lines = [f"<thead><tr><th scope=col>feature</th>{names}</tr></thead>"]
    section = ""
    for i, row in enumerate(rows):
        if row.section != section:
            section = row.section
            span = len(implementations) + 1
            lines.append(f"<tbody><tr class=section><th colspan={span}>{_SECTIONS[section]}</th></tr>")
        cells = "".join(_cell(i, j, row, one) for j, one in enumerate(implementations))
        lines.append(f"<tr><th scope=row>{html.escape(row.feature)}</th>{cells}</tr>")
    return "\n".join(lines)


def _cell(i: int, j: int, row: Row, implementation: Implementation) -> str:
    count = implementation.count(row.ids)
    counts = ", ".join(f"{n} {result}" for result, n in count.items())
    label = html.escape(f"{row.feature}, {implementation.name}: {counts}")
    css_class = "cell none" if count.keys() <= {"unsupported"} else "cell"
    button = f'<button class="{css_class}" data-row={i} data-column={j} aria-label="{label}" title="{label}">'
    return f"<td>{button}<span>{cell(count)}</span>{_bar(count)}</button></td>"


def _data(run: Run, corpus: Corpus, rows: list[Row]) -> dict[str, Any]:
    """Return the data that page.js shows."""
    ran = {case_id for row in rows for case_id in row.ids}
    return {
        "rows": [[row.section, row.feature, row.ids] for row in rows],
        "cases": {case.id: _case_data(case) for case in corpus.cases if case.id in ran},
        "implementations": [_implementation_data(implementation) for implementation in run.implementations],
    }


def _implementation_data(implementation: Implementation) -> dict[str, Any]:
    results = {
        case_id: [case.result, [step.to_json() for step in case.steps]]
        for case_id, case in implementation.results.items()
    }
    return {"name": implementation.name, "version": implementation.version, "results": results}


def _case_data(case: Case) -> dict[str, Any]:
    """Return a case with its documents as JSON and all other values as base64."""
    documents, values = {}, {}
    for step in case.steps:
        for key, value in step.request["store"].items():
            try:
                content = json.loads(base64.b64decode(value)) if key.endswith("zarr.json") else None
            except (ValueError, RecursionError):
                content = None
            if isinstance(content, dict) and "text_base64" not in case.data:
                documents[key] = content
            else:
                values[key] = value
        if "document" in step.request:
            documents["zarr.json"] = step.request["document"]
    names = ("description", "kind", "tags", "spec", "ruling")
    members = {name: case.data[name] for name in names if name in case.data}
    return {**members, "documents": documents, "values": values, "steps": [_step_data(step) for step in case.steps]}


def _step_data(step: Step) -> dict[str, Any]:
    request = {k: v for k, v in step.request.items() if k not in ("store", "document") and v != ""}
    return {"op": step.op, "request": request, "expected": step.expected}


def _compress(data: dict[str, Any]) -> str:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode("ascii")
