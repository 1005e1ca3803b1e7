"""Arrays: properties, fill values, attributes, resizing, and the values that can be stored."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from zarrlite import (
    ArgumentError,
    Array,
    DataError,
    MemoryStore,
    MissingChunkError,
    SelectionError,
    ZarrliteError,
)
from zarrlite.chunks.chunks import ArrayOptions

LAYOUTS: dict[str, dict[str, Any]] = {
    "default": {"chunks": (4, 4)},
    "uncompressed": {"chunks": (4, 4), "compressors": None},
    "transposed": {"chunks": (4, 4), "filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
    "sharded": {"chunks": (2, 2), "shards": (4, 4)},
    "sharded, index first": {
        "chunks": (4, 4),
        "codecs": [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [2, 2],
                    "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}],
                    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                    "index_location": "start",
                },
            }
        ],
    },
}
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def make(shape: Any = (6, 10), dtype: Any = "int32", **kwargs: Any) -> Array:
    return zarrlite.create_array(MemoryStore(), shape=shape, dtype=dtype, **kwargs)


def keys(array: Array) -> list[str]:
    """Return the keys of the stored chunks."""
    return sorted(key for key in array.store.list() if not key.endswith("zarr.json"))


def contents(array: Array) -> dict[str, bytes]:
    return {key: bytes(array.store.get(key) or b"") for key in array.store.list()}


def document(array: Array) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(bytes(array.store.get(f"{array.path}/zarr.json".lstrip("/")) or b""))
    return content


def same_bits(a: Any, b: Any) -> bool:
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


# Properties.


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"shape": (6, 10), "dtype": "int32", "chunks": (4, 4), "fill_value": 7},
            {
                "shape": (6, 10),
                "ndim": 2,
                "size": 60,
                "nbytes": 240,
                "dtype": np.dtype("int32"),
                "chunks": (4, 4),
                "shards": None,
                "cdata_shape": (2, 3),
                "nchunks": 6,
                "nchunks_initialized": 0,
                "fill_value": 7,
            },
        ),
        (
            {"shape": (6, 10), "dtype": ">f8", "chunks": (2, 2), "shards": (4, 6)},
            {"dtype": np.dtype("float64"), "chunks": (2, 2), "shards": (4, 6), "cdata_shape": (3, 5), "nchunks": 15},
        ),
        (
            {"shape": 5, "dtype": "u1", "chunks": 4, "shards": 4},
            {"chunks": (4,), "shards": (4,), "nchunks": 2},
        ),
        (
            {"shape": (), "dtype": "bool"},
            {"shape": (), "ndim": 0, "size": 1, "nbytes": 1, "chunks": (), "shards": None, "nchunks": 1},
        ),
        (
            {"shape": (0, 5), "dtype": "u2", "chunks": (2, 2)},
            {"size": 0, "nbytes": 0, "cdata_shape": (0, 3), "nchunks": 0, "nchunks_initialized": 0},
        ),
        ({"shape": 2**62, "dtype": "u1", "chunks": 2**40}, {"size": 2**62, "nbytes": 2**62, "nchunks": 2**22}),
    ],
    ids=["chunks", "shards", "one chunk per shard", "no dimensions", "empty", "huge"],
)
def test_properties_follow_from_the_metadata(arguments: dict[str, Any], expected: dict[str, Any]) -> None:
    array = zarrlite.create_array(MemoryStore(), name="some/where", **arguments)
    assert {name: getattr(array, name) for name in expected} == expected
    assert type(array.size) is int
    reopened = zarrlite.open_array(array.store, path="some/where", mode="r")
    assert {name: getattr(reopened, name) for name in expected} == expected


def test_nodes_have_a_path_a_name_and_a_basename() -> None:
    array = zarrlite.create_array(MemoryStore(), name="/some/where/", shape=3, dtype="u1")
    assert (array.path, array.name, array.basename, array.read_only) == ("some/where", "/some/where", "where", False)
    root = make()
    assert (root.path, root.name, root.basename) == ("", "/", "")


def test_repr_shows_path_shape_and_dtype() -> None:
    array = zarrlite.create_array(MemoryStore(), name="a/b", shape=(3, 4), dtype="f4")
    assert repr(array) == "<Array /a/b shape=(3, 4) dtype=float32>"


def test_stored_chunks_and_bytes_are_counted_without_foreign_keys() -> None:
    array = make((6, 10), chunks=(4, 4))
    assert array.nbytes_stored() == len(bytes(array.store.get("zarr.json") or b""))
    array[0, 0] = array[5, 9] = 1
    assert array.nchunks_initialized == 2
    assert keys(array) == ["c/0/0", "c/1/2"]
    assert array.nbytes_stored() == sum(map(len, contents(array).values()))
    array.store.set("c/9/9", b"outside of the grid")
    array.store.set("c/0/00", b"no chunk key")
    array.store.set("notes", b"no chunk key")
    assert array.nchunks_initialized == 2


def test_arrays_with_a_common_prefix_are_counted_separately() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, name="a", data=[1, 2])
    zarrlite.create_array(store, name="ab", data=[1, 2])
    array = zarrlite.open_array(store, path="a")
    assert array.nchunks_initialized == 1
    assert array.nbytes_stored() == sum(len(store.get(k) or b"") for k in store.list() if k.startswith("a/"))


def test_len_and_iteration_follow_the_first_dimension() -> None:
    data = np.arange(15).reshape(5, 3)
    array = make(data.shape, "int64", chunks=(2, 2))
    array[...] = data
    assert len(array) == 5
    assert [row.tolist() for row in array] == data.tolist()
    one = make(5, "int16", chunks=2)
    one[...] = range(5)
    assert list(one) == [0, 1, 2, 3, 4]
    assert all(type(item) is np.int16 for item in one)
    assert 3 in one
    assert list(make((0, 3))) == []
    scalar = make(())
    for ask in (len, list):
        with pytest.raises(TypeError):
            ask(scalar)


def test_iteration_reads_each_chunk_once() -> None:
    class Counting(MemoryStore):
        count = 0

        def get(self, key: str, *args: Any) -> Any:
            self.count += "c/" in key
            return super().get(key, *args)

    array = zarrlite.create_array(Counting(), data=np.arange(100), chunks=10)
    assert len(list(array)) == 100
    assert array.store.count == 10  # type: ignore[attr-defined]


def test_arrays_can_be_converted_to_numpy_arrays() -> None:
    data = np.arange(12, dtype="i4").reshape(3, 4)
    array = make(data.shape, "i4", chunks=2)
    array[...] = data
    np.testing.assert_array_equal(np.asarray(array), data)
    assert np.asarray(array).dtype == data.dtype
    assert np.asarray(array, "f8").dtype == np.dtype("f8")
    assert np.array(array, copy=True).flags.writeable
    assert np.sum(array) == data.sum()
    assert (array[...] + array).tolist() == (2 * data).tolist()
    with pytest.raises(ValueError, match="without a copy"):
        np.array(array, copy=False)


@pytest.mark.parametrize("index", [..., slice(None), slice(0, 2), (slice(None), slice(1, 3))])
@layouts
def test_reading_returns_a_new_array(index: Any, layout: dict[str, Any]) -> None:
    array = make((6, 10), **layout)
    array[...] = 1
    read = array[index]
    read[...] = 9
    assert set(np.unique(array[...])) == {1}


# Fill values: by default, chunks that contain only the fill value are not stored.


@layouts
def test_elements_that_were_never_written_have_the_fill_value(layout: dict[str, Any]) -> None:
    array = make(fill_value=-3, **layout)
    np.testing.assert_array_equal(array[...], np.full((6, 10), -3))
    assert array[5, 9] == -3
    assert keys(array) == []


@layouts
@pytest.mark.parametrize("index", [..., (slice(0, 4), slice(0, 4)), (0, 0), ([0, 5], [0, 9])])
def test_chunks_of_fill_values_are_not_stored(layout: dict[str, Any], index: Any) -> None:
    array = make(fill_value=5, **layout)
    array[index] = 5
    assert keys(array) == []


@layouts
def test_chunks_that_become_the_fill_value_are_erased(layout: dict[str, Any]) -> None:
    array = make(fill_value=5, **layout)
    array[...] = 1
    assert array.nchunks_initialized == array.nchunks
    array[:4, :4] = 5
    assert keys(array) == ["c/0/1", "c/0/2", "c/1/0", "c/1/1", "c/1/2"]
    array[4:, :3] = 5
    assert "c/1/0" in keys(array)
    array[4:, 3] = 5  # now only the fill value is left in the part of the chunk inside the array
    assert "c/1/0" not in keys(array)
    array.oindex[[0, 1, 2, 3], slice(4, 8)] = 5
    assert keys(array) == ["c/0/2", "c/1/1", "c/1/2"]
    array[array[...] == 1] = 5
    assert keys(array) == []


@layouts
def test_write_empty_chunks_stores_chunks_of_fill_values(layout: dict[str, Any]) -> None:
    array = make(fill_value=5, write_empty_chunks=True, **layout)
    array[...] = 5
    assert array.nchunks_initialized == array.nchunks
    array[:4, :4] = 5
    array[0, 0] = 5
    assert array.nchunks_initialized == array.nchunks
    np.testing.assert_array_equal(zarrlite.open_array(array.store, mode="r", missing_chunks="error")[...], 5)
    by_config = make(fill_value=5, config={"write_empty_chunks": True}, **layout)
    by_config[0, 0] = 5
    assert keys(by_config) == ["c/0/0"]
    reopened = zarrlite.open_array(array.store, mode="r+", write_empty_chunks=False)
    reopened[:4, :4] = 5
    assert "c/0/0" not in keys(array)


def test_empty_inner_chunks_are_left_out_of_a_shard() -> None:
    sizes = {}
    for empty in (False, True):
        array = make((8,), "u1", chunks=2, shards=8, compressors=None, write_empty_chunks=empty)
        array[...] = [1, 1, 0, 0, 0, 0, 0, 0]
        sizes[empty] = array.store.size("c/0")
        array[2:4] = 1
        array[2:4] = 0
        assert array.store.size("c/0") == sizes[empty]
    index = 4 * 16 + 4
    assert sizes == {False: 2 + index, True: 8 + index}


NAN_PAYLOAD = np.uint64(0x7FF8_0000_0000_BEEF).view("f8")


@pytest.mark.parametrize(
    ("dtype", "fill", "other"),
    [
        ("f8", 0.0, -0.0),
        ("f8", -0.0, 0.0),
        ("f4", 0.0, -0.0),
        ("f2", 0.0, -0.0),
        ("c8", 0.0, complex(0.0, -0.0)),
        ("c16", 0.0, complex(-0.0, 0.0)),
        ("f8", np.nan, NAN_PAYLOAD),
        ("f8", NAN_PAYLOAD, np.nan),
        ([("x", "f4"), ("y", "u1")], (0.0, 0), (-0.0, 0)),
        ("M8[s]", "NaT", 0),
        ("S4", b"", b"x"),
        ("U2", "", "x"),
        ("V3", b"\0\0\0", b"\0\0\1"),
        ("string", "", "x"),
        ("bytes", b"", b"\0"),
    ],
    ids=str,
)
def test_fill_values_are_compared_bit_by_bit(dtype: Any, fill: Any, other: Any) -> None:
    array = make(3, dtype, chunks=3, fill_value=fill)
    array[...] = array.fill_value
    assert keys(array) == []
    array[1] = np.array(other, array.dtype) if not isinstance(other, (str, bytes, tuple)) else other
    assert keys(array) == ["c/0"]
    read = array[...]
    assert same_bits(read[0:1], read[2:3])
    if array.metadata.data_type.itemsize is not None:
        assert not same_bits(read[0:1], read[1:2])
        assert same_bits(read[0:1], np.array(array.fill_value, array.dtype))
    array[...] = array.fill_value
    assert keys(array) == []


def test_a_nan_fill_value_is_not_stored() -> None:
    array = make(3, "f4", fill_value="NaN")
    array[...] = np.nan
    assert keys(array) == []
    assert np.isnan(array[...]).all()


# Missing chunks.


@layouts
def test_missing_chunks_error_makes_reading_missing_chunks_an_error(layout: dict[str, Any]) -> None:
    array = make(missing_chunks="error", **layout)
    with pytest.raises(MissingChunkError) as caught:
        array[...]
    assert str(caught.value) == "chunk c/0/0: is missing"
    assert caught.value.key == "c/0/0"
    array[:4, :4] = 3
    assert array[1, 1] == 3
    with pytest.raises(MissingChunkError, match="c/1/2"):
        array[5, 9]
    array[5, 9] = 4  # part of a missing chunk can be written
    assert array[5, 9] == 4


def test_errors_name_the_damaged_chunk_and_the_codec() -> None:
    array = zarrlite.create_array(MemoryStore(), name="deep/a", data=np.arange(8), chunks=4)
    array.store.set("deep/a/c/1", b"no zstd")
    array[:4] = 7
    for touch in (lambda: array[...], lambda: array[7], lambda: assign(array, 7, 1)):
        with pytest.raises(DataError, match=r"^chunk deep/a/c/1, codec zstd: ") as caught:
            touch()
        assert (caught.value.key, caught.value.codec) == ("deep/a/c/1", "zstd")
    array[4:] = 1  # a chunk that is replaced completely need not be readable
    assert array[...].tolist() == [7] * 4 + [1] * 4


# Attributes.


def test_attributes_are_a_mapping_that_writes_through() -> None:
    array = make(attributes={"a": 1})
    attrs = array.attrs
    assert dict(attrs) == {"a": 1}
    attrs["b"] = [1, "two", None, {"three": 3.5}]
    attrs.update({"c": True}, d="é")
    assert document(array)["attributes"] == {"a": 1, "b": [1, "two", None, {"three": 3.5}], "c": True, "d": "é"}
    del attrs["a"]
    assert attrs.pop("b") == [1, "two", None, {"three": 3.5}]
    assert attrs.setdefault("c", 5) is True
    assert attrs.setdefault("e", 5) == 5
    assert (len(attrs), list(attrs), "c" in attrs, "a" in attrs) == (3, ["c", "d", "e"], True, False)
    assert attrs.get("a") is None
    assert attrs == {"c": True, "d": "é", "e": 5}
    assert repr(attrs) == "Attributes({'c': True, 'd': 'é', 'e': 5})"
    assert attrs.asdict() == document(array)["attributes"]
    attrs.put({"only": 1})
    assert document(array)["attributes"] == {"only": 1}
    assert array.update_attributes({"more": 2}) is array
    assert zarrlite.open_array(array.store, mode="r").attrs == {"only": 1, "more": 2}
    attrs.clear()
    assert document(array)["attributes"] == {}
    with pytest.raises(KeyError, match="gone"):
        del attrs["gone"]
    with pytest.raises(KeyError, match="gone"):
        attrs["gone"]


def test_attributes_have_the_same_form_as_when_read_back() -> None:
    array = make()
    array.attrs.update({"tuple": (1, 2), "int key": {1: "x"}})
    assert array.attrs["tuple"] == [1, 2]
    assert array.attrs["int key"] == {"1": "x"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1j, "a value cannot be written as JSON: Object of type complex is not JSON serializable"),
        ({1, 2}, "a value cannot be written as JSON: Object of type set is not JSON serializable"),
        (np.int64(3), "a value cannot be written as JSON: Object of type int64 is not JSON serializable"),
        (float("nan"), ' must not be NaN, which is not JSON; write it as text: "NaN"'),
        (float("-inf"), ' must not be -Infinity, which is not JSON; write it as text: "-Infinity"'),
        (b"bytes", "a value cannot be written as JSON: Object of type bytes is not JSON serializable"),
    ],
    ids=str,
)
def test_attributes_that_are_not_json_are_refused_and_nothing_is_changed(value: Any, message: str) -> None:
    array = make(attributes={"a": 1})
    before = contents(array)
    for change in (
        lambda: assign(array.attrs, "a", value),
        lambda: array.attrs.update(a=2, b=value),
        lambda: array.attrs.put({"b": [value]}),
        lambda: array.update_attributes({"b": {"c": value}}),
    ):
        with pytest.raises(ArgumentError) as caught:
            change()
        assert message in str(caught.value)  # newer Python versions append the value to the message
    assert array.attrs == {"a": 1}
    assert contents(array) == before


def test_an_attribute_that_contains_itself_is_refused() -> None:
    array = make(attributes={"a": 1})
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ArgumentError):
        array.attrs["a"] = loop
    assert array.attrs == {"a": 1}


def test_two_writers_of_attributes_keep_each_others_changes() -> None:
    first = make(attributes={"a": 1})
    second = zarrlite.open_array(first.store, mode="r+")
    first.attrs["b"] = 2
    second.attrs["c"] = 3
    assert document(first)["attributes"] == {"a": 1, "b": 2, "c": 3}
    assert second.attrs == {"a": 1, "b": 2, "c": 3}
    del first.attrs["a"]
    second.attrs["d"] = 4
    assert document(first)["attributes"] == {"b": 2, "c": 3, "d": 4}


def test_a_writer_of_attributes_does_not_undo_a_resize() -> None:
    first = make((6,), chunks=2)
    second = zarrlite.open_array(first.store, mode="r+")
    first.resize(20)
    second.attrs["x"] = 1
    assert document(first)["shape"] == [20]
    first.attrs["y"] = 2
    second.resize(4)
    assert document(first)["attributes"] == {"x": 1, "y": 2}


def test_unknown_members_of_the_document_survive_a_change() -> None:
    array = make()
    odd = {**document(array), "odd": {"must_understand": False, "x": [1]}}
    odd["codecs"].append({"name": "unknown", "must_understand": False})
    array.store.set("zarr.json", json.dumps(odd).encode())
    reopened = zarrlite.open_array(array.store, mode="r+")
    reopened.attrs["a"] = 1
    reopened.resize((3, 3))
    assert document(array) == {**odd, "attributes": {"a": 1}, "shape": [3, 3]}


# Resizing.


@layouts
def test_growing_shows_the_fill_value(layout: dict[str, Any]) -> None:
    array = make((3, 3), fill_value=9, **layout)
    array[...] = 1
    array.resize((6, 10))
    assert array.shape == (6, 10)
    expected = np.full((6, 10), 9)
    expected[:3, :3] = 1
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(zarrlite.open_array(array.store, mode="r")[...], expected)


@layouts
def test_shrinking_erases_chunks_outside_the_new_shape(layout: dict[str, Any]) -> None:
    array = make((6, 10), **layout)
    array[...] = 1
    array.resize((6, 4))
    assert keys(array) == ["c/0/0", "c/1/0"]
    array.resize((1, 1))
    assert keys(array) == ["c/0/0"]
    array.resize((0, 1))
    assert keys(array) == []
    assert array[...].shape == (0, 1)


shapes = st.tuples(st.integers(0, 11), st.integers(0, 11))


@given(
    layout=st.sampled_from(list(LAYOUTS.values())),
    steps=st.lists(shapes, min_size=1, max_size=4),
    fill=st.sampled_from([0, 7]),
)
def test_resizing_never_restores_removed_elements(
    layout: dict[str, Any], steps: list[tuple[int, int]], fill: int
) -> None:
    model = np.arange(1, 61, dtype="int32").reshape(6, 10)
    array = make(model.shape, fill_value=fill, **layout)
    array[...] = model
    for shape in steps:
        array.resize(shape)
        new = np.full(shape, fill, "int32")
        common = tuple(slice(min(a, b)) for a, b in zip(shape, model.shape, strict=True))
        new[common] = model[common]
        model = new
        np.testing.assert_array_equal(array[...], model)


def test_resizing_keeps_strings() -> None:
    array = make(5, "string", chunks=4)
    array[...] = list("abcde")
    array.resize(2)
    array.resize(5)
    assert array[...].tolist() == ["a", "b", "", "", ""]


def test_assigning_a_shape_resizes_the_array() -> None:
    array = make((6, 10))
    array.shape = (2, 3)
    assert document(array)["shape"] == [2, 3]
    one = make(5)
    one.resize(7)
    one.resize([8])
    one.resize(np.int64(9))
    assert one.shape == (9,)


def test_resizing_removes_chunks_that_another_object_wrote() -> None:
    first = make((4,), "u1", chunks=2)
    second = zarrlite.open_array(first.store, mode="r+")
    second.resize(20)
    second[...] = 1
    first.resize(6)  # shrinks the stored array, although this object still has the shape (4,)
    second.resize(20)
    assert second[6:].tolist() == [0] * 14


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3,), "a new shape must have 2 lengths, not 1"),
        (3, "a new shape must have 2 lengths, not 1"),
        ((-1, 3), "shape must have at most 64 lengths from 0 to 2**63 - 1, not (-1, 3)"),
        ((2**63, 3), "shape must have at most 64 lengths from 0 to 2**63 - 1, not (9223372036854775808, 3)"),
        ("large", "shape must be a number or a sequence of numbers, not 'large'"),
        (None, "shape must be a number or a sequence of numbers, not None"),
        ((1.5, 2), "shape must be a number or a sequence of numbers, not (1.5, 2)"),
        ("23", "shape must be a number or a sequence of numbers, not '23'"),
    ],
    ids=str,
)
def test_wrong_shapes_for_resize_are_refused(shape: Any, message: str) -> None:
    array = make((6, 10))
    before = contents(array)
    with pytest.raises(ArgumentError) as caught:
        array.resize(shape)
    assert str(caught.value) == message
    assert contents(array) == before
    assert array.shape == (6, 10)


# Appending.


@layouts
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_append_adds_data_along_any_axis(layout: dict[str, Any], axis: int) -> None:
    model = np.arange(60, dtype="i4").reshape(6, 10)
    array = make(model.shape, **layout)
    array[...] = model
    for _ in range(3):
        more = np.take(model, [0, 1, 2], axis=axis) + 100
        model = np.concatenate([model, more], axis=axis)
        assert array.append(more, axis=axis) == model.shape
        np.testing.assert_array_equal(array[...], model)


def test_append_casts_values_as_assignment_does() -> None:
    array = make(2, "i4", chunks=2)
    assert array.append([1, 2]) == (4,)
    assert array.append(np.array([3.0])) == (5,)
    assert array.append(make(1, "i4", fill_value=9)) == (6,)
    assert array.append([]) == (6,)
    assert array[...].tolist() == [0, 0, 1, 2, 3, 9]
    array.append(array)
    assert array[...].tolist() == [0, 0, 1, 2, 3, 9] * 2
    text = make(0, "string", chunks=2)
    text.append(["a", "bc"])
    text.append(np.array(["d"]))
    assert text[...].tolist() == ["a", "bc", "d"]


@pytest.mark.parametrize(
    ("data", "axis", "error", "message"),
    [
        (
            np.zeros((1, 3)),
            0,
            ArgumentError,
            "data of shape (1, 3) cannot be appended to shape (6, 10) along axis 0",
        ),
        (np.zeros(10), 0, ArgumentError, "data of shape (10,) cannot be appended to shape (6, 10) along axis 0"),
        (5, 0, ArgumentError, "data of shape () cannot be appended to shape (6, 10) along axis 0"),
        (
            np.zeros((1, 10)),
            2,
            SelectionError,
            "axis 2 is out of bounds for an array of 2 dimensions",
        ),
    ],
    ids=range(4),
)
def test_data_of_the_wrong_shape_cannot_be_appended(
    data: Any, axis: int, error: type[ZarrliteError], message: str
) -> None:
    array = make((6, 10))
    before = contents(array)
    with pytest.raises(error) as caught:
        array.append(data, axis=axis)
    assert str(caught.value) == message
    assert contents(array) == before


@pytest.mark.parametrize(
    ("dtype", "data"),
    [("u1", [1, 300]), ("u1", ["x"]), ("i4", np.array(["x"])), ("bytes", np.array([b"x", 3], object))],
    ids=["too large", "text", "an array of text", "an object that is not bytes"],
)
def test_values_that_do_not_fit_cannot_be_appended(dtype: str, data: Any) -> None:
    array = make(3, dtype, chunks=2)
    before = contents(array)
    with pytest.raises(ArgumentError):
        array.append(data)
    assert array.shape == (3,)
    assert contents(array) == before


def test_arrays_cannot_grow_beyond_the_longest_dimension() -> None:
    array = make(2**63 - 2, "u1", chunks=2**40, compressors=None)
    before = contents(array)
    with pytest.raises(ArgumentError) as caught:
        array.append([1, 2])
    length = 2**63
    assert str(caught.value) == f"shape must have at most 64 lengths from 0 to 2**63 - 1, not ({length},)"
    assert contents(array) == before


def test_a_resize_left_unfinished_by_another_array_changes_nothing() -> None:
    array = make((4, 4), "u1", chunks=(3, 3))
    array[...] = 1
    array.store.set("__zarrlite.resize", b'{"shape": [9]}')
    array.resize((6, 6))
    assert array[:4, :4].tolist() == [[1] * 4] * 4
    assert int(array[...].sum()) == 16
    assert keys(array) == ["c/0/0", "c/0/1", "c/1/0", "c/1/1"]


def test_append_needs_a_dimension() -> None:
    with pytest.raises(ZarrliteError):
        make(()).append(5)


# Assigned values.


def assign(target: Any, index: Any, value: Any) -> None:
    target[index] = value


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("u1", 7),
        ("u1", 7.9),
        ("u1", True),
        ("u1", np.int64(300)),
        ("u1", np.array([300, -1, 2])),
        ("u1", "7"),
        ("i2", [1.5, 2.5, -3.5]),
        ("i8", 2**63 - 1),
        ("u8", 2**64 - 1),
        ("f4", 1e300),
        ("f4", None),
        ("f4", "1.5"),
        ("bool", [0, 2, -1]),
        ("bool", "x"),
        ("c8", 1 + 2j),
        ("c8", [1, 2.5, 3j]),
        ("f8", [np.float32(1.1), 2, 3]),
        ("M8[D]", "2020-02-29"),
        ("M8[D]", np.datetime64("2020-02-29T12:00", "s")),
        ("M8[s]", ["2020-01-01", "NaT", "1970-01-01T00:00:01"]),
        ("m8[s]", np.timedelta64(5, "m")),
        ("S3", b"abcd"),
        ("S3", "ab"),
        ("S3", ["a", b"bc", "c"]),
        ("U2", "abc"),
        ("U2", [1, "x", "yy"]),
        ("V3", np.array([b"abc", b"\0\0\1", b"x\0\0"], "V3")),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_are_cast_as_numpy_does(dtype: Any, value: Any) -> None:
    array = make(3, dtype, chunks=2)
    model = np.zeros(3, dtype)
    model[...] = array[...]
    model[...] = value
    array[...] = value
    assert same_bits(array[...], model)
    if not isinstance(value, (list, np.ndarray)):
        array = make(3, dtype, chunks=2)
        array[1] = value
        assert same_bits(array[1], model[1])


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("u1", 256),
        ("u1", -1),
        ("u1", [0, 1, 256]),
        ("i8", 2**63),
        ("u8", 2**64),
        ("i4", 10**30),
        ("u1", None),
        ("u1", "x"),
        ("u1", float("nan")),
        ("i4", float("inf")),
        ("u1", [1, [2], 3]),
        ("u1", {}.keys()),
        ("u1", 1j),
        ("f4", "x"),
        ("f4", {}),
        ("M8[s]", "yesterday"),
        ("i4", np.array(["x", "y", "z"])),
        ("S3", "é"),
        ("bytes", "text"),
        ("bytes", 5),
        ("bytes", [b"a", None, b"c"]),
        ("string", "\ud800"),
        ([("x", "u1"), ("y", "f4")], (256, 0)),
        ([("x", "u1"), ("y", "f4")], (1, 2, 3)),
    ],
    ids=str,
)
def test_values_that_do_not_fit_are_refused_and_nothing_is_stored(dtype: Any, value: Any) -> None:
    array = make(3, dtype, chunks=2)
    for index in (..., 1, slice(0, 3)):
        with pytest.raises(ArgumentError):
            array[index] = value
    assert keys(array) == []


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        (..., (3,)),
        (..., (6, 9)),
        (..., (2, 6, 10)),
        (0, (9,)),
        (slice(0, 2), (3, 10)),
        ((0, 0), (2,)),
        (([0, 1], [0, 1]), (3,)),
        (slice(0, 0), (2, 10)),
    ],
    ids=str,
)
def test_values_of_the_wrong_shape_are_refused(index: Any, shape: tuple[int, ...]) -> None:
    array = make((6, 10), chunks=(4, 4))
    with pytest.raises(ArgumentError, match=r"^values of shape .* cannot be broadcast to a selection of shape "):
        array[index] = np.ones(shape)
    with pytest.raises(ValueError):  # numpy refuses it as well
        np.zeros((6, 10))[index] = np.ones(shape)
    assert keys(array) == []


def test_the_message_about_a_wrong_shape_names_both_shapes() -> None:
    with pytest.raises(ArgumentError) as caught:
        make((6, 10))[:2] = np.ones((3, 10))
    assert str(caught.value) == "values of shape (3, 10) cannot be broadcast to a selection of shape (2, 10)"


def test_the_message_about_a_value_out_of_range_names_the_value_and_the_type() -> None:
    with pytest.raises(ArgumentError) as caught:
        make(3, "uint8")[0] = 300
    assert str(caught.value) == "the values cannot be stored as uint8: Python integer 300 out of bounds for uint8"


def test_assigned_arrays_are_not_changed() -> None:
    value = np.arange(60, dtype=">i4").reshape(6, 10)[::-1, ::2]
    value.setflags(write=False)
    array = make(value.shape, chunks=(4, 4), compressors=None)
    array[...] = value
    np.testing.assert_array_equal(array[...], value)


def test_stored_values_do_not_alias_the_assigned_array() -> None:
    value = np.ones((4, 4), "i4")
    array = make((4, 4), chunks=(4, 4), compressors=None)
    array[...] = value
    value[...] = 9
    assert set(np.unique(array[...])) == {1}


def test_an_array_can_be_assigned_from_an_array() -> None:
    first = make((6, 10), chunks=(4, 4), fill_value=3)
    second = make((6, 10), "f8", chunks=(5, 5))
    second[...] = first
    np.testing.assert_array_equal(second[...], first[...])
    first[:3] = first[3:] + 1
    assert set(first[:3].ravel()) == {4}


# Data types.


@pytest.mark.parametrize(
    ("dtype", "data"),
    [
        ("string", ["", "a", "é" * 1000, "\0", "a\0", "\U0001f600"]),
        ("bytes", [b"", b"a", b"\0", b"a\0", bytes(range(256)), b"x" * 10**6]),
        ("S5", [b"", b"a", b"abcde"]),
        ("U5", ["", "a", "é\U0001f600"]),
        ("M8[ns]", ["NaT", "1677-09-22", "2262-04-11T23:47:16.854775807"]),
        ("m8[25s]", np.array([0, 1, -(2**63), 2**63 - 1]).view("m8[25s]")),
        ("V2", np.array([b"ab", b"\0\0"], "V2")),
        ("r16", np.array([b"ab", b"\0\0"], "V2")),
        ("u8", [0, 2**64 - 1, 2**63]),
        ("i8", [-(2**63), 2**63 - 1]),
        ("f8", [5e-324, 1.7976931348623157e308, -0.0, np.inf, np.nan]),
        ("f2", [65504, 6e-8, -np.inf]),
        ("c16", [complex(np.nan, -0.0), complex(np.inf, 5e-324)]),
        ("bool", [True, False, True]),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
@pytest.mark.parametrize("shards", [None, (4,)], ids=["chunks", "shards"])
def test_every_data_type_round_trips(dtype: str, data: Any, shards: Any) -> None:
    array = make(len(data), dtype, chunks=2, shards=shards)
    expected = np.asarray(data, array.dtype)
    array[...] = data
    read = zarrlite.open_array(array.store, mode="r")[...]
    assert read.dtype == array.dtype
    if array.metadata.data_type.itemsize is None:
        assert read.tolist() == expected.tolist()
        for i, item in enumerate(data):
            assert array[i] == item
            array[i] = array[i]
    else:
        assert same_bits(read, expected)
        for i in range(len(data)):
            assert same_bits(array[i], expected[i])
            array[i] = array[i]
    assert array[...].tobytes() == read.tobytes() if array.metadata.data_type.itemsize else True


@pytest.mark.parametrize("pattern", ["x", "".join(map(chr, range(33, 700)))], ids=["equal", "varied"])
def test_large_elements_round_trip_unless_they_compress_like_a_bomb(pattern: str) -> None:
    """Values that compress so well that they could not be read back are refused when they are written."""
    long = (pattern * (8_000_000 // len(pattern) + 1))[:8_000_000]
    text = make(2, "string", chunks=2)
    text[1] = long
    assert text[1] == long
    assert text[0] == ""
    with pytest.raises(ArgumentError, match=r"compresses too well \(.* bytes\): the limit on decompression"):
        text[0] = long * 4
    assert text[1] == long
    loose = make(2, "string", chunks=2, compressors=None)
    loose[0] = long * 4
    assert loose[0] == long * 4


RECORD = np.dtype([("x", "i4"), ("y", "f8"), ("name", "S4")])


@pytest.mark.parametrize("shards", [None, (6,)], ids=["chunks", "shards"])
def test_fields_of_structs_are_read_and_written(shards: Any) -> None:
    model = np.zeros(7, RECORD)
    model["x"] = range(7)
    array = make(7, RECORD, chunks=3, shards=shards)
    array[...] = model
    assert array["x"].tolist() == list(range(7))
    assert array["x", 2] == 2
    assert array["x", 2:4].tolist() == [2, 3]
    assert array[["x", "y"]].dtype.names == ("x", "y")
    assert array[["name", "x"], 1:3].tolist() == [(b"", 1), (b"", 2)]
    assert array.oindex["x", [0, 6]].tolist() == [0, 6]
    assert array.vindex["x", [6, 0]].tolist() == [6, 0]
    steps: list[tuple[str, Any, Any]] = [
        ("y", ..., 1.5),
        ("x", slice(1, 3), [10, 20]),
        ("name", -1, b"last"),
        ("x", slice(None, None, -3), [60, 30, 0]),
    ]
    for name, index, value in steps:
        array[name, index] = value
        model[name][index] = value
        np.testing.assert_array_equal(array[...], model)
    array[["x", "y"]] = (1, 2.0)
    array.oindex["x", [1, 3]] = 9
    model["x"], model["y"] = [1, 9, 1, 9, 1, 1, 1], 2.0
    np.testing.assert_array_equal(array[...], model)
    array[3] = (8, 8.5, b"abc")
    assert array[3].tolist() == (8, 8.5, b"abc")


def test_writing_a_field_keeps_the_fill_value_of_the_others() -> None:
    array = make(4, RECORD, chunks=2, fill_value=(7, 0.5, b"fill"))
    array["x", 0] = 1
    assert array[...].tolist() == [(1, 0.5, b"fill"), (7, 0.5, b"fill")] + [(7, 0.5, b"fill")] * 2
    assert keys(array) == ["c/0"]
    array["x"] = 7
    assert keys(array) == []


@pytest.mark.parametrize(
    ("dtype", "index", "message"),
    [
        (RECORD, "z", "there is no field 'z' (fields: 'x', 'y', 'name')"),
        (RECORD, ("x", "z"), "there is no field 'z' (fields: 'x', 'y', 'name')"),
        (RECORD, (["x", "z"], 0), "there is no field 'z' (fields: 'x', 'y', 'name')"),
        ("i4", "x", "there is no field 'x' (fields: none)"),
    ],
    ids=str,
)
def test_unknown_fields_are_refused(dtype: Any, index: Any, message: str) -> None:
    array = make(3, dtype)
    for touch in (lambda: array[index], lambda: assign(array, index, 1)):
        with pytest.raises(SelectionError) as caught:
            touch()
        assert str(caught.value) == message
    assert keys(array) == []


def test_field_values_that_do_not_fit_are_refused() -> None:
    array = make(3, RECORD)
    for value in (2**31, "x", [1, 2]):
        with pytest.raises(ArgumentError):
            array["x"] = value
    assert keys(array) == []


def test_arrays_without_dimensions_are_read_and_written() -> None:
    array = make((), "f4", fill_value=1.5)
    assert array[()] == 1.5
    assert type(array[()]) is np.float32
    assert array[...].shape == ()
    array[...] = 2.5
    assert array[()] == 2.5
    assert keys(array) == ["c"]
    array[()] = 1.5
    assert keys(array) == []
    array.resize(())
    assert np.asarray(array) == 1.5
    assert float(array[()]) == 1.5


def test_a_selection_beyond_memory_is_refused() -> None:
    array = make(2**62, "u1", chunks=2**20)
    with pytest.raises(SelectionError, match=r"^a selection of shape \(4611686018427387904,\) needs "):
        array[...]
    assert array[2**62 - 1] == 0
    array[2**62 - 1] = 3
    assert array[-1] == 3


# Pickling.


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "duplicate", [lambda a: pickle.loads(pickle.dumps(a)), copy.deepcopy], ids=["pickle", "deepcopy"]
)
def test_arrays_can_be_pickled_and_copied(tmp_path: Path, duplicate: Callable[[Any], Any], read_only: bool) -> None:
    zarrlite.create_array(tmp_path, name="a", data=np.arange(6), chunks=2, attributes={"k": [1]})[2:4] = 0
    array = zarrlite.open_array(
        tmp_path, path="a", mode="r" if read_only else "r+", missing_chunks="error", write_empty_chunks=True
    )
    array[0]  # prepares the codec pipeline
    again = duplicate(array)
    assert repr(again) == repr(array)
    assert again.options == array.options == ArrayOptions("error", True)
    assert again.metadata == array.metadata
    assert again.attrs == {"k": [1]}
    assert again.read_only == read_only
    assert again[:2].tolist() == [0, 1]
    with pytest.raises(MissingChunkError):
        again[...]
    if not read_only:
        again[5] = 50
        assert array[5] == 50


def test_sharded_arrays_can_be_pickled(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, data=np.arange(6), chunks=2, shards=4)
    assert pickle.loads(pickle.dumps(array))[...].tolist() == [0, 1, 2, 3, 4, 5]


def test_errors_can_be_pickled() -> None:
    array = make(3, missing_chunks="error")
    with pytest.raises(MissingChunkError) as caught:
        array[...]
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.key, type(again)) == (str(caught.value), "c/0", MissingChunkError)
