"""Narrow numeric data types, which come from ml_dtypes: their fill values and their stored bytes."""

from __future__ import annotations

import json
import math
import pickle
import sys
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from zarrlite.codecs import Bytes
from zarrlite.data_types import from_dtype
from zarrlite.errors import ArgumentError, DependencyError, MetadataError, UnknownExtensionError
from zarrlite.extensions import registry
from zarrlite.testing import ArrayBytesLaws

INTEGERS = ["int2", "int4", "uint2", "uint4"]
FLOATS = [
    *("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"),
    *("float8_e4m3fnuz", "float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "bfloat16"),
]
COMPLEX = ["complex_float16", "complex_bfloat16"]
SMALL = [*INTEGERS, *FLOATS, *COMPLEX]
REFUSED = [f"complex_{name}" for name in FLOATS if name not in ("bfloat16", "float8_e4m3fn")]
# the folder data-types in zarr-extensions at commit 4da7b37 (2026-07-14)
REGISTERED = [
    *(
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    ),
    *("complex64", "complex128", "complex_float32", "complex_float64", "r16", "string", "bytes"),
    *("fixed_length_utf32", "numpy.datetime64", "numpy.timedelta64", "struct", "structured"),
    *(name for name in SMALL if name != "float8_e4m3fn"),
]


def every(name: str) -> np.ndarray[Any, Any]:
    """Return all values of a data type with at most 16 bits, in the order of their bits."""
    data_type = from_dtype(name)
    return np.arange(2**data_type.packing.bits, dtype=f"u{data_type.dtype.itemsize}").view(data_type.dtype)


@pytest.mark.parametrize("name", REGISTERED)
def test_every_registered_name_is_known(name: str) -> None:
    assert registry.data_types.find(name) is not None


@pytest.mark.parametrize("name", REFUSED)
def test_names_that_numpy_cannot_hold_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(UnknownExtensionError) as caught:
        zarrlite.create_array({}, shape=2, dtype=name)
    part = name.removeprefix("complex_")
    assert caught.value.message == f'"{name}" cannot be used: numpy has no complex type with {part} components'


@pytest.mark.parametrize("name", SMALL)
def test_names_and_dtypes_denote_the_same_data_type(name: str) -> None:
    data_type = from_dtype(name)
    theirs = {"complex_float16": "complex32", "complex_bfloat16": "bcomplex32"}.get(name, name)
    scalar = getattr(ml_dtypes, theirs)
    assert from_dtype(scalar) == from_dtype(np.dtype(scalar)) == from_dtype({"name": name}) == data_type
    assert (data_type.to_json(), data_type.dtype) == (name, np.dtype(scalar))
    assert pickle.loads(pickle.dumps(data_type)) == data_type
    assert data_type.has_byte_order == (name in ("bfloat16", *COMPLEX))
    assert zarrlite.create_array({}, shape=2, dtype=scalar).dtype == scalar


def test_one_bit_types_of_ml_dtypes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="Zarr has no data type for int1"):
        from_dtype(ml_dtypes.int1)


def test_aliases_of_complex_numbers_need_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    for name, dtype in (("complex_float32", "complex64"), ("complex_float64", "complex128")):
        array = zarrlite.create_array({}, data=[1 + 2j], dtype=name, fill_value=["NaN", "-Infinity"])
        assert (array.dtype, array.metadata.to_json()["data_type"]) == (np.dtype(dtype), name)
        assert zarrlite.open(array.store)[0] == 1 + 2j
    assert from_dtype("complex64") == from_dtype(np.complex64) != from_dtype("complex_float32")


def test_without_ml_dtypes_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    array = zarrlite.create_array({}, shape=2, dtype="bfloat16")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    for use in (lambda: zarrlite.open(array.store), lambda: from_dtype("bfloat16")):
        with pytest.raises(DependencyError) as caught:
            use()
        assert str(caught.value) == "the data type bfloat16 needs ml_dtypes: pip install 'zarrlite[ml]'"


def test_an_old_ml_dtypes_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ml_dtypes, "complex32")
    with pytest.raises(DependencyError, match="complex_float16 needs a later version of ml_dtypes"):
        from_dtype("complex_float16")


