"""ZipStore as a writer: the file that it writes, other writers, killed writers, forked children, `.ozx` files."""

from __future__ import annotations

import json
import os
import pickle
import signal
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrlite
from zarrlite.errors import KeyRefusedError, ReadOnlyError, StoreError
from zarrlite.stores import MemoryStore, ReadOnlyStore, ZipStore, files, open_store
from zarrlite.testing import in_threads

VALUES = {"zarr.json": b"{}", "a/zarr.json": b"[]", "a/c/0": b"0123", "b": b"long " * 10_000}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.zip"


def contents(path: Path) -> dict[str, bytes]:
    """Return the entries of a zip file, as the standard library reads them."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert len({*archive.namelist()}) == len(archive.namelist())
        return {name: archive.read(name) for name in archive.namelist()}


def only(path: Path) -> bool:
    """Whether a zip file is alone in its directory, without temporary files or lock files."""
    return [*path.parent.iterdir()] == [path]


# Closing


def test_closing_writes_the_file_and_leaves_nothing_else(path: Path) -> None:
    with ZipStore(path, mode="w") as store:
        store.set_many(VALUES.items())
        assert not path.exists()
    assert contents(path) == VALUES
    assert only(path)


@pytest.mark.parametrize("mode", ["w", "a"])
def test_closing_syncs_the_file_before_the_rename_and_the_directory_after(
    path: Path, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ZipStore(path, mode="w") as store:
        store.set("a", b"0")
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(fd: int) -> None:
        calls.append("directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *args: (calls.append("rename"), replace(*args)))
    store = ZipStore(path, mode=mode)
    store.set("b", b"1")
    assert calls == []
    store.close()
    assert calls == ["file", "rename", "directory"]


def test_replaced_and_erased_values_are_not_in_the_file(path: Path) -> None:
    with ZipStore(path, mode="w") as store:
        for i in range(20):
            store.set("a", bytes([i]) * 10_000)
        store.set("b", b"erased" * 10_000)
        store.erase("b")
        store.set("c", b"kept")
    assert contents(path) == {"a": bytes([19]) * 10_000, "c": b"kept"}
    assert path.stat().st_size < 10_300


def test_a_file_is_changed_and_its_other_entries_are_copied(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, value in {**VALUES, "é": b"e"}.items():
            archive.writestr(key, value)
        archive.comment = b"a comment"
    with ZipStore(path, mode="a") as store:
        store.set("a/c/0", b"new")
        store.erase("zarr.json")
        assert store.get("b") == VALUES["b"]
    expected = {"a/zarr.json": b"[]", "b": VALUES["b"], "é": b"e", "a/c/0": b"new"}
    assert contents(path) == expected
    with zipfile.ZipFile(path) as archive:
        assert archive.comment == b"a comment"
        # copied entries remain deflated
        assert archive.getinfo("b").compress_size < 1000
        assert archive.getinfo("a/c/0").compress_type == zipfile.ZIP_STORED
    assert {key: bytes(ZipStore(path).get(key) or b"") for key in ZipStore(path).list()} == expected


def test_a_file_without_changes_is_not_rewritten(path: Path) -> None:
    with ZipStore(path, mode="w") as store:
        store.set("a", b"1")
    before = path.stat()
    with ZipStore(path, mode="a") as store:
        assert store.get("a") == b"1"
        store.erase("none")
    assert path.stat() == before


def test_an_empty_store_is_an_empty_zip_file(path: Path) -> None:
    ZipStore(path, mode="w").close()
    assert contents(path) == {}
    with ZipStore(path, mode="a") as store:
        store.set("a", b"1")
    ZipStore(path, mode="w").close()
    assert contents(path) == {}


def test_a_store_that_was_only_opened_creates_nothing(path: Path) -> None:
    with ZipStore(path, mode="a") as store:
        assert list(store.list()) == []
        store.erase_prefix("")
    assert [*path.parent.iterdir()] == []


def test_after_an_exception_the_file_stays_as_it_was(path: Path) -> None:
    with ZipStore(path, mode="w") as store:
        store.set("a", b"old")
    store = ZipStore(path, mode="w")

    def work() -> None:
        with store:
            store.set("a", b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert contents(path) == {"a": b"old"}
    assert only(path)
    with pytest.raises(StoreError, match="is closed"):
        store.set("a", b"new")


def test_missing_directories_are_created(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "b/c/a.zip", mode="w") as store:
        store.set("a", b"1")
    assert contents(tmp_path / "b/c/a.zip") == {"a": b"1"}


def test_a_symlink_to_a_zip_file_stays_a_symlink(path: Path) -> None:
    with ZipStore(path, mode="w") as store:
        store.set("a", b"old")
    link = path.with_name("link.zip")
    link.symlink_to(path)
    with ZipStore(link, mode="a") as store:
        store.set("a", b"new")
    assert link.is_symlink()
    assert contents(path) == {"a": b"new"}


def test_a_close_that_fails_can_be_repeated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ZipStore(path, mode="w")
    store.set("a", b"1")
    store.set("a", b"2")
    for failing in ("fsync", "replace", "ftruncate"):
        with monkeypatch.context() as patch:
            patch.setattr(os, failing, fail)
            with pytest.raises(StoreError, match="cannot be written: No space left"):
                store.close()
        assert not path.exists()
        assert store.get("a") == b"2"
    store.close()
    assert contents(path) == {"a": b"2"}
    assert only(path)


def fail(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_value_that_could_not_be_written_leaves_the_old_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ZipStore(path, mode="w") as store:
        store.set("a", b"old")
        with monkeypatch.context() as patch:
            patch.setattr(files, "_write", fail)
            with pytest.raises(StoreError, match="'a' cannot be written: No space left"):
                store.set("a", b"a value that is too long")
        assert store.get("a") == b"old"
        store.set("b", b"1")
    assert contents(path) == {"a": b"old", "b": b"1"}


def test_keys_that_a_zip_file_cannot_have_are_refused(path: Path) -> None:
    with ZipStore(path, mode="w") as store:
        for key in ("\ud800", "a" * 70_000):
            with pytest.raises(KeyRefusedError):
                store.set(key, b"")


# Other writers


def test_a_second_writer_is_refused_and_the_error_names_the_first(path: Path) -> None:
    with ZipStore(path, mode="w") as store:
        store.set("a", b"1")
        for mode in ("w", "a"):
            with pytest.raises(StoreError, match=f"must have one writer at a time: process {os.getpid()} on "):
                ZipStore(path, mode=mode).set("a", b"2")  # type: ignore[arg-type]
    with ZipStore(path, mode="a") as store:
        assert store.get("a") == b"1"


def test_a_writer_in_another_process_is_named(path: Path) -> None:
    code = "import sys, zarrlite; s = zarrlite.ZipStore(sys.argv[1], mode='w'); print(flush=True); input(); s.close()"
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        writer.stdout.readline()
        with pytest.raises(StoreError, match=f"process {writer.pid} on "):
            ZipStore(path, mode="w")
        writer.communicate(b"\n")
    assert contents(path) == {}


def test_consecutive_changes_of_a_file_by_two_stores_lose_nothing(path: Path) -> None:
    first, second = ZipStore(path, mode="a"), ZipStore(path, mode="a")
    with first:
        first.set("a", b"1")
    with second:
        second.set("b", b"2")  # the file has changed since it was opened
        assert second.get("a") == b"1"
    third = ZipStore(path, mode="a")
    path.unlink()
    with third:
        third.set("c", b"3")
    assert contents(path) == {"c": b"3"}


def test_threads_write_one_store(path: Path) -> None:
    with ZipStore(path, mode="w") as store:

        def write(number: int) -> None:
            for i in range(50):
                store.set(f"{number}/{i}", b"%d" % i * 100)
                assert store.get(f"{number}/{i}") == b"%d" % i * 100

        in_threads(*(lambda number=number: write(number) for number in range(8)))
    assert contents(path) == {f"{number}/{i}": b"%d" % i * 100 for number in range(8) for i in range(50)}


def test_only_one_of_many_threads_creates_a_key(path: Path) -> None:
    with ZipStore(path, mode="w") as store:
        created: list[bool] = []
        in_threads(*[lambda: created.append(store.set("a", b"1", new=True))] * 8)
        assert sorted(created) == [False] * 7 + [True]


def test_an_open_writer_cannot_be_pickled(path: Path) -> None:
    with ZipStore(path, mode="w") as store, pytest.raises(StoreError, match="not be pickled while it is being written"):
        pickle.dumps(store)


# Processes that are killed, exit, or are forked

WRITER = """
import os, signal, sys, zarrlite
from zarrlite.stores import files

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

