"""Zarr v2, read in place: hierarchies written by zarr-python 2.18 (tests/data/v2), and documents by other writers."""

from __future__ import annotations

import copy
import json
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from formats.v2_hierarchies import DOCUMENTS, HIERARCHIES, assert_as_recorded, disk, memory, values

import zarrlite
from zarrlite import MetadataWarning, v2
from zarrlite.formats.v2_store import V2Store, find_v2
from zarrlite.stores import LocalStore, MemoryStore, PrefixStore, ReadOnlyStore

ARRAYS = [(name, path) for name, hierarchy in HIERARCHIES.items() for path in hierarchy["arrays"]]
NESTED = ["groups", "consolidated", "implicit", "bare"]
PLAIN = {
    "zarr_format": 2,
    "shape": [2, 3],
    "chunks": [2, 3],
    "dtype": "<i2",
    "compressor": None,
    "fill_value": 0,
    "order": "C",
    "filters": None,
}


def store_of(attributes: dict[str, Any] | None = None, chunk: bytes | None = None, **members: Any) -> MemoryStore:
    """Return a store with one array. Its document is `PLAIN` with these members replaced; `...` omits a member."""
    document = {name: value for name, value in {**PLAIN, **members}.items() if value is not ...}
    stored = {".zarray": json.dumps(document).encode()}
    if attributes is not None:
        stored[".zattrs"] = json.dumps(attributes).encode()
    if chunk is not None:
        stored["0.0"] = chunk
    return MemoryStore(stored)


# elements


@pytest.mark.parametrize(("name", "path"), ARRAYS)
def test_every_array_reads_the_same_as_in_zarr_python(name, path):
    assert_as_recorded(zarrlite.open_array(memory(name), mode="r", path=path)[...], name, path)


def test_several_hundred_arrays_on_disk_read_as_recorded(tmp_path):
    for name in ("types", "special", "codecs", "filters", "objects"):
        root = zarrlite.open_group(disk(name, tmp_path / name), mode="r")
        for path in HIERARCHIES[name]["arrays"]:
            assert_as_recorded(root[path][...], name, path)
    assert len(ARRAYS) > 600


@pytest.mark.parametrize("name", ["types", "special", "codecs", "filters"])
def test_partial_reads_equal_parts_of_the_whole_array(name, tmp_path):
    random = np.random.default_rng(1)
    root = zarrlite.open_group(disk(name, tmp_path), mode="r")
    for _, array in root.arrays():
        whole = array[...]
        for _ in range(2):
            bounds = [sorted(random.integers(0, n + 1, 2)) for n in array.shape]
            part = tuple(slice(int(a), int(b)) for a, b in bounds)
            assert array[part].tobytes() == whole[part].tobytes()


def test_objects_as_json_in_column_major_order_read_as_they_were_written():
    """zarr-python 2 writes JSON objects in row-major order even if `order` is `F`, and misreads its own chunks."""
    filters = [{"id": "json2", "encoding": "utf-8", "strict": True}]
    chunk = b'[["a","b","c"],["d","e","f"],"|O",[2,3]]'
    store = store_of(dtype="|O", order="F", filters=filters, fill_value="", chunk=chunk)
    assert zarrlite.open_array(store)[...].tolist() == [["a", "b", "c"], ["d", "e", "f"]]


# hierarchies


@pytest.mark.parametrize("name", NESTED)
def test_groups_and_attributes_are_the_same_as_with_zarr_python(name, tmp_path):
    for store in (memory(name), disk(name, tmp_path)):
        root = zarrlite.open_group(store, mode="r")
        expected = HIERARCHIES["groups"]["attributes"]
        assert sorted(path for path, _ in root.members(None)) == sorted(expected.keys() - {""})
        for path, attributes in expected.items():
            node = root[path] if path else root
            assert isinstance(node, zarrlite.Group) == (path in HIERARCHIES["groups"]["groups"])
            shown = dict(node.attrs)
            if isinstance(node, zarrlite.Array) and node.metadata.dimension_names:
                shown["_ARRAY_DIMENSIONS"] = list(node.metadata.dimension_names)
            assert repr(sorted(shown.items())) == repr(sorted(attributes.items()))  # as text, because NaN != NaN
        assert "nothing" not in root
        assert "a/b/x/0" not in root


