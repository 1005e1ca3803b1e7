"""A zip file as a store: a key is the name of an entry.

Rules
- A file is read in byte ranges: first its end, which contains the directory (zip_format.py), then headers of entries.
  A header is read together with the value or, if only parts of the value are needed, before these parts. A zip file in
  another store is read-only, but takes few requests to read.
- Values are written uncompressed to a draft, a temporary file next to the zip file. When the store is closed, the
  current entries, compressed or not, are copied to another temporary file, which is synced and renamed to the zip file.
  If the draft contains exactly these entries, it is renamed instead. Until the rename, the old file is unchanged.
- A lock file excludes other writers from the first change until the store is closed. Readers take no locks, and
  continue to read the file that they opened even if it is replaced.
- A writer that is still open when the program exits is closed. A forked child cannot use or close it.
- A file whose name ends in `.ozx` follows RFC-9 of OME-NGFF: zip64, no compression, documents first, a comment with the
  version.
"""

from __future__ import annotations

import atexit
import bisect
import contextlib
import errno
import itertools
import json
import math
import os
import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence
from time import monotonic
from types import TracebackType
from typing import Any, Literal, NamedTuple

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import Source
from zarrlite.errors import ArgumentError, DataError, ReadOnlyError, StoreError, TruncatedError, ZarrliteError
from zarrlite.guard import Guard
from zarrlite.names import DOCUMENT
from zarrlite.stores import files, zip_format
from zarrlite.stores.base import Buffers, Limits, Request, Store, WrongSizeError, check_key, check_prefix, flat
from zarrlite.stores.lock_file import LockFile
from zarrlite.stores.open_file import OpenFile
from zarrlite.stores.store_errors import as_store_error, store_error
from zarrlite.stores.zip_format import DEFLATED, STORED, Entry
from zarrlite.tuning import COPY_BLOCK_BYTES, NEAR_CHUNK_BYTES

ZipSource = str | os.PathLike[str] | tuple[Store, str]
Mode = Literal["r", "a", "w"]

_MAX_EXTRA_BYTES = 64  # bytes; if the extra fields of a header are longer, the value is read by another request
_LOCK_SECONDS = 0.2  # seconds to wait for another writer; enough to remove the lock of a killed writer
_CREATE = files.CREATE & ~os.O_WRONLY | os.O_RDWR


