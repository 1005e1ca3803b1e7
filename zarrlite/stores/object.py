"""Object stores (S3, Google Cloud Storage, Azure) and HTTP servers as stores.

Rules
- Each value is an object, and is replaced as a whole. Reading is implemented in object_value.py, and requests in
  object_client.py.
- A value is updated by a conditional request, which stores the new value only if the current one still has the version
  that was read. Otherwise the update is repeated with the current value. So no updates are lost, even if writers on
  several machines update the same value.
- Servers that ignore conditions are detected before the first update, and updates are then refused. With
  `single_writer`, requests have no conditions, and an update excludes only other threads of this process.
- No conditional request can erase a value, so an update may erase a value only with `single_writer`.
- If the response to a conditional request is lost, the value is read: equal bytes mean that it was stored.
- A bucket or an HTTP server is a `Place` (threads.py): all stores in it share its limit on concurrent requests.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from zarrlite.buffers.pieces import join
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import MAX_ATTEMPTS, Source
from zarrlite.errors import ArgumentError, ReadOnlyError, StoreError
from zarrlite.stores.base import (
    Buffers,
    Change,
    InPlace,
    Limits,
    Listing,
    Request,
    Store,
    Update,
    ValueReadOnce,
    WrongSizeError,
    check_key,
    check_prefix,
    flat,
    overwrite,
    set_under_lock,
)
from zarrlite.stores.object_client import (
    SCHEMES,
    ChangedError,
    Client,
    LostAnswerError,
    Version,
    connect,
    is_obstore,
    require_obstore,
)
from zarrlite.stores.object_value import ObjectValue, cut, pauses, read_values
from zarrlite.tuning import REMOTE_CONCURRENCY, REMOTE_GAP_BYTES

PROBE = "__zarrlite.probe."  # prefix of the temporary keys with which conditional requests are tested
_WRONG_VERSION = Version('"00000000000000000000000000000000"', "1", None, 0)
_honours_conditions: dict[Hashable, bool] = {}  # bucket or server -> whether it honours conditional requests


class ObjectStore(Store):
    """A store in an S3, Google Cloud Storage or Azure bucket, or (read-only) on an HTTP server.

    Settings that are not passed are taken from the environment variables of the service (`AWS_ACCESS_KEY_ID`,
    `AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`, ...). Functions that take a store
    accept the keywords of this class as `storage_options`. Requests require the package obstore
    (`pip install 'zarrlite[cloud]'`).

    Parameters
    ----------
    store : str or obstore store
        A URL: `s3://bucket/path`, `gs://bucket/path`, `az://container/path`, `http://...` or `https://...`. Or an
        obstore store, which already has its settings; then only the last four parameters can be passed.
    anonymous : bool, optional
        Whether to send unsigned requests, as for public data, without looking for credentials.
    endpoint : str or None, optional
        The URL of the server, if it is not the default of the service.
    region : str or None, optional
        The region of the bucket.
    credentials : mapping or callable, optional
        The credentials, under the names that obstore uses: `{"access_key_id": ..., "secret_access_key": ...}` for S3,
        `{"account_name": ..., "account_key": ...}` for Azure; or a credential provider of obstore.
    config : mapping, optional
        More settings of the service, under the names that obstore uses.
    headers : mapping, optional
        Headers to send with every request.
    timeout : float, optional
        How many seconds a request may take.
    connect_timeout : float, optional
        How many seconds connecting to the server may take.
    retries : int, optional
        How often a request is repeated after an error of the server or the network.
    retry_timeout : float, optional
        How many seconds after the first attempt a request may still be repeated.
    concurrency : int, optional
        How many requests to the bucket or server may be under way at once.
    single_writer : bool, optional
        Whether no other process writes to the store. Updates are then not conditional, and can erase values.
    missing_status : sequence of int, optional
        The HTTP statuses that mean that a key does not exist. Pass `(403, 404)` for public buckets that answer 403 to
        requests for missing keys.
    read_only : bool, optional
        Whether the store refuses changes.

    Raises
    ------
    DependencyError
        If obstore is not installed.
    ArgumentError
        If the URL or a setting is invalid.

    Examples
    --------
    >>> ObjectStore("s3://bucket/data.zarr", anonymous=True, region="eu-central-1")
    ObjectStore('s3://bucket/data.zarr')
    """

    def __init__(
        self,
        store: Any,
        *,
        anonymous: bool = False,
        endpoint: str | None = None,
        region: str | None = None,
        credentials: Mapping[str, Any] | Callable[[], Any] | None = None,
        config: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 120.0,
        connect_timeout: float = 5.0,
        retries: int = 10,
        retry_timeout: float = 180.0,
        concurrency: int = REMOTE_CONCURRENCY,
        single_writer: bool = False,
        missing_status: Sequence[int] = (404,),
        read_only: bool = False,
    ) -> None:
        require_obstore()
        if type(concurrency) is bool or not isinstance(concurrency, int) or concurrency < 1:
            raise ArgumentError(f"concurrency must be a positive integer, not {concurrency!r}")
        settings: dict[str, Any] = {
            "anonymous": anonymous,
            "endpoint": endpoint,
            "region": region,
            "credentials": credentials,
            "config": config,
            "headers": headers,
            "timeout": timeout,
            "connect_timeout": connect_timeout,
            "retries": retries,
            "retry_timeout": retry_timeout,
        }
        if isinstance(store, str):
            if store.partition("://")[0].lower() not in SCHEMES:
                raise ArgumentError(f"store must be a URL ({', '.join(SCHEMES)}) or an obstore store, not {store!r}")
            requests, prefix = connect(store, **settings)
        elif is_obstore(store):
            passed = [name for name, value in settings.items() if value != OPTIONS[name]]
            if passed:
                raise ArgumentError(f"an obstore store already has its settings; do not pass {', '.join(passed)}")
            requests, prefix = store, ""
        else:
            raise ArgumentError(f"store must be a URL or an obstore store, not {type(store).__name__}")
        prefix = prefix.strip("/")
        self._root = check_prefix(prefix and f"{prefix}/")
        self._options = {
            **settings,
            "concurrency": concurrency,
            "single_writer": single_writer,
            "missing_status": tuple(missing_status),
            "read_only": read_only,
        }
        self._source = store
        self.client = Client(requests, missing_status)
        self._place, self._base = self.client.place()
        self.single_writer = single_writer
        self.read_only = read_only or self.client.is_http
        self.limits = Limits(concurrency, gap=REMOTE_GAP_BYTES, shared=not (single_writer or self.read_only))

    def __repr__(self) -> str:
        root = self._root.rstrip("/")
        return f"ObjectStore({self.client.describe() + (root and f'/{root}')!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStore) and (other.location(), other.limits) == (self.location(), self.limits)

    def __hash__(self) -> int:
        return hash(self.location())

    def __reduce__(self) -> tuple[Any, ...]:
        self.client.check_picklable()
        return _rebuild, (type(self), self._source, self._options)

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return self._place, self._base + self._root + prefix

    def full_key(self, key: str) -> str:
        """Convert a key of this store to the full key in the bucket."""
        return self._root + check_key(key)

    # Reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self._get_part(key, byte_range)

    def _get_part(self, key: str, byte_range: ByteRange, size: int | None = None) -> Buffer | None:
        """Return part of a value, without comparing versions if one request suffices."""
        if size is not None and byte_range == (0, size):
            byte_range = ALL
        start, stop = byte_range
        if start >= 0 and (stop is None or stop > start):
            with contextlib.suppress(ChangedError):
                answer = self.client.get(self.full_key(key), byte_range, size=size)
                return None if answer is None else cut(byte_range.resolve(answer.version.size), (answer,))
        value = ObjectValue(self, check_key(key), once=True)
        (found,) = read_values([(value, (byte_range,))])
        if found is not None and size is not None and value.known_size() not in (None, size):
            raise WrongSizeError(value.known_size() or 0, size)
        return None if found is None else found[0]

    def get_partial_values(self, requests: Sequence[Request], memory: memoryview | None = None) -> Buffers:
        """Return parts of values. All parts of a value are from the same version.

        The parts stay in memory allocated by obstore, which saves a copy; `memory` is not used.
        """
        if len(requests) == 1:
            return [self._get_part(*requests[0])]
        if not requests:
            return []
        by_key: dict[str, list[int]] = {}
        for i, request in enumerate(requests):
            by_key.setdefault(check_key(request[0]), []).append(i)
        values = [ObjectValue(self, key, once=True) for key in by_key]
        ranges = [[requests[i][1] for i in numbers] for numbers in by_key.values()]
        parts = read_values([*zip(values, ranges, strict=True)])
        answers: Buffers = [None] * len(requests)
        for value, numbers, found in zip(values, by_key.values(), parts, strict=True):
            for i, part in zip(numbers, found or (), strict=found is not None):
                expected = requests[i][2] if len(requests[i]) > 2 else None  # type: ignore[misc]
                if expected is not None and value.known_size() not in (None, expected):
                    raise WrongSizeError(value.known_size() or 0, expected)
                answers[i] = part
        return answers

    def size(self, key: str) -> int | None:
        found = self.client.head(self.full_key(key))
        return None if found is None else found.size

    def source(self, key: str) -> Source:
        return ObjectValue(self, check_key(key))

    # Listing

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        return (key for key, _, _ in self.list_versions(prefix))

    def list_versions(self, prefix: str) -> Iterator[tuple[str, int, str]]:
        """Yield every key under a prefix, with the size and the ETag of its value. The ETag may be empty."""
        start = len(self._root)
        for key, size, tag in self.client.list(self._root + check_prefix(prefix)):
            yield key[start:], size, tag

    def list_dir(self, prefix: str) -> Listing:
        keys, prefixes = self.client.list_dir(self._root + check_prefix(prefix))
        start = len(self._root)
        return sorted(key[start:] for key in keys), sorted(name[start:] + "/" for name in prefixes)

    # Writing

    def set(self, key: str, value: Buffer, new: bool = False) -> bool:
        self._check_writable()
        with self.lock(key):
            if new and self.single_writer:
                return set_under_lock(self, key, value)
            if new:
                return self._create(key, flat(value))
            self.client.put(self.full_key(key), flat(value))
        return True

    def _create(self, key: str, value: memoryview) -> bool:
        """Store a value if the key does not exist, by a conditional request."""
        self._require_conditions(key)
        lost: StoreError | None = None
        for _ in pauses():
            try:
                self.client.put_if(self.full_key(key), value, None)
                return True
            except ChangedError:
                return lost is not None and self._is_stored(key, value)
            except LostAnswerError as answer:
                lost = answer.error
                if self._is_stored(key, value):
                    return True
        raise lost or self._given_up(key)

    def erase(self, key: str) -> None:
        self._check_writable()
        with self.lock(key):
            self.client.delete([self.full_key(key)])

    def erase_prefix(self, prefix: str) -> None:
        self._check_writable()
        super().erase_prefix(prefix)

    def change(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Change several values, in order.

        Unless `single_writer` is set, one request erases up to 1000 consecutive keys.
        """
        self._check_writable()
        for is_erasure, group in itertools.groupby(changes, key=lambda item: item[1] is None):
            if not is_erasure:
                for item in group:
                    self._change_one(item)
            elif self.single_writer:  # under locks, so that no update by another thread restores an erased value
                super().change([*group])
            else:
                self.client.delete([self.full_key(key) for key, _ in group])

    def _apply(self, key: str, change: Update) -> None:
        if self.single_writer:
            super()._apply(key, change)
            return
        unconfirmed: list[bytes] = []  # values that may have been stored, although there was no response
        lost: StoreError | None = None
        for _ in pauses():
            value = ObjectValue(self, key)
            old = ValueReadOnce(value)
            new = change(old)
            if isinstance(new, InPlace):
                new = overwrite(old.read_one(), new.patches)
            if not old.was_read:  # the new value does not depend on the old one
                self._store(key, new)
                return
            if new is None and value.found_version is None:
                return
            if new is None:
                raise self._refused(key, "erased by an update, which could erase a value stored by another writer")
            data = flat(join(new))
            self._require_conditions(key, value.found_version)
            try:
                self.client.put_if(self.full_key(key), data, value.found_version)
                return
            except ChangedError:
                if any(self._is_stored(key, earlier) for earlier in unconfirmed):
                    return
            except LostAnswerError as answer:
                if self._is_stored(key, data):
                    return
                unconfirmed.append(bytes(data))
                lost = answer.error
        raise lost or self._given_up(key)

    def _is_stored(self, key: str, value: Buffer) -> bool:
        stored = self.get(key)
        return stored is not None and stored == value

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError(f"{self!r} is read-only")

    def _given_up(self, key: str) -> StoreError:
        message = f"{key!r} cannot be updated: other writers have changed it during each of {MAX_ATTEMPTS} attempts"
        return StoreError(message, key=key, errno=errno.EBUSY)

    def _refused(self, key: str, reason: str) -> StoreError:
        message = f"{key!r} in {self!r} must not be {reason}; pass storage_options={{'single_writer': True}}"
        return StoreError(f"{message} if no other process writes there", key=key, errno=errno.ENOTSUP)

    # Conditional requests

    def _require_conditions(self, key: str, version: Version | None = None) -> None:
        """Raise StoreError if the server ignores conditions, or sends no strong ETag for a value to be updated."""
        honours = _honours_conditions.get(self._place)
        if honours is None:
            honours = _honours_conditions[self._place] = self._probe()
        if not honours:
            raise self._refused(key, "updated: the server ignores conditional requests, so updates could be lost")
        if version is not None and not version.is_strong:
            raise self._refused(key, f"updated: only a strong ETag can reveal other writers, not {version.etag!r}")

    def _probe(self) -> bool:
        """Test whether the server refuses to create a key twice, and to replace a value if the ETag does not match."""
        key = f"{self._root}{PROBE}{uuid.uuid4().hex}"
        try:
            for _ in pauses():
                try:
                    self.client.put_if(key, memoryview(b"zarrlite"), None)
                    break
                except LostAnswerError as answer:
                    if self.client.head(key) is not None:
                        break
                    lost = answer.error
            else:
                raise lost
            return self._is_refused(key, None) and self._is_refused(key, _WRONG_VERSION)
        finally:
            with contextlib.suppress(StoreError):  # a writer may lack the permission to erase keys
                self.client.delete([key])

    def _is_refused(self, key: str, version: Version | None) -> bool:
        lost: StoreError | None = None
        for _ in pauses():
            try:
                self.client.put_if(key, memoryview(b"zarrlite"), version)
                return False
            except ChangedError:
                return True
            except LostAnswerError as answer:
                lost = answer.error
        raise lost or self._given_up(key)


OPTIONS: Mapping[str, Any] = ObjectStore.__init__.__kwdefaults__ or {}  # the keywords, with their defaults


def _rebuild(cls: type[ObjectStore], source: Any, options: dict[str, Any]) -> ObjectStore:
    return cls(source, **options)
