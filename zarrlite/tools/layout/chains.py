"""The ranges of a chunk that a codec chain has encoded, from the outermost codec to the elements.

Rules
- A fault does not hide the bytes after it: a value is explained even if its checksum is wrong.
- The output of a compressor, or of a codec without a description, is shown as one range (a frame) and its decoded form.
- Only elements, frames and values with a checksum are read completely.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from zarrlite.buffers.ranges import Buffer
from zarrlite.errors import ZarrliteError
from zarrlite.pipeline.anatomy import Field, Header
from zarrlite.pipeline.codec import BytesBytesCodec, Framing
from zarrlite.pipeline.decoding import Limit, beyond_limit, chunk_limit, decode_bytes, decoding_failed
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.selections.selection import Shape
from zarrlite.shards.anatomy import Indexed
from zarrlite.tools.layout import shards
from zarrlite.tools.layout.extent import Extent
from zarrlite.tools.layout.tree import Fault, Range, guarded

Leaf = Callable[[Pipeline, Extent, int], Iterator[Range]]
MAX_COMPARED = 4096  # bytes; only this much of a longer field is read, to check whether it starts with zeros


def chunk(pipeline: Pipeline, extent: Extent, at: int) -> Iterator[Range]:
    """Yield the ranges of a stored chunk that begins at the offset `at`."""
    if pipeline.max_size is not None and extent.size > pipeline.max_size:
        message = f"has {extent.size} bytes, but at most {pipeline.max_size} are allowed"
        return iter((Range(at, at + extent.size, "too many bytes", "unknown", fault=Fault("size", message)),))
    limit = chunk_limit()
    if pipeline.read_unit > limit:
        fault = Fault("limit", beyond_limit(pipeline.read_unit, limit))
        return iter((Range(at, at + extent.size, "a chunk that is not decoded", "unknown", fault=fault),))
    return chain(pipeline, extent, at, serialized)


def chain(pipeline: Pipeline, extent: Extent, at: int, leaf: Leaf) -> Iterator[Range]:
    """Yield the ranges of a value that a chain has encoded; `leaf` yields those for its array -> bytes codec."""
    return _peel(pipeline, len(pipeline.compressors), extent, at, leaf, extent.size)


def _peel(p: Pipeline, depth: int, extent: Extent, at: int, leaf: Leaf, stored: int) -> Iterator[Range]:
    if not depth:
        yield from leaf(p, extent, at)
        return
    codec, limit = p.compressors[depth - 1]
    if not isinstance(codec, Framing):
        yield _frame(p, depth, codec, limit, extent, at, leaf, stored)
        return
    head, tail = codec.head, codec.tail
    if extent.size < head + tail:
        message = f"has only {extent.size} bytes, but {codec.name} alone adds {head + tail}"
        yield Range(at, at + extent.size, "too few bytes", "unknown", codec.name, fault=Fault("size", message))
        return
    before, after = codec.fields()
    yield from _framing(codec, before, extent, 0, at)
    yield from _peel(p, depth - 1, extent.cut(head, extent.size - tail), at + head, leaf, stored)
    yield from _framing(codec, after, extent, extent.size - tail, at)


def _framing(codec: Framing, fields: list[Field], extent: Extent, offset: int, at: int) -> Iterator[Range]:
    """Yield the ranges of fields, which begin at `offset` in a framed value that begins at `at`."""
    for field in fields:
        if field.role == "checksum":
            yield _checksum(codec, field, extent, offset, at)
        else:
            yield _field(field, extent.cut(offset, offset + field.size), at + offset, codec.name)
        offset += field.size


def _field(field: Field, extent: Extent, at: int, owner: str, detail: dict[str, Any] | None = None) -> Range:
    """Return the range of a field, with its value or a comparison with the configuration as detail."""
    end, detail = at + field.size, dict(detail or {})
    try:
        if field.form:
            (detail["value"],) = struct.unpack(field.form, extent.read())
        elif field.role == "padding" or field.configured is not None:
            detail |= _compared(field, extent)
    except (ZarrliteError, OSError) as error:
        return Range(at, end, field.what, field.role, owner, fault=Fault.of(error))
    return Range(at, end, field.what, field.role, owner, detail, children=lambda: _inside(field, extent, at, owner))


def _inside(field: Field, extent: Extent, at: int, owner: str) -> Iterator[Range]:
    offset = 0
    for part in field.fields:
        yield _field(part, extent.cut(offset, offset + part.size), at + offset, owner)
        offset += part.size


def _compared(field: Field, extent: Extent) -> dict[str, Any]:
    """Return the detail of a field: whether it equals the configured bytes, or whether it starts with zeros."""
    start = bytes(extent.cut(0, min(extent.size, MAX_COMPARED)).read())
    if field.configured is not None and extent.size <= MAX_COMPARED:
        return {"as configured": start == field.configured}
    return {} if any(start) else {"zeros": True}


def _checksum(codec: Framing, field: Field, extent: Extent, offset: int, at: int) -> Range:
    """Return the range of a checksum, which is at `offset` in a framed value that begins at `at`."""
    start, end = at + offset, at + offset + field.size
    body = [at + codec.head, at + extent.size - codec.tail]
    detail: dict[str, Any] = {}
    fault = None
    try:
        data = memoryview(extent.read())
        expected = b"".join(map(bytes, _ask(codec.name, codec.frame, data[codec.head : len(data) - codec.tail])))
        place = offset if offset < codec.head else offset - (body[1] - body[0])  # in head and tail alone
        for name, stored in (("found", data[offset:]), ("expected", expected[place:])):
            detail[name] = f"{int.from_bytes(stored[: field.size], 'little'):0{2 * field.size}x}"
        detail["covers"] = body
        decode_bytes(data, [(codec, Limit(len(data)))])
    except (ZarrliteError, OSError) as error:
        fault = Fault.of(error)
    return Range(start, end, field.what, field.role, codec.name, detail, fault)


def _frame(
    p: Pipeline, depth: int, codec: BytesBytesCodec, limit: Limit, extent: Extent, at: int, leaf: Leaf, stored: int
) -> Range:
    """Return the range of a frame (the output of a compressor), with its decoded form as a view."""
    what, end = f"{codec.name} frame", at + extent.size
    try:
        data = decode_bytes(extent.read(), [(codec, Limit(limit.of(stored)))])
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


def serialized(pipeline: Pipeline, extent: Extent, at: int) -> Iterator[Range]:
    """Yield the ranges of the output of an array -> bytes codec, as described by the codec itself."""
    name = pipeline.serializer.codec.name
    anatomy = pipeline.serializer.anatomy()
    if isinstance(anatomy, Indexed):
        inner_pipeline = anatomy.inner

        def inner(coords: Shape, part: Extent, start: int) -> Range:
            def ranges() -> Iterator[Range]:
                return guarded(chunk(inner_pipeline, part, start), start, start + part.size)

            what = f"inner chunk {shards.show(coords)}"
            return Range(start, start + part.size, what, "chunk", name, children=ranges)

        yield from shards.shard(anatomy.format, extent, at, inner, name, chain)
    elif isinstance(anatomy, Header):
        yield from _headed(pipeline, anatomy, extent, at)
    else:
        yield _elements(pipeline, extent, at)


def _headed(pipeline: Pipeline, anatomy: Header, extent: Extent, at: int) -> Iterator[Range]:
    """Yield the ranges of a header and of the bytes after it."""
    name, size = pipeline.serializer.codec.name, anatomy.field.size
    stored = extent.cut(0, min(size, extent.size))
    try:
        read = _ask(name, pipeline.serializer.anatomy, stored.read())
    except (ZarrliteError, OSError) as error:
        yield Range(at, at + extent.size, anatomy.what, "unknown", name, fault=Fault.of(error))
        return
    if extent.size < size or not isinstance(read, Header):
        message = f"has {extent.size} bytes, but the header of a {anatomy.what} alone has {size}"
        yield Range(at, at + extent.size, anatomy.what, "unknown", name, fault=Fault("size", message))
        return
    yield _field(read.field, stored, at, name, read.detail)
    if read.inner is None:
        yield _elements(pipeline, extent, at, size)
    else:
        yield from chunk(read.inner, extent.cut(size, extent.size), at + size)


def _elements(pipeline: Pipeline, extent: Extent, at: int, header: int = 0) -> Range:
    """Return the range of the elements after a header of `header` bytes."""
    bound, end = pipeline.serializer, at + extent.size
    detail: dict[str, Any] = {"shape": list(bound.spec.shape), "data type": bound.spec.data_type.name}
    if bound.spec.data_type.has_byte_order and bound.layout is not None:
        detail["endian"] = bound.codec.byte_order
    if pipeline.filters:
        detail["after"] = [codec.name for codec, _ in pipeline.filters]
    fault = None
    try:
        array_of(pipeline, extent)
    except (ZarrliteError, OSError) as error:
        fault = Fault.of(error)
    return Range(at + header, end, "elements", "elements", bound.codec.name, detail, fault)


def _ask(name: str, function: Callable[[Buffer], Any], data: Buffer) -> Any:
    """Call a function of a codec; every exception becomes a DataError."""
    try:
        return function(data)
    except Exception as error:
        decoding_failed(error, name)


def array_of(pipeline: Pipeline, extent: Extent) -> np.ndarray[Any, Any]:
    """Decode a value with the array -> bytes codec and the array -> array codecs of a chain."""
    array = pipeline.serializer.decode(extent.read())
    for codec, spec in reversed(pipeline.filters):
        try:
            array = codec.decode(array, spec)
        except Exception as error:
            decoding_failed(error, codec.name)
    return array
