"""Zstandard, implemented by the package zstandard."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import zstandard
from zstandard import ZstdError as Error
from zstandard import frame_content_size

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import DataError

__all__ = ["Compressor", "Decompressor", "Error", "frame_content_size", "library"]
library = "zstandard"


class Compressor:
    """A compressor for one thread."""

    def __init__(self, level: int, *, checksum: bool) -> None:
        self._compressor = zstandard.ZstdCompressor(level=level, write_checksum=checksum)
        self.compress = self._compressor.compress  # compresses a value to a frame whose header states the content size

    def compress_many(self, values: Sequence[Buffer]) -> Sequence[Buffer]:
        """Compress several non-empty values in one call."""
        encoded: Any = self._compressor.multi_compress_to_buffer(list(values), threads=1)
        return [memoryview(value) for value in encoded]


class Decompressor:
    """A decompressor for one thread."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor()
        # creates an incremental decoder for one frame, with decompress, eof and unused_data
        self.stream = self._decompressor.decompressobj

    def decompress(self, data: Buffer, size: int) -> bytes | None:
        """Decode a frame whose header states the content size `size`. Returns None if more bytes follow the frame."""
        try:
            return self._decompressor.decompress(data, allow_extra_data=False)
        except Error as error:
            if "unused data" in str(error):
                return None
            if "did not decompress full frame" in str(error):
                raise DataError("the zstd frame ends too early") from None
            raise

    def decompress_start(self, data: Buffer, memory: memoryview) -> bool:
        """Fill memory with the first decoded bytes of a frame. Returns False if the frame decodes to fewer bytes."""
        reader, position = self._decompressor.stream_reader(data), 0
        while position < len(memory):
            count = reader.readinto(memory[position:])
            if not count:
                return False
            position += count
        return True

    def decompress_many(self, values: Sequence[Buffer], memory: memoryview, size: int) -> None:
        """Decode frames of `size` decoded bytes each into consecutive slots of `memory`. Releases the GIL only once."""
        sizes = struct.pack("=Q", size) * len(values)
        decoded: Any = self._decompressor.multi_decompress_to_buffer(list(values), sizes, threads=1)
        for i, value in enumerate(decoded):
            memory[i * size : (i + 1) * size] = value
