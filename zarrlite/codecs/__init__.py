"""The codecs, one module for each; a module is imported when its codec is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zarrlite.pipeline.codec import ArrayArrayCodec, ArrayBytesCodec, ArraySpec, BytesBytesCodec, Codec

if TYPE_CHECKING:
    from zarrlite.codecs.bitround import BitRound
    from zarrlite.codecs.blosc import Blosc
    from zarrlite.codecs.bytes import Bytes
    from zarrlite.codecs.cast_value import CastValue
    from zarrlite.codecs.conditional import Conditional
    from zarrlite.codecs.crc32c import Crc32c
    from zarrlite.codecs.gzip import Gzip
    from zarrlite.codecs.n5_default import N5Default
    from zarrlite.codecs.n5_lz4 import N5Lz4
    from zarrlite.codecs.packbits import Packbits
    from zarrlite.codecs.pad import Offset, Pad
    from zarrlite.codecs.reshape import Reshape
    from zarrlite.codecs.scale_offset import ScaleOffset
    from zarrlite.codecs.sharding_indexed import ShardingIndexed
    from zarrlite.codecs.transpose import Transpose
    from zarrlite.codecs.vlen import VlenBytes, VlenUtf8
    from zarrlite.codecs.zarr_names import (
        BloscCname,
        BloscShuffle,
        Endian,
        ShardingCodecIndexLocation,
    )
    from zarrlite.codecs.zfp import Zfp
    from zarrlite.codecs.zstd import Zstd

    BloscCodec = Blosc
    BytesCodec = Bytes
    Crc32cCodec = Crc32c
    GzipCodec = Gzip
    ShardingCodec = ShardingIndexed
    TransposeCodec = Transpose
    VLenBytesCodec = VlenBytes
    VLenUTF8Codec = VlenUtf8
    ZstdCodec = Zstd

_CLASSES = {
    "BitRound": "bitround",
    "Blosc": "blosc",
    "BloscCname": "zarr_names",
    "BloscShuffle": "zarr_names",
    "Bytes": "bytes",
    "CastValue": "cast_value",
    "Conditional": "conditional",
    "Crc32c": "crc32c",
    "Endian": "zarr_names",
    "Gzip": "gzip",
    "N5Default": "n5_default",
    "N5Lz4": "n5_lz4",
    "Offset": "pad",
    "Packbits": "packbits",
    "Pad": "pad",
    "Reshape": "reshape",
    "ScaleOffset": "scale_offset",
    "ShardingCodecIndexLocation": "zarr_names",
    "ShardingIndexed": "sharding_indexed",
    "Transpose": "transpose",
    "VlenBytes": "vlen",
    "VlenUtf8": "vlen",
    "Zfp": "zfp",
    "Zstd": "zstd",
}
# name in zarr-python -> name of the same class in zarrlite
_ALIASES = {
    "BloscCodec": "Blosc",
    "BytesCodec": "Bytes",
    "Crc32cCodec": "Crc32c",
    "GzipCodec": "Gzip",
    "ShardingCodec": "ShardingIndexed",
    "TransposeCodec": "Transpose",
    "VLenBytesCodec": "VlenBytes",
    "VLenUTF8Codec": "VlenUtf8",
    "ZstdCodec": "Zstd",
}

__all__ = [
    "ArrayArrayCodec",
    "ArrayBytesCodec",
    "ArraySpec",
    "BitRound",
    "Blosc",
    "BloscCname",
    "BloscCodec",
    "BloscShuffle",
    "Bytes",
    "BytesBytesCodec",
    "BytesCodec",
    "CastValue",
    "Codec",
    "Conditional",
    "Crc32c",
    "Crc32cCodec",
    "Endian",
    "Gzip",
    "GzipCodec",
    "N5Default",
    "N5Lz4",
    "Offset",
    "Packbits",
    "Pad",
    "Reshape",
    "ScaleOffset",
    "ShardingCodec",
    "ShardingCodecIndexLocation",
    "ShardingIndexed",
    "Transpose",
    "TransposeCodec",
    "VLenBytesCodec",
    "VLenUTF8Codec",
    "VlenBytes",
    "VlenUtf8",
    "Zfp",
    "Zstd",
    "ZstdCodec",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    name = _ALIASES.get(name, name)
    if name in _CLASSES:
        return getattr(importlib.import_module(f"zarrlite.codecs.{_CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
