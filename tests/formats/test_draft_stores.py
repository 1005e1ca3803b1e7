"""Hierarchies in the 2022 draft of Zarr v3, written by zarr-python 2.18 (tests/data/draft)."""

from __future__ import annotations

import base64
import json
import pickle
from typing import Any

import numpy as np
import pytest
from formats.draft_hierarchies import HIERARCHIES, disk, memory, values

import zarrlite
from zarrlite.formats.draft_store import DraftStore, find_draft
from zarrlite.stores import LocalStore, MemoryStore, PrefixStore, ReadOnlyStore

READABLE = [name for name in HIERARCHIES if name != "refused"]
ARRAYS = [(name, path) for name, hierarchy in HIERARCHIES.items() for path in hierarchy["arrays"]]


def assert_as_recorded(array: np.ndarray[Any, Any], name: str, path: str) -> None:
    """Assert that an array equals, bit for bit, the one that zarr-python read."""
    expected = HIERARCHIES[name]["arrays"][path]
    assert list(array.shape) == expected["shape"]
    if expected["dtype"] == "|O":  # zarr-python returns its default fill value 0 even for strings
        texts = [base64.b64encode(v).decode() if isinstance(v, bytes) else v for v in array.ravel().tolist()]
        assert texts == [v or "" for v in expected["data"]]
        return
    descr = expected["dtype"]
    dtype = np.dtype(descr if isinstance(descr, str) else fields(descr))
    if dtype.names == ("f0",):
        dtype = dtype["f0"]  # zarr-python reads raw bytes as a struct with the field f0
    assert array.dtype == dtype.newbyteorder("=")
    assert array.astype(dtype).tobytes() == base64.b64decode(expected["data"])


def fields(descr: Any) -> Any:
    return [(name, fields(kind) if isinstance(kind, list) else kind) for name, kind in descr]


@pytest.mark.parametrize(("name", "path"), ARRAYS)
def test_every_array_reads_the_same_as_in_zarr_python(name, path, tmp_path):
    for store in (memory(name), disk(name, tmp_path)):
        array = zarrlite.open_array(store, mode="r", path=path)
        assert_as_recorded(array[...], name, path)


@pytest.mark.parametrize("name", HIERARCHIES)
def test_groups_and_attributes_are_the_same_as_with_zarr_python(name):
    root = zarrlite.open(memory(name), mode="r")
    for path, attributes in HIERARCHIES[name]["attributes"].items():
        node = zarrlite.open(root.store, mode="r", path=path)
        assert isinstance(node, zarrlite.Group) == (path in HIERARCHIES[name]["groups"])
        attributes.pop("filters", None)  # zarr-python stores the codec for objects in this attribute
        assert dict(node.attrs) == attributes


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("groups", ["a", "a/b", "a/b/c", "a/b/c/x", "c", "c/0", "c/c", "consolidated", "empty", "x.array"]),
        ("implicit", ["a", "a/b", "a/b/x", "y"]),
        ("suffix", ["g", "g/x"]),
    ],
)
def test_groups_need_no_document(name, members, tmp_path):
    for store in (memory(name), disk(name, tmp_path)):
        group = zarrlite.open_group(store, mode="r")
        assert [path for path, _ in group.members(None)] == members
        assert "nothing" not in group


@pytest.mark.parametrize("name", READABLE)
def test_the_view_lists_every_chunk_under_its_zarr_v3_key(name):
    store = find_draft(memory(name))
    keys = list(store.list())
    chunks = [key for key in keys if not f"/{key}".endswith("/zarr.json")]
    assert len(set(keys)) == len(keys)
    assert {store.underlying_key(key) for key in chunks} == {key for key in values(name) if key.startswith("data/")}
    assert not any(zarrlite.validate(store.get(key)) for key in set(keys) - set(chunks))
    for key in keys:
        assert store.size(key) == len(store.get(key))
        prefix = key.rpartition("/")[0] + "/" if "/" in key else ""
        assert sorted(store.list_prefix(prefix)) == sorted(k for k in keys if k.startswith(prefix))
        assert store.list_dir(prefix) == MemoryStore(dict.fromkeys(keys, b"")).list_dir(prefix)


