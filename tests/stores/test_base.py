"""The Store ABC: its default methods in a store that only reads, subclasses of stores, and the helper functions.

The default methods in a store that also writes are tested in test_against_dict.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import zarrlite
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import GrowingSource, InMemory, ReplacedError, Source, VersionedSource
from zarrlite.errors import KeyRefusedError, ReadOnlyError, StoreError
from zarrlite.stores import LocalStore, MemoryStore, PrefixStore, Store, check_key, check_prefix, overwrite
from zarrlite.stores.base import Change, InPlace, StoredValue, flat
from zarrlite.tools.testing.stores import HOSTILE_KEYS, HOSTILE_PREFIXES


class OneValue(Store):
    """A store that implements only `get`."""

    def __repr__(self) -> str:
        return "OneValue()"

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return byte_range.of(b"0123") if key == "k" else None


def test_a_store_with_only_get_can_be_read() -> None:
    store = OneValue()
    assert store.get_partial_values([("k", ByteRange(1, 3)), ("none", ALL)]) == [b"12", None]
    assert (store.size("k"), store.size("none")) == (4, None)
    with store.lock("k"):
        pass


def test_a_store_with_only_get_cannot_be_written_or_listed() -> None:
    store = OneValue()
    for write in (
        lambda: store.set("k", b""),
        lambda: store.erase("k"),
        lambda: store.update("k", lambda old: old),
        lambda: store.update("k", lambda old: None),
        lambda: store.set_partial_values([("k", 0, b"")]),
        lambda: store.change([("k", [b"", b""])]),
        lambda: store.change([("k", lambda source: InPlace([(0, b"")]))]),
        lambda: store.erase_values(["k"]),
    ):
        with pytest.raises(ReadOnlyError, match=r"^OneValue\(\) is read-only$"):
            write()
    for listing in (
        store.list,
        lambda: store.list_prefix("a/"),
        lambda: store.list_dir(""),
        lambda: store.erase_prefix(""),
    ):
        with pytest.raises(StoreError, match=r"^OneValue\(\) cannot be listed$"):
            listing()


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_the_default_lock_refuses_hostile_keys(key: str) -> None:
    with pytest.raises(KeyRefusedError):
        OneValue().lock(key)


def test_the_default_source_reads_the_current_value() -> None:
    store = DictStore({"k": b"0123"})
    source = store.source("k")
    assert source.read([ByteRange(1, 3), ALL]) == [b"12", b"0123"]
    assert (source.size(), source.known_size(), source.is_current()) == (4, None, True)
    store.values["k"] = b"new"
    assert (source.read_one(), source.size(), source.is_current()) == (b"new", 3, True)
    del store.values["k"]
    assert (source.read([ALL]), source.read_one(), source.size(), source.is_current()) == (None, None, None, True)
    source.close()


# Subclasses of stores


class DictStore(Store):
    """A store that implements the four required operations with a dict."""

    def __init__(self, values: dict[str, bytes]) -> None:
        self.values = values

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.values[key][byte_range.start : byte_range.stop] if key in self.values else None

    def set(self, key: str, value: Buffer) -> None:
        self.values[key] = bytes(value)

    def erase(self, key: str) -> None:
        self.values.pop(key, None)

    def list(self) -> Iterator[str]:
        return iter(sorted(self.values))


class Unreachable(Store):
    """A store whose operations all raise the exception that it was created with."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        raise self.error

    def set(self, key: str, value: Buffer) -> None:
        raise self.error

    def erase(self, key: str) -> None:
        raise self.error

    def list(self) -> Iterator[str]:
        yield "a"
        raise self.error

    def list_dir(self, prefix: str) -> Any:
        raise self.error


class UnreachableBatches(Unreachable):
    """An unreachable store that overrides the batch operations."""

    def get_partial_values(self, requests: Any, memory: Any = None) -> Any:
        raise self.error


OPERATIONS: list[tuple[Callable[[Store], Any], str]] = [
    (lambda store: store.get("k"), "'k' cannot be read"),
    (lambda store: store.get(key="k"), "'k' cannot be read"),
    (lambda store: store.size("k"), "'k' cannot be read"),
    (lambda store: store.source("k").read_one(), "'k' cannot be read"),
    (lambda store: store.get_partial_values([("k", ALL), ("l", ALL)]), "'k' cannot be read"),
    (lambda store: store.set("k", b""), "'k' cannot be written"),
    (lambda store: store.set("k", b"", new=True), "'k' cannot be read"),
    (lambda store: store.update("k", lambda old: old), "'k' cannot be read"),
    (lambda store: store.set_partial_values([("k", 0, b"")]), "'k' cannot be read"),
    (lambda store: store.erase("k"), "'k' cannot be erased"),
    (lambda store: store.erase_values(["k"]), "'k' cannot be erased"),
    (lambda store: [*store.list()], "'' cannot be listed"),
    (lambda store: [*store.list_prefix("k/")], "'' cannot be listed"),
    (lambda store: store.list_dir("k/"), "'k/' cannot be listed"),
    (lambda store: store.erase_prefix("k/"), "'' cannot be listed"),
]


