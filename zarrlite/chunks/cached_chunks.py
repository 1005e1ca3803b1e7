"""The chunks of an array, with a cache of decoded chunks (`open(..., chunk_cache=...)`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from zarrlite import threads
from zarrlite.chunks.chunk_cache import Cell, ChunkCache
from zarrlite.chunks.chunks import Chunks
from zarrlite.errors import ZarrliteError
from zarrlite.pipeline.elements import NDArray
from zarrlite.selections.selection import Points, Selection, Shape, Span
from zarrlite.stores.base import place_of

Wanted = tuple[Shape, Shape, Shape]  # a cell: coordinates in the grid of cells, origin in the array, shape


class CachedChunks(Chunks):
    """Chunks that are decoded completely and cached. Reads that need more than half of the cache bypass it."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        cache: Any = self.options.cache
        self._cache: ChunkCache = cache
        ndim = len(self.metadata.shape)
        encoding = self.metadata.chunk_key_encoding
        cache.register(self.prefix, lambda key: encoding.decode(key, ndim) is not None)
        self._cell_shape = self._decoded_at_once()  # None if the chunks differ in shape

    def _decoded_at_once(self) -> Shape | None:
        """Return the shape of a cell, the unit of decoding. Returns None if the chunks differ in shape."""
        pipeline = self._pipeline
        if pipeline is None:
            return None
        shape: Shape | None = pipeline.serializer.codec.inner_chunk_shape
        for codec, _ in reversed(pipeline.filters):
            shape = shape and codec.decoded_shape(shape)
        return shape or pipeline.spec.shape

    def _cells(self, selection: Selection) -> Iterator[tuple[Wanted, Selection, Selection]]:
        """Yield the cells that a selection touches, each with the selections in the cell and in the result."""
        length = self._cell_shape
        projected = self.grid.project(selection) if length is None else selection.project(length)
        for coords, inside, place in projected:
            if length is None:
                origin, shape = self.grid.origin(coords), self.grid.chunk_shape(coords)
            else:
                origin, shape = tuple(i * n for i, n in zip(coords, length, strict=True)), length
            bounds = zip(shape, origin, self.metadata.shape, strict=True)
            yield (coords, origin, tuple(min(n, total - start) for n, start, total in bounds)), inside, place

    def read(self, selection: Selection, out: NDArray) -> None:
        most = self._cache.max_bytes // 2
        if self._cell_shape is not None and selection.plain:
            nbytes = math.prod(self._cell_shape) * out.dtype.itemsize
            if nbytes * selection.spread(self._cell_shape) > most:
                super().read(selection, out)
                return
        cells = []
        for wanted, inside, place in self._cells(selection):
            cells.append((wanted, inside, place))
            most -= math.prod(wanted[2]) * out.dtype.itemsize
            if most < 0:
                super().read(selection, out)
                return
        found = {wanted[0]: self._find(wanted) for wanted, _, _ in cells}
        missing = [wanted for wanted, _, _ in cells if found[wanted[0]] is None]
        if missing:
            found.update(self._load(missing, out.dtype))
        for wanted, inside, place in cells:
            place.put(out, inside.take(found[wanted[0]]))  # type: ignore[arg-type]

    def element(self, coords: Shape) -> Any:
        box = Selection.box(coords, (1,) * len(coords))
        out = np.empty(box.shape, self.metadata.data_type.dtype)
        self.read(box, out)
        return out[(0,) * len(coords)]

    def _chunk(self, wanted: Wanted) -> str:
        """Return the key, relative to the root, of the chunk that contains a cell."""
        return self.prefix + self._encode_key(self.grid.locate(wanted[1])[0])

    def _find(self, wanted: Wanted) -> Cell | None:
        return self._cache.find(self._chunk(wanted), wanted[0], wanted[2])

    def _load(self, missing: list[Wanted], dtype: np.dtype[Any]) -> dict[Shape, Cell]:
        """Read cells and cache them. Cells of the same shard are read together."""
        groups: dict[str, list[Wanted]] = {}
        for wanted in missing:
            groups.setdefault(self._chunk(wanted), []).append(wanted)
        loaded: dict[Shape, Cell] = {}

        def load(key: str) -> None:
            generation = self._cache.generation(key)
            for wanted, elements in self._read_cells(groups[key], dtype):
                self._cache.store(key, wanted[0], elements, generation)
                loaded[wanted[0]] = elements

        held = max(sum(math.prod(wanted[2]) for wanted in group) for group in groups.values()) * dtype.itemsize
        threads.run(load, groups, held * len(groups), place_of(self.store), 2 * held)
        return loaded

    def _read_cells(self, cells: list[Wanted], dtype: np.dtype[Any]) -> Iterator[tuple[Wanted, Cell]]:
        if len(cells) > 1:
            try:
                together = self._read_together(cells, dtype)
            except ZarrliteError:
                together = None  # reading the cells one by one raises the error for the cell at fault
            if together is not None:
                yield from together
                return
        for wanted in cells:
            elements = np.empty(wanted[2], dtype)
            super().read(Selection.box(wanted[1], wanted[2]), elements)
            yield wanted, elements

    def _read_together(self, cells: list[Wanted], dtype: np.dtype[Any]) -> list[tuple[Wanted, Cell]] | None:
        """Read cells of a shard with one selection.

        Returns None if the selection would cover more than twice as many cells as requested.
        """
        length = self._cell_shape or ()
        rows = [sorted({wanted[0][dim] for wanted in cells}) for dim in range(len(length))]
        if math.prod(map(len, rows)) > 2 * len(cells):
            return None
        ends = self.metadata.shape
        spans = [[(i * n, min((i + 1) * n, end)) for i in row] for row, n, end in zip(rows, length, ends, strict=True)]
        selection = Selection([_part(along) for along in spans])
        elements = np.empty(selection.shape, dtype)
        super().read(selection, elements)
        starts = [
            dict(zip(row, itertools.accumulate((b - a for a, b in along), initial=0), strict=False))
            for row, along in zip(rows, spans, strict=True)
        ]
        found = []
        for wanted in cells:
            first = [start[i] for start, i in zip(starts, wanted[0], strict=True)]
            box = tuple(slice(a, a + n) for a, n in zip(first, wanted[2], strict=True))
            found.append((wanted, elements[box].copy()))
        return found


def _part(spans: list[tuple[int, int]]) -> Span | Points:
    """Merge contiguous spans into one. If the spans are not contiguous, return all their positions as points."""
    if all(before[1] == after[0] for before, after in itertools.pairwise(spans)):
        return Span(spans[0][0], spans[-1][1] - spans[0][0])
    return Points((np.concatenate([np.arange(start, stop) for start, stop in spans]),))
