"""The functions that scripts call: modes, places, consolidated metadata, copies, and what they say when refusing."""

from __future__ import annotations

import json
import typing
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import (
    ArgumentError,
    Array,
    Group,
    LocalStore,
    MemoryStore,
    MetadataError,
    MetadataWarning,
    MissingChunkError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    UnknownExtensionError,
    ZarrliteError,
)
from zarrlite.extensions import registry
from zarrlite.stores import MappingStore, PrefixStore, ReadOnlyStore

GROUP = b'{"zarr_format": 3, "node_type": "group", "attributes": {"was": "here"}}'
BROKEN = b'{"zarr_format": 3, "node_type": "arr'
DATA = np.arange(6, dtype="int16").reshape(2, 3)


def nothing() -> MemoryStore:
    return MemoryStore()


def array() -> MemoryStore:
    store = MemoryStore()
    zarrlite.create_array(store, data=DATA, chunks=(1, 3), attributes={"was": "here"})
    return store


def group() -> MemoryStore:
    store = MemoryStore({"zarr.json": GROUP})
    zarrlite.create_array(store, name="child", data=DATA)
    return store


def version_2() -> MemoryStore:
    return MemoryStore({".zarray": b"{}", ".zattrs": b"{}", "0.0": b"data"})


def broken() -> MemoryStore:
    return MemoryStore({"zarr.json": BROKEN})


def contents(store: Any) -> dict[str, bytes]:
    return {key: bytes(store.get(key)) for key in store.list()}


# Modes. What is opened or made is a type; what was there and is opened still has its attribute.

NEW = {"shape": (4,), "dtype": "uint8"}
STATES = (nothing, array, group, version_2, broken)
Outcome = type | tuple[type, str]

MODES: dict[str, dict[str, tuple[Outcome, ...]]] = {
    # nothing, array, group, version 2, broken
    "open": {
        "r": (NodeNotFoundError, Array, Group, NodeNotFoundError, MetadataError),
        "r+": (NodeNotFoundError, Array, Group, NodeNotFoundError, MetadataError),
        "a": ((Group, "new"), Array, Group, NodeNotFoundError, MetadataError),
        "w": ((Group, "new"),) * 5,
        "w-": ((Group, "new"), *(NodeExistsError,) * 4),
    },
    "open with a shape": {
        "r": (NodeNotFoundError, Array, Group, NodeNotFoundError, MetadataError),
        "r+": (NodeNotFoundError, Array, Group, NodeNotFoundError, MetadataError),
        "a": ((Array, "new"), Array, Group, NodeNotFoundError, MetadataError),
        "w": ((Array, "new"),) * 5,
        "w-": ((Array, "new"), *(NodeExistsError,) * 4),
    },
    "open_array": {
        "r": (NodeNotFoundError, Array, NodeExistsError, NodeNotFoundError, MetadataError),
        "r+": (NodeNotFoundError, Array, NodeExistsError, NodeNotFoundError, MetadataError),
        "a": ((Array, "new"), Array, NodeExistsError, NodeNotFoundError, MetadataError),
        "w": ((Array, "new"),) * 5,
        "w-": ((Array, "new"), *(NodeExistsError,) * 4),
    },
    "open_group": {
        "r": (NodeNotFoundError, NodeExistsError, Group, NodeNotFoundError, MetadataError),
        "r+": (NodeNotFoundError, NodeExistsError, Group, NodeNotFoundError, MetadataError),
        "a": ((Group, "new"), NodeExistsError, Group, NodeNotFoundError, MetadataError),
        "w": ((Group, "new"),) * 5,
        "w-": ((Group, "new"), *(NodeExistsError,) * 4),
    },
}
FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "open": (zarrlite.open, {}),
    "open with a shape": (zarrlite.open, NEW),
    "open_array": (zarrlite.open_array, NEW),
    "open_group": (zarrlite.open_group, {}),
}


