"""The documents of nodes: `zarr.json` to objects and back, and what is wrong with one."""
