"""The chunk grids, one module for each."""

from zarrlite.chunk_grids.base import ChunkGrid
from zarrlite.chunk_grids.rectilinear import Rectilinear
from zarrlite.chunk_grids.regular import Regular

__all__ = ["ChunkGrid", "Rectilinear", "Regular"]
