"""Fixtures: a local store, and the list of its files on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from zarrlite.stores import LocalStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(root)


@pytest.fixture
def tree() -> Callable[[Path], list[str]]:
    """A function that lists all paths below a directory; paths of directories end with a slash."""
    return lambda root: sorted(str(path.relative_to(root)) + "/" * path.is_dir() for path in root.rglob("*"))
