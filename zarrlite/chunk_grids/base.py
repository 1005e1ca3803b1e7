"""The base class of chunk grids: divisions of an array into chunks (core spec, Chunk grids).

Rules
- A grid does not store the shape of the array; methods that need the shape take it as an argument.
- Coordinates of chunks count chunks, coordinates of elements count elements; both start at zero.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar

from zarrlite.extensions.extension import Extension
from zarrlite.selections.selection import Selection, Shape


class ChunkGrid(Extension):
    """A division of an array into chunks.

    Core spec, Concepts and terminology: "An array is divided into a set of chunks".
    Core spec, Chunk grids: "Additional grid types MAY be defined as extensions".
    """

    kind: ClassVar[str] = "chunk_grid"
    uniform: bool = False  # whether all chunks have the same shape

    @abstractmethod
    def check(self, shape: Shape) -> None:
        """Raise MetadataError, with a pointer relative to the grid, if it is not valid for an array of this shape."""

    @abstractmethod
    def grid_shape(self, shape: Shape) -> Shape:
        """Return the number of chunks along each dimension."""

    @abstractmethod
    def chunk_shape(self, coords: Shape) -> Shape:
        """Return the shape of an encoded chunk. At the edges it may extend beyond the array."""

    def largest_chunk(self, ndim: int) -> Shape:
        """Return the largest chunk length along each dimension. There may be no chunk with this shape."""
        return self.chunk_shape((0,) * ndim)

    def sample_shapes(self, ndim: int) -> Iterable[Shape]:
        """Return chunk shapes for which the codecs are checked when an array is opened."""
        return [self.chunk_shape((0,) * ndim)]

    def resized(self, shape: Shape, unit: Shape) -> ChunkGrid:
        """Return the grid of the array after it is resized to `shape`. Existing chunks stay the same.

        The lengths of new chunks are multiples of `unit`.
        """
        return self

    @abstractmethod
    def origin(self, coords: Shape) -> Shape:
        """Return the coordinates of the first element of a chunk."""

    # core spec, Chunk grids: "every element of the array is a member of one chunk"
    @abstractmethod
    def locate(self, coords: Shape) -> tuple[Shape, Shape]:
        """Return the chunk that contains an element, and the coordinates of the element inside the chunk."""

    def only(self, selection: Selection) -> tuple[Shape, Selection] | None:
        """Return the chunk that contains a whole selection, and the selection inside the chunk.

        Returns None if the selection extends over several chunks. This is an optional fast path: a grid may return
        None for every selection.
        """
        return None

    @abstractmethod
    def project(self, selection: Selection) -> Iterator[tuple[Shape, Selection, Selection]]:
        """Project a selection onto the chunks that it touches.

        Yields the coordinates of each chunk, the selection inside the chunk, and the corresponding selection in the
        result.
        """
