"""Arrays that cover every codec, key encoding and storage transformer that has its own layout, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import zarrlite
from zarrlite import Array
from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.codecs import (
    Blosc,
    Bytes,
    Crc32c,
    Gzip,
    N5Default,
    Offset,
    Packbits,
    Pad,
    ShardingIndexed,
    Transpose,
    VlenUtf8,
    Zstd,
)
from zarrlite.storage_transformers import ConcatParts, Part, Sharding

DATA = np.arange(12 * 10, dtype="uint16").reshape(12, 10)
HEADER = b"MY_CUSTOM_HEADER"
INNER = [Bytes(), Zstd(), Crc32c()]
SHARD = ShardingIndexed((2, 2), INNER)
START = ShardingIndexed((2, 4), [Bytes("big")], index_location="start")
NESTED = ShardingIndexed((2, 4), [ShardingIndexed((1, 2), [Bytes(), Gzip()], index_location="start"), Crc32c()])
N5 = N5Default([Transpose((1, 0)), Bytes("big"), Gzip()])
INDEX = 16 * 4 + 4

KINDS: dict[str, dict[str, Any]] = {
    "raw": {"codecs": [Bytes()]},
    "big endian and transposed": {"codecs": [Transpose((1, 0)), Bytes("big")]},
    "zstd": {"codecs": [Bytes(), Zstd()]},
    "gzip and crc32c": {"codecs": [Bytes(), Gzip(), Crc32c()]},
    "crc32c and zstd": {"codecs": [Bytes(), Crc32c(), Zstd()]},
    "blosc": {"codecs": [Bytes(), Blosc()]},
    "packbits": {"codecs": [Packbits()]},
    "two paddings": {"codecs": [Bytes(), Offset(16, HEADER), Zstd(), Pad("end", 5), Crc32c()]},
    "n5": {"codecs": [N5]},
    "shard": {"codecs": [SHARD]},
    "shard, index at the start": {"codecs": [START]},
    "shard, transposed": {"codecs": [Transpose((1, 0)), SHARD]},
    "shard in a shard": {"codecs": [NESTED]},
    "shard behind a header": {"codecs": [SHARD, Pad("start", 16, HEADER), Crc32c(), Pad("end", 3)]},
    "shard in gzip": {"codecs": [NESTED, Gzip()]},
    "shard with padded index": {
        "codecs": [ShardingIndexed((2, 2), INNER, [Bytes("big"), Pad("start", 7), Crc32c(), Pad("end", 1)])]
    },
    "shard with a transposed index": {"codecs": [ShardingIndexed((2, 2), INNER, [Transpose((2, 0, 1)), Bytes()])]},
    "shard with room for a header": {"codecs": [ShardingIndexed((2, 2), INNER, header=20)]},
    "suffix": {"codecs": [Bytes()], "chunk_key_encoding": SuffixKeys(".tiff")},
    "v2 keys": {"codecs": [Bytes()], "chunk_key_encoding": "v2"},
    "parts": {
        "codecs": [Bytes(), Zstd(), Crc32c()],
        "storage_transformers": [ConcatParts([Part(""), Part(".crc", 4)])],
    },
    "parts across a frame": {
        "codecs": [Bytes(), Gzip()],
        "storage_transformers": [ConcatParts([Part(".a", 3), Part(""), Part(".b", 2)])],
    },
    "shard in parts": {
        "codecs": [ShardingIndexed((2, 2), INNER, header=8)],
        "storage_transformers": [ConcatParts([Part(".head", 8), Part(""), Part(".index", INDEX)])],
        "chunk_key_encoding": SuffixKeys(".shard"),
    },
    "draft shards": {"codecs": [Bytes(), Zstd()], "storage_transformers": [Sharding((2, 3))]},
    "draft shards in parts": {
        "codecs": [Bytes(), Zstd(), Offset(4)],
        "storage_transformers": [Sharding((2, 2)), ConcatParts([Part(""), Part(".index", 64)])],
    },
    "parts in draft shards": {
        "codecs": [Bytes(), Crc32c()],
        "storage_transformers": [ConcatParts([Part(""), Part(".crc", 4)]), Sharding((2, 2)), Sharding((1, 2))],
    },
}


def make(kind: str, store: Any = None) -> Array:
    """Create an array with a missing chunk. `kind` is a key of `KINDS`; by default, the array is stored in memory."""
    array = zarrlite.create_array({} if store is None else store, data=DATA, chunks=(4, 4), **KINDS[kind])
    array[4:8, 4:8] = 0
    return array


def strings() -> Array:
    """Create an array whose elements vary in length."""
    texts = np.array([["a", "bc"], ["def", ""]], "T")
    return zarrlite.create_array({}, data=texts, chunks=(2, 2), codecs=[VlenUtf8(), Zstd()])


Make = Callable[[], Array]
ARRAYS: dict[str, Make] = {**{kind: lambda kind=kind: make(kind) for kind in KINDS}, "strings": strings}  # type: ignore[misc]
