"""The laws of zarrlite.testing: all built-in extensions and stores obey them, and each law can fail."""

from __future__ import annotations

import ast
import contextlib
import inspect
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.buffers.pieces import join
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source
from zarrlite.chunk_key_encodings import ChunkKeyEncoding, DefaultKeys, V2Keys
from zarrlite.codecs import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    ArraySpec,
    Blosc,
    Bytes,
    BytesBytesCodec,
    Crc32c,
    Gzip,
    Offset,
    Packbits,
    Pad,
    ShardingIndexed,
    Transpose,
    VlenBytes,
    VlenUtf8,
    Zstd,
)
from zarrlite.data_types import from_dtype
from zarrlite.errors import ChecksumError, KeyRefusedError, MetadataError, StoreError, UnknownExtensionError
from zarrlite.extensions import registry
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import Framing, Serializer
from zarrlite.pipeline.elements import ElementLayout
from zarrlite.selections.selection import Selection, Shape
from zarrlite.storage_transformers import StorageTransformer
from zarrlite.storage_transformers.base import ArrayInStore
from zarrlite.stores.base import InPlace, Limits, Store, StoredValue, check_key, flat, overwrite
from zarrlite.stores.views import PrefixStore
from zarrlite.testing import (
    ArrayArrayLaws,
    ArrayBytesLaws,
    BytesBytesLaws,
    KeyEncodingLaws,
    StorageTransformerLaws,
    StoreLaws,
    same_elements,
)

UNREGISTERED = "test.unregistered"


@pytest.fixture(autouse=True)
def _keep_the_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in registry.REGISTRIES.values():
        kind.classes()  # load the built-in classes now, because they register themselves only once
        monkeypatch.setattr(kind, "_classes", dict(kind._classes))


# The built-in extensions obey the laws


class TestGzip(BytesBytesLaws):
    codec = Gzip(3)


class TestZstd(BytesBytesLaws):
    codec = Zstd(-3, checksum=True)


class TestZstdWithoutItsChecksum(BytesBytesLaws):
    codec = Zstd(3)


class TestCrc32c(BytesBytesLaws):
    codec = Crc32c()


class TestPad(BytesBytesLaws):
    codec = Pad("end", 5, b"tail!")


class TestOffset(BytesBytesLaws):
    codec = Offset(3)


class TestBlosc(BytesBytesLaws):
    codec = Blosc("lz4", 5, "shuffle", 4)


class TestTranspose(ArrayArrayLaws):
    codec = Transpose((1, 2, 0))
    arrays = (np.arange(24).reshape(2, 3, 4), np.arange(6, dtype=">u2").reshape(1, 6, 1), np.zeros((2, 2, 2), "?"))


class TestBytesLittle(ArrayBytesLaws):
    codec = Bytes("little")


class TestBytesBig(ArrayBytesLaws):
    codec = Bytes("big")
    arrays = (
        *ArrayBytesLaws.arrays,
        np.array([["a", "é"], ["", "zz"]]),
        np.array([(1, 2.0), (3, 4.0)], [("x", "i2"), ("y", "f8")]),
        np.array([True, False]),
    )


class TestPackbits(ArrayBytesLaws):
    codec = Packbits("first_byte")
    arrays = (*ArrayBytesLaws.arrays, np.array([[True, False, True]] * 3), np.array([1 + 2j]))


class TestPackbitsLossy(ArrayBytesLaws):
    codec = Packbits("last_byte", 2, 5)
    arrays = (np.arange(24, dtype="u2").reshape(4, 6), np.arange(64, dtype="u1"))

    def same(self, found: Any, expected: Any) -> bool:
        return same_elements(found, expected & 0b111100)

    def test_a_part_is_written_as_numpy_writes_it(self) -> None:
        """Skip this law, because numpy keeps the bits that this codec drops."""


class _VariableLength(ArrayBytesLaws):
    def make_spec(self, array: np.ndarray) -> ArraySpec:
        data_type = from_dtype("string" if array.dtype.kind == "T" else "bytes")
        return ArraySpec(array.shape, data_type, data_type.default_fill_value)

    def test_arrays_of_any_order_and_byte_order_are_encoded_alike(self) -> None:
        """Skip this law, because strings have no byte order."""


class TestVlenUtf8(_VariableLength):
    codec = VlenUtf8()
    arrays = (np.array([["a", ""], ["é", "long"]], np.dtypes.StringDType()), np.array("x", np.dtypes.StringDType()))


class TestVlenBytes(_VariableLength):
    codec = VlenBytes()
    arrays = (np.array([[b"a", b""], [b"\xff", b"long text"]], object), np.array([b""], object))


class TestSharding(ArrayBytesLaws):
    codec = ShardingIndexed((2, 3), (Transpose((1, 0)), Bytes("big"), Zstd()))
    arrays = (np.arange(24, dtype="i4").reshape(4, 6), np.zeros((2, 6), "u1"), np.eye(6))


