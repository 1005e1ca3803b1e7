"""Files of other formats as read-only Zarr v3: documents, parsers and views.

Functions that open or create nodes in these formats are in zarrlite/n5.py and zarrlite/tiff.py. `zarrlite.open` detects
the 2022 draft of Zarr v3.
"""
