"""zarrlite and its peers, which are other Zarr libraries, behind a common interface.

Every peer reads and writes real files. `document` is the content of a zarr.json, `part` a tuple of slices.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.required import lacking

Document = dict[str, Any]
Part = tuple[slice, ...]


class Zarrlite:
    """zarrlite, with the interface of the peers."""

    def open(self, path: Path, mode: Any) -> zarrlite.Array:
        return zarrlite.open_array(str(path), mode=mode)

    def write(self, path: Path, document: Document, values: np.ndarray, fill: Any) -> None:
        """Create an array from a document, but pass the fill value as a scalar, which zarrlite converts to JSON."""
        array = zarrlite.create_array(
            str(path),
            shape=document["shape"],
            dtype=document["data_type"],
            chunks=document["chunk_grid"]["configuration"]["chunk_shape"],
            codecs=document["codecs"],
            fill_value=fill,
            chunk_key_encoding=document["chunk_key_encoding"],
            attributes=document["attributes"],
            dimension_names=document["dimension_names"],
        )
        array[...] = values

    def update(self, path: Path, part: Part, values: np.ndarray) -> None:
        self.open(path, "r+")[part] = values

    def read(self, path: Path, part: Part | None = None) -> np.ndarray:
        array = self.open(path, "r")
        return np.asarray(array[... if part is None else part], array.dtype)

    def fill_value(self, path: Path) -> Any:
        return self.open(path, "r").fill_value

    def attributes(self, path: Path) -> dict[str, Any]:
        return dict(self.open(path, "r").attrs)


class ZarrPython:
    """zarr-python, with its own codecs."""

    def __init__(self, zarr: ModuleType, settings: dict[str, Any] | None = None) -> None:
        self.zarr = zarr
        self.settings = settings

    def configured(self) -> AbstractContextManager[Any]:
        return self.zarr.config.set(self.settings) if self.settings else nullcontext()

    def open(self, path: Path, mode: str) -> Any:
        return self.zarr.open_array(path, mode=mode)

    def create(self, path: Path, document: Document) -> None:
        """Create an array, and make zarr-python rewrite the document by setting the attributes."""
        path.mkdir()
        (path / "zarr.json").write_text(json.dumps({**document, "attributes": {}}))
        with self.configured():
            self.open(path, "r+").update_attributes(document["attributes"])

    def write(self, path: Path, document: Document, values: np.ndarray) -> None:
        self.create(path, document)
        with self.configured():
            self.open(path, "r+")[...] = values

    def update(self, path: Path, part: Part, values: np.ndarray) -> None:
        with self.configured():
            self.open(path, "r+")[part] = values

    def read(self, path: Path, part: Part | None = None) -> np.ndarray:
        with self.configured():
            array = self.open(path, "r")
            # zarr-python returns a scalar for an array without dimensions
            return np.asarray(array[... if part is None else part], array.dtype)

    def fill_value(self, path: Path) -> Any:
        return self.open(path, "r").fill_value

    def attributes(self, path: Path) -> dict[str, Any]:
        return dict(self.open(path, "r").attrs)


class TensorStore:
    """tensorstore's zarr3 driver. Structs are opened field by field, because tensorstore has no dtype for them."""

    def __init__(self, tensorstore: ModuleType) -> None:
        self.tensorstore = tensorstore

    def open(self, path: Path, **spec: Any) -> Any:
        kvstore = {"driver": "file", "path": f"{path}/", "file_io_sync": False}
        return self.tensorstore.open({"driver": "zarr3", "kvstore": kvstore, **spec}).result()

    def fields(self, path: Path) -> list[tuple[str, Any]]:
        data_type = json.loads((path / "zarr.json").read_text())["data_type"]
        names = [field["name"] for field in data_type["configuration"]["fields"]] if "name" in data_type else []
        return [(name, self.open(path, field=name)) for name in names]

    def create(self, path: Path, document: Document) -> None:
        fields = document["data_type"]["configuration"]["fields"] if "name" in document["data_type"] else []
        self.open(path, metadata=document, create=True, **({"field": fields[0]["name"]} if fields else {}))

    def write(self, path: Path, document: Document, values: np.ndarray) -> None:
        self.create(path, document)
        self.update(path, (), values)

    def update(self, path: Path, part: Part, values: np.ndarray) -> None:
        for name, array in self.fields(path):
            array[part] = values[name]
        if values.dtype.names is None:
            self.open(path)[part] = values

    def read(self, path: Path, part: Part | None = None) -> np.ndarray:
        return self._joined(path, lambda array: array[... if part is None else part].read().result())

    def fill_value(self, path: Path) -> Any:
        return self._joined(path, lambda array: array.fill_value)[()]

    def _joined(self, path: Path, get: Any) -> np.ndarray:
        fields = [(name, np.asarray(get(array))) for name, array in self.fields(path)]
        if not fields:
            return np.asarray(get(self.open(path)))
        out = np.empty(fields[0][1].shape, [(name, values.dtype) for name, values in fields])
        for name, values in fields:
            out[name] = values
        return out

    def attributes(self, path: Path) -> dict[str, Any]:
        """Read the attributes from the document, since tensorstore keeps them but does not return them."""
        return json.loads((path / "zarr.json").read_text()).get("attributes", {})