@pytest.mark.parametrize(("operation", "message"), OPERATIONS)
def test_an_exception_of_a_store_is_a_store_error_with_the_key_and_the_cause(operation: Any, message: str) -> None:
    cause = TimeoutError(110, "no answer")
    with pytest.raises(StoreError) as caught:
        operation(Unreachable(cause))
    assert str(caught.value) == f"{message}: TimeoutError: [Errno 110] no answer"
    assert (caught.value.key, caught.value.errno) == (message.split("'")[1], 110)  # type: ignore[attr-defined]
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), ReadOnlyError("closed"), KeyRefusedError("odd")])
@pytest.mark.parametrize("operation", [operation for operation, _ in OPERATIONS])
def test_interrupts_and_errors_of_the_library_pass_unchanged(operation: Any, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        operation(Unreachable(error))
    assert caught.value is error


class UnreachableSource(VersionedSource, GrowingSource):
    """A user-defined source whose operations all raise the same exception."""

    separate_tail = 3

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def fail(self, *args: Any) -> Any:
        raise self.error

    read = size = known_size = is_current = version = has_grown = close = fail


class StoreOfSources(DictStore):
    """A user-defined store that always returns the same source."""

    def __init__(self, source: Source) -> None:
        super().__init__({})
        self.opened = source

    def source(self, key: str) -> Source:
        return self.opened


USES_OF_SOURCES: list[Callable[[Any], Any]] = [
    lambda source: source.read([ALL]),
    lambda source: source.read_one(),
    lambda source: source.size(),
    lambda source: source.known_size(),
    lambda source: source.is_current(),
    lambda source: source.version(),
    lambda source: source.has_grown(),
    lambda source: source.close(),
]


@pytest.mark.parametrize("use", USES_OF_SOURCES)
def test_an_exception_of_a_users_source_is_a_store_error_with_the_key_and_the_cause(use: Any) -> None:
    cause = TimeoutError(110, "no answer")
    with pytest.raises(StoreError) as caught:
        use(StoreOfSources(UnreachableSource(cause)).source("a/k"))
    assert str(caught.value) == "'a/k' cannot be read: TimeoutError: [Errno 110] no answer"
    assert (caught.value.key, caught.value.errno) == ("a/k", 110)  # type: ignore[attr-defined]
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), ReplacedError("is another one")])
@pytest.mark.parametrize("use", USES_OF_SOURCES)
def test_interrupts_and_errors_of_the_library_pass_through_a_users_source(use: Any, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        use(StoreOfSources(UnreachableSource(error)).source("k"))
    assert caught.value is error


@pytest.mark.parametrize("bases", [(Source,), (VersionedSource,), (GrowingSource,), (VersionedSource, GrowingSource)])
def test_a_users_source_keeps_its_interfaces_when_it_is_wrapped(bases: Any) -> None:
    cls: Any = type("Own", bases, {**dict.fromkeys(["read", "version", "has_grown"], UnreachableSource.fail)})
    source = StoreOfSources(cls()).source("k")
    for kind in (VersionedSource, GrowingSource):
        assert isinstance(source, kind) == (kind in bases)
    assert StoreOfSources(UnreachableSource(ValueError())).source("k").separate_tail == 3


def test_sources_of_the_library_are_returned_unchanged() -> None:
    store = DictStore({})
    for source in (InMemory(b""), StoredValue(store, "k")):
        assert StoreOfSources(source).source("k") is source


def test_reading_an_array_reports_the_exception_of_a_users_source() -> None:
    store = StoreOfSources(UnreachableSource(TimeoutError("no answer")))
    array = zarrlite.create_array(store, shape=8, chunks=8, dtype="u1", shards=8)
    with pytest.raises(StoreError, match=r"^'c/0' cannot be read: TimeoutError: no answer$"):
        array[2:3]


def test_an_exception_of_a_batch_names_its_first_key() -> None:
    store = UnreachableBatches(RuntimeError("closed"))
    with pytest.raises(StoreError, match=r"^'k' cannot be read: RuntimeError: closed$"):
        store.get_partial_values([("k", ALL), ("k", ByteRange(1))])
    with pytest.raises(StoreError, match=r"^'k' or one of 2 others cannot be read: RuntimeError: closed$"):
        store.get_partial_values([("k", ALL), ("l", ALL), ("m", ALL)])


def test_an_exception_of_a_function_that_changes_a_value_passes_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        DictStore({}).update("k", lambda old: bytes(1 // 0))


def test_a_change_in_place_is_applied_to_the_value_it_was_computed_from() -> None:
    class Counting(DictStore):
        reads = 0

        def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
            self.reads += 1
            return super().get(key, byte_range)

    store = Counting({"k": b"0123"})
    store.change([("k", lambda source: InPlace([(1, source.read_one(ByteRange(-1)) or b""), (5, b"x")]))])
    assert (store.values, store.reads) == ({"k": b"0323\0x"}, 1)


@pytest.fixture(params=[LocalStore, MemoryStore, PrefixStore])
def base(request: pytest.FixtureRequest) -> type[Store]:
    """A store class that overrides more than the four required operations."""
    cls: type[Store] = request.param
    return cls


def make(cls: type[Store], tmp_path: Path) -> Any:
    if issubclass(cls, PrefixStore):
        return cls(MemoryStore(), "p/")
    return cls(tmp_path / "store") if issubclass(cls, LocalStore) else cls()


def test_a_subclass_that_overrides_get_is_read_through_it(base: type[Store], tmp_path: Path) -> None:
    class Reversing(base):  # type: ignore[misc,valid-type]
        def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
            value = super().get(key)
            return None if value is None else byte_range.of(bytes(value)[::-1])

        def set(self, key: str, value: Buffer) -> None:
            super().set(key, bytes(value)[::-1])

    store = make(Reversing, tmp_path)
    store.set_many([("a/k", b"0123"), ("a/l", [b"ab", b"cd"])])
    assert base.get(store, "a/k") == b"3210"
    requests = [("a/k", ByteRange(-3)), ("a/l", ByteRange(0, 2)), ("none", ALL)]
    for memory in (None, memoryview(bytearray(9))):
        assert store.get_partial_values(requests, memory) == [b"123", b"ab", None]
    assert store.source("a/k").read([ByteRange(1, 3), ALL]) == [b"12", b"0123"]
    seen: list[Any] = []
    store.update("a/k", lambda old: seen.append(old) or b"new")
    store.set_partial_values([("a/l", 1, b"x")])
    assert (seen, store.get("a/k"), store.get("a/l")) == ([b"0123"], b"new", b"axcd")


def test_a_subclass_that_overrides_set_stores_every_value_through_it(base: type[Store], tmp_path: Path) -> None:
    received: list[Any] = []

    class Recording(base):  # type: ignore[misc,valid-type]
        def set(self, key: str, value: Buffer) -> None:
            received.append((key, bytes(value)))
            super().set(key, value)

    store = make(Recording, tmp_path)
    store.set_many([("a/0", b"0"), ("a/1", [b"1", memoryview(b"2")]), ("a/2", b"3"), ("a/3", b"4")])
    store.update("a/0", lambda old: [b"old: ", old or b""])
    store.set_partial_values([("a/1", 1, b"x"), ("a/1", 2, b"y"), ("b", 1, b"z")])
    assert received == [
        *[("a/0", b"0"), ("a/1", b"12"), ("a/2", b"3"), ("a/3", b"4")],
        *[("a/0", b"old: 0"), ("a/1", b"1xy"), ("b", b"\0z")],
    ]
    assert {key: store.get(key) for key in store.list()} == dict(received)


def test_a_subclass_that_overrides_erase_removes_every_key_through_it(base: type[Store], tmp_path: Path) -> None:
    erased: list[str] = []

    class Recording(base):  # type: ignore[misc,valid-type]
        def erase(self, key: str) -> None:
            erased.append(key)
            super().erase(key)

    store = make(Recording, tmp_path)
    store.set_many([(key, b"") for key in ("a", "b", "c/d", "c/e")])
    store.change([("a", None)])
    store.erase_values(["b"])
    store.update("b", lambda old: None)
    store.erase_prefix("c/")
    assert erased == ["a", "b", "b", "c/d", "c/e"]
    assert list(store.list()) == []


def test_a_subclass_that_overrides_list_is_listed_through_it(base: type[Store], tmp_path: Path) -> None:
    class Hiding(base):  # type: ignore[misc,valid-type]
        def list(self) -> Iterator[str]:
            return (key for key in super().list() if not key.endswith(".hidden"))

    store = make(Hiding, tmp_path)
    store.set_many([(key, b"") for key in ("a/b", "a/b.hidden", "a/c/d", "a/e/f.hidden")])
    assert sorted(store.list_prefix("a/")) == ["a/b", "a/c/d"]
    assert store.list_dir("a/") == (["a/b"], ["a/c/"])


def test_a_subclass_keeps_the_operations_that_it_overrides_itself() -> None:
    class Own(MemoryStore):
        def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
            return b"from get"

        def get_partial_values(self, requests: Any, memory: Any = None) -> Any:
            return [b"from get_partial_values"]

    class Child(Own):
        """A class that overrides nothing; the overrides in `Own` stay in effect."""

    for store in (Own(), Child()):
        assert store.get_partial_values([("k", ALL)]) == [b"from get_partial_values"]
        assert store.source("k").read([ALL]) == [b"from get_partial_values"]


# Keys, patches, buffers


@pytest.mark.parametrize("key", ["a", "a/b", "...", ".a", "a.", "a/...", "..a/b", "é", "a b", "a:b", "\n"])
def test_valid_keys_are_accepted(key: str) -> None:
    assert check_key(key) == key
    assert check_prefix(f"{key}/") == f"{key}/"


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_hostile_keys_are_refused(key: str) -> None:
    with pytest.raises(KeyRefusedError) as caught:
        check_key(key)
    assert str(caught.value) == (
        f"{key!r} is not a key: segments must not be empty, '.' or '..', and must not contain NUL or '\\'"
    )


@pytest.mark.parametrize("prefix", HOSTILE_PREFIXES)
def test_hostile_prefixes_are_refused(prefix: str) -> None:
    with pytest.raises(KeyRefusedError) as caught:
        check_prefix(prefix)
    assert str(caught.value) == f"{prefix!r} is not a prefix: it must be empty, or a key followed by '/'"


@pytest.mark.parametrize(
    ("old", "pieces", "new"),
    [
        (None, [], b""),
        (None, [(2, b"x")], b"\0\0x"),
        (b"", [(0, b"")], b""),
        (b"0123", [(1, b"ab"), (2, b"c")], b"0ac3"),
        (b"0123", [(4, b"4"), (7, b"")], b"01234\0\0"),
        (memoryview(b"0123"), [(2, memoryview(b"abcd").cast("H"))], b"01abcd"),
    ],
)
def test_patches_overwrite_in_order_and_grow_with_zeros(
    old: Buffer | None, pieces: list[tuple[int, Buffer]], new: bytes
) -> None:
    assert overwrite(old, pieces) == new


@pytest.mark.parametrize("start", [-1, 2**40])
def test_a_patch_must_start_within_the_largest_value(start: int) -> None:
    with pytest.raises(StoreError, match=rf"must start at an offset from 0 to {2**40 - 1}, not at {start}$"):
        overwrite(b"0123", [(start, b"x")])


@pytest.mark.parametrize(
    "buffer",
    [b"0123", bytearray(b"0123"), memoryview(b"0123").cast("H"), memoryview(b"0123").cast("B", (2, 2)),
     memoryview(b"0011223344")[:8:2], memoryview(b"0123").cast("c")],
)  # fmt: skip
def test_buffers_of_any_item_type_become_views_of_bytes(buffer: Buffer) -> None:
    view = flat(buffer)
    assert (bytes(view), view.format, view.ndim) == (b"0123", "B", 1)


class Batching(MemoryStore):
    """A store that stores several values with a single request, which fails."""

    def change(self, changes: Iterable[tuple[str, Change]]) -> None:
        for key, change in changes:
            if callable(change):
                super().change([(key, change)])
            elif change == b"last":
                raise TimeoutError("no answer")

    def lock(self, key: str) -> Any:
        if key == "locked":
            raise OSError(5, "broken")
        return super().lock(key)


@pytest.mark.parametrize("changes", [list, iter], ids=["list", "iterator"])
def test_exceptions_of_a_change_by_several_values_are_store_errors(changes: Callable[..., Any]) -> None:
    store = Batching()
    message = r"^'a' or 'b' cannot be written: TimeoutError: no answer$"
    with pytest.raises(StoreError, match=message) as caught:
        store.change(changes([("a", b"1"), ("b", b"last")]))
    assert isinstance(caught.value.__cause__, TimeoutError)
    with pytest.raises(StoreError, match="'locked' cannot be locked: OSError") as locked, store.lock("locked"):
        pass
    assert locked.value.errno == 5


def test_exceptions_of_an_update_function_pass_unchanged() -> None:
    def update(old: object) -> bytes:
        raise ValueError("not the store's")

    with pytest.raises(ValueError, match="not the store's"):
        Batching().update("a", update)
    with pytest.raises(ValueError, match="not the store's"):
        Batching().change((key, update(None)) for key in "ab")
