"""Creation of arrays: from the arguments of `create_array` to metadata and an array in a store.

Rules
- The arguments are those of zarr-python; the defaults suit arrays that are read one part at a time.
- All arguments are checked, and data is cast, before anything is stored or removed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from zarrlite import chunk_grids
from zarrlite.chunks.chunks import ArrayOptions
from zarrlite.data_types import DataType, from_dtype
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Context, Json, dump_json, load_json
from zarrlite.metadata.documents import ArrayMetadata, Options
from zarrlite.nodes.arguments import (
    ChunkKeyEncodingLike,
    ChunksLike,
    CodecLike,
    CompressorLike,
    ConfigLike,
    DocumentKeywords,
    DTypeLike,
    FilterLike,
    MemoryOrder,
    MissingChunks,
    NewNodeKeywords,
    SerializerLike,
    ShapeLike,
    ShardsLike,
    StorageTransformerLike,
    check_format,
    check_runtime,
    override_options,
)
from zarrlite.nodes.array import Array
from zarrlite.nodes.node import write_new
from zarrlite.pipeline.chain import fit_chain
from zarrlite.pipeline.codec import ArrayArrayCodec, ArrayBytesCodec, ArraySpec, BytesBytesCodec, Codec
from zarrlite.selections.casting import cast, is_number, normalize_shape
from zarrlite.selections.selection import Shape
from zarrlite.stores import Store

CHUNK_BYTES = 2**20  # decoded bytes; upper limit for chunks whose shape is chosen automatically
VARIABLE_ITEMSIZE = 64  # bytes; the assumed size of variable-length elements when a chunk shape is chosen
CHUNKS_PER_SHARD = 8  # chunks along each dimension; upper limit for shards whose shape is chosen automatically
DEFAULT = None  # passed as a fill value, it selects the default of the data type

# keyword of create_array -> the class of codecs that it accepts, and the name of their kind
_CODEC_KINDS: dict[str, tuple[type[Codec], str]] = {
    "filters": (ArrayArrayCodec, "array -> array"),
    "serializer": (ArrayBytesCodec, "array -> bytes"),
    "compressors": (BytesBytesCodec, "bytes -> bytes"),
}


def array_metadata(
    shape: ShapeLike,
    dtype: DTypeLike,
    *,
    chunks: ChunksLike | Literal["auto"] | bool | None = "auto",
    shards: ShardsLike = None,
    codecs: Sequence[CodecLike] | None = None,
    filters: FilterLike | Sequence[FilterLike] | None = "auto",
    serializer: SerializerLike = "auto",
    compressors: CompressorLike | Sequence[CompressorLike] | None = "auto",
    fill_value: Any = DEFAULT,
    attributes: Mapping[str, Json] | None = None,
    chunk_key_encoding: ChunkKeyEncodingLike | None = None,
    dimension_names: Sequence[str | None] | None = None,
    storage_transformers: Sequence[StorageTransformerLike] | None = None,
    options: Options | None = None,
) -> ArrayMetadata:
    """Return the metadata of a new array. The arguments are those of `create_array`."""
    shape = normalize_shape(shape)
    data_type = from_dtype(dtype)
    shards, index_location = _shards(shards)
    uneven = _uneven_grid("chunks", chunks, len(shape)) or _uneven_grid("shards", shards, len(shape))
    if _is_uneven(chunks):
        if shards is not None:
            raise ArgumentError(
                "all chunks inside shards must have the same shape; to vary shard lengths, list them in shards="
            )
        chunks = "auto"
    elif uneven is not None:
        shards = uneven.largest_chunk(len(shape))
    chunk_shape = _chunk_shape(chunks, shape, data_type, shards)
    if codecs is None:
        chain = tuple(_chain(data_type, filters, serializer, compressors))
    elif shards is not None or not all(map(_is_auto, (filters, serializer, compressors))):
        raise ArgumentError("pass either codecs= or filters=, serializer=, compressors= and shards=, not both")
    elif isinstance(codecs, (str, dict)):
        raise ArgumentError(f"codecs must be a list of codecs, not {codecs!r}")
    else:
        chain = tuple(registry.codecs.coerce(codec) for codec in codecs)
    if shards is not None:
        shard_shape = _shard_shape(shards, chunk_shape, shape)
        chain = (_sharding(chunk_shape, chain, index_location),)
        chunk_shape = shard_shape
    fill = _fill_value(data_type, fill_value)
    transformers = tuple(registry.storage_transformers.coerce(t) for t in storage_transformers or ())
    metadata = ArrayMetadata(
        shape=shape,
        data_type=data_type,
        chunk_grid=uneven or chunk_grids.Regular(chunk_shape),
        chunk_key_encoding=_key_encoding(chunk_key_encoding),
        fill_value=fill,
        codecs=fit_chain(chain, ArraySpec(chunk_shape, data_type, fill)),
        attributes=load_json(dump_json(dict(attributes or {})), "attributes"),
        storage_transformers=transformers or None,
        dimension_names=None if dimension_names is None else tuple(dimension_names),
    )
    return _checked(metadata, options)


def _checked(metadata: ArrayMetadata, options: Options | None) -> ArrayMetadata:
    """Return the metadata with its runtime options, after the checks that a reader of the document would make.

    Runtime options are set on the extension objects, or passed in `options`, keyed by JSON pointer.
    """
    document = metadata.to_json()
    try:
        parsed = ArrayMetadata.from_json(document, Context(document="new array"))
        metadata.check()
        if not options:
            return metadata
        if (parsed.codecs, parsed.storage_transformers) != (metadata.codecs, metadata.storage_transformers):
            raise ArgumentError("pass runtime options with the extension objects or as options=, not both")
        return ArrayMetadata.from_json(document, Context(document="new array", options=options))
    except MetadataError as error:
        raise error.under("", "new array") from None


def guess_chunks(shape: Shape, itemsize: int) -> Shape:
    """Choose chunks of at most 1 MiB by halving the longest dimension until they are small enough.

    >>> guess_chunks((10_000, 10_000), 2)
    (625, 625)
    """
    chunks = [max(1, n) for n in shape]
    while math.prod(chunks) * itemsize > CHUNK_BYTES and max(chunks, default=1) > 1:
        longest = chunks.index(max(chunks))
        chunks[longest] = -(-chunks[longest] // 2)
    return tuple(chunks)


def _chunk_shape(chunks: Any, shape: Shape, data_type: DataType, shards: Any) -> Shape:
    if chunks is False:
        return tuple(max(1, n) for n in shape)
    if chunks is not None and chunks is not True and not _is_auto(chunks):
        if len(shape) == 1 and is_number(chunks):
            chunks = [chunks]
        if 0 in shape and not is_number(chunks) and len(chunks) == len(shape):  # for example, chunks=data.shape
            chunks = [c or 1 if n == 0 else c for c, n in zip(chunks, shape, strict=True)]
        return _lengths("chunks", chunks, len(shape))
    if shards is not None and not _is_auto(shards):
        return _lengths("shards", shards, len(shape))
    return guess_chunks(shape, data_type.itemsize or VARIABLE_ITEMSIZE)


def _is_uneven(value: Any) -> bool:
    """Whether a value lists the lengths of individual chunks or shards, as in [[3, 4, 5], 10]."""
    items = value if isinstance(value, (list, tuple)) else ()
    return any(isinstance(item, (list, tuple, np.ndarray)) for item in items)


def _uneven_grid(argument: str, value: Any, ndim: int) -> chunk_grids.Rectilinear | None:
    """Return the grid of chunks or shards with different lengths. Returns None if no lengths are listed."""
    if not _is_uneven(value):
        return None
    try:
        grid = chunk_grids.Rectilinear(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{argument} must have a length or a list of lengths for each dimension, not {value!r}"
        ) from None
    if len(grid.chunk_shapes) != ndim:
        raise ArgumentError(f"{argument} must have {ndim} items, one for each dimension, not {len(grid.chunk_shapes)}")
    return grid


def _shard_shape(shards: Any, chunks: Shape, shape: Shape) -> Shape:
    if not _is_auto(shards):
        return _lengths("shards", shards, len(chunks))
    counts = (max(1, -(-n // c)) for c, n in zip(chunks, shape, strict=True))
    return tuple(c * min(CHUNKS_PER_SHARD, count) for c, count in zip(chunks, counts, strict=True))


def _lengths(argument: str, value: Any, ndim: int) -> Shape:
    """Return a positive length for each dimension. A single number applies to all dimensions."""
    try:
        lengths = normalize_shape(value)
    except ArgumentError:
        lengths = ()
    if is_number(value):
        lengths *= ndim
    if len(lengths) != ndim or 0 in lengths:
        raise ArgumentError(f"{argument} must have {ndim} lengths, each at least 1, not {value!r}")
    return lengths


def _key_encoding(value: Any) -> Any:
    if isinstance(value, (tuple, list)) and len(value) == 2:  # the older form in zarr-python: ("v2", ".")
        value = {"name": value[0], "separator": value[1]}
    if isinstance(value, dict) and "separator" in value:  # zarr-python's own spelling
        value = {"name": value.get("name"), "configuration": {k: v for k, v in value.items() if k != "name"}}
    return registry.chunk_key_encodings.coerce(value or "default")


def _chain(data_type: DataType, filters: Any, serializer: Any, compressors: Any) -> list[Codec]:
    """Return the codec chain for zarr-python's keywords `filters`, `serializer` and `compressors`."""
    if _is_auto(filters):
        filters = None
    if _is_auto(serializer):
        serializer = data_type.serializer
        if serializer == "bytes" and data_type.has_byte_order:
            serializer = {"name": "bytes", "configuration": {"endian": "little"}}
    if _is_auto(compressors):
        compressors = "zstd"
    return [
        *_codec_list("filters", filters),
        registry.codecs.coerce(serializer),
        *_codec_list("compressors", compressors),
    ]


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _codec_list(argument: str, value: Any) -> list[Codec]:
    """Return the list of codecs for `filters` or `compressors`, which may be None, one codec, or a list."""
    if value is None:
        return []
    values = value if isinstance(value, (list, tuple)) else [value]
    codecs: list[Codec] = [registry.codecs.coerce(item) for item in values]
    cls, kind = _CODEC_KINDS[argument]
    for codec in codecs:
        if not isinstance(codec, cls):
            right = next((name for name, (other, _) in _CODEC_KINDS.items() if isinstance(codec, other)), "codecs")
            raise ArgumentError(f"{argument} must be {kind} codecs, not {codec.name}; pass {codec.name} as {right}=")
    return codecs


