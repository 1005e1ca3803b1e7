"""Validation of metadata documents: all faults in a document are reported together."""

from __future__ import annotations

from collections.abc import Mapping

from zarrlite.errors import ArgumentError, MetadataError
from zarrlite.extensions.config import Context, Json, escape, load_json, non_finite, pointer_of
from zarrlite.metadata.documents import Metadata, parse_content, parse_node


def validate(
    data: str | bytes | bytearray | memoryview | Mapping[str, Json], *, strict: bool = True
) -> list[MetadataError]:
    """Return all faults in a document and in the documents in its `consolidated_metadata`.

    Parameters
    ----------
    data : str, bytes, bytearray, memoryview or mapping
        The document: the text or the bytes of a zarr.json, or parsed JSON.
    strict : bool, optional
        Whether the document must follow the specification strictly, as for `open`.

    Returns
    -------
    list of MetadataError
        The faults, each with a JSON pointer; an empty list if the document is valid.

    Raises
    ------
    ArgumentError
        If `data` is of any other type.

    Examples
    --------
    >>> from zarrlite import validate
    >>> [str(fault) for fault in validate(b'{"zarr_format": 3, "node_type": "group", "x": 1}')]
    ['zarr.json#/x: is not a known member; unknown members must be objects with "must_understand": false']
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")  # lone surrogates are refused below
    if not isinstance(data, (bytes, bytearray, memoryview, Mapping)):
        raise ArgumentError(f"a document must be text, bytes or a mapping, not {data!r}; read the file first")
    try:
        content = data if isinstance(data, Mapping) else load_json(data)
        metadata, faults = _parse(content, strict)
    except MetadataError as error:
        return list(error.problems)
    faults += [
        # RFC 8259, section 6: "Numeric values that cannot be represented in the grammar" are not permitted
        MetadataError(f'{text} is not JSON; write it as text: "{text}"', pointer=pointer_of(names), kind="json")
        for names, text in non_finite({"attributes": metadata.attributes})
        if strict
    ]
    for path, document in (getattr(metadata, "consolidated", None) or {}).items():
        prefix = f"/consolidated_metadata/metadata/{escape(path)}"
        faults.extend(fault.under(prefix) for fault in validate(document, strict=strict))
    return faults


def _parse(content: Mapping[str, Json], strict: bool) -> tuple[Metadata, list[MetadataError]]:
    """Return the metadata and, in strict mode, the faults that `open` tolerates because the document is unambiguous."""
    if not strict:
        return parse_node(content, strict=False), []
    context = Context()
    try:
        return parse_content(content, context), context.tolerated
    except MetadataError as error:
        problems = (*error.problems, *context.tolerated)
        raise MetadataError(error.message, pointer=error.pointer, kind=error.kind, problems=problems) from None
