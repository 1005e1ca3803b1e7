"""Each codec: exact bytes both ways, refused configurations, and damage."""

from __future__ import annotations

import gzip
import importlib
import struct
import sys
import zlib
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrlite
from zarrlite import codecs
from zarrlite.buffers.source import InMemory
from zarrlite.codecs import (
    ArraySpec,
    Blosc,
    Bytes,
    Codec,
    Crc32c,
    Gzip,
    Packbits,
    ShardingIndexed,
    Transpose,
    VlenBytes,
    VlenUtf8,
    Zstd,
)
from zarrlite.codecs.crc32c import checksum
from zarrlite.data_types import from_dtype
from zarrlite.errors import (
    ArgumentError,
    ChecksumError,
    DataError,
    DependencyError,
    MetadataError,
    ShardError,
    TruncatedError,
    ZarrliteError,
)
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context, Json
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import everything

LITTLE = Bytes("little")
ABSENT = 2**64 - 1


def pipeline(chain: list[Any], shape: tuple[int, ...], dtype: Any, fill: Any = None) -> Pipeline:
    data_type = from_dtype(dtype)
    fill = data_type.default_fill_value if fill is None else fill
    return Pipeline([registry.codecs.coerce(codec) for codec in chain], ArraySpec(shape, data_type, fill))


def decode(bound: Pipeline, data: Any) -> Any:
    return bound.read(InMemory(data), everything(bound.spec.shape))


def refusal(bound: Pipeline, data: bytes) -> tuple[type, str]:
    with pytest.raises(ZarrliteError) as caught:
        decode(bound, data)
    return type(caught.value), str(caught.value)


def document(**members: Any) -> dict[str, Json]:
    plain: dict[str, Json] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 6],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
        "chunk_key_encoding": "default",
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }
    return {**plain, **members}


# Exact bytes: the chain, the data type, the array, and its one encoded form

EXACT: list[tuple[list[Any], Any, Any, str]] = [
    ([Bytes("little")], "int16", [[1, -2], [3, 256]], "0100 feff 0300 0001"),
    ([Bytes("big")], "int16", [[1, -2], [3, 256]], "0001 fffe 0003 0100"),
    ([Bytes("little")], "float32", [1.0, -0.0], "0000803f 00000080"),
    ([Bytes("big")], "float64", 1.0, "3ff0000000000000"),
    ([Bytes("big")], "complex64", [1 + 2j], "3f800000 40000000"),
    ([Bytes(None)], "uint8", [[1, 2, 3]], "01 02 03"),
    ([Bytes(None)], "bool", [True, False], "01 00"),
    ([Bytes("big")], "uint64", [2**64 - 1, 1], "ffffffffffffffff 0000000000000001"),
    ([Bytes("big")], "U2", ["a", "é!"], "00000061 00000000 000000e9 00000021"),
    ([Bytes("little")], "S3", [b"ab", b"abc"], "616200 616263"),
    ([Bytes("big")], np.dtype([("x", "i2"), ("y", "u1")]), [(1, 2), (3, 4)], "0001 02 0003 04"),
    ([Bytes("big")], "datetime64[s]", np.array([1, 2], "M8[s]"), "0000000000000001 0000000000000002"),
    ([Transpose((1, 0)), Bytes("big")], "int16", [[1, 2, 3], [4, 5, 6]], "0001 0004 0002 0005 0003 0006"),
    ([Transpose((1, 2, 0)), Bytes()], "uint8", np.arange(8).reshape(2, 2, 2), "00 04 01 05 02 06 03 07"),
    ([Transpose((1, 0)), Transpose((1, 0)), Bytes()], "uint8", [[1, 2], [3, 4]], "01 02 03 04"),
    ([Transpose(()), Bytes()], "uint8", 7, "07"),
    ([Bytes(), Crc32c()], "uint8", np.frombuffer(b"123456789", "u1"), "313233343536373839 839206e3"),
    ([Bytes(), Crc32c()], "uint8", np.zeros(32, "u1"), "00" * 32 + "aa36918a"),  # RFC 3720, B.4
    ([Bytes(), Crc32c()], "uint8", np.full(32, 255, "u1"), "ff" * 32 + "43aba862"),  # RFC 3720, B.4
    ([Bytes(), Crc32c(), Crc32c()], "uint8", [0], "00 51537d52 c74b6748"),
    ([VlenUtf8()], "string", ["", "é", "ab"], "03000000 00000000 02000000 c3a9 02000000 6162"),
    ([VlenBytes()], "bytes", [b"\0", b""], "02000000 01000000 00 00000000"),
    ([VlenUtf8()], "string", [["a"], ["b"]], "02000000 01000000 61 01000000 62"),
    ([Packbits()], "bool", [1, 0, 1, 1, 0, 0, 0, 0, 1], "0d 01"),
    ([Packbits("first_byte")], "bool", [1, 0, 1, 1, 0, 0, 0, 0, 1], "07 0d 01"),
    ([Packbits("last_byte")], "bool", [1, 0, 1, 1, 0, 0, 0, 0, 1], "0d 01 07"),
    ([Packbits("first_byte")], "bool", [True] * 8, "00 ff"),
    ([Packbits()], "bool", True, "01"),
    ([Packbits()], "int16", [1, -2], "0100 feff"),
    ([Packbits()], "float32", [1.0], "0000803f"),
    ([Packbits(last_bit=2)], "int8", [1, -1, -4, 3, 0], "39 07"),
    ([Packbits(first_bit=4)], "uint8", [0x10, 0xF0, 0x20], "f1 02"),
    ([Packbits("last_byte", 4, 11)], "uint16", [0x0AB0, 0x0120], "ab 12 00"),
    ([Packbits("first_byte", 0, 4)], "uint32", [1, 2, 3], "01 41 0c"),
    ([Packbits(first_bit=31)], "float32", [-0.0, 0.0, -0.0], "05"),
    ([Packbits(first_bit=63)], "complex128", [complex(-0.0, 0.0), complex(0.0, -0.0)], "09"),
    ([Packbits(last_bit=0)], "uint64", [1, 0, 1], "05"),
]


@pytest.mark.parametrize(("chain", "dtype", "values", "encoded"), EXACT)
def test_the_encoded_form_is_exactly_this_and_decodes_to_the_same(
    chain: list[Any], dtype: Any, values: Any, encoded: str
) -> None:
    data_type = from_dtype(dtype)
    array = np.array(values, data_type.dtype)
    bound = pipeline(chain, array.shape, dtype)
    data = bytes.fromhex(encoded)
    assert bytes(bound.encode(array)).hex(" ") == data.hex(" ")
    found = np.asarray(decode(bound, data), data_type.dtype)
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes() or found.tolist() == array.tolist()
    if bound.encoded_size is not None:
        assert bound.encoded_size == len(data)
    for short in range(len(data)):  # no beginning of it is another chunk
        with pytest.raises(DataError):
            decode(bound, data[:short])
    with pytest.raises(DataError):
        decode(bound, data + b"\0")


