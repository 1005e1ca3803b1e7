"""N5 as Zarr v3: `attributes.json` converted to `zarr.json`, and a read-only view of a container.

Rules (N5 specification 4.0.0, File-system specification; cited below by item number)
- Axes keep the order of N5: `shape` is `dimensions` and `chunks` is `blockSize`. Blocks are column-major and
  big-endian, so the codec chain contains a full `transpose` and big-endian `bytes`.
- Item 1: "All directories of the file system are N5 groups". Item 4: a group with `dimensions` and `blockSize` is a
  dataset; the directories inside it hold its blocks.
- Every attribute that N5 does not define is a Zarr attribute.
- An error names the N5 document, `path/attributes.json`, with a pointer into it.

The encoding of blocks is in codecs/n5_default.py. Functions that open or create nodes are in zarrlite/n5.py.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

from zarrlite.buffers.ranges import ByteRange
from zarrlite.codecs.blosc import Blosc
from zarrlite.codecs.gzip import Gzip
from zarrlite.codecs.n5_default import DATA_TYPES, MAX_LENGTH, n5_header
from zarrlite.codecs.n5_lz4 import N5Lz4
from zarrlite.codecs.numcodecs.bz2 import BZ2
from zarrlite.codecs.numcodecs.deflate import Zlib
from zarrlite.codecs.numcodecs.lzma import LZMA
from zarrlite.codecs.zstd import Zstd
from zarrlite.data_types import from_dtype
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions.config import MAX_DOCUMENT_BYTES, Config, Context, Faults, Json, load_json, show
from zarrlite.formats.foreign import ForeignStore
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.pipeline.codec import BytesBytesCodec
from zarrlite.selections.casting import MAX_NDIM
from zarrlite.stores import Listing, check_prefix

ATTRIBUTES: Final = "attributes.json"  # N5, item 2
VERSION: Final = "4.0.0"  # N5, item 3; written to the root; newer major versions are refused
# the members of a dataset's attributes.json that N5 defines; version 0 has compressionType instead of compression
RESERVED: Final = frozenset(("dimensions", "blockSize", "dataType", "compression", "compressionType", "codecs", "n5"))
BlockCodec = Literal["n5_default", "pad", "offset"]


def array_document(
    attributes: Mapping[str, Json], *, codec: BlockCodec = "n5_default", document: str = ATTRIBUTES
) -> dict[str, Json]:
    """Convert the `attributes.json` of an N5 dataset to a `zarr.json` that describes the same array.

    Parameters
    ----------
    attributes
        The content of `attributes.json`.
    codec
        The codec that handles the header of a block. "n5_default" reads every block. "pad" and "offset" skip the
        header, so reading a block that is truncated at the edge of the array raises `TruncatedError`.
    document
        The name to use for the N5 document in error messages.

    Returns
    -------
    dict
        The content of `zarr.json`.

    Raises
    ------
    MetadataError
        If `attributes` is not a valid dataset, or uses a feature that has no counterpart in Zarr. `problems` lists
        every fault, each with a pointer into `attributes`.
    ArgumentError
        If `attributes` is not a mapping, or `codec` is unknown.

    Examples
    --------
    >>> attributes = {"dimensions": [6, 8], "blockSize": [3, 2], "dataType": "uint8", "compression": {"type": "raw"}}
    >>> [c["name"] for c in array_document(attributes, codec="pad")["codecs"]]
    ['transpose', 'bytes', 'pad']
    """
    if not isinstance(attributes, Mapping):
        raise ArgumentError(f"attributes must be a mapping, not {attributes!r:.60}")
    config, faults = Config(attributes, "", Context(document=document)), Faults()
    shape: tuple[int, ...] = ()
    block_shape: tuple[int, ...] = ()
    data_type, compressor = "uint8", None
    user_attributes: dict[str, Json] = {}
    with faults.collecting():
        shape = config.integers("dimensions")
        if not 1 <= len(shape) <= MAX_NDIM:
            raise config.error(f"must have 1 to {MAX_NDIM} items, not {len(shape)}", "dimensions", "limit")
    with faults.collecting():
        block_shape = config.integers("blockSize", 1, MAX_LENGTH)
        if shape and len(block_shape) != len(shape):
            message = f"must have {len(shape)} items, like dimensions, not {len(block_shape)}"
            raise config.error(message, "blockSize", "conflict")
    with faults.collecting():
        data_type = config.string("dataType", DATA_TYPES)
    with faults.collecting():
        compressor = _compressor(config, from_dtype(data_type).dtype.itemsize)
    with faults.collecting():
        user_attributes = parse_user_attributes(config)
    faults.raise_any()
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(block_shape)}},
        # n5_default, Chunk key encoding: "MUST use a `/`-separated v2 chunk key encoding"
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
        # n5_default, Fill value: "Conventionally they use `0` for numeric data"
        "fill_value": 0,
        "codecs": _codec_chain(block_shape, compressor, codec),
        "attributes": user_attributes,
    }


def _codec_chain(block_shape: tuple[int, ...], compressor: Json, codec: str) -> list[Json]:
    """Return the codecs, as JSON, for blocks of this shape."""
    # n5_default, Configuration parameters: "performs a full transposition"; endian "big"
    chain = [
        {"name": "transpose", "configuration": {"order": list(range(len(block_shape)))[::-1]}},
        {"name": "bytes", "configuration": {"endian": "big"}},
    ]
    if compressor is not None:
        chain.append(compressor)
    header = n5_header(block_shape)
    header_text = base64.b64encode(header).decode()
    if codec == "n5_default":
        return [{"name": codec, "configuration": {"codecs": chain}}]
    # proposals `pad` and `offset`, Example 3; both examples lack the transpose, and the one for `pad` lacks the padding
    if codec == "pad":
        padding = {"location": "start", "nbytes": len(header), "padding": header_text}
        return [*chain, {"name": codec, "configuration": padding}]
    if codec == "offset":
        return [*chain, {"name": codec, "configuration": {"offset": len(header), "prefix": header_text}}]
    raise ArgumentError(f"codec must be 'n5_default', 'pad' or 'offset', not {codec!r}")


def _compressor(config: Config, itemsize: int) -> Json:
    """Return the codec, as JSON, for `compression`, or for `compressionType` (version 0).

    Returns None for raw blocks.
    """
    if "codecs" in config:
        raise config.error("must be absent: zarrlite supports only the member compression", "codecs", "unknown-member")
    if "compressionType" in config and "compression" not in config:
        name = config.string("compressionType")
        parameters = Config({}, config.at("compressionType"), config.context)
        pointer = parameters.pointer
    else:
        parameters = config.object("compression")
        name, pointer = parameters.string("type"), parameters.at("type")
    if name not in _COMPRESSIONS:
        message = f"{show(name)} is not a known compression (known: {', '.join(_COMPRESSIONS)})"
        raise MetadataError(message, pointer=pointer, kind="unknown-extension", document=config.context.document)
    compressor = _COMPRESSIONS[name](parameters, itemsize)
    parameters.finish()
    return None if compressor is None else compressor.to_json()


def _raw(parameters: Config, itemsize: int) -> None:
    """Return None: raw blocks need no codec."""


def _gzip(parameters: Config, itemsize: int) -> Gzip | Zlib:
    level = parameters.integer("level", -1, 9, default=-1)  # N5, item 4: "level (integer, default -1)"
    # N5, item 4: "useZlib (boolean, default false)"
    if parameters.boolean("useZlib", default=False):
        return Zlib(level)
    return Gzip(6 if level == -1 else level)  # zlib's default level


def _bzip2(parameters: Config, itemsize: int) -> BZ2:
    return BZ2(parameters.integer("blockSize", 1, 9, default=9))  # N5, item 4: "blockSize ([1-9], default 9)"


def _xz(parameters: Config, itemsize: int) -> LZMA:
    return LZMA(preset=parameters.integer("preset", 0, 9, default=6))  # N5, item 4: "preset (integer, default 6)"


def _lz4(parameters: Config, itemsize: int) -> N5Lz4:
    size = parameters.integer(
        "blockSize", 0, 2**31 - 1, default=2**16
    )  # N5, item 4: "blockSize (integer, default 65536)"
    return N5Lz4(size if 64 <= size <= 2**25 else 2**16)  # z5 writes a compression level here, 6 by default


def _zstd(parameters: Config, itemsize: int) -> Zstd:
    parameters.string("id", ("zstd",), default="zstd")  # zarr-python 2 writes the name of its own codec
    level = parameters.integer("level", -131072, 22, default=3)
    return Zstd(level, parameters.boolean("checksum", default=False))


def _blosc(parameters: Config, itemsize: int) -> Blosc:
    parameters.integer("nthreads", default=1)
    shuffle = parameters.integer("shuffle", -1, 2, default=0)
    if shuffle == -1:  # automatic: bitshuffle for single bytes, byte shuffle for larger elements
        shuffle = 2 if itemsize == 1 else 1
    return Blosc(
        parameters.string("cname", Blosc.compressors, default="blosclz"),
        parameters.integer("clevel", 0, 9, default=6),
        Blosc.shuffles[shuffle],
        parameters.integer("typesize", 1, 255, default=itemsize),
        parameters.integer("blocksize", 0, 2**31 - 1, default=0),
    )


# name of an N5 compression -> function from its parameters and the element size to a codec
_COMPRESSIONS: dict[str, Callable[[Config, int], BytesBytesCodec | None]] = {
    "raw": _raw,
    "gzip": _gzip,
    "bzip2": _bzip2,
    "xz": _xz,
    "lz4": _lz4,
    "zstd": _zstd,
    "blosc": _blosc,
}


def parse_user_attributes(config: Config) -> dict[str, Json]:
    """Return the attributes that N5 does not define. Raises MetadataError for unknown versions of N5.

    The version belongs to the root (N5, item 3), but is checked in every document that contains one.
    """
    version = config.string("n5", default="0")
    major = re.match(r"[0-9]{1,9}", version)
    if major is None or int(major[0]) > int(VERSION[0]):
        raise config.error(f"must be a version up to {VERSION[0]}, not {show(version)}", "n5")
    reserved = RESERVED if _is_dataset(config.data) else {"n5"}
    return {name: value for name, value in config.data.items() if name not in reserved}


def _is_dataset(attributes: Mapping[str, Json]) -> bool:
    """Whether these are the attributes of a dataset.

    Viewers also add `dataType` to groups, so a dataset is recognized by `dimensions` together with `blockSize`.
    """
    return "dimensions" in attributes and "blockSize" in attributes


class N5Store(ForeignStore):
    """An N5 container as a read-only Zarr v3 store, whose documents are generated from `attributes.json`.

    Parameters
    ----------
    store
        The store that contains the container.
    """

    format = "N5"

    def attributes(self, path: str) -> Config | None:
        """Read the `attributes.json` at a path. Returns None if it is missing."""
        key = key_prefix(path) + ATTRIBUTES
        data = self.store.get(key, ByteRange(0, MAX_DOCUMENT_BYTES + 1))
        return None if data is None else Config(load_json(data, key, nan_anywhere=True), "", Context(document=key))

    def document(self, path: str, codec: BlockCodec = "n5_default") -> dict[str, Json] | None:
        attributes = self.attributes(path)
        if attributes is not None and _is_dataset(attributes.data):
            return array_document(attributes.data, codec=codec, document=attributes.context.document)
        if attributes is None and not self._is_bare_group(path):
            return None
        user_attributes = {} if attributes is None else parse_user_attributes(attributes)
        return {"zarr_format": 3, "node_type": "group", "attributes": user_attributes}

    def _is_bare_group(self, path: str) -> bool:
        """Whether a path without attributes is a group: a directory that is not inside a dataset."""
        siblings = self.store.list_dir(key_prefix(path.rpartition("/")[0]))[1] if path else []
        exists = f"{path}/" in siblings or any(self.store.list_dir(key_prefix(path)))
        return exists and not self.is_inside_dataset(path)

    def is_inside_dataset(self, path: str) -> bool:
        """Whether a directory above this one is a dataset."""
        names = path.split("/") if path else []
        ancestors = (self.attributes("/".join(names[:i])) for i in range(len(names)))
        return any(_is_dataset(attributes.data) for attributes in ancestors if attributes is not None)

    def underlying_key(self, key: str) -> str:
        return key

    def list_dir(self, prefix: str) -> Listing:
        keys, prefixes = self.store.list_dir(check_prefix(prefix))
        document = prefix + DOCUMENT
        is_node = prefix + ATTRIBUTES in keys or self._is_bare_group(prefix[:-1])
        return sorted({*keys, document} if is_node else {*keys} - {document}), prefixes
