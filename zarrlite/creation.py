"""From the arguments of `create_array` to metadata: zarr-python's keywords, and sensible defaults."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrlite import registry
from zarrlite.chunk_grids import Regular
from zarrlite.codecs.base import ArrayArrayCodec, BytesBytesCodec
from zarrlite.config import Json, dump_json, load_json
from zarrlite.data_types import DataType, from_dtype
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.metadata import MAX_NDIM, ArrayMetadata

CHUNK_BYTES = 2**20  # what a chunk has, decoded, if nobody says otherwise
DEFAULT = object()


def array_metadata(
    shape: int | Sequence[int],
    dtype: Any,
    *,
    chunks: Any = "auto",
    shards: Any = None,
    codecs: Sequence[Any] | None = None,
    filters: Any = "auto",
    serializer: Any = "auto",
    compressors: Any = "auto",
    fill_value: Any = DEFAULT,
    attributes: Mapping[str, Json] | None = None,
    chunk_key_encoding: Any = None,
    dimension_names: Sequence[str | None] | None = None,
    storage_transformers: Sequence[Any] = (),
) -> ArrayMetadata:
    """The metadata of a new array."""
    shape = normalize_shape(shape)
    data_type = from_dtype(dtype)
    chunk_shape = _chunk_shape(chunks, shape, data_type, shards)
    if codecs is None:
        chain = _chain(data_type, filters, serializer, compressors)
    elif (filters, serializer, compressors, shards) != ("auto", "auto", "auto", None):
        raise ArgumentError("codecs= is the whole chain; filters, serializer, compressors and shards go without it")
    else:
        chain = [_coerce(registry.codecs, codec) for codec in codecs]
    if shards is not None:
        inner, chunk_shape = chunk_shape, _shard_shape(shards, chunk_shape, shape)
        chain = [_coerce(registry.codecs, _sharding(inner, chain))]
    transformers = tuple(_coerce(registry.storage_transformers, t) for t in storage_transformers)
    names = None if dimension_names is None else tuple(dimension_names)
    metadata = ArrayMetadata(
        shape=shape,
        data_type=data_type,
        chunk_grid=Regular(chunk_shape),
        chunk_key_encoding=_coerce(registry.chunk_key_encodings, chunk_key_encoding or "default"),
        fill_value=_fill_value(data_type, fill_value),
        codecs=tuple(chain),
        attributes=load_json(dump_json(dict(attributes or {})), "attributes"),
        storage_transformers=transformers or None,
        dimension_names=names,
    )
    return _checked(metadata)


def _checked(metadata: ArrayMetadata) -> ArrayMetadata:
    """The metadata as a reader will see it, or the reason why none would; runtime options are kept."""
    try:
        metadata.check()
        ArrayMetadata.from_json(metadata.to_json())
    except MetadataError as error:
        raise error.under("", "new array") from None
    return metadata


def _coerce(kind: registry.Registry[Any], value: Any) -> Any:
    return kind.coerce(value)


def normalize_shape(shape: Any) -> tuple[int, ...]:
    """A tuple of lengths from a number or a sequence of numbers."""
    try:
        lengths = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    except (TypeError, ValueError):
        raise ArgumentError(f"shape must be a number or a sequence of numbers, not {shape!r}") from None
    if len(lengths) > MAX_NDIM or any(not 0 <= n < 2**63 for n in lengths):
        raise ArgumentError(f"shape must have at most {MAX_NDIM} lengths from 0 to 2**63 - 1, not {shape!r}")
    return lengths


def guess_chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Chunks of about a mebibyte: the longest dimension is halved until they are small enough.

    >>> guess_chunks((10_000, 10_000), 2)
    (625, 625)
    """
    chunks = [max(1, n) for n in shape]
    while math.prod(chunks) * itemsize > CHUNK_BYTES and max(chunks) > 1:
        longest = chunks.index(max(chunks))
        chunks[longest] = -(-chunks[longest] // 2)
    return tuple(chunks)


def _chunk_shape(chunks: Any, shape: tuple[int, ...], data_type: DataType, shards: Any) -> tuple[int, ...]:
    if (isinstance(chunks, str) and chunks == "auto") or chunks is None:
        if shards is not None and shards != "auto":
            return normalize_shape(shards)
        return guess_chunks(shape, data_type.itemsize or 64)
    lengths = normalize_shape(chunks)
    if len(lengths) == 1 and len(shape) > 1 and isinstance(chunks, (int, np.integer)):
        lengths *= len(shape)
    if len(lengths) != len(shape) or 0 in lengths:
        raise ArgumentError(f"chunks must have {len(shape)} lengths from 1, not {chunks!r}")
    return lengths


def _shard_shape(shards: Any, chunks: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    if isinstance(shards, str) and shards == "auto":
        return tuple(c * min(8, max(1, -(-n // c))) for c, n in zip(chunks, shape, strict=True))
    lengths = normalize_shape(shards)
    if len(lengths) != len(chunks) or 0 in lengths:
        raise ArgumentError(f"shards must have {len(chunks)} lengths from 1, not {shards!r}")
    return lengths


def _chain(data_type: DataType, filters: Any, serializer: Any, compressors: Any) -> list[Any]:
    """The codec chain from zarr-python's three keywords."""
    first = [] if _is_auto(filters) else _as_list(filters, ArrayArrayCodec, "filters", "array -> array")
    if _is_auto(serializer):
        serializer = data_type.serializer
        if serializer == "bytes" and data_type.has_byte_order:
            serializer = {"name": "bytes", "configuration": {"endian": "little"}}
    if _is_auto(compressors):
        compressors = "zstd"
    last = _as_list(compressors, BytesBytesCodec, "compressors", "bytes -> bytes")
    return [*first, _coerce(registry.codecs, serializer), *last]


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _as_list(values: Any, cls: type[Any], argument: str, kind: str) -> list[Any]:
    if values is None:
        return []
    items = list(values) if isinstance(values, (list, tuple)) else [values]
    codecs = [_coerce(registry.codecs, item) for item in items]
    for codec in codecs:
        if not isinstance(codec, cls):
            raise ArgumentError(f"{argument}= takes {kind} codecs; {codec.name} is none")
    return codecs


def _sharding(inner: tuple[int, ...], chain: list[Any]) -> Any:
    return registry.codecs.find("sharding_indexed")(inner, tuple(chain))  # type: ignore[misc]


def _fill_value(data_type: DataType, value: Any) -> Any:
    if value is DEFAULT or value is None:
        return data_type.default_fill_value
    try:
        return data_type.cast_scalar(value)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(value, (str, list, dict)):  # as zarr.json has it: "NaN", "0x7fc00001", [1, 2]
            with contextlib.suppress(MetadataError):
                return data_type.parse_fill_value(value)
        raise ArgumentError(f"fill_value {value!r} does not fit {data_type.name}: {error}") from None
