"""Preparation of reads and writes: shapes, memory for results, values to assign, and fields of structs."""

from __future__ import annotations

import math
import operator
from typing import Any, Literal

import numpy as np

from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.selections.selection import Shape

NDArray = np.ndarray[Any, Any]
MAX_NDIM = 64  # dimensions; numpy's limit
_REMEDY = "replace missing values first, for example with"


def normalize_shape(shape: Any) -> Shape:
    """Return a tuple of lengths from a number or a sequence of numbers."""
    try:
        lengths = tuple(operator.index(n) for n in ((shape,) if is_number(shape) else shape))
    except TypeError:
        raise ArgumentError(f"shape must be a number or a sequence of numbers, not {shape!r}") from None
    if len(lengths) > MAX_NDIM or any(not 0 <= n < 2**63 for n in lengths):
        raise ArgumentError(f"shape must have at most {MAX_NDIM} lengths from 0 to 2**63 - 1, not {shape!r}")
    return lengths


def is_number(value: Any) -> bool:
    """Whether a shape is a single length instead of a sequence of lengths."""
    return isinstance(value, (int, np.integer))


def allocate(shape: Shape, dtype: np.dtype[Any], order: Literal["C", "F"] = "C") -> NDArray:
    """Allocate the memory for a result. Raises SelectionError if it is not available."""
    try:
        return np.empty(shape, dtype, order)
    except (MemoryError, ValueError) as error:
        size = math.prod(shape) * dtype.itemsize
        raise SelectionError(f"a selection of shape {shape} needs {size} bytes of memory: {error}") from None


def cast(value: Any, dtype: np.dtype[Any]) -> NDArray:
    """Convert values as a numpy assignment does; elements of an object dtype must be bytes.

    Missing values are refused where numpy would convert them to text, such as "None" or "nan".
    """
    if dtype.kind in "TUS" and not isinstance(value, (str, bytes)):
        _refuse_missing(value)
    try:
        if hasattr(value, "__array__"):
            array = np.asarray(value).astype(dtype, copy=False)
        else:
            array = scalar_array(value, dtype) if isinstance(value, bytes) else np.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"the values cannot be stored as {dtype}: {error}") from None
    if dtype.kind == "O":
        for item in array.flat:
            if not isinstance(item, bytes):
                remedy = f"; {_REMEDY} b''" if _is_missing(item) else ""
                raise ArgumentError(f"an element must be bytes, not {type(item).__name__}{remedy}")
    return array


def _refuse_missing(value: Any) -> None:
    """Raise ArgumentError if values to store as text contain None, NaN, NaT, `pandas.NA` or masked elements."""
    try:
        array = np.asarray(value) if hasattr(value, "__array__") else np.asarray(value, object)
    except (TypeError, ValueError):
        return  # the values do not form an array: the conversion to text reports this
    if array.dtype.kind == "T" and hasattr(array.dtype, "na_object"):
        array = array.astype(object)
    if isinstance(value, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(value)
    elif array.dtype.kind in "fcmM":
        missing = array != array
    elif array.dtype.kind == "O" and not {*map(type, array.flat)} <= {str, bytes, np.str_, np.bytes_}:
        missing = np.array([_is_missing(item) for item in array.flat], bool).reshape(array.shape)
    else:
        return
    if missing.any():
        first = tuple(np.argwhere(missing)[0].tolist())
        where = f"element {first} is" if first else "the value is"
        shown = "masked" if isinstance(value, np.ma.MaskedArray) else str(array[first])
        raise ArgumentError(f"values that are stored as text must not be missing, but {where} {shown}; {_REMEDY} ''")


def _is_missing(item: Any) -> bool:
    # types from pandas are compared by name, because pandas may not be installed
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(item, (float, np.floating, np.datetime64, np.timedelta64)) and bool(item != item)


def scalar_array(value: Any, dtype: np.dtype[Any]) -> NDArray:
    """Return a scalar as an array without dimensions, preserving all bits."""
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value
    if isinstance(value, np.generic) and value.dtype == dtype and len(value.tobytes()) == dtype.itemsize:
        return np.frombuffer(value.tobytes(), dtype).reshape(())
    array = np.empty((), dtype)
    array[()] = value
    return array


def split_fields(index: Any, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Split an index such as `a["x"]`, `a[["x", "y"]]` or `a["x", 0:3]` into the field names of a struct and the rest.

    Returns None and the whole index if it contains no field names.
    """
    items = index if isinstance(index, tuple) else (index,)
    names: list[str] = []
    several = False
    rest = []
    for item in items:
        if isinstance(item, str):
            names.append(item)
        elif isinstance(item, list) and item and all(isinstance(name, str) for name in item):
            names += item
            several = True
        else:
            rest.append(item)
    if not names:
        return None, index
    for name in names:
        if name not in (dtype.names or ()):
            known = ", ".join(map(repr, dtype.names)) if dtype.names else "none"
            raise SelectionError(f"there is no field {name!r} (fields: {known})")
    return (names if several or len(names) > 1 else names[0]), tuple(rest) or ...
