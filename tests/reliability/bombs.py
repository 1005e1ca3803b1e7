"""Bombs: small documents and chunks that claim or expand to huge sizes are opened, listed, read, checked and shown.

Rules
- Each operation on a bomb runs in a forked child with a limited address space. The child counts the bytecodes that it
  executes and measures the growth of its resident memory. Neither may exceed a constant plus a multiple of the bomb's
  size.
- Every operation ends with a result or with an error of the library.
- No trial depends on the speed of the machine, because bytecodes are counted instead of seconds (only for small bombs,
  because counting is slow). The limit on processor time is only a safeguard: it kills a child process that would run
  forever.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import random
import resource
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import google_crc32c
import zstandard

import zarrlite
from tests.reliability.children import run_child
from tests.reliability.report import Figures
from zarrlite import CachedStore, MemoryStore, ZarrliteError, ZipStore, layout
from zarrlite.extensions.registry import REGISTRIES
from zarrlite.tools.serve.site import Site

SAMPLE = 70  # trials
MIB = 2**20
ADDRESS_SPACE = 4 * 2**30  # bytes of address space that a child may map in addition to those that it starts with
MEMORY = (96 * MIB, 24)  # bytes by which a child may grow: a constant, plus this multiple of the size of the bomb
WORK = (2_000_000, 120)  # bytecodes that an operation may execute: a constant, plus this multiple of the bomb's size
COUNTED = 2**18  # bytes; for larger bombs, only memory is measured, because counting bytecodes is slow
CPU_SECONDS = 200  # seconds of processor time; a child that takes longer is killed
Json = Any
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
GROUP = {"zarr_format": 3, "node_type": "group"}


class TooMuchWork(BaseException):
    """Too many bytecodes were executed for the size of the bomb.

    A BaseException, so that `except Exception` in the library does not catch it.
    """


class Bomb(NamedTuple):
    """Stored values, and the operations that must be harmless."""

    values: Callable[[], dict[str, bytes]]
    operations: tuple[str, ...]


def array(codecs: Json, shape: Json = (8,), chunks: Json = None, data_type: Json = "uint16", **more: Json) -> bytes:
    """Return the document of an array, which has one chunk by default."""
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks or shape)}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": "" if data_type == "string" else 0,
        "codecs": codecs,
    }
    return json.dumps({**document, **more}).encode()


def sharding(*chunk_shape: int, codecs: Json = (BYTES,), index_codecs: Json = (BYTES,)) -> Json:
    members = {"chunk_shape": list(chunk_shape), "codecs": list(codecs), "index_codecs": list(index_codecs)}
    return {"name": "sharding_indexed", "configuration": {**members, "index_location": "end"}}


def rle_frame(size: int) -> bytes:
    """Return a zstd frame of zeros: blocks of 128 KiB that take four bytes each."""
    header = struct.pack("<IBQ", 0xFD2FB528, 0xE0, size)
    blocks = [128 * 1024] * (size // (128 * 1024)) + [size % (128 * 1024)]
    return header + b"".join(
        struct.pack("<I", n << 3 | 1 << 1 | (i == len(blocks) - 1))[:3] + b"\0" for i, n in enumerate(blocks)
    )


def nested_shards(levels: int, per_level: int) -> dict[str, bytes]:
    """Return the values of nested shards in which all entries of an index point to the same bytes."""
    codecs: Json = [BYTES]
    value = b"\1\0"
    length = 1
    for level in range(levels):
        codecs = [sharding(length, codecs=codecs)]
        length *= per_level
        value += struct.pack("<QQ", 0, len(value)) * per_level
    return {"zarr.json": array(codecs, (length,)), "c/0": value}


def draft_shard(count: int) -> dict[str, bytes]:
    """Return an array with the draft's `sharding` transformer and one shard, in which all chunks are absent."""
    transformer = {"name": "sharding", "configuration": {"type": "indexed", "chunks_per_shard": [count]}}
    document = array([BYTES], (count,), (1,), storage_transformers=[transformer])
    return {"zarr.json": document, "c/0": b"\xff" * 16 * count}


def chain_of_groups(depth: int) -> dict[str, bytes]:
    """Return a root group whose consolidated metadata describes nested groups."""
    paths = ["/".join(["g"] * n) for n in range(1, depth + 1)]
    inline = {"kind": "inline", "must_understand": False, "metadata": dict.fromkeys(paths, GROUP)}
    return {"zarr.json": json.dumps({**GROUP, "consolidated_metadata": inline}).encode()}


