"""The filters and the compressor of a Zarr v2 array as a Zarr v3 codec chain.

Rules (Zarr v2, Metadata and Filters)
- Chunks in column-major order are transposed first. The filters follow in the order of the document; the compressor is
  last.
- A codec keeps its numcodecs name, with the prefix `numcodecs.`, unless Zarr v3 has the same codec under another name.
- In Zarr v2, a filter interprets any bytes as elements of the type that it is configured for. In Zarr v3, the types
  must match, and codecs for elements come before codecs for bytes. Other chains are refused.
- Byte order is not part of the configuration of a filter: the codec `bytes` after the last filter determines it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from zarrlite.data_types import DataType
from zarrlite.errors import FaultKind, MetadataError, UnknownExtensionError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Config, Context, Json, is_integer, show
from zarrlite.formats.numpy_types import byte_order, parse_type
from zarrlite.pipeline.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec

# filter that encodes an array of objects -> data type
OBJECT_TYPES: Final = {
    "vlen-utf8": "string",
    "vlen-bytes": "bytes",
    "vlen-array": "bytes",
    "json2": "string",
    "categorize": "string",
}
_BLOSC_SHUFFLES: Final = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}
# filter -> the members of its configuration that contain the types of decoded and of encoded elements
_TYPED: Final = {
    "delta": ("dtype", "astype"),
    "fixedscaleoffset": ("dtype", "astype"),
    "quantize": ("dtype", "astype"),
    "astype": ("decode_dtype", "encode_dtype"),
    "categorize": ("dtype", "astype"),
}
# codecs that are always refused, unlike other unknown codecs, which an application can register
_REFUSED: Final = {
    "pickle": "can run any program while it decodes a chunk; rewrite the array with vlen-utf8 or vlen-bytes",
}


class Item(NamedTuple):
    """A filter or a compressor, as written in the document."""

    name: str
    config: Config  # its members, including `id`


def parse_items(top: Config) -> list[Item]:
    """Return the filters and the compressor of a document, in the order of encoding."""
    items: list[Item] = []
    # Zarr v2, Metadata: "providing codec configurations, or null if no filters are to be applied"; some writers omit
    # `filters`
    if top.raw("filters", None) is not None:
        items += (Item(config.string("id"), config) for config in top.objects("filters"))
    # Zarr v2, Metadata: "configuration parameters, or null if no compressor is to be used"
    if top.raw("compressor") is not None:
        config = top.object("compressor")
        items.append(Item(config.string("id"), config))
    return items


class Chain:
    """A codec chain under construction."""

    def __init__(self, data_type: DataType, dtype: np.dtype[Any] | None, *, is_netcdf: bool = False) -> None:
        self.codecs: list[Json] = []
        self.pointers: list[str] = []  # for each codec, the part of the document that it was converted from
        self._data_type = data_type
        self._dtype = dtype  # the dtype of the elements after the last filter; None for objects
        self._is_netcdf = is_netcdf  # whether netCDF-C wrote the array
        self._serializer: str | None = None  # the name of the array -> bytes codec; None until there is one

    def add_transpose(self, ndim: int) -> None:
        """Add `transpose`, for chunks in column-major order."""
        self._append({"name": "transpose", "configuration": {"order": list(range(ndim))[::-1]}}, "/order")

    def add(self, item: Item) -> None:
        """Add a filter or a compressor."""
        name, config = item
        if name in _REFUSED:
            raise _unknown(config, f"{name} must not be used: it {_REFUSED[name]}")
        members, encoded = _members(config), self._dtype
        if self._serializer is None and name in _TYPED:
            members, encoded = self._match_types(item)
        if name == "shuffle" and members.get("elementsize") == 0:
            members["elementsize"] = self._shuffled_size(config)
        document = _convert(name, members, config, self._data_type)
        codec = _parse(document, config)
        if isinstance(codec, BytesBytesCodec):
            self.finish()
        elif self._serializer is not None:
            message = f"{name} must not come after {self._serializer}: in Zarr v3, codecs for elements come first"
            raise config.error(message, "id", "conflict")
        elif isinstance(codec, ArrayArrayCodec):
            self._dtype = encoded
        elif isinstance(codec, ArrayBytesCodec):
            if byte_order(self._dtype) == "big":
                message = f"{name} must not have big-endian elements: in Zarr v3, only the bytes codec has a byte order"
                raise config.error(message, "id", "conflict")
            self._serializer = name
        self._append(document, config.pointer)

    def finish(self) -> None:
        """Add the codec `bytes`, unless the chain already has an array -> bytes codec."""
        if self._serializer is None:
            self._serializer = "bytes"
            endian = byte_order(self._dtype)
            configuration = {"endian": endian} if endian else {}
            self._append({"name": "bytes", "configuration": configuration}, "/dtype")

    def _append(self, document: Json, pointer: str) -> None:
        self.codecs.append(document)
        self.pointers.append(pointer)

    def _shuffled_size(self, config: Config) -> int:
        """Return the element size to use if `elementsize` is 0."""
        if self._is_netcdf and self._dtype is not None:
            return self._dtype.itemsize
        message = "must not be 0 unless netCDF-C wrote the array: with 0, netCDF-C shuffles, but numcodecs does not"
        raise config.error(message, "elementsize")

    def _match_types(self, item: Item) -> tuple[dict[str, Json], np.dtype[Any] | None]:
        """Return the members of a filter, with all dtypes in little endian, and the dtype of encoded elements.

        Raises an error unless the filter is configured for the elements that it receives.
        """
        name, config = item
        members = _members(config)
        decoded_name, encoded_name = _TYPED[name]
        decoded = None
        if config.raw(decoded_name) != "|O":
            _, decoded = parse_type(config, decoded_name, config.raw(decoded_name))
        if decoded != self._dtype:
            message = (
                f"must be {_show(self._dtype)}, the type of the elements that {name} receives, not {_show(decoded)}: "
                "Zarr v3 cannot reinterpret bytes as another type"
            )
            raise config.error(message, decoded_name, "conflict")
        encoded = decoded
        if config.raw(encoded_name, None) is not None:
            _, encoded = parse_type(config, encoded_name, config.raw(encoded_name))
        for member, dtype in ((decoded_name, decoded), (encoded_name, encoded)):
            if dtype is not None:
                members[member] = dtype.newbyteorder("<").str
        return members, encoded


def _show(dtype: np.dtype[Any] | None) -> str:
    return show("|O" if dtype is None else dtype.str)


def _members(config: Config) -> dict[str, Json]:
    return {name: value for name, value in config.data.items() if name != "id"}


def _convert(name: str, members: dict[str, Json], config: Config, data_type: DataType) -> Json:
    """Return the Zarr v3 JSON of a numcodecs codec, given the members of its configuration."""
    convert = _CONVERTERS.get(name)
    if convert is not None:
        return convert(members, data_type)
    if registry.codecs.find(f"numcodecs.{name}") is None:
        raise _unknown(config, f"{show(name)} is not a known codec of Zarr v2")
    return {"name": f"numcodecs.{name}", "configuration": members}


def _zstd(members: dict[str, Json], data_type: DataType) -> Json:
    return {"name": "zstd", "configuration": {"level": 0, "checksum": False, **members}}


def _gzip(members: dict[str, Json], data_type: DataType) -> Json:
    return {"name": "gzip", "configuration": {"level": 1, **members}}


def _blosc(members: dict[str, Json], data_type: DataType) -> Json:
    """Return the codec `blosc`, with `shuffle` as a name instead of a number, and with the size of elements."""
    typesize = data_type.itemsize or 1
    configuration = {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0, **members}
    configuration.pop("nthreads", None)
    shuffle: Any = configuration["shuffle"]
    if is_integer(shuffle):
        automatic = "bitshuffle" if typesize == 1 else "shuffle"  # if shuffle is -1, numcodecs chooses
        configuration["shuffle"] = {-1: automatic, **_BLOSC_SHUFFLES}.get(shuffle, shuffle)
    return {"name": "blosc", "configuration": {**configuration, "typesize": typesize}}


def _lzma(members: dict[str, Json], data_type: DataType) -> Json:
    """Return the codec `numcodecs.lzma`, without the delta distance that GDAL adds: xz files contain it, too."""
    is_xz = members.get("format", 1) == 1
    kept = {name: value for name, value in members.items() if name != "delta" or not is_xz}
    return {"name": "numcodecs.lzma", "configuration": kept}


def _variable(name: str) -> Callable[[dict[str, Json], DataType], Json]:
    return lambda members, data_type: {"name": name, "configuration": members}


# codecs whose names or members differ in Zarr v3; members that a writer omitted get the defaults of numcodecs
_CONVERTERS: Final[dict[str, Callable[[dict[str, Json], DataType], Json]]] = {
    "zstd": _zstd,
    "gzip": _gzip,
    "blosc": _blosc,
    "lzma": _lzma,
    "vlen-utf8": _variable("vlen-utf8"),
    "vlen-bytes": _variable("vlen-bytes"),
}


def _parse(document: Json, config: Config) -> Any:
    """Parse a codec. Pointers in errors refer to the Zarr v2 document, where a codec has no member `configuration`."""
    try:
        return registry.codecs.parse(document, "", Context(document=config.context.document))
    except MetadataError as error:
        raise relocated(error, lambda pointer: config.pointer + pointer.removeprefix("/configuration")) from None


def relocated(error: MetadataError, locate: Callable[[str], str]) -> MetadataError:
    """Return the same error, with `locate` applied to the pointer of each of its problems."""
    problems = tuple(
        type(p)(p.message, pointer=locate(p.pointer), kind=p.kind, document=p.document) for p in error.problems
    )
    first = problems[0]
    return type(first)(
        first.message,
        pointer=first.pointer,
        kind=first.kind,
        document=first.document,
        problems=problems if len(problems) > 1 else (),
    )


def _unknown(config: Config, message: str) -> UnknownExtensionError:
    kind: FaultKind = "unknown-extension"
    return UnknownExtensionError(message, pointer=config.at("id"), kind=kind, document=config.context.document)
