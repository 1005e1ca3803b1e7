"""The servers that tests of remote stores share, and stores on them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from remote.servers import Azurite, Nginx, SeaweedFS, Server, shared

from zarrlite.stores.object import ObjectStore

MakeStore = Callable[..., ObjectStore]


def _server(factory: pytest.TempPathFactory, kind: type[Server]) -> Iterator[Any]:
    folder: Path = factory.getbasetemp()
    if folder.name.startswith("popen-"):  # a worker of pytest-xdist
        folder = folder.parent
    with shared(folder / kind.__name__, kind) as server:
        yield server


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedFS]:
    yield from _server(tmp_path_factory, SeaweedFS)


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    yield from _server(tmp_path_factory, Azurite)


@pytest.fixture(scope="session")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    yield from _server(tmp_path_factory, Nginx)


@pytest.fixture(scope="session")
def make_s3(seaweedfs: SeaweedFS) -> MakeStore:
    """Creates stores on SeaweedFS, each at another prefix."""

    def make(path: str | None = None, **options: Any) -> ObjectStore:
        url = f"s3://{SeaweedFS.bucket}/{uuid.uuid4().hex if path is None else path}"
        return ObjectStore(url, **{**seaweedfs.settings(), **options})

    return make


@pytest.fixture(scope="session")
def make_azure(azurite: Azurite) -> MakeStore:
    """Creates stores on Azurite, each at another prefix."""

    def make(**options: Any) -> ObjectStore:
        return ObjectStore(f"az://{Azurite.container}/{uuid.uuid4().hex}", **{**azurite.settings(), **options})

    return make
