"""Damaged and hostile data raises zarrlite's own errors; it never leads to wrong data or to any other exception."""

from __future__ import annotations

import contextlib
import gzip
import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

import zarrlite
from zarrlite import DataError, ShardError, ZarrliteError
from zarrlite.codecs import BytesBytesCodec
from zarrlite.extensions import registry

Json = Any
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
CRC = {"name": "crc32c"}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
ZSTD_SUM = {"name": "zstd", "configuration": {"level": 3, "checksum": True}}
PACKBITS = {"name": "packbits", "configuration": {"padding_encoding": "first_byte", "last_bit": 11}}
BLOSC = {
    "name": "blosc",
    "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0},
}
VLEN_UTF8, VLEN_BYTES = {"name": "vlen-utf8"}, {"name": "vlen-bytes"}
ABSENT = 2**64 - 1


def sharding(*chunk_shape: int, codecs: Json = (BYTES,), index_codecs: Json = (BYTES, CRC), at: str = "end") -> Json:
    members = {"chunk_shape": list(chunk_shape), "codecs": list(codecs), "index_codecs": list(index_codecs)}
    return {"name": "sharding_indexed", "configuration": {**members, "index_location": at}}


def document(
    codecs: Json, data_type: Json = "uint16", shape: tuple[int, ...] = (8,), fill: Json = 0
) -> dict[str, Json]:
    """Return the document of an array of one chunk."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(shape)}},
        "chunk_key_encoding": "default",
        "fill_value": fill,
        "codecs": list(codecs),
    }


NUMBERS = [1, 2, 3, 500, 600, 700, 4000, 4095]
TEXTS = ["", "a", "größe", "🦓", "zarr", "", "x" * 20, "end"]
BYTES_ITEMS = [b"", b"\0", b"\xff\xfe", b"abc", b"", b"1", b"22", b"333"]
PACKED = np.array(NUMBERS, "<u2").tobytes()


def strings(*codecs: Json) -> dict[str, Json]:
    return document(codecs, "string", fill="-")


def zstd_frames(*parts: bytes, **options: Any) -> bytes:
    return b"".join(zstandard.ZstdCompressor(**options).compress(part) for part in parts)


@dataclass
class Chain:
    """The document of an array with a single chunk, the elements of the array, and the stored value of the chunk."""

    document: dict[str, Json]
    values: list[Any]
    value: bytes | None = None  # None means the value that zarrlite writes

    def stored(self) -> bytes:
        if self.value is not None:
            return self.value
        store = zarrlite.MemoryStore({"zarr.json": json.dumps(self.document).encode()})
        zarrlite.open_array(store, mode="r+")[...] = self.values
        return bytes(store.get("c/0") or b"")

    def read(self, value: bytes, index: Any = ...) -> list[Any]:
        store = zarrlite.MemoryStore({"zarr.json": json.dumps(self.document).encode(), "c/0": value})
        found = zarrlite.open_array(store, mode="r")[index]
        return list(found.tolist())


PAD = {"name": "pad", "configuration": {"location": "end", "nbytes": 4}}
N5_RAW = [{"name": "transpose", "configuration": {"order": [0]}}, {"name": "bytes", "configuration": {"endian": "big"}}]


def named(name: str, **configuration: Json) -> Json:
    return {"name": name, "configuration": configuration}


def numcodecs(name: str, **configuration: Json) -> Json:
    return named(f"numcodecs.{name}", **configuration)


INTEGERS = [*range(-3, 4), 1000]
LABELS = ["a", "b", "", "a", "b", "b", "", "a"]
FLOATS = [0.5, 1.0, 2.0, -4.0, 8.0, 1.5, 0.0, 1024.0]
MORE_CHAINS = {
    **{
        f"numcodecs.{name}": Chain(document([BYTES, numcodecs(name)]), NUMBERS)
        for name in ("adler32", "blosc", "bz2", "crc32", "crc32c", "fletcher32", "gzip", "jenkins_lookup3", "lz4")
    },
    "numcodecs.zstd": Chain(document([BYTES, numcodecs("zstd")]), NUMBERS),
    "lzma": Chain(document([BYTES, numcodecs("lzma", preset=0)]), NUMBERS),
    "shuffle": Chain(document([BYTES, numcodecs("shuffle", elementsize=2), numcodecs("zlib")]), NUMBERS),
    "n5_lz4": Chain(document([BYTES, named("zarrlite.n5_lz4", block_size=64)]), NUMBERS),
    "conditional": Chain(document([BYTES, named("conditional", codecs=[CRC])]), NUMBERS),
    "delta": Chain(document([numcodecs("delta", dtype="<u2"), BYTES]), NUMBERS),
    "fixedscaleoffset": Chain(document([numcodecs("fixedscaleoffset", offset=1, scale=2), BYTES]), NUMBERS),
    "astype": Chain(document([numcodecs("astype", encode_dtype="<i4"), BYTES]), NUMBERS),
    "quantize": Chain(document([numcodecs("quantize", digits=3), BYTES], "float32"), FLOATS),
    "bitround": Chain(document([numcodecs("bitround", keepbits=9), BYTES], "float32"), FLOATS),
    "bitround, registered": Chain(document([named("bitround", keepbits=12), BYTES]), NUMBERS),
    "cast_value": Chain(document([named("cast_value", data_type="int32"), BYTES]), NUMBERS),
    "scale_offset": Chain(document([named("scale_offset", scale=3), BYTES]), NUMBERS),
    "scale_offset, shard": Chain(document([named("scale_offset", scale=3), sharding(2)]), NUMBERS),
    "reshape": Chain(document([named("reshape", shape=[2, -1]), BYTES]), NUMBERS),
    "packbits of numcodecs": Chain(
        document([numcodecs("packbits"), "bytes"], "bool", fill=False), [True, False, True] + 5 * [True]
    ),
    "categorize": Chain(strings(numcodecs("categorize", labels=["a", "b", "-"]), "bytes"), LABELS),
    "json2": Chain(strings(numcodecs("json2")), TEXTS),
    "vlen-array": Chain(document([numcodecs("vlen-array", dtype="|u1")], "bytes", fill="AA=="), BYTES_ITEMS),
    "pcodec": Chain(document([numcodecs("pcodec")]), NUMBERS),
    "zfpy": Chain(document([numcodecs("zfpy", mode=2, rate=64)], "int32"), [1024 * n for n in INTEGERS]),
    "zfp": Chain(document([named("zfp", mode="reversible")], "int32"), INTEGERS),
}
CHAINS = {
    "bytes": Chain(document([BYTES]), NUMBERS),
    "transpose": Chain(document([{"name": "transpose", "configuration": {"order": [0]}}, BYTES]), NUMBERS),
    "gzip": Chain(document([BYTES, GZIP]), NUMBERS),
    "gzip, two members": Chain(document([BYTES, GZIP]), NUMBERS, gzip.compress(PACKED[:5]) + gzip.compress(PACKED[5:])),
    "zstd": Chain(document([BYTES, ZSTD]), NUMBERS),
    "zstd, checksum": Chain(document([BYTES, ZSTD_SUM]), NUMBERS),
    "zstd, no content size": Chain(document([BYTES, ZSTD]), NUMBERS, zstd_frames(PACKED, write_content_size=False)),
    "zstd, two frames": Chain(document([BYTES, ZSTD]), NUMBERS, zstd_frames(PACKED[:5], PACKED[5:])),
    "zstd, three frames, no content size": Chain(
        document([BYTES, ZSTD]), NUMBERS, zstd_frames(PACKED[:5], b"", PACKED[5:], write_content_size=False)
    ),
    "crc32c": Chain(document([BYTES, CRC]), NUMBERS),
    "crc32c in gzip": Chain(document([BYTES, CRC, GZIP]), NUMBERS),
    "zstd in crc32c": Chain(document([BYTES, ZSTD, CRC]), NUMBERS),
    "blosc": Chain(document([BYTES, BLOSC]), NUMBERS),
    "pad at both ends": Chain(document([BYTES, PAD, {"name": "offset", "configuration": {"offset": 3}}]), NUMBERS),
    "pad in crc32c": Chain(document([BYTES, PAD, CRC]), NUMBERS),
    "shard in pad": Chain(document([sharding(2), PAD]), NUMBERS),
    "n5_default": Chain(document([{"name": "n5_default", "configuration": {"codecs": N5_RAW}}]), NUMBERS),
    "n5_default, compressed": Chain(
        document([{"name": "n5_default", "configuration": {"codecs": [*N5_RAW, ZSTD_SUM]}}]), NUMBERS
    ),
    "vlen-utf8": Chain(strings(VLEN_UTF8), TEXTS),
    "vlen-utf8 in zstd": Chain(strings(VLEN_UTF8, ZSTD), TEXTS),
    "vlen-bytes": Chain(document([VLEN_BYTES], "bytes", fill="AA=="), BYTES_ITEMS),
    "packbits": Chain(document([PACKBITS]), NUMBERS),
    "packbits of bool": Chain(document(["packbits"], "bool", fill=False), [True, False, True] + 5 * [True]),
    "bool": Chain(document(["bytes"], "bool", fill=False), [True, False, True] + 5 * [True]),
    "shard, index at the end": Chain(document([sharding(2)]), NUMBERS),
    "shard, index at the start": Chain(document([sharding(2, at="start")]), NUMBERS),
    "shard, compressed and checksummed": Chain(document([sharding(2, codecs=[BYTES, GZIP, CRC])]), NUMBERS),
    "shard, checksummed, index at the start": Chain(document([sharding(2, codecs=[BYTES, CRC], at="start")]), NUMBERS),
    "shard in zstd": Chain(document([sharding(2), ZSTD]), NUMBERS),
    "shard in crc32c": Chain(document([sharding(4), CRC]), NUMBERS),
    "shard of strings": Chain(strings(sharding(2, codecs=[VLEN_UTF8])), TEXTS),
    "shard in a shard": Chain(document([sharding(4, codecs=[sharding(2)])]), NUMBERS),
    "shard in a shard, both at the start": Chain(
        document([sharding(4, codecs=[sharding(2, codecs=[BYTES, CRC], at="start")], at="start")]), NUMBERS
    ),
    **MORE_CHAINS,
}
every_chain = pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())


@every_chain
def test_undamaged_values_are_read(chain: Chain) -> None:
    assert chain.read(chain.stored()) == chain.values


# truncated and extended values


@every_chain
def test_a_value_truncated_anywhere_is_refused(chain: Chain) -> None:
    value = chain.stored()
    for length in range(len(value)):
        with pytest.raises(DataError) as error:
            chain.read(value[:length])
        assert error.value.key == "c/0", length


@every_chain
@pytest.mark.parametrize("more", [b"\0", b"\xff", bytes(1000), b"zarr" * 250], ids=["0", "255", "zeros", "text"])
def test_a_value_that_is_too_long_is_refused(chain: Chain, more: bytes) -> None:
    """The exceptions are pcodec, and shards with their index at the start: they ignore extra bytes at the end."""
    value = chain.stored() + more
    codec = chain.document["codecs"][-1]
    ignored = isinstance(codec, dict) and codec.get("configuration", {}).get("index_location") == "start"
    if ignored or chain is CHAINS["pcodec"]:
        assert chain.read(value) == chain.values
        return
    with pytest.raises(DataError):
        chain.read(value)


@every_chain
def test_a_value_without_its_first_byte_is_refused(chain: Chain) -> None:
    with pytest.raises(DataError):
        chain.read(chain.stored()[1:])


# flipped bits


def flips(value: bytes) -> Iterator[bytes]:
    for i in range(len(value)):
        for bit in range(8):
            yield value[:i] + bytes([value[i] ^ 1 << bit]) + value[i + 1 :]


def test_every_flipped_bit_under_crc32c_is_a_checksum_error() -> None:
    chain = CHAINS["crc32c"]
    for value in flips(chain.stored()):
        with pytest.raises(zarrlite.ChecksumError, match=r"^chunk c/0, codec crc32c: the stored checksum is "):
            chain.read(value)


CHECKED = [
    "crc32c in gzip",
    "zstd in crc32c",
    "zstd, checksum",
    "gzip",
    "gzip, two members",
    "shard, compressed and checksummed",
    "shard, checksummed, index at the start",
    "shard in crc32c",
    "shard in a shard, both at the start",
]


@pytest.mark.parametrize("name", CHECKED)
def test_a_flipped_bit_under_a_checksum_never_changes_data(name: str) -> None:
    chain = CHAINS[name]
    for value in flips(chain.stored()):
        with contextlib.suppress(ZarrliteError):
            assert chain.read(value) == chain.values


@every_chain
def test_a_flipped_bit_raises_only_errors_of_zarrlite(chain: Chain) -> None:
    for value in flips(chain.stored()):
        with contextlib.suppress(ZarrliteError):
            assert len(chain.read(value)) == 8


# the index of a shard


def shard(*entries: tuple[int, int], data: bytes = PACKED, at: str = "end") -> bytes:
    index = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    index += google_crc32c.value(index).to_bytes(4, "little")
    return data + index if at == "end" else index + data


SHARDS = {at: Chain(document([sharding(2, at=at)]), NUMBERS) for at in ("start", "end")}
BASE = {"start": 68, "end": 0}  # offset of the first inner chunk
BAD_ENTRIES = {
    "an offset beyond the end": (10_000, 4),
    "an offset at the end": (16 + 68, 4),
    "a length beyond the end": (12, 5 + 68),
    "an offset of 2^62": (2**62, 4),
    "an offset of 2^63": (2**63, 4),
    "an offset of 2^64 - 2": (2**64 - 2, 4),
    "a length of 2^63": (0, 2**63),
    "a length of 2^64 - 2": (0, 2**64 - 2),
    "an end beyond 2^64": (2**64 - 2, 2**64 - 2),
    "an absent offset": (ABSENT, 4),
    "an absent length": (0, ABSENT),
    "a length of 0": (0, 0),
    "a length that is too short": (0, 3),
    "a length that is too long": (0, 5),
}


@pytest.mark.parametrize("entry", BAD_ENTRIES.values(), ids=BAD_ENTRIES.keys())
@pytest.mark.parametrize("at", ["start", "end"])
@pytest.mark.parametrize("index", [..., slice(2, 4), 3], ids=["whole", "one inner chunk", "one element"])
def test_a_bad_index_entry_is_refused(entry: tuple[int, int], at: str, index: Any, tmp_path: Path) -> None:
    base = BASE[at]
    offset = entry[0] + base if entry[0] < 2**62 else entry[0]
    good = [(base + 4 * i, 4) for i in range(4)]
    value = shard(good[0], (offset, entry[1]), *good[2:], at=at)
    chain = SHARDS[at]
    with pytest.raises(DataError) as error:
        chain.read(value, index)
    assert error.value.key == "c/0"
    local = zarrlite.LocalStore(str(tmp_path))
    local.set_many([("zarr.json", json.dumps(chain.document).encode()), ("c/0", value)])
    with pytest.raises(DataError):
        zarrlite.open_array(local, mode="r")[index]


def test_a_bad_index_entry_does_not_affect_other_inner_chunks() -> None:
    value = shard((0, 4), (10_000, 4), (8, 4), (12, 4))
    assert SHARDS["end"].read(value, slice(4, 8)) == NUMBERS[4:]


def test_an_entry_within_an_index_at_the_start_is_refused() -> None:
    for offset in (0, 1, 64, 67):
        value = shard((68, 4), (offset, 4), (76, 4), (80, 4), at="start")
        with pytest.raises(ShardError):
            SHARDS["start"].read(value)


def test_an_entry_that_reaches_into_an_index_at_the_end_is_refused() -> None:
    for offset in (13, 16, 40, 80):
        with pytest.raises(ShardError):
            SHARDS["end"].read(shard((0, 4), (offset, 4), (8, 4), (12, 4)))


def test_a_shard_of_absent_entries_reads_as_the_fill_value() -> None:
    absent = (ABSENT, ABSENT)
    assert SHARDS["end"].read(shard(absent, absent, absent, absent, data=b"")) == [0] * 8


@pytest.mark.parametrize("name", ["shard, index at the end", "shard, index at the start", "shard in a shard"])
def test_a_write_into_a_damaged_shard_is_refused_and_changes_nothing(name: str) -> None:
    chain = CHAINS[name]
    value = chain.stored()
    at = 0 if "start" in name else len(value) - 1
    damaged = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
    store = zarrlite.MemoryStore({"zarr.json": json.dumps(chain.document).encode(), "c/0": damaged})
    with pytest.raises(DataError):
        zarrlite.open_array(store, mode="r+")[0] = 9
    assert store.get("c/0") == damaged


# decompression bombs


def rle_frame(size: int, content_size: int | None = None, window_log: int = 17) -> bytes:
    """Return a zstd frame of zeros that takes 4 bytes for each 128 KiB."""
    descriptor = b"\0" if content_size is None else b"\xc0"
    claim = b"" if content_size is None else struct.pack("<Q", content_size)
    count = size // 2**17
    blocks = b"".join(struct.pack("<I", 2**17 << 3 | 1 << 1 | (i == count - 1))[:3] + b"\0" for i in range(count))
    return b"\x28\xb5\x2f\xfd" + descriptor + bytes([window_log - 10 << 3]) + claim + blocks


def claiming_frame(size: int) -> bytes:
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size) + b"\1\0\0"


def zeros_gzip(mebibytes: int) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(compressor.compress(bytes(2**20)) for _ in range(mebibytes)) + compressor.flush()


def gzip_of_gzip() -> bytes:
    """Return 1 GiB of zeros, compressed twice: as gzip members, and these again with gzip."""
    return gzip.compress(zeros_gzip(16) * 64, 9, mtime=0)


def blosc_claim(size: int) -> bytes:
    body = bytes(100)
    return struct.pack("<BBBBIII", 2, 1, 0x21, 2, size, size, 16 + len(body)) + body


def shared_region(count: int, region: bytes) -> bytes:
    return shard(*[(0, len(region))] * count, data=region)


def long_string(size: int) -> bytes:
    """Return a compressed chunk of one string, which consists of `size` zeros."""
    return zstd_frames(struct.pack("<II", 1, size) + bytes(size))


BOMBS: dict[str, Callable[[], tuple[dict[str, Json], bytes]]] = {
    "zstd claims 2^40 bytes": lambda: (document([BYTES, ZSTD]), claiming_frame(2**40)),
    "zstd claims 2^63 bytes": lambda: (document([BYTES, ZSTD]), claiming_frame(2**63)),
    "zstd claims 2^40 bytes, as strings": lambda: (strings(VLEN_UTF8, ZSTD), claiming_frame(2**40)),
    "zstd makes 2 GiB": lambda: (document([BYTES, ZSTD]), rle_frame(2**31 - 2**20)),
    "zstd makes 2 GiB, as strings": lambda: (strings(VLEN_UTF8, ZSTD), rle_frame(2**31 - 2**20)),
    "zstd makes 2 GiB and claims 16 bytes": lambda: (document([BYTES, ZSTD]), rle_frame(2**31 - 2**20, 16)),
    "zstd makes 2 GiB in a window of 128 MiB": lambda: (
        strings(VLEN_UTF8, ZSTD),
        rle_frame(2**31 - 2**20, window_log=27),
    ),
    "zstd makes 2 GiB in a second frame": lambda: (
        document([BYTES, ZSTD]),
        zstd_frames(PACKED) + rle_frame(2**31 - 2**20),
    ),
    "zstd in zstd": lambda: (document([BYTES, ZSTD, ZSTD]), zstd_frames(rle_frame(2**33), level=19)),
    "zstd in zstd, as strings": lambda: (strings(VLEN_UTF8, ZSTD, ZSTD), zstd_frames(rle_frame(2**33), level=19)),
    "zstd in zstd in zstd, as strings": lambda: (
        strings(VLEN_UTF8, ZSTD, ZSTD, ZSTD),
        zstd_frames(zstd_frames(rle_frame(2**38), level=1), level=19),
    ),
    "zstd around a shard of strings": lambda: (
        document([sharding(1, codecs=[VLEN_UTF8]), ZSTD], "string", (64,), "-"),
        rle_frame(2**31 - 2**20),
    ),
    "gzip makes 60 MiB": lambda: (document([BYTES, GZIP]), zeros_gzip(60)),
    "gzip makes 60 MiB, as strings": lambda: (strings(VLEN_UTF8, GZIP), zeros_gzip(60)),
    "gzip of many members": lambda: (document([BYTES, GZIP]), zeros_gzip(4) * 14),
    "gzip of empty members": lambda: (document([BYTES, GZIP]), gzip.compress(b"", mtime=0) * 3000),
    "gzip in gzip": lambda: (document([BYTES, GZIP, GZIP]), gzip_of_gzip()),
    "gzip in gzip, as strings": lambda: (strings(VLEN_UTF8, GZIP, GZIP), gzip_of_gzip()),
    "blosc claims 2 GiB": lambda: (document([BYTES, BLOSC]), blosc_claim(2**31 - 1)),
    "blosc claims 4 GiB, as strings": lambda: (strings(VLEN_UTF8, BLOSC), blosc_claim(2**32 - 1)),
    "vlen claims 2^32 - 1 elements": lambda: (strings(VLEN_UTF8), struct.pack("<II", 2**32 - 1, 0)),
    "vlen claims 2^32 - 1 elements, as the document does": lambda: (
        document([VLEN_UTF8], "string", (2**32 - 1,), "-"),
        struct.pack("<II", 2**32 - 1, 0),
    ),
    "vlen claims a string of 2^32 - 1 bytes": lambda: (
        strings(VLEN_UTF8),
        struct.pack("<II", 8, 2**32 - 1) + bytes(64),
    ),
    "vlen claims bytes of 2^32 - 1 bytes": lambda: (
        document([VLEN_BYTES], "bytes", fill=""),
        struct.pack("<II", 8, 2**32 - 1) + bytes(64),
    ),
    "a shard of many entries at one large region": lambda: (
        document([sharding(1)], "uint16", (1000,)),
        shared_region(1000, bytes(40_000)),
    ),
    "a shard of many entries at one large region, compressed": lambda: (
        document([sharding(1, codecs=[BYTES, ZSTD])], "uint16", (1000,)),
        shared_region(1000, rle_frame(2**30)),
    ),
    "a shard of many entries at one compressed string": lambda: (
        document([sharding(1, codecs=[VLEN_UTF8, ZSTD])], "string", (2000,), "-"),
        shared_region(2000, long_string(2**24 - 1000)),
    ),
    "a shard of 2^40 inner chunks": lambda: (document([sharding(1)], "uint8", (2**40,)), bytes(60_000)),
}

MEASURE = """
import json, os, resource, sys, time
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy, zarrlite, zarrlite.extensions.registry, numcodecs.blosc
zarrlite.extensions.registry.codecs.classes(), zarrlite.extensions.registry.data_types.classes()
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))  # a bomb that goes off harms only itself
length = int(sys.stdin.buffer.readline())
document, value = sys.stdin.buffer.read(length), sys.stdin.buffer.read()
shape = json.loads(document)["shape"]
key = "/".join(["c", *("0" for _ in shape)])
array = zarrlite.open_array(zarrlite.MemoryStore({"zarr.json": document, key: value}), mode="r")

