"""The contestants, each imported when it is loaded, so that a peer that is not installed can be skipped."""

from __future__ import annotations

import importlib
import os

from benchmarks.contestants.base import Contestant, Unsupported

__all__ = ["NAMES", "PEERS", "Contestant", "Unsupported", "load"]

_CLASSES = {
    "limit": "benchmarks.limit:Limit",
    "zarrlite": "benchmarks.contestants.zarrlite:Zarrlite",
    "zarr-python": "benchmarks.contestants.zarr_python:ZarrPython",
    "zarrs": "benchmarks.contestants.zarr_python:Zarrs",
    "tensorstore": "benchmarks.contestants.tensorstore:TensorStore",
}
PEERS = tuple(_CLASSES)[2:]
if os.environ.get("ZARRLITE_BASELINE"):
    _CLASSES["baseline"] = "benchmarks.contestants.baseline:Baseline"
NAMES = tuple(_CLASSES)


def load(name: str) -> Contestant:
    """Return the contestant with this name; raise ImportError if its library is not installed."""
    module, cls = _CLASSES[name].split(":")
    contestant: Contestant = getattr(importlib.import_module(module), cls)()
    return contestant
