"""LocalStore.patch and set_partial_values change values in place."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from zarrlite.errors import DataError, ReadOnlyError, StoreError
from zarrlite.stores import LocalStore, files


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    new_store = LocalStore(tmp_path / "store")
    new_store.set("a/b", b"0123456789")
    return new_store


def path(store: LocalStore, key: str = "a/b") -> Path:
    return Path(store.root) / key


def test_a_patch_keeps_the_file(store: LocalStore) -> None:
    inode = path(store).stat().st_ino
    assert store.patch("a/b", lambda source: [(3, b"xyz")])
    assert path(store).stat().st_ino == inode
    assert store.get("a/b") == b"012xyz6789"


def test_a_patch_reads_and_writes_one_open_file(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    original = os.open

    def recording(name: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        opened.append(flags & os.O_ACCMODE)
        return original(name, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", recording)
    assert store.patch("a/b", lambda source: [(0, bytes(source.read_at(5, 7) or b""))])
    monkeypatch.undo()
    assert opened == [os.O_RDONLY, os.O_RDWR]  # the lock, and the file
    assert store.get("a/b") == b"5623456789"


def test_a_patch_replaces_a_file_with_other_hard_links(store: LocalStore, tmp_path: Path) -> None:
    os.link(path(store), tmp_path / "other")
    assert store.patch("a/b", lambda source: [(0, b"x")])
    assert store.get("a/b") == b"x123456789"
    assert (tmp_path / "other").read_bytes() == b"0123456789"


def test_a_patch_replaces_a_symlink(store: LocalStore) -> None:
    os.symlink("b", path(store, "a/link"))
    assert store.patch("a/link", lambda source: [(0, b"x")])
    assert (store.get("a/link"), store.get("a/b")) == (b"x123456789", b"0123456789")


def test_a_patch_sees_a_directory_as_a_missing_value(store: LocalStore) -> None:
    values: list[Any] = []
    for key in ("a", "none", "none/at/all"):
        assert not store.patch(key, lambda source: values.append(source.read_all()))
    assert values == [None] * 3
    assert sorted(os.listdir(store.root)) == ["a"]


def test_a_patch_does_not_block_on_a_fifo(store: LocalStore) -> None:
    os.mkfifo(path(store, "fifo"))
    assert not store.patch("fifo", lambda source: None if source.read_all() is None else [])


def test_a_failed_patch_changes_nothing(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(source: Any) -> Any:
        raise DataError("is damaged")

    with pytest.raises(DataError, match="is damaged"):
        store.patch("a/b", damaged)
    original = files._pwrite

    def full(fd: int, value: Any, offset: int) -> int:
        if bytes(value[:1]) == b"!":
            raise OSError(28, "No space left on device")
        return original(fd, value, offset)

    monkeypatch.setattr(files, "_pwrite", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        store.patch("a/b", lambda source: [(2, b"xy"), (9, b"!!")])
    assert caught.value.key == "a/b"
    monkeypatch.undo()
    assert store.get("a/b") == b"0123456789"
    assert store.patch("a/b", lambda source: [(2, b"xy")])  # the key is not locked


def test_a_patch_of_a_file_without_write_permission_fails(store: LocalStore) -> None:
    path(store).chmod(0o444)
    if os.access(path(store), os.W_OK):
        assert store.patch("a/b", lambda source: [(0, b"x")])  # root may write it
    else:
        with pytest.raises(StoreError, match="Permission denied"):
            store.patch("a/b", lambda source: [(0, b"x")])


def test_a_read_only_store_refuses_a_patch(store: LocalStore) -> None:
    with pytest.raises(ReadOnlyError):
        LocalStore(store.root, read_only=True).patch("a/b", lambda source: [(0, b"x")])


def test_a_subclass_overriding_set_partial_values_receives_the_patch(store: LocalStore) -> None:
    received: list[Any] = []

    class Recording(LocalStore):
        def set_partial_values(self, key_start_values: Any) -> None:
            received.extend(key_start_values)

    assert Recording(store.root).patch("a/b", lambda source: [(1, b"x")])
    assert received == [("a/b", 1, b"x")]


def test_concurrent_patches_lose_no_update(store: LocalStore) -> None:
    store.set("n", bytes(8))

    def add() -> None:
        for _ in range(50):
            store.patch("n", lambda source: [(0, (_number(source.read_all()) + 1).to_bytes(8, "little"))])

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _number(store.get("n")) == 200


def _number(data: Any) -> int:
    return int.from_bytes(data, "little")
