"""What a codec chain has made of a chunk, from the outermost codec in.

Rules
- A fault does not end it where something is still to be seen: behind a wrong checksum the bytes are looked at as ever.
- A codec that nothing is known of here is a frame: it has a decoded form, and no parts.
- Nothing but a chunk of elements and a frame is read whole.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import google_crc32c
import numpy as np

from zarrlite.codecs.n5_default import BlockSerializer
from zarrlite.codecs.sharding_indexed import ShardSerializer
from zarrlite.errors import ZarrliteError
from zarrlite.pipeline.codec import BytesBytesCodec, Framing
from zarrlite.pipeline.decoding import Limit, decode_bytes, decoding_failed
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import Shape
from zarrlite.tools.layout import shards
from zarrlite.tools.layout.extent import Extent
from zarrlite.tools.layout.tree import Fault, Range, guarded

Leaf = Callable[[Pipeline, Extent, int], Iterator[Range]]


def chunk(pipeline: Pipeline, extent: Extent, at: int) -> Iterator[Range]:
    """The ranges of a stored chunk that begins at a position."""
    if pipeline.max_size is not None and extent.size > pipeline.max_size:
        message = f"has {extent.size} bytes, at most {pipeline.max_size} fit here"
        return iter((Range(at, at + extent.size, "too many bytes", "unknown", fault=Fault("size", message)),))
    return chain(pipeline, extent, at, elements)


def chain(pipeline: Pipeline, extent: Extent, at: int, leaf: Leaf) -> Iterator[Range]:
    """The ranges of what a chain has made; `leaf` makes those of what its array -> bytes codec has made."""
    return _peel(pipeline, len(pipeline.compressors), extent, at, leaf, extent.size)


def _peel(p: Pipeline, depth: int, extent: Extent, at: int, leaf: Leaf, stored: int) -> Iterator[Range]:
    if not depth:
        yield from leaf(p, extent, at)
        return
    (codec, limit), end = p.compressors[depth - 1], at + extent.size
    if not isinstance(codec, Framing):
        yield _frame(p, depth, codec, limit, extent, at, leaf, stored)
        return
    head, tail = codec.head, codec.tail
    if extent.size < head + tail:
        message = f"has {extent.size} bytes, {codec.name} alone adds {head + tail}"
        yield Range(at, end, "too few bytes", "unknown", codec.name, fault=Fault("size", message))
        return
    body = extent.cut(head, extent.size - tail)
    if head:
        yield _padding(codec, extent.cut(0, head), at)
    yield from _peel(p, depth - 1, body, at + head, leaf, stored)
    if codec.verifies:
        yield _checksum(body, extent.cut(body.size, extent.size), end - 4)
    elif tail:
        yield _padding(codec, extent.cut(extent.size - tail, extent.size), end - tail)


def _padding(codec: Any, extent: Extent, at: int) -> Range:
    where = "in front" if codec.head else "behind"
    literal = getattr(codec, "literal", None)
    detail: dict[str, Any] = {}
    try:
        found = bytes(extent.cut(0, min(extent.size, 4096)).read())
        if literal is not None and extent.size <= 4096:
            detail["as configured"] = found == literal
        elif not any(found):
            detail["zeros"] = True
    except (ZarrliteError, OSError) as error:
        return Range(at, at + extent.size, f"padding {where}", "padding", codec.name, fault=Fault.of(error))
    return Range(at, at + extent.size, f"padding {where}", "padding", codec.name, detail)


def _checksum(body: Extent, extent: Extent, at: int) -> Range:
    try:
        found = int.from_bytes(extent.read(), "little")
        wanted = 0
        for block in body.blocks():
            wanted = google_crc32c.extend(wanted, bytes(block))
    except (ZarrliteError, OSError) as error:
        return Range(at, at + 4, "checksum", "checksum", "crc32c", fault=Fault.of(error))
    fault = None
    if found != wanted:
        fault = Fault("checksum", f"the checksum is {found:08x}, the data has {wanted:08x}")
    detail = {"found": f"{found:08x}", "expected": f"{wanted:08x}", "covers": [at - body.size, at]}
    return Range(at, at + 4, "checksum", "checksum", "crc32c", detail, fault)


def _frame(
    p: Pipeline, depth: int, codec: BytesBytesCodec, limit: Limit, extent: Extent, at: int, leaf: Leaf, stored: int
) -> Range:
    """Bytes that only their codec understands, and beside them what it makes of them."""
    what, end = f"{codec.name} frame", at + extent.size
    try:
        data = decode(codec, extent, limit.of(stored))
    except (ZarrliteError, OSError) as error:
        return Range(at, end, what, "compressed", codec.name, fault=Fault.of(error))
    inner = Extent.held(data)

    def decoded() -> Iterator[Range]:
        children = tuple(_peel(p, depth - 1, inner, 0, leaf, stored))
        if len(children) == 1 and (children[0].start, children[0].stop) == (0, inner.size):
            yield children[0]
        else:
            yield Range(0, inner.size, f"decoded by {codec.name}", "chunk", codec.name, children=lambda: children)

    return Range(at, end, what, "compressed", codec.name, {"decodes to": inner.size}, views=decoded)


def decode(codec: BytesBytesCodec, extent: Extent, most: int) -> Any:
    """What a codec makes of some bytes, or a ZarrliteError."""
    return decode_bytes(extent.read(), [(codec, Limit(most))])


def elements(pipeline: Pipeline, extent: Extent, at: int) -> Iterator[Range]:
    """What an array -> bytes codec has made."""
    bound = pipeline.serializer
    if isinstance(bound, ShardSerializer):

        def inner(coords: Shape, part: Extent, start: int) -> Range:
            what = f"inner chunk {shards.show(coords)}"
            return Range(
                start,
                start + part.size,
                what,
                "chunk",
                bound.codec.name,
                children=lambda: guarded(chunk(bound.inner, part, start), start, start + part.size),
            )

        yield from shards.shard(bound.format, extent, at, inner, bound.codec.name, chain)
    elif isinstance(bound, BlockSerializer):
        yield from _block(bound, extent, at)
    else:
        yield _elements(pipeline, extent, at)


def _elements(pipeline: Pipeline, extent: Extent, at: int) -> Range:
    bound, end = pipeline.serializer, at + extent.size
    detail: dict[str, Any] = {"shape": list(bound.spec.shape), "data type": bound.spec.data_type.name}
    if bound.spec.data_type.has_byte_order and bound.codec.name == "bytes":
        detail["endian"] = bound.codec.byte_order
    if pipeline.filters:
        detail["after"] = [codec.name for codec, _ in pipeline.filters]
    fault = None
    try:
        array_of(pipeline, extent)
    except (ZarrliteError, OSError) as error:
        fault = Fault.of(error)
    return Range(at, end, "elements", "elements", bound.codec.name, detail, fault)


def array_of(pipeline: Pipeline, extent: Extent) -> np.ndarray[Any, Any]:
    """The array that an array -> bytes codec and what stands before it make of some bytes."""
    array = pipeline.serializer.decode(extent.read())
    for codec, spec in reversed(pipeline.filters):
        try:
            array = codec.decode(array, spec)
        except Exception as error:
            decoding_failed(error, codec.name)
    return array


def _block(bound: BlockSerializer, extent: Extent, at: int) -> Iterator[Range]:
    """A block of N5: mode, number of dimensions, lengths, and what the inner chain has made."""
    name, size, end = bound.codec.name, len(bound.header), at + extent.size
    try:
        shape, _ = bound.open(extent.cut(0, min(size, extent.size)).read())
    except (ZarrliteError, OSError) as error:
        yield Range(at, end, "block", "unknown", name, fault=Fault.of(error))
        return
    fields = [("mode", ">H"), ("number of dimensions", ">H"), *((f"length {i}", ">I") for i in range(len(shape)))]
    data, position, children = bytes(extent.cut(0, size).read()), 0, []
    for what, form in fields:
        (value,) = struct.unpack_from(form, data, position)
        stop = position + struct.calcsize(form)
        children.append(Range(at + position, at + stop, what, "header", name, {"value": value}))
        position = stop
    header = Range(at, at + size, "block header", "header", name, {"shape": list(shape)}, children=lambda: children)
    yield header
    pipeline = bound.inner if shape == bound.spec.shape else bound.pipeline(shape)
    yield from chunk(pipeline, extent.cut(size, extent.size), at + size)
