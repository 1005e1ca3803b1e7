"""Ranges read as slices do, through every kind of source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import Decoded, InMemory, Limit, Slice, Source, Stored, Window
from zarrlite.errors import ArgumentError, ChecksumError, DataError, TruncatedError, ZarrliteError
from zarrlite.stores import MemoryStore

ENDS = st.integers(-14, 14) | st.sampled_from([2**63, -(2**63), 2**70])
RANGES = st.builds(ByteRange, ENDS, st.none() | ENDS)
VALUES = st.binary(max_size=12)


class Counting(MemoryStore):
    """A store that notes what is asked of it."""

    def __init__(self, values: Any = None) -> None:
        self.asked: list[Any] = []
        super().__init__(values)

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        self.asked.append(tuple(byte_range))
        return super().get(key, byte_range)

    def get_partial_values(self, key_ranges: Sequence[tuple[str, ByteRange]]) -> list[Buffer | None]:
        self.asked.append([tuple(byte_range) for _, byte_range in key_ranges])
        return [MemoryStore.get(self, key, byte_range) for key, byte_range in key_ranges]

    def size(self, key: str) -> int | None:
        self.asked.append("size")
        return super().size(key)


class Backwards:
    """A codec that reverses; what it is told to raise, it raises."""

    name = "backwards"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.decoded = 0

    def decode(self, data: Buffer, limit: int) -> bytes:
        self.decoded += 1
        if self.error:
            raise self.error
        return bytes(data)[::-1]


def stored(value: bytes | None) -> Stored:
    return Stored(MemoryStore({} if value is None else {"a/b": value}), "a/b")


# ByteRange


@given(VALUES, RANGES)
def test_a_range_of_a_value_is_a_slice_of_it(value: bytes, r: ByteRange) -> None:
    expected = value[r.start : r.stop]
    for buffer in (value, bytearray(value), memoryview(value)):
        assert bytes(r.of(buffer)) == expected
    start, stop = r.resolve(len(value))
    assert 0 <= start <= stop <= len(value)
    assert value[start:stop] == expected


def test_a_range_of_all_is_the_very_value() -> None:
    value = b"0123"
    assert ALL.of(value) is value
    assert ByteRange(0) == ByteRange(0, None) == ALL


def test_a_part_of_a_large_buffer_is_not_copied() -> None:
    buffer = bytearray(b"0123")
    part = ByteRange(1, 3).of(buffer)
    buffer[1] = ord("x")
    assert bytes(part) == b"x2"


# Sources: each row makes, from a value, a source that must read as that value does

SOURCES: dict[str, Callable[[bytes], Source]] = {
    "Stored": stored,
    "InMemory": InMemory,
    "InMemory memoryview": lambda value: InMemory(memoryview(value)),
    "Window head": lambda value: Window(stored(b"head" + value), head=4),
    "Window tail": lambda value: Window(stored(value + b"tails"), tail=5),
    "Window both": lambda value: Window(stored(b"head" + value + b"tails"), 4, 5),
    "Window of nothing": lambda value: Window(stored(value)),
    "Window in memory": lambda value: Window(InMemory(b"head" + value + b"tails"), 4, 5),
    "Window of Window": lambda value: Window(Window(stored(b"abc" + value + b"de"), head=2), 1, 2),
    "Window of two heads": lambda value: Window(Window(stored(b"abc" + value), head=2), head=1),
    "Window of two tails": lambda value: Window(Window(stored(value + b"abc"), tail=2), tail=1),
    "Slice": lambda value: Slice(stored(b"before" + value + b"behind"), 6, len(value)),
    "Slice in memory": lambda value: Slice(InMemory(b"before" + value + b"behind"), 6, len(value)),
    "Slice of Window": lambda value: Slice(Window(stored(b"he" + value + b"behind"), 1, 3), 1, len(value)),
    "Window of Slice": lambda value: Window(Slice(stored(b"before" + value + b"behind"), 4, len(value) + 3), 2, 1),
    "Decoded": lambda value: Decoded(Backwards(), stored(value[::-1]), Limit(12)),
    "Window of Decoded": lambda value: Window(Decoded(Backwards(), stored((b"a" + value)[::-1]), Limit(13)), 1),
}


@pytest.mark.parametrize("kind", SOURCES)
@settings(max_examples=100)
@given(VALUES, st.lists(RANGES, max_size=4))
def test_a_source_reads_ranges_as_slices(kind: str, value: bytes, ranges: list[ByteRange]) -> None:
    source = SOURCES[kind](value)
    found = source.read(ranges)
    assert found is not None
    assert [bytes(part) for part in found] == [value[start:stop] for start, stop in ranges]
    assert bytes(source.read_all() or b"") == value
    assert source.size() == len(value)


MISSING: dict[str, Callable[[Source], Source]] = {
    "itself": lambda source: source,
    "Window head": lambda source: Window(source, head=3),
    "Window both": lambda source: Window(source, 3, 2),
    "Slice": lambda source: Slice(source, 3, 9),
    "Decoded": lambda source: Decoded(Backwards(), source, Limit(9)),
}


@pytest.mark.parametrize("kind", MISSING)
@pytest.mark.parametrize("inner", [lambda: stored(None), lambda: InMemory(None)], ids=["Stored", "InMemory"])
@given(st.lists(RANGES, min_size=1, max_size=3))
def test_a_missing_value_is_none_all_the_way_up(kind: str, inner: Any, ranges: list[ByteRange]) -> None:
    source = MISSING[kind](inner())
    assert source.read(ranges) is None
    assert source.read_all() is None
    assert source.size() == (9 if kind == "Slice" else None)


# Window


@settings(max_examples=100)
@given(st.binary(max_size=8), st.integers(0, 6), st.integers(0, 6), RANGES, st.booleans())
def test_a_value_shorter_than_its_padding_is_never_data(
    value: bytes, head: int, tail: int, r: ByteRange, in_memory: bool
) -> None:
    if len(value) >= head + tail:
        value = value[: max(0, head + tail - 1)]
    if not head + tail:
        head = 1
    window = Window(InMemory(value) if in_memory else stored(value), head, tail)
    message = f"the stored value has {len(value)} bytes, its padding alone has {head + tail}"
    for whole in (window.read_all, window.size):
        with pytest.raises(TruncatedError) as caught:
            whole()
        assert str(caught.value) == message
    found = refused = None
    try:
        found = window.read([r])
    except TruncatedError as error:
        refused = str(error)
    # a range that needs no size is not refused: whoever asked misses every byte of it
    assert refused == message or (found == [b""] and not in_memory)


@pytest.mark.parametrize(
    ("head", "tail", "ranges", "requests"),
    [
        (4, 0, [(0, 2)], [(4, 6)]),
        (4, 0, [(3, None)], [(7, None)]),
        (0, 4, [(-2, None)], [(-6, -4)]),
        (0, 4, [(-3, -1)], [(-7, -5)]),
        (0, 4, [(0, -1)], [(0, -5)]),
        (0, 0, [(-3, 5)], [(-3, 5)]),
        (4, 0, [(0, 2), (5, 6)], [[(4, 6), (9, 10)]]),
        (4, 4, [(0, None)], [(0, None)]),
        (4, 4, [(1, 2)], ["size", (5, 6)]),
        (4, 0, [(-2, None)], ["size", (-2, None)]),
        (4, 0, [(-20, None)], ["size", "size", (4, 16)]),
        (0, 4, [(1, 3)], ["size", (1, 3)]),
        (4, 0, [(0, None), (1, 2)], [(0, None)]),
    ],
)
def test_a_window_asks_for_the_size_only_where_a_range_could_reach_the_padding(
    head: int, tail: int, ranges: Any, requests: Any
) -> None:
    store = Counting({"k": bytes(range(16))})
    found = Window(Stored(store, "k"), head, tail).read([ByteRange(*r) for r in ranges])
    inner = bytes(range(16))[head : 16 - tail]
    assert found is not None
    assert [bytes(part) for part in found] == [inner[start:stop] for start, stop in ranges]
    assert store.asked == requests


@pytest.mark.parametrize(
    ("partial", "source"),
    [
        (True, stored(b"")),
        (False, InMemory(b"")),
        (True, Window(stored(b""))),
        (False, Window(InMemory(b""))),
        (True, Slice(stored(b""), 0, 0)),
        (False, Slice(InMemory(b""), 0, 0)),
        (False, Decoded(Backwards(), stored(b""), Limit(0))),
        (False, Window(Decoded(Backwards(), stored(b""), Limit(0)))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_source_knows_whether_a_part_is_cheaper_than_the_whole(partial: bool, source: Source) -> None:
    assert source.partial is partial


# Slice


def test_a_slice_that_leaves_its_value_is_an_error() -> None:
    source = Slice(stored(b"0123456789"), 6, 8)
    assert source.read([ByteRange(0, 4)]) == [b"6789"]
    with pytest.raises(TruncatedError) as caught:
        source.read([ByteRange(2, 7)])
    assert str(caught.value) == "5 bytes are missing at offset 8"
    with pytest.raises(TruncatedError):
        source.read_all()


# Stored


def test_one_range_is_one_get_and_several_are_one_batch() -> None:
    store = Counting({"k": b"0123456789"})
    source = Stored(store, "k")
    assert source.read([ByteRange(1, 3)]) == [b"12"]
    assert source.read([ByteRange(1, 3), ByteRange(-1)]) == [b"12", b"9"]
    assert source.read_all() == b"0123456789"
    assert source.size() == 10
    assert store.asked == [(1, 3), [(1, 3), (-1, None)], (0, None), "size"]


# Decoded


def test_a_value_is_decoded_once_however_often_it_is_read() -> None:
    codec = Backwards()
    source = Decoded(codec, stored(b"cba"), Limit(3))
    assert source.read([ByteRange(0, 1), ByteRange(-1)]) == [b"a", b"c"]
    assert (source.read_all(), source.size(), codec.decoded) == (b"abc", 3, 1)


def test_an_empty_value_is_a_value() -> None:
    source = Decoded(Backwards(), stored(b""), Limit(3))
    assert (source.read([ALL]), source.read_all(), source.size()) == ([b""], b"", 0)


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (ValueError("odd"), DataError, "codec backwards: cannot be decoded: odd"),
        (MemoryError(), DataError, "codec backwards: cannot be decoded: "),
        (ChecksumError("differs"), ChecksumError, "codec backwards: differs"),
        (DataError("from within", codec="inner"), DataError, "codec inner: from within"),
        (ArgumentError("no such option"), ArgumentError, "no such option"),
    ],
)
def test_whatever_a_codec_raises_becomes_an_error_of_zarrlite(
    raised: Exception, expected: type[ZarrliteError], message: str
) -> None:
    with pytest.raises(ZarrliteError) as caught:
        Decoded(Backwards(raised), stored(b"abc"), Limit(3)).read([ALL])
    assert (type(caught.value), str(caught.value)) == (expected, message)


@pytest.mark.parametrize(
    ("limit", "size", "most"), [(Limit(3), 4, 3), (Limit(0, 1), 5, None), (Limit(4, 0), 4, None), (Limit(2), 3, 2)]
)
def test_a_codec_that_makes_more_than_fits_is_refused(limit: Limit, size: int, most: int | None) -> None:
    source = Decoded(Backwards(), stored(bytes(size)), limit)
    if most is None:
        assert source.size() == size
        return
    with pytest.raises(TruncatedError) as caught:
        source.read_all()
    assert str(caught.value) == f"codec backwards: decodes to {size} bytes, at most {most} fit here"


def test_a_limit_is_fixed_or_in_proportion_whichever_is_more() -> None:
    assert [Limit(100, 3).of(n) for n in (0, 33, 34)] == [100, 100, 102]
