"""A few elements of each of many chunks: where they are, worked out for all chunks by a few numpy operations.

Rules
- What is found is the same as by `Selection.project`, as selections of elements by their numbers.
- Larger parts of chunks, and very many elements, are left to `project`, which has no list of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from zarrlite.selections.selection import Part, Points, Selection, Shape

FEW = 16  # elements of a chunk on average, at most
MOST = 2**17  # elements in all
Array = np.ndarray[Any, Any]


class Numbered(Selection):
    """Elements by their numbers in an array of some shape, row-major; they make one axis."""

    plain = False

    def __init__(self, numbers: Array, of: Shape) -> None:
        self.numbers = numbers
        self.shape = (len(numbers),)
        self._of = of

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Points(tuple(np.unravel_index(self.numbers, self._of))),)

    @property
    def dims(self) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(len(self._of))),)

    def take(self, array: Array) -> Array:
        return array.take(self.numbers)

    def put(self, array: Array, values: Array) -> None:
        array.put(self.numbers, values)


class Scattered(NamedTuple):
    """Elements, chunk after chunk."""

    chunks: list[Shape]
    bounds: list[int]  # where the elements of each chunk begin, and all end
    elements: Array  # their numbers in their chunks
    places: Array  # their numbers in the result
    chunk_shape: Shape
    shape: Shape

    def job(self, i: int) -> tuple[Shape, Numbered, Numbered]:
        """The coordinates of a chunk, what is inside of it, the place of that in the result."""
        part = slice(self.bounds[i], self.bounds[i + 1])
        return self.chunks[i], Numbered(self.elements[part], self.chunk_shape), Numbered(self.places[part], self.shape)

    def jobs(self) -> Iterator[tuple[Shape, Numbered, Numbered]]:
        """All chunks."""
        return map(self.job, range(len(self.chunks)))


def scattered(selection: Selection, chunk_shape: Shape) -> Scattered | None:
    """The elements of a selection, if it has a few of each of some chunks; None: it has more."""
    size = math.prod(selection.shape)
    if not 0 < size <= MOST or Points not in map(type, selection.parts):
        return None
    mesh = selection.mesh([part.coordinates() for part in selection.parts])
    chunks, inside = zip(*map(np.divmod, mesh, chunk_shape), strict=True)
    grid = [int(along.max()) + 1 for along in chunks]
    if size > FEW * math.prod([len(np.unique(along)) for along in chunks]):
        return None
    try:
        numbers: Any = np.ravel_multi_index(chunks, grid).ravel()
        elements: Any = np.ravel_multi_index(inside, chunk_shape).ravel()
    except ValueError:  # there are no such numbers, or more dimensions than numpy takes here
        return None
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    coords = zip(*[along.tolist() for along in np.unravel_index(numbers[firsts], grid)], strict=True)
    return Scattered([*coords], [*firsts.tolist(), size], elements[order], order, chunk_shape, selection.shape)
