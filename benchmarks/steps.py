"""`python -m benchmarks.steps`: print where the time of small operations goes, step by step.

Rules
- Every step is work that zarrlite, or any program with the same task, has to do. Each step is timed alone, in loops;
  the fastest loop is the result.
- The total exceeds the sum of the steps, because it includes the calls between them, and because a loop over a single
  step keeps caches warm.
"""

from __future__ import annotations

import os
import tempfile
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

import google_crc32c
import numpy as np
import zstandard

import zarrlite
from benchmarks.data import BYTES, CHAINS, CHUNKS, CRC32C, image
from zarrlite.buffers.ranges import ByteRange
from zarrlite.nodes import node
from zarrlite.selections import indexing
from zarrlite.selections.selection import everything
from zarrlite.stores import LocalStore, files
from zarrlite.stores.filelock import lock_path
from zarrlite.stores.paths import Root

Step = tuple[str, Callable[[], Any]]
LOOPS, REPEATS = 100, 60  # number of calls in a loop; number of loops (the fastest one is the result)
BATCH = 32  # number of files that are stored in one call
SHAPE, CHUNK, INNER = (2048, 2048), (128, 256), (64, 64)
READ = os.O_RDONLY | os.O_CLOEXEC
ELEMENT, BLOCK = (650, 1290), (slice(640, 704), slice(1280, 1344))
NUMBER = 10 * 32 + 20  # position of BLOCK in the index of its shard
SHARDING = {"chunk_shape": list(INNER), "codecs": [BYTES], "index_codecs": [BYTES, CRC32C]}
SHARDS = [{"name": "sharding_indexed", "configuration": SHARDING}]
PACKED = [{"name": "sharding_indexed", "configuration": {**SHARDING, "codecs": CHAINS["zstd"]}}]
PARTS = [{"key_suffix": ""}, {"key_suffix": ".index", "size": 16 * 1024 + 4}]


def microseconds(step: Callable[[], Any]) -> float:
    """Return the best time of one call in microseconds."""
    return min(timeit.repeat(step, number=LOOPS, repeat=REPEATS)) / LOOPS * 1e6


def show(title: str, operation: Callable[[], Any], steps: list[Step]) -> None:
    """Print the time of an operation, the times of its steps, and the time that the steps do not account for."""
    total = microseconds(operation)
    print(f"\n{title}: {total:.1f} µs")
    rest = total
    for name, step in steps:
        elapsed = microseconds(step)
        rest -= elapsed
        print(f"    {elapsed:5.1f}  {name}")
    print(f"    {rest:5.1f}  calls between these, and colder caches")


def touch(path: str) -> None:
    """Open and close a file."""
    os.close(os.open(path, READ))


def read(path: str, size: int, start: int) -> bytes:
    """Read a part of a file."""
    fd = os.open(path, READ)
    data = os.pread(fd, size, start)
    os.close(fd)
    return data


def element(path: str) -> None:
    """Time reading one element of a raw chunk."""
    array: Any = zarrlite.open_array(path, mode="r")
    chunks, key = array._chunks, "c/5/5"
    chunk = f"{path}/{key}"
    fd = os.open(chunk, READ)
    steps: list[Step] = [
        ("the kernel: open, close", lambda: touch(chunk)),
        ("the kernel: file size", lambda: os.lseek(fd, 0, os.SEEK_END)),
        ("the kernel: read two bytes", lambda: os.pread(fd, 2, 1000)),
        ("a numpy scalar of two bytes", lambda: np.frombuffer(b"ab", "<u2")[0]),
        ("check the index", lambda: indexing.element(ELEMENT, SHAPE)),
        ("find the chunk and the offset in it", lambda: chunks.grid.locate(ELEMENT)),
        ("encode the key", lambda: chunks._encode_key((5, 5))),
        ("build the path, below the root", lambda: array.store.store._root.path(key)),
    ]
    show("read an element of a raw chunk", lambda: array[ELEMENT], steps)
    os.close(fd)


def opening(path: str) -> None:
    """Time opening an array and reading one element of a raw chunk."""
    array = zarrlite.open_array(path, mode="r")
    document, directory, chunk = f"{path}/zarr.json", f"{path}/c", f"{path}/c/5/5"
    store, data = LocalStore(path), read(document, 2**16, 0)
    steps: list[Step] = [
        ("the kernel: open, read and close two files", lambda: (read(document, 2**16, 0), read(chunk, 2, 1000))),
        ("the kernel: lstat two directories", lambda: (os.lstat(directory), os.lstat(f"{directory}/5"))),
        ("create the store", lambda: LocalStore(path)),
        ("look up the document, parsed before", lambda: node._split_attributes(data)),
        ("create the array and its chunks", lambda: zarrlite.Array(store, "", array.metadata)._chunks),
        ("check the index", lambda: indexing.element(ELEMENT, SHAPE)),
    ]
    show("open an array, read an element of a raw chunk", lambda: zarrlite.open_array(path, mode="r")[ELEMENT], steps)


