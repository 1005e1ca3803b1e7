"""ZipStore as a reader: files written by other programs, requests, and files that are refused."""

from __future__ import annotations

import io
import pickle
import shutil
import struct
import subprocess
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.required import lacking
from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.errors import ArgumentError, ChecksumError, DataError, StoreError, TruncatedError
from zarrlite.stores import MemoryStore, ZipStore, zip_format
from zarrlite.testing import in_threads

VALUES = {"zarr.json": b"{}", "a/c/0": bytes(range(256)) * 100, "a/é ñ": b"text", "empty": b""}


def zipped(values: dict[str, bytes] = VALUES, method: int = zipfile.ZIP_STORED, comment: bytes = b"") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for key, value in values.items():
            archive.writestr(key, value)
        archive.comment = comment
    return file.getvalue()


def in_memory(data: bytes) -> ZipStore:
    return ZipStore((MemoryStore({"a.zip": data}), "a.zip"))


def contents(store: zarrlite.Store) -> dict[str, bytes]:
    return {key: bytes(store.get(key) or b"") for key in store.list()}


# Files written by other programs


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_files_of_the_standard_library_are_read(method: int, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped(method=method, comment=b"a comment"))
    assert contents(ZipStore(path)) == VALUES


def test_files_that_were_written_to_a_pipe_are_read(tmp_path: Path) -> None:
    class Pipe(io.BytesIO):
        """A file without `seek`, so that writers must store the sizes of entries after their values."""

        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise io.UnsupportedOperation

        def tell(self) -> int:
            raise io.UnsupportedOperation

    file = Pipe()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, value in VALUES.items():
            archive.writestr(key, value)
    assert contents(in_memory(file.getvalue())) == VALUES


@pytest.mark.parametrize("level", ["-0", "-9"])
def test_files_of_info_zip_are_read(level: str, tmp_path: Path) -> None:
    program = shutil.which("zip") or lacking("zip is not installed")
    zarrlite.create_array(tmp_path / "a.zarr", name="x", data=np.arange(1000), chunks=100, compressors=None)
    (tmp_path / "a.zarr/é").write_bytes(b"a name that is not ASCII")
    subprocess.run([program, "-q", "-r", level, "../a.zip", "."], cwd=tmp_path / "a.zarr", check=True)
    with zarrlite.open_group(tmp_path / "a.zip", mode="r") as group:
        assert group["x"][...].tolist() == list(range(1000))
        assert contents(group.store) == contents(zarrlite.LocalStore(tmp_path / "a.zarr"))


def test_info_zip_reads_files_of_this_store(tmp_path: Path) -> None:
    program = shutil.which("unzip") or lacking("unzip is not installed")
    for name in ("a.zip", "a.ozx"):
        with ZipStore(tmp_path / name, mode="w") as store:
            store.set_many(VALUES.items())
        subprocess.run([program, "-tqq", name], cwd=tmp_path, check=True)


def test_zarr_python_and_this_store_read_each_other(zarr: Any, tmp_path: Path) -> None:
    data = np.arange(600).reshape(20, 30)
    store = zarr.storage.ZipStore(tmp_path / "theirs.zip", mode="w")
    zarr.create_group(store).create_array("x", data=data, chunks=(7, 8))
    store.close()
    assert np.array_equal(zarrlite.open_array(tmp_path / "theirs.zip", mode="r", path="x")[...], data)
    for name in ("ours.zip", "ours.ozx"):
        with zarrlite.open_group(tmp_path / name, mode="w") as group:
            group.create_array("x", data=data, chunks=(7, 8))
        store = zarr.storage.ZipStore(tmp_path / name, mode="r")
        assert np.array_equal(zarr.open_group(store, mode="r")["x"][...], data)
        store.close()


def test_names_in_other_encodings_are_read() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        unicode_name = zipfile.ZipInfo("plain")
        field = b"\1" + zlib.crc32(b"plain").to_bytes(4, "little") + "é".encode()
        unicode_name.extra = struct.pack("<2H", 0x7075, len(field)) + field
        archive.writestr(unicode_name, b"1")
        dos = zipfile.ZipInfo("xyz")
        dos.create_system = 0
        archive.writestr(dos, b"2")
    assert contents(in_memory(file.getvalue().replace(b"xyz", b"x\x82z"))) == {"é": b"1", "xéz": b"2"}


def test_directories_in_a_zip_file_are_not_keys() -> None:
    assert list(in_memory(zipped({"a/": b"", "a/b": b"1", "c/": b""})).list()) == ["a/b"]


# Zip64


