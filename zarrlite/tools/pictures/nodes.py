"""Pictures of arrays and groups, and their representation in notebooks.

Rules
- Nothing is read: pictures show only metadata that is in memory. The members of a group are shown only if the group has
  consolidated metadata.
- The numbers of rows, lines and characters are bounded.
"""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING, Any

from zarrlite.extensions.config import show
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.nodes.info import human
from zarrlite.tools.pictures.grid import SIDE, grid_picture
from zarrlite.tools.pictures.sketch import bytes_picture
from zarrlite.tools.pictures.svg import (
    DARK,
    GREY,
    Picture,
    box,
    document,
    element,
    escape,
    plural,
    stack,
    text,
    text_width,
)

if TYPE_CHECKING:
    from zarrlite.nodes.array import Array
    from zarrlite.nodes.group import Group

_MAX_MEMBERS = 40  # members of a group that are drawn; the others are only counted
_MAX_CHARACTERS = 4000  # maximum number of characters shown of a node's attributes
_CARD_SIDE = 130.0  # pixels; the longest side of a grid in a notebook
_CELL = "padding:1px 12px 1px 0;line-height:1.3;text-align:left;vertical-align:top;border:none;background:none"


def node_svg(node: Array | Group) -> str:
    """Draw a node as an SVG document."""
    if isinstance(node.metadata, ArrayMetadata):
        return document(stack(_pictures(node), gap=20), f"array {node.name}")
    return document(_tree(node), f"group {node.name}")


def node_html(node: Array | Group) -> str:
    """Return the representation of a node in notebooks."""
    if isinstance(node.metadata, ArrayMetadata):
        grid, layout = (document(picture, "", color=None) for picture in _pictures(node, _CARD_SIDE))
        table = _table(_array_rows(node), f"Array {node.name}")
        layout = f'<div style="overflow-x:auto;max-width:100%">{layout}</div>'
        top = f'<div style="display:flex;flex-wrap:wrap;gap:4px 20px">{table}<div>{grid}</div>{layout}</div>'
        return f"<div>{top}{attributes_html(node)}</div>"
    members = _members(node)
    rows: list[tuple[str, object]] = [("Attributes", len(node.attrs))]
    if members is None:
        rows.append(("Members", "call .tree() to list them"))
        return f"<div>{_table(rows, f'Group {node.name}')}{attributes_html(node)}</div>"
    rows.append(("Members", f"{len(members)}, as copied into this group's document"))
    return (
        f"<div>{_table(rows, f'Group {node.name}')}{document(_tree(node), '', color=None)}{attributes_html(node)}</div>"
    )


def _pictures(array: Any, side: float = SIDE) -> list[Picture]:
    return [grid_picture(array.metadata, array.chunks, array.shards, side), bytes_picture(array.metadata)]


def _array_rows(array: Any) -> list[tuple[str, object]]:
    metadata: ArrayMetadata = array.metadata
    rows: list[tuple[str, object]] = [
        ("Shape", metadata.shape),
        ("Data type", metadata.data_type.name),
        ("Fill value", show(metadata.data_type.fill_value_json(metadata.fill_value))),
        ("Chunks", array.chunks),
    ]
    if array.shards:
        rows.append(("Shards", array.shards))
    rows += [
        ("Chunk keys", metadata.chunk_key_encoding.encode((0,) * len(metadata.shape)) + " …"),
        ("Codecs", " → ".join(codec.name for codec in metadata.codecs)),
    ]
    if metadata.storage_transformers:
        rows.append(("Storage transformers", " → ".join(t.name for t in metadata.storage_transformers)))
    return [*rows, ("Bytes, decoded", human(array.nbytes))]


def _table(rows: list[tuple[str, Any]], heading: str) -> str:
    body = "".join(
        f'<tr style="background:none"><th style="{_CELL};font-weight:600">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return (
        f'<table style="border-collapse:collapse;border:none"><caption style="{_CELL};font-weight:700;'
        f'caption-side:top;color:inherit">{escape(heading)}</caption><tbody>{body}</tbody></table>'
    )


def attributes_html(node: Any) -> str:
    """Return the attributes of a node, collapsed until the user clicks. Returns an empty string if it has none."""
    if not node.attrs:
        return ""
    content = ""
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False, default=str).iterencode(node.attrs.asdict()):
        content += piece[: _MAX_CHARACTERS + 1]
        if len(content) > _MAX_CHARACTERS:
            break  # `escape` cuts off the rest
    count = plural(len(node.attrs), "attribute")
    return f"<details><summary>{count}</summary><pre>{escape(content, _MAX_CHARACTERS)}</pre></details>"


def _members(group: Any) -> dict[str, Any] | None:
    """Return the consolidated documents of the nodes below a group, by path. Returns None if it is not consolidated."""
    consolidated = group.metadata.consolidated
    return None if consolidated is None else dict(consolidated)


def _tree(group: Any) -> Picture:
    """Draw the hierarchy, as far as it is listed in the consolidated metadata."""
    members = _members(group) or {}
    # sort by the segments of the paths: "a/b" comes before "a-b"
    paths = heapq.nsmallest(_MAX_MEMBERS, members, key=lambda path: path.replace("/", "\0"))
    rows = [(0, group.name, "group", "")]
    for path in paths:
        names = path.split("/")
        rows.append((len(names), names[-1], *_describe(members[path])))
    if len(members) > len(paths):
        rows.append((1, f"and {len(members) - len(paths)} more", "unknown", ""))
    parts, width = [], 0.0
    above: dict[int, float] = {}
    for i, (depth, name, role, note) in enumerate(rows):
        x, y = 8 + 24.0 * depth, 26.0 * i
        if depth and depth - 1 in above:
            elbow = f"M{8 + 24 * (depth - 1) + 8} {above[depth - 1] + 20} V{y + 10} H{x}"
            parts.append(element("path", d=elbow, fill="none", stroke=GREY, stroke_width="1"))
        above[depth] = y
        label = name if len(name) <= 40 else name[:39] + "…"
        parts.append(box(x, y, text_width(label) + 16, 20, role) + text(x + 8, y + 14, label, fill=DARK))
        parts.append(text(x + text_width(label) + 24, y + 14, note) if note else "")
        width = max(width, x + text_width(label) + 24 + text_width(note[:80]))
    if not members:
        note = "" if _members(group) is not None else "call .tree() to list the members"
        parts.append(text(8, 40, note))
        width = max(width, text_width(note) + 8)
    return Picture(width, 26.0 * max(len(rows), 2 if not members else 1), "".join(parts))


def _describe(content: Any) -> tuple[str, str]:
    """Return the role and a summary of a member's document, which has not been validated."""
    if content.get("node_type") != "array":
        return "group", ""
    data_type = content.get("data_type")
    name = data_type.get("name") if isinstance(data_type, dict) else data_type
    shape = content.get("shape")
    lengths = " × ".join(str(n) for n in shape[:8]) if isinstance(shape, list) else ""
    return "array", f"{lengths}  {name}"
