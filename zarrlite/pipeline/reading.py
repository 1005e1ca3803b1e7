"""Reading without I/O: a reading is a generator that yields the byte ranges it needs and receives the bytes.

Rules
- A reading handles several chunks at once and proceeds in rounds: it yields the requests of all of them, receives the
  answers in the same order (None for a missing value), and yields the next round, until it returns.
- The runner decides how requests are served: by one call to a store, by open sources, from memory.
- A reading may provide memory for the answers of a round; they are there or elsewhere, and only the reading knows when
  it reuses that memory.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.buffers.source import inner_size
from zarrlite.errors import TruncatedError
from zarrlite.pipeline.elements import NDArray
from zarrlite.selections.selection import Selection

T = TypeVar("T")
Part = tuple[Selection, NDArray]  # elements of a chunk, and the array of the same shape that receives them
# whose value: a key, a source, or what else the runner understands; which bytes; which size the value must have, if any
Request = tuple[Any, ByteRange, int | None]
Round = tuple[list[Request], memoryview | None]  # and memory that the answers may be read into, one after the other
Reading = Generator[Round, Sequence[Buffer | None], T]


class FailedPart(Exception):
    """An error in one of several parts, with the number of that part; never reaches the user."""

    def __init__(self, number: int, error: Exception) -> None:
        super().__init__(number, error)
        self.number = number
        self.error = error


def read_from_sources(reading: Reading[T]) -> T:
    """Run a reading whose handles are sources, one request after the other."""
    try:
        requests, memory = next(reading)
        while True:
            requests, memory = reading.send(_read(requests, memory))
    except StopIteration as done:
        result: T = done.value
        return result


def _read(requests: list[Request], memory: memoryview | None) -> Sequence[Buffer | None]:
    """Read from sources, neighbouring requests for the same one together."""
    if len(requests) == 1 and requests[0][2] is None:
        source, byte_range, _ = requests[0]
        return source.read((byte_range,), memory) or (None,)
    answers: list[Buffer | None] = []
    first = 0
    while first < len(requests):
        source, byte_range, size = requests[first]
        last = first + 1
        while last < len(requests) and requests[last][0] is source:
            last += 1
        ranges = [byte_range] if last == first + 1 else [r for _, r, _ in requests[first:last]]
        found = source.read(ranges, memory)
        memory = None  # used up
        if found is not None and size is not None and source.known_size() not in (None, size):
            raise TruncatedError(f"has {source.known_size()} bytes, must have {size}")
        answers += [None] * len(ranges) if found is None else found
        first = last
    return answers


def read_from_memory(reading: Reading[T]) -> T:
    """Run a reading whose handles are sources in memory."""
    try:
        requests, _ = next(reading)
        while True:
            requests, _ = reading.send([byte_range.of(handle.value) for handle, byte_range, _ in requests])
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
        size: int | None = self.handle.known_size()
        return None if size is None else inner_size(size, self.head, self.tail, self.codec)


def unframed(reading: Reading[T], head: int, tail: int) -> Reading[T]:
    """Run a reading of values without their frames, whose handles are `Framed`, on the framed values."""
    answers: Sequence[Buffer | None] | None = None
    while True:
        try:
            requests, memory = next(reading) if answers is None else reading.send(answers)
        except StopIteration as done:
            result: T = done.value
            return result
        found = yield [(handle.handle, _shift(r, head, tail), size) for handle, r, size in requests], memory
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
        reach = max(r.start, r.stop or 0, -r.start, -(r.stop or 0), 1)
        need = handle.head + reach + handle.tail
        (last,) = yield [(handle.handle, ByteRange(need - 1, need), None)], None
        if last:
            return answer  # long enough: the range cannot have reached the frame at the other end
        (value,) = yield [(handle.handle, ByteRange(), None)], None
        if value is None:
            return None
        size = inner_size(len(value), handle.head, handle.tail, handle.codec)
        return r.of(memoryview(value)[handle.head : handle.head + size])
    low, high = r.resolve(size)
    if len(answer) == high - low:
        return answer
    (exact,) = yield [(handle.handle, ByteRange(handle.head + low, handle.head + high), None)], None
    return exact
