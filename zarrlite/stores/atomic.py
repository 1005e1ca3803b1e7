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

from zarrlite.errors import StoreError
from zarrlite.ranges import Pieces
from zarrlite.stores import files
from zarrlite.stores.failures import failure
from zarrlite.stores.filelock import hold, hold_directory, is_new, prune
from zarrlite.stores.paths import Root

_ATTEMPTS = 100  # to write into a directory that others keep removing


class _New(NamedTuple):
    key: str
    path: str
    directory: str
    temporary: str


def put(values: Iterable[tuple[str, Pieces]], root: Root, *, fsync: bool) -> None:
    """Store values under their keys, in order."""
    new: list[_New] = []
    key = ""
    try:
        for key, value in values:
            path = root.path(key)
            directory = os.path.dirname(path)
            new.append(_New(key, path, directory, files.temporary_name(directory)))
            _write(new[-1], value, fsync)
        done, attempts = 0, _ATTEMPTS
        while done < len(new):
            key = new[done].key
            try:
                done += _rename_together(new, done) or _rename(new[done], root, fsync)
            except FileNotFoundError:  # a directory, or a temporary file, that others have removed
                attempts -= 1
                if len(new) > 1 or not attempts:
                    raise
                files.discard(new[0].temporary)
                _write(new[0], value, fsync)
    except BaseException as error:
        for item in new:
            files.discard(item.temporary)  # gone, unless it was not renamed
            prune(item.directory, root.directory)
        if isinstance(error, OSError) and not isinstance(error, StoreError):
            raise failure(error, "written", key) from error
        raise
    if fsync:
        for directory in dict.fromkeys(item.directory for item in new):
            files.sync_directory(directory)


def _write(item: _New, value: Pieces, fsync: bool) -> None:
    """Write the temporary file."""
    for _ in range(_ATTEMPTS):
        try:
            return files.write(item.temporary, value, fsync=fsync)
        except FileNotFoundError:
            with contextlib.suppress(FileNotFoundError):
                files.make_directories(item.directory, fsync=fsync)
    return files.write(item.temporary, value, fsync=fsync)


def _rename_together(new: list[_New], first: int) -> int:
    """Rename the first one, and those behind it, as far as they are new files of one directory; how many those are."""
    directory, done = new[first].directory, first
    if not is_new(new[first].path):
        return 0
    with hold_directory(directory):
        while done < len(new) and new[done].directory == directory and is_new(new[done].path):
            os.replace(new[done].temporary, new[done].path)
            done += 1
    return done - first


def _rename(item: _New, root: Root, fsync: bool) -> int:
    """Rename one."""
    if os.path.islink(item.path):
        root.leads_somewhere(item.path, item.key)  # or is refused
    with hold(item.path, root.directory, fsync=fsync) as lock:
        lock.replace(item.temporary)
    return 1
