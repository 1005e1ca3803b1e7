"""Groups: mappings from names to members, which are found by listing the store and read lazily."""

from __future__ import annotations

import pickle
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
    KeyRefusedError,
    LocalStore,
    MemoryStore,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    StoreError,
)
from zarrlite.chunks.chunks import ArrayOptions


class Counting(MemoryStore):
    """A store that records which keys are read and which prefixes are listed."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.listings: list[str] = []

    def get(self, key: str, *args: Any) -> Any:
        self.reads.append(key)
        return super().get(key, *args)

    def list_prefix(self, prefix: str) -> Any:
        self.listings.append(prefix)
        return super().list_prefix(prefix)

    def forget(self) -> None:
        self.reads.clear()
        self.listings.clear()


def hierarchy(store: Any = None) -> Group:
    top = zarrlite.create_group(MemoryStore() if store is None else store)
    top.create_array("b", data=np.arange(6, dtype="i2").reshape(2, 3))
    top.create_array("a", shape=(), dtype="f8")
    top.create_group("g", attributes={"k": 1}).create_array("c", shape=(3,), dtype="string")
    top.create_group("g/h")
    top.create_group("empty")
    return top


@pytest.fixture(params=["memory", "local", "dict"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return {"memory": MemoryStore, "local": lambda: LocalStore(tmp_path / "x"), "dict": dict}[request.param]()


# The mapping.


def test_a_group_is_a_mapping_of_names_to_members(store: Any) -> None:
    top = hierarchy(store)
    assert list(top) == list(top.keys()) == ["a", "b", "empty", "g"]
    assert len(top) == 4
    assert [type(node) for node in top.values()] == [Array, Array, Group, Group]
    assert [(name, node.path) for name, node in top.items()] == [(n, n) for n in ("a", "b", "empty", "g")]
    assert [name for name, _ in top.arrays()] == list(top.array_keys()) == ["a", "b"]
    assert [name for name, _ in top.groups()] == list(top.group_keys()) == ["empty", "g"]
    assert dict(top["g"].items()).keys() == {"c", "h"}
    assert list(top["empty"]) == []
    assert len(top["empty"]) == 0


def test_paths_reach_members_at_any_depth(store: Any) -> None:
    top = hierarchy(store)
    for path in ("g/c", "/g/c", "g/c/", "/g/c/"):
        assert top[path].path == "g/c"
        assert path in top
    assert top["g"]["c"].name == "/g/c"
    assert top[""] is top
    assert top["/"] is top
    assert "" in top
    assert top["g/h"].basename == "h"


def test_missing_members_are_not_found(store: Any) -> None:
    top = hierarchy(store)
    for path in ("nope", "g/nope", "nope/c", "b/c", "g/c/0"):
        assert path not in top
        assert top.get(path) is None
        assert top.get(path, 7) == 7
        with pytest.raises(NodeNotFoundError) as caught:
            top[path]
        assert str(caught.value) == f"no array or group at {path!r} in {top.store!r}: there is no {path}/zarr.json"
        with pytest.raises(KeyError):
            del top[path]
    for odd in (None, 3, b"b", ("b",)):
        assert odd not in top


def test_paths_are_relative_to_the_group() -> None:
    group = hierarchy()["g"]
    assert isinstance(group, Group)
    assert list(group) == ["c", "h"]
    group.create_array("x/y", data=[1])
    assert group["x/y"].path == "g/x/y"
    assert "x" in group
    assert "g" not in group
    with pytest.raises(NodeNotFoundError, match="'g/nope'"):
        group["nope"]


def test_repr_shows_the_path() -> None:
    top = hierarchy()
    assert repr(top) == "<Group />"
    assert repr(top["g/h"]) == "<Group /g/h>"


def test_members_can_be_limited_in_depth() -> None:
    top = hierarchy()
    assert [path for path, _ in top.members()] == ["a", "b", "empty", "g"]
    assert [path for path, _ in top.members(1)] == ["a", "b", "empty", "g", "g/c", "g/h"]
    assert [path for path, _ in top.members(None)] == ["a", "b", "empty", "g", "g/c", "g/h"]
    assert (top.nmembers(), top.nmembers(1), top.nmembers(None)) == (4, 6, 6)
    assert all(node.path == path for path, node in top.members(None))


@pytest.mark.parametrize("names", [["a", "a-b", "a.b", "a b", "ab", "A", "10", "9"]])
def test_members_are_sorted_by_name_with_and_without_consolidated_metadata(store: Any, names: list[str]) -> None:
    top = zarrlite.create_group(store)
    for name in names:
        top.create_group(name)
    listed = list(zarrlite.open_group(store, mode="r"))
    top.consolidate_metadata()
    assert list(zarrlite.open_group(store, mode="r", use_consolidated=True)) == listed == sorted(names)


# Reads and listings of the store.


def test_names_are_listed_without_reading_documents() -> None:
    class Sized(Counting):
        def size(self, key: str) -> int | None:
            return None if key not in self._mapping else 1

    store = Sized()
    top = hierarchy(store)
    store.forget()
    assert list(top.keys()) == ["a", "b", "empty", "g"]
    assert len(top) == 4
    assert "g/c" in top
    assert "nope" not in top
    assert store.reads == []


def test_each_document_is_read_once() -> None:
    store = Counting()
    top = hierarchy(store)
    store.forget()
    assert len(list(top.items())) == 4
    assert sorted(store.reads) == ["a/zarr.json", "b/zarr.json", "empty/zarr.json", "g/zarr.json"]
    store.forget()
    assert len(list(top.members(None))) == 6
    assert len(store.reads) == 6
    store.forget()
    top.tree()
    assert len(store.reads) == 6
    store.forget()
    assert top["g/c"].shape == (3,)
    assert store.reads == ["g/c/zarr.json"]
    assert store.listings == []


def test_iteration_reads_documents_lazily() -> None:
    store = Counting()
    top = hierarchy(store)
    store.forget()
    assert next(iter(top.items()))[0] == "a"
    assert store.reads == ["a/zarr.json"]


def test_finding_members_does_not_list_chunks(tmp_path: Path) -> None:
    class Noting(LocalStore):
        listed: list[str] = []

        def list_dir(self, prefix: str) -> Any:
            self.listed.append(prefix)
            return super().list_dir(prefix)

        def list_prefix(self, prefix: str) -> Any:
            raise AssertionError("the hierarchy was listed completely")

    hierarchy(LocalStore(tmp_path))
    store = Noting(tmp_path)
    assert len(list(zarrlite.open_group(store, mode="r").members(None))) == 6
    assert store.listed == ["", "empty/", "g/", "g/h/"]


# Keys that do not belong to a node.


def test_files_and_folders_without_a_document_are_ignored(tmp_path: Path) -> None:
    top = hierarchy(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "zarr.json").mkdir()
    (tmp_path / "__zarrlite.x").mkdir()
    (tmp_path / "__zarrlite.x" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    (tmp_path / "v2").mkdir()
    (tmp_path / "v2" / ".zgroup").write_text("{}")
    assert list(top) == ["a", "b", "empty", "g"]
    assert "notes" not in top
    assert "file" not in top
    assert "odd" not in top
    with pytest.raises(NodeNotFoundError, match="there is only a Zarr v2 node, which is not a member"):
        top["v2"]


def test_a_broken_member_leaves_the_others_usable() -> None:
    top = hierarchy()
    top.store.set("b/zarr.json", b"[]")
    assert list(top) == ["a", "b", "empty", "g"]
    assert top["a"].shape == ()
    with pytest.raises(MetadataError, match=r"^b/zarr.json#: must be an object"):
        top["b"]
    with pytest.raises(MetadataError):
        top.get("b")
    for names in (lambda: [name for name, _ in top.items()], lambda: [path for path, _ in top.members()]):
        with pytest.warns(UserWarning, match="'b' is skipped: b/zarr.json#: must be an object"):
            assert names() == ["a", "empty", "g"]
    assert str(top.tree(1)).split("\n") == [
        "/",
        "├── a () float64",
        "├── b (refused: b/zarr.json#: must be an object, not [])",
        "├── empty",
        "└── g",
    ]


@pytest.mark.parametrize("link", ["g", "g/zarr.json"])
def test_a_member_that_is_a_symlink_out_of_the_store_is_named(tmp_path: Path, link: str) -> None:
    top = hierarchy(LocalStore(tmp_path / "store"))
    (tmp_path / "store" / link).rename(tmp_path / "outside")
    (tmp_path / "store" / link).symlink_to(tmp_path / "outside")
    top = zarrlite.open_group(tmp_path / "store", mode="r")
    assert list(top) == ["a", "b", "empty", "g"]
    assert "g (refused: 'g/zarr.json' must not leave" in top.tree()
    with pytest.warns(UserWarning, match="'g' is skipped: 'g/zarr.json' must not leave"):
        assert [name for name, _ in top.members(None)] == ["a", "b", "empty"]
    with pytest.raises(KeyRefusedError):
        top["g"]


# Changes.


def test_created_members_can_be_opened(store: Any) -> None:
    top = zarrlite.create_group(store, attributes={"k": [1]})
    array = top.create_array("x/y/z", shape=(4,), dtype="u2", chunks=2, attributes={"a": 1}, fill_value=3)
    assert array[...].tolist() == [3] * 4
    group = top.create_group("x/g", attributes={"g": 1})
    assert group.attrs == {"g": 1}
    again = zarrlite.open_group(store, mode="r")
    assert again.attrs == {"k": [1]}
    assert [path for path, _ in again.members(None)] == ["x", "x/g", "x/y", "x/y/z"]


def test_name_can_be_passed_as_a_keyword() -> None:
    top = zarrlite.create_group(None)
    top.create_array(name="a", shape=1, dtype="u1")
    top.create_group(name="g")
    top.require_group(name="h")
    top.require_array(name="b", shape=1, dtype="u1")
    assert list(top) == ["a", "b", "g", "h"]


def test_members_are_replaced_only_on_request() -> None:
    top = hierarchy()
    for make in (top.create_group, lambda path, **k: top.create_array(path, data=[1], **k)):
        for path in ("b", "g"):
            with pytest.raises(NodeExistsError) as caught:
                make(path)
            assert str(caught.value) == (
                f"a node already exists at {path!r} in {top.store!r}; overwrite=True replaces it"
            )
    top.create_group("b", overwrite=True)
    assert list(top["b"]) == []
    top.create_array("g", data=[1], overwrite=True)
    assert "g/c" not in top
    assert top["g"][...].tolist() == [1]


def test_require_returns_existing_members_and_creates_missing_ones(store: Any) -> None:
    top = zarrlite.create_group(store)
    top.require_group("x/g").attrs["k"] = 1
    assert top.require_group("x/g").attrs == {"k": 1}
    array = top.require_array("x/a", shape=(2, 3), dtype="i4", chunks=(1, 3))
    array[...] = 5
    again = top.require_array("x/a", shape=[2, 3], dtype=np.int32)
    assert again[1, 2] == 5
    assert again.chunks == (1, 3)


@pytest.mark.parametrize(
    ("path", "shape", "dtype", "message"),
    [
        ("b", (2, 4), "i2", "<Array /b shape=(2, 3) dtype=int16> {} shape (2, 4) and data type int16"),
        ("b", (2, 3), "f4", "<Array /b shape=(2, 3) dtype=int16> {} shape (2, 3) and data type float32"),
        ("g", (2, 3), "i2", "<Group /g> {} shape (2, 3) and data type int16"),
    ],
)
def test_require_array_refuses_other_shapes_and_data_types(path: str, shape: Any, dtype: str, message: str) -> None:
    with pytest.raises(NodeExistsError) as caught:
        hierarchy().require_array(path, shape=shape, dtype=dtype)
    assert str(caught.value) == message.format("already exists and is not an array of")


def test_require_group_refuses_an_array() -> None:
    with pytest.raises(NodeExistsError) as caught:
        hierarchy().require_group("b")
    assert str(caught.value) == "'b' is an array, not a group"


def test_del_removes_a_member_and_everything_below_it(store: Any) -> None:
    top = hierarchy(store)
    del top["b"]
    assert "b" not in top
    del top["g/c"]
    assert list(top["g"]) == ["h"]
    del top["g"]
    assert list(top) == ["a", "empty"]
    assert not any(key.startswith(("b/", "g/")) for key in top.store.list())
    for path in ("", "/"):
        with pytest.raises(ArgumentError) as caught:
            del top[path]
        assert str(caught.value) == "a group cannot delete itself as its own member; use delete()"


def test_assignment_stores_an_array(store: Any) -> None:
    top = zarrlite.create_group(store)
    top["x"] = np.arange(3)
    top["deep/y"] = [[1.5, 2.5]]
    top["text"] = ["a", "bcd"]
    top["scalar"] = 7
    assert top["x"][...].tolist() == [0, 1, 2]
    assert top["deep/y"].dtype == np.float64
    assert top["text"].metadata.data_type.name == "string"
    assert top["scalar"][()] == 7
    top["x"] = ["now text"]
    assert top["x"][...].tolist() == ["now text"]
    top["deep"] = np.zeros(2)
    assert isinstance(top["deep"], Array)


def test_a_member_can_be_assigned_to_itself_or_another() -> None:
    top = zarrlite.create_group(None)
    top["x"] = np.arange(5)
    top["y"] = top["x"]
    assert top["y"][...].tolist() == [0, 1, 2, 3, 4]
    top["x"] = top["x"]
    assert top["x"][...].tolist() == [0, 1, 2, 3, 4]


def test_a_failed_assignment_keeps_the_old_member() -> None:
    top = hierarchy()
    for value in ([[1], [2, 3]], object(), {"a": 1}):
        with pytest.raises(ArgumentError):
            top["b"] = value
    assert top["b"][1, 2] == 5


def test_members_cannot_be_created_below_an_array() -> None:
    top = hierarchy()
    for make in (top.create_group, lambda path: top.create_array(path, data=[1]), lambda path: assign(top, path, [1])):
        with pytest.raises(NodeExistsError) as caught:
            make("b/x")
        assert str(caught.value) == "'b/x' cannot be created: 'b' is an array, and only groups have members"


def assign(target: Any, index: Any, value: Any) -> None:
    target[index] = value


# Attributes.


def test_attributes_are_written_to_the_store() -> None:
    top = hierarchy()
    group = top["g"]
    group.attrs["new"] = {"x": None}
    group.update_attributes({"more": 1})
    assert top["g"].attrs == {"k": 1, "new": {"x": None}, "more": 1}
    top.attrs.put({"top": 1})
    assert zarrlite.open_group(top.store, mode="r").attrs == {"top": 1}
    with pytest.raises(ArgumentError):
        top.attrs["bad"] = object()
    assert top.attrs == {"top": 1}


def test_changing_attributes_of_a_group_keeps_its_consolidated_metadata() -> None:
    top = hierarchy()
    top.consolidate_metadata()
    top.attrs["k"] = 2
    reader = zarrlite.open_group(top.store, mode="r", use_consolidated=True)
    assert reader.attrs == {"k": 2}
    assert list(reader) == ["a", "b", "empty", "g"]


# Names.

ODD_NAMES = {
    "unicode": "größe 名前 \U0001f600",
    "space": " ",
    "newline": "a\nb",
    "percent": "a%20b",
    "leading dot": ".hidden",
    "dots and more": "..a",
    "like a chunk": "c",
    "like a number": "0",
    "like an URI": "file:",
    "quotes": "'\"",
    "question": "a?b#c*[d]",
    "composed": "é",
    "decomposed": "e\u0301",
    "long": "x" * 200,
    "underscore": "_x",
    "tilde": "~",
    "dash": "-rf",
}


def test_unusual_names_are_stored_and_listed(store: Any) -> None:
    top = zarrlite.create_group(store)
    for i, name in enumerate(ODD_NAMES.values()):
        top.create_array(name, data=[i])
        top.create_array(f"g/{name}/deep", data=[i])
    assert set(top) == {*ODD_NAMES.values(), "g"}
    again = zarrlite.open_group(store, mode="r")
    for i, name in enumerate(ODD_NAMES.values()):
        assert name in again
        assert again[name][0] == i
        assert again[f"g/{name}/deep"][0] == i
    assert zarrlite.consolidate_metadata(store).nmembers() == len(ODD_NAMES) + 1
    assert set(zarrlite.open_group(store, mode="r")) == {*ODD_NAMES.values(), "g"}


REFUSED_NAMES = [
    ("..", "invalid node name '..': node names must not consist of periods only"),
    (".", "invalid node name '.': node names must not consist of periods only"),
    ("...", "invalid node name '...': node names must not consist of periods only"),
    ("a/../b", "invalid node name '..': node names must not consist of periods only"),
    ("a//b", "invalid node name '': node names must not be empty"),
    (
        "__zarrlite.x",
        "invalid node name '__zarrlite.x': node names must not start with '__zarrlite.', "  # noqa: ISC004
        "the prefix of zarrlite's own keys",
    ),
    ("zarr.json", "invalid node name 'zarr.json': node names must not be 'zarr.json', the metadata document"),
    ("a\0b", "invalid node name 'a\\x00b': node names must not contain NUL or a backslash"),
    ("a\\b", "invalid node name 'a\\\\b': node names must not contain NUL or a backslash"),
    (
        "\ud800",
        "invalid node name '\\ud800': node names must not contain lone surrogates, which are not Unicode text",
    ),
]


@pytest.mark.parametrize(("name", "message"), REFUSED_NAMES)
def test_names_that_the_specification_forbids_are_refused(store: Any, name: str, message: str) -> None:
    top = zarrlite.create_group(store)
    for touch in (
        lambda: top.create_group(name),
        lambda: top.create_array(name, data=[1]),
        lambda: top.require_group(name),
        lambda: assign(top, name, [1]),
        lambda: top[name],
        lambda: zarrlite.open(store, path=name),
        lambda: zarrlite.create_array(store, name=name, data=[1]),
    ):
        with pytest.raises(ArgumentError) as caught:
            touch()
        assert str(caught.value) == message
    assert name not in top
    assert list(top.store.list()) == ["zarr.json"]


@pytest.mark.parametrize("name", ["", "/", "//"])
def test_empty_names_are_refused(name: str) -> None:
    top = zarrlite.create_group(None)
    for touch in (top.create_group, lambda name: top.create_array(name, data=[1])):
        with pytest.raises(ArgumentError) as caught:
            touch(name)
        assert str(caught.value) == "the name of a member must not be empty"


def test_names_too_long_for_the_file_system_are_refused(tmp_path: Path) -> None:
    name = "x" * 300
    top = zarrlite.create_group(tmp_path)
    with pytest.raises(StoreError, match="its path, or a name in it, is too long for the file system"):
        top.create_group(name)
    assert name not in top
    assert top.get(name) is None
    assert list(top.store.list()) == ["zarr.json"]


# Trees.


def test_tree_draws_one_line_for_each_node() -> None:
    top = hierarchy()
    expected = """/