def many_parts(count: int) -> dict[str, bytes]:
    parts = [{"key_suffix": f".{i}", "size": 1} for i in range(count)]
    transformer = {"name": "concat-parts", "configuration": {"parts": parts}}
    return {"zarr.json": array([BYTES], storage_transformers=[transformer])}


def unknown_codecs(count: int) -> dict[str, bytes]:
    codecs = [{"name": f"example.unknown{i}"} for i in range(count)]
    return {"zarr.json": array([BYTES, *codecs])}


def deep(levels: int) -> bytes:
    return b'{"zarr_format": 3, "node_type": "group", "attributes": {"a": ' + b"[" * levels + b"]" * levels + b"}}"


def real_groups(depth: int) -> dict[str, bytes]:
    document = json.dumps(GROUP).encode()
    return {"/".join(["g"] * n + ["zarr.json"]): document for n in range(depth + 1)}


def wide_group(count: int) -> dict[str, bytes]:
    document = json.dumps(GROUP).encode()
    return {"zarr.json": document, **{f"g{i}/zarr.json": document for i in range(count)}}


def vlen_claim(count: int, size: int) -> bytes:
    return struct.pack("<II", count, size) + bytes(64)


def one_place(count: int) -> bytes:
    """Return a shard whose index entries all point to the same bytes."""
    return b"\1\0" + struct.pack("<QQ", 0, 2) * count


def crc(value: bytes) -> bytes:
    return value + google_crc32c.value(value).to_bytes(4, "little")


def v2_array(compressor: Json, shape: Json = (8,), chunks: Json = None, filters: Json = None, **more: Json) -> bytes:
    """Return the document of a Zarr v2 array, which has one chunk by default."""
    document = {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(chunks or shape),
        "dtype": "<u2",
        "compressor": compressor,
        "fill_value": 0,
        "order": "C",
        "filters": filters,
    }
    return json.dumps({**document, **more}).encode()


def numcodecs(name: str, value: bytes, data_type: str = "uint16", **configuration: Json) -> dict[str, bytes]:
    """Return an array with a codec from numcodecs, and its chunk."""
    codec = {"name": f"numcodecs.{name}", "configuration": configuration}
    return {"zarr.json": array([BYTES, codec], data_type=data_type), "c/0": value}


def v2_groups(count: int) -> dict[str, bytes]:
    """Return nested Zarr v2 groups with consolidated metadata."""
    documents = {"/".join(["g"] * n + [".zgroup"]): {"zarr_format": 2} for n in range(count)}
    consolidated = {"zarr_consolidated_format": 1, "metadata": documents}
    return {".zgroup": b'{"zarr_format": 2}', ".zmetadata": json.dumps(consolidated).encode()}


def rectilinear(edges: Json, shape: Json) -> bytes:
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": edges}}
    return array([BYTES], shape, chunk_grid=grid)


def template(text: str, shape: Json = (8,)) -> bytes:
    encoding = {"name": "template", "configuration": {"template": text, "separator": "/"}}
    return array([BYTES], shape, chunk_key_encoding=encoding)


