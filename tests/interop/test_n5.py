"""N5 datasets are exchanged between zarrlite, tensorstore and z5py.

tensorstore pads the blocks at the edge of an array, whereas z5py truncates them. z5py reverses the axes of N5, so its
arrays are transposed here; tensorstore and zarrlite keep the order of N5.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.required import lacking
from zarrlite import n5

SHAPE, CHUNKS = (5, 7, 4), (3, 2, 4)
TYPES = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64"]
COMPRESSIONS: list[dict[str, Any]] = [
    {"type": "raw"},
    {"type": "gzip", "level": 5},
    {"type": "zstd", "level": 3},
    {"type": "bzip2", "blockSize": 9},
    {"type": "xz", "preset": 6},
    *(
        {"type": "blosc", "cname": cname, "clevel": 5, "shuffle": shuffle}
        for cname in ("lz4", "lz4hc", "blosclz", "zlib", "zstd")
        for shuffle in (0, 1, 2)
    ),
]


class TensorStore:
    """tensorstore's n5 driver."""

    def __init__(self, tensorstore: ModuleType) -> None:
        self.tensorstore = tensorstore

    def open(self, root: Path, path: str, **spec: Any) -> Any:
        kvstore = {"driver": "file", "path": f"{root}/{path}/", "file_io_sync": False}
        return self.tensorstore.open({"driver": "n5", "kvstore": kvstore, **spec}).result()

    def write(self, root: Path, path: str, values: np.ndarray, chunks: tuple[int, ...], compression: Any) -> None:
        metadata = {
            "dimensions": values.shape,
            "blockSize": chunks,
            "dataType": values.dtype.name,
            "compression": compression,
        }
        self.open(root, path, metadata=metadata, create=True)[...] = values

    def read(self, root: Path, path: str) -> np.ndarray:
        return self.open(root, path).read().result()


class Z5Py:
    """z5py, with its axes reversed."""

    def __init__(self, z5py: ModuleType) -> None:
        self.z5py = z5py

    def write(self, root: Path, path: str, values: np.ndarray, chunks: tuple[int, ...], compression: Any) -> None:
        names = {"cname": "codec", "blockSize": "level", "preset": "level"}
        options = {names.get(name, name): value for name, value in compression.items() if name != "type"}
        self.z5py.File(str(root), mode="a", use_zarr_format=False).create_dataset(
            path,
            data=np.ascontiguousarray(values.T),
            chunks=chunks[::-1],
            compression=compression["type"],
            **options,
        )

    def read(self, root: Path, path: str) -> np.ndarray:
        return self.z5py.File(str(root), mode="r", use_zarr_format=False)[path][...].T


@pytest.fixture(params=["tensorstore", "z5py"])
def peer(request: pytest.FixtureRequest) -> Any:
    return {"tensorstore": TensorStore, "z5py": Z5Py}[request.param](request.getfixturevalue(request.param))


def values_of(dtype: str) -> np.ndarray:
    """Return an array of different elements, including the limits of the type and a block of zeros."""
    info = np.finfo(dtype) if dtype.startswith("float") else np.iinfo(dtype)
    values = np.arange(1, 1 + np.prod(SHAPE)).reshape(SHAPE).astype(dtype)
    values[0, 0, 0], values[4, 6, 3] = info.min, info.max
    values[:3, 2:4] = 0
    return values


CASES = [(dtype, {"type": "gzip", "level": 5}) for dtype in TYPES] + [("uint16", c) for c in COMPRESSIONS]


@pytest.mark.parametrize(("dtype", "compression"), CASES)
def test_zarrlite_reads_a_dataset_of_a_peer(peer: Any, tmp_path: Path, dtype: str, compression: Any) -> None:
    values, root = values_of(dtype), tmp_path / "a.n5"
    peer.write(root, "group/data", values, CHUNKS, compression)
    array = n5.open(root, path="group/data")
    assert (array.shape, array.chunks, array.dtype.name) == (SHAPE, CHUNKS, dtype)
    assert array[...].tobytes() == values.tobytes()
    assert array[1::2, -1, 1:3].tolist() == values[1::2, -1, 1:3].tolist()
    assert "zarr.json" not in {path.name for path in root.rglob("*")}


@pytest.mark.parametrize(("dtype", "compression"), CASES)
def test_a_peer_reads_a_dataset_of_zarrlite(peer: Any, tmp_path: Path, dtype: str, compression: Any) -> None:
    values, root = values_of(dtype), tmp_path / "a.n5"
    array = n5.create_array(
        root,
        path="group/data",
        shape=SHAPE,
        dtype=dtype,
        chunks=CHUNKS,
        compression=compression,
        attributes={"unit": "nm"},
    )
    array[...] = values
    array[4, 5:, 1] = 3
    values[4, 5:, 1] = 3
    assert peer.read(root, "group/data").tobytes() == np.ascontiguousarray(values).tobytes()


def test_tensorstore_pads_blocks_at_the_edge_and_z5py_truncates_them(
    tensorstore: ModuleType, z5py: ModuleType, tmp_path: Path
) -> None:
    values = np.arange(1, 36, dtype="uint8").reshape(5, 7)
    headers = {}
    for peer in (TensorStore(tensorstore), Z5Py(z5py)):
        root = tmp_path / type(peer).__name__
        peer.write(root, "data", values, (3, 2), {"type": "raw"})
        headers[root.name] = (root / "data/1/3").read_bytes()[:12]
    assert headers == {"TensorStore": n5.n5_header((3, 2)), "Z5Py": n5.n5_header((2, 1))}


