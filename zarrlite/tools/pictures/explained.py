"""Pictures of stored objects that `zarrlite.tools.layout.explain` has explained."""

from __future__ import annotations

from collections.abc import Sequence

from zarrlite.tools.layout.objects import Stored
from zarrlite.tools.layout.tree import Range
from zarrlite.tools.pictures.boxes import Box, row
from zarrlite.tools.pictures.sketch import nbytes
from zarrlite.tools.pictures.svg import FONT, GREY, document, escape, stack

_MAX_SHOWN = 7  # chunks and entries drawn for a shard; the others share one box


def explained_svg(objects: Sequence[Stored], *, color: str | None = GREY) -> str:
    """Draw stored objects, each with the first few of its chunks and entries."""
    rows = []
    for stored in objects:
        size = "missing" if stored.size is None else f"{stored.size} bytes"
        layout = stored.layout.solid(_MAX_SHOWN)
        rows.append(row([_box(layout, ticks=True)], f"{stored.key}: {size}", stored.layout.stop))
    return document(stack(rows, gap=22), f"the bytes of {', '.join(stored.key for stored in objects)}", color=color)


def explained_html(objects: Sequence[Stored], heading: str) -> str:
    """Return an HTML page with the picture."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(heading)}</title><style>:root{{color-scheme:light dark}}"
        f"body{{font-family:{FONT};margin:2rem}}h1{{font-size:1.2rem;font-weight:600}}"
        "div{overflow-x:auto}</style></head>"
        f"<body><h1>{escape(heading)}</h1><div>{explained_svg(objects, color=None)}</div></body></html>\n"
    )


def _box(r: Range, *, ticks: bool) -> Box:
    """Return the box of a range and of everything inside it."""
    children = tuple(r.children())
    if len(children) == 1 and (children[0].start, children[0].stop) == (r.start, r.stop) and not r.fault:
        inner = _box(children[0], ticks=ticks)
        if not inner.children:
            return Box(r.what, f"{inner.label} · {inner.note}", inner.role, inner.size, tip=_tip(r), tick=inner.tick)
        return Box(r.what, nbytes(r.stop - r.start), _role(r), r.stop - r.start, (inner,), _tip(r))
    boxes = tuple(_box(child, ticks=ticks) for child in children)
    note = nbytes(r.stop - r.start)
    if not boxes:
        views = tuple(r.views())
        if "decodes to" in r.detail:
            note += f" → {nbytes(r.detail['decodes to'])}"
            views = tuple(view for view in views if tuple(view.children()))
        boxes = tuple(_box(view, ticks=False) for view in views)
        if boxes:
            return Box(r.what, note, _role(r), r.stop - r.start, boxes, _tip(r), dashed=True)
    if r.role == "entry":
        note = "absent" if r.detail.get("absent") else f"{r.detail['offset']} + {r.detail['nbytes']}"
    return Box(r.what, note, _role(r), r.stop - r.start, boxes, _tip(r), r.start if ticks and not boxes else None)


def _role(r: Range) -> str:
    return "fault" if r.fault else r.role


def _tip(r: Range) -> str:
    lines = [f"{r.what}: bytes {r.start} to {r.stop}", *([r.owner] if r.owner else [])]
    lines += [f"{name}: {value}" for name, value in r.detail.items()]
    return "\n".join([*lines, *([r.fault.message] if r.fault else [])])