@pytest.mark.parametrize("name", [name for name in HIERARCHIES if name != "refused"])
def test_the_view_lists_every_key_of_zarr_v3(name):
    store = find_v2(memory(name), "")
    keys = list(store.list())
    chunks = {key for key in values(name) if not key.endswith(DOCUMENTS)}
    assert len(set(keys)) == len(keys)
    assert {key for key in keys if not key.endswith("zarr.json")} == chunks
    assert len(keys) - len(chunks) == len(HIERARCHIES[name]["attributes"])
    for key in keys[:: 1 + len(keys) // 100]:
        assert store.size(key) == len(store.get(key))
        prefix = key.rpartition("/")[0] + "/" if "/" in key else ""
        assert sorted(store.list_prefix(prefix)) == sorted(k for k in keys if k.startswith(prefix))
        assert store.list_dir(prefix) == MemoryStore(dict.fromkeys(keys, b"")).list_dir(prefix)
    assert store.get(".zgroup") is store.get("a/.zattrs") is store.size(".zmetadata") is None


class Unlisted(MemoryStore):
    """A store that cannot be listed, like most web servers."""

    def list(self):
        raise zarrlite.StoreError("cannot be listed")


@pytest.mark.parametrize("name", ["consolidated", "bare"])
def test_consolidated_metadata_needs_no_listing(name):
    root = zarrlite.open_group(Unlisted(values(name)), mode="r")
    assert [path for path, _ in root.members(None)] == sorted(HIERARCHIES["groups"]["attributes"].keys() - {""})
    assert root["a/b/x"][...].tolist() == [0, 1, 2, 3, 4]
    assert zarrlite.open(Unlisted(values(name)), mode="r", path="a/b")["x"].shape == (5,)


def test_consolidated_metadata_is_used_unless_it_is_not_wanted():
    store = memory("consolidated")
    store.erase("a/b/x/.zarray")
    assert "x" in zarrlite.open_group(store, mode="r")["a/b"]
    assert "x" in zarrlite.open_group(store, mode="r", use_consolidated=True)["a/b"]
    assert "x" not in zarrlite.open_group(store, mode="r", use_consolidated=False)["a/b"]
    with pytest.raises(zarrlite.ArgumentError, match="has no consolidated metadata"):
        zarrlite.open_group(memory("groups"), mode="r", use_consolidated=True)


def test_consolidated_metadata_below_the_root_is_used():
    store = MemoryStore({f"top/{key}": value for key, value in values("bare").items()})
    root = zarrlite.open_group(store, mode="r", path="top")
    assert root["a/b/x"].path == "top/a/b/x"
    assert root["a/b/x"][...].tolist() == [0, 1, 2, 3, 4]
    assert sorted(root) == ["0", "a", "empty", "named", "odd"]


def test_a_faulty_document_in_consolidated_metadata_closes_only_its_node():
    store = memory("consolidated")
    content = json.loads(bytes(store.get(".zmetadata")))
    content["metadata"]["named/.zarray"]["order"] = "D"
    store.set(".zmetadata", json.dumps(content).encode())
    root = zarrlite.open_group(store, mode="r")
    with pytest.raises(zarrlite.MetadataError) as raised:
        root["named"]
    assert (raised.value.document, raised.value.pointer) == (".zmetadata", "/metadata/named~1.zarray/order")
    with pytest.warns(UserWarning, match="'named' is skipped"):
        assert sorted(name for name, _ in root.items()) == ["0", "a", "empty", "odd"]


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        ({"metadata": {}}, "/zarr_consolidated_format"),
        ({"zarr_consolidated_format": 2, "metadata": {}}, "/zarr_consolidated_format"),
        ({"zarr_consolidated_format": 1}, "/metadata"),
        ({"zarr_consolidated_format": 1, "metadata": []}, "/metadata"),
        ({"zarr_consolidated_format": 1, "metadata": {".zgroup": 2}}, "/metadata/.zgroup"),
    ],
)
def test_faulty_consolidated_metadata_is_refused(content, pointer):
    store = MemoryStore({".zgroup": b'{"zarr_format": 2}', ".zmetadata": json.dumps(content).encode()})
    with pytest.raises(zarrlite.MetadataError) as raised:
        zarrlite.open_group(store, mode="r")
    assert (raised.value.document, raised.value.pointer) == (".zmetadata", pointer)
    assert isinstance(zarrlite.open_group(store, mode="r", use_consolidated=False), zarrlite.Group)


def test_groups_without_documents_are_found_by_path():
    store = memory("implicit")
    assert isinstance(zarrlite.open(store, path="a", mode="r"), zarrlite.Group)
    assert isinstance(zarrlite.open(store, path="a/b", mode="r"), zarrlite.Group)
    for path in ("a/c", "a/b/x/0", "0/1/0"):
        with pytest.raises(zarrlite.NodeNotFoundError):
            zarrlite.open(store, path=path, mode="r")


def test_a_directory_inside_an_array_is_not_a_group():
    store = memory("groups")
    store.set("0/1/0/x/.zarray", json.dumps(PLAIN).encode())
    assert [path for path, _ in zarrlite.open_group(store, mode="r")["0"].members(None)] == ["1"]


# documents of both versions


