"""Arrays that zarrlite writes are read by its peers bit for bit, and the other way round; parts are overwritten in both.

Three tables (data types, codec chains, layouts) make the cases; each row says which peers it is run with, and why not
with the others. "zarrs" is zarr-python with zarrs' codec pipeline, so both have to know what is in the document;
"zarrs_core" is the Rust part alone.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite

# zarr-python warns of every data type that has no specification
pytestmark = pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification")

ALL = ("zarr", "zarrs", "tensorstore")
ATTRIBUTES = {"title": "zwölf 🦓", "nested": {"list": [1, 2.5, None, True], "empty": {}}, "big": 2**53 + 1}


def bits(dtype: str, *words: int) -> np.ndarray:
    """An array of the elements with these bits; no NaN passes through a Python float."""
    size = np.dtype(dtype).itemsize // (2 if dtype.startswith("c") else 1)
    return np.array(words, f"u{size}").view(dtype)


def codec(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


def base64(scalar: np.void) -> str:
    return b64encode(scalar.tobytes()).decode()


# ---------------------------------------------------------------- data types


@dataclass(frozen=True)
class Type:
    """A data type as zarr.json spells it, elements of it, and fill values: their JSON and the scalar that it means."""

    json: Any
    values: np.ndarray
    fills: list[tuple[Any, Any]]
    peers: tuple[str, ...] = ALL
    serializers: tuple[Any, ...] = (codec("bytes", endian="little"), codec("bytes", endian="big"))


def integer(name: str) -> Type:
    low, high = int(np.iinfo(name).min), int(np.iinfo(name).max)
    return Type(name, np.array([0, 1, low, high, high // 3], name), [(n, n) for n in (0, 1, low, high)])


def floating(name: str, nan: int, *others: int) -> Type:
    """`others` are bits: NaNs with payload or sign, then anything else."""
    width = np.dtype(name).itemsize * 2
    info = np.finfo(name)
    named = [("NaN", bits(name, nan)[0]), ("Infinity", math.inf), ("-Infinity", -math.inf)]
    plain = [(x, x) for x in (0.0, -0.0, -1.5, float(info.max), float(info.smallest_subnormal))]
    by_bits = [(f"0x{word:0{width}x}", bits(name, word)[0]) for word in others]
    values = [np.array([1.5, -1 / 3, -0.0, 0.0, *(fill for _, fill in named + plain)], name), bits(name, nan, *others)]
    return Type(name, np.concatenate(values), [*named, *plain, *by_bits])


def complex_(name: str, part: Type) -> Type:
    pairs = [(a, b) for a in part.fills for b in part.fills]
    chosen = [pairs[i] for i in range(0, len(pairs), 7)]
    scalars = [np.array([a, b], part.values.dtype).view(name)[0] for (_, a), (_, b) in chosen]
    fills = [([a, b], scalar) for ((a, _), (b, _)), scalar in zip(chosen, scalars, strict=True)]
    return Type(name, np.array(scalars), fills)


def fixed(name: str, length: int, dtype: str, values: list[Any], fills: list[tuple[Any, Any]], *serializers: Any) -> Type:
    scalars = [(text, np.array(fill, dtype)[()]) for text, fill in fills]
    return Type(codec(name, length_bytes=length), np.array(values, dtype), scalars, ("zarr",), serializers)


def times(letter: str, unit: str, factor: int) -> Type:
    name = {"M": "numpy.datetime64", "m": "numpy.timedelta64"}[letter]
    values = np.array([0, 1, -1, 2**63 - 1, -(2**63), 10**12]).view(f"{letter}8[{factor}{unit}]")
    fills = [("NaT", values[4]), (0, values[0]), (-1, values[2]), (2**63 - 1, values[3])]
    # zarrs by way of zarr-python leaves times to zarr-python; tensorstore has none
    return Type(codec(name, unit=unit, scale_factor=factor), values, fills, ("zarr", "zarrs_core"))


FLOAT32 = floating("float32", 0x7FC0_0000, 0x7FC0_0001, 0xFFC0_0000, 0xFFFF_FFFF)
FLOAT64 = floating("float64", 0x7FF8 << 48, (0x7FF8 << 48) + 0x1234, 0xFFF8 << 48)
NO_ENDIAN = (codec("bytes"),)
BOTH = Type.serializers
PAIR = np.dtype([("x", "i2"), ("y", "f4"), ("ok", "?")])
PAIRS = np.array([(1, 2.5, True), (-(2**15), -0.0, False), (7, math.inf, True)], PAIR)
DEEP = np.dtype([("a", "u8"), ("in", [("t", "M8[s]"), ("s", "S3"), ("u", "U2")]), ("c", "c8")])
DEEPS = np.array([(2**64 - 1, (5, b"abc", "ü🦓"), 1 - 2j), (0, ("NaT", b"", ""), 0)], DEEP)

TYPES = {
    "bool": Type("bool", np.array([True, False, True]), [(True, True), (False, False)], ALL, NO_ENDIAN),
    **{name: integer(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "float16": floating("float16", 0x7E00, 0x7E01, 0xFE00),
    "float32": FLOAT32,
    "float64": FLOAT64,
    "complex64": complex_("complex64", FLOAT32),
    "complex128": complex_("complex128", FLOAT64),
    # zarr-python has no r*; tensorstore wants base64 as its fill value (the specification has an array of integers),
    # writes what it cannot read itself, and ends the process if it is opened without open_as_void
    **{
        f"r{8 * n}": Type(
            f"r{8 * n}",
            np.frombuffer(bytes(range(250, 256)) + bytes(6 * n - 6), f"V{n}"),
            [([0] * n, np.void(bytes(n))), ([255, *range(1, n)], np.void(bytes([255, *range(1, n)])))],
            ("zarrs_core",),
            NO_ENDIAN,
        )
        for n in (1, 2, 3, 16)
    },
    # only zarr-python has the types from here on
    "string": Type(
        "string",
        np.array(["", "a", "zwölf 🦓", "a" * 300, "\0", "b\0"], np.dtypes.StringDType()),
        [("", ""), ("fill 🦓", "fill 🦓")],
        ("zarr",),
        (codec("vlen-utf8"),),
    ),
    "bytes": Type(
        "variable_length_bytes",
        np.array([b"", b"a", b"\0\xff", b"a" * 300], object),
        [("", b""), ("AP8=", b"\0\xff")],
        ("zarr",),
        (codec("vlen-bytes"),),
    ),
    "utf32": fixed("fixed_length_utf32", 12, "U3", ["", "a", "ü🦓x"], [("", ""), ("🦓", "🦓")], *BOTH),
    "null-terminated": fixed(
        "null_terminated_bytes", 3, "S3", [b"", b"a", b"\xff\0b"], [("", b""), ("/w==", b"\xff")], *NO_ENDIAN
    ),
    "raw_bytes": fixed(
        "raw_bytes", 3, "V3", [b"\0\0\0", b"abc", b"\xff\0\0"], [("AAAA", bytes(3)), ("/wAA", b"\xff\0\0")], *NO_ENDIAN
    ),
    **{
        f"{letter}8[{factor}{unit}]": times(letter, unit, factor)
        for letter, factor, unit in [("M", 1, "ns"), ("M", 10, "s"), ("M", 1, "D"), ("m", 1, "us"), ("m", 25, "ms")]
    },
    "struct": Type(
        {"name": "struct", "configuration": {"fields": [
            {"name": "x", "data_type": "int16"}, {"name": "y", "data_type": "float32"}, {"name": "ok", "data_type": "bool"},
        ]}},
        PAIRS,
        [({"x": 1, "y": 2.5, "ok": True}, PAIRS[0]), ({"x": -32768, "y": -0.0, "ok": False}, PAIRS[1])],
        ("tensorstore",),
    ),
    "structured": Type(
        {"name": "structured", "configuration": {"fields": [["x", "int16"], ["y", "float32"], ["ok", "bool"]]}},
        PAIRS,
        [(base64(PAIRS[0]), PAIRS[0]), (base64(PAIRS[1]), PAIRS[1])],
        ("zarr",),
    ),
    "structured-deep": Type(
        {"name": "structured", "configuration": {"fields": [
            ["a", "uint64"],
            ["in", {"name": "structured", "configuration": {"fields": [
                ["t", codec("numpy.datetime64", unit="s", scale_factor=1)],
                ["s", codec("null_terminated_bytes", length_bytes=3)],
                ["u", codec("fixed_length_utf32", length_bytes=8)],
            ]}}],
            ["c", "complex64"],
        ]}},
        DEEPS,
        [(base64(DEEPS[0]), DEEPS[0]), (base64(DEEPS[1]), DEEPS[1])],
        ("zarr",),
    ),
}  # fmt: skip


# ---------------------------------------------------------------- codec chains

LITTLE, BIG, CRC = codec("bytes", endian="little"), codec("bytes", endian="big"), codec("crc32c")
SMALL = ("uint8", "int16", "float64")  # the data types that codecs are tried with


def sharding(chunk_shape: list[int], codecs: list[Any], index: list[Any] = [LITTLE, CRC], at: str = "end") -> Any:
    return codec("sharding_indexed", chunk_shape=chunk_shape, codecs=codecs, index_codecs=index, index_location=at)


def blosc(cname: str, shuffle: str, typesize: int, clevel: int = 5, blocksize: int = 0) -> Any:
    return codec("blosc", cname=cname, clevel=clevel, shuffle=shuffle, typesize=typesize, blocksize=blocksize)


# name: codecs, data types, peers; chunks are (4, 6)
CHAINS: dict[str, tuple[list[Any], tuple[str, ...], tuple[str, ...]]] = {
    "transpose": ([codec("transpose", order=[1, 0]), LITTLE], SMALL, ALL),
    "transpose-identity": ([codec("transpose", order=[0, 1]), BIG], SMALL, ALL),
    "transpose-twice": ([codec("transpose", order=[1, 0]), codec("transpose", order=[1, 0]), LITTLE], SMALL, ALL),
    **{f"gzip-{n}": ([LITTLE, codec("gzip", level=n)], SMALL, ALL) for n in (0, 1, 6, 9)},
    **{
        f"zstd-{n}-{check}": ([LITTLE, codec("zstd", level=n, checksum=check)], SMALL, ALL)
        for n in (-5, 0, 3, 22)
        for check in (False, True)
    },
    "crc32c": ([LITTLE, CRC], SMALL, ALL),
    "crc32c-twice": ([BIG, CRC, CRC], SMALL, ALL),
    "crc32c-gzip-crc32c": ([LITTLE, CRC, codec("gzip", level=1), CRC], SMALL, ALL),
    "transpose-big-zstd-crc32c": (
        [codec("transpose", order=[1, 0]), BIG, codec("zstd", level=1, checksum=True), CRC],
        SMALL,
        ALL,
    ),
    **{
        f"blosc-{cname}-{shuffle}": ([LITTLE, blosc(cname, shuffle, 2)], ("int16",), ALL)
        for cname in ("lz4", "lz4hc", "blosclz", "snappy", "zlib", "zstd")
        for shuffle in ("noshuffle", "shuffle", "bitshuffle")
    },
    "blosc-typesize-8": ([BIG, blosc("lz4", "shuffle", 8)], ("float64", "complex64"), ALL),
    "blosc-typesize-3": ([LITTLE, blosc("lz4", "shuffle", 3)], ("float64",), ALL),
    "blosc-clevel-0": ([LITTLE, blosc("zstd", "bitshuffle", 8, 0)], ("float64",), ALL),
    "blosc-blocksize": ([LITTLE, blosc("zlib", "shuffle", 8, 9, 64)], ("float64",), ALL),
    "blosc-after-crc32c": ([LITTLE, CRC, blosc("lz4", "shuffle", 2)], ("int16",), ALL),
    **{
        f"vlen-{last['name']}": ([serializer, last], types, ("zarr",))
        for serializer, types in [(codec("vlen-utf8"), ("string",)), (codec("vlen-bytes"), ("bytes",))]
        for last in (codec("gzip", level=5), codec("zstd", level=0, checksum=False), CRC, blosc("lz4", "noshuffle", 1))
    },
    "shard": ([sharding([2, 3], [LITTLE])], (*SMALL, "bool", "complex128"), ALL),
    "shard-inner-chain": (
        [sharding([2, 2], [codec("transpose", order=[1, 0]), BIG, codec("gzip", level=5), CRC])],
        SMALL,
        ALL,
    ),
    "shard-of-one": ([sharding([4, 6], [LITTLE, codec("zstd", level=0, checksum=False)])], SMALL, ALL),
    "shard-of-elements": ([sharding([1, 1], [LITTLE])], SMALL, ALL),
    "shard-index-start": ([sharding([2, 3], [LITTLE], at="start")], SMALL, ALL),
    "shard-index-plain": ([sharding([2, 3], [LITTLE], [LITTLE])], SMALL, ALL),
    "shard-index-plain-start": ([sharding([2, 3], [LITTLE], [LITTLE], "start")], SMALL, ALL),
    "shard-index-big": ([sharding([2, 3], [LITTLE], [BIG, CRC])], SMALL, ALL),
    "shard-blosc": ([sharding([2, 3], [LITTLE, blosc("lz4", "bitshuffle", 2)])], ("int16",), ALL),
    "shard-nested": ([sharding([4, 3], [sharding([2, 1], [LITTLE, codec("gzip", level=1)])])], SMALL, ALL),
    "shard-nested-thrice": (
        [sharding([4, 3], [sharding([2, 3], [sharding([1, 3], [LITTLE])], at="start")], at="start")],
        SMALL,
        ALL,
    ),
    "shard-transposed": ([codec("transpose", order=[1, 0]), sharding([3, 2], [LITTLE])], SMALL, ALL),
    "shard-crc32c": ([sharding([2, 3], [LITTLE]), CRC], SMALL, ALL),
    "shard-gzip": ([sharding([2, 3], [LITTLE]), codec("gzip", level=5)], SMALL, ALL),
    "shard-vlen": ([sharding([2, 3], [codec("vlen-utf8"), codec("gzip", level=5)])], ("string",), ("zarr",)),
    "shard-vlen-bytes": ([sharding([2, 3], [codec("vlen-bytes")])], ("bytes",), ("zarr",)),
    "shard-structured": ([sharding([2, 3], [BIG])], ("structured",), ("zarr",)),
    "shard-struct": ([sharding([2, 3], [BIG])], ("struct",), ("tensorstore",)),
    "shard-utf32": ([sharding([2, 3], [BIG])], ("utf32",), ("zarr",)),
    "shard-times": ([sharding([2, 3], [BIG])], ("M8[10s]",), ("zarr", "zarrs_core")),
    # packbits: neither zarr-python nor tensorstore has it
    **{
        f"packbits-{padding}": ([codec("packbits", padding_encoding=padding)], types, ("zarrs_core",))
        for padding in ("none", "first_byte", "last_byte")
        for types in [("bool", "uint8", "int16", "float64", "complex64")]
    },
    "packbits-sharded": (
        [sharding([1, 3], [codec("packbits", padding_encoding="last_byte"), CRC])],
        ("bool", "int16"),
        ("zarrs_core",),
    ),
}


# ---------------------------------------------------------------- layouts

KEYS = {
    f"{name}{separator}": codec(name, separator=separator) for name in ("default", "v2") for separator in ("/", ".")
}
KEYS |= {name: codec(name) for name in ("default", "v2")}

# name: shape, chunks, chunk key encoding
LAYOUTS: dict[str, tuple[list[int], list[int], Any]] = {
    **{f"keys-{name}": ([5, 7], [2, 3], keys) for name, keys in KEYS.items()},
    **{f"0-d-{name}": ([], [], keys) for name, keys in KEYS.items()},
    "1-d": ([10], [4], KEYS["default/"]),
    "1-d-even": ([8], [4], KEYS["default/"]),
    "chunk-of-one": ([3, 2], [1, 1], KEYS["default/"]),
    "chunk-beyond": ([3, 2], [10, 10], KEYS["default/"]),
    "many": ([23], [2], KEYS["v2."]),
    "3-d": ([3, 4, 5], [2, 3, 2], KEYS["default."]),
    "6-d": ([2, 1, 3, 2, 1, 2], [1, 1, 2, 2, 1, 1], KEYS["v2/"]),
    "zero-length": ([0], [4], KEYS["default/"]),
    "zero-length-2-d": ([3, 0], [2, 2], KEYS["default/"]),
}


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """A document, the scalar that its fill value means, and what the array shall hold."""

    document: dict[str, Any]
    fill: Any
    values: np.ndarray

    def scalar(self, value: Any) -> bytes:
        """The bits of a fill value."""
        if self.values.dtype.kind in "OT":
            return value if isinstance(value, bytes) else value.encode()
        return np.array(value, self.values.dtype).tobytes()

    @property
    def part(self) -> tuple[slice, ...]:
        """A selection that cuts chunks."""
        return tuple(slice(n // 3, n // 3 + (n + 1) // 2) for n in self.values.shape)

    @property
    def updated(self) -> np.ndarray:
        values = self.values.copy()
        values[self.part] = np.flip(self.values)[self.part]
        return values


def case(kind: Type, fill: tuple[Any, Any], codecs: list[Any], layout: Any = ([5, 7], [4, 6], KEYS["default/"])) -> Case:
    """The first inner chunk and the last chunk hold nothing but the fill value: they are missing."""
    shape, chunks, keys = layout
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": kind.json,
        "chunk_grid": codec("regular", chunk_shape=chunks),
        "chunk_key_encoding": keys,
        "fill_value": fill[0],
        "codecs": codecs,
        "attributes": ATTRIBUTES,
        "dimension_names": [None if i == 1 else f"dimension {i}" for i in range(len(shape))],
    }
    values = np.resize(kind.values, shape)
    scalar = fill[1] if kind.values.dtype.kind in "OT" else np.array(fill[1], kind.values.dtype)[()]
    inner = next((c["configuration"]["chunk_shape"] for c in codecs if c["name"] == "sharding_indexed"), chunks)
    if values.size > math.prod(inner):
        values[tuple(slice(0, n) for n in inner)] = scalar
        values[tuple(slice((n - 1) // c * c, n) for n, c in zip(shape, chunks, strict=True))] = scalar
    return Case(document, scalar, values)


def cases() -> Any:
    for name, kind in TYPES.items():
        for serializer in kind.serializers:
            order = serializer.get("configuration", {}).get("endian", "")
            for i, fill in enumerate(kind.fills):
                if i and order == "big":
                    continue
                for peer in kind.peers:
                    yield pytest.param(case(kind, fill, [serializer]), peer, id=f"{peer}-{name}-{order}-fill{i}")
    for name, (codecs, types, peers) in CHAINS.items():
        for t in types:
            for peer in peers:
                yield pytest.param(case(TYPES[t], TYPES[t].fills[-1], codecs), peer, id=f"{peer}-{name}-{t}")
    for name, layout in LAYOUTS.items():
        for t in ("uint8", "float32", "string"):
            for peer in TYPES[t].peers:
                kind = TYPES[t]
                made = case(kind, kind.fills[-1], [kind.serializers[0]], layout)
                yield pytest.param(made, peer, id=f"{peer}-{name}-{t}")


every_case = pytest.mark.parametrize(("case", "peer"), list(cases()), indirect=["peer"])


def write(path: Path, case: Case) -> None:
    document = case.document
    array = zarrlite.create_array(
        str(path),
        shape=document["shape"],
        dtype=document["data_type"],
        chunks=document["chunk_grid"]["configuration"]["chunk_shape"],
        codecs=document["codecs"],
        fill_value=case.fill,
        chunk_key_encoding=document["chunk_key_encoding"],
        attributes=document["attributes"],
        dimension_names=document["dimension_names"],
    )
    array[...] = case.values


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    """The same elements, bit for bit."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if found.dtype.kind in "OT":
        assert found.tolist() == expected.tolist()
    else:
        assert found.tobytes() == expected.tobytes()


