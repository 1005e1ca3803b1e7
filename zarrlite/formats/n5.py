"""N5: read where it lies, and written so that readers of N5 read it.

Rules (N5 specification 4.0.0, File-system specification)
- An array is shown as N5 has it: `shape` is `dimensions` and `chunks` is `blockSize`, axis by axis. Blocks are
  column-major and big endian, so the chain has a full `transpose` and `bytes` in big endian.
- "All directories of the file system are N5 groups"; one with `dimensions` and `blockSize` is a dataset, and the
  directories below it are its blocks.
- Every attribute that N5 itself does not define is a Zarr attribute.
- A document that is refused is named as it lies there: `path/attributes.json`, with a pointer into it.

The blocks themselves are in codecs/n5_default.py.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from zarrlite.buffers.ranges import ByteRange
from zarrlite.codecs.blosc import Blosc
from zarrlite.codecs.gzip import Gzip
from zarrlite.codecs.n5_default import DATA_TYPES, MAX_LENGTH, n5_header
from zarrlite.codecs.zstd import Zstd
from zarrlite.data_types import from_dtype
from zarrlite.errors import ArgumentError, MetadataError, NodeExistsError
from zarrlite.extensions.config import MAX_DOCUMENT_BYTES, Config, Context, Faults, Json, dump_json, load_json, show
from zarrlite.formats.foreign import ForeignStore
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.names import DOCUMENT, key_prefix, normalize_path
from zarrlite.nodes import opening
from zarrlite.nodes.array import Array
from zarrlite.nodes.creation import array_metadata
from zarrlite.nodes.group import Group
from zarrlite.selections.casting import MAX_NDIM
from zarrlite.stores import Listing, Store, check_prefix, open_store

__all__ = [
    "N5Store",
    "array_document",
    "create_array",
    "n5_header",
    "open",
    "write_documents",
]

ATTRIBUTES: Final = "attributes.json"
VERSION: Final = "4.0.0"
Header = Literal["n5_default", "pad", "offset"]
_RESERVED = frozenset(("dimensions", "blockSize", "dataType", "compression", "compressionType", "codecs", "n5"))


def array_document(
    attributes: Mapping[str, Json], *, codec: Header = "n5_default", document: str = ATTRIBUTES
) -> dict[str, Json]:
    """The `zarr.json` that reads an N5 dataset, from its `attributes.json`.

    `codec` says who deals with the header of a block: `n5_default` reads every block; `pad` and `offset` only skip it,
    so that a block cut off at the edge of the array is an error.

    >>> attributes = {"dimensions": [6, 8], "blockSize": [3, 2], "dataType": "uint8", "compression": {"type": "raw"}}
    >>> [c["name"] for c in array_document(attributes, codec="pad")["codecs"]]
    ['transpose', 'bytes', 'pad']
    """
    if not isinstance(attributes, Mapping):
        raise ArgumentError(f"the attributes of a dataset are a mapping, not {attributes!r:.60}")
    config, faults = Config(attributes, "", Context(document=document)), Faults()
    shape: tuple[int, ...] = ()
    chunks: tuple[int, ...] = ()
    name, compressor = "uint8", None
    members: dict[str, Json] = {}
    with faults.collecting():
        shape = config.integers("dimensions")
        if not 1 <= len(shape) <= MAX_NDIM:
            raise config.error(f"must have 1 to {MAX_NDIM} items, not {len(shape)}", "dimensions", "limit")
    with faults.collecting():
        chunks = config.integers("blockSize", 1, MAX_LENGTH)
        if shape and len(chunks) != len(shape):
            message = f"must have {len(shape)} items, as dimensions has, not {len(chunks)}"
            raise config.error(message, "blockSize", "conflict")
    with faults.collecting():
        name = config.string("dataType", DATA_TYPES)
    with faults.collecting():
        compressor = _compressor(config, from_dtype(name).dtype.itemsize)
    with faults.collecting():
        members = _user_attributes(config)
    faults.raise_any()
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        # "MUST use a `/`-separated v2 chunk key encoding" (n5_default, Chunk key encoding)
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": _chain(chunks, compressor, codec),
        "attributes": members,
    }


def _chain(chunks: tuple[int, ...], compressor: Json, codec: str) -> list[Json]:
    """The codecs of blocks of this shape."""
    chain = [
        {"name": "transpose", "configuration": {"order": list(range(len(chunks)))[::-1]}},
        {"name": "bytes", "configuration": {"endian": "big"}},
        *([] if compressor is None else [compressor]),
    ]
    header = n5_header(chunks)
    text = base64.b64encode(header).decode()
    if codec == "n5_default":
        return [{"name": codec, "configuration": {"codecs": chain}}]
    if codec == "pad":
        return [*chain, {"name": codec, "configuration": {"location": "start", "nbytes": len(header), "padding": text}}]
    if codec == "offset":
        return [*chain, {"name": codec, "configuration": {"offset": len(header), "prefix": text}}]
    raise ArgumentError(f"codec must be 'n5_default', 'pad' or 'offset', not {codec!r}")


def _compressor(config: Config, itemsize: int) -> Json:
    """The codec for `compression`, or for `compressionType` as version 0 had it; None for raw blocks."""
    if "codecs" in config:
        raise config.error("is not read: only compression is known", "codecs", "unknown-member")
    if "compressionType" in config and "compression" not in config:
        name, given = config.string("compressionType"), Config({}, config.at("compressionType"), config.context)
        where = given.pointer
    else:
        given = config.object("compression")
        name, where = given.string("type"), given.at("type")
    if name not in _COMPRESSIONS:
        message = f"{show(name)} is not read (known: {', '.join(_COMPRESSIONS)})"
        raise MetadataError(message, pointer=where, kind="unknown-extension", document=config.context.document)
    compressor = _COMPRESSIONS[name](given, itemsize)
    given.finish()
    return None if compressor is None else compressor.to_json()


def _gzip(given: Config, itemsize: int) -> Gzip:
    if given.boolean("useZlib", default=False):
        raise given.error("is not read: a zlib stream is no gzip stream, and no codec is registered for it", "useZlib")
    level = given.integer("level", -1, 9, default=-1)
    return Gzip(6 if level == -1 else level)  # what zlib means by -1


def _zstd(given: Config, itemsize: int) -> Zstd:
    given.string("id", ("zstd",), default="zstd")  # zarr-python 2 leaves its own name there
    return Zstd(given.integer("level", -131072, 22, default=3), given.boolean("checksum", default=False))


def _blosc(given: Config, itemsize: int) -> Blosc:
    given.integer("nthreads", default=1)
    shuffle = given.integer("shuffle", -1, 2, default=0)
    if shuffle == -1:  # blosc's choice: bits of bytes, bytes of everything else
        shuffle = 2 if itemsize == 1 else 1
    return Blosc(
        given.string("cname", Blosc.compressors, default="blosclz"),
        given.integer("clevel", 0, 9, default=6),
        Blosc.shuffles[shuffle],
        given.integer("typesize", 1, 255, default=itemsize),
        given.integer("blocksize", 0, 2**31 - 1, default=0),
    )


_COMPRESSIONS: dict[str, Callable[[Config, int], Gzip | Zstd | Blosc | None]] = {
    "raw": lambda given, itemsize: None,
    "gzip": _gzip,
    "zstd": _zstd,
    "blosc": _blosc,
}


def _user_attributes(config: Config) -> dict[str, Json]:
    """What is not N5's own; the version of the format, wherever it stands, must be one that is known."""
    version = config.string("n5", default="0")
    major = re.match(r"[0-9]{1,9}", version)
    if major is None or int(major[0]) > int(VERSION[0]):
        raise config.error(f"must be a version up to {VERSION[0]}, not {show(version)}", "n5")
    reserved = _RESERVED if _is_dataset(config.data) else {"n5"}
    return {name: value for name, value in config.data.items() if name not in reserved}


