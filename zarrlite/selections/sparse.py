"""Sparse selections: a few elements of each of many chunks, projected onto all chunks at once with numpy.

Rules
- The result is that of `Selection.project`, as selections of elements by their numbers.
- Selections of larger parts of chunks, or of very many elements, are left to `project`, which keeps no list of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from zarrlite.selections.selection import FlatSelection, Points, Selection, Shape
from zarrlite.tuning import MAX_SPARSE_ELEMENTS, SPARSE_ELEMENTS

Job = tuple[Shape, FlatSelection, FlatSelection]  # a chunk, the selection inside of it, its place in the result


def project_sparse(selection: Selection, chunk_shape: Shape) -> Iterator[Job] | None:
    """Project a selection of a few elements of each of some chunks. Returns None if it has more."""
    size = math.prod(selection.shape)
    if not 0 < size <= MAX_SPARSE_ELEMENTS or Points not in map(type, selection.parts):
        return None
    mesh = selection.mesh([part.coordinates() for part in selection.parts])
    chunks, inside = zip(*map(np.divmod, mesh, chunk_shape), strict=True)
    grid = [int(along.max()) + 1 for along in chunks]
    if size > SPARSE_ELEMENTS * math.prod([len(np.unique(along)) for along in chunks]):
        return None
    try:
        numbers: Any = np.ravel_multi_index(chunks, grid).ravel()
        elements: Any = np.ravel_multi_index(inside, chunk_shape).ravel()
    except ValueError:  # the numbers overflow, or numpy does not take that many dimensions here
        return None
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    coords = zip(*[along.tolist() for along in np.unravel_index(numbers[firsts], grid)], strict=True)
    return _jobs([*coords], firsts, elements[order], order, chunk_shape, selection.shape)


def _jobs(
    chunks: list[Shape], firsts: Any, elements: Any, places: Any, chunk_shape: Shape, shape: Shape
) -> Iterator[Job]:
    """Yield the jobs of all chunks; `firsts` has the position of the first element of each chunk."""
    lows, highs = np.minimum.reduceat(elements, firsts).tolist(), np.maximum.reduceat(elements, firsts).tolist()
    ends = [*firsts.tolist(), len(elements)]
    for i, chunk in enumerate(chunks):
        part = slice(ends[i], ends[i + 1])
        inside = FlatSelection(elements[part], chunk_shape, (lows[i], highs[i]))
        yield chunk, inside, FlatSelection(places[part], shape)
