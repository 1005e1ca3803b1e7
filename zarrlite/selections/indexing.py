"""numpy-style index -> normal form.

Rules
- `array[...]` means what numpy means by it, `oindex` picks along each dimension independently, `vindex` picks points,
  `blocks` counts in chunks.
- The result of reading a `Selection` becomes the result of the index by flipping axes and one reshape; what is assigned
  goes the same way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as to_integer
from operator import mod
from typing import Any, NamedTuple

import numpy as np

from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.selections.selection import Array, Part, Points, Selection, Shape, Span

Index = Any


class Request(NamedTuple):
    """A selection, and how its result is turned into what numpy would return."""

    selection: Selection
    shape: Shape  # of what the user sees
    flips: tuple[slice, ...] | None  # axes of the result that run backwards
    scalar: bool = False  # every dimension was given as an integer

    def outward(self, result: Array) -> Any:
        """What the user gets."""
        if self.flips:
            result = result[self.flips]
        elif result.shape == self.shape:
            return result[()] if self.scalar else result
        return result.reshape(self.shape)[()] if self.scalar else result.reshape(self.shape)

    def inward(self, values: Array) -> Array:
        """What is stored: values in the shape of the selection, or a single one."""
        if values.ndim == 0 or (values.shape == self.shape == self.selection.shape and not self.flips):
            return values
        try:
            values = np.broadcast_to(values, self.shape)
        except ValueError:
            # numpy lets leading axes of length one fall away on assignment
            lead = values.ndim - len(self.shape)
            if lead <= 0 or any(n != 1 for n in values.shape[:lead]):
                raise _misfit(values.shape, self.shape) from None
            return self.inward(values.reshape(values.shape[lead:]))
        values = values.reshape(self.selection.shape)
        return values[self.flips] if self.flips else values


def _misfit(given: Shape, wanted: Shape) -> ArgumentError:
    return ArgumentError(f"values of shape {given} do not fit a selection of shape {wanted}")


class _Axis(NamedTuple):
    """How one dimension is picked from."""

    part: Span
    backwards: bool = False
    dropped: bool = False


def _integer(value: Any, length: int, dim: int) -> _Axis:
    i = to_integer(value)
    if not -length <= i < length:
        raise SelectionError(f"index {i} is out of bounds for dimension {dim} of length {length}")
    return _Axis(Span(i % length, 1), dropped=True)


def _slice(value: slice, length: int) -> _Axis:
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


def _coordinates(value: Array, length: int, dim: int) -> Array:
    """An index array, counted from the start and within bounds."""
    coords = value.astype(np.intp, copy=False)
    if coords.size:
        low, high = coords.min(), coords.max()
        if low < -length or high >= length:
            wrong = low if low < -length else high
            raise SelectionError(f"index {wrong} is out of bounds for dimension {dim} of length {length}")
        if low < 0:
            coords = np.where(coords < 0, coords + length, coords)
    return coords


def _is_integer(item: Any) -> bool:
    if isinstance(item, (bool, np.bool_)):
        return False
    return isinstance(item, (int, np.integer)) or (
        isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu"
    )


def _as_array(item: Any) -> Array:
    """An index array of integers or booleans from what the user wrote."""
    try:
        array = np.asarray(item)
    except (ValueError, TypeError):
        array = np.asarray(None)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.intp)  # numpy reads [] as no integers
    if array.dtype.kind not in "iub" or (array.ndim == 0 and array.dtype.kind == "b"):
        raise SelectionError(
            f"{item!r:.60} is not an index: integers, slices, ..., None, or arrays of integers or booleans"
        )
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.intp).max:
        raise SelectionError(f"index {array.max()} is out of bounds")
    return array


def _expand(index: Index, ndim: int) -> list[Any]:
    """The index as a list with one item for each dimension (a mask for several), plus None for new axes."""
    items = list(index) if isinstance(index, tuple) else [index]
    used, ellipses, at = 0, 0, len(items)
    for i, item in enumerate(items):
        if item is Ellipsis:
            ellipses, at = ellipses + 1, i
        elif type(item) is int or type(item) is slice or _is_integer(item):
            used += 1
        elif item is not None:
            items[i] = array = _as_array(item)
            used += array.ndim if array.dtype.kind == "b" else 1
    if used > ndim:
        raise SelectionError(f"too many indices: the array has {ndim} dimensions, {used} were indexed")
    if ellipses > 1:
        raise SelectionError("an index can have only a single ellipsis ('...')")
    # an ellipsis that stands for no dimension is kept: it still parts the index arrays around it
    items[at : at + 1] = [slice(None)] * (ndim - used) or items[at : at + 1]
    return items


def _mask_coordinates(mask: Array, shape: Shape, dim: int) -> list[Array]:
    """A boolean array as index arrays, one for each dimension it stands for."""
    if mask.shape == (0,):  # as numpy has it: no index at all, whatever the length
        return [np.empty(0, np.intp)]
    if mask.shape != shape[dim : dim + mask.ndim]:
        raise SelectionError(f"a mask of shape {mask.shape} does not fit dimensions {shape[dim : dim + mask.ndim]}")
    return list(np.nonzero(mask))


def element(index: Index, shape: Shape) -> Shape | None:
    """The coordinates of a single element, if that is what is meant by integers and nothing else."""
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
    counted_back = all(type(i) is int and -n <= i < n for i, n in zip(items, shape, strict=True))
    return tuple(map(mod, items, shape)) if counted_back else None


def box(index: Index, shape: Shape) -> tuple[Selection, Shape] | None:
    """What integers and slices without steps select, and the shape of what the user sees; None: it is not as simple."""
    items = index if type(index) is tuple else (index,)
    if len(items) != len(shape):
        return None
    starts, lengths, picked = [], [], False
    for item, n in zip(items, shape, strict=True):
        if type(item) is slice:
            try:
                start, stop, step = item.indices(n)
            except (TypeError, ValueError):
                return None  # and `basic` says what is wrong
            if step != 1 or start > stop:
                return None
            starts.append(start)
            lengths.append(stop - start)
        elif type(item) is int and 0 <= item < n:
            starts.append(item)
            lengths.append(1)
            picked = True
        else:
            return None
    selection = Selection.box(tuple(starts), tuple(lengths))
    if not picked:
        return selection, selection.shape
    return selection, tuple([n for item, n in zip(items, lengths, strict=True) if type(item) is slice])


def basic(index: Index, shape: Shape) -> Request:
    """`array[index]` as numpy reads it."""
    items = _expand(index, len(shape))
    if [item for item in items if isinstance(item, np.ndarray) and not _is_integer(item)]:
        return _advanced(items, shape, force_front=False)
    axes: list[_Axis] = []
    final: list[int] = []
    for item in items:
        if item is None or item is Ellipsis:
            final += [1] * (item is None)
            continue
        dim = len(axes)
        axis = _slice(item, shape[dim]) if isinstance(item, slice) else _integer(item, shape[dim], dim)
        axes.append(axis)
        if not axis.dropped:
            final.append(axis.part.length)
    scalar = not final and Ellipsis not in (index if isinstance(index, tuple) else (index,))
    return Request(Selection([a.part for a in axes]), tuple(final), _flips([a.backwards for a in axes]), scalar)


def _flips(backwards: Sequence[bool]) -> tuple[slice, ...] | None:
    return tuple(slice(None, None, -1) if b else slice(None) for b in backwards) if any(backwards) else None


def _advanced(items: list[Any], shape: Shape, *, force_front: bool) -> Request:
    """Index arrays broadcast together into one axis of points; slices keep axes of their own.

    The points stand where the index arrays stood if these are neighbours, else (or if forced) in front, as in numpy.
    """
    dim = 0
    coords: list[Array] = []
    point_dims: list[int] = []
    others: list[tuple[int, _Axis] | None] = []  # None: a new axis
    place, runs, inside = 0, 0, False
    for item in items:
        if item is Ellipsis:
            inside = False
            continue
        if item is None or isinstance(item, slice):
            others.append(None if item is None else (dim, _slice(item, shape[dim])))
            dim += item is not None
            inside = False
            continue
        if not inside:
            runs += 1
            place = len(others) if runs == 1 else 0
            inside = True
        array = np.asarray(item)
        picked = _mask_coordinates(array, shape, dim) if array.dtype.kind == "b" else [array]
        for coordinate in picked:
            coords.append(_coordinates(coordinate, shape[dim], dim))
            point_dims.append(dim)
            dim += 1
    try:
        together = np.broadcast_arrays(*coords)
    except ValueError:
        shapes = ", ".join(str(c.shape) for c in coords)
        raise SelectionError(f"index arrays of shapes {shapes} do not broadcast together") from None
    if force_front:
        place = 0
    points = Points(tuple(c.ravel() for c in together))
    front, back = others[:place], others[place:]
    parts: list[Part] = [o[1].part for o in front if o] + [points] + [o[1].part for o in back if o]
    dims = [(o[0],) for o in front if o] + [tuple(point_dims)] + [(o[0],) for o in back if o]
    backwards = [o[1].backwards for o in front if o] + [False] + [o[1].backwards for o in back if o]

    def lengths(items: list[tuple[int, _Axis] | None]) -> list[int]:
        return [o[1].part.length if o else 1 for o in items]

    final = (*lengths(front), *together[0].shape, *lengths(back))
    return Request(Selection(parts, dims), final, _flips(backwards))


def points(index: Index, shape: Shape) -> Request:
    """`array.vindex[index]`: index arrays broadcast together, in front of what slices pick."""
    items = _expand(_no_newaxis(index), len(shape))
    if all(isinstance(item, slice) or item is Ellipsis for item in items):
        raise SelectionError("vindex needs at least one index array; use array[...] for slices alone")
    return _advanced(items, shape, force_front=True)


def orthogonal(index: Index, shape: Shape) -> Request:
    """`array.oindex[index]`: every dimension on its own."""
    parts: list[Part] = []
    backwards: list[bool] = []
    final: list[int] = []
    for dim, item in enumerate(_per_dimension(index, shape)):
        if isinstance(item, slice) or _is_integer(item):
            axis = _slice(item, shape[dim]) if isinstance(item, slice) else _integer(item, shape[dim], dim)
            parts.append(axis.part)
            backwards.append(axis.backwards)
            if not axis.dropped:
                final.append(axis.part.length)
            continue
        if item.ndim != 1:
            raise SelectionError(f"oindex takes arrays of one dimension, not of {item.ndim}")
        (picked,) = _mask_coordinates(item, shape, dim) if item.dtype.kind == "b" else (item,)
        parts.append(Points((_coordinates(picked, shape[dim], dim),)))
        backwards.append(False)
        final.append(parts[-1].length)
    return Request(Selection(parts), tuple(final), _flips(backwards), scalar=not final)


def blocks(index: Index, shape: Shape, chunk_shape: Shape) -> Request:
    """`array.blocks[index]`: integers and slices (step 1) that count chunks; an integer keeps its axis."""
    grid = tuple(-(-n // c) for n, c in zip(shape, chunk_shape, strict=True))
    slices = []
    for dim, item in enumerate(_per_dimension(index, shape)):
        if isinstance(item, slice):
            axis = _slice(item, grid[dim])
        elif _is_integer(item):
            axis = _integer(item, grid[dim], dim)
        else:
            raise SelectionError("blocks takes integers and slices")
        if axis.backwards or axis.part.step != 1:
            raise SelectionError("blocks takes slices of step 1")
        first, count, length = axis.part.start, axis.part.length, chunk_shape[dim]
        slices.append(slice(first * length, min((first + count) * length, shape[dim])))
    return basic(tuple(slices), shape)


def _per_dimension(index: Index, shape: Shape) -> list[Any]:
    """One item for each dimension."""
    items = [item for item in _expand(_no_newaxis(index), len(shape)) if item is not Ellipsis]
    if len(items) != len(shape):
        raise SelectionError("masks here have one dimension")
    return items


def _no_newaxis(index: Index) -> Index:
    if index is None or (isinstance(index, tuple) and any(item is None for item in index)):
        raise SelectionError("new axes (None) are for array[...] only")
    return index
