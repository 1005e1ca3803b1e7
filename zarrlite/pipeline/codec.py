"""The three kinds of codec, and an array -> bytes codec bound to a chunk shape.

Rules
- A codec needs to implement only `encode` and `decode`. Partial reads and writes then work, but process the whole
  chunk. The other methods have correct defaults and exist to save time.
- `decode` of a bytes -> bytes codec receives the maximum size of its result and must not produce more bytes.
- Every exception that `decode` raises reaches the user as a DataError, unless it is another ZarrliteError.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self, final

import numpy as np

from zarrlite.buffers.pieces import Patch, Value, as_list, join
from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source, Window, inner_size
from zarrlite.data_types.base import DataType
from zarrlite.errors import MetadataError, TruncatedError
from zarrlite.extensions.extension import Extension
from zarrlite.pipeline.anatomy import Anatomy, Field
from zarrlite.pipeline.decoding import Limit, decode_array
from zarrlite.pipeline.elements import ElementLayout, NDArray
from zarrlite.pipeline.reading import FailedPart, Part, Reading, Request, read_part_from_memory
from zarrlite.selections.casting import scalar_array
from zarrlite.selections.selection import Selection
from zarrlite.stores.base import IN_MEMORY, Limits

Patches = list[Patch]  # patches of a stored value, to be written in this order


class ChunkOptions(NamedTuple):
    """The runtime options of an array that are passed to its codecs."""

    write_empty: bool = False  # whether chunks that contain only the fill value are stored
    require_chunks: bool = False  # whether a missing chunk is an error
    max_bytes: int | None = None  # limit for the bytes decoded or encoded at once; None means `default_limit`


class ArraySpec:
    """The properties of arrays that a codec may depend on: shape, data type, fill value, runtime options."""

    __slots__ = ("_first", "data_type", "dtype", "fill", "fill_fault", "options", "shape", "size")

    def __init__(
        self, shape: tuple[int, ...], data_type: DataType, fill: Any, options: ChunkOptions = ChunkOptions()
    ) -> None:
        self.shape = shape
        self.data_type = data_type
        self.dtype = data_type.dtype
        self.fill = scalar_array(fill, self.dtype)
        # why an earlier filter cannot encode the fill value of the array; None if there is no such filter
        self.fill_fault: str | None = None
        self.options = options
        self.size = math.prod(shape)
        self._first: Any = (*(0,) * len(shape), ...)

    def reshaped(self, shape: tuple[int, ...]) -> ArraySpec:
        """Return the same spec with another shape."""
        return self._changed(shape, self.data_type, self.fill, self.fill_fault)

    def recast(self, data_type: DataType, fill: Any, fill_fault: str | None = None) -> ArraySpec:
        """Return the same spec with another data type and fill value.

        A filter that cannot encode the fill value passes an arbitrary value as `fill`, and the reason as `fill_fault`;
        codecs that need the fill value then refuse the chain.
        """
        return self._changed(self.shape, data_type, fill, self.fill_fault or fill_fault)

    def _changed(self, shape: tuple[int, ...], data_type: DataType, fill: Any, fill_fault: str | None) -> ArraySpec:
        spec = ArraySpec(shape, data_type, fill, self.options)
        spec.fill_fault = fill_fault
        return spec

    def require_fill(self) -> None:
        """Raise MetadataError if a filter cannot encode the fill value of the array."""
        if self.fill_fault is not None:
            raise MetadataError(self.fill_fault, kind="conflict")

    def filled(self) -> NDArray:
        """Return a new array that contains only the fill value."""
        array = np.empty(self.shape, self.dtype)
        array[...] = self.fill
        return array

    def is_fill(self, array: NDArray) -> bool:
        """Whether an array contains only the fill value, bit for bit."""
        if self.dtype.hasobject or self.data_type.itemsize is None:
            return bool((array == self.fill).all())
        if array[self._first].tobytes() != self.fill.tobytes():
            return False  # in most chunks, the first element already differs from the fill value
        bits = f"u{self.dtype.itemsize}" if self.dtype.itemsize in (1, 2, 4, 8) else f"V{self.dtype.itemsize}"
        array = np.ascontiguousarray(array, self.dtype)
        return bool((array.view(bits) == self.fill.view(bits)).all())

    def is_stored(self, array: NDArray) -> bool:
        """Whether a chunk is stored: if any of its elements differs from the fill value, or `write_empty` is set."""
        return self.options.write_empty or not self.is_fill(array)


class Codec(Extension):
    """One step of a codec chain."""

    kind = "codec"

    def fitted(self, spec: ArraySpec) -> Self:
        """Choose the settings that the codec leaves open, for a new array. Returns the codec with these settings.

        `spec` describes the chunks that reach the codec; for a bytes -> bytes codec, those that reach the array ->
        bytes codec before it. Override this method if the best setting depends on the elements.
        """
        return self


class BytesBytesCodec(Codec):
    """bytes -> bytes: a compressor. For checksums and padding see `Framing`."""

    @abstractmethod
    def encode(self, data: Buffer) -> Buffer:
        """Encode a value."""

    @abstractmethod
    def decode(self, data: Buffer, limit: int) -> Buffer:
        """Decode a value to at most `limit` bytes. A larger result must be refused before memory for it is allocated.

        `data` may be in a scratch buffer that is overwritten once the chunk has been read.
        """

    def decode_into(self, values: Sequence[Buffer], memory: memoryview, size: int) -> bool:
        """Decode values, each of which decodes to `size` bytes, into consecutive slots of equal length.

        The slots fill `memory`. A slot shorter than `size` receives the first bytes of its value; callers request this
        only if a checksum has verified the value. Returns False if this is not possible or a value is damaged; then
        `decode` raises the reason. Override this method if a library can decode into existing memory, or many values
        in one call.
        """
        return False

    def encode_many(self, values: Sequence[Buffer]) -> Sequence[Value]:
        """Encode several values. Override this method if a library can encode many values in one call."""
        return [self.encode(value) for value in values]

    def encoded_size(self, size: int) -> int | None:
        """Return the encoded size of a value of `size` bytes. Returns None if it depends on the data."""
        return None

    def max_encoded_size(self, size: int) -> int:
        """Return the maximum encoded size of a value of `size` bytes."""
        exact = self.encoded_size(size)
        return size + size // 4 + 2**16 if exact is None else exact


class Framing(BytesBytesCodec):
    """bytes -> bytes: `head` bytes before the value and `tail` bytes after it; the value itself is unchanged.

    Parts of the value are read by shifting byte ranges. If the frame verifies the value, the whole value is read.
    """

    head: int = 0
    tail: int = 0
    verifies: bool = False  # whether `verify` proves that the value is undamaged
    depends_on_value: bool = False  # whether the frame is computed from the value
    keeps_old: bool = False  # whether overwriting a value keeps its old frame

    @abstractmethod
    def frame(self, value: Value) -> tuple[Buffer, Buffer]:
        """Return the bytes before and after a value."""

    def verify(self, data: Buffer) -> None:
        """Raise ChecksumError if a framed value is damaged."""

    def fields(self) -> tuple[list[Field], list[Field]]:
        """Describe the bytes before and after a value. Override this method if these bytes consist of named fields."""
        head = Field("leading padding", self.head, "padding")
        tail = Field("trailing padding", self.tail, "padding")
        if self.verifies:
            tail = Field("checksum", self.tail, "checksum")
        return [head] if self.head else [], [tail] if self.tail else []

    @final
    def wrap(self, value: Value, old: Buffer | None = None) -> Value:
        """Return a value in its frame. If the codec keeps old frames, the frame of `old`, a framed value, is reused."""
        pieces = as_list(value)
        if self.depends_on_value:
            # join lazy pieces now: otherwise each would be generated twice, to compute the frame and to store the value
            pieces = [piece if isinstance(piece, Buffer) else piece.join() for piece in pieces]
        if old is not None and self.keeps_old:
            size = inner_size(len(old), self.head, self.tail, self.name)
            head, tail = memoryview(old)[: self.head], memoryview(old)[self.head + size :]
        else:
            head, tail = self.frame(pieces)  # type: ignore[assignment]
        return [*((head,) if self.head else ()), *pieces, *((tail,) if self.tail else ())]

    @final
    def encode(self, data: Buffer) -> Buffer:
        return join(self.wrap(data))

    @final
    def decode(self, data: Buffer, limit: int) -> memoryview:
        """Verify a framed value and return it without its frame."""
        end = len(data) - self.tail
        if end < self.head:
            raise TruncatedError(f"has only {len(data)} bytes, but {self.name} alone adds {self.head + self.tail}")
        if self.verifies:
            self.verify(data)
        return memoryview(data)[self.head : end]

    @final
    def encoded_size(self, size: int) -> int:
        return size + self.head + self.tail

    @final
    def window(self, source: Source) -> Window:
        """Return a source of the value without its frame."""
        return Window(source, self.head, self.tail, self.name)

    @final
    def patch(self, patches: Patches, source: Source) -> Patches | None:
        """Translate patches of the value into patches of the framed value `source`.

        Returns None if the frame depends on the value, so that the value must be encoded again.
        """
        size = source.size()
        if self.depends_on_value or size is None:
            return None
        shifted = [(start + self.head, piece) for start, piece in patches]
        end = max([size - self.tail, *(start + len(piece) for start, piece in shifted)])
        frame: Patches = []
        if not self.keeps_old:
            head, tail = self.frame(b"")
            frame = [*([(0, head)] if self.head else ()), *([(end, tail)] if self.tail else ())]
        elif self.tail and end > size - self.tail:
            kept = source.read([ByteRange(size - self.tail, size)])
            frame = [(end, piece) for piece in kept or ()]
        return [*frame, *shifted]  # the value's patches come last, because the very last may be a shard's index


class ArrayArrayCodec(Codec):
    """array -> array: transposition, filters."""

    # whether each element is decoded independently, so that parts can be decoded without the rest
    elementwise: bool = False

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        """Return the spec of encoded arrays.

        Raises MetadataError, with a relative JSON pointer, if `spec` is not supported.
        """
        return spec

    @abstractmethod
    def encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        """Encode an array of `spec`."""

    @abstractmethod
    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        """Decode to an array of `spec`."""

    def encode_selection(self, selection: Selection) -> Selection | None:
        """Return the selection of the same elements, in the same order and with unchanged values, in the encoded array.

        Returns None if only whole chunks can be decoded and encoded.
        """
        return None

    def decoded_layout(self, layout: ElementLayout) -> ElementLayout | None:
        """Return the layout of decoded elements, given that of encoded ones. Returns None if positions can vary."""
        return None

    def decoded_shape(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the shape of the block that encodes to a block of this shape. Returns None if no block does."""
        return None


