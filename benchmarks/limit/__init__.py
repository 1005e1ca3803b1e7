"""The `limit` baseline: the speed that hand-written code reaches with only numpy, zstandard and google_crc32c.

Rules
- Each chunk is opened, read, verified, decompressed and copied into the returned array. Two threads take chunks from
  one iterator. Small requests run in the calling thread.
- `limit` reads no more than necessary: only the selected rows of a raw chunk, and only two bytes for a single element.
- `limit` trusts the document and the store: no validation, no locks, no temporary files. Checksums are verified.
- Like all contestants, `limit` allocates the array that it returns, so every time includes the page faults of new
  memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.contestants.base import Contestant
from benchmarks.data import Array
from benchmarks.limit.chunks import Chunks, MemoryChunks
from benchmarks.limit.shards import Shards
from benchmarks.limit.tools import READ


class Limit(Contestant):
    """The `limit` baseline as a contestant."""

    name = "limit"
    atomic = False
    packages = ("numpy", "zstandard", "google-crc32c")
    cold_import = "import numpy"
    cold_read = """
import json, os, numpy, zstandard, google_crc32c
def load(path):
    fd = os.open(path, os.O_RDONLY)
    data = os.read(fd, 2 ** 24)
    os.close(fd)
    return data
document = json.loads(load({path!r} + "/zarr.json"))
h, w = document["chunk_grid"]["configuration"]["chunk_shape"]
data = load({path!r} + "/c/%d/%d" % ({i} // h, {j} // w))
if len(document["codecs"]) > 1:
    assert google_crc32c.value(data[:-4]) == int.from_bytes(data[-4:], "little")
    data = zstandard.ZstdDecompressor().decompress(data[:-4])
print(numpy.frombuffer(data, "<u2").reshape(h, w)[{i} % h, {j} % w])
"""

    def memory(self, files: Mapping[str, bytes]) -> Any:
        return dict(files)

    def files(self, place: Any) -> dict[str, bytes]:
        return dict(place)

    def open(self, place: Any, *, write: bool = False, strategy: str = "rewrite") -> Any:
        if isinstance(place, dict):
            return MemoryChunks(place, json.loads(place["zarr.json"]))
        document = _document(place)
        if document["codecs"][0]["name"] == "sharding_indexed":
            return Shards(place, document, strategy)
        return Chunks(place, document)

    def get(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        if selections[0] is ...:
            return [array.read()]
        if isinstance(selections[0][0], int) and isinstance(selections[0][1], int):
            return [array.element(i, j) for i, j in selections]
        return [array.select(selection) for selection in selections]

    def get_orthogonal(self, array: Any, selections: Sequence[Any]) -> list[Any]:
        return [array.select(selection) for selection in selections]

    def put(self, array: Any, selections: Sequence[Any], values: Sequence[Array]) -> None:
        if selections[0] is ...:
            array.write(values[0])
        else:
            for selection, value in zip(selections, values, strict=True):
                array.update(selection, value)

    def open_all(self, paths: Sequence[str]) -> list[Any]:
        return [_document(path) for path in paths]

    def members(self, path: str) -> dict[str, Any]:
        return {name: _document(f"{path}/{name}") for name in os.listdir(path) if name != "zarr.json"}

    def describe(self, array: Any) -> tuple[Any, ...]:
        chunk = array["chunk_grid"]["configuration"]["chunk_shape"]
        return tuple(array["shape"]), array["data_type"], tuple(chunk)


def _document(path: str) -> Any:
    fd = os.open(path + "/zarr.json", READ)
    data = os.read(fd, 2**16)
    os.close(fd)
    return json.loads(data)
