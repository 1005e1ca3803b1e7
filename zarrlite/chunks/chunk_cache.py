"""A cache of decoded chunks, shared by the arrays of one opened root.

Rules
- A cell is the unit of decoding: the part of a chunk, or of an inner chunk of a shard, that is inside the array. Cells
  are never changed, and never leave this package: readers get copies.
- All arrays and groups of the root use a view of the store (`watch`), which detects changes. A change to a chunk drops
  its cells. A change to any other key, such as that of a document or of a separately stored part of a chunk, drops all
  cells of the array.
- A cell is cached only if no change to its chunk was detected after the read of the cell began, so that a reader never
  caches elements that a writer has replaced.
- Changes that bypass this view, for example those of other processes, are not detected.
"""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from zarrlite.errors import ArgumentError
from zarrlite.guard import Guard
from zarrlite.selections.selection import Shape
from zarrlite.stores.base import Store
from zarrlite.stores.watched import WatchedStore

Cell = np.ndarray[Any, Any]
_SLOTS = 1024  # number of groups of keys; a change to one key counts as a change to all keys in its group
_caches: weakref.WeakSet[ChunkCache] = weakref.WeakSet()


class ChunkCache:
    """A cache of cells from all arrays of a root, with a total size of at most `max_bytes`.

    The least recently used cells are dropped first.
    """

    def __init__(self, max_bytes: int) -> None:
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
            raise ArgumentError(f"chunk_cache must be a positive number of bytes, not {max_bytes!r}")
        self.max_bytes = max_bytes
        self._arrays: dict[str, Callable[[str], bool]] = {}  # array prefix -> predicate that recognizes chunk keys
        self._generations = [0] * (_SLOTS + 1)  # a change counter for each group of keys, and a last one for all keys
        self._clear()
        _caches.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return ChunkCache, (self.max_bytes,)

    def _clear(self) -> None:
        self._lock = Guard()
        self._cells: OrderedDict[tuple[str, Shape], Cell] = OrderedDict()
        self._by_key: dict[str, dict[Shape, None]] = {}
        self._total = 0

    def watch(self, store: Store) -> Store:
        """Return a view of the store. A change made through the view drops the cells that depend on it."""
        return _WatchedByCache(store, self)

    def register(self, prefix: str, is_chunk: Callable[[str], bool]) -> None:
        """Register an array. `is_chunk` reports whether a key, relative to `prefix`, is that of a chunk."""
        self._arrays[prefix] = is_chunk

    def generation(self, key: str) -> Hashable:
        """Return a token that changes when the chunk with this key is dropped."""
        return self._generations[hash(key) % _SLOTS], self._generations[-1]

    def find(self, key: str, cell: Shape, shape: Shape) -> Cell | None:
        """Return a cached cell of a chunk. Returns None if the cell is not cached, or has another shape."""
        with self._lock:
            found = self._cells.get((key, cell))
            if found is None or found.shape != shape:
                return None
            self._cells.move_to_end((key, cell))
            return found

    def store(self, key: str, cell: Shape, elements: Cell, generation: Hashable) -> None:
        """Cache a cell that was read after `generation` was obtained, unless its chunk has changed since then."""
        nbytes = _size(elements)
        elements.flags.writeable = False
        with self._lock:
            if generation != self.generation(key) or nbytes > self.max_bytes:
                return
            self._remove(key, [cell])
            self._cells[key, cell] = elements
            self._by_key.setdefault(key, {})[cell] = None
            self._total += nbytes
            self._shrink()

    def _shrink(self) -> None:
        while self._total > self.max_bytes and self._cells:
            key, oldest = next(iter(self._cells))
            self._remove(key, [oldest])

    def drop(self, keys: Iterable[str]) -> None:
        """Drop all cells that depend on the values of these keys."""
        for key in keys:
            prefixes = [key[:end] for end in range(len(key)) if end == 0 or key[end - 1] == "/"]
            arrays = [prefix for prefix in prefixes if prefix in self._arrays]
            is_chunk = any(self._arrays[prefix](key[len(prefix) :]) for prefix in arrays)
            with self._lock:
                self._generations[hash(key) % _SLOTS if is_chunk else _SLOTS] += 1
                dropped = [key]
                if not is_chunk and arrays:
                    dropped = [chunk for chunk in self._by_key if chunk.startswith(tuple(arrays))]
                for chunk in dropped:
                    self._remove(chunk, [*self._by_key.get(chunk, ())])

    def _remove(self, key: str, cells: Iterable[Shape]) -> None:
        for cell in cells:
            elements = self._cells.pop((key, cell), None)
            if elements is not None:
                self._total -= _size(elements)
            left = self._by_key.get(key, {})
            left.pop(cell, None)
            if not left:
                self._by_key.pop(key, None)


class _WatchedByCache(WatchedStore):
    """A view of a root's store, which notifies the cache of every change."""

    def __init__(self, store: Store, cache: ChunkCache) -> None:
        super().__init__(store)
        self._cache = cache

    def __repr__(self) -> str:
        return repr(self.store)

    def __reduce__(self) -> tuple[Any, ...]:
        return _WatchedByCache, (self.store, self._cache)

    def changed(self, keys: Iterable[str]) -> None:
        self._cache.drop(keys)


def _size(elements: Cell) -> int:
    """Return the approximate size of an array in bytes, including the content of variable-length elements."""
    if elements.dtype.kind in "OT":
        return elements.nbytes + sum(len(element) for element in elements.flat if element is not None)
    return elements.nbytes


def _clear_caches() -> None:
    for cache in _caches:
        cache._clear()


if hasattr(os, "register_at_fork"):  # another thread may have been changing a cache at the time of the fork
    os.register_at_fork(after_in_child=_clear_caches)