class ArrayBytesCodec(Codec):
    """array -> bytes: every chain has exactly one."""

    byte_order: str = "little"  # byte order of stored multi-byte elements
    inner_chunk_shape: tuple[int, ...] | None = None  # shape of the chunks inside a shard; None for other codecs

    @abstractmethod
    def encode(self, array: NDArray, spec: ArraySpec) -> Buffer:
        """Encode a chunk."""

    @abstractmethod
    def decode(self, data: Buffer, spec: ArraySpec) -> NDArray:
        """Decode a chunk to an array of `spec`."""

    def encoded_size(self, spec: ArraySpec) -> int | None:
        """Return the size of an encoded chunk. Returns None if it depends on the data."""
        return None

    def with_leading_bytes(self, nbytes: int) -> Self:
        """Return a codec that leaves this many bytes unused at the start of new values, if the format allows it."""
        return self

    def bind(self, spec: ArraySpec) -> Serializer:
        """Bind the codec to `spec`. Raises MetadataError, with a relative JSON pointer, if `spec` is not supported."""
        return Serializer(self, spec)


class Serializer:
    """An array -> bytes codec bound to a chunk shape."""

    layout: ElementLayout | None = None  # None if the positions of elements depend on the data

    def __init__(self, codec: ArrayBytesCodec, spec: ArraySpec) -> None:
        self.codec = codec
        self.spec = spec
        self.encoded_size = codec.encoded_size(spec)
        self.limit = self._limit()
        # size in bytes of the largest piece that is decoded or encoded at once
        self.read_unit = self.write_unit = spec.size * spec.dtype.itemsize

    def _limit(self) -> Limit:
        """Return the largest size of an encoded chunk.

        There is no fixed limit for elements of variable length. Real text compresses far less than 256 to 1, but short
        equal strings may exceed this ratio, hence the allowance for each element.
        """
        return Limit(2**24 + 64 * self.spec.size, 256) if self.encoded_size is None else Limit(self.encoded_size)

    # whether encoding and updating depend on the old value
    needs_old: bool = False

    @final
    def decode(self, data: Buffer) -> NDArray:
        """Decode a whole chunk; every exception becomes a DataError."""
        return decode_array(self.codec, data, self.spec) if self.layout is None else self.layout.array(data)

    def read(self, handles: Sequence[Any], parts: Sequence[Part], limits: Limits) -> Reading[list[int]]:
        """Read parts of chunks, as `Pipeline.read` does. Override this to avoid reading whole chunks."""
        wanted = ByteRange() if self.encoded_size is None else ByteRange(0, self.encoded_size + 1)
        requests: list[Request] = [(handle, wanted, None) for handle in handles]
        values = yield requests, None
        for i, (value, (selection, target)) in enumerate(zip(values, parts, strict=True)):
            if value is not None:
                try:
                    target[...] = selection.take(self.decode(value))
                except Exception as error:
                    raise FailedPart(i, error) from error
        return [i for i, value in enumerate(values) if value is None]

    @final
    def take(self, data: Buffer, selection: Selection) -> NDArray:
        """Return the selected elements of an encoded chunk."""
        target = np.empty(selection.shape, self.spec.dtype)
        read_part_from_memory(self.read([InMemory(data)], [(selection, target)], IN_MEMORY))
        return target

    def element(self, handle: Any, coords: tuple[int, ...]) -> Reading[Any]:
        """Read a single element. Returns None if the chunk is missing."""
        target = np.empty((1,) * len(coords), self.spec.dtype)
        missing = yield from self.read([handle], [(Selection.box(coords, target.shape), target)], IN_MEMORY)
        return None if missing else target.reshape(())[()]

    def encode(self, array: NDArray, old: Buffer | None = None) -> Value:
        """Encode a chunk. `old` is the encoded chunk that it replaces, and is used only if `needs_old`."""
        return self.codec.encode(array, self.spec)

    def update(self, old: Buffer | None, selection: Selection, values: NDArray) -> Value | None:
        """Return an encoded chunk with some elements overwritten. Returns None if only the fill value is left."""
        if selection.spans_all(self.spec.shape) or old is None:
            array = self.spec.filled()
        else:
            array = np.array(self.decode(old), self.spec.dtype)
        selection.put(array, values)
        return self.encode(array) if self.spec.is_stored(array) else None

    def patch(self, source: Source, selection: Selection, values: NDArray) -> Patches | None:
        """Return the patches that change part of a stored chunk. Returns None if the chunk must be rewritten."""
        return None

    def anatomy(self, header: Buffer | None = None) -> Anatomy | None:
        """Describe the inner structure of an encoded chunk. Returns None if it consists of elements only.

        `header` is the header of a stored chunk, for chunks described by `Header`. Raises DataError if the header is
        damaged. Without a header, describes newly written chunks.
        """
        return None


class CompressingSerializer(Serializer):
    """An array -> bytes codec that compresses elements of fixed size, bound to a chunk shape."""

    def _limit(self) -> Limit:
        """Return the largest size of an encoded chunk: incompressible data can become slightly larger."""
        size = self.spec.size * self.spec.dtype.itemsize
        return Limit(size + size // 4 + 2**16)


def byte_order_of(codecs: Iterable[Extension]) -> str:
    """Return the byte order in which a chain stores multi-byte elements."""
    return next((codec.byte_order for codec in codecs if isinstance(codec, ArrayBytesCodec)), "little")
