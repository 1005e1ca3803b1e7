"""Storing several new values has the same outcome with O_TMPFILE and with renamed files."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zarrlite.buffers.pieces import LazyPiece
from zarrlite.errors import KeyRefusedError, StoreError
from zarrlite.stores import LocalStore, files, tmpfile

KEYS = [f"c/{i}/{j}" for i in range(2) for j in range(4)]
ITEMS: list[tuple[str, Any]] = [(key, key.encode() * 9) for key in KEYS]
Tree = Callable[[Path], list[str]]
needs_tmpfile = pytest.mark.skipif(not files.TMPFILE, reason="this platform has no O_TMPFILE")


@pytest.fixture(params=["tmpfile", "rename"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The way in which the test stores several new values: with O_TMPFILE, or by renaming files."""
    if request.param == "rename":
        monkeypatch.setattr(files, "TMPFILE", 0)
    elif not files.TMPFILE:
        pytest.skip("this platform has no O_TMPFILE")
    name: str = request.param
    return name


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the paths to which files are renamed."""
    paths: list[str] = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: (paths.append(new), replace(old, new)))
    return paths


def count_open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_all_values_are_stored_and_no_other_files(method: str, root: Path, tree: Tree, renamed: list[str]) -> None:
    store, before = LocalStore(root), count_open_files()
    store.set_many(list(ITEMS))
    assert {key: store.get(key) for key in store.list()} == dict(ITEMS)
    assert tree(root) == ["c/", "c/0/", *KEYS[:4], "c/1/", *KEYS[4:]]
    assert len(renamed) == (0 if method == "tmpfile" else len(KEYS))
    assert count_open_files() == before


def test_new_files_follow_the_umask(method: str, root: Path) -> None:
    old = os.umask(0o027)
    try:
        LocalStore(root).set_many(list(ITEMS))
    finally:
        os.umask(old)
    assert {(root / key).stat().st_mode & 0o777 for key in KEYS} == {0o640}


@pytest.mark.parametrize("existing", [0, 1, 6])
def test_an_existing_value_among_new_ones_is_replaced(method: str, root: Path, tree: Tree, existing: int) -> None:
    store = LocalStore(root)
    store.set(KEYS[existing], b"old")
    os.link(root / KEYS[existing], root / "other")  # a hard link, which must keep the old value
    store.set_many(list(ITEMS))
    assert [store.get(key) for key in KEYS] == [value for _, value in ITEMS]
    assert store.get("other") == b"old"
    assert len(tree(root)) == 3 + len(KEYS) + 1


def test_a_symlink_out_of_the_root_is_not_followed(method: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"untouched")
    (root / "c/0").mkdir(parents=True)
    (root / KEYS[3]).symlink_to(tmp_path / "outside")
    with pytest.raises(KeyRefusedError, match="leads out of"):
        LocalStore(root).set_many(list(ITEMS))
    assert (tmp_path / "outside").read_bytes() == b"untouched"


def test_a_full_disk_leaves_all_values_as_before(
    method: str, root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, write, before = LocalStore(root), os.write, count_open_files()
    store.set("kept", b"kept")

    def full(fd: int, data: Any) -> int:
        if bytes(data).startswith(KEYS[5].encode()):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match=rf"{KEYS[5]}.*No space left"):
        store.set_many(list(ITEMS))
    assert tree(root) == ["kept"]
    assert count_open_files() == before
    monkeypatch.undo()
    store.set_many(list(ITEMS))
    assert len(list(store.list())) == 1 + len(KEYS)


@needs_tmpfile
def test_tmpfiles_are_used_again_after_the_disk_was_full(
    root: Path, monkeypatch: pytest.MonkeyPatch, renamed: list[str]
) -> None:
    store = LocalStore(root)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: _fail(errno.ENOSPC))
        with pytest.raises(StoreError):
            store.set_many(list(ITEMS))
    store.set_many(list(ITEMS))
    assert not renamed


def _fail(code: int) -> Any:
    raise OSError(code, os.strerror(code))


@needs_tmpfile
@pytest.mark.parametrize("name", ["open", "link"])
def test_o_tmpfile_is_tried_only_once_on_a_file_system_without_it(
    root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch, renamed: list[str], name: str
) -> None:
    store, original, attempts = LocalStore(root), getattr(os, name), []

    def unsupported(path: Any, *arguments: Any, **options: Any) -> Any:
        if name == "link" or arguments[0] == files.TMPFILE:
            attempts.append(path)
            _fail(errno.EOPNOTSUPP)
        return original(path, *arguments, **options)

    (root / "c/0").mkdir(parents=True)
    monkeypatch.setattr(os, name, unsupported)
    for i in range(2):
        store.set_many([(f"{i}/{key}", value) for key, value in ITEMS])
    assert len(attempts) == 1
    assert len(renamed) == len(list(store.list())) == 2 * len(KEYS)


@needs_tmpfile
def test_an_interrupted_writer_leaves_no_files(root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    before = count_open_files()

    def interrupted(fd: int, path: str) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "link_tmpfile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        LocalStore(root).set_many(list(ITEMS))
    assert tree(root) == []
    assert count_open_files() == before


def test_a_refused_key_leaves_no_files(method: str, root: Path, tree: Tree) -> None:
    with pytest.raises(KeyRefusedError, match="is not a key"):
        LocalStore(root).set_many([*ITEMS, ("c/../../x", b"")])
    assert tree(root) == []


def test_a_value_that_cannot_be_generated_is_requested_once_and_leaves_no_files(
    method: str, root: Path, tree: Tree
) -> None:
    store, before, requests = LocalStore(root), count_open_files(), []

    class Failing(LazyPiece):
        def __iter__(self) -> Any:
            requests.append("generate")
            raise ValueError("cannot be generated")

    with pytest.raises(ValueError, match="cannot be generated"):
        store.set_many([*ITEMS, ("d/0", [Failing(np.zeros(4), [])])])
    assert (len(requests), tree(root), count_open_files()) == (1, [], before)
    store.set_many(list(ITEMS))
    assert store._root.has_tmpfile == (method == "tmpfile")


@needs_tmpfile
@pytest.mark.parametrize("count", [tmpfile.MIN_TMPFILES - 1, tmpfile.MAX_TMPFILES + 1])
def test_very_few_and_very_many_values_are_stored_by_renaming(root: Path, renamed: list[str], count: int) -> None:
    store = LocalStore(root)
    store.set_many([(f"c/{n}", b"value") for n in range(count)])
    assert len(renamed) == len(list(store.list())) == count


def test_storing_waits_for_the_holder_of_an_absent_key(method: str, root: Path) -> None:
    store, locked, done = LocalStore(root), threading.Event(), []

    def slow_update(old: Any) -> bytes:
        locked.set()
        other.join(0.2)
        assert not done
        return b"from the update"

    def store_all() -> None:
        locked.wait()
        LocalStore(root).set_many(list(ITEMS))
        done.append(True)

    other = threading.Thread(target=store_all)
    other.start()
    store.update(KEYS[2], slow_update)
    other.join()
    assert [store.get(key) for key in KEYS] == [value for _, value in ITEMS]


def test_an_update_may_store_other_values(method: str, root: Path) -> None:
    store = LocalStore(root)

    def update(old: Any) -> bytes:
        store.set_many(list(ITEMS))
        return b"last"

    store.update(KEYS[1], update)
    assert [store.get(key) for key in KEYS] == [b"last" if key == KEYS[1] else value for key, value in ITEMS]


def test_files_are_synced_before_they_get_their_names_and_directories_before_the_next_name(
    method: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, calls = LocalStore(root, fsync=True), []
    fsync, link, replace = os.fsync, os.link, os.replace

    def synced(fd: int) -> None:
        calls.append("directory" if os.path.isdir(fd) else "file")
        fsync(fd)

    store.set("c/0/kept", b"")
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", lambda *args, **options: (calls.append("name"), link(*args, **options)))
    monkeypatch.setattr(os, "replace", lambda *args: (calls.append("name"), replace(*args)))
    store.set_many(ITEMS[:4])
    assert calls == ["file"] * 4 + ["name", "directory"] * 4
