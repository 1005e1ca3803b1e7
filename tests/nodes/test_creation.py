"""The arguments of `create_array`: the documents that they produce, and arguments that are refused."""

from __future__ import annotations

import json
import math
import warnings
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
    MemoryStore,
    MetadataError,
    NodeExistsError,
    StoreError,
    UnknownExtensionError,
    ZarrliteError,
)
from zarrlite.chunk_key_encodings.default import DefaultKeys
from zarrlite.chunk_key_encodings.v2 import V2Keys
from zarrlite.chunks.chunks import ArrayOptions
from zarrlite.codecs import Bytes, Crc32c, Gzip, Pad, ShardingIndexed, Transpose, Zstd
from zarrlite.nodes.creation import CHUNK_BYTES, guess_chunks


def create(**kwargs: Any) -> Array:
    kwargs = {"shape": (100, 100), "dtype": "float32", **kwargs}
    return zarrlite.create_array(MemoryStore(), **kwargs)


def document(array: Array) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(bytes(array.store.get("zarr.json") or b""))
    return content


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
INDEX = [LITTLE, {"name": "crc32c"}]

GOLDEN = b"""{
  "zarr_format": 3,
  "node_type": "array",
  "shape": [
    1000,
    500
  ],
  "data_type": "float32",
  "chunk_grid": {
    "name": "regular",
    "configuration": {
      "chunk_shape": [
        100,
        100
      ]
    }
  },
  "chunk_key_encoding": {
    "name": "default",
    "configuration": {
      "separator": "/"
    }
  },
  "fill_value": "NaN",
  "codecs": [
    {
      "name": "bytes",
      "configuration": {
        "endian": "little"
      }
    },
    {
      "name": "zstd",
      "configuration": {
        "level": 3,
        "checksum": false
      }
    }
  ],
  "attributes": {
    "units": "K"
  },
  "dimension_names": [
    "time",
    null
  ]
}"""


def test_the_document_is_written_in_this_form() -> None:
    array = create(
        shape=(1000, 500),
        dtype="f4",
        chunks=(100, 100),
        fill_value=float("nan"),
        attributes={"units": "K"},
        dimension_names=["time", None],
    )
    assert array.store.get("zarr.json") == GOLDEN


# Chunks.


@pytest.mark.parametrize(
    ("arguments", "chunks", "shards"),
    [
        ({}, (100, 100), None),
        ({"chunks": "auto"}, (100, 100), None),
        ({"chunks": None}, (100, 100), None),
        ({"chunks": 10}, (10, 10), None),
        ({"chunks": np.int64(10)}, (10, 10), None),
        ({"chunks": (10, 20)}, (10, 20), None),
        ({"chunks": [10, 20]}, (10, 20), None),
        ({"chunks": np.array([10, 20])}, (10, 20), None),
        ({"chunks": (1000, 1)}, (1000, 1), None),
        ({"chunks": (10, 20), "shards": (50, 40)}, (10, 20), (50, 40)),
        ({"chunks": 10, "shards": 50}, (10, 10), (50, 50)),
        ({"chunks": (10, 20), "shards": "auto"}, (10, 20), (80, 100)),
        ({"chunks": (10, 20), "shards": None}, (10, 20), None),
        ({"shape": (10_000, 10_000), "dtype": "u2"}, (625, 625), None),
        ({"shape": ()}, (), None),
        ({"shape": (0, 5)}, (1, 5), None),
        ({"shape": 7}, (7,), None),
        ({"shape": [7, 8]}, (7, 8), None),
        ({"shape": np.array([7, 8])}, (7, 8), None),
        ({"shape": 10**6, "dtype": "string"}, (15625,), None),
    ],
    ids=str,
)
def test_chunks_and_shards_have_the_requested_shapes(arguments: dict[str, Any], chunks: Any, shards: Any) -> None:
    array = create(**arguments)
    assert (array.chunks, array.shards) == (chunks, shards)
    grid = document(array)["chunk_grid"]["configuration"]["chunk_shape"]
    assert tuple(grid) == (shards or chunks)
    assert zarrlite.open_array(array.store).metadata == array.metadata


