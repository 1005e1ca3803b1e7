"""Everything that arrays and groups share: a location in a store, a metadata document, and attributes.

Rules
- A document is changed under the lock of its key, so that two writers that set attributes do not undo each other's
  changes.
- A node is created by storing its document, and only one of several concurrent writers succeeds. Chunks that another
  node left at the path are erased first, under the lock of the document.
- A node is removed by erasing its document first, then the documents below it, then everything else.
  Therefore, a node that can be opened still has all of its values, and a group still has all of its members.
- Before several documents are erased, they are listed under the key `__zarrlite.removal`. If a removal was interrupted
  at a path or above it, it is completed before a node is created at the path, so that members of a removed group do not
  reappear. This list is ignored if the document of the removed node exists. Nodes that other programs have created
  since the interruption are kept.
- Consolidated metadata in the groups above is removed before a change and restored after it (consolidated.py).
- Nothing is stored that zarrlite could not open again: limits are checked first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from os import F_OK, access
from types import TracebackType
from typing import Any, Self

from zarrlite.buffers.ranges import Buffer
from zarrlite.chunks.chunks import Chunks
from zarrlite.errors import MetadataError, NodeExistsError, NodeNotFoundError, ReadOnlyError
from zarrlite.extensions.config import (
    MAX_DOCUMENT_DEPTH,
    PLAIN,
    PLAIN_BYTES,
    Json,
    dump_json,
    load_json,
    non_finite,
)
from zarrlite.formats.foreign import ForeignStore
from zarrlite.metadata.documents import GroupMetadata, Metadata, Options, parse_node, serialize
from zarrlite.names import DOCUMENT, REMOVAL, check_new_path, key_prefix
from zarrlite.nodes.consolidated import DOCUMENT_RANGE, CopiesAbove, ancestors
from zarrlite.stores import LocalStore, MappingStore, PrefixStore, ReadOnlyStore, Store
from zarrlite.stores.views import prefetched

_find_attributes = re.compile(r'"attributes"\s*:\s*').search
_MAX_KNOWN_DOCUMENTS = 256  # documents; the cache of parsed documents is cleared at this size
_VERSION_2 = (".zarray", ".zgroup")  # the documents of Zarr v2 nodes
_ATTEMPTS = 10  # attempts to overwrite a node that other writers create at the same time
_known_documents: dict[str, Metadata] = {}  # valid parsed documents, keyed by their text without attributes


def load(store: Store, path: str, *, strict: bool = True, options: Options | None = None) -> Metadata | None:
    """Read the metadata of a node. Returns None if there is no node at this path.

    Many documents in a hierarchy differ only in their attributes, so parsed documents are cached.
    """
    # core spec, Stored representation: "stripping the leading / of the path and appending /zarr.json"
    key = f"{path}/{DOCUMENT}" if path else DOCUMENT
    data = store.get(key, DOCUMENT_RANGE)
    if data is None:
        return None
    parts = None if options or not strict else _split_attributes(data)
    if parts is None:
        return parse_node(data, document=key, strict=strict, options=options)
    text, attributes = parts
    metadata = _known_documents.get(text)
    if metadata is None:
        content = load_json(data, key)
        metadata = parse_node(content, document=key)
        if _is_cacheable(metadata, text):
            _remember(text, metadata)
        return metadata
    return metadata if attributes is None else metadata.with_attributes(attributes)


def has_text(store: Store, path: str) -> bool:
    """Whether the document of a node can be read, valid or not.

    Returns False if the document is in another format and cannot be converted.
    """
    try:
        store.get(key_prefix(path) + DOCUMENT, DOCUMENT_RANGE)
    except MetadataError:
        return False
    return True


def parse_copy(document: Mapping[str, Json], *, strict: bool) -> Metadata:
    """Parse a document from consolidated metadata, using the cache of `load`."""
    attributes = document.get("attributes")
    if not strict or type(attributes) is not dict:
        return parse_node(document, strict=strict)
    text = json.dumps({**document, "attributes": {}})
    metadata = _known_documents.get(text)
    if metadata is None:
        metadata = parse_node(document)
        if _is_cacheable(metadata, text):
            _remember(text, metadata)
        return metadata
    return metadata.with_attributes(attributes)


def _remember(text: str, metadata: Metadata) -> None:
    """Cache a valid document under its text without attributes."""
    if len(_known_documents) >= _MAX_KNOWN_DOCUMENTS:
        _known_documents.clear()
    _known_documents[text] = metadata.with_attributes(None)


def _is_cacheable(metadata: Metadata, text: str) -> bool:
    """Whether valid documents that become this text without attributes differ only in the node's attributes.

    `_split_attributes` empties the first member "attributes" in a text. This must be a member of the node, not of an
    object inside the node. To check this, the text is parsed with the number 0 in place of the attributes: the number
    must become the node's attributes. Documents with other members that a caller could change are not cached.
    """
    if metadata.extra or getattr(metadata, "consolidated", None) is not None:
        return False
    member = _find_attributes(text)
    if member is None:
        return metadata.attributes is None  # otherwise, the name "attributes" is written with escapes
    probed = PLAIN.decode(f"{text[: member.end()]}0{text[member.end() + len('{}') :]}")
    return bool(probed.get("attributes") == 0)  # only the inserted 0 equals 0: valid attributes are an object


def _split_attributes(data: Buffer) -> tuple[str, dict[str, Json] | None] | None:
    """Return the text of a document with its attributes emptied, and the attributes that were removed from it.

    The text has not been validated yet. Documents for which the same text is returned differ only in the removed
    attributes. Returns None if the document is long, deeply nested, not ASCII, or otherwise unusual.
    """
    if len(data) > PLAIN_BYTES:
        return None
    try:
        text = bytes(data).decode("ascii")
        member = _find_attributes(text)
        if member is None:
            return text, None
        if text.startswith("{}", member.end()):
            return text, {}
        attributes, end = PLAIN.raw_decode(text, member.end())
    except (ValueError, RecursionError):
        return None
    if type(attributes) is not dict or text.count("[") + text.count("{") > MAX_DOCUMENT_DEPTH:
        return None
    return f"{text[: member.end()]}{{}}{text[end:]}", attributes


def find_draft(store: Store) -> Any:
    """Return a store's hierarchy in the format of the 2022 draft. Returns None if the store has no such hierarchy."""
    from zarrlite.formats import draft_store  # imported here: keeps `import zarrlite` light

    return draft_store.find_draft(store)


