"""The plain view: through it, any Zarr v3 reader can read hierarchies that use extensions."""

from __future__ import annotations

import math
import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrlite
from zarrlite import ByteRange, MemoryStore, MetadataError, NodeNotFoundError, ReadOnlyError, Store, n5, tiff
from zarrlite.adapters.plain import plain
from zarrlite.adapters.zarr_stores import ZarrStore
from zarrlite.codecs import Bytes, Crc32c, Offset, Pad, ShardingIndexed, Transpose, Zstd
from zarrlite.errors import TruncatedError

DATA = np.arange(600, dtype="i4").reshape(20, 30)
INDEX = 6 * 16 + 4  # size in bytes of the index of a shard with six inner chunks


def parts(*sizes: int | None) -> list[dict[str, Any]]:
    """Return the JSON of `concat-parts` with parts of these sizes."""
    members = [{"key_suffix": f".{i}" if n else "", **({"size": n} if n else {})} for i, n in enumerate(sizes)]
    return [{"name": "concat-parts", "configuration": {"parts": members}}]


DRAFT = [{"name": "sharding", "configuration": {"chunks_per_shard": [2, 2]}}]
PADDED = [Zstd(), Pad("start", 7), Pad("end", 3)]
SHARDS = ShardingIndexed((5, 10), (Bytes(), Zstd()), (Bytes(), Crc32c()), "end")
ARRAYS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no extension": ({"chunks": (5, 10)}, ["bytes", "zstd"]),
    "padding outside": (
        {"chunks": (5, 10), "compressors": [Zstd(), Pad("start", 7), Pad("end", 3)]},
        ["bytes", "zstd"],
    ),
    "offset outside": ({"chunks": (5, 10), "compressors": [Zstd(), Offset(9)]}, ["bytes", "zstd"]),
    "padding below a compressor": ({"chunks": (5, 10), "compressors": [Pad("start", 7), Zstd()]}, ["bytes"]),
    "suffix": (
        {"chunks": (5, 10), "chunk_key_encoding": {"name": "suffix", "configuration": {"suffix": ".tif"}}},
        ["bytes", "zstd"],
    ),
    "parts": ({"chunks": (5, 10), "storage_transformers": parts(None, 4)}, ["bytes", "zstd"]),
    "draft shards": (
        {
            "chunks": (5, 10),
            "storage_transformers": [{"name": "sharding", "configuration": {"chunks_per_shard": [2, 2]}}],
        },
        ["sharding_indexed"],
    ),
    "shards": ({"chunks": (5, 10), "shards": (10, 30)}, ["sharding_indexed"]),
    "padding of inner chunks": (
        {"chunks": (5, 10), "shards": (10, 30), "compressors": [Zstd(), Pad("start", 7), Pad("end", 2)]},
        ["sharding_indexed"],
    ),
    "padded index": (
        {
            "chunks": (10, 30),
            "codecs": [ShardingIndexed((5, 10), (Bytes(),), (Bytes(), Pad("start", 5), Crc32c()), "start")],
        },
        ["sharding_indexed"],
    ),
    "inner chunks padded below a compressor": (
        {"chunks": (5, 10), "shards": (10, 30), "compressors": [Pad("start", 7), Zstd()]},
        ["bytes"],
    ),
    "shards transposed as a whole": (
        {"chunks": (10, 30), "codecs": [Transpose((1, 0)), ShardingIndexed((15, 5), (Bytes(),))]},
        ["bytes"],
    ),
    "chunks of different shapes": ({"chunks": [[5, 15], [10, 8, 12]]}, ["bytes"]),
    "shards of different shapes": ({"chunks": (5, 10), "shards": [[5, 15], 30]}, ["bytes"]),
    "a shard between two frames": (
        {"chunks": (10, 30), "codecs": [SHARDS, Pad("end", 5), Offset(9)]},
        ["sharding_indexed"],
    ),
    "a shard with a header in parts": (
        {"chunks": (10, 30), "codecs": [SHARDS, Pad("start", 64)], "storage_transformers": parts(64, None, INDEX)},
        ["sharding_indexed"],
    ),
}
every_array = pytest.mark.parametrize("name", ARRAYS)


def hierarchy(name: str) -> MemoryStore:
    store = MemoryStore()
    group = zarrlite.create_group(store, attributes={"title": name})
    group.create_array("x/c/y", data=DATA, fill_value=-1, attributes={"a": 1}, **ARRAYS[name][0])
    return store


