"""The chunks of an array in a form that every reader of Zarr v3 can decode; `plain.py` serves them as a store.

Rules
- Chunks are served without decoding if every reader supports their codecs; padding around them is removed. Shards are
  served with an index that is at the end and has a checksum, since not every reader supports other indices. If the
  stored index is different, or its entries include the padding of inner chunks, a new index is appended to the stored
  shard.
- Byte ranges are passed on to the underlying store. The size of the value is requested only if a range has no end or
  ends outside the value.
- Other chunks are decoded and served uncompressed. In a sharded array, these are the inner chunks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source, Window
from zarrlite.chunk_grids import Regular
from zarrlite.chunks.chunks import Chunks
from zarrlite.codecs.bytes import Bytes
from zarrlite.codecs.crc32c import Crc32c
from zarrlite.codecs.sharding_indexed import ShardingIndexed
from zarrlite.codecs.vlen import VlenBytes, VlenUtf8
from zarrlite.extensions.extension import Ignored
from zarrlite.nodes.array import Array
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, BytesBytesCodec, Framing
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import Selection, Shape, Span
from zarrlite.shards.format import ABSENT, ShardFormat

# codecs that every reader of Zarr v3 supports, even inside shards; not every reader supports nested shards
COMMON: Final = frozenset(("bytes", "transpose", "zstd", "gzip", "blosc", "crc32c", "vlen-utf8", "vlen-bytes"))
_ENTRY: Final = 16  # bytes; size of an index entry


# Chunks that are served without decoding them


class Served:
    """Chunks served in their stored form, but without the padding around them."""

    grid: Regular | None = None  # the chunk grid, if it differs from that of the array

    def __init__(self, chunks: Chunks, codecs: tuple[Any, ...], frames: list[Framing], least: int = 0) -> None:
        self.codecs = codecs
        self._chunks = chunks
        self._frames = frames  # outermost first
        self._least = least  # bytes; minimum size of an unpadded value: that of a shard index at its end, or 0

    def chunk(self, coords: Shape) -> Source:
        source = self._chunks.store.source(self._chunks.metadata.chunk_key_encoding.encode(coords))
        for i, frame in enumerate(self._frames):
            inside = sum(other.head + other.tail for other in self._frames[i + 1 :])
            source = Unframed(source, frame, self._least + inside if self._least else 0)
        return source

    def stored(self) -> list[Shape]:
        return [coords for coords, _ in self._chunks.stored()]


class Reindexed(Served):
    """Shards served with a new index, which skips the padding around inner chunks."""

    def __init__(
        self, chunks: Chunks, codecs: tuple[Any, ...], frames: list[Framing], form: ShardFormat, inner: list[Framing]
    ) -> None:
        super().__init__(chunks, codecs, frames, _index_at_end(form))
        self._form = form
        self._head = sum(frame.head for frame in inner)
        self._tail = sum(frame.tail for frame in inner)

    def chunk(self, coords: Shape) -> Source:
        return ReindexedShard(super().chunk(coords), self._form, self._head, self._tail)


def served(chunks: Chunks) -> Served | None:
    """Return an object that serves chunks without decoding them. Returns None if they must be decoded."""
    pipeline: Pipeline = chunks.pipeline((0,) * len(chunks.metadata.shape))
    rest, frames = _split_frames([codec for codec, _ in pipeline.compressors])
    filters = [codec for codec, _ in pipeline.filters]
    serializer: Any = pipeline.serializer.codec
    if not isinstance(serializer, ShardingIndexed):
        codecs = (*filters, serializer, *rest)
        return Served(chunks, codecs, frames) if _are_common(codecs) else None
    if filters or rest:  # not every reader supports shards that are transposed or compressed as a whole
        return None
    shard: Any = pipeline.serializer
    inner_rest, inner_frames = _split_frames([codec for codec, _ in shard.inner.compressors])
    inner = (*(codec for codec, _ in shard.inner.filters), shard.inner.serializer.codec, *inner_rest)
    if not _are_common(inner):
        return None
    codec = ShardingIndexed(serializer.chunk_shape, inner, (Bytes(), Crc32c()), "end")
    index = tuple(index_codec for index_codec in serializer.index_codecs if not isinstance(index_codec, Ignored))
    if index == codec.index_codecs and serializer.index_location == "end" and not inner_frames:
        return Served(chunks, (codec,), frames, _index_at_end(shard.format))
    return Reindexed(chunks, (codec,), frames, shard.format, inner_frames)


def _index_at_end(form: ShardFormat) -> int:
    return 0 if form.at_start else form.index_size


def _split_frames(codecs: list[BytesBytesCodec]) -> tuple[list[BytesBytesCodec], list[Framing]]:
    """Return the codecs of a chain that readers decode, and those that only add padding, outermost first."""
    rest, frames = [*codecs], []
    while rest and isinstance(rest[-1], Framing) and rest[-1].name not in COMMON and not rest[-1].verifies:
        frames.append(rest.pop())
    return rest, frames  # type: ignore[return-value]


def _are_common(codecs: Sequence[Any]) -> bool:
    return all(codec.name in COMMON for codec in codecs)


class Unframed(Window):
    """A value without its padding, read without requesting its size. Closing it closes the padded value.

    Every intact value has at least `least` bytes, so that a suffix of up to this length is known to be inside it.
    """

    def __init__(self, source: Source, frame: Framing, least: int = 0) -> None:
        super().__init__(source, frame.head, frame.tail, frame.name)
        self._least = least

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        framed = [self._framed(byte_range) for byte_range in ranges]
        if None in framed:
            return super().read(ranges, memory)
        found = self.source.read([wanted for wanted, _ in framed])  # type: ignore[misc]
        if found is None:
            return None
        values: list[Buffer] = []
        for (start, stop), value, (_, length) in zip(ranges, found, framed, strict=True):  # type: ignore[misc]
            if length is None:
                length = max(len(value), self.head + self.tail)
            if len(value) != length:  # the range ends outside the value, or the value is truncated
                return super().read(ranges, memory)
            if start < 0:
                values.append(memoryview(value)[length + start - (stop or 0) :])
            else:
                values.append(memoryview(value)[self.head if stop is None else 0 : length - self.tail])
        return values

    def _framed(self, byte_range: ByteRange) -> tuple[ByteRange, int | None] | None:
        """Return the range to read from the padded value, and its length.

        The range extends into the padding: if all of it can be read, the requested range is inside the value. The
        length is None if the whole value is read. Returns None if the size of the value must be requested first.
        """
        start, stop = byte_range
        if byte_range == ALL:
            return ALL, None
        # a suffix: unless it is certainly inside the value, `head` more bytes before it are read to find out
        if start < (stop or 0) <= 0:
            first = start if -start <= self._least else start - self.head
            return ByteRange(first - self.tail, (stop or 0) - self.tail or None), (stop or 0) - first
        if stop is None or not 0 <= start < stop:
            return None
        return ByteRange(self.head + start, self.head + stop + self.tail), stop - start + self.tail

    def close(self) -> None:
        self.source.close()


class ReindexedShard(Source):
    """A shard with a new index at its end, whose entries exclude the padding of inner chunks."""

    def __init__(self, source: Source, form: ShardFormat, head: int, tail: int) -> None:
        self._source = source
        self._form = form
        self._head, self._tail = head, tail
        self._more = _ENTRY * form.count + 4  # bytes; size of the new index with its checksum
        self._index: bytes | None = None

    def _new_index(self) -> bytes | None:
        """Return the new index. Returns None if the shard is missing."""
        if self._index is None:
            stored = self._source.read_one(self._form.index_range)
            if stored is None:
                return None
            index = self._form.parse_index(stored, self._source.known_size())
            present = index.check()
            table = index.table.astype(np.uint64)
            table[present, 0] += np.uint64(self._head)
            table[present, 1] -= np.uint64(self._head + self._tail)
            table[~present] = ABSENT
            self._index = bytes(Crc32c().encode(table.astype("<u8").tobytes()))
        return self._index

    def size(self) -> int | None:
        size = self._source.size()
        return None if size is None else size + self._more

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        found = self._read_without_size(ranges)
        if found is not None:
            return found
        end = self._source.size()
        if end is None:
            return None
        bounds = [byte_range.resolve(end + self._more) for byte_range in ranges]
        values: Any = self._source.read([ByteRange(min(start, end), min(stop, end)) for start, stop in bounds])
        for i, (start, stop) in enumerate(bounds):
            if stop > end:
                index = self._new_index() or b""
                values[i] = bytes(values[i]) + index[max(0, start - end) : stop - end]
        return values  # type: ignore[no-any-return]

    def _read_without_size(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Read ranges, all inside the new index or all before it. Returns None if the size of the shard is needed."""
        if all(start < 0 and stop is None and -start <= self._more for start, stop in ranges):
            index = self._new_index()
            return None if index is None else [byte_range.of(index) for byte_range in ranges]
        if not all(stop is not None and 0 <= start < stop for start, stop in ranges):
            return None
        found = self._source.read(ranges)
        complete = found is not None and all(
            len(value) == (stop or 0) - start for value, (start, stop) in zip(found, ranges, strict=True)
        )
        return found if complete else None

    def version(self) -> str | None:
        return self._source.version()

    def is_current(self) -> bool:
        return self._source.is_current()

    def close(self) -> None:
        self._source.close()


