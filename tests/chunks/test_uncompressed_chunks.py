"""Uncompressed chunks: elements are read directly from the stored bytes, with the same checks as in other chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.codecs import Bytes, ShardingIndexed
from zarrlite.errors import KeyRefusedError, MissingChunkError, TruncatedError
from zarrlite.stores import LocalStore


class Reversing(LocalStore):
    """A store that returns the bytes of chunks in reverse order."""

    def get(self, key: str, byte_range: ByteRange = ALL) -> Any:
        value = super().get(key)
        return value if value is None or key.endswith("json") else byte_range.of(bytes(value)[::-1])


def test_reading_a_single_element_makes_the_same_checks_as_a_whole_chunk(tmp_path: Path) -> None:
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    data = np.arange(1, 25, dtype="<u2").reshape(4, 6)
    zarrlite.create_array(tmp_path / "a", data=data, chunks=(2, 3), codecs=codecs)
    array = zarrlite.open_array(tmp_path / "a", mode="r+")
    chunk = tmp_path / "a/c/1/1"
    for index in np.ndindex(4, 6):
        assert array[index] == data[index]
        assert array[tuple(i - n for i, n in zip(index, data.shape, strict=True))] == data[index]
    assert type(array[3, 5]) is np.uint16
    for size in (0, 11, 13, 2**20):
        chunk.write_bytes(bytes(size))
        with pytest.raises(TruncatedError, match=f"has {size} bytes") as caught:
            array[3, 5]
        assert caught.value.key == "c/1/1"
    chunk.unlink()
    assert array[3, 5] == 0
    with pytest.raises(MissingChunkError, match="c/1/1"):
        zarrlite.open_array(tmp_path / "a", mode="r", missing_chunks="error")[3, 5]
    chunk.mkdir()
    assert array[3, 5] == 0
    chunk.rmdir()
    chunk.symlink_to(tmp_path / "a/c/0/1")
    assert array[3, 5] == data[1, 5]
    chunk.unlink()
    (tmp_path / "elsewhere").write_bytes(bytes(12))
    chunk.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeyRefusedError, match="leads out of"):
        array[3, 5]


def test_a_single_element_is_read_through_the_get_of_a_subclass(tmp_path: Path) -> None:
    data = np.arange(1, 25, dtype="<u2").reshape(4, 6)
    zarrlite.create_array(tmp_path, data=data, chunks=(2, 3), codecs=[Bytes()])
    assert zarrlite.open_array(Reversing(tmp_path), mode="r")[0, 0] == data[1, 2].byteswap()


@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2", "f8", ">f8", "c16", "bool", "M8[s]"])
@pytest.mark.parametrize("shards", [None, (8, 6)])
def test_chunks_of_every_byte_order_read_as_their_elements(tmp_path: Path, dtype: str, shards: Any) -> None:
    data = (np.arange(48).reshape(8, 6) % 2).astype(dtype)
    for endian in ("little", "big"):
        codecs: list[Any] = [Bytes(endian)]
        if shards:
            codecs = [ShardingIndexed((4, 3), tuple(codecs))]
        array = zarrlite.create_array(
            tmp_path / endian, data=data, chunks=shards or (4, 3), codecs=codecs, write_empty_chunks=True
        )
        for index in ((slice(4, 8), slice(0, 3)), (slice(0, 4), slice(3, 6)), (slice(4, 8), slice(None)), ...):
            found = array[index]
            assert np.array_equal(found, data[index])
            found[...] = found[0, 0]  # callers may change the result


def test_a_chunk_of_the_wrong_size_is_refused(tmp_path: Path) -> None:
    array = zarrlite.create_array(tmp_path, data=np.ones((4, 4), "<f8"), chunks=(4, 4), codecs=[Bytes()])
    for size in (0, 127, 129):
        (tmp_path / "c/0/0").write_bytes(bytes(size))
        for index in (..., (0, 0), (slice(1, 3), slice(None)), (slice(None, None, 2), 1), ([0, 3], [1, 2])):
            with pytest.raises(TruncatedError, match=rf"c/0/0.* has {size} bytes"):
                array.vindex[index] if isinstance(index, tuple) and isinstance(index[0], list) else array[index]
