"""A directory of the local file system as a store: a key is a path below the root.

Rules
- A value is written to a temporary file next to its path and renamed (atomic.py), or to a file that has no name until
  it is complete (tmpfile.py), so readers see either the old value or the new one. Only `InPlace` changes write to an
  existing file.
- `set` and `erase` take the lock of the key, which excludes other threads and processes (filelock.py).
- No key leads out of the root, not even through symlinks, unless `follow_symlinks` is set (paths.py).
- Every OSError becomes a StoreError with the key, the errno, and the original error as its cause.
- With `fsync`, a change is durable before its operation returns, and changes become durable in order.
- Empty directories are removed, except for the root.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from _thread import TIMEOUT_MAX
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal

from zarrlite.buffers.pieces import Value
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import Source
from zarrlite.errors import ArgumentError, KeyRefusedError, ReadOnlyError, StoreError
from zarrlite.stores import atomic, files, tmpfile
from zarrlite.stores.base import (
    Buffers,
    Change,
    InPlace,
    Limits,
    Listing,
    Request,
    Store,
    Update,
    WrongSizeError,
    check_prefix,
    flat,
    overwrite,
)
from zarrlite.stores.filelock import lock_path, prune, remove_directory
from zarrlite.stores.locks import LOCK_TIMEOUT
from zarrlite.stores.open_file import OpenFile
from zarrlite.stores.paths import Root, is_reserved
from zarrlite.stores.store_errors import as_store_error, store_error


class LocalStore(Store):
    """A store in a local directory, which is created by the first write.

    Values are replaced atomically. Writers of a key exclude each other, both threads and processes.

    Parameters
    ----------
    root : str or os.PathLike
        The path of the directory.
    fsync : bool, optional
        Whether every change, including erasures, survives a power cut once its operation has returned. The changes of
        one operation become durable in order, which takes one directory sync per change.
    read_only : bool, optional
        Whether to refuse all changes.
    lock_timeout : float or None, optional
        How many seconds to wait for another writer of a key before raising a StoreError that names it. None: wait
        indefinitely.
    lock_method : {"flock", "file"}, optional
        How processes exclude each other. "flock" locks files and directories; on Windows, and on file systems that
        cannot lock files, it excludes only threads; such a file system causes a warning. "file" creates a lock file
        next to the value, which works everywhere, even across machines, but is slower. All writers must use the same
        method.
    follow_symlinks : bool, optional
        Whether to follow symbolic links that lead out of the directory, as in the working trees of git-annex, DataLad
        and DVC. Set it only for directories that you trust: a link can lead to any file. If the file of a value is a
        link, writing the value replaces the link; values below a link to a directory are written to its target.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     store = LocalStore(directory, lock_timeout=10)
    ...     _ = store.set("a/b", b"0123")
    ...     list(store.list()), store.get("a/b", ByteRange(1, 3))
    (['a/b'], b'12')
    """

    limits = Limits(concurrency=1)

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        fsync: bool = False,
        read_only: bool = False,
        lock_timeout: float | None = LOCK_TIMEOUT,
        lock_method: Literal["flock", "file"] = "flock",
        follow_symlinks: bool = False,
    ) -> None:
        given = root if type(root) is str else os.fsdecode(root)
        if not given or "\0" in given or not (given.isascii() or _can_be_encoded(given)):
            raise ArgumentError(f"{given!r} is not the path of a directory")
        # equivalent to `abspath` for an absolute path, but faster
        self.root = os.path.normpath(given) if given[0] == os.sep == "/" else os.path.abspath(given)
        self.fsync = fsync
        self.read_only = read_only
        if lock_timeout is not None and not 0 <= lock_timeout <= TIMEOUT_MAX:
            raise ArgumentError(f"lock_timeout must be a number of seconds or None, not {lock_timeout!r}")
        if lock_method not in ("flock", "file"):
            raise ArgumentError(f"lock_method must be 'flock' or 'file', not {lock_method!r}")
        self._root = Root(self.root, lock_method, lock_timeout, follow_symlinks)

    def __repr__(self) -> str:
        return f"LocalStore({self.root!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStore) and type(other) is type(self) and other.root == self.root

    def __hash__(self) -> int:
        return hash((type(self), self.root))

    # Reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        try:
            fd = self.open_file(key)
            if fd is None:
                return None
            try:
                size = files.size(fd)
                return None if size is None else files.read(fd, *byte_range.resolve(size))
            finally:
                os.close(fd)
        except IsADirectoryError:  # some file systems report a size for directories
            return None
        except OSError as error:
            raise error if isinstance(error, StoreError) else store_error(error, "read", key) from error

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        if len(requests) == 1:
            key = requests[0][0]
            value = _read_range(self._root.path(key), requests[0], memory)
            return self._read_run(key, requests) if value is None else [value]
        if len({request[0] for request in requests}) < len(requests):
            runs = itertools.groupby(requests, key=lambda request: request[0])
            return [value for key, run in runs for value in self._read_run(key, [*run])]
        found: Buffers = []
        # computed first, so that little Python code runs between the reads, which release the GIL
        paths = [self._root.path(request[0]) for request in requests]
        for path, request in zip(paths, requests, strict=True):
            value = _read_range(path, request, memory)
            if value is None:  # the value is missing, or this is an unusual case
                (value,) = self._read_run(request[0], [request])
            elif memory is not None and type(value) is memoryview:
                memory = memory[len(value) :]
            found.append(value)
        return found

    def _read_run(self, key: str, requests: Sequence[Request]) -> Buffers:
        """Read several parts of the same version of a value."""
        source = self.source(key)
        try:
            found: Any = source.read([request[1] for request in requests])
            if found is None:
                return [None] * len(requests)
            wrong = [r[2] for r in requests if len(r) > 2 and r[2] not in (None, source.known_size())]
            if wrong:
                raise WrongSizeError(source.known_size() or 0, wrong[0])
            return [*found]
        finally:
            source.close()

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return "file", os.path.join(os.path.realpath(os.path.join(self.root, prefix)), "")

    def size(self, key: str) -> int | None:
        with as_store_error("read", key):
            path = self._root.path(key)
            try:
                info = os.lstat(path)
                if stat.S_ISLNK(info.st_mode) and self._root.link_has_target(path, key):
                    info = os.stat(path)
            except OSError as error:
                if error.errno in files.MISSING:
                    return None
                raise
            return info.st_size if stat.S_ISREG(info.st_mode) and not is_reserved(key) else None

    def open_file(self, key: str) -> int | None:
        """Open a value for reading and return its descriptor. Returns None if the key does not exist."""
        path = self._root.path(key)
        if files.RESERVED in key and is_reserved(key):
            return None
        try:
            try:
                (fd,) = map(os.open, (path,), (files.READ_HERE,))
            except OSError as error:
                if error.errno not in files.SYMLINK or not self._root.link_has_target(path, key):
                    raise
                (fd,) = map(os.open, (path,), (files.READ,))
            return fd
        except OSError as error:
            if error.errno in files.MISSING:
                return None
            raise

    def source(self, key: str) -> Source:
        return OpenFile(key, self._root.path(key), self.open_file)

    # Listing

    def list(self) -> Iterator[str]:
        return self._walk("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        return self._walk(check_prefix(prefix))

    def list_dir(self, prefix: str) -> Listing:
        entries = self._entries(check_prefix(prefix))
        return [key for key in entries if not key.endswith("/")], [key for key in entries if key.endswith("/")]

    def _walk(self, prefix: str) -> Iterator[str]:
        pending = [prefix]
        while pending:
            entry = pending.pop()
            if entry and not entry.endswith("/"):
                yield entry
                continue
            try:
                pending += reversed(self._entries(entry))
            except KeyRefusedError:
                if entry == prefix:
                    raise
                yield entry[:-1]  # a symlink out of the root: reading it raises an error

    def _entries(self, prefix: str) -> Sequence[str]:
        with as_store_error("listed", prefix):
            return self._root.entries(prefix)

    # Writing

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        if new:
            return atomic.put_new(self._named(key), value, self._root, fsync=self.fsync)
        self._named(key)
        if not (files.is_journal(key) and atomic.put_journal(key, value, self._root, fsync=self.fsync)):
            atomic.put(((key, value),), self._root, fsync=self.fsync)
        return True

    def change(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Change several values. Consecutive new values are stored together.

        If the disk has too little space for all of them, none of the old values is changed.
        """
        in_memory = isinstance(changes, list)  # an iterator may generate more values than fit in memory
        for apart, group in itertools.groupby(changes, key=lambda item: item[1] is None or callable(item[1])):
            if not apart:
                values: Any = ((self._named(key), value) for key, value in group)
                if in_memory:
                    values = [*values]
                    values = values[tmpfile.put(values, self._root, fsync=self.fsync) :]
                atomic.put(values, self._root, fsync=self.fsync)
                continue
            for key, change in group:
                if change is None:
                    self.erase(key)
                else:
                    self._update(key, change)  # type: ignore[arg-type]

    def _update(self, key: str, change: Update) -> None:
        with self.lock(self._named(key)) as lock:
            source = self.source(key)
            try:
                new = change(source)
            finally:
                source.close()
            if new is None:
                self.erase(key)
            elif isinstance(new, InPlace):
                self._overwrite(key, new)
            else:
                atomic.put(((key, new),), self._root, fsync=self.fsync, lock=lock)

    def _overwrite(self, key: str, new: InPlace) -> None:
        """Overwrite parts of a file in place, in order. A failure is rolled back; a crash is not."""
        patches = [(start, flat(piece)) for start, piece in new.patches]
        with as_store_error("written", key):
            single = min([start for start, _ in patches], default=0) >= 0
            fd = files.open_single(self._root.path(key)) if single else None
            if fd is None:  # the file is missing, or has other hard links, whose values must not change
                value: Value = overwrite(self.get(key), patches)
                atomic.put(((key, value),), self._root, fsync=self.fsync)
                return
            try:
                files.overwrite(fd, patches, fsync=self.fsync)
            finally:
                os.close(fd)

    def erase(self, key: str) -> None:
        path = self._writable(key)
        with as_store_error("erased", key):
            try:
                if files.is_journal(path):
                    os.unlink(path)
                    self._prune(os.path.dirname(path))
                    return
                info = os.lstat(path)
            except OSError as error:
                if error.errno in files.MISSING:
                    return
                raise
            if not stat.S_ISDIR(info.st_mode) and not (stat.S_ISLNK(info.st_mode) and os.path.isdir(path)):
                self._unlink(path)
                self._prune(os.path.dirname(path))

    def _prune(self, directory: str) -> None:
        """Remove a directory and its parents while they are empty. With `fsync`, make all erasures durable."""
        changed = prune(directory, self.root)
        if changed is not None:
            self._root.forget()
        if self.fsync:
            files.sync_directory(changed or directory)

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key under a prefix, and leftovers of killed writers. Targets of symlinks are kept."""
        self._check_writable()
        check_prefix(prefix)
        with as_store_error("erased", prefix):
            top = self._root.path(prefix[:-1]) if prefix else self.root
            if prefix and os.path.islink(top):
                os.unlink(top)
            else:
                self._erase_tree(top)
            self._root.forget()
            if prefix:
                self._prune(os.path.dirname(top))

    def lock(self, key: str) -> contextlib.AbstractContextManager[Any]:
        if self.read_only:
            return contextlib.nullcontext()
        return lock_path(self._writable(key), self._root, fsync=self.fsync, key=key)

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError(f"{self!r} was opened for reading only")

    def _named(self, key: str) -> str:
        """Return the key after checking that it may be written."""
        self._check_writable()
        if files.RESERVED in key and is_reserved(key):
            prefix = files.TEMPORARY if files.TEMPORARY in key else files.LOCK
            raise KeyRefusedError(f"{key!r} is not a key: names that begin with {prefix!r} are reserved", key=key)
        return key

    def _writable(self, key: str) -> str:
        """Return the path of a key after checking that it may be written."""
        with as_store_error("written", key):
            path = self._root.path(self._named(key))
            if os.path.islink(path):
                self._root.link_has_target(path, key)
        return path

    def _unlink(self, path: str) -> None:
        with lock_path(path, self._root) as lock:
            lock.remove()

    def _erase_tree(self, top: str) -> None:
        directories = [top]
        for directory in directories:  # the list grows during the loop
            for entry in _scan(directory):
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
                elif entry.is_symlink() or entry.name.startswith(files.TEMPORARY):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(entry.path)
                elif not entry.name.startswith(files.LOCK):
                    self._unlink(entry.path)
        for directory in reversed(directories):
            is_removed = directory != self.root and remove_directory(directory)
            if self.fsync and not is_removed:
                files.sync_directory(directory)


def _can_be_encoded(path: str) -> bool:
    """Whether the file system can represent a path.

    Lone surrogates are accepted only if they stand for bytes that are not UTF-8 (`os.fsdecode`).
    """
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _scan(directory: str) -> Sequence[os.DirEntry[str]]:
    try:
        (found,) = map(os.scandir, (directory,))
        try:
            return list(found)
        finally:
            found.close()
    except OSError as error:
        if error.errno in files.MISSING:
            return []
        raise


def _read_range(path: str, request: Request, memory: memoryview | None) -> Buffer | None:
    """Read a range of a file with as few system calls as possible. Returns None in unusual cases."""
    start, stop = request[1]
    size = request[2] if len(request) > 2 else None
    if stop is None or not 0 <= start < stop <= files.MAX_READ or files.RESERVED in path:
        return None
    try:
        (fd,) = map(os.open, (path,), (files.READ_HERE,))
    except OSError:
        return None
    try:
        if size is not None:
            value = files.read_exactly(memory, fd, size) if start == 0 and stop == size else None
            if value is not None:
                return value
            if (end := os.lseek(fd, 0, os.SEEK_END)) != size:
                if 0 < end < files.MAX_FILE_END:
                    raise WrongSizeError(end, size)
                return None
        if memory is None:
            data = files.pread(fd, stop - start, start)
            return data if len(data) == stop - start else files.read(fd, start, stop) or None
        return files.read_into(memory, fd, start, stop) or None
    except OSError:
        return None
    finally:
        os.close(fd)