def find_v2(store: Store, path: str, *, use_consolidated: bool | None, search: bool) -> Any:
    """Return a view of a Zarr v2 hierarchy, as `v2_store.find_v2` does. Returns None for other stores."""
    from zarrlite.formats import v2_store  # imported here: keeps `import zarrlite` light

    return v2_store.find_v2(store, path, use_consolidated=use_consolidated, search=search)


def is_version_2(store: Store, path: str) -> bool:
    """Whether there is a Zarr v2 document at a path."""
    return any(store.size(key_prefix(path) + name) is not None for name in _VERSION_2)


def warn_version_2(store: Store, path: str) -> None:
    """Warn about Zarr v2 documents next to a `zarr.json` on a local disk. No other stores are checked."""
    if type(store) is ReadOnlyStore:  # not isinstance, which is slow for abstract classes
        store = store.store
    if type(store) is LocalStore:
        directory = f"{store.root}/{path}"
        if access(f"{directory}/.zarray", F_OK) or access(f"{directory}/.zgroup", F_OK):
            from zarrlite.formats import v2_store  # imported here: keeps `import zarrlite` light

            v2_store.warn_both(store, path)


def not_found(store: Store, path: str) -> NodeNotFoundError:
    """Return the error for a path without a node. The error mentions any metadata in another format at the path."""
    place = f"no array or group at {path!r} in {store!r}" if path else f"no array or group in {store!r}"
    if isinstance(store, ForeignStore):
        reason = f"the hierarchy of {store.format} has no node there"
    elif is_version_2(store, path):
        reason = "there is only a Zarr v2 node, which is not a member of this Zarr v3 hierarchy; open its path directly"
    else:
        reason = f"there is no {key_prefix(path)}{DOCUMENT}"
    return NodeNotFoundError(f"{place}: {reason}", path=path)


def write_new(store: Store, path: str, metadata: Metadata, *, overwrite: bool, chunks: Chunks | None = None) -> None:
    """Create a node, and any missing groups above it. Everything is checked before the store is changed.

    If several writers create a node at the same path, only one succeeds; with `overwrite`, all succeed, one after the
    other. `chunks` are the chunks of a new array: any that are already stored were left by another node and are erased.
    """
    key = key_prefix(path) + DOCUMENT
    document = serialize(metadata, key)
    for _ in range(_ATTEMPTS):
        missing = clear(store, path, overwrite=overwrite)
        with CopiesAbove(store, path, (group for group in ancestors(path) if group not in missing)) as copies:
            copies.take_out()
            _create_groups(store, path, missing)
            created = _create(store, key, document, chunks)
            copies.put_back([*missing, path], replaced=True)
        if created:
            return
        if not overwrite:
            break
    raise _exists(store, path)


