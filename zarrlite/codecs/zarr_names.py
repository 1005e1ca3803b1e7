"""Values of codec parameters that zarr-python spells as enum members, such as `BloscShuffle.bitshuffle`.

Each member is the string that `zarr.json` contains.
"""

from enum import StrEnum


class BloscShuffle(StrEnum):
    """How `blosc` rearranges elements before it compresses them."""

    noshuffle = "noshuffle"
    shuffle = "shuffle"
    bitshuffle = "bitshuffle"


class BloscCname(StrEnum):
    """The compressors of `blosc`."""

    lz4 = "lz4"
    lz4hc = "lz4hc"
    blosclz = "blosclz"
    zstd = "zstd"
    snappy = "snappy"
    zlib = "zlib"


class Endian(StrEnum):
    """The byte orders of the `bytes` codec."""

    big = "big"
    little = "little"


class ShardingCodecIndexLocation(StrEnum):
    """The possible locations of the index in a shard."""

    start = "start"
    end = "end"
