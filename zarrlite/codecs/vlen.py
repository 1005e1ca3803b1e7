"""The `vlen-utf8` and `vlen-bytes` codecs: elements of variable length.

Rules (codecs/vlen-utf8, Format and algorithm)
- A chunk consists of the number of elements and, for each element, its length in bytes and its bytes. Count and
  lengths are unsigned 32-bit integers, little endian.
- Before an element is extracted, its length is checked against the number of bytes that remain.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import ArgumentError, DataError, MetadataError, TruncatedError
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, Serializer

Array = np.ndarray[Any, Any]
_U32 = struct.Struct("<I")


class _Vlen(ArrayBytesCodec):
    """The format that the two codecs share."""

    element: ClassVar[str]  # plural noun, for messages
    serializer: ClassVar[str]  # the default array -> bytes codec of the data types that this codec can store

    def bind(self, spec: ArraySpec) -> Serializer:
        if spec.data_type.serializer != self.serializer:
            message = f"{self.name} stores {self.element}, not {spec.data_type.name}; use {spec.data_type.serializer}"
            raise MetadataError(message, kind="conflict")
        return super().bind(spec)

    def join(self, items: list[bytes]) -> bytes:
        """Return a chunk that contains these elements."""
        if any(len(item) >= 2**32 for item in items):
            raise ArgumentError(f"{self.name} elements must be smaller than 4 GiB")
        pieces = [_U32.pack(len(items))]
        for item in items:
            pieces += (_U32.pack(len(item)), item)
        return b"".join(pieces)

    def split(self, data: Buffer, count: int) -> list[bytes]:
        """Return the elements of a chunk, which must have `count` of them."""
        data = bytes(data)
        end = len(data)
        if end < 4:
            raise TruncatedError(f"has {end} bytes, but the element count alone takes 4")
        (stated,) = _U32.unpack_from(data)
        if stated != count:
            raise DataError(f"has {stated} elements, but the chunk has {count}")
        if end < 4 + 4 * count:
            raise TruncatedError(
                f"has {end} bytes, but the element count and {count} lengths alone take {4 + 4 * count}"
            )
        items = []
        position = 4
        for i in range(count):
            start = position + 4
            position = start + _U32.unpack_from(data, position)[0] if start <= end else end + 1
            if position > end:
                raise TruncatedError(f"ends within element {i}")
            items.append(data[start:position])
        if position != end:
            raise TruncatedError(f"has {end - position} bytes after the last element")
        return items


@register
@dataclass(frozen=True)
class VlenUtf8(_Vlen):
    """Strings, encoded as UTF-8."""

    name = "vlen-utf8"
    element = "strings"
    serializer = "vlen-utf8"

    def encode(self, array: Array, spec: ArraySpec) -> bytes:
        return self.join([text.encode() for text in array.ravel().tolist()])

    def decode(self, data: Buffer, spec: ArraySpec) -> Array:
        items = self.split(data, spec.size)
        try:
            texts = [item.decode() for item in items]
        except UnicodeDecodeError as error:
            raise DataError(f"an element is not UTF-8: {error.reason}") from error
        return np.array(texts, spec.dtype).reshape(spec.shape)


@register
@dataclass(frozen=True)
class VlenBytes(_Vlen):
    """Byte strings."""

    name = "vlen-bytes"
    element = "byte strings"
    serializer = "vlen-bytes"

    def encode(self, array: Array, spec: ArraySpec) -> bytes:
        items = array.ravel().tolist()
        for item in items:
            if not isinstance(item, bytes):
                raise ArgumentError(f"an element must be bytes, not {type(item).__name__}")
        return self.join(items)

    def decode(self, data: Buffer, spec: ArraySpec) -> Array:
        array = np.empty(spec.size, object)
        array[:] = self.split(data, spec.size)
        return array.reshape(spec.shape)
