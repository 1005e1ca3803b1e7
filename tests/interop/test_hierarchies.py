"""Groups, attributes, consolidated metadata and resized arrays are exchanged between zarrlite and other libraries.

tensorstore and zarrs do not support groups. Here, the other libraries write with their own functions and defaults.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import zarrlite

# zarr-python warns about features without a specification
pytestmark = [
    pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification"),
    pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part"),
]

ATTRIBUTES = {"title": "zwölf 🦓", "list": [1, 2.5, None, True, {"deep": []}], "": "", "big": 2**63, "tiny": 5e-324}
DATA = np.arange(35, dtype="i4").reshape(5, 7)


def build(library: Any, root: str) -> None:
    """Create a hierarchy of groups and arrays with calls that both libraries support."""
    group = library.create_group(root, attributes=ATTRIBUTES)
    group.create_array("plain", data=DATA)
    inner = group.create_group("a").create_group("b c")
    inner.attrs["x"] = {"y": 1}
    array = inner.create_array(
        "ü", shape=(5, 7), chunks=(2, 3), shards=(4, 6), dtype="float32", fill_value=-1.5, dimension_names=["t", None]
    )
    array[1:4, 2:] = 7
    array.attrs.update(ATTRIBUTES)
    group.create_group("empty")
    strings = group.create_array("strings", shape=(3,), chunks=(2,), dtype=str, fill_value="none")
    strings[1] = "🦓"


def snapshot(group: Any) -> dict[str, Any]:
    """Return the contents of a hierarchy, opened with either library."""
    content: dict[str, Any] = {"": dict(group.attrs)}
    for path, node in group.members(max_depth=None):
        content[path] = dict(node.attrs)
        if hasattr(node, "shape"):
            properties = (node.shape, node.dtype.name, node.chunks, node.shards, node.metadata.dimension_names)
            content[path] |= {" array": (*properties, node.fill_value, node[...].tolist())}
    return content


def expected() -> dict[str, Any]:
    values = np.full((5, 7), -1.5, "f4")
    values[1:4, 2:] = 7
    inner = ((5, 7), "float32", (2, 3), (4, 6), ("t", None), -1.5, values.tolist())
    strings = ((3,), "StringDType128", (2,), None, None, "none", ["none", "🦓", "none"])
    return {
        "": ATTRIBUTES,
        "plain": {" array": ((5, 7), "int32", (5, 7), None, None, 0, DATA.tolist())},
        "a": {},
        "a/b c": {"x": {"y": 1}},
        "a/b c/ü": ATTRIBUTES | {" array": inner},
        "empty": {},
        "strings": {" array": strings},
    }


@pytest.mark.parametrize("consolidated", [False, True])
def test_zarr_python_reads_a_hierarchy_of_zarrlite(consolidated: bool, zarr: ModuleType, tmp_path: Path) -> None:
    build(zarrlite, str(tmp_path / "g"))
    if consolidated:
        zarrlite.consolidate_metadata(str(tmp_path / "g"))
    group = zarr.open_group(tmp_path / "g", mode="r", use_consolidated=consolidated)
    assert (group.metadata.consolidated_metadata is not None) == consolidated
    assert snapshot(group) == expected()
    assert sorted(group["a/b c"].array_keys()) == ["ü"]


@pytest.mark.parametrize("consolidated", [False, True])
def test_zarrlite_reads_a_hierarchy_of_zarr_python(consolidated: bool, zarr: ModuleType, tmp_path: Path) -> None:
    build(zarr, str(tmp_path / "g"))
    if consolidated:
        zarr.consolidate_metadata(tmp_path / "g")
    group = zarrlite.open_group(str(tmp_path / "g"), mode="r", use_consolidated=consolidated)
    assert (group.metadata.consolidated is not None) == consolidated
    assert snapshot(group) == expected()
    assert zarrlite.open(str(tmp_path / "g"), path="a/b c/ü", mode="r").attrs["title"] == "zwölf 🦓"


def test_both_libraries_open_a_hierarchy_from_consolidated_metadata_alone(zarr: ModuleType, tmp_path: Path) -> None:
    for name, library in (("ours", zarrlite), ("theirs", zarr)):
        build(library, str(tmp_path / name))
        library.consolidate_metadata(str(tmp_path / name))
        for document in (tmp_path / name).glob("*/**/zarr.json"):
            document.unlink()
    assert snapshot(zarr.open_group(tmp_path / "ours", mode="r", use_consolidated=True)) == expected()
    assert snapshot(zarrlite.open_group(str(tmp_path / "theirs"), mode="r", use_consolidated=True)) == expected()


def test_metadata_can_be_consolidated_again_by_the_other_library(zarr: ModuleType, tmp_path: Path) -> None:
    build(zarrlite, str(tmp_path / "g"))
    zarrlite.consolidate_metadata(str(tmp_path / "g"))
    zarr.open_group(tmp_path / "g", mode="r+").create_group("late", attributes={"by": "zarr"})
    zarr.consolidate_metadata(tmp_path / "g")
    late = {"late": {"by": "zarr"}}
    assert snapshot(zarrlite.open_group(str(tmp_path / "g"), mode="r", use_consolidated=True)) == expected() | late
    zarrlite.open_group(str(tmp_path / "g"), mode="r+").create_group("later")
    zarrlite.consolidate_metadata(str(tmp_path / "g"))
    group = zarr.open_group(tmp_path / "g", mode="r", use_consolidated=True)
    assert snapshot(group) == expected() | late | {"later": {}}


def test_consolidated_metadata_of_null_means_none(zarr: ModuleType, tmp_path: Path) -> None:
    document = {"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": None}
    (tmp_path / "zarr.json").write_text(json.dumps(document))
    assert zarr.open_group(tmp_path, mode="r", use_consolidated=False).metadata.consolidated_metadata is None
    assert zarrlite.open_group(str(tmp_path), mode="r").metadata.consolidated is None


@pytest.mark.parametrize(("first", "second"), [("ours", "theirs"), ("theirs", "ours")])
def test_attributes_can_be_changed_by_the_other_library(
    first: str, second: str, zarr: ModuleType, tmp_path: Path
) -> None:
    libraries: dict[str, Any] = {"ours": zarrlite, "theirs": zarr}
    libraries[first].create_array(str(tmp_path / "a"), data=DATA, attributes=ATTRIBUTES)
    attributes = libraries[second].open_array(str(tmp_path / "a"), mode="r+").attrs
    attributes["new"] = [1]
    del attributes["list"]
    remaining = {name: value for name, value in ATTRIBUTES.items() if name != "list"} | {"new": [1]}
    for library in libraries.values():
        array = library.open_array(str(tmp_path / "a"), mode="r")
        assert dict(array.attrs) == remaining
        assert (array[...] == DATA).all()


SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "uncompressed": {"compressors": None},
    "chunks": {"chunks": (2, 3)},
    "shards": {"chunks": (2, 3), "shards": (4, 6)},
    "keys": {"chunks": (2, 3), "chunk_key_encoding": {"name": "v2", "separator": "/"}},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f8", "c16", "U5", "S5", "M8[s]", "m8[us]", "T"])
def test_the_same_keywords_create_equivalent_arrays(
    dtype: str, settings: dict[str, Any], zarr: ModuleType, tmp_path: Path
) -> None:
    """Each library reads the array that the other one created."""
    data = (DATA % 2).astype("i8").astype(np.dtypes.StringDType() if dtype == "T" else dtype)
    if "chunk_key_encoding" in settings:
        keys = {"name": "v2", "configuration": {"separator": "/"}}
        zarrlite.create_array(str(tmp_path / "ours"), data=data, **settings | {"chunk_key_encoding": keys})
    else:
        zarrlite.create_array(str(tmp_path / "ours"), data=data, **settings)
    zarr.create_array(tmp_path / "theirs", data=data, **settings)
    for array in (
        zarr.open_array(tmp_path / "ours", mode="r"),
        zarrlite.open_array(str(tmp_path / "theirs"), mode="r"),
    ):
        assert array.dtype == data.dtype
        assert array[...].tolist() == data.tolist()
        assert array[1:4, ::2].tolist() == data[1:4, ::2].tolist()


@pytest.mark.parametrize("shape", [(9, 8), (3, 2), (1, 20), (0, 7)])
@pytest.mark.parametrize("shards", [None, (4, 6)])
def test_an_array_can_be_resized_by_the_other_library(
    shape: Any, shards: Any, zarr: ModuleType, tmp_path: Path
) -> None:
    results = {}
    for first, second in ((zarrlite, zarr), (zarr, zarrlite)):
        root = str(tmp_path / first.__name__)
        first.create_array(root, shape=DATA.shape, chunks=(2, 3), shards=shards, dtype="i4", fill_value=-1)[...] = DATA
        second.open_array(root, mode="r+").resize(shape)
        resized = first.open_array(root, mode="r")
        assert resized.shape == shape
        results[first.__name__] = resized[...]
    expected_values = np.full(shape, -1, "i4")
    rows, columns = min(5, shape[0]), min(7, shape[1])
    expected_values[:rows, :columns] = DATA[:rows, :columns]
    for result in results.values():
        assert result.tobytes() == expected_values.tobytes()


def test_tensorstore_resizes_an_array_and_reads_its_dimension_names(tensorstore: ModuleType, tmp_path: Path) -> None:
    names = ["t", None]
    zarrlite.create_array(str(tmp_path / "a"), data=DATA, chunks=(2, 3), fill_value=-1, dimension_names=names)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path / 'a'}/"}}
    store = tensorstore.open(spec).result()
    assert store.domain.labels == ("t", "")
    store.resize(exclusive_max=[6, 4]).result()
    array = zarrlite.open_array(str(tmp_path / "a"), mode="r")
    assert (array.shape, array.metadata.dimension_names) == ((6, 4), ("t", None))
    assert array[...].tolist() == [*DATA[:, :4].tolist(), [-1] * 4]


PEERS = ("zarr", "zarrs", "tensorstore")
FLOATS = [(peer, dtype) for peer in PEERS for dtype in ("float16", "float32", "float64")]
COMPLEX = [(peer, "complex128") for peer in PEERS]
zeros = pytest.mark.parametrize(("value", "fill"), [(-0.0, 0.0), (0.0, -0.0)])


@pytest.mark.parametrize(("peer", "dtype"), FLOATS + COMPLEX, indirect=["peer"])
@zeros
def test_zarrlite_stores_a_chunk_of_zeros_with_the_other_sign_than_the_fill_value(
    dtype: str, value: float, fill: float, peer: Any, tmp_path: Path
) -> None:
    data = np.full(4, value, dtype)
    zarrlite.create_array(str(tmp_path / "a"), data=data, fill_value=np.array(fill, dtype)[()])
    assert peer.read(tmp_path / "a").tobytes() == data.tobytes()


# zarr-python treats complex zeros with different signs as equal, and omits the chunk
@pytest.mark.parametrize(("peer", "dtype"), FLOATS + COMPLEX[1:], indirect=["peer"])
@zeros
def test_zarrlite_reads_a_chunk_of_zeros_with_the_other_sign_than_the_fill_value(
    dtype: str, value: float, fill: float, peer: Any, ours: Any, tmp_path: Path
) -> None:
    data = np.full(4, value, dtype)
    zarrlite.create_array(str(tmp_path / "a"), shape=4, dtype=dtype, fill_value=np.array(fill, dtype)[()])
    peer.update(tmp_path / "a", (slice(0, 4),), data)
    assert ours.read(tmp_path / "a").tobytes() == data.tobytes()
