"""The `numcodecs.zstd` codec, which differs from `zstd` only in its name and in its default level."""

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
