"""Selections of array elements in one normal form, and their projection onto a grid.

Rules
- A `Selection` is a list of parts. Each part selects along one dimension (a `Span`) or several at once (`Points`), and
  forms one axis of the result. The parts are in the order of these axes, which can differ from the order of the array's
  dimensions, so each part names its dimensions.
- `indexing.py` translates negative steps, integers, new axes and masks into this form; lower layers use only this form.
- The form is closed under projection: projecting a `Selection` onto a chunk yields a `Selection` of that chunk.
- A grid divides each dimension independently, into chunks of equal length or those that an `Edges` object describes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from operator import add, mul
from typing import Any, NamedTuple

import numpy as np

from zarrlite.cached import cached_property
from zarrlite.selections.edges import Edges

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Division = int | Edges  # a dimension divided into chunks
Divisions = tuple[Division, ...]


class Span(NamedTuple):
    """`length` elements along one dimension: the first is at `start`, neighbours are `step` (positive) apart."""

    start: int
    length: int
    step: int = 1

    def coordinates(self) -> tuple[Array, ...]:
        """Return the positions as an index array."""
        return (np.arange(self.length) * self.step + self.start,)

    @property
    def along_one(self) -> tuple[int, int, Array]:
        """The first and the last position, and all positions relative to the first."""
        last = (self.length - 1) * self.step
        return self.start, self.start + last, np.arange(0, last + 1, self.step)

    def along(self, division: Division) -> Iterator[tuple[Shape, Span, Span]]:
        """Yield for each chunk: its index, the part inside it, and the corresponding part of the result."""
        for chunk, first, length, place, _ in _pieces(self, division):
            yield (chunk,), Span(first, length, self.step), Span(place, length)


class Points:
    """Single elements: one index array for each dimension, all of the same length."""

    def __init__(self, coords: tuple[Array, ...]) -> None:
        self.coords = coords
        self.length = len(coords[0])

    def __repr__(self) -> str:
        return f"Points({self.coords!r})"

    def coordinates(self) -> tuple[Array, ...]:
        """Return the positions, one index array for each dimension."""
        return self.coords

    @cached_property
    def along_one(self) -> tuple[int, int, Array]:
        """The first and the last position, and all positions relative to the first; for one dimension only."""
        (coords,) = self.coords
        first = int(coords.min())
        return first, int(coords.max()), coords - first

    def along(self, divisions: Divisions) -> Iterator[tuple[Shape, Points, Part]]:
        """Yield for each chunk that contains points: its index, the points in it, and their places in the result."""
        pairs = zip(self.coords, divisions, strict=True)
        chunks = [c // n if type(n) is int else n.chunks(c) for c, n in pairs]  # type: ignore[union-attr]
        group = np.zeros(self.length, np.intp)
        for c in chunks:  # groups are renumbered for each dimension, as row-major chunk numbers could overflow
            values, inverse = np.unique(c, return_inverse=True)
            group = np.unique(group * len(values) + inverse, return_inverse=True)[1]
        order = np.argsort(group, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            first = places[0]
            position = tuple(int(k[first]) for k in chunks)
            starts = [k * n if type(n) is int else n.bounds(k)[0] for k, n in zip(position, divisions, strict=True)]  # type: ignore[union-attr]
            inner = tuple(c[places] - start for c, start in zip(self.coords, starts, strict=True))
            consecutive = places[-1] - first == len(places) - 1  # always true if the points are sorted by chunk
            outer = Span(int(first), len(places)) if consecutive else Points((places,))
            yield position, Points(inner), outer


Part = Span | Points


_IN_ORDER = tuple((dim,) for dim in range(64))


class Selection:
    """A list of parts, each with the dimensions along which it selects (by default one for each part, in order)."""

    plain = True  # whether the parts are slices of the dimensions in order, which numpy indexes without a copy
    starts: Shape = ()  # the first index along each dimension; set only if `plain`
    steps: Shape | None = None  # the step along each dimension; set only if `plain` and not every step is 1
    _parts: tuple[Part, ...] = ()
    _dims: tuple[tuple[int, ...], ...] = ()
    _slices: tuple[Any, ...] | None = None  # the numpy index of a plain selection, computed on first use
    _mesh: tuple[Array, ...] | None = None  # the numpy index of a selection with points, if already computed

    def __init__(self, parts: Sequence[Part], dims: Sequence[tuple[int, ...]] | None = None) -> None:
        self._parts = tuple(parts)
        self.shape = tuple([part.length for part in parts])
        self._dims = _IN_ORDER[: len(parts)] if dims is None else tuple(dims)
        self.plain = self._dims == _IN_ORDER[: len(parts)] and Points not in map(type, parts)
        spans: Any = parts if self.plain else ()
        self.starts = tuple([span.start for span in spans])
        if any(span.step != 1 for span in spans):
            self.steps = tuple([span.step for span in spans])

    @classmethod
    def box(cls, starts: Shape, shape: Shape, steps: Shape | None = None) -> Selection:
        """Return a selection of one `Span` for each dimension; the spans are created on first use."""
        new = cls.__new__(cls)
        new.starts, new.shape = starts, shape
        if steps is not None:
            new.steps = steps
        return new

    @classmethod
    def _picked(cls, parts: tuple[Part, ...], dims: tuple[tuple[int, ...], ...]) -> Selection:
        """Return `Selection(parts, dims)` for parts that are known not to be plain."""
        new = cls.__new__(cls)
        new._parts, new._dims, new.plain = parts, dims, False
        new.shape = tuple([part.length for part in parts])
        return new

    @property
    def parts(self) -> tuple[Part, ...]:
        if not self._parts:
            self._parts = tuple(map(Span, self.starts, self.shape, self.steps or itertools.repeat(1)))
        return self._parts

    @property
    def dims(self) -> tuple[tuple[int, ...], ...]:
        return self._dims or _IN_ORDER[: len(self.shape)]

    def __repr__(self) -> str:
        return f"Selection({list(self.parts)}, {list(self.dims)})"

    @property
    def ndim(self) -> int:
        """The number of dimensions of the array from which elements are selected."""
        return sum(map(len, self.dims))

    def covers(self, shape: Shape) -> bool:
        """Whether all elements of an array of this shape are selected, in order."""
        # slices are within bounds, so a slice as long as its dimension must select all of it
        return self.plain and self.shape == shape

    def spans_all(self, shape: Shape) -> bool:
        """Whether every element is selected, in any order of dimensions."""
        if self.plain:
            return self.shape == shape
        pairs = zip(self.parts, self.dims, strict=True)
        return all(type(p) is Span and p == (0, shape[d[0]], 1) for p, d in pairs)

    def relabel(self, order: Sequence[int]) -> Selection:
        """Return a selection that takes the same elements, with the same axes, from `numpy.transpose(array, order)`."""
        position = {dim: i for i, dim in enumerate(order)}
        return Selection(self.parts, [tuple(position[d] for d in dims) for dims in self.dims])

    def take(self, array: Array) -> Array:
        """Return the selected elements as an array with one axis for each part."""
        if self.plain:
            view: Array = array[self._slices or self._sliced()]
            return view
        index, order = self.numpy_index()
        elements: Array = array[index] if order is None else array.transpose(order)[index]
        return elements

    def put(self, array: Array, values: Array) -> None:
        """Assign values (an array with the selection's shape, or a scalar) to the selected elements."""
        if self.plain:
            array[self._slices or self._sliced()] = values
            return
        if array.dtype.kind == "T":
            values = _one_for_each(values, self.shape, array.dtype)
        index, order = self.numpy_index()
        if order is None:
            array[index] = values
        else:
            array.transpose(order)[index] = values

    def _sliced(self) -> tuple[Any, ...]:
        """Return the numpy index: slices, and an ellipsis so that an array without dimensions stays an array."""
        slices: Any
        if self.steps is None:
            slices = map(slice, self.starts, map(add, self.starts, self.shape))
        else:
            slices = map(slice, self.starts, map(add, self.starts, map(mul, self.shape, self.steps)), self.steps)
        self._slices = (*slices, ...)
        return self._slices

    def numpy_index(self) -> tuple[tuple[Any, ...], list[int] | None]:
        """Return the numpy index, and the order into which dimensions must be transposed for it (None: unchanged)."""
        if self._mesh is not None:
            return self._mesh, None
        if Points in map(type, self.parts):
            return self.mesh([part.coordinates() for part in self.parts]), None
        slices = tuple([slice(start, start + length * step, step) for start, length, step in self.parts])  # type: ignore[misc]
        return slices, None if self.plain else [dim for (dim,) in self.dims]

    def mesh(self, coordinates: Sequence[Sequence[Array]]) -> tuple[Array, ...]:
        """Return index arrays, one for each dimension, that broadcast to the shape of the result.

        `coordinates` are the index arrays of each part.
        """
        mesh: list[Any] = [None] * self.ndim
        for axis, (coords, dims) in enumerate(zip(coordinates, self.dims, strict=True)):
            for dim, coord in zip(dims, self._along_axis(axis, coords), strict=True):
                mesh[dim] = coord
        return tuple(mesh)

    def project(self, divisions: Divisions) -> Iterator[tuple[Shape, Selection, Selection]]:
        """Yield for each chunk of a grid: its coordinates, the selection in it, and its place in the result."""
        if 0 in self.shape:
            return
        if self.plain:
            yield from self._project_box(divisions)
            return
        meshed = Points in map(type, self.parts)
        order = [dim for dims in self.dims for dim in dims]
        back = None if order == sorted(order) else [order.index(dim) for dim in range(len(order))]
        for picks in _product([self._along(axis, divisions, meshed) for axis in range(len(self.parts))]):
            chunks, parts, places, coords = zip(*picks, strict=True)
            position, mesh = sum(chunks, ()), sum(coords, ())
            if back is not None:
                position = tuple([position[i] for i in back])
                mesh = tuple([mesh[i] for i in back]) if meshed else ()
            inside = Selection._picked(parts, self.dims)
            inside._mesh = mesh if meshed else None
            if Points in map(type, places):
                yield position, inside, Selection(places)
            else:
                yield position, inside, Selection.box(tuple([span.start for span in places]), inside.shape)

    def _project_box(self, divisions: Divisions) -> Iterator[tuple[Shape, Selection, Selection]]:
        """Project slices. Each dimension is divided into pieces only once instead of for every chunk."""
        only = self.only_chunk(divisions)
        if only is not None:
            yield (*only, everything(self.shape))
            return
        inside = Selection.box((), ())
        pairs: Any = zip(self.parts, divisions, strict=True)
        for picks in _product([_pieces(span, division) for span, division in pairs]):
            chunk, firsts, lengths, places, slices = zip(*picks, strict=True)
            if inside.shape != lengths or inside.starts != firsts:  # else reuse the previous one
                inside = Selection.box(firsts, lengths, self.steps)
            place = Selection.box(places, lengths)
            place._slices = (*slices, ...)
            yield chunk, inside, place

    def spread(self, chunk_shape: Shape) -> int:
        """Return an upper bound on the number of chunks that contain selected elements."""
        count = 1
        for part, dims in zip(self.parts, self.dims, strict=True):
            if type(part) is Span and part.length:
                last = part.start + (part.length - 1) * part.step
                n = chunk_shape[dims[0]]
                count *= min(part.length, last // n - part.start // n + 1)
            else:
                count *= part.length
        return count

    def only_chunk(self, divisions: Divisions) -> tuple[Shape, Selection] | None:
        """Return the chunk that contains the whole selection, and the selection inside it. This case is common.

        Returns None if there is no such chunk, if nothing is selected, or if the selection is not plain.
        """
        shape, starts = self.shape, self.starts
        if not self.plain or 0 in shape:
            return None
        reach = shape if self.steps is None else [(n - 1) * step + 1 for n, step in zip(shape, self.steps, strict=True)]
        chunk, inside = [], []
        for dim, n in enumerate(divisions):
            start = starts[dim]
            if type(n) is int:
                number, first = start // n, start % n
            else:
                number, first, n = n.find(start)  # type: ignore[union-attr]
            if first + reach[dim] > n:
                return None
            chunk.append(number)
            inside.append(first)
        return tuple(chunk), Selection.box(tuple(inside), shape, self.steps)

    def _along(self, axis: int, divisions: Divisions, meshed: bool) -> Iterator[tuple[Shape, Any, Any, Any]]:
        """Yield for each chunk along one axis: its index, the part in it, its place in the result, and index arrays.

        The index arrays are empty unless `meshed`.
        """
        part, dims = self.parts[axis], self.dims[axis]
        if isinstance(part, Points):
            projected: Iterator[tuple[Shape, Any, Any]] = part.along(tuple(divisions[d] for d in dims))
        else:
            projected = part.along(divisions[dims[0]])
        for chunk, inside, place in projected:
            yield chunk, inside, place, self._along_axis(axis, inside.coordinates()) if meshed else ()

    def _along_axis(self, axis: int, coords: Sequence[Array]) -> tuple[Array, ...]:
        """Reshape index arrays to broadcast along one axis of the result."""
        shape = (-1, *(1,) * (len(self.dims) - axis - 1))
        return tuple([coord.reshape(shape) for coord in coords])


class FlatSelection(Selection):
    """Elements selected by their row-major (flat) indices; the result has one axis."""

    plain = False

    def __init__(self, numbers: Array, of: Shape) -> None:
        self.numbers = numbers
        self.shape = (len(numbers),)
        self._of = of  # the shape of the array from which elements are selected

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Points(tuple(np.unravel_index(self.numbers, self._of))),)

    @property
    def dims(self) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(len(self._of))),)

    def take(self, array: Array) -> Array:
        return array.take(self.numbers)

    def put(self, array: Array, values: Array) -> None:
        if array.dtype.kind == "T":  # numpy's `put` loses long strings (see `_one_for_each`)
            array[np.unravel_index(self.numbers, self._of)] = _one_for_each(values, self.shape, array.dtype)
        else:
            array.put(self.numbers, values)


