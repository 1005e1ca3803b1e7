"""Build the documentation site: `python -m tests.site`, or `make docs`.

Rules
- The first page is README.md; the others are those in `docs/` and those about the project, such as CONTRIBUTING.md.
  `mkdocs.yml` defines their order. The reference is generated: the API from docstrings, the commands from argparse.
- Everything is written to `build/`: the sources to `build/docs`, the pages to `build/site`.
- Every warning is an error. Every page must be in the navigation. Every link must lead to a page and, if it names a
  heading, to a heading of that page.
"""

from __future__ import annotations

import html.parser
import importlib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

import zarrlite
from tests import reference

ROOT = Path(__file__).parent.parent
DOCS, SITE = ROOT / "build/docs", ROOT / "build/site"
# path of a page outside of docs/ -> its path in the site
PROJECT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CORRECTNESS.md": "project/correctness.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "benchmarks/RESULTS.md": "project/benchmark-results.md",
    "spec_fixtures/README.md": "project/fixtures.md",
}
SOURCE = "https://zarrlite.example/source/"  # URL prefix for files that are not pages of the site
_LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )([^)#:\s]+)((?:#[^)\s]*)?(?:\)|$))", re.MULTILINE)


def write_sources() -> None:
    """Write the sources of all pages to `build/docs`."""
    shutil.rmtree(DOCS, ignore_errors=True)
    shutil.copytree(ROOT / "docs", DOCS)
    (DOCS / "README.md").unlink()  # a list of pages, which the navigation of the site replaces
    for source, target in PROJECT.items():
        (DOCS / target).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / source, DOCS / target)
    for name, text in {**reference.pages(), **api_pages()}.items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(text, "utf-8")
    for page in sorted(DOCS.rglob("*.md")):
        page.write_text(_relinked(page), "utf-8")


def _relinked(page: Path) -> str:
    """Return the text of a page. Links to project files are replaced by links to pages of the site or to `SOURCE`."""
    inverse = {target: source for source, target in PROJECT.items()}
    place = page.relative_to(DOCS).as_posix()
    original = ROOT / inverse.get(place, f"docs/{place}")

    def relinked(match: re.Match[str]) -> str:
        linked = (original.parent / unquote(match[2])).resolve()
        if linked.is_relative_to(ROOT / "docs") and not linked.is_dir():
            target = DOCS / linked.relative_to(ROOT / "docs")
            target = DOCS / "index.md" if target.name == "README.md" else target
        elif linked.relative_to(ROOT).as_posix() in PROJECT:
            target = DOCS / PROJECT[linked.relative_to(ROOT).as_posix()]
        else:
            return f"{match[1]}{SOURCE}{linked.relative_to(ROOT).as_posix()}{match[3]}"
        return f"{match[1]}{_relative(target, page.parent)}{match[3]}"

    # links in code remain unchanged
    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return "".join(part if i % 2 else _LINK.sub(relinked, part) for i, part in enumerate(parts))


def _relative(target: Path, start: Path) -> str:
    up = "../" * len(start.relative_to(DOCS).parts)
    return up + target.relative_to(DOCS).as_posix()


# title of a page -> the module whose public names it documents
API = {
    "zarrlite": "zarrlite",
    "codecs": "zarrlite.codecs",
    "stores": "zarrlite.stores",
    "data types": "zarrlite.data_types",
    "chunk grids": "zarrlite.chunk_grids",
    "chunk key encodings": "zarrlite.chunk_key_encodings",
    "storage transformers": "zarrlite.storage_transformers",
    "Zarr v2": "zarrlite.v2",
    "N5": "zarrlite.n5",
    "TIFF": "zarrlite.tiff",
    "stored bytes": "zarrlite.layout",
    "tests for extensions": "zarrlite.testing",
}


def api_pages() -> dict[str, str]:
    """Return the sources of the API pages, by path."""
    pages = {}
    for title, name in API.items():
        module = importlib.import_module(name)
        lines = [f"# {name}", "", (inspect.getdoc(module) or "").partition("\n\n")[0], ""]
        for public in sorted(zarrlite.__all__ if name == "zarrlite" else module.__all__, key=str.lower):
            value = getattr(module, public)
            if inspect.isclass(value) and issubclass(value, Exception):
                continue  # exceptions have their own page
            if inspect.isclass(value) or inspect.isroutine(value):
                lines += [f"::: {value.__module__}.{value.__qualname__}", *_options(value), ""]
        pages[f"reference/api/{name}.md"] = "\n".join(lines)
    return pages


def _options(value: object) -> list[str]:
    """Return the mkdocstrings options for a name: Array and Group also show the methods of their common base class."""
    inherits = value in (zarrlite.Array, zarrlite.Group)
    return ["    options:", "      inherited_members: true"] if inherits else []


class _Page(html.parser.HTMLParser):
    """The links and the ids of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if values.get("id"):
            self.ids.add(str(values["id"]))
        for name in ("href", "src"):
            if values.get(name):
                self.links.append(str(values[name]))


def broken_links(site: Path) -> list[str]:
    """Return every broken link of a site, as `page: link`."""
    pages = {path: _Page(path) for path in sorted(site.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target, fragment = urldefrag(link)
            if re.match(r"[a-z]+:|//", target) or path.name == "404.html":
                continue
            linked = (path.parent / unquote(target)).resolve() if target else path
            linked = linked / "index.html" if linked.is_dir() else linked
            known = linked in pages and (not fragment or unquote(fragment) in pages[linked].ids)
            if not (known or (linked.exists() and not fragment)):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


def navigation() -> list[str]:
    """Return the paths of the pages in the navigation of mkdocs.yml."""
    listed = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    return re.findall(r"[ -]([\w./-]+\.md)$", listed, re.MULTILINE)


def main() -> int:
    """Build the site, and return 1 if there is a warning or a broken link."""
    write_sources()
    missing = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - set(navigation())
    if missing:
        print(f"mkdocs.yml: the navigation must also list {', '.join(sorted(missing))}")
        return 1
    done = subprocess.run([Path(sys.executable).with_name("zensical"), "build", "--strict", "--clean"], cwd=ROOT)
    if done.returncode:
        return done.returncode
    broken = broken_links(SITE)
    print("\n".join(broken))
    print(f"{len(list(SITE.rglob('*.html')))} pages in {SITE.relative_to(ROOT)}, {len(broken)} broken links")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
