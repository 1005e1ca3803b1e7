"""FsspecStore: URLs, mappings, numbers of requests and bytes, errors, concurrent writers, several processes."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import zarrlite
from tests.stores.web_server import WebServer, serving
from zarrlite.buffers.source import ReplacedError, VersionedSource
from zarrlite.errors import ArgumentError, ReadOnlyError, StoreError
from zarrlite.stores import FsspecStore, LocalStore, MemoryStore, ReadOnlyStore, open_store
from zarrlite.stores.base import place_of


@pytest.fixture
def memory() -> Any:
    return fsspec.filesystem("memory", global_store=False, skip_instance_cache=True)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with serving({}) as server:
        yield server


def on_the_web(web: WebServer, **keywords: Any) -> FsspecStore:
    return FsspecStore(fsspec.filesystem("http"), web.url, **keywords)


# Arguments


def test_a_mapping_of_fsspec_is_read_in_parts(web: WebServer) -> None:
    shard = zarrlite.create_array({}, data=np.arange(2**16), chunks=2**10, shards=2**16, compressors=None).store
    web.values.update({key: bytes(shard.get(key) or b"") for key in shard.list()})
    store = open_store(fsspec.get_mapper(web.url))
    assert isinstance(store, FsspecStore)
    array = zarrlite.open_array(store, mode="r")
    web.reset()
    assert array[40_000] == 40_000
    assert [method for method, _, _ in web.requests] == ["HEAD", "GET", "GET", "HEAD"]
    assert web.bytes_sent < 2000  # the index and one element; the whole shard is 512 KiB long


def test_a_mapping_keeps_its_own_missing_exceptions(web: WebServer) -> None:
    web.status["a"] = 403
    mapper = fsspec.filesystem("http").get_mapper(web.url, missing_exceptions=(Exception,))
    assert open_store(mapper).get("a") is None
    with pytest.raises(StoreError):
        open_store(fsspec.get_mapper(web.url)).get("a")


def test_chained_urls_are_opened(tmp_path: Path) -> None:
    data = np.arange(12).reshape(3, 4)
    source = LocalStore(tmp_path / "a.zarr")
    zarrlite.create_array(source, data=data, chunks=(2, 2))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        for key in source.list():
            file.writestr(f"inner.zarr/{key}", bytes(source.get(key) or b""))
    for url in (
        f"zip://inner.zarr::file://{tmp_path}/a.zip",
        f"simplecache::file://{tmp_path}/a.zarr",
        f"local://{tmp_path}/a.zarr",
    ):
        array = zarrlite.open_array(url, mode="r")
        assert isinstance(array.store, ReadOnlyStore)
        assert isinstance(array.store.store, FsspecStore)
        assert (array[...] == data).all()


def test_an_array_is_written_to_a_url_of_another_protocol() -> None:
    array = zarrlite.create_array("simplecache::memory://test_filesystem/a.zarr", data=[1, 2, 3], chunks=2)
    assert array[...].tolist() == [1, 2, 3]
    array[1] = 7
    assert zarrlite.open_array(array.store)[...].tolist() == [1, 7, 3]
    fsspec.filesystem("memory").rm("/test_filesystem", recursive=True)


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: FsspecStore(5), "fs must be an fsspec filesystem, not int"),
        (
            lambda: FsspecStore(fsspec.filesystem("http", asynchronous=True)),
            "fs must not be asynchronous: create HTTPFileSystem with asynchronous=False",
        ),
        (
            lambda: FsspecStore.from_url("nothing::memory://a"),
            "store must be a path or a URL that fsspec knows, not 'nothing::memory://a': Protocol not known: nothing",
        ),
    ],
)
def test_other_arguments_are_refused(create: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        create()
    assert str(caught.value) == message


def test_an_archive_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none\.zip' cannot be opened: FileNotFoundError") as caught:
        open_store(f"zip::file://{tmp_path}/none.zip")
    assert caught.value.errno == errno.ENOENT
    (tmp_path / "bad.zip").write_bytes(b"not a zip file")
    with pytest.raises(StoreError, match="BadZipFile"):
        open_store(f"zip::file://{tmp_path}/bad.zip")


def test_a_protocol_whose_package_is_not_installed_is_named() -> None:
    with pytest.raises(zarrlite.DependencyError, match="needs a package that is not installed"):
        FsspecStore.from_url("hdfs://host/a")


# Limits


def test_remote_filesystems_take_many_requests_at_once_and_local_ones_do_not(memory: Any, tmp_path: Path) -> None:
    web = fsspec.filesystem("http")
    (tmp_path / "a.zip").write_bytes(b"PK\5\6" + bytes(18))
    remote = [FsspecStore(web, "http://a"), FsspecStore(fsspec.filesystem("filecache", fs=web), "http://a")]
    local = [
        FsspecStore(memory, "/a"),
        FsspecStore(fsspec.filesystem("file"), str(tmp_path)),
        FsspecStore(fsspec.filesystem("dir", path="/a", fs=memory)),
        FsspecStore.from_url(f"zip::file://{tmp_path}/a.zip"),
    ]
    assert [(store.limits.concurrency, store.limits.gap) for store in remote] == [(64, 2**20)] * 2
    assert [store.limits.concurrency for store in local] == [1] * 4
    assert place_of(remote[0]) is place_of(FsspecStore(web, "http://a/b"))
    assert all(place_of(store) is None for store in local)


def test_chunks_of_a_remote_filesystem_are_read_at_once(web: WebServer) -> None:
    data = np.arange(64, dtype="int32")
    source = zarrlite.create_array(web.values, data=data, chunks=4, compressors="gzip").store
    assert len(list(source.list())) == 17
    barrier = threading.Barrier(8)

    class Waiting(dict[str, bytes]):
        """The values of a server that holds back each request for a chunk until eight such requests are pending."""

        def get(self, key: str, default: Any = None) -> Any:
            if "/" in key:
                barrier.wait(60)
            return super().get(key, default)

    array = zarrlite.open_array(on_the_web(web), mode="r")
    web.values = Waiting(web.values)
    assert (array[...] == data).all()


# Requests


def test_ranges_cost_one_request_each(web: WebServer) -> None:
    web.values["a"] = bytes(range(256)) * 4
    store = on_the_web(web)
    assert store.get("a", zarrlite.ByteRange(10, 20)) == web.values["a"][10:20]
    assert web.requests[1:] == [("HEAD", "a", None)]  # a single request, to find out whether the server supports ranges
    for byte_range, header in (
        (zarrlite.ByteRange(10, 20), "bytes=10-19"),
        (zarrlite.ByteRange(0, 2000), "bytes=0-1999"),
        (zarrlite.ByteRange(-16), "bytes=-16"),
    ):
        web.reset()
        assert store.get("a", byte_range) == web.values["a"][slice(*byte_range)]
        assert web.requests == [("GET", "a", header)]
    web.reset()
    assert store.get("a") == web.values["a"]
    assert web.requests == [("GET", "a", None)]


def test_a_server_that_ignores_ranges_never_causes_wrong_data(web: WebServer) -> None:
    web.honours_ranges = False
    web.values["a"] = value = bytes(range(100))
    for start, stop in [(50, 150), (50, 1000), (1, 100), (99, 101), (0, 5), (100, 200), (7, 8), (-3, None)]:
        store = on_the_web(web)
        for _ in range(2):
            assert store.get("a", zarrlite.ByteRange(start, stop)) == value[start:stop], (start, stop)


# Errors


def test_missing_keys_refused_access_and_failures_are_distinguished(web: WebServer, tmp_path: Path) -> None:
    cache = fsspec.filesystem("filecache", fs=fsspec.filesystem("http"), cache_storage=str(tmp_path))
    web.status.update({"refused": 403, "broken": 503, "a/zarr.json": 500})
    for store in (on_the_web(web), FsspecStore(cache, web.url)):
        assert store.get("none") is None
        assert store.size("none") is None
        assert store.source("none").read_one() is None
        for read in (store.get, store.size, lambda key, store=store: store.source(key).size()):
            with pytest.raises(StoreError, match="'refused' cannot be read") as caught:
                read("refused")
            assert caught.value.errno in (errno.EACCES, None)
            with pytest.raises(StoreError, match="'broken' cannot be read"):
                read("broken")
        with pytest.raises(StoreError):
            zarrlite.open(store, mode="r", path="a")
    assert isinstance(caught.value.__cause__, Exception)
    with pytest.raises(StoreError) as caught:
        on_the_web(web).get("refused")
    assert caught.value.errno == errno.EACCES


def test_a_server_that_cannot_be_reached_is_an_error() -> None:
    with serving({}) as web:
        store = on_the_web(web)
    for read in (store.get, store.size, store.list_dir):
        with pytest.raises(StoreError):
            read("a/" if read == store.list_dir else "a")


def test_a_missing_bucket_is_an_error(memory: Any) -> None:
    class Buckets(type(memory)):  # type: ignore[misc]
        """A filesystem that reports a missing bucket in the same way as s3fs."""

        def cat_file(self, path: str, **keywords: Any) -> bytes:
            raise FileNotFoundError("The specified bucket does not exist")

    store = FsspecStore(Buckets(global_store=False, skip_instance_cache=True), "bucket/a.zarr")
    with pytest.raises(StoreError, match=r"the bucket of FsspecStore\('memory:///bucket/a.zarr'\) does not exist"):
        store.get("c/0")


def test_a_filesystem_that_cannot_be_written_says_so(web: WebServer, memory: Any) -> None:
    with pytest.raises(StoreError, match=r"'a' cannot be written: .*Unsupported method"):
        on_the_web(web).set("a", b"1")
    with pytest.raises(StoreError, match="cannot be erased: its filesystem does not support it") as caught:
        on_the_web(web).erase("a")
    assert caught.value.errno == errno.ENOTSUP
    with pytest.raises(ReadOnlyError):
        FsspecStore(memory, "a", read_only=True).set("a", b"1")
    with pytest.raises(ReadOnlyError):
        FsspecStore(memory, "a", read_only=True).erase("a")


def test_a_server_without_listings_opens_consolidated_metadata(web: WebServer) -> None:
    group = zarrlite.create_group(web.values)
    group.create_array("x", data=np.arange(4))
    group.consolidate_metadata()
    web.lists = False
    found = zarrlite.open_group(on_the_web(web), mode="r")
    assert found["x"][...].tolist() == [0, 1, 2, 3]
    assert list(found) == ["x"]
    with pytest.raises(StoreError, match="cannot be listed") as caught:
        list(zarrlite.open_group(on_the_web(web), mode="r", use_consolidated=False))
    assert caught.value.errno == errno.ENOTSUP


# Other writers


def test_parts_of_two_versions_are_never_mixed(web: WebServer, memory: Any, tmp_path: Path) -> None:
    files = fsspec.filesystem("file")
    for store, write in (
        (on_the_web(web), web.values.__setitem__),
        (FsspecStore(memory, "/a"), FsspecStore(memory, "/a").set),
        (FsspecStore(files, str(tmp_path)), LocalStore(tmp_path).set),
    ):
        write("a", b"old value")
        source = store.source("a")
        assert source.read_one(zarrlite.ByteRange(0, 3)) == b"old"
        write("a", b"new value")
        assert not source.is_current()
        with pytest.raises(ReplacedError):
            source.read_one(zarrlite.ByteRange(4, 9))
        source.close()
        assert source.read_one(zarrlite.ByteRange(0, 3)) == b"new"


def test_values_without_a_version_are_read_whole(web: WebServer) -> None:
    web.has_versions = False
    web.values["a"] = b"old value"
    source = on_the_web(web).source("a")
    assert source.read_one(zarrlite.ByteRange(0, 3)) == b"old"
    web.values["a"] = b"new value"
    assert source.read_one(zarrlite.ByteRange(0, 5)) == b"old v"
    assert isinstance(source, VersionedSource)
    assert source.version() is None


def test_listings_see_other_writers(memory: Any, tmp_path: Path) -> None:
    cached = fsspec.filesystem("filecache", fs=memory, cache_storage=str(tmp_path))
    for store in (FsspecStore(memory, "/a"), FsspecStore(cached, "/a")):
        assert list(store.list()) in ([], ["b"])
        FsspecStore(memory, "/a").set("b", b"1")
        assert list(store.list()) == ["b"]
        assert store.size("b") == 1


def test_only_one_of_many_threads_creates_a_value(memory: Any, tmp_path: Path) -> None:
    for store in (FsspecStore(memory, "/a"), FsspecStore(fsspec.filesystem("file"), str(tmp_path))):
        created: list[int] = []
        start = threading.Barrier(8)

        def create(number: int, store: Any = store, created: Any = created, start: Any = start) -> None:
            start.wait(60)
            if store.set("a/b", b"%d" % number, new=True):
                created.append(number)

        workers = [threading.Thread(target=create, args=(n,)) for n in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [b"%d" % number for number in created] == [bytes(store.get("a/b"))]


def test_files_of_a_local_filesystem_are_replaced_at_once(tmp_path: Path) -> None:
    store = FsspecStore(fsspec.filesystem("file"), str(tmp_path))
    values = [bytes([n]) * 200_000 for n in range(2)]
    store.set("a/b", values[0])
    stopped = threading.Event()

    def write() -> None:
        for n in range(200):
            store.set("a/b", values[n % 2])
        stopped.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not stopped.is_set():
        assert store.get("a/b") in values
    writer.join()
    assert os.listdir(tmp_path / "a") == ["b"]
    assert store.location("a/") == LocalStore(tmp_path).location("a/")


def test_erasing_a_prefix_on_a_disk_removes_its_folders(tmp_path: Path) -> None:
    store = FsspecStore(fsspec.filesystem("file"), str(tmp_path))
    store.set_many([("a/b/c", b"1"), ("a/d", b"2"), ("e/f", b"3")])
    store.erase("a/b/c")
    store.set("a/b", b"4")  # replaces the folder, which is empty now
    store.erase_prefix("a/")
    assert os.listdir(tmp_path) == ["e"]
    with pytest.raises(StoreError, match=r"'e' cannot be written: .*it is a prefix of other keys"):
        store.set("e", b"5")
    assert list(store.list()) == ["e/f"]


# Processes


def test_a_pickle_is_the_same_store(web: WebServer, tmp_path: Path) -> None:
    web.values["a"] = b"1"
    for store in (on_the_web(web, read_only=True), FsspecStore.from_url(f"simplecache::file://{tmp_path}")):
        loaded = pickle.loads(pickle.dumps(store))
        assert loaded == store
        assert hash(loaded) == hash(store)
        assert (loaded.read_only, repr(loaded)) == (store.read_only, repr(store))
        assert loaded.get("a") == store.get("a")
    assert on_the_web(web) != on_the_web(web, read_only=True)


def _read(store: FsspecStore, answers: Any) -> None:
    answers.put([bytes(store.get(key) or b"") for key in ("a", "none")])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_can_read_from_a_store(web: WebServer, method: str) -> None:
    web.values["a"] = b"value"
    store = on_the_web(web)
    assert store.get("a") == b"value"  # starts the event loop of the parent process
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    child = context.Process(target=_read, args=(store, answers))
    child.start()
    assert answers.get(timeout=120) == [b"value", b""]
    child.join()


def test_using_the_filesystem_of_a_parent_process_is_an_error_at_once(web: WebServer) -> None:
    web.values["a"] = b"value"
    store = FsspecStore(fsspec.filesystem("dir", path=web.url, fs=fsspec.filesystem("http")))
    assert store.get("a") == b"value"
    pid = os.fork()
    if not pid:
        try:
            store.get("a")
        except StoreError as error:
            os._exit(0 if "spawn or forkserver" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_store_in_memory_can_be_copied_to_a_filesystem_and_back(memory: Any) -> None:
    source = zarrlite.create_array(MemoryStore(), data=np.arange(100), chunks=10, shards=50)
    there = zarrlite.copy(source, FsspecStore(memory, "/x"))
    back = zarrlite.copy(there, MemoryStore())
    assert (back[...] == source[...]).all()
    there[3:7] = -1
    assert there[2:8].tolist() == [2, -1, -1, -1, -1, 7]
    with pytest.raises(ArgumentError, match="onto or into itself"):
        zarrlite.copy(there, FsspecStore(memory, "/x"))
    there.delete()
    assert list(there.store.list()) == []
