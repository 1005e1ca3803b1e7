"""The laws that every store obeys, as base classes for pytest.

    class TestMyStore(StoreLaws):
        def make_store(self) -> Store:
            return MyStore(...)  # writable, and empty

    class TestMyReader(ReadingLaws):
        def store_with(self, values: Mapping[str, bytes]) -> Store:
            return MyReader(...)  # holds these values; it may be read-only

Rules
- The laws of `ReadingLaws` apply to every store, those of `StoreLaws` to every writable store. The laws use
  only the public interface. The test class of a store that cannot be listed sets `can_list = False`.
- The laws never use a key and the same text as a prefix ("a" and "a/b") at the same time, since stores need not support
  that.
"""

from __future__ import annotations

import contextlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import ReplacedError, Source
from zarrlite.errors import KeyRefusedError, ReadOnlyError, StoreError
from zarrlite.stores.base import InPlace, Limits, Store, WrongSizeError

HOSTILE_KEYS = (
    "", "/", "/a", "a/", "a//b", ".", "..", "./a", "../a", "a/.", "a/..", "a/./b", "a/../b", "a/../../b", "/etc/passwd",
    "a\0b", "\0", "a\\b", "..\\a", "\\",
)  # fmt: skip
HOSTILE_PREFIXES = ("a", "/", "//", "/a/", "a//", "../", "a/../", "./", "a\\/", "a\0/")
VALUES = (b"", b"x", b"0123456789", bytes(range(256)) * 5)
_OFFSETS = (0, 1, 4, 9, 10, 11, 500, 1280, 10**6, 2**63, 2**70)
RANGES = [
    ByteRange(start, stop)
    for start, stop in itertools.product(
        (*_OFFSETS, *(-n for n in _OFFSETS if n)), (None, *_OFFSETS, *(-n for n in _OFFSETS if n))
    )
]
MODEL = {
    "zarr.json": b"{}",
    "a/zarr.json": b"1",
    "a/c/0/0": b"22",
    "a/c/0/1": b"333",
    "a/c-d": b"4",
    "a/c.d/x": b"5",
    "ab/c": b"6",
    "b/deep/er/still/x": b"7",
    "é/ñ 1": b"8",
}


