"""The abstract base class of stores, with the operations and names of the core spec.

Rules
- A key is text without leading, trailing or doubled `/`; a prefix is empty or ends with `/`.
- `get(k, r) == get(k)[r.start:r.stop]` for every store and every range. The result for a missing key is None.
- A subclass must implement `get`, plus `set`, `erase` and `list` for writing. The other operations have correct but
  slow defaults built on these four. If a subclass of another store overrides one of the four, the operations built on
  it revert to these defaults, because the inherited ones could bypass the override.
- `set` replaces a value as a whole or not at all; with `new=True` it never replaces an existing value. A `set` without
  the parameter `new` is wrapped: the wrapper looks up the key first, under its lock. Erasing a missing key is not an
  error.
- `lock(key)` excludes all other writers of that key. If a change is a function, the lock is held from reading the old
  value to writing the new one.
- An exception raised by an operation of a user's class reaches the caller as a StoreError that names the key, unless it
  is already an error of this library. The same holds for sources that the class returns. Exceptions raised by functions
  that are passed to `change`, and by the contexts that `lock` returns, are passed on unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import FunctionType, TracebackType
from typing import Any, Final, NamedTuple, Self, final

from zarrlite import threads
from zarrlite.buffers.pieces import Patch, Value, join
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source
from zarrlite.errors import KeyRefusedError, ReadOnlyError, StoreError, TruncatedError, ZarrliteError
from zarrlite.stores.foreign_sources import reporting_source
from zarrlite.stores.locks import Lock, LockContext, Table, holds_locks
from zarrlite.stores.store_errors import foreign_error
from zarrlite.tuning import MAX_REQUEST_BYTES, NEAR_CHUNK_BYTES

_BAD_KEY = re.compile(r"\A\Z|\A/|/\Z|//|(?:\A|/)\.\.?(?:/|\Z)|[\0\\]").search
_MAX_BYTES = 2**40  # bytes; patches applied in memory must start before this offset
_locks = Table()
# keys and prefixes; an alias, because the name `list` is a method inside the class
Listing = tuple[list[str], list[str]]
Buffers = list[Buffer | None]
# a key, a byte range of its value, and the required size of the value, if it is known
Request = tuple[str, ByteRange] | tuple[str, ByteRange, int | None]


class InPlace(NamedTuple):
    """A change that overwrites parts of a value, in order. The value grows as needed; gaps are filled with zeros.

    A store may change the value in place. Unlike with `set`, readers may then see a partial change, and a crash may
    leave one.
    """

    patches: Sequence[Patch]


Update = Callable[[Source], Value | InPlace | None]  # receives the old value, which may be missing
Change = Value | Update | None  # a new value, a function of the old one, or None to erase the key


class Limits(NamedTuple):
    """How many requests a store handles well at once, and when one large request is cheaper than two."""

    # how many requests may be under way at once; 1 means that concurrent requests gain nothing, as in memory or on a
    # local disk; None means one request per core
    concurrency: int | None = None
    gap: int = NEAR_CHUNK_BYTES  # bytes; up to this gap between two ranges, one request is cheaper than two
    longest: int = MAX_REQUEST_BYTES  # bytes; ranges are not merged into a request longer than this
    # whether other machines, which locks do not exclude, may write at the same time; if so, updates never erase values,
    # and consolidated metadata is not restored after a change
    shared: bool = False


IN_MEMORY: Final = Limits(concurrency=1, gap=0)


class WrongSizeError(TruncatedError):
    """A value does not have the size that its reader expects."""

    def __init__(self, size: int, expected: int) -> None:
        super().__init__(f"has {size} bytes, but must have {expected}")
        self.size = size
        self.expected = expected

    def __reduce__(self) -> tuple[Any, ...]:
        return WrongSizeError, (self.size, self.expected)

    def at(self, *, key: str | None = None, codec: str | None = None) -> TruncatedError:  # type: ignore[override]
        return TruncatedError(self.message, key=key, codec=codec)


class Store(ABC):
    """A mapping from keys to values.

    A subclass must define `get`. To be writable, it must also define `set`, `erase` and `list`. All other operations
    have defaults built on these four. Several threads may use a store at once.

    Attributes
    ----------
    read_only : bool
        Whether the store refuses changes.
    limits : Limits
        How many requests the store serves well at once.

    Examples
    --------
    >>> class Squares(Store):
    ...     def get(self, key, byte_range=ByteRange()):
    ...         return byte_range.of(str(int(check_key(key)) ** 2).encode())
    >>> Squares().get("12"), Squares().get("12", ByteRange(-2)), Squares().size("5")
    (b'144', b'44', 2)
    """

    read_only: bool = False
    limits: Limits = Limits()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        own = {} if cls.__module__.startswith("zarrlite.") else dict(cls.__dict__)
        for basic, derived in _BUILT_ON.items():
            if basic in cls.__dict__:
                for name in derived:
                    if name not in cls.__dict__:
                        setattr(cls, name, Store.__dict__[name])
        if "set" in cls.__dict__:
            cls.set = _exclusive(cls.set)  # type: ignore[method-assign]
        for name in _ACTIONS.keys() & own.keys():
            if isinstance(own[name], FunctionType):
                setattr(cls, name, _reporting(cls.__dict__[name], _ACTIONS[name]))
        if isinstance(own.get("source"), FunctionType):
            cls.source = _reporting_source(cls.source)  # type: ignore[method-assign]
        if isinstance(own.get("change"), FunctionType):
            cls.change = _reporting_change(cls.change)  # type: ignore[method-assign]

    # Reading

    @abstractmethod
    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        """Return a value, or part of it. Returns None if the key does not exist."""

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        """Return parts of values, in the order of the requests; None stands for a missing key.

        Where the store can guarantee it, adjacent requests for the same key read the same version of the value. If
        `memory` has room, the parts may be placed there, consecutively. Raises WrongSizeError if the store notices that
        a value does not have the size specified in its request.
        """
        return threads.gather(lambda request: self._get_part(*request), requests, place_of(self))

    def _get_part(self, key: str, byte_range: ByteRange, size: int | None = None) -> Buffer | None:
        """Return part of a value. Raises WrongSizeError if the whole value is requested and has another size."""
        if size is None or byte_range != (0, size):
            return self.get(key, byte_range)
        value = self.get(key)
        if value is not None and len(value) != size:
            raise WrongSizeError(len(value), size)
        return value

    def size(self, key: str) -> int | None:
        """Return the size of a value in bytes. Returns None if the key does not exist."""
        value = self.get(key)
        return None if value is None else len(value)

    def source(self, key: str) -> Source:
        """Return a source that reads a value in several steps, all from one version if the store supports this."""
        return StoredValue(self, key)

    # Listing

    def list(self) -> Iterator[str]:
        """Yield every key."""
        raise StoreError(f"{self!r} cannot be listed", errno=errno.ENOTSUP)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key under a prefix."""
        check_prefix(prefix)
        return (key for key in self.list() if key.startswith(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """Return the full keys and prefixes directly under a prefix, each list sorted."""
        keys: set[str] = set()
        prefixes: set[str] = set()
        for key in self.list_prefix(prefix):
            head, slash, _ = key[len(prefix) :].partition("/")
            (prefixes if slash else keys).add(prefix + head + slash)
        return sorted(keys), sorted(prefixes)

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        """Return the actual location of a prefix: stores that hold the same values return the same location."""
        return id(self), prefix

    # Writing

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        """Store a whole value; with `new`, only if the key does not exist. Returns whether the value was stored."""
        raise ReadOnlyError(f"{self!r} is read-only")

    def erase(self, key: str) -> None:
        """Remove a key, if it exists."""
        raise ReadOnlyError(f"{self!r} is read-only")

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key under a prefix."""
        self.erase_values(list(self.list_prefix(prefix)))

    def change(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Change several values, in order. A store first checks whether all new values fit, if it can.

        Consecutive erasures may be combined. If a change is a function, it receives the old value as a source, under
        the lock of the key, and returns the new value, `InPlace`, or None to erase the key.
        """
        for is_erasure, group in itertools.groupby(changes, key=lambda item: item[1] is None):
            if is_erasure:
                threads.run(self._change_one, group, 0, None if holds_locks() else place_of(self))
            else:
                for item in group:
                    self._change_one(item)

    def _change_one(self, item: tuple[str, Change]) -> None:
        key, change = item
        with self.lock(key):
            if callable(change):
                self._apply(key, change)
            else:
                self._store(key, change)

    def _apply(self, key: str, change: Update) -> None:
        """Replace a value with the result of passing it to `change`. The caller holds the lock of the key."""
        source = self.source(key)
        if isinstance(source, StoredValue):
            source = ValueReadOnce(source)
        try:
            self._store(key, change(source), source)
        finally:
            source.close()

    def _store(self, key: str, new: Value | InPlace | None, old: Source | None = None) -> None:
        if new is None:
            self.erase(key)
        elif isinstance(new, InPlace):
            self.set(key, overwrite(old.read_one() if old else None, new.patches))
        else:
            self.set(key, join(new))

    @final
    def update(self, key: str, fn: Callable[[Buffer | None], Value | None]) -> None:
        """Replace a value atomically with `fn(value)`. None as argument or result stands for a missing value."""
        self.change([(key, lambda source: fn(source.read_one()))])

    @final
    def set_many(self, items: Iterable[tuple[str, Value]]) -> None:
        """Store several values, in order, as `change` does."""
        self.change(items)

    @final
    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        """Overwrite parts of values, each starting at the offset `start`, as `InPlace` does."""
        by_key: dict[str, list[Patch]] = {}
        for key, start, value in key_start_values:
            by_key.setdefault(key, []).append((start, value))
        self.change([(key, lambda source, patches=patches: InPlace(patches)) for key, patches in by_key.items()])  # type: ignore[misc]

    @final
    def erase_values(self, keys: Iterable[str]) -> None:
        """Remove several keys."""
        self.change([(key, None) for key in keys])

    def lock(self, key: str) -> AbstractContextManager[Any]:
        """Return a context that excludes all other writers of this key, at least those in this process."""
        check_key(key)
        return (
            contextlib.nullcontext() if self.read_only else LockContext(Lock(_locks, (*self.location(), key)), key=key)
        )

    # Closing

    def close(self) -> None:  # noqa: B027 - most stores hold nothing open
        """Complete all changes, and close everything that is open. A `with` statement calls this at its end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def place_of(store: Store) -> threads.Place | None:
    """Return the `Place` that limits the concurrent requests to a store.

    Returns None if concurrent requests gain nothing.
    """
    requests = store.limits.concurrency
    if requests is None:
        requests = threads.workers()
    return threads.place(store.location()[0], requests) if requests > 1 else None


def slowest_place(*stores: Store) -> threads.Place | None:
    """Return the `Place` of the store that admits the most concurrent requests. Returns None if no store has one."""
    return max(filter(None, map(place_of, stores)), key=lambda place: place.requests, default=None)


# If a subclass overrides one of the four basic operations (the keys of this table), the operations in its entry revert
# to their defaults, which call the override. `size` does not revert: its default is slow, because it reads whole
# values, and a subclass that changes the sizes of values has to override it in any case.
_BUILT_ON = {
    "get": ("get_partial_values", "source"),
    "set": ("change",),
    "erase": ("change", "erase_prefix"),
    "list": ("list_prefix", "list_dir"),
}


# operations whose exceptions become StoreErrors, and the word after "'key' cannot be" in their messages
_ACTIONS = {
    "get": "read",
    "get_partial_values": "read",
    "size": "read",
    "source": "read",
    "lock": "locked",
    "list": "listed",
    "list_prefix": "listed",
    "list_dir": "listed",
    "set": "written",
    "erase": "erased",
    "erase_prefix": "erased",
}


def _reporting(operation: Callable[..., Any], action: str) -> Callable[..., Any]:
    """Wrap an operation of a store so that all its exceptions become errors of this library."""

    @functools.wraps(operation)
    def reporting(self: Store, *args: Any, **keywords: Any) -> Any:
        named = next(iter((*args, *keywords.values())), "")
        try:
            found = operation(self, *args, **keywords)
        except ZarrliteError:
            raise
        except Exception as error:
            raise foreign_error(error, named, action) from error
        if action == "listed" and isinstance(found, Iterator):
            return _listed(found, named, action)
        return found

    return reporting


def _reporting_source(operation: Callable[..., Source]) -> Callable[..., Source]:
    """Wrap `source` so that exceptions of a user's sources become errors of this library.

    A `StoredValue` is returned unchanged.
    """

    @functools.wraps(operation)
    def source(self: Store, key: str) -> Source:
        found = operation(self, key)
        return found if isinstance(found, StoredValue) else reporting_source(found, key)

    return source


def _reporting_change(operation: Callable[..., None]) -> Callable[..., None]:
    """Wrap `change` so that its exceptions become errors of this library, except those of functions passed to it."""

    @functools.wraps(operation)
    def change(self: Store, changes: Iterable[tuple[str, Change]]) -> None:
        seen: list[Any] = []
        passed: list[Exception] = []

        def watched(make: Callable[..., Any]) -> Callable[..., Any]:
            def watch(*args: Any) -> Any:
                try:
                    return make(*args)
                except Exception as error:
                    passed.append(error)
                    raise

            return watch

        def each() -> Iterator[tuple[str, Change]]:
            remaining = iter(changes)
            following = watched(lambda: next(remaining, None))
            while (item := following()) is not None:
                seen.append((item[0],))
                yield (item[0], watched(item[1])) if callable(item[1]) else item

        try:
            operation(self, [*each()] if isinstance(changes, list) else each())
        except ZarrliteError:
            raise
        except Exception as error:
            if any(error is one for one in passed):
                raise
            raise foreign_error(error, seen or "", "written") from error

    return change


def _listed(keys: Iterator[str], named: str, action: str) -> Iterator[str]:
    try:
        yield from keys
    except ZarrliteError:
        raise
    except Exception as error:
        raise foreign_error(error, named, action) from error


def _exclusive(store_value: Callable[..., Any]) -> Callable[..., bool]:
    """Return a `set` method with the parameter `new`: the given one, or a wrapper if it lacks this parameter."""
    code = getattr(store_value, "__code__", None)
    if code is None or "new" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return store_value

    @functools.wraps(store_value)
    def exclusive(self: Store, key: str, value: Buffer, new: bool = False) -> bool:
        if new:
            return set_under_lock(self, key, value)
        store_value(self, key, value)
        return True

    return exclusive


def set_under_lock(store: Store, key: str, value: Buffer) -> bool:
    """Store a value if the key does not exist. Returns whether it was stored.

    The key is looked up and written under its lock, which makes this atomic with respect to other threads, and to other
    processes if the lock of the store excludes them.
    """
    with store.lock(key):
        if store.size(key) is not None:
            return False
        return store.set(key, value)


class StoredValue(Source):
    """A value that every read looks up by its key. It may change between reads."""

    by_key = True  # each read is a separate request, so one large read is preferred to two small ones

    def __init__(self, store: Store, key: str) -> None:
        self.store = store
        self.key = key

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        found: Any = self.store.get_partial_values([(self.key, byte_range) for byte_range in ranges], memory)
        return None if None in found else found

    def size(self) -> int | None:
        return self.store.size(self.key)

    @staticmethod
    def read_all(requests: Sequence[tuple[Any, ByteRange]], memory: memoryview | None = None) -> Buffers:
        """Read parts of several values in one store, in the order of the requests; None stands for a missing value."""
        store: Store = requests[0][0].store
        return store.get_partial_values([(source.key, byte_range) for source, byte_range in requests], memory)


class ValueReadOnce(Source):
    """A value that is read completely on first use, so that a change applies to the bytes it was computed from."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: InMemory | None = None

    @property
    def was_read(self) -> bool:
        """Whether the value has been read."""
        return self._found is not None

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        if self._found is None:
            self._found = InMemory(self._source.read_one())
        return self._found.read(ranges)


def read_together(requests: Iterable[tuple[Source, ByteRange]], memory: memoryview | None = None) -> Buffers:
    """Read parts of several sources, in the order of the requests; None stands for a missing value.

    Values that are read by key are requested with one call per store; other sources are read one by one.
    """
    found: Buffers = []
    by_store: dict[int, list[tuple[int, StoredValue, ByteRange]]] = {}
    for i, (source, byte_range) in enumerate(requests):
        if isinstance(source, StoredValue):
            by_store.setdefault(id(source.store), []).append((i, source, byte_range))
            found.append(None)
        else:
            found.append(source.read_one(byte_range))
    for values in by_store.values():
        answers = values[0][1].read_all([(source, byte_range) for _, source, byte_range in values], memory)
        memory = None  # used only for the first store, because later results would overwrite it
        for (i, _, _), answer in zip(values, answers, strict=True):
            found[i] = answer
    return found


def check_key(key: str) -> str:
    """Return the key. Raises KeyRefusedError if it has empty segments, `.`, `..`, NUL or a backslash."""
    if not all(map(str.isalnum, key.split("/"))) and _BAD_KEY(key):  # the first check is fast and usually sufficient
        raise KeyRefusedError(
            f"{key!r} is not a key: segments must not be empty, '.' or '..', and must not contain NUL or '\\'"
        )
    return key


def check_prefix(prefix: str) -> str:
    """Return the prefix. Raises KeyRefusedError unless it is empty or a key followed by `/`."""
    if prefix and (not prefix.endswith("/") or _BAD_KEY(prefix[:-1])):
        raise KeyRefusedError(f"{prefix!r} is not a prefix: it must be empty, or a key followed by '/'")
    return prefix


def flat(value: Buffer) -> memoryview:
    """Return a value as contiguous single bytes, regardless of the item size and strides of the buffer."""
    view = memoryview(value)
    if view.ndim == 1 and view.format == "B" and view.contiguous:
        return view
    return view.cast("B") if view.nbytes and view.c_contiguous else memoryview(view.tobytes())


def overwrite(old: Buffer | None, patches: Iterable[Patch]) -> bytearray:
    """Return a value with patches applied. It grows as needed; gaps are filled with zeros."""
    value = bytearray(b"" if old is None else old)
    for start, piece in ((start, flat(piece)) for start, piece in patches):
        if not 0 <= start < _MAX_BYTES:
            raise StoreError(f"a partial value must start at an offset from 0 to {_MAX_BYTES - 1}, not at {start}")
        if len(value) < start + len(piece):
            value.extend(bytes(start + len(piece) - len(value)))
        value[start : start + len(piece)] = piece
    return value
