"""The `zstd` codec: RFC 8878, one frame or several, with or without a content size.

Rules
- Decoding does not need the level, so a bare `{"name": "zstd"}` is accepted. Metadata is always written with a level.
- The content size in a frame header is compared with the limit before anything is allocated.
- `zarrlite.libraries.zstd` chooses the library that does the work.
- Each worker thread keeps its own compressors and decompressor.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from zarrlite.buffers.pieces import Value
from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import DataError, TruncatedError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.registry import register
from zarrlite.libraries.zstd import Compressor, Decompressor, Error, frame_content_size
from zarrlite.pipeline.codec import BytesBytesCodec
from zarrlite.pipeline.decoding import MAX_EMPTY
from zarrlite.threads import kept
from zarrlite.tuning import DECODE_TOGETHER_BYTES, ZSTD_ENCODE_TOGETHER_BYTES

# A block of 4 bytes decodes to at most 128 KiB, so a step of 256 bytes decodes to at most 8 MiB.
_STEP = 256  # bytes; frames without a content size are decoded in steps of at least this size
_GROWTH = 2**15  # maximum decoded bytes per encoded byte; steps grow only if their output is sure to fit the limit
_RLE = 1  # block type: one byte, repeated
_block_header = struct.Struct("<HB").unpack_from


@register
@dataclass(frozen=True)
class Zstd(BytesBytesCodec):
    """Zstandard compression."""

    name = "zstd"
    level: int = 3
    checksum: bool = False

    @classmethod
    def from_config(cls, config: Config) -> Self:
        level = config.integer("level", -131072, 22, default=cls.level)
        return cls(level, config.boolean("checksum", default=False))

    def to_config(self) -> dict[str, Json]:
        return {"level": self.level, "checksum": self.checksum}

    def _compressor(self) -> Compressor:
        """Return the compressor of this thread."""
        key = (self.level, self.checksum)
        compressors: dict[Any, Compressor] = kept.__dict__.setdefault("compressors", {})
        if key not in compressors:
            compressors[key] = Compressor(self.level, checksum=self.checksum)
        return compressors[key]

    def encode(self, data: Buffer) -> bytes:
        return self._compressor().compress(data)

    def encode_many(self, values: Sequence[Buffer]) -> Sequence[Value]:
        sizes = [*map(len, values)]
        if min(sizes) == 0 or max(sizes) > ZSTD_ENCODE_TOGETHER_BYTES:
            return [*map(self._compressor().compress, values)]
        return self._compressor().compress_many(values)

    def decode(self, data: Buffer, limit: int) -> bytes:
        size = frame_content_size(data)
        if size > limit:
            raise TruncatedError(f"claims to decompress to {size} bytes, but at most {limit} are allowed")
        if size > 0:
            decoded = _decompressor().decompress(data, size)
            if decoded is not None:  # a single frame
                return decoded
        return _decode_frames(_decompressor(), memoryview(data), limit)

    def decode_into(self, values: Sequence[Buffer], memory: memoryview, size: int) -> bool:
        slot = len(memory) // len(values)
        try:
            if slot == size and not all(map(_is_frame_of(size), values)):
                return False
            if 0 < slot <= DECODE_TOGETHER_BYTES and len(values) > 1 and slot == size:
                _decompressor().decompress_many(values, memory, size)
                return True
            return all(_decode_prefix(v, memory[i * slot : (i + 1) * slot], size) for i, v in enumerate(values))
        except Error:
            return False


def _is_frame_of(size: int) -> Callable[[Buffer], bool]:
    """Return a function that tells whether a value is a single frame with this content size."""
    return lambda value: frame_content_size(value) == size and _is_one_frame(value)


def _decode_prefix(data: Buffer, memory: memoryview, size: int) -> bool:
    """Decode a value of `size` decoded bytes into `memory`, as far as they fit. Returns False if that fails."""
    return frame_content_size(data) == size and _decompressor().decompress_start(data, memory)


def _decompressor() -> Decompressor:
    """Return the decompressor of this thread."""
    try:
        decompressor: Decompressor = kept.decompressor
    except AttributeError:
        decompressor = kept.decompressor = Decompressor()
    return decompressor


def _first_block(descriptor: int) -> int:
    """Return the offset of the first block of a frame, which follows a header of variable size (RFC 8878, 3.1.1.1)."""
    single, content, dictionary = descriptor >> 5 & 1, descriptor >> 6, descriptor & 3
    return 6 - single + (0, 1, 2, 4)[dictionary] + (single, 2, 4, 8)[content]


_FIRST_BLOCK = [_first_block(descriptor) for descriptor in range(256)]


def _is_one_frame(data: Buffer) -> bool:
    """Whether a value is a single frame from its first byte to its last (RFC 8878, 3.1.1).

    Decompressors stop at the end of the first frame and ignore the bytes after it.
    """
    end = len(data)
    if end < 9:
        return False
    descriptor = data[4]
    end -= descriptor & 4  # the checksum flag is 4, which is also the number of bytes in a checksum
    position, last = _FIRST_BLOCK[descriptor], 0
    while not last and position + 3 <= end:
        low, high = _block_header(data, position)
        last = low & 1
        position += 4 if low >> 1 & 3 == _RLE else 3 + (low >> 3) + (high << 13)
    return last == 1 and position == end


def _decode_frames(decompressor: Decompressor, data: memoryview, limit: int) -> bytes:
    """Decode consecutive frames in small steps, so that a decompression bomb is refused before memory is exhausted."""
    pieces: list[bytes] = []
    room, position, empty = limit, 0, 0
    while position < len(data):
        frame, room_before, length = decompressor.stream(), room, _STEP
        while not frame.eof:
            step = data[position : position + length]
            # steps start small, because any input after the end of the frame is copied needlessly
            length = min(2 * length, max(_STEP, room // _GROWTH))
            if not step:
                raise TruncatedError("the zstd frame ends too early")
            pieces.append(frame.decompress(step))
            position += len(step) - len(frame.unused_data)
            room -= len(pieces[-1])
            if room < 0:
                raise TruncatedError(f"decompresses to more than the {limit} bytes that are allowed")
        empty += room == room_before
        if empty > MAX_EMPTY:
            raise DataError(f"must have at most {MAX_EMPTY} zstd frames without content")
    return b"".join(pieces)
