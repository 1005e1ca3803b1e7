"""The store of the `sharding` transformer of 2022, in which chunks are stored in shards.

Rules (draft "Sharding storage transformer", version 1.0)
- "The new shard-key is the chunk key divided by chunks_per_shard and floored", in the array's own chunk key encoding.
- The format is that in shards/: the index is at the end, with 16 bytes per chunk, little endian, without a checksum.
  The draft gives `16 * 64` as 1014; the correct product is 1024.
- If both fields of an entry are 2^64 - 1, the chunk is absent; two sentences in the draft say the opposite.
- A read makes two rounds of requests to the next store: first for the indices, then for the chunks. A shard is erased
  when its last chunk is erased.

Arrays read and write these shards with the codec `sharding_indexed` (`Sharding.fold`). For all other uses, this store
is the interface that the draft describes.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrlite.buffers.pieces import Value, join
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source, read_current
from zarrlite.extensions.registry import codecs, data_types
from zarrlite.pipeline.codec import ArraySpec, ChunkOptions
from zarrlite.pipeline.decoding import Limit
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.pipeline.reading import FailedPart, Reading, read_from_sources
from zarrlite.selections.selection import Shape
from zarrlite.shards.format import ABSENT, Entry, ShardFormat, ShardIndex, coalesce, cut, row_major
from zarrlite.shards.reading import InnerChunk, within_shards
from zarrlite.shards.writing import ShardWriter, Writing
from zarrlite.storage_transformers.base import ArrayInStore
from zarrlite.stores.base import (
    Buffers,
    Change,
    InPlace,
    Request,
    Store,
    StoredValue,
    WrongSizeError,
    check_prefix,
    overwrite,
    set_under_lock,
)

INDEX_CODECS = ({"name": "bytes", "configuration": {"endian": "little"}},)
Place = tuple[str, int]  # the key of a shard, and the number of a chunk in it


def shard_format(per_shard: Shape) -> ShardFormat:
    """Return the format of shards with this number of chunks along each dimension."""
    # draft sharding, Binary shard format: "little-endian uint64 per chunk"
    spec = ArraySpec((*per_shard, 2), data_types.coerce("uint64"), ABSENT, ChunkOptions(write_empty=True))
    index = Pipeline([codecs.coerce(codec) for codec in INDEX_CODECS], spec)
    # here, a chunk may have any size, because only the codecs of the array know the maximum
    # draft sharding, Binary shard format: "The index is placed at the end of the file"
    return ShardFormat(per_shard, index, "end", Limit(0, per_byte=1))


class ShardsStore(Store):
    """A store that keeps its chunks in shards in the next store."""

    def __init__(self, store: Store, per_shard: Shape, writing: Writing, array: ArrayInStore) -> None:
        self.store = store
        self.read_only, self.limits = store.read_only, store.limits
        self.per_shard = per_shard
        self.encoding = array.chunk_key_encoding
        self.format = shard_format(per_shard)
        self.writer = ShardWriter(self.format, writing)

    def __repr__(self) -> str:
        return f"ShardsStore({self.store!r}, {self.per_shard})"

    def place_of(self, key: str) -> Place | None:
        """Return the key of a chunk's shard, and the number of the chunk in it. Returns None for other keys."""
        coords = self.encoding.decode(key, len(self.per_shard))
        if coords is None:
            return None  # draft sharding, Key & value transformation: "All other entries are simply passed on."
        # draft sharding, Key & value transformation: "divided by chunks_per_shard and floored per dimension"
        shard = tuple(c // n for c, n in zip(coords, self.per_shard, strict=True))
        inside = (c % n for c, n in zip(coords, self.per_shard, strict=True))
        # draft sharding, Key & value transformation: "honoring the original chunk separator"
        return self.encoding.encode(shard), row_major(inside, self.per_shard)

    def _chunk_keys(self, shard: tuple[int, ...]) -> Iterator[str]:
        """Yield the keys of all chunks of a shard, in the order of its index."""
        origin = [s * n for s, n in zip(shard, self.per_shard, strict=True)]
        for inside in itertools.product(*map(range, self.per_shard)):
            yield self.encoding.encode(tuple(o + i for o, i in zip(origin, inside, strict=True)))

    # Reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        places = [self.place_of(request[0]) for request in requests]
        keys = [place[0] if place else request[0] for place, request in zip(places, requests, strict=True)]
        sources = {key: self.store.source(key) for key in dict.fromkeys(keys)}
        try:
            return read_current(sources.values(), read_from_sources, self._read, sources, requests, places)
        except FailedPart as failed:
            raise failed.error from failed.error.__cause__

    def _read(
        self, sources: dict[str, Source], requests: Sequence[Request], places: Sequence[Place | None]
    ) -> Reading[Buffers]:
        """Read parts of values in two rounds of requests: first the shard indices, then the chunks and other values."""
        shards = {place[0]: sources[place[0]] for place in places if place is not None}
        # draft sharding, API implementation: "should be implemented using two get_partial_values operations"
        answers = (yield [(s, self.format.index_range, None) for s in shards.values()], None) if shards else ()
        indices = dict(zip(shards, map(self._parse_index, answers, shards.values()), strict=True))
        chunks: dict[int, Any] = {}  # requests for chunks that are present, by index in `requests`
        others: dict[int, Any] = {}
        for i, (place, (key, byte_range, *size)) in enumerate(zip(places, requests, strict=True)):
            if place is None:
                others[i] = (sources[key], byte_range, *(size or [None]))
            elif (index := indices[place[0]]) is not None and (entry := index.entry(place[1])) is not None:
                if size and size[0] not in (None, entry[1]):
                    raise WrongSizeError(entry[1], size[0])
                chunks[i] = (InnerChunk(shards[place[0]], *entry), byte_range, None)
        found: Buffers = [None] * len(requests)
        values = yield from _read_with(others.values(), within_shards(_one_round([*chunks.values()]), self.limits))
        for i, value in zip((*others, *chunks), values, strict=True):
            found[i] = value  # None if the shard was erased after its index was read
        return found

    def _parse_index(self, data: Buffer | None, source: Source) -> ShardIndex | None:
        return None if data is None else self.format.parse_index(bytes(data), source.known_size())

    def read_index(self, source: Source) -> ShardIndex | None:
        """Read the index of a shard. Returns None if the shard is missing."""
        return self._parse_index(source.read_one(self.format.index_range), source)

    def size(self, key: str) -> int | None:
        place = self.place_of(key)
        if place is None:
            return self.store.size(key)
        with contextlib.closing(self.store.source(place[0])) as source:
            index = self.read_index(source)
        entry = None if index is None else index.entry(place[1])
        return None if entry is None else entry[1]

    def source(self, key: str) -> Source:
        place = self.place_of(key)
        source = self.store.source(key if place is None else place[0])
        if getattr(source, "by_key", False):
            return StoredValue(self, key)  # read in one batch with other values from this store
        return source if place is None else ChunkInShard(self, source, place[1])

    # Writing

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        if self.place_of(key) is None:
            return self.store.set(key, value, new)
        if new:
            return set_under_lock(self, key, value)
        self.change([(key, value)])
        return True

    def erase(self, key: str) -> None:
        self.change([(key, None)])

    def change(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Change consecutive chunks shard by shard. Changes of other keys are passed on to the next store, in order."""
        by_shard: dict[str, dict[int, Change]] = {}
        for key, change in changes:
            place = self.place_of(key)
            if place is None or place[1] in by_shard.get(place[0], ()):
                self._store_shards(by_shard)
                by_shard = {}
            if place is None:
                self.store.change([(key, change)])
            elif callable(change) or change is None:
                by_shard.setdefault(place[0], {})[place[1]] = change
            else:
                by_shard.setdefault(place[0], {})[place[1]] = bytes(join(change))
        self._store_shards(by_shard)

    def _store_shards(self, by_shard: dict[str, dict[int, Change]]) -> None:
        if by_shard:
            self.store.change([(shard, self._change(chunks)) for shard, chunks in by_shard.items()])

    def _change(self, changes: dict[int, Change]) -> Change:
        """Return the new shard or, if the old one is needed for it, a function that computes it from the old one."""
        complete = len(changes) == self.format.count and not any(map(callable, changes.values()))
        # draft sharding, API implementation: "In this case, a shard can be constructed according to"
        if complete and not self.writer.needs_old and not self.writer.patches:
            return self._merge(None, changes)

        def change(source: Source) -> Value | InPlace | None:
            patches = self._patch(source, changes) if self.writer.patches else None
            return self._merge(source.read_one(), changes) if patches is None else InPlace(patches)

        return change

    def _patch(self, source: Source, changes: dict[int, Change]) -> Any:
        """Return the patches that change a shard. Returns None if the shard must be rewritten."""
        index = self.writer.read_index(source)
        if index is None:
            return None
        entries: dict[int, Entry] = {}
        for n, change in changes.items():
            if callable(change) and (entry := index.entry(n)) is not None:
                entries[n] = entry
        ranges, places = coalesce([*entries.values()], self.limits)
        old = (
            dict(zip(entries, cut([*entries.values()], places, source.read(ranges) or []), strict=True))
            if entries
            else {}
        )
        values = {n: _apply(change, old.get(n)) for n, change in changes.items()}
        return self.writer.patch(source, index, values)

    def _merge(self, old: Buffer | None, changes: dict[int, Change]) -> Value | None:
        """Return a shard with some of its chunks replaced; the others are copied without being decoded."""
        chunks = self.writer.chunks(old)
        for n, change in changes.items():
            chunks[n] = _apply(change, chunks[n])
        # draft sharding, API implementation: "check if all available chunks in a shard are referenced"
        is_empty = all(chunk is None for chunk in chunks)
        # an update cannot erase a shard that other machines may change at the same time
        return None if is_empty and not (self.limits.shared and old is not None) else self.writer.join(chunks, old)

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Lock the shard of a chunk, so that writers of different chunks in a shard exclude each other."""
        place = self.place_of(key)
        return self.store.lock(key if place is None else place[0])

    # listing

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        # all shards are listed, because a prefix of chunk keys implies little about the keys of their shards
        for key in self.store.list_prefix(""):
            shard = self.encoding.decode(key, len(self.per_shard))
            if shard is not None:
                # draft sharding, API implementation: chunks "are then listed by their original key"
                yield from self._list_shard(key, shard, prefix)
            elif key.startswith(prefix):
                yield key

    def _list_shard(self, key: str, shard: tuple[int, ...], prefix: str) -> Iterator[str]:
        """Yield those keys of the chunks in a shard that begin with `prefix`."""
        if (self.store.size(key) or 0) < self.format.index_size:
            self.format.parse_index(self.store.get(key) or b"")  # raises the error that explains why
        chunks = [(n, chunk) for n, chunk in enumerate(self._chunk_keys(shard)) if chunk.startswith(prefix)]
        if chunks:
            with contextlib.closing(self.store.source(key)) as source:
                index = self.read_index(source)
            yield from (chunk for n, chunk in chunks if index is not None and index.entry(n) is not None)


class ChunkInShard(Source):
    """A chunk in an open shard. All reads see the same version of the shard."""

    def __init__(self, store: ShardsStore, shard: Source, number: int) -> None:
        self._store = store
        self._shard = shard
        self._number = number
        self._index: ShardIndex | None = None  # read on first use; also None if the shard is missing

    def _entry(self) -> Entry | None:
        if self._index is None:
            self._index = self._store.read_index(self._shard)
        return None if self._index is None else self._index.entry(self._number)

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        entry = self._entry()
        if entry is None:
            return None
        offset, length = entry
        bounds = [byte_range.resolve(length) for byte_range in ranges]
        return self._shard.read([ByteRange(offset + low, offset + high) for low, high in bounds], memory)

    def size(self) -> int | None:
        entry = self._entry()
        return None if entry is None else entry[1]

    known_size = size

    def is_current(self) -> bool:
        return self._shard.is_current()

    def close(self) -> None:
        self._index = None
        self._shard.close()


def _one_round(requests: list[Any]) -> Reading[Sequence[Buffer | None]]:
    return (yield requests, None) if requests else ()


def _read_with(others: Iterable[Any], reading: Reading[Sequence[Buffer | None]]) -> Reading[Buffers]:
    """Run the generator `reading` (see pipeline/reading.py), and add other requests to its only round of requests.

    Returns the answers to the other requests first.
    """
    others = [*others]
    try:
        requests, memory = next(reading)
    except StopIteration:
        return [*(yield others, None)] if others else []
    answers = yield [*requests, *others], memory
    try:
        reading.send(answers[: len(requests)])
    except StopIteration as done:
        return [*answers[len(requests) :], *done.value]
    raise RuntimeError("a read that needs one round of requests began a second one")


def _apply(change: Change, old: Buffer | None) -> Buffer | None:
    """Return the new value of a chunk."""
    new = change(InMemory(old)) if callable(change) else change
    if isinstance(new, InPlace):
        return overwrite(old, new.patches)
    return join(new)
