"""New nodes: failures change nothing, nodes are replaced on request only, and parents become groups."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nodes.states import (
    DATA,
    GROUP,
    NEW,
    array,
    broken,
    contents,
    group,
    nothing,
)

import zarrlite
from zarrlite import (
    ArgumentError,
    Array,
    MemoryStore,
    NodeExistsError,
    ZarrliteError,
)

BAD_ARGUMENTS: dict[str, dict[str, Any]] = {
    "no shape": {"dtype": "u1"},
    "no dtype": {"shape": 3},
    "negative shape": {"shape": -3, "dtype": "u1"},
    "unknown dtype": {"shape": 3, "dtype": "nope"},
    "chunks of another rank": {"shape": 3, "dtype": "u1", "chunks": (1, 1)},
    "chunks of zero": {"shape": 3, "dtype": "u1", "chunks": 0},
    "shards that chunks do not divide": {"shape": 8, "dtype": "u1", "chunks": 3, "shards": (4,)},
    "fill value": {"shape": 3, "dtype": "u1", "fill_value": 256},
    "unknown codec": {"shape": 3, "dtype": "u1", "compressors": "lzma"},
    "codec in the wrong place": {"shape": 3, "dtype": "u1", "filters": "zstd"},
    "no serializer": {"shape": 3, "dtype": "u1", "codecs": ["zstd"]},
    "codecs and compressors": {"shape": 3, "dtype": "u1", "codecs": ["bytes"], "compressors": None},
    "attributes": {"shape": 3, "dtype": "u1", "attributes": {"x": object()}},
    "attributes with NaN": {"shape": 3, "dtype": "u1", "attributes": {"x": float("nan")}},
    "dimension names": {"shape": 3, "dtype": "u1", "dimension_names": ["x", "y"]},
    "chunk keys": {"shape": 3, "dtype": "u1", "chunk_key_encoding": "nope"},
    "storage transformers": {"shape": 3, "dtype": "u1", "storage_transformers": ["nope"]},
    "config": {"shape": 3, "dtype": "u1", "config": {"nope": 1}},
    "missing_chunks": {"shape": 3, "dtype": "u1", "missing_chunks": "zero"},
    "shape other than the data's": {"data": [1, 2], "shape": 3},
    "ragged data": {"data": [[1], [2, 3]]},
    "data that the dtype cannot hold": {"data": [1, 300], "dtype": "u1"},
    "data of another kind": {"data": np.array(["x", "y"]), "dtype": "i4"},
    "objects that are not bytes": {"data": np.array([b"x", 3], object), "dtype": "bytes"},
    "unknown keyword": {"shape": 3, "dtype": "u1", "nope": 1},
}


@pytest.mark.parametrize("state", [nothing, array, group, broken], ids=lambda f: f.__name__)
@pytest.mark.parametrize("arguments", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_wrong_arguments_change_nothing_in_the_store(
    arguments: dict[str, Any], state: Callable[[], MemoryStore]
) -> None:
    store = state()
    before = contents(store)
    with pytest.raises((ZarrliteError, TypeError)):
        zarrlite.create_array(store, overwrite=True, **arguments)
    assert contents(store) == before


def test_wrong_attributes_of_a_group_change_nothing_in_the_store() -> None:
    store = array()
    before = contents(store)
    with pytest.raises(ArgumentError):
        zarrlite.create_group(store, attributes={"x": {1}}, overwrite=True)
    assert contents(store) == before


@pytest.mark.parametrize("make", [zarrlite.create_group, lambda s, **k: zarrlite.create_array(s, data=[1], **k)])
def test_nodes_are_replaced_on_request_only(make: Callable[..., Any]) -> None:
    store = group()
    before = contents(store)
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        make(store)
    assert contents(store) == before
    make(store, overwrite=True)
    assert "child/zarr.json" not in contents(store)


def test_an_array_can_replace_itself_with_its_own_data() -> None:
    store = array()
    source = zarrlite.open_array(store, mode="r")
    replaced = zarrlite.create_array(store, data=source, chunks=(2, 1), overwrite=True)
    np.testing.assert_array_equal(replaced[...], DATA)


@pytest.mark.parametrize("mode", ["w", "w-", "a"])
@pytest.mark.parametrize("make", [zarrlite.open_group, lambda s, **k: zarrlite.open_array(s, **NEW, **k)])
def test_files_outside_of_nodes_are_kept(tmp_path: Path, make: Callable[..., Any], mode: str) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter 1.tex").write_text("mine too")
    make(tmp_path, mode=mode)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "thesis" / "chapter 1.tex").read_text() == "mine too"


@pytest.mark.parametrize(
    "make",
    [
        lambda s: zarrlite.create_array(s, **NEW, chunks=2, compressors=None),
        lambda s: zarrlite.open_array(s, mode="w", **NEW, chunks=2, compressors=None),
        lambda s: zarrlite.open(s, mode="a", **NEW, chunks=2, compressors=None),
        lambda s: zarrlite.copy(zarrlite.create_array(None, **NEW, chunks=2, compressors=None), s),
    ],
    ids=["create_array", "open_array", "open", "copy"],
)
def test_leftover_chunks_do_not_show_in_a_new_array(make: Callable[[Any], Array]) -> None:
    store = MemoryStore({"c/0": b"\1\1", "c/9": b"\1\1", "c/note": b"mine"})
    created = make(store)
    assert created[...].tolist() == [0, 0, 0, 0]
    created.resize(20)
    assert created[18:20].tolist() == [0, 0]
    assert contents(store)["c/note"] == b"mine"


def test_missing_parents_become_groups() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, name="a/b/c", data=DATA)
    assert sorted(store.list()) == ["a/b/c/c/0/0", "a/b/c/zarr.json", "a/b/zarr.json", "a/zarr.json", "zarr.json"]
    assert json.loads(bytes(store.get("a/zarr.json") or b"")) == {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {},
    }
    zarrlite.create_group(store, path="a/x/y")
    assert list(zarrlite.open_group(store, path="a")) == ["b", "x"]


def test_existing_parents_are_kept() -> None:
    store = group()
    zarrlite.create_group(store, path="x/y")
    assert store.get("zarr.json") == GROUP


@pytest.mark.parametrize(
    "make",
    [
        lambda store: zarrlite.create_array(store, name="x/y", data=[1]),
        lambda store: zarrlite.create_group(store, path="x/y"),
        lambda store: zarrlite.open(store, path="x/y", mode="w"),
        lambda store: zarrlite.copy(zarrlite.create_array(None, data=[1]), store, "x/y"),
    ],
    ids=["create_array", "create_group", "open", "copy"],
)
def test_nodes_cannot_be_created_below_an_array(make: Callable[[Any], Any]) -> None:
    store = array()
    before = contents(store)
    with pytest.raises(NodeExistsError) as caught:
        make(store)
    assert str(caught.value) == "'x/y' cannot be created: '' is an array, and only groups have members"
    assert contents(store) == before
