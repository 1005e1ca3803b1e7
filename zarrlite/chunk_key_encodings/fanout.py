"""The `fanout` chunk key encoding: coordinates split into groups of digits, so that no folder has too many entries.

Rules
- Each coordinate is padded with zeros and split into groups of digits. The key contains the number of groups minus
  one, and then the groups: 1234567 becomes `2/001/234/567`.
- A `max_children` that is not a power of ten is rounded down to a power of ten, and the rounded value is written to
  documents. The proposal only permits rounding (MAY), but without it, groups would have as many digits as for the
  next higher power of ten.

In comments, "proposal fanout" is zarr-extensions pull request 31, commit efa1e8b (2026-01-01),
chunk-key-encodings/fanout/README.md. The encoding is experimental: a later version of the proposal may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from zarrlite.chunk_key_encodings.base import MAX_DIGITS, ChunkKeyEncoding
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.selections.selection import Shape


@register
@dataclass(frozen=True)
class FanoutKeys(ChunkKeyEncoding):
    """Keys in folders of at most `max_children` entries. Experimental: the encoding is a proposal."""

    name = "fanout"
    proposal = "zarr-extensions pull request 31, commit efa1e8b"
    # proposal fanout, max_children: "Default: 1000"
    max_children: int = 1000

    def __post_init__(self) -> None:
        # proposal fanout, max_children: "MUST reflect the floored power-of-10 value"
        object.__setattr__(self, "max_children", 10 ** (len(str(self.max_children)) - 1))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # proposal fanout, max_children: "If a value smaller than 100 is provided"
        return cls(config.integer("max_children", 100, default=1000))

    @property
    def _digits(self) -> int:
        """The number of digits in a group."""
        # proposal fanout, Algorithm: "the number of digits in max_children - 1"
        return len(str(self.max_children - 1))

    def encode(self, coords: Shape) -> str:
        # proposal fanout, Algorithm: 'prepend "c" as the root'
        return "/".join(["c", *map(self._encode_one, coords)])

    def _encode_one(self, coord: int) -> str:
        """Return the part of a key for one coordinate: the number of groups minus one, and then the groups."""
        # proposal fanout, Algorithm: "Left-pad the leftmost chunk with zeros"
        text = str(coord)
        count = -(-len(text) // self._digits)
        text = text.zfill(count * self._digits)
        groups = [text[i : i + self._digits] for i in range(0, len(text), self._digits)]
        # proposal fanout, Algorithm: "(num_chunks - 1) must be prepended to the sequence of chunks"
        return "/".join([str(count - 1), *groups])

    def decode(self, key: str, ndim: int) -> Shape | None:
        rest = key.split("/")[1:]
        coords: list[int] = []
        while rest and len(coords) < ndim:
            count = rest.pop(0)
            if len(count) != 1 or not "0" <= count <= "9":
                return None
            end = int(count) + 1
            digits = "".join(rest[:end]).lstrip("0") or "0"
            del rest[:end]
            if len(digits) > MAX_DIGITS or not (digits.isascii() and digits.isdigit()):
                return None
            coords.append(int(digits))
        found = tuple(coords)
        return found if len(found) == ndim and self.encode(found) == key else None
