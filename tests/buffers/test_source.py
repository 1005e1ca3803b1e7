"""Sources: a value has the same bytes whichever kind of source reads it, and with whichever method."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source, Window
from zarrlite.errors import TruncatedError
from zarrlite.stores import LocalStore, MappingStore, MemoryStore, PrefixStore, Store
from zarrlite.stores.base import InPlace, StoredValue

ENDS = st.integers(-14, 14) | st.sampled_from([2**63, -(2**63), 2**70])
RANGES = st.builds(ByteRange, ENDS, st.none() | ENDS)
VALUES = st.binary(max_size=12)
KEY = "a/b"


class DictStore(Store):
    """A store that implements only `get`, and thus uses the default sources of `Store`."""

    def __init__(self, values: dict[str, bytes]) -> None:
        self.values = values

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return byte_range.of(self.values[key]) if key in self.values else None


class Whole(Source):
    """A source that implements only `read`."""

    def __init__(self, value: bytes | None) -> None:
        self.value = value

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        return None if self.value is None else [byte_range.of(self.value) for byte_range in ranges]


def stored(value: bytes | None) -> Source:
    return StoredValue(DictStore({} if value is None else {KEY: value}), KEY)


def in_memory_store(value: bytes | None) -> Source:
    return MemoryStore({} if value is None else {KEY: value}).source(KEY)


def around(inner: Callable[[bytes | None], Source], head: bytes, tail: bytes) -> Callable[[bytes | None], Source]:
    """Return a function that puts `head` and `tail` around a value, and returns a `Window` source, which hides both."""
    return lambda value: Window(inner(None if value is None else head + value + tail), len(head), len(tail), "pad")


SOURCES: dict[str, Callable[[bytes | None], Source]] = {
    "read alone": Whole,
    "in memory": InMemory,
    "memoryview": lambda value: InMemory(None if value is None else memoryview(value)),
    "stored": stored,
    "in a memory store": in_memory_store,
    "in a mapping of bytearrays": lambda value: MappingStore({} if value is None else {KEY: bytearray(value)}).source(
        KEY
    ),
    "under a prefix": lambda value: PrefixStore(MemoryStore({} if value is None else {KEY: value}), "a/").source("b"),
    "without a head": around(stored, b"head", b""),
    "without a tail": around(stored, b"", b"tails"),
    "without head and tail": around(stored, b"head", b"tails"),
    "without anything": around(stored, b"", b""),
    "in memory, without head and tail": around(InMemory, b"head", b"tails"),
    "window of a window": around(around(stored, b"ab", b""), b"c", b"de"),
    "window of a window in memory": around(around(InMemory, b"ab", b"cd"), b"e", b""),
}


@pytest.mark.parametrize("kind", SOURCES)
@settings(max_examples=100)
@given(value=VALUES, ranges=st.lists(RANGES, max_size=4), room=st.none() | st.integers(0, 40))
def test_ranges_are_read_like_slices(kind: str, value: bytes, ranges: list[ByteRange], room: int | None) -> None:
    source = SOURCES[kind](value)
    found = source.read(ranges, None if room is None else memoryview(bytearray(room)))
    assert found is not None
    assert [bytes(part) for part in found] == [value[start:stop] for start, stop in ranges]
    for byte_range in ranges:
        assert bytes(source.read_one(byte_range) or b"") == value[byte_range.start : byte_range.stop]
    assert bytes(source.read_one() or b"") == value
    assert source.size() == len(value)
    assert source.known_size() in (None, len(value))
    assert source.is_current()
    source.close()


@pytest.mark.parametrize("kind", SOURCES)
@given(ranges=st.lists(RANGES, min_size=1, max_size=3))
def test_every_method_returns_none_for_a_missing_value(kind: str, ranges: list[ByteRange]) -> None:
    source = SOURCES[kind](None)
    assert source.read(ranges) is None
    assert source.read(ranges, memoryview(bytearray(20))) is None
    assert source.read_one(ranges[0]) is source.read_one() is None
    assert source.size() is source.known_size() is None
    assert source.is_current()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("read alone", None),
        ("stored", None),
        ("without a head", None),
        ("in memory", 3),
        ("in a memory store", 3),
        ("in memory, without head and tail", 3),
    ],
)
def test_the_size_is_known_if_it_takes_no_request(kind: str, expected: int | None) -> None:
    assert SOURCES[kind](b"012").known_size() == expected


# Windows


@settings(max_examples=100)
@given(st.binary(max_size=8), st.integers(0, 6), st.integers(0, 6), RANGES, st.booleans())
def test_a_value_shorter_than_its_padding_is_never_data(
    value: bytes, head: int, tail: int, byte_range: ByteRange, in_memory: bool
) -> None:
    if len(value) >= head + tail:
        value = value[: max(0, head + tail - 1)]
    if not head + tail:
        head = 1
    window = Window(InMemory(value) if in_memory else stored(value), head, tail, "pad")
    for read in (window.read_one, window.size, lambda: window.read([byte_range])):
        with pytest.raises(TruncatedError) as caught:
            read()
        message = f"codec pad: the stored value has {len(value)} bytes, but its padding alone has {head + tail}"
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("separate", "tail", "expected"), [(0, 0, 0), (0, 4, 0), (10, 0, 10), (10, 4, 6), (10, 10, 0), (10, 12, 0)]
)
def test_a_window_reports_how_much_of_its_end_can_be_replaced_alone(separate: int, tail: int, expected: int) -> None:
    source = InMemory(bytes(20))
    source.separate_tail = separate
    assert Window(source, 1, tail, "pad").separate_tail == expected
    assert InMemory(b"").separate_tail == stored(b"").separate_tail == 0


# Requests


class Counting(DictStore):
    """A store that records requests."""

    def __init__(self, values: dict[str, bytes]) -> None:
        super().__init__(values)
        self.requests: list[Any] = []

    def get_partial_values(self, requests: Any, memory: memoryview | None = None) -> list[Buffer | None]:
        self.requests.append([tuple(byte_range) for _, byte_range in requests])
        return super().get_partial_values(requests, memory)

    def size(self, key: str) -> int | None:
        self.requests.append("size")
        return super().size(key)


def test_several_ranges_are_one_request() -> None:
    store = Counting({KEY: b"0123456789"})
    source = store.source(KEY)
    assert source.read([ByteRange(1, 3), ByteRange(-1)]) == [b"12", b"9"]
    assert source.read_one(ByteRange(1, 3)) == b"12"
    assert source.read_one() == b"0123456789"
    assert (source.size(), source.known_size()) == (10, None)
    assert store.requests == [[(1, 3), (-1, None)], [(1, 3)], [(0, None)], "size"]


def test_a_window_reads_no_more_than_the_size_and_the_ranges() -> None:
    store = Counting({KEY: b"head0123456789tail"})
    window = Window(store.source(KEY), 4, 4, "pad")
    assert window.read([ByteRange(1, 3), ByteRange(-1), ByteRange(8, 99)]) == [b"12", b"9", b"89"]
    assert store.requests == ["size", [(5, 7), (13, 14), (12, 14)]]


def test_opening_a_source_reads_nothing() -> None:
    store = Counting({KEY: b""})
    Window(store.source(KEY), 4, 4, "pad")
    assert store.requests == []


# All reads from a source see the same value


@pytest.fixture(params=["local", "memory", "mapping", "prefix of local", "prefix of memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store that guarantees that all reads from a source see the same value."""
    stores: dict[str, Callable[[], Store]] = {
        "local": lambda: LocalStore(tmp_path / "store"),
        "memory": MemoryStore,
        "mapping": lambda: MappingStore(collections.UserDict()),
        "prefix of local": lambda: PrefixStore(LocalStore(tmp_path / "store"), "p/"),
        "prefix of memory": lambda: PrefixStore(MemoryStore(), "p/"),
    }
    return stores[request.param]()


