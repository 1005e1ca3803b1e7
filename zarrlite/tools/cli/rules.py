"""What stands behind a fault of a document: the rule that was broken, and what to do about it."""

from __future__ import annotations

from typing import Any

from zarrlite.errors import MetadataError

CORE = "Zarr v3 core specification"
_POINTS = {
    "data_type": "data type",
    "chunk_grid": "chunk grid",
    "chunk_key_encoding": "chunk key encoding",
    "codecs": "codec",
    "storage_transformers": "storage transformer",
}
_REMEDIES = {
    "json": "write it as strict JSON: UTF-8, no comments, no NaN, every name once",
    "missing": "add it",
    "type": "give a value of the type that is named",
    "value": "give a value that is allowed",
    "conflict": "change one of the two, so that they agree",
    "limit": "make it smaller: more than that is not handled",
    "unknown-member": "remove the member, or correct its name",
    "unknown-extension": "correct the name, or install a package that offers the extension (entry points zarrlite.*)",
}


def remedy(fault: MetadataError) -> str:
    """What to do about a fault, beside what its message says."""
    return _REMEDIES[fault.kind]


def rule(fault: MetadataError, document: Any) -> str:
    """Where the rule is written: by the innermost extension that the pointer leads into, or by the core."""
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in fault.pointer.split("/")[1:]]
    if not tokens:
        return f"{CORE}, JSON documents" if fault.kind == "json" else f"{CORE}, metadata documents"
    if tokens[0] == "consolidated_metadata":
        return "zarr-python's consolidated metadata, as the core specification allows it"
    value, kind, found = document, "", f"{CORE}, metadata of arrays and groups: {tokens[0]}"
    for i, token in enumerate(tokens):
        kind = _POINTS.get(token, kind)
        value = _member(value, token)
        name = _name(value)
        is_point = token in _POINTS or (tokens[i - 1] in _POINTS and token.isdigit())
        if kind and name and is_point and fault.kind != "unknown-extension" and i < len(tokens) - 1:
            found = f"specification of the {kind} {name}"
    return found


def _member(value: Any, token: str) -> Any:
    if isinstance(value, dict):
        return value.get(token)
    if isinstance(value, list) and token.isdigit() and int(token) < len(value):
        return value[int(token)]
    return None


def _name(value: Any) -> str | None:
    name = value.get("name") if isinstance(value, dict) else value
    return name if isinstance(name, str) else None