def read():
    started = time.perf_counter()
    try:
        array[... if shape[0] <= 2**20 else slice(0, 1)]
        found = "nothing"
    except Exception as error:
        found = type(error).__name__ if isinstance(error, zarrlite.ZarrliteError) else f"!{type(error).__name__}"
    return found, time.perf_counter() - started

def measured(work):  # in a fork: a process inherits the peak memory of the one that executes it
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.write(into, json.dumps(work()).encode())
        os._exit(0)
    os.close(into)
    usage = os.wait4(child, 0)[2]
    return json.loads(os.read(out, 2**16) or "null"), usage.ru_maxrss // (2**20 if sys.platform == "darwin" else 2**10)

_, before = measured(lambda: None)
(found, seconds), after = measured(read)
print(json.dumps([found, after - before, seconds]))
"""
EXPLODED = 80  # MiB; a process that needs this much has allocated the decompressed data


@pytest.mark.parametrize("name", BOMBS)
def test_decompression_bombs_are_refused_before_memory_is_allocated(name: str) -> None:
    described, value = BOMBS[name]()
    assert len(value) <= 2**16
    content = json.dumps(described).encode()
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        input=b"%d\n" % len(content) + content + value,
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    error, mebibytes, _ = json.loads(done.stdout)
    assert error in ("DataError", "TruncatedError", "ShardError", "ChecksumError")
    assert mebibytes < EXPLODED


# hostile paths

PATHS = ["..", "../x", "a/../../x", "a/..", ".", "./a", "a//b", "a\\b", "..\\x", "a\0b", "\0", "__a", "a/__b", "..."]
PATHS += ["zarr.json", "a/zarr.json", "a/zarr.json/b"]


@pytest.fixture(params=["memory", "local"])
def hierarchy(request: pytest.FixtureRequest, tmp_path: Path) -> zarrlite.Group:
    """Create a group, and next to its directory a node that must not be reachable from it."""
    outside = tmp_path / "x"
    outside.mkdir()
    (outside / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    store = zarrlite.MemoryStore() if request.param == "memory" else zarrlite.LocalStore(str(tmp_path / "root"))
    root = zarrlite.open_group(store, mode="w")
    root.create_group("a/b")
    return root


@pytest.mark.parametrize("path", PATHS, ids=repr)
def test_paths_that_are_not_nodes_are_refused(hierarchy: zarrlite.Group, path: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    for use in (
        lambda: hierarchy[path],
        lambda: hierarchy.create_group(path),
        lambda: hierarchy.create_array(path, shape=1, dtype="u1"),
        lambda: hierarchy.__delitem__(path),
        lambda: hierarchy.__setitem__(path, [1]),
        lambda: zarrlite.open_group(hierarchy.store, mode="r", path=path),
        lambda: zarrlite.open_array(hierarchy.store, mode="w", path=path, shape=1, dtype="u1"),
        lambda: zarrlite.create_array(hierarchy.store, name=path, shape=1, dtype="u1"),
        lambda: zarrlite.create_group(hierarchy.store, path=path),
    ):
        with pytest.raises(ZarrliteError):
            use()
    assert path not in hierarchy
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("path", ["../x", "/x", "a/../b", "a\\b", "a\0b", "__zarrlite.a", "zarr.json"], ids=repr)
def test_consolidated_paths_reach_nothing_outside(path: str) -> None:
    group = {"zarr_format": 3, "node_type": "group"}
    inline = {"kind": "inline", "must_understand": False, "metadata": {path: group}}
    store = zarrlite.MemoryStore({"zarr.json": json.dumps({**group, "consolidated_metadata": inline}).encode()})
    with pytest.raises(zarrlite.MetadataError, match="must be the path of a node below this group"):
        dict(zarrlite.open_group(store, mode="r").items())


# random documents and chunks

JSON_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.sampled_from([0, 1, -1, 2, 3, 7, 64, 65, 255, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 10**30]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(
            ["", "/", ".", "C", "NaN", "0x7fc00000", "AAAA", "little", "none", "start", "μs", "\ud800", "a\0"]
        ),
        st.sampled_from(
            [
                "bytes",
                "gzip",
                "zstd",
                "crc32c",
                "blosc",
                "packbits",
                "transpose",
                "vlen-utf8",
                "sharding_indexed",
                "regular",
            ]
        ),
        st.sampled_from(["int8", "bool", "float16", "complex64", "r8", "r16", "r7", "string", "struct", "bytes", "v2"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "configuration", "a"]), inner),
    max_leaves=5,
)
DOCUMENTS = [chain.document for chain in CHAINS.values()] + [
    {"zarr_format": 3, "node_type": "group", "attributes": {"a": [1]}},
    {
        "zarr_format": 3,
        "node_type": "group",
        "consolidated_metadata": {
            "kind": "inline",
            "must_understand": False,
            "metadata": {"a": CHAINS["gzip"].document},
        },
    },
    document([BYTES], {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, fill="NaT"),
    document([BYTES], {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}, fill="ab"),
    document(
        [BYTES],
        {
            "name": "struct",
            "configuration": {"fields": [{"name": "x", "data_type": "int16"}, {"name": "y", "data_type": "float32"}]},
        },
        fill={"x": 1, "y": "NaN"},
    ),
    {
        **document(
            [{"name": "transpose", "configuration": {"order": [1, 0]}}, BYTES, BLOSC], "complex64", (2, 4), [0, "NaN"]
        ),
        "attributes": {},
        "dimension_names": ["x", None],
        "extra": {"must_understand": False},
    },
]


def places(value: Json, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every value inside a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*here, key)
        yield from places(item, (*here, key))


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Draw a valid document in which up to three members are deleted, replaced or added, and one may be duplicated."""
    content = json.loads(json.dumps(draw(st.sampled_from(DOCUMENTS))))
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(content))
        if not found:
            break
        *path, key = draw(st.sampled_from(found))
        parent = content
        for step in path:
            parent = parent[step]
        action = draw(st.sampled_from(["delete", "replace", "replace", "add"]))
        if action == "delete":
            del parent[key]
        elif action == "replace":
            parent[key] = draw(JSON_VALUES)
        elif isinstance(parent, list):
            parent.insert(key, draw(JSON_VALUES))
        else:
            parent[draw(st.sampled_from(["x", "name", "level", "must_understand", "configuration"]))] = draw(
                JSON_VALUES
            )
    text = json.dumps(content)
    if draw(st.integers(0, 9)) == 0 and '"' in text:
        at = draw(st.sampled_from([i for i, letter in enumerate(text) if letter == "{"]))
        text = text[: at + 1] + '"name": 1, "name": 2' + (", " if text[at + 1] != "}" else "") + text[at + 1 :]
    return text.encode("utf-8", "surrogatepass")


