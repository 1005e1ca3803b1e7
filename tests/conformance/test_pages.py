"""The documentation pages about conformance agree with the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from zarrlite.tools.conformance import runner
from zarrlite.tools.conformance.judge import RESULTS
from zarrlite.tools.conformance.steps import OPERATIONS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("conformance", "conformance-results", "writing-a-harness")


@pytest.mark.parametrize("name", PAGES)
def test_every_case_named_on_a_page_exists(name, suite):
    for case_id in re.findall(
        r"`((?:core|optional|proposals)/[^`*]*[^`*/])`", (DOCS / f"{name}.md").read_text("utf-8")
    ):
        suite.find(case_id)


def test_harness_on_the_page_runs(suite, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / "writing-a-harness.md").read_text("utf-8"), re.M | re.S)
    assert len(blocks[1].splitlines()) < 30
    (tmp_path / "harness.py").write_text("\n".join(blocks[:2]), "utf-8")
    implementation = runner.run(suite.select(["core/"]), [sys.executable, str(tmp_path / "harness.py")])
    assert implementation.name == "minizarr"
    assert not set(implementation.count()) & {"crash", "timeout", "garbage"}
    cases = ["core/arrays/edge-chunk", "core/chunk_key_encoding/keys/default-slash", "core/codec_data/gzip/plain"]
    assert [implementation.results[name].result for name in cases] == ["pass", "pass", "unsupported"]


def test_every_result_and_every_operation_is_documented():
    results = (DOCS / "conformance.md").read_text("utf-8")
    operations = (DOCS / "writing-a-harness.md").read_text("utf-8")
    assert [result for result in RESULTS if f"\n| `{result}` | " not in results] == []
    assert [op for op in OPERATIONS if f"\n| `{op}` | " not in operations] == []