def test_a_document_of_zarr_v3_takes_precedence_with_a_warning(tmp_path):
    disk("groups", tmp_path)
    v3 = zarrlite.create_array({}, data=np.array([7, 8], "u1")).store
    (tmp_path / "named" / "zarr.json").write_bytes(bytes(v3.get("zarr.json")))
    with pytest.warns(
        MetadataWarning, match=r"^zarr.json#: zarr.json in .* is read; the documents of Zarr v2 next to it"
    ):
        assert zarrlite.open_array(tmp_path / "named", mode="r").shape == (2,)
    root = zarrlite.open_group(tmp_path, mode="r")
    with pytest.warns(MetadataWarning, match="named/zarr.json in"):
        assert root["named"].shape == (2,)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        zarrlite.open_array(tmp_path / "a" / "b" / "x", mode="r")
    assert not caught


def test_members_of_zarr_v3_are_shown_in_a_hierarchy_of_zarr_v2():
    store = memory("groups")
    new = zarrlite.create_array({}, data=[1, 2])
    for key in new.store.list():
        store.set(f"a/new/{key}", new.store.get(key))
    root = zarrlite.open_group(store, mode="r")
    assert sorted(root["a"]) == ["b", "new"]
    assert root["a/new"][...].tolist() == [1, 2]


# documents


def test_a_document_is_converted_to_zarr_v3():
    attributes = {"_ARRAY_DIMENSIONS": ["y", "x"], "units": "K"}
    filters = [{"id": "delta", "dtype": ">i2", "astype": ">i2"}, {"id": "shuffle", "elementsize": 2}]
    members = {"filters": filters, "order": "F", "dtype": ">i2", "compressor": {"id": "zlib", "level": 1}}
    assert v2.array_document({**PLAIN, **members, "dimension_separator": "/", "fill_value": None}, attributes) == {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [2, 3],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [
            {"name": "transpose", "configuration": {"order": [1, 0]}},
            {"name": "numcodecs.delta", "configuration": {"dtype": "<i2", "astype": "<i2"}},
            {"name": "bytes", "configuration": {"endian": "big"}},
            {"name": "numcodecs.shuffle", "configuration": {"elementsize": 2}},
            {"name": "numcodecs.zlib", "configuration": {"level": 1}},
        ],
        "attributes": {"units": "K"},
        "dimension_names": ["y", "x"],
        "zarr_v2": {"must_understand": False, "fill_value": None},
    }


TYPES = {  # dtype in the document -> data type, byte order
    "|i1": ("int8", None),
    "<i1": ("int8", None),
    ">u1": ("uint8", None),
    "<b1": ("bool", None),
    ">b1": ("bool", None),
    "|b1": ("bool", None),
    ">f4": ("float32", "big"),
    ">S2": ({"name": "null_terminated_bytes", "configuration": {"length_bytes": 2}}, None),
    "<V2": ("r16", None),
    "<M8": ({"name": "numpy.datetime64", "configuration": {"unit": "generic", "scale_factor": 1}}, "little"),
    ">m8[10us]": ({"name": "numpy.timedelta64", "configuration": {"unit": "us", "scale_factor": 10}}, "big"),
}


@pytest.mark.parametrize(("dtype", "expected"), TYPES.items())
def test_data_types_are_read_in_every_spelling(dtype, expected):
    document = v2.array_document({**PLAIN, "dtype": dtype, "fill_value": None})
    endian = {} if expected[1] is None else {"endian": expected[1]}
    assert document["data_type"] == expected[0]
    assert document["codecs"] == [{"name": "bytes", "configuration": endian}]


def test_characters_of_netcdf_are_single_bytes():
    """netCDF-C 4.9 writes the data type <U1 for characters that take one byte each."""
    store = store_of(dtype="<U1", fill_value=None, chunk=b"abcdef", _NCZARR_ARRAY={"dimrefs": ["/y", "/x"]})
    assert zarrlite.open_array(store)[...].tolist() == [[b"a", b"b", b"c"], [b"d", b"e", b"f"]]