@every_array
def test_zarr_python_reads_every_array(name: str) -> None:
    group = zarr.open_group(ZarrStore(plain(hierarchy(name))), mode="r")
    array = group["x/c/y"]
    assert (array[...] == DATA).all()
    assert (array[3:9, 5:17] == DATA[3:9, 5:17]).all()
    assert (dict(array.attrs), array.fill_value, dict(group.attrs)) == ({"a": 1}, -1, {"title": name})


@every_array
def test_the_plain_view_has_only_codecs_that_every_reader_supports(name: str) -> None:
    document = zarrlite.open(plain(hierarchy(name)), mode="r")["x/c/y"].metadata.to_json()
    assert [codec["name"] for codec in document["codecs"]] == ARRAYS[name][1]
    assert document["chunk_key_encoding"]["name"] == "default"
    assert "storage_transformers" not in document


@every_array
def test_missing_chunks_stay_missing(name: str) -> None:
    store = MemoryStore()
    array = zarrlite.create_array(store, shape=DATA.shape, dtype="i4", fill_value=-1, **ARRAYS[name][0])
    array[:5, :10] = DATA[:5, :10]
    view = zarr.open_array(ZarrStore(plain(store)), mode="r")
    assert (view[...] == array[...]).all()
    shown = [key for key in plain(store).list() if key.startswith("c/")]
    stored_chunk = (array.shards or array.chunks) if "bytes" in ARRAYS[name][1][:1] else array.chunks
    at_most = math.prod(-(-n // c) for n, c in zip(stored_chunk, array.chunks, strict=True))
    assert 1 <= len(shown) <= at_most
    assert plain(store).get("c/3/0") is None


@every_array
def test_ranges_of_a_chunk_equal_slices_of_it(name: str) -> None:
    view = plain(hierarchy(name))
    key = next(key for key in view.list() if "/c/0" in key)
    whole = bytes(view.get(key))
    assert view.size(key) == len(whole)
    for start in (0, 3, 90, -1, -7, -100, -500, -99999):
        for stop in (None, 1, 5, 120, 99999, -1, -6):
            assert bytes(view.get(key, ByteRange(start, stop))) == whole[start:stop], (start, stop)


class Recording(Store):
    """A store that records which bytes are requested."""

    def __init__(self, store: Store) -> None:
        self.store, self.requests = store, []  # type: list[tuple[str, ByteRange]]

    def get(self, key: str, byte_range: ByteRange = ByteRange()) -> Any:
        self.requests.append((key, byte_range))
        return self.store.get(key, byte_range)

    def size(self, key: str) -> int | None:
        self.requests.append((key, ByteRange(0, 0)))
        return self.store.size(key)

    def list(self) -> Any:
        return self.store.list()


def test_a_shard_with_a_header_in_parts_is_read_in_two_small_requests() -> None:
    store = Recording(hierarchy("a shard with a header in parts"))
    for view in (
        zarrlite.open(plain(store), mode="r")["x/c/y"],
        zarr.open_array(ZarrStore(plain(store)), path="x/c/y", mode="r"),
    ):
        store.requests.clear()
        assert view[7, 13] == DATA[7, 13]
        (index, _), (inner, byte_range) = [item for item in store.requests if not item[0].endswith("zarr.json")]
        assert (index, inner) == ("x/c/y/c/0/0.2", "x/c/y/c/0/0")
        assert byte_range.stop - byte_range.start < 5 * 10 * 4


@pytest.mark.parametrize("name", ["padding of inner chunks", "a shard between two frames"])
def test_framed_shards_are_read_in_two_requests_without_asking_for_their_size(name: str) -> None:
    store = Recording(hierarchy(name))
    view = zarr.open_array(ZarrStore(plain(store)), path="x/c/y", mode="r")
    store.requests.clear()
    assert view[7, 13] == DATA[7, 13]
    requests = [byte_range for key, byte_range in store.requests if not key.endswith("zarr.json")]
    assert len(requests) == 2
    assert all(len(byte_range.of(bytes(9999))) <= 5 * 10 * 4 + INDEX + 17 for byte_range in requests)


def test_a_value_shorter_than_its_padding_is_an_error() -> None:
    store = hierarchy("offset outside")
    store.set("x/c/y/c/0/0", b"1234")
    for byte_range in (ByteRange(), ByteRange(0, 3), ByteRange(-3)):
        with pytest.raises(TruncatedError, match="its padding alone has 9"):
            plain(store).get("x/c/y/c/0/0", byte_range)


def test_the_size_of_a_decoded_chunk_is_known_without_decoding_it() -> None:
    store = Recording(hierarchy("padding below a compressor"))
    view = plain(store)
    view.get("x/c/y/zarr.json")
    store.requests.clear()
    assert view.size("x/c/y/c/0/0") == 5 * 10 * 4
    assert store.requests == [("x/c/y/c/0/0", ByteRange(0, 0))]


def test_consolidated_metadata_has_the_plain_documents() -> None:
    store = hierarchy("suffix")
    zarrlite.consolidate_metadata(store)
    group = zarr.open_consolidated(ZarrStore(plain(store)), mode="r")
    assert (group["x/c/y"][...] == DATA).all()
    copies = zarrlite.open(plain(store), mode="r").metadata.consolidated
    assert copies["x/c/y"]["chunk_key_encoding"]["name"] == "default"


def test_documents_are_read_again() -> None:
    store = hierarchy("padding outside")
    view = plain(store)
    assert zarrlite.open(view, mode="r")["x/c/y"].shape == (20, 30)
    zarrlite.open(store, mode="r+")["x/c/y"].resize((40, 30))
    assert zarrlite.open(view, mode="r")["x/c/y"].shape == (40, 30)
    del zarrlite.open(store, mode="r+")["x/c/y"]
    assert view.get("x/c/y/zarr.json") is view.get("x/c/y/c/0/0") is None


def test_a_refused_node_does_not_hide_other_nodes() -> None:
    store = hierarchy("parts")
    store.set("bad/zarr.json", b"{}")
    with pytest.warns(UserWarning, match="'bad' is skipped"):
        keys = list(plain(store).list())
    assert "x/c/y/zarr.json" in keys
    with pytest.raises(MetadataError):
        plain(store).get("bad/zarr.json")


def test_listing_a_prefix_reads_only_the_nodes_on_the_way() -> None:
    store = Recording(hierarchy("suffix"))
    assert list(plain(store).list_prefix("x/c/")) == ["x/c/zarr.json", "x/c/y/zarr.json", *ordered_chunks()]
    assert plain(store).list_dir("x/c/y/") == (["x/c/y/zarr.json"], ["x/c/y/c/"])
    store.requests.clear()
    assert list(plain(store).list_prefix("z/")) == []
    assert [key for key, _ in store.requests] == ["zarr.json", "zarr.json", "z/zarr.json"]


def ordered_chunks() -> list[str]:
    return [f"x/c/y/c/{i}/{j}" for i in range(4) for j in range(3)]


# Hierarchies in other formats


def test_n5_containers_are_shown(tmp_path: Path) -> None:
    array = n5.create_array(tmp_path / "a.n5", path="g/x", shape=(7, 9), dtype="u2", chunks=(4, 4))
    array[...] = DATA[:7, :9]
    view = zarr.open_group(ZarrStore(plain(tmp_path / "a.n5")), mode="r")
    assert (view["g/x"][...] == DATA[:7, :9]).all()
    assert [codec.to_dict()["name"] for codec in view["g/x"].metadata.codecs] == ["bytes"]


def test_folders_of_tiff_files_are_shown(tmp_path: Path) -> None:
    tiff.create_array(tmp_path, data=DATA.astype("u2"), chunks=(8, 8), compression="zstd")
    (tmp_path / "zarr.json").unlink()
    view = zarr.open_array(ZarrStore(plain(tmp_path)), mode="r")
    assert (view[:20, :30] == DATA).all()
    assert [codec.to_dict()["name"] for codec in view.metadata.codecs] == ["bytes", "zstd"]


FOREIGN = {
    "draft_hierarchies": ["sharded", "layouts", "compressors", "suffix"],
    "v2_hierarchies": ["codecs", "filters", "objects"],
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in FOREIGN.items() for name in names])
def test_hierarchies_of_older_formats_are_shown(module: str, name: str) -> None:
    store = import_module(f"formats.{module}").memory(name)
    expected = zarrlite.open_group(store, mode="r")
    view = zarr.open_group(ZarrStore(plain(store)), mode="r")
    count = 0
    for path, array in expected.members(None):
        if isinstance(array, zarrlite.Array):
            count += 1
            np.testing.assert_array_equal(np.asarray(view[path][...]), np.asarray(array[...]))
    assert count


def test_a_folder_without_a_hierarchy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NodeNotFoundError):
        plain(tmp_path)


def test_the_view_cannot_be_written_and_can_be_pickled() -> None:
    view = plain(hierarchy("parts"))
    with pytest.raises(ReadOnlyError, match="is read-only"):
        view.set("x/zarr.json", b"{}")
    assert (zarrlite.open(pickle.loads(pickle.dumps(view)), mode="r")["x/c/y"][...] == DATA).all()


def test_listing_has_documents_and_plain_chunk_keys() -> None:
    keys = set(plain(hierarchy("suffix")).list())
    assert keys == {key.removesuffix(".tif") for key in hierarchy("suffix").list()}
