"""The `zstd` codec: RFC 8878, one frame or several, with or without a content size.

Rules
- A level does not matter for decoding, so a bare `{"name": "zstd"}` is read; it is always written.
- Nothing is allocated because a frame header says so: the claimed size is compared with what fits first.
- Compressors and decompressors are kept for each thread.
"""

from __future__ import annotations

import struct
from _thread import _local as local
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import zstandard

from zarrlite.buffers import scratch
from zarrlite.buffers.batch import Run, lengths
from zarrlite.buffers.ranges import Buffer, ByteRange, Pieces
from zarrlite.buffers.source import ByteSource, decoding_failed
from zarrlite.errors import TruncatedError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import register
from zarrlite.pipeline.codec import BytesBytesCodec

_local = local()
# A block makes at most 128 KiB out of 4 bytes: a step of 256 bytes makes at most 8 MiB.
_STEP = 256
_GROWTH = 2**15
_SMALL = 2**15  # decoded bytes up to which one call for many values is best: threads meet less often
_SMALL_TO_ENCODE = 2**17  # the same for encoding, which takes longer
_RLE = 1  # the type of a block that is one byte, repeated
_block_header = struct.Struct("<HB").unpack_from


@register
@dataclass(frozen=True)
class Zstd(BytesBytesCodec):
    """Zstandard compression."""

    name = "zstd"
    fresh = True
    level: int = 3
    checksum: bool = False

    @classmethod
    def from_config(cls, config: Config) -> Self:
        level = config.integer("level", -131072, 22, default=cls.level)
        return cls(level, config.boolean("checksum", default=False))

    def to_config(self) -> dict[str, Json]:
        return {"level": self.level, "checksum": self.checksum}

    def _compressor(self) -> zstandard.ZstdCompressor:
        """The one of this thread."""
        key = (self.level, self.checksum)
        compressors: dict[Any, zstandard.ZstdCompressor] = _local.__dict__.setdefault("compressors", {})
        if key not in compressors:
            compressors[key] = zstandard.ZstdCompressor(level=self.level, write_checksum=self.checksum)
        return compressors[key]

    def encode(self, data: Buffer) -> bytes:
        return self._compressor().compress(data)

    def encode_many(self, values: Sequence[Buffer]) -> Sequence[Pieces]:
        sizes = [*lengths(values)]
        if not sizes or min(sizes) == 0 or max(sizes) > _SMALL_TO_ENCODE:
            return [*map(self._compressor().compress, values)]
        made: Any = self._compressor().multi_compress_to_buffer(_segments(values), threads=1)
        return [memoryview(value) for value in made]

    def decode(self, data: Buffer, limit: int) -> bytes:
        decompressor = _decompressor()
        size = zstandard.frame_content_size(data)
        if size > limit:
            raise TruncatedError(f"claims {size} bytes, at most {limit} fit here")
        if size > 0:
            try:
                return decompressor.decompress(data, allow_extra_data=False)
            except zstandard.ZstdError as error:
                if "unused data" not in str(error):  # more than one frame
                    raise
        return _decode_frames(decompressor, memoryview(data), limit)

    def decode_into(self, data: Buffer, memory: memoryview) -> bool:
        try:
            if zstandard.frame_content_size(data) != len(memory) or not _is_one_frame(data):
                return False
            return _decompressor().stream_reader(data).readinto(memory) == len(memory)
        except zstandard.ZstdError:
            return False

    def unroll(self, data: Buffer, size: int) -> ByteSource | None:
        return _Unrolled(data, size) if zstandard.frame_content_size(data) == size else None

    def decode_side_by_side(self, values: Sequence[Buffer], memory: memoryview) -> bool:
        size = len(memory) // len(values)
        if not 0 < size <= _SMALL:
            return super().decode_side_by_side(values, memory)
        sizes = struct.pack("=Q", size) * len(values)
        try:
            for value in map(values.__getitem__, _unusual(values, size)):
                if zstandard.frame_content_size(value) != size or not _is_one_frame(value):
                    return False
            made: Any = _decompressor().multi_decompress_to_buffer(_segments(values), sizes, threads=1)
        except zstandard.ZstdError:
            return False
        for i, value in enumerate(made):
            memory[i * size : (i + 1) * size] = value
        return True