NAN = float("nan")
FILL_VALUES = [  # dtype, fill value in the document, element of a missing chunk
    ("<i4", None, 0),
    ("<i4", 7, 7),
    ("<i4", 7.0, 7),
    ("<i4", -0.0, 0),
    ("<i4", "7", 7),
    ("<i4", "-7", -7),
    ("<i4", "7.0", 7),
    ("<i4", True, 1),
    ("<u8", 2**64 - 1, 2**64 - 1),
    ("<u8", str(2**64 - 1), 2**64 - 1),
    ("|b1", 0, False),
    ("|b1", 1, True),
    ("|b1", 1.0, True),
    ("|b1", True, True),
    ("|b1", None, False),
    ("<f4", 1, 1.0),
    ("<f4", "1.5", 1.5),
    ("<f4", "-1e3", -1000.0),
    ("<f4", ".5", 0.5),
    ("<f4", "0", 0.0),
    ("<f4", False, 0.0),
    ("<f4", "NaN", NAN),
    ("<f4", "nan", NAN),
    ("<f4", NAN, NAN),
    ("<f4", math.inf, math.inf),
    ("<f4", -math.inf, -math.inf),
    ("<f4", "Infinity", math.inf),
    ("<f4", "-Infinity", -math.inf),
    ("<f4", "inf", math.inf),
    ("<f4", "-inf", -math.inf),
    ("<f4", "+Infinity", math.inf),
    ("<f4", 1e39, math.inf),
    ("<f4", None, 0.0),
    (">c8", [1, 2], 1 + 2j),
    (">c8", ["NaN", "-Infinity"], complex(NAN, -math.inf)),
    (">c8", 5, 5 + 0j),
    (">c8", 0.0, 0j),
    ("<M8[s]", 0, np.datetime64(0, "s")),
    ("<M8[s]", "0", np.datetime64(0, "s")),
    ("<M8[s]", "NaT", np.datetime64("NaT", "s")),
    ("<M8[s]", -(2**63), np.datetime64("NaT", "s")),
    ("|S3", "", b""),
    ("|S3", 0, b""),
    ("|S3", "YWI=", b"ab"),
    ("|S1", "\0", b""),
    ("|S3", "a b", b"a b"),
    ("|S3", "é", b"\xe9"),
    ("<U3", "", ""),
    ("<U3", 0, ""),
    ("<U3", "äb", "äb"),
    ("|V2", "", np.void(b"\0\0")),
    ("|V2", 0, np.void(b"\0\0")),
    ("|V2", "AQI=", np.void(b"\1\2")),
    ([["a", ">i2"], ["b", "|S1"]], "AQJ4", np.array((258, b"x"), [("a", "i2"), ("b", "S1")])[()]),
    ([["a", "<i2"], ["b", "|S1"]], 0, np.array((0, b""), [("a", "i2"), ("b", "S1")])[()]),
    ([["a", "<i2"], ["b", "|S1"]], None, np.array((0, b""), [("a", "i2"), ("b", "S1")])[()]),
    ([["a", "<i2"], ["b", "|S1"]], "", np.array((0, b""), [("a", "i2"), ("b", "S1")])[()]),
]


@pytest.mark.parametrize(("dtype", "value", "expected"), FILL_VALUES)
def test_fill_values_are_read_in_every_form(dtype, value, expected):
    array = zarrlite.open_array(store_of(dtype=dtype, fill_value=value))
    assert repr(array[1, 2]) == repr(np.array(expected, array.dtype)[()])
    assert repr(array.fill_value) == repr(array[1, 2])


@pytest.mark.parametrize(("value", "kept"), [(None, None), (0, 0), (5, 5), (NAN, "NaN"), ("NaN", "NaN"), (..., None)])
def test_the_fill_value_of_the_v2_document_is_kept_in_the_metadata(value, kept):
    array = zarrlite.open_array(store_of(dtype="<f8", fill_value=value))
    assert array.metadata.extra["zarr_v2"] == {"must_understand": False, "fill_value": kept}
    copied = zarrlite.copy(array, {})
    assert copied.metadata.extra["zarr_v2"]["fill_value"] == kept


def test_members_that_writers_omit_or_add_do_not_matter():
    document = {"filters": ..., "fill_value": ..., "_NCZARR_ARRAY": {}, "comment": [1]}
    assert zarrlite.open_array(store_of(**document))[...].tolist() == [[0, 0, 0], [0, 0, 0]]
    assert zarrlite.open_array(store_of(filters=[]))[0, 0] == 0


def test_empty_axes_may_have_chunks_of_length_zero():
    array = zarrlite.open_array(store_of(shape=[0, 3], chunks=[0, 3]))
    assert array.shape == (0, 3)
    assert array.chunks == (1, 3)
    assert array[...].shape == (0, 3)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["y", "x"], ("y", "x")),
        (["x", "x"], ("x", "x")),
        (["y"], None),
        (["y", "x", "t"], None),
        (["y", None], None),
        ("yx", None),
        ([], None),
    ],
)
def test_the_dimensions_of_xarray_become_names_if_they_fit(names, expected):
    array = zarrlite.open_array(store_of({"_ARRAY_DIMENSIONS": names, "a": 1}))
    assert array.metadata.dimension_names == expected
    assert dict(array.attrs) == ({"a": 1} if expected else {"_ARRAY_DIMENSIONS": names, "a": 1})


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ({"dimrefs": ["/y", "/g/x"], "storage": "chunked"}, ("y", "x")),
        ({"dimension_references": ["/y", "/x"]}, ("y", "x")),
        ({"dimrefs": ["/y"]}, None),
        ({"dimrefs": ["/y", 1]}, None),
        ({"dimrefs": "yx"}, None),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_dimensions_of_netcdf_become_names_if_xarray_has_recorded_none(recorded, expected):
    member = zarrlite.open_array(store_of(_NCZARR_ARRAY=recorded))
    assert member.metadata.dimension_names == expected
    attribute = zarrlite.open_array(store_of({"_nczarr_array": recorded}))
    assert attribute.metadata.dimension_names == expected
    assert dict(attribute.attrs) == {"_nczarr_array": recorded}
    both = zarrlite.open_array(store_of({"_ARRAY_DIMENSIONS": ["a", "b"]}, _NCZARR_ARRAY=recorded))
    assert both.metadata.dimension_names == ("a", "b")


