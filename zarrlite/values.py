"""numpy values on their way in and out: memory for results, casting as numpy assigns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.selection import Shape

NDArray = np.ndarray[Any, Any]


def allocate(shape: Shape, dtype: np.dtype[Any]) -> NDArray:
    """Memory for a result, or the reason why there is none."""
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError) as error:
        needed = math.prod(shape) * dtype.itemsize
        raise SelectionError(f"a selection of shape {shape} needs {needed} bytes of memory: {error}") from None


def cast(value: Any, dtype: np.dtype[Any]) -> NDArray:
    """Values as numpy would assign them."""
    try:
        if hasattr(value, "__array__"):
            return np.asarray(value).astype(dtype, copy=False)
        return np.asarray(value, dtype) if not isinstance(value, bytes) else scalar_array(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"the values cannot be stored as {dtype}: {error}") from None


def scalar_array(value: Any, dtype: np.dtype[Any]) -> NDArray:
    """A scalar as an array of no dimensions, every bit kept."""
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value
    array = np.empty((), dtype)
    array[()] = value
    return array
