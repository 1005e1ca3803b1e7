"""The laws that every codec obeys, as base classes for pytest.

    class TestMyCodec(BytesBytesLaws):
        codec = MyCodec(level=3)

Rules
- A codec must be registered: it is found by the name in its JSON.
- A partial read returns the same elements as decoding the whole chunk; every failure raises a `ZarrliteError`.
- The test class of a lossy codec overrides `same`.
- A method that may decline, such as `decode_into`, must return correct results whenever it does not decline.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from zarrlite.buffers.pieces import join
from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source
from zarrlite.data_types import from_dtype
from zarrlite.errors import ChecksumError, ZarrliteError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context
from zarrlite.extensions.extension import Extension
from zarrlite.pipeline.codec import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    ArraySpec,
    BytesBytesCodec,
    Framing,
    Serializer,
)
from zarrlite.pipeline.decoding import Limit, decode_bytes
from zarrlite.pipeline.elements import ElementLayout, NDArray, row_major_strides
from zarrlite.pipeline.reading import FailedPart, read_from_sources
from zarrlite.selections.selection import Points, Selection, Shape, Span, everything
from zarrlite.stores.base import IN_MEMORY, Limits, StoredValue, overwrite
from zarrlite.stores.memory import MemoryStore

VALUES = (b"x", b"0123456789", bytes(1000), bytes(range(256)) * 3)
RANGES = [
    ByteRange(start, stop)
    for start in (0, 1, 5, 10, 10**6, 2**63, -1, -4, -(10**6))
    for stop in (None, 0, 1, 7, 10**6, 2**63, -1, -3)
]
ARRAYS: tuple[NDArray, ...] = (
    np.array(7, "uint16"),
    np.arange(6, dtype="uint16"),
    np.arange(24, dtype="int32").reshape(4, 6),
    np.arange(24, dtype="float64").reshape(2, 3, 4),
    np.zeros((3, 3), "uint8"),
)
_GUARD = 64  # bytes before and after the memory that codecs decode into; they must not change


def same_elements(found: Any, expected: Any) -> bool:
    """Whether two arrays have the same elements, bit for bit, in any byte order."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind in "OT":
        return bool(found.tolist() == expected.tolist())
    return bool(found.astype(expected.dtype).tobytes() == expected.tobytes())


