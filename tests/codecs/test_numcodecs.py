"""The codecs `numcodecs.*` obey the codec laws, and read and write the same bytes as the package numcodecs."""

from __future__ import annotations

import bz2
import importlib
import lzma
import sys
import zlib
from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.codecs.decoding import LITTLE, decode, encode, pipeline, refusal
from zarrlite.buffers.pieces import join
from zarrlite.codecs import ArraySpec, BitRound, ShardingIndexed, Zfp
from zarrlite.codecs import numcodecs as ours
from zarrlite.data_types import from_dtype
from zarrlite.errors import ArgumentError, ChecksumError, DataError, DependencyError, MetadataError, TruncatedError
from zarrlite.testing import ArrayArrayLaws, ArrayBytesLaws, BytesBytesLaws

VALUES = (bytes(8), b"01234567", bytes(1000), bytes(range(256)) * 3)  # each size is a multiple of 8, for Shuffle(8)
RAW_LZMA = ours.LZMA(lzma.FORMAT_RAW, filters=({"id": lzma.FILTER_DELTA, "dist": 8}, {"id": lzma.FILTER_LZMA2}))
BYTES_BYTES = [
    ours.Adler32(),
    ours.Adler32("end"),
    ours.BZ2(),
    ours.BZ2(9),
    ours.Blosc(),
    ours.Blosc("zstd", 3, -1, 512),
    ours.CRC32(),
    ours.CRC32("end"),
    ours.CRC32C(),
    ours.CRC32C("start"),
    ours.Fletcher32(),
    ours.GZip(),
    ours.JenkinsLookup3(),
    ours.JenkinsLookup3(7),
    ours.LZ4(),
    ours.LZ4(20),
    ours.LZMA(),
    ours.LZMA(lzma.FORMAT_ALONE, preset=1),
    ours.LZMA(lzma.FORMAT_XZ, lzma.CHECK_SHA256, 0),
    RAW_LZMA,
    ours.Shuffle(0),
    ours.Shuffle(1),
    ours.Shuffle(4),
    ours.Shuffle(8),
    ours.Zlib(),
    ours.Zlib(0),
    ours.Zstd(),
    ours.Zstd(7, True),
]
for _i, _codec in enumerate(BYTES_BYTES):
    _name = f"Test{type(_codec).__name__}{_i}"
    globals()[_name] = type(_name, (BytesBytesLaws,), {"codec": _codec, "values": VALUES})

NUMBERS = np.array([[0, 1, -1, 1.5, 100.25, -3], [7, 7, 7, 8, 9, 1000]])
ARRAY_ARRAY: list[tuple[Any, Any]] = [
    (ours.AsType("f4", "f8"), NUMBERS),
    (ours.AsType("<i2", "<i8"), NUMBERS.astype("i8")),
    (ours.AsType(">f8", "u1"), abs(NUMBERS).astype("u1")),
    (BitRound(52), NUMBERS),
    (BitRound(16), NUMBERS.astype("i4")),
    (BitRound(23), NUMBERS.astype("c8")),
    (BitRound(63), NUMBERS.astype("M8[s]")),
    (ours.BitRound(23), NUMBERS.astype("f4")),
    (ours.Delta("f8"), NUMBERS),
    (ours.Delta("<i4", "<i2"), NUMBERS.astype("i4")),
    (ours.Delta("u1"), NUMBERS.astype("i4").astype("u1")),
    (ours.FixedScaleOffset(1, 4, "f8", "i4"), NUMBERS),
    (ours.FixedScaleOffset(0.5, 4.0, "f4"), NUMBERS.astype("f4")),
    (ours.FixedScaleOffset(1000, 1, "i2", "f8"), NUMBERS.astype("i2")),
    (ours.PackBits(), NUMBERS > 5),
    (ours.Quantize(3, "f8", "f4"), NUMBERS),
]
for _i, (_codec, _array) in enumerate(ARRAY_ARRAY):
    _name = f"Test{type(_codec).__name__}{_i}"
    globals()[_name] = type(_name, (ArrayArrayLaws,), {"codec": _codec, "arrays": [_array, _array[0], _array[0, :1]]})

