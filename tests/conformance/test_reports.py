"""The reports of a run; the HTML page is tested in a real browser."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from zarrlite.errors import ArgumentError
from zarrlite.tools.conformance.reports.html import to_html
from zarrlite.tools.conformance.reports.junit import to_junit
from zarrlite.tools.conformance.reports.markdown import to_markdown
from zarrlite.tools.conformance.results import (
    CaseResult,
    Change,
    Implementation,
    Run,
    StepResult,
    diff,
    load_run,
    matrix,
)

CASES = {
    "core/arrays/edge-chunk": "wrong-data",
    "core/array/shape/missing": "accepted-invalid",
    "core/json/latin-1": "pass",
    "optional/zstd/level-true": "unsupported",
    "proposals/pad/data/zeros": "crash",
}
HOSTILE_TEXT = "<script>alert(1)</script>\0|\ud800"


def implementation(name: str, **replaced: str) -> Implementation:
    """Return an implementation with the results of CASES; `replaced` maps results to their replacements."""
    results = {}
    for case, result in CASES.items():
        step = StepResult("read", replaced.get(result.replace("-", "_"), result), HOSTILE_TEXT, {"shape": []})
        results[case] = CaseResult((step,), 2)
    return Implementation(name, "1.0", {"operations": ["read"]}, results, 0.5)


@pytest.fixture
def run() -> Run:
    return Run("suite", "1.0.0", [implementation("bad <one>"), implementation("good", wrong_data="pass", crash="pass")])


def test_json_report_is_loaded_as_the_same_run(run, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run.to_json()))
    assert load_run(path) == run


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "zarrlite conformance results", "version": 2}',
        '{"format": "zarrlite conformance results", "version": 1}',
    ],
)
def test_file_that_is_not_a_json_report_is_refused(text, tmp_path):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ArgumentError, match=r"run\.json: "):
        load_run(tmp_path / "run.json")


def test_junit_has_a_suite_for_each_implementation_and_a_tag_for_each_result(run):
    root = ElementTree.fromstring(to_junit(run))
    counts = [[suite.get(n) for n in ("name", "tests", "failures", "errors", "skipped")] for suite in root]
    assert counts == [["bad <one> 1.0", "5", "2", "1", "1"], ["good 1.0", "5", "1", "0", "1"]]
    test = root[0][0]
    assert (test.get("classname"), test.get("name")) == ("bad <one>.core.arrays", "edge-chunk")
    assert test[0].tag == "failure"
    assert test[0].get("message") == "wrong-data: <script>alert(1)</script>?|?"


def test_markdown_has_the_matrix_and_the_failed_cases(run, suite):
    text = to_markdown(run, suite)
    assert "| pass | 1 | 3 |" in text
    assert "| zstd | (1) | (1) |" in text
    assert "| json | 1/1 | 1/1 |" in text
    assert "| pad | 0/1 | 1/1 |" in text
    assert "| `proposals/pad/data/zeros` | crash | &lt;script>alert(1)&lt;/script>" in text
    assert "| bad &lt;one&gt; 1.0 |" in text
    assert "\n**bad &lt;one&gt; 1.0**\n" in text
    assert "`proposals/pad/data/zeros`" not in to_markdown(run, suite, cases=False)


def test_names_of_harnesses_are_plain_text_in_markdown(suite):
    text = to_markdown(Run("s", "1", [implementation("<img src=x> [a](b) *c* `d`\n# e", crash="crash")]), suite)
    assert "**&lt;img src=x&gt; \\[a\\](b) \\*c\\* \\`d\\` # e 1.0**" in text
    assert "<img" not in text


def test_matrix_has_each_case_exactly_once(run, suite):
    rows = matrix(run, suite)
    assert sorted(name for row in rows for name in row.ids) == sorted(CASES)
    assert [row.section for row in rows] == ["core", "core", "core", "optional", "proposals"]


def test_diff_reports_changed_and_missing_results(run):
    bad, good = Run("s", "1", run.implementations[:1]), Run("s", "1", [implementation("bad <one>", crash="pass")])
    assert diff(bad, bad) == []
    assert diff(bad, good) == [Change("bad <one>", "proposals/pad/data/zeros", "crash", "pass")]
    assert [change.worse for change in diff(bad, good) + diff(good, bad)] == [False, True]
    removed = diff(bad, Run("s", "1", []))
    assert {change.after for change in removed} == {None}
    assert [change.case for change in removed if change.worse] == ["core/json/latin-1"]


def test_html_page_is_self_contained(run, suite):
    text = to_html(run, suite)
    assert not re.search(r"""(src|href)\s*=|@import|url\(|https?://""", text)
    assert "<!--" not in text.replace("<!doctype", "")
    assert "<script>alert" not in text


def test_click_on_a_cell_opens_its_cases(run, suite, page, tmp_path):
    (tmp_path / "report.html").write_text(to_html(run, suite))
    page.open(tmp_path / "report.html")
    assert page.evaluate("document.querySelectorAll('#matrix .cell').length") == 10
    assert page.evaluate("document.getElementById('panel').hidden") is True

    page.click("#matrix .cell[aria-label^='pad, bad']")
    page.wait("!document.getElementById('panel').hidden")
    assert page.evaluate("document.getElementById('title').textContent") == "pad · bad <one> 1.0"
    assert page.evaluate("document.querySelectorAll('#cases details').length") == 1

    page.click("#cases summary")
    page.wait("document.querySelector('#cases .body')")
    shown = page.evaluate("document.querySelector('#cases details').innerText")
    case = suite.find("proposals/pad/data/zeros")
    assert case.data["description"] in shown
    assert case.data["spec"]["quote"] in shown if "spec" in case.data else case.data["ruling"] in shown
    assert '"name": "pad"' in shown  # metadata
    assert re.search(r"000000 +[0-9a-f]{2} [0-9a-f]{2}", shown)  # hexdump
    assert "EXPECTED" in shown
    assert "crash" in shown
    assert "<script>alert(1)</script>" in shown  # shown as text, not executed

    page.click("#chips .crash")
    assert page.evaluate("document.querySelectorAll('#cases details').length") == 0
    page.click("#close")
    assert page.evaluate("document.getElementById('panel').hidden") is True
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.errors == []
    assert [url for url in page.requests if not url.startswith("file:")] == []


def test_url_fragment_of_a_cell_opens_it(run, suite, page, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(to_html(run, suite))
    page.open(path)
    page.click("#matrix .cell[aria-label^='zstd, good']")
    page.wait("location.hash === '#optional/zstd/good'")
    page.evaluate("location.reload()")
    page.wait(
        "document.readyState === 'complete' && document.getElementById('title').textContent === 'zstd · good 1.0'"
    )
