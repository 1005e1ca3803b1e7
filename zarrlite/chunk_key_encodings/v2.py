"""The `v2` chunk key encoding: keys such as `1.23.45` or `1/23/45`, and `0` for an array without dimensions.

In comments, "v2 encoding" is the specification of this encoding (zarr-specs,
docs/v3/chunk-key-encodings/v2/index.rst).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding, parse_coords
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.selections.selection import Shape


@register
@dataclass(frozen=True)
class V2Keys(ChunkKeyEncoding):
    """Keys that consist of the coordinates alone."""

    name = "v2"
    separator: str = "."

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # v2 encoding, Description: 'separator, which must be either "/" or "."'
        # v2 encoding, Description: 'separator defaults to "."'
        return cls(config.string("separator", ("/", "."), default="."))

    def encode(self, coords: Shape) -> str:
        # v2 encoding, Description: "the ASCII decimal string representation of the chunk index within that dimension"
        # v2 encoding, Description: "except that it is omitted for the last dimension"
        # v2 encoding, Description: 'the single chunk has the key "0"', without dimensions
        return self.separator.join(map(str, coords)) or "0"

    def decode(self, key: str, ndim: int) -> Shape | None:
        if ndim == 0:
            return () if key == "0" else None
        return parse_coords(key.split(self.separator), ndim)
