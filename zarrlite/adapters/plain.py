"""A read-only store that shows any hierarchy as ordinary Zarr v3, for readers that do not support its extensions.

Rules
- Chunk keys are those of the default encoding, and there are no storage transformers: chunks that are stored in parts
  are joined, and shards of the 2022 draft become `sharding_indexed` shards.
- Padding around chunks and shards is removed; byte ranges are shifted, so that partial reads stay partial. A new index
  skips the padding around the inner chunks of a shard: each entry covers an inner chunk without its padding.
- Chunks are decoded if not every reader supports their codecs, or if the chunk grid is not regular. They are then
  served uncompressed, as chunks of the shape `Array.chunks`, so that their sizes are known. Data types do not change.
- If an array needs none of these changes, its document is only rewritten in canonical form. Consolidated metadata
  contains the rewritten documents.
- Each request for a document reads it from the underlying store again. Chunks are served according to the document that
  was read last.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

from zarrlite.adapters.plain_chunks import Decoded, Served, served
from zarrlite.buffers.ranges import ALL, Buffer, ByteRange
from zarrlite.buffers.source import InMemory, Source
from zarrlite.chunk_grids import Regular
from zarrlite.chunk_key_encodings import DefaultKeys
from zarrlite.chunks.chunks import Chunks
from zarrlite.errors import MetadataError, NodeNotFoundError, ReadOnlyError, StoreError
from zarrlite.extensions.config import Json
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata, serialize
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.node import load, parse_copy
from zarrlite.nodes.opening import open as open_node
from zarrlite.stores.base import Listing, Store, check_key, check_prefix
from zarrlite.stores.open import StoreLike, open_store

MAX_NODES: Final = 1000  # nodes whose documents are cached, so that requests for chunks do not read them again
MAX_COPIES: Final = 2000  # nodes; groups with more nodes below them get no consolidated metadata
_KEYS: Final = DefaultKeys()


def plain(store: StoreLike | Array | Group, *, strict: bool = True) -> PlainStore:
    """Show a hierarchy as ordinary Zarr v3.

    Parameters
    ----------
    store : Store, path, URI, mapping, Array or Group
        The hierarchy, as for `open`; or an N5 container, a folder of TIFF files, or a node of a hierarchy.
    strict : bool, optional
        Whether documents must follow the specification strictly, as for `open`.

    Returns
    -------
    PlainStore
        A read-only store that every reader of Zarr v3 can use.

    Raises
    ------
    NodeNotFoundError
        If there is no hierarchy.

    Examples
    --------
    >>> import numpy as np, zarrlite
    >>> from zarrlite.codecs import Pad
    >>> a = zarrlite.create_array("memory://", data=np.arange(4, dtype="u1"), compressors=Pad("start", 8))
    >>> [codec["name"] for codec in zarrlite.open(zarrlite.plain(a.store), mode="r").metadata.to_json()["codecs"]]
    ['bytes']
    """
    node = store if isinstance(store, (Array, Group)) else open_any(store, strict=strict)
    return PlainStore(node, strict=strict)


def open_any(store: StoreLike, *, strict: bool = True) -> Array | Group:
    """Open a hierarchy, an N5 container or a folder of TIFF files for reading.

    Parameters
    ----------
    store : Store, path, URI or mapping
        The hierarchy.
    strict : bool, optional
        Whether documents must follow the specification strictly, as for `open`.

    Returns
    -------
    Array or Group
        The root.

    Raises
    ------
    NodeNotFoundError
        If there is no hierarchy.
    """
    try:
        return open_node(store, mode="r", strict=strict)
    except NodeNotFoundError:
        from zarrlite import n5, tiff  # imported here: few hierarchies need these modules

        place = open_store(store)
        if place.size("attributes.json") is not None:
            return n5.open(place)
        if any(key.lower().endswith((".tif", ".tiff")) for key in place.list_prefix("")):
            return tiff.open_folder(place)
        raise


class PlainStore(Store):
    """A read-only store with the documents and chunks of a node as ordinary Zarr v3.

    Parameters
    ----------
    root : Array or Group
        The node that becomes the root.
    strict : bool, optional
        Whether documents must follow the specification strictly, as for `open`.
    consolidate : bool, optional
        Whether to add consolidated metadata to groups that are stored without it. Readers that cannot list a store, for
        example over HTTP, need it to find the members. It is omitted for groups with more than `MAX_COPIES` nodes.
    """

    read_only = True

    def __init__(self, root: Array | Group, *, strict: bool = True, consolidate: bool = False) -> None:
        self.root = root
        self.strict = strict
        self.consolidate = consolidate
        self.limits = root.store.limits
        self._nodes: dict[str, PlainArray | PlainGroup] = {}

    def __repr__(self) -> str:
        return f"PlainStore({self.root!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlainStore):
            return False
        return (self.root.store, self.root.path) == (other.root.store, other.root.path)

    def __hash__(self) -> int:
        return hash((PlainStore, self.root.store, self.root.path))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.root, self.strict, self.consolidate)

    def location(self, prefix: str = "") -> tuple[Hashable, str]:
        return (PlainStore, self.root.store.location()), key_prefix(self.root.path) + prefix

    # Nodes

    def _node(self, path: str) -> PlainArray | PlainGroup | None:
        """Return the node at a path, relative to the root. Returns None if there is no node."""
        return self._nodes.get(path) or self._read_node(path)

    def _read_node(self, path: str) -> PlainArray | PlainGroup | None:
        full_path = (key_prefix(self.root.path) + path).rstrip("/")
        metadata = load(self.root.store, full_path, strict=self.strict)
        found: PlainArray | PlainGroup | None = None
        if isinstance(metadata, ArrayMetadata):
            found = PlainArray(Array(self.root.store, full_path, metadata, self.root.options))
        elif metadata is not None:
            group = Group(self.root.store, full_path, metadata, strict=self.strict)
            found = PlainGroup(group, self.consolidate)
        if len(self._nodes) >= MAX_NODES:
            self._nodes.clear()
        if found is None:
            self._nodes.pop(path, None)
        else:
            self._nodes[path] = found
        return found

    # Values

    def source(self, key: str) -> Source:
        *names, last = check_key(key).split("/")
        if last == DOCUMENT:
            node = self._read_node("/".join(names))
            return InMemory(None if node is None else node.document())
        names.append(last)
        count = len(names)
        while count and names[count - 1].isdecimal():
            count -= 1
        if not count or names[count - 1] != "c":  # a chunk key is "c", followed by numbers
            return InMemory(None)
        node = self._node("/".join(names[: count - 1]))
        return node.chunk("/".join(names[count - 1 :])) if isinstance(node, PlainArray) else InMemory(None)

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

    # Listing

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        pending = [""]
        check_prefix(prefix)
        while pending:
            path = pending.pop()
            node = self._listed(path)
            if node is None:
                continue
            start = key_prefix(path)
            yield from (start + key for key in (DOCUMENT, *node.keys()) if (start + key).startswith(prefix))
            if isinstance(node, PlainGroup):
                only = prefix[len(start) :].partition("/")[0]  # no other member can contain keys with the prefix
                pending += [start + name for name in ([only] if only else sorted(node.names(), reverse=True))]

    def _listed(self, path: str) -> PlainArray | PlainGroup | None:
        """Return the node at a path. Returns None, after a warning, if its document is refused: a listing skips it."""
        try:
            return self._node(path)
        except MetadataError as error:
            warnings.warn(f"{self!r}: the node {path!r} is skipped: {error}", stacklevel=3)
            return None

    def list_dir(self, prefix: str) -> Listing:
        node = self._listed(check_prefix(prefix).rstrip("/"))
        if not isinstance(node, PlainGroup):
            return super().list_dir(prefix)
        return [prefix + DOCUMENT], [f"{prefix}{name}/" for name in sorted(node.names())]

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise ReadOnlyError(f"{self!r} is read-only")

    set = erase = erase_prefix = change = _refuse


def _rebuild(root: Array | Group, strict: bool, consolidate: bool) -> PlainStore:
    return PlainStore(root, strict=strict, consolidate=consolidate)


class PlainGroup:
    """A group as ordinary Zarr v3, whose consolidated metadata contains plain documents."""

    def __init__(self, group: Group, consolidate: bool) -> None:
        self._group = group
        self._consolidate = consolidate
        self.names = group.keys

    def document(self) -> bytes:
        """Return the document."""
        metadata = self._group.metadata
        copies: dict[str, Json] | None = None
        if metadata.consolidated is not None:
            copies = {path: self._copy(path, document) for path, document in metadata.consolidated.items()}
        elif self._consolidate:
            copies = self._new_copies()
        return serialize(GroupMetadata(metadata.attributes, copies))

    def _new_copies(self) -> dict[str, Json] | None:
        """Return the documents of all nodes below the group. Returns None if they are too many or cannot be listed."""
        copies: dict[str, Json] = {}
        try:
            for path, node in self._group._walk(None):
                if len(copies) == MAX_COPIES:
                    return None
                if isinstance(node, Array):
                    copies[path] = PlainArray(node).metadata.to_json()
                elif isinstance(node, Group):
                    copies[path] = GroupMetadata(node.metadata.attributes).to_json()
        except StoreError:
            return None
        return copies

    def _copy(self, path: str, document: Any) -> Json:
        """Return the plain document of a node below this group. A document that is refused is returned unchanged."""
        try:
            metadata = parse_copy(document, strict=self._group._strict)
        except MetadataError:
            return document
        if isinstance(metadata, GroupMetadata):
            return GroupMetadata(metadata.attributes).to_json()
        full_path = key_prefix(self._group.path) + path
        return PlainArray(Array(self._group.store, full_path, metadata)).metadata.to_json()

    def keys(self) -> Sequence[str]:
        """Return no keys: a group has no chunks."""
        return ()


class PlainArray:
    """An array as ordinary Zarr v3: its document and its chunks.

    Attributes
    ----------
    metadata : ArrayMetadata
        The plain metadata.
    """

    def __init__(self, array: Array) -> None:
        folded = array.metadata.folded()
        chunks = Chunks(array._base, key_prefix(array.path), array.metadata, array.options, fold=True)
        as_stored = served(chunks) if isinstance(folded.chunk_grid, Regular) else None
        self._form: Served | Decoded = as_stored or Decoded(array, chunks)
        self.metadata: ArrayMetadata = folded.replace(
            chunk_grid=self._form.grid or folded.chunk_grid,
            chunk_key_encoding=_KEYS,
            storage_transformers=None,
            codecs=self._form.codecs,
            extra={},
        )

    def document(self) -> bytes:
        """Return the document."""
        return serialize(self.metadata)

    def chunk(self, key: str) -> Source:
        """Return the chunk with a key in the default encoding, as a source."""
        coords = _KEYS.decode(key, len(self.metadata.shape))
        return InMemory(None) if coords is None else self._form.chunk(coords)

    def keys(self) -> list[str]:
        """Return the keys of all stored chunks, in the default encoding."""
        return [_KEYS.encode(coords) for coords in self._form.stored()]
