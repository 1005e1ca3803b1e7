"""Chunks that are TIFF files. tests/interop/test_tiff.py opens them with other programs."""

from __future__ import annotations

import base64
import contextlib
import pickle
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrlite
from zarrlite import DataError, MemoryStore, tiff
from zarrlite.buffers.ranges import Buffer
from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.codecs import Bytes, Offset, Pad, Zstd
from zarrlite.errors import ArgumentError
from zarrlite.formats.tiff.parse import TiffImage, read_image
from zarrlite.formats.tiff.tags import DATA_TYPES

# proposal `pad`, Example 1
PROPOSED = (
    "SUkqAAgAAAAIAAABAwABAAAAAAEAAAEBAwABAAAAAAEAAAIBAwABAAAAEAAAAAMBAwABAAAAAQAAAAYBAwABAAAAAQAAABEBBAABAAAAbgAAABYB"
    "AwABAAAAAAEAABcBBAABAAAAAAACAAAAAAA="
)


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.arange(np.prod(shape)).reshape(shape) + 1).astype(dtype)


# headers


def test_the_header_of_the_proposal_is_reproduced_byte_for_byte() -> None:
    header = tiff.header((256, 256), "uint16")
    assert header.pad().to_json() == {
        "name": "pad",
        "configuration": {"location": "start", "nbytes": 110, "padding": PROPOSED},
    }
    assert header(bytes(2 * 256 * 256)) == base64.b64decode(PROPOSED)


def test_a_big_endian_rgba_header_has_the_right_tags() -> None:
    header = tiff.header((1, 70000, 5, 4), "int16", rgb=True, byteorder="big", compression="zstd")
    end = 8 + 2 + 11 * 12 + 4  # the two values that are longer than 4 bytes begin here
    entries = [
        (256, 3, 1, b"\x00\x05\x00\x00"),  # a SHORT is left-justified
        (257, 4, 1, struct.pack(">I", 70000)),
        (258, 3, 4, struct.pack(">I", end)),
        (259, 3, 1, struct.pack(">HH", 50000, 0)),
        (262, 3, 1, b"\x00\x02\x00\x00"),
        (273, 4, 1, struct.pack(">I", end + 16)),
        (277, 3, 1, b"\x00\x04\x00\x00"),
        (278, 4, 1, struct.pack(">I", 70000)),
        (279, 4, 1, struct.pack(">I", 1234)),
        (338, 3, 1, b"\x00\x02\x00\x00"),
        (339, 3, 4, struct.pack(">I", end + 8)),
    ]
    directory = b"".join(struct.pack(">HHI", *entry[:3]) + entry[3] for entry in entries)
    long_values = struct.pack(">8H", 16, 16, 16, 16, 2, 2, 2, 2)
    expected = b"MM\0*\0\0\0\x08" + struct.pack(">H", 11) + directory + bytes(4) + long_values
    assert header(bytes(1234)) == expected
    assert header.nbytes == end + 16


@pytest.mark.parametrize(
    ("arguments", "keywords", "nbytes"),
    [
        (((1, 1), "uint8"), {}, 110),
        (((1, 1), "int8"), {}, 122),
        (((1, 1), "float64"), {}, 122),
        (((2**16, 2**16 - 1), "uint8"), {}, 110),
        (((9, 9), "uint16"), {"compression": "zstd"}, 110),
        (((9, 9, 3), "uint8"), {"rgb": True}, 128),
        (((9, 9, 4), "uint8"), {"rgb": True}, 142),
        (((9, 9, 3), "float32"), {"rgb": True}, 146),
        (((9, 9, 4), "float32"), {"rgb": True}, 162),
    ],
)
def test_a_tag_is_written_only_if_its_default_is_wrong(arguments: Any, keywords: Any, nbytes: int) -> None:
    assert tiff.header(*arguments, **keywords).nbytes == nbytes


