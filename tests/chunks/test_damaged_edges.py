"""Damaged chunks at the edge of an array are replaced by a write that covers all of their elements inside the array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import codecs
from zarrlite.storage_transformers import ConcatParts, Part

KINDS: dict[str, dict[str, Any]] = {
    "uncompressed": {"compressors": None},
    "zstd": {},
    "checksum": {"compressors": ["crc32c"]},
    "shards": {"shards": (4, 4), "chunks": (2, 2)},
    "shards in place": {
        "codecs": [codecs.ShardingIndexed((2, 2), strategy="in-place")],
    },
    "transposed": {"filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
    "parts": {
        "compressors": ["crc32c"],
        "storage_transformers": [ConcatParts([Part(""), Part(".crc", 4)])],
    },
    "padding that is kept": {"compressors": [codecs.Pad("start", 8, keep_padding=True)]},
}
DATA = np.arange(1, 37, dtype="u2").reshape(6, 6)


def make(kind: str) -> tuple[zarrlite.Array, zarrlite.MemoryStore]:
    store = zarrlite.MemoryStore()
    keywords = {"chunks": (4, 4), **KINDS[kind]}
    return zarrlite.create_array(store, data=DATA, **keywords), store


DAMAGE: dict[str, Any] = {
    "cut": lambda value: value[: len(value) // 2],
    "short": lambda value: value[:9],
    "flipped": lambda value: bytes(byte ^ 255 for byte in value),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_chunk_at_the_edge_is_replaced(kind: str, damage: Any) -> None:
    array, store = make(kind)
    store.set("c/1/1", damage(bytes(store.get("c/1/1") or b"")))
    array[4:, 4:] = [[7, 8], [9, 10]]
    assert array[4:, 4:].tolist() == [[7, 8], [9, 10]]
    array[...] = DATA
    np.testing.assert_array_equal(array[...], DATA)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("uncompressed", "padding that is kept")])
def test_a_write_of_a_part_does_not_hide_damage(kind: str) -> None:
    array, store = make(kind)
    store.set("c/1/1", bytes(store.get("c/1/1") or b"")[:-1])
    before = dict.fromkeys(store.list())
    with pytest.raises(zarrlite.DataError):
        array[4:, 4] = 7
    assert dict.fromkeys(store.list()) == before


def test_a_chunk_with_a_missing_part_is_replaced() -> None:
    array, store = make("parts")
    store.erase("c/1/1.crc")
    array[4:, 4:] = 3
    assert (array[4:, 4:] == 3).all()


@pytest.mark.parametrize("kind", KINDS)
def test_elements_that_another_handle_has_added_are_kept(kind: str) -> None:
    array, store = make(kind)
    other = zarrlite.open_array(store)
    other.resize((8, 8))
    other[6:, 6:] = 5
    array[4:, 4:] = 1  # according to the shape that `array` knows, this covers the whole chunk
    assert (zarrlite.open_array(store)[6:, 6:] == 5).all()


def test_padding_that_cannot_be_kept_is_an_error_even_in_edge_chunks() -> None:
    array, store = make("padding that is kept")
    for key, part in (("c/0/0", array[:4, :4]), ("c/1/1", array[4:, 4:])):
        store.set(key, b"123")
        with pytest.raises(zarrlite.DataError, match="the stored value has 3 bytes, but its padding alone has 8"):
            array[...] = part[0, 0]
        store.erase(key)
