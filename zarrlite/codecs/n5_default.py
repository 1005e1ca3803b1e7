"""The `n5_default` codec: N5 blocks in default mode, which start with their shape.

Rules (registered codec n5_default, Configuration parameters and Procedure)
- The inner chain is a `transpose` that reverses the dimensions, big-endian `bytes`, and at most one bytes -> bytes
  codec.
- Blocks in other modes, or with the wrong number of dimensions, are refused.
- A block smaller than its chunk is padded with the fill value. A block larger than its chunk is refused: the rule to
  "truncate" blocks is for grids with smaller chunks at the edge, and would hide a wrong chunk shape on a regular grid.
- Blocks are written at full size, even at the edge; N5 readers accept full and smaller blocks there.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from zarrlite.buffers.pieces import join
from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.codecs.bytes import Bytes
from zarrlite.codecs.transpose import Transpose
from zarrlite.errors import ArgumentError, DataError, FaultKind, MetadataError, TruncatedError
from zarrlite.extensions.config import Config, Json
from zarrlite.extensions.extension import Ignored
from zarrlite.extensions.registry import codecs as registry
from zarrlite.extensions.registry import register
from zarrlite.pipeline.anatomy import Field, Header
from zarrlite.pipeline.chain import fit_chain, parse_chain
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, BytesBytesCodec, Serializer, byte_order_of
from zarrlite.pipeline.decoding import Limit, beyond_limit, default_limit
from zarrlite.pipeline.elements import NDArray
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.pipeline.reading import FailedPart, Part, Reading, Request
from zarrlite.selections.casting import normalize_shape
from zarrlite.selections.selection import Points, Selection, Shape, everything
from zarrlite.stores.base import Limits

DATA_TYPES: Final = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64")
MAX_LENGTH: Final = 2**32 - 1  # maximum length of a block along each dimension
_MODES = {1: "varlength", 2: "object"}


def n5_header(shape: Any) -> bytes:
    """Return the header of an N5 block of this shape, in default mode.

    >>> n5_header((64, 64)).hex(" ", 4)
    '00000002 00000040 00000040'
    """
    lengths = normalize_shape(shape)
    if any(not 1 <= n <= MAX_LENGTH for n in lengths):
        raise ArgumentError(f"an N5 block must have lengths from 1 to {MAX_LENGTH}, not {shape!r}")
    return struct.pack(f">HH{len(lengths)}I", 0, len(lengths), *lengths)


@register
@dataclass(frozen=True)
class N5Default(ArrayBytesCodec):
    """N5 blocks, each preceded by a header with its shape."""

    name = "n5_default"
    codecs: tuple[Any, ...]

    def __post_init__(self) -> None:
        chain = tuple(c if isinstance(c, Ignored) else registry.coerce(c) for c in self.codecs)
        object.__setattr__(self, "codecs", chain)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(parse_chain(config.list("codecs"), config.at("codecs"), config.context))

    def to_config(self) -> dict[str, Json]:
        return {"codecs": [codec.to_json() for codec in self.codecs]}

    @property
    def byte_order(self) -> str:  # type: ignore[override]
        return byte_order_of(self.codecs)

    def fitted(self, spec: ArraySpec) -> Self:
        codecs: tuple[Any, ...] = self.codecs
        if spec.data_type.has_byte_order:
            codecs = tuple(Bytes("big") if codec == Bytes(None) else codec for codec in codecs)
        codecs = fit_chain(codecs, spec)
        return self if codecs == self.codecs else replace(self, codecs=codecs)

    def bind(self, spec: ArraySpec) -> Serializer:
        spec.require_fill()
        return BlockSerializer(self, spec)

    def encode(self, array: NDArray, spec: ArraySpec) -> Buffer:
        return join(self.bind(spec).encode(array))

    def decode(self, data: Buffer, spec: ArraySpec) -> NDArray:
        return self.bind(spec).take(data, everything(spec.shape))

    def check(self, spec: ArraySpec) -> None:
        """Raise MetadataError, with a JSON pointer relative to the codec, for chunks that N5 cannot store."""
        ndim, name = len(spec.shape), spec.data_type.name
        if name not in DATA_TYPES:
            raise MetadataError(f"N5 has no data type {name}; use one of {', '.join(DATA_TYPES)}", kind="conflict")
        if any(not 1 <= n <= MAX_LENGTH for n in spec.shape):
            message = f"an N5 block must have lengths from 1 to {MAX_LENGTH}, not {spec.shape}"
            raise MetadataError(message, kind="conflict")
        chain = [(i, codec) for i, codec in enumerate(self.codecs) if not isinstance(codec, Ignored)]
        kinds = (Transpose, Bytes, BytesBytesCodec)[: max(2, len(chain))]
        if len(chain) != len(kinds) or not all(isinstance(c, k) for (_, c), k in zip(chain, kinds, strict=True)):
            raise self._fault("", "must be transpose, bytes, and at most one bytes -> bytes codec")
        (first, transpose), (second, serializer) = chain[:2]
        if transpose.order != tuple(range(ndim))[::-1]:
            message = f"must be {list(range(ndim))[::-1]}, not {list(transpose.order)}"
            raise self._fault(f"/{first}/configuration/order", message)
        if serializer.endian is None and spec.data_type.has_byte_order:
            raise self._fault(f"/{second}/configuration/endian", f'is required for {name}: "big"', "missing")
        if serializer.endian == "little":
            raise self._fault(f"/{second}/configuration/endian", 'must be "big", not "little"')

    @staticmethod
    def _fault(pointer: str, message: str, kind: FaultKind = "conflict") -> MetadataError:
        return MetadataError(message, pointer=f"/configuration/codecs{pointer}", kind=kind)


class BlockSerializer(Serializer):
    """The codec bound to a chunk shape, with the header and the inner chain of a full-size block."""

    codec: N5Default

    def __init__(self, codec: N5Default, spec: ArraySpec) -> None:
        codec.check(spec)
        self.codec = codec
        self.spec = spec
        self.inner = self.pipeline(spec.shape)
        self.header = n5_header(spec.shape)
        self.needs_old = self.inner.needs_old
        super().__init__(codec, spec)
        self.read_unit = 0  # a block may be smaller than the chunk: `_take` checks its decoded size
        if self.inner.encoded_size is not None:
            self.encoded_size = len(self.header) + self.inner.encoded_size

    def pipeline(self, shape: Shape) -> Pipeline:
        """Return the inner chain for blocks of this shape."""
        return Pipeline(self.codec.codecs, self.spec.reshaped(shape))

    def _limit(self) -> Limit:
        return Limit(len(self.header) + self.inner.limit.fixed)

    def open(self, data: Buffer) -> tuple[Shape, Buffer]:
        """Return the shape of a stored block, which must not exceed the chunk shape, and the bytes after the header."""
        ndim, name = len(self.spec.shape), self.codec.name
        mode, dimensions = struct.unpack(">HH", bytes(data[:4])) if len(data) >= 4 else (0, ndim)
        if mode != 0:
            message = f"is a block of mode {mode} ({_MODES.get(mode, 'unknown')}); only mode 0 (default) is supported"
            raise DataError(message, codec=name)
        if dimensions != ndim:
            raise DataError(f"is a block of {dimensions} dimensions, but the chunk has {ndim}", codec=name)
        size = len(self.header)
        if len(data) < size:
            raise TruncatedError(f"has {len(data)} bytes, but the header of a block alone has {size}", codec=name)
        shape = struct.unpack(f">{ndim}I", bytes(data[4:size]))
        if any(not 1 <= n <= length for n, length in zip(shape, self.spec.shape, strict=True)):
            message = f"is a block of shape {shape}, which is empty or exceeds the chunk shape {self.spec.shape}"
            raise DataError(message, codec=name)
        return shape, memoryview(data)[size:]

    def read(self, handles: Sequence[Any], parts: Sequence[Part], limits: Limits) -> Reading[list[int]]:
        requests: list[Request] = [(handle, ByteRange(0, self.limit.fixed + 1), None) for handle in handles]
        values = yield requests, None
        for i, (value, (selection, target)) in enumerate(zip(values, parts, strict=True)):
            if value is not None:
                try:
                    target[...] = self._take(value, selection)
                except DataError as error:
                    raise FailedPart(i, error) from error
        return [i for i, value in enumerate(values) if value is None]

    def _take(self, data: Buffer, selection: Selection) -> NDArray:
        """Return selected elements of a stored block; elements outside it are the fill value."""
        if len(data) > self.limit.fixed:
            raise TruncatedError(f"has more than {self.limit.fixed} bytes, the limit for this chunk")
        shape, block = self.open(data)
        pipeline = self.inner if shape == self.spec.shape else self.pipeline(shape)
        self._check_limit(pipeline.read_unit)
        if shape == self.spec.shape:
            return pipeline.take(block, selection)
        # pad only as far as the selection requires, because the chunk shape comes from untrusted metadata
        needed = tuple(max(n, stop) for n, stop in zip(shape, _stops(selection), strict=True))
        if needed == shape:
            return pipeline.take(block, selection)
        self._check_limit(math.prod(needed) * self.spec.dtype.itemsize)
        padded = self.spec.reshaped(needed).filled()
        padded[tuple(slice(0, n) for n in shape)] = pipeline.decode(block)
        return selection.take(padded)

    def _check_limit(self, size: int) -> None:
        limit = self.spec.options.max_bytes or default_limit()
        if size > limit:
            raise DataError(beyond_limit(size, limit))

    def encode(self, array: NDArray, old: Buffer | None = None) -> Buffer:
        replaced = None if old is None else self.open(old)[1]
        return b"".join((self.header, self.inner.encode_always(array, replaced)))

    def update(self, old: Buffer | None, selection: Selection, values: NDArray) -> Buffer | None:
        if selection.spans_all(self.spec.shape) and not self.needs_old:
            old = None
        if old is not None:
            shape, block = self.open(old)
            if shape == self.spec.shape:
                old = block
            else:
                old = self.inner.encode_always(self._take(old, everything(self.spec.shape)), block)
        new = self.inner.update(old, selection, values)
        return None if new is None else b"".join((self.header, join(new)))

    def anatomy(self, header: Buffer | None = None) -> Header:
        shape = self.spec.shape if header is None else self.open(header)[0]
        pipeline = self.inner if shape == self.spec.shape else self.pipeline(shape)
        lengths = [Field(f"length {i}", 4, form=">I") for i in range(len(shape))]
        fields = (Field("mode", 2, form=">H"), Field("number of dimensions", 2, form=">H"), *lengths)
        return Header("block", fields, pipeline, {"shape": list(shape)})


def _stops(selection: Selection) -> list[int]:
    """Return, for each dimension, the index after the last selected element."""
    stops = [0] * selection.ndim
    for part, dims in zip(selection.parts, selection.dims, strict=True):
        for i, dim in enumerate(dims):
            if isinstance(part, Points):
                stops[dim] = int(part.coords[i].max(initial=-1)) + 1
            else:
                stops[dim] = part.start + (part.length - 1) * part.step + 1
    return stops