@given(st.lists(st.integers(0, 2**40), max_size=5).map(tuple), st.integers(1, 2**24))
def test_automatic_chunks_are_just_below_the_limit(shape: tuple[int, ...], itemsize: int) -> None:
    chunks = guess_chunks(shape, itemsize)
    nbytes = math.prod(chunks) * itemsize
    assert len(chunks) == len(shape)
    assert all(1 <= c <= max(1, n) for c, n in zip(chunks, shape, strict=True))
    assert nbytes <= CHUNK_BYTES or set(chunks) <= {1}
    # either the array is a single chunk, or a chunk has at least a quarter of the allowed size
    single = all(c == max(1, n) for c, n in zip(chunks, shape, strict=True))
    assert single or 2 * nbytes >= CHUNK_BYTES // 2
    assert guess_chunks(shape, itemsize) == chunks


@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.data())
def test_automatic_shards_are_multiples_of_chunks(shape: list[int], data: Any) -> None:
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    array = create(shape=shape, chunks=chunks, shards="auto", dtype="u1")
    assert array.shards is not None
    assert all(s % c == 0 for s, c in zip(array.shards, chunks, strict=True))


def test_shards_contain_the_codec_chain_of_their_chunks() -> None:
    array = create(chunks=(10, 20), shards=(50, 40), filters=TRANSPOSE, compressors=["gzip", "crc32c"])
    assert document(array)["codecs"] == [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [10, 20],
                "codecs": [TRANSPOSE, LITTLE, {"name": "gzip", "configuration": {"level": 5}}, {"name": "crc32c"}],
                "index_codecs": INDEX,
                "index_location": "end",
            },
        }
    ]


# Codecs.


@pytest.mark.parametrize(
    ("arguments", "codecs"),
    [
        ({}, [LITTLE, ZSTD]),
        ({"compressors": "auto", "filters": "auto", "serializer": "auto"}, [LITTLE, ZSTD]),
        ({"compressors": None}, [LITTLE]),
        ({"compressors": []}, [LITTLE]),
        ({"compressors": ()}, [LITTLE]),
        ({"compressors": "zstd"}, [LITTLE, ZSTD]),
        ({"compressors": Zstd()}, [LITTLE, ZSTD]),
        ({"compressors": ZSTD}, [LITTLE, ZSTD]),
        ({"compressors": [Zstd(), "crc32c"]}, [LITTLE, ZSTD, {"name": "crc32c"}]),
        ({"compressors": Gzip(1)}, [LITTLE, {"name": "gzip", "configuration": {"level": 1}}]),
        ({"compressors": Zstd(9, checksum=True)}, [LITTLE, {**ZSTD, "configuration": {"level": 9, "checksum": True}}]),
        ({"filters": None}, [LITTLE, ZSTD]),
        ({"filters": []}, [LITTLE, ZSTD]),
        ({"filters": TRANSPOSE}, [TRANSPOSE, LITTLE, ZSTD]),
        ({"filters": Transpose((1, 0))}, [TRANSPOSE, LITTLE, ZSTD]),
        ({"filters": [Transpose([1, 0]), TRANSPOSE]}, [TRANSPOSE, TRANSPOSE, LITTLE, ZSTD]),
        ({"serializer": LITTLE}, [LITTLE, ZSTD]),
        ({"serializer": Bytes("big")}, [{"name": "bytes", "configuration": {"endian": "big"}}, ZSTD]),
        ({"serializer": "bytes", "dtype": "u1"}, [{"name": "bytes"}, ZSTD]),
        ({"dtype": "u1"}, [{"name": "bytes"}, ZSTD]),
        ({"dtype": "string"}, [{"name": "vlen-utf8"}, ZSTD]),
        ({"dtype": "bytes"}, [{"name": "vlen-bytes"}, ZSTD]),
        ({"serializer": "packbits", "dtype": "bool", "compressors": None}, None),
        ({"codecs": [LITTLE]}, [LITTLE]),
        ({"codecs": [Bytes()]}, [LITTLE]),
        ({"codecs": ["bytes"]}, [LITTLE]),
        ({"serializer": "bytes"}, [LITTLE, ZSTD]),
        ({"codecs": (Transpose((1, 0)), LITTLE, "crc32c")}, [TRANSPOSE, LITTLE, {"name": "crc32c"}]),
        (
            {"codecs": ["bytes", "gzip"], "dtype": "u1"},
            [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 5}}],
        ),
        (
            {"codecs": [ShardingIndexed((10, 10), (Bytes(),), index_location="start"), Crc32c()], "chunks": (50, 50)},
            [
                {
                    "name": "sharding_indexed",
                    "configuration": {
                        "chunk_shape": [10, 10],
                        "codecs": [LITTLE],
                        "index_codecs": INDEX,
                        "index_location": "start",
                    },
                },
                {"name": "crc32c"},
            ],
        ),
    ],
    ids=str,
)
def test_codecs_can_be_objects_json_or_names(arguments: dict[str, Any], codecs: Any) -> None:
    array = create(**arguments)
    if codecs is not None:
        assert document(array)["codecs"] == codecs
    array[:3, :3] = array[:3, :3]
    data = np.zeros((100, 100), array.dtype) if array.dtype.kind in "fub" else np.full((100, 100), array.fill_value)
    array[...] = data
    assert zarrlite.open_array(array.store).metadata == array.metadata


