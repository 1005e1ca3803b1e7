"""`python -m tests.nodes.planted [TEXT ...]`: plant faults in operations on nodes, and run the tests that find them.

The faults are listed in `planted.json` and must be caught by the tests of nodes and stores. The faults of
tests/mutations, in contrast, are caught by the conformance fixtures, which do not test crashes and races. With
arguments, only faults whose file or text contains one of the arguments are planted. The exit code is 1 if any fault is
not caught.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LIMIT = 300.0  # seconds; a fault also counts as caught if its test takes longer


class Fault(NamedTuple):
    """A piece of a source file, the faulty text that replaces it, and the tests that catch the fault."""

    file: str  # relative to the package
    old: str
    new: str
    test: str


FAULTS = [Fault(**fault) for fault in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))]


@contextmanager
def copied() -> Iterator[Path]:
    """Copy the package and its tests into a temporary directory."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for part in ("zarrlite", "tests"):
            shutil.copytree(ROOT / part, directory / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", directory)
        yield directory


def is_caught(fault: Fault, directory: Path) -> bool:
    """Whether the tests that must catch a fault fail when it is planted in a copy of the package."""
    path = directory / "zarrlite" / fault.file
    text = path.read_text("utf-8")
    path.write_text(text.replace(fault.old, fault.new), "utf-8")
    # no bytecode: Python would use outdated bytecode for a file that changes twice within a second
    environment = {**os.environ, "PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-k", "not disk", fault.test]
    try:
        done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(text, "utf-8")
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{fault.test} cannot be run: {done.stdout}{done.stderr}")
    return done.returncode == 1


def main(words: list[str]) -> int:
    """Plant the faults one by one and print which of them are caught."""
    chosen = [fault for fault in FAULTS if not words or any(word in f"{fault.file} {fault.old}" for word in words)]
    caught = 0
    with copied() as directory:
        for fault in chosen:
            found = is_caught(fault, directory)
            caught += found
            verdict = "caught" if found else "SURVIVED"
            print(f"{verdict} {fault.file}: {fault.old.strip().splitlines()[0]}", flush=True)
    print(f"{caught} of {len(chosen)} planted faults are caught")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
