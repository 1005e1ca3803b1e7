"""From the arguments of `create_array` to metadata and to an array: zarr-python's keywords, and sensible defaults.

Rules
- Everything is checked, and data is cast, before anything is stored or removed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrlite import chunk_grids
from zarrlite.chunks.chunks import ArrayOptions
from zarrlite.data_types import DataType, from_dtype
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context, Json, dump_json, load_json
from zarrlite.metadata.documents import ArrayMetadata, Options
from zarrlite.nodes.array import Array
from zarrlite.nodes.node import write_new
from zarrlite.pipeline.codec import ArrayArrayCodec, BytesBytesCodec
from zarrlite.selections.casting import cast, is_number, normalize_shape
from zarrlite.stores import Store

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
    storage_transformers: Sequence[Any] | None = None,
    options: Options | None = None,
) -> ArrayMetadata:
    """The metadata of a new array."""
    shape = normalize_shape(shape)
    data_type = from_dtype(dtype)
    chunk_shape = _chunk_shape(chunks, shape, data_type, shards)
    if codecs is None:
        chain = _chain(data_type, filters, serializer, compressors)
    elif (filters, serializer, compressors, shards) != ("auto", "auto", "auto", None):
        raise ArgumentError("codecs= is the whole chain; filters, serializer, compressors and shards go without it")
    elif isinstance(codecs, (str, dict)):
        raise ArgumentError(f"codecs= takes a list of codecs, not {codecs!r}")
    else:
        chain = [registry.codecs.coerce(codec) for codec in codecs]
    if shards is not None:
        inner, chunk_shape = chunk_shape, _shard_shape(shards, chunk_shape, shape)
        chain = [_sharding(inner, chain)]
    transformers = tuple(registry.storage_transformers.coerce(t) for t in storage_transformers or ())
    names = None if dimension_names is None else tuple(dimension_names)
    metadata = ArrayMetadata(
        shape=shape,
        data_type=data_type,
        chunk_grid=chunk_grids.Regular(chunk_shape),
        chunk_key_encoding=_key_encoding(chunk_key_encoding),
        fill_value=_fill_value(data_type, fill_value),
        codecs=tuple(chain),
        attributes=load_json(dump_json(dict(attributes or {})), "attributes"),
        storage_transformers=transformers or None,
        dimension_names=names,
    )
    return _checked(metadata, options)


def _checked(metadata: ArrayMetadata, options: Options | None) -> ArrayMetadata:
    """The metadata, if a reader would take it; runtime options come with the objects, or by pointer."""
    document = metadata.to_json()
    try:
        plain = ArrayMetadata.from_json(document, Context(document="new array"))
        metadata.check()
        if not options:
            return metadata
        if (plain.codecs, plain.storage_transformers) != (metadata.codecs, metadata.storage_transformers):
            raise ArgumentError("give runtime options with the extensions, or as options=, not both")
        return ArrayMetadata.from_json(document, Context(document="new array", options=options))
    except MetadataError as error:
        raise error.under("", "new array") from None


def guess_chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Chunks of about a mebibyte: the longest dimension is halved until they are small enough.

    >>> guess_chunks((10_000, 10_000), 2)
    (625, 625)
    """
    chunks = [max(1, n) for n in shape]
    while math.prod(chunks) * itemsize > CHUNK_BYTES and max(chunks, default=1) > 1:
        longest = chunks.index(max(chunks))
        chunks[longest] = -(-chunks[longest] // 2)
    return tuple(chunks)


def _chunk_shape(chunks: Any, shape: tuple[int, ...], data_type: DataType, shards: Any) -> tuple[int, ...]:
    if isinstance(chunks, bool):
        chunks = "auto" if chunks else tuple(max(1, n) for n in shape)
    if chunks is not None and not _is_auto(chunks):
        return _lengths("chunks", chunks, len(shape))
    if shards is not None and not _is_auto(shards):
        return _lengths("shards", shards, len(shape))
    return guess_chunks(shape, data_type.itemsize or 64)


def _shard_shape(shards: Any, chunks: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    if _is_auto(shards):
        return tuple(c * min(8, max(1, -(-n // c))) for c, n in zip(chunks, shape, strict=True))
    return _lengths("shards", shards, len(chunks))


def _lengths(argument: str, value: Any, ndim: int) -> tuple[int, ...]:
    """A positive length for each dimension; a single number stands for all."""
    try:
        lengths = normalize_shape(value)
    except ArgumentError:
        lengths = ()
    if is_number(value):
        lengths *= ndim
    if len(lengths) != ndim or 0 in lengths:
        raise ArgumentError(f"{argument} must have {ndim} lengths from 1, not {value!r}")
    return lengths


def _key_encoding(value: Any) -> Any:
    if isinstance(value, dict) and "separator" in value:  # zarr-python's own spelling
        value = {"name": value.get("name"), "configuration": {k: v for k, v in value.items() if k != "name"}}
    return registry.chunk_key_encodings.coerce(value or "default")


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
    return [*first, registry.codecs.coerce(serializer), *last]


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _as_list(values: Any, cls: type[Any], argument: str, kind: str) -> list[Any]:
    if values is None:
        return []
    items = list(values) if isinstance(values, (list, tuple)) else [values]
    codecs = [registry.codecs.coerce(item) for item in items]
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


def create_array_at(
    store: Store,
    path: str,
    *,
    shape: Any = None,
    dtype: Any = None,
    data: Any = None,
    overwrite: bool = False,
    write_data: bool = True,
    write_empty_chunks: bool | None = None,
    missing_chunks: Any = None,
    config: Mapping[str, Any] | None = None,
    order: str | None = None,
    zarr_format: int | None = 3,
    storage_options: None = None,
    behaviour: ArrayOptions = ArrayOptions(),
    **kwargs: Any,
) -> Array:
    """Create an array at a path of a store, and fill it from `data`."""
    check_keywords(kwargs)
    check_format(zarr_format)
    if storage_options is not None or order not in (None, "C"):
        raise ArgumentError("storage_options= and an order= other than 'C' mean nothing here")
    if data is not None:
        data, shape, dtype = _data(data, shape, dtype)
    if shape is None or dtype is None:
        raise ArgumentError("an array needs shape= and dtype=, or data=")
    behaviour = _behaviour(behaviour, write_empty_chunks, missing_chunks, config)
    metadata = array_metadata(shape, dtype, **kwargs)
    array = Array(store, path, metadata, behaviour)
    write_new(store, path, metadata, overwrite=overwrite)
    array._chunks.erase_leftovers()
    if data is not None and write_data:
        try:
            array[...] = data
        except BaseException:
            with contextlib.suppress(Exception):  # half an array is none; what went wrong is said already
                array.delete()
            raise
    return array


CREATE_KEYWORDS = {*(array_metadata.__kwdefaults__ or ()), *(create_array_at.__kwdefaults__ or ())} - {"behaviour"}


def check_keywords(given: Mapping[str, Any]) -> None:
    """Refuse keywords that nothing is made from."""
    for name in given:
        if name not in CREATE_KEYWORDS:
            import difflib

            near = difflib.get_close_matches(name, CREATE_KEYWORDS, 1)
            raise ArgumentError(f"there is no keyword {name!r}" + (f"; {near[0]!r} is one" if near else ""))


def check_format(zarr_format: int | None) -> None:
    """zarr-python's keyword: only version 3 is there."""
    if zarr_format not in (None, 3):
        raise ArgumentError(f"zarrlite reads and writes Zarr version 3, not {zarr_format!r}")


def _data(data: Any, shape: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """The data as an array in memory, with its shape and data type."""
    if dtype is None and isinstance(data, Array):
        dtype = data.metadata.data_type
    if dtype is not None:
        dtype = from_dtype(dtype)
        values = cast(data, dtype.dtype)
    else:
        values = _guess(data)
        dtype = values.dtype
    if shape is not None and values.shape != normalize_shape(shape):
        raise ArgumentError(f"shape {shape} is not that of the data, {values.shape}")
    return values, values.shape, dtype


def _guess(data: Any) -> Any:
    """A numpy array from what the caller gave; text becomes strings of any length."""
    try:
        array = np.asarray(data)
        if array.dtype.kind == "U" and not isinstance(data, np.ndarray):
            array = array.astype(np.dtypes.StringDType())
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"data cannot be made an array: {error}") from None
    return array


def _behaviour(
    default: ArrayOptions, write_empty: bool | None, missing: Any, config: Mapping[str, Any] | None
) -> ArrayOptions:
    """Runtime options from keywords, and from zarr-python's `config`."""
    config = dict(config or {})
    order = config.pop("order", "C")
    configured = config.pop("write_empty_chunks", default.write_empty_chunks)
    write_empty = configured if write_empty is None else write_empty
    if config or order != "C":
        raise ArgumentError(f"config takes write_empty_chunks, and order 'C'; not {config or order!r}")
    return ArrayOptions(missing or default.missing_chunks, bool(write_empty))
