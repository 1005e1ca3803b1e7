"""A folder in an fsspec filesystem as a store (install zarrlite[fsspec]). Only this module imports fsspec.

Rules
- Ranges are read by `cat_file(start, end)`. Filesystems that are asynchronous internally run on fsspec's own event
  loop. The requests of a batch run on the threads of this library, so that all stores in a filesystem share its limit
  on concurrent requests.
- A key counts as missing only if the filesystem reports it as missing. A missing bucket, refused access and all other
  failures are StoreErrors, even if fsspec reports them as missing files (such as server errors behind a file cache).
- A server that ignores ranges sends whole values. The length of the response reveals this; if the length is
  inconclusive, the size of the value is looked up.
- Listings and sizes that fsspec has cached are dropped before each lookup: other writers may have changed them.
- fsspec has no conditional requests. A source that reads in several steps looks up size, ETag and modification time
  before the first step, and compares them after each later one. If the filesystem reports only the size, the source
  reads the whole value.
- In a local filesystem, a file is replaced by renaming a temporary file. Other filesystems replace files in their own
  ways.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import inspect
import os
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

from zarrlite import threads
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import ReplacedError, Source, VersionedSource
from zarrlite.errors import ArgumentError, DependencyError, ReadOnlyError, StoreError, ZarrliteError
from zarrlite.stores.base import Limits, Listing, Store, check_key, check_prefix, flat, place_of
from zarrlite.stores.files import TEMPORARY
from zarrlite.stores.paths import is_reserved
from zarrlite.stores.store_errors import foreign_error
from zarrlite.tuning import REMOTE_CONCURRENCY, REMOTE_GAP_BYTES

T = TypeVar("T")

_MAX_OFFSET = 2**62  # bytes; larger offsets are compared with the size of the value before they are sent
_MAX_ATTEMPTS = 20  # attempts to read or write a value while other writers change it, or remove its folder
_NEAR: Final = {"file", "local", "memory", "zip", "tar", "libarchive"}  # concurrent requests gain nothing here
_HTTP: Final = {"http", "https"}
# members of `info` that change with the value; their names depend on the filesystem
_VERSION_MEMBERS: Final = (
    *("ETag", "etag", "e_tag", "VersionId", "version_id", "generation", "md5Hash", "content_md5", "Content-MD5"),
    *("Digest", "LastModified", "last_modified", "Last-Modified", "updated", "modified", "mtime", "ino", "sha"),
    *("created", "creation_time", "CRC", "header_offset"),
)
_NO_BUCKET: Final = ("nosuchbucket", "bucket does not exist", "containernotfound", "container does not exist")
_REFUSED: Final = (401, 403)  # HTTP status codes
_MISSING: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class FsspecStore(Store):
    """A store in a folder of an fsspec filesystem.

    Parameters
    ----------
    fs : fsspec.AbstractFileSystem
        The filesystem. It must not have been created with `asynchronous=True`.
    path : str, optional
        The folder in that filesystem; the root if omitted.
    read_only : bool, optional
        Whether the store refuses changes.
    missing_exceptions : tuple of exception types, optional
        Exceptions by which the filesystem reports a missing key.

    Raises
    ------
    DependencyError
        If fsspec is not installed.
    ArgumentError
        If `fs` is not an fsspec filesystem, or was created with `asynchronous=True`.

    Examples
    --------
    >>> import fsspec
    >>> store = FsspecStore(fsspec.filesystem("memory"), "/docs/example.zarr")
    >>> store.set("a/b", b"0123")
    True
    >>> store, bytes(store.get("a/b", ByteRange(-2)))
    (FsspecStore('memory:///docs/example.zarr'), b'23')
    """

    def __init__(
        self,
        fs: Any,
        path: str = "",
        *,
        read_only: bool = False,
        missing_exceptions: tuple[type[Exception], ...] = _MISSING,
    ) -> None:
        if not isinstance(fs, _library().AbstractFileSystem):
            raise ArgumentError(f"fs must be an fsspec filesystem, not {type(fs).__name__}")
        if getattr(fs, "asynchronous", False):
            raise ArgumentError(f"fs must not be asynchronous: create {type(fs).__name__} with asynchronous=False")
        self.filesystem = fs
        self.path: str = fs._strip_protocol(path).rstrip("/")
        self.read_only = read_only
        self.missing_exceptions = missing_exceptions
        self._protocols = _protocols(fs)
        self._is_local = bool(self._protocols & {"file", "local"})
        self._is_http = bool(self._protocols & _HTTP)
        self._is_cache = _is_cache(fs)  # whether `fs` may return values older than the properties it reports
        self._honours_ranges = not self._is_http  # whether the server is known to support range requests
        self.limits = _limits(fs)

    @classmethod
    def from_url(
        cls, url: str, storage_options: Mapping[str, Any] | None = None, *, read_only: bool = False
    ) -> FsspecStore:
        """Return the store for a URL, which may be chained: `zip::s3://bucket/a.zip`, `filecache::https://...`.

        Parameters
        ----------
        url : str
            A URL whose protocol fsspec supports.
        storage_options : mapping, optional
            Arguments for the filesystem. In a chained URL, the arguments for each other filesystem are a mapping,
            under the name of its protocol.
        read_only : bool, optional
            Whether the store refuses changes.

        Returns
        -------
        FsspecStore
            The store.

        Raises
        ------
        DependencyError
            If fsspec, or a package that it requires for the protocol, is not installed.
        ArgumentError
            If the URL has an unknown protocol.
        StoreError
            If the filesystem cannot be reached, or an archive cannot be opened.

        Examples
        --------
        >>> FsspecStore.from_url("simplecache::memory://docs/a.zarr")
        FsspecStore('simplecache::memory:///docs/a.zarr')
        """
        fsspec = _library()
        try:
            filesystem, path = fsspec.url_to_fs(url, **(storage_options or {}))
        except ImportError as error:
            raise DependencyError(f"{url!r} needs a package that is not installed: {error}") from error
        except ValueError as error:
            raise ArgumentError(f"store must be a path or a URL that fsspec knows, not {url!r}: {error}") from error
        except Exception as error:
            raise StoreError(
                f"{url!r} cannot be opened: {type(error).__name__}: {error}", errno=_errno(error)
            ) from error
        return cls(filesystem, path, read_only=read_only)

    @classmethod
    def from_mapper(cls, mapper: MutableMapping[str, Any]) -> FsspecStore:
        """Return the store for an `FSMap`. Unlike the mapping, it can read parts of values.

        Parameters
        ----------
        mapper : fsspec.FSMap
            The mapping, as `fsspec.get_mapper` returns it.

        Returns
        -------
        FsspecStore
            The store.

        Examples
        --------
        >>> import fsspec
        >>> FsspecStore.from_mapper(fsspec.get_mapper("memory://docs/a.zarr"))
        FsspecStore('memory:///docs/a.zarr')
        """
        mapping: Any = mapper
        return cls(mapping.fs, mapping.root, missing_exceptions=tuple(mapping.missing_exceptions))

    def __repr__(self) -> str:
        return f"FsspecStore({_url(self.filesystem, self.path)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FsspecStore) and other._state() == self._state()

    def __hash__(self) -> int:
        return hash(self.location())

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (type(self), self._files(), self.path, self.read_only, self.missing_exceptions)

    def _state(self) -> tuple[Any, ...]:
        return self.location(), self.read_only, self.missing_exceptions

    def _files(self) -> Any:
        """Return the filesystem; in a forked child, a new one, because the parent's cannot be used there."""
        if getattr(self.filesystem, "async_impl", False) and self.filesystem._pid != os.getpid():
            create, arguments = self.filesystem.__reduce__()[:2]
            self.filesystem = create(*arguments)
        return self.filesystem

    # Keys and paths

    def _path(self, key: str) -> str:
        name = quote(check_key(key), safe="/:@!$&'()*+,;=~") if self._is_http else check_key(key)
        return f"{self.path}/{name}" if self.path else name

    def _key(self, path: str) -> str | None:
        """Return the key of a path in a listing. Returns None if the path is not below the folder, or is not a key."""
        base = f"{self.path}/" if self.path else ""
        path = path.rstrip("/") if self._is_http else path
        if not path.startswith(base) or path == base or (self._is_http and "?" in path):
            return None
        key = unquote(path[len(base) :]) if self._is_http else path[len(base) :]
        return None if is_reserved(key) else key

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        path = f"{self.path}/{prefix}"
        if self._is_local:
            return "file", os.path.join(os.path.realpath(path), "")
        return _identity(self.filesystem), path

    # Reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self._read(key, lambda path: self._get(path, byte_range))

    def _read(self, key: str, read: Callable[[str], T]) -> T | None:
        """Call `read` with the path of a key, and return its result. Returns None if the key does not exist."""
        path = self._path(key)
        for attempts_left in reversed(range(_MAX_ATTEMPTS)):
            try:
                return read(path)
            except ReplacedError:
                if not attempts_left:
                    raise StoreError(f"{key!r} cannot be read: its size keeps changing", key=key) from None
            except Exception as error:
                if self._is_missing(error) and self._is_confirmed(error, key, path):
                    return None
                raise self._failed(error, "read", key) from error
        raise RuntimeError("the last attempt returns or raises")

    def _is_confirmed(self, error: BaseException, key: str, path: str) -> bool:
        """Whether a file reported as missing really is: caches of fsspec report all failures as missing files."""
        if error.__cause__ is not None or not self._is_cache:
            return True
        try:
            return self._info(path) is None
        except Exception as failure:
            raise self._failed(failure, "read", key) from failure

    def _get(self, path: str, byte_range: ByteRange) -> Buffer | None:
        start, stop = byte_range
        if byte_range == ALL:
            return self._cat(path)
        if stop is None and -_MAX_OFFSET < start < 0:
            return self._get_tail(path, -start)
        if stop is not None and 0 <= start < stop < _MAX_OFFSET:
            return self._get_range(path, start, stop)
        size = self._size(path)
        if size is None:
            return None
        start, stop = byte_range.resolve(size)
        return self._get_range(path, start, stop, size) if start < stop else b""

    def _get_range(self, path: str, start: int, stop: int, size: int | None = None) -> Buffer | None:
        """Read a range that is not empty. The size of the value is looked up if it is needed."""
        try:
            data = self._cat(path, start, stop)
        except _MISSING:
            raise
        except Exception:  # many servers refuse a range beyond the end
            size = self._size(path) if size is None else size
            if size is None or start < size:
                raise
            return b""
        wanted = stop - start
        if len(data) > wanted:
            return data[start:stop]
        if not start or self._is_cache or (len(data) == wanted and self._honours_ranges):
            return data
        size = self._size(path) if size is None else size
        if size is None:
            return None
        expected = max(0, min(stop, size) - start)
        if len(data) == expected:
            self._honours_ranges = True  # not the whole value, which is longer because `start` is not 0
            return data
        if len(data) == size:
            return data[start:stop]
        raise ReplacedError("changed size while it was read")

    def _get_tail(self, path: str, count: int) -> Buffer:
        try:
            data = self._cat(path, -count)
        except _MISSING:
            raise
        except Exception:  # some servers do not support ranges from the end, and an empty value has no ranges
            data = self._cat(path)
        return data[-count:]

    def _cat(self, path: str, start: int | None = None, stop: int | None = None) -> bytes:
        data: bytes = self._files().cat_file(path, start=start, end=stop)
        return data

    def get_partial_values(self, requests: Sequence[Any], memory: memoryview | None = None) -> list[Buffer | None]:
        for request in requests:
            check_key(request[0])
        return super().get_partial_values(requests, memory)

    def size(self, key: str) -> int | None:
        return self._read(key, self._size)

    def _size(self, path: str) -> int | None:
        info = self._info(path)
        if info is None:
            return None
        size: int | None = info.get("size")
        return len(self._cat(path)) if size is None else size

    def _info(self, path: str) -> Mapping[str, Any] | None:
        """Return the properties of a value. Returns None if it does not exist, or is a folder."""
        files = self._files()
        while _is_cache(files):  # an fsspec cache would list the whole folder to find the properties of a file
            files = _inner(files)
        files.invalidate_cache(path)
        try:
            info: Mapping[str, Any] = files.info(path)
        except Exception as error:
            if self._is_missing(error):
                return None
            raise
        return None if info.get("type") == "directory" else info

    def source(self, key: str) -> Source:
        return _Value(self, key)

    # Listing

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        return iter(self._find(prefix))

    def _find(self, prefix: str) -> Sequence[str]:
        if self._is_http:  # to fsspec, each page is both a folder and a file
            keys, prefixes = self.list_dir(prefix)
            return [*keys, *(key for below in prefixes for key in self._find(below))]
        try:
            paths = self._listing("find", prefix)
        except Exception as error:
            if self._is_missing(error):
                return []
            raise self._failed(error, "listed", prefix) from error
        return [key for path in paths if (key := self._key(path)) is not None and key.startswith(prefix)]

    def list_dir(self, prefix: str) -> Listing:
        check_prefix(prefix)
        try:
            entries = self._listing("ls", prefix, detail=True)
        except Exception as error:
            if self._is_http:
                raise StoreError(f"{self!r} cannot be listed: {error}", errno=errno.ENOTSUP) from error
            if self._is_missing(error):
                return [], []
            raise self._failed(error, "listed", prefix) from error
        keys: set[str] = set()
        prefixes: set[str] = set()
        for entry in entries:
            key = self._key(entry["name"])
            if key is not None and key.startswith(prefix) and key != prefix[:-1]:
                is_folder = entry["type"] == "directory"
                (prefixes if is_folder else keys).add(f"{key}/" if is_folder else key)
        if self._is_http and not keys and not prefixes:
            message = f"{self!r} cannot be listed: the page from its server contains no links to keys"
            raise StoreError(message, errno=errno.ENOTSUP)
        return sorted(keys), sorted(prefixes)

    def _listing(self, operation: str, prefix: str, **keywords: Any) -> Any:
        files = self._files()
        path = self._path(prefix[:-1]) if prefix else self.path
        path = f"{path}/" if self._is_http else path
        files.invalidate_cache(path)
        return getattr(files, operation)(path, **keywords)

    # Writing

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        path = self._path(key)
        self._check_writable()
        data = value if type(value) is bytes else bytes(flat(value))
        with self.lock(key):
            try:
                if self._is_local:
                    return self._put_local(path, data, new)
                if not new:
                    self._pipe(path, data)
                    return True
                if self._info(path) is not None:
                    return False
                self._pipe(path, data, **({"mode": "create"} if self._creates else {}))
            except FileExistsError as error:
                if new:
                    return False
                raise self._failed(error, "written", key) from error
            except Exception as error:
                raise self._failed(error, "written", key) from error
        return True

    @property
    def _creates(self) -> bool:
        """Whether the filesystem supports writing a value only if it does not exist."""
        files = self._files()
        write = getattr(files, "_pipe_file", None) or files.pipe_file
        return "mode" in inspect.signature(write).parameters

    def _pipe(self, path: str, data: bytes, **keywords: Any) -> None:
        files = self._files()
        for attempts_left in reversed(range(_MAX_ATTEMPTS)):
            try:
                files.pipe_file(path, data, **keywords)
                return
            except FileNotFoundError as error:  # a folder is missing
                if not attempts_left or _names_bucket(error):
                    raise
                with contextlib.suppress(FileNotFoundError):  # another writer has removed the parent folder
                    files.makedirs(files._parent(path), exist_ok=True)

    def _put_local(self, path: str, data: bytes, new: bool) -> bool:
        """Write a file and rename it, or link it if the name must be new."""
        files = self._files()
        temporary = f"{files._parent(path)}/{TEMPORARY}{uuid.uuid4().hex}"
        try:
            self._pipe(temporary, data)
            if os.path.isdir(path) and not _remove_empty_folders(path):
                raise IsADirectoryError(errno.EISDIR, "it is a prefix of other keys", path)
            if not new:
                os.replace(temporary, path)
                return True
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            return True
        finally:
            if os.path.lexists(temporary):
                os.unlink(temporary)

    def erase(self, key: str) -> None:
        path = self._path(key)
        self._check_writable()
        with self.lock(key):
            try:
                self._files().rm_file(path)
            except Exception as error:
                if self._is_missing(error) or (self._is_local and os.path.isdir(path)):
                    return
                raise self._failed(error, "erased", key) from error

    def erase_prefix(self, prefix: str) -> None:
        super().erase_prefix(prefix)
        if self._is_local:
            _remove_empty_folders(os.path.join(self.path, prefix))

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError(f"{self!r} was opened for reading only")

    # Errors

    def _is_missing(self, error: BaseException) -> bool:
        """Whether an error means that a value does not exist."""
        if not isinstance(error, self.missing_exceptions) or _names_bucket(error):
            return False
        cause = error.__cause__
        if cause is not None and not isinstance(cause, self.missing_exceptions):
            status = getattr(cause, "status", None)
            if status not in (None, 404) or (status is None and _is_failure(cause)):
                return False
        return True

    def _failed(self, error: Exception, action: str, key: str) -> ZarrliteError:
        if isinstance(error, ZarrliteError):
            return error
        if isinstance(error, NotImplementedError):
            return StoreError(f"{self!r} cannot be {action}: its filesystem does not support it", errno=errno.ENOTSUP)
        if _names_bucket(error):
            message = f"{key!r} cannot be {action}: the bucket of {self!r} does not exist"
            return StoreError(message, key=key, errno=errno.ENOENT)
        if _errno(error) == errno.EACCES:
            message = f"{key!r} cannot be {action}: access is refused; check the credentials: {error}"
            return StoreError(message, key=key, errno=errno.EACCES)
        if isinstance(error, RuntimeError) and "fork" in str(error):
            message = f"{key!r} cannot be {action} in a forked process; start processes with spawn or forkserver"
            return StoreError(message, key=key)
        return foreign_error(error, key, action)


