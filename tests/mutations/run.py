"""Plant bugs one by one in a copy of the package, and run the corpus against each.

Rules
- `planted.json` lists the bugs. Each is small and of the kind that people make: a check that is skipped, a sign, a
  bound, an order, a default. Each changes what is read, written or refused; what changes speed or a message is none.
- The text that a bug replaces stands in its file exactly once; where the code moves, it is pointed at the same rule.
- A bug is caught if a case fails, or does not come to an end. Nothing outside of a temporary directory is changed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SECONDS = 120.0  # many times what the whole corpus takes


class Planted(NamedTuple):
    """One bug."""

    file: str  # in the package
    old: str
    new: str
    first: list[str]  # beginnings of ids: where cases that catch it are likely


PLANTED = [Planted(**bug) for bug in json.loads((HERE / "planted.json").read_text("utf-8"))]


@contextmanager
def copied() -> Iterator[Path]:
    """A directory with a copy of the package."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(ROOT / "zarrlite", Path(directory) / "zarrlite", ignore=shutil.ignore_patterns("__pycache__"))
        yield Path(directory)


def run_corpus(directory: Path, first: Sequence[str] = ()) -> str:
    """What the corpus says about the package in a directory: the case that fails, or nothing."""
    # without bytecode: a file that is changed twice within a second would be taken for the old one
    environment = {**os.environ, "PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", str(HERE / "corpus.py"), *first]
    try:
        done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "no end"
    if done.returncode:
        raise RuntimeError(f"the corpus cannot be run: {done.stderr}")
    return done.stdout.strip()


def plant(bug: Planted, directory: Path) -> str:
    """What the corpus says once a bug is planted; the copy is as it was afterwards."""
    path = directory / "zarrlite" / bug.file
    text = path.read_text("utf-8")
    path.write_text(text.replace(bug.old, bug.new), "utf-8")
    try:
        return run_corpus(directory, bug.first)
    finally:
        path.write_text(text, "utf-8")
