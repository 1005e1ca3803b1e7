"""TIFF files as chunks: their headers, a parser for headers that other programs wrote, and a view of a folder.

Rules
- Each file is one chunk: a single strip of pixels in a form that `suffix`, `pad`, `bytes` and `zstd` can express.
- tags.py contains the names and numbers that the writer (headers.py) and the reader (parse.py) share.

Functions that open or create arrays are in zarrlite/tiff.py.
"""