class ReadingLaws(ABC):
    """The laws of reading, for read-only stores.

    Subclass this class, name the subclass `Test...`, and define `store_with`.
    """

    ranges: Sequence[ByteRange] = RANGES  # the ranges that are read; the test class of a slow store may define fewer
    can_list = True  # whether the store can be listed

    @abstractmethod
    def store_with(self, values: Mapping[str, bytes]) -> Store:
        """Return a new store that holds these values."""

    def filled(self) -> Store:
        """Return a new store that holds the values of `MODEL`."""
        return self.store_with(MODEL)

    # Values

    def test_a_missing_key_is_none(self) -> None:
        store = self.store_with({})
        assert store.get("a") is None
        assert store.get("a/b", ByteRange(1, 2)) is None
        assert store.size("a/b") is None
        assert store.get_partial_values([("a", ALL), ("a/b", ByteRange(-1), 5)]) == [None, None]

    def test_a_store_without_values_is_empty(self) -> None:
        store = self.store_with({})
        if not self.can_list:
            return
        assert list(store.list()) == list(store.list_prefix("a/")) == []
        assert store.list_dir("") == store.list_dir("a/") == ([], [])

    def test_ranges_are_slices(self) -> None:
        for value in VALUES:
            store = self.store_with({"a/b": value})
            assert content(store.get("a/b")) == value
            assert store.size("a/b") == len(value)
            for start, stop in self.ranges:
                part = content(store.get("a/b", ByteRange(start, stop)))
                assert part == value[start:stop], (value, start, stop)
                (alone,) = store.get_partial_values([("a/b", ByteRange(start, stop))])
                assert content(alone) == value[start:stop], (value, start, stop)

    def test_partial_values_are_in_the_order_of_their_requests(self) -> None:
        store = self.store_with({"a": b"0123456789", "b": b""})
        requests = [
            ("b", ALL),
            ("a", ByteRange(-2)),
            ("none", ALL),
            ("a", ByteRange(1, 3)),
            ("a", ByteRange(3, 1)),
            ("a", ALL),
        ]
        expected = [b"", b"89", None, b"12", b"", b"0123456789"]
        assert [content(part) for part in store.get_partial_values(requests)] == expected
        assert store.get_partial_values([]) == []
        parts = store.get_partial_values([("a", byte_range) for byte_range in self.ranges])
        assert [content(part) for part in parts] == [b"0123456789"[start:stop] for start, stop in self.ranges]

    def test_a_request_with_a_wrong_expected_size_is_refused_or_served(self) -> None:
        store = self.store_with({"a/b": b"0123456789"})
        part = ByteRange(2, 5)
        requests = [("a/b", part, 10), ("none", part, 10), ("a/b", ByteRange(5, 7), 10), ("a/b", part, None)]
        assert [content(found) for found in store.get_partial_values(requests)] == [b"234", None, b"56", b"234"]
        for size in (0, 9, 11):
            with contextlib.suppress(WrongSizeError):  # a store that does not know the size raises no error
                assert [content(found) for found in store.get_partial_values([("a/b", part, size)])] == [b"234"]

    def test_passing_memory_does_not_change_the_values_read(self) -> None:
        store = self.store_with({"a/b": b"0123456789", "a/c": b"abc", "d": b""})
        ranges = (ALL, ByteRange(0, 4), ByteRange(0, 11), ByteRange(2, 100), ByteRange(-3))
        requests: list[Any] = [(key, r) for r in ranges for key in ("a/b", "none", "a/c", "d", "a")]
        expected = [content(store.get(key, r)) for key, r in requests]
        for size in (0, 1, 5, 64, 4096):
            found = store.get_partial_values(requests, memoryview(bytearray(size)))
            assert [content(part) for part in found] == expected, size

    # Sources

    def test_a_source_reads_ranges_as_slices(self) -> None:
        for value in VALUES:
            check_source(self.store_with({"a/b": value}).source("a/b"), value, self.ranges)

    def test_the_source_for_a_missing_key_is_missing(self) -> None:
        check_missing(self.store_with({}).source("a/b"))

    # Listing

    def test_listings_agree_with_a_dict(self) -> None:
        store = self.filled()
        if not self.can_list:
            for operation in (store.list, lambda: store.list_prefix("a/"), lambda: store.list_dir("a/")):
                raises(StoreError, lambda operation=operation: list(operation()))
            return
        assert sorted(store.list()) == sorted(MODEL)
        for prefix in ("", "a/", "a/c/", "a/c/0/", "ab/", "b/", "none/", "é/"):
            assert sorted(store.list_prefix(prefix)) == sorted(key for key in MODEL if key.startswith(prefix)), prefix
            assert store.list_dir(prefix) == listing(MODEL, prefix), prefix

    # Attributes

    def test_limits_and_locations_are_usable(self) -> None:
        store = self.store_with({})
        assert isinstance(store.limits, Limits)
        assert store.limits.concurrency is None or store.limits.concurrency >= 1
        assert store.limits.gap >= 0
        locations = [store.location(), store.location("a/"), store.location("a/b/"), store.location("b/")]
        assert len(set(locations)) == len(locations)
        assert locations == [store.location(prefix) for prefix in ("", "a/", "a/b/", "b/")]

    # Keys

    def test_hostile_keys_are_refused_by_reading(self) -> None:
        store = self.filled()
        for key in HOSTILE_KEYS:
            for operation in self._reading(store, key):
                raises(KeyRefusedError, operation)
        for prefix in HOSTILE_PREFIXES:
            for listing in (store.list_prefix, store.list_dir):
                raises(KeyRefusedError, lambda listing=listing, prefix=prefix: list(listing(prefix)))

    def _reading(self, store: Store, key: str) -> Iterator[Callable[[], object]]:
        yield lambda: store.get(key)
        yield lambda: store.get_partial_values([("zarr.json", ALL), (key, ByteRange(0, 1))])
        yield lambda: store.size(key)
        yield lambda: store.source(key).read_one()
        yield lambda: store.source(key).size()

    def test_a_read_only_store_refuses_changes(self) -> None:
        store = self.filled()
        if store.read_only:
            for operation in _writing(store, "zarr.json"):
                raises(ReadOnlyError, operation)
            raises(ReadOnlyError, store.erase_prefix, "a/")
            assert {key: content(store.get(key)) for key in MODEL} == MODEL


