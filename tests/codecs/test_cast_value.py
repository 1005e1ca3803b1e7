"""The `cast_value` codec: edge values of every pair of types, checked in exact rational arithmetic."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.codecs import exact_numbers as exact
from tests.codecs.decoding import LITTLE, decode, encode, pipeline
from zarrlite.codecs import ArraySpec, CastValue, ShardingIndexed
from zarrlite.codecs.numbers import convert, number_type
from zarrlite.errors import ArgumentError, DataError, MetadataError
from zarrlite.testing import ArrayArrayLaws

NATIVE = (*exact.NATIVE_INTEGERS, *exact.NATIVE_FLOATS)
SMALL = (*exact.SMALL_INTEGERS, *(name for name in exact.FLOATS if name not in exact.NATIVE_FLOATS))


def check(source: str, target: str) -> None:
    """Compare conversions from one type to another, in every mode, with the exact results."""
    values = exact.edge_values(source)
    numbers = exact.elements(values)
    types: Any = number_type(exact.data_type(source)), number_type(exact.data_type(target))
    for rounding in exact.ROUNDINGS:
        for out_of_range in (None, "clamp", "wrap") if "int" in target else (None, "clamp"):
            expected = [exact.cast(n, target, rounding, out_of_range) for n in numbers]
            fits = np.array([e is not None for e in expected])
            found = convert(values[fits], *types, rounding, out_of_range)
            assert found.dtype == exact.data_type(target).dtype
            triples = zip(values[fits], exact.elements(found), [e for e in expected if e is not None], strict=True)
            wrong = [t for t in triples if t[1] != t[2] and not (t[1] != t[1] and t[2] != t[2])]
            assert not wrong, (rounding, out_of_range, wrong[:3])
            for value in values[~fits][::7]:
                with pytest.raises(ValueError, match="cannot be stored as"):
                    convert(np.array([value]), *types, rounding, out_of_range)


@pytest.mark.parametrize("target", NATIVE)
@pytest.mark.parametrize("source", NATIVE)
def test_numbers_are_converted_exactly(source: str, target: str) -> None:
    check(source, target)


@pytest.mark.parametrize("name", SMALL)
def test_numbers_of_few_bits_are_converted_exactly(name: str) -> None:
    """Covers every pair of types in which at least one is from ml_dtypes, in both directions."""
    pytest.importorskip("ml_dtypes")
    for other in SMALL:
        check(name, other)
    for other in NATIVE:
        check(name, other)
        check(other, name)


def test_the_check_detects_a_wrong_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    exactly = convert

    def truncate(values: Any, source: Any, target: Any, rounding: str, out_of_range: str | None) -> Any:
        return exactly(values, source, target, "towards-zero", out_of_range)

    monkeypatch.setitem(check.__globals__, "convert", truncate)
    for source, target in (("float64", "int8"), ("float64", "float16"), ("uint64", "float32")):
        with pytest.raises(AssertionError):
            check(source, target)


def test_signed_zeros_are_preserved() -> None:
    types: Any = number_type(exact.data_type("float64")), number_type(exact.data_type("float32"))
    for rounding in exact.ROUNDINGS:
        assert np.signbit(convert(np.array([0.0, -0.0, -1e-300]), *types, rounding, None)[:2]).tolist() == [False, True]


class TestCastValue(ArrayArrayLaws):
    codec = CastValue("int16", "towards-zero", "clamp", [["NaN", -1]], [[-1, "NaN"]])  # type: ignore[arg-type]
    arrays = (np.array([[0.0, 5, 300], [-7, 12, np.nan]]), np.array(3.0), np.array([2.0], "f4"))


EXAMPLES = [  # the examples in the specification
    ("float64", 128.0, "int8", {}, None),
    ("float64", 128.0, "int8", {"out_of_range": "clamp"}, 127),
    ("float64", 128.0, "int8", {"out_of_range": "wrap"}, -128),
    ("int32", 32768, "int16", {"out_of_range": "wrap"}, -32768),
    ("int32", 32769, "int16", {"out_of_range": "wrap"}, -32767),
    ("int32", -32769, "int16", {"out_of_range": "wrap"}, 32767),
    ("uint16", 0, "uint8", {}, 0),
    ("float64", 2.5, "uint8", {}, 2),
    ("float64", 2.5, "uint8", {"rounding": "nearest-away"}, 3),
    ("float64", -2.5, "int8", {"rounding": "nearest-away"}, -3),
    ("float64", -2.5, "int8", {"rounding": "towards-positive"}, -2),
    ("float64", np.nan, "int8", {"out_of_range": "clamp"}, None),
    ("float64", np.inf, "int8", {"out_of_range": "clamp"}, None),
    ("float64", -np.inf, "int8", {"out_of_range": "wrap"}, None),
    ("float64", 1e300, "float32", {}, None),
    ("float64", 1e300, "float32", {"out_of_range": "clamp"}, np.inf),
    ("float64", np.inf, "float32", {}, np.inf),
]


@pytest.mark.parametrize(("source", "value", "target", "options", "expected"), EXAMPLES)
def test_the_examples_of_the_specification_hold(
    source: str, value: Any, target: str, options: Any, expected: Any
) -> None:
    chain = pipeline([CastValue(target, **options), LITTLE], (1,), source)  # type: ignore[arg-type]
    array = np.array([value], source)
    if expected is None:
        with pytest.raises(ArgumentError, match=rf"^cast_value: {re.escape(str(value))} cannot be stored as {target}"):
            encode(chain, array)
    else:
        assert np.frombuffer(encode(chain, array), target)[0] == expected


def cast_value(**configuration: Any) -> Any:
    return {"name": "cast_value", "configuration": configuration}


def test_the_scalar_map_is_applied_first_and_its_first_matching_entry_counts() -> None:
    encode_map = [["NaN", 0], ["+Infinity", 255], ["-Infinity", 1], [7, 70], [7, 71], [0, 9]]
    codec = cast_value(data_type="uint8", out_of_range="wrap", scalar_map={"encode": encode_map, "decode": [[9, 0]]})
    chain = pipeline([codec, LITTLE], (7,), "float64", 1.0)
    values = np.array([np.nan, np.inf, -np.inf, 7, -0.0, 300, 0])
    assert [*encode(chain, values)] == [0, 255, 1, 70, 9, 44, 9]
    assert decode(chain, bytes([9, 0, 1, 2, 3, 4, 5])).tolist() == [0, 0, 1, 2, 3, 4, 5]
    payload = np.array([0x7FF8000000000001, 0xFFF0000000000001] * 3 + [0], "u8").view("f8")
    assert [*encode(chain, payload)] == [0] * 6 + [9]


def test_a_stored_number_that_the_decoded_type_cannot_represent_is_an_error() -> None:
    chain = pipeline([cast_value(data_type="int16"), LITTLE], (2,), "uint8")
    with pytest.raises(DataError, match="codec cast_value: cannot be decoded: -1 cannot be stored as uint8"):
        chain.decode(np.array([1, -1], "<i2").tobytes())


@pytest.mark.parametrize(
    ("codec", "fill", "pointer", "message"),
    [
        (cast_value(data_type="uint8"), np.nan, "/0", "must be able to convert the fill value nan"),
        (cast_value(data_type="uint8"), 300.0, "/0", "must be able to convert the fill value 300.0"),
        (cast_value(data_type="uint8"), 0.5, "/0", "must preserve the fill value: 0.5 is stored as 0 and read as 0.0"),
        (cast_value(data_type="float32"), 0.1, "/0", "must preserve the fill value: 0.1"),
        (
            cast_value(data_type="uint8", scalar_map={"encode": [["NaN", 0]]}),
            np.nan,
            "/0",
            "must preserve the fill value: nan is stored as 0 and read as 0.0",
        ),
        (
            cast_value(data_type="uint8", scalar_map={"encode": [[0, 256]]}),
            0.0,
            "/0/configuration/scalar_map/encode/0/1",
            "must be an integer from 0 to 255, not 256",
        ),
        (
            cast_value(data_type="uint8", scalar_map={"decode": [["NaN", 0]]}),
            0.0,
            "/0/configuration/scalar_map/decode/0/0",
            "must be an integer",
        ),
    ],
)
def test_fill_values_and_maps_must_fit(codec: Any, fill: float, pointer: str, message: str) -> None:
    with pytest.raises(MetadataError) as caught:
        pipeline([codec, LITTLE], (2,), "float64", fill)
    assert caught.value.pointer == pointer
    assert caught.value.message.startswith(message)


def test_shards_omit_chunks_of_the_encoded_fill_value() -> None:
    maps = {"encode": [["NaN", -1]], "decode": [[-1, "NaN"]]}
    chain = [cast_value(data_type="int16", scalar_map=maps), ShardingIndexed((2,), (LITTLE,), (LITTLE,))]
    bound = pipeline(chain, (4,), "float64", np.nan)
    stored = encode(bound, np.array([np.nan, np.nan, 3, 4]))
    assert len(stored) == 2 * 2 + 2 * 16
    np.testing.assert_array_equal(decode(bound, stored), [np.nan, np.nan, 3, 4])


@pytest.mark.parametrize("name", ["bool", "complex64", "string", "r16"])
def test_only_real_numbers_are_converted(name: str) -> None:
    with pytest.raises(MetadataError, match=f"converts real numbers, not {name}"):
        pipeline([cast_value(data_type="int8"), LITTLE], (2,), name)
    with pytest.raises(MetadataError, match=f"must be a real-number data type, not {name}"):
        pipeline([cast_value(data_type=name), LITTLE], (2,), "int8")


def test_arrays_of_any_layout_are_converted() -> None:
    array = np.arange(24.0).reshape(4, 6)
    spec = ArraySpec((6, 4), exact.data_type("float64"), 0)
    codec = CastValue("uint8")  # type: ignore[arg-type]
    assert codec.encode(array.T, spec).tolist() == array.T.tolist()
