"""The laws of codecs, for pytest.

    class TestMyCodec(BytesBytesLaws):
        codec = MyCodec(level=3)

Rules
- A codec must be registered: it is found again by the JSON that it writes.
- A part of a decoded chunk equals that part of what `decode` returns; every failure is an error of zarrlite.
- A lossy codec overrides `same`.
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
from zarrlite.errors import ZarrliteError
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
from zarrlite.pipeline.elements import NDArray
from zarrlite.pipeline.reading import FailedPart, read_from_sources
from zarrlite.selections.selection import Points, Selection, Shape, Span, everything
from zarrlite.stores.base import StoredValue
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


def same_elements(found: Any, expected: Any) -> bool:
    """Whether two arrays have the same elements, bit for bit, in whatever byte order."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind in "OT":
        return bool(found.tolist() == expected.tolist())
    return bool(found.astype(expected.dtype).tobytes() == expected.tobytes())


def selections(shape: Shape) -> Iterator[Selection]:
    """Selections of every form: all, one, steps, an end, points, another order of dimensions."""
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
    """What becomes of stored bytes when things go wrong: cut, grown, flipped, replaced."""
    yield from (b"", b"\0", b"\xff" * 40, bytes(40), bytes(range(256)))
    yield from (data[:-1], data[: len(data) // 2], data[1:], data + b"\0", data + data)
    for i in range(0, len(data), 1 + len(data) // 64):
        for mask in (1, 0x80, 0xFF):
            yield data[:i] + bytes([data[i] ^ mask]) + data[i + 1 :]


class CodecLaws:
    """What all codecs have in common."""

    codec: Any

    def test_what_is_written_reads_as_an_equal_codec(self) -> None:
        check_json(registry.codecs, self.codec)

    def same(self, found: Any, expected: Any) -> bool:
        """Whether a decoded array is what was encoded; a lossy codec has a say here."""
        return same_elements(found, expected)

    def make_spec(self, array: NDArray) -> ArraySpec:
        """What the codec is told of an array."""
        data_type = from_dtype(array.dtype)
        return ArraySpec(array.shape, data_type, data_type.default_fill_value)


def check_json(kind: registry.Registry[Any], extension: Extension) -> None:
    """An extension must come back from its own JSON, and write the same again."""
    document = json.loads(json.dumps(extension.to_json()))
    parsed = kind.parse(document, "", Context())
    assert parsed == extension, f"{parsed!r} is not {extension!r}"
    assert parsed.to_json() == extension.to_json()


class BytesBytesLaws(CodecLaws):
    """Subclass it, name the subclass Test..., and give it `codec`, and `values` if not every value will do."""

    codec: BytesBytesCodec
    values: Sequence[bytes] = VALUES

    def test_decoding_undoes_encoding(self) -> None:
        for value in self.values:
            for given in (value, bytearray(value), memoryview(value)):
                encoded = bytes(self.codec.encode(given))
                for stored in (encoded, bytearray(encoded), memoryview(encoded)):
                    assert bytes(self.codec.decode(stored, len(value))) == value

    def test_the_encoded_size_is_exact(self) -> None:
        for value in self.values:
            assert self.codec.encoded_size(len(value)) in (None, _length(self.codec.encode(value)))

    def test_the_largest_encoded_size_holds(self) -> None:
        for value in self.values:
            assert _length(self.codec.encode(value)) <= self.codec.max_encoded_size(len(value))

    def test_many_values_are_encoded_as_each_of_them(self) -> None:
        for values in (list(self.values), list(self.values[:1]) * 3):
            for value, encoded in zip(values, self.codec.encode_many(values), strict=True):
                assert bytes(self.codec.decode(join(encoded), len(value))) == value

    def test_values_decoded_into_memory_are_those_that_decode_returns(self) -> None:
        for value in self.values:
            encoded = bytes(self.codec.encode(value))
            for stored in (encoded, *damaged(encoded)):
                for size in {len(value), len(value) + 1, max(1, len(value) - 1)}:
                    memory = memoryview(bytearray(size))
                    if self.codec.decode_into([stored], memory, size):
                        assert bytes(self.codec.decode(stored, size)) == memory
                    several = memoryview(bytearray(3 * size))
                    if self.codec.decode_into([encoded, stored, encoded], several, size):
                        assert value + bytes(self.codec.decode(stored, size)) + value == several

    def test_the_first_bytes_of_a_value_can_be_decoded_alone(self) -> None:
        for value in self.values:
            encoded = self.codec.encode(value)
            for size in {1, len(value) // 2, len(value) - 1} & {*range(1, len(value))}:
                memory = memoryview(bytearray(size))
                if self.codec.decode_into([encoded], memory, len(value)):
                    assert value[:size] == memory

    def test_a_frame_is_around_the_value(self) -> None:
        codec = self.codec
        for value in self.values if isinstance(codec, Framing) else ():
            half = len(value) // 2
            for pieces in (value, [value[:half], memoryview(value)[half:]], [b"", value]):
                framed = bytes(join(codec.wrap(pieces)))  # type: ignore[union-attr,arg-type]
                assert framed[codec.head : len(framed) - codec.tail] == value  # type: ignore[union-attr]

    def test_decoding_produces_no_more_than_its_limit(self) -> None:
        for value in self.values:
            encoded = bytes(self.codec.encode(value))
            for limit in {0, len(value) // 2, max(0, len(value) - 1)}:
                with contextlib.suppress(ZarrliteError):
                    found = decode_bytes(encoded, [(self.codec, Limit(limit))])
                    assert len(found) <= max(limit, len(encoded)), f"{len(found)} bytes of {limit}"

    def test_damage_raises_nothing_but_errors_of_zarrlite(self) -> None:
        for value in self.values:
            for data in damaged(bytes(self.codec.encode(value))):
                with contextlib.suppress(ZarrliteError):
                    decode_bytes(data, [(self.codec, Limit(len(value)))])


class ArrayArrayLaws(CodecLaws):
    """Subclass it, name the subclass Test..., and give it `codec` and `arrays` that it can take."""

    codec: ArrayArrayCodec
    arrays: Sequence[NDArray] = ARRAYS

    def test_decoding_undoes_encoding(self) -> None:
        for array in self.arrays:
            spec = self.make_spec(array)
            decoded = self.codec.decode(self.codec.encode(array, spec), spec)
            assert self.same(decoded, array)

    def test_what_comes_out_is_what_was_announced(self) -> None:
        for array in self.arrays:
            spec = self.make_spec(array)
            encoded, announced = self.codec.encode(array, spec), self.codec.encoded_spec(spec)
            assert (encoded.shape, encoded.dtype.newbyteorder("=")) == (announced.shape, announced.dtype)

    def test_an_encoded_selection_has_the_same_elements(self) -> None:
        for array in self.arrays:
            encoded = self.codec.encode(array, self.make_spec(array))
            for selection in selections(array.shape):
                same = self.codec.encode_selection(selection)
                if same is not None:
                    assert same_elements(same.take(encoded), selection.take(array)), selection

    def test_a_partial_write_is_that_of_the_whole(self) -> None:
        for array in self.arrays:
            spec = self.make_spec(array)
            for selection in selections(array.shape):
                changed, values = array.copy(), _reversed(selection.take(array))
                selection.put(changed, values)
                same = self.codec.encode_selection(selection)
                if same is not None:
                    encoded = np.array(self.codec.encode(array, spec))
                    same.put(encoded, values)
                    assert same_elements(encoded, self.codec.encode(changed, spec)), selection


class ArrayBytesLaws(CodecLaws):
    """Subclass it, name the subclass Test..., and give it `codec` and `arrays` that it can take."""

    codec: ArrayBytesCodec
    arrays: Sequence[NDArray] = ARRAYS

    def bound(self) -> Iterator[tuple[Serializer, NDArray, bytes]]:
        """For each array: the codec bound to it, the array, and its encoded form."""
        for array in self.arrays:
            serializer = self.codec.bind(self.make_spec(array))
            yield serializer, array, bytes(join(serializer.encode(array)))

    def test_decoding_undoes_encoding(self) -> None:
        for serializer, array, encoded in self.bound():
            for stored in (encoded, bytearray(encoded), memoryview(encoded)):
                assert self.same(serializer.decode(stored), array)
                assert self.same(self.codec.decode(stored, serializer.spec), array)
            assert bytes(self.codec.encode(array, serializer.spec)) == encoded

    def test_encoding_takes_what_is_strided_or_of_another_byte_order(self) -> None:
        for serializer, array, encoded in self.bound():
            for form in (np.asfortranarray(array), array.astype(array.dtype.newbyteorder(">"))):
                assert bytes(join(serializer.encode(form))) == encoded

    def test_the_encoded_size_is_exact(self) -> None:
        for serializer, _, encoded in self.bound():
            assert serializer.encoded_size in (None, len(encoded))
            assert len(encoded) <= serializer.limit.of(len(encoded))

    def test_a_part_is_that_of_the_decoded_chunk(self) -> None:
        for serializer, array, encoded in self.bound():
            decoded = serializer.decode(encoded)
            for source in _sources(encoded):
                for selection in selections(array.shape):
                    found = _read(serializer, source, selection)
                    assert found is not None
                    assert same_elements(found, selection.take(decoded)), selection

    def test_a_missing_chunk_stays_missing(self) -> None:
        for serializer, array, _ in self.bound():
            assert _read(serializer, StoredValue(MemoryStore(), "key"), everything(array.shape)) is None

    def test_a_partial_write_is_what_numpy_does(self) -> None:
        for serializer, array, encoded in self.bound():
            before = np.array(serializer.decode(encoded), array.dtype)
            for selection in selections(array.shape):
                changed, values = before.copy(), _reversed(selection.take(before))
                selection.put(changed, values)
                updated = serializer.update(encoded, selection, values)
                if updated is None:
                    assert serializer.spec.is_fill(changed)
                else:
                    assert same_elements(serializer.decode(join(updated)), changed), selection

    def test_damage_raises_nothing_but_errors_of_zarrlite(self) -> None:
        for serializer, array, encoded in self.bound():
            for data in damaged(encoded):
                for selection in selections(array.shape):
                    for source in _sources(data):
                        with contextlib.suppress(ZarrliteError):
                            _read(serializer, source, selection)
                    with contextlib.suppress(ZarrliteError):
                        serializer.update(data, selection, np.asarray(selection.take(array)))


def _reversed(values: Any) -> NDArray:
    """Other values of the same shape: the same, from last to first."""
    array = np.array(values)
    return array.reshape(-1)[::-1].reshape(array.shape)


def _sources(data: bytes) -> Iterator[Source]:
    """Yield the same bytes in memory and in a store."""
    yield InMemory(data)
    yield StoredValue(MemoryStore({"key": data}), "key")


def _read(serializer: Serializer, source: Source, selection: Selection) -> NDArray | None:
    """Read a part of a chunk. Returns None if the chunk is missing."""
    target = np.empty(selection.shape, serializer.spec.dtype)
    try:
        missing = read_from_sources(serializer.read([source], [(selection, target)], 0))
    except FailedPart as failed:
        raise failed.error from failed.error.__cause__
    return None if missing else target


def _length(data: Buffer) -> int:
    return memoryview(data).nbytes