class _ShardingWithAStrategy(ArrayBytesLaws):
    def test_json_reads_as_an_equal_codec(self) -> None:
        """Skip this law, because the strategy is a runtime option, which is never in zarr.json."""


class TestShardingInPlace(_ShardingWithAStrategy):
    codec = ShardingIndexed((2, 3), (Bytes("big"),), strategy="in-place")
    arrays = (np.arange(24, dtype="i4").reshape(4, 6), np.zeros((2, 6), "u1"), np.eye(6))


class TestShardingByAppending(_ShardingWithAStrategy):
    codec = ShardingIndexed((2, 3), (Bytes("little"), Zstd()), strategy="append")
    arrays = (np.arange(24, dtype="i4").reshape(4, 6), np.eye(6))


class TestNestedSharding(ArrayBytesLaws):
    inner = ShardingIndexed((1, 3), (Bytes("little"),), index_location="start")
    codec = ShardingIndexed((2, 3), (inner, Crc32c()), (Bytes("big"),), "start")
    arrays = (np.arange(24, dtype="i4").reshape(4, 6),)


class TestDefaultKeys(KeyEncodingLaws):
    encoding = DefaultKeys()


class TestDefaultKeysWithDots(KeyEncodingLaws):
    encoding = DefaultKeys(".")


class TestV2Keys(KeyEncodingLaws):
    encoding = V2Keys()


class TestV2KeysWithSlashes(KeyEncodingLaws):
    encoding = V2Keys("/")


# bytes -> bytes codecs: sound ones, and one or more broken ones for each law


class Same(BytesBytesCodec):
    """A sound codec that changes nothing."""

    name = "test.same"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return 0

    def encode(self, data: Buffer) -> Buffer:
        return bytes(data)

    def decode(self, data: Buffer, limit: int) -> Buffer:
        return bytes(data)

    def decode_into(self, values: Any, memory: memoryview, size: int) -> bool:
        if any(len(value) != size for value in values):
            return False
        slot = len(memory) // len(values)
        for i, value in enumerate(values):
            memory[i * slot : (i + 1) * slot] = value[:slot]
        return True


class DropsTheLastByte(Same):
    def decode(self, data: Buffer, limit: int) -> Buffer:
        return bytes(data)[:-1]


class EncodesOnlyBytes(Same):
    def encode(self, data: Buffer) -> Buffer:
        return data + b""


class WrongEncodedSize(Same):
    def encoded_size(self, size: int) -> int:
        return size + 1


class WrongMaximum(Same):
    def max_encoded_size(self, size: int) -> int:
        return size - 1


class EncodesManyInReverse(Same):
    def encode_many(self, values: Any) -> Any:
        return [bytes(value) for value in reversed(values)]


class EncodesOneTooFew(Same):
    def encode_many(self, values: Any) -> Any:
        return [bytes(value) for value in values[:2]]


class DecodesWhatFits(Same):
    """Decodes as much as fits into the memory, without checking the length."""

    def decode_into(self, values: Any, memory: memoryview, size: int) -> bool:
        data = b"".join(values)
        length = min(len(data), len(memory))
        memory[:length] = data[:length]
        return True


class WritesOutside(Same):
    def decode_into(self, values: Any, memory: memoryview, size: int) -> bool:
        memory.obj[-1] = 0
        return super().decode_into(values, memory, size)


class DecodesTheLastBytes(Same):
    def decode_into(self, values: Any, memory: memoryview, size: int) -> bool:
        slot = len(memory) // len(values)
        return super().decode_into([bytes(value)[-slot:] for value in values], memory, slot)


class IgnoresTheLimit(Same):
    """Encodes a value of only zeros as its length, and decodes any length without checking the limit."""

    def encode(self, data: Buffer) -> Buffer:
        return b"%d" % len(data) if not any(data) else b"=" + bytes(data)

    def decode(self, data: Buffer, limit: int) -> Buffer:
        data = bytes(data)
        return data[1:] if data[:1] == b"=" else bytes(int(data))

    def decode_into(self, values: Any, memory: memoryview, size: int) -> bool:
        return False


class Escaping(BaseException):
    """An exception that is not a subclass of Exception."""


class RaisesEverything(Same):
    def decode(self, data: Buffer, limit: int) -> Buffer:
        if not any(bytes(data)[:1]):
            raise Escaping
        return bytes(data)


@dataclass(frozen=True)
class ForgetsItsLevel(Same):
    level: int = 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ForgetsItsLevel) and other.level == self.level

    def to_config(self) -> dict[str, Any]:
        return {}


class Quoted(Framing):
    """A sound framing codec, whose frame is the same for all values."""

    name = "test.quoted"
    head, tail = 2, 1
    __eq__, __hash__ = Same.__eq__, Same.__hash__

    def frame(self, value: Any) -> tuple[Buffer, Buffer]:
        return b"<<", b">"