├── a () float64
├── b (2, 3) int16
├── empty
└── g
    ├── c (3,) string
    └── h"""
    assert str(top.tree()) == repr(top.tree()) == expected
    assert str(top.tree(level=1)) == "/\n├── a () float64\n├── b (2, 3) int16\n├── empty\n└── g"
    assert str(top.tree(level=0)) == str(top.tree(level=-1)) == "/"
    assert str(top["g"].tree()) == "/g\n├── c (3,) string\n└── h"
    assert str(top["empty"].tree()) == "/empty"
    top.consolidate_metadata()
    assert str(zarrlite.open_group(top.store, mode="r").tree()) == expected


def test_tree_draws_a_bar_next_to_the_members_of_a_group_with_siblings() -> None:
    top = zarrlite.create_group(None)
    top.create_array("a/b/c", data=np.zeros((1, 2), "u1"))
    top.create_group("d")
    assert str(top.tree()) == "/\n├── a\n│   └── b\n│       └── c (1, 2) uint8\n└── d"


# Pickling, and options of arrays.


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_groups_can_be_pickled(tmp_path: Path, mode: Any) -> None:
    hierarchy(tmp_path).consolidate_metadata()
    top = zarrlite.open_group(tmp_path, mode=mode, missing_chunks="error", write_empty_chunks=True)
    again = pickle.loads(pickle.dumps(top))
    assert repr(again) == repr(top)
    assert again.read_only == (mode == "r")
    assert again.options == top.options == ArrayOptions("error", True)
    assert again["b"].options == top.options
    assert [path for path, _ in again.members(None)] == [path for path, _ in top.members(None)]
    assert again.metadata == top.metadata


def test_a_pickled_memory_store_is_a_copy() -> None:
    top = hierarchy()
    again = pickle.loads(pickle.dumps(top))
    del again["b"]
    assert "b" in top


@pytest.mark.parametrize(
    "ask",
    [
        lambda g: g["b"],
        lambda g: next(node for name, node in g.items() if name == "b"),
        lambda g: g.create_array("n", data=[1]),
        lambda g: g.require_array("b", shape=(2, 3), dtype="i2"),
        lambda g: g.require_group("g").create_array("n", data=[1]),
        lambda g: dict(g.members(None))["g/c"],
    ],
)
def test_arrays_inherit_the_options_of_their_group(ask: Callable[[Group], Array]) -> None:
    store = hierarchy().store
    top = zarrlite.open_group(store, mode="r+", missing_chunks="error", write_empty_chunks=True)
    assert ask(top).options == ArrayOptions("error", True)


def test_deep_hierarchies_are_walked_without_recursion() -> None:
    document = b'{"zarr_format": 3, "node_type": "group"}'
    names = ["a"] * 1500
    store = zarrlite.MemoryStore({"/".join([*names[:i], "zarr.json"]): document for i in range(1501)})
    paths = [path for path, _ in zarrlite.open_group(store, mode="r").members(None)]
    assert [path.count("/") for path in paths] == list(range(1500))
    assert len(list(zarrlite.open_group(store, mode="r").members(2))) == 3
    assert len(zarrlite.open_group(store, mode="r").tree().splitlines()) == 1501
