"""The pages of the server: what a node is, what is in it, and how to read it from other programs.

Rules
- Every text that comes from a store is escaped, and every link is percent-encoded.
- Listings are bounded; a page says how many entries it leaves out.
"""

from __future__ import annotations

from html import escape
from typing import Final
from urllib.parse import quote

from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.tools.pictures import node_html

MAX_ENTRIES: Final = 500  # links on a page
_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem}nav,ul{margin:0 0 1rem;padding:0}li{list-style:none}pre{overflow-x:auto;padding:.75rem;"
    "border:1px solid #8886;border-radius:6px}img{image-rendering:pixelated;max-width:100%;min-width:8rem}"
    "h2{font-size:1rem;margin:1.5rem 0 .5rem}"
)


def node_page(node: Array | Group, path: str, url: str, plain_view: bool) -> str:
    """Return the page of a node; `url` is where programs find it."""
    parts = [node_html(node)]
    if isinstance(node, Group):
        parts.append(_links("Members", [(f"{name}/", f"{name}/") for name in node]))
    elif node.dtype.kind in "biufc" and node.ndim and node.size:
        parts.append('<h2>Preview</h2><img alt="the last two dimensions, at index 0 of the others" src="?preview=">')
    parts.append(_examples(node, url, plain_view))
    return _page(path, "".join(parts))


def prefix_page(path: str, keys: list[str], prefixes: list[str], *, problem: str = "") -> str:
    """Return the page of a prefix that is not a node, or whose document is refused."""
    start = len(path) + 1 if path else 0
    entries = [(name[start:], name[start:]) for name in (*prefixes, *keys)]
    note = f"<p>{escape(problem)}</p>" if problem else ""
    return _page(path, note + _links("Keys", entries))


def _page(path: str, content: str) -> str:
    names = [name for name in path.split("/") if name]
    crumbs = ['<a href="/">/</a>']
    for i, name in enumerate(names):
        crumbs.append(f'<a href="/{quote("/".join(names[: i + 1]))}/">{escape(name)}</a>')
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape('/' + path)}</title><style>{_STYLE}</style><nav>{' / '.join(crumbs)}</nav>{content}</html>"
    )


def _links(title: str, entries: list[tuple[str, str]]) -> str:
    shown = "".join(f'<li><a href="{quote(link)}">{escape(text)}</a></li>' for link, text in entries[:MAX_ENTRIES])
    left_out = f"<li>and {len(entries) - MAX_ENTRIES} more</li>" if len(entries) > MAX_ENTRIES else ""
    return f"<h2>{escape(title)}</h2><ul>{shown}{left_out}</ul>"


def _examples(node: Array | Group, url: str, plain_view: bool) -> str:
    kind = "array" if isinstance(node, Array) else "group"
    examples = {
        "zarrlite": f'import zarrlite\nnode = zarrlite.open("{url}", mode="r")',
        "zarr-python": f'import zarr\nnode = zarr.open("{url}", mode="r")',
        "zarrita.js": (
            'import * as zarr from "zarrita";\n'
            f'const node = await zarr.open(new zarr.FetchStore("{url}"), {{ kind: "{kind}" }});'
        ),
    }
    if isinstance(node, Array):
        examples["neuroglancer"] = f"zarr3://{url}"
    else:
        examples["xarray"] = f'import xarray\ndataset = xarray.open_dataset("{url}", engine="zarrlite")'
    note = "" if plain_view else "<p>Readers without zarrlite's extensions need the server's --plain.</p>"
    blocks = "".join(f"<h2>{escape(name)}</h2><pre>{escape(code)}</pre>" for name, code in examples.items())
    return note + blocks
