"""Every sequence of operations has the same results on every store as on a dict."""

from __future__ import annotations

import collections
import contextlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.stores import LocalStore, MappingStore, MemoryStore, PrefixStore, Store

# No key is a prefix of another.
KEYS = ["zarr.json", "a/zarr.json", "a/c/0/0", "a/c/0/1", "a/c/1", "b/c", "b/d/e/f", "b/d/e/é"]
PREFIXES = ["", "a/", "a/c/", "a/c/0/", "b/", "b/d/", "none/"]


class DictStore(Store):
    """The model: a dict with the default methods of `Store`, which are thereby tested, too."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.values[key][byte_range.start : byte_range.stop] if key in self.values else None

    def set(self, key: str, value: Buffer) -> None:
        self.values[key] = bytes(value)

    def erase(self, key: str) -> None:
        self.values.pop(key, None)

    def list(self) -> Iterator[str]:
        return iter(self.values)


STORES: dict[str, Callable[[str], Store]] = {
    "memory": lambda root: MemoryStore(),
    "mapping": lambda root: MappingStore(collections.UserDict()),
    "local": LocalStore,
    "prefix of memory": lambda root: PrefixStore(MemoryStore(), "p/q/"),
    "prefix of local": lambda root: PrefixStore(LocalStore(root), "p/q/"),
    "empty prefix": lambda root: PrefixStore(MemoryStore(), ""),
    "prefix of prefix": lambda root: PrefixStore(PrefixStore(LocalStore(root), "p/"), "q/"),
}

keys, prefixes, values = st.sampled_from(KEYS), st.sampled_from(PREFIXES), st.binary(max_size=20)
offsets = st.integers(-25, 25)
ranges = st.builds(ByteRange, offsets, st.none() | offsets)
OPERATIONS = {
    "set": st.tuples(keys, values),
    "set_many": st.tuples(st.lists(st.tuples(keys, values), max_size=4)),
    "set_partial_values": st.tuples(st.lists(st.tuples(keys, st.integers(0, 25), values), max_size=4)),
    "change": st.tuples(st.lists(st.tuples(keys, st.none() | values | st.lists(values, max_size=3)), max_size=4)),
    "update": st.tuples(keys, st.none() | values),
    "erase": st.tuples(keys),
    "erase_values": st.tuples(st.lists(keys, max_size=4)),
    "erase_prefix": st.tuples(prefixes),
    "get": st.tuples(keys, ranges),
    "get_partial_values": st.tuples(st.lists(st.tuples(keys, ranges), max_size=6)),
    "size": st.tuples(keys),
    "source": st.tuples(keys, st.lists(ranges, min_size=1, max_size=3), st.none() | st.integers(0, 40)),
    "list": st.tuples(),
    "list_prefix": st.tuples(prefixes),
    "list_dir": st.tuples(prefixes),
}
operations = st.lists(
    st.one_of(*(st.tuples(st.just(name), args) for name, args in OPERATIONS.items())), min_size=1, max_size=25
)


def outcome(store: Store, name: str, args: tuple[Any, ...]) -> Any:
    """Return the result of an operation; for `update`, return the values that its function receives."""
    if name == "update":
        key, new = args
        seen: list[Buffer | None] = []

        def change(old: Buffer | None) -> Buffer | None:
            seen.append(old)
            return new

        store.update(key, change)
        return seen
    if name == "source":
        key, several, room = args
        with contextlib.closing(store.source(key)) as source:
            found = source.read(several, None if room is None else memoryview(bytearray(room)))
            return source.size(), found and [bytes(part) for part in found]
    result = getattr(store, name)(*args)
    return sorted(result) if name in ("list", "list_prefix") else result


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
@settings(max_examples=60, deadline=None)
@given(sequence=operations)
def test_operations_have_the_same_results_as_on_a_dict(
    make: Callable[[str], Store], sequence: list[tuple[str, Any]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        store, model = make(root), DictStore()
        for name, args in sequence:
            assert outcome(store, name, args) == outcome(model, name, args)
            assert {key: store.get(key) for key in store.list()} == model.values
