"""The store of the `concat-parts` transformer, in which chunks are stored in parts.

Rules
- A value whose size does not match the parts is refused before anything is stored.
- A chunk is replaced in five steps, each a durable operation of the store: store its journal (parts_journal.py); empty
  one part that has a size, after which readers follow the journal; store the other parts; store the emptied part;
  remove the journal. An interruption leaves the old chunk or the new one, and the next writer completes or undoes the
  change.
- If the largest part is replaced as a whole, the journal does not contain it. This part is stored before all others,
  and determines whether readers get the old chunk or the new one.
- A new chunk counts as missing until all its parts are stored, and a chunk that is being erased counts as missing as
  soon as one of its parts is erased. The journal records this.
- Replacing a single object as a whole needs no journal. Neither does appending bytes and then replacing the last part,
  as for a shard whose index is a separate part.
- No lock excludes writers on other machines. If such writers are possible (`Limits.shared`), chunks of several parts
  are not written.
- Listings contain the keys of chunks, never those of parts or journals. All other keys pass through.

Reading is in parts_source.py.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from zarrlite.buffers.pieces import Patch, Value, join, overlapping, size_of, split
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import Source, read_current
from zarrlite.errors import ArgumentError, StoreError
from zarrlite.storage_transformers import parts_journal
from zarrlite.storage_transformers.base import ArrayInStore
from zarrlite.storage_transformers.parts_journal import Journal, PartPatch, Sizes
from zarrlite.storage_transformers.parts_source import ChunkInParts, Part, Parts, read_chunks
from zarrlite.stores.base import (
    Buffers,
    Change,
    InPlace,
    Listing,
    Request,
    Store,
    Update,
    WrongSizeError,
    overwrite,
    set_under_lock,
)

_MAX_SEEN = 1024  # maximum number of chunk keys that are remembered
_FIRST_COMPARED = 256  # bytes; how much of a part is compared first
_MARK = 16  # bytes; largest size of the mark that distinguishes a new part from the old one


class PartsStore(Store):
    """A store whose chunks are stored as parts in the next store."""

    def __init__(self, store: Store, parts: Sequence[Part], array: ArrayInStore, journal: bool, level: int) -> None:
        self.store = store
        self.parts = Parts(parts, level)
        self.journal = journal  # whether a change of several parts is recorded in a journal until it is complete
        self.read_only, self.limits = store.read_only, store.limits
        self._decode = array.chunk_key_encoding.decode
        self._ndim = len(array.shape)
        self._seen: set[str] = set()  # keys that are known to be chunk keys: they are likely to be used again
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
        # proposal concat-parts, Description: 'A key_suffix of "" corresponds to the base key'
        return [key + part.key_suffix for part in self.parts.all]

    def journal_of(self, key: str) -> str:
        """Return the key of the journal of a chunk."""
        return parts_journal.key_of(key, self.parts.level)

    # Reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        if not self.is_chunk(key):
            return self.store.get(key, byte_range)
        source = self._chunk(key)
        return read_current((source,), source.read_one, byte_range)

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        if not all(self.is_chunk(request[0]) for request in requests):
            runs = itertools.groupby(requests, key=lambda request: request[0])
            return [value for key, run in runs for value in self._store_of(key).get_partial_values([*run])]
        sources = {request[0]: self._chunk(request[0]) for request in requests}
        return read_current(sources.values(), self._read, sources, requests, memory)

    def _store_of(self, key: str) -> Store:
        return self if self.is_chunk(key) else self.store

    def _read(
        self, sources: dict[str, ChunkInParts], requests: Sequence[Request], memory: memoryview | None
    ) -> Buffers:
        """Read ranges of chunks. A chunk must have the size that its request specifies."""
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
        if key in self._seen or self.is_chunk(key):
            return ChunkInParts(self.store, key, self.parts, self._by_key)
        return self.store.source(key)

    def _chunk(self, key: str) -> ChunkInParts:
        return ChunkInParts(self.store, key, self.parts, self._by_key)

    # Writing

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        if not self.is_chunk(key):
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
            else:
                self._check_single_writer(key)
                with self.lock(key):
                    self._write(key, self._changed(key, change) if callable(change) else change)

    def _check_single_writer(self, key: str) -> None:
        """Refuse to write chunks of several parts if other machines may write to the store: no lock excludes them."""
        if self.limits.shared and len(self.parts.all) > 1:
            raise StoreError(
                f"{key!r} in {self.store!r} must not be written: a chunk of several parts needs a single writer; pass"
                " storage_options={'single_writer': True} if no other process writes to the store",
                key=key,
                errno=errno.ENOTSUP,
            )

    def _changed(self, key: str, change: Update) -> Value | InPlace | None:
        source = self._chunk(key)
        return read_current((source,), change, source)

    def _write(self, key: str, new: Value | InPlace | None) -> None:
        """Store a new value or patches, or erase the chunk if `new` is None. The caller holds the lock of the chunk."""
        if isinstance(new, InPlace):
            self._overwrite(key, new.patches)
        elif new is None:
            self._erase(key)
        else:
            # proposal concat-parts, Description: "splits it into multiple segments based on the configured size"
            after = self._sizes_of(key, size_of(new))
            values = split(new, after)
            if len(values) == 1:
                self.store.change([(self.keys_of(key)[0], values[0])])
            else:
                self._replace(key, self._difference(key, values, after))

    def _difference(self, key: str, values: list[list[Any]], after: Sequence[int]) -> Journal:
        """Return the change that stores these values. It affects only one part if all others stay the same.

        The largest part is compared only if another one differs, and only up to the first difference.
        """
        keys = self.keys_of(key)
        sentinel: Any = self.parts.sentinel
        largest = max(range(len(after)), key=lambda number: (after[number], number != sentinel))
        before: list[int | None] = []
        old: list[Any] = []
        changed: list[int] = []
        for number, part in enumerate(keys):
            is_read = bool(after[number]) and number != largest
            stored = self.store.get(part) if is_read else None
            if is_read:
                values[number] = [join(values[number])]
            old.append(stored)
            before.append(self.store.size(part) if stored is None else len(stored))
            if number == largest or before[number] != after[number] or (is_read and stored != values[number][0]):
                changed.append(number)
        change = Journal(before, after, [(number, 0, value) for number, value in enumerate(values)])
        if not self._fit(before):
            return change
        if len(changed) > 1 and largest != sentinel and self.journal:
            mark = self._mark(keys, largest, values[largest], before[largest], after[largest])
            if mark is not None:
                return change._replace(back=[(sentinel, 0, old[sentinel])], mark=mark)
            changed.remove(largest)
            change = change._replace(patches=[patch for patch in change.patches if patch[0] != largest])
        if len(changed) == 1:
            change = change._replace(patches=[patch for patch in change.patches if patch[0] in changed])
        return change

    def _mark(self, keys: Sequence[str], number: int, value: Value, before: int | None, after: int) -> PartPatch | None:
        """Return a mark: bytes of a new part that differ from the stored ones. Returns None if the part stays the same.

        The mark is empty if the size alone distinguishes the new part from the old one.
        """
        if before != after:
            return number, 0, b""
        start, length = 0, _FIRST_COMPARED
        while start < after:
            stop = min(start + length, after)
            new = join(split(value, (start, stop - start, after - stop))[1])
            stored = self.store.get(keys[number], ByteRange(start, stop))
            if stored != new:
                first, data = _first_difference(stored or b"", new)
                return number, start + first, data
            start, length = stop, 16 * length
        return None

    def _stored_sizes(self, key: str) -> list[int | None]:
        return [self.store.size(part) for part in self.keys_of(key)]

    def _fit(self, sizes: Sizes) -> bool:
        """Whether parts of these sizes form a chunk."""
        pairs = zip(sizes, self.parts.sizes, strict=True)
        return all(size is not None and expected in (None, size) for size, expected in pairs)

    def _replace(self, key: str, change: Journal) -> None:
        """Change a chunk such that readers, even after a crash, get either the old chunk or the new one."""
        patches = [p for p in change.patches if size_of(p[2]) or change.before[p[0]] != change.after[p[0]]]
        change = change._replace(patches=patches)
        if all(size is None for size in change.before):
            # until all parts are stored, the chunk is still missing
            self._set_journal(key, change._replace(patches=()))
            self.store.change(self._changes(key, change, range(len(change.after))))
        elif self._fit(change.before) and len(patches) <= 1 and all(_is_whole(change, *patch) for patch in patches):
            self.store.change(self._changes(key, change, [number for number, _, _ in patches]))
            return
        else:
            self._set_journal(key, change)
            self._roll_forward(key, change, change.before)
        self._erase_journal(key)

    def _roll_forward(self, key: str, change: Journal, sizes: Sizes) -> None:
        """Carry out a change whose journal has been stored. A crash between any two steps is safe."""
        if not change.patches:
            self._erase_parts(key)
            return
        changes: list[tuple[str, Change]] = []
        sentinel = self.parts.sentinel
        if sentinel is not None and sizes[sentinel] == self.parts.sizes[sentinel]:
            # from here on the parts do not fit together, so readers follow the journal
            changes.append((self.keys_of(key)[sentinel], b""))
        numbers = dict.fromkeys(number for number, _, _ in change.patches)
        changes += self._changes(key, change, [number for number in numbers if number != sentinel])
        changes += self._changes(key, change, [number for number in numbers if number == sentinel])
        self.store.change(changes)

    def _changes(self, key: str, change: Journal, numbers: Iterable[int]) -> list[tuple[str, Change]]:
        """Return the changes to the parts, in the order of writing: the part with the mark first, sized parts last."""
        keys = self.keys_of(key)
        decisive = None if change.mark is None else change.mark[0]
        changes: list[tuple[str, Change]] = []
        for number in sorted(numbers, key=lambda i: (i != decisive, self.parts.sizes[i] is not None, i)):
            patches = [patch for patch in change.patches if patch[0] == number]
            if len(patches) == 1 and _is_whole(change, *patches[0]):
                changes.append((keys[number], patches[0][2]))
            else:
                changes.append((keys[number], _overwriting([(start, join(data)) for _, start, data in patches])))
        return changes

    def _erase(self, key: str) -> None:
        sizes = self._stored_sizes(key)
        if sum(size is not None for size in sizes) <= 1:
            self._erase_parts(key)
            return
        self._set_journal(key, Journal(sizes, [None] * len(sizes), ()))
        self._erase_parts(key)
        self._erase_journal(key)

    def _erase_parts(self, key: str) -> None:
        """Erase all parts. `Parts.sentinel` is erased first, so that readers notice that the chunk is incomplete."""
        keys = self.keys_of(key)
        if self.parts.sentinel is not None:
            self.store.erase(keys.pop(self.parts.sentinel))
        self.store.erase_values(keys)

    def _set_journal(self, key: str, change: Journal) -> None:
        if self.journal:
            self.store.set(self.journal_of(key), join([*change.encode()]))
        else:
            # the journal of an earlier change must not be taken for that of this change
            self.store.erase(self.journal_of(key))

    def _erase_journal(self, key: str) -> None:
        if self.journal:
            self.store.erase(self.journal_of(key))

    def complete(self, key: str) -> bool:
        """Complete or undo an interrupted change of a chunk, and remove its journal.

        Returns whether the parts then fit together, or are all missing.
        """
        self._check_single_writer(key)
        with self.lock(key):
            stored, sizes = self.store.get(self.journal_of(key)), self._stored_sizes(key)
            if not self._fit(sizes) and list(sizes).count(None) < len(sizes):
                change = None if stored is None else Journal.parse(bytes(stored))
                if change is None or not change.explains(sizes, self.parts.sizes):
                    return False
                parts = [self.store.get(part) for part in self.keys_of(key)]
                self._roll_forward(key, change.remaining(parts), sizes)
            if stored is not None:
                self.store.erase(self.journal_of(key))
        return True

    def _overwrite(self, key: str, patches: Sequence[Patch]) -> None:
        """Overwrite bytes of a chunk."""
        if len(self.parts.all) == 1:
            self.store.set_partial_values((self.keys_of(key)[0], *patch) for patch in patches)
            return
        if not self._fit(self._stored_sizes(key)):
            self.complete(key)
        with contextlib.closing(self._chunk(key)) as source:
            before = source.sizes()
            if not before or min([start for start, _ in patches], default=0) < 0:
                self._write(key, overwrite(source.read_one(), patches))
                return
            new_size = max([sum(before), *(start + len(value) for start, value in patches)])
            after = self._sizes_of(key, new_size)
            if after == before:
                self._patch(key, source, before, before, patches)
                return
            end = sum(before[: (self.parts.main or 0) + 1])  # end of the part that grows
            if _is_appended(patches, end, new_size, self.parts.separate_tail):
                # the index is a separate part, so the chunks that it refers to can be stored before it
                change = Journal(before, after, _by_part(patches, after))
                main: Any = self.parts.main
                self.store.change([*self._changes(key, change, [main]), *self._changes(key, change, [len(after) - 1])])
                return
            # a part grows, so everything after it moves
            tail = overwrite(source.read_one(ByteRange(end, sum(before))), overlapping(patches, end, new_size))
            self._patch(key, source, before, after, [*overlapping(patches, 0, end), (end, tail)])

    def _patch(
        self, key: str, source: Source, before: Sequence[int], after: Sequence[int], patches: Sequence[Patch]
    ) -> None:
        """Overwrite bytes of the parts. `before` and `after` are the sizes of the parts before and after the change."""
        changed = _by_part(patches, after)
        # one part is stored as a whole: `Parts.sentinel` or, if that is None, the only part that contains any bytes
        number = self.parts.main if self.parts.sentinel is None else self.parts.sentinel
        if changed and number is not None:
            start = sum(before[:number])
            old = source.read_one(ByteRange(start, start + before[number]))
            whole = overwrite(old, [(i, join(data)) for n, i, data in changed if n == number])
            changed = [*(patch for patch in changed if patch[0] != number), (number, 0, bytes(whole))]
        if changed:
            self._replace(key, Journal(before, after, changed))

    def _sizes_of(self, key: str, size: int) -> list[int]:
        """Return the sizes of the parts of a value of `size` bytes. Raises ArgumentError if it cannot be split."""
        sized = sum(part.size or 0 for part in self.parts.all)
        unsized = [part.key_suffix for part in self.parts.all if part.size is None]
        # proposal concat-parts, Configuration: "required for all but at most one part when writing"
        if len(unsized) > 1:
            names = " and ".join(map(repr, unsized))
            raise ArgumentError(f"cannot be written: only one part may omit size, but {names} do", key=key)
        rest = size - sized
        if rest < 0 or (rest and not unsized):
            need = f"at least {sized}" if unsized else str(sized)
            raise ArgumentError(f"a value must have {need} bytes, the total size of its parts, not {size}", key=key)
        return [rest if part.size is None else part.size for part in self.parts.all]

    def lock(self, key: str) -> contextlib.AbstractContextManager[Any]:
        """Lock a chunk by locking its first part, as all writers of its parts do."""
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
        """Yield the keys of this store, given those of the next store: one chunk key instead of the keys of parts."""
        seen: set[str] = set()
        for key in keys:
            chunk = self.chunk_of(key)
            if chunk is None:
                if not self.is_chunk(key) and self.chunk_of_journal(key) is None:
                    yield key
            elif chunk not in seen and chunk.startswith(prefix):
                seen.add(chunk)
                yield chunk

    def chunk_of_journal(self, key: str) -> str | None:
        """Return the key of the chunk to which a journal belongs. Returns None if the key is not that of a journal."""
        chunk = parts_journal.chunk_of(key, self.parts.level) if parts_journal.NAME in key else None
        return chunk if chunk is not None and self.is_chunk(chunk) else None

    def chunk_of(self, key: str) -> str | None:
        """Return the key of the chunk to which a part belongs. Returns None if the key is not that of a part."""
        for part in self.parts.all:
            chunk = key[: len(key) - len(part.key_suffix)]
            if key.endswith(part.key_suffix) and self.is_chunk(chunk):
                return chunk
        return None


def _is_whole(change: Journal, number: int, start: int, data: Value) -> bool:
    """Whether a patch replaces a whole part."""
    return start == 0 and size_of(data) == change.after[number]


def _first_difference(old: Buffer, new: Buffer) -> Patch:
    """Return a few bytes of a new value that differ from the old value, with their offset."""
    start, data = 0, memoryview(new)
    while len(data) > _MARK:
        half = len(data) // 2
        if old[start : start + half] == data[:half]:
            start, data = start + half, data[half:]
        else:
            data = data[:half]
    return start, data


def _overwriting(patches: Sequence[Patch]) -> Update:
    return lambda source: InPlace(patches)


def _by_part(patches: Sequence[Patch], sizes: Sequence[int]) -> list[PartPatch]:
    """Translate patches of a chunk into patches of its parts. `sizes` are the sizes of the parts."""
    found: list[PartPatch] = []
    for number, (start, stop) in enumerate(itertools.pairwise(itertools.accumulate(sizes, initial=0))):
        found += [(number, offset, data) for offset, data in overlapping(patches, start, stop)]
    return found


def _is_appended(patches: Sequence[Patch], end: int, new_size: int, tail: int) -> bool:
    """Whether patches only append bytes at `end`, and the last patch is the whole last part, of `tail` bytes."""
    length = sum(len(data) for _, data in patches)
    last = patches[-1] if patches else (0, b"")
    return tail > 0 and min(patches)[0] == end and length == new_size - end and last[0] == new_size - tail
