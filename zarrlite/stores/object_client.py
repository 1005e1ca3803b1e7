"""Requests to object stores and HTTP servers, through obstore. No other module imports obstore.

Rules
- Each method makes one request, on the thread of its caller; obstore repeats it after server or network errors.
- Errors of obstore become errors of the library. Reading a missing key returns None, but a missing bucket is an error.
- A forked child cannot use the threads of obstore, and would wait for them forever, so it gets an error instead.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.errors import (
    AccessError,
    ArgumentError,
    BucketNotFoundError,
    CredentialsError,
    DependencyError,
    KeyRefusedError,
    StoreError,
    ZarrliteError,
)
from zarrlite.stores.base import WrongSizeError
from zarrlite.tuning import MAX_PUT_BYTES

obstore: Any
exceptions: Any
stores: Any
try:
    import obstore
    from obstore import exceptions
    from obstore import store as stores
except ImportError:  # without obstore, no store can be created
    obstore = exceptions = stores = None

_CLASSES = {"s3": "S3Store", "gs": "GCSStore", "az": "AzureStore", "http": "HTTPStore", "https": "HTTPStore"}
SCHEMES = tuple(_CLASSES)
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
_LARGEST = 2**62  # bytes; no value is this large, and larger offsets would overflow the integers of obstore
_MAX_WHOLE_BYTES = 2**30  # bytes; a larger value is not read from a server that ignores ranges and sends it whole
_UNKNOWN_TIME = 86400.0  # seconds since 1970; an earlier modification time means that it is not known
_MISSING_BUCKET = re.compile(r"\b(NoSuchBucket|InvalidBucketName|ContainerNotFound|bucket does not exist)\b").search
_MISSING_KEY = re.compile(r"\b(NoSuchKey|BlobNotFound)\b|No such object").search
_WRONG_CREDENTIALS = re.compile(
    r"\b(InvalidAccessKeyId|SignatureDoesNotMatch|AuthenticationFailed|ExpiredToken)\b"
).search
# URLs from which obstore requests the credentials of the machine if it finds no others
_ASKED_MACHINE = re.compile(r"/latest/(api/token|meta-data)|/metadata/identity|/computeMetadata/").search
_RANGE_IGNORED = re.compile(r"non-partial response|Range request not supported").search
_STATUS = re.compile(r"status code: (\d{3})").search
_has_made_requests = False
_is_forked = False  # whether this process was forked from one that had made requests


def _enter_child() -> None:
    global _is_forked
    _is_forked = _is_forked or _has_made_requests


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_enter_child)


class Version(NamedTuple):
    """The version of a value, as the server reports it."""

    etag: str | None
    generation: str | None  # the version number, on servers that assign one
    modified: datetime | None
    size: int

    @property
    def is_strong(self) -> bool:
        """Whether different values always have different ETags; weak ETags may be equal (RFC 9110, section 8.8.1)."""
        return self.etag is not None and not self.etag.startswith("W/")

    @property
    def is_comparable(self) -> bool:
        """Whether other versions can be told apart from this one, by a strong ETag or by the modification time."""
        return self.is_strong or self.modified is not None

    def is_same(self, other: Version) -> bool:
        """Whether two versions are the same: by their ETags if both are strong, otherwise by all fields."""
        return self.etag == other.etag if self.is_strong and other.is_strong else self == other


class Answer(NamedTuple):
    """Bytes of a value, and the version of the value from which they were read."""

    data: memoryview
    start: int  # offset of the first byte in the value
    version: Version


class ChangedError(Exception):
    """A condition of a request does not hold: the value has changed, exists, or is missing. Users never see it."""


class LostAnswerError(Exception):
    """It is not known whether a request was carried out. `error` says why. Users never see it."""

    def __init__(self, error: StoreError) -> None:
        super().__init__(error)
        self.error = error


class Client:
    """The values in a bucket or on an HTTP server, by their full keys.

    Parameters
    ----------
    store : obstore store
        The store.
    missing_status : sequence of int
        The HTTP statuses that mean that a key does not exist.
    """

    def __init__(self, store: Any, missing_status: Sequence[int] = (404,)) -> None:
        self.store = store
        self.missing_status = frozenset(missing_status)
        self._kind = type(store).__name__
        self.is_http = self._kind == "HTTPStore"
        self.has_suffix_ranges = self._kind != "AzureStore"
        self.has_ranges = True  # False once the server has ignored a range request
        self._once: Any = None
        self._bucket_exists = self._kind not in ("S3Store", "GCSStore", "AzureStore")  # other stores have no buckets

    # Identity

    def place(self) -> tuple[Hashable, str]:
        """Return an identifier of the bucket or server, and the prefix of this store's keys in it."""
        store = self.store
        prefix = "" if self.is_http else str(getattr(store, "prefix", None) or "").strip("/")
        prefix = prefix and f"{prefix}/"
        if self.is_http:
            url = urlsplit(store.url)
            return f"{url.scheme}://{url.netloc}", url.path.strip("/") and url.path.strip("/") + "/"
        if self._kind == "LocalStore":
            return "file", f"/{prefix}"
        if self._kind == "MemoryStore":
            return id(store), prefix
        config = store.config
        names = ("endpoint", "aws_endpoint_url_s3", "account_name", "bucket", "container_name")
        return (self._kind, *(str(config.get(name, "")).rstrip("/") for name in names)), prefix

    def describe(self) -> str:
        """Return a short name for messages, without credentials."""
        if self.is_http:
            return str(self.store.url).rstrip("/")
        config = getattr(self.store, "config", None)
        if config is None:
            return self._kind
        scheme = next(name for name, kind in _CLASSES.items() if kind == self._kind)
        bucket = config.get("bucket") or config.get("container_name") or ""
        prefix = str(self.store.prefix or "").strip("/")
        return f"{scheme}://{bucket}" + (prefix and f"/{prefix}")

    def check_picklable(self) -> None:
        """Raise StoreError if other processes cannot share the store."""
        if self._kind == "MemoryStore":
            raise StoreError("an in-memory store of obstore must not be pickled: other processes cannot share it")

    # Requests

    def get(
        self, key: str, byte_range: ByteRange = ALL, version: Version | None = None, size: int | None = None
    ) -> Answer | None:
        """Return the existing bytes of a range, possibly with bytes around it. Returns None if the key does not exist.

        Raises ChangedError if a version with a strong ETag is passed and the value has another version. Raises
        WrongSizeError, before the bytes are received, if the value does not have the specified size.
        """
        options: dict[str, Any] = {}
        wanted = self._range_header(byte_range)
        if wanted is not None:
            options["range"] = wanted
        if version is not None and version.is_strong:
            options["if_match"] = version.etag
        try:
            result = self._request(obstore.get, self.store, key, options=options)
            found, (start, stop) = _version(result.meta), result.range
            if size is not None and found.size != size:
                raise WrongSizeError(found.size, size)
            if wanted is None and not self.has_ranges and found.size > _MAX_WHOLE_BYTES:
                message = f"{key!r} has {found.size} bytes, which is too much for a server that ignores range requests"
                raise StoreError(message, key=key)
            data = memoryview(result.bytes())
            if len(data) != stop - start:
                message = f"{key!r} cannot be read: the response contains only {len(data)} of {stop - start} bytes"
                raise StoreError(message, key=key)
            return Answer(data, start, found)
        except Exception as error:
            if wanted is not None and _status(error) in (None, 416) and isinstance(error, exceptions.GenericError):
                now = self._past_end(key, byte_range)
                if now is not None:
                    return Answer(memoryview(b""), now.size, now)
                if _status(error) == 416:  # the value has grown since this request was refused
                    raise ChangedError from error
            if wanted is not None and _RANGE_IGNORED(str(error)):
                self.has_ranges = False
                whole = self.get(key, ALL, version)
                # some servers ignore ranges only for empty values
                self.has_ranges = whole is None or not whole.version.size
                return whole
            if isinstance(error, exceptions.PreconditionError):
                raise ChangedError from error
            self._missing(error, key, "read")
            return None

    def _past_end(self, key: str, byte_range: ByteRange) -> Version | None:
        """Return the version of a value if it has no bytes in a range. Used after a request for that range has failed.

        Returns None if the value has bytes there, or if its version cannot be requested.
        """
        try:
            now = self.head(key)
        except StoreError:
            return None  # the error of the first request is more helpful
        is_empty = now is not None and len(set(byte_range.resolve(now.size))) == 1
        return now if is_empty else None

    def _range_header(self, byte_range: ByteRange) -> Any:
        """Return a range, or a longer one containing it, as an option for obstore. Returns None for the whole value."""
        start, stop = byte_range
        if not self.has_ranges:
            return None
        if start < 0 and (stop is None or stop < 0):
            return {"suffix": -start} if -start < _LARGEST else None
        if start < 0:
            start = 0
        if stop is None or stop < 0 or stop >= _LARGEST:
            return {"offset": min(start, _LARGEST)} if start else None
        return (min(start, _LARGEST), max(stop, 1))

    def head(self, key: str) -> Version | None:
        """Return the version of a value. Returns None if the key does not exist."""
        try:
            return _version(self._request(obstore.head, self.store, key))
        except Exception as error:
            self._missing(error, key, "read")
            return None

    def put(self, key: str, value: memoryview) -> None:
        """Store a value."""
        try:
            is_long = len(value) > MAX_PUT_BYTES  # sent in parts; the value becomes visible after the last part
            self._request(
                obstore.put, self.store, key, self._owned(value), use_multipart=is_long, chunk_size=MAX_PUT_BYTES // 4
            )
        except Exception as error:
            self._raise(error, key, "written")

    def put_if(self, key: str, value: memoryview, version: Version | None) -> None:
        """Store a value if the current one has this version or, without a version, if the key does not exist.

        The request is not repeated. Raises ChangedError if the condition does not hold, and LostAnswerError if it is
        not known whether the value was stored.
        """
        mode: Any = "create"
        if version is not None:
            mode = {name: value for name, value in zip(("e_tag", "version"), version[:2], strict=True) if value}
        try:
            self._request(obstore.put, self._without_retries(), key, self._owned(value), mode=mode, use_multipart=False)
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            raise ChangedError from error
        except Exception as error:
            if isinstance(error, (exceptions.NotSupportedError, NotImplementedError)):
                raise StoreError(
                    f"{key!r} cannot be written: {self.describe()} does not support conditional requests; pass"
                    " storage_options={'single_writer': True} if there are no other writers",
                    key=key,
                    errno=errno.ENOTSUP,
                ) from error
            # status 409: S3 refuses one of two simultaneous conditional requests; missing key: the old value was erased
            if _status(error) == 409 or (version is not None and _is_missing_key(error)):
                raise ChangedError from error
            failure = self._error(error, key, "written")
            if failure is error:
                raise
            is_ambiguous = isinstance(error, exceptions.GenericError) and (_status(error) or 500) >= 500
            if is_ambiguous and type(failure) is StoreError:
                raise LostAnswerError(failure) from error
            raise failure from error

    def _owned(self, value: memoryview) -> Any:
        """Return a value, copied if the store keeps the buffer, because the owner of the buffer may change it."""
        return bytes(value) if self._kind == "MemoryStore" else value

    def delete(self, keys: Sequence[str]) -> None:
        """Remove keys, if they exist."""
        for first in range(0, len(keys), 1000):
            batch = list(keys[first : first + 1000])
            try:
                self._request(obstore.delete, self.store, batch)
            except Exception as error:
                self._missing(error, batch[0], "erased")
                if len(batch) > 1:  # a server without bulk deletion stops at the first missing key
                    for key in batch:
                        self.delete([key])

    def list(self, prefix: str) -> Iterator[tuple[str, int, str]]:
        """Yield the key, size and ETag of every value under a prefix, which is empty or ends with a slash."""
        try:
            stream = self._request(obstore.list, self.store, prefix or None, chunk_size=1000)
            for page in stream:
                yield from ((found["path"], found["size"], found["e_tag"] or "") for found in page)
        except Exception as error:
            self._not_listed(error, prefix)

    def list_dir(self, prefix: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the keys and the prefixes directly under a prefix, without trailing slashes."""
        try:
            found = self._request(obstore.list_with_delimiter, self.store, prefix or None)
            return [item["path"] for item in found["objects"]], found["common_prefixes"]
        except Exception as error:
            self._not_listed(error, prefix)

    def _request(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        global _has_made_requests
        if _is_forked:
            raise StoreError(
                "object stores must not be used in a process that was forked after they were used; start processes with"
                " the multiprocessing method 'spawn' or 'forkserver'",
                errno=errno.ENOTSUP,
            )
        _has_made_requests = True
        return function(*args, **keywords)

    def _without_retries(self) -> Any:
        """Return the same store, but without retries."""
        if self._once is None:
            if not hasattr(self.store, "retry_config"):
                self._once = self.store
            else:
                args, keywords = self.store.__getnewargs_ex__()
                retries = {**(keywords.get("retry_config") or {}), "max_retries": 0}
                self._once = type(self.store)(*args, **{**keywords, "retry_config": retries})
        return self._once

    # Errors

    def _missing(self, error: Exception, key: str, action: str) -> None:
        """Do nothing if an error means that a key does not exist. Otherwise raise it as an error of this library."""
        statuses = self.missing_status if action == "read" else {404}
        status = _status(error)
        is_missing = isinstance(error, FileNotFoundError) if status is None else status in statuses
        if not is_missing or _MISSING_BUCKET(str(error)):
            self._raise(error, key, action)
        if _MISSING_KEY(str(error)):
            self._bucket_exists = True
        elif not self._bucket_exists:
            self._find_bucket()

    def _find_bucket(self) -> None:
        """Raise BucketNotFoundError if the bucket does not exist, which a response to HEAD does not show."""
        try:
            self._request(obstore.list_with_delimiter, self.store, "__zarrlite.none")
        except Exception as error:
            if isinstance(self._error(error, "", "listed"), BucketNotFoundError) or _status(error) == 404:
                raise self._no_bucket() from error
        self._bucket_exists = True  # no other error means that the bucket is missing

    def _no_bucket(self) -> BucketNotFoundError:
        return BucketNotFoundError(f"{self.describe()} does not exist: there is no such bucket", errno=errno.ENOENT)

    def _not_listed(self, error: Exception, prefix: str) -> NoReturn:
        if self.is_http and not isinstance(error, ZarrliteError):
            raise StoreError(
                f"{self.describe()} cannot be listed: it is an HTTP server; open the hierarchy in mode 'r' with"
                " consolidated metadata, or open its nodes by their paths",
                errno=errno.ENOTSUP,
            ) from error
        self._raise(error, prefix, "listed")

    def _raise(self, error: Exception, key: str, action: str) -> NoReturn:
        if isinstance(error, ZarrliteError):
            raise error
        raise self._error(error, key, action) from error

    def _error(self, error: Exception, key: str, action: str) -> ZarrliteError:
        """Convert an error of obstore to an error of this library."""
        if isinstance(error, ZarrliteError):
            return error
        text = str(error)
        where = {"key": key}
        what = f"{key!r} in {self.describe()} cannot be {action}"
        if _MISSING_BUCKET(text):
            return self._no_bucket()
        if _ASKED_MACHINE(text):
            return CredentialsError(
                f"{what}: there are no credentials; set them in the environment, or pass storage_options with"
                " 'credentials', or with 'anonymous': True for public data",
                errno=errno.EACCES,
                **where,
            )
        reason = _reason(text)
        if isinstance(error, exceptions.UnauthenticatedError) or _WRONG_CREDENTIALS(text):
            return CredentialsError(f"{what}: the credentials were refused: {reason}", errno=errno.EACCES, **where)
        if isinstance(error, exceptions.PermissionDeniedError) or _status(error) in (401, 403):
            hint = "; if this means a missing key, pass missing_status=(403, 404)" if action == "read" else ""
            return AccessError(f"{what}: access was refused: {reason}{hint}", errno=errno.EACCES, **where)
        if isinstance(error, ValueError):
            return KeyRefusedError(f"{what}: {reason}", errno=errno.EINVAL, **where)
        return StoreError(f"{what}: {reason}", errno=errno.EIO, **where)


def _version(meta: Mapping[str, Any]) -> Version:
    modified = meta["last_modified"]
    is_known = modified is not None and modified.timestamp() > _UNKNOWN_TIME
    return Version(meta["e_tag"], meta["version"], modified if is_known else None, meta["size"])


def _status(error: Exception) -> int | None:
    match = _STATUS(str(error))
    return int(match[1]) if match else None


def _is_missing_key(error: Exception) -> bool:
    return isinstance(error, FileNotFoundError) and not _MISSING_BUCKET(str(error))


def _reason(text: str) -> str:
    """Return the server's message in an obstore error, or the whole error if there is no message, as one line."""
    text = text.partition("\n\nDebug source:")[0]
    message = re.search(r"<Message>(.*?)</Message>", text, re.DOTALL)
    code = re.search(r"<Code>(.*?)</Code>", text, re.DOTALL)
    if message:
        return " ".join(f"{code[1]}: {message[1]}".split()) if code else " ".join(message[1].split())
    return " ".join(text.split())[:500]


def connect(
    url: str,
    *,
    anonymous: bool,
    endpoint: str | None,
    region: str | None,
    credentials: Mapping[str, Any] | Callable[[], Any] | None,
    config: Mapping[str, Any] | None,
    headers: Mapping[str, str] | None,
    timeout: float,
    connect_timeout: float,
    retries: int,
    retry_timeout: float,
) -> tuple[Any, str]:
    """Return the obstore store for the bucket or server that a URL names, and the prefix of its keys."""
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    client: dict[str, Any] = {
        "timeout": timedelta(seconds=timeout),
        "connect_timeout": timedelta(seconds=connect_timeout),
    }
    if headers:
        client["default_headers"] = dict(headers)
    retry = {"max_retries": retries, "retry_timeout": timedelta(seconds=retry_timeout)}
    if scheme in ("http", "https"):
        given = {"endpoint": endpoint, "region": region, "credentials": credentials, "config": config}
        refused = [name for name, value in given.items() if value]
        if refused:
            names = ", ".join(refused)
            raise ArgumentError(f"{names} must not be passed for {url!r}, an HTTP server; pass headers instead")
        if "?" in rest or "#" in rest:
            raise ArgumentError(f"{url!r} must not have a query or a fragment")
        return stores.HTTPStore.from_url(url, client_options={**client, "allow_http": True}, retry_config=retry), ""
    name, _, prefix = rest.partition("/")
    if not name:
        raise ArgumentError(f"{url!r} must name a bucket: {scheme}://bucket/path")
    settings = dict(config or {})
    provider = None
    if callable(credentials):
        provider = credentials
    else:
        settings.update(credentials or {})
    if anonymous:
        settings["skip_signature"] = True
    if endpoint is not None:
        settings["endpoint"] = endpoint
    if region is not None:
        settings["region"] = region
    used = endpoint or next(filter(None, map(os.environ.get, _ENDPOINTS)), "")
    if used.startswith("http://"):
        client["allow_http"] = True
    try:
        store = getattr(stores, _CLASSES[scheme])(
            name, config=settings, client_options=client, retry_config=retry, credential_provider=provider
        )
    except (exceptions.BaseError, ValueError, TypeError) as error:
        raise ArgumentError(f"{url!r} cannot be opened: {_reason(str(error))}") from error
    return store, prefix


def is_obstore(value: object) -> bool:
    """Whether a value is an obstore store."""
    return type(value).__module__.partition(".")[0] == "obstore" and hasattr(value, "list_with_delimiter")


def require_obstore() -> None:
    """Raise DependencyError if obstore is not installed."""
    if obstore is None:
        raise DependencyError("object stores need obstore: pip install 'zarrlite[cloud]'")