# fill values


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_every_bit_pattern_is_kept_as_a_fill_value(name: str) -> None:
    data_type = from_dtype(name)
    for scalar in every(name)[:: 37 if name == "bfloat16" else 1]:
        text = json.dumps(data_type.fill_value_json(scalar), allow_nan=False)
        again = data_type.parse_fill_value(json.loads(text))
        assert (again.tobytes(), again.dtype) == (scalar.tobytes(), data_type.dtype)
        assert data_type.cast_scalar(scalar).tobytes() == scalar.tobytes()
        if name in FLOATS:
            bits = int.from_bytes(scalar.tobytes(), sys.byteorder)
            hexadecimal = f"0x{bits:0{2 * data_type.dtype.itemsize}x}"
            assert data_type.parse_fill_value(hexadecimal).tobytes() == scalar.tobytes()
            assert data_type.parse_fill_value(hexadecimal.upper().replace("X", "x")).tobytes() == scalar.tobytes()


@pytest.mark.parametrize(
    ("name", "nan"),
    [
        # the bits of NaN stated in zarr-extensions; for float8_e4m3fn, the bits that tensorstore reads
        ("bfloat16", 0x7FC0),
        ("float8_e3m4", 0x78),
        ("float8_e4m3", 0x7C),
        ("float8_e4m3fn", 0x7F),
        ("float8_e4m3b11fnuz", 0x80),
        ("float8_e4m3fnuz", 0x80),
        ("float8_e5m2", 0x7E),
        ("float8_e5m2fnuz", 0x80),
        ("float8_e8m0fnu", 0xFF),
    ],
)
def test_nan_has_the_bits_of_the_specification(name: str, nan: int) -> None:
    data_type = from_dtype(name)
    for scalar in (data_type.parse_fill_value("NaN"), data_type.cast_scalar(math.nan)):
        assert int.from_bytes(scalar.tobytes(), sys.byteorder) == nan
        assert math.isnan(scalar)


def test_infinite_fill_values_are_accepted_only_by_types_that_have_infinities() -> None:
    for name in FLOATS:
        data_type = from_dtype(name)
        has_infinity = name in ("bfloat16", "float8_e3m4", "float8_e4m3", "float8_e5m2")
        for text, number in (("Infinity", math.inf), ("-Infinity", -math.inf)):
            if has_infinity:
                assert data_type.parse_fill_value(text) == data_type.cast_scalar(number) == number
                continue
            with pytest.raises(MetadataError, match=r"must be a (non-negative )?number"):
                data_type.parse_fill_value(text)
            with pytest.raises(ValueError, match=f"{name} has no {text}"):
                data_type.cast_scalar(number)
    for name in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"):
        with pytest.raises(MetadataError, match='must be a number or "0x" with 2 hex digits, not "NaN"'):
            from_dtype(name).parse_fill_value("NaN")
        with pytest.raises(ValueError, match="has no NaN"):
            from_dtype(name).cast_scalar(math.nan)


def nearest(name: str, number: Fraction) -> list[int]:
    """Return the bits of the finite values nearest to a number."""
    with np.errstate(invalid="ignore"):
        values = every(name).astype("f8").tolist()
    distances = {bits: abs(Fraction(v) - number) for bits, v in enumerate(values) if math.isfinite(v)}
    least = min(distances.values())
    return [bits for bits, distance in distances.items() if distance == least]


@pytest.mark.parametrize("name", [name for name in FLOATS if name != "bfloat16"])
@given(data=st.data())
def test_a_json_number_is_rounded_once_to_the_nearest_value(name: str, data: Any) -> None:
    data_type = from_dtype(name)
    with np.errstate(invalid="ignore"):
        values = [v for v in every(name).astype("f8").tolist() if math.isfinite(v)]
    one, other = data.draw(st.sampled_from(values)), data.draw(st.sampled_from(values))
    middle = (one + other) / 2
    number = data.draw(st.sampled_from([middle, math.nextafter(middle, math.inf), math.nextafter(middle, -math.inf)]))
    scalar = data_type.parse_fill_value(number)
    assert scalar.tobytes() == data_type.cast_scalar(number).tobytes() or number == 0
    bits = int.from_bytes(scalar.tobytes(), sys.byteorder)
    candidates = nearest(name, Fraction(number))
    assert bits in candidates
    if len(candidates) > 1 and number:  # a tie is rounded to even
        assert bits % 2 == 0


