"""Chunks in parts: the store of the `concat-parts` transformer.

Rules
- A value that does not fit the parts is refused before anything is stored. The part without a size is written first and
  the others in order, so that an index comes last. Where a chunk is replaced, that last one is emptied first: an
  interrupted replacement is an error, never wrong data.
- Chunk keys are listed, part keys never. Every key that is not a chunk's passes through.

Reading is in parts_source.py.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from zarrlite.buffers.pieces import Patch, Value, overlapping, size_of, split
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import Source, read_current
from zarrlite.errors import ArgumentError
from zarrlite.storage_transformers.base import ArrayInStore
from zarrlite.storage_transformers.parts_source import ChunkInParts, Part, Parts, read_chunks
from zarrlite.stores.base import (
    Buffers,
    Change,
    InPlace,
    Listing,
    Request,
    Store,
    WrongSizeError,
    overwrite,
    set_under_lock,
)

_MAX_SEEN = 1024  # chunk keys to remember


class PartsStore(Store):
    """A store whose chunks are in parts in the next one."""

    def __init__(self, store: Store, parts: Sequence[Part], array: ArrayInStore) -> None:
        self.store = store
        self.parts = Parts(parts)
        self.read_only, self.limits = store.read_only, store.limits
        self._decode = array.chunk_key_encoding.decode
        self._ndim = len(array.shape)
        self._seen: set[str] = set()  # chunk keys: one that was used is likely to be used again
        self._by_key: bool = getattr(store.source("zarr.json"), "by_key", False)

    def __repr__(self) -> str:
        return f"PartsStore({self.store!r}, {len(self.parts.all)} parts)"

    def is_chunk(self, key: str) -> bool:
        """Whether a key is that of a chunk."""
        if key in self._seen:
            return True
        if self._decode(key, self._ndim) is None:
            return False
        if len(self._seen) >= _MAX_SEEN:
            self._seen = set()
        self._seen.add(key)
        return True

    def keys_of(self, key: str) -> list[str]:
        """Return the keys of the parts of a chunk."""
        return [key + part.key_suffix for part in self.parts.all]

    # Reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        if not self.is_chunk(key):
            return self.store.get(key, byte_range)
        source = self._chunk(key)
        return read_current((source,), lambda: source.read_one(byte_range))

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        if not all(self.is_chunk(request[0]) for request in requests):
            runs = itertools.groupby(requests, key=lambda request: request[0])
            return [value for key, run in runs for value in self._store_of(key).get_partial_values([*run])]
        sources = {request[0]: self._chunk(request[0]) for request in requests}
        return read_current(sources.values(), lambda: self._read(sources, requests, memory))

    def _store_of(self, key: str) -> Store:
        return self if self.is_chunk(key) else self.store

    def _read(
        self, sources: dict[str, ChunkInParts], requests: Sequence[Request], memory: memoryview | None
    ) -> Buffers:
        """Read ranges of chunks, each of which must have the size that its request names."""
        if len(requests) == 1 and not self._by_key:
            found: Any = sources[requests[0][0]].read((requests[0][1],), memory) or [None]
        else:
            planned: Any = [(sources[key], r, *size, None)[:3] for key, r, *size in requests]
            found = read_chunks([(source, r, source.plan_alone(r, size)) for source, r, size in planned])
        for request in requests:
            size = sources[request[0]].known_size() if len(request) > 2 and request[2] is not None else None
            if size not in (None, request[-1]):
                raise WrongSizeError(size or 0, request[2] or 0)  # type: ignore[misc]
        return [*found]

    def size(self, key: str) -> int | None:
        if not self.is_chunk(key):
            return self.store.size(key)
        source = self._chunk(key)
        return read_current((source,), source.size)

    def source(self, key: str) -> Source:
        return self._chunk(key) if self.is_chunk(key) else self.store.source(key)

    def _chunk(self, key: str) -> ChunkInParts:
        return ChunkInParts(self.store, key, self.parts, self._by_key)

    # Writing

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        if new and not self.is_chunk(key):
            return self.store.set(key, value, new)
        if new:
            return set_under_lock(self, key, value)
        self.change([(key, value)])
        return True

    def erase(self, key: str) -> None:
        self.change([(key, None)])

    def change(self, changes: Iterable[tuple[str, Change]]) -> None:
        for key, change in changes:
            if not self.is_chunk(key):
                self.store.change([(key, change)])
            elif callable(change):
                with self.lock(key):
                    source = self.source(key)
                    try:
                        new = change(source)
                    finally:
                        source.close()
                    self._write(key, new)
            else:
                self._write(key, change)

    def _write(self, key: str, new: Value | InPlace | None) -> None:
        if isinstance(new, InPlace):
            self._overwrite(key, new.patches)
        elif new is None:
            with self.lock(key):
                self.store.erase_values(self.keys_of(key))
        else:
            self._set(key, new)

    def _set(self, key: str, value: Value) -> None:
        values = split(value, self._sizes_of(key, size_of(value)))
        in_order = sorted(zip(self.parts.all, values, strict=True), key=lambda item: item[0].size is not None)
        parts: list[tuple[str, Change]] = [(key + part.key_suffix, pieces) for part, pieces in in_order]
        last, pieces = parts[-1]
        with self.lock(key):
            if len(parts) > 1 and size_of(pieces) and self.store.size(last) is not None:  # type: ignore[arg-type]
                # until it is stored again it has a wrong size: a new part beside an old one is never taken for data
                parts.insert(0, (last, b""))
            self.store.change(parts)

    def _overwrite(self, key: str, patches: Sequence[Patch]) -> None:
        """Overwrite parts of a chunk in place, except for objects that are replaced whole, which are stored whole."""
        with contextlib.closing(self._chunk(key)) as source:
            sizes = source.sizes()
            if not sizes or min([start for start, _ in patches], default=0) < 0:
                self._set(key, overwrite(source.read_one(), patches))
                return
            patches, sizes = self._grown(key, source, sizes, patches)
        order = sorted(range(len(sizes)), key=lambda i: self.parts.all[i].size is not None)
        starts = list(itertools.accumulate(sizes, initial=0))
        undo: list[tuple[str, int, Buffer]] = []
        try:
            for i in order:
                part, here = key + self.parts.all[i].key_suffix, overlapping(patches, starts[i], starts[i + 1])
                ranges: list[Request] = [(part, ByteRange(start, start + len(value))) for start, value in here]
                if i != order[-1]:
                    found = self.store.get_partial_values(ranges)
                    undo += [(part, r[1].start, old) for r, old in zip(ranges, found, strict=True) if old]
                self._overwrite_part(part, sizes[i], here)
        except BaseException:
            with contextlib.suppress(Exception):  # the original error is raised; what can be restored is
                self.store.set_partial_values(undo)
            raise

    def _grown(
        self, key: str, source: Source, sizes: list[int], patches: Sequence[Patch]
    ) -> tuple[Sequence[Patch], list[int]]:
        """Return patches and sizes for a chunk that grows: everything after the part without a size moves."""
        old = sum(sizes)
        new = max([old, *(start + len(value) for start, value in patches)])
        if new == old:
            return patches, sizes
        growing = self.parts.main
        if growing is None:
            self._sizes_of(key, new)  # raises the reason
            return patches, sizes
        end = old - sum(sizes[growing + 1 :])  # the end of the part that grows
        tail = overwrite(source.read_one(ByteRange(end, old)), overlapping(patches, end, new))
        grown = [size + new - old if i == growing else size for i, size in enumerate(sizes)]
        return [*overlapping(patches, 0, end), (end, tail)], grown

    def _overwrite_part(self, key: str, size: int, patches: Sequence[Patch]) -> None:
        if any(start == 0 and len(value) == size for start, value in patches):
            self.store.set(key, overwrite(None, patches))
        elif patches:
            self.store.set_partial_values((key, start, value) for start, value in patches)

    def _sizes_of(self, key: str, size: int) -> list[int]:
        """Return the sizes of the parts of a value of `size` bytes; raises ArgumentError if they do not fit."""
        sized = sum(part.size or 0 for part in self.parts.all)
        unsized = [part.key_suffix for part in self.parts.all if part.size is None]
        if len(unsized) > 1:
            names = " and ".join(map(repr, unsized))
            raise ArgumentError(f"cannot be written: only one part may omit size, but {names} do", key=key)
        rest = size - sized
        if rest < 0 or (rest and not unsized):
            need = f"at least {sized}" if unsized else str(sized)
            raise ArgumentError(f"a value of {size} bytes does not fit parts of {need} bytes", key=key)
        return [rest if part.size is None else part.size for part in self.parts.all]

    def lock(self, key: str) -> contextlib.AbstractContextManager[Any]:
        """Lock a chunk by its first part: writers of any of them hold that."""
        return self.store.lock(self.keys_of(key)[0] if self.is_chunk(key) else key)

    # listing

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return self._above(self.store.list_prefix(prefix), prefix)

    def list_dir(self, prefix: str) -> Listing:
        if any("/" in part.key_suffix for part in self.parts.all):
            return super().list_dir(prefix)
        keys, prefixes = self.store.list_dir(prefix)
        return sorted(self._above(keys, prefix)), prefixes

    def _above(self, keys: Iterable[str], prefix: str) -> Iterator[str]:
        """Yield the keys that are visible here: that of a chunk, once, for those of its parts."""
        seen: set[str] = set()
        for key in keys:
            chunk = self.chunk_of(key)
            if chunk is None:
                if not self.is_chunk(key):
                    yield key
            elif chunk not in seen and chunk.startswith(prefix):
                seen.add(chunk)
                yield chunk

    def chunk_of(self, key: str) -> str | None:
        """Return the chunk that a stored key is a part of. Returns None if it is not a part."""
        for part in self.parts.all:
            chunk = key[: len(key) - len(part.key_suffix)]
            if key.endswith(part.key_suffix) and self.is_chunk(chunk):
                return chunk
        return None
