"""Conversion to and from dask arrays: one task for each shard or chunk, run in threads, processes and a cluster."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.diagnostics import ProgressBar
from distributed import Client

import zarrlite
from zarrlite import ArgumentError, Array
from zarrlite.adapters.tasks import for_tasks

DATA = np.arange(6000).reshape(60, 100)


@pytest.fixture
def array(tmp_path: Path) -> Array:
    return zarrlite.create_array(
        tmp_path / "a.zarr", data=DATA, chunks=(5, 10), shards=(20, 30), attributes={"a": "b" * 9000}
    )


def test_blocks_are_shards_or_chunks(array: Array) -> None:
    assert array.to_dask().chunks == ((20, 20, 20), (30, 30, 30, 10))
    assert zarrlite.create_array({}, data=DATA, chunks=(40, 70)).to_dask().chunks == ((40, 20), (70, 30))
    assert array.to_dask(chunks=(60, 50)).chunks == ((60,), (50, 50))
    uneven = zarrlite.create_array({}, data=DATA, chunks=[[30, 10, 20], 100])
    assert uneven.to_dask().chunks == ((30, 10, 20), (100,))
    assert (uneven.to_dask().compute() == DATA).all()


def test_blocks_that_dask_chooses_are_whole_shards(array: Array) -> None:
    with dask.config.set({"array.chunk-size": "16 kB"}):
        rows, columns = array.to_dask(chunks="auto").chunks
    assert (rows, columns) != array.to_dask().chunks
    assert all(n % 20 == 0 for n in rows[:-1])
    assert all(n % 30 == 0 for n in columns[:-1])


@pytest.mark.parametrize(
    "data", [5, np.zeros((0, 3)), np.array(["a", "bc"]), np.zeros(3, "i4,f4"), np.zeros(3, "M8[s]")]
)
def test_all_kinds_of_arrays_are_read_and_written(data: Any) -> None:
    array = zarrlite.create_array({}, data=data)
    copy = zarrlite.from_dask(array.to_dask(), {})
    assert copy.dtype == array.dtype
    assert np.array_equal(copy[...], array[...])


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_dask_arrays_have_the_values_of_the_array(array: Array, scheduler: str) -> None:
    lazy = array.to_dask()
    assert lazy.dtype == array.dtype
    assert (lazy.compute(scheduler=scheduler) == DATA).all()
    assert (lazy[3:41, ::7].compute(scheduler=scheduler) == DATA[3:41, ::7]).all()


def test_dask_arrays_have_equal_names_only_if_their_arrays_are_equal(array: Array, tmp_path: Path) -> None:
    again = zarrlite.open_array(tmp_path / "a.zarr", mode="r")
    assert again.to_dask().name == array.to_dask().name
    other = zarrlite.create_array(tmp_path / "b.zarr", data=DATA, chunks=(5, 10), shards=(20, 30))
    assert other.to_dask().name != array.to_dask().name


def test_a_task_carries_a_small_pickle_without_attributes(array: Array) -> None:
    document = len(str(array.metadata.replace(attributes=None).to_json()))
    opened = zarrlite.open_array(array.store, mode="r+", chunk_cache=2**20)
    opened[...]  # fills the cache, and opens the files that the store keeps open
    assert len(pickle.dumps(for_tasks(opened))) < 1024 + document
    reading = opened.to_dask()
    writing = zarrlite.store_dask(da.ones(DATA.shape, chunks=(20, 30)), opened, compute=False)
    for lazy, others in ((reading, 0), (writing, 512)):  # others: bytes allowed in a task besides the array
        pickles = [pickle.dumps(task) for task in dict(lazy.__dask_graph__()).values()]
        sizes = [len(data) for data in pickles if b"zarrlite.nodes.array" in data]
        assert len(sizes) == 12
        assert max(sizes) < 1024 + document + others


@pytest.mark.parametrize("blocks", [(20, 30), (40, 60), (60, 100), (7, 13), ((10, 50), (100,))])
def test_blocks_that_share_a_shard_are_rechunked(blocks: Any, tmp_path: Path) -> None:
    target = zarrlite.create_array(tmp_path / "t.zarr", shape=DATA.shape, dtype="i8", chunks=(5, 10), shards=(20, 30))
    zarrlite.store_dask(da.from_array(DATA, blocks), target)
    assert (target[...] == DATA).all()


def test_blocks_that_share_a_shard_are_refused_on_request(tmp_path: Path) -> None:
    target = zarrlite.create_array(tmp_path / "t.zarr", shape=DATA.shape, dtype="i8", chunks=(5, 10), shards=(20, 30))
    with pytest.raises(
        ArgumentError, match=r"blocks of shape \(7, 13\) must consist of whole chunks of shape \(20, 30\)"
    ):
        zarrlite.store_dask(da.from_array(DATA, (7, 13)), target, align="error")
    with pytest.raises(ArgumentError, match=r"the shape of the dask array must be \(60, 100\)"):
        zarrlite.store_dask(da.zeros((3, 3)), target)
    source = da.from_array(DATA, (7, 13))
    with pytest.raises(ArgumentError, match=r"must be known, not \(nan,\); use compute_chunk_sizes"):
        zarrlite.store_dask(source[source > 5], target)
    assert target.nchunks_initialized == 0


@pytest.mark.parametrize(("blocks", "expected"), [(4, (3, 2, 4, 1)), (9, (9, 1)), (100, (10,)), ((3, 7), (3, 7))])
def test_blocks_end_where_chunks_of_different_lengths_end(blocks: Any, expected: tuple[int, ...]) -> None:
    target = zarrlite.create_array({}, shape=10, dtype="i8", chunks=[[3, 2, 4, 1]])
    lazy = da.arange(10, chunks=blocks if isinstance(blocks, int) else (blocks,))
    lazy = zarrlite.store_dask(lazy, target, compute=False)
    assert lazy.chunks == (expected,)
    lazy.compute()
    assert target[...].tolist() == list(range(10))


def test_progress_is_shown_by_dask(array: Array, capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar():
        zarrlite.from_dask(array.to_dask(), {})
    assert "100% Completed" in capsys.readouterr().out


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


def test_a_store_that_processes_cannot_reach_is_refused(cluster: Client, array: Array) -> None:
    target = zarrlite.create_array({}, shape=DATA.shape, dtype="i8", chunks=(20, 30))
    message = "must be reachable from other processes; use a directory or an object store"
    with dask.config.set(scheduler=cluster), pytest.raises(Exception, match=message):
        zarrlite.store_dask(array.to_dask(), target)
    assert target.nchunks_initialized == 0


def test_workers_of_a_cluster_read_and_write(cluster: Client, array: Array, tmp_path: Path) -> None:
    with dask.config.set(scheduler=cluster):
        target = zarrlite.from_dask(array.to_dask() * 2, tmp_path / "t.zarr", chunks=(5, 10), shards=(20, 30))
        assert (target[...] == DATA * 2).all()
        assert target.to_dask().sum().compute() == 2 * DATA.sum()
