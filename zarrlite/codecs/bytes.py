"""The `bytes` codec: elements in lexicographical order, in one byte order.

Rules (codecs/bytes, Configuration parameters)
- `endian` is "Required for data types for which endianness is applicable".
- Legacy `structured` data without `endian` "MUST be treated as little-endian" (data-types/structured).
- Only the bytes that a selection needs are read, where the source can do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, Self

import numpy as np

from zarrlite.buffers.batch import Run
from zarrlite.buffers.packing import STEP, Packed
from zarrlite.buffers.ranges import Buffer, ByteRange, Pieces
from zarrlite.buffers.source import ArraySource, ByteSource
from zarrlite.errors import DataError, MetadataError, TruncatedError
from zarrlite.extensions.config import MAX_LENGTH, Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, Serializer, row_major_strides
from zarrlite.selections.selection import Selection, Span

Array = np.ndarray[Any, Any]
NEAR = 2**15  # bytes that cost less to read along than a request of their own
MOST_RANGES = 1024
LARGE = 2**18  # bytes of a chunk from which on it is packed as it is written


@register
@dataclass(frozen=True)
class Bytes(ArrayBytesCodec):
    """Elements one after the other, little or big endian."""

    name = "bytes"
    endian: str | None = "little"

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.string("endian", ("little", "big"), default=None))

    @property
    def byte_order(self) -> str:  # type: ignore[override]
        return self.endian or "little"

    def prepare(self, spec: ArraySpec) -> Serializer:
        data_type = spec.data_type
        if data_type.itemsize is None:
            message = f"bytes cannot store {data_type.name}, whose elements vary in length; use {data_type.serializer}"
            raise MetadataError(message, kind="conflict")
        if self.endian is None and data_type.has_byte_order and not data_type.endian_optional:
            message = f'is required for {data_type.name}: "little" or "big"'
            raise MetadataError(message, pointer="/configuration/endian", kind="missing")
        return RawSerializer(self, spec)

    def stored_dtype(self, spec: ArraySpec) -> np.dtype[Any]:
        """The dtype of elements as they lie on disk."""
        return spec.dtype.newbyteorder(">" if self.endian == "big" else "<")

    def encode(self, array: Array, spec: ArraySpec) -> Buffer:
        stored = np.ascontiguousarray(array, self.stored_dtype(spec))
        return stored.reshape(-1).view("u1").data

    def decode(self, data: Buffer, spec: ArraySpec) -> Array:
        expected = self.encoded_size(spec)
        if len(data) != expected:
            raise TruncatedError(_wrong_size(len(data), spec.shape, expected))
        return np.frombuffer(data, self.stored_dtype(spec)).reshape(spec.shape)

    def encoded_size(self, spec: ArraySpec) -> int:
        return spec.size * spec.dtype.itemsize


class RawSerializer(Serializer):
    """Elements at places that are known beforehand."""

    codec: Bytes

    def __init__(self, codec: Bytes, spec: ArraySpec) -> None:
        super().__init__(codec, spec)
        self.dtype = codec.stored_dtype(spec)
        self.strides = row_major_strides(spec.shape, self.dtype.itemsize)
        self.plain = self.dtype.kind in "iufc"  # numbers, of which every pattern of bits is one
        self.raw_dtype = self.dtype if self.plain else None

    def encode(self, array: Array, old: Buffer | None = None) -> Buffer:
        if array.dtype != self.dtype:
            array = array.astype(self.dtype)
        return array.reshape(-1).view("u1").data if array.flags.c_contiguous else array.tobytes()

    def encode_pieces(self, array: Array, old: Buffer | None = None) -> Pieces:
        if array.nbytes < LARGE or array.dtype != self.dtype or array.flags.c_contiguous:
            return self.encode(array)
        rows = max(1, STEP // array[:1].nbytes)
        return [Packed(array, [array[i : i + rows] for i in range(0, len(array), rows)])]

    def encode_many(self, arrays: Array) -> Sequence[Buffer]:
        if not self.encoded_size:
            return super().encode_many(arrays)
        return Run.even(self.encode(arrays), self.encoded_size)

    def decode(self, data: Buffer) -> Array:
        if len(data) != self.encoded_size:
            raise TruncatedError(_wrong_size(len(data), self.spec.shape, self.encoded_size), codec="bytes")
        array: Array = np.ndarray(self.spec.shape, self.dtype, data)
        return array if self.plain else self._checked(array)

    def decode_many(self, data: memoryview) -> Array:
        return self._checked(np.frombuffer(data, self.dtype).reshape(-1, *self.spec.shape))

    def view(self, source: ByteSource) -> ArraySource:
        return _RawElements(self, source)

    def element(self, source: ByteSource, coords: tuple[int, ...]) -> Any:
        if not self.plain:
            return super().element(source, coords)
        offset = sum(map(mul, coords, self.strides))
        size = source.known_size()
        if size is not None and size != self.encoded_size:
            raise TruncatedError(_wrong_size(size, self.spec.shape, self.encoded_size), codec="bytes")
        stop = offset + self.dtype.itemsize
        data = source.read_at(offset, stop)
        if data is None:
            return None
        if len(data) != self.dtype.itemsize:
            raise TruncatedError(f"ends before byte {stop}", codec="bytes")
        return np.frombuffer(data, self.dtype)[0]

    def pick(self, data: Buffer, coords: tuple[int, ...]) -> Any:
        if len(data) != self.encoded_size or not self.plain:
            return super().pick(data, coords)  # which says what is wrong
        return np.frombuffer(data, self.dtype, 1, sum(map(mul, coords, self.strides)))[0]

    def _checked(self, array: Array) -> Array:
        if self.plain:
            return array
        fault = self.spec.data_type.check(array)
        if fault:
            raise DataError(fault, codec=self.codec.name)
        return array


class _RawElements(ArraySource):
    """Elements read by byte range."""

    def __init__(self, serializer: RawSerializer, source: ByteSource) -> None:
        self.serializer = serializer
        self.source = source

    def read(self, selection: Selection, out: Array | None = None) -> Array | None:
        bound = self.serializer
        if not self.source.partial or not selection.shape or selection.covers(bound.spec.shape):
            data = self.source.read_all()
            return None if data is None else selection.take(bound.decode(data))
        if 0 in selection.shape:
            return np.empty(selection.shape, bound.dtype)
        size = self.source.known_size()
        if size is not None and size != bound.encoded_size:
            raise TruncatedError(_wrong_size(size, bound.spec.shape, bound.encoded_size), codec="bytes")
        if bound.codec.encoded_size(bound.spec) > MAX_LENGTH:
            raise TruncatedError(f"no stored value has {bound.encoded_size} bytes", codec="bytes")
        if selection.plain or all(type(part) is Span for part in selection.parts):
            array = self._read_spans(selection)
        elif len(selection.dims) == len(bound.strides):
            array = self._read_mesh(selection)
        else:
            array = self._read_points(selection)
        return None if array is None else bound._checked(array)

    def _read_spans(self, selection: Selection) -> Array | None:
        """One strided view from the first element to the last; several where they lie far apart along an axis."""
        bound, itemsize = self.serializer, self.serializer.dtype.itemsize
        strides: Sequence[int] = bound.strides
        if selection.plain:
            first = sum(map(mul, selection.starts, strides))
            strides = strides if selection.steps is None else list(map(mul, selection.steps, strides))
        else:
            spans: Any = zip(selection.parts, selection.dims, strict=True)
            places = [(start, step, strides[dim]) for (start, _, step), (dim,) in spans]
            first = sum([start * stride for start, _, stride in places])
            strides = [step * stride for _, step, stride in places]
        extents = [(n - 1) * stride for n, stride in zip(selection.shape, strides, strict=True)]
        reach, widest = sum(extents), max(extents)
        outer = extents.index(widest)
        rest, count = reach - widest + itemsize, selection.shape[outer]
        if count > 1 and count <= MOST_RANGES and strides[outer] - rest >= NEAR:
            return self._strided(first, [rest] * count, selection.shape, strides, outer)
        return self._view(first, first + reach + itemsize, selection.shape, strides)

    def _view(self, first: int, stop: int, shape: tuple[int, ...], strides: Sequence[int]) -> Array | None:
        """An array laid over the bytes between two offsets."""
        data = self.source.read_at(first, stop)
        if data is None:
            return None
        if len(data) != stop - first:
            raise TruncatedError(f"ends before byte {stop}", codec="bytes")
        return np.ndarray(shape, self.serializer.dtype, data, strides=strides)

    def _strided(
        self, first: int, lengths: list[int], shape: tuple[int, ...], strides: Sequence[int], axis: int
    ) -> Array | None:
        """Read ranges that stand `strides[axis]` apart and lay an array over each."""
        ranges = [ByteRange(first + i * strides[axis], first + i * strides[axis] + n) for i, n in enumerate(lengths)]
        found = self.source.read(ranges)
        if found is None:
            return None
        for r, data, n in zip(ranges, found, lengths, strict=True):
            if len(data) != n:
                raise TruncatedError(f"ends before byte {r.stop}", codec="bytes")
        dtype = self.serializer.dtype
        if len(found) == 1:
            return np.ndarray(shape, dtype, found[0], strides=strides)
        one = (*shape[:axis], 1, *shape[axis + 1 :])
        return np.concatenate([np.ndarray(one, dtype, data, strides=strides) for data in found], axis=axis)

    def _read_mesh(self, selection: Selection) -> Array | None:
        """The elements from the first to the last along each dimension, and those picked from them."""
        strides = self.serializer.strides
        first, reach, extents = 0, self.serializer.dtype.itemsize, list(strides)
        coordinates: list[tuple[Array]] = []
        for part, (dim,) in zip(selection.parts, selection.dims, strict=True):
            low, high, along = part.along_one
            first += low * strides[dim]
            reach += (high - low) * strides[dim]
            extents[dim] = high - low + 1
            coordinates.append((along,))
        found = self._view(first, first + reach, tuple(extents), strides)
        return None if found is None else found[selection.mesh(coordinates)]

    def _read_points(self, selection: Selection) -> Array | None:
        """The range from the first element to the last, and the elements picked from it."""
        bound, itemsize = self.serializer, self.serializer.dtype.itemsize
        strides = [stride // itemsize for stride in bound.strides]
        flat: Any = 0
        for axis, (part, dims) in enumerate(zip(selection.parts, selection.dims, strict=True)):
            along: Any = sum(coord * strides[dim] for dim, coord in zip(dims, part.coordinates(), strict=True))
            flat = flat + along.reshape([-1] + [1] * (len(selection.parts) - axis - 1))
        low, high = int(flat.min()), int(flat.max()) + 1
        elements = self._strided(low * itemsize, [(high - low) * itemsize], (high - low,), [itemsize], 0)
        return None if elements is None else elements[flat - low]


def _wrong_size(size: int, shape: tuple[int, ...], expected: int | None) -> str:
    return f"has {size} bytes, a chunk of shape {shape} has {expected}"
