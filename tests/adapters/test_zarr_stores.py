"""Stores of zarrlite in zarr-python and of zarr-python in zarrlite, held to the store tests of both libraries."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core.buffer import Buffer, cpu
from zarr.testing.store import StoreTests

import zarrlite
from zarrlite import LocalStore
from zarrlite.adapters.zarr_stores import FromZarr, ZarrStore
from zarrlite.testing import StoreLaws

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of zarr-python


class ZarrStoreTests(StoreTests[ZarrStore, cpu.Buffer]):
    """zarr-python's own tests of stores."""

    store_cls = ZarrStore
    buffer_cls = cpu.Buffer

    async def set(self, store: ZarrStore, key: str, value: Buffer) -> None:
        store.store.set(key, value.to_bytes())

    async def get(self, store: ZarrStore, key: str) -> Buffer:
        return self.buffer_cls.from_bytes(store.store.get(key))

    def test_store_repr(self, store: ZarrStore) -> None:
        assert repr(store) == f"ZarrStore({store.store!r})"

    def test_store_supports_writes(self, store: ZarrStore) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store: ZarrStore) -> None:
        assert store.supports_listing


class TestLocalStoreInZarr(ZarrStoreTests):
    @pytest.fixture
    def store_kwargs(self, tmp_path: Path) -> dict[str, Any]:  # type: ignore[override]
        return {"store": LocalStore(tmp_path)}


class TestFromZarr(StoreLaws):
    """The laws of zarrlite's stores."""

    def make_store(self) -> FromZarr:
        return FromZarr(zarr.storage.MemoryStore())


def test_zarr_python_reads_and_writes_through_a_store_of_zarrlite(tmp_path: Path) -> None:
    store = ZarrStore(tmp_path / "a.zarr")
    data = np.arange(60).reshape(6, 10)
    array = zarr.create_array(store, shape=data.shape, dtype=data.dtype, chunks=(2, 5), shards=(4, 10))
    array[...] = data
    assert (zarrlite.open_array(tmp_path / "a.zarr", mode="r")[...] == data).all()
    assert (zarr.open_array(pickle.loads(pickle.dumps(store)), mode="r")[1:4, 3] == data[1:4, 3]).all()


def test_zarrlite_reads_and_writes_through_a_store_of_zarr_python(tmp_path: Path) -> None:
    store = FromZarr(zarr.storage.LocalStore(tmp_path))
    data = np.arange(60).reshape(6, 10)
    zarrlite.create_array(store, name="g/a", data=data, chunks=(2, 5), shards=(4, 10))[0, 0] = 7
    data[0, 0] = 7
    assert (zarr.open_array(tmp_path, path="g/a", mode="r")[...] == data).all()
    assert [name for name, _ in zarrlite.open_group(store, mode="r").members(None)] == ["g", "g/a"]


def test_only_the_needed_bytes_are_requested_from_a_store_of_zarr_python() -> None:
    below = zarr.storage.MemoryStore()
    zarrlite.create_array(FromZarr(below), data=np.arange(1000), chunks=10, shards=1000, compressors=None)
    logged = zarr.storage.LoggingStore(below)
    assert zarrlite.open_array(FromZarr(logged), mode="r")[500] == 500


def test_extensions_work_in_a_store_of_zarr_python() -> None:
    store = FromZarr(zarr.storage.MemoryStore())
    array = zarrlite.create_array(
        store,
        data=np.arange(20),
        chunks=5,
        chunk_key_encoding={"name": "suffix", "configuration": {"suffix": ".bin"}},
        storage_transformers=[
            {"name": "concat-parts", "configuration": {"parts": [{"key_suffix": ""}, {"key_suffix": ".x", "size": 4}]}}
        ],
    )
    array[3] = 99
    assert zarrlite.open_array(store, mode="r")[2:5].tolist() == [2, 99, 4]
