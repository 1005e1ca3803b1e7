"""SVG as text: elements, colours, and how wide text is.

Rules
- Whatever comes from a document or a key is escaped here, and nowhere else is markup made of it.
- Boxes are light and their text is dark; what stands outside of boxes has the colour of the text around, or a grey that
  is legible on light and on dark.
- No style sheets and no ids: a page may hold many pictures.
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
    """Some markup and its size."""

    width: float
    height: float
    body: str


def escape(text: object, most: int = 200) -> str:
    """Text that is safe in elements and attributes; what is too long is cut, what XML cannot hold is replaced."""
    plain = str(text)
    plain = plain if len(plain) <= most else plain[: most - 1] + "…"
    return html.escape(_INVALID.sub("\ufffd", plain), quote=True)


def number(value: float) -> str:
    """A length, in as few digits as will do."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def plural(count: int, what: str) -> str:
    """Several of something, or one."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def element(name: str, *children: str, **attributes: object) -> str:
    """An element; children are markup already, attributes are not. `stroke_width` is written `stroke-width`."""
    written = []
    for key, value in attributes.items():
        if value is not None:
            text = number(value) if isinstance(value, float) else escape(value, 2000)
            written.append(f' {key.rstrip("_").replace("_", "-")}="{text}"')
    inside = "".join(children)
    return f"<{name}{''.join(written)}>{inside}</{name}>" if inside else f"<{name}{''.join(written)}/>"


def text(x: float, y: float, content: object, *, size: float = 11, most: int = 80, **attributes: object) -> str:
    """A line of text."""
    return element("text", escape(content, most), x=float(x), y=float(y), font_size=float(size), **attributes)


def box(x: float, y: float, width: float, height: float, role: str, *children: str, **attributes: object) -> str:
    """A rectangle in the colours of what it is."""
    fill, stroke = COLOURS[role]
    given = {"fill": fill, "stroke": stroke, "rx": 3, **attributes}
    return element("rect", *children, x=float(x), y=float(y), width=float(width), height=float(height), **given)


def title(content: object) -> str:
    """What is shown when the pointer rests on something."""
    return element("title", escape(content, 500))


def text_width(content: str, size: float = 11) -> float:
    """About how wide a text is."""
    return len(content) * size * 0.58


def stack(pictures: list[Picture], gap: float = 14) -> Picture:
    """Several pictures, one below the other."""
    y, body = 0.0, []
    for picture in pictures:
        body.append(element("g", picture.body, transform=f"translate(0 {number(y)})"))
        y += picture.height + gap
    return Picture(max((p.width for p in pictures), default=0.0), max(y - gap, 0.0), "".join(body))


def document(picture: Picture, label: str, *, color: str | None = GREY) -> str:
    """A picture as an SVG document; without a colour, text outside of boxes has the colour of the page."""
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