def use(content: bytes, value: bytes) -> None:
    """Validate and open a document, and read and write the first element."""
    for fault in zarrlite.validate(content):
        assert isinstance(fault, zarrlite.MetadataError)
        assert fault.pointer == "" or fault.pointer.startswith("/")
        assert str(fault)
    store = zarrlite.MemoryStore({"zarr.json": content, "c": value, "c/0": value, "c/0/0": value, "0": value})
    try:
        node = zarrlite.open(store, mode="r+")
        if isinstance(node, zarrlite.Group):
            dict(zarrlite.open_group(store, mode="r").items())
            return
        assert zarrlite.validate(json.dumps(node.metadata.to_json()).encode()) == []
        first = tuple(slice(0, 1) for _ in node.shape)
        found = np.asarray(node[first])
        node[first] = found
    except ZarrliteError:
        pass


@pytest.mark.filterwarnings("ignore:.*is skipped")
@settings(max_examples=600)
@given(mutated(), st.sampled_from([b"", bytes(16), PACKED, b"\xff" * 8]))
def test_mutated_documents_raise_only_errors_of_zarrlite(content: bytes, value: bytes) -> None:
    use(content, value)


@settings(max_examples=300)
@given(
    st.binary(max_size=200) | st.text(max_size=100).map(str.encode) | JSON_VALUES.map(lambda v: json.dumps(v).encode())
)
@example(b'{"node_type": "group", "zarr_format": 3, "\\ud800": 1}')
@example(b'{"node_type": "array", "shape": [1], "data_type": "r8"}')
def test_random_documents_raise_only_errors_of_zarrlite(content: bytes) -> None:
    use(content, b"")


