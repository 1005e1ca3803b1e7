"""Translation of numpy-style indices to selections.

Rules
- `array[...]` has the semantics of numpy, `oindex` selects along each dimension independently, `vindex` selects points,
  `blocks` selects whole chunks.
- Reversing axes, then reshaping once, turns the elements of a `Selection` into the result of the index. For assigned
  values, these steps are inverted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from operator import index as to_integer
from operator import mod
from typing import Any, NamedTuple

import numpy as np

from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.selections.selection import Part, Points, Selection, Shape, Span

NDArray = np.ndarray[Any, Any]
Bounds = Callable[[int], tuple[int, int]]  # maps the number of a chunk to its start and stop
Index = Any


class Request(NamedTuple):
    """A selection, and the steps that turn the selected elements into the result of an index."""

    selection: Selection
    shape: Shape  # the shape of the result that the user sees
    flips: tuple[slice, ...] | None  # slices that reverse the axes with negative steps; None if no step is negative
    scalar: bool = False  # whether every dimension is indexed by an integer

    def outward(self, result: NDArray) -> Any:
        """Turn the result of reading the selection into the result that the user sees."""
        if self.flips:
            result = result[self.flips]
        elif result.shape == self.shape:
            return result[()] if self.scalar else result
        return result.reshape(self.shape)[()] if self.scalar else result.reshape(self.shape)

    def inward(self, values: NDArray) -> NDArray:
        """Reshape assigned values to the shape of the selection. Returns a single value unchanged."""
        if values.ndim == 0 or (values.shape == self.shape == self.selection.shape and not self.flips):
            return values
        try:
            values = np.broadcast_to(values, self.shape)
        except ValueError:
            # on assignment, numpy drops additional leading axes of length one
            extra = values.ndim - len(self.shape)
            if extra <= 0 or any(n != 1 for n in values.shape[:extra]):
                message = f"values of shape {values.shape} cannot be broadcast to a selection of shape {self.shape}"
                raise ArgumentError(message) from None
            return self.inward(values.reshape(values.shape[extra:]))
        values = values.reshape(self.selection.shape)
        return values[self.flips] if self.flips else values


class _Axis(NamedTuple):
    """The selection along one dimension."""

    part: Span
    backwards: bool = False  # whether the result is in descending order
    dropped: bool = False  # whether the dimension is indexed by an integer, so that the result has no axis for it


def _integer(value: Any, length: int, dim: int) -> _Axis:
    """Select one position along a dimension."""
    i = to_integer(value)
    if not -length <= i < length:
        raise SelectionError(f"index {i} is out of bounds for dimension {dim} of length {length}")
    return _Axis(Span(i % length, 1), dropped=True)


def _slice(value: slice, length: int) -> _Axis:
    """Select the positions of a slice along a dimension."""
    try:
        start, stop, step = value.indices(length)
    except (TypeError, ValueError) as error:
        raise SelectionError(f"{value!r} is not a slice of integers: {error}") from None
    count = len(range(start, stop, step))
    if not count:
        return _Axis(Span(0, 0))
    if count == 1:
        step = 1
    if step < 0:
        return _Axis(Span(start + (count - 1) * step, count, -step), backwards=True)
    return _Axis(Span(start, count, step))


def _coordinates(value: NDArray, length: int, dim: int) -> NDArray:
    """Return an index array without negative positions, after checking its bounds."""
    coords = value.astype(np.intp, copy=False)
    if coords.size:
        low, high = coords.min(), coords.max()
        if low < -length or high >= length:
            outside = low if low < -length else high
            raise SelectionError(f"index {outside} is out of bounds for dimension {dim} of length {length}")
        if low < 0:
            coords = np.where(coords < 0, coords + length, coords)
    return coords


def _is_integer(item: Any) -> bool:
    """Whether an item of an index is an integer; booleans are masks."""
    if isinstance(item, (bool, np.bool_)):
        return False
    return isinstance(item, (int, np.integer)) or (
        isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu"
    )


def _as_array(item: Any) -> NDArray:
    """Return an index array of integers or booleans."""
    try:
        array = np.asarray(item)
    except (ValueError, TypeError):
        array = np.asarray(None)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.intp)  # an empty list is an index array without elements, as in numpy
    if array.dtype.kind not in "iub" or (array.ndim == 0 and array.dtype.kind == "b"):
        raise SelectionError(
            f"an index must be integers, slices, '...', None, or arrays of integers or booleans, not {item!r:.60}"
        )
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.intp).max:
        raise SelectionError(f"index {array.max()} is out of bounds")
    return array


def _expand(index: Index, ndim: int) -> list[Any]:
    """Expand the ellipsis of an index, so that every dimension has an item.

    A mask can be the item of several dimensions. New axes (None) are kept.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    used, ellipses, ellipsis_at = 0, 0, len(items)
    for i, item in enumerate(items):
        if item is Ellipsis:
            ellipses, ellipsis_at = ellipses + 1, i
        elif type(item) is int or type(item) is slice or _is_integer(item):
            used += 1
        elif item is not None:
            items[i] = array = _as_array(item)
            used += array.ndim if array.dtype.kind == "b" else 1
    if used > ndim:
        raise SelectionError(f"too many indices: the array has {ndim} dimensions, but {used} were indexed")
    if ellipses > 1:
        raise SelectionError("an index can have only a single ellipsis ('...')")
    # an ellipsis for zero dimensions is kept: it still separates the index arrays around it
    missing = [slice(None)] * (ndim - used)
    if missing:
        items[ellipsis_at : ellipsis_at + 1] = missing
    return items


