"""Explain the stored objects of an array, and find the stored objects of its chunks.

Rules
- A stored object is explained from the store up to the array: a part as bytes of its chunk, a shard as a sequence of
  chunks, a chunk as the output of its codecs. To explain a chunk, the objects that store it are found first.
- If a part of a chunk is missing or has the wrong size, the parts are not explained further, since the meaning of their
  bytes is unknown.
- Values written by a storage transformer that does not describe them are shown as unknown; this is not a fault.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from zarrlite.errors import ArgumentError, DataError, NodeNotFoundError, ZarrliteError
from zarrlite.extensions.config import Json
from zarrlite.extensions.extension import Ignored
from zarrlite.names import DOCUMENT
from zarrlite.nodes.array import Array
from zarrlite.selections.selection import Shape
from zarrlite.shards.format import row_major
from zarrlite.storage_transformers.anatomy import Combined, Divided
from zarrlite.storage_transformers.base import StorageTransformer
from zarrlite.storage_transformers.parts_store import PartsStore
from zarrlite.stores import Store
from zarrlite.tools.layout import chains, shards
from zarrlite.tools.layout.extent import Extent
from zarrlite.tools.layout.shards import show
from zarrlite.tools.layout.tree import Fault, Range, guarded

Place = tuple[str, int, int]  # the key of a stored object, and the start and end of a range of its bytes


class Stored(NamedTuple):
    """A stored object and the meaning of its bytes. The size of a missing object is None."""

    key: str
    size: int | None
    layout: Range

    def to_json(self) -> dict[str, Json]:
        """Return the object as JSON."""
        return {"key": self.key, "size": self.size, "layout": self.layout.to_json()}


def explain(
    array: Array, key: str | None = None, *, chunk: Iterable[int] | None = None, most: int | None = 32
) -> list[Stored]:
    """Explain stored objects byte by byte, showing at most `most` entries and chunks of each shard.

    `key` is the key of a stored object or of a chunk. If a chunk is stored in parts, its key selects all of them.
    """
    stack = Stack(array)
    if (key is None) == (chunk is None):
        raise ArgumentError("either a key or the coordinates of a chunk must be given")
    if chunk is not None:
        coords = tuple(int(c) for c in chunk)
        if len(coords) != array.ndim or any(c < 0 for c in coords):
            raise ArgumentError(f"{show(coords)} is not a chunk of an array with {array.ndim} dimensions")
        key = stack.key(coords)
        places = stack.places(0, key)
    else:
        places = stack.find(key or "")
    if not any(stack.base.size(name) is not None for name, _, _ in places):
        raise NodeNotFoundError(f"{array.name} has nothing stored for {key!r}: {stack.why(key or '')}", path=array.path)
    objects = (stack.stored(*place) for place in places)
    return [stored._replace(layout=stored.layout.solid(most)) for stored in objects]


class Stack:
    """An array's storage transformers, the stores between them, and their descriptions."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.metadata = array.metadata
        self.base = array._base
        transformers = self.metadata.storage_transformers or ()
        self.transformers: list[StorageTransformer] = [t for t in transformers if not isinstance(t, Ignored)]
        self.anatomies = [transformer.anatomy() for transformer in self.transformers]
        self.stores: list[Store] = [self.base]  # the store above each transformer, then the store below the last one
        for transformer in reversed(self.transformers):
            self.stores.insert(0, transformer.wrap(self.stores[0], self.metadata.in_store))
        self.grid = self.metadata.chunk_grid.grid_shape(self.metadata.shape)

    def key(self, coords: Shape) -> str:
        """Return the key of a chunk."""
        return self.metadata.chunk_key_encoding.encode(coords)

    def coords(self, key: str) -> Shape | None:
        """Return the coordinates of a chunk. Returns None if the key is not a chunk key."""
        return self.metadata.chunk_key_encoding.decode(key, len(self.metadata.shape))

    def why(self, key: str) -> str:
        """Return the probable reason why nothing is stored under a key."""
        coords = self.coords(key)
        if coords is None:
            return f"its chunks have keys such as {self.key((0,) * len(self.grid))}"
        inside = all(c < n for c, n in zip(coords, self.grid, strict=True))
        return "all of it is the fill value" if inside else f"the grid has {show(self.grid)} chunks"

    # From stored objects up to chunks

    def layout(self, key: str) -> Range | None:
        """Return the range of all bytes of a stored object. Returns None if the object is missing."""
        try:
            size = self.base.size(key)
            if size is None:
                return None
            if (journal := self.journal(key)) is not None:
                return Range(0, size, f"journal of {journal[1]}", "unknown")
            return self._above(len(self.stores) - 1, key, Extent.stored(self.base, key, size), 0)
        except (ZarrliteError, OSError) as error:
            return Range(0, 0, "object", "unknown", fault=Fault.of(error))

    def journal(self, key: str) -> tuple[PartsStore, str] | None:
        """Return the store and the chunk that a journal belongs to. Returns None if the key is not for a journal."""
        for store in self.stores:
            chunk = store.chunk_of_journal(key) if isinstance(store, PartsStore) else None
            if chunk is not None:
                return store, chunk  # type: ignore[return-value]
        return None

    def stored(self, key: str, start: int, stop: int) -> Stored:
        """Return a stored object and the meaning of the bytes between two offsets."""
        layout = self.layout(key)
        if layout is None:
            described = zip(self.transformers, self.anatomies, strict=True)
            owners = ["", *(transformer.name for transformer, anatomy in described if isinstance(anatomy, Divided))]
            fault = Fault("part", "is missing, but other parts exist")
            return Stored(key, None, Range(0, 0, "missing part", "part", owners[-1], fault=fault))
        return Stored(key, self.base.size(key), layout.clip(start, stop))

    def _above(self, level: int, key: str, extent: Extent, at: int) -> Range:
        """Return the range of a value in `self.stores[level]`, which begins at offset `at` of the stored object."""
        if key == DOCUMENT:
            return Range(at, at + extent.size, "metadata document", "document")
        if level == 0:
            return self._chunk(key, extent, at)
        anatomy = self.anatomies[level - 1]
        if isinstance(anatomy, Divided):
            return self._part(level, anatomy, key, extent, at)
        if isinstance(anatomy, Combined):
            return self._shard(level, anatomy, key, extent, at)
        return Range(at, at + extent.size, "object", "unknown", type(self.stores[level - 1]).__name__)

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

    def _shard(self, level: int, anatomy: Combined, key: str, extent: Extent, at: int) -> Range:
        coords, end = self.coords(key), at + extent.size
        if coords is None:
            return self._above(level - 1, key, extent, at)
        name, form = self.transformers[level - 1].name, anatomy.format
        origin = [c * n for c, n in zip(coords, form.grid, strict=True)]

        def inner(inside: Shape, part: Extent, start: int) -> Range:
            chunk = tuple(o + i for o, i in zip(origin, inside, strict=True))
            return self._above(level - 1, self.key(chunk), part, start)

        return Range(
            at,
            end,
            f"shard {show(coords)}",
            "shard",
            name,
            children=lambda: guarded(shards.shard(form, extent, at, inner, name, chains.chain), at, end),
        )

    def _chunk_of(self, anatomy: Divided, key: str) -> str | None:
        """Return the chunk that a part belongs to. Returns None if the key is not the key of a part."""
        for part in anatomy.parts:
            chunk = key[: len(key) - len(part.key_suffix)]
            if key.endswith(part.key_suffix) and self.coords(chunk) is not None:
                return chunk
        return None

    def _part(self, level: int, anatomy: Divided, key: str, extent: Extent, at: int) -> Range:
        chunk, end = self._chunk_of(anatomy, key), at + extent.size
        if chunk is None:
            if self.coords(key) is None:
                return self._above(level - 1, key, extent, at)
            suffixes = ", ".join(repr(part.key_suffix) for part in anatomy.parts)
            unknown = Fault("unknown", f"{key!r} is not a part of a chunk; the keys of parts end in {suffixes}")
            return Range(at, end, "object", "unknown", fault=unknown)
        name = self.transformers[level - 1].name
        keys = [chunk + part.key_suffix for part in anatomy.parts]
        number = keys.index(key)
        what = f"part {number + 1} of {len(keys)} of {chunk}"
        try:
            sizes = [self.stores[level].size(part) for part in keys]
        except DataError as error:
            return Range(at, end, what, "part", name, fault=Fault("part", error.message))
        fault, fits = _check_parts(anatomy, keys, sizes, number)
        if not fits:
            above: Any = self.stores[level - 1]
            has_journal = self.base.size(above.journal_of(chunk)) is not None  # the journal is reported instead
            return Range(at, end, what, "part", name, fault=None if has_journal else fault)
        known = [size or 0 for size in sizes]
        extents = [Extent.stored(self.stores[level], k, n) for k, n in zip(keys, known, strict=True)]
        extents[number] = extent

        def inside() -> list[Range]:
            before = sum(known[:number])
            return [self._above(level - 1, chunk, Extent.joined(extents), at - before).clip(at, end)]

        return Range(at, end, what, "part", name, children=inside)

    # From chunks down to stored objects

    def find(self, key: str) -> list[Place]:
        """Return the byte ranges that store the object or the chunk with this key."""
        divided = bool(self.anatomies) and isinstance(self.anatomies[-1], Divided)
        places = self.places(len(self.anatomies) - 1, key) if divided else [self._object(key)]
        if any(self.base.size(name) is not None for name, _, _ in places):
            return places
        if self.base.size(key) is not None:  # the key of a part
            return [self._object(key)]
        return self.places(0, key) if self.coords(key) is not None else []

    def _object(self, key: str) -> Place:
        return key, 0, self.base.size(key) or 0

    def places(self, level: int, key: str) -> list[Place]:
        """Return the byte ranges of stored objects that together store a value in `self.stores[level]`."""
        if level == len(self.anatomies):
            return [self._object(key)]
        anatomy, coords = self.anatomies[level], self.coords(key)
        if coords is None or anatomy is None:
            return self.places(level + 1, key)
        if isinstance(anatomy, Divided):
            return [place for part in anatomy.parts for place in self.places(level + 1, key + part.key_suffix)]
        return self._places_in_shard(level, anatomy, coords)

    def _places_in_shard(self, level: int, anatomy: Combined, coords: Shape) -> list[Place]:
        form = anatomy.format
        shard = self.key(tuple(c // n for c, n in zip(coords, form.grid, strict=True)))
        number = row_major((c % n for c, n in zip(coords, form.grid, strict=True)), form.grid)
        below = self.places(level + 1, shard)
        try:
            with contextlib.closing(self.stores[level + 1].source(shard)) as source:
                stored = source.read_one(form.index_range)
                index = None if stored is None else form.parse_index(bytes(stored), source.known_size())
            entry = None if index is None else index.entry(number)
        except DataError:
            return below  # `explain` reports this fault where it describes these objects
        return [] if entry is None else _cut(below, entry[0], entry[0] + entry[1])


def _check_parts(anatomy: Divided, keys: list[str], sizes: list[int | None], number: int) -> tuple[Fault | None, bool]:
    """Return the fault of the part with this number, and whether all parts exist and have the right size."""
    expected = [part.size for part in anatomy.parts]
    missing = [key for key, size in zip(keys, sizes, strict=True) if size is None]
    fits = all(size is not None and n in (None, size) for size, n in zip(sizes, expected, strict=True))
    fault = None
    if expected[number] is not None and sizes[number] != expected[number]:
        fault = Fault("part", f"has {sizes[number]} bytes, not {expected[number]}")
    elif missing and next(i for i, size in enumerate(sizes) if size is not None) == number:
        fault = Fault("part", f"the part {missing[0]!r} is missing, but other parts exist")
    return fault, fits


def _cut(places: Iterable[Place], start: int, stop: int) -> list[Place]:
    """Reduce the byte ranges that store a value to those that store its bytes from `start` to `stop`."""
    cut, position = [], 0
    for key, low, high in places:
        first, last = max(start - position, 0), min(stop - position, high - low)
        if first < last:
            cut.append((key, low + first, low + last))
        position += high - low
    return cut
