"""The stored objects of an array, explained: through its storage transformers up to its chunks, and down again.

Rules
- From a stored object the way leads up: a part to the chunk that it is a part of, a shard to its chunks, a chunk to its
  codecs. From a chunk it leads down to the objects that hold it, and from those up again.
- Parts that do not fit together are not explained any further, for nobody knows what of them is what.
- What is not known here, such as a transformer of another package, is said to be unknown and is no fault.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

from zarrlite.errors import ArgumentError, DataError, NodeNotFoundError, ZarrliteError
from zarrlite.extensions.config import Json
from zarrlite.extensions.extension import Ignored
from zarrlite.names import DOCUMENT
from zarrlite.nodes.array import Array
from zarrlite.selections.selection import Shape
from zarrlite.storage_transformers.parts_store import PartsStore
from zarrlite.storage_transformers.shards_store import ShardsStore
from zarrlite.stores import Store
from zarrlite.tools.layout import chains, shards
from zarrlite.tools.layout.extent import Extent
from zarrlite.tools.layout.shards import show
from zarrlite.tools.layout.tree import Fault, Range, guarded

Place = tuple[str, int, int]  # a stored object, and the bytes of it that are meant


class Stored(NamedTuple):
    """A stored object and what its bytes are; of one that is missing the size is None."""

    key: str
    size: int | None
    layout: Range

    def to_json(self) -> dict[str, Json]:
        """As JSON."""
        return {"key": self.key, "size": self.size, "layout": self.layout.to_json()}


def explain(
    array: Array, key: str | None = None, *, chunk: Iterable[int] | None = None, most: int | None = 32
) -> list[Stored]:
    """The stored objects that a key or a chunk means, byte by byte; of each shard at most so many entries and chunks.

    A key is that of a stored object, or of a chunk. That of a chunk in several parts means all of them.
    """
    stack = Stack(array)
    if (key is None) == (chunk is None):
        raise ArgumentError("either a key or the coordinates of a chunk must be given")
    if chunk is not None:
        coords = tuple(int(c) for c in chunk)
        if len(coords) != array.ndim or any(c < 0 for c in coords):
            raise ArgumentError(f"{show(coords)} is no chunk of an array of {array.ndim} dimensions")
        key = stack.key(coords)
        places = stack.places(0, key)
    else:
        places = stack.find(key or "")
    if not any(stack.base.size(name) is not None for name, _, _ in places):
        raise NodeNotFoundError(f"{array.name} has nothing stored for {key!r}: {stack.why(key or '')}", path=array.path)
    found = (stack.stored(*place) for place in places)
    return [stored._replace(layout=stored.layout.solid(most)) for stored in found]


class Stack:
    """An array's storage transformers, each as the store that it makes of the next."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.metadata = array.metadata
        self.base = array._base
        self.stores: list[Store] = [self.base]
        for transformer in reversed(self.metadata.storage_transformers or ()):
            if not isinstance(transformer, Ignored):
                self.stores.insert(0, transformer.wrap(self.stores[0], self.metadata.in_store))
        self.grid = self.metadata.chunk_grid.grid_shape(self.metadata.shape)

    def key(self, coords: Shape) -> str:
        return self.metadata.chunk_key_encoding.encode(coords)

    def coords(self, key: str) -> Shape | None:
        return self.metadata.chunk_key_encoding.decode(key, len(self.metadata.shape))

    def why(self, key: str) -> str:
        """Why nothing may be stored for a key."""
        coords = self.coords(key)
        if coords is None:
            return f"its chunks have keys such as {self.key((0,) * len(self.grid))}"
        inside = all(c < n for c, n in zip(coords, self.grid, strict=True))
        return "all of it is the fill value" if inside else f"the grid has {show(self.grid)} chunks"

    # up

    def layout(self, key: str) -> Range | None:
        """What the bytes of a stored object are; None: it is not there."""
        try:
            size = self.base.size(key)
            if size is None:
                return None
            return self._above(len(self.stores) - 1, key, Extent.stored(self.base, key, size), 0)
        except (ZarrliteError, OSError) as error:
            return Range(0, 0, "object", "unknown", fault=Fault.of(error))

    def stored(self, key: str, start: int, stop: int) -> Stored:
        """The same, of a part of it."""
        layout = self.layout(key)
        if layout is None:
            fault = Fault("part", "is missing, others are there")
            return Stored(key, None, Range(0, 0, "missing part", "part", "concat-parts", fault=fault))
        return Stored(key, self.base.size(key), layout.clip(start, stop))

    def _above(self, level: int, key: str, extent: Extent, at: int) -> Range:
        """What a value is that the store of this level has under this key; it begins at a position."""
        if key == DOCUMENT:
            return Range(at, at + extent.size, "metadata document", "document")
        if level == 0:
            return self._chunk(key, extent, at)
        store = self.stores[level - 1]
        if isinstance(store, PartsStore):
            return self._part(level, store, key, extent, at)
        if isinstance(store, ShardsStore):
            return self._shard(level, store, key, extent, at)
        return Range(at, at + extent.size, "object", "unknown", type(store).__name__)

    def _chunk(self, key: str, extent: Extent, at: int) -> Range:
        coords, end = self.coords(key), at + extent.size
        if coords is None:
            unknown = Fault("unknown", f"{key!r} is not the key of a chunk of this array")
            return Range(at, end, "object", "unknown", fault=unknown)
        what, fault = f"chunk {show(coords)}", None
        detail: dict[str, Json] = {"coordinates": list(coords)}
        if any(c >= n for c, n in zip(coords, self.grid, strict=True)):
            fault = Fault("outside", f"{what} is outside of the grid, which has {show(self.grid)} chunks")
        else:
            grid = self.metadata.chunk_grid
            bounds = zip(grid.origin(coords), grid.chunk_shape(coords), self.metadata.shape, strict=True)
            detail["holds"] = [[start, min(start + length, n)] for start, length, n in bounds]
        pipeline = self.metadata.pipeline(self.metadata.chunk_grid.chunk_shape(coords))
        return Range(
            at, end, what, "chunk", "", detail, fault, lambda: guarded(chains.chunk(pipeline, extent, at), at, end)
        )

    def _shard(self, level: int, store: ShardsStore, key: str, extent: Extent, at: int) -> Range:
        coords, end = self.coords(key), at + extent.size
        if coords is None:
            return self._above(level - 1, key, extent, at)
        origin = [c * n for c, n in zip(coords, store.per_shard, strict=True)]

        def inner(inside: Shape, part: Extent, start: int) -> Range:
            chunk = tuple(o + i for o, i in zip(origin, inside, strict=True))
            return self._above(level - 1, self.key(chunk), part, start)

        return Range(
            at,
            end,
            f"shard {show(coords)}",
            "shard",
            "sharding",
            children=lambda: guarded(shards.shard(store.format, extent, at, inner, "sharding", chains.chain), at, end),
        )

    def _part(self, level: int, store: PartsStore, key: str, extent: Extent, at: int) -> Range:
        chunk, end = store.chunk_of(key), at + extent.size
        if chunk is None:
            if not store.is_chunk(key):
                return self._above(level - 1, key, extent, at)
            suffixes = ", ".join(repr(part.key_suffix) for part in store.parts.all)
            unknown = Fault("unknown", f"{key!r} is not a part of a chunk; those end in {suffixes}")
            return Range(at, end, "object", "unknown", fault=unknown)
        keys = store.keys_of(chunk)
        number = keys.index(key)
        what = f"part {number + 1} of {len(keys)} of {chunk}"
        try:
            sizes = [self.stores[level].size(name) for name in keys]
        except DataError as error:
            return Range(at, end, what, "part", "concat-parts", fault=Fault("part", error.message))
        fault, whole = _misfit(store, keys, sizes, number)
        if not whole:
            return Range(at, end, what, "part", "concat-parts", fault=fault)
        known = [size or 0 for size in sizes]
        extents = [Extent.stored(self.stores[level], k, n) for k, n in zip(keys, known, strict=True)]
        extents[number] = extent

        def inside() -> list[Range]:
            before = sum(known[:number])
            return [self._above(level - 1, chunk, Extent.joined(extents), at - before).clip(at, end)]

        return Range(at, end, what, "part", "concat-parts", children=inside)

    # down

    def find(self, key: str) -> list[Place]:
        """The stored objects that a key means."""
        last = self.stores[-2] if len(self.stores) > 1 else None
        places = self.places(len(self.stores) - 2, key) if isinstance(last, PartsStore) else [self._whole(key)]
        if any(self.base.size(name) is not None for name, _, _ in places):
            return places
        if self.base.size(key) is not None:  # a part
            return [self._whole(key)]
        return self.places(0, key) if self.coords(key) is not None else []

    def _whole(self, key: str) -> Place:
        return key, 0, self.base.size(key) or 0

    def places(self, level: int, key: str) -> list[Place]:
        """Where a value lies that the store of this level has under this key."""
        store = self.stores[level]
        if store is self.base:
            return [self._whole(key)]
        if isinstance(store, PartsStore) and store.is_chunk(key):
            return [place for part in store.keys_of(key) for place in self.places(level + 1, part)]
        found = store.place_of(key) if isinstance(store, ShardsStore) else None
        if found is None or not isinstance(store, ShardsStore):
            return self.places(level + 1, key)
        shard, number = found
        below = self.places(level + 1, shard)
        try:
            with contextlib.closing(self.stores[level + 1].source(shard)) as source:
                index = store.read_index(source)
            entry = None if index is None else index.entry(number)
        except DataError:
            return below  # what is wrong will be seen there
        return [] if entry is None else _cut(below, entry[0], entry[0] + entry[1])


def _misfit(store: PartsStore, keys: list[str], sizes: list[int | None], number: int) -> tuple[Fault | None, bool]:
    """What is wrong with one of several parts, and whether all of them fit together."""
    wanted = [part.size for part in store.parts.all]
    missing = [key for key, size in zip(keys, sizes, strict=True) if size is None]
    fits = all(size is not None and n in (None, size) for size, n in zip(sizes, wanted, strict=True))
    fault = None
    if wanted[number] is not None and sizes[number] != wanted[number]:
        fault = Fault("part", f"has {sizes[number]} bytes, not {wanted[number]}")
    elif missing and next(i for i, size in enumerate(sizes) if size is not None) == number:
        fault = Fault("part", f"the part {missing[0]!r} is missing, others are there")
    return fault, fits


def _cut(places: Iterable[Place], start: int, stop: int) -> list[Place]:
    """The part between two positions of what lies in several places, one behind the other."""
    found, at = [], 0
    for key, low, high in places:
        first, last = max(start - at, 0), min(stop - at, high - low)
        if first < last:
            found.append((key, low + first, low + last))
        at += high - low
    return found
