"""Nested boxes that show the bytes of a stored object, from left to right in order of offset.

Rules
- Widths grow with the logarithm of the size, and no box is too narrow for its label: boxes are not to scale.
- Boxes on the same line have the same height. The children of a box wrap to a new line if one line would be too wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from zarrlite.tools.pictures.svg import DARK, GREY, Picture, box, element, text, text_width, title

_LEAF_HEIGHT = 40.0  # pixels
_HEADING_HEIGHT = 20.0  # pixels above the children of a box
_MARGIN = 5.0  # pixels between boxes, and around the children of a box
_MAX_WIDTH = 220.0  # pixels; maximum width of a box without children. A heading above children may be twice as wide
_MAX_LINE = 850.0  # pixels; maximum total width of the children on one line, so that a picture fits on a page
_TICK_HEIGHT = 14.0  # pixels; the height of the offsets that are shown below a line of boxes
_NOTE_COLOUR = "#57606a"


@dataclass(frozen=True)
class Box:
    """A labelled range of bytes, which may contain other boxes."""

    label: str
    note: str = ""  # shown below the label, or after it if the box has children; usually a size
    role: str = "unknown"
    size: int | None = None  # bytes
    children: tuple[Box, ...] = ()
    tip: str = ""
    tick: int | None = None  # the offset of the first byte, shown below the box
    dashed: bool = False  # whether the children show decoded data instead of the stored bytes


def measure(b: Box) -> tuple[float, float]:
    """Return the width and the height of a box, in pixels."""
    label = max(text_width(_short(b.label)), text_width(_short(b.note), 10)) + 14
    if not b.children:
        return min(max(label, 30 + 7 * math.log2(1 + (b.size or 64))), _MAX_WIDTH), _LEAF_HEIGHT
    lines = _lines(b)
    heading = text_width(_short(_heading(b))) + 14
    width = max(sum(measure(child)[0] + _MARGIN for child in line) + _MARGIN for line in lines)
    height = sum(_line_height(line, len(lines) > 1) for line in lines)
    return max(width, min(heading, 2 * _MAX_WIDTH)), _HEADING_HEIGHT + height


def _lines(b: Box) -> list[list[Box]]:
    """Divide the children of a box into lines of limited width."""
    lines: list[list[Box]] = []
    room = 0.0
    for child in b.children:
        width = measure(child)[0] + _MARGIN
        if not lines or width > room:
            lines.append([])
            room = _MAX_LINE
        lines[-1].append(child)
        room -= width
    return lines


def _line_height(line: list[Box], several: bool) -> float:
    """Return the height of a line of boxes plus the space below it, which shows offsets if there are several lines."""
    height = max(measure(child)[1] for child in line) + _MARGIN
    return height + (_TICK_HEIGHT if several and any(map(_has_tick, line)) else 0)


def _has_tick(b: Box) -> bool:
    return b.tick is not None or any(map(_has_tick, b.children))


def _heading(b: Box) -> str:
    return f"{b.label} · {b.note}" if b.note else b.label


def _short(content: str, limit: int = 44) -> str:
    return content if len(content) <= limit else content[: limit - 1] + "…"


def _draw(b: Box, x: float, y: float, width: float, height: float, ticks: list[tuple[float, int]]) -> str:
    dash = "4 3" if b.dashed or b.role == "unused" else None
    tip = title(b.tip or _heading(b))
    frame = box(x, y, width, height, b.role, tip, stroke_dasharray=dash)
    if not b.children:
        if b.tick is not None:
            ticks.append((x, b.tick))
        middle = x + width / 2
        label = text(middle, y + height / 2 - (3 if b.note else -4), _short(b.label), text_anchor="middle", fill=DARK)
        note = text(middle, y + height / 2 + 12, _short(b.note), size=10, text_anchor="middle", fill=_NOTE_COLOUR)
        return frame + label + (note if b.note else "")
    parts = [frame, text(x + 7, y + 14, _short(_heading(b), 70), fill=DARK)]
    lines = _lines(b)
    heights = [_line_height(line, len(lines) > 1) for line in lines]
    stretch = (height - _HEADING_HEIGHT - sum(heights)) / len(lines)
    top = y + _HEADING_HEIGHT
    for line, line_height in zip(lines, heights, strict=True):
        inner = max(measure(child)[1] for child in line) + stretch
        line_ticks = ticks if len(lines) == 1 else []
        parts.append(_draw_line(line, x + _MARGIN, top, width - _MARGIN, inner, line_ticks))
        if len(lines) > 1:
            parts += _tick_labels(line_ticks, top + inner)
        top += line_height + stretch
    return "".join(parts)


def _draw_line(
    line: list[Box], left: float, top: float, width: float, height: float, ticks: list[tuple[float, int]]
) -> str:
    """Draw boxes that together fill the width, with a margin after each box."""
    sizes = [measure(child)[0] for child in line]
    spare = (width - sum(sizes) - _MARGIN * len(sizes)) / len(sizes)
    parts = []
    for child, size in zip(line, sizes, strict=True):
        parts.append(_draw(child, left, top, size + spare, height, ticks))
        left += size + spare + _MARGIN
    return "".join(parts)


def _tick_labels(ticks: list[tuple[float, int]], bottom: float) -> list[str]:
    """Return labels for the offsets of boxes, except labels that would overlap the previous one."""
    labels, free_from = [], -100.0
    for left, offset in ticks:
        if left >= free_from:
            labels.append(text(left, bottom + 11, offset, size=9, fill=GREY))
            free_from = left + text_width(str(offset), 9) + 4
    return labels


def row(boxes: list[Box], heading: str = "", end: int | None = None) -> Picture:
    """Draw a row of boxes: above it a heading, and below it the offset of every box that has a `tick`."""
    sizes = [measure(b) for b in boxes]
    height = max((h for _, h in sizes), default=0)
    top = 18.0 if heading else 0.0
    parts = [text(0, 11, heading, fill="currentColor", limit=160)] if heading else []
    ticks: list[tuple[float, int]] = []
    x = 0.0
    for b, (width, _) in zip(boxes, sizes, strict=True):
        parts.append(_draw(b, x, top, width, height, ticks))
        x += width + _MARGIN
    width = max(x - _MARGIN, text_width(heading))
    bottom = top + height
    parts += _tick_labels(ticks, bottom)
    if end is not None:
        parts.append(text(x - _MARGIN, bottom + 11, end, size=9, fill=GREY, text_anchor="end"))
    return Picture(width, bottom + (_TICK_HEIGHT if ticks or end is not None else 0), element("g", *parts))
