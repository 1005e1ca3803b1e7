"""What users pass as a store: a Store, a path, a URI, a mapping or nothing.

Rules
- `file` URIs follow RFC 8089: an absolute path, percent-decoded, of this machine; no query, no fragment.
- `memory://name` is one store for the whole process, `memory://` a new one each time.
"""

from __future__ import annotations

import os
import re
from collections.abc import MutableMapping
from typing import Any

from zarrlite.errors import ArgumentError
from zarrlite.stores.base import Store
from zarrlite.stores.local import LocalStore
from zarrlite.stores.memory import MappingStore, MemoryStore
from zarrlite.stores.views import ReadOnlyStore

StoreLike = Store | str | os.PathLike[str] | MutableMapping[str, Any] | None

_SCHEME = r"(?is)(file):(.*)|([a-z][a-z0-9+.-]+)://(.*)"  # c:// is a drive
_LOCAL = r"(?is)(?://(?:localhost)?|(?!//))(/[^?#]*)"
_named: dict[str, MemoryStore] = {}


def open_store(store: StoreLike, *, read_only: bool = False, check: bool = True) -> Store:
    """The store that is meant.

    >>> open_store("memory://")
    MemoryStore(0 keys)
    >>> open_store("file:///tmp/a%20b.zarr")
    LocalStore('/tmp/a b.zarr')
    """
    if isinstance(store, str):
        store = _resolve(store)
    if isinstance(store, str | os.PathLike):
        local = LocalStore(store, read_only=read_only)
        if check:
            check_directory(local)
        return local
    found = _wrap(store)
    return ReadOnlyStore(found) if read_only and not found.read_only else found


def check_directory(store: Store) -> None:
    """Refuse a path that leads to a file; who finds something there need not ask."""
    below = store.store if isinstance(store, ReadOnlyStore) else store
    if isinstance(below, LocalStore) and os.path.isfile(below.root):
        raise ArgumentError(f"{below.root!r} is a file; a store is a directory")


def _wrap(store: Store | MutableMapping[str, Any] | None) -> Store:
    if isinstance(store, Store):
        return store
    if store is None:
        return MemoryStore()
    if isinstance(store, MutableMapping):
        return MappingStore(store)
    raise ArgumentError(f"a store is a Store, a path, a URI, a mutable mapping or None, not {type(store).__name__}")


def _resolve(text: str) -> str | Store:
    """A path, or the store that a URI names."""
    parts = re.fullmatch(_SCHEME, text) if ":" in text else None
    if parts is None:
        return text
    file, local, scheme, name = parts.groups()
    if file:
        return _file_path(text, local)
    if scheme.lower() == "memory":
        return _named.setdefault(name, MemoryStore()) if name else MemoryStore()
    raise ArgumentError(f"{text!r}: stores are opened by file:// and memory:// URIs and by paths, not by {scheme}://")


def _file_path(uri: str, rest: str) -> str:
    from urllib.parse import unquote

    path = re.fullmatch(_LOCAL, rest)
    if path is None:
        raise ArgumentError(f"{uri!r} is not file:///an/absolute/path of this machine (a '?' or '#' is %3F or %23)")
    try:
        return unquote(path[1], errors="strict")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{uri!r} is not UTF-8 behind its percent signs") from error
