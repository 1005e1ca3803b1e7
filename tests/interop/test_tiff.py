"""TIFF files are exchanged between zarrlite, tifffile, libtiff and Pillow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite import DataError, tiff
from zarrlite.chunk_key_encodings import SuffixKeys
from zarrlite.codecs import Bytes, Zstd

pytestmark = pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array")  # in tifffile, with numpy 2.5

Tool = Callable[..., str]
DATA_TYPES = ["uint8", "uint16", "uint32", "int8", "int16", "int32", "float32", "float64"]
ORDER = {"little": "<", "big": ">"}


def noise(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return an array that can be compressed: one half is constant, the other half contains random numbers."""
    rng = np.random.default_rng(len(shape))
    if np.dtype(dtype).kind == "f":
        data = rng.normal(0, 1e6, shape).astype(dtype)
    else:
        info = np.iinfo(dtype)
        data = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    data[: shape[0] // 2] = data.flat[0]
    return data


def same(a: Any, b: Any) -> bool:
    """Whether two arrays are equal in shape, values and data type; the byte order does not matter."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and np.array_equal(a, b)


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("samples", [1, 3, 4])
@pytest.mark.parametrize("dtype", DATA_TYPES)
def test_tifffile_and_libtiff_read_every_kind_of_image(
    tmp_path: Path, tifffile: ModuleType, libtiff: Tool, dtype: str, samples: int, byteorder: str, compression: Any
) -> None:
    data = noise((20, 30) if samples == 1 else (20, 30, samples), dtype)
    tiff.create_array(
        tmp_path / "a", data=data, chunks=data.shape, rgb=samples > 1, byteorder=byteorder, compression=compression,
        chunk_key_encoding=SuffixKeys(".tif", "v2"),
    )  # fmt: skip
    image, copy = tmp_path / "a" / ("0.0.tif" if samples == 1 else "0.0.0.tif"), tmp_path / "copy.tif"
    assert same(tifffile.imread(image), data)
    assert "Image Width: 30 Image Length: 20" in libtiff("tiffinfo", "-D", image)
    assert ("50000" in libtiff("tiffdump", image)) == (compression == "zstd")
    libtiff("tiffcp", "-c", "none", image, copy)
    libtiff("tiffcmp", "-t", image, copy)  # compares pixels, not tags
    assert same(tifffile.imread(copy), data)


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize(
    ("dtype", "samples", "byteorder", "pillow_dtype"),
    [
        ("uint8", 1, "little", "uint8"),
        ("uint8", 1, "big", "uint8"),
        ("uint16", 1, "little", "uint16"),
        ("uint16", 1, "big", "uint16"),
        ("int16", 1, "little", "int32"),
        ("int32", 1, "little", "int32"),
        ("float32", 1, "little", "float32"),
        ("uint8", 3, "little", "uint8"),
        ("uint8", 3, "big", "uint8"),
        ("uint8", 4, "little", "uint8"),
        ("uint8", 4, "big", "uint8"),
    ],
)
def test_pillow_reads_the_images_that_it_has_a_mode_for(
    tmp_path: Path, pillow: ModuleType, dtype: str, samples: int, byteorder: str, pillow_dtype: str, compression: Any
) -> None:
    data = noise((20, 30) if samples == 1 else (20, 30, samples), dtype)
    tiff.create_array(
        tmp_path, data=data, chunks=data.shape, rgb=samples > 1, byteorder=byteorder, compression=compression
    )
    with pillow.open(tmp_path / ("c/0/0.tiff" if samples == 1 else "c/0/0/0.tiff")) as image:
        assert same(image, data.astype(pillow_dtype))


@pytest.mark.parametrize("codec", [Zstd(-5), Zstd(1), Zstd(22), Zstd(3, checksum=True)])
@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (700, 700)])
def test_images_of_every_zstd_level_are_read(
    tmp_path: Path, tifffile: ModuleType, libtiff: Tool, pillow: ModuleType, codec: Zstd, shape: tuple[int, int]
) -> None:
    data = noise(shape, "uint16")
    codecs = [Bytes(), codec, tiff.header(shape, "uint16", compression="zstd").pad()]
    zarrlite.create_array(tmp_path, data=data, chunks=shape, codecs=codecs, chunk_key_encoding=SuffixKeys(".tiff"))
    image = tmp_path / "c/0/0.tiff"
    assert same(tifffile.imread(image), data)
    with pillow.open(image) as opened:
        assert same(opened, data)
    libtiff("tiffcp", "-c", "none", image, tmp_path / "copy.tif")
    assert same(tifffile.imread(tmp_path / "copy.tif"), data)


def test_images_are_full_size_chunks_and_change_with_the_array(tmp_path: Path, tifffile: ModuleType) -> None:
    data = noise((2, 5, 7), "uint16")
    array = tiff.create_array(tmp_path, data=data, chunks=(1, 4, 4), fill_value=9, compression="zstd")
    edge = np.full((4, 4), 9, "uint16")
    edge[:1, :3] = data[1, 4:, 4:]
    assert same(tifffile.imread(tmp_path / "c/1/1/1.tiff"), edge)
    array[1, 4, 4] = 77
    edge[0, 0] = 77
    assert same(tifffile.imread(tmp_path / "c/1/1/1.tiff"), edge)
    reopened = tiff.open_array(tmp_path)
    reopened[1, 4, 5] = 78
    edge[0, 1] = 78
    assert same(tifffile.imread(tmp_path / "c/1/1/1.tiff"), edge)


# files written by other programs


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("samples", [1, 3, 4])
@pytest.mark.parametrize("dtype", DATA_TYPES)
def test_files_of_tifffile_are_chunks(
    tmp_path: Path, tifffile: ModuleType, dtype: str, samples: int, byteorder: str, compression: Any
) -> None:
    channels = () if samples == 1 else (samples,)
    data = noise((2, 6, 10, *channels), dtype)
    for z in range(2):
        for x in range(2):
            name = ".".join(map(str, (z, 0, x, *(0 for _ in channels)))) + ".tif"
            tifffile.imwrite(
                tmp_path / name, data[z, :, 5 * x : 5 * x + 5].astype(data.dtype.newbyteorder(ORDER[byteorder])),
                byteorder=ORDER[byteorder], compression=compression, rowsperstrip=6, metadata=None,
                photometric="rgb" if channels else "minisblack",
            )  # fmt: skip
    array = tiff.open_folder(tmp_path)
    assert array.chunks == (1, 6, 5, *channels)
    assert same(array[...], data)
    assert array.metadata.byte_order == byteorder


@pytest.mark.parametrize(
    ("dtype", "samples"), [("uint8", 1), ("uint16", 1), ("int32", 1), ("float32", 1), ("uint8", 3), ("uint8", 4)]
)
def test_files_of_pillow_are_chunks(tmp_path: Path, pillow: ModuleType, dtype: str, samples: int) -> None:
    data = noise((6, 10) if samples == 1 else (6, 10, samples), dtype)
    (tmp_path / "c/0").mkdir(parents=True)
    for x in range(2):
        name = f"c/0/{x}.tif" if samples == 1 else f"c/0/{x}/0.tif"
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pillow.fromarray(data[:, 5 * x : 5 * x + 5]).save(tmp_path / name)
    array = tiff.open_folder(tmp_path, save=True)
    assert same(array[...], data)
    assert same(zarrlite.open_array(tmp_path, mode="r")[...], data)


@pytest.mark.parametrize("order", ["-B", "-L"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float64"])
def test_files_of_libtiff_with_the_header_after_the_pixels_are_chunks(
    tmp_path: Path, tifffile: ModuleType, libtiff: Tool, dtype: str, order: str
) -> None:
    data = noise((6, 10), dtype)
    folder = tmp_path / "folder"
    folder.mkdir()
    for x in range(2):
        tifffile.imwrite(tmp_path / "one.tif", data[:, 5 * x : 5 * x + 5], rowsperstrip=1)
        libtiff("tiffcp", order, "-r", 6, tmp_path / "one.tif", folder / f"0.{x}.tif")
    array = tiff.open_folder(folder, save=True)
    assert same(array[...], data)
    end, start = array.metadata.codecs[1:]
    assert (end.to_config()["location"], start.to_config()["nbytes"]) == ("end", 8)

    saved = zarrlite.open_array(folder)  # libtiff can read a chunk that zarrlite writes
    saved[0, 0] = data[0, 0] = 1
    assert same(tifffile.imread(folder / "0.0.tif"), data[:, :5])
    libtiff("tiffinfo", folder / "0.0.tif")


def test_compressed_files_of_libtiff_are_chunks_if_they_end_alike(
    tmp_path: Path, tifffile: ModuleType, libtiff: Tool
) -> None:
    """libtiff writes the directory at an even offset, so a strip of odd length is followed by an additional byte."""
    folder = tmp_path / "folder"
    folder.mkdir()
    by_parity: dict[int, list[np.ndarray]] = {0: [], 1: []}
    for n in range(1, 40):
        data = np.zeros((40, 40), "uint8")
        data.flat[:n] = np.random.default_rng(n).integers(0, 255, n)
        tifffile.imwrite(tmp_path / "one.tif", data)
        libtiff("tiffcp", "-c", "zstd", "-r", 40, tmp_path / "one.tif", tmp_path / "two.tif")
        with tifffile.TiffFile(tmp_path / "two.tif") as file:
            parity = file.pages[0].databytecounts[0] % 2
        (tmp_path / "two.tif").rename(folder / f"{parity}.{len(by_parity[parity])}.tif")
        by_parity[parity].append(data)
    with pytest.raises(
        DataError, match=r"^chunk 1\.0\.tif: must have \d+ bytes after its pixels, like 0\.0\.tif, not \d+$"
    ):
        tiff.open_folder(folder)
    for file in folder.glob("1.*"):
        file.unlink()
    assert len(by_parity[0]) > 5
    assert same(tiff.open_folder(folder)[...], np.concatenate(by_parity[0], axis=1))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"tile": (16, 16)}, "must have one strip, not tiles"),
        ({"rowsperstrip": 8}, "must have one strip, not 4"),
        ({"compression": "zlib"}, "Compression must be 1 (none) or 50000 (zstd), not 8 (deflate)"),
        ({"compression": "lzw"}, "Compression must be 1 (none) or 50000 (zstd), not 5 (LZW)"),
        ({"compression": "zstd", "predictor": True}, "Predictor must be 1, not 2"),
        ({"bigtiff": True}, "is BigTIFF, which zarrlite does not read"),
    ],
)
def test_files_of_tifffile_that_cannot_be_chunks_are_refused(
    tmp_path: Path, tifffile: ModuleType, keywords: Any, message: str
) -> None:
    tifffile.imwrite(tmp_path / "0.0.tif", noise((32, 32), "uint8"), **{"rowsperstrip": 32, **keywords})
    with pytest.raises(DataError) as caught:
        tiff.open_folder(tmp_path)
    assert str(caught.value) == f"chunk 0.0.tif: {message}"


def test_pages_and_planes_are_refused(tmp_path: Path, tifffile: ModuleType) -> None:
    tifffile.imwrite(tmp_path / "0.0.tif", noise((2, 8, 8), "uint8"), photometric="minisblack", contiguous=False)
    with pytest.raises(DataError, match=r"^chunk 0\.0\.tif: must have one page, not several$"):
        tiff.open_folder(tmp_path)
    tifffile.imwrite(tmp_path / "0.0.tif", noise((3, 8, 8), "uint8"), photometric="rgb", planarconfig="separate")
    with pytest.raises(DataError, match=r"^chunk 0\.0\.tif: must have one strip, not 3$"):
        tiff.open_folder(tmp_path)
