"""The limit for arrays of chunks that have a key each, on disk and in memory."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.data import Array
from benchmarks.limit.tools import DTYPE, READ, WRITE, checked, checksum, compressor, decompress, pull, scratch

SLACK = 2**16  # more than zstd and a checksum add to what cannot be compressed
Piece = tuple[int, Any, slice]


class Files:
    """Values on disk."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.prefix = root + "/"

    def fetch(self, key: str, most: int) -> Any:
        buffer = scratch("fetched", most)
        fd = os.open(self.prefix + key, READ)
        n = os.readv(fd, [buffer])
        os.close(fd)
        return buffer[:n]

    def fetch_range(self, key: str, start: int, nbytes: int) -> Array:
        fd = os.open(self.prefix + key, READ)
        data = os.pread(fd, nbytes, start)
        os.close(fd)
        return np.frombuffer(data, "u1")

    def pack(self, block: Array) -> Any:
        packed = scratch("packed", block.nbytes)
        packed.view(DTYPE).reshape(block.shape)[...] = block
        return packed

    def store(self, key: str, parts: Sequence[Any]) -> None:
        fd = os.open(self.prefix + key, WRITE, 0o666)
        os.writev(fd, parts)
        os.close(fd)

    def make_rows(self, rows: int) -> None:
        """The directories of chunk keys."""
        os.makedirs(self.prefix + "c", exist_ok=True)
        for i in range(rows):
            os.mkdir(f"{self.prefix}c/{i}")


class Values:
    """Values in memory."""

    def __init__(self, values: Mapping[str, bytes]) -> None:
        self.values = dict(values)

    def fetch(self, key: str, most: int) -> Any:
        return np.frombuffer(self.values[key], "u1")

    def fetch_range(self, key: str, start: int, nbytes: int) -> Array:
        return np.frombuffer(self.values[key], "u1", nbytes, start)

    def pack(self, block: Array) -> Any:
        return block.tobytes()

    def store(self, key: str, parts: Sequence[bytes]) -> None:
        self.values[key] = parts[0] if len(parts) == 1 else b"".join(parts)

    def make_rows(self, rows: int) -> None:
        """Nothing to make."""


class Chunks:
    """An array of chunks, each under its own key."""

    def __init__(self, store: Files | Values, document: dict[str, Any]) -> None:
        self.store = store
        self.shape = tuple(document["shape"])
        self.chunk = tuple(document["chunk_grid"]["configuration"]["chunk_shape"])
        self.zstd = len(document["codecs"]) > 1
        self.nbytes = self.chunk[0] * self.chunk[1] * 2

    def decode(self, key: str) -> Any:
        """A whole chunk, in memory that the next one overwrites."""
        if self.zstd:
            decoded = scratch("decoded", self.nbytes)
            decompress(checked(self.store.fetch(key, self.nbytes + SLACK)), decoded)
        else:
            decoded = self.store.fetch(key, self.nbytes)
        return decoded.view(DTYPE).reshape(self.chunk)

    def element(self, i: int, j: int) -> Any:
        h, w = self.chunk
        key = f"c/{i // h}/{j // w}"
        if self.zstd:
            return self.decode(key)[i % h, j % w]
        return self.store.fetch_range(key, (i % h * w + j % w) * 2, 2).view(DTYPE)[0]

    def read(self) -> Array:
        out = np.empty(self.shape, DTYPE)
        h, w = self.chunk

        def work(jobs: Iterator[tuple[int, int]]) -> None:
            for i, j in jobs:
                out[i * h : i * h + h, j * w : j * w + w] = self.decode(f"c/{i}/{j}")

        pull(work, self._all(), out.nbytes)
        return out

    def write(self, values: Array) -> None:
        h, w = self.chunk
        store = self.store

        def work(jobs: Iterator[tuple[int, int]]) -> None:
            for i, j in jobs:
                packed = store.pack(values[i * h : i * h + h, j * w : j * w + w])
                if self.zstd:
                    frame = compressor().compress(packed)
                    store.store(f"c/{i}/{j}", (frame, checksum(frame)))
                else:
                    store.store(f"c/{i}/{j}", (packed,))

        store.make_rows(self.shape[0] // h)
        pull(work, self._all(), values.nbytes)

    def _all(self) -> list[tuple[int, int]]:
        h, w = self.chunk
        return [(i, j) for i in range(self.shape[0] // h) for j in range(self.shape[1] // w)]

    def select(self, selection: tuple[Any, Any]) -> Any:
        """Rows by columns, each a number, a slice or an array of sorted numbers."""
        rows, columns = (split(by, n, c) for by, n, c in zip(selection, self.shape, self.chunk, strict=True))
        out = np.empty((rows[-1][2].stop, columns[-1][2].stop), DTYPE)
        jobs = [(row, column) for row in rows for column in columns]

        def work(shared: Iterator[tuple[Piece, Piece]]) -> None:
            for (i, inside, to_rows), (j, across, to_columns) in shared:
                out[to_rows, to_columns] = self._part(f"c/{i}/{j}", inside, across)

        pull(work, jobs, len(jobs) * self.nbytes if self.zstd else out.nbytes)
        return out[tuple(0 if isinstance(by, int) else slice(None) for by in selection)]

    def _part(self, key: str, rows: Any, columns: Any) -> Any:
        """A part of a chunk. Of raw ones only the rows between are read, and of one row only the columns between."""
        if self.zstd:
            return self.decode(key)[rows][:, columns]
        w = self.chunk[1]
        (top, bottom), (left, right) = ends(rows), ends(columns)
        if bottom - top > 1:
            left, right = 0, w
        data = self.store.fetch_range(key, (top * w + left) * 2, ((bottom - top - 1) * w + right - left) * 2)
        return data.view(DTYPE).reshape(bottom - top, right - left)[moved(rows, top)][:, moved(columns, left)]


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
