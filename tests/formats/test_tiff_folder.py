"""Folders of TIFF files, opened as arrays. tests/interop/test_tiff.py covers files written by other programs."""

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
    """Build a TIFF file from tags. Its directory is before the pixels or, if `last` is true, after them.

    StripOffsets (273) is set to the offset of the pixels. `following` is the offset of the next directory.
    """
    mark = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 42)
    size = 2 + 12 * len(tags) + 4
    packed = {tag: struct.pack(f"{order}{len(v)}{'H' if t == 3 else 'I'}", *v) for tag, (t, v) in tags.items()}
    extra = sum(len(value) for value in packed.values() if len(value) > 4)
    directory_offset = 8 + len(pixels) if last else 8
    pixels_offset = 8 if last else 8 + size + extra
    directory, long_values = struct.pack(order + "H", len(tags)), b""
    for tag, (type_, values) in sorted(tags.items()):
        value = struct.pack(order + "I", pixels_offset) if tag == 273 and len(values) == 1 else packed[tag]
        if len(value) > 4:
            offset = directory_offset + size + len(long_values)
            value, long_values = struct.pack(order + "I", offset), long_values + value
        directory += struct.pack(order + "HHI", tag, type_, len(values)) + value.ljust(4, b"\0")
    directory += struct.pack(order + "I", following) + long_values
    return mark + struct.pack(order + "I", directory_offset) + (pixels + directory if last else directory + pixels)


def grey(shape: tuple[int, int], changes: Tags | None = None) -> Tags:
    """Return the tags of a uint8 image, with the given changes. A tag whose values are empty is omitted."""
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
def test_the_chunk_key_encoding_follows_from_file_names(name: str, encoding: Any, last: bool) -> None:
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


def test_missing_files_read_as_fill_values_and_the_shape_can_be_chosen() -> None:
    store = MemoryStore({"3/1/2.tif": build(grey((2, 3)), pixels=bytes(range(6)))})
    assert tiff.open_folder(store).shape == (4, 4, 9)
    array = tiff.open_folder(store, shape=(5, 3, 7), fill_value=9)
    assert array.shape == (5, 3, 7)
    assert array[3].tolist() == [[9] * 7, [9] * 7, [9] * 6 + [0]]
    with pytest.raises(
        ArgumentError, match=r"^shape must include all files, but 3/1/2\.tif is outside of \(5, 3, 6\)$"
    ):
        tiff.open_folder(store, shape=(5, 3, 6))
    message = r"^shape must have 3 lengths, one for each coordinate in a file name, not \(5, 3\)$"
    with pytest.raises(ArgumentError, match=message):
        tiff.open_folder(store, shape=(5, 3))


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_an_array_of_tiff_images_can_be_opened_as_a_folder(compression: str | None) -> None:
    data = numbers((2, 6, 8, 3), "float32")
    store = MemoryStore()
    written = tiff.create_array(
        store, data=data, chunks=(1, 3, 4, 3), rgb=True, byteorder="big", compression=compression
    )
    array = tiff.open_folder(store)
    assert np.array_equal(array[...], data)
    assert array.metadata.to_json() == written.metadata.to_json()


def test_an_opened_folder_is_read_only_and_can_be_pickled() -> None:
    store = MemoryStore({"0.0.tif": build(grey((2, 3)), pixels=bytes(range(6)))})
    array = tiff.open_folder(store)
    assert list(store.list()) == ["0.0.tif"]
    assert array.read_only
    with pytest.raises(ReadOnlyError, match="hierarchies of TIFF files"):
        array[...] = 1
    assert zarrlite.open_array(array.store, mode="r")[1, 2] == 5
    assert array.store.list_dir("") == (["0.0.tif", "zarr.json"], [])
    assert array.store == tiff.open_folder(store).store != tiff.open_folder(store, shape=(2, 2)).store
    assert pickle.loads(pickle.dumps(array))[...].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("last", [False, True])
def test_save_writes_a_document_with_the_header_of_the_first_file(last: bool) -> None:
    """With this header in the document, chunks that are written later are TIFF files as well."""
    first = build(grey((2, 3)), pixels=bytes(range(6)), last=last)
    store = MemoryStore({"0.0.tif": first})
    array = tiff.open_folder(store, shape=(2, 6), save=True)
    saved = zarrlite.open_array(store)
    assert saved.metadata == array.metadata
    saved[:, 3:] = saved[:, :3]
    assert bytes(store.get("0.1.tif") or b"") == first
    with pytest.raises(NodeExistsError, match=r"^there is already a zarr\.json in "):
        tiff.open_folder(store, save=True)


def test_long_headers_are_not_copied_into_the_document() -> None:
    tags = grey((2, 3), {65000: (4, (0,) * 2**14)})
    array = tiff.open_folder({"0.0.tif": build(tags, pixels=bytes(range(6)))})
    assert array.metadata.codecs[1].to_config() == {"location": "start", "nbytes": 8 + 6 + 12 * 8 + 2**16}
    assert array[1, 2] == 5