HUGE_CHUNKS = {
    "bytes": [BYTES],
    "transpose": [{"name": "transpose", "configuration": {"order": [1, 0]}}, BYTES],
    "gzip": [BYTES, GZIP],
    "packbits": ["packbits"],
    "shard": [sharding(1, 1)],
    "shard of shards": [sharding(2**40, 2**40, codecs=[sharding(1, 1)])],
}
INDICES: dict[str, Callable[[zarrlite.Array], Any]] = {
    "the first element": lambda a: a[0, 0],
    "the last element": lambda a: a[-1, -1],
    "a block": lambda a: a[0:2, 0:2],
    "steps": lambda a: a[0 : 2**62 : 2**61, 0],
    "rows and columns": lambda a: a.oindex[[0, 2**61], [0, 1]],
    "points": lambda a: a.vindex[[0, 2**61], [0, 1]],
}


@pytest.mark.parametrize("codecs", HUGE_CHUNKS.values(), ids=HUGE_CHUNKS.keys())
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
@pytest.mark.parametrize("place", ["memory", "local"])
def test_chunks_of_huge_shape_raise_only_errors_of_zarrlite(
    codecs: Json, index: Callable[[zarrlite.Array], Any], place: str, tmp_path: Path
) -> None:
    store = zarrlite.MemoryStore() if place == "memory" else zarrlite.LocalStore(str(tmp_path))
    content = document(codecs, "uint16", (2**62, 2**62))
    store.set_many([("zarr.json", json.dumps(content).encode()), ("c/0/0", bytes(range(64)))])
    with contextlib.suppress(ZarrliteError):
        index(zarrlite.open_array(store, mode="r"))


