"""Uncompressed elements: their positions in a value, and the byte ranges that a selection needs.

Rules
- A layout describes the bytes of a value as a strided array. The `bytes` codec creates it, `transpose` permutes its
  strides, and framing codecs shift its offset. Single elements, rows and sparse selections are then read in the same
  two steps, `extent` and `read`.
- Elements that are close together are read as one range, those that are far apart along one axis as several ranges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.errors import DataError, TruncatedError
from zarrlite.extensions.config import MAX_LENGTH
from zarrlite.selections.selection import FlatSelection, Selection, Shape, Span
from zarrlite.tuning import MAX_RANGES, NEAR_BYTES, SMALL_CHUNK_BYTES, SPARSE_ELEMENTS

NDArray = np.ndarray[Any, Any]
Check = Callable[[NDArray], str | None]


class Extent(NamedTuple):
    """Byte ranges of equal length that contain selected elements, and the strided array that each range contains."""

    ranges: list[ByteRange]
    shape: Shape  # shape of the array in one range
    strides: Sequence[int]
    axis: int = 0  # axis along which the arrays in several ranges are concatenated
    index: Any = None  # index that selects the elements from the array; None if all are selected


class ElementLayout:
    """Uncompressed elements of one dtype in a value of `size` bytes."""

    __slots__ = (
        "_check",
        "codec",
        "contiguous",
        "dtype",
        "end",
        "is_number",
        "offset",
        "row_major",
        "shape",
        "size",
        "strides",
    )

    def __init__(
        self,
        dtype: np.dtype[Any],
        shape: Shape,
        strides: Sequence[int],
        codec: str,
        check: Check | None,
        offset: int = 0,
        size: int | None = None,
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.strides = tuple(strides)
        self.codec = codec  # named in errors
        self._check = check  # function that returns a message if some elements are not valid values
        self.is_number = check is None  # whether every bit pattern is a valid element
        self.offset = offset  # position of the first element, in bytes
        nbytes = dtype.itemsize
        for n in shape:
            nbytes *= n
        self.size = nbytes if size is None else size
        self.end = offset + nbytes  # the offset after the last element
        self.row_major = self.strides == row_major_strides(shape, dtype.itemsize)
        # whether the value consists of its elements in row-major order, without other bytes
        self.contiguous = self.row_major and self.size == nbytes

    def transposed(self, order: Sequence[int]) -> ElementLayout:
        """Return the layout of the array that `numpy.transpose(array, order)` turns into an array with this layout."""
        axes = [order.index(dim) for dim in range(len(order))]
        shape = tuple([self.shape[axis] for axis in axes])
        strides = [self.strides[axis] for axis in axes]
        return ElementLayout(self.dtype, shape, strides, self.codec, self._check, self.offset, self.size)

    def framed(self, head: int, tail: int) -> ElementLayout:
        """Return the layout of the same elements with `head` bytes before the value and `tail` bytes after it."""
        offset, size = self.offset + head, self.size + head + tail
        return ElementLayout(self.dtype, self.shape, self.strides, self.codec, self._check, offset, size)

    def position(self, coords: Shape) -> int:
        """Return the offset of an element."""
        offset: int = sum(map(mul, coords, self.strides), self.offset)
        return offset

    def positions(self, numbers: NDArray) -> NDArray:
        """Return the offsets of elements, given their row-major numbers."""
        if self.row_major:
            return numbers * self.dtype.itemsize + self.offset
        coords = np.array(np.unravel_index(numbers, self.shape))
        return np.array(self.strides) @ coords + self.offset

    def check_size(self, size: int) -> None:
        """Raise TruncatedError unless this is the size of a value with this layout."""
        if size != self.size:
            raise TruncatedError(
                f"has {size} bytes, but a chunk of shape {self.shape} has {self.size}", codec=self.codec
            )

    def check(self, array: NDArray) -> NDArray:
        """Return the array. Raises DataError if an element has a bit pattern that is not a valid value."""
        if self._check is not None and (fault := self._check(array)):
            raise DataError(fault, codec=self.codec)
        return array

    def array(self, data: Buffer) -> NDArray:
        """Return all elements of a value, without a copy."""
        if len(data) != self.size:
            self.check_size(len(data))
        array: NDArray = np.ndarray(self.shape, self.dtype, data, self.offset, self.strides)
        return array if self._check is None else self.check(array)

    def extent(self, selection: Selection, at: int = 0, near: int = NEAR_BYTES) -> Extent:
        """Return the byte ranges of the selected elements, for a value that begins at the offset `at`.

        Elements that are less than `near` bytes apart are in one range.
        """
        if selection.plain and selection.shape == self.shape:
            return Extent([ByteRange(at + self.offset, at + self.end)], self.shape, self.strides)
        if self.size > MAX_LENGTH:
            message = f"a stored value must have at most {MAX_LENGTH} bytes, not {self.size}"
            raise TruncatedError(message, codec=self.codec)
        if selection.plain:
            first = sum(map(mul, selection.starts, self.strides), at + self.offset)
            if selection.steps is None:
                return self._strided(first, selection.shape, self.strides, near)
            return self._strided(first, selection.shape, [*map(mul, selection.steps, self.strides)], near)
        if isinstance(selection, FlatSelection):
            return self._picked(self.positions(selection.numbers), at)
        if all(type(part) is Span for part in selection.parts):
            spans: Any = zip(selection.parts, selection.dims, strict=True)
            places = [(start, step, self.strides[dim]) for (start, _, step), (dim,) in spans]
            first = at + self.offset + sum([start * stride for start, _, stride in places])
            return self._strided(first, selection.shape, [step * stride for _, step, stride in places], near)
        if self.size <= SMALL_CHUNK_BYTES and math.prod(selection.shape) > SPARSE_ELEMENTS:
            # reading all elements is cheaper than finding the range that holds the selected ones
            wanted = ByteRange(at + self.offset, at + self.end)
            return Extent([wanted], self.shape, self.strides, 0, selection.numpy_index()[0])
        if len(selection.dims) == len(self.strides):
            return self._mesh(selection, at)
        return self._points(selection, at)

    def extents(self, selections: Iterable[Selection], near: int = NEAR_BYTES) -> list[Extent]:
        """Return the extent of each selection, computed once for consecutive chunks that share the same selection."""
        found: list[Extent] = []
        previous: Selection | None = None
        for selection in selections:
            found.append(found[-1] if selection is previous else self.extent(selection, 0, near))
            previous = selection
        return found

    def sparse_extent(self, numbers: NDArray, counts: NDArray) -> tuple[list[ByteRange], NDArray]:
        """Return a byte range for a few elements in each of several values, and their positions in the joined ranges.

        `numbers` are the row-major numbers of the elements, value by value; `counts` contains the number of elements in
        each value. Positions are counted in elements, not in bytes.
        """
        firsts = np.cumsum(counts) - counts
        positions = self.positions(numbers)
        starts = np.minimum.reduceat(positions, firsts)
        stops = np.maximum.reduceat(positions, firsts) + self.dtype.itemsize
        lengths = stops - starts
        # for each value, the difference between offsets in the joined ranges and offsets in the value
        shifts = np.cumsum(lengths) - lengths - starts
        places = (positions + np.repeat(shifts, counts)) // self.dtype.itemsize
        return [*map(ByteRange, starts.tolist(), stops.tolist())], places

    def read(self, extent: Extent, buffers: Sequence[Buffer]) -> NDArray:
        """Return the selected elements, given the bytes of each range."""
        ranges, shape, strides, axis, index = extent
        start, stop = ranges[0]
        for i, data in enumerate(buffers):
            if len(data) != stop - start:  # type: ignore[operator]
                raise TruncatedError(f"ends before byte {ranges[i].stop}", codec=self.codec)
        array: NDArray = np.ndarray(shape, self.dtype, buffers[0], 0, strides)
        if len(ranges) > 1:
            others = (np.ndarray(shape, self.dtype, data, 0, strides) for data in buffers[1:])
            array = np.concatenate([array, *others], axis=axis)
        if index is not None:
            array = array[index]
        return array if self._check is None else self.check(array)

    def _strided(self, first: int, shape: Shape, strides: Sequence[int], near: int) -> Extent:
        """Return one range from the first element to the last, or several if elements are far apart along one axis."""
        reach = sum(map(mul, shape, strides)) - sum(strides) + self.dtype.itemsize
        if reach >= near:
            extents = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
            widest = max(extents)
            axis = extents.index(widest)
            rest, count, stride = reach - widest, shape[axis], strides[axis]
            if 1 < count <= MAX_RANGES and stride - rest >= near:
                starts = range(first, first + count * stride, stride)
                ranges = [ByteRange(start, start + rest) for start in starts]
                return Extent(ranges, (*shape[:axis], 1, *shape[axis + 1 :]), strides, axis)
        return Extent([ByteRange(first, first + reach)], shape, strides)

    def _mesh(self, selection: Selection, at: int) -> Extent:
        """Return one range, from the first to the last element of the bounding box of an orthogonal selection."""
        first, reach, shape = at + self.offset, self.dtype.itemsize, list(self.strides)
        coordinates: list[tuple[NDArray]] = []
        for part, (dim,) in zip(selection.parts, selection.dims, strict=True):
            low, high, along = part.along_one
            first += low * self.strides[dim]
            reach += (high - low) * self.strides[dim]
            shape[dim] = high - low + 1
            coordinates.append((along,))
        return Extent([ByteRange(first, first + reach)], tuple(shape), self.strides, 0, selection.mesh(coordinates))

    def _points(self, selection: Selection, at: int) -> Extent:
        """Return the range from the first selected element to the last."""
        flat: Any = 0
        for axis, (part, dims) in enumerate(zip(selection.parts, selection.dims, strict=True)):
            along: Any = sum(c * self.strides[dim] for dim, c in zip(dims, part.coordinates(), strict=True))
            flat = flat + along.reshape([-1] + [1] * (len(selection.parts) - axis - 1))
        return self._picked(flat + self.offset, at)

    def _picked(self, positions: Any, at: int) -> Extent:
        """Return the range that holds the elements at these offsets."""
        itemsize = self.dtype.itemsize
        low, high = int(positions.min()), int(positions.max())
        wanted = ByteRange(at + low, at + high + itemsize)
        return Extent([wanted], ((high - low) // itemsize + 1,), (itemsize,), 0, (positions - low) // itemsize)


def row_major_strides(shape: Shape, itemsize: int) -> Shape:
    """Return the distance in bytes between neighbours along each dimension of a row-major array."""
    strides = []
    for n in reversed(shape):
        strides.append(itemsize)
        itemsize *= n
    return tuple(reversed(strides))
