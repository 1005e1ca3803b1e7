"""The `sharding_indexed` codec: a chunk that is divided into inner chunks.

Rules (codecs/sharding-indexed)
- "the inner chunk shape along each dimension must evenly divide the size of the shard shape".
- Index codecs are of fixed size: "variable-sized encoded representation ... MUST NOT be used".
- Reading touches the index and the inner chunks that are asked for. Writing a part decodes only the inner chunks that
  it covers in part; the others are copied as bytes, or left alone, as the runtime options say.

The format itself is in shards.py, what the options mean in shard_writing.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import floordiv, mod, mul
from typing import Any, Self

import numpy as np

from zarrlite.buffers import scratch
from zarrlite.buffers.ranges import Buffer, Pieces, joined
from zarrlite.buffers.source import ArraySource, ByteSource, Held, Limit, Slice
from zarrlite.cached import cached_property
from zarrlite.errors import DataError, MetadataError
from zarrlite.extensions.config import Config, Faults, Json
from zarrlite.extensions.extension import Ignored, runtime
from zarrlite.extensions.registry import codecs as registry
from zarrlite.extensions.registry import data_types, register
from zarrlite.pipeline.chain import parse_chain
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, Piece, Serializer, byte_order_of
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.casting import MAX_NDIM
from zarrlite.selections.selection import Selection, Shape, everything
from zarrlite.shards.format import ABSENT, ShardFormat, boxes
from zarrlite.shards.reading import ShardSource, gone, named
from zarrlite.shards.streaming import Encoded, IndexOf
from zarrlite.shards.writing import ShardWriter, Writing

Array = np.ndarray[Any, Any]
_LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
Job = tuple[Shape, Selection, Selection]  # an inner chunk, what is read of it, where that goes


@register
@dataclass(frozen=True)
class ShardingIndexed(ArrayBytesCodec):
    """Inner chunks and an index of them."""

    name = "sharding_indexed"
    chunk_shape: tuple[int, ...]
    codecs: tuple[Any, ...] = (_LITTLE,)
    index_codecs: tuple[Any, ...] = (_LITTLE, "crc32c")
    index_location: str = "end"
    strategy: str = runtime("rewrite")
    order: str = runtime("row-major")
    header: int = runtime(0)

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
            "index_location": self.index_location,
        }

    @property
    def writing(self) -> Writing:
        """How shards are written."""
        return Writing(self.strategy, self.order, self.header)

    @property
    def inner_chunk_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.chunk_shape

    @property
    def byte_order(self) -> str:  # type: ignore[override]
        return byte_order_of(self.codecs)

    def prepare(self, spec: ArraySpec) -> Serializer:
        return ShardSerializer(self, spec)

    def encode(self, array: Array, spec: ArraySpec) -> Buffer:
        return self.prepare(spec).encode(array)

    def decode(self, data: Buffer, spec: ArraySpec) -> Array:
        return self.prepare(spec).decode(data)


class ShardSerializer(Serializer):
    """Sharding bound to a shard: the grid inside of it, the inner chain, the format."""

    codec: ShardingIndexed
    eager = False  # chunk by chunk, into their places

    def __init__(self, codec: ShardingIndexed, spec: ArraySpec) -> None:
        super().__init__(codec, spec)
        self.grid = self._grid(spec.shape)
        # for each dimension of the grid how many entries of the index lie between neighbours
        self.places = [math.prod(self.grid[i + 1 :]) for i in range(len(self.grid))]
        self.inner = self._pipeline("codecs", spec.reshaped(codec.chunk_shape))
        index_spec = ArraySpec((*self.grid, 2), data_types.coerce("uint64"), ABSENT, write_empty=True)
        index = self._pipeline("index_codecs", index_spec)
        if index.encoded_size is None:
            message = "must make an index of fixed size; no compression here"
            raise MetadataError(message, pointer="/configuration/index_codecs", kind="conflict")
        self.format = ShardFormat(self.grid, index, codec.index_location, self.inner.limit)
        self.writer = ShardWriter(self.format, codec.writing)
        self.patches = self.writer.patches
        self.needs_old = self.inner.needs_old or self.writer.needs_old

    def _grid(self, shape: Shape) -> Shape:
        inner = self.codec.chunk_shape
        if len(shape) >= MAX_NDIM:
            message = f"a shard has at most {MAX_NDIM - 1} dimensions, since its index has one more"
            raise MetadataError(message, kind="limit")
        if len(inner) != len(shape):
            message = f"must have {len(shape)} dimensions, as the shard has, not {len(inner)}"
            raise MetadataError(message, pointer="/configuration/chunk_shape", kind="conflict")
        for i, (n, c) in enumerate(zip(shape, inner, strict=True)):
            if n % c:
                message = f"must divide {n}, the length of the shard, evenly; {c} does not"
                raise MetadataError(message, pointer=f"/configuration/chunk_shape/{i}", kind="conflict")
        return tuple(n // c for n, c in zip(shape, inner, strict=True))

    def _pipeline(self, name: str, spec: ArraySpec) -> Pipeline:
        try:
            return Pipeline(getattr(self.codec, name), spec)
        except MetadataError as error:
            raise error.under(f"/configuration/{name}") from None

    @cached_property
    def limit(self) -> Limit:
        """Unused space is allowed in a shard, so its size has no bound but a sane one: twice what full chunks need."""
        chunk = self.inner.limit
        if chunk.per_byte:
            return Limit(super().limit.fixed + self.format.index_size, chunk.per_byte)
        return Limit(2 * self.format.count * chunk.fixed + self.format.index_size + 2**16)

    @property
    def max_size(self) -> None:
        """None: any amount of unused space is allowed in a shard that is not encoded further."""
        return None

    def number(self, coords: Shape) -> int:
        """The place of an inner chunk in the index."""
        return sum(map(mul, coords, self.places))

    def view(self, source: ByteSource) -> ArraySource:
        return ShardSource(self, source)

    def read(self, source: ByteSource, selection: Selection, out: Array | None = None) -> Array | None:
        one = selection.shape == self.codec.chunk_shape and selection.plain and selection.steps is None
        if one and out is not None and source.partial and self.inner.eager and self._read_chunk(source, selection, out):
            return out
        return super().read(source, selection, out)

    def _read_chunk(self, source: ByteSource, selection: Selection, out: Array) -> bool:
        """All of one inner chunk; False: it is not one, or there is no shard, or less of it than the index says."""
        number = 0
        for start, length, place in zip(selection.starts, selection.shape, self.places, strict=True):
            if start % length:
                return False
            number += start // length * place
        entry = self.format.find(source, number)
        if entry is None:
            return False
        offset, length = entry
        if offset == ABSENT:
            out[...] = self.spec.fill
        elif not (length == out.nbytes and self.inner.lies_in(out) and source.fill(out, offset)):
            data = source.read_at(offset, offset + length)
            if data is None or len(data) != length:
                return False
            try:
                out[...] = self.inner.decode(data)
            except DataError as error:
                raise named(tuple(map(floordiv, selection.starts, out.shape)), error) from error.__cause__
        return True

    def element(self, source: ByteSource, coords: Shape) -> Any:
        shape, inner = self.codec.chunk_shape, self.inner
        entry = self.format.find(source, sum(map(mul, map(floordiv, coords, shape), self.places)))
        if entry is None:
            return None
        offset, length = entry
        if offset == ABSENT:
            return self.spec.fill[()]
        if inner.raw_dtype is not None and length == inner.nbytes:
            offset += sum(map(mul, map(mod, coords, shape), inner.strides))
            data = source.read_at(offset, offset + inner.raw_dtype.itemsize)
            if data is not None and len(data) == inner.raw_dtype.itemsize:
                return np.frombuffer(data, inner.raw_dtype)[0]
        try:
            found = inner.element(Slice(source, *entry), tuple(map(mod, coords, shape)))
            if found is None:
                raise gone()
        except DataError as error:
            raise named(tuple(map(floordiv, coords, shape)), error) from error.__cause__
        return found

    def decode(self, data: Buffer) -> Array:
        array = ShardSource(self, Held(data)).read(everything(self.spec.shape))
        return self.spec.filled() if array is None else array

    def encode(self, array: Array, old: Buffer | None = None) -> Buffer:
        return joined(self.encode_pieces(array, old))

    def encode_pieces(self, array: Array, old: Buffer | None = None) -> Pieces:
        chunks = self.writer.chunks(old if self.inner.needs_old else None)
        blocks = self.blocks(array)
        if self.inner.raw_dtype is not None and self.codec.order == "row-major":
            return self._encode_raw(blocks, self.inner.raw_dtype, old)
        if self.inner.together > 1 and not self.inner.needs_old:
            if self.writer.streams:
                encoded = Encoded(lambda: self._encode_together(blocks))
                return [encoded, IndexOf(encoded, self.writer)]
            runs = self._encode_together(blocks)
            return self.writer.pieces([c if c is None else bytes(joined(c)) for run in runs for c in run], old)
        for n, coords in enumerate(np.ndindex(*self.grid)):
            chunks[n] = self.inner.write(blocks[(*coords, ...)], chunks[n])
        return self.writer.pieces(chunks, old)

    def _encode_together(self, blocks: Array) -> Iterator[list[Pieces | None]]:
        """Small inner chunks in the order of the index, as many together as is best, in memory that is lent."""
        maybe = np.ones(self.format.count, bool)
        if self.spec.dtype.kind in "biufc":  # most chunks that are not empty have another element in front
            corner: Any = (..., *(0,) * len(self.grid))
            first = blocks[corner].reshape(-1)
            maybe = (first == self.spec.fill) | (first != first)
        shape = (min(self.inner.together, self.format.count), *self.codec.chunk_shape)
        memory = scratch.take(math.prod(shape) * self.spec.dtype.itemsize)
        packed: Array = np.ndarray(shape, self.spec.dtype, memory)
        for box, numbers in boxes(self.grid, self.inner.together):
            part = blocks[(*box, ...)]
            arrays = packed[: numbers.stop - numbers.start]
            arrays.reshape(part.shape)[...] = part
            yield self.inner.write_many(arrays, maybe[numbers].tolist())
        scratch.give(memory)

    def _encode_raw(self, blocks: Array, dtype: np.dtype[Any], old: Buffer | None) -> Pieces:
        """A shard of inner chunks that are stored as they are."""
        if blocks.dtype != dtype:
            blocks = blocks.astype(dtype)
        empty = set() if self.spec.write_empty else self._empty(blocks)
        if not empty:
            return self.writer.regular(blocks, self.inner.encoded_size or 0, old)
        packed = np.ascontiguousarray(blocks).reshape(self.format.count, -1).view(np.uint8)
        return self.writer.join([None if n in empty else chunk.data for n, chunk in enumerate(packed)], old)

    def _empty(self, blocks: Array) -> set[int]:
        """The inner chunks that hold nothing but the fill value."""
        corner: Any = (..., *(0,) * len(self.grid))  # whose element tells most of the others apart
        first = np.ascontiguousarray(blocks[corner]).reshape(-1, 1).view(np.uint8)
        fill = np.frombuffer(self.spec.fill.astype(blocks.dtype).tobytes(), np.uint8)
        maybe = np.flatnonzero((first == fill).all(axis=1)).tolist()
        places: Any = (np.unravel_index(n, self.grid) for n in maybe)
        return {n for n, place in zip(maybe, places, strict=True) if self.spec.is_fill(blocks[(*place, ...)])}

    def blocks(self, array: Array) -> Array:
        """A view of a whole shard that is indexed by inner chunk first."""
        ndim = len(self.grid)
        split = array.reshape([n for pair in zip(self.grid, self.codec.chunk_shape, strict=True) for n in pair])
        return split.transpose([*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)])

    def update(self, old: Buffer | None, selection: Selection, values: Array) -> Pieces | None:
        self.writer.check()
        jobs = selection.project(self.codec.chunk_shape)
        if old is None:
            changes = dict(self._updated(jobs, values, lambda n: None))
        else:
            view = memoryview(old)
            index = self.format.index_of(view)
            changes = dict(self._updated(jobs, values, lambda n: index.cut(n, view)))
            if pieces := self.writer.replace(view, index, changes):
                return pieces
        chunks = self.writer.chunks(old)
        for n, chunk in changes.items():
            chunks[n] = chunk
        empty = not self.spec.write_empty and all(chunk is None for chunk in chunks)
        return None if empty else self.writer.join(chunks, old)

    def _updated(
        self, jobs: Iterable[Job], values: Array, old: Callable[[int], Buffer | None]
    ) -> Iterator[tuple[int, Buffer | None]]:
        """The number and the new bytes of each inner chunk that is written to."""
        for coords, inside, outside in jobs:
            n = self.number(coords)
            part = outside.take(values) if values.ndim else values
            try:
                if part.ndim and inside.covers(self.codec.chunk_shape) and not self.inner.needs_old:
                    yield n, self.inner.write(part)
                else:
                    new = self.inner.update(old(n), inside, part)
                    yield n, joined(new)
            except DataError as error:
                raise named(coords, error) from error.__cause__

    def patch(self, source: ByteSource, selection: Selection, values: Array) -> list[Piece] | None:
        index = self.writer.read_index(source)
        if index is None:
            return None
        jobs = list(selection.project(self.codec.chunk_shape))
        parts = (
            self.number(coords)
            for coords, inside, _ in jobs
            if self.inner.needs_old or not inside.spans_all(self.codec.chunk_shape)
        )
        entries = {n: entry for n in parts if (entry := index.entry(n)) is not None}
        old: dict[int, Buffer] = {}
        if entries:
            chunks = self.format.read_chunks(source, list(entries.values()))
            if chunks is None:
                return None
            old = dict(zip(entries, chunks, strict=True))
        return self.writer.patch(source, index, dict(self._updated(jobs, values, old.get)))
