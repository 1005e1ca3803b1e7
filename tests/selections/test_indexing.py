"""Reads, writes and the normal form of an index have the semantics of numpy."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import zarrlite
from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.selections import indexing
from zarrlite.selections.selection import Points, Selection, Span, everything

RECORD = np.dtype([("x", "i4"), ("y", "f8"), ("z", "S2")])
CHAINS = (["bytes"], [{"name": "bytes", "configuration": {"endian": "big"}}, "crc32c"])


# strategies


@st.composite
def shapes(draw: Any, min_dims: int = 0, max_dims: int = 3) -> tuple[int, ...]:
    return draw(npst.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=0, max_side=6))


@st.composite
def chunk_shapes(draw: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(draw(st.integers(1, 4)) for _ in shape)


@st.composite
def pairs(draw: Any, min_dims: int = 0, dtype: Any = "i4") -> tuple[np.ndarray, zarrlite.Array]:
    """Draw a numpy array and a zarrlite array with the same content. The chunk shape need not divide the shape."""
    shape = draw(shapes(min_dims))
    array = np.arange(1, 1 + math.prod(shape), dtype="i4").reshape(shape).astype(dtype)
    return array, stored(array, draw(chunk_shapes(shape)), draw(st.sampled_from(CHAINS)))


def stored(array: np.ndarray, chunks: Any, codecs: Any = ({"name": "bytes", "configuration": {"endian": "little"}},)):
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}} if c == "bytes" else c for c in codecs]
    copy = zarrlite.create_array("memory://", shape=array.shape, dtype=array.dtype, chunks=chunks, codecs=codecs)
    copy[...] = array
    return copy


def slices(n: int) -> st.SearchStrategy[slice]:
    ends = st.none() | st.integers(-n - 2, n + 2)
    return st.builds(slice, ends, ends, st.none() | st.sampled_from([1, 2, 3, 5, -1, -2, -4, 10**20, -(10**20)]))


def coordinates(n: int, shape: Any) -> st.SearchStrategy[Any]:
    """Draw an index array of one of several dtypes, or nested lists. For an empty dimension, the array is empty."""
    if n == 0:
        return st.just(np.zeros(0, "i8"))
    arrays = npst.arrays(st.sampled_from(["i8", "i2", "u1"]), shape, elements=st.integers(0, n - 1))
    signed = npst.arrays("i8", shape, elements=st.integers(-n, n - 1))
    lists = signed.map(lambda array: array.tolist() if array.size else array)  # [] always has shape (0,)
    return arrays | signed | lists


def broadcastable(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw shapes that broadcast to this one, with some axes of length one or without some leading axes."""
    ones = st.tuples(*(st.sampled_from([n, 1]) for n in shape))
    return st.tuples(ones, st.integers(0, len(shape))).map(lambda t: t[0][t[1] :])


@st.composite
def numpy_indices(draw: Any, shape: tuple[int, ...]) -> Any:
    """Draw an index of any kind that numpy accepts, including masks of several dimensions and new axes."""
    points_shape = draw(npst.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=3))
    items: list[Any] = []
    dim = 0
    while dim < len(shape):
        kind = draw(st.sampled_from(["slice", "slice", "integer", "array", "mask", "new", "rest"]))
        if kind == "rest":
            break
        n = shape[dim]
        if kind == "slice":
            items.append(draw(slices(n)))
        elif kind == "integer" and n:
            items.append(draw(st.integers(-n, n - 1) | st.integers(-n, n - 1).map(np.int16)))
        elif kind == "array":
            items.append(draw(coordinates(n, draw(broadcastable(points_shape)))))
        elif kind == "mask":
            mask_ndim = draw(st.integers(1, len(shape) - dim))
            items.append(draw(npst.arrays(bool, shape[dim : dim + mask_ndim])))
            dim += mask_ndim - 1
        else:
            items.append(None)
            dim -= 1
        dim += 1
        if len(items) > 8:
            break
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
        if dim < len(shape) and not isinstance(items[-1], np.ndarray) and draw(st.booleans()):
            items.append(draw(slices(shape[-1])))
    if len(items) == 1 and draw(st.booleans()):
        return items[0]
    return tuple(items)


