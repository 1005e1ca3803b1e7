"""Temporary files that killed writers have left on a local disk.

Rules
- A store lists no temporaries, so they are looked for in the directories themselves. Symlinks are not followed.
- One belongs to nobody if no process here has the number in its name, and it is an hour old: on a disk that is shared,
  the writer may be a process of another machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from zarrlite.stores import LocalStore, PrefixStore, ReadOnlyStore, Store
from zarrlite.stores.files import TEMPORARY

HOUR = 3600


class Leftover(NamedTuple):
    """A temporary file."""

    key: str
    path: str
    size: int
    seconds: float  # since it was written to
    alive: bool  # whether a process here has the number of its writer

    @property
    def removable(self) -> bool:
        return not self.alive and self.seconds >= HOUR


def local_root(store: Store) -> str | None:
    """The directory that a store shows, if it is one on a local disk."""
    prefix = ""
    while isinstance(store, PrefixStore | ReadOnlyStore):
        if isinstance(store, PrefixStore):
            prefix = store.prefix + prefix
        store = store.store
    return os.path.join(store.root, prefix) if isinstance(store, LocalStore) else None


def find(store: Store, prefix: str) -> Iterator[Leftover]:
    """The temporary files under a prefix, save those that are being written."""
    root = local_root(store)
    pending = [] if root is None else [prefix]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(os.path.join(root or "", folder)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue  # the check of the objects says so
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                pending.append(f"{folder}{entry.name}/")
            elif entry.name.startswith(TEMPORARY):
                leftover = inspect(f"{folder}{entry.name}", entry.path)
                if leftover and not (leftover.alive and leftover.seconds < HOUR):
                    yield leftover


def inspect(key: str, path: str) -> Leftover | None:
    """A temporary file as it is now; None: it is gone."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    number = os.path.basename(path)[len(TEMPORARY) :].partition(".")[0]
    return Leftover(key, path, info.st_size, time.time() - info.st_mtime, _is_alive(number))


def _is_alive(number: str) -> bool:
    """Whether a process may have this number; where that cannot be asked, it may."""
    if os.name == "nt" or not (number.isascii() and number.isdigit() and 0 < int(number) < 2**31):
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
