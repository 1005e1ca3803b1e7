"""Counterparts of those `zarr.core` modules that scripts for zarr-python import from; nothing is defined here.

zarrlite's own code is not in this package.
"""
