"""A codec chain bound to a chunk: read, encode, update.

Rules
- Which lists of codecs are chains is said in chain.py.
- Everything that does not depend on a chunk's bytes is worked out once, here.
- There is no partial path beside a full path: a full read is the selection that covers the chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from zarrlite.buffers import scratch
from zarrlite.buffers.batch import Run
from zarrlite.buffers.ranges import Buffer, ByteRange, Pieces, joined, size_of
from zarrlite.buffers.source import Budget, ByteSource, Decoded, Held, Limit
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions.extension import Extension, Ignored
from zarrlite.pipeline.chain import check_chain
from zarrlite.pipeline.codec import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    ArraySpec,
    BytesBytesCodec,
    Codec,
    Piece,
    row_major_strides,
)
from zarrlite.pipeline.decoding import Decoders
from zarrlite.selections.selection import Selection, everything

Array = np.ndarray[Any, Any]
BATCH = 2**20  # decoded bytes of small chunks that are handled together
STEP = 2**20  # bytes of a large chunk, stored as it is, that are read at once: they are still near when they are copied
SMALL = 2**16  # decoded bytes of a chunk up to which one more copy costs less than a step of its own


class Prepared(NamedTuple):
    """What is worked out once for all arrays of the same metadata, attributes and shape aside."""

    encode_key: Callable[[tuple[int, ...]], str]
    pipeline: Pipeline | None  # the one of all chunks, if they have one shape


class Pipeline:
    """The codecs of an array, prepared for chunks of one shape."""

    def __init__(self, codecs: Sequence[Codec | Ignored], spec: ArraySpec) -> None:
        check_chain(codecs)
        self.spec = spec
        self.nbytes = spec.size * spec.dtype.itemsize  # of a decoded chunk
        self.filters: list[tuple[ArrayArrayCodec, ArraySpec]] = []
        self.compressors: list[tuple[BytesBytesCodec, Limit]] = []
        for i, codec in enumerate(codecs):
            try:
                spec = self._add(codec, spec)
            except MetadataError as error:
                raise error.under(f"/{i}") from None
        self.decoders = Decoders(self.compressors, self.serializer)
        # of elements that are stored as they are and nothing else; None: there is more to it
        self.raw_dtype = None if self.filters or self.compressors else self.serializer.raw_dtype
        self.strides = row_major_strides(self.spec.shape, self.spec.dtype.itemsize)  # of these
        # whether a whole chunk is best read at once and decoded from one end to the other
        self.eager = not self.filters and self.serializer.eager
        self.together = self._together()
        # whether nothing of what is encoded is in the memory of the array that it was
        self.fresh = any(codec.fresh for codec, _ in self.compressors)
        # whether what is written depends on what is overwritten
        self.needs_old = self.serializer.needs_old or any(codec.needs_old for codec, _ in self.compressors)

    def _together(self) -> int:
        """How many chunks are best decoded in one step."""
        size = self.serializer.encoded_size
        plain = BytesBytesCodec
        many = any(
            type(codec).decode_many is not plain.decode_many
            or type(codec).decode_side_by_side is not plain.decode_side_by_side
            for codec, _ in self.compressors
        )
        if not size or size > SMALL or not (many and self.eager and self.decoders.whole):
            return 1
        return max(1, BATCH // size)

    def _add(self, codec: Extension, spec: ArraySpec) -> ArraySpec:
        """Take one codec into the chain; returns what the next one gets."""
        if isinstance(codec, ArrayArrayCodec):
            encoded = codec.encoded_spec(spec)
            self.filters.append((codec, spec))
            return encoded
        if isinstance(codec, ArrayBytesCodec):
            self.serializer = codec.prepare(spec)
            self.encoded_size = self.serializer.encoded_size  # of the whole chain; None: it depends on the data
            self.limit = self.serializer.limit  # the most bytes that the whole chain can make
            self.max_size = self.serializer.max_size  # the most that can be stored; None: there is no telling
        elif isinstance(codec, BytesBytesCodec):
            self.compressors.append((codec, self.limit))
            self.limit = Limit(codec.max_encoded_size(self.limit.fixed), self.limit.per_byte)
            self.max_size = None if self.max_size is None else codec.max_encoded_size(self.max_size)
            if self.encoded_size is not None:
                self.encoded_size = codec.encoded_size(self.encoded_size)
        return spec

    def read(
        self, source: ByteSource, selection: Selection, budget: Budget | None = None, out: Array | None = None
    ) -> Array | None:
        """The selected elements, perhaps written to `out`, which is then returned; None: the chunk is missing."""
        if out is not None and self.eager and selection.plain and selection.shape == self.spec.shape and budget is None:
            if self.lies_in(out) and source.known_size() == out.nbytes and source.fill(out, 0):
                return out
            if self.raw_dtype is not None and self.nbytes > STEP and self._read_rows(source, out):
                return out
            data = source.borrow()
            if data is None:
                return None
            self.decode_to(out, data)
            return out
        if self.decoders.whole:
            data = source.read_all()
            if data is None:
                return None
            source = self.decoders.opened(data)
        elif self.compressors:
            source = self.decoders.view(source)
        if budget is not None:
            budget.spend(source.size() or 0)
        if not self.filters:
            return self.serializer.read(source, selection, out)
        elements = self.serializer.view(source)
        for filter_, spec in reversed(self.filters):
            elements = filter_.view(elements, spec)
        return elements.read(selection, out)

    def _read_rows(self, source: ByteSource, out: Array) -> bool:
        """A large chunk, stored as it is, some rows at a time to its place; False: read all of it at once."""
        if not source.lends or source.known_size() != self.nbytes:
            return False
        row = self.nbytes // len(out)
        count = max(1, STEP // row)
        for i in range(0, len(out), count):
            part = out[i : i + count]
            data = source.borrow(ByteRange(i * row, (i + len(part)) * row))
            if data is None or len(data) != len(part) * row:  # the file has been cut meanwhile
                return False
            part[...] = np.frombuffer(data, self.raw_dtype).reshape(part.shape)
        return True

    def lies_in(self, out: Array) -> bool:
        """Whether a whole chunk lies in an array of its shape as it is stored, so that it can be read to there."""
        return self.raw_dtype is not None and out.flags.c_contiguous and self.raw_dtype == out.dtype

    def element(self, source: ByteSource, coords: tuple[int, ...]) -> Any:
        """A single element, as numpy has it; None: the chunk is missing."""
        if self.filters:
            found = self.read(source, Selection.box(coords, (1,) * len(coords)))
            return None if found is None else found.astype(self.spec.dtype, copy=False).reshape(())[()]
        if self.decoders.whole:
            data = source.borrow()
            if data is None:
                return None
            if not self.decoders.unrolls:
                return self.serializer.pick(self.decoders.decode(data), coords)
            opened = self.decoders.opened(data)
            found = self.serializer.element(opened, coords)
            if self.serializer.raw_dtype is not None:
                opened.close()  # a number is a copy; anything else may still be in that memory
            return found
        if self.compressors:
            source = self.decoders.view(source)
        return self.serializer.element(source, coords)

    def extent(self, inside: Selection) -> tuple[int, int]:
        """Of elements as they are: where a box starts, and how far it reaches, in bytes."""
        reach = sum(map(mul, inside.shape, self.strides)) - sum(self.strides) + self.spec.dtype.itemsize
        return sum(map(mul, inside.starts, self.strides)), reach

    def decode(self, data: Buffer) -> Array:
        """A whole chunk."""
        if self.filters:
            found = self.read(Held(data), everything(self.spec.shape))
            return self.spec.filled() if found is None else found
        return self.serializer.decode(self.decoders.decode(data))

    def decode_to(self, out: Array, data: Buffer) -> None:
        """A whole chunk to its place."""
        if self.filters or not self.decoders.fills(SMALL):
            out[...] = self.decode(data)
            return
        if out.flags.c_contiguous and out.dtype == self.serializer.raw_dtype:
            place = out.reshape(-1).view("u1").data
            found = self.decoders.decode_into(data, place)
            if found is not place:
                out[...] = self.serializer.decode(found)
            return
        size = self.serializer.encoded_size or 0
        memory = scratch.take(size)
        out[...] = self.serializer.decode(self.decoders.decode_into(data, memory[:size]))
        scratch.give(memory)

    def raw(self, data: Buffer) -> tuple[Buffer, np.dtype[Any]]:
        """The elements of a whole chunk of numbers, one after the other, and of which dtype they are."""
        dtype = self.serializer.raw_dtype
        if dtype is not None and not self.filters:
            return self.decoders.decode(data), dtype
        array = self.decode(data)
        return array.tobytes(), array.dtype

    def decode_each(self, values: Sequence[Buffer], memory: memoryview) -> Sequence[Array] | Array:
        """Several whole chunks, each as by `decode`, perhaps in memory that is lent; an error does not say which."""
        found = self.decoders.side_by_side(values, memory)
        if found is None:
            return [self.serializer.decode(value) for value in self.decoders.decode_many(values)]
        return self.serializer.decode_many(found)

    def decode_together(self, values: Sequence[Buffer], memory: memoryview) -> Array:
        """The same as one array of all of them."""
        found = self.decode_each(values, memory) if values else np.empty((0, *self.spec.shape), self.spec.dtype)
        return found if isinstance(found, np.ndarray) else np.stack([*found])

    def encode(self, array: Array, old: Buffer | None = None) -> Buffer:
        """The stored form of a whole chunk, which takes the place of an old one."""
        return joined(self._encode(array, old))

    def _encode(self, array: Array, old: Buffer | None) -> Pieces:
        for codec, spec in self.filters:
            array = codec.encode(array, spec)
        if self.fresh and self.serializer.raw_dtype is not None and not array.flags.c_contiguous:
            memory = scratch.take(array.nbytes)
            packed: Array = np.ndarray(array.shape, array.dtype, memory)
            packed[...] = array
            made = self._compress(self.serializer.encode_pieces(packed), old)
            scratch.give(memory)
            return made
        replaced = self.decoders.view(Held(old)).read_all() if self.serializer.needs_old else None
        return self._compress(self.serializer.encode_pieces(array, replaced), old)

    def _replaced(self, old: Buffer | None) -> list[Buffer | None]:
        """For each bytes -> bytes codec what it made of the old value, as far as any of them asks for it."""
        found: list[Buffer | None] = [None] * len(self.compressors)
        asking = [i for i, (codec, _) in enumerate(self.compressors) if codec.needs_old]
        if old is not None and asking:
            for i in range(len(found) - 1, asking[0] - 1, -1):
                found[i] = old
                codec, limit = self.compressors[i]
                old = Decoded(codec, Held(old), limit).read_all() if i > asking[0] else None
        return found

    def _compress(self, data: Pieces, old: Buffer | None = None) -> Pieces:
        if not self.compressors:
            return data
        found = self._replaced(old) if old is not None else [None] * len(self.compressors)
        decoded = []
        for (codec, limit), replaced in zip(self.compressors, found, strict=True):
            size = size_of(data) if type(data) is list else len(data)
            if limit.per_byte or size > limit.fixed:
                decoded.append((size, limit))
            data = codec.encode_pieces(data, replaced)
        stored = size_of(data) if decoded else 0
        for size, limit in decoded:
            if size > limit.of(stored):
                message = f"{size} bytes that became {stored} could not be read again; use smaller chunks"
                raise ArgumentError(message)
        return data

    def write(self, array: Array, old: Buffer | None = None) -> Buffer | None:
        """The stored form of a whole chunk; None: it holds nothing but the fill value and need not be stored."""
        return joined(self.write_pieces(array, old))

    def write_pieces(self, array: Array, old: Buffer | None = None) -> Pieces | None:
        """The same, perhaps in pieces."""
        if not self.spec.write_empty and self.spec.is_fill(array):
            return None
        return self._encode(array, old)

    def write_many(self, arrays: Array, maybe: Sequence[bool]) -> list[Pieces | None]:
        """Several whole chunks along the first axis of an array, each as by `write_pieces`.

        Without filters and old values. `maybe`: which of them may hold nothing but the fill value.
        """
        wanted = [True] * len(arrays)
        if True in maybe and not self.spec.write_empty:
            wanted = [not (may and self.spec.is_fill(array)) for array, may in zip(arrays, maybe, strict=True)]
        values: Any = self.serializer.encode_many(arrays if all(wanted) else arrays[wanted])
        for codec, _ in self.compressors if values else ():
            in_pieces = type(values) is not Run and list in map(type, values)
            values = codec.encode_many([*map(joined, values)] if in_pieces else values)
        made = iter(values)
        return [*made] if all(wanted) else [next(made) if stored else None for stored in wanted]

    def update(self, old: Buffer | None, selection: Selection, values: Array) -> Pieces | None:
        """The stored form of a chunk of which a part is overwritten; None: nothing but the fill value is left."""
        inner: tuple[Selection, Array] | None = (selection, values)
        for codec, _ in self.filters:
            inner = inner and codec.encode_update(*inner)
        if inner is None:
            return self._rewrite(old, selection, values)
        whole = selection.spans_all(self.spec.shape) and not self.serializer.needs_old
        new = self.serializer.update(None if whole else self.decoders.view(Held(old)).read_all(), *inner)
        if new is None or not self.compressors:
            return new
        return self._compress(new, old)

    @property
    def patches(self) -> bool:
        """Whether a part of a chunk can be written without the rest."""
        return self.serializer.patches

    def patch(self, source: ByteSource, selection: Selection, values: Array) -> list[Piece] | None:
        """What to overwrite in a stored chunk, in this order, so that a part of it changes; None: write it anew."""
        inner: tuple[Selection, Array] | None = (selection, values)
        for filter_, _ in self.filters:
            inner = inner and filter_.encode_update(*inner)
        sources = [source]
        for codec, limit in reversed(self.compressors):
            sources.append(codec.view(sources[-1], limit))
        decoded = sources.pop()
        if inner is None or not decoded.partial:
            return None
        pieces = self.serializer.patch(decoded, *inner)
        for codec, _ in self.compressors:
            pieces = None if pieces is None else codec.patch(pieces, sources.pop())
        return pieces

    def _rewrite(self, old: Buffer | None, selection: Selection, values: Array) -> Buffer | None:
        """Update through codecs that know only whole chunks."""
        array = self.spec.filled()
        if old is not None:
            array[...] = self.read(Held(old), everything(self.spec.shape))
        selection.put(array, values)
        return self.write(array, old)
