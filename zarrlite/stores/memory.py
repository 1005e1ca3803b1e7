"""Stores in memory: over any mapping, or with a dict of their own.

Rules
- Values are immutable bytes, so that no caller shares a buffer with the store.
- Writing and listing exclude each other, so a listing is a snapshot even while other threads write.
- An exception raised by a user's mapping reaches the caller as a StoreError that names the key.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from zarrlite.buffers.pieces import join
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import Source
from zarrlite.errors import ZarrliteError
from zarrlite.stores.base import (
    Buffers,
    Change,
    Limits,
    Request,
    Store,
    WrongSizeError,
    check_key,
    check_prefix,
    flat,
)
from zarrlite.stores.locks import Lock, LockContext, Table
from zarrlite.stores.store_errors import foreign_error

_NO_GUARD = nullcontext()
_WHOLE = ""  # the key under which the whole mapping is locked; no value has this key
_locks = Table()  # shared by all stores, so that writers of the same mapping exclude each other


class MappingStore(Store):
    """A store over a mapping from keys to bytes.

    >>> mapping = {}
    >>> MappingStore(mapping).set("a/b", b"value")
    True
    >>> mapping
    {'a/b': b'value'}
    """

    limits = Limits(concurrency=1)

    def __init__(self, mapping: Mapping[str, Any]) -> None:
        self._mapping: Any = mapping
        self._values: Any = mapping if type(mapping) is dict else _Reported(mapping)

    def __repr__(self) -> str:
        count = len(self._values)
        return f"{type(self).__name__}({count} {'key' if count == 1 else 'keys'})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MappingStore) and type(other) is type(self) and other._mapping is self._mapping

    def __hash__(self) -> int:
        return hash((type(self), id(self._mapping)))

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return _part(self._values.get(check_key(key)), byte_range)

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        found: Buffers = []
        for request in requests:
            value = self._values.get(check_key(request[0]))
            if len(request) > 2 and value is not None and request[2] not in (None, memoryview(value).nbytes):
                raise WrongSizeError(memoryview(value).nbytes, request[2])
            found.append(_part(value, request[1]))
        return found

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return id(self._mapping), prefix

    def size(self, key: str) -> int | None:
        value = self._values.get(check_key(key))
        return None if value is None else memoryview(value).nbytes

    def source(self, key: str) -> Source:
        return _MappedValue(self._values, check_key(key))

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        frozen = value if type(value) is bytes else bytes(flat(value))
        with _locks.guard:
            if self._is_free(key):
                return self._put(key, frozen, new)
        with self.lock(key), self._guard():
            return self._put(key, frozen, new)

    def _put(self, key: str, value: bytes, new: bool) -> bool:
        if new and key in self._values:
            return False
        self._values[key] = value
        return True

    def _is_free(self, key: str) -> bool:
        """Whether the mapping is a dict and no other thread holds the key: then the table's guard suffices."""
        holder = _locks.get((id(self._mapping), check_key(key)))
        return type(self._mapping) is dict and (holder is None or holder.thread == get_ident())

    def erase(self, key: str) -> None:
        with _locks.guard:
            if self._is_free(key):
                self._values.pop(key, None)
                return
        with self.lock(key), self._guard():
            self._values.pop(key, None)

    def change(self, changes: Iterable[tuple[str, Change]]) -> None:
        for key, change in changes:
            if callable(change):
                with self.lock(key):
                    self._apply(key, change)
            elif change is None:
                self.erase(key)
            else:
                self.set(key, change if type(change) is bytes else join(change))

    def list(self) -> Iterator[str]:
        return iter(self._keys())

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        return iter([key for key in self._keys() if key.startswith(prefix)])

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Exclude other threads. Other processes do not share the mapping."""
        return LockContext(Lock(_locks, (id(self._mapping), check_key(key))), key=key)

    def _guard(self) -> AbstractContextManager[Any]:
        if type(self._mapping) is dict:  # operations on a dict are atomic, including copying it
            return _NO_GUARD
        return LockContext(Lock(_locks, (id(self._mapping), _WHOLE)), key=_WHOLE)

    def _keys(self) -> Sequence[str]:
        with self._guard():
            return sorted(dict(self._mapping) if type(self._mapping) is dict else self._values)


class _Reported:
    """Wraps a user's mapping so that all its exceptions are errors of the library."""

    def __init__(self, mapping: Mapping[str, Any]) -> None:
        self._mapping: Any = mapping

    def __len__(self) -> int:
        with _reporting("counted"):
            return len(self._mapping)

    def __iter__(self) -> Iterator[str]:
        with _reporting("listed"):
            return iter(sorted(self._mapping))

    def __contains__(self, key: str) -> bool:
        with _reporting("read", key):
            return key in self._mapping

    def get(self, key: str) -> Any:
        with _reporting("read", key):
            value = self._mapping.get(key)
            if value is not None:
                memoryview(value)  # raises TypeError if it is not a buffer
            return value

    def __setitem__(self, key: str, value: bytes) -> None:
        with _reporting("written", key):
            self._mapping[key] = value

    def pop(self, key: str, default: None) -> None:
        with _reporting("erased", key):
            self._mapping.pop(key, default)


@contextmanager
def _reporting(action: str, key: str = "") -> Iterator[None]:
    try:
        yield
    except ZarrliteError:
        raise
    except Exception as error:
        raise foreign_error(error, key, action) from error


def _part(value: Any, byte_range: ByteRange) -> Buffer | None:
    if value is None:
        return None
    if type(value) is bytes:
        return byte_range.of(value)
    return bytes(byte_range.of(flat(value)))  # a copy, because the owner of the buffer may change it


_NOT_READ = object()


class _MappedValue(Source):
    """A bytes object as it was at the first read. A value of another type may change, so every read looks it up."""

    _value: Any = _NOT_READ

    def __init__(self, values: Any, key: str) -> None:
        self._values = values
        self._key = key

    def _get(self) -> Any:
        if self._value is not None and type(self._value) is not bytes:
            self._value = self._values.get(self._key)
        return self._value

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        value = self._get()
        if value is None:
            return None
        if type(value) is not bytes:
            value = bytes(flat(value))
        return [byte_range.of(value) for byte_range in ranges]

    def size(self) -> int | None:
        value = self._get()
        return None if value is None else memoryview(value).nbytes

    known_size = size

    def is_current(self) -> bool:
        return self._value is _NOT_READ or self._values.get(self._key) is self._value

    def close(self) -> None:
        self._value = _NOT_READ


class MemoryStore(MappingStore):
    """A store in memory with its own dict. Pickling copies it.

    Parameters
    ----------
    values : mapping of str to bytes, optional
        Initial keys and values, which are copied.

    Examples
    --------
    >>> store = MemoryStore({"a": b"0123"})
    >>> store, bytes(store.get("a", ByteRange(1, -1)))
    (MemoryStore(1 key), b'12')
    """

    def __init__(self, values: Mapping[str, Buffer] | None = None) -> None:
        super().__init__({})
        for key, value in (values or {}).items():
            self.set(key, value)

    def __reduce__(self) -> tuple[type[MemoryStore], tuple[dict[str, Any]]]:
        return type(self), (dict(self._mapping),)
