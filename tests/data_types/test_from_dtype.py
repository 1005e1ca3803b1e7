"""Data types made from all kinds of arguments, their JSON, and arguments that are refused."""

from __future__ import annotations

import doctest
import pickle

import numpy as np
import pytest
from numpy.lib.recfunctions import repack_fields

from zarrlite.data_types import Bool, Complex, DataType, Float, Integer, Raw, from_dtype, native
from zarrlite.errors import ArgumentError, MetadataError, UnknownExtensionError
from zarrlite.extensions import registry
from zarrlite.extensions.extension import Extension


def configured(name: str, **configuration) -> dict:
    return {"name": name, "configuration": configuration}


def fields(*pairs) -> dict:
    return configured("struct", fields=[{"name": name, "data_type": data_type} for name, data_type in pairs])


PAIRS = configured("structured", fields=[["x", "float32"], ["y", fields(("z", "r8"))]])
RAW = ["r8", "r16", "r128"]
NAMES = [name for cls in (Bool, Integer, Float, Complex) for name in (cls.name, *cls.aliases)]
NUMBERS = [name for name in NAMES if not name.startswith("complex_")]  # names that numpy knows as well

# argument, JSON of the data type, numpy dtype in memory
NAMED = [
    *((name, name, name) for name in NUMBERS),
    ("complex_float32", "complex_float32", "c8"),
    ("complex_float64", "complex_float64", "c16"),
    *((name, name, f"V{int(name[1:]) // 8}") for name in RAW),
    ("string", "string", "T"),
    ("bytes", "bytes", "O"),
    ("variable_length_bytes", "variable_length_bytes", "O"),
    ({"name": "float32"}, "float32", "f4"),
    ({"name": "float32", "configuration": {}}, "float32", "f4"),
    ({"name": "variable_length_bytes"}, "variable_length_bytes", "O"),
    (int, "int64", "i8"),
    (float, "float64", "f8"),
    (bool, "bool", "?"),
    (complex, "complex128", "c16"),
    (str, "string", "T"),
    (bytes, "bytes", "O"),
    (np.float16, "float16", "f2"),
    ("<f4", "float32", "f4"),
    (">f4", "float32", "f4"),
    (np.dtype(">c16"), "complex128", "c16"),
    ("longlong", "int64", "i8"),
    ("V3", "r24", "V3"),
    ("T", "string", "T"),
    (np.dtypes.StringDType, "string", "T"),
    (np.dtypes.StringDType(), "string", "T"),
    (">U3", configured("fixed_length_utf32", length_bytes=12), "U3"),
    ("S3", configured("null_terminated_bytes", length_bytes=3), "S3"),
    (configured("raw_bytes", length_bytes=3), configured("raw_bytes", length_bytes=3), "V3"),
    ("datetime64[10ms]", configured("numpy.datetime64", unit="ms", scale_factor=10), "M8[10ms]"),
    (">m8[D]", configured("numpy.timedelta64", unit="D", scale_factor=1), "m8[D]"),
    ("M8", configured("numpy.datetime64", unit="generic", scale_factor=1), "M8"),
    (configured("numpy.datetime64", unit="μs", scale_factor=1),) * 2 + ("M8[us]",),
    ([("x", ">f4"), ("y", "S1")], fields(("x", "float32"), ("y", configured("null_terminated_bytes", length_bytes=1))),
     [("x", "f4"), ("y", "S1")]),
    ("u1,f8", fields(("f0", "uint8"), ("f1", "float64")), "u1,f8"),
    ([("p", [("x", "V2")])], fields(("p", fields(("x", "r16")))), [("p", [("x", "V2")])]),
    ({"names": ["a"], "formats": ["f4"]}, fields(("a", "float32")), [("a", "f4")]),
    (PAIRS, PAIRS, [("x", "f4"), ("y", [("z", "V1")])]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "written", "dtype"), NAMED)
def test_a_data_type_is_created_from_the_argument(value, written, dtype):
    data_type = from_dtype(value)
    assert data_type.to_json() == written
    assert data_type.dtype == np.dtype(dtype)
    assert data_type.dtype.isnative
    assert data_type.itemsize == (None if data_type.dtype.kind in "TO" else data_type.dtype.itemsize)
    again = from_dtype(written)
    assert again == data_type
    assert hash(again) == hash(data_type)
    assert repr(again) == repr(data_type)
    assert from_dtype(data_type) is data_type


@pytest.mark.parametrize("value", [row[0] for row in NAMED])
def test_a_data_type_can_be_pickled(value):
    data_type = from_dtype(value)
    assert pickle.loads(pickle.dumps(data_type)) == data_type
    assert data_type.dtype == pickle.loads(pickle.dumps(data_type)).dtype  # pickled with a cached dtype


def test_every_core_type_of_the_specification_is_implemented():
    integers = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    assert set(NUMBERS) == {"bool", "float16", "float32", "float64", "complex64", "complex128"} | integers


