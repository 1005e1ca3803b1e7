"""Counterparts of the modules of `zarr.core` that scripts for zarr-python import from; nothing is defined here.

zarrlite's own code is not in this package.
"""
