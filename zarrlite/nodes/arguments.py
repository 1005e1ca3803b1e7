"""Arguments of the functions that open and create nodes: their types and shared checks.

Rules
- Each type lists everything that an argument accepts, and can be resolved at run time (`typing.get_type_hints`).
- An unknown keyword raises an ArgumentError that suggests the closest known keyword. `help` and type checkers still
  show the signatures of the decorated functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt

from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding
from zarrlite.chunks.chunks import ArrayOptions
from zarrlite.data_types.base import DataType
from zarrlite.errors import ArgumentError
from zarrlite.extensions.config import Json
from zarrlite.metadata.documents import Options
from zarrlite.pipeline.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec
from zarrlite.storage_transformers.base import StorageTransformer
from zarrlite.stores import StoreLike

Length: TypeAlias = int | np.integer[Any]


class ForeignType(Protocol):
    """A data type from zarr-python, or from `zarrlite.dtype`."""

    def to_native_dtype(self) -> Any: ...
    def to_json(self, zarr_format: Any) -> Any: ...


class ForeignExtension(Protocol):
    """A codec or other extension from zarr-python."""

    def to_dict(self) -> Any: ...


class ShardsConfig(TypedDict):
    """The shape of the shards and the location of their index."""

    shape: Length | Sequence[Length]
    index_location: NotRequired[Literal["start", "end"]]


ShapeLike: TypeAlias = Length | Sequence[Length]
ChunksLike: TypeAlias = Length | Sequence[Length | Sequence[Length]]  # (4, 10), or [[3, 4, 5], 10] if lengths differ
DTypeLike: TypeAlias = npt.DTypeLike | DataType | ForeignType | dict[str, Json]
ShardsLike: TypeAlias = ChunksLike | Literal["auto"] | bool | ShardsConfig | None
ExtensionJson: TypeAlias = str | dict[str, Json] | ForeignExtension  # a name, or an object as in zarr.json
FilterLike: TypeAlias = ArrayArrayCodec | ExtensionJson
SerializerLike: TypeAlias = ArrayBytesCodec | ExtensionJson
CompressorLike: TypeAlias = BytesBytesCodec | ExtensionJson
CodecLike: TypeAlias = Codec | ExtensionJson
ChunkKeyEncodingLike: TypeAlias = ChunkKeyEncoding | ExtensionJson
StorageTransformerLike: TypeAlias = StorageTransformer | ExtensionJson
ConfigLike: TypeAlias = Mapping[str, Any] | ArrayOptions  # zarr-python's `config`, or the `config` of an Array
MissingChunks: TypeAlias = Literal["fill", "error"]
MemoryOrder: TypeAlias = Literal["C", "F"]


class DocumentKeywords(TypedDict, total=False):
    """Keywords of `create_array` that determine the metadata document, other than the shape and the data type."""

    chunks: ChunksLike | Literal["auto"] | bool | None
    shards: ShardsLike
    filters: FilterLike | Sequence[FilterLike] | None
    serializer: SerializerLike
    compressors: CompressorLike | Sequence[CompressorLike] | None
    codecs: Sequence[CodecLike] | None
    fill_value: Any
    attributes: Mapping[str, Json] | None
    chunk_key_encoding: ChunkKeyEncodingLike | None
    dimension_names: Sequence[str | None] | None
    storage_transformers: Sequence[StorageTransformerLike] | None
    options: Options | None


class StoringKeywords(DocumentKeywords, total=False):
    """Keywords of `create_array` other than the shape, the data type and the data."""

    write_data: bool
    overwrite: bool
    missing_chunks: MissingChunks | None
    write_empty_chunks: bool | None
    max_chunk_bytes: int | None
    config: ConfigLike | None
    order: MemoryOrder | None
    zarr_format: Literal[3] | None
    storage_options: None


class ArrayKeywords(StoringKeywords, total=False):
    """Keywords of `create_array` other than the shape and the data type."""

    data: npt.ArrayLike | None


class CreationKeywords(StoringKeywords, total=False):
    """Keywords of zarr-python's `create`, other than the shape."""

    dtype: DTypeLike
    store: StoreLike
    path: str | None
    mode: Literal["r", "r+", "a", "w", "w-"]


class NewNodeKeywords(ArrayKeywords, total=False):
    """Keywords of `create_array`. `attributes` and `zarr_format` apply to groups as well."""

    shape: ShapeLike | None
    dtype: DTypeLike | None


Function = TypeVar("Function", bound=Callable[..., Any])


def suggest_keywords(function: Function) -> Function:
    """Decorate a function so that an unknown keyword raises an ArgumentError that suggests the closest one.

    Type checkers, `help` and `inspect.signature` see the signature of the decorated function.
    """
    code = function.__code__
    parameters = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not parameters.issuperset(kwargs):
            check_keywords(function.__name__, kwargs, parameters)
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]


def check_keywords(function: str, keywords: Iterable[str], known: Collection[str]) -> None:
    """Raise an ArgumentError for the first keyword that a function does not accept."""
    for keyword in keywords:
        if keyword not in known:
            import difflib  # imported here: keeps `import zarrlite` light

            closest = difflib.get_close_matches(keyword, known, 1)
            hint = f"; did you mean {closest[0]!r}?" if closest else ""
            raise ArgumentError(f"{function}() got an unexpected keyword argument {keyword!r}{hint}")


def check_format(zarr_format: int | None) -> None:
    """Refuse every value of zarr-python's `zarr_format` other than 3 and None."""
    if zarr_format not in (None, 3):
        raise ArgumentError(f"zarr_format must be 3, not {zarr_format!r}: zarrlite reads and writes Zarr version 3")


def check_runtime(order: str | None, storage_options: object = None) -> None:
    """Refuse an invalid `order`, and any `storage_options`, which would be ignored."""
    if storage_options is not None:
        raise ArgumentError("storage_options must be None: a group already has its store")
    if order not in (None, "C", "F"):
        raise ArgumentError(f"order, the memory order of results, must be 'C' or 'F', not {order!r}")


def override_options(
    options: ArrayOptions,
    config: ConfigLike | None,
    write_empty_chunks: bool | None = None,
    missing_chunks: MissingChunks | None = None,
    max_chunk_bytes: int | None = None,
    order: MemoryOrder | None = None,
) -> ArrayOptions:
    """Return the options, overridden by the keywords and by zarr-python's `config`."""
    if config is not None and hasattr(config, "order") and hasattr(config, "write_empty_chunks"):
        config = {"order": config.order, "write_empty_chunks": config.write_empty_chunks}
    if config is not None and not isinstance(config, Mapping):
        raise ArgumentError(f"config must be a mapping, not {config!r}")
    members: dict[str, Any] = {**(config or {})}
    configured_order = members.pop("order", options.order)
    check_runtime(configured_order, None)
    configured = members.pop("write_empty_chunks", options.write_empty_chunks)
    if not isinstance(configured, (bool, np.bool)):
        raise ArgumentError(f"config['write_empty_chunks'] must be True or False, not {configured!r}")
    if members:
        raise ArgumentError(f"config must have only the members write_empty_chunks and order, not {members!r}")
    write_empty = configured if write_empty_chunks is None else write_empty_chunks
    most = options.max_chunk_bytes if max_chunk_bytes is None else max_chunk_bytes
    return options._replace(
        missing_chunks=missing_chunks or options.missing_chunks,
        write_empty_chunks=bool(write_empty),
        max_chunk_bytes=most,
        order=order or configured_order,
    )
