"""Values that callers pass are converted to scalars without being silently rounded or truncated."""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pytest

from zarrlite.data_types import from_dtype

DAY = datetime.date(2020, 1, 2)
RECORD = np.dtype([("x", "f4"), ("n", [("s", "S2")])])

# data type, value, JSON of the scalar
CAST = [
    ("bool", True, True),
    ("bool", np.False_, False),
    ("bool", 1, True),
    ("bool", 0.0, False),
    ("int8", -128, -128),
    ("int8", True, 1),
    ("int8", np.bool(True), 1),
    ("int16", 300.0, 300),
    ("int16", Fraction(6, 2), 3),
    ("uint64", np.float32(5), 5),
    ("uint8", np.array(7), 7),
    ("float16", 1, 1.0),
    ("float32", True, 1.0),
    ("float32", 0.1, 0.1),
    ("float32", float("nan"), "NaN"),
    ("float32", float("-inf"), "-Infinity"),
    ("float64", Fraction(1, 2), 0.5),
    ("float64", np.longdouble(0.5), 0.5),
    ("complex64", 1, [1.0, 0.0]),
    ("complex64", 1j, [0.0, 1.0]),
    ("complex128", complex("inf"), ["Infinity", 0.0]),
    ("r16", b"\1\2", [1, 2]),
    ("r16", np.void(b"\1\2"), [1, 2]),
    ("string", "a", "a"),
    ("string", np.str_("a"), "a"),
    ("string", np.array("a"), "a"),
    ("bytes", b"a", "YQ=="),
    ("bytes", np.bytes_(b"a"), "YQ=="),
    ("bytes", bytearray(b"a"), "YQ=="),
    ("bytes", memoryview(b"a"), "YQ=="),
    ("U2", "ab", "ab"),
    ("S2", b"a", "YQ=="),
    ({"name": "raw_bytes", "configuration": {"length_bytes": 1}}, b"a", "YQ=="),
    ("M8[s]", 5, 5),
    ("M8[s]", np.uint8(5), 5),
    ("M8[s]", "1970-01-01T00:00:05", 5),
    ("M8[s]", "NaT", "NaT"),
    ("M8", np.datetime64("NaT", "s"), "NaT"),
    ("M8", 5, 5),
    ("M8[D]", DAY, 18263),
    ("M8[D]", np.datetime64("2020-01-02T00:00:00"), 18263),
    ("M8[2h]", np.datetime64("1970-01-01T04"), 2),
    ("M8[us]", datetime.datetime(1970, 1, 1, 0, 0, 0, 7), 7),
    ("m8[ms]", datetime.timedelta(seconds=1), 1000),
    ("m8[ms]", np.timedelta64(1, "s"), 1000),
    ("m8[ms]", np.array([7]).view("m8")[0], 7),
    (RECORD, (1, (b"a",)), {"x": 1.0, "n": {"s": "YQ=="}}),
    (RECORD, {"n": {"s": b"a"}, "x": 1}, {"x": 1.0, "n": {"s": "YQ=="}}),
    (RECORD, np.array((1, (b"a",)), RECORD), {"x": 1.0, "n": {"s": "YQ=="}}),
    (RECORD, np.array([(1, (b"a",))], RECORD)[0], {"x": 1.0, "n": {"s": "YQ=="}}),
    (RECORD, np.array(((b"a",), 1), [("n", [("s", "S1")]), ("x", "f8")]), {"x": 1.0, "n": {"s": "YQ=="}}),
]


@pytest.mark.parametrize(("name", "value", "expected"), CAST)
def test_a_value_is_cast_to_a_scalar_of_the_data_type(name, value, expected):
    data_type = from_dtype(name)
    scalar = data_type.cast_scalar(value)
    assert data_type.fill_value_json(scalar) == expected
    if data_type.itemsize is None:
        assert type(scalar) in (str, bytes)
    else:
        assert type(scalar) is data_type.dtype.type


LONG = "-9223372036854775808 to 9223372036854775807"
NO_TIME = "numpy.datetime64 needs a time, a string or an integer, not "

