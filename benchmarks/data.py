"""What is read and written: the image, the layouts of it as Zarr v3 documents, and how large all is.

Rules
- Every contestant gets the same document and the same bytes.
- The image is smooth with noise; zstd at level 1 makes it 2 to 3 times smaller, which the report states.
- Level 1: a slower level would hide what a library costs behind what the compressor costs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import zstandard

Array = np.ndarray[Any, Any]
Shape = tuple[int, int]
LEVEL = 1
PAD = 110  # bytes before a shard behind `pad`, as in a TIFF header
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ZSTD = {"name": "zstd", "configuration": {"level": LEVEL, "checksum": False}}
CRC32C = {"name": "crc32c"}
CHAINS: dict[str, list[Any]] = {"raw": [BYTES], "zstd": [BYTES, ZSTD, CRC32C]}


@dataclass(frozen=True)
class Scale:
    """How large everything is."""

    name: str
    shape: Shape
    chunks: dict[str, Shape]  # by the name of their size
    grids: dict[str, Shape]  # inner chunks in a shard, by the name of their size
    points: int  # single elements that are read
    slow_points: int  # where one costs a whole chunk, or an open
    nodes: int  # arrays in the group that is listed
    patches: int  # inner chunks that are replaced one by one
    rounds: int
    passes: int  # times that all workloads are measured at most: again where turns differ
    settle: float  # seconds of work of the fastest that a workload is repeated for, if its rounds take less
    processes: int  # rounds of what is measured in large processes of its own
    budget: float  # seconds for a contestant in a workload, if it is far behind anyway


CHUNKS = {"8K": (64, 64), "64K": (128, 256), "1M": (512, 1024), "4M": (1024, 2048)}
FULL = Scale("full", (16384, 16384), CHUNKS, {"8K": (32, 32), "64K": (32, 32)}, 2000, 500, 2000, 50, 3, 3, 1.2, 2, 8.0)
# shards of half the length, where there would be less than one for each thread
QUICK = Scale("quick", (4096, 4096), CHUNKS, {"8K": (32, 32), "64K": (16, 16)}, 200, 40, 200, 20, 3, 1, 0.05, 1, 0.5)
TINY = Scale(
    "tiny",
    (128, 256),
    {"8K": (8, 8), "64K": (16, 32), "1M": (64, 128), "4M": (128, 256)},
    {"8K": (4, 4), "64K": (4, 4)},
    *(8, 4, 5, 3, 1, 1, 0.0, 1, 0.0),
)


@dataclass(frozen=True)
class Layout:
    """How an array lies in a store."""

    shape: Shape
    chunk: Shape  # the innermost one
    codec: str  # "raw" or "zstd"
    grid: Shape | None = None  # chunks in a shard
    kind: str = "plain"  # or a shard behind "pad", in "parts", in the "draft" transformer

    @property
    def outer(self) -> Shape:
        """The shape of what is stored under a key."""
        if self.grid is None:
            return self.chunk
        return self.chunk[0] * self.grid[0], self.chunk[1] * self.grid[1]

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.shape[1] * 2

    def as_kind(self, kind: str) -> Layout:
        return replace(self, kind=kind)

    def alone(self) -> Layout:
        """An array with just one shard."""
        return replace(self, shape=self.outer)

    def document(self) -> dict[str, Any]:
        """The zarr.json of the array."""
        chain = CHAINS[self.codec]
        transformers: list[Any] = []
        stored = self.outer
        if self.kind == "draft":
            stored = self.chunk
            transformers = [_extension("sharding", type="indexed", chunks_per_shard=self.grid)]
        elif self.grid is not None:
            chain = [
                _extension(
                    "sharding_indexed",
                    chunk_shape=self.chunk,
                    codecs=chain,
                    index_codecs=[BYTES, CRC32C],
                    index_location="end",
                )
            ]
        if self.kind == "pad":
            chain = [*chain, _extension("pad", location="start", nbytes=PAD)]
        if self.kind == "parts" and self.grid is not None:
            parts = [{"key_suffix": ""}, {"key_suffix": ".index", "size": 16 * self.grid[0] * self.grid[1] + 4}]
            transformers = [_extension("concat-parts", parts=parts)]
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.shape,
            "data_type": "uint16",
            "chunk_grid": _extension("regular", chunk_shape=stored),
            "chunk_key_encoding": _extension("default", separator="/"),
            "fill_value": 0,
            "codecs": chain,
            "attributes": {},
            **({"storage_transformers": transformers} if transformers else {}),
        }

    def json(self) -> bytes:
        """The bytes of that document."""
        return json.dumps(self.document()).encode()


def _extension(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


def layout(scale: Scale, size: str, codec: str) -> Layout:
    """Chunks of a size, each under its own key."""
    return Layout(scale.shape, scale.chunks[size], codec)


def sharded(scale: Scale, size: str, codec: str) -> Layout:
    """Inner chunks of a size, in shards."""
    return Layout(scale.shape, scale.chunks[size], codec, scale.grids[size])


def image(shape: Shape) -> Array:
    """Hills and valleys of a few thousand pixels with a camera's noise, as 16-bit integers."""
    random = np.random.default_rng(20220218)
    out = np.empty(shape, "<u2")
    x = np.arange(shape[1], dtype="f4") / 1500
    step = 256
    for start in range(0, shape[0], step):
        y = np.arange(start, min(start + step, shape[0]), dtype="f4")[:, None] / 1500
        hills = 700 + 150 * np.sin(y + 0.3 * x) * np.cos(x - 0.2 * y)
        hills += 3.2 * random.standard_normal(hills.shape, dtype="f4")
        out[start : start + step] = hills
    return out


def ratio(data: Array, chunk: Shape, most: int = 32) -> float:
    """How much smaller zstd makes chunks, by a sample of them."""
    (h, w), compressor = chunk, zstandard.ZstdCompressor(level=LEVEL)
    places = [(i, j) for i in range(0, data.shape[0], h) for j in range(0, data.shape[1], w)]
    places = places[:: max(1, len(places) // most)]
    stored = sum(len(compressor.compress(data[i : i + h, j : j + w].tobytes())) + 4 for i, j in places)
    return len(places) * h * w * 2 / stored
