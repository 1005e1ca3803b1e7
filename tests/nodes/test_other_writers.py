"""Hierarchies written by other programs: NaN in attributes, reserved names, members that cannot be opened."""

from __future__ import annotations

import json
import math
import os
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.errors import ArgumentError, KeyRefusedError, MetadataError, MetadataWarning, NodeNotFoundError
from zarrlite.nodes import node as nodes

GROUP = {"zarr_format": 3, "node_type": "group"}
ARRAY = {
    **GROUP,
    "node_type": "array",
    "shape": [4],
    "data_type": "int16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}
ODD = {"missing_value": math.nan, "valid_range": [-math.inf, math.inf], "units": "K"}
XARRAY = "__xarray_dataarray_variable__"


def documents(**nodes: Any) -> dict[str, bytes]:
    """Return a hierarchy whose root group has the given members. Their documents are passed as JSON or as bytes."""
    found = {"zarr.json": json.dumps(GROUP).encode()}
    for path, content in nodes.items():
        found[f"{path}/zarr.json"] = content if isinstance(content, bytes) else json.dumps(content).encode()
    return found


def stored_attributes(store: Any, key: str = "zarr.json") -> str:
    """Return the attributes of a stored document as text, so that NaN can be compared."""
    return json.dumps(json.loads(bytes(store[key]))["attributes"])


# NaN in attributes


@pytest.mark.parametrize("strict", [True, False])
def test_attributes_with_nan_are_read(strict: bool) -> None:
    store = documents(a={**ARRAY, "attributes": ODD})
    attributes = zarrlite.open_array(store, mode="r", path="a", strict=strict).attrs
    assert math.isnan(attributes["missing_value"])
    assert attributes["valid_range"] == [-math.inf, math.inf]


def test_equal_documents_with_nan_are_equal() -> None:
    store = documents(a={**ARRAY, "attributes": ODD}, b={**ARRAY, "attributes": ODD})
    group = zarrlite.open_group(store, mode="r")
    assert group["a"].metadata == group["b"].metadata


CHANGES: dict[str, Callable[[Any], Any]] = {
    "setting another attribute": lambda array: array.attrs.update(new=1),
    "removing an attribute": lambda array: array.attrs.pop("units"),
    "passing them again": lambda array: array.attrs.put({**array.attrs, "new": 1}),
    "resizing": lambda array: array.resize((6,)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_document_that_is_written_again_keeps_nan(change: Callable[[Any], Any]) -> None:
    store = documents(a={**ARRAY, "attributes": ODD})
    change(zarrlite.open_array(store, mode="r+", path="a"))
    attributes = json.loads(stored_attributes(store, "a/zarr.json"))
    assert math.isnan(attributes["missing_value"])
    assert attributes["valid_range"] == [-math.inf, math.inf]


NEW: dict[str, Callable[[Any], Any]] = {
    "attrs": lambda group: group.attrs.update(a=[1, math.nan]),
    "put": lambda group: group.attrs.put({"a": [1, math.nan]}),
    "create_group": lambda group: group.create_group("new", attributes={"a": [1, math.nan]}),
    "create_array": lambda group: group.create_array("new", data=[1], attributes={"a": [1, math.nan]}),
    "a NaN that was Infinity": lambda group: group.attrs.update(a=[1, math.nan]),
}


@pytest.mark.parametrize("write", NEW.values(), ids=NEW)
def test_writing_a_new_nan_is_refused_and_names_the_text_to_write(write: Callable[[Any], Any]) -> None:
    store = documents()
    store["zarr.json"] = json.dumps({**GROUP, "attributes": {"a": [1, math.inf]}}).encode()
    before = dict(store)
    with pytest.raises(ArgumentError) as caught:
        write(zarrlite.open_group(store, mode="r+"))
    message = 'a value cannot be written as JSON: /a/1 must not be NaN, which is not JSON; write it as text: "NaN"'
    assert str(caught.value) == message
    assert store == before


def test_consolidated_metadata_keeps_nan() -> None:
    store = documents(a={**ARRAY, "attributes": ODD}, b=GROUP)
    zarrlite.consolidate_metadata(store)
    for change in (lambda: None, lambda: zarrlite.open_group(store, path="b").attrs.update(x=1)):
        change()
        group = zarrlite.open_group(store, mode="r", use_consolidated=True)
        assert math.isnan(group["a"].attrs["missing_value"])


def test_metadata_with_nan_is_copied_and_pickled() -> None:
    group = zarrlite.open_group(documents(a={**ARRAY, "attributes": ODD}), mode="r")
    copied: Any = zarrlite.copy(group, "memory://")
    assert math.isnan(copied["a"].attrs["missing_value"])
    assert math.isnan(pickle.loads(pickle.dumps(group))["a"].attrs["missing_value"])


def test_documents_with_nan_do_not_enter_the_cache_of_documents() -> None:
    nodes._known_documents.clear()
    zarrlite.open_array(documents(a={**ARRAY, "attributes": {"x": math.nan}}), mode="r", path="a")
    assert not nodes._known_documents


def test_n5_attributes_with_nan_are_read() -> None:
    attributes = {"n5": "2.0.0", "range": [math.nan, 1.0]}
    container = {"attributes.json": json.dumps(attributes).encode()}
    assert math.isnan(zarrlite.n5.open(container).attrs["range"][0])
    zarrlite.n5.write_documents(container)
    assert math.isnan(zarrlite.open_group(container, mode="r").attrs["range"][0])


# names that begin with "__"


def test_nodes_with_reserved_names_are_listed_opened_and_consolidated() -> None:
    store = documents(**{XARRAY: ARRAY, "__g": GROUP, "__g/__a": ARRAY, "x": ARRAY})
    group = zarrlite.open_group(store)
    assert list(group) == ["__g", XARRAY, "x"]
    assert [path for path, _ in group.members(None)] == ["__g", "__g/__a", XARRAY, "x"]
    group[XARRAY][...] = 7
    assert XARRAY in group
    group.consolidate_metadata()
    consolidated = zarrlite.open_group(store, mode="r", use_consolidated=True)
    assert list(consolidated[XARRAY][...]) == [7, 7, 7, 7]
    assert list(zarrlite.copy(group, {})) == ["__g", XARRAY, "x"]
    del group[XARRAY]
    assert XARRAY not in group


RESERVED: dict[str, Callable[[Any], Any]] = {
    "create_group": lambda group: group.create_group("__x"),
    "create_array": lambda group: group.create_array("a/__x", data=[1]),
    "assigning": lambda group: group.__setitem__("__x", [1]),
    "overwriting": lambda group: group.create_array("__old", data=[1], overwrite=True),
    "a missing group above": lambda group: group.create_group("__x/a"),
    "require_group": lambda group: group.require_group("__x"),
    "open": lambda group: zarrlite.open(group.store, path="__x", mode="w"),
    "copy": lambda group: zarrlite.copy(group["__old"], group.store, "__x"),
}


@pytest.mark.parametrize("create", RESERVED.values(), ids=RESERVED)
def test_creating_a_node_with_a_reserved_name_is_refused(create: Callable[[Any], Any]) -> None:
    store = documents(__old=ARRAY)
    before = dict(store)
    with pytest.raises(ArgumentError, match=r"^invalid node name '__(x|old)': node names must not start with '__'"):
        create(zarrlite.open_group(store))
    assert store == before


def test_nodes_are_created_below_a_node_with_a_reserved_name() -> None:
    group = zarrlite.open_group(documents(__g=GROUP))
    group["__g/a"] = [1, 2]
    assert list(group["__g"]) == ["a"]


def test_reserved_keys_of_the_library_are_not_nodes() -> None:
    group = zarrlite.open_group(documents(**{"__zarrlite.x": GROUP, "a": GROUP}))
    assert list(group) == ["a"]
    assert "__zarrlite.x" not in group
    with pytest.raises(ArgumentError, match="the prefix of zarrlite's own keys"):
        group["__zarrlite.x"]


# members that cannot be opened


BAD: dict[str, Any] = {
    "text": b"{",
    "an unknown codec": {**ARRAY, "codecs": [{"name": "unknown"}]},
    "a draft": {"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0"},
    "nothing": b"",
}


@pytest.fixture(params=BAD.values(), ids=list(BAD))
def mixed(request: pytest.FixtureRequest) -> dict[str, bytes]:
    """A group with a bad member between good ones; one of the good ones is a group with another bad member."""
    return documents(a=ARRAY, bad=request.param, g=GROUP, **{"g/b": ARRAY, "g/worse": request.param}, z=GROUP)


def named(caught: list[warnings.WarningMessage]) -> list[str]:
    """Return the paths that warnings mention."""
    return [str(warning.message).split("'")[1] for warning in caught]


def test_a_bad_member_does_not_prevent_reading_its_group(mixed: dict[str, bytes]) -> None:
    group = zarrlite.open_group(mixed)
    assert list(group) == ["a", "bad", "g", "z"]
    assert len(group) == 4
    with pytest.warns(UserWarning, match="skipped") as caught:
        assert [name for name, _ in group.items()] == ["a", "g", "z"]
    assert named(list(caught)) == ["bad"]
    with pytest.warns(UserWarning, match="skipped") as caught:
        assert [path for path, _ in group.members(None)] == ["a", "g", "g/b", "z"]
    assert named(list(caught)) == ["bad", "g/worse"]
    lines = [line for line in str(group.tree()).splitlines() if "refused" in line]
    assert [line.split(" (refused: ")[0].split()[-1] for line in lines] == ["bad", "worse"]
    with pytest.raises(MetadataError):
        group["bad"]


def test_a_group_with_a_bad_member_is_copied(mixed: dict[str, bytes]) -> None:
    group = zarrlite.open_group(mixed)
    target: dict[str, bytes] = {}
    with pytest.warns(UserWarning, match="is copied unchecked") as caught:
        zarrlite.copy(group, target)
    assert named(list(caught)) == ["bad", "g/worse"]
    assert target == mixed


def test_a_group_with_a_bad_member_is_copied_below_consolidated_metadata(mixed: dict[str, bytes]) -> None:
    store = documents(old=GROUP)
    zarrlite.consolidate_metadata(store)
    with pytest.warns(UserWarning, match="is copied unchecked"):
        zarrlite.copy(zarrlite.open_group(mixed), store, "new")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarrlite.open_group(store, mode="r", use_consolidated=True)
        assert [path for path, _ in group.members(None)] == ["new", "new/a", "new/g", "new/g/b", "new/z", "old"]


def test_a_group_with_a_bad_member_is_consolidated(mixed: dict[str, bytes]) -> None:
    with pytest.warns(UserWarning, match="skipped") as caught:
        zarrlite.consolidate_metadata(mixed)
    assert named(list(caught)) == ["bad", "g/worse"]
    consolidated = zarrlite.open_group(mixed, mode="r", use_consolidated=True)
    assert [path for path, _ in consolidated.members(None)] == ["a", "g", "g/b", "z"]


def test_bad_members_and_groups_that_contain_them_can_be_removed(mixed: dict[str, bytes]) -> None:
    group = zarrlite.open_group(mixed)
    del group["bad"]
    del group["g"]
    assert sorted(mixed) == ["a/zarr.json", "z/zarr.json", "zarr.json"]
    with pytest.raises(NodeNotFoundError):
        del group["bad"]


def test_copy_refuses_members_behind_links_that_are_not_followed(tmp_path: Path) -> None:
    outside = zarrlite.create_group(tmp_path / "outside")
    outside["x"] = [1]
    group = zarrlite.create_group(tmp_path / "root")
    group["a"] = [2]
    os.symlink(tmp_path / "outside", tmp_path / "root" / "link")
    target: dict[str, bytes] = {}
    with pytest.raises(KeyRefusedError, match=r"'link/zarr\.json' must not leave"):
        zarrlite.copy(group, target)
    assert target == {}
    followed = zarrlite.open_group(zarrlite.LocalStore(tmp_path / "root", follow_symlinks=True))
    assert sorted(zarrlite.copy(followed, {})) == ["a", "link"]


def test_a_copy_is_refused_if_a_chunk_is_a_link_out_of_the_store(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path / "root", data=[1, 2], chunks=1)
    os.replace(tmp_path / "root/c/1", tmp_path / "chunk")
    os.symlink(tmp_path / "chunk", tmp_path / "root/c/1")
    with pytest.raises(KeyRefusedError):
        zarrlite.copy(array, {})


# documents written by GDAL 3.10 and zarrita.js 0.7

GDAL = {**ARRAY, "fill_value": None, "dimension_names": ["X"], "attributes": {}}
del GDAL["codecs"]  # type: ignore[attr-defined]
ZARRITA = {**ARRAY, "codecs": [], "fill_value": None, "attributes": {}}


@pytest.mark.parametrize("document", [GDAL, ZARRITA], ids=["GDAL", "zarrita.js"])
def test_default_documents_of_other_writers_open_with_warnings(document: dict[str, Any]) -> None:
    store = {**documents(a=document), "a/c/0": np.array([1, 2], "<i2").tobytes()}
    with pytest.raises(MetadataError):
        zarrlite.open_array(store, mode="r", path="a")
    with pytest.warns(MetadataWarning) as caught:
        array = zarrlite.open_array(store, mode="r", path="a", strict=False)
    assert [warning.message.pointer for warning in caught] == ["/codecs", "/fill_value"]  # type: ignore[union-attr]
    assert array[...].tolist() == [1, 2, 0, 0]


def test_a_repaired_document_is_written_in_strict_form() -> None:
    store = documents(a=GDAL)
    with pytest.warns(MetadataWarning):
        zarrlite.open_array(store, path="a", strict=False).attrs["x"] = 1
    assert zarrlite.validate(store["a/zarr.json"]) == []
