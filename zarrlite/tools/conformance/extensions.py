"""Find the extensions that a document requires, and those that an implementation does not claim.

Rules
- An extension is a pair: the member of zarr.json that names it, and its name. Nested extensions count separately.
- An extension with `must_understand: false` is not required.
- The ability to read Zarr v2 is claimed as an extension: ("zarr_format", "2").
- A member of the document that the core specification does not define is an extension too: ("member", its name).
- Documents may be invalid in any way; a value without a name is not an extension.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from zarrlite.errors import MetadataError
from zarrlite.extensions import registry

Extension = tuple[str, str]
ZARR_V2: Extension = ("zarr_format", "2")  # claimed by implementations that read Zarr v2
EXTENSION_POINTS = ("data_type", "chunk_grid", "chunk_key_encoding", "codecs", "storage_transformers")
IGNORABLE_POINTS = ("codecs", "storage_transformers")
CORE_MEMBERS = {
    *EXTENSION_POINTS,
    *("zarr_format", "node_type", "shape", "fill_value", "attributes", "dimension_names", "consolidated_metadata"),
}
# members of a configuration that contain extensions -> the extension point of the contained extensions
_NESTED = {
    "codecs": "codecs",
    "index_codecs": "codecs",
    "base_encoding": "chunk_key_encoding",
    "base-encoding": "chunk_key_encoding",
}
_REGISTRIES: dict[str, registry.Registry[Any]] = {
    "data_type": registry.data_types,
    "chunk_grid": registry.chunk_grids,
    "chunk_key_encoding": registry.chunk_key_encodings,
    "codecs": registry.codecs,
    "storage_transformers": registry.storage_transformers,
}


def required_extensions(document: Any) -> set[Extension]:
    """Return the extensions that a reader of the document must understand."""
    if document == {"zarr_format": 2}:  # stands for the documents of Zarr v2
        return {ZARR_V2}
    if not isinstance(document, dict) or document.get("node_type") not in ("array", "group"):
        return set()
    required = {
        ("member", name) for name, value in document.items() if name not in CORE_MEMBERS and not _is_ignorable(value)
    }
    if document["node_type"] == "array":
        required |= {extension for point in EXTENSION_POINTS for extension in _walk(point, document.get(point))}
    return required


def ignorable_extensions(document: Any) -> set[Extension]:
    """Return the codecs and storage transformers that a reader may ignore but that change the data.

    An implementation that supports such an extension still applies it.
    """
    if not isinstance(document, dict) or document.get("node_type") != "array":
        return set()
    lists = ((point, document.get(point)) for point in IGNORABLE_POINTS)
    items = [(point, item) for point, value in lists if isinstance(value, list) for item in value]
    ignorable = {extension for point, item in items if _is_ignorable(item) for extension in _extensions_in(point, item)}
    return {extension for extension in ignorable if is_known(extension)}


def unclaimed(extensions: set[Extension], capabilities: Mapping[str, Any]) -> set[Extension]:
    """Return the extensions that an implementation does not claim."""
    return {(point, name) for point, name in extensions if not _is_claimed(point, name, capabilities.get(point, ()))}


def is_known(extension: Extension) -> bool:
    """Whether zarrlite, and therefore at least one implementation, supports the extension."""
    point, name = extension
    return extension == ZARR_V2 or (point in _REGISTRIES and _REGISTRIES[point].find(name) is not None)


def _is_claimed(point: str, name: str, claims: Any) -> bool:
    if name in claims or (point == "data_type" and "r*" in claims and re.fullmatch("r[0-9]+", name)):
        return True
    if point in _REGISTRIES and "://" in name:  # the URI that the 2022 draft used; implementations claim the short name
        cls = _REGISTRIES[point].find(name)
        return cls is not None and cls.name in claims
    return False


def _is_ignorable(value: Any) -> bool:
    # core spec, must_understand: "if implementations can ignore its presence"
    return isinstance(value, dict) and value.get("must_understand") is False


def _walk(point: str, value: Any) -> Iterator[Extension]:
    """Yield the required extensions in a member: a list of them (codecs, storage transformers), or a single one."""
    if point in IGNORABLE_POINTS and isinstance(value, list):
        for item in value:
            if not _is_ignorable(item):
                yield from _extensions_in(point, item)
    elif point not in IGNORABLE_POINTS:
        yield from _extensions_in(point, value)


def _extensions_in(point: str, value: Any) -> Iterator[Extension]:
    """Yield the extension that a value names, then those nested in its configuration."""
    if isinstance(value, str):
        value = {"name": value}
    if isinstance(value, dict) and "name" not in value:
        value = _translate_old_form(point, value)
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return
    yield point, value["name"]
    configuration = value.get("configuration")
    if not isinstance(configuration, dict):
        return
    for member, nested_point in _NESTED.items():
        if member in configuration and nested_point == point:
            yield from _walk(nested_point, configuration[member])
    fields = configuration.get("fields") if point == "data_type" else None
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict):
            yield from _extensions_in(point, field.get("data_type"))


def _translate_old_form(point: str, value: dict[str, Any]) -> Any:
    """Convert an object written in an older form to the current form. Returns any other object unchanged."""
    for cls in _REGISTRIES[point].classes():
        try:
            current = cls.from_legacy_json(value)
        except MetadataError:
            current = None
        if current is not None:
            return current
    return value