def test_truncated_blocks_of_z5py_can_be_updated(z5py: ModuleType, tmp_path: Path) -> None:
    values, root, peer = values_of("int32"), tmp_path / "a.n5", Z5Py(z5py)
    peer.write(root, "data", values, CHUNKS, {"type": "zstd", "level": 3})
    written = n5.write_documents(root)
    zarrlite.open(root, mode="r+", path="data")[3:, 5:, 2] = -1
    values[3:, 5:, 2] = -1
    assert n5.open(root, path="data")[...].tobytes() == values.tobytes()
    for key in written:
        (root / key).unlink()  # z5py refuses a dataset that also has a zarr.json
    assert peer.read(root, "data").tobytes() == np.ascontiguousarray(values).tobytes()


def test_tensorstore_reads_a_dataset_with_a_zarr_json_and_z5py_refuses_it(
    tensorstore: ModuleType, z5py: ModuleType, tmp_path: Path
) -> None:
    values, root = values_of("uint8"), tmp_path / "a.n5"
    n5.create_array(root, path="data", shape=SHAPE, dtype="uint8", chunks=CHUNKS)[...] = values
    assert Z5Py(z5py).read(root, "data").tolist() == values.tolist()
    n5.write_documents(root)
    assert TensorStore(tensorstore).read(root, "data").tolist() == values.tolist()
    with pytest.raises(RuntimeError, match="Zarr and N5 specification are not both supported"):
        Z5Py(z5py).read(root, "data")


def test_a_container_of_z5py_is_opened_as_a_hierarchy(z5py: ModuleType, tmp_path: Path) -> None:
    with z5py.File(str(tmp_path / "a.n5"), mode="w", use_zarr_format=False) as file:
        file.attrs["title"] = "all"
        file.create_group("empty")
        file.create_group("full").create_dataset("data", data=np.arange(6, dtype="uint8"), chunks=(4,))
        file["full/data"].attrs["unit"] = "nm"
    root = n5.open(tmp_path / "a.n5")
    assert str(root.tree()) == "/\n├── empty\n└── full\n    └── data (6,) uint8"
    assert (dict(root.attrs), dict(root["full/data"].attrs)) == ({"title": "all"}, {"unit": "nm"})
    assert root["full/data"][...].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("compression", [{"type": "gzip", "useZlib": True}, {"type": "bzip2"}, {"type": "xz"}])
def test_compressions_of_tensorstore_with_defaults_are_read(
    tensorstore: ModuleType, tmp_path: Path, compression: Any
) -> None:
    values = values_of("uint8")
    TensorStore(tensorstore).write(tmp_path, "data", values, CHUNKS, compression)
    assert n5.open(tmp_path, path="data")[...].tolist() == values.tolist()


def test_n5_readers_refuse_the_header_of_zeros_in_the_example_of_pad(tensorstore: ModuleType, tmp_path: Path) -> None:
    """Example 3 of the proposal `pad` lacks the `padding` that its text describes; N5 readers need it."""
    values = np.arange(24, dtype="uint16").reshape(4, 6)
    attributes = {"dimensions": [4, 6], "blockSize": [4, 6], "dataType": "uint16", "compression": {"type": "zstd"}}
    document = n5.array_document(attributes, codec="pad")
    for name, padding in (("with", document["codecs"][3]["configuration"]["padding"]), ("without", None)):
        root = tmp_path / name
        document["codecs"][3]["configuration"] = {"location": "start", "nbytes": 12} | (
            {"padding": padding} if padding else {}
        )
        root.mkdir()
        (root / "zarr.json").write_text(json.dumps(document))
        (root / "attributes.json").write_text(json.dumps(attributes))
        zarrlite.open(root, mode="r+")[...] = values
    reader = TensorStore(tensorstore)
    assert reader.read(tmp_path, "with").tolist() == values.tolist()
    with pytest.raises(ValueError, match="Received chunk with 0 dimensions but expected 2"):
        reader.read(tmp_path, "without")


def test_zarrlite_reads_the_lz4_of_z5py(z5py: ModuleType, tmp_path: Path) -> None:
    values, root = values_of("uint16"), tmp_path / "a.n5"
    Z5Py(z5py).write(root, "data", values, CHUNKS, {"type": "lz4"})
    assert n5.open(root, path="data")[...].tobytes() == values.tobytes()


LZ4_JAVA = Path("/usr/share/java/lz4-java.jar")  # in Debian's package liblz4-java


def run_java(*arguments: str, data: bytes) -> bytes:
    java = shutil.which("java")
    if java is None or not LZ4_JAVA.exists():
        lacking("java or lz4-java is not installed")
    program = Path(__file__).parent / "Lz4Blocks.java"
    return subprocess.run(
        [java, "-cp", str(LZ4_JAVA), str(program), *arguments], input=data, stdout=-1, check=True
    ).stdout


@pytest.mark.parametrize("block_size", [64, 65536])
def test_lz4_blocks_equal_those_of_java(block_size: int) -> None:
    value = np.random.default_rng(1).integers(0, 5, 10**5, "u1").tobytes() + np.random.default_rng(2).bytes(5000)
    stored = run_java("c", str(block_size), data=value)
    codec = zarrlite.codecs.N5Lz4(block_size)
    assert bytes(codec.decode(stored, len(value))) == value
    assert codec.encode(value) == stored
    assert run_java("d", data=codec.encode(value[:1000])) == value[:1000]