class Sealed(Framing):
    """A sound framing codec, whose frame verifies the value."""

    name = "test.sealed"
    tail = 1
    verifies = depends_on_value = True
    __eq__, __hash__ = Same.__eq__, Same.__hash__

    def frame(self, value: Any) -> tuple[Buffer, Buffer]:
        return b"", bytes([sum(bytes(join(value))) % 256])

    def verify(self, data: Buffer) -> None:
        if sum(bytes(data[:-1])) % 256 != data[-1]:
            raise ChecksumError("differs")


class WrongHead(Quoted):
    head = 3


class DependsSecretly(Quoted):
    def frame(self, value: Any) -> tuple[Buffer, Buffer]:
        return b"<<", bytes([len(join(value)) % 256])


class VerifiesNothing(Sealed):
    def verify(self, data: Buffer) -> None:
        pass


BROKEN_BYTES: list[tuple[Any, ...]] = [
    (ForgetsItsLevel(5), "test_json_reads_as_an_equal_codec"),
    (DropsTheLastByte(), "test_decoding_undoes_encoding"),
    (EncodesOnlyBytes(), "test_decoding_undoes_encoding", TypeError),
    (WrongEncodedSize(), "test_the_encoded_size_is_exact"),
    (WrongMaximum(), "test_no_encoded_value_is_larger_than_the_maximum"),
    (EncodesManyInReverse(), "test_encoding_many_values_equals_encoding_each"),
    (EncodesOneTooFew(), "test_encoding_many_values_equals_encoding_each", ValueError),
    (DecodesWhatFits(), "test_values_decoded_into_memory_equal_those_that_decode_returns"),
    (WritesOutside(), "test_values_decoded_into_memory_equal_those_that_decode_returns"),
    (DecodesTheLastBytes(), "test_the_first_bytes_of_values_can_be_decoded_alone"),
    (IgnoresTheLimit(), "test_decoding_produces_no_more_than_its_limit"),
    (RaisesEverything(), "test_damage_raises_only_errors_of_zarrlite", Escaping),
    (WrongHead(), "test_a_frame_is_around_the_value"),
    (DependsSecretly(), "test_a_frame_is_the_same_for_all_values_unless_it_depends_on_them"),
    (VerifiesNothing(), "test_a_frame_that_verifies_notices_every_damaged_byte"),
    (WrongHead(), "test_a_window_reads_ranges_as_slices_of_the_value"),
    (DependsSecretly(), "test_a_patched_frame_equals_the_frame_of_the_patched_value"),
]


# array -> array codecs


class SameArray(ArrayArrayCodec):
    """A sound codec that changes nothing."""

    name = "test.same_array"
    __eq__, __hash__ = Same.__eq__, Same.__hash__

    def encode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array

    def decode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array

    def encode_selection(self, selection: Selection) -> Selection | None:
        return selection

    def decoded_layout(self, layout: ElementLayout) -> ElementLayout | None:
        return layout

    def decoded_shape(self, shape: Shape) -> Shape | None:
        return shape


class AddsOne(SameArray):
    def encode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array + 1


class Flattens(SameArray):
    def encode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array.reshape(-1)

    def decode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array.reshape(spec.shape)


class SelectsOtherElements(SameArray):
    """Adds 1 when it encodes and subtracts 1 when it decodes, but claims that encoded elements equal decoded ones."""

    def encode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array + 1

    def decode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array - 1


class RepeatsTheFirstElement(SameArray):
    def decoded_layout(self, layout: ElementLayout) -> ElementLayout:
        return ElementLayout(layout.dtype, layout.shape, [0] * len(layout.shape), "", None, 0, layout.size)


class TurnsShapes(SameArray):
    def decoded_shape(self, shape: Shape) -> Shape:
        return shape[::-1]


class UnregisteredFilter(SameArray):
    name = UNREGISTERED


BROKEN_FILTERS: list[tuple[Any, ...]] = [
    (UnregisteredFilter(), "test_json_reads_as_an_equal_codec", UnknownExtensionError),
    (AddsOne(), "test_decoding_undoes_encoding"),
    (Flattens(), "test_encoded_arrays_have_the_encoded_spec"),
    (SelectsOtherElements(), "test_an_encoded_selection_has_the_same_elements"),
    (SelectsOtherElements(), "test_a_part_is_written_as_numpy_writes_it"),
    (RepeatsTheFirstElement(), "test_a_decoded_layout_has_the_decoded_elements"),
    (TurnsShapes(), "test_a_decoded_shape_encodes_to_the_shape_it_came_from"),
]


# array -> bytes codecs


class SameElements(ArrayBytesCodec):
    """A sound codec that stores the elements uncompressed; broken ones override `serializer`."""

    name = "test.same_elements"
    __eq__, __hash__ = Same.__eq__, Same.__hash__
    serializer: type[Serializer] = Serializer

    def bind(self, spec: ArraySpec) -> Serializer:
        return self.serializer(self, spec)

    def encode(self, array: np.ndarray, spec: ArraySpec) -> bytes:
        return np.ascontiguousarray(array, spec.dtype).tobytes()

    def decode(self, data: Buffer, spec: ArraySpec) -> np.ndarray:
        return np.frombuffer(data, spec.dtype).reshape(spec.shape)


