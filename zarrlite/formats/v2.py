"""Conversion of Zarr v2 documents to Zarr v3: `.zarray`, `.zgroup`, `.zattrs` and `.zmetadata` become `zarr.json`.

Rules
- Chunks are neither changed nor moved: the key encoding is `v2`, and the codec chain decodes the stored bytes.
- A feature without a counterpart in Zarr v3 is refused, with an error that points into the Zarr v2 document.
- The member `zarr_v2` of a converted document contains the original fill value, or null if elements are undefined.
  Readers may ignore this member; xarray uses the fill value of a Zarr v2 array as the attribute `_FillValue`.
- xarray's attribute `_ARRAY_DIMENSIONS` becomes `dimension_names` if it contains a name for each dimension. Without
  `_ARRAY_DIMENSIONS`, the names are taken from netCDF-C's references to dimensions.
- Unknown members are ignored (Zarr v2, Metadata: "Other keys SHOULD NOT be present" and "SHOULD be ignored").

In comments, "Zarr v2" is the storage specification, version 2 (zarr-specs, docs/v2/v2.0.rst), cited by section name.
Data types are converted in numpy_types.py, fill values in v2_fill_values.py, filters and compressors in v2_codecs.py;
v2_store.py contains the view of a hierarchy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from zarrlite.data_types import DataType
from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions import registry
from zarrlite.extensions.config import Config, Context, Faults, Json, show
from zarrlite.formats.numpy_types import byte_order, parse_type
from zarrlite.formats.v2_codecs import OBJECT_TYPES, Chain, Item, parse_items, relocated
from zarrlite.formats.v2_fill_values import parse_fill_value
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.selections.casting import MAX_NDIM

ARRAY: Final = ".zarray"  # Zarr v2, Metadata: 'stored as the value of the ".zarray" key'
GROUP: Final = ".zgroup"  # Zarr v2, Groups: 'storing group metadata under the ".zgroup" key'
ATTRIBUTES: Final = ".zattrs"  # Zarr v2, Attributes: 'stored under the ".zattrs" key'
CONSOLIDATED: Final = ".zmetadata"  # zarr-python's copy of all documents
DOCUMENTS: Final = frozenset((ARRAY, GROUP, ATTRIBUTES, CONSOLIDATED))
MEMBER: Final = "zarr_v2"  # member that conversion adds to the document of an array
_DIMENSIONS: Final = "_ARRAY_DIMENSIONS"
_NETCDF: Final = "_NCZARR_ARRAY"  # member that netCDF-C 4.8 and 4.9 add; later versions add the attribute _nczarr_array
# member of a Zarr v3 document -> the Zarr v2 member that it is converted from, for pointers in errors
_ORIGINS: Final = {"chunk_grid": "chunks", "data_type": "dtype", "chunk_key_encoding": "dimension_separator"}


def array_document(
    array: Mapping[str, Json], attributes: Mapping[str, Json] | None = None, *, document: str = ARRAY
) -> dict[str, Json]:
    """Convert the `.zarray` and the `.zattrs` of an array to a `zarr.json` that describes the same array.

    Parameters
    ----------
    array
        The content of `.zarray`.
    attributes
        The content of `.zattrs`, if there is one.
    document
        The name to use for `.zarray` in error messages.

    Returns
    -------
    dict
        The content of `zarr.json`.

    Raises
    ------
    MetadataError
        If `array` is not valid, or uses a feature that has no counterpart in Zarr v3. `problems` lists every fault,
        each with a pointer into `array`.
    ArgumentError
        If `array` or `attributes` is not a mapping.

    Examples
    --------
    >>> array = {"zarr_format": 2, "shape": [6, 8], "chunks": [3, 4], "dtype": ">i2", "compressor": None,
    ...          "fill_value": 0, "order": "F", "filters": None}
    >>> document = array_document(array, {"_ARRAY_DIMENSIONS": ["y", "x"]})
    >>> [c["name"] for c in document["codecs"]], document["dimension_names"]
    (['transpose', 'bytes'], ['y', 'x'])
    """
    for value in (array, attributes or {}):
        if not isinstance(value, Mapping):
            raise ArgumentError(f"the content of a document must be a mapping, not {value!r:.60}")
    return convert_array(Config(array, "", Context(document=document)), attributes or {})


def convert_array(top: Config, attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Return the `zarr.json` for a `.zarray` and its attributes."""
    faults = Faults()
    shape: tuple[int, ...] = ()
    chunks: tuple[int, ...] = ()
    separator = "."
    items: list[Item] = []
    fill_value: Json = None
    with faults.collecting():
        check_format(top)
    with faults.collecting():
        shape = top.integers("shape")
        if len(shape) > MAX_NDIM:
            raise top.error(f"must have at most {MAX_NDIM} items, not {len(shape)}", "shape", "limit")
    with faults.collecting():
        chunks = _chunks(top, shape)
    with faults.collecting():
        # Zarr v2, Metadata: "the default MUST be assumed to be"
        separator = top.string("dimension_separator", (".", "/"), default=".")
    with faults.collecting():
        items = parse_items(top)
    data_type: Any = None
    dtype: np.dtype[Any] | None = None
    with faults.collecting():
        data_type, dtype = _data_type(top, items)
    order = "C"
    with faults.collecting():
        order = top.string("order", ("C", "F"))
    chain = Chain(data_type, dtype, is_netcdf=_NETCDF in top or _NETCDF.lower() in attributes)
    if data_type is not None:
        with faults.collecting():
            fill_value = _fill_value(top, data_type, dtype)
        with faults.collecting():
            # json2 stores nested lists, which are in row-major order whatever `order` is
            if order == "F" and len(shape) > 1 and not (items and items[0].name == "json2"):
                chain.add_transpose(len(shape))
            for item in items:
                chain.add(item)
            chain.finish()
    faults.raise_any()
    user_attributes, names = _dimension_names(top, attributes, len(shape))
    converted: dict[str, Json] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type.to_json(),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": separator}},
        "fill_value": fill_value,
        "codecs": chain.codecs,
        "attributes": user_attributes,
        **({} if names is None else {"dimension_names": names}),
        MEMBER: {"must_understand": False, "fill_value": _as_json(top.raw("fill_value", None))},
    }
    _check(converted, chain, top)
    return converted


