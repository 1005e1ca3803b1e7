"""The bytes -> bytes codecs of a chain, as they decode: whole values, several at once, or no more than is read.

Rules
- What a value may decode to is bounded at every step, in proportion to what is stored where nothing fixed can be said.
- New memory costs more than a copy: what is large is decoded to memory that is there, where a codec can do that.
- A way that is quicker may say no; then the plain one is taken, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_char
from typing import Any

import numpy as np

from zarrlite.buffers.batch import lengths
from zarrlite.buffers.ranges import Buffer
from zarrlite.buffers.source import ByteSource, Held, Limit, decoding_failed
from zarrlite.errors import TruncatedError
from zarrlite.pipeline.codec import BytesBytesCodec, Serializer

Array = np.ndarray[Any, Any]
Step = tuple[BytesBytesCodec, Limit]  # a codec, and how much it may decode to
TINY = 2**15  # decoded bytes of a chunk up to which several are best decoded in one step
LARGE = 2**18  # decoded bytes of a chunk from which on it pays to stop in the middle


class Decoders:
    """From a stored value to what the array -> bytes codec gets."""

    def __init__(self, compressors: Sequence[Step], serializer: Serializer) -> None:
        self.steps = compressors[::-1]
        self.serializer = serializer
        self._first, self._rest = self.steps[:-1], self.steps[-1:]
        # whether a codec knows nothing but whole values, so that there is no use in reading parts
        self.whole = any(type(codec).view is BytesBytesCodec.view for codec, _ in self.steps)
        # whether a part of a chunk is had without decoding it to the end: it is large, and known to be sound
        self.unrolls = (serializer.encoded_size or 0) >= LARGE and any(codec.verifies for codec, _ in self._first)
        # the last codec, if what it makes has one size, and can be made in memory that is there already
        able = [c for c, _ in self._rest if type(c).decode_into is not BytesBytesCodec.decode_into]
        self._last = able[0] if able and serializer.encoded_size else None
        # whether chunks are best decoded one after the other in the same memory, which stays near that way
        self.take_turns = self.fills(TINY) and serializer.raw_dtype is not None

    def view(self, source: ByteSource) -> ByteSource:
        """What the array -> bytes codec reads from."""
        for codec, limit in self.steps:
            source = codec.view(source, limit)
        return source

    def decode(self, data: Buffer) -> Buffer:
        """A whole value, as a chain of `Decoded` would give it."""
        return _decode(data, self.steps)

    def decode_into(self, data: Buffer, memory: memoryview) -> Buffer:
        """The same, in memory of just its size if that can be done; else it is somewhere else."""
        data = _decode(data, self._first)
        if self._last is not None and self._last.decode_into(data, memory):
            return memory
        return _decode(data, self._rest)

    def fills(self, least: int) -> bool:
        """Whether there is any use in memory for chunks of more bytes than these."""
        return self._last is not None and (self.serializer.encoded_size or 0) > least

    def decode_many(self, values: Sequence[Buffer]) -> Sequence[Buffer]:
        """Several whole values; an error does not say which of them is wrong."""
        return _decode_many(values, self.steps)

    def side_by_side(self, values: Sequence[Buffer], memory: memoryview) -> memoryview | None:
        """Several whole values, one behind the other in that memory; None: do it otherwise."""
        size = self.serializer.encoded_size or 0
        filled = memory[: len(values) * size]
        if not filled:
            return None
        if not self.steps:  # they are there already, if a store has fetched them to there
            return filled if _lie_side_by_side(values, memory, size) else None
        values = _decode_many(values, self._first)
        if self._last is not None:
            return filled if self._last.decode_side_by_side(values, filled) else None
        values = _decode_many(values, self._rest)
        if {*map(len, values)} != {size}:
            return None
        for i, value in enumerate(values):
            filled[i * size : (i + 1) * size] = value
        return filled

    def opened(self, data: Buffer) -> ByteSource:
        """What the array -> bytes codec reads a part of, of a whole value."""
        if not self.unrolls:
            return Held(_decode(data, self.steps))
        ((codec, limit),) = self._rest
        data = _decode(data, self._first)
        try:
            found = codec.unroll(data, limit.fixed)
        except Exception as error:
            decoding_failed(error, codec.name)
        return Held(_decode(data, self._rest)) if found is None else found


def _decode(data: Buffer, steps: Sequence[Step]) -> Buffer:
    stored = len(data)  # limits must not multiply from codec to codec
    for codec, limit in steps:
        most, per_byte = limit
        if per_byte:
            most = limit.of(stored)
        try:
            data = codec.decode(data, most)
        except Exception as error:
            decoding_failed(error, codec.name)
        if len(data) > most:
            raise TruncatedError(f"decodes to {len(data)} bytes, at most {most} fit here", codec=codec.name)
    return data


def _decode_many(values: Sequence[Buffer], steps: Sequence[Step]) -> Sequence[Buffer]:
    for codec, limit in steps if values else ():
        values = codec.decode_many(values, limit.fixed)
        if max(lengths(values)) > limit.fixed:
            raise TruncatedError(f"at most {limit.fixed} bytes fit here", codec=codec.name)
    return values


def _lie_side_by_side(values: Sequence[Buffer], memory: memoryview, size: int) -> bool:
    """Whether values of one size are one behind the other at the start of some memory."""
    position = addressof(c_char.from_buffer(memory))
    for value in values:
        if len(value) != size or type(value) is not memoryview or value.readonly:
            return False
        if addressof(c_char.from_buffer(value)) != position:
            return False
        position += size
    return True
