"""The three kinds of codec, and what is prepared from them once for each array.

Rules
- A codec author writes `encode` and `decode`; reading in parts is then right, and costs the whole chunk.
- `decode` of a bytes -> bytes codec gets the most bytes that may come out, and must not make more.
- Whatever `decode` raises reaches the user as a DataError.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrlite.buffers.ranges import Buffer, Pieces, joined
from zarrlite.buffers.source import ArraySource, ByteSource, Decoded, Held, Limit, decoding_failed
from zarrlite.cached import cached_property
from zarrlite.data_types.base import DataType
from zarrlite.errors import DataError
from zarrlite.extensions.extension import Extension
from zarrlite.selections.casting import scalar_array
from zarrlite.selections.selection import Selection, everything

Array = np.ndarray[Any, Any]
Piece = tuple[int, Buffer]  # bytes, and where in a value they go


class ArraySpec:
    """What a codec must know of the arrays that pass through it: shape, data type, fill value."""

    __slots__ = ("_first", "data_type", "dtype", "fill", "shape", "size", "write_empty")

    def __init__(self, shape: tuple[int, ...], data_type: DataType, fill: Any, *, write_empty: bool = False) -> None:
        self.shape = shape
        self.data_type = data_type
        self.dtype = data_type.dtype
        self.fill = scalar_array(fill, self.dtype)
        self.write_empty = write_empty  # whether chunks that hold nothing but the fill value are stored
        self.size = math.prod(shape)
        self._first: Any = (*(0,) * len(shape), ...)

    def reshaped(self, shape: tuple[int, ...]) -> ArraySpec:
        """The same elements in another shape."""
        return ArraySpec(shape, self.data_type, self.fill, write_empty=self.write_empty)

    def filled(self) -> Array:
        """A new array of this spec that holds nothing but the fill value."""
        array = np.empty(self.shape, self.dtype)
        array[...] = self.fill
        return array

    def is_fill(self, array: Array) -> bool:
        """Whether an array holds nothing but the fill value, bit for bit."""
        if self.dtype.hasobject or self.data_type.itemsize is None:
            return bool((array == self.fill).all())
        if array[self._first].tobytes() != self.fill.tobytes():
            return False  # the first element tells most chunks apart
        bits = f"u{self.dtype.itemsize}" if self.dtype.itemsize in (1, 2, 4, 8) else f"V{self.dtype.itemsize}"
        array = np.ascontiguousarray(array, self.dtype)
        return bool((array.view(bits) == self.fill.view(bits)).all())


class Codec(Extension):
    """One step of the chain."""

    kind = "codec"


class BytesBytesCodec(Codec):
    """bytes -> bytes: compression, checksums, padding."""

    @abstractmethod
    def encode(self, data: Buffer) -> Buffer:
        """The encoded form."""

    @abstractmethod
    def decode(self, data: Buffer, limit: int) -> Buffer:
        """The decoded form, which has at most `limit` bytes; more is an error, found before it is made.

        `data` is only lent: the memory behind it may hold something else once the chunk has been read.
        """

    def decode_many(self, values: Sequence[Buffer], limit: int) -> Sequence[Buffer]:
        """Several values, each as by `decode`; override where a library does many at once at less cost."""
        return [self.decode(value, limit) for value in values]

    def decode_into(self, data: Buffer, memory: memoryview) -> bool:
        """Decode to memory that has just the size of the decoded form; False: that could not be done, `decode` tells.

        Override where a library can: memory that is used again costs less than new memory.
        """
        return False

    def decode_side_by_side(self, values: Sequence[Buffer], memory: memoryview) -> bool:
        """Decode several values, which are as long as each other then, one behind the other: they fill the memory.

        False: that could not be done. Override as `decode_many`.
        """
        size = len(memory) // len(values)
        return all(self.decode_into(value, memory[i * size : (i + 1) * size]) for i, value in enumerate(values))

    fresh: bool = False  # whether nothing that `encode` returns is in the memory that it got

    def encode_many(self, values: Sequence[Buffer]) -> Sequence[Pieces]:
        """Several values, each as by `encode`, perhaps in pieces; override as `decode_many`."""
        return [self.encode(value) for value in values]

    verifies: bool = False  # whether `decode` refuses a damaged value, so that what is inside can be trusted

    def is_sound(self, data: Buffer) -> bool:
        """Whether a value begins with what it decodes to, unharmed; False: `decode` tells."""
        return False

    def unroll(self, data: Buffer, size: int) -> ByteSource | None:
        """A value that is known to be sound and decodes to `size` bytes, as a source that decodes no more than is read.

        None: there is no such thing.
        """
        return None

    needs_old: bool = False  # whether `encode_over` looks at the value that is overwritten

    def encode_over(self, data: Buffer, old: Buffer | None) -> Buffer:
        """The encoded form that takes the place of an old one."""
        return self.encode(data)

    def encode_pieces(self, data: Pieces, old: Buffer | None) -> Pieces:
        """The same for a value in pieces, perhaps in pieces; override where they stay as they are."""
        whole = joined(data) if type(data) is list else data
        return self.encode(whole) if old is None else self.encode_over(whole, old)  # type: ignore[arg-type]

    def view(self, source: ByteSource, limit: Limit) -> ByteSource:
        """The decoded value as a source; override where parts can be read without the whole."""
        return Decoded(self, source, limit)

    def patch(self, pieces: list[Piece], source: ByteSource) -> list[Piece] | None:
        """The same pieces as they are overwritten in the encoded form, which is `source`; None: that cannot be."""
        return None

    def encoded_size(self, size: int) -> int | None:
        """Bytes of the encoded form of `size` bytes; None: it depends on the data."""
        return None

    def max_encoded_size(self, size: int) -> int:
        """The most bytes that encoding `size` bytes can make."""
        exact = self.encoded_size(size)
        return size + size // 4 + 2**16 if exact is None else exact


class ArrayArrayCodec(Codec):
    """array -> array: transposition, filters."""

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        """What comes out; raises MetadataError, with a pointer relative to the codec, if `spec` cannot go in."""
        return spec

    @abstractmethod
    def encode(self, array: Array, spec: ArraySpec) -> Array:
        """The encoded array."""

    @abstractmethod
    def decode(self, array: Array, spec: ArraySpec) -> Array:
        """The decoded array, of `spec`."""

    def view(self, source: ArraySource, spec: ArraySpec) -> ArraySource:
        """The decoded array as a source; override where parts can be read without the whole."""
        return _Filtered(self, source, spec)

    def decoded_shape(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """The shape of what encodes to a block of this shape; None: there is no such thing."""
        return None

    def encode_update(self, selection: Selection, values: Array) -> tuple[Selection, Array] | None:
        """A partial write as the next codec sees it; None: only whole chunks can be encoded."""
        return None


class ArrayBytesCodec(Codec):
    """array -> bytes: the one that every chain has."""

    byte_order: str = "little"  # of multi-byte elements as they are stored
    inner_chunk_shape: tuple[int, ...] | None = None  # of a shard

    def prepare(self, spec: ArraySpec) -> Serializer:
        """Bind to a chunk; raises MetadataError, with a pointer relative to the codec, if `spec` cannot go in."""
        return Serializer(self, spec)

    @abstractmethod
    def encode(self, array: Array, spec: ArraySpec) -> Buffer:
        """The bytes of a chunk."""

    @abstractmethod
    def decode(self, data: Buffer, spec: ArraySpec) -> Array:
        """The chunk, of `spec`."""

    def encoded_size(self, spec: ArraySpec) -> int | None:
        """Bytes of an encoded chunk; None: it depends on the data."""
        return None


class Serializer:
    """An array -> bytes codec bound to a chunk."""

    def __init__(self, codec: ArrayBytesCodec, spec: ArraySpec) -> None:
        self.codec = codec
        self.spec = spec
        self.encoded_size = codec.encoded_size(spec)

    @cached_property
    def limit(self) -> Limit:
        """The most bytes that an encoded chunk can have.

        Where elements vary in length nothing fixed can be said. Real text compresses well below 256 to 1, short equal
        strings do not: hence the allowance for each element.
        """
        return Limit(2**24 + 64 * self.spec.size, 256) if self.encoded_size is None else Limit(self.encoded_size)

    @property
    def max_size(self) -> int | None:
        """The most bytes that a stored chunk can have; None: there is no telling."""
        return None if self.limit.per_byte else self.limit.fixed

    eager: bool = True  # whether all of a chunk is best decoded in one step, once its bytes are there
    needs_old: bool = False  # whether `encode` looks at the value that is overwritten

    def encode(self, array: Array, old: Buffer | None = None) -> Buffer:
        """The bytes of a chunk, which take the place of old ones."""
        return self.codec.encode(array, self.spec)

    def encode_pieces(self, array: Array, old: Buffer | None = None) -> Pieces:
        """The same, perhaps in pieces; override where one copy is saved by that."""
        return self.encode(array, old)

    def encode_many(self, arrays: Array) -> Sequence[Buffer]:
        """Several chunks along the first axis of an array, each as by `encode`."""
        return [self.encode(array) for array in arrays]

    raw_dtype: np.dtype[Any] | None = None  # of elements that are stored as they are, of any bits; None: not so
    patches: bool = False  # whether a part can be written without the rest

    def patch(self, source: ByteSource, selection: Selection, values: Array) -> list[Piece] | None:
        """What to overwrite in a chunk, in this order, so that a part of it changes; None: write it anew."""
        return None

    def decode(self, data: Buffer) -> Array:
        """The whole chunk; whatever goes wrong is a DataError."""
        return _decoded(self.codec, data, self.spec)

    def decode_many(self, data: memoryview) -> Array:
        """Several chunks of one encoded size, one behind the other, each as by `decode`, along a new first axis."""
        size = self.encoded_size or 1
        return np.stack([self.decode(data[i : i + size]) for i in range(0, len(data), size)])

    def view(self, source: ByteSource) -> ArraySource:
        """The chunk as a source; override where parts can be read without the whole."""
        return _Deserialized(self, source)

    def read(self, source: ByteSource, selection: Selection, out: Array | None = None) -> Array | None:
        """The selected elements, as the view has them; override where some are had without one."""
        return self.view(source).read(selection, out)

    def element(self, source: ByteSource, coords: tuple[int, ...]) -> Any:
        """A single element, as numpy has it; None: there is no such chunk."""
        found = self.view(source).read(Selection.box(coords, (1,) * len(coords)))
        return None if found is None else found.astype(self.spec.dtype, copy=False).reshape(())[()]

    def pick(self, data: Buffer, coords: tuple[int, ...]) -> Any:
        """A single element of a whole chunk."""
        return self.element(Held(data), coords)

    def update(self, old: Buffer | None, selection: Selection, values: Array) -> Pieces | None:
        """The bytes of a chunk of which a part is overwritten; None: nothing but the fill value is left."""
        if selection.spans_all(self.spec.shape) or old is None:
            array = self.spec.filled()
        else:
            array = np.array(self.decode(old), self.spec.dtype)
        selection.put(array, values)
        if not self.spec.write_empty and self.spec.is_fill(array):
            return None
        return self.encode(array)


class _Deserialized(ArraySource):
    """A chunk that must be decoded as a whole."""

    def __init__(self, serializer: Serializer, source: ByteSource) -> None:
        self.serializer = serializer
        self.source = source

    def read(self, selection: Selection, out: Array | None = None) -> Array | None:
        data = self.source.read_all()
        return None if data is None else selection.take(self.serializer.decode(data))


class _Filtered(ArraySource):
    """An array that must be decoded as a whole."""

    def __init__(self, codec: ArrayArrayCodec, source: ArraySource, spec: ArraySpec) -> None:
        self.codec = codec
        self.source = source
        self.spec = spec

    def read(self, selection: Selection, out: Array | None = None) -> Array | None:
        array = self.source.read(everything(self.codec.encoded_spec(self.spec).shape))
        return None if array is None else selection.take(_decoded(self.codec, array, self.spec))


def _decoded(codec: ArrayArrayCodec | ArrayBytesCodec, encoded: Any, spec: ArraySpec) -> Array:
    """What a codec makes of its input, which is an array of the shape that it must have, or a DataError."""
    try:
        array = codec.decode(encoded, spec)
    except Exception as error:
        decoding_failed(error, codec.name)
    if array.shape != spec.shape:
        raise DataError(f"decodes to shape {array.shape}, the chunk has {spec.shape}", codec=codec.name)
    return array


def byte_order_of(codecs: Sequence[Extension]) -> str:
    """Of multi-byte elements as a chain stores them."""
    return next((codec.byte_order for codec in codecs if isinstance(codec, ArrayBytesCodec)), "little")


def row_major_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Bytes between neighbours along each dimension, row-major."""
    strides = []
    for n in reversed(shape):
        strides.append(itemsize)
        itemsize *= n
    return tuple(reversed(strides))
