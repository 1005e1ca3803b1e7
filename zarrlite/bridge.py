"""zarr-python and zarrlite, each with the stores and extensions of the other (extra `zarr`)."""

from zarrlite.adapters.zarr_stores import FromZarr, ZarrStore

__all__ = ["FromZarr", "ZarrStore"]
