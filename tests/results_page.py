"""`python -m tests.results_page`: run every shipped harness and put what came out into docs/conformance-results.

The text of the page is written by hand; its tables, between two marks, and the page of HTML beside it are made here.
"""

from __future__ import annotations

from pathlib import Path

from zarrlite.tools.conformance import runner
from zarrlite.tools.conformance.cases import load
from zarrlite.tools.conformance.implementations import commands_of
from zarrlite.tools.conformance.reports.html import to_html
from zarrlite.tools.conformance.reports.markdown import to_markdown
from zarrlite.tools.conformance.results import Run

PAGE = Path(__file__).parents[1] / "docs" / "conformance-results.md"
BEGIN, END = "<!-- made by tests/results_page.py -->\n", "<!-- end -->\n"


def main() -> None:
    corpus = load()
    found = [runner.run(corpus.cases, command) for command in commands_of(["all"])]
    run = Run(corpus.name, corpus.version, found)
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    table = to_markdown(run, corpus, cases=False)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", "utf-8")
    PAGE.with_suffix(".html").write_text(to_html(run, corpus), "utf-8")


if __name__ == "__main__":
    main()