class ZipStore(Store):
    """A store in a zip file. Only one program at a time may write to the file.

    Changes reach the file when the store is closed, not before. Use the store in a `with` statement, which closes it;
    after an exception, the file stays as it was.

    Parameters
    ----------
    source : str, os.PathLike or (Store, str)
        The path of the file; or a store and the key of a zip file in that store, which can only be read.
    mode : {"r", "a", "w"}, optional
        "r": read an existing file. "a": read and change a file, which is created if it is missing. "w": create a file,
        or replace an existing one.
    read_only : bool or None, optional
        Accepted for compatibility with zarr-python; it must agree with `mode`.

    Raises
    ------
    DataError
        If the file is not a zip file, is damaged, or is not safe to read.
    StoreError
        If the file cannot be read, or if another program is writing to it.

    Examples
    --------
    >>> import tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> with ZipStore(f"{directory.name}/a.zip", mode="w") as store:
    ...     _ = store.set("a/b", b"0123")
    >>> with ZipStore(f"{directory.name}/a.zip") as store:
    ...     list(store.list()), bytes(store.get("a/b", ByteRange(1, 3)))
    (['a/b'], b'12')
    >>> directory.cleanup()
    """

    limits = Limits(concurrency=1)

    def __init__(self, source: ZipSource, *, mode: Mode = "r", read_only: bool | None = None) -> None:
        if read_only is not None and read_only != (mode == "r"):
            raise ArgumentError(f"read_only must be {mode == 'r'} with mode={mode!r}, not {read_only!r}")
        if mode not in ("r", "a", "w"):
            raise ArgumentError(f"mode must be 'r', 'a' or 'w', not {mode!r}")
        self._given: str | tuple[Store, str]
        self._path = ""  # with symlinks resolved; empty if the file is in a store
        if isinstance(source, tuple):
            self._given = _check_pair(source, mode)
            self.limits = self._given[0].limits
        else:
            self._given = os.path.abspath(_check_path(os.fsdecode(source)))
            self._path = os.path.realpath(self._given)
        self._mode: Mode = mode
        self.read_only = mode == "r"
        self._guard = Guard()
        self._state: _State | None = _State({}, b"", None)
        self._writer: _Writer | None = None
        if mode == "w":
            self._begin()
        else:
            self._state = self._load()

    def __repr__(self) -> str:
        return f"ZipStore({self._given!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._writer is not None:
            message = f"{self!r} must not be pickled while it is being written; close it, and open it for reading"
            raise StoreError(message)
        self._current()
        return _reopen, (type(self), self._given, self._mode)

    # Opening and closing

    def _load(self) -> _State:
        """Read the directory. For a writer, a missing file counts as empty; for a reader, it is an error."""
        file = _File(self._open_source())
        try:
            found = zip_format.read_directory(file.source)
        except DataError as error:
            file.source.close()
            raise type(error)(f"{self!r} {error.message}") from None
        if found is not None:
            return _State({key: _Member(file, entry) for key, entry in found.entries.items()}, found.comment, file)
        if self.read_only:
            raise StoreError(f"{self!r} does not exist", errno=errno.ENOENT)
        return _State({}, b"", None)

    def _open_source(self) -> Source:
        if isinstance(self._given, tuple):
            store, key = self._given
            return store.source(key)
        return OpenFile(os.path.basename(self._path), self._path, lambda _: _open(self._path))

    def _current(self) -> _State:
        """Return the entries. Raises StoreError if the store is closed, or was a writer when the process was forked."""
        state = self._state
        if state is None:
            raise StoreError(f"{self!r} is closed; open it again")
        return state

    def _begin(self) -> _Writer:
        """Return the writer; the first call locks the file, and reads it again if it has changed."""
        file = self._current().file
        if self._writer is None:
            writer = _Writer(self._path)
            try:
                is_absent = file is None and not os.path.lexists(self._path)
                is_current = file is not None and file.source.is_current()
                if self._mode == "a" and not (is_absent or is_current):
                    self._state = self._load()
            except BaseException:
                writer.discard()
                raise
            self._writer = writer
            _open_writers.add(self)
        return self._writer

    def close(self) -> None:
        """Write all changes to the file and close it. A closed store cannot be used; closing it again has no effect."""
        with self._guard if self._state is not None else contextlib.nullcontext():
            state, writer = self._state, self._writer
            if state is not None and writer is not None:
                with as_store_error("written", self._path):
                    writer.commit(self._ordered(state), self._comment(state), ozx=self._is_ozx)
            self._end()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        with self._guard if self._state is not None else contextlib.nullcontext():
            if self._writer is not None:
                self._writer.discard()
            self._end()

    def _end(self) -> None:
        state, self._state, self._writer = self._state, None, None
        _open_writers.discard(self)
        if state is not None and state.file is not None:
            state.file.source = _ClosedSource()

    def _disown(self) -> None:
        """Make a writer unusable in a forked child: the parent closes it."""
        if self._writer is not None:
            self._writer.forget()
        self._state = self._writer = None

    @property
    def _is_ozx(self) -> bool:
        return self._path.lower().endswith(".ozx")

    def _ordered(self, state: _State) -> Sequence[_Member]:
        """Return the entries in the order in which they are written: those of the zip file, then those of the draft."""
        members = sorted(
            state.members.values(), key=lambda member: (member.file is not state.file, member.entry.offset)
        )
        if self._is_ozx:
            # RFC-9, OME-Zarr zip files: zarr.json files first, "in breadth-first order"
            members.sort(key=lambda member: _document_order(member.entry.key))
        return members

    def _comment(self, state: _State) -> bytes:
        """Return the comment of the file. In an `.ozx` file, it contains the OME-Zarr version (RFC-9)."""
        if not self._is_ozx:
            return state.comment
        try:
            document = json.loads(bytes(self.get(DOCUMENT) or b""))
            version = document["attributes"]["ome"]["version"]
        except (ValueError, LookupError, TypeError, RecursionError):
            version = None
        if not isinstance(version, str):
            return b""
        ome = {"version": version, "zipFile": {"centralDirectory": {"jsonFirst": True}}}
        return json.dumps({"ome": ome}).encode()

    # Reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.get_partial_values([(key, byte_range)])[0]

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        members = self._current().members
        found: Buffers = [None] * len(requests)
        by_file: dict[_File, list[tuple[int, Entry, tuple[int, int]]]] = {}
        for i, request in enumerate(requests):
            member = members.get(check_key(request[0]))
            if member is None:
                continue
            size = member.entry.size
            if len(request) > 2 and request[2] not in (None, size):
                raise WrongSizeError(size, request[2])
            by_file.setdefault(member.file, []).append((i, member.entry, request[1].resolve(size)))
        for file, wanted in by_file.items():
            room = memory if len(by_file) == 1 else None
            values = file.read([(entry, part) for _, entry, part in wanted], room)
            for (i, _, _), value in zip(wanted, values, strict=True):
                found[i] = value
        return found

    def size(self, key: str) -> int | None:
        member = self._current().members.get(check_key(key))
        return None if member is None else member.entry.size

    def source(self, key: str) -> Source:
        return _Value(self, check_key(key))

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        if isinstance(self._given, tuple):
            store, key = self._given
            return store.location(f"{key}/{prefix}")
        return "file", f"{self._path}/{prefix}"

    # Listing

    def list(self) -> Iterator[str]:
        return iter(self._current().keys())

    def list_prefix(self, prefix: str) -> Iterator[str]:
        keys = self._current().keys()
        if not check_prefix(prefix):
            return iter(keys)
        after = prefix[:-1] + chr(ord("/") + 1)  # sorts after all keys that start with the prefix
        return iter(keys[bisect.bisect_left(keys, prefix) : bisect.bisect_left(keys, after)])

    # Writing

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        self._check_writable()
        entry = zip_format.new_entry(check_key(key), flat(value), 0)
        with self.lock(key), self._guard:
            writer = self._begin()
            state = self._current()
            if new and key in state.members:
                return False
            with as_store_error("written", key):
                entry = writer.draft.append(entry, [flat(value)], zip64=self._is_ozx)
            state.put(key, _Member(writer.draft, entry))
        return True

    def erase(self, key: str) -> None:
        self._check_writable()
        with self.lock(key), self._guard:
            if key in self._current().members:
                self._begin()
                self._current().remove(key)

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError(f"{self!r} was opened for reading only")
        self._current()  # checked before acquiring a lock, because a lock may never be released in a forked child