def _create(store: Store, key: str, document: bytes, chunks: Chunks | None) -> bool:
    """Store the document of a new node. Returns False if a document already exists."""
    with store.lock(key):
        if store.size(key) is not None:
            return False
        if chunks is not None:
            chunks.erase_leftovers()
        return store.set(key, document, new=True)


def _create_groups(store: Store, path: str, missing: Iterable[str]) -> None:
    """Create groups above a node, the highest first. Other writers may create them at the same time."""
    for group in missing:
        document = serialize(GroupMetadata(attributes={}))
        if not store.set(key_prefix(group) + DOCUMENT, document, new=True):
            missing_ancestors(store, path)  # raises an error if that node is an array


def write_copies(store: Store, path: str, documents: Sequence[tuple[str, Buffer]]) -> None:
    """Store the documents of a node and of the nodes below it; the node's own document is the last one.

    The keys in `documents` are relative to the path.
    """
    prefix = key_prefix(path)
    missing = missing_ancestors(_looked_up(store, ancestors(path)), path)
    with CopiesAbove(store, path, (group for group in ancestors(path) if group not in missing)) as copies:
        copies.take_out()
        _create_groups(store, path, missing)
        for key, document in documents[:-1]:
            store.set(prefix + key, document)
        created = True
        for key, document in documents[-1:]:
            created = store.set(prefix + key, document, new=True)
        changed = [(prefix + key)[: -len(DOCUMENT)].rstrip("/") for key, _ in documents]
        copies.put_back([*missing, *changed], replaced=True)
    if not created:
        raise _exists(store, path)


def make_room(store: Store, path: str, *, overwrite: bool) -> None:
    """Remove the node at a path if `overwrite` is set, and create any missing groups above it.

    Consolidated metadata is removed from the groups above and not restored, because it could not contain the new
    documents, which the caller stores later.
    """
    missing = clear(store, path, overwrite=overwrite)
    with CopiesAbove(store, path, (group for group in ancestors(path) if group not in missing)) as copies:
        copies.take_out()
        _create_groups(store, path, missing)


def clear(store: Store, path: str, *, overwrite: bool) -> list[str]:
    """Remove the node at a path if `overwrite` is set; otherwise raise an error if there is a node.

    Nothing is changed if no node can be created at the path. Removals that were interrupted at the path, or at a
    missing group above it, are completed. Returns the paths above this one that have no node.
    """
    prefix = key_prefix(path)
    check_new_path(path)
    found = _looked_up(store, [*ancestors(path), path])
    if not overwrite and any(found.size(prefix + name) is not None for name in (DOCUMENT, *_VERSION_2)):
        raise _exists(store, path)
    missing = missing_ancestors(found, path)
    for group in missing:
        check_new_path(group)
    for group in missing:
        if found.size(key_prefix(group) + REMOVAL) is not None:
            complete_removal(store, group)
    if overwrite:
        remove(store, path)
    elif found.size(prefix + REMOVAL) is not None:
        complete_removal(store, path)
    return missing


def _looked_up(store: Store, paths: Iterable[str]) -> Store:
    """Return a view of a store. If the store is remote, the view prefetches all documents at these paths together."""
    keys = [key_prefix(path) + name for path in paths for name in (DOCUMENT, *_VERSION_2, REMOVAL)]
    return prefetched(store, keys, DOCUMENT_RANGE)


def _exists(store: Store, path: str) -> NodeExistsError:
    return NodeExistsError(f"a node already exists at {path!r} in {store!r}; overwrite=True replaces it", path=path)


def remove(store: Store, path: str) -> bool:
    """Remove a node and everything below it. Returns False if there is no document at the path or below it.

    Documents are erased first, a group's document before those of its members. No chunk is erased while a document
    exists. If only nodes below the path have documents, as after an interrupted removal, only those nodes are removed.
    """
    prefix = key_prefix(path)
    completed = complete_removal(store, path)
    documents = _documents(store, prefix)
    if not documents:
        return completed
    with CopiesAbove(store, path, ancestors(path)) as copies:
        copies.take_out()
        if len(documents) > 1:
            below = [key[len(prefix) :] for key in documents]
            store.set(prefix + REMOVAL, dump_json({"documents": below}, indent=None))
        for key in documents:
            store.erase(key)
        copies.put_back((), replaced=True)
    _erase_below(store, prefix, documents)
    return True


