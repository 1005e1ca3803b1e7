"""Waiting for a writer in another process has a time limit, and lock files work without flock."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.stores.test_local_processes import exit_status, fork, in_processes
from zarrlite.errors import ArgumentError, StoreError
from zarrlite.stores import LocalStore, inode_locks

LOCK_FILE = "__zarrlite.lock.k"


@pytest.mark.parametrize("key", ["a/k", "a/new"])
def test_after_the_time_limit_the_error_names_the_process_that_holds_the_lock(tmp_path: Path, key: str) -> None:
    store = LocalStore(tmp_path, lock_timeout=0.01)
    store.set("a/k", b"old")
    path = tmp_path / key
    fd = os.open(path if path.exists() else path.parent, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)  # the kernel treats it like a lock of another process
    reason = f"process {os.getpid()} has not released its lock in time; end it, or increase lock_timeout"
    try:
        for operation, action in ((lambda: store.set(key, b""), "written"), (store.lock(key).__enter__, "locked")):
            with pytest.raises(StoreError) as caught:
                operation()
            assert str(caught.value) == f"{key!r} cannot be {action}: {reason}"
            assert (caught.value.key, caught.value.errno) == (key, errno.ETIMEDOUT)
    finally:
        os.close(fd)
    store.set(key, b"new")
    assert store.get(key) == b"new"
    assert list(tmp_path.rglob("__zarrlite*")) == []


def test_journals_are_stored_and_erased_without_a_lock(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, lock_timeout=0.01)
    store.set("a/k", b"")
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)  # simulates a process that locks another missing key
    try:
        for value in (b"new", b"other"):
            store.set("a/__zarrlite.journal.k", value)
            assert store.get("a/__zarrlite.journal.k") == value
        store.erase("a/__zarrlite.journal.k")
        store.erase("a/__zarrlite.journal.k")
    finally:
        os.close(fd)
    assert list(store.list()) == ["a/k"]
    store.erase("a/k")
    store.set("b/__zarrlite.journal.k", b"")
    store.erase("b/__zarrlite.journal.k")
    assert list(tmp_path.iterdir()) == []  # a directory is removed together with its last value


def test_a_file_system_that_reports_changing_files_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    store.set("k", b"old")
    monkeypatch.setattr(inode_locks, "sleep", lambda seconds: None)
    monkeypatch.setattr(inode_locks, "identity", lambda path: (0, 0))
    with pytest.raises(StoreError, match=r"^'k' cannot be written: the file was replaced each time it was locked$"):
        store.set("k", b"new")


@pytest.mark.parametrize("option", [{"lock_timeout": -1}, {"lock_timeout": float("nan")}, {"lock_method": "nfs"}])
def test_options_of_locks_are_checked(tmp_path: Path, option: dict) -> None:
    with pytest.raises(ArgumentError, match=rf"^{next(iter(option))} must be "):
        LocalStore(tmp_path, **option)


# Lock files


@pytest.mark.parametrize("start", [b"0", None])
def test_lock_files_exclude_processes(tmp_path: Path, start: bytes | None) -> None:
    if start is not None:
        LocalStore(tmp_path).set("a/k", start)
    work = "store = LocalStore(store.root, lock_method='file')\nfor _ in range(30): store.update('a/k', add_one)"
    in_processes(tmp_path, *[work] * 3)
    assert LocalStore(tmp_path).get("a/k") == b"90"
    assert list(tmp_path.rglob("__zarrlite*")) == []


def test_processes_exclude_each_other_if_only_files_can_be_locked(tmp_path: Path) -> None:
    """NFS, for example, refuses to lock files that are open for reading only."""
    work = """
import errno, fcntl
flock = fcntl.flock
def only_writable(fd, operation):
    if fcntl.fcntl(fd, fcntl.F_GETFL) & 3 == 0:
        raise OSError(errno.EBADF, "Bad file descriptor")
    flock(fd, operation)
