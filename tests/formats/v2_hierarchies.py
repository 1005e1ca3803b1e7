"""Zarr v2 hierarchies written by zarr-python 2.18: the files in tests/data/v2, as stores."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

from zarrlite.stores import MemoryStore

FOLDER = Path(__file__).parent.parent / "data" / "v2"
HIERARCHIES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
DOCUMENTS = (".zarray", ".zgroup", ".zattrs", ".zmetadata")


def values(name: str) -> dict[str, bytes]:
    """Return the keys and values of a hierarchy."""
    store = HIERARCHIES[name]["store"]
    return {k: v.encode() if k.endswith(DOCUMENTS) else base64.b64decode(v) for k, v in store.items()}


def memory(name: str) -> MemoryStore:
    """Return a hierarchy as a store in memory."""
    return MemoryStore(values(name))


def disk(name: str, folder: Path) -> Path:
    """Write a hierarchy into a folder, and return the folder."""
    for key, value in values(name).items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(value)
    return folder


def assert_as_recorded(array: np.ndarray[Any, Any], name: str, path: str) -> None:
    """Assert that an array equals, bit for bit, the one that zarr-python read."""
    expected = HIERARCHIES[name]["arrays"][path]
    assert list(array.shape) == expected["shape"]
    if expected["dtype"] == "|O":  # zarr-python returns its default fill value 0 even for strings
        texts = [base64.b64encode(v).decode() if isinstance(v, bytes) else v for v in array.ravel().tolist()]
        assert texts == [v or "" for v in expected["data"]]
        return
    descr = expected["dtype"]
    dtype = np.dtype(descr if isinstance(descr, str) else fields(descr))
    assert array.dtype == dtype.newbyteorder("=")
    assert array.astype(dtype).tobytes() == base64.b64decode(expected["data"])


def fields(descr: Any) -> Any:
    return [(name, fields(kind) if isinstance(kind, list) else kind) for name, kind in descr]
