"""A few elements of each of many chunks, found all at once, are those that each chunk alone would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from tests.test_costs import count_calls
from zarrlite.codecs import Bytes, Crc32c, Transpose, Zstd
from zarrlite.errors import ChecksumError, MissingChunkError, TruncatedError
from zarrlite.selections import sparse as module
from zarrlite.selections.selection import Points, Selection, Span
from zarrlite.selections.sparse import Numbered, scattered
from zarrlite.stores import LocalStore, MemoryStore

SHAPE, CHUNK = (90, 70), (8, 16)
DATA = np.arange(90 * 70, dtype="u2").reshape(SHAPE) * 7
LARGE = np.arange(1024 * 512, dtype="u4").reshape(1024, 512) % 1001  # in chunks of 64 KiB, which are decoded in turn


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    """Along each dimension some numbers or a slice, or points of both; the axes of the result in either order."""

    def numbers(n: int, count: int) -> np.ndarray[Any, Any]:
        return np.array(draw(st.lists(st.integers(0, n - 1), min_size=count, max_size=count)), np.intp)

    if draw(st.booleans()):
        count = draw(st.integers(1, 20))
        return Selection([Points((numbers(SHAPE[0], count), numbers(SHAPE[1], count)))], [(0, 1)])
    parts: list[Any] = [Points((numbers(n, draw(st.integers(1, 12))),)) for n in SHAPE]
    if draw(st.booleans()):
        start, step = draw(st.integers(0, 20)), draw(st.integers(1, 5))
        parts[draw(st.integers(0, 1))] = Span(start, draw(st.integers(1, 10)), step)
    order = draw(st.permutations((0, 1)))
    return Selection([parts[dim] for dim in order], [(dim,) for dim in order])


@given(selections())
def test_elements_are_those_that_projecting_finds(selection: Selection) -> None:
    found = scattered(selection, CHUNK)
    assert found is not None
    expected: dict[Any, Any] = {}
    numbered = np.arange(selection.take(DATA).size).reshape(selection.shape)
    for coords, inside, outside in selection.project(CHUNK):
        pairs = np.broadcast_arrays(np.ravel_multi_index(inside._index()[0], CHUNK), outside.take(numbered))
        expected[coords] = sorted(zip(*(pair.ravel().tolist() for pair in pairs), strict=True))
    assert {
        coords: sorted(zip(inside.numbers.tolist(), outside.numbers.tolist(), strict=True))
        for coords, inside, outside in found.jobs()
    } == expected


@given(st.lists(st.integers(0, DATA.size - 1), min_size=1, max_size=30))
def test_elements_by_number_are_a_selection_like_any_other(numbers: list[int]) -> None:
    by_number = Numbered(np.array(numbers), SHAPE)
    plain = Selection(by_number.parts, by_number.dims)
    np.testing.assert_array_equal(by_number.take(DATA), plain.take(DATA))
    assert by_number.shape == plain.shape
    assert by_number.ndim == 2
    for values in (np.arange(len(numbers), dtype="u2"), np.uint16(3)):
        one, other = DATA.copy(), DATA.copy()
        by_number.put(one, values)  # type: ignore[arg-type]
        plain.put(other, values)  # type: ignore[arg-type]
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
        "nothing",
        "much of each chunk",
        "very many",
        "a grid without numbers",
        "chunks without numbers",
        "very many dimensions",
    ],
)
def test_what_is_not_a_few_elements_is_left_to_projecting(selection: Selection, chunk: Any) -> None:
    assert scattered(selection, chunk) is None


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


def numpy_has(name: str, data: np.ndarray[Any, Any]) -> Any:
    picked: Any = {
        "rows by columns": np.ix_(ROWS, COLUMNS),
        "rows by a slice": np.ix_(ROWS, range(10, 60, 9)),
        "points": (ROWS[:5], COLUMNS),
        "a mask": DATA % 211 == 0,
    }[name]
    return data[picked]


class Slow(MemoryStore):
    """One that is read key by key."""

    quick_reads = False


@pytest.mark.parametrize("codecs", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("kind", ["disk", "memory", "slow"])
@pytest.mark.parametrize("name", READS)
def test_a_few_elements_of_many_chunks_are_read(tmp_path: Path, codecs: Any, kind: str, name: str) -> None:
    store = LocalStore(tmp_path) if kind == "disk" else MemoryStore() if kind == "memory" else Slow()
    array = zarrlite.create_array(store, data=DATA, chunks=CHUNK, codecs=codecs, fill_value=5)
    np.testing.assert_array_equal(READS[name](array), numpy_has(name, DATA))
    store.erase("c/0/0")
    store.erase("c/5/2")
    expected = DATA.copy()
    expected[:8, :16] = expected[40:48, 32:48] = 5
    np.testing.assert_array_equal(READS[name](array), numpy_has(name, expected))


@pytest.mark.parametrize("codecs", [[Bytes()], [Bytes(), Zstd(1), Crc32c()]], ids=["raw", "zstd"])
def test_so_they_are_in_chunks_that_are_decoded_in_turn(tmp_path: Path, codecs: Any) -> None:
    array = zarrlite.create_array(tmp_path, data=LARGE, chunks=(128, 128), codecs=codecs, fill_value=5)
    rows, columns = np.random.default_rng(0).integers(0, LARGE.shape, (40, 2)).T
    np.testing.assert_array_equal(array.oindex[rows, columns], LARGE[np.ix_(rows, columns)])
    np.testing.assert_array_equal(array.vindex[rows, columns], LARGE[rows, columns])
    (tmp_path / "c/0/0").unlink()
    expected = LARGE.copy()
    expected[:128, :128] = 5
    np.testing.assert_array_equal(array.oindex[rows, columns], expected[np.ix_(rows, columns)])


@pytest.mark.parametrize("codecs", [[Bytes()], [Bytes(), Zstd(1), Crc32c()]], ids=["raw", "zstd"])
def test_a_chunk_that_is_damaged_or_missing_is_named(tmp_path: Path, codecs: Any) -> None:
    array = zarrlite.create_array(tmp_path, data=LARGE, chunks=(128, 128), codecs=codecs)
    path = tmp_path / "c/3/1"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises((TruncatedError, ChecksumError), match="c/3/1"):
        array.oindex[[0, 400], [3, 130, 400]]
    path.unlink()
    strict = zarrlite.open_array(tmp_path, missing_chunks="error")
    with pytest.raises(MissingChunkError, match="c/3/1"):
        strict.oindex[[0, 400], [3, 130, 400]]


def test_chunks_of_which_a_few_elements_are_read_take_few_calls(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, data=DATA, chunks=(2, 2), codecs=[Bytes()])
    every = [*range(0, 70, 2)]
    array.oindex[every, every]
    python, c = count_calls(lambda: array.oindex[every, every])
    few_python, few_c = count_calls(lambda: array.oindex[every[:5], every[:5]])
    chunks = len(every) ** 2 - 25
    assert (python - few_python) / chunks < 6
    assert (c - few_c) / chunks < 12


def test_much_of_each_chunk_is_read_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = zarrlite.create_array(tmp_path, data=DATA, chunks=CHUNK, codecs=[Bytes()])
    expected = array.oindex[ROWS, COLUMNS]
    monkeypatch.setattr(module, "FEW", 0)
    np.testing.assert_array_equal(array.oindex[ROWS, COLUMNS], expected)
