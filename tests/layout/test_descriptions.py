"""Codecs and storage transformers from other packages that describe themselves are explained, checked and drawn."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest
from layout.test_explain import change, lines

import zarrlite
from zarrlite import Array, register
from zarrlite.codecs import ArrayBytesCodec, Bytes, Zstd
from zarrlite.errors import ChecksumError, DataError
from zarrlite.layout import check, explain
from zarrlite.pipeline.anatomy import Field, Header
from zarrlite.pipeline.codec import Framing, Serializer
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.storage_transformers import Part, StorageTransformer
from zarrlite.storage_transformers.anatomy import Divided
from zarrlite.storage_transformers.parts_store import PartsStore
from zarrlite.tools.layout.tree import tiles

DATA = np.array([1, 2, 3, 4], "u1")
FIELDS = (Field("magic", 4, configured=b"TILE"), Field("version", 2, form="<H"))


@register
class Tile(ArrayBytesCodec):
    """A codec that stores a header, with a magic number and a version, before the elements."""

    name = "test.tile"

    def encode(self, array: Any, spec: Any) -> bytes:
        return struct.pack("<4sH", b"TILE", 7) + np.ascontiguousarray(array, "u1").tobytes()

    def decode(self, data: Any, spec: Any) -> Any:
        self.check_header(bytes(data[:6]))
        return np.frombuffer(data, "u1", offset=6).reshape(spec.shape)

    def encoded_size(self, spec: Any) -> int:
        return 6 + int(spec.size)

    def bind(self, spec: Any) -> Serializer:
        return TileSerializer(self, spec)

    @staticmethod
    def check_header(header: bytes) -> None:
        magic, _ = struct.unpack("<4sH", header)
        if magic != b"TILE":
            raise DataError(f"starts with {magic!r}, not b'TILE'")


class TileSerializer(Serializer):
    """The codec, bound to the shape and data type of a chunk."""

    def anatomy(self, header: Any = None) -> Header:
        if header is not None:
            Tile.check_header(bytes(header))
        return Header("tile", FIELDS)


@register
class WrappedTile(Tile):
    """A codec that stores the header of `Tile` before a value encoded by other codecs."""

    name = "test.wrapped_tile"

    def encode(self, array: Any, spec: Any) -> bytes:
        return struct.pack("<4sH", b"TILE", 7) + bytes(self.inner(spec).encode_always(array))

    def decode(self, data: Any, spec: Any) -> Any:
        self.check_header(bytes(data[:6]))
        return self.inner(spec).decode(data[6:])

    def encoded_size(self, spec: Any) -> None:  # type: ignore[override]
        return None

    def bind(self, spec: Any) -> Serializer:
        return WrappedTileSerializer(self, spec)

    @staticmethod
    def inner(spec: Any) -> Pipeline:
        return Pipeline([Bytes(), Zstd()], spec)


class WrappedTileSerializer(Serializer):
    """The codec, bound to the shape and data type of a chunk."""

    def anatomy(self, header: Any = None) -> Header:
        return Header("tile", FIELDS, WrappedTile.inner(self.spec))


@register
class Adler32(Framing):
    """A codec that adds a marker before the value, and a checksum after it."""

    name = "test.adler32"
    head = 3
    tail = 4
    verifies = True
    depends_on_value = True

    def frame(self, value: Any) -> tuple[bytes, bytes]:
        data = value if not isinstance(value, list) else b"".join(value)
        return b"ADL", zlib.adler32(data).to_bytes(4, "little")

    def verify(self, data: Any) -> None:
        if zlib.adler32(data[3:-4]).to_bytes(4, "little") != bytes(data[-4:]):
            raise ChecksumError("the checksum is wrong")

    def fields(self) -> tuple[list[Field], list[Field]]:
        return [Field("marker", 3)], [Field("checksum", 4, "checksum")]


@register
class Halves(StorageTransformer):
    """A storage transformer that stores each chunk in two objects, using the store class of `concat-parts`."""

    name = "test.halves"
    parts = (Part(".first", 2), Part(".second"))

    def wrap(self, store: Any, array: Any) -> Any:
        return PartsStore(store, self.parts, array, journal=True, level=0)

    def anatomy(self) -> Divided:
        return Divided(self.parts)


def create(codecs: Any, transformers: Any = ()) -> Array:
    return zarrlite.create_array({}, data=DATA, chunks=(4,), codecs=codecs, storage_transformers=transformers)


def test_a_header_is_explained_field_by_field() -> None:
    array = create([Tile()])
    (stored,) = explain(array, "c/0")
    assert lines(stored) == [
        "0-10 chunk (0)",
        "  0-6 tile header (test.tile)",
        "    0-4 magic (test.tile)",
        "    4-6 version (test.tile)",
        "  6-10 elements (test.tile)",
    ]
    assert tiles(stored.layout)
    details = {r.what: r.detail for _, r in stored.layout.walk()}
    assert (details["magic"], details["version"]) == ({"as configured": True}, {"value": 7})
    assert list(check(array.store)) == []


def test_a_chain_after_a_header_is_explained() -> None:
    (stored,) = explain(create([WrappedTile()]), "c/0")
    assert [line.rpartition("-")[2].partition(" ")[2] for line in lines(stored)] == [
        "chunk (0)",
        "tile header (test.wrapped_tile)",
        "magic (test.wrapped_tile)",
        "version (test.wrapped_tile)",
        "zstd frame (zstd)",
        "elements (bytes)",
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"tile\7\0\1\2\3\4", "0-10 tile (test.tile) !data: starts with b'tile', not b'TILE'"),
        (b"TIL", "0-3 tile (test.tile) !data: cannot be decoded: unpack requires a buffer of 6 bytes"),
        (b"TILE\7\0\1\2\3", "6-9 elements (test.tile) !data: cannot be decoded: cannot reshape"),
    ],
)
def test_a_damaged_header_or_body_is_a_fault(value: bytes, expected: str) -> None:
    array = create([Tile()])
    array.store.set("c/0", value)
    (stored,) = explain(array, "c/0")
    assert expected in "\n".join(lines(stored))
    assert tiles(stored.layout)
    assert [problem.kind for problem in check(array.store)] == ["data"]


def test_a_value_shorter_than_a_header_that_is_not_verified_is_a_fault() -> None:
    array = create([WrappedTile()])
    array.store.set("c/0", b"TIL")
    (stored,) = explain(array, "c/0")
    message = "has 3 bytes, but the header of a tile alone has 6"
    assert lines(stored)[1] == f"  0-3 tile (test.wrapped_tile) !size: {message}"


def test_the_fields_of_a_frame_are_explained_and_its_checksum_is_verified() -> None:
    array = create([Bytes(), Adler32()])
    (stored,) = explain(array, "c/0")
    assert lines(stored) == [
        "0-11 chunk (0)",
        "  0-3 marker (test.adler32)",
        "  3-7 elements (bytes)",
        "  7-11 checksum (test.adler32)",
    ]
    detail = {r.what: r.detail for _, r in stored.layout.walk()}["checksum"]
    assert detail == {"found": "0018000b", "expected": "0018000b", "covers": [3, 7]}
    change(array, "c/0", 3, b"\x09")
    assert lines(explain(array, "c/0")[0])[3] == "  7-11 checksum (test.adler32) !checksum: the checksum is wrong"


def test_a_storage_transformer_is_explained() -> None:
    array = create([Bytes()], [Halves()])
    first, second = explain(array, "c/0")
    assert lines(first)[0] == "0-2 part 1 of 2 of c/0 (test.halves)"
    assert lines(second) == ["0-2 part 2 of 2 of c/0 (test.halves)", "  0-2 chunk (0)", "    0-2 elements (bytes)"]
    array.store.erase("c/0.second")
    missing = "0-0 missing part (test.halves) !part: is missing, but other parts exist"
    assert lines(explain(array, "c/0")[1]) == [missing]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (create([Tile()]), ["tile header", "6 B", "magic, version", "4 uint8", "4 B"]),
        (create([WrappedTile()]), ["tile header", "6 B", "zstd frame", "compressed from 4 B"]),
        (create([Bytes(), Adler32()]), ["marker", "3 B", "4 uint8", "test.adler32", "4 B"]),
        (create([Bytes()], [Halves()]), ["test.halves: the same bytes in 2 objects", "c/0.first", "2 B", "the rest"]),
    ],
    ids=["header", "header and chain", "frame", "transformer"],
)
def test_pictures_show_the_described_fields(array: Array, expected: list[str]) -> None:
    svg = array.to_svg()
    assert [text for text in expected if f">{text}<" not in svg] == []
