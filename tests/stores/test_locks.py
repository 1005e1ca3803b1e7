"""Locks between threads (lock tables), and locks on paths between processes."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from open_files import open_files

from zarrlite import threads
from zarrlite.errors import StoreError
from zarrlite.stores import LocalStore, MemoryStore, Store, filelock, inode_locks
from zarrlite.stores.inode_locks import InodeLock
from zarrlite.stores.locks import Lock, LockContext, Table, _empty_tables
from zarrlite.testing import in_threads
from zarrlite.tuning import DEFERRED_SIZE


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def is_locked(path: Path) -> bool:
    """Whether a thread or process holds a flock on a file or a directory."""
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


# Threads


def hold(table: Table, key: str, seconds: float | None = None) -> LockContext:
    return LockContext(Lock(table, key), seconds, key)


def test_a_lock_excludes_other_threads() -> None:
    locks, holders = Table(), []

    def work() -> None:
        for _ in range(200):
            with hold(locks, "a"):
                holders.append(1)
                assert len(holders) == 1
                holders.pop()

    in_threads(*[work] * 4)
    assert locks == {}


def test_locks_of_different_keys_do_not_exclude_each_other() -> None:
    locks = Table()
    both = threading.Barrier(2, timeout=60)

    def work(key: str) -> None:
        with hold(locks, key):
            both.wait()

    in_threads(lambda: work("a"), lambda: work("b"))


def test_a_thread_may_acquire_a_lock_again_and_release_it_in_any_order() -> None:
    locks = Table()
    first, second = hold(locks, "a"), hold(locks, "a")
    first.__enter__()
    second.__enter__()
    first.close()
    assert list(locks) == ["a"]
    second.close()
    second.close()
    assert locks == {}


def test_a_lock_is_released_after_an_error() -> None:
    locks = Table()
    with pytest.raises(ZeroDivisionError), hold(locks, "a"):
        raise ZeroDivisionError
    assert locks == {}


@pytest.mark.parametrize("store", [MemoryStore(), pytest.param(None, id="LocalStore")])
def test_holding_a_lock_for_too_long_is_an_error_for_other_threads(tmp_path: Path, store: Store | None) -> None:
    store = store or LocalStore(tmp_path, lock_timeout=0)
    context = store.lock("a")
    context._timeout = 0  # type: ignore[attr-defined]
    errors: list[StoreError] = []

    def wait() -> None:
        with pytest.raises(StoreError) as caught, context:
            pass
        errors.append(caught.value)

    with store.lock("a"):
        in_threads(wait)
    number = threading.get_ident()
    reason = f"thread {number} of this process has not released its lock in time; end it, or increase lock_timeout"
    assert [(str(error), error.key, error.errno) for error in errors] == [
        (f"'a' cannot be locked: {reason}", "a", errno.ETIMEDOUT)
    ]


def test_a_forked_child_starts_without_locks_and_without_their_descriptors(store: LocalStore) -> None:
    locks = Table()
    guard = locks.guard
    with hold(locks, "a"), store.lock("b/k"), store.lock("b/k2"):
        _empty_tables()  # every forked child runs this
        assert locks.guard is not guard  # another thread of the parent may hold the old guard
        assert len(locks) == len(filelock._table) == len(inode_locks._table) == 0
        assert open_files(Path(store.root)) == []
        with hold(locks, "a"), store.lock("b/k"):
            assert len(locks) == 1
    assert len(locks) == len(filelock._table) == len(inode_locks._table) == 0


# Files


@pytest.mark.parametrize("exists", [True, False])
def test_a_lock_lasts_while_its_holder_writes_and_erases(store: LocalStore, tmp_path: Path, exists: bool) -> None:
    store.set_many([("a/k", b"")] * exists + [("a/other", b"")])
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


def test_one_thread_can_lock_several_absent_keys_of_a_directory(store: LocalStore, tmp_path: Path) -> None:
    with store.lock("a/x"):
        with store.lock("a/y"):
            store.set("a/x", b"")
            assert is_locked(tmp_path / "a")
        assert not is_locked(tmp_path / "a")
        assert is_locked(tmp_path / "a" / "x")


def test_two_stores_of_one_directory_share_the_locks_of_a_thread(store: LocalStore, tmp_path: Path) -> None:
    with store.lock("a/x"):
        LocalStore(tmp_path).set("a/x", b"1")
        LocalStore(tmp_path).set("a/y", b"1")


def test_locks_leave_no_open_descriptors(store: LocalStore) -> None:
    with store.lock("a/x"):
        for n in range(20):
            store.set("a/x", b"")
            store.update(f"a/{n % 3}", lambda old: b"" if old is None else None)
            store.erase("a/x")
            store.get("a/x")
    store.erase_prefix("")
    assert open_files(Path(store.root)) == []
    assert len(filelock._table) == len(inode_locks._table) == 0


def test_a_large_replaced_file_is_closed_by_another_thread(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[tuple[int, bool]] = []  # number of hard links, whether the main thread closed the file
    original = os.close

    def recording(fd: int) -> None:
        if os.fstat(fd).st_size == DEFERRED_SIZE:
            is_main = threading.current_thread() is threading.main_thread()
            closed.append((os.fstat(fd).st_nlink, is_main))
            assert not is_locked(tmp_path / "a/b")
        original(fd)

    monkeypatch.setattr(threads, "_deferred", [])
    store.set("a/b", bytes(DEFERRED_SIZE))
    monkeypatch.setattr(os, "close", recording)
    store.set("a/b", b"small")
    ((deferred, _),) = threads._deferred
    deferred.result(60)
    assert closed == [(0, False)]
    store.set("a/b", b"smaller")
    assert len(closed) == 1


def before_next_acquire(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Call `act`, which simulates another process, once between opening a file and locking it."""
    acts, acquire = [act], InodeLock.acquire

    def late(lock: InodeLock, deadline: float | None) -> object:
        if acts:
            acts.pop()()
        return acquire(lock, deadline)

    monkeypatch.setattr(InodeLock, "acquire", late)


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
def test_a_lock_is_acquired_again_if_the_path_has_changed(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None, act: Callable, seen: bytes
) -> None:
    path = tmp_path / "a" / "k"
    if before is not None:
        store.set("a/k", before.encode())
    before_next_acquire(monkeypatch, lambda: act(path))
    with store.lock("a/k"):
        assert store.get("a/k") == seen
        assert is_locked(path if seen else path.parent)
        assert inode_locks.identity(str(path.parent)) in inode_locks._table or seen


