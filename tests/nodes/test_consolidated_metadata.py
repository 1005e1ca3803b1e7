"""Consolidated metadata: how it is written, when it is used, and how changes to nodes update it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nodes.states import (
    DATA,
    GROUP,
    NEW,
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
    ZarrliteError,
)


class Counting(MemoryStore):
    """A store that records which keys are read."""

    def __init__(self, values: Any = None) -> None:
        super().__init__(values)
        self.reads: list[str] = []

    def get(self, key: str, *args: Any) -> Any:
        self.reads.append(key)
        return super().get(key, *args)


def test_the_root_document_contains_the_documents_of_all_nodes_below() -> None:
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


CHANGES: dict[str, Callable[[Group], Any]] = {
    "attributes": lambda top: top["a"].attrs.update(n=2),
    "attributes of a group": lambda top: top["g"].attrs.update(n=2),
    "resize": lambda top: top["a"].resize((1, 1)),
    "append": lambda top: top["g/h/c"].append(DATA),
    "delete": lambda top: top.__delitem__("g"),
    "delete a leaf": lambda top: top.__delitem__("g/h/c"),
    "create": lambda top: top.create_array("g/new", data=[1]),
    "create deep below": lambda top: top.create_group("g/new/er"),
    "overwrite": lambda top: top.create_array("a", data=[1.5], overwrite=True),
    "overwrite a group": lambda top: top.create_array("g", data=[1.5], overwrite=True),
    "copy": lambda top: zarrlite.copy(top["g"], top.store, "x/y"),
    "copy over": lambda top: zarrlite.copy(top["g"], top.store, "a", overwrite=True),
}


def listed(store: MemoryStore, path: str = "", **options: Any) -> dict[str, Any]:
    """Return the documents of all nodes as a reader sees them, without their consolidated metadata."""
    reader = zarrlite.open_group(store, path=path, mode="r", **options)
    found = {name: node.metadata.to_json() for name, node in reader.members(None)}
    for document in found.values():
        document.pop("consolidated_metadata", None)
    return found


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_consolidated_metadata_is_updated_by_every_change(change: Callable[[Group], Any]) -> None:
    store = hierarchy()
    zarrlite.consolidate_metadata(store, "g")
    before = listed(store, use_consolidated=True)
    change(zarrlite.open_group(store, mode="r+"))
    after = listed(store, use_consolidated=True)
    assert after == listed(store, use_consolidated=False) != before
    if "g/h" in after:
        assert listed(store, "g", use_consolidated=True) == listed(store, "g", use_consolidated=False)


def test_a_change_drops_the_consolidated_metadata_of_large_documents() -> None:
    store = hierarchy()
    zarrlite.open_group(store).attrs["text"] = "x" * (2**22 - 10_000)
    zarrlite.open_array(store, path="a").attrs["n"] = 2
    assert zarrlite.open_group(store, mode="r").metadata.consolidated is not None
    zarrlite.open_group(store).attrs["text"] = "x" * 2**22
    zarrlite.open_array(store, path="a").attrs["n"] = 3
    assert zarrlite.open_group(store, mode="r").metadata.consolidated is None
    assert zarrlite.open_group(store, mode="r")["a"].attrs["n"] == 3


def test_a_refused_change_keeps_consolidated_metadata() -> None:
    store = hierarchy()
    before = contents(store)
    top: Any = zarrlite.open_group(store, mode="r+")
    refused: list[Callable[[], Any]] = [
        lambda: top["a"].attrs.update(n=object()),
        lambda: top["a"].attrs.update(n=nested(127)),
        lambda: top.create_group("a"),
        lambda: top.create_group("a/below"),
        lambda: top.create_group("new", attributes={"x": object()}),
        lambda: top["a"].append([1]),
        lambda: zarrlite.copy(top["g"], store, "a"),
    ]
    for change in refused:
        with pytest.raises(ZarrliteError):
            change()
        assert contents(store) == before


@pytest.mark.parametrize("copies", [[1], {"kind": "inline"}, {"metadata": []}], ids=str)
def test_a_change_drops_malformed_consolidated_metadata(copies: Any) -> None:
    store = MemoryStore()
    zarrlite.create_array(store, name="a", data=DATA)
    document = {**json.loads(GROUP), "consolidated_metadata": copies}
    store.set("zarr.json", json.dumps(document).encode())
    zarrlite.open_array(store, path="a").attrs["n"] = 2
    assert json.loads(bytes(store.get("zarr.json") or b"")) == json.loads(GROUP)


def test_copies_have_no_indentation() -> None:
    text = bytes(hierarchy().get("zarr.json") or b"").decode()
    assert text.startswith('{\n  "zarr_format": 3,\n  "node_type": "group",\n')
    assert text.endswith("\n}")
    (line,) = [line for line in text.splitlines() if "consolidated_metadata" in line]
    assert '"g/h/c": {' in line


# Limits: nothing is stored that could not be opened again.


def nested(depth: int) -> Any:
    """Return a list nested to this many levels."""
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_consolidated_metadata_that_is_nested_too_deeply_is_refused() -> None:
    store = hierarchy()
    zarrlite.open_array(store, path="a").attrs["deep"] = nested(126)
    assert zarrlite.open_group(store, mode="r").metadata.consolidated is None  # too deep to be consolidated
    before = contents(store)
    with pytest.raises(MetadataError) as caught:
        zarrlite.consolidate_metadata(store)
    assert str(caught.value) == (
        "zarr.json#: must be nested at most 128 levels deep, including consolidated metadata; "
        "consolidate the groups below it instead"
    )
    assert contents(store) == before


def test_consolidated_metadata_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    for path in ("a", "b"):
        zarrlite.create_group(store, path=path, attributes={"text": "x" * 20_000})
    before = contents(store)
    monkeypatch.setattr("zarrlite.extensions.config.MAX_DOCUMENT_BYTES", 30_000)
    with pytest.raises(MetadataError, match=r"must have at most 30000 bytes, not \d+, including consolidated metadata"):
        zarrlite.consolidate_metadata(store)
    assert contents(store) == before


@pytest.mark.parametrize(("depth", "fits"), [(126, True), (127, False)])
def test_attributes_can_be_nested_as_deeply_as_a_document_is_read(depth: int, fits: bool) -> None:
    writers: list[Callable[[MemoryStore], Any]] = [
        lambda store: zarrlite.create_group(store, path="x", attributes={"deep": nested(depth)}),
        lambda store: zarrlite.create_array(store, name="x", **NEW, attributes={"deep": nested(depth)}),
        lambda store: zarrlite.create_group(store, path="x").attrs.update(deep=nested(depth)),
        lambda store: zarrlite.create_group(store, path="x").attrs.put({"deep": nested(depth)}),
    ]
    for write in writers:
        store = MemoryStore()
        if fits:
            write(store)
            assert zarrlite.open(store, path="x", mode="r").attrs["deep"] == nested(depth)
            continue
        with pytest.raises(MetadataError, match="must be nested at most 128 levels deep"):
            write(store)
        assert "deep" not in zarrlite.open(store, path="x", mode="a").attrs  # the node can still be opened or created


def test_attributes_of_groups_are_checked_and_read_as_they_are_stored() -> None:
    store = MemoryStore()
    with pytest.raises(MetadataError, match="member names must be unique"):
        zarrlite.create_group(store, attributes={1: "a", "1": "b"})  # type: ignore[dict-item]
    assert contents(store) == {}
    assert dict(zarrlite.create_group(store, attributes={"x": (1, 2)}).attrs) == {"x": [1, 2]}


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
    # the outer group's copy of the inner group's document omits the consolidated metadata of the inner group
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
        (hierarchy, "r+", "use_consolidated=True needs mode='r': writers do not use consolidated metadata"),
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


def test_members_that_differ_only_in_attributes_keep_their_own() -> None:
    store = MemoryStore()
    root = zarrlite.create_group(store)
    for name in "abc":
        root.create_array(name, shape=(4,), dtype="u1", attributes={"name": name})
    zarrlite.consolidate_metadata(store)
    group = zarrlite.open_group(store, mode="r")
    members = dict(group.members())
    assert {name: dict(member.attrs) for name, member in members.items()} == {name: {"name": name} for name in "abc"}
    members["a"].attrs.asdict()["name"] = "changed"
    assert dict(group["a"].attrs) == {"name": "a"}
