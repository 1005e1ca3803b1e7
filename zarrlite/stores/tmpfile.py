"""New files that have no name until they are whole (Linux): that takes fewer steps than to rename them.

Rules
- A writer that is killed leaves nothing of them.
- All are written before the first gets its name; then they follow in order, under the locks of their directories.
- Whatever is in the way ends it: what has no name by then is gone, and is to be stored by renaming (atomic.py).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

from zarrlite.buffers.ranges import Pieces
from zarrlite.stores import files
from zarrlite.stores.filelock import is_free, is_locked, lock_directory, prune
from zarrlite.stores.paths import Root

FEW = 2  # values up to which nothing is gained
MANY = 64  # descriptors that may be open at once
_TRANSIENT = files.MISSING | files.FULL  # what says nothing about files without a name


def put(values: Sequence[tuple[str, Pieces]], root: Root, *, fsync: bool) -> int:
    """Store values under their keys, in order, as far as nothing is there; how many of the first are stored."""
    if not FEW < len(values) <= MANY or not root.unnamed:
        return 0
    places: list[tuple[str, str, int]] = []
    done = 0
    try:
        if not is_free(root.path(values[0][0])):
            return 0
        for key, value in values:
            path = root.path(key)
            directory = path[: path.rindex("/")] or "/"
            fd = _open(directory, fsync)
            places.append((directory, path, fd))
            files.write_to(fd, value, fsync=fsync)
        for directory, group in itertools.groupby(places, key=lambda place: place[0]):
            with lock_directory(directory):
                for _, path, fd in group:
                    if is_locked(path) or not files.give_name(fd, path):
                        return done
                    done += 1
            if fsync:
                files.sync_directory(directory)
    except Exception as error:  # renaming will meet it again, and leave nothing behind
        root.unnamed = not isinstance(error, OSError) or error.errno in _TRANSIENT
    except BaseException:
        for directory in {directory for directory, _, _ in places}:
            prune(directory, root.directory)
        raise
    finally:
        for _, _, fd in places:
            os.close(fd)
    return done


def _open(directory: str, fsync: bool) -> int:
    try:
        return os.open(directory, files.UNNAMED, 0o666)
    except FileNotFoundError:
        files.make_directories(directory, fsync=fsync)
    return os.open(directory, files.UNNAMED, 0o666)
