"""A chunk that lies in parts, as a source.

Rules
- What lies in one part is read from it, and each part is opened once: what is read of it is of one and the same value.
- Everything else, and every answer that is missing or short, is the store's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import ByteSource, Held, Stored
from zarrlite.errors import TruncatedError

if TYPE_CHECKING:
    from zarrlite.storage_transformers.parts_store import PartsStore

_NONE = ("", 0)  # no part


class ChunkInParts(Stored):
    """A chunk that is read in several steps."""

    store: PartsStore
    sized = True
    _asked = False  # whether it was tried to know the size
    _size: int | None = None  # if all parts are there, as long as they must be, and that is known at no cost

    def __init__(self, store: PartsStore, key: str) -> None:
        self.store = store
        self.key = key
        self.apart = store.apart
        self._parts: dict[str, ByteSource] = {}

    def _part(self, suffix: str) -> ByteSource:
        found = self._parts.get(suffix)
        if found is None:
            found = self._parts[suffix] = self.store.store.source(self.key + suffix)
        return found

    def _holding(self, start: int, stop: int) -> tuple[ByteSource, int] | None:
        """The part that all of a range lies in, and how far that is from the start; None: there is none, or no telling.

        A range that most likely lies in the part without a size is asked for there.
        """
        if self._size is not None:
            first = 0
            for suffix, size in self.store.parts:
                part = self._parts[suffix]
                end = first + ((part.known_size() or 0) if size is None else size)
                if first <= start and stop <= end:
                    return part, first
                first = end
        elif self.store.main is not None and self.store.head <= start:
            return self._part(self.store.main), self.store.head
        return None

    def read_one(self, byte_range: ByteRange) -> Buffer | None:
        suffix, size = self.store.ends.get(byte_range, _NONE)
        if size and suffix not in self._parts:  # as an index is read: kept instead of opened, where one step gives it
            value = self.store.store.peek(self.key + suffix, 0, size, size)
            if value is not None and len(value) == size:
                self._parts[suffix] = Held(value)
                return value
        wanted = self.store.wanted(self.key, byte_range)
        if len(wanted) != 1:
            return super().read_one(byte_range)
        key, inside, length = wanted[0]
        value = self._part(key[len(self.key) :]).read_one(inside)
        if value is not None and length in (None, len(value)):
            return value
        return self.store.again(self.key, byte_range, [value])

    def read_all(self) -> Buffer | None:
        """All parts; where their sizes are known, each straight to its place."""
        total = self.known_size()
        if total is None:
            return super().read_all()
        if self.max_size is not None and total > self.max_size:
            raise TruncatedError(f"has {total} bytes, at most {self.max_size} fit here")
        memory = np.empty(total, np.uint8)
        start = 0
        for suffix, _ in self.store.parts:
            part = self._parts[suffix]
            end = start + (part.known_size() or 0)
            if start < end and not part.fill(memory[start:end], 0):
                return super().read_all()
            start = end
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
        if not self._asked:
            self._asked = True
            size = 0
            # those without a size last: an index speaks of what is there when it is read
            for suffix, wanted in self.store.in_order:
                found = self._part(suffix).known_size()
                if found is None or (wanted is not None and found != wanted):
                    return None
                size += found
            self._size = size
        return self._size

    def fill(self, memory: np.ndarray[Any, Any], start: int) -> bool:
        found = self._holding(start, start + memory.nbytes)
        return found is not None and found[0].fill(memory, start - found[1])

    def close(self) -> None:
        for part in self._parts.values():
            part.close()
        self._parts, self._asked, self._size = {}, False, None