class DecodesInReverse(SameElements):
    def decode(self, data: Buffer, spec: ArraySpec) -> np.ndarray:
        return np.frombuffer(data, spec.dtype)[::-1].reshape(spec.shape)


class EncodesTheOrderInMemory(SameElements):
    def encode(self, array: np.ndarray, spec: ArraySpec) -> bytes:
        return array.tobytes("A")


class CountsElements(SameElements):
    def encoded_size(self, spec: ArraySpec) -> int:
        return spec.size


class HasAWrongLayout(SameElements):
    class serializer(Serializer):
        @property
        def layout(self) -> ElementLayout:  # type: ignore[override]
            strides = [0] * len(self.spec.shape)
            return ElementLayout(self.spec.dtype, self.spec.shape, strides, "", None)


class ReadsNothing(SameElements):
    class serializer(Serializer):
        def read(self, handles: Any, parts: Any, gap: int) -> Any:
            for _, target in parts:
                target[...] = 77
            yield [], None
            return []


class MixesUpChunks(SameElements):
    class serializer(Serializer):
        def read(self, handles: Any, parts: Any, gap: int) -> Any:
            missing = yield from super().read(handles[::-1], parts, gap)
            return missing


class ReadsTheFirstElement(SameElements):
    class serializer(Serializer):
        def element(self, handle: Any, coords: Shape) -> Any:
            found = yield from super().element(handle, (0,) * len(coords))
            return found


class UpdatesNothing(SameElements):
    class serializer(Serializer):
        def update(self, old: Any, selection: Selection, values: np.ndarray) -> Any:
            return old


class PatchesZeros(SameElements):
    class serializer(Serializer):
        def patch(self, source: Source, selection: Selection, values: np.ndarray) -> Any:
            return [(0, bytes(source.size() or 0))]


class RaisesValueErrors(SameElements):
    class serializer(Serializer):
        def decode(self, data: Buffer) -> np.ndarray:
            return self.codec.decode(data, self.spec)


class UnregisteredSerializer(SameElements):
    name = UNREGISTERED


BROKEN_SERIALIZERS: list[tuple[Any, ...]] = [
    (UnregisteredSerializer(), "test_json_reads_as_an_equal_codec", UnknownExtensionError),
    (DecodesInReverse(), "test_decoding_undoes_encoding"),
    (EncodesTheOrderInMemory(), "test_arrays_of_any_order_and_byte_order_are_encoded_alike"),
    (CountsElements(), "test_the_encoded_size_is_exact"),
    (HasAWrongLayout(), "test_a_layout_has_the_elements_at_their_places"),
    (ReadsNothing(), "test_a_part_equals_that_of_the_decoded_chunk"),
    (MixesUpChunks(), "test_parts_of_several_chunks_equal_the_parts_of_each"),
    (ReadsTheFirstElement(), "test_an_element_equals_that_of_the_decoded_chunk"),
    (ReadsNothing(), "test_every_method_reports_a_missing_chunk"),
    (UpdatesNothing(), "test_a_part_is_written_as_numpy_writes_it"),
    (PatchesZeros(), "test_a_patched_chunk_equals_the_changed_chunk"),
    (RaisesValueErrors(), "test_damage_raises_only_errors_of_zarrlite", ValueError),
]


# Chunk key encodings


class SameKeys(ChunkKeyEncoding):
    """The default key encoding, registered under another name."""

    name = "test.same_keys"
    __eq__, __hash__ = Same.__eq__, Same.__hash__

    def encode(self, coords: Shape) -> str:
        return DefaultKeys().encode(coords)

    def decode(self, key: str, ndim: int) -> Shape | None:
        return DefaultKeys().decode(key, ndim)


class DecodesTheNextChunk(SameKeys):
    def decode(self, key: str, ndim: int) -> Shape | None:
        coords = super().decode(key, ndim)
        return coords and tuple(c + 1 for c in coords)


class AbsoluteKeys(SameKeys):
    def encode(self, coords: Shape) -> str:
        return "/" + super().encode(coords)


class DocumentKeys(SameKeys):
    def encode(self, coords: Shape) -> str:
        return super().encode(coords) + "/zarr.json"


class KeysWithoutSeparator(SameKeys):
    def encode(self, coords: Shape) -> str:
        return "c" + "".join(map(str, coords))


class AcceptsAnyNumeral(SameKeys):
    def decode(self, key: str, ndim: int) -> Shape | None:
        first, *rest = key.split("/")
        try:
            return tuple(map(int, rest)) if first == "c" and len(rest) == ndim else None
        except ValueError:
            return None


