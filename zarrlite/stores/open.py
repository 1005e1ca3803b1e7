"""Conversion of a user's argument (a Store, a path, a URI, a mapping, an obstore store or None) to a store.

Rules
- `file` URIs follow RFC 8089: an absolute, percent-encoded path on this machine, without query or fragment.
- `memory://name` is the same store throughout the process; `memory://` is a new store each time.
- URLs with `::`, URLs of protocols that no other store supports, and `FSMap` objects are opened by fsspec.
- A path that ends in `.zip` or `.ozx` is that of a zip file, unless it is a directory. The same holds for a URL.
- `storage_options` are the keywords of `ObjectStore` or of the fsspec filesystem; other stores have no options.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Protocol

from zarrlite.errors import ArgumentError
from zarrlite.stores.base import Store
from zarrlite.stores.local import LocalStore
from zarrlite.stores.memory import MappingStore, MemoryStore
from zarrlite.stores.views import ReadOnlyStore

if TYPE_CHECKING:
    from zarrlite.stores.filesystem import FsspecStore


class ObstoreLike(Protocol):
    """An obstore store."""

    def get_ranges(self, *args: Any, **keywords: Any) -> Any: ...


StoreLike = Store | str | os.PathLike[str] | Mapping[str, Any] | ObstoreLike | None
StorageOptions = Mapping[str, Any]  # keywords of `ObjectStore`, or of an fsspec filesystem

REMOTE = ("s3://", "gs://", "az://", "http://", "https://")  # prefixes of the URLs of object stores and HTTP servers
ZIP_SUFFIXES = (".zip", ".ozx")  # suffixes of the names of zip files, in lower case
_URI = r"(?is)(file):(.*)|([a-z][a-z0-9+.-]+)://(.*)"  # schemes have at least two letters, because c:// is a drive
_CHAIN = r"[a-z][a-z0-9+.-]+(://[^:]*)?::"  # the first protocol of a chain: zip::, filecache::, zip://inner.zarr::
_FILE_URI_REST = r"(?is)(?://(?:localhost)?|(?!//))(/[^?#]*)"
_named_stores: dict[str, MemoryStore] = {}


def open_store(
    store: StoreLike, *, read_only: bool = False, check: bool = True, storage_options: StorageOptions | None = None
) -> Store:
    """Return the store for a Store, a path, a URI, a mapping or None. With `check`, a path that is a file is refused.

    >>> open_store("memory://")
    MemoryStore(0 keys)
    >>> open_store("file:///tmp/a%20b.zarr")
    LocalStore('/tmp/a b.zarr')
    """
    if is_remote(store):
        return _open_remote(store, read_only, storage_options)
    if storage_options and not _is_fsspec_url(store):
        reason = "only URLs of object stores, HTTP servers and fsspec filesystems have options"
        raise ArgumentError(f"storage_options must be None for {store!r}: {reason}")
    if isinstance(store, str):
        store = _resolve(store, storage_options)
    elif isinstance(store, os.PathLike):
        store = os.fsdecode(store)
    if isinstance(store, str):
        if is_zip_path(store):
            from zarrlite.stores.zip import ZipStore  # imported late: makes `import zarrlite` faster

            return ZipStore(store, mode="r" if read_only else "a")
        local = LocalStore(store, read_only=read_only)
        if check:
            check_directory(local)
        return local
    opened = _wrap(store)
    return ReadOnlyStore(opened) if read_only and not opened.read_only else opened


def is_remote(store: object) -> bool:
    """Whether a user's argument is the URL of an object store or an HTTP server, or an obstore store."""
    if isinstance(store, str):
        return store.lower().startswith(REMOTE)
    return type(store).__module__.partition(".")[0] == "obstore"


def _open_remote(store: Any, read_only: bool, storage_options: StorageOptions | None) -> Store:
    from zarrlite.stores.object import OPTIONS, ObjectStore  # imported late because it imports obstore

    options = {**(storage_options or {}), **({"read_only": True} if read_only else {})}
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise ArgumentError(f"storage_options must not contain {unknown[0]!r}; known options: {', '.join(OPTIONS)}")
    if isinstance(store, str) and store.lower().endswith(ZIP_SUFFIXES):
        from zarrlite.stores.zip import ZipStore  # imported late: makes `import zarrlite` faster

        above, _, name = store.rpartition("/")
        return ZipStore((ObjectStore(above, **options), name), mode="r")
    return ObjectStore(store, **options)


def is_zip_path(path: str) -> bool:
    """Whether a path is that of a zip file, which need not exist."""
    return path.lower().endswith(ZIP_SUFFIXES) and not os.path.isdir(path)


def check_directory(store: Store) -> None:
    """Refuse a local store whose root is a file. Callers that have found a key in the store need not check."""
    inner = store.store if isinstance(store, ReadOnlyStore) else store
    if isinstance(inner, LocalStore) and os.path.isfile(inner.root):
        raise ArgumentError(f"a store must be a directory, but {inner.root!r} is a file")


def _wrap(store: StoreLike) -> Store:
    if isinstance(store, Store):
        return store
    if store is None:
        return MemoryStore()
    if isinstance(store, MutableMapping):
        return _fsspec().from_mapper(store) if _is_fsmap(store) else MappingStore(store)
    if isinstance(store, Mapping):
        return ReadOnlyStore(MappingStore(store))
    if any(f"{cls.__module__}.{cls.__name__}" == "zarr.abc.store.Store" for cls in type(store).__mro__):
        raise ArgumentError("a zarr-python store must be wrapped: zarrlite.bridge.FromZarr(store)")
    raise ArgumentError(f"store must be a Store, a path, a URI, a mapping or None, not {type(store).__name__}")


def _is_fsspec_url(store: object) -> bool:
    if not isinstance(store, str):
        return False
    match = re.fullmatch(_URI, store)
    return bool(re.match(_CHAIN, store)) or (match is not None and (match[3] or "memory").lower() != "memory")


def _resolve(text: str, storage_options: StorageOptions | None = None) -> str | Store:
    """Return the store that a URI names. For a path or a `file` URI, returns the path."""
    match = re.fullmatch(_URI, text) if ":" in text else None
    if "::" in text and re.match(_CHAIN, text):
        return _fsspec().from_url(text, storage_options)
    if match is None:
        return text
    file, rest, scheme, name = match.groups()
    if file:
        return _file_path(text, rest)
    if scheme.lower() == "memory":
        return _named_stores.setdefault(name, MemoryStore()) if name else MemoryStore()
    return _fsspec().from_url(text, storage_options)


def _fsspec() -> type[FsspecStore]:
    from zarrlite.stores.filesystem import FsspecStore  # imported late: makes `import zarrlite` faster

    return FsspecStore


def _is_fsmap(store: object) -> bool:
    return any(f"{cls.__module__}.{cls.__name__}" == "fsspec.mapping.FSMap" for cls in type(store).__mro__)


def _file_path(uri: str, rest: str) -> str:
    from urllib.parse import unquote

    match = re.fullmatch(_FILE_URI_REST, rest)
    if match is None:
        raise ArgumentError(
            f"{uri!r} must be file:// followed by an absolute path on this machine, with '?' and '#' written as %3F and"
            " %23"
        )
    try:
        return unquote(match[1], errors="strict")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{uri!r} must be percent-encoded UTF-8") from error