TYPES = "uint8, uint16, uint32, int8, int16, int32, float32, float64"
TYPE = f"the data type of a TIFF image must be one of {TYPES}, not"
GREY = "chunks of TIFF images must have shape (..., height, width) with 1 for all other lengths, not"
COLOUR = "chunks of TIFF images must have shape (..., height, width, samples) with 1 for all other lengths, not"
SAMPLES = "the last length of chunks of RGB images must be 3, or 4 with alpha, not"
SIZE = "height and width of a TIFF image must be from 1 to 4294967295, not"
END = "a TIFF file must have at most 4294967295 bytes, not"


@pytest.mark.parametrize(
    ("chunks", "dtype", "keywords", "message"),
    [
        ((5,), "uint8", {}, f"{GREY} (5,)"),
        ((2, 5, 5), "uint8", {}, f"{GREY} (2, 5, 5)"),
        ((5, 3), "uint8", {"rgb": True}, f"{COLOUR} (5, 3)"),
        ((2, 5, 5, 3), "uint8", {"rgb": True}, f"{COLOUR} (2, 5, 5, 3)"),
        ((5, 5, 2), "uint8", {"rgb": True}, f"{SAMPLES} 2"),
        ((5, 5), "uint64", {}, f"{TYPE} uint64"),
        ((5, 5), "complex64", {}, f"{TYPE} complex64"),
        ((5, 5), "uint8", {"byteorder": "native"}, "byteorder must be 'little' or 'big', not 'native'"),
        ((5, 5), "uint8", {"compression": "gzip"}, "compression must be None or 'zstd', not 'gzip'"),
        ((5, 0), "uint8", {}, f"{SIZE} 5 and 0"),
        ((2**32, 1), "uint8", {"compression": "zstd"}, f"{SIZE} 4294967296 and 1"),
        ((2**16, 2**16), "uint8", {}, f"{END} 4294967406; use smaller chunks"),
        ((2**30, 2), "float32", {}, f"{END} 8589934714; use smaller chunks"),
    ],
)
def test_chunks_that_cannot_be_tiff_images_are_refused(chunks: Any, dtype: str, keywords: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        tiff.header(chunks, dtype, **keywords)
    assert str(caught.value) == message


def test_a_header_is_refused_for_a_strip_of_the_wrong_size() -> None:
    with pytest.raises(ArgumentError, match=r"^a TIFF image of shape \(2, 3\) must have 12 bytes, not 11$"):
        tiff.header((2, 3), "uint16")(bytes(11))

    class Long(bytes):
        def __len__(self) -> int:
            return 2**32 - 110

    with pytest.raises(ArgumentError, match=f"^{END} 4294967296; use smaller chunks$"):
        tiff.header((2, 3), "uint16", compression="zstd")(Long())


headers = st.builds(
    tiff.Header,
    height=st.integers(1, 2**32 - 1),
    width=st.integers(1, 2**32 - 1),
    samples=st.sampled_from([1, 3, 4]),
    data_type=st.sampled_from(list(DATA_TYPES)),
    byteorder=st.sampled_from(["little", "big"]),
    compression=st.just("zstd"),
)
small_headers = st.builds(
    tiff.Header,
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    samples=st.sampled_from([1, 3, 4]),
    data_type=st.sampled_from(list(DATA_TYPES)),
    byteorder=st.sampled_from(["little", "big"]),
)


@given(headers | small_headers, st.binary(min_size=1, max_size=9), st.binary(max_size=3))
def test_every_header_that_is_written_can_be_parsed(header: tiff.Header, data: bytes, after: bytes) -> None:
    data = data if header.compression else bytes(header.pixel_bytes)
    store = MemoryStore({"0.0.tif": header(data) + data + after})
    assert read_image(store, "0.0.tif") == TiffImage(header, header.nbytes, len(after))


@given(small_headers, st.integers(0, 161), st.binary(min_size=1, max_size=6), st.integers(0, 200))
def test_a_damaged_header_is_refused_or_describes_a_strip_inside_the_file(
    header: tiff.Header, offset: int, damage: bytes, cut: int
) -> None:
    value = bytearray(header(bytes(header.pixel_bytes)) + bytes(header.pixel_bytes))
    value[offset : offset + len(damage)] = damage
    del value[len(value) - cut :]
    store = MemoryStore({"0.0.tif": bytes(value)})
    with contextlib.suppress(DataError):
        image = read_image(store, "0.0.tif")
        assert image.before + image.after <= len(value)


# arrays of TIFF images


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize(
    ("shape", "chunks", "rgb"),
    [
        ((5, 7), (3, 4), False),
        ((2, 2, 5, 7), (1, 1, 5, 4), False),
        ((5, 7, 3), (3, 4, 3), True),
        ((2, 5, 7, 4), (1, 3, 4, 4), True),
    ],
)
def test_an_array_of_tiff_images_reads_back(
    shape: Any, chunks: Any, rgb: bool, byteorder: str, compression: str | None
) -> None:
    data = numbers(shape, "int32")
    store = MemoryStore()
    keywords: Any = {"rgb": rgb, "byteorder": byteorder, "compression": compression}
    tiff.create_array(store, data=data, chunks=chunks, **keywords)
    reopened = zarrlite.open_array(store, mode="r")
    assert np.array_equal(reopened[...], data)
    assert reopened.metadata.chunk_key_encoding == SuffixKeys(".tiff")
    header = tiff.header(chunks, "int32", **keywords)
    for key in store.list():
        if key != "zarr.json":
            value = bytes(store.get(key) or b"")
            assert value.startswith(header(value[header.nbytes :]))
            assert len(value) - header.nbytes == header.pixel_bytes or compression


def test_the_document_has_the_codecs_of_tiff_images() -> None:
    uncompressed = tiff.create_array("memory://", shape=(512, 512), dtype="uint16", chunks=(256, 256))
    compressed = tiff.create_array("memory://", shape=(512, 512), dtype=">u2", chunks=(256, 256), compression="zstd")
    pad = {"name": "pad", "configuration": {"location": "start", "nbytes": 110}}
    assert [codec.to_json() for codec in uncompressed.metadata.codecs] == [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "pad", "configuration": {**pad["configuration"], "padding": PROPOSED}},  # type: ignore[dict-item]
    ]
    assert [codec.to_json() for codec in compressed.metadata.codecs] == [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "zstd", "configuration": {"level": 3, "checksum": False}},
        pad,
    ]


