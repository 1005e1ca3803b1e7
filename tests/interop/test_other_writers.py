"""Hierarchies that zarr-python and GDAL write although the specification does not allow them.

xarray stores unnamed arrays under `NAME`, with attributes such as `missing_value`, which may be NaN.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.errors import MetadataError, MetadataWarning

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")

NAME = "__xarray_dataarray_variable__"
DATA = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.mark.parametrize("consolidated", [False, True])
def test_an_unnamed_array_of_xarray_is_opened(zarr: ModuleType, tmp_path: Path, consolidated: bool) -> None:
    group = zarr.create_group(tmp_path, attributes={"history": math.nan})
    attributes = {"missing_value": math.nan, "valid_range": [0.0, math.inf]}
    group.create_array(NAME, data=DATA, dimension_names=["y", "x"], attributes=attributes, fill_value=math.nan)
    if consolidated:
        zarr.consolidate_metadata(tmp_path)
    opened: Any = zarrlite.open_group(tmp_path, mode="r", use_consolidated=consolidated)
    assert list(opened) == [NAME]
    array = opened[NAME]
    np.testing.assert_array_equal(array[...], DATA)
    assert math.isnan(array.attrs["missing_value"])
    assert array.attrs["valid_range"] == [0.0, math.inf]
    assert math.isnan(opened.attrs["history"])


def test_zarr_python_reads_attributes_with_nan_that_zarrlite_has_written_again(
    zarr: ModuleType, tmp_path: Path
) -> None:
    zarr.create_array(tmp_path, data=DATA, attributes={"missing_value": math.nan})
    zarrlite.open_array(tmp_path).attrs["units"] = "K"
    attributes = zarr.open_array(tmp_path, mode="r").attrs
    assert math.isnan(attributes["missing_value"])
    assert attributes["units"] == "K"


@pytest.mark.parametrize(("shape", "chunks"), [((0, 3), (0, 3)), ((3, 0), (3, 0)), ((0,), (0,))])
def test_arrays_of_zarr_python_with_empty_axes_are_opened(
    zarr: ModuleType, tmp_path: Path, shape: tuple[int, ...], chunks: tuple[int, ...]
) -> None:
    try:
        written = zarr.create_array(tmp_path, shape=shape, chunks=chunks, dtype="i2")
    except ValueError:
        pytest.skip("this version of zarr-python does not write chunks of length 0")
    assert written.chunks == chunks
    with pytest.warns(MetadataWarning, match="but the axis has no elements; 1 is used"):
        array = zarrlite.open_array(tmp_path, strict=False)
    assert (array.shape, array[...].size) == (shape, 0)
    assert array.chunks == tuple(max(1, n) for n in chunks)
    axis = shape.index(0)
    with pytest.warns(MetadataWarning):  # again, because the document is repaired before it is written
        array.append(np.ones([2 if i == axis else n for i, n in enumerate(shape)], "i2"), axis=axis)
    assert zarr.open_array(tmp_path, mode="r")[...].sum() == 2 * math.prod(n or 1 for n in shape)


def write_raster(rasterio: ModuleType, path: Path, data: np.ndarray, **options: Any) -> None:
    """Write an image with GDAL, in chunks of 16 x 16 elements."""
    height, width = data.shape
    sizes = {"width": width, "height": height, "count": 1, "dtype": data.dtype.name}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rasterio warns about rasters without georeferencing
        with rasterio.open(path, "w", driver="Zarr", BLOCKSIZE="16,16", **sizes, **options) as raster:
            raster.write(data, 1)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "complex64"])
@pytest.mark.parametrize(
    "options", [{}, {"COMPRESS": "GZIP"}, {"COMPRESS": "BLOSC"}, {"CHUNK_MEMORY_LAYOUT": "F"}, {"nodata": 3}], ids=str
)
def test_rasters_of_gdal_in_zarr_v3_are_repaired_on_request(
    rasterio: ModuleType, tmp_path: Path, dtype: str, options: dict[str, Any]
) -> None:
    # random numbers hardly compress, so that GDAL's blosc chunks may be larger than uncompressed ones
    data = np.random.default_rng(0).integers(0, 200, (20, 30)).astype(dtype)
    write_raster(rasterio, tmp_path / "a.zarr", data, FORMAT="ZARR_V3", **options)
    with pytest.raises(MetadataError):
        zarrlite.open_group(tmp_path / "a.zarr", mode="r")["a"]
    with pytest.warns(MetadataWarning):
        array = zarrlite.open_group(tmp_path / "a.zarr", mode="r", strict=False)["a"]
    np.testing.assert_array_equal(array[...], data)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_blosc_buffers_of_gdal_in_zarr_v2_are_read(rasterio: ModuleType, tmp_path: Path, dtype: str) -> None:
    data = np.random.default_rng(0).integers(0, 200, (20, 30)).astype(dtype)
    write_raster(rasterio, tmp_path / "a.zarr", data, FORMAT="ZARR_V2", COMPRESS="BLOSC")
    np.testing.assert_array_equal(zarrlite.open_group(tmp_path / "a.zarr", mode="r")["a"][...], data)
