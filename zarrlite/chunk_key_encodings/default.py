"""The `default` chunk key encoding: keys such as `c/1/23/45` or `c.1.23.45`, and `c` for an array without dimensions.

In comments, "default encoding" is the specification of this encoding (zarr-specs,
docs/v3/chunk-key-encodings/default/index.rst).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding, parse_coords
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.selections.selection import Shape


@register
@dataclass(frozen=True)
class DefaultKeys(ChunkKeyEncoding):
    """Keys that consist of the prefix `c` and the coordinates."""

    name = "default"
    separator: str = "/"

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # default encoding, Description: 'separator, which must be either "/" or "."'
        # default encoding, Description: 'separator defaults to "/"'
        return cls(config.string("separator", ("/", "."), default="/"))

    def encode(self, coords: Shape) -> str:
        return self.bound(len(coords))(coords)

    def bound(self, ndim: int) -> Callable[[Shape], str]:
        # default encoding, Description: "taking the initial prefix c"
        # default encoding, Description: "the separator character, followed by"
        # default encoding, Description: "the ASCII decimal string representation of the chunk index"
        # default encoding, Description: "the chunk key will consist of the string c", without dimensions
        return ("c" + f"{self.separator}%d" * ndim).__mod__

    def decode(self, key: str, ndim: int) -> Shape | None:
        first, *rest = key.split(self.separator)
        return parse_coords(rest, ndim) if first == "c" else None
