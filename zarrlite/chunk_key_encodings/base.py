"""The base class of chunk key encodings, which map chunk coordinates to keys and back.

Rules
- Keys are relative to the array.
- Decoding is the exact inverse of encoding: a text that `encode` cannot return is not the key of a chunk.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from zarrlite.extensions.extension import Extension
from zarrlite.selections.selection import Shape

MAX_DIGITS = 19  # digits in 2^63 - 1, the maximum length of a dimension; longer numbers are not valid coordinates
_CANONICAL = re.compile(r"0|[1-9][0-9]*", re.ASCII).fullmatch


class ChunkKeyEncoding(Extension):
    """A mapping from chunk coordinates to keys, and back."""

    kind: ClassVar[str] = "chunk_key_encoding"

    # core spec, Chunk grids: "each chunk that is unique within the grid"
    # regular grid, Description: "is determined based on the array-metadata-chunk-key-encoding member"
    @abstractmethod
    def encode(self, coords: Shape) -> str:
        """Return the key of a chunk."""

    def bound(self, ndim: int) -> Callable[[Shape], str]:
        """Return `encode` for arrays of `ndim` dimensions. Override this method to share work between keys."""
        return self.encode

    def check(self, ndim: int) -> None:
        """Raise MetadataError if the encoding does not support `ndim` dimensions.

        The JSON pointer in the error is relative to the encoding.
        """

    @abstractmethod
    def decode(self, key: str, ndim: int) -> Shape | None:
        """Return the coordinates that encode to exactly this key. Returns None if it is not the key of a chunk."""


def parse_coords(texts: list[str], ndim: int) -> Shape | None:
    """Parse coordinates in canonical decimal form, without leading zeros, signs or other notations that int() accepts.

    Returns None if a coordinate is not canonical, or if there are not exactly `ndim` coordinates.
    """
    # default encoding, Description: "the ASCII decimal string representation of the chunk index within that dimension"
    if len(texts) != ndim or not all(len(text) <= MAX_DIGITS and _CANONICAL(text) for text in texts):
        return None
    return tuple(map(int, texts))
