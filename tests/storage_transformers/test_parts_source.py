"""Sources of chunks that are split into parts: all reads see one version of the chunk, or raise an error."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.buffers.source import ReplacedError, Source, Window
from zarrlite.codecs import Bytes, Crc32c, Pad, Zstd
from zarrlite.errors import DataError, TruncatedError
from zarrlite.nodes.creation import array_metadata
from zarrlite.storage_transformers import ConcatParts, Part
from zarrlite.stores import LocalStore, MemoryStore, PrefixStore, Store

VALUE = b"0123456789abcdef"
OTHER = b"ABCDEFGHIJKLMNOP"
KEY = "c/0"
RANGES = [(0, 16), (0, 0), (3, 9), (15, 16), (10, 30), (16, 16), (20, 30), (-5, None), (0, 3), (1, -1)]
LAYOUTS: dict[str, tuple[Part, ...]] = {
    "index at the end": (Part(""), Part(".i", 5)),
    "index at the start": (Part(".i", 5), Part("")),
    "header and index": (Part(".h", 3), Part(""), Part(".i", 5)),
    "all sized": (Part(".a", 7), Part(".b", 9)),
}


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "store") if request.param == "local" else MemoryStore()


@pytest.fixture(params=LAYOUTS)
def parts(request: pytest.FixtureRequest) -> tuple[Part, ...]:
    return LAYOUTS[request.param]


def in_parts(store: Store, parts: tuple[Part, ...]) -> Store:
    return ConcatParts(parts).wrap(store, array_metadata((4,), "u1", chunks=(1,)).in_store)


def content(data: Any) -> Any:
    return None if data is None else bytes(data)


READS: dict[str, Callable[[Source], object]] = {
    "one range": lambda source: source.read_one(ByteRange(2, 14)),
    "several ranges": lambda source: source.read([ByteRange(0, 2), ByteRange(-2)]),
    "all": lambda source: source.read_one(),
    "size": lambda source: source.size(),
    "known size": lambda source: source.known_size(),
}


@pytest.mark.parametrize("first", READS)
@pytest.mark.parametrize(("start", "stop"), RANGES)
@pytest.mark.parametrize("padded", [False, True])
def test_ranges_are_read_like_slices_whatever_was_read_before(
    store: Store, parts: tuple[Part, ...], first: str, start: int, stop: int | None, padded: bool
) -> None:
    if padded:
        parts = tuple(part._replace(size=part.size + 2) if part.size == 9 else part for part in parts)
    wrapped = in_parts(store, parts)
    wrapped.set(KEY, b"<" + VALUE + b">" if padded else VALUE)
    chunk = wrapped.source(KEY)
    source = Window(chunk, 1, 1, "pad") if padded else chunk
    READS[first](source)
    expected = VALUE[start:stop]
    assert content(source.read_one(ByteRange(start, stop))) == expected
    assert [content(part) for part in source.read([ByteRange(start, stop), ALL]) or ()] == [expected, VALUE]
    assert source.known_size() == source.size() == len(VALUE)
    assert source.is_current()
    chunk.close()


def test_every_read_of_a_missing_chunk_returns_none(store: Store, parts: tuple[Part, ...]) -> None:
    source = in_parts(store, parts).source(KEY)
    for read in READS.values():
        assert read(source) is None
    for start, stop in RANGES:
        assert source.read_one(ByteRange(start, stop)) is None
        assert source.read([ByteRange(0, 2), ByteRange(start, stop)]) is None
    assert source.is_current()
    source.close()


@pytest.mark.parametrize("damage", ["main", "index", "shorter", "longer"])
def test_parts_that_do_not_fit_are_refused_in_every_way(store: Store, damage: str) -> None:
    wrapped = in_parts(store, LAYOUTS["index at the end"])
    wrapped.set(KEY, VALUE)
    if damage in ("shorter", "longer"):
        store.set(KEY + ".i", b"1234" if damage == "shorter" else b"123456")
        message = rf"^the part 'c/0\.i' has {4 if damage == 'shorter' else 6} bytes, not 5$"
    else:
        gone = KEY + (".i" if damage == "index" else "")
        store.erase(gone)
        message = rf"^the part '{gone}' is missing, but other parts exist$"
    source = wrapped.source(KEY)
    assert source.known_size() is None
    for read in (source.read_one, source.size, lambda: source.read([ByteRange(2, 14), ALL])):
        with pytest.raises(DataError, match=message):
            read()
    source.close()


def test_a_part_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped, opened = in_parts(LocalStore(tmp_path), LAYOUTS["index at the end"]), []
    wrapped.set(KEY, VALUE)
    source = wrapped.source(KEY)
    original = os.open
    monkeypatch.setattr(os, "open", lambda path, *flags: opened.append(Path(path).name) or original(path, *flags))
    for _ in range(3):
        assert source.read_one(ByteRange(-5)) == VALUE[-5:]
        assert source.known_size() == len(VALUE)
        assert source.read_one(ByteRange(2, 4)) == VALUE[2:4]
        assert source.read_one(ByteRange(len(VALUE) - 3, len(VALUE) - 1)) == VALUE[-3:-1]
        assert source.read_one() == VALUE
    assert opened == ["0.i", "0"]
    source.close()


def test_only_the_parts_that_hold_a_range_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped, opened = in_parts(LocalStore(tmp_path), LAYOUTS["header and index"]), []
    wrapped.set(KEY, VALUE)
    original = os.open
    monkeypatch.setattr(os, "open", lambda path, *flags: opened.append(Path(path).name) or original(path, *flags))
    for byte_range, part in ((ByteRange(-5), "0.i"), (ByteRange(0, 3), "0.h"), (ByteRange(3, 11), "0")):
        source = wrapped.source(KEY)
        assert source.read_one(byte_range) == VALUE[byte_range.start : byte_range.stop]
        source.close()
        assert opened == [part]
        opened.clear()


@pytest.mark.parametrize("name", ["index at the end", "index at the start"])
def test_parts_that_are_replaced_are_read_once_the_source_is_closed(store: Store, name: str) -> None:
    wrapped = in_parts(store, LAYOUTS[name])
    wrapped.set(KEY, VALUE)
    end = ByteRange(-5) if name == "index at the end" else ByteRange(0, 5)
    index = VALUE[end.start : end.stop]
    source = wrapped.source(KEY)
    assert source.read_one() == VALUE
    assert source.read_one(end) == index
    store.set(KEY + ".i", b"other")
    with pytest.raises(ReplacedError):  # the main part has its old size, but may have been overwritten
        source.read_one(end)
    source.close()
    assert source.read_one(end) == b"other"
    source.close()
    for damaged in (b"four", b"longer"):
        store.set(KEY + ".i", damaged)
        with pytest.raises(TruncatedError, match=rf"'c/0\.i' has {len(damaged)} bytes, not 5"):
            source.read_one(end)
        source.close()


# Writers act between the steps of a read. `known_size` is left out: it may be outdated, which reads detect.
CHECKED_READS = [name for name in READS if name != "known size"]


class Interrupted(PrefixStore):
    """A store that calls `write` right before the part `before` is opened for reading."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, "")
        self.opened: list[str] = []
        self.write: Callable[[], object] | None = None
        self.before = ""

    def source(self, key: str) -> Source:
        if key.startswith(KEY):
            self.opened.append(key)
        if key == self.before and self.write is not None:
            self.write()
        return super().source(key)


