"""Convert documents in the 2022 draft of Zarr v3, as written by zarr-python 2.14 to 2.18, to Zarr v3.

Rules
- A feature without a counterpart in Zarr v3 is refused, with an error that points into the draft document.
- A fill value of null, which leaves elements undefined, becomes the default of the data type.
- Only arrays of objects may have a filter: the one that encodes the objects as text or bytes.

The draft is cited by the section names of its core specification ("Zarr core specification (version 3.0)", 2022).
draft_store.py translates the keys of documents and chunks.
"""

from __future__ import annotations

import re
from typing import Any, Final

from zarrlite.buffers.ranges import Buffer
from zarrlite.chunk_grids import Regular
from zarrlite.data_types import DataType
from zarrlite.errors import MetadataError, UnknownExtensionError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Config, Context, Json, is_integer, load_json, show
from zarrlite.formats.numpy_types import byte_order, parse_type
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata
from zarrlite.pipeline.codec import BytesBytesCodec
from zarrlite.selections.casting import MAX_NDIM

_CORE_URI: Final = "https://purl.org/zarr/spec/protocol/core/3.0"  # as in zarr-python; the draft omits "protocol/"
_CODEC_URI: Final = "https://purl.org/zarr/spec/codec/"
_BLOSC_SHUFFLES: Final = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}
_NUMCODECS: Final = ("bz2", "lz4", "lzma", "zlib")  # codecs whose names in Zarr v3 begin with `numcodecs.`
_OBJECT_TYPES: Final = {"vlen-utf8": "string", "vlen-bytes": "bytes"}  # filter of an array of objects -> data type

_is_key_suffix = re.compile(r"[A-Za-z0-9._-]*").fullmatch  # draft, Abstract store interface: keys, without "/"


def parse_entry(data: Buffer | None) -> str | None:
    """Parse the `zarr.json` at the root of a store (draft, Entry point metadata).

    Returns the suffix of metadata keys, or None if this is not an entry point document of the draft.
    """
    if data is None:
        return None
    try:
        content = load_json(data)
    except MetadataError:
        return None  # the error is reported when the root is opened as a node
    if content.get("zarr_format") != _CORE_URI:
        return None
    top = Config(content, "", Context())
    top.string("zarr_format")
    top.string("metadata_encoding", (_CORE_URI,))
    suffix = top.string("metadata_key_suffix")
    if not _is_key_suffix(suffix):
        message = f"must consist of ASCII letters, digits, '.', '_' and '-', not {show(suffix)}"
        raise top.error(message, "metadata_key_suffix")
    _check_extensions(top)
    top.finish()
    return suffix


def parse_group(data: Buffer, key: str) -> GroupMetadata:
    """Parse the document of a group (draft, Group metadata)."""
    top = Config(load_json(data, key), "", Context(document=key))
    attributes = dict(top.object("attributes", default={}).data)
    _check_extensions(top)
    top.finish()
    return GroupMetadata(attributes)


def parse_array(data: Buffer, key: str) -> ArrayMetadata:
    """Parse the document of an array (draft, Array metadata)."""
    top = Config(load_json(data, key), "", Context(document=key))
    shape = top.integers("shape")
    ndim = len(shape)
    if ndim > MAX_NDIM:
        raise top.error(f"must have at most {MAX_NDIM} items, not {ndim}", "shape", "limit")
    chunk_shape, separator = _chunk_grid(top, ndim)
    attributes = dict(top.object("attributes", default={}).data)
    data_type, order = _data_type(top, attributes.pop("filters", None))
    codecs = _codecs(top, data_type, order, ndim)
    key_encoding = {"name": "default", "configuration": {"separator": separator}}
    metadata = ArrayMetadata(
        shape=shape,
        data_type=data_type,
        chunk_grid=Regular(chunk_shape),
        chunk_key_encoding=registry.chunk_key_encodings.coerce(key_encoding),
        fill_value=_fill_value(top, data_type, order or "little"),
        codecs=codecs,
        attributes=attributes,
        storage_transformers=_storage_transformers(top, ndim),
    )
    _check_extensions(top)
    top.raw("dimension_separator", None)  # zarr-python wrote this member, but ignored it when reading
    top.finish()
    try:
        metadata.check()
    except MetadataError as error:
        raise error.under("", top.context.document) from None
    return metadata


def _chunk_grid(top: Config, ndim: int) -> tuple[tuple[int, ...], str]:
    """Return the shape of a chunk, and the separator in chunk keys (draft, Array metadata, `chunk_grid`)."""
    grid = top.object("chunk_grid")
    grid.string("type", ("regular",))
    chunk_shape = grid.integers("chunk_shape", 1)
    if len(chunk_shape) != ndim:
        raise grid.error(f"must have {ndim} items, like shape, not {len(chunk_shape)}", "chunk_shape", "conflict")
    separator = grid.string("separator", ("/", "."))
    grid.finish()
    return chunk_shape, separator


