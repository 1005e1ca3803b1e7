"""Dask arrays from and to zarrlite: one task for each shard or chunk, on threads, processes and a cluster."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import zarrlite
from zarrlite import ArgumentError, Array

DATA = np.arange(6000).reshape(60, 100)


@pytest.fixture
def array(tmp_path: Path) -> Array:
    return zarrlite.create_array(
        tmp_path / "a.zarr", data=DATA, chunks=(5, 10), shards=(20, 30), attributes={"a": "b" * 9000}
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with (
        dask.config.set({"distributed.worker.daemon": False}),
        LocalCluster(2, processes=True, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as machines,
        Client(machines) as client,
    ):
        yield client


def test_blocks_are_shards_or_chunks(array: Array) -> None:
    assert array.to_dask().chunks == ((20, 20, 20), (30, 30, 30, 10))
    assert zarrlite.create_array({}, data=DATA, chunks=(40, 70)).to_dask().chunks == ((40, 20), (70, 30))
    assert array.to_dask(chunks=(60, 50)).chunks == ((60,), (50, 50))


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_values_are_those_of_the_array(array: Array, scheduler: str) -> None:
    lazy = array.to_dask()
    assert lazy.dtype == array.dtype
    assert (lazy.compute(scheduler=scheduler) == DATA).all()
    assert (lazy[3:41, ::7].compute(scheduler=scheduler) == DATA[3:41, ::7]).all()


def test_equal_arrays_have_equal_names_and_others_have_not(array: Array, tmp_path: Path) -> None:
    again = zarrlite.open_array(tmp_path / "a.zarr", mode="r")
    assert again.to_dask().name == array.to_dask().name
    other = zarrlite.create_array(tmp_path / "b.zarr", data=DATA, chunks=(5, 10), shards=(20, 30))
    assert other.to_dask().name != array.to_dask().name


def test_a_task_carries_a_small_pickle_without_attributes(array: Array) -> None:
    lazy = array.to_dask()
    document = len(str(array.metadata.replace(attributes=None).to_json()))
    (task, *_) = dict(lazy.__dask_graph__()).values()
    assert len(pickle.dumps(task)) < 1024 + document


@pytest.mark.parametrize("blocks", [(20, 30), (40, 60), (60, 100), (7, 13), ((10, 50), (100,))])
def test_blocks_that_share_a_shard_are_rechunked(blocks: Any, tmp_path: Path) -> None:
    target = zarrlite.create_array(tmp_path / "t.zarr", shape=DATA.shape, dtype="i8", chunks=(5, 10), shards=(20, 30))
    zarrlite.store_dask(da.from_array(DATA, blocks), target)
    assert (target[...] == DATA).all()


def test_blocks_that_share_a_shard_are_refused_on_request(tmp_path: Path) -> None:
    target = zarrlite.create_array(tmp_path / "t.zarr", shape=DATA.shape, dtype="i8", chunks=(5, 10), shards=(20, 30))
    with pytest.raises(ArgumentError, match=r"blocks \(7, 13\) must be multiples of \(20, 30\)"):
        zarrlite.store_dask(da.from_array(DATA, (7, 13)), target, align="error")
    with pytest.raises(ArgumentError, match=r"the shape of the dask array must be \(60, 100\)"):
        zarrlite.store_dask(da.zeros((3, 3)), target)
    assert target.nchunks_initialized == 0


def test_each_shard_is_written_by_one_task(tmp_path: Path) -> None:
    target = zarrlite.create_array(tmp_path / "t.zarr", shape=DATA.shape, dtype="i8", chunks=(5, 10), shards=(20, 30))
    delayed = zarrlite.store_dask(da.from_array(DATA, (7, 13)), target, compute=False)
    assert target.nchunks_initialized == 0
    delayed.compute()
    assert (target[...] == DATA).all()


def test_an_array_is_created_from_a_dask_array(tmp_path: Path) -> None:
    regular = zarrlite.from_dask(da.from_array(DATA, (25, 100)), tmp_path / "r.zarr", attributes={"x": 1})
    assert (regular.chunks, dict(regular.attrs)) == ((25, 100), {"x": 1})
    irregular = zarrlite.from_dask(da.from_array(DATA, ((10, 50), (100,))), tmp_path / "i.zarr", name="a/b")
    assert irregular.path == "a/b"
    sharded = zarrlite.from_dask(da.from_array(DATA, (25, 100)), tmp_path / "s.zarr", chunks=(5, 5), shards=(20, 20))
    for made in (regular, irregular, sharded):
        assert (made[...] == DATA).all()


def test_workers_of_a_cluster_read_and_write(cluster: Client, array: Array, tmp_path: Path) -> None:
    target = zarrlite.from_dask(array.to_dask() * 2, tmp_path / "t.zarr", chunks=(5, 10), shards=(20, 30))
    assert (target[...] == DATA * 2).all()
    assert target.to_dask().sum().compute() == 2 * DATA.sum()