class AcceptsAnyDimension(SameKeys):
    def decode(self, key: str, ndim: int) -> Shape | None:
        return DefaultKeys().decode(key, key.count("/"))


class BoundInReverse(SameKeys):
    def bound(self, ndim: int) -> Callable[[Shape], str]:
        return lambda coords: self.encode(coords[::-1])


class UnregisteredKeys(SameKeys):
    name = UNREGISTERED


BROKEN_KEYS: list[tuple[Any, ...]] = [
    (UnregisteredKeys(), "test_json_reads_as_an_equal_encoding", UnknownExtensionError),
    (DecodesTheNextChunk(), "test_decoding_undoes_encoding"),
    (AbsoluteKeys(), "test_every_key_can_be_stored", KeyRefusedError),
    (DocumentKeys(), "test_every_key_can_be_stored"),
    (KeysWithoutSeparator(), "test_no_two_chunks_share_a_key"),
    (AcceptsAnyNumeral(), "test_a_key_decodes_only_to_coordinates_that_encode_to_it"),
    (AcceptsAnyDimension(), "test_a_key_decodes_only_to_coordinates_that_encode_to_it"),
    (BoundInReverse(), "test_a_bound_encoding_returns_the_same_keys"),
]


# Stores: a correct one with only the four operations, and broken ones


