"""A dask cluster with two worker processes, shared by the tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator

import dask
import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Client]:
    with (
        dask.config.set({"distributed.worker.daemon": False}),
        LocalCluster(
            2, processes=True, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as machines,
        Client(machines, set_as_default=False) as client,
    ):
        yield client
