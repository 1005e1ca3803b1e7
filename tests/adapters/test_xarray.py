"""The xarray engine opens the same datasets as `engine="zarr"`, lazily, in threads and processes, from any store."""

from __future__ import annotations

import asyncio
import json
import pickle
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import numpy as np
import pytest
import xarray as xr
from adapters.random_datasets import dataset
from distributed import Client
from remote.servers import SeaweedFS
from required import lacking

import zarrlite
from zarrlite.bridge import ZarrStore

pytestmark = pytest.mark.filterwarnings("ignore")  # xarray and zarr-python warn about upcoming changes
NUMBERS = range(224)  # seeds of the random datasets, of which 84 are written as Zarr v2


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return tmp_path_factory.mktemp("datasets")


def written(root: Path, number: int) -> str:
    """Write a random dataset with zarr-python, and return its path."""
    path = root / f"{number}.zarr"
    if not path.exists():
        made, encoding = dataset(number)
        version = 2 if number % 4 == 3 or number % 8 == 6 else 3
        if version == 2:
            for options in encoding.values():
                options.pop("shards", None)
        made.to_zarr(path, zarr_format=version, encoding=encoding, consolidated=number % 2 == 0)
    return str(path)


@pytest.mark.parametrize("numbers", [NUMBERS[i::10] for i in range(10)], ids=lambda numbers: f"from {numbers[0]}")
def test_datasets_are_identical_to_those_of_zarr_python(root: Path, numbers: range) -> None:
    for number in numbers:
        path = written(root, number)
        expected = xr.open_dataset(path, engine="zarr", consolidated=number % 2 == 0)
        found = xr.open_dataset(path, engine="zarrlite")
        xr.testing.assert_identical(found.load(), expected.load())
        for name in expected.variables:
            for member in ("chunks", "shards", "_FillValue", "scale_factor", "units"):
                assert str(found[name].encoding.get(member)) == str(expected[name].encoding.get(member))


@pytest.mark.parametrize("options", [{"mask_and_scale": False}, {"decode_times": False}, {"decode_coords": False}])
def test_decoding_options_have_the_same_effect_as_in_zarr_python(root: Path, options: dict[str, bool]) -> None:
    for number in NUMBERS[:20]:
        path = written(root, number)
        expected = xr.open_dataset(path, engine="zarr", consolidated=number % 2 == 0, **options)
        found = xr.open_dataset(path, engine="zarrlite", **options)
        xr.testing.assert_identical(found.load(), expected.load())


def test_dropped_variables_are_not_opened(root: Path) -> None:
    path = written(root, 3)
    names = list(xr.open_dataset(path, engine="zarrlite").variables)
    assert names[0] not in xr.open_dataset(path, engine="zarrlite", drop_variables=names[0]).variables


def test_datasets_can_be_pickled_and_indexed_by_threads(root: Path) -> None:
    found = pickle.loads(pickle.dumps(xr.open_dataset(written(root, 5), engine="zarrlite")))
    expected = xr.open_dataset(written(root, 5), engine="zarrlite").load()
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: found.copy(deep=True).load(), range(16)):
            xr.testing.assert_identical(result, expected)


def test_opening_reads_no_chunk_and_indexing_reads_only_the_chunks_it_needs() -> None:
    store = zarrlite.MemoryStore()
    group = zarrlite.create_group(store)
    group.create_array("t", data=np.arange(100.0), chunks=10, dimension_names=["x"])
    requested: list[str] = []

    class Recording(zarrlite.Store):
        def get(self, key: str, byte_range: zarrlite.ByteRange = zarrlite.ByteRange()) -> object:
            requested.append(key)
            return store.get(key, byte_range)

        def list(self) -> Iterator[str]:
            return store.list()

    found = xr.open_dataset(Recording(), engine="zarrlite")
    assert not [key for key in requested if "/c/" in key]
    assert found["t"].isel(x=slice(12, 19)).values.tolist() == list(range(12, 19))
    assert {key for key in requested if "/c/" in key} == {"t/c/1"}


