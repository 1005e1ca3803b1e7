"""Hierarchies in the Zarr v3 draft, written by zarr-python 2.18: the files in tests/data/draft, as stores."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from zarrlite.stores import MemoryStore

FOLDER = Path(__file__).parent.parent / "data" / "draft"
HIERARCHIES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def values(name: str) -> dict[str, bytes]:
    """Return the keys and values of a hierarchy."""
    store = HIERARCHIES[name]["store"]
    return {k: base64.b64decode(v) if k.startswith("data/") else v.encode() for k, v in store.items()}


def memory(name: str) -> MemoryStore:
    """Return a hierarchy as a store in memory."""
    return MemoryStore(values(name))


def disk(name: str, folder: Path) -> Path:
    """Write a hierarchy into a folder, and return the folder."""
    for key, value in values(name).items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(value)
    return folder
