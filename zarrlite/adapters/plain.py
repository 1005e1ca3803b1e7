"""Any hierarchy that zarrlite reads, as ordinary Zarr v3: a read-only store for readers without the extensions.

Rules
- Chunk keys are those of the default encoding, and there are no storage transformers: parts are joined, draft shards
  are shards of `sharding_indexed`.
- Padding around chunks and shards is cut off, and byte ranges stay byte ranges. Padding around the inner chunks of a
  shard is skipped by another index: each entry starts after the padding and ends before it.
- Other codecs that readers may not know are undone: the chunks are decoded, and served uncompressed.
- Arrays that need none of this are served byte for byte, documents included.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator
from typing import Any, Final

import numpy as np

from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source, Window
from zarrlite.chunk_key_encodings import DefaultKeys
from zarrlite.chunks.chunks import Chunks
from zarrlite.codecs.bytes import Bytes
from zarrlite.codecs.crc32c import Crc32c
from zarrlite.codecs.sharding_indexed import ShardingIndexed
from zarrlite.codecs.vlen import VlenBytes, VlenUtf8
from zarrlite.errors import NodeNotFoundError, ReadOnlyError
from zarrlite.extensions.extension import Ignored
from zarrlite.metadata.documents import serialize
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.opening import open as open_node
from zarrlite.pipeline.codec import ArrayBytesCodec, ArraySpec, BytesBytesCodec, Framing
from zarrlite.pipeline.pipeline import Pipeline
from zarrlite.shards.format import ABSENT, ShardFormat
from zarrlite.stores.base import Listing, Store, check_key, check_prefix
from zarrlite.stores.open import StoreLike

# codecs that every reader of Zarr v3 knows
COMMON: Final = frozenset(
    ("bytes", "transpose", "zstd", "gzip", "blosc", "crc32c", "sharding_indexed", "vlen-utf8", "vlen-bytes")
)
_KEYS = DefaultKeys()


def plain(store: StoreLike | Array | Group, *, strict: bool = True) -> PlainStore:
    """Show a hierarchy as ordinary Zarr v3.

    Parameters
    ----------
    store : Store, path, URI, mapping, Array or Group
        The hierarchy, as for `open`, or a node of one.
    strict : bool, optional
        Whether to refuse metadata that needs a guess, as for `open`.

    Returns
    -------
    PlainStore
        A read-only store that every reader of Zarr v3 can use.

    Examples
    --------
    >>> import numpy as np, zarrlite
    >>> from zarrlite.codecs import Pad
    >>> a = zarrlite.create_array("memory://", data=np.arange(4, dtype="u1"), compressors=Pad("start", 8))
    >>> [codec["name"] for codec in zarrlite.open(zarrlite.plain(a.store), mode="r").metadata.to_json()["codecs"]]
    ['bytes']
    """
    node = store if isinstance(store, (Array, Group)) else open_node(store, mode="r", strict=strict)
    return PlainStore(node)


class PlainStore(Store):
    """A read-only store with the documents and chunks of a node as ordinary Zarr v3.

    Parameters
    ----------
    root : Array or Group
        The node that becomes the root.
    """

    read_only = True

    def __init__(self, root: Array | Group) -> None:
        self.root = root
        self.limits = root.store.limits
        self._arrays: dict[str, PlainArray | Group] = {}

    def __repr__(self) -> str:
        return f"PlainStore({self.root!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlainStore):
            return False
        return (self.root.store, self.root.path) == (other.root.store, other.root.path)

    def __hash__(self) -> int:
        return hash((PlainStore, self.root.store, self.root.path))

    def __reduce__(self) -> tuple[Any, ...]:
        return PlainStore, (self.root,)

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return (PlainStore, self.root.store.location()), key_prefix(self.root.path) + prefix

    def _node(self, path: str) -> PlainArray | Group | None:
        """Return the node at a path, relative to the root. Returns None if there is no node."""
        found = self._arrays.get(path)
        if found is None:
            try:
                node = self.root[path] if path and isinstance(self.root, Group) else self.root
            except NodeNotFoundError:
                return None
            if path and not isinstance(self.root, Group):
                return None
            found = PlainArray(node) if isinstance(node, Array) else node
            self._arrays[path] = found
        return found

    def _find(self, key: str) -> tuple[PlainArray | Group | None, str]:
        """Return the node that a key belongs to, and the rest of the key."""
        names = check_key(key).split("/")
        if names[-1] == DOCUMENT:
            return self._node("/".join(names[:-1])), DOCUMENT
        for i in reversed(range(len(names))):
            if names[i] == "c":  # every key of a chunk starts with it
                node = self._node("/".join(names[:i]))
                if isinstance(node, PlainArray):
                    return node, "/".join(names[i:])
        return None, key

    def source(self, key: str) -> Source:
        node, rest = self._find(key)
        if node is None:
            return InMemory(None)
        if rest == DOCUMENT:
            return InMemory(node.document() if isinstance(node, PlainArray) else _group_document(node))
        return node.chunk(rest) if isinstance(node, PlainArray) else InMemory(None)

    def get(self, key: str, byte_range: ByteRange = ALL) -> Buffer | None:
        source = self.source(key)
        try:
            return source.read_one(byte_range)
        finally:
            source.close()

    def size(self, key: str) -> int | None:
        source = self.source(key)
        try:
            return source.size()
        finally:
            source.close()

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        nodes = [("", self.root)]
        if isinstance(self.root, Group):
            nodes += self.root.members(None)
        for path, _ in nodes:
            node = self._node(path)
            keys = [DOCUMENT, *(node.keys() if isinstance(node, PlainArray) else ())]
            for key in keys:
                if (key_prefix(path) + key).startswith(prefix):
                    yield key_prefix(path) + key

    def list_dir(self, prefix: str) -> Listing:
        node = self._node(check_prefix(prefix).rstrip("/"))
        if not isinstance(node, Group):
            return super().list_dir(prefix)
        return [prefix + DOCUMENT], [f"{prefix}{name}/" for name in sorted(node.keys())]

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise ReadOnlyError(f"{self!r} cannot be written")

    set = erase = erase_prefix = change = _refuse


def _group_document(group: Group) -> bytes:
    return serialize(group.metadata.without_consolidated())


class PlainArray:
    """An array as ordinary Zarr v3: its document and its chunks."""

    def __init__(self, array: Array) -> None:
        self.metadata = array.metadata.folded()
        self._chunks = Chunks(array._base, key_prefix(array.path), array.metadata, array.options, fold=True)
        self._ndim = len(self.metadata.shape)
        pipeline = self._chunks.pipeline((0,) * self._ndim)
        self._form = _form(pipeline)

    def document(self) -> bytes:
        """Return the document."""
        changed = self.metadata.replace(
            chunk_key_encoding=_KEYS, storage_transformers=None, codecs=self._form.codecs, extra={}
        )
        return serialize(changed)

    def chunk(self, key: str) -> Source:
        """Return a chunk by its plain key, as a source."""
        coords = _KEYS.decode(key, self._ndim)
        if coords is None:
            return InMemory(None)
        stored = self._chunks.store.source(self._chunks.metadata.chunk_key_encoding.encode(coords))
        return self._form.chunk(stored, functools.partial(self._chunks.pipeline, coords))

    def keys(self) -> list[str]:
        """Return the plain keys of all stored chunks."""
        return [_KEYS.encode(coords) for coords, _ in self._chunks.stored()]


class _Served:
    """Chunks served as they are stored, without the padding around them."""

    def __init__(self, codecs: tuple[Any, ...], frames: list[Framing]) -> None:
        self.codecs = codecs
        self._frames = frames  # outermost first

    def chunk(self, stored: Source, bind: Any) -> Source:
        for frame in self._frames:
            stored = Unframed(stored, frame)
        return stored


class _Reindexed(_Served):
    """Shards served with another index, which skips the padding around inner chunks."""

    def __init__(
        self,
        codec: ShardingIndexed,
        codecs: tuple[Any, ...],
        frames: list[Framing],
        form: ShardFormat,
        inner: list[Framing],
    ) -> None:
        sharding = ShardingIndexed(codec.chunk_shape, codecs, (Bytes(), Crc32c()), "end")
        super().__init__((sharding,), frames)
        self._form = form
        self._head = sum(frame.head for frame in inner)
        self._tail = sum(frame.tail for frame in inner)

    def chunk(self, stored: Source, bind: Any) -> Source:
        return Reindexed(super().chunk(stored, bind), self._form, self._head, self._tail)


class _Decoded:
    """Chunks decoded, and served uncompressed."""

    def __init__(self, serializer: ArrayBytesCodec) -> None:
        self.codecs = (serializer,)

    def chunk(self, stored: Source, bind: Any) -> Source:
        value = stored.read_one()
        stored.close()
        if value is None:
            return InMemory(None)
        pipeline: Pipeline = bind()
        spec: ArraySpec = pipeline.spec
        return InMemory(self.codecs[0].encode(np.asarray(pipeline.decode(value)), spec))


def _form(pipeline: Pipeline) -> _Served | _Decoded:
    """Return how the chunks of a chain are served."""
    compressors = [codec for codec, _ in pipeline.compressors]
    rest, frames = _split_frames(compressors)
    serializer = pipeline.serializer.codec
    before = [*(codec for codec, _ in pipeline.filters), serializer, *rest]
    if isinstance(serializer, ShardingIndexed) and not pipeline.filters and not rest:
        shard: Any = pipeline.serializer
        inner_rest, inner_frames = _split_frames([codec for codec, _ in shard.inner.compressors])
        inner = [*(codec for codec, _ in shard.inner.filters), shard.inner.serializer.codec, *inner_rest]
        ordinary_index = _are_common(serializer.index_codecs)
        if _are_common(inner) and not inner_frames and ordinary_index:
            plain_codec = ShardingIndexed(
                serializer.chunk_shape, tuple(inner), serializer.index_codecs, serializer.index_location
            )
            return _Served((plain_codec,), frames)
        if _are_common(inner):
            return _Reindexed(serializer, tuple(inner), frames, shard.format, inner_frames)
    elif _are_common(before):
        return _Served(tuple(before), frames)
    data_type = pipeline.spec.data_type
    if data_type.itemsize is None:
        return _Decoded(VlenUtf8() if data_type.dtype.kind == "T" else VlenBytes())
    return _Decoded(Bytes("little" if data_type.has_byte_order else None))


def _split_frames(codecs: list[BytesBytesCodec]) -> tuple[list[BytesBytesCodec], list[Framing]]:
    """Split a chain into the codecs that readers undo, and the outermost padding, outermost first."""
    rest, frames = [*codecs], []
    while rest and isinstance(rest[-1], Framing) and rest[-1].name not in COMMON and not rest[-1].verifies:
        frames.append(rest.pop())
    return rest, frames  # type: ignore[return-value]


def _are_common(codecs: Any) -> bool:
    return all(isinstance(codec, Ignored) or codec.name in COMMON for codec in codecs) and all(
        _are_common(codec.codecs) and _are_common(codec.index_codecs)
        for codec in codecs
        if isinstance(codec, ShardingIndexed)
    )


class Unframed(Window):
    """A value without its padding. Closing it closes the padded value."""

    def __init__(self, source: Source, frame: Framing) -> None:
        super().__init__(source, frame.head, frame.tail, frame.name)

    def close(self) -> None:
        self.source.close()


class Reindexed(Source):
    """A shard with another index at its end, whose entries leave out the padding of inner chunks."""

    def __init__(self, source: Source, form: ShardFormat, head: int, tail: int) -> None:
        self._source = source
        self._form = form
        self._head, self._tail = head, tail
        self._index: bytes | None = None

    def _new_index(self) -> bytes:
        if self._index is None:
            stored = self._source.read_one(self._form.index_range)
            index = self._form.parse_index(stored or b"", self._source.size())
            present = index.check()
            table = index.table.astype(np.uint64)
            table[present, 0] += np.uint64(self._head)
            table[present, 1] -= np.uint64(self._head + self._tail)
            table[~present] = ABSENT
            encoded = table.astype("<u8").tobytes()
            self._index = bytes(Crc32c().encode(encoded))
        return self._index

    def size(self) -> int | None:
        size = self._source.size()
        return None if size is None else size + 16 * self._form.count + 4

    def read(self, ranges: Any, memory: memoryview | None = None) -> list[Buffer] | None:
        end = self._source.size()
        if end is None:
            return None
        size = end + 16 * self._form.count + 4
        found: list[Buffer] = []
        for start, stop in (byte_range.resolve(size) for byte_range in ranges):
            data: Buffer = b""
            if start < end:
                (data,) = self._source.read([ByteRange(start, min(stop, end))]) or (b"",)
            if stop > end:
                data = bytes(data) + self._new_index()[max(0, start - end) : stop - end]
            found.append(data)
        return found

    def close(self) -> None:
        self._source.close()
