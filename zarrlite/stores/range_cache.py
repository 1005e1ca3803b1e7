"""Caches of byte ranges of values, in memory or in a directory that several processes share.

Rules
- All cached ranges of a key belong to one version of its value. Storing a range of another version drops all ranges
  of the previous one. A version consists of a tag and the size of the value.
- A cache never holds more than `max_bytes`. The ranges that were used least recently are dropped first.
- `generation(key)` changes whenever a key is dropped. A range is stored only if the generation is still the same as
  before the range was read, so that a reader never stores a value that a writer has replaced in the meantime.
- In a directory, each range is a file that is renamed into place, and contains a checksum of the key, the file name and
  the data. An incomplete, damaged or moved file is therefore never served, but removed. Ranges are stored and dropped
  under the lock of the directory. The file `state` contains the total number of stored bytes, and a generation for each
  of `_SLOTS` groups of keys.
- If a range cannot be read from a directory, or stored in it, this is not an error: it only costs another request to
  the store. Failing to drop a key is an error.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import struct
import time
import uuid
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from zarrlite.errors import ArgumentError, StoreError
from zarrlite.guard import Guard
from zarrlite.libraries.crc32c import checksum
from zarrlite.stores.locks import LOCK_TIMEOUT

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_MAGIC = b"zlcache1"
_HEADER = struct.Struct("<8sI")  # magic, checksum
_TOTAL = struct.Struct("<q")
_SLOTS = 1024  # number of groups of keys; all keys of a group have the same generation
_STATE_BYTES = _TOTAL.size * (_SLOTS + 1)
_STORE_SECONDS = 1.0  # seconds; a range is not stored if the lock of the directory is not free within this time
_PAUSE = 0.001  # seconds; pause between two attempts to lock the directory
_STALE_SECONDS = 3600.0  # seconds; older temporary files were left behind by killed processes
_MAX_KNOWN = 2**14  # maximum number of keys whose version a process remembers


class Version(NamedTuple):
    """A version of a value, as created by `version_of` or `new_version`."""

    tag: str  # hexadecimal digits, because it is part of a file name
    size: int  # bytes of the whole value


def version_of(tag: str, size: int) -> Version:
    """Return the version with this `tag`: an ETag, or another text that identifies the version of a value."""
    return Version(hashlib.sha256(tag.encode(errors="surrogatepass")).hexdigest()[:32], size)


def new_version(size: int) -> Version:
    """Return a version that differs from all others."""
    return Version(uuid.uuid4().hex, size)


Span = tuple[int, int]  # start and stop of a range that is not empty and is within the value


class RangeCache(ABC):
    """A cache of ranges of values, by key. Several threads may use it at the same time."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes

    @abstractmethod
    def version(self, key: str) -> Version | None:
        """Return the version whose ranges are cached. Returns None if no range of the key is cached."""

    @abstractmethod
    def find(self, key: str, version: Version, span: Span) -> bytes | memoryview | None:
        """Return a cached range of this version of a value. Returns None if the range is not cached."""

    @abstractmethod
    def generation(self, key: str) -> int:
        """Return a number that changes whenever the key is dropped."""

    @abstractmethod
    def store(self, key: str, generation: int, version: Version, span: Span, data: bytes) -> None:
        """Cache a range that was read after `generation` was obtained, unless the key has been dropped since."""

    @abstractmethod
    def drop(self, keys: Iterable[str]) -> None:
        """Drop all ranges of these keys."""


_in_memory: weakref.WeakSet[MemoryCache] = weakref.WeakSet()