class ZarrsCore:
    """The Rust part of zarrs, for features that zarr-python lacks. Chunk keys have the form `c/0/0`."""

    def __init__(self, zarr: ModuleType, zarrs: ModuleType) -> None:
        self.store = zarr.storage.LocalStore
        self.rust = zarrs._internal

    def create(self, path: Path, document: Document) -> None:
        path.mkdir()
        (path / "zarr.json").write_text(json.dumps(document))

    def write(self, path: Path, document: Document, values: np.ndarray) -> None:
        self.create(path, document)
        self.update(path, tuple(slice(0, n) for n in values.shape), values)

    def update(self, path: Path, part: Part, values: np.ndarray) -> None:
        document = json.loads((path / "zarr.json").read_text())
        values = np.ascontiguousarray(np.broadcast_to(values, [s.stop - s.start for s in part]))
        self._bound(path, document).store_chunks_with_indices(list(self._items(document, part)), values, False)

    def read(self, path: Path, part: Part | None = None) -> np.ndarray:
        document = json.loads((path / "zarr.json").read_text())
        part = tuple(slice(0, n) for n in document["shape"]) if part is None else part
        out = np.empty([s.stop - s.start for s in part], self._dtype(document))
        self._bound(path, document).retrieve_chunks_and_apply_index(list(self._items(document, part)), out)
        return out

    def fill_value(self, path: Path) -> Any:
        """Return the fill value by reading an element of a missing chunk."""
        document = json.loads((path / "zarr.json").read_text())
        out = np.empty([1] * len(document["shape"]), self._dtype(document))
        chunk = document["chunk_grid"]["configuration"]["chunk_shape"]
        first = [slice(0, 1)] * len(chunk)
        item = self.rust.ChunkItem(key="c/none", chunk_subset=first, chunk_shape=chunk, subset=first, shape=out.shape)
        self._bound(path, document).retrieve_chunks_and_apply_index([item], out)
        return out.reshape(-1)[0]

    def attributes(self, path: Path) -> dict[str, Any]:
        return json.loads((path / "zarr.json").read_text())["attributes"]

    def _bound(self, path: Path, document: Document) -> Any:
        return self.rust.CodecPipelineImpl(json.dumps(document), self.store(path), validate_checksums=True)

    def _items(self, document: Document, part: Part) -> Iterator[Any]:
        chunk = document["chunk_grid"]["configuration"]["chunk_shape"]
        shape = [s.stop - s.start for s in part]
        touched = [range(s.start // c, -(-s.stop // c)) for s, c in zip(part, chunk, strict=True)]
        for coords in itertools.product(*touched):
            bounds = [
                (max(s.start, i * c), min(s.stop, (i + 1) * c)) for s, i, c in zip(part, coords, chunk, strict=True)
            ]
            yield self.rust.ChunkItem(
                key="/".join(["c", *map(str, coords)]),
                chunk_subset=[slice(a - i * c, b - i * c) for (a, b), i, c in zip(bounds, coords, chunk, strict=True)],
                chunk_shape=chunk,
                subset=[slice(a - s.start, b - s.start) for (a, b), s in zip(bounds, part, strict=True)],
                shape=shape,
            )

    def _dtype(self, document: Document) -> np.dtype:
        data_type = document["data_type"]
        if isinstance(data_type, str):
            return np.dtype(f"V{int(data_type[1:]) // 8}") if data_type[0] == "r" else np.dtype(data_type)
        letter = {"numpy.datetime64": "M", "numpy.timedelta64": "m"}[data_type["name"]]
        return np.dtype("{}8[{scale_factor}{unit}]".format(letter, **data_type["configuration"]))


class Zarrista:
    """The package zarrista, which contains the newest zarrs."""

    def __init__(self) -> None:
        try:
            self.zarrista, self.stores = import_module("zarrista"), import_module("zarrista.store")
        except ImportError:
            lacking("zarrista is not installed")

    def _open(self, path: Path) -> Any:
        return self.zarrista.Array.open(self.stores.FilesystemStore(str(path)), "/")

    def write(self, path: Path, document: Document, values: np.ndarray) -> None:
        path.mkdir()
        self.zarrista.Array.from_metadata(document, self.stores.FilesystemStore(str(path)), "/").store_metadata()
        self.update(path, tuple(slice(0, n) for n in values.shape), values)

    def update(self, path: Path, part: Part, values: np.ndarray) -> None:
        self._open(path).store_array_subset(part, np.ascontiguousarray(values))

    def read(self, path: Path, part: Part | None = None) -> np.ndarray:
        array = self._open(path)
        return np.asarray(array.retrieve_array_subset(part or tuple(slice(0, n) for n in array.shape)))


@pytest.fixture
def ours() -> Zarrlite:
    return Zarrlite()


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> Any:
    """Return the peer that a test is parametrized with: "zarr", "zarrs", "zarrs_core", "zarrista" or "tensorstore"."""
    if request.param == "zarrista":
        return Zarrista()
    if request.param == "tensorstore":
        return TensorStore(request.getfixturevalue("tensorstore"))
    zarr = request.getfixturevalue("zarr")
    if request.param == "zarr":
        return ZarrPython(zarr)
    zarrs = request.getfixturevalue("zarrs")
    if request.param == "zarrs_core":
        return ZarrsCore(zarr, zarrs)
    # strict: a codec that zarrs lacks raises an error, instead of falling back to zarr-python's codec
    return ZarrPython(zarr, {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True})
