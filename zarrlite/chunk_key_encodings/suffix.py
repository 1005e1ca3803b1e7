"""The `suffix` chunk key encoding: the key of a base encoding, followed by a fixed text, as in `c/1/2.tiff`.

Rules
- The proposal spells the base encoding `base_encoding` in Configuration and `base-encoding` in Example 2 and in
  Encoding. Either spelling is read, or both if they agree; `base_encoding` is always written, as an object.
- The suffix comes from a document and is not trusted: `names.key_text_fault` refuses text that could make a key point
  outside of the array.
- The base encoding may itself be a `suffix` encoding.

In comments, "proposal suffix" is the proposal for this encoding, version 0.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding
from zarrlite.errors import MetadataError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import chunk_key_encodings, register
from zarrlite.names import key_text_fault
from zarrlite.selections.selection import Shape

_SPELLINGS = ("base_encoding", "base-encoding")


@register
@dataclass(frozen=True)
class SuffixKeys(ChunkKeyEncoding):
    """Keys with a suffix, such as a file name extension.

    Proposal suffix, Encoding and Decoding Logic: "a simple wrapper around an existing chunk key encoding".
    """

    # proposal suffix, Specification: "Name: suffix"
    name = "suffix"
    suffix: str
    base_encoding: Any = "default"

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_encoding", chunk_key_encodings.coerce(self.base_encoding))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # proposal suffix, Configuration: '"suffix": (Required)'
        # proposal suffix, Configuration: "A string that will be appended to the encoded chunk key."
        suffix = config.string("suffix")
        fault = key_text_fault(suffix)
        if fault:
            raise config.error(f"{suffix!r} {fault}", "suffix")
        bases = [cls._base(config, spelling) for spelling in _SPELLINGS if spelling in config]
        if len(bases) == 2 and bases[0] != bases[1]:
            message = "must not differ from base_encoding; use base_encoding only"
            raise config.error(message, "base-encoding", "conflict")
        # proposal suffix, Configuration: '"base_encoding": (Optional)'
        # proposal suffix, Configuration: "If omitted, the default chunk key encoding is used."
        return cls(suffix, *bases[:1])

    @classmethod
    def _base(cls, config: Config, spelling: str) -> Any:
        """Parse the base encoding, which may be an object or, as at all extension points, a short-hand name."""
        # proposal suffix, Configuration: "A chunk key encoding configuration object."
        return chunk_key_encodings.parse(config.raw(spelling), config.at(spelling), config.context)

    def to_config(self) -> dict[str, Json]:
        return {"suffix": self.suffix, "base_encoding": self.base_encoding.to_json()}

    def check(self, ndim: int) -> None:
        try:
            self.base_encoding.check(ndim)
        except MetadataError as error:
            raise error.under("/configuration/base_encoding") from None

    def encode(self, coords: Shape) -> str:
        return self.bound(len(coords))(coords)

    def bound(self, ndim: int) -> Callable[[Shape], str]:
        # proposal suffix, Configuration: "used before the suffix is appended"
        # proposal suffix, Encoding: "Append the suffix from the configuration to the result"
        # proposal suffix, Encoding: "The final key is base_encoded_key + suffix"
        base: Callable[[Shape], str] = self.base_encoding.bound(ndim)
        return lambda coords: base(coords) + self.suffix

    def decode(self, key: str, ndim: int) -> Shape | None:
        # proposal suffix, Decoding: "Verify that the key ends with the configured suffix."
        # proposal suffix, Decoding: "If not, it is an invalid key for this encoding."
        if not key.endswith(self.suffix):
            return None
        # proposal suffix, Decoding: "Remove the suffix from the end of the key string"
        # proposal suffix, Decoding: "retrieve the original chunk coordinate tuple (1, 2)"
        coords: Shape | None = self.base_encoding.decode(key[: len(key) - len(self.suffix)], ndim)
        return coords
