"""Reading without I/O: a reading is a generator that yields the byte ranges it needs and receives the bytes.

Rules
- A reading handles several chunks at once and proceeds in rounds: it yields the requests of all of them, receives the
  answers in the same order (None for a missing value), and yields the next round, until it returns.
- Whoever runs it decides how requests are served: by one call to a store, by open sources, from memory.
- Answers may be in scratch memory: they are valid until the reading yields again.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeVar

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source, inner_size
from zarrlite.errors import TruncatedError
from zarrlite.pipeline.elements import NDArray
from zarrlite.selections.selection import Selection
from zarrlite.stores.base import StoredValue, read_together

T = TypeVar("T")
Part = tuple[Selection, NDArray]  # elements of a chunk, and the array of the same shape that receives them
# whose value: a key, a source, or what else the runner understands; which bytes; which size the value must have, if any
Request = tuple[Any, ByteRange, int | None]
Reading = Generator[list[Request], Sequence[Buffer | None], T]


class FailedPart(Exception):
    """An error in one of several parts, with the number of that part; never reaches the user."""

    def __init__(self, number: int, error: Exception) -> None:
        super().__init__(number, error)
        self.number = number
        self.error = error


def read_from_sources(reading: Reading[T], memory: memoryview | None = None) -> T:
    """Run a reading whose handles are sources; each round is one batch of requests where sources are read by key."""
    try:
        requests = next(reading)
        while True:
            requests = reading.send([*_read(requests, memory)])
    except StopIteration as done:
        result: T = done.value
        return result


def _read(requests: list[Request], memory: memoryview | None) -> Iterator[Buffer | None]:
    """Read each request, those of one source that follow each other together."""
    if requests and requests[-1][0] is not requests[0][0] and isinstance(requests[0][0], StoredValue):
        yield from read_together([(source, byte_range) for source, byte_range, _ in requests])
        return
    first = 0
    while first < len(requests):
        source: Source = requests[first][0]
        last = first + 1
        while last < len(requests) and requests[last][0] is source:
            last += 1
        found = source.read(
            [byte_range for _, byte_range, _ in requests[first:last]],
            memory if last == len(requests) and not first else None,
        )
        if found is None:
            yield from [None] * (last - first)
        else:
            for _, _, size in requests[first:last]:
                if size is not None and source.known_size() not in (None, size):
                    raise TruncatedError(f"has {source.known_size()} bytes, must have {size}")
            yield from found
        first = last


def read_from_memory(reading: Reading[T]) -> T:
    """Run a reading whose handles are sources in memory."""
    try:
        requests = next(reading)
        while True:
            requests = reading.send([byte_range.of(handle.value) for handle, byte_range, _ in requests])
    except StopIteration as done:
        result: T = done.value
        return result


class Framed:
    """A handle of a value without its frame; the handle of the framed value is inside."""

    __slots__ = ("codec", "handle", "head", "tail")

    def __init__(self, handle: Any, head: int, tail: int, codec: str) -> None:
        self.handle = handle
        self.head = head
        self.tail = tail
        self.codec = codec

    def known_size(self) -> int | None:
        return self._inner_size(self.handle.known_size())

    def size(self) -> int | None:
        """Return the size. Returns None if that takes reading the value."""
        return self._inner_size(self.handle.size() if self.handle.sized else None)

    def _inner_size(self, size: int | None) -> int | None:
        return None if size is None else inner_size(size, self.head, self.tail, self.codec)


def unframed(reading: Reading[T], head: int, tail: int) -> Reading[T]:
    """Run a reading of values without their frames, whose handles are `Framed`, on the framed values."""
    answers: Sequence[Buffer | None] | None = None
    while True:
        try:
            requests = next(reading) if answers is None else reading.send(answers)
        except StopIteration as done:
            result: T = done.value
            return result
        found = yield [(handle.handle, _shift(r, head, tail), size) for handle, r, size in requests]
        answers = []
        for (handle, r, _), answer in zip(requests, found, strict=True):
            if answer is not None:
                answer = yield from _without_frame(handle, r, answer)
            answers.append(answer)


def _shift(r: ByteRange, head: int, tail: int) -> ByteRange:
    start = r.start + head if r.start >= 0 else r.start - tail
    if r.stop is None:
        return ByteRange(start, -tail or None)
    return ByteRange(start, r.stop + head if r.stop >= 0 else r.stop - tail)


def _without_frame(handle: Framed, r: ByteRange, answer: Buffer) -> Reading[Buffer | None]:
    """Return an answer without the bytes of the frame that a shifted range of a short value has reached."""
    size = handle.known_size()
    if size is None:
        # only an offset from the start can reach the frame at the end, and the other way round
        from_start = max(r.start, r.stop or 0) if handle.tail else 0
        from_end = -min(r.start, r.stop or 0) if handle.head else 0
        if answer and max(from_start, from_end) <= 0:
            return answer
        size = handle.size()
    if size is None:
        need = handle.head + max(from_start, from_end, 0) + handle.tail
        (last,) = yield [(handle.handle, ByteRange(need - 1, need), None)]
        if last:
            return answer  # long enough: the range cannot have reached the frame at the other end
        (value,) = yield [(handle.handle, ALL, None)]
        if value is None:
            return None
        size = inner_size(len(value), handle.head, handle.tail, handle.codec)
        return r.of(memoryview(value)[handle.head : handle.head + size])
    low, high = r.resolve(size)
    if len(answer) == high - low:
        return answer
    (exact,) = yield [(handle.handle, ByteRange(handle.head + low, handle.head + high), None)]
    return exact


def in_memory(values: Sequence[Buffer]) -> list[InMemory]:
    """Return handles of values in memory."""
    return [InMemory(value) for value in values]