def test_codecs_have_the_defaults_of_numcodecs_where_writers_omit_members():
    def codec(**compressor: Any) -> Any:
        return v2.array_document({**PLAIN, "compressor": compressor})["codecs"][-1]

    assert codec(id="zstd") == {"name": "zstd", "configuration": {"level": 0, "checksum": False}}
    assert codec(id="gzip") == {"name": "gzip", "configuration": {"level": 1}}
    blosc = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0, "typesize": 2}
    assert codec(id="blosc", nthreads=4) == {"name": "blosc", "configuration": blosc}
    assert codec(id="blosc", shuffle=-1)["configuration"]["shuffle"] == "shuffle"
    assert codec(id="blosc", shuffle=2, cname="zstd")["configuration"]["shuffle"] == "bitshuffle"


# refusals: members of a document -> pointer, kind, part of the message

REFUSED: list[tuple[dict[str, Any], str, str, str]] = [
    ({"zarr_format": 1}, "/zarr_format", "value", "must be 2, not 1"),
    ({"zarr_format": ...}, "/zarr_format", "missing", "is required"),
    ({"zarr_format": "2"}, "/zarr_format", "type", "must be an integer"),
    ({"shape": ...}, "/shape", "missing", "is required"),
    ({"shape": [2, -3]}, "/shape/1", "value", "must be an integer from 0"),
    ({"shape": [2.0, 3]}, "/shape/0", "type", "must be an integer"),
    ({"shape": [1] * 65, "chunks": [1] * 65}, "/shape", "limit", "must have at most 64 items"),
    ({"chunks": [2]}, "/chunks", "conflict", "must have 2 items, like shape"),
    ({"chunks": [2, 0]}, "/chunks/1", "value", "must be a positive integer"),
    ({"chunks": True}, "/chunks", "type", "must be an array"),
    ({"dtype": ...}, "/dtype", "missing", "is required"),
    ({"dtype": "<i3"}, "/dtype", "value", "is not a data type that zarrlite reads"),
    ({"dtype": "|i4"}, "/dtype", "value", "is not a data type that zarrlite reads"),
    ({"dtype": "<f16"}, "/dtype", "value", "is not a data type that zarrlite reads"),
    ({"dtype": "|S0"}, "/dtype", "value", "is not a data type that zarrlite reads"),
    ({"dtype": "<M8[x]"}, "/dtype", "value", "is not a data type"),
    ({"dtype": 5}, "/dtype", "value", "is not a data type that zarrlite reads"),
    ({"dtype": []}, "/dtype", "value", "is not a data type that zarrlite reads"),
    ({"dtype": [["a"]]}, "/dtype", "value", "a field must be a name and a data type"),
    ({"dtype": [["a", "<i4"], ["a", "<i4"]]}, "/dtype", "value", "is not a data type"),
    ({"dtype": [["a", "<i4"], ["b", ">i4"]]}, "/dtype", "value", "must not mix byte orders"),
    ({"dtype": [["a", "<i4", [2]]]}, "/dtype", "value", "must not have fields that are arrays"),
    ({"dtype": [["a", "|O"]]}, "/dtype", "value", "is not a data type that zarrlite reads"),
    ({"dtype": "<U1000000"}, "/dtype/configuration/length_bytes", "limit", "must be at most"),
    ({"dtype": "|O"}, "/dtype", "conflict", "without a filter that encodes objects"),
    ({"dtype": "|O", "filters": [{"id": "shuffle"}]}, "/dtype", "conflict", "Zarr v3 has no data type for it"),
    ({"dtype": "|O", "filters": [{"id": "pickle"}]}, "/filters/0/id", "unknown-extension", "pickle must not be used"),
    ({"dtype": "|O", "filters": [{"id": "msgpack2"}]}, "/filters/0/id", "unknown-extension", '"msgpack2" is not a'),
    ({"order": "A"}, "/order", "value", 'must be "C" or "F"'),
    ({"order": ...}, "/order", "missing", "is required"),
    ({"dimension_separator": "-"}, "/dimension_separator", "value", 'must be "." or "/"'),
    ({"dimension_separator": None}, "/dimension_separator", "type", "must be a string"),
    ({"compressor": ...}, "/compressor", "missing", "is required"),
    ({"compressor": "zlib"}, "/compressor", "type", "must be an object"),
    ({"compressor": {"level": 1}}, "/compressor/id", "missing", "is required"),
    ({"compressor": {"id": 1}}, "/compressor/id", "type", "must be a string"),
    ({"compressor": {"id": "jpeg"}}, "/compressor/id", "unknown-extension", '"jpeg" is not a known codec of Zarr v2'),
    ({"compressor": {"id": "zlib", "level": 10}}, "/compressor/level", "value", "must be an integer from"),
    ({"compressor": {"id": "zstd", "level": "1"}}, "/compressor/level", "type", "must be an integer"),
    ({"compressor": {"id": "blosc", "cname": "x"}}, "/compressor/cname", "value", "must be"),
    ({"compressor": {"id": "blosc", "shuffle": 3}}, "/compressor/shuffle", "type", "must be a string"),
    ({"compressor": {"id": "vlen-utf8"}}, "/compressor", "conflict", "vlen-utf8 stores strings, not int16"),
    ({"filters": {}}, "/filters", "type", "must be an array"),
    ({"filters": [None]}, "/filters/0", "type", "must be an object"),
    ({"filters": [{"id": "delta"}]}, "/filters/0/dtype", "missing", "is required"),
    ({"filters": [{"id": "delta", "dtype": "<i4"}]}, "/filters/0/dtype", "conflict", 'must be "<i2", the type of'),
    ({"filters": [{"id": "delta", "dtype": ">i2"}]}, "/filters/0/dtype", "conflict", 'must be "<i2", the type of'),
    ({"filters": [{"id": "delta", "dtype": "|O"}]}, "/filters/0/dtype", "conflict", 'must be "<i2", the type of'),
    (
        {"filters": [{"id": "delta", "dtype": "<i2", "astype": "x"}]},
        "/filters/0/astype",
        "value",
        "is not a data type",
    ),
    (
        {"filters": [{"id": "shuffle", "elementsize": 2}, {"id": "delta", "dtype": "<i2"}]},
        "/filters/1/id",
        "conflict",
        "delta must not come after bytes",
    ),
    ({"filters": [{"id": "packbits"}]}, "/filters/0", "conflict", "numcodecs.packbits stores booleans"),
    ({"fill_value": 40000}, "/fill_value", "value", "must be an integer from -32768 to 32767"),
    ({"fill_value": 1.5}, "/fill_value", "type", "must be an integer"),
    ({"fill_value": "NaN"}, "/fill_value", "type", "must be an integer"),
    ({"fill_value": NAN}, "/fill_value", "type", "must be an integer"),
    ({"fill_value": "x"}, "/fill_value", "type", "must be an integer"),
    ({"fill_value": [1]}, "/fill_value", "type", "must be an integer"),
    ({"dtype": "|b1", "fill_value": 2}, "/fill_value", "type", "must be true or false"),
    ({"dtype": "<f4", "fill_value": "1_0"}, "/fill_value", "value", "must be a number"),
    ({"dtype": "<f4", "fill_value": {}}, "/fill_value", "type", "must be a number"),
    ({"dtype": "<c8", "fill_value": [1, "x"]}, "/fill_value/1", "value", "must be a number"),
    ({"dtype": "<c8", "fill_value": [1]}, "/fill_value", "value", "must be an array of two numbers"),
    ({"dtype": "<M8[s]", "fill_value": "2000-01-01"}, "/fill_value", "value", "must be an integer"),
    ({"dtype": "|S2", "fill_value": "YWJj"}, "/fill_value", "value", "must have at most 2 bytes"),
    ({"dtype": "|S2", "fill_value": "漢"}, "/fill_value", "value", "must be base64 or Latin-1 text"),
    ({"dtype": "|S2", "fill_value": 5}, "/fill_value", "type", "must be an array of integers or a base64"),
    ({"dtype": "<U2", "fill_value": "abc"}, "/fill_value", "value", "must have at most 2 code points"),
    ({"dtype": "|V2", "fill_value": "AQ=="}, "/fill_value", "value", "must have 2 bytes"),
    ({"dtype": [["a", "|b1"]], "fill_value": "Ag=="}, "/fill_value", "value", "bool elements must be stored as 0 or 1"),
]


