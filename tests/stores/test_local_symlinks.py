"""LocalStore and symlinks: links that stay inside the root are followed, and no key leads out of the root."""

from __future__ import annotations

import errno
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import zarrlite
from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.errors import KeyRefusedError, StoreError
from zarrlite.stores import LocalStore, paths

Tree = Callable[[Path], list[str]]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory next to the root, with a file that must not be touched."""
    outside = tmp_path / "root2"  # its name starts with that of the root
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    return outside


def links_out(root: Path, outside: Path) -> list[str]:
    """Create every kind of symlink that leads out of the root, and return keys that lead through them."""
    root.mkdir(exist_ok=True)
    (root / "d").mkdir()
    (root / "file").symlink_to(outside / "secret")
    (root / "d" / "relative").symlink_to("../../root2/secret")
    (root / "directory").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "chain").symlink_to("directory")
    (root / "d" / "chain").symlink_to("../file")
    return ["file", "d/relative", "directory/secret", "up/root2/secret", "chain/secret", "d/chain", "directory/new"]


def test_symlinks_out_of_the_root_are_refused(store: LocalStore, root: Path, outside: Path, tree: Tree) -> None:
    for key in links_out(root, outside):
        for operation in (
            lambda: store.get(key),
            lambda: store.get(key, ByteRange(1, 2)),
            lambda: store.get_partial_values([(key, ALL)]),
            lambda: store.size(key),
            lambda: store.set(key, b"x"),
            lambda: store.erase(key),
            lambda: store.update(key, lambda old: b"x"),
            lambda: store.lock(key).__enter__(),
        ):
            with pytest.raises(KeyRefusedError) as caught:
                operation()
            message = f"{key!r} must not leave {str(root)!r}, but a symlink leads out of it"
            assert str(caught.value) == f"{message}; LocalStore(..., follow_symlinks=True) follows it"
    assert tree(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"


def test_symlinks_out_of_the_root_are_listed_but_not_followed(store: LocalStore, root: Path, outside: Path) -> None:
    links_out(root, outside)
    store.set("d/k", b"")
    assert list(store.list()) == ["chain", "d/chain", "d/k", "d/relative", "directory", "file", "up"]
    assert list(store.list_prefix("d/")) == ["d/chain", "d/k", "d/relative"]
    assert store.list_dir("") == (["file"], ["chain/", "d/", "directory/", "up/"])
    for key in store.list():
        if key != "d/k":
            with pytest.raises(KeyRefusedError):
                store.get(key)
    for prefix in ("directory/", "chain/", "up/root2/"):
        with pytest.raises(KeyRefusedError):
            list(store.list_prefix(prefix))
        with pytest.raises(KeyRefusedError):
            store.list_dir(prefix)


def test_erase_prefix_unlinks_symlinks_and_never_follows_them(
    store: LocalStore, root: Path, outside: Path, tree: Tree
) -> None:
    links_out(root, outside)
    with pytest.raises(KeyRefusedError):
        store.erase_prefix("up/root2/")
    store.erase_prefix("directory/")
    assert not (root / "directory").is_symlink()
    store.erase_prefix("")
    assert tree(root) == []
    assert tree(outside) == ["secret"]


def test_symlinks_inside_the_root_are_followed(store: LocalStore, root: Path) -> None:
    store.set_many([("real/k", b"0123"), ("a", b"x")])
    (root / "link").symlink_to("real")
    (root / "again").symlink_to(root / "link")
    (root / "a2").symlink_to("a")
    assert list(store.list()) == ["a", "a2", "again/k", "link/k", "real/k"]
    assert store.list_dir("") == (["a", "a2"], ["again/", "link/", "real/"])
    assert store.get("again/k", ByteRange(-2)) == b"23"
    assert (store.get("a2"), store.size("a2"), store.size("link/k")) == (b"x", 1, 4)
    store.update("link/k", lambda old: bytes(old or b"") + b"!")
    assert store.get("real/k") == b"0123!"
    store.erase("link")
    assert (root / "link").is_symlink()


def test_set_replaces_and_erase_removes_a_symlink_rather_than_its_target(store: LocalStore, root: Path) -> None:
    store.set("target", b"old")
    for name in ("set", "erased"):
        (root / name).symlink_to("target")
    with store.lock("set"), store.lock("target"):  # two keys that lead to the same file
        store.set("set", b"new")
    store.erase("erased")
    assert not (root / "set").is_symlink()
    assert {key: store.get(key) for key in store.list()} == {"set": b"new", "target": b"old"}


@pytest.mark.parametrize("target", ["nowhere", "/nowhere/at/all", "link"])
def test_a_dangling_symlink_is_missing(store: LocalStore, root: Path, target: str, tree: Tree) -> None:
    root.mkdir()
    (root / "link").symlink_to(target)
    assert store.get("link") is store.size("link") is None
    assert list(store.list()) == []
    store.set("link", b"1")
    assert store.get("link") == b"1"
    (root / "erased").symlink_to(target)
    store.erase("erased")
    assert tree(root) == ["link"]


def test_a_directory_that_is_a_dangling_symlink_is_missing(store: LocalStore, root: Path, outside: Path) -> None:
    root.mkdir()
    (root / "link").symlink_to("nowhere")
    assert store.get("link/k") is None
    assert list(store.list_prefix("link/")) == []
    for write in (lambda: store.set("link/k", b""), lambda: store.update("link/k", lambda old: b"")):
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.errno == errno.ENOENT
    (root / "nowhere").symlink_to(outside)  # the check of the missing directory must not have been cached
    with pytest.raises(KeyRefusedError):
        store.get("link/secret")


def test_a_pruned_directory_is_checked_again(store: LocalStore, root: Path, outside: Path) -> None:
    for erase in (lambda: store.erase("a/b/k"), lambda: store.erase_prefix("a/b/")):
        store.set("a/b/k", b"")
        assert store.get("a/b/k") == b""
        erase()
        (root / "a").symlink_to(outside)
        with pytest.raises(KeyRefusedError):
            store.get("a/b/k")
        with pytest.raises(KeyRefusedError):
            store.get("a/secret")
        (root / "a").unlink()


def test_symlink_cycles_are_listed_once(store: LocalStore, root: Path) -> None:
    store.set_many([("a/k", b""), ("b/k", b"")])
    (root / "a" / "self").symlink_to(".")
    (root / "a" / "root").symlink_to("..")
    (root / "a" / "b").symlink_to("../b")
    (root / "b" / "a").symlink_to("../a")
    assert list(store.list()) == ["a/b/k", "a/k", "b/a/k", "b/k"]
    assert store.list_dir("a/") == (["a/k"], ["a/b/"])


def test_the_root_may_be_a_symlink(tmp_path: Path, tree: Tree) -> None:
    (tmp_path / "root").symlink_to("real")
    (tmp_path / "real").mkdir()
    store = LocalStore(tmp_path / "root")
    store.set("a/k", b"1")
    (tmp_path / "real" / "link").symlink_to("a")
    assert {key: store.get(key) for key in store.list()} == {"a/k": b"1", "link/k": b"1"}
    store.erase_prefix("")
    assert (tmp_path / "root").is_symlink()
    assert tree(tmp_path / "real") == []


def test_the_number_of_remembered_directories_is_bounded(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_MAX_CHECKED", 5)
    store.set_many((f"{n}/k", b"") for n in range(20))
    assert [store.get(key) for key in store.list()] == [b""] * 20
    assert len(store._root._checked) <= 5
    assert pickle.loads(pickle.dumps(store))._root._checked == {""}


# follow_symlinks=True, which the working trees of git-annex, DataLad and DVC require


def following(root: Path) -> LocalStore:
    return LocalStore(root, follow_symlinks=True)


def test_links_out_of_the_root_are_followed_on_request(root: Path, outside: Path) -> None:
    keys = [key for key in links_out(root, outside) if not key.endswith("new")]
    store = following(root)
    for key in keys:
        assert store.get(key) == b"secret"
        assert store.get(key, ByteRange(1, 3)) == b"ec"
        assert store.get_partial_values([(key, ByteRange(2, 4)), (key, ALL)]) == [b"cr", b"secret"]
        assert store.size(key) == 6
        assert store.source(key).read([ALL]) == [b"secret"]
    assert store.get("directory/new") is None


def test_followed_links_are_listed_once_each_without_cycles(root: Path, outside: Path) -> None:
    root.mkdir()
    (root / "directory").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    (outside / "back").symlink_to(root)
    (outside / "self").symlink_to(outside)
    (outside / "dangling").symlink_to(outside / "nothing")
    store = following(root)
    assert list(store.list()) == ["directory/secret", "file"]
    assert store.list_dir("") == (["file"], ["directory/"])


def test_writing_through_a_followed_link_replaces_the_link_and_not_its_target(root: Path, outside: Path) -> None:
    root.mkdir()
    (root / "file").symlink_to(outside / "secret")
    store = following(root)
    store.set("file", b"new")
    assert (store.get("file"), (outside / "secret").read_bytes()) == (b"new", b"secret")
    (root / "other").symlink_to(outside / "secret")
    store.erase("other")
    assert (outside / "secret").read_bytes() == b"secret"
    (root / "directory").symlink_to(outside)
    store.erase_prefix("directory/")
    assert list(store.list()) == ["file"]
    assert (outside / "secret").read_bytes() == b"secret"


def test_writing_into_a_followed_directory_writes_to_its_target(root: Path, outside: Path) -> None:
    root.mkdir()
    (root / "directory").symlink_to(outside)
    following(root).set("directory/new", b"value")
    assert (outside / "new").read_bytes() == b"value"


def test_a_pickled_store_still_follows_symlinks(root: Path, outside: Path) -> None:
    root.mkdir()
    (root / "file").symlink_to(outside / "secret")
    assert pickle.loads(pickle.dumps(following(root))).get("file") == b"secret"


def test_an_array_of_a_git_annex_tree_is_read(root: Path, tmp_path: Path) -> None:
    array = zarrlite.create_array(root, data=[1, 2, 3, 4], chunks=2, attributes={"a": 1})
    objects = tmp_path / "annex"
    objects.mkdir()
    for number, key in enumerate([*array.store.list()]):
        (root / key).rename(objects / str(number))
        (root / key).symlink_to(objects / str(number))
    with pytest.raises(KeyRefusedError):
        zarrlite.open_array(root, mode="r")
    opened = zarrlite.open_array(following(root), mode="r")
    assert opened[...].tolist() == [1, 2, 3, 4]
    assert opened[3] == 4
