"""What a chunk key encoding is: chunk coordinates to keys, and exactly back."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from zarrlite.extensions.extension import Extension
from zarrlite.selections.selection import Shape

_CANONICAL = re.compile(r"0|[1-9][0-9]*", re.ASCII).fullmatch


class ChunkKeyEncoding(Extension):
    """Coordinates to keys and back; keys are relative to the array."""

    kind: ClassVar[str] = "chunk_key_encoding"

    @abstractmethod
    def encode(self, coords: Shape) -> str:
        """The key of a chunk."""

    def bound(self, ndim: int) -> Callable[[Shape], str]:
        """What makes the keys of an array of so many dimensions; override where some of it can be prepared."""
        return self.encode

    @abstractmethod
    def decode(self, key: str, ndim: int) -> Shape | None:
        """The coordinates that encode to exactly this key; None: it is not the key of a chunk."""


def parse_coords(texts: list[str], ndim: int) -> Shape | None:
    """Coordinates from decimal numbers without leading zeros, signs or anything else that int() would take."""
    if len(texts) != ndim or not all(len(text) < 20 and _CANONICAL(text) for text in texts):
        return None
    return tuple(map(int, texts))