@st.composite
def values_for(draw: Any, shape: tuple[int, ...]) -> Any:
    """Draw values that can be assigned to a selection of this shape: a scalar, or an array that broadcasts."""
    form = draw(st.sampled_from(["scalar", "equal", "broadcast", "leading"]))
    if form == "scalar":
        return draw(st.sampled_from([-7, np.int16(-7), np.array(-7)]))
    values_shape = shape
    if form == "broadcast":
        values_shape = draw(broadcastable(shape))
    elif form == "leading":
        values_shape = (1, *shape)
    return -np.arange(1, 1 + math.prod(values_shape), dtype="i4").reshape(values_shape)


def for_numpy(values: Any, shape: tuple[int, ...]) -> Any:
    """Drop an additional leading axis of length one. For some kinds of index, numpy itself does not drop it."""
    return values.reshape(shape) if np.ndim(values) > len(shape) else values


def assert_same(result: Any, expected: Any) -> None:
    """Compare type, shape, dtype and values."""
    assert isinstance(result, np.ndarray) == isinstance(expected, np.ndarray)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(result, expected)


# array[...]


@settings(max_examples=300)
@given(st.data())
def test_reads_return_the_result_of_numpy_or_are_refused_as_in_numpy(data: Any) -> None:
    array, copy = data.draw(pairs())
    index = data.draw(numpy_indices(array.shape))
    try:
        expected = array[index]
    except IndexError:
        with pytest.raises(SelectionError):
            copy[index]
        return
    assert_same(copy[index], expected)


@settings(max_examples=300)
@given(st.data())
def test_writes_have_the_effect_of_numpy_or_are_refused_as_in_numpy(data: Any) -> None:
    array, copy = data.draw(pairs())
    index = data.draw(numpy_indices(array.shape))
    try:
        shape = array[index].shape
    except IndexError:
        with pytest.raises(SelectionError):
            copy[index] = 0
        return
    values = data.draw(values_for(shape))
    array[index] = for_numpy(values, shape)
    copy[index] = values
    np.testing.assert_array_equal(copy[...], array)


