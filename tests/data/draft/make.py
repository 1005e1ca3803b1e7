"""Makes the hierarchies beside this script: Zarr v3 as its draft was when zarr-python first wrote it.

Made with zarr 2.18.7, numcodecs 0.15.2 and numpy 1.26.4 on Python 3.11 (zarr needs pytest to read what it sharded):

    pip install 'zarr==2.18.7' 'numcodecs==0.15.2' 'numpy==1.26.4' pytest
    python make.py

Each file is one hierarchy: `store` maps keys to values (documents as text, all else as base64), `arrays` maps paths to
what zarr-python itself reads there, `attributes` and `groups` to what it says of them.
"""

import base64
import json
import os
import warnings
from pathlib import Path

os.environ.update(ZARR_V3_EXPERIMENTAL_API="1", ZARR_V3_SHARDING="1")
warnings.simplefilter("ignore")

import numcodecs as nc  # noqa: E402
import numpy as np  # noqa: E402
import zarr  # noqa: E402
from zarr._storage.v3 import KVStoreV3  # noqa: E402
from zarr._storage.v3_storage_transformers import ShardingStorageTransformer  # noqa: E402

PLAIN = {"compressor": None}
RECORD = [("a", "<i4"), ("b", "<f8"), ("c", [("d", "u1"), ("e", "S2")])]


def shards(*chunks_per_shard):
    return [ShardingStorageTransformer("indexed", chunks_per_shard)]


def create(store, path, data, chunks, **kwargs):
    """An array that holds the data; of more elements than the data has, the rest is the fill value."""
    data = np.asarray(data)
    kwargs = {"dtype": data.dtype, "shape": data.shape, **kwargs}
    array = zarr.create(store=store, path=path, chunks=chunks, **kwargs)
    array[tuple(map(slice, data.shape))] = data
    return array


def numbers(dtype, shape=(3, 5)):
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def types(store):
    for dtype in ("i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u8", ">i8", "<f2", ">f4", "<f8", "<c8", ">c16"):
        name = dtype.replace("<", "little-").replace(">", "big-")
        create(store, name, numbers(dtype), (2, 3), **PLAIN)
    create(store, "bool", numbers("u1") % 3 == 0, (2, 3), **PLAIN)
    floats = np.array([0x7FF8000000000001, 0xFFF0000000000000, 0x8000000000000000, 1], "u8").view("f8")
    create(store, "special", floats, 3, fill_value=np.nan, **PLAIN)
    moments = np.array(["2001-02-03", "NaT", "1969-12-31"], "M8[D]")
    create(store, "dates", moments, 2, fill_value="NaT", shape=5, **PLAIN)
    create(store, "moments", moments.astype(">M8[ns]"), 2, **PLAIN)
    create(store, "durations", np.array([1, -5, 0], "<m8[ms]"), 2, fill_value=7, shape=9, **PLAIN)
    create(store, "bytes", np.array([b"ab", b"", b"a\0c"], "S3"), 2, fill_value=b"xy", shape=5, **PLAIN)
    create(store, "text", np.array(["äöü", "", "𝄞"], "<U3"), 2, fill_value="né", shape=5, **PLAIN)
    create(store, "big-text", np.array(["äöü", "", "𝄞"], ">U3"), 2, **PLAIN)
    create(store, "raw", np.frombuffer(bytes(range(12)), "V4"), 2, fill_value=b"\1\2\3\4", shape=5, **PLAIN)
    records = np.array([(1, 2.5, (3, b"xy")), (-1, np.inf, (255, b""))], RECORD)
    create(store, "records", records, 2, fill_value=records[0], shape=5)
    big = [("a", ">i4"), ("b", ">f8")]
    create(store, "big-records", np.array([(1, 2), (3, 4)], big), 1, fill_value=np.array((5, 6), big)[()], shape=4)
    create(store, "pairs", numbers("i4", (4, 2)), 2, dtype="(2,)i4", shape=(4,), **PLAIN)
    strings = np.array([["ab", "", "é"], ["x" * 20, "y", "z"]], object)
    create(store, "strings", strings, (1, 2), dtype=str)
    create(store, "strings-f", strings, (2, 2), dtype=str, order="F", fill_value="?", shape=(2, 6), **PLAIN)
    blobs = np.array([b"ab", b"", b"\0"], object)
    create(store, "blobs", blobs, 2, dtype=object, object_codec=nc.VLenBytes())