@pytest.mark.parametrize(
    ("chain", "dtype", "lossy", "kept"),
    [
        (Packbits(last_bit=2), "int8", [9, 4, -9], [1, -4, -1]),
        (Packbits(last_bit=2), "uint8", [9, 4, 255], [1, 4, 7]),
        (Packbits(first_bit=4), "int8", [0x1F, -1], [0x10, -16]),
        (Packbits(first_bit=8, last_bit=11), "int16", [0x0F00, 0x7FF], [-256, 0x700]),
    ],
)
def test_packbits_keeps_the_chosen_bits_and_extends_the_sign(
    chain: Packbits, dtype: str, lossy: list[int], kept: list[int]
) -> None:
    bound = pipeline([chain], (len(lossy),), dtype)
    assert decode(bound, bound.encode(np.array(lossy).astype(dtype))).tolist() == kept


PACKED = {"bool": 1, "int8": 8, "uint8": 8, "int16": 16, "uint32": 32, "int64": 64, "float16": 16, "complex64": 32}


@settings(max_examples=200)
@given(st.data())
def test_packbits_is_what_its_text_says_bit_by_bit(data: Any) -> None:
    dtype = data.draw(st.sampled_from(list(PACKED)))
    bits = PACKED[dtype]
    first = data.draw(st.none() | st.integers(0, bits - 1))
    last = data.draw(st.none() | st.integers(first or 0, bits - 1))
    padding = data.draw(st.sampled_from(["none", "first_byte", "last_byte"]))
    shape = tuple(data.draw(st.lists(st.integers(1, 5), max_size=2)))
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = data.draw(st.binary(min_size=size, max_size=size))
    array = np.frombuffer(raw, "u1" if dtype == "bool" else dtype).reshape(shape)
    array = (array % 2).astype(bool) if dtype == "bool" else array
    low, high = first or 0, bits - 1 if last is None else last
    components = [int(v) for v in array.reshape(-1).view(f"u{max(1, bits // 8)}")]
    sequence = "".join(f"{c >> low & (1 << high - low + 1) - 1:0{high - low + 1}b}"[::-1] for c in components)
    extra = -len(sequence) % 8
    packed = bytes(int((sequence + "0" * extra)[i : i + 8][::-1], 2) for i in range(0, len(sequence), 8))
    head, tail = (bytes([extra]) if padding == where else b"" for where in ("first_byte", "last_byte"))
    bound = pipeline([Packbits(padding, first, last)], shape, dtype)
    assert bytes(bound.encode(array)) == head + packed + tail
    again = np.asarray(decode(bound, head + packed + tail))
    assert bytes(bound.encode(again)) == head + packed + tail
    if (low, high) == (0, bits - 1):
        assert again.astype(dtype).tobytes() == array.tobytes()


def test_packbits_of_more_than_one_block() -> None:
    array = (np.arange(2**17 + 5) % 7).astype("u1")
    bound = pipeline([Packbits(last_bit=2)], array.shape, "u1")
    np.testing.assert_array_equal(decode(bound, bound.encode(array)), array)


# Bytes that others wrote: what must be read, whoever compressed it

TEXT = b"zarrlite " * 8
FRAME = zstandard.ZstdCompressor().compress(TEXT)
SKIPPABLE = bytes.fromhex("502a4d18 03000000 616263")
NAMED = (  # a gzip member with name, comment, extra field and header checksum
    b"\x1f\x8b\x08\x1e\0\0\0\0\0\x03" + b"\x02\0xy" + b"name\0" + b"comment\0"
)
NAMED += (zlib.crc32(NAMED) & 0xFFFF).to_bytes(2, "little")
_RAW = zlib.compressobj(6, zlib.DEFLATED, -15)
NAMED += _RAW.compress(TEXT) + _RAW.flush() + struct.pack("<II", zlib.crc32(TEXT), len(TEXT))

READABLE = [
    ("gzip, one member", Gzip(), gzip.compress(TEXT), TEXT),
    ("gzip, two members", Gzip(), gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:]), TEXT),
    ("gzip, an empty member between", Gzip(), gzip.compress(TEXT) + gzip.compress(b""), TEXT),
    ("gzip, every header field", Gzip(), NAMED, TEXT),
    ("gzip, stored", Gzip(), gzip.compress(TEXT, 0), TEXT),
    ("gzip, nothing", Gzip(), gzip.compress(b""), b""),
    ("zstd, one frame", Zstd(), FRAME, TEXT),
    ("zstd, two frames", Zstd(), FRAME + FRAME, TEXT * 2),
    ("zstd, no content size", Zstd(), zstandard.ZstdCompressor(write_content_size=False).compress(TEXT), TEXT),
    (
        "zstd, sized and unsized frames",
        Zstd(),
        FRAME + zstandard.ZstdCompressor(write_content_size=False).compress(TEXT) + FRAME,
        TEXT * 3,
    ),
    ("zstd, a skippable frame in front", Zstd(), SKIPPABLE + FRAME, TEXT),
    ("zstd, a skippable frame behind", Zstd(), FRAME + SKIPPABLE, TEXT),
    ("zstd, a checksum", Zstd(), zstandard.ZstdCompressor(write_checksum=True).compress(TEXT), TEXT),
    ("zstd, nothing", Zstd(), zstandard.ZstdCompressor().compress(b""), b""),
    ("zstd, magicless it is not", Zstd(), bytes.fromhex("28b52ffd 2003 190000 616263"), b"abc"),
]


@pytest.mark.parametrize(("codec", "data", "text"), [row[1:] for row in READABLE], ids=[row[0] for row in READABLE])
def test_whatever_the_format_allows_is_read(codec: Any, data: bytes, text: bytes) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        assert bytes(codec.decode(buffer, len(text))) == text


@settings(max_examples=60)
@given(st.binary(max_size=300), st.integers(0, 9), st.sampled_from([-131072, -5, 0, 1, 22]), st.booleans())
def test_compression_is_undone_whatever_the_level(data: bytes, gzip_level: int, zstd_level: int, check: bool) -> None:
    for codec in (Gzip(gzip_level), Zstd(zstd_level, check)):
        encoded = codec.encode(data)
        assert bytes(codec.decode(encoded, len(data))) == data
        assert len(encoded) <= codec.max_encoded_size(len(data))
        assert codec.encode(memoryview(data)) == encoded
        assert codec.encoded_size(len(data)) is None


def test_what_gzip_writes_does_not_depend_on_the_day() -> None:
    assert Gzip().encode(b"abc")[:10].hex() == "1f8b0800000000000003"
    assert gzip.decompress(Gzip().encode(TEXT)) == TEXT


def test_a_zstd_checksum_is_written_and_verified() -> None:
    encoded = Zstd(3, checksum=True).encode(TEXT)
    assert zstandard.get_frame_parameters(encoded).has_checksum
    assert not zstandard.get_frame_parameters(Zstd().encode(TEXT)).has_checksum
    with pytest.raises(zstandard.ZstdError):
        Zstd().decode(encoded[:-1] + bytes([encoded[-1] ^ 1]), len(TEXT))


def test_a_checksum_is_that_of_the_bytes_whatever_holds_them() -> None:
    for buffer in (b"123456789", bytearray(b"123456789"), memoryview(b"123456789")):
        assert checksum(buffer) == 0xE3069283
    assert checksum(b"") == 0


# Damage: the chain, the stored bytes, and the whole message

