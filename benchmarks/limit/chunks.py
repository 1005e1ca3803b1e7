"""The limit for arrays of chunks that have a key each, on disk and in memory.

Rules
- Loops are tight: what can be made before a loop is. Two threads that need Python for long get into each other's way.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import google_crc32c
import numpy as np

from benchmarks.data import Array
from benchmarks.limit.tools import DTYPE, READ, WRITE, checksum, compressor, decompressor, pull, scratch

SLACK = 2**16  # more than zstd and a checksum add to what cannot be compressed
Piece = tuple[int, Any, slice]
Jobs = Iterator[tuple[int, int]]


class Chunks:
    """An array of chunks on disk."""

    def __init__(self, place: Any, document: dict[str, Any]) -> None:
        self.place = place  # a path
        self.shape = tuple(document["shape"])
        self.chunk = tuple(document["chunk_grid"]["configuration"]["chunk_shape"])
        self.zstd = len(document["codecs"]) > 1
        self.nbytes = self.chunk[0] * self.chunk[1] * 2
        self._decode: Callable[[str], Any] | None = None

    def _decoder(self) -> Callable[[str], Any]:
        """A function from keys to chunks, for one thread; each chunk overwrites the one before."""
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
                raise ValueError("checksum or length")
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
        """Rows by columns, each a number, a slice or an array of sorted numbers."""
        rows, columns = (split(by, n, c) for by, n, c in zip(selection, self.shape, self.chunk, strict=True))
        out = np.empty((rows[-1][2].stop, columns[-1][2].stop), DTYPE)
        jobs = [(row, column) for row in rows for column in columns]

        def work(shared: Iterator[tuple[Piece, Piece]]) -> None:
            decode = self._decoder()
            for (i, inside, to_rows), (j, across, to_columns) in shared:
                out[to_rows, to_columns] = decode(f"c/{i}/{j}")[inside][:, across]

        def work_raw(shared: Iterator[tuple[Piece, Piece]]) -> None:
            for (i, inside, to_rows), (j, across, to_columns) in shared:
                out[to_rows, to_columns] = self._part(f"{self.place}/c/{i}/{j}", inside, across)

        if self.zstd:
            pull(work, jobs, len(jobs) * self.nbytes)
        else:
            work_raw(iter(jobs))  # a second thread would only be in the way
        return out[tuple(0 if isinstance(by, int) else slice(None) for by in selection)]

    def _part(self, path: str, rows: Any, columns: Any) -> Any:
        """A part of a raw chunk: only the rows between are read, and of one row only the columns between."""
        w = self.chunk[1]
        (top, bottom), (left, right) = ends(rows), ends(columns)
        if bottom - top > 1:
            left, right = 0, w
        fd = os.open(path, READ)
        data = os.pread(fd, ((bottom - top - 1) * w + right - left) * 2, (top * w + left) * 2)
        os.close(fd)
        block = np.frombuffer(data, DTYPE).reshape(bottom - top, right - left)
        return block[moved(rows, top)][:, moved(columns, left)]


class MemoryChunks(Chunks):
    """An array of chunks in a dict."""

    def _read_zstd(self, jobs: Jobs, out: Array) -> None:
        (h, w), decoded = self.chunk, scratch("decoded", self.nbytes)
        shaped, stream = decoded.view(DTYPE).reshape(self.chunk), decompressor().stream_reader
        for i, j in jobs:
            data = np.frombuffer(self.place[f"c/{i}/{j}"], "u1")
            frame = data[:-4]
            if google_crc32c.value(frame) != int.from_bytes(data[-4:], "little"):
                raise ValueError("checksum")
            if stream(frame).readinto(decoded) != self.nbytes:
                raise ValueError("length")
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
    """The chunks along an axis: their number, what is taken of them and where it goes."""
    if isinstance(by, int):
        return [(by // chunk, slice(by % chunk, by % chunk + 1), slice(0, 1))]
    pieces: list[Piece] = []
    if isinstance(by, slice):
        start, stop, step = by.indices(length)
        done = 0
        while start < stop:
            n = start // chunk
            end = min(stop, (n + 1) * chunk)
            count = -((start - end) // step)
            pieces.append((n, slice(start - n * chunk, end - n * chunk, step), slice(done, done + count)))
            start, done = start + count * step, done + count
        return pieces
    cuts = np.searchsorted(by, np.arange(0, length + chunk, chunk)).tolist()
    for n, (a, b) in enumerate(itertools.pairwise(cuts)):
        if a < b:
            pieces.append((n, by[a:b] - n * chunk, slice(a, b)))
    return pieces


def ends(by: Any) -> tuple[int, int]:
    """Where a slice or an array of sorted numbers begins and ends."""
    return (by.start, by.stop) if isinstance(by, slice) else (int(by[0]), int(by[-1]) + 1)


def moved(by: Any, start: int) -> Any:
    """The same numbers counted from a start."""
    return slice(by.start - start, by.stop - start, by.step) if isinstance(by, slice) else by - start