def test_more_entries_than_fit_in_two_bytes_are_written_and_read(tmp_path: Path) -> None:
    keys = [f"c/{i}" for i in range(70_000)]
    with ZipStore(tmp_path / "a.zip", mode="w") as store:
        for key in keys:
            store.set(key, b"")
    with ZipStore(tmp_path / "a.zip") as store:
        assert list(store.list()) == sorted(keys)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.namelist() == keys
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for key in keys:
            archive.writestr(key, b"")
    with ZipStore(tmp_path / "b.zip") as store:
        assert list(store.list()) == sorted(keys)


class Sparse(zarrlite.Store):
    """A store with one value of any size. Bytes that are not in `known` are zero."""

    def __init__(self, size: int, known: dict[int, bytes]) -> None:
        self.length, self.known = size, known

    def get(self, key: str, byte_range: ByteRange = ALL) -> bytes:
        start, stop = byte_range.resolve(self.length)
        assert stop - start < 2**20
        value = bytearray(stop - start)
        for offset, piece in self.known.items():
            low, high = max(offset, start), min(offset + len(piece), stop)
            if low < high:
                value[low - start : high - start] = piece[low - offset : high - offset]
        return bytes(value)

    def size(self, key: str) -> int:
        return self.length


@pytest.mark.parametrize("size", [2**32 - 2, 2**32 - 1, 2**32, 2**35])
def test_sizes_and_offsets_above_four_gibibytes_are_read(size: int) -> None:
    """The first of two entries may need zip64 for its size, and the second for its offset."""
    large = zip_format.Entry("large", b"large", zip_format.STORED, 0, size, size, 0, 0, 0)
    header = zip_format.local_header(large, zip64=False)
    small = zip_format.new_entry("small", b"0123", len(header) + size)
    small_header = zip_format.local_header(small, zip64=False)
    offset = small.offset + len(small_header) + small.size
    directory = zip_format.directory([large, small], offset, b"", zip64=False)
    known = {0: header, len(header) + size - 3: b"end", small.offset: small_header + b"0123", offset: directory}
    store = ZipStore((Sparse(offset + len(directory), known), "a.zip"))
    assert (store.size("large"), store.size("small")) == (size, 4)
    assert store.get("small") == b"0123"
    assert store.get("large", ByteRange(-4)) == b"\0end"
    assert store.get("large", ByteRange(size - 3, size - 1)) == b"en"


# Requests


class Counting(MemoryStore):
    """A store that records the byte ranges of each batch of requests."""

    def __init__(self, values: dict[str, bytes]) -> None:
        super().__init__(values)
        self.batches: list[list[ByteRange]] = []

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, requests: Any, memory: Any = None) -> Any:
        self.batches.append([request[1] for request in requests])
        return super().get_partial_values(requests, memory)

    def size(self, key: str) -> int | None:
        raise AssertionError("the size of a zip file need not be requested")

    def source(self, key: str) -> Any:
        return zarrlite.Store.source(self, key)

    def taken(self) -> list[int]:
        """Return the number of requests in each batch since the last call."""
        counts, self.batches = [len(batch) for batch in self.batches], []
        return counts


def test_a_zip_file_in_a_store_is_read_with_few_requests() -> None:
    large = bytes(range(256)) * 1000
    below = Counting({"a.zip": zipped({"a": large, "b": large, "c": b"small", "d": large})})
    store = ZipStore((below, "a.zip"))
    assert below.taken() == [1]  # the end of the file, which contains the directory
    assert (store.size("a"), store.size("none"), store.get("none"), len(list(store.list()))) == (256_000, None, None, 4)
    assert below.taken() == []
    assert store.get("a") == large
    assert below.taken() == [1]  # the header and the value
    assert store.get("b", ByteRange(10, 12)) == large[10:12]
    assert below.taken() == [1, 1]  # the header, then the range
    assert [
        bytes(part or b"") for part in store.get_partial_values([("b", ByteRange(0, 3)), ("b", ByteRange(-5))])
    ] == [
        large[:3],
        large[-5:],
    ]
    assert below.taken() == [2]  # the header is already known
    assert store.get("c", ByteRange(1, 3)) == b"ma"
    assert below.taken() == [1]  # a small value is read together with its header


def test_many_values_are_requested_at_once() -> None:
    values = {f"c/{i}": b"%d" % i * 10_000 for i in range(20)}
    below = Counting({"a.zip": zipped(values)})
    store = ZipStore((below, "a.zip"))
    below.taken()
    found = store.get_partial_values([(key, ALL) for key in values])
    assert [bytes(value or b"") for value in found] == [*values.values()]
    assert below.taken() == [20]


