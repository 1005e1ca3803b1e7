"""Views of another store: the part under a prefix, a read-only view, or a view with some prefetched values.

Rules
- Every operation is forwarded as one call, to keep the optimizations of the underlying store: batches, locks, listings.
- A view has no state of its own, except for prefetched values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NoReturn

from zarrlite import threads
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import Source
from zarrlite.errors import ReadOnlyError
from zarrlite.stores.base import Buffers, Change, Listing, Request, Store, check_key, check_prefix, place_of


class PrefixStore(Store):
    """The part of a store under a prefix; keys are relative to it.

    >>> from zarrlite.stores import MemoryStore
    >>> list(PrefixStore(MemoryStore({"a/b": b"1", "c": b"2"}), "a/").list())
    ['b']
    """

    def __init__(self, store: Store, prefix: str) -> None:
        self.store = store
        self.prefix = check_prefix(prefix)
        self.read_only, self.limits = store.read_only, store.limits

    def __repr__(self) -> str:
        return f"PrefixStore({self.store!r}, {self.prefix!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrefixStore) and (other.store, other.prefix) == (self.store, self.prefix)

    def __hash__(self) -> int:
        return hash((self.store, self.prefix))

    def _below(self, key: str) -> str:
        return self.prefix + check_key(key)

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.store.get(self._below(key), byte_range)

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        below: Any = [(self._below(key), *rest) for key, *rest in requests]
        return self.store.get_partial_values(below, memory)

    def size(self, key: str) -> int | None:
        return self.store.size(self._below(key))

    def source(self, key: str) -> Source:
        return self.store.source(self._below(key))

    def list(self) -> Iterator[str]:
        return self._listed(self.prefix)  # does not call `list_prefix`, because a subclass may build that on `list`

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return self._listed(self.prefix + check_prefix(prefix))

    def _listed(self, prefix: str) -> Iterator[str]:
        return (key[len(self.prefix) :] for key in self.store.list_prefix(prefix))

    def list_dir(self, prefix: str) -> Listing:
        keys, prefixes = self.store.list_dir(self.prefix + check_prefix(prefix))
        start = len(self.prefix)
        return [key[start:] for key in keys], [name[start:] for name in prefixes]

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return self.store.location(self.prefix + prefix)

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        return self.store.set(self._below(key), value, new)

    def erase(self, key: str) -> None:
        self.store.erase(self._below(key))

    def erase_prefix(self, prefix: str) -> None:
        self.store.erase_prefix(self.prefix + check_prefix(prefix))

    def change(self, changes: Iterable[tuple[str, Change]]) -> None:
        below = ((self._below(key), change) for key, change in changes)
        # keep lists as lists: some stores handle them more cheaply than iterators
        self.store.change([*below] if isinstance(changes, list) else below)

    def lock(self, key: str) -> AbstractContextManager[Any]:
        return self.store.lock(self._below(key))

    def close(self) -> None:
        self.store.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.store.__exit__(kind, error, traceback)


class ReadOnlyStore(Store):
    """A read-only view of a store. The store itself can still be written to."""

    read_only = True

    def __init__(self, store: Store) -> None:
        self.store = store
        self.limits = store.limits

    def __repr__(self) -> str:
        return f"ReadOnlyStore({self.store!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadOnlyStore) and other.store == self.store

    def __hash__(self) -> int:
        return hash((ReadOnlyStore, self.store))

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.store.get(key, byte_range)

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        return self.store.get_partial_values(requests, memory)

    def size(self, key: str) -> int | None:
        return self.store.size(key)

    def source(self, key: str) -> Source:
        return self.store.source(key)

    def list(self) -> Iterator[str]:
        return self.store.list()

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return self.store.list_prefix(prefix)

    def list_dir(self, prefix: str) -> Listing:
        return self.store.list_dir(prefix)

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return self.store.location(prefix)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ReadOnlyError(f"{self!r} is read-only")

    set = erase = erase_prefix = change = _refuse

    def close(self) -> None:
        self.store.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.store.__exit__(kind, error, traceback)


class PrefetchedStore(ReadOnlyStore):
    """A read-only view of a store, with the first bytes of some values as they were when the view was created.

    >>> from zarrlite.stores import MemoryStore
    >>> store = MemoryStore({"a": b"1"})
    >>> view = PrefetchedStore(store, ["a", "b"], ByteRange(0, 100))
    >>> store.set("a", b"2")
    True
    >>> bytes(view.get("a")), view.size("b")
    (b'1', None)
    """

    def __init__(self, store: Store, keys: Sequence[str], byte_range: ByteRange) -> None:
        super().__init__(store)
        found = threads.gather(lambda key: store.get(key, byte_range), keys, place_of(store))
        self._values = dict(zip(keys, found, strict=True))

    def __repr__(self) -> str:
        return repr(self.store)

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        if key not in self._values:
            return super().get(key, byte_range)
        value = self._values[key]
        return None if value is None else byte_range.of(value)

    def size(self, key: str) -> int | None:
        if key not in self._values:
            return super().size(key)
        value = self._values[key]
        return None if value is None else len(value)


def prefetched(store: Store, keys: Sequence[str], byte_range: ByteRange) -> Store:
    """Return a view of a store with values prefetched in one batch, or the store if prefetching gains nothing."""
    return store if place_of(store) is None else PrefetchedStore(store, keys, byte_range)