class FourOperations(Store):
    """A store backed by a dict, with the four operations that a writable store must have."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        value = self.values.get(check_key(key))
        return None if value is None else byte_range.of(value)

    def set(self, key: str, value: Buffer) -> None:
        self.values[check_key(key)] = bytes(flat(value))

    def erase(self, key: str) -> None:
        self.values.pop(check_key(key), None)

    def list(self) -> Iterator[str]:
        return iter(sorted(self.values))


class TestFourOperations(StoreLaws):
    def make_store(self) -> Store:
        return FourOperations()


class KeepsItsSize(StoredValue):
    """A source that keeps reporting the size of the first value, even after another value was stored."""

    known: int | None = None

    def size(self) -> int | None:
        if self.known is None:
            self.known = super().size()
        return self.known


class NeverCurrent(StoredValue):
    def is_current(self) -> bool:
        return False


def slow_get(self: Store, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
    value = FourOperations.get(self, key, byte_range)  # type: ignore[arg-type]
    time.sleep(0.0002)
    return value


def get_from_memory(self: Store, requests: Any, memory: memoryview | None = None) -> list[Any]:
    values = Store.get_partial_values(self, requests)
    return values if memory is None else [value and value[: len(memory)] for value in values]


def get_of_size(self: Store, requests: Any, memory: memoryview | None = None) -> list[Any]:
    found = []
    for key, byte_range, *size in requests:
        wrong = size and size[0] not in (None, self.size(key))
        found.append(b"" if wrong else self.get(key, byte_range))
    return found


def set_once(self: FourOperations, key: str, value: Buffer) -> None:
    self.values.setdefault(check_key(key), bytes(value))


def set_items(self: FourOperations, key: str, value: Buffer) -> None:
    self.values[check_key(key)] = bytes(flat(value))[: len(value)]


def set_without_a_copy(self: FourOperations, key: str, value: Buffer) -> None:
    self.values[check_key(key)] = value if isinstance(value, bytearray) else bytes(value)


def erase_for_good(self: FourOperations, key: str) -> None:
    self.values[check_key(key)] = None
    self.values = Grave({k: v for k, v in self.values.items() if v is not None}, key)


class Grave(dict[str, Any]):
    """A dict in which an erased key cannot be set again."""

    def __init__(self, values: dict[str, Any], erased: str) -> None:
        super().__init__(values)
        self.erased = erased.partition("/")[0]

    def __setitem__(self, key: str, value: Any) -> None:
        if not key.startswith(self.erased):
            super().__setitem__(key, value)


def changing(
    order: Callable[[Any], Any] = list,
    source: Callable[[Any, str], Source] = lambda store, key: store.source(key),
    in_place: Callable[[Any, Any], Any] = overwrite,
    before: Callable[[Any, str], object] = lambda store, key: None,
    erases: bool = True,
) -> Callable[[Any, Any], None]:
    """Return an implementation of `change` without locks. Each argument can make it wrong in one respect."""

    def change(self: Any, changes: Any) -> None:
        for key, new in order(changes):
            check_key(key)
            if callable(new):
                before(self, key)
                new = new(source(self, key))
            if isinstance(new, InPlace):
                new = in_place(self.get(key), new.patches)
            if new is not None:
                self.set(key, join(new))
            elif erases:
                self.erase(key)

    return change


def append_patches(old: Any, patches: Any) -> bytes:
    return bytes(old or b"") + b"".join(bytes(piece) for _, piece in patches)


class NotReentrant:
    """A lock that fails, instead of blocking forever, if its holder takes it again."""

    held: set[str] = set()

    def __init__(self, key: str) -> None:
        self.key = check_key(key)

    def __enter__(self) -> None:
        if self.key in self.held:
            raise RuntimeError("would block")
        self.held.add(self.key)

    def __exit__(self, *error: object) -> None:
        self.held.discard(self.key)


def broken_store(**members: Any) -> Callable[[], Store]:
    return type("BrokenStore", (FourOperations,), members)


def get_absolute(self: FourOperations, key: str, byte_range: ByteRange = ALL) -> Any:
    return FourOperations.get(self, key, ByteRange(abs(byte_range.start), byte_range.stop))


def get_sorted(self: Store, requests: Any, memory: Any = None) -> list[Any]:
    return [self.get(*request[:2]) for request in sorted(requests, key=str)]


BROKEN_STORES: list[tuple[Any, ...]] = [
    (broken_store(get=lambda self, key, r=ALL: FourOperations.get(self, key, r) or b""), "test_a_missing_key_is_none"),
    (broken_store(list=lambda self: iter(["ghost"])), "test_a_store_without_values_is_empty"),
    (broken_store(get=get_absolute), "test_ranges_are_slices"),
    (broken_store(size=lambda self, key: (Store.size(self, key) or 0) + 1), "test_ranges_are_slices"),
    (
        broken_store(get_partial_values=lambda self, requests, memory=None: [self.get(r[0]) for r in requests]),
        "test_ranges_are_slices",
    ),
    (broken_store(get_partial_values=get_sorted), "test_partial_values_are_in_the_order_of_their_requests"),
    (broken_store(get_partial_values=get_of_size), "test_a_request_with_a_wrong_expected_size_is_refused_or_served"),
    (broken_store(get_partial_values=get_from_memory), "test_passing_memory_does_not_change_the_values_read"),
    (
        broken_store(source=lambda self, key: InMemory(bytes(self.get(key))[::-1])),
        "test_a_source_reads_ranges_as_slices",
    ),
    (broken_store(source=lambda self, key: InMemory(b"")), "test_the_source_for_a_missing_key_is_missing"),
    (
        broken_store(source=lambda self, key: KeepsItsSize(self, key)),
        "test_a_source_reads_the_old_value_or_the_new_one",
    ),
    (broken_store(source=lambda self, key: NeverCurrent(self, key)), "test_a_source_is_current_while_its_value_stays"),
    (broken_store(set=set_once), "test_set_replaces"),
    (broken_store(set=set_items), "test_set_takes_every_kind_of_buffer"),
    (broken_store(set=set_without_a_copy), "test_a_stored_value_does_not_change_with_the_buffer_it_came_in"),
    (
        broken_store(change=changing(order=lambda changes: reversed([*changes]))),
        "test_set_many_stores_all_and_the_last_wins",
    ),
    (broken_store(change=changing(erases=False)), "test_changes_store_erase_and_compute"),
    (
        broken_store(change=changing(order=lambda changes: sorted(changes, key=lambda c: c[1] is None))),
        "test_changes_of_one_key_are_made_in_order",
    ),
    (
        broken_store(change=changing(in_place=lambda old, patches: old)),
        "test_a_value_is_overwritten_in_place_after_it_was_read",
    ),
    (
        broken_store(change=changing(in_place=append_patches)),
        "test_partial_values_overwrite_and_grow_with_zeros",
    ),
    (
        broken_store(change=changing(source=lambda store, key: InMemory(None))),
        "test_an_update_replaces_the_value_that_it_receives",
    ),
    (
        broken_store(change=changing(before=lambda store, key: store.erase(key))),
        "test_a_change_that_fails_changes_nothing",
    ),
    (broken_store(erase=lambda self, key: None), "test_erase_removes_a_key_and_ignores_missing_ones"),
    (broken_store(change=changing(erases=False)), "test_erase_values_removes_several_keys"),
    (broken_store(erase_prefix=lambda self, prefix: None), "test_erase_prefix_removes_every_key_under_it"),
    (broken_store(erase=erase_for_good), "test_an_erased_key_can_be_set_again"),
    (broken_store(list_dir=lambda self, prefix: ([], [])), "test_listings_agree_with_a_dict"),
    (
        broken_store(list_prefix=lambda self, prefix: (k for k in self.values if k.startswith(prefix[:-1]))),
        "test_listings_agree_with_a_dict",
    ),
    (broken_store(list=lambda self: iter(self.values)), "test_a_store_may_be_written_while_it_is_listed", StoreError),
    (broken_store(lock=lambda self, key: NotReentrant(key)), "test_the_holder_of_a_lock_may_write", RuntimeError),
    (broken_store(get=slow_get, lock=lambda self, key: contextlib.nullcontext()), "test_threads_lose_no_updates"),
    (broken_store(limits=Limits(concurrency=0)), "test_limits_and_locations_are_usable"),
    (broken_store(location=lambda self, prefix="": (1, "")), "test_limits_and_locations_are_usable"),
    (broken_store(erase=lambda self, key: self.values.pop(key, None)), "test_hostile_keys_are_refused_by_writing"),
    (broken_store(lock=lambda self, key: contextlib.nullcontext()), "test_hostile_keys_are_refused_by_writing"),
    (broken_store(size=lambda self, key: None), "test_hostile_keys_are_refused_by_reading"),
    (broken_store(list_prefix=lambda self, prefix: iter([])), "test_hostile_keys_are_refused_by_reading"),
    (broken_store(read_only=True), "test_a_read_only_store_refuses_changes"),
    (broken_store(read_only=True), "test_a_store_that_can_be_written_is_not_read_only"),
]


# Storage transformers


@dataclass(frozen=True)
class Xor(StorageTransformer):
    """A sound transformer that stores every byte of a chunk xored with a mask."""

    name = "test.xor"
    mask: int = 0x55

    @classmethod
    def from_config(cls, config: Any) -> Any:
        return cls(config.integer("mask", 0, 255))

    def wrap(self, store: Store, array: ArrayInStore) -> Store:
        return self.store(store, array, self.mask)

    @property
    def store(self) -> Any:
        return XorStore


class XorStore(PrefixStore):
    """A store that overrides `get` and `set`, and otherwise has the default operations, which call these two."""

    def __init__(self, store: Store, array: ArrayInStore, mask: int) -> None:
        super().__init__(store, "")
        self.encoding, self.ndim, self.mask = array.chunk_key_encoding, len(array.shape), mask

    def masked(self, key: str, value: Any) -> Any:
        if value is None or self.encoding.decode(key, self.ndim) is None:
            return value
        return (np.frombuffer(value, "u1") ^ self.mask).tobytes()

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.masked(key, self.store.get(key, byte_range))

    def set(self, key: str, value: Buffer) -> None:
        self.store.set(key, self.masked(key, value))


class TestXor(StorageTransformerLaws):
    transformer = Xor()

    @pytest.fixture(autouse=True)
    def _registered(self) -> None:
        register(Xor)


def broken_xor(**members: Any) -> Xor:
    """Return the transformer with some members of its store replaced."""
    cls = type("BrokenXorStore", (XorStore,), members)
    return type("BrokenXor", (Xor,), {"store": property(lambda self: cls)})()


def list_one_more(self: XorStore, prefix: str = "") -> Iterator[str]:
    return iter([*PrefixStore.list_prefix(self, prefix), "c/9/9"])


def get_tail(self: XorStore, key: str, byte_range: ByteRange = ALL) -> Any:
    value = XorStore.get(self, key)
    return None if value is None else value[abs(byte_range.start) : byte_range.stop]


def mask_every_key(self: XorStore, key: str, value: Any) -> Any:
    return None if value is None else (np.frombuffer(value, "u1") ^ self.mask).tobytes()


def get_slowly(self: XorStore, key: str, byte_range: ByteRange = ALL) -> Any:
    value = XorStore.get(self, key, byte_range)
    time.sleep(0.001)
    return value


def change_below(self: XorStore, changes: Any) -> None:
    """Pass functions on to the underlying store, so that they receive masked values."""
    for key, change in changes:
        (PrefixStore if callable(change) else Store).change(self, [(key, change)])


class WantsMoreCodecs(Xor):
    def check(self, array: ArrayInStore) -> None:
        if len(array.codecs) == 1:
            raise MetadataError("must have more codecs")


class UnregisteredXor(Xor):
    name = UNREGISTERED


class MaskOfItsOwn(XorStore):
    """A store that can read only the values that it wrote itself, because each instance has its own mask."""

    count = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        MaskOfItsOwn.count += 1
        self.mask = MaskOfItsOwn.count % 250 + 1


class Writable(XorStore):
    """A store that does not know that the underlying store is read-only."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.read_only = False


