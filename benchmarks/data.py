"""The data that is read and written: the image, its layouts as Zarr v3 documents, and the scales (sizes) of runs.

Rules
- Every contestant gets the same document and the same bytes.
- The image is smooth apart from noise. zstd at level 1 compresses it to between a third and a half of its size; the
  report states the ratio.
- The zstd level is 1, because at a slower level the cost of compression would hide the differences between libraries.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import zstandard

Array = np.ndarray[Any, Any]
Shape = tuple[int, int]
LEVEL = 1  # zstd compression level
PAD = 110  # bytes; padding before a shard, about as large as a TIFF header
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ZSTD = {"name": "zstd", "configuration": {"level": LEVEL, "checksum": False}}
CRC32C = {"name": "crc32c"}
CHAINS: dict[str, list[Any]] = {"raw": [BYTES], "zstd": [BYTES, ZSTD, CRC32C]}


@dataclass(frozen=True)
class Scale:
    """The sizes and counts of a run."""

    name: str
    shape: Shape
    chunks: dict[str, Shape]  # name of a chunk size, such as "64K" -> chunk shape
    grids: dict[str, Shape]  # name of a chunk size -> number of inner chunks in a shard along each axis
    points: int  # number of single elements to read
    slow_points: int  # number of single elements to read if each read needs a large chunk or opens the array
    nodes: int  # number of arrays in the group to be listed
    patches: int  # number of inner chunks to replace, one by one
    rounds: int  # minimum number of turns for each contestant
    passes: int  # maximum number of passes over the workloads; later passes repeat those that are not `settled`
    settle: float  # seconds; rounds are added until the fastest contestant has run for this long
    processes: int  # maximum number of rounds for workloads that measure the memory of separate processes
    budget: float  # seconds; after this time, a contestant far slower than the fastest gets no more turns


CHUNKS = {"8K": (64, 64), "64K": (128, 256), "1M": (512, 1024), "4M": (1024, 2048)}
FULL = Scale("full", (16384, 16384), CHUNKS, {"8K": (32, 32), "64K": (32, 32)}, 2000, 500, 2000, 50, 3, 3, 1.2, 2, 8.0)
# shards of 64K chunks contain 16 x 16 chunks at this scale, since 32 x 32 would leave fewer shards than threads
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
    """How an array is stored."""

    shape: Shape
    chunk: Shape  # shape of the innermost chunks
    codec: str  # "raw" or "zstd"
    grid: Shape | None = None  # number of inner chunks in a shard along each axis; None without shards
    # "plain"; shards may also be padded ("pad"), split ("parts") or stored by the draft transformer ("draft")
    kind: str = "plain"

    @property
    def outer(self) -> Shape:
        """The shape of the chunk or shard that is stored under one key."""
        if self.grid is None:
            return self.chunk
        return self.chunk[0] * self.grid[0], self.chunk[1] * self.grid[1]

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.shape[1] * 2

    def as_kind(self, kind: str) -> Layout:
        return replace(self, kind=kind)

    def alone(self) -> Layout:
        """Return the same layout for an array of a single shard."""
        return replace(self, shape=self.outer)

    def document(self) -> dict[str, Any]:
        """Return the zarr.json of the array."""
        chain = CHAINS[self.codec]
        transformers: list[Any] = []
        chunk_shape = self.outer
        if self.kind == "draft":
            chunk_shape = self.chunk
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
            "chunk_grid": _extension("regular", chunk_shape=chunk_shape),
            "chunk_key_encoding": _extension("default", separator="/"),
            "fill_value": 0,
            "codecs": chain,
            "attributes": {},
            **({"storage_transformers": transformers} if transformers else {}),
        }

    def json(self) -> bytes:
        """Return the document, encoded as JSON."""
        return json.dumps(self.document()).encode()


def _extension(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


def layout(scale: Scale, size: str, codec: str) -> Layout:
    """Return a layout with chunks of a named size, such as "64K", each stored under its own key."""
    return Layout(scale.shape, scale.chunks[size], codec)


def sharded(scale: Scale, size: str, codec: str) -> Layout:
    """Return a layout with shards, whose inner chunks have a named size, such as "64K"."""
    return Layout(scale.shape, scale.chunks[size], codec, scale.grids[size])


def image(shape: Shape) -> Array:
    """Generate a 16-bit image: hills and valleys a few thousand pixels wide, with noise like that of a camera."""
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


def ratio(data: Array, chunk: Shape, samples: int = 32) -> float:
    """Return the compression ratio of zstd for chunks of this shape, estimated from about `samples` chunks."""
    (h, w), compressor = chunk, zstandard.ZstdCompressor(level=LEVEL)
    corners = [(i, j) for i in range(0, data.shape[0], h) for j in range(0, data.shape[1], w)]
    corners = corners[:: max(1, len(corners) // samples)]
    stored = sum(len(compressor.compress(data[i : i + h, j : j + w].tobytes())) + 4 for i, j in corners)
    return len(corners) * h * w * 2 / stored
