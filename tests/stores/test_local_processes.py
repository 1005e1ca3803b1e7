"""LocalStore among processes: updates, prunings, forks and kills."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import zarrlite.stores
from zarrlite.stores import LocalStore, MemoryStore

LIBRARY = str(Path(zarrlite.stores.__file__).parents[2])
PROLOGUE = """
import sys
from zarrlite.stores import LocalStore
store, number = LocalStore(sys.argv[1]), int(sys.argv[2])
def add_one(old):
    return b"%d" % (int(old or 0) + 1)
sys.stdin.read()  # until all are there
"""


def in_processes(root: Path, *scripts: str) -> None:
    """Run each script in a new process, at once, and fail if one of them fails."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROLOGUE + script, str(root), str(number)],
            env=os.environ | {"PYTHONPATH": LIBRARY},
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number, script in enumerate(scripts)
    ]
    for process in processes:
        process.stdin.close()
        process.stdin = None
    outcomes = [(process.communicate()[1], process.returncode) for process in processes]
    assert outcomes == [(b"", 0)] * len(scripts)


@pytest.mark.parametrize("start", [b"0", None])
def test_processes_lose_no_updates(tmp_path: Path, start: bytes | None) -> None:
    store = LocalStore(tmp_path)
    if start is not None:
        store.set("a/k", start)
    in_processes(tmp_path, *["for _ in range(50): store.update('a/k', add_one)"] * 4)
    assert store.get("a/k") == b"200"
    assert list(tmp_path.rglob("__zarrlite*")) == []


def test_updates_are_not_lost_while_others_prune_and_erase(tmp_path: Path) -> None:
    work = """
for n in range(50):
    store.update("a/b/count", add_one)
    store.set(f"a/b/{number}", b"")
    store.update("c/d/none", lambda old: None)  # a directory that comes and goes
    store.set(f"c/d/{number}", b"")
    store.erase(f"c/d/{number}")
    store.erase(f"a/b/{number}")
    store.set(f"e/f/{number}", b"x")
    store.erase_prefix("e/")
"""
    in_processes(tmp_path, *[work] * 4)
    store = LocalStore(tmp_path)
    assert {key: store.get(key) for key in store.list()} == {"a/b/count": b"200"}
    assert os.listdir(tmp_path) == ["a"]


def test_what_is_moved_from_a_vanishing_key_to_a_total_is_never_lost(tmp_path: Path) -> None:
    work = """
for n in range(50):
    store.update("a/b/c", add_one)
    taken = []
    store.update("a/b/c", taken.append)  # which returns None: the key goes, and its directories with it
    store.update("total", lambda old: b"%d" % (int(old or 0) + int(taken[0] or 0)))
"""
    in_processes(tmp_path, *[work] * 4)
    store = LocalStore(tmp_path)
    assert {key: store.get(key) for key in store.list()} == {"total": b"200"}
    assert os.listdir(tmp_path) == ["total"]


def fork(task: Callable[[], object]) -> int:
    """Run a task in a forked child that exits with 0 if it returns, and dies if it hangs."""
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        task()
        os._exit(0)
    finally:
        os._exit(1)


def exit_status(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


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


class Holder(threading.Thread):
    """A thread that holds the lock of a key until it is told to let go."""

    def __init__(self, store: LocalStore | MemoryStore, key: str) -> None:
        super().__init__()
        self.store, self.key = store, key
        self.holds, self.let_go = threading.Event(), threading.Event()

    def run(self) -> None:
        with self.store.lock(self.key):
            self.holds.set()
            self.let_go.wait()

    def __enter__(self) -> Holder:
        self.start()
        self.holds.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go.set()
        self.join()


def test_a_forked_child_is_not_locked_out_of_memory() -> None:
    store = MemoryStore()
    with Holder(store, "a"):
        assert exit_status(fork(lambda: store.set("a", b"1"))) == 0


@pytest.mark.parametrize("there", [True, False])
def test_a_forked_child_waits_for_its_parent_and_no_longer(tmp_path: Path, there: bool) -> None:
    store = LocalStore(tmp_path)
    store.set_many([("a/k", b"1")] * there)
    reader, writer = os.pipe()

    def child() -> None:
        store.update("b/k", lambda old: b"1")
        os.write(writer, b"b/k is written")
        store.update("a/k", lambda old: b"child")

    with Holder(store, "a/k"):
        pid = fork(child)
        assert os.read(reader, 100) == b"b/k is written"
        assert store.get("a/k") == (b"1" if there else None)
    assert exit_status(pid) == 0
    assert store.get("a/k") == b"child"
    os.close(reader)
    os.close(writer)


def test_erasing_does_not_wait_for_who_holds_another_key_of_the_directory(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set_many([("a/k", b"1"), ("a/b/k", b"1")])
    with Holder(store, "a/absent"):
        assert exit_status(fork(lambda: (store.erase("a/k"), store.erase_prefix("a/b/")))) == 0
        assert list(store.list()) == []


def test_a_child_that_outlives_the_context_does_not_hold_the_lock(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a/k", b"1")
    reader, writer = os.pipe()
    with store.lock("a/k"):
        pid = fork(lambda: os.close(writer) or os.read(reader, 1))  # until its parent is done
        assert is_locked(tmp_path / "a" / "k")
    assert not is_locked(tmp_path / "a" / "k")
    os.close(writer)
    os.close(reader)
    assert exit_status(pid) == 0


def test_a_child_that_leaves_the_context_does_not_unlock(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with contextlib.ExitStack() as stack:
        stack.enter_context(store.lock("a/k"))
        assert exit_status(fork(stack.close)) == 0
        assert is_locked(tmp_path / "a")


def test_a_killed_writer_leaves_one_value_or_the_other(tmp_path: Path) -> None:
    store, size = LocalStore(tmp_path), 256 * 1024
    values = [b"a" * size, b"b" * size]
    store.set("d/k", values[0])
    chance = random.Random(1)
    reader, writer = os.pipe()

    def write_for_ever() -> None:
        store.set("d/k", values[1])
        os.write(writer, b".")  # it is at work
        while True:
            for value in values:
                store.set("d/k", value)

    left = 0
    for _ in range(100):
        pid = fork(write_for_ever)
        os.read(reader, 1)
        time.sleep(chance.uniform(0, 0.004))
        os.kill(pid, signal.SIGKILL)
        assert exit_status(pid) == -signal.SIGKILL
        assert store.get("d/k") in values
        assert list(store.list()) == ["d/k"]
        assert store.list_dir("d/") == (["d/k"], [])
        left = len(os.listdir(tmp_path / "d")) - 1
    os.close(reader)
    os.close(writer)
    store.erase_prefix("")
    assert os.listdir(tmp_path) == [], f"{left} temporaries were left"
