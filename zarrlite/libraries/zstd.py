"""Zstandard, implemented by the package zstandard or by `compression.zstd` in the standard library (PEP 784).

Rules
- The package zstandard is preferred, since it decodes into existing memory and decodes many values in one call. The
  second choice is `compression.zstd` (Python 3.14 and later), the third is backports.zstd, the same library for earlier
  versions of Python.
- The modules zstd_zstandard and zstd_standard have the same classes and functions, and accept the same frames.
"""

from __future__ import annotations

from zarrlite.errors import DependencyError

try:
    from zarrlite.libraries.zstd_zstandard import Compressor, Decompressor, Error, frame_content_size, library
except ImportError:
    try:
        from zarrlite.libraries.zstd_standard import (  # type: ignore[assignment]
            Compressor,
            Decompressor,
            Error,
            frame_content_size,
            library,
        )
    except ImportError as error:
        message = "zstd needs zstandard, or Python 3.14, or backports.zstd: pip install zstandard"
        raise DependencyError(message) from error

__all__ = ["Compressor", "Decompressor", "Error", "frame_content_size", "library"]