class _Member(NamedTuple):
    """An entry, and the file that contains its value."""

    file: _File
    entry: Entry


class _State:
    """The entries of an open store."""

    def __init__(self, members: dict[str, _Member], comment: bytes, file: _File | None) -> None:
        self.members = members
        self.comment = comment
        self.file = file  # the zip file, if it exists
        self._keys: list[str] | None = None

    def put(self, key: str, member: _Member) -> None:
        if key not in self.members:
            self._keys = None
        self.members[key] = member

    def remove(self, key: str) -> None:
        self._keys = None
        self.members.pop(key, None)

    def keys(self) -> list[str]:
        """Return all keys, sorted. The list is never changed."""
        keys = self._keys
        if keys is None:
            keys = self._keys = sorted([*self.members])
        return keys


class _File:
    """A file with entries: the zip file, or the draft of a writer."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.starts: dict[int, int] = {}  # offset of an entry -> start of its value, if that is known
        # without `pread`, all threads share the file position
        self._guard: Any = contextlib.nullcontext() if hasattr(os, "pread") else Guard()

    def read(self, wanted: Sequence[tuple[Entry, tuple[int, int]]], memory: memoryview | None = None) -> list[Buffer]:
        """Read parts of values, in one round of requests, or in two if the headers of large values must be read first.

        The checksums of values that are read as a whole are verified.
        """
        stored = self._read_first(wanted)
        ranges = [self._range(entry, part) for entry, part in wanted if entry.offset not in stored]
        answers = iter(self._request(ranges, None if stored else memory))
        decoded: dict[int, Buffer] = {}
        found: list[Buffer] = []
        for entry, part in wanted:
            data = stored[entry.offset] if entry.offset in stored else next(answers)
            if entry.method == STORED and entry.offset not in stored and part != (0, entry.size):
                found.append(data)
                continue
            if entry.offset not in decoded:
                decoded[entry.offset] = zip_format.decode(data, entry)
            found.append(ByteRange(*part).of(decoded[entry.offset]))
        return found

    def stored_blocks(self, entry: Entry) -> Iterator[Buffer]:
        """Yield the stored bytes of a value, without decoding them."""
        self._read_first([(entry, (0, 0))], headers_only=True)
        start = self.starts[entry.offset]
        for low in range(start, start + entry.stored, COPY_BLOCK_BYTES):
            yield self._request([ByteRange(low, min(low + COPY_BLOCK_BYTES, start + entry.stored))])[0]

    def _read_first(
        self, wanted: Sequence[tuple[Entry, tuple[int, int]]], *, headers_only: bool = False
    ) -> dict[int, Buffer]:
        """Read the headers that have not been read yet, each with its value if that is small or needed as a whole.

        Returns the stored values that were read, keyed by the offset of the entry.
        """
        with_values: dict[Entry, bool] = {}
        for entry, part in wanted:
            if entry.offset not in self.starts:
                is_whole = entry.method == DEFLATED or part == (0, entry.size) or entry.stored <= NEAR_CHUNK_BYTES
                with_values[entry] = with_values.get(entry, False) or (is_whole and not headers_only)
        ranges = []
        for entry, with_value in with_values.items():
            size = zip_format.header_size(entry) + (entry.stored + _MAX_EXTRA_BYTES if with_value else 0)
            ranges.append(ByteRange(entry.offset, min(entry.offset + size, entry.end)))
        found: dict[int, Buffer] = {}
        answers = self._request(ranges)
        for (entry, with_value), answer in zip(with_values.items(), answers, strict=True):
            start = zip_format.value_start(memoryview(answer)[: zip_format.header_size(entry)], entry)
            low = start - entry.offset
            if with_value and low + entry.stored <= len(answer):
                found[entry.offset] = memoryview(answer)[low : low + entry.stored]
            self.starts[entry.offset] = start
        return found

    def _range(self, entry: Entry, part: tuple[int, int]) -> ByteRange:
        """Return the byte range of a part of a value in the file. A deflated value is always read as a whole."""
        start = self.starts[entry.offset]
        low, high = (0, entry.stored) if entry.method == DEFLATED else part
        return ByteRange(start + low, start + high)

    def _request(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer]:
        if not ranges:
            return []
        with self._guard:
            found = self.source.read(ranges, memory)
        if found is None or any(len(data) != stop - start for data, (start, stop) in zip(found, ranges, strict=True)):  # type: ignore[operator]
            raise TruncatedError("the zip file was truncated or removed while it was open")
        return found


class _Value(Source):
    """A value as it was when it was first used."""

    def __init__(self, store: ZipStore, key: str) -> None:
        self._store = store
        self._key = key
        self._member: _Member | None = None
        self._decoded: Buffer | None = None  # a deflated value, which cannot be read in parts

    def _find(self) -> _Member | None:
        members = self._store._current().members  # raises StoreError if the store is closed
        if self._member is None:
            self._member = members.get(self._key)
        return self._member

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        member = self._find()
        if member is None:
            return None
        file, entry = member
        if entry.method == DEFLATED:
            if self._decoded is None:
                (self._decoded,) = file.read([(entry, (0, entry.size))])
            return [byte_range.of(self._decoded) for byte_range in ranges]
        return file.read([(entry, byte_range.resolve(entry.size)) for byte_range in ranges], memory)

    def size(self) -> int | None:
        member = self._find()
        return None if member is None else member.entry.size

    known_size = size

    def is_current(self) -> bool:
        return self._member is None or self._store._current().members.get(self._key) is self._member

    def close(self) -> None:
        self._member = self._decoded = None


class _ClosedSource(Source):
    """The source of a closed file. Reads that are already in progress keep the file open until they are done."""

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        raise StoreError("the zip file was closed while it was being read")


class _OpenDescriptor(Source):
    """A file that is being written."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        found: list[Buffer] = []
        for start, stop in ranges:
            found.append(files.read_into(memory, self.fd, start, stop or 0))
            memory = memory[len(found[-1]) :] if memory is not None else None
        return found


