"""The `regular` chunk grid: every chunk has the same shape, also at the edges.

Rules (core spec, chunk_grid)
- `chunk_shape` has a positive length for each dimension of the array.
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
    """Chunks of one shape."""

    name = "regular"
    uniform = True
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.integers("chunk_shape", 1))

    def to_config(self) -> dict[str, Json]:
        return {"chunk_shape": list(self.shape)}

    def check(self, shape: Shape) -> None:
        if len(self.shape) != len(shape):
            message = f"must have {len(shape)} items, as shape has, not {len(self.shape)}"
            raise MetadataError(message, pointer="/configuration/chunk_shape", kind="conflict")

    def grid_shape(self, shape: Shape) -> Shape:
        return tuple(-(-n // c) for n, c in zip(shape, self.shape, strict=True))

    def chunk_shape(self, coords: Shape) -> Shape:
        return self.shape

    def origin(self, coords: Shape) -> Shape:
        return tuple([i * c for i, c in zip(coords, self.shape, strict=True)])

    def locate(self, coords: Shape) -> tuple[Shape, Shape]:
        chunk, inside = [], []
        for dim, n in enumerate(self.shape):
            chunk.append(coords[dim] // n)
            inside.append(coords[dim] % n)
        return tuple(chunk), tuple(inside)

    def offset(self, coords: Shape, strides: Shape) -> tuple[Shape, int]:
        chunk, offset = [], 0
        for dim, n in enumerate(self.shape):
            chunk.append(coords[dim] // n)
            offset += coords[dim] % n * strides[dim]
        return tuple(chunk), offset

    def only(self, selection: Selection) -> tuple[Shape, Selection] | None:
        return selection.only_chunk(self.shape)

    def project(self, selection: Selection) -> Iterator[tuple[Shape, Selection, Selection]]:
        return selection.project(self.shape)
