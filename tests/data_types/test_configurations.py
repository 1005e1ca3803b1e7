"""Refused configurations of data types, and checks of decoded elements."""

from __future__ import annotations

import numpy as np
import pytest

from zarrlite.data_types import from_dtype
from zarrlite.errors import MetadataError
from zarrlite.extensions.config import Context
from zarrlite.extensions.registry import data_types

UNITS = " or ".join(
    f'"{unit}"'
    for unit in ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", r"\u03bcs", "ns", "ps", "fs", "as", "generic"]
)
HUGE = "r" + "9" * 5000
BIG = {"name": "raw_bytes", "configuration": {"length_bytes": 2**20}}


def configured(name: str, **configuration) -> dict:
    return {"name": name, "configuration": configuration}


def struct(*fields) -> dict:
    return configured("struct", fields=list(fields))


def field(name, data_type) -> dict:
    return {"name": name, "data_type": data_type}


# JSON, kind, pointer below /data_type, message
REFUSED = [
    (configured("float32", x=1), "unknown-member", "/configuration/x", "is not a known member (known: none)"),
    ("r12", "value", "", 'must have a multiple of 8 bits, not "r12"'),
    ({"name": "r12"}, "value", "", 'must have a multiple of 8 bits, not "r12"'),
    ("r8388616", "limit", "", 'must have at most 8388608 bits, not "r8388616"'),
    (HUGE, "limit", "", f'must have at most 8388608 bits, not "{HUGE[:56]}...'),
    *((configured(name, length_bytes=0), "value", "/configuration/length_bytes",
       "must be an integer from 1 to 9223372036854775807, not 0")
      for name in ("fixed_length_utf32", "null_terminated_bytes", "raw_bytes")),
    (configured("fixed_length_utf32", length_bytes=6), "value", "/configuration/length_bytes",
     "must be a multiple of 4, not 6"),
    (configured("raw_bytes", length_bytes=4.0), "type", "/configuration/length_bytes", "must be an integer, not 4.0"),
    ("null_terminated_bytes", "missing", "/configuration/length_bytes", "is required and missing"),
    (configured("numpy.datetime64", unit="s"), "missing", "/configuration/scale_factor", "is required and missing"),
    (configured("numpy.datetime64", unit="µs", scale_factor=1), "value", "/configuration/unit",
     f'must be {UNITS}, not "\\u00b5s"'),  # the micro sign is not the Greek letter mu
    (configured("numpy.timedelta64", unit="s", scale_factor=2**31), "value", "/configuration/scale_factor",
     "must be an integer from 1 to 2147483647, not 2147483648"),
    (configured("numpy.timedelta64", unit="s", scale_factor=0), "value", "/configuration/scale_factor",
     "must be an integer from 1 to 2147483647, not 0"),
    ("struct", "missing", "/configuration/fields", "is required and missing"),
    (struct(), "value", "/configuration/fields", "must have at least one field"),
    (struct(["x", "int8"]), "type", "/configuration/fields/0",
     'must be an object with "name" and "data_type", not ["x", "int8"]'),
    (struct({"data_type": "int8"}), "missing", "/configuration/fields/0/name", "is required and missing"),
    (struct({"name": "x"}), "missing", "/configuration/fields/0/data_type", "is required and missing"),
    (struct(field("", "int8")), "value", "/configuration/fields/0/name", "must not be empty"),
    (struct(field("x", "int8") | {"y": 1}), "unknown-member", "/configuration/fields/0/y",
     "is not a known member (known: data_type, name)"),
    (struct(field("x", "int8"), field("x", "int8")), "conflict", "/configuration/fields/1/name",
     'field names must be unique, but "x" occurs twice'),
    (struct(field("x", "int8"), field("s", "string")), "value", "/configuration/fields/1/data_type",
     'must be a data type of fixed size, not "string"'),
    (struct(field("x", struct(field("y", "r9")))), "value",
     "/configuration/fields/0/data_type/configuration/fields/0/data_type",
     'must have a multiple of 8 bits, not "r9"'),
    (struct(field("x", BIG), field("y", BIG)), "limit", "/configuration/fields",
     "must have at most 1048576 bytes in total"),
    (configured("structured", fields=[["x"]]), "value", "/configuration/fields/0",
     'must be a name and a data type, not ["x"]'),
    (configured("structured", fields=["x"]), "type", "/configuration/fields/0",
     'must be an object with "name" and "data_type", not "x"'),
    (configured("structured", fields=[[1, "int8"]]), "type", "/configuration/fields/0/0", "must be a string, not 1"),
    (configured("structured", fields=[["x", "bytes"]]), "value", "/configuration/fields/0/1",
     'must be a data type of fixed size, not "bytes"'),
    (configured("structured", fields=[["x", configured("raw_bytes")]]), "missing",
     "/configuration/fields/0/1/configuration/length_bytes", "is required and missing"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind", "pointer", "message"), REFUSED)
def test_an_invalid_data_type_is_refused(value, kind, pointer, message):
    with pytest.raises(MetadataError) as caught:
        data_types.parse(value, "/data_type", Context(document="a/zarr.json"))
    error = caught.value
    assert (error.kind, error.pointer, error.message) == (kind, "/data_type" + pointer, message)
    assert error.document == "a/zarr.json"


def test_the_faults_of_all_fields_are_reported():
    value = struct(field("x", "int7"), field("y", "int8"), field("", "int8"), ["z", "int8"])
    with pytest.raises(MetadataError) as caught:
        from_dtype(value)
    assert [(e.kind, e.pointer) for e in caught.value.problems] == [
        ("unknown-extension", "/configuration/fields/0/data_type"),
        ("value", "/configuration/fields/2/name"),
        ("type", "/configuration/fields/3"),
    ]


def test_structured_is_written_back_in_its_own_form():
    value = configured("structured", fields=[field("x", "int8"), ["y", {"name": "int8"}]])
    assert from_dtype(value).to_json() == configured("structured", fields=[["x", "int8"], ["y", "int8"]])


def test_the_largest_sizes_are_accepted():
    assert from_dtype("r8388608").itemsize == 2**20
    assert from_dtype(configured("fixed_length_utf32", length_bytes=2**20)).itemsize == 2**20


@pytest.mark.parametrize(
    ("value", "expected"),
    [("bool", False), ("int8", False), ("uint16", True), ("float16", True), ("complex64", True), ("r16", False),
     ("string", False), ("bytes", False), ("U1", True), ("S2", False), ("M8", True), ("m8", True),
     ("u1,S2", False), ("u1,u2", True)],
)  # fmt: skip
def test_data_types_with_multi_byte_elements_have_a_byte_order(value, expected):
    assert from_dtype(value).has_byte_order is expected


def test_only_structured_may_omit_endian():
    assert from_dtype(configured("structured", fields=[["x", "int16"]])).endian_optional
    assert not from_dtype("i2,i2").endian_optional


@pytest.mark.parametrize(("value", "codec"), [("string", "vlen-utf8"), ("bytes", "vlen-bytes"), ("int8", "bytes")])
def test_the_default_codec_depends_on_the_data_type(value, codec):
    assert from_dtype(value).serializer == codec


def stored(dtype, data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "data", "message"),
    [
        ("bool", b"\0\1\1", None),
        ("bool", b"", None),
        ("bool", b"\0\3\2", "bool elements must be stored as 0 or 1, not 3"),
        ("int8", b"\xff", None),
        ("U1", b"\xff\xff\x10\0" + b"\xff\xd7\0\0" + b"\0\xe0\0\0", None),
        ("U2", b"", None),
        ("U1", b"a\0\0\0" + b"\0\0\x11\0", "0x110000 is not a Unicode character"),
        ("U2", b"a\0\0\0" + b"\0\xd8\0\0", "0xd800 is not a Unicode character"),
        ("U1", b"\xff\xdf\0\0", "0xdfff is not a Unicode character"),
        ([("x", "i1"), ("b", "?")], b"\7\1\7\0", None),
        ([("x", "i1"), ("b", "?")], b"\7\1\7\2", 'field "b": bool elements must be stored as 0 or 1, not 2'),
        ([("x", "i1"), ("u", "U1")], b"\7a\0\0\0\7\0\xd8\0\0", 'field "u": 0xd800 is not a Unicode character'),
        ([("p", [("b", "?")])], b"\2", 'field "p": field "b": bool elements must be stored as 0 or 1, not 2'),
    ],
)
def test_invalid_bit_patterns_of_elements_are_reported(dtype, data, message):
    data_type = from_dtype(np.dtype(dtype))
    array = stored(dtype, data)
    assert data_type.check(array) == message
    assert data_type.check(array.reshape(1, -1)[:, ::-1]) == message
    if array.size == 1:
        assert data_type.check(array.reshape(())) == message