def test_all_kinds_of_indexing_agree_with_numpy(root: Path) -> None:
    data = np.arange(60).reshape(6, 10)
    group = zarrlite.create_group(root / "indexing.zarr")
    group.create_array("t", data=data, chunks=(2, 3), shards=(4, 6), dimension_names=["x", "y"])
    t = xr.open_dataset(root / "indexing.zarr", engine="zarrlite")["t"]
    rows, columns = [4, 0, 5], [9, 2, 2]
    assert (t[1:5, ::3].values == data[1:5, ::3]).all()
    assert (t[rows, columns].values == data[np.ix_(rows, columns)]).all()
    points = t.isel(x=xr.DataArray(rows, dims="p"), y=xr.DataArray(columns, dims="p"))
    assert (points.values == data[rows, columns]).all()
    assert t[-1, 3].item() == data[-1, 3]


@pytest.mark.parametrize(
    ("options", "blocks"),
    [
        ({"chunks": 2, "shards": 4}, (4, 4, 2)),
        ({"chunks": 4}, (4, 4, 2)),
        ({"chunks": [[2, 5, 3]]}, (2, 5, 3)),
        ({"chunks": 1, "shards": [[2, 5, 3]]}, (2, 5, 3)),
    ],
)
def test_shards_are_the_blocks_of_lazy_datasets(options: dict[str, object], blocks: tuple[int, ...]) -> None:
    group = zarrlite.create_group({})
    group.create_array("t", data=np.arange(10), dimension_names=["x"], **options)  # type: ignore[arg-type]
    found = xr.open_dataset(group.store, engine="zarrlite", chunks={})
    assert found["t"].chunks == (blocks,)
    assert found["t"].values.sum() == 45


def test_processes_of_a_cluster_read_lazy_datasets(root: Path, cluster: Client) -> None:
    found = xr.open_dataset(written(root, 5), engine="zarrlite", chunks={})
    with dask.config.set(scheduler=cluster):
        xr.testing.assert_identical(found.compute(), xr.open_dataset(written(root, 5), engine="zarrlite").load())


def test_datasets_are_loaded_asynchronously(root: Path) -> None:
    found = asyncio.run(xr.open_dataset(written(root, 5), engine="zarrlite").load_async())
    xr.testing.assert_identical(found, xr.open_dataset(written(root, 5), engine="zarrlite").load())


def test_metadata_consolidated_in_the_root_is_used_for_groups_below() -> None:
    store = zarrlite.MemoryStore()
    zarrlite.create_group(store).create_array("a/b/t", data=np.arange(3), dimension_names=["x"])
    zarrlite.consolidate_metadata(store)
    requested: list[str] = []

    class Recording(zarrlite.Store):
        def get(self, key: str, byte_range: zarrlite.ByteRange = zarrlite.ByteRange()) -> object:
            requested.append(key)
            return store.get(key, byte_range)

    found = xr.open_dataset(Recording(), engine="zarrlite", group="/a/b")
    assert (list(found), requested) == (["t"], ["zarr.json"])
    requested.clear()
    tree = xr.open_datatree(Recording(), engine="zarrlite")
    assert (tree.groups, requested) == (("/", "/a", "/a/b"), ["zarr.json"])