class MemoryCache(RangeCache):
    """A cache in the memory of this process."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes)
        self._generations = [0] * _SLOTS
        self._clear()
        _in_memory.add(self)

    def _clear(self) -> None:
        self._lock = Guard()
        self._ranges: OrderedDict[tuple[str, Span], bytes] = OrderedDict()  # least recently used first
        self._keys: dict[str, tuple[Version, dict[Span, None]]] = {}
        self._total = 0

    def version(self, key: str) -> Version | None:
        found = self._keys.get(key)
        return None if found is None else found[0]

    def find(self, key: str, version: Version, span: Span) -> bytes | memoryview | None:
        with self._lock:
            stored, spans = self._keys.get(key, (None, {}))
            outer = _containing(span, version, spans) if stored == version else None
            if outer is None:
                return None
            data = self._ranges.get((key, outer))
            if data is None:
                return None
            self._ranges.move_to_end((key, outer))
            return _part(data, outer, span)

    def generation(self, key: str) -> int:
        return self._generations[_slot(key)]

    def store(self, key: str, generation: int, version: Version, span: Span, data: bytes) -> None:
        with self._lock:
            if generation != self._generations[_slot(key)] or len(data) > self.max_bytes:
                return
            if self.version(key) != version:
                self._remove(key)
                self._keys[key] = version, {}
            spans = self._keys[key][1]
            if span not in spans:
                spans[span] = None
                self._ranges[key, span] = data
                self._total += len(data)
            self._shrink()

    def _shrink(self) -> None:
        while self._total > self.max_bytes and self._ranges:
            (key, oldest), dropped = self._ranges.popitem(last=False)
            self._total -= len(dropped)
            left = self._keys[key][1]
            left.pop(oldest, None)
            if not left:
                del self._keys[key]

    def drop(self, keys: Iterable[str]) -> None:
        with self._lock:
            for key in keys:
                self._generations[_slot(key)] += 1
                self._remove(key)

    def _remove(self, key: str) -> None:
        for span in self._keys.pop(key, (None, {}))[1]:
            self._total -= len(self._ranges.pop((key, span), b""))


def _clear_caches() -> None:
    for cache in _in_memory:
        cache._clear()


if hasattr(os, "register_at_fork"):  # another thread may have been changing a cache at the time of the fork
    os.register_at_fork(after_in_child=_clear_caches)


class DirectoryCache(RangeCache):
    """A cache in a directory, which other processes may use at the same time."""

    def __init__(self, path: str, max_bytes: int, origin: str | None) -> None:
        super().__init__(max_bytes)
        if fcntl is None:
            raise ArgumentError("cache must be None: this system cannot share a directory between processes")
        self.path = path
        self._known: dict[str, Version] = {}
        self._counter = itertools.count()
        try:
            os.makedirs(os.path.join(path, "new"), exist_ok=True)
            self._check_origin(origin)
            with self._locked(LOCK_TIMEOUT) as state:
                self._set_total(state, self._evict(max_bytes))
        except OSError as error:
            raise StoreError(f"the cache directory {path!r} cannot be used: {error}", errno=error.errno) from error

    def _check_origin(self, origin: str | None) -> None:
        """Refuse a directory that contains values of another store."""
        name = os.path.join(self.path, "origin")
        text = f"{_MAGIC.decode()}\n{origin}\n".encode()
        try:
            with open(name, "xb") as file:
                file.write(text)
        except FileExistsError:
            with open(name, "rb") as file:
                stored = file.read()
            if stored and origin is not None and stored != text:
                raise ArgumentError(
                    f"cache must be a directory for one store, but {self.path!r} contains values of "
                    f"{stored.decode(errors='replace').strip().rpartition(chr(10))[2]}"
                ) from None

    # Files

    def _folder(self, key: str) -> str:
        digest = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
        return os.path.join(self.path, digest[:2], digest[2:40])

    def version(self, key: str) -> Version | None:
        known = self._known.get(key)
        if known is not None and os.path.isdir(self._folder(key)):
            return known
        for name in _names(self._folder(key)):
            version, _ = _parse(name)
            if version is not None:
                return self._remember(key, version)
        return None

    def _remember(self, key: str, version: Version) -> Version:
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[key] = version
        return version

    def find(self, key: str, version: Version, span: Span) -> bytes | memoryview | None:
        folder = self._folder(key)
        for outer in (span, (0, version.size)):
            data = self._read(key, folder, version, outer)
            if data is not None:
                return _part(data, outer, span)
        spans = [outer for found, outer in map(_parse, _names(folder)) if found == version]
        if not spans:
            self._known.pop(key, None)  # another process has dropped or replaced it
            return None
        found = _containing(span, version, dict.fromkeys(spans))
        data = None if found is None else self._read(key, folder, version, found)
        return None if found is None or data is None else _part(data, found, span)

    def _read(self, key: str, folder: str, version: Version, span: Span) -> bytes | None:
        """Return the content of a file. Returns None if the file is missing, or was damaged and has been removed."""
        name = _name(version, span)
        path = os.path.join(folder, name)
        try:
            with open(path, "rb", buffering=0) as file:
                content = file.read(_HEADER.size + span[1] - span[0] + 1)
            now = time.time_ns()
            os.utime(path, ns=(now, now))
        except OSError:
            return None
        data = content[_HEADER.size :]
        header = _HEADER.pack(_MAGIC, _checksum(key, name, data))
        if content[: _HEADER.size] == header and len(data) == span[1] - span[0]:
            return data
        with contextlib.suppress(OSError):
            os.unlink(path)  # its bytes are counted in the total until the next eviction
        return None

    def store(self, key: str, generation: int, version: Version, span: Span, data: bytes) -> None:
        if len(data) + _HEADER.size > self.max_bytes:
            return
        folder, name = self._folder(key), _name(version, span)
        temporary = os.path.join(self.path, "new", f"{os.getpid()}.{id(self)}.{next(self._counter)}")
        try:
            with open(temporary, "xb", buffering=0) as file:
                file.write(_HEADER.pack(_MAGIC, _checksum(key, name, data)))
                file.write(data)
            with self._locked(_STORE_SECONDS) as state:
                self._add(state, key, generation, version, temporary, os.path.join(folder, name), len(data))
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def _add(
        self, state: int, key: str, generation: int, version: Version, temporary: str, path: str, nbytes: int
    ) -> None:
        """Move a file into place and make room for it. The caller holds the lock of the directory."""
        folder = os.path.dirname(path)
        if self._generation(state, key) != generation or os.path.exists(path):
            return
        total = self._total(state)
        others = [name for name in _names(folder) if _parse(name)[0] != version]
        total -= _remove(folder, others)
        total += nbytes + _HEADER.size
        if total > self.max_bytes:
            total = self._evict(self.max_bytes - self.max_bytes // 10 - nbytes - _HEADER.size)
            total += nbytes + _HEADER.size
        # before the file is renamed, so that after a crash the total may be too high, but never too low
        self._set_total(state, total)
        os.makedirs(folder, exist_ok=True)
        os.replace(temporary, path)
        self._remember(key, version)

    def drop(self, keys: Iterable[str]) -> None:
        try:
            with self._locked(LOCK_TIMEOUT) as state:
                for key in keys:
                    offset = _TOTAL.size * (1 + _slot(key))
                    os.pwrite(state, _TOTAL.pack(self._generation(state, key) + 1), offset)
                    folder = self._folder(key)
                    removed = _remove(folder, _names(folder), must=True)
                    if removed:
                        self._set_total(state, self._total(state) - removed)
                    with contextlib.suppress(OSError):
                        os.rmdir(folder)
                    self._known.pop(key, None)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            message = f"the cache directory {self.path!r} cannot be changed, and may be out of date: {error}"
            raise StoreError(message, errno=error.errno) from error

    def _evict(self, target: int) -> int:
        """Remove the files that were used least recently until at most `target` bytes are left.

        Returns how many bytes are left. Also removes leftovers of killed processes.
        """
        entries: list[tuple[int, int, str]] = []
        for folder in _subfolders(self.path):
            for below in _subfolders(folder):
                with contextlib.suppress(OSError), os.scandir(below) as found:
                    for entry in found:
                        status = entry.stat(follow_symlinks=False)
                        entries.append((status.st_mtime_ns, status.st_size, entry.path))
        new = os.path.join(self.path, "new")
        for name in _names(new):
            with contextlib.suppress(OSError):
                if time.time() - os.stat(os.path.join(new, name)).st_mtime > _STALE_SECONDS:
                    os.unlink(os.path.join(new, name))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= target:
                break
            os.unlink(path)
            total -= size
            with contextlib.suppress(OSError):  # the folder is not empty
                os.rmdir(os.path.dirname(path))
        return total

    # State

    @contextlib.contextmanager
    def _locked(self, seconds: float) -> Iterator[int]:
        """Lock the directory against other threads and processes. Yields the descriptor of the state file.

        Each call opens its own descriptor, so that the lock also excludes other threads and forked children.
        """
        end = time.monotonic() + seconds
        with self._open_state() as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        raise OSError(errno.EAGAIN, "its lock is not free") from None
                    time.sleep(_PAUSE)
            yield file.fileno()

    def _open_state(self) -> IO[bytes]:
        path = os.path.join(self.path, "state")
        file = open(path, "r+b", buffering=0, opener=_create)  # noqa: SIM115 - the caller closes it
        if os.fstat(file.fileno()).st_size < _STATE_BYTES:
            os.truncate(file.fileno(), _STATE_BYTES)
        return file

    def generation(self, key: str) -> int:
        try:
            with self._open_state() as file:
                return self._generation(file.fileno(), key)
        except OSError:
            return -1  # differs from all generations in the file, so nothing will be stored

    @staticmethod
    def _generation(state: int, key: str) -> int:
        (number,) = _TOTAL.unpack(os.pread(state, _TOTAL.size, _TOTAL.size * (1 + _slot(key))))
        return int(number)

    @staticmethod
    def _total(state: int) -> int:
        (number,) = _TOTAL.unpack(os.pread(state, _TOTAL.size, 0))
        return int(number)

    @staticmethod
    def _set_total(state: int, total: int) -> None:
        os.pwrite(state, _TOTAL.pack(total), 0)


def _create(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o666)


def _name(version: Version, span: Span) -> str:
    return f"{version.tag}.{version.size}.{span[0]}.{span[1]}"


def _parse(name: str) -> tuple[Version | None, Span]:
    """Return the version and the span in a file name. The version is None if the file does not belong to the cache."""
    try:
        tag, size, start, stop = name.split(".")
        return Version(tag, int(size)), (int(start), int(stop))
    except ValueError:
        return None, (0, 0)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _subfolders(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in _names(folder) if "." not in name and name != "new"]


def _remove(folder: str, names: Iterable[str], must: bool = False) -> int:
    """Remove files in a folder. Returns their total size. With `must`, raises OSError if a file cannot be removed."""
    removed = 0
    for name in names:
        path = os.path.join(folder, name)
        try:
            size = os.stat(path).st_size
            os.unlink(path)
            removed += size
        except FileNotFoundError:
            pass
        except OSError:
            if must:
                raise
    return removed


def _checksum(key: str, name: str, data: bytes) -> int:
    return checksum(data, checksum(f"{key}\0{name}\0".encode(errors="surrogatepass")))


def _slot(key: str) -> int:
    """Return the number of a key's group. This number is the same in all processes."""
    return checksum(key.encode(errors="surrogatepass")) % _SLOTS


def _containing(span: Span, version: Version, spans: dict[Span, None]) -> Span | None:
    """Return the cached span that contains `span`. Returns None if none does."""
    for outer in (span, (0, version.size)):
        if outer in spans:
            return outer
    return next((outer for outer in spans if outer[0] <= span[0] and span[1] <= outer[1]), None)


def _part(data: bytes, outer: Span, span: Span) -> bytes | memoryview:
    return data if outer == span else memoryview(data)[span[0] - outer[0] : span[1] - outer[0]]
