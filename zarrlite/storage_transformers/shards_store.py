"""Chunks that lie in shards: the store of the `sharding` transformer of 2022.

Rules (draft "Sharding storage transformer", version 1.0)
- "The new shard-key is the chunk key divided by chunks_per_shard and floored", in the array's own encoding.
- The format is that of shards.py: the index at the end, 16 bytes for each chunk, little endian, without a checksum. The
  draft computes `16 * 64` as 1014; it is 1024.
- An entry of which both fields are 2^64 - 1 means an absent chunk; two sentences of the draft say the opposite.
- Reads are two batched requests below: indices, then chunks. A shard whose last chunk is erased is erased.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange, joined
from zarrlite.buffers.source import ByteSource, Limit
from zarrlite.extensions.registry import codecs, data_types
from zarrlite.pipeline.codec import ArraySpec, Piece
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.shards.format import ABSENT, ChunkInShard, Entry, ShardFormat, ShardIndex, coalesce, cut, row_major
from zarrlite.shards.writing import ShardWriter, Writing
from zarrlite.stores.base import Change, Store, Update, check_prefix

if TYPE_CHECKING:
    from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.selections.selection import Shape

INDEX_CODECS = ({"name": "bytes", "configuration": {"endian": "little"}},)
Place = tuple[str, int]  # the key of a shard, and the number of a chunk in it


class ShardsStore(Store):
    """A store whose chunks lie in the shards of the next one."""

    def __init__(self, store: Store, per_shard: Shape, writing: Writing, metadata: ArrayMetadata) -> None:
        self.store = store
        self.read_only = store.read_only
        self.per_shard = per_shard
        self.encoding = metadata.chunk_key_encoding
        spec = ArraySpec((*self.per_shard, 2), data_types.coerce("uint64"), ABSENT, write_empty=True)
        index = Pipeline([codecs.coerce(codec) for codec in INDEX_CODECS], spec)
        # any value can be a chunk here; how long one may be is known to the codecs above
        self.format = ShardFormat(self.per_shard, index, "end", Limit(0, per_byte=1))
        self.writer = ShardWriter(self.format, writing)

    def __repr__(self) -> str:
        return f"ShardsStore({self.store!r}, {self.per_shard})"

    def _place(self, key: str) -> Place | None:
        """Where a chunk lies; None: the key is not a chunk's."""
        coords = self.encoding.decode(key, len(self.per_shard))
        if coords is None:
            return None
        shard = tuple(c // n for c, n in zip(coords, self.per_shard, strict=True))
        inside = (c % n for c, n in zip(coords, self.per_shard, strict=True))
        return self.encoding.encode(shard), row_major(inside, self.per_shard)

    def _chunk_keys(self, shard: tuple[int, ...]) -> Iterator[str]:
        """The keys of all chunks of a shard, in the order of its index."""
        origin = [s * n for s, n in zip(shard, self.per_shard, strict=True)]
        for inside in itertools.product(*map(range, self.per_shard)):
            yield self.encoding.encode(tuple(o + i for o, i in zip(origin, inside, strict=True)))

    # reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, key_ranges: Sequence[tuple[str, ByteRange]]) -> list[Buffer | None]:
        found: list[Buffer | None] = [None] * len(key_ranges)
        others: list[int] = []
        wanted: dict[str, list[tuple[int, int]]] = {}  # of each shard: which answer is which of its chunks
        for i, (key, _) in enumerate(key_ranges):
            place = self._place(key)
            if place is None:
                others.append(i)
            else:
                wanted.setdefault(place[0], []).append((i, place[1]))
        with self._reading([] if others else list(wanted)) as below:
            indices = below.indices(list(wanted))
            parts = {shard: self._parts(indices[shard], chunks, key_ranges) for shard, chunks in wanted.items()}
            plans = {shard: coalesce(list(entries.values())) for shard, entries in parts.items()}
            requests = [(shard, byte_range) for shard, (ranges, _) in plans.items() for byte_range in ranges]
            values = iter(below.read(requests + [key_ranges[i] for i in others]))
        for shard, (ranges, places) in plans.items():
            held = [next(values) or b"" for _ in ranges]  # what has gone meanwhile is short, and an error
            entries = parts[shard]
            for i, chunk in zip(entries, cut(list(entries.values()), places, held), strict=True):
                found[i] = chunk
        for i, value in zip(others, values, strict=True):
            found[i] = value
        return found

    @staticmethod
    def _parts(
        index: ShardIndex | None, chunks: Sequence[tuple[int, int]], key_ranges: Sequence[tuple[str, ByteRange]]
    ) -> dict[int, Entry]:
        """For each answer that there is one, where in the shard it lies."""
        parts: dict[int, Entry] = {}
        for i, number in chunks:
            entry = None if index is None else index.entry(number)
            if entry is not None:
                # a range of the chunk never leaves the chunk, whatever lies behind it in the shard
                start, stop = key_ranges[i][1].resolve(entry[1])
                parts[i] = entry[0] + start, stop - start
        return parts

    @contextlib.contextmanager
    def _reading(self, shards: Sequence[str]) -> Iterator[_Below]:
        """The store below, for several requests; all of them see one state of a shard, if it is a single one."""
        source = self.store.source(shards[0]) if len(shards) == 1 else None
        try:
            yield _Below(self.store, self.format, source)
        finally:
            if source is not None:
                source.close()

    def source(self, key: str) -> ByteSource:
        place = self._place(key)
        return (
            self.store.source(key)
            if place is None
            else ChunkInShard(self.store.source(place[0]), self.format, place[1])
        )

    def size(self, key: str) -> int | None:
        with contextlib.closing(self.source(key)) as source:
            return source.size()

    # writing

    def set(self, key: str, value: Buffer) -> None:
        self.update_many([(key, value)])

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        self.update_many(items)

    def erase(self, key: str) -> None:
        self.update_many([(key, None)])

    def erase_values(self, keys: Iterable[str]) -> None:
        self.update_many((key, None) for key in keys)

    def update(self, key: str, fn: Update) -> None:
        self.update_many([(key, fn)])

    def update_many(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Change chunks shard by shard; other keys are passed on."""
        by_shard: dict[str, dict[int, Change]] = {}
        for key, change in _once(changes):
            place = self._place(key)
            if place is None:
                self.store.update_many([(key, change)])
            else:
                by_shard.setdefault(place[0], {})[place[1]] = (
                    change if callable(change) or change is None else bytes(joined(change))
                )
        if self.writer.patches:
            for shard, of_shard in by_shard.items():
                self._change(shard, of_shard)
        else:
            self.store.update_many([(shard, self._rewrite(of_shard)) for shard, of_shard in by_shard.items()])

    def _change(self, shard: str, changes: dict[int, Change]) -> None:
        """Change chunks of a shard where it lies, if that is possible, else by a new one."""
        if not self.store.patch(shard, lambda source: self._patch(source, changes)):
            self.store.update_many([(shard, self._rewrite(changes))])

    def _rewrite(self, changes: dict[int, Change]) -> Change:
        """A new shard, or what makes one of the old, if anything of that is needed."""
        whole = len(changes) == self.format.count and not any(map(callable, changes.values()))
        if whole and not self.writer.needs_old:
            return self._merge(None, changes)
        return lambda old: self._merge(old, changes)

    def _patch(self, source: ByteSource, changes: dict[int, Change]) -> list[Piece] | None:
        """What to overwrite in a shard; None: write it anew."""
        index = self.writer.read_index(source)
        if index is None:
            return None
        entries = {n: e for n, change in changes.items() if callable(change) and (e := index.entry(n)) is not None}
        chunks = self.format.read_chunks(source, list(entries.values())) or ()
        old = dict(zip(entries, chunks, strict=True))
        values = {n: joined(change(old.get(n)) if callable(change) else change) for n, change in changes.items()}
        return self.writer.patch(source, index, values)

    def _merge(self, old: Buffer | None, changes: dict[int, Change]) -> Buffer | None:
        """A shard with some of its chunks replaced; the others are copied as bytes."""
        chunks = self.writer.chunks(old)
        for n, change in changes.items():
            chunks[n] = joined(change(chunks[n]) if callable(change) else change)
        return None if all(chunk is None for chunk in chunks) else self.writer.join(chunks, old)

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """A chunk is locked by its shard: writers of two chunks of one shard exclude each other."""
        place = self._place(key)
        return self.store.lock(key if place is None else place[0])

    # listing

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        for key in self.store.list_prefix(""):  # a prefix of chunk keys says little about the keys of their shards
            shard = self.encoding.decode(key, len(self.per_shard))
            if shard is not None:
                yield from self._list_shard(key, shard, prefix)
            elif key.startswith(prefix):
                yield key

    def _list_shard(self, key: str, shard: tuple[int, ...], prefix: str) -> Iterator[str]:
        """The keys of the chunks that a shard has, of those that begin with a prefix."""
        if (self.store.size(key) or 0) < self.format.index_size:
            self.format.parse_index(self.store.get(key) or b"")  # which says so
        wanted = [(n, chunk) for n, chunk in enumerate(self._chunk_keys(shard)) if chunk.startswith(prefix)]
        if wanted:
            with self._reading([key]) as below:
                index = below.indices([key])[key]
            yield from (chunk for n, chunk in wanted if index is not None and index.entry(n) is not None)


class _Below:
    """The shards of a store: many by batched requests, or one from its source."""

    def __init__(self, store: Store, form: ShardFormat, source: ByteSource | None) -> None:
        self.store = store
        self.format = form
        self.source = source

    def read(self, requests: Sequence[tuple[str, ByteRange]]) -> Sequence[Buffer | None]:
        if not requests:
            return []
        if self.source is None:
            return self.store.get_partial_values(requests)
        return self.source.read([byte_range for _, byte_range in requests]) or [None] * len(requests)

    def indices(self, shards: Sequence[str]) -> dict[str, ShardIndex | None]:
        """By one request; None: there is no such shard."""
        found = self.read([(shard, self.format.index_range) for shard in shards])
        size = None if self.source is None else self.source.known_size()
        return {
            shard: None if data is None else self.format.parse_index(data, size)
            for shard, data in zip(shards, found, strict=True)
        }


def _once(changes: Iterable[tuple[str, Change]]) -> Iterator[tuple[str, Change]]:
    """The same changes, one for each key."""
    found: dict[str, Change] = {}
    for key, change in changes:
        found[key] = _after(found[key], change) if key in found and callable(change) else change
    yield from found.items()


def _after(first: Change, then: Update) -> Update:
    return lambda old: then(joined(first(old) if callable(first) else first))
