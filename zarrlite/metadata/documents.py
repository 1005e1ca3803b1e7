"""Conversion between zarr.json and `ArrayMetadata` or `GroupMetadata`.

Rules
- Documents must follow Zarr 3.1 strictly. Each fault is reported with a JSON pointer, and one pass finds the faults in
  all members.
- With `strict=False`, some faults are repaired and reported as warnings (repairs.py).
- Outdated notations that cannot be misunderstood are accepted; `validate` reports them as faults.
- Members that Zarr does not define are refused, except for objects with `must_understand: false`, which are kept.
- All members are written back: known members in canonical spelling, unknown members unchanged.
- No number in a document can cause a large allocation.

In comments, "core spec" is the Zarr core specification 3.1 (zarr-specs, docs/v3/core/index.rst).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Self

from zarrlite.chunk_grids.base import ChunkGrid
from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding
from zarrlite.data_types.base import DataType
from zarrlite.errors import MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Config, Context, Faults, Json, dump_json, is_integer, load_json, show
from zarrlite.extensions.extension import Ignored
from zarrlite.metadata.members import Members
from zarrlite.metadata.repairs import repair
from zarrlite.names import name_fault, new_name_fault
from zarrlite.pipeline.chain import parse_chain
from zarrlite.pipeline.codec import (
    ArrayBytesCodec,
    ArraySpec,
    BytesBytesCodec,
    ChunkOptions,
    Codec,
    Framing,
    byte_order_of,
)
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.casting import MAX_NDIM
from zarrlite.storage_transformers.base import ArrayInStore, StorageTransformer, leading_bytes_after

Options = Mapping[str, Mapping[str, Any]]
MAX_PIPELINES: Final = 1024  # maximum number of cached codec chains; a full cache is cleared
ForChunks = tuple[Callable[[tuple[int, ...]], str], Pipeline | None]  # the chunk key encoder, and the codec chain


class ArrayMetadata(Members):
    """The metadata of an array (core spec, Array metadata)."""

    node_type = "array"

    def __init__(
        self,
        shape: tuple[int, ...],
        data_type: DataType,
        chunk_grid: ChunkGrid,
        chunk_key_encoding: ChunkKeyEncoding,
        fill_value: Any,
        codecs: tuple[Codec | Ignored, ...],
        attributes: dict[str, Json] | None = None,
        storage_transformers: tuple[StorageTransformer | Ignored, ...] | None = None,
        dimension_names: tuple[str | None, ...] | None = None,
        extra: Mapping[str, Json] | None = None,
    ) -> None:
        """Create metadata from parsed members; call `check` to verify that they are consistent.

        Parameters
        ----------
        shape : tuple of int
            The length of each dimension.
        data_type : DataType
            The data type.
        chunk_grid : ChunkGrid
            The chunk grid.
        chunk_key_encoding : ChunkKeyEncoding
            The chunk key encoding.
        fill_value : object
            The value of elements that were never written.
        codecs : tuple of Codec
            The codec chain, in encoding order.
        attributes : dict or None, optional
            The attributes; None if the document has no such member.
        storage_transformers : tuple of StorageTransformer or None, optional
            The storage transformers, in order from the array to the store; None if the document has no such member.
        dimension_names : tuple of (str or None) or None, optional
            The names of the dimensions; None if the document has no such member.
        extra : mapping or None, optional
            Unknown members, which readers may ignore; they are written back.

        Examples
        --------
        >>> import zarrlite
        >>> metadata = zarrlite.create_array("memory://", shape=(4, 6), dtype="int16").metadata
        >>> metadata.data_type.name, [codec.name for codec in metadata.codecs]
        ('int16', ['bytes', 'zstd'])
        """
        self.shape = shape
        self.data_type = data_type
        self.chunk_grid = chunk_grid
        self.chunk_key_encoding = chunk_key_encoding
        # core spec, Array metadata: "an element value to use for uninitialised portions"
        self.fill_value = fill_value
        self.codecs = codecs
        self.attributes = attributes
        self.storage_transformers = storage_transformers
        self.dimension_names = dimension_names
        self._pipelines: dict[Any, Pipeline] = {}  # bound codec chains, keyed by chunk shape and options
        self._for_chunks: dict[Any, ForChunks] = {}  # results of `for_chunks`, keyed by options
        self.extra = extra or {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pipelines": {}, "_for_chunks": {}}

    @property
    def byte_order(self) -> str:
        """The byte order of stored multi-byte elements: "little" or "big"."""
        return byte_order_of(self.codecs)

    def pipeline(self, chunk_shape: tuple[int, ...], options: ChunkOptions = ChunkOptions()) -> Pipeline:
        """Return the codec chain bound to chunks of this shape."""
        pipelines, key = self._pipelines, (chunk_shape, options)
        pipeline = pipelines.get(key)
        if pipeline is None:
            spec = ArraySpec(chunk_shape, self.data_type, self.fill_value, options)
            pipeline = Pipeline(self._written_codecs(), spec)
            if len(pipelines) >= MAX_PIPELINES:
                pipelines.clear()
            pipelines[key] = pipeline
        return pipeline

    @property
    def inner_chunk_shape(self) -> tuple[int, ...] | None:
        """The shape of the inner chunks of a shard. None if the codec chain does not produce shards."""
        pipeline = self.pipeline(self.chunk_grid.largest_chunk(len(self.shape)))
        shape = pipeline.serializer.codec.inner_chunk_shape
        for codec, _ in reversed(pipeline.filters):
            shape = shape and codec.decoded_shape(shape)
        return shape

    def _written_codecs(self) -> tuple[Codec | Ignored, ...]:
        """Return the codecs. If the first storage transformer stores a header separately, they leave room for it."""
        leading = leading_bytes_after(self.in_store) if self.storage_transformers else 0
        if not leading or any(isinstance(c, BytesBytesCodec) and not _starts_with_value(c) for c in self.codecs):
            return self.codecs
        return tuple(c.with_leading_bytes(leading) if isinstance(c, ArrayBytesCodec) else c for c in self.codecs)

    def for_chunks(self, options: ChunkOptions) -> ForChunks:
        """Return the chunk key encoder, and the codec chain of all chunks. The chain is None if chunk shapes differ."""
        found = self._for_chunks.get(options)
        if found is None:
            ndim, pipeline = len(self.shape), None
            if self.chunk_grid.uniform:
                shape = self.chunk_grid.chunk_shape((0,) * ndim)
                pipeline = self.pipeline(shape, options)
            found = self._for_chunks[options] = self.chunk_key_encoding.bound(ndim), pipeline
        return found

    @property
    def in_store(self) -> ArrayInStore:
        """The members of the metadata on which storage transformers may depend."""
        transformers = self.storage_transformers or ()
        return ArrayInStore(self.shape, self.chunk_grid, self.chunk_key_encoding, self.codecs, transformers)

    def folded(self) -> Self:
        """Return the metadata of an equivalent array with as few storage transformers as possible."""
        if not self.storage_transformers:
            return self
        array = folded = self.in_store
        while array.storage_transformers:
            first = array.storage_transformers[0]
            result = None if isinstance(first, Ignored) else first.fold(array)
            if result is None:
                break
            array = result
        return self if array is folded else self.replace(**array._asdict())

    def check(self) -> None:
        """Raise MetadataError, with a JSON pointer into the document, if two members contradict each other."""
        checks: list[tuple[str, Any]] = [
            ("/chunk_grid", lambda: self.chunk_grid.check(self.shape)),
            ("/chunk_key_encoding", lambda: self.chunk_key_encoding.check(len(self.shape))),
            ("/codecs", lambda: [*map(self.pipeline, self.chunk_grid.sample_shapes(len(self.shape)))]),
        ]
        for i, transformer in enumerate(self.storage_transformers or ()):
            if isinstance(transformer, StorageTransformer):
                checks.append((f"/storage_transformers/{i}", lambda t=transformer: t.check(self.in_store)))
        for pointer, check in checks:
            try:
                check()
            except MetadataError as error:
                raise error.under(pointer) from None

    @classmethod
    def from_json(cls, document: Mapping[str, Json], context: Context | None = None) -> Self:
        """Parse a document. Raises the first fault, with all faults in its `problems`."""
        metadata: Self = _ArrayParser(document, context or Context()).parse(cls)
        return metadata

    def to_json(self) -> dict[str, Json]:
        """Return the document, in canonical spelling."""
        document: dict[str, Json] = {
            **super().to_json(),
            "shape": list(self.shape),
            "data_type": self.data_type.to_json(),
            "chunk_grid": self.chunk_grid.to_json(),
            "chunk_key_encoding": self.chunk_key_encoding.to_json(),
            # core spec, Array metadata: "default fill value that is chosen MUST be recorded in the metadata"
            "fill_value": self.data_type.fill_value_json(self.fill_value, self.byte_order),
            "codecs": [codec.to_json() for codec in self.codecs],
        }
        if self.attributes is not None:
            document["attributes"] = self.attributes
        if self.storage_transformers is not None:
            document["storage_transformers"] = [t.to_json() for t in self.storage_transformers]
        if self.dimension_names is not None:
            document["dimension_names"] = list(self.dimension_names)
        return {**document, **self.extra}

    def with_shape(self, shape: tuple[int, ...]) -> Self:
        """Return the same metadata with a different shape, and a chunk grid that covers it."""
        unit = self.inner_chunk_shape or (1,) * len(shape)
        return self._with(shape=shape, chunk_grid=self.chunk_grid.resized(shape, unit))

    def with_shape_of(self, other: ArrayMetadata) -> Self:
        """Return this metadata with the shape and the chunk grid from other metadata of the same array."""
        return self._with(shape=other.shape, chunk_grid=other.chunk_grid)

    def replace(self, **members: Any) -> Self:
        """Return the same metadata with some members replaced."""
        unknown = members.keys() - self.__dict__.keys()
        if unknown:
            raise TypeError(f"array metadata has no member {', '.join(sorted(unknown))}")
        return self._with(**members, _pipelines={}, _for_chunks={})


class GroupMetadata(Members):
    """The metadata of a group (core spec, Group metadata)."""

    node_type = "group"

    def __init__(
        self,
        attributes: dict[str, Json] | None = None,
        consolidated: Mapping[str, Json] | None = None,
        extra: Mapping[str, Json] | None = None,
    ) -> None:
        """Create metadata from parsed members.

        Parameters
        ----------
        attributes : dict or None, optional
            The attributes; None if the document has no such member.
        consolidated : mapping or None, optional
            The documents of the nodes below, keyed by path; None if the document has no consolidated metadata.
        extra : mapping or None, optional
            Unknown members, which readers may ignore; they are written back.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.GroupMetadata(attributes={"units": "K"}).to_json()
        {'zarr_format': 3, 'node_type': 'group', 'attributes': {'units': 'K'}}
        """
        self.attributes = attributes
        self.consolidated = consolidated  # path -> document, as written in consolidated_metadata
        self.extra = extra or {}

    @classmethod
    def from_json(cls, document: Mapping[str, Json], context: Context | None = None) -> Self:
        """Parse a document. Raises the first fault, with all faults in its `problems`."""
        top = Config(document, "", context or Context())
        faults = Faults()
        members: dict[str, Any] = {}
        # core spec, Group metadata: "A Zarr group metadata object must contain the following mandatory key"
        _parse_header(top, "group", faults)
        with faults.collecting():
            members["attributes"] = _attributes(top)
        with faults.collecting():
            members["consolidated"] = _consolidated(top)
        members["extra"] = _extra(top, faults)
        faults.raise_any()
        return cls(**members)

    def to_json(self) -> dict[str, Json]:
        """Return the document, in canonical spelling."""
        document = super().to_json()
        if self.attributes is not None:
            document["attributes"] = self.attributes
        if self.consolidated is not None:
            document["consolidated_metadata"] = consolidated_member(self.consolidated)
        return {**document, **self.extra}

    @property
    def consolidated_metadata(self) -> ConsolidatedMetadata | None:
        """The parsed consolidated metadata, as in zarr-python. None if the document has no consolidated metadata."""
        if self.consolidated is None:
            return None
        return ConsolidatedMetadata({path: parse_node(document) for path, document in self.consolidated.items()})

    def without_consolidated(self) -> Self:
        """Return the same metadata without consolidated metadata."""
        return self._with(consolidated=None)


Metadata = ArrayMetadata | GroupMetadata


class ConsolidatedMetadata(NamedTuple):
    """The metadata of the nodes below a group, keyed by path."""

    metadata: Mapping[str, Metadata]


class _ArrayParser:
    """Parses an array document in one pass that collects all faults."""

    def __init__(self, document: Mapping[str, Json], context: Context) -> None:
        self.context = context
        self.top = Config(document, "", context)
        self.faults = Faults()
        self.members: dict[str, Any] = {}

    def parse(self, cls: type[Any]) -> Any:
        """Return the metadata. Raises the first fault, with all faults in its `problems`."""
        collecting = self.faults.collecting
        # core spec, Array metadata: "with the following mandatory names"
        _parse_header(self.top, "array", self.faults)
        with collecting():
            self.members["shape"] = self._shape()
        # core spec, Array metadata: "data_type is an extension point"
        # core spec, Array metadata: "chunk_grid is an extension point"
        # core spec, Array metadata: "chunk_key_encoding is an extension point"
        for name in ("data_type", "chunk_grid", "chunk_key_encoding"):
            with collecting():
                extensions = registry.REGISTRIES[name]
                self.members[name] = extensions.parse(self.top.raw(name), f"/{name}", self.context)
        # core spec, Array metadata: "Each codec is an extension point"
        with collecting():
            self.members["codecs"] = parse_chain(self.top.list("codecs"), "/codecs", self.context)
        with collecting():
            self.members["storage_transformers"] = self._storage_transformers()
        with collecting():
            self.members["attributes"] = _attributes(self.top)
        with collecting():
            self.members["dimension_names"] = self._dimension_names()
        with collecting():
            self.members["fill_value"] = self._fill_value()
        self.members["extra"] = _extra(self.top, self.faults)
        if not self.faults.problems:
            metadata = cls(**self.members)
            with collecting():
                try:
                    metadata.check()
                except MetadataError as error:
                    raise error.under("", self.context.document) from None
        self.faults.raise_any()
        self.context.refuse_unused_options()
        return metadata

    def _shape(self) -> tuple[int, ...]:
        # core spec, Array metadata: "An array of integers providing the length of each dimension"
        # core spec, Concepts and terminology: "only considers the case where the lengths of all dimensions are finite"
        # core spec, Concepts and terminology: "data structure with zero or more dimensions"
        # core spec, Concepts and terminology: "A shape can be the empty tuple"
        # core spec, Concepts and terminology: "An array contains zero or more data elements", so a length may be 0
        shape = self.top.integers("shape")
        if len(shape) > MAX_NDIM:
            raise self.top.error(f"must have at most {MAX_NDIM} dimensions, not {len(shape)}", "shape", "limit")
        return shape

    def _storage_transformers(self) -> Any:
        """Return the storage transformers. Returns None if the member is absent."""
        # core spec, storage_transformers: "Specifies a list of" extensions
        # core spec, storage_transformers: "absent no storage transformer is used, same for an empty list"
        values = self.top.list("storage_transformers", default=None)
        if values is None:
            return None
        # core spec, storage_transformers: "Each storage transformer is an extension point"
        return registry.storage_transformers.parse_list(values, "/storage_transformers", self.context)

    def _dimension_names(self) -> tuple[str | None, ...] | None:
        """Return the names of the dimensions. Returns None if the member is absent."""
        # core spec, dimension_names: "not specified, all dimensions are unnamed"
        if self.top.raw("dimension_names", None) is None:
            if "dimension_names" in self.top:  # old writers wrote null
                self.context.tolerate("must be an array, not null", "/dimension_names", "type")
            return None
        names = self.top.list("dimension_names")
        # core spec, dimension_names: "must be an array of strings or null objects"
        # core spec, dimension_names: "An unnamed dimension is indicated by the null object"
        # core spec, dimension_names: "recommended but not required that all non-null dimension names are distinct"
        for i, name in enumerate(names):
            if name is not None and not isinstance(name, str):
                fault = MetadataError(f"must be a string or null, not {show(name)}", pointer=f"/{i}", kind="type")
                raise fault.under("/dimension_names", self.context.document)
        # core spec, dimension_names: "with the same length as shape"
        shape = self.members.get("shape", names)
        if len(names) != len(shape):
            message = f"must have {len(shape)} items, one for each dimension, not {len(names)}"
            raise self.top.error(message, "dimension_names", "conflict")
        return tuple(names)

    def _fill_value(self) -> Any:
        """Return the fill value as a scalar. Returns None, without any check, if the data type is invalid."""
        # core spec, Array metadata: "The fill_value metadata field is required"
        data_type = self.members.get("data_type")
        if "fill_value" not in self.top and data_type is not None:
            advice = show(data_type.fill_value_json(data_type.default_fill_value))
            raise self.top.error(f"is required and missing (add {advice})", "fill_value", "missing")
        value = self.top.raw("fill_value")
        if data_type is None:
            return None
        if data_type.name == "bool" and is_integer(value) and value in (0, 1):  # old writers wrote 0 or 1 for a bool
            self.context.tolerate(f"must be true or false, not {value}", "/fill_value", "type")
            value = bool(value)
        # core spec, Array metadata: "The permitted values depend on the data type"
        try:
            return data_type.parse_fill_value(value, byte_order_of(self.members.get("codecs", ())))
        except MetadataError as error:
            raise error.under("/fill_value", self.context.document) from None


def _starts_with_value(codec: BytesBytesCodec) -> bool:
    """Whether the output of a codec begins with its whole input."""
    return isinstance(codec, Framing) and codec.head == 0


def _check_format(top: Config) -> None:
    # core spec, Array metadata: "must be 3 here"
    # core spec, Stability Policy: "data is only marked with the respective major version"
    value = top.raw("zarr_format")
    if not is_integer(value):
        raise top.error(f"must be the integer 3, not {show(value)}", "zarr_format", "type")
    if value != 3:
        raise top.error(f"must be 3, not {show(value)}", "zarr_format")


def _parse_header(top: Config, node_type: str, faults: Faults) -> None:
    with faults.collecting():
        _check_format(top)
    # core spec, Array metadata: "must be array here"
    # core spec, Group metadata: "must be group here"
    with faults.collecting():
        top.string("node_type", (node_type,))


def _attributes(top: Config) -> dict[str, Json] | None:
    """Return a copy of the attributes. Returns None if the member is absent."""
    # core spec, attributes: "The value must be an object"
    # core spec, attributes: "the value can be an arbitrary JSON literal"
    return None if "attributes" not in top else dict(top.object("attributes").data)


def _consolidated(top: Config) -> Mapping[str, Json] | None:
    """Return the documents in consolidated metadata, keyed by path. Returns None if the member is absent or null."""
    # core spec, Additional fields: "may contain an additional field named consolidated_metadata"
    if top.raw("consolidated_metadata", None) is None:
        if "consolidated_metadata" in top:  # zarr-python wrote null
            top.context.tolerate("must be an object, not null", "/consolidated_metadata", "type")
        return None
    # core spec, Additional fields: "its value MUST be a JSON object with the following structure"
    config = top.object("consolidated_metadata")
    config.string("kind", ("inline",))
    if config.boolean("must_understand", default=False):
        raise config.error("must be false", "must_understand")
    if "must_understand" not in config:  # zarr-python omitted it
        top.context.tolerate("is required and missing", config.at("must_understand"), "missing")
    documents = config.object("metadata")
    config.finish()
    sound: set[str] = set()  # names that were found to be valid; most names occur in several paths
    for path in documents.data:
        documents.object(path)
        # core spec, Concepts and terminology: "a non-root path cannot end with /"
        names = [*itertools.filterfalse(sound.__contains__, path.split("/"))]
        faults = [fault for name in names if (fault := name_fault(name))]
        if faults:
            raise documents.error(f"must be the path of a node below this group: {faults[0]}", path)
        reserved = [fault for name in names if (fault := new_name_fault(name))]
        if reserved:
            top.context.tolerate(f"must be the path of a node: {reserved[0]}", documents.at(path), "value")
        else:
            sound.update(names)
    return documents.data


def _extra(top: Config, faults: Faults) -> dict[str, Json]:
    """Return the undefined members that readers may ignore; record all other undefined members as faults."""
    extra = {}
    for name, value in top.data.items():
        if name in top.requested:
            continue
        # core spec, Stability Policy: 'B fails to open it, as the key "foo" is unknown'
        # core spec, Additional fields: "The handling of fields not defined in this document"
        # core spec, must_understand: "MUST fail to open Zarr groups or arrays if any metadata fields"
        # core spec, must_understand: "to add top-level keys is discouraged", but permitted
        if isinstance(value, dict) and value.get("must_understand") is False:
            extra[name] = value
            continue
        with faults.collecting():
            message = 'is not a known member; unknown members must be objects with "must_understand": false'
            raise top.error(message, name, "unknown-member")
    return extra


def parse_node(
    data: bytes | bytearray | memoryview | Mapping[str, Json],
    *,
    document: str = "zarr.json",
    strict: bool = True,
    options: Options | None = None,
) -> Metadata:
    """Parse the metadata document of an array or a group."""
    content = data if isinstance(data, Mapping) else load_json(data, document)
    if not strict and content.get("node_type") == "array":
        content, options = repair(content, lambda repaired: parse_content(repaired, Context()), options)
    return parse_content(content, Context(document=document, options=options))


def parse_content(content: Mapping[str, Json], context: Context) -> Metadata:
    """Parse the document of an array or a group; `context` records the faults that are tolerated."""
    # core spec, Array metadata: "A string defining the type of hierarchy node element"
    # core spec, Concepts and terminology: "The root of a Zarr hierarchy may be either a group" or an array
    if content.get("node_type") == "array":
        return ArrayMetadata.from_json(content, context)
    if content.get("node_type") == "group":
        metadata = GroupMetadata.from_json(content, context)
        context.refuse_unused_options()
        return metadata
    top, faults = Config(content, "", context), Faults()
    with faults.collecting():
        top.string("node_type", ("array", "group"))
    with faults.collecting():
        _check_format(top)
    faults.raise_any()
    raise top.error("must be array or group", "node_type")


def consolidated_member(documents: Mapping[str, Json]) -> dict[str, Json]:
    """Return the member `consolidated_metadata` with the documents of the nodes below a group, keyed by path."""
    # core spec, Additional fields: "its value MUST be a JSON object with the following structure"
    return {"kind": "inline", "must_understand": False, "metadata": dict(documents)}


def serialize(metadata: Metadata, key: str = "zarr.json") -> bytes:
    """Return the bytes of zarr.json, as `dump_document` does."""
    return dump_document(metadata.to_json(), key)


def dump_document(content: Mapping[str, Json], key: str = "zarr.json") -> bytes:
    """Serialise a metadata document; consolidated metadata comes last and is not indented, as it can be large.

    Raises MetadataError if the document is too large or too deeply nested to be read back. NaN in attributes is
    written: callers refuse it in new attributes, but keep it in stored ones.
    """
    copies = content.get("consolidated_metadata")
    if copies is None:
        data = dump_json(content, allow_nan=True)
    else:
        rest = {name: value for name, value in content.items() if name != "consolidated_metadata"}
        head, tail = dump_json(rest, allow_nan=True), dump_json(copies, indent=None, allow_nan=True)
        data = b'%b,\n  "consolidated_metadata": %b\n}' % (head.removesuffix(b"\n}"), tail)
    load_json(data, key)  # also refuses NaN outside of attributes
    return data