TEXT = np.array([["a", "bb", ""], ["bb", "a", "a"]], np.dtypes.StringDType())
PIECES = np.array([b"abcd", b"", b"12345678"], object)
FIELDS = [NUMBERS[0], NUMBERS, NUMBERS.reshape(2, 3, 2), NUMBERS.reshape(2, 3, 1, 2), NUMBERS[0, 1].reshape(())]
LOSSY: list[Any] = [
    ours.ZFPY(4, 0.01),
    ours.ZFPY(2, rate=40),
    ours.ZFPY(3, precision=40),
    Zfp("fixed_accuracy", 0.01),
    Zfp("fixed_rate", rate=40),
    Zfp("fixed_precision", precision=40),
]
ARRAY_BYTES: list[tuple[Any, Any]] = [
    (ours.PCodec(), [NUMBERS, NUMBERS.astype("i2"), NUMBERS.astype("u8")]),
    (ours.PCodec(3, "classic", "try_consecutive", delta_encoding_order=2, equal_pages_up_to=5), [NUMBERS]),
    (
        Zfp(),
        [
            *FIELDS,
            *(NUMBERS.astype(t) for t in ("f4", "i2", "i4", "i8")),
            *(abs(NUMBERS).astype(t) for t in ("u1", "u8")),
        ],
    ),
]
for _i, (_codec, _arrays) in enumerate(ARRAY_BYTES):
    _name = f"Test{type(_codec).__name__}{_i}"
    globals()[_name] = type(_name, (ArrayBytesLaws,), {"codec": _codec, "arrays": _arrays})


class _NearlyEqual(ArrayBytesLaws):
    def same(self, found: Any, expected: Any) -> bool:
        return found.shape == expected.shape and bool((abs(found - expected) < 0.5).all())


for _i, _codec in enumerate(LOSSY):
    _name = f"Test{type(_codec).__name__}Lossy{_i}"
    globals()[_name] = type(_name, (_NearlyEqual,), {"codec": _codec, "arrays": FIELDS})


class _Objects(ArrayBytesLaws):
    def make_spec(self, array: Any) -> Any:
        data_type = from_dtype("bytes" if array.dtype == object else array.dtype)
        return ArraySpec(array.shape, data_type, data_type.default_fill_value)

    def test_arrays_of_any_order_and_byte_order_are_encoded_alike(self) -> None:
        for serializer, array, encoded in self.bound():
            assert join(serializer.encode(np.asfortranarray(array))) == encoded


class TestJSON2(_Objects):
    codec = ours.JSON2()
    arrays = (TEXT, TEXT[0], TEXT[:1, :1].reshape(()))


class TestVLenArray(_Objects):
    codec = ours.VLenArray("<i4")
    arrays = (PIECES,)


class TestCategorize(ArrayArrayLaws):
    codec = ours.Categorize(("a", "bb"), "|O", "<u2")
    arrays = (TEXT, TEXT[0], TEXT.astype("U2"))


def theirs(codec: Any) -> Any:
    """Return numcodecs' own codec with the same configuration."""
    return importlib.import_module("numcodecs").get_codec(
        {"id": codec.name.removeprefix("numcodecs."), **codec.to_config()}
    )


@pytest.mark.parametrize("codec", BYTES_BYTES, ids=repr)
def test_encoded_bytes_equal_those_of_numcodecs(codec: Any) -> None:
    rng = np.random.default_rng(7)
    for size in (8, 800, 100_000):
        value = rng.integers(0, 7, size, "u1").tobytes()
        stored, expected = bytes(codec.encode(value)), bytes(theirs(codec).encode(value))
        assert bytes(theirs(codec).decode(stored)) == value
        assert bytes(codec.decode(expected, size)) == value
        if not isinstance(codec, ours.GZip):  # numcodecs writes the current time into the header
            assert stored == expected


