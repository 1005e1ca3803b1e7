"""Keys as paths below a root, and the paths below a root as keys.

Rules
- A path never leaves the root, also not through symlinks. A symlink that stays within is what it points at, and one
  that leads nowhere is nothing.
- Directories are checked once: who can write below the root can still change one under a process that is at work.
- Names that begin with `__zarrlite.tmp.` belong to files that are being written. They are nobody's keys.
- A listing holds what can be read: no temporaries, no links out of the root or in a circle, no names that are not keys.
"""

from __future__ import annotations

import os
import re
import stat

from zarrlite.errors import KeyRefusedError
from zarrlite.stores import files
from zarrlite.stores.base import check_key, check_prefix
from zarrlite.stores.files import FORMAT, MISSING, TEMPORARY

_CHECKED = 10_000  # directories to remember as checked
_HARMLESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*").fullmatch  # names with which nothing can be wrong


class Root:
    """A directory, and the way from keys to paths below it."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._base = directory if directory.endswith("/") else directory + "/"
        self._checked = {""}  # directories below the root, each with a "/" at its end
        self.unnamed = files.UNNAMED > 0  # whether new files can do without a name at first, as far as is known

    def __reduce__(self) -> tuple[type[Root], tuple[str]]:
        return type(self), (self.directory,)  # what was checked here and now need not be so elsewhere

    def path(self, key: str) -> str:
        """The path of a key; its directories are known to be within the root, the last name may still be a symlink."""
        directory, slash, name = key.rpartition("/")
        if directory + slash not in self._checked or not (name.isalnum() or _HARMLESS(name)):
            check_key(key)
            self._check_directories(key if key.isascii() else _encodable(key))
        return self._base + key

    def leads_somewhere(self, path: str, key: str) -> bool:
        """Whether a symlink points at something; refused if that is outside of the root."""
        if not os.path.exists(path):
            return False
        self._check_link(path, key)
        return True

    def entries(self, prefix: str) -> list[str]:
        """The keys and, with a `/` at the end, the prefixes directly under a prefix, in the order of all their keys."""
        self._check_directories(_encodable(check_prefix(prefix)))
        if is_temporary(prefix):
            return []
        try:
            with os.scandir(self._base + prefix) as found:
                return sorted(filter(None, (self._entry(prefix, entry) for entry in found)))
        except OSError as error:
            if error.errno in MISSING:
                return []
            raise

    def forget(self) -> None:
        """Check directories anew, as some have been removed and may come back as something else."""
        self._checked = {""}

    def _check_directories(self, key: str) -> None:
        """Look at the directories on the way to a key, as far as they are there; none may be outside the root."""
        end = key.find("/")
        while end >= 0:
            directory = key[: end + 1]
            if directory not in self._checked:
                path = self._base + key[:end]
                try:
                    if os.lstat(path).st_mode & FORMAT == stat.S_IFLNK:
                        self._check_link(path, key)
                        os.stat(path)
                except OSError as error:
                    if error.errno in MISSING:
                        return  # and not remembered: it may come into being as a symlink
                    raise
                if len(self._checked) >= _CHECKED:
                    self.forget()
                self._checked.add(directory)
            end = key.find("/", end + 1)

    def _check_link(self, path: str, key: str) -> None:
        if not self._within(os.path.realpath(path)):
            raise KeyRefusedError(f"{key!r} leads out of {self.directory!r} by a symlink", key=key)

    def _within(self, real: str) -> bool:
        root = os.path.realpath(self.directory)
        return real == root or real.startswith(os.path.join(root, ""))

    def _entry(self, prefix: str, entry: os.DirEntry[str]) -> str | None:
        name = entry.name
        if name.startswith(TEMPORARY) or "\\" in name or not _is_encodable(name):
            return None
        link = entry.is_symlink()
        if link and not self._is_listed(prefix, entry):
            return None
        if entry.is_dir():
            if not link and len(self._checked) < _CHECKED:
                self._checked.add(f"{prefix}{name}/")
            return f"{prefix}{name}/"
        return f"{prefix}{name}" if entry.is_file() else None

    def _is_listed(self, prefix: str, link: os.DirEntry[str]) -> bool:
        real = os.path.realpath(link.path)
        # A walk that ends: no link back to a directory on the way from the root to here.
        way = [prefix[:end] for end, letter in enumerate(prefix) if letter == "/"]
        return self._within(real) and all(real != os.path.realpath(self._base + step) for step in ["", *way])


def is_temporary(key: str) -> bool:
    """Whether a name of the key is reserved for files that are being written."""
    return TEMPORARY in key and f"/{TEMPORARY}" in f"/{key}"


def _encodable(key: str) -> str:
    if not _is_encodable(key):
        raise KeyRefusedError(f"{key!r} is not a key: lone surrogates cannot be stored", key=key)
    return key


def _is_encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