def _is_dataset(attributes: Mapping[str, Json]) -> bool:
    """Groups have a `dataType` too, by the conventions of viewers; both lengths only a dataset has."""
    return "dimensions" in attributes and "blockSize" in attributes


class N5Store(ForeignStore):
    """An N5 container seen as Zarr v3, for reading: its documents are made from `attributes.json`."""

    def attributes(self, path: str) -> Config | None:
        """The `attributes.json` at a path."""
        key = key_prefix(path) + ATTRIBUTES
        data = self.store.get(key, ByteRange(0, MAX_DOCUMENT_BYTES + 1))
        return None if data is None else Config(load_json(data, key), "", Context(document=key))

    def document(self, path: str, codec: Header = "n5_default") -> dict[str, Json] | None:
        attributes = self.attributes(path)
        if attributes is not None and _is_dataset(attributes.data):
            return array_document(attributes.data, codec=codec, document=attributes.context.document)
        if attributes is None and not self._is_bare_group(path):
            return None
        members = {} if attributes is None else _user_attributes(attributes)
        return {"zarr_format": 3, "node_type": "group", "attributes": members}

    def _is_bare_group(self, path: str) -> bool:
        """Whether a path without attributes is a directory, and not one of blocks."""
        above = self.store.list_dir(key_prefix(path.rpartition("/")[0]))[1] if path else []
        exists = f"{path}/" in above or any(self.store.list_dir(key_prefix(path)))
        return exists and not self.is_inside_dataset(path)

    def is_inside_dataset(self, path: str) -> bool:
        """Whether a directory above this one is a dataset."""
        names = path.split("/") if path else []
        found = (self.attributes("/".join(names[:i])) for i in range(len(names)))
        return any(_is_dataset(attributes.data) for attributes in found if attributes is not None)

    def below(self, key: str) -> str:
        return key

    def size(self, key: str) -> int | None:
        try:
            return super().size(key)
        except MetadataError:
            return 0  # it is there, and says what is wrong when it is read; its neighbours can still be listed

    def list_dir(self, prefix: str) -> Listing:
        keys, prefixes = self.store.list_dir(check_prefix(prefix))
        document = prefix + DOCUMENT
        is_node = prefix + ATTRIBUTES in keys or self._is_bare_group(prefix[:-1])
        return sorted({*keys, document} if is_node else {*keys} - {document}), prefixes


