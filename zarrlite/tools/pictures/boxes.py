"""Boxes in boxes: what lies inside of what, from left to right as it is stored.

Rules
- Widths grow with the logarithm of the size, and no box is too narrow for its label: nothing here is to scale.
- Boxes of one row have the same height.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from zarrlite.tools.pictures.svg import DARK, GREY, Picture, box, element, text, text_width, title

_LEAF, _HEAD, _PAD = 40.0, 20.0, 5.0
_MOST = 220.0
_NOTE = "#57606a"


@dataclass(frozen=True)
class Box:
    """Something with a name, perhaps with something inside."""

    label: str
    note: str = ""  # below the label: mostly a size
    role: str = "unknown"
    size: int | None = None
    children: tuple[Box, ...] = ()
    tip: str = ""
    tick: int | None = None  # where it starts, written below
    dashed: bool = False  # what is not stored like that, but as something else


def measure(b: Box) -> tuple[float, float]:
    """How wide and how high a box is."""
    label = max(text_width(_short(b.label)), text_width(_short(b.note), 10)) + 14
    if not b.children:
        return min(max(label, 30 + 7 * math.log2(1 + (b.size or 64))), _MOST), _LEAF
    inside = [measure(child) for child in b.children]
    head = text_width(_short(_heading(b))) + 14
    width = sum(w for w, _ in inside) + _PAD * (len(inside) + 1)
    return max(width, min(head, 2 * _MOST)), max(h for _, h in inside) + _HEAD + _PAD


def _heading(b: Box) -> str:
    return f"{b.label} · {b.note}" if b.note else b.label


def _short(content: str, most: int = 44) -> str:
    return content if len(content) <= most else content[: most - 1] + "…"


def _draw(b: Box, x: float, y: float, width: float, height: float, ticks: list[tuple[float, int]]) -> str:
    dash = "4 3" if b.dashed or b.role == "unused" else None
    tip = title(b.tip or _heading(b))
    frame = box(x, y, width, height, b.role, tip, stroke_dasharray=dash)
    if not b.children:
        if b.tick is not None:
            ticks.append((x, b.tick))
        middle = x + width / 2
        label = text(middle, y + height / 2 - (3 if b.note else -4), _short(b.label), text_anchor="middle", fill=DARK)
        note = text(middle, y + height / 2 + 12, _short(b.note), size=10, text_anchor="middle", fill=_NOTE)
        return frame + label + (note if b.note else "")
    parts = [frame, text(x + 7, y + 14, _short(_heading(b), 70), fill=DARK)]
    sizes = [measure(child)[0] for child in b.children]
    spare = (width - sum(sizes) - _PAD * (len(sizes) + 1)) / len(sizes)
    at = x + _PAD
    for child, size in zip(b.children, sizes, strict=True):
        parts.append(_draw(child, at, y + _HEAD, size + spare, height - _HEAD - _PAD, ticks))
        at += size + spare + _PAD
    return "".join(parts)


def row(boxes: list[Box], heading: str = "", end: int | None = None) -> Picture:
    """Boxes beside each other, with a line above and, where they have ticks, the positions below."""
    sizes = [measure(b) for b in boxes]
    height = max((h for _, h in sizes), default=0)
    top = 18.0 if heading else 0.0
    parts = [text(0, 11, heading, fill="currentColor", most=160)] if heading else []
    ticks: list[tuple[float, int]] = []
    x = 0.0
    for b, (width, _) in zip(boxes, sizes, strict=True):
        parts.append(_draw(b, x, top, width, height, ticks))
        x += width + _PAD
    width = max(x - _PAD, text_width(heading))
    bottom = top + height
    last = -100.0
    for at, value in ticks:
        if at >= last:
            parts.append(text(at, bottom + 11, value, size=9, fill=GREY))
            last = at + text_width(str(value), 9) + 4
    if end is not None:
        parts.append(text(x - _PAD, bottom + 11, end, size=9, fill=GREY, text_anchor="end"))
    return Picture(width, bottom + (14 if ticks else 0), element("g", *parts))
