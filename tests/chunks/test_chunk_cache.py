"""The cache of decoded chunks: which reads it saves, what it returns, and when it discards chunks."""

from __future__ import annotations

import pickle
import random
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrlite
from zarrlite import ByteRange, MemoryStore
from zarrlite.chunks.chunks import Chunks
from zarrlite.errors import ArgumentError, DataError, MissingChunkError
from zarrlite.stores import Store

PARTS: Any = [
    {"name": "concat-parts", "configuration": {"parts": [{"key_suffix": ".a", "size": 5}, {"key_suffix": ""}]}}
]
APART: Any = [
    {"name": "concat-parts", "configuration": {"parts": [{"key_suffix": ".a", "size": 5}, {"key_suffix": ".b"}]}}
]
DRAFT: Any = [{"name": "sharding", "configuration": {"type": "indexed", "chunks_per_shard": [2, 3]}}]
KINDS: dict[str, dict[str, Any]] = {
    "compressed": {"chunks": (4, 5)},
    "uncompressed": {"chunks": (4, 5), "compressors": None},
    "shards": {"chunks": (2, 3), "shards": (8, 9)},
    "transposed shards": {
        "chunks": (2, 3),
        "shards": (8, 9),
        "filters": {"name": "transpose", "configuration": {"order": [1, 0]}},
    },
    "parts": {"chunks": (4, 5), "storage_transformers": PARTS},
    "parts without the key of the chunk": {"chunks": (4, 5), "storage_transformers": APART},
    "shards of a transformer": {"chunks": (2, 3), "storage_transformers": DRAFT},
    "text": {"chunks": (4, 5), "dtype": "string"},
}