def test_an_omitted_endian_is_little_in_shards_too() -> None:
    names = {"chunk_shape": [10, 10], "codecs": ["bytes"], "index_codecs": ["bytes", "crc32c"]}
    array = create(codecs=[{"name": "sharding_indexed", "configuration": names}], chunks=(50, 50))
    written = document(array)["codecs"][0]["configuration"]
    assert (written["codecs"], written["index_codecs"]) == ([LITTLE], INDEX)


@pytest.mark.parametrize(
    ("argument", "written"),
    [
        (None, ("default", "/")),
        ("default", ("default", "/")),
        ("v2", ("v2", ".")),
        ({"name": "default", "configuration": {"separator": "."}}, ("default", ".")),
        ({"name": "v2", "configuration": {"separator": "/"}}, ("v2", "/")),
        (DefaultKeys("."), ("default", ".")),
        (V2Keys(), ("v2", ".")),
        ({"name": "v2", "separator": "/"}, ("v2", "/")),  # zarr-python's own spelling of the argument
        ({"name": "default", "separator": "."}, ("default", ".")),
    ],
    ids=str,
)
def test_chunk_key_encodings_can_be_objects_json_or_names(argument: Any, written: tuple[str, str]) -> None:
    array = create(chunk_key_encoding=argument)
    name, separator = written
    assert document(array)["chunk_key_encoding"] == {"name": name, "configuration": {"separator": separator}}
    array[0, 0] = 1
    first = {"default": f"c{separator}0{separator}0", "v2": f"0{separator}0"}[name]
    assert array.store.size(first) is not None


# Data types and fill values.


@pytest.mark.parametrize(
    ("dtype", "written"),
    [
        ("float32", "float32"),
        ("f4", "float32"),
        (">f4", "float32"),
        (np.float32, "float32"),
        (np.dtype("f4"), "float32"),
        (float, "float64"),
        (int, "int64"),
        (bool, "bool"),
        ("?", "bool"),
        (str, "string"),
        ("string", "string"),
        (np.dtypes.StringDType(), "string"),
        (bytes, "bytes"),
        ("bytes", "bytes"),
        ("r24", "r24"),
        ("V3", "r24"),
        ("S4", {"name": "null_terminated_bytes", "configuration": {"length_bytes": 4}}),
        ("U4", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 16}}),
        ("datetime64[s]", {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}),
        (
            {"name": "numpy.timedelta64", "configuration": {"unit": "ns", "scale_factor": 10}},
            {"name": "numpy.timedelta64", "configuration": {"unit": "ns", "scale_factor": 10}},
        ),
        (
            [("x", "i4"), ("y", "f8")],
            {
                "name": "struct",
                "configuration": {
                    "fields": [{"name": "x", "data_type": "int32"}, {"name": "y", "data_type": "float64"}]
                },
            },
        ),
    ],
    ids=str,
)
def test_data_types_are_written_by_their_zarr_names(dtype: Any, written: Any) -> None:
    assert document(create(dtype=dtype))["data_type"] == written


