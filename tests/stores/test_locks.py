"""LockTable, and the right to write a path."""

from __future__ import annotations

import errno
import fcntl
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from zarrlite import threads
from zarrlite.errors import StoreError
from zarrlite.stores import LocalStore, filelock, inode_locks
from zarrlite.stores.locks import LockTable, _reset_tables
from zarrlite.testing import in_threads


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def is_locked(path: Path) -> bool:
    """Whether anybody holds the flock of a file or a directory."""
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


# Threads


def test_a_lock_excludes_other_threads() -> None:
    locks, inside = LockTable(), []

    def work() -> None:
        for _ in range(200):
            with locks("a"):
                inside.append(1)
                assert len(inside) == 1
                inside.pop()

    in_threads(*[work] * 4)
    assert len(locks) == 0


def test_keys_do_not_exclude_each_other() -> None:
    locks = LockTable()
    both = threading.Barrier(2, timeout=60)

    def work(key: str) -> None:
        with locks(key):
            both.wait()

    in_threads(lambda: work("a"), lambda: work("b"))


def test_a_thread_that_does_not_wait_gets_none() -> None:
    locks, found = LockTable(), []
    with locks("a"):
        in_threads(lambda: found.append(locks.acquire("a", wait=False)))
        assert locks.acquire("a", wait=False).depth == 2
    assert found == [None]


def test_a_lock_is_let_go_whatever_happens() -> None:
    locks = LockTable()
    with pytest.raises(ZeroDivisionError), locks("a"):
        raise ZeroDivisionError
    assert len(locks) == 0


def test_a_forked_child_knows_no_locks(store: LocalStore) -> None:
    before = os.listdir("/proc/self/fd")
    locks = LockTable()
    with locks("a"), store.lock("b/k"), store.lock("b/k2"):
        _reset_tables()  # what runs in a child
        assert len(locks) == len(filelock._table) == len(inode_locks._table) == 0
        assert os.listdir("/proc/self/fd") == before
        with locks("a"), store.lock("b/k"):
            assert len(locks) == 1
    assert len(locks) == len(filelock._table) == len(inode_locks._table) == 0


def test_a_table_pickles_as_an_empty_one() -> None:
    locks = LockTable()
    with locks("a"):
        assert len(pickle.loads(pickle.dumps(locks))) == 0


# Files


@pytest.mark.parametrize("there", [True, False])
def test_a_lock_lasts_over_what_its_holder_writes(store: LocalStore, tmp_path: Path, there: bool) -> None:
    store.set_many([("a/k", b"")] * there + [("a/other", b"")])
    directory, file = tmp_path / "a", tmp_path / "a" / "k"
    with store.lock("a/k"):
        for _ in range(2):
            assert is_locked(file if file.exists() else directory)
            store.set("a/k", b"1")
            assert (is_locked(file), is_locked(directory)) == (True, False)
            store.erase("a/k")
            assert is_locked(directory)
        store.update("a/k", lambda old: b"2")
    assert (is_locked(file), is_locked(directory)) == (False, False)


def test_absent_keys_of_one_directory_can_be_held_together(store: LocalStore, tmp_path: Path) -> None:
    with store.lock("a/x"):
        with store.lock("a/y"):
            store.set("a/x", b"")
            assert is_locked(tmp_path / "a")
        assert not is_locked(tmp_path / "a")
        assert is_locked(tmp_path / "a" / "x")


def test_two_stores_of_one_directory_are_one(store: LocalStore, tmp_path: Path) -> None:
    with store.lock("a/x"):
        LocalStore(tmp_path).set("a/x", b"1")
        LocalStore(tmp_path).set("a/y", b"1")


def test_descriptors_are_closed(store: LocalStore) -> None:
    before = os.listdir("/proc/self/fd")
    with store.lock("a/x"):
        for n in range(20):
            store.set("a/x", b"")
            store.update(f"a/{n % 3}", lambda old: b"" if old is None else None)
            store.erase("a/x")
            store.get("a/x")
    store.erase_prefix("")
    assert os.listdir("/proc/self/fd") == before
    assert len(filelock._table) == len(inode_locks._table) == 0


