"""The `numcodecs.zstd` codec: `zstd` with another default level, written back under its own name."""

from __future__ import annotations

from dataclasses import dataclass

from zarrlite.codecs import zstd
from zarrlite.extensions.registry import register


@register
@dataclass(frozen=True)
class Zstd(zstd.Zstd):
    """Zstandard compression."""

    name = "numcodecs.zstd"
    level: int = 1