class CountingStore(MemoryStore):
    """A store that counts the bytes that are read."""

    total = 0

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        value = super().get(key, byte_range)
        self.total += len(value or b"")
        return value


def test_only_headers_are_read_when_a_folder_is_opened() -> None:
    pixels = bytes(1000 * 1000)
    store = CountingStore({f"0.{i}.tif": build(grey((1000, 1000)), pixels=pixels, last=i % 2 == 1) for i in range(2)})
    store.erase("0.0.tif")  # the remaining file has its directory after the pixels
    tiff.open_folder(store)
    assert store.total < 4096
    store = CountingStore({"0.0.tif": build(grey((1000, 1000)), pixels=pixels)})
    tiff.open_folder(store)
    assert store.total < 2048


VALID = build(grey((2, 3)), pixels=bytes(6))
OFFSETS = {256: 10, 257: 22, 258: 34, 259: 46, 262: 58, 273: 70, 279: 82}  # offsets of the directory entries in VALID


def patched(offset: int, form: str, value: int) -> bytes:
    """Return VALID with the number at an offset replaced."""
    data = bytearray(VALID)
    struct.pack_into("<" + form, data, offset, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "the TIFF header at byte 0 does not fit in a file of 0 bytes"),
        (b"II*\0\x08\0\0", "the TIFF header at byte 0 does not fit in a file of 7 bytes"),
        (b"\x89PNG\r\n\x1a\n", "is not a TIFF file: it starts with b'\\x89PNG'"),
        (b"II+\0\x08\0\0\0" + bytes(8), "is BigTIFF, which zarrlite does not read"),
        (b"II\0\0\x08\0\0\0", "must have TIFF version 42, not 0"),
        (b"II*\0\x08\0\0\0", "the directory at byte 8 does not fit in a file of 8 bytes"),
        (patched(4, "I", 2**32 - 1), "the directory at byte 4294967295 does not fit in a file of 104 bytes"),
        (patched(8, "H", 65535), "the directory at byte 10 does not fit in a file of 104 bytes"),
        (patched(94, "I", 8), "must have one page, not several"),
        (patched(OFFSETS[257], "H", 256), "must not have the tag ImageWidth twice"),
        (patched(OFFSETS[256] + 2, "H", 5), "ImageWidth must have type SHORT (3) or LONG (4), not 5"),
        (patched(OFFSETS[256] + 4, "I", 2), "ImageWidth must have 1 value, not 2"),
        (patched(OFFSETS[256] + 4, "I", 0), "ImageWidth must have 1 value, not 0"),
        (patched(OFFSETS[258] + 4, "I", 3), "BitsPerSample must have 1 value, not 3"),
        (patched(OFFSETS[273] + 4, "I", 2**32 - 1), "must have one strip, not 4294967295"),
        (patched(OFFSETS[273] + 8, "I", 99), "the strip of 6 bytes at byte 99 does not fit in a file of 104 bytes"),
    ],
)
def test_a_malformed_file_is_refused_with_its_name(value: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        tiff.open_folder({"0.0.tif": value})
    assert str(caught.value) == f"chunk 0.0.tif: {message}"


TYPES = "uint8, uint16, uint32, int8, int16, int32, float32, float64"
COLOUR = "PhotometricInterpretation must be 1 (grey) with 1 sample per pixel, or 2 (RGB) with 3 or 4, not"
SAMPLE = f"SampleFormat and BitsPerSample must be those of {TYPES}, not"
COMPRESSION = "Compression must be 1 (none) or 50000 (zstd), not"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({256: ()}, "must have the tag ImageWidth"),
        ({262: ()}, "must have the tag PhotometricInterpretation"),
        ({273: ()}, "must have the tag StripOffsets"),
        ({279: ()}, "must have the tag StripByteCounts"),
        ({256: (0,)}, "ImageLength and ImageWidth must be at least 1, not 2 and 0"),
        ({279: (5,)}, "StripByteCounts must be 6 for an image of shape (2, 3), not 5"),
        ({278: (1,)}, "RowsPerStrip must be at least 2 for a single strip, not 1"),
        ({273: (1, 2), 279: (3, 3)}, "must have one strip, not 2"),
        ({322: (16,)}, "must have one strip, not tiles"),
        ({284: (2,)}, "PlanarConfiguration must be 1, not 2"),
        ({317: (2,)}, "Predictor must be 1, not 2"),
        ({266: (2,)}, "FillOrder must be 1, not 2"),
        ({274: (6,)}, "Orientation must be 1, not 6"),
        ({259: (5,)}, f"{COMPRESSION} 5 (LZW)"),
        ({259: (8,)}, f"{COMPRESSION} 8 (deflate)"),
        ({259: (9,)}, f"{COMPRESSION} 9"),
        ({262: (3,)}, f"{COLOUR} 3 with 1"),
        ({277: (2,)}, f"{COLOUR} 1 with 2"),
        ({258: ()}, f"{SAMPLE} 1 and 1"),
        ({339: (3,)}, f"{SAMPLE} 3 and 8"),
        ({262: (2,), 277: (3,), 258: (5, 6, 5)}, "BitsPerSample must be equal for all samples, not 5, 6, 5"),
    ],
)
def test_an_image_that_cannot_be_a_chunk_is_refused_with_its_name(changes: dict[int, Any], message: str) -> None:
    value = build(grey((2, 3), {tag: (3, values) for tag, values in changes.items()}), pixels=bytes(6))
    with pytest.raises(DataError) as caught:
        tiff.open_folder({"0.0.tif": value})
    assert str(caught.value) == f"chunk 0.0.tif: {message}"


