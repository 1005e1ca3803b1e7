"""zarrlite's stores and extensions for zarr-python, and zarr-python's stores for zarrlite (requires the extra `zarr`).

`ZarrStore` lets zarr-python use a zarrlite store, and `FromZarr` lets zarrlite use a zarr-python store. zarr-python
finds the codecs `pad` and `offset` and the chunk key encoding `suffix` through entry points, so that it opens arrays
with them even if this module is not imported.
"""

from zarrlite.adapters.zarr_extensions import OffsetCodec, PadCodec, SuffixKeyEncoding, WindowedPipeline
from zarrlite.adapters.zarr_stores import FromZarr, ZarrStore

__all__ = ["FromZarr", "OffsetCodec", "PadCodec", "SuffixKeyEncoding", "WindowedPipeline", "ZarrStore"]
