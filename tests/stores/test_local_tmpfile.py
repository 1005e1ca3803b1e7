"""Several new values are stored in files that have no name before they are whole, or by renaming, with one outcome."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zarrlite.errors import KeyRefusedError, StoreError
from zarrlite.stores import LocalStore, files, tmpfile

KEYS = [f"c/{i}/{j}" for i in range(2) for j in range(4)]
ITEMS: list[tuple[str, Any]] = [(key, key.encode() * 9) for key in KEYS]
Tree = Callable[[Path], list[str]]
needed = pytest.mark.skipif(not files.TMPFILE, reason="this platform has no files without a name")


@pytest.fixture(params=["unnamed", "renamed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to store them."""
    if request.param == "renamed":
        monkeypatch.setattr(files, "TMPFILE", 0)
    elif not files.TMPFILE:
        pytest.skip("this platform has no files without a name")
    name: str = request.param
    return name


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths to which files are renamed from now on."""
    found: list[str] = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: (found.append(new), replace(old, new)))
    return found


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_all_are_there_and_nothing_else(way: str, root: Path, tree: Tree, renamed: list[str]) -> None:
    store, before = LocalStore(root), open_files()
    store.set_many(list(ITEMS))
    assert {key: store.get(key) for key in store.list()} == dict(ITEMS)
    assert tree(root) == ["c/", "c/0/", *KEYS[:4], "c/1/", *KEYS[4:]]
    assert len(renamed) == (0 if way == "unnamed" else len(KEYS))
    assert open_files() == before


def test_they_follow_the_umask(way: str, root: Path) -> None:
    old = os.umask(0o027)
    try:
        LocalStore(root).set_many(list(ITEMS))
    finally:
        os.umask(old)
    assert {(root / key).stat().st_mode & 0o777 for key in KEYS} == {0o640}


@pytest.mark.parametrize("there", [0, 1, 6])
def test_what_is_there_is_replaced(way: str, root: Path, tree: Tree, there: int) -> None:
    store = LocalStore(root)
    store.set(KEYS[there], b"old")
    os.link(root / KEYS[there], root / "other")  # another name of the old value, which stays
    store.set_many(list(ITEMS))
    assert [store.get(key) for key in KEYS] == [value for _, value in ITEMS]
    assert store.get("other") == b"old"
    assert len(tree(root)) == 3 + len(KEYS) + 1


def test_a_symlink_is_not_followed(way: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"mine")
    (root / "c/0").mkdir(parents=True)
    (root / KEYS[3]).symlink_to(tmp_path / "outside")
    with pytest.raises(KeyRefusedError, match="leads out of"):
        LocalStore(root).set_many(list(ITEMS))
    assert (tmp_path / "outside").read_bytes() == b"mine"


def test_a_disk_that_is_full_changes_nothing(way: str, root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    store, write, before = LocalStore(root), os.write, open_files()
    store.set("kept", b"kept")

    def full(fd: int, data: Any) -> int:
        if bytes(data).startswith(KEYS[5].encode()):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match=rf"{KEYS[5]}.*No space left"):
        store.set_many(list(ITEMS))
    assert tree(root) == ["kept"]
    assert open_files() == before
    monkeypatch.undo()
    store.set_many(list(ITEMS))
    assert len(list(store.list())) == 1 + len(KEYS)


@needed
def test_a_full_disk_does_not_end_it(root: Path, monkeypatch: pytest.MonkeyPatch, renamed: list[str]) -> None:
    store = LocalStore(root)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: _fail(errno.ENOSPC))
        with pytest.raises(StoreError):
            store.set_many(list(ITEMS))
    store.set_many(list(ITEMS))
    assert not renamed


def _fail(code: int) -> Any:
    raise OSError(code, os.strerror(code))


@needed
@pytest.mark.parametrize("name", ["open", "link"])
def test_a_file_system_without_such_files_is_asked_once(
    root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch, renamed: list[str], name: str
) -> None:
    store, real, asked = LocalStore(root), getattr(os, name), []

    def unable(path: Any, *arguments: Any, **options: Any) -> Any:
        if name == "link" or arguments[0] == files.TMPFILE:
            asked.append(path)
            _fail(errno.EOPNOTSUPP)
        return real(path, *arguments, **options)

    (root / "c/0").mkdir(parents=True)
    monkeypatch.setattr(os, name, unable)
    for i in range(2):
        store.set_many([(f"{i}/{key}", value) for key, value in ITEMS])
    assert len(asked) == 1
    assert len(renamed) == len(list(store.list())) == 2 * len(KEYS)


@needed
def test_an_interrupted_writer_leaves_nothing(root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_files()

    def interrupted(fd: int, path: str) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "link_tmpfile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        LocalStore(root).set_many(list(ITEMS))
    assert tree(root) == []
    assert open_files() == before


def test_a_key_that_is_refused_leaves_nothing(way: str, root: Path, tree: Tree) -> None:
    with pytest.raises(KeyRefusedError, match="is not a key"):
        LocalStore(root).set_many([*ITEMS, ("c/../../x", b"")])
    assert tree(root) == []


@needed
@pytest.mark.parametrize("count", [tmpfile.MIN_COUNT - 1, tmpfile.MAX_COUNT + 1])
def test_few_and_many_are_renamed(root: Path, renamed: list[str], count: int) -> None:
    store = LocalStore(root)
    store.set_many([(f"c/{n}", b"value") for n in range(count)])
    assert len(renamed) == len(list(store.list())) == count


def test_who_holds_a_key_that_is_not_there_is_waited_for(way: str, root: Path) -> None:
    store, inside, done = LocalStore(root), threading.Event(), []

    def slowly(old: Any) -> bytes:
        inside.set()
        other.join(0.2)
        assert not done
        return b"from the other"

    def many() -> None:
        inside.wait()
        LocalStore(root).set_many(list(ITEMS))
        done.append(True)

    other = threading.Thread(target=many)
    other.start()
    store.update(KEYS[2], slowly)
    other.join()
    assert [store.get(key) for key in KEYS] == [value for _, value in ITEMS]


def test_who_is_inside_of_an_update_may_store_others(way: str, root: Path) -> None:
    store = LocalStore(root)

    def update(old: Any) -> bytes:
        store.set_many(list(ITEMS))
        return b"last"

    store.update(KEYS[1], update)
    assert [store.get(key) for key in KEYS] == [b"last" if key == KEYS[1] else value for key, value in ITEMS]


def test_fsync_comes_before_and_after_the_names(way: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert calls == ["file"] * 4 + ["name"] * 4 + ["directory"]
