"""A store in memory that records its requests. Its sources have versions, like those of object stores."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import ReplacedError, Source, VersionedSource
from zarrlite.stores import Limits, Store, check_key


class VersionedStore(Store):
    """A store that numbers its values. A source refuses further reads once its value has another number."""

    limits = Limits(concurrency=4)

    def __init__(self, versioned: bool = True) -> None:
        self.values: dict[str, tuple[int, bytes]] = {}
        self.requests: list[tuple[str, ByteRange]] = []
        self._versioned = versioned
        self._count = 0
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return "VersionedStore()"

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        found = self.fetch(check_key(key), byte_range)
        return None if found is None else found[1]

    def fetch(self, key: str, byte_range: ByteRange) -> tuple[int, bytes, int] | None:
        self.requests.append((key, byte_range))
        found = self.values.get(key)
        if found is None:
            return None
        number, value = found
        return number, bytes(byte_range.of(value)), len(value)

    def source(self, key: str) -> Source:
        return _Value(self, check_key(key)) if self._versioned else super().source(key)

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        check_key(key)
        with self.lock(key), self._guard:
            if new and key in self.values:
                return False
            self._count += 1
            self.values[key] = self._count, bytes(memoryview(value).tobytes())
        return True

    def erase(self, key: str) -> None:
        check_key(key)
        with self.lock(key):
            self.values.pop(key, None)

    def list(self) -> Iterator[str]:
        return iter(sorted(self.values))

    def size(self, key: str) -> int | None:
        found = self.values.get(check_key(key))
        return None if found is None else len(found[1])


class _Value(VersionedSource):
    def __init__(self, store: VersionedStore, key: str) -> None:
        self._store, self._key = store, key
        self.close()

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        parts: list[Buffer] = []
        for byte_range in ranges:
            found = self._store.fetch(self._key, byte_range)
            if found is None:
                if self._number is not None:
                    raise ReplacedError("is gone")
                return None
            number, part, size = found
            if self._number not in (None, number):
                raise ReplacedError("is another one")
            self._number, self._size = number, size
            parts.append(part)
        return parts

    def size(self) -> int | None:
        return self._store.size(self._key) if self._size is None else self._size

    def known_size(self) -> int | None:
        return self._size

    def version(self) -> str | None:
        return None if self._number is None else str(self._number)

    def is_current(self) -> bool:
        return self._number is None or self._store.values.get(self._key, (None,))[0] == self._number

    def close(self) -> None:
        self._number: int | None = None
        self._size: int | None = None
