"""Property tests of fill values: the JSON of a scalar parses back to the same bits."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrlite.data_types import from_dtype
from zarrlite.data_types.time import UNITS

SPECIAL_HIGH = [0x00, 0x7F, 0x80, 0xFF]  # most significant bytes of zeros, infinities and NaNs


def words(size: int):
    """Draw the bytes of a number, with more zeros, infinities and NaNs than random bytes would contain."""
    special = st.builds(
        lambda high, second, rest: bytes([*rest, second, high]),
        st.sampled_from(SPECIAL_HIGH),
        st.sampled_from([0x00, 0x7C, 0x80, 0xC0, 0xF0, 0xF8]),
        st.lists(st.sampled_from([0, 0, 1, 255]), min_size=size - 2, max_size=size - 2),
    )
    return st.binary(min_size=size, max_size=size) | special if size > 1 else st.binary(min_size=1, max_size=1)


def round_trip(data_type, scalar):
    text = json.dumps(data_type.fill_value_json(scalar), allow_nan=False)
    return data_type.parse_fill_value(json.loads(text))


def from_bytes(data_type, data: bytes):
    return np.frombuffer(data, data_type.dtype.newbyteorder("<")).astype(data_type.dtype)[0]


NUMBERS = {
    **{f"int{w}": [w // 8] for w in (8, 16, 32, 64)},
    **{f"uint{w}": [w // 8] for w in (8, 16, 32, 64)},
    **{f"float{w}": [w // 8] for w in (16, 32, 64)},
    "complex64": [4, 4],
    "complex128": [8, 8],
    "r40": [5],
}


@pytest.mark.parametrize("name", NUMBERS)
@given(data=st.data())
def test_every_bit_pattern_of_a_number_is_kept(name, data):
    data_type = from_dtype(name)
    scalar = from_bytes(data_type, b"".join(data.draw(words(size)) for size in NUMBERS[name]))
    again = round_trip(data_type, scalar)
    assert again.tobytes() == scalar.tobytes()
    assert again.dtype == data_type.dtype
    assert data_type.cast_scalar(scalar).tobytes() == scalar.tobytes()


@given(st.floats(width=64, allow_nan=False, allow_infinity=False), st.sampled_from(["float16", "float32", "float64"]))
def test_a_json_number_is_rounded_as_numpy_rounds(number, name):
    with np.errstate(over="ignore"):
        expected = np.dtype(name).type(number)
    assert from_dtype(name).parse_fill_value(number).tobytes() == expected.tobytes()


@given(st.integers(-(2**127), 2**127), st.sampled_from([(16, 11), (32, 24), (64, 53)]))
def test_a_json_integer_is_rounded_only_once(number, width_and_precision):
    width, precision = width_and_precision
    excess = max(abs(number).bit_length() - precision, 0)
    kept, lost = divmod(abs(number), 1 << excess)
    half = (1 << excess) >> 1
    if excess and (lost > half or (lost == half and kept % 2)):
        kept += 1
    expected = float((kept if number > 0 else -kept) << excess)  # exact: it has at most 53 significant bits
    with np.errstate(over="ignore"):
        assert from_dtype(f"float{width}").parse_fill_value(number) == np.dtype(f"float{width}").type(expected)


characters = st.characters(exclude_categories=("Cs",))


@given(st.text(characters))
def test_every_text_is_kept(text):
    data_type = from_dtype("string")
    assert round_trip(data_type, data_type.cast_scalar(text)) == text


@given(st.binary(), st.sampled_from(["bytes", "variable_length_bytes"]))
def test_every_byte_string_is_kept(value, name):
    data_type = from_dtype(name)
    assert round_trip(data_type, data_type.cast_scalar(value)) == value


@given(st.text(characters, max_size=5))
def test_every_text_of_fixed_length_is_kept_without_its_padding(text):
    data_type = from_dtype("U5")
    scalar = data_type.cast_scalar(text)
    assert round_trip(data_type, scalar) == scalar == text.rstrip("\0")


@given(st.binary(max_size=5))
def test_every_byte_string_of_fixed_length_is_kept_without_its_padding(value):
    data_type = from_dtype("S5")
    scalar = data_type.cast_scalar(value)
    assert round_trip(data_type, scalar) == scalar == value.rstrip(b"\0")


@given(st.sampled_from("mM"), st.sampled_from(UNITS), st.integers(1, 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
def test_every_time_is_kept(code, unit, scale_factor, count):
    name = {"M": "numpy.datetime64", "m": "numpy.timedelta64"}[code]
    data_type = from_dtype({"name": name, "configuration": {"unit": unit, "scale_factor": scale_factor}})
    scalar = data_type.parse_fill_value(count)
    assert int(scalar.view(np.int64)) == int(round_trip(data_type, scalar).view(np.int64)) == count
    assert scalar.dtype == data_type.dtype == np.dtype(f"{code}8[{scale_factor}{unit}]")


fixed_size = st.sampled_from(
    ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64", "complex128", "r24"]
) | st.one_of(
    st.builds(lambda n: {"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * n}}, st.integers(1, 5)),
    st.builds(lambda n: {"name": "null_terminated_bytes", "configuration": {"length_bytes": n}}, st.integers(1, 5)),
    st.builds(lambda n: {"name": "raw_bytes", "configuration": {"length_bytes": n}}, st.integers(1, 5)),
    st.builds(
        lambda unit: {"name": "numpy.datetime64", "configuration": {"unit": unit, "scale_factor": 3}},
        st.sampled_from(UNITS),
    ),
)


def struct_of(fields: dict) -> dict:
    listed = [{"name": name, "data_type": data_type} for name, data_type in fields.items()]
    return {"name": "struct", "configuration": {"fields": listed}}


def structured_of(fields: dict) -> dict:
    return {"name": "structured", "configuration": {"fields": [[name, t] for name, t in fields.items()]}}


def records(children):
    fields = st.dictionaries(st.text(characters, min_size=1, max_size=3), children, min_size=1, max_size=4)
    return fields.map(struct_of) | fields.map(structured_of)


@given(records(st.recursive(fixed_size, records, max_leaves=6)), st.data(), st.sampled_from(["little", "big"]))
def test_every_record_is_kept(description, data, byte_order):
    data_type = from_dtype(description)
    assert data_type.to_json() == description
    stored = np.frombuffer(data.draw(words(max(data_type.itemsize, 2)))[: data_type.itemsize], data_type.dtype)
    if data_type.check(stored):
        stored = np.zeros(1, data_type.dtype)
    scalar = stored[0]
    text = json.dumps(data_type.fill_value_json(scalar, byte_order), allow_nan=False)
    assert data_type.parse_fill_value(json.loads(text), byte_order).tobytes() == scalar.tobytes()
    assert data_type.cast_scalar(scalar).tobytes() == scalar.tobytes()
    assert data_type.itemsize == sum(t.itemsize for _, t in data_type.fields)
