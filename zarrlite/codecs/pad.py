"""The `pad` and `offset` codecs: bytes of fixed number in front of a chunk, or behind it.

Rules (proposals `pad` and `offset`, Configuration Parameters)
- Encoding adds the padding: literal bytes, what a function makes of the bytes to be padded, or zeros.
- "The length of the decoded bytes MUST be equal to offset" holds for `pad` too, which forgot to say so.
- Decoding skips and never compares, for foreign headers differ; a value shorter than its padding is an error.
- Byte ranges shift through, so that a shard behind a header is still read in parts.
- `offset {offset, prefix}` is `pad {start, offset, prefix}`; each is written back under its own name.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

from zarrlite.buffers.ranges import Buffer, ByteRange, Pieces, in_pieces, joined
from zarrlite.buffers.source import ByteSource, Limit, Window
from zarrlite.cached import cached_property
from zarrlite.errors import ArgumentError, TruncatedError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.extension import runtime
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec, Piece

PaddingFunc = Callable[[Buffer], Buffer]  # of the bytes that will be padded


class _Plan(NamedTuple):
    """What both names say, each in its own words."""

    head: int  # bytes in front
    tail: int  # bytes behind
    literal: bytes | None  # None: zeros
    function: PaddingFunc | None
    keep: bool  # whether the padding of a value that is overwritten stays


class Padding(BytesBytesCodec):
    """What `pad` and `offset` do."""

    plan: _Plan

    @property
    def needs_old(self) -> bool:  # type: ignore[override]
        return self.plan.keep

    def encode(self, data: Buffer) -> Buffer:
        return joined(self.encode_pieces(data, None))

    def encode_over(self, data: Buffer, old: Buffer | None) -> Buffer:
        return joined(self.encode_pieces(data, old))

    def encode_pieces(self, data: Pieces, old: Buffer | None) -> Pieces:
        if self.plan.keep and old is not None:
            head, tail = self._measure(old)
            padding: Buffer = memoryview(old)[:head] if head else memoryview(old)[len(old) - tail :]
        else:
            padding = self._padding(data)
        return [padding, *in_pieces(data)] if self.plan.head else [*in_pieces(data), padding]

    def decode(self, data: Buffer, limit: int) -> Buffer:
        head, tail = self._measure(data)
        return memoryview(data)[head : len(data) - tail]

    def view(self, source: ByteSource, limit: Limit) -> ByteSource:
        return Window(source, self.plan.head, self.plan.tail, self.name)

    def patch(self, pieces: list[Piece], source: ByteSource) -> list[Piece] | None:
        head, tail, _, function, keep = self.plan
        size = source.size()
        if function is not None or size is None:
            return None  # which may depend on every byte
        shifted = [(start + head, piece) for start, piece in pieces]
        end = max([size - tail, *(start + len(piece) for start, piece in shifted)])
        if keep and (head or end == size - tail):
            return shifted
        kept = source.read([ByteRange(size - tail, size)]) if keep else None
        # written anew wherever it then is, and first: an index must come last
        return [(0 if head else end, kept[0] if kept else self._padding(b"")), *shifted]

    def encoded_size(self, size: int) -> int:
        return size + self.plan.head + self.plan.tail

    def _measure(self, data: Buffer) -> tuple[int, int]:
        """Bytes in front and behind, in a value that has them."""
        head, tail, *_ = self.plan
        if len(data) < head + tail:
            raise TruncatedError(f"the stored value has {len(data)} bytes, its padding alone has {head + tail}")
        return head, tail

    def _padding(self, data: Pieces) -> Buffer:
        head, tail, literal, function, _ = self.plan
        if function is None:
            return bytes(head + tail) if literal is None else literal
        padding = function(joined(data))
        if len(padding) != head + tail:
            raise ArgumentError(f"the function of {self.name} made {len(padding)} bytes of padding, not {head + tail}")
        return padding


@register
@dataclass(frozen=True)
class Pad(Padding):
    """Fixed-size padding at the start or the end of a chunk."""

    name = "pad"
    location: str
    nbytes: int
    padding: bytes | None = None
    padding_func: PaddingFunc | None = runtime(None)
    keep_padding: bool = runtime(False)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        nbytes = config.integer("nbytes")
        return cls(config.string("location", ("start", "end")), nbytes, _literal(config, "padding", "nbytes", nbytes))

    def to_config(self) -> dict[str, Json]:
        return _with_base64(super().to_config(), "padding")

    @cached_property
    def plan(self) -> _Plan:  # type: ignore[override]
        head, tail = (self.nbytes, 0) if self.location == "start" else (0, self.nbytes)
        return _Plan(head, tail, self.padding, self.padding_func, self.keep_padding)


@register
@dataclass(frozen=True)
class Offset(Padding):
    """A fixed-size header in front of a chunk."""

    name = "offset"
    offset: int
    prefix: bytes | None = None
    prefix_func: PaddingFunc | None = runtime(None)
    keep_prefix: bool = runtime(False)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        offset = config.integer("offset")
        return cls(offset, _literal(config, "prefix", "offset", offset))

    def to_config(self) -> dict[str, Json]:
        return _with_base64(super().to_config(), "prefix")

    @cached_property
    def plan(self) -> _Plan:  # type: ignore[override]
        return _Plan(self.offset, 0, self.prefix, self.prefix_func, self.keep_prefix)


def _literal(config: Config, key: str, size_key: str, size: int) -> bytes | None:
    """Literal padding, which has as many bytes as the other member says."""
    padding: bytes | None = config.base64(key, default=None)
    if padding is not None and len(padding) != size:
        raise config.error(f"must have {size} bytes, as {size_key} says, not {len(padding)}", key, "conflict")
    return padding


def _with_base64(configuration: dict[str, Json], key: str) -> dict[str, Json]:
    if key in configuration:
        configuration[key] = base64.b64encode(configuration[key]).decode()
    return configuration
