"""Stores in memory: over any mapping, or over a dict of their own.

Rules
- Values are immutable bytes, so that no caller shares a buffer with the store.
- The mapping is written and listed under one guard: a listing is a snapshot, whatever other threads do meanwhile.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import ByteSource, Stored
from zarrlite.stores.base import Fetched, Store, check_key, check_prefix, flat
from zarrlite.stores.locks import LockTable

_WHOLE = ""  # the name under which the mapping as a whole is locked; it is no key
_locks = LockTable()  # of all mappings: two stores over one mapping exclude each other


class MappingStore(Store):
    """A store over a mapping from keys to bytes.

    >>> mapping = {}
    >>> MappingStore(mapping).set("a/b", b"value")
    >>> mapping
    {'a/b': b'value'}
    """

    quick_reads = True

    def __init__(self, mapping: MutableMapping[str, Any]) -> None:
        self._mapping = mapping
        self._plain = type(self).get is MappingStore.get  # else a subclass has to be asked by it
        self._quick = self._plain and type(mapping) is dict  # whose `get` does nothing that can go wrong

    def __repr__(self) -> str:
        count = len(self._mapping)
        return f"{type(self).__name__}({count} {'key' if count == 1 else 'keys'})"

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        value = self._mapping.get(check_key(key))
        if value is None or type(value) is bytes:
            return value if value is None else byte_range.of(value)
        return bytes(byte_range.of(flat(value)))  # somebody else's buffer, which may change

    def peek(self, key: str, start: int, length: int, size: int) -> Buffer | None:
        value = self._mapping.get(check_key(key)) if self._quick else None
        return value[start : start + length] if type(value) is bytes and len(value) == size else None

    def fetch(self, keys: Sequence[str], memory: memoryview, room: int) -> Fetched:
        values = [self._mapping.get(check_key(key)) if self._quick else None for key in keys]
        return [value if type(value) is bytes and len(value) < room else None for value in values]

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return id(self._mapping), prefix

    def size(self, key: str) -> int | None:
        value = self._mapping.get(check_key(key))
        return None if value is None else memoryview(value).nbytes

    def source(self, key: str) -> ByteSource:
        return _Pinned(self, key)

    def set(self, key: str, value: Buffer) -> None:
        frozen = value if type(value) is bytes else bytes(flat(value))
        with _locks.guard:  # while it is held, nobody takes a lock
            if type(self._mapping) is dict and (id(self._mapping), check_key(key)) not in _locks:
                self._mapping[key] = frozen
                return
        with self.lock(key), _locks((id(self._mapping), _WHOLE)):
            self._mapping[key] = frozen

    def erase(self, key: str) -> None:
        with self.lock(key), _locks((id(self._mapping), _WHOLE)):
            self._mapping.pop(key, None)

    def list(self) -> Iterator[str]:
        return iter(sorted(self._snapshot()))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        return iter(sorted(key for key in self._snapshot() if key.startswith(prefix)))

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Exclude the other threads; the store is known to this process only."""
        return _locks((id(self._mapping), check_key(key)))

    def _snapshot(self) -> dict[str, Any]:
        with _locks((id(self._mapping), _WHOLE)):
            return dict(self._mapping)


class _Pinned(Stored):
    """A value as it was when it was first read, if it is one that cannot change."""

    store: MappingStore
    _value: Any = None

    def __init__(self, store: MappingStore, key: str) -> None:
        self.store, self.key, self.sized = store, key, True
        self._mapping = store._mapping

    def read(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        self._pin()
        found = super().read(ranges)
        if type(self._value) is bytes and self._mapping.get(self.key) is not self._value:
            return [byte_range.of(self._value) for byte_range in ranges]  # replaced meanwhile
        return found

    def read_one(self, byte_range: ByteRange) -> Buffer | None:
        value = self._value or self._pin()
        if type(value) is bytes and self.store._plain:
            return byte_range.of(value)
        return super().read_one(byte_range)

    read_all = ByteSource.read_all

    def known_size(self) -> int | None:
        value = self._pin()
        return len(value) if type(value) is bytes else None

    def _pin(self) -> Any:
        if self._value is None:
            self._value = self._mapping.get(check_key(self.key))
        return self._value


class MemoryStore(MappingStore):
    """A store of its own in memory; a pickled one is a copy.

    >>> store = MemoryStore({"a": b"0123"})
    >>> store, bytes(store.get("a", ByteRange(1, -1)))
    (MemoryStore(1 key), b'12')
    """

    def __init__(self, values: Mapping[str, Buffer] | None = None) -> None:
        super().__init__({})
        self.set_many((values or {}).items())

    def __reduce__(self) -> tuple[type[MemoryStore], tuple[dict[str, Any]]]:
        return type(self), (self._snapshot(),)
