"""The documentation site: its pages and their order. `make docs` builds the site and checks every link."""

from __future__ import annotations

import re

import pytest

from tests import reference, site


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Write the sources of the site to a temporary folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "DOCS", tmp_path_factory.mktemp("docs"))
        site.write_sources()
        yield site.DOCS


def test_the_navigation_lists_pages_and_each_of_them_once(sources):
    listed = site.navigation()
    assert len(listed) == len(set(listed))
    assert [page for page in listed if not (sources / page).exists()] == []


def test_links_between_pages_lead_to_pages(sources):
    count = 0
    for page in sources.rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]+`", "", page.read_text("utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#:\s]+)(?=[)#])", text):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
            count += 1
    assert count > 100


def test_the_reference_of_the_commands_has_every_option(sources):
    page = (sources / "reference/commands.md").read_text("utf-8")
    assert "\n## zarrlite dump\n" in page
    assert "\n### zarrlite conformance run\n" in page
    assert "| `-o FILE, --output FILE` | write to FILE (default: standard output) |" in page
    assert page == reference.commands()


def test_the_reference_of_the_library_has_every_public_name(sources):
    text = "".join(path.read_text("utf-8") for path in (sources / "reference").rglob("*.md"))
    names = set(re.findall(r"^::: zarrlite\.[\w.]*?(\w+)$", text, re.MULTILINE))
    public = {name for name in site.zarrlite.__all__ if callable(getattr(site.zarrlite, name))}
    assert public <= names


def test_the_reference_of_the_errors_has_each_class_once(sources):
    page = (sources / "reference/errors.md").read_text("utf-8")
    entries = re.findall(r"^::: zarrlite\.errors\.(\w+)$", page, re.MULTILINE)
    assert "DataError" in entries
    assert len(entries) == len(set(entries))
    assert "| `ArrayNotFoundError` | `NodeNotFoundError` |" in page


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/index.html").write_text('<h1 id="x">a</h1><a href="../b/">b</a>')
    (tmp_path / "index.html").write_text(
        '<a href="a/#x">right</a><a href="a/#y">no heading</a><a href="https://example.org/">elsewhere</a>'
        '<img src="none.svg"><a href="#z">here</a>'
    )
    assert site.broken_links(tmp_path) == [
        "a/index.html: ../b/",
        "index.html: a/#y",
        "index.html: none.svg",
        "index.html: #z",
    ]