def read_index(form: Any, source: Any) -> Any:
    """Read and parse the index of a shard."""
    return form.parse_index(source.read_one(form.index_range), source.known_size())


def inner_chunk(path: str) -> None:
    """Time reading one raw inner chunk of a shard with 1,024 inner chunks."""
    array: Any = zarrlite.open_array(path, mode="r")
    chunks = array._chunks
    serializer = chunks.pipeline((0, 0)).serializer
    source = chunks.store.source("c/0/0")
    form = serializer.format
    offset, length = read_index(form, source).entry(NUMBER)
    out = np.empty(INNER, "<u2")
    memory = out.reshape(-1).view("u1").data
    wanted = [ByteRange(offset, offset + length)]
    selection: Any = indexing.basic(BLOCK, SHAPE).selection
    steps: list[Step] = [
        ("the kernel: open, close", lambda: touch(f"{path}/c/0/0")),
        ("read the index of the shard: 16 KiB, checksum", lambda: read_index(form, source)),
        ("read the chunk: 8 KiB, into the result", lambda: source.read(wanted, memory)),
        ("check the slices", lambda: indexing.box(BLOCK, SHAPE)),
        ("find the shard and the offset in it", lambda: chunks.grid.only(selection)),
        ("find the inner chunk and the offset in it", lambda: selection.only_chunk(INNER)),
        ("allocate the result", lambda: np.empty(INNER, "<u2")),
    ]
    show("read a raw inner chunk of a shard", lambda: array[BLOCK], steps)
    source.close()


def parts(path: str, single: str, codec: str) -> None:
    """Time reading an element of a shard whose index is a separate file, compared with a shard in a single file."""
    array, other = (zarrlite.open_array(p, mode="r") for p in (path, single))
    steps: list[Step] = [
        ("read the same element of a shard in one file", lambda: other[ELEMENT]),
        ("the kernel: open and close another file", lambda: touch(f"{path}/c/0/0.index")),
    ]
    show(f"read an element of a {codec} shard in parts", lambda: array[ELEMENT], steps)


