"""Another checkout of zarrlite, so that a single run can compare a change with the previous version.

Rules
- `ZARRLITE_BASELINE` names the checkout. Its package is copied under another name, since both versions
  run in one process.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.contestants.zarrlite import Zarrlite

PACKAGE = "zarrlite_baseline"


def copy_package(checkout: Path, directory: Path) -> None:
    """Copy the package of a checkout, renamed to `PACKAGE`."""
    target = directory / PACKAGE
    shutil.copytree(checkout / "zarrlite", target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in target.rglob("*.py"):
        path.write_text(re.sub(r"\bzarrlite\b", PACKAGE, path.read_text()))


class Baseline(Zarrlite):
    """zarrlite from another checkout."""

    name = "baseline"
    packages = ()

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="zarrlite-baseline-")
        copy_package(Path(os.environ["ZARRLITE_BASELINE"]), Path(self._directory.name))
        sys.path.insert(0, self._directory.name)
        self.library = importlib.import_module(PACKAGE)
        path = f"import sys; sys.path.insert(0, {self._directory.name!r}); "
        self.cold_import = path + Zarrlite.cold_import.replace("zarrlite", PACKAGE)
        self.cold_read = path + Zarrlite.cold_read.replace("zarrlite", PACKAGE)
