"""Nodes that were opened for reading only: every change is refused, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nodes.states import (
    assign,
    contents,
    delete,
)

import zarrlite
from zarrlite import (
    Group,
    MemoryStore,
    ReadOnlyError,
)
from zarrlite.stores import ReadOnlyStore


def store_with_everything() -> MemoryStore:
    store = MemoryStore()
    top = zarrlite.create_group(store, attributes={"k": 1})
    top.create_array("a", data=np.arange(12, dtype="i4").reshape(3, 4), attributes={"k": 1})
    top.create_array("s", data=np.zeros(3, [("x", "i4"), ("y", "f8")]))
    top.create_group("g")
    return store


WRITES: dict[str, Callable[[Group], Any]] = {
    "array[...] =": lambda g: assign(g["a"], ..., 1),
    "array[0, 0] =": lambda g: assign(g["a"], (0, 0), 1),
    "array[empty] =": lambda g: assign(g["a"], slice(0, 0), 1),
    "array[mask] =": lambda g: assign(g["a"], np.ones((3, 4), bool), 1),
    "array.oindex =": lambda g: assign(g["a"].oindex, ([0, 2], [1]), 1),
    "array.vindex =": lambda g: assign(g["a"].vindex, ([0, 2], [1, 1]), 1),
    "array.blocks =": lambda g: assign(g["a"].blocks, (0, 0), 1),
    "array[field] =": lambda g: assign(g["s"], "x", 1),
    "array.attrs[k] =": lambda g: assign(g["a"].attrs, "k", 2),
    "array.attrs.update": lambda g: g["a"].attrs.update(k=2),
    "array.attrs.put": lambda g: g["a"].attrs.put({}),
    "array.attrs.clear": lambda g: g["a"].attrs.clear(),
    "array.attrs.pop": lambda g: g["a"].attrs.pop("k"),
    "array.attrs.setdefault": lambda g: g["a"].attrs.setdefault("new", 2),
    "del array.attrs[k]": lambda g: delete(g["a"].attrs, "k"),
    "array.update_attributes": lambda g: g["a"].update_attributes({"k": 2}),
    "array.resize": lambda g: g["a"].resize((2, 2)),
    "array.resize to the same": lambda g: g["a"].resize((3, 4)),
    "array.shape =": lambda g: setattr(g["a"], "shape", (2, 2)),
    "array.append": lambda g: g["a"].append(np.zeros((1, 4))),
    "array.delete": lambda g: g["a"].delete(),
    "group.attrs[k] =": lambda g: assign(g.attrs, "k", 2),
    "group.update_attributes": lambda g: g.update_attributes({"k": 2}),
    "group[k] =": lambda g: assign(g, "new", [1]),
    "group[existing] =": lambda g: assign(g, "a", [1]),
    "del group[k]": lambda g: delete(g, "a"),
    "group.create_group": lambda g: g.create_group("new"),
    "group.create_group, overwriting": lambda g: g.create_group("g", overwrite=True),
    "group.create_array": lambda g: g.create_array("new", data=[1]),
    "group.create_array, overwriting": lambda g: g.create_array("a", data=[1], overwrite=True),
    "group.require_group": lambda g: g.require_group("new"),
    "group.require_array": lambda g: g.require_array("new", shape=1, dtype="u1"),
    "group.consolidate_metadata": lambda g: g.consolidate_metadata(),
    "group.delete": lambda g: g.delete(),
    "create_group": lambda g: zarrlite.create_group(g.store, path="new"),
    "create_array": lambda g: zarrlite.create_array(g.store, name="new", data=[1]),
    "create_array, overwriting": lambda g: zarrlite.create_array(g.store, name="a", data=[1], overwrite=True),
    "open in mode w": lambda g: zarrlite.open(g.store, mode="w"),
    "open in mode a": lambda g: zarrlite.open(g.store, path="new", mode="a"),
    "copy": lambda g: zarrlite.copy(g["a"], g.store, "new"),
    "consolidate_metadata": lambda g: zarrlite.consolidate_metadata(g.store),
}


@pytest.mark.parametrize("opened", ["mode r", "read-only store"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_change_is_refused(write: Callable[[Group], Any], opened: str) -> None:
    store = store_with_everything()
    before = contents(store)
    node = (
        zarrlite.open_group(store, mode="r")
        if opened == "mode r"
        else zarrlite.open_group(ReadOnlyStore(store), mode="r+")
    )
    with pytest.raises(ReadOnlyError):
        write(node)
    assert contents(store) == before


def test_existing_members_can_be_read_and_required() -> None:
    node = zarrlite.open_group(store_with_everything(), mode="r")
    assert node.require_group("g").read_only
    assert node.require_array("a", shape=(3, 4), dtype="i4")[2, 3] == 11
    assert node["a"].attrs["k"] == 1
