"""New files without a name (O_TMPFILE, Linux), linked once they are complete: fewer system calls than renaming.

Rules
- A writer that is killed leaves no temporary files.
- All files are written before the first is linked; then they are linked in order, under the locks of their directories.
- On any obstacle, stop: files that are not linked yet are discarded, and the caller stores their values by renaming
  (atomic.py), which reports the error if there is one.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

from zarrlite.buffers.pieces import Value
from zarrlite.stores import files
from zarrlite.stores.filelock import is_free, is_locked, lock_directory, prune
from zarrlite.stores.paths import Root
from zarrlite.tuning import MAX_TMPFILES, MIN_TMPFILES

_TRANSIENT = files.MISSING | files.DISK_FULL  # errors that do not mean that the file system lacks O_TMPFILE


def put(values: Sequence[tuple[str, Value]], root: Root, *, fsync: bool) -> int:
    """Store values under their keys, in order, up to the first that already exists.

    Returns how many were stored, counted from the first; 0 if the values or the file system do not suit this module.
    """
    if not MIN_TMPFILES <= len(values) <= MAX_TMPFILES or not root.has_tmpfile:
        return 0
    opened: list[tuple[str, str, int]] = []  # directory, path, descriptor
    done = 0
    try:
        if not is_free(root.path(values[0][0])):
            return 0
        for key, value in values:
            path = root.path(key)
            directory = path[: path.rindex("/")] or "/"
            fd = _open(directory, fsync)
            opened.append((directory, path, fd))
            files.write_to(fd, value, fsync=fsync)
        for directory, group in itertools.groupby(opened, key=lambda item: item[0]):
            with lock_directory(directory):
                for _, path, fd in group:
                    if is_locked(path) or not files.link_tmpfile(fd, path):
                        return done
                    done += 1
            if fsync:
                files.sync_directory(directory)
    except Exception as error:  # renaming will run into it again, report it and clean up
        root.has_tmpfile = not isinstance(error, OSError) or error.errno in _TRANSIENT
    except BaseException:
        for directory in {directory for directory, _, _ in opened}:
            prune(directory, root.directory)
        raise
    finally:
        for _, _, fd in opened:
            os.close(fd)
    return done


def _open(directory: str, fsync: bool) -> int:
    try:
        return os.open(directory, files.TMPFILE, 0o666)
    except FileNotFoundError:
        files.make_directories(directory, fsync=fsync)
    return os.open(directory, files.TMPFILE, 0o666)
