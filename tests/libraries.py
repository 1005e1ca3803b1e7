"""Choose the libraries for zstd and CRC32C that zarrlite uses in the tests.

`ZARRLITE_WITHOUT="zstandard google_crc32c" pytest` runs the tests as if these packages were not installed: zarrlite
then uses `compression.zstd` (or backports.zstd) and the package crc32c. The tests themselves can still import the
hidden packages.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

VARIABLE = "ZARRLITE_WITHOUT"


@contextmanager
def hidden(names: Sequence[str]) -> Iterator[None]:
    """Make imports of these modules fail inside the `with` block."""
    before = {name: sys.modules[name] for name in names if name in sys.modules}
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]
        sys.modules.update(before)


def choose() -> None:
    """Import the modules that choose a library, with the packages in `ZARRLITE_WITHOUT` hidden."""
    names = os.environ.get(VARIABLE, "").split()
    with hidden(names):
        for name in ("crc32c", "zstd"):
            module = importlib.import_module(f"zarrlite.libraries.{name}")
            assert module.library not in names
