"""Validation: all faults of a metadata document at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from zarrlite.errors import MetadataError
from zarrlite.extensions.config import Json, escape, load_json
from zarrlite.metadata.documents import GroupMetadata, parse_node


def validate(data: bytes | bytearray | memoryview | Mapping[str, Json], *, strict: bool = True) -> list[MetadataError]:
    """Return all faults of a document and of the documents in its `consolidated_metadata`.

    Parameters
    ----------
    data : bytes, bytearray, memoryview or mapping
        The document: the bytes of a zarr.json, or parsed JSON.
    strict : bool, optional
        Whether the document must follow the specification strictly, as for `open`.

    Returns
    -------
    list of MetadataError
        The faults, each with a JSON pointer; an empty list if the document is valid.

    Examples
    --------
    >>> from zarrlite import validate
    >>> [str(fault) for fault in validate(b'{"zarr_format": 3, "node_type": "group", "x": 1}')]
    ['zarr.json#/x: is not a member of Zarr v3; it can be ignored only as an object with "must_understand": false']
    """
    try:
        metadata = parse_node(data, strict=strict)
    except MetadataError as error:
        return list(error.problems)
    problems: list[MetadataError] = []
    if isinstance(metadata, GroupMetadata):
        if strict:
            problems.extend(_old_forms(data))
        for path, content in (metadata.consolidated or {}).items():
            prefix = f"/consolidated_metadata/metadata/{escape(path)}"
            problems.extend(fault.under(prefix) for fault in validate(content, strict=strict))
    return problems


def _old_forms(data: bytes | bytearray | memoryview | Mapping[str, Json]) -> Iterator[MetadataError]:
    """Yield the faults of consolidated metadata that `open` accepts, since zarr-python has written it that way."""
    # core spec, Additional fields: "its value MUST be a JSON object with the following structure"
    content = data if isinstance(data, Mapping) else load_json(data)
    pointer = "/consolidated_metadata"
    member = content.get("consolidated_metadata", {})
    if member is None:
        yield MetadataError("must be an object, not null", pointer=pointer, kind="type")
    elif member and "must_understand" not in member:
        yield MetadataError("is required and missing", pointer=f"{pointer}/must_understand", kind="missing")