def test_a_large_file_that_was_replaced_is_closed_by_another_thread(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[tuple[int, bool]] = []  # the links of a file, and whether the main thread closes it
    original = os.close

    def noting(fd: int) -> None:
        if os.fstat(fd).st_size == inode_locks.DEFERRED_SIZE:
            main = threading.current_thread() is threading.main_thread()
            closed.append((os.fstat(fd).st_nlink, main))
            assert not is_locked(tmp_path / "a/b")
        original(fd)

    monkeypatch.setattr(threads, "_deferred", [])
    store.set("a/b", bytes(inode_locks.DEFERRED_SIZE))
    monkeypatch.setattr(os, "close", noting)
    store.set("a/b", b"small")
    ((deferred, _),) = threads._deferred
    deferred.result(60)
    assert closed == [(0, False)]
    store.set("a/b", b"smaller")
    assert len(closed) == 1


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let another process act between the moment a descriptor is opened and the one it is locked, once."""
    acts, hold = [act], inode_locks.acquire

    def late(fd: int) -> object:
        if acts:
            acts.pop()()
        return hold(fd)

    monkeypatch.setattr(inode_locks, "acquire", late)


@pytest.mark.parametrize(
    ("before", "act", "seen"),
    [
        ("old", lambda path: (path.with_name("x").write_text("new"), os.replace(path.with_name("x"), path)), b"new"),
        ("old", lambda path: (path.unlink(), path.parent.rmdir()), None),
        (None, lambda path: path.write_text("new"), b"new"),
        (None, lambda path: path.parent.rmdir(), None),
        (None, lambda path: (path.parent.rmdir(), path.parent.mkdir()), None),
        (None, lambda path: (path.parent.rmdir(), path.parent.mkdir(), path.write_text("new")), b"new"),
    ],
)
def test_a_lock_of_what_has_changed_meanwhile_is_taken_anew(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None, act: Callable, seen: bytes
) -> None:
    path = tmp_path / "a" / "k"
    if before is not None:
        store.set("a/k", before.encode())
    meanwhile(monkeypatch, lambda: act(path))
    with store.lock("a/k"):
        assert store.get("a/k") == seen
        assert is_locked(path if seen else path.parent)
        assert inode_locks.identity(str(path.parent)) in inode_locks._table or seen


def test_a_directory_that_keeps_vanishing_is_made_again(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = os.open, [3]

    def vanish(path: str, flags: int, *mode: int) -> int:
        if failures[0] and os.path.basename(path).startswith("__zarrlite.tmp."):
            failures[0] -= 1
            (tmp_path / "a").exists() and (tmp_path / "a").rmdir()
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", vanish)
    store.set("a/k", b"1")
    assert (store.get("a/k"), failures) == (b"1", [0])


def test_a_temporary_that_is_erased_by_others_is_written_again(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: LocalStore(tmp_path).erase_prefix(""))
    store.set("a/k", b"1")
    assert store.get("a/k") == b"1"


@pytest.mark.parametrize("there", [True, False])
def test_a_directory_in_use_is_not_removed(store: LocalStore, tmp_path: Path, there: bool) -> None:
    store.set_many([("a/k", b"")] * there)
    fd = os.open(tmp_path / "a" if there else tmp_path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)  # as another process that is about to write a/new
    store.erase("a/k")
    store.erase_prefix("a/")
    assert (tmp_path / "a").exists() == there
    os.close(fd)
    store.erase_prefix("a/")
    assert not (tmp_path / "a").exists()


def test_a_directory_that_others_have_made_anew_is_not_removed(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.set("a/k", b"")
    try_hold = inode_locks.try_acquire

    def late(fd: int) -> object:
        (tmp_path / "a").rmdir()
        (tmp_path / "a").mkdir()
        return try_hold(fd)

    monkeypatch.setattr(inode_locks, "try_acquire", late)
    store.erase("a/k")
    assert (tmp_path / "a").is_dir()


# Failures


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EBADF])
def test_a_file_system_without_locks_is_warned_of(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def flock(fd: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(RuntimeWarning, match=r"cannot lock files \(.*\): other processes are not excluded from writing"):
        store.set("a/k", b"1")
    monkeypatch.setattr("warnings.warn", lambda *args, **kwargs: None)
    store.update("a/k", lambda old: bytes(old) + b"2")
    assert store.get("a/k") == b"12"
    store.erase("a/k")
    assert os.listdir(store.root) == []


def test_a_lock_that_fails_is_an_error_and_leaves_nothing(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(fd: int, operation: int) -> None:
        raise OSError(errno.EIO, "no luck")

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(StoreError, match=r"^'k' cannot be written: no luck$"):
        store.set("k", b"1")
    assert os.listdir("/proc/self/fd") == before
    assert len(filelock._table) == len(inode_locks._table) == 0
    assert os.listdir(store.root) == []


def test_an_inode_that_this_thread_holds_is_not_free(store: LocalStore, tmp_path: Path) -> None:
    with store.lock("a/k"):
        assert inode_locks.try_acquire(os.open(tmp_path / "a", os.O_RDONLY)) is None
