"""LocalStore: in-place changes write to the existing file; every other change replaces the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from zarrlite.buffers.ranges import ByteRange
from zarrlite.buffers.source import Source
from zarrlite.errors import DataError, ReadOnlyError, StoreError
from zarrlite.stores import LocalStore, files
from zarrlite.stores.base import InPlace
from zarrlite.testing import in_threads


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    new_store = LocalStore(tmp_path / "store")
    new_store.set("a/b", b"0123456789")
    return new_store


def path(store: LocalStore, key: str = "a/b") -> Path:
    return Path(store.root) / key


def overwrite(store: LocalStore, key: str, *patches: tuple[int, Any]) -> None:
    store.change([(key, lambda source: InPlace(patches))])


def test_a_change_in_place_keeps_the_file(store: LocalStore) -> None:
    inode = path(store).stat().st_ino
    overwrite(store, "a/b", (3, b"xyz"))
    store.set_partial_values([("a/b", 9, b"9A")])
    assert path(store).stat().st_ino == inode
    assert store.get("a/b") == b"012xyz6789A"


def test_any_other_change_replaces_the_file(store: LocalStore) -> None:
    with path(store).open("rb") as file:
        store.change([("a/b", lambda source: [b"new ", source.read_one(ByteRange(0, 2)) or b""])])
        assert file.read() == b"0123456789"
    assert store.get("a/b") == b"new 01"


def test_a_change_reads_the_value_that_it_overwrites(store: LocalStore) -> None:
    def move(source: Source) -> InPlace:
        assert (source.size(), source.is_current()) == (10, True)
        return InPlace([(0, source.read_one(ByteRange(5, 7)) or b"")])

    store.change([("a/b", move)])
    assert store.get("a/b") == b"5623456789"


def test_a_file_with_other_hard_links_is_replaced(store: LocalStore, tmp_path: Path) -> None:
    os.link(path(store), tmp_path / "other")
    overwrite(store, "a/b", (0, b"x"))
    assert store.get("a/b") == b"x123456789"
    assert (tmp_path / "other").read_bytes() == b"0123456789"


def test_a_symlink_is_replaced(store: LocalStore) -> None:
    os.symlink("b", path(store, "a/link"))
    overwrite(store, "a/link", (0, b"x"))
    assert (store.get("a/link"), store.get("a/b")) == (b"x123456789", b"0123456789")


def test_a_directory_is_a_missing_value(store: LocalStore) -> None:
    values: list[Any] = []
    for key in ("a", "none", "none/at/all"):
        store.change([(key, lambda source: values.extend((source.read_one(), source.size())))])
    assert values == [None] * 6
    assert sorted(os.listdir(store.root)) == ["a"]
    with pytest.raises(StoreError) as caught:
        overwrite(store, "a", (0, b"x"))
    assert caught.value.key == "a"
    assert store.get("a/b") == b"0123456789"


def test_a_missing_value_is_created(store: LocalStore) -> None:
    overwrite(store, "c/d", (2, b"x"))
    assert store.get("c/d") == b"\0\0x"


def test_a_fifo_does_not_block_the_writer(store: LocalStore) -> None:
    os.mkfifo(path(store, "fifo"))
    sizes: list[Any] = []
    store.change([("fifo", lambda source: sizes.append(source.size()))])
    os.mkfifo(path(store, "fifo"))
    overwrite(store, "fifo", (0, b"x"))
    assert (sizes, store.get("fifo")) == ([None], b"x")


def test_a_failed_change_leaves_the_value_as_it_was(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(source: Source) -> None:
        raise DataError("is damaged")

    with pytest.raises(DataError, match="is damaged"):
        store.change([("a/b", damaged)])
    original = files._pwrite

    def full(fd: int, value: Any, offset: int) -> int:
        if bytes(value[:1]) == b"!":
            raise OSError(28, "No space left on device")
        return original(fd, value, offset)

    monkeypatch.setattr(files, "_pwrite", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        overwrite(store, "a/b", (2, b"xy"), (9, b"!!"))
    assert caught.value.key == "a/b"
    monkeypatch.undo()
    assert store.get("a/b") == b"0123456789"
    overwrite(store, "a/b", (2, b"xy"))  # the key is no longer locked
    assert store.get("a/b") == b"01xy456789"


def test_a_file_without_write_permission_is_not_written(store: LocalStore) -> None:
    path(store).chmod(0o444)
    if os.access(path(store), os.W_OK):
        overwrite(store, "a/b", (0, b"x"))  # the root user may write to it nevertheless
    else:
        with pytest.raises(StoreError, match="Permission denied"):
            overwrite(store, "a/b", (0, b"x"))


def test_a_read_only_store_refuses_changes(store: LocalStore) -> None:
    read_only = LocalStore(store.root, read_only=True)
    for change in (b"x", None, lambda source: InPlace([(0, b"x")])):
        with pytest.raises(ReadOnlyError):
            read_only.change([("a/b", change)])
    assert store.get("a/b") == b"0123456789"


def test_concurrent_changes_in_place_lose_no_update(store: LocalStore) -> None:
    store.set("n", bytes(8))

    def add_one(source: Source) -> InPlace:
        return InPlace([(0, (_number(source.read_one()) + 1).to_bytes(8, "little"))])

    def add() -> None:
        for _ in range(50):
            store.change([("n", add_one)])

    in_threads(*[add] * 4)
    assert _number(store.get("n")) == 200


def _number(data: Any) -> int:
    return int.from_bytes(data, "little")
