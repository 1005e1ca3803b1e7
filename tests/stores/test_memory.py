"""MemoryStore and MappingStore: the laws of stores, and access to the mapping."""

from __future__ import annotations

import collections
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from zarrlite.buffers.ranges import ByteRange
from zarrlite.errors import KeyRefusedError, StoreError
from zarrlite.stores import MappingStore, MemoryStore, Store, locks
from zarrlite.testing import StoreLaws, in_threads


class TestMemoryStore(StoreLaws):
    def make_store(self) -> Store:
        return MemoryStore()


class TestMappingStore(StoreLaws):
    def make_store(self) -> Store:
        return MappingStore(collections.UserDict())


def test_a_mapping_is_written_through_as_bytes() -> None:
    mapping: dict[str, bytes] = {}
    MappingStore(mapping).set("a", bytearray(b"value"))
    assert mapping == {"a": b"value"}
    assert type(mapping["a"]) is bytes


def test_mutable_values_of_a_mapping_are_copied_on_reading() -> None:
    buffer = bytearray(b"0123")
    store = MappingStore({"a": buffer})
    whole, part = store.get("a"), store.get("a", ByteRange(-2))
    buffer[:] = b"abcd"
    assert (whole, part, store.size("a")) == (b"0123", b"23", 4)


def test_reading_a_defaultdict_adds_no_keys() -> None:
    mapping = collections.defaultdict(bytes)
    assert MappingStore(mapping).get("a") is None
    assert not mapping


def test_initial_values_are_copied_and_checked() -> None:
    values = {"a": b"1"}
    MemoryStore(values).set("b", b"2")
    assert values == {"a": b"1"}
    with pytest.raises(KeyRefusedError):
        MemoryStore({"../a": b""})


def test_an_int_is_not_a_value() -> None:
    with pytest.raises(TypeError):
        MemoryStore().set("a", 5)  # type: ignore[arg-type]


def test_a_source_remembers_that_its_key_was_missing() -> None:
    store = MemoryStore()
    source = store.source("a")
    assert source.size() is None
    assert source.is_current()
    store.set("a", b"1")
    assert source.size() is None
    assert not source.is_current()
    source.close()
    assert source.size() == 1


@pytest.mark.parametrize(("count", "text"), [(0, "0 keys"), (1, "1 key"), (3, "3 keys")])
def test_the_repr_counts_the_keys(count: int, text: str) -> None:
    values = {str(n): b"" for n in range(count)}
    assert repr(MemoryStore(values)) == f"MemoryStore({text})"
    assert repr(MappingStore(values)) == f"MappingStore({text})"


def test_a_pickle_is_a_copy() -> None:
    store = MemoryStore({"a/b": b"1"})
    with store.lock("a/b"):
        copy = pickle.loads(pickle.dumps(store))
    copy.update("a/b", lambda old: b"2")
    assert (store.get("a/b"), copy.get("a/b")) == (b"1", b"2")


CHANGES: dict[str, Callable[[Store], object]] = {
    "set": lambda store: store.set("k", b"2"),
    "set new": lambda store: store.set("k", b"2", new=True),
    "erase": lambda store: store.erase("k"),
    "set_many": lambda store: store.set_many([("k", b"2")]),
    "update": lambda store: store.update("k", lambda old: b"2"),
}


@pytest.mark.parametrize("mapping", [dict, collections.UserDict])
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_waits_for_the_thread_that_holds_the_key(mapping: Callable[[], Any], change: str) -> None:
    store = MappingStore(mapping())
    store.set("k", b"1")
    done = threading.Event()
    other = threading.Thread(target=lambda: (CHANGES[change](store), done.set()))
    with store.lock("k"):
        other.start()
        assert not done.wait(0.05)
        assert store.get("k") == b"1"
        store.set("k", b"3")  # the thread that holds the lock does not wait
    other.join(60)
    assert done.is_set()


@pytest.mark.parametrize("change", ["set", "set new", "erase", "set_many"])
def test_a_value_in_a_dict_is_changed_without_taking_a_lock(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    monkeypatch.delattr(locks.Lock, "acquire")
    CHANGES[change](store)
    assert store.get("k") in (None, b"2")


@pytest.mark.parametrize("mapping", [{}, collections.UserDict()])
def test_a_listing_is_a_snapshot_while_other_threads_write(mapping: dict[str, bytes]) -> None:
    store = MappingStore(mapping)
    done = threading.Event()

    def write() -> None:
        try:
            for n in range(2000):
                store.set(f"a/{n}", b"")
                store.erase(f"a/{n - 10}")
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            keys = list(store.list_prefix("a/"))
            assert keys == sorted(keys)

    in_threads(write, read, read)
    assert len(list(store.list())) == 10


class Failing(collections.UserDict[str, Any]):
    """A mapping whose operations all raise an exception."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def fail(self, *args: Any) -> Any:
        raise self.error

    get = __getitem__ = __setitem__ = __delitem__ = __contains__ = __iter__ = __len__ = pop = fail  # type: ignore[assignment]


OPERATIONS: dict[str, tuple[Callable[[Store], object], str]] = {
    "get": (lambda store: store.get("k"), "'k' cannot be read"),
    "get_partial_values": (lambda store: store.get_partial_values([("k", ByteRange())]), "'k' cannot be read"),
    "size": (lambda store: store.size("k"), "'k' cannot be read"),
    "source": (lambda store: store.source("k").read_one(), "'k' cannot be read"),
    "set": (lambda store: store.set("k", b""), "'k' cannot be written"),
    "set new": (lambda store: store.set("k", b"", new=True), "'k' cannot be read"),
    "erase": (lambda store: store.erase("k"), "'k' cannot be erased"),
    "update": (lambda store: store.update("k", lambda old: b""), "'k' cannot be read"),
    "list": (lambda store: list(store.list()), "'' cannot be listed"),
    "list_dir": (lambda store: store.list_dir("a/"), "'' cannot be listed"),
    "repr": (repr, "'' cannot be counted"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_exception_of_a_mapping_is_a_store_error_with_the_key(operation: str) -> None:
    function, message = OPERATIONS[operation]
    error = ValueError("broken")
    with pytest.raises(StoreError) as caught:
        function(MappingStore(Failing(error)))
    assert str(caught.value) == f"{message}: ValueError: broken"
    assert caught.value.__cause__ is error
    assert caught.value.key == ("k" if "'k'" in message else "")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), KeyRefusedError("no")])
def test_interrupts_and_errors_of_the_library_pass_through_a_mapping(error: BaseException) -> None:
    for function, _ in OPERATIONS.values():
        with pytest.raises(type(error)) as caught:
            function(MappingStore(Failing(error)))
        assert caught.value is error


def test_a_value_of_a_mapping_that_is_not_a_buffer_is_a_store_error() -> None:
    store = MappingStore(collections.UserDict({"k": "text"}))
    with pytest.raises(
        StoreError, match=r"^'k' cannot be read: TypeError: memoryview: a bytes-like object is required"
    ):
        store.get("k")
