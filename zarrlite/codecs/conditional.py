"""The `conditional` codec: bytes -> bytes codecs, each of which is applied to some of the chunks.

Rules (codecs/conditional, Detailed Description)
- A value begins with a mask of `header_bits` bits, least significant first: bit i tells whether codec i was applied.
  "Any reserved bits" must be 0.
- `decision`, a runtime option for writing, is "never_apply", "always_apply", "compress_if_smaller", or a function of
  the codec, the value, and the value encoded by this codec alone. The mask "must default to all `0`s" (Implementation,
  Phase 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import ArgumentError, DataError, TruncatedError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.extension import Ignored, runtime
from zarrlite.extensions.registry import codecs as registry
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArraySpec, BytesBytesCodec
from zarrlite.pipeline.decoding import Limit, decode_bytes

Decision = Callable[[BytesBytesCodec, Buffer, Buffer], bool]
_MAX_HEADER_BITS = 8 * 2**10

DECISIONS: dict[str, Decision] = {
    "never_apply": lambda codec, value, encoded: False,
    "always_apply": lambda codec, value, encoded: True,
    "compress_if_smaller": lambda codec, value, encoded: len(encoded) < len(value),
}


@register
@dataclass(frozen=True)
class Conditional(BytesBytesCodec):
    """Codecs, each of which is applied only to chunks for which it is worthwhile."""

    name = "conditional"
    codecs: tuple[Any, ...]
    header_bits: int | None = None  # None: one bit for each codec, rounded up to whole bytes
    decision: str | Decision = runtime("never_apply")

    def __post_init__(self) -> None:
        chain = tuple(registry.coerce(codec) for codec in self.codecs)
        object.__setattr__(self, "codecs", chain)
        if not all(isinstance(codec, BytesBytesCodec) for codec in chain):
            raise ArgumentError(f"codecs must be bytes -> bytes codecs, not {[codec.name for codec in chain]}")
        if not callable(self.decision) and self.decision not in DECISIONS:
            raise ArgumentError(f"decision must be a function or one of {', '.join(DECISIONS)}, not {self.decision!r}")

    @classmethod
    def from_config(cls, config: Config) -> Self:
        codecs = registry.parse_list(config.list("codecs"), config.at("codecs"), config.context)
        for i, codec in enumerate(codecs):
            nested = Config({}, config.at("codecs"), config.context)
            if isinstance(codec, Ignored):
                raise nested.error(
                    "must be a known codec, because each codec in the list has a bit in the header", str(i), "conflict"
                )
            # codecs/conditional, codecs: "They MUST all be `bytes -> bytes` codecs"
            if not isinstance(codec, BytesBytesCodec):
                raise nested.error(f"must be a bytes -> bytes codec, not {codec.name}", str(i), "conflict")
        bits = config.integer("header_bits", 0, _MAX_HEADER_BITS, default=None)
        if bits is not None and (bits % 8 or bits < len(codecs)):
            message = f"must be a multiple of 8 and at least {len(codecs)}, the number of codecs, not {bits}"
            raise config.error(message, "header_bits")
        return cls(codecs, bits)

    def to_config(self) -> dict[str, Json]:
        config: dict[str, Json] = {"codecs": [codec.to_json() for codec in self.codecs]}
        return config if self.header_bits is None else {**config, "header_bits": self.header_bits}

    def fitted(self, spec: ArraySpec) -> Self:
        codecs = tuple(codec.fitted(spec) for codec in self.codecs)
        return self if codecs == self.codecs else replace(self, codecs=codecs)

    @property
    def _header(self) -> int:
        """The size of the header in bytes."""
        return -(-len(self.codecs) // 8) if self.header_bits is None else self.header_bits // 8

    def encode(self, data: Buffer) -> Buffer:
        decide = self.decision if callable(self.decision) else DECISIONS[self.decision]
        mask = 0
        if self.decision != "never_apply":
            for i, codec in enumerate(self.codecs):
                mask |= bool(decide(codec, data, codec.encode(data))) << i
        for i, codec in enumerate(self.codecs):
            data = codec.encode(data) if mask >> i & 1 else data
        return mask.to_bytes(self._header, "little") + bytes(data)

    def decode(self, data: Buffer, limit: int) -> Buffer:
        size = self._header
        if len(data) < size:
            raise TruncatedError(f"has {len(data)} bytes, but the header alone has {size}")
        mask = int.from_bytes(data[:size], "little")
        # codecs/conditional, Encoding Process: "Any reserved bits" "must be set to `0`"
        if mask >> len(self.codecs):
            raise DataError(f"the header is {mask:#x}, but all bits above the lowest {len(self.codecs)} must be 0")
        steps = []
        for i, codec in enumerate(self.codecs):
            if mask >> i & 1:
                steps.append((codec, Limit(limit)))
                limit = codec.max_encoded_size(limit)
        return decode_bytes(memoryview(data)[size:], steps[::-1])

    def max_encoded_size(self, size: int) -> int:
        for codec in self.codecs:
            size = max(size, codec.max_encoded_size(size))
        return self._header + size
