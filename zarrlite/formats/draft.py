"""Documents of the Zarr v3 draft, as zarr-python 2.14 to 2.18 wrote them, to metadata of Zarr v3.

Rules
- What has no counterpart in Zarr v3 is refused, with its place in the draft's own document.
- A fill value of null, which leaves elements undefined, becomes the default one of the data type.
- Only an array of objects may have filters, and only one of the two that make it text or bytes.

Where documents and chunks lie is in stores/draft.py.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.chunk_grids import Regular
from zarrlite.data_types import DataType
from zarrlite.data_types.native import from_numpy
from zarrlite.errors import ArgumentError, MetadataError, UnknownExtensionError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Config, Context, Json, is_integer, load_json, show
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata
from zarrlite.pipeline.codec import BytesBytesCodec
from zarrlite.selections.casting import MAX_NDIM

_CORE: Final = "https://purl.org/zarr/spec/protocol/core/3.0"
_CODEC: Final = "https://purl.org/zarr/spec/codec/"
_SHUFFLES: Final = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}
_OBJECTS: Final = {"vlen-utf8": "string", "vlen-bytes": "bytes"}  # the filter of an array of objects -> its data type

_is_suffix = re.compile(r"[A-Za-z0-9._-]*").fullmatch
_is_scalar = re.compile(
    r"bool|\|b1|\|?[iu]1|[<>](?:[iuf][248]|c8|c16|[mM]8\[\w{1,16}\]|U[1-9][0-9]{0,6})|\|[SV][1-9][0-9]{0,6}"
).fullmatch


def parse_entry(data: Buffer | None) -> str | None:
    """The suffix of metadata keys, from the `zarr.json` of a store; None: that is not one of the draft."""
    try:
        content = {} if data is None else load_json(data)
    except MetadataError:
        return None  # whoever reads it as a node says what is wrong with it
    if content.get("zarr_format") != _CORE:
        return None
    top = Config(content, "", Context())
    top.string("zarr_format")
    top.string("metadata_encoding", (_CORE,))
    suffix = top.string("metadata_key_suffix")
    if not _is_suffix(suffix):
        message = f"must be made of ASCII letters, digits, '.', '_' and '-', not {show(suffix)}"
        raise top.error(message, "metadata_key_suffix")
    _check_extensions(top)
    top.finish()
    return suffix


def parse_group(data: Buffer, key: str) -> GroupMetadata:
    """The metadata of a group from its document."""
    top = Config(load_json(data, key), "", Context(document=key))
    attributes = dict(top.object("attributes", default={}).data)
    _check_extensions(top)
    top.finish()
    return GroupMetadata(attributes)


def parse_array(data: Buffer, key: str) -> ArrayMetadata:
    """The metadata of an array from its document."""
    top = Config(load_json(data, key), "", Context(document=key))
    shape = top.integers("shape")
    if len(shape) > MAX_NDIM:
        raise top.error(f"has {len(shape)} dimensions; at most {MAX_NDIM} are handled", "shape", "limit")
    chunk_shape, separator = _chunk_grid(top, len(shape))
    attributes = dict(top.object("attributes", default={}).data)
    data_type, order = _data_type(top, attributes.pop("filters", None))
    chain: list[Any] = [{"name": data_type.serializer, "configuration": {"endian": order} if order else {}}]
    if top.string("chunk_memory_layout", ("C", "F")) == "F" and len(shape) > 1:
        chain.insert(0, {"name": "transpose", "configuration": {"order": list(range(len(shape)))[::-1]}})
    compressor = _compressor(top, data_type)
    metadata = ArrayMetadata(
        shape=shape,
        data_type=data_type,
        chunk_grid=Regular(chunk_shape),
        chunk_key_encoding=registry.chunk_key_encodings.coerce(
            {"name": "default", "configuration": {"separator": separator}}
        ),
        fill_value=_fill_value(top, data_type, order or "little"),
        codecs=(*map(registry.codecs.coerce, chain), *compressor),
        attributes=attributes,
        storage_transformers=_storage_transformers(top, len(shape)),
    )
    _check_extensions(top)
    top.raw("dimension_separator", None)  # zarr-python wrote it beside the chunk grid, and read that of the grid
    top.finish()
    try:
        metadata.check()
    except MetadataError as error:
        raise error.under("", top.context.document) from None
    return metadata


def _chunk_grid(top: Config, ndim: int) -> tuple[tuple[int, ...], str]:
    """The shape of a chunk, and what separates the numbers in its key."""
    grid = top.object("chunk_grid")
    grid.string("type", ("regular",))
    chunk_shape = grid.integers("chunk_shape", 1)
    if len(chunk_shape) != ndim:
        raise grid.error(f"must have {ndim} items, as shape has, not {len(chunk_shape)}", "chunk_shape", "conflict")
    separator = grid.string("separator", ("/", "."))
    grid.finish()
    return chunk_shape, separator


def _data_type(top: Config, filters: Json) -> tuple[DataType, str | None]:
    """The data type, and the byte order of its elements if they have one; `filters` stood among the attributes."""
    value = top.raw("data_type")
    if isinstance(value, dict):  # an extension of the draft: what it is called says less than the type itself
        value = top.object("data_type").raw("type")
    names = [f.get("id") if isinstance(f, dict) else f for f in filters] if isinstance(filters, list) else filters
    if value == "|O":
        for name, objects in _OBJECTS.items():
            if names == [name]:
                return registry.data_types.coerce(objects), None
        message = f"objects are read if their one filter is vlen-utf8 or vlen-bytes, not {show(names)}"
        raise top.error(message, "data_type")
    if filters:
        message = f"filters of zarr-python 2 are not read, and these are {show(names)}"
        raise UnknownExtensionError(
            message, pointer="/attributes/filters", kind="unknown-extension", document=top.context.document
        )
    orders: set[str] = set()
    descr = _descr(top, value, orders)
    if len(orders) > 1:
        raise top.error("has fields in both byte orders; the bytes codec has one for all", "data_type")
    try:
        data_type = from_numpy(np.dtype(descr))
    except (TypeError, ValueError, OverflowError) as error:
        message = error.message if isinstance(error, ArgumentError) else str(error)
        raise top.error(f"{show(value)} is not a data type: {message}", "data_type") from None
    registry.data_types.parse(data_type.to_json(), "/data_type", top.context)  # which knows the limits
    return data_type, next(iter(orders), None)


def _descr(top: Config, value: Json, orders: set[str]) -> Any:
    """What numpy makes a dtype from; the byte orders in it are noted."""
    match value:
        case str() if _is_scalar(value):
            if value[0] in "<>":
                orders.add("little" if value[0] == "<" else "big")
            return value
        case [["", str(raw)]]:  # so numpy describes raw bytes
            return _descr(top, raw, orders)
        case [_, *_]:
            return [_field(top, item, orders) for item in value]
    raise top.error(f"{show(value)} is not a data type that zarrlite reads", "data_type")


def _field(top: Config, value: Json, orders: set[str]) -> Any:
    match value:
        case [str(name), data_type]:
            return name, _descr(top, data_type, orders)
        case [str(), _, _]:
            raise top.error(f"{show(value)} is a field that is an array, which Zarr v3 has not", "data_type")
    raise top.error(f"{show(value)} is not a field: a name and a data type", "data_type")


def _fill_value(top: Config, data_type: DataType, order: str) -> Any:
    value = top.raw("fill_value")
    if value is None or (data_type.itemsize is None and value == 0):  # what zarr-python gives to objects
        return data_type.default_fill_value
    if data_type.name == "struct":  # packed bytes, which only the older form of the type reads
        data_type = registry.data_types.coerce({**data_type.to_json(), "name": "structured"})
    try:
        return data_type.parse_fill_value(value, order)
    except MetadataError as error:
        raise error.under("/fill_value", top.context.document) from None


def _compressor(top: Config, data_type: DataType) -> list[BytesBytesCodec]:
    if top.raw("compressor", None) is None:
        return []
    outer = top.object("compressor")
    uri = outer.string("codec")
    configuration = dict(outer.object("configuration", default={}).data)
    outer.finish()
    name = uri.removeprefix(_CODEC).partition("/")[0]
    if not uri.startswith(_CODEC) or not name:
        raise outer.error(f"must be {_CODEC}, a name and a version, not {show(uri)}", "codec")
    if name == "blosc":
        typesize = data_type.itemsize or 1
        shuffle: Json = configuration.get("shuffle")
        if is_integer(shuffle):  # -1 leaves the choice to the library
            automatic = "bitshuffle" if typesize == 1 else "shuffle"
            configuration["shuffle"] = {-1: automatic, **_SHUFFLES}.get(shuffle, shuffle)
        configuration["typesize"] = typesize
    codec = registry.codecs.parse({"name": name, "configuration": configuration}, "/compressor", top.context)
    if not isinstance(codec, BytesBytesCodec):
        raise outer.error(f"{show(name)} is not a compressor", "codec")
    return [codec]


def _storage_transformers(top: Config, ndim: int) -> tuple[Any, ...] | None:
    values = []
    for item in top.objects("storage_transformers") if "storage_transformers" in top else ():
        configuration = dict(item.object("configuration", default={}).data)
        per_shard = configuration.get("chunks_per_shard")
        if isinstance(per_shard, list):
            # zarr-python wrote [1] for no dimensions, and left out trailing ones
            full = [] if ndim == 0 and per_shard == [1] else per_shard + [1] * (ndim - len(per_shard))
            configuration["chunks_per_shard"] = full
        configuration["type"] = item.string("type")
        values.append({"name": item.string("extension"), "configuration": configuration})
        item.finish()
    return registry.storage_transformers.parse_list(values, "/storage_transformers", top.context) or None


def _check_extensions(top: Config) -> None:
    """Refuse what the document says must be understood."""
    for item in top.objects("extensions") if "extensions" in top else ():
        if item.raw("must_understand", True) is not False:
            raise UnknownExtensionError(
                f"{show(item.raw('extension', None))} is an extension of the draft that zarrlite does not know",
                pointer=item.pointer,
                kind="unknown-extension",
                document=top.context.document,
            )
