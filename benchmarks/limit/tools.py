"""Helpers of the `limit` baseline for chunks and shards: threads, scratch buffers, compression, checksums."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import google_crc32c
import numpy as np
import zstandard

from benchmarks.data import LEVEL, Array

READ = os.O_RDONLY | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
DTYPE = np.dtype("<u2")
WORTHWHILE = 2**19  # decoded bytes; below this size, a second thread costs more than it saves
local = threading.local()
_pool = ThreadPoolExecutor(1, "limit")


def pull(work: Callable[[Iterator[Any]], None], jobs: Sequence[Any], nbytes: int) -> None:
    """Run jobs in two threads that share an iterator, or in one thread if there is little to do."""
    shared = iter(jobs)
    if nbytes < WORTHWHILE or len(jobs) < 2:
        work(shared)
        return
    other = _pool.submit(work, shared)
    work(shared)
    other.result()


def scratch(name: str, nbytes: int) -> Any:
    """Return a scratch buffer of this thread as an array of bytes. Calls with the same name return the same memory."""
    buffer: Any = getattr(local, name, None)
    if buffer is None or buffer.nbytes < nbytes:
        buffer = np.empty(nbytes, "u1")
        setattr(local, name, buffer)
    return buffer[:nbytes]


def decompressor() -> Any:
    """Return the decompressor of this thread."""
    try:
        return local.decompressor
    except AttributeError:
        local.decompressor = zstandard.ZstdDecompressor()
        return local.decompressor


def compressor() -> Any:
    """Return the compressor of this thread."""
    try:
        return local.compressor
    except AttributeError:
        local.compressor = zstandard.ZstdCompressor(level=LEVEL)
        return local.compressor


def checked(data: Array) -> Array:
    """Verify the checksum at the end of the data, and return the data without it."""
    if google_crc32c.value(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise ValueError("wrong checksum")
    return data[:-4]


def checksum(data: Any) -> bytes:
    """Return the CRC32C of the data as four bytes."""
    return google_crc32c.value(data).to_bytes(4, "little")  # type: ignore[no-any-return]


def decompress(data: Array, target: Array) -> None:
    """Decompress a frame into `target`, which must have exactly the decompressed size."""
    if decompressor().stream_reader(data).readinto(target) != target.nbytes:
        raise ValueError("wrong length")
