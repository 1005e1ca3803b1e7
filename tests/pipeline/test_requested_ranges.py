"""The byte ranges that are requested to read a part of a chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.pipeline.arrays import COMPRESSORS, CountingStore, make, read, shards
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.codecs import Bytes, Crc32c, Offset, Packbits, Transpose
from zarrlite.errors import DataError
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.indexing import basic
from zarrlite.stores.base import StoredValue

INDEX = 4 * 16 + 4
# name, codecs of chunks of shape (4, 4), selection, and the byte ranges of each request
REQUESTS: list[tuple[str, list[Any], Any, list[list[tuple[int, int | None]]]]] = [
    ("a whole chunk", [Bytes()], np.s_[:], [[(0, 16)]]),
    ("one element", [Bytes()], np.s_[1, 2], [[(6, 7)]]),
    ("one row", [Bytes()], np.s_[1], [[(4, 8)]]),
    ("one column", [Bytes()], np.s_[:, 1], [[(1, 14)]]),
    ("a block", [Bytes()], np.s_[1:3, 1:3], [[(5, 11)]]),
    ("points", [Bytes()], np.s_[[1, 3], [1, 0]], [[(5, 13)]]),
    ("nothing", [Bytes()], np.s_[2:2], []),
    ("one element after transpose", [Transpose((1, 0)), Bytes()], np.s_[1, 2], [[(9, 10)]]),
    ("one column after transpose", [Transpose((1, 0)), Bytes()], np.s_[:, 1], [[(4, 8)]]),
    ("all of it after transpose", [Transpose((1, 0)), Bytes()], np.s_[:], [[(0, 16)]]),
    ("one element with a checksum", [Bytes(), Crc32c()], np.s_[1, 2], [[(0, 21)]]),
    ("one element of packed bits", [Packbits()], np.s_[1, 2], [[(0, 17)]]),
    ("one inner chunk", [shards((2, 2))], np.s_[2:, :2], [[(-INDEX, None)], [(8, 12)]]),
    ("one inner chunk, index first", [shards((2, 2), location="start")], np.s_[2:, :2], [[(0, INDEX)], [(76, 80)]]),
    (
        "one inner chunk after transpose",
        [Transpose((1, 0)), shards((2, 2))],
        np.s_[2:, :2],
        [[(-INDEX, None)], [(4, 8)]],
    ),
    ("one element of a shard", [shards((2, 2))], np.s_[3, 0], [[(-INDEX, None)], [(10, 11)]]),
    (
        "one element of an inner chunk that is checked",
        [shards((2, 2), (Bytes(), Crc32c()))],
        np.s_[3, 0],
        [[(-INDEX, None)], [(16, 24)]],
    ),
    ("two inner chunks", [shards((2, 2))], np.s_[:, 0], [[(-INDEX, None)], [(0, 11)]]),
    ("three quarters", [shards((2, 2))], np.s_[:3], [[(-INDEX, None)], [(0, 14)]]),
    ("all inner chunks", [shards((2, 2))], np.s_[:], [[(0, None)]]),
    ("points in three inner chunks", [shards((2, 2))], np.s_[[0, 3, 3], [0, 0, 3]], [[(-INDEX, None)], [(0, 16)]]),
    ("a shard with a checksum", [shards((2, 2)), Crc32c()], np.s_[3, 0], [[(0, None)]]),
]


@pytest.mark.parametrize(
    ("chain", "index", "requests"), [row[1:] for row in REQUESTS], ids=[row[0] for row in REQUESTS]
)
def test_a_read_requests_no_more_than_it_needs(chain: list[Any], index: Any, requests: Any) -> None:
    array = make((4, 4), (4, 4), chain)
    np.testing.assert_array_equal(array[index], np.arange(1, 17).reshape(4, 4)[index])
    assert array.store.requests == [("c/0/0", ranges) for ranges in requests]


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda codec: codec.name)
def test_one_compressed_inner_chunk_takes_two_small_requests(compressor: Any) -> None:
    array = make((64, 64), (64, 64), [Transpose((1, 0)), shards((16, 16), (Bytes(), compressor))], "u2")
    np.testing.assert_array_equal(array[0:16, 16:20], np.arange(1, 4097).reshape(64, 64)[0:16, 16:20])
    (_, index), (_, entry) = array.store.requests
    assert index == [(-(16 * 16 + 4), None)]
    ((start, stop),) = entry
    assert 0 < stop - start <= 16 * 16 * 2 + 64


def test_inner_chunks_that_are_far_apart_take_one_request_of_several_ranges() -> None:
    array = make((8, 8192), (8, 8192), [shards((1, 8192))])
    array[[0, 1, 4, 7], 5]
    index, entries = array.store.requests
    assert index == ("c/0/0", [(-(8 * 16 + 4), None)])
    assert entries == ("c/0/0", [(5, 8198), (32773, 32774), (57349, 57350)])


def test_rows_that_are_far_apart_take_one_request_of_several_ranges() -> None:
    array = make((4, 2**16), (4, 2**16), [Bytes()])
    expected = np.arange(1, 2**18 + 1).astype("u1").reshape(4, 2**16)
    np.testing.assert_array_equal(array[1:, 10:12], expected[1:, 10:12])
    row = 2**16
    assert array.store.requests == [("c/0/0", [(n * row + 10, n * row + 12) for n in (1, 2, 3)])]
    array.store.requests.clear()
    np.testing.assert_array_equal(array[1:2, 10:12], expected[1:2, 10:12])
    assert array.store.requests == [("c/0/0", [(row + 10, row + 12)])]
    array.store.erase("c/0/0")
    assert not array[1:, 10:12].any()


def test_an_absent_inner_chunk_takes_one_request_for_the_index() -> None:
    array = make((4, 4), (4, 4), [shards((2, 2))])
    array[:2, :2] = 0
    array.store.requests.clear()
    assert not array[:2, :2].any()
    assert array.store.requests == [("c/0/0", [(-INDEX, None)])]


def test_a_missing_shard_takes_one_request() -> None:
    array = make((4, 4), (4, 4), [shards((2, 2))])
    array[...] = 0
    array.store.requests.clear()
    assert not array[1, 1]
    assert array.store.requests == [("c/0/0", [(-INDEX, None)])]


def test_one_element_of_nested_shards_takes_three_requests() -> None:
    inner = shards((1, 2), location="start")
    array = make((4, 4), (4, 4), [shards((2, 2), [inner])])
    assert array[3, 1] == 14
    inner_size = 2 * 16 + 4 + 4
    start = 2 * inner_size
    assert array.store.requests == [
        ("c/0/0", [(-INDEX, None)]),
        ("c/0/0", [(start, start + 36)]),
        ("c/0/0", [(start + 39, start + 40)]),
    ]


def test_partial_reads_of_a_shard_after_a_header_request_only_what_they_need() -> None:
    array = make((4, 4), (4, 4), [shards((2, 2), location="start")])
    store = CountingStore({"k": b"header" + bytes(zarrlite.MemoryStore.get(array.store, "c/0/0"))})
    bound = Pipeline([*array.metadata.codecs, Offset(6)], array.metadata.pipeline((4, 4)).spec)
    part = read(bound, StoredValue(store, "k"), basic(np.s_[2:, :2], (4, 4)).selection)
    assert part.tolist() == [[9, 10], [13, 14]]
    assert store.requests == [("k", [(6, 6 + INDEX)]), ("k", [(6 + INDEX + 8, 6 + INDEX + 12)])]


def test_a_shard_that_is_erased_while_it_is_read_is_refused() -> None:
    class Vanishing(CountingStore):
        def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
            value = super().get(key, byte_range)
            if len(self.requests) > 1 and not key.endswith("zarr.json"):
                return None
            return value

    full = make((4, 4), (4, 4), [shards((2, 2))])
    for index, coords in ((np.s_[3, 3], (1, 1)), (np.s_[:, 3], (0, 1))):
        store = Vanishing({key: zarrlite.MemoryStore.get(full.store, key) for key in full.store.list()})
        array = zarrlite.Array(store, "", full.metadata)
        with pytest.raises(DataError) as caught:
            array[index]
        message = f"chunk c/0/0, codec sharding_indexed: inner chunk {coords}: disappeared while the shard was read"
        assert str(caught.value) == message


def test_an_empty_selection_takes_no_request() -> None:
    store = CountingStore()
    array = zarrlite.create_array(store, shape=(4, 4), dtype="i2", codecs=[Bytes()])
    store.requests.clear()
    nothing = array[1:3, 2:2]
    assert (nothing.shape, nothing.dtype, store.requests) == ((2, 0), np.dtype("i2"), [])