def test_a_tag_value_outside_of_the_file_is_refused() -> None:
    data = bytearray(build(grey((2, 3), {262: (3, (2,)), 277: (3, (3,)), 258: (3, (8, 8, 8)), 279: (4, (18,))})))
    struct.pack_into("<I", data, OFFSETS[258] + 8, 2**32 - 4)
    with pytest.raises(DataError) as caught:
        tiff.open_folder({"0.0.0.tif": bytes(data)})
    message = f"the value of BitsPerSample at byte 4294967292 does not fit in a file of {len(data)} bytes"
    assert str(caught.value) == f"chunk 0.0.0.tif: {message}"


def image(changes: dict[int, Any] | None = None, order: str = "<", shape: tuple[int, int] = (2, 3)) -> bytes:
    return build(grey(shape, {tag: (3, values) for tag, values in (changes or {}).items()}), order, bytes(6))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (image(shape=(3, 2)), "must have shape (2, 3), like 0.0.tif, not (3, 2)"),
        (image(order=">"), "must have byte order little, like 0.0.tif, not big"),
        (image({339: (2,)}), "must have data type uint8, like 0.0.tif, not int8"),
        (image({259: (50000,)}), "must have compression None, like 0.0.tif, not zstd"),
        (image({700: (2,)}), "must have 98 bytes before its pixels, like 0.0.tif, not 110"),
        (image() + b"!", "must have 0 bytes after its pixels, like 0.0.tif, not 1"),
        (b"", "the TIFF header at byte 0 does not fit in a file of 0 bytes"),
    ],
)
def test_a_file_that_differs_from_the_first_is_refused_with_its_name(value: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        tiff.open_folder({"0.0.tif": VALID, "0.1.tif": value})
    assert str(caught.value) == f"chunk 0.1.tif: {message}"


@pytest.mark.parametrize("name", ["0.01.tif", "0.1.tiff", "0/1.tif", "0.1.2.tif", "overview.tif", "more/0.1.tif"])
def test_a_file_with_a_different_form_of_name_than_the_first_is_refused(name: str) -> None:
    with pytest.raises(DataError) as caught:
        tiff.open_folder({"0.0.tif": VALID, name: VALID})
    assert str(caught.value) == f"chunk {name}: must have a name like 0.0.tif"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("photo.tif", "must have a name like a chunk key, such as c/0/1.tiff, c.0.1.tiff, 0/1.tiff or 0.1.tiff"),
        ("00.1.tif", "must have a name like 0.0.tif"),
        ("c/0.1.tif", "must have a name like c/0/0.tif"),
        ("7.tif", "must have at least 2 coordinates in its name, not 1, for an image of shape (2, 3)"),
    ],
)
def test_a_file_whose_name_is_not_a_chunk_key_is_refused(name: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        tiff.open_folder({name: VALID})
    assert str(caught.value) == f"chunk {name}: {message}"


def test_a_coordinate_beyond_the_largest_array_is_refused() -> None:
    with pytest.raises(ZarrliteError, match=r"^shape must have at most 64 lengths from 0 to 2\*\*63 - 1"):
        tiff.open_folder({"9999999999999999999.0.tif": VALID})


def test_a_folder_without_tiff_files_is_not_an_array() -> None:
    with pytest.raises(NodeNotFoundError) as caught:
        tiff.open_folder({"0.0.png": b""})
    assert str(caught.value).startswith("no TIFF files in MappingStore")


def test_reading_a_file_that_became_shorter_names_its_key() -> None:
    store = MemoryStore({"0.0.tif": VALID})
    array = tiff.open_folder(store)
    store.set("0.0.tif", VALID[:-1])
    with pytest.raises(TruncatedError, match=r"^chunk 0\.0\.tif"):
        array[...]


class ShrinkingStore(MemoryStore):
    """A store that reports sizes larger than its values, as if these had been truncated before they were read."""

    def size(self, key: str) -> int | None:
        return 1000


def test_a_file_that_becomes_shorter_while_its_header_is_read_is_refused() -> None:
    with pytest.raises(DataError, match=r"^chunk 0\.0\.tif: became shorter than 1000 bytes while it was read$"):
        tiff.open_folder(ShrinkingStore({"0.0.tif": b"II*\0"}))
