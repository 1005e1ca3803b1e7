"""Parse selections in numpy's syntax, such as `0:10,::2,5`, and read large ones in pieces.

Rules
- A selection consists of integers, slices and at most one `...`; no part of it is evaluated as code.
- Pieces divide the first selected dimension at chunk boundaries. A piece has at most `PIECE_BYTES` bytes, or one row of
  chunks if that is more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.nodes.array import Array

PIECE_BYTES = 2**25  # bytes; larger selections are read in pieces of at most this size, or of one row of chunks
_match_index = re.compile(r"\s*(-?\d{1,99})?\s*(:)?\s*(-?\d{1,99})?\s*(:)?\s*(-?\d{1,99})?\s*").fullmatch

Index = tuple[int | slice, ...]  # one entry for each dimension


def parse(text: str, shape: tuple[int, ...]) -> Index:
    """Parse a selection into one index for each dimension; it may be enclosed in brackets.

    >>> parse("1, ..., ::2", (5, 6, 7))
    (1, slice(0, 6, 1), slice(0, 7, 2))
    """
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    parts = [part.strip() for part in inner.split(",")] if inner else []
    if parts and not parts[-1]:
        parts.pop()  # a trailing comma is allowed, as in Python
    if parts.count("...") > 1:
        raise ArgumentError(f"selection {text!r} must have at most one '...'")
    if "..." not in parts:
        parts.append("...")
    ellipsis, omitted = parts.index("..."), len(shape) - len(parts) + 1
    if omitted < 0:
        raise ArgumentError(
            f"selection {text!r} must have at most {len(shape)} indices, one for each dimension, not {len(parts) - 1}"
        )
    parts[ellipsis : ellipsis + 1] = [":"] * omitted
    return tuple(_parse_index(part, length, text) for part, length in zip(parts, shape, strict=True))


def _parse_index(part: str, length: int, text: str) -> int | slice:
    match = _match_index(part)
    if match is None or not part or (match[3] and not match[2]) or (match[5] and not match[4]):
        raise ArgumentError(f"selection {text!r}: {part!r} must be an integer, start:stop:step or '...'")
    start, stop, step = (None if match[i] is None else int(match[i]) for i in (1, 3, 5))
    if not match[2]:
        index = start or 0
        if not -length <= index < length:
            raise SelectionError(f"selection {text!r}: {index} is out of bounds for a dimension of length {length}")
        return index % length
    if step == 0:
        raise ArgumentError(f"selection {text!r}: the step must not be 0")
    return _to_slice(range(length)[slice(start, stop, step)])


def _to_slice(indices: range) -> slice:
    """Return the slice that selects these indices."""
    return slice(indices.start, indices.stop if indices.stop >= 0 else None, indices.step)


def selected_indices(index: slice, length: int) -> range:
    """Return the indices that a slice selects from a dimension."""
    return range(length)[index]


def result_shape(index: Index, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the selected values."""
    return tuple(len(selected_indices(i, n)) for i, n in zip(index, shape, strict=True) if isinstance(i, slice))


def read_pieces(array: Array, index: Index) -> Iterator[Any]:
    """Read the selected values in pieces along the first selected dimension."""
    shape = result_shape(index, array.shape)
    for axis, dimension_index in enumerate(index):
        if isinstance(dimension_index, slice) and 0 not in shape:
            chunk = (array.shards or array.chunks)[axis]
            selected = selected_indices(dimension_index, array.shape[axis])
            nbytes = math.prod(shape[1:]) * max(array.dtype.itemsize, 1) * max(1, chunk // abs(selected.step))
            for part in _split(selected, chunk * max(1, PIECE_BYTES // nbytes)):
                yield array[(*index[:axis], _to_slice(part), *index[axis + 1 :])]
            return
    yield array[index]


def _split(selected: range, block: int) -> Iterator[range]:
    """Split indices at the multiples of `block`."""
    while selected:
        position = selected[0] % block
        left = block - 1 - position if selected.step > 0 else position
        count = left // abs(selected.step) + 1
        yield selected[:count]
        selected = selected[count:]
