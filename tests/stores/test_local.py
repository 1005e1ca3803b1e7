"""LocalStore: the laws of stores, and its files. Symlinks, errors, locks and processes have their own test modules."""

from __future__ import annotations

import inspect
import os
import pickle
import stat
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.errors import KeyRefusedError
from zarrlite.stores import LocalStore, Store, files
from zarrlite.stores.base import WrongSizeError
from zarrlite.testing import StoreLaws

TEMPORARY = "__zarrlite.tmp.1.2.abc"
Tree = Callable[[Path], list[str]]


class TestLocalStore(StoreLaws):
    options: dict[str, Any] = {}

    @pytest.fixture(autouse=True)
    def _directories(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.new = tmp_path_factory

    def make_store(self) -> Store:
        return LocalStore(self.new.mktemp("store") / "root", **self.options)


class TestLocalStoreWithFsync(TestLocalStore):
    options = {"fsync": True}


class TestLocalStoreWithLockFiles(TestLocalStore):
    options = {"lock_method": "file"}


class TestLocalStoreWithoutLockableFiles(TestLocalStore):
    """A store on a platform without flock, such as Windows."""

    @pytest.fixture(autouse=True)
    def _unlockable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("zarrlite.stores.inode_locks.HAS_FLOCK", False)


# Files and directories


def test_a_key_is_the_path_of_its_file(store: LocalStore, root: Path, tree: Tree) -> None:
    store.set("a/b", b"1")
    assert (root / "a" / "b").read_bytes() == b"1"
    assert tree(root) == ["a/", "a/b"]


def test_reading_and_erasing_create_no_directories(store: LocalStore, root: Path) -> None:
    assert store.get("a/b") is store.size("a/b") is None
    assert list(store.list()) == []
    assert store.list_dir("a/") == ([], [])
    store.erase("a/b")
    store.erase_prefix("a/")
    store.erase_prefix("")
    assert not root.exists()


def test_an_update_that_writes_nothing_leaves_no_directories(tmp_path: Path, tree: Tree) -> None:
    store = LocalStore(tmp_path / "x" / "y")
    store.update("a/b/c", lambda old: old)
    with store.lock("a/b/c"), store.lock("a/b/d"), store.lock("a/e"):
        pass
    assert tree(tmp_path) == []
    store.set("k", b"")
    store.update("a/b/c", lambda old: old)
    assert tree(tmp_path) == ["x/", "x/y/", "x/y/k"]


def test_an_existing_root_is_never_removed(store: LocalStore, root: Path) -> None:
    root.mkdir()
    store.update("k", lambda old: old)
    with store.lock("k"):
        store.set("k", b"")
        store.erase("k")
    store.erase_prefix("")
    assert root.is_dir()


def test_directories_created_for_a_lock_are_removed_with_it(store: LocalStore, root: Path, tree: Tree) -> None:
    with store.lock("a/b/c"):
        with store.lock("a/b/d"):
            pass
        assert tree(root) == ["a/", "a/b/"]
        store.erase_prefix("a/")
        assert tree(root) == ["a/", "a/b/"]
    assert not root.exists()


def test_erasing_prunes_empty_directories_below_the_root(store: LocalStore, root: Path, tree: Tree) -> None:
    store.set_many([("a/b/c/d", b""), ("a/e", b"")])
    store.erase("a/b/c/d")
    assert tree(root) == ["a/", "a/e"]
    store.erase("a/e")
    assert tree(root) == []
    assert root.is_dir()


def test_erase_prefix_removes_temporary_files_and_empty_directories(store: LocalStore, root: Path, tree: Tree) -> None:
    store.set_many([("a/b/c", b""), ("k", b"")])
    (root / "a" / "b" / TEMPORARY).write_bytes(b"left by a killed writer")
    (root / "a" / "empty" / "er").mkdir(parents=True)
    (root / "a" / "b" / os.fsdecode(b"\xff")).write_bytes(b"not a key")
    store.erase_prefix("a/")
    assert tree(root) == ["k"]


def test_erase_ignores_prefixes_and_erase_prefix_ignores_keys(store: LocalStore) -> None:
    store.set("a/b", b"1")
    store.erase("a")
    store.erase("a/b/c")
    store.erase_prefix("a/b/")
    assert store.get("a/b") == b"1"
    assert store.get("a") is store.get("a/b/c") is store.size("a") is store.size("a/b/c") is None


def test_names_of_temporary_files_are_not_keys(store: LocalStore, root: Path) -> None:
    store.set("a/k", b"1")
    (root / "a" / TEMPORARY).write_bytes(b"x")
    (root / TEMPORARY).mkdir()
    (root / TEMPORARY / "k").write_bytes(b"x")
    assert list(store.list()) == ["a/k"]
    assert store.list_dir("a/") == (["a/k"], [])
    assert store.list_dir(f"{TEMPORARY}/") == ([], [])
    for key in (f"a/{TEMPORARY}", f"{TEMPORARY}/k"):
        assert store.get(key) is store.size(key) is None
        for write in (lambda: store.set(key, b""), lambda: store.erase(key), lambda: store.lock(key).__enter__()):
            with pytest.raises(KeyRefusedError) as caught:
                write()
            assert str(caught.value) == f"{key!r} is not a key: names that begin with '__zarrlite.tmp.' are reserved"
    store.set("a/not__zarrlite.tmp.", b"")
    assert store.get("a/not__zarrlite.tmp.") == b""


@pytest.mark.parametrize(
    "name",
    ["é ñ 漢字 🎈", "with space", " ", ".hidden", "a:b", "con", "...x", "...", "-rf", "*?", "~", "%2e%2e", "a\nb",
     "x" * 255, "é" * 127],
)  # fmt: skip
def test_unusual_names_can_be_keys(store: LocalStore, root: Path, name: str) -> None:
    for key in (name, f"d/{name}"):
        store.set(key, name.encode())
        assert store.get(key) == name.encode()
        assert (root / key).is_file()
        store.update(key, lambda old: b"new")
        assert store.size(key) == 3
    assert list(store.list()) == sorted([name, f"d/{name}"])


def test_values_follow_the_umask(store: LocalStore, root: Path) -> None:
    before = os.umask(0o027)
    try:
        store.set("a", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o640


def test_deep_keys_need_no_recursion(store: LocalStore, root: Path, tree: Tree) -> None:
    key = "a/" * 400 + "k"
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        with store.lock(key):
            store.set(key, b"deep")
        assert store.get(key) == b"deep"
        assert list(store.list()) == [key]
        store.erase(key)
        store.set(key, b"deep")
        store.erase_prefix("a/")
    finally:
        sys.setrecursionlimit(before)
    assert tree(root) == []


def test_only_regular_files_are_values(store: LocalStore, root: Path) -> None:
    store.set("k", b"")
    os.mkfifo(root / "fifo")
    assert store.get("fifo") is store.size("fifo") is None
    assert list(store.list()) == ["k"]


def test_file_names_that_are_not_keys_are_not_listed(store: LocalStore, root: Path) -> None:
    store.set("k", b"")
    (root / "a\\b").write_bytes(b"")
    (root / os.fsdecode(b"\xff")).write_bytes(b"")
    assert list(store.list()) == ["k"]


# Reading


def test_a_range_larger_than_the_value_allocates_no_more_than_the_value(store: LocalStore) -> None:
    store.set("a", bytes(1000))
    tracemalloc.start()
    try:
        for byte_range in (ByteRange(0, 2**62), ByteRange(-(2**62)), ByteRange(2**62, 2**70), ByteRange(500, 2**40)):
            store.get("a", byte_range)
            store.get_partial_values([("a", byte_range)])
            store.get_partial_values([("a", byte_range), ("a", byte_range)])
            store.source("a").read([byte_range])
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_consecutive_ranges_of_one_key_open_it_once(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.set_many([("a", b"0123"), ("b", b"4567")])
    opened: list[str] = []
    original = os.open

    def recording(path: str, *args: int) -> int:
        opened.append(os.path.basename(path))
        return original(path, *args)

    monkeypatch.setattr(os, "open", recording)
    requests = [("a", ByteRange(0, 1)), ("a", ByteRange(-1)), ("b", ALL), ("b", ByteRange(9)), ("a", ByteRange(1, 2))]
    assert store.get_partial_values(requests) == [b"0", b"3", b"4567", b"", b"1"]
    assert opened == ["a", "b", "a"]


def test_an_update_opens_the_value_twice_and_the_new_file_once(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.set("a/b", b"1")
    opened = []
    real_open = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(os.path.basename(path)) or real_open(path, *rest))
    store.update("a/b", lambda old: b"2")
    assert [name if name == "b" else "new" for name in opened] == ["b", "b", "new"]  # `b` is locked, then read
    assert store.get("a/b") == b"2"


def test_short_reads_are_continued(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.set("a", b"0123456789")
    pread, preadv = files.pread, os.preadv
    monkeypatch.setattr(files, "pread", lambda fd, count, offset: pread(fd, min(count, 3), offset))
    monkeypatch.setattr(os, "preadv", lambda fd, views, offset: preadv(fd, [views[0][:3]], offset))
    assert store.get("a") == b"0123456789"
    assert store.get("a", ByteRange(2, 9)) == b"2345678"
    for memory in (None, memoryview(bytearray(20)), memoryview(bytearray(5))):
        assert store.get_partial_values([("a", ByteRange(2, 9))], memory) == [b"2345678"]
        assert store.source("a").read([ByteRange(2, 9), ALL], memory) == [b"2345678", b"0123456789"]


def test_a_platform_without_preadv_reads_the_same(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.set("a", b"0123456789")
    monkeypatch.setattr(files, "_HAS_PREADV", False)
    monkeypatch.delattr(os, "preadv")
    memory = memoryview(bytearray(20))
    assert store.get_partial_values([("a", ByteRange(2, 9))], memory) == [b"2345678"]
    assert store.source("a").read([ByteRange(2, 9)], memory) == [b"2345678"]


def test_partial_values_fill_the_memory_consecutively(store: LocalStore) -> None:
    store.set_many([("a", b"0123"), ("b", b"4567")])
    memory = memoryview(bytearray(8))
    requests = [("a", ByteRange(1, 3), 4), ("none", ByteRange(0, 4), 4), ("b", ByteRange(0, 9), 4)]
    assert store.get_partial_values(requests, memory) == [b"12", None, b"4567"]
    assert bytes(memory) == b"12" + bytes(6)  # the last value did not fit in the rest of `memory`
    assert store.get_partial_values([("a", ByteRange(1, 3)), ("b", ByteRange(0, 4))], memory) == [b"12", b"4567"]
    assert bytes(memory) == b"124567" + bytes(2)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("value", [b"", b"0123", b"012345"])
def test_a_request_with_a_wrong_expected_size_is_refused(store: LocalStore, value: bytes, count: int) -> None:
    store.set("a", value)
    with pytest.raises(WrongSizeError, match=rf"^has {len(value)} bytes, but must have 5$") as caught:
        store.get_partial_values([("a", ByteRange(0, 3), 5)] * count)
    assert caught.value.size == len(value)


def test_reading_past_the_end_of_a_truncated_file_returns_the_rest(root: Path) -> None:
    root.write_bytes(b"01234")
    fd = os.open(root, os.O_RDONLY)
    try:
        assert files.read(fd, 3, 10) == b"34"
    finally:
        os.close(fd)


def test_short_writes_are_continued(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: original(fd, data[:3]))
    store.set("a", b"0123456789")
    assert store.get("a") == b"0123456789"


@pytest.mark.parametrize("limit", range(12))
def test_short_writes_of_pieces_are_continued(store: LocalStore, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    write, writev = os.write, os.writev
    monkeypatch.setattr(files, "_MAX_GATHERED", 3)
    monkeypatch.setattr(os, "writev", lambda fd, views: writev(fd, [memoryview(b"".join(views))[:limit]]))
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:2]))
    store.update("a", lambda old: [b"012", memoryview(b"345"), b"", bytearray(b"67"), b"89"])
    assert store.get("a") == b"0123456789"


# Options and identity


def test_fsync_syncs_the_file_before_the_rename_and_the_directory_after(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(root, fsync=True)
    store.set("a/k", b"0")
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(fd: int) -> None:
        calls.append("directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *args: (calls.append("rename"), replace(*args)))
    store.set("a/k", b"1")
    assert calls == ["file", "rename", "directory"]
    calls.clear()
    store.set("b/c/k", b"1")  # the parents of new directories are synced, too
    assert calls == ["directory", "directory", "file", "rename", "directory"]
    calls.clear()
    store.update("d/k", lambda old: b"1")
    assert calls == ["directory", "file", "rename", "directory"]
    calls.clear()
    LocalStore(root).set("a/k", b"2")
    assert calls == ["rename"]


def test_stores_with_equal_roots_are_equal_and_pickle_with_their_options(root: Path) -> None:
    store = LocalStore(str(root), fsync=True, read_only=True)
    copy = pickle.loads(pickle.dumps(store))
    assert (copy.root, copy.fsync, copy.read_only) == (str(root), True, True)
    assert copy == store == LocalStore(root)
    assert hash(copy) == hash(store)
    assert store != LocalStore(root / "a")
    assert store != str(root)
    assert repr(store) == f"LocalStore({str(root)!r})"


def test_the_root_may_be_the_root_of_the_file_system(tmp_path: Path, tree: Tree) -> None:
    store, key = LocalStore("/"), str(tmp_path / "a" / "k")[1:]
    store.set(key, b"1")
    assert store.get(key) == b"1"
    assert list(store.list_prefix(str(tmp_path)[1:] + "/")) == [key]
    (tmp_path / "link").symlink_to("a/k")
    assert store.get(str(tmp_path / "link")[1:]) == b"1"
    store.erase(key)
    (tmp_path / "link").unlink()
    (tmp_path / "keep").touch()
    assert tree(tmp_path) == ["keep"]
