"""Reading framed values whose stored size is known or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source
from zarrlite.codecs import ArraySpec, Bytes
from zarrlite.data_types import from_dtype
from zarrlite.errors import TruncatedError
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.pipeline.reading import FailedPart, Framed, Reading, read_from_sources, unframed
from zarrlite.selections.selection import Selection, everything


class OfUnknownSize(Source):
    """A value whose size is not known before it is read. Counts how often it is read."""

    def __init__(self, value: Buffer | None) -> None:
        self.value = value
        self.reads = 0

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        self.reads += 1
        return InMemory(self.value).read(ranges)


def reading(handle: Any, ranges: list[ByteRange]) -> Reading[list[Any]]:
    """Request all ranges of one value in a single step."""
    found = yield [(handle, byte_range, None) for byte_range in ranges], None
    return [None if part is None else bytes(part) for part in found]


OFFSETS = st.integers(0, 9)
RANGES = st.one_of(
    st.tuples(OFFSETS, OFFSETS),
    st.tuples(OFFSETS, st.integers(-9, -1)),
    st.tuples(st.integers(-9, 9), st.none()),
    st.tuples(st.integers(-9, -1), st.integers(-9, -1)),
).map(lambda pair: ByteRange(*pair))


@pytest.mark.parametrize("kind", [InMemory, OfUnknownSize])
@given(st.binary(max_size=7), OFFSETS, OFFSETS, st.lists(RANGES, min_size=1, max_size=3))
def test_ranges_of_a_framed_value_equal_those_of_the_value(
    kind: Any, value: bytes, head: int, tail: int, ranges: list[ByteRange]
) -> None:
    source = kind(b"h" * head + value + b"t" * tail)
    parts = read_from_sources(unframed, reading(Framed(source, 0, head, tail, "pad"), ranges))
    assert parts == [value[start:stop] for start, stop in ranges]
    if kind is OfUnknownSize and all(parts):
        assert source.reads == 1


@pytest.mark.parametrize("kind", [InMemory, OfUnknownSize])
@pytest.mark.parametrize("stored", [b"", b"1234"])
@pytest.mark.parametrize("byte_range", [ByteRange(), ByteRange(0, 3)])
@pytest.mark.parametrize(("head", "tail"), [(5, 0), (0, 5), (3, 2)])
def test_a_value_shorter_than_its_frame_is_refused(
    kind: Any, stored: bytes, byte_range: ByteRange, head: int, tail: int
) -> None:
    with pytest.raises(FailedPart) as caught:
        read_from_sources(unframed, reading(Framed(kind(stored), 7, head, tail, "pad"), [byte_range]))
    assert caught.value.number == 7
    assert isinstance(caught.value.error, TruncatedError)


@pytest.mark.parametrize("kind", [InMemory, OfUnknownSize])
def test_a_missing_value_reads_as_missing_through_a_frame(kind: Any) -> None:
    assert read_from_sources(unframed, reading(Framed(kind(None), 0, 3, 2, "pad"), [ByteRange(0, 2)])) == [None]


@pytest.mark.parametrize("size", [0, 15, 17])
@pytest.mark.parametrize("selection", [everything((2, 2)), Selection.box((0, 0), (1, 1))], ids=["all", "one element"])
def test_elements_of_a_chunk_in_memory_of_wrong_size_are_refused(size: int, selection: Selection) -> None:
    pipeline = Pipeline([Bytes()], ArraySpec((2, 2), from_dtype("i4"), 0))
    with pytest.raises(TruncatedError, match=rf"^codec bytes: has {size} bytes, but a chunk of shape \(2, 2\) has 16$"):
        pipeline.take(bytes(size), selection)
