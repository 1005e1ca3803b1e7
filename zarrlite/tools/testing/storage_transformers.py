"""The laws that every storage transformer obeys, as a base class for pytest.

    class TestMyTransformer(StorageTransformerLaws):
        transformer = MyTransformer()

Rules
- For chunk keys, the transformed store obeys the laws of stores. The transformer is free to choose the underlying keys
  and values.
- Other keys pass through unchanged in both directions, and are listed together with the chunk keys.
- A transformer keeps no data in memory: a second transformer over the same store shows the same data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.buffers.source import Source
from zarrlite.errors import ReadOnlyError
from zarrlite.extensions import registry
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.nodes.array import Array
from zarrlite.nodes.creation import array_metadata
from zarrlite.storage_transformers.base import StorageTransformer
from zarrlite.stores.base import InPlace, Store
from zarrlite.stores.memory import MemoryStore
from zarrlite.stores.views import ReadOnlyStore
from zarrlite.tools.testing.codecs import RANGES, check_json
from zarrlite.tools.testing.stores import check_missing, check_source, content, in_threads, listing, raises

OTHERS = {"notes.txt": b"not a chunk", "c/readme": b"nor this", "c/0/0.bak": b"nor that", "deep/er/c": b"nor here"}


class StorageTransformerLaws:
    """The laws of storage transformers. Subclass this class, name the subclass `Test...`, and set `transformer`.

    `values` are stored under chunk keys; override them if the transformer cannot store every value.
    """

    transformer: StorageTransformer
    values: Sequence[bytes] = (b"0123456789" * 3, bytes(range(256)), b"x" * 64)

    def make_store(self) -> Store:
        """Return a new store for the transformer to use: writable, and empty."""
        return MemoryStore()

    def make_metadata(self) -> ArrayMetadata:
        """Return the metadata of a 6 x 4 array in 2 x 2 chunks. Override it if the transformer needs another array."""
        return array_metadata((6, 4), "uint8", chunks=(2, 2), codecs=["bytes"], storage_transformers=[self.transformer])

    def keys(self) -> list[str]:
        """Return the keys of all chunks."""
        metadata = self.make_metadata()
        grid = metadata.chunk_grid.grid_shape(metadata.shape)
        return [metadata.chunk_key_encoding.encode(coords) for coords in np.ndindex(*grid)]

    def wrap(self, below: Store) -> Store:
        """Return the transformed store."""
        return self.transformer.wrap(below, self.make_metadata().in_store)

    def model(self) -> dict[str, bytes]:
        """Return a value for every chunk except the last one, by key."""
        return {key: self.values[i % len(self.values)] for i, key in enumerate(self.keys()[:-1])}

    def filled(self) -> tuple[Store, Store, dict[str, bytes]]:
        """Return a transformed store filled with the values of `model`, the store below it, and these values."""
        below = self.make_store()
        store = self.wrap(below)
        store.set_many(self.model().items())
        return store, below, self.model()

    # Metadata

    def test_json_reads_as_an_equal_transformer(self) -> None:
        check_json(registry.storage_transformers, self.transformer)

    def test_the_transformer_fits_the_array(self) -> None:
        self.make_metadata().check()

    # Reading chunks

    def test_a_missing_chunk_is_none(self) -> None:
        store = self.wrap(self.make_store())
        for key in self.keys():
            assert (store.get(key), store.get(key, ByteRange(1, 2)), store.size(key)) == (None, None, None)
            assert store.get_partial_values([(key, ALL), (key, ByteRange(0, 2), 64)]) == [None, None]
            check_missing(store.source(key))
        assert list(store.list()) == []

    def test_ranges_are_slices(self) -> None:
        store, _, model = self.filled()
        for key, value in model.items():
            assert content(store.get(key)) == value
            assert store.size(key) == len(value)
            for start, stop in RANGES:
                assert content(store.get(key, ByteRange(start, stop))) == value[start:stop], (key, start, stop)

    def test_partial_values_are_in_the_order_of_their_requests(self) -> None:
        store, _, model = self.filled()
        requests: list[Any] = [(key, byte_range) for byte_range in RANGES for key in (*model, self.keys()[-1])]
        requests += [(key, ByteRange(1, 3), len(value)) for key, value in model.items()]
        expected = [model[key][r.start : r.stop] if key in model else None for key, r, *_ in requests]
        for memory in (None, memoryview(bytearray(100)), memoryview(bytearray(2**16))):
            assert [content(part) for part in store.get_partial_values(requests, memory)] == expected

    def test_a_source_reads_ranges_as_slices(self) -> None:
        store, _, model = self.filled()
        for key, value in model.items():
            check_source(store.source(key), value, RANGES)

    # Writing chunks

    def test_set_replaces(self) -> None:
        store, _, model = self.filled()
        for key in model:
            for value in self.values:
                store.set(key, value)
                assert content(store.get(key)) == value
        assert _chunks(store, self.keys()) == dict.fromkeys(model, self.values[-1])

    def test_partial_values_overwrite(self) -> None:
        store, _, model = self.filled()
        store.set_partial_values([(key, 2, b"!!") for key in model])
        assert _chunks(store, self.keys()) == {key: value[:2] + b"!!" + value[4:] for key, value in model.items()}

    def test_an_update_replaces_the_value_that_it_receives(self) -> None:
        store, _, model = self.filled()
        first, *_, last = self.keys()
        store.update(first, lambda old: None if content(old) == model[first] else b"")
        store.update(last, lambda old: self.values[0] if old is None else None)
        assert _chunks(store, self.keys()) == {**{k: v for k, v in model.items() if k != first}, last: self.values[0]}

    def test_changes_store_erase_and_compute(self) -> None:
        store, _, model = self.filled()
        first, second, third, *_, last = self.keys()
        new = self.values[-1]
        seen: list[Any] = []

        def overwrite(source: Source) -> InPlace:
            seen.extend((content(source.read_one()), source.size()))
            return InPlace([(1, b"x"), (3, b"yz")])

        store.change(
            [
                (first, None),
                (second, overwrite),
                (third, lambda source: [new[:1], memoryview(new)[1:]] if source.size() else None),
                (last, [new[:5], new[5:]]),
            ]
        )
        old = model.pop(second)
        model.pop(first)
        expected = {second: old[:1] + b"x" + old[2:3] + b"yz" + old[5:], third: new, last: new}
        assert seen == [old, len(old)]
        assert _chunks(store, self.keys()) == {**model, **expected}

    def test_threads_lose_no_updates(self) -> None:
        store, _, model = self.filled()
        key, value = next(iter(model.items()))

        def work() -> None:
            for _ in range(20):
                store.update(key, lambda old: _counted(old, value))

        store.set(key, _counted(None, value))
        in_threads(*[work] * 4)
        assert int.from_bytes(bytes(store.get(key) or b"")[:2], "big") == 81

    def test_erase_removes_chunks_and_all_their_underlying_keys(self) -> None:
        store, below, model = self.filled()
        first, second, *_, last = self.keys()
        store.erase(first)
        store.erase(first)
        store.erase_values([second, last])
        assert _chunks(store, self.keys()) == {k: v for k, v in model.items() if k not in (first, second)}
        for key in model:
            store.erase(key)
        assert list(store.list()) == list(below.list()) == []

    def test_erase_prefix_removes_every_chunk_under_it(self) -> None:
        for prefix in ("", *sorted({key.rpartition("/")[0] + "/" for key in self.keys() if "/" in key})):
            store, _, model = self.filled()
            store.erase_prefix(prefix)
            expected = {key: value for key, value in model.items() if not key.startswith(prefix)}
            assert _chunks(store, self.keys()) == expected, prefix

    def test_listings_show_chunk_keys_but_not_the_underlying_keys(self) -> None:
        store, _, model = self.filled()
        assert sorted(store.list()) == sorted(model)
        for prefix in {"", *(key[: i + 1] for key in model for i, character in enumerate(key) if character == "/")}:
            assert sorted(store.list_prefix(prefix)) == sorted(key for key in model if key.startswith(prefix)), prefix
            assert store.list_dir(prefix) == listing(model, prefix), prefix

    def test_a_read_only_store_stays_read_only(self) -> None:
        _, below, model = self.filled()
        store = self.wrap(ReadOnlyStore(below))
        assert store.read_only
        key, value = next(iter(model.items()))
        assert content(store.get(key)) == value
        raises(ReadOnlyError, store.set, key, value)
        raises(ReadOnlyError, store.erase, key)
        raises(ReadOnlyError, store.update, key, lambda old: old)
        raises(ReadOnlyError, store.set_partial_values, [(key, 0, b"x")])
        assert _chunks(store, self.keys()) == model

    # Other keys

    def test_other_keys_pass_through_unchanged(self) -> None:
        store, below, model = self.filled()
        encoding, ndim = self.make_metadata().chunk_key_encoding, len(self.make_metadata().shape)
        others = {key: value for key, value in OTHERS.items() if encoding.decode(key, ndim) is None}
        for key, value in others.items():
            store.set(key, value)
            assert content(below.get(key)) == value, key
            below.set(key, value[::-1])
            assert content(store.get(key)) == value[::-1], key
            assert content(store.get(key, ByteRange(-3))) == value[::-1][-3:], key
            assert store.size(key) == len(value)
            check_source(store.source(key), value[::-1], RANGES)
        assert sorted(store.list()) == sorted((*model, *others))
        assert _chunks(store, self.keys()) == model
        requests = [(key, ALL) for key in (*others, *model)]
        expected = [*(value[::-1] for value in others.values()), *model.values()]
        assert [content(part) for part in store.get_partial_values(requests)] == expected
        store.erase_values(list(others))
        assert all(below.get(key) is None for key in others)

    # State

    def test_another_transformer_over_the_same_store_shows_the_same_chunks(self) -> None:
        _, below, model = self.filled()
        assert _chunks(self.wrap(below), self.keys()) == model

    def test_an_array_reads_what_was_written_to_it(self) -> None:
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


def _counted(old: Any, value: bytes) -> bytes:
    """Return a value of the same length whose first two bytes count how often it was updated."""
    count = 0 if old is None else int.from_bytes(bytes(old)[:2], "big")
    return (count + 1).to_bytes(2, "big") + value[2:]


def _chunks(store: Store, keys: Sequence[str]) -> dict[str, bytes]:
    """Return the chunks that exist. Checks that `get` and `list` agree on which chunks exist."""
    found = {key: bytes(value) for key in keys if (value := store.get(key)) is not None}
    assert sorted(found) == sorted(key for key in store.list() if key in keys)
    return found