def _shards(value: Any) -> tuple[Any, Any]:
    """Return the shape of the shards and the location of their index, from any of zarr-python's argument forms."""
    if isinstance(value, bool):
        return ("auto" if value else None), "end"
    if not isinstance(value, Mapping):
        return value, "end"
    location = value.get("index_location", "end")
    if "shape" not in value or value.keys() - {"shape", "index_location"} or location not in ("start", "end"):
        raise ArgumentError(
            f"shards must contain 'shape' and, optionally, 'index_location' ('start' or 'end'), not {dict(value)!r}"
        )
    return value["shape"], str(location)


def _sharding(inner: Shape, chain: tuple[Codec, ...], index_location: str) -> Codec:
    codec: Codec = registry.codecs.find("sharding_indexed")(  # type: ignore[misc]
        inner, chain, index_location=index_location
    )
    return codec


def _fill_value(data_type: DataType, value: Any) -> Any:
    if value is DEFAULT:
        # core spec, Array metadata: "default fill value that is chosen MUST be recorded in the metadata"
        return data_type.default_fill_value
    try:
        return data_type.cast_scalar(value)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(value, (str, list, dict)):  # the form in zarr.json: "NaN", "0x7fc00001", [1, 2]
            with contextlib.suppress(MetadataError):
                return data_type.parse_fill_value(value)
        raise ArgumentError(f"fill_value {value!r} cannot be converted to {data_type.name}: {error}") from None