OPENING: dict[str, Callable[[Source], object]] = {
    "one range": lambda source: source.read_one(ByteRange(0, 1)),
    "several ranges": lambda source: source.read([ByteRange(0, 1), ByteRange(-1)]),
    "all": lambda source: source.read_one(),
    "size": lambda source: source.size(),
    "known size": lambda source: source.known_size(),
}
REPLACING: dict[str, Callable[[Store], None]] = {
    "set": lambda store: store.set(KEY, b"9876"),
    "set, longer": lambda store: store.set(KEY, b"98765"),
    "erase": lambda store: store.erase(KEY),
    "erase_prefix": lambda store: store.erase_prefix("a/"),
    "update": lambda store: store.update(KEY, lambda old: b"9876"),
    "erase and set": lambda store: (store.erase(KEY), store.set(KEY, b"9876"))[-1],
}


@pytest.mark.parametrize("opening", OPENING)
@pytest.mark.parametrize("replacing", REPLACING)
def test_a_source_reads_the_value_that_it_opened(store: Store, opening: str, replacing: str) -> None:
    store.set(KEY, b"0123")
    source = store.source(KEY)
    OPENING[opening](source)
    REPLACING[replacing](store)
    assert (source.read_one(), source.read([ByteRange(1, 2), ByteRange(-1)])) == (b"0123", [b"1", b"3"])
    assert (source.size(), source.known_size()) == (4, 4)
    source.close()


