"""The names and numbers from TIFF 6.0 that zarrlite writes and reads.

Sections 3 to 8 define the baseline fields, Section 14 Predictor, Section 15 tiles, Section 19 SampleFormat.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Tag(IntEnum):
    """The fields that zarrlite writes or interprets, under the names that TIFF 6.0 gives them."""

    ImageWidth = 256
    ImageLength = 257
    BitsPerSample = 258
    Compression = 259
    PhotometricInterpretation = 262
    FillOrder = 266
    StripOffsets = 273
    Orientation = 274
    SamplesPerPixel = 277
    RowsPerStrip = 278
    StripByteCounts = 279
    PlanarConfiguration = 284
    Predictor = 317
    TileWidth = 322
    ExtraSamples = 338
    SampleFormat = 339


# field types (Section 2, Types), and their struct formats
SHORT, LONG = 3, 4
FORMATS: Final = {SHORT: "H", LONG: "I"}

VERSION: Final = 42  # Section 2, Image File Header: "carefully chosen number (42)"
BIG_TIFF: Final = 43  # the version of BigTIFF, which is not part of TIFF 6.0

# byte order -> struct prefix, and the first two bytes of a file (Section 2, Image File Header)
BYTE_ORDERS: Final = {"little": ("<", b"II"), "big": (">", b"MM")}

# data type -> SampleFormat and BitsPerSample
DATA_TYPES: Final = {
    "uint8": (1, 8),
    "uint16": (1, 16),
    "uint32": (1, 32),
    "int8": (2, 8),
    "int16": (2, 16),
    "int32": (2, 32),
    "float32": (3, 32),
    "float64": (3, 64),
}

# compression -> value of the tag Compression; 50000 is libtiff's number for zstd
COMPRESSIONS: Final = {None: 1, "zstd": 50000}

BLACK_IS_ZERO, RGB = 1, 2  # PhotometricInterpretation
UNASSOCIATED_ALPHA = 2  # ExtraSamples: colours have not been multiplied by alpha

MAX_LONG: Final = 2**32 - 1  # the largest offset, byte count, height and width