def layouts(store):
    data = numbers("<i4", (5, 7))
    create(store, "c-slash", data, (2, 3))
    create(store, "f-slash", data, (2, 3), order="F")
    create(store, "c-dot", data, (2, 3), dimension_separator=".")
    create(store, "f-dot", data, (2, 3), order="F", dimension_separator=".")
    create(store, "three", numbers(">i2", (3, 4, 5)), (2, 3, 2), order="F", compressor=nc.GZip(1))
    create(store, "line-dot", data[0], 3, dimension_separator=".")
    create(store, "line-f", data[0], 3, order="F")
    create(store, "scalar", np.int32(7), ())
    create(store, "scalar-f-dot", np.float32(7), (), order="F", dimension_separator=".")
    zarr.create(store=store, path="scalar-missing", shape=(), dtype="u2", fill_value=9)
    zarr.create(store=store, path="empty", shape=(0, 3), chunks=(2, 2), dtype="u2")
    zarr.create(store=store, path="missing", shape=(3, 3), chunks=(2, 2), dtype="f4", fill_value=-np.inf)
    zarr.create(store=store, path="some", shape=(6, 6), chunks=(2, 2), dtype="i2", fill_value=-3)[1:3, 2:5] = 8
    zarr.create(store=store, path="complex", shape=3, chunks=2, dtype="c8", fill_value=complex(np.nan, np.inf))
    zarr.create(store=store, path="true", shape=3, chunks=2, dtype=bool, fill_value=True)
    create(store, "no-fill", data, (2, 3), fill_value=None)
    grown = create(store, "grown", data, (2, 3), fill_value=5)
    grown.resize(6, 9)
    grown.attrs["unit"] = "mm"


def compressors(store):
    data = numbers("<i2", (5, 40)) // 9
    codecs = {
        "gzip": nc.GZip(9),
        "zstd": nc.Zstd(3),
        "zstd-checksum": nc.Zstd(3, checksum=True),
        "blosc-lz4": nc.Blosc("lz4", 5, nc.Blosc.SHUFFLE),
        "blosc-zstd": nc.Blosc("zstd", 1, nc.Blosc.BITSHUFFLE),
        "blosc-zlib": nc.Blosc("zlib", 9, nc.Blosc.NOSHUFFLE),
        "blosc-blosclz": nc.Blosc("blosclz", 5, nc.Blosc.AUTOSHUFFLE),
    }
    for name, codec in codecs.items():
        create(store, name, data, (3, 25), compressor=codec)
    create(store, "blosc-auto", data.astype("u1"), (3, 25), compressor=nc.Blosc("lz4", 5, nc.Blosc.AUTOSHUFFLE))


def sharded(store):
    data = numbers("<i4", (9, 11))
    create(store, "full", data, (2, 3), storage_transformers=shards(2, 2))
    create(store, "plain", data, (2, 3), storage_transformers=shards(2, 2), **PLAIN)
    create(store, "dot", data, (2, 3), storage_transformers=shards(3, 1), dimension_separator=".")
    create(store, "f", data.astype(">i4"), (2, 3), storage_transformers=shards(2, 3), order="F")
    create(store, "zstd", data, (2, 3), storage_transformers=shards(10, 10), compressor=nc.Zstd(1))
    create(store, "line", data[0], 2, storage_transformers=shards(3))
    create(store, "scalar", np.int32(7), (), storage_transformers=shards())
    create(store, "pairs", data[:4, :2], 2, dtype="(2,)i4", shape=(4,), storage_transformers=shards(2))
    create(store, "strings", np.array(["a", "bc", "", "d"], object), 1, dtype=str, storage_transformers=shards(3))
    create(store, "nested", data[:5, :5], (1, 1), storage_transformers=shards(2, 2) + shards(3, 2), **PLAIN)
    backwards = zarr.create(
        store=store, path="backwards", shape=(8,), chunks=2, dtype="u1", storage_transformers=shards(4), **PLAIN
    )
    for i in range(6, -2, -2):
        backwards[i : i + 2] = i + 1
    partial = zarr.create(
        store=store, path="partial", shape=(9, 11), chunks=(2, 3), dtype="i2", fill_value=-1,
        storage_transformers=shards(2, 2), write_empty_chunks=False,
    )  # fmt: skip
    partial[0:2, 0:3] = 1
    partial[4:, 6:] = 2
    partial[8, 10] = 3
    erased = create(
        store, "erased", data, (2, 3), storage_transformers=shards(2, 2), write_empty_chunks=False, compressor=None
    )
    erased[0:2, 3:6] = 0  # a gap in a shard
    erased[4:8, 0:6] = 0  # the last chunk of a shard
    erased[0:1, 0:1] = 99