@st.composite
def spoiled(draw: st.DrawFn, value: bytes) -> bytes:
    """Draw a value in which some bytes are replaced, inserted or removed."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(value)))
        stop = start + draw(st.integers(0, 8))
        value = value[:start] + draw(st.binary(max_size=8)) + value[stop:]
    return value


@pytest.mark.parametrize("name", CHAINS)
def test_random_chunks_raise_only_errors_of_zarrlite(name: str) -> None:
    chain = CHAINS[name]
    whole = chain.stored()

    @settings(max_examples=60)
    @given(st.binary(max_size=100) | spoiled(whole), st.sampled_from([..., slice(3, 5), 7]))
    def check(value: bytes, index: Any) -> None:
        store = zarrlite.MemoryStore({"zarr.json": json.dumps(chain.document).encode(), "c/0": value})
        array = zarrlite.open_array(store, mode="r+")
        with contextlib.suppress(ZarrliteError):
            array[index]
        with contextlib.suppress(ZarrliteError):
            array[1:3] = chain.values[1:3]

    check()


# writes that fail


@zarrlite.register
@dataclass(frozen=True)
class RefusesSeven(BytesBytesCodec):
    """A codec that returns its input, and fails if the input contains a 7."""

    name = "zarrlite.test.refuses_seven"

    def encode(self, data: Any) -> bytes:
        if 7 in bytes(data):
            raise RuntimeError("seven")
        return bytes(data)

    def decode(self, data: Any, limit: int) -> Any:
        return data


REFUSES = {"name": RefusesSeven.name}


def contents(store: zarrlite.Store) -> dict[str, bytes]:
    return {key: bytes(store.get(key) or b"") for key in store.list()}


def eight(codecs: Json, store: zarrlite.Store | None = None) -> zarrlite.Array:
    """Create an array of eight ones in chunks of two."""
    array = zarrlite.create_array(
        zarrlite.MemoryStore() if store is None else store, shape=8, dtype="u1", chunks=2, codecs=codecs
    )
    array[...] = 1
    return array


def test_a_write_that_fails_in_the_middle_leaves_undamaged_chunks() -> None:
    array = eight(["bytes", REFUSES])
    with pytest.raises(ZarrliteError, match="seven"):
        array[...] = [2, 3, 4, 5, 6, 7, 8, 9]
    assert array[4:6].tolist() == [1, 1]
    for i in range(0, 8, 2):
        assert array[i : i + 2].tolist() in ([1, 1], [2 + i, 3 + i])


def test_a_failed_partial_write_leaves_the_old_chunk() -> None:
    array = eight(["bytes", REFUSES])
    before = contents(array.store)
    with pytest.raises(ZarrliteError, match="seven"):
        array[4] = 7
    assert contents(array.store) == before
    array[4] = 8
    assert array[...].tolist() == [1, 1, 1, 1, 8, 1, 1, 1]


@pytest.mark.parametrize("index", [..., slice(0, 5), 4], ids=["whole", "part", "one"])
def test_a_failed_inner_chunk_leaves_the_old_shard(index: Any) -> None:
    array = zarrlite.create_array(
        zarrlite.MemoryStore(), shape=8, dtype="u1", chunks=8, codecs=[sharding(2, codecs=["bytes", REFUSES])]
    )
    array[...] = 1
    before = contents(array.store)
    with pytest.raises(ZarrliteError, match="seven"):
        array[index] = np.array([2, 3, 4, 5, 7, 7, 8, 9], "u1")[index]
    assert contents(array.store) == before


class Full(zarrlite.MemoryStore):
    """A store that refuses to set one key."""

    refused: str | None = None
    error: type[Exception] = zarrlite.StoreError

    def set(self, key: str, value: Any) -> None:
        if key == self.refused:
            raise self.error("the store is full")
        super().set(key, value)


@pytest.mark.parametrize("error", [zarrlite.StoreError, OSError])
@pytest.mark.parametrize("index", [..., slice(4, 6), 4], ids=["all", "a chunk", "an element"])
def test_a_failing_store_leaves_the_old_chunk(index: Any, error: type[Exception]) -> None:
    store = Full()
    array = eight(["bytes"], store)
    store.refused, store.error = "c/2", error
    with pytest.raises(OSError, match="the store is full"):
        array[index] = 9
    assert array[4:6].tolist() == [1, 1]
    for i in range(0, 8, 2):
        assert array[i : i + 2].tolist() in ([1, 1], [9, 9])


def test_attributes_do_not_change_if_the_document_cannot_be_written() -> None:
    store = Full()
    array = eight(["bytes"], store)
    store.refused = "zarr.json"
    before = contents(store)
    for change in (lambda: array.attrs.update(a=1), lambda: array.resize(4), lambda: array.append([1])):
        with pytest.raises(zarrlite.StoreError):
            change()
    assert contents(store) == before
    assert dict(array.attrs) == {}
    assert array.shape == (8,)


@pytest.mark.parametrize(
    "wrong",
    [
        {"shape": -1},
        {"dtype": "nothing"},
        {"codecs": ["gzip"]},
        {"fill_value": 300},
        {"chunks": 0},
        {"attributes": {"a": {1}}},
    ],
    ids=str,
)
def test_an_array_that_cannot_be_created_replaces_nothing(wrong: dict[str, Any]) -> None:
    array = eight(["bytes"])
    before = contents(array.store)
    with pytest.raises(ZarrliteError):
        zarrlite.create_array(array.store, overwrite=True, **{"shape": 8, "dtype": "u1", **wrong})
    assert contents(array.store) == before


def test_attributes_that_are_not_json_change_nothing() -> None:
    array = eight(["bytes"])
    before = contents(array.store)
    with pytest.raises(zarrlite.ArgumentError):
        array.attrs["a"] = {1, 2}
    assert contents(array.store) == before
    assert "a" not in array.attrs


def test_values_of_the_wrong_kind_change_nothing() -> None:
    array = eight(["bytes"])
    before = contents(array.store)
    for value in ("text", [1, 2, 3], [[1], [2, 3]], object()):
        with pytest.raises(ZarrliteError):
            array[...] = value
    assert contents(array.store) == before


def test_every_codec_of_the_library_is_tested_here() -> None:
    used = json.dumps([chain.document["codecs"] for chain in CHAINS.values()])
    own = {cls.name for cls in registry.codecs.classes() if cls.__module__.startswith("zarrlite.codecs.")}
    assert {name for name in own if f'"{name}"' not in used} == set()
