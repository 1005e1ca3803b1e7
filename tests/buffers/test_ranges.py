"""Byte ranges have the semantics of Python slices."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zarrlite.buffers.ranges import ALL, ByteRange

ENDS = st.integers(-14, 14) | st.sampled_from([2**63, -(2**63), 2**70])
RANGES = st.builds(ByteRange, ENDS, st.none() | ENDS)


@given(st.binary(max_size=12), RANGES)
def test_a_range_of_a_value_is_a_slice_of_it(value: bytes, byte_range: ByteRange) -> None:
    expected = value[byte_range.start : byte_range.stop]
    for buffer in (value, bytearray(value), memoryview(value)):
        assert bytes(byte_range.of(buffer)) == expected
    start, stop = byte_range.resolve(len(value))
    assert 0 <= start <= stop <= len(value)
    assert value[start:stop] == expected


def test_the_full_range_returns_the_value_itself() -> None:
    for value in (b"0123", bytearray(b"0123"), memoryview(b"0123")):
        assert ALL.of(value) is value
    assert ByteRange(0) == ByteRange(0, None) == ALL


def test_a_part_of_a_mutable_buffer_is_not_copied() -> None:
    buffer = bytearray(b"0123")
    part = ByteRange(1, 3).of(buffer)
    buffer[1] = ord("x")
    assert bytes(part) == b"x2"
