"""What chunks and shards of the limit share: threads, memory that is used again, compression, checksums."""

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
WORTHWHILE = 2**19  # decoded bytes below which a second thread costs more than it gains
local = threading.local()
_pool = ThreadPoolExecutor(1, "limit")


def pull(work: Callable[[Iterator[Any]], None], jobs: Sequence[Any], nbytes: int) -> None:
    """Two threads, or one, that take jobs from one iterator."""
    shared = iter(jobs)
    if nbytes < WORTHWHILE or len(jobs) < 2:
        work(shared)
        return
    other = _pool.submit(work, shared)
    work(shared)
    other.result()


def scratch(name: str, nbytes: int) -> Any:
    """Memory that this thread uses again and again, as an array of bytes."""
    held: Any = getattr(local, name, None)
    if held is None or held.nbytes < nbytes:
        held = np.empty(nbytes, "u1")
        setattr(local, name, held)
    return held[:nbytes]


def decompressor() -> Any:
    """The one of this thread."""
    try:
        return local.decompressor
    except AttributeError:
        local.decompressor = zstandard.ZstdDecompressor()
        return local.decompressor


def compressor() -> Any:
    """The one of this thread."""
    try:
        return local.compressor
    except AttributeError:
        local.compressor = zstandard.ZstdCompressor(level=LEVEL)
        return local.compressor


def checked(data: Array) -> Array:
    """The data without its checksum."""
    if google_crc32c.value(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise ValueError("checksum")
    return data[:-4]


def checksum(data: Any) -> bytes:
    """Four bytes to put behind the data."""
    return google_crc32c.value(data).to_bytes(4, "little")  # type: ignore[no-any-return]


def decompress(data: Array, target: Array) -> None:
    """A frame into memory that exists and has just its size."""
    if decompressor().stream_reader(data).readinto(target) != target.nbytes:
        raise ValueError("length")