@pytest.mark.parametrize("under", ["", "deep/er"], ids=["root", "path"])
@pytest.mark.parametrize(
    ("function", "mode", "state", "outcome"),
    [
        pytest.param(function, mode, state, outcome, id=f"{function}-{mode}-{state.__name__}")
        for function, modes in MODES.items()
        for mode, outcomes in modes.items()
        for state, outcome in zip(STATES, outcomes, strict=True)
    ],
)
def test_modes(function: str, mode: str, state: Callable[[], MemoryStore], outcome: Outcome, under: str) -> None:
    call, arguments = FUNCTIONS[function]
    prefix = f"{under}/" if under else ""
    store = MemoryStore({prefix + key: value for key, value in contents(state()).items()})
    if under:
        for above in ("", "deep/"):
            store.set(f"{above}zarr.json", GROUP)
    before = contents(store)
    if isinstance(outcome, type) and issubclass(outcome, ZarrliteError):
        with pytest.raises(outcome):
            call(store, mode=mode, path=under, **arguments)
        assert contents(store) == before
        return
    node = call(store, mode=mode, path=under, **arguments)
    made = not isinstance(outcome, type)
    assert type(node) is (outcome[0] if made else outcome)  # type: ignore[index]
    assert node.path == under
    assert node.read_only == (mode == "r")
    assert dict(node.attrs) == ({} if made else {"was": "here"})
    if not made:
        assert contents(store) == before
    elif isinstance(node, Array):
        assert node.shape == (4,)
        assert set(node[...]) == {0}
    else:
        assert list(node) == []


def test_the_default_mode_is_a() -> None:
    store = MemoryStore()
    assert isinstance(zarrlite.open(store), Group)
    zarrlite.open_group(store).attrs["x"] = 1
    zarrlite.open_array(store, path="a", shape=3, dtype="u1")[0] = 7
    assert zarrlite.open_array(store, path="a")[0] == 7
    assert zarrlite.open(store).attrs["x"] == 1


def test_an_existing_array_wins_over_the_arguments_in_mode_a() -> None:
    assert zarrlite.open(array(), mode="a", shape=(9,), dtype="f8").shape == DATA.shape


def test_open_group_never_makes_an_array() -> None:
    with pytest.raises((ArgumentError, TypeError)):
        zarrlite.open_group(MemoryStore(), shape=(2,), dtype="u1")


def test_misspelt_keywords_are_noticed_also_where_something_is_there() -> None:
    with pytest.raises((ArgumentError, TypeError)):
        zarrlite.open(array(), mode="r", missing_chunk="error")


# Places.


@pytest.mark.parametrize("form", ["str", "Path", "file URI", "Store"])
def test_a_local_place_by_every_name(tmp_path: Path, form: str) -> None:
    root = tmp_path / "a b.zarr"
    place = {"str": str(root), "Path": root, "file URI": root.as_uri(), "Store": LocalStore(root)}[form]
    zarrlite.create_array(place, name="x/y", data=DATA)
    assert sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()) == [
        "x/y/c/0/0",
        "x/y/zarr.json",
        "x/zarr.json",
        "zarr.json",
    ]
    np.testing.assert_array_equal(zarrlite.open(place, mode="r")["x/y"][...], DATA)
    np.testing.assert_array_equal(zarrlite.open_array(place, path="x/y", mode="r")[...], DATA)


def test_memory_without_a_name_is_new_each_time() -> None:
    zarrlite.create_group("memory://")
    with pytest.raises(NodeNotFoundError):
        zarrlite.open("memory://", mode="r")
    assert isinstance(zarrlite.open(), Group)


def test_memory_with_a_name_stays() -> None:
    zarrlite.create_array("memory://test_api", data=DATA, overwrite=True)
    np.testing.assert_array_equal(zarrlite.open("memory://test_api", mode="r")[...], DATA)
    with pytest.raises(NodeNotFoundError):
        zarrlite.open("memory://test_api_other", mode="r")


def test_a_dict_is_written_through() -> None:
    mapping: dict[str, bytes] = {}
    zarrlite.create_array(mapping, data=DATA, chunks=DATA.shape, compressors=None)
    assert sorted(mapping) == ["c/0/0", "zarr.json"]
    assert mapping["c/0/0"] == DATA.tobytes()
    np.testing.assert_array_equal(zarrlite.open(mapping, mode="r")[...], DATA)