def test_chunk_keys_have_the_separator_of_their_array():
    store = find_draft(memory("layouts"))
    assert list(store.list_prefix("line-dot/")) == [
        "line-dot/c.0",
        "line-dot/c.1",
        "line-dot/c.2",
        "line-dot/zarr.json",
    ]
    assert list(store.list_prefix("line-f/c/")) == ["line-f/c/0", "line-f/c/1", "line-f/c/2"]
    assert list(store.list_prefix("scalar/")) == ["scalar/c", "scalar/zarr.json"]
    assert store.list_dir("c-slash/c/") == ([], ["c-slash/c/0/", "c-slash/c/1/", "c-slash/c/2/"])
    assert [store.get(key) for key in ("meta/root/scalar.array.json", "data/root/scalar/c0", "x/c/00")] == [None] * 3


def test_stray_files_are_not_listed():
    store = memory("layouts")
    for key in ("data/root/c-slash/c0/x", "data/root/c-slash/d0/0", "data/root/scalar/c1", "meta/root/notes/a.txt"):
        store.set(key, b"")
    assert list(find_draft(store).list()) == list(find_draft(memory("layouts")).list())


def test_a_document_is_converted_to_zarr_v3():
    document = find_draft(memory("sharded")).document("f")
    assert document == {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [9, 11],
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [
            {"name": "transpose", "configuration": {"order": [1, 0]}},
            {"name": "bytes", "configuration": {"endian": "big"}},
            {
                "name": "blosc",
                "configuration": {
                    "cname": "lz4",
                    "clevel": 5,
                    "shuffle": "shuffle",
                    "typesize": 4,
                    "blocksize": 0,
                },
            },
        ],
        "attributes": {},
        "storage_transformers": [
            {"name": "sharding", "configuration": {"type": "indexed", "chunks_per_shard": [2, 3]}}
        ],
    }


@pytest.mark.parametrize(
    ("path", "fill_value"),
    [
        ("dates", np.datetime64("NaT", "D")),
        ("durations", np.timedelta64(7, "ms")),
        ("bytes", b"xy"),
        ("text", "né"),
        ("raw", np.void(b"\1\2\3\4")),
        ("records", (1, 2.5, (3, b"xy"))),
        ("big-records", (5, 6.0)),
        ("strings", ""),
        ("strings-f", "?"),
        ("blobs", b""),
        ("special", np.nan),
    ],
)
def test_fill_values_are_converted(path, fill_value):
    converted = zarrlite.open_array(memory("types"), mode="r", path=path).fill_value
    equal = np.array_equal(converted, fill_value, equal_nan=path in ("special", "dates"))
    assert equal or converted.item() == fill_value


class RecordingStore(MemoryStore):
    """A store that records the keys that are read."""

    def __init__(self, values: dict[str, bytes]) -> None:
        super().__init__(values)
        self.read: list[str] = []

    def get(self, key, byte_range=zarrlite.ByteRange()):
        self.read.append(key)
        return super().get(key, byte_range)

    def size(self, key):
        self.read.append(key)
        return super().size(key)


def test_opening_an_ordinary_node_does_not_look_for_the_draft():
    zarrlite.create_array(store := RecordingStore({}), name="a/x", data=[1])
    for path in ("", "a", "a/x"):
        for mode in ("r", "r+", "a"):
            store.read.clear()
            zarrlite.open(store, mode=mode, path=path)
            assert store.read == [f"{path}/zarr.json".lstrip("/")]


def test_an_array_of_the_draft_is_opened_with_four_reads_and_a_chunk_with_two():
    store = RecordingStore(values("sharded"))
    array = zarrlite.open_array(store, mode="r", path="plain")
    documents = ["meta/root/plain.array.json", "meta/root/plain.group.json"]
    assert store.read == ["plain/zarr.json", "zarr.json", *documents]
    store.read.clear()
    assert array[0, 0] == 1
    assert store.read == ["data/root/plain/c0/0", "data/root/plain/c0/0"]  # the index and one chunk


@pytest.mark.parametrize("mode", ["r", "r+", "a"])
def test_opening_and_reading_write_nothing(mode, tmp_path):
    disk("sharded", tmp_path)
    before = sorted(tmp_path.rglob("*"))
    group = zarrlite.open(tmp_path, mode=mode)
    assert group.read_only
    for path, array in group.arrays():
        assert_as_recorded(array[...], "sharded", path)
    assert sorted(tmp_path.rglob("*")) == before


def test_arrays_and_groups_can_be_pickled(tmp_path):
    group = pickle.loads(pickle.dumps(zarrlite.open_group(disk("suffix", tmp_path), mode="r")))
    assert_as_recorded(pickle.loads(pickle.dumps(group["g/x"]))[...], "suffix", "g/x")


