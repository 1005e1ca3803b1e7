"""The `scale_offset` codec: edge values of every type, checked in exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.codecs import exact_numbers as exact
from tests.codecs.decoding import LITTLE, decode, encode, pipeline
from zarrlite.codecs import ArraySpec, ScaleOffset, ShardingIndexed
from zarrlite.errors import ArgumentError, DataError, MetadataError, ZarrliteError
from zarrlite.selections.selection import Selection
from zarrlite.testing import ArrayArrayLaws

TYPES = (*exact.NATIVE_INTEGERS, *exact.NATIVE_FLOATS)
SMALL = (*exact.SMALL_INTEGERS, *(name for name in exact.FLOATS if name not in exact.NATIVE_FLOATS))


class TestIntegers(ArrayArrayLaws):
    codec = ScaleOffset(2, 3)
    arrays = (np.array([[2, 3, 4], [-5, 6, 40]], "i1"), np.array(7, "i8"), np.array([5], "i2"))


class TestFloats(ArrayArrayLaws):
    codec = ScaleOffset(-1.5, 0.5)
    arrays = (np.array([[0, 1.25, -7], [np.inf, -np.inf, np.nan]]), np.array(7, "f4"), np.array([2], "f2"))


class TestNothing(ArrayArrayLaws):
    codec = ScaleOffset()


def step(value: Fraction | float, name: str) -> Fraction | float | None:
    """Round the exact result of one operation to the type. Returns None if the type cannot represent it."""
    if isinstance(value, float):
        return value
    if name in exact.FLOATS:
        return exact.cast(value, name, "nearest-even", None)  # type: ignore[no-any-return]
    low, high = exact.bounds(name)
    return value if value.denominator == 1 and low <= value <= high else None


def scaled(value: Any, offset: Fraction, scale: Fraction, name: str) -> Any:
    difference = step(value - offset if isinstance(value, Fraction) else value, name)
    if difference is None:
        return None
    return step(difference * scale if isinstance(difference, Fraction) else difference * float(scale), name)


def unscaled(value: Any, offset: Fraction, scale: Fraction, name: str) -> Any:
    quotient = step(value / scale if isinstance(value, Fraction) else value / float(scale), name)
    if quotient is None:
        return None
    return step(quotient + offset if isinstance(quotient, Fraction) else quotient, name)


def parameters(name: str) -> list[tuple[Any, Any]]:
    low, high = exact.bounds(name)
    if name in exact.FLOATS:
        numbers = [(0, 1), (0.5, 3), (-1.25, 0.125), (100, -7), (float(high), 1), (0, 0.1), (1, float(high))]
        rounded = np.array(numbers).astype(exact.data_type(name).dtype).astype("f8")
        return [(a, b) for a, b in rounded.tolist() if math.isfinite(a) and math.isfinite(b) and b != 0]
    numbers = [(0, 1), (1, 1), (3, 2), (0, 7), (int(high), 1), (int(low), 1), (0, int(high)), (5, int(high) // 2)]
    numbers = numbers if name[0] == "u" else [*numbers, (0, -1), (-3, -2), (2, int(low)), (int(low), -1)]
    return [(a, b) for a, b in numbers if low <= a <= high and low <= b <= high]


@pytest.mark.parametrize("name", [*TYPES, *SMALL])
def test_numbers_are_scaled_exactly(name: str) -> None:
    if name in SMALL:
        pytest.importorskip("ml_dtypes")
    values = exact.edge_values(name)[:: 3 if name in TYPES else 1]
    for offset, scale in parameters(name):
        codec, exact_parameters = ScaleOffset(offset, scale), (Fraction(offset), Fraction(scale))
        for method, reference in ((codec.encode, scaled), (codec.decode, unscaled)):
            expected = [reference(number, *exact_parameters, name) for number in exact.elements(values)]
            fits = np.array([e is not None for e in expected])
            spec = ArraySpec((int(fits.sum()),), exact.data_type(name), 0)
            found = exact.elements(method(values[fits], spec))
            triples = zip(values[fits], found, [e for e in expected if e is not None], strict=True)
            wrong = [t for t in triples if t[1] != t[2] and not (t[1] != t[1] and t[2] != t[2])]
            assert not wrong, (offset, scale, method.__name__, wrong[:3])
            for value in values[~fits][::5]:
                with pytest.raises((ArgumentError, ValueError)):
                    method(np.array([value]), ArraySpec((1,), exact.data_type(name), 0))


def test_a_type_without_zero_is_scaled_without_an_offset() -> None:
    spec = ArraySpec((2,), exact.data_type("float8_e8m0fnu"), 1)
    values = np.array([1, 2**-127]).astype(spec.dtype)
    assert ScaleOffset(scale=4).encode(values, spec).astype("f8").tolist() == [4, 2**-125]


def test_types_without_infinity_do_not_saturate() -> None:
    spec = ArraySpec((1,), exact.data_type("float4_e2m1fn"), 0)
    with pytest.raises(ArgumentError, match=r"is out of range: 12\.0 cannot be stored as float4_e2m1fn"):
        ScaleOffset(scale=3).encode(np.array([4.0]).astype(spec.dtype), spec)


def scale_offset(**configuration: Any) -> Any:
    return {"name": "scale_offset", "configuration": configuration}


def test_the_example_of_the_specification_holds() -> None:
    cast = {"name": "cast_value", "configuration": {"data_type": "uint8"}}
    chain = pipeline([scale_offset(offset=1000), cast, LITTLE], (3,), "uint16", 1000)
    assert encode(chain, np.array([1000, 1005, 1255], "u2")) == bytes([0, 5, 255])
    assert decode(chain, bytes([0, 5, 255])).tolist() == [1000, 1005, 1255]


def test_errors_name_the_number() -> None:
    chain = pipeline([scale_offset(offset=10, scale=3), LITTLE], (2,), "uint8", 10)
    with pytest.raises(ArgumentError, match=r"^scale_offset: \(x - 10\) \* 3 is beyond the range of uint8 for x = 9$"):
        encode(chain, np.array([9, 20], "u1"))
    with pytest.raises(ArgumentError, match=r"beyond the range of uint8 for x = 96$"):
        encode(chain, np.array([96, 20], "u1"))
    with pytest.raises(DataError, match="cannot be decoded: 4 is not a multiple of the scale 3"):
        chain.decode(bytes([3, 4]))


@pytest.mark.parametrize(
    ("codec", "name", "fill", "pointer"),
    [
        (scale_offset(scale=0), "int8", 0, "/0/configuration/scale"),
        (scale_offset(scale=0.0), "float32", 0, "/0/configuration/scale"),
        (scale_offset(scale="NaN"), "float32", 0, "/0/configuration/scale"),
        (scale_offset(offset="Infinity"), "float32", 0, "/0/configuration/offset"),
        (scale_offset(offset=0.5), "int8", 0, "/0/configuration/offset"),
        (scale_offset(offset=-1), "uint8", 0, "/0/configuration/offset"),
        (scale_offset(offset=None), "uint8", 0, "/configuration/offset"),
        (scale_offset(offset=1), "uint8", 0, "/0"),
        (scale_offset(scale=2), "float32", 3e38, "/0"),
        (scale_offset(factor=2), "float32", 0, "/configuration/factor"),
        (scale_offset(), "bool", False, "/0"),
        (scale_offset(), "complex64", 0, "/0"),
    ],
)
def test_parameters_must_fit_the_data_type(codec: Any, name: str, fill: Any, pointer: str) -> None:
    with pytest.raises(MetadataError) as caught:
        pipeline([codec, LITTLE], (2,), name, fill)
    assert caught.value.pointer == pointer


def test_parts_of_shards_are_read_alone() -> None:
    chain = [scale_offset(offset=1, scale=2), ShardingIndexed((2,), (LITTLE,), (LITTLE,))]
    bound = pipeline(chain, (8,), "int32", 5)
    stored = bytearray(encode(bound, np.arange(8, dtype="i4")))
    stored[0] = 1  # makes an element of the first inner chunk odd, which decoding refuses
    assert bound.take(bytes(stored), Selection.box((3,), (4,))).tolist() == [3, 4, 5, 6]
    with pytest.raises(ZarrliteError):
        bound.take(bytes(stored), Selection.box((0,), (4,)))


def test_nan_and_infinity_are_kept() -> None:
    chain = pipeline([scale_offset(offset=1, scale=-2), LITTLE], (3,), "float64", math.nan)
    values = np.array([np.nan, np.inf, -np.inf])
    assert np.frombuffer(encode(chain, values), "f8")[1:].tolist() == [-np.inf, np.inf]
    np.testing.assert_array_equal(decode(chain, encode(chain, values)), values)