class StoreLaws(ReadingLaws):
    """The laws of stores that can be written.

    Subclass this class, name the subclass `Test...`, and define `make_store`.
    """

    @abstractmethod
    def make_store(self) -> Store:
        """Return a new store: writable, and empty."""

    def store_with(self, values: Mapping[str, bytes]) -> Store:
        store = self.make_store()
        store.set_many(values.items())
        return store

    # Sources

    def test_a_source_reads_the_old_value_or_the_new_one(self) -> None:
        store = self.make_store()
        states = {(value, len(value), (value[1:2], value[-1:])) for value in (b"old", b"new value")}
        for method in ("size", "read_one", "known_size"):
            store.set("a/b", b"old")
            with contextlib.closing(store.source("a/b")) as source:
                getattr(source, method)()
                store.set("a/b", b"new value")
                try:
                    first, last = source.read([ByteRange(1, 2), ByteRange(-1)]) or (b"", b"")
                    assert (content(source.read_one()), source.size(), (bytes(first), bytes(last))) in states
                except ReplacedError:  # allowed if the source is no longer current: readers then start over
                    assert not source.is_current()

    def test_a_source_is_current_while_its_value_stays(self) -> None:
        store = self.make_store()
        store.set("a/b", b"0123")
        with contextlib.closing(store.source("a/b")) as source:
            for method in ("size", "read_one", "known_size"):
                assert source.is_current()
                getattr(source, method)()
            store.set("a/c", b"another key")
            assert source.is_current()

    # Storing

    def test_set_replaces(self) -> None:
        store = self.make_store()
        for value in (b"long value", b"short", b"", b"again"):
            store.set("a/b", value)
            assert content(store.get("a/b")) == value
        assert list(store.list()) == ["a/b"]

    def test_set_takes_every_kind_of_buffer(self) -> None:
        store = self.make_store()
        for buffer in (b"0123", bytearray(b"0123"), memoryview(b"0123"), memoryview(b"0123").cast("H")):
            store.set("a", buffer)
            assert content(store.get("a")) == b"0123"
            assert store.size("a") == 4
        store.set("a", memoryview(b"00112233")[::2])
        assert content(store.get("a")) == b"0123"

    def test_a_stored_value_does_not_change_with_the_buffer_it_came_in(self) -> None:
        store = self.make_store()
        buffer = bytearray(b"before")
        store.set("a", buffer)
        store.set_partial_values([("b", 0, buffer)])
        store.update("c", lambda _: buffer)
        store.change([("d", [buffer])])
        buffer[:] = b"after!"
        assert [content(store.get(key)) for key in "abcd"] == [b"before"] * 4

    def test_set_many_stores_all_and_the_last_wins(self) -> None:
        store = self.make_store()
        store.set_many([("a", b"1"), ("b/c", b"2"), ("a", b"3")])
        store.set_many(iter([("d", b"4"), ("e/f", b"5"), ("d", b"6")]))
        assert _read(store) == {"a": b"3", "b/c": b"2", "d": b"6", "e/f": b"5"}

    # Changing

    def test_changes_store_erase_and_compute(self) -> None:
        store = self.make_store()
        store.set_many([("a", b"1"), ("b/c", b"2"), ("d", b"0123456789")])
        store.change(
            [
                ("a", None),
                ("b/c", lambda source: [b"old: ", source.read_one() or b""]),
                ("new/1", [b"in", memoryview(b" pieces")]),
                ("new/2", b"at once"),
                ("d", lambda source: InPlace([(1, b"x"), (9, b"yz")])),
                ("none", lambda source: None),
            ]
        )
        assert _read(store) == {"b/c": b"old: 2", "new/1": b"in pieces", "new/2": b"at once", "d": b"0x2345678yz"}

    def test_changes_of_one_key_are_made_in_order(self) -> None:
        store = self.make_store()
        seen: list[bytes | None] = []

        def append(source: Source) -> list[Any]:
            seen.append(content(source.read_one()))
            return [seen[-1] or b"", b"+"]

        store.change([("a", b"1"), ("a", append), ("a", append), ("a", None), ("a", append), ("b", b"2"), ("b", None)])
        assert seen == [b"1", b"1+", None]
        assert _read(store) == {"a": b"+"}

    def test_a_value_is_overwritten_in_place_after_it_was_read(self) -> None:
        store = self.make_store()
        store.set("a/b", b"0123456789")
        seen: list[Any] = []

        def change(source: Source) -> InPlace:
            seen.extend((content(source.read_one(ByteRange(2, 4))), content(source.read_one()), source.size()))
            return InPlace([(2, b"xy"), (8, memoryview(b"89AB")), (4, b"")])

        store.change([("a/b", change)])
        assert seen == [b"23", b"0123456789", 10]
        assert _read(store) == {"a/b": b"01xy456789AB"}
        store.set("a/b", b"and it can be written again")
        assert content(store.get("a/b")) == b"and it can be written again"

    def test_partial_values_overwrite_and_grow_with_zeros(self) -> None:
        store = self.make_store()
        store.set("a", b"0123456789")
        store.set_partial_values([("a", 2, b"xy"), ("b/c", 3, b"z"), ("a", 9, b"!!"), ("a", 3, memoryview(b"Y"))])
        assert _read(store) == {"a": b"01xY45678!!", "b/c": b"\0\0\0z"}

    def test_an_update_replaces_the_value_that_it_receives(self) -> None:
        store = self.make_store()
        previous = None
        for new in (None, b"1", b"2", b"", None, None, b"3"):
            seen: list[Buffer | None] = []

            def change(old: Buffer | None, seen: Any = seen, new: Any = new) -> Buffer | None:
                seen.append(old)
                return new  # type: ignore[no-any-return]

            if store.limits.shared and new is None and previous is not None:
                raises(StoreError, store.update, "a/b", change)  # another machine could have stored a value
                store.erase("a/b")
            else:
                store.update("a/b", change)
            assert [content(old) for old in seen] == [previous]
            assert content(store.get("a/b")) == new
            previous = new

    def test_a_change_that_fails_changes_nothing(self) -> None:
        store = self.make_store()
        store.set("a", b"old")

        def fail(_: Source) -> Buffer | None:
            raise ZeroDivisionError

        for key in ("a", "b/c"):
            raises(ZeroDivisionError, store.change, [(key, fail)])
        assert _read(store) == {"a": b"old"}
        store.update("a", lambda old: b"and not locked")
        assert content(store.get("a")) == b"and not locked"

    # Erasing

    def test_erase_removes_a_key_and_ignores_missing_ones(self) -> None:
        store = self.filled()
        store.erase("a/c/0/0")
        store.erase("a/c/0/0")
        store.erase("none")
        store.erase("none/at/all")
        assert _read(store) == {key: value for key, value in MODEL.items() if key != "a/c/0/0"}

    def test_erase_values_removes_several_keys(self) -> None:
        store = self.filled()
        store.erase_values(iter(["zarr.json", "none", "ab/c"]))
        assert _read(store) == {key: value for key, value in MODEL.items() if key not in ("zarr.json", "ab/c")}

    def test_erase_prefix_removes_every_key_under_it(self) -> None:
        for prefix in ("a/", "a/c/", "a/c/0/", "b/", "none/", "a/zarr.json/", "é/", ""):
            store = self.filled()
            store.erase_prefix(prefix)
            assert _read(store) == {key: value for key, value in MODEL.items() if not key.startswith(prefix)}, prefix

    def test_an_erased_key_can_be_set_again(self) -> None:
        store = self.make_store()
        for key in ("a/b", "a", "a/b/c"):  # "a" is first a prefix, then a key, then a prefix again
            store.set(key, b"x")
            assert _read(store) == {key: b"x"}
            store.erase(key)
            assert list(store.list()) == []

    # Listing

    def test_a_store_may_be_written_while_it_is_listed(self) -> None:
        store = self.filled()
        for key in store.list():
            store.erase(key)
            store.set("new/" + key, b"")
        # new keys may have been listed too, and were then renamed once more
        assert {key.rpartition("new/")[2] for key in store.list()} == set(MODEL)
        assert all(key.startswith("new/") for key in store.list())

    # Locks

    def test_the_holder_of_a_lock_may_write(self) -> None:
        store = self.make_store()
        for _ in range(2):
            with store.lock("a/b"), store.lock("a/b"), store.lock("a/c"):
                store.set("a/b", b"1")
                store.set("a/c", b"2")
                store.erase("a/b")
                store.update("a/b", lambda old: b"3" if old is None else None)
                store.set("other", b"4")
            assert _read(store) == {"a/b": b"3", "a/c": b"2", "other": b"4"}

    def test_threads_lose_no_updates(self) -> None:
        store = self.make_store()
        store.set("there", b"0")
        threads, updates = 8, 50

        def work() -> None:
            for _ in range(updates):
                store.update("there", _add_one)
                store.update("not/there", _add_one)

        in_threads(*[work] * threads)
        assert _read(store) == {"there": b"%d" % (threads * updates), "not/there": b"%d" % (threads * updates)}

    # Attributes

    def test_a_store_that_can_be_written_is_not_read_only(self) -> None:
        assert not self.make_store().read_only

    # Keys

    def test_hostile_keys_are_refused_by_writing(self) -> None:
        store = self.filled()
        for key in HOSTILE_KEYS:
            for operation in _writing(store, key):
                raises(KeyRefusedError, operation)
            raises(KeyRefusedError, lambda key=key: store.lock(key).__enter__())
        for prefix in HOSTILE_PREFIXES:
            raises(KeyRefusedError, store.erase_prefix, prefix)
        assert _read(store) == MODEL


