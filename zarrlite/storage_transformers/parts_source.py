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
    _known = False  # whether it was tried to know the places
    _places: list[tuple[int, int, ByteSource]] | None = None  # where parts begin and end in the chunk, if that is known

    def __init__(self, store: PartsStore, key: str) -> None:
        super().__init__(store, key)
        self.apart = store.apart
        self._parts: dict[str, ByteSource] = {}

    def _part(self, suffix: str) -> ByteSource:
        found = self._parts.get(suffix)
        if found is None:
            found = self._parts[suffix] = self.store.store.source(self.key + suffix)
        return found

    def _placed(self) -> list[tuple[int, int, ByteSource]] | None:
        """The parts in their places, where all are there, as long as they must be, and known at no cost."""
        if not self._known:
            self._known = True
            sizes = {}
            # those without a size last: an index speaks of what is there when it is read
            for suffix, wanted in self.store.in_order:
                size = sizes[suffix] = self._part(suffix).known_size()
                if size is None or (wanted is not None and size != wanted):
                    return None
            self._places, end = [], 0
            for suffix, _ in self.store.parts:
                start, end = end, end + (sizes[suffix] or 0)
                self._places.append((start, end, self._parts[suffix]))
        return self._places

    def _holding(self, start: int, stop: int) -> tuple[ByteSource, int] | None:
        """The part that all of a range lies in, and how far that is from the start; None: there is none, or no telling.

        A range that most likely lies in the part without a size is asked for there.
        """
        if self._known and self._places is not None:
            for first, end, part in self._places:
                if first <= start and stop <= end:
                    return part, first
        elif self.store.main is not None and self.store.head <= start:
            return self._part(self.store.main), self.store.head
        return None

    def read_one(self, byte_range: ByteRange) -> Buffer | None:
        if self.apart and byte_range == (-self.apart, None):  # as an index is read
            wanted = [(self.key + self.store.parts[-1].key_suffix, ALL, self.apart or None)]
        else:
            wanted = self.store.wanted(self.key, byte_range)
        if len(wanted) != 1:
            return super().read_one(byte_range)
        part, inside, length = wanted[0]
        value = self._part(part[len(self.key) :]).read_one(inside)
        if value is not None and length in (None, len(value)):
            return value
        return self.store.again(self.key, byte_range, [value])

    def read_all(self) -> Buffer | None:
        """All parts; where their sizes are known, each straight to its place."""
        places = self._placed()
        if places is None:
            return super().read_all()
        total = places[-1][1]
        if self.max_size is not None and total > self.max_size:
            raise TruncatedError(f"has {total} bytes, at most {self.max_size} fit here")
        memory = np.empty(total, np.uint8)
        for start, end, part in places:
            if start < end and not part.fill(memory[start:end], 0):
                return super().read_all()
        return memory.data

    def read_at(self, start: int, stop: int) -> Buffer | None:
        found = self._holding(start, stop)
        if found is None:
            return super().read_at(start, stop)
        part, first = found
        value = part.read_at(start - first, stop - first)
        if value is not None and len(value) == stop - start:
            return value
        return self.store.again(self.key, ByteRange(start, stop), [value])

    @property
    def lends(self) -> bool:  # type: ignore[override]
        return self.store.main is not None and self._part(self.store.main).lends

    def borrow(self, byte_range: ByteRange = ALL) -> Buffer | None:
        start, stop = byte_range
        found = None if stop is None or not 0 <= start < stop else self._holding(start, stop)
        if found is not None and stop is not None:
            part, first = found
            value = part.borrow(ByteRange(start - first, stop - first))
            if value is not None and len(value) == stop - start:
                return value
        return self.read_one(byte_range)

    def known_size(self) -> int | None:
        places = self._placed()
        return None if places is None else places[-1][1]

    def fill(self, memory: np.ndarray[Any, Any], start: int) -> bool:
        found = self._holding(start, start + memory.nbytes)
        return found is not None and found[0].fill(memory, start - found[1])

    def close(self) -> None:
        for part in self._parts.values():
            part.close()
        self._parts, self._known, self._places = {}, False, None
