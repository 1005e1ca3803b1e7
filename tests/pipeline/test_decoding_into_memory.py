"""Decoding into existing memory: the same elements and the same errors as decoding into new memory."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

import zarrlite
from zarrlite.codecs import Bytes, Crc32c, Pad, ShardingIndexed, Transpose, Zstd
from zarrlite.errors import DataError
from zarrlite.stores import files
from zarrlite.tuning import DECODE_TOGETHER_BYTES, SMALL_CHUNK_BYTES

CHAINS: dict[str, list[Any]] = {
    "uncompressed": [Bytes()],
    "uncompressed, big endian": [Bytes("big")],
    "zstd": [Bytes(), Zstd(1)],
    "checked": [Bytes(), Zstd(1), Crc32c()],
    "big endian": [Bytes("big"), Zstd(1)],
    "twice": [Bytes(), Zstd(1), Zstd(1, checksum=True)],
    "transposed": [Transpose((1, 0)), Bytes(), Zstd(1)],
    "padded, then compressed": [Bytes(), Pad("start", 8), Zstd(1)],
    "compressed, then padded": [Bytes(), Zstd(1), Pad("end", 8)],
}
SHAPES = {"tiny": (40, 120), "small": (90, 200), "large": (200, 256), "rows of the array": (50, 1000)}  # chunk shapes
DTYPES = ["<u2", ">i4", "?", "<c8", "<M8[s]"]
ARRAY = (230, 1000)


def data(dtype: str) -> Any:
    values = np.random.default_rng(3).integers(0, 200, ARRAY)
    return values % 2 == 1 if dtype == "?" else values.astype(dtype)


def create(place: Any, dtype: str, chunk: Any, chain: Any, sharded: bool) -> Any:
    codecs = [ShardingIndexed(chunk, chain)] if sharded else chain
    chunks = tuple(2 * n for n in chunk) if sharded else chunk
    with warnings.catch_warnings(action="ignore"):
        return zarrlite.create_array(place, data=data(dtype), chunks=chunks, codecs=codecs)


def test_chunk_sizes_are_on_both_sides_of_each_threshold() -> None:
    sizes = {name: h * w * 2 for name, (h, w) in SHAPES.items()}
    assert sizes["tiny"] <= DECODE_TOGETHER_BYTES < sizes["small"] <= SMALL_CHUNK_BYTES < sizes["large"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("sharded", [False, True], ids=["chunks", "shards"])
def test_chunks_of_every_size_are_read_back(chain: str, shape: str, dtype: str, sharded: bool, tmp_path: Path) -> None:
    for place in (tmp_path, {}):
        array = create(place, dtype, SHAPES[shape], CHAINS[chain], sharded)
        expected = data(dtype)
        for index in (..., (slice(7, 220), slice(3, 990)), (slice(None, None, -3), 5), (229, 999)):
            found = array[index]
            np.testing.assert_array_equal(found, expected[index])
            again = array[index]  # this read must not overwrite the memory of the first result
            np.testing.assert_array_equal(found, again)
        assert array[...].dtype == array.dtype


def test_results_share_no_memory_with_other_reads_or_writes(tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(0, 200, (8, 2**17)).astype("u2")
    array = zarrlite.create_array(tmp_path, data=values, chunks=(1, 2**17), codecs=CHAINS["checked"])
    rows = [array[i] for i in range(8)]
    parts = [array[i, 5:70_000:3] for i in range(8)]
    array[...] = 0
    np.testing.assert_array_equal(rows, values)
    np.testing.assert_array_equal(parts, values[:, 5:70_000:3])


def damaged(frame: bytes, nbytes: int) -> dict[str, bytes]:
    """Return damaged and unusual variants of a frame that decodes to `nbytes` bytes."""
    decoded = zstandard.ZstdDecompressor().decompress(frame)
    unsized = zstandard.ZstdCompressor(level=1, write_content_size=False)
    halves = decoded[: nbytes // 2], decoded[nbytes // 2 :]
    return {
        "cut": frame[:-3],
        "longer": frame + b"\0",
        "followed by a frame": frame + frame,
        "two frames": b"".join([zstandard.ZstdCompressor(level=1).compress(half) for half in halves]),
        "after a skippable frame": b"\x50\x2a\x4d\x18\4\0\0\0skip" + frame,
        "without a size": unsized.compress(decoded),
        "too long": zstandard.ZstdCompressor(level=1).compress(decoded + b"\0"),
        "too short": zstandard.ZstdCompressor(level=1).compress(decoded[:-1]),
        "flipped": frame[:200] + bytes([frame[200] ^ 255]) + frame[201:],
        "empty": b"",
        "not a frame": bytes(100),
    }


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("damage", damaged(Zstd(1).encode(np.random.default_rng(0).bytes(1000)), 1000))
def test_damage_is_reported_as_if_decoded_into_new_memory(
    shape: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = create(tmp_path, "<u2", SHAPES[shape], CHAINS["zstd"], False)
    path = tmp_path / "c/0/0"
    path.write_bytes(damaged(path.read_bytes(), 2 * np.prod(SHAPES[shape]).item())[damage])

    def outcome() -> Any:
        try:
            return array[...].tolist()
        except DataError as error:
            return str(error)

    found = outcome()
    monkeypatch.setattr(Zstd, "decode_into", lambda self, values, memory, size: False)
    assert found == outcome()
    if damage in ("cut", "longer", "too long", "too short", "empty", "not a frame"):
        assert "c/0/0" in found
    elif damage in ("two frames", "after a skippable frame", "without a size"):
        assert found == data("<u2").tolist()


def test_an_exception_of_decode_into_reaches_the_user_as_a_data_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode_into(self: Zstd, values: Any, memory: memoryview, size: int) -> bool:
        raise KeyError("a defect")

    array = create(tmp_path, "<u2", SHAPES["large"], CHAINS["zstd"], False)
    monkeypatch.setattr(Zstd, "decode_into", decode_into)
    with pytest.raises(DataError, match="chunk c/0/0, codec zstd: cannot be decoded: 'a defect'"):
        array[...]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_uncompressed_chunk_of_wrong_size_is_refused_and_a_missing_one_is_filled(shape: str, tmp_path: Path) -> None:
    array = create(tmp_path, "<u2", SHAPES[shape], CHAINS["uncompressed"], False)
    path = tmp_path / "c/0/0"
    value = path.read_bytes()
    for wrong in (value[:-1], value + b"\0", b""):
        path.write_bytes(wrong)
        with pytest.raises(DataError, match=f"chunk c/0/0, codec bytes: has {len(wrong)} bytes"):
            array[...]
    path.unlink()
    height, width = SHAPES[shape]
    expected = data("<u2")
    expected[:height, :width] = 0
    np.testing.assert_array_equal(array[...], expected)


@pytest.mark.parametrize("chain", ["uncompressed", "uncompressed, big endian", "checked"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sharded", [False, True], ids=["chunks", "shards"])
def test_a_file_that_is_truncated_while_it_is_read_is_refused(
    chain: str, shape: str, sharded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = create(tmp_path, "<u2", SHAPES[shape], CHAINS[chain], sharded)
    pread, preadv = files.pread, os.preadv

    def room(fd: int, offset: int, count: int) -> int:
        """Return how many of `count` bytes at `offset` can be read if the file ends after its first half."""
        return max(0, min(count, os.fstat(fd).st_size // 2 - offset))

    monkeypatch.setattr(files, "pread", lambda fd, count, offset: pread(fd, room(fd, offset, count), offset))
    monkeypatch.setattr(
        os, "preadv", lambda fd, views, offset: preadv(fd, [views[0][: room(fd, offset, len(views[0]))]], offset)
    )
    with pytest.raises(DataError, match="chunk c/"):
        array[...]