def xor_with(store: type[Store]) -> Xor:
    return type("XorWith" + store.__name__, (Xor,), {"store": property(lambda self: store)})()


BROKEN_TRANSFORMERS: list[tuple[Any, ...]] = [
    (UnregisteredXor(), "test_json_reads_as_an_equal_transformer", UnknownExtensionError),
    (WantsMoreCodecs(), "test_the_transformer_fits_the_array", MetadataError),
    (broken_xor(size=lambda self, key: self.store.size(key) or 0), "test_a_missing_chunk_is_none"),
    (broken_xor(get=get_tail), "test_ranges_are_slices"),
    (broken_xor(get_partial_values=get_sorted), "test_partial_values_are_in_the_order_of_their_requests"),
    (broken_xor(source=PrefixStore.source), "test_a_source_reads_ranges_as_slices"),
    (broken_xor(set=lambda self, k, v: self.size(k) or XorStore.set(self, k, v)), "test_set_replaces"),
    (broken_xor(change=change_below), "test_partial_values_overwrite"),
    (
        broken_xor(change=changing(source=lambda store, key: InMemory(None))),
        "test_an_update_replaces_the_value_that_it_receives",
    ),
    (broken_xor(change=change_below), "test_changes_store_erase_and_compute"),
    (broken_xor(get=get_slowly, lock=lambda self, key: contextlib.nullcontext()), "test_threads_lose_no_updates"),
    (broken_xor(erase=lambda self, key: None), "test_erase_removes_chunks_and_all_their_underlying_keys"),
    (broken_xor(erase_prefix=lambda self, prefix: None), "test_erase_prefix_removes_every_chunk_under_it"),
    (
        broken_xor(list_prefix=list_one_more),
        "test_listings_show_chunk_keys_but_not_the_underlying_keys",
    ),
    (xor_with(Writable), "test_a_read_only_store_stays_read_only"),
    (broken_xor(masked=mask_every_key), "test_other_keys_pass_through_unchanged"),
    (xor_with(MaskOfItsOwn), "test_another_transformer_over_the_same_store_shows_the_same_chunks"),
    (
        broken_xor(change=changing(source=lambda store, key: InMemory(None))),
        "test_an_array_reads_what_was_written_to_it",
    ),
]


