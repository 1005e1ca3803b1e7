"""zarrlite's stores for zarr-python, and zarr-python's stores for zarrlite.

Rules
- `ZarrStore` wraps a zarrlite store for zarr-python. It cannot prevent lost updates: zarr-python updates chunks without
  locks, so that two writers of the same chunk may overwrite each other's changes, whatever the store.
- `FromZarr` wraps a zarr-python store for zarrlite, and calls it in zarr-python's own event loop.
- Byte ranges are passed on in both directions.
- Stores such as icechunk accept only keys that Zarr defines. For them, `FromZarr` keeps zarrlite's own keys in memory.
  This is safe, because these keys only tell later processes about unfinished changes, and a store with transactions
  undoes an unfinished change as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator
from typing import Any

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.errors import DependencyError, StoreError, ZarrliteError
from zarrlite.stores.base import Limits, Store, check_key, check_prefix
from zarrlite.stores.open import StoreLike, open_store
from zarrlite.stores.store_errors import foreign_error

try:
    from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
    from zarr.abc.store import Store as ZarrBase
    from zarr.core.buffer import Buffer as ZarrBuffer
    from zarr.core.buffer import BufferPrototype, default_buffer_prototype
    from zarr.core.sync import sync
    from zarr.storage import StorePath
except ImportError as error:
    raise DependencyError("the bridge to zarr-python needs zarr 3.1 or later: pip install 'zarrlite[zarr]'") from error


class ZarrStore(ZarrBase):
    """A zarr-python store that wraps a zarrlite store.

    Parameters
    ----------
    store : Store, path, URI, mapping or None
        The store, as for `zarrlite.open`.
    read_only : bool, optional
        Whether to refuse changes.

    Examples
    --------
    >>> import zarr, zarrlite
    >>> a = zarrlite.create_array("memory://", data=[1, 2, 3])
    >>> zarr.open_array(ZarrStore(a.store), mode="r")[1:]
    array([2, 3])
    """

    supports_writes = True
    supports_deletes = True
    supports_listing = True

    def __init__(self, store: StoreLike = None, *, read_only: bool = False) -> None:
        self.store = open_store(store)
        super().__init__(read_only=read_only or self.store.read_only)

    def with_read_only(self, read_only: bool = False) -> ZarrStore:
        return type(self)(self.store, read_only=read_only)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZarrStore) and (self.store, self.read_only) == (other.store, other.read_only)

    def __hash__(self) -> int:
        return hash((ZarrStore, self.store))

    def __repr__(self) -> str:
        return f"ZarrStore({self.store!r})"

    __str__ = __repr__

    # Reading

    def _read(self, key: str, prototype: BufferPrototype | None, byte_range: ByteRequest | None) -> ZarrBuffer | None:
        value = self.store.get(key, _byte_range(byte_range))
        return None if value is None else (prototype or default_buffer_prototype()).buffer.from_bytes(value)

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> ZarrBuffer | None:
        await self._ensure_open()
        return await asyncio.to_thread(self._read, key, prototype, byte_range)

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> ZarrBuffer | None:
        """Read a value, or part of it, without an event loop."""
        return self._read(key, prototype, byte_range)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[ZarrBuffer | None]:
        requests = [(key, _byte_range(byte_range)) for key, byte_range in key_ranges]
        found = await asyncio.to_thread(self.store.get_partial_values, requests)
        return [None if value is None else prototype.buffer.from_bytes(value) for value in found]

    async def exists(self, key: str) -> bool:
        return await asyncio.to_thread(self.store.size, key) is not None

    async def getsize(self, key: str) -> int:
        size = await asyncio.to_thread(self.store.size, key)
        if size is None:
            raise FileNotFoundError(key)
        return size

    # Writing

    def _write(self, key: str, value: ZarrBuffer, new: bool = False) -> None:
        self._check_writable()
        if not isinstance(value, ZarrBuffer):
            raise TypeError(f"ZarrStore.set(): value must be a zarr-python Buffer, not {type(value).__name__}")
        self.store.set(key, value.to_bytes(), new=new)

    async def set(self, key: str, value: ZarrBuffer) -> None:
        await self._ensure_open()
        await asyncio.to_thread(self._write, key, value)

    def set_sync(self, key: str, value: ZarrBuffer) -> None:
        """Store a value without an event loop."""
        self._write(key, value)

    async def set_if_not_exists(self, key: str, value: ZarrBuffer) -> None:
        await self._ensure_open()
        await asyncio.to_thread(self._write, key, value, True)

    async def delete(self, key: str) -> None:
        self._check_writable()
        await asyncio.to_thread(self.store.erase, key)

    def delete_sync(self, key: str) -> None:
        """Erase a value without an event loop."""
        self._check_writable()
        self.store.erase(key)

    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        await asyncio.to_thread(self.store.erase_prefix, _prefix(prefix))

    async def clear(self) -> None:
        await self.delete_dir("")

    # Listing

    async def list(self) -> AsyncIterator[str]:
        for key in await asyncio.to_thread(list, self.store.list()):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        # zarr-python's prefixes may end within a name
        below = prefix[: prefix.rfind("/") + 1]
        if below.startswith("/"):
            return  # no key starts with a slash
        for key in await asyncio.to_thread(list, self.store.list_prefix(below)):
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        below = _prefix(prefix)
        keys, prefixes = await asyncio.to_thread(self.store.list_dir, below)
        for name in (*keys, *prefixes):
            yield name[len(below) :].rstrip("/")

    async def is_empty(self, prefix: str) -> bool:
        keys, prefixes = await asyncio.to_thread(self.store.list_dir, _prefix(prefix))
        return not keys and not prefixes

    def close(self) -> None:
        super().close()
        self.store.close()


def _prefix(path: str) -> str:
    """Return the prefix of the keys below a path. zarr-python may pass the path with slashes around it."""
    path = path.strip("/")
    return f"{path}/" if path else ""


def _byte_range(request: ByteRequest | None) -> ByteRange:
    if request is None:
        return ALL
    if isinstance(request, RangeByteRequest):
        return ByteRange(request.start, request.end)
    if isinstance(request, OffsetByteRequest):
        return ByteRange(request.offset)
    if isinstance(request, SuffixByteRequest):
        return ByteRange(-request.suffix) if request.suffix else ByteRange(0, 0)
    raise ValueError(f"Unexpected byte_range, got {request}.")


class FromZarr(Store):
    """A zarrlite store that wraps a zarr-python store: icechunk, ObjectStore, FsspecStore, a reference store or others.

    Parameters
    ----------
    store : zarr.abc.store.Store
        The store.

    Examples
    --------
    >>> import zarr, zarrlite
    >>> store = zarr.storage.MemoryStore()
    >>> _ = zarr.create_array(store, data=__import__("numpy").arange(3))
    >>> zarrlite.open_array(FromZarr(store), mode="r")[1:]
    array([1, 2])
    """

    limits = Limits(concurrency=64)

    def __init__(self, store: ZarrBase) -> None:
        if not isinstance(store, ZarrBase):
            raise StoreError(f"FromZarr() takes a zarr-python store, not {type(store).__name__}")
        self.zarr_store = store
        self.read_only = store.read_only
        self._is_open = False
        self._kept: dict[str, bytes] = {}  # the values of those of zarrlite's own keys that the wrapped store refuses

    def __repr__(self) -> str:
        return f"FromZarr({self.zarr_store!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FromZarr) and other.zarr_store == self.zarr_store

    def __hash__(self) -> int:
        return hash((FromZarr, str(self.zarr_store)))

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return str(self.zarr_store), prefix

    # Reading

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        if check_key(key) in self._kept:
            return byte_range.of(self._kept[key])
        request, cut = (None, byte_range) if key.endswith(".json") else _byte_request(byte_range)
        found = self._get(key, request)
        if isinstance(request, SuffixByteRequest) and found is not None and len(found) != request.suffix:
            # zarr-python's stores differ in what they return for a suffix that is longer than the value
            found, cut = self._get(key, None), byte_range
        return None if found is None else cut.of(found.to_bytes())

    def _get(self, key: str, request: ByteRequest | None) -> ZarrBuffer | None:
        try:
            if not self._is_open:  # opened before the first read, as in zarr-python: a ZipStore does not open itself
                sync(StorePath.open(self.zarr_store, ""))
                self._is_open = True
            found: ZarrBuffer | None = sync(self.zarr_store.get(key, default_buffer_prototype(), request))
        except Exception as error:
            if _is_own(key) and _refuses_keys(error):
                return None
            raise _reported(error, key, "read") from error
        return found

    def size(self, key: str) -> int | None:
        if _is_own(check_key(key)):
            value = self.get(key)
            return None if value is None else len(value)
        try:
            size: int = sync(self.zarr_store.getsize(key))
        except (FileNotFoundError, KeyError):  # icechunk raises KeyError
            return None
        except Exception as error:
            raise _reported(error, key, "read") from error
        return size

    # Listing

    def list(self) -> Iterator[str]:
        return self._listed("", self.zarr_store.list)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        return self._listed(prefix, lambda: self.zarr_store.list_prefix(prefix))

    def _listed(self, prefix: str, listing: Callable[[], AsyncIterator[str]]) -> Iterator[str]:
        found = []
        try:
            found = sync(_collect(listing()))
        except Exception as error:
            if not _refuses_keys(error):  # the wrapped store has no keys under a prefix that it refuses
                raise _reported(error, prefix, "listed") from error
        return iter(sorted(key for key in {*found, *self._kept} if key.startswith(prefix)))

    # Writing

    def set(self, key: str, value: Buffer) -> None:  # type: ignore[override]
        buffer = default_buffer_prototype().buffer.from_bytes(bytes(value))
        try:
            sync(self.zarr_store.set(check_key(key), buffer))
        except Exception as error:
            if not (_is_own(key) and _refuses_keys(error)):
                raise _reported(error, key, "written") from error
            self._kept[key] = bytes(value)

    def erase(self, key: str) -> None:
        if self._kept.pop(check_key(key), None) is not None:
            return
        try:
            sync(self.zarr_store.delete(key))
        except (FileNotFoundError, KeyError):
            return
        except Exception as error:
            if not (_is_own(key) and _refuses_keys(error)):
                raise _reported(error, key, "erased") from error

    def close(self) -> None:
        self.zarr_store.close()


def _is_own(key: str) -> bool:
    """Whether a key is one of zarrlite's own, which Zarr does not define."""
    return key.rpartition("/")[2].startswith("__zarrlite.")


def _refuses_keys(error: Exception) -> bool:
    """Whether a store has refused a key or a prefix because Zarr does not define it."""
    text = str(error)  # icechunk raises the same class for all errors
    return "invalid zarr key" in text or "bad key prefix" in text


def _reported(error: Exception, key: str, action: str) -> ZarrliteError:
    """Return the ZarrliteError to raise for an exception from the wrapped store."""
    return error if isinstance(error, ZarrliteError) else foreign_error(error, key, action)


async def _collect(keys: AsyncIterator[str]) -> Any:
    return [key async for key in keys]


def _byte_request(byte_range: ByteRange) -> tuple[ByteRequest | None, ByteRange]:
    """Return a zarr-python request for at least a range, and the range to cut out of the bytes that it returns."""
    start, stop = byte_range
    if stop is None and start > 0:
        return OffsetByteRequest(start), ALL
    if stop is None and start < 0:
        return SuffixByteRequest(-start), ALL
    if stop is not None and 0 <= start < stop:
        return RangeByteRequest(start, stop), ALL
    if stop is None or byte_range == ALL:
        return None, ALL
    return None, byte_range


__all__ = ["FromZarr", "ZarrStore"]
