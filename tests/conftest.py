"""Fixtures that all tests share: peers and servers. Hypothesis sets no deadlines, so tests pass on slow machines."""

from __future__ import annotations

# ruff: noqa: E402  # the libraries are chosen before anything imports zarrlite
from tests import libraries

libraries.choose()

import importlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from remote.servers import Azurite, Nginx, SeaweedFS, Server, shared
from required import lacking

from zarrlite.extensions.registry import REGISTRIES

settings.register_profile(
    "zarrlite",
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=not os.environ.get("ZARRLITE_RANDOM"),  # the same examples on every run, unless ZARRLITE_RANDOM is set
)
settings.load_profile("zarrlite")


for kind in REGISTRIES.values():
    kind.classes()  # load the built-in classes now, because `_registries` would unregister any that a test loads


@pytest.fixture(autouse=True)
def _registries() -> Iterator[None]:
    """Unregister the extensions that a test has registered."""
    before = [(kind, dict(kind._classes), list(kind._patterns)) for kind in REGISTRIES.values()]
    yield
    for kind, classes, patterns in before:
        kind._classes, kind._patterns = classes, patterns


def load_peer(name: str) -> ModuleType:
    """Import a peer. If the peer is not installed, skip the test, or fail it if peers are required."""
    try:
        return importlib.import_module(name)
    except ImportError:
        lacking(f"{name} is not installed")


@pytest.fixture(scope="session")
def zarr() -> ModuleType:
    return load_peer("zarr")


@pytest.fixture(scope="session")
def icechunk(zarr: ModuleType) -> ModuleType:
    return load_peer("icechunk")


@pytest.fixture(scope="session")
def zarrs(zarr: ModuleType) -> ModuleType:
    return load_peer("zarrs")


@pytest.fixture(scope="session")
def zarrista() -> ModuleType:
    return load_peer("zarrista")


@pytest.fixture(scope="session")
def tensorstore() -> ModuleType:
    return load_peer("tensorstore")


@pytest.fixture(scope="session")
def tifffile() -> ModuleType:
    load_peer("imagecodecs")  # tifffile needs it for zstd
    return load_peer("tifffile")


@pytest.fixture(scope="session")
def netcdf() -> ModuleType:
    return load_peer("netCDF4")


@pytest.fixture(scope="session")
def rasterio() -> ModuleType:
    load_peer("rasterio.shutil")
    return load_peer("rasterio")


@pytest.fixture(scope="session")
def pillow() -> ModuleType:
    return load_peer("PIL.Image")


@pytest.fixture(scope="session")
def libtiff() -> Callable[..., str]:
    """Return a function that runs one of libtiff's tools, checks that it prints no warning, and returns its output."""
    for name in ("tiffinfo", "tiffcp", "tiffcmp", "tiffdump"):
        if shutil.which(name) is None:
            lacking(f"{name} is not installed (Debian: libtiff-tools)")

    def run(*command: object) -> str:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        return done.stdout

    return run


@pytest.fixture(scope="session")
def z5py() -> ModuleType:
    return load_peer("z5py")


@pytest.fixture(scope="session")
def dump_dom() -> Callable[[Path], str]:
    """Return a function that renders a page in a real browser and returns its DOM as text."""
    browser = shutil.which("chromium")
    if browser is None:
        lacking("chromium is not installed (Debian: chromium)")

    def run(page: Path) -> str:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout

    return run


def _server(factory: pytest.TempPathFactory, kind: type[Server]) -> Iterator[Any]:
    folder: Path = factory.getbasetemp()
    if folder.name.startswith("popen-"):  # this process is a pytest-xdist worker
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


@pytest.fixture
def s3_environment(seaweedfs: SeaweedFS, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment variables that let S3 clients find the test server."""
    load_peer("obstore")
    settings = seaweedfs.settings()
    monkeypatch.setenv("AWS_ENDPOINT_URL", settings["endpoint"])
    monkeypatch.setenv("AWS_REGION", settings["region"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", settings["credentials"]["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", settings["credentials"]["secret_access_key"])