def _writing(store: Store, key: str) -> Iterator[Callable[[], object]]:
    """Yield every operation that changes a key."""
    yield lambda: store.set(key, b"new")
    yield lambda: store.set_many([(key, b"new")])
    yield lambda: store.set_partial_values([(key, 0, b"new")])
    yield lambda: store.erase(key)
    yield lambda: store.erase_values([key])
    yield lambda: store.update(key, lambda old: b"new")
    yield lambda: store.change([(key, lambda source: None)])


def check_source(source: Source, value: bytes, ranges: Sequence[ByteRange]) -> None:
    """Check that every method of a source returns this value. Closes the source."""
    assert source.is_current()
    assert source.known_size() in (None, len(value))
    found = source.read(ranges)
    assert found is not None
    assert [content(part) for part in found] == [value[start:stop] for start, stop in ranges]
    for room in (0, 5, 64, 2 * len(value)):
        for several in ((ByteRange(1, 3), ByteRange(-2), ALL), (ALL,), (ByteRange(0, len(value) + 9),)):
            found = source.read(several, memoryview(bytearray(room)))
            assert found is not None
            assert [content(part) for part in found] == [value[start:stop] for start, stop in several], room
    assert content(source.read_one()) == value
    assert content(source.read_one(ByteRange(1, 4))) == value[1:4]
    assert source.size() == len(value)
    assert source.known_size() in (None, len(value))
    assert 0 <= source.separate_tail <= len(value)
    assert source.is_current()
    source.close()
    source.close()


