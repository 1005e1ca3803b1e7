"""The laws of stores, on object stores and HTTP servers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from remote.servers import Nginx

from zarrlite import Store
from zarrlite.stores.object import ObjectStore
from zarrlite.testing import ReadingLaws, StoreLaws
from zarrlite.tools.testing.stores import RANGES


class TestS3(StoreLaws):
    @pytest.fixture(autouse=True)
    def _server(self, make_s3: Any) -> None:
        self.make = make_s3

    def make_store(self) -> Store:
        return self.make()


FEW = RANGES[:: len(RANGES) // 60]  # a sample; only the tests with S3 read all ranges


class TestS3WithASingleWriter(StoreLaws):
    ranges = FEW

    @pytest.fixture(autouse=True)
    def _server(self, make_s3: Any) -> None:
        self.make = make_s3

    def make_store(self) -> Store:
        return self.make(single_writer=True)


class TestAzure(StoreLaws):
    ranges = FEW

    @pytest.fixture(autouse=True)
    def _server(self, make_azure: Any) -> None:
        self.make = make_azure

    def make_store(self) -> Store:
        return self.make()


class TestMemoryOfObstore(StoreLaws):
    def make_store(self) -> Store:
        from obstore.store import MemoryStore

        return ObjectStore(MemoryStore())


class TestHttp(ReadingLaws):
    can_list = False

    @pytest.fixture(autouse=True)
    def _server(self, nginx: Nginx) -> None:
        self.nginx = nginx

    def store_with(self, values: Mapping[str, bytes]) -> Store:
        name = uuid.uuid4().hex
        for key, value in values.items():
            path = self.nginx.files / name / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(value)
        # nginx answers requests for folders with 403
        return ObjectStore(f"{self.nginx.url}/{name}", missing_status=(403, 404))
