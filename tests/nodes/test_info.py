"""Summaries of arrays and groups: their exact text, and the units of sizes."""

from __future__ import annotations

import numpy as np
import pytest

import zarrlite
from zarrlite import LocalStore, MemoryStore
from zarrlite.nodes.info import human


def test_info_describes_a_sharded_array() -> None:
    array = zarrlite.create_array(
        MemoryStore(),
        name="deep/temperature",
        shape=(1000, 500),
        chunks=(10, 50),
        shards=(100, 100),
        dtype="float32",
        fill_value=np.nan,
        dimension_names=["time", None],
        filters=[{"name": "transpose", "configuration": {"order": [1, 0]}}],
        chunk_key_encoding={"name": "v2", "configuration": {"separator": "/"}},
    )
    assert repr(array.info) == str(array.info)
    assert (
        str(array.info)
        == """\
Type            : Array
Name            : /deep/temperature
Shape           : (1000, 500)
Data type       : float32
Fill value      : "NaN"
Chunk shape     : (10, 50)
Shard shape     : (100, 100)
Dimension names : ('time', None)
Chunk keys      : 0/0 ...
Codecs          : sharding_indexed(transpose -> bytes -> zstd)
Store           : MemoryStore(3 keys)
Read-only       : False
Bytes, decoded  : 2000000 (1.9 MiB)"""
    )


def test_info_describes_an_array_without_shards() -> None:
    store = LocalStore("/nowhere")
    array = zarrlite.create_array(MemoryStore(), shape=(), dtype="int8", compressors=["gzip", "crc32c"])
    info = str(zarrlite.Array(store, "", array.metadata).info)
    assert (
        info
        == """\
Type           : Array
Name           : /
Shape          : ()
Data type      : int8
Fill value     : 0
Chunk shape    : ()
Chunk keys     : c ...
Codecs         : bytes -> gzip -> crc32c
Store          : LocalStore('/nowhere')
Read-only      : False
Bytes, decoded : 1"""
    )


@pytest.mark.parametrize("dtype", ["string", "bytes", "M8[s]", "V3", [("x", "f4"), ("y", "S3")], "complex64"])
def test_every_data_type_has_an_info(dtype: object) -> None:
    array = zarrlite.create_array(None, shape=3, dtype=dtype)
    assert str(array.info).count("\n") == 10


def test_info_describes_a_group() -> None:
    top = zarrlite.create_group(MemoryStore())
    top.create_array("a", data=[1])
    top.create_array("b", data=[1])
    top.create_group("g").create_group("h")
    assert repr(top.info) == str(top.info)
    assert (
        str(zarrlite.open_group(top.store, mode="r").info)
        == """\
Type      : Group
Name      : /
Store     : ReadOnlyStore(MemoryStore(7 keys))
Read-only : True
Arrays    : 2
Groups    : 1"""
    )
    assert str(top["g"].info).splitlines()[1] == "Name      : /g"


def test_info_reads_no_chunk() -> None:
    class NoChunks(MemoryStore):
        def get(self, key: str, *args: object) -> object:  # type: ignore[override]
            assert key.endswith("zarr.json")
            return super().get(key, *args)  # type: ignore[arg-type]

    array = zarrlite.create_array(NoChunks(), data=np.arange(10))
    assert "int64" in str(array.info)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0"),
        (1, "1"),
        (1023, "1023"),
        (1024, "1024 (1.0 KiB)"),
        (1536, "1536 (1.5 KiB)"),
        (2**20 - 1, "1048575 (1024.0 KiB)"),
        (2**20, "1048576 (1.0 MiB)"),
        (2**30, "1073741824 (1.0 GiB)"),
        (2**40, "1099511627776 (1.0 TiB)"),
        (2**50, "1125899906842624 (1.0 PiB)"),
        (2**60, "1152921504606846976 (1.0 EiB)"),
        (5 * 2**70, "about 2**72"),
    ],
)
def test_sizes_have_binary_units(nbytes: int, text: str) -> None:
    assert human(nbytes) == text