@pytest.mark.parametrize("opening", OPENING)
@pytest.mark.parametrize("replacing", REPLACING)
@pytest.mark.parametrize("windowed", [False, True])
def test_a_source_is_current_until_its_value_is_replaced(
    store: Store, opening: str, replacing: str, windowed: bool
) -> None:
    store.set(KEY, b"0123")
    inner = store.source(KEY)
    source = Window(inner, 1, 1, "pad") if windowed else inner
    OPENING[opening](source)
    assert source.is_current()
    store.set("a/other", b"another key")
    assert source.is_current()
    REPLACING[replacing](store)
    assert not source.is_current()
    inner.close()


@pytest.mark.parametrize("replacing", REPLACING)
def test_a_source_that_was_not_opened_reads_the_value_at_its_first_read(store: Store, replacing: str) -> None:
    store.set(KEY, b"0123")
    source = store.source(KEY)
    REPLACING[replacing](store)
    assert source.is_current()
    assert source.read_one() == store.get(KEY)
    assert source.is_current()
    source.close()


def test_a_closed_source_opens_the_value_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set(KEY, b"0123")
    source = store.source(KEY)
    assert source.read_one() == b"0123"
    store.set(KEY, b"456")
    source.close()
    assert (source.size(), source.read_one(), source.is_current()) == (3, b"456", True)
    source.close()
    source.close()


def test_the_source_of_a_file_that_is_changed_in_place_is_not_current(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set(KEY, b"0123")
    source = store.source(KEY)
    assert source.size() == 4
    store.change([(KEY, lambda old: InPlace([(4, b"456")]))])
    assert not source.is_current()
    assert source.read_one() == b"0123"  # without the bytes that were appended after it was opened
    source.close()


def test_a_source_is_not_current_once_its_directory_is_replaced_by_a_file(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set(KEY, b"0123")
    source = store.source(KEY)
    assert source.size() == 4
    store.erase(KEY)
    store.set("a", b"a key where a prefix was")
    assert not source.is_current()
    source.close()


def test_a_directory_is_a_missing_value(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set(KEY, b"0123")
    source = store.source("a")
    assert source.read_one() is source.size() is source.known_size() is None
    assert source.is_current()
    source.close()


def test_a_missing_value_stays_missing_until_the_source_is_closed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    source = store.source(KEY)
    assert source.size() is None
    store.set(KEY, b"0123")
    assert source.read_one() is source.size() is None
    source.close()
    assert source.read_one() == b"0123"
    source.close()


def test_sources_hold_no_file_open_once_they_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    opened: set[int] = set()
    original_open, original_close = os.open, os.close

    def recording_open(*args: Any, **options: Any) -> int:
        fd = original_open(*args, **options)
        opened.add(fd)
        return fd

    def recording_close(fd: int) -> None:
        opened.discard(fd)
        original_close(fd)

    store = LocalStore(tmp_path)
    store.set(KEY, b"0123")
    monkeypatch.setattr(os, "open", recording_open)
    monkeypatch.setattr(os, "close", recording_close)
    source = store.source(KEY)
    assert not opened
    assert source.read_one() == b"0123"
    assert len(opened) == 1
    source.close()
    assert not opened