@pytest.mark.parametrize("consolidated", [True, False])
def test_remote_datasets_and_trees_are_read_and_written(seaweedfs: SeaweedFS, consolidated: bool) -> None:
    options = seaweedfs.settings()
    url = f"s3://{SeaweedFS.bucket}/{uuid.uuid4().hex}"
    expected = []
    for i in range(3):
        made = xr.Dataset({"t": ("x", np.arange(4.0) + 4 * i, {"units": "K"})}, {"x": np.arange(4) + 4 * i})
        store = ZarrStore(zarrlite.ObjectStore(f"{url}/{i}", **options))
        made.to_zarr(store, zarr_format=3, consolidated=consolidated)
        expected.append(made)
    found = xr.open_dataset(f"{url}/1", engine="zarrlite", storage_options=options, consolidated=consolidated)
    xr.testing.assert_identical(found.load(), expected[1])
    paths = [f"{url}/{i}" for i in range(3)]
    joined = xr.open_mfdataset(paths, engine="zarrlite", storage_options=options, parallel=True)
    xr.testing.assert_identical(joined.load(), xr.concat(expected, "x"))
    tree = xr.DataTree.from_dict({"/a": expected[0], "/b/c": expected[1]})
    tree.to_zarr(ZarrStore(zarrlite.ObjectStore(f"{url}/tree", **options)), zarr_format=3, consolidated=consolidated)
    opened = xr.open_datatree(f"{url}/tree", engine="zarrlite", storage_options=options)
    xr.testing.assert_identical(opened.load(), tree)


def test_regions_and_appended_parts_are_written_through_the_adapter(tmp_path: Path) -> None:
    store = ZarrStore(tmp_path / "a.zarr")
    whole = xr.Dataset({"t": (("time", "x"), np.arange(24.0).reshape(6, 4))}, {"time": np.arange(6)})
    whole.isel(time=slice(0, 2)).to_zarr(store, zarr_format=3)
    whole.isel(time=slice(2, 6)).to_zarr(store, append_dim="time")
    changed = (whole.isel(time=slice(1, 3)) + 100).drop_vars("time")
    changed.to_zarr(store, region={"time": slice(1, 3)})
    found = xr.open_dataset(tmp_path / "a.zarr", engine="zarrlite").load()
    assert found["t"].values.tolist() == (whole["t"].values + 100 * np.isin(np.arange(6), [1, 2])[:, None]).tolist()
    assert found["time"].values.tolist() == list(range(6))


def test_trees_are_identical_to_those_of_zarr_python(root: Path) -> None:
    first, second = dataset(1)[0], dataset(2)[0]
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs={"title": "root"}), "/a": first, "/b/c": second})
    tree.to_zarr(root / "tree.zarr", zarr_format=3)
    for options in ({}, {"group": "a"}):
        expected = xr.open_datatree(root / "tree.zarr", engine="zarr", **options)
        found = xr.open_datatree(root / "tree.zarr", engine="zarrlite", **options)
        xr.testing.assert_identical(found.load(), expected.load())
    part = xr.open_dataset(root / "tree.zarr", engine="zarrlite", group="b/c")
    xr.testing.assert_identical(part.load(), xr.open_dataset(root / "tree.zarr", engine="zarr", group="b/c").load())


def test_several_files_are_opened_as_one_dataset(root: Path) -> None:
    for i in range(3):
        xr.Dataset({"t": ("x", np.arange(4) + 4 * i)}, {"x": np.arange(4) + 4 * i}).to_zarr(
            root / f"part{i}.zarr", zarr_format=3
        )
    paths = [str(root / f"part{i}.zarr") for i in range(3)]
    found = xr.open_mfdataset(paths, engine="zarrlite")
    assert found["t"].values.tolist() == list(range(12))


def test_a_dataset_can_be_written_again_with_its_encoding(root: Path) -> None:
    found = xr.open_dataset(written(root, 8), engine="zarrlite")
    found.to_zarr(root / "again.zarr", zarr_format=3)
    again = xr.open_dataset(root / "again.zarr", engine="zarrlite")
    xr.testing.assert_identical(again.load(), found.load())