def create_array_at(
    store: Store,
    path: str,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    array_options: ArrayOptions = ArrayOptions(),
    data: npt.ArrayLike | None = None,
    write_data: bool = True,
    overwrite: bool = False,
    missing_chunks: MissingChunks | None = None,
    write_empty_chunks: bool | None = None,
    max_chunk_bytes: int | None = None,
    config: ConfigLike | None = None,
    order: MemoryOrder | None = None,
    zarr_format: Literal[3] | None = 3,
    storage_options: None = None,
    **keywords: Unpack[DocumentKeywords],
) -> Array:
    """Create an array at a path in a store, and fill it from `data`.

    `array_options` are the options of the group or the call that creates the array; `config`, `missing_chunks`,
    `write_empty_chunks` and `max_chunk_bytes` override them.
    """
    check_format(zarr_format)
    check_runtime(order, storage_options)
    if data is not None:
        data, shape, dtype = _read_data(data, shape, dtype)
    if shape is None or dtype is None:
        raise ArgumentError("an array needs shape= and dtype=, or data=")
    array_options = override_options(array_options, config, write_empty_chunks, missing_chunks, max_chunk_bytes, order)
    metadata = array_metadata(shape, dtype, **keywords)
    array = Array(store, path, metadata, array_options)
    write_new(store, path, metadata, overwrite=overwrite, chunks=array._chunks)
    if data is not None and write_data:
        try:
            array[...] = data
        except BaseException as error:
            try:
                array.delete()  # so that the incomplete array cannot be opened
            except Exception as reason:  # the error to report is the one that interrupted the write
                error.add_note(f"the incomplete array {array.name} could not be removed: {reason}")
            raise
    return array


def passed_keywords(keywords: NewNodeKeywords) -> list[str]:
    """Return the names of the keywords whose value is not the default."""
    defaults = {**(array_metadata.__kwdefaults__ or {}), **(create_array_at.__kwdefaults__ or {})}
    return [
        name
        for name, value in keywords.items()
        if value is not defaults[name] and not (_is_auto(value) and _is_auto(defaults[name]))
    ]


def _read_data(
    data: npt.ArrayLike, shape: ShapeLike | None, dtype: DTypeLike | None
) -> tuple[np.ndarray[Any, Any], Shape, DTypeLike]:
    """Return the data as an array in memory, with its shape and data type."""
    if dtype is None and isinstance(data, Array):
        dtype = data.metadata.data_type
    if dtype is not None:
        data_type = from_dtype(dtype)
        values, dtype = cast(data, data_type.dtype), data_type
    else:
        values = _convert(data)
        dtype = values.dtype
    if shape is not None and values.shape != normalize_shape(shape):
        raise ArgumentError(f"shape must be that of the data, {values.shape}, not {shape}")
    return values, values.shape, dtype


def _convert(data: npt.ArrayLike) -> np.ndarray[Any, Any]:
    """Convert data to a numpy array. Python strings become strings of variable length."""
    try:
        array = np.asarray(data)
        if array.dtype.kind == "U" and not isinstance(data, np.ndarray):
            array = array.astype(np.dtypes.StringDType())
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"data cannot be converted to an array: {error}") from None
    return array