def _data_type(top: Config, filters: Json) -> tuple[DataType, str | None]:
    """Return the data type and the byte order of its elements. The byte order is None for elements without one.

    `filters` is the value of the attribute `filters`, which zarr-python added.
    """
    value = top.raw("data_type")
    if isinstance(value, dict):  # an extension of the draft; the member `type` is numpy's name for the data type
        value = top.object("data_type").raw("type")
    names = filters
    if isinstance(filters, list):
        names = [f.get("id") if isinstance(f, dict) else f for f in filters]
    if value == "|O":
        return _object_type(top, names), None
    if filters:
        message = f"must be empty, not {show(names)}: zarrlite does not support the filters of zarr-python 2"
        raise UnknownExtensionError(
            message, pointer="/attributes/filters", kind="unknown-extension", document=top.context.document
        )
    match value:
        case [["", str(raw)]]:  # numpy's description of raw bytes
            value = raw
    data_type, dtype = parse_type(top, "data_type", value)
    return data_type, byte_order(dtype)


def _object_type(top: Config, filters: Json) -> DataType:
    """Return the data type of an array of objects, which is determined by the name of its only filter."""
    for filter_name, name in _OBJECT_TYPES.items():
        if filters == [filter_name]:
            data_type: DataType = registry.data_types.coerce(name)
            return data_type
    message = f"objects must have one filter, vlen-utf8 or vlen-bytes, not {show(filters)}"
    raise top.error(message, "data_type")


def _fill_value(top: Config, data_type: DataType, byte_order: str) -> Any:
    value = top.raw("fill_value")
    # draft, Array metadata: "if the `fill_value` is the literal `null`" it is undefined
    if value is None:
        return data_type.default_fill_value
    if data_type.itemsize is None and value == 0:  # zarr-python's default for objects
        return data_type.default_fill_value
    if data_type.name == "struct":  # the value is packed bytes, which only the older type `structured` accepts
        data_type = registry.data_types.coerce({**data_type.to_json(), "name": "structured"})
    try:
        return data_type.parse_fill_value(value, byte_order)
    except MetadataError as error:
        raise error.under("/fill_value", top.context.document) from None


def _codecs(top: Config, data_type: DataType, byte_order: str | None, ndim: int) -> tuple[Any, ...]:
    """Return the codec chain for the memory layout, the byte order and the compressor."""
    chain: list[Any] = []
    if top.string("chunk_memory_layout", ("C", "F")) == "F" and ndim > 1:
        chain.append({"name": "transpose", "configuration": {"order": list(range(ndim))[::-1]}})
    chain.append({"name": data_type.serializer, "configuration": {"endian": byte_order} if byte_order else {}})
    return *map(registry.codecs.coerce, chain), *_compressors(top, data_type)


def _compressors(top: Config, data_type: DataType) -> list[BytesBytesCodec]:
    """Return the codec for `compressor`, if any; draft: "absent, this means that no compressor is used"."""
    if top.raw("compressor", None) is None:
        return []
    outer = top.object("compressor")
    uri = outer.string("codec")
    configuration = dict(outer.object("configuration", default={}).data)
    outer.finish()
    name = uri.removeprefix(_CODEC_URI).partition("/")[0]
    if not uri.startswith(_CODEC_URI) or not name:
        raise outer.error(f"must be {_CODEC_URI}, a name and a version, not {show(uri)}", "codec")
    if name == "blosc":
        configuration = _blosc_configuration(configuration, data_type.itemsize or 1)
    current = f"numcodecs.{name}" if name in _NUMCODECS else name
    codec = registry.codecs.parse({"name": current, "configuration": configuration}, "/compressor", top.context)
    if not isinstance(codec, BytesBytesCodec):
        raise outer.error(f"must name a bytes -> bytes codec, not {show(name)}", "codec")
    return [codec]


def _blosc_configuration(configuration: dict[str, Json], typesize: int) -> dict[str, Json]:
    """Convert a configuration from numcodecs to that of the `blosc` codec."""
    shuffle: Json = configuration.get("shuffle")
    if is_integer(shuffle):
        automatic = "bitshuffle" if typesize == 1 else "shuffle"  # if shuffle is -1, blosc chooses
        configuration["shuffle"] = {-1: automatic, **_BLOSC_SHUFFLES}.get(shuffle, shuffle)
    return {**configuration, "typesize": typesize}


def _storage_transformers(top: Config, ndim: int) -> tuple[Any, ...] | None:
    """Return the storage transformers (draft, Array metadata, `storage_transformers`).

    Returns None if the list is empty.
    """
    values = []
    for item in top.objects("storage_transformers") if "storage_transformers" in top else ():
        configuration = dict(item.object("configuration", default={}).data)
        per_shard = configuration.get("chunks_per_shard")
        if isinstance(per_shard, list):
            configuration["chunks_per_shard"] = _chunks_per_shard(per_shard, ndim)
        configuration["type"] = item.string("type")
        values.append({"name": item.string("extension"), "configuration": configuration})
        item.finish()
    return registry.storage_transformers.parse_list(values, "/storage_transformers", top.context) or None


def _chunks_per_shard(per_shard: list[Json], ndim: int) -> list[Json]:
    """Return one number for each dimension: zarr-python omitted trailing 1s, and wrote [1] for zero dimensions."""
    if ndim == 0 and per_shard == [1]:
        return []
    return per_shard + [1] * (ndim - len(per_shard))


def _check_extensions(top: Config) -> None:
    """Refuse all extensions that must be understood.

    Draft, Entry point metadata: if one is "not recognized" and `must_understand` is true, "then processing must
    terminate".
    """
    for item in top.objects("extensions") if "extensions" in top else ():
        if item.raw("must_understand", True) is not False:
            raise UnknownExtensionError(
                f"{show(item.raw('extension', None))} is not a known extension of the draft",
                pointer=item.pointer,
                kind="unknown-extension",
                document=top.context.document,
            )
