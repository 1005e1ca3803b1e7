"""Atomic replacement of values: temporary files, renamed under a lock.

Rules
- A value is written to a temporary file in the directory of its path. The file is then renamed under the lock of the
  path (filelock.py).
- All values of a batch are written before the first is renamed; then they are renamed in order.
- With `fsync`, a file is synced before it is renamed, and its directory is synced before the next file is renamed. So
  after a power cut, a value of a batch has its new content only if all earlier values of the batch have theirs.
- Consecutive new files in the same directory are renamed under a single lock of that directory.
- A journal (storage_transformers/parts_journal.py) has no lock of its own: its writer already holds the lock of the
  value to which it belongs. A new journal is written directly to its path: its checksum shows whether it is complete,
  and an incomplete journal has no effect.
- If another writer removes the directory before the rename, storing a single value creates it again, whereas storing a
  batch fails and can be repeated.
- A failure leaves no temporary file and no empty directory behind.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import NamedTuple

from zarrlite import threads
from zarrlite.buffers.pieces import Value
from zarrlite.errors import StoreError
from zarrlite.stores import files
from zarrlite.stores.filelock import PathLock, is_free, lock_directory, lock_path, prune
from zarrlite.stores.inode_locks import UNSUPPORTED
from zarrlite.stores.paths import Root
from zarrlite.stores.store_errors import store_error

_ATTEMPTS = 100  # attempts to write into a directory that other writers keep removing


class _Temporary(NamedTuple):
    """A temporary file, and the path to which it will be renamed."""

    key: str
    path: str
    directory: str
    temporary: str


def put(values: Iterable[tuple[str, Value]], root: Root, *, fsync: bool, lock: PathLock | None = None) -> None:
    """Store values under their keys, in order.

    A caller that stores a single key, holds its lock and makes no further changes can pass the lock as `lock`. The
    lock is then not transferred to the new file.
    """
    with _Temporaries(root, fsync) as temporaries:
        value: Value = b""
        for key, value in values:
            temporaries.add(key, value)
        _rename_all(temporaries, value, lock)


def put_journal(key: str, value: Value, root: Root, *, fsync: bool) -> bool:
    """Store a new journal.

    Returns False if it exists or cannot be written. The caller then uses `put`, which replaces it or reports the error.
    """
    path = root.path(key)
    try:
        files.write(path, value, fsync=fsync)
        if fsync:
            files.sync_directory(path[: path.rindex("/")] or "/")
    except FileExistsError:
        return False
    except BaseException as error:
        files.discard(path)
        if isinstance(error, OSError):
            return False
        raise
    return True


def put_new(key: str, value: Value, root: Root, *, fsync: bool) -> bool:
    """Store a value under a new key. Returns False if the key exists.

    Linking fails if the path exists, so a value stored by another process is not replaced, even where locks do not
    exclude other processes.
    """
    with _Temporaries(root, fsync) as temporaries:
        temporaries.add(key, value)
        item = temporaries.items[0]
        attempts = _ATTEMPTS
        while True:
            try:
                with lock_path(item.path, root, fsync=fsync) as lock:
                    if not _link(item, lock):
                        return False
                if fsync:
                    files.sync_directory(item.directory)
                return True
            except FileNotFoundError:  # another writer has removed the directory, or the temporary file
                attempts -= 1
                if not attempts:
                    raise
                files.discard(item.temporary)
                _write(item, value, fsync)


def _link(item: _Temporary, lock: PathLock) -> bool:
    """Link a temporary file to its path, under the lock of the path. Returns False if the path exists."""
    try:
        lock.link(item.temporary)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in files.MISSING:
            raise
        if os.path.lexists(item.path):  # links are not supported, so the file is looked up
            return False
        lock.replace(item.temporary)
    finally:
        files.discard(item.temporary)
    return True


class _Temporaries:
    """A context for temporary files. If its body raises, files that have not been renamed yet are removed."""

    def __init__(self, root: Root, fsync: bool) -> None:
        self.root, self.fsync = root, fsync
        self.items: list[_Temporary] = []
        self.key = ""  # the key that is being written, for error messages

    def add(self, key: str, value: Value) -> None:
        """Write a value to a temporary file."""
        self.key = key
        path = self.root.path(key)
        directory = path[: path.rindex("/")] or "/"
        self.items.append(_Temporary(key, path, directory, files.temporary_name(directory)))
        _write(self.items[-1], value, self.fsync)

    def remove(self) -> None:
        """Remove the files that were not renamed, and the directories that were created for them."""
        for item in self.items:
            files.discard(item.temporary)
            prune(item.directory, self.root.directory)

    def __enter__(self) -> _Temporaries:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self.remove()
            if isinstance(error, OSError) and not isinstance(error, StoreError):
                raise store_error(error, "written", self.key) from error


def _write(item: _Temporary, value: Value, fsync: bool) -> None:
    """Write a temporary file."""
    for _ in range(_ATTEMPTS):
        try:
            return files.write(item.temporary, value, fsync=fsync)
        except FileNotFoundError:
            with contextlib.suppress(FileNotFoundError):
                files.make_directories(item.directory, fsync=fsync)
        except OSError as error:
            files.discard(item.temporary)
            # the space of a replaced file may not have been freed yet (inode_locks.py)
            if error.errno not in files.DISK_FULL or not threads.finish_deferred():
                raise
    return files.write(item.temporary, value, fsync=fsync)


def _rename_all(temporaries: _Temporaries, value: Value, lock: PathLock | None) -> None:
    """Rename all items, in order. If the file of a single item has disappeared, it is written again from `value`."""
    items, root, fsync = temporaries.items, temporaries.root, temporaries.fsync
    done, attempts = 0, _ATTEMPTS
    while done < len(items):
        item = items[done]
        temporaries.key = item.key
        try:
            done += _rename_together(items, done, root, fsync) or _rename(item, root, fsync, lock)
        except FileNotFoundError:  # another writer has removed the directory, or the temporary file
            attempts -= 1
            if len(items) > 1 or not attempts:
                raise
            files.discard(item.temporary)
            _write(item, value, fsync)


def _rename_together(items: list[_Temporary], first: int, root: Root, fsync: bool) -> int:
    """Rename consecutive items, from index `first`, that are new files in one directory. Returns their number."""
    directory, done = items[first].directory, first
    if not is_free(items[first].path, root) or files.is_journal(items[first].path):
        return 0
    try:
        with lock_directory(directory, root) as is_mine:
            for item in map(items.__getitem__, range(first, len(items)) if is_mine else ()):
                if item.directory != directory or not is_free(item.path, root):
                    break
                os.replace(item.temporary, item.path)
                if fsync:
                    files.sync_directory(directory)
                done += 1
    except OSError as error:
        if done > first or error.errno not in UNSUPPORTED:
            raise
        root.locks_directories = False
    return done - first


def _rename(item: _Temporary, root: Root, fsync: bool, lock: PathLock | None) -> int:
    """Rename one item. Returns 1."""
    if os.path.islink(item.path):
        root.link_has_target(item.path, item.key)  # raises if the target is outside the root
    if files.is_journal(item.path):
        os.replace(item.temporary, item.path)
    elif lock is not None:
        lock.replace(item.temporary)
    else:
        with lock_path(item.path, root, fsync=fsync) as lock:
            lock.replace(item.temporary)
    if fsync:
        files.sync_directory(item.directory)
    return 1
