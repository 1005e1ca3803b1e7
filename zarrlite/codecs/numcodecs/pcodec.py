"""The `numcodecs.pcodec` codec: numbers, compressed by pcodec (install zarrlite[numcodecs]).

Rules
- A chunk is a file in pcodec's standalone format, with all elements in row-major order.
- The configuration has the same members as in numcodecs, and affects only writing.
- numcodecs 0.17 renamed the `delta_spec` "none" to "no_op". Both names are accepted, and each is kept when
  metadata is rewritten.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.numcodecs.library import library
from zarrlite.errors import MetadataError, TruncatedError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, CompressingSerializer, Serializer
from zarrlite.pipeline.elements import NDArray

_DELTAS = ("auto", "none", "no_op", "try_consecutive", "try_lookback")
DATA_TYPES = ("uint16", "uint32", "uint64", "int16", "int32", "int64", "float16", "float32", "float64")


@register
@dataclass(frozen=True)
class PCodec(ArrayBytesCodec):
    """Compression of sequences of numbers."""

    name = "numcodecs.pcodec"
    extra = "numcodecs"
    level: int = 8
    mode_spec: str = "auto"
    delta_spec: str = "auto"
    paging_spec: str = "equal_pages_up_to"
    delta_encoding_order: int | None = None
    equal_pages_up_to: int = 2**18

    @classmethod
    def from_config(cls, config: Config) -> Self:
        order = None
        if config.raw("delta_encoding_order", None) is not None:
            order = config.integer("delta_encoding_order", 0, 7)
        delta = config.string("delta_spec", _DELTAS, default="auto")
        if order is not None and delta not in ("auto", "try_consecutive"):
            message = 'must be null unless delta_spec is "auto" or "try_consecutive"'
            raise config.error(message, "delta_encoding_order", "conflict")
        return cls(
            config.integer("level", 0, 12, default=cls.level),
            config.string("mode_spec", ("auto", "classic"), default=cls.mode_spec),
            delta,
            config.string("paging_spec", ("equal_pages_up_to",), default=cls.paging_spec),
            order,
            config.integer("equal_pages_up_to", 1, default=cls.equal_pages_up_to),
        )

    def to_config(self) -> dict[str, Json]:
        return {**super().to_config(), "delta_encoding_order": self.delta_encoding_order}

    def bind(self, spec: ArraySpec) -> Serializer:
        if spec.data_type.name not in DATA_TYPES:
            message = f"{self.name} cannot store {spec.data_type.name}; use one of {', '.join(DATA_TYPES)}"
            raise MetadataError(message, kind="conflict")
        return CompressingSerializer(self, spec)

    def encode(self, array: NDArray, spec: ArraySpec) -> Buffer:
        elements = np.ascontiguousarray(array, spec.dtype).reshape(-1)
        encoder, config = _module(self.name).PCodec, self.to_config()
        if self.delta_spec in ("none", "no_op"):
            config["delta_spec"] = "no_op" if "no_op" in str(inspect.signature(encoder)) else "none"
        encoded: Buffer = encoder(**config).encode(elements)
        return encoded

    def decode(self, data: Buffer, spec: ArraySpec) -> NDArray:
        standalone = _module(self.name).standalone
        elements = np.empty(spec.size + 1, spec.dtype)  # room for one extra element, to detect that there are too many
        progress = standalone.simple_decompress_into(bytes(data), elements)
        count = progress.n_processed
        if not progress.finished:
            raise TruncatedError("the pcodec stream ends too early, or has too many elements")
        if count != spec.size:
            at_least = "at least " if count > spec.size else ""
            raise TruncatedError(f"has {at_least}{count} elements, but the chunk has {spec.size}")
        return elements[:-1].reshape(spec.shape)


def _module(codec: str) -> Any:
    """Return the pcodec module of numcodecs. Raises DependencyError unless both numcodecs and pcodec are installed."""
    library("pcodec", codec)
    return library("numcodecs.pcodec", codec)
