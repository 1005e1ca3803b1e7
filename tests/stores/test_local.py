"""LocalStore: the laws, files, symlinks, errors. Locks and crashes are in test_local_processes.py."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import tracemalloc
from pathlib import Path

import pytest

from zarrlite.errors import ArgumentError, KeyRefusedError, ReadOnlyError, StoreError
from zarrlite.ranges import ALL, ByteRange
from zarrlite.stores import LocalStore, Store, files, paths
from zarrlite.testing.stores import StoreLaws

TEMPORARY = "__zarrlite.tmp.1.2.abc"


class TestLocalStore(StoreLaws):
    options: dict[str, bool] = {}

    @pytest.fixture(autouse=True)
    def _directories(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.new = tmp_path_factory

    def make_store(self) -> Store:
        return LocalStore(self.new.mktemp("store") / "root", **self.options)


class TestLocalStoreWithFsync(TestLocalStore):
    options = {"fsync": True}


class TestLocalStoreWithoutLockableFiles(TestLocalStore):
    """As on Windows."""

    @pytest.fixture(autouse=True)
    def _unlockable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("zarrlite.stores.inodes.LOCKABLE", False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(root)


def tree(root: Path) -> list[str]:
    """Everything below a directory, directories with a slash."""
    return sorted(str(path.relative_to(root)) + "/" * path.is_dir() for path in root.rglob("*"))


# What is on the disk


def test_a_key_is_a_path(store: LocalStore, root: Path) -> None:
    store.set("a/b", b"1")
    assert (root / "a" / "b").read_bytes() == b"1"
    assert tree(root) == ["a/", "a/b"]


def test_reading_makes_no_directories(store: LocalStore, root: Path) -> None:
    assert store.get("a/b") is store.size("a/b") is None
    assert list(store.list()) == []
    assert store.list_dir("a/") == ([], [])
    store.erase("a/b")
    store.erase_prefix("a/")
    store.erase_prefix("")
    assert not root.exists()


def test_an_update_that_writes_nothing_leaves_no_directories(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "x" / "y")
    store.update("a/b/c", lambda old: old)
    with store.lock("a/b/c"), store.lock("a/b/d"), store.lock("a/e"):
        pass
    assert tree(tmp_path) == []
    store.set("k", b"")
    store.update("a/b/c", lambda old: old)
    assert tree(tmp_path) == ["x/", "x/y/", "x/y/k"]


def test_a_lock_makes_directories_that_last_as_long_as_it_is_needed(store: LocalStore, root: Path) -> None:
    with store.lock("a/b/c"):
        with store.lock("a/b/d"):
            pass
        assert tree(root) == ["a/", "a/b/"]
        store.erase_prefix("a/")
        assert tree(root) == ["a/", "a/b/"]
    assert not root.exists()


def test_erasing_prunes_empty_directories_below_the_root(store: LocalStore, root: Path) -> None:
    store.set_many([("a/b/c/d", b""), ("a/e", b"")])
    store.erase("a/b/c/d")
    assert tree(root) == ["a/", "a/e"]
    store.erase("a/e")
    assert tree(root) == []
    assert root.is_dir()


def test_erase_prefix_removes_temporaries_and_empty_directories(store: LocalStore, root: Path) -> None:
    store.set_many([("a/b/c", b""), ("k", b"")])
    (root / "a" / "b" / TEMPORARY).write_bytes(b"left by a killed writer")
    (root / "a" / "empty" / "er").mkdir(parents=True)
    (root / "a" / "b" / os.fsdecode(b"\xff")).write_bytes(b"not a key")
    store.erase_prefix("a/")
    assert tree(root) == ["k"]


def test_erasing_a_prefix_is_not_erasing_a_key(store: LocalStore) -> None:
    store.set("a/b", b"1")
    store.erase("a")
    store.erase("a/b/c")
    store.erase_prefix("a/b/")
    assert store.get("a/b") == b"1"
    assert store.get("a") is store.get("a/b/c") is store.size("a") is store.size("a/b/c") is None


def test_temporaries_are_nobodys_keys(store: LocalStore, root: Path) -> None:
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
            assert str(caught.value) == f"{key!r} is not a key: names with '__zarrlite.tmp.' are reserved"
    store.set("a/not__zarrlite.tmp.", b"")
    assert store.get("a/not__zarrlite.tmp.") == b""


@pytest.mark.parametrize(
    "name",
    ["é ñ 漢字 🎈", "with space", " ", ".hidden", "a:b", "con", "...x", "...", "-rf", "*?", "~", "%2e%2e", "a\nb", "x" * 255, "é" * 127],
)  # fmt: skip
def test_odd_names(store: LocalStore, root: Path, name: str) -> None:
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


def test_keys_as_deep_as_the_file_system_allows(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    key = "a/" * 1500 + "k"
    with store.lock(key):
        store.set(key, b"deep")
    assert store.get(key) == b"deep"
    assert list(store.list()) == [key]
    store.erase(key)
    assert tree(tmp_path) == []
    store.set(key, b"deep")
    store.erase_prefix("a/")
    assert tree(tmp_path) == []


def test_what_is_no_regular_file_is_no_value(store: LocalStore, root: Path) -> None:
    store.set("k", b"")
    os.mkfifo(root / "fifo")
    assert store.get("fifo") is store.size("fifo") is None
    assert list(store.list()) == ["k"]


def test_names_that_are_no_keys_are_not_listed(store: LocalStore, root: Path) -> None:
    store.set("k", b"")
    (root / "a\\b").write_bytes(b"")
    (root / os.fsdecode(b"\xff")).write_bytes(b"")
    assert list(store.list()) == ["k"]


# Reading


def test_a_huge_range_reads_no_more_than_there_is(store: LocalStore) -> None:
    store.set("a", bytes(1000))
    tracemalloc.start()
    try:
        for byte_range in (ByteRange(0, 2**62), ByteRange(-(2**62)), ByteRange(2**62, 2**70), ByteRange(500, 2**40)):
            store.get("a", byte_range)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_ranges_of_one_key_open_it_once(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.set_many([("a", b"0123"), ("b", b"4567")])
    opened: list[str] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *args: (opened.append(os.path.basename(path)), real(path, *args))[1])
    asked = [("a", ByteRange(0, 1)), ("a", ByteRange(-1)), ("b", ALL), ("b", ByteRange(9)), ("a", ByteRange(1, 2))]
    assert store.get_partial_values(asked) == [b"0", b"3", b"4567", b"", b"1"]
    assert opened == ["a", "b", "a"]


def test_short_reads_are_continued(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.set("a", b"0123456789")
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, count, offset: real(fd, min(count, 3), offset))
    assert store.get("a") == b"0123456789"
    assert store.get("a", ByteRange(2, 9)) == b"2345678"


def test_a_file_that_is_cut_while_it_is_read_is_short(root: Path) -> None:
    root.write_bytes(b"01234")
    fd = os.open(root, os.O_RDONLY)
    try:
        assert files.read(fd, 3, 10) == b"34"
    finally:
        os.close(fd)


def test_short_writes_are_continued(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
    store.set("a", b"0123456789")
    assert store.get("a") == b"0123456789"


# Symlinks


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory beside the root with a file that nobody may touch."""
    outside = tmp_path / "root2"  # begins as the root does
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    return outside