def complete_removal(store: Store, path: str) -> bool:
    """Complete an interrupted removal of the node at a path. Returns False if no removal was interrupted.

    Only the nodes listed by that removal are removed: other programs may have created nodes since.
    """
    prefix = key_prefix(path)
    if store.size(prefix + REMOVAL) is None:
        return False
    with CopiesAbove(store, path, ancestors(path)) as copies, store.lock(prefix + DOCUMENT):
        data = store.get(prefix + REMOVAL)
        if data is None or store.size(prefix + DOCUMENT) is not None:
            return False
        listed = {prefix + key for key in _parse_removal(data, store, path)}
        found = _documents(store, prefix)
        copies.take_out()
        kept = [key for key in found if key not in listed]
        for key in filter(listed.__contains__, found):  # in the order of `found`: a group before its members
            store.erase(key)
        copies.put_back([key.rpartition("/")[0] for key in kept], replaced=True)
        _erase_below(store, prefix, listed, kept)
    return True


def _parse_removal(data: Buffer, store: Store, path: str) -> list[str]:
    """Return the documents listed by a removal, as keys relative to the path."""
    key = key_prefix(path) + REMOVAL
    try:
        documents: Any = load_json(data, key).get("documents")
    except MetadataError:
        documents = None
    if not isinstance(documents, list) or not all(isinstance(name, str) and _is_document(name) for name in documents):
        message = f"the removal of {path!r} was interrupted, and {key!r} in {store!r} is damaged; erase that key"
        raise NodeExistsError(message, path=path)
    return documents


def _is_document(key: str) -> bool:
    return key.rpartition("/")[2] in (DOCUMENT, *_VERSION_2)


def _documents(store: Store, prefix: str) -> list[str]:
    """Return the keys of all documents under a prefix, a group's key before the keys of its members."""
    return sorted(filter(_is_document, store.list_prefix(prefix)), key=lambda key: key.count("/"))


def _erase_below(store: Store, prefix: str, documents: Iterable[str], kept: Collection[str] = ()) -> None:
    """Erase everything under the prefixes of these documents, but skip a prefix that contains a kept document."""
    prefixes = dict.fromkeys(key[: key.rfind("/") + 1] for key in documents)
    if prefix in prefixes and not kept:
        store.erase_prefix(prefix)
        return
    for below in prefixes:
        if not any(key.startswith(below) for key in kept):
            store.erase_prefix(below)
    store.erase(prefix + REMOVAL)


def missing_ancestors(store: Store, path: str) -> list[str]:
    """Return the paths above this one that have no node, the root first. Raises an error if one of them is an array."""
    missing = []
    for ancestor in ancestors(path):
        try:
            metadata = load(store, ancestor)
        except MetadataError:
            draft = find_draft(store)
            if draft:
                raise draft.refuse_new(path) from None
            raise
        if metadata is None:
            if is_version_2(store, ancestor):
                raise ReadOnlyError(
                    f"{path!r} cannot be created in {store!r}: {ancestor!r} is a Zarr v2 node, which is read-only",
                    path=path,
                )
            missing.append(ancestor)
        elif metadata.node_type != "group":
            # core spec, Concepts and terminology: groups may have children, "array nodes may not"
            message = f"{path!r} cannot be created: {ancestor!r} is an array, and only groups have members"
            raise NodeExistsError(message, path=ancestor)
    return missing


