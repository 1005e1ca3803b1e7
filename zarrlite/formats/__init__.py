"""Other people's files, as read-only views of Zarr v3."""
