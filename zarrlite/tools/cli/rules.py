"""Name the rule that a faulty metadata document breaks, and the remedy."""

from __future__ import annotations

from typing import Any

from zarrlite.errors import MetadataError

CORE = "Zarr v3 core specification"
# suffixes of document names in another format -> the specification of that format
_OTHER_FORMATS = {
    (".zarray", ".zgroup", ".zattrs", ".zmetadata"): "Zarr v2 specification",
    (".array.json", ".group.json"): "Zarr v3 core specification, draft of 2022",
}
_EXTENSION_POINTS = {
    "data_type": "data type",
    "chunk_grid": "chunk grid",
    "chunk_key_encoding": "chunk key encoding",
    "codecs": "codec",
    "storage_transformers": "storage transformer",
}
_REMEDIES = {
    "json": "write strict JSON: UTF-8, no comments, no NaN, no duplicate names",
    "missing": "add it",
    "type": "use a value of the required type",
    "value": "use an allowed value",
    "conflict": "change one of the conflicting values so that they agree",
    "limit": "make it smaller; larger values are not supported",
    "unknown-member": "remove the member, or correct its name",
    "unknown-extension": "correct the name, or install a package that provides the extension (entry points zarrlite.*)",
}


def remedy(fault: MetadataError) -> str:
    """Return advice for this kind of fault. The message of the fault contains the details."""
    return _REMEDIES[fault.kind]


def rule(fault: MetadataError, document: Any) -> str:
    """Name the specification that a fault violates: that of an extension, that of another format, or the core spec."""
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in fault.pointer.split("/")[1:]]
    for ends, other in _OTHER_FORMATS.items():
        if fault.document.endswith(ends):
            return f"{other}: {tokens[0]}" if tokens else other
    if not tokens:
        return f"{CORE}, JSON documents" if fault.kind == "json" else f"{CORE}, metadata documents"
    if tokens[0] == "consolidated_metadata":
        return f"{CORE}, additional fields: consolidated_metadata"
    specification = f"{CORE}, metadata of arrays and groups: {tokens[0]}"
    value, kind = document, ""
    for i, token in enumerate(tokens):
        kind = _EXTENSION_POINTS.get(token, kind)
        value = _member(value, token)
        name = _name(value)
        is_extension = token in _EXTENSION_POINTS or (tokens[i - 1] in _EXTENSION_POINTS and token.isdigit())
        if kind and name and is_extension and fault.kind != "unknown-extension" and i < len(tokens) - 1:
            specification = f"specification of the {kind} {name}"
    return specification


def _member(value: Any, token: str) -> Any:
    """Follow one token of a JSON pointer. Returns None if it leads nowhere."""
    if isinstance(value, dict):
        return value.get(token)
    if isinstance(value, list) and token.isdigit() and int(token) < len(value):
        return value[int(token)]
    return None


def _name(value: Any) -> str | None:
    """Return the name of an extension, written as an object or as a string. Returns None for other values."""
    name = value.get("name") if isinstance(value, dict) else value
    return name if isinstance(name, str) else None
