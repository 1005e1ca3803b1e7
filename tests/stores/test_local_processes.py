"""LocalStore in several processes: updates, pruned directories, forked processes and killed processes."""

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
sys.stdin.read()  # until all processes have started
"""


def in_processes(root: Path, *scripts: str) -> None:
    """Run all scripts at the same time, each in a new process, and fail if one of them fails."""
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
def test_concurrent_updates_of_processes_lose_nothing(tmp_path: Path, start: bytes | None) -> None:
    store = LocalStore(tmp_path)
    if start is not None:
        store.set("a/k", start)
    in_processes(tmp_path, *["for _ in range(50): store.update('a/k', add_one)"] * 4)
    assert store.get("a/k") == b"200"
    assert list(tmp_path.rglob("__zarrlite*")) == []


def test_no_update_is_lost_while_others_prune_and_erase(tmp_path: Path) -> None:
    work = """
for n in range(50):
    store.update("a/b/count", add_one)
    store.set(f"a/b/{number}", b"")
    store.update("c/d/none", lambda old: None)  # a directory that is created and pruned
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


def test_updates_that_erase_a_key_lose_nothing(tmp_path: Path) -> None:
    work = """
for n in range(50):
    store.update("a/b/c", add_one)
    taken = []
    store.update("a/b/c", taken.append)  # returns None, which erases the key and its directories
    store.update("total", lambda old: b"%d" % (int(old or 0) + int(taken[0] or 0)))
"""
    in_processes(tmp_path, *[work] * 4)
    store = LocalStore(tmp_path)
    assert {key: store.get(key) for key in store.list()} == {"total": b"200"}
    assert os.listdir(tmp_path) == ["total"]


def fork(task: Callable[[], object]) -> int:
    """Run a task in a forked child. The child exits with 0 if the task returns, and is killed after a minute."""
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
    """Whether a thread or process holds a flock on a file or a directory."""
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


class Holder(threading.Thread):
    """A context in which another thread holds the lock of a key."""

    def __init__(self, store: LocalStore | MemoryStore, key: str) -> None:
        super().__init__()
        self.store, self.key = store, key
        self.acquired, self.done = threading.Event(), threading.Event()

    def run(self) -> None:
        with self.store.lock(self.key):
            self.acquired.set()
            self.done.wait()

    def __enter__(self) -> Holder:
        self.start()
        self.acquired.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.join()


def test_a_forked_child_does_not_inherit_locks_of_memory_stores() -> None:
    store = MemoryStore()
    with Holder(store, "a"):
        assert exit_status(fork(lambda: store.set("a", b"1"))) == 0


@pytest.mark.parametrize("exists", [True, False])
def test_a_forked_child_waits_for_a_lock_of_its_parent(tmp_path: Path, exists: bool) -> None:
    store = LocalStore(tmp_path)
    store.set_many([("a/k", b"1")] * exists)
    reader, writer = os.pipe()

    def child() -> None:
        store.update("b/k", lambda old: b"1")
        os.write(writer, b"b/k is written")
        store.update("a/k", lambda old: b"child")

    with Holder(store, "a/k"):
        pid = fork(child)
        assert os.read(reader, 100) == b"b/k is written"
        assert store.get("a/k") == (b"1" if exists else None)
    assert exit_status(pid) == 0
    assert store.get("a/k") == b"child"
    os.close(reader)
    os.close(writer)


def test_erasing_does_not_wait_for_the_holder_of_another_key_of_the_directory(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set_many([("a/k", b"1"), ("a/b/k", b"1")])
    with Holder(store, "a/absent"):
        assert exit_status(fork(lambda: (store.erase("a/k"), store.erase_prefix("a/b/")))) == 0
        assert list(store.list()) == []


def test_a_forked_child_does_not_keep_the_lock_of_its_parent(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a/k", b"1")
    reader, writer = os.pipe()
    with store.lock("a/k"):
        pid = fork(lambda: os.close(writer) or os.read(reader, 1))  # waits until the parent has released the lock
        assert is_locked(tmp_path / "a" / "k")
    assert not is_locked(tmp_path / "a" / "k")
    os.close(writer)
    os.close(reader)
    assert exit_status(pid) == 0


def test_a_forked_child_does_not_release_the_lock_of_its_parent(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with contextlib.ExitStack() as stack:
        stack.enter_context(store.lock("a/k"))
        assert exit_status(fork(stack.close)) == 0
        assert is_locked(tmp_path / "a")


def test_a_killed_writer_leaves_the_old_value_or_the_new_one(tmp_path: Path) -> None:
    store, size = LocalStore(tmp_path), 256 * 1024
    values = [b"a" * size, b"b" * size]
    store.set("d/k", values[0])
    generator = random.Random(1)
    reader, writer = os.pipe()

    def write_endlessly() -> None:
        store.set("d/k", values[1])
        os.write(writer, b".")  # tells the parent that the child has started
        while True:
            for value in values:
                store.set("d/k", value)

    leftovers = 0
    for _ in range(100):
        pid = fork(write_endlessly)
        os.read(reader, 1)
        time.sleep(generator.uniform(0, 0.004))
        os.kill(pid, signal.SIGKILL)
        assert exit_status(pid) == -signal.SIGKILL
        assert store.get("d/k") in values
        assert list(store.list()) == ["d/k"]
        assert store.list_dir("d/") == (["d/k"], [])
        leftovers = len(os.listdir(tmp_path / "d")) - 1
    os.close(reader)
    os.close(writer)
    store.erase_prefix("")
    assert os.listdir(tmp_path) == [], f"{leftovers} temporary files were left"