@pytest.mark.parametrize(("members", "pointer", "kind", "message"), REFUSED)
def test_documents_without_a_counterpart_in_zarr_v3_are_refused(members, pointer, kind, message):
    store = store_of(**members)
    with pytest.raises(zarrlite.MetadataError) as raised:
        zarrlite.open_array(store)
    fault = raised.value
    assert (fault.document, fault.pointer, fault.kind) == (".zarray", pointer, kind)
    assert message in fault.message


def test_big_endian_elements_need_the_codec_bytes():
    document = {**PLAIN, "dtype": ">f4", "compressor": {"id": "pcodec", "level": 8}, "fill_value": 0}
    with pytest.raises(zarrlite.MetadataError, match="pcodec must not have big-endian elements"):
        v2.array_document(document)


def test_every_fault_of_a_document_is_found():
    with pytest.raises(zarrlite.MetadataError) as raised:
        v2.array_document({"zarr_format": 3, "shape": [1], "chunks": [-1], "dtype": "x", "order": "C"})
    pointers = {fault.pointer for fault in raised.value.problems}
    assert pointers == {"/zarr_format", "/chunks/0", "/compressor", "/dtype"}


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"zarr_format": 2}', b"\xff", b'{"a": 1, "a": 2}'])
def test_damaged_documents_are_refused(content):
    with pytest.raises(zarrlite.MetadataError):
        zarrlite.open_array(MemoryStore({".zarray": content}))
    root = zarrlite.open_group(MemoryStore({".zgroup": b'{"zarr_format": 2}', "x/.zarray": content}))
    with pytest.raises(zarrlite.MetadataError):
        root["x"]


