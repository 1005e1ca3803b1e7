"""zarr-python and zarrlite, each with the stores and extensions of the other (extra `zarr`).

`FromZarr` is a store of zarr-python for zarrlite, `ZarrStore` a store of zarrlite for zarr-python. zarr-python finds
the codecs and the chunk key encoding by entry points: documents with `pad`, `offset` and `suffix` need no import.
"""

from zarrlite.adapters.zarr_extensions import OffsetCodec, PadCodec, SuffixKeyEncoding, WindowedPipeline
from zarrlite.adapters.zarr_stores import FromZarr, ZarrStore

__all__ = ["FromZarr", "OffsetCodec", "PadCodec", "SuffixKeyEncoding", "WindowedPipeline", "ZarrStore"]
