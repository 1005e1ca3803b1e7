"""A read-through cache around another store.

Rules
- Chunks are cached, either whole or as ranges. Documents, absent values, sizes and listings are never cached, but
  always read from the store.
- A cached value is served without a request. Ranges of different versions of a value are never mixed: a fetched range
  is cached under the version that its source reports (an ETag), and a new version drops all ranges of that key. If the
  sources of the store report no version, only whole values are cached.
- A write goes to the store. Its key is dropped from the cache both before and after the write, so that a read that
  overlaps with the write caches nothing.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from zarrlite import threads
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import ReplacedError, Source, VersionedSource, read_current
from zarrlite.errors import ArgumentError
from zarrlite.stores.base import Buffers, Request, Store, WrongSizeError, check_key, place_of
from zarrlite.stores.range_cache import DirectoryCache, MemoryCache, RangeCache, Version, new_version, version_of
from zarrlite.stores.watched import WatchedStore

# matches metadata documents (zarr.json, .zarray, attributes.json, ...), and files of this library
_is_document = re.compile(r"(?:\A|/)(?:[^/]*\.json|\.z[^/]*|__zarrlite\.[^/]*)\Z").search


class CachedStore(WatchedStore):
    """A store that caches the chunks that are read from another store.

    Use it for a store that is slow to reach. Cached chunks are served without a request, so changes by other writers
    are not visible while the old values are cached.

    Parameters
    ----------
    store : Store
        The store to read from and to write to.
    cache : str, os.PathLike or None, optional
        A directory for the cache of this store only; several processes may share it. None keeps the cache in memory.
    max_bytes : int, optional
        The maximum size of the cache in bytes.

    Raises
    ------
    ArgumentError
        If `max_bytes` is not positive, or the directory contains values of another store.
    StoreError
        If the directory cannot be used.

    Examples
    --------
    >>> from zarrlite.stores import MemoryStore
    >>> store = CachedStore(MemoryStore({"a/c/0": b"0123"}), max_bytes=2**20)
    >>> bytes(store.get("a/c/0")), bytes(store.get("a/c/0", ByteRange(1, 3)))
    (b'0123', b'12')
    """

    def __init__(self, store: Store, cache: str | os.PathLike[str] | None = None, max_bytes: int = 2**30) -> None:
        if not isinstance(store, Store):
            raise ArgumentError(f"store must be a Store, not {type(store).__name__}")
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
            raise ArgumentError(f"max_bytes must be a positive integer, not {max_bytes!r}")
        super().__init__(store)
        self.cache = None if cache is None else os.path.abspath(os.fsdecode(cache))
        self.max_bytes = max_bytes
        self._cache: RangeCache = MemoryCache(max_bytes)
        if self.cache is not None:
            name = repr(store)
            self._cache = DirectoryCache(self.cache, max_bytes, None if " at 0x" in name else name)

    def __repr__(self) -> str:
        return f"CachedStore({self.store!r}, {self.cache!r}, {self.max_bytes})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CachedStore) and other.__reduce__() == self.__reduce__()

    def __hash__(self) -> int:
        return hash((CachedStore, self.store, self.cache))

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedStore, (self.store, self.cache, self.max_bytes)

    # Reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        found: Buffers = [None] * len(requests)
        whole: list[tuple[int, Request, int]] = []  # requests to pass on together: their indices, requests, generations
        parts: list[list[int]] = []  # indices of the requests, grouped by key
        numbers = range(len(requests))
        for key, group in itertools.groupby(numbers, key=lambda number: check_key(requests[number][0])):
            together = [*group]
            ranges = [requests[number][1] for number in together]
            sizes = {_expected(requests[number]) for number in together} - {None}
            hits = None if _is_document(key) else self._find(key, ranges, sizes)
            if hits is not None:
                for number, hit in zip(together, hits, strict=True):
                    found[number] = hit
            elif _is_document(key) or (len(together) == 1 and ranges[0].start == 0):
                whole += [(number, requests[number], self._cache.generation(key)) for number in together]
            else:
                parts.append(together)
        if whole:
            values = self.store.get_partial_values([request for _, request, _ in whole], memory)
            for (number, request, generation), value in zip(whole, values, strict=True):
                found[number] = value
                self._store_whole(request, generation, value)
        threads.gather(lambda together: self._read_parts(requests, together, found), parts, place_of(self))
        return found

    def _find(self, key: str, ranges: Sequence[ByteRange], sizes: set[int | None]) -> list[Buffer] | None:
        """Return ranges of one version of a value. Returns None unless all are cached."""
        version = self._cache.version(key)
        if version is None or sizes - {version.size}:
            return None
        hits = [_cached(self._cache, key, version, byte_range) for byte_range in ranges]
        return None if None in hits else hits  # type: ignore[return-value]

    def _store_whole(self, request: Request, generation: int, value: Buffer | None) -> None:
        """Cache the result of a request, if it is the whole value."""
        key, (_, stop) = request[0], request[1]
        if not value or _is_document(key):  # absent and empty values are not cached
            return
        if stop is None or len(value) < stop or len(value) == _expected(request):
            version = new_version(len(value))
            self._cache.store(key, generation, version, (0, len(value)), bytes(value))

    def _read_parts(self, requests: Sequence[Request], numbers: Sequence[int], found: Buffers) -> None:
        """Read ranges of one value, all from the same version."""
        key = requests[numbers[0]][0]
        source = _CachedValue(self._cache, key, self.store.source(key))
        if source.is_versioned():
            values = read_current([source], lambda: self._read_versioned(source, [requests[n] for n in numbers]))
        else:
            values = self.store.get_partial_values([requests[number] for number in numbers])
        for number, value in zip(numbers, values, strict=True):
            found[number] = value

    @staticmethod
    def _read_versioned(source: Source, requests: Sequence[Request]) -> Buffers:
        values = source.read([request[1] for request in requests])
        if values is None:
            return [None] * len(requests)
        size = source.known_size()
        for expected in map(_expected, requests):
            if size is not None and expected not in (None, size):
                raise WrongSizeError(size, expected or 0)
        return [*values]

    def source(self, key: str) -> Source:
        source = self.store.source(check_key(key))
        return source if _is_document(key) else _CachedValue(self._cache, key, source)

    # Writing

    def changed(self, keys: Iterable[str]) -> None:
        self._cache.drop(keys)


class _CachedValue(VersionedSource):
    """A value whose parts are taken from the cache, or are read from a source and then cached."""

    def __init__(self, cache: RangeCache, key: str, source: Source) -> None:
        self._cache = cache
        self._key = key
        self._source = source
        self.separate_tail = source.separate_tail
        self._version: Version | None = None  # version of the parts that were read so far
        self._is_bypassed = False  # whether parts of unknown version were read
        self._is_replaced = False

    def is_versioned(self) -> bool:
        return isinstance(self._source, VersionedSource)

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        version = self._version
        if version is None and not self._is_bypassed:
            version = self._cache.version(self._key)
        found: list[Any] = [None] * len(ranges)
        if version is not None:
            found = [_cached(self._cache, self._key, version, byte_range) for byte_range in ranges]
        missing = [i for i, value in enumerate(found) if value is None]
        if not missing:
            self._version = version
            return found
        generation = self._cache.generation(self._key)
        fetched = self._source.read([ranges[i] for i in missing], memory)
        fetched_version = self._fetched_version(ranges, fetched)
        if len(missing) < len(ranges) and fetched_version != version:  # the cached parts are from an older value
            self._cache.drop([self._key])
            generation = self._cache.generation(self._key)
            missing = [*range(len(ranges))]
            fetched = self._source.read(ranges, memory)
            fetched_version = self._fetched_version(ranges, fetched)
        if self._version is not None and fetched_version != self._version:
            self._cache.drop([self._key])
            self._is_replaced = True
            raise ReplacedError("was replaced while it was read", key=self._key)
        if fetched is None:
            return None
        self._version = fetched_version
        self._is_bypassed = fetched_version is None
        for i, value in zip(missing, fetched, strict=True):
            found[i] = value
            if fetched_version is not None:
                start, stop = ranges[i].resolve(fetched_version.size)
                if stop - start == len(value) > 0:
                    self._cache.store(self._key, generation, fetched_version, (start, stop), bytes(value))
        return found

    def _fetched_version(self, ranges: Sequence[ByteRange], fetched: list[Buffer] | None) -> Version | None:
        """Return the version of the value that the source has read. Returns None if it is not known."""
        if fetched is None:
            return None
        tag = self._source.version() if isinstance(self._source, VersionedSource) else None
        if tag is not None:
            size = self._source.size()
            return None if size is None else version_of(tag, size)
        # without a version, a value is cached only if the first read is of the whole value
        is_whole = tuple(ranges) == (ALL,) and self._version is None and not self._is_bypassed
        return new_version(len(fetched[0])) if is_whole else None

    def size(self) -> int | None:
        if self._version is None and not self._is_bypassed:
            self._version = self._cache.version(self._key)
        return self._source.size() if self._version is None else self._version.size

    def known_size(self) -> int | None:
        return self._source.known_size() if self._version is None else self._version.size

    def version(self) -> str | None:
        return None if self._version is None else self._version.tag

    def is_current(self) -> bool:
        return not self._is_replaced and self._source.is_current()

    def close(self) -> None:
        self._version, self._is_bypassed, self._is_replaced = None, False, False
        self._source.close()


def _expected(request: Request) -> int | None:
    """Return the required size of a value. Returns None if the request specifies none."""
    return request[2] if len(request) > 2 else None


def _cached(cache: RangeCache, key: str, version: Version, byte_range: ByteRange) -> Buffer | None:
    start, stop = byte_range.resolve(version.size)
    return cache.find(key, version, (start, stop)) if start < stop else b""