@pytest.mark.parametrize("content", [b"{}", b'{"zarr_format": 3}', b'{"zarr_format": null}', b"[2]"])
def test_damaged_documents_of_groups_are_refused(content):
    with pytest.raises(zarrlite.MetadataError):
        zarrlite.open_group(MemoryStore({".zgroup": content}), mode="r")


@pytest.mark.parametrize("path", sorted(HIERARCHIES["refused"]["attributes"].keys() - {"", "json2-values"}))
def test_arrays_that_zarr_v3_cannot_express_are_refused_but_their_group_can_be_read(path):
    root = zarrlite.open_group(memory("refused"), mode="r")
    with pytest.raises(zarrlite.MetadataError) as raised:
        root[path]
    assert raised.value.document == f"{path}/.zarray"
    assert path in root
    with pytest.warns(UserWarning, match="is skipped"):
        assert dict(root.items()).keys() == {"json2-values"}


def test_objects_that_are_not_text_are_refused_when_they_are_read():
    array = zarrlite.open_array(memory("refused"), mode="r", path="json2-values")
    with pytest.raises(zarrlite.DataError, match="must be text"):
        array[...]


@pytest.mark.parametrize("chunk", [b"", b"12345678901", b"1234567890123"])
def test_a_chunk_of_another_size_is_an_error(chunk):
    with pytest.raises(zarrlite.TruncatedError):
        zarrlite.open_array(store_of(chunk=chunk))[...]


# the view is read-only


@pytest.mark.parametrize("mode", ["r", "r+", "a"])
def test_opening_and_reading_write_nothing(mode, tmp_path):
    disk("groups", tmp_path)
    before = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))}
    root = zarrlite.open(tmp_path, mode=mode)
    assert root.read_only
    for _, node in root.members(None):
        if isinstance(node, zarrlite.Array):
            node[...]
    assert {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))} == before


def test_changes_are_refused():
    store = memory("groups")
    before = dict(values("groups"))
    root = zarrlite.open(store, mode="r+")
    with pytest.raises(zarrlite.ReadOnlyError, match="hierarchies of Zarr v2 are read-only"):
        root["a/b/x"][0] = 1
    with pytest.raises(zarrlite.ReadOnlyError):
        root.attrs["a"] = 1
    with pytest.raises(zarrlite.ReadOnlyError):
        root["new"] = [1]
    with pytest.raises(zarrlite.ReadOnlyError):
        root["a/b/x"].resize(9)
    for create in (zarrlite.create_group, lambda s, path: zarrlite.create_array(s, name=path, data=[1])):
        with pytest.raises(zarrlite.ReadOnlyError, match="is a Zarr v2 node, which is read-only"):
            create(store, path="a/new")
    with pytest.raises(zarrlite.ReadOnlyError, match="cannot be created"):
        zarrlite.open(store, mode="a", path="a/b/x/y")
    with pytest.raises(zarrlite.NodeExistsError):
        zarrlite.create_array(store, name="a/b/x", data=[1])
    assert {key: bytes(store.get(key)) for key in store.list()} == before


def test_a_node_is_replaced_on_request():
    store = store_of(chunk=bytes(12))
    zarrlite.create_array(store, data=[1, 2], overwrite=True)
    assert sorted(store.list()) == ["c/0", "zarr.json"]


def test_the_remains_of_an_interrupted_removal_are_not_a_group(tmp_path):
    store = MemoryStore({"g/x/.zarray": json.dumps(PLAIN).encode(), "g/__zarrlite.removal": b'{"documents": []}'})
    with pytest.raises(zarrlite.NodeNotFoundError):
        zarrlite.open(store, mode="r", path="g")


# copies


@pytest.mark.parametrize("name", ["groups", "consolidated", "special", "filters", "objects"])
def test_a_copy_is_zarr_v3_with_the_same_chunks(name):
    root = zarrlite.open_group(memory(name), mode="r")
    target = MemoryStore()
    zarrlite.copy(root, target)
    assert not any(key.endswith(DOCUMENTS) for key in target.list())
    for path in HIERARCHIES[name]["arrays"]:
        assert_as_recorded(zarrlite.open_array(target, mode="r", path=path)[...], name, path)


