"""Read-only access to other formats as Zarr v3: conversion of documents, parsers, and views of stores.

Functions that open, create or convert nodes in these formats are in zarrlite/n5.py, tiff.py and v2.py. `zarrlite.open`
detects Zarr v2 and the 2022 draft of Zarr v3.
"""
