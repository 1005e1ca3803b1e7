"""Temporary files that killed writers left behind on a local disk.

Rules
- Stores do not list temporary files, so the directories themselves are searched. Symlinks are not followed.
- A file is abandoned if its writer is gone: no process on this machine has the process id in the name of the file. This
  is certain if the name also contains the id of this machine and container. Otherwise the file must also be at least an
  hour old: on a shared disk, the writer may be a process on another machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from zarrlite.stores import LocalStore, PrefixStore, ReadOnlyStore, Store
from zarrlite.stores.files import MACHINE, TEMPORARY, UNKNOWN_MACHINE

HOUR = 3600  # seconds; if the writer may be on another machine, younger files are never removed


class Leftover(NamedTuple):
    """A temporary file."""

    key: str
    path: str
    size: int
    seconds: float  # since the last write
    alive: bool  # whether a process on this machine has the process id of the file's writer
    local: bool  # whether the writer is known to have run on this machine and in this container

    @property
    def removable(self) -> bool:
        """Whether the file is abandoned."""
        return not self.alive and (self.local or self.seconds >= HOUR)


def local_root(store: Store) -> str | None:
    """Return the directory of a store on a local disk. Returns None for other stores."""
    prefix = ""
    while isinstance(store, PrefixStore | ReadOnlyStore):
        if isinstance(store, PrefixStore):
            prefix = store.prefix + prefix
        store = store.store
    return os.path.join(store.root, prefix) if isinstance(store, LocalStore) else None


def find(store: Store, prefix: str) -> Iterator[Leftover]:
    """Yield the temporary files under a prefix, except those that are probably being written."""
    root = local_root(store)
    pending = [] if root is None else [prefix]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(os.path.join(root or "", folder)) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue  # the check of the objects reports this error
        for entry in ordered:
            if entry.is_dir(follow_symlinks=False):
                pending.append(f"{folder}{entry.name}/")
            elif entry.name.startswith(TEMPORARY):
                leftover = inspect(f"{folder}{entry.name}", entry.path)
                if leftover and not (leftover.alive and leftover.seconds < HOUR):
                    yield leftover


def inspect(key: str, path: str) -> Leftover | None:
    """Return the current state of a temporary file. Returns None if it no longer exists."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    process_id, *rest = os.path.basename(path)[len(TEMPORARY) :].split(".")
    local = MACHINE != UNKNOWN_MACHINE and rest[1:2] == [MACHINE]
    return Leftover(key, path, info.st_size, time.time() - info.st_mtime, _is_alive(process_id), local)


def _is_alive(process_id: str) -> bool:
    """Whether a process with this id may exist; True if that cannot be determined."""
    if os.name == "nt" or not (process_id.isascii() and process_id.isdigit() and 0 < int(process_id) < 2**31):
        return True
    try:
        os.kill(int(process_id), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
