"""Byte ranges: parts of a value.

Rules
- A range behaves like the slice `value[start:stop]`: negative offsets count from the end, and offsets beyond the end
  are clamped.
"""

from __future__ import annotations

from typing import Final, NamedTuple

Buffer = bytes | bytearray | memoryview


class ByteRange(NamedTuple):
    """The part `value[start:stop]` of a value.

    Attributes
    ----------
    start : int
        The offset of the first byte. A negative offset counts from the end.
    stop : int or None
        The offset after the last byte. None means the end of the value.

    Examples
    --------
    >>> ByteRange(-4).of(b"0123456789")
    b'6789'
    >>> ByteRange(2, 5).of(b"0123456789")
    b'234'
    """

    start: int = 0
    stop: int | None = None

    def of(self, value: Buffer) -> Buffer:
        """Return this part of a value, without copying unless the value is `bytes`."""
        if self == ALL:
            return value
        return value[self.start : self.stop] if type(value) is bytes else memoryview(value)[self.start : self.stop]

    def resolve(self, size: int) -> tuple[int, int]:
        """Return start and stop in a value of `size` bytes, clamped like a slice; stop is never less than start."""
        start, stop = self
        if stop is None:
            if start < 0:
                return max(0, size + start), size
            return min(start, size), size
        if 0 <= start <= stop:
            return (start, stop) if stop <= size else (min(start, size), size)
        start, stop, _ = slice(start, stop).indices(size)
        return start, max(start, stop)


ALL: Final = ByteRange()
