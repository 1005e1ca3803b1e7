"""Stores on the servers that all tests share."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from remote.servers import Azurite, SeaweedFS

from zarrlite.stores.object import ObjectStore

MakeStore = Callable[..., ObjectStore]


@pytest.fixture(scope="session")
def make_s3(seaweedfs: SeaweedFS) -> MakeStore:
    """Return a function that creates stores on SeaweedFS, each under its own prefix unless a path is passed."""

    def make(path: str | None = None, **options: Any) -> ObjectStore:
        url = f"s3://{SeaweedFS.bucket}/{uuid.uuid4().hex if path is None else path}"
        return ObjectStore(url, **{**seaweedfs.settings(), **options})

    return make


@pytest.fixture(scope="session")
def make_azure(azurite: Azurite) -> MakeStore:
    """Return a function that creates stores on Azurite, each under its own prefix."""

    def make(**options: Any) -> ObjectStore:
        return ObjectStore(f"az://{Azurite.container}/{uuid.uuid4().hex}", **{**azurite.settings(), **options})

    return make