def test_a_part_of_a_store_is_a_place() -> None:
    store = MemoryStore()
    zarrlite.create_array(PrefixStore(store, "in/side/"), data=DATA)
    assert sorted(store.list()) == ["in/side/c/0/0", "in/side/zarr.json"]


def test_a_read_only_local_store_is_read_only_in_every_mode(tmp_path: Path) -> None:
    zarrlite.create_array(tmp_path, data=DATA)
    node = zarrlite.open(LocalStore(tmp_path, read_only=True), mode="r+")
    assert node.read_only
    with pytest.raises(ReadOnlyError):
        node[0, 0] = 1


# Reading only.


def store_with_everything() -> MemoryStore:
    store = MemoryStore()
    top = zarrlite.create_group(store, attributes={"k": 1})
    top.create_array("a", data=np.arange(12, dtype="i4").reshape(3, 4), attributes={"k": 1})
    top.create_array("s", data=np.zeros(3, [("x", "i4"), ("y", "f8")]))
    top.create_group("g")
    return store


def assign(target: Any, index: Any, value: Any) -> None:
    target[index] = value


def delete(target: Any, index: Any) -> None:
    del target[index]


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
def test_what_is_opened_for_reading_refuses(write: Callable[[Group], Any], opened: str) -> None:
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


def test_reading_and_asking_for_what_is_there_still_work_read_only() -> None:
    node = zarrlite.open_group(store_with_everything(), mode="r")
    assert node.require_group("g").read_only
    assert node.require_array("a", shape=(3, 4), dtype="i4")[2, 3] == 11
    assert node["a"].attrs["k"] == 1


# Creation.

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
    "objects that are no bytes": {"data": np.array([b"x", 3], object), "dtype": "bytes"},
    "unknown keyword": {"shape": 3, "dtype": "u1", "nope": 1},
}


@pytest.mark.parametrize("there", [nothing, array, group, broken], ids=lambda f: f.__name__)
@pytest.mark.parametrize("arguments", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_a_creation_that_fails_leaves_everything_as_it_was(
    arguments: dict[str, Any], there: Callable[[], MemoryStore]
) -> None:
    store = there()
    before = contents(store)
    with pytest.raises((ZarrliteError, TypeError)):
        zarrlite.create_array(store, overwrite=True, **arguments)
    assert contents(store) == before


def test_a_group_with_bad_attributes_leaves_everything_as_it_was() -> None:
    store = array()
    before = contents(store)
    with pytest.raises(ArgumentError):
        zarrlite.create_group(store, attributes={"x": {1}}, overwrite=True)
    assert contents(store) == before


@pytest.mark.parametrize("make", [zarrlite.create_group, lambda s, **k: zarrlite.create_array(s, data=[1], **k)])
def test_what_is_there_is_replaced_on_request_only(make: Callable[..., Any]) -> None:
    store = group()
    before = contents(store)
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        make(store)
    assert contents(store) == before
    make(store, overwrite=True)
    assert "child/zarr.json" not in contents(store)


def test_an_array_can_be_made_from_itself_in_its_own_place() -> None:
    store = array()
    made = zarrlite.create_array(store, data=zarrlite.open_array(store, mode="r"), chunks=(2, 1), overwrite=True)
    np.testing.assert_array_equal(made[...], DATA)


@pytest.mark.parametrize("mode", ["w", "w-", "a"])
@pytest.mark.parametrize("make", [zarrlite.open_group, lambda s, **k: zarrlite.open_array(s, **NEW, **k)])
def test_files_that_are_no_node_are_left_alone(tmp_path: Path, make: Callable[..., Any], mode: str) -> None:
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
def test_chunks_of_an_array_that_is_gone_do_not_come_back(make: Callable[[Any], Array]) -> None:
    store = MemoryStore({"c/0": b"\1\1", "c/9": b"\1\1", "c/note": b"mine"})
    made = make(store)
    assert made[...].tolist() == [0, 0, 0, 0]
    made.resize(20)
    assert made[18:20].tolist() == [0, 0]
    assert contents(store)["c/note"] == b"mine"


def test_parents_are_made_as_groups() -> None:
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


def test_parents_that_are_there_are_kept() -> None:
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
def test_an_array_has_no_children(make: Callable[[Any], Any]) -> None:
    store = array()
    before = contents(store)
    with pytest.raises(NodeExistsError) as caught:
        make(store)
    assert str(caught.value) == "'' is an array; there can be no 'x/y' below it"
    assert contents(store) == before


# Options.


def test_missing_chunks_can_be_an_error() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, name="a", shape=4, dtype="u1", chunks=2)[:2] = 1
    for node in (
        zarrlite.open_array(store, path="a", mode="r", missing_chunks="error"),
        zarrlite.open(store, path="a", mode="r", missing_chunks="error"),
        zarrlite.open_group(store, mode="r", missing_chunks="error")["a"],
        dict(zarrlite.open_group(store, mode="r", missing_chunks="error").arrays())["a"],
    ):
        assert node[:2].tolist() == [1, 1]
        with pytest.raises(MissingChunkError) as caught:
            node[...]
        assert str(caught.value) == "chunk a/c/1: is missing"
    assert zarrlite.open_array(store, path="a", mode="r")[...].tolist() == [1, 1, 0, 0]