@pytest.mark.parametrize(
    ("dtype", "fill", "written"),
    [
        ("f4", None, 0.0),
        ("f4", 1.5, 1.5),
        ("f4", 1, 1.0),
        ("f4", "NaN", "NaN"),
        ("f4", np.nan, "NaN"),
        ("f4", -np.inf, "-Infinity"),
        ("f4", "Infinity", "Infinity"),
        ("f8", np.uint64(0x7FF8000000000001).view("f8"), "0x7ff8000000000001"),
        ("u1", 255, 255),
        ("u8", 2**64 - 1, 2**64 - 1),
        ("u1", np.array(3), 3),
        ("bool", True, True),
        ("bool", None, False),
        ("c8", 1 + 2j, [1.0, 2.0]),
        ("c8", None, [0.0, 0.0]),
        ("string", "x", "x"),
        ("bytes", b"\0\1", "AAE="),
        ("S3", b"ab", "YWI="),
        ("U3", "ab", "ab"),
        ("M8[s]", "1970-01-02", 86400),
        ("M8[s]", None, "NaT"),
        ("M8[s]", np.datetime64("NaT", "D"), "NaT"),
        ("V2", b"ab", [97, 98]),
        ([("x", "u1"), ("y", "f4")], (1, 2.5), {"x": 1, "y": 2.5}),
        ([("x", "u1"), ("y", "f4")], {"x": 1, "y": np.nan}, {"x": 1, "y": "NaN"}),
    ],
    ids=str,
)
def test_fill_values_are_written_in_the_form_of_the_specification(dtype: Any, fill: Any, written: Any) -> None:
    array = create(dtype=dtype, fill_value=fill)
    if dtype != "S3" and dtype != "V2":  # fill values of these types have two valid forms
        assert document(array)["fill_value"] == written
    again = zarrlite.open_array(array.store)
    expected = np.array(array.fill_value, array.dtype)
    assert np.asarray(again[0, 0], again.dtype).tobytes() == expected.tobytes() or again[0, 0] == array.fill_value


# Data.


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        ([1, 2, 3], "int64", (3,)),
        ([[1.5], [2]], "float64", (2, 1)),
        (5, "int64", ()),
        (np.float32(5), "float32", ()),
        (True, "bool", ()),
        ([], "float64", (0,)),
        (range(4), "int64", (4,)),
        (["a", "bcd"], "string", (2,)),
        ("text", "string", ()),
        (np.array(["a", "bcd"]), "fixed_length_utf32", (2,)),
        (np.array([1, 2], ">i2"), "int16", (2,)),
        (np.asfortranarray(np.arange(6, dtype="u1").reshape(2, 3)), "uint8", (2, 3)),
        (np.arange(20, dtype="u1")[::3], "uint8", (7,)),
        (np.zeros((2, 2), [("x", "i4")]), "struct", (2, 2)),
        (np.array(["2020-01-01"], "M8[D]"), "numpy.datetime64", (1,)),
        (np.frombuffer(b"abc", "u1"), "uint8", (3,)),
    ],
    ids=str,
)
def test_shape_and_data_type_come_from_the_data(data: Any, dtype: str, shape: tuple[int, ...]) -> None:
    array = zarrlite.create_array(MemoryStore(), data=data)
    assert array.metadata.data_type.name == dtype
    assert array.shape == shape
    assert zarrlite.open_array(array.store)[...].tolist() == np.asarray(data).tolist()


def test_dtype_overrides_that_of_the_data() -> None:
    array = zarrlite.create_array(None, data=[1, 2], dtype="f4", shape=2)
    assert array.dtype == np.float32
    assert array[...].tolist() == [1.0, 2.0]


def test_data_can_be_an_array_of_zarrlite() -> None:
    source = create(shape=5, dtype="string", fill_value="-")
    source[1] = "one"
    copy = zarrlite.create_array(None, data=source, chunks=2)
    assert copy[...].tolist() == ["-", "one", "-", "-", "-"]
    assert copy.metadata.data_type.name == "string"


def test_data_can_be_an_array_of_zarr_python(zarr: Any) -> None:
    source = zarr.create_array({}, data=np.arange(6).reshape(2, 3))
    assert zarrlite.create_array(None, data=source)[...].tolist() == [[0, 1, 2], [3, 4, 5]]


