"""The filters of numcodecs that convert numbers: `numcodecs.delta`, `fixedscaleoffset`, `quantize` and `astype`.

Rules
- Data types are written in numpy's notation. A byte-order prefix such as `>` is kept when metadata is written, but
  otherwise ignored, because the array -> bytes codec determines the byte order.
- The decoded data type must be that of the array at this position in the chain, whereas numcodecs would reinterpret the
  bytes of an array of another type.
- Elements are encoded in row-major order. The shape is kept.
- Numbers are computed with the same numpy operations as in numcodecs, so that both libraries store the same bytes.
- Numcodecs silently changes numbers that are beyond the range of the encoded data type; zarrlite refuses them, except
  for the fill value, with which chunks at the edge of an array are padded.
- As in zarr-python, the fill value is not encoded: an encoded array has the same fill value as the decoded one. If the
  encoded data type cannot represent the fill value, a sharding codec cannot follow in the chain.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from zarrlite.data_types import DataType
from zarrlite.data_types.native import from_numpy
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions.config import Config, show
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayArrayCodec, ArraySpec
from zarrlite.pipeline.elements import NDArray


def numpy_type(text: str, member: str, kinds: str) -> np.dtype[Any]:
    """Return the named dtype in native byte order. Raises MetadataError unless its kind is in `kinds`."""
    try:
        dtype = np.dtype(text).newbyteorder("=")
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.kind not in kinds or dtype.itemsize > 16:
        raise MetadataError(
            f"must be a numpy dtype that this codec supports, not {show(text)}", pointer=f"/configuration/{member}"
        )
    return dtype


class _Filter(ArrayArrayCodec):
    """A codec whose configuration names the decoded and the encoded data type."""

    kinds: ClassVar[str] = "biufc"  # permitted values of `dtype.kind` for both data types
    decoded_member: ClassVar[str] = "dtype"
    encoded_member: ClassVar[str] = "astype"

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        if spec.dtype.kind not in self.kinds:
            raise MetadataError(f"{self.name} cannot encode {spec.data_type.name}", kind="conflict")
        text = getattr(self, self.decoded_member)
        if text is not None and numpy_type(text, self.decoded_member, self.kinds) != spec.dtype:
            message = f"must be {spec.data_type.name}, the data type of the array to encode, not {show(text)}"
            raise MetadataError(message, pointer=f"/configuration/{self.decoded_member}", kind="conflict")
        encoded = self._encoded_dtype(spec)
        if (encoded.kind == "c") != (spec.dtype.kind == "c"):
            message = f"must be complex if and only if the array is, not {encoded} for {spec.data_type.name}"
            raise MetadataError(message, pointer=f"/configuration/{self.encoded_member}", kind="conflict")
        return recast(spec, from_numpy(encoded), self.name)

    def _encoded_dtype(self, spec: ArraySpec) -> np.dtype[Any]:
        text = getattr(self, self.encoded_member)
        return spec.dtype if text is None else numpy_type(text, self.encoded_member, self.kinds)


class _Conversion(_Filter):
    """A filter that converts each element independently."""

    elementwise = True

    def encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        with np.errstate(all="ignore"):
            converted = self._convert(np.ascontiguousarray(array, spec.dtype), spec)
            dtype = self._encoded_dtype(spec)
            encoded = converted.astype(dtype)
            changed = self._changed(array, converted, encoded, spec) & ~_equal(array, spec.fill)
            if changed.any():
                raise ArgumentError(f"{self.name} cannot store {np.asarray(array)[changed].flat[0]} as {dtype}")
        return encoded.reshape(spec.shape)

    def _changed(self, array: NDArray, converted: NDArray, encoded: NDArray, spec: ArraySpec) -> Any:
        """Return a mask of the elements that are beyond the range of the encoded data type."""
        if encoded.dtype.kind in "biu":
            return encoded != converted.astype("f8" if converted.dtype.kind == "f" else converted.dtype)
        return ~np.isfinite(encoded) & np.isfinite(array)

    @abstractmethod
    def _convert(self, array: NDArray, spec: ArraySpec) -> NDArray:
        """Return the encoded numbers, before they are cast to the encoded data type."""


def _equal(array: NDArray, fill: NDArray) -> Any:
    """Compare elements with the fill value; NaN is equal to NaN."""
    return (array == fill) | ((array != array) & bool(fill != fill))


def recast(spec: ArraySpec, data_type: DataType, name: str) -> ArraySpec:
    """Return the spec of encoded arrays, with the same fill value if the data type can represent it."""
    if data_type == spec.data_type:
        return spec
    with np.errstate(all="ignore"):
        fill = spec.fill.astype(data_type.dtype)
        fits = bool(_equal(fill.astype(spec.dtype), spec.fill))
    fault = f"{name} stores {data_type.name}, which cannot represent {spec.fill[()]}, the fill value of absent chunks"
    return spec.recast(data_type, fill, None if fits else fault)


@register
@dataclass(frozen=True)
class Delta(_Filter):
    """The first element, and the differences between consecutive elements."""

    name = "numcodecs.delta"
    kinds = "iufc"
    dtype: str
    astype: str | None = None

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.string("dtype"), _optional(config, "astype"))

    def encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        elements = np.ascontiguousarray(array, spec.dtype).reshape(-1)
        encoded = np.empty(elements.shape, self._encoded_dtype(spec))
        with np.errstate(all="ignore"):
            encoded[:1] = elements[:1]
            encoded[1:] = np.diff(elements)
        encoded = encoded.reshape(spec.shape)
        if spec.dtype.kind in "biu" and not np.array_equal(self.decode(encoded, spec), array):
            raise ArgumentError(f"{self.name} cannot store these differences as {encoded.dtype}; use a larger astype")
        return encoded

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        decoded = np.empty(spec.shape, spec.dtype)
        with np.errstate(all="ignore"):
            np.cumsum(np.ascontiguousarray(array).reshape(-1), out=decoded.reshape(-1))
        return decoded


@register
@dataclass(frozen=True)
class FixedScaleOffset(_Conversion):
    """`(x - offset) * scale`, rounded to integers."""

    name = "numcodecs.fixedscaleoffset"
    kinds = "iuf"
    offset: float
    scale: float
    dtype: str | None = None
    astype: str | None = None

    @classmethod
    def from_config(cls, config: Config) -> Self:
        offset, scale = config.number("offset"), config.number("scale")
        if scale == 0:
            raise config.error("must not be 0", "scale")
        return cls(offset, scale, _optional(config, "dtype"), _optional(config, "astype"))

    def _convert(self, array: NDArray, spec: ArraySpec) -> NDArray:
        offset, scale = self._parameters(array.dtype)
        return np.around((array - offset) * scale)

    def _changed(self, array: NDArray, converted: NDArray, encoded: NDArray, spec: ArraySpec) -> Any:
        if spec.dtype.kind == "f":
            return super()._changed(array, converted, encoded, spec)
        # an integer may wrap around if decoding restores it; a difference that rounding can cause is tolerated: up to
        # 0.5 / scale in encoding, and less than 1 in decoding
        error = self.decode(encoded, spec).astype("f8") - array.astype("f8")
        return abs(error) >= 1 + 0.5 / abs(self.scale)

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        with np.errstate(all="ignore"):
            offset, scale = self._parameters(array.dtype)
            return (array / scale + offset).astype(spec.dtype)

    def _parameters(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        """Return offset and scale, both as floats if one is an integer beyond the range of the data type."""
        if dtype.kind in "iu" and not all(_fits(x, dtype) for x in (self.offset, self.scale)):
            return float(self.offset), float(self.scale)
        return self.offset, self.scale


@register
@dataclass(frozen=True)
class Quantize(_Conversion):
    """Floating-point numbers, rounded to a given number of decimal digits."""

    name = "numcodecs.quantize"
    kinds = "f"
    digits: int
    dtype: str | None = None
    astype: str | None = None

    @classmethod
    def from_config(cls, config: Config) -> Self:
        digits = config.integer("digits", -300, 300)
        return cls(digits, _optional(config, "dtype"), _optional(config, "astype"))

    def _convert(self, array: NDArray, spec: ArraySpec) -> NDArray:
        exponent = math.log10(10.0**-self.digits)
        exponent = math.floor(exponent) if exponent < 0 else math.ceil(exponent)
        scale = 2.0 ** math.ceil(math.log2(10.0**-exponent))
        return np.around(scale * array) / scale

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        return array.astype(spec.dtype)


@register
@dataclass(frozen=True)
class AsType(_Conversion):
    """Numbers, converted to another data type as numpy does."""

    name = "numcodecs.astype"
    decoded_member = "decode_dtype"
    encoded_member = "encode_dtype"
    encode_dtype: str
    decode_dtype: str | None = None

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(config.string("encode_dtype"), _optional(config, "decode_dtype"))

    def _convert(self, array: NDArray, spec: ArraySpec) -> NDArray:
        return array

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        with np.errstate(all="ignore"):
            return array.astype(spec.dtype)


def _optional(config: Config, key: str) -> str | None:
    """Return a string member, or None if it is null or absent."""
    return None if config.raw(key, None) is None else config.string(key)


def _fits(value: float, dtype: np.dtype[Any]) -> bool:
    """Whether a number is a float, or an integer within the range of the data type."""
    info = np.iinfo(dtype)
    return isinstance(value, float) or int(info.min) <= value <= int(info.max)
