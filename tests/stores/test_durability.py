"""With fsync=True, everything that an operation has done survives a power cut, and changes become durable in order.

The model of a power cut is strict: each creation, replacement or removal of a name since the last sync of its directory
may be lost, independently of the others. Other tests show that values are synced before they get a name.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stores.test_local_processes import exit_status, fork
from zarrlite.errors import StoreError
from zarrlite.stores import LocalStore

Names = dict[str, str | None]  # path -> content of the file, None if there is no file
KEYS = ["a/b/index", "a/b/main", "a/c", "d"]


class Disk:
    """The names on a disk, and the changes to them that are not durable yet."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root = str(root)
        self.durable: Names = {}
        self.pending: list[tuple[str, str | None]] = []
        self.states: list[dict[str, str]] = []  # all sets of values that a power cut could have left
        originals = {name: getattr(os, name) for name in ("replace", "link", "unlink", "mkdir", "rmdir", "fsync")}

        def replace(old: str, new: str) -> None:
            value = Path(old).read_text()
            originals["replace"](old, new)
            self.change(new, value)

        def link(old: str, new: str, **options: object) -> None:
            value = Path(old).read_text()
            originals["link"](old, new, **options)
            self.change(new, value)

        def fsync(fd: int) -> None:
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                directory = os.readlink(f"/proc/self/fd/{fd}")
                for change in [change for change in self.pending if os.path.dirname(change[0]) == directory]:
                    self.pending.remove(change)
                    self.durable[change[0]] = change[1]
                self.cut()

        monkeypatch.setattr(os, "replace", replace)
        monkeypatch.setattr(os, "link", link)
        monkeypatch.setattr(os, "fsync", fsync)
        for name, value in (("unlink", None), ("rmdir", None), ("mkdir", "")):
            monkeypatch.setattr(os, name, self.recording(originals[name], value))

    def recording(self, original: Callable[..., None], value: str | None) -> Callable[..., None]:
        def call(path: str, *arguments: object) -> None:
            original(path, *arguments)
            if "__zarrlite" not in path:
                self.change(path, value)

        return call

    def change(self, path: str, value: str | None) -> None:
        self.pending.append((path, value))
        self.cut()

    def cut(self) -> None:
        """Record all states that a power cut could leave at this moment."""
        for chosen in itertools.product((False, True), repeat=len(self.pending)):
            names = {**self.durable}
            for (path, value), survives in zip(self.pending, chosen, strict=True):
                if survives:
                    names[path] = value
            self.states.append({key: value for key in KEYS if (value := self.value(names, key)) is not None})

    def value(self, names: Names, key: str) -> str | None:
        parents = [os.path.join(self.root, *key.split("/")[:n]) for n in range(1, key.count("/") + 1)]
        return None if None in [names.get(parent) for parent in parents] else names.get(os.path.join(self.root, key))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, root: Path) -> Disk:
    root.mkdir()
    return Disk(monkeypatch, root)


@pytest.mark.parametrize("keys", [KEYS[:2], KEYS], ids=["renamed", "without a name until they are complete"])
@pytest.mark.parametrize("exists", [False, True])
def test_values_of_one_call_become_durable_in_order(root: Path, disk: Disk, keys: list[str], exists: bool) -> None:
    store = LocalStore(root, fsync=True)
    old = dict.fromkeys(keys, "old") if exists else {}
    store.set_many([(key, value.encode()) for key, value in old.items()])
    assert disk.states == [] or disk.states[-1] == old
    disk.states.clear()
    store.set_many([(key, b"new") for key in keys])
    allowed = [{**old, **dict.fromkeys(keys[:n], "new")} for n in range(len(keys) + 1)]
    assert [state for state in disk.states if state not in allowed] == []
    disk.states.clear()
    disk.cut()
    assert disk.states == [dict.fromkeys(keys, "new")]


@pytest.mark.parametrize(
    ("erase", "left"),
    [
        (lambda store: store.erase("a/b/main"), ["a/b/index", "a/c", "d"]),
        (lambda store: (store.erase("a/b/main"), store.erase("a/b/index")), ["a/c", "d"]),
        (lambda store: store.erase_values(KEYS), []),
        (lambda store: store.update("a/c", lambda old: None), ["a/b/index", "a/b/main", "d"]),
        (lambda store: store.change([("d", b"old"), ("a/c", None)]), ["a/b/index", "a/b/main", "d"]),
        (lambda store: store.erase_prefix("a/b/"), ["a/c", "d"]),
        (lambda store: store.erase_prefix("a/"), ["d"]),
        (lambda store: store.erase_prefix(""), []),
    ],
)
def test_erasures_survive_a_power_cut(
    root: Path, disk: Disk, erase: Callable[[LocalStore], object], left: list[str]
) -> None:
    store = LocalStore(root, fsync=True)
    store.set_many([(key, b"old") for key in KEYS])
    erase(store)
    disk.states.clear()
    disk.cut()
    assert [state for state in disk.states if state != dict.fromkeys(left, "old")] == []


# Failures


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda store: store.set("a/k", b"new"), "'a/k' cannot be written: Input/output error"),
        (lambda store: store.update("a/k", lambda old: b"new"), "'a/k' cannot be written: Input/output error"),
        (lambda store: store.erase("a/k"), "'a/k' cannot be erased: Input/output error"),
        (lambda store: store.erase_prefix("a/"), "'a/' cannot be erased: Input/output error"),
    ],
)
def test_a_directory_that_cannot_be_synced_is_a_store_error(
    root: Path, monkeypatch: pytest.MonkeyPatch, operation: Callable[[LocalStore], object], message: str
) -> None:
    def fail(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    store = LocalStore(root, fsync=True)
    store.set("a/k", b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError) as caught:
        operation(store)
    assert str(caught.value) == message


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become an ordinary user")
def test_erasing_in_a_directory_without_search_permission_is_an_error() -> None:
    """`erase` must not mistake an inaccessible file for a missing one."""
    with tempfile.TemporaryDirectory() as directory:
        store = LocalStore(directory)
        store.set("a/k", b"1")
        os.chmod(directory, 0o777)
        os.chmod(f"{directory}/a", 0o600)

        def erase() -> None:
            os.setuid(65534)
            with pytest.raises(StoreError, match=r"^'a/k' cannot be (erased|written): Permission denied$"):
                store.erase("a/k")
            with pytest.raises(StoreError, match=r"^'a/k' cannot be (erased|written|locked): Permission denied$"):
                store.update("a/k", lambda old: None)

        assert exit_status(fork(erase)) == 0
        os.chmod(f"{directory}/a", 0o700)
        assert store.get("a/k") == b"1"
