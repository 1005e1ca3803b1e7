"""Selections in numpy's syntax, such as `0:10,::2,5`, and the pieces in which a large one is read.

Rules
- A selection has integers, slices and one `...`; nothing of it is evaluated as code.
- Pieces divide the first dimension that is left, along the edges of chunks, and have at most `PIECE` bytes if they can.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from zarrlite.errors import ArgumentError, SelectionError
from zarrlite.nodes.array import Array

PIECE = 2**25  # bytes
_part = re.compile(r"\s*(-?\d{1,99})?\s*(:)?\s*(-?\d{1,99})?\s*(:)?\s*(-?\d{1,99})?\s*").fullmatch

Index = tuple[int | slice, ...]  # one for each dimension


def parse(text: str, shape: tuple[int, ...]) -> Index:
    """An index for each dimension; brackets around the selection are allowed.

    >>> parse("1, ..., ::2", (5, 6, 7))
    (1, slice(0, 6, 1), slice(0, 7, 2))
    """
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    parts = [part.strip() for part in inner.split(",")] if inner else []
    if parts and not parts[-1]:
        parts.pop()  # "5," as Python has it
    if parts.count("...") > 1:
        raise ArgumentError(f"selection {text!r} has more than one '...'")
    if "..." not in parts:
        parts.append("...")
    at, missing = parts.index("..."), len(shape) - len(parts) + 1
    if missing < 0:
        raise ArgumentError(f"selection {text!r} has {len(parts) - 1} indices, the array has {len(shape)} dimensions")
    parts[at : at + 1] = [":"] * missing
    return tuple(_one(part, length, text) for part, length in zip(parts, shape, strict=True))


def _one(part: str, length: int, text: str) -> int | slice:
    found = _part(part)
    if found is None or not part or (found[3] and not found[2]) or (found[5] and not found[4]):
        raise ArgumentError(f"selection {text!r}: {part!r} is not an integer, start:stop:step or '...'")
    start, stop, step = (None if found[i] is None else int(found[i]) for i in (1, 3, 5))
    if not found[2]:
        index = start or 0
        if not -length <= index < length:
            raise SelectionError(f"selection {text!r}: {index} is out of bounds for a dimension of length {length}")
        return index % length
    if step == 0:
        raise ArgumentError(f"selection {text!r}: a step is not 0")
    return _slice(range(length)[slice(start, stop, step)])


def _slice(numbers: range) -> slice:
    """The slice that gives these numbers."""
    return slice(numbers.start, numbers.stop if numbers.stop >= 0 else None, numbers.step)


def numbers(index: slice, length: int) -> range:
    """What a slice selects."""
    return range(length)[index]


def result_shape(index: Index, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what is selected."""
    return tuple(len(numbers(i, n)) for i, n in zip(index, shape, strict=True) if isinstance(i, slice))


def pieces(array: Array, index: Index) -> Iterator[Any]:
    """The selected values, a piece of the first dimension at a time."""
    shape = result_shape(index, array.shape)
    for axis, whole in enumerate(index):
        if isinstance(whole, slice) and 0 not in shape:
            chunk = (array.shards or array.chunks)[axis]
            selected = numbers(whole, array.shape[axis])
            nbytes = math.prod(shape[1:]) * max(array.dtype.itemsize, 1) * max(1, chunk // abs(selected.step))
            for part in _blocks(selected, chunk * max(1, PIECE // nbytes)):
                yield array[(*index[:axis], _slice(part), *index[axis + 1 :])]
            return
    yield array[index]


def _blocks(selected: range, block: int) -> Iterator[range]:
    """Numbers in groups, those of each within the same block."""
    while selected:
        place = selected[0] % block
        left = block - 1 - place if selected.step > 0 else place
        count = left // abs(selected.step) + 1
        yield selected[:count]
        selected = selected[count:]
