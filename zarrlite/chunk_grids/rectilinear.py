"""The `rectilinear` chunk grid: chunks of different lengths along each dimension.

Rules
- Each dimension is described either by an integer (the length of all its chunks) or by a list of lengths and runs
  `[length, count]`.
- Runs are never expanded: a document may contain a run of 2^60 chunks.
- All chunks have the full length that the grid defines, even at the edge of the array. Chunks after the last listed one
  are outside of the array; if a tool finds one in a store, its length is taken to be that of the last listed chunk.
- Consecutive equal lengths are written as runs.
- The specification does not define how an array grows beyond the listed chunks. As in zarr-python, one chunk is added.

"rectilinear grid" in comments is zarr-extensions, chunk-grids/rectilinear/README.md.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import index as to_integer
from typing import Any, Final, Self

from zarrlite.cached import cached_property
from zarrlite.chunk_grids.base import ChunkGrid
from zarrlite.errors import MetadataError
from zarrlite.extensions.config import Config, Json, show
from zarrlite.extensions.registry import register
from zarrlite.selections.edges import Edges
from zarrlite.selections.selection import Divisions, Selection, Shape

Runs = tuple[tuple[int, int], ...]  # pairs of a length and a number of chunks of this length
MAX_SAMPLES: Final = 256  # chunk lengths per dimension; at most this many are checked against the codecs


@register
@dataclass(frozen=True)
class Rectilinear(ChunkGrid):
    """Chunks that have different lengths along each dimension, such as `Rectilinear([[3, 4, 5], 10])`."""

    name = "rectilinear"
    chunk_shapes: tuple[int | Runs, ...]

    def __post_init__(self) -> None:
        axes: Sequence[Any] = self.chunk_shapes
        lengths = [to_integer(axis) if isinstance(axis, numbers.Integral) else _runs(axis) for axis in axes]
        object.__setattr__(self, "chunk_shapes", tuple(lengths))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # rectilinear grid, Kinds of encodings: "a single permitted value for the kind field"
        config.string("kind", ("inline",))
        values = config.list("chunk_shapes")
        axes = Config({str(i): value for i, value in enumerate(values)}, config.at("chunk_shapes"), config.context)
        for i, value in enumerate(values):
            # rectilinear grid, Chunk edge lengths: "can be declared in two ways"
            if isinstance(value, list):
                _check_edges(axes, str(i))
            else:
                _check_length(axes, str(i), "an integer or an array")
        return cls(tuple(values))

    def to_config(self) -> dict[str, Json]:
        return {"kind": "inline", "chunk_shapes": [*map(_written, self.chunk_shapes)]}

    @cached_property
    def _divisions(self) -> Divisions:
        """The division of each dimension into chunks."""
        return tuple(axis if isinstance(axis, int) else Edges(axis) for axis in self.chunk_shapes)

    @property
    def uniform(self) -> bool:  # type: ignore[override]
        # rectilinear grid, Chunk edge lengths: "defines the step size of a regular 1-dimensional grid"
        return all(isinstance(axis, int) for axis in self.chunk_shapes)

    def check(self, shape: Shape) -> None:
        pointer = "/configuration/chunk_shapes"
        # rectilinear grid, Configuration: "MUST match the number of dimensions of the array"
        if len(self.chunk_shapes) != len(shape):
            message = f"must have {len(shape)} items, one for each dimension, not {len(self.chunk_shapes)}"
            raise MetadataError(message, pointer=pointer, kind="conflict")
        for dim, (axis, length) in enumerate(zip(self.chunk_shapes, shape, strict=True)):
            # rectilinear grid, Chunk edge lengths: "The sum of the edge lengths MUST equal or exceed L"
            if not isinstance(axis, int) and _total(axis) < length:
                message = f"must add up to at least {length}, the length of the dimension, not {_total(axis)}"
                raise MetadataError(message, pointer=f"{pointer}/{dim}", kind="conflict")

    def grid_shape(self, shape: Shape) -> Shape:
        # rectilinear grid, Chunk edge lengths: "Overflowing L by multiple chunks is permitted": these have no elements
        pairs = zip(shape, self._divisions, strict=True)
        return tuple([0 if n == 0 else _find(axis, n - 1)[0] + 1 for n, axis in pairs])

    def chunk_shape(self, coords: Shape) -> Shape:
        pairs = zip(coords, self._divisions, strict=True)
        return tuple([axis if isinstance(axis, int) else axis.bounds(i)[1] for i, axis in pairs])

    def largest_chunk(self, ndim: int) -> Shape:
        return tuple([axis if isinstance(axis, int) else max(axis.lengths) for axis in self._divisions])

    def sample_shapes(self, ndim: int) -> Iterator[Shape]:
        first = self.chunk_shape((0,) * ndim)
        yield first
        for dim, axis in enumerate(self._divisions):
            lengths = [] if isinstance(axis, int) else dict.fromkeys(axis.lengths)
            for length in itertools.islice(lengths, MAX_SAMPLES):
                yield (*first[:dim], length, *first[dim + 1 :])

    def resized(self, shape: Shape, unit: Shape) -> ChunkGrid:
        axes = list(self.chunk_shapes)
        for dim, (axis, length) in enumerate(zip(self.chunk_shapes, shape, strict=True)):
            missing = 0 if isinstance(axis, int) else length - _total(axis)
            if missing > 0:
                axes[dim] = (*axis, (-(-missing // unit[dim]) * unit[dim], 1))  # type: ignore[misc]
        return Rectilinear(tuple(axes))

    def origin(self, coords: Shape) -> Shape:
        pairs = zip(coords, self._divisions, strict=True)
        return tuple([i * axis if isinstance(axis, int) else axis.bounds(i)[0] for i, axis in pairs])

    def locate(self, coords: Shape) -> tuple[Shape, Shape]:
        # rectilinear grid, Indexing: "the index of the first element of C that exceeds"
        found = [_find(axis, i) for i, axis in zip(coords, self._divisions, strict=True)]
        return tuple([chunk for chunk, _ in found]), tuple([inside for _, inside in found])

    def only(self, selection: Selection) -> tuple[Shape, Selection] | None:
        return selection.only_chunk(self._divisions)

    def project(self, selection: Selection) -> Iterator[tuple[Shape, Selection, Selection]]:
        return selection.project(self._divisions)


def _find(axis: int | Edges, position: int) -> tuple[int, int]:
    """Return the chunk that contains a position, and the position inside it."""
    return divmod(position, axis) if isinstance(axis, int) else axis.find(position)[:2]


def _check_edges(axes: Config, dim: str) -> None:
    """Refuse a list with anything other than lengths and runs."""
    for i, edge in enumerate(axes.list(dim)):
        if type(edge) is int and edge > 0:
            continue
        items = Config({str(i): edge}, axes.at(dim), axes.context)
        # rectilinear grid, Chunk edge lengths: "an array that can contain two types of elements"
        if not isinstance(edge, list):
            _check_length(items, str(i), "an integer or a run [length, count]")
            continue
        # rectilinear grid, Run-length encoding: "is denoted by the JSON array [V, N]"
        if len(edge) != 2:
            raise items.error(f"must be an integer or a run [length, count], not {show(edge)}", str(i))
        # rectilinear grid, Run-length encoding: "Both V and N MUST be positive integers"
        items.integers(str(i), 1)


def _check_length(config: Config, key: str, expected: str) -> None:
    """Refuse a length that is not a positive integer."""
    if not isinstance(config.raw(key), int):
        raise config.error(f"must be {expected}, not {show(config.raw(key))}", key, "type")
    # rectilinear grid, Chunk edge lengths: "All edge lengths MUST be positive integers (i.e., at least 1)"
    config.integer(key, 1)


def _runs(edges: Sequence[Any]) -> Runs:
    """Return lengths and runs as runs; consecutive equal lengths become one run."""
    runs: list[tuple[int, int]] = []
    for edge in edges:
        length, count = (edge, 1) if isinstance(edge, numbers.Integral) else map(to_integer, edge)
        if runs and runs[-1][0] == length:
            count += runs.pop()[1]
        runs.append((to_integer(length), count))
    return tuple(runs)


def _written(axis: int | Runs) -> Json:
    """Return the JSON for a dimension."""
    if isinstance(axis, int):
        return axis
    return [length if count == 1 else [length, count] for length, count in axis]


def _total(runs: Runs) -> int:
    """Return the number of elements that runs cover."""
    return sum(math.prod(run) for run in runs)