def links_out(root: Path, outside: Path) -> list[str]:
    """Every way out, each ready to be used as a key."""
    root.mkdir(exist_ok=True)
    (root / "d").mkdir()
    (root / "file").symlink_to(outside / "secret")
    (root / "d" / "relative").symlink_to("../../root2/secret")
    (root / "directory").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "chain").symlink_to("directory")
    (root / "d" / "chain").symlink_to("../file")
    return ["file", "d/relative", "directory/secret", "up/root2/secret", "chain/secret", "d/chain", "directory/new"]


def test_symlinks_out_of_the_root_are_refused(store: LocalStore, root: Path, outside: Path) -> None:
    for key in links_out(root, outside):
        for operation in (
            lambda: store.get(key),
            lambda: store.get(key, ByteRange(1, 2)),
            lambda: store.get_partial_values([(key, ALL)]),
            lambda: store.size(key),
            lambda: store.set(key, b"x"),
            lambda: store.erase(key),
            lambda: store.update(key, lambda old: b"x"),
            lambda: store.lock(key).__enter__(),
        ):
            with pytest.raises(KeyRefusedError) as caught:
                operation()
            assert str(caught.value) == f"{key!r} leads out of {str(root)!r} by a symlink"
    assert tree(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"


def test_symlinks_out_of_the_root_are_not_listed(store: LocalStore, root: Path, outside: Path) -> None:
    links_out(root, outside)
    store.set("d/k", b"")
    assert list(store.list()) == ["d/k"]
    assert store.list_dir("") == ([], ["d/"])
    for prefix in ("directory/", "chain/", "up/root2/"):
        with pytest.raises(KeyRefusedError):
            list(store.list_prefix(prefix))
        with pytest.raises(KeyRefusedError):
            store.list_dir(prefix)


def test_erase_prefix_unlinks_symlinks_and_never_follows_them(store: LocalStore, root: Path, outside: Path) -> None:
    links_out(root, outside)
    with pytest.raises(KeyRefusedError):
        store.erase_prefix("up/root2/")
    store.erase_prefix("directory/")
    assert not (root / "directory").is_symlink()
    store.erase_prefix("")
    assert tree(root) == []
    assert tree(outside) == ["secret"]


def test_symlinks_within_the_root_are_what_they_point_at(store: LocalStore, root: Path) -> None:
    store.set_many([("real/k", b"0123"), ("a", b"x")])
    (root / "link").symlink_to("real")
    (root / "again").symlink_to(root / "link")
    (root / "a2").symlink_to("a")
    assert list(store.list()) == ["a", "a2", "again/k", "link/k", "real/k"]
    assert store.list_dir("") == (["a", "a2"], ["again/", "link/", "real/"])
    assert store.get("again/k", ByteRange(-2)) == b"23"
    assert (store.get("a2"), store.size("a2"), store.size("link/k")) == (b"x", 1, 4)
    store.update("link/k", lambda old: bytes(old or b"") + b"!")
    assert store.get("real/k") == b"0123!"
    store.erase("link")
    assert (root / "link").is_symlink()


def test_writing_a_key_that_is_a_symlink_replaces_or_removes_the_symlink(store: LocalStore, root: Path) -> None:
    store.set("target", b"old")
    for name in ("set", "erased"):
        (root / name).symlink_to("target")
    with store.lock("set"), store.lock("target"):  # one file, two keys
        store.set("set", b"new")
    store.erase("erased")
    assert not (root / "set").is_symlink()
    assert {key: store.get(key) for key in store.list()} == {"set": b"new", "target": b"old"}


@pytest.mark.parametrize("target", ["nowhere", "/nowhere/at/all", "link"])
def test_a_symlink_to_nowhere_is_missing(store: LocalStore, root: Path, target: str) -> None:
    root.mkdir()
    (root / "link").symlink_to(target)
    assert store.get("link") is store.size("link") is None
    assert list(store.list()) == []
    store.set("link", b"1")
    assert store.get("link") == b"1"
    (root / "erased").symlink_to(target)
    store.erase("erased")
    assert tree(root) == ["link"]


def test_a_directory_that_is_a_symlink_to_nowhere_is_missing(store: LocalStore, root: Path, outside: Path) -> None:
    root.mkdir()
    (root / "link").symlink_to("nowhere")
    assert store.get("link/k") is None
    assert list(store.list_prefix("link/")) == []
    for write in (lambda: store.set("link/k", b""), lambda: store.update("link/k", lambda old: b"")):
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.errno == errno.ENOENT
    (root / "nowhere").symlink_to(outside)  # not remembered as harmless
    with pytest.raises(KeyRefusedError):
        store.get("link/secret")


def test_a_directory_that_was_pruned_is_checked_anew(store: LocalStore, root: Path, outside: Path) -> None:
    for erase in (lambda: store.erase("a/b/k"), lambda: store.erase_prefix("a/b/")):
        store.set("a/b/k", b"")
        assert store.get("a/b/k") == b""
        erase()
        (root / "a").symlink_to(outside)
        with pytest.raises(KeyRefusedError):
            store.get("a/b/k")
        with pytest.raises(KeyRefusedError):
            store.get("a/secret")
        (root / "a").unlink()


def test_symlink_loops_are_listed_once(store: LocalStore, root: Path) -> None:
    store.set_many([("a/k", b""), ("b/k", b"")])
    (root / "a" / "self").symlink_to(".")
    (root / "a" / "root").symlink_to("..")
    (root / "a" / "b").symlink_to("../b")
    (root / "b" / "a").symlink_to("../a")
    assert list(store.list()) == ["a/b/k", "a/k", "b/a/k", "b/k"]
    assert store.list_dir("a/") == (["a/k"], ["a/b/"])


def test_the_root_may_be_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "root").symlink_to("real")
    (tmp_path / "real").mkdir()
    store = LocalStore(tmp_path / "root")
    store.set("a/k", b"1")
    (tmp_path / "real" / "link").symlink_to("a")
    assert {key: store.get(key) for key in store.list()} == {"a/k": b"1", "link/k": b"1"}
    store.erase_prefix("")
    assert (tmp_path / "root").is_symlink()
    assert tree(tmp_path / "real") == []