@pytest.mark.parametrize(("codec", "array"), [c for c in ARRAY_ARRAY if c[0].name != "bitround"], ids=repr)
def test_filtered_elements_equal_those_of_numcodecs(codec: Any, array: Any) -> None:
    chain = pipeline([codec, LITTLE], array.shape, array.dtype)
    expected = np.asarray(theirs(codec).encode(np.ascontiguousarray(array)))
    assert encode(chain, array) == expected.astype(expected.dtype.newbyteorder("<")).tobytes()
    found = np.asarray(theirs(codec).decode(np.array(expected))).reshape(array.shape)
    np.testing.assert_array_equal(decode(chain, encode(chain, array)), found)


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 3, 2), (2, 2, 1, 3)])
@pytest.mark.parametrize(
    "codec",
    [
        ours.PCodec(),
        ours.PCodec(12, "classic", "none"),
        ours.ZFPY(4, 0.5),
        ours.ZFPY(2, rate=9),
        ours.ZFPY(3, precision=9),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:delta_spec='none' is deprecated")  # numcodecs 0.17 prefers "no_op"
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_compressed_numbers_equal_those_of_numcodecs(codec: Any, dtype: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(3).normal(0, 100, shape).astype(dtype)
    chain = pipeline([codec], shape, dtype)
    assert encode(chain, array) == bytes(theirs(codec).encode(array))
    found = theirs(codec).decode(encode(chain, array)).reshape(shape)
    np.testing.assert_array_equal(decode(chain, encode(chain, array)), found)


def test_encoded_objects_equal_those_of_numcodecs() -> None:
    text = np.array(TEXT.tolist(), object)
    chain = pipeline([ours.JSON2()], text.shape, "string")
    assert encode(chain, TEXT) == theirs(ours.JSON2()).encode(text)
    categorize = ours.Categorize(("bb", "a"), "|O", "<u2")
    chain = pipeline([categorize, LITTLE], text.shape, "string")
    assert encode(chain, TEXT) == theirs(categorize).encode(text).tobytes()
    assert decode(chain, encode(chain, TEXT)).tolist() == text.tolist()
    arrays = np.empty(3, object)
    arrays[:] = [np.array([1, 2], "<i4"), np.array([], "<i4"), np.array([3], "<i4")]
    stored = bytes(theirs(ours.VLenArray("<i4")).encode(arrays))
    chain = pipeline([ours.VLenArray("<i4")], (3,), "bytes")
    assert decode(chain, stored).tolist() == [item.tobytes() for item in arrays]


@pytest.mark.parametrize(
    ("codec", "value", "message"),
    [
        (ours.JSON2(), b'["a",1,"|O",[2]]', "an element must be text, not 1"),
        (ours.JSON2(), b'["a","|O",[2]]', "has 1 elements, but the chunk has 2"),
        (ours.JSON2(), b'["a","b","|O",[3]]', "must be a JSON array that ends with a dtype and the shape [2]"),
        (ours.JSON2(), b"[" * 10**5, "is nested too deeply"),
    ],
)
def test_damaged_objects_are_refused(codec: Any, value: bytes, message: str) -> None:
    assert refusal(pipeline([codec], (2,), "string"), value) == (DataError, f"codec {codec.name}: {message}")


@pytest.mark.parametrize("digits", range(-3, 12))
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_quantized_numbers_equal_those_of_numcodecs(digits: int, dtype: str) -> None:
    array = np.random.default_rng(digits + 3).normal(0, 100, 200).astype(dtype)
    codec = ours.Quantize(digits, dtype)
    chain = pipeline([codec, LITTLE], array.shape, dtype)
    with np.errstate(all="ignore"):
        expected = np.asarray(theirs(codec).encode(array))
    if np.isfinite(expected).all():
        assert encode(chain, array) == expected.tobytes()
    else:  # an intermediate result of numcodecs overflows float16
        with pytest.raises(ArgumentError, match=r"numcodecs\.quantize cannot store"):
            encode(chain, array)


@pytest.mark.parametrize("size", [*range(1, 9), 719, 720, 721, 722, 2**17 - 1, 2**17, 2**17 + 2, 300_001])
@pytest.mark.parametrize("low", [0, 255])
def test_fletcher32_equals_that_of_numcodecs_at_every_size(size: int, low: int) -> None:
    codec = ours.Fletcher32()
    for value in (bytes([low]) * size, np.random.default_rng(size).integers(low, 256, size, "u1").tobytes()):
        assert bytes(codec.encode(value)) == bytes(theirs(codec).encode(value))


@pytest.mark.parametrize("codec", [c for c in BYTES_BYTES if c.name.endswith(("32", "32c", "lookup3"))], ids=repr)
def test_a_checksum_is_four_bytes_before_or_after_the_value(codec: Any) -> None:
    default = "start" if codec.name in ("numcodecs.crc32", "numcodecs.adler32") else "end"
    encoded = bytes(codec.encode(b"12345678"))
    assert encoded.startswith(b"12345678") == ((getattr(codec, "location", None) or default) == "end")
    assert encoded.endswith(b"12345678") != encoded.startswith(b"12345678")
    chain = pipeline([LITTLE, codec], (8,), "u1")
    assert refusal(chain, encoded[:3] + b"?" + encoded[4:])[0] is ChecksumError
    assert refusal(chain, b"123")[0] is TruncatedError


def test_streams_may_be_concatenated_except_zlib() -> None:
    for codec in (ours.BZ2(), ours.LZMA(), ours.GZip()):
        chain = pipeline([LITTLE, codec], (8,), "u1")
        two = bytes(codec.encode(b"0123")) + bytes(codec.encode(b"4567"))
        assert decode(chain, two).tobytes() == b"01234567"
    chain = pipeline([LITTLE, ours.Zlib()], (8,), "u1")
    kind, message = refusal(chain, zlib.compress(b"01234567") + b"xx")
    assert (kind, message) == (TruncatedError, "codec numcodecs.zlib: has 2 bytes after the zlib stream")


@pytest.mark.parametrize(
    ("codec", "bomb"),
    [
        (ours.Zlib(), zlib.compress(bytes(2**24))),
        (ours.BZ2(), bz2.compress(bytes(2**24))),
        (ours.LZMA(), lzma.compress(bytes(2**24))),
        (ours.LZ4(), b"\xff\xff\xff\x7f" + bytes(40)),
    ],
    ids=repr,
)
def test_a_decompression_bomb_is_refused(codec: Any, bomb: bytes) -> None:
    with pytest.raises(TruncatedError, match=r"more than the 100 bytes|at most 100 are allowed"):
        codec.decode(bomb, 100)


def test_a_dictionary_of_a_gibibyte_is_not_allocated() -> None:
    codec = ours.LZMA(lzma.FORMAT_ALONE)
    stored = bytes(codec.encode(bytes(8)))
    huge = stored[:1] + (2**30).to_bytes(4, "little") + stored[5:]  # the header states the size of the dictionary
    kind, message = refusal(pipeline([LITTLE, codec], (8,), "u1"), huge)
    assert (kind, message) == (DataError, "codec numcodecs.lzma: cannot be decoded: Memory usage limit exceeded")


@pytest.mark.parametrize(
    ("codec", "dtype", "values", "message"),
    [
        (ours.Delta("i2", "i1"), "i2", [0, 300], "cannot store these differences as int8"),
        (ours.AsType("u1", "i4"), "i4", [5, -1], "cannot store -1 as uint8"),
        (ours.AsType("i4", "f8"), "f8", [5, np.nan], "cannot store nan as int32"),
        (ours.FixedScaleOffset(0, 10, "f8", "i1"), "f8", [5, 100], "cannot store 100.0 as int8"),
        (ours.AsType("f4", "f8"), "f8", [5, 1e300], "cannot store 1e\\+300 as float32"),
        (ours.FixedScaleOffset(0, 10, "u1"), "u1", [5, 30], "cannot store 30 as uint8"),
        (ours.Shuffle(3), "u1", [1, 2], "elementsize must divide the chunk size, 2 bytes, evenly; 3 does not"),
    ],
)
def test_values_that_could_not_be_read_back_are_refused(codec: Any, dtype: str, values: Any, message: str) -> None:
    chain = [LITTLE, codec] if codec.name == "numcodecs.shuffle" else [codec, LITTLE]
    with pytest.raises(ArgumentError, match=message):
        encode(pipeline(chain, (2,), dtype), np.array(values, dtype))


def test_integers_that_wrap_and_are_unwrapped_are_stored_as_numcodecs_stores_them() -> None:
    codec, array = ours.FixedScaleOffset(10, 1, "u1"), np.array([5, 12, 255], "u1")
    chain = pipeline([codec, LITTLE], (3,), "u1", 10)
    assert encode(chain, array) == theirs(codec).encode(array).tobytes()
    assert decode(chain, encode(chain, array)).tolist() == array.tolist()


@pytest.mark.parametrize(("encoded", "decoded"), [("f4", "c8"), ("c8", "f4")])
def test_complex_numbers_are_not_converted_to_real_ones(encoded: str, decoded: str) -> None:
    with pytest.raises(MetadataError, match="must be complex if and only if the array is, not"):
        pipeline([ours.AsType(encoded, decoded), LITTLE], (2,), decoded)


def test_a_chunk_may_contain_its_fill_value_even_if_it_cannot_be_encoded() -> None:
    codec = ours.FixedScaleOffset(0, 10, "f8", "i2")
    array = zarrlite.create_array({}, shape=(5,), dtype="f8", chunks=(4,), filters=[codec], fill_value=np.nan)
    array[4] = 2.5
    assert array[4] == 2.5
    np.testing.assert_array_equal(array[:4], np.nan)


def test_a_fill_value_without_encoded_form_is_refused_in_shards() -> None:
    codec = ours.FixedScaleOffset(0, 10, "f8", "i2")
    chain = [codec, ShardingIndexed((2,), (LITTLE,), (LITTLE,))]
    with pytest.raises(MetadataError, match="fixedscaleoffset stores int16, which cannot represent nan"):
        pipeline(chain, (4,), "f8", np.nan)
    bound = pipeline(chain, (4,), "f8", 3.0)
    assert decode(bound, encode(bound, np.array([3.0, 3, 1, 2]))).tolist() == [3, 3, 1, 2]


@pytest.mark.parametrize("codec", [ours.LZ4(), ours.JenkinsLookup3(), ours.Blosc()], ids=repr)
def test_without_numcodecs_the_error_names_the_extra(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numcodecs", None)
    with pytest.raises(DependencyError, match=r"codec needs numcodecs: pip install 'zarrlite\[numcodecs\]'$"):
        codec.encode(b"12345678")


def test_the_classes_have_the_names_of_zarr_python() -> None:
    module = pytest.importorskip("zarr.codecs.numcodecs")
    names = {name for name in module.__all__ if not name.startswith("_")}
    for name in names:
        assert getattr(ours, name).name == getattr(module, name).codec_name
