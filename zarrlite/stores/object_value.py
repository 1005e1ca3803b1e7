"""Values in an object store. All ranges of a value are read from one version.

Rules
- Ranges of a value that are close together are requested as one range (`Limits`), and all requests of a batch are made
  concurrently. If the responses do not all have the same version, the value is read again.
- A source remembers the version that its first response had. Later requests carry its ETag as a condition (If-Match).
  If the value was replaced, a read raises ReplacedError, and the reader starts over.
- Without a strong ETag, versions are compared by weak ETag, size and modification time. If the server does not report
  the time either, the value is read as a whole.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

from zarrlite import threads
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import MAX_ATTEMPTS, ReplacedError, VersionedSource
from zarrlite.errors import StoreError
from zarrlite.stores.base import Buffers, Limits, StoredValue, place_of
from zarrlite.stores.object_client import Answer, ChangedError, Client, Version
from zarrlite.tuning import MAX_CONFLICT_PAUSE, MIN_CONFLICT_PAUSE

_NOTHING = ByteRange(0, 0)  # stands for a HEAD request, which returns only the version of the value


class ObjectValue(StoredValue, VersionedSource):
    """A value in an object store. All its reads are from one version."""

    store: Any  # an ObjectStore

    def __init__(self, store: Any, key: str, *, once: bool = False) -> None:
        super().__init__(store, key)
        self.found_version: Version | None = None  # the version of the first response
        self._once = once  # whether the value is read only once
        self._data: Buffer | None = None  # the whole value, if its version cannot be compared with others
        self._was_replaced = False

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        (found,) = read_values([(self, ranges)])
        return found

    @staticmethod
    def read_all(requests: Sequence[tuple[Any, ByteRange]], memory: memoryview | None = None) -> Buffers:
        by_value: dict[ObjectValue, list[int]] = {}
        for i, (value, _) in enumerate(requests):
            by_value.setdefault(value, []).append(i)
        parts = read_values([(value, [requests[i][1] for i in numbers]) for value, numbers in by_value.items()])
        answers: Buffers = [None] * len(requests)
        for numbers, found in zip(by_value.values(), parts, strict=True):
            for i, part in zip(numbers, found or (), strict=found is not None):
                answers[i] = part
        return answers

    def size(self) -> int | None:
        if self.found_version is None:
            self.found_version = self._head()
        return self.known_size()

    def known_size(self) -> int | None:
        return None if self.found_version is None else self.found_version.size

    def version(self) -> str | None:
        found = self.found_version
        if found is None or not found.is_comparable:
            return None
        return found.etag if found.is_strong else f"{found.etag} {found.modified} {found.size}"

    def is_current(self) -> bool:
        if self._was_replaced or self.found_version is None or self._data is not None:
            return not self._was_replaced
        now = self._head()
        return now is not None and now.is_same(self.found_version)

    def close(self) -> None:
        self.found_version = self._data = None
        self._was_replaced = False

    # The steps of `read_values`

    def plan(self, ranges: Sequence[ByteRange], limits: Limits) -> list[ByteRange]:
        """Return the ranges to request: an empty list if the whole value has already been read."""
        if self._data is not None or not ranges:
            return []
        if self.found_version is not None:
            bounds = [byte_range.resolve(self.found_version.size) for byte_range in ranges]
            return join_ranges([(low, high) for low, high in bounds if low < high], limits)
        bounded: list[tuple[int, int]] = []
        offset: int | None = None  # lowest start of the ranges that extend to the end of the value
        suffix = 0  # largest number of bytes requested from the end of the value
        for start, stop in ranges:
            if stop is not None and stop >= 0:
                bounded.append((max(start, 0), stop))
            elif start < 0:
                suffix = max(suffix, -start)
            else:
                offset = start if offset is None else min(offset, start)
        if offset == 0:
            return [ALL]
        planned = join_ranges([(low, high) for low, high in bounded if low < high], limits)
        if offset is not None:
            planned.append(ByteRange(offset))
        if suffix:
            planned.append(ByteRange(-suffix))
        return planned or [_NOTHING]

    def fetch(self, byte_range: ByteRange) -> Answer | ChangedError | None:
        """Request a range, on the condition that the value still has the version that was read before, if any."""
        try:
            if byte_range == _NOTHING:
                found = self._head()
                return None if found is None else Answer(memoryview(b""), 0, found)
            if byte_range.start < 0 and not self.store.client.has_suffix_ranges:
                found = self._head()
                if found is None or not found.size:
                    return None if found is None else Answer(memoryview(b""), 0, found)
                low, high = byte_range.resolve(found.size)
                return self._get(ByteRange(low, high), found)
            return self._get(byte_range, self.found_version)
        except ChangedError as changed:
            return changed

    def _head(self) -> Version | None:
        client: Client = self.store.client
        return client.head(self.store.full_key(self.key))

    def _get(self, byte_range: ByteRange, version: Version | None) -> Answer | None:
        client: Client = self.store.client
        return client.get(self.store.full_key(self.key), byte_range, version)

    def take(self, ranges: Sequence[ByteRange], answers: Sequence[Any]) -> list[Buffer] | None:
        """Return the requested ranges. Returns None if the value is missing, and raises ChangedError if it changed."""
        if self._data is not None:
            return [byte_range.of(self._data) for byte_range in ranges]
        if self.found_version is None and answers and all(answer is None for answer in answers):
            return None
        for answer in answers:
            if not isinstance(answer, Answer):
                raise ChangedError
        version = self.found_version or answers[0].version
        if not all(answer.version.is_same(version) for answer in answers):
            raise ChangedError
        if not version.is_comparable and (len(answers) > 1 or not self._once):
            return self._read_whole(ranges, answers)
        found = [cut(byte_range.resolve(version.size), answers) for byte_range in ranges]
        self.found_version = version
        return found

    def _read_whole(self, ranges: Sequence[ByteRange], answers: Sequence[Answer]) -> list[Buffer] | None:
        whole = answers[0]
        if whole.start or len(whole.data) != whole.version.size:
            found = self._get(ALL, None)
            if found is None:
                raise ChangedError
            whole = found
        self.found_version, self._data = whole.version, whole.data
        return self.take(ranges, ())

    def replaced(self) -> ReplacedError:
        """Return the error for a value that no longer has the version that was read first."""
        self._was_replaced = True
        return ReplacedError("was replaced while it was read; read it again", key=self.key)


def read_values(wanted: Sequence[tuple[ObjectValue, Sequence[ByteRange]]]) -> list[list[Buffer] | None]:
    """Read parts of several values in one store, in one round of requests. None stands for a missing value."""
    found: list[list[Buffer] | None] = [None] * len(wanted)
    left = list(range(len(wanted)))
    for _ in pauses():
        left = _read_round(wanted, left, found)
        if not left:
            return found
    value = wanted[left[0]][0]
    raise StoreError(f"{value.key!r} cannot be read: it was replaced during each of {MAX_ATTEMPTS} attempts")


def _read_round(
    wanted: Sequence[tuple[ObjectValue, Sequence[ByteRange]]], numbers: Sequence[int], found: list[list[Buffer] | None]
) -> list[int]:
    """Read some of the values. Returns the indices of those that changed during the round."""
    store = wanted[0][0].store
    plans = [wanted[i][0].plan(wanted[i][1], store.limits) for i in numbers]
    requests = [(wanted[i][0], byte_range) for i, plan in zip(numbers, plans, strict=True) for byte_range in plan]
    answers = iter(threads.gather(lambda request: request[0].fetch(request[1]), requests, place_of(store)))
    changed: list[int] = []
    for i, plan in zip(numbers, plans, strict=True):
        value, ranges = wanted[i]
        received = [next(answers) for _ in plan]
        was_read = value.found_version is not None
        try:
            found[i] = value.take(ranges, received)
        except ChangedError:
            if was_read:
                raise value.replaced() from None
            changed.append(i)
    return changed


def join_ranges(bounds: Sequence[tuple[int, int]], limits: Limits) -> list[ByteRange]:
    """Return ranges that cover the given ones; those that are close to each other are joined.

    >>> join_ranges([(100, 110), (0, 50), (90_000, 90_001)], Limits(gap=100))
    [ByteRange(start=0, stop=110), ByteRange(start=90000, stop=90001)]
    """
    joined: list[ByteRange] = []
    for low, high in sorted(bounds):
        if joined:
            start, stop = joined[-1].start, joined[-1].stop or 0
            is_inside = high <= stop
            if is_inside or (low - stop <= limits.gap and high - start <= limits.longest):
                joined[-1] = ByteRange(start, max(stop, high))
                continue
        joined.append(ByteRange(low, high))
    return joined


def cut(bounds: tuple[int, int], answers: Sequence[Answer]) -> Buffer:
    """Return a range from the response that contains it. Raises ChangedError if no response does."""
    low, high = bounds
    if low == high:
        return b""
    for data, start, _ in answers:
        if start == low and len(data) == high - low:
            return data
        if start <= low and high <= start + len(data):
            return data[low - start : high - start]
    raise ChangedError


def pauses() -> Iterator[None]:
    """Yield once for each attempt to read or update a value, with growing pauses in between."""
    longest = MIN_CONFLICT_PAUSE
    for attempt in range(MAX_ATTEMPTS):
        if attempt:
            time.sleep(random.uniform(0, longest))
            longest = min(2 * longest, MAX_CONFLICT_PAUSE)
        yield
