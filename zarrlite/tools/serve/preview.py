"""A picture of part of an array: a two-dimensional slice as a greyscale PNG, encoded without an imaging library.

Rules
- At most `MAX_PIXELS` rows and columns are shown; of a larger slice, only every n-th element is read. If the chunks of
  a slice have more than `MAX_READ` bytes in total, only its first chunks are shown.
- The smallest value is black and the largest is white; missing values (NaN, NaT, infinities) are transparent.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlencode

import numpy as np

from zarrlite.errors import SelectionError
from zarrlite.nodes.array import Array

MAX_PIXELS: Final = 512  # maximum number of rows, and of columns, in a picture
MAX_READ: Final = 2**26  # bytes; maximum total decoded size of the chunks that are read for a picture
Window = tuple[int, int]


class View(NamedTuple):
    """The part of an array that a picture shows: a window in one or two dimensions, and an index in the others."""

    axes: tuple[int, ...]  # the dimensions shown as rows and as columns; a one-dimensional array has only columns
    windows: tuple[Window, ...]  # the start and end of the window in each of these dimensions
    position: tuple[int, ...]  # an index for every dimension; unused for the dimensions that are shown

    @classmethod
    def parse(cls, array: Array, options: Mapping[str, Sequence[str]]) -> Self:
        """Return the view that the fields of a query describe. By default, it shows the last two dimensions.

        `rows` and `columns` are dimensions, `y` and `x` are windows such as `0:100`, and `i0`, `i1` ... are positions.

        Raises
        ------
        SelectionError
            If the array cannot be shown as a picture, or a field is malformed or outside of the array.
        """
        if not is_shown(array):
            raise SelectionError(
                f"{array.name} cannot be shown: it must have at least one dimension and one element, and its elements"
                " must be numbers, booleans or times"
            )
        count = min(2, array.ndim)
        defaults = range(array.ndim)[-count:]
        names = ("rows", "columns")[-count:]
        axes = tuple(_number(options, name, array.ndim, default) for name, default in zip(names, defaults, strict=True))
        if len(set(axes)) < count:
            raise SelectionError(f"rows and columns must be two different dimensions, not {axes[0]} twice")
        position = tuple(_number(options, f"i{dim}", n, 0) for dim, n in enumerate(array.shape))
        windows = [
            _window(options, name, array.shape[axis]) for name, axis in zip(("y", "x")[-count:], axes, strict=True)
        ]
        return cls(axes, tuple(_affordable(array, axes, windows)), position)

    def query(self, **changes: Any) -> str:
        """Return the fields of a query for this view, with changes such as `x=(0, 100)`."""
        fields: dict[str, Any] = dict(zip(("rows", "columns")[-len(self.axes) :], self.axes, strict=True))
        fields |= dict(zip(("y", "x")[-len(self.axes) :], self.windows, strict=True))
        fields |= {f"i{dim}": i for dim, i in enumerate(self.position) if dim not in self.axes}
        texts = {k: f"{v[0]}:{v[1]}" if isinstance(v, tuple) else v for k, v in {**fields, **changes}.items()}
        return urlencode(texts, safe=":")

    def selection(self) -> tuple[Any, ...]:
        """Return the index of the elements that are shown."""
        selection: list[Any] = [*self.position]
        for axis, (start, stop) in zip(self.axes, self.windows, strict=True):
            selection[axis] = slice(start, stop, -(-(stop - start) // MAX_PIXELS) or 1)
        return tuple(selection)


def is_shown(array: Array) -> bool:
    """Whether an array can be shown: it contains numbers, booleans or times, and has a dimension and an element."""
    is_number = array.dtype.kind in "biufcmM" or array.metadata.data_type.is_number
    return is_number and array.ndim > 0 and array.size > 0


def picture(array: Array, view: View) -> tuple[bytes, str, str]:
    r"""Return a view of an array as a PNG file, and the values that are shown as black and as white.

    >>> import zarrlite
    >>> array = zarrlite.create_array("memory://", data=[[0, 1], [2, 3]])
    >>> content, low, high = picture(array, View.parse(array, {}))
    >>> content[:4], low, high
    (b'\x89PNG', '0', '3')
    """
    values = np.atleast_2d(array[view.selection()])
    if len(view.axes) == 2 and view.axes[0] > view.axes[1]:
        values = values.T
    if values.dtype.kind == "c":
        values = np.abs(values)
    if values.dtype.kind in "mM":
        known = ~np.isnat(values)
        numbers = np.where(known, values.view("i8"), 0).astype("f8")
    else:
        numbers = values.astype("f8")
        known = np.isfinite(numbers)
    if not known.any():
        return png(np.zeros(values.shape, "u1")), "", ""
    low, high = numbers[known].min(), numbers[known].max()
    # values are halved, since the difference of two large numbers may overflow
    scale = 254 / (high / 2 - low / 2) if high > low else 0.0
    grey = np.where(known, (np.where(known, numbers, low) / 2 - low / 2) * scale, 0).astype("u1") + known.astype("u1")
    return png(grey), _shown(values[known].min()), _shown(values[known].max())


def png(levels: Any) -> bytes:
    """Return an array of grey levels as a PNG file: 0 is transparent, 1 is black, 255 is white."""
    height, width = levels.shape
    rows = np.zeros((height, width + 1), "u1")  # every row starts with its filter type, 0
    rows[:, 1:] = levels
    palette = bytes([0, 0, 0]) + bytes(round(i * 255 / 254) for i in range(255) for _ in range(3))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"PLTE", palette), (b"tRNS", b"\0"), (b"IDAT", zlib.compress(rows.tobytes(), 1))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in [*chunks, (b"IEND", b"")]
    )


def _shown(value: Any) -> str:
    return f"{value:.6g}" if value.dtype.kind == "f" else str(value)


def _field(options: Mapping[str, Sequence[str]], name: str) -> str:
    return options[name][-1] if options.get(name) else ""


def _number(options: Mapping[str, Sequence[str]], name: str, end: int, default: int) -> int:
    text = _field(options, name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 20) or (int(text) >= end and int(text)):
        raise SelectionError(f"{name} must be a number from 0 to {end - 1}, not {text[:40]!r}")
    return int(text)


def _window(options: Mapping[str, Sequence[str]], name: str, length: int) -> Window:
    text = _field(options, name) or f"0:{length}"
    first, colon, last = text.partition(":")
    bounds = [int(part) if part.isascii() and part.isdigit() and len(part) < 20 else -1 for part in (first, last)]
    if not colon or not 0 <= bounds[0] < bounds[1] <= length:
        raise SelectionError(f"{name} must be a range within 0:{length}, not {text[:40]!r}")
    return bounds[0], bounds[1]


def _affordable(array: Array, axes: tuple[int, ...], windows: list[Window]) -> list[Window]:
    """Return the windows, reduced to their first chunks if too much would have to be read."""
    chunks = array.chunks
    count = 1.0  # chunks that are read
    for axis, (start, stop) in zip(axes, windows, strict=True):
        touched = -(-stop // chunks[axis]) - start // chunks[axis]
        count *= min(touched, MAX_PIXELS)
    nbytes = float(np.prod([float(n) for n in chunks])) * array.dtype.itemsize
    if count * nbytes <= MAX_READ:
        return windows
    return [
        (start, min(stop, start + min(MAX_PIXELS, chunks[axis] - start % chunks[axis])))
        for axis, (start, stop) in zip(axes, windows, strict=True)
    ]
