"""Reading shards from stores that read by key instead of opening files, and may not know the sizes of values."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import ByteRange
from zarrlite.buffers.ranges import ALL
from zarrlite.codecs import Bytes, Crc32c, Offset, Pad, ShardingIndexed, Transpose, Zstd
from zarrlite.errors import DataError, TruncatedError
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.stores import Store
from zarrlite.stores.base import WrongSizeError

DATA = np.arange(1, 257, dtype="u2").reshape(16, 16)
INDEX = 4 * 16 + 4  # bytes of the index of a shard of four inner chunks


class OnlyGet(Store):
    """The smallest possible store: it only reads values by key."""

    def __init__(self, values: dict[str, bytes]) -> None:
        self.values = values

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        value = self.values.get(key)
        return None if value is None else byte_range.of(value)


def sharded(*codecs: Any, location: str = "end", **keywords: Any) -> ShardingIndexed:
    return ShardingIndexed((4, 4), [*(codecs or [Bytes()])], index_location=location, **keywords)


KINDS: dict[str, dict[str, Any]] = {
    "uncompressed": {"codecs": [sharded()]},
    "index at the start": {"codecs": [sharded(location="start")]},
    "compressed": {"codecs": [sharded(Bytes(), Zstd(), Crc32c())]},
    "transposed": {"codecs": [Transpose((1, 0)), sharded(Transpose((1, 0)), Bytes())]},
    "padded at the start": {"codecs": [sharded(), Pad("start", 7)]},
    "padded at the end": {"codecs": [sharded(), Pad("end", 7)]},
    "padded at both ends": {"codecs": [sharded(location="start"), Offset(5), Pad("end", 7)]},
    "verified": {"codecs": [sharded(), Crc32c()]},
    "padded inner chunks": {"codecs": [sharded(Bytes(), Pad("start", 3), Pad("end", 2))]},
    "index in a part": {
        "codecs": [sharded()],
        "storage_transformers": [ConcatParts([Part(""), Part(".index", INDEX)])],
    },
    "padded, in parts": {
        "codecs": [sharded(), Pad("start", 7)],
        "storage_transformers": [ConcatParts([Part(".a", 3), Part(""), Part(".b", 9)])],
    },
    "draft": {"chunks": (4, 4), "codecs": [Bytes()], "storage_transformers": [Sharding((2, 2))]},
    "draft in parts": {
        "chunks": (4, 4),
        "codecs": [Bytes(), Zstd()],
        "storage_transformers": [Sharding((2, 2)), ConcatParts([Part(""), Part(".index", 4 * 16)])],
    },
    "parts in draft shards": {
        "chunks": (4, 4),
        "codecs": [Bytes()],
        "storage_transformers": [ConcatParts([Part(".h", 2), Part("")]), Sharding((2, 2))],
    },
}
SELECTIONS = [
    np.s_[...],
    np.s_[:8, :8],
    np.s_[4:8, 12:16],
    np.s_[3:13, 2:15],
    np.s_[::5, ::3],
    np.s_[7, 9],
    np.s_[0, 0],
    np.s_[2:3, :],
    np.s_[[1, 14, 3], 5],
]


def stored_values(kind: str) -> dict[str, bytes]:
    """Return the values of an array of this kind, in which one inner chunk and one shard are empty."""
    data = DATA.copy()
    data[4:8, 4:8] = data[8:, 8:] = 0
    store = zarrlite.MemoryStore()
    zarrlite.create_array(store, data=data, **{"chunks": (8, 8), **KINDS[kind]})
    return {key: bytes(store.get(key) or b"") for key in store.list()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_with_only_get_reads_the_same_as_one_in_memory(kind: str) -> None:
    values = stored_values(kind)
    array = zarrlite.open_array(OnlyGet(values), mode="r")
    expected = zarrlite.open_array(zarrlite.MemoryStore(values), mode="r")
    for selection in SELECTIONS:
        np.testing.assert_array_equal(array[selection], expected[selection])


# The draft's shards are left out: without a checksum, a truncated one may end with bytes that look like an index.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if "draft" not in kind])
def test_reading_a_truncated_shard_never_returns_wrong_data(kind: str) -> None:
    """Every read returns the right elements or raises a DataError, even if the store does not know sizes."""
    values = stored_values(kind)
    expected = zarrlite.open_array(zarrlite.MemoryStore(values), mode="r")[...]
    for key in (key for key in values if key.startswith("c/0/0")):
        for length in range(0, len(values[key]), 3):
            array = zarrlite.open_array(OnlyGet(values | {key: values[key][:length]}), mode="r")
            for selection in (np.s_[:8, :8], np.s_[0:4, 0:4], np.s_[2:6, 2:6], np.s_[1, 6]):
                try:
                    found = array[selection]
                except DataError:
                    continue
                np.testing.assert_array_equal(found, expected[selection])


def test_a_wrong_size_error_keeps_its_place_when_pickled() -> None:
    error = WrongSizeError(3, 5)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.size) == (WrongSizeError, "has 3 bytes, but must have 5", 3)
    assert str(error.at(key="c/0")) == "chunk c/0: has 3 bytes, but must have 5"
    assert type(error.at(key="c/0")) is TruncatedError
