"""Failures of LocalStore: the old value stays, and the error names the key and the reason."""

from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from zarrlite import threads
from zarrlite.errors import ArgumentError, KeyRefusedError, ReadOnlyError, StoreError
from zarrlite.stores import LocalStore

Tree = Callable[[Path], list[str]]


@pytest.mark.parametrize(
    ("key", "number", "reason"),
    [
        ("a/b", errno.ENOTDIR, "one of its parents is a stored value"),
        ("a/b/c", errno.ENOTDIR, "one of its parents is a stored value"),
        ("d", errno.EISDIR, "it is a prefix of other keys"),
        ("x" * 256, errno.ENAMETOOLONG, "its path, or a name in it, is too long for the file system"),
        (f"{'x' * 256}/k", errno.ENAMETOOLONG, "its path, or a name in it, is too long for the file system"),
    ],
)
def test_a_key_that_cannot_be_written_is_an_error_with_the_reason(
    store: LocalStore, root: Path, key: str, number: int, reason: str, tree: Tree
) -> None:
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
def test_keys_too_long_to_be_stored_are_missing(store: LocalStore, key: str) -> None:
    store.set("d/k", b"")
    assert store.get(key) is None
    assert store.size(key) is None
    store.erase(key)
    with pytest.raises(StoreError) as caught:
        store.set(key, b"")
    assert str(caught.value) == f"{key!r} cannot be written: its path, or a name in it, is too long for the file system"
    assert list(store.list()) == ["d/k"]


def test_lone_surrogates_are_refused(store: LocalStore) -> None:
    for key in ("\ud800", "a/\udcff"):
        for operation in (lambda: store.get(key), lambda: store.set(key, b""), lambda: store.list_dir(f"{key}/")):
            with pytest.raises(KeyRefusedError, match="must not contain lone surrogates: file names are UTF-8"):
                operation()


def fail_with(number: int) -> Callable[..., NoReturn]:
    def fail(*args: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("name", ["write", "fsync", "replace", "close"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_failed_set_leaves_the_old_value(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: int, tree: Tree
) -> None:
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


@pytest.mark.parametrize("enough", [True, False])
def test_a_write_to_a_full_disk_is_retried_after_the_deferred_closing_of_files(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch, tree: Tree, enough: bool
) -> None:
    closed: list[object] = []
    write = os.write

    def full(fd: int, value: object) -> int:
        if not (closed and enough):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, value)  # type: ignore[arg-type]

    store.set("a/k", b"old")
    monkeypatch.setattr(threads, "_deferred", [])
    threads.run_later(closed.append, "a large file that was replaced")
    monkeypatch.setattr(os, "write", full)
    if enough:
        store.set("a/k", b"new")
    else:
        with pytest.raises(StoreError, match="No space left"):
            store.set("a/k", b"new")
    assert closed
    assert store.get("a/k") == (b"new" if enough else b"old")
    assert tree(root) == ["a/", "a/k"]


def test_an_interrupted_set_leaves_the_old_value(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch, tree: Tree
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
    store.set("a/k", b"2")  # the key is no longer locked


def test_an_error_of_an_update_function_is_raised_unchanged(store: LocalStore) -> None:
    def fail(_: object) -> None:
        raise FileNotFoundError("from the function")

    with pytest.raises(FileNotFoundError, match=r"^from the function$"):
        store.update("a/b", fail)


@pytest.mark.parametrize("root", ["", "a\0b"])
def test_a_root_that_is_not_a_path_is_refused(root: str) -> None:
    with pytest.raises(ArgumentError, match="is not the path of a directory"):
        LocalStore(root)


def test_a_read_only_store_refuses_every_write(root: Path, tree: Tree) -> None:
    LocalStore(root).set("a/k", b"1")
    store = LocalStore(root, read_only=True)
    for write in (
        lambda: store.set("a/k", b""),
        lambda: store.set_many([("a/k", b"")]),
        lambda: store.set_partial_values([("a/k", 0, b"")]),
        lambda: store.erase("a/k"),
        lambda: store.erase_values(["a/k"]),
        lambda: store.erase_prefix("a/"),
        lambda: store.update("a/k", lambda old: pytest.fail("must not be called")),
    ):
        with pytest.raises(ReadOnlyError) as caught:
            write()
        assert str(caught.value) == f"LocalStore({str(root)!r}) was opened for reading only"
    with store.lock("none/k"):
        assert store.get("a/k") == b"1"
    assert tree(root) == ["a/", "a/k"]
