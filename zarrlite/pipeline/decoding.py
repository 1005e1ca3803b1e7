"""Decoding with limits, and errors that name the codec.

Rules
- The decoded size of a value is limited at every step: by a fixed size, or in proportion to the stored size if elements
  vary in length.
- Every exception that a codec raises becomes a DataError that names the codec, unless it is another ZarrliteError.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import ArgumentError, DataError, TruncatedError, ZarrliteError

MAX_CHUNK_BYTES = 2**30  # bytes once decoded; larger chunks are refused, because a small file can claim any size
MAX_EMPTY = 1000  # maximum number of empty frames in a compressed value; they cost time and add nothing
MAX_CHUNK_BYTES_VARIABLE = "ZARRLITE_MAX_CHUNK_BYTES"  # environment variable that overrides this limit


class Limit(NamedTuple):
    """The largest decoded size of a value: fixed, or in proportion to its stored size."""

    fixed: int
    per_byte: int = 0

    def of(self, stored: int) -> int:
        """Return the limit for a value of `stored` bytes."""
        return max(self.fixed, self.per_byte * stored)


def chunk_limit(option: int | None = None) -> int:
    """Return how many bytes may be decoded or encoded at once: the option, the environment variable, or 1 GiB."""
    return default_limit() if option is None else _checked_limit("max_chunk_bytes", option)


@functools.cache
def default_limit() -> int:
    """Return the limit set in the environment variable, or 1 GiB. The variable is read only once."""
    text = os.environ.get(MAX_CHUNK_BYTES_VARIABLE, str(MAX_CHUNK_BYTES))
    return _checked_limit(MAX_CHUNK_BYTES_VARIABLE, int(text) if text.isdecimal() else text)


def _checked_limit(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ArgumentError(f"{name} must be a number of bytes, at least 1, not {value!r}")
    return value


def beyond_limit(size: int, limit: int) -> str:
    """Return the error message for a chunk that is larger than the limit."""
    remedy = f"pass max_chunk_bytes={size} when the array is opened or created, or set {MAX_CHUNK_BYTES_VARIABLE}"
    return f"must have at most {limit} bytes once decoded, not {size}; {remedy}"


class Budget:
    """A limit for the total decoded size of several values."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, size: int) -> None:
        """Add the size of one more value to the total. Raises TruncatedError if the total exceeds the limit."""
        self.spent += size
        if self.spent > self.limit:
            raise TruncatedError(f"decodes to more than the {self.limit} bytes that are allowed")


class Decoder(Protocol):
    """The part of a bytes -> bytes codec that is needed for reading."""

    name: ClassVar[str]

    def decode(self, data: Buffer, limit: int) -> Buffer: ...


class ArrayDecoder(Protocol):
    """The part of an array -> array or array -> bytes codec that is needed for reading."""

    name: ClassVar[str]

    def decode(self, encoded: Any, spec: Any, /) -> np.ndarray[Any, Any]: ...


def decoding_failed(error: Exception, codec: str) -> NoReturn:
    """Raise an exception from a codec as a DataError that names the codec, unless it is another ZarrliteError."""
    if isinstance(error, DataError):
        raise error.at(codec=codec) from error.__cause__
    if isinstance(error, ZarrliteError):
        raise error
    raise DataError(f"cannot be decoded: {error}", codec=codec) from error


def decode_bytes(data: Buffer, steps: Sequence[tuple[Decoder, Limit]]) -> Buffer:
    """Undo bytes -> bytes codecs, given in decoding order."""
    stored = len(data)  # every limit is relative to this size, so that limits do not multiply along the chain
    for codec, (fixed, per_byte) in steps:
        most = max(fixed, per_byte * stored)
        try:
            data = codec.decode(data, most)
        except Exception as error:
            decoding_failed(error, codec.name)
        if len(data) > most:
            raise TruncatedError(f"decodes to {len(data)} bytes, but at most {most} are allowed", codec=codec.name)
    return data


def decode_array(codec: ArrayDecoder, encoded: Any, spec: Any) -> np.ndarray[Any, Any]:
    """Undo a codec that decodes to an array. Raises DataError unless the array has the shape of `spec`."""
    try:
        array = codec.decode(encoded, spec)
    except Exception as error:
        decoding_failed(error, codec.name)
    if array.shape != spec.shape:
        raise DataError(f"decodes to shape {array.shape}, but the chunk has shape {spec.shape}", codec=codec.name)
    return array
