"""Every example runs: the code blocks of the README and of the pages, and the docstrings of the library."""

from __future__ import annotations

import doctest
import importlib
import io
import pkgutil
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import zarrlite
from zarrlite.tools import demo

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = sorted(ROOT.glob("docs/*.md"))
GENERATED = {"coverage.md", "conformance-results.md"}  # tables without examples
NEEDS = {"tiff.md": "pillow"}  # the fixture that has what a page imports beside zarrlite and numpy
MODULES = [m.name for m in pkgutil.walk_packages(zarrlite.__path__, "zarrlite.")]


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a Markdown text, as (language, content)."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_blocks(page: Path) -> int:
    """Run the Python blocks of a page in one namespace; each prints what stands below it. How many there are."""
    namespace: dict[str, object] = {"__name__": page.stem}
    printed: str | None = None
    count = 0
    for language, content in blocks(page.read_text(encoding="utf-8")):
        if language == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(content, page.name, "exec", dont_inherit=True), namespace)
            printed = out.getvalue()
            count += 1
        elif language == "text":
            assert content == printed
            printed = None
        else:
            assert language in ("console", "toml", "json")
    return count


def test_every_code_block_of_the_readme_runs_and_prints_what_stands_below_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_blocks(README) == 10


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.name not in {"README.md", *GENERATED}], ids=lambda page: page.name
)
def test_every_code_block_of_a_page_runs_and_prints_what_stands_below_it(page, tmp_path, monkeypatch, request):
    if page.name in NEEDS:
        request.getfixturevalue(NEEDS[page.name])
    monkeypatch.chdir(tmp_path)
    assert run_blocks(page) > 0


def test_every_fence_of_a_page_is_closed_and_has_a_language():
    for page in [README, *PAGES]:
        text = page.read_text(encoding="utf-8")
        assert text.count("```") == 2 * len(blocks(text)), page.name


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    for link in links:
        assert (page.parent / link).exists(), link


def test_every_page_stands_in_the_index():
    links = re.findall(r"\]\(([a-z0-9-]+\.md)\)", (ROOT / "docs/README.md").read_text(encoding="utf-8"))
    assert sorted(links) == [page.name for page in PAGES if page.name != "README.md"]


def test_the_commands_of_the_readme_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"`?\bmake ([a-z]+)\b", README.read_text(encoding="utf-8")))
    named &= {"demo", "test", "check", "cover"}
    assert named == {"demo", "test", "check", "cover"}
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_demo_shows_a_round_trip():
    lines: list[str] = []
    demo.main(lines.append)
    text = "\n".join(lines)
    assert "equals what was written : True" in text
    assert "└── plain (512, 512) uint16" in text
    assert "reads as what was written  : True" in text
    assert "extended/c/0/0.shard.index" in text
    assert re.search(r"ChecksumError: chunk deep/sharded/c/0/0", text)