class Counting(Store):
    """A store in memory that records the key of every value or range that is read."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.reads: list[str] = []

    def get(self, key: str, byte_range: ByteRange = ByteRange()) -> Any:
        if not key.endswith("zarr.json"):
            self.reads.append(key)
        return self.store.get(key, byte_range)

    def set(self, key: str, value: Any) -> None:
        self.store.set(key, value)

    def erase(self, key: str) -> None:
        self.store.erase(key)

    def list(self) -> Any:
        return self.store.list()


def create(store: Any, kind: str = "compressed", shape: tuple[int, int] = (20, 30)) -> np.ndarray[Any, Any]:
    data: Any = np.arange(shape[0] * shape[1]).reshape(shape)
    keywords = KINDS[kind]
    if "dtype" in keywords:
        data = data.astype(str).astype(np.dtypes.StringDType())
    zarrlite.create_array(store, data=data, **{key: value for key, value in keywords.items() if key != "dtype"})
    return data


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_cached_chunks_are_not_read_again(kind: str, mode: Any) -> None:
    store = Counting()
    data = create(store, kind)
    array = zarrlite.open_array(store, mode=mode, chunk_cache=2**20)
    reads: list[Any] = [
        lambda a: a[3, 7],
        lambda a: a[2:11, 4:17],
        lambda a: a[1::3, ::-2],
        lambda a: a.oindex[[1, 9, 17], [0, 29, 13]] if hasattr(a, "oindex") else a[np.ix_([1, 9, 17], [0, 29, 13])],
        lambda a: a.vindex[[1, 9, 17], [0, 29, 13]] if hasattr(a, "vindex") else a[[1, 9, 17], [0, 29, 13]],
        lambda a: a[...],
    ]
    for read in reads:
        assert np.array_equal(read(array), read(data))
    store.reads.clear()
    for read in reads:
        assert np.array_equal(read(array), read(data))
    assert store.reads == []


def test_scattered_elements_read_each_chunk_once() -> None:
    store = Counting()
    data = create(store)
    array = zarrlite.open_array(store, mode="r", chunk_cache=2**20)
    store.reads.clear()
    generator = random.Random(1)
    for _ in range(200):
        i, j = generator.randrange(20), generator.randrange(30)
        assert array[i, j] == data[i, j]
    assert len(store.reads) == len(set(store.reads)) == 30


def test_inner_chunks_of_a_shard_are_read_together() -> None:
    store = Counting()
    data = create(store, "shards", (8, 9))
    array = zarrlite.open_array(store, mode="r", chunk_cache=2**20)
    store.reads.clear()
    assert (array.oindex[[0, 7], [0, 8]] == data[np.ix_([0, 7], [0, 8])]).all()
    plain = zarrlite.open_array(store, mode="r")
    cached_reads = len(store.reads)
    store.reads.clear()
    plain.oindex[[0, 7], [0, 8]]
    assert cached_reads == len(store.reads)
    assert array[7, 0] == data[7, 0]
    assert array[6:8, 6:9].tolist() == data[6:8, 6:9].tolist()


def test_arrays_have_no_cache_by_default() -> None:
    store = MemoryStore()
    create(store)
    array = zarrlite.open_array(store)
    assert type(array._chunks) is Chunks
    assert array.store is store


def test_results_are_copies() -> None:
    store = MemoryStore()
    data = create(store)
    array = zarrlite.open_array(store, chunk_cache=2**20)
    for index in (np.s_[0:4, 0:5], np.s_[...], np.s_[1]):
        array[index][...] = -1
        assert (array[index] == data[index]).all()


def test_a_read_of_more_than_half_of_the_cache_is_not_kept() -> None:
    store = Counting()
    data = create(store)
    array = zarrlite.open_array(store, mode="r", chunk_cache=1000)
    assert array[0, 0] == 0
    assert (array[...] == data).all()
    assert (array.oindex[list(range(20)), :] == data).all()
    store.reads.clear()
    assert array[0, 1] == 1
    assert store.reads == []
    cache: Any = array.options.cache
    assert list(cache._by_key) == ["c/0/0"]


def test_the_least_recently_used_chunks_go_first_and_the_bound_holds() -> None:
    store = Counting()
    create(store)
    array = zarrlite.open_array(store, mode="r", chunk_cache=4 * 160)  # a chunk takes 160 bytes
    cache: Any = array.options.cache
    for column in (0, 5, 10, 15, 0, 20):
        array[0, column]
        assert cache._total == sum(cell.nbytes for cell in cache._cells.values()) <= 640
    assert list(cache._by_key) == ["c/0/2", "c/0/3", "c/0/0", "c/0/4"] or set(cache._by_key) == {
        "c/0/0",
        "c/0/2",
        "c/0/3",
        "c/0/4",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_writes_through_any_node_of_the_root_are_seen(kind: str) -> None:
    store = MemoryStore()
    root = zarrlite.open_group(store, chunk_cache=2**20)
    data = create_in(root, kind)
    first, second = root["a"], root["a"]
    assert isinstance(first, zarrlite.Array)
    assert isinstance(second, zarrlite.Array)
    assert np.array_equal(first[...], data)
    new = data[5, 5]
    for index in (np.s_[0, 0], np.s_[2:9, 3:20], np.s_[...]):
        second[index] = new
        data[index] = new
        assert np.array_equal(first[...], data)
    second.resize((13, 40))
    third: Any = root["a"]
    fill = np.empty((13, 40), data.dtype)
    fill[...] = third.fill_value
    fill[:, :30] = data[:13]
    assert np.array_equal(third[...], fill)
    second.append(np.full((2, 40), new, data.dtype))
    assert np.array_equal(root["a"][13:], np.full((2, 40), new, data.dtype))  # type: ignore[index]
    del root["a"]
    other = root.create_array("a", shape=(20, 30), dtype="int8", chunks=(4, 5), fill_value=3)
    assert (other[...] == 3).all()


def create_in(root: Any, kind: str) -> np.ndarray[Any, Any]:
    alone = MemoryStore()
    data = create(alone, kind)
    zarrlite.copy(zarrlite.open_array(alone), root.store, "a")
    return data


def test_handles_with_different_shapes_share_a_cache() -> None:
    root = zarrlite.open_group(MemoryStore(), chunk_cache=2**20)
    root.create_array("a", data=np.arange(6), chunks=4, fill_value=-1)
    old: Any = root["a"]
    root["a"].resize(8)  # type: ignore[union-attr]
    new: Any = root["a"]
    for _ in range(2):
        assert old[...].tolist() == [0, 1, 2, 3, 4, 5]
        assert new[...].tolist() == [0, 1, 2, 3, 4, 5, -1, -1]


def test_a_copy_does_not_share_the_cache_of_its_source() -> None:
    source = zarrlite.open_array(MemoryStore(), mode="w", data=np.arange(4), chunks=2, chunk_cache=1000)
    assert source[0] == 0
    target = zarrlite.copy(source, MemoryStore())
    target[0] = 7
    assert (source[0], target[0]) == (0, 7)
    assert target.options.cache is None


def test_a_missing_chunk_is_an_error_if_it_must_exist() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, shape=(12, 18), dtype="int8", chunks=(2, 3), storage_transformers=DRAFT)[0:4, 0:3] = 1
    array = zarrlite.open_array(store, mode="r", missing_chunks="error", chunk_cache=1000)
    assert array[0, 0] == 1
    assert array.oindex[[0, 3], [0, 2]].sum() == 4
    for index in (np.s_[0, 3], np.s_[8, 8], np.s_[0:4, 0:4]):
        with pytest.raises(MissingChunkError):
            array[index]


def test_a_damaged_inner_chunk_harms_no_other() -> None:
    store = MemoryStore()
    data = np.arange(64, dtype="int32")
    zarrlite.create_array(store, data=data, chunks=8, shards=64, compressors=[{"name": "crc32c"}])
    shard = bytearray(store.get("c/0") or b"")
    shard[40] ^= 1  # damages the second inner chunk
    store.set("c/0", shard)
    array = zarrlite.open_array(store, mode="r", chunk_cache=1000)
    assert array.oindex[[0, 20, 30]].tolist() == [0, 20, 30]
    with pytest.raises(DataError):
        array.oindex[[0, 9, 30]]
    assert array[0:8].tolist() == [*range(8)]


def test_a_pickle_has_an_empty_cache_of_the_same_size() -> None:
    root = zarrlite.open_group(zarrlite.MemoryStore(), chunk_cache=1000)
    root["a"] = np.arange(10)
    array: Any = root["a"]
    array[...]
    loaded = pickle.loads(pickle.dumps(array))
    assert loaded.options.cache.max_bytes == 1000
    assert not loaded.options.cache._cells
    assert loaded[3] == 3
    loaded[3] = 7
    assert loaded[3] == 7
    assert array[3] == 3
    assert repr(loaded.store) == repr(array.store) == "MemoryStore(3 keys)"


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "1"])
def test_invalid_sizes_are_refused(size: Any) -> None:
    with pytest.raises(ArgumentError, match="chunk_cache must be a positive number of bytes"):
        zarrlite.open({}, chunk_cache=size)


def test_threads_see_what_was_written_before_they_read() -> None:
    root = zarrlite.open_group(MemoryStore(), chunk_cache=3000)
    root.create_array("a", data=np.zeros((40, 40), "int64"), chunks=(5, 5), shards=(20, 20))
    errors: list[BaseException] = []

    def work(number: int) -> None:
        generator = random.Random(number)
        array: Any = root["a"]
        mine = np.zeros((10, 40), "int64")
        try:
            for step in range(60):
                i, j = generator.randrange(10), generator.randrange(40)
                mine[i, j] = step
                array[number * 10 + i, j] = step  # two threads write to each shard
                rows = sorted({generator.randrange(10) for _ in range(3)})
                assert (array.oindex[[number * 10 + row for row in rows], :] == mine[rows]).all()
                assert array[number * 10 + i, j] == step
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_reader_never_keeps_what_a_writer_has_replaced_meanwhile() -> None:
    store = Counting()
    create(store)
    root = zarrlite.open_array(store, chunk_cache=2**20)
    fetched, replaced = threading.Event(), threading.Event()
    get = store.store.get

    def slow(key: str, byte_range: ByteRange) -> Any:
        value = get(key, byte_range)
        if threading.current_thread() is reader:
            fetched.set()
            assert replaced.wait(60)
        return value

    store.store.get = slow  # type: ignore[method-assign]
    reader = threading.Thread(target=lambda: root[0, 0])
    reader.start()
    assert fetched.wait(60)
    root[0, 1] = 77
    replaced.set()
    reader.join()
    assert root[0, 1] == 77


@settings(max_examples=40, deadline=None)
@given(data=st.data(), kind=st.sampled_from([*KINDS]), size=st.sampled_from([1, 300, 2000, 10**6]))
def test_any_sequence_of_operations_has_the_same_results_without_a_cache(
    data: st.DataObject, kind: str, size: int
) -> None:
    store = MemoryStore()
    create(store, kind)
    root = zarrlite.open_array(store, chunk_cache=size)
    plain = zarrlite.open_array(store)
    for _ in range(data.draw(st.integers(1, 8))):
        rows, columns = root.shape
        i, k = sorted(data.draw(st.tuples(st.integers(0, rows), st.integers(0, rows))))
        j, m = sorted(data.draw(st.tuples(st.integers(0, columns), st.integers(0, columns))))
        operation = data.draw(st.sampled_from(["box", "box", "element", "orthogonal", "points", "write", "resize"]))
        if operation == "box":
            step = data.draw(st.integers(1, 3))
            assert np.array_equal(root[i:k:step, j:m], plain[i:k:step, j:m])
        elif operation == "write":
            root[i:k, j:m] = data.draw(st.integers(0, 5)) if kind != "text" else "x"
        elif operation == "resize":
            root.resize((data.draw(st.integers(1, 25)), data.draw(st.integers(1, 35))))
            plain = zarrlite.open_array(store)
        else:
            count = 1 if operation == "element" else data.draw(st.integers(0, 6))
            points = [[data.draw(st.integers(0, n - 1)) for _ in range(count)] for n in root.shape]
            if operation == "element":
                assert root[points[0][0], points[1][0]] == plain[points[0][0], points[1][0]]
            elif operation == "orthogonal":
                assert np.array_equal(root.oindex[tuple(points)], plain.oindex[tuple(points)])
            else:
                assert np.array_equal(root.vindex[tuple(points)], plain.vindex[tuple(points)])
    assert np.array_equal(root[...], plain[...])