def _mask_coordinates(mask: NDArray, shape: Shape, dim: int) -> list[NDArray]:
    """Return the index arrays of a mask, one for each dimension that it indexes."""
    if mask.shape == (0,):  # numpy accepts an empty mask for dimensions of any length; it selects nothing
        return [np.empty(0, np.intp)]
    indexed = shape[dim : dim + mask.ndim]
    if mask.shape != indexed:
        raise SelectionError(f"a mask must have the shape {indexed} of the dimensions it indexes, not {mask.shape}")
    return list(np.nonzero(mask))


def element(index: Index, shape: Shape) -> Shape | None:
    """Return the coordinates of a single element. Returns None if the index is not one valid integer per dimension."""
    # core spec, Concepts and terminology: "Each element is identified by a tuple of integer coordinates"
    items: Shape = index if type(index) is tuple else (index,)
    if len(items) != len(shape):
        return None
    for dim, i in enumerate(items):
        if type(i) is not int:
            return None
        if not 0 <= i < shape[dim]:
            break
    else:
        return items
    valid = all(type(i) is int and -n <= i < n for i, n in zip(items, shape, strict=True))
    return tuple(map(mod, items, shape)) if valid else None


def box(index: Index, shape: Shape) -> tuple[Selection, Shape] | None:
    """Return the selection for an index of integers and slices without steps, and the shape of the result.

    This is a fast path. It returns None for other indices, which `basic` then handles.
    """
    items = index if type(index) is tuple else (index,)
    if len(items) != len(shape):
        return None
    starts, lengths, has_integers = [], [], False
    for item, n in zip(items, shape, strict=True):
        if type(item) is slice:
            try:
                start, stop, step = item.indices(n)
            except (TypeError, ValueError):
                return None  # `basic` raises the reason
            if step != 1 or start > stop:
                return None
            starts.append(start)
            lengths.append(stop - start)
        elif type(item) is int and 0 <= item < n:
            starts.append(item)
            lengths.append(1)
            has_integers = True
        else:
            return None
    selection = Selection.box(tuple(starts), tuple(lengths))
    if not has_integers:
        return selection, selection.shape
    return selection, tuple([n for item, n in zip(items, lengths, strict=True) if type(item) is slice])


def basic(index: Index, shape: Shape) -> Request:
    """Return the request for `array[index]`, with the semantics of numpy."""
    items = _expand(index, len(shape))
    if [item for item in items if isinstance(item, np.ndarray) and not _is_integer(item)]:
        return _advanced(items, shape, point_axis=_point_axis(items))
    axes: list[_Axis] = []
    result_shape: list[int] = []
    for item in items:
        if item is Ellipsis:
            continue
        if item is None:
            result_shape.append(1)
            continue
        axis = _slice_or_integer(item, shape, len(axes))
        axes.append(axis)
        if not axis.dropped:
            result_shape.append(axis.part.length)
    scalar = not result_shape and Ellipsis not in (index if isinstance(index, tuple) else (index,))
    flips = _flips([axis.backwards for axis in axes])
    return Request(Selection([axis.part for axis in axes]), tuple(result_shape), flips, scalar)


def _slice_or_integer(item: Any, shape: Shape, dim: int) -> _Axis:
    """Select the positions of a slice or an integer along a dimension."""
    return _slice(item, shape[dim]) if isinstance(item, slice) else _integer(item, shape[dim], dim)


def _flips(backwards: Sequence[bool]) -> tuple[slice, ...] | None:
    """Return the slices that reverse some axes. Returns None if no axis is reversed."""
    if not any(backwards):
        return None
    return tuple(slice(None, None, -1) if flip else slice(None) for flip in backwards)