class _Value(VersionedSource):
    """A value whose parts all belong to one version, as far as its size, ETag and modification time show."""

    def __init__(self, store: FsspecStore, key: str) -> None:
        self._store = store
        self._key = check_key(key)
        self.close()

    def close(self) -> None:
        self._value: Buffer | None = None  # the whole value, if it was read as a whole
        self._size: int | None = None
        self._version: str | None = None
        self._is_open = False
        self._is_checked = True  # whether the version was looked up after the last read
        self._steps = 0  # reads since the version was first looked up

    def _open(self) -> None:
        """Look up size and version. If the filesystem reports no version, read the whole value."""
        if not self._is_open:
            self._size, self._version = self._look()
            self._is_open = True
            if self._size is not None and self._version is None:
                self._keep(self._store.get(self._key))

    def _look(self) -> tuple[int | None, str | None]:
        return self._store._read(self._key, self._look_at) or (None, None)

    def _look_at(self, path: str) -> tuple[int | None, str | None]:
        info = self._store._info(path)
        if info is None:
            return None, None
        size = self._store._size(path) if info.get("size") is None else info["size"]
        if self._store._is_cache:
            return size, None
        members = [f"{name}={info[name]}" for name in _VERSION_MEMBERS if info.get(name) is not None]
        return size, f"size={size} {' '.join(members)}" if members else None

    def _keep(self, value: Buffer | None) -> None:
        self._value = value
        self._size = None if value is None else len(value)
        self._is_open = True

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        if not self._is_open and tuple(ranges) == (ALL,):
            self._keep(self._store.get(self._key))
        self._open()
        if self._size is None:
            return None
        if self._value is not None:
            return [byte_range.of(self._value) for byte_range in ranges]
        bounds = [byte_range.resolve(self._size) for byte_range in ranges]
        found = threads.gather(self._fetch, bounds, place_of(self._store))
        self._steps, self._is_checked = self._steps + 1, False
        if self._steps > 1:
            self._check()
        if any(value is None or len(value) != stop - start for value, (start, stop) in zip(found, bounds, strict=True)):
            raise ReplacedError("was replaced or truncated while it was read", key=self._key)
        return found  # type: ignore[return-value]

    def _fetch(self, bounds: tuple[int, int]) -> Buffer | None:
        start, stop = bounds
        if start == stop:
            return b""
        return self._store._read(self._key, lambda path: self._store._get_range(path, start, stop, self._size))

    def _check(self) -> None:
        if not self.is_current():
            raise ReplacedError("was replaced while it was read", key=self._key)
        self._is_checked = True

    def size(self) -> int | None:
        self._open()
        return self._size

    def known_size(self) -> int | None:
        return self._size

    def version(self) -> str | None:
        self._open()
        if not self._is_checked:
            self._check()
        return self._version

    def is_current(self) -> bool:
        return not self._is_open or self._value is not None or self._look() == (self._size, self._version)