fcntl.flock = only_writable
import warnings
warnings.simplefilter("error")
for n in range(30):
    store.update("a/k", add_one)
    store.update("b/k", lambda old: b"" if old is None else None)
"""
    in_processes(tmp_path, *[work] * 3)
    assert LocalStore(tmp_path).get("a/k") == b"90"
    assert list(tmp_path.rglob("__zarrlite*")) == []


def test_the_lock_file_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, lock_method="file", lock_timeout=10)

    def die() -> None:
        with store.lock("k"):
            os.kill(os.getpid(), signal.SIGKILL)

    assert exit_status(fork(die)) == -signal.SIGKILL
    assert os.listdir(tmp_path) == [LOCK_FILE]
    assert list(store.list()) == []
    store.set("k", b"1")
    assert os.listdir(tmp_path) == ["k"]


@pytest.mark.parametrize("call", ["open", "write", "close", "link", "unlink"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_killed_while_it_creates_a_lock_file_does_not_lock_out_others(
    tmp_path: Path, call: str, when: str
) -> None:
    store = LocalStore(tmp_path, lock_method="file", lock_timeout=2)

    def die() -> None:
        real = getattr(os, call)

        def killed(*args: Any, **keywords: Any) -> None:
            if when == "after":
                real(*args, **keywords)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(os, call, killed)
        store.lock("k").__enter__()

    assert exit_status(fork(die)) == -signal.SIGKILL
    store.set("k", b"1")
    assert [name for name in os.listdir(tmp_path) if not name.startswith("__zarrlite.tmp.")] == ["k"]


def test_a_process_killed_while_it_removes_a_stale_lock_file_does_not_lock_out_others(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, lock_method="file", lock_timeout=2)

    def die() -> None:
        with store.lock("k"):
            os.kill(os.getpid(), signal.SIGKILL)

    def die_with_the_lock_of_the_lock_file() -> None:
        os.unlink = lambda path: os.kill(os.getpid(), signal.SIGKILL) if path == lock_file else unlink(path)
        store.set("k", b"")

    unlink, lock_file = os.unlink, str(tmp_path / LOCK_FILE)
    for work in (die, die_with_the_lock_of_the_lock_file, die_with_the_lock_of_the_lock_file):
        assert exit_status(fork(work)) == -signal.SIGKILL
    assert f"__zarrlite.lock.{LOCK_FILE}" in os.listdir(tmp_path)
    store.set("k", b"1")
    assert [name for name in os.listdir(tmp_path) if "lock" in name] == []
    assert store.get("k") == b"1"


def test_lock_files_exclude_processes_where_files_cannot_be_linked(tmp_path: Path) -> None:
    work = """
import errno, os
def refuse(*args, **keywords):
    raise OSError(errno.EPERM, "Operation not permitted")
os.link = refuse
store = LocalStore(store.root, lock_method="file")
for _ in range(30): store.update("a/k", add_one)
"""
    in_processes(tmp_path, *[work] * 3)
    assert LocalStore(tmp_path).get("a/k") == b"90"
    assert list(tmp_path.rglob("__zarrlite*")) == []


@pytest.mark.parametrize(
    ("content", "holder"), [("17 1 elsewhere boot namespace", "process 17 on elsewhere"), ("", "another process")]
)
def test_the_lock_file_of_another_machine_is_waited_for(tmp_path: Path, content: str, holder: str) -> None:
    (tmp_path / LOCK_FILE).write_text(content)
    store = LocalStore(tmp_path, lock_method="file", lock_timeout=0.01)
    remedy = f"remove {str(tmp_path / LOCK_FILE)!r} if that process has ended"
    with pytest.raises(StoreError) as caught:
        store.set("k", b"1")
    assert str(caught.value) == f"'k' cannot be written: {holder} has not released its lock in time; {remedy}"
    assert os.listdir(tmp_path) == [LOCK_FILE]
