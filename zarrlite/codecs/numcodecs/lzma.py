"""The `numcodecs.lzma` codec: the formats of liblzma, with any of its filters.

Rules
- `format` is 1 (.xz), 2 (.lzma) or 3 (raw, which requires `filters`). A `format` of 0 means that both .xz and .lzma
  can be read, but nothing can be written.
- `preset` and `filters` are mutually exclusive.
- The memory of the decompressor is limited, because a small value can request a dictionary of 4 GiB.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from typing import Any, Self

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.streams import decompress
from zarrlite.errors import ArgumentError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec

_MEMORY = 2**28  # bytes; memory limit of a decompressor; the dictionary of preset 9 takes a quarter of this
_MAX_DICTIONARY = 2**27  # bytes; the largest `dict_size` of a filter
_FILTER_MEMBERS = ("dict_size", "lc", "lp", "pb", "mode", "nice_len", "mf", "depth", "dist", "start_offset", "preset")


@register
@dataclass(frozen=True)
class LZMA(BytesBytesCodec):
    """LZMA compression."""

    name = "numcodecs.lzma"
    format: int = lzma.FORMAT_XZ
    check: int = -1
    preset: int | None = None
    filters: tuple[Any, ...] | None = None  # in the form that Python's lzma module expects

    def __post_init__(self) -> None:
        if self.filters is not None:
            object.__setattr__(self, "filters", tuple(_Filter(item) for item in self.filters))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        container = config.integer("format", 0, 3, default=cls.format)
        check = config.integer("check", -1, 15, default=cls.check)
        preset = _preset(config)
        filters = None if config.raw("filters", None) is None else [_filter(item) for item in config.objects("filters")]
        if filters is None and container == lzma.FORMAT_RAW:
            raise config.error("is required with format 3", "filters", "missing")
        if filters is not None and preset is not None:
            raise config.error("must be null if there are filters", "preset", "conflict")
        codec = cls(container, check, preset, None if filters is None else tuple(filters))
        try:
            codec._start()
            if container != lzma.FORMAT_AUTO:
                codec._compressor()
        except (ValueError, lzma.LZMAError) as error:
            raise config.error(f"is not a combination that liblzma supports: {error}") from None
        return codec

    def to_config(self) -> dict[str, Json]:
        filters = None if self.filters is None else [dict(item) for item in self.filters]
        return {"format": self.format, "check": self.check, "preset": self.preset, "filters": filters}

    def _compressor(self) -> lzma.LZMACompressor:
        return lzma.LZMACompressor(self.format, self.check, self.preset, self.filters)

    def _start(self) -> lzma.LZMADecompressor:
        if self.format == lzma.FORMAT_RAW:
            return lzma.LZMADecompressor(self.format, filters=self.filters)
        return lzma.LZMADecompressor(self.format, _MEMORY)  # the other formats store their filters in the header

    def encode(self, data: Buffer) -> bytes:
        if self.format == lzma.FORMAT_AUTO:
            raise ArgumentError("format must be 1 (.xz), 2 (.lzma) or 3 (raw) for writing, not 0")
        compressor = self._compressor()
        return compressor.compress(data) + compressor.flush()

    def decode(self, data: Buffer, limit: int) -> bytes:
        return decompress(data, limit, self._start, "lzma", single=self.format == lzma.FORMAT_RAW)


def _preset(config: Config) -> int | None:
    """Return the preset: a level from 0 to 9, optionally combined with the flag PRESET_EXTREME."""
    if config.raw("preset", None) is None:
        return None
    preset = config.integer("preset", 0, 2**32 - 1)
    if preset & ~lzma.PRESET_EXTREME > 9:
        raise config.error(f"must be a level from 0 to 9, not {preset}", "preset")
    return preset


class _Filter(dict[str, int]):
    """A filter as a hashable dictionary."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def _filter(config: Config) -> dict[str, int]:
    """Parse one filter."""
    result = {"id": config.integer("id", 0, 2**62)}
    for key in _FILTER_MEMBERS:
        if key in config:
            result[key] = config.integer(key, 0, _MAX_DICTIONARY if key == "dict_size" else 2**32 - 1)
    config.finish()
    return result
