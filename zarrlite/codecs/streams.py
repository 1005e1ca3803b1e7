"""Decompression of values that consist of one or several streams, with a limit on the decoded size.

Rules
- Decompression stops at the limit. Bytes after the last stream are an error.
- The decompressors of zlib, bz2 and lzma share the methods that are used here (`Decompressor`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import DataError, TruncatedError
from zarrlite.pipeline.decoding import MAX_EMPTY

# bytes; size of the first input block of every stream but the first; small, because a decompressor copies any input
# after the end of its stream
_STEP = 2**8


class Decompressor(Protocol):
    """A decompressor from the standard library."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: Any, max_length: int, /) -> bytes: ...


def decompress(
    data: Buffer, limit: int, start: Callable[[], Decompressor], name: str, *, single: bool = False
) -> bytes:
    """Decompress consecutive streams, or a single one, to at most `limit` bytes; `start` returns a new decompressor."""
    view = memoryview(data)
    pieces: list[bytes] = []
    # one byte more than the limit, to detect that it is exceeded, and to avoid 0, which means "no limit" to zlib
    room, position, step, empty = limit + 1, 0, len(view), 0
    while position < len(view) or not pieces:
        stream, room_before = start(), room
        while not stream.eof:
            block = view[position : position + step]
            if not block:
                raise TruncatedError(f"the {name} stream ends too early")
            step *= 2
            pieces.append(stream.decompress(block, room))
            position += len(block) - len(stream.unused_data)
            room -= len(pieces[-1])
            if room <= 0:
                raise TruncatedError(f"decompresses to more than the {limit} bytes that are allowed")
        if single and position < len(view):
            raise TruncatedError(f"has {len(view) - position} bytes after the {name} stream")
        step = _STEP
        empty += room == room_before
        if empty > MAX_EMPTY:
            raise DataError(f"must have at most {MAX_EMPTY} {name} streams without content")
    return b"".join(pieces)