def test_a_directory_removed_by_another_process_is_created_again(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, removals = os.open, [3]

    def remove_first(path: str, flags: int, *mode: int) -> int:
        if removals[0] and os.path.basename(path).startswith("__zarrlite.tmp."):
            removals[0] -= 1
            (tmp_path / "a").exists() and (tmp_path / "a").rmdir()
        return original(path, flags, *mode)

    monkeypatch.setattr(os, "open", remove_first)
    store.set("a/k", b"1")
    assert (store.get("a/k"), removals) == (b"1", [0])


def test_a_temporary_file_erased_by_another_process_is_written_again(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_next_acquire(monkeypatch, lambda: LocalStore(tmp_path).erase_prefix(""))
    store.set("a/k", b"1")
    assert store.get("a/k") == b"1"


@pytest.mark.parametrize("exists", [True, False])
def test_a_locked_directory_is_not_removed(store: LocalStore, tmp_path: Path, exists: bool) -> None:
    store.set_many([("a/k", b"")] * exists)
    fd = os.open(tmp_path / "a" if exists else tmp_path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)  # as another process does before it writes a/new
    store.erase("a/k")
    store.erase_prefix("a/")
    assert (tmp_path / "a").exists() == exists
    os.close(fd)
    store.erase_prefix("a/")
    assert not (tmp_path / "a").exists()


def test_a_directory_recreated_by_another_process_is_not_removed(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.set("a/k", b"")
    try_acquire = InodeLock.try_acquire

    def late(lock: InodeLock) -> object:
        (tmp_path / "a").rmdir()
        (tmp_path / "a").mkdir()
        return try_acquire(lock)

    monkeypatch.setattr(InodeLock, "try_acquire", late)
    store.erase("a/k")
    assert (tmp_path / "a").is_dir()


# Failures


@pytest.mark.parametrize(
    "number", [errno.ENOSYS, errno.ENOLCK, errno.EBADF, errno.EPERM, errno.EACCES, errno.ENOTTY, errno.EOPNOTSUPP]
)
def test_a_file_system_without_locks_causes_a_warning_and_works(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def flock(fd: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    store.set("a/k", b"1")  # no warning: a lock file protects a key that does not exist
    with pytest.warns(RuntimeWarning, match=r"cannot lock files \(.*\): other processes are not excluded from writing"):
        store.set("a/k", b"1")
    monkeypatch.setattr("warnings.warn", lambda *args, **kwargs: None)
    store.update("a/k", lambda old: bytes(old) + b"2")
    assert store.get("a/k") == b"12"
    store.erase("a/k")
    assert os.listdir(store.root) == []


def test_a_failed_lock_is_an_error_and_leaves_no_files(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(fd: int, operation: int) -> None:
        raise OSError(errno.EIO, "flock failed")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(StoreError, match=r"^'k' cannot be written: flock failed$"):
        store.set("k", b"1")
    assert open_files(Path(store.root)) == []
    assert len(filelock._table) == len(inode_locks._table) == 0
    assert os.listdir(store.root) == []


def test_try_acquire_fails_for_an_inode_that_this_thread_holds(store: LocalStore, tmp_path: Path) -> None:
    lock = InodeLock()
    with store.lock("a/k"):
        lock.open(str(tmp_path / "a"), os.O_RDONLY)
        assert not lock.try_acquire()
        lock.release()
