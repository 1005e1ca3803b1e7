"""LocalStore.set_new stores several new values together, or none of them."""

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


def test_new_values_are_stored_and_no_other_files(tmp_path: Path) -> None:
    assert PrefixStore(LocalStore(tmp_path), "a/").set_new(ITEMS)
    assert names(tmp_path) == ["a", "a/c", "a/c/0", "a/c/0.index"]
    assert (tmp_path / "a/c/0").read_bytes() == b"one chunk"


@pytest.mark.parametrize("existing", ["c/0", "c/0.index"])
def test_nothing_is_stored_if_one_key_exists(tmp_path: Path, existing: str) -> None:
    store = LocalStore(tmp_path)
    store.set(existing, b"old")
    assert not store.set_new(ITEMS)
    assert names(tmp_path) == ["c", existing]
    assert store.get(existing) == b"old"


def test_only_one_of_several_threads_stores_the_values(tmp_path: Path) -> None:
    store, barrier, stored = LocalStore(tmp_path), threading.Barrier(4), []

    def work(n: int) -> None:
        for round_ in range(25):
            barrier.wait()
            items = [(f"{round_}/c", b"%d" % n), (f"{round_}/c.index", b"%d" % n)]
            if store.set_new(items):
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


def test_the_first_key_is_locked_until_the_last_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, seen = LocalStore(tmp_path), []
    replace = os.replace

    def look() -> None:
        with lock_path(str(tmp_path / "c/0"), str(tmp_path)):
            seen.append(names(tmp_path / "c"))

    def slow_replace(old: str, new: str) -> None:
        if new.endswith(".index"):
            other.start()
            other.join(0.2)
            assert not seen
        replace(old, new)

    other = threading.Thread(target=look)
    monkeypatch.setattr(os, "replace", slow_replace)
    assert store.set_new(ITEMS)
    other.join()
    assert seen == [["0", "0.index"]]


def test_a_failed_write_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    monkeypatch.setattr(os, "writev", full)
    with pytest.raises(StoreError, match=r"c/0.*No space left"):
        LocalStore(tmp_path / "s").set_new(ITEMS)
    assert names(tmp_path) in ([], ["s"])
