"""Arrays are exchanged bit for bit between zarrlite and other libraries, and either side updates parts of them.

The cases come from three tables: data types, codec chains, layouts. Each row names its peers, the libraries that it is
run with; comments say why others are left out. "zarrs" is zarr-python with the codec pipeline of zarrs, so both must
support the document; "zarrs_core" is the Rust part alone.
"""

from __future__ import annotations

import math
from base64 import b64encode
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# zarr-python warns about data types without a specification, and about codecs combined with sharding
pytestmark = [
    pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification"),
    pytest.mark.filterwarnings("ignore:Missing 'endian' for structured dtype"),
    pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec disables partial reads"),
]

ALL = ("zarr", "zarrs", "tensorstore")
ATTRIBUTES = {"title": "zwölf 🦓", "nested": {"list": [1, 2.5, None, True], "empty": {}}, "big": 2**53 + 1}


def bits(dtype: str, *words: int) -> np.ndarray:
    """Return an array of elements with these bits, without converting a NaN to a Python float."""
    size = np.dtype(dtype).itemsize // (2 if dtype.startswith("c") else 1)
    return np.array(words, f"u{size}").view(dtype)


def codec(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


def base64(scalar: np.void) -> str:
    return b64encode(scalar.tobytes()).decode()


# ---------------------------------------------------------------- data types


Fill = tuple[Any, Any]


@dataclass(frozen=True)
class Type:
    """A data type: its JSON, sample elements, and fill values, each as JSON and as a scalar."""

    json: Any
    values: np.ndarray
    fills: list[Fill]
    peers: tuple[str, ...] = ALL
    serializers: tuple[Any, ...] = (codec("bytes", endian="little"), codec("bytes", endian="big"))
    nans: list[Fill] = field(default_factory=list)  # fill values that are NaNs with a sign or a payload
    nan_readers: tuple[str, ...] = ("zarr", "tensorstore")


def integer(name: str) -> Type:
    low, high = int(np.iinfo(name).min), int(np.iinfo(name).max)
    return Type(name, np.array([0, 1, low, high, high // 3], name), [(n, n) for n in (0, 1, low, high)])


def floating(name: str, nan: int, *others: int) -> Type:
    """Return a floating-point type; `nan` contains the bits of "NaN", `others` those of other NaNs."""
    width = np.dtype(name).itemsize * 2
    info = np.finfo(name)
    named = [("NaN", bits(name, nan)[0]), ("Infinity", math.inf), ("-Infinity", -math.inf)]
    finite = [(x, x) for x in (0.0, -0.0, -1.5, float(info.max), float(info.smallest_subnormal))]
    nans = [(f"0x{word:0{width}x}", bits(name, word)[0]) for word in others]
    values = [np.array([1.5, -1 / 3, -0.0, 0.0, *(fill for _, fill in named[1:] + finite)], name)]
    return Type(name, np.concatenate([*values, bits(name, nan, *others)]), [*named, *finite], nans=nans)


def complex_(name: str, part: Type) -> Type:
    def pair(a: Fill, b: Fill) -> Fill:
        return [a[0], b[0]], np.array([a[1], b[1]], part.values.dtype).view(name)[0]

    fills = [pair(a, b) for a, b in zip(part.fills, np.roll(np.array(part.fills, object), 2, 0), strict=True)]
    nans = [pair(part.nans[0], part.fills[4]), pair(part.fills[2], part.nans[1]), pair(part.nans[1], part.nans[0])]
    # 1 - 2j after each element, so that no chunk contains only NaNs: zarr-python would omit such a chunk if the fill
    # value is a NaN, whatever the bits of the NaNs
    values = [x for _, scalar in fills + nans for x in (scalar, 1 - 2j)]
    return Type(name, np.array(values, name), fills, nans=nans)


def fixed(name: str, length: int, dtype: str, values: list[Any], fills: list[Fill], *serializers: Any) -> Type:
    scalars = [(text, np.array(fill, dtype)[()]) for text, fill in fills]
    return Type(codec(name, length_bytes=length), np.array(values, dtype), scalars, ("zarr",), serializers)


def times(letter: str, unit: str, factor: int) -> Type:
    name = {"M": "numpy.datetime64", "m": "numpy.timedelta64"}[letter]
    values = np.array([0, 1, -1, 2**63 - 1, -(2**63), 10**12]).view(f"{letter}8[{factor}{unit}]")
    fills = [("NaT", values[4]), (0, values[0]), (-1, values[2]), (2**63 - 1, values[3])]
    # not "zarrs": zarr-python handles times itself even with its pipeline; tensorstore does not support times
    return Type(codec(name, unit=unit, scale_factor=factor), values, fills, ("zarr", "zarrs_core"))


FLOAT32 = floating("float32", 0x7FC0_0000, 0x7FC0_0001, 0xFFC0_0000, 0xFFFF_FFFF)
FLOAT64 = floating("float64", 0x7FF8 << 48, (0x7FF8 << 48) + 0x1234, 0xFFF8 << 48)
NO_ENDIAN = (codec("bytes"),)
LITTLE, BIG = BOTH = Type.serializers
PAIR = np.dtype([("x", "i2"), ("y", "f4"), ("ok", "?")])
PAIRS = np.array([(1, 2.5, True), (-(2**15), -0.0, False), (7, math.inf, True)], PAIR)
DEEP = np.dtype([("a", "u8"), ("in", [("t", "M8[s]"), ("s", "S3"), ("u", "U2")]), ("c", "c8")])
DEEPS = np.array([(2**64 - 1, (5, b"abc", "ü🦓"), 1 - 2j), (0, ("NaT", b"", ""), 0)], DEEP)

TYPES = {
    "bool": Type("bool", np.array([True, False, True]), [(True, True), (False, False)], ALL, NO_ENDIAN),
    **{name: integer(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    # zarr-python reads 0x7e01 as 0x7e00
    "float16": replace(floating("float16", 0x7E00, 0x7E01, 0xFE00), nan_readers=("tensorstore",)),
    "float32": FLOAT32,
    "float64": FLOAT64,
    "complex64": replace(complex_("complex64", FLOAT32), serializers=(LITTLE,)),
    "complex128": replace(complex_("complex128", FLOAT64), serializers=(LITTLE,)),
    # zarr-python does not support r*; tensorstore requires a fill value in base64 (the specification requires an array
    # of integers), writes chunks that it cannot read back, and aborts the process if open_as_void is not passed
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
    # only zarr-python supports the following types
    "string": Type(
        "string",
        np.array(["", "a", "zwölf 🦓", "a" * 300, "\0", "b\0"], np.dtypes.StringDType()),
        [("", ""), ("fill 🦓", "fill 🦓")],
        ("zarr",),
        (codec("vlen-utf8"),),
    ),
    **{
        name: Type(
            name,
            np.array([b"", b"a", b"\0\xff", b"a" * 300], object),
            [("", b""), ("AP8=", b"\0\xff")],
            ("zarr",),
            (codec("vlen-bytes"),),
        )
        for name in ("bytes", "variable_length_bytes")
    },
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
            {"name": "x", "data_type": "int16"},
            {"name": "y", "data_type": "float32"},
            {"name": "ok", "data_type": "bool"},
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
        (LITTLE, codec("bytes")),  # zarr-python always writes structs as little-endian, whatever the document says
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
        (LITTLE, codec("bytes")),
    ),
    # values that survive the packbits codecs below, some of which keep only part of the bits
    "nibbles": Type("uint16", np.arange(0, 32, 2, "u2"), [(0, 0), (6, 6)], (), ()),
}  # fmt: skip


# ---------------------------------------------------------------- codec chains

CRC, GZIP, ZSTD = codec("crc32c"), codec("gzip", level=5), codec("zstd", level=0, checksum=False)
FLIP = codec("transpose", order=[1, 0])
SOME = ("int16", "float64")  # data types that codecs are tested with


def sharding(chunk_shape: list[int], codecs: list[Any], index: list[Any] = [LITTLE, CRC], at: str = "end") -> Any:
    return codec("sharding_indexed", chunk_shape=chunk_shape, codecs=codecs, index_codecs=index, index_location=at)


def blosc(cname: str, shuffle: str, typesize: int, clevel: int = 5, blocksize: int = 0) -> Any:
    return codec("blosc", cname=cname, clevel=clevel, shuffle=shuffle, typesize=typesize, blocksize=blocksize)


def packbits(padding: str, **range_: int) -> Any:
    return codec("packbits", padding_encoding=padding, **range_)


# name: codecs, data types, peers; the shape is (37, 50), chunks are (16, 24)
CHAINS: dict[str, tuple[list[Any], tuple[str, ...], tuple[str, ...]]] = {
    # zarrs swaps real and imaginary parts when it reads part of a big-endian chunk
    "big": ([BIG], ("complex64", "complex128"), ("zarr", "tensorstore")),
    "transpose": ([FLIP, LITTLE], SOME, ALL),
    "transpose-identity": ([codec("transpose", order=[0, 1]), BIG], SOME, ALL),
    "transpose-twice": ([FLIP, FLIP, LITTLE], SOME, ALL),
    **{f"gzip-{n}": ([LITTLE, codec("gzip", level=n)], ("int16",), ALL) for n in (0, 1, 6, 9)},
    **{
        f"zstd-{n}-{check}": ([LITTLE, codec("zstd", level=n, checksum=check)], ("float64",), ALL)
        for n in (-5, 0, 3, 22)
        for check in (False, True)
    },
    "crc32c": ([LITTLE, CRC], SOME, ALL),
    "crc32c-twice": ([BIG, CRC, CRC], SOME, ALL),
    "crc32c-gzip-crc32c": ([LITTLE, CRC, GZIP, CRC], SOME, ALL),
    "transpose-big-zstd-crc32c": ([FLIP, BIG, ZSTD, CRC], SOME, ALL),
    # snappy is left out, because numcodecs, which zarr-python and zarrlite use, is built without it
    **{
        f"blosc-{cname}-{shuffle}": ([LITTLE, blosc(cname, shuffle, 2)], ("int16",), ALL)
        for cname in ("lz4", "lz4hc", "blosclz", "zlib", "zstd")
        for shuffle in ("noshuffle", "shuffle", "bitshuffle")
    },
    "blosc-typesize-8": ([BIG, blosc("lz4", "shuffle", 8)], ("float64",), ALL),
    "blosc-typesize-3": ([LITTLE, blosc("lz4", "shuffle", 3)], ("float64",), ALL),
    "blosc-clevel-0": ([LITTLE, blosc("zstd", "bitshuffle", 8, 0)], ("float64",), ALL),
    "blosc-blocksize": ([LITTLE, blosc("zlib", "shuffle", 8, 9, 64)], ("float64",), ALL),
    "blosc-after-crc32c": ([LITTLE, CRC, blosc("lz4", "shuffle", 2)], ("int16",), ALL),
    **{
        f"vlen-{last['name']}": ([serializer, last], types, ("zarr",))
        for serializer, types in [(codec("vlen-utf8"), ("string",)), (codec("vlen-bytes"), ("bytes",))]
        for last in (GZIP, ZSTD, CRC, blosc("lz4", "noshuffle", 1))
    },
    "shard": ([sharding([8, 8], [LITTLE])], (*SOME, "uint8", "complex128"), ALL),
    "shard-inner-chain": ([sharding([4, 6], [FLIP, BIG, GZIP, CRC])], SOME, ALL),
    "shard-of-one": ([sharding([16, 24], [LITTLE, ZSTD])], SOME, ALL),
    "shard-of-rows": ([sharding([1, 24], [LITTLE])], SOME, ALL),
    "shard-index-start": ([sharding([8, 8], [LITTLE, GZIP], at="start")], SOME, ALL),
    "shard-index-without-crc32c": ([sharding([8, 8], [LITTLE], [LITTLE])], SOME, ALL),
    "shard-index-without-crc32c-start": ([sharding([8, 8], [LITTLE], [LITTLE], "start")], SOME, ALL),
    "shard-index-big": ([sharding([8, 8], [LITTLE], [BIG, CRC])], SOME, ALL),
    "shard-blosc": ([sharding([8, 12], [LITTLE, blosc("lz4", "bitshuffle", 2)])], ("int16",), ALL),
    "shard-nested": ([sharding([16, 12], [sharding([8, 4], [LITTLE, GZIP])])], SOME, ALL),
    "shard-nested-thrice": (
        [sharding([8, 12], [sharding([8, 6], [sharding([4, 6], [LITTLE])], at="start")], at="start")],
        SOME,
        ALL,
    ),
    "shard-transposed": ([FLIP, sharding([8, 8], [LITTLE])], SOME, ALL),
    # zarr-python compares the inner chunk shape with the shard shape before the transpose
    "shard-transposed-oblong": ([FLIP, sharding([3, 16], [LITTLE])], SOME, ("tensorstore", "zarrs_core")),
    # tensorstore: "is not compatible with subsequent bytes -> bytes codecs [...] that apply to the entire shard"
    "shard-crc32c": ([sharding([8, 8], [LITTLE]), CRC], SOME, ("zarr", "zarrs")),
    "shard-gzip": ([sharding([8, 8], [LITTLE], at="start"), GZIP], SOME, ("zarr", "zarrs")),
    "shard-vlen": ([sharding([8, 8], [codec("vlen-utf8"), GZIP])], ("string",), ("zarr",)),
    "shard-vlen-bytes": ([sharding([8, 8], [codec("vlen-bytes")])], ("bytes",), ("zarr",)),
    # zarr-python cannot shard a struct because its fill value is not hashable
    "shard-struct": ([sharding([8, 8], [BIG])], ("struct",), ("tensorstore",)),
    "shard-utf32": ([sharding([8, 8], [BIG])], ("utf32",), ("zarr",)),
    "shard-times": ([sharding([8, 8], [BIG])], ("M8[10s]",), ("zarr", "zarrs_core")),
    # packbits: zarr-python and tensorstore lack it. zarrs omits the byte that counts the padding if elements are whole
    # bytes (the specification has no such exception), does not sign-extend, and ignores first_bit when it reads part
    # of a chunk; test_zarrs_and_zarrlite_pack_the_same_bits covers the rest.
    "packbits": ([packbits("none")], ("bool", "uint8", "int16", "float64", "complex64"), ("zarrs_core",)),
    "packbits-first_byte": ([packbits("first_byte")], ("bool",), ("zarrs_core",)),
    "packbits-last_byte": ([packbits("last_byte"), GZIP], ("bool",), ("zarrs_core",)),
    "packbits-range": ([packbits("none", last_bit=4)], ("nibbles",), ("zarrs_core",)),
    "packbits-range-padded": ([FLIP, packbits("first_byte", last_bit=6)], ("nibbles",), ("zarrs_core",)),
    "packbits-sharded": ([sharding([1, 3], [packbits("last_byte", last_bit=4)])], ("nibbles",), ("zarrs_core",)),
}


# ---------------------------------------------------------------- layouts

KEYS = {
    f"{name}{separator}": codec(name, separator=separator) for name in ("default", "v2") for separator in ("/", ".")
}
KEYS |= {name: codec(name) for name in ("default", "v2")}

Layout = tuple[list[int], list[int], Any]  # shape, chunks, chunk key encoding
SMALL: Layout = ([5, 7], [2, 3], KEYS["default/"])
LARGE: Layout = ([37, 50], [16, 24], KEYS["default/"])
LAYOUTS: dict[str, Layout] = {
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
    """A document, its fill value as a scalar, and the elements of the array."""

    document: dict[str, Any]
    fill: Any
    values: np.ndarray

    def scalar(self, value: Any) -> bytes:
        """Return the bytes of a fill value."""
        if self.values.dtype.kind in "OT":
            return value if isinstance(value, bytes) else value.encode()
        return np.array(value, self.values.dtype).tobytes()

    @property
    def part(self) -> tuple[slice, ...]:
        """A selection that covers some chunks only partly."""
        return tuple(slice(n // 3, n // 3 + (n + 1) // 2) for n in self.values.shape)

    @property
    def updated(self) -> np.ndarray:
        """Return the elements that the array must have after `part` is updated."""
        values = self.values.copy()
        values[self.part] = self.values.reshape(-1)[::-1].reshape(self.values.shape)[self.part]
        return values

    def select(self, values: np.ndarray) -> np.ndarray:
        """Return the elements that `part` selects."""
        return values[(*self.part, ...)]


def case(kind: Type, fill: Fill, codecs: list[Any], layout: Layout) -> Case:
    """Return a case whose first inner chunk and last chunk contain only the fill value, so that they are not stored."""
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


def type_cases(created_by_peer: bool) -> Any:
    for name, kind in TYPES.items():
        rows = [(kind.serializers[0], fill, kind.peers) for fill in kind.fills] if kind.serializers else []
        rows += [(serializer, kind.fills[1], kind.peers) for serializer in kind.serializers[1:]]
        # zarr-python writes every NaN as "NaN", even with the pipeline of zarrs, but reads other NaNs correctly
        nan_peers = ("tensorstore",) if created_by_peer else kind.nan_readers
        rows += [(kind.serializers[0], fill, nan_peers) for fill in kind.nans]
        for serializer, fill, peers in rows:
            order = serializer.get("configuration", {}).get("endian", "none")
            for peer in peers:
                yield pytest.param(case(kind, fill, [serializer], SMALL), peer, id=f"{peer}-{name}-{order}-{fill[0]}")


def storage_cases() -> Any:
    for name, (codecs, types, peers) in CHAINS.items():
        for t in types:
            item = case(TYPES[t], TYPES[t].fills[1], codecs, LARGE)
            yield from (pytest.param(item, peer, id=f"{peer}-{name}-{t}") for peer in peers)
    for name, layout in LAYOUTS.items():
        for t in ("float32", "string"):
            item = case(TYPES[t], TYPES[t].fills[1], [TYPES[t].serializers[0]], layout)
            yield from (pytest.param(item, peer, id=f"{peer}-{name}-{t}") for peer in TYPES[t].peers)


def with_cases(*tables: Any) -> Any:
    return pytest.mark.parametrize(("case", "peer"), [row for table in tables for row in table], indirect=["peer"])


def chunk_keys(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    """Assert that two arrays have the same elements, bit for bit."""
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if actual.dtype.kind in "OT":
        assert actual.tolist() == expected.tolist()
    else:
        assert actual.tobytes() == expected.tobytes()


@with_cases(type_cases(False), storage_cases())
def test_a_peer_reads_an_array_of_zarrlite(case: Case, peer: Any, ours: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    ours.write(path, case.document, case.values, case.fill)
    assert_same(peer.read(path), case.values)
    assert_same(peer.read(path, case.part), case.select(case.values))
    assert case.scalar(peer.fill_value(path)) == case.scalar(case.fill)
    assert peer.attributes(path) == ATTRIBUTES


@with_cases(type_cases(True), storage_cases())
def test_zarrlite_reads_an_array_of_a_peer(case: Case, peer: Any, ours: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    peer.write(path, case.document, case.values)
    assert_same(ours.read(path), case.values)
    assert_same(ours.read(path, case.part), case.select(case.values))
    assert case.scalar(ours.fill_value(path)) == case.scalar(case.fill)
    assert ours.attributes(path) == ATTRIBUTES
    assert (ours.open(path, "r").metadata.dimension_names or ()) == tuple(case.document["dimension_names"])
    # peers store all chunks that zarrlite stores, and may also store chunks that contain only the fill value if it is
    # NaN or NaT, because NaN is not equal to NaN
    ours.write(tmp_path / "b", case.document, case.values, case.fill)
    assert chunk_keys(tmp_path / "b") <= chunk_keys(path)


@with_cases(storage_cases())
def test_a_peer_updates_an_array_of_zarrlite(case: Case, peer: Any, ours: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    ours.write(path, case.document, case.values, case.fill)
    peer.update(path, case.part, case.select(case.updated))
    assert_same(ours.read(path), case.updated)


@with_cases(storage_cases())
def test_zarrlite_updates_an_array_of_a_peer(case: Case, peer: Any, ours: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    peer.write(path, case.document, case.values)
    ours.update(path, case.part, case.select(case.updated))
    assert_same(ours.read(path), case.updated)
    assert_same(peer.read(path), case.updated)


@pytest.mark.parametrize("peer", ["zarrs_core"], indirect=True)
@pytest.mark.parametrize("data_type", ["int16", "uint16"])
def test_zarrs_and_zarrlite_pack_the_same_bits(data_type: str, peer: Any, ours: Any, tmp_path: Path) -> None:
    kind = Type(data_type, np.arange(-16 if data_type == "int16" else 0, 16, 2).astype(data_type), [(2, 2)])
    item = case(kind, (2, 2), [packbits("last_byte", first_bit=1, last_bit=4)], ([9], [9], KEYS["default/"]))
    peer.write(tmp_path / "theirs", item.document, item.values)
    assert_same(ours.read(tmp_path / "theirs"), item.values)
    ours.write(tmp_path / "ours", item.document, item.values, item.fill)
    assert (tmp_path / "ours/c/0").read_bytes() == (tmp_path / "theirs/c/0").read_bytes()
