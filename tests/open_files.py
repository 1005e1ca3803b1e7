"""The files that this process has open, for tests of leaks."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def open_files(directory: Path) -> list[str]:
    """Return the open files, and open directories, in a directory. Connections of other tests do not count."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile, by another thread
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(path for path in found if path.startswith(str(directory)))