# data type, value, exception, message
REFUSED = [
    ("bool", 2, ValueError, "bool needs True or False, not 2"),
    ("bool", "yes", TypeError, "bool needs a number, not 'yes'"),
    ("uint8", 300, OverflowError, "uint8 needs an integer from 0 to 255, not 300"),
    ("uint8", -1, OverflowError, "uint8 needs an integer from 0 to 255, not -1"),
    ("uint8", 1.5, ValueError, "uint8 needs an integer, not 1.5"),
    ("uint8", float("nan"), ValueError, "cannot convert float NaN to integer"),
    ("uint8", float("inf"), OverflowError, "cannot convert float infinity to integer"),
    ("int64", None, TypeError, "int64 needs a number, not None"),
    ("int64", np.timedelta64(5, "s"), TypeError, "int64 needs a number, not np.timedelta64(5,'s')"),
    ("int64", 1j, TypeError, "int64 needs a number, not 1j"),
    ("int64", [1], TypeError, "int64 needs a number, not [1]"),
    ("float32", None, TypeError, "float32 needs a number, not None"),
    ("float32", "1.5", TypeError, "float32 needs a number, not '1.5'"),
    ("float16", 1e6, OverflowError, "1000000.0 exceeds the range of float16"),
    ("float32", -(10**39), OverflowError, f"-{10**39} exceeds the range of float32"),
    ("float64", 10**400, OverflowError, "int too large to convert to float"),
    ("complex64", "1", TypeError, "complex64 needs a number, not '1'"),
    ("complex64", complex(0, 1e300), OverflowError, "1e+300j exceeds the range of complex64"),
    ("r16", b"\1", ValueError, "r16 needs 2 bytes, not 1"),
    ("r16", "ab", TypeError, "r16 needs bytes, not 'ab'"),
    ("string", b"a", TypeError, "string needs a string, not b'a'"),
    ("string", None, TypeError, "string needs a string, not None"),
    ("string", "\ud800", ValueError, "string needs Unicode text; '\\ud800' has a lone surrogate"),
    ("bytes", "a", TypeError, "bytes needs bytes, not 'a'"),
    ("variable_length_bytes", None, TypeError, "variable_length_bytes needs bytes, not None"),
    ("U2", "abc", ValueError, "fixed_length_utf32 holds at most 2 code points, but 'abc' has 3"),
    ("U2", 5, TypeError, "fixed_length_utf32 needs a string, not 5"),
    ("S2", b"abc", ValueError, "null_terminated_bytes holds at most 2 bytes, not 3"),
    ("S2", "ab", TypeError, "null_terminated_bytes needs bytes, not 'ab'"),
    ("M8[s]", None, TypeError, NO_TIME + "None"),
    ("M8[s]", True, TypeError, NO_TIME + "True"),
    ("M8[s]", 1.5, TypeError, NO_TIME + "1.5"),
    ("M8[s]", np.timedelta64(5, "s"), TypeError, NO_TIME + "np.timedelta64(5,'s')"),
    ("M8[s]", 2**63, OverflowError, f"numpy.datetime64 needs an integer from {LONG}, not {2**63}"),
    ("m8[s]", np.uint64(2**63), OverflowError, f"numpy.timedelta64 needs an integer from {LONG}, not {2**63}"),
    (
        "M8[D]",
        "2020-01-01T12",
        ValueError,
        "numpy.datetime64 with a unit of 1 D cannot represent '2020-01-01T12' exactly in 64 bits",
    ),
    (
        "M8[ns]",
        "9999-01-01",
        ValueError,
        "numpy.datetime64 with a unit of 1 ns cannot represent '9999-01-01' exactly in 64 bits",
    ),
    (
        "m8[10s]",
        np.timedelta64(5, "s"),
        ValueError,
        "numpy.timedelta64 with a unit of 10 s cannot represent np.timedelta64(5,'s') exactly in 64 bits",
    ),
    (
        "m8",
        np.timedelta64(5, "s"),
        ValueError,
        "numpy.timedelta64 with a unit of 1 generic cannot represent np.timedelta64(5,'s') exactly in 64 bits",
    ),
    (RECORD, 0, TypeError, "struct needs a tuple, a dict or a record, not 0"),
    (RECORD, np.void(bytes(6)), TypeError, f"struct needs a tuple, a dict or a record, not {np.void(bytes(6))!r}"),
    (RECORD, (1,), ValueError, "struct needs 2 values, not 1"),
    (RECORD, {"x": 1}, ValueError, "struct needs the fields x, n, not x"),
    (RECORD, (1, (b"abc",)), ValueError, "null_terminated_bytes holds at most 2 bytes, not 3"),
]


@pytest.mark.parametrize(("name", "value", "error", "message"), REFUSED)
def test_a_value_of_the_wrong_type_or_range_is_refused(name, value, error, message):
    with pytest.raises(error) as caught:
        from_dtype(name).cast_scalar(value)
    assert type(caught.value) is error
    assert str(caught.value) == message


def test_the_payload_of_a_nan_of_the_same_dtype_is_kept():
    signalling = np.frombuffer(b"\1\0\x80\x7f", "<f4").astype(np.float32)[0]
    assert from_dtype("float32").cast_scalar(signalling).tobytes() == signalling.tobytes()
