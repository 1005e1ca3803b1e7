"""The `sharding_indexed` codec: a chunk that is divided into inner chunks.

Rules (codecs/sharding-indexed, Configuration parameters)
- The inner chunk shape divides the shard shape evenly.
- The encoded index has a fixed size, so index codecs must not compress.
- A read accesses only the index and the selected inner chunks. A partial write decodes only the inner chunks that it
  covers partially; depending on the runtime options, the others are copied without decoding, or left in place.

The shard format, and the code that reads and writes shards, are in shards/.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from zarrlite.buffers import scratch
from zarrlite.buffers.pieces import Value, join
from zarrlite.buffers.ranges import Buffer
from zarrlite.buffers.source import Source
from zarrlite.errors import DataError, MetadataError
from zarrlite.extensions.config import Config, Faults, Json
from zarrlite.extensions.extension import Ignored, runtime
from zarrlite.extensions.registry import codecs as registry
from zarrlite.extensions.registry import data_types, register
from zarrlite.pipeline.chain import fit_chain, parse_chain
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, ChunkOptions, Patches, Serializer, byte_order_of
from zarrlite.pipeline.elements import NDArray
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.casting import MAX_NDIM
from zarrlite.selections.selection import Selection, Shape, everything
from zarrlite.shards.anatomy import Indexed
from zarrlite.shards.format import ABSENT, ShardFormat, boxes, coalesce, cut
from zarrlite.shards.reading import ShardReader, named
from zarrlite.shards.writing import MAX_HEADER, ShardWriter, Writing
from zarrlite.stores.base import Limits

_LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
# coordinates of an inner chunk, the selection within it, and the matching selection of the values to write
Job = tuple[Shape, Selection, Selection]


@register
@dataclass(frozen=True)
class ShardingIndexed(ArrayBytesCodec):
    """Inner chunks and an index of their offsets and lengths."""

    name = "sharding_indexed"
    chunk_shape: tuple[int, ...]
    codecs: tuple[Any, ...] = (_LITTLE,)
    index_codecs: tuple[Any, ...] = (_LITTLE, "crc32c")
    index_location: str = "end"
    strategy: str = runtime("rewrite")
    order: str = runtime("row-major")
    header: int | None = runtime(None)
    inner_chunks_are_chunks: ClassVar[bool] = False  # whether an absent inner chunk counts as a missing chunk

    def __post_init__(self) -> None:
        self.writing.check(self.index_location)
        object.__setattr__(self, "chunk_shape", tuple(self.chunk_shape))
        for name in ("codecs", "index_codecs"):
            chain = tuple(c if isinstance(c, Ignored) else registry.coerce(c) for c in getattr(self, name))
            object.__setattr__(self, name, chain)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        faults = Faults()
        chains: dict[str, Any] = {}
        with faults.collecting():
            chunk_shape = config.integers("chunk_shape", 1)
        for name in ("codecs", "index_codecs"):
            with faults.collecting():
                chains[name] = parse_chain(config.list(name), config.at(name), config.context)
        with faults.collecting():
            location = config.string("index_location", ("start", "end"), default="end")
        faults.raise_any()
        return cls(chunk_shape, chains["codecs"], chains["index_codecs"], location)

    def to_config(self) -> dict[str, Json]:
        return {
            "chunk_shape": list(self.chunk_shape),
            "codecs": [codec.to_json() for codec in self.codecs],
            "index_codecs": [codec.to_json() for codec in self.index_codecs],
            "index_location": str(self.index_location),
        }

    @property
    def writing(self) -> Writing:
        """The runtime options as a `Writing` tuple."""
        return Writing(self.strategy, self.order, self.header)

    @property
    def inner_chunk_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.chunk_shape

    @property
    def byte_order(self) -> str:  # type: ignore[override]
        return byte_order_of(self.codecs)

    def fitted(self, spec: ArraySpec) -> Self:
        codecs = fit_chain(self.codecs, spec.reshaped(self.chunk_shape))
        index_codecs = fit_chain(self.index_codecs, _index_spec(()))
        if (codecs, index_codecs) == (self.codecs, self.index_codecs):
            return self
        return replace(self, codecs=codecs, index_codecs=index_codecs)

    def with_leading_bytes(self, nbytes: int) -> Self:
        # an index at the start must begin at the first byte, so no bytes can be left unused before it
        if self.header is not None or self.index_location == "start" or nbytes > MAX_HEADER:
            return self
        return replace(self, header=nbytes)

    def bind(self, spec: ArraySpec) -> Serializer:
        spec.require_fill()
        return ShardSerializer(self, spec)

    def encode(self, array: NDArray, spec: ArraySpec) -> Buffer:
        return join(self.bind(spec).encode(array))

    def decode(self, data: Buffer, spec: ArraySpec) -> NDArray:
        return self.bind(spec).take(data, everything(spec.shape))


def _index_spec(grid: Shape) -> ArraySpec:
    """Return the spec of the index of a shard: offset and length of each inner chunk."""
    return ArraySpec((*grid, 2), data_types.coerce("uint64"), ABSENT, ChunkOptions(write_empty=True))


class ShardSerializer(ShardReader):
    """The codec bound to a shard shape, with the shard format and the codec chain of the inner chunks."""

    codec: ShardingIndexed

    def __init__(self, codec: ShardingIndexed, spec: ArraySpec) -> None:
        self.codec = codec
        self.grid = self._grid(spec.shape)
        inner = self._pipeline("codecs", spec.reshaped(codec.chunk_shape))
        index = self._pipeline("index_codecs", _index_spec(self.grid))
        if index.encoded_size is None:
            # codecs/sharding-indexed, index_codecs: "compression codecs, MUST NOT be used for index codecs"
            message = "must produce an index of fixed size, without compression"
            raise MetadataError(message, pointer="/configuration/index_codecs", kind="conflict")
        required = codec.inner_chunks_are_chunks and spec.options.require_chunks
        form = ShardFormat(self.grid, index, codec.index_location, inner.limit)
        super().__init__(codec, spec, form, inner, absent_is_missing=required)
        self.read_unit = max(self.inner.read_unit, self.format.index_size)
        self.write_unit = max(self.inner.write_unit, self.format.index_size)
        self.writer = ShardWriter(self.format, codec.writing)
        self.needs_old = self.inner.needs_old or self.writer.needs_old

    def _grid(self, shape: Shape) -> Shape:
        inner = self.codec.chunk_shape
        if len(shape) >= MAX_NDIM:
            message = f"a shard must have at most {MAX_NDIM - 1} dimensions, since its index has one more"
            raise MetadataError(message, kind="limit")
        # codecs/sharding-indexed, chunk_shape: "must match the number of dimensions of the shard shape"
        if len(inner) != len(shape):
            message = f"must have {len(shape)} dimensions, like the shard, not {len(inner)}"
            raise MetadataError(message, pointer="/configuration/chunk_shape", kind="conflict")
        for i, (n, c) in enumerate(zip(shape, inner, strict=True)):
            # codecs/sharding-indexed, chunk_shape: "must evenly divide the size of the shard shape"
            if n % c:
                message = f"must divide {n}, the length of the shard, evenly; {c} does not"
                raise MetadataError(message, pointer=f"/configuration/chunk_shape/{i}", kind="conflict")
        return tuple(n // c for n, c in zip(shape, inner, strict=True))

    def _pipeline(self, name: str, spec: ArraySpec) -> Pipeline:
        try:
            return Pipeline(getattr(self.codec, name), spec)
        except MetadataError as error:
            raise error.under(f"/configuration/{name}") from None

    # Writing

    def encode(self, array: NDArray, old: Buffer | None = None) -> Value:
        chunks = self.writer.chunks(old if self.inner.needs_old else None)
        blocks = self.blocks(array)
        layout = self.inner.layout
        uncompressed = layout is not None and layout.contiguous and layout.is_number
        if uncompressed and self.codec.order == "row-major":
            return self._encode_uncompressed(blocks, layout.dtype, old)  # type: ignore[union-attr]
        if self.inner.encode_batch > 1 and not self.inner.needs_old and not self.inner.filters:
            return self.writer.join([chunk for batch in self._encode_together(blocks) for chunk in batch], old)
        for n, coords in enumerate(np.ndindex(*self.grid)):
            chunks[n] = join(self.inner.encode(blocks[(*coords, ...)], chunks[n]))
        return self.writer.join(chunks, old)

    def _encode_together(self, blocks: NDArray) -> Iterator[list[Buffer | None]]:
        """Encode small inner chunks in batches, in the order of the index."""
        maybe_fill = np.ones(self.format.count, bool)
        if self.spec.dtype.kind in "biufc":  # most chunks differ from the fill value in their first element
            corner: Any = (..., *(0,) * len(self.grid))
            first = blocks[corner].reshape(-1)
            maybe_fill = (first == self.spec.fill) | (first != first)
        shape = (min(self.inner.encode_batch, self.format.count), *self.codec.chunk_shape)
        memory = scratch.acquire(math.prod(shape) * self.spec.dtype.itemsize)
        packed: NDArray = np.ndarray(shape, self.spec.dtype, memory)
        for box, numbers in boxes(self.grid, self.inner.encode_batch):
            part = blocks[(*box, ...)]
            arrays = packed[: numbers.stop - numbers.start]
            arrays.reshape(part.shape)[...] = part
            encoded = self.inner.encode_many(arrays, maybe_fill[numbers].tolist())
            # make a copy: a codec may return its input, which is in a scratch buffer that the next batch overwrites
            yield [chunk if chunk is None else bytes(join(chunk)) for chunk in encoded]
        scratch.release(memory)

    def _encode_uncompressed(self, blocks: NDArray, dtype: np.dtype[Any], old: Buffer | None) -> Value:
        """Encode a shard of uncompressed inner chunks."""
        if blocks.dtype != dtype:
            blocks = blocks.astype(dtype)
        empty = set() if self.spec.options.write_empty else self._empty(blocks)
        if not empty:
            return self.writer.join_uncompressed(blocks, self.inner.encoded_size or 0, old)
        packed = np.ascontiguousarray(blocks).reshape(self.format.count, -1).view(np.uint8)
        return self.writer.join([None if n in empty else chunk.data for n, chunk in enumerate(packed)], old)

    def _empty(self, blocks: NDArray) -> set[int]:
        """Return the numbers of the inner chunks that contain only the fill value."""
        corner: Any = (..., *(0,) * len(self.grid))  # most chunks differ from the fill value in their first element
        first = np.ascontiguousarray(blocks[corner]).reshape(-1, 1).view(np.uint8)
        fill = np.frombuffer(self.spec.fill.astype(blocks.dtype).tobytes(), np.uint8)
        maybe = np.flatnonzero((first == fill).all(axis=1)).tolist()
        places: Any = (np.unravel_index(n, self.grid) for n in maybe)
        return {n for n, place in zip(maybe, places, strict=True) if self.spec.is_fill(blocks[(*place, ...)])}

    def update(self, old: Buffer | None, selection: Selection, values: NDArray) -> Value | None:
        self.writer.check()
        jobs = selection.project(self.codec.chunk_shape)
        if old is None:
            changes = dict(self._changes(jobs, values, lambda n: None))
        else:
            view = memoryview(old)
            index = self.format.index_of(view)
            changes = dict(self._changes(jobs, values, lambda n: index.cut(n, view)))
            if pieces := self.writer.replace(view, index, changes):
                return pieces
        chunks = self.writer.chunks(old)
        for n, chunk in changes.items():
            chunks[n] = chunk
        empty = not self.spec.options.write_empty and all(chunk is None for chunk in chunks)
        return None if empty else self.writer.join(chunks, old)

    def _changes(
        self, jobs: Iterable[Job], values: NDArray, old: Callable[[int], Buffer | None]
    ) -> Iterator[tuple[int, Buffer | None]]:
        """Yield the number and the new bytes of each inner chunk that is written to."""
        for coords, inside, outside in jobs:
            n = self.number(coords)
            part = outside.take(values) if values.ndim else values
            try:
                if part.ndim and inside.covers(self.codec.chunk_shape) and not self.inner.needs_old:
                    yield n, join(self.inner.encode(part))
                else:
                    yield n, join(self.inner.update(old(n), inside, part))
            except DataError as error:
                raise named(coords, error) from error.__cause__

    def patch(self, source: Source, selection: Selection, values: NDArray) -> Patches | None:
        index = self.writer.read_index(source) if self.writer.patches else None
        if index is None:
            return None
        jobs = list(selection.project(self.codec.chunk_shape))
        partial = (
            self.number(coords)
            for coords, inside, _ in jobs
            if self.inner.needs_old or not inside.spans_all(self.codec.chunk_shape)
        )
        entries = {n: entry for n in partial if (entry := index.entry(n)) is not None}
        old: dict[int, Buffer] = {}
        if entries:
            ranges, places = coalesce([*entries.values()], Limits())
            found = source.read(ranges)
            if found is None:
                return None
            old = dict(zip(entries, cut([*entries.values()], places, found), strict=True))
        return self.writer.patch(source, index, dict(self._changes(jobs, values, old.get)))

    # Description

    def anatomy(self, header: Buffer | None = None) -> Indexed:
        return Indexed(self.format, self.inner)
