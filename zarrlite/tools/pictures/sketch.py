"""How one stored chunk is laid out, as far as its metadata tells: sizes where they are fixed.

Rules
- Nothing is read. What depends on the data "varies".
- A row for what the codecs make, and one more for each storage transformer, from the array to the store.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from zarrlite.codecs.n5_default import BlockSerializer
from zarrlite.codecs.sharding_indexed import ShardSerializer
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.nodes.info import human
from zarrlite.pipeline.codec import Framing, Serializer
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.shards.format import ShardFormat
from zarrlite.storage_transformers.concat_parts import ConcatParts
from zarrlite.storage_transformers.sharding import Sharding
from zarrlite.tools.pictures.boxes import Box, row
from zarrlite.tools.pictures.svg import Picture, plural, stack


def nbytes(size: int | None) -> str:
    """A size in words."""
    if size is None:
        return "varies"
    return human(size).partition("(")[2].rstrip(")") if size >= 10_000 else f"{size} B"


def bytes_picture(metadata: ArrayMetadata) -> Picture:
    """The bytes of one stored chunk."""
    coords = (0,) * len(metadata.shape)
    key = metadata.chunk_key_encoding.encode(coords)
    pipeline = metadata.pipeline(metadata.chunk_grid.chunk_shape(coords))
    size = pipeline.encoded_size
    boxes = list(_chain(pipeline, len(pipeline.compressors), size))
    what = "shard" if isinstance(pipeline.serializer, ShardSerializer) else "chunk"
    note = f"one stored {what}, {key}: " + ("the size varies" if size is None else nbytes(size))
    if pipeline.filters:
        note += f" (after {', '.join(codec.name for codec, _ in pipeline.filters)})"
    rows = [row(boxes, note)]
    what = "chunk"
    for transformer in metadata.storage_transformers or ():
        if isinstance(transformer, ConcatParts):
            parts = [_part(key, part.key_suffix, part.size) for part in transformer.parts]
            rows.append(row(parts, f"{transformer.name}: the same bytes in {plural(len(parts), 'object')}"))
            what, size = "part", _main_size(transformer, size)
        elif isinstance(transformer, Sharding):
            count = math.prod(transformer.chunks_per_shard)
            chunks = [*_several(what, count, size), Box("index", f"{count} × 16 B", "index", 16 * count)]
            rows.append(row(chunks, f"{transformer.name}: {plural(count, what)} in one object, {key}"))
            what, size = "shard", None
        else:
            rows.append(row([Box(transformer.name, "", "unknown")], "storage transformer"))
    return stack(rows)


def _main_size(transformer: ConcatParts, size: int | None) -> int | None:
    """Bytes of the part that has the key of the chunk, which is what the next transformer sees."""
    sizes = {part.key_suffix: part.size for part in transformer.parts}
    rest = [suffix for suffix, n in sizes.items() if n is None]
    if size is not None and rest == [""]:
        return size - sum(n or 0 for n in sizes.values())
    return sizes.get("")


def _part(key: str, suffix: str, size: int | None) -> Box:
    return Box(f"{key}{suffix}", "the rest" if size is None else nbytes(size), "part", size)


def _chain(p: Pipeline, depth: int, size: int | None) -> Iterator[Box]:
    """What a chain makes, from the outermost codec in."""
    if not depth:
        yield from _elements(p.serializer, size)
        return
    codec, _ = p.compressors[depth - 1]
    before = _size_before(p, depth)
    if isinstance(codec, Framing):
        if codec.head:
            yield _frame(codec, codec.head)
        yield from _chain(p, depth - 1, before)
        if codec.tail:
            yield _frame(codec, codec.tail)
    else:
        inner = tuple(_chain(p, depth - 1, before))
        if len(inner) == 1 and not inner[0].children:
            note = nbytes(size) if size is not None else f"varies, of {nbytes(before)}"
            yield Box(f"{codec.name} frame", note, "compressed", size, tip=f"{inner[0].label}, through {codec.name}")
        else:
            yield Box(f"{codec.name} frame", nbytes(size), "compressed", size, inner, dashed=True)


def _frame(codec: Framing, size: int) -> Box:
    """The bytes that a codec adds before or after a value."""
    if codec.verifies:
        return Box(codec.name, nbytes(size), "checksum", size, tip="checksum of everything in front of it")
    return Box(codec.name, nbytes(size), "padding", size, tip=f"{size} bytes of padding by {codec.name}")


def _size_before(p: Pipeline, depth: int) -> int | None:
    """Bytes that a codec gets."""
    size = p.serializer.encoded_size
    for codec, _ in p.compressors[: depth - 1]:
        size = None if size is None else codec.encoded_size(size)
    return size


def _elements(bound: Serializer, size: int | None) -> Iterator[Box]:
    if isinstance(bound, ShardSerializer):
        inner = tuple(_chain(bound.inner, len(bound.inner.compressors), bound.inner.encoded_size))
        chunks = _several("inner chunk", bound.format.count, bound.inner.encoded_size, inner)
        index = _index(bound.format)
        yield from (index, *chunks) if bound.format.at_start else (*chunks, index)
    elif isinstance(bound, BlockSerializer):
        yield Box(
            "block header", nbytes(len(bound.header)), "header", len(bound.header), tip="mode, dimensions, lengths"
        )
        yield from _chain(bound.inner, len(bound.inner.compressors), bound.inner.encoded_size)
    else:
        shape = " × ".join(map(str, bound.spec.shape)) or "one"
        tip = f"{shape} {bound.spec.data_type.name}, by {bound.codec.name}"
        yield Box(f"{shape} {bound.spec.data_type.name}", nbytes(size), "elements", size, tip=tip)


def _several(what: str, count: int, size: int | None, inner: tuple[Box, ...] = ()) -> Iterator[Box]:
    """The first of several chunks, and the others."""
    first = Box(what, nbytes(size), "chunk", size, inner)
    yield first
    if count > 1:
        each = f"{nbytes(size)} each" if size is not None else "varies, or absent"
        yield Box(f"{count - 1} more", each, "more", size)


def _index(form: ShardFormat) -> Box:
    pipeline = form.index_pipeline
    inside: list[Box] = []
    for b in _chain(pipeline, len(pipeline.compressors), pipeline.encoded_size):
        table = Box(f"{form.count} entries", f"{form.count} × 16 B", "entry", 16 * form.count)
        inside.append(table if b.role == "elements" else b)
    return Box("index", nbytes(form.index_size), "index", form.index_size, tuple(inside) if len(inside) > 1 else ())