CHECKED = bytes(Crc32c().encode(b"\1\2"))
DAMAGED: list[tuple[str, list[Any], Any, bytes, type, str]] = [
    (
        "bytes, too short",
        [LITTLE],
        ((2, 2), "i4"),
        bytes(15),
        TruncatedError,
        "codec bytes: has 15 bytes, a chunk of shape (2, 2) has 16",
    ),
    (
        "bytes, too long",
        [LITTLE],
        ((2, 2), "i4"),
        bytes(17),
        TruncatedError,
        "codec bytes: has 17 bytes, a chunk of shape (2, 2) has 16",
    ),
    (
        "bool, a 2",
        [LITTLE],
        ((2,), "bool"),
        b"\1\2",
        DataError,
        "codec bytes: bool elements must be stored as 0 or 1, not 2",
    ),
    (
        "utf32, beyond Unicode",
        [LITTLE],
        ((1,), "U1"),
        b"\0\0\x11\0",
        DataError,
        "codec bytes: 0x110000 is not a Unicode character",
    ),
    (
        "crc32c, nothing there",
        [LITTLE, Crc32c()],
        ((2,), "u1"),
        b"\1\2\3",
        TruncatedError,
        "codec crc32c: has 3 bytes, the checksum alone has 4",
    ),
    (
        "crc32c, a bit flipped",
        [LITTLE, Crc32c()],
        ((2,), "u1"),
        b"\1\3" + CHECKED[2:],
        ChecksumError,
        f"codec crc32c: the checksum is {checksum(bytes([1, 2])):08x}, the data has {checksum(bytes([1, 3])):08x}",
    ),
    (
        "crc32c, big endian",
        [LITTLE, Crc32c()],
        ((2,), "u1"),
        b"\1\2" + CHECKED[:1:-1],
        ChecksumError,
        f"codec crc32c: the checksum is {int.from_bytes(CHECKED[2:]):08x}, the data has {checksum(bytes([1, 2])):08x}",
    ),
    (
        "crc32c, more than fits",
        [LITTLE, Crc32c()],
        ((2,), "u1"),
        Crc32c().encode(b"\1\2\3"),
        TruncatedError,
        "codec crc32c: decodes to 3 bytes, at most 2 fit here",
    ),
    (
        "crc32c, less than needed",
        [LITTLE, Crc32c()],
        ((2,), "u1"),
        Crc32c().encode(b"\1"),
        TruncatedError,
        "codec bytes: has 1 bytes, a chunk of shape (2,) has 2",
    ),
    (
        "gzip, nothing",
        [LITTLE, Gzip()],
        ((9,), "u1"),
        b"",
        TruncatedError,
        "codec gzip: the gzip stream ends too early",
    ),
    (
        "gzip, cut off",
        [LITTLE, Gzip()],
        ((9,), "u1"),
        gzip.compress(bytes(9))[:-1],
        TruncatedError,
        "codec gzip: the gzip stream ends too early",
    ),
    (
        "gzip, trailing zeros",
        [LITTLE, Gzip()],
        ((9,), "u1"),
        gzip.compress(bytes(9)) + bytes(4),
        DataError,
        "codec gzip: cannot be decoded: Error -3 while decompressing data: incorrect header check",
    ),
    (
        "gzip, zlib instead",
        [LITTLE, Gzip()],
        ((9,), "u1"),
        zlib.compress(bytes(9)),
        DataError,
        "codec gzip: cannot be decoded: Error -3 while decompressing data: incorrect header check",
    ),
    (
        "gzip, a wrong checksum",
        [LITTLE, Gzip()],
        ((9,), "u1"),
        gzip.compress(bytes(9))[:-8] + b"abcd" + (9).to_bytes(4, "little"),
        DataError,
        "codec gzip: cannot be decoded: Error -3 while decompressing data: incorrect data check",
    ),
    (
        "gzip, one byte more than fits",
        [LITTLE, Gzip()],
        ((9,), "u1"),
        gzip.compress(bytes(10)),
        TruncatedError,
        "codec gzip: decompresses to more than the 9 bytes that fit here",
    ),
    (
        "gzip, a second member that does not fit",
        [LITTLE, Gzip()],
        ((9,), "u1"),
        gzip.compress(bytes(9)) + gzip.compress(bytes(1)),
        TruncatedError,
        "codec gzip: decompresses to more than the 9 bytes that fit here",
    ),
    (
        "zstd, nothing",
        [LITTLE, Zstd()],
        ((9,), "u1"),
        b"",
        DataError,
        "codec zstd: cannot be decoded: error when determining content size",
    ),
    (
        "zstd, cut off",
        [LITTLE, Zstd()],
        ((72,), "u1"),
        FRAME[:-1],
        DataError,
        "codec zstd: cannot be decoded: decompression error: did not decompress full frame",
    ),
    (
        "zstd, a second frame cut off",
        [LITTLE, Zstd()],
        ((144,), "u1"),
        FRAME + FRAME[:-1],
        TruncatedError,
        "codec zstd: the zstd frame ends too early",
    ),
    (
        "zstd, trailing bytes",
        [LITTLE, Zstd()],
        ((72,), "u1"),
        FRAME + b"junk",
        DataError,
        "codec zstd: cannot be decoded: zstd decompressor error: Unknown frame descriptor",
    ),
    (
        "zstd, a second frame that does not fit",
        [LITTLE, Zstd()],
        ((72,), "u1"),
        FRAME + FRAME,
        TruncatedError,
        "codec zstd: decompresses to more than the 72 bytes that fit here",
    ),
    (
        "zstd, a size that does not fit",
        [LITTLE, Zstd()],
        ((71,), "u1"),
        FRAME,
        TruncatedError,
        "codec zstd: claims 72 bytes, at most 71 fit here",
    ),
    (
        "vlen, not even a count",
        [VlenUtf8()],
        ((1,), "string"),
        b"\1\0\0",
        TruncatedError,
        "codec vlen-utf8: has 3 bytes, the number of elements alone has 4",
    ),
    (
        "vlen, another count",
        [VlenUtf8()],
        ((1,), "string"),
        bytes.fromhex("02000000 00000000 00000000"),
        DataError,
        "codec vlen-utf8: has 2 elements, the chunk has 1",
    ),
    (
        "vlen, no room for the lengths",
        [VlenUtf8()],
        ((2,), "string"),
        bytes.fromhex("02000000 00000000"),
        TruncatedError,
        "codec vlen-utf8: has 8 bytes, the lengths of 2 elements alone have 8",
    ),
    (
        "vlen, an element that is too long",
        [VlenUtf8()],
        ((1,), "string"),
        bytes.fromhex("01000000 05000000 61"),
        TruncatedError,
        "codec vlen-utf8: ends within element 0",
    ),
    (
        "vlen, the largest length",
        [VlenBytes()],
        ((1,), "bytes"),
        bytes.fromhex("01000000 ffffffff 61"),
        TruncatedError,
        "codec vlen-bytes: ends within element 0",
    ),
    (
        "vlen, a length that is cut off",
        [VlenBytes()],
        ((2,), "bytes"),
        bytes.fromhex("02000000 02000000 6161 0000"),
        TruncatedError,
        "codec vlen-bytes: ends within element 1",
    ),
    (
        "vlen, bytes behind the end",
        [VlenBytes()],
        ((1,), "bytes"),
        bytes.fromhex("01000000 01000000 61 62"),
        TruncatedError,
        "codec vlen-bytes: has 1 bytes behind the last element",
    ),
    (
        "vlen, not UTF-8",
        [VlenUtf8()],
        ((1,), "string"),
        bytes.fromhex("01000000 01000000 ff"),
        DataError,
        "codec vlen-utf8: an element is not UTF-8: invalid start byte",
    ),
    (
        "packbits, too short",
        [Packbits()],
        ((9,), "bool"),
        b"\0",
        TruncatedError,
        "codec packbits: has 1 bytes, a chunk of shape (9,) has 2",
    ),
    (
        "packbits, too long",
        [Packbits("last_byte")],
        ((9,), "bool"),
        bytes(4),
        TruncatedError,
        "codec packbits: has 4 bytes, a chunk of shape (9,) has 3",
    ),
    (
        "packbits, a wrong count in front",
        [Packbits("first_byte")],
        ((9,), "bool"),
        b"\6\0\0",
        DataError,
        "codec packbits: says 6 bits of padding, there are 7",
    ),
    (
        "packbits, a wrong count behind",
        [Packbits("last_byte")],
        ((9,), "bool"),
        b"\0\0\x08",
        DataError,
        "codec packbits: says 8 bits of padding, there are 7",
    ),
    (
        "packbits, padding that is not 0",
        [Packbits()],
        ((9,), "bool"),
        b"\0\x80",
        DataError,
        "codec packbits: the padding bits are not 0",
    ),
]


