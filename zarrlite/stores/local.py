"""A directory of the local file system as a store: the key is the path below the root.

Rules
- A value is written to a temporary file beside it and renamed (atomic.py), or to one that has no name until it is whole
  (tmpfile.py): readers see the old value or the new one. Only `set_partial_values` writes in place.
- `set` and `erase` take the lock of the key, which excludes threads and processes (filelock.py).
- No key leads out of the root, also not through symlinks (paths.py).
- Every OSError becomes a StoreError with the key, the errno, and the original as its cause.
- Directories exist as long as something is in them; only the root stays.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange, Pieces, joined
from zarrlite.buffers.source import ByteSource, Stored
from zarrlite.errors import ArgumentError, KeyRefusedError, ReadOnlyError, StoreError
from zarrlite.stores import atomic, filelock, files, tmpfile
from zarrlite.stores.base import Change, Fetched, Listing, Patch, Store, Update, check_prefix, flat
from zarrlite.stores.open_file import OpenFile
from zarrlite.stores.paths import Root, is_temporary
from zarrlite.stores.store_errors import as_store_error, store_error


class LocalStore(Store):
    """A store below a directory, which is made when something is first written.

    `fsync` makes a value durable before `set` returns. Other processes are excluded from writing a locked key where the
    file system can lock files; not so on Windows, nor on network file systems without flock (a warning says so).
    """

    quick_reads = gathers = True

    def __init__(self, root: str | os.PathLike[str], *, fsync: bool = False, read_only: bool = False) -> None:
        given = root if type(root) is str else os.fsdecode(root)
        if not given or "\0" in given:
            raise ArgumentError(f"{given!r} is not the path of a directory")
        # what `abspath` does with a path that begins at the root
        self.root = os.path.normpath(given) if given[0] == os.sep == "/" else os.path.abspath(given)
        self.fsync = fsync
        self.read_only = read_only
        self._root = Root(self.root)
        self._plain = type(self).get is LocalStore.get  # else a subclass has to be asked by it

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
        except IsADirectoryError:  # whose size some file systems tell
            return None
        except OSError as error:
            raise error if isinstance(error, StoreError) else store_error(error, "read", key) from error

    def get_partial_values(self, key_ranges: Sequence[tuple[str, ByteRange]]) -> list[Buffer | None]:
        """Several parts of several values, in order; neighbours with one key are parts of one and the same value."""
        parts: list[Buffer | None] = []
        for key, group in itertools.groupby(key_ranges, key=lambda item: item[0]):
            parts += self._read(key, [byte_range for _, byte_range in group])
        return parts

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
            return info.st_size if stat.S_ISREG(info.st_mode) and not is_temporary(key) else None

    def _read(self, key: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer | None]:
        source = OpenFile(self, key, self.open_file)
        try:
            return source.read(ranges) or [None] * len(ranges)
        finally:
            source.close()

    def open_file(self, key: str) -> int | None:
        """A descriptor of a value, to be read; None: there is none."""
        path = self._root.path(key)
        if files.TEMPORARY in key and is_temporary(key):
            return None
        try:
            try:
                return os.open(path, files.READ_HERE)
            except OSError as error:
                if error.errno not in files.SYMLINK or not self._root.link_has_target(path, key):
                    raise
                return os.open(path, files.READ)
        except OSError as error:
            if error.errno in files.MISSING:
                return None
            raise

    def source(self, key: str) -> ByteSource:
        return OpenFile(self, key, self.open_file) if self._plain else Stored(self, key)

    def peek(self, key: str, start: int, length: int, size: int) -> Buffer | None:
        if files.TEMPORARY in key or not self._plain:
            return None
        try:
            fd = os.open(self._root.path(key), files.READ_HERE)
        except OSError:
            return None
        try:
            return files.pread(fd, length, start) if os.lseek(fd, 0, os.SEEK_END) == size else None
        except OSError:
            return None
        finally:
            os.close(fd)

    def fetch(self, keys: Sequence[str], memory: memoryview, room: int) -> Fetched:
        found: Fetched = [None] * len(keys)
        if not self._plain or not files.MOST_BORROWED:
            return found
        try:
            paths = [self._root.path(key) for key in keys]
        except OSError:
            return found
        position = 0
        for i, path in enumerate(paths):  # a short loop: at every step another thread may want the interpreter
            try:
                fd = os.open(path, files.READ_HERE)
            except OSError:
                continue
            try:
                size = os.preadv(fd, (memory[position : position + room],), 0)
            except OSError:
                continue
            finally:
                os.close(fd)
            if 0 < size < room and files.TEMPORARY not in keys[i]:
                found[i] = memory[position : position + size]
                position += size
        return found

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
            else:
                pending += reversed(self._entries(entry))

    def _entries(self, prefix: str) -> Sequence[str]:
        with as_store_error("listed", prefix):
            return self._root.entries(prefix)

    # Writing

    def set(self, key: str, value: Buffer) -> None:
        atomic.put(((self._named(key), value),), self._root, fsync=self.fsync)

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Store several values, in order; a disk that is too small for all of them changes none."""
        values: Iterable[tuple[str, Buffer]] = ((self._named(key), value) for key, value in items)
        if isinstance(items, list):
            values = list(values)
            values = values[tmpfile.put(values, self._root, fsync=self.fsync) :]
        atomic.put(values, self._root, fsync=self.fsync)

    def set_new(self, items: Sequence[tuple[str, Pieces]]) -> bool:
        if not items or type(self).set_many is not LocalStore.set_many:  # a subclass may write otherwise
            return False
        return atomic.put_new([(self._named(key), value) for key, value in items], self._root, fsync=self.fsync)

    def update_many(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Change several values; new ones that follow each other are stored together."""
        for kind, group in itertools.groupby(changes, key=lambda item: item[1] is None or callable(item[1])):
            if kind:
                super().update_many(group)
            else:
                # a list is stored at less cost; what is made on the way need not all be there at once
                values: Any = [*group] if isinstance(changes, list) else group  # noqa: B031
                if type(self).set_many is not LocalStore.set_many:  # a subclass may know nothing of pieces
                    values = [(key, joined(value)) for key, value in values]
                self.set_many(values)

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Buffer]]) -> None:
        """Overwrite parts of values where they lie, in order; what fails on the way is undone, a crash is not."""
        for key, group in itertools.groupby(key_start_values, key=lambda item: item[0]):
            pieces = [(start, flat(value)) for _, start, value in group]
            path = self._root.path(self._named(key))
            with filelock.lock_key(key, path, self.root, self.fsync), as_store_error("written", key):
                fd = files.open_single(path) if min(start for start, _ in pieces) >= 0 else None
                if fd is None:  # missing, or a link: what else has that value keeps it, as with `set`
                    super().set_partial_values((key, start, value) for start, value in pieces)
                    continue
                try:
                    files.overwrite(fd, pieces, fsync=self.fsync)
                finally:
                    os.close(fd)

    def patch(self, key: str, fn: Patch) -> bool:
        if type(self).set_partial_values is not LocalStore.set_partial_values or type(self).get is not LocalStore.get:
            return super().patch(key, fn)  # a subclass may read and write otherwise
        with as_store_error("written", key):
            path = self._root.path(self._named(key))
        with filelock.lock_key(key, path, self.root, self.fsync), as_store_error("written", key):
            fd = files.open_single(path)
            if fd is None:  # also of a link, which may lead out of the store
                return super().patch(key, fn)
            source = OpenFile(self, key, self.open_file)
            source.adopt(fd)
            try:
                pieces = fn(source)
                if pieces is not None:
                    files.overwrite(fd, [(start, flat(piece)) for start, piece in pieces], fsync=self.fsync)
            finally:
                source.close()
        return pieces is not None

    def erase(self, key: str) -> None:
        path = self._writable(key)
        with as_store_error("erased", key):
            if os.path.lexists(path) and not os.path.isdir(path):
                self._unlink(path)
                if filelock.prune(os.path.dirname(path), self.root):
                    self._root.forget()

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key under a prefix, and what killed writers have left; symlinks go, what they point at stays."""
        self._check_writable()
        check_prefix(prefix)
        with as_store_error("erased", prefix):
            top = self._root.path(prefix[:-1]) if prefix else self.root
            if prefix and os.path.islink(top):
                os.unlink(top)
            else:
                self._erase_tree(top)
            filelock.prune(os.path.dirname(top), self.root)
            self._root.forget()

    def lock(self, key: str) -> contextlib.AbstractContextManager[Any]:
        if self.read_only:
            return contextlib.nullcontext()
        return filelock.lock_key(key, self._writable(key), self.root, self.fsync)

    def update(self, key: str, fn: Update) -> None:
        with self.lock(self._named(key)):
            new = fn(self.get(key))
            if new is None:
                self.erase(key)
            elif type(self).set is LocalStore.set:
                atomic.put(((key, new),), self._root, fsync=self.fsync)
            else:  # a subclass may write otherwise
                self.set(key, joined(new))

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError(f"{self!r} was opened for reading only")

    def _named(self, key: str) -> str:
        """A key that may be written."""
        self._check_writable()
        if files.TEMPORARY in key and is_temporary(key):
            raise KeyRefusedError(f"{key!r} is not a key: names with {files.TEMPORARY!r} are reserved", key=key)
        return key

    def _writable(self, key: str) -> str:
        """The path of a key that may be written."""
        with as_store_error("written", key):
            path = self._root.path(self._named(key))
            if os.path.islink(path):
                self._root.link_has_target(path, key)
        return path

    def _unlink(self, path: str) -> None:
        with filelock.lock_path(path, self.root) as lock:
            lock.remove()

    def _erase_tree(self, top: str) -> None:
        directories = [top]
        for directory in directories:  # which grows meanwhile
            for entry in _scan(directory):
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
                elif entry.is_symlink() or is_temporary(entry.name):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(entry.path)
                else:
                    self._unlink(entry.path)
        for directory in reversed(directories):
            if directory != self.root:
                filelock.remove_directory(directory)


def _scan(directory: str) -> Sequence[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return list(found)
    except OSError as error:
        if error.errno in files.MISSING:
            return []
        raise
