"""The harnesses that come with zarrlite, and how a harness that somebody names is started.

Rules
- A harness is a shipped name, a file (`.py` is run by this Python, `.js` and `.mjs` by node), or a command in one text.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from zarrlite.errors import ArgumentError, DependencyError

_FOLDER = Path(__file__).parent / "harnesses"
SHIPPED = {
    "zarrlite": "zarrlite_itself.py",
    "zarr-python": "zarr_python.py",
    "zarrs": "zarrs_pipeline.py",
    "tensorstore": "tensorstore_zarr3.py",
    "zarrita": "zarrita.mjs",
}


def commands_of(names: list[str]) -> list[list[str]]:
    """The commands of the harnesses that are named; `all` stands for every one that is shipped."""
    return [command_of(name) for given in names for name in (SHIPPED if given == "all" else [given])]


def command_of(name: str) -> list[str]:
    """The command that starts a harness."""
    path = _FOLDER / SHIPPED[name] if name in SHIPPED else Path(name)
    if not path.is_file():
        words = shlex.split(name)
        if not words or shutil.which(words[0]) is None:
            raise ArgumentError(f"{name!r} is neither a file nor a command nor one of: {', '.join(SHIPPED)}, all")
        return words
    if path.suffix == ".py":
        return [sys.executable, str(path)]
    if path.suffix in (".js", ".mjs"):
        node = shutil.which("node")
        if node is None:
            raise DependencyError(f"{path.name} is run by node, which is not installed")
        return [node, str(path)]
    if not os.access(path, os.X_OK):
        raise ArgumentError(f"{name} is not executable, and zarrlite runs only .py, .js and .mjs by itself")
    return [str(path.resolve())]
