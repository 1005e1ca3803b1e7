"""Fixtures for tests of the command line: a hierarchy, and two ways to run a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import zarrlite
from zarrlite.tools.cli.main import main

ROOT = Path(zarrlite.__file__).parents[1]
DATA = np.arange(100, dtype="float64").reshape(10, 10)


class Ran(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def _neutral_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create `a.zarr` in the current directory: a group that has attributes and contains the array `raw/image`."""
    monkeypatch.chdir(tmp_path)
    root = zarrlite.create_group("a.zarr", attributes={"by": "me"})
    root.create_array("raw/image", data=DATA, chunks=(4, 4), dimension_names=["y", "x"])
    return tmp_path


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Return a function that runs a command in this process."""

    def run(*arguments: object) -> Ran:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
        return Ran(code, *capfd.readouterr())

    return run


@pytest.fixture
def process() -> Callable[..., Ran]:
    """Return a function that runs a command in a new process, as users do."""

    def process(*arguments: object, stdin: str = "", **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "zarrlite", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return process
