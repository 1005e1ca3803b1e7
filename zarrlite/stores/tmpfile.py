"""New values, which are written to nameless files (O_TMPFILE, Linux) and linked when complete.

This takes fewer system calls than renaming temporary files.

Rules
- A killed writer leaves no temporary files.
- All files are written before the first is linked; then they are linked in order, under the locks of their directories.
  With `fsync`, a directory is synced before the next file is linked.
- After a file system error, files that have not been linked yet are discarded, and the caller stores their values by
  renaming (atomic.py), which reports any error. All other exceptions are passed on to the caller.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence

from zarrlite.buffers.pieces import Value
from zarrlite.stores import files
from zarrlite.stores.filelock import is_free, is_locked, lock_directory, prune
from zarrlite.stores.paths import Root
from zarrlite.stores.store_errors import store_error
from zarrlite.tuning import MAX_TMPFILES, MIN_TMPFILES

_TRANSIENT = files.MISSING | files.DISK_FULL  # errors that may also occur where O_TMPFILE is supported


def put(values: Sequence[tuple[str, Value]], root: Root, *, fsync: bool) -> int:
    """Store values under their keys, in order, up to the first key that already exists.

    Returns how many were stored: the remaining values are left to the caller. Returns 0 if this module cannot handle
    the values or the file system.
    """
    if not MIN_TMPFILES <= len(values) <= MAX_TMPFILES or not root.has_tmpfile:
        return 0
    opened: list[tuple[str, str]] = []  # directory and path of each file
    fds: list[int] = []
    closing = map(os.close, fds)
    done = 0
    try:
        if not is_free(root.path(values[0][0]), root):
            return 0
        for key, value in values:
            path = root.path(key)
            directory = path[: path.rindex("/")] or "/"
            opened.append((directory, path))
            _open(directory, fds, fsync)
            files.write_to(fds[-1], value, fsync=fsync)
        for directory, group in itertools.groupby(opened, key=lambda item: item[0]):
            with lock_directory(directory, root) as is_mine:
                for _, path in group:
                    if not is_mine or is_locked(path) or not files.link_tmpfile(fds[done], path):
                        return done
                    if fsync:
                        files.sync_directory(directory)
                    done += 1
    except TimeoutError as error:  # raised, so that the caller does not wait for the lock a second time
        raise store_error(error, "written", values[done][0]) from error
    except OSError as error:  # the caller then stores values by renaming, which reports any error and cleans up
        root.has_tmpfile = error.errno in _TRANSIENT
    except BaseException:
        for directory in {directory for directory, _ in opened}:
            prune(directory, root.directory)
        raise
    finally:
        try:
            any(closing)  # a single C call, so that an interrupt cannot leave some files open
        except OSError as error:
            while not _has_closed(closing):
                pass
            raise store_error(error, "written", values[0][0]) from error
    return done


def _has_closed(closing: Iterator[None]) -> bool:
    """Close the remaining files. Returns False if one of them reported an error."""
    try:
        return not any(closing)
    except OSError:
        return False


def _open(directory: str, fds: list[int], fsync: bool) -> None:
    """Create a file without a name and append its descriptor to `fds`."""
    try:
        fds.extend(map(os.open, (directory,), (files.TMPFILE,), (0o666,)))
    except FileNotFoundError:
        files.make_directories(directory, fsync=fsync)
        fds.extend(map(os.open, (directory,), (files.TMPFILE,), (0o666,)))
