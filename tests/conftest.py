"""What all tests share: the peers, and hypothesis without deadlines (no test fails because a machine is slow)."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "zarrlite",
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=not os.environ.get("ZARRLITE_RANDOM"),  # the same examples on every run, unless others are asked for
)
settings.load_profile("zarrlite")


def load_peer(name: str) -> ModuleType:
    """Import a peer; where peers are required its absence is a failure, elsewhere a skip."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if os.environ.get("ZARRLITE_REQUIRE_PEERS"):
            pytest.fail(f"{name} is not installed and peers are required")
        pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="session")
def zarr() -> ModuleType:
    return load_peer("zarr")


@pytest.fixture(scope="session")
def zarrs(zarr: ModuleType) -> ModuleType:
    return load_peer("zarrs")


@pytest.fixture(scope="session")
def tensorstore() -> ModuleType:
    return load_peer("tensorstore")
