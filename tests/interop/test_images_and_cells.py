"""OME-Zarr and AnnData: zarrlite reads the layouts of ome-zarr-py and anndata, and the examples in docs/ write them.

The documents are the ones that ome-zarr-py 0.18.0 and anndata 0.12.19 wrote with zarr-python 3.1.6, except that the
arrays are shorter. Neither library is needed here.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zarrlite
from tests.test_docs import blocks, run_blocks

Json = dict[str, Any]

DOCS = Path(__file__).parent.parent.parent / "docs"
SPARSE = ("X/data", "X/indices", "X/indptr")  # the only elements that anndata writes without `encoding-type`

# OME-Zarr layouts

VERSIONS = ["0.4", "0.5"]
AXES = [{"name": "z", "type": "space"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
SCALES = [[1.0, 1.0, 1.0], [1.0, 2.0, 2.0]]
TRANSLATIONS = [[0.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
DATASETS = [
    {
        "path": f"s{level}",
        "coordinateTransformations": [
            {"type": "scale", "scale": scale},
            {"type": "translation", "translation": translation},
        ],
    }
    for level, (scale, translation) in enumerate(zip(SCALES, TRANSLATIONS, strict=True))
]
PIXELS = [np.arange(96, dtype="<u2").reshape(2, 6, 8), np.arange(24, dtype="<u2").reshape(2, 3, 4)]
CHUNKS = (1, 3, 4)


def pyramid(version: str) -> dict[str, bytes]:
    """Return the keys and values of an image, as ome-zarr-py stores it."""
    multiscales = {"axes": AXES, "datasets": DATASETS, "name": "image"}
    if version == "0.4":
        store = {
            ".zgroup": dump({"zarr_format": 2}),
            ".zattrs": dump({"multiscales": [multiscales | {"version": "0.4"}]}),
        }
    else:
        attributes = {"ome": {"version": "0.5", "multiscales": [multiscales]}}
        store = {"zarr.json": dump({"attributes": attributes, "zarr_format": 3, "node_type": "group"})}
    for level, pixels in enumerate(PIXELS):
        path = f"s{level}"
        if version == "0.4":
            store |= array_of_v2(path, pixels, CHUNKS, {"id": "zstd", "level": 0}, separator="/")
        else:
            store |= array_of_v3(path, pixels, CHUNKS, dimension_names=["z", "y", "x"])
    return store


def dump(document: Json) -> bytes:
    return json.dumps(document).encode()


def split(values: np.ndarray[Any, Any], chunks: tuple[int, ...]) -> dict[tuple[int, ...], np.ndarray[Any, Any]]:
    """Return whole chunks, keyed by coordinates. Elements beyond the edge of the array are 0 or the empty string."""
    counts = [-(-length // chunk) for length, chunk in zip(values.shape, chunks, strict=True)]
    padded = np.zeros([n * chunk for n, chunk in zip(counts, chunks, strict=True)], values.dtype)
    padded[tuple(map(slice, values.shape))] = values
    return {
        index: padded[(*(slice(i * n, (i + 1) * n) for i, n in zip(index, chunks, strict=True)), ...)]
        for index in np.ndindex(*counts)
    }


def elements(chunk: np.ndarray[Any, Any]) -> bytes:
    """Return the elements of a chunk as bytes. Text is encoded with vlen-utf8."""
    if chunk.dtype.kind != "T":
        return chunk.tobytes()
    texts = [text.encode() for text in chunk.ravel().tolist()]
    return struct.pack("<I", len(texts)) + b"".join(struct.pack("<I", len(text)) + text for text in texts)


def array_of_v2(
    path: str,
    values: np.ndarray[Any, Any],
    chunks: tuple[int, ...],
    compressor: Json,
    *,
    separator: str = ".",
    attributes: Json | None = None,
) -> dict[str, bytes]:
    """Return the keys and values of an array, as zarr-python 3.1 stores it in Zarr v2."""
    text = values.dtype.kind == "T"
    document = {
        "shape": list(values.shape),
        "chunks": list(chunks),
        "dtype": "|O" if text else values.dtype.str,
        "fill_value": "" if text else values.dtype.type(0).item(),
        "order": "C",
        "filters": [{"id": "vlen-utf8"}] if text else None,
        "dimension_separator": separator,
        "compressor": compressor,
        "zarr_format": 2,
    }
    store = {f"{path}/.zarray": dump(document), f"{path}/.zattrs": dump(attributes or {})}
    codec = numcodecs.get_codec(dict(compressor))
    for index, chunk in split(values, chunks).items():
        store[f"{path}/{separator.join(map(str, index)) or '0'}"] = bytes(codec.encode(elements(chunk)))
    return store


def array_of_v3(
    path: str, values: np.ndarray[Any, Any], chunks: tuple[int, ...], attributes: Json | None = None, **others: Any
) -> dict[str, bytes]:
    """Return the keys and values of an array, as zarr-python 3.1 stores it in Zarr v3."""
    text = values.dtype.kind == "T"
    number: Json = {"name": "bytes", "configuration": {"endian": "little"}}
    if values.dtype.itemsize == 1:
        del number["configuration"]
    document = {
        "shape": list(values.shape),
        "data_type": "string" if text else values.dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "" if text else values.dtype.type(0).item(),
        "codecs": [
            {"name": "vlen-utf8", "configuration": {}} if text else number,
            {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
        ],
        "attributes": attributes or {},
        **others,
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
    store = {f"{path}/zarr.json": dump(document)}
    for index, chunk in split(values, chunks).items():
        store["/".join([path, "c", *map(str, index)])] = bytes(numcodecs.Zstd(0).encode(elements(chunk)))
    return store


# AnnData layouts


def kind(name: str, version: str, **others: Any) -> Json:
    return {**others, "encoding-type": name, "encoding-version": version}


def texts(*values: str) -> np.ndarray[Any, Any]:
    return np.array(values, np.dtypes.StringDType())


ARRAY, STRINGS = kind("array", "0.2.0"), kind("string-array", "0.2.0")
GROUPS: dict[str, Json] = {
    "": kind("anndata", "0.1.0"),
    "X": kind("csr_matrix", "0.1.0", shape=[3, 2]),
    "obs": kind("dataframe", "0.2.0", **{"column-order": ["tissue", "count"], "_index": "_index"}),
    "obs/tissue": kind("categorical", "0.2.0", ordered=False),
    "obs/count": kind("nullable-integer", "0.1.0"),
    "var": kind("dataframe", "0.2.0", **{"column-order": [], "_index": "gene_id"}),
    "layers": kind("dict", "0.1.0"),
    "uns": kind("dict", "0.1.0"),
}
ARRAYS: dict[str, tuple[np.ndarray[Any, Any], Json]] = {
    "X/data": (np.array([1.5, 2.5], "<f4"), {}),
    "X/indices": (np.array([1, 0], "<i4"), {}),
    "X/indptr": (np.array([0, 1, 1, 2], "<i4"), {}),
    "obs/_index": (texts("a", "b", "ç"), STRINGS),
    "obs/tissue/categories": (texts("liver", "skin"), STRINGS),
    "obs/tissue/codes": (np.array([1, -1, 0], "|i1"), ARRAY),
    "obs/count/values": (np.array([5, 1, 7], "<i8"), ARRAY),
    "obs/count/mask": (np.array([False, True, False]), ARRAY),
    "var/gene_id": (texts("x", "y"), STRINGS),
    "uns/title": (np.array("Zellen", np.dtypes.StringDType()), kind("string", "0.2.0")),
    "uns/total": (np.array(3, "<i8"), kind("numeric-scalar", "0.2.0")),
    "uns/nothing": (np.array(False), kind("null", "0.1.0")),
}
BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}


def cells(version: int, *, consolidated: bool) -> dict[str, bytes]:
    """Return the keys and values of an AnnData file, as anndata stores it in this version of Zarr."""
    store: dict[str, bytes] = {}
    for path, attributes in GROUPS.items():
        folder = f"{path}/" if path else ""
        if version == 2:
            store |= {f"{folder}.zgroup": dump({"zarr_format": 2}), f"{folder}.zattrs": dump(attributes)}
        else:
            store[f"{folder}zarr.json"] = dump({"attributes": attributes, "zarr_format": 3, "node_type": "group"})
    for path, (values, attributes) in ARRAYS.items():
        if version == 2:
            store |= array_of_v2(path, values, values.shape, BLOSC, attributes=attributes)
        else:
            store |= array_of_v3(path, values, values.shape, attributes)
    if not consolidated:
        return store
    empty = {"kind": "inline", "must_understand": False, "metadata": {}}
    documents = {
        key: json.loads(value) for key, value in store.items() if key.rpartition("/")[2].startswith((".z", "zarr"))
    }
    if version == 2:  # zarr-python stores empty consolidated metadata in all groups below the root, even in Zarr v2
        documents |= {
            key: document | {"consolidated_metadata": empty}
            for key, document in documents.items()
            if key.endswith("/.zgroup")
        }
        return store | {".zmetadata": dump({"metadata": documents, "zarr_consolidated_format": 1})}
    root = documents.pop("zarr.json")
    members = {key.removesuffix("/zarr.json"): document for key, document in documents.items()}
    members["layers"] |= {"consolidated_metadata": empty}
    return store | {"zarr.json": dump(root | {"consolidated_metadata": empty | {"metadata": members}})}


# reading


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pyramid_of_ome_zarr_py_is_read(version: str) -> None:
    root = zarrlite.open_group(pyramid(version), mode="r")
    assert root.attrs.get("ome", root.attrs)["multiscales"][0]["datasets"] == DATASETS
    assert sorted(root) == ["s0", "s1"]
    for level, pixels in enumerate(PIXELS):
        array: Any = root[f"s{level}"]
        np.testing.assert_array_equal(array[...], pixels)
        assert array.chunks == CHUNKS
        assert array.metadata.dimension_names == (None if version == "0.4" else ("z", "y", "x"))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_function_of_the_page_reads_a_region_of_a_pyramid_of_ome_zarr_py(version: str) -> None:
    code = blocks((DOCS / "ome-zarr.md").read_text(encoding="utf-8"))[1][1]
    namespace: dict[str, Any] = {"np": np}
    exec(code[: code.index("part =")], namespace)
    read = namespace["read"]
    root = zarrlite.open_group(pyramid(version), mode="r")
    np.testing.assert_array_equal(read(root, 1.0, y=(2, 4), x=(1, 8)), PIXELS[0][:, 2:4, 1:8])
    np.testing.assert_array_equal(read(root, 2.5, y=(2, 4), x=(4, 8)), PIXELS[1][:, 1:2, 2:4])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_function_of_the_page_adds_translations(version: str) -> None:
    code = blocks((DOCS / "ome-zarr.md").read_text(encoding="utf-8"))[1][1]
    namespace: dict[str, Any] = {"np": np}
    exec(code[: code.index("part =")], namespace)
    store = pyramid(version)
    key = ".zattrs" if version == "0.4" else "zarr.json"
    store[key] = store[key].replace(b'"translation": [0.0, 0.0, 0.0]', b'"translation": [0.0, 100.0, -3.0]')
    root = zarrlite.open_group(store, mode="r")
    np.testing.assert_array_equal(namespace["read"](root, 1.0, y=(102, 104), x=(-9, 1)), PIXELS[0][:, 2:4, 0:4])


@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.parametrize("version", [2, 3])
def test_a_file_of_anndata_is_read(version: int, consolidated: bool) -> None:
    root = zarrlite.open_group(cells(version, consolidated=consolidated), mode="r", use_consolidated=consolidated)
    nodes = dict(root.members(max_depth=None))
    assert {"", *nodes} == {*GROUPS, *ARRAYS}
    for path, attributes in GROUPS.items():
        assert (nodes[path] if path else root).attrs == attributes
    for path, (values, attributes) in ARRAYS.items():
        array: Any = nodes[path]
        assert array.attrs == attributes
        np.testing.assert_array_equal(array[...], values, strict=values.dtype.kind != "T")


# the examples in the documentation write the same layouts


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs the code on a page in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda name: run_blocks(DOCS / name)


def kind_of(array: Any) -> str:
    return "string-array" if array.dtype.kind == "T" else "array"


def test_every_element_of_the_page_about_anndata_has_its_kind(page: Any) -> None:
    page("anndata.md")
    root = zarrlite.open_group("cells.zarr", mode="r")
    nodes = dict(root.members(max_depth=None))
    assert {"X", "obs", "var"} <= set(root)  # the format requires obs and var
    for path, node in nodes.items():
        if path in SPARSE:
            continue
        expected = GROUPS[path]["encoding-type"] if isinstance(node, zarrlite.Group) else kind_of(node)
        assert node.attrs["encoding-type"] == expected, path
    assert not any(nodes[path].attrs for path in SPARSE)


def test_the_images_of_the_page_about_ome_zarr_have_the_form_of_their_version(page: Any) -> None:
    page("ome-zarr.md")
    for name in ("image.ome.zarr", "new.ome.zarr"):
        root = zarrlite.open_group(name, mode="r")
        assert set(root.attrs) == {"ome"}
        assert root.attrs["ome"]["version"] == "0.5"
        assert "version" not in root.attrs["ome"]["multiscales"][0]
        assert [array.metadata.dimension_names for array in root.array_values()] == [("c", "z", "y", "x")] * 3
    for level in range(3):
        document = json.loads(Path(f"old.ome.zarr/{level}/.zarray").read_text(encoding="utf-8"))
        assert document["dimension_separator"] == "/"  # the only one allowed since OME-Zarr 0.2
        assert Path(f"old.ome.zarr/{level}/0/0/0/0").is_file()
    attributes = json.loads(Path("old.ome.zarr/.zattrs").read_text(encoding="utf-8"))
    assert attributes["multiscales"][0]["version"] == "0.4"
    firsts = [d["coordinateTransformations"][1]["translation"][-1] for d in attributes["multiscales"][0]["datasets"]]
    np.testing.assert_allclose(firsts, [0, 0.05, 0.15])