# converting


@pytest.mark.parametrize("name", READABLE)
def test_a_copy_is_a_hierarchy_of_zarr_v3(name, tmp_path):
    source = zarrlite.open(disk(name, tmp_path / "draft"), mode="r")
    zarrlite.copy(source, tmp_path / "copy")
    assert find_draft(LocalStore(tmp_path / "copy")) is None
    for path in HIERARCHIES[name]["arrays"]:
        array = zarrlite.open_array(tmp_path / "copy", mode="r", path=path)
        assert type(array.store) is ReadOnlyStore
        assert_as_recorded(array[...], name, path)


def test_a_sharded_array_can_be_rewritten_with_the_sharding_codec():
    old = zarrlite.open_array(memory("sharded"), mode="r", path="f")
    new = zarrlite.create_array({}, data=old, chunks=old.chunks, shards=(4, 9))
    assert new.metadata.storage_transformers is None
    assert_as_recorded(new[...], "sharded", "f")


# refusals


def with_type(error: BaseException) -> str:
    """Return the message of an error, preceded by the name of its class."""
    return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: zarrlite.open(s, path="new"), "ReadOnlyError: 'new' cannot be created in"),
        (lambda s: zarrlite.open(s, path="new", mode="w"), "ReadOnlyError: 'new' cannot be created in"),
        (lambda s: zarrlite.open(s, path="full", mode="w"), "ReadOnlyError: 'full' cannot be created in"),
        (lambda s: zarrlite.open(s, path="a/b", mode="w-"), "ReadOnlyError: 'a/b' cannot be created in"),
        (lambda s: zarrlite.open_group(s, path="new"), "ReadOnlyError: 'new' cannot be created in"),
        (lambda s: zarrlite.create_group(s, path="new"), "ReadOnlyError: 'new' cannot be created in"),
        (
            lambda s: zarrlite.create_array(s, name="meta/root", data=[1], overwrite=True),
            "ReadOnlyError: 'meta/root' cannot be created in",
        ),
    ],
)
def test_nodes_cannot_be_created_in_a_hierarchy_of_the_draft(call, message):
    store = memory("sharded")
    with pytest.raises(zarrlite.ReadOnlyError) as caught:
        call(store)
    assert with_type(caught.value) == f"{message} {store!r}: hierarchies of the Zarr v3 draft are read-only"
    assert dict.fromkeys(store.list()) == dict.fromkeys(sorted(values("sharded")))


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g["full"].__setitem__(0, 1),
        lambda g: g["full"].attrs.update(a=1),
        lambda g: g["full"].resize((1, 1)),
        lambda g: g["full"].append(np.zeros((1, 11))),
        lambda g: g["full"].delete(),
    ],
)
def test_an_array_of_the_draft_cannot_be_changed(change):
    store = memory("sharded")
    with pytest.raises(zarrlite.ReadOnlyError) as caught:
        change(zarrlite.open_group(store, mode="r+"))
    assert str(caught.value) == "'/full' cannot be changed: hierarchies of the Zarr v3 draft are read-only"


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g.create_array("x", data=[1]),
        lambda g: g.create_group("x"),
        lambda g: g.attrs.update(a=1),
        lambda g: g.consolidate_metadata(),
        lambda g: g.__delitem__("full"),
    ],
)
def test_a_group_of_the_draft_cannot_be_changed(change):
    with pytest.raises(zarrlite.ReadOnlyError) as caught:
        change(zarrlite.open_group(memory("sharded")))
    assert str(caught.value) == "'/' cannot be changed: hierarchies of the Zarr v3 draft are read-only"


def test_a_hierarchy_of_the_draft_can_only_be_replaced_as_a_whole():
    store = memory("sharded")
    with pytest.raises(zarrlite.NodeExistsError):
        zarrlite.open(store, mode="w-")
    with pytest.raises(zarrlite.NodeExistsError):
        zarrlite.create_array(store, data=[1])
    zarrlite.open(store, mode="w", data=[1])
    assert list(store.list()) == ["c/0", "zarr.json"]


@pytest.mark.parametrize("path", ["", "sub"])
def test_a_hierarchy_of_the_draft_cannot_be_copied_onto_or_into_itself(path):
    store = memory("sharded")
    with pytest.raises(zarrlite.ArgumentError, match="cannot be copied onto or into itself"):
        zarrlite.copy(zarrlite.open(store), PrefixStore(store, ""), path, overwrite=True)
    assert len(list(store.list())) == len(values("sharded"))


