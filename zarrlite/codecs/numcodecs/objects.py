"""The filters of numcodecs for Python objects: `numcodecs.categorize`, `numcodecs.json2` and `numcodecs.vlen-array`.

Rules
- `categorize` stores each string as the number of its label, counting from 1. The number 0 stands for any string that
  is not a label, and is read as "". A string without a label is refused, unless it is "" or the fill value.
- `json2` stores text as one JSON array: the elements, the dtype and the shape. Elements that are not text are refused.
- `vlen-array` uses the format of `vlen-bytes`. Each element consists of the bytes of a one-dimensional array of
  `dtype`. Zarr has no data type for such elements, so their data type is `bytes`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.numcodecs.filters import numpy_type
from zarrlite.codecs.vlen import VlenBytes
from zarrlite.data_types.native import from_numpy
from zarrlite.errors import ArgumentError, DataError, MetadataError
from zarrlite.extensions.config import Config, Json, show
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayArrayCodec, ArrayBytesCodec, ArraySpec, Serializer
from zarrlite.pipeline.elements import NDArray


@register
@dataclass(frozen=True)
class Categorize(ArrayArrayCodec):
    """Text, stored as label numbers."""

    name = "numcodecs.categorize"
    labels: tuple[str, ...]
    dtype: str = "|O"
    astype: str = "|u1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        labels = config.list("labels")
        for i, label in enumerate(labels):
            if not isinstance(label, str):
                raise config.error(f"must contain only strings, not {show(label)} at index {i}", "labels", "type")
        return cls(
            tuple(labels), config.string("dtype", default=cls.dtype), config.string("astype", default=cls.astype)
        )

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        if spec.data_type.name not in ("string", "fixed_length_utf32"):
            raise MetadataError(f"{self.name} stores text, not {spec.data_type.name}", kind="conflict")
        encoded = from_numpy(numpy_type(self.astype, "astype", "iu"))
        if len(self.labels) > np.iinfo(encoded.dtype).max:
            message = f"must be an integer type large enough for {len(self.labels)} labels, not {show(self.astype)}"
            raise MetadataError(message, pointer="/configuration/astype", kind="conflict")
        fill = str(spec.fill[()])
        number = self.labels.index(fill) + 1 if fill in self.labels else 0
        fault = None if number or not fill else f"{self.name} has no label {fill!r}, the fill value of absent chunks"
        return spec.recast(encoded, number, fault)

    def encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        numbers = {label: i for i, label in reversed([*enumerate(self.labels, 1)])}
        texts = array.reshape(-1).tolist()
        unknown = next((text for text in texts if text and text not in numbers and text != spec.fill[()]), None)
        if unknown is not None:
            raise ArgumentError(f"{self.name} stores only its labels, not {unknown!r}")
        dtype = numpy_type(self.astype, "astype", "iu")
        return np.array([numbers.get(text, 0) for text in texts], dtype).reshape(spec.shape)

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        for number in (array.min(), array.max()):
            if not 0 <= number <= len(self.labels):
                raise DataError(f"must contain only numbers from 0 to {len(self.labels)}, not {number}")
        labels = np.array(["", *self.labels], spec.dtype)
        return labels[array]


@register
@dataclass(frozen=True)
class JSON2(ArrayBytesCodec):
    """Text as JSON."""

    name = "numcodecs.json2"

    @classmethod
    def from_config(cls, config: Config) -> Self:
        config.string("encoding", ("utf-8",), default="utf-8")
        for key in ("skipkeys", "ensure_ascii", "check_circular", "allow_nan", "sort_keys", "strict"):
            config.boolean(key, default=True)
        for key in ("indent", "separators"):
            config.raw(key, None)  # they affect only white space
        return cls()

    def bind(self, spec: ArraySpec) -> Serializer:
        if spec.data_type.name != "string":
            raise MetadataError(f"{self.name} stores the data type string, not {spec.data_type.name}", kind="conflict")
        return super().bind(spec)

    def encode(self, array: NDArray, spec: ArraySpec) -> bytes:
        items = [*np.atleast_1d(array).tolist(), "|O", list(spec.shape)]
        return json.dumps(items, separators=(",", ":")).encode()

    def decode(self, data: Buffer, spec: ArraySpec) -> NDArray:
        try:
            items: Json = json.loads(bytes(data))
        except RecursionError:
            raise DataError("is nested too deeply") from None
        if not isinstance(items, list) or len(items) < 2 or items[-1] != list(spec.shape):
            raise DataError(f"must be a JSON array that ends with a dtype and the shape {list(spec.shape)}")
        texts: list[Any] = items[:-2]
        for _ in spec.shape[1:]:
            if not all(isinstance(row, list) for row in texts):
                raise DataError(f"must be nested arrays of the shape {list(spec.shape)}")
            texts = [item for row in texts for item in row]
        if len(texts) != spec.size:
            raise DataError(f"has {len(texts)} elements, but the chunk has {spec.size}")
        for text in texts:
            if not isinstance(text, str):
                raise DataError(f"an element must be text, not {show(text)}")
        return np.array(texts, spec.dtype).reshape(spec.shape)


@register
@dataclass(frozen=True)
class VLenArray(VlenBytes):
    """One-dimensional arrays of variable length, as bytes."""

    name = "numcodecs.vlen-array"
    element = "arrays"
    dtype: str

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.string("dtype"))

    def bind(self, spec: ArraySpec) -> Serializer:
        self._itemsize()
        return super().bind(spec)

    def _itemsize(self) -> int:
        return numpy_type(self.dtype, "dtype", "biufcmMSU").itemsize

    def split(self, data: Buffer, count: int) -> list[bytes]:
        items, size = super().split(data, count), self._itemsize()
        for item in items:
            if len(item) % size:
                raise DataError(f"contains an array of {len(item)} bytes, which is not a multiple of {size}")
        return items
