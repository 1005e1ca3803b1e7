"""Sparse selections: a few elements in each of many chunks, projected onto all chunks at once with numpy.

Rules
- The result is the same as that of `Selection.project`, but elements are selected by their row-major (flat) indices.
- Selections with many elements per chunk, or very many in total, are left to `project`, which does not list elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from zarrlite.selections.selection import FlatSelection, Points, Selection, Shape
from zarrlite.tuning import MAX_SPARSE_ELEMENTS, SPARSE_ELEMENTS


class SparseBatch(NamedTuple):
    """A few elements in each of several chunks."""

    coords: Sequence[Shape]  # the chunks
    counts: Any  # the number of elements in each chunk
    numbers: Any  # the row-major index of each element in its chunk, in the order of the chunks
    places: Any  # the row-major index of each element in the result

    def parts(self, chunk_shape: Shape) -> Iterator[tuple[slice, FlatSelection]]:
        """Yield, for each chunk, the slice of its elements in the batch, and their selection in the chunk."""
        first = 0
        for count in self.counts.tolist():
            part = slice(first, first + count)
            yield part, FlatSelection(self.numbers[part], chunk_shape)
            first += count


def project_sparse(selection: Selection, chunk_shape: Shape, most: int) -> Iterator[SparseBatch] | None:
    """Project a selection of a few elements per chunk, at most `most` chunks at a time.

    Returns None if the selection has too many elements, per chunk or in total, or if none of its parts is `Points`.
    """
    size = math.prod(selection.shape)
    if not 0 < size <= MAX_SPARSE_ELEMENTS or Points not in map(type, selection.parts):
        return None
    mesh = selection.mesh([part.coordinates() for part in selection.parts])
    chunks, inside = zip(*map(np.divmod, mesh, chunk_shape), strict=True)
    grid = [int(along.max()) + 1 for along in chunks]
    if size > SPARSE_ELEMENTS * math.prod([len(np.unique(along)) for along in chunks]):
        return None
    try:
        owners: Any = np.ravel_multi_index(chunks, grid).ravel()
        numbers: Any = np.ravel_multi_index(inside, chunk_shape).ravel()
    except ValueError:  # the indices overflow, or numpy does not support that many dimensions here
        return None
    order = np.argsort(owners, kind="stable")
    owners = owners[order]
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    coords = [*zip(*[along.tolist() for along in np.unravel_index(owners[firsts], grid)], strict=True)]
    return _batches(coords, [*firsts.tolist(), size], numbers[order], order, most)


def _batches(coords: list[Shape], ends: list[int], numbers: Any, places: Any, most: int) -> Iterator[SparseBatch]:
    for i in range(0, len(coords), most):
        bounds = ends[i : i + most + 1]
        part = slice(bounds[0], bounds[-1])
        yield SparseBatch(coords[i : i + most], np.diff(bounds), numbers[part], places[part])