def check_format(top: Config) -> None:
    """Raise an error unless the `zarr_format` of a document is 2."""
    if top.integer("zarr_format") != 2:
        raise top.error(f"must be 2, not {show(top.raw('zarr_format'))}", "zarr_format")


def convert_group(top: Config | None, attributes: Mapping[str, Json]) -> dict[str, Json]:
    """Return the `zarr.json` of a group, given its `.zgroup`, which may be absent, and its attributes."""
    if top is not None:
        check_format(top)
    return {"zarr_format": 3, "node_type": "group", "attributes": dict(attributes)}


def parse_consolidated(content: Mapping[str, Json], document: str) -> Config:
    """Return the documents in a `.zmetadata`, by key."""
    top = Config(content, "", Context(document=document))
    if top.integer("zarr_consolidated_format") != 1:
        message = f"must be 1, not {show(top.raw('zarr_consolidated_format'))}"
        raise top.error(message, "zarr_consolidated_format")
    return top.object("metadata")


def _chunks(top: Config, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the chunk shape. In an empty dimension, which has no chunks, a chunk length of 0 becomes 1."""
    chunks = top.integers("chunks")
    if len(chunks) != len(shape):
        raise top.error(f"must have {len(shape)} items, like shape, not {len(chunks)}", "chunks", "conflict")
    for i, (length, chunk) in enumerate(zip(shape, chunks, strict=True)):
        if chunk == 0 and length:
            fault = MetadataError("must be a positive integer, not 0", pointer=f"/{i}")
            raise fault.under(top.at("chunks"), top.context.document)
    return tuple(chunk or 1 for chunk in chunks)


def _data_type(top: Config, items: list[Item]) -> tuple[DataType, np.dtype[Any] | None]:
    """Return the data type and the dtype of stored elements. The dtype is None for objects."""
    value = top.raw("dtype")
    if value == "|O":
        # a convention of zarr-python, not a rule of the specification: the first filter encodes objects
        first = items[0].name if items else None
        if first in OBJECT_TYPES:
            return registry.data_types.coerce(OBJECT_TYPES[first]), None
        if first is None:
            raise top.error('must not be "|O" without a filter that encodes objects', "dtype", "conflict")
        Chain(registry.data_types.coerce("bytes"), None).add(items[0])  # raises an error for an unknown filter
        raise top.error(f'must not be "|O" with {show(first)}: Zarr v3 has no data type for it', "dtype", "conflict")
    if _NETCDF in top and value in ("<U1", ">U1"):
        value = "|S1"  # netCDF-C 4.8 and 4.9 write the type U1 for one-byte characters
    return parse_type(top, "dtype", value)


def _fill_value(top: Config, data_type: DataType, dtype: np.dtype[Any] | None) -> Json:
    """Return the fill value as Zarr v3 JSON."""
    order = byte_order(dtype) or "little"
    try:
        value = parse_fill_value(top.raw("fill_value", None), data_type, order)
    except MetadataError as error:
        raise error.under(top.at("fill_value"), top.context.document) from None
    return data_type.fill_value_json(value, order)


def _as_json(value: Json) -> Json:
    """Replace the literals NaN and Infinity, which are not JSON, with strings."""
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return value


def _dimension_names(top: Config, attributes: Mapping[str, Json], ndim: int) -> tuple[dict[str, Json], Json]:
    """Split attributes into user attributes and dimension names. The names are None unless every dimension has one."""
    names = attributes[_DIMENSIONS] if _DIMENSIONS in attributes else _netcdf_names(top, attributes)
    if isinstance(names, list) and len(names) == ndim and all(isinstance(name, str) for name in names):
        return {name: value for name, value in attributes.items() if name != _DIMENSIONS}, names
    return dict(attributes), None


def _netcdf_names(top: Config, attributes: Mapping[str, Json]) -> Json:
    """Return the dimension names that netCDF-C recorded. Returns None if it did not record any."""
    recorded = top.raw(_NETCDF, None) or attributes.get(_NETCDF.lower())
    if not isinstance(recorded, dict):
        return None
    paths = recorded.get("dimrefs", recorded.get("dimension_references"))  # netCDF-C reads both names
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        return None
    return [path.rpartition("/")[2] for path in paths if isinstance(path, str)]  # "/group/x" is the dimension "x"


def _check(converted: Mapping[str, Json], chain: Chain, top: Config) -> None:
    """Raise an error, with pointers into the Zarr v2 document, if members contradict each other."""

    def locate(pointer: str) -> str:
        member, _, rest = pointer.removeprefix("/").partition("/")
        index = rest.partition("/")[0]
        if member == "codecs" and index.isdigit():
            return top.pointer + chain.pointers[int(index)]
        return top.at(_ORIGINS.get(member, member))

    without_attributes = {name: value for name, value in converted.items() if name != "attributes"}
    try:
        ArrayMetadata.from_json(without_attributes, Context(document=top.context.document))
    except MetadataError as error:
        raise relocated(error, locate) from None
