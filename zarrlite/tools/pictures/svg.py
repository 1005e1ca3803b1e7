"""SVG as text: elements, colours, and the width of text.

Rules
- Text from documents and keys becomes markup only here, where it is escaped.
- Boxes are light and their text is dark. Text outside of boxes has the colour of the surrounding text, or a grey that
  is legible on light and on dark backgrounds.
- Pictures have no style sheets and no ids, because a page may contain many pictures.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

GREY = "#7d8590"
DARK = "#1f2328"
FONT = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
COLOURS = {
    "array": ("#ddf4ff", "#4393d8"),
    "chunk": ("#e6f1fb", "#6ca6d9"),
    "shard": ("#ece6fb", "#9a7fd6"),
    "elements": ("#b6dcfe", "#4393d8"),
    "compressed": ("#d5c8f7", "#8a6fd0"),
    "checksum": ("#ffdf9e", "#c99a2e"),
    "padding": ("#e1e5ea", "#9aa3ad"),
    "header": ("#fbd5b8", "#d08a50"),
    "index": ("#c6eccf", "#58a86c"),
    "entry": ("#ddf5e2", "#7dbb8c"),
    "part": ("#f3f5f7", "#a5aeb8"),
    "unused": ("#ffffff", "#b6bec7"),
    "more": ("#f3f5f7", "#b6bec7"),
    "document": ("#fdf3d1", "#c9ad4a"),
    "group": ("#fdf3d1", "#c9ad4a"),
    "unknown": ("#f3f5f7", "#a5aeb8"),
    "fault": ("#ffc9c5", "#d1433a"),
}
_INVALID = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


class Picture(NamedTuple):
    """Markup and its size in pixels."""

    width: float
    height: float
    body: str


def escape(text: object, limit: int = 200) -> str:
    """Return text that is safe in elements and attributes.

    Text longer than `limit` characters is truncated; characters that XML cannot represent are replaced.
    """
    content = str(text)
    content = content if len(content) <= limit else content[: limit - 1] + "…"
    return html.escape(_INVALID.sub("\ufffd", content), quote=True)


def number(value: float) -> str:
    """Format a length in pixels with at most one decimal."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def plural(count: int, what: str) -> str:
    """Return a count and its noun, in the plural unless the count is 1."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def element(name: str, *children: str, **attributes: object) -> str:
    """Return an element. Children are markup; attributes are escaped, and `stroke_width` becomes `stroke-width`."""
    written = []
    for key, value in attributes.items():
        if value is not None:
            text = number(value) if isinstance(value, float) else escape(value, 2000)
            written.append(f' {key.rstrip("_").replace("_", "-")}="{text}"')
    inside = "".join(children)
    return f"<{name}{''.join(written)}>{inside}</{name}>" if inside else f"<{name}{''.join(written)}/>"


def text(x: float, y: float, content: object, *, size: float = 11, limit: int = 80, **attributes: object) -> str:
    """Return a line of text, truncated to `limit` characters."""
    return element("text", escape(content, limit), x=float(x), y=float(y), font_size=float(size), **attributes)


def box(x: float, y: float, width: float, height: float, role: str, *children: str, **attributes: object) -> str:
    """Return a rectangle in the colours of its role."""
    fill, stroke = COLOURS[role]
    style = {"fill": fill, "stroke": stroke, "rx": 3, **attributes}
    return element("rect", *children, x=float(x), y=float(y), width=float(width), height=float(height), **style)


def title(content: object) -> str:
    """Return a title element, which browsers show as a tooltip."""
    return element("title", escape(content, 500))


def text_width(content: str, size: float = 11) -> float:
    """Estimate the width of a text in pixels."""
    return len(content) * size * 0.58


def stack(pictures: list[Picture], gap: float = 14) -> Picture:
    """Return one picture in which several pictures are stacked from top to bottom."""
    y, body = 0.0, []
    for picture in pictures:
        body.append(element("g", picture.body, transform=f"translate(0 {number(y)})"))
        y += picture.height + gap
    return Picture(max((p.width for p in pictures), default=0.0), max(y - gap, 0.0), "".join(body))


def document(picture: Picture, label: str, *, color: str | None = GREY) -> str:
    """Return a picture as an SVG document. If `color` is None, text outside of boxes has the colour of the page."""
    margin = 8
    width, height = picture.width + 2 * margin, picture.height + 2 * margin
    return element(
        "svg",
        title(label),
        element("g", picture.body, transform=f"translate({margin} {margin})"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=float(width),
        height=float(height),
        role="img",
        color=color,
        fill="currentColor",
        font_family=FONT,
    )
