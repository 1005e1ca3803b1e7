"""Code that a user may write; mypy accepts it with --strict, and it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import zarrlite
from zarrlite import Array, ByteRange, Extension, Group, LocalStore, MemoryStore, Store, register, runtime
from zarrlite import dtype as zarr_dtype
from zarrlite.codecs import Bytes, Crc32c, Transpose, Zstd
from zarrlite.stores import PrefixStore

KEYS = ["height", "nested", "range", "station", "unit", "units"]


def create(store: Store | str | Path | None) -> Array:
    """Pass every keyword of create_array, each in one of the forms that it accepts."""
    return zarrlite.create_array(
        store,
        name="deep/temperature",
        shape=(100, np.int64(50)),
        dtype=np.float32,
        chunks=(10, 10),
        shards="auto",
        filters=[Transpose((1, 0))],
        serializer={"name": "bytes", "configuration": {"endian": "big"}},
        compressors=["gzip", Crc32c(), {"name": "zstd", "configuration": {"level": 1, "checksum": False}}],
        fill_value=np.nan,
        attributes={"units": "K", "range": [0, 300], "nested": {"a": None}},
        chunk_key_encoding={"name": "v2", "separator": "/"},
        dimension_names=["time", None],
        storage_transformers=[],
        options=None,
        missing_chunks="fill",
        write_empty_chunks=True,
        overwrite=True,
        config={"write_empty_chunks": True, "order": "C"},
        order="C",
        zarr_format=3,
        storage_options=None,
    )


def create_from_data(group: Group) -> list[Array]:
    return [
        group.create_array("numbers", data=[[1, 2], [3, 4]], compressors=None, chunks=1),
        group.create_array("text", data=["a", "bcd"], write_data=True),
        group.create_array("copy", data=group.create_array("original", shape=3, dtype="u1")),
        group.create_array("chain", shape=3, dtype="string", codecs=["vlen-utf8", Zstd(3)]),
        group.create_array("struct", shape=3, dtype=[("x", "i4"), ("y", "f8")], fill_value=(1, 2.0)),
        group.create_array("json", shape=3, dtype={"name": "r16"}, fill_value=b"ab"),
        group.require_array("required", shape=[2, 2], dtype=float, chunks=True, compressors=Zstd()),
    ]


def use(array: Array) -> None:
    array[0, :] = 5
    array[..., 1] = np.arange(array.shape[0])
    array.oindex[[0, 2], [1, 3]] = 7
    total: float = float(np.nansum(array))
    points: npt.NDArray[np.float32] = array.vindex[[0, 1], [0, 1]]
    block: npt.NDArray[np.float32] = array.blocks[0, 0]
    assert [total, points.size, block.shape] == [5216.0, 2, (80, 50)]
    shape: tuple[int, ...] = array.shape
    shards: tuple[int, ...] | None = array.shards
    array.resize((shape[0] + 1, shape[1]))
    array.shape = shape
    assert array.append(np.zeros((1, shape[1])), axis=0) == (shape[0] + 1, *shape[1:])
    array.attrs["station"] = 7
    array.attrs.update({"height": 2.5}, unit="m")
    attributes: dict[str, Any] = array.attrs.asdict()
    same: Array = array.update_attributes({"more": [1, 2]})
    names = [name for name, value in array.info.items()]
    assert same is array
    assert [sorted(attributes), shards, names[0], array.to_svg()[:4]] == [KEYS, (80, 50), "Type", "<svg"]
    assert np.asarray(array).dtype == array.dtype


def walk(group: Group) -> Iterator[str]:
    for name, array in group.arrays():
        yield f"{name} {array.dtype} {array.nbytes}"
    for path, node in group.members(max_depth=None):
        yield path if isinstance(node, Group) else f"{path} {node.shape}"
    child: Group = group.require_group("child")
    child.create_group("grandchild", attributes={"a": 1}, overwrite=True)
    member: Array | Group | None = group.get("nope")
    default: Array | Group | int = group.get("nope", 5)
    yield f"{member} {default} {group.tree(level=1)}"


def open_everything(path: Path) -> None:
    group = zarrlite.open_group(path, mode="w", attributes={"a": 1})
    create_from_data(group)
    create(LocalStore(path))
    use(zarrlite.open_array(path, path="deep/temperature", mode="r+", missing_chunks="error", strict=False))
    assert list(walk(group))
    node = zarrlite.open(str(path), mode="r", use_consolidated=False)
    if isinstance(node, Array):
        raise TypeError(node.shape)
    consolidated: Group = zarrlite.consolidate_metadata(path)
    copied: Array | Group = zarrlite.copy(consolidated, MemoryStore(), "there", overwrite=True)
    assert copied.path == "there"
    mapping: dict[str, bytes] = {}
    zarrlite.open(mapping, shape=3, dtype="int8", mode="w-")
    part = PrefixStore(LocalStore(path), "deep/temperature/")
    assert part.get("zarr.json", ByteRange(0, 1)) == b"{"


def handle_errors(path: Path) -> str | None:
    try:
        zarrlite.open_array(path, mode="r")
    except zarrlite.NodeNotFoundError as error:
        return str(error)
    except zarrlite.MetadataError as error:
        return error.pointer
    problems = zarrlite.validate({"zarr_format": 3, "node_type": "group"})
    return problems[0].kind if problems else zarrlite.__version__


def use_submodules() -> tuple[type[Any], ...]:
    return zarrlite.codecs.Zstd, zarrlite.stores.MemoryStore, zarrlite.errors.ZarrliteError, Bytes, Extension


def use_decorators() -> tuple[object, object]:
    return register, runtime(3)


def use_names_of_zarr_python() -> list[object]:
    """Use the library under zarr-python's name."""
    import zarrlite as zarr

    order: str = zarr.config.get("array.order")
    workers: int | None = zarr.config.get("threading.max_workers")
    with zarr.config.set({"array.order": "F"}):
        array = zarr.create_array(
            shape=(4, 4),
            dtype=zarr_dtype.Int16(endianness="big"),
            chunks=(2, 2),
            shards={"shape": (4, 4), "index_location": "start"},
            compressors=zarr.codecs.BloscCodec(cname="zstd", clevel=3, shuffle=zarr.codecs.BloscShuffle.shuffle),
        )
    array.set_orthogonal_selection(([0, 1], slice(2)), 5)
    out = np.zeros((2, 2), "i2")
    array.get_orthogonal_selection(([0, 1], slice(2)), out=out)
    assert out.all()
    same: zarr.Array = array.with_config({"order": "C"})
    root: zarr.Group = zarr.group(attributes={"a": 1})
    root.create_array("b", shape=3, dtype="str")
    root.move("b", "c")
    read_only: Mapping[str, bytes] = {}
    zarr.create_group(dict(read_only))
    document: dict[str, Any] = array.metadata.to_dict()
    return [order, workers, same.order, document["node_type"], zarr_dtype.parse_dtype("i2").to_json()]
