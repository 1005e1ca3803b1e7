"""Folders of TIFF files, opened as arrays. Files that other programs wrote: tests/interop/test_tiff.py."""

from __future__ import annotations

import pickle
import struct
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import DataError, MemoryStore, ZarrliteError, tiff
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.errors import ArgumentError, NodeExistsError, NodeNotFoundError, ReadOnlyError, TruncatedError

Tags = dict[int, tuple[int, tuple[int, ...]]]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.arange(np.prod(shape)).reshape(shape) + 1).astype(dtype)


def build(tags: Tags, order: str = "<", pixels: bytes = b"", *, last: bool = False, following: int = 0) -> bytes:
    """A TIFF file of tags, with the directory in front of the pixels or behind; 273 is set to where pixels are."""
    mark = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 42)
    size = 2 + 12 * len(tags) + 4
    long = {tag: struct.pack(f"{order}{len(v)}{'H' if t == 3 else 'I'}", *v) for tag, (t, v) in tags.items()}
    extra = sum(len(v) for v in long.values() if len(v) > 4)
    at = 8 + len(pixels) if last else 8
    start = 8 if last else 8 + size + extra
    directory, behind = struct.pack(order + "H", len(tags)), b""
    for tag, (type_, values) in sorted(tags.items()):
        packed = struct.pack(order + "I", start) if tag == 273 and len(values) == 1 else long[tag]
        if len(packed) > 4:
            packed, behind = struct.pack(order + "I", at + size + len(behind)), behind + packed
        directory += struct.pack(order + "HHI", tag, type_, len(values)) + packed.ljust(4, b"\0")
    directory += struct.pack(order + "I", following) + behind
    return mark + struct.pack(order + "I", at) + (pixels + directory if last else directory + pixels)


def grey(shape: tuple[int, int], changes: Tags | None = None) -> Tags:
    """The tags of a uint8 picture, some of them changed; no values: not there."""
    height, width = shape
    tags: Tags = {
        256: (3, (width,)), 257: (3, (height,)), 258: (3, (8,)), 259: (3, (1,)), 262: (3, (1,)), 273: (4, (0,)),
        279: (4, (height * width,)),
    }  # fmt: skip
    return {tag: value for tag, value in {**tags, **(changes or {})}.items() if value[1]}


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("c/{}/{}.tiff", SuffixKeys(".tiff")),
        ("c.{}.{}.tiff", SuffixKeys(".tiff", {"name": "default", "configuration": {"separator": "."}})),
        ("{}/{}.tif", SuffixKeys(".tif", {"name": "v2", "configuration": {"separator": "/"}})),
        ("{}.{}.TIF", SuffixKeys(".TIF", "v2")),
        ("{}.{}.ome.tif", SuffixKeys(".ome.tif", "v2")),
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_the_names_of_files_give_the_chunk_key_encoding(name: str, encoding: Any, last: bool) -> None:
    data = numbers((4, 33), "u1")
    files = {
        name.format(i, j): build(grey((2, 3)), ">", data[2 * i : 2 * i + 2, 3 * j : 3 * j + 3].tobytes(), last=last)
        for i in range(2)
        for j in range(11)
    }
    array = tiff.open_folder(MemoryStore({**files, "notes.txt": b"", "thumbs/db": b""}))
    assert array.metadata.chunk_key_encoding == encoding
    assert (array.shape, array.chunks, array.dtype) == ((4, 33), (2, 3), np.uint8)
    assert np.array_equal(array[...], data)
    assert sorted(array.store.list()) == sorted([*files, "zarr.json"])


