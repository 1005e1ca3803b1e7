"""The bytes of one stored chunk, as far as the metadata determines them.

Rules
- Nothing is read. A size that depends on the data is shown as "varies".
- The first row shows the output of the codecs. A row for each storage transformer follows, in order from the array to
  the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from zarrlite.extensions.extension import Ignored
from zarrlite.metadata.documents import ArrayMetadata
from zarrlite.nodes.info import human
from zarrlite.pipeline.anatomy import Field, Header
from zarrlite.pipeline.codec import Framing, Serializer
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.shards.anatomy import Indexed
from zarrlite.shards.format import ShardFormat
from zarrlite.storage_transformers.anatomy import Combined, Divided
from zarrlite.tools.pictures.boxes import Box, row
from zarrlite.tools.pictures.svg import Picture, plural, stack


def nbytes(size: int | None) -> str:
    """Format a size. Pass None if the size varies."""
    if size is None:
        return "varies"
    return human(size).partition("(")[2].rstrip(")") if size >= 10_000 else f"{size} B"


def bytes_picture(metadata: ArrayMetadata) -> Picture:
    """Draw the bytes of one stored chunk."""
    coords = (0,) * len(metadata.shape)
    key = metadata.chunk_key_encoding.encode(coords)
    pipeline = metadata.pipeline(metadata.chunk_grid.chunk_shape(coords))
    size = pipeline.encoded_size
    boxes = list(_chain(pipeline, len(pipeline.compressors), size))
    what = "shard" if isinstance(pipeline.serializer.anatomy(), Indexed) else "chunk"
    note = f"one stored {what}, {key}: " + ("the size varies" if size is None else nbytes(size))
    if pipeline.filters:
        note += f" (after {', '.join(codec.name for codec, _ in pipeline.filters)})"
    rows = [row(boxes, note)]
    what = "chunk"
    for transformer in metadata.storage_transformers or ():
        anatomy = None if isinstance(transformer, Ignored) else transformer.anatomy()
        if isinstance(anatomy, Divided):
            parts = [_part(key, part.key_suffix, part.size) for part in anatomy.parts]
            rows.append(row(parts, f"{transformer.name}: the same bytes in {plural(len(parts), 'object')}"))
            what, size = "part", _main_size(anatomy, size)
        elif isinstance(anatomy, Combined):
            count, index = anatomy.format.count, _index(anatomy.format)
            if not index.children:
                index = replace(index, note=f"{count} × 16 B")
            chunks = list(_several(what, count, size))
            boxes = [index, *chunks] if anatomy.format.at_start else [*chunks, index]
            rows.append(row(boxes, f"{transformer.name}: {plural(count, what)} in one object, {key}"))
            what, size = "shard", None
        else:
            rows.append(row([Box(transformer.name, "", "unknown")], "storage transformer"))
    return stack(rows)


def _main_size(anatomy: Divided, size: int | None) -> int | None:
    """Return the size of the part stored under the chunk's own key; the next transformer treats it as a chunk."""
    sizes = {part.key_suffix: part.size for part in anatomy.parts}
    rest = [suffix for suffix, n in sizes.items() if n is None]
    if size is not None and rest == [""]:
        return size - sum(n or 0 for n in sizes.values())
    return sizes.get("")


def _part(key: str, suffix: str, size: int | None) -> Box:
    return Box(f"{key}{suffix}", "the rest" if size is None else nbytes(size), "part", size)


def _chain(p: Pipeline, depth: int, size: int | None) -> Iterator[Box]:
    """Yield the boxes of a value that a codec chain has encoded, from the outermost codec to the elements."""
    if not depth:
        yield from _serialized(p.serializer, size)
        return
    codec, _ = p.compressors[depth - 1]
    before = _size_before(p, depth)
    if isinstance(codec, Framing):
        head, tail = codec.fields()
        yield from (_framing(field, codec.name) for field in head)
        yield from _chain(p, depth - 1, before)
        yield from (_framing(field, codec.name) for field in tail)
    else:
        inner = tuple(_chain(p, depth - 1, before))
        if len(inner) == 1 and not inner[0].children:
            compressed = "size varies" if before is None else f"compressed from {nbytes(before)}"
            note = compressed if size is None else nbytes(size)
            yield Box(f"{codec.name} frame", note, "compressed", size, tip=f"{inner[0].label}, through {codec.name}")
        else:
            yield Box(f"{codec.name} frame", nbytes(size), "compressed", size, inner, dashed=True)


def _framing(field: Field, name: str) -> Box:
    """Return the box of a field that a codec adds before or after a value."""
    if field.role == "checksum":
        return Box(name, nbytes(field.size), field.role, field.size, tip="checksum of everything in front of it")
    if field.role == "padding":
        return Box(name, nbytes(field.size), field.role, field.size, tip=f"{field.size} bytes of padding by {name}")
    return _header(field)


def _header(field: Field) -> Box:
    """Return the box of a header, with its fields as a tooltip."""
    tip = ", ".join(part.what for part in field.fields)
    return Box(field.what, nbytes(field.size), field.role, field.size, tip=tip)


def _size_before(p: Pipeline, depth: int) -> int | None:
    """Return the size of the input of a codec in bytes. Returns None if it varies."""
    size = p.serializer.encoded_size
    for codec, _ in p.compressors[: depth - 1]:
        size = None if size is None else codec.encoded_size(size)
    return size


def _serialized(bound: Serializer, size: int | None) -> Iterator[Box]:
    """Yield the boxes of the output of an array -> bytes codec, as described by the codec itself."""
    anatomy = bound.anatomy()
    if isinstance(anatomy, Indexed):
        inner = anatomy.inner
        boxes = tuple(_chain(inner, len(inner.compressors), inner.encoded_size))
        chunks = _several("inner chunk", anatomy.format.count, inner.encoded_size, boxes)
        index = _index(anatomy.format)
        yield from (index, *chunks) if anatomy.format.at_start else (*chunks, index)
    elif isinstance(anatomy, Header):
        yield _header(anatomy.field)
        inner = anatomy.inner
        if inner is None:
            yield _elements(bound, None if size is None else size - anatomy.field.size)
        else:
            yield from _chain(inner, len(inner.compressors), inner.encoded_size)
    else:
        yield _elements(bound, size)


def _elements(bound: Serializer, size: int | None) -> Box:
    shape = " × ".join(map(str, bound.spec.shape)) or "one"
    tip = f"{shape} {bound.spec.data_type.name}, by {bound.codec.name}"
    return Box(f"{shape} {bound.spec.data_type.name}", nbytes(size), "elements", size, tip=tip)


def _several(what: str, count: int, size: int | None, inner: tuple[Box, ...] = ()) -> Iterator[Box]:
    """Yield a box for the first of several chunks, and one box for all others."""
    yield Box(what, nbytes(size), "chunk", size, inner)
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
