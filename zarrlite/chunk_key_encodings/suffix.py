"""The `suffix` chunk key encoding: the key of another encoding with text behind it, `c/1/2.tiff`.

Rules (proposal `suffix`, Specification)
- "The final key is base_encoded_key + suffix"; decoding is exactly the inverse.
- The proposal spells the base `base_encoding` in its text and `base-encoding` in its example. Both are read, if they
  agree; written is `base_encoding`, always, as an object. Without one the base is `default`.
- The text comes from a file, so it cannot lead a key anywhere: see `names.key_text_fault`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import chunk_key_encodings, register
from zarrlite.names import key_text_fault
from zarrlite.selections.selection import Shape

_SPELLINGS = ("base_encoding", "base-encoding")


@register
@dataclass(frozen=True)
class SuffixKeys(ChunkKeyEncoding):
    """Keys with a suffix, such as the extension of a file name."""

    name = "suffix"
    suffix: str
    base_encoding: Any = "default"

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_encoding", chunk_key_encodings.coerce(self.base_encoding))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        suffix = config.string("suffix")
        fault = key_text_fault(suffix)
        if fault:
            raise config.error(f"{suffix!r} {fault}", "suffix")
        bases = [cls._base(config, spelling) for spelling in _SPELLINGS if spelling in config]
        if len(bases) == 2 and bases[0] != bases[1]:
            raise config.error(
                "base_encoding and base-encoding differ; write base_encoding alone", "base-encoding", "conflict"
            )
        return cls(suffix, *bases[:1])

    @classmethod
    def _base(cls, config: Config, spelling: str) -> Any:
        return chunk_key_encodings.parse(config.raw(spelling), config.at(spelling), config.context)

    def to_config(self) -> dict[str, Json]:
        return {"suffix": self.suffix, "base_encoding": self.base_encoding.to_json()}

    def encode(self, coords: Shape) -> str:
        return self.bound(len(coords))(coords)

    def bound(self, ndim: int) -> Callable[[Shape], str]:
        base: Callable[[Shape], str] = self.base_encoding.bound(ndim)
        return lambda coords: base(coords) + self.suffix

    def decode(self, key: str, ndim: int) -> Shape | None:
        if not key.endswith(self.suffix):
            return None
        coords: Shape | None = self.base_encoding.decode(key[: len(key) - len(self.suffix)], ndim)
        return coords