# Keywords of zarr-python.


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("name", "a/b"),
        ("chunks", (2, 2)),
        ("shards", (4, 4)),
        ("filters", []),
        ("compressors", None),
        ("serializer", LITTLE),
        ("fill_value", 3),
        ("order", "C"),
        ("zarr_format", 3),
        ("attributes", {"a": 1}),
        ("chunk_key_encoding", {"name": "default", "separator": "."}),
        ("dimension_names", ["x", "y"]),
        ("storage_options", None),
        ("overwrite", True),
        ("config", {"write_empty_chunks": True}),
        ("config", {"write_empty_chunks": True, "order": "C"}),
        ("write_data", True),
    ],
    ids=str,
)
def test_keywords_of_zarr_python_are_accepted(zarr: Any, tmp_path: Path, keyword: str, value: Any) -> None:
    """Both libraries accept the same call, and each can read the array that the other creates."""
    data = np.arange(1.0, 17.0).reshape(4, 4)
    arguments = {"data": data, "chunks": (2, 2), keyword: value}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr-python warns that order= has no effect in version 3
        theirs = zarr.create_array(tmp_path / "theirs", **arguments)
    ours = zarrlite.create_array(tmp_path / "ours", **arguments)
    np.testing.assert_array_equal(zarrlite.open(tmp_path / "theirs", path=theirs.path, mode="r")[...], data)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "ours", path=ours.path, mode="r")[...], data)


def test_write_data_false_stores_no_data() -> None:
    array = zarrlite.create_array(MemoryStore(), data=[1, 2, 3], write_data=False)
    assert array[...].tolist() == [0, 0, 0]


@pytest.mark.parametrize("function", [zarrlite.open, zarrlite.open_array, zarrlite.open_group, zarrlite.create_group])
def test_zarr_format_must_be_3(function: Callable[..., Any]) -> None:
    arguments = {"shape": 3, "dtype": "u1"} if function is zarrlite.open_array else {}
    function(MemoryStore(), zarr_format=3, **arguments)
    with pytest.raises(ArgumentError):
        function(MemoryStore(), zarr_format=2, **arguments)


def test_attributes_and_dimension_names_are_written() -> None:
    array = create(attributes={"a": (1, 2), "b": {"c": None}}, dimension_names=("x", None))
    assert array.attrs == {"a": [1, 2], "b": {"c": None}}
    assert array.metadata.dimension_names == ("x", None)
    assert document(array)["dimension_names"] == ["x", None]
    default = create()
    assert "dimension_names" not in document(default)
    assert "storage_transformers" not in document(default)
    assert document(default)["attributes"] == {}


def test_attributes_do_not_alias_those_of_the_caller() -> None:
    attributes = {"a": [1]}
    array = create(attributes=attributes)
    attributes["a"].append(2)
    assert array.attrs == {"a": [1]}


def test_runtime_options_of_arrays_are_not_stored() -> None:
    array = create(write_empty_chunks=True, missing_chunks="error")
    assert array.options == ArrayOptions("error", True)
    assert document(array) == document(create())
    assert create(write_empty_chunks=True, config={"write_empty_chunks": True}).options == ArrayOptions("fill", True)
    assert create(write_empty_chunks=False, config={"write_empty_chunks": True}).options == ArrayOptions()


# Refusals.

