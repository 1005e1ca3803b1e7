"""The extensions `pad`, `offset` and `suffix` for zarr-python, which finds them through entry points.

Rules
- Documents are parsed and written by zarrlite's own classes, so that both libraries agree on every byte.
- zarr-python reads whole values if a bytes -> bytes codec follows the array -> bytes codec. `WindowedPipeline` shifts
  byte ranges instead, so that parts of a shard that follows a header can be read. This pipeline must be selected in
  zarr-python's configuration; for codecs inside a shard, it is not needed.
- zarr-python has no storage transformers, so it supports neither `concat-parts` nor `sharding` of the 2022 draft;
  `zarrlite.plain` serves arrays that use them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from zarrlite.chunk_key_encodings.suffix import SuffixKeys
from zarrlite.codecs.pad import Offset, Pad, Padding
from zarrlite.errors import ArgumentError, DependencyError, TruncatedError
from zarrlite.extensions import registry
from zarrlite.selections.casting import MAX_NDIM

try:
    from zarr.abc.codec import ArrayBytesCodecPartialDecodeMixin, BytesBytesCodec
    from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype
    from zarr.core.chunk_key_encodings import ChunkKeyEncoding
    from zarr.core.codec_pipeline import BatchedCodecPipeline
    from zarr.registry import register_chunk_key_encoding, register_codec, register_pipeline
except ImportError as error:
    raise DependencyError("the bridge to zarr-python needs zarr 3.1 or later: pip install 'zarrlite[zarr]'") from error


@dataclass(frozen=True)
class PaddingCodec(BytesBytesCodec):
    """A zarrlite padding codec for zarr-python: the base class of `PadCodec` and `OffsetCodec`.

    Parameters
    ----------
    padding : Pad or Offset
        The zarrlite codec.
    """

    is_fixed_size = True
    kind: ClassVar[type[Padding]]
    padding: Any

    def __post_init__(self) -> None:
        if not isinstance(self.padding, self.kind):
            raise ArgumentError(f"{type(self).__name__} must wrap {self.kind.__name__}, not {self.padding!r}")
        if self.padding.keeps_old:
            raise ArgumentError(f"{self.padding!r} must not keep old padding, because zarr-python cannot do that")

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(registry.codecs.coerce(data))

    def to_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = self.padding.to_json()
        return document

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        return int(input_byte_length + self.padding.head + self.padding.tail)

    def _encode_sync(self, chunk_bytes: Buffer, chunk_spec: Any) -> Buffer | None:
        head, tail = self.padding.frame(chunk_bytes.to_bytes())
        pieces = [np.frombuffer(head, "u1"), chunk_bytes.as_numpy_array().view("u1"), np.frombuffer(tail, "u1")]
        encoded: Buffer = chunk_spec.prototype.buffer.from_array_like(np.concatenate(pieces).view("B"))
        return encoded

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: Any) -> Buffer:
        data, stop = chunk_bytes.as_numpy_array(), len(chunk_bytes) - self.padding.tail
        if stop < self.padding.head:
            size = self.padding.head + self.padding.tail
            raise TruncatedError(f"a value has {len(chunk_bytes)} bytes, but its padding alone has {size}")
        decoded: Buffer = chunk_spec.prototype.buffer.from_array_like(data[self.padding.head : stop])
        return decoded

    async def _encode_single(self, chunk_data: Buffer, chunk_spec: Any) -> Buffer | None:
        return self._encode_sync(chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: Any) -> Buffer:
        return self._decode_sync(chunk_data, chunk_spec)


class PadCodec(PaddingCodec):
    """The codec `pad` for zarr-python.

    Parameters
    ----------
    padding : Pad
        The zarrlite codec.

    Examples
    --------
    >>> import zarr
    >>> a = zarr.create_array({}, shape=3, dtype="u1", compressors=[PadCodec(Pad("start", 2))], filters=None)
    >>> a.metadata.to_dict()["codecs"][1]
    {'name': 'pad', 'configuration': {'location': 'start', 'nbytes': 2}}
    """

    kind = Pad


class OffsetCodec(PaddingCodec):
    """The codec `offset` for zarr-python.

    Parameters
    ----------
    padding : Offset
        The zarrlite codec.

    Examples
    --------
    >>> OffsetCodec(Offset(3)).to_dict()
    {'name': 'offset', 'configuration': {'offset': 3}}
    """

    kind = Offset


@dataclass(frozen=True)
class SuffixKeyEncoding(ChunkKeyEncoding):
    """The chunk key encoding `suffix` for zarr-python.

    Parameters
    ----------
    keys : SuffixKeys
        The zarrlite chunk key encoding.

    Examples
    --------
    >>> SuffixKeyEncoding(SuffixKeys(".tiff")).encode_chunk_key((0, 1))
    'c/0/1.tiff'
    """

    name = "suffix"
    keys: SuffixKeys

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(registry.chunk_key_encodings.coerce(data))

    def to_dict(self) -> dict[str, Any]:
        document: Any = self.keys.to_json()
        return document  # type: ignore[no-any-return]

    def encode_chunk_key(self, chunk_coords: tuple[int, ...]) -> str:
        return self.keys.encode(chunk_coords)

    def decode_chunk_key(self, chunk_key: str) -> tuple[int, ...]:
        found = (self.keys.decode(chunk_key, ndim) for ndim in range(MAX_NDIM + 1))
        coords = next((coords for coords in found if coords is not None), None)
        if coords is None:
            raise ArgumentError(f"{chunk_key!r} is not the key of a chunk")
        return coords


class WindowedPipeline(BatchedCodecPipeline):
    """A zarr-python codec pipeline that can read parts of shards that `pad` or `offset` has padded.

    Select it with `zarr.config.set({"codec_pipeline.path": "zarrlite.bridge.WindowedPipeline"})`. For arrays without
    padding it behaves like zarr-python's own pipeline, which it extends.
    """

    @property
    def supports_partial_decode(self) -> bool:
        return (
            not self.array_array_codecs
            and isinstance(self.array_bytes_codec, ArrayBytesCodecPartialDecodeMixin)
            and all(isinstance(codec, PaddingCodec) for codec in self.bytes_bytes_codecs)
        )

    async def decode_partial_batch(self, batch_info: Iterable[tuple[Any, Any, Any]]) -> Iterable[Any]:
        paddings = [codec.padding for codec in self.bytes_bytes_codecs if isinstance(codec, PaddingCodec)]
        head, tail = sum(p.head for p in paddings), sum(p.tail for p in paddings)
        windows = [(_Window(value, head, tail), selection, spec) for value, selection, spec in batch_info]
        codec: Any = self.array_bytes_codec
        found: Iterable[Any] = await codec.decode_partial(windows)
        return found


# zarr-python selects a pipeline by the name of its module
WindowedPipeline.__module__ = "zarrlite.bridge"

# the entry points register the same classes under the same names, in processes that do not import this module
register_codec("pad", PadCodec)
register_codec("offset", OffsetCodec)
register_chunk_key_encoding("suffix", SuffixKeyEncoding)
register_pipeline(WindowedPipeline)


class _Window:
    """A stored value without its first `head` and last `tail` bytes, as a zarr-python `ByteGetter`."""

    def __init__(self, value: Any, head: int, tail: int) -> None:
        self._value = value
        self._head = head
        self._tail = tail

    async def get(self, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        head, tail = self._head, self._tail
        if isinstance(byte_range, RangeByteRequest):
            shifted = RangeByteRequest(byte_range.start + head, byte_range.end + head)
            return await self._get(prototype, shifted)
        if isinstance(byte_range, SuffixByteRequest):
            wanted = byte_range.suffix + tail
            found = await self._get(prototype, SuffixByteRequest(wanted))
            # a value that is shorter than the wanted suffix is returned whole, including its first `head` bytes
            skipped = 0 if found is None or len(found) == wanted else head
            return self._cut(found, skipped, tail)
        if isinstance(byte_range, OffsetByteRequest):
            found = await self._get(prototype, OffsetByteRequest(byte_range.offset + head))
            return self._cut(found, 0, tail)
        return self._cut(await self._get(prototype, None), head, tail)

    async def _get(self, prototype: BufferPrototype, byte_range: ByteRequest | None) -> Buffer | None:
        found: Buffer | None = await self._value.get(prototype=prototype, byte_range=byte_range)
        return found

    @staticmethod
    def _cut(found: Buffer | None, head: int, tail: int) -> Buffer | None:
        return found if found is None else found[head : max(head, len(found) - tail)]


__all__ = ["OffsetCodec", "PadCodec", "PaddingCodec", "SuffixKeyEncoding", "WindowedPipeline"]