store = zarrlite.ZipStore(sys.argv[1], mode=sys.argv[2])
store.set("a", b"1" * 100_000)
store.set("a", b"new")
if sys.argv[3] != "writing":
    setattr(os, sys.argv[3], kill)
    store.close()
kill()
"""


@pytest.mark.parametrize("moment", ["writing", "ftruncate", "fsync", "replace"])
@pytest.mark.parametrize("mode", ["w", "a"])
def test_a_killed_writer_leaves_the_old_file(path: Path, mode: str, moment: str) -> None:
    with ZipStore(path, mode="w") as store:
        store.set_many([("a", b"old"), ("b", b"other")])
    killed = subprocess.run([sys.executable, "-c", WRITER, path, mode, moment], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert contents(path) == {"a": b"old", "b": b"other"}
    assert not only(path)
    with ZipStore(path, mode="a") as store:  # the next writer removes the files that were left behind
        store.set("a", b"next")
    assert contents(path) == {"b": b"other", "a": b"next"}
    assert only(path)


def test_a_writer_that_is_killed_after_the_renaming_leaves_the_new_file(path: Path) -> None:
    with ZipStore(path, mode="w") as store:
        store.set("a", b"old")
    code = WRITER.replace("setattr(os,", "setattr(files,")
    killed = subprocess.run([sys.executable, "-c", code, path, "a", "discard"], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert contents(path) == {"a": b"new"}


def test_temporary_files_of_other_zip_files_are_kept(path: Path) -> None:
    other = ZipStore(path.with_name("x.a.zip"), mode="w")
    other.set("a", b"1")
    ZipStore(path, mode="w").close()
    other.close()
    assert contents(path.with_name("x.a.zip")) == {"a": b"1"}


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_a_store_that_was_not_closed_is_written_at_exit_with_a_warning(path: Path) -> None:
    code = "import sys, zarrlite; zarrlite.open(sys.argv[1], mode='w').attrs['a'] = 1"
    ran = run(code, path)
    assert f"ResourceWarning: ZipStore({str(path)!r}) was not closed; it was written at exit" in ran.stderr
    assert only(path)
    assert zarrlite.open(path, mode="r").attrs["a"] == 1


def test_a_reader_that_was_not_closed_causes_no_warning(path: Path) -> None:
    ZipStore(path, mode="w").close()
    code = "import sys, zarrlite; s = zarrlite.ZipStore(sys.argv[1], mode='a'); list(s.list())"
    assert run(code, path).stderr == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_forked_child_cannot_use_or_close_a_writer(path: Path) -> None:
    code = """