def _advanced(items: list[Any], shape: Shape, *, point_axis: int) -> Request:
    """Return the request for an index with index arrays.

    The index arrays are broadcast together. They select points, which form one axis of the selection; each slice forms
    another axis. In the result, the axes of the points are inserted at `point_axis` among those of slices and new axes.
    """
    coords: list[NDArray] = []
    point_dims: list[int] = []
    others: list[tuple[int, _Axis] | None] = []  # slices with their dimensions, and None for new axes
    dim = 0
    for item in items:
        if item is None:
            others.append(None)
        elif isinstance(item, slice):
            others.append((dim, _slice(item, shape[dim])))
            dim += 1
        elif item is not Ellipsis:
            array = np.asarray(item)
            for coord in _mask_coordinates(array, shape, dim) if array.dtype.kind == "b" else [array]:
                coords.append(_coordinates(coord, shape[dim], dim))
                point_dims.append(dim)
                dim += 1
    try:
        coords = list(np.broadcast_arrays(*coords))
    except ValueError:
        shapes = ", ".join(str(coord.shape) for coord in coords)
        raise SelectionError(f"index arrays of shapes {shapes} do not broadcast together") from None

    slices = [other for other in others if other is not None]
    position = sum(other is not None for other in others[:point_axis])  # a new axis selects nothing
    parts: list[Part] = [axis.part for _, axis in slices]
    parts.insert(position, Points(tuple(coord.ravel() for coord in coords)))
    dims: list[tuple[int, ...]] = [(dim,) for dim, _ in slices]
    dims.insert(position, tuple(point_dims))
    backwards = [axis.backwards for _, axis in slices]
    backwards.insert(position, False)

    result_shape = [1 if other is None else other[1].part.length for other in others]
    result_shape[point_axis:point_axis] = coords[0].shape
    return Request(Selection(parts, dims), tuple(result_shape), _flips(backwards))


def _point_axis(items: list[Any]) -> int:
    """Return where numpy puts the axes of the points: at the index arrays if these are adjacent, otherwise first."""
    is_array = [not (item is None or item is Ellipsis or isinstance(item, slice)) for item in items]
    groups = sum(1 for adjacent, _ in itertools.groupby(is_array) if adjacent)
    if groups > 1:
        return 0
    return sum(item is not Ellipsis for item in items[: is_array.index(True)])


def points(index: Index, shape: Shape) -> Request:
    """Return the request for `array.vindex[index]`. In the result, the axes of points precede those of slices."""
    items = _expand(_no_newaxis(index), len(shape))
    if all(isinstance(item, slice) or item is Ellipsis for item in items):
        raise SelectionError("vindex needs at least one index array; use array[...] for slices alone")
    return _advanced(items, shape, point_axis=0)


def orthogonal(index: Index, shape: Shape) -> Request:
    """Return the request for `array.oindex[index]`: each dimension is indexed independently."""
    parts: list[Part] = []
    backwards: list[bool] = []
    result_shape: list[int] = []
    for dim, item in enumerate(_per_dimension(index, shape)):
        if isinstance(item, slice) or _is_integer(item):
            axis = _slice_or_integer(item, shape, dim)
            parts.append(axis.part)
            backwards.append(axis.backwards)
            if not axis.dropped:
                result_shape.append(axis.part.length)
            continue
        if item.ndim != 1:
            raise SelectionError(f"oindex takes index arrays of one dimension, not {item.ndim}")
        (coord,) = _mask_coordinates(item, shape, dim) if item.dtype.kind == "b" else (item,)
        parts.append(Points((_coordinates(coord, shape[dim], dim),)))
        backwards.append(False)
        result_shape.append(parts[-1].length)
    return Request(Selection(parts), tuple(result_shape), _flips(backwards), scalar=not result_shape)


def blocks(index: Index, shape: Shape, grid: Shape, bounds: Callable[[int], Bounds]) -> Request:
    """Return the request for `array.blocks[index]`, whose integers and slices (of step 1) count chunks.

    An integer selects one chunk and keeps the axis. `grid` is the number of chunks along each dimension, and
    `bounds(dimension)` returns a function that maps the number of a chunk to its start and stop.
    """
    slices = []
    for dim, item in enumerate(_per_dimension(index, shape)):
        if isinstance(item, slice):
            axis = _slice(item, grid[dim])
        elif _is_integer(item):
            axis = _integer(item, grid[dim], dim)
        else:
            raise SelectionError("blocks takes only integers and slices")
        if axis.backwards or axis.part.step != 1:
            raise SelectionError("blocks takes only slices of step 1")
        first, count = axis.part.start, axis.part.length
        if count:
            start, stop = bounds(dim)(first)[0], bounds(dim)(first + count - 1)[1]
            slices.append(slice(start, min(stop, shape[dim])))
        else:
            slices.append(slice(0, 0))
    return basic(tuple(slices), shape)


def _per_dimension(index: Index, shape: Shape) -> list[Any]:
    """Return one item of an index for each dimension. Refuses new axes."""
    items = [item for item in _expand(_no_newaxis(index), len(shape)) if item is not Ellipsis]
    if len(items) != len(shape):
        raise SelectionError("only array[...] and vindex accept a mask of several dimensions")
    return items


def _no_newaxis(index: Index) -> Index:
    """Return the index, after checking that it has no new axes."""
    if index is None or (isinstance(index, tuple) and any(item is None for item in index)):
        raise SelectionError("new axes (None) are allowed only in array[...]")
    return index