def _remove_empty_folders(folder: str) -> bool:
    """Remove a folder and its subfolders, except those that contain files. Returns whether the folder is gone."""
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):  # it is not empty
            os.rmdir(path)
    return not os.path.lexists(folder)


def _library() -> Any:
    try:
        import fsspec
    except ImportError as error:
        raise DependencyError("this store needs fsspec: pip install 'zarrlite[fsspec]'") from error
    return fsspec


def _reopen(cls: type[FsspecStore], files: Any, path: str, read_only: bool, missing: Any) -> FsspecStore:
    return cls(files, path, read_only=read_only, missing_exceptions=missing)


def _protocols(filesystem: Any) -> set[str]:
    protocol = filesystem.protocol
    return {protocol} if isinstance(protocol, str) else {*protocol}


def _inner(filesystem: Any) -> Any:
    """Return the filesystem that a view or a cache is based on. Returns None for other filesystems."""
    inner = object.__getattribute__(filesystem, "__dict__").get("fs")  # caches forward ordinary attribute access
    return inner if isinstance(inner, _library().AbstractFileSystem) else None


def _is_cache(filesystem: Any) -> bool:
    return _inner(filesystem) is not None and hasattr(type(filesystem), "_check_file")


def _limits(filesystem: Any) -> Limits:
    if _protocols(filesystem) & _NEAR:
        return Limits(concurrency=1)
    inner = _inner(filesystem)
    return Limits(REMOTE_CONCURRENCY, REMOTE_GAP_BYTES) if inner is None else _limits(inner)