import os, sys, zarrlite
store = zarrlite.ZipStore(sys.argv[1], mode="w")
store.set("a", b"1")
child = os.fork()
if child == 0:
    try:
        store.set("a", b"2")
    except zarrlite.StoreError as error:
        print(error, flush=True)
    with store:
        pass
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
assert not os.path.exists(sys.argv[1])
assert store.get("a") == b"1"
store.set("b", b"2")
store.close()
"""
    assert "is closed; open it again" in run(code, path).stdout
    assert contents(path) == {"a": b"1", "b": b"2"}
    assert only(path)


# Nodes


def test_paths_of_zip_files_open_zip_stores(tmp_path: Path) -> None:
    for name in ("a.zip", "a.ozx", "A.ZIP"):
        assert isinstance(open_store(tmp_path / name), ZipStore)
        assert isinstance(open_store(f"file://{tmp_path}/{name}"), ZipStore)
    (tmp_path / "directory.zip").mkdir()
    assert isinstance(open_store(tmp_path / "directory.zip"), zarrlite.LocalStore)


def test_nodes_close_their_store(path: Path) -> None:
    with zarrlite.open(path, mode="w") as group:
        with pytest.raises(StoreError, match="one writer"):
            zarrlite.open(path, mode="w")
        group.create_array("x", data=np.arange(10), chunks=5)
    with zarrlite.open_array(path, mode="r+", path="x") as array:
        array[3:7] = 0
    with zarrlite.open(path, mode="r") as group:
        assert isinstance(group.store, ReadOnlyStore)
        with pytest.raises(ReadOnlyError):
            group.attrs["a"] = 1
        array = group["x"]
        assert array[...].tolist() == [0, 1, 2, 0, 0, 0, 0, 7, 8, 9]
    with pytest.raises(StoreError, match="is closed"):
        array[...]
    with pytest.raises(ZeroDivisionError), zarrlite.open(path, mode="w"):
        raise ZeroDivisionError
    assert zarrlite.open_array(path, mode="r", path="x")[7] == 7


def test_nodes_that_are_not_in_a_zip_file_can_be_used_after_they_are_closed() -> None:
    with zarrlite.open("memory://", mode="w") as group:
        group.attrs["a"] = 1
    group.attrs["b"] = 2
    assert zarrlite.open(group.store, mode="r").attrs.asdict() == {"a": 1, "b": 2}


def test_a_hierarchy_is_copied_to_a_zip_file_and_back(path: Path, tmp_path: Path) -> None:
    group = zarrlite.create_group(tmp_path / "a.zarr", attributes={"a": 1})
    group.create_array("x/y", data=np.arange(100), chunks=10, shards=50)
    with zarrlite.copy(group, path):
        pass
    with zarrlite.open_group(path, mode="r") as zipped:
        back = zarrlite.copy(zipped, tmp_path / "b.zarr")
    assert back["x/y"][...].tolist() == list(range(100))
    assert contents(path) == {key: bytes(group.store.get(key) or b"") for key in group.store.list()}


# RFC-9


@pytest.fixture
def ozx(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "a.ozx"
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".ozx"]


def create_image(store: Any, attributes: dict[str, Any]) -> None:
    with zarrlite.create_group(store, attributes=attributes) as group:
        group.create_array("labels/cells/0", data=np.arange(10), chunks=2)
        group.create_array("0", data=np.arange(100), chunks=10)
        group.create_array("1", data=np.arange(50), chunks=10)
        group.attrs["late"] = True


def test_an_ozx_file_has_documents_first_zip64_and_a_comment(ozx: Path) -> None:
    create_image(ozx, {"ome": {"version": "0.5"}})
    with zipfile.ZipFile(ozx) as archive:
        names = archive.namelist()
        assert names[:6] == [
            "zarr.json",
            "0/zarr.json",
            "1/zarr.json",
            "labels/zarr.json",
            "labels/cells/zarr.json",
            "labels/cells/0/zarr.json",
        ]
        assert not any(name.endswith("zarr.json") for name in names[6:])
        by_offset = sorted(archive.infolist(), key=lambda info: info.header_offset)
        assert [info.filename for info in by_offset] == names
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {info.extract_version for info in archive.infolist()} == {45}
        central_directory = {"jsonFirst": True}
        assert json.loads(archive.comment) == {
            "ome": {"version": "0.5", "zipFile": {"centralDirectory": central_directory}}
        }
    assert b"PK\6\6" in ozx.read_bytes()
    assert zarrlite.open_group(ozx, mode="r")["1"][...].tolist() == list(range(50))


def test_deflated_entries_of_an_ozx_file_are_stored_uncompressed(ozx: Path) -> None:
    with zipfile.ZipFile(ozx, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("c/0", bytes(1000))
        archive.writestr("zarr.json", b"{}")
    with ZipStore(ozx, mode="a") as store:
        store.set("c/1", b"1")
    with zipfile.ZipFile(ozx) as archive:
        assert archive.namelist() == ["zarr.json", "c/0", "c/1"]
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
    assert contents(ozx) == {"zarr.json": b"{}", "c/0": bytes(1000), "c/1": b"1"}


@pytest.mark.parametrize("attributes", [{}, {"ome": 5}, {"ome": {"version": 5}}])
def test_an_ozx_file_without_a_version_has_no_comment(ozx: Path, attributes: dict[str, Any]) -> None:
    create_image(ozx, attributes)
    with zipfile.ZipFile(ozx) as archive:
        assert archive.comment == b""


def test_a_store_in_a_store_has_its_location(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "a.zip", mode="w") as store:
        assert store.location("b/") == ("file", f"{tmp_path.resolve()}/a.zip/b/")
    inner = ZipStore((zarrlite.LocalStore(tmp_path), "a.zip"))
    assert inner.location("b/") == store.location("b/")
    memory = MemoryStore({"x/a.zip": (tmp_path / "a.zip").read_bytes()})
    assert ZipStore((memory, "x/a.zip")).location("b/") == memory.location("x/a.zip/b/")
