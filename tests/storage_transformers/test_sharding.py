"""The `sharding` storage transformer of the 2022 draft, and stacks of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformer_stacks import STORES

import zarrlite
from zarrlite import ByteRange
from zarrlite.buffers.ranges import ALL
from zarrlite.codecs import Bytes, Crc32c, Pad, Zstd
from zarrlite.errors import ArgumentError, MetadataError, ShardError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context
from zarrlite.nodes.creation import array_metadata
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.testing import StorageTransformerLaws

URI = "https://purl.org/zarr/spec/storage_transformers/sharding/1.0"


class RecordingStore(zarrlite.MemoryStore):
    """Records every batch of requests."""

    def __init__(self, values: Any = None) -> None:
        super().__init__(values)
        self.batches: list[Any] = []

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, requests: Any, memory: Any = None) -> Any:
        self.batches.append([(key, *byte_range) for key, byte_range, *_ in requests])
        return super().get_partial_values(requests, memory)


def parse(value: Any) -> Any:
    return registry.storage_transformers.parse(value, "/storage_transformers/0", Context())


def wrap(store: Any, per_shard: tuple[int, ...], shape: Any = None, **kwargs: Any) -> Any:
    metadata = array_metadata(shape or (200,) * len(per_shard), "u1", chunks=(1,) * len(per_shard), **kwargs)
    return Sharding(per_shard).wrap(store, metadata)


@pytest.mark.parametrize("chunk", [(96, 18), (96, 19), (97, 18), (127, 19)])
def test_shard_keys_are_chunk_coordinates_divided_by_chunks_per_shard(chunk: Any) -> None:
    below = zarrlite.MemoryStore()
    store = wrap(below, (32, 2))
    store.set(f"c/{chunk[0]}/{chunk[1]}", b"value")
    assert list(below.list()) == ["c/3/9"]
    assert below.size("c/3/9") == 5 + 1024  # the draft's text says 1014, by mistake
    for other in ("c/95/18", "c/96/17", "c/128/18", "c/127/20"):
        assert store.get(other) is None


def test_the_index_is_row_major_and_little_endian() -> None:
    below = zarrlite.MemoryStore()
    store = wrap(below, (2, 2))
    store.set_many([("c/1/0", b"ccc"), ("c/0/1", b"bb")])
    entries = np.frombuffer(below.get("c/0/0") or b"", "<u8", offset=5).tolist()
    assert bytes(below.get("c/0/0") or b"")[:5] == b"bbccc"
    assert entries == [2**64 - 1, 2**64 - 1, 0, 2, 2, 3, 2**64 - 1, 2**64 - 1]


def test_reading_a_batch_takes_two_batches_of_the_underlying_store() -> None:
    below = RecordingStore()
    store = wrap(below, (2,))
    store.set_many([(f"c/{i}", bytes([i]) * (i + 1)) for i in range(5)])
    store.set("notes", b"text")
    below.batches.clear()
    found = store.get_partial_values(
        [("c/1", ByteRange(1)), ("c/4", ALL), ("c/0", ByteRange(-9, -1)), ("c/9", ALL), ("notes", ByteRange(1, 2))]
    )
    assert [None if value is None else bytes(value) for value in found] == [b"\1", b"\4" * 5, b"", None, b"e"]
    assert below.batches == [
        [("c/0", -32, None), ("c/2", -32, None), ("c/4", -32, None)],
        [("c/0", 0, 3), ("c/2", 0, 5), ("notes", 1, 2)],
    ]


@pytest.mark.parametrize("r", [(4, None), (0, 100), (-100, 100), (3, 4), (-2, None)])
def test_a_range_never_extends_beyond_its_chunk(r: Any) -> None:
    store = wrap(zarrlite.MemoryStore(), (3,))
    store.set_many([("c/0", b"012345"), ("c/1", b"abcdef")])
    assert bytes(store.get("c/0", ByteRange(*r))) == b"012345"[slice(*r)]


def test_all_reads_of_a_source_see_one_version_of_the_shard(tmp_path: Path) -> None:
    for below in (zarrlite.MemoryStore(), zarrlite.LocalStore(tmp_path)):
        store = wrap(below, (2,))
        assert store.source("c/0").size() is None
        store.set_many([("c/0", b"zero"), ("c/1", b"one")])
        source = store.source("c/1")
        assert source.read([ByteRange(0, 1), ByteRange(-1)]) == [b"o", b"e"]
        assert source.is_current()
        store.set("c/1", b"uno!")
        assert not source.is_current()
        assert (source.read_one(), source.size()) == (b"one", 3)
        source.close()
        assert (source.read_one(), source.size()) == (b"uno!", 4)
        assert source.is_current()
        source.close()


def test_erasing_the_last_chunk_erases_the_shard() -> None:
    below = zarrlite.MemoryStore()
    store = wrap(below, (2,))
    store.set_many([("c/0", b"a"), ("c/1", b"b"), ("c/2", b"c")])
    store.erase("c/0")
    assert list(store.list()) == ["c/1", "c/2"]
    store.erase_values(["c/1", "c/7"])
    assert list(below.list()) == ["c/1"]
    store.erase_prefix("c/")
    assert list(below.list()) == []


def entry(*pairs: int) -> bytes:
    return np.array(pairs, "<u8").tobytes()


@pytest.mark.parametrize(
    "shard",
    [
        b"ab" + entry(0, 2**64 - 1, 0, 1),
        b"ab" + entry(2**64 - 1, 2, 0, 1),
        b"ab" + entry(0, 100, 0, 1),
        b"ab" + entry(2**63, 2**63, 0, 1),
        b"too short for an index",
        b"",
    ],
)
def test_a_damaged_index_is_an_error(shard: bytes) -> None:
    store = wrap(zarrlite.MemoryStore({"c/0": shard}), (2,))
    with pytest.raises(ShardError):
        store.get("c/0")


@pytest.mark.parametrize(
    "value",
    [
        {"name": "sharding", "configuration": {"type": "indexed", "chunks_per_shard": [2, 2]}},
        {"name": "sharding", "configuration": {"chunks_per_shard": [2, 2]}},
        {"name": URI, "configuration": {"chunks_per_shard": [2, 2]}},
        {"extension": URI, "type": "indexed", "configuration": {"chunks_per_shard": [2, 2]}},
        {"extension": "http://purl.org/zarr/spec/storage-transformers/sharding/1.0", "type": "indexed",
         "configuration": {"chunks_per_shard": [2, 2]}},
    ],
)  # fmt: skip
def test_all_spellings_of_the_name_are_read_and_one_is_written(value: Any) -> None:
    assert parse(value).to_json() == {
        "name": "sharding", "configuration": {"type": "indexed", "chunks_per_shard": [2, 2]},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "pointer", "kind"),
    [
        ({"name": "sharding"}, "/configuration/chunks_per_shard", "missing"),
        (
            {"name": "sharding", "configuration": {"chunks_per_shard": [0]}},
            "/configuration/chunks_per_shard/0",
            "value",
        ),
        (
            {"name": "sharding", "configuration": {"chunks_per_shard": [2.0]}},
            "/configuration/chunks_per_shard/0",
            "type",
        ),
        ({"name": "sharding", "configuration": {"chunks_per_shard": [2], "type": "x"}}, "/configuration/type", "value"),
        (
            {"name": "sharding", "configuration": {"chunks_per_shard": [2], "x": 1}},
            "/configuration/x",
            "unknown-member",
        ),
        ({"extension": URI, "type": "hdf", "configuration": {"chunks_per_shard": [2]}}, "/type", "value"),
        ({"extension": URI, "type": "indexed", "configuration": 5}, "/configuration", "type"),
        ({"extension": URI, "x": 1, "configuration": {"chunks_per_shard": [2]}}, "/x", "unknown-member"),
        ({"extension": "urn:other"}, "/name", "missing"),
    ],
)
def test_invalid_configurations_are_refused_with_a_pointer(value: Any, pointer: str, kind: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse(value)
    assert (caught.value.pointer, caught.value.kind) == ("/storage_transformers/0" + pointer, kind)


def test_chunks_per_shard_must_have_as_many_items_as_the_shape() -> None:
    with pytest.raises(MetadataError) as caught:
        zarrlite.create_array("memory://", shape=(4, 4), dtype="u1", storage_transformers=[Sharding((2,))])
    assert caught.value.pointer == "/storage_transformers/0/configuration/chunks_per_shard"


def test_zarr_python_reads_draft_shards_as_sharding_indexed_without_a_checksum(tmp_path: Path, zarr: Any) -> None:
    data = np.arange(70, dtype="u2").reshape(7, 10)
    ours = zarrlite.create_array(
        tmp_path, data=data, chunks=(2, 3), codecs=[Bytes(), Zstd()], storage_transformers=[Sharding((2, 2))]
    )
    assert ours.nchunks_initialized == 16
    document = json.loads((tmp_path / "zarr.json").read_text())
    codecs = document["codecs"]
    document["chunk_grid"]["configuration"]["chunk_shape"] = [4, 6]
    document["codecs"] = [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2, 3], "codecs": codecs, "index_location": "end",
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}]  # fmt: skip
    del document["storage_transformers"]
    (tmp_path / "zarr.json").write_text(json.dumps(document))
    np.testing.assert_array_equal(zarr.open_array(tmp_path, mode="r")[...], data)
    np.testing.assert_array_equal(zarrlite.open_array(tmp_path, mode="r")[...], data)


PARTS = ConcatParts((Part(".head", 1), Part(""), Part(".tail", 2)))
INDEX = ConcatParts((Part(""), Part(".index", 16 * 4)))


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from([Sharding((2, 2)), Sharding((3, 1)), PARTS, ConcatParts((Part("_x/y"),))]), max_size=3),
    st.sampled_from(["default", "v2", {"name": "suffix", "configuration": {"suffix": ".bin"}}]),
    st.sampled_from([[Bytes()], [Bytes(), Zstd(), Crc32c()], [Bytes(), Pad("start", 7)]]),
    st.data(),
)
def test_arrays_on_any_stack_of_transformers_keep_their_data(stack: Any, encoding: Any, codecs: Any, data: Any) -> None:
    stack = [t for i, t in enumerate(stack) if t not in stack[:i] or isinstance(t, Sharding)]
    store = data.draw(st.sampled_from(STORES))()
    model = np.zeros((5, 7), "u2")
    array = zarrlite.create_array(
        store, shape=model.shape, dtype="u2", chunks=(2, 2), codecs=codecs, chunk_key_encoding=encoding,
        storage_transformers=stack,
    )  # fmt: skip
    for value in range(1, 4):
        rows, columns = (data.draw(st.slices(n)) for n in model.shape)
        array[rows, columns] = model[rows, columns] = value
        again = zarrlite.open_array(store, mode="r")
        np.testing.assert_array_equal(again[...], model)
        rows, columns = (data.draw(st.slices(n)) for n in model.shape)
        np.testing.assert_array_equal(again[rows, columns], model[rows, columns])
    full = [(i, j) for i in range(3) for j in range(4) if model[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].any()]
    assert array.nchunks_initialized == len(full)
    array.resize((2, 3))
    np.testing.assert_array_equal(zarrlite.open_array(store)[...], model[:2, :3])
    array[...] = 0
    assert [key for key in store.list() if key != "zarr.json"] == []


def test_the_first_transformer_is_nearest_to_the_array() -> None:
    def keys(*stack: Any) -> list[str]:
        store = zarrlite.MemoryStore()
        data = np.ones((4, 4), "u2")
        zarrlite.create_array(store, data=data, chunks=(2, 2), codecs=[Bytes()], storage_transformers=stack)
        return [key for key in store.list() if key != "zarr.json"]

    assert keys(Sharding((2, 2)), INDEX) == ["c/0/0", "c/0/0.index"]
    chunks = ["c/0/0", "c/0/1", "c/1/0", "c/1/1"]
    assert keys(PARTS, Sharding((2, 2))) == sorted(["c/0/0", *(f"{c}{s}" for c in chunks for s in (".head", ".tail"))])


def test_reading_a_chunk_of_a_shard_in_parts_reads_the_index_and_one_range() -> None:
    store = RecordingStore()
    stack = [Sharding((2, 2)), INDEX]
    array = zarrlite.create_array(
        store, data=np.arange(16, dtype="u1").reshape(4, 4), chunks=(2, 2), codecs=[Bytes()], storage_transformers=stack
    )
    store.batches.clear()
    assert array[2:, :2].tolist() == [[8, 9], [12, 13]]
    requests = [request for batch in store.batches for request in batch]
    assert requests == [("c/0/0.index", 0, None), ("c/0/0", 8, 12)]


def test_changes_of_one_chunk_are_applied_in_order() -> None:
    store = wrap(zarrlite.MemoryStore(), (2,))

    def appending(piece: bytes) -> Any:
        return lambda source: bytes(source.read_one()) + piece

    store.change([("c/0", b"a"), ("c/0", appending(b"b")), ("c/1", b"x"), ("c/1", None)])
    assert (bytes(store.get("c/0")), store.get("c/1")) == (b"ab", None)
    store.change([("c/0", appending(b"c")), ("c/0", appending(b"d"))])
    assert bytes(store.get("c/0")) == b"abcd"
    store.change([("c/0", None), ("c/0", lambda source: b"missing" if source.size() is None else b"there")])
    assert bytes(store.get("c/0")) == b"missing"


def test_chunks_and_other_keys_are_stored_in_order() -> None:
    stored: list[str] = []

    class Below(zarrlite.MemoryStore):
        def set(self, key: str, value: Any) -> None:
            stored.append(key)
            super().set(key, value)

    store = wrap(Below(), (2,))
    store.change([("x", b""), ("c/0", b"a"), ("c/1", b"b"), ("x", b"1"), ("c/2", b"c"), ("c/0", b""), ("c/2", b"d")])
    assert stored == ["x", "c/0", "x", "c/1", "c/0", "c/1"]
    assert [bytes(store.get(key)) for key in ("c/0", "c/1", "c/2", "x")] == [b"", b"b", b"d", b"1"]


def test_a_shard_of_too_many_chunks_is_refused() -> None:
    below = zarrlite.MemoryStore()
    store = wrap(below, (2**40,))
    with pytest.raises(ArgumentError, match="a shard of 1099511627776 chunks cannot be written"):
        store.set("c/0", b"value")
    below.set("c/0", b"value")
    for read in (lambda: list(store.list_prefix("c/")), lambda: store.get("c/7"), lambda: store.size("c/7")):
        with pytest.raises(ShardError, match="the index has 17592186044416 bytes, but the shard has only 5"):
            read()


@pytest.mark.parametrize("missing", ["fill", "error"])
def test_draft_shards_are_read_and_written_with_and_without_missing_chunks(missing: Any) -> None:
    data = np.arange(63, dtype="u2").reshape(7, 9)
    store = zarrlite.MemoryStore()
    zarrlite.create_array(
        store, data=data, chunks=(2, 2), codecs=[Bytes(), Zstd()], storage_transformers=[Sharding((2, 3))]
    )
    array = zarrlite.open_array(store, missing_chunks=missing)
    np.testing.assert_array_equal(array[...], data)
    np.testing.assert_array_equal(array[1:6:2, [8, 0]], data[1:6:2, [8, 0]])
    array[2:5, 3:8] = data[2:5, 3:8] = 5
    array[0:2, 0:2] = data[0:2, 0:2] = 0  # makes this chunk absent
    np.testing.assert_array_equal(zarrlite.open_array(store, mode="r")[...], data)
    assert (array.chunks, array.nchunks, array.nchunks_initialized) == ((2, 2), 20, 19)
    if missing == "error":
        with pytest.raises(zarrlite.MissingChunkError, match="chunk c/0/0: is missing"):
            array[0, 0]


@pytest.mark.parametrize("stack", [[Sharding((2, 3))], [Sharding((2, 3)), INDEX], [Sharding((2, 2)), Sharding((2, 1))]])
@pytest.mark.parametrize("codecs", [[Bytes()], [Bytes(), Zstd()]])
def test_shards_and_chunks_do_not_depend_on_missing_chunks(stack: Any, codecs: Any) -> None:
    store = zarrlite.MemoryStore()
    zarrlite.create_array(store, shape=(16, 18), dtype="u1", chunks=(2, 3), codecs=codecs, storage_transformers=stack)
    fill, error = (zarrlite.open_array(store, missing_chunks=missing) for missing in ("fill", "error"))
    per_shard = np.prod([t.chunks_per_shard for t in stack if isinstance(t, Sharding)], axis=0)
    assert fill.shards == error.shards == (2 * per_shard[0], 3 * per_shard[1])
    assert fill.chunks == error.chunks == (2, 3)
    assert (fill.nchunks, fill.cdata_shape) == (error.nchunks, error.cdata_shape)


@pytest.mark.parametrize(
    ("index", "missing"),
    [
        (np.s_[4, 4], "c/2/2"),
        (np.s_[2:4, 6:8], "c/1/3"),
        (np.s_[:6, :6], "c/2/2"),
        (np.s_[0:4, 0:4], None),
        (np.s_[...], "c/1/3"),
        (np.s_[12, 12], "c/6/6"),
        (np.s_[10:16, 14], "c/5/7"),
    ],
)
@pytest.mark.parametrize(
    "stack", [[Sharding((4, 4))], [Sharding((2, 2)), Sharding((2, 2))]], ids=["shards", "shards of shards"]
)
def test_a_missing_chunk_of_a_draft_shard_is_named_by_its_key(stack: Any, index: Any, missing: str | None) -> None:
    data = np.ones((16, 16), "u1")
    data[4:6, 4:6] = data[2:4, 6:8] = 0  # in the first shard
    data[8:, 8:] = 0  # the last shard
    store = zarrlite.MemoryStore()
    zarrlite.create_array(store, data=data, chunks=(2, 2), codecs=[Bytes()], storage_transformers=stack)
    array = zarrlite.open_array(store, mode="r", missing_chunks="error")
    if missing is None:
        assert (array[index] == 1).all()
        return
    with pytest.raises(zarrlite.MissingChunkError) as caught:
        array[index]
    assert type(caught.value) is zarrlite.MissingChunkError
    assert str(caught.value) == f"chunk {missing}: is missing"


class TestSharding(StorageTransformerLaws):
    transformer = Sharding((2, 2))


class TestShardingInOneDimension(StorageTransformerLaws):
    transformer = Sharding((4, 1))