class _Unrolled(ByteSource):
    """A frame that is decoded as far as it is read, in memory that is the reader's until it closes this."""

    def __init__(self, data: Buffer, size: int) -> None:
        self._data = data
        self._size = size
        self._memory = scratch.take(size)
        self._done = 0

    def known_size(self) -> int:
        return self._size

    size = known_size

    def read(self, ranges: Sequence[ByteRange]) -> list[Buffer]:
        bounds = [byte_range.resolve(self._size) for byte_range in ranges]
        stop = max((stop for _, stop in bounds), default=0)
        if stop > self._done:  # from the start: it is seldom read in several steps
            self._decode(stop)
        return [self._memory[start:stop] for start, stop in bounds]

    def _decode(self, stop: int) -> None:
        reader, done = _decompressor().stream_reader(self._data), 0
        while done < stop:
            try:
                made = reader.readinto(self._memory[done:stop])
                more = reader.read(1) if done + made == self._size else b""
            except zstandard.ZstdError as error:
                decoding_failed(error, Zstd.name)
            if more or not made:
                wrong = "decodes to more than fits here" if more else "the zstd frame ends too early"
                raise TruncatedError(wrong, codec=Zstd.name)
            done += made
        self._done = done

    def close(self) -> None:
        memory, self._memory, self._done = self._memory, memoryview(b""), 0
        scratch.give(memory)


def _decompressor() -> zstandard.ZstdDecompressor:
    """The one of this thread."""
    try:
        found: zstandard.ZstdDecompressor = _local.decompressor
    except AttributeError:
        found = _local.decompressor = zstandard.ZstdDecompressor()
    return found


def _first_block(descriptor: int) -> int:
    """Where the first block of a frame begins: behind the magic number, the descriptor, and what that tells of."""
    single, content, dictionary = descriptor >> 5 & 1, descriptor >> 6, descriptor & 3
    return 6 - single + (0, 1, 2, 4)[dictionary] + (single, 2, 4, 8)[content]


_FIRST_BLOCK = [_first_block(descriptor) for descriptor in range(256)]


def _segments(values: Sequence[Buffer]) -> Any:
    """Several values as zstandard takes them."""
    if not isinstance(values, Run):
        return list(values)
    table = np.stack((values.starts, values.stops - values.starts), 1)
    return zstandard.BufferWithSegments(values.memory, table.astype(np.uint64, copy=False).tobytes())


def _unusual(values: Sequence[Buffer], size: int) -> Iterable[int]:
    """Which of some values must be looked at one by one.

    The others have the header that a frame of so many bytes most often has, and a single block, with which they end.
    """
    if not isinstance(values, Run):
        return range(len(values))
    header = _usual_header(size)
    ends = values.starts + len(header) + 3
    if (ends > values.stops).any():
        return range(len(values))
    heads = values.bytes[values.starts[:, None] + np.arange(len(header) + 3)]
    first, second, third = heads[:, -3:].astype(np.int64).T
    usual = (heads[:, :-3] == header).all(axis=1) & (first & 7 != _RLE << 1 | 1) & (first & 1 == 1)
    usual &= ends + (first >> 3 | second << 5 | third << 13) == values.stops
    found: list[int] = np.flatnonzero(~usual).tolist()
    return found


def _usual_header(size: int) -> np.ndarray[Any, Any]:
    """The header of a frame of known size, a single segment without a checksum (RFC 8878, 3.1.1.1)."""
    if size < 256:
        return np.frombuffer(struct.pack("<IBB", zstandard.MAGIC_NUMBER, 0x20, size), "u1")
    return np.frombuffer(struct.pack("<IBH", zstandard.MAGIC_NUMBER, 0x60, size - 256), "u1")


def _is_one_frame(data: Buffer) -> bool:
    """Whether a value is a single frame from its first byte to its last (RFC 8878, 3.1.1).

    Decompressors stop at the end of a frame, whatever follows.
    """
    end = len(data)
    if end < 9:
        return False
    descriptor = data[4]
    end -= descriptor & 4  # which says that there is a checksum, of just as many bytes
    position, last = _FIRST_BLOCK[descriptor], 0
    while not last and position + 3 <= end:
        low, high = _block_header(data, position)
        last = low & 1
        position += 4 if low >> 1 & 3 == _RLE else 3 + (low >> 3) + (high << 13)
    return last == 1 and position == end


def _decode_frames(decompressor: zstandard.ZstdDecompressor, data: memoryview, limit: int) -> bytes:
    """Frame after frame, in small steps, so that a bomb is noticed before it has gone off."""
    pieces: list[bytes] = []
    room, position = limit, 0
    while position < len(data):
        frame = decompressor.decompressobj()
        while not frame.eof:
            step = data[position : position + max(_STEP, room // _GROWTH)]
            if not step:
                raise TruncatedError("the zstd frame ends too early")
            pieces.append(frame.decompress(step))
            position += len(step) - len(frame.unused_data)
            room -= len(pieces[-1])
            if room < 0:
                raise TruncatedError(f"decompresses to more than the {limit} bytes that fit here")
    return b"".join(pieces)
