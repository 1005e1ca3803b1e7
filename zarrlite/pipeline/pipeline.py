"""A codec chain bound to a chunk shape: read, encode, update.

Rules
- chain.py decides which lists of codecs form a chain. Everything that does not depend on the bytes of a chunk is
  computed once, here.
- There is no separate path for full reads: a full read is a selection that covers the chunk. The codecs determine
  in which of three ways chunks are read: uncompressed elements by their byte ranges, shards by means of their index,
  all other chunks as a whole.
- A fast path may decline; the general path then runs and reports errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrlite.buffers import scratch
from zarrlite.buffers.pieces import Value, join, size_of
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source
from zarrlite.errors import ArgumentError, DataError, MetadataError, TruncatedError
from zarrlite.extensions.extension import Extension, Ignored
from zarrlite.pipeline.chain import check_chain
from zarrlite.pipeline.codec import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    ArraySpec,
    BytesBytesCodec,
    Codec,
    Framing,
    Patches,
)
from zarrlite.pipeline.decoding import Budget, Limit, decode_array, decode_bytes, decoding_failed
from zarrlite.pipeline.elements import ElementLayout, NDArray
from zarrlite.pipeline.reading import FailedPart, Framed, Part, Reading, Request, read_part_from_memory, unframed
from zarrlite.selections.selection import Selection, everything
from zarrlite.selections.sparse import SparseBatch
from zarrlite.stores.base import IN_MEMORY, Limits
from zarrlite.tuning import (
    BATCH_BYTES,
    DECODE_TOGETHER_BYTES,
    MAX_SCRATCH_BYTES,
    NEAR_BYTES,
    PREFIX_BYTES,
    SCRATCH_BYTES,
    SMALL_CHUNK_BYTES,
)


class Pipeline:
    """The codecs of an array, prepared for chunks of one shape."""

    def __init__(self, codecs: Sequence[Codec | Ignored], spec: ArraySpec) -> None:
        check_chain(codecs)
        self.spec = spec
        self.nbytes = spec.size * spec.dtype.itemsize  # size of a decoded chunk
        self.filters: list[tuple[ArrayArrayCodec, ArraySpec]] = []
        self.compressors: list[tuple[BytesBytesCodec, Limit]] = []
        for i, codec in enumerate(codecs):
            try:
                spec = self._add(codec, spec)
            except MetadataError as error:
                raise error.under(f"/{i}") from None
        self._steps = self.compressors[::-1]  # in decoding order
        self._prepare_reading()
        self._prepare_units()
        # whether encoding a chunk depends on the stored value that is replaced
        self.needs_old = self.serializer.needs_old or any(_keeps_old(codec) for codec, _ in self.compressors)

    def _add(self, codec: Extension, spec: ArraySpec) -> ArraySpec:
        """Add one codec to the chain. Returns the spec for the next one."""
        if isinstance(codec, ArrayArrayCodec):
            encoded = codec.encoded_spec(spec)
            self.filters.append((codec, spec))
            return encoded
        if isinstance(codec, ArrayBytesCodec):
            self.serializer = codec.bind(spec)
            self.encoded_size = self.serializer.encoded_size  # size of a stored chunk; None if it depends on the data
            self.limit = self.serializer.limit  # limit for the size of a stored chunk
            # largest size of a stored chunk; None if elements vary in length, and for shards, which may contain gaps
            bounded = not self.limit.per_byte and codec.inner_chunk_shape is None
            self.max_size = self.limit.fixed if bounded else None
        elif isinstance(codec, BytesBytesCodec):
            self.compressors.append((codec, self.limit))
            self.limit = Limit(codec.max_encoded_size(self.limit.fixed), self.limit.per_byte)
            self.max_size = None if self.max_size is None else codec.max_encoded_size(self.max_size)
            if self.encoded_size is not None:
                self.encoded_size = codec.encoded_size(self.encoded_size)
        return spec

    def _prepare_reading(self) -> None:
        """Decide in which of the three ways chunks are read."""
        framings = [codec for codec, _ in self.compressors if isinstance(codec, Framing) and not codec.verifies]
        self.head = sum(codec.head for codec in framings)
        self.tail = sum(codec.tail for codec in framings)
        # whether parts of the serialized chunk can be read without reading the whole stored chunk
        self.reads_parts = len(framings) == len(self.compressors)
        # layouts of the elements in the serialized chunk and in the stored one; None if positions of elements vary
        self.decoded_layout = self._decoded_layout()
        self.layout: ElementLayout | None = None
        if self.reads_parts and self.decoded_layout is not None:
            self.layout = self.decoded_layout.framed(self.head, self.tail)
        # whether a read needs only one request per chunk
        self.one_request = self.layout is not None or not self.reads_parts
        # the range of a chunk of the maximum size, plus one byte to detect a longer one
        self.whole = ALL if self.max_size is None else ByteRange(0, self.max_size + 1)
        size = self.decoded_layout.size if self.decoded_layout is not None and not self.reads_parts else 0
        # how many chunks are best decoded or encoded together
        self.decode_batch = max(1, BATCH_BYTES // size) if 0 < size <= DECODE_TOGETHER_BYTES else 1
        self.encode_batch = max(1, BATCH_BYTES // size) if 0 < size <= SMALL_CHUNK_BYTES else 1
        # whether decoding may stop after the last byte that is needed: only for large chunks with a checksum, which is
        # verified first
        verified = any(isinstance(codec, Framing) and codec.verifies for codec, _ in self.compressors[1:])
        self._decodes_prefix = size >= PREFIX_BYTES and verified

    def _prepare_units(self) -> None:
        """Compute the largest number of bytes decoded or encoded in one step; 0 for reading uncompressed chunks."""
        whole = everything(self.spec.shape)
        framed = all(isinstance(codec, Framing) for codec, _ in self.compressors)
        writes_parts = framed and self._encode_selection(whole) is not None
        reads_parts = framed and self._encode_selection(whole, elementwise=True) is not None
        self.write_unit = max(self.serializer.write_unit, 0 if writes_parts else self.nbytes)
        self.read_unit = max(self.serializer.read_unit, 0 if reads_parts else self.nbytes) if self.layout is None else 0

    def _decoded_layout(self) -> ElementLayout | None:
        layout = self.serializer.layout
        for codec, _ in reversed(self.filters):
            layout = None if layout is None else codec.decoded_layout(layout)
        return layout

    # Reading

    def read(
        self, handles: Sequence[Any], parts: Sequence[Part], limits: Limits, budget: Budget | None = None
    ) -> Reading[list[int]]:
        """Read parts of several chunks into their targets. Returns the indices of the missing chunks.

        A handle identifies the value of a chunk. Ranges of a value that are close together are merged into one, as
        `limits` specifies.
        Raises FailedPart if a chunk is damaged.
        """
        if self.layout is not None:
            return self._read_elements(self.layout, handles, parts, limits)
        if not self.reads_parts:
            return self._read_whole(handles, parts, limits, budget)
        if self.filters or self.head or self.tail:
            return self._read_serialized(handles, parts, limits)
        return self.serializer.read(handles, parts, limits)

    def _read_elements(
        self, layout: ElementLayout, handles: Sequence[Any], parts: Sequence[Part], limits: Limits
    ) -> Reading[list[int]]:
        """Read the byte ranges of uncompressed elements."""
        extents = layout.extents([selection for selection, _ in parts], max(NEAR_BYTES, limits.gap))
        size = layout.size
        requests: list[Request] = [
            (handle, byte_range, size)
            for handle, extent in zip(handles, extents, strict=True)
            for byte_range in extent.ranges
        ]
        target = memory_of(*parts[0], layout) if len(parts) == 1 else None
        memory = target or _scratch_for(requests, limits)
        answers: Any = yield requests, memory
        missing: list[int] = []
        first = i = 0
        try:
            for i, extent in enumerate(extents):
                last = first + len(extent.ranges)
                buffers = answers[first:last]
                if None in buffers:
                    missing.append(i)
                elif target is None or not is_in(buffers[0], target):
                    parts[i][1][...] = layout.read(extent, buffers)
                first = last
        except DataError as error:
            raise FailedPart(i, error) from error
        if memory is not None and target is None:
            scratch.release(memory)
        return missing

    def read_sparse(self, handles: Sequence[Any], batch: SparseBatch, out: NDArray) -> Reading[list[int]]:
        """Read a few elements of each of several chunks. Returns the indices of the missing chunks.

        Only for chains with a `layout`. Elements of missing chunks have arbitrary values. The error for a damaged
        chunk does not tell which chunk it is.
        """
        layout: Any = self.layout
        ranges, places = layout.sparse_extent(batch.numbers, batch.counts)
        requests: list[Request] = [(handle, r, layout.size) for handle, r in zip(handles, ranges, strict=True)]
        answers = yield requests, None
        lengths = [stop - start for start, stop in ranges]
        pieces = [bytes(n) if answer is None else answer for n, answer in zip(lengths, answers, strict=True)]
        if [*map(len, pieces)] != lengths:
            raise TruncatedError("is too short", codec=layout.codec)
        out[...] = layout.check(np.frombuffer(b"".join(pieces), layout.dtype)[places])
        return [i for i, answer in enumerate(answers) if answer is None]

    def _read_whole(
        self, handles: Sequence[Any], parts: Sequence[Part], limits: Limits, budget: Budget | None
    ) -> Reading[list[int]]:
        """Read whole chunks. Small ones are decoded together."""
        requests: list[Request] = [(handle, self.whole, None) for handle in handles]
        memory = None if self.max_size is None else _scratch_for(requests, limits)
        answers: Any = yield requests, memory
        numbers = [i for i, answer in enumerate(answers) if answer is not None]
        for first in range(0, len(numbers), self.decode_batch):
            batch = numbers[first : first + self.decode_batch]
            if len(batch) == 1 or not self._place_together([answers[i] for i in batch], [parts[i] for i in batch]):
                for i in batch:
                    try:
                        self.place(answers[i], *parts[i], budget)
                    except DataError as error:
                        raise FailedPart(i, error) from error
        if memory is not None:
            scratch.release(memory)
        return [] if len(numbers) == len(parts) else [i for i, answer in enumerate(answers) if answer is None]

    def _place_together(self, values: list[Buffer], parts: list[Part]) -> bool:
        """Decode chunks together and copy the parts to their targets. Returns False if one of them is damaged."""
        memory = scratch.acquire(len(values) * self.decoded_layout.size)  # type: ignore[union-attr]
        arrays = self.decode_many(values, memory)
        if arrays is not None:
            for array, (selection, target) in zip(arrays, parts, strict=True):
                target[...] = selection.take(array)
        scratch.release(memory)
        return arrays is not None

    def place(self, value: Buffer, selection: Selection, target: NDArray, budget: Budget | None = None) -> None:
        """Decode a stored chunk and copy part of it to its target."""
        if not self.reads_parts:
            self._check_size(value)
        layout = self.decoded_layout
        if layout is None:
            data = decode_bytes(value, self._steps)
            if budget is not None:
                budget.spend(len(data))
            read_part_from_memory(self._read_filtered([InMemory(data)], [(selection, target)], IN_MEMORY))
        elif self.reads_parts or layout.size <= SMALL_CHUNK_BYTES:
            target[...] = selection.take(layout.array(decode_bytes(value, self._steps)))
        elif memory := memory_of(selection, target, layout):
            data = self._decode_into(value, memory)
            if data is not memory:
                target[...] = layout.array(data)
        else:
            self._place_part(value, layout, selection, target)

    def _place_part(self, value: Buffer, layout: ElementLayout, selection: Selection, target: NDArray) -> None:
        """Decode a large chunk, if possible only up to the end of the needed part, and copy the part to its target."""
        extent = layout.extent(selection)
        stop = max(byte_range.stop or 0 for byte_range in extent.ranges) if self._decodes_prefix else layout.size
        memory = scratch.acquire(stop)
        data = self._decode_into(value, memory[:stop])
        if len(data) != stop:
            layout.check_size(len(data))
        target[...] = layout.read(extent, [byte_range.of(data) for byte_range in extent.ranges])
        scratch.release(memory)

    def _check_size(self, value: Buffer) -> None:
        if self.max_size is not None and len(value) > self.max_size:
            raise TruncatedError(f"has more than {self.max_size} bytes, the limit for this chunk")

    def _read_serialized(self, handles: Sequence[Any], parts: Sequence[Part], limits: Limits) -> Reading[list[int]]:
        """Read the ranges that the array -> bytes codec needs, from chunks that are framed but not compressed."""
        if not self.head and not self.tail:
            return self._read_filtered(handles, parts, limits)
        framed = [self._framed(handle, i) for i, handle in enumerate(handles)]
        return unframed(self._read_filtered(framed, parts, limits))

    def _framed(self, handle: Any, number: int) -> Framed:
        """Return a handle of the serialized chunk, given that of the stored chunk."""
        return Framed(handle, number, self.head, self.tail, self.compressors[0][0].name)

    def _read_filtered(self, handles: Sequence[Any], parts: Sequence[Part], limits: Limits) -> Reading[list[int]]:
        """Read parts of serialized chunks through the array -> array codecs."""
        if not self.filters:
            return self.serializer.read(handles, parts, limits)
        encoded = [self._encode_selection(selection) for selection, _ in parts]
        if None not in encoded:
            pairs: Any = zip(encoded, parts, strict=True)
            return self.serializer.read(handles, [(selection, target) for selection, (_, target) in pairs], limits)
        return self._read_through_filters(handles, parts, limits)

    def _read_through_filters(
        self, handles: Sequence[Any], parts: Sequence[Part], limits: Limits
    ) -> Reading[list[int]]:
        """Read chunks through filters that change elements. Reads whole chunks unless the filters are elementwise."""
        spec = self.serializer.spec
        encoded = [self._encode_selection(selection, elementwise=True) for selection, _ in parts]
        arrays = [np.empty(spec.shape if below is None else below.shape, spec.dtype) for below in encoded]
        needed = [everything(spec.shape) if below is None else below for below in encoded]
        missing = yield from self.serializer.read(handles, [*zip(needed, arrays, strict=True)], limits)
        for i, (array, below, (selection, target)) in enumerate(zip(arrays, encoded, parts, strict=True)):
            if i not in missing:
                try:
                    target[...] = (
                        selection.take(self._undo_filters(array)) if below is None else self._decode_part(array)
                    )
                except DataError as error:
                    raise FailedPart(i, error) from error
        return missing

    def _decode_part(self, array: NDArray) -> NDArray:
        """Undo the elementwise filters for some elements of a chunk."""
        for codec, spec in reversed(self.filters):
            if codec.elementwise:
                array = decode_array(codec, array, spec.reshaped(array.shape))
        return array

    def read_element(self, handle: Any, coords: tuple[int, ...]) -> Reading[Any]:
        """Read a single element as numpy represents it. Returns None if the chunk is missing."""
        layout = self.decoded_layout
        if not self.reads_parts and layout is not None and layout.is_number:
            return self._read_compressed_element(handle, coords)
        if self.layout is None and self.reads_parts and not self.filters:
            if not self.head and not self.tail:
                return self.serializer.element(handle, coords)
            return unframed(self.serializer.element(self._framed(handle, 0), coords))
        return self._read_any_element(handle, coords)

    def _read_compressed_element(self, handle: Any, coords: tuple[int, ...]) -> Reading[Any]:
        requests: list[Request] = [(handle, self.whole, None)]
        memory = None if self.max_size is None else _scratch_for(requests, IN_MEMORY)
        (value,) = yield requests, memory
        element = None if value is None else self.element(value, coords)
        if memory is not None:
            scratch.release(memory)
        return element

    def _read_any_element(self, handle: Any, coords: tuple[int, ...]) -> Reading[Any]:
        target = np.empty((1,) * len(coords), self.spec.dtype)
        missing = yield from self.read([handle], [(Selection.box(coords, target.shape), target)], IN_MEMORY)
        return None if missing else target.reshape(())[()]

    def element(self, value: Buffer, coords: tuple[int, ...]) -> Any:
        """Decode one element of a stored chunk. Only for chains with a `decoded_layout` of numbers."""
        self._check_size(value)
        layout: Any = self.decoded_layout
        position = layout.position(coords)
        if not self._decodes_prefix:
            data = decode_bytes(value, self._steps)
            if len(data) != layout.size:
                layout.check_size(len(data))
            return np.frombuffer(data, layout.dtype, 1, position)[0]
        stop = position + layout.dtype.itemsize
        memory = scratch.acquire(stop)
        data = self._decode_into(value, memory[:stop])
        if len(data) != stop:
            layout.check_size(len(data))
        element = np.frombuffer(data, layout.dtype, 1, position)[0]
        scratch.release(memory)
        return element

    # Decoding

    def take(self, data: Buffer, selection: Selection) -> NDArray:
        """Return the selected elements of a stored chunk."""
        target = np.empty(selection.shape, self.spec.dtype)
        self.place(data, selection, target)
        return target

    def decode(self, data: Buffer) -> NDArray:
        """Decode a whole chunk."""
        data = decode_bytes(data, self._steps)
        if self.decoded_layout is not None:
            return self.decoded_layout.array(data)
        return self._undo_filters(self.serializer.decode(data))

    def decode_many(self, values: Sequence[Buffer], memory: memoryview) -> NDArray | None:
        """Decode several chunks into `memory`, as one array with a new first axis.

        Only for chains with a `decoded_layout`. Returns None if a chunk is damaged or cannot be decoded this way;
        decoding the chunks one by one then raises the error for the damaged one.
        """
        layout: Any = self.decoded_layout
        size, memory = layout.size, memory[: len(values) * layout.size]
        codec, _ = self._steps[-1]
        try:
            for step in self._steps if isinstance(codec, Framing) else self._steps[:-1]:
                values = [decode_bytes(value, (step,)) for value in values]
            if not isinstance(codec, Framing):
                if not _decode_into(codec, values, memory, size):
                    return None
            elif not _copy_into(values, memory, size):
                return None
            shape, strides = (len(values), *layout.shape), (size, *layout.strides)
            array: NDArray = np.ndarray(shape, layout.dtype, memory, layout.offset, strides)
            return layout.check(array)  # type: ignore[no-any-return]
        except DataError:
            return None

    def _decode_into(self, data: Buffer, memory: memoryview) -> Buffer:
        """Undo the bytes -> bytes codecs, into `memory` if the last one to be undone supports it."""
        data = decode_bytes(data, self._steps[:-1])
        codec, _ = self._steps[-1]
        if _decode_into(codec, (data,), memory, self.decoded_layout.size):  # type: ignore[union-attr]
            return memory
        return decode_bytes(data, self._steps[-1:])

    def _undo_filters(self, array: NDArray) -> NDArray:
        for codec, spec in reversed(self.filters):
            array = decode_array(codec, array, spec)
        return array

    # Encoding

    def encode(self, array: NDArray, old: Buffer | None = None) -> Value | None:
        """Encode a whole chunk that replaces an old one. Returns None if it need not be stored."""
        return self._encode(array, old) if self.spec.is_stored(array) else None

    def _encode(self, array: NDArray, old: Buffer | None) -> Value:
        for codec, spec in self.filters:
            array = codec.encode(array, spec)
        serialized = decode_bytes(old, self._steps) if old is not None and self.serializer.needs_old else None
        return self._compress(self.serializer.encode(array, serialized), old)

    def encode_always(self, array: NDArray, old: Buffer | None = None) -> Buffer:
        """Encode a whole chunk even if it contains only the fill value."""
        return join(self._encode(array, old))

    def encode_many(self, arrays: NDArray, maybe_fill: Sequence[bool]) -> list[Value | None]:
        """Encode several contiguous chunks, along the first axis of an array, as `encode` does.

        Only for chains with a `decoded_layout`, without filters and without `needs_old`. `maybe_fill` tells which
        chunks may contain only the fill value.
        """
        stored = [True] * len(arrays)
        if True in maybe_fill and not self.spec.options.write_empty:
            stored = [not (maybe and self.spec.is_fill(a)) for a, maybe in zip(arrays, maybe_fill, strict=True)]
        layout: Any = self.decoded_layout
        elements = (arrays if all(stored) else arrays[stored]).astype(layout.dtype, copy=False)
        data, size = elements.reshape(-1).view("u1").data, layout.size
        values: Any = [data[i : i + size] for i in range(0, len(data), size)]
        for codec, _ in self.compressors:
            if isinstance(codec, Framing):
                values = [codec.wrap(value) for value in values]
            else:
                buffers = [join(value) if type(value) is list else value for value in values]
                values = codec.encode_many(buffers) if values else values
        encoded = iter(values)
        return [next(encoded) if is_stored else None for is_stored in stored]

    def _compress(self, value: Value, old: Buffer | None = None) -> Value:
        """Apply the bytes -> bytes codecs. Raises an error if the limits would not allow decoding the result."""
        if not self.compressors:
            return value
        replaced = self._replaced(old)
        unbounded = []
        for (codec, limit), replaced_value in zip(self.compressors, replaced, strict=True):
            size = size_of(value)
            if limit.per_byte or size > limit.fixed:
                unbounded.append((size, limit))
            value = codec.wrap(value, replaced_value) if isinstance(codec, Framing) else codec.encode(join(value))
        stored = size_of(value) if unbounded else 0
        for size, limit in unbounded:
            if size > limit.of(stored):
                raise ArgumentError(
                    f"this chunk compresses too well ({size} to {stored} bytes): the limit on decompression would"
                    " prevent it from being read back; use smaller chunks"
                )
        return value

    def _replaced(self, old: Buffer | None) -> list[Buffer | None]:
        """Return the old value as encoded by each bytes -> bytes codec. Those that are not needed are None."""
        found: list[Buffer | None] = [None] * len(self.compressors)
        keeping = [i for i, (codec, _) in enumerate(self.compressors) if _keeps_old(codec)]
        if old is not None and keeping:
            for i in range(len(found) - 1, keeping[0] - 1, -1):
                found[i] = old
                if i > keeping[0]:
                    old = decode_bytes(old, self.compressors[i : i + 1])
        return found

    # Changing parts

    def update(self, old: Buffer | None, selection: Selection, values: NDArray) -> Value | None:
        """Return a stored chunk with some elements overwritten. Returns None if only the fill value is left."""
        encoded = self._encode_selection(selection)
        if encoded is None:
            array = self.spec.filled() if old is None else np.array(self.decode(old), self.spec.dtype)
            selection.put(array, values)
            return self.encode(array, old)
        covered = selection.spans_all(self.spec.shape) and not self.serializer.needs_old
        serialized = None if covered or old is None else decode_bytes(old, self._steps)
        new = self.serializer.update(serialized, encoded, values)
        return None if new is None else self._compress(new, old)

    def patch(self, source: Source, selection: Selection, values: NDArray) -> Patches | None:
        """Return the patches that change part of a stored chunk. Returns None if the chunk must be rewritten."""
        sources = [source]
        for codec, _ in self._steps:
            if not isinstance(codec, Framing) or codec.depends_on_value:
                return None
            sources.append(codec.window(sources[-1]))
        encoded = self._encode_selection(selection)
        patches = None if encoded is None else self.serializer.patch(sources.pop(), encoded, values)
        for codec, _ in self.compressors:
            if patches is not None and isinstance(codec, Framing):
                patches = codec.patch(patches, sources.pop())
        return patches

    def _encode_selection(self, selection: Selection, *, elementwise: bool = False) -> Selection | None:
        """Return the selection of the same elements after filtering. Returns None if a filter cannot translate it.

        With `elementwise`, filters that change only the values of elements are skipped.
        """
        encoded: Selection | None = selection
        for codec, _ in self.filters:
            if encoded is not None and not (elementwise and codec.elementwise):
                encoded = codec.encode_selection(encoded)
        return encoded


def _copy_into(values: Sequence[Buffer], memory: memoryview, size: int) -> bool:
    """Copy values into slots of `size` bytes. Returns False if one of them has another size."""
    for i, value in enumerate(values):
        if len(value) != size:
            return False
        memory[i * size : (i + 1) * size] = value
    return True


def _decode_into(codec: BytesBytesCodec, values: Sequence[Buffer], memory: memoryview, size: int) -> bool:
    try:
        return codec.decode_into(values, memory, size)
    except Exception as error:
        decoding_failed(error, codec.name)


def _keeps_old(codec: BytesBytesCodec) -> bool:
    return isinstance(codec, Framing) and codec.keeps_old


def memory_of(selection: Selection, target: NDArray, layout: ElementLayout) -> memoryview | None:
    """Return the memory of `target` if the selected elements can be read directly into it."""
    if (
        selection.covers(layout.shape)
        and target.flags.c_contiguous
        and target.dtype == layout.dtype
        and layout.row_major
        and layout.is_number
    ):
        return target.reshape(-1).view("u1").data
    return None


def is_in(answer: Buffer, memory: memoryview) -> bool:
    """Whether an answer was read into the memory provided for it and fills this memory."""
    return type(answer) is memoryview and answer.obj is memory.obj and len(answer) == len(memory)


def _scratch_for(requests: Sequence[Request], limits: Limits) -> memoryview | None:
    """Return a scratch buffer for the answers to these requests, if they are large enough to make it worthwhile.

    Returns None for stores that serve several requests at the same time: they allocate memory for each answer.
    """
    if limits.concurrency != 1:
        return None
    size = 0
    for _, (start, stop), _ in requests:
        size += (stop or 0) - start
    return scratch.acquire(size) if SCRATCH_BYTES <= size <= MAX_SCRATCH_BYTES else None
