"""Conversion of keys to paths below a root directory, and of these paths to keys.

Rules
- A path never leaves the root, not even through symlinks, unless the store follows them. A symlink stands for the value
  or prefix that it points to; a dangling symlink counts as missing.
- Each directory is checked only once. So a program that can write below the root can replace a checked directory
  with a symlink, which is then followed without a check.
- Names that begin with `__zarrlite.tmp.` belong to files that are being written, and names that begin with
  `__zarrlite.lock.` to lock files. They are not keys.
- A listing contains only readable keys: no temporary files, symlink cycles, or names that are not keys. Symlinks that
  lead out of the root are listed, too: reading them raises an error, whereas skipping them would hide the problem.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Any

from zarrlite.errors import KeyRefusedError
from zarrlite.stores import files
from zarrlite.stores.base import check_key, check_prefix
from zarrlite.stores.files import FILE_TYPE_MASK, LOCK, MISSING, RESERVED, TEMPORARY
from zarrlite.stores.locks import LOCK_TIMEOUT

_MAX_CHECKED = 10_000  # directories; the set of checked directories is cleared at this size, to limit its memory
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*").fullmatch  # names that need no further check


class Root:
    """A directory, and the mapping from keys to paths below it."""

    def __init__(
        self,
        directory: str,
        lock_method: str = "flock",
        lock_timeout: float | None = LOCK_TIMEOUT,
        follow_symlinks: bool = False,
    ) -> None:
        self.directory = directory
        self.follow_symlinks = follow_symlinks  # whether symlinks may lead out of the root
        self.lock_method = lock_method  # how processes exclude each other: "flock" or "file"
        self.lock_timeout = lock_timeout  # seconds to wait for a lock; None: forever
        self._base = directory if directory.endswith("/") else directory + "/"
        self._checked = {""}  # directories that are known to be inside the root, each with a trailing "/"
        self.has_tmpfile = files.TMPFILE > 0  # whether files without a name can be created; True until an attempt fails
        self.locks_directories = True  # whether flock works for directories; True until an attempt fails

    def __reduce__(self) -> tuple[type[Root], tuple[Any, ...]]:
        # omits the set of checked directories, because they may differ where the copy is used
        return type(self), (self.directory, self.lock_method, self.lock_timeout, self.follow_symlinks)

    def path(self, key: str) -> str:
        """Return the path of a key. Checks that its directories are in the root; the file itself may be a symlink."""
        directory, slash, name = key.rpartition("/")
        if directory + slash not in self._checked or not (name.isalnum() or _SAFE_NAME(name)):
            check_key(key)
            self._check_directories(key if key.isascii() else _check_encodable(key))
        return self._base + key

    def link_has_target(self, path: str, key: str) -> bool:
        """Whether a symlink has a target. Raises KeyRefusedError if the target is outside the root."""
        try:
            os.stat(path)
        except OSError as error:
            if error.errno in MISSING:
                return False
            raise
        self._check_link(path, key)
        return True

    def entries(self, prefix: str) -> list[str]:
        """Return the keys and, with a trailing `/`, the prefixes directly under a prefix.

        They are sorted including that `/`, so that a walk yields all keys in order.
        """
        self._check_directories(_check_encodable(check_prefix(prefix)))
        if is_reserved(prefix):
            return []
        try:
            (scanned,) = map(os.scandir, (self._base + prefix,))  # an interrupt cannot leak the iterator (files.py)
            try:
                return sorted(filter(None, (self._entry(prefix, entry) for entry in scanned)))
            finally:
                scanned.close()
        except OSError as error:
            if error.errno in MISSING:
                return []
            raise

    def forget(self) -> None:
        """Forget which directories were checked: some were removed, and may reappear as symlinks."""
        self._checked = {""}

    def _check_directories(self, key: str) -> None:
        """Check the existing directories on the path of a key. Raises KeyRefusedError if one is outside the root."""
        end = key.find("/")
        while end >= 0:
            directory = key[: end + 1]
            if directory not in self._checked:
                path = self._base + key[:end]
                try:
                    if os.lstat(path).st_mode & FILE_TYPE_MASK == stat.S_IFLNK:
                        self._check_link(path, key)
                        os.stat(path)
                except OSError as error:
                    if error.errno in MISSING:
                        return  # a missing directory is not remembered: it may later appear as a symlink
                    raise
                if len(self._checked) >= _MAX_CHECKED:
                    self.forget()
                self._checked.add(directory)
            end = key.find("/", end + 1)

    def _check_link(self, path: str, key: str) -> None:
        if not self.follow_symlinks and not self._is_inside(os.path.realpath(path)):
            message = f"{key!r} must not leave {self.directory!r}, but a symlink leads out of it"
            raise KeyRefusedError(f"{message}; LocalStore(..., follow_symlinks=True) follows it", key=key)

    def _is_inside(self, real_path: str) -> bool:
        root = os.path.realpath(self.directory)
        return real_path == root or real_path.startswith(os.path.join(root, ""))

    def _entry(self, prefix: str, entry: os.DirEntry[str]) -> str | None:
        """Return the key or prefix of a directory entry. Returns None if it must not be listed."""
        name = entry.name
        if name.startswith((TEMPORARY, LOCK)) or "\\" in name or not _is_encodable(name):
            return None
        is_link = entry.is_symlink()
        if is_link and self._is_cycle(prefix, entry):
            return None
        if entry.is_dir():
            if not is_link and len(self._checked) < _MAX_CHECKED:
                self._checked.add(f"{prefix}{name}/")
            return f"{prefix}{name}/"
        return f"{prefix}{name}" if entry.is_file() else None

    def _is_cycle(self, prefix: str, link: os.DirEntry[str]) -> bool:
        """Whether a symlink leads back to a directory between the root and the link, so that a walk would never end."""
        target = os.path.realpath(link.path)
        parents = ["", *(prefix[:end] for end, letter in enumerate(prefix) if letter == "/")]
        return any(target == os.path.realpath(self._base + parent) for parent in parents)


def is_reserved(key: str) -> bool:
    """Whether a name in the key is reserved for files that are being written, or for lock files."""
    return RESERVED in key and (f"/{TEMPORARY}" in f"/{key}" or f"/{LOCK}" in f"/{key}")


def _check_encodable(key: str) -> str:
    if not _is_encodable(key):
        raise KeyRefusedError(f"key {key!r} must not contain lone surrogates: file names are UTF-8", key=key)
    return key


def _is_encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
