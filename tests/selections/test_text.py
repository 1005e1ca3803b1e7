"""Text of any length is selected and assigned like numbers. numpy stores text of over 15 bytes separately."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zarrlite

SHAPE = (5, 6)
ROWS, COLUMNS = np.array([0, 3, 4]), np.array([5, 1, 2])
MASK = np.isin(np.arange(30).reshape(SHAPE), [0, 8, 21, 24])
SELECTIONS = {  # name -> the indexer, its index, and the equivalent numpy index
    "one mask": ("self", MASK, MASK),
    "rows": ("self", ROWS, ROWS),
    "columns": ("self", (slice(None), COLUMNS), (slice(None), COLUMNS)),
    "points": ("vindex", (ROWS, COLUMNS), (ROWS, COLUMNS)),
    "one point": ("vindex", ([3], [4]), ([3], [4])),
    "outer product": ("oindex", (ROWS, COLUMNS), np.ix_(ROWS, COLUMNS)),
    "slices": ("self", (slice(1, 3), slice(None, None, -2)), (slice(1, 3), slice(None, None, -2))),
}
ARRAYS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": (2, 3)},
    "one chunk": {"chunks": (8, 8)},
    "tiny chunks": {"chunks": (1, 1)},
    "shards": {"chunks": (2, 2), "shards": (4, 4)},
    "transposed": {"chunks": (2, 4), "filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
}


@pytest.fixture(params=ARRAYS)
def keywords(request: pytest.FixtureRequest) -> dict[str, Any]:
    return ARRAYS[request.param]


@pytest.mark.parametrize("dtype", ["string", "bytes"])
@pytest.mark.parametrize("length", [5, 15, 16, 40, 300])
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("single", [True, False], ids=["one value", "many values"])
def test_text_of_every_length_is_assigned_and_read_as_objects_are(
    keywords: dict[str, Any], dtype: str, length: int, selection: str, single: bool
) -> None:
    def text(*numbers: int) -> Any:
        value = "-".join(map(str, numbers)).rjust(length, "x")
        return value if dtype == "string" else value.encode()

    indexer, index, numpy_index = SELECTIONS[selection]
    stored = zarrlite.create_array({}, shape=SHAPE, dtype=dtype, fill_value=text(99), **keywords)
    view = stored if indexer == "self" else getattr(stored, indexer)
    objects = np.full(SHAPE, text(99), object)
    assert view[index].tolist() == objects[numpy_index].tolist()  # every chunk is still missing

    count = objects[numpy_index].size
    values: Any = text(0) if single else [text(i) for i in range(count)]
    if not single:
        values = np.array(values, object).reshape(objects[numpy_index].shape)
    objects[numpy_index] = values
    view[index] = values
    assert stored[...].tolist() == objects.tolist()
    assert view[index].tolist() == objects[numpy_index].tolist()
