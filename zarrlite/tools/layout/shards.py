"""The ranges of an indexed shard: the entries of its index, its chunks in order of offset, and the gaps between chunks.

Rules
- Entries that point outside the shard are faults of the index; the other entries are still followed.
- If chunks share bytes, the bytes belong to the first chunk; the other chunks are views. Chunks that share all of their
  bytes are explained once, and the explained chunks together have at most as many bytes as the shard. The cost is
  therefore proportional to the size of the shard, even if shards are nested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from zarrlite.errors import ShardError, ZarrliteError
from zarrlite.extensions.config import Json
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import Shape
from zarrlite.shards.format import ABSENT, ShardFormat, ShardIndex
from zarrlite.tools.layout.extent import Extent
from zarrlite.tools.layout.tree import Fault, Range

Inner = Callable[[Shape, Extent, int], Range]  # coordinates, bytes and offset of a chunk -> its range
Chain = Callable[[Pipeline, Extent, int, Any], Iterator[Range]]


def show(coords: Iterable[int]) -> str:
    """Format coordinates, such as (0, 1) or (3)."""
    return f"({', '.join(map(str, coords))})"


def shard(form: ShardFormat, extent: Extent, at: int, inner: Inner, owner: str, chain: Chain) -> Iterator[Range]:
    """Yield the ranges of a shard that begins at the offset `at`."""
    size, end = extent.size, at + extent.size
    if size < form.index_size:
        message = f"the index has {form.index_size} bytes, but the shard has only {size}"
        yield Range(at, end, "too few bytes", "unknown", owner, fault=Fault("index", message))
        return
    low, high = (form.index_size, size) if form.at_start else (0, size - form.index_size)
    start = 0 if form.at_start else high
    parsed: list[ShardIndex] = []  # receives the index when its entries are decoded

    def table(pipeline: Pipeline, body: Extent, position: int) -> Iterator[Range]:
        yield _table(form, pipeline, body, position, high, parsed, owner)

    ranges = tuple(chain(form.index_pipeline, extent.cut(start, start + form.index_size), at + start, table))
    for r in ranges:
        list(r.views())  # if the index is compressed, its entries are decoded when this view is computed
    index = Range(
        at + start,
        at + start + form.index_size,
        f"index of {form.count} chunks",
        "index",
        owner,
        {"grid": list(form.grid), "absent": _count_absent(parsed[0]) if parsed else None},
        children=lambda: ranges,
    )
    if form.at_start:
        yield index
    if parsed:
        yield from _chunks(form, parsed[0], extent, at, inner, owner)
    elif high > low:
        yield Range(at + low, at + high, "chunks without a readable index", "unknown", owner)
    if not form.at_start:
        yield index


def _count_absent(index: ShardIndex) -> int:
    return int((index.table == np.uint64(ABSENT)).all(axis=1).sum())


def _table(
    form: ShardFormat,
    pipeline: Pipeline,
    body: Extent,
    at: int,
    chunks_end: int,
    parsed: list[ShardIndex],
    owner: str,
) -> Range:
    """Return the range of the index entries. If they can be decoded, the index is put into `parsed`."""
    end = at + body.size
    try:
        array: Any = pipeline.serializer.decode(body.read())
        for codec, spec in reversed(pipeline.filters):
            array = codec.decode(array, spec)
    except (ZarrliteError, OSError) as error:
        return Range(at, end, "entries", "index", owner, fault=Fault.of(error))
    index = ShardIndex(form, array, chunks_end)
    parsed[:] = [index]
    layout = pipeline.serializer.layout
    if layout is not None and layout.contiguous and not pipeline.filters:  # an entry is 16 consecutive bytes
        numbers = np.flatnonzero(~_valid(index)).tolist()
        return Range(
            at,
            end,
            "entries",
            "index",
            owner,
            children=lambda: _entries(form, index, at, owner, range(form.count)),
            faulty=lambda: _entries(form, index, at, owner, numbers),
        )
    faults = (fault for i in np.flatnonzero(~_valid(index)).tolist() if (fault := _fault(index, i)))
    return Range(at, end, "entries", "index", owner, fault=next(faults, None))


def _fault(index: ShardIndex, number: int) -> Fault | None:
    try:
        index.entry(number)
    except ShardError as error:
        return Fault.of(error)
    return None


def _valid(index: ShardIndex) -> Any:
    """Return a mask of the index entries that are valid: those of missing chunks and of chunks within the shard."""
    return _within(index) | (index.table == np.uint64(ABSENT)).all(axis=1)


def _entries(form: ShardFormat, index: ShardIndex, at: int, owner: str, numbers: Iterable[int]) -> Iterator[Range]:
    for i in numbers:
        offset, nbytes = index.table[i].tolist()
        absent = offset == nbytes == ABSENT
        detail: dict[str, Json] = {"absent": True} if absent else {"offset": offset, "nbytes": nbytes}
        start = at + 16 * i
        what = f"entry {show(_coords(i, form.grid))}"
        yield Range(start, start + 16, what, "entry", owner, detail, _fault(index, i))


def _chunks(form: ShardFormat, index: ShardIndex, extent: Extent, at: int, inner: Inner, owner: str) -> Iterator[Range]:
    """Yield the chunks in order of offset, and the unused space between them."""
    cursor = index.lowest
    previous = Range(0, 0, "", "chunk")
    unread = extent.size  # how many more bytes of chunks may be explained
    skipped = 0
    for number in _order(index):
        offset, length = index.table[number].tolist()
        coords = _coords(number, form.grid)
        part = extent.cut(offset, offset + length)
        if offset > cursor:
            yield Range(at + cursor, at + offset, "unused", "unused", owner)
        chunk = inner(coords, part, at + offset)
        if offset >= cursor:
            yield chunk
        elif (chunk.start, chunk.stop) == (previous.start, previous.stop):
            yield _same(chunk, previous, at + cursor)
        elif length <= unread:
            yield _sharing(chunk, at + cursor, owner)
        else:
            skipped += 1
            yield replace(chunk, start=at + cursor, stop=max(at + cursor, chunk.stop), children=tuple)
        if (chunk.start, chunk.stop) != (previous.start, previous.stop):
            unread -= length
        previous = chunk
        cursor = max(cursor, offset + length)
    if skipped:
        message = f"the chunks must not overlap this much: {skipped} of them were not checked"
        yield Range(at + cursor, at + cursor, "overlapping chunks", "unknown", owner, fault=Fault("limit", message))
    if cursor < index.end:
        yield Range(at + cursor, at + index.end, "unused", "unused", owner)


def _coords(number: int, grid: Shape) -> Shape:
    """Return the coordinates of a chunk, given its position in the index."""
    coords = []
    for n in reversed(grid):
        number, c = divmod(number, n)
        coords.append(c)
    return tuple(reversed(coords))


def _same(chunk: Range, other: Range, start: int) -> Range:
    """Return the range of a chunk that has the same bytes as another one, which has already been explained."""
    detail: dict[str, Json] = {**chunk.detail, "same": other.what, "shares": [chunk.start, chunk.stop]}
    return Range(start, start, chunk.what, "chunk", chunk.owner, detail, chunk.fault)


def _sharing(chunk: Range, start: int, owner: str) -> Range:
    """Return the range of a chunk that begins before the end of the previous one."""
    detail: dict[str, Json] = {"shares": [chunk.start, chunk.stop]}
    return Range(start, max(start, chunk.stop), chunk.what, "chunk", owner, detail, views=lambda: (chunk,))


def _within(index: ShardIndex) -> Any:
    """Return a mask of the chunks that are within the shard."""
    offsets, lengths = index.table[:, 0].astype(np.uint64), index.table[:, 1].astype(np.uint64)
    end = np.uint64(index.end)
    plausible = (offsets >= np.uint64(index.lowest)) & (lengths <= np.uint64(min(index.longest, index.end)))
    return plausible & (offsets <= end - np.minimum(lengths, end))


def _order(index: ShardIndex) -> list[int]:
    """Return the numbers of the chunks that are within the shard, in order of offset."""
    numbers = np.flatnonzero(_within(index))
    order: list[int] = numbers[np.lexsort((index.table[numbers, 1], index.table[numbers, 0]))].tolist()
    return order
