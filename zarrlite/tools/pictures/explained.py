"""Pictures of stored objects that `zarrlite.tools.layout.explain` has explained."""

from __future__ import annotations

from collections.abc import Sequence

from zarrlite.tools.layout.objects import Stored
from zarrlite.tools.layout.tree import Range
from zarrlite.tools.pictures.boxes import Box, row
from zarrlite.tools.pictures.sketch import nbytes
from zarrlite.tools.pictures.svg import FONT, GREY, document, escape, plural, stack

_MAX_ROWS = 1000  # rows shown in a table; further rows are only counted
_STYLE = (
    ":root{color-scheme:light dark}"
    f"body{{font-family:{FONT};margin:2rem;line-height:1.4}}h1{{font-size:1.2rem;font-weight:600}}"
    "div{overflow-x:auto}table{border-collapse:collapse;margin-top:1.5rem;font-size:.85rem}"
    "caption{text-align:left;font-weight:600;padding-bottom:.3rem}"
    "th,td{padding:.15rem .9rem .15rem 0;text-align:left;vertical-align:top}"
    "tr+tr{border-top:1px solid color-mix(in srgb,currentColor 15%,transparent)}"
    ".number{text-align:right;font-variant-numeric:tabular-nums}.text{white-space:pre-wrap}"
    "td:last-child{font-family:ui-monospace,monospace;white-space:pre}"
)
_MAX_SHOWN = 7  # chunks and entries drawn for a shard; the others share one box


def explained_svg(objects: Sequence[Stored], *, color: str | None = GREY) -> str:
    """Draw stored objects, each with the first few of its chunks and entries."""
    rows = []
    for stored in objects:
        size = "missing" if stored.size is None else f"{stored.size} bytes"
        layout = stored.layout.solid(_MAX_SHOWN)
        rows.append(row([_box(layout, ticks=True)], f"{stored.key}: {size}", stored.layout.stop))
    return document(stack(rows, gap=22), f"the bytes of {', '.join(stored.key for stored in objects)}", color=color)


def explained_html(
    objects: Sequence[Stored],
    heading: str,
    headers: Sequence[str] = (),
    tables: Sequence[Sequence[Sequence[object]]] = (),
) -> str:
    """Return an HTML page with the picture and, below it, a table for each object."""
    shown = [
        _table(f"{stored.key}, bytes", headers, rows) for stored, rows in zip(objects, tables, strict=bool(tables))
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(heading)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(heading)}</h1><div>{explained_svg(objects, color=None)}</div>"
        f"{''.join(shown)}</body></html>\n"
    )


def _table(caption: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table. Spaces at the start of a cell are kept, as an indent; numbers are right-aligned."""
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:_MAX_ROWS])
    more = len(rows) - _MAX_ROWS
    note = f"<p>{plural(more, 'more line')}</p>" if more > 0 else ""
    return f"<div><table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table></div>{note}"


def _cell(value: object) -> str:
    return f'<td class="{"number" if isinstance(value, int) else "text"}">{escape(value)}</td>'


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
