"""The `limit` baseline for arrays without shards, on disk and in memory.

Rules
- As much as possible is prepared before each loop, because threads that hold the GIL for a long time would block each
  other.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import google_crc32c
import numpy as np

from benchmarks.data import Array
from benchmarks.limit.tools import DTYPE, READ, WRITE, checksum, compressor, decompressor, pull, scratch

SLACK = 2**16  # bytes; more than zstd and a checksum can add to incompressible data
Jobs = Iterator[tuple[int, int]]


class Piece(NamedTuple):
    """The part of one chunk that is selected along an axis."""

    number: int  # index of the chunk along the axis
    inside: Any  # the selection within the chunk, a slice or an array
    start: int  # bounds of that selection
    stop: int
    moved: Any  # the same selection, counted from `start` instead of the first element of the chunk
    to: slice  # where the selected elements go in the result


class Chunks:
    """An array of chunks on disk."""

    def __init__(self, place: Any, document: dict[str, Any]) -> None:
        self.place = place  # the path of a directory; in MemoryChunks, a dict
        self.shape = tuple(document["shape"])
        self.chunk = tuple(document["chunk_grid"]["configuration"]["chunk_shape"])
        self.zstd = len(document["codecs"]) > 1
        self.nbytes = self.chunk[0] * self.chunk[1] * 2
        self._decode: Callable[[str], Any] | None = None

    def _decoder(self) -> Callable[[str], Any]:
        """Return a function that decodes the chunk stored under a key, for use in the calling thread only.

        Each call of this function overwrites the result of the previous call.
        """
        root, buffer = f"{self.place}/", scratch("fetched", self.nbytes + SLACK)
        buffers, value = [buffer], google_crc32c.value
        decoded = scratch("decoded", self.nbytes)
        shaped = decoded.view(DTYPE).reshape(self.chunk)
        stream, nbytes = decompressor().stream_reader, self.nbytes

        def decode(key: str) -> Any:
            fd = os.open(root + key, READ)
            n = os.readv(fd, buffers) - 4
            os.close(fd)
            frame = buffer[:n]
            if value(frame) != int.from_bytes(buffer[n : n + 4], "little") or stream(frame).readinto(decoded) != nbytes:
                raise ValueError("a chunk has a wrong checksum or length")
            return shaped

        return decode

    def element(self, i: int, j: int) -> Any:
        h, w = self.chunk
        if self.zstd:
            self._decode = self._decode or self._decoder()
            return self._decode(f"c/{i // h}/{j // w}")[i % h, j % w]
        fd = os.open(f"{self.place}/c/{i // h}/{j // w}", READ)
        data = os.pread(fd, 2, (i % h * w + j % w) * 2)
        os.close(fd)
        return np.frombuffer(data, DTYPE)[0]

    def read(self) -> Array:
        out = np.empty(self.shape, DTYPE)
        work = self._read_zstd if self.zstd else self._read_raw
        pull(lambda jobs: work(jobs, out), self._all(), out.nbytes)
        return out

    def _read_zstd(self, jobs: Jobs, out: Array) -> None:
        (h, w), decode = self.chunk, self._decoder()
        for i, j in jobs:
            out[i * h : i * h + h, j * w : j * w + w] = decode(f"c/{i}/{j}")

    def _read_raw(self, jobs: Jobs, out: Array) -> None:
        (h, w), buffer = self.chunk, scratch("fetched", self.nbytes)
        root, buffers, shaped = self.place, [buffer], buffer.view(DTYPE).reshape(self.chunk)
        for i, j in jobs:
            fd = os.open(f"{root}/c/{i}/{j}", READ)
            os.readv(fd, buffers)
            os.close(fd)
            out[i * h : i * h + h, j * w : j * w + w] = shaped

    def write(self, values: Array) -> None:
        os.makedirs(f"{self.place}/c", exist_ok=True)
        for i in range(self.shape[0] // self.chunk[0]):
            os.mkdir(f"{self.place}/c/{i}")
        pull(lambda jobs: self._write(jobs, values), self._all(), values.nbytes)

    def _write(self, jobs: Jobs, values: Array) -> None:
        (h, w), packed = self.chunk, scratch("packed", self.nbytes)
        root, shaped, compress = self.place, packed.view(DTYPE).reshape(self.chunk), compressor().compress
        parts: Any = (packed,)
        for i, j in jobs:
            shaped[...] = values[i * h : i * h + h, j * w : j * w + w]
            if self.zstd:
                frame = compress(packed)
                parts = (frame, checksum(frame))
            fd = os.open(f"{root}/c/{i}/{j}", WRITE, 0o666)
            os.writev(fd, parts)
            os.close(fd)

    def _all(self) -> list[tuple[int, int]]:
        h, w = self.chunk
        return [(i, j) for i in range(self.shape[0] // h) for j in range(self.shape[1] // w)]

    def select(self, selection: tuple[Any, Any]) -> Any:
        """Read an orthogonal selection: integers and slices, or two arrays of sorted integers."""
        rows, columns = (split(by, n, c) for by, n, c in zip(selection, self.shape, self.chunk, strict=True))
        if not isinstance(selection[0], (int, slice)):
            # numpy indexes orthogonally if the row numbers are a column vector
            rows = [row._replace(inside=row.inside[:, None], moved=row.moved[:, None]) for row in rows]
        out = np.empty((rows[-1].to.stop, columns[-1].to.stop), DTYPE)
        jobs = [(row, column) for row in rows for column in columns]
        if self.zstd:
            pull(lambda shared: self._select_zstd(shared, out), jobs, len(jobs) * self.nbytes)
        else:
            self._select_raw(iter(jobs), out)  # a second thread would only slow this down
        return out[tuple(0 if isinstance(by, int) else slice(None) for by in selection)]

    def _select_zstd(self, jobs: Iterator[tuple[Piece, Piece]], out: Array) -> None:
        decode = self._decoder()
        for row, column in jobs:
            out[row.to, column.to] = decode(f"c/{row.number}/{column.number}")[row.inside, column.inside]

    def _select_raw(self, jobs: Iterator[tuple[Piece, Piece]], out: Array) -> None:
        """Read only the range of selected rows or, if only one row is selected, the range of selected columns in it."""
        root, w = self.place, self.chunk[1]
        for row, column in jobs:
            fd = os.open(f"{root}/c/{row.number}/{column.number}", READ)
            if row.stop - row.start == 1:
                data = os.pread(fd, (column.stop - column.start) * 2, (row.start * w + column.start) * 2)
                part = np.frombuffer(data, DTYPE).reshape(1, -1)[row.moved, column.moved]
            else:
                data = os.pread(fd, (row.stop - row.start) * w * 2, row.start * w * 2)
                part = np.frombuffer(data, DTYPE).reshape(-1, w)[row.moved, column.inside]
            os.close(fd)
            out[row.to, column.to] = part


class MemoryChunks(Chunks):
    """An array of chunks in a dict."""

    def _read_zstd(self, jobs: Jobs, out: Array) -> None:
        (h, w), decoded = self.chunk, scratch("decoded", self.nbytes)
        shaped, stream = decoded.view(DTYPE).reshape(self.chunk), decompressor().stream_reader
        for i, j in jobs:
            data = np.frombuffer(self.place[f"c/{i}/{j}"], "u1")
            frame = data[:-4]
            if google_crc32c.value(frame) != int.from_bytes(data[-4:], "little"):
                raise ValueError("a chunk has a wrong checksum")
            if stream(frame).readinto(decoded) != self.nbytes:
                raise ValueError("a chunk has the wrong length")
            out[i * h : i * h + h, j * w : j * w + w] = shaped

    def _read_raw(self, jobs: Jobs, out: Array) -> None:
        h, w = self.chunk
        for i, j in jobs:
            data = np.frombuffer(self.place[f"c/{i}/{j}"], DTYPE)
            out[i * h : i * h + h, j * w : j * w + w] = data.reshape(h, w)

    def write(self, values: Array) -> None:
        pull(lambda jobs: self._write(jobs, values), self._all(), values.nbytes)

    def _write(self, jobs: Jobs, values: Array) -> None:
        (h, w), packed = self.chunk, scratch("packed", self.nbytes)
        shaped, compress = packed.view(DTYPE).reshape(self.chunk), compressor().compress
        for i, j in jobs:
            block = values[i * h : i * h + h, j * w : j * w + w]
            if self.zstd:
                shaped[...] = block
                frame = compress(packed)
                self.place[f"c/{i}/{j}"] = frame + checksum(frame)
            else:
                self.place[f"c/{i}/{j}"] = block.tobytes()


def split(by: Any, length: int, chunk: int) -> list[Piece]:
    """Split a selection along an axis (an integer, a slice or an array of sorted integers) into one piece per chunk."""
    pieces: list[Piece] = []
    if isinstance(by, (int, slice)):
        start, stop, step = by.indices(length) if isinstance(by, slice) else (by, by + 1, 1)
        done = 0
        while start < stop:
            n = start // chunk
            end = min(stop, (n + 1) * chunk)
            count = -((start - end) // step)
            first, last = start - n * chunk, end - n * chunk
            to = slice(done, done + count)
            pieces.append(Piece(n, slice(first, last, step), first, last, slice(0, last - first, step), to))
            start, done = start + count * step, done + count
        return pieces
    cuts = np.searchsorted(by, np.arange(0, length + chunk, chunk)).tolist()
    for n, (a, b) in enumerate(itertools.pairwise(cuts)):
        if a < b:
            inside = by[a:b] - n * chunk
            first, last = int(inside[0]), int(inside[-1]) + 1
            pieces.append(Piece(n, inside, first, last, inside - first, slice(a, b)))
    return pieces