def test_the_encoding_of_a_variable_contains_its_codecs(root: Path) -> None:
    group = zarrlite.create_group(root / "codecs.zarr")
    made = group.create_array(
        "t",
        data=np.arange(24, dtype="i4").reshape(4, 6),
        chunks=(1, 3),
        shards=(2, 6),
        filters=[{"name": "transpose", "configuration": {"order": [1, 0]}}],
        serializer={"name": "bytes", "configuration": {"endian": "big"}},
        compressors=[{"name": "gzip", "configuration": {"level": 3}}, "crc32c"],
        dimension_names=["x", "y"],
        fill_value=7,
    )
    xr.open_dataset(root / "codecs.zarr", engine="zarrlite").to_zarr(root / "codecs2.zarr", zarr_format=3)
    again = zarrlite.open_array(root / "codecs2.zarr/t", mode="r")
    assert again.metadata.codecs == made.metadata.codecs
    assert (again.chunks, again.shards, again.fill_value) == ((1, 3), (2, 6), 7)


def test_a_dataset_of_zarr_v2_is_written_in_either_version(root: Path) -> None:
    made = xr.Dataset({"t": ("x", np.array([1.5, np.nan, 3]))})
    made.to_zarr(root / "v2.zarr", zarr_format=2, encoding={"t": {"_FillValue": -9.0, "chunks": (2,)}})
    found = xr.open_dataset(root / "v2.zarr", engine="zarrlite")
    assert found["t"].encoding["_FillValue"] == -9
    for version in (2, 3):
        found.to_zarr(root / f"v2-{version}.zarr", zarr_format=version)
        again = xr.open_dataset(root / f"v2-{version}.zarr", engine="zarrlite")
        xr.testing.assert_identical(again.load(), made)


def test_arrays_without_dimension_names_are_refused_with_their_path(root: Path) -> None:
    zarrlite.create_group(root / "unnamed.zarr").create_array("t", data=[1, 2])
    with pytest.raises(zarrlite.MetadataError, match="/t must have dimension_names"):
        xr.open_dataset(root / "unnamed.zarr", engine="zarrlite")


CDL = """
netcdf source {
dimensions: t = 3; y = 2; x = 4;
variables:
  double t(t); t:units = "days since 2000-01-01";
  float temperature(t, y, x); temperature:_FillValue = -999.f; temperature:units = "K";
  short packed(y, x); packed:_FillValue = -1s; packed:scale_factor = 0.5;
  :title = "made by netCDF-C";
data: t = 0, 1, 2; temperature = 1, 2, 3, 4, 5, 6, _, 8; packed = 1, 2, 3, 4, _, 6, 7, 8;
group: inner { dimensions: z = 2; variables: double q(z, x); data: q = 1, 2, 3, 4, 5, 6, 7, 8; }
}
"""


@pytest.mark.parametrize("group", [None, "inner"])
@pytest.mark.parametrize("with_names", [True, False])
def test_dimensions_of_netcdf_are_the_same_as_with_zarr_python(tmp_path: Path, with_names: bool, group: str) -> None:
    for tool in ("ncgen", "nccopy"):
        if shutil.which(tool) is None:
            lacking(f"{tool} is not installed (Debian: netcdf-bin)")
    (tmp_path / "a.cdl").write_text(CDL)
    url = f"file://{tmp_path}/a.zarr#mode=nczarr,file"
    subprocess.run(["ncgen", "-4", "-o", "a.nc", "a.cdl"], cwd=tmp_path, check=True)
    subprocess.run(["nccopy", "a.nc", url], cwd=tmp_path, check=True)
    if not with_names:
        for path in (tmp_path / "a.zarr").rglob(".zattrs"):
            attributes = json.loads(path.read_text())
            attributes.pop("_ARRAY_DIMENSIONS", None)
            path.write_text(json.dumps(attributes))
    found = xr.open_dataset(tmp_path / "a.zarr", engine="zarrlite", group=group)
    expected = xr.open_dataset(tmp_path / "a.zarr", engine="zarr", group=group, consolidated=False)
    assert dict(found.sizes) == ({"z": 2, "x": 4} if group else {"t": 3, "y": 2, "x": 4})
    xr.testing.assert_identical(found.load(), expected.load())


def test_a_missing_dataset_is_an_error_that_names_it(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        xr.open_dataset(root / "nowhere.zarr", engine="zarrlite")
