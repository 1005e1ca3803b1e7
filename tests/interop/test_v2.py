"""zarrlite reads Zarr v2 arrays written by other libraries just as those libraries do, bit for bit.

Each library writes and reads its own arrays. Hierarchies by zarr-python 2 are tested in tests/formats/test_v2.py.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import warnings
from typing import Any

import numpy as np
import pytest
from required import lacking

import zarrlite
from zarrlite import v2

SHAPE, CHUNKS = (7, 10), (4, 3)
INTEGERS = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"]


def numbers(dtype: str, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)


def assert_same(array: Any, expected: Any, label: Any = None) -> None:
    """Assert that an array has the same data type and bits as the one that another library read."""
    ours, theirs = np.asarray(array), np.asarray(expected)
    assert ours.dtype == theirs.dtype.newbyteorder("="), label
    assert ours.shape == theirs.shape, label
    assert ours.tobytes() == theirs.astype(ours.dtype).tobytes(), label


# zarr-python 3, which writes Zarr v2 on request


def zarr_compressors() -> dict[str, Any]:
    import numcodecs as nc

    return {
        "none": None,
        "zstd": nc.Zstd(3),
        "zlib": nc.Zlib(1),
        "gzip": nc.GZip(1),
        "blosc": nc.Blosc("lz4", 5, nc.Blosc.BITSHUFFLE),
        "bz2": nc.BZ2(1),
        "lzma": nc.LZMA(),
        "lz4": nc.LZ4(),
    }


ZARR_TYPES = ["|b1", *(f"<{t}" for t in INTEGERS), ">i2", ">u8", "<f2", "<f4", ">f8", "<c8", ">c16"]
ZARR_TYPES += ["<M8[ns]", ">M8[D]", "<m8[s]", "|S3", "<U4", ">U2", "|V5"]


@pytest.mark.parametrize("dtype", ZARR_TYPES)
def test_arrays_written_by_zarr_python_read_the_same_in_both_libraries(zarr, dtype, tmp_path):
    data = np.frombuffer(bytes(range(70)) * 5, dtype).reshape(SHAPE) if "V" in dtype else numbers("u1").astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr-python warns about data types that other libraries may not support
        for (name, compressor), (order, separator) in itertools.product(zarr_compressors().items(), ("C.", "F/")):
            path = tmp_path / f"{name}{order}"
            keys = {"name": "v2", "separator": separator}
            theirs = zarr.create_array(
                path,
                shape=(9, 10),
                chunks=CHUNKS,
                dtype=dtype,
                compressors=compressor,
                zarr_format=2,
                order=order,
                chunk_key_encoding=keys,
            )
            theirs[:7] = data
            assert_same(zarrlite.open_array(path, mode="r")[...], theirs[...], path.name)


def test_filters_of_zarr_python_decode_the_same_in_both_libraries(zarr, tmp_path):
    import numcodecs as nc

    chains = {
        "delta": ("<i4", [nc.Delta("<i4", "<i2")]),
        "scale": ("<f8", [nc.FixedScaleOffset(0, 10, "<f8", "<u2")]),
        "quantize": ("<f4", [nc.Quantize(1, "<f4")]),
        "shuffle": ("<i4", [nc.Shuffle(4)]),
        "chain": ("<f8", [nc.FixedScaleOffset(0, 10, "<f8", "<u2"), nc.Delta("<u2"), nc.Shuffle(2), nc.Fletcher32()]),
        "packbits": ("|b1", [nc.PackBits()]),
    }
    for (name, (dtype, filters)), order in itertools.product(chains.items(), "CF"):
        path = tmp_path / f"{name}{order}"
        options = {"filters": filters, "compressors": nc.Zlib(1), "order": order, "zarr_format": 2}
        theirs = zarr.create_array(path, shape=SHAPE, chunks=CHUNKS, dtype=dtype, **options)
        theirs[...] = numbers(dtype)
        assert_same(zarrlite.open_array(path, mode="r")[...], theirs[...], path.name)


def test_text_written_by_zarr_python_reads_the_same_in_both_libraries(zarr, tmp_path):
    theirs = zarr.create_array(tmp_path, shape=(4,), chunks=(2,), dtype=str, zarr_format=2, fill_value="?")
    theirs[:3] = np.array(["a", "", "é" * 30], dtype=object)
    assert zarrlite.open_array(tmp_path, mode="r")[...].tolist() == theirs[...].tolist()


def test_hierarchies_written_by_zarr_python_read_the_same_in_both_libraries(zarr, tmp_path):
    root = zarr.open_group(tmp_path, mode="w", zarr_format=2, attributes={"title": "x", "nan": float("nan")})
    root.create_group("a/b", attributes={"k": [1, None]})
    root.create_array("a/b/x", data=np.arange(5.0), chunks=(2,), attributes={"_ARRAY_DIMENSIONS": ["t"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(tmp_path)
    for use_consolidated in (True, False):
        ours = zarrlite.open_group(tmp_path, mode="r", use_consolidated=use_consolidated)
        assert [path for path, _ in ours.members(None)] == ["a", "a/b", "a/b/x"]
        assert repr(dict(ours.attrs)) == repr(dict(root.attrs))
        assert ours["a/b/x"].metadata.dimension_names == ("t",)
        assert ours["a/b/x"][...].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["types", "special", "codecs"])
def test_written_documents_are_read_by_zarr_python(zarr, name, tmp_path):
    """zarr-python 3 reads the zarr.json files that are written next to v2 documents, and finds the same elements."""
    from formats.v2_hierarchies import HIERARCHIES, disk

    v2.write_documents(disk(name, tmp_path))
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = zarrlite.open_group(tmp_path, mode="r")
        for path in HIERARCHIES[name]["arrays"]:
            array = ours[path]
            data_type = array.metadata.data_type.name
            codecs = {codec.name for codec in array.metadata.codecs}
            if data_type.startswith("r") or data_type == "struct" or any(c.startswith("numcodecs.") for c in codecs):
                continue  # zarr-python 3.1 uses other names for these types, and warns about these codecs
            theirs = zarr.open_array(tmp_path / path, mode="r", zarr_format=3)
            assert_same(array[...], theirs[...], path)
            compared += 1
    assert compared > 15


# tensorstore

TENSORSTORE_COMPRESSORS: list[Any] = [
    None,
    {"id": "zlib", "level": 1},
    {"id": "gzip", "level": 1},
    {"id": "bz2", "level": 1},
    {"id": "zstd", "level": 1},
    {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0},
    {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2, "blocksize": 0},
]


@pytest.mark.parametrize(
    "dtype", ["|b1", "|u1", "|i1", "<i2", ">u2", "<i4", ">i8", "<u8", "<f2", ">f4", "<f8", "<c8", ">c16"]
)
def test_arrays_written_by_tensorstore_read_the_same_in_both_libraries(tensorstore, dtype, tmp_path):
    layouts = ("C.", "F/", "C/", "F.")
    for i, (compressor, (order, separator)) in enumerate(itertools.product(TENSORSTORE_COMPRESSORS, layouts)):
        kvstore = {"driver": "file", "path": f"{tmp_path}/{i}/", "file_io_sync": False}
        metadata = {
            "shape": SHAPE,
            "chunks": CHUNKS,
            "dtype": dtype,
            "compressor": compressor,
            "order": order,
            "fill_value": [1, 2] if "c" in dtype else 1,
            "dimension_separator": separator,
        }
        if dtype == "|b1":
            metadata["fill_value"] = True
        spec = {"driver": "zarr", "kvstore": kvstore, "metadata": metadata}
        theirs = tensorstore.open(spec, create=True).result()
        theirs[1:6, 2:8] = numbers(dtype, (5, 6)).astype(theirs.dtype.numpy_dtype)
        assert_same(zarrlite.open_array(tmp_path / str(i), mode="r")[...], theirs.read().result(), metadata)


# z5py


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_arrays_written_by_z5py_read_the_same_in_both_libraries(z5py, dtype, tmp_path):
    file = z5py.File(str(tmp_path / "z.zarr"), mode="a", use_zarr_format=True)
    for compression in ("raw", "zlib", "bzip2", "blosc", "zstd"):
        file.create_dataset(f"g/{compression}", data=numbers(dtype), chunks=CHUNKS, compression=compression)
        file[f"g/{compression}"].attrs["unit"] = "nm"
    ours = zarrlite.open_group(tmp_path / "z.zarr", mode="r")
    for compression in ("raw", "zlib", "bzip2", "blosc", "zstd"):
        assert_same(ours[f"g/{compression}"][...], file[f"g/{compression}"][...], compression)
        assert dict(ours[f"g/{compression}"].attrs) == {"unit": "nm"}


# netCDF-C


def test_variables_written_by_netcdf_read_the_same_in_both_libraries(netcdf, tmp_path):
    url = f"file://{tmp_path}/a.zarr#mode=nczarr,file"
    with netcdf.Dataset(url, "w") as file:
        file.title, file.nan = "hello", np.float32("nan")
        for name, length in {"y": 40, "x": 70}.items():
            file.createDimension(name, length)
        for dtype in (*INTEGERS, "f4", "f8"):
            file.createVariable(f"type-{dtype}", dtype, ("y", "x"), chunksizes=(16, 32))[...] = numbers(dtype, (40, 70))
            file.createVariable(f"missing-{dtype}", dtype, ("y",), fill_value=np.array(7, dtype)[()])
        letters = (numbers("u1", (40, 70)) % 26 + 97).view("S1")
        file.createVariable("letters", "S1", ("y", "x"), chunksizes=(16, 32))[...] = letters
        for compression, shuffle in itertools.product(
            ("zlib", "zstd", "bzip2", "blosc_lz4", "blosc_zstd"), (False, True)
        ):
            options = {"compression": compression, "shuffle": shuffle, "chunksizes": (16, 32)}
            variable = file.createVariable(f"{compression}-{shuffle}", "i4", ("y", "x"), **options)
            variable[...] = numbers("i4", (40, 70)) // 9
        file.createVariable("checked", "i4", ("y", "x"), fletcher32=True)[...] = numbers("i4", (40, 70))
        file.createVariable("nan", "f4", ("y",), fill_value=np.float32("nan"))[:5] = 1
        file.createGroup("g/h").createVariable("deep", "f8", ("x",))[...] = numbers("f8", (70,))
    ours = zarrlite.open_group(tmp_path / "a.zarr", mode="r")
    assert ours.attrs["title"] == "hello"
    with netcdf.Dataset(url) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        for name, variable in {**file.variables, "g/h/deep": file["g/h/deep"]}.items():
            assert_same(ours[name][...], variable[...], name)
            assert ours[name].metadata.dimension_names == variable.dimensions
    assert len(list(ours.arrays())) == 33


CDL = """netcdf a {
dimensions: t = 3; x = 4;
variables:
  byte b(t); b:_FillValue = -1b;
  char c(t, x);
  float f(t, x); f:_FillValue = NaNf; f:units = "K"; f:missing_value = NaNf;
  double d(x); int i(t); int64 l(t); uint64 ul(x); ubyte ub(t); ushort us(t); short sh(t); uint u(x);
  int scalar;
  :title = "hello"; :odd = NaN;
data:
  b = 1, 2, 3; c = "abcd", "efgh", "ij"; f = 1, 2, 3, 4.5, 5, 6, 7, 8, 9, 10, 11, _; d = 1, 2.25, -3, 4; i = 1, 2, 3;
  l = 1, -2, 3; ul = 1, 2, 3, 18446744073709551615ull; ub = 1, 2, 255; us = 1, 2, 3; sh = 1, -2, 3; u = 1, 2, 3, 4;
  scalar = 7;
group: g { variables: double q(t); data: q = 1, 2, 3; }
}
"""


@pytest.mark.parametrize("mode", ["nczarr", "zarr"])
def test_hierarchies_of_nccopy_have_the_elements_that_it_copied(mode, tmp_path):
    for tool in ("ncgen", "nccopy", "ncdump"):
        if shutil.which(tool) is None:
            lacking(f"{tool} is not installed (Debian: netcdf-bin)")
    (tmp_path / "a.cdl").write_text(CDL)
    url = f"file://{tmp_path}/a.zarr#mode={mode},file"
    subprocess.run(["ncgen", "-4", "-o", "a.nc", "a.cdl"], cwd=tmp_path, check=True)
    subprocess.run(["nccopy", "a.nc", url], cwd=tmp_path, check=True)
    source = tmp_path / "a.nc"  # not the Zarr hierarchy, on which ncdump 4.9.0 crashes
    dumped = subprocess.run(["ncdump", "-p", "9,17", source], capture_output=True, check=True, text=True).stdout
    ours = zarrlite.open_group(tmp_path / "a.zarr", mode="r")
    names = ["b", "d", "f", "g/q", "i", "l", "scalar", "sh", "u", "ub", "ul", "us"]
    for name in names:
        text = re.search(rf"^ *{name.removeprefix('g/')} = *([^;]*);", dumped, re.MULTILINE)[1]
        values = [np.nan if value.strip() in ("_", "NaN", "NaNf") else value.strip() for value in text.split(",")]
        array = ours[name]
        assert_same(array[...].ravel(), np.array([np.array(v, array.dtype) for v in values], array.dtype), name)
    assert ours["f"].metadata.dimension_names == ("t", "x")
    assert np.isnan(ours["f"].attrs["missing_value"])
    assert np.isnan(ours.attrs["odd"])
    if mode == "nczarr":
        assert ours["c"][...].tobytes() == b"abcdefghij\0\0"
    else:  # netCDF-C uses <U1 for single-byte characters, which readers cannot know without nczarr metadata
        with pytest.raises(zarrlite.TruncatedError, match="48"):
            ours["c"][...]


# GDAL


@pytest.mark.parametrize("dtype", [*INTEGERS, "f4", "f8", "c8", "c16"])
def test_rasters_written_by_gdal_read_the_same_in_both_libraries(rasterio, dtype, tmp_path):
    data = numbers(dtype)
    compressions = ("NONE", "ZLIB", "GZIP", "BLOSC", "ZSTD", "LZMA")
    settings = [{}, {"BLOCKSIZE": "4,3", "DIM_SEPARATOR": "/"}]
    nodata = [None, 5, *([float("nan")] if dtype[0] == "f" else [])]
    size = {"width": SHAPE[1], "height": SHAPE[0], "count": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rasterio warns about rasters without georeferencing
        for i, (compression, options, value) in enumerate(itertools.product(compressions, settings, nodata)):
            path = tmp_path / f"{i}.zarr"
            with rasterio.MemoryFile() as memory:
                with memory.open(driver="GTiff", dtype=np.dtype(dtype).name, nodata=value, **size) as source:
                    source.write(data, 1)
                with memory.open() as source:
                    rasterio.shutil.copy(source, path, driver="Zarr", COMPRESS=compression, FORMAT="ZARR_V2", **options)
            with rasterio.open(path) as theirs:
                array = zarrlite.open_group(path, mode="r")[str(i)]
                assert_same(array[...], theirs.read(1), (compression, options, value))
            fill_value = array.metadata.extra["zarr_v2"]["fill_value"]
            assert fill_value == (value if value is None or value == value else "NaN")