def test_write_empty_chunks_is_handed_down() -> None:
    store = MemoryStore()
    top = zarrlite.open_group(store, mode="w", write_empty_chunks=True)
    top.create_array("a", shape=4, dtype="u1", chunks=2)[...] = 0
    top.create_group("g").create_array("a", shape=4, dtype="u1", chunks=2)[...] = 0
    assert [key for key in store.list() if "/c/" in key] == ["a/c/0", "a/c/1", "g/a/c/0", "g/a/c/1"]


LENIENT = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [2],
    "data_type": "int16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"},
    "codecs": [],
}


def test_strict_refuses_what_lenient_repairs() -> None:
    store = MemoryStore({"zarr.json": GROUP, "a/zarr.json": json.dumps(LENIENT).encode(), "a/c/0": b"\1\0\2\0"})
    with pytest.raises(MetadataError) as caught:
        zarrlite.open_array(store, path="a", mode="r")
    assert [problem.pointer for problem in caught.value.problems] == ["/codecs", "/fill_value"]
    for read in (
        lambda: zarrlite.open(store, path="a", mode="r", strict=False),
        lambda: zarrlite.open_array(store, path="a", mode="r", strict=False),
        lambda: zarrlite.open_group(store, mode="r", strict=False)["a"],
    ):
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            node = read()
        assert node[...].tolist() == [1, 2]
        assert {warning.message.pointer for warning in noted} == {"/codecs", "/fill_value"}  # type: ignore[union-attr]
        assert all(warning.category is MetadataWarning for warning in noted)


