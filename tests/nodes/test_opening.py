"""Opening and creating nodes: modes, store arguments, read-only nodes, new nodes, options, and error messages."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nodes.states import DATA, GROUP, NEW, array, assign, broken, contents, delete, group, nothing, version_2

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
    UnknownExtensionError,
    ZarrliteError,
)
from zarrlite.extensions import registry
from zarrlite.stores import PrefixStore, ReadOnlyStore

# Modes. An outcome is an exception, the type of the opened node, or a tuple with the type of the new node.

STATES = (nothing, array, group, version_2, broken)
Outcome = type | tuple[type, str]

MODES: dict[str, dict[str, tuple[Outcome, ...]]] = {
    # mode -> outcomes for stores with: nothing, an array, a group, a Zarr v2 array, a broken document
    "open": {
        "r": (NodeNotFoundError, Array, Group, Array, MetadataError),
        "r+": (NodeNotFoundError, Array, Group, Array, MetadataError),
        "a": ((Group, "new"), Array, Group, Array, MetadataError),
        "w": ((Group, "new"),) * 5,
        "w-": ((Group, "new"), *(NodeExistsError,) * 4),
    },
    "open with a shape": {
        "r": (NodeNotFoundError, Array, Group, Array, MetadataError),
        "r+": (NodeNotFoundError, Array, Group, Array, MetadataError),
        "a": ((Array, "new"), Array, Group, Array, MetadataError),
        "w": ((Array, "new"),) * 5,
        "w-": ((Array, "new"), *(NodeExistsError,) * 4),
    },
    "open_array": {
        "r": (NodeNotFoundError, Array, NodeExistsError, Array, MetadataError),
        "r+": (NodeNotFoundError, Array, NodeExistsError, Array, MetadataError),
        "a": ((Array, "new"), Array, NodeExistsError, Array, MetadataError),
        "w": ((Array, "new"),) * 5,
        "w-": ((Array, "new"), *(NodeExistsError,) * 4),
    },
    "open_group": {
        "r": (NodeNotFoundError, NodeExistsError, Group, NodeExistsError, MetadataError),
        "r+": (NodeNotFoundError, NodeExistsError, Group, NodeExistsError, MetadataError),
        "a": ((Group, "new"), NodeExistsError, Group, NodeExistsError, MetadataError),
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
def test_every_mode_has_the_expected_outcome_on_every_state_of_the_store(
    function: str, mode: str, state: Callable[[], MemoryStore], outcome: Outcome, under: str
) -> None:
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
    is_new = not isinstance(outcome, type)
    assert type(node) is (outcome[0] if is_new else outcome)  # type: ignore[index]
    assert node.path == under
    assert node.read_only == (mode == "r" or (state is version_2 and not is_new))
    assert dict(node.attrs) == ({} if is_new else {"was": "here"})
    if not is_new:
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


def test_mode_a_ignores_the_shape_if_the_array_exists() -> None:
    assert zarrlite.open(array(), mode="a", shape=(9,), dtype="f8").shape == DATA.shape


def test_open_group_refuses_a_shape() -> None:
    with pytest.raises((ArgumentError, TypeError)):
        zarrlite.open_group(MemoryStore(), shape=(2,), dtype="u1")


def test_misspelt_keywords_are_refused_for_existing_nodes() -> None:
    with pytest.raises((ArgumentError, TypeError)):
        zarrlite.open(array(), mode="r", missing_chunk="error")


# Forms of the store argument.


@pytest.mark.parametrize("form", ["str", "Path", "file URI", "Store"])
def test_a_directory_can_be_named_in_every_form(tmp_path: Path, form: str) -> None:
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


def test_memory_stores_without_a_name_are_new_each_time() -> None:
    zarrlite.create_group("memory://")
    with pytest.raises(NodeNotFoundError):
        zarrlite.open("memory://", mode="r")
    assert isinstance(zarrlite.open(), Group)


def test_memory_stores_with_a_name_are_shared() -> None:
    zarrlite.create_array("memory://test_api", data=DATA, overwrite=True)
    np.testing.assert_array_equal(zarrlite.open("memory://test_api", mode="r")[...], DATA)
    with pytest.raises(NodeNotFoundError):
        zarrlite.open("memory://test_api_other", mode="r")


def test_a_dict_can_be_a_store() -> None:
    mapping: dict[str, bytes] = {}
    zarrlite.create_array(mapping, data=DATA, chunks=DATA.shape, compressors=None)
    assert sorted(mapping) == ["c/0/0", "zarr.json"]
    assert mapping["c/0/0"] == DATA.tobytes()
    np.testing.assert_array_equal(zarrlite.open(mapping, mode="r")[...], DATA)


def test_a_prefix_of_a_store_can_be_a_store() -> None:
    store = MemoryStore()
    zarrlite.create_array(PrefixStore(store, "in/side/"), data=DATA)
    assert sorted(store.list()) == ["in/side/c/0/0", "in/side/zarr.json"]


def test_a_read_only_local_store_is_read_only_in_every_mode(tmp_path: Path) -> None:
    zarrlite.create_array(tmp_path, data=DATA)
    node = zarrlite.open(LocalStore(tmp_path, read_only=True), mode="r+")
    assert node.read_only
    with pytest.raises(ReadOnlyError):
        node[0, 0] = 1


# Read-only nodes.


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
def test_read_only_nodes_refuse_every_change(write: Callable[[Group], Any], opened: str) -> None:
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


def test_members_of_read_only_groups_can_be_read_and_required() -> None:
    node = zarrlite.open_group(store_with_everything(), mode="r")
    assert node.require_group("g").read_only
    assert node.require_array("a", shape=(3, 4), dtype="i4")[2, 3] == 11
    assert node["a"].attrs["k"] == 1


# New nodes.

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
def test_nodes_are_replaced_only_on_request(make: Callable[..., Any]) -> None:
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
def test_files_outside_nodes_are_kept(tmp_path: Path, make: Callable[..., Any], mode: str) -> None:
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
def test_leftover_chunks_do_not_appear_in_a_new_array(make: Callable[[Any], Array]) -> None:
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


# Options.


def test_missing_chunks_error_applies_to_every_way_of_opening() -> None:
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


def test_members_inherit_write_empty_chunks() -> None:
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


def test_strict_false_repairs_documents_that_would_be_refused() -> None:
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


def test_writing_a_repaired_document_makes_it_valid() -> None:
    store = MemoryStore({"zarr.json": json.dumps(LENIENT).encode()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetadataWarning)
        node = zarrlite.open_array(store, mode="r+", strict=False)
        node.attrs["x"] = 1
        node[1] = 5
    assert zarrlite.open_array(store, mode="r")[...].tolist() == [0, 5]


def test_options_must_point_to_an_extension() -> None:
    with pytest.raises(ArgumentError) as caught:
        zarrlite.open(array(), mode="r", options={"/codecs/7": {"x": 1}})
    assert str(caught.value) == "options: zarr.json has no extension at '/codecs/7'"
    with pytest.raises(ArgumentError) as caught:
        zarrlite.open_array(array(), mode="r", options={"/codecs/1": {"x": 1}})
    assert str(caught.value) == "options['/codecs/1']: 'x' is not an option of zstd (known: none)"
    with pytest.raises(ArgumentError) as caught:
        zarrlite.open_group(group(), mode="r", options={"/codecs/1": {"x": 1}})
    assert str(caught.value) == "options: zarr.json has no extension at '/codecs/1'"


@pytest.mark.parametrize("mode", ["a", "w", "w-"])
def test_options_are_refused_for_a_new_group(mode: Any) -> None:
    store = zarrlite.MemoryStore()
    for create in (zarrlite.open, zarrlite.open_group):
        with pytest.raises(ArgumentError) as caught:
            create(store, mode=mode, options={"/codecs/1": {"x": 1}})
        assert str(caught.value) == "options: zarr.json has no extension at '/codecs/1'"
    assert [*store.list()] == []


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
            "store must be a Store, a path, a URI, a mapping or None, not int",
        ),
        (
            lambda: zarrlite.open("nothing://x"),
            ArgumentError,
            "store must be a path or a URL that fsspec knows, not 'nothing://x': Protocol not known: nothing",
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
            lambda: zarrlite.open(version_2(), mode="r+", path="a"),
            NodeNotFoundError,
            "no array or group at 'a' in MemoryStore(3 keys): there is no a/zarr.json",
        ),
        (
            lambda: zarrlite.open_array(array(), mode="w-", **NEW),
            NodeExistsError,
            "a node already exists at '' in MemoryStore(3 keys); mode='w' replaces it",
        ),
        (
            lambda: zarrlite.create_group(array()),
            NodeExistsError,
            "a node already exists at '' in MemoryStore(3 keys); overwrite=True replaces it",
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
            "a group does not accept dtype, chunks; for an array, pass shape= or data=",
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
def test_errors_have_the_expected_class_and_message(
    call: Callable[[], Any], error: type[ZarrliteError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.codecs, "names", lambda: KNOWN_CODECS.split(", "))  # not those of other tests
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
    assert type(caught.value) is error


def test_creating_an_array_without_a_shape_asks_for_one() -> None:
    for mode, store in (("w", array()), ("w-", nothing()), ("a", nothing())):
        with pytest.raises((ArgumentError, NodeNotFoundError), match="shape="):
            zarrlite.open_array(store, mode=mode)  # type: ignore[arg-type]


def test_errors_are_subclasses_of_standard_exceptions() -> None:
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


# Runtime configuration takes effect or is refused, even for existing nodes.


OPEN: dict[str, Callable[..., Any]] = {"open": zarrlite.open, "open_array": zarrlite.open_array}


@pytest.mark.parametrize("function", OPEN.values(), ids=OPEN)
@pytest.mark.parametrize("mode", ["r", "r+", "a"])
def test_config_applies_to_existing_arrays(function: Callable[..., Any], mode: str) -> None:
    store = array()
    for write_empty in (True, False):
        opened = function(store, mode=mode, config={"write_empty_chunks": write_empty, "order": "C"})
        assert opened.options.write_empty_chunks is write_empty
    assert function(store, mode=mode, write_empty_chunks=True, config={}).options.write_empty_chunks is True


def test_config_applies_to_arrays_of_existing_groups() -> None:
    opened: Any = zarrlite.open(group(), config={"write_empty_chunks": True})
    assert opened["child"].options.write_empty_chunks is True


@pytest.mark.parametrize("function", OPEN.values(), ids=OPEN)
@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"config": {"order": "K"}}, "order, the memory order of results, must be 'C' or 'F', not 'K'"),
        ({"config": {"x": 1}}, "config must have only the members write_empty_chunks and order, not {'x': 1}"),
        ({"config": 5}, "config must be a mapping, not 5"),
        ({"config": {"write_empty_chunks": 1}}, "config['write_empty_chunks'] must be True or False, not 1"),
        ({"order": "K"}, "order, the memory order of results, must be 'C' or 'F', not 'K'"),
    ],
)
def test_configuration_that_would_be_ignored_is_refused(
    function: Callable[..., Any], keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        function(array(), **keywords)
    assert str(caught.value) == message
