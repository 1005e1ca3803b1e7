"""Plant bugs one by one in a copy of the package, and run the corpus against each.

Rules
- `planted.json` lists the bugs. Each is a small mistake of the kind that people make: a skipped check, or a wrong sign,
  bound, order or default. Each changes what is read, written or refused, not only the speed or a message.
- The text that a bug replaces must occur exactly once in its file. When the code changes, update the entry.
- A bug is caught if a case fails or does not finish. Only files in a temporary directory are changed.
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
FOLDER = Path(__file__).parent
LIMIT = 120.0  # seconds, many times the duration of a full run; if a run takes longer, the bug counts as caught


class Planted(NamedTuple):
    """One bug: a text in a file of the package, and its replacement."""

    file: str  # relative to the package
    old: str
    new: str
    first: list[str]  # prefixes of case ids; these cases run first, because they are likely to catch the bug


PLANTED = [Planted(**bug) for bug in json.loads((FOLDER / "planted.json").read_text("utf-8"))]


@contextmanager
def copied() -> Iterator[Path]:
    """Copy the package into a temporary directory."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(ROOT / "zarrlite", Path(directory) / "zarrlite", ignore=shutil.ignore_patterns("__pycache__"))
        yield Path(directory)


def run_corpus(directory: Path, first: Sequence[str] = ()) -> str:
    """Run the corpus against the package in a directory; return the id of the failing case, or an empty string."""
    # no bytecode: it may be stale, as Python does not notice two changes to a file within a second
    environment = {**os.environ, "PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", str(FOLDER / "corpus.py"), *first]
    try:
        done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "a timeout"
    if done.returncode:
        raise RuntimeError(f"the corpus cannot be run: {done.stderr}")
    return done.stdout.strip()


def plant(bug: Planted, directory: Path) -> str:
    """Plant a bug, run the corpus and restore the copy. Returns the result of `run_corpus`."""
    path = directory / "zarrlite" / bug.file
    text = path.read_text("utf-8")
    path.write_text(text.replace(bug.old, bug.new), "utf-8")
    try:
        return run_corpus(directory, bug.first)
    finally:
        path.write_text(text, "utf-8")
