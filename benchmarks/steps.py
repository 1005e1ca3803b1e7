"""`python -m benchmarks.steps`: where the time of small operations goes, step by step.

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

import google_crc32c
import numpy as np
import zstandard

import zarrlite
from benchmarks.data import BYTES, CHAINS, CHUNKS, CRC32C, image
from zarrlite.buffers.source import Slice
from zarrlite.nodes import node
from zarrlite.selections import indexing
from zarrlite.selections.selection import everything
from zarrlite.stores import LocalStore, files
from zarrlite.stores.filelock import lock_path

Step = tuple[str, Callable[[], Any]]
LOOPS, REPEATS, MANY = 100, 60, 32
SHAPE, CHUNK, INNER = (2048, 2048), (128, 256), (64, 64)
READ = os.O_RDONLY | os.O_CLOEXEC
ELEMENT, BLOCK = (650, 1290), (slice(640, 704), slice(1280, 1344))
NUMBER = 10 * 32 + 20  # of that block in its shard
SHARDING = {"chunk_shape": list(INNER), "codecs": [BYTES], "index_codecs": [BYTES, CRC32C]}
SHARDS = [{"name": "sharding_indexed", "configuration": SHARDING}]
PACKED = [{"name": "sharding_indexed", "configuration": {**SHARDING, "codecs": CHAINS["zstd"]}}]
PARTS = [{"key_suffix": ""}, {"key_suffix": ".index", "size": 16 * 1024 + 4}]


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


def touch(path: str) -> None:
    """Open and close a file."""
    os.close(os.open(path, READ))


def read(path: str, size: int, start: int) -> bytes:
    """A part of a file."""
    fd = os.open(path, READ)
    data = os.pread(fd, size, start)
    os.close(fd)
    return data


def element(path: str) -> None:
    """One element of a raw chunk."""
    array: Any = zarrlite.open_array(path, mode="r")
    chunks, key = array._chunks, "c/5/5"
    chunk = f"{path}/{key}"
    fd = os.open(chunk, READ)
    steps: list[Step] = [
        ("the kernel: open, close", lambda: touch(chunk)),
        ("the kernel: size", lambda: os.lseek(fd, 0, os.SEEK_END)),
        ("the kernel: two bytes", lambda: os.pread(fd, 2, 1000)),
        ("a numpy scalar of two bytes", lambda: np.frombuffer(b"ab", "<u2")[0]),
        ("the index, checked", lambda: indexing.element(ELEMENT, SHAPE)),
        ("the chunk, and the place in it", lambda: chunks.grid.locate(ELEMENT)),
        ("the key", lambda: chunks._encode_key((5, 5))),
        ("the path, kept below the root", lambda: array.store.store._root.path(key)),
    ]
    show("an element of a raw chunk", lambda: array[ELEMENT], steps)
    os.close(fd)


def opening(path: str) -> None:
    """The same, of an array that is opened first."""
    array = zarrlite.open_array(path, mode="r")
    document, directory, chunk = f"{path}/zarr.json", f"{path}/c", f"{path}/c/5/5"
    store, data = LocalStore(path), read(document, 2**16, 0)
    steps: list[Step] = [
        ("the kernel: two files opened, read, closed", lambda: (read(document, 2**16, 0), read(chunk, 2, 1000))),
        ("the kernel: two directories looked at", lambda: (os.lstat(directory), os.lstat(f"{directory}/5"))),
        ("the store", lambda: LocalStore(path)),
        ("the document, known to be right", lambda: node._split_attributes(data)),
        ("the array and its chunks", lambda: zarrlite.Array(store, "", array.metadata)._chunks),
        ("the index, checked", lambda: indexing.element(ELEMENT, SHAPE)),
    ]
    show("an array opened, and an element of a raw chunk", lambda: zarrlite.open_array(path, mode="r")[ELEMENT], steps)


def inner_chunk(path: str) -> None:
    """One raw inner chunk of a shard of 1,024."""
    array: Any = zarrlite.open_array(path, mode="r")
    chunks = array._chunks
    serializer = chunks.pipeline((0, 0)).serializer
    source = chunks.store.source("c/0/0")
    place = serializer.format.read_index(source).entry(NUMBER)
    out, whole = np.empty(INNER, "<u2"), everything(INNER)
    selection: Any = indexing.basic(BLOCK, SHAPE).selection
    steps: list[Step] = [
        ("the kernel: open, close", lambda: touch(f"{path}/c/0/0")),
        ("the index of the shard: 16 KiB read, checksum", lambda: serializer.format.read_index(source)),
        ("the chunk: 8 KiB read, copied", lambda: serializer.inner.read(Slice(source, *place), whole, None, out)),
        ("the slices, checked", lambda: indexing.box(BLOCK, SHAPE)),
        ("the shard, and the place in it", lambda: chunks.grid.only(selection)),
        ("the inner chunk, and the place in it", lambda: selection.only_chunk(INNER)),
        ("the result", lambda: np.empty(INNER, "<u2")),
    ]
    show("a raw inner chunk of a shard", lambda: array[BLOCK], steps)
    source.close()


def parts(path: str, plain: str, codec: str) -> None:
    """An element of a shard whose index is a file of its own."""
    array, other = (zarrlite.open_array(p, mode="r") for p in (path, plain))
    steps: list[Step] = [
        ("the same element of a plain shard", lambda: other[ELEMENT]),
        ("the kernel: another file opened, closed", lambda: touch(f"{path}/c/0/0.index")),
    ]
    show(f"an element of a {codec} shard in parts", lambda: array[ELEMENT], steps)


def rewritten_parts(path: str, plain: str) -> None:
    """An inner chunk of such a shard, replaced by a new shard."""
    array, other = (zarrlite.open_array(p, mode="r+") for p in (path, plain))
    values = np.arange(64 * 64, dtype="<u2").reshape(INNER)
    index = bytes(16 * 1024 + 4)

    def replace(target: Any) -> None:
        target[BLOCK] = values

    def renamed(data: bytes) -> None:
        fd = os.open(f"{path}/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        os.write(fd, data)
        os.close(fd)
        os.replace(f"{path}/new", f"{path}/old")

    steps: list[Step] = [
        ("the same in a plain shard", lambda: replace(other)),
        ("the kernel: an empty file renamed over another", lambda: renamed(b"")),
        ("the kernel: an index renamed over that", lambda: renamed(index)),
    ]
    show("an inner chunk of a zstd shard in parts, replaced by a new shard", lambda: replace(array), steps)


def zstd_element(path: str, size: str) -> None:
    """One element in the middle of a compressed chunk."""
    array: Any = zarrlite.open_array(path, mode="r")
    (h, w), chunk = CHUNKS[size], f"{path}/c/0/0"
    place, nbytes, memory = (h // 2, w // 2), h * w * 2, memoryview(bytearray(h * w * 2))
    stored = read(chunk, nbytes, 0)
    frame, decompressor = stored[:-4], zstandard.ZstdDecompressor()
    needed = nbytes if nbytes < 2**18 else nbytes // 2 + w + 2  # smaller ones are decompressed whole

    def fetch() -> None:
        fd = os.open(chunk, READ)
        os.preadv(fd, (memory,), 0)
        os.close(fd)

    steps: list[Step] = [
        (f"the kernel: open, {len(stored) >> 10} KiB, close", fetch),
        ("the checksum", lambda: google_crc32c.value(stored)),
        (f"{needed >> 10} KiB decompressed", lambda: decompressor.stream_reader(frame).readinto(memory[:needed])),
    ]
    show(f"an element of a zstd chunk of {nbytes >> 10} KiB", lambda: array[place], steps)


def in_place(path: str) -> None:
    """A raw inner chunk that is replaced where it lies."""
    array: Any = zarrlite.open_array(path, mode="r+", options={"/codecs/0": {"strategy": "in-place"}})
    shard, values = f"{path}/c/0/0", np.arange(64 * 64, dtype="<u2").reshape(INNER)
    serializer = array._chunks.pipeline((0, 0)).serializer
    source = array._chunks.store.source("c/0/0")
    index = serializer.format.read_index(source)
    data, changes = values.tobytes(), {NUMBER: values.tobytes()}
    fd = os.open(shard, os.O_RDWR | os.O_CLOEXEC)

    def lock() -> None:
        with lock_path(shard, path):
            pass

    def overwrite() -> None:
        os.pread(fd, len(data), 0)
        os.pwrite(fd, data, 0)

    def set_block() -> None:
        array[BLOCK] = values

    steps: list[Step] = [
        ("the lock: six system calls", lock),
        ("the kernel: open, close", lambda: touch(shard)),
        ("the index of the shard: 16 KiB read, checksum", lambda: serializer.format.read_index(source)),
        ("that nothing else lies there", lambda: serializer.writer.patch(source, index, changes)),
        ("the kernel: 8 KiB read, to be kept, and 8 KiB written", overwrite),
        ("the slices, checked", lambda: indexing.box(BLOCK, SHAPE)),
    ]
    show("a raw inner chunk of a shard, replaced in place", set_block, steps)
    source.close()
    os.close(fd)


def small_chunks(path: str) -> None:
    """All of an array of raw chunks of 64 KiB, for each of them."""
    array: Any = zarrlite.open_array(path, mode="r")
    chunks, out, buffer = array._chunks, np.empty(SHAPE, "<u2"), np.empty(CHUNK, "<u2")
    jobs = list(chunks.grid.project(everything(SHAPE)))
    count = len(jobs)

    def each(do: Callable[[Any], Any]) -> Callable[[], None]:
        def run() -> None:
            for job in jobs:
                do(job)

        return run

    def read_file(job: Any) -> None:
        fd = os.open(f"{path}/c/{job[0][0]}/{job[0][1]}", READ)
        os.preadv(fd, [buffer.data], 0)
        os.close(fd)

    def whole(do: Callable[[], Any]) -> float:
        return min(timeit.repeat(do, number=1, repeat=REPEATS)) / count * 1e6

    steps: list[Step] = [
        ("the kernel: open, 64 KiB, close", each(read_file)),
        ("copied to its place", each(lambda job: job[2].put(out, buffer))),
        ("the chunk, and its place", lambda: list(chunks.grid.project(everything(SHAPE)))),
        ("the key", each(lambda job: chunks._encode_key(job[0]))),
        ("the path, kept below the root", each(lambda job: array.store.store._root.path("c/5/5"))),
    ]
    total = rest = whole(lambda: chunks.read(everything(SHAPE), out))
    print(f"\na raw chunk of 64 KiB, of all of an array: {total:.1f} µs")
    for name, do in steps:
        taken = whole(do)
        rest -= taken
        print(f"    {taken:5.1f}  {name}")
    print(f"    {rest:5.1f}  calls between these")


def small_files(path: str) -> None:
    """New files of 64 KiB: what the file system takes for each."""
    data, count = bytes(2**16), 400
    best: dict[str, float] = {}

    def write(name: str) -> None:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        os.write(fd, data)
        os.close(fd)

    def renamed(name: str) -> None:
        write(f"{name}.new")
        os.replace(f"{name}.new", name)

    def unnamed(name: str) -> None:
        fd = os.open(os.path.dirname(name), os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        os.write(fd, data)
        os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=fd, follow_symlinks=True)
        os.close(fd)

    ways: dict[str, Callable[[str], None]] = {"created, written, closed": write, "and renamed": renamed}
    if files.TMPFILE:
        ways["written without a name, then named, closed"] = unnamed
    store = LocalStore(f"{path}/store")
    for n in range(10):
        for i, (way, do) in enumerate(ways.items()):
            directory = f"{path}/{n}/{i}"
            os.makedirs(directory)
            _fastest(best, f"the kernel: {way}", lambda do=do, d=directory: [do(f"{d}/{i}") for i in range(count)])  # type: ignore[misc]
        items = [[(f"{n}/{i}/{j}", data) for j in range(MANY)] for i in range(count // MANY)]
        _fastest(best, "many", lambda items=items: _store(store, items))  # type: ignore[misc]
    many = best.pop("many") / (count // MANY * MANY)
    print(f"\na new file of 64 KiB among {MANY}, under a lock: {many * 1e6:.1f} µs")
    for way, time in best.items():
        print(f"    {time / count * 1e6:5.1f}  {way}")


def _store(store: LocalStore, batches: list[Any]) -> None:
    for items in batches:
        store.set_many(items)


def _fastest(best: dict[str, float], name: str, do: Callable[[], Any]) -> None:
    taken = timeit.timeit(do, number=1)
    best[name] = min(best.get(name, taken), taken)


def main() -> None:
    """The command."""
    data = image(SHAPE)
    transformers = [{"name": "concat-parts", "configuration": {"parts": PARTS}}]
    with tempfile.TemporaryDirectory() as root:
        names = ("raw", "shards", "parts", "packed", "packed-parts", "64K", "1M")
        raw, shards, parted, packed, packed_parts, small, large = (os.path.join(root, name) for name in names)
        zarrlite.create_array(raw, data=data, chunks=CHUNK, codecs=[BYTES])
        zarrlite.create_array(shards, data=data, chunks=SHAPE, codecs=SHARDS)
        zarrlite.create_array(parted, data=data, chunks=SHAPE, codecs=SHARDS, storage_transformers=transformers)
        zarrlite.create_array(packed, data=data, chunks=SHAPE, codecs=PACKED)
        zarrlite.create_array(packed_parts, data=data, chunks=SHAPE, codecs=PACKED, storage_transformers=transformers)
        for path, size in ((small, "64K"), (large, "1M")):
            zarrlite.create_array(path, data=data, chunks=CHUNKS[size], codecs=CHAINS["zstd"])
            zstd_element(path, size)
        element(raw)
        opening(raw)
        inner_chunk(shards)
        parts(parted, shards, "raw")
        parts(packed_parts, packed, "zstd")
        rewritten_parts(packed_parts, packed)
        in_place(shards)
        small_chunks(raw)
        small_files(os.path.join(root, "files"))


if __name__ == "__main__":
    main()
