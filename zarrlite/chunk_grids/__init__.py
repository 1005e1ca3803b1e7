"""The chunk grids; modules load when their grid is first met."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zarrlite.chunk_grids.base import ChunkGrid

if TYPE_CHECKING:
    from zarrlite.chunk_grids.regular import Regular

__all__ = ["ChunkGrid", "Regular"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name == "Regular":
        return importlib.import_module("zarrlite.chunk_grids.regular").Regular
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