def test_gaps_are_fill_values_and_the_shape_can_be_given() -> None:
    store = MemoryStore({"3/1/2.tif": build(grey((2, 3)), pixels=bytes(range(6)))})
    assert tiff.open_folder(store).shape == (4, 4, 9)
    array = tiff.open_folder(store, shape=(5, 3, 7), fill_value=9)
    assert array.shape == (5, 3, 7)
    assert array[3].tolist() == [[9] * 7, [9] * 7, [9] * 6 + [0]]
    with pytest.raises(ArgumentError, match=r"^3/1/2\.tif lies outside of shape \(5, 3, 6\)$"):
        tiff.open_folder(store, shape=(5, 3, 6))
    with pytest.raises(
        ArgumentError, match=r"^shape must have 3 lengths, as the names of the files say, not \(5, 3\)$"
    ):
        tiff.open_folder(store, shape=(5, 3))


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_what_zarrlite_wrote_is_a_folder_too(compression: str | None) -> None:
    data = numbers((2, 6, 8, 3), "float32")
    store = MemoryStore()
    written = tiff.create_array(
        store, data=data, chunks=(1, 3, 4, 3), rgb=True, byteorder="big", compression=compression
    )
    array = tiff.open_folder(store)
    assert np.array_equal(array[...], data)
    assert array.metadata.to_json() == written.metadata.to_json()


def test_a_folder_is_only_read_and_pickles() -> None:
    store = MemoryStore({"0.0.tif": build(grey((2, 3)), pixels=bytes(range(6)))})
    array = tiff.open_folder(store)
    assert list(store.list()) == ["0.0.tif"]
    assert array.read_only
    with pytest.raises(ReadOnlyError):
        array[...] = 1
    assert zarrlite.open_array(array.store, mode="r")[1, 2] == 5
    assert array.store.list_dir("") == (["0.0.tif", "zarr.json"], [])
    assert array.store == tiff.open_folder(store).store != tiff.open_folder(store, shape=(2, 2)).store
    assert pickle.loads(pickle.dumps(array))[...].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("last", [False, True])
def test_the_document_is_written_beside_on_request(last: bool) -> None:
    """Without compression it holds the first header, so that chunks that are written are TIFF files as well."""
    first = build(grey((2, 3)), pixels=bytes(range(6)), last=last)
    store = MemoryStore({"0.0.tif": first})
    array = tiff.open_folder(store, shape=(2, 6), save=True)
    again = zarrlite.open_array(store)
    assert again.metadata == array.metadata
    again[:, 3:] = again[:, :3]
    assert bytes(store.get("0.1.tif") or b"") == first
    with pytest.raises(NodeExistsError, match=r"^there is a zarr\.json in .* already$"):
        tiff.open_folder(store, save=True)


def test_long_headers_do_not_go_into_the_document() -> None:
    tags = grey((2, 3), {65000: (4, (0,) * 2**14)})
    array = tiff.open_folder({"0.0.tif": build(tags, pixels=bytes(range(6)))})
    assert array.metadata.codecs[1].to_config() == {"location": "start", "nbytes": 8 + 6 + 12 * 8 + 2**16}
    assert array[1, 2] == 5


class Counting(MemoryStore):
    """Counts the bytes that are read."""

    total = 0

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        value = super().get(key, byte_range)
        self.total += len(value or b"")
        return value


def test_only_headers_are_read_when_a_folder_is_opened() -> None:
    pixels = bytes(1000 * 1000)
    store = Counting({f"0.{i}.tif": build(grey((1000, 1000)), pixels=pixels, last=i % 2 == 1) for i in range(2)})
    store.erase("0.0.tif")  # leaves the one with its directory behind the pixels
    tiff.open_folder(store)
    assert store.total < 4096
    store = Counting({"0.0.tif": build(grey((1000, 1000)), pixels=pixels)})
    tiff.open_folder(store)
    assert store.total < 2048


ODD = build(grey((2, 3)), pixels=bytes(6))
AT = {256: 10, 257: 22, 258: 34, 259: 46, 262: 58, 273: 70, 279: 82}  # where the entries of ODD are


