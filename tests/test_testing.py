"""The laws that others test with hold for everything here, and each of them can fail."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import ArraySource, InMemory, Limit, Source, Window
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
    Packbits,
    ShardingIndexed,
    Transpose,
    VlenBytes,
    VlenUtf8,
    Zstd,
)
from zarrlite.data_types import from_dtype
from zarrlite.errors import KeyRefusedError, MetadataError, UnknownExtensionError
from zarrlite.extensions import registry
from zarrlite.extensions.extension import Extension
from zarrlite.extensions.registry import register
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.pipeline.codec import Serializer
from zarrlite.selections.selection import Selection, Shape
from zarrlite.storage_transformers import StorageTransformer
from zarrlite.stores.base import Store
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


@pytest.fixture(autouse=True)
def _keep_the_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in registry.REGISTRIES.values():
        kind.classes()  # loads what is built in, which registers itself only once
        monkeypatch.setattr(kind, "_classes", dict(kind._classes))


# What is built in keeps the laws


class TestGzip(BytesBytesLaws):
    codec = Gzip(3)


class TestZstd(BytesBytesLaws):
    codec = Zstd(-3, checksum=True)


class TestZstdWithoutItsChecksum(BytesBytesLaws):
    codec = Zstd(3)


class TestCrc32c(BytesBytesLaws):
    codec = Crc32c()


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


class _Variable(ArrayBytesLaws):
    def make_spec(self, array: np.ndarray) -> ArraySpec:
        data_type = from_dtype("string" if array.dtype.kind == "T" else "bytes")
        return ArraySpec(array.shape, data_type, data_type.default_fill_value)

    def test_encoding_takes_what_is_strided_or_of_another_byte_order(self) -> None:
        """Strings have no byte order."""


class TestVlenUtf8(_Variable):
    codec = VlenUtf8()
    arrays = (np.array([["a", ""], ["é", "long"]], np.dtypes.StringDType()), np.array("x", np.dtypes.StringDType()))


class TestVlenBytes(_Variable):
    codec = VlenBytes()
    arrays = (np.array([[b"a", b""], [b"\xff", b"long text"]], object), np.array([b""], object))


class TestSharding(ArrayBytesLaws):
    codec = ShardingIndexed((2, 3), (Transpose((1, 0)), Bytes("big"), Zstd()))
    arrays = (np.arange(24, dtype="i4").reshape(4, 6), np.zeros((2, 6), "u1"), np.eye(6))


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


# A transformer that xors what is stored under chunk keys


@dataclass(frozen=True)
class Xor(StorageTransformer):
    """Every byte of a chunk xored with a mask."""

    name = "test.xor"
    mask: int = 0x55

    @classmethod
    def from_config(cls, config: Any) -> Any:
        return cls(config.integer("mask", 0, 255))

    def wrap(self, store: Store, metadata: ArrayMetadata) -> Store:
        return self.store(store, metadata, self.mask)

    @property
    def store(self) -> Any:
        return XorStore


class XorStore(PrefixStore):
    """All that is not a value passes; get_partial_values and the rest are the slow defaults."""

    get_partial_values = Store.get_partial_values
    set_many = Store.set_many
    set_partial_values = Store.set_partial_values

    def __init__(self, store: Store, metadata: ArrayMetadata, mask: int) -> None:
        super().__init__(store, "")
        self.encoding, self.ndim, self.mask = metadata.chunk_key_encoding, len(metadata.shape), mask

    def changed(self, key: str, value: Any) -> Any:
        if value is None or self.encoding.decode(key, self.ndim) is None:
            return value
        return (np.frombuffer(value, "u1") ^ self.mask).tobytes()

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.changed(key, self.store.get(key, byte_range))

    def set(self, key: str, value: Buffer) -> None:
        self.store.set(key, self.changed(key, value))

    def update(self, key: str, fn: Any) -> None:
        self.store.update(key, lambda old: self.changed(key, fn(self.changed(key, old))))


class TestXor(StorageTransformerLaws):
    transformer = Xor()

    @pytest.fixture(autouse=True)
    def _registered(self) -> None:
        register(Xor)


# Each law can fail: a broken thing, the law that it breaks


class Broken(BytesBytesCodec):
    """Changes nothing; the base of what is wrong below."""

    name = "test.broken"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return 0

    def encode(self, data: Buffer) -> Buffer:
        return bytes(data)

    def decode(self, data: Buffer, limit: int) -> Buffer:
        return bytes(data)


class Forgetful(Broken):
    def decode(self, data: Buffer, limit: int) -> Buffer:
        return bytes(data)[:-1]


class OnlyBytes(Broken):
    def encode(self, data: Buffer) -> Buffer:
        return data + b""


class WrongSize(Broken):
    def encoded_size(self, size: int) -> int:
        return size + 1


class TooSmall(Broken):
    def max_encoded_size(self, size: int) -> int:
        return size - 1


class BadView(Broken):
    def view(self, source: Source, limit: Limit) -> Source:
        return Window(source, head=1)


class Inventive(Broken):
    def view(self, source: Source, limit: Limit) -> Source:
        return InMemory(source.read_all() or b"")


class Bomb(Broken):
    """Runs of zeros as one number, expanded without looking at the limit."""

    def encode(self, data: Buffer) -> Buffer:
        return b"%d" % len(data) if not any(data) else b"=" + bytes(data)

    def decode(self, data: Buffer, limit: int) -> Buffer:
        data = bytes(data)
        return data[1:] if data[:1] == b"=" else bytes(int(data))

    def view(self, source: Source, limit: Limit) -> Source:
        data = source.read_all()
        return InMemory(None if data is None else self.decode(data, 0))


class Raising(Broken):
    def view(self, source: Source, limit: Limit) -> Source:
        data = source.read_all()
        if data is not None and not any(bytes(data)[:1]):
            raise IndexError(data)
        return InMemory(data)


class LastPiece(Broken):
    def encode_pieces(self, data: Any, old: Buffer | None) -> Any:
        return data[-1:]


class Reversed(Broken):
    def decode_many(self, values: Sequence[Buffer], limit: int) -> Sequence[Buffer]:
        return [bytes(value) for value in reversed(values)]


class Unrolled(Broken):
    def unroll(self, data: Buffer, size: int) -> Source:
        return Window(InMemory(data), head=min(1, len(data)))


class Hasty(Broken):
    """Decodes to memory as much as there is, whatever fits."""

    def decode_into(self, data: Buffer, memory: memoryview) -> bool:
        length = min(len(data), len(memory))
        memory[:length] = data[:length]
        return True


class Stale(Broken):
    fresh = True

    def encode(self, data: Buffer) -> Buffer:
        return data


@dataclass(frozen=True)
class Unwritten(Broken):
    level: int = 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unwritten) and other.level == self.level

    def to_config(self) -> dict[str, Any]:
        return {}


BROKEN_BYTES = [
    (Forgetful(), "test_decoding_undoes_encoding"),
    (OnlyBytes(), "test_decoding_undoes_encoding"),
    (WrongSize(), "test_the_encoded_size_is_exact"),
    (TooSmall(), "test_the_largest_encoded_size_holds"),
    (LastPiece(), "test_pieces_are_encoded_as_the_whole"),
    (Reversed(), "test_many_are_encoded_and_decoded_as_each"),
    (Hasty(), "test_what_is_decoded_into_memory_is_what_is_decoded"),
    (Stale(), "test_what_is_fresh_does_not_change_with_what_it_was_made_of"),
    (Unrolled(), "test_what_is_unrolled_is_what_is_decoded"),
    (BadView(), "test_a_view_reads_ranges_as_slices"),
    (Inventive(), "test_a_missing_value_stays_missing"),
    (Bomb(), "test_a_view_makes_no_more_than_its_limit"),
    (Raising(), "test_damage_raises_nothing_but_errors_of_zarrlite"),
    (Unwritten(5), "test_what_is_written_reads_as_an_equal_codec"),
]


class BrokenFilter(ArrayArrayCodec):
    """Changes nothing; the base of what is wrong below."""

    name = "test.broken"
    __eq__, __hash__ = Broken.__eq__, Broken.__hash__

    def encode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array

    def decode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array


class OneWay(BrokenFilter):
    def encode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array + 1


class Unannounced(BrokenFilter):
    def encode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array.reshape(-1)

    def decode(self, array: np.ndarray, spec: ArraySpec) -> np.ndarray:
        return array.reshape(spec.shape)


class Always(ArraySource):
    def __init__(self, spec: ArraySpec) -> None:
        self.spec = spec

    def read(self, selection: Selection) -> np.ndarray:
        return np.zeros(selection.shape, self.spec.dtype)


class Blind(BrokenFilter):
    def view(self, source: ArraySource, spec: ArraySpec) -> ArraySource:
        return Always(spec)


class Stubborn(BrokenFilter):
    def encode_update(self, selection: Selection, values: np.ndarray) -> Any:
        return selection, np.zeros_like(values)


class FilterUnregistered(BrokenFilter):
    name = "test.nobody-knows"


BROKEN_FILTERS = [
    (OneWay(), "test_decoding_undoes_encoding"),
    (Unannounced(), "test_what_comes_out_is_what_was_announced"),
    (Blind(), "test_a_view_is_what_decode_gives"),
    (Blind(), "test_a_missing_chunk_stays_missing"),
    (Stubborn(), "test_a_partial_write_is_that_of_the_whole"),
    (FilterUnregistered(), "test_what_is_written_reads_as_an_equal_codec"),
]


class BrokenSerializer(ArrayBytesCodec):
    """Raw bytes; the base of what is wrong below."""

    name = "test.broken"
    __eq__, __hash__ = Broken.__eq__, Broken.__hash__
    serializer: type[Serializer] = Serializer

    def prepare(self, spec: ArraySpec) -> Serializer:
        return self.serializer(self, spec)

    def encode(self, array: np.ndarray, spec: ArraySpec) -> bytes:
        return np.ascontiguousarray(array, spec.dtype).tobytes()

    def decode(self, data: Buffer, spec: ArraySpec) -> np.ndarray:
        return np.frombuffer(data, spec.dtype).reshape(spec.shape)


class Backwards(BrokenSerializer):
    def decode(self, data: Buffer, spec: ArraySpec) -> np.ndarray:
        return np.frombuffer(data, spec.dtype)[::-1].reshape(spec.shape)


class AsItLies(BrokenSerializer):
    def encode(self, array: np.ndarray, spec: ArraySpec) -> bytes:
        return array.tobytes("A")


class Mismeasured(BrokenSerializer):
    def encoded_size(self, spec: ArraySpec) -> int:
        return spec.size


class BlindSerializer(BrokenSerializer):
    class serializer(Serializer):
        def view(self, source: Source) -> ArraySource:
            return Always(self.spec)


class StubbornSerializer(BrokenSerializer):
    class serializer(Serializer):
        def update(self, old: Any, selection: Selection, values: np.ndarray) -> Any:
            return old


class RaisingSerializer(BrokenSerializer):
    class serializer(Serializer):
        def decode(self, data: Buffer) -> np.ndarray:
            return self.codec.decode(data, self.spec)


class SerializerUnregistered(BrokenSerializer):
    name = "test.nobody-knows"


BROKEN_SERIALIZERS = [
    (Backwards(), "test_decoding_undoes_encoding"),
    (AsItLies(), "test_encoding_takes_what_is_strided_or_of_another_byte_order"),
    (Mismeasured(), "test_the_encoded_size_is_exact"),
    (BlindSerializer(), "test_a_view_is_what_decode_gives"),
    (BlindSerializer(), "test_a_missing_chunk_stays_missing"),
    (StubbornSerializer(), "test_a_partial_write_is_what_numpy_does"),
    (RaisingSerializer(), "test_damage_raises_nothing_but_errors_of_zarrlite"),
    (SerializerUnregistered(), "test_what_is_written_reads_as_an_equal_codec"),
]


class BrokenKeys(ChunkKeyEncoding):
    """The default keys; the base of what is wrong below."""

    name = "test.broken"
    __eq__, __hash__ = Broken.__eq__, Broken.__hash__

    def encode(self, coords: Shape) -> str:
        return DefaultKeys().encode(coords)

    def decode(self, key: str, ndim: int) -> Shape | None:
        return DefaultKeys().decode(key, ndim)


class OffByOne(BrokenKeys):
    def decode(self, key: str, ndim: int) -> Shape | None:
        coords = super().decode(key, ndim)
        return coords and tuple(c + 1 for c in coords)


class Absolute(BrokenKeys):
    def encode(self, coords: Shape) -> str:
        return "/" + super().encode(coords)


class Documents(BrokenKeys):
    def encode(self, coords: Shape) -> str:
        return super().encode(coords) + "/zarr.json"


class Crowded(BrokenKeys):
    def encode(self, coords: Shape) -> str:
        return "c" + "".join(map(str, coords))


class Lenient(BrokenKeys):
    def decode(self, key: str, ndim: int) -> Shape | None:
        first, *rest = key.split("/")
        try:
            return tuple(map(int, rest)) if first == "c" and len(rest) == ndim else None
        except ValueError:
            return None


class AnyNumber(BrokenKeys):
    def decode(self, key: str, ndim: int) -> Shape | None:
        return DefaultKeys().decode(key, key.count("/"))


class BoundOtherwise(BrokenKeys):
    def bound(self, ndim: int) -> Callable[[Shape], str]:
        return lambda coords: self.encode(coords[::-1])


class KeysUnregistered(BrokenKeys):
    name = "test.nobody-knows"


BROKEN_KEYS = [
    (OffByOne(), "test_decoding_undoes_encoding"),
    (Absolute(), "test_every_key_can_be_stored"),
    (Documents(), "test_every_key_can_be_stored"),
    (Crowded(), "test_no_two_chunks_share_a_key"),
    (Lenient(), "test_a_key_decodes_only_if_encoding_gives_it_back"),
    (AnyNumber(), "test_a_key_decodes_only_if_encoding_gives_it_back"),
    (BoundOtherwise(), "test_what_is_bound_makes_the_same_keys"),
    (KeysUnregistered(), "test_what_is_written_reads_as_an_equal_encoding"),
]


def broken_xor(**methods: Any) -> Xor:
    """The transformer above with some methods of its store replaced."""
    cls = type("BrokenStore", (XorStore,), methods)
    return type("BrokenXor", (Xor,), {"store": property(lambda self: cls)})()


def _listed(self: XorStore, prefix: str = "") -> Iterator[str]:
    return iter([*PrefixStore.list_prefix(self, prefix), "c/9/9"])


def _tails(self: XorStore, key: str, byte_range: ByteRange = ALL) -> Any:
    value = XorStore.get(self, key)
    return None if value is None else value[abs(byte_range.start) : byte_range.stop]


def _everything_changed(self: XorStore, key: str, value: Any) -> Any:
    return None if value is None else (np.frombuffer(value, "u1") ^ self.mask).tobytes()


def _plain_partial(self: XorStore, key_start_values: Iterable[Any]) -> None:
    PrefixStore.set_partial_values(self, key_start_values)


def _unsorted(self: XorStore, key_ranges: Sequence[Any]) -> list[Any]:
    return [self.get(key, part) for key, part in sorted(key_ranges, key=str)]


def _blind_update(self: XorStore, key: str, fn: Any) -> None:
    self.set(key, fn(None) or b"")


def _nothing(self: XorStore, *args: Any) -> None:
    pass


class Choosy(Xor):
    def check(self, metadata: ArrayMetadata) -> None:
        if len(metadata.codecs) == 1:
            raise MetadataError("wants more codecs")


class XorUnregistered(Xor):
    name = "test.nobody-knows"


class RandomMask(XorStore):
    """Only the one that wrote a value can read it."""

    count = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        RandomMask.count += 1
        self.mask = RandomMask.count % 250 + 1


BROKEN_TRANSFORMERS: list[tuple[Xor, str]] = [
    (XorUnregistered(), "test_what_is_written_reads_as_an_equal_transformer"),
    (Choosy(), "test_it_fits_the_array"),
    (broken_xor(size=lambda self, key: self.store.size(key) or 0), "test_a_missing_chunk_is_none"),
    (broken_xor(get=_tails), "test_ranges_are_slices"),
    (broken_xor(get_partial_values=_unsorted), "test_ranges_are_slices"),
    (broken_xor(set=lambda self, k, v: self.size(k) or XorStore.set(self, k, v)), "test_set_replaces"),
    (broken_xor(set_partial_values=_plain_partial), "test_partial_values_overwrite"),
    (broken_xor(update=_blind_update), "test_update"),
    (broken_xor(erase=_nothing), "test_erase"),
    (broken_xor(erase_prefix=_nothing), "test_erase_prefix"),
    (broken_xor(list_prefix=_listed), "test_listings_show_chunk_keys_and_nothing_of_what_is_below"),
    (broken_xor(changed=_everything_changed), "test_other_keys_pass_through_untouched"),
    (
        type("Amnesiac", (Xor,), {"store": property(lambda self: RandomMask)})(),
        "test_another_one_over_the_same_store_shows_the_same",
    ),
    (broken_xor(update=_blind_update), "test_an_array_on_top_of_it_is_an_array"),
]


def laws_of(cls: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(cls, inspect.isfunction) if name.startswith("test_")]


BREAKING: list[tuple[type, str, list[Any]]] = [
    (BytesBytesLaws, "codec", BROKEN_BYTES),
    (ArrayArrayLaws, "codec", BROKEN_FILTERS),
    (ArrayBytesLaws, "codec", BROKEN_SERIALIZERS),
    (KeyEncodingLaws, "encoding", BROKEN_KEYS),
    (StorageTransformerLaws, "transformer", BROKEN_TRANSFORMERS),
]
# where it is not an assertion that fails: the very error that the law is about
OTHER_ERRORS: dict[str, type[Exception]] = {
    "Absolute": KeyRefusedError,
    "Choosy": MetadataError,
    "FilterUnregistered": UnknownExtensionError,
    "KeysUnregistered": UnknownExtensionError,
    "OnlyBytes": TypeError,
    "Raising": IndexError,
    "RaisingSerializer": ValueError,
    "SerializerUnregistered": UnknownExtensionError,
    "XorUnregistered": UnknownExtensionError,
}
ROWS = [(laws, attribute, broken, law) for laws, attribute, rows in BREAKING for broken, law in rows]


@pytest.mark.parametrize(
    ("laws", "attribute", "broken", "law"), ROWS, ids=[f"{type(b).__name__}-{law}" for _, _, b, law in ROWS]
)
def test_what_is_broken_breaks_the_law(laws: type, attribute: str, broken: Extension, law: str) -> None:
    if broken.name != "test.nobody-knows":
        register(type(broken))
    subject = laws()
    setattr(subject, attribute, broken)
    with pytest.raises(OTHER_ERRORS.get(type(broken).__name__, AssertionError)):
        getattr(subject, law)()


@pytest.mark.parametrize(("laws", "attribute", "rows"), BREAKING, ids=[row[0].__name__ for row in BREAKING])
def test_every_law_is_broken_by_something(laws: type, attribute: str, rows: list[Any]) -> None:
    assert {law for _, law in rows} == set(laws_of(laws))


@pytest.mark.parametrize(
    ("laws", "attribute", "sound"),
    [
        (BytesBytesLaws, "codec", Broken()),
        (ArrayArrayLaws, "codec", BrokenFilter()),
        (ArrayBytesLaws, "codec", BrokenSerializer()),
        (KeyEncodingLaws, "encoding", BrokenKeys()),
        (StorageTransformerLaws, "transformer", broken_xor()),
    ],
)
def test_what_the_broken_ones_are_made_from_keeps_every_law(laws: type, attribute: str, sound: Extension) -> None:
    register(type(sound))
    subject = laws()
    setattr(subject, attribute, sound)
    for law in laws_of(laws):
        getattr(subject, law)()


# The laws of stores can fail as well


class Plain(Store):
    """A dict with locks enough for one thread; the base of what is wrong below."""

    def __init__(self) -> None:
        from zarrlite.stores import MemoryStore

        self.memory = MemoryStore()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name == "memory" or name in type(self).__dict__:
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "memory"), name)

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        return self.memory.get(key, byte_range)


def plain_with(**methods: Any) -> Callable[[], Store]:
    return type("BrokenStore", (Plain,), {"get": Plain.get, **methods})


BROKEN_STORES = [
    (plain_with(get=lambda self, key, r=ALL: self.memory.get(key, r) or b""), "test_a_missing_key_is_none"),
    (plain_with(list=lambda self: iter(["ghost"])), "test_a_new_store_is_empty"),
    (
        plain_with(get=lambda self, key, r=ALL: self.memory.get(key, ByteRange(abs(r.start), r.stop))),
        "test_ranges_are_slices",
    ),
    (plain_with(size=lambda self, key: (self.memory.size(key) or 0) + 1), "test_ranges_are_slices"),
    (
        plain_with(get_partial_values=lambda self, asked: [self.memory.get(k, r) for k, r in sorted(asked)]),
        "test_partial_values_come_in_order",
    ),
    (plain_with(erase=lambda self, key: None), "test_erase"),
    (plain_with(erase_values=lambda self, keys: None), "test_erase_values"),
    (plain_with(erase_prefix=lambda self, prefix: None), "test_erase_prefix"),
    (plain_with(list_dir=lambda self, prefix: ([], [])), "test_listings_agree_with_a_dict"),
    (plain_with(update=lambda self, key, fn: self.memory.set(key, fn(None) or b"")), "test_update"),
    (plain_with(erase=lambda self, key: self.memory.erase(key.strip("/.") or "x")), "test_hostile_keys_are_refused"),
    (plain_with(set_new=lambda self, items: not self.set_many(items)), "test_set_new_stores_all_or_nothing"),
    (
        plain_with(fetch=lambda self, keys, memory, room: [self.memory.get(k, ByteRange(0, room)) for k in keys]),
        "test_what_is_fetched_is_the_value_or_nothing",
    ),
    (
        plain_with(fetch=lambda self, keys, memory, room: [None, *map(self.memory.get, keys)][: len(keys)]),
        "test_what_is_fetched_is_the_value_or_nothing",
    ),
    (
        plain_with(peek=lambda self, key, start, length, size: self.memory.get(key, ByteRange(start, start + length))),
        "test_a_peek_is_a_part_of_a_value_of_that_size_or_nothing",
    ),
    (plain_with(patch=lambda self, key, fn: True), "test_patch_overwrites_a_value_after_a_look_at_it"),
]


@pytest.mark.parametrize(("make", "law"), BROKEN_STORES, ids=[law for _, law in BROKEN_STORES])
def test_a_broken_store_breaks_the_law(make: Callable[[], Store], law: str) -> None:
    class Laws(StoreLaws):
        def __init__(self, make: Callable[[], Store]) -> None:
            self.make = make

        def make_store(self) -> Store:
            return self.make()

    with pytest.raises(AssertionError):
        getattr(Laws(make), law)()
    getattr(Laws(plain_with()), law)()


def test_laws_without_a_store_say_so() -> None:
    with pytest.raises(TypeError, match="abstract method make_store"):
        StoreLaws()  # type: ignore[abstract]


@pytest.mark.parametrize("module", ["zarrlite.testing", "zarrlite.tools.testing.stores"])
def test_laws_that_could_not_fail_are_refused(module: str) -> None:
    done = subprocess.run([sys.executable, "-O", "-c", f"import {module}"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "run them without -O" in done.stderr


def test_the_library_itself_needs_no_assertions() -> None:
    root = Path(zarrlite.__file__).parent
    sources = (path for path in root.rglob("*.py") if path.relative_to(root).parts[:2] != ("tools", "testing"))
    trees = ((path.name, ast.walk(ast.parse(path.read_text("utf-8")))) for path in sources)
    assert [name for name, nodes in trees if any(isinstance(node, ast.Assert) for node in nodes)] == []