# Each law fails for a broken class


def laws_of(cls: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if name.startswith("test_")}


class LawsOfAStore(StoreLaws):
    __test__ = False
    make: Callable[[], Store]

    def make_store(self) -> Store:
        return self.make()


BROKEN: dict[type, tuple[str, list[tuple[Any, ...]]]] = {
    BytesBytesLaws: ("codec", BROKEN_BYTES),
    ArrayArrayLaws: ("codec", BROKEN_FILTERS),
    ArrayBytesLaws: ("codec", BROKEN_SERIALIZERS),
    KeyEncodingLaws: ("encoding", BROKEN_KEYS),
    StorageTransformerLaws: ("transformer", BROKEN_TRANSFORMERS),
    LawsOfAStore: ("make", BROKEN_STORES),
}
ROWS = [(laws, attribute, *row) for laws, (attribute, rows) in BROKEN.items() for row in rows]


def subject(laws: type, attribute: str, value: Any) -> Any:
    """Return an instance of `laws` for an extension, which is registered first, or for stores made by a function."""
    if attribute != "make" and value.name != UNREGISTERED:
        register(type(value))
    instance = laws()
    setattr(instance, attribute, value)
    return instance


@pytest.mark.parametrize(
    "row", ROWS, ids=[f"{getattr(row[2], '__name__', type(row[2]).__name__)}-{row[3]}" for row in ROWS]
)
def test_each_broken_class_fails_its_law(row: tuple[Any, ...]) -> None:
    laws, attribute, broken, law, *error = row
    with pytest.raises(error[0] if error else AssertionError):
        getattr(subject(laws, attribute, broken), law)()


@pytest.mark.parametrize("laws", BROKEN, ids=lambda laws: laws.__name__)
def test_every_law_is_failed_by_a_broken_class(laws: type) -> None:
    assert {row[1] for row in BROKEN[laws][1]} == laws_of(laws)


@pytest.mark.parametrize(
    ("laws", "attribute", "sound"),
    [
        (BytesBytesLaws, "codec", Same()),
        (BytesBytesLaws, "codec", Quoted()),
        (BytesBytesLaws, "codec", Sealed()),
        (ArrayArrayLaws, "codec", SameArray()),
        (ArrayBytesLaws, "codec", SameElements()),
        (KeyEncodingLaws, "encoding", SameKeys()),
        (StorageTransformerLaws, "transformer", broken_xor()),
        (LawsOfAStore, "make", FourOperations),
        (LawsOfAStore, "make", broken_store(change=changing(), lock=Store.lock)),
    ],
)
def test_the_sound_classes_that_broken_ones_derive_from_obey_every_law(laws: type, attribute: str, sound: Any) -> None:
    for law in laws_of(laws):
        if "threads" not in law or sound is FourOperations:  # `changing` takes no locks
            getattr(subject(laws, attribute, sound), law)()


def test_laws_without_a_store_cannot_be_created() -> None:
    with pytest.raises(TypeError, match=r"abstract method '?make_store"):
        StoreLaws()  # type: ignore[abstract]


@pytest.mark.parametrize("module", ["zarrlite.testing", "zarrlite.tools.testing.stores"])
def test_laws_cannot_be_imported_where_assertions_are_removed(module: str) -> None:
    done = subprocess.run([sys.executable, "-O", "-c", f"import {module}"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "run them without -O" in done.stderr


def test_the_library_itself_needs_no_assertions() -> None:
    root = Path(zarrlite.__file__).parent
    sources = (path for path in root.rglob("*.py") if path.relative_to(root).parts[:2] != ("tools", "testing"))
    trees = ((path.name, ast.walk(ast.parse(path.read_text("utf-8")))) for path in sources)
    assert [name for name, nodes in trees if any(isinstance(node, ast.Assert) for node in nodes)] == []
