"""A chunk split into parts may be replaced between any two steps of a read: readers see one version, and no error."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.storage_transformers.test_parts_journal import NEW, OLD, STACKS, create, options_of
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import MAX_ATTEMPTS, Source
from zarrlite.errors import DataError
from zarrlite.storage_transformers.parts_journal import Journal, key_of
from zarrlite.stores import LocalStore, MappingStore, MemoryStore, PrefixStore, Store
from zarrlite.stores.base import Request


class Stepwise(PrefixStore):
    """A store that calls a function before the Nth operation that reads from it."""

    def __init__(self, store: Store, function: Callable[[], None]) -> None:
        super().__init__(store, "")
        self.left, self.function = 0, function  # `left`: operations until the call

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.function()

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        self.step()
        return self.store.get(key, byte_range)

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Any:
        self.step()
        return self.store.get_partial_values(requests, memory)

    def size(self, key: str) -> int | None:
        self.step()
        return self.store.size(key)

    def source(self, key: str) -> Source:
        return StepwiseSource(self.store.source(key), self.step)


class StepwiseSource(Source):
    """A source of a `Stepwise` store."""

    def __init__(self, source: Source, step: Callable[[], None]) -> None:
        self.source, self.step = source, step
        self.separate_tail = source.separate_tail

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        self.step()
        return self.source.read(ranges, memory)

    def size(self) -> int | None:
        self.step()
        return self.source.size()

    def known_size(self) -> int | None:
        self.step()
        return self.source.known_size()

    def is_current(self) -> bool:
        self.step()
        return self.source.is_current()

    def close(self) -> None:
        self.source.close()


MORE = NEW[:, ::-1] + 500
# assignments, as (index, values), that are made between two steps of the reader
CHANGES: dict[str, list[tuple[Any, Any]]] = {
    "all": [(np.s_[...], NEW)],
    "one element": [(np.s_[0, 0], 99)],
    "several elements": [(np.s_[1:3, 1:3], 77)],
    "erased": [(np.s_[...], 0)],
    "erased and written": [(np.s_[...], 0), (np.s_[...], NEW)],
    "twice": [(np.s_[...], NEW), (np.s_[...], MORE)],
    "some, then all": [(np.s_[:3, :3], 77), (np.s_[...], NEW)],
    "some, then some": [(np.s_[:3, :3], 77), (np.s_[1:, 1:], 88)],
}
SELECTIONS = [np.s_[...], np.s_[3, 3], np.s_[1:3, 0:4]]


@pytest.mark.parametrize("kind", ["memory", "local"])
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("stack", [stack for stack in STACKS if stack != "parts in shards"])
def test_a_read_sees_one_version_of_a_chunk_that_is_replaced_between_its_steps(
    tmp_path: Path, kind: str, changes: list[tuple[Any, Any]], stack: str
) -> None:
    count = itertools.count()
    for selection in SELECTIONS:
        for number in itertools.count(1):
            below = MemoryStore() if kind == "memory" else LocalStore(tmp_path / str(next(count)))
            create(below, stack)
            writer = zarrlite.open_array(below, mode="r+", options=options_of(stack))
            states = [OLD]
            for place, values in changes:
                states.append(states[-1].copy())
                states[-1][place] = values

            def write(writer: zarrlite.Array = writer) -> None:
                for place, values in changes:
                    writer[place] = values

            store = Stepwise(below, write)
            reader = zarrlite.open_array(store, mode="r")
            store.left = number
            found = reader[selection]
            assert any(np.array_equal(found, state[selection]) for state in states), (selection, number, found)
            if store.left > 0:  # the read ended before step `number`, so every step has been tested
                break


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_a_chunk_that_is_replaced_in_every_attempt_to_read_it_is_an_error(tmp_path: Path, kind: str) -> None:
    below = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    create(below, "checksum apart")
    writer = zarrlite.open_array(below, mode="r+")
    written = 0

    def write() -> None:
        nonlocal written
        written += 1
        writer[...] = OLD + written
        store.left = 1

    store = Stepwise(below, write)
    reader = zarrlite.open_array(store, mode="r")
    store.left = 1
    with pytest.raises(DataError, match=r"chunk c/0/0.* read it again"):
        reader[...]
    assert written >= MAX_ATTEMPTS
    store.left = 0
    np.testing.assert_array_equal(reader, OLD + written)


class StoredAndErased(PrefixStore):
    """A store in which a write ends right before a reader first looks for a journal; an erasure starts right after."""

    def __init__(self, store: Store, value: Buffer, journal: Buffer) -> None:
        super().__init__(store, "")
        self.value, self.journal = value, journal
        self.looks = 0

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        if key != key_of("c/0/0", 0):
            return self.store.get(key, byte_range)
        self.looks += 1
        if self.looks > 1:
            return self.store.get(key, byte_range)
        self.store.set("c/0/0.c", self.value)
        self.store.erase(key)
        found = self.store.get(key, byte_range)
        self.store.set(key, self.journal)
        self.store.erase("c/0/0.c")
        return found


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_a_chunk_stored_and_erased_while_its_journal_is_looked_up_reads_as_missing(tmp_path: Path, kind: str) -> None:
    below = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    create(below, "checksum apart")
    sizes = [below.size("c/0/0"), below.size("c/0/0.c")]
    value = below.get("c/0/0.c")
    assert value is not None
    writing, erasing = (Journal(before, after, ()) for before, after in [([None] * 2, sizes), (sizes, [None] * 2)])
    below.set(key_of("c/0/0", 0), b"".join(writing.encode()))
    below.erase("c/0/0.c")
    store = StoredAndErased(below, value, b"".join(erasing.encode()))
    assert not zarrlite.open_array(store, mode="r")[...].any()
    assert store.looks > 1


class Recorded(dict[str, bytes]):
    """A dict that records its content before each change."""

    def __init__(self, values: dict[str, bytes]) -> None:
        super().__init__(values)
        self.states: list[dict[str, bytes]] = []

    def __setitem__(self, key: str, value: bytes) -> None:
        self.states.append({**self})
        super().__setitem__(key, value)

    def pop(self, key: str, *default: Any) -> Any:
        self.states.append({**self})
        return super().pop(key, *default)


@pytest.mark.parametrize("changes", ["all", "erased and written", "some, then all"])
@pytest.mark.parametrize("stack", ["compressed", "all sized", "shard, rewrite", "shard with a header, in-place"])
def test_a_reader_that_starts_during_a_write_in_memory_sees_one_version(changes: str, stack: str) -> None:
    values: dict[str, bytes] = {}
    create(MappingStore(values), stack)
    recorded = Recorded(values)
    writer = zarrlite.open_array(MappingStore(recorded), mode="r+", options=options_of(stack))
    expected = [OLD]
    for place, new in CHANGES[changes]:
        writer[place] = new
        expected.append(expected[-1].copy())
        expected[-1][place] = new
    contents = [*recorded.states, {**recorded}]
    for (i, before), selection in itertools.product(enumerate(contents), SELECTIONS):
        for after in contents[i + 1 :]:
            for number in itertools.count(1):
                shown = dict(before)

                def go_on(shown: dict[str, bytes] = shown, after: dict[str, bytes] = after) -> None:
                    shown.clear()
                    shown.update(after)

                store = Stepwise(MappingStore(shown), go_on)
                reader = zarrlite.open_array(store, mode="r")
                store.left = number
                found = reader[selection]
                assert any(np.array_equal(found, state[selection]) for state in expected), (i, selection, number, found)
                if store.left > 0:  # the read ended before step `number`, so every step has been tested
                    break
