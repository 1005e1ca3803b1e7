"""The Store ABC: keys to values, with the operations and names of the core spec.

Rules
- A key is text without leading, trailing or doubled `/`; a prefix is empty or ends with `/`.
- `get(k, r) == get(k)[r.start:r.stop]` for every store and every range; a missing key is None.
- Only `get` must be written. The other operations have right, slow defaults, built on `get`, `set`, `erase`, `list`.
- `set` replaces a value whole or not at all. Erasing what is not there is fine.
- `lock(key)` excludes every other writer of that key; `update` is read, change, write under that lock.
"""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange, Pieces, joined
from zarrlite.buffers.source import ByteSource, Stored
from zarrlite.errors import KeyRefusedError, ReadOnlyError, StoreError
from zarrlite.stores.locks import LockTable

_BAD_KEY = re.compile(r"\A\Z|\A/|/\Z|//|(?:\A|/)\.\.?(?:/|\Z)|[\0\\]").search
_locks = LockTable()
_MOST = 2**40  # bytes of a value that is made in memory
Update = Callable[[Buffer | None], Pieces | None]
Patch = Callable[[ByteSource], Sequence[tuple[int, Buffer]] | None]
Change = Pieces | Update | None  # a new value, what makes one of the old, or None for none
# keys and prefixes; an alias, as is the next, since inside the class `list` is the operation
Listing = tuple[list[str], list[str]]
Fetched = list[Buffer | None]


class Store(ABC):
    """A mapping from keys to values."""

    read_only: bool = False
    gathers: bool = False  # whether `update` and `update_many` take values in pieces as well
    quick_reads: bool = False  # whether values are had in so little time that waiting for several at once does not pay

    @abstractmethod
    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        """The value, or a part of it; None: no such key."""

    def get_partial_values(self, key_ranges: Sequence[tuple[str, ByteRange]]) -> list[Buffer | None]:
        """Several parts of several values, in order."""
        return [self.get(key, byte_range) for key, byte_range in key_ranges]

    def set(self, key: str, value: Buffer) -> None:
        """Store a value whole."""
        raise ReadOnlyError(f"{self!r} cannot be written")

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Store several values, in order; where a store can, none of them before all are known to fit."""
        for key, value in items:
            self.set(key, value)

    def set_new(self, items: Sequence[tuple[str, Pieces]]) -> bool:
        """Store several values none of which is there yet, in order, under the lock of the first of these keys.

        False: nothing was stored; one of them is there, or the store has no quicker way than `lock` and `set_many`.
        """
        return False

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        """Overwrite values from `start` on; a value grows as needed, and a gap is filled with zeros.

        A store may do that in place: unlike `set`, it may be caught half done by readers and by a crash.
        """
        by_key: dict[str, list[tuple[int, Buffer]]] = {}
        for key, start, value in key_start_values:
            by_key.setdefault(key, []).append((start, value))
        for key, pieces in by_key.items():
            self.update(key, lambda old, pieces=pieces: overwrite(old, pieces))  # type: ignore[misc]

    def erase(self, key: str) -> None:
        """Remove a key, if it is there."""
        raise ReadOnlyError(f"{self!r} cannot be written")

    def erase_values(self, keys: Iterable[str]) -> None:
        """Remove several keys."""
        for key in keys:
            self.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key under a prefix."""
        self.erase_values(list(self.list_prefix(prefix)))

    def list(self) -> Iterator[str]:
        """Every key."""
        raise StoreError(f"{self!r} cannot be listed")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Every key under a prefix."""
        check_prefix(prefix)
        return (key for key in self.list() if key.startswith(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """Keys and prefixes directly under a prefix, each list sorted; both as they are written in full."""
        keys: set[str] = set()
        prefixes: set[str] = set()
        for key in self.list_prefix(prefix):
            head, slash, _ = key[len(prefix) :].partition("/")
            (prefixes if slash else keys).add(prefix + head + slash)
        return sorted(keys), sorted(prefixes)

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        """Where a prefix of this store really is: two stores that hold the same values say the same."""
        return id(self), prefix

    def size(self, key: str) -> int | None:
        """Bytes of a value; None: no such key."""
        value = self.get(key)
        return None if value is None else len(value)

    def source(self, key: str) -> ByteSource:
        """A value to be read in several steps; where a store can, all of them see the same value."""
        return Stored(self, key, sized=type(self).size is not Store.size)

    def peek(self, key: str, start: int, length: int, size: int) -> Buffer | None:
        """So many bytes of a value that has just this size, if they are had in one step; None: read it by `source`."""
        return None

    def fetch(self, keys: Sequence[str], memory: memoryview, room: int) -> Fetched:
        """Whole values that are shorter than `room`, where each is had in one step; None: read it by `source`.

        They may lie in this memory, which has room for all of them; one behind the other from its start is best.
        """
        return [None] * len(keys)

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Exclude every other writer of this key, in this process at least, while the context lasts."""
        return contextlib.nullcontext() if self.read_only else _locks((*self.location(), key))

    def patch(self, key: str, fn: Patch) -> bool:
        """Overwrite parts of a value, as `set_partial_values` does, which `fn` names after a look at it; or none of it.

        False: `fn` has named none.
        """
        with self.lock(key):
            source = self.source(key)
            try:
                pieces = fn(source)
            finally:
                source.close()
            if pieces is not None:
                self.set_partial_values([(key, start, piece) for start, piece in pieces])
        return pieces is not None

    def update(self, key: str, fn: Update) -> None:
        """Replace a value by what `fn` makes of it, atomically; None for absent, both ways."""
        with self.lock(key):
            new = fn(self.get(key))
            if new is None:
                self.erase(key)
            else:
                self.set(key, joined(new))

    def update_many(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Change several values, each as `update`, `set` or `erase` would; where a store can, at less cost."""
        for key, change in changes:
            if callable(change):
                self.update(key, change)
            elif change is None:
                self.erase(key)
            else:
                self.set(key, joined(change))


def check_key(key: str) -> str:
    """Refuse a key that could leave the store: traversal, absolute, NUL, backslash."""
    if not all(map(str.isalnum, key.split("/"))) and _BAD_KEY(key):  # the first is faster, and enough for most
        raise KeyRefusedError(
            f"{key!r} is not a key: segments between single '/', none empty, '.' or '..', no NUL, no '\\'"
        )
    return key


def check_prefix(prefix: str) -> str:
    """Refuse what is neither empty nor a key followed by `/`."""
    if prefix and (not prefix.endswith("/") or _BAD_KEY(prefix[:-1])):
        raise KeyRefusedError(f"{prefix!r} is not a prefix: empty, or a key followed by '/'")
    return prefix


def flat(value: Buffer) -> memoryview:
    """A value as single bytes, whatever the item size and the strides of the buffer."""
    view = memoryview(value)
    if view.ndim == 1 and view.format == "B" and view.contiguous:
        return view
    return view.cast("B") if view.nbytes and view.c_contiguous else memoryview(view.tobytes())


def overwrite(old: Buffer | None, pieces: Iterable[tuple[int, Buffer]]) -> bytearray:
    """A value with pieces of it replaced, grown with zeros as needed."""
    value = bytearray(b"" if old is None else old)
    for start, piece in ((start, flat(piece)) for start, piece in pieces):
        if not 0 <= start < _MOST:
            raise StoreError(f"a partial value cannot start at {start}")
        if len(value) < start + len(piece):
            value.extend(bytes(start + len(piece) - len(value)))
        value[start : start + len(piece)] = piece
    return value