def test_keywords_of_create_array_are_passed_on() -> None:
    store = MemoryStore()
    array = tiff.create_array(
        store, name="a/b", shape=(4, 4), dtype="uint8", chunks=(2, 2), fill_value=7, attributes={"x": 1},
        chunk_key_encoding=SuffixKeys(".tif", "v2"), write_empty_chunks=True,
    )  # fmt: skip
    array[...] = 7
    assert (array.path, array.fill_value, dict(array.attrs)) == ("a/b", 7, {"x": 1})
    assert sorted(store.list_prefix("a/b/")) == [
        "a/b/0.0.tif", "a/b/0.1.tif", "a/b/1.0.tif", "a/b/1.1.tif", "a/b/zarr.json",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"shape": (4, 4)}, "an array needs shape= and dtype=, or data="),
        ({"dtype": "u1"}, "an array needs shape= and dtype=, or data="),
        ({"data": np.eye(2), "compression": ["zstd"]}, "compression must be None or 'zstd', not ['zstd']"),
        ({"data": [["a", "b"]]}, f"{TYPE} fixed_length_utf32"),
    ],
)
def test_arguments_of_create_array_that_do_not_fit_are_refused(keywords: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        tiff.create_array("memory://", chunks=(2, 2), **keywords)
    assert str(caught.value) == message


@pytest.mark.parametrize("keyword", ["codecs", "filters", "serializer", "compressors", "shards"])
def test_create_array_has_no_keywords_for_codecs(keyword: str) -> None:
    """The codecs are determined by `rgb`, `byteorder` and `compression`."""
    with pytest.raises(TypeError, match=keyword):
        tiff.create_array("memory://", data=np.eye(2), chunks=(2, 2), **{keyword: None})


def test_ragged_data_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^data must be convertible to an array: "):
        tiff.create_array("memory://", data=[[1, 2], [3]], chunks=(2, 2))


def strip_byte_counts(value: Buffer | None) -> int:
    """Return the value of StripByteCounts: bytes 102 to 105 of a header of 110 bytes."""
    return struct.unpack("<I", bytes(value or b"")[102:106])[0]


def test_only_open_array_of_tiff_writes_headers_of_compressed_chunks() -> None:
    store = MemoryStore()
    tiff.create_array(store, data=numbers((4, 8), "u2"), chunks=(4, 4), compression="zstd")
    zarrlite.open_array(store)[0, 0] = 99
    assert bytes(store.get("c/0/0.tiff") or b"")[:110] == bytes(110)

    array = tiff.open_array(store)
    array[0, ::4] = 100  # one element in each of the two chunks
    array.append(numbers((4, 8), "u2"))
    for key in ("c/0/0.tiff", "c/0/1.tiff", "c/1/0.tiff", "c/1/1.tiff"):
        assert strip_byte_counts(store.get(key)) == (store.size(key) or 0) - 110 > 0
    assert zarrlite.open_array(store, mode="r")[0].tolist() == [100, 2, 3, 4, 100, 6, 7, 8]


@pytest.mark.parametrize("rgb", [False, True])
@pytest.mark.parametrize("codec", ["pad", "offset"])
def test_open_array_derives_the_header_function_from_the_document(codec: str, rgb: bool) -> None:
    """A chunk of shape (1, 9, 3) can be a grey or an RGB image; the size of the padding shows which."""
    header = tiff.header((1, 9, 3), "float32", rgb=rgb, byteorder="big", compression="zstd")
    last = header.pad() if codec == "pad" else Offset(header.nbytes, prefix_func=header)
    store = MemoryStore()
    codecs = [Bytes("big"), Zstd(), last]
    zarrlite.create_array(store, name="a", shape=(2, 9, 3), dtype="float32", chunks=(1, 9, 3), codecs=codecs)
    array = tiff.open_array(store, path="a", write_empty_chunks=True)
    array[...] = 0
    assert array.metadata.codecs == (*codecs[:2], last)
    value = bytes(store.get("a/c/1/0/0") or b"")
    assert value.startswith(header(value[header.nbytes :]))
    assert np.array_equal(pickle.loads(pickle.dumps(array))[...], array[...])
    assert tiff.open_array(store, path="a", mode="r").read_only


def test_open_array_keeps_a_header_in_the_document() -> None:
    store = MemoryStore()
    codecs = [Bytes(), Pad("start", 110, bytes(range(110)))]
    zarrlite.create_array(store, data=numbers((4, 4), "u2"), chunks=(4, 4), codecs=codecs)
    tiff.open_array(store)[...] = 9
    assert bytes(store.get("c/0/0") or b"")[:110] == bytes(range(110))


def test_open_array_passes_further_options_on() -> None:
    store = MemoryStore()
    tiff.create_array(store, data=numbers((4, 4), "u2"), chunks=(4, 4), compression="zstd")
    array = tiff.open_array(store, options={"/codecs/2": {"keep_padding": True}})
    before = bytes(store.get("c/0/0.tiff") or b"")[:110]
    array[...] = 9
    assert bytes(store.get("c/0/0.tiff") or b"")[:110] == before


CHAIN = "the codecs of TIFF images must be bytes, then optionally zstd, then offset or pad with location 'start'"


@pytest.mark.parametrize(
    ("codecs", "message"),
    [
        ([Bytes()], CHAIN),
        ([Bytes(), "gzip", Pad("start", 110)], CHAIN),
        ([Bytes(), Pad("end", 110)], CHAIN),
        (
            [Bytes(), Pad("start", 111)],
            "the padding must have the size of a TIFF header for uint16 chunks of shape (4, 4), not 111 bytes",
        ),
    ],
)
def test_open_array_refuses_codecs_of_chunks_that_are_not_tiff_files(codecs: Any, message: str) -> None:
    array = zarrlite.create_array("memory://", shape=(4, 4), dtype="u2", codecs=codecs)
    with pytest.raises(ArgumentError) as caught:
        tiff.open_array(array.store)
    assert str(caught.value) == message
