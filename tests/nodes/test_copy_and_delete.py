"""Copying nodes, byte for byte, and removing them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nodes.states import (
    DATA,
    array,
    contents,
    group,
    hierarchy,
)

import zarrlite
from zarrlite import (
    ArgumentError,
    Array,
    Group,
    KeyRefusedError,
    LocalStore,
    MemoryStore,
    NodeExistsError,
    NodeNotFoundError,
    StoreError,
)
from zarrlite.stores import MappingStore

# Copies.


def stores(tmp_path: Path) -> dict[str, Any]:
    return {"memory": MemoryStore(), "local": LocalStore(tmp_path / "target"), "mapping": MappingStore({})}


@pytest.mark.filterwarnings("ignore:.*is skipped")
@pytest.mark.parametrize("link", ["a/c/1", "a/c", "g/zarr.json", "g"])
def test_a_copy_is_refused_if_a_symlink_leads_out_of_the_store(tmp_path: Path, link: str) -> None:
    source = zarrlite.create_group(tmp_path / "source")
    source.create_array("a", data=np.arange(4), chunks=(2,))
    source.create_group("g")
    (tmp_path / "source" / link).rename(tmp_path / "outside")
    (tmp_path / "source" / link).symlink_to(tmp_path / "outside")
    target = MemoryStore()
    with pytest.raises(KeyRefusedError, match=f"^'{link}.*' must not leave"):
        zarrlite.copy(zarrlite.open_group(tmp_path / "source"), target)
    assert target.get("zarr.json") is None


@pytest.mark.parametrize("to", ["memory", "local", "mapping"])
@pytest.mark.parametrize("origin", ["memory", "local"])
@pytest.mark.parametrize("path", ["", "deep/down"])
def test_copies_are_equal_byte_for_byte(tmp_path: Path, origin: str, to: str, path: str) -> None:
    source: Any = MemoryStore() if origin == "memory" else LocalStore(tmp_path / "source")
    for key, value in contents(hierarchy()).items():
        source.set(key, value)
    source.set("g/b/notes.txt", b"kept")
    # other implementations may format the document differently, and add members that readers may ignore
    odd = json.loads(bytes(source.get("a/zarr.json")))
    source.set("a/zarr.json", json.dumps({**odd, "odd": {"must_understand": False}}, separators=(",", ":")).encode())
    target = stores(tmp_path)[to]
    copy = zarrlite.copy(zarrlite.open_group(source, mode="r"), target, path)
    assert isinstance(copy, Group)
    assert not copy.read_only
    assert copy.path == path
    prefix = f"{path}/" if path else ""
    copied = {key[len(prefix) :]: value for key, value in contents(target).items() if key.startswith(prefix)}
    assert copied == contents(source)
    array = zarrlite.copy(zarrlite.open_array(source, path="a"), target, prefix + "again")
    assert isinstance(array, Array)
    np.testing.assert_array_equal(array[...], DATA)
    assert contents(target)[prefix + "again/zarr.json"] == source.get("a/zarr.json")


def test_copies_replace_nodes_only_on_request() -> None:
    source, target = zarrlite.open(array()), group()
    before = contents(target)
    with pytest.raises(NodeExistsError):
        zarrlite.copy(source, target)
    assert contents(target) == before
    zarrlite.copy(source, target, overwrite=True)
    assert contents(target) == contents(source.store)


@pytest.mark.parametrize("path", ["", "g", "g/h", "g/new", "new/er"])
def test_a_node_is_not_copied_onto_or_into_itself(path: str) -> None:
    store = hierarchy()
    before = contents(store)
    source = zarrlite.open_group(store, path="g" if path.startswith("g") else "", mode="r")
    with pytest.raises(ArgumentError) as caught:
        zarrlite.copy(source, store, path, overwrite=True)
    assert str(caught.value) == f"{source!r} cannot be copied onto or into itself"
    assert contents(store) == before


@pytest.mark.parametrize("path", ["", "g", "g/h"])
def test_a_copy_never_replaces_a_parent_of_its_source(path: str) -> None:
    store = hierarchy()
    before = contents(store)
    with pytest.raises(ArgumentError):
        zarrlite.copy(zarrlite.open(store, path="g/h/c", mode="r"), store, path, overwrite=True)
    assert contents(store) == before


def test_copies_onto_the_source_are_refused_through_another_store_object(tmp_path: Path) -> None:
    mapping: dict[str, bytes] = contents(array())
    before = dict(mapping)
    with pytest.raises(ArgumentError):
        zarrlite.copy(zarrlite.open(mapping), mapping, overwrite=True)
    assert mapping == before
    zarrlite.create_array(tmp_path, name="a", data=DATA)
    for place, path in ((str(tmp_path), "a"), (tmp_path / "a", "")):
        with pytest.raises(ArgumentError):
            zarrlite.copy(zarrlite.open(tmp_path, path="a"), place, path, overwrite=True)
    np.testing.assert_array_equal(zarrlite.open(tmp_path, path="a")[...], DATA)


def test_a_node_can_be_copied_to_a_path_that_starts_with_its_own_name() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, name="a", data=DATA)
    np.testing.assert_array_equal(zarrlite.copy(zarrlite.open(store, path="a"), store, "ab")[...], DATA)


class Failing(MemoryStore):
    """A store in which only a limited number of values can be stored."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def set(self, key: str, value: Any) -> None:
        if not self.room:
            raise StoreError("full")
        self.room -= 1
        super().set(key, value)


@pytest.mark.parametrize("make", [array, hierarchy], ids=lambda f: f.__name__)
def test_nodes_of_an_interrupted_copy_are_complete(make: Callable[[], MemoryStore]) -> None:
    source = make()
    for room in range(len(contents(source))):
        target = Failing(room)
        with pytest.raises(StoreError, match="full"):
            zarrlite.copy(zarrlite.open(source, mode="r"), target)
        for key in contents(target):
            path = key.removesuffix("zarr.json").rstrip("/")
            if not key.endswith("zarr.json"):
                continue
            node = zarrlite.open(target, path=path, mode="r", missing_chunks="error", use_consolidated=False)
            if isinstance(node, Array):
                np.testing.assert_array_equal(node[...], DATA)


# Removal.


@pytest.mark.parametrize("local", [False, True], ids=["memory", "local"])
def test_delete_removes_a_node_and_everything_below_it(tmp_path: Path, local: bool) -> None:
    store: Any = LocalStore(tmp_path) if local else MemoryStore()
    for key, value in contents(hierarchy()).items():
        store.set(key, value)
    zarrlite.open(store, path="g").delete()
    assert sorted(store.list()) == ["a/c/0/0", "a/zarr.json", "zarr.json"]
    node = zarrlite.open_array(store, path="a")
    node.delete()
    assert sorted(store.list()) == ["zarr.json"]
    with pytest.raises(NodeNotFoundError):
        node.attrs["x"] = 1
    assert sorted(store.list()) == ["zarr.json"]
    zarrlite.open(store).delete()
    assert list(store.list()) == []
    if local:
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("finish", ["del", "overwrite"])
def test_members_left_by_an_interrupted_removal_can_be_removed(finish: str) -> None:
    store = hierarchy()
    store.erase("g/zarr.json")
    store.set("g/notes.txt", b"kept")
    root = zarrlite.open_group(store, mode="r+")
    if finish == "del":
        del root["g"]
        with pytest.raises(NodeNotFoundError):
            del root["g"]
    else:
        assert list(root.create_group("g", overwrite=True)) == []
        store.erase("g/zarr.json")
    assert sorted(store.list()) == ["a/c/0/0", "a/zarr.json", "g/notes.txt", "zarr.json"]
