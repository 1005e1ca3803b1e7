"""Sparse selections: projecting one onto all chunks together equals projecting it onto each chunk separately."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import zarrlite
from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.codecs import Bytes, Crc32c, Transpose, Zstd
from zarrlite.errors import ChecksumError, MissingChunkError, TruncatedError
from zarrlite.selections.selection import FlatSelection, Points, Selection, Span
from zarrlite.selections.sparse import project_sparse
from zarrlite.stores import LocalStore, MemoryStore

SHAPE, CHUNK = (90, 70), (8, 16)
DATA = np.arange(90 * 70, dtype="u2").reshape(SHAPE) * 7
LARGE = np.arange(1024 * 512, dtype="u4").reshape(1024, 512) % 1001  # stored in chunks of 64 KiB


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    """Generate a selection of both dimensions: by index arrays and slices in either order of axes, or by points."""

    def numbers(n: int, count: int) -> np.ndarray[Any, Any]:
        return np.array(draw(st.lists(st.integers(0, n - 1), min_size=count, max_size=count)), np.intp)

    if draw(st.booleans()):
        count = draw(st.integers(1, 16))
        return Selection([Points((numbers(SHAPE[0], count), numbers(SHAPE[1], count)))], [(0, 1)])
    parts: list[Any] = [Points((numbers(n, draw(st.integers(1, 12))),)) for n in SHAPE]
    if draw(st.booleans()):
        start, step = draw(st.integers(0, 20)), draw(st.integers(1, 5))
        parts[draw(st.integers(0, 1))] = Span(start, draw(st.integers(1, 10)), step)
    order = draw(st.permutations((0, 1)))
    return Selection([parts[dim] for dim in order], [(dim,) for dim in order])


@given(selections())
def test_sparse_projection_equals_the_projection_chunk_by_chunk(selection: Selection) -> None:
    batches = project_sparse(selection, CHUNK, 3)
    assume(batches is not None)
    expected: dict[Any, Any] = {}
    numbered = np.arange(selection.take(DATA).size).reshape(selection.shape)
    for coords, inside, outside in selection.project(CHUNK):
        pairs = np.broadcast_arrays(np.ravel_multi_index(inside.numpy_index()[0], CHUNK), outside.take(numbered))
        expected[coords] = sorted(zip(*(pair.ravel().tolist() for pair in pairs), strict=True))
    projected = {}
    for batch in batches:
        assert 0 < len(batch.coords) <= 3
        for coords, (part, inside) in zip(batch.coords, batch.parts(CHUNK), strict=True):
            projected[coords] = sorted(zip(inside.numbers.tolist(), batch.places[part].tolist(), strict=True))
    assert projected == expected


@given(st.lists(st.integers(0, DATA.size - 1), min_size=1, max_size=30))
def test_a_flat_selection_equals_the_selection_of_its_points(numbers: list[int]) -> None:
    flat = FlatSelection(np.array(numbers), SHAPE)
    points = Selection(flat.parts, flat.dims)
    np.testing.assert_array_equal(flat.take(DATA), points.take(DATA))
    assert flat.shape == points.shape
    assert flat.ndim == 2
    for values in (np.arange(len(numbers), dtype="u2"), np.uint16(3)):
        one, other = DATA.copy(), DATA.copy()
        flat.put(one, values)  # type: ignore[arg-type]
        points.put(other, values)  # type: ignore[arg-type]
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("selection", "chunk"),
    [
        (Selection([Span(0, 4), Span(0, 4)]), CHUNK),
        (Selection([Points((np.arange(0),)), Span(0, 4)]), CHUNK),
        (Selection([Points((np.arange(64),)), Points((np.arange(64),))]), CHUNK),
        (Selection([Points((np.arange(2**9),)), Points((np.arange(2**9),))]), (1, 1)),
        (Selection([Points((np.array([0, 2**62]),)), Points((np.array([0, 2**62]),))]), (1, 1)),
        (Selection([Points((np.array([0, 1]),)), Points((np.array([0, 1]),))]), (2**40, 2**40)),
        (Selection([Points((np.array([1]),) * 64)], [tuple(range(64))]), (1,) * 64),
    ],
    ids=[
        "slices",
        "no element",
        "many elements of each chunk",
        "too many elements",
        "a grid with more chunks than integers",
        "chunks with more elements than integers",
        "too many dimensions",
    ],
)
def test_other_selections_are_projected_chunk_by_chunk(selection: Selection, chunk: Any) -> None:
    assert project_sparse(selection, chunk, 8) is None


ROWS, COLUMNS = [0, 3, 3, 88, 41, 7, 64], [69, 0, 15, 16, 33]
READS = {
    "rows by columns": lambda a: a.oindex[ROWS, COLUMNS],
    "rows by a slice": lambda a: a.oindex[ROWS, 10:60:9],
    "points": lambda a: a.vindex[ROWS[:5], COLUMNS],
    "a mask": lambda a: a.vindex[DATA % 211 == 0],
}
CODECS = {
    "raw": [Bytes()],
    "big-endian": [Bytes("big")],
    "transposed": [Transpose((1, 0)), Bytes()],
    "compressed": [Bytes(), Zstd(1)],
}


def expected_elements(name: str, data: np.ndarray[Any, Any]) -> Any:
    picked: Any = {
        "rows by columns": np.ix_(ROWS, COLUMNS),
        "rows by a slice": np.ix_(ROWS, range(10, 60, 9)),
        "points": (ROWS[:5], COLUMNS),
        "a mask": DATA % 211 == 0,
    }[name]
    return data[picked]


class GetOnlyStore(MemoryStore):
    """A store whose values are read one by one."""

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        return super().get(key, byte_range)


@pytest.mark.parametrize("codecs", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("kind", ["disk", "memory", "one by one"])
@pytest.mark.parametrize("name", READS)
def test_a_few_elements_of_many_chunks_are_read_as_in_numpy(tmp_path: Path, codecs: Any, kind: str, name: str) -> None:
    store = LocalStore(tmp_path) if kind == "disk" else MemoryStore() if kind == "memory" else GetOnlyStore()
    array = zarrlite.create_array(store, data=DATA, chunks=CHUNK, codecs=codecs, fill_value=5)
    np.testing.assert_array_equal(READS[name](array), expected_elements(name, DATA))
    store.erase("c/0/0")
    store.erase("c/5/2")
    expected = DATA.copy()
    expected[:8, :16] = expected[40:48, 32:48] = 5
    np.testing.assert_array_equal(READS[name](array), expected_elements(name, expected))


@pytest.mark.parametrize("codecs", [[Bytes()], [Bytes(), Zstd(1), Crc32c()]], ids=["raw", "zstd"])
def test_a_few_elements_of_larger_chunks_are_read_as_in_numpy(tmp_path: Path, codecs: Any) -> None:
    array = zarrlite.create_array(tmp_path, data=LARGE, chunks=(128, 128), codecs=codecs, fill_value=5)
    rows, columns = np.random.default_rng(0).integers(0, LARGE.shape, (40, 2)).T
    np.testing.assert_array_equal(array.oindex[rows, columns], LARGE[np.ix_(rows, columns)])
    np.testing.assert_array_equal(array.vindex[rows, columns], LARGE[rows, columns])
    (tmp_path / "c/0/0").unlink()
    expected = LARGE.copy()
    expected[:128, :128] = 5
    np.testing.assert_array_equal(array.oindex[rows, columns], expected[np.ix_(rows, columns)])


@pytest.mark.parametrize("codecs", [[Bytes()], [Bytes(), Zstd(1), Crc32c()]], ids=["raw", "zstd"])
def test_errors_of_sparse_selections_name_the_chunk(tmp_path: Path, codecs: Any) -> None:
    array = zarrlite.create_array(tmp_path, data=LARGE, chunks=(128, 128), codecs=codecs)
    path = tmp_path / "c/3/1"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises((TruncatedError, ChecksumError), match="c/3/1"):
        array.oindex[[0, 400], [3, 130, 400]]
    path.unlink()
    strict = zarrlite.open_array(tmp_path, missing_chunks="error")
    with pytest.raises(MissingChunkError, match="c/3/1"):
        strict.oindex[[0, 400], [3, 130, 400]]


def test_dense_selections_read_the_same_elements_as_sparse_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = zarrlite.create_array(tmp_path, data=DATA, chunks=CHUNK, codecs=[Bytes()])
    expected = array.oindex[ROWS, COLUMNS]
    monkeypatch.setattr("zarrlite.selections.sparse.SPARSE_ELEMENTS", 0)
    np.testing.assert_array_equal(array.oindex[ROWS, COLUMNS], expected)
