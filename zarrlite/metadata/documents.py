"""zarr.json <-> ArrayMetadata, GroupMetadata.

Rules
- Documents follow Zarr 3.1 strictly; every fault has a JSON pointer, and one pass finds the faults of all members.
- With `strict=False` two omissions are repaired and reported as warnings: no `fill_value`, no array -> bytes codec.
- A member that nobody defined is refused, unless it is an object with `must_understand: false`; then it is kept.
- Whatever is read is written back: known things in canonical spelling, the rest as it was.
- No number in a document makes anything be allocated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from zarrlite.chunk_grids.base import ChunkGrid
from zarrlite.chunk_key_encodings.base import ChunkKeyEncoding
from zarrlite.data_types.base import DataType
from zarrlite.errors import MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Config, Context, Faults, Json, dump_json, is_integer, load_json, show
from zarrlite.extensions.extension import Ignored
from zarrlite.metadata.members import Members
from zarrlite.names import name_fault
from zarrlite.pipeline.chain import parse_chain
from zarrlite.pipeline.codec import ArraySpec, Codec, byte_order_of
from zarrlite.pipeline.pipeline import Pipeline, Prepared
from zarrlite.selections.casting import MAX_NDIM
from zarrlite.storage_transformers.base import StorageTransformer

Options = Mapping[str, Mapping[str, Any]]


class ArrayMetadata(Members):
    """The metadata of an array."""

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
        self.shape = shape
        self.data_type = data_type
        self.chunk_grid = chunk_grid
        self.chunk_key_encoding = chunk_key_encoding
        self.fill_value = fill_value
        self.codecs = codecs
        self.attributes = attributes
        self.storage_transformers = storage_transformers
        self.dimension_names = dimension_names
        self._pipelines: dict[Any, Pipeline] = {}  # those that are bound, by the shape of chunks
        self._prepared: dict[bool, Prepared] = {}
        self.extra = extra or {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pipelines": {}, "_prepared": {}}

    @property
    def byte_order(self) -> str:
        """Of multi-byte elements as they are stored."""
        return byte_order_of(self.codecs)

    def pipeline(self, chunk_shape: tuple[int, ...], *, write_empty: bool = False) -> Pipeline:
        """The codec chain bound to chunks of this shape."""
        pipelines, key = self._pipelines, (chunk_shape, write_empty)
        if key not in pipelines:
            spec = ArraySpec(chunk_shape, self.data_type, self.fill_value, write_empty=write_empty)
            pipelines[key] = Pipeline(self.codecs, spec)
        return pipelines[key]

    def prepared(self, *, write_empty: bool) -> Prepared:
        """What reading and writing chunks needs of the metadata, whatever the store."""
        known = self._prepared
        if write_empty not in known:
            grid, ndim = self.chunk_grid, len(self.shape)
            shape = grid.chunk_shape((0,) * ndim) if grid.uniform else None
            pipeline = None if shape is None else self.pipeline(shape, write_empty=write_empty)
            known[write_empty] = Prepared(self.chunk_key_encoding.bound(ndim), pipeline)
        return known[write_empty]

    def check(self) -> None:
        """Refuse what only shows when the members are seen together; pointers are relative to the document."""
        checks: list[tuple[str, Any]] = [
            ("/chunk_grid", lambda: self.chunk_grid.check(self.shape)),
            ("/codecs", lambda: self.pipeline(self.chunk_grid.chunk_shape((0,) * len(self.shape)))),
        ]
        for i, transformer in enumerate(self.storage_transformers or ()):
            if isinstance(transformer, StorageTransformer):
                checks.append((f"/storage_transformers/{i}", lambda t=transformer: t.check(self)))
        for pointer, check in checks:
            try:
                check()
            except MetadataError as error:
                raise error.under(pointer) from None

    @classmethod
    def from_json(cls, document: Mapping[str, Json], context: Context | None = None) -> Self:
        """Parse a document; raises the first fault, which carries all others as `problems`."""
        metadata: Self = _ArrayParser(document, context or Context()).parse(cls)
        return metadata

    def to_json(self) -> dict[str, Json]:
        document: dict[str, Json] = {
            **super().to_json(),
            "shape": list(self.shape),
            "data_type": self.data_type.to_json(),
            "chunk_grid": self.chunk_grid.to_json(),
            "chunk_key_encoding": self.chunk_key_encoding.to_json(),
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
        return self._with(shape=shape)

    def replace(self, **members: Any) -> Self:
        """The same with other members."""
        unknown = members.keys() - self.__dict__.keys()
        if unknown:
            raise TypeError(f"metadata of an array has no {', '.join(sorted(unknown))}")
        return self._with(**members, _pipelines={}, _prepared={})


class GroupMetadata(Members):
    """The metadata of a group."""

    node_type = "group"

    def __init__(
        self,
        attributes: dict[str, Json] | None = None,
        consolidated: Mapping[str, Json] | None = None,
        extra: Mapping[str, Json] | None = None,
    ) -> None:
        self.attributes = attributes
        self.consolidated = consolidated  # path -> document, as it stands in consolidated_metadata
        self.extra = extra or {}

    @classmethod
    def from_json(cls, document: Mapping[str, Json], context: Context | None = None) -> Self:
        """Parse a document; raises the first fault, which carries all others as `problems`."""
        top = Config(document, "", context or Context())
        faults = Faults()
        members: dict[str, Any] = {}
        _parse_header(top, "group", faults)
        with faults.collecting():
            members["attributes"] = _attributes(top)
        with faults.collecting():
            members["consolidated"] = _consolidated(top)
        members["extra"] = _extra(top, faults)
        faults.raise_any()
        return cls(**members)

    def to_json(self) -> dict[str, Json]:
        document = super().to_json()
        if self.attributes is not None:
            document["attributes"] = self.attributes
        if self.consolidated is not None:
            metadata = dict(self.consolidated)
            document["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": metadata}
        return {**document, **self.extra}

    def without_consolidated(self) -> Self:
        return self._with(consolidated=None)


Metadata = ArrayMetadata | GroupMetadata


class _ArrayParser:
    """One pass over an array document."""

    def __init__(self, document: Mapping[str, Json], context: Context) -> None:
        self.context = context
        self.top = Config(document, "", context)
        self.faults = Faults()
        self.found: dict[str, Any] = {}

    def parse(self, cls: type[Any]) -> Any:
        collecting = self.faults.collecting
        _parse_header(self.top, "array", self.faults)
        with collecting():
            self.found["shape"] = self._shape()
        for name in ("data_type", "chunk_grid", "chunk_key_encoding"):
            with collecting():
                kind = registry.REGISTRIES[name]
                self.found[name] = kind.parse(self.top.raw(name), f"/{name}", self.context)
        with collecting():
            self.found["codecs"] = parse_chain(self.top.list("codecs"), "/codecs", self.context)
        with collecting():
            self.found["storage_transformers"] = self._storage_transformers()
        with collecting():
            self.found["attributes"] = _attributes(self.top)
        with collecting():
            self.found["dimension_names"] = self._dimension_names()
        with collecting():
            self.found["fill_value"] = self._fill_value()
        self.found["extra"] = _extra(self.top, self.faults)
        if not self.faults.problems:
            metadata = cls(**self.found)
            with collecting():
                try:
                    metadata.check()
                except MetadataError as error:
                    raise error.under("", self.context.document) from None
        self.faults.raise_any()
        self.context.refuse_unused_options()
        return metadata

    def _shape(self) -> tuple[int, ...]:
        shape = self.top.integers("shape")
        if len(shape) > MAX_NDIM:
            raise self.top.error(f"has {len(shape)} dimensions; at most {MAX_NDIM} are handled", "shape", "limit")
        return shape

    def _storage_transformers(self) -> Any:
        values = self.top.list("storage_transformers", default=None)
        if values is None:
            return None
        return registry.storage_transformers.parse_list(values, "/storage_transformers", self.context)

    def _dimension_names(self) -> tuple[str | None, ...] | None:
        names = self.top.list("dimension_names", default=None)
        if names is None:
            return None
        for i, name in enumerate(names):
            if name is not None and not isinstance(name, str):
                fault = MetadataError(f"must be a string or null, not {show(name)}", pointer=f"/{i}", kind="type")
                raise fault.under("/dimension_names", self.context.document)
        shape = self.found.get("shape", names)
        if len(names) != len(shape):
            message = f"must have {len(shape)} items, as shape has, not {len(names)}"
            raise self.top.error(message, "dimension_names", "conflict")
        return tuple(names)

    def _fill_value(self) -> Any:
        data_type = self.found.get("data_type")
        if "fill_value" not in self.top and not self.context.strict and data_type is not None:
            self.context.warn("is missing; the zero of the data type is used", "/fill_value")
            return data_type.default_fill_value
        if "fill_value" not in self.top and data_type is not None:
            advice = show(data_type.fill_value_json(data_type.default_fill_value))
            raise self.top.error(f"is required and missing (add {advice})", "fill_value", "missing")
        value = self.top.raw("fill_value")
        if data_type is None:
            return None
        try:
            return data_type.parse_fill_value(value, byte_order_of(self.found.get("codecs", ())))
        except MetadataError as error:
            raise error.under("/fill_value", self.context.document) from None


def _check_format(top: Config) -> None:
    value = top.raw("zarr_format")
    if not is_integer(value):
        raise top.error(f"must be the integer 3, not {show(value)}", "zarr_format", "type")
    if value != 3:
        raise top.error(f"must be 3, not {show(value)}", "zarr_format")


def _parse_header(top: Config, node_type: str, faults: Faults) -> None:
    with faults.collecting():
        _check_format(top)
    with faults.collecting():
        top.string("node_type", (node_type,))


def _attributes(top: Config) -> dict[str, Json] | None:
    return None if "attributes" not in top else dict(top.object("attributes").data)


def _consolidated(top: Config) -> Mapping[str, Json] | None:
    """An object of its own form "for historical reasons" (core spec, Additional fields); null stands for absent."""
    if top.raw("consolidated_metadata", None) is None:
        return None
    config = top.object("consolidated_metadata")
    config.string("kind", ("inline",))
    if config.boolean("must_understand", default=False):
        raise config.error("must be false", "must_understand")
    documents = config.object("metadata")
    config.finish()
    for path in documents.data:
        documents.object(path)
        faults = [fault for name in path.split("/") if (fault := name_fault(name))]
        if faults:
            raise documents.error(f"must be the path of a node below this group: {faults[0]}", path)
    return documents.data


def _extra(top: Config, faults: Faults) -> dict[str, Json]:
    """Members that nobody defined: refused, unless the document allows to ignore them."""
    extra = {}
    for name, value in top.data.items():
        if name in top.requested:
            continue
        if isinstance(value, dict) and value.get("must_understand") is False:
            extra[name] = value
            continue
        with faults.collecting():
            message = 'is not a member of Zarr v3; it can be ignored only as an object with "must_understand": false'
            raise top.error(message, name, "unknown-member")
    return extra


def parse_node(
    data: bytes | bytearray | memoryview | Mapping[str, Json],
    *,
    document: str = "zarr.json",
    strict: bool = True,
    options: Options | None = None,
) -> Metadata:
    """Array or group metadata from a document, whichever it is."""
    content = data if isinstance(data, Mapping) else load_json(data, document)
    context = Context(document=document, strict=strict, options=options)
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


def serialize(metadata: Metadata) -> bytes:
    """The bytes of zarr.json."""
    return dump_json(metadata.to_json())
