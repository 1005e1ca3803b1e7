"""The compiled libraries that some codecs need: numcodecs, pcodec and zfpy (install zarrlite[numcodecs])."""

from __future__ import annotations

import importlib
from typing import Any

from zarrlite.errors import DependencyError


def library(module: str, codec: str) -> Any:
    """Import a module for a codec. If it is not installed, raises DependencyError, which names the extra to install."""
    package = module.partition(".")[0]
    try:
        importlib.import_module(package)
        return importlib.import_module(module)
    except ImportError as error:
        message = f"the {codec} codec needs {package}: pip install 'zarrlite[numcodecs]'"
        raise DependencyError(message) from error