DATA_TYPES = (
    "bfloat16, bool, bytes, complex128, complex64, complex_bfloat16, complex_float16, complex_float32, "
    "complex_float64, fixed_length_utf32, float16, float32, float4_e2m1fn, float64, float6_e2m3fn, float6_e3m2fn, "
    "float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, "
    "float8_e8m0fnu, int16, int2, int32, int4, int64, int8, null_terminated_bytes, numpy.datetime64, "
    "numpy.timedelta64, r8, raw_bytes, string, struct, structured, uint16, uint2, uint32, uint4, uint64, uint8, "
    "variable_length_bytes"
)
ORDER = "the order is array -> array codecs, exactly one array -> bytes codec, bytes -> bytes codecs"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"shape": None}, ArgumentError, "an array needs shape= and dtype=, or data="),
        ({"dtype": None}, ArgumentError, "an array needs shape= and dtype=, or data="),
        ({"shape": (-1,)}, ArgumentError, "shape must have at most 64 lengths from 0 to 2**63 - 1, not (-1,)"),
        ({"shape": 2**63}, ArgumentError, f"shape must have at most 64 lengths from 0 to 2**63 - 1, not {2**63}"),
        ({"shape": "12"}, ArgumentError, "shape must be a number or a sequence of numbers, not '12'"),
        ({"shape": (2.5,)}, ArgumentError, "shape must be a number or a sequence of numbers, not (2.5,)"),
        ({"shape": {"x": 3}}, ArgumentError, "shape must be a number or a sequence of numbers, not {'x': 3}"),
        ({"chunks": (10,)}, ArgumentError, "chunks must have 2 lengths, each at least 1, not (10,)"),
        ({"chunks": 0}, ArgumentError, "chunks must have 2 lengths, each at least 1, not 0"),
        ({"chunks": (10, 0)}, ArgumentError, "chunks must have 2 lengths, each at least 1, not (10, 0)"),
        ({"chunks": (10, -1)}, ArgumentError, "chunks must have 2 lengths, each at least 1, not (10, -1)"),
        ({"chunks": "large"}, ArgumentError, "chunks must have 2 lengths, each at least 1, not 'large'"),
        ({"chunks": (1.5, 2)}, ArgumentError, "chunks must have 2 lengths, each at least 1, not (1.5, 2)"),
        ({"shards": (10,), "chunks": 5}, ArgumentError, "shards must have 2 lengths, each at least 1, not (10,)"),
        ({"shards": (0, 1), "chunks": 5}, ArgumentError, "shards must have 2 lengths, each at least 1, not (0, 1)"),
        (
            {"shards": (10, 10), "chunks": (5, 3)},
            MetadataError,
            (
                "new array#/codecs/0/configuration/chunk_shape/1: must divide 10, the length of the shard, evenly; "
                "3 does not"
            ),
        ),
        (
            {"codecs": ["bytes"], "compressors": "zstd"},
            ArgumentError,
            "pass either codecs= or filters=, serializer=, compressors= and shards=, not both",
        ),
        (
            {"codecs": ["bytes"], "shards": (10, 10)},
            ArgumentError,
            "pass either codecs= or filters=, serializer=, compressors= and shards=, not both",
        ),
        (
            {"codecs": []},
            MetadataError,
            (
                'new array#/codecs: has no array -> bytes codec; add one, such as {"name": "bytes", "configuration": '
                '{"endian": "little"}}, before the bytes -> bytes codecs'
            ),
        ),
        (
            {"codecs": [ZSTD, LITTLE]},
            MetadataError,
            f"new array#/codecs/1: bytes is not allowed in this position: {ORDER}",
        ),
        (
            {"filters": "zstd"},
            ArgumentError,
            "filters must be array -> array codecs, not zstd; pass zstd as compressors=",
        ),
        (
            {"compressors": LITTLE},
            ArgumentError,
            "compressors must be bytes -> bytes codecs, not bytes; pass bytes as serializer=",
        ),
        (
            {"compressors": {"name": "zstd", "configuration": {"level": 99}}},
            MetadataError,
            "codec#/configuration/level: must be an integer from -131072 to 22, not 99",
        ),
        (
            {"compressors": {"name": "zstd", "configuration": {"lvl": 9}}},
            MetadataError,
            "codec#/configuration/lvl: is not a known member (known: checksum, level)",
        ),
        (
            {"filters": [{"name": "transpose", "configuration": {"order": [0]}}]},
            MetadataError,
            "new array#/codecs/0/configuration/order: must be a permutation of the 2 dimensions, not [0]",
        ),
        (
            {"serializer": "vlen-utf8"},
            MetadataError,
            "new array#/codecs/0: vlen-utf8 stores strings, not float32; use bytes",
        ),
        (
            {"dtype": "string", "serializer": LITTLE},
            MetadataError,
            "new array#/codecs/0: the bytes codec cannot store string, whose elements vary in length; use vlen-utf8",
        ),
        (
            {"dtype": "nope"},
            UnknownExtensionError,
            f'data_type#: "nope" is not a known data type (known: {DATA_TYPES})',
        ),
        (
            {"dtype": object},
            ArgumentError,
            'Python objects cannot be stored; use "string" or "bytes" as the data type',
        ),
        (
            {"chunk_key_encoding": "nope"},
            UnknownExtensionError,
            (
                'chunk_key_encoding#: "nope" is not a known chunk key encoding '
                "(known: default, fanout, suffix, template, v2)"
            ),
        ),
        (
            {"chunk_key_encoding": Zstd()},
            ArgumentError,
            "expected a chunk key encoding, not Zstd(level=3, checksum=False)",
        ),
        ({"fill_value": "x"}, ArgumentError, None),
        (
            {"fill_value": 256, "dtype": "u1"},
            ArgumentError,
            "fill_value 256 cannot be converted to uint8: uint8 needs an integer from 0 to 255, not 256",
        ),
        ({"fill_value": 1.5, "dtype": "u1"}, ArgumentError, None),
        (
            {"dimension_names": ["x"]},
            MetadataError,
            "new array#/dimension_names: must have 2 items, one for each dimension, not 1",
        ),
        (
            {"dimension_names": ["x", 3]},
            MetadataError,
            "new array#/dimension_names/1: must be a string or null, not 3",
        ),
        (
            {"attributes": {"x": {1}}},
            ArgumentError,
            "a value cannot be written as JSON: Object of type set is not JSON serializable",
        ),
        (
            {"storage_transformers": ["nope"]},
            UnknownExtensionError,
            None,
        ),
        ({"missing_chunks": "zero"}, ArgumentError, "missing_chunks must be 'fill' or 'error', not 'zero'"),
        ({"config": {"order": "K"}}, ArgumentError, "order, the memory order of results, must be 'C' or 'F', not 'K'"),
        (
            {"config": {"x": 1}},
            ArgumentError,
            "config must have only the members write_empty_chunks and order, not {'x': 1}",
        ),
        ({"data": [1, 2], "shape": 3}, ArgumentError, "shape must be that of the data, (2,), not 3"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(
    arguments: dict[str, Any], error: type[ZarrliteError], message: str | None
) -> None:
    with pytest.raises(error) as caught:
        create(**arguments)
    assert type(caught.value) is error
    if message is not None:
        assert str(caught.value) == message


def test_codecs_must_be_a_list() -> None:
    with pytest.raises(ArgumentError, match="codecs"):
        create(codecs="zstd")


# Runtime options.


def test_runtime_options_of_extensions_are_set_on_objects_or_by_pointer() -> None:
    for arguments in (
        {"codecs": [Bytes(), Pad("start", 2, padding_func=lambda data: b"by")]},
        {"codecs": [Bytes(), Pad("start", 2)], "options": {"/codecs/1": {"padding_func": lambda data: b"by"}}},
    ):
        for array in (
            zarrlite.create_array(MemoryStore(), data=np.arange(3, dtype="u1"), **arguments),
            zarrlite.open(MemoryStore(), data=np.arange(3, dtype="u1"), mode="w", **arguments),
        ):
            assert bytes(array.store.get("c/0") or b"") == b"by\0\1\2"
            assert "padding_func" not in json.dumps(document(array))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"/codecs/9": {"padding_func": len}}, "options: new array has no extension at '/codecs/9'"),
        (
            {"/codecs/1": {"level": 3}},
            "options['/codecs/1']: 'level' is not an option of pad (known: keep_padding, padding_func)",
        ),
        ([1], "options must be a mapping {JSON pointer: {option: value}}"),
        ({"/codecs/1": 5}, "options must be a mapping {JSON pointer: {option: value}}"),
        (
            {"/codecs/1": {"keep_padding": True}},
            "pass runtime options with the extension objects or as options=, not both",
        ),
    ],
    ids=repr,
)
def test_unknown_runtime_options_are_refused(options: Any, message: str) -> None:
    both = message.startswith("pass")
    codecs = [Bytes(), Pad("start", 2, padding_func=(lambda data: b"by") if both else None)]
    with pytest.raises(ArgumentError) as caught:
        zarrlite.create_array(MemoryStore(), shape=3, dtype="u1", codecs=codecs, options=options)
    assert str(caught.value) == message


