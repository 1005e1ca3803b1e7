"""Resumable copying and re-encoding of nodes, in this process or on the workers of a dask cluster."""