def selections(shape: Shape) -> Iterator[Selection]:
    """Yield selections of every kind: all elements, one, every other one, the end, reversed dimensions, points."""
    yield everything(shape)
    if 0 in shape or not shape:
        return
    dims = tuple(range(len(shape)))
    yield Selection([Span(0, 1) for _ in shape])
    yield Selection([Span(n - 1, 1) for n in shape])
    yield Selection([Span(0, -(-n // 2), 2) for n in shape])
    yield Selection([Span(n // 2, n - n // 2) for n in shape])
    yield Selection([Span(0, shape[d]) for d in dims[::-1]], [(d,) for d in dims[::-1]])
    yield Selection([Points(tuple(np.array([n - 1, 0, n // 2]) for n in shape))], [dims])
    yield Selection([Points((np.array([n - 1, 0]),)) for n in shape])


def damaged(data: bytes) -> Iterator[bytes]:
    """Yield damaged forms of a stored value: replaced, truncated, extended, and with flipped bits."""
    yield from (b"", b"\0", b"\xff" * 40, bytes(40), bytes(range(256)))
    yield from (data[:-1], data[: len(data) // 2], data[1:], data + b"\0", data + data)
    for i in range(0, len(data), 1 + len(data) // 64):
        for mask in (1, 0x80, 0xFF):
            yield data[:i] + bytes([data[i] ^ mask]) + data[i + 1 :]


def check_json(kind: registry.Registry[Any], extension: Extension) -> None:
    """Check that an extension survives a round trip through JSON."""
    document = json.loads(json.dumps(extension.to_json()))
    parsed = kind.parse(document, "", Context())
    assert parsed == extension, f"{parsed!r} is not {extension!r}"
    assert parsed.to_json() == extension.to_json()


class CodecLaws:
    """The laws of all codecs."""

    codec: Any

    def test_json_reads_as_an_equal_codec(self) -> None:
        check_json(registry.codecs, self.codec)

    def same(self, found: Any, expected: Any) -> bool:
        """Whether a decoded array counts as equal to the original. Override it for a lossy codec."""
        return same_elements(found, expected)

    def make_spec(self, array: NDArray) -> ArraySpec:
        """Return the spec of an array."""
        data_type = from_dtype(array.dtype)
        return ArraySpec(array.shape, data_type, data_type.default_fill_value)


class BytesBytesLaws(CodecLaws):
    """The laws of bytes -> bytes codecs: compressors and framings.

    Subclass this class, name the subclass `Test...`, and set `codec`.

    Set `values` if the codec cannot encode every value.
    """

    codec: BytesBytesCodec
    values: Sequence[bytes] = VALUES

    def test_decoding_undoes_encoding(self) -> None:
        for value in self.values:
            for data in (value, bytearray(value), memoryview(value)):
                encoded = bytes(self.codec.encode(data))
                for stored in (encoded, bytearray(encoded), memoryview(encoded)):
                    assert bytes(self.codec.decode(stored, len(value))) == value

    def test_the_encoded_size_is_exact(self) -> None:
        for value in self.values:
            assert self.codec.encoded_size(len(value)) in (None, _length(self.codec.encode(value)))

    def test_no_encoded_value_is_larger_than_the_maximum(self) -> None:
        for value in self.values:
            assert _length(self.codec.encode(value)) <= self.codec.max_encoded_size(len(value))

    def test_encoding_many_values_equals_encoding_each(self) -> None:
        for values in (list(self.values), list(self.values[:1]) * 3):
            for value, encoded in zip(values, self.codec.encode_many(values), strict=True):
                assert bytes(self.codec.decode(join(encoded), len(value))) == value

    def test_values_decoded_into_memory_equal_those_that_decode_returns(self) -> None:
        for value in self.values:
            encoded = bytes(self.codec.encode(value))
            for stored in (encoded, *damaged(encoded)):
                for size in {len(value), len(value) + 1, max(1, len(value) - 1)}:
                    for values in ([stored], [encoded, stored, encoded]):
                        found = self._decoded_into(values, len(values) * size, size)
                        if found is not None:
                            assert found == b"".join([self._decoded(data, size) for data in values])

    def test_the_first_bytes_of_values_can_be_decoded_alone(self) -> None:
        for value in self.values:
            encoded = bytes(self.codec.encode(value))
            for size in {1, len(value) // 2, len(value) - 1} & {*range(1, len(value))}:
                for count in (1, 3):
                    found = self._decoded_into([encoded] * count, count * size, len(value))
                    assert found in (None, value[:size] * count), size

    def test_decoding_produces_no_more_than_its_limit(self) -> None:
        for value in self.values:
            encoded = bytes(self.codec.encode(value))
            for limit in {0, len(value) // 2, max(0, len(value) - 1)}:
                with contextlib.suppress(ZarrliteError):
                    decoded = self.codec.decode(encoded, limit)
                    # a codec may return a slice of the stored value that exceeds the limit: a slice needs no memory,
                    # and decode_bytes refuses it
                    assert len(decoded) <= max(limit, len(encoded)), f"{len(decoded)} bytes, not {limit}"

    def test_damage_raises_only_errors_of_zarrlite(self) -> None:
        for value in self.values:
            for data in damaged(bytes(self.codec.encode(value))):
                for stored in (data, memoryview(data)):
                    with contextlib.suppress(ZarrliteError):
                        decode_bytes(stored, [(self.codec, Limit(len(value)))])

    # Framings, such as checksums and padding; for other codecs, these tests check nothing

    def test_a_frame_is_around_the_value(self) -> None:
        for codec, value in self._framed_values():
            head, tail = codec.frame(value)
            assert (_length(head), _length(tail)) == (codec.head, codec.tail)
            half = len(value) // 2
            for pieces in (value, [value[:half], memoryview(value)[half:]], [b"", value]):
                assert bytes(join(codec.wrap(pieces))) == bytes(head) + value + bytes(tail)  # type: ignore[arg-type]

    def test_a_frame_is_the_same_for_all_values_unless_it_depends_on_them(self) -> None:
        frames = {
            (bytes(head), bytes(tail))
            for codec, value in self._framed_values()
            if not codec.depends_on_value
            for head, tail in (codec.frame(value), codec.frame(b""))
        }
        assert len(frames) <= 1

    def test_a_frame_that_verifies_notices_every_damaged_byte(self) -> None:
        for codec, value in self._framed_values():
            framed = bytes(join(codec.wrap(value)))
            for i in range(len(framed) if codec.verifies else 0):
                data = framed[:i] + bytes([framed[i] ^ 0x10]) + framed[i + 1 :]
                try:
                    codec.decode(data, len(data))
                except ChecksumError:
                    continue
                raise AssertionError(f"damage to byte {i} of {len(framed)} was not noticed")

    def test_a_window_reads_ranges_as_slices_of_the_value(self) -> None:
        for codec, value in self._framed_values():
            for source in _sources(bytes(join(codec.wrap(value)))):
                found = codec.window(source).read(RANGES)
                assert found is not None
                assert [bytes(part) for part in found] == [value[start:stop] for start, stop in RANGES]
                assert codec.window(source).size() == len(value)

    def test_a_patched_frame_equals_the_frame_of_the_patched_value(self) -> None:
        for codec, value in self._framed_values():
            old = bytes(join(codec.wrap(value)))
            for patches in ([(0, b"x")], [(len(value) - 1, b"yz")], [(len(value) // 2, b""), (len(value), b"more")]):
                framed = codec.patch(patches, InMemory(old))  # type: ignore[arg-type]
                if framed is not None:
                    new = overwrite(value, patches)
                    assert overwrite(old, framed) == bytes(join(codec.wrap(new, old)))

    def _framed_values(self) -> Iterator[tuple[Framing, bytes]]:
        """Yield the codec with each value. Yields nothing if the codec adds no frame."""
        for value in self.values:
            if isinstance(self.codec, Framing):
                yield self.codec, value

    def _decoded(self, data: bytes, size: int) -> bytes:
        """Decode a value with `decode`, with a limit of `size` bytes."""
        try:
            return bytes(decode_bytes(data, [(self.codec, Limit(size))]))
        except ZarrliteError as error:
            raise AssertionError(f"decode_into accepts a value that decode refuses: {error}") from error

    def _decoded_into(self, values: Sequence[bytes], room: int, size: int) -> bytes | None:
        """Return the memory into which values were decoded. Returns None if the codec declines."""
        memory = memoryview(bytearray(b"\xaa" * (room + 2 * _GUARD)))
        done = self.codec.decode_into(values, memory[_GUARD : _GUARD + room], size)
        outside = bytes(memory[:_GUARD]) + bytes(memory[_GUARD + room :])
        assert outside == b"\xaa" * (2 * _GUARD), "decode_into wrote outside of the memory that was passed to it"
        return bytes(memory[_GUARD : _GUARD + room]) if done else None


class ArrayArrayLaws(CodecLaws):
    """The laws of array -> array codecs. Subclass this class, name the subclass `Test...`, and set `codec`.

    Set `arrays` if the codec cannot encode every array.
    """

    codec: ArrayArrayCodec
    arrays: Sequence[NDArray] = ARRAYS

    def test_decoding_undoes_encoding(self) -> None:
        for array in self.arrays:
            spec = self.make_spec(array)
            decoded = self.codec.decode(self.codec.encode(array, spec), spec)
            assert self.same(decoded, array)

    def test_encoded_arrays_have_the_encoded_spec(self) -> None:
        for array in self.arrays:
            spec = self.make_spec(array)
            encoded, expected = self.codec.encode(array, spec), self.codec.encoded_spec(spec)
            assert (encoded.shape, encoded.dtype.newbyteorder("=")) == (expected.shape, expected.dtype)

    def test_an_encoded_selection_has_the_same_elements(self) -> None:
        for array in self.arrays:
            encoded = self.codec.encode(array, self.make_spec(array))
            for selection in selections(array.shape):
                below = self.codec.encode_selection(selection)
                if below is not None:
                    assert same_elements(below.take(encoded), selection.take(array)), selection

    def test_a_part_is_written_as_numpy_writes_it(self) -> None:
        for array in self.arrays:
            spec = self.make_spec(array)
            for selection in selections(array.shape):
                changed, values = array.copy(), _reversed(selection.take(array))
                selection.put(changed, values)
                below = self.codec.encode_selection(selection)
                if below is not None:
                    encoded = np.array(self.codec.encode(array, spec))
                    below.put(encoded, values)
                    assert same_elements(encoded, self.codec.encode(changed, spec)), selection

    def test_a_decoded_layout_has_the_decoded_elements(self) -> None:
        for array in self.arrays:
            spec = self.make_spec(array)
            encoded = np.ascontiguousarray(self.codec.encode(array, spec), self.codec.encoded_spec(spec).dtype)
            strides = row_major_strides(encoded.shape, encoded.itemsize)
            layout = self.codec.decoded_layout(ElementLayout(encoded.dtype, encoded.shape, strides, "bytes", None))
            if layout is not None:
                assert same_elements(layout.array(encoded.tobytes()), self.codec.decode(encoded, spec))

    def test_a_decoded_shape_encodes_to_the_shape_it_came_from(self) -> None:
        for array in self.arrays:
            spec = self.make_spec(array)
            encoded_shape = self.codec.encoded_spec(spec).shape
            assert self.codec.decoded_shape(encoded_shape) in (None, array.shape)
            block = tuple(-(-n // 2) for n in encoded_shape)
            decoded = self.codec.decoded_shape(block)
            if decoded is not None:
                assert self.codec.encoded_spec(spec.reshaped(decoded)).shape == block


class ArrayBytesLaws(CodecLaws):
    """The laws of array -> bytes codecs. Subclass this class, name the subclass `Test...`, and set `codec`.

    Set `arrays` if the codec cannot encode every array.
    """

    codec: ArrayBytesCodec
    arrays: Sequence[NDArray] = ARRAYS

    def bound(self) -> Iterator[tuple[Serializer, NDArray, bytes]]:
        """Yield, for each array, the codec bound to it, the array, and its encoded form."""
        for array in self.arrays:
            serializer = self.codec.bind(self.make_spec(array))
            yield serializer, array, bytes(join(serializer.encode(array)))

    def test_decoding_undoes_encoding(self) -> None:
        for serializer, array, encoded in self.bound():
            for stored in (encoded, bytearray(encoded), memoryview(encoded)):
                assert self.same(serializer.decode(stored), array)
                assert self.same(self.codec.decode(stored, serializer.spec), array)
            assert bytes(self.codec.encode(array, serializer.spec)) == encoded

    def test_arrays_of_any_order_and_byte_order_are_encoded_alike(self) -> None:
        for serializer, array, encoded in self.bound():
            for form in (np.asfortranarray(array), array.astype(array.dtype.newbyteorder(">"))):
                assert bytes(join(serializer.encode(form))) == encoded

    def test_the_encoded_size_is_exact(self) -> None:
        for serializer, _, encoded in self.bound():
            assert serializer.encoded_size in (None, len(encoded))
            assert len(encoded) <= serializer.limit.of(len(encoded))

    def test_a_layout_has_the_elements_at_their_places(self) -> None:
        for serializer, array, encoded in self.bound():
            layout = serializer.layout
            if layout is not None:
                decoded = self.codec.decode(encoded, serializer.spec)
                assert layout.size == len(encoded)
                assert same_elements(layout.array(encoded), decoded)
                for coords in _corners(array.shape):
                    start = layout.position(coords)
                    element = np.frombuffer(encoded[start : start + layout.dtype.itemsize], layout.dtype)
                    assert same_elements(element.reshape(()), decoded[coords]), coords

    def test_a_part_equals_that_of_the_decoded_chunk(self) -> None:
        for serializer, array, encoded in self.bound():
            decoded = serializer.decode(encoded)
            for selection in selections(array.shape):
                expected = selection.take(decoded)
                for source in _sources(encoded):
                    for limits in (IN_MEMORY, Limits(gap=2**20), Limits(gap=2**20, longest=1)):
                        assert same_elements(_read(serializer, source, selection, limits), expected), selection
                assert same_elements(serializer.take(encoded, selection), expected), selection

    def test_parts_of_several_chunks_equal_the_parts_of_each(self) -> None:
        for serializer, array, encoded in self.bound():
            several = [*selections(array.shape), everything(array.shape)]
            kinds = (encoded, None, bytes(join(serializer.encode(_reversed(array)))))
            chunks = [kinds[i % 3] for i in range(len(several))]
            store = MemoryStore({str(i): chunk for i, chunk in enumerate(chunks) if chunk is not None})
            in_memory = [InMemory(chunk) for chunk in chunks]
            for sources in (in_memory, [StoredValue(store, str(i)) for i in range(len(chunks))]):
                parts = [(selection, np.empty(selection.shape, serializer.spec.dtype)) for selection in several]
                missing = read_from_sources(serializer.read, sources, parts, IN_MEMORY)
                assert sorted(missing) == [i for i, chunk in enumerate(chunks) if chunk is None]
                for chunk, (selection, target) in zip(chunks, parts, strict=True):
                    if chunk is not None:
                        assert same_elements(target, selection.take(serializer.decode(chunk))), selection

    def test_an_element_equals_that_of_the_decoded_chunk(self) -> None:
        for serializer, array, encoded in self.bound():
            decoded = serializer.decode(encoded)
            for coords in _corners(array.shape):
                for source in _sources(encoded):
                    element = np.asarray(read_from_sources(serializer.element, source, coords), decoded.dtype)
                    assert same_elements(element, decoded[coords]), coords

    def test_every_method_reports_a_missing_chunk(self) -> None:
        for serializer, array, _ in self.bound():
            for source in (InMemory(None), StoredValue(MemoryStore(), "key")):
                assert _read(serializer, source, everything(array.shape)) is None
                for coords in _corners(array.shape):
                    assert read_from_sources(serializer.element, source, coords) is None

    def test_a_part_is_written_as_numpy_writes_it(self) -> None:
        for serializer, array, encoded in self.bound():
            decoded = np.array(serializer.decode(encoded), array.dtype)
            for selection in selections(array.shape):
                values = _reversed(selection.take(decoded))
                for old, before in ((encoded, decoded), (None, serializer.spec.filled())):
                    changed = before.copy()
                    selection.put(changed, values)
                    updated = serializer.update(old, selection, values)
                    if updated is None:
                        assert serializer.spec.is_fill(changed)
                    else:
                        assert same_elements(serializer.decode(join(updated)), changed), selection

    def test_a_patched_chunk_equals_the_changed_chunk(self) -> None:
        for serializer, array, encoded in self.bound():
            decoded = np.array(serializer.decode(encoded), array.dtype)
            for selection in selections(array.shape):
                changed, values = decoded.copy(), _reversed(selection.take(decoded))
                selection.put(changed, values)
                patches = serializer.patch(InMemory(encoded), selection, values)
                if patches is not None:
                    assert same_elements(serializer.decode(overwrite(encoded, patches)), changed), selection

    def test_damage_raises_only_errors_of_zarrlite(self) -> None:
        for serializer, array, encoded in self.bound():
            for data in damaged(encoded):
                for selection in selections(array.shape):
                    values = np.asarray(selection.take(array))
                    for source in _sources(data):
                        with contextlib.suppress(ZarrliteError):
                            _read(serializer, source, selection)
                    with contextlib.suppress(ZarrliteError):
                        serializer.update(data, selection, values)
                    with contextlib.suppress(ZarrliteError):
                        serializer.patch(InMemory(data), selection, values)


def _reversed(values: Any) -> NDArray:
    """Return the elements in reverse order, as different values of the same shape."""
    array = np.array(values)
    return array.reshape(-1)[::-1].reshape(array.shape)


def _corners(shape: Shape) -> list[Shape]:
    """Return the coordinates of the first, the last and a middle element."""
    if 0 in shape:
        return []
    return [tuple(0 for _ in shape), tuple(n - 1 for n in shape), tuple(n // 2 for n in shape)]


def _sources(data: bytes) -> Iterator[Source]:
    """Yield a source in memory and a source in a store, both with these bytes."""
    yield InMemory(data)
    yield StoredValue(MemoryStore({"key": data}), "key")


def _read(serializer: Serializer, source: Source, selection: Selection, limits: Limits = IN_MEMORY) -> NDArray | None:
    """Read a part of a chunk. Returns None if the chunk is missing."""
    target = np.empty(selection.shape, serializer.spec.dtype)
    try:
        missing = read_from_sources(serializer.read, [source], [(selection, target)], limits)
    except FailedPart as failed:
        raise failed.error from failed.error.__cause__
    return None if missing else target


def _length(data: Buffer) -> int:
    return memoryview(data).nbytes