def _one_for_each(values: Any, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Return one string per element.

    When numpy (2.0 to 2.4) assigns one long string to several elements through index arrays, the string is lost.
    """
    return np.broadcast_to(np.asarray(values, dtype), shape)


def _product(ways: Sequence[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield the cartesian product; the first factor is consumed lazily, since a long dimension can have many chunks."""
    first, *rest = ways
    others = [list(way) for way in rest]
    for head in first:
        for tail in itertools.product(*others):
            yield (head, *tail)


def _pieces(span: Span, division: Division) -> Iterator[tuple[int, int, int, int, slice]]:
    """Yield the pieces of a span in the chunks along one dimension.

    Each piece contains the index of the chunk, the first position in the chunk, the number of elements, and the place
    of these elements in the result, both as a start and as a slice.
    """
    return _equal_pieces(span, division) if isinstance(division, int) else division.pieces(*span)


def _equal_pieces(span: Span, chunk_length: int) -> Iterator[tuple[int, int, int, int, slice]]:
    """Yield the pieces of a span in chunks of equal length."""
    start, length, step = span
    place = 0
    while place < length:
        chunk, first = divmod(start + place * step, chunk_length)
        stop = min(length, place + (chunk_length - first + step - 1) // step)
        yield chunk, first, stop - place, place, slice(place, stop)
        place = stop


def everything(shape: Shape) -> Selection:
    """Select a whole array."""
    return Selection.box((0,) * len(shape), shape)
