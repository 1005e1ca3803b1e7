"""The page of supported extensions, `docs/supported.md`, generated from the registries.

Rules
- Every class in a registry has a row, with all of its names and the extra that it needs.
- Names from the core specification and the extension registry come first, then those from numcodecs, then proposals.

`python -m tests.supported_table` writes the page.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zarrlite  # registers the core data types
from zarrlite.extensions.registry import REGISTRIES

PAGE = Path(zarrlite.__file__).parents[1] / "docs/supported.md"
LABELS = {
    "data_type": "Data types",
    "chunk_grid": "Chunk grids",
    "chunk_key_encoding": "Chunk key encodings",
    "codec": "Codecs",
    "storage_transformer": "Storage transformers",
}
# the codecs in zarr-extensions, branch main, commit 4da7b37 (July 2026)
REGISTERED_CODECS = (
    *("bitround", "blosc", "bytes", "cast_value", "conditional", "crc32c", "gzip", "n5_default", "packbits", "reshape"),
    *("scale_offset", "sharding_indexed", "transpose", "vlen-bytes", "vlen-utf8", "zfp", "zstd"),
)
PROPOSED = {
    "codec": {"offset": "pad.md", "pad": "pad.md"},
    "chunk_key_encoding": {"suffix": "suffix.md", "template": "chunks-and-keys.md", "fanout": "chunks-and-keys.md"},
    "storage_transformer": {"concat-parts": "concat-parts.md", "sharding": "sharding.md"},
}
NOTES = {
    "chunk_key_encoding": "`default` and `v2` accept `/` or `.` as the separator.",
    "storage_transformer": "They can be stacked in any order.",
    "codec": "Shards can be nested, have their index at the start or the end, and be combined with all other codecs.",
    "data_type": """\
zarr-python 3.1 reads only the older form of `struct`; pass `{"name": "structured", ...}` as JSON if it must read your
data. Types that ml_dtypes adds to numpy need the extra `ml`. `complex_float4_*`, `complex_float6_*` and
`complex_float8_*` are refused, because numpy has no such numbers.""",
}
INTRODUCTION = """\
# Supported extensions

This page is generated from the registries of the library. If an extension needs an *extra*, the last column names it;
install it as in `pip install 'zarrlite[numcodecs]'`. *Proposed* extensions are not registered; other libraries may not
read them. [Contributing](../CONTRIBUTING.md#add-an-extension) shows how to add your own.
"""


def names(registry: Any) -> list[str]:
    """Return the names in a registry, except URIs, in the order of the page."""
    registry.classes()  # imports all modules
    proposed = PROPOSED.get(registry.kind, {})
    return sorted(
        (name for name in registry.names() if "://" not in name),
        key=lambda name: (name in proposed, name.startswith(("numcodecs.", "zarrlite.")), name),
    )


def rows(registry: Any) -> Iterator[str]:
    """Yield the table rows of an extension point."""
    proposed = PROPOSED.get(registry.kind, {})
    classes: dict[Any, list[str]] = {}
    for name in names(registry):
        classes.setdefault(registry.find(name), []).append(name)
    for cls, found in classes.items():
        ordered = [name for name in (cls.name, *cls.aliases) if name in found] or found
        shown = ["r&lt;bits&gt;" if cls.pattern else f"`{name}`" for name in ordered]
        notes = [f"[proposed]({proposed[name]})" for name in ordered if name in proposed]
        notes += [] if cls.extra is None else [f"extra `{cls.extra}`"]
        summary = (inspect.getdoc(cls) or "").partition("\n")[0].partition(" Experimental:")[0]
        yield f"| {', '.join(shown)} | {summary} | {', '.join(notes)} |"


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for kind, label in LABELS.items():
        note = f"\n{NOTES[kind]}\n" if kind in NOTES else ""
        parts.append("\n".join([f"## {label}\n{note}", "| name | | |", "|---|---|---|", *rows(REGISTRIES[kind]), ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