def test_a_lenient_array_can_be_written_and_is_then_right() -> None:
    store = MemoryStore({"zarr.json": json.dumps(LENIENT).encode()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetadataWarning)
        node = zarrlite.open_array(store, mode="r+", strict=False)
        node.attrs["x"] = 1
        node[1] = 5
    assert zarrlite.open_array(store, mode="r")[...].tolist() == [0, 5]


def test_options_must_meet_an_extension() -> None:
    with pytest.raises(ArgumentError) as caught:
        zarrlite.open(array(), mode="r", options={"/codecs/7": {"x": 1}})
    assert str(caught.value) == "options: zarr.json has no extension at '/codecs/7'"
    with pytest.raises(ArgumentError) as caught:
        zarrlite.open_array(array(), mode="r", options={"/codecs/1": {"x": 1}})
    assert str(caught.value) == "options['/codecs/1']: 'x' is not an option of zstd (known: none)"
    with pytest.raises(ArgumentError) as caught:
        zarrlite.open_group(group(), mode="r", options={"/codecs/1": {"x": 1}})
    assert str(caught.value) == "options: zarr.json has no extension at '/codecs/1'"


# Consolidated metadata.


def hierarchy() -> MemoryStore:
    store = MemoryStore()
    top = zarrlite.create_group(store, attributes={"top": 1})
    top.create_array("a", data=DATA, attributes={"n": 1})
    top.create_array("g/b", data=DATA)
    top.create_array("g/h/c", data=DATA)
    zarrlite.consolidate_metadata(store)
    return store


class Counting(MemoryStore):
    """A store that notes which keys were read."""

    def __init__(self, values: Any = None) -> None:
        super().__init__(values)
        self.reads: list[str] = []

    def get(self, key: str, *args: Any) -> Any:
        self.reads.append(key)
        return super().get(key, *args)


def test_the_document_holds_those_of_all_nodes_below() -> None:
    store = hierarchy()
    document = json.loads(bytes(store.get("zarr.json") or b""))
    assert document["attributes"] == {"top": 1}
    consolidated = document["consolidated_metadata"]
    assert {**consolidated, "metadata": None} == {"kind": "inline", "must_understand": False, "metadata": None}
    assert sorted(consolidated["metadata"]) == ["a", "g", "g/b", "g/h", "g/h/c"]
    for path, content in consolidated["metadata"].items():
        assert content == json.loads(bytes(store.get(f"{path}/zarr.json") or b""))


@pytest.mark.parametrize(("use", "consolidated"), [(None, True), (True, True), (False, False)])
def test_consolidated_documents_are_used_for_reading(use: bool | None, consolidated: bool) -> None:
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


def test_a_writer_never_believes_consolidated_documents() -> None:
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


def test_consolidated_documents_are_dropped_by_a_change_and_made_anew_on_request() -> None:
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
        plain = {path: node.metadata.to_json() for path, node in reader.members(None)}
        made = zarrlite.consolidate_metadata(store)
        assert not made.read_only
        again = zarrlite.open_group(store, mode="r", use_consolidated=True)
        found = {path: node.metadata.to_json() for path, node in again.members(None)}
        for document in found.values():
            document.pop("consolidated_metadata", None)  # a group below has its part of it
        assert found == plain


def test_the_attributes_of_a_group_are_no_part_of_what_it_consolidates() -> None:
    store = hierarchy()
    zarrlite.open_group(store, mode="r+").attrs["top"] = 2
    reader = zarrlite.open_group(store, mode="r", use_consolidated=True)
    assert reader.attrs["top"] == 2


def test_use_consolidated_false_holds_for_the_groups_below() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, name="g/a", data=DATA)
    zarrlite.consolidate_metadata(store, "g")
    zarrlite.create_array(store, name="g/b", data=DATA)
    assert list(zarrlite.open_group(store, mode="r", use_consolidated=False)["g"]) == ["a", "b"]


def test_a_nested_group_can_be_consolidated_on_its_own() -> None:
    store = hierarchy()
    made = zarrlite.consolidate_metadata(store, "g")
    assert made.path == "g"
    reader = zarrlite.open_group(store, path="g", mode="r", use_consolidated=True)
    assert [path for path, _ in reader.members(None)] == ["b", "h", "h/c"]
    # the outer document holds the inner one without its own copies
    zarrlite.consolidate_metadata(store)
    top = json.loads(bytes(store.get("zarr.json") or b""))["consolidated_metadata"]["metadata"]
    assert "consolidated_metadata" not in top["g"]
    assert [path for path, _ in zarrlite.open_group(store, mode="r")["g"].members(None)] == ["b", "h", "h/c"]


