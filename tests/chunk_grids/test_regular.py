"""The `regular` chunk grid: the examples in its specification."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrlite.chunk_grids import Regular
from zarrlite.errors import MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context

SHAPE = (10, 200, 3000)
GRID = Regular((5, 20, 400))


def test_the_shape_of_the_grid_counts_partial_chunks() -> None:
    # regular grid, Description: "then the shape of the chunk grid will be (2, 10, 8)"
    assert GRID.grid_shape(SHAPE) == (2, 10, 8)
    assert GRID.grid_shape((0, 20, 401)) == (0, 1, 2)


def test_chunks_at_the_edge_have_the_full_shape() -> None:
    # regular grid, Description: "the border of an array always have the full chunk size"
    assert GRID.chunk_shape((1, 9, 7)) == (5, 20, 400)


def test_an_element_is_in_the_chunk_of_the_specification() -> None:
    # regular grid, Description: "is contained within the chunk at grid index (1, 7, 2)"
    assert GRID.locate((7, 150, 900)) == ((1, 7, 2), (2, 10, 100))


@given(st.tuples(*(st.integers(0, n - 1) for n in SHAPE)))
def test_origin_and_position_inside_the_chunk_add_up_to_the_element(coords: tuple[int, ...]) -> None:
    chunk, inside = GRID.locate(coords)
    assert tuple(map(sum, zip(GRID.origin(chunk), inside, strict=True))) == coords


def test_a_grid_is_read_and_written() -> None:
    value = {"name": "regular", "configuration": {"chunk_shape": [5, 20, 400]}}
    parsed = registry.chunk_grids.parse(value, "/chunk_grid", Context())
    assert parsed == GRID
    assert parsed.to_json() == value


def test_a_grid_of_the_wrong_dimensionality_is_refused() -> None:
    with pytest.raises(MetadataError) as caught:
        GRID.check((10, 200))
    assert (caught.value.pointer, caught.value.kind) == ("/configuration/chunk_shape", "conflict")
    assert caught.value.message == "must have 2 items, one for each dimension, not 3"