# Chunks that are decoded


class Decoded:
    """Chunks that are decoded and served uncompressed; inner chunks if the array has shards."""

    def __init__(self, array: Array, chunks: Chunks) -> None:
        self._array = array
        self._chunks = chunks
        self._shape = tuple(max(1, n) for n in array.chunks)
        self.grid = Regular(self._shape)
        self.codecs = (_plain_serializer(array),)

    def chunk(self, coords: Shape) -> Source:
        region = [slice(i * n, min((i + 1) * n, length)) for i, n, length in self._lengths(coords)]
        if any(part.start >= part.stop for part in region):
            return InMemory(None)
        return DecodedChunk(self, tuple(region))

    def _lengths(self, coords: Shape) -> Iterator[tuple[int, int, int]]:
        return zip(coords, self._shape, self._array.shape, strict=True)

    def exists(self, region: tuple[slice, ...]) -> bool:
        """Whether any stored chunk contains elements of a region."""
        selection = Selection([Span(part.start, part.stop - part.start) for part in region])
        encode = self._chunks.metadata.chunk_key_encoding.encode
        stored = self._chunks.store
        return any(stored.size(encode(coords)) is not None for coords, _, _ in self._chunks.grid.project(selection))

    def decode(self, region: tuple[slice, ...]) -> Buffer:
        """Return the elements of a region, padded to a full chunk with the fill value, as bytes."""
        spec = ArraySpec(self._shape, self._array.metadata.data_type, self._array.fill_value)
        values = np.asarray(self._array[region], spec.dtype)
        if values.shape != self._shape:
            padded = spec.filled()
            padded[tuple(slice(0, n) for n in values.shape)] = values
            values = padded
        return self.codecs[0].encode(values, spec)

    @property
    def nbytes(self) -> int | None:
        """The size of every chunk. None if it depends on the elements."""
        itemsize = self._array.metadata.data_type.itemsize
        return None if itemsize is None else int(np.prod(self._shape, dtype=object)) * itemsize

    def stored(self) -> list[Shape]:
        found: set[Shape] = set()
        grid = self._chunks.grid
        for coords, _ in self._chunks.stored():
            bounds = [
                range(start // n, -(-min(start + length, size) // n))
                for start, length, n, size in zip(
                    grid.origin(coords), grid.chunk_shape(coords), self._shape, self._array.shape, strict=True
                )
            ]
            found.update(itertools.product(*bounds))
        return sorted(found)


def _plain_serializer(array: Array) -> ArrayBytesCodec:
    data_type = array.metadata.data_type
    if data_type.itemsize is None:
        return VlenUtf8() if data_type.dtype.kind == "T" else VlenBytes()
    return Bytes("little" if data_type.has_byte_order else None)


class DecodedChunk(Source):
    """A chunk that is decoded when it is first read."""

    def __init__(self, form: Decoded, region: tuple[slice, ...]) -> None:
        self._form = form
        self._region = region
        self._value: InMemory | None = None

    def _decoded(self) -> InMemory:
        if self._value is None:
            self._value = InMemory(self._form.decode(self._region) if self._form.exists(self._region) else None)
        return self._value

    def read(self, ranges: Sequence[ByteRange], memory: memoryview | None = None) -> list[Buffer] | None:
        return self._decoded().read(ranges)

    def size(self) -> int | None:
        if self._value is None and self._form.nbytes is not None:
            return self._form.nbytes if self._form.exists(self._region) else None
        return self._decoded().size()

    def version(self) -> str | None:
        value = self._decoded().value
        return None if value is None else blake2b(value, digest_size=16).hexdigest()
