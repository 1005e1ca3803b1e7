"""Conformance cases for stores: which bytes are read, and operations on stores wrapped by storage transformers."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from fixture_files import assert_read, cases, decode, index, stored

import zarrlite
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.chunks.chunks import ArrayOptions, Chunks
from zarrlite.errors import ZarrliteError
from zarrlite.metadata.documents import parse_node
from zarrlite.stores import MemoryStore
from zarrlite.tools.conformance.judge import merge_ranges
from zarrlite.tools.conformance.reference import RecordingStore

ABSENT = 2**64 - 1  # the offset and the length in the index entry of a missing chunk


class Recorder(RecordingStore):
    """A store in memory that records reads, and can return all its values."""

    def values(self) -> dict[str, bytes]:
        return {key: bytes(MemoryStore.get(self, key) or b"") for key in self.list()}


@cases("reads")
def test_reads_request_exactly_the_expected_ranges(case: dict[str, Any]) -> None:
    store = Recorder(stored(case))
    array = zarrlite.open_array(store, mode="r", path=case["path"])
    for read in case["reads"]:
        store.rounds.clear()
        assert_read(array[index(read["selection"])], read, array.dtype)
        assert merge_ranges(store.rounds) == merge_ranges(read["rounds"])


# operations above storage transformers


def store_above_transformers(case: dict[str, Any], below: Recorder) -> Any:
    """Wrap a store with the storage transformers of a case, for an array whose chunks contain one element."""
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": case["shape"],
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1] * len(case["shape"])}},
        "chunk_key_encoding": case["chunk_key_encoding"],
        "fill_value": 0,
        "codecs": ["bytes"],
        "storage_transformers": case["storage_transformers"],
    }
    metadata: Any = parse_node(document)
    return Chunks(below, "", metadata, ArrayOptions()).store


def encode(value: Buffer | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def perform(store: Any, op: dict[str, Any]) -> dict[str, Any]:
    """Perform one operation, and return its result as a dict with the member names used in cases."""
    match op["op"]:
        case "get":
            return {"value": encode(store.get(op["key"], ByteRange(*op.get("range", ALL))))}
        case "get_partial_values":
            values = store.get_partial_values([(key, ByteRange(*r)) for key, *r in op["ranges"]])
            return {"values": list(map(encode, values))}
        case "size":
            return {"size": store.size(op["key"])}
        case "list":
            return {"keys": sorted(store.list())}
        case "list_prefix":
            return {"keys": sorted(store.list_prefix(op["prefix"]))}
        case "list_dir":
            keys, prefixes = store.list_dir(op["prefix"])
            return {"keys": keys, "prefixes": prefixes}
        case "set":
            store.set(op["key"], decode(op["value"]))
        case "set_partial_values":
            store.set_partial_values([(key, start, decode(value)) for key, start, value in op["pieces"]])
        case "erase":
            store.erase(op["key"])
        case "erase_values":
            store.erase_values(op["keys"])
        case "erase_prefix":
            store.erase_prefix(op["prefix"])
    return {}


def chunks_of(shard: bytes, entries: int) -> dict[str, bytes]:
    """Return the chunks in a shard, keyed by number.

    The index must be at the end, uncompressed and without a checksum.
    """
    index_start = len(shard) - 16 * entries
    chunks = {}
    for i in range(entries):
        offset, length = struct.unpack_from("<QQ", shard, index_start + 16 * i)
        if (offset, length) != (ABSENT, ABSENT):
            assert offset + length <= index_start
            chunks[str(i)] = shard[offset : offset + length]
    return chunks


@cases("store")
def test_operations_above_transformers_have_the_results_of_the_case(case: dict[str, Any]) -> None:
    below = Recorder({key: decode(value) for key, value in case["before"].items()})
    store = store_above_transformers(case, below)
    for op in case["operations"]:
        below.rounds.clear()
        if "error" in op:
            with pytest.raises(ZarrliteError) as caught:
                perform(store, op)
            assert type(caught.value).__name__ == op["error"]
        else:
            result = perform(store, op)
            assert result == {name: op[name] for name in result}
        if "rounds" in op:
            assert merge_ranges(below.rounds) == merge_ranges(op["rounds"])
    values = below.values()
    assert sorted(values) == sorted(case["after"])
    for key, expected in case["after"].items():
        if isinstance(expected, str):
            assert values[key] == decode(expected), key
        else:
            chunks = chunks_of(values[key], expected["entries"])
            assert chunks == {i: decode(chunk) for i, chunk in expected["chunks"].items()}, key
