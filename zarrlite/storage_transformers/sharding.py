"""The `sharding` storage transformer of 2022: several chunks in one object, which the array above does not see.

Rules (draft "Sharding storage transformer", version 1.0)
- "The new shard-key is the chunk key divided by chunks_per_shard and floored", in the array's own encoding.
- The format is that of shards.py: the index at the end, 16 bytes for each chunk, little endian, without a checksum. The
  draft computes `16 * 64` as 1014; it is 1024.
- An entry of which both fields are 2^64 - 1 means an absent chunk; two sentences of the draft say the opposite.
- The draft acts on keys under `data/root`, which Zarr has no more: here it acts on the chunk keys of the array.
- Reads are two batched requests below: indices, then chunks. A shard whose last chunk is erased is erased.
- Written as `{"name": "sharding", "configuration": {"type": "indexed", "chunks_per_shard": [...]}}`; its URI as a name,
  the draft's own object, and no `type` are read as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from zarrlite.codecs.base import ArraySpec
from zarrlite.config import Config, Json
from zarrlite.errors import MetadataError, ShardError
from zarrlite.pipeline import Pipeline
from zarrlite.ranges import ALL, Buffer, ByteRange
from zarrlite.registry import codecs, data_types, register
from zarrlite.shards import ABSENT, Entry, ShardFormat, row_major
from zarrlite.source import Limit
from zarrlite.storage_transformers.base import StorageTransformer
from zarrlite.stores.base import Store, check_prefix

if TYPE_CHECKING:
    from zarrlite.metadata import ArrayMetadata

_URIS = (
    "https://purl.org/zarr/spec/storage_transformers/sharding/1.0",
    "http://purl.org/zarr/spec/storage-transformers/sharding/1.0",
)
_INDEX_CODECS = ({"name": "bytes", "configuration": {"endian": "little"}},)
Place = tuple[str, int]  # the key of a shard, and the number of a chunk in it


@register
@dataclass(frozen=True)
class Sharding(StorageTransformer):
    """Chunks in shards."""

    name = "sharding"
    aliases = _URIS
    chunks_per_shard: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "chunks_per_shard", tuple(self.chunks_per_shard))

    @classmethod
    def foreign(cls, value: dict[str, Json]) -> dict[str, Json] | None:
        """The draft's own object has `extension` for `name`, and `type` beside `configuration`."""
        if value.get("extension") not in _URIS:
            return None
        rest = {k: v for k, v in value.items() if k not in ("extension", "type", "configuration")}
        configuration = value.get("configuration", {})
        if isinstance(configuration, dict) and "type" in value:
            configuration = {**configuration, "type": value["type"]}
        return {**rest, "name": cls.name, "configuration": configuration}

    @classmethod
    def from_config(cls, config: Config) -> Self:
        config.string("type", ("indexed",), default="indexed")
        return cls(config.integers("chunks_per_shard", 1))

    def to_config(self) -> dict[str, Json]:
        return {"type": "indexed", "chunks_per_shard": list(self.chunks_per_shard)}

    def check(self, metadata: ArrayMetadata) -> None:
        if len(self.chunks_per_shard) != len(metadata.shape):
            message = f"must have {len(metadata.shape)} items, as shape has, not {len(self.chunks_per_shard)}"
            raise MetadataError(message, pointer="/configuration/chunks_per_shard", kind="conflict")

    def wrap(self, store: Store, metadata: ArrayMetadata) -> Store:
        return ShardsStore(store, self.chunks_per_shard, metadata)


