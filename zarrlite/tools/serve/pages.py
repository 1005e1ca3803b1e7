"""The pages of the server: what a node is, what is in it, and how to read it from other programs.

Rules
- All text that comes from a store or a request is escaped. All links are percent-encoded, and relative so that the
  pages work below any prefix.
- Pages of nodes are bounded in size and say what they leave out; listings for programs are complete.
- A page works without its script, which only adds sliders, the range of values, and buttons that copy code.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

from zarrlite.adapters.plain import PlainArray
from zarrlite.errors import SelectionError, ZarrliteError
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.tools.pictures import attributes_html, node_html
from zarrlite.tools.pictures.svg import escape
from zarrlite.tools.serve.preview import View, is_shown

MAX_NODES: Final = 500  # maximum number of nodes that the page of a group shows
_STYLE: Final = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
_SCRIPT: Final = files(__package__).joinpath("page.js").read_text(encoding="utf-8")
_HASH: Final = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; script-src 'sha256-{_HASH}'; style-src 'unsafe-inline'; img-src 'self' blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
_NOTES: Final = (
    "With --plain, readers without the extensions can read all arrays, and programs can find the members of groups.",
    "Readers without the extensions of this array need the option --plain.",
)
_MIN_SIDE: Final = 256  # screen pixels; smaller pictures are enlarged by an integer factor


def node_page(node: Array | Group, path: str, url: str, options: Mapping[str, Sequence[str]], plain_view: bool) -> str:
    """Return the page of a node. `url` is the URL of the node for programs; `options` are the fields of the query."""
    if isinstance(node, Array):
        parts = [_section("", node_html(node)), _preview(node, options)]
    else:
        parts = [
            _section("Attributes", attributes_html(node)) if len(node.attrs) else "",
            _section("Members", _tree(node)),
        ]
    parts.append(_section("Read it", _snippets(node, url, plain_view)))
    parts.append('<section><p><a href="?list">Stored keys</a> · <a href="zarr.json">zarr.json</a></p></section>')
    return _page(path, "array" if isinstance(node, Array) else "group", "".join(parts))


def listing(prefix: str, entries: list[str], problem: str) -> str:
    """Return the page that lists keys and prefixes, as a file server lists a directory."""
    note = f"<p>{escape(problem, 2000)}</p>" if problem else ""
    title = escape("/" + prefix, 2000)
    links = "".join(
        f'<a href="{_href(name[len(prefix) :])}">{escape(name[len(prefix) :], 2000)}</a>\n' for name in entries
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>:root{{color-scheme:light dark}}</style><h1>{title}</h1>{note}<pre>{links}</pre></html>"
    )


def _href(name: str) -> str:
    """Return a relative link to a key, or to a prefix, which ends with `/`."""
    return "/".join(quote(part, safe="", errors="surrogateescape") for part in name.split("/"))


def _page(path: str, kind: str, content: str) -> str:
    names = path.split("/") if path else []
    crumbs = [
        f'<a href="{"../" * (len(names) - depth)}">{escape(name)}</a>'
        for depth, name in enumerate(["root", *names[:-1]][: len(names)])
    ]
    name = escape(names[-1] if names else "/")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape('/' + path)}</title><style>{_STYLE}</style></head><body>"
        f'<header><nav aria-label="Path">{" / ".join(crumbs) or "zarrlite"}</nav>'
        f"<h1>{name}<small>{kind}</small></h1></header>"
        f"<main>{content}</main><script>{_SCRIPT}</script></body></html>"
    )


def _section(heading: str, content: str) -> str:
    title = f"<h2>{heading}</h2>" if heading else ""
    return f"<section>{title}{content}</section>"


# Groups


def _tree(group: Group) -> str:
    """Return the nodes below a group as links."""
    lines: list[str] = []
    note = ""
    try:
        for path, node in itertools.islice(group._walk(None), MAX_NODES + 1):
            if len(lines) == MAX_NODES:
                note = f'<p class="note">Only the first {MAX_NODES} nodes are shown.</p>'
                break
            lines.append(
                f'<li style="--depth:{path.count("/")}"><a href="{_href(path)}/">{escape(path.rpartition("/")[2])}</a>'
                f"<span>{_facts(node)}</span></li>"
            )
    except ZarrliteError as error:
        note = f'<p class="problem">The members cannot be listed: {escape(error, 500)}</p>'
    if not lines and not note:
        return '<p class="note">This group is empty.</p>'
    return f'<ul class="tree">{"".join(lines)}</ul>{note}'


def _facts(node: Array | Group | ZarrliteError) -> str:
    if isinstance(node, ZarrliteError):
        return f"refused: {escape(node, 300)}"
    if isinstance(node, Group):
        return "group"
    shape = " × ".join(map(str, node.shape)) or "scalar"
    return escape(f"{shape} {node.metadata.data_type.name}")


# Arrays


def _preview(array: Array, options: Mapping[str, Sequence[str]]) -> str:
    """Return the section with the picture of a slice. Returns an empty string if the array cannot be drawn."""
    if not is_shown(array):
        return ""
    problem = ""
    try:
        view = View.parse(array, options)
    except SelectionError as error:
        view = View.parse(array, {})
        problem = f'<p class="problem">{escape(error, 500)}</p>'
    selection = view.selection()
    height, width = (1, *(len(range(*selection[axis].indices(array.shape[axis]))) for axis in view.axes))[-2:]
    factor = max(1, _MIN_SIDE // max(height, width))
    size = f'width="{width * factor}" height="{height * factor if len(view.axes) == 2 else 48}"'
    alt = f'alt="slice {escape(_shown(selection))} of the array"'
    return (
        f'<section id="preview"><h2>Preview</h2>{problem}<form class="preview" action="#preview">'
        f'<div class="controls">{_controls(array, view)}<noscript><button>Show</button></noscript></div>'
        f"<figure><img {size} {alt} hidden>"
        f'<noscript><img {size} {alt} src="?picture&amp;{escape(view.query(), 2000)}"></noscript>'
        f'<figcaption><code>[{escape(_shown(selection))}]</code><span class="scale"><i></i></span>'
        f'<span class="moves">{_moves(array, view)}</span><span class="state" role="status"></span>'
        "</figcaption></figure></form></section>"
    )


def _shown(selection: tuple[Any, ...]) -> str:
    return ", ".join(
        f"{i.start}:{i.stop}" + (f":{i.step}" if i.step > 1 else "") if isinstance(i, slice) else str(i)
        for i in selection
    )


def _names(array: Array) -> list[str]:
    names = array.metadata.dimension_names or (None,) * array.ndim
    return [name or f"dimension {dim}" for dim, name in enumerate(names)]


def _controls(array: Array, view: View) -> str:
    """Return the form fields for choosing the dimensions to show, and the position in each of the other dimensions."""
    names = _names(array)
    fields: list[str] = []
    if array.ndim > 2:
        for field, chosen in zip(("rows", "columns"), view.axes, strict=True):
            choices = "".join(
                f'<option value="{dim}"{" selected" if dim == chosen else ""}>{escape(name, 40)}</option>'
                for dim, name in enumerate(names)
            )
            fields.append(f'<label>{field} <select name="{field}">{choices}</select></label>')
    for dim, name in enumerate(names):
        if dim not in view.axes:
            bounds = f'min="0" max="{array.shape[dim] - 1}" value="{view.position[dim]}"'
            fields.append(
                f'<label>{escape(name, 40)} <input type="number" name="i{dim}" {bounds}>'
                f'<input type="range" {bounds} aria-label="{escape(name, 40)}" hidden></label>'
            )
    for field, (start, stop) in zip(("y", "x")[-len(view.axes) :], view.windows, strict=True):
        fields.append(f'<input type="hidden" name="{field}" value="{start}:{stop}">')
    return "".join(fields)


def _moves(array: Array, view: View) -> str:
    """Return the links that zoom in, zoom out and move the window."""
    lengths = [array.shape[axis] for axis in view.axes]
    fields = ("y", "x")[-len(view.axes) :]
    whole = [(0, n) for n in lengths]
    links: list[str] = []

    def link(text: str, title: str, windows: list[tuple[int, int]]) -> None:
        if windows != [*view.windows]:
            query = view.query(**dict(zip(fields, windows, strict=True)))
            links.append(f'<a href="?{escape(query, 2000)}#preview" title="{title}" aria-label="{title}">{text}</a>')

    link("zoom in", "zoom in", [_scaled(w, n, 1, 2) for w, n in zip(view.windows, lengths, strict=True)])
    link("zoom out", "zoom out", [_scaled(w, n, 2, 1) for w, n in zip(view.windows, lengths, strict=True)])
    for text, title, field, sign in (
        ("←", "left", "x", -1),
        ("→", "right", "x", 1),
        ("↑", "up", "y", -1),
        ("↓", "down", "y", 1),
    ):
        if field in fields:
            at = fields.index(field)
            windows = [*view.windows]
            windows[at] = _moved(windows[at], lengths[at], sign)
            link(text, title, windows)
    link("whole slice", "the whole slice", whole)
    return " ".join(links)


def _scaled(window: tuple[int, int], length: int, up: int, down: int) -> tuple[int, int]:
    """Return a window with the same centre, `up / down` times as long, moved or shortened to fit into the dimension."""
    start, stop = window
    size = min(length, max(2, (stop - start) * up // down))
    first = min(max(0, (start + stop - size) // 2), length - size)
    return first, first + size


def _moved(window: tuple[int, int], length: int, sign: int) -> tuple[int, int]:
    start, stop = window
    step = sign * max(1, (stop - start) // 2)
    first = min(max(0, start + step), length - (stop - start))
    return first, first + stop - start


# Examples


def _snippets(node: Array | Group, url: str, plain_view: bool) -> str:
    """Return the examples of code that reads the node, each with a button that copies it."""
    note = "" if plain_view or _is_plain(node) else f'<p class="note">{_NOTES[isinstance(node, Array)]}</p>'
    blocks = "".join(
        f'<div class="snippet"><div><h3>{name}</h3><button type="button" class="copy" hidden>Copy</button></div>'
        f"<pre>{escape(code, 20000)}</pre></div>"
        for name, code in examples(node, url).items()
    )
    return note + blocks


def _is_plain(node: Array | Group) -> bool:
    """Whether readers without any extensions can read a node, and find everything below it, even without `--plain`."""
    if isinstance(node, Group):
        return False
    return PlainArray(node).metadata.to_json() == node.metadata.to_json()


def examples(node: Array | Group, url: str) -> dict[str, str]:
    """Return examples of code that opens a node, keyed by the name of the program or library."""
    is_array = isinstance(node, Array)
    text = json.dumps(url)
    kind = "array" if is_array else "group"
    found = {
        "zarrlite": f'import zarrlite\n\n{kind} = zarrlite.open({text}, mode="r")',
        "zarr-python": f'import zarr\n\n{kind} = zarr.open({text}, mode="r")',
        "zarrita.js": (
            f'import * as zarr from "zarrita";\n\nconst store = new zarr.FetchStore({text});\n'
            f'const {kind} = await zarr.open(store, {{ kind: "{kind}" }});'
        ),
    }
    if is_array:
        spec = {"driver": "zarr3", "kvstore": url + "/"}
        found["tensorstore"] = f"import tensorstore\n\narray = tensorstore.open({json.dumps(spec)}).result()"
        layer = {"layers": [{"type": "image", "name": node.name or "array", "source": f"zarr3://{url}/"}]}
        state = quote(json.dumps(layer))
        found["neuroglancer"] = f"zarr3://{url}/\n\nhttps://neuroglancer-demo.appspot.com/#!{state}"
    else:
        found["xarray"] = f'import xarray\n\ndataset = xarray.open_dataset({text}, engine="zarrlite")'
    return found
