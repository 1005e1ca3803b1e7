"""`python -m benchmarks.steps`: where the time of small reads goes, step by step.

Rules
- Every step is what zarrlite does, or what any program must do, timed alone in a loop; the minimum counts.
- What is left between the sum and the whole are calls from function to function, and caches that a loop keeps warm.
"""

from __future__ import annotations

import os
import tempfile
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import zarrlite
from benchmarks.data import BYTES, CRC32C
from zarrlite import indexing
from zarrlite.selection import everything
from zarrlite.source import Slice

Step = tuple[str, Callable[[], Any]]
LOOPS, REPEATS = 300, 60
SHAPE, CHUNK, INNER = (2048, 2048), (128, 256), (64, 64)


def microseconds(do: Callable[[], Any]) -> float:
    """Of one call, at best."""
    return min(timeit.repeat(do, number=LOOPS, repeat=REPEATS)) / LOOPS * 1e6


def show(title: str, whole: Callable[[], Any], steps: list[Step]) -> None:
    """A table: the whole, its steps, and what is left."""
    total = microseconds(whole)
    print(f"\n{title}: {total:.1f} µs")
    rest = total
    for name, do in steps:
        taken = microseconds(do)
        rest -= taken
        print(f"    {taken:5.1f}  {name}")
    print(f"    {rest:5.1f}  calls between these, and colder caches")


def element(array: Any, path: str) -> None:
    """One element of a raw chunk."""
    chunks = array._chunks
    fd = os.open(path, os.O_RDONLY)
    show(
        "an element of a raw chunk",
        lambda: array[400, 600],
        [
            ("the kernel: open, close", lambda: os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))),
            ("the kernel: size", lambda: os.lseek(fd, 0, os.SEEK_END)),
            ("the kernel: two bytes", lambda: os.pread(fd, 2, 1000)),
            ("a numpy scalar of two bytes", lambda: np.frombuffer(b"ab", "<u2")[0]),
            ("the index, checked", lambda: indexing.element((400, 600), SHAPE)),
            ("the chunk, and the place in it", lambda: chunks.grid.locate((400, 600))),
            ("the key", lambda: chunks._encode_key((3, 2))),
            ("the path, kept below the root", lambda: array.store.store._root.path("c/3/2")),
            ("a source", lambda: chunks.store.source("c/3/2")),
        ],
    )
    os.close(fd)


def inner_chunk(array: Any, path: str) -> None:
    """One raw inner chunk of a shard of 1,024."""
    chunks, index = array._chunks, (slice(640, 704), slice(1280, 1344))
    serializer = chunks.pipeline((0, 0)).serializer
    source = chunks.store.source("c/0/0")
    entry = serializer.format.read_index(source).entry(77)
    out, whole = np.empty(INNER, "<u2"), everything(INNER)
    request = indexing.simple(index, SHAPE)
    show(
        "a raw inner chunk of a shard",
        lambda: array[index],
        [
            ("the kernel: open, close", lambda: os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))),
            ("the index of the shard: 16 KiB read, checksum", lambda: serializer.format.read_index(source)),
            ("the chunk: 8 KiB read, copied", lambda: serializer.inner.read(Slice(source, *entry), whole, None, out)),
            ("the slices, checked", lambda: indexing.simple(index, SHAPE)),
            ("the shard, and the place in it", lambda: chunks.grid.only(request.selection)),  # type: ignore[union-attr]
            ("the inner chunk, and the place in it", lambda: request.selection.only_chunk(INNER)),  # type: ignore[union-attr]
            ("the result", lambda: np.empty(INNER, "<u2")),
        ],
    )
    source.close()


def main() -> None:
    """The command."""
    data = np.arange(SHAPE[0] * SHAPE[1], dtype="<u4").astype("<u2").reshape(SHAPE)
    sharding = {"chunk_shape": list(INNER), "codecs": [BYTES], "index_codecs": [BYTES, CRC32C]}
    layouts = {
        "raw": (CHUNK, [BYTES], element, "c/3/2"),
        "shards": (SHAPE, [{"name": "sharding_indexed", "configuration": sharding}], inner_chunk, "c/0/0"),
    }
    with tempfile.TemporaryDirectory() as root:
        for name, (chunk, codecs, do, key) in layouts.items():
            path = os.path.join(root, name)
            zarrlite.create_array(path, data=data, chunks=chunk, codecs=codecs)
            do(zarrlite.open_array(path, mode="r"), os.path.join(path, key))


if __name__ == "__main__":
    main()
