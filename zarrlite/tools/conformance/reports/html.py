"""One page of HTML with everything in it: the matrix as a table, and the cases behind its cells.

Rules
- Nothing is loaded from anywhere. The matrix is plain HTML; what a click opens is compressed JSON in the page.
- All text of cases and answers reaches the page as text: escaped here, and by textContent in page.js.
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

_HERE = Path(__file__).parent
_SECTIONS = {
    "core": "Core specification",
    "optional": "Registered extensions",
    "proposals": "Proposed extensions",
}


def to_html(run: Run, corpus: Corpus) -> str:
    """The report as a text."""
    rows = matrix(run, corpus)
    page = (_HERE / "page.html").read_text("utf-8")
    parts = {
        "STYLE": (_HERE / "page.css").read_text("utf-8"),
        "SCRIPT": (_HERE / "page.js").read_text("utf-8"),
        "SUITE": html.escape(
            f"{sum(len(row.ids) for row in rows)} cases of the {run.suite}, version {run.suite_version}"
        ),
        "CARDS": "\n".join(_card(one) for one in run.implementations),
        "LEGEND": "\n".join(f'<span class="chip {result}">{result}</span>' for result in RESULTS),
        "MATRIX": _matrix(run, rows),
        "DATA": _pack(_data(run, corpus, rows)),
    }
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text, 1)
    return page


def _card(one: Implementation) -> str:
    count = one.count()
    ran = sum(count.values()) - count["unsupported"]
    share = f"{100 * count['pass'] / ran:.1f} %" if ran else "none"
    return (
        f'<div class="card"><h2>{html.escape(one.name)} <small>{html.escape(one.version)}</small></h2>'
        f"<p><b>{share}</b> of {ran}</p>{_bar(count)}"
        f"<p class=dim>{count['unsupported']} unsupported · {one.seconds:.1f} s</p></div>"
    )


def _bar(count: Counter[str]) -> str:
    parts = (f'<i class="{r}" style="flex-grow:{count[r]}" title="{count[r]} {r}"></i>' for r in RESULTS if count[r])
    return f'<span class="bar">{"".join(parts)}</span>'


def _matrix(run: Run, rows: list[Row]) -> str:
    names = "".join(f"<th scope=col>{html.escape(one.name)}</th>" for one in run.implementations)
    lines = [f"<thead><tr><th scope=col>feature</th>{names}</tr></thead>"]
    section = ""
    for i, row in enumerate(rows):
        if row.section != section:
            section = row.section
            span = len(run.implementations) + 1
            lines.append(f"<tbody><tr class=section><th colspan={span}>{_SECTIONS[section]}</th></tr>")
        cells = "".join(_cell(i, j, row, one) for j, one in enumerate(run.implementations))
        lines.append(f"<tr><th scope=row>{html.escape(row.feature)}</th>{cells}</tr>")
    return "\n".join(lines)


def _cell(i: int, j: int, row: Row, one: Implementation) -> str:
    count = one.count(row.ids)
    label = html.escape(f"{row.feature}, {one.name}: " + ", ".join(f"{n} {r}" for r, n in count.items()))
    nothing = " none" if count.keys() <= {"unsupported"} else ""
    button = f'<button class="cell{nothing}" data-row={i} data-column={j} aria-label="{label}" title="{label}">'
    return f"<td>{button}<span>{cell(count)}</span>{_bar(count)}</button></td>"


def _data(run: Run, corpus: Corpus, rows: list[Row]) -> dict[str, Any]:
    ran = {name for row in rows for name in row.ids}
    return {
        "rows": [[row.section, row.feature, row.ids] for row in rows],
        "cases": {case.id: _view(case) for case in corpus.cases if case.id in ran},
        "implementations": [
            {
                "name": one.name,
                "version": one.version,
                "results": {name: [c.result, [s.to_json() for s in c.steps]] for name, c in one.results.items()},
            }
            for one in run.implementations
        ],
    }


def _view(case: Case) -> dict[str, Any]:
    """A case as the page shows it: documents as JSON, everything else as base64."""
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
        documents |= {"zarr.json": step.request["document"]} if "document" in step.request else {}
    names = ("description", "kind", "tags", "spec", "ruling")
    view = {name: case.data[name] for name in names if name in case.data}
    return {**view, "documents": documents, "values": values, "asks": [_ask(step) for step in case.steps]}


def _ask(step: Step) -> dict[str, Any]:
    request = {k: v for k, v in step.request.items() if k not in ("store", "document") and v != ""}
    return {"op": step.op, "request": request, "expected": step.expected}


def _pack(data: dict[str, Any]) -> str:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode("ascii")
