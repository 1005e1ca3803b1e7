"""Chunks that are decoded into memory that is there already are what the plain way makes of them, and so are errors."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

import zarrlite
from zarrlite.buffers.ranges import ALL, ByteRange
from zarrlite.codecs import Bytes, Crc32c, Pad, ShardingIndexed, Transpose, Zstd
from zarrlite.errors import DataError
from zarrlite.pipeline import pipeline
from zarrlite.pipeline.decoding import TINY
from zarrlite.pipeline.pipeline import SMALL
from zarrlite.stores.open_file import OpenFile

CHAINS: dict[str, list[Any]] = {
    "zstd": [Bytes(), Zstd(1)],
    "checked": [Bytes(), Zstd(1), Crc32c()],
    "big endian": [Bytes("big"), Zstd(1)],
    "twice": [Bytes(), Zstd(1), Zstd(1, checksum=True)],
    "transposed": [Transpose((1, 0)), Bytes(), Zstd(1)],
    "padded inside": [Bytes(), Pad("start", 8), Zstd(1)],
    "padded outside": [Bytes(), Zstd(1), Pad("end", 8)],
}
SHAPES = {"tiny": (40, 120), "small": (90, 200), "large": (200, 256), "in rows": (50, 1000)}  # of chunks
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


def test_the_sizes_are_of_every_kind() -> None:
    sizes = {name: h * w * 2 for name, (h, w) in SHAPES.items()}
    assert sizes["tiny"] <= TINY < sizes["small"] <= SMALL < sizes["large"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("sharded", [False, True], ids=["chunks", "shards"])
def test_what_is_read_is_what_was_written(chain: str, shape: str, dtype: str, sharded: bool, tmp_path: Path) -> None:
    for place in (tmp_path, {}):
        array = create(place, dtype, SHAPES[shape], CHAINS[chain], sharded)
        expected = data(dtype)
        for index in (..., (slice(7, 220), slice(3, 990)), (slice(None, None, -3), 5), (229, 999)):
            found = array[index]
            np.testing.assert_array_equal(found, expected[index])
            again = array[index]  # what was read stays as it is, whatever is read in the same memory
            np.testing.assert_array_equal(found, again)
        assert array[...].dtype == array.dtype


def test_what_is_read_is_nobody_elses(tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(0, 200, (8, 2**17)).astype("u2")
    array = zarrlite.create_array(tmp_path, data=values, chunks=(1, 2**17), codecs=CHAINS["checked"])
    rows = [array[i] for i in range(8)]
    parts = [array[i, 5:70_000:3] for i in range(8)]
    array[...] = 0
    np.testing.assert_array_equal(rows, values)
    np.testing.assert_array_equal(parts, values[:, 5:70_000:3])


def damaged(frame: bytes, nbytes: int) -> dict[str, bytes]:
    """A frame that decodes to so many bytes, and what can become of it."""
    plain = zstandard.ZstdDecompressor().decompress(frame)
    unsized = zstandard.ZstdCompressor(level=1, write_content_size=False)
    half = [zstandard.ZstdCompressor(level=1).compress(part) for part in (plain[: nbytes // 2], plain[nbytes // 2 :])]
    return {
        "cut": frame[:-3],
        "longer": frame + b"\0",
        "followed by a frame": frame + frame,
        "two frames": b"".join(half),
        "skipped first": b"\x50\x2a\x4d\x18\4\0\0\0skip" + frame,
        "without a size": unsized.compress(plain),
        "too long": zstandard.ZstdCompressor(level=1).compress(plain + b"\0"),
        "too short": zstandard.ZstdCompressor(level=1).compress(plain[:-1]),
        "flipped": frame[:200] + bytes([frame[200] ^ 255]) + frame[201:],
        "nothing": b"",
        "no frame": bytes(100),
    }


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("damage", damaged(Zstd(1).encode(np.random.default_rng(0).bytes(1000)), 1000))
def test_damage_is_found_and_said_as_by_the_plain_way(
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
    monkeypatch.setattr(Zstd, "decode_into", lambda self, data, memory: False)
    assert found == outcome()
    if damage in ("cut", "longer", "too long", "too short", "nothing", "no frame"):
        assert "c/0/0" in found
    elif damage in ("two frames", "skipped first", "without a size"):
        assert found == data("<u2").tolist()


@pytest.mark.parametrize("dtype", ["<u2", ">i4", "<c8"])
@pytest.mark.parametrize("codec", [Bytes(), Bytes("big")], ids=["little", "big"])
@pytest.mark.parametrize("chunk", [(40, 120), (230, 7), (2, 999)], ids=str)
def test_large_raw_chunks_are_read_some_rows_at_a_time(
    chunk: Any, codec: Bytes, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "STEP", 100)
    array = create(tmp_path, dtype, chunk, [codec], sharded=False)
    asked: list[ByteRange] = []
    borrow = OpenFile.borrow

    def noted(self: OpenFile, at: ByteRange = ALL) -> Any:
        asked.append(at)
        return borrow(self, at)

    monkeypatch.setattr(OpenFile, "borrow", noted)
    monkeypatch.setattr("zarrlite.chunks.many.RAW", 0)  # which are fetched otherwise
    np.testing.assert_array_equal(array[...], data(dtype))
    assert asked
    assert ALL not in asked


def test_a_large_raw_chunk_that_is_too_short_is_refused_and_one_that_is_missing_is_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "STEP", 100)
    monkeypatch.setattr("zarrlite.chunks.many.RAW", 0)
    array = create(tmp_path, "<u2", (40, 120), [Bytes()], sharded=False)
    path = tmp_path / "c/1/2"
    whole = path.read_bytes()
    for wrong in (whole[:-1], whole + b"\0", b""):
        path.write_bytes(wrong)
        with pytest.raises(DataError, match="c/1/2"):
            array[...]
    path.unlink()
    expected = data("<u2")
    expected[40:80, 240:360] = 0
    np.testing.assert_array_equal(array[...], expected)


def test_a_file_that_is_cut_while_its_rows_are_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "STEP", 100)
    monkeypatch.setattr("zarrlite.chunks.many.RAW", 0)
    array = create(tmp_path, "<u2", (40, 120), [Bytes()], sharded=False)
    borrow = OpenFile.borrow

    def cut(self: OpenFile, at: ByteRange = ALL) -> Any:
        if self.key == "c/0/0" and at.start > 1000:
            (tmp_path / "c/0/0").write_bytes(b"short")
        return borrow(self, at)

    monkeypatch.setattr(OpenFile, "borrow", cut)
    with pytest.raises(DataError, match="c/0/0"):
        array[...]