def test_misspelt_keywords_are_refused_with_a_suggestion() -> None:
    for call in (zarrlite.create_array, zarrlite.open, zarrlite.open_array):
        with pytest.raises(ArgumentError) as caught:
            call(MemoryStore(), shape=3, dtype="u1", chunk=2)
        message = f"{call.__name__}() got an unexpected keyword argument 'chunk'; did you mean 'chunks'?"
        assert str(caught.value) == message
    with pytest.raises(ArgumentError, match=r"^create_array\(\) got an unexpected keyword argument 'qqqq'$"):
        create(qqqq=1)


def test_misspelt_keywords_of_zarr_pythons_functions_are_refused_with_a_suggestion() -> None:
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (zarrlite.create, (3,)),
        (zarrlite.zeros, (3,)),
        (zarrlite.ones, (3,)),
        (zarrlite.empty, (3,)),
        (zarrlite.full, (3, 7)),
        (zarrlite.zeros_like, ([1],)),
        (zarrlite.ones_like, ([1],)),
        (zarrlite.empty_like, ([1],)),
        (zarrlite.full_like, ([1], 7)),
        (zarrlite.open_like, ([1],)),
        (zarrlite.array, ([1],)),
        (zarrlite.from_array, ({},)),
        (zarrlite.save_array, ({}, [1])),
    ]
    for call, arguments in calls:
        data = {"data": [1]} if call is zarrlite.from_array else {}
        with pytest.raises(ArgumentError) as caught:
            call(*arguments, **data, compressor=None)
        message = f"{call.__name__}() got an unexpected keyword argument 'compressor'; did you mean 'compressors'?"
        assert str(caught.value) == message