def opened_by(store: Store, parts: tuple[Part, ...], read: str) -> list[str]:
    """Return the keys of the parts that a read opens, in order."""
    recording = Interrupted(store)
    source = in_parts(recording, parts).source(KEY)
    READS[read](source)
    source.close()
    return recording.opened


WRITES: dict[str, Callable[[Store, str], object]] = {
    "replaced": lambda store, key: store.set(key, bytes(store.get(key) or b"")[::-1]),
    "updated": lambda store, key: store.update(key, lambda old: bytes(old or b"")[::-1]),
    "grown": lambda store, key: store.set(key, bytes(store.get(key) or b"") + b"more"),
    "erased": lambda store, key: store.erase(key),
}


@pytest.mark.parametrize("read", CHECKED_READS)
@pytest.mark.parametrize("write", WRITES)
def test_a_part_that_changes_before_the_last_one_is_opened_is_an_error(
    store: Store, parts: tuple[Part, ...], read: str, write: str
) -> None:
    in_parts(store, parts).set(KEY, VALUE)
    *before, last = opened_by(store, parts, read)
    assert before
    for key in before:
        in_parts(store, parts).set(KEY, VALUE)
        interrupted = Interrupted(store)
        interrupted.before = last
        interrupted.write = lambda key=key: WRITES[write](store, key)  # type: ignore[misc]
        source = in_parts(interrupted, parts).source(KEY)
        with pytest.raises(DataError, match=r"^was replaced while it was read; read it again$"):
            READS[read](source)
        assert not source.is_current()
        source.close()


