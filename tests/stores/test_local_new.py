"""Values that are not there yet are stored together, or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from zarrlite.errors import StoreError
from zarrlite.stores import LocalStore, PrefixStore
from zarrlite.stores.filelock import lock_path

ITEMS: list[tuple[str, Any]] = [("c/0", [b"one ", b"chunk"]), ("c/0.index", b"index")]


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_they_are_stored_and_leave_nothing_else(tmp_path: Path) -> None:
    assert PrefixStore(LocalStore(tmp_path), "a/").set_new(ITEMS)
    assert names(tmp_path) == ["a", "a/c", "a/c/0", "a/c/0.index"]
    assert (tmp_path / "a/c/0").read_bytes() == b"one chunk"


@pytest.mark.parametrize("there", ["c/0", "c/0.index"])
def test_one_that_is_there_stays_and_so_does_nothing_else(tmp_path: Path, there: str) -> None:
    store = LocalStore(tmp_path)
    store.set(there, b"old")
    assert not store.set_new(ITEMS)
    assert names(tmp_path) == ["c", there]
    assert store.get(there) == b"old"


def test_of_several_threads_one_stores_them(tmp_path: Path) -> None:
    store, barrier, stored = LocalStore(tmp_path), threading.Barrier(4), []

    def work(n: int) -> None:
        for round_ in range(25):
            barrier.wait()
            made = [(f"{round_}/c", b"%d" % n), (f"{round_}/c.index", b"%d" % n)]
            if store.set_new(made):
                stored.append((round_, n))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(round_ for round_, _ in stored) == list(range(25))
    for round_, n in stored:
        assert store.get(f"{round_}/c") == store.get(f"{round_}/c.index") == b"%d" % n
    assert len(list(store.list())) == 50


def test_the_first_key_is_locked_until_the_last_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, found = LocalStore(tmp_path), []
    replace = os.replace

    def look() -> None:
        with lock_path(str(tmp_path / "c/0"), str(tmp_path)):
            found.append(names(tmp_path / "c"))

    def slowly(old: str, new: str) -> None:
        if new.endswith(".index"):
            other.start()
            other.join(0.2)
            assert not found
        replace(old, new)

    other = threading.Thread(target=look)
    monkeypatch.setattr(os, "replace", slowly)
    assert store.set_new(ITEMS)
    other.join()
    assert found == [["0", "0.index"]]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    monkeypatch.setattr(os, "writev", full)
    with pytest.raises(StoreError, match=r"c/0.*No space left"):
        LocalStore(tmp_path / "s").set_new(ITEMS)
    assert names(tmp_path) in ([], ["s"])
