"""The `cast_value` codec: numbers, converted to another data type.

Rules (codecs/cast_value, Procedure)
- `scalar_map` is applied first, then exact conversion, then `rounding`, then `out_of_range`. A number that cannot
  be converted is an error. Decoding follows the same rules with the data types swapped.
- A key of `scalar_map` matches equal numbers; the key NaN matches every NaN. The first of several equal keys is used.
- The example in the specification has the key "+Infinity", which no data type permits; it is read as "Infinity".
- The fill value must survive a round trip, since shards omit inner chunks that contain only the fill value.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrlite.codecs.numbers import ROUNDINGS, Integers, convert, number_type
from zarrlite.data_types import DataType
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Config, Json, is_number, show
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import ArrayArrayCodec, ArraySpec
from zarrlite.pipeline.elements import NDArray

Pairs = tuple[tuple[Json, Json], ...]


@register
@dataclass(frozen=True)
class CastValue(ArrayArrayCodec):
    """A conversion of numbers to another data type."""

    name = "cast_value"
    elementwise = True
    data_type: DataType
    rounding: str = "nearest-even"
    out_of_range: str | None = None
    # pairs of a number and its replacement, in the JSON form of fill values; the replacements in `encode_map` and the
    # numbers in `decode_map` are of type `data_type`
    encode_map: Pairs = ()
    decode_map: Pairs = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_type", registry.data_types.coerce(self.data_type))
        for name in ("encode_map", "decode_map"):
            pairs: Any = getattr(self, name)
            object.__setattr__(self, name, tuple((key, value) for key, value in pairs))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        data_type: Any = registry.data_types.parse(config.raw("data_type"), config.at("data_type"), config.context)
        if number_type(data_type) is None:
            raise config.error(f"must be a real-number data type, not {data_type.name}", "data_type")
        rounding = config.string("rounding", ROUNDINGS, default="nearest-even")
        out_of_range = config.string("out_of_range", ("clamp", "wrap"), default=None)
        # cast_value, out_of_range: "Only permitted when `data_type` is an integral type"
        if out_of_range == "wrap" and not isinstance(number_type(data_type), Integers):
            raise config.error(f"must not be wrap for {data_type.name}, which is not an integer type", "out_of_range")
        maps = config.object("scalar_map", default={})
        pairs = [_pairs(maps, key) for key in ("encode", "decode")]
        maps.finish()
        return cls(data_type, rounding, out_of_range, *pairs)

    def to_config(self) -> dict[str, Json]:
        config: dict[str, Json] = {"data_type": self.data_type.to_json()}
        if self.rounding != "nearest-even":
            config["rounding"] = self.rounding
        if self.out_of_range is not None:
            config["out_of_range"] = self.out_of_range
        maps = {"encode": self.encode_map, "decode": self.decode_map}
        if any(maps.values()):
            config["scalar_map"] = {key: [[*pair] for pair in pairs] for key, pairs in maps.items() if pairs}
        return config

    def encoded_spec(self, spec: ArraySpec) -> ArraySpec:
        if number_type(spec.data_type) is None:
            raise MetadataError(f"{self.name} converts real numbers, not {spec.data_type.name}", kind="conflict")
        encode_map, decode_map = self._scalar_maps(spec.data_type)
        # cast_value, data_type: "fill value cannot survive a round-trip cast", which is an error
        try:
            fill = self._cast(spec.fill, spec.data_type, self.data_type, encode_map)
            back = self._cast(fill, self.data_type, spec.data_type, decode_map)
        except ValueError as error:
            message = f"must be able to convert the fill value {spec.fill[()]}: {error}"
            raise MetadataError(message, kind="conflict") from None
        if not _matches(back, spec.fill):
            message = f"must preserve the fill value: {spec.fill[()]} is stored as {fill[()]} and read as {back[()]}"
            raise MetadataError(message, kind="conflict")
        return spec.recast(self.data_type, fill)

    def encode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        try:
            return self._cast(np.asarray(array), spec.data_type, self.data_type, self._scalar_maps(spec.data_type)[0])
        except ValueError as error:
            remedy = "" if self.out_of_range else '; set out_of_range to "clamp" or "wrap", or use scalar_map'
            raise ArgumentError(f"{self.name}: {error}{remedy}") from None

    def decode(self, array: NDArray, spec: ArraySpec) -> NDArray:
        return self._cast(array, self.data_type, spec.data_type, self._scalar_maps(spec.data_type)[1])

    def _cast(self, array: NDArray, source: DataType, target: DataType, scalar_map: Any) -> NDArray:
        """Convert numbers. Raises ValueError if one of them cannot be converted."""
        array = np.ascontiguousarray(array, source.dtype).reshape(array.shape)
        pending = np.ones(array.shape, bool)
        mapped = []
        for key, value in scalar_map:
            found = pending & _matches(array, key)
            mapped.append((found, value))
            pending &= ~found
        if mapped:
            array = np.where(pending, array, source.dtype.type(1))  # every data type can represent this placeholder
        out_of_range = self.out_of_range
        if out_of_range == "wrap" and not isinstance(number_type(target), Integers):
            out_of_range = None
        source_type, target_type = number_type(source), number_type(target)
        result = convert(array, source_type, target_type, self.rounding, out_of_range)  # type: ignore[arg-type]
        for found, value in mapped:
            result = np.where(found, value, result)
        return result

    def _scalar_maps(self, data_type: DataType) -> tuple[Any, Any]:
        return _parsed_maps(self, data_type)


@functools.lru_cache(maxsize=64)
def _parsed_maps(codec: CastValue, data_type: DataType) -> tuple[Any, Any]:
    """Return the scalar maps for arrays of a data type.

    Raises MetadataError, with a JSON pointer relative to the metadata of the codec.
    """
    return (
        _parsed(codec.encode_map, data_type, codec.data_type, "/configuration/scalar_map/encode"),
        _parsed(codec.decode_map, codec.data_type, data_type, "/configuration/scalar_map/decode"),
    )


def _parsed(pairs: Pairs, source: DataType, target: DataType, pointer: str) -> list[tuple[Any, Any]]:
    result = []
    for i, pair in enumerate(pairs):
        scalars = []
        for j, (value, data_type) in enumerate(zip(pair, (source, target), strict=True)):
            try:
                scalars.append(data_type.parse_fill_value("Infinity" if value == "+Infinity" else value))
            except MetadataError as error:
                raise error.under(f"{pointer}/{i}/{j}") from None
        result.append((scalars[0], scalars[1]))
    return result


def _matches(array: NDArray, key: Any) -> Any:
    """Whether elements are equal to a number; NaN is equal to NaN."""
    return array != array if key != key else array == key


def _pairs(config: Config, key: str) -> Pairs:
    pairs = config.list(key, default=[])
    for i, pair in enumerate(pairs):
        is_pair = isinstance(pair, list) and len(pair) == 2 and all(is_number(x) or isinstance(x, str) for x in pair)
        if not is_pair:
            raise config.error(f"must contain only pairs of numbers, not {show(pair)} at index {i}", key, "type")
    return tuple((source, target) for source, target in pairs)
