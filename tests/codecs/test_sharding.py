"""The `sharding_indexed` codec: shards with inner chunks in any order, and damaged shards."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.codecs.decoding import ABSENT, LITTLE, GetOnlyStore, decode, encode, pipeline, refusal
from zarrlite import codecs
from zarrlite.codecs import Bytes, Crc32c, Gzip, ShardingIndexed
from zarrlite.errors import ChecksumError, DataError, ShardError, TruncatedError
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import everything


def shard_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<QQ", *entry) for entry in entries)


def sharding(location: str = "end", inner: Any = (LITTLE,), index: Any = (LITTLE,)) -> Pipeline:
    codec = ShardingIndexed((1, 2), tuple(inner), tuple(index), location)
    return pipeline([codec], (2, 4), "uint8", 9)


EMPTY = (ABSENT, ABSENT)
SHARDS = [
    ("in order", "end", b"abcdefgh" + shard_index((0, 2), (2, 2), (4, 2), (6, 2)), [b"abcd", b"efgh"]),
    ("backwards", "end", b"abcdefgh" + shard_index((6, 2), (4, 2), (2, 2), (0, 2)), [b"ghef", b"cdab"]),
    ("all in one place", "end", b"ab" + shard_index(*[(0, 2)] * 4), [b"abab", b"abab"]),
    ("overlapping", "end", b"abc" + shard_index((0, 2), (1, 2), (0, 2), (1, 2)), [b"abbc", b"abbc"]),
    ("with gaps", "end", b"--ab---cd-" + shard_index((2, 2), EMPTY, EMPTY, (7, 2)), [b"ab\t\t", b"\t\tcd"]),
    ("empty", "end", shard_index(EMPTY, EMPTY, EMPTY, EMPTY), [b"\t\t\t\t", b"\t\t\t\t"]),
    ("index first", "start", shard_index((66, 2), EMPTY, (64, 2), EMPTY) + b"abcd", [b"cd\t\t", b"ab\t\t"]),
    (
        "far apart",
        "end",
        b"ab" + bytes(20000) + b"cd" + shard_index((20002, 2), EMPTY, EMPTY, (0, 2)),
        [b"cd\t\t", b"\t\tab"],
    ),
]


@pytest.mark.parametrize(("location", "data", "rows"), [row[1:] for row in SHARDS], ids=[row[0] for row in SHARDS])
def test_inner_chunks_may_be_in_any_order(location: str, data: bytes, rows: list[bytes]) -> None:
    assert [bytes(row) for row in np.asarray(decode(sharding(location), data))] == rows
    store = zarrlite.MemoryStore({"c/0/0": data})
    array = zarrlite.create_array(
        store, shape=(2, 4), dtype="u1", chunks=(2, 4), fill_value=9, codecs=[sharding(location).serializer.codec]
    )
    store.set("c/0/0", data)
    assert [bytes(row) for row in array[...]] == rows
    for i, j in np.ndindex(2, 4):
        assert array[i, j] == rows[i][j]
    array[0, 0] = 1  # rewrites the shard; its other elements are unchanged
    assert [bytes(row) for row in array[...]] == [b"\1" + rows[0][1:], rows[1]]


def test_a_shard_is_written_row_major_without_gaps_and_without_empty_chunks() -> None:
    array = np.array([[1, 2, 9, 9], [3, 4, 5, 6]], "u1")
    body = bytes([1, 2, 3, 4, 5, 6])
    assert encode(sharding("end"), array) == body + shard_index((0, 2), EMPTY, (2, 2), (4, 2))
    assert encode(sharding("start"), array) == shard_index((64, 2), EMPTY, (66, 2), (68, 2)) + body
    assert encode(sharding(), np.full((2, 4), 9, "u1")) == shard_index(EMPTY, EMPTY, EMPTY, EMPTY)
    big = sharding(index=(Bytes("big"), Crc32c()))
    table = struct.pack(">8Q", 0, 2, ABSENT, ABSENT, 2, 2, 4, 2)
    assert encode(big, array) == body + Crc32c().encode(table)


SHARD_DAMAGE = [
    ("end", b"", ShardError, "the index has 64 bytes, but the shard has only 0"),
    ("end", bytes(63), ShardError, "the index has 64 bytes, but the shard has only 63"),
    ("start", bytes(10), ShardError, "the index has 64 bytes, but the shard has only 10"),
    (
        "end",
        b"ab" + shard_index((0, ABSENT), EMPTY, EMPTY, EMPTY),
        ShardError,
        f"index entry 0 is half empty: offset 0, length {ABSENT}",
    ),
    (
        "end",
        b"ab" + shard_index(EMPTY, (ABSENT, 2), EMPTY, EMPTY),
        ShardError,
        f"index entry 1 is half empty: offset {ABSENT}, length 2",
    ),
    (
        "start",
        shard_index((63, 2), EMPTY, EMPTY, EMPTY) + b"ab",
        ShardError,
        "the chunk of index entry 0 starts at 63, inside the index itself",
    ),
    (
        "end",
        b"ab" + shard_index((0, 3), EMPTY, EMPTY, EMPTY),
        ShardError,
        "index entry 0 has 3 bytes, but a chunk has at most 2",
    ),
    (
        "end",
        b"ab" + shard_index((0, 1), EMPTY, EMPTY, EMPTY),
        TruncatedError,
        "codec bytes: inner chunk (0, 0): has 1 bytes, but a chunk of shape (1, 2) has 2",
    ),
    (
        "end",
        b"ab" + shard_index(EMPTY, (2**63, 2), EMPTY, EMPTY),
        ShardError,
        f"index entry 1 ends at {2**63 + 2}, but the chunks end at 2",
    ),
    (
        "start",
        shard_index(EMPTY, (65, 2), EMPTY, EMPTY) + b"ab",
        ShardError,
        "index entry 1 ends at 67, but the chunks end at 66",
    ),
]


@pytest.mark.parametrize(("location", "data", "kind", "message"), SHARD_DAMAGE)
def test_a_damaged_shard_is_refused_with_the_reason(location: str, data: bytes, kind: type, message: str) -> None:
    assert refusal(sharding(location), data) == (kind, message)


PARTLY_DAMAGED = [
    ((2**63, 2), np.s_[0], ShardError, f"index entry 1 ends at {2**63 + 2}, but the chunks end at 2"),
    ((1, 2), np.s_[0, 2], ShardError, "index entry 1 ends at 3, but the chunks end at 2"),
    ((0, ABSENT), np.s_[0, 2], ShardError, f"index entry 1 is half empty: offset 0, length {ABSENT}"),
    ((0, 3), np.s_[0, 2], ShardError, "index entry 1 has 3 bytes, but a chunk has at most 2"),
]


@pytest.mark.parametrize(
    ("index", "kind", "message"),
    [
        (np.s_[0], ShardError, f"an entry of 2 bytes at offset {2**63} extends beyond the shard"),
        (np.s_[0, 2], TruncatedError, f"inner chunk (0, 1): has only 0 of 1 bytes at offset {2**63}"),
    ],
)
def test_an_entry_beyond_the_end_of_a_shard_of_unknown_size_is_refused(index: Any, kind: type, message: str) -> None:
    codec = sharding().serializer.codec
    document = zarrlite.create_array({}, shape=(2, 4), dtype="u1", chunks=(2, 4), fill_value=9, codecs=[codec]).metadata
    shard = b"ab" + shard_index((0, 2), (2**63, 2), EMPTY, EMPTY)
    store = GetOnlyStore({"zarr.json": zarrlite.metadata.documents.serialize(document), "c/0/0": shard})
    with pytest.raises(DataError) as caught:
        zarrlite.open_array(store, mode="r")[index]
    assert (type(caught.value), str(caught.value)) == (kind, "chunk c/0/0: " + message)


def test_shards_are_read_in_parts_from_a_store_without_sizes() -> None:
    chain = [sharding().serializer.codec, codecs.Pad("start", 7)]
    values: dict[str, bytes] = {}
    zarrlite.create_array(values, data=np.arange(8, dtype="u1").reshape(2, 4), chunks=(2, 4), codecs=chain)
    array = zarrlite.open_array(store := GetOnlyStore(values), mode="r")
    store.asked.clear()
    assert array[0:1, 2:4].tolist() == [[2, 3]]
    size = len(values["c/0/0"])
    index = size - 7 - 8
    assert store.asked == [("c/0/0", -index - 7, None), ("c/0/0", 9, 11)]


@pytest.mark.parametrize(("entry", "index", "kind", "message"), PARTLY_DAMAGED)
def test_only_the_entries_that_are_read_are_checked(entry: Any, index: Any, kind: type, message: str) -> None:
    store = zarrlite.MemoryStore()
    codec = sharding().serializer.codec
    array = zarrlite.create_array(store, shape=(2, 4), dtype="u1", chunks=(2, 4), fill_value=9, codecs=[codec])
    store.set("c/0/0", b"ab" + shard_index((0, 2), entry, EMPTY, EMPTY))
    with pytest.raises(DataError) as caught:
        array[index]
    assert (type(caught.value), str(caught.value)) == (kind, "chunk c/0/0: " + message)
    assert bytes(array[0, :2]) == b"ab"
    assert array[1, 0] == 9


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"ab" + shard_index(EMPTY, (1, 2), EMPTY, EMPTY), "index entry 1 ends at 3, but the chunks end at 2"),
        (
            b"ab" + shard_index(EMPTY, (2**62, 2), EMPTY, EMPTY),
            f"index entry 1 ends at {2**62 + 2}, but the chunks end at 2",
        ),
    ],
)
def test_a_damaged_shard_is_not_updated(data: bytes, message: str) -> None:
    store = zarrlite.MemoryStore()
    codec = sharding().serializer.codec
    array = zarrlite.create_array(store, shape=(2, 4), dtype="u1", chunks=(2, 4), fill_value=9, codecs=[codec])
    store.set("c/0/0", data)
    with pytest.raises(ShardError) as caught:
        array[1, 0] = 5
    assert str(caught.value) == "chunk c/0/0: " + message
    assert store.get("c/0/0") == data


def test_a_wrong_index_checksum_is_reported() -> None:
    bound = sharding(index=(LITTLE, Crc32c()))
    data = bytearray(encode(bound, np.ones((2, 4), "u1")))
    data[-1] ^= 255
    kind, message = refusal(bound, bytes(data))
    assert kind is ChecksumError
    assert message.startswith("codec crc32c: in the shard index: the stored checksum is ")


def test_damage_inside_a_shard_names_the_inner_chunk() -> None:
    bound = sharding(inner=(LITTLE, Crc32c()))
    data = bytearray(encode(bound, np.arange(8, dtype="u1").reshape(2, 4)))
    data[12] ^= 255  # a byte of the third inner chunk
    kind, message = refusal(bound, bytes(data))
    assert kind is ChecksumError
    assert message.startswith("codec crc32c: inner chunk (1, 0): the stored checksum is ")
    with pytest.raises(ChecksumError, match=r"^codec crc32c: inner chunk \(1, 0\): "):
        bound.update(bytes(data), everything((2, 1)), np.full((2, 1), 7, "u1"))


def test_an_array_of_no_dimensions_may_be_sharded() -> None:
    array = zarrlite.create_array(shape=(), dtype="i4", chunks=(), codecs=[ShardingIndexed((), (LITTLE, Gzip()))])
    array[()] = 5
    assert array[()] == 5
