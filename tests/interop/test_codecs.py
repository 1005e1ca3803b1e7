"""Arrays with the codecs of numcodecs and of the extension registry are exchanged with zarr-python and zarrs.

tensorstore supports none of these codecs. zarr-python 3.1 supports those of numcodecs. zarrs supports some of both, in
the package zarrs (0.22 and earlier) or in zarrista (the newest). zarr-python 3.2 uses cast-value-rs for `cast_value`.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from tests.codecs import exact_numbers as exact
from tests.interop.conftest import ZarrPython
from tests.required import lacking
from zarrlite.codecs.numbers import convert, number_type

pytestmark = [
    pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification"),
    pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec disables partial reads"),
]


def codec(name: str, **configuration: Any) -> Any:
    return {"name": name, "configuration": configuration}


def numcodecs(name: str, **configuration: Any) -> Any:
    return codec(f"numcodecs.{name}", **configuration)


LITTLE, BIG = codec("bytes", endian="little"), codec("bytes", endian="big")
NUMBERS = np.resize(np.array([0, 1, -1, 1.5, 100.25, -3, 7, 7, 1000]), (37, 50))
PCODEC = numcodecs("pcodec", level=8, mode_spec="auto", delta_spec="auto", equal_pages_up_to=100)
INDEX = [LITTLE, codec("crc32c")]


def sharding(*codecs: Any) -> Any:
    return codec("sharding_indexed", chunk_shape=[8, 8], codecs=[*codecs], index_codecs=INDEX, index_location="end")


COMPRESSORS = {
    "zlib": [numcodecs("zlib", level=3)],
    "gzip": [numcodecs("gzip", level=3)],
    "bz2": [numcodecs("bz2", level=3)],
    "lzma": [numcodecs("lzma", preset=1)],
    "lzma-alone": [numcodecs("lzma", format=2, preset=1)],
    "lzma-raw": [numcodecs("lzma", format=3, filters=[{"id": 3, "dist": 4}, {"id": 33, "preset": 1}])],
    "lz4": [numcodecs("lz4", acceleration=2)],
    "zstd": [numcodecs("zstd", level=5)],
    "blosc": [numcodecs("blosc", cname="zstd", clevel=5, shuffle=2, blocksize=0)],
    "shuffle": [numcodecs("shuffle", elementsize=4)],
    "crc32": [numcodecs("crc32")],
    "crc32-end": [numcodecs("crc32", location="end")],
    "crc32c": [numcodecs("crc32c")],
    "crc32c-start": [numcodecs("crc32c", location="start")],
    "adler32": [numcodecs("adler32")],
    "fletcher32": [numcodecs("fletcher32")],
    "jenkins_lookup3": [numcodecs("jenkins_lookup3", initval=3)],
    "hdf5": [numcodecs("shuffle", elementsize=4), numcodecs("zlib", level=4), numcodecs("fletcher32")],
}
# name: codecs, data type, peers
CASES: dict[str, tuple[list[Any], str, tuple[str, ...]]] = {
    **{name: ([LITTLE, *codecs], "float32", ("zarr",)) for name, codecs in COMPRESSORS.items()},
    **{f"{name}-zarrs": ([BIG, *COMPRESSORS[name]], "int32", ("zarrs_core",)) for name in ("zlib", "bz2", "shuffle")},
    "shard": ([sharding(LITTLE, *COMPRESSORS["hdf5"])], "float32", ("zarr",)),
    "astype": ([numcodecs("astype", encode_dtype="<f8", decode_dtype="<f4"), LITTLE], "float32", ("zarr",)),
    "bitround": ([numcodecs("bitround", keepbits=9), LITTLE], "float32", ("zarr", "zarrista")),
    "bitround-registered": ([codec("bitround", keepbits=9), LITTLE], "float32", ("zarrista",)),
    "bitround-integers": ([codec("bitround", keepbits=7), BIG], "uint16", ("zarrista",)),
    "delta": ([numcodecs("delta", dtype="<i4"), LITTLE], "int32", ("zarr",)),
    "delta-astype": ([numcodecs("delta", dtype="<i4", astype="<i2"), LITTLE], "int32", ("zarr",)),
    "fixedscaleoffset": (
        [numcodecs("fixedscaleoffset", offset=1, scale=4, dtype="<f4", astype="<i4"), LITTLE],
        "float32",
        ("zarr", "zarrs_core", "zarrista"),
    ),
    "quantize": ([numcodecs("quantize", digits=2, dtype="<f4"), LITTLE], "float32", ("zarr",)),
    "packbits": ([numcodecs("packbits"), codec("bytes")], "bool", ("zarr",)),
    "pcodec": ([PCODEC], "float32", ("zarr", "zarrs_core")),
    "pcodec-integers": ([PCODEC], "int16", ("zarr", "zarrs_core")),
    "zfpy": ([numcodecs("zfpy", mode=4, tolerance=0.25)], "float32", ("zarr",)),
    "filters": (
        [numcodecs("delta", dtype="<i4"), LITTLE, numcodecs("shuffle", elementsize=4), numcodecs("bz2", level=1)],
        "int32",
        ("zarr",),
    ),
    "filter-in-shard": ([sharding(numcodecs("delta", dtype="<i4"), LITTLE)], "int32", ("zarr",)),
    # only astype: zarr-python flattens the elements for other filters, so `sharding_indexed` cannot come after these
    "filter-around-shard": (
        [numcodecs("astype", encode_dtype="<f8", decode_dtype="<f4"), sharding(LITTLE)],
        "float32",
        ("zarr",),
    ),
    "reshape": ([codec("reshape", shape=[[0, 1]]), LITTLE], "int32", ("zarrista",)),
    "reshape-split": ([codec("reshape", shape=[8, 2, 24]), BIG, codec("crc32c")], "int32", ("zarrista",)),
}


ROWS = [pytest.param(name, peer, id=f"{peer}-{name}") for name, (_, _, peers) in CASES.items() for peer in peers]


@pytest.mark.parametrize(("name", "peer"), ROWS, indirect=["peer"])
def test_arrays_are_exchanged(name: str, peer: Any, tmp_path: Path) -> None:
    codecs, data_type, _ = CASES[name]
    values = (abs(NUMBERS) if data_type.startswith("uint") else NUMBERS).astype(data_type)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(values.shape),
        "data_type": data_type,
        "chunk_grid": codec("regular", chunk_shape=[16, 24]),
        "chunk_key_encoding": codec("default", separator="/"),
        "fill_value": data_type == "bool" or 7,
        "codecs": codecs,
        "attributes": {},
    }
    peer.write(tmp_path / "theirs", document, values)
    theirs = zarrlite.open_array(str(tmp_path / "theirs"), mode="r+")
    assert np.allclose(theirs[...], values, rtol=0.01, atol=0.5)
    np.testing.assert_array_equal(theirs[...], peer.read(tmp_path / "theirs"))
    ours = zarrlite.create_array(
        str(tmp_path / "ours"),
        shape=values.shape,
        dtype=data_type,
        chunks=(16, 24),
        codecs=codecs,
        fill_value=document["fill_value"],
    )
    ours[...] = values
    np.testing.assert_array_equal(peer.read(tmp_path / "ours"), theirs[...])
    if isinstance(peer, ZarrPython) and not (name == "gzip" or "shard" in name):  # gzip headers contain the time
        for chunk in sorted((tmp_path / "theirs").rglob("c/*/*")):
            assert chunk.read_bytes() == (tmp_path / "ours" / chunk.relative_to(tmp_path / "theirs")).read_bytes()
    part = (slice(10, 20), slice(20, 30))
    theirs[part] = values[:10, :10]
    peer.update(tmp_path / "ours", part, values[:10, :10])
    np.testing.assert_array_equal(peer.read(tmp_path / "theirs"), theirs[...])
    np.testing.assert_array_equal(peer.read(tmp_path / "ours"), ours[...])
    assert json.loads((tmp_path / "ours/zarr.json").read_text())["codecs"][0]["name"] == codecs[0]["name"]


@pytest.mark.parametrize("source", [*exact.NATIVE_INTEGERS, *exact.NATIVE_FLOATS])
def test_numbers_are_cast_as_zarr_python_casts_them(source: str) -> None:
    """Large numbers are left out: cast-value-rs rounds integers twice, and clamps and wraps floats incorrectly."""
    try:
        cast_array = import_module("cast_value_rs").cast_array
    except ImportError:
        lacking("cast-value-rs is not installed")
    values = exact.edge_values(source)
    for target in (*exact.NATIVE_INTEGERS, *exact.NATIVE_FLOATS):
        types: Any = number_type(exact.data_type(source)), number_type(exact.data_type(target))
        for rounding in exact.ROUNDINGS:
            for out_of_range in (None, "clamp") if "int" in target else (None,):
                expected = [exact.cast(n, target, rounding, out_of_range) for n in exact.elements(values)]
                fits = np.array([e is not None for e in expected])
                fits &= ~(abs(values.astype("f8")) >= 2**24)
                theirs = cast_array(
                    values[fits], target_dtype=target, rounding_mode=rounding, out_of_range_mode=out_of_range
                )
                np.testing.assert_array_equal(theirs, convert(values[fits], *types, rounding, out_of_range))