def test_a_group_in_consolidated_documents_names_its_faults() -> None:
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
        (group, "r", "the group at '' has no consolidated metadata"),
        (hierarchy, "r+", "consolidated metadata is used with mode='r' only: it would go stale under a writer"),
    ],
)
def test_use_consolidated_is_refused(store: Callable[[], MemoryStore], mode: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        zarrlite.open_group(store(), mode=mode, use_consolidated=True)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_only_groups_are_consolidated() -> None:
    with pytest.raises(NodeExistsError):
        zarrlite.consolidate_metadata(array())
    with pytest.raises(NodeNotFoundError):
        zarrlite.consolidate_metadata(nothing())


# Copies.


def stores(tmp_path: Path) -> dict[str, Any]:
    return {"memory": MemoryStore(), "local": LocalStore(tmp_path / "target"), "mapping": MappingStore({})}


@pytest.mark.parametrize("to", ["memory", "local", "mapping"])
@pytest.mark.parametrize("origin", ["memory", "local"])
@pytest.mark.parametrize("path", ["", "deep/down"])
def test_copies_are_equal_byte_for_byte(tmp_path: Path, origin: str, to: str, path: str) -> None:
    source: Any = MemoryStore() if origin == "memory" else LocalStore(tmp_path / "source")
    for key, value in contents(hierarchy()).items():
        source.set(key, value)
    source.set("g/b/notes.txt", b"kept")
    # as another implementation may have written it: another layout, and a member that may be ignored
    odd = json.loads(bytes(source.get("a/zarr.json")))
    source.set("a/zarr.json", json.dumps({**odd, "odd": {"must_understand": False}}, separators=(",", ":")).encode())
    target = stores(tmp_path)[to]
    made = zarrlite.copy(zarrlite.open_group(source, mode="r"), target, path)
    assert isinstance(made, Group)
    assert not made.read_only
    assert made.path == path
    prefix = f"{path}/" if path else ""
    copied = {key[len(prefix) :]: value for key, value in contents(target).items() if key.startswith(prefix)}
    assert copied == contents(source)
    array = zarrlite.copy(zarrlite.open_array(source, path="a"), target, prefix + "again")
    assert isinstance(array, Array)
    np.testing.assert_array_equal(array[...], DATA)
    assert contents(target)[prefix + "again/zarr.json"] == source.get("a/zarr.json")


def test_a_copy_replaces_on_request_only() -> None:
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
def test_a_copy_does_not_remove_its_source(path: str) -> None:
    store = hierarchy()
    before = contents(store)
    with pytest.raises(ArgumentError):
        zarrlite.copy(zarrlite.open(store, path="g/h/c", mode="r"), store, path, overwrite=True)
    assert contents(store) == before


def test_a_copy_onto_itself_is_noticed_through_another_object(tmp_path: Path) -> None:
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


def test_siblings_with_a_common_beginning_are_not_the_same() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, name="a", data=DATA)
    np.testing.assert_array_equal(zarrlite.copy(zarrlite.open(store, path="a"), store, "ab")[...], DATA)