def test_data_types_differ_by_name():
    others = ["string", "bytes", "variable_length_bytes", "S3", "S4", "M8", "m8"]
    every = [from_dtype(name) for name in [*NUMBERS, *RAW, *others]]
    assert len(set(every)) == len(every)
    assert Integer("int16") == from_dtype("i2") != "int16"
    assert Bool() == from_dtype("bool")
    assert repr(Raw("r16")) == "Raw('r16')"


REFUSED = [
    (None, "a data type must be a numpy dtype, a name or the JSON from zarr.json, not None"),
    (3.5, "a data type must be a numpy dtype, a name or the JSON from zarr.json, not 3.5"),
    ("O", 'Python objects cannot be stored; use "string" or "bytes" as the data type'),
    (object, 'Python objects cannot be stored; use "string" or "bytes" as the data type'),
    ("S", f"{np.dtype('S')!r} must not have a size of zero; use \"bytes\" for any length, or S<n>"),
    ("U0", f"{np.dtype('U')!r} must not have a size of zero; use \"string\" for any length, or U<n>"),
    (np.str_, f"{np.dtype('U')!r} must not have a size of zero; use \"string\" for any length, or U<n>"),
    ("V0", f"{np.dtype('V')!r} must not have a size of zero; use V<n>, or at least one field"),
    ([], "dtype([]) must not have a size of zero; use V<n>, or at least one field"),
    ("(2,3)f4", "Zarr has no subarray data types; use float32 with additional dimensions (2, 3), or more fields"),
    (
        [("x", "f4", 2)],
        "field 'x': Zarr has no subarray data types; use float32 with additional dimensions (2,), or more fields",
    ),
    ([("x", "O")], "field 'x': object has no fixed size; use U<n> for text and S<n> for bytes"),
    ([("x", "T")], "a data type must be a numpy dtype, a name or the JSON from zarr.json, not [('x', 'T')]"),
    (np.dtypes.StringDType(na_object=None),
     "missing values cannot be stored; use numpy.dtypes.StringDType(), not StringDType(na_object=None)"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "message"), REFUSED)
def test_arguments_without_a_data_type_are_refused(value, message):
    with pytest.raises(ArgumentError) as caught:
        from_dtype(value)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "dtype", [np.dtype("u1,f8", align=True), np.dtype({"names": ["a"], "formats": ["f4"], "itemsize": 8})]
)
def test_padded_fields_are_refused(dtype):
    with pytest.raises(ArgumentError) as caught:
        from_dtype(dtype)
    assert str(caught.value) == (
        f"the fields of {dtype!r} must be packed, without padding; use numpy.lib.recfunctions.repack_fields(dtype)"
    )
    packed = from_dtype(repack_fields(dtype))
    assert packed.dtype.names == dtype.names


@pytest.mark.parametrize(("scalar_type", "closest"), [(np.longdouble, "float64"), (np.clongdouble, "complex128")])
@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="a long double is a double on this machine")
def test_long_doubles_are_refused(scalar_type, closest):
    with pytest.raises(ArgumentError) as caught:
        from_dtype(scalar_type)
    assert str(caught.value) == f"Zarr has no data type for {np.dtype(scalar_type)}; the closest one is {closest}"


def test_an_unknown_name_is_refused():
    with pytest.raises(UnknownExtensionError) as caught:
        from_dtype("float31")
    assert caught.value.message.startswith(
        '"float31" is not a known data type (known: bfloat16, bool, bytes, complex128,'
    )


def test_an_extension_of_another_kind_is_refused():
    class Codec(Extension):
        kind = "codec"

    with pytest.raises(ArgumentError, match=r"^expected a data type, not "):
        from_dtype(Codec())


def test_numpy_types_of_other_packages_are_looked_up_in_the_registry(monkeypatch):
    class Doubles(Float):
        name = "float128"
        aliases = ()

        def cast_scalar(self, value):
            return DataType.cast_scalar(self, value)

    class Nothing(Doubles):
        from_dtype = DataType.from_dtype

    if np.dtype(np.longdouble).name != "float128":
        pytest.skip("needs a numpy type that Zarr does not have")
    monkeypatch.setitem(registry.data_types._classes, "float128", Doubles)
    assert from_dtype(np.longdouble) == Doubles()
    assert from_dtype(np.longdouble).cast_scalar(1) == np.longdouble(1)
    monkeypatch.setitem(registry.data_types._classes, "float128", Nothing)
    with pytest.raises(ArgumentError, match=r"^Zarr has no data type for float128"):
        from_dtype(np.longdouble)


@pytest.mark.parametrize("name", registry.data_types.names())
def test_every_listed_name_has_a_class(name):
    cls = registry.data_types.find(name)
    assert issubclass(cls, DataType)
    assert name in (cls.name, *cls.aliases)


def test_the_examples_of_from_dtype_run():
    assert doctest.testmod(native).failed == 0


def test_faults_of_an_argument_name_the_data_type_as_the_document():
    with pytest.raises(MetadataError) as caught:
        from_dtype({"name": "raw_bytes"})
    assert str(caught.value) == "data_type#/configuration/length_bytes: is required and missing"
