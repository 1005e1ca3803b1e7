"""A killed writer leaves the old node, the new node, or no node; never a mixture, and nothing that reappears later."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nodes.cuts import Cut, SortedStore, State, look, run_in_memory, run_on_disk

import zarrlite
from zarrlite import NodeExistsError, NodeNotFoundError
from zarrlite.storage_transformers import ConcatParts, Part
from zarrlite.stores import Store

OLD = list(range(1, 9))
NEW = list(range(11, 19))
FILL = [0] * 8
DOTS: dict[str, Any] = {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}}
PARTS: dict[str, Any] = {"storage_transformers": [ConcatParts([Part(""), Part(".tail", 2)])]}


def create(store: Store, path: str = "a", values: Any = OLD, version: int = 1, **more: Any) -> Any:
    """Create an array of two chunks and part of a third. If `values` is None, no chunks are stored."""
    more = {"compressors": None, "chunks": 3, "attributes": {"version": version}, **more}
    array = zarrlite.create_array(store, name=path, shape=8, dtype="u1", **more)
    if values is not None:
        array[...] = values
    return array


def tree(store: Store) -> None:
    """Create a hierarchy with three arrays, one of which has chunk keys without slashes."""
    zarrlite.create_group(store, attributes={"version": 1})
    create(store)
    create(store, "g/dots", **DOTS)
    create(store, "g/h/deep")


def consolidated(store: Store) -> None:
    tree(store)
    zarrlite.consolidate_metadata(store)
    zarrlite.consolidate_metadata(store, "g")


def leftovers(store: Store, **more: Any) -> None:
    """Store the chunks of an array without its document, as if its removal had been interrupted."""
    create(store, **more)
    store.erase("a/zarr.json")


def delete(store: Store, path: str) -> None:
    """Remove a node with `del` on the root group, which also removes members left by an interrupted removal."""
    with contextlib.suppress(NodeNotFoundError):
        del zarrlite.open_group(store, mode="r+")[path]


def delete_root(store: Store) -> None:
    with contextlib.suppress(NodeNotFoundError):
        zarrlite.open_group(store, mode="r+").delete()
        return
    zarrlite.create_group(store, overwrite=True).delete()


def copy(store: Store, source: str, target: str) -> None:
    zarrlite.copy(zarrlite.open(store, path=source, mode="r"), store, target, overwrite=True)


def resize(store: Store, shape: int) -> None:
    zarrlite.open_array(store, path="a", mode="r+").resize(shape)


Operation = Callable[[Store], object]
# an initial state, and an operation; after a cut, each node is old, absent, or new, and running the operation again
# completes it
CHANGES: dict[str, tuple[Operation, Operation]] = {
    "create": (lambda store: None, partial(create, overwrite=True, version=2, values=NEW)),
    "create deep below": (tree, partial(create, path="x/y/z", overwrite=True, version=2, values=NEW)),
    "create over leftovers": (leftovers, partial(create, values=None, overwrite=True)),
    "create over leftovers, dots": (partial(leftovers, **DOTS), partial(create, values=None, overwrite=True, **DOTS)),
    "create over leftovers in parts": (
        partial(leftovers, **PARTS), partial(create, values=None, overwrite=True, **PARTS),
    ),
    "overwrite": (create, partial(create, overwrite=True, version=2, values=NEW)),
    "overwrite, dots": (partial(create, **DOTS), partial(create, overwrite=True, version=2, values=None, **DOTS)),
    "overwrite a group": (tree, partial(create, path="g", overwrite=True, version=2, values=NEW)),
    "overwrite a group by a group": (tree, lambda store: zarrlite.create_group(store, path="g", overwrite=True)),
    "delete": (tree, partial(delete, path="a")),
    "delete, dots": (tree, partial(delete, path="g/dots")),
    "delete a group": (tree, partial(delete, path="g")),
    "delete the root": (tree, delete_root),
    "copy": (tree, partial(copy, source="g", target="x")),
    "copy over an array": (tree, partial(copy, source="g", target="a")),
    "attributes": (tree, lambda store: zarrlite.open(store, path="g/dots").attrs.update(version=2)),
    "consolidate": (tree, zarrlite.consolidate_metadata),
    "consolidate again": (consolidated, zarrlite.consolidate_metadata),
    "consolidated, attributes": (
        consolidated, lambda store: zarrlite.open(store, path="g/h/deep").attrs.update(version=2),
    ),
    "consolidated, create": (consolidated, partial(create, path="g/new/b", overwrite=True, version=2, values=NEW)),
    "consolidated, overwrite": (consolidated, partial(create, path="g", overwrite=True, version=2, values=NEW)),
    "consolidated, delete": (consolidated, partial(delete, path="g")),
    "consolidated, copy": (consolidated, partial(copy, source="g/h", target="g/x")),
    "consolidated, resize": (consolidated, lambda store: zarrlite.open_array(store, path="g/dots").resize(2)),
}  # fmt: skip


def reference(prepare: Operation, operate: Operation) -> tuple[State, State]:
    states: list[State] = []
    run_in_memory(prepare, lambda store: None, lambda store: states.append(look(store)))
    run_in_memory(
        lambda store: (prepare(store), operate(store)), lambda store: None, lambda store: states.append(look(store))
    )
    return states[0], states[1]


def judge(old: State, new: State, operate: Operation, store: Store) -> None:
    """Check that each node is in its old or new state, or absent; then complete the operation."""
    found = look(store)
    for path, seen in found.items():
        if seen == old.get(path):
            continue
        assert path in new, f"{path!r} is {seen}, not {old.get(path)}"
        after = new[path]
        assert seen.attributes == after.attributes, f"{path!r} is {seen}, neither {old.get(path)} nor {after}"
        if after.values is not None:  # an array's document is stored before its values
            allowed = [{value, 0} if path not in old or after != old[path] else {value} for value in after.values]
            assert len(seen.values) == len(allowed), f"{path!r} has {seen.values}"
            wrong = [value for value, choice in zip(seen.values, allowed, strict=True) if value not in choice]
            assert not wrong, f"{path!r} has {seen.values}, neither {old.get(path)} nor {after}"
    for path in [path for path in found if path in old and path not in new and old[path].values is None]:
        missing = [name for name in old if name.startswith(f"{path}/".lstrip("/")) and name not in found]
        assert not missing, f"the group {path!r} is still there, but its members {missing} are gone"
    operate(store)
    assert look(store) == new, "the operation cannot be completed"


@pytest.mark.parametrize("name", CHANGES)
def test_nodes_are_old_or_new_or_absent_wherever_the_writer_dies(name: str) -> None:
    prepare, operate = CHANGES[name]
    old, new = reference(prepare, operate)
    assert run_in_memory(prepare, operate, partial(judge, old, new, operate))


@pytest.mark.parametrize("name", CHANGES)
def test_nodes_on_a_disk_are_old_or_new_or_absent_after_every_kill(name: str, tmp_path: Path) -> None:
    prepare, operate = CHANGES[name]
    old, new = reference(prepare, operate)
    assert run_on_disk(prepare, operate, partial(judge, old, new, operate), tmp_path)


# A group created where the removal of a group was interrupted must not contain members of the old group.
REMOVALS: dict[str, Operation] = {
    "delete": partial(delete, path="g"),
    "overwrite": lambda store: zarrlite.create_group(store, path="g", overwrite=True),
    "copy over": partial(copy, source="a", target="g"),
}
CREATIONS: dict[str, Callable[[Store], object]] = {
    "a group": lambda store: zarrlite.create_group(store, path="g"),
    "a group, with overwrite": lambda store: zarrlite.create_group(store, path="g", overwrite=True),
    "a group, mode a": lambda store: zarrlite.open_group(store, path="g", mode="a"),
    "a group below": lambda store: zarrlite.create_group(store, path="g/h/new"),
    "an array below": partial(create, path="g/h/new"),
    "a copy": lambda store: zarrlite.copy(zarrlite.open(store, path="a", mode="r"), store, "g/h/new"),
    "an array": partial(create, path="g"),
}


def judge_created(creation: Operation, store: Store) -> None:
    """Create a node where a group was removed, and check that no members of that group reappear."""
    if store.size("g/zarr.json") is not None:
        return
    before = look(store)
    creation(store)
    found = look(store)
    assert {path for path in before if not path.startswith("g/")} <= found.keys()
    revived = [path for path in found if path.startswith("g/") and path not in ("g/h", "g/h/new")]
    assert not revived
    assert "__zarrlite.removal" not in " ".join(store.list())
    zarrlite.open_group(store, mode="r+").create_group("other")  # the parent group can still be changed


@pytest.mark.parametrize("prepare", [tree, consolidated])
@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("creation", CREATIONS)
def test_members_of_a_killed_removal_never_reappear(prepare: Operation, removal: str, creation: str) -> None:
    assert run_in_memory(prepare, REMOVALS[removal], partial(judge_created, CREATIONS[creation]))


@pytest.mark.parametrize("creation", CREATIONS)
def test_members_of_a_killed_removal_on_a_disk_never_reappear(creation: str, tmp_path: Path) -> None:
    assert run_on_disk(tree, REMOVALS["delete"], partial(judge_created, CREATIONS[creation]), tmp_path)


def interrupted(store: Store) -> None:
    """Interrupt a removal of the group `g` after its own document and that of `g/dots` have been erased."""
    tree(store)
    removing = SortedStore(store.values, 3)  # type: ignore[attr-defined]
    with contextlib.suppress(Cut):
        delete(removing, "g")
    assert "g/dots/zarr.json" not in [*store.list()]
    assert "g/h/deep/zarr.json" in [*store.list()]


@pytest.mark.parametrize("finish", [partial(delete, path="g"), CREATIONS["a group"]])
def test_a_removal_is_completed_under_a_consolidated_group(finish: Operation) -> None:
    whole = SortedStore({})
    consolidated(whole)
    store = SortedStore({})
    interrupted(store)
    store.set("zarr.json", whole.values["zarr.json"])  # as if another program had stored it
    finish(store)
    assert [path for path in look(store) if path.startswith("g/")] == []


def test_completing_a_removal_keeps_nodes_that_another_program_created_since() -> None:
    store = SortedStore({})
    interrupted(store)
    other = SortedStore({})
    create(other)
    for key in ("zarr.json", "c/0", "c/1", "c/2"):  # without documents for the parent groups
        store.set(f"g/h/x/{key}", other.values[f"a/{key}"])
    assert list(zarrlite.create_group(store, path="g")) == []
    assert [path for path in look(store) if path.startswith("g/")] == ["g/h/x"]
    assert look(store)["g/h/x"].values == OLD
    zarrlite.create_group(store, path="g/h")
    assert sorted(zarrlite.open_group(store, path="g/h")) == ["x"]


def test_a_list_of_removed_nodes_is_ignored_next_to_a_document() -> None:
    store = SortedStore({})
    tree(store)
    with contextlib.suppress(Cut):
        delete(SortedStore(store.values, 1), "g")
    assert "g/__zarrlite.removal" in [*store.list()]
    before = look(store)
    create(store, "g/new")
    assert look(store).keys() - before.keys() == {"g/new"}
    delete(store, "g")
    assert not [key for key in store.list() if key.startswith("g/")]


@pytest.mark.parametrize("text", [b"", b"{}", b'{"documents": ["c/0"]}', b'{"documents": [1]}'])
def test_a_damaged_list_of_removed_nodes_is_an_error_that_names_it(text: bytes) -> None:
    store = SortedStore({})
    interrupted(store)
    store.set("g/__zarrlite.removal", text)
    with pytest.raises(NodeExistsError) as caught:
        zarrlite.create_group(store, path="g")
    assert str(caught.value) == (
        f"the removal of 'g' was interrupted, and 'g/__zarrlite.removal' in {store!r} is damaged; erase that key"
    )


# Resizing: the array continues to exist, and keeps all values that are inside both its old and its new shape.


LAYOUTS: dict[str, dict[str, Any]] = {"chunks": {}, "dots": DOTS, "shards": {"shards": 6}}
shapes = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def judge_shrunk(store: Store) -> None:
    """Check that the array has its old shape and values, or the new shape, and that no removed value reappears."""
    array = zarrlite.open_array(store, path="a", mode="r+")
    assert array[...].tolist() == OLD[: array.shape[0]]
    assert array.shape[0] in (2, 8)
    expected = array[...].tolist()
    for length in (5, 8, 12):
        other = zarrlite.open_array(store, path="a", mode="r+")
        if length > other.shape[0]:
            other.append(np.full(length - other.shape[0] - 1, 7)) if length == 5 else None
            expected += [7] * (length - len(expected) - 1) if length == 5 else []
            other.resize(length)
            expected += [0] * (length - len(expected))
            assert other[...].tolist() == expected


@shapes
@pytest.mark.parametrize("place", ["memory", "disk"])
def test_values_cut_by_a_killed_resize_never_reappear(layout: dict[str, Any], place: str, tmp_path: Path) -> None:
    arguments: Any = (partial(create, **layout), partial(resize, shape=2), judge_shrunk)
    assert run_in_memory(*arguments) if place == "memory" else run_on_disk(*arguments, tmp_path)


@shapes
@pytest.mark.parametrize("place", ["memory", "disk"])
def test_a_killed_append_keeps_the_existing_values(layout: dict[str, Any], place: str, tmp_path: Path) -> None:
    def append(store: Store) -> None:
        zarrlite.open_array(store, path="a", mode="r+").append([21, 22, 23, 24])

    def judge_appended(store: Store) -> None:
        found = zarrlite.open_array(store, path="a", mode="r")[...].tolist()
        assert found[:8] == OLD
        assert len(found) in (8, 12)
        assert all(value in (0, 21 + i) for i, value in enumerate(found[8:]))

    arguments: Any = (partial(create, **layout), append, judge_appended)
    assert run_in_memory(*arguments) if place == "memory" else run_on_disk(*arguments, tmp_path)
