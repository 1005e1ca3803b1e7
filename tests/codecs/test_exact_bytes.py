"""The encoded form of each codec, byte by byte, and streams written by other encoders."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.decoding import decode, encode, pipeline
from zarrlite.codecs import Bytes, Crc32c, Gzip, Packbits, Transpose, VlenBytes, VlenUtf8, Zstd
from zarrlite.data_types import from_dtype
from zarrlite.errors import DataError
from zarrlite.libraries import zstd
from zarrlite.libraries.crc32c import checksum

# codec chain, data type, array, encoded bytes in hexadecimal

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
def test_a_chain_encodes_to_exactly_these_bytes_and_decodes_them(
    chain: list[Any], dtype: Any, values: Any, encoded: str
) -> None:
    data_type = from_dtype(dtype)
    array = np.array(values, data_type.dtype)
    bound = pipeline(chain, array.shape, dtype)
    data = bytes.fromhex(encoded)
    assert encode(bound, array).hex(" ") == data.hex(" ")
    found = np.asarray(decode(bound, data), data_type.dtype)
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes() or found.tolist() == array.tolist()
    if bound.encoded_size is not None:
        assert bound.encoded_size == len(data)
    for short in range(len(data)):  # no prefix of the encoded bytes is a valid chunk
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
    assert decode(bound, encode(bound, np.array(lossy).astype(dtype))).tolist() == kept


PACKED = {"bool": 1, "int8": 8, "uint8": 8, "int16": 16, "uint32": 32, "int64": 64, "float16": 16, "complex64": 32}


@settings(max_examples=200)
@given(st.data())
def test_packbits_packs_bit_by_bit_as_specified(data: Any) -> None:
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
    assert encode(bound, array) == head + packed + tail
    again = np.asarray(decode(bound, head + packed + tail))
    assert encode(bound, again) == head + packed + tail
    if (low, high) == (0, bits - 1):
        assert again.astype(dtype).tobytes() == array.tobytes()


def test_packbits_round_trips_more_than_one_block() -> None:
    array = (np.arange(2**17 + 5) % 7).astype("u1")
    bound = pipeline([Packbits(last_bit=2)], array.shape, "u1")
    np.testing.assert_array_equal(decode(bound, encode(bound, array)), array)


# streams written by other encoders, with their decoded bytes

TEXT = b"zarrlite " * 8
FRAME = zstandard.ZstdCompressor().compress(TEXT)
SKIPPABLE = bytes.fromhex("502a4d18 03000000 616263")
NAMED = (  # a gzip member with a name, a comment, an extra field and a header checksum
    b"\x1f\x8b\x08\x1e\0\0\0\0\0\x03" + b"\x02\0xy" + b"name\0" + b"comment\0"
)
NAMED += (zlib.crc32(NAMED) & 0xFFFF).to_bytes(2, "little")
_RAW = zlib.compressobj(6, zlib.DEFLATED, -15)
NAMED += _RAW.compress(TEXT) + _RAW.flush() + struct.pack("<II", zlib.crc32(TEXT), len(TEXT))

READABLE = [
    ("gzip, one member", Gzip(), gzip.compress(TEXT), TEXT),
    ("gzip, two members", Gzip(), gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:]), TEXT),
    ("gzip, an empty member at the end", Gzip(), gzip.compress(TEXT) + gzip.compress(b""), TEXT),
    ("gzip, every header field", Gzip(), NAMED, TEXT),
    ("gzip, stored", Gzip(), gzip.compress(TEXT, 0), TEXT),
    ("gzip, empty", Gzip(), gzip.compress(b""), b""),
    ("zstd, one frame", Zstd(), FRAME, TEXT),
    ("zstd, two frames", Zstd(), FRAME + FRAME, TEXT * 2),
    ("zstd, no content size", Zstd(), zstandard.ZstdCompressor(write_content_size=False).compress(TEXT), TEXT),
    (
        "zstd, sized and unsized frames",
        Zstd(),
        FRAME + zstandard.ZstdCompressor(write_content_size=False).compress(TEXT) + FRAME,
        TEXT * 3,
    ),
    ("zstd, a skippable frame before", Zstd(), SKIPPABLE + FRAME, TEXT),
    ("zstd, a skippable frame after", Zstd(), FRAME + SKIPPABLE, TEXT),
    ("zstd, a checksum", Zstd(), zstandard.ZstdCompressor(write_checksum=True).compress(TEXT), TEXT),
    ("zstd, empty", Zstd(), zstandard.ZstdCompressor().compress(b""), b""),
    ("zstd, a block that is not compressed", Zstd(), bytes.fromhex("28b52ffd 2003 190000 616263"), b"abc"),
]


@pytest.mark.parametrize(("codec", "data", "text"), [row[1:] for row in READABLE], ids=[row[0] for row in READABLE])
def test_every_valid_stream_of_a_compression_format_is_read(codec: Any, data: bytes, text: bytes) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        assert bytes(codec.decode(buffer, len(text))) == text


@settings(max_examples=60)
@given(st.binary(max_size=300), st.integers(0, 9), st.sampled_from([-131072, -5, 0, 1, 22]), st.booleans())
def test_compression_round_trips_at_every_level(data: bytes, gzip_level: int, zstd_level: int, check: bool) -> None:
    for codec in (Gzip(gzip_level), Zstd(zstd_level, check)):
        encoded = codec.encode(data)
        assert bytes(codec.decode(encoded, len(data))) == data
        assert len(encoded) <= codec.max_encoded_size(len(data))
        assert codec.encode(memoryview(data)) == encoded
        assert codec.encoded_size(len(data)) is None


def test_gzip_output_is_reproducible() -> None:
    assert Gzip().encode(b"abc")[:10].hex() == "1f8b0800000000000003"
    assert gzip.decompress(Gzip().encode(TEXT)) == TEXT


def test_a_zstd_checksum_is_written_and_verified() -> None:
    encoded = Zstd(3, checksum=True).encode(TEXT)
    assert zstandard.get_frame_parameters(encoded).has_checksum
    assert not zstandard.get_frame_parameters(Zstd().encode(TEXT)).has_checksum
    with pytest.raises(zstd.Error):
        Zstd().decode(encoded[:-1] + bytes([encoded[-1] ^ 1]), len(TEXT))


def test_checksums_accept_every_kind_of_buffer() -> None:
    for buffer in (b"123456789", bytearray(b"123456789"), memoryview(b"123456789")):
        assert checksum(buffer) == 0xE3069283
    assert checksum(b"") == 0
