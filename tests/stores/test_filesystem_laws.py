"""FsspecStore: the laws of stores, on several kinds of filesystems."""

from __future__ import annotations

import io
import itertools
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import fsspec
import pytest

from tests.stores.web_server import serving
from zarrlite.errors import StoreError
from zarrlite.stores import FsspecStore, Store
from zarrlite.testing import ReadingLaws, StoreLaws
from zarrlite.tools.testing.stores import MODEL, RANGES

_numbers = itertools.count()


class TestFsspecStoreInMemory(StoreLaws):
    def make_store(self) -> Store:
        files = fsspec.filesystem("memory", global_store=False, skip_instance_cache=True)
        return FsspecStore(files, "/a/b.zarr")


class TestFsspecStoreOnADisk(StoreLaws):
    @pytest.fixture(autouse=True)
    def _directories(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.new = tmp_path_factory

    def make_store(self) -> Store:
        return FsspecStore(fsspec.filesystem("file"), str(self.new.mktemp("local") / "a.zarr"))


class TestFsspecStoreInAView(StoreLaws):
    """A store on a `dir` filesystem, which wraps another filesystem."""

    def make_store(self) -> Store:
        files = fsspec.filesystem("memory", global_store=False, skip_instance_cache=True)
        return FsspecStore(fsspec.filesystem("dir", path="/below", fs=files), "a.zarr")


class TestFsspecStoreInAZipFile(ReadingLaws):
    def store_with(self, values: Mapping[str, bytes]) -> Store:
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as file:
            for key, value in values.items():
                file.writestr(f"a.zarr/{key}", value)
        return FsspecStore(fsspec.filesystem("zip", fo=data), "a.zarr", read_only=True)


class TestFsspecStoreInAFileCache(ReadingLaws):
    @pytest.fixture(autouse=True)
    def _directories(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.new = tmp_path_factory

    def store_with(self, values: Mapping[str, bytes]) -> Store:
        folder = f"/filecache/{next(_numbers)}"
        fsspec.filesystem("memory").pipe({f"{folder}/{key}": value for key, value in values.items()} or {"/x": b""})
        options = {"filecache": {"cache_storage": str(self.new.mktemp("cache"))}}
        return FsspecStore.from_url(f"filecache::memory:/{folder}", options)


class _Web(ReadingLaws):
    honours_ranges = True
    ranges = RANGES[::31]

    @pytest.fixture(autouse=True)
    def _servers(self) -> Iterator[None]:
        with ExitStack() as self.servers:
            yield

    def store_with(self, values: Mapping[str, bytes]) -> Store:
        # the filesystem lists a folder by reading its web page, and the server has no page for an empty folder
        web = self.servers.enter_context(serving({f"a b/{key}": value for key, value in values.items()}))
        web.honours_ranges = self.honours_ranges
        return FsspecStore(fsspec.filesystem("http"), f"{web.url}/a%20b", read_only=True)

    def test_a_store_without_values_is_empty(self) -> None:
        pytest.skip("a server without pages cannot be listed")

    def test_listings_agree_with_a_dict(self) -> None:
        store = self.filled()
        assert sorted(store.list()) == sorted(MODEL)
        assert store.list_dir("a/c/") == ([], ["a/c/0/"])
        with pytest.raises(StoreError, match="cannot be listed"):
            store.list_dir("none/")


class TestFsspecStoreOfAWebServer(_Web):
    pass


class TestFsspecStoreOfAWebServerThatIgnoresRanges(_Web):
    honours_ranges = False