def rewritten_parts(path: str, single: str) -> None:
    """Time replacing an inner chunk of a shard that is split into parts, by rewriting the shard."""
    array, other = (zarrlite.open_array(p, mode="r+") for p in (path, single))
    values = np.arange(64 * 64, dtype="<u2").reshape(INNER)
    index = bytes(16 * 1024 + 4)

    def replace(target: Any) -> None:
        target[BLOCK] = values

    def write_and_rename(data: bytes) -> None:
        fd = os.open(f"{path}/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        os.write(fd, data)
        os.close(fd)
        os.replace(f"{path}/new", f"{path}/old")

    steps: list[Step] = [
        ("the same in a shard in one file", lambda: replace(other)),
        ("the kernel: rename an empty file over another", lambda: write_and_rename(b"")),
        ("the kernel: rename an index over that", lambda: write_and_rename(index)),
    ]
    show("replace an inner chunk of a zstd shard in parts, by a new shard", lambda: replace(array), steps)


def zstd_element(path: str, size: str) -> None:
    """Time reading one element in the middle of a compressed chunk."""
    array: Any = zarrlite.open_array(path, mode="r")
    (h, w), chunk = CHUNKS[size], f"{path}/c/0/0"
    middle, nbytes, memory = (h // 2, w // 2), h * w * 2, memoryview(bytearray(h * w * 2))
    stored = read(chunk, nbytes, 0)
    frame, decompressor = stored[:-4], zstandard.ZstdDecompressor()
    needed = nbytes if nbytes < 2**18 else nbytes // 2 + w + 2  # smaller chunks are decompressed completely

    def fetch() -> None:
        fd = os.open(chunk, READ)
        os.preadv(fd, (memory,), 0)
        os.close(fd)

    steps: list[Step] = [
        (f"the kernel: open, read {len(stored) >> 10} KiB, close", fetch),
        ("verify the checksum", lambda: google_crc32c.value(stored)),
        (f"decompress {needed >> 10} KiB", lambda: decompressor.stream_reader(frame).readinto(memory[:needed])),
    ]
    show(f"read an element of a zstd chunk of {nbytes >> 10} KiB", lambda: array[middle], steps)


def in_place(path: str) -> None:
    """Time replacing a raw inner chunk in place."""
    array: Any = zarrlite.open_array(path, mode="r+", options={"/codecs/0": {"strategy": "in-place"}})
    shard, values = f"{path}/c/0/0", np.arange(64 * 64, dtype="<u2").reshape(INNER)
    serializer = array._chunks.pipeline((0, 0)).serializer
    source = array._chunks.store.source("c/0/0")
    index = serializer.writer.read_index(source)
    data, changes = values.tobytes(), {NUMBER: values.tobytes()}
    fd = os.open(shard, os.O_RDWR | os.O_CLOEXEC)

    def lock() -> None:
        with lock_path(shard, Root(path)):
            pass

    def overwrite() -> None:
        os.pread(fd, len(data), 0)
        os.pwrite(fd, data, 0)

    def set_block() -> None:
        array[BLOCK] = values

    steps: list[Step] = [
        ("take the lock: six system calls", lock),
        ("the kernel: open, close", lambda: touch(shard)),
        ("read the index of the shard: 16 KiB, known from last time", lambda: serializer.writer.read_index(source)),
        ("check that no other chunk shares its bytes", lambda: serializer.writer.patch(source, index, changes)),
        ("the kernel: read 8 KiB as a backup, write 8 KiB", overwrite),
        ("check the slices", lambda: indexing.box(BLOCK, SHAPE)),
    ]
    show("replace a raw inner chunk of a shard in place", set_block, steps)
    source.close()
    os.close(fd)


def small_chunks(path: str) -> None:
    """Time reading a whole array of raw 64 KiB chunks, and print the time per chunk."""
    array: Any = zarrlite.open_array(path, mode="r")
    chunks, out, buffer = array._chunks, np.empty(SHAPE, "<u2"), np.empty(CHUNK, "<u2")
    jobs = list(chunks.grid.project(everything(SHAPE)))
    count = len(jobs)

    def for_each(step: Callable[[Any], Any]) -> Callable[[], None]:
        def run() -> None:
            for job in jobs:
                step(job)

        return run

    def read_file(job: Any) -> None:
        fd = os.open(f"{path}/c/{job[0][0]}/{job[0][1]}", READ)
        os.preadv(fd, [buffer.data], 0)
        os.close(fd)

    def per_chunk(step: Callable[[], Any]) -> float:
        return min(timeit.repeat(step, number=1, repeat=REPEATS)) / count * 1e6

    steps: list[Step] = [
        ("the kernel: open, read 64 KiB, close", for_each(read_file)),
        ("copy into the result", for_each(lambda job: job[2].put(out, buffer))),
        ("find the chunk and its part of the result", lambda: list(chunks.grid.project(everything(SHAPE)))),
        ("encode the key", for_each(lambda job: chunks._encode_key(job[0]))),
        ("build the path, below the root", for_each(lambda job: array.store.store._root.path("c/5/5"))),
    ]
    total = rest = per_chunk(lambda: chunks.read(everything(SHAPE), out))
    print(f"\nread a whole array, for each raw chunk of 64 KiB: {total:.1f} µs")
    for name, step in steps:
        elapsed = per_chunk(step)
        rest -= elapsed
        print(f"    {elapsed:5.1f}  {name}")
    print(f"    {rest:5.1f}  calls between these")


def small_files(path: str) -> None:
    """Time several methods of creating files of 64 KiB."""
    data, count = bytes(2**16), 400
    best: dict[str, float] = {}

    def write(name: str) -> None:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        os.write(fd, data)
        os.close(fd)

    def write_and_rename(name: str) -> None:
        write(f"{name}.new")
        os.replace(f"{name}.new", name)

    def write_and_link(name: str) -> None:
        fd = os.open(os.path.dirname(name), os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        os.write(fd, data)
        os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=fd, follow_symlinks=True)
        os.close(fd)

    methods: dict[str, Callable[[str], None]] = {"create, write, close": write, "and rename": write_and_rename}
    if files.TMPFILE:
        methods["write without a name, link, close"] = write_and_link
    store = LocalStore(f"{path}/store")
    for n in range(10):
        for i, (label, create) in enumerate(methods.items()):
            directory = f"{path}/{n}/{i}"
            os.makedirs(directory)
            _fastest(best, f"the kernel: {label}", partial(_create_all, create, directory, count))
        items = [[(f"{n}/{i}/{j}", data) for j in range(BATCH)] for i in range(count // BATCH)]
        _fastest(best, "batches", partial(_store_all, store, items))
    in_batches = best.pop("batches") / (count // BATCH * BATCH)
    print(f"\nstore a new file of 64 KiB in a batch of {BATCH}, under a lock: {in_batches * 1e6:.1f} µs")
    for label, seconds in best.items():
        print(f"    {seconds / count * 1e6:5.1f}  {label}")


def _create_all(create: Callable[[str], None], directory: str, count: int) -> None:
    for i in range(count):
        create(f"{directory}/{i}")


def _store_all(store: LocalStore, batches: list[Any]) -> None:
    for items in batches:
        store.set_many(items)


def _fastest(best: dict[str, float], name: str, step: Callable[[], Any]) -> None:
    """Time one call, and update the best time under `name`."""
    elapsed = timeit.timeit(step, number=1)
    best[name] = min(best.get(name, elapsed), elapsed)


def main() -> None:
    """Create the arrays, and print all tables."""
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