@given(st.floats(-1e38, 1e38), st.booleans())
def test_a_json_number_is_rounded_once_to_bfloat16(number: float, integer: bool) -> None:
    if integer:
        number = int(number)
    bits = int.from_bytes(from_dtype("bfloat16").parse_fill_value(number).tobytes(), sys.byteorder)
    value = Fraction(float(np.uint16(bits).view(ml_dtypes.bfloat16)))
    for neighbour in (bits - 1, bits + 1):
        if bits % 2**15 == 0:
            continue  # zero: its neighbours have different signs, so their bits are not consecutive
        other = Fraction(float(np.uint16(neighbour).view(ml_dtypes.bfloat16)))
        distance, further = abs(value - Fraction(number)), abs(other - Fraction(number))
        assert distance < further or (distance == further and bits % 2 == 0)


def test_a_double_is_not_rounded_by_way_of_a_float() -> None:
    """1 + 2^-8 + 2^-40 is above the midpoint of two bfloat16 values, but would equal it after rounding to float32."""
    number = 1 + 2**-8 + 2**-40
    assert float(from_dtype("bfloat16").parse_fill_value(number)) == 1 + 2**-7


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("int4", 8, "must be an integer from -8 to 7, not 8"),
        ("int4", -9, "must be an integer from -8 to 7, not -9"),
        ("uint2", -1, "must be an integer from 0 to 3, not -1"),
        ("uint4", 16, "must be an integer from 0 to 15, not 16"),
        ("int2", 2, "must be an integer from -2 to 1, not 2"),
        ("int2", 1.0, "must be an integer, not 1.0"),
        ("int2", "1", 'must be an integer, not "1"'),
        ("bfloat16", True, 'must be a number, "NaN", "Infinity", "-Infinity" or "0x" with 4 hex digits, not true'),
        ("bfloat16", "0x7f", 'must be a number, "NaN", "Infinity", "-Infinity" or "0x" with 4 hex digits, not "0x7f"'),
        ("bfloat16", "7fc0", 'must be a number, "NaN", "Infinity", "-Infinity" or "0x" with 4 hex digits, not "7fc0"'),
        ("float8_e4m3fn", "0x0g", 'must be a number, "NaN" or "0x" with 2 hex digits, not "0x0g"'),
        ("float4_e2m1fn", "0x10", "must be at most 0x0f, since float4_e2m1fn has 4 bits"),
        ("float6_e2m3fn", "0x40", "must be at most 0x3f, since float6_e2m3fn has 6 bits"),
        ("float4_e2m1fn", 7, "must be at most 6.0, the largest float4_e2m1fn, not 7"),
        ("float8_e4m3fnuz", -1e30, "must be at most 240.0, the largest float8_e4m3fnuz, not -1e+30"),
        ("float8_e8m0fnu", -1, 'must be a non-negative number, "NaN" or "0x" with 2 hex digits, not -1'),
        ("bfloat16", 10**400, "must be within the range of a double, not 1000000000"),
        ("complex_bfloat16", 1, "must be an array of two numbers, not 1"),
        ("complex_float16", [1], "must be an array of two numbers, not of 1"),
        ("complex_float16", [1, "0x7fc00000"], 'must be a number, "NaN", "Infinity", "-Infinity" or "0x" with 4'),
    ],
)
def test_invalid_fill_values_are_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(MetadataError) as caught:
        from_dtype(name).parse_fill_value(value)
    assert caught.value.message.startswith(message)


def test_numbers_beyond_the_range_become_infinity() -> None:
    assert from_dtype("float8_e5m2").parse_fill_value(61439) == 57344
    assert from_dtype("float8_e5m2").parse_fill_value(61440) == math.inf
    assert from_dtype("bfloat16").parse_fill_value(-1e39) == -math.inf
    assert from_dtype("float4_e2m1fn").parse_fill_value(6.4) == 6