def open(store: Any, *, path: str | None = None, **options: Any) -> Array | Group:  # noqa: A001
    """Open an N5 dataset or group for reading; nothing is written. `options` are those of `zarrlite.open`."""
    view = N5Store(open_store(store))
    root = view.attributes("")
    if root is not None:
        _user_attributes(root)  # a version that is not known is refused, whatever path is opened
    return opening.open(view, mode="r", path=path, **options)


def write_documents(
    store: Any, *, path: str | None = None, codec: Header = "n5_default", overwrite: bool = False
) -> list[str]:
    """Write the `zarr.json` of every dataset and group from a path down; returns the keys.

    Then `zarrlite.open` reads the container, and so does whatever else knows the codec.
    """
    place = open_store(store)
    node = open(place, path=path)
    nodes = [node, *(below for _, below in node.members(None))] if isinstance(node, Group) else [node]
    view = N5Store(place)
    documents: dict[str, bytes] = {}
    for each in nodes:
        content = view.document(each.path, codec)
        if content is not None:
            documents[key_prefix(each.path) + DOCUMENT] = dump_json(content)
    for key, document in documents.items():
        old = place.get(key)
        if old is not None and bytes(old) != document and not overwrite:
            raise NodeExistsError(f"there is another {key} in {place!r} already; overwrite=True replaces it", path=key)
    # from the leaves up: what can be opened is complete
    place.set_many(sorted(documents.items(), key=lambda item: -item[0].count("/")))
    return sorted(documents)


def create_array(
    store: Any,
    *,
    shape: Any,
    dtype: Any,
    path: str | None = None,
    chunks: Any = "auto",
    compression: Mapping[str, Json] | None = None,
    attributes: Mapping[str, Json] | None = None,
    overwrite: bool = False,
) -> Array:
    """Create an N5 dataset; what is assigned to the array is stored as N5 blocks.

    `compression` is N5's own object, `{"type": "gzip", "level": 6}` by default, and is written as it is given. There
    is no `zarr.json`, so the shape and the attributes of the array are fixed; `write_documents` adds one.

    >>> array = create_array({}, shape=(5, 7), dtype="uint16", chunks=(3, 2))
    >>> array[...] = 1
    >>> sorted(array.store.list())[:2]
    ['0/0', '0/1']
    """
    place, where = open_store(store), normalize_path(path)
    plain = array_metadata(shape, dtype, chunks=chunks, attributes=attributes)
    taken = sorted(_RESERVED.intersection(plain.attributes or ()))
    if taken:
        raise ArgumentError(f"{taken[0]!r} is a member of N5's own and cannot be an attribute")
    own = {
        "dimensions": list(plain.shape),
        "blockSize": list(plain.chunk_grid.chunk_shape((0,) * len(plain.shape))),
        "dataType": plain.data_type.name,
        "compression": {"type": "gzip", "level": 6} if compression is None else compression,
    }
    document = load_json(dump_json({**own, **(plain.attributes or {})}), "new array")
    array = Array(place, where, ArrayMetadata.from_json(array_document(document, document="new array")))
    _make_room(place, where, overwrite=overwrite)
    if where and place.size(ATTRIBUTES) is None:
        place.set(ATTRIBUTES, dump_json({"n5": VERSION}))  # z5py opens no container without it
    place.set(key_prefix(where) + ATTRIBUTES, dump_json(document if where else {"n5": VERSION, **document}))
    return array


def _make_room(store: Store, path: str, *, overwrite: bool) -> None:
    """Remove what is at a path, if that is wanted."""
    prefix = key_prefix(path)
    if N5Store(store).is_inside_dataset(path):
        raise NodeExistsError(f"{path!r} in {store!r} is below an N5 dataset, among its blocks", path=path)
    if any(store.list_dir(prefix)):
        if not overwrite:
            message = f"there is something at {path!r} in {store!r} already; overwrite=True replaces it"
            raise NodeExistsError(message, path=path)
        store.erase_prefix(prefix)
