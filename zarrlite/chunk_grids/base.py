"""What a chunk grid is: a division of an array into chunks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from operator import mul
from typing import ClassVar

from zarrlite.extensions.extension import Extension
from zarrlite.selections.selection import Selection, Shape


class ChunkGrid(Extension):
    """A division of an array; the array's shape is given with each question."""

    kind: ClassVar[str] = "chunk_grid"
    uniform: ClassVar[bool] = False  # whether all chunks have one shape

    @abstractmethod
    def check(self, shape: Shape) -> None:
        """Raise MetadataError, with a pointer relative to the grid, if it does not fit an array of this shape."""

    @abstractmethod
    def grid_shape(self, shape: Shape) -> Shape:
        """The number of chunks along each dimension."""

    @abstractmethod
    def chunk_shape(self, coords: Shape) -> Shape:
        """The shape of one chunk, as it is encoded: at the edges it may reach beyond the array."""

    @abstractmethod
    def origin(self, coords: Shape) -> Shape:
        """Where a chunk begins in the array."""

    @abstractmethod
    def locate(self, coords: Shape) -> tuple[Shape, Shape]:
        """The chunk that an element lies in, and its place there."""

    def offset(self, coords: Shape, strides: Shape) -> tuple[Shape, int]:
        """The chunk that an element lies in, and how far into it, if neighbours there lie these strides apart."""
        chunk, inside = self.locate(coords)
        return chunk, sum(map(mul, inside, strides))

    def only(self, selection: Selection) -> tuple[Shape, Selection] | None:
        """The chunk that a selection lies in, and the selection inside of it; None: if not a single one."""
        return None

    @abstractmethod
    def project(self, selection: Selection) -> Iterator[tuple[Shape, Selection, Selection]]:
        """For each chunk that is touched: its coordinates, the selection inside of it, its place in the result."""
