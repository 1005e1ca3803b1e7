"""The `limit` baseline: the speed of hand-written code with only obstore, zstandard, google_crc32c and numpy.

Rules
- Sixty-four threads take requests from one iterator. At most one thread per core decodes or encodes at a time.
- `limit` reads little more than necessary: in a raw chunk, the range from the first to the last selected element; in a
  shard, the range from the first to the last selected inner chunk. Reading a whole shard takes one request; reading
  parts of shards takes two rounds of requests, one for all indices and one for all inner chunks.
- `limit` trusts the document and the server: no validation, no conditional requests, no ETags. Checksums are verified.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import obstore

from benchmarks.data import Array
from benchmarks.limit.tools import DTYPE, checked, checksum, compressor, decompress, scratch
from benchmarks.remote.contestants.base import Remote, Unsupported
from benchmarks.remote.place import Place

THREADS = 64
_pool = ThreadPoolExecutor(THREADS, "limit")
_working = threading.Semaphore(
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)
Coords = tuple[int, int]


def each(do: Callable[[Any], object], jobs: Iterable[Any]) -> None:
    """Run jobs on all threads, which take them from one iterator."""
    jobs = [*jobs]
    shared = iter(jobs)

    def work() -> None:
        for job in shared:
            do(job)

    for other in [_pool.submit(work) for _ in range(min(THREADS, len(jobs)))]:
        other.result()


class Limit(Remote):
    """The `limit` baseline as a contestant."""

    name = "limit"
    atomic = False
    packages = ("numpy", "obstore", "zstandard", "google-crc32c")

    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> RemoteArray:
        client = self.client(place)
        return RemoteArray(client, place.path, _document(client, place.path))

    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [array.get(selection) for selection in selections]

    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [array.get_orthogonal(*selection) for selection in selections]

    def get_points(self, array: Any, points: tuple[Array, Array]) -> Any:
        return array.get_points(*points)

    def put(self, array: Any, selections: Sequence[Any], values: Sequence[Array]) -> None:
        for value in values:
            array.put(value)

    def members(self, place: Any) -> dict[str, Any]:
        client = self.client(place)
        if (consolidated := _document(client, place.path).get("consolidated_metadata")) is not None:
            return consolidated["metadata"]  # type: ignore[no-any-return]
        documents = {}

        def load(path: str) -> None:
            documents[path.rpartition("/")[2]] = _document(client, path)

        each(load, obstore.list_with_delimiter(client, f"{place.path}/")["common_prefixes"])
        return documents

    def describe(self, array: Any) -> tuple[Any, ...]:
        return tuple(array["shape"]), array["data_type"], tuple(array["chunk_grid"]["configuration"]["chunk_shape"])

    def upload(self, path: str, place: Place) -> None:
        client = self.client(place)
        keys = [os.path.relpath(f"{folder}/{name}", path) for folder, _, names in os.walk(path) for name in names]
        each(lambda key: obstore.put(client, f"{place.path}/{key}", Path(path, key).read_bytes()), keys)

    def download(self, place: Place, path: str) -> None:
        client = self.client(place)
        found = obstore.list(client, f"{place.path}/").collect()
        keys = [item["path"] for item in found]
        targets = {key: Path(path, key[len(place.path) + 1 :]) for key in keys}
        for folder in {target.parent for target in targets.values()}:
            folder.mkdir(parents=True, exist_ok=True)
        each(lambda key: targets[key].write_bytes(obstore.get(client, key).bytes()), keys)

    def memory(self, files: Mapping[str, bytes]) -> Any:
        raise Unsupported("only in buckets")

    def files(self, place: Any) -> dict[str, bytes]:
        raise Unsupported("only in buckets")

    def open_all(self, paths: Sequence[str]) -> list[Any]:
        raise Unsupported("only in buckets")


def _document(client: Any, path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(obstore.get(client, f"{path}/zarr.json").bytes()))
    return found


class RemoteArray:
    """An array of chunks, or of shards that have their index at the end."""

    def __init__(self, client: Any, path: str, document: dict[str, Any]) -> None:
        self.client = client
        self.path = path
        self.shape: Coords = tuple(document["shape"])
        self.outer: Coords = tuple(document["chunk_grid"]["configuration"]["chunk_shape"])
        self.chunk = self.outer
        codecs = document["codecs"]
        self.sharded: bool = codecs[0]["name"] == "sharding_indexed"
        if self.sharded:
            self.chunk = tuple(codecs[0]["configuration"]["chunk_shape"])
            codecs = codecs[0]["configuration"]["codecs"]
        self.zstd = len(codecs) > 1
        self.width = self.outer[1] // self.chunk[1]  # number of chunks in a row of a shard
        self.count = self.width * self.outer[0] // self.chunk[0]  # chunks in a shard
        self.nbytes = self.chunk[0] * self.chunk[1] * 2

    def _key(self, coords: Coords) -> str:
        return f"{self.path}/c/{coords[0]}/{coords[1]}"

    def _whole(self, coords: Coords) -> Array:
        return _array(obstore.get(self.client, self._key(coords)).bytes())

    def _range(self, coords: Coords, start: int, stop: int) -> Array:
        return _array(obstore.get_range(self.client, self._key(coords), start=start, end=stop))

    def _decode(self, data: Array, target: Array | None = None) -> Array:
        """Return the elements of a chunk, valid until the next call, and copy them into `target`, if given."""
        if self.zstd:
            memory = scratch("decoded", self.nbytes)
            decompress(checked(data), memory)
            data = memory
        elements = data.view(DTYPE).reshape(self.chunk)
        if target is not None:
            target[...] = elements
        return elements

    # Reading

    def get(self, selection: Any) -> Array:
        """Read the whole array, a range of rows, or columns with a step."""
        if selection is not ...:
            return self._get_part(*selection)
        out = np.empty(self.shape, DTYPE)

        def read(coords: Coords) -> None:
            data = self._whole(coords)
            with _working:
                part = _block(out, coords, self.outer)
                if not self.sharded:
                    self._decode(data, part)
                    return
                for number, (start, stop) in enumerate(self._index(data[-self._index_size :])):
                    self._decode(data[start:stop], _block(part, divmod(number, self.width), self.chunk))

        each(read, np.ndindex(*(n // m for n, m in zip(self.shape, self.outer, strict=True))))
        return out

    def _get_part(self, rows: slice, columns: slice) -> Array:
        i = np.arange(*rows.indices(self.shape[0]))
        j = np.arange(*columns.indices(self.shape[1]))
        out = np.empty((len(i), len(j)), DTYPE)
        step = columns.step or 1
        tops, lefts = np.unique(i // self.chunk[0]), np.unique(j // self.chunk[1])

        def take(coords: Coords, data: Array) -> None:
            top, left = coords[0] * self.chunk[0], coords[1] * self.chunk[1]
            row, column = top - int(i[0]), -(-(left - int(j[0])) // step)
            target = out[row : row + self.chunk[0], column : column - (-self.chunk[1] // step)]
            target[...] = self._decode(data)[:, ::step]

        self._read_inner(itertools.product(tops.tolist(), lefts.tolist()), take)
        return out

    def _read_inner(self, wanted: Iterable[Coords], take: Callable[[Coords, Array], None]) -> None:
        """Read inner chunks, given by their coordinates in the array, with one range request per shard."""
        shards: dict[Coords, list[Coords]] = defaultdict(list)
        rows, columns = (n // m for n, m in zip(self.outer, self.chunk, strict=True))
        for i, j in wanted:
            shards[i // rows, j // columns].append((i, j))
        spans: dict[Coords, dict[Coords, Coords]] = {}

        def load(shard: Coords) -> None:
            options: Any = {"range": {"suffix": self._index_size}}
            index = self._index(_array(obstore.get(self.client, self._key(shard), options=options).bytes()))
            spans[shard] = {(i, j): index[i % rows * columns + j % columns] for i, j in shards[shard]}

        def read(shard: Coords) -> None:
            first = min(start for start, _ in spans[shard].values())
            last = max(stop for _, stop in spans[shard].values())
            data = self._range(shard, first, last)
            with _working:
                for coords, (start, stop) in spans[shard].items():
                    take(coords, data[start - first : stop - first])

        each(load, shards)
        each(read, shards)

    @property
    def _index_size(self) -> int:
        return 16 * self.count + 4

    def _index(self, data: Array) -> list[Coords]:
        """Parse the index of a shard: return the start and the stop of each inner chunk."""
        entries = checked(data).view("<u8").reshape(-1, 2)
        return [(start, start + length) for start, length in entries.tolist()]

    def get_points(self, rows: Array, columns: Array) -> Array:
        """Read single elements."""
        out = np.empty(len(rows), DTYPE)
        # chunk -> for each element: position in the result, row and column in the chunk
        places: dict[Coords, list[tuple[int, int, int]]] = defaultdict(list)
        for number, (i, j) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            coords = i // self.chunk[0], j // self.chunk[1]
            places[coords].append((number, i % self.chunk[0], j % self.chunk[1]))

        def take(coords: Coords, data: Array) -> None:
            elements = self._decode(data)
            for number, i, j in places[coords]:
                out[number] = elements[i, j]

        self._read_chunks(places, take, out)
        return out

    def get_orthogonal(self, rows: Array, columns: Array) -> Array:
        """Read the elements where these rows and columns intersect."""
        points = [part.ravel() for part in np.meshgrid(rows, columns, indexing="ij")]
        return self.get_points(*points).reshape(len(rows), len(columns))

    def _read_chunks(self, places: Any, take: Callable[[Coords, Array], None], out: Array) -> None:
        if self.sharded:
            self._read_inner(places, take)
        elif self.zstd:
            each(lambda coords: self._take_whole(coords, take), places)
        else:
            each(lambda item: self._take_elements(item[0], item[1], out), places.items())

    def _take_whole(self, coords: Coords, take: Callable[[Coords, Array], None]) -> None:
        data = self._whole(coords)
        with _working:
            take(coords, data)

    def _take_elements(self, coords: Coords, places: list[tuple[int, int, int]], out: Array) -> None:
        """Read elements of a raw chunk with one request, for the bytes from the first element to the last."""
        offsets = [2 * (i * self.chunk[1] + j) for _, i, j in places]
        first = min(offsets)
        data = self._range(coords, first, max(offsets) + 2).view(DTYPE)
        for (number, _, _), offset in zip(places, offsets, strict=True):
            out[number] = data[(offset - first) // 2]

    # Writing

    def put(self, values: Array) -> None:
        """Write all chunks of an array without shards."""

        def write(coords: Coords) -> None:
            with _working:
                data: Any = np.ascontiguousarray(_block(values, coords, self.chunk)).reshape(-1).view("u1")
                if self.zstd:
                    data = compressor().compress(data)
                    data += checksum(data)
            obstore.put(self.client, self._key(coords), data, use_multipart=False)

        each(write, np.ndindex(*(n // m for n, m in zip(self.shape, self.chunk, strict=True))))


def _array(data: Any) -> Array:
    """Return bytes from obstore as an array, without a copy."""
    return np.frombuffer(data, "u1")


def _block(array: Array, coords: Coords, shape: Coords) -> Array:
    """Divide an array into blocks of this shape, and return the block at these coordinates."""
    (i, j), (h, w) = coords, shape
    return array[i * h : i * h + h, j * w : j * w + w]