@pytest.mark.parametrize(
    ("chain", "spec", "data", "kind", "message"), [row[1:] for row in DAMAGED], ids=[row[0] for row in DAMAGED]
)
def test_damage_is_an_error_that_says_what_is_wrong(
    chain: list[Any], spec: Any, data: bytes, kind: type, message: str
) -> None:
    assert refusal(pipeline(chain, *spec), data) == (kind, message)


def test_the_error_of_an_array_names_the_key() -> None:
    store = zarrlite.MemoryStore()
    array = zarrlite.create_array(
        store, name="a/b", shape=(2, 2), dtype="u1", chunks=(2, 1), codecs=["bytes", "crc32c"]
    )
    array[...] = 1
    store.set("a/b/c/0/1", b"\1\2\3\4\5\6")
    with pytest.raises(ChecksumError) as caught:
        array[...]
    found, wanted = checksum(b"\1\2"), int.from_bytes(b"\3\4\5\6", "little")
    expected = f"chunk a/b/c/0/1, codec crc32c: the checksum is {wanted:08x}, the data has {found:08x}"
    assert str(caught.value) == expected
    assert (caught.value.key, caught.value.codec) == ("a/b/c/0/1", "crc32c")
    with pytest.raises(ChecksumError, match=r"^chunk a/b/c/0/1, codec crc32c: "):
        array[0, 1] = 5


@pytest.mark.parametrize(
    ("shape", "selection", "size", "message"),
    [
        ((8,), 7, 7, "chunk c/0, codec bytes: has 7 bytes, a chunk of shape (8,) has 8"),
        ((8,), 0, 7, "chunk c/0, codec bytes: has 7 bytes, a chunk of shape (8,) has 8"),
        ((8,), [0, 6], 9, "chunk c/0, codec bytes: has 9 bytes, a chunk of shape (8,) has 8"),
        ((8,), slice(None), 7, "chunk c/0, codec bytes: has 7 bytes, a chunk of shape (8,) has 8"),
        ((8,), slice(None), 9, "chunk c/0, codec bytes: has 9 bytes, a chunk of shape (8,) has 8"),
    ],
)
def test_a_short_chunk_is_noticed_when_a_part_of_it_is_read(
    shape: Any, selection: Any, size: int, message: str
) -> None:
    store = zarrlite.MemoryStore()
    array = zarrlite.create_array(store, shape=shape, dtype="u1", chunks=shape, codecs=["bytes"])
    store.set("c/0", bytes(size))
    with pytest.raises(TruncatedError) as caught:
        array[selection]
    assert str(caught.value) == message


@pytest.mark.parametrize("selection", [7, slice(0, 8, 7), [0, 7]])
def test_a_short_chunk_of_unknown_size_is_noticed_by_what_is_missing(selection: Any) -> None:
    held: dict[str, bytes] = {}
    zarrlite.create_array(held, shape=8, dtype="u1", chunks=8, codecs=["bytes"])
    held["c/0"] = bytes(7)
    with pytest.raises(TruncatedError) as caught:
        zarrlite.open_array(Unsized(held), mode="r")[selection]
    assert str(caught.value) == "chunk c/0, codec bytes: ends before byte 8"


@pytest.mark.parametrize("bad", [1.5, "text", None])
def test_only_bytes_are_stored_as_bytes(bad: Any) -> None:
    array = zarrlite.create_array(shape=(2,), dtype="bytes", chunks=(2,))
    with pytest.raises(ArgumentError) as caught:
        array[0] = bad
    assert str(caught.value).endswith(f"an element must be bytes, not {type(bad).__name__}")


def test_what_is_not_bytes_is_refused_by_the_codec_itself() -> None:
    spec = ArraySpec((1,), from_dtype("bytes"), b"")
    with pytest.raises(ArgumentError, match=r"^an element must be bytes, not str$"):
        VlenBytes().encode(np.array(["text"], object), spec)


def test_elements_of_four_gibibytes_are_refused() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 2**32

    with pytest.raises(ArgumentError, match=r"^vlen-bytes stores elements of less than 4 GiB$"):
        VlenBytes().join([Huge()])


# blosc

BLOSC = Blosc("lz4", 5, "shuffle", 4)
PLAIN = bytes(range(200)) * 4


@pytest.fixture
def blosc() -> Any:
    return importlib.import_module("numcodecs.blosc")


@pytest.mark.parametrize("shuffle", Blosc.shuffles)
@pytest.mark.parametrize("cname", Blosc.compressors)
def test_blosc_round_trips_with_everything_it_was_built_with(blosc: Any, cname: str, shuffle: str) -> None:
    codec = Blosc(cname, 5, shuffle, 4)
    if cname not in blosc.list_compressors():
        for use in (lambda: codec.encode(PLAIN), lambda: codec.decode(bytes([2, 1, 2 << 5, *range(13)]), 9)):
            with pytest.raises(DependencyError, match=f"was built without {cname}$"):
                use()
        return
    encoded = codec.encode(PLAIN)
    assert bytes(codec.decode(encoded, len(PLAIN))) == PLAIN
    assert len(encoded) <= codec.max_encoded_size(len(PLAIN))
    assert bytes(codec.decode(memoryview(encoded), len(PLAIN))) == PLAIN


@pytest.mark.parametrize(
    ("codec", "size", "stride", "flag"),
    [
        (Blosc("lz4", 5, "shuffle", 4), 800, 4, 1),
        (Blosc("lz4", 5, "bitshuffle", 2), 800, 2, 4),
        (Blosc("lz4", 5, "noshuffle", 4), 800, 1, 0),
        (Blosc("lz4", 5), 800, 1, 0),
        (Blosc("lz4", 5, "shuffle", 3), 800, 1, 0),  # no whole number of items: nothing to shuffle
    ],
)
def test_blosc_shuffles_over_the_stride_that_the_metadata_says(
    blosc: Any, codec: Blosc, size: int, stride: int, flag: int
) -> None:
    encoded = bytes(codec.encode(PLAIN[:size]))
    assert encoded[3] == stride
    assert encoded[2] & flag == flag
    assert bytes(codec.decode(encoded, size)) == PLAIN[:size]


def test_blosc_of_nothing_is_nothing(blosc: Any) -> None:
    assert bytes(BLOSC.decode(BLOSC.encode(b""), 0)) == b""


