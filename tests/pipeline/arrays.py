"""Helpers that create arrays in a store that counts requests, generate selections, and read parts of single chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import zarrlite
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.codecs import Blosc, Bytes, Crc32c, Gzip, ShardingIndexed, Zstd
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.pipeline.reading import FailedPart, read_from_sources
from zarrlite.selections.selection import Selection
from zarrlite.stores.base import IN_MEMORY

try:
    import numcodecs.blosc  # noqa: F401

    COMPRESSORS: list[Any] = [Gzip(1), Zstd(1), Crc32c(), Blosc("lz4", 1, "shuffle", 2)]
except ImportError:
    COMPRESSORS = [Gzip(1), Zstd(1), Crc32c()]


class CountingStore(zarrlite.MemoryStore):
    """A store that records the key and the ranges of each request."""

    def __init__(self, values: Any = None) -> None:
        self.requests: list[tuple[str, list[tuple[int, int | None]]]] = []
        super().__init__(values)

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        self.requests.append((key, [tuple(byte_range)]))
        return super().get(key, byte_range)

    def get_partial_values(self, requests: Sequence[Any], memory: memoryview | None = None) -> list[Buffer | None]:
        self.requests.append((requests[0][0], [tuple(request[1]) for request in requests]))
        return [zarrlite.MemoryStore.get(self, request[0], request[1]) for request in requests]


def read(bound: Pipeline, source: Any, selection: Selection) -> Any:
    """Read a part of a chunk from a source. Returns None if the chunk is missing."""
    target = np.empty(selection.shape, bound.spec.dtype)
    try:
        missing = read_from_sources(bound.read, [source], [(selection, target)], IN_MEMORY)
    except FailedPart as failed:
        raise failed.error from None
    return None if missing else target


def make(shape: tuple[int, ...], chunks: tuple[int, ...], codecs: Any, dtype: Any = "u1", **kwargs: Any) -> Any:
    """Return an array with the elements 1, 2, 3 ..., in a store that counts requests."""
    store = CountingStore()
    array = zarrlite.create_array(store, shape=shape, dtype=dtype, chunks=chunks, codecs=codecs, **kwargs)
    array[...] = np.arange(1, 1 + math.prod(shape)).reshape(shape)
    store.requests.clear()
    return array


def shards(
    inner: tuple[int, ...], chain: Any = (Bytes(),), location: str = "end", index: Any = None
) -> ShardingIndexed:
    return ShardingIndexed(inner, tuple(chain), index or (Bytes("little"), Crc32c()), location)


@st.composite
def parts(draw: Any, shape: tuple[int, ...]) -> Any:
    """Generate an index that selects at least one element, with slices, integers and index arrays."""
    items: list[Any] = []
    for n in shape:
        kind = draw(st.sampled_from(["all", "slice", "integer", "points"]))
        if kind == "all":
            items.append(slice(None))
        elif kind == "integer":
            items.append(draw(st.integers(0, n - 1)))
        elif kind == "points":
            items.append(draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3).map(np.array)))
        else:
            items.append(slice(draw(st.integers(0, n - 1)), None, draw(st.sampled_from([1, 2, -1]))))
    lengths = [len(i) for i in items if isinstance(i, np.ndarray)]
    if lengths:  # index arrays are broadcast together
        items = [i[: min(lengths)] if isinstance(i, np.ndarray) else i for i in items]
    return tuple(items)
