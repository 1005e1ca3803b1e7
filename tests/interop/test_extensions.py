"""Other libraries read data stored with the proposed extensions once the document no longer mentions the extensions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.codecs import Bytes, Crc32c, Gzip, Offset, Pad, ShardingIndexed, Zstd
from zarrlite.storage_transformers import ConcatParts, Part, Sharding

DATA = np.arange(7 * 10, dtype="uint16").reshape(7, 10) * 257


@pytest.fixture(params=["zarr-python", "tensorstore"])
def read(request: pytest.FixtureRequest) -> Any:
    """Return a function that reads the array in a directory with another library."""
    if request.param == "zarr-python":
        zarr = request.getfixturevalue("zarr")
        return lambda path: zarr.open_array(path, mode="r")[...]
    tensorstore = request.getfixturevalue("tensorstore")

    def read(path: Path) -> Any:
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
        return tensorstore.open(spec, read=True).result().read().result()

    return read


def rewrite(path: Path, **changes: Any) -> None:
    """Change members of the document. A member is removed if its new value is None."""
    document = {**json.loads((path / "zarr.json").read_text()), **changes}
    (path / "zarr.json").write_text(json.dumps({k: v for k, v in document.items() if v is not None}))


@pytest.mark.parametrize("order", ["row-major", "column-major", "morton"])
@pytest.mark.parametrize("strategy", ["rewrite", "in-place", "append"])
def test_peers_read_shards_of_the_draft_as_sharding_indexed(
    tmp_path: Path, read: Any, order: str, strategy: str
) -> None:
    array = zarrlite.create_array(
        tmp_path, data=DATA, chunks=(2, 3), codecs=[Bytes(), Zstd()],
        storage_transformers=[Sharding((2, 2), strategy=strategy, order=order)],
    )  # fmt: skip
    expected = DATA.copy()
    for i in range(4):
        array[i, i : i + 4] = expected[i, i : i + 4] = i
    document = array.metadata.to_json()
    index_codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    sharding = {"chunk_shape": [2, 3], "codecs": document["codecs"], "index_codecs": index_codecs}
    rewrite(
        tmp_path,
        storage_transformers=None,
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4, 6]}},
        codecs=[{"name": "sharding_indexed", "configuration": {**sharding, "index_location": "end"}}],
    )
    np.testing.assert_array_equal(read(tmp_path), expected)


def test_shards_of_sharding_indexed_are_read_as_shards_of_the_draft(tmp_path: Path) -> None:
    codec = ShardingIndexed((2, 3), [Bytes(), Zstd()], [Bytes()])
    zarrlite.create_array(tmp_path, data=DATA, chunks=(4, 6), codecs=[codec])
    inner = [c.to_json() for c in codec.codecs]
    rewrite(
        tmp_path,
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        codecs=inner,
        storage_transformers=[{"name": "sharding", "configuration": {"chunks_per_shard": [2, 2]}}],
    )
    np.testing.assert_array_equal(zarrlite.open_array(tmp_path, mode="r")[...], DATA)


@pytest.mark.parametrize(
    ("codec", "chunk"),
    [
        (Pad("start", 16, b"MY_CUSTOM_HEADER"), slice(16, None)),
        (Pad("end", 5), slice(None, -5)),
        (Offset(12, bytes.fromhex("000000020000004000000040")), slice(12, None)),
    ],
)
@pytest.mark.parametrize("compressor", [Gzip(), Zstd()])
def test_peers_read_chunks_without_their_padding(
    tmp_path: Path, read: Any, codec: Any, chunk: slice, compressor: Any
) -> None:
    array = zarrlite.create_array(tmp_path, data=DATA, chunks=(2, 3), codecs=[Bytes(), compressor, codec])
    for file in (tmp_path / "c").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[chunk])
    rewrite(tmp_path, codecs=array.metadata.to_json()["codecs"][:-1])
    np.testing.assert_array_equal(read(tmp_path), DATA)


def test_peers_read_chunks_joined_from_their_parts(tmp_path: Path, read: Any) -> None:
    parts = ConcatParts([Part(".header", 3), Part(""), Part(".crc32c", 4)])
    zarrlite.create_array(
        tmp_path, data=DATA, chunks=(2, 3), codecs=[Bytes(), Zstd(), Crc32c()], storage_transformers=[parts]
    )
    for main in [file for file in (tmp_path / "c").rglob("*") if file.is_file() and not file.suffix]:
        names = [main.with_name(main.name + part.key_suffix) for part in parts.parts]
        value = b"".join(name.read_bytes() for name in names)
        for name in names:
            name.unlink()
        main.write_bytes(value)
    rewrite(tmp_path, storage_transformers=None)
    np.testing.assert_array_equal(read(tmp_path), DATA)


def test_peers_read_chunks_renamed_without_their_suffix(tmp_path: Path, read: Any) -> None:
    zarrlite.create_array(tmp_path, data=DATA, chunks=(2, 3), chunk_key_encoding=SuffixKeys(".shard.zip"))
    files = sorted(tmp_path.rglob("*.shard.zip"))
    assert len(files) == 16
    for file in files:
        file.rename(file.with_name(file.name.removesuffix(".shard.zip")))
    rewrite(tmp_path, chunk_key_encoding={"name": "default", "configuration": {"separator": "/"}})
    np.testing.assert_array_equal(read(tmp_path), DATA)