class Node:
    """An array or a group: the base class of `Array` and `Group`.

    Parameters
    ----------
    store : Store
        The store that holds the hierarchy.
    path : str
        Path of the node in the store, without a leading slash; empty for the root.

    Attributes
    ----------
    store : Store
        The store that holds the hierarchy.
    path : str
        Path of the node in the store, without a leading slash; empty for the root.
    metadata : ArrayMetadata or GroupMetadata
        The parsed metadata document, as it was when the node was opened or last changed through this object.
    """

    metadata: Metadata

    def __init__(self, store: Store, path: str) -> None:
        self.store = store
        self.path = path
        self._base: Store = PrefixStore(store, key_prefix(path)) if path else store

    @property
    def name(self) -> str:
        """The path with a leading slash.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_group("memory://", path="a/b").name
        '/a/b'
        """
        return "/" + self.path  # core spec, Concepts and terminology: "The root node has a path of /"

    @property
    def _where(self) -> str:
        """The name and the store, for `repr`. A store in memory is omitted, because it has no location."""
        store = self.store
        while isinstance(store, (ReadOnlyStore, ForeignStore)):
            store = store.store
        return self.name if isinstance(store, MappingStore) else f"{self.name} in {store!r}"

    @property
    def basename(self) -> str:
        """The last name in the path; empty for the root.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_group("memory://", path="a/b").basename
        'b'
        """
        return self.path.rpartition("/")[2]

    @property
    def read_only(self) -> bool:
        """Whether the node refuses changes: it was opened with `mode="r"`, or its store is read-only.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group.read_only, zarrlite.open_group(group.store, mode="r").read_only
        (False, True)
        """
        return self.store.read_only

    @property
    def attrs(self) -> Attributes:
        """The attributes, as a mapping. Every change is written to the store immediately.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://", attributes={"units": "K"})
        >>> group.attrs["station"] = 7
        >>> dict(group.attrs)
        {'units': 'K', 'station': 7}
        """
        return Attributes(self)

    def _repr_html_(self) -> str:
        """Return the picture that notebooks show, drawn without reading chunks."""
        from zarrlite.tools.pictures import node_html  # imported here: keeps `import zarrlite` light

        return node_html(self)  # type: ignore[arg-type]

    def to_svg(self) -> str:
        """Draw the node, without reading chunks.

        Returns
        -------
        str
            An SVG document.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_array("memory://", shape=(4, 4), dtype="int8").to_svg()[:4]
        '<svg'
        """
        from zarrlite.tools.pictures import node_svg  # imported here: keeps `import zarrlite` light

        return node_svg(self)  # type: ignore[arg-type]

    def update_attributes(self, new_attributes: Mapping[str, Json]) -> Self:
        """Add or replace several attributes in one write.

        The document is changed under the lock of its key, so that attributes set by other writers in the meantime are
        kept.

        Parameters
        ----------
        new_attributes : mapping
            The attributes to set; values are JSON.

        Returns
        -------
        Array or Group
            The node itself.

        Raises
        ------
        ArgumentError
            If a value cannot be written as JSON. Nothing is changed.
        ReadOnlyError
            If the node is read-only.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_group("memory://").update_attributes({"a": 1, "b": [2]}).attrs
        Attributes({'a': 1, 'b': [2]})
        """
        self.attrs.update(new_attributes)
        return self

    def delete(self) -> None:
        """Remove the node and everything below it from the store.

        The metadata document is erased first, then the documents of the nodes below, then everything else. If the
        removal is interrupted, the node no longer exists, and each node below it is either gone or complete. To remove
        the rest, delete the node with `del group[name]`, or create a node at the path or below it.

        Raises
        ------
        ReadOnlyError
            If the node is read-only.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://", path="a")
        >>> group.delete()
        >>> list(group.store.list())
        ['zarr.json']
        """
        self._check_writable()
        remove(self.store, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the store, which completes a zip file. After an exception, a zip file is left unchanged."""
        self.store.__exit__(kind, error, traceback)

    def _check_writable(self) -> None:
        if self.read_only:
            if isinstance(self.store, ForeignStore):
                raise ReadOnlyError(
                    f"{self.name!r} cannot be changed: hierarchies of {self.store.format} are read-only"
                )
            raise ReadOnlyError(f"{self!r} was opened for reading only")

    def _change_metadata(self, change: Callable[[Any], Any]) -> Any:
        """Change the stored document, which other writers may already have changed. Returns the new metadata."""
        with CopiesAbove(self.store, self.path, ancestors(self.path)) as copies:
            changed = self._rewrite(change, copies.take_out)
            copies.put_back([self.path])
        return changed

    def _rewrite(self, change: Callable[[Any], Any], before: Callable[[], None] | None = None) -> Any:
        """Change the stored document under its lock. `before` is called when the change has been validated."""
        self._check_writable()
        key = key_prefix(self.path) + DOCUMENT
        changed: Any = None

        def rewrite(data: Buffer | None) -> bytes:
            nonlocal changed
            if data is None:
                raise not_found(self.store, self.path)
            changed = change(parse_node(data, document=key, strict=False))
            document = serialize(changed, key)
            if before is not None:
                before()
            return document

        self._base.update(DOCUMENT, rewrite)
        return changed


class Attributes(MutableMapping[str, Json]):
    """The attributes of a node: a mapping that writes every change to the store immediately.

    Each change reads the stored document, changes its attributes and writes it back, atomically and under the lock of
    its key, so that attributes set by other writers in the meantime are kept. Values are JSON, and are returned as a
    reader of the document sees them: tuples become lists, and member names become text. Reading does not access the
    store: it returns the attributes as they were when the node was opened or last changed through this object.

    Parameters
    ----------
    node : Node
        The array or the group.

    Examples
    --------
    >>> import zarrlite
    >>> attrs = zarrlite.create_group("memory://").attrs
    >>> attrs["range"] = (0, 10)
    >>> attrs
    Attributes({'range': [0, 10]})
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def asdict(self) -> dict[str, Json]:
        """Return a copy of the attributes.

        Returns
        -------
        dict
            A new dictionary, which shares its values with the node.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_group("memory://", attributes={"a": 1}).attrs.asdict()
        {'a': 1}
        """
        return dict(self._node.metadata.attributes or {})

    def put(self, attributes: Mapping[str, Json]) -> None:
        """Replace all attributes in one write.

        Parameters
        ----------
        attributes : mapping
            The new attributes; values are JSON.

        Raises
        ------
        ArgumentError
            If a value cannot be written as JSON. Nothing is changed.
        ReadOnlyError
            If the node is read-only.

        Examples
        --------
        >>> import zarrlite
        >>> attrs = zarrlite.create_group("memory://", attributes={"a": 1}).attrs
        >>> attrs.put({"b": 2})
        >>> attrs
        Attributes({'b': 2})
        """
        self._change(dict(attributes), lambda old, new: new)

    def __getitem__(self, key: str) -> Json:
        return (self._node.metadata.attributes or {})[key]

    def __setitem__(self, key: str, value: Json) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._change({}, lambda old, new: {k: v for k, v in old.items() if k != key})

    def update(  # type: ignore[override]  # one signature replaces the overloads of the base class
        self, other: Mapping[str, Json] | Iterable[tuple[str, Json]] = (), /, **attributes: Json
    ) -> None:
        """Add or replace several attributes in one write.

        Parameters
        ----------
        other : mapping or iterable of (str, value), optional
            The attributes to set; values are JSON.
        **attributes : JSON
            More attributes to set.

        Raises
        ------
        ArgumentError
            If a value cannot be written as JSON. Nothing is changed.
        ReadOnlyError
            If the node is read-only.

        Examples
        --------
        >>> import zarrlite
        >>> attrs = zarrlite.create_group("memory://", attributes={"a": 1}).attrs
        >>> attrs.update({"a": 2}, b=3)
        >>> attrs
        Attributes({'a': 2, 'b': 3})
        """
        self._change(dict(other, **attributes), lambda old, new: {**old, **new})

    def __iter__(self) -> Iterator[str]:
        return iter(self._node.metadata.attributes or {})

    def __len__(self) -> int:
        return len(self._node.metadata.attributes or {})

    def __repr__(self) -> str:
        return f"Attributes({self.asdict()!r})"

    def _change(
        self, given: dict[str, Json], change: Callable[[dict[str, Json], dict[str, Json]], dict[str, Json]]
    ) -> None:
        """Replace the stored attributes with `change(stored, given)`. The given attributes must be JSON."""

        def changed(metadata: Any) -> Any:
            old = dict(metadata.attributes or {})
            return metadata.with_attributes(change(old, _checked(given, old)))

        written = self._node._change_metadata(changed)
        self._node.metadata = self._node.metadata.with_attributes(written.attributes)


def _checked(given: dict[str, Json], old: dict[str, Json]) -> dict[str, Json]:
    """Return attributes in the form that readers will see: member names become text, and tuples become lists.

    Raises ArgumentError for values that are not JSON. A NaN that is already stored may be passed again.
    """
    kept = {
        name: old[name] for name in given if any(non_finite(old.get(name))) and _text(given[name]) == _text(old[name])
    }
    new = {name: value for name, value in given.items() if name not in kept}
    return {**load_json(dump_json(new), "attributes"), **kept}


def _text(value: Json) -> bytes:
    return dump_json({"": value}, allow_nan=True)
