"""The metadata documents of nodes: parsing, writing and validating `zarr.json`."""