def test_numbers_from_callers_are_never_truncated() -> None:
    for name, value, error in [
        ("int4", 1.5, ValueError),
        ("int4", 8, OverflowError),
        ("int4", ml_dtypes.bfloat16(1.5), ValueError),
        ("bfloat16", 1e39, OverflowError),
        ("float8_e4m3fn", 500, OverflowError),
        ("float8_e8m0fnu", 0, ValueError),
        ("bfloat16", "1", TypeError),
        ("complex_float16", 1e6j, OverflowError),
        ("complex_bfloat16", "x", TypeError),
    ]:
        with pytest.raises(error):
            from_dtype(name).cast_scalar(value)
    assert from_dtype("int4").cast_scalar(ml_dtypes.bfloat16(-3)) == -3
    assert from_dtype("int2").cast_scalar(np.array(ml_dtypes.int4(1))) == 1
    assert from_dtype("bfloat16").cast_scalar(ml_dtypes.int4(3)) == 3
    assert from_dtype("bfloat16").cast_scalar(np.float32(1.5)) == 1.5
    assert from_dtype("bfloat16").cast_scalar(np.int64(2)) == 2
    assert from_dtype("complex_bfloat16").cast_scalar(ml_dtypes.complex32(1 + 2j)) == 1 + 2j
    assert from_dtype("complex_float16").cast_scalar(np.complex64(1.5)) == 1.5


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_fill_values_keep_the_bits_of_both_components(name: str) -> None:
    data_type = from_dtype(name)
    value = ["0x7f81" if "bfloat" in name else "0x7d01", -1.5]
    scalar = data_type.parse_fill_value(value)
    assert data_type.fill_value_json(scalar) == value
    assert data_type.cast_scalar(scalar).tobytes() == scalar.tobytes()
    assert data_type.fill_value_json(data_type.default_fill_value) == [0.0, 0.0]


# stored bytes


@pytest.mark.parametrize(
    ("name", "values", "little", "big", "packed"),
    [
        ("bfloat16", [1, -2.5], "803f20c0", "3f80c020", "803f20c0"),
        ("int2", [0, 1, -2, -1, 1], "0001020301", "0001020301", "e401"),
        ("uint2", [0, 1, 2, 3, 1], "0001020301", "0001020301", "e401"),
        ("int4", [1, -8, 7], "010807", "010807", "8107"),
        ("uint4", [1, 15, 7], "010f07", "010f07", "f107"),
        ("float4_e2m1fn", [0.5, -6, 1], "010f02", "010f02", "f102"),
        ("float6_e2m3fn", [0.125, -7.5, 1], "013f08", "013f08", "c18f00"),
        ("float6_e3m2fn", [0.0625, -28, 1], "013f0c", "013f0c", "c1cf00"),
        ("float8_e4m3", [1, -240], "38f7", "38f7", "38f7"),
        ("float8_e8m0fnu", [1, 2], "7f80", "7f80", "7f80"),
        ("complex_float16", [1 + 2j], "003c0040", "3c004000", "003c0040"),
        ("complex_bfloat16", [1 - 2j], "803f00c0", "3f80c000", "803f00c0"),
    ],
)
def test_elements_are_stored_as_the_expected_bytes(name: str, values: Any, little: str, big: str, packed: str) -> None:
    data = np.array(values).astype(from_dtype(name).dtype)
    for serializer, expected in ((Bytes("little"), little), (Bytes("big"), big), ("packbits", packed)):
        array = zarrlite.create_array({}, data=data, chunks=len(data), serializer=serializer, compressors=None)
        assert bytes(array.store.get("c/0")).hex() == expected
        assert array[...].tobytes() == data.tobytes()


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"])
def test_upper_bits_of_a_stored_byte_are_ignored(name: str) -> None:
    data = every(name)
    array = zarrlite.create_array({}, data=data, chunks=len(data), compressors=None)
    garbage = 256 - len(data)
    array.store.set("c/0", bytes(value | garbage for value in range(len(data))))
    assert array[...].tobytes() == data.tobytes()
    assert array[3:5].tobytes() == data[3:5].tobytes()
    assert array[1] == data[1]