def test_a_large_directory_takes_a_second_request() -> None:
    values = {f"a/long/name/of/a/chunk/c/{i}": b"" for i in range(5000)}
    below = Counting({"a.zip": zipped(values)})
    store = ZipStore((below, "a.zip"))
    assert below.taken() == [1, 1]
    assert list(store.list()) == sorted(values)


def test_only_the_bytes_that_are_needed_are_requested() -> None:
    data = zipped({"a": bytes(10**6), "b": b"x" * 10**6})
    below = Counting({"a.zip": data})
    store = ZipStore((below, "a.zip"))
    below.taken()
    store.get("b", ByteRange(500_000, 500_010))
    store.get("a", ByteRange(-1))
    assert below.batches == [
        [ByteRange(1_000_031, 1_000_062)],  # the header: 30 bytes and the name
        [ByteRange(1_500_062, 1_500_072)],
        [ByteRange(0, 31)],
        [ByteRange(1_000_030, 1_000_031)],
    ]


def test_an_array_in_a_zip_file_in_a_store_is_read_in_parts() -> None:
    file = io.BytesIO()
    values = MemoryStore()
    zarrlite.create_array(values, data=np.arange(100_000), chunks=1000, shards=50_000, compressors=None)
    file.write(zipped({key: bytes(values.get(key) or b"") for key in values.list()}))
    below = Counting({"deep/a.zip": file.getvalue()})
    array = zarrlite.open_array(ZipStore((below, "deep/a.zip")), mode="r")
    below.taken()
    assert array[60_123] == 60_123
    read = sum(len(range_.of(file.getvalue())) for batch in below.batches for range_ in batch)
    assert read < 20_000
    assert len(below.batches) == 3  # the header of the entry, the index of the shard, an inner chunk


# Hostile files

ENCRYPTED, DESCRIPTOR = 0x1, 0x8
RECORD, END = b"PK\1\2", b"PK\5\6"  # signatures of a directory record and of the end record


def patched(data: bytes, mark: bytes, offset: int, code: str, value: int, occurrence: int = 0) -> bytes:
    """Replace the number at an offset from a signature."""
    position = -1
    for _ in range(occurrence + 1):
        position = data.index(mark, position + 1)
    changed = bytearray(data)
    struct.pack_into(f"<{code}", changed, position + offset, value)
    return bytes(changed)


def renamed(old: str, new: str, data: bytes | None = None) -> bytes:
    """Return a file in which all occurrences of a name are replaced by one of the same length."""
    assert len(old) == len(new)
    return (data or zipped({old: b"value"})).replace(old.encode(), new.encode())


def bomb(size: int) -> bytes:
    return zipped({"a": bytes(size)}, zipfile.ZIP_DEFLATED)


PLAIN = zipped({"aa": b"0123", "bb": b"4567"})
DEFLATED = zipped({"aa": b"0123" * 100}, zipfile.ZIP_DEFLATED)
TWO_ENDS = zipped({"a": b"1"}, comment=zipped({}))

ZIP64 = zip_format.directory([], 0, b"", zip64=True)
END64, LOCATOR = b"PK\6\6", b"PK\6\7"  # signatures of the zip64 end record and of its locator

