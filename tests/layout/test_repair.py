"""Leftovers of killed writers, and repairs of those problems that are safe to repair."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formats.draft_hierarchies import disk
from layout.arrays import DATA, make
from layout.damage import DAMAGE, flip

import zarrlite
from zarrlite import (
    LocalStore,
    MemoryStore,
    StoreError,
)
from zarrlite.codecs import Bytes, Crc32c, Zstd
from zarrlite.layout import check, repair
from zarrlite.storage_transformers import ConcatParts, Part, Sharding
from zarrlite.stores.files import MACHINE, TEMPORARY, UNKNOWN_MACHINE, temporary_name


def leave(root: Path, name: str, *, pid: int, age: float, machine: str = "elsewhere") -> Path:
    path = root / name / f"{TEMPORARY}{pid}.0.{machine}.0123456789abcdef"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half a chunk")
    then = time.time() - age
    os.utime(path, (then, then))
    return path


@pytest.fixture
def gone() -> int:
    """Return the id of a process that has ended."""
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_leftovers_of_ended_writers_are_found_and_removed(tmp_path: Path, gone: int) -> None:
    zarrlite.create_array(tmp_path, data=DATA)
    store = LocalStore(tmp_path)
    old = leave(tmp_path, "c/0", pid=gone, age=4000)
    lonely = leave(tmp_path, "c/7/8", pid=gone, age=4000)
    young = leave(tmp_path, "c/0/1", pid=gone, age=10)
    mine = leave(tmp_path, "c", pid=os.getpid(), age=4000)
    busy = leave(tmp_path, "", pid=os.getpid(), age=10)
    problems = list(check(store))
    messages = {problem.key.partition(TEMPORARY)[0]: problem.message for problem in problems}
    assert messages == {
        "c/": "temporary file of 12 bytes, 67 minutes old; its writer may still be running",
        "c/0/": "temporary file of 12 bytes, 67 minutes old; its writer is gone",
        "c/0/1/": "temporary file of 12 bytes, 0 minutes old; its writer is gone",
        "c/7/8/": "temporary file of 12 bytes, 67 minutes old; its writer is gone",
    }
    assert {problem.kind for problem in problems} == {"leftover"}
    assert {p.key.partition(TEMPORARY)[0] for p in repair(store, problems)} == {"c/0/", "c/7/8/"}
    assert [path.exists() for path in (old, lonely, young, mine, busy)] == [False, False, True, True, True]
    assert not (tmp_path / "c/7").exists()
    assert np.array_equal(zarrlite.open_array(tmp_path, mode="r"), DATA)


@pytest.mark.skipif(MACHINE == UNKNOWN_MACHINE, reason="the system does not tell machines apart")
def test_leftovers_of_this_machine_are_removed_at_once(tmp_path: Path, gone: int) -> None:
    zarrlite.create_array(tmp_path, data=DATA)
    store = LocalStore(tmp_path)
    here = leave(tmp_path, "c/0", pid=gone, age=0, machine=MACHINE)
    elsewhere = leave(tmp_path, "c/1", pid=gone, age=0)
    unknown = leave(tmp_path, "c/2", pid=gone, age=0, machine=UNKNOWN_MACHINE)
    busy = leave(tmp_path, "c/3", pid=os.getpid(), age=0, machine=MACHINE)
    repair(store, list(check(store)))
    assert [path.exists() for path in (here, elsewhere, unknown, busy)] == [False, True, True, True]


def test_the_name_of_a_temporary_file_has_the_process_and_the_machine_of_its_writer(tmp_path: Path) -> None:
    _, _, process_id, _, machine, _ = Path(temporary_name(str(tmp_path))).name.split(".")
    assert (process_id, machine) == (str(os.getpid()), MACHINE)


def test_leftovers_are_found_in_every_directory(tmp_path: Path, gone: int) -> None:
    zarrlite.create_array(tmp_path, name="a/b", data=DATA)
    disk("sharded", tmp_path / "draft")
    for folder in ("a/b/c", "draft/data/root"):
        leave(tmp_path, folder, pid=gone, age=4000)
    store = zarrlite.stores.PrefixStore(zarrlite.stores.ReadOnlyStore(LocalStore(tmp_path)), "a/")
    for place, path, key in ((store, "b", "b/c/"), (LocalStore(tmp_path / "draft"), "", "data/root/")):
        (problem,) = check(place, path)
        assert (problem.kind, problem.key.partition(TEMPORARY)[0]) == ("leftover", key)


def test_files_of_running_writers_are_not_leftovers(tmp_path: Path) -> None:
    zarrlite.create_array(tmp_path, data=DATA)
    leave(tmp_path, "c", pid=os.getpid(), age=0)
    assert list(check(LocalStore(tmp_path))) == []


@pytest.mark.parametrize("transformers", [(), (ConcatParts([Part(""), Part(".crc", 4)]),), (Sharding((2, 2)),)])
def test_only_chunks_outside_of_the_grid_are_removed(transformers: Any) -> None:
    codecs = [Bytes(), Zstd(), Crc32c()]
    array = zarrlite.create_array({}, data=DATA, chunks=(4, 4), codecs=codecs, storage_transformers=transformers)
    document = json.loads(bytes(array.store.get("zarr.json")))
    document["shape"] = [8, 5]
    array.store.set("zarr.json", json.dumps(document).encode())
    problems = list(check(array.store))
    assert {problem.kind for problem in problems} == {"outside"}
    assert repair(array.store, problems) == problems
    assert list(check(array.store)) == []
    assert np.array_equal(zarrlite.open_array(array.store, mode="r"), DATA[:8, :5])


def test_a_chunk_that_the_array_has_grown_to_include_is_not_removed() -> None:
    array = make("raw")
    array.store.set("c/3/0", bytes(32))
    (problem,) = check(array.store)
    array.resize((16, 10))
    assert repair(array.store, [problem]) == []
    assert array.store.size("c/3/0") == 32


def test_outdated_consolidated_metadata_is_written_again() -> None:
    store = MemoryStore()
    zarrlite.create_group(store).create_array("a/b", data=DATA)
    zarrlite.consolidate_metadata(store)
    store.set("a/zarr.json", b'{"zarr_format": 3, "node_type": "group", "attributes": {"new": 1}}')
    problems = list(check(store))
    assert repair(store, problems) == problems
    assert list(check(store)) == []


def test_outdated_consolidated_metadata_of_parent_groups_is_written_again() -> None:
    store = MemoryStore()
    zarrlite.create_group(store).create_array("a/b/c", data=DATA)
    for path in ("a/b", "a", ""):
        zarrlite.consolidate_metadata(store, path)
    document = json.loads(bytes(store.get("a/b/c/zarr.json") or b""))
    store.set("a/b/c/zarr.json", json.dumps({**document, "attributes": {"new": 1}}).encode())
    problems = list(check(store))
    assert [problem.key for problem in problems] == ["zarr.json", "a/zarr.json", "a/b/zarr.json"]
    assert repair(store, problems) == problems
    assert list(check(store)) == []
    assert all(b"consolidated_metadata" in bytes(store.get(problem.key) or b"") for problem in problems)


def test_problems_that_cannot_be_repaired_are_still_reported() -> None:
    codecs, shards = [Bytes(), Crc32c()], [Sharding((2, 2))]
    array = zarrlite.create_array({}, data=DATA, chunks=(4, 4), codecs=codecs, storage_transformers=shards)
    document = json.loads(bytes(array.store.get("zarr.json")))
    array.store.set("zarr.json", json.dumps({**document, "shape": [8, 5]}).encode())
    flip(array.store, "c/1/0", -1)  # damages the index of the shard
    before = {key: bytes(array.store.get(key) or b"") for key in array.store.list() if key == "c/1/0"}
    problems = list(check(array.store))
    gone = repair(array.store, problems)
    assert {p.key for p in gone} == {"c/0/1", "c/1/1"}
    assert {key: bytes(array.store.get(key) or b"") for key in before} == before


def test_damaged_data_is_never_touched() -> None:
    for kind, damage, _ in DAMAGE.values():
        array = make(kind)
        damage(array.store)
        before = {key: bytes(array.store.get(key) or b"") for key in array.store.list()}
        problems = [problem for problem in check(array.store) if problem.kind != "outside"]
        assert repair(array.store, problems) == []
        assert {key: bytes(array.store.get(key) or b"") for key in array.store.list()} == before


# Interrupted operations on nodes


class Cut(MemoryStore):
    """A store that fails once a number of keys has been erased."""

    left: int | None = None  # erasures before the store fails; None: it never fails

    def erase(self, key: str) -> None:
        if self.left == 0:
            raise StoreError("cut")
        if self.left is not None:
            self.left -= 1
        super().erase(key)


@pytest.mark.parametrize("encoding", ["default", "v2"])
def test_an_interrupted_resize_is_reported_and_completed(encoding: str) -> None:
    store = Cut()
    array = zarrlite.create_array(
        store, name="a", data=np.arange(8), chunks=2, compressors=None, chunk_key_encoding=encoding
    )
    store.left = 1
    with pytest.raises(StoreError, match="cut"):
        array.resize(3)
    store.left = None
    (problem,) = check(store)
    assert problem.to_json() == {
        "key": "a/__zarrlite.resize",
        "kind": "resize",
        "message": "the array was shrunk, but some chunks outside of its shape may not have been removed yet",
        "remedy": "--repair removes the chunks that are now outside of the shape, and so does the next resize",
    }
    assert repair(store, [problem]) == [problem]
    assert [*check(store)] == []
    assert len([*store.list()]) == 4  # two documents and two chunks
    array = zarrlite.open_array(store, path="a", mode="r+")
    array.resize(8)
    assert array[...].tolist() == [0, 1, 2, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("path", ["", "g"])
@pytest.mark.parametrize("erased", range(4))
def test_an_interrupted_removal_is_reported_and_completed(path: str, erased: int) -> None:
    store = Cut()
    zarrlite.create_array(store, name="g/a", data=[1, 2])
    zarrlite.create_array(store, name="g/h/b", data=[3])
    store.left = erased
    with pytest.raises(StoreError, match="cut"):
        zarrlite.open(store, path=path).delete()
    store.left = None
    (problem,) = check(store, "" if erased else path)
    message = "the removal of this node was interrupted"
    assert (problem.key, problem.kind) == (f"{path}/__zarrlite.removal".lstrip("/"), "removal")
    assert problem.message == message + (" before it began" if not erased else "")
    assert repair(store, [problem]) == [problem]
    if path or not erased:
        assert [*check(store)] == []
    nodes = [key for key in store.list() if key.endswith("zarr.json")]
    assert nodes == (["zarr.json"] if path and erased else [] if erased else sorted(nodes))
    assert ("g/h/b/zarr.json" in nodes) == (not erased)


def test_a_damaged_mark_of_an_interrupted_operation_is_not_repaired() -> None:
    store = MemoryStore()
    zarrlite.create_array(store, name="g/a", data=[1, 2])
    store.set("g/a/__zarrlite.resize", b"?")
    store.erase("g/zarr.json")
    assert [problem.kind for problem in check(store)] == ["document", "resize"]
    store.set("g/__zarrlite.removal", b"?")
    (problem,) = check(store)
    assert repair(store, [problem]) == []
    assert repair(store, [*check(store, "g/a")]) == []