def lying(**fields: int) -> bytes:
    header = bytearray(BLOSC.encode(PLAIN))
    for name, value in fields.items():
        at = {"version": 0, "nbytes": 4, "blocksize": 8, "cbytes": 12}[name]
        header[at : at + (1 if name == "version" else 4)] = value.to_bytes(1 if name == "version" else 4, "little")
    return bytes(header)


BLOSC_DAMAGE = [
    (lambda: b"", TruncatedError, "codec blosc: has 0 bytes, a blosc header alone has 16"),
    (lambda: bytes(15), TruncatedError, "codec blosc: has 15 bytes, a blosc header alone has 16"),
    (lambda: lying()[:-1], TruncatedError, "codec blosc: has {short} bytes, its header says {size}"),
    (lambda: lying() + b"\0", TruncatedError, "codec blosc: has {long} bytes, its header says {size}"),
    (lambda: lying(nbytes=801), TruncatedError, "codec blosc: claims 801 bytes, at most 800 fit here"),
    (lambda: lying(nbytes=2**32 - 1), TruncatedError, f"codec blosc: claims {2**32 - 1} bytes, at most 800 fit here"),
    (
        lambda: lying(nbytes=799),
        DataError,
        "codec blosc: cannot be decoded: error during blosc decompression: -1",
    ),
    (
        lambda: lying(blocksize=2**31 - 1),
        DataError,
        "codec blosc: cannot be decoded: error during blosc decompression: -1",
    ),
    (
        lambda: lying(version=99),
        DataError,
        "codec blosc: cannot be decoded: error during blosc decompression: -1",
    ),
]


@pytest.mark.parametrize(("damaged", "kind", "message"), BLOSC_DAMAGE)
def test_a_blosc_header_that_lies_is_an_error(blosc: Any, damaged: Any, kind: type, message: str) -> None:
    size = len(BLOSC.encode(PLAIN))
    expected = message.format(size=size, short=size - 1, long=size + 1)
    assert refusal(pipeline([LITTLE, BLOSC], (800,), "u1"), damaged()) == (kind, expected)


def test_a_library_that_decompresses_to_another_size_is_not_believed(
    blosc: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blosc, "decompress", lambda data: b"abc")
    found = refusal(pipeline([LITTLE, BLOSC], (800,), "u1"), lying())
    assert found == (DataError, "codec blosc: decompresses to 3 bytes, its header says 800")


def test_without_numcodecs_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numcodecs", None)
    array = zarrlite.create_array(shape=(4,), dtype="u1", chunks=(4,), compressors=Blosc())  # metadata needs no library
    for use in (lambda: array.__setitem__(..., 1), lambda: Blosc().decode(bytes(16), 1)):
        with pytest.raises(DependencyError) as caught:
            use()
        assert str(caught.value) == "the blosc codec needs numcodecs: pip install 'zarrlite[blosc]'"
        assert isinstance(caught.value, ImportError)


# Shards made by hand: index entries, chunk bytes

INDEX_BYTES = 4 * 16


def shard_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<QQ", *entry) for entry in entries)


def sharding(location: str = "end", inner: Any = (LITTLE,), index: Any = (LITTLE,)) -> Pipeline:
    codec = ShardingIndexed((1, 2), tuple(inner), tuple(index), location)
    return pipeline([codec], (2, 4), "uint8", 9)


NONE = (ABSENT, ABSENT)
SHARDS = [
    ("in order", "end", b"abcdefgh" + shard_index((0, 2), (2, 2), (4, 2), (6, 2)), [b"abcd", b"efgh"]),
    ("backwards", "end", b"abcdefgh" + shard_index((6, 2), (4, 2), (2, 2), (0, 2)), [b"ghef", b"cdab"]),
    ("all in one place", "end", b"ab" + shard_index(*[(0, 2)] * 4), [b"abab", b"abab"]),
    ("overlapping", "end", b"abc" + shard_index((0, 2), (1, 2), (0, 2), (1, 2)), [b"abbc", b"abbc"]),
    ("with gaps", "end", b"--ab---cd-" + shard_index((2, 2), NONE, NONE, (7, 2)), [b"ab\t\t", b"\t\tcd"]),
    ("empty", "end", shard_index(NONE, NONE, NONE, NONE), [b"\t\t\t\t", b"\t\t\t\t"]),
    ("index first", "start", shard_index((66, 2), NONE, (64, 2), NONE) + b"abcd", [b"cd\t\t", b"ab\t\t"]),
    (
        "far apart",
        "end",
        b"ab" + bytes(20000) + b"cd" + shard_index((20002, 2), NONE, NONE, (0, 2)),
        [b"cd\t\t", b"\t\tab"],
    ),
]


@pytest.mark.parametrize(("location", "data", "rows"), [row[1:] for row in SHARDS], ids=[row[0] for row in SHARDS])
def test_shards_of_any_order_are_read(location: str, data: bytes, rows: list[bytes]) -> None:
    assert [bytes(row) for row in np.asarray(decode(sharding(location), data))] == rows
    store = zarrlite.MemoryStore({"c/0/0": data})
    array = zarrlite.create_array(
        store, shape=(2, 4), dtype="u1", chunks=(2, 4), fill_value=9, codecs=[sharding(location).serializer.codec]
    )
    store.set("c/0/0", data)
    assert [bytes(row) for row in array[...]] == rows
    for i, j in np.ndindex(2, 4):
        assert array[i, j] == rows[i][j]
    array[0, 0] = 1  # a rewritten shard holds the same, in order and without gaps
    assert [bytes(row) for row in array[...]] == [b"\1" + rows[0][1:], rows[1]]


def test_a_shard_is_written_row_major_without_gaps_and_without_empty_chunks() -> None:
    array = np.array([[1, 2, 9, 9], [3, 4, 5, 6]], "u1")
    body = bytes([1, 2, 3, 4, 5, 6])
    assert sharding("end").encode(array) == body + shard_index((0, 2), NONE, (2, 2), (4, 2))
    assert sharding("start").encode(array) == shard_index((64, 2), NONE, (66, 2), (68, 2)) + body
    assert sharding().encode(np.full((2, 4), 9, "u1")) == shard_index(NONE, NONE, NONE, NONE)
    big = sharding(index=(Bytes("big"), Crc32c()))
    table = struct.pack(">8Q", 0, 2, ABSENT, ABSENT, 2, 2, 4, 2)
    assert bytes(big.encode(array)) == body + Crc32c().encode(table)


SHARD_DAMAGE = [
    ("end", b"", ShardError, "the index has 64 bytes, the shard only 0"),
    ("end", bytes(63), ShardError, "the index has 64 bytes, the shard only 63"),
    ("start", bytes(10), ShardError, "the index has 64 bytes, the shard only 10"),
    (
        "end",
        b"ab" + shard_index((0, ABSENT), NONE, NONE, NONE),
        ShardError,
        f"index entry 0 is half empty: offset 0, length {ABSENT}",
    ),
    (
        "end",
        b"ab" + shard_index(NONE, (ABSENT, 2), NONE, NONE),
        ShardError,
        f"index entry 1 is half empty: offset {ABSENT}, length 2",
    ),
    (
        "start",
        shard_index((63, 2), NONE, NONE, NONE) + b"ab",
        ShardError,
        "index entry 0 starts at 63, within the index",
    ),
    (
        "end",
        b"ab" + shard_index((0, 3), NONE, NONE, NONE),
        ShardError,
        "index entry 0 has 3 bytes, a chunk has at most 2",
    ),
    (
        "end",
        b"ab" + shard_index((0, 1), NONE, NONE, NONE),
        TruncatedError,
        "codec bytes: inner chunk (0, 0): has 1 bytes, a chunk of shape (1, 2) has 2",
    ),
    (
        "end",
        b"ab" + shard_index(NONE, (2**63, 2), NONE, NONE),
        ShardError,
        f"index entry 1 ends at {2**63 + 2}, the chunks end at 2",
    ),
    (
        "start",
        shard_index(NONE, (65, 2), NONE, NONE) + b"ab",
        ShardError,
        "index entry 1 ends at 67, the chunks end at 66",
    ),
]