class Failing(MemoryStore):
    """A store that is full after some values."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def set(self, key: str, value: Any) -> None:
        if not self.room:
            raise StoreError("full")
        self.room -= 1
        super().set(key, value)


@pytest.mark.parametrize("make", [array, hierarchy], ids=lambda f: f.__name__)
def test_half_a_copy_does_not_look_like_a_node(make: Callable[[], MemoryStore]) -> None:
    """Whatever is opened while or after a copy fails is complete: all of its chunks are there."""
    source = make()
    whole = len(contents(source))
    for room in range(whole):
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
def test_delete_removes_a_node_and_what_is_below_it(tmp_path: Path, local: bool) -> None:
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


# Messages.

KNOWN_CODECS = "blosc, bytes, crc32c, gzip, packbits, sharding_indexed, transpose, vlen-bytes, vlen-utf8, zstd"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: zarrlite.open(None, mode="rw"),  # type: ignore[arg-type]
            ArgumentError,
            "mode must be one of 'r', 'r+', 'a', 'w', 'w-', not 'rw'",
        ),
        (
            lambda: zarrlite.open(3),
            ArgumentError,
            "a store is a Store, a path, a URI, a mutable mapping or None, not int",
        ),
        (
            lambda: zarrlite.open("s3://bucket/x"),
            ArgumentError,
            "'s3://bucket/x': stores are opened by file:// and memory:// URIs and by paths, not by s3://",
        ),
        (
            lambda: zarrlite.open("/no/such/place", mode="r"),
            NodeNotFoundError,
            "no array or group in ReadOnlyStore(LocalStore('/no/such/place')): there is no zarr.json",
        ),
        (
            lambda: zarrlite.open(LocalStore("/no/such/place"), mode="r+", path="/a/b/"),
            NodeNotFoundError,
            "no array or group at 'a/b' in LocalStore('/no/such/place'): there is no a/b/zarr.json",
        ),
        (
            lambda: zarrlite.open(version_2(), mode="r+"),
            NodeNotFoundError,
            "no array or group in MemoryStore(3 keys): what is there is Zarr version 2, and zarrlite reads version 3",
        ),
        (
            lambda: zarrlite.open_array(array(), mode="w-", **NEW),
            NodeExistsError,
            "there is a node at '' in MemoryStore(3 keys) already",
        ),
        (
            lambda: zarrlite.create_group(array()),
            NodeExistsError,
            "there is a node at '' in MemoryStore(3 keys) already; overwrite=True replaces it",
        ),
        (
            lambda: zarrlite.open_array(group(), path="", mode="r+"),
            NodeExistsError,
            "'' in MemoryStore(3 keys) is a group, not an array",
        ),
        (
            lambda: zarrlite.open_group(array(), mode="r+"),
            NodeExistsError,
            "'' in MemoryStore(3 keys) is an array, not a group",
        ),
        (
            lambda: zarrlite.open_group(broken(), mode="r"),
            MetadataError,
            "zarr.json#: is not JSON: Unterminated string starting at at line 1, column 33",
        ),
        (
            lambda: zarrlite.open(None, dtype="u1", chunks=2),
            ArgumentError,
            "a group takes no dtype, chunks; an array needs shape= or data=",
        ),
        (lambda: zarrlite.create_array(None), ArgumentError, "an array needs shape= and dtype=, or data="),
        (
            lambda: zarrlite.create_array(None, shape=3, dtype="u1", compressors="lzma"),
            UnknownExtensionError,
            f'codec#: "lzma" is not a known codec (known: {KNOWN_CODECS})',
        ),
        (
            lambda: assign(zarrlite.open(array(), mode="r"), 0, 1),
            ReadOnlyError,
            "<Array / shape=(2, 3) dtype=int16> was opened for reading only",
        ),
        (
            lambda: zarrlite.open(None, path="a/../b"),
            ArgumentError,
            "invalid node name '..': node names must not consist of periods only",
        ),
        (lambda: zarrlite.open(None, path=3), ArgumentError, "a path must be a string, not int"),  # type: ignore[arg-type]
        (
            lambda: zarrlite.open_array(None, missing_chunks="zero", **NEW),
            ArgumentError,
            "missing_chunks must be 'fill' or 'error', not 'zero'",
        ),
    ],
    ids=range(18),
)
def test_messages(
    call: Callable[[], Any], error: type[ZarrliteError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.codecs, "names", lambda: KNOWN_CODECS.split(", "))  # without what other tests add
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
    assert type(caught.value) is error


def test_opening_an_array_that_is_to_be_made_asks_for_its_shape() -> None:
    for mode, store in (("w", array()), ("w-", nothing()), ("a", nothing())):
        with pytest.raises((ArgumentError, NodeNotFoundError), match="shape="):
            zarrlite.open_array(store, mode=mode)  # type: ignore[arg-type]


def test_errors_are_caught_as_what_they_are_elsewhere() -> None:
    with pytest.raises(FileNotFoundError):
        zarrlite.open("/no/such/place", mode="r")
    with pytest.raises(FileExistsError):
        zarrlite.create_group(group())
    with pytest.raises(PermissionError):
        zarrlite.open(group(), mode="r").attrs["x"] = 1
    with pytest.raises(ValueError):
        zarrlite.open(broken())
    with pytest.raises(KeyError):
        zarrlite.open(group())["nope"]


def test_names_that_load_later_leave_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(*arguments: Any) -> None: ...

    monkeypatch.setattr(zarrlite, "open", other)
    monkeypatch.delitem(vars(zarrlite), "validate", raising=False)
    assert zarrlite.validate(b"{}")
    assert zarrlite.open is other


@pytest.mark.parametrize("name", ["open", "open_group", "create_group", "copy", "consolidate_metadata"])
def test_the_types_of_functions_can_be_looked_up(name: str) -> None:
    assert str(Group)[8:-2] in str(typing.get_type_hints(getattr(zarrlite, name))["return"])


def test_all_names_are_there() -> None:
    found: dict[str, Any] = {}
    exec("from zarrlite import *", found)
    assert {*zarrlite.__all__} <= {*found} & {*dir(zarrlite)}