def _identity(filesystem: Any) -> Hashable:
    """Return an identifier that is the same for all filesystems with the same arguments, even across processes."""
    if not filesystem.cachable or getattr(filesystem, "global_store", True) is False:
        return "fsspec", id(filesystem)
    try:
        return "fsspec", hashlib.sha256(filesystem.to_json().encode()).hexdigest()
    except (TypeError, ValueError):  # an argument cannot be encoded as JSON
        return "fsspec", id(filesystem)


def _url(filesystem: Any, path: str) -> str:
    inner = _inner(filesystem)
    protocols = filesystem.protocol
    protocol = protocols if isinstance(protocols, str) else protocols[0]
    if inner is not None and protocol != "dir":
        return f"{protocol}::{_url(inner, path)}"
    return path if path.startswith(tuple(f"{name}://" for name in _protocols(filesystem))) else f"{protocol}://{path}"


def _names_bucket(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, reports that a bucket does not exist."""
    while error is not None:
        text = f"{error} {getattr(error, 'error_code', '')}".lower()
        if any(name in text for name in _NO_BUCKET):
            return True
        error = error.__cause__
    return False


def _is_failure(error: BaseException) -> bool:
    """Whether a file was reported as missing because of a failed connection, not by a response from the server."""
    return isinstance(error, OSError) or type(error).__module__.startswith("aiohttp")


def _errno(error: BaseException) -> int | None:
    """Return EACCES if access was refused, otherwise the errno of the error. Returns None if it has no errno."""
    status = getattr(error, "status", None) or getattr(error.__cause__, "status", None)
    if isinstance(error, PermissionError) or status in _REFUSED:
        return errno.EACCES
    found = getattr(error, "errno", None)
    return found if isinstance(found, int) else None