@pytest.mark.parametrize(("location", "data", "kind", "message"), SHARD_DAMAGE)
def test_a_damaged_shard_is_an_error(location: str, data: bytes, kind: type, message: str) -> None:
    assert refusal(sharding(location), data) == (kind, message)


PARTLY_DAMAGED = [
    ((2**63, 2), np.s_[0], ShardError, f"index entry 1 ends at {2**63 + 2}, the chunks end at 2"),
    ((1, 2), np.s_[0, 2], ShardError, "index entry 1 ends at 3, the chunks end at 2"),
    ((0, ABSENT), np.s_[0, 2], ShardError, f"index entry 1 is half empty: offset 0, length {ABSENT}"),
    ((0, 3), np.s_[0, 2], ShardError, "index entry 1 has 3 bytes, a chunk has at most 2"),
]


class Unsized(zarrlite.Store):
    """A store that can do nothing but `get`."""

    def __init__(self, values: dict[str, bytes]) -> None:
        self.values = values
        self.asked: list[Any] = []

    def get(self, key: str, byte_range: Any = zarrlite.ByteRange()) -> Any:
        self.asked.append((key, *byte_range))
        return byte_range.of(self.values[key]) if key in self.values else None


@pytest.mark.parametrize(
    ("index", "kind", "message"),
    [
        (np.s_[0], ShardError, f"an entry at {2**63} of 2 bytes leaves the shard"),
        (np.s_[0, 2], TruncatedError, f"inner chunk (0, 1): 1 bytes are missing at offset {2**63}"),
    ],
)
def test_an_entry_outside_of_a_shard_of_unknown_size(index: Any, kind: type, message: str) -> None:
    codec = sharding().serializer.codec
    document = zarrlite.create_array({}, shape=(2, 4), dtype="u1", chunks=(2, 4), fill_value=9, codecs=[codec]).metadata
    shard = b"ab" + shard_index((0, 2), (2**63, 2), NONE, NONE)
    store = Unsized({"zarr.json": zarrlite.metadata.documents.serialize(document), "c/0/0": shard})
    with pytest.raises(DataError) as caught:
        zarrlite.open_array(store, mode="r")[index]
    assert (type(caught.value), str(caught.value)) == (kind, "chunk c/0/0: " + message)


def test_a_store_without_sizes_is_not_read_whole_to_learn_one() -> None:
    chain = [sharding().serializer.codec, codecs.Pad("start", 7)]
    held: dict[str, bytes] = {}
    zarrlite.create_array(held, data=np.arange(8, dtype="u1").reshape(2, 4), chunks=(2, 4), codecs=chain)
    array = zarrlite.open_array(store := Unsized(held), mode="r")
    store.asked.clear()
    assert array[0:1, 2:4].tolist() == [[2, 3]]
    size = len(held["c/0/0"])
    index = size - 7 - 8
    assert store.asked == [("c/0/0", 7 + index - 1, 7 + index), ("c/0/0", -index, None), ("c/0/0", 9, 11)]


@pytest.mark.parametrize(("entry", "index", "kind", "message"), PARTLY_DAMAGED)
def test_an_entry_is_checked_when_it_is_asked_for(entry: Any, index: Any, kind: type, message: str) -> None:
    store = zarrlite.MemoryStore()
    codec = sharding().serializer.codec
    array = zarrlite.create_array(store, shape=(2, 4), dtype="u1", chunks=(2, 4), fill_value=9, codecs=[codec])
    store.set("c/0/0", b"ab" + shard_index((0, 2), entry, NONE, NONE))
    with pytest.raises(DataError) as caught:
        array[index]
    assert (type(caught.value), str(caught.value)) == (kind, "chunk c/0/0: " + message)
    assert bytes(array[0, :2]) == b"ab"
    assert array[1, 0] == 9


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"ab" + shard_index(NONE, (1, 2), NONE, NONE), "index entry 1 ends at 3, the chunks end at 2"),
        (b"ab" + shard_index(NONE, (2**62, 2), NONE, NONE), f"index entry 1 ends at {2**62 + 2}, the chunks end at 2"),
    ],
)
def test_a_damaged_shard_is_not_updated(data: bytes, message: str) -> None:
    store = zarrlite.MemoryStore()
    codec = sharding().serializer.codec
    array = zarrlite.create_array(store, shape=(2, 4), dtype="u1", chunks=(2, 4), fill_value=9, codecs=[codec])
    store.set("c/0/0", data)
    with pytest.raises(ShardError) as caught:
        array[1, 0] = 5
    assert str(caught.value) == "chunk c/0/0: " + message
    assert store.get("c/0/0") == data


def test_an_index_with_a_wrong_checksum_says_so() -> None:
    bound = sharding(index=(LITTLE, Crc32c()))
    data = bytearray(bound.encode(np.ones((2, 4), "u1")))
    data[-1] ^= 255
    kind, message = refusal(bound, bytes(data))
    assert kind is ChecksumError
    assert message.startswith("codec crc32c: in the shard index: the checksum is ")


def test_damage_inside_a_shard_names_the_inner_chunk() -> None:
    bound = sharding(inner=(LITTLE, Crc32c()))
    data = bytearray(bound.encode(np.arange(8, dtype="u1").reshape(2, 4)))
    data[12] ^= 255  # in the third inner chunk
    kind, message = refusal(bound, bytes(data))
    assert kind is ChecksumError
    assert message.startswith("codec crc32c: inner chunk (1, 0): the checksum is ")
    with pytest.raises(ChecksumError, match=r"^codec crc32c: inner chunk \(1, 0\): "):
        bound.update(bytes(data), everything((2, 1)), np.full((2, 1), 7, "u1"))


def test_an_array_of_no_dimensions_may_be_sharded() -> None:
    array = zarrlite.create_array(shape=(), dtype="i4", chunks=(), codecs=[ShardingIndexed((), (LITTLE, Gzip()))])
    array[()] = 5
    assert array[()] == 5


# Metadata