def test_a_missing_node_is_not_found():
    with pytest.raises(zarrlite.NodeNotFoundError) as caught:
        zarrlite.open(memory("root_array"), mode="r", path="no")
    where = "no array or group at 'no' in DraftStore(ReadOnlyStore(MemoryStore(5 keys)))"
    assert str(caught.value) == f"{where}: the hierarchy of the Zarr v3 draft has no node there"


REFUSED = {
    "delta": "UnknownExtensionError: #/attributes/filters: "
    'must be empty, not ["delta"]: zarrlite does not support the filters of zarr-python 2',
    "pickles": 'MetadataError: #/data_type: objects must have one filter, vlen-utf8 or vlen-bytes, not ["pickle"]',
    "mixed": "MetadataError: #/data_type: must not mix byte orders: the bytes codec has one for all fields",
    "subarrays": 'MetadataError: #/data_type: must not have fields that are arrays, such as ["a", "<i4", [2]]',
}


@pytest.mark.parametrize("path", REFUSED)
def test_arrays_that_zarr_v3_cannot_express_are_refused(path):
    with pytest.raises(zarrlite.MetadataError) as caught:
        zarrlite.open(memory("refused"), mode="r", path=path)
    message = with_type(caught.value).replace(f"meta/root/{path}.array.json", "")
    assert message == REFUSED[path]


NUMCODECS = ("bz2", "lz4", "lzma", "zlib")


@pytest.mark.parametrize("path", NUMCODECS)
def test_a_compressor_of_numcodecs_is_read_under_its_name(path):
    array = zarrlite.open(memory("refused"), mode="r", path=path)
    assert array[...].tolist() == [1, 2, 3]
    assert array.metadata.to_json()["codecs"][1]["name"] == f"numcodecs.{path}"


def test_a_refused_array_is_listed_and_does_not_hide_the_others():
    group = zarrlite.open_group(memory("refused"), mode="r")
    assert list(group) == sorted([*REFUSED, *NUMCODECS, "good", "nan"])
    assert group["good"][...].tolist() == [1, 2, 3]


def test_a_copy_leaves_out_and_names_refused_arrays():
    group = zarrlite.open_group(memory("refused"), mode="r")
    assert {key.split("/")[0] for key in group.store.list()} == {*group, "zarr.json"}
    target = {}
    with pytest.warns(UserWarning, match="is not copied") as caught:
        copied = zarrlite.copy(group, target)
    assert [str(warning.message).split("'")[1] for warning in caught] == sorted(REFUSED)
    assert list(copied) == sorted([*NUMCODECS, "good", "nan"])
    assert copied["good"][...].tolist() == [1, 2, 3]