class ShardsStore(Store):
    """A store whose chunks lie in the shards of the next one."""

    def __init__(self, store: Store, chunks_per_shard: tuple[int, ...], metadata: ArrayMetadata) -> None:
        self.store = store
        self.read_only = store.read_only
        self.per_shard = chunks_per_shard
        self.encoding = metadata.chunk_key_encoding
        spec = ArraySpec((*chunks_per_shard, 2), data_types.coerce("uint64"), ABSENT, write_empty=True)
        index = Pipeline([codecs.coerce(codec) for codec in _INDEX_CODECS], spec)
        # any value can be a chunk here; how long one may be is known to the codecs above
        self.format = ShardFormat(math.prod(chunks_per_shard), index, "end", Limit(0, per_byte=1))

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

    def _chunk_keys(self, shard_key: str) -> list[str] | None:
        """The keys of all chunks of a shard, in the order of its index; None: the key is not a shard's."""
        shard = self.encoding.decode(shard_key, len(self.per_shard))
        if shard is None:
            return None
        origin = [s * n for s, n in zip(shard, self.per_shard, strict=True)]
        inside = np.ndindex(*self.per_shard)
        return [self.encoding.encode(tuple(o + i for o, i in zip(origin, chunk, strict=True))) for chunk in inside]

    # reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, key_ranges: Sequence[tuple[str, ByteRange]]) -> list[Buffer | None]:
        places = [self._place(key) for key, _ in key_ranges]
        entries = self._entries([place for place in places if place is not None])
        found: list[Buffer | None] = [None] * len(key_ranges)
        requests: list[tuple[str, ByteRange]] = []
        wanted: list[tuple[int, int]] = []  # which answer, and how many bytes it must have; -1: no matter
        for i, ((key, byte_range), place) in enumerate(zip(key_ranges, places, strict=True)):
            if place is None:
                requests.append((key, byte_range))
                wanted.append((i, -1))
            elif (entry := entries[place]) is not None:
                # a range of the chunk never leaves the chunk, whatever lies behind it in the shard
                start, stop = byte_range.resolve(entry[1])
                requests.append((place[0], ByteRange(entry[0] + start, entry[0] + stop)))
                wanted.append((i, stop - start))
        for (i, length), value in zip(wanted, self.store.get_partial_values(requests) if requests else [], strict=True):
            if length >= 0 and (value is None or len(value) != length):
                raise ShardError(f"an entry of the shard {requests[0][0]!r} leaves it")
            found[i] = value
        return found

    def _entries(self, places: Sequence[Place]) -> dict[Place, Entry | None]:
        """The index entries of these chunks, by one request for the indices of all their shards."""
        shards = list(dict.fromkeys(shard for shard, _ in places))
        found = self.store.get_partial_values([(shard, self.format.index_range) for shard in shards]) if shards else []
        indices = {
            s: None if data is None else self.format.parse_index(data) for s, data in zip(shards, found, strict=True)
        }
        return {(s, n): None if (index := indices[s]) is None else index.entry(n) for s, n in places}

    def size(self, key: str) -> int | None:
        place = self._place(key)
        if place is None:
            return self.store.size(key)
        entry = self._entries([place])[place]
        return None if entry is None else entry[1]

    # writing

    def set(self, key: str, value: Buffer) -> None:
        self.set_many([(key, value)])

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        self._change(items, self.store.set)

    def erase(self, key: str) -> None:
        self.erase_values([key])

    def erase_values(self, keys: Iterable[str]) -> None:
        self._change(((key, None) for key in keys), lambda key, _: self.store.erase(key))

    def _change(self, items: Iterable[tuple[str, Buffer | None]], other: Callable[[str, Any], None]) -> None:
        """Store or erase (None) chunks, shard by shard; other keys are passed on."""
        by_shard: dict[str, dict[int, Buffer | None]] = {}
        for key, value in items:
            place = self._place(key)
            if place is None:
                other(key, value)
            else:
                by_shard.setdefault(place[0], {})[place[1]] = None if value is None else bytes(value)
        for shard, changes in by_shard.items():
            self.store.update(shard, lambda old, changes=changes: self._merge(old, changes))  # type: ignore[misc]

    def _merge(self, old: Buffer | None, changes: dict[int, Buffer | None]) -> Buffer | None:
        """A shard with some of its chunks replaced; the others are copied as bytes."""
        whole = old is None or len(changes) == self.format.count
        chunks: list[Buffer | None] = [None] * self.format.count if whole or old is None else self.format.split(old)
        for n, value in changes.items():
            chunks[n] = value
        return self.format.join(chunks)

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
            chunks = self._chunk_keys(key)
            if chunks is None:
                if key.startswith(prefix):
                    yield key
                continue
            wanted = [(chunk, place) for chunk in chunks if chunk.startswith(prefix) and (place := self._place(chunk))]
            entries = self._entries([place for _, place in wanted])
            yield from (chunk for chunk, place in wanted if entries[place] is not None)
