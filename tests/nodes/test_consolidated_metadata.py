"""Consolidated metadata: how it is written, when it is used, and when it is removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nodes.states import (
    DATA,
    GROUP,
    array,
    contents,
    group,
    hierarchy,
    nothing,
)

import zarrlite
from zarrlite import (
    ArgumentError,
    Group,
    MemoryStore,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
)


class Counting(MemoryStore):
    """A store that records the keys that are read."""

    def __init__(self, values: Any = None) -> None:
        super().__init__(values)
        self.reads: list[str] = []

    def get(self, key: str, *args: Any) -> Any:
        self.reads.append(key)
        return super().get(key, *args)


def test_the_document_of_the_root_contains_those_of_all_nodes_below() -> None:
    store = hierarchy()
    document = json.loads(bytes(store.get("zarr.json") or b""))
    assert document["attributes"] == {"top": 1}
    consolidated = document["consolidated_metadata"]
    assert {**consolidated, "metadata": None} == {"kind": "inline", "must_understand": False, "metadata": None}
    assert sorted(consolidated["metadata"]) == ["a", "g", "g/b", "g/h", "g/h/c"]
    for path, content in consolidated["metadata"].items():
        assert content == json.loads(bytes(store.get(f"{path}/zarr.json") or b""))


@pytest.mark.parametrize(("use", "consolidated"), [(None, True), (True, True), (False, False)])
def test_readers_find_members_without_reading_their_documents(use: bool | None, consolidated: bool) -> None:
    store = Counting(contents(hierarchy()))
    top = zarrlite.open_group(store, mode="r", use_consolidated=use)
    store.reads.clear()
    assert [path for path, _ in top.members(None)] == ["a", "g", "g/b", "g/h", "g/h/c"]
    assert "g/h/c" in top
    assert "nope" not in top
    assert top["g"]["h"]["c"].path == "g/h/c"
    assert len(top["g"]) == 2
    with pytest.raises(KeyError):
        top["nope"]
    assert (store.reads == []) == consolidated
    np.testing.assert_array_equal(top["g/h/c"][...], DATA)


def test_writers_ignore_consolidated_metadata() -> None:
    store = hierarchy()
    writer = zarrlite.open_group(store, mode="r+")
    writer["a"].attrs["n"] = 2
    writer["g/b"].resize((4, 3))
    del writer["g/h"]
    writer.create_array("new", data=DATA)
    again = zarrlite.open_group(store, mode="r+")
    assert again["a"].attrs["n"] == 2
    assert again["g/b"].shape == (4, 3)
    assert [path for path, _ in again.members(None)] == ["a", "g", "g/b", "new"]


def test_a_change_below_removes_consolidated_metadata_until_the_next_call() -> None:
    changes: list[Callable[[Group], Any]] = [
        lambda top: top["a"].attrs.update(n=2),
        lambda top: top["a"].resize((1, 1)),
        lambda top: top.__delitem__("g"),
        lambda top: top.create_array("g/new", data=[1]),
        lambda top: top.create_array("a", data=[1.5], overwrite=True),
    ]
    for change in changes:
        store = hierarchy()
        assert zarrlite.open_group(store, mode="r").metadata.consolidated is not None
        change(zarrlite.open_group(store, mode="r+"))
        reader = zarrlite.open_group(store, mode="r")
        assert reader.metadata.consolidated is None
        listed = {path: node.metadata.to_json() for path, node in reader.members(None)}
        assert not zarrlite.consolidate_metadata(store).read_only
        again = zarrlite.open_group(store, mode="r", use_consolidated=True)
        consolidated = {path: node.metadata.to_json() for path, node in again.members(None)}
        for document in consolidated.values():
            document.pop("consolidated_metadata", None)  # groups below have the part for their members
        assert consolidated == listed


def test_attributes_of_the_root_are_not_consolidated() -> None:
    store = hierarchy()
    zarrlite.open_group(store, mode="r+").attrs["top"] = 2
    reader = zarrlite.open_group(store, mode="r", use_consolidated=True)
    assert reader.attrs["top"] == 2


def test_use_consolidated_false_applies_to_groups_below() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, name="g/a", data=DATA)
    zarrlite.consolidate_metadata(store, "g")
    zarrlite.create_array(store, name="g/b", data=DATA)
    assert list(zarrlite.open_group(store, mode="r", use_consolidated=False)["g"]) == ["a", "b"]


def test_a_nested_group_can_be_consolidated_by_itself() -> None:
    store = hierarchy()
    assert zarrlite.consolidate_metadata(store, "g").path == "g"
    reader = zarrlite.open_group(store, path="g", mode="r", use_consolidated=True)
    assert [path for path, _ in reader.members(None)] == ["b", "h", "h/c"]
    # the outer document contains that of the inner group without its consolidated metadata
    zarrlite.consolidate_metadata(store)
    top = json.loads(bytes(store.get("zarr.json") or b""))["consolidated_metadata"]["metadata"]
    assert "consolidated_metadata" not in top["g"]
    assert [path for path, _ in zarrlite.open_group(store, mode="r")["g"].members(None)] == ["b", "h", "h/c"]


def test_faults_in_consolidated_metadata_have_a_pointer() -> None:
    document = json.loads(GROUP)
    bad = {**json.loads(GROUP), "zarr_format": 2}
    document["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": {"g/x": bad}}
    store = MemoryStore({"zarr.json": json.dumps(document).encode()})
    with pytest.raises(MetadataError) as caught:
        zarrlite.open_group(store, mode="r")["g/x"]
    assert str(caught.value) == "zarr.json#/consolidated_metadata/metadata/g~1x/zarr_format: must be 3, not 2"


@pytest.mark.parametrize(
    ("store", "mode", "message"),
    [
        (group, "r", "use_consolidated must not be True: the group at '' has no consolidated metadata"),
        (hierarchy, "r+", "use_consolidated=True needs mode='r': consolidated metadata goes stale under a writer"),
    ],
)
def test_use_consolidated_true_needs_consolidated_metadata_and_mode_r(
    store: Callable[[], MemoryStore], mode: str, message: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        zarrlite.open_group(store(), mode=mode, use_consolidated=True)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_only_existing_groups_can_be_consolidated() -> None:
    with pytest.raises(NodeExistsError):
        zarrlite.consolidate_metadata(array())
    with pytest.raises(NodeNotFoundError):
        zarrlite.consolidate_metadata(nothing())