SHARDS = {"extension": "https://purl.org/zarr/spec/storage_transformers/sharding/1.0", "type": "indexed"}
GZIP = "https://purl.org/zarr/spec/codec/gzip/1.0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": [3, -1]}, "/shape/1: must be an integer from 0 to 9223372036854775807, not -1"),
        ({"shape": [1] * 65}, "/shape: must have at most 64 items, not 65"),
        ({"chunk_grid": {"type": "odd"}}, '/chunk_grid/type: must be "regular", not "odd"'),
        (
            {"chunk_grid": {"type": "regular", "chunk_shape": [2], "separator": "/"}},
            "/chunk_grid/chunk_shape: must have 2 items, like shape, not 1",
        ),
        (
            {"chunk_grid": {"type": "regular", "chunk_shape": [2, 2], "separator": "-"}},
            '/chunk_grid/separator: must be "/" or ".", not "-"',
        ),
        ({"data_type": "<i3"}, '/data_type: "<i3" is not a data type that zarrlite reads'),
        ({"data_type": {"type": "<f16"}}, '/data_type: "<f16" is not a data type that zarrlite reads'),
        ({"data_type": {}}, "/data_type/type: is required and missing"),
        (
            {"data_type": {"type": [["a", "u1"], ["a", "u1"]]}},
            '/data_type: [["a", "u1"], ["a", "u1"]] is not a data type: field \'a\' occurs more than once',
        ),
        ({"data_type": {"type": [["a"]]}}, '/data_type: a field must be a name and a data type, not ["a"]'),
        (
            {"data_type": {"type": "|S9999999"}},
            "/data_type/configuration/length_bytes: must be at most 1048576, not 9999999",
        ),
        ({"fill_value": "x"}, '/fill_value: must be an integer, not "x"'),
        ({"chunk_memory_layout": "A"}, '/chunk_memory_layout: must be "C" or "F", not "A"'),
        (
            {"compressor": {"codec": "gzip"}},
            '/compressor/codec: must be https://purl.org/zarr/spec/codec/, a name and a version, not "gzip"',
        ),
        (
            {"compressor": {"codec": GZIP, "configuration": {"level": 11}}},
            "/compressor/configuration/level: must be an integer from 0 to 9, not 11",
        ),
        (
            {"compressor": {"codec": GZIP.replace("gzip", "bytes")}},
            '/compressor/codec: must name a bytes -> bytes codec, not "bytes"',
        ),
        (
            {"storage_transformers": [{**SHARDS, "configuration": {"chunks_per_shard": ["x", 1]}}]},
            '/storage_transformers/0/configuration/chunks_per_shard/0: must be an integer, not "x"',
        ),
        (
            {"storage_transformers": [{**SHARDS, "configuration": {"chunks_per_shard": [1, 1, 1]}}]},
            "/storage_transformers/0/configuration/chunks_per_shard: must have 2 items, like shape, not 3",
        ),
        (
            {"extensions": [{"extension": "u", "must_understand": True}]},
            '/extensions/0: "u" is not a known extension of the draft',
        ),
    ],
)
def test_a_bad_document_is_refused_with_the_place_of_the_fault(change, message):
    store = memory("implicit")
    key = "meta/root/y.array.json"
    store.set(key, json.dumps({**json.loads(store.get(key)), **change}).encode())
    with pytest.raises(zarrlite.MetadataError) as caught:
        zarrlite.open(store, mode="r", path="y")
    assert str(caught.value) == f"{key}#{message}"


def test_an_extension_that_need_not_be_understood_is_ignored():
    store = memory("implicit")
    key = "meta/root/y.array.json"
    extensions = [{"extension": "u", "must_understand": False}]
    store.set(key, json.dumps({**json.loads(store.get(key)), "extensions": extensions}).encode())
    assert_as_recorded(zarrlite.open_array(store, mode="r", path="y")[...], "implicit", "y")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"metadata_encoding": "x"},
            '/metadata_encoding: must be "https://purl.org/zarr/spec/protocol/core/3.0", not "x"',
        ),
        (
            {"metadata_key_suffix": "/../x"},
            "/metadata_key_suffix: must consist of ASCII letters, digits, '.', '_' and '-', not \"/../x\"",
        ),
        ({"extensions": [{}]}, "/extensions/0: null is not a known extension of the draft"),
        ({"extensions": None}, "/extensions: must be an array, not null"),
    ],
)
def test_a_bad_entry_document_is_refused(change, message):
    store = memory("implicit")
    store.set("zarr.json", json.dumps({**json.loads(store.get("zarr.json")), **change}).encode())
    with pytest.raises(zarrlite.MetadataError) as caught:
        zarrlite.open(store, mode="r")
    assert str(caught.value) == f"zarr.json#{message}"


@pytest.mark.parametrize("document", [b"{", b"{}", b'{"zarr_format": "https://example.com"}', b'{"zarr_format": 4}'])
def test_other_documents_are_not_mistaken_for_the_draft(document):
    store = MemoryStore({"zarr.json": document})
    assert find_draft(store) is None
    with pytest.raises(zarrlite.MetadataError, match=r"^zarr.json#"):
        zarrlite.open(store, mode="r")


def test_damaged_shards_are_errors():
    store = memory("sharded")
    key = "data/root/plain/c0/0"
    store.set(key, bytes(store.get(key))[:20])
    with pytest.raises(zarrlite.DataError, match=r"^chunk plain/c/0/0"):
        zarrlite.open_array(store, mode="r", path="plain")[0, 0]


def test_a_draft_store_can_be_passed_to_open():
    underlying = memory("suffix")
    store = DraftStore(underlying, ".meta-1")
    assert store == find_draft(underlying)
    assert_as_recorded(zarrlite.open_array(store, path="g/x")[...], "suffix", "g/x")


def test_attributes_with_nan_are_read():
    attributes = zarrlite.open(memory("refused"), mode="r", path="nan").attrs
    assert any(value != value for value in attributes.values())
