"""Values that take the place of others whole: temporary files, renamed under a lock.

Rules
- A value is written to a temporary file beside its path, which is renamed under the lock of the path (filelock.py).
- Of several values all are written before the first is renamed; then they follow in order.
- New files of one directory, one after the other, are renamed under one lock of that directory.
- A directory that others remove meanwhile is made again for a single value; several fail, and can be stored again.
- What fails leaves no temporary and no empty directory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import NamedTuple

from zarrlite import threads
from zarrlite.buffers.ranges import Pieces
from zarrlite.errors import StoreError
from zarrlite.stores import files
from zarrlite.stores.filelock import is_free, lock_directory, lock_path, prune
from zarrlite.stores.paths import Root
from zarrlite.stores.store_errors import store_error

_ATTEMPTS = 100  # to write into a directory that others keep removing


class _New(NamedTuple):
    key: str
    path: str
    directory: str
    temporary: str


def put(values: Iterable[tuple[str, Pieces]], root: Root, *, fsync: bool) -> None:
    """Store values under their keys, in order."""
    with _Temporaries(root, fsync) as new:
        for key, value in values:
            new.add(key, value)
        done, attempts = 0, _ATTEMPTS
        while done < len(new.items):
            new.key = new.items[done].key
            try:
                done += _rename_together(new.items, done) or _rename(new.items[done], root, fsync)
            except FileNotFoundError:  # a directory, or a temporary file, that others have removed
                attempts -= 1
                if len(new.items) > 1 or not attempts:
                    raise
                files.discard(new.items[0].temporary)
                _write(new.items[0], value, fsync)


def put_new(values: Iterable[tuple[str, Pieces]], root: Root, *, fsync: bool) -> bool:
    """Store values under keys that are not there, in order, under the lock of the first; False: one of them is."""
    with _Temporaries(root, fsync) as new:
        for key, value in values:
            new.add(key, value)
        with lock_path(new.items[0].path, root.directory, fsync=fsync):
            if any(os.path.lexists(item.path) for item in new.items):
                new.remove()
                return False
            for item in new.items:
                new.key = item.key
                _rename(item, root, fsync)
    return True


class _Temporaries:
    """Values in temporary files, which are renamed while the context lasts, or go."""

    def __init__(self, root: Root, fsync: bool) -> None:
        self.root, self.fsync = root, fsync
        self.items: list[_New] = []
        self.key = ""  # that is being written

    def add(self, key: str, value: Pieces) -> None:
        """Write one more."""
        self.key = key
        path = self.root.path(key)
        directory = os.path.dirname(path)
        self.items.append(_New(key, path, directory, files.temporary_name(directory)))
        _write(self.items[-1], value, self.fsync)

    def remove(self) -> None:
        """Remove those that were not renamed, and the directories that were made for them."""
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
        elif self.fsync:
            for directory in dict.fromkeys(item.directory for item in self.items):
                files.sync_directory(directory)


def _write(item: _New, value: Pieces, fsync: bool) -> None:
    """Write the temporary file."""
    for _ in range(_ATTEMPTS):
        try:
            return files.write(item.temporary, value, fsync=fsync)
        except FileNotFoundError:
            with contextlib.suppress(FileNotFoundError):
                files.make_directories(item.directory, fsync=fsync)
        except OSError as error:
            files.discard(item.temporary)
            # a file that was replaced may still be about to go (inode_locks.py)
            if error.errno not in files.DISK_FULL or not threads.finish_deferred():
                raise
    return files.write(item.temporary, value, fsync=fsync)


def _rename_together(new: list[_New], first: int) -> int:
    """Rename the first one, and those behind it, as far as they are new files of one directory; how many those are."""
    directory, done = new[first].directory, first
    if not is_free(new[first].path):
        return 0
    with lock_directory(directory):
        while done < len(new) and new[done].directory == directory and is_free(new[done].path):
            os.replace(new[done].temporary, new[done].path)
            done += 1
    return done - first


def _rename(item: _New, root: Root, fsync: bool) -> int:
    """Rename one."""
    if os.path.islink(item.path):
        root.link_has_target(item.path, item.key)  # or is refused
    with lock_path(item.path, root.directory, fsync=fsync) as lock:
        lock.replace(item.temporary)
    return 1