WRITTEN: list[tuple[Json, Codec, Json]] = [
    ("bytes", Bytes(None), {"name": "bytes"}),
    (
        {"name": "bytes", "configuration": {"endian": "big"}},
        Bytes("big"),
        {"name": "bytes", "configuration": {"endian": "big"}},
    ),
    ("crc32c", Crc32c(), {"name": "crc32c"}),
    ("gzip", Gzip(5), {"name": "gzip", "configuration": {"level": 5}}),
    (
        {"name": "gzip", "configuration": {"level": 9}},
        Gzip(9),
        {"name": "gzip", "configuration": {"level": 9}},
    ),
    ("zstd", Zstd(3), {"name": "zstd", "configuration": {"level": 3, "checksum": False}}),
    (
        {"name": "zstd", "configuration": {"level": -131072, "checksum": True}},
        Zstd(-131072, True),
        {"name": "zstd", "configuration": {"level": -131072, "checksum": True}},
    ),
    ("packbits", Packbits(), {"name": "packbits"}),
    (
        {
            "name": "packbits",
            "configuration": {"padding_encoding": "first_byte", "first_bit": None, "last_bit": 3},
        },
        Packbits("first_byte", None, 3),
        {"name": "packbits", "configuration": {"padding_encoding": "first_byte", "last_bit": 3}},
    ),
    ("vlen-utf8", VlenUtf8(), {"name": "vlen-utf8"}),
    ("vlen-bytes", VlenBytes(), {"name": "vlen-bytes"}),
    (
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        Transpose((1, 0)),
        {"name": "transpose", "configuration": {"order": [1, 0]}},
    ),
    (
        {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4}},
        Blosc("lz4", 1, "shuffle", 4),
        {
            "name": "blosc",
            "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
        },
    ),
    (
        {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 0, "shuffle": "noshuffle", "blocksize": 8}},
        Blosc("zstd", 0, "noshuffle", None, 8),
        {
            "name": "blosc",
            "configuration": {"cname": "zstd", "clevel": 0, "shuffle": "noshuffle", "blocksize": 8},
        },
    ),
    (
        {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2], "codecs": ["bytes", "gzip"], "index_codecs": ["bytes"]},
        },
        ShardingIndexed((2,), (Bytes(None), Gzip()), (Bytes(None),)),
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2],
                "codecs": [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 5}}],
                "index_codecs": [{"name": "bytes"}],
                "index_location": "end",
            },
        },
    ),
]


@pytest.mark.parametrize(("value", "codec", "written"), WRITTEN)
def test_a_codec_is_read_and_written_in_canonical_form(value: Json, codec: Codec, written: Json) -> None:
    parsed = registry.codecs.parse(value, "/codecs/0", Context())
    assert parsed == codec
    assert parsed.to_json() == written
    assert registry.codecs.parse(written, "/codecs/0", Context()) == codec
    assert hash(parsed) == hash(codec)


SHARDED = {"chunk_shape": [2, 3], "codecs": ["bytes"], "index_codecs": ["bytes"]}
PERMUTATION = "must be a permutation of 0 to 1, not "