def check_missing(source: Source) -> None:
    """Check that every method of a source reports a missing value. Closes the source."""
    assert source.known_size() is None
    assert source.read([ByteRange(0, 2), ALL]) is None
    assert source.read([ALL], memoryview(bytearray(5))) is None
    assert source.read_one() is None
    assert source.size() is None
    assert source.is_current()
    source.close()


def listing(keys: Sequence[str] | dict[str, Any], prefix: str) -> tuple[list[str], list[str]]:
    """Return the keys and prefixes directly under a prefix, as `list_dir` must return them."""
    heads = [key[len(prefix) :].partition("/") for key in keys if key.startswith(prefix)]
    below = sorted({prefix + head for head, slash, _ in heads if not slash})
    return below, sorted({prefix + head + "/" for head, slash, _ in heads if slash})


def in_threads(*tasks: Callable[[], object]) -> None:
    """Run each task in its own thread, and raise the first exception."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(tasks)) as pool:
        for future in [pool.submit(task) for task in tasks]:
            future.result()


def content(value: Buffer | None) -> bytes | None:
    """Return a value as bytes. Returns None if it is missing."""
    return None if value is None else bytes(value)


def _add_one(old: Buffer | None) -> bytes:
    return b"%d" % (int(bytes(old or b"0")) + 1)


def _read(store: Store) -> dict[str, bytes | None]:
    return {key: content(store.get(key)) for key in store.list()}


def raises(expected: type[BaseException], function: Callable[..., Any], *args: Any) -> None:
    """Check that a function raises an exception of this class."""
    try:
        function(*args)
    except expected:
        return
    raise AssertionError(f"{expected.__name__} was not raised")
