"""A picture of part of an array: a two-dimensional slice as a grey PNG, written with the standard library alone.

Rules
- At most `MAX_PIXELS` rows and columns are shown, and only every n-th element is read. Arrays whose chunks would take
  too long to read for that show their first chunks only.
- The smallest value is black and the largest is white; missing values are black.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import numpy as np

from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.nodes.array import Array

MAX_PIXELS: Final = 256  # rows and columns of a picture
MAX_READ: Final = 2**26  # decoded bytes; upper limit for the chunks that are read for a picture


def preview(array: Array, position: str = "") -> bytes:
    r"""Return a PNG of the last two dimensions; `position` has the coordinates in the others, separated by commas.

    >>> import zarrlite
    >>> preview(zarrlite.create_array("memory://", data=[[0, 1], [2, 3]]))[:4]
    b'\x89PNG'
    """
    if array.dtype.kind not in "biufc" or not array.ndim:
        raise ArgumentError(f"{array.name} has no picture: its elements must be numbers in at least one dimension")
    others = array.shape[:-2]
    coords = _coordinates(position, others)
    return png(_grey(np.atleast_2d(array[(*coords, *_window(array))])))


def _coordinates(position: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    texts = [text for text in position.split(",") if text]
    if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in texts) or len(texts) > len(shape):
        raise SelectionError(f"preview must be at most {len(shape)} indices separated by commas, not {position!r}")
    found = (*map(int, texts), *(0,) * (len(shape) - len(texts)))
    if any(i >= n for i, n in zip(found, shape, strict=True)):
        raise SelectionError(f"preview {found} must be inside of {shape}")
    return found


def _window(array: Array) -> list[slice]:
    """Return which rows and columns are read: all with a step, or the first ones if that would read too much."""
    steps = [-(-n // MAX_PIXELS) or 1 for n in array.shape[-2:]]
    chunks = array.chunks[-2:]
    unit = int(np.prod([float(n) for n in array.chunks])) * array.dtype.itemsize
    count = 1.0
    for n, chunk, step in zip(array.shape[-2:], chunks, steps, strict=True):
        count *= min(-(-n // chunk), -(-n // step))
    if count * unit <= MAX_READ:
        return [slice(None, None, step) for step in steps]
    return [slice(0, min(n, chunk, MAX_PIXELS)) for n, chunk in zip(array.shape[-2:], chunks, strict=True)]


def _grey(values: Any) -> Any:
    """Return numbers as bytes, from black to white."""
    values = np.abs(values) if values.dtype.kind == "c" else values
    numbers = values.astype("f8")
    known = np.isfinite(numbers)
    low, high = (numbers[known].min(), numbers[known].max()) if known.any() else (0.0, 0.0)
    scaled = (np.where(known, numbers, low) - low) * (255 / (high - low) if high > low else 0)
    return scaled.astype("u1")


def png(grey: Any) -> bytes:
    """Return an array of bytes as a PNG file of one channel."""
    height, width = grey.shape
    rows = np.zeros((height, width + 1), "u1")  # every row starts with its filter, 0
    rows[:, 1:] = grey
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