@pytest.mark.parametrize("name", SMALL)
def test_arrays_and_shards_are_read_and_written_bit_for_bit(name: str) -> None:
    data_type = from_dtype(name)
    bits = np.random.default_rng(0).integers(0, 256, 64 * data_type.dtype.itemsize, dtype="u1")
    data = data_type.from_bytes(bits, "little").reshape(8, 8)
    for serializer in (Bytes("little"), Bytes("big"), "packbits"):
        for compressors in (None, "zstd"):
            for shape in ({"chunks": (3, 5)}, {"chunks": (2, 2), "shards": (4, 4)}, {"chunks": [[3, 5], 3]}):
                array = zarrlite.create_array(
                    {}, data=data, serializer=serializer, compressors=compressors, fill_value=data[0, 0], **shape
                )
                assert array[...].tobytes() == data.tobytes()
                assert array[2:7, 1].tobytes() == data[2:7, 1].tobytes()
                assert array.oindex[[1, 4], [0, 7]].tobytes() == data[np.ix_([1, 4], [0, 7])].tobytes()
                assert np.asarray(array[3, 3]).tobytes() == data[3, 3].tobytes()
                assert type(array[3, 3]) is data_type.dtype.type
                array[2, 2:6] = data[5, 2:6]
                assert array[2, 1:7].tobytes() == np.concatenate([data[2, 1:2], data[5, 2:6], data[2, 6:7]]).tobytes()


def test_fields_of_records_are_converted_each() -> None:
    fields = [("a", "float6_e2m3fn"), ("b", "complex_float16"), ("c", "int16")]
    dtype = {"name": "struct", "configuration": {"fields": [{"name": n, "data_type": t} for n, t in fields]}}
    array = zarrlite.create_array({}, shape=2, dtype=dtype, serializer=Bytes("big"), compressors=None, chunks=2)
    array["a"], array["b"], array["c"] = [1, 2], [1 + 2j, 3], [258, 3]
    stored = bytes(array.store.get("c/0"))
    assert stored.hex() == "083c0040000102" + "10420000000003"
    array.store.set("c/0", bytes([stored[0] | 0xC0]) + stored[1:])
    assert array["a"].tolist() == [1, 2]
    assert array[0]["b"] == 1 + 2j
    assert array[1].tolist() == (2, 3 + 0j, 3)


def test_packbits_keeps_the_chosen_bits() -> None:
    data = np.array([-8, -3, 2, 7]).astype(ml_dtypes.int4)
    codec = {"name": "packbits", "configuration": {"first_bit": 1, "last_bit": 2}}
    array = zarrlite.create_array({}, data=data, serializer=codec, compressors=None)
    # bits 1 and 2 of 1000, 1101, 0010 and 0111; they are sign-extended when they are decoded
    assert bytes(array.store.get("c/0")) == bytes([0b11_01_10_00])
    assert array[...].tolist() == [0, -4, 2, -2]
    with pytest.raises(MetadataError, match="must be below 4, the number of bits of int4, not 4"):
        zarrlite.create_array({}, data=data, serializer={"name": "packbits", "configuration": {"last_bit": 4}})


VALUES = [every("int4").reshape(4, 4), every("float6_e3m2fn").reshape(2, 32), every("bfloat16")[::999]]


class TestBytes(ArrayBytesLaws):
    codec = Bytes("big")
    arrays = VALUES


class TestPackbits(ArrayBytesLaws):
    codec = registry.codecs.coerce("packbits")
    arrays = VALUES


def test_missing_chunks_have_the_fill_value() -> None:
    array = zarrlite.create_array({}, shape=4, dtype="float8_e4m3fn", fill_value="NaN", chunks=2)
    array[:2] = [1, 2]
    assert np.isnan(array[2:].astype("f4")).all()
    array[:2] = np.nan
    assert array.nchunks_initialized == 0