def zipped(entries: dict[str, bytes], method: int) -> bytes:
    """Return a zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for key, value in entries.items():
            archive.writestr(key, value)
    return file.getvalue()


def dataset(arrays: int, dimensions: int) -> dict[str, bytes]:
    """Return a dataset for xarray: a group of arrays whose attributes name more dimensions than the arrays have."""
    names = {"_ARRAY_DIMENSIONS": [f"d{i}" for i in range(dimensions)], "coordinates": " ".join("abc" * dimensions)}
    documents = {f"a{i}/zarr.json": array([BYTES], attributes=names) for i in range(arrays)}
    return {"zarr.json": json.dumps(GROUP).encode(), **documents}


OPEN = ("open", "validate", "show")
V2 = ("open", "show", "read an element", "read", "write", "fsck")
VALUE = ("read an element", "read", "fsck", "explain")
READ = (*OPEN, "read an element", "fsck", "explain")
ALL = (*READ, "read")
TREE = ("open group", "members", "tree", "keys", "show", "validate", "fsck")
BIG = 3 * 2**29  # bytes; more than the default chunk limit
ZIP = ("open zip", "list zip", "read zip")
EMPTY_FRAME = zstandard.ZstdCompressor().compress(b"")
BOMBS: dict[str, Bomb] = {
    "zstd makes 2 GiB": Bomb(lambda: {"zarr.json": array([BYTES, ZSTD]), "c/0": rle_frame(2**31)}, ALL),
    "zstd makes 2 GiB of text": Bomb(
        lambda: {"zarr.json": array(["vlen-utf8", ZSTD], data_type="string"), "c/0": rle_frame(2**31)}, ALL
    ),
    "zstd claims 2^40 bytes": Bomb(
        lambda: {"zarr.json": array([BYTES, ZSTD]), "c/0": rle_frame(0)[:5] + struct.pack("<Q", 2**40) + bytes(64)}, ALL
    ),
    "zstd in zstd": Bomb(
        lambda: {
            "zarr.json": array([BYTES, ZSTD, ZSTD]),
            "c/0": zstandard.ZstdCompressor(19).compress(rle_frame(2**33)),
        },
        ALL,
    ),
    "gzip makes 60 MiB": Bomb(
        lambda: {"zarr.json": array([BYTES, GZIP]), "c/0": gzip.compress(bytes(60 * MIB), mtime=0)}, ALL
    ),
    "a chunk of 1.5 GiB": Bomb(lambda: {"zarr.json": array([BYTES, ZSTD], (BIG // 2,)), "c/0": rle_frame(BIG)}, READ),
    "an inner chunk of 1.5 GiB": Bomb(
        lambda: {
            "zarr.json": array([sharding(BIG // 2, codecs=[BYTES, ZSTD])], (BIG // 2,)),
            "c/0": rle_frame(BIG) + struct.pack("<QQ", 0, len(rle_frame(BIG))),
        },
        READ,
    ),
    "a small array with a giant chunk": Bomb(
        lambda: {"zarr.json": array([BYTES, ZSTD], (4, 6), (2, BIG // 2), "uint8")}, (*ALL, "write")
    ),
    "a giant chunk without a compressor": Bomb(
        lambda: {"zarr.json": array([BYTES], (4, 6), (2, BIG // 2), "uint8")}, (*ALL, "write")
    ),
    "strings in a giant chunk": Bomb(
        lambda: {"zarr.json": array(["vlen-utf8"], (4,), (BIG // 16,), "string")}, (*ALL, "write")
    ),
    "vlen claims 2^32 - 1 elements": Bomb(
        lambda: {"zarr.json": array(["vlen-utf8"], data_type="string"), "c/0": vlen_claim(2**32 - 1, 0)}, ALL
    ),
    "vlen claims a text of 4 GiB": Bomb(
        lambda: {"zarr.json": array(["vlen-utf8"], data_type="string"), "c/0": vlen_claim(8, 2**32 - 1)}, ALL
    ),
    "empty zstd frames": Bomb(
        lambda: {"zarr.json": array([BYTES, ZSTD]), "c/0": EMPTY_FRAME * 10_000}, ("read", "read an element", "fsck")
    ),
    "empty gzip members": Bomb(
        lambda: {"zarr.json": array([BYTES, GZIP]), "c/0": gzip.compress(b"", mtime=0) * 5000},
        ("read", "read an element", "fsck"),
    ),
    "shards in shards at one place": Bomb(lambda: nested_shards(4, 64), READ),
    "a shard of 2^40 inner chunks": Bomb(
        lambda: {"zarr.json": array([sharding(1)], (2**40,)), "c/0": bytes(60_000)}, READ
    ),
    "a draft shard of 2^13 chunks": Bomb(lambda: draft_shard(2**13), ("open", "read an element", "fsck")),
    "500 unknown codecs": Bomb(lambda: unknown_codecs(500), OPEN),
    "4,000 parts": Bomb(lambda: many_parts(4000), (*OPEN, "fsck")),
    "a chain of 300 consolidated groups": Bomb(lambda: chain_of_groups(300), TREE),
    "200 groups in each other": Bomb(lambda: real_groups(200), TREE),
    "1,100 consolidated groups in each other": Bomb(lambda: chain_of_groups(1100), ("open group", "tree")),
    "1,100 groups in each other": Bomb(lambda: real_groups(1100), TREE),
    "500 groups": Bomb(lambda: wide_group(500), ("open group", "keys", "members", "tree")),
    "32 MiB of attributes": Bomb(
        lambda: {"zarr.json": json.dumps({**GROUP, "attributes": {"a": ["x" * 1000] * 32_000}}).encode()},
        ("open group", "show", "tree"),
    ),
    "attributes of 100,000 levels": Bomb(lambda: {"zarr.json": deep(100_000)}, ("open group", "validate", "fsck")),
    "a number of 100,000 digits": Bomb(
        lambda: {"zarr.json": array([BYTES]).replace(b"[8]", b"[" + b"9" * 100_000 + b"]", 1)}, (*OPEN, "fsck")
    ),
    "a shape of 32 dimensions of 2^62": Bomb(
        lambda: {"zarr.json": array([BYTES], [2**62] * 32, [1] * 32)}, (*OPEN, "read an element", "fsck", "write")
    ),
    "chunks of 32 dimensions of 2^62": Bomb(
        lambda: {"zarr.json": array([BYTES], [2**62] * 32)}, (*OPEN, "read an element", "fsck", "write")
    ),
    "a document of 65 MiB": Bomb(lambda: {"zarr.json": b" " * (65 * MIB)}, ("open", "open group", "validate", "fsck")),
    "padding of 2^60 bytes": Bomb(
        lambda: {
            "zarr.json": array([BYTES, {"name": "pad", "configuration": {"location": "start", "nbytes": 2**60}}]),
            "c/0": bytes(16),
        },
        (*ALL, "write"),
    ),
    "an index entry of 2^60 bytes": Bomb(
        lambda: {"zarr.json": array([sharding(8)]), "c/0": struct.pack("<QQ", 0, 2**60)}, ALL
    ),
    "v2: zlib makes 128 MiB": Bomb(
        lambda: {".zarray": v2_array({"id": "zlib", "level": 1}), "0": zlib.compress(bytes(128 * MIB), 1)}, V2
    ),
    "v2: a chunk of 1.5 GiB": Bomb(
        lambda: {".zarray": v2_array({"id": "zstd", "level": 1}, (BIG // 2,)), "0": rle_frame(BIG)}, V2
    ),
    "v2: a small array with a giant chunk": Bomb(
        lambda: {".zarray": v2_array({"id": "zstd", "level": 1}, (4, 6), (2, BIG // 2))}, V2
    ),
    "v2: 1,000 unknown filters": Bomb(
        lambda: {".zarray": v2_array(None, filters=[{"id": f"unknown{i}"} for i in range(1000)])}, ("open", "fsck")
    ),
    "v2: a chain of 100 consolidated groups": Bomb(lambda: v2_groups(100), ("open group", "members", "tree", "keys")),
    "v2: attributes of 100,000 levels": Bomb(
        lambda: {".zgroup": b'{"zarr_format": 2}', ".zattrs": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"},
        ("open group", "show", "fsck"),
    ),
    "numcodecs: zlib makes 128 MiB": Bomb(
        lambda: numcodecs("zlib", zlib.compress(bytes(128 * MIB), 1), level=1), VALUE
    ),
    "numcodecs: bz2 makes 1 GiB": Bomb(lambda: numcodecs("bz2", bz2.compress(bytes(4 * MIB)) * 256, level=9), VALUE),
    "numcodecs: lzma makes 1 GiB": Bomb(
        lambda: numcodecs("lzma", lzma.compress(bytes(4 * MIB), preset=0) * 256, preset=0, format=1), VALUE
    ),
    "numcodecs: lz4 claims 2 GiB": Bomb(
        lambda: numcodecs("lz4", struct.pack("<I", 2**31 - 1) + b"\x1f\0\1\0" + b"\xff" * 64, acceleration=1), VALUE
    ),
    "numcodecs: blosc claims 2 GiB": Bomb(
        lambda: numcodecs(
            "blosc", struct.pack("<BBBBIII", 2, 1, 1, 2, 2**31 - 17, 2**30, 64) + bytes(64), cname="lz4", clevel=5
        ),
        VALUE,
    ),
    "numcodecs: json2 in json2": Bomb(
        lambda: {"zarr.json": array([{"name": "numcodecs.json2"}], data_type="string"), "c/0": b"[" * 200_000}, VALUE
    ),
    "a rectilinear grid of half a million edges": Bomb(
        lambda: {"zarr.json": rectilinear([[1, 2] * 250_000], (750_000,))}, ("open", "write")
    ),
    "a rectilinear grid of 5,000 edges": Bomb(
        lambda: {"zarr.json": rectilinear([[1, 2] * 2500], (7500,))},
        ("open", "validate", "show", "read an element", "write"),
    ),
    "a rectilinear grid with runs of 2^62": Bomb(
        lambda: {"zarr.json": rectilinear([[[1, 2**62]], [[2**31, 2**31]]], (2**62, 2**62))}, (*READ, "write")
    ),
    "a template of 60,000 expressions": Bomb(lambda: {"zarr.json": template("{0}." * 60_000)}, (*OPEN, "fsck")),
    "a template with a width of 2^60": Bomb(
        lambda: {"zarr.json": template("{0:0" + str(2**60) + "}")}, (*OPEN, "read an element", "fsck")
    ),
    "a template with coordinates of 1,000 characters each": Bomb(
        lambda: {"zarr.json": template("{*}" + "x" * 1000, [2**62] * 32)}, (*OPEN, "read an element", "fsck")
    ),
    "zip: a chunk of 128 MiB": Bomb(
        lambda: {"a.zip": zipped({"zarr.json": array([BYTES]), "c/0": bytes(128 * MIB)}, zipfile.ZIP_DEFLATED)}, ZIP
    ),
    "zip: a document of 128 MiB": Bomb(
        lambda: {"a.zip": zipped({"zarr.json": b" " * 128 * MIB}, zipfile.ZIP_DEFLATED)}, ZIP
    ),
    "zip: 2,000 entries": Bomb(
        lambda: {"a.zip": zipped({f"g{i}/zarr.json": b"{}" for i in range(2000)}, zipfile.ZIP_STORED)}, ZIP
    ),
    "cached: a chunk of 1.5 GiB": Bomb(
        lambda: {"zarr.json": array([BYTES, ZSTD], (BIG // 2,)), "c/0": rle_frame(BIG)}, ("cached",)
    ),
    "cached: many small ranges": Bomb(
        lambda: {"zarr.json": array([sharding(1)], (2**16,)), "c/0": one_place(2**16)}, ("cached elements",)
    ),
    "xarray: 20 arrays with 1,000 dimensions": Bomb(lambda: dataset(20, 1000), ("xarray",)),
    "serve: 1,000 groups": Bomb(lambda: wide_group(1000), ("serve",)),
    "serve: 32 MiB of attributes": Bomb(
        lambda: {"zarr.json": json.dumps({**GROUP, "attributes": {"a": ["x" * 1000] * 32_000}}).encode()}, ("serve",)
    ),
    "serve: a chunk of 1.5 GiB": Bomb(
        lambda: {"zarr.json": array([BYTES, ZSTD], (2, BIG // 4)), "c/0/0": rle_frame(BIG)}, ("serve", "preview")
    ),
    "serve: a plain view of 2^40 inner chunks": Bomb(
        lambda: {"zarr.json": array([sharding(1)], (2**40,)), "c/0": bytes(60_000)}, ("serve", "serve plainly")
    ),
}


# operations


def _open(store: MemoryStore) -> Any:
    return zarrlite.open(store, mode="r")


def _write(store: MemoryStore) -> None:
    node = zarrlite.open_array(store, mode="r+")
    node[(0,) * node.ndim] = node.fill_value if node.dtype.kind == "T" else 1


def _show(store: MemoryStore) -> None:
    node = _open(store)
    for text in (repr(node), str(node.info), node._repr_html_()):
        assert text


def _explain(store: MemoryStore) -> None:
    node = zarrlite.open_array(store, mode="r")
    for key in store.list():
        if key != "zarr.json":
            layout.explain(node, key)


def _fsck(store: MemoryStore) -> None:
    for _ in layout.check(store):
        pass


def _zip(store: MemoryStore) -> ZipStore:
    return ZipStore((store, "a.zip"))


def _list_zip(store: MemoryStore) -> None:
    inside = _zip(store)
    assert all(inside.size(key) is not None for key in inside.list())


def _cached_elements(store: MemoryStore) -> None:
    node = zarrlite.open_array(CachedStore(store, max_bytes=2**16), mode="r")
    for i in range(0, node.shape[0], 64):
        assert node[i] == 1


def _xarray(store: MemoryStore) -> None:
    import xarray as xr

    with contextlib.suppress(ValueError):  # xarray itself may refuse the dataset
        xr.open_dataset(zarrlite.open_group(store, mode="r"), engine="zarrlite")


def _request(store: MemoryStore, target: str, plain_view: bool = False) -> None:
    site = Site(_open(store), plain_view=plain_view)
    for method in ("GET", "HEAD"):
        for headers in ({"Accept": "text/html"}, {}):
            assert site.respond(method, target, headers).status < 600


OPERATIONS: dict[str, Callable[[MemoryStore], object]] = {
    "open": _open,
    "open group": lambda store: zarrlite.open_group(store, mode="r"),
    "validate": lambda store: zarrlite.validate(store.get("zarr.json") or b""),
    "show": _show,
    "read": lambda store: zarrlite.open_array(store, mode="r")[...],
    "read an element": lambda store: _first(zarrlite.open_array(store, mode="r")),
    "write": _write,
    "fsck": _fsck,
    "explain": _explain,
    "keys": lambda store: list(zarrlite.open_group(store, mode="r").keys()),
    "members": lambda store: list(zarrlite.open_group(store, mode="r").members(None)),
    "open zip": lambda store: _open(_zip(store)),
    "list zip": _list_zip,
    "read zip": lambda store: _first(zarrlite.open_array(_zip(store), mode="r")),
    "cached": lambda store: _first(zarrlite.open_array(CachedStore(store), mode="r")),
    "cached elements": _cached_elements,
    "xarray": _xarray,
    "serve": lambda store: [_request(store, target) for target in ("/", "/zarr.json", "/c/0")],
    "serve plainly": lambda store: [_request(store, target, True) for target in ("/", "/zarr.json", "/c/0")],
    "preview": lambda store: _request(store, "/?preview="),
    "tree": lambda store: str(zarrlite.open_group(store, mode="r").tree()),
}


def _first(node: Any) -> Any:
    return node[(0,) * node.ndim]


# trials


def run(trials: int | None, seed: int) -> Figures:
    """Run a sample of the bombs and operations, or all of them."""
    figures = Figures("bombs", seed)
    for name in BOMBS:
        run_bomb(name, None if trials is None else max(1, trials // len(BOMBS)), seed, figures)
    return figures


def run_bomb(name: str, trials: int | None, seed: int, figures: Figures | None = None) -> Figures:
    """Run all operations on one bomb, or a sample of them."""
    figures = figures or Figures("bombs", seed)
    operations: Sequence[str] = BOMBS[name].operations
    if trials is not None:
        operations = random.Random(f"{seed} {name}").sample(operations, min(trials, len(operations)))
    values = BOMBS[name].values()
    for operation in operations:
        _try(figures, name, operation, values)
    return figures


def replay(spec: str) -> Figures:
    """Run one trial again."""
    figures = Figures("bombs", 0)
    name, operation = spec.split("|")
    _try(figures, name, operation, BOMBS[name].values())
    return figures


def _try(figures: Figures, name: str, operation: str, values: dict[str, bytes]) -> None:
    size = sum(len(key) + len(value) for key, value in values.items())
    store = MemoryStore(values)
    limits = MEMORY[0] + MEMORY[1] * size, WORK[0] + WORK[1] * size if size <= COUNTED else None
    outcome, memory, work = in_child(lambda: OPERATIONS[operation](store), limits[1])
    described = f"{outcome}; {memory // MIB} MiB, {work} bytecodes for {size} bytes"
    if outcome in ("done", "refused") and memory <= limits[0]:
        figures.passed(name, outcome)
    else:
        reason = outcome if memory <= limits[0] else "memory"
        figures.failed(name, f"{name}: {reason}", f"{name}|{operation}", described)


def in_child(action: Callable[[], object], most_work: int | None) -> tuple[str, int, int]:
    """Run an action in a limited forked child. Return its outcome, memory growth in bytes, and number of bytecodes."""
    for registry in REGISTRIES.values():
        registry.classes()  # imported before the fork, so that importing the library is not counted
    status, answer = run_child(lambda: json.dumps(_measure(action, most_work)).encode())
    outcome, memory, work = json.loads(answer) if status == 0 else (f"died: {status}", 0, 0)
    return outcome, memory, work


def _measure(action: Callable[[], object], most_work: int | None) -> tuple[str, int, int]:
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ADDRESS_SPACE,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _peak()
    work = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal work
        frame.f_trace = count  # Python 3.14 does not enable opcode events for a frame without a trace function
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            work += 1
            if work > (most_work or 0):
                raise TooMuchWork
        return count

    outcome = "done"
    if most_work is not None:
        sys.settrace(count)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            action()
    except ZarrliteError:
        outcome = "refused"
    except TooMuchWork:
        outcome = "work"
    except MemoryError:
        outcome = "out of memory"
    except Exception as error:
        outcome = f"foreign {type(error).__name__}"
    finally:
        sys.settrace(None)
    return outcome, max(0, _peak() - before), work


def _peak() -> int:
    """Return the largest resident size of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