def test_chunks_true_is_auto_and_chunks_false_is_a_single_chunk() -> None:
    assert create(shape=(5000, 5000), chunks=True).chunks == create(shape=(5000, 5000)).chunks
    assert create(shape=(50, 7), chunks=False).chunks == (50, 7)


def test_an_array_whose_data_cannot_be_stored_is_removed() -> None:
    class Full(MemoryStore):
        def set(self, key: str, value: Any) -> None:
            if key == "x/c/1":
                raise OSError("no space left")
            super().set(key, value)

    store = Full()
    with pytest.raises(OSError, match="no space left"):
        zarrlite.create_array(store, name="x", data=np.arange(1, 7), chunks=2)
    assert list(store.list()) == ["zarr.json"]


def test_no_array_is_created_over_leftovers_that_cannot_be_listed() -> None:
    class Closed(MemoryStore):
        def list_prefix(self, prefix: str) -> Any:
            raise OSError("no answer")

    store = Closed({"x/c/0": bytes(2)})
    with pytest.raises(StoreError, match=r"cannot be listed: OSError: no answer$"):
        zarrlite.create_array(store, name="x", shape=2, dtype="i1")
    assert list(store.list()) == ["x/c/0", "zarr.json"]


def test_record_arrays_are_structs() -> None:
    data = np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    array = zarrlite.create_array(MemoryStore(), data=data)
    assert array.metadata.data_type.name == "struct"
    assert array[0].tolist() == (1, 2.0)


def test_nodes_of_version_2_are_replaced_only_on_request() -> None:
    store = MemoryStore({"a/.zarray": b"{}", "a/0": b"data"})
    with pytest.raises(NodeExistsError):
        zarrlite.create_array(store, name="a", shape=1, dtype="u1")
    zarrlite.create_array(store, name="a", shape=1, dtype="u1", overwrite=True)
    assert sorted(store.list()) == ["a/zarr.json", "zarr.json"]


class Broken(MemoryStore):
    """A store that accepts documents but not chunks, and from which documents cannot be erased."""

    def set(self, key: str, value: Any) -> None:
        if not key.endswith("zarr.json"):
            raise StoreError("the disk is full")
        super().set(key, value)

    def erase(self, key: str) -> None:
        raise StoreError("the disk is gone")


def test_the_error_of_a_write_has_a_note_if_the_incomplete_array_cannot_be_removed() -> None:
    with pytest.raises(StoreError, match=r"^the disk is full") as caught:
        zarrlite.create_array(Broken(), name="a", data=[1, 2])
    assert caught.value.__notes__ == ["the incomplete array /a could not be removed: the disk is gone"]
