"""The `bytes` codec: uncompressed elements in row-major order, in one byte order.

Rules (codecs/bytes, Configuration parameters)
- `endian` is required for data types whose elements have several bytes.
- "Array elements are encoded in lexicographical order" (codecs/bytes, Format and algorithm).
- Legacy `structured` data without `endian` "MUST be treated as little-endian" (data-types/structured).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from zarrlite.buffers.pieces import LazyPiece, Value
from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import MetadataError
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, Serializer
from zarrlite.pipeline.elements import ElementLayout, NDArray, row_major_strides
from zarrlite.tuning import COPY_BLOCK_BYTES, LAZY_PACKING_BYTES


@register
@dataclass(frozen=True)
class Bytes(ArrayBytesCodec):
    """Uncompressed elements, little or big endian."""

    name = "bytes"
    aliases = ("endian",)  # the name of the codec in drafts of Zarr v3, up to 2023
    endian: str | None = "little"

    @classmethod
    def from_config(cls, config: Config) -> Self:
        if config.name != cls.name:
            pointer = config.pointer.removesuffix("/configuration")
            config.context.tolerate('must have the name "bytes", not "endian"', pointer, "unknown-extension")
        return cls(config.string("endian", ("little", "big"), default=None))

    @property
    def byte_order(self) -> str:  # type: ignore[override]
        return self.endian or "little"

    def fitted(self, spec: ArraySpec) -> Self:
        return replace(self, endian="little") if self.endian is None and self._needs_endian(spec) else self

    @staticmethod
    def _needs_endian(spec: ArraySpec) -> bool:
        return spec.data_type.has_byte_order and not spec.data_type.endian_optional

    def bind(self, spec: ArraySpec) -> Serializer:
        data_type = spec.data_type
        if data_type.itemsize is None:
            message = f"the bytes codec cannot store {data_type.name}, whose elements vary in length"
            raise MetadataError(f"{message}; use {data_type.serializer}", kind="conflict")
        if self.endian is None and self._needs_endian(spec):
            # codecs/bytes, Configuration parameters: "Required for data types for which endianness is applicable"
            message = f'is required for {data_type.name}: "little" or "big"'
            raise MetadataError(message, pointer="/configuration/endian", kind="missing")
        return BytesSerializer(self, spec) if data_type.is_raw(self.byte_order) else super().bind(spec)

    def layout(self, spec: ArraySpec) -> ElementLayout:
        """Return the layout of the elements of a chunk."""
        dtype = spec.dtype.newbyteorder(">" if self.endian == "big" else "<")
        # every bit pattern is a valid number, but some are not valid booleans or characters
        check = None if spec.data_type.is_number else spec.data_type.check
        return ElementLayout(dtype, spec.shape, row_major_strides(spec.shape, dtype.itemsize), self.name, check)

    def encode(self, array: NDArray, spec: ArraySpec) -> Buffer:
        return spec.data_type.to_bytes(array, self.byte_order).data

    def decode(self, data: Buffer, spec: ArraySpec) -> NDArray:
        layout = self.layout(spec)
        if spec.data_type.is_raw(self.byte_order):
            return layout.array(data)
        layout.check_size(len(data))
        return layout.check(spec.data_type.from_bytes(np.frombuffer(data, "u1"), self.byte_order).reshape(spec.shape))

    def encoded_size(self, spec: ArraySpec) -> int:
        return spec.size * spec.dtype.itemsize


class BytesSerializer(Serializer):
    """The codec bound to a chunk shape: elements are at known offsets."""

    codec: Bytes
    layout: ElementLayout

    def __init__(self, codec: Bytes, spec: ArraySpec) -> None:
        super().__init__(codec, spec)
        self.layout = codec.layout(spec)

    def encode(self, array: NDArray, old: Buffer | None = None) -> Value:
        if array.dtype != self.layout.dtype:
            array = array.astype(self.layout.dtype)
        if array.flags.c_contiguous:
            return array.reshape(-1).view("u1").data
        if array.nbytes < LAZY_PACKING_BYTES:
            return array.tobytes()
        rows = max(1, COPY_BLOCK_BYTES // array[:1].nbytes)
        return [LazyPiece(array, [array[i : i + rows] for i in range(0, len(array), rows)])]
