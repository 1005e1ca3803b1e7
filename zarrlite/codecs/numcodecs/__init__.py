"""The codecs of numcodecs, under the names that zarr-python writes: `numcodecs.zlib`, `numcodecs.delta` ...

The classes have the same names as in `zarr.codecs.numcodecs`. A codec that is also registered without the prefix has
one implementation for both names. `library.py` imports the compiled libraries that some of the codecs need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zarrlite.codecs.numcodecs.bitround import BitRound
    from zarrlite.codecs.numcodecs.blosc import Blosc
    from zarrlite.codecs.numcodecs.bz2 import BZ2
    from zarrlite.codecs.numcodecs.checksums import CRC32, CRC32C, Adler32, Fletcher32, JenkinsLookup3
    from zarrlite.codecs.numcodecs.deflate import GZip, Zlib
    from zarrlite.codecs.numcodecs.filters import AsType, Delta, FixedScaleOffset, Quantize
    from zarrlite.codecs.numcodecs.lz4 import LZ4
    from zarrlite.codecs.numcodecs.lzma import LZMA
    from zarrlite.codecs.numcodecs.objects import JSON2, Categorize, VLenArray
    from zarrlite.codecs.numcodecs.packbits import PackBits
    from zarrlite.codecs.numcodecs.pcodec import PCodec
    from zarrlite.codecs.numcodecs.shuffle import Shuffle
    from zarrlite.codecs.numcodecs.zfpy import ZFPY
    from zarrlite.codecs.numcodecs.zstd import Zstd

_CLASSES = {
    "Adler32": "checksums",
    "AsType": "filters",
    "BZ2": "bz2",
    "BitRound": "bitround",
    "Blosc": "blosc",
    "CRC32": "checksums",
    "CRC32C": "checksums",
    "Categorize": "objects",
    "Delta": "filters",
    "FixedScaleOffset": "filters",
    "Fletcher32": "checksums",
    "GZip": "deflate",
    "JSON2": "objects",
    "JenkinsLookup3": "checksums",
    "LZ4": "lz4",
    "LZMA": "lzma",
    "PCodec": "pcodec",
    "PackBits": "packbits",
    "Quantize": "filters",
    "Shuffle": "shuffle",
    "VLenArray": "objects",
    "ZFPY": "zfpy",
    "Zlib": "deflate",
    "Zstd": "zstd",
}

__all__ = [
    "BZ2",
    "CRC32",
    "CRC32C",
    "JSON2",
    "LZ4",
    "LZMA",
    "ZFPY",
    "Adler32",
    "AsType",
    "BitRound",
    "Blosc",
    "Categorize",
    "Delta",
    "FixedScaleOffset",
    "Fletcher32",
    "GZip",
    "JenkinsLookup3",
    "PCodec",
    "PackBits",
    "Quantize",
    "Shuffle",
    "VLenArray",
    "Zlib",
    "Zstd",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(importlib.import_module(f"zarrlite.codecs.numcodecs.{_CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
