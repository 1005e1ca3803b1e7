"""Helpers for zarrlite's harness: record the byte ranges of reads, and run operations through storage transformers.

Rules
- A round is one batch of requests to a store. Requests that return no bytes, and requests for sizes, are not recorded.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import Source
from zarrlite.chunks.chunks import ArrayOptions, Chunks
from zarrlite.errors import MetadataError, ZarrliteError
from zarrlite.metadata.documents import parse_node
from zarrlite.stores import MemoryStore, Store
from zarrlite.stores.base import Buffers, Request, StoredValue

Json = dict[str, Any]


class RecordingStore(MemoryStore):
    """A store in memory that records the byte ranges read in each round, with absolute offsets."""

    def __init__(self, values: dict[str, bytes]) -> None:
        super().__init__(values)
        self.rounds: list[list[list[Any]]] = []

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        ranges = [(key, *r.resolve(size)) for key, r, *_ in requests if (size := self.size(key)) is not None]
        reads = [[key, start, stop] for key, start, stop in ranges if stop > start]
        if reads:
            self.rounds.append(reads)
        return super().get_partial_values(requests, memory)

    def source(self, key: str) -> Source:
        return _RecordedValue(self, key)


class _RecordedValue(StoredValue):
    """A value that is read by key and whose size is known."""

    def known_size(self) -> int | None:
        return self.size()


def details(error: Exception) -> Json:
    """Return the members of a refusal apart from its message: the pointer and kind of a fault, or the error class."""
    if isinstance(error, MetadataError):
        return {"pointer": error.pointer, "fault": error.kind}
    return {"error": type(error).__name__}


def run_operations(
    document: Json, values: dict[str, bytes], operations: list[Json]
) -> tuple[list[Json], dict[str, bytes]]:
    """Carry out operations on a store through the storage transformers of an array.

    Returns the results, and all values in the underlying store after the last operation.
    """
    below = RecordingStore(values)
    metadata: Any = parse_node(document)
    store = Chunks(below, "", metadata, ArrayOptions()).store
    results = []
    for op in operations:
        below.rounds.clear()
        try:
            result = _OPERATIONS[op["op"]](store, op)
        except ZarrliteError as error:
            result = {"refused": str(error), **details(error)}
        results.append({**result, "rounds": list(below.rounds)})
    return results, {key: bytes(MemoryStore.get(below, key) or b"") for key in below.list()}


def _encode(value: Buffer | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _list_dir(store: Store, op: Json) -> Json:
    keys, prefixes = store.list_dir(op["prefix"])
    return {"keys": keys, "prefixes": prefixes}


def _get_partial_values(store: Store, op: Json) -> Json:
    return {"values": [_encode(v) for v in store.get_partial_values([(k, ByteRange(*r)) for k, *r in op["ranges"]])]}


def _set_partial_values(store: Store, op: Json) -> Json:
    store.set_partial_values([(key, start, base64.b64decode(value)) for key, start, value in op["pieces"]])
    return {}


def _without_result(name: str, argument: str) -> Callable[[Store, Json], Json]:
    def perform(store: Store, op: Json) -> Json:
        getattr(store, name)(op[argument])
        return {}

    return perform


def _set(store: Store, op: Json) -> Json:
    store.set(op["key"], base64.b64decode(op["value"]))
    return {}


_OPERATIONS: dict[str, Callable[[Store, Json], Json]] = {
    "get": lambda store, op: {"value": _encode(store.get(op["key"], ByteRange(*op.get("range", ALL))))},
    "get_partial_values": _get_partial_values,
    "size": lambda store, op: {"size": store.size(op["key"])},
    "list": lambda store, op: {"keys": sorted(store.list())},
    "list_prefix": lambda store, op: {"keys": sorted(store.list_prefix(op["prefix"]))},
    "list_dir": _list_dir,
    "set": _set,
    "set_partial_values": _set_partial_values,
    "erase": _without_result("erase", "key"),
    "erase_values": _without_result("erase_values", "keys"),
    "erase_prefix": _without_result("erase_prefix", "prefix"),
}
