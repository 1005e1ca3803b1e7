"""Pictures of the grid of chunks and shards.

Rules
- The last dimensions, at most three, are drawn as a line, a plane or a cuboid. The text below the picture describes the
  other dimensions, too.
- Along each dimension, chunks are drawn to scale. If a dimension has too many chunks, only the first and last ones are
  drawn, all of the same size and with a gap between them.
- The parts of chunks beyond the end of the array are drawn with dashed lines. One stored object, the first chunk or
  shard, is highlighted.
- The number of drawn lines is bounded, whatever the shape of the array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.tools.pictures.svg import COLOURS, Picture, box, element, number, plural, text, text_width, title

SIDE = 230.0  # pixels; the longest side
_MIN_SIDE, _DEPTH = 0.2, 0.365  # the shortest side and the maximum depth, as fractions of the longest side
_MAX_CELLS = 12  # a dimension with more cells is drawn with a gap
_FIRST, _LAST, _GAP = 7, 2, 26.0  # cells drawn before the gap, cells drawn after it, and its width in pixels
_MIN_INNER = 5.0  # pixels; smaller inner chunks are not drawn

Shape = tuple[int, ...]
Bounds = Callable[[int], tuple[int, int]]


def _unit(i: int) -> tuple[int, int]:
    """Return the bounds of the only chunk along a dimension with one element."""
    return 0, 1


@dataclass(frozen=True)
class Axis:
    """One dimension as drawn."""

    name: str
    length: int
    cell: int  # the length of a stored chunk or shard; the largest length if they differ
    inner: int  # the length of an inner chunk; equal to `cell` if there are no shards
    pixels: float  # the length of the dimension in the picture
    count: int = 1  # the number of stored chunks or shards
    bounds: Bounds = _unit  # returns the start and end of the chunk or shard with this number

    @property
    def extent(self) -> int:
        """The end of the last stored chunk or shard."""
        return self.bounds(self.count - 1)[1]

    @property
    def cells(self) -> list[tuple[int, float, float]]:
        """The cells that are drawn: for each, its number, and its start and end in pixels."""
        if self.count <= _MAX_CELLS:
            bounds = map(self.bounds, range(self.count))
            return [
                (i, self.pixels * (a / self.extent), self.pixels * (b / self.extent)) for i, (a, b) in enumerate(bounds)
            ]
        step = (self.pixels - _GAP) / (_FIRST + _LAST)
        first = [(i, i * step, (i + 1) * step) for i in range(_FIRST)]
        return first + [
            (self.count - _LAST + i, self.pixels - (_LAST - i) * step, self.pixels - (_LAST - i - 1) * step)
            for i in range(_LAST)
        ]

    @property
    def gap(self) -> float | None:
        """The middle of the gap in pixels. None if all cells are drawn."""
        return None if self.count <= _MAX_CELLS else self.cells[_FIRST - 1][2] + _GAP / 2

    @property
    def end(self) -> float:
        """The end of the array, in pixels."""
        i, start, stop = self.cells[-1]
        first, end = self.bounds(i)
        return start + (self.length - first) / (end - first) * (stop - start)

    @property
    def lines(self) -> list[float]:
        """The boundaries between cells, in pixels."""
        return sorted({x for _, start, stop in self.cells for x in (start, stop)} - {0.0, self.pixels})

    @property
    def inner_lines(self) -> list[float]:
        """The boundaries between inner chunks, in pixels; empty if they are too close to be drawn."""
        lines: list[float] = []
        for i, start, stop in self.cells:
            first, end = self.bounds(i)
            parts = (end - first) // self.inner
            if self.cell == self.inner or (stop - start) / parts < _MIN_INNER:
                return []
            lines += [start + (stop - start) * k / parts for k in range(1, parts)]
        return lines

    @property
    def words(self) -> str:
        """The dimension in words: its name and length, the number of cells and their length."""
        name = f"{self.name} " if self.name else ""
        if not self.length:
            return f"{name}0"
        size = str(self.cell) if self.extent == self.count * self.cell else f"up to {self.cell}"
        if self.cell == self.inner:
            return f"{name}{self.length}: {plural(self.count, 'chunk')} of {size}"
        return f"{name}{self.length}: {plural(self.count, 'shard')} of {size}, chunks of {self.inner}"


def grid_picture(metadata: ArrayMetadata, chunks: Shape, shards: Shape | None, side: float = SIDE) -> Picture:
    """Draw an array with these chunks and shards. The longest side of the drawing is `side` pixels long."""
    ndim = len(metadata.shape)
    names = metadata.dimension_names or (None,) * ndim
    every = [_axis(metadata, dim, names[dim] or "", chunks, shards) for dim in range(ndim)]
    shown = min(ndim, 3)
    first = ndim - shown
    longest = max((axis.extent for axis in every[first:]), default=1)
    axes = []
    for i, axis in enumerate(every[first:]):
        longest_side = pixels = side * _DEPTH if shown == 3 and i == 0 else side
        if axis.count <= _MAX_CELLS:
            pixels = min(max(longest_side * (axis.extent / longest) ** 0.6, side * _MIN_SIDE), longest_side)
        axes.append(replace(axis, pixels=pixels))
    if not axes:
        axes = [Axis("", 1, 1, 1, side * _MIN_SIDE)]
    if len(axes) == 1:
        axes = [Axis("", 1, 1, 1, side * _MIN_SIDE), *axes]
    others = [replace(axis, name=axis.name or f"dimension {i}") for i, axis in enumerate(every[:first])]
    key = metadata.chunk_key_encoding.encode((0,) * ndim)
    return _cuboid(axes, others, ndim, f"{'shard' if shards else 'chunk'} {key}")


def _axis(metadata: ArrayMetadata, dim: int, name: str, chunks: Shape, shards: Shape | None) -> Axis:
    """Describe a dimension of an array. Its size in pixels is 0 until the caller sets it."""
    grid = metadata.folded().chunk_grid  # the grid of shards, including shards that a storage transformer creates

    def bounds(i: int) -> tuple[int, int]:
        coords = tuple(i if d == dim else 0 for d in range(len(metadata.shape)))
        start = grid.origin(coords)[dim]
        return start, start + grid.chunk_shape(coords)[dim]

    count = max(1, grid.grid_shape(metadata.shape)[dim])
    return Axis(name, metadata.shape[dim], (shards or chunks)[dim], chunks[dim], 0.0, count, bounds)


def _cuboid(axes: list[Axis], others: list[Axis], ndim: int, first: str) -> Picture:
    *depth, y, x = axes
    z = depth[0] if depth else None
    lean = z.pixels * 0.6 if z else 0.0  # pixels by which the back of the cuboid is shifted to the right and upwards
    bottom = lean + y.pixels
    beside = ndim > 1 and text_width(y.words) <= bottom  # whether the label of the vertical axis fits beside it
    left = 22.0 if beside else 0.0
    empty = any(axis.length == 0 for axis in [*axes, *others])
    drawn = _outline(x, y) if empty else _faces(x, y, z, lean) + _front(x, y, first, flat=z is None)
    body = element("g", drawn, transform=f"translate({number(left)} {number(lean)})")
    lines = [x.words] if ndim else ["one element, no dimensions"]
    lines += [f"{y.words} (down)"] if ndim > 1 and not beside else []
    lines += ([f"{z.words} (to the back)"] if z else []) + [axis.words for axis in others[:8]]
    if len(others) > 8:
        lines.append(f"and {len(others) - 8} more dimensions")
    if empty:
        lines.append("no elements")
    labels = [text(left, bottom + 15 * (i + 1), line) for i, line in enumerate(lines)]
    if beside:
        labels.append(text(0, 0, y.words, transform=f"translate(13 {number(bottom)}) rotate(-90)"))
    width = left + max([x.pixels + lean, *map(text_width, lines)])
    return Picture(width, bottom + 15 * len(lines) + 4, body + "".join(labels))


def _outline(x: Axis, y: Axis) -> str:
    return element(
        "rect", width=x.pixels, height=y.pixels, fill="none", stroke=COLOURS["array"][1], stroke_dasharray="3 3"
    )


def _front(x: Axis, y: Axis, first: str, *, flat: bool) -> str:
    """Draw the plane of the last two dimensions. Parts of chunks beyond the array are drawn only if `flat`."""
    face, edge = COLOURS["array"]
    sharded = (x.cell, y.cell) != (x.inner, y.inner)
    shade, strong = COLOURS["shard" if sharded else "elements"]
    right, low = (x.pixels, y.pixels) if flat else (x.end, y.end)
    parts = [_outline(x, y)] if flat else []
    parts.append(element("rect", width=x.end, height=y.end, fill=face))
    stored = min(x.cells[0][2], x.end), min(y.cells[0][2], y.end)
    parts.append(element("rect", title(first), width=stored[0], height=stored[1], fill=shade))
    thin = {"stroke": edge, "stroke_width": "0.6", "stroke_opacity": "0.6"}
    firm = {"stroke": strong if sharded else edge, "stroke_width": "1.4" if sharded else "0.9"}
    for style, across, down in ((thin, x.inner_lines, y.inner_lines), (firm, x.lines, y.lines)):
        parts += [_line(at, 0, at, low, **style) for at in across if at < right]
        parts += [_line(0, at, right, at, **style) for at in down if at < low]
    parts.append(element("rect", width=x.end, height=y.end, fill="none", stroke=edge, stroke_width="1.6", rx=1))
    parts += [_gap(axis.gap, right, low, axis is x) for axis in (x, y) if axis.gap is not None]
    return "".join(parts)


def _gap(at: float, right: float, low: float, across: bool) -> str:
    """Draw a gap in place of the cells that are left out."""
    half = _GAP / 2 - 1
    place = (at - half, -1.0, 2 * half, low + 2) if across else (-1.0, at - half, right + 2, 2 * half)
    middle = place[0] + place[2] / 2, place[1] + place[3] / 2 + 5
    dots = text(*middle, "⋯" if across else "⋮", size=16, fill="#57606a", text_anchor="middle")
    return box(*place, "more", stroke="none") + dots


def _faces(x: Axis, y: Axis, z: Axis | None, lean: float) -> str:
    """Draw the top and the right side of a cuboid."""
    if z is None:
        return ""
    _, edge = COLOURS["array"]
    right, low = x.end, y.end
    share = lean / z.pixels
    top = _points((0, 0), (lean, -lean), (right + lean, -lean), (right, 0))
    side = _points((right, 0), (right + lean, -lean), (right + lean, low - lean), (right, low))
    parts = [
        element("polygon", points=top, fill="#cbe7fa", stroke=edge, stroke_width="1.2", stroke_linejoin="round"),
        element("polygon", points=side, fill="#b7d9f2", stroke=edge, stroke_width="1.2", stroke_linejoin="round"),
    ]
    style = {"stroke": edge, "stroke_width": "0.8"}
    for at in z.lines:
        shift = at * share
        parts.append(_line(shift, -shift, right + shift, -shift, **style))
        parts.append(_line(right + shift, -shift, right + shift, low - shift, **style))
    parts += [_line(at, 0, at + lean, -lean, **style) for at in x.lines if at < right]
    parts += [_line(right, at, right + lean, at - lean, **style) for at in y.lines if at < low]
    return "".join(parts)


def _points(*points: tuple[float, float]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in points)


def _line(x1: float, y1: float, x2: float, y2: float, **style: object) -> str:
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), **style)
