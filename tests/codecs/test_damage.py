"""Damaged chunks: each codec's error message says what is wrong."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.codecs.decoding import LITTLE, GetOnlyStore, pipeline, refusal
from zarrlite.codecs import ArraySpec, Crc32c, Gzip, Packbits, Transpose, VlenBytes, VlenUtf8, Zstd
from zarrlite.data_types import from_dtype
from zarrlite.errors import ArgumentError, ChecksumError, DataError, TruncatedError
from zarrlite.libraries import zstd
from zarrlite.libraries.crc32c import checksum

# DAMAGED: for each case, its name, codec chain, shape and data type, stored bytes, error class and message

# error messages that depend on the zstd library in use
if zstd.library == "zstandard":
    NO_FRAME = "error when determining content size"
    UNKNOWN_FRAME = "zstd decompressor error: Unknown frame descriptor"
else:
    NO_FRAME = (
        "Error when getting information from the header of a Zstandard frame. Ensure the frame_buffer argument starts "
        "from the beginning of a frame, and its length is not less than the frame header (6~18 bytes)."
    )
    UNKNOWN_FRAME = "Unable to decompress Zstandard data: Unknown frame descriptor"
FRAME = Zstd().encode(b"zarrlite " * 8)  # decodes to 72 bytes
CHECKED = bytes(Crc32c().encode(b"\1\2"))
SWAPPED = int.from_bytes(CHECKED[2:])  # the checksum, read as a big-endian number
DAMAGED: list[tuple[str, list[Any], Any, bytes, type, str]] = [
    (
        "bytes, too short",
        [LITTLE],
        ((2, 2), "i4"),
        bytes(15),
        TruncatedError,
        "codec bytes: has 15 bytes, but a chunk of shape (2, 2) has 16",
    ),
    (
        "bytes, too long",
        [LITTLE],
        ((2, 2), "i4"),
        bytes(17),
        TruncatedError,
        "codec bytes: has 17 bytes, but a chunk of shape (2, 2) has 16",
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
        "crc32c, shorter than the checksum",
        [LITTLE, Crc32c()],
        ((2,), "u1"),
        b"\1\2\3",
        TruncatedError,
        "codec crc32c: has only 3 bytes, but crc32c alone adds 4",
    ),
    (
        "crc32c, a bit flipped",
        [LITTLE, Crc32c()],
        ((2,), "u1"),
        b"\1\3" + CHECKED[2:],
        ChecksumError,
        (
            f"codec crc32c: the stored checksum is {checksum(bytes([1, 2])):08x}, "
            f"but that of the data is {checksum(bytes([1, 3])):08x}"
        ),
    ),
    (
        "crc32c, big endian",
        [LITTLE, Crc32c()],
        ((2,), "u1"),
        b"\1\2" + CHECKED[:1:-1],
        ChecksumError,
        f"codec crc32c: the stored checksum is {SWAPPED:08x}, but that of the data is {checksum(bytes([1, 2])):08x}",
    ),
    (
        "crc32c, more than fits",
        [LITTLE, Crc32c()],
        ((2,), "u1"),
        Crc32c().encode(b"\1\2\3"),
        TruncatedError,
        "has more than 6 bytes, the limit for this chunk",
    ),
    (
        "crc32c, less than needed",
        [LITTLE, Crc32c()],
        ((2,), "u1"),
        Crc32c().encode(b"\1"),
        TruncatedError,
        "codec bytes: has 1 bytes, but a chunk of shape (2,) has 2",
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
        "codec gzip: decompresses to more than the 9 bytes that are allowed",
    ),
    (
        "gzip, a second member that does not fit",
        [LITTLE, Gzip()],
        ((9,), "u1"),
        gzip.compress(bytes(9)) + gzip.compress(bytes(1)),
        TruncatedError,
        "codec gzip: decompresses to more than the 9 bytes that are allowed",
    ),
    (
        "zstd, nothing",
        [LITTLE, Zstd()],
        ((9,), "u1"),
        b"",
        DataError,
        f"codec zstd: cannot be decoded: {NO_FRAME}",
    ),
    (
        "zstd, cut off",
        [LITTLE, Zstd()],
        ((72,), "u1"),
        FRAME[:-1],
        DataError,
        "codec zstd: the zstd frame ends too early",
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
        f"codec zstd: cannot be decoded: {UNKNOWN_FRAME}",
    ),
    (
        "zstd, a second frame that does not fit",
        [LITTLE, Zstd()],
        ((72,), "u1"),
        FRAME + FRAME,
        TruncatedError,
        "codec zstd: decompresses to more than the 72 bytes that are allowed",
    ),
    (
        "zstd, a size that does not fit",
        [LITTLE, Zstd()],
        ((71,), "u1"),
        FRAME,
        TruncatedError,
        "codec zstd: claims to decompress to 72 bytes, but at most 71 are allowed",
    ),
    (
        "vlen, shorter than the count",
        [VlenUtf8()],
        ((1,), "string"),
        b"\1\0\0",
        TruncatedError,
        "codec vlen-utf8: has 3 bytes, but the element count alone takes 4",
    ),
    (
        "vlen, another count",
        [VlenUtf8()],
        ((1,), "string"),
        bytes.fromhex("02000000 00000000 00000000"),
        DataError,
        "codec vlen-utf8: has 2 elements, but the chunk has 1",
    ),
    (
        "vlen, no room for the lengths",
        [VlenUtf8()],
        ((2,), "string"),
        bytes.fromhex("02000000 00000000"),
        TruncatedError,
        "codec vlen-utf8: has 8 bytes, but the element count and 2 lengths alone take 12",
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
        "vlen, bytes after the end",
        [VlenBytes()],
        ((1,), "bytes"),
        bytes.fromhex("01000000 01000000 61 62"),
        TruncatedError,
        "codec vlen-bytes: has 1 bytes after the last element",
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
        "codec packbits: has 1 bytes, but a chunk of shape (9,) has 2",
    ),
    (
        "packbits, too long",
        [Packbits("last_byte")],
        ((9,), "bool"),
        bytes(4),
        TruncatedError,
        "codec packbits: has 4 bytes, but a chunk of shape (9,) has 3",
    ),
    (
        "packbits, a wrong count at the start",
        [Packbits("first_byte")],
        ((9,), "bool"),
        b"\6\0\0",
        DataError,
        "codec packbits: the padding count must be 7, not 6",
    ),
    (
        "packbits, a wrong count at the end",
        [Packbits("last_byte")],
        ((9,), "bool"),
        b"\0\0\x08",
        DataError,
        "codec packbits: the padding count must be 7, not 8",
    ),
    (
        "packbits, padding that is not 0",
        [Packbits()],
        ((9,), "bool"),
        b"\0\x80",
        DataError,
        "codec packbits: the padding bits must be 0",
    ),
]


@pytest.mark.parametrize(
    ("chain", "spec", "data", "kind", "message"), [row[1:] for row in DAMAGED], ids=[row[0] for row in DAMAGED]
)
def test_a_damaged_chunk_is_refused_with_the_reason(
    chain: list[Any], spec: Any, data: bytes, kind: type, message: str
) -> None:
    assert refusal(pipeline(chain, *spec), data) == (kind, message)


def test_errors_of_an_array_name_the_chunk() -> None:
    store = zarrlite.MemoryStore()
    array = zarrlite.create_array(
        store, name="a/b", shape=(2, 2), dtype="u1", chunks=(2, 1), codecs=["bytes", "crc32c"]
    )
    array[...] = 1
    store.set("a/b/c/0/1", b"\1\2\3\4\5\6")
    with pytest.raises(ChecksumError) as caught:
        array[...]
    computed, stored = checksum(b"\1\2"), int.from_bytes(b"\3\4\5\6", "little")
    expected = (
        f"chunk a/b/c/0/1, codec crc32c: the stored checksum is {stored:08x}, but that of the data is {computed:08x}"
    )
    assert str(caught.value) == expected
    assert (caught.value.key, caught.value.codec) == ("a/b/c/0/1", "crc32c")
    with pytest.raises(ChecksumError, match=r"^chunk a/b/c/0/1, codec crc32c: "):
        array[0, 1] = 5


@pytest.mark.parametrize(
    ("shape", "selection", "size", "message"),
    [
        ((8,), 7, 7, "chunk c/0, codec bytes: has 7 bytes, but a chunk of shape (8,) has 8"),
        ((8,), 0, 7, "chunk c/0, codec bytes: has 7 bytes, but a chunk of shape (8,) has 8"),
        ((8,), [0, 6], 9, "chunk c/0, codec bytes: has 9 bytes, but a chunk of shape (8,) has 8"),
        ((8,), slice(None), 7, "chunk c/0, codec bytes: has 7 bytes, but a chunk of shape (8,) has 8"),
        ((8,), slice(None), 9, "chunk c/0, codec bytes: has 9 bytes, but a chunk of shape (8,) has 8"),
    ],
)
def test_a_chunk_of_wrong_size_is_refused_when_a_part_is_read(
    shape: Any, selection: Any, size: int, message: str
) -> None:
    store = zarrlite.MemoryStore()
    array = zarrlite.create_array(store, shape=shape, dtype="u1", chunks=shape, codecs=["bytes"])
    store.set("c/0", bytes(size))
    with pytest.raises(TruncatedError) as caught:
        array[selection]
    assert str(caught.value) == message


@pytest.mark.parametrize("selection", [7, slice(1, 8, 6), [1, 7]])
def test_a_short_chunk_of_unknown_size_is_refused(selection: Any) -> None:
    values: dict[str, bytes] = {}
    zarrlite.create_array(values, shape=8, dtype="u1", chunks=8, codecs=["bytes"])
    values["c/0"] = bytes(7)
    with pytest.raises(TruncatedError) as caught:
        zarrlite.open_array(GetOnlyStore(values), mode="r")[selection]
    assert str(caught.value) == "chunk c/0, codec bytes: ends before byte 8"


@pytest.mark.parametrize("size", [0, 7, 9])
@pytest.mark.parametrize("codecs", [["bytes"], [Transpose((0,)), "bytes"]], ids=["bytes", "transpose"])
def test_a_whole_chunk_of_wrong_size_is_refused_in_a_store_without_sizes(codecs: Any, size: int) -> None:
    values: dict[str, bytes] = {}
    zarrlite.create_array(values, shape=8, dtype="u1", chunks=8, codecs=codecs)
    values["c/0"] = bytes(size)
    with pytest.raises(TruncatedError) as caught:
        zarrlite.open_array(GetOnlyStore(values), mode="r")[...]
    assert str(caught.value) == f"chunk c/0, codec bytes: has {size} bytes, but a chunk of shape (8,) has 8"


@pytest.mark.parametrize("bad", [1.5, "text", None])
def test_elements_of_data_type_bytes_must_be_bytes(bad: Any) -> None:
    array = zarrlite.create_array(shape=(2,), dtype="bytes", chunks=(2,))
    with pytest.raises(ArgumentError) as caught:
        array[0] = bad
    assert f"an element must be bytes, not {type(bad).__name__}" in str(caught.value)


def test_vlen_bytes_refuses_text() -> None:
    spec = ArraySpec((1,), from_dtype("bytes"), b"")
    with pytest.raises(ArgumentError, match=r"^an element must be bytes, not str$"):
        VlenBytes().encode(np.array(["text"], object), spec)


def test_elements_of_four_gibibytes_are_refused() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 2**32

    with pytest.raises(ArgumentError, match=r"^vlen-bytes elements must be smaller than 4 GiB$"):
        VlenBytes().join([Huge()])