def patched(at: int, form: str, value: int) -> bytes:
    data = bytearray(ODD)
    struct.pack_into("<" + form, data, at, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "the TIFF header at byte 0 does not fit in a file of 0 bytes"),
        (b"II*\0\x08\0\0", "the TIFF header at byte 0 does not fit in a file of 7 bytes"),
        (b"\x89PNG\r\n\x1a\n", "is not a TIFF file: it starts with b'\\x89PNG'"),
        (b"II+\0\x08\0\0\0" + bytes(8), "is BigTIFF, which is not handled"),
        (b"II\0\0\x08\0\0\0", "is TIFF version 0, not 42"),
        (b"II*\0\x08\0\0\0", "the directory at byte 8 does not fit in a file of 8 bytes"),
        (patched(4, "I", 2**32 - 1), "the directory at byte 4294967295 does not fit in a file of 104 bytes"),
        (patched(8, "H", 65535), "the directory at byte 10 does not fit in a file of 104 bytes"),
        (patched(94, "I", 8), "has several pages; a chunk is one"),
        (patched(AT[257], "H", 256), "has two tags ImageWidth"),
        (patched(AT[256] + 2, "H", 5), "ImageWidth has type 5, not SHORT (3) or LONG (4)"),
        (patched(AT[256] + 4, "I", 2), "ImageWidth has 2 values; it can have 1"),
        (patched(AT[256] + 4, "I", 0), "ImageWidth has 0 values; it can have 1"),
        (patched(AT[258] + 4, "I", 3), "BitsPerSample has 3 values; it can have 1"),
        (patched(AT[273] + 4, "I", 2**32 - 1), "has 4294967295 strips; a chunk is one"),
        (patched(AT[273] + 8, "I", 99), "the strip of 6 bytes at byte 99 does not fit in a file of 104 bytes"),
    ],
)
def test_a_file_whose_structure_is_wrong_is_refused_by_name(value: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        tiff.open_folder({"0.0.tif": value})
    assert str(caught.value) == f"chunk 0.0.tif: {message}"


TYPES = "uint8, uint16, uint32, int8, int16, int32, float32, float64"
COLOUR = "only grey (1) with 1 and RGB (2) with 3 or 4 do"
COMPRESSION = "only 1 (none) and 50000 (zstd) do"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({256: ()}, "has no tag ImageWidth"),
        ({262: ()}, "has no tag PhotometricInterpretation"),
        ({273: ()}, "has no tag StripOffsets"),
        ({279: ()}, "has no tag StripByteCounts"),
        ({256: (0,)}, "has no pixels: 2 x 0"),
        ({279: (5,)}, "StripByteCounts is 5, a picture of shape (2, 3) has 6 bytes"),
        ({278: (1,)}, "RowsPerStrip is 1, and the only strip needs 2"),
        ({273: (1, 2), 279: (3, 3)}, "has 2 strips; a chunk is one"),
        ({322: (16,)}, "has tiles; a chunk is one strip"),
        ({284: (2,)}, "PlanarConfiguration is 2; only 1 can be a chunk"),
        ({317: (2,)}, "Predictor is 2; only 1 can be a chunk"),
        ({266: (2,)}, "FillOrder is 2; only 1 can be a chunk"),
        ({274: (6,)}, "Orientation is 6; only 1 can be a chunk"),
        ({259: (5,)}, f"Compression is 5 (LZW); {COMPRESSION}"),
        ({259: (8,)}, f"Compression is 8 (deflate); {COMPRESSION}"),
        ({259: (9,)}, f"Compression is 9; {COMPRESSION}"),
        ({262: (3,)}, f"PhotometricInterpretation is 3, SamplesPerPixel 1; {COLOUR}"),
        ({277: (2,)}, f"PhotometricInterpretation is 1, SamplesPerPixel 2; {COLOUR}"),
        ({258: ()}, f"SampleFormat 1 with 1 bits is none of {TYPES}"),
        ({339: (3,)}, f"SampleFormat 3 with 8 bits is none of {TYPES}"),
        ({262: (2,), 277: (3,), 258: (5, 6, 5)}, "BitsPerSample differs between samples: 5, 6, 5"),
    ],
)
def test_a_picture_that_cannot_be_a_chunk_is_refused_by_name(changes: dict[int, Any], message: str) -> None:
    value = build(grey((2, 3), {tag: (3, values) for tag, values in changes.items()}), pixels=bytes(6))
    with pytest.raises(DataError) as caught:
        tiff.open_folder({"0.0.tif": value})
    assert str(caught.value) == f"chunk 0.0.tif: {message}"


