"""Stores and extensions of zarrlite for zarr-python, and stores of zarr-python for zarrlite (extra `zarr`).

`ZarrStore` lets zarr-python use a store of zarrlite, `FromZarr` lets zarrlite use a store of zarr-python. zarr-python
finds the codecs and the chunk key encoding by entry points: opening arrays with `pad`, `offset` and `suffix` needs no
import.
"""

from zarrlite.adapters.zarr_extensions import OffsetCodec, PadCodec, SuffixKeyEncoding, WindowedPipeline
from zarrlite.adapters.zarr_stores import FromZarr, ZarrStore

__all__ = ["FromZarr", "OffsetCodec", "PadCodec", "SuffixKeyEncoding", "WindowedPipeline", "ZarrStore"]
