"""Fill values as JSON: valid ones round-trip, and invalid ones are refused with the expected message."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from zarrlite.data_types import from_dtype
from zarrlite.errors import MetadataError

UTF32 = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}
NULLS = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}
RAW = {"name": "raw_bytes", "configuration": {"length_bytes": 3}}
SECONDS = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}}
MICROS = {"name": "numpy.timedelta64", "configuration": {"unit": "μs", "scale_factor": 1}}
GENERIC = {"name": "numpy.datetime64", "configuration": {"unit": "generic", "scale_factor": 1}}
POINT = {
    "name": "struct",
    "configuration": {"fields": [{"name": "x", "data_type": "float32"}, {"name": "a/b", "data_type": "int16"}]},
}
NESTED = {
    "name": "struct",
    "configuration": {"fields": [{"name": "p", "data_type": POINT}, {"name": "t", "data_type": GENERIC}]},
}
PAIRS = {"name": "structured", "configuration": {"fields": [["x", "float32"], ["b", "bool"]]}}
TEXTS = {"name": "structured", "configuration": {"fields": [["u", UTF32]]}}


def stored(data_type, value) -> bytes:
    """Return the little-endian bytes of a scalar."""
    if data_type.itemsize is None:
        return value.encode() if isinstance(value, str) else value
    return np.array(value, data_type.dtype).astype(data_type.dtype.newbyteorder("<")).tobytes()


def bits(number: int, width: int) -> bytes:
    return number.to_bytes(width // 8, "little")


SAME = object()  # the JSON that is written equals the JSON that was read

# data type, JSON read, JSON written, bytes of the scalar
READ_AND_WRITTEN = [
    ("bool", True, SAME, b"\1"),
    ("bool", False, SAME, b"\0"),
    ("int8", -128, SAME, b"\x80"),
    ("int64", -(2**63), SAME, bits(2**63, 64)),
    ("int64", 2**63 - 1, SAME, bits(2**63 - 1, 64)),
    ("uint8", 255, SAME, b"\xff"),
    ("uint64", 2**64 - 1, SAME, bits(2**64 - 1, 64)),
    ("float16", 1, 1.0, bits(0x3C00, 16)),
    ("float16", 0.1, SAME, bits(0x2E66, 16)),
    ("float16", "NaN", SAME, bits(0x7E00, 16)),
    ("float16", "0x7e00", "NaN", bits(0x7E00, 16)),
    ("float16", "0xFE00", "0xfe00", bits(0xFE00, 16)),
    ("float16", 1e6, "Infinity", bits(0x7C00, 16)),
    ("float32", 0.1, SAME, bits(0x3DCCCCCD, 32)),
    ("float32", -0.0, SAME, bits(0x80000000, 32)),
    ("float32", 16777217, 16777216.0, bits(0x4B800000, 32)),  # halfway between two floats: rounded to even
    ("float32", 16777219, 16777220.0, bits(0x4B800002, 32)),
    ("float32", 2**60 + 2**36 + 1, 1.1529216e18, bits(0x5D800001, 32)),  # would be a tie if rounded to double first
    ("float32", -(2**60) - 2**36 - 1, -1.1529216e18, bits(0xDD800001, 32)),
    ("float32", 2**60, 1.1529215e18, bits(0x5D800000, 32)),
    ("float32", 1e39, "Infinity", bits(0x7F800000, 32)),
    ("float32", "NaN", SAME, bits(0x7FC00000, 32)),
    ("float32", "0x7f800001", SAME, bits(0x7F800001, 32)),  # a signalling NaN
    ("float32", "0x3f800000", 1.0, bits(0x3F800000, 32)),
    ("float64", 0.1, SAME, bits(0x3FB999999999999A, 64)),
    ("float64", 5e-324, SAME, bits(1, 64)),
    ("float64", 2**53 + 1, float(2**53), bits(0x4340000000000000, 64)),
    ("float64", "Infinity", SAME, bits(0x7FF0000000000000, 64)),
    ("float64", "-Infinity", SAME, bits(0xFFF0000000000000, 64)),
    ("float64", "NaN", SAME, bits(0x7FF8000000000000, 64)),
    ("float64", "0xfff8000000000000", SAME, bits(0xFFF8000000000000, 64)),
    ("complex64", [1, -0.0], [1.0, -0.0], bits(0x3F800000, 32) + bits(0x80000000, 32)),
    ("complex64", ["0x7f800001", "0xffc00000"], SAME, bits(0x7F800001, 32) + bits(0xFFC00000, 32)),
    ("complex128", ["-Infinity", "NaN"], SAME, bits(0xFFF0000000000000, 64) + bits(0x7FF8000000000000, 64)),
    ("r8", [7], SAME, b"\7"),
    ("r24", [0, 128, 255], SAME, b"\0\x80\xff"),
    ("r24", "AID/", [0, 128, 255], b"\0\x80\xff"),
    ("string", "", SAME, b""),
    ("string", "zwölf 🦓\0", SAME, "zwölf 🦓\0".encode()),
    ("bytes", "AQID", SAME, b"\1\2\3"),
    ("bytes", [1, 2, 3], "AQID", b"\1\2\3"),
    ("bytes", [], "", b""),
    ("variable_length_bytes", "AA==", SAME, b"\0"),
    (UTF32, "ab", SAME, b"a\0\0\0b\0\0\0\0\0\0\0"),
    (UTF32, "a\0\0", "a", b"a\0\0\0\0\0\0\0\0\0\0\0"),
    (UTF32, "🦓", SAME, bits(0x1F993, 32) + bytes(8)),
    (NULLS, "YWI=", SAME, b"ab\0"),
    (NULLS, [97, 0, 0], "YQ==", b"a\0\0"),
    (RAW, "AQIA", SAME, b"\1\2\0"),
    (RAW, [1, 2, 0], "AQIA", b"\1\2\0"),
    (SECONDS, 5, SAME, bits(5, 64)),
    (SECONDS, "NaT", SAME, bits(2**63, 64)),
    (SECONDS, -(2**63), "NaT", bits(2**63, 64)),
    (MICROS, -1, SAME, bits(2**64 - 1, 64)),
    (GENERIC, 5, SAME, bits(5, 64)),
    (POINT, {"x": "NaN", "a/b": 258}, SAME, bits(0x7FC00000, 32) + b"\2\1"),
    (POINT, {"a/b": 1, "x": "0x7f800001"}, {"x": "0x7f800001", "a/b": 1}, bits(0x7F800001, 32) + b"\1\0"),
    (NESTED, {"p": {"x": 1, "a/b": 2}, "t": 3}, {"p": {"x": 1.0, "a/b": 2}, "t": 3},
     bits(0x3F800000, 32) + b"\2\0\3" + bytes(7)),
    (PAIRS, "AQCAfwE=", SAME, bits(0x7F800001, 32) + b"\1"),
    (PAIRS, {"x": 1, "b": True}, "AACAPwE=", bits(0x3F800000, 32) + b"\1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "read", "written", "expected"), READ_AND_WRITTEN)
def test_a_fill_value_is_read_and_written_exactly(name, read, written, expected):
    data_type = from_dtype(name)
    scalar = data_type.parse_fill_value(read)
    assert stored(data_type, scalar) == expected
    # JSON is compared as text, because text distinguishes 1 from 1.0 and 0.0 from -0.0
    text = json.dumps(data_type.fill_value_json(scalar))
    assert text == json.dumps(read if written is SAME else written)
    assert stored(data_type, data_type.parse_fill_value(json.loads(text))) == expected


@pytest.mark.parametrize("name", [row[0] for row in READ_AND_WRITTEN])
def test_the_default_fill_value_can_be_written(name):
    data_type = from_dtype(name)
    default = data_type.default_fill_value
    text = data_type.fill_value_json(default)
    assert stored(data_type, data_type.parse_fill_value(text)) == stored(data_type, default)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bool", False), ("int8", 0), ("float32", 0.0), ("complex64", [0.0, 0.0]), ("r16", [0, 0]),
     ("string", ""), ("bytes", ""), (UTF32, ""), (NULLS, ""), (RAW, "AAAA"), (SECONDS, "NaT"),
     (MICROS, "NaT"), (PAIRS, "AAAAAAA="),
     (NESTED, {"p": {"x": 0.0, "a/b": 0}, "t": "NaT"})],
)  # fmt: skip
def test_the_default_fill_value_is_zero_or_empty(name, expected):
    data_type = from_dtype(name)
    assert data_type.fill_value_json(data_type.default_fill_value) == expected


def floats(digits: int) -> str:
    return f'must be a number, "NaN", "Infinity", "-Infinity" or "0x" with {digits} hex digits, not '


LONG_RANGE = "must be an integer from -9223372036854775808 to 9223372036854775807, not "
BYTES = "must be an array of integers or a base64 string, not "

# data type, JSON, kind, pointer, message
REFUSED = [
    ("bool", 1, "type", "", "must be true or false, not 1"),
    ("bool", "true", "type", "", 'must be true or false, not "true"'),
    ("bool", None, "type", "", "must be true or false, not null"),
    ("int8", True, "type", "", "must be an integer, not true"),
    ("int8", 4.0, "type", "", "must be an integer, not 4.0"),
    ("int8", "4", "type", "", 'must be an integer, not "4"'),
    ("int8", 128, "value", "", "must be an integer from -128 to 127, not 128"),
    ("uint16", -1, "value", "", "must be an integer from 0 to 65535, not -1"),
    ("uint64", 2**64, "value", "", "must be an integer from 0 to 18446744073709551615, not 18446744073709551616"),
    ("float32", True, "type", "", floats(8) + "true"),
    ("float32", None, "type", "", floats(8) + "null"),
    ("float16", "nan", "value", "", floats(4) + '"nan"'),
    ("float16", "0x7e000", "value", "", floats(4) + '"0x7e000"'),
    ("float16", "0X7e00", "value", "", floats(4) + '"0X7e00"'),
    ("float16", "0x7e0\n", "value", "", floats(4) + '"0x7e0\\n"'),
    ("float16", "0x7e0\u0660", "value", "", floats(4) + '"0x7e0\\u0660"'),
    ("float64", "+Infinity", "value", "", floats(16) + '"+Infinity"'),
    ("float64", 10**400, "value", "",
     f"must be within the range of a double, not {str(10**400)[:57]}...; write infinity as a string"),
    ("float64", float("nan"), "value", "", "must be within the range of a double, not NaN; write infinity as a string"),
    ("complex64", 1, "type", "", "must be an array of two numbers, not 1"),
    ("complex64", [1], "value", "", "must be an array of two numbers, not of 1"),
    ("complex64", [1, "x"], "value", "/1", floats(8) + '"x"'),
    ("complex128", [None, 1], "type", "/0", floats(16) + "null"),
    ("r16", 0, "type", "", BYTES + "0"),
    ("r16", [0], "value", "", "must have 2 bytes, not 1"),
    ("r16", [0] * 16, "value", "", "must have 2 bytes, not 16"),
    ("r16", [0, 256], "value", "/1", "must be an integer from 0 to 255, not 256"),
    ("r16", [-1, 0], "value", "/0", "must be an integer from 0 to 255, not -1"),
    ("r16", [0, True], "type", "/1", "must be an integer, not true"),
    ("r16", "AA", "value", "", 'must be base64 (RFC 4648 section 4), not "AA"'),
    ("string", 0, "type", "", "must be a string, not 0"),
    ("string", None, "type", "", "must be a string, not null"),
    ("string", "\ud800", "value", "", 'must be Unicode text; "\\ud800" has a lone surrogate'),
    ("bytes", {}, "type", "", BYTES + "{}"),
    ("bytes", "A-__", "value", "", 'must be base64 (RFC 4648 section 4), not "A-__"'),
    (UTF32, 0, "type", "", "must be a string, not 0"),
    (UTF32, "abcd", "value", "", 'must have at most 3 code points; "abcd" has 4'),
    (UTF32, "\udfff", "value", "", 'must be Unicode text; "\\udfff" has a lone surrogate'),
    (NULLS, "AAAAAA==", "value", "", "must have at most 3 bytes, not 4"),
    (RAW, "AAA=", "value", "", "must have 3 bytes, not 2"),
    (SECONDS, "nat", "value", "", 'must be an integer or "NaT", not "nat"'),
    (SECONDS, 1.0, "type", "", 'must be an integer or "NaT", not 1.0'),
    (SECONDS, True, "type", "", 'must be an integer or "NaT", not true'),
    (SECONDS, 2**63, "value", "", LONG_RANGE + "9223372036854775808"),
    (MICROS, -(2**63) - 1, "value", "", LONG_RANGE + "-9223372036854775809"),
    (POINT, "AAAAAAAA", "type", "", 'must be an object with a value for each field, not "AAAAAAAA"'),
    (POINT, {"x": 0}, "missing", "/a~1b", "is required and missing"),
    (POINT, {"x": 0, "a/b": 0, "z": 0}, "unknown-member", "/z", "is not a field (fields: x, a/b)"),
    (POINT, {"x": 0, "a/b": 0.5}, "type", "/a~1b", "must be an integer, not 0.5"),
    (NESTED, {"p": {"x": "?", "a/b": 0}, "t": 0}, "value", "/p/x", floats(8) + '"?"'),
    (PAIRS, "AAAA", "value", "", "must have 5 bytes, not 3"),
    (PAIRS, "AAAAAAI=", "value", "", 'field "b": bool elements must be stored as 0 or 1, not 2'),
    (PAIRS, 0, "type", "", "must be an object with a value for each field, not 0"),
    (TEXTS, "AAARAAAAAAAAAAAA", "value", "", 'field "u": 0x110000 is not a Unicode character'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "kind", "pointer", "message"), REFUSED)
def test_an_invalid_fill_value_is_refused(name, value, kind, pointer, message):
    with pytest.raises(MetadataError) as caught:
        from_dtype(name).parse_fill_value(value)
    assert (caught.value.kind, caught.value.pointer, caught.value.message) == (kind, pointer, message)


def test_packed_bytes_of_structured_have_the_byte_order_of_the_codec():
    data_type = from_dtype(PAIRS)
    little, big = "AACAPwE=", "P4AAAAE="
    for text, order in [(little, "little"), (big, "big")]:
        scalar = data_type.parse_fill_value(text, order)
        assert scalar.tolist() == (1.0, True)
        assert data_type.fill_value_json(scalar, order) == text
    assert data_type.fill_value_json(data_type.parse_fill_value(big, "big")) == little


def test_packed_bytes_inside_a_struct_have_the_byte_order_of_the_codec():
    outer = from_dtype({"name": "struct", "configuration": {"fields": [{"name": "s", "data_type": PAIRS}]}})
    scalar = outer.parse_fill_value({"s": "P4AAAAE="}, "big")
    assert scalar.tolist() == ((1.0, True),)
    assert outer.fill_value_json(scalar, "big") == {"s": "P4AAAAE="}


def test_the_fill_value_of_a_struct_is_read_only():
    scalar = from_dtype(POINT).parse_fill_value({"x": 1, "a/b": 2})
    with pytest.raises(ValueError, match="read-only"):
        scalar["x"] = 5


def test_every_float16_is_written_as_the_shortest_number():
    data_type = from_dtype("float16")
    for number in range(2**16):
        scalar = np.frombuffer(number.to_bytes(2, sys.byteorder), np.float16)[0]
        written = data_type.fill_value_json(scalar)
        assert data_type.parse_fill_value(written).tobytes() == scalar.tobytes()
        if isinstance(written, float):
            assert len(repr(written)) <= len(repr(float(scalar)))
