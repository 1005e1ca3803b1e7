"""A chunk that lies in parts, as a source.

Rules
- What lies in one part is read from it, and each part is opened once: what is read of it is of one and the same value.
- Everything else, and every answer that is missing or short, is the store's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
        sizes: dict[str, int] = {}
        # those without a size last: an index speaks of what is there when it is read
        for part in sorted(self.store.parts, key=lambda part: part.size is None):
            size = self._part(self.key + part.key_suffix).known_size()
            if size is None or part.size not in (None, size):
                return super().read_all()
            sizes[part.key_suffix] = size
        memory, position = np.empty(sum(sizes.values()), np.uint8), 0
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

    def fill(self, memory: np.ndarray[Any, Any], start: int) -> bool:
        first = start - self.store.head
        if self.store.main is None or first < 0:
            return False
        return self._part(self.key + self.store.main).fill(memory, first)

    def close(self) -> None:
        for part in self._parts.values():
            part.close()