@settings(max_examples=100)
@given(st.data())
def test_values_that_do_not_broadcast_are_refused_and_nothing_is_written(data: Any) -> None:
    array, copy = data.draw(pairs(min_dims=1))
    index = data.draw(numpy_indices(array.shape).filter(lambda i: _indexes(array, i)))
    target = array[index].shape
    shape = data.draw(npst.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    values = np.zeros(shape, "i4")
    extra = max(0, len(shape) - len(target))  # numpy drops additional leading axes of length one
    if set(shape[:extra]) <= {1} and _broadcasts(shape[extra:], target):
        copy[index] = values
        array[index] = values.reshape(shape[extra:])
    else:
        with pytest.raises(ArgumentError, match=re.escape(f"cannot be broadcast to a selection of shape {target}")):
            copy[index] = values
    np.testing.assert_array_equal(copy[...], array)


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def _indexes(array: np.ndarray, index: Any) -> bool:
    try:
        array[index]
    except IndexError:
        return False
    return True


# the normal form


@settings(max_examples=200)
@given(st.data())
def test_the_normal_form_of_an_index_takes_puts_and_projects_the_same_elements(data: Any) -> None:
    shape = data.draw(shapes())
    array = np.arange(math.prod(shape)).reshape(shape)
    index = data.draw(numpy_indices(shape).filter(lambda i: _indexes(array, i)))
    request = indexing.basic(index, shape)
    selection = request.selection
    taken = selection.take(array)
    assert isinstance(taken, np.ndarray)
    assert taken.shape == selection.shape
    assert selection.ndim == len(shape)
    assert_same(request.outward(taken), array[index])

    order = data.draw(st.permutations(range(len(shape))))
    relabelled = selection.relabel(order)
    np.testing.assert_array_equal(relabelled.take(array.transpose(order)), taken)

    chunks = data.draw(chunk_shapes(shape))
    for form, full, lengths in (
        (selection, array, chunks),
        (relabelled, array.transpose(order), tuple(chunks[i] for i in order)),
    ):
        gathered = np.full(selection.shape, -1)
        seen = []
        for coords, inside, outside in form.project(lengths):
            seen.append(coords)
            chunk = full[tuple(slice(c * n, (c + 1) * n) for c, n in zip(coords, lengths, strict=True))]
            outside.put(gathered, inside.take(chunk))
        np.testing.assert_array_equal(gathered, taken)
        assert len(seen) == len(set(seen)) or any(isinstance(p, Points) for p in form.parts)

    painted, expected = np.zeros(shape, int), np.zeros(shape, int)
    selection.put(painted, request.inward(np.array(1)))
    expected[index] = 1
    np.testing.assert_array_equal(painted, expected)
    everywhere = all(type(p) is Span for p in selection.parts) and bool(painted.all()) and painted.size == taken.size
    if painted.size:
        assert selection.spans_all(shape) == everywhere
    if selection.covers(shape):
        np.testing.assert_array_equal(taken, array)


def test_a_transposed_selection_of_everything_spans_the_array_but_does_not_cover_it() -> None:
    transposed = everything((2, 3)).relabel((1, 0))
    assert (transposed.covers((3, 2)), transposed.spans_all((3, 2))) == (False, True)
    assert (everything((2, 3)).covers((2, 3)), everything((2, 3)).spans_all((2, 3))) == (True, True)
    assert not Selection([Span(0, 2), Span(0, 2)]).spans_all((2, 3))
    assert repr(Selection([Span(1, 2, 3)])) == "Selection([Span(start=1, length=2, step=3)], [(0,)])"


def test_points_in_any_order_are_grouped_by_chunk() -> None:
    points = Selection([Points((np.array([5, 0, 4, 1]), np.array([0, 0, 1, 9])))], [(0, 1)])
    parts = {c: (i.parts[0], o.parts[0]) for c, i, o in points.project((4, 5))}
    places = {c: (tuple(x.tolist() for x in i.coords), o.coordinates()[0].tolist()) for c, (i, o) in parts.items()}
    assert places == {(0, 0): (([0], [0]), [1]), (0, 1): (([1], [4]), [3]), (1, 0): (([1, 0], [0, 1]), [0, 2])}


def test_a_very_long_dimension_is_projected_lazily() -> None:
    first = next(iter(everything((2**62, 2**10)).project((1, 2**10))))
    assert first[0] == (0, 0)


# oindex


@st.composite
def orthogonal_indices(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    def item(n: int) -> st.SearchStrategy[Any]:
        kinds = [slices(n), coordinates(n, draw(st.integers(0, 4))), npst.arrays(bool, n)]
        return st.one_of(*kinds, st.integers(-n, n - 1)) if n else st.one_of(*kinds)

    return tuple(draw(item(n)) for n in shape)


def by_ix(array: np.ndarray, index: tuple[Any, ...]) -> Any:
    """Apply the semantics of oindex: the outer product of the index arrays; integers drop their axis."""
    picks = [np.arange(n)[[i] if isinstance(i, int) else i] for n, i in zip(array.shape, index, strict=True)]
    dropped = tuple(0 if isinstance(i, int) else slice(None) for i in index)
    return (array[np.ix_(*picks)] if picks else array)[dropped]


@settings(max_examples=200)
@given(st.data())
def test_oindex_selects_the_outer_product(data: Any) -> None:
    array, copy = data.draw(pairs())
    index = data.draw(orthogonal_indices(array.shape))
    expected = by_ix(array, index)
    assert_same(copy.oindex[index], expected)
    if array.ndim and isinstance(index[-1], slice) and index[-1] == slice(None):
        assert_same(copy.oindex[(*index[:-1], ...)], expected)
    values = data.draw(values_for(expected.shape))
    labels = np.arange(array.size).reshape(array.shape)
    places = np.asarray(by_ix(labels, index))
    array.reshape(-1)[places.ravel()] = np.broadcast_to(np.asarray(values), (1, *expected.shape)).ravel()
    copy.oindex[index] = values
    np.testing.assert_array_equal(copy[...], array)


# vindex


@settings(max_examples=200)
@given(st.data())
def test_vindex_selects_points_and_puts_their_axes_first(data: Any) -> None:
    array, copy = data.draw(pairs(min_dims=1))
    points_shape = data.draw(npst.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    if 0 in array.shape:
        points_shape = (0,)
    chosen = data.draw(st.lists(st.booleans(), min_size=array.ndim, max_size=array.ndim).filter(any))
    index = tuple(
        data.draw(coordinates(n, data.draw(broadcastable(points_shape)))) if points else data.draw(slices(n))
        for n, points in zip(array.shape, chosen, strict=True)
    )
    order = sorted(range(array.ndim), key=lambda i: not chosen[i])
    transposed = array.transpose(order)
    transposed_index = tuple(np.asarray(index[i], int) if chosen[i] else index[i] for i in order)
    expected = np.asarray(transposed[transposed_index])
    assert_same(copy.vindex[index], expected)
    values = data.draw(values_for(expected.shape))
    transposed[transposed_index] = for_numpy(values, expected.shape)
    copy.vindex[index] = values
    np.testing.assert_array_equal(copy[...], array)


@settings(max_examples=100)
@given(st.data())
def test_masks_of_every_form_select_elements(data: Any) -> None:
    array, copy = data.draw(pairs(min_dims=1))
    mask = data.draw(npst.arrays(bool, array.shape))
    assert_same(copy[mask], array[mask])
    assert_same(copy.vindex[mask], array[mask])
    assert_same(copy.vindex[mask.nonzero()], array[mask])
    values = data.draw(values_for(array[mask].shape))
    array[mask] = for_numpy(values, array[mask].shape)
    copy[mask] = values
    np.testing.assert_array_equal(copy[...], array)
    copy.vindex[mask] = 0
    array[mask] = 0
    np.testing.assert_array_equal(copy[...], array)


# blocks


@settings(max_examples=100)
@given(st.data())
def test_blocks_selects_whole_chunks_and_keeps_every_axis(data: Any) -> None:
    array, copy = data.draw(pairs())
    chunks = copy.chunks
    grid = copy.cdata_shape
    index, expected = [], []
    for g, c in zip(grid, chunks, strict=True):
        if g and data.draw(st.booleans()):
            i = data.draw(st.integers(-g, g - 1))
            index.append(i)
            expected.append(slice(i % g * c, (i % g + 1) * c))
        else:
            low, high = sorted(data.draw(st.lists(st.integers(0, g + 1), min_size=2, max_size=2)))
            index.append(slice(low, high))
            expected.append(slice(low * c, high * c))
    assert_same(np.asarray(copy.blocks[tuple(index)]), array[(*expected, ...)])
    array[tuple(expected)] = -1
    copy.blocks[tuple(index)] = -1
    np.testing.assert_array_equal(copy[...], array)


# struct fields


def records(shape: tuple[int, ...]) -> np.ndarray:
    array = np.zeros(shape, RECORD)
    count = np.arange(array.size).reshape(shape)
    array["x"], array["y"] = count, count / 2
    array["z"] = count.astype("S2")
    return array


@settings(max_examples=100)
@given(st.data())
def test_fields_are_read_and_written_by_name_with_any_index(data: Any) -> None:
    array = records(data.draw(shapes(max_dims=2)))
    chunks = data.draw(chunk_shapes(array.shape))
    copy = stored(array, chunks)
    index = data.draw(numpy_indices(array.shape).filter(lambda i: _indexes(array, i)))
    items = index if isinstance(index, tuple) else (index,)
    fields = data.draw(st.sampled_from(["x", "y", "z", ["x"], ["y", "x"], ["z", "y"]]))
    expected = array[fields][items]
    result = copy[(fields, *items)]
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(copy[fields], array[fields])
    if isinstance(fields, str):
        array[fields][items] = b"9" if fields == "z" else 9
        copy[(*items, fields)] = b"9" if fields == "z" else 9
    else:
        new = np.zeros(expected.shape, expected.dtype)
        array[fields][items] = new
        copy[(fields, *items)] = new
    np.testing.assert_array_equal(copy[...], array)


def test_two_names_in_one_index_select_two_fields() -> None:
    array = records((4,))
    copy = stored(array, (3,))
    np.testing.assert_array_equal(copy["x", "y"], array[["x", "y"]])
    np.testing.assert_array_equal(copy.oindex["x", [3, 0]], array["x"][[3, 0]])
    copy.vindex["y", [1, 3]] = [0.5, 0.25]
    array["y"][[1, 3]] = [0.5, 0.25]
    np.testing.assert_array_equal(copy[...], array)
    assert copy["x", 2] == 2
    assert copy[2]["z"] == b"2"


def test_a_field_of_missing_chunks_has_the_fill_value() -> None:
    copy = zarrlite.create_array(shape=(4,), dtype=RECORD, chunks=(2,), fill_value=(1, 2.0, b"f"))
    copy["x", 1] = 5
    assert copy[...].tolist() == [(1, 2.0, b"f"), (5, 2.0, b"f"), (1, 2.0, b"f"), (1, 2.0, b"f")]
    assert copy.nchunks_initialized == 1


# scalars, arrays without dimensions, empty selections


@pytest.mark.parametrize("index", [(), ..., (...,), None, (None, ...)])
def test_an_array_without_dimensions_is_indexed_as_in_numpy(index: Any) -> None:
    array = np.array(5, "i2")
    copy = stored(array, ())
    assert_same(copy[index], array[index])
    copy[index] = 7
    assert copy[()] == 7


@pytest.mark.parametrize(
    ("index", "kind"),
    [((1, 2), np.int32), ((1, 2, ...), np.ndarray), ((1, np.array(2)), np.int32), ((1, 2, None), np.ndarray)],
)
def test_only_an_integer_for_every_dimension_returns_a_scalar(index: Any, kind: type) -> None:
    array = np.arange(6, dtype="i4").reshape(2, 3)
    copy = stored(array, (2, 2))
    assert type(copy[index]) is type(array[index]) is kind
    assert type(copy.oindex[1, 2]) is np.int32


def test_an_empty_selection_accesses_no_chunk() -> None:
    copy = zarrlite.create_array(shape=(0, 3), dtype="i1", chunks=(2, 2), missing_chunks="error")
    assert copy[...].shape == (0, 3)
    copy[...] = 1
    copy[[]] = np.zeros((0, 3))
    full = zarrlite.create_array(shape=(5,), dtype="i1", chunks=(2,), missing_chunks="error")
    assert full[3:3].shape == full[[]].shape == full[np.zeros(5, bool)].shape == (0,)


def test_strided_and_byte_swapped_arrays_are_stored_by_value() -> None:
    source = np.arange(24, dtype=">i8").reshape(4, 6)
    copy = zarrlite.create_array(shape=(2, 3), dtype="i4", chunks=(2, 2))
    copy[...] = source[::2, ::-2]
    np.testing.assert_array_equal(copy[...], source[::2, ::-2])
    copy[0] = [1, 2, 3]
    copy[:, 1] = copy[:, 2]
    assert copy[...].tolist() == [[1, 3, 3], [17, 13, 13]]


# refusals

WRONG_INDICES = [
    ("", 4, "index 4 is out of bounds for dimension 0 of length 4"),
    ("", -5, "index -5 is out of bounds for dimension 0 of length 4"),
    ("", (0, 6), "index 6 is out of bounds for dimension 1 of length 6"),
    ("", [0, 4], "index 4 is out of bounds for dimension 0 of length 4"),
    ("", (slice(None), [0, -7]), "index -7 is out of bounds for dimension 1 of length 6"),
    ("", np.array([2**64 - 1], "u8"), "index 18446744073709551615 is out of bounds"),
    ("", 2**70, f"index {2**70} is out of bounds for dimension 0 of length 4"),
    ("", (0, 0, 0), "too many indices: the array has 2 dimensions, but 3 were indexed"),
    ("", (0, np.ones((4, 6), bool)), "too many indices: the array has 2 dimensions, but 3 were indexed"),
    ("", (..., 0, ...), "an index can have only a single ellipsis ('...')"),
    ("", slice(None, None, 0), "slice(None, None, 0) is not a slice of integers: slice step cannot be zero"),
    (
        "",
        slice(0.5),
        (
            "slice(None, 0.5, None) is not a slice of integers: slice indices must be integers or None or have an "
            "__index__ method"
        ),
    ),
    ("", 1.0, "an index must be integers, slices, '...', None, or arrays of integers or booleans, not 1.0"),
    ("", True, "an index must be integers, slices, '...', None, or arrays of integers or booleans, not True"),
    ("", {1}, "an index must be integers, slices, '...', None, or arrays of integers or booleans, not {1}"),
    ("", [0.5], "an index must be integers, slices, '...', None, or arrays of integers or booleans, not [0.5]"),
    (
        "",
        [[1], [2, 3]],
        "an index must be integers, slices, '...', None, or arrays of integers or booleans, not [[1], [2, 3]]",
    ),
    ("", ([0, 1], [0, 1, 2]), "index arrays of shapes (2,), (3,) do not broadcast together"),
    ("", [True, False], "a mask must have the shape (4,) of the dimensions it indexes, not (2,)"),
    ("", np.ones((4, 5), bool), "a mask must have the shape (4, 6) of the dimensions it indexes, not (4, 5)"),
    ("", "x", "there is no field 'x' (fields: none)"),
    ("", ["x", "y"], "there is no field 'x' (fields: none)"),
    ("oindex", None, "new axes (None) are allowed only in array[...]"),
    ("oindex", ([[0]], 0), "oindex takes index arrays of one dimension, not 2"),
    ("oindex", np.ones((4, 6), bool), "only array[...] and vindex accept a mask of several dimensions"),
    ("oindex", (0, 9), "index 9 is out of bounds for dimension 1 of length 6"),
    ("oindex", (0, 0, 0), "too many indices: the array has 2 dimensions, but 3 were indexed"),
    ("oindex", [True], "a mask must have the shape (4,) of the dimensions it indexes, not (1,)"),
    ("vindex", slice(None), "vindex needs at least one index array; use array[...] for slices alone"),
    ("vindex", ..., "vindex needs at least one index array; use array[...] for slices alone"),
    ("vindex", ([0], None), "new axes (None) are allowed only in array[...]"),
    ("vindex", ([0], [6]), "index 6 is out of bounds for dimension 1 of length 6"),
    ("blocks", ([0], 0), "blocks takes only integers and slices"),
    ("blocks", slice(None, None, 2), "blocks takes only slices of step 1"),
    ("blocks", slice(None, None, -1), "blocks takes only slices of step 1"),
    ("blocks", 4, "index 4 is out of bounds for dimension 0 of length 4"),
    ("blocks", None, "new axes (None) are allowed only in array[...]"),
]


@pytest.mark.parametrize(("indexer", "index", "message"), WRONG_INDICES)
def test_an_invalid_index_is_refused_for_reading_and_writing(indexer: str, index: Any, message: str) -> None:
    array = stored(np.zeros((4, 6), "i4"), (1, 4))
    target = getattr(array, indexer) if indexer else array
    with pytest.raises(SelectionError) as reading:
        target[index]
    with pytest.raises(SelectionError) as writing:
        target[index] = 0
    assert str(reading.value) == str(writing.value) == message
    assert isinstance(reading.value, IndexError)


def test_the_message_about_an_unknown_field_lists_the_known_fields() -> None:
    with pytest.raises(SelectionError) as caught:
        stored(records((2,)), (2,))["w"]
    assert str(caught.value) == "there is no field 'w' (fields: 'x', 'y', 'z')"


def test_a_selection_too_large_for_memory_is_refused() -> None:
    array = zarrlite.create_array(shape=(2**40, 2**20), dtype="f8", chunks=(2**20, 1), compressors=None)
    with pytest.raises(SelectionError) as caught:
        array[...]
    assert str(caught.value).startswith(
        f"a selection of shape (1099511627776, 1048576) needs {2**63} bytes of memory: "
    )


WRONG_VALUES = [
    (slice(None), np.zeros((3, 6)), "values of shape (3, 6) cannot be broadcast to a selection of shape (4, 6)"),
    (0, np.zeros(5), "values of shape (5,) cannot be broadcast to a selection of shape (6,)"),
    ((0, 0), np.zeros(2), "values of shape (2,) cannot be broadcast to a selection of shape ()"),
    (0, np.zeros((2, 6)), "values of shape (2, 6) cannot be broadcast to a selection of shape (6,)"),
    (slice(0, 0), np.zeros((2, 6)), "values of shape (2, 6) cannot be broadcast to a selection of shape (0, 6)"),
    (0, "text", "the values cannot be stored as int32: invalid literal for int() with base 10: 'text'"),
    (
        0,
        2**40,
        "the values cannot be stored as int32: Python integer 1099511627776 out of bounds for int32",
    ),
    (
        0,
        [[1], [2, 3]],
        (
            "the values cannot be stored as int32: setting an array element with a sequence. The requested array has "
            "an inhomogeneous shape after 1 dimensions. The detected shape was (2,) + inhomogeneous part."
        ),
    ),
]


@pytest.mark.parametrize(("index", "values", "message"), WRONG_VALUES)
def test_values_of_the_wrong_shape_or_type_are_refused(index: Any, values: Any, message: str) -> None:
    array = stored(np.zeros((4, 6), "i4"), (3, 4))
    with pytest.raises(ArgumentError) as caught:
        array[index] = values
    assert str(caught.value) == message


@pytest.mark.parametrize("step", [2, 5, 6, 10**6, 2**63, 10**30])
def test_a_step_may_exceed_the_array_and_any_machine_integer(step: int) -> None:
    data = np.arange(30, dtype="u1").reshape(5, 6)
    for codecs in (["bytes"], ["bytes", "zstd", "crc32c"]):
        array = zarrlite.create_array("memory://", data=data, chunks=(2, 4), codecs=codecs)
        rows, columns = slice(1, None, step), slice(2, None, step)
        for index in ((rows, slice(None)), (rows, columns), (3, columns), (slice(-3, None, step), slice(0, 0, step))):
            assert np.array_equal(array[index], data[index])
            array[index] = data[index]
        assert np.array_equal(array[...], data)
