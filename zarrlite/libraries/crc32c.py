"""CRC32C, computed by google-crc32c or by the package crc32c.

Rules
- The first choice is google-crc32c with its compiled code, the second is crc32c, and the last is google-crc32c in pure
  Python, which is about a thousand times slower.
- All of them compute the same checksum for any buffer.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import DependencyError

_BYTE = np.dtype("u1")


def _import_google() -> Any:
    """Import google-crc32c. Returns None if it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # about missing compiled code
            import google_crc32c
    except ImportError:
        return None
    return google_crc32c


def _import_crc32c() -> Any:
    """Import the package crc32c. Returns None if it is not installed."""
    try:
        import crc32c
    except ImportError:
        return None
    return crc32c


_google = _import_google()
_other: Any = None if _google is not None and _google.implementation == "c" else _import_crc32c()
library = "google_crc32c" if _other is None else "crc32c"  # the name of the module in use

if _other is not None:

    def checksum(data: Buffer, start: int = 0) -> int:
        """Continue a CRC32C with the bytes of a buffer. `start` is the CRC32C of all bytes before them."""
        value: int = _other.crc32c(data, start)
        return value

elif _google is not None:

    def checksum(data: Buffer, start: int = 0) -> int:
        """Continue a CRC32C with the bytes of a buffer. `start` is the CRC32C of all bytes before them."""
        # google-crc32c accepts bytes and arrays, but not memoryviews
        value: int = _google.extend(start, data if type(data) is bytes else np.frombuffer(data, _BYTE))
        return value

else:
    raise DependencyError("CRC32C needs google-crc32c or crc32c: pip install google-crc32c")