CONFIGURATIONS: list[tuple[str, Json, str, str, str]] = [
    ("bytes", {"endian": "middle"}, "/endian", "value", 'must be "little" or "big", not "middle"'),
    ("bytes", {"endian": None}, "/endian", "type", "must be a string, not null"),
    ("bytes", {"endianness": "big"}, "/endianness", "unknown-member", "is not a known member (known: endian)"),
    ("crc32c", {"x": 1}, "/x", "unknown-member", "is not a known member (known: none)"),
    ("gzip", {"level": 10}, "/level", "value", "must be an integer from 0 to 9, not 10"),
    ("gzip", {"level": -1}, "/level", "value", "must be an integer from 0 to 9, not -1"),
    ("gzip", {"level": True}, "/level", "type", "must be an integer, not true"),
    ("gzip", {"level": 5.0}, "/level", "type", "must be an integer, not 5.0"),
    ("gzip", {"level": "5"}, "/level", "type", 'must be an integer, not "5"'),
    ("zstd", {"level": 23}, "/level", "value", "must be an integer from -131072 to 22, not 23"),
    ("zstd", {"level": -131073}, "/level", "value", "must be an integer from -131072 to 22, not -131073"),
    ("zstd", {"level": 1, "checksum": 0}, "/checksum", "type", "must be true or false, not 0"),
    ("transpose", {}, "/order", "missing", "is required and missing"),
    ("transpose", {"order": "C"}, "/order", "type", 'must be an array, not "C"'),
    ("transpose", {"order": [0, 0]}, "/order", "value", PERMUTATION + "[0, 0]"),
    ("transpose", {"order": [1, 2]}, "/order", "value", PERMUTATION + "[1, 2]"),
    ("transpose", {"order": [0, -1]}, "/order/1", "value", f"must be an integer from 0 to {2**63 - 1}, not -1"),
    ("transpose", {"order": [0, True]}, "/order/1", "type", "must be an integer, not true"),
    (
        "packbits",
        {"padding_encoding": "start_byte"},
        "/padding_encoding",
        "value",
        'must be "first_byte" or "last_byte" or "none", not "start_byte"',
    ),
    ("packbits", {"first_bit": -1}, "/first_bit", "value", "must be an integer from 0 to 63, not -1"),
    ("packbits", {"last_bit": 64}, "/last_bit", "value", "must be an integer from 0 to 63, not 64"),
    (
        "packbits",
        {"first_bit": 3, "last_bit": 2},
        "/last_bit",
        "conflict",
        "must not be less than first_bit, which is 3",
    ),
    (
        "packbits",
        {"start_bit": 3},
        "/start_bit",
        "unknown-member",
        "is not a known member (known: first_bit, last_bit, padding_encoding)",
    ),
    ("vlen-utf8", {"x": 1}, "/x", "unknown-member", "is not a known member (known: none)"),
    ("blosc", {}, "/shuffle", "missing", "is required and missing"),
    (
        "blosc",
        {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"},
        "/typesize",
        "missing",
        "is required with shuffle 'shuffle'",
    ),
    (
        "blosc",
        {"cname": "lz5", "clevel": 5, "shuffle": "noshuffle"},
        "/cname",
        "value",
        'must be "lz4" or "lz4hc" or "blosclz" or "zstd" or "snappy" or "zlib", not "lz5"',
    ),
    (
        "blosc",
        {"cname": "lz4", "clevel": 10, "shuffle": "noshuffle"},
        "/clevel",
        "value",
        "must be an integer from 0 to 9, not 10",
    ),
    (
        "blosc",
        {"cname": "lz4", "clevel": 5, "shuffle": 1},
        "/shuffle",
        "type",
        "must be a string, not 1",
    ),
    (
        "blosc",
        {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 0},
        "/typesize",
        "value",
        f"must be an integer from 1 to {2**63 - 1}, not 0",
    ),
    (
        "sharding_indexed",
        {**SHARDED, "chunk_shape": [0, 3]},
        "/chunk_shape/0",
        "value",
        f"must be an integer from 1 to {2**63 - 1}, not 0",
    ),
    (
        "sharding_indexed",
        {**SHARDED, "index_location": "middle"},
        "/index_location",
        "value",
        'must be "start" or "end", not "middle"',
    ),
    ("sharding_indexed", {**SHARDED, "codecs": {}}, "/codecs", "type", "must be an array, not {}"),
    (
        "sharding_indexed",
        {**SHARDED, "codecs": ["bytes", {"name": "gzip", "configuration": {"level": 11}}]},
        "/codecs/1/configuration/level",
        "value",
        "must be an integer from 0 to 9, not 11",
    ),
    (
        "sharding_indexed",
        {**SHARDED, "codecs": []},
        "/codecs",
        "missing",
        (
            'has no array -> bytes codec; add one, such as {"name": "bytes", "configuration": {"endian": "little"}}, '
            "before the bytes -> bytes codecs"
        ),
    ),
    (
        "sharding_indexed",
        {**SHARDED, "codecs": ["gzip", "bytes"]},
        "/codecs/1",
        "conflict",
        (
            "bytes cannot stand here: the order is array -> array codecs, exactly one array -> bytes codec, "
            "bytes -> bytes codecs"
        ),
    ),
]


@pytest.mark.parametrize(("name", "configuration", "where", "kind", "message"), CONFIGURATIONS)
def test_a_configuration_is_refused_where_it_is_wrong(
    name: str, configuration: Json, where: str, kind: str, message: str
) -> None:
    with pytest.raises(MetadataError) as caught:
        registry.codecs.parse({"name": name, "configuration": configuration}, "/codecs/0", Context())
    pointer = "/codecs/0/configuration" + where
    assert (caught.value.pointer, caught.value.kind) == (pointer, kind)
    assert str(caught.value) == f"zarr.json#{pointer}: {message}"


def test_every_fault_of_a_shard_is_found_at_once() -> None:
    value = {
        "name": "sharding_indexed",
        "configuration": {"chunk_shape": [0], "codecs": ["gzip"], "index_codecs": 1, "index_location": None},
    }
    with pytest.raises(MetadataError) as caught:
        registry.codecs.parse(value, "/codecs/0", Context())
    assert [fault.pointer.removeprefix("/codecs/0/configuration") for fault in caught.value.problems] == [
        "/chunk_shape/0",
        "/codecs",
        "/index_codecs",
        "/index_location",
    ]
    assert str(caught.value).endswith("not 0 (and 3 more)")


def codec_json(name: str, **configuration: Json) -> Json:
    return {"name": name, "configuration": configuration}


BIG = codec_json("bytes", endian="big")
# what parses, and does not fit the array of shape (4, 6) of int16 in which it stands
MISFITS: list[tuple[dict[str, Json], str, str, str]] = [
    (
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}},
        "/chunk_grid/configuration/chunk_shape",
        "conflict",
        "must have 2 items, one for each dimension, not 1",
    ),
    (
        {"codecs": ["bytes"]},
        "/codecs/0/configuration/endian",
        "missing",
        'is required for int16: "little" or "big"',
    ),
    (
        {"codecs": ["bytes"], "data_type": "string", "fill_value": ""},
        "/codecs/0",
        "conflict",
        "bytes cannot store string, whose elements vary in length; use vlen-utf8",
    ),
    (
        {"codecs": ["vlen-utf8"]},
        "/codecs/0",
        "conflict",
        "vlen-utf8 stores strings, not int16; use bytes",
    ),
    (
        {"codecs": ["vlen-utf8"], "data_type": "bytes", "fill_value": ""},
        "/codecs/0",
        "conflict",
        "vlen-utf8 stores strings, not bytes; use vlen-bytes",
    ),
    (
        {"codecs": ["packbits"], "data_type": "r16", "fill_value": [0, 0]},
        "/codecs/0",
        "conflict",
        "packbits stores booleans and numbers, not r16",
    ),
    (
        {"codecs": [codec_json("packbits", last_bit=16)]},
        "/codecs/0/configuration/last_bit",
        "conflict",
        "must be below 16, the bits of int16, not 16",
    ),
    (
        {"codecs": [codec_json("packbits", first_bit=1)], "data_type": "bool", "fill_value": False},
        "/codecs/0/configuration/first_bit",
        "conflict",
        "must be below 1, the bits of bool, not 1",
    ),
    (
        {"codecs": [codec_json("transpose", order=[0, 2, 1]), BIG]},
        "/codecs/0/configuration/order",
        "conflict",
        "must be a permutation of the 2 dimensions, not [0, 2, 1]",
    ),
    (
        {"codecs": [codec_json("sharding_indexed", **{**SHARDED, "codecs": [BIG], "index_codecs": ["bytes"]})]},
        "/codecs/0/configuration/index_codecs/0/configuration/endian",
        "missing",
        'is required for uint64: "little" or "big"',
    ),
    (
        {"codecs": [codec_json("sharding_indexed", **{**SHARDED, "index_codecs": [BIG]})]},
        "/codecs/0/configuration/codecs/0/configuration/endian",
        "missing",
        'is required for int16: "little" or "big"',
    ),
    (
        {
            "codecs": [
                codec_json("sharding_indexed", chunk_shape=[2, 4], codecs=[BIG], index_codecs=[BIG]),
            ]
        },
        "/codecs/0/configuration/chunk_shape/1",
        "conflict",
        "must divide 6, the length of the shard, evenly; 4 does not",
    ),
    (
        {"codecs": [codec_json("sharding_indexed", chunk_shape=[2], codecs=[BIG], index_codecs=[BIG])]},
        "/codecs/0/configuration/chunk_shape",
        "conflict",
        "must have 2 dimensions, as the shard has, not 1",
    ),
    (
        {
            "codecs": [
                codec_json("sharding_indexed", chunk_shape=[2, 3], codecs=[BIG], index_codecs=[BIG, "gzip"]),
            ]
        },
        "/codecs/0/configuration/index_codecs",
        "conflict",
        "must make an index of fixed size; no compression here",
    ),
    (
        {
            "codecs": [
                codec_json("transpose", order=[1, 0]),
                codec_json(
                    "sharding_indexed",
                    chunk_shape=[3, 2],
                    codecs=[codec_json("sharding_indexed", chunk_shape=[2, 2], codecs=[BIG], index_codecs=[BIG])],
                    index_codecs=[BIG],
                ),
            ]
        },
        "/codecs/1/configuration/codecs/0/configuration/chunk_shape/0",
        "conflict",
        "must divide 3, the length of the shard, evenly; 2 does not",
    ),
]


@pytest.mark.parametrize(("members", "pointer", "kind", "message"), MISFITS)
def test_what_does_not_fit_its_array_is_refused(
    members: dict[str, Json], pointer: str, kind: str, message: str
) -> None:
    with pytest.raises(MetadataError) as caught:
        ArrayMetadata.from_json(document(**members))
    assert (caught.value.pointer, caught.value.kind) == (pointer, kind)
    assert str(caught.value) == f"zarr.json#{pointer}: {message}"


def test_structured_data_may_lack_the_byte_order() -> None:
    data_type = {"name": "structured", "configuration": {"fields": [["x", "int16"]]}}
    metadata = ArrayMetadata.from_json(document(data_type=data_type, fill_value="AAA=", codecs=["bytes"]))
    assert metadata.byte_order == "little"


@pytest.mark.parametrize(
    ("chain", "order"),
    [
        ([BIG], "big"),
        (["packbits"], "little"),
        ([codec_json("sharding_indexed", chunk_shape=[2, 3], codecs=[BIG], index_codecs=[BIG])], "big"),
    ],
)
def test_the_byte_order_is_that_of_the_innermost_elements(chain: list[Json], order: str) -> None:
    assert ArrayMetadata.from_json(document(codecs=chain)).byte_order == order


# Loading


@pytest.mark.parametrize("name", [n for n in codecs.__all__ if n not in ("ArraySpec",)])
def test_every_codec_is_a_name_of_the_package(name: str) -> None:
    assert issubclass(getattr(codecs, name), Codec)


def test_a_name_that_is_no_codec_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'zarrlite.codecs' has no attribute 'Lzma'$"):
        codecs.Lzma


def test_the_registry_finds_every_codec_by_its_name() -> None:
    for name in registry.codecs.names():
        cls = registry.codecs.find(name)
        assert cls is not None
        if cls.__module__.startswith("zarrlite."):
            assert importlib.import_module(cls.__module__)
            assert name in (cls.name, *cls.aliases)