@every_case
def test_a_peer_reads_what_zarrlite_writes(case: Case, peer: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    write(path, case)
    assert_same(peer.read(path), case.values)
    assert_same(peer.read(path, case.part), case.values[case.part])
    assert case.scalar(peer.fill_value(path)) == case.scalar(case.fill)
    assert peer.attributes(path) == ATTRIBUTES


@every_case
def test_zarrlite_reads_what_a_peer_writes(case: Case, peer: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    peer.write(path, case.document, case.values)
    array = zarrlite.open_array(str(path), mode="r")
    assert_same(array[...], case.values)
    assert_same(array[case.part], case.values[case.part])
    assert case.scalar(array.fill_value) == case.scalar(case.fill)
    assert dict(array.attrs) == ATTRIBUTES
    assert array.metadata.dimension_names == tuple(case.document["dimension_names"])


@every_case
def test_a_peer_writes_over_what_zarrlite_wrote(case: Case, peer: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    write(path, case)
    peer.update(path, case.part, case.updated[case.part])
    assert_same(zarrlite.open_array(str(path), mode="r")[...], case.updated)


@every_case
def test_zarrlite_writes_over_what_a_peer_wrote(case: Case, peer: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    peer.write(path, case.document, case.values)
    zarrlite.open_array(str(path), mode="r+")[case.part] = case.updated[case.part]
    assert_same(zarrlite.open_array(str(path), mode="r")[...], case.updated)
    assert_same(peer.read(path), case.updated)
