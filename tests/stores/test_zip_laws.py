"""ZipStore: the laws of stores, for writers, readers, and zip files in other stores."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping

import pytest

from zarrlite.stores import MemoryStore, Store, ZipStore
from zarrlite.testing import ReadingLaws, StoreLaws


class TestZipStoreWriting(StoreLaws):
    @pytest.fixture(autouse=True)
    def _directories(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        self.new, self.opened = tmp_path_factory, list[ZipStore]()
        yield
        for store in self.opened:
            store.close()

    def make_store(self) -> Store:
        self.opened.append(ZipStore(self.new.mktemp("zip") / "a.zip", mode="w"))
        return self.opened[-1]


class TestZipStoreChanging(TestZipStoreWriting):
    """A writer that changes an existing file: values are read from that file until they are replaced."""

    def make_store(self) -> Store:
        path = self.new.mktemp("zip") / "a.zip"
        ZipStore(path, mode="w").close()
        self.opened.append(ZipStore(path, mode="a"))
        return self.opened[-1]

    def store_with(self, values: Mapping[str, bytes]) -> Store:
        path = self.new.mktemp("zip") / "a.zip"
        path.write_bytes(zipped(values))
        self.opened.append(ZipStore(path, mode="a"))
        return self.opened[-1]


class TestZipStoreReading(ReadingLaws):
    @pytest.fixture(autouse=True)
    def _directories(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.new = tmp_path_factory

    def store_with(self, values: Mapping[str, bytes]) -> Store:
        path = self.new.mktemp("zip") / "a.zip"
        with ZipStore(path, mode="w") as store:
            store.set_many(values.items())
        return ZipStore(path)


class TestZipStoreReadingDeflatedEntries(ReadingLaws):
    def store_with(self, values: Mapping[str, bytes]) -> Store:
        return ZipStore((MemoryStore({"b/a.zip": zipped(values, zipfile.ZIP_DEFLATED)}), "b/a.zip"))


def zipped(values: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for key, value in values.items():
            archive.writestr(key, value)
    return file.getvalue()
