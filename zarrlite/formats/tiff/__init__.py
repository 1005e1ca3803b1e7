"""TIFF files as chunks: their headers, a parser for the headers of other programs, and a view of a folder of files.

Rules
- Each file is one chunk: a single strip of pixels in a form that `suffix`, `pad`, `bytes` and `zstd` can express.
- tags.py has the names and numbers that the writer (headers.py) and the reader (parse.py) share.

Functions that open or create arrays are in zarrlite/tiff.py.
"""
