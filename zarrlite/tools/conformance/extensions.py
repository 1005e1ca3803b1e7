"""Which extensions a document needs, and which of them an implementation does not claim.

Rules
- An extension is a pair of the member of zarr.json that it stands in and its name; nested ones count as their own.
- One that a document allows to ignore (`must_understand: false`) is not needed.
- A member of the document that the core specification does not define is an extension too: (member, its name).
- Documents here may be wrong in every way: what has no name is no extension.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from zarrlite.errors import MetadataError
from zarrlite.extensions import registry

Extension = tuple[str, str]
POINTS = ("data_type", "chunk_grid", "chunk_key_encoding", "codecs", "storage_transformers")
IGNORABLE = ("codecs", "storage_transformers")
MEMBERS = {
    *POINTS,
    *("zarr_format", "node_type", "shape", "fill_value", "attributes", "dimension_names", "consolidated_metadata"),
}
_NESTED = {"codecs": "codecs", "index_codecs": "codecs", "base_encoding": "chunk_key_encoding"}
_NESTED |= {"base-encoding": "chunk_key_encoding"}
_REGISTRIES: dict[str, registry.Registry[Any]] = {
    "data_type": registry.data_types,
    "chunk_grid": registry.chunk_grids,
    "chunk_key_encoding": registry.chunk_key_encodings,
    "codecs": registry.codecs,
    "storage_transformers": registry.storage_transformers,
}


def extensions_of(document: Any) -> set[Extension]:
    """The extensions that a document needs."""
    if not isinstance(document, dict) or document.get("node_type") not in ("array", "group"):
        return set()
    found = {("member", name) for name, value in document.items() if name not in MEMBERS and not _ignored(value)}
    if document["node_type"] == "array":
        found |= {extension for point in POINTS for extension in _walk(point, document.get(point))}
    return found


def ignorable_of(document: Any) -> set[Extension]:
    """Those that it allows to ignore although they matter: who has them still applies them."""
    if not isinstance(document, dict) or document.get("node_type") != "array":
        return set()
    lists = ((point, document.get(point)) for point in IGNORABLE)
    items = ((point, item) for point, value in lists if isinstance(value, list) for item in value if _ignored(item))
    return {extension for point, item in items for extension in _one(point, item) if known(extension)}


def missing(needed: set[Extension], capabilities: Mapping[str, Any]) -> set[Extension]:
    """Those that an implementation does not claim."""
    return {(point, name) for point, name in needed if not _claimed(point, name, capabilities.get(point, ()))}


def known(extension: Extension) -> bool:
    """Whether anybody has it: whether zarrlite does."""
    point, name = extension
    return point in _REGISTRIES and _REGISTRIES[point].find(name) is not None


def _claimed(point: str, name: str, claims: Any) -> bool:
    if name in claims or (point == "data_type" and "r*" in claims and re.fullmatch("r[0-9]+", name)):
        return True
    if point in _REGISTRIES and "://" in name:  # the draft's name for what has a short one now
        cls = _REGISTRIES[point].find(name)
        return cls is not None and cls.name in claims
    return False


def _ignored(value: Any) -> bool:
    return isinstance(value, dict) and value.get("must_understand") is False


def _walk(point: str, value: Any) -> Iterator[Extension]:
    if point in IGNORABLE and isinstance(value, list):
        for item in value:
            if not _ignored(item):
                yield from _one(point, item)
    elif point not in IGNORABLE:
        yield from _one(point, value)


def _one(point: str, value: Any) -> Iterator[Extension]:
    if isinstance(value, str):
        value = {"name": value}
    if isinstance(value, dict) and "name" not in value:
        value = _translated(point, value)
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return
    yield point, value["name"]
    configuration = value.get("configuration")
    if not isinstance(configuration, dict):
        return
    for member, inner in _NESTED.items():
        if member in configuration and inner == point:
            yield from _walk(inner, configuration[member])
    fields = configuration.get("fields") if point == "data_type" else None
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict):
            yield from _one(point, field.get("data_type"))


def _translated(point: str, value: dict[str, Any]) -> Any:
    """An object of an older form, as it would be written today."""
    for cls in _REGISTRIES[point].classes():
        try:
            today = cls.from_legacy_json(value)
        except MetadataError:
            today = None
        if today is not None:
            return today
    return value
