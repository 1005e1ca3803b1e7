"""Zstandard, implemented by the standard library: `compression.zstd`, or backports.zstd before Python 3.14."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import DataError

__all__ = ["Compressor", "Decompressor", "Error", "frame_content_size", "library"]
library = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
_zstd: Any = importlib.import_module(library)
Error: type[Exception] = _zstd.ZstdError


def frame_content_size(data: Buffer) -> int:
    """Return the content size in the header of a frame. Returns -1 if the header does not state it."""
    size: int | None = _zstd.get_frame_info(data).decompressed_size
    return -1 if size is None else size


class Compressor:
    """A compressor for one thread."""

    def __init__(self, level: int, *, checksum: bool) -> None:
        parameter = _zstd.CompressionParameter
        self._compressor = _zstd.ZstdCompressor(
            options={parameter.compression_level: level, parameter.checksum_flag: int(checksum)}
        )

    def compress(self, data: Buffer) -> bytes:
        """Compress a value to a frame whose header states the content size."""
        encoded: bytes = self._compressor.compress(data, _zstd.ZstdCompressor.FLUSH_FRAME)
        return encoded

    def compress_many(self, values: Sequence[Buffer]) -> Sequence[Buffer]:
        """Compress several values."""
        return [*map(self.compress, values)]


class Decompressor:
    """A decompressor for one thread."""

    def __init__(self) -> None:
        # creates an incremental decoder for one frame, with decompress, eof and unused_data
        self.stream = _zstd.ZstdDecompressor

    def decompress(self, data: Buffer, size: int) -> bytes | None:
        """Decode a frame whose header states the content size `size`. Returns None if more bytes follow the frame."""
        frame = _zstd.ZstdDecompressor()
        decoded: bytes = frame.decompress(data, size)
        if not frame.eof and frame.decompress(b"", 1):  # the header is wrong; the rest may be huge, and is not decoded
            raise Error("the frame is longer than its header says")
        if not frame.eof:
            raise DataError("the zstd frame ends too early")
        return None if frame.unused_data else decoded

    def decompress_start(self, data: Buffer, memory: memoryview) -> bool:
        """Fill memory with the first decoded bytes of a frame. Returns False if the frame decodes to fewer bytes."""
        frame, position = _zstd.ZstdDecompressor(), 0
        while position < len(memory):
            decoded = frame.decompress(data, len(memory) - position)
            if not decoded:
                return False
            memory[position : position + len(decoded)] = decoded
            position += len(decoded)
            data = b""
            if frame.eof:
                break
        return position == len(memory)

    def decompress_many(self, values: Sequence[Buffer], memory: memoryview, size: int) -> None:
        """Decode frames of `size` decoded bytes each into consecutive slots of `memory`."""
        for i, value in enumerate(values):
            decoded = self.decompress(value, size)
            if decoded is None or len(decoded) != size:
                raise Error("the frame is not of the expected size")
            memory[i * size : (i + 1) * size] = decoded