def test_few_directories_are_remembered(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_CHECKED", 5)
    store.set_many((f"{n}/k", b"") for n in range(20))
    assert [store.get(key) for key in store.list()] == [b""] * 20
    assert len(store._root._checked) <= 5


# Errors


@pytest.mark.parametrize(
    ("key", "number", "reason"),
    [
        ("a/b", errno.ENOTDIR, "one of its parents is a value"),
        ("a/b/c", errno.ENOTDIR, "one of its parents is a value"),
        ("d", errno.EISDIR, "it is a prefix of other keys"),
        ("x" * 256, errno.ENAMETOOLONG, "the file system takes no names as long as that"),
        (f"{'x' * 256}/k", errno.ENAMETOOLONG, "the file system takes no names as long as that"),
    ],
)
def test_keys_that_cannot_be_written(store: LocalStore, root: Path, key: str, number: int, reason: str) -> None:
    store.set_many([("a", b"1"), ("d/k", b"2")])
    for write in (lambda: store.set(key, b""), lambda: store.update(key, lambda old: b"")):
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.message.startswith(f"{key!r} cannot be ")
        assert caught.value.message.endswith(f": {reason}")
        assert (caught.value.errno, caught.value.key) == (number, key)
        assert isinstance(caught.value.__cause__, OSError)
        assert pickle.loads(pickle.dumps(caught.value)).errno == number
    assert tree(root) == ["a", "d/", "d/k"]


@pytest.mark.parametrize("key", ["x" * 256, f"{'x' * 256}/k", f"d/{'é' * 128}"])
def test_names_too_long_to_be_read(store: LocalStore, key: str) -> None:
    store.set("d/k", b"")
    for read in (store.get, store.size):
        with pytest.raises(StoreError) as caught:
            read(key)
        assert str(caught.value) == f"{key!r} cannot be read: the file system takes no names as long as that"


def test_lone_surrogates_are_refused(store: LocalStore) -> None:
    for key in ("\ud800", "a/\udcff"):
        for operation in (lambda: store.get(key), lambda: store.set(key, b""), lambda: store.list_dir(f"{key}/")):
            with pytest.raises(KeyRefusedError, match="lone surrogates cannot be stored"):
                operation()


def fail_with(number: int):  # noqa: ANN201
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("name", ["write", "fsync", "replace", "close"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_failed_set_leaves_the_old_value(root: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: int) -> None:
    store = LocalStore(root, fsync=True)
    store.set("a/k", b"old")
    with monkeypatch.context() as patch:
        fail = fail_with(error)
        close = os.close
        patch.setattr(os, name, lambda *args: (close(*args) if name == "close" else None, fail())[1])
        for key in ("a/k", "b/c/k"):
            with pytest.raises(StoreError) as caught:
                store.set(key, b"new")
            assert str(caught.value) == f"{key!r} cannot be written: {os.strerror(error)}"
    assert {key: store.get(key) for key in store.list()} == {"a/k": b"old"}
    assert tree(root)[:2] == ["a/", "a/k"]


def test_an_interrupted_set_leaves_the_old_value(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    store.set("a/k", b"old")
    for name in ("write", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, interrupt)
            for key in ("a/k", "b/c/k"):
                with pytest.raises(KeyboardInterrupt):
                    store.set(key, b"new")
    assert tree(root) == ["a/", "a/k"]
    assert store.get("a/k") == b"old"


@pytest.mark.parametrize(
    ("name", "operation", "message"),
    [
        ("fstat", lambda store: store.get("a/k"), "'a/k' cannot be read: Input/output error"),
        ("open", lambda store: store.get("a/k"), "'a/k' cannot be read: Input/output error"),
        ("lstat", lambda store: store.size("a/k"), "'a/k' cannot be read: Input/output error"),
        ("lstat", lambda store: store.get("a/k"), "'a/k' cannot be read: Input/output error"),
        ("scandir", lambda store: store.list_dir("a/"), "'a/' cannot be listed: Input/output error"),
        ("scandir", lambda store: list(store.list()), "'' cannot be listed: Input/output error"),
        ("scandir", lambda store: store.erase_prefix("a/"), "'a/' cannot be erased: Input/output error"),
        ("unlink", lambda store: store.erase("a/k"), "'a/k' cannot be erased: Input/output error"),
        ("unlink", lambda store: store.update("a/k", lambda old: None), "'a/k' cannot be erased: Input/output error"),
        ("open", lambda store: store.lock("a/k").__enter__(), "'a/k' cannot be locked: Input/output error"),
    ],
)
def test_every_failure_is_a_store_error(root: Path, monkeypatch: pytest.MonkeyPatch, name, operation, message) -> None:
    LocalStore(root).set("a/k", b"1")
    store = LocalStore(root)
    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail_with(errno.EIO))
        with pytest.raises(StoreError) as caught:
            operation(store)
    assert str(caught.value) == message
    assert store.get("a/k") == b"1"
    store.set("a/k", b"2")  # nothing stays locked


def test_what_is_raised_under_a_lock_passes(store: LocalStore) -> None:
    def fail(_: object) -> None:
        raise FileNotFoundError("not ours")

    with pytest.raises(FileNotFoundError, match="^not ours$"):
        store.update("a/b", fail)


@pytest.mark.parametrize("root", ["", "a\0b"])
def test_what_is_no_path_is_refused(root: str) -> None:
    with pytest.raises(ArgumentError, match="is not the path of a directory"):
        LocalStore(root)


# Options and identity


def test_fsync_comes_before_and_after_the_rename(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    store.set("b/c/k", b"1")  # new directories are made durable in those that hold them
    assert calls == ["directory", "directory", "file", "rename", "directory"]
    calls.clear()
    store.update("d/k", lambda old: b"1")
    assert calls == ["directory", "file", "rename", "directory"]
    calls.clear()
    LocalStore(root).set("a/k", b"2")
    assert calls == ["rename"]


def test_a_read_only_store_refuses_to_be_written(root: Path) -> None:
    LocalStore(root).set("a/k", b"1")
    store = LocalStore(root, read_only=True)
    for write in (
        lambda: store.set("a/k", b""),
        lambda: store.set_many([("a/k", b"")]),
        lambda: store.set_partial_values([("a/k", 0, b"")]),
        lambda: store.erase("a/k"),
        lambda: store.erase_values(["a/k"]),
        lambda: store.erase_prefix("a/"),
        lambda: store.update("a/k", lambda old: pytest.fail("not to be called")),
    ):
        with pytest.raises(ReadOnlyError) as caught:
            write()
        assert str(caught.value) == f"LocalStore({str(root)!r}) was opened for reading only"
    with store.lock("none/k"):
        assert store.get("a/k") == b"1"
    assert tree(root) == ["a/", "a/k"]


def test_identity(root: Path) -> None:
    store = LocalStore(str(root), fsync=True, read_only=True)
    copy = pickle.loads(pickle.dumps(store))
    assert (copy.root, copy.fsync, copy.read_only) == (str(root), True, True)
    assert copy == store == LocalStore(root)
    assert hash(copy) == hash(store)
    assert store != LocalStore(root / "a")
    assert store != str(root)
    assert repr(store) == f"LocalStore({str(root)!r})"


def test_a_root_of_all(tmp_path: Path) -> None:
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
