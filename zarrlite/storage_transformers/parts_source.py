"""A chunk that lies in parts, as a source.

Rules
- What lies in one part is read from it, and each part is opened once: what is read of it is of one and the same value.
- Everything else, and every answer that is missing or short, is the store's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from zarrlite.errors import TruncatedError
from zarrlite.ranges import ALL, Buffer, ByteRange
from zarrlite.source import ByteSource, Stored

if TYPE_CHECKING:
    from zarrlite.storage_transformers.parts_store import PartsStore


class ChunkInParts(Stored):
    """A chunk that is read in several steps."""

    store: PartsStore

    def __init__(self, store: PartsStore, key: str) -> None:
        super().__init__(store, key)
        self.apart = store.apart
        self._parts: dict[str, ByteSource] = {}

    def _part(self, key: str) -> ByteSource:
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = self.store.store.source(key)
        return found

    def read_one(self, byte_range: ByteRange) -> Buffer | None:
        if self.apart and byte_range == (-self.apart, None):  # as an index is read
            wanted = [(self.key + self.store.parts[-1].key_suffix, ALL, self.apart or None)]
        else:
            wanted = self.store.wanted(self.key, byte_range)
        if len(wanted) != 1:
            return super().read_one(byte_range)
        part, inside, length = wanted[0]
        value = self._part(part).read_one(inside)
        if value is not None and length in (None, len(value)):
            return value
        return self.store.again(self.key, byte_range, [value])

    def read_all(self) -> Buffer | None:
        """All parts; where their sizes are known, each straight to its place."""
        sizes = self._sizes()
        if sizes is None:
            return super().read_all()
        total = sum(sizes.values())
        if self.max_size is not None and total > self.max_size:
            raise TruncatedError(f"has {total} bytes, at most {self.max_size} fit here")
        memory, position = np.empty(total, np.uint8), 0
        for suffix in [part.key_suffix for part in self.store.parts]:
            place = memory[position : position + sizes[suffix]]
            if place.size and not self._part(self.key + suffix).fill(place, 0):
                return super().read_all()
            position += place.size
        return memory.data

    def read_at(self, start: int, stop: int) -> Buffer | None:
        first = start - self.store.head
        if self.store.main is None or first < 0:
            return super().read_at(start, stop)
        value = self._part(self.key + self.store.main).read_at(first, first + stop - start)
        if value is not None and len(value) == stop - start:
            return value
        return self.store.again(self.key, ByteRange(start, stop), [value])

    @property
    def lends(self) -> bool:  # type: ignore[override]
        return self.store.main is not None and self._part(self.key + self.store.main).lends

    def borrow(self, byte_range: ByteRange = ALL) -> Buffer | None:
        start, stop = byte_range
        if self.store.main is not None and stop is not None and self.store.head <= start < stop:
            inside = ByteRange(start - self.store.head, stop - self.store.head)
            value = self._part(self.key + self.store.main).borrow(inside)
            if value is not None and len(value) == stop - start:
                return value
        return self.read_one(byte_range)

    def known_size(self) -> int | None:
        sizes = self._sizes()
        return None if sizes is None else sum(sizes.values())

    def _sizes(self) -> dict[str, int] | None:
        """The sizes of the parts, by suffix, where all are there, as long as they must be, and known at no cost."""
        sizes: dict[str, int] = {}
        # those without a size last: an index speaks of what is there when it is read
        for part in self.store.in_order:
            size = self._part(self.key + part.key_suffix).known_size()
            if size is None or part.size not in (None, size):
                return None
            sizes[part.key_suffix] = size
        return sizes

    def fill(self, memory: np.ndarray[Any, Any], start: int) -> bool:
        first = start - self.store.head
        if self.store.main is None or first < 0:
            return False
        return self._part(self.key + self.store.main).fill(memory, first)

    def close(self) -> None:
        for part in self._parts.values():
            part.close()
