"""Chunks that lie in parts: the store of the `concat-parts` transformer.

Rules
- All parts missing: the chunk is missing. Some missing, or a sized part of another length: an error that names it.
- What does not fit the parts is refused before anything is stored. The part without a size is written first and the
  others in order, so that an index comes last. Where a chunk is replaced, that last one is emptied first: what is
  interrupted is an error, never wrong data.
- A range is served from the parts that hold it; a range at the end that lies in sized parts touches only those.
- Chunk keys are listed, part keys never. Every key that is not a chunk's passes through.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange, Pieces, divided, joined, size_of, within
from zarrlite.buffers.source import ByteSource
from zarrlite.errors import ArgumentError, DataError, TruncatedError
from zarrlite.storage_transformers.parts_source import ChunkInParts
from zarrlite.stores.base import Change, Listing, Store, Update, overwrite

if TYPE_CHECKING:
    from zarrlite.metadata.documents import ArrayMetadata

_SEEN = 1024  # keys to remember
Wanted = tuple[str, ByteRange, int | None]  # a part, what of it, and how many bytes that must be


class Part(NamedTuple):
    """One object of a chunk."""

    key_suffix: str
    size: int | None = None


class PartsStore(Store):
    """A store whose chunks lie in parts in the next one."""

    gathers = True

    def __init__(self, store: Store, parts: Sequence[Part], metadata: ArrayMetadata) -> None:
        self.store = store
        self.parts = tuple(parts)
        self.read_only = store.read_only
        unsized = [i for i, part in enumerate(self.parts) if part.size is None]
        self._first, self._last = (unsized[0], unsized[-1]) if unsized else (len(self.parts), len(self.parts))
        sizes = [part.size or 0 for part in self.parts]
        self.head = sum(sizes[: self._first])  # bytes of the parts with a size at the start
        self._tail = sum(sizes[self._last + 1 :])  # and at the end
        self._decode = metadata.chunk_key_encoding.decode
        self._ndim = len(metadata.shape)
        self.main = self.parts[self._first].key_suffix if len(unsized) == 1 else None
        # bytes of a last part that can be replaced alone
        self.apart = (self.parts[-1].size or 0) if self._last == len(self.parts) - 2 else 0
        self.in_order = sorted(self.parts, key=lambda part: part.size is None)  # in which they are opened
        # ranges that are just the first or the last part, as that of an index often is
        (first, head), (last, tail) = self.parts[0], self.parts[-1]
        self.ends = {ByteRange(0, head): (first, head)} if head else {}
        self.ends |= {ByteRange(-tail): (last, tail)} if tail else {}
        self._seen: set[str] = set()  # keys of chunks: those that were asked for are asked for again
        self.quick_reads = store.quick_reads

    def __repr__(self) -> str:
        return f"PartsStore({self.store!r}, {len(self.parts)} parts)"

    def _is_chunk(self, key: str) -> bool:
        if key in self._seen:
            return True
        if self._decode(key, self._ndim) is None:
            return False
        if len(self._seen) >= _SEEN:
            self._seen = set()
        self._seen.add(key)
        return True

    def _keys(self, key: str) -> list[str]:
        return [key + part.key_suffix for part in self.parts]

    # reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        wanted = self.wanted(key, byte_range)
        if len(wanted) == 1:
            part, inside, length = wanted[0]
            value = self.store.get(part, inside)
            if (value is not None and length in (None, len(value))) or not self._is_chunk(key):
                return value
            return self.again(key, byte_range, [value])
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, key_ranges: Sequence[tuple[str, ByteRange]]) -> list[Buffer | None]:
        wanted = [self.wanted(key, byte_range) for key, byte_range in key_ranges]
        values = iter(self._fetch([(part, r) for parts in wanted for part, r, _ in parts], [k for k, _ in key_ranges]))
        found: list[Buffer | None] = []
        for (key, byte_range), parts in zip(key_ranges, wanted, strict=True):
            pieces = [next(values) for _ in parts]
            fits = [v is not None and n in (None, len(v)) for v, (_, _, n) in zip(pieces, parts, strict=True)]
            if not self._is_chunk(key):
                found.append(pieces[0])
            elif parts and all(fits):
                found.append(pieces[0] if len(pieces) == 1 else b"".join(v for v in pieces if v is not None))
            else:
                found.append(self.again(key, byte_range, pieces))
        return found

    def _fetch(self, requests: Sequence[tuple[str, ByteRange]], keys: Iterable[str]) -> list[Buffer | None]:
        """Several parts by one request, those without a size last: an index speaks of what is there when it is read."""
        last = {key + part.key_suffix for key in keys for part in self.parts if part.size is None}
        order = sorted(range(len(requests)), key=lambda i: requests[i][0] in last)
        values = self.store.get_partial_values([requests[i] for i in order]) if requests else []
        return [value for _, value in sorted(zip(order, values, strict=True), key=lambda pair: pair[0])]

    def wanted(self, key: str, r: ByteRange) -> list[Wanted]:
        """What to ask the parts for; how many bytes each must give, if that is known."""
        if not self._is_chunk(key):
            return [(key, r, None)]
        if r in self.ends:
            suffix, size = self.ends[r]
            return [(key + suffix, ALL, size)]
        start, stop = r
        head, tail = self.head, self._tail
        if self.main is not None and stop is not None and head <= start < stop:
            # most likely all of it lies in the part without a size: one request tells, unless that ends too early
            return [(key + self.main, ByteRange(start - head, stop - head), stop - start)]
        if r == ALL:
            return [(key + part.key_suffix, ALL, part.size) for part in self.parts]
        if self._first == len(self.parts):
            return self._ranges(key, 0, r.resolve(head))
        if start >= 0 and stop is not None and 0 <= stop <= head:
            return self._ranges(key, 0, (start, stop))
        if -tail <= start < 0 and (stop is None or stop < 0):
            return self._ranges(key, self._last + 1, (tail + start, tail + (stop or 0)))
        known = self._sizes(key)
        return [] if known is None else self._ranges(key, 0, r.resolve(sum(known)), known)

    def _ranges(self, key: str, first: int, span: tuple[int, int], sizes: Sequence[int] | None = None) -> list[Wanted]:
        """A range of consecutive parts, counted from the first of them; `sizes` of all, if some have none."""
        found: list[Wanted] = []
        start, stop = span
        for i, part in enumerate(self.parts[first:]):
            n = part.size or 0 if sizes is None else sizes[i]
            low, high = max(start, 0), min(stop, n)
            if low < high:
                whole = high - low == n
                found.append((key + part.key_suffix, ALL if whole else ByteRange(low, high), high - low))
            start, stop = start - n, stop - n
        return found

    def again(self, key: str, r: ByteRange, pieces: Sequence[Buffer | None]) -> Buffer | None:
        """A range for which there was no answer, or a short one, now that only the sizes of the parts can tell."""
        known = self._sizes(key)  # raises if some parts are missing, or not as long as they must be
        if known is None:
            return None
        start, stop = r.resolve(sum(known))
        # what a first guess has found already is not read again
        begin = pieces[0] if len(pieces) == 1 and pieces[0] and r != ALL and len(pieces[0]) < stop - start else b""
        parts = self._ranges(key, 0, (start + len(begin), stop), known)
        rest = self.store.get_partial_values([(part, byte_range) for part, byte_range, _ in parts]) if parts else []
        for (part, _, length), value in zip(parts, rest, strict=True):
            if value is None or len(value) != length:
                raise TruncatedError(f"the part {part!r} has changed meanwhile")
        return b"".join((begin, *(value for value in rest if value is not None)))

    def _check(self, key: str, part: Part, size: int | None) -> None:
        """Refuse a part that is missing while others are there, or is not as long as it must be."""
        if size is None:
            raise DataError(f"the part {key + part.key_suffix!r} is missing, others are there")
        if part.size is not None and size != part.size:
            raise TruncatedError(f"the part {key + part.key_suffix!r} has {size} bytes, not {part.size}")

    def _sizes(self, key: str) -> list[int] | None:
        """The sizes of all parts; None: all are missing."""
        sizes = [self.store.size(part_key) for part_key in self._keys(key)]
        if all(size is None for size in sizes):
            return None
        for part, size in zip(self.parts, sizes, strict=True):
            self._check(key, part, size)
        return [size or 0 for size in sizes]

    def size(self, key: str) -> int | None:
        if not self._is_chunk(key):
            return self.store.size(key)
        sizes = self._sizes(key)
        return None if sizes is None else sum(sizes)

    def source(self, key: str) -> ByteSource:
        return ChunkInParts(self, key) if key in self._seen or self._is_chunk(key) else self.store.source(key)

    # writing

    def set(self, key: str, value: Buffer) -> None:
        self._set(key, value)

    def update_many(self, changes: Iterable[tuple[str, Change]]) -> None:
        for key, change in changes:
            if callable(change):
                self.update(key, change)
            elif change is None:
                self.erase(key)
            else:
                self._set(key, change)

    def update(self, key: str, fn: Update) -> None:
        if not self._is_chunk(key):
            self.store.update(key, fn)
            return
        with self.lock(key):
            source = ChunkInParts(self, key)
            try:
                new = fn(source.read_all())
            finally:
                source.close()
            if new is None:
                self.erase(key)
            else:
                self._set(key, new)

    def _set(self, key: str, value: Pieces) -> None:
        if not self._is_chunk(key):
            self.store.update_many([(key, value)])
            return
        parts = [(key + suffix, part if self.store.gathers else joined(part)) for suffix, part in self._split(value)]
        last, part = parts[-1]
        if parts[0][0] == self._keys(key)[0] and self.store.size(last) is None and self.store.set_new(parts):
            return
        with self.lock(key):
            if len(parts) > 1 and size_of(part) and self.store.size(last) is not None:
                # until it is stored anew it has a wrong size: a new part beside an old one is never taken for data
                parts.insert(0, (last, b""))
            self.store.set_many(parts)  # type: ignore[arg-type]

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        """Overwrite chunks in their parts: in place, save parts that are replaced whole, which are stored whole."""
        for key, group in itertools.groupby(key_start_values, key=lambda item: item[0]):
            pieces = [(start, value) for _, start, value in group]
            with self.lock(key):
                sizes = self._sizes(key) if self._is_chunk(key) else None
                if sizes is None or min(start for start, _ in pieces) < 0:
                    super().set_partial_values((key, start, value) for start, value in pieces)
                else:
                    self._overwrite(key, sizes, pieces)

    def _overwrite(self, key: str, sizes: Sequence[int], pieces: Sequence[tuple[int, Buffer]]) -> None:
        old = sum(sizes)
        new = max([old, *(start + len(value) for start, value in pieces)])
        growing = [i for i, part in enumerate(self.parts) if part.size is None]
        if new > old and len(growing) != 1:
            self._sizes_of(new)  # which says why it does not fit
        changed = list(sizes)
        if new > old:
            changed[growing[0]] += new - old
            # from where it ends on, everything moves
            behind = old - sum(sizes[growing[0] + 1 :])
            tail = overwrite(self.get(key, ByteRange(behind, old)), within(pieces, behind, new))
            pieces = [*within(pieces, 0, behind), (behind, tail)]
        order = sorted(range(len(sizes)), key=lambda i: self.parts[i].size is not None)
        starts = list(itertools.accumulate(changed, initial=0))
        undo: list[tuple[str, int, Buffer]] = []
        try:
            for i in order:
                part, here = key + self.parts[i].key_suffix, within(pieces, starts[i], starts[i + 1])
                ranges = [(part, ByteRange(start, start + len(value))) for start, value in here]
                if i != order[-1]:
                    found = self.store.get_partial_values(ranges)
                    undo += [(part, r.start, old) for (_, r), old in zip(ranges, found, strict=True) if old]
                self._overwrite_part(part, changed[i], here)
        except BaseException:
            with contextlib.suppress(Exception):
                self.store.set_partial_values(undo)
            raise

    def _overwrite_part(self, key: str, size: int, pieces: Sequence[tuple[int, Buffer]]) -> None:
        if any(start == 0 and len(value) == size for start, value in pieces):
            self.store.set(key, overwrite(None, pieces))
        elif pieces:
            self.store.set_partial_values((key, start, value) for start, value in pieces)

    def _split(self, value: Pieces) -> list[tuple[str, list[Any]]]:
        """The parts of a value, in the order in which they are written."""
        parts = zip(self.parts, divided(value, self._sizes_of(size_of(value))), strict=True)
        in_order = sorted(parts, key=lambda item: item[0].size is not None)
        return [(part.key_suffix, pieces) for part, pieces in in_order]

    def _sizes_of(self, size: int) -> list[int]:
        """The sizes of the parts of a value that has so many bytes; refused if they do not fit."""
        sized = sum(part.size or 0 for part in self.parts)
        unsized = [part.key_suffix for part in self.parts if part.size is None]
        if len(unsized) > 1:
            raise ArgumentError(
                f"cannot be written: the parts {', '.join(map(repr, unsized))} have no size, one may have none"
            )
        rest = size - sized
        if rest < 0 or (rest and not unsized):
            need = f"at least {sized}" if unsized else str(sized)
            raise ArgumentError(f"a value of {size} bytes does not fit parts of {need} bytes")
        return [rest if part.size is None else part.size for part in self.parts]

    def erase(self, key: str) -> None:
        if not self._is_chunk(key):
            self.store.erase(key)
            return
        with self.lock(key):
            self.store.erase_values(self._keys(key))

    def lock(self, key: str) -> contextlib.AbstractContextManager[None]:
        """A chunk is locked by its first part: whoever writes any of them holds that."""
        return self.store.lock(self._keys(key)[0] if self._is_chunk(key) else key)

    # listing

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return self._above(self.store.list_prefix(prefix), prefix)

    def list_dir(self, prefix: str) -> Listing:
        if any("/" in part.key_suffix for part in self.parts):
            return super().list_dir(prefix)
        keys, prefixes = self.store.list_dir(prefix)
        return sorted(self._above(keys, prefix)), prefixes

    def _above(self, keys: Iterable[str], prefix: str) -> Iterator[str]:
        """The keys that are seen here: a chunk's for those of its parts, once."""
        seen: set[str] = set()
        for key in keys:
            chunk = self._chunk_of(key)
            if chunk is None:
                if not self._is_chunk(key):
                    yield key
            elif chunk not in seen and chunk.startswith(prefix):
                seen.add(chunk)
                yield chunk

    def _chunk_of(self, key: str) -> str | None:
        """The chunk that a stored key is a part of."""
        for part in self.parts:
            chunk = key[: len(key) - len(part.key_suffix)]
            if key.endswith(part.key_suffix) and self._is_chunk(chunk):
                return chunk
        return None
