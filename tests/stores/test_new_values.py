"""`set(key, value, new=True)` stores a value only if its key is new, and only one of several writers succeeds."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import zarrlite
from tests.user_store import UserStore
from zarrlite import LocalStore, MemoryStore, ReadOnlyError
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.stores import MappingStore, PrefixStore, ReadOnlyStore, Store


class Recording(LocalStore):
    """A local store whose `set` is overridden."""

    def set(self, key: str, value: Any) -> None:
        super().set(key, value)


def _transformed(transformer: Any) -> Store:
    array = zarrlite.create_array(MemoryStore(), shape=8, dtype="u1", chunks=4, storage_transformers=[transformer])
    return transformer.wrap(MemoryStore(), array.metadata.in_store)


STORES: dict[str, Callable[[Path], Store]] = {
    "local": LocalStore,
    "local, durable": lambda path: LocalStore(path, fsync=True),
    "memory": lambda path: MemoryStore(),
    "mapping": lambda path: MappingStore({}),
    "prefix": lambda path: PrefixStore(LocalStore(path), "deep/"),
    "user": lambda path: UserStore(),
    "overridden": Recording,
    "parts": lambda path: _transformed(ConcatParts([Part(""), Part(".tail", 2)])),
    "shards": lambda path: _transformed(Sharding((2,))),
}
every_store = pytest.mark.parametrize("make", STORES.values(), ids=STORES)


@every_store
@pytest.mark.parametrize("key", ["zarr.json", "c/0", "a/b/c.txt"])
def test_a_value_is_stored_if_its_key_is_new(make: Callable[[Path], Store], key: str, tmp_path: Path) -> None:
    store = make(tmp_path)
    assert store.set(key, b"first", new=True) is True
    assert store.set(key, b"second", new=True) is False
    assert bytes(store.get(key) or b"") == b"first"
    assert store.set(key, b"third") is True
    assert bytes(store.get(key) or b"") == b"third"
    store.erase(key)
    assert store.set(key, b"fourth", new=True) is True
    assert bytes(store.get(key) or b"") == b"fourth"


@every_store
def test_only_one_of_many_threads_stores_a_new_value(make: Callable[[Path], Store], tmp_path: Path) -> None:
    store = make(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        for n in range(10):
            key = f"{n}/zarr.json"
            stored = [*threads.map(lambda i, key=key: store.set(key, b"%d" % i, new=True), range(16))]  # type: ignore[misc]
            assert stored.count(True) == 1
            assert bytes(store.get(key) or b"") == b"%d" % stored.index(True)


def test_read_only_stores_refuse_new_values() -> None:
    with pytest.raises(ReadOnlyError):
        ReadOnlyStore(MemoryStore()).set("a", b"1", new=True)


def test_new_values_leave_no_temporary_files(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for _ in range(2):
        store.set("a/b", b"1", new=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "b"]


def test_new_values_need_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    store = LocalStore(tmp_path)
    assert [store.set("a/b", b"%d" % i, new=True) for i in range(3)] == [True, False, False]
    assert store.get("a/b") == b"0"
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "b"]


def test_a_directory_removed_during_the_write_is_created_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, calls = os.link, []

    def remove_first(source: str, target: str) -> None:
        if not calls:
            os.unlink(source)
            os.rmdir(os.path.dirname(source))
        calls.append(target)
        link(source, target)

    monkeypatch.setattr(os, "link", remove_first)
    store = LocalStore(tmp_path)
    assert store.set("a/b", b"1", new=True)
    assert len(calls) == 2
    assert store.get("a/b") == b"1"
