"""The harnesses that ship with zarrlite, and the command that starts a harness.

Rules
- A harness is given as the name of a shipped one, as a file (`.py` runs in this Python, `.js` and `.mjs` in node), or
  as a command line.
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
    "zarrista": "zarrista_arrays.py",
    "tensorstore": "tensorstore_zarr3.py",
    "zarrita": "zarrita.mjs",
}


def commands_of(names: list[str]) -> list[list[str]]:
    """Return the commands that start the named harnesses; `all` means every shipped one."""
    expanded: list[str] = []
    for name in names:
        expanded += SHIPPED if name == "all" else [name]
    return [command_of(name) for name in expanded]


def command_of(name: str) -> list[str]:
    """Return the command that starts a harness."""
    path = _FOLDER / SHIPPED[name] if name in SHIPPED else Path(name)
    if not path.is_file():
        words = shlex.split(name)
        if not words or shutil.which(words[0]) is None:
            raise ArgumentError(f"{name!r} must be a file, a command or one of: {', '.join(SHIPPED)}, all")
        return words
    if path.suffix == ".py":
        return [sys.executable, str(path)]
    if path.suffix in (".js", ".mjs"):
        node = shutil.which("node")
        if node is None:
            raise DependencyError(f"{path.name} needs node, which is not installed")
        return [node, str(path)]
    if not os.access(path, os.X_OK):
        raise ArgumentError(f"{name} must be executable, or a .py, .js or .mjs file")
    return [str(path.resolve())]
