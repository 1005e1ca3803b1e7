"""The `limit` baseline for shards on disk.

Rules
- Reading a shard takes one read call for its index and one for each block of contiguous inner chunks (about 1 MiB
  decoded). One numpy operation copies a block into the result.
- Small chunks are compressed and decompressed dozens at a time, in one call.
- An update rewrites the shard, overwrites one chunk, or appends that chunk and a new index, depending on `strategy`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import google_crc32c
import numpy as np
import zstandard

from benchmarks.data import Array
from benchmarks.limit.tools import (
    DTYPE,
    READ,
    WRITE,
    checked,
    checksum,
    compressor,
    decompress,
    decompressor,
    pull,
    scratch,
)

BLOCK = 2**20  # decoded bytes; inner chunks are read and written in blocks of this size
SMALL = 2**15  # decoded bytes; chunks up to this size are compressed and decompressed many per call, which is faster
# a block to read: file descriptor of its shard, row and column of the shard, contents of the shard's index, and
# position of the block's first chunk in the shard
Job = tuple[int, int, int, Array, tuple[int, int]]


class Shards:
    """An array of shards, each with its index at the end."""

    def __init__(self, root: str, document: dict[str, Any], strategy: str) -> None:
        sharding = document["codecs"][0]["configuration"]
        self.root = root
        self.strategy = strategy
        self.shape = tuple(document["shape"])
        self.shard = tuple(document["chunk_grid"]["configuration"]["chunk_shape"])
        self.inner = tuple(sharding["chunk_shape"])
        self.zstd = len(sharding["codecs"]) > 1
        self.grid = self.shard[0] // self.inner[0], self.shard[1] // self.inner[1]
        self.count = self.grid[0] * self.grid[1]
        self.nbytes = self.inner[0] * self.inner[1] * 2
        block_size = max(1, BLOCK // self.nbytes)
        width = min(self.grid[1], block_size)
        self.block = min(self.grid[0], max(1, block_size // width)), width  # in inner chunks

    def _open(self, i: int, j: int, flags: int = READ) -> tuple[int, int, bytes]:
        """Open a shard; return its descriptor, the offset of its index, and the index."""
        fd = os.open(f"{self.root}/c/{i}/{j}", flags)
        size = 16 * self.count + 4
        end = os.fstat(fd).st_size - size
        index = os.pread(fd, size, end)
        if google_crc32c.value(index[:-4]) != int.from_bytes(index[-4:], "little"):
            raise ValueError("an index has a wrong checksum")
        return fd, end, index

    def _find(self, i: int, j: int) -> tuple[int, int, int]:
        """Open the shard that contains an element; return its descriptor, and the inner chunk's offset and length."""
        (h, w), (ih, iw) = self.shard, self.inner
        fd, _, index = self._open(i // h, j // w)
        entry = 16 * (i % h // ih * self.grid[1] + j % w // iw)
        return (
            fd,
            int.from_bytes(index[entry : entry + 8], "little"),
            int.from_bytes(index[entry + 8 : entry + 16], "little"),
        )

    def _decode(self, fd: int, offset: int, length: int) -> Any:
        """Decode an inner chunk into a scratch buffer, which the next call overwrites."""
        decoded = scratch("decoded", self.nbytes)
        if self.zstd:
            decompress(checked(np.frombuffer(os.pread(fd, length, offset), "u1")), decoded)
        else:
            os.preadv(fd, [decoded], offset)
        return decoded.view(DTYPE).reshape(self.inner)

    def element(self, i: int, j: int) -> Any:
        fd, offset, length = self._find(i, j)
        ih, iw = self.inner
        if self.zstd:
            value = self._decode(fd, offset, length)[i % ih, j % iw]
        else:
            value = np.frombuffer(os.pread(fd, 2, offset + (i % ih * iw + j % iw) * 2), DTYPE)[0]
        os.close(fd)
        return value

    def select(self, selection: tuple[slice, slice]) -> Any:
        """Read an inner chunk."""
        fd, offset, length = self._find(selection[0].start, selection[1].start)
        chunk = self._decode(fd, offset, length).copy()
        os.close(fd)
        return chunk

    # ---------------------------------------------------------------- the whole array

    def read(self) -> Array:
        out = np.empty(self.shape, DTYPE)
        (ih, iw), (bh, bw) = self.inner, self.block
        target = out.reshape(self.shape[0] // ih, ih, self.shape[1] // iw, iw)

        def work(jobs: Iterator[Job]) -> None:
            for fd, i, j, index, (r, c) in jobs:
                block = self._read_block(fd, index[r : r + bh, c : c + bw].reshape(-1, 2))
                row, column = i * self.grid[0] + r, j * self.grid[1] + c
                target[row : row + bh, :, column : column + bw] = block.transpose(0, 2, 1, 3)

        shards = {coords: self._open(*coords) for coords in self._all()}
        jobs = []
        for (i, j), (fd, _, data) in shards.items():
            index = np.frombuffer(data, "<i8", 2 * self.count).reshape(*self.grid, 2)
            jobs += [(fd, i, j, index, (r, c)) for r, c in self._blocks()]
        pull(work, jobs, out.nbytes)
        for fd, _, _ in shards.values():
            os.close(fd)
        return out

    def _all(self) -> list[tuple[int, int]]:
        (h, w), (rows, columns) = self.shard, self.shape
        return [(i, j) for i in range(rows // h) for j in range(columns // w)]

    def _blocks(self) -> list[tuple[int, int]]:
        (gh, gw), (bh, bw) = self.grid, self.block
        return [(r, c) for r in range(0, gh, bh) for c in range(0, gw, bw)]

    def _read_block(self, fd: int, entries: Array) -> Any:
        """Decode the inner chunks of a block into consecutive slots of a scratch buffer."""
        shape = *self.block, *self.inner
        starts, lengths = entries[:, 0], entries[:, 1]
        first = int(starts.min())
        size = int((starts + lengths).max()) - first
        if size > 2 * int(lengths.sum()):  # the chunks are scattered, so one read would fetch too much
            return self._read_separately(fd, entries.tolist()).reshape(shape)
        data = scratch("fetched", size)
        os.preadv(fd, [data], first)
        starts = starts - first
        if not self.zstd:
            if (np.diff(starts) == self.nbytes).all():
                return data.view(DTYPE).reshape(shape)
            return self._read_separately(fd, entries.tolist()).reshape(shape)
        ends = starts + lengths - 4
        stored = data[ends[:, None] + np.arange(4)].view("<u4")[:, 0]
        bounds = list(zip(starts.tolist(), ends.tolist(), strict=True))
        if [google_crc32c.value(data[a:b]) for a, b in bounds] != stored.tolist():
            raise ValueError("an inner chunk has a wrong checksum")
        decoded = scratch("decoded", len(bounds) * self.nbytes)
        if self.nbytes > SMALL:
            stream = decompressor().stream_reader
            for (a, b), target in zip(bounds, decoded.reshape(-1, self.nbytes), strict=True):
                if stream(data[a:b]).readinto(target) != self.nbytes:
                    raise ValueError("an inner chunk has the wrong length")
        else:
            self._decompress_many(data, np.stack([starts, lengths - 4], 1), decoded)
        return decoded.view(DTYPE).reshape(shape)

    def _decompress_many(self, data: Any, segments: Array, target: Array) -> None:
        """Decompress many frames in one call.

        zstandard returns views of a few contiguous buffers, so each buffer is copied as a whole, not view by view.
        """
        sizes = np.full(len(segments), self.nbytes)
        frames = zstandard.BufferWithSegments(data, segments.tobytes())
        views = list(decompressor().multi_decompress_to_buffer(frames, sizes.tobytes(), threads=1))
        firsts = [n for n, view in enumerate(views) if view.offset == 0]
        for a, b in itertools.pairwise([*firsts, len(views)]):
            first = np.frombuffer(views[a], "u1")
            buffer = np.lib.stride_tricks.as_strided(first, ((b - a) * self.nbytes,), (1,))
            target[a * self.nbytes : b * self.nbytes] = buffer

    def _read_separately(self, fd: int, entries: list[list[int]]) -> Array:
        return np.stack([self._decode(fd, *entry).copy() for entry in entries])

    def write(self, values: Array) -> None:
        (ih, iw), h = self.inner, self.shard[0]
        source = values.reshape(self.shape[0] // ih, ih, self.shape[1] // iw, iw)

        def work(jobs: Iterator[tuple[int, int]]) -> None:
            for i, j in jobs:
                fd = os.open(f"{self.root}/c/{i}/{j}", WRITE, 0o666)
                self._write_shard(fd, source, i * self.grid[0], j * self.grid[1])
                os.close(fd)

        for i in range(self.shape[0] // h):
            os.makedirs(f"{self.root}/c/{i}", exist_ok=True)
        pull(work, self._all(), values.nbytes)

    def _write_shard(self, fd: int, source: Array, row: int, column: int) -> None:
        bh, bw = self.block
        packed = scratch("packed", bh * bw * self.nbytes)
        shaped = packed.view(DTYPE).reshape(bh, bw, *self.inner)
        segments = np.stack([np.arange(bh * bw) * self.nbytes, np.full(bh * bw, self.nbytes)], 1)
        lengths: list[int] = []
        for r, c in self._blocks():
            block = source[row + r : row + r + bh, :, column + c : column + c + bw]
            shaped[...] = block.transpose(0, 2, 1, 3)
            if not self.zstd:
                os.writev(fd, [packed])
                lengths += [self.nbytes] * (bh * bw)
                continue
            if self.nbytes > SMALL:
                frames: Any = [compressor().compress(chunk) for chunk in packed.reshape(-1, self.nbytes)]
            else:
                pieces = zstandard.BufferWithSegments(packed, segments.tobytes())
                frames = list(compressor().multi_compress_to_buffer(pieces, threads=1))
            os.writev(fd, [part for frame in frames for part in (frame, checksum(np.frombuffer(frame, "u1")))])
            lengths += [len(frame) + 4 for frame in frames]
        index = np.empty((self.count, 2), "<u8")
        index[:, 1] = lengths
        index[0, 0] = 0
        index[1:, 0] = np.cumsum(lengths)[:-1]
        data = index.tobytes()
        os.writev(fd, [data, checksum(data)])

    # ---------------------------------------------------------------- one inner chunk

    def update(self, selection: tuple[slice, slice], values: Array) -> None:
        """Replace an inner chunk."""
        i, j = selection[0].start, selection[1].start
        (h, w), (ih, iw) = self.shard, self.inner
        coords = i // h, j // w
        n = i % h // ih * self.grid[1] + j % w // iw
        data = np.ascontiguousarray(values).tobytes()
        if self.zstd:
            data = compressor().compress(data)
            data += checksum(data)
        fd, end, index = self._open(*coords, flags=READ if self.strategy == "rewrite" else os.O_RDWR | os.O_CLOEXEC)
        table = np.frombuffer(index, "<i8", 2 * self.count).reshape(-1, 2).copy()
        start, length = table[n].tolist()
        if self.strategy == "rewrite":
            self._rewrite(fd, end, table, n, data, coords)
        elif self.strategy == "in-place" and length == len(data):
            os.pwrite(fd, data, start)
        else:
            table[n] = end + len(index), len(data)
            new = table.tobytes()
            os.pwritev(fd, [data, new, checksum(new)], end + len(index))
        os.close(fd)

    def _rewrite(self, fd: int, end: int, table: Array, n: int, data: bytes, coords: tuple[int, int]) -> None:
        old = scratch("shard", end)
        os.preadv(fd, [old], 0)
        start, length = table[n].tolist()
        later = table[:, 0] > start
        table[later, 0] += len(data) - length
        table[n, 1] = len(data)
        new = table.tobytes()
        out = os.open(f"{self.root}/c/{coords[0]}/{coords[1]}", WRITE)
        os.writev(out, [old[:start], data, old[start + length :], new, checksum(new)])
        os.close(out)