HOSTILE: dict[str, tuple[bytes, str]] = {
    "no zip64 end record": (ZIP64.replace(END64, b"PK\6\5"), "must have a zip64 end record of 56 bytes"),
    "a zip64 part": (patched(ZIP64, END64, 16, "L", 1), "must not be one part of a split zip file"),
    "several zip64 parts": (patched(ZIP64, LOCATOR, 16, "L", 2), "must not be one part of a split zip file"),
    "two numbers of entries": (patched(ZIP64, END, 10, "H", 1), "must have end records that agree"),
    "two positions": (patched(ZIP64, LOCATOR, 8, "Q", 7), "must have its zip64 end record directly after"),
    "empty": (b"", "must be a zip file, but has no end record"),
    "another format": (b"\x89PNG" * 100, "must be a zip file, but has no end record"),
    "truncated": (PLAIN[:-1], "must be a zip file, but has no end record"),
    "without a start": (PLAIN[1:], "must have .* bytes according to its end records"),
    "bytes before": (b"#!/bin/sh\n" + PLAIN, "must have .* bytes according to its end records"),
    "bytes after": (PLAIN + b"\n", "must be a zip file, but has no end record"),
    "traversal": (renamed("xxxa", "../a"), "entry '../a' must have a valid key as its name"),
    "traversal inside": (renamed("a/xx/b", "a/../b"), "must have a valid key as its name"),
    "absolute": (renamed("xa", "/a"), "entry '/a' must have a valid key as its name"),
    "backslash": (renamed("xxxa", "..\\a"), "must have a valid key as its name"),
    "NUL": (renamed("axb", "a\0b"), "must have a valid key as its name"),
    "empty name": (patched(patched(PLAIN, RECORD, 28, "H", 0), RECORD, 30, "H", 2), "must"),
    "duplicate": (renamed("bb", "aa", PLAIN), "entry 'aa' must not occur twice"),
    "overlap": (patched(PLAIN, RECORD, 42, "L", 0, occurrence=1), "must end before byte 0"),
    "overlap by size": (
        patched(patched(PLAIN, RECORD, 20, "L", 40), RECORD, 24, "L", 40),
        "entry 'aa' must end before byte 36",
    ),
    "beyond the end": (patched(PLAIN, RECORD, 42, "L", 10**6, occurrence=1), "must end before"),
    "encrypted": (patched(PLAIN, RECORD, 8, "H", ENCRYPTED), "entry 'aa' must not be encrypted"),
    "bzip2": (zipped({"a": b"1"}, zipfile.ZIP_BZIP2), "entry 'a' must be stored or deflated, .* method 12"),
    "two sizes": (patched(PLAIN, RECORD, 24, "L", 5), "entry 'aa' is not compressed, so its two sizes must be equal"),
    "a bomb": (bomb(2**27), "entry 'a' must not grow from .* to 134217728 bytes"),
    "a declared bomb": (patched(DEFLATED, RECORD, 24, "L", 2**31), "entry 'aa' must not grow"),
    "another disk": (patched(PLAIN, RECORD, 34, "H", 1), "must not be in another part"),
    "several disks": (patched(PLAIN, END, 4, "H", 1), "must not be one part of a split zip file"),
    "too few entries": (patched(PLAIN, END, 10, "H", 3), "must have 3 entries, not 2"),
    "a name beyond the directory": (patched(PLAIN, RECORD, 28, "H", 60_000), "must end within the directory"),
    "two end records": (TWO_ENDS, "must have one end record"),
    "a zip64 size without a field": (patched(PLAIN, RECORD, 24, "L", 2**32 - 1), "must have a zip64 field"),
    "not a record": (PLAIN.replace(RECORD, b"PK\1\3"), "must have an entry at byte 0 of its directory"),
    "a directory that is too large": (patched(PLAIN, END, 12, "L", 2**31), "must have .* bytes"),
    "a name that is not UTF-8": (renamed("é", "é", zipped({"é": b""})).replace(b"\xc3\xa9", b"\xc3\xff"), "in UTF-8"),
    "a symlink": (
        patched(patched(PLAIN, RECORD, 4, "H", 3 << 8), RECORD, 38, "L", 0o120777 << 16),
        "entry 'aa' must not be a symlink",
    ),
}


