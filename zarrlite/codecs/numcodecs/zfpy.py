"""The `numcodecs.zfpy` codec: arrays compressed by zfp, with a header (install zarrlite[numcodecs]).

Rules
- `mode` is a number defined by zfp: 2 for a fixed `rate`, 3 for a fixed `precision`, 4 for a fixed `tolerance`.
- The header of a value states its type, shape and parameters. Type and shape are compared with those of the chunk
  before anything is allocated; the parameters in the configuration affect only writing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.codecs.numcodecs.library import library
from zarrlite.codecs.zfp import check, check_size, decode_complete
from zarrlite.errors import DataError
from zarrlite.extensions.config import Config
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, CompressingSerializer, Serializer
from zarrlite.pipeline.elements import NDArray

_MODES = {2: "rate", 3: "precision", 4: "tolerance"}
_HEADER = 32  # bytes; larger than any zfp header


@register
@dataclass(frozen=True)
class ZFPY(ArrayBytesCodec):
    """Compression of numeric arrays, lossless or lossy."""

    name = "numcodecs.zfpy"
    extra = "numcodecs"
    mode: int = 4
    tolerance: float = -1
    rate: float = -1
    precision: int = -1

    @classmethod
    def from_config(cls, config: Config) -> Self:
        mode = config.integer("mode", 2, 4, default=cls.mode)
        config.raw("compression_kwargs", None)  # numcodecs ignores it
        tolerance, rate = config.number("tolerance", default=-1), config.number("rate", default=-1)
        return cls(mode, tolerance, rate, config.integer("precision", -1, 64, default=-1))

    def bind(self, spec: ArraySpec) -> Serializer:
        check(self.name, spec, ("int32", "int64", "float32", "float64"))
        return CompressingSerializer(self, spec)

    def encode(self, array: NDArray, spec: ArraySpec) -> Buffer:
        field = np.ascontiguousarray(array, spec.dtype).reshape(spec.shape or (1,))
        option = _MODES[self.mode]
        options = {option: getattr(self, option)}
        encoded: Buffer = library("zfpy", self.name).compress_numpy(field, write_header=True, **options)
        return encoded

    def decode(self, data: Buffer, spec: ArraySpec) -> NDArray:
        zfpy = library("zfpy", self.name)
        header = zfpy.header(bytes(data) + bytes(_HEADER))
        shape = tuple(header[n] for n in ("nw", "nz", "ny", "nx") if header[n])
        if shape != (spec.shape or (1,)) or np.dtype(header["type"]) != spec.dtype:
            found = f"{np.dtype(header['type']).name} of shape {shape}"
            raise DataError(f"is an array of {found}, but the chunk is {spec.data_type.name} of shape {spec.shape}")
        array = decode_complete(data, shape, spec.dtype.itemsize, zfpy.decompress_numpy)
        if header["mode"] == "rate":
            check_size(data, zfpy.compress_numpy(array, write_header=True, rate=header["config"]["rate"]))
        return array.reshape(spec.shape)
