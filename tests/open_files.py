"""The files that this process has open, for tests that look for leaks."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def open_files(directory: Path) -> list[str]:
    """Return the paths of all open files and directories below a directory; sockets of other tests are left out."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # another thread may have closed this descriptor in the meantime
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(path for path in found if path.startswith(str(directory)))