class _Draft(_File):
    """A new file to which entries are appended."""

    def __init__(self, path: str) -> None:
        (fd,) = map(os.open, (path,), (_CREATE,), (0o666,))
        super().__init__(_OpenDescriptor(fd))
        self.path = path
        self.end = 0  # bytes; anything after this offset is from an entry that was not written completely
        self._fd: int | None = fd

    def append(self, entry: Entry, blocks: Iterable[Buffer], *, zip64: bool) -> Entry:
        """Append an entry with its stored bytes. Returns the entry with its offset."""
        header = zip_format.local_header(entry, zip64=zip64)
        start = self.end + len(header)
        entry = entry._replace(offset=self.end, end=start + entry.stored)
        self._write_at(self.end, itertools.chain([header], blocks))
        self.starts[entry.offset] = start
        self.end = entry.end
        return entry

    def append_copy(self, member: _Member, *, zip64: bool, inflate: bool) -> Entry:
        """Append an entry from another file. It is decoded only if it is deflated and `inflate` is set."""
        entry = member.entry._replace(name=zip_format.encode_name(member.entry.key))
        if entry.method == DEFLATED and inflate:
            blocks: Iterable[Buffer] = member.file.read([(member.entry, (0, entry.size))])
            entry = entry._replace(method=STORED, stored=entry.size)
        else:
            blocks = member.file.stored_blocks(member.entry)
        return self.append(entry, blocks, zip64=zip64)

    def _write_at(self, position: int, blocks: Iterable[Buffer]) -> None:
        fd = self._fd
        if fd is None:
            raise StoreError("the zip file is closed")
        for block in blocks:
            with self._guard:
                os.lseek(fd, position, os.SEEK_SET)
                files.write_to(fd, block, fsync=False)
            position += len(block)

    def complete(self, entries: Sequence[Entry], comment: bytes, *, zip64: bool) -> None:
        """Write the directory, and make the file durable."""
        if self._fd is None:
            raise StoreError("the zip file is closed")
        os.ftruncate(self._fd, self.end)
        self._write_at(self.end, [zip_format.directory(entries, self.end, comment, zip64=zip64)])
        os.fsync(self._fd)

    def close(self) -> None:
        fd, self._fd, self.source = self._fd, None, _ClosedSource()
        if fd is not None:
            os.close(fd)


