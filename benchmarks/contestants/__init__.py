"""The contestants, each imported when it is loaded, so that a peer that is not installed can be skipped."""

from __future__ import annotations

import importlib
import os

from benchmarks.contestants.base import Contestant, Unsupported

__all__ = ["NAMES", "PEERS", "REMOTE", "Contestant", "Unsupported", "load"]

_CLASSES = {
    "limit": "benchmarks.limit:Limit",
    "zarrlite": "benchmarks.contestants.zarrlite:Zarrlite",
    "zarr-python": "benchmarks.contestants.zarr_python:ZarrPython",
    "zarrs": "benchmarks.contestants.zarr_python:Zarrs",
    "tensorstore": "benchmarks.contestants.tensorstore:TensorStore",
    "zarrista": "benchmarks.contestants.zarrista:Zarrista",
}
_REMOTE_CLASSES = {
    "limit": "benchmarks.remote.limit:Limit",
    "zarrlite": "benchmarks.remote.contestants.zarrlite:RemoteZarrlite",
    "zarr-python 10": "benchmarks.remote.contestants.zarr_python:ZarrPython10",
    "zarr-python 64": "benchmarks.remote.contestants.zarr_python:ZarrPython64",
    "tensorstore 32": "benchmarks.remote.contestants.tensorstore:RemoteTensorStore",
    "tensorstore 64": "benchmarks.remote.contestants.tensorstore:RemoteTensorStore64",
    "zarrista": "benchmarks.remote.contestants.zarrista:RemoteZarrista",
    "zarrlite fsspec": "benchmarks.remote.contestants.fsspec:FsspecZarrlite",
}
if os.environ.get("ZARRLITE_NEWEST"):  # set by --newest
    _CLASSES["zarr-python fused"] = "benchmarks.contestants.zarr_python:FusedZarrPython"
PEERS = (*tuple(_CLASSES)[2:], *tuple(_REMOTE_CLASSES)[2:-1])
if os.environ.get("ZARRLITE_BASELINE"):
    _CLASSES["baseline"] = "benchmarks.contestants.baseline:Baseline"
NAMES = tuple(_CLASSES)
REMOTE = tuple(_REMOTE_CLASSES)


def load(name: str, remote: bool = False) -> Contestant:
    """Return the contestant with this name; raise ImportError if its library is not installed."""
    module, cls = (_REMOTE_CLASSES if remote else _CLASSES)[name].split(":")
    contestant: Contestant = getattr(importlib.import_module(module), cls)()
    return contestant
