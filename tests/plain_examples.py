"""All examples from the five proposals as one hierarchy, with the elements that peers should read from each."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

import zarrlite

FIXTURES = Path(__file__).parent.parent / "spec_fixtures" / "proposals"
PROPOSALS = ("concat-parts", "suffix", "sharding", "offset", "pad")
MOST = 70  # maximum number of elements to read along a dimension


class Example:
    """An array: its path in the hierarchy, and its first elements."""

    def __init__(self, path: str, values: np.ndarray[Any, Any]) -> None:
        self.path = path
        self.values = values

    @property
    def part(self) -> tuple[slice, ...]:
        return tuple(slice(0, n) for n in self.values.shape)


def write(folder: Path) -> list[Example]:
    """Write the hierarchy into a folder."""
    zarrlite.create_group(folder)
    examples = []
    for proposal in PROPOSALS:
        zarrlite.create_group(folder, path=proposal)
        for file in sorted((FIXTURES / proposal).glob("*.json")):
            for case in json.loads(file.read_text(encoding="utf-8"))["cases"]:
                path = f"{proposal}/{file.stem}-{case['id'].rpartition('/')[2]}"
                example = None
                if case["kind"] in ("array", "reads"):
                    example = _stored(folder, path, case)
                elif case["kind"] == "metadata" and file.stem == "examples":
                    example = _written(folder, path, case)
                if example is not None:
                    examples.append(example)
    return examples


def _stored(folder: Path, path: str, case: dict[str, Any]) -> Example | None:
    """Store an array whose chunks are in a fixture. Returns None if its elements are not numbers."""
    for key, document in case["documents"].items():
        _put(folder / path / key, json.dumps(document).encode())
    for key, value in case["values"].items():
        _put(folder / path / key, base64.b64decode(value))
    inside = "/".join(filter(None, (path, case.get("path", ""))))
    for parent in Path(inside).parents if inside != path else ():
        if not (folder / parent / "zarr.json").exists():
            _put(folder / parent / "zarr.json", b'{"zarr_format": 3, "node_type": "group"}')
    array = zarrlite.open_array(folder, path=inside, mode="r")
    if array.dtype.kind not in "biuf":
        return None
    return Example(inside, np.asarray(array[tuple(slice(0, min(n, MOST)) for n in array.shape)]))


def _written(folder: Path, path: str, case: dict[str, Any]) -> Example | None:
    """Store the document of an example, and write elements. Returns None if even lenient mode refuses the example."""
    verdict = case if case.get("accept") else case.get("lenient", {})
    document = verdict.get("canonical", case.get("document"))
    if not verdict.get("accept") or not isinstance(document, dict):
        return None
    _put(folder / path / "zarr.json", json.dumps(document).encode())
    array = zarrlite.open_array(folder, path=path, mode="r+")
    shape = tuple(min(n, MOST) for n in array.shape)
    values = (np.arange(np.prod(shape, dtype=int)) % 251).astype(array.dtype).reshape(shape)
    array[tuple(slice(0, n) for n in shape)] = values
    return Example(path, values)


def _put(file: Path, value: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(value)
