"""Stores made of another store: the part of it under a prefix, or all of it for reading only.

Rules
- Every operation goes to the store below in one call, so that nothing it does well is lost: batches, locks, listings.
- A view keeps nothing of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange, Pieces
from zarrlite.buffers.source import ByteSource
from zarrlite.errors import ReadOnlyError
from zarrlite.stores.base import Change, Fetched, Listing, Patch, Store, Update, check_key, check_prefix


class PrefixStore(Store):
    """What a store holds under a prefix; keys are relative to it.

    >>> from zarrlite.stores import MemoryStore
    >>> list(PrefixStore(MemoryStore({"a/b": b"1", "c": b"2"}), "a/").list())
    ['b']
    """

    def __init__(self, store: Store, prefix: str) -> None:
        self.store = store
        self.prefix = check_prefix(prefix)
        self.read_only, self.gathers = store.read_only, store.gathers and type(self) is PrefixStore
        self.quick_reads = store.quick_reads

    def __repr__(self) -> str:
        return f"PrefixStore({self.store!r}, {self.prefix!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrefixStore) and (other.store, other.prefix) == (self.store, self.prefix)

    def __hash__(self) -> int:
        return hash((self.store, self.prefix))

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.store.get(self.prefix + check_key(key), byte_range)

    def get_partial_values(self, key_ranges: Sequence[tuple[str, ByteRange]]) -> list[Buffer | None]:
        return self.store.get_partial_values([(self.prefix + check_key(key), part) for key, part in key_ranges])

    def set(self, key: str, value: Buffer) -> None:
        self.store.set(self.prefix + check_key(key), value)

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        self.store.set_many((self.prefix + check_key(key), value) for key, value in items)

    def set_new(self, items: Sequence[tuple[str, Pieces]]) -> bool:
        if type(self) is PrefixStore:
            return self.store.set_new([(self.prefix + check_key(key), value) for key, value in items])
        return False  # a subclass may write otherwise

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        self.store.set_partial_values(
            (self.prefix + check_key(key), start, value) for key, start, value in key_start_values
        )

    def update_many(self, changes: Iterable[tuple[str, Change]]) -> None:
        if type(self) is PrefixStore:
            self.store.update_many((self.prefix + check_key(key), change) for key, change in changes)
        else:  # a subclass may read and write otherwise
            super().update_many(changes)

    def erase(self, key: str) -> None:
        self.store.erase(self.prefix + check_key(key))

    def erase_values(self, keys: Iterable[str]) -> None:
        self.store.erase_values(self.prefix + check_key(key) for key in keys)

    def erase_prefix(self, prefix: str) -> None:
        self.store.erase_prefix(self.prefix + check_prefix(prefix))

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        found = self.store.list_prefix(self.prefix + check_prefix(prefix))
        return (key[len(self.prefix) :] for key in found)

    def list_dir(self, prefix: str) -> Listing:
        keys, prefixes = self.store.list_dir(self.prefix + check_prefix(prefix))
        start = len(self.prefix)
        return [key[start:] for key in keys], [name[start:] for name in prefixes]

    def peek(self, key: str, start: int, length: int, size: int) -> Buffer | None:
        return self.store.peek(self.prefix + check_key(key), start, length, size) if type(self) is PrefixStore else None

    def fetch(self, keys: Sequence[str], memory: memoryview, room: int) -> Fetched:
        if type(self) is PrefixStore:
            return self.store.fetch([self.prefix + check_key(key) for key in keys], memory, room)
        return super().fetch(keys, memory, room)  # a subclass may read otherwise

    def source(self, key: str) -> ByteSource:
        if type(self) is PrefixStore:
            return self.store.source(self.prefix + check_key(key))
        return super().source(key)  # a subclass may read otherwise

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return self.store.location(self.prefix + prefix)

    def size(self, key: str) -> int | None:
        return self.store.size(self.prefix + check_key(key))

    def lock(self, key: str) -> AbstractContextManager[None]:
        return self.store.lock(self.prefix + check_key(key))

    def patch(self, key: str, fn: Patch) -> bool:
        if type(self) is PrefixStore:
            return self.store.patch(self.prefix + check_key(key), fn)
        return super().patch(key, fn)  # a subclass may read and write otherwise

    def update(self, key: str, fn: Update) -> None:
        if type(self) is PrefixStore:
            self.store.update(self.prefix + check_key(key), fn)
        else:  # a subclass may read and write otherwise
            super().update(key, fn)


class ReadOnlyStore(Store):
    """A store that can be read only, over one that may be written by others."""

    read_only = True

    def __init__(self, store: Store) -> None:
        self.store = store
        self.quick_reads = store.quick_reads
        if type(self) is ReadOnlyStore:  # a subclass may read otherwise
            self.source, self.peek, self.fetch = store.source, store.peek, store.fetch  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"ReadOnlyStore({self.store!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadOnlyStore) and other.store == self.store

    def __hash__(self) -> int:
        return hash((ReadOnlyStore, self.store))

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.store.get(key, byte_range)

    def get_partial_values(self, key_ranges: Sequence[tuple[str, ByteRange]]) -> list[Buffer | None]:
        return self.store.get_partial_values(key_ranges)

    def list(self) -> Iterator[str]:
        return self.store.list()

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return self.store.list_prefix(prefix)

    def list_dir(self, prefix: str) -> Listing:
        return self.store.list_dir(prefix)

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return self.store.location(prefix)

    def size(self, key: str) -> int | None:
        return self.store.size(key)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ReadOnlyError(f"{self!r} cannot be written")

    set = set_many = set_partial_values = patch = update = update_many = erase = erase_values = erase_prefix = _refuse
