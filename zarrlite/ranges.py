"""Byte ranges: which part of a value is meant.

Rules
- A range reads as a Python slice: `value[start:stop]`, negative counts from the end, beyond the end is clamped.
"""

from __future__ import annotations

from typing import Final, NamedTuple, overload

Buffer = bytes | bytearray | memoryview
Pieces = Buffer | list[Buffer]  # a value, or what makes one when it is joined


@overload
def joined(value: Pieces) -> Buffer: ...
@overload
def joined(value: Pieces | None) -> Buffer | None: ...
def joined(value: Pieces | None) -> Buffer | None:
    """A value in one piece."""
    return b"".join(value) if isinstance(value, list) else value


def in_pieces(value: Pieces) -> list[Buffer]:
    """A value as a list, whatever it was."""
    return value if isinstance(value, list) else [value]


def size_of(value: Pieces) -> int:
    """The bytes of a value."""
    return sum(map(len, value)) if isinstance(value, list) else len(value)


class ByteRange(NamedTuple):
    """`value[start:stop]`.

    >>> ByteRange(-4).of(b"0123456789")
    b'6789'
    """

    start: int = 0
    stop: int | None = None

    def of(self, value: Buffer) -> Buffer:
        """The part of a value that is meant."""
        if self == ALL:
            return value
        return value[self.start : self.stop] if type(value) is bytes else memoryview(value)[self.start : self.stop]

    def resolve(self, size: int) -> tuple[int, int]:
        """Start and stop within a value of known size, clamped as a slice is; stop is never before start."""
        start, stop = self
        if stop is not None and 0 <= start <= stop <= size:
            return start, stop
        if stop is None:
            return (min(start, size) if start >= 0 else max(size + start, 0)), size
        start, stop, _ = slice(start, stop).indices(size)
        return start, max(start, stop)


ALL: Final = ByteRange()