@pytest.mark.parametrize("read", CHECKED_READS)
def test_a_chunk_that_is_replaced_before_its_last_part_is_opened_is_an_error(
    store: Store, parts: tuple[Part, ...], read: str
) -> None:
    wrapped = in_parts(store, parts)
    wrapped.set(KEY, VALUE)
    interrupted = Interrupted(store)
    interrupted.before = opened_by(store, parts, read)[-1]
    interrupted.write = lambda: wrapped.set(KEY, OTHER)
    source = in_parts(interrupted, parts).source(KEY)
    with pytest.raises(DataError, match=r"^was replaced while it was read; read it again$"):
        READS[read](source)
    source.close()
    interrupted.write = None
    assert source.read_one() == OTHER
    source.close()


@pytest.mark.parametrize("read", CHECKED_READS)
def test_a_chunk_replaced_before_its_first_part_is_opened_reads_as_the_new_one(
    store: Store, parts: tuple[Part, ...], read: str
) -> None:
    wrapped = in_parts(store, parts)
    wrapped.set(KEY, VALUE)
    interrupted = Interrupted(store)
    interrupted.before = opened_by(store, parts, read)[0]
    interrupted.write = lambda: wrapped.set(KEY, OTHER)
    source = in_parts(interrupted, parts).source(KEY)
    READS[read](source)
    assert source.read_one() == OTHER
    assert source.is_current()
    source.close()


@pytest.mark.parametrize("read", CHECKED_READS)
def test_a_chunk_that_is_replaced_after_its_last_part_was_opened_is_read_again(
    store: Store, parts: tuple[Part, ...], read: str
) -> None:
    wrapped = in_parts(store, parts)
    wrapped.set(KEY, VALUE)
    source = wrapped.source(KEY)
    READS[read](source)
    if len(opened_by(store, parts, read)) < len(parts):
        assert source.size() == len(VALUE)
    wrapped.set(KEY, OTHER)
    for again in (source.read_one, source.size):  # a part could have been overwritten in place since it was opened
        with pytest.raises(DataError, match=r"^was replaced while it was read; read it again$"):
            again()
    assert not source.is_current()
    source.close()
    assert source.read_one() == OTHER
    source.close()


def test_a_source_does_not_see_bytes_appended_after_it_was_opened(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    wrapped = in_parts(store, (Part(""), Part(".index", 4)))
    wrapped.set(KEY, b"datadata" + b"tail")
    source = wrapped.source(KEY)
    assert source.size() == 12
    assert source.read_one(ByteRange(0, 4)) == b"data"
    wrapped.set_partial_values([(KEY, 8, b"more"), (KEY, 12, b"TAIL")])
    assert wrapped.get(KEY) == b"datadatamoreTAIL"
    assert source.read_one() == b"datadatatail"
    source.close()


@pytest.mark.parametrize("number", [0, -1])
def test_the_source_of_a_chunk_is_current_until_one_of_its_parts_is_replaced(
    store: Store, parts: tuple[Part, ...], number: int
) -> None:
    wrapped = in_parts(store, parts)
    wrapped.set(KEY, VALUE)
    source = wrapped.source(KEY)
    assert source.is_current()  # nothing has been opened yet
    assert source.size() == len(VALUE)
    assert source.is_current()
    key = KEY + parts[number].key_suffix
    store.set(key, bytes(store.get(key) or b"")[::-1])
    assert not source.is_current()
    source.close()


# Sizes


@pytest.mark.parametrize("parts", [LAYOUTS["index at the end"], LAYOUTS["index at the start"]])
@pytest.mark.parametrize("codecs", [[Bytes()], [Bytes(), Zstd()], [Bytes(), Crc32c()], [Bytes(), Pad("start", 3)]])
def test_a_part_that_is_too_long_is_refused_before_it_is_read(
    tmp_path: Path, parts: tuple[Part, ...], codecs: list[Any]
) -> None:
    data = np.arange(100, dtype="u1")
    array = zarrlite.create_array(
        tmp_path, data=data, chunks=(100,), codecs=codecs, storage_transformers=[ConcatParts(parts)]
    )
    assert np.array_equal(array[...], data)
    with (tmp_path / KEY).open("r+b") as file:
        file.truncate(2**40)
    tracemalloc.start()
    try:
        for index in (..., 5, slice(3, 9)):
            with pytest.raises(TruncatedError, match=r"^chunk c/0.* has (more than \d+|1099511627781) bytes"):
                array[index]
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
