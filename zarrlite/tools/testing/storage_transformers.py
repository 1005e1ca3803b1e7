"""The laws of storage transformers, for pytest.

    class TestMyTransformer(StorageTransformerLaws):
        transformer = MyTransformer()

Rules
- What the wrapped store shows under chunk keys obeys the laws of stores; what lies below is the transformer's affair.
- Keys that are not chunk keys pass through untouched, both ways, and are listed beside the chunk keys.
- A transformer keeps nothing in memory: another one over the same store shows the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.extensions import registry
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.nodes.array import Array
from zarrlite.nodes.creation import array_metadata
from zarrlite.storage_transformers.base import StorageTransformer
from zarrlite.stores.base import Store
from zarrlite.stores.memory import MemoryStore
from zarrlite.tools.testing.codecs import RANGES, check_json

OTHERS = {"notes.txt": b"not a chunk", "c/readme": b"nor this", "c/0/0.bak": b"nor that", "deep/er/c": b"nor here"}


class StorageTransformerLaws:
    """Subclass it, name the subclass Test..., and give it `transformer`.

    `values` are stored under chunk keys as they are: give others if not every value can be stored.
    """

    transformer: StorageTransformer
    values: Sequence[bytes] = (b"0123456789" * 3, bytes(range(256)), b"x" * 64)

    def make_store(self) -> Store:
        """A new store to stand on: writable, and empty."""
        return MemoryStore()

    def make_metadata(self) -> ArrayMetadata:
        """The array: six by four in chunks of two by two, unless that does not fit."""
        return array_metadata((6, 4), "uint8", chunks=(2, 2), codecs=["bytes"], storage_transformers=[self.transformer])

    def keys(self) -> list[str]:
        """The keys of all chunks."""
        metadata = self.make_metadata()
        grid = metadata.chunk_grid.grid_shape(metadata.shape)
        return [metadata.chunk_key_encoding.encode(coords) for coords in np.ndindex(*grid)]

    def wrap(self, below: Store) -> Store:
        return self.transformer.wrap(below, self.make_metadata().in_store)

    def model(self) -> dict[str, bytes]:
        """A value for every chunk but the last."""
        return {key: self.values[i % len(self.values)] for i, key in enumerate(self.keys()[:-1])}

    def filled(self) -> tuple[Store, Store, dict[str, bytes]]:
        """A wrapped store that holds the model, and the store below."""
        below = self.make_store()
        store = self.wrap(below)
        store.set_many(self.model().items())
        return store, below, self.model()

    def test_what_is_written_reads_as_an_equal_transformer(self) -> None:
        check_json(registry.storage_transformers, self.transformer)

    def test_it_fits_the_array(self) -> None:
        self.make_metadata().check()

    # Chunk keys

    def test_a_missing_chunk_is_none(self) -> None:
        store = self.wrap(self.make_store())
        for key in self.keys():
            assert (store.get(key), store.get(key, ByteRange(1, 2)), store.size(key)) == (None, None, None)
        assert list(store.list()) == []

    def test_ranges_are_slices(self) -> None:
        store, _, model = self.filled()
        for key, value in model.items():
            assert _content(store.get(key)) == value
            assert store.size(key) == len(value)
            for start, stop in RANGES:
                assert _content(store.get(key, ByteRange(start, stop))) == value[start:stop], (key, start, stop)
        asked = [(key, byte_range) for byte_range in RANGES for key in (*model, self.keys()[-1])]
        found = [_content(part) for part in store.get_partial_values(asked)]
        assert found == [model[key][r.start : r.stop] if key in model else None for key, r in asked]

    def test_set_replaces(self) -> None:
        store, _, model = self.filled()
        for key in model:
            for value in self.values:
                store.set(key, value)
                assert _content(store.get(key)) == value
        assert _chunks(store, self.keys()) == dict.fromkeys(model, self.values[-1])

    def test_partial_values_overwrite(self) -> None:
        store, _, model = self.filled()
        store.set_partial_values([(key, 2, b"!!") for key in model])
        assert _chunks(store, self.keys()) == {key: value[:2] + b"!!" + value[4:] for key, value in model.items()}

    def test_update(self) -> None:
        store, _, model = self.filled()
        first, *_, last = self.keys()
        store.update(first, lambda old: None if _content(old) == model[first] else b"")
        store.update(last, lambda old: self.values[0] if old is None else None)
        assert _chunks(store, self.keys()) == {**{k: v for k, v in model.items() if k != first}, last: self.values[0]}

    def test_erase(self) -> None:
        store, below, model = self.filled()
        first, second, *_, last = self.keys()
        store.erase(first)
        store.erase(first)
        store.erase_values([second, last])
        assert _chunks(store, self.keys()) == {k: v for k, v in model.items() if k not in (first, second)}
        for key in model:
            store.erase(key)
        assert list(store.list()) == list(below.list()) == []

    def test_erase_prefix(self) -> None:
        for prefix in ("", *sorted({key.rpartition("/")[0] + "/" for key in self.keys() if "/" in key})):
            store, _, model = self.filled()
            store.erase_prefix(prefix)
            expected = {key: value for key, value in model.items() if not key.startswith(prefix)}
            assert _chunks(store, self.keys()) == expected, prefix

    def test_listings_show_chunk_keys_and_nothing_of_what_is_below(self) -> None:
        store, _, model = self.filled()
        assert sorted(store.list()) == sorted(model)
        for prefix in {"", *(key[: i + 1] for key in model for i, character in enumerate(key) if character == "/")}:
            below = sorted(key for key in model if key.startswith(prefix))
            assert sorted(store.list_prefix(prefix)) == below, prefix
            heads = [key[len(prefix) :].partition("/") for key in below]
            keys = sorted({prefix + head for head, slash, _ in heads if not slash})
            prefixes = sorted({prefix + head + "/" for head, slash, _ in heads if slash})
            assert store.list_dir(prefix) == (keys, prefixes), prefix

    # Other keys

    def test_other_keys_pass_through_untouched(self) -> None:
        store, below, model = self.filled()
        encoding, ndim = self.make_metadata().chunk_key_encoding, len(self.make_metadata().shape)
        others = {key: value for key, value in OTHERS.items() if encoding.decode(key, ndim) is None}
        for key, value in others.items():
            store.set(key, value)
            assert _content(below.get(key)) == value, key
            below.set(key, value[::-1])
            assert _content(store.get(key)) == value[::-1], key
            assert _content(store.get(key, ByteRange(-3))) == value[::-1][-3:], key
            assert store.size(key) == len(value)
        assert sorted(store.list()) == sorted((*model, *others))
        assert _chunks(store, self.keys()) == model
        asked = [(key, ALL) for key in (*others, *model)]
        expected = [*(value[::-1] for value in others.values()), *model.values()]
        assert [_content(part) for part in store.get_partial_values(asked)] == expected
        store.erase_values(list(others))
        assert all(below.get(key) is None for key in others)

    # State

    def test_another_one_over_the_same_store_shows_the_same(self) -> None:
        _, below, model = self.filled()
        assert _chunks(self.wrap(below), self.keys()) == model

    def test_an_array_on_top_of_it_is_an_array(self) -> None:
        below, metadata = self.make_store(), self.make_metadata()
        array = Array(below, "", metadata)
        expected = np.zeros(metadata.shape, array.dtype)
        assert np.array_equal(array[...], expected)
        indices: list[Any] = [..., np.s_[1:3], np.s_[..., 1], np.s_[-1:, ::2]]
        for i, index in enumerate(indices):
            array[index] = i + 1
            expected[index] = i + 1
            assert np.array_equal(array[...], expected)
            assert np.array_equal(Array(below, "", metadata)[index], expected[index])


def _content(value: Buffer | None) -> bytes | None:
    return None if value is None else bytes(value)


def _chunks(store: Store, keys: Sequence[str]) -> dict[str, bytes]:
    """The chunks that are there, as `get` and as `list` see them."""
    found = {key: bytes(value) for key in keys if (value := store.get(key)) is not None}
    assert sorted(found) == sorted(key for key in store.list() if key in keys)
    return found
