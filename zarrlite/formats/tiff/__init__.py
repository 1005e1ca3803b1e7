"""TIFF files as chunks: their headers, a parser for the headers of other programs, and a view of a folder of files.

Rules
- One file is one chunk with one strip of pixels, as far as `suffix`, `pad`, `bytes` and `zstd` can express it.
- tags.py has the names and numbers that the writer (headers.py) and the reader (parse.py) share.

Functions that open or create arrays are in zarrlite/tiff.py.
"""
