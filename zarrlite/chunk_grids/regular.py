"""The `regular` chunk grid: all chunks have the same shape, even at the edges.

Rules
- `chunk_shape` has a positive length for each dimension of the array.

"regular grid" in comments is its specification (zarr-specs, docs/v3/chunk-grids/regular-grid/index.rst).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from zarrlite.chunk_grids.base import ChunkGrid
from zarrlite.errors import MetadataError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import register
from zarrlite.selections.selection import Selection, Shape


@register
@dataclass(frozen=True)
class Regular(ChunkGrid):
    """Chunks that all have the same shape."""

    # core spec, Array metadata: 'The value of name must be the string "regular"'
    name = "regular"
    # regular grid, Abstract: "each chunk is a hyperrectangle of the same shape"
    uniform = True
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # core spec, Array metadata: "and the value of configuration an object with the member chunk_shape"
        # core spec, Array metadata: "chunk_shape must be an array of integers"
        # regular grid, Description: "Chunk sizes must be greater than zero", even along empty dimensions, although
        # core spec, Concepts and terminology: "The chunk shape elements are non-zero when the corresponding dimensions"
        return cls(config.integers("chunk_shape", 1))

    def to_config(self) -> dict[str, Json]:
        return {"chunk_shape": list(self.shape)}

    def check(self, shape: Shape) -> None:
        # regular grid, Abstract: "grid is the same as the dimensionality of the array"
        if len(self.shape) != len(shape):
            message = f"must have {len(shape)} items, one for each dimension, not {len(self.shape)}"
            raise MetadataError(message, pointer="/configuration/chunk_shape", kind="conflict")

    def grid_shape(self, shape: Shape) -> Shape:
        # regular grid, Description: "The shape of the chunk grid will be (ceil(z / dz)"
        # regular grid, Description: "the grid will overhang the edge of the array"
        return tuple(-(-n // c) for n, c in zip(shape, self.shape, strict=True))

    def chunk_shape(self, coords: Shape) -> Shape:
        # regular grid, Description: "the border of an array always have the full chunk size"
        return self.shape

    def origin(self, coords: Shape) -> Shape:
        # regular grid, Description: "The origin element of a chunk has coordinates in the array space"
        # regular grid, Description: "the grid is aligned with the origin of the array"
        return tuple([i * c for i, c in zip(coords, self.shape, strict=True)])

    def locate(self, coords: Shape) -> tuple[Shape, Shape]:
        # regular grid, Description: "the chunk at grid index (c // dz, b // dy"
        # regular grid, Description: "will have coordinates (c % dz, b % dy, a % dx"
        chunk, inside = [], []
        for dim, n in enumerate(self.shape):
            chunk.append(coords[dim] // n)
            inside.append(coords[dim] % n)
        return tuple(chunk), tuple(inside)

    def only(self, selection: Selection) -> tuple[Shape, Selection] | None:
        return selection.only_chunk(self.shape)

    def project(self, selection: Selection) -> Iterator[tuple[Shape, Selection, Selection]]:
        return selection.project(self.shape)
