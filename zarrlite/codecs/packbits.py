"""The `packbits` codec: a fixed number of bits for each element, least significant first.

Rules (codecs/packbits)
- The bits `first_bit` to `last_bit` of each component are kept; signed integers are sign-extended on reading.
- The prose and the published schema disagree on the names of the members. zarrlite, like other writers, follows the
  prose; the schema's `start_bit`, `end_bit`, `start_byte`, `end_byte` are refused.
- The bit sequence is "padded with 0 bits"; any other padding, or a wrong padding count, is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.data_types.base import Packing
from zarrlite.errors import DataError, MetadataError, TruncatedError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, Serializer

Array = np.ndarray[Any, Any]
_BLOCK = 2**16  # components per block; a multiple of 8, so that blocks end on byte boundaries


@register
@dataclass(frozen=True)
class Packbits(ArrayBytesCodec):
    """Elements packed into as few bits as they need."""

    name = "packbits"
    padding_encoding: str = "none"
    first_bit: int | None = None
    last_bit: int | None = None

    @classmethod
    def from_config(cls, config: Config) -> Self:
        padding = config.string("padding_encoding", ("first_byte", "last_byte", "none"), default="none")
        bits = [None if config.raw(k, None) is None else config.integer(k, 0, 63) for k in ("first_bit", "last_bit")]
        first, last = bits
        if last is not None and last < (first or 0):
            raise config.error(f"must not be less than first_bit, which is {first or 0}", "last_bit", "conflict")
        return cls(padding, first, last)

    def to_config(self) -> dict[str, Json]:
        return {k: v for k, v in super().to_config().items() if (k, v) != ("padding_encoding", "none")}

    def bind(self, spec: ArraySpec) -> Serializer:
        bits = _packing(spec).bits
        for key in ("first_bit", "last_bit"):
            value = getattr(self, key)
            if value is not None and value >= bits:
                message = f"must be below {bits}, the number of bits of {spec.data_type.name}, not {value}"
                raise MetadataError(message, pointer=f"/configuration/{key}", kind="conflict")
        return super().bind(spec)

    def _range(self, spec: ArraySpec) -> tuple[int, int]:
        """Return the index of the first bit that is kept, and the index after the last."""
        return self.first_bit or 0, _packing(spec).bits if self.last_bit is None else self.last_bit + 1

    def _sizes(self, spec: ArraySpec) -> tuple[int, int]:
        """Return the number of bytes that the packed bits occupy, and the number of padding bits among them."""
        first, end = self._range(spec)
        bits = spec.size * _packing(spec).components * (end - first)
        return -(-bits // 8), -bits % 8

    def encoded_size(self, spec: ArraySpec) -> int:
        return self._sizes(spec)[0] + (self.padding_encoding != "none")

    def encode(self, array: Array, spec: ArraySpec) -> bytes:
        first, end = self._range(spec)
        rows = _rows(spec.data_type.to_bytes(array, "little"), spec)
        pieces = []
        for i in range(0, len(rows), _BLOCK):
            bits = rows[i : i + _BLOCK]
            if spec.dtype.kind != "b":
                bits = np.unpackbits(bits, axis=1, bitorder="little")
            pieces.append(np.packbits(bits[:, first:end].reshape(-1), bitorder="little").tobytes())
        padding = bytes([self._sizes(spec)[1]])
        head = padding if self.padding_encoding == "first_byte" else b""
        tail = padding if self.padding_encoding == "last_byte" else b""
        return head + b"".join(pieces) + tail

    def decode(self, data: Buffer, spec: ArraySpec) -> Array:
        first, end = self._range(spec)
        packed = self._without_padding(np.frombuffer(data, "u1"), spec)
        packing = _packing(spec)
        stored: Array = np.zeros(spec.size * spec.dtype.itemsize, "u1")
        rows = _rows(stored, spec)
        width = end - first
        for i in range(0, len(rows), _BLOCK):
            part = rows[i : i + _BLOCK]
            start = i * width // 8
            piece = packed[start : start + -(-len(part) * width // 8)]
            kept = np.unpackbits(piece, count=len(part) * width, bitorder="little").reshape(-1, width)
            if spec.dtype.kind == "b":
                part[:] = kept
                continue
            bits = np.zeros((len(part), 8 * rows.shape[1]), "u1")
            bits[:, first:end] = kept
            if packing.signed:
                bits[:, end : packing.bits] = kept[:, -1:]
            part[:] = np.packbits(bits, axis=1, bitorder="little")
        return spec.data_type.from_bytes(stored, "little").reshape(spec.shape)

    def _without_padding(self, data: Array, spec: ArraySpec) -> Array:
        """Check the padding and its count, and return the packed bits."""
        padding = self._sizes(spec)[1]
        if len(data) != self.encoded_size(spec):
            raise TruncatedError(
                f"has {len(data)} bytes, but a chunk of shape {spec.shape} has {self.encoded_size(spec)}"
            )
        if self.padding_encoding != "none":
            at = 0 if self.padding_encoding == "first_byte" else -1
            if data[at] != padding:
                raise DataError(f"the padding count must be {padding}, not {data[at]}")
            data = data[1:] if at == 0 else data[:-1]
        # codecs/packbits: "padded with 0 bits"
        if padding and data[-1] >> (8 - padding):
            raise DataError("the padding bits must be 0")
        return data


def _packing(spec: ArraySpec) -> Packing:
    """Return how elements are packed. Raises MetadataError if the data type does not support it."""
    packing = spec.data_type.packing
    if packing is None:
        raise MetadataError(f"packbits stores booleans and numbers, not {spec.data_type.name}", kind="conflict")
    return packing


def _rows(stored: Array, spec: ArraySpec) -> Array:
    """Return a view of the bytes of elements, with one row for each component."""
    return stored.reshape(-1, spec.dtype.itemsize // _packing(spec).components)
