"""The `zfp` codec, implemented by zfpy (install zarrlite[numcodecs]).

Rules (codecs/zfp)
- A chunk of one to four dimensions is stored as a zfp stream without a header; a chunk without dimensions is stored as
  an array of one element.
- Integers of 8 and 16 bits are "promoted to 32-bit" by a shift, float16 by a cast.
- The specification lists uint32 and uint64, which zfp does not support. As in zarrs, numbers of these types are stored
  as signed integers: larger numbers are refused, and negative numbers, which a lossy mode can produce, are read as 0.
- zfpy does not support the expert mode, so this mode is refused.
- zfp does not check where its input ends. A value is therefore extended to the largest size that zfp can read, and
  decoded twice: once extended with 0 bits, once with 1 bits. If the two results differ, the value is too short. Extra
  8-byte words after a value are detected only in the modes "reversible" and "fixed_rate".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.numcodecs.library import library
from zarrlite.errors import ArgumentError, MetadataError, TruncatedError
from zarrlite.extensions.config import Config, show
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, CompressingSerializer, Serializer
from zarrlite.pipeline.elements import NDArray

_HEADER = 64  # bytes; larger than any zfp header
MODES = {"reversible": None, "fixed_accuracy": "tolerance", "fixed_rate": "rate", "fixed_precision": "precision"}
_STORED = {  # data type -> the type that zfp compresses
    "int8": "i4",
    "uint8": "i4",
    "int16": "i4",
    "uint16": "i4",
    "int32": "i4",
    "uint32": "i4",
    "int64": "i8",
    "uint64": "i8",
    "float16": "f4",
    "float32": "f4",
    "float64": "f8",
}


@register
@dataclass(frozen=True)
class Zfp(ArrayBytesCodec):
    """Compression of numeric arrays, lossless or lossy."""

    name = "zfp"
    extra = "numcodecs"
    mode: str = "reversible"
    tolerance: float | None = None
    rate: float | None = None
    precision: int | None = None

    @classmethod
    def from_config(cls, config: Config) -> Self:
        mode = config.string("mode", (*MODES, "expert"))
        if mode == "expert":
            raise config.error("must not be expert: zfpy, which zarrlite uses, has no such mode", "mode")
        parameter = MODES[mode]
        if parameter is None:
            return cls(mode)
        if parameter == "precision":
            return cls(mode, precision=config.integer(parameter, 0, 64))
        value = config.number(parameter)
        if not 0 <= value <= 1e300:
            raise config.error(f"must be a number from 0 to 1e300, not {show(value)}", parameter)
        return cls(mode, tolerance=value) if parameter == "tolerance" else cls(mode, rate=value)

    def bind(self, spec: ArraySpec) -> Serializer:
        check(self.name, spec, _STORED)
        return CompressingSerializer(self, spec)

    @property
    def _options(self) -> dict[str, Any]:
        parameter = MODES[self.mode]
        return {} if parameter is None else {parameter: getattr(self, parameter)}

    def encode(self, array: NDArray, spec: ArraySpec) -> Buffer:
        zfpy = library("zfpy", self.name)
        field = promote(np.ascontiguousarray(array, spec.dtype)).reshape(spec.shape or (1,))
        encoded: Buffer = zfpy.compress_numpy(field, write_header=False, **self._options)
        return encoded

    def decode(self, data: Buffer, spec: ArraySpec) -> NDArray:
        zfpy = library("zfpy", self.name)
        stored = np.dtype(_STORED[spec.data_type.name])
        kind = zfpy.dtype_to_ztype(stored)

        def decompress(readable: bytes) -> NDArray:
            field = np.empty(spec.shape or (1,), stored)
            zfpy._decompress(readable, kind, field.shape, out=field, **self._options)
            return field

        field = decode_complete(data, spec.shape, stored.itemsize, decompress)
        if self.mode in ("reversible", "fixed_rate"):
            check_size(data, zfpy.compress_numpy(field, write_header=False, **self._options))
        return demote(field.reshape(spec.shape), spec.dtype)


def check(name: str, spec: ArraySpec, data_types: Any) -> None:
    """Raise MetadataError for chunks that zfp cannot compress."""
    if spec.data_type.name not in data_types:
        message = f"{name} cannot store {spec.data_type.name}; use one of {', '.join(data_types)}"
        raise MetadataError(message, kind="conflict")
    # codecs/zfp, Supported Chunk Shapes: "only supports 1, 2, 3 and 4 dimensional arrays"
    if len(spec.shape) > 4:
        message = f"{name} stores chunks of at most 4 dimensions, not {len(spec.shape)}; put reshape before it"
        raise MetadataError(message, kind="conflict")


def decode_complete(
    data: Buffer, shape: tuple[int, ...], itemsize: int, decompress: Callable[[bytes], NDArray]
) -> NDArray:
    """Decompress a stored array of this shape. Raises TruncatedError if the value is too short."""
    if len(data) % 8 or not len(data):
        raise TruncatedError(f"has {len(data)} bytes, but a zfp stream consists of 8-byte words")
    blocks = math.prod(-(-n // 4) for n in shape)
    bits = 4 ** max(1, len(shape)) * (8 * itemsize + 1) + 64  # upper limit for one block
    size = blocks * -(-bits // 8) + _HEADER
    field = decompress(bytes(data).ljust(size, b"\0"))
    if len(data) < size and field.tobytes() != decompress(bytes(data).ljust(size, b"\xff")).tobytes():
        raise TruncatedError("the zfp stream ends too early")
    return field


def check_size(data: Buffer, expected: Buffer) -> None:
    """Raise TruncatedError unless a value has the same size as the expected one."""
    if len(data) != len(expected):
        raise TruncatedError(f"has {len(data)} bytes, but the zfp stream of these elements has {len(expected)}")


def promote(array: NDArray) -> NDArray:
    """Return elements in a type that zfp compresses."""
    kind, bits = array.dtype.kind, 8 * array.dtype.itemsize
    if kind == "f":
        return array.astype("f4") if bits == 16 else array
    if bits < 32:
        # codecs/zfp, Compression: "int32_value = (int32_t)intN_value << (31 - N)"
        promoted: NDArray = (array.astype("i4") - (1 << (bits - 1) if kind == "u" else 0)) << (31 - bits)
        return promoted
    if kind == "u" and array.size and array.max() >= 1 << (bits - 1):
        raise ArgumentError(f"zfp stores {array.dtype} numbers up to {(1 << (bits - 1)) - 1}, not {array.max()}")
    return array.astype(f"i{bits // 8}")


def demote(field: NDArray, dtype: np.dtype[Any]) -> NDArray:
    """Undo `promote`."""
    kind, bits = dtype.kind, 8 * dtype.itemsize
    if kind == "f":
        with np.errstate(over="ignore"):
            return field.astype(dtype)
    if bits < 32:
        # codecs/zfp, Decompression: "clamp" to the range of the data type
        half = 1 << (bits - 1)
        field = np.clip(np.right_shift(field, 31 - bits), -half, half - 1) + (half if kind == "u" else 0)
    elif kind == "u":
        field = np.maximum(field, 0)
    return field.astype(dtype)
