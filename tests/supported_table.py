"""The rows of the README's table of supported features that list extensions, generated from the registries.

Rules
- Every name in a registry is listed. Names of the extension registry and of the core specification come first.
- A name that needs an optional dependency has its extra behind it.

`python -m tests.supported_table` writes the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import zarrlite  # registers the core data types
from zarrlite.extensions.registry import REGISTRIES

README = Path(zarrlite.__file__).parents[1] / "README.md"
LABELS = {
    "data_type": "data types",
    "chunk_grid": "chunk grids",
    "chunk_key_encoding": "chunk key encodings",
    "codec": "codecs",
    "storage_transformer": "storage transformers",
}
# zarr-extensions, main, commit 4da7b37 of July 2026
REGISTERED_CODECS = (
    *("bitround", "blosc", "bytes", "cast_value", "conditional", "crc32c", "gzip", "n5_default", "packbits", "reshape"),
    *("scale_offset", "sharding_indexed", "transpose", "vlen-bytes", "vlen-utf8", "zfp", "zstd"),
)
PROPOSED = {
    "codec": ("offset", "pad"),
    "chunk_key_encoding": ("suffix",),
    "storage_transformer": ("concat-parts", "sharding"),
}
NOTES = {
    "chunk_key_encoding": "each with `/` and `.`",
    "storage_transformer": "stacked in any order",
    "codec": "shards are nested, with their index at the start or the end, and any codecs around them",
    "data_type": "zarr-python 3.1 reads only the older form of `struct`: pass it as JSON, "
    '`dtype={"name": "structured", ...}`',
}


def names(registry: Any) -> list[str]:
    """Return the names of a registry, without URIs."""
    registry.classes()  # imports all modules
    return [name for name in registry.names() if "://" not in name]


def shown(registry: Any, chosen: Iterable[str], prefix: str = "") -> str:
    """Return names as text, with the extras that they need."""
    items = []
    for name in chosen:
        cls = registry.find(name)
        text = "`r<bits>`" if cls.pattern else f"`{name.removeprefix(prefix)}`"
        items.append(text if cls.extra is None else f"{text} (extra {cls.extra})")
    return ", ".join(items)


def row(kind: str) -> str:
    """Return the row of one extension point."""
    registry = REGISTRIES[kind]
    proposed = PROPOSED.get(kind, ())
    of_numcodecs = [name for name in names(registry) if name.startswith("numcodecs.")]
    others = [name for name in names(registry) if name not in (*proposed, *of_numcodecs)]
    parts = [shown(registry, others)] if others else []
    if of_numcodecs:
        parts.append(f"as `numcodecs.`: {shown(registry, of_numcodecs, 'numcodecs.')}")
    if proposed:
        parts.append(f"proposed: {shown(registry, proposed)}")
    if kind in NOTES:
        parts.append(NOTES[kind])
    return f"| {LABELS[kind]} | {'; '.join(parts)} |"


def page(text: str) -> str:
    """Return the README with current rows."""
    for kind, label in LABELS.items():
        current = row(kind)
        text, count = re.subn(rf"^\| {label} \| .*\|$", lambda _, new=current: new, text, flags=re.MULTILINE)
        assert count == 1, label
    return text


if __name__ == "__main__":
    README.write_text(page(README.read_text("utf-8")), "utf-8")