def groups(store):
    root = zarr.group(store, zarr_version=3)
    root.attrs.update({"title": "ünï", "nested": {"list": [1, None, 2.5]}})
    deep = root.create_group("a/b/c")
    deep.attrs["depth"] = 3
    deep.create_dataset("x", data=numbers("i2", (3,))).attrs["unit"] = "m"
    root.create_dataset("x.array", data=numbers("i2", (4,)))
    root.create_group("empty")
    root.create_dataset("c/c", data=numbers("i2", (2, 2)), chunks=(1, 1))
    root.create_dataset("c/0", data=numbers("i2", (2,)), chunks=(1,))
    zarr.consolidate_metadata(store)


def implicit(store):
    create(store, "a/b/x", numbers("i4"), (2, 2))
    create(store, "y", numbers("i4"), (2, 2))


def root_array(store):
    create(store, "", numbers("<f4", (4, 5)), (2, 2), storage_transformers=shards(2, 1)).attrs["here"] = True


def suffix(store):
    entry = json.loads(KVStoreV3._metadata_class.encode_hierarchy_metadata())
    store["zarr.json"] = json.dumps({**entry, "metadata_key_suffix": ".meta-1"}).encode()
    create(store, "g/x", numbers("i4"), (2, 2)).attrs["a"] = 1
    zarr.open_group(store, path="g", mode="a", zarr_version=3).attrs["b"] = 2


def refused(store):
    data = numbers("i4", (3,))
    for codec in (nc.Zlib(1), nc.BZ2(1), nc.LZ4(1), nc.LZMA(preset=1)):
        create(store, codec.codec_id, data, 2, compressor=codec)
    create(store, "delta", data, 2, filters=[nc.Delta("i4")], **PLAIN)
    create(store, "pickles", np.array([1, "a", None], object), 2, dtype=object, object_codec=nc.Pickle())
    create(store, "mixed", np.array([(1, 2)], [("a", "<i4"), ("b", ">f8")]), 1)
    create(store, "subarrays", np.array([((1, 2), 3)], [("a", "<i4", (2,)), ("b", "<i4")]), 1)
    create(store, "good", data, 2)
    create(store, "nan", data, 2).attrs["missing"] = float("nan")


def show(array):
    """What zarr-python reads, as JSON."""
    values = np.asarray(array[...])
    if values.dtype.hasobject:
        data = [base64.b64encode(v).decode() if isinstance(v, bytes) else v for v in values.ravel().tolist()]
    else:
        data = base64.b64encode(values.tobytes()).decode()
    descr = values.dtype.str if values.dtype.names is None else values.dtype.descr
    return {"shape": values.shape, "dtype": descr, "data": data}


def nodes(store, suffix):
    """The paths of arrays and groups that have documents."""
    found = {"array": [], "group": []}
    for key in sorted(store):
        for kind, paths in found.items():
            if key.startswith("meta/root") and key.endswith(f".{kind}{suffix}"):
                paths.append(key[len("meta/root") : -len(f".{kind}{suffix}")].strip("/"))
    return found["array"], found["group"]


def save(make, *, read=True):
    values = {}
    store = KVStoreV3(values)
    make(store)
    suffix = json.loads(values["zarr.json"])["metadata_key_suffix"]
    arrays, groups_ = nodes(values, suffix)
    opened = {path: zarr.open_array(store, path=path, mode="r", zarr_version=3) for path in arrays}
    grouped = {path: zarr.open_group(store, path=path, mode="r", zarr_version=3) for path in groups_}
    hierarchy = {
        "store": {
            key: bytes(value).decode() if not key.startswith("data/") else base64.b64encode(value).decode()
            for key, value in sorted(values.items())
        },
        "arrays": {path: show(array) for path, array in opened.items()} if read else {},
        "attributes": {p: node.attrs.asdict() for p, node in {**opened, **grouped}.items()} if read else {},
        "groups": groups_,
    }
    text = json.dumps(hierarchy, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    Path(__file__).with_name(make.__name__ + ".json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for make in (types, layouts, compressors, sharded, groups, implicit, root_array, suffix):
        save(make)
    save(refused, read=False)
