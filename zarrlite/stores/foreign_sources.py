"""Wrappers that turn the exceptions of sources into StoreErrors, for stores that users define.

Rules
- An exception becomes the cause of a StoreError that names the key. Errors of this library, and interrupts, are passed
  on unchanged.
- Sources of this library are not wrapped: they read through operations of the store, which are wrapped themselves.
- A wrapper is of the same kind as its source: a `VersionedSource`, a `GrowingSource`, both or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.buffers.source import GrowingSource, Source, VersionedSource
from zarrlite.errors import ZarrliteError
from zarrlite.stores.store_errors import foreign_error

R = TypeVar("R")


class _Reporting(Source):
    """A wrapper that turns the exceptions of a source into StoreErrors."""

    def __init__(self, source: Any, key: str) -> None:
        self._source: Source = source
        self._key = key
        self.separate_tail = source.separate_tail

    def _call(self, operation: Callable[..., R], *args: Any) -> R:
        try:
            return operation(*args)
        except ZarrliteError:
            raise
        except Exception as error:
            raise foreign_error(error, self._key, "read") from error

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        return self._call(self._source.read, ranges, memory)

    def size(self) -> int | None:
        return self._call(self._source.size)

    def known_size(self) -> int | None:
        return self._call(self._source.known_size)

    def is_current(self) -> bool:
        return self._call(self._source.is_current)

    def version(self) -> str | None:
        return self._call(self._source.version)

    def close(self) -> None:
        self._call(self._source.close)


class _ReportingVersioned(_Reporting, VersionedSource):
    pass


class _ReportingGrowing(_Reporting, GrowingSource):
    _source: GrowingSource

    def has_grown(self) -> bool:
        return self._call(self._source.has_grown)


class _ReportingBoth(_ReportingVersioned, _ReportingGrowing):
    pass


_KINDS: dict[tuple[bool, bool], type[_Reporting]] = {
    (False, False): _Reporting,
    (True, False): _ReportingVersioned,
    (False, True): _ReportingGrowing,
    (True, True): _ReportingBoth,
}


def reporting_source(source: Source, key: str) -> Source:
    """Wrap a source so that its exceptions become errors of this library.

    A source that is defined in this library is returned unchanged.
    """
    if type(source).__module__.startswith("zarrlite."):
        return source
    return _KINDS[isinstance(source, VersionedSource), isinstance(source, GrowingSource)](source, key)
