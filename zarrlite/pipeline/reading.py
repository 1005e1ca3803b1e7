"""Reading without I/O: a reading is a generator that yields the byte ranges it needs and receives the bytes.

Rules
- A reading handles several chunks at once and proceeds in rounds: it yields the requests of all chunks, receives the
  answers in the same order (None for a missing value), and yields the next round, until it returns.
- The function that runs the generator (the runner) decides how requests are served: by one call to a store, by open
  sources, or from memory.
- If the start of a range is relative to the end of the value, the stop is too, unless the range extends to the end.
- A reading may provide memory for the answers of a round. The runner may put them there or elsewhere, and only the
  reading decides when that memory is reused.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from zarrlite import threads
from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.buffers.source import inner_size
from zarrlite.errors import MissingChunkError, TruncatedError
from zarrlite.pipeline.elements import NDArray
from zarrlite.selections.selection import Selection, Shape
from zarrlite.stores.base import StoredValue, read_together

T = TypeVar("T")
Part = tuple[Selection, NDArray]  # a selection of a chunk, and the array of the same shape that receives its elements
# a handle of the value (a key, a source, or another object that the runner understands), a range of the value, and the
# size that the value must have, or None
Request = tuple[Any, ByteRange, int | None]
Round = tuple[list[Request], memoryview | None]  # requests, and memory into which the answers may be read consecutively
Reading = Generator[Round, Sequence[Buffer | None], T]


class FailedPart(Exception):
    """An error in one of several parts, with the index of the part. Users never see this exception."""

    def __init__(self, number: int, error: Exception) -> None:
        super().__init__(number, error)
        self.number = number
        self.error = error


class MissingInnerChunk(MissingChunkError):
    """An inner chunk is absent but required. `path` lists its coordinates in all nested shards, outermost first."""

    def __init__(self, *path: Shape) -> None:
        super().__init__("is missing")
        self.path = path

    def at(self, *, key: str | None = None, codec: str | None = None) -> MissingChunkError:  # type: ignore[override]
        return MissingChunkError(self.message, key=key, codec=codec)


def read_from_sources(read: Callable[..., Reading[T]], *args: Any) -> T:
    """Run the generator `read(*args)`, which requests byte ranges of sources, and return its result.

    If sources are read by key, all requests that are yielded together become one batch.
    """
    reading = read(*args)
    try:
        requests, memory = next(reading)
        while True:
            if len(requests) == 1 and requests[0][2] is None:
                source, byte_range, _ = requests[0]
                answers: Sequence[Buffer | None] = source.read((byte_range,), memory) or (None,)
            else:
                answers = _read(requests, memory)
            requests, memory = threads.work(reading.send, answers)
    except StopIteration as done:
        result: T = done.value
        return result


def _read(requests: list[Request], memory: memoryview | None) -> Sequence[Buffer | None]:
    """Read from sources. Adjacent requests for the same source are read together."""
    if requests and isinstance(requests[0][0], StoredValue):
        return read_together([(source, byte_range) for source, byte_range, _ in requests], memory)
    answers: list[Buffer | None] = []
    first = 0
    while first < len(requests):
        source, byte_range, size = requests[first]
        last = first + 1
        while last < len(requests) and requests[last][0] is source:
            last += 1
        ranges = [byte_range] if last == first + 1 else [r for _, r, _ in requests[first:last]]
        found = source.read(ranges, memory)
        memory = None  # only the first source uses it: later answers would overwrite its answer
        if found is not None and size is not None and source.known_size() not in (None, size):
            raise TruncatedError(f"has {source.known_size()} bytes, but must have {size}")
        answers += [None] * len(ranges) if found is None else found
        first = last
    return answers


def read_from_memory(reading: Reading[T]) -> T:
    """Run a generator that requests byte ranges of sources in memory, and return its result."""
    try:
        requests, _ = next(reading)
        while True:
            requests, _ = reading.send([byte_range.of(handle.value) for handle, byte_range, _ in requests])
    except StopIteration as done:
        result: T = done.value
        return result


def read_part_from_memory(reading: Reading[list[int]]) -> None:
    """Run a generator that reads a single part from memory. Raises the original error instead of FailedPart."""
    try:
        read_from_memory(reading)
    except FailedPart as failed:
        raise failed.error from failed.error.__cause__


class Framed:
    """A handle that stands for a value without its frame. It contains the handle of the value with its frame."""

    __slots__ = ("by_key", "codec", "handle", "head", "number", "tail")

    def __init__(self, handle: Any, number: int, head: int, tail: int, codec: str) -> None:
        self.handle = handle
        self.by_key: bool = getattr(handle, "by_key", False)
        self.number = number  # index of the part that is read, for FailedPart
        self.head = head
        self.tail = tail
        self.codec = codec

    def known_size(self) -> int | None:
        size: int | None = self.handle.known_size()
        return None if size is None else self.inner_size(size)

    def inner_size(self, size: int) -> int:
        """Return the size of a value that has `size` bytes with its frame. Raises FailedPart if the frame is larger."""
        try:
            return inner_size(size, self.head, self.tail, self.codec)
        except TruncatedError as error:
            raise FailedPart(self.number, error) from None


def unframed(reading: Reading[T]) -> Reading[T]:
    """Convert a reading with `Framed` handles to a reading of the framed values: shift ranges, remove frames."""
    answers: Sequence[Buffer | None] | None = None
    while True:
        try:
            requests, memory = next(reading) if answers is None else reading.send(answers)
        except StopIteration as done:
            result: T = done.value
            return result
        framed: list[Request] = []
        known = [handle.known_size() for handle, _, _ in requests]  # before the read, which may reveal more sizes
        for (handle, byte_range, size), known_size in zip(requests, known, strict=True):
            framed_size = None if size is None else size + handle.head + handle.tail
            framed.append((handle.handle, _with_frame(handle, byte_range, known_size), framed_size))
        # if the size of a value is unknown, the answer may include its frame, for which the memory has no room
        found = yield framed, None if None in known else memory
        answers = []
        for (handle, byte_range, _), known_size, answer in zip(requests, known, found, strict=True):
            if answer is not None and known_size is None:
                answer = _without_frame(handle, byte_range, answer)
                if not answer and byte_range.start == 0:
                    # either the value is empty, or the stored value is too short for its frame
                    (framed_value,) = yield [(handle.handle, ByteRange(), None)], None
                    handle.inner_size(len(framed_value or b""))
            answers.append(answer)


def _with_frame(handle: Framed, byte_range: ByteRange, size: int | None) -> ByteRange:
    """Return the range of the framed value that contains a range of the value, which has `size` bytes.

    If the size is not known, a range that may extend beyond the value is widened by the whole frame at that end, so
    that `_without_frame` can separate the two.
    """
    head, tail = handle.head, handle.tail
    if size is not None:
        start, stop = byte_range.resolve(size)
        return ByteRange(head + start, head + stop)
    start, end = byte_range
    if start < 0:
        return ByteRange(start - tail - head, -tail or None if end is None else end - tail)
    if end is None:
        return ByteRange(start + head, -tail or None)
    return ByteRange(start + head, end + head + tail if end >= 0 else end - tail)


def _without_frame(handle: Framed, byte_range: ByteRange, answer: Buffer) -> Buffer:
    """Remove the frame from an answer to a request that was widened because the size was not known."""
    start, end = byte_range
    if start < 0:
        return memoryview(answer)[handle.head :]
    if end is not None and end >= 0:
        return memoryview(answer)[: max(0, len(answer) - handle.tail)]
    return answer