@pytest.mark.parametrize("in_a_store", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_when_they_are_opened(name: str, in_a_store: bool, tmp_path: Path) -> None:
    data, message = HOSTILE[name]
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        in_memory(data) if in_a_store else ZipStore(path)


LOCAL = b"PK\3\4"  # the signature of the header of an entry
DAMAGED: dict[str, tuple[bytes, str]] = {
    "header": (PLAIN.replace(LOCAL, b"PK\3\5", 1), "must have a header at byte 0"),
    "name": (PLAIN.replace(b"aa", b"ab", 1), "must have the same name and method"),
    "method": (patched(PLAIN, LOCAL, 8, "H", 8), "must have the same name and method"),
    "encryption": (patched(PLAIN, LOCAL, 6, "H", ENCRYPTED), "must have the same name and method"),
    "stored size": (patched(PLAIN, LOCAL, 18, "L", 5), "must have the same sizes and checksum"),
    "size": (patched(PLAIN, LOCAL, 22, "L", 3), "must have the same sizes and checksum"),
    "checksum": (patched(PLAIN, LOCAL, 14, "L", 3), "must have the same sizes and checksum"),
    "extra fields": (patched(PLAIN, LOCAL, 28, "H", 1), "must not overlap the next entry"),
    "value": (PLAIN.replace(b"0123", b"0133"), "does not match its checksum"),
    "deflated value": (DEFLATED[:34] + b"\xff\xff" + DEFLATED[36:], "must be valid deflated data"),
    "deflated size": (
        patched(patched(DEFLATED, RECORD, 24, "L", 399), LOCAL, 22, "L", 399),
        "must decompress to 399 bytes",
    ),
    "deflated size, larger": (
        patched(patched(DEFLATED, RECORD, 24, "L", 401), LOCAL, 22, "L", 401),
        "must decompress to 401 bytes",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_entries_are_refused_when_they_are_read(name: str) -> None:
    data, message = DAMAGED[name]
    store = in_memory(data)
    readings: list[Callable[[], Any]] = [
        lambda: store.get("aa"),
        lambda: store.get("aa"),
        lambda: store.source("aa").read_one(),
        lambda: store.get_partial_values([("aa", ALL)]),
    ]
    for read in readings:
        with pytest.raises(DataError, match=message) as caught:
            read()
        assert caught.value.key == "aa"


def test_every_flipped_bit_of_a_file_is_detected_or_harmless() -> None:
    data = zipped({"a/b": b"0123456789", "c": b"abc" * 50}, zipfile.ZIP_DEFLATED)
    expected = contents(in_memory(data))
    for i in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[i] ^= 1 << bit
            try:
                found = contents(in_memory(bytes(flipped)))
            except zarrlite.ZarrliteError:
                continue
            assert set(found.values()) <= set(expected.values()), (i, bit)  # names may differ, but values never do


def test_every_truncated_file_is_refused() -> None:
    data = zipped({"a/b": b"0123456789"})
    for size in range(len(data)):
        with pytest.raises(TruncatedError):
            in_memory(data[:size])


def peak_bytes(work: Callable[[], object]) -> int:
    """Return the peak memory of Python objects while a function runs."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_bomb_is_refused_without_decompressing_it() -> None:
    store = MemoryStore({"a.zip": bomb(2**27)})

    def work() -> None:
        with pytest.raises(DataError, match="must not grow"):
            ZipStore((store, "a.zip"))

    assert peak_bytes(work) < 2**22


def test_a_value_that_is_larger_than_declared_is_decompressed_no_further() -> None:
    data = bomb(2**24)
    data = patched(patched(data, RECORD, 24, "L", 1000), LOCAL, 22, "L", 1000)
    store = in_memory(data)

    def work() -> None:
        with pytest.raises(TruncatedError, match="must decompress to 1000 bytes"):
            store.get("a")

    assert peak_bytes(work) < 2**20


# Readers


def test_a_missing_file_is_an_error_for_a_reader(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        ZipStore(tmp_path / "a.zip")
    with pytest.raises(StoreError, match="does not exist"):
        ZipStore((MemoryStore(), "a.zip"))
    with pytest.raises(zarrlite.NodeNotFoundError):
        zarrlite.open(tmp_path / "a.zip", mode="r")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "mode", "message"),
    [
        ("", "r", "source must be the path of a file, not ''"),
        (".", "w", "source must be the path of a file, not '.'"),
        ("a.zip", "r+", "mode must be 'r', 'a' or 'w', not 'r\\+'"),
        ((MemoryStore(), "a.zip"), "w", "mode must be 'r' for a zip file in a store, not 'w'"),
        ((MemoryStore(),), "r", "source must be a path, or a store and a key"),
        (("a.zip", "r"), "r", "source must be a path, or a store and a key"),
    ],
)
def test_invalid_arguments_are_refused(source: Any, mode: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ZipStore(source, mode=mode)


def test_a_reader_keeps_the_file_that_it_has_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"a": b"old"}))
    reader = ZipStore(path)
    with ZipStore(path, mode="a") as store:
        store.set("a", b"new")
    assert (reader.get("a"), ZipStore(path).get("a")) == (b"old", b"new")


def test_a_closed_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"a": b"old"}))
    store = ZipStore(path)
    source = store.source("a")
    assert source.size() == 3
    store.close()
    store.close()
    for use in (lambda: store.get("a"), lambda: list(store.list()), source.read_one, lambda: pickle.dumps(store)):
        with pytest.raises(StoreError, match="is closed; open it again"):
            use()


def test_a_pickled_reader_opens_the_file_again(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped())
    for store in (ZipStore(path), ZipStore((zarrlite.LocalStore(tmp_path), "a.zip")), ZipStore(path, mode="a")):
        again = pickle.loads(pickle.dumps(store))
        assert contents(again) == VALUES
        assert again.read_only == store.read_only


def test_threads_read_one_store(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    values = {f"c/{i}": b"%d" % i * 1000 for i in range(100)}
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path.write_bytes(zipped(values, method))
        store = ZipStore(path)

        def read(store: ZipStore = store) -> None:
            assert contents(store) == values

        in_threads(*[read] * 8)


def test_a_damaged_value_is_a_checksum_error() -> None:
    with pytest.raises(ChecksumError):
        in_memory(PLAIN.replace(b"4567", b"4568")).get("bb")