def test_a_value_outside_of_the_file_is_refused() -> None:
    data = bytearray(build(grey((2, 3), {262: (3, (2,)), 277: (3, (3,)), 258: (3, (8, 8, 8)), 279: (4, (18,))})))
    struct.pack_into("<I", data, AT[258] + 8, 2**32 - 4)
    with pytest.raises(DataError) as caught:
        tiff.open_folder({"0.0.0.tif": bytes(data)})
    wrong = f"the value of BitsPerSample at byte 4294967292 does not fit in a file of {len(data)} bytes"
    assert str(caught.value) == f"chunk 0.0.0.tif: {wrong}"


def like(changes: dict[int, Any] | None = None, order: str = "<", shape: tuple[int, int] = (2, 3)) -> bytes:
    return build(grey(shape, {tag: (3, values) for tag, values in (changes or {}).items()}), order, bytes(6))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (like(shape=(3, 2)), "has shape (3, 2), 0.0.tif has (2, 3); the files of a folder are alike"),
        (like(order=">"), "has byteorder big, 0.0.tif has little; the files of a folder are alike"),
        (like({339: (2,)}), "has data_type int8, 0.0.tif has uint8; the files of a folder are alike"),
        (like({259: (50000,)}), "has compression zstd, 0.0.tif has None; the files of a folder are alike"),
        (like({700: (2,)}), "has 110 bytes before its pixels, 0.0.tif has 98; they must be alike"),
        (like() + b"!", "has 1 bytes behind its pixels, 0.0.tif has 0; they must be alike"),
        (b"", "the TIFF header at byte 0 does not fit in a file of 0 bytes"),
    ],
)
def test_a_file_unlike_the_first_is_refused_by_name(value: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        tiff.open_folder({"0.0.tif": ODD, "0.1.tif": value})
    assert str(caught.value) == f"chunk 0.1.tif: {message}"


@pytest.mark.parametrize("name", ["0.01.tif", "0.1.tiff", "0/1.tif", "0.1.2.tif", "overview.tif", "more/0.1.tif"])
def test_a_file_named_unlike_the_first_is_refused_by_name(name: str) -> None:
    with pytest.raises(DataError) as caught:
        tiff.open_folder({"0.0.tif": ODD, name: ODD})
    assert str(caught.value) == f"chunk {name}: is not named as a chunk in the way of 0.0.tif"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("picture.tif", "is not named as a chunk, such as c/0/1.tiff, c.0.1.tiff, 0/1.tiff or 0.1.tiff"),
        ("00.1.tif", "is not named as a chunk in the way of 0.0.tif"),
        ("c/0.1.tif", "is not named as a chunk in the way of c/0/0.tif"),
        ("7.tif", "a picture of shape (2, 3) has at least 2 coordinates in its name, not 1"),
    ],
)
def test_names_that_are_no_chunks_are_refused(name: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        tiff.open_folder({name: ODD})
    assert str(caught.value) == f"chunk {name}: {message}"


def test_names_beyond_what_an_array_can_have_are_refused() -> None:
    with pytest.raises(ZarrliteError, match=r"^shape must have at most 64 lengths from 0 to 2\*\*63 - 1"):
        tiff.open_folder({"9999999999999999999.0.tif": ODD})


def test_a_folder_without_tiff_files_has_no_array() -> None:
    with pytest.raises(NodeNotFoundError) as caught:
        tiff.open_folder({"0.0.png": b""})
    assert str(caught.value).startswith("no TIFF files in MappingStore")


def test_a_file_that_shrinks_later_is_an_error_with_its_key() -> None:
    store = MemoryStore({"0.0.tif": ODD})
    array = tiff.open_folder(store)
    store.set("0.0.tif", ODD[:-1])
    with pytest.raises(TruncatedError, match=r"^chunk 0\.0\.tif"):
        array[...]


class Shrinking(MemoryStore):
    """Says a size that is gone when it is read."""

    def size(self, key: str) -> int | None:
        return 1000


def test_a_file_that_shrinks_while_its_header_is_read_is_refused() -> None:
    with pytest.raises(DataError, match=r"^chunk 0\.0\.tif: has become shorter than its 1000 bytes$"):
        tiff.open_folder(Shrinking({"0.0.tif": b"II*\0"}))