class _Writer:
    """The right to write to a zip file, and the draft of its next version."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = LockFile(path)
        self._name = os.path.basename(self._lock.path)[len(files.LOCK) :]
        try:
            self._lock.acquire(monotonic() + _LOCK_SECONDS)
        except TimeoutError as error:
            raise StoreError(f"{path!r} must have one writer at a time: {error.strerror}", errno=errno.EBUSY) from error
        except OSError as error:
            raise store_error(error, "written", path) from error
        try:
            with as_store_error("written", path):
                self._remove_leftovers()
                self.draft = _Draft(self._temporary())
        except BaseException:
            self._lock.release()
            raise

    def _temporary(self) -> str:
        return f"{files.temporary_name(os.path.dirname(self.path))}.{self._name}"

    def _remove_leftovers(self) -> None:
        """Remove the temporary files of killed writers. This writer holds the lock, so no other writer uses them."""
        directory = os.path.dirname(self.path)
        for name in os.listdir(directory):
            # the name comes after process, count, machine and token: see `files.temporary_name`
            if name.startswith(files.TEMPORARY) and name[len(files.TEMPORARY) :].split(".", 4)[4:] == [self._name]:
                files.discard(os.path.join(directory, name))

    def commit(self, members: Sequence[_Member], comment: bytes, *, ozx: bool) -> None:
        """Replace the zip file with one that has these entries, in this order. May be called again if it fails."""
        target = self.draft
        try:
            if self._is_complete(members):
                entries = [member.entry for member in members]
            else:
                target = _Draft(self._temporary())
                entries = [target.append_copy(member, zip64=ozx, inflate=ozx) for member in members]
            target.complete(entries, comment, zip64=ozx)
            if os.name == "nt":  # pragma: no cover - Windows does not rename open files
                target.close()
            os.replace(target.path, self.path)
        except BaseException:
            if target is not self.draft:
                target.close()
                files.discard(target.path)
            raise
        target.close()
        self.discard()
        files.sync_directory(os.path.dirname(self.path))

    def _is_complete(self, members: Sequence[_Member]) -> bool:
        """Whether the draft contains these entries in this order, and nothing else."""
        position = 0
        for file, entry in members:
            if file is not self.draft or entry.offset != position:
                return False
            position = entry.end
        return position == self.draft.end

    def discard(self) -> None:
        """Remove the draft, if it was not renamed, and give up the right to write."""
        self.draft.close()
        files.discard(self.draft.path)
        self._lock.release()

    def forget(self) -> None:
        """Close the draft in a forked child. The parent still has the right to write."""
        self.draft.close()


def _check_pair(source: tuple[Store, str], mode: str) -> tuple[Store, str]:
    """Check the store and the key of a zip file in a store, and return them."""
    if len(source) != 2 or not isinstance(source[0], Store) or not isinstance(source[1], str):
        raise ArgumentError("source must be a path, or a store and a key")
    if mode != "r":
        remedy = "write a local zip file, then set its bytes as the value of the key"
        raise ArgumentError(f"mode must be 'r' for a zip file in a store, not {mode!r}; {remedy}")
    return source[0], check_key(source[1])


def _check_path(path: str) -> str:
    if not path or "\0" in path or os.path.isdir(path):
        raise ArgumentError(f"source must be the path of a file, not {path!r}")
    return path


def _document_order(key: str) -> tuple[float, str]:
    """Return the sort rank of a key: documents come first, ordered by depth."""
    return (key.count("/"), key) if f"/{key}".endswith(f"/{DOCUMENT}") else (math.inf, "")


def _open(path: str) -> int | None:
    """Open a file for reading. Returns None if it does not exist."""
    try:
        (fd,) = map(os.open, (path,), (files.READ,))
    except OSError as error:
        if error.errno in files.MISSING:
            return None
        raise
    return fd


def _reopen(cls: type[ZipStore], source: ZipSource, mode: Mode) -> ZipStore:
    return cls(source, mode=mode)


_open_writers: set[ZipStore] = set()


def _close_writers() -> None:
    """Close all writers at exit. If one cannot be closed, the others are still closed."""
    messages: list[tuple[str, type[Warning]]] = []
    for store in [*_open_writers]:
        try:
            store.close()
            messages.append((f"{store!r} was not closed; it was written at exit", ResourceWarning))
        except ZarrliteError as error:
            messages.append((f"{store!r} was not closed, and its changes are lost: {error}", RuntimeWarning))
    for message, category in messages:
        warnings.warn(message, category, stacklevel=1)


def _forget_writers() -> None:
    for store in _open_writers:
        store._disown()
    _open_writers.clear()


atexit.register(_close_writers)
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_forget_writers)
