"""PrefixStore and ReadOnlyStore: views of another store."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.errors import KeyRefusedError, ReadOnlyError
from zarrlite.stores import LocalStore, MemoryStore, PrefixStore, ReadOnlyStore, Store
from zarrlite.stores.base import Limits
from zarrlite.tools.testing.stores import MODEL, StoreLaws

MEMORY = memoryview(bytearray(8))


class TestPrefixOfMemory(StoreLaws):
    def make_store(self) -> Store:
        return PrefixStore(MemoryStore({"a": b"not under the prefix", "p/qq": b"nor this"}), "p/q/")


class TestEmptyPrefix(StoreLaws):
    def make_store(self) -> Store:
        return PrefixStore(MemoryStore(), "")


class TestPrefixOfLocal(StoreLaws):
    @pytest.fixture(autouse=True)
    def _directories(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.new = tmp_path_factory

    def make_store(self) -> Store:
        return PrefixStore(LocalStore(self.new.mktemp("store")), "p/q/")


@pytest.mark.parametrize("prefix", ["a", "/", "../", "a//"])
def test_an_invalid_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(KeyRefusedError):
        PrefixStore(MemoryStore(), prefix)


def test_erasing_all_under_a_prefix_leaves_the_rest() -> None:
    below = MemoryStore({"p/a": b"1", "p/b/c": b"2", "pp": b"3", "q/a": b"4"})
    PrefixStore(below, "p/").erase_prefix("")
    assert list(below.list()) == ["pp", "q/a"]


@pytest.mark.parametrize(
    ("operation", "args", "forwarded"),
    [
        ("get", ("k", ByteRange(1, 2)), ("p/k", ByteRange(1, 2))),
        ("get_partial_values", ([("k", ALL)], None), ([("p/k", ALL)], None)),
        ("get_partial_values", ([("k", ALL, 5)], MEMORY), ([("p/k", ALL, 5)], MEMORY)),
        ("source", ("k",), ("p/k",)),
        ("location", ("k/",), ("p/k/",)),
        ("set", ("k", b"v", True), ("p/k", b"v", True)),
        ("change", ([("k", b"v"), ("l", None), ("m", bytes)],), ([("p/k", b"v"), ("p/l", None), ("p/m", bytes)],)),
        ("erase", ("k",), ("p/k",)),
        ("erase_prefix", ("k/",), ("p/k/",)),
        ("size", ("k",), ("p/k",)),
        ("lock", ("k",), ("p/k",)),
        ("close", (), ()),
        ("__exit__", (ValueError, None, None), (ValueError, None, None)),
    ],
)
def test_each_operation_is_forwarded_as_one_call(operation: str, args: tuple, forwarded: tuple) -> None:
    below = mock.create_autospec(MemoryStore, instance=True, read_only=False, limits=Limits())
    result = getattr(PrefixStore(below, "p/"), operation)(*args)
    (call,) = getattr(below, operation).call_args_list
    assert call.args == forwarded
    assert result in (None, getattr(below, operation).return_value)


@pytest.mark.parametrize(
    ("operation", "args", "changes"),
    [
        ("set_many", ([("k", b"v"), ("l", b"w")],), [("p/k", b"v"), ("p/l", b"w")]),
        ("set_partial_values", ([("k", 1, b"v"), ("l", 0, b"w"), ("k", 3, b"x")],), [("p/k", ...), ("p/l", ...)]),
        ("erase_values", (["k", "l"],), [("p/k", None), ("p/l", None)]),
        ("update", ("k", bytes), [("p/k", ...)]),
    ],
)
def test_a_batch_of_changes_stays_one_batch(operation: str, args: tuple, changes: list[tuple[str, Any]]) -> None:
    below = mock.create_autospec(MemoryStore, instance=True, read_only=False, limits=Limits())
    getattr(PrefixStore(below, "p/"), operation)(*args)
    (call,) = below.change.call_args_list
    assert isinstance(call.args[0], list)  # LocalStore stores a list in one batch, but iterated values one by one
    assert [(key, ... if callable(change) else change) for key, change in call.args[0]] == changes


def test_an_iterator_of_values_is_passed_on_lazily() -> None:
    below, seen = MemoryStore(), []

    def items() -> Iterator[tuple[str, bytes]]:
        for key in ("a", "b"):
            seen.append(list(below.list()))
            yield key, b""

    PrefixStore(below, "p/").set_many(items())
    assert seen == [[], ["p/a"]]


def test_views_have_the_limits_of_the_store_below() -> None:
    store = MemoryStore()
    store.limits = Limits(concurrency=7, gap=5)
    assert PrefixStore(store, "p/").limits == ReadOnlyStore(store).limits == Limits(7, 5)


WRITES = {
    "set": ("k", b""),
    "set_many": ([("k", b"")],),
    "set_partial_values": ([("k", 0, b"")],),
    "update": ("k", lambda old: pytest.fail("not to be called")),
    "change": ([("k", lambda source: pytest.fail("not to be called"))],),
    "erase": ("k",),
    "erase_values": (["k"],),
    "erase_prefix": ("k/",),
}


@pytest.mark.parametrize("operation", WRITES)
def test_a_read_only_store_refuses_to_be_written(operation: str) -> None:
    store = ReadOnlyStore(MemoryStore({"k": b"kept"}))
    with pytest.raises(ReadOnlyError, match=r"^ReadOnlyStore\(MemoryStore\(1 key\)\) is read-only$"):
        getattr(store, operation)(*WRITES[operation])
    assert store.get("k") == b"kept"


def test_a_read_only_store_can_be_read() -> None:
    below = MemoryStore(MODEL)
    store = ReadOnlyStore(below)
    assert store.read_only
    assert list(store.list()) == sorted(MODEL)
    assert list(store.list_prefix("ab/")) == ["ab/c"]
    assert store.list_dir("a/") == below.list_dir("a/")
    assert store.get("a/c/0/1", ByteRange(1)) == b"33"
    assert store.get_partial_values([("a/c/0/1", ByteRange(-1)), ("none", ALL)]) == [b"3", None]
    assert store.size("a/c/0/1") == store.source("a/c/0/1").size() == 3
    assert store.location("a/") == below.location("a/")
    with store.lock("a/c/0/1"):
        pass


def test_a_prefix_of_a_read_only_store_is_read_only() -> None:
    assert PrefixStore(ReadOnlyStore(MemoryStore()), "a/").read_only


def test_views_can_be_compared_pickled_and_shown(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for view in (PrefixStore(store, "a/"), ReadOnlyStore(store)):
        copy = pickle.loads(pickle.dumps(view))
        assert copy == view
        assert hash(copy) == hash(view)
        assert view != store
    assert PrefixStore(store, "a/") != PrefixStore(store, "b/")
    assert repr(PrefixStore(store, "a/")) == f"PrefixStore(LocalStore('{tmp_path}'), 'a/')"
    assert repr(ReadOnlyStore(store)) == f"ReadOnlyStore(LocalStore('{tmp_path}'))"
