"""zarrlite stores in zarr-python, and zarr-python stores in zarrlite: both pass the store tests of both libraries."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import obstore
import pytest
import zarr
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from zarr.core.buffer import Buffer, cpu
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine
from zarr.testing.store import StoreTests

import zarrlite
from zarrlite import LocalStore
from zarrlite.bridge import FromZarr, ZarrStore
from zarrlite.testing import StoreLaws

pytestmark = pytest.mark.filterwarnings("ignore")  # ignore warnings from zarr-python


class ZarrStoreTests(StoreTests[ZarrStore, cpu.Buffer]):
    """zarr-python's own store tests, run on zarrlite stores."""

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


@pytest.mark.parametrize("machine", [ZarrStoreStateMachine, ZarrHierarchyStateMachine])
def test_the_state_machines_of_zarr_python_accept_a_store_of_zarrlite(machine: Any) -> None:
    few = settings(max_examples=10, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(lambda: machine(ZarrStore(zarrlite.MemoryStore())), settings=few)


class TestFromZarr(StoreLaws):
    """zarrlite's own store tests, run on a zarr-python store."""

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


class RecordingStore(zarr.storage.MemoryStore):
    """A store that records how many bytes each read of a value returns."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[tuple[str, int]] = []

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        found = await super().get(key, prototype, byte_range)
        if found is not None and not key.endswith("zarr.json"):
            self.read.append((key, len(found)))
        return found


def test_only_the_needed_bytes_are_requested_from_a_store_of_zarr_python() -> None:
    store = RecordingStore()
    zarrlite.create_array(FromZarr(store), data=np.arange(1000), chunks=10, shards=1000, compressors=None)
    array = zarrlite.open_array(FromZarr(store), mode="r")
    store.read.clear()
    assert array[500] == 500
    assert store.read == [("c/0", 100 * 16 + 4), ("c/0", 8)]


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


DATA = np.arange(60).reshape(6, 10)


def write_and_read(store: FromZarr) -> None:
    """Create, change, list and delete nodes."""
    array = zarrlite.create_array(store, name="g/a", data=DATA, chunks=(2, 5), shards=(4, 10))
    zarrlite.create_array(store, name="g/b", data=DATA, chunks=(4, 4))[5, 9] = -1
    array[1:3, 4] = 7
    array.attrs["units"] = "K"
    zarrlite.create_group(store, path="h")
    root = zarrlite.open_group(store)
    assert [path for path, _ in root.members(None)] == ["g", "g/a", "g/b", "h"]
    del root["h"]
    changed = DATA.copy()
    changed[1:3, 4] = 7
    opened = zarrlite.open(store, path="g/a", mode="r")
    assert isinstance(opened, zarrlite.Array)
    assert (opened[...] == changed).all()
    assert opened.attrs["units"] == "K"
    assert zarrlite.open_array(store, path="g/b", mode="r")[4:, 8:].tolist() == [[48, 49], [58, -1]]
    assert [*zarrlite.open_group(store)] == ["g"]
    with pytest.raises(zarrlite.NodeNotFoundError):
        zarrlite.open(store, path="h", mode="r")
    root["g/b"].resize((2, 3))  # type: ignore[union-attr]
    assert zarrlite.open_array(store, path="g/b")[...].tolist() == [[0, 1, 2], [10, 11, 12]]


@pytest.mark.parametrize("kind", ["memory", "local", "object", "fsspec"])
def test_stores_of_zarr_python_hold_hierarchies_of_zarrlite(tmp_path: Path, kind: str) -> None:
    stores: dict[str, Any] = {
        "memory": zarr.storage.MemoryStore,
        "local": lambda: zarr.storage.LocalStore(tmp_path),
        "object": lambda: zarr.storage.ObjectStore(obstore.store.MemoryStore()),
        "fsspec": lambda: zarr.storage.FsspecStore.from_url(f"local://{tmp_path}/f", {"auto_mkdir": True}),
    }
    write_and_read(FromZarr(stores[kind]()))


def test_an_icechunk_repository_holds_a_hierarchy_of_zarrlite(tmp_path: Path, icechunk: Any) -> None:
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path)))
    session = repository.writable_session("main")
    write_and_read(FromZarr(session.store))
    session.commit("first")
    committed = FromZarr(repository.readonly_session("main").store)
    array = zarrlite.open_array(committed, path="g/a")
    assert array[0].tolist() == DATA[0].tolist()
    assert (zarr.open_array(committed.zarr_store, path="g/a", mode="r")[...] == array[...]).all()
    with pytest.raises(zarrlite.ReadOnlyError):
        array[0] = 1


def test_fsspec_references_to_parts_of_other_files_are_read(tmp_path: Path) -> None:
    source = zarrlite.create_array(tmp_path / "source", data=DATA, chunks=(3, 10), compressors=None)
    joined = b"".join(bytes(source.store.get(key) or b"") for key in ("c/0/0", "c/1/0"))
    (tmp_path / "joined").write_bytes(b"head" + joined)
    references = {
        "zarr.json": bytes(source.store.get("zarr.json") or b"").decode(),
        "c/0/0": [str(tmp_path / "joined"), 4, 240],
        "c/1/0": [str(tmp_path / "joined"), 244, 240],
    }
    filesystem = fsspec.filesystem("reference", fo=references, asynchronous=True, remote_protocol="file")
    array = zarrlite.open_array(FromZarr(zarr.storage.FsspecStore(filesystem, read_only=True)), mode="r")
    assert (array[...] == DATA).all()
    assert array[4, 5] == DATA[4, 5]


def test_a_zip_store_of_zarr_python_is_opened_before_it_is_read(tmp_path: Path) -> None:
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as written:
        zarr.create_array(written, data=DATA, chunks=(3, 10))
    store = FromZarr(zarr.storage.ZipStore(tmp_path / "a.zip", mode="r"))
    assert (zarrlite.open_array(store, mode="r")[...] == DATA).all()
    store.close()
    missing = FromZarr(zarr.storage.ZipStore(tmp_path / "b.zip", mode="r"))
    with pytest.raises(zarrlite.StoreError, match=r"^'zarr.json' cannot be read: FileNotFoundError: "):
        zarrlite.open(missing, mode="r")


def test_a_failure_of_a_store_of_zarr_python_is_a_store_error() -> None:
    class Failing(zarr.storage.MemoryStore):
        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            raise OSError("the disk is gone")

    with pytest.raises(zarrlite.StoreError, match=r"^'zarr.json' cannot be read: OSError: the disk is gone$"):
        zarrlite.open(FromZarr(Failing()), mode="r")


def test_slashes_around_the_paths_of_zarr_python_are_ignored() -> None:
    store = ZarrStore(zarrlite.create_array("memory://", name="a/b", data=[1]).store)
    assert not zarr.core.sync.sync(store.is_empty("/"))
    assert not zarr.core.sync.sync(store.is_empty("/a/"))
    assert zarr.core.sync.sync(store.is_empty("b"))
    zarr.core.sync.sync(store.delete_dir("/a/b/"))
    assert [*store.store.list()] == ["a/zarr.json", "zarr.json"]
