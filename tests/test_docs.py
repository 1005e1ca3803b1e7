"""Every example runs: the code blocks in the README and the pages, and the examples in the library's docstrings."""

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
from zarrlite import tuning
from zarrlite.tools import demo

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
CORRECTNESS = ROOT / "CORRECTNESS.md"
PAGES = sorted(ROOT.glob("docs/*.md"))
ALL_PAGES = [README, CONTRIBUTING, CORRECTNESS, *PAGES]
GENERATED = {"coverage.md", "conformance-results.md", "supported.md", "decisions.md"}  # pages without examples
PAGES_WITH_EXAMPLES = [CONTRIBUTING, *(page for page in PAGES if page.name not in {"README.md", *GENERATED})]
FIXTURES = {"tiff.md": "pillow", "remote.md": "s3_environment"}  # page -> fixture that its examples need
MODULES = [module.name for module in pkgutil.walk_packages(zarrlite.__path__, "zarrlite.")]


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the fenced blocks of a Markdown text, as (language, content)."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_blocks(page: Path) -> int:
    """Run the Python blocks of a page in one namespace, and return their number.

    A `text` block is the output of the Python block above it.
    """
    namespace: dict[str, object] = {"__name__": page.stem}
    output: str | None = None
    count = 0
    for language, content in blocks(page.read_text(encoding="utf-8")):
        if language == "python":
            with redirect_stdout(io.StringIO()) as stdout:
                exec(compile(content, page.name, "exec", dont_inherit=True), namespace)
            output = stdout.getvalue()
            count += 1
        elif language == "text":
            assert content == output
            output = None
        else:
            assert language in ("console", "toml", "json", "plain")
    return count


def test_the_python_blocks_of_the_readme_run_and_print_the_text_below_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_blocks(README) > 0
    assert run_blocks(README) > 0  # readers may run the blocks a second time


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=lambda page: page.name)
def test_the_python_blocks_of_a_page_run_and_print_the_text_below_them(page, tmp_path, monkeypatch, request):
    if page.name in FIXTURES:
        request.getfixturevalue(FIXTURES[page.name])
    monkeypatch.chdir(tmp_path)
    assert run_blocks(page) > 0


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_fence_of_a_page_is_closed_and_has_a_language(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("```") == 2 * len(blocks(text))


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_points_to_an_existing_file(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    for link in links:
        assert (page.parent / link).exists(), link


def test_the_index_of_the_documentation_lists_every_page():
    links = re.findall(r"\]\(([a-z0-9-]+\.md)\)", (ROOT / "docs/README.md").read_text(encoding="utf-8"))
    assert sorted(links) == [page.name for page in PAGES if page.name != "README.md"]


@pytest.mark.parametrize(
    ("page", "required"),
    [
        (README, {"demo", "test", "check", "cover"}),
        (CONTRIBUTING, {"lint", "types", "test", "check", "cover", "mutate", "bench"}),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_the_commands_of_a_page_are_targets_of_the_makefile(page, required):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    commands = set(re.findall(r"(?:`|^\$ )make ([a-z]+)\b", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert required <= commands <= targets


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_demo_shows_a_round_trip():
    lines: list[str] = []
    demo.main(lines.append)
    text = "\n".join(lines)
    assert "equals the written data : True" in text
    assert "└── plain (512, 512) uint16" in text
    assert "reads back as written      : True" in text
    assert "extended/c/0/0.shard.index" in text
    assert re.search(r"ChecksumError: chunk deep/sharded/c/0/0", text)


def test_the_picture_in_the_readme_shows_its_array(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(README)
    picture = zarrlite.open("experiment.zarr", mode="r", path="raw/image").to_svg()
    assert (ROOT / "docs/pictures/readme.svg").read_text("utf-8") == picture


def test_the_documented_bounds_are_those_of_the_library():
    place, process, room = tuning.REMOTE_CONCURRENCY, tuning.MAX_REQUESTS, tuning.MAX_IN_FLIGHT_BYTES // 2**20
    text = (ROOT / "docs/parallel.md").read_text("utf-8")
    assert f"| requests in flight | {place} to one bucket or host, {process} in the process |" in text
    assert f"| chunks being fetched or decoded | {room} MiB in the process |" in text
    words = " ".join((ROOT / "docs/remote.md").read_text("utf-8").split())
    assert f"keeps up to {place} requests in flight" in words
    assert f"a process keeps up to {process} in flight, for chunks of at most {room} MiB in total" in words