def test_a_copy_leaves_out_and_names_what_zarr_v3_cannot_express():
    root = zarrlite.open_group(memory("refused"), mode="r")
    target = MemoryStore()
    with pytest.warns(UserWarning, match="is not copied") as caught:
        zarrlite.copy(root, target)
    refused = sorted(HIERARCHIES["refused"]["attributes"].keys() - {"", "json2-values"})
    assert [str(warning.message).split("'")[1] for warning in caught] == refused
    assert sorted(target.list()) == ["json2-values/0", "json2-values/zarr.json", "zarr.json"]
    assert list(zarrlite.open_group(target, mode="r")) == ["json2-values"]


@pytest.mark.parametrize("name", ["groups", "implicit", "root_array", "types", "filters", "objects"])
def test_documents_are_written_next_to_those_of_zarr_v2(name, tmp_path):
    store = LocalStore(disk(name, tmp_path))
    before = values(name)
    written = v2.write_documents(store)
    assert len(written) == len(HIERARCHIES[name]["attributes"])
    after = {key: bytes(store.get(key)) for key in store.list()}
    assert {key: value for key, value in after.items() if key not in written} == before
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetadataWarning)
        for path in HIERARCHIES[name]["arrays"]:
            array = zarrlite.open_array(store, path=path)
            assert not array.read_only
            assert_as_recorded(array[...], name, path)
    assert v2.write_documents(store) == written


def test_documents_are_written_for_part_of_a_hierarchy_and_replaced_on_request():
    store = memory("groups")
    assert v2.write_documents(store, path="a/b") == ["a/b/c/zarr.json", "a/b/x/zarr.json", "a/b/zarr.json"]
    zarrlite.open_group(store, path="a/b").attrs["changed"] = True
    with pytest.raises(zarrlite.NodeExistsError, match=r"already has a different a/b/zarr\.json"):
        v2.write_documents(store)
    assert "zarr.json" not in store.list()
    assert len(v2.write_documents(store, overwrite=True)) == 10
    assert "changed" not in zarrlite.open_group(store, path="a/b").attrs


def test_nothing_is_written_if_a_node_is_refused():
    store = memory("refused")
    with pytest.raises(zarrlite.MetadataError):
        v2.write_documents(store)
    assert sorted(store.list()) == sorted(values("refused"))
    found = v2.documents(store)
    assert sum(isinstance(content, zarrlite.ZarrliteError) for content in found.values()) == 10
    assert found["json2-values/zarr.json"]["data_type"] == "string"


def test_converting_a_store_without_zarr_v2_is_an_error():
    for store in ({}, {"zarr.json": b"{}"}):
        with pytest.raises(zarrlite.NodeNotFoundError, match="no Zarr v2 array or group"):
            v2.write_documents(store)


# the store


def test_views_compare_and_can_be_pickled(tmp_path):
    store = LocalStore(disk("consolidated", tmp_path))
    assert V2Store(store) == V2Store(store) != V2Store(LocalStore("elsewhere"))
    assert len({V2Store(store), V2Store(store)}) == 1
    array = zarrlite.open_group(tmp_path, mode="r")["a/b/x"]
    for again in (pickle.loads(pickle.dumps(array)), copy.deepcopy(array)):
        assert again[...].tolist() == [0, 1, 2, 3, 4]
    for wrapped in (ReadOnlyStore(store), PrefixStore(store, "a/")):
        assert isinstance(zarrlite.open(wrapped, mode="r"), zarrlite.Group)


class Recording(MemoryStore):
    """A store that records the keys in each batch of requests."""

    def __init__(self, values: dict[str, bytes]) -> None:
        super().__init__(values)
        self.log: list[list[str]] = []

    def get(self, key, byte_range=zarrlite.ByteRange()):
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, requests, memory=None):
        self.log.append([request[0] for request in requests])
        return super().get_partial_values(requests, memory)


@pytest.mark.parametrize("path", ["little-i4-C-dot", "big-i4-F-slash"])
def test_chunks_are_read_with_the_requests_of_zarr_v3(path):
    view, copied = Recording(values("types")), MemoryStore()
    array = zarrlite.open_array(view, mode="r", path=path)
    zarrlite.copy(array, copied)
    plain = Recording({key: bytes(copied.get(key)) for key in copied.list()})
    same = zarrlite.open_array(plain, mode="r")
    for selection in ((1, 2), (slice(0, 4), slice(1, 5)), (slice(1, 3), 4), ...):
        view.log.clear()
        plain.log.clear()
        assert np.array_equal(array[selection], same[selection])
        assert [[key.removeprefix(f"{path}/") for key in batch] for batch in view.log] == plain.log


def test_the_documents_of_a_node_are_read_in_one_batch():
    store = Recording(values("groups"))
    root = zarrlite.open_group(store, mode="r")
    store.log.clear()
    root["a/b/x"]
    assert store.log == [[f"a/b/x/{name}" for name in ("zarr.json", ".zarray", ".zgroup", ".zattrs")]]
