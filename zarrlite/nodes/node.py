"""What arrays and groups share: a place in a store, a document, attributes.

Rules
- The document is changed under the lock of its key, so that two writers of attributes do not lose each other's.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

from zarrlite.buffers.ranges import Buffer, ByteRange
from zarrlite.errors import MetadataError, NodeExistsError, NodeNotFoundError, ReadOnlyError
from zarrlite.extensions.config import (
    MAX_DOCUMENT_BYTES,
    MAX_DOCUMENT_DEPTH,
    PLAIN,
    PLAIN_BYTES,
    Json,
    dump_json,
    load_json,
)
from zarrlite.formats.foreign import ForeignStore
from zarrlite.metadata.documents import GroupMetadata, Metadata, Options, parse_node, serialize
from zarrlite.names import DOCUMENT, key_prefix
from zarrlite.stores import PrefixStore, Store

M = TypeVar("M", bound=Metadata)
_find_member = re.compile(r'"attributes"\s*:\s*').search
_MEMO_ENTRIES = 256
_ENOUGH = ByteRange(0, MAX_DOCUMENT_BYTES + 1)  # of a document, to see that it is too long
_memo: dict[str, Metadata] = {}  # what was found to be right: many documents differ in their attributes only


def load(store: Store, path: str, *, strict: bool = True, options: Options | None = None) -> Metadata | None:
    """Read the metadata of a node; None: there is none at this path."""
    key = key_prefix(path) + DOCUMENT
    data = store.get(key, _ENOUGH)
    if data is None:
        return None
    simple = None if options or not strict else _split_attributes(data)
    if simple is None:
        return parse_node(data, document=key, strict=strict, options=options)
    text, attributes = simple
    metadata = _memo.get(text)
    if metadata is None:
        content = load_json(data, key)
        metadata = parse_node(content, document=key)
        # what was cut out must be the attributes of the node itself, not those of something within
        if load_json(text.encode()) == {**content, **({} if attributes is None else {"attributes": {}})}:
            if len(_memo) >= _MEMO_ENTRIES:
                _memo.clear()
            _memo[text] = metadata.with_attributes(None)
        return metadata
    return metadata if attributes is None else metadata.with_attributes(attributes)


def _split_attributes(data: bytes | bytearray | memoryview) -> tuple[str, dict[str, Json] | None] | None:
    """The text of a document with empty attributes in place of its own, and those; None: it is not as simple as that.

    Nothing is known of the text yet. If it is the text of another document, both differ in their attributes at most.
    """
    if len(data) > PLAIN_BYTES:
        return None
    try:
        text = bytes(data).decode("ascii")
        found = _find_member(text)
        if found is None:
            return text, None
        if text.startswith("{}", found.end()):
            return text, {}
        attributes, end = PLAIN.raw_decode(text, found.end())
    except (ValueError, RecursionError):
        return None
    if type(attributes) is not dict or text.count("[") + text.count("{") > MAX_DOCUMENT_DEPTH:
        return None
    return f"{text[: found.end()]}{{}}{text[end:]}", attributes


def find_draft(store: Store) -> Any:
    """The hierarchy of the draft that a store holds, if it holds one; what is needed for that is loaded now."""
    from zarrlite.formats import draft_store  # late: keeps the import light

    return draft_store.find_draft(store)


def is_version_2(store: Store, path: str) -> bool:
    """Whether a path has the documents of Zarr version 2."""
    return any(store.size(key_prefix(path) + name) is not None for name in (".zarray", ".zgroup"))


def not_found(store: Store, path: str) -> NodeNotFoundError:
    """The error for a path without a node, with what is there instead."""
    where = f"no array or group at {path!r} in {store!r}" if path else f"no array or group in {store!r}"
    why = f"there is no {key_prefix(path)}{DOCUMENT}"
    if isinstance(store, ForeignStore):
        why = f"the hierarchy of {store.format} has none there"
    elif is_version_2(store, path):
        why = "what is there is Zarr version 2, and zarrlite reads version 3"
    return NodeNotFoundError(f"{where}: {why}", path=path)


def write_new(store: Store, path: str, metadata: Metadata, *, overwrite: bool) -> None:
    """Create a node, and groups above it where there are none; nothing is touched before all of that is known to do."""
    document = serialize(metadata)
    make_room(store, path, overwrite=overwrite)
    store.set(key_prefix(path) + DOCUMENT, document)


def make_room(store: Store, path: str, *, overwrite: bool) -> None:
    """Remove the node that is there, if that is wanted, and create the groups above."""
    prefix = key_prefix(path)
    exists = store.size(prefix + DOCUMENT) is not None or is_version_2(store, path)
    if exists and not overwrite:
        raise NodeExistsError(
            f"there is a node at {path!r} in {store!r} already; overwrite=True replaces it", path=path
        )
    missing = _missing_ancestors(store, path)
    drop_copies(store, path)
    if exists:
        store.erase_prefix(prefix)
    for ancestor in missing:
        store.set(key_prefix(ancestor) + DOCUMENT, serialize(GroupMetadata(attributes={})))


def _missing_ancestors(store: Store, path: str) -> list[str]:
    """Paths above this one that have no node yet, the root first; an array among them has no children."""
    names = path.split("/") if path else []
    missing = []
    for ancestor in itertools.accumulate(["", *names[:-1]] if names else [], lambda a, b: f"{a}/{b}" if a else b):
        try:
            metadata = load(store, ancestor)
        except MetadataError:
            draft = find_draft(store)
            if draft:
                raise draft.refuse_new(path) from None
            raise
        if metadata is None:
            missing.append(ancestor)
        elif metadata.node_type != "group":
            raise NodeExistsError(f"{ancestor!r} is an array; there can be no {path!r} below it", path=ancestor)
    return missing


def drop_copies(store: Store, path: str) -> None:
    """Remove the consolidated metadata of the groups above a node that changes: readers would believe it."""
    names = path.split("/") if path else []
    for ancestor in ("/".join(names[:i]) for i in range(len(names))):
        key = key_prefix(ancestor) + DOCUMENT
        if b'"consolidated_metadata"' in bytes(store.get(key) or b""):
            store.update(key, _without_copies)


def _without_copies(data: Buffer | None) -> Buffer | None:
    document = {} if data is None else load_json(data)
    if document.pop("consolidated_metadata", None) is None:
        return data
    return dump_json(document)


class Node:
    """An array or a group."""

    metadata: Metadata

    def __init__(self, store: Store, path: str) -> None:
        self.store = store
        self.path = path
        self._base: Store = PrefixStore(store, key_prefix(path)) if path else store

    @property
    def name(self) -> str:
        """The path with a leading slash."""
        return "/" + self.path

    @property
    def basename(self) -> str:
        """The last name of the path."""
        return self.path.rpartition("/")[2]

    @property
    def read_only(self) -> bool:
        return self.store.read_only

    @property
    def attrs(self) -> Attributes:
        """The attributes, as a mapping that writes through."""
        return Attributes(self)

    def _repr_html_(self) -> str:
        """What a notebook shows; nothing is read for it."""
        from zarrlite.tools.pictures import node_html  # late: keeps the import light

        return node_html(self)  # type: ignore[arg-type]

    def to_svg(self) -> str:
        """A picture, as an SVG document; nothing is read for it."""
        from zarrlite.tools.pictures import node_svg  # late: keeps the import light

        return node_svg(self)  # type: ignore[arg-type]

    def update_attributes(self, new: Mapping[str, Json]) -> Any:
        """Add or replace several attributes in one write."""
        self.attrs.update(new)
        return self

    def delete(self) -> None:
        """Remove the node and everything below it."""
        self._check_writable()
        drop_copies(self.store, self.path)
        # the document first: what is left of an interrupted removal is no node any more
        self._base.erase(DOCUMENT)
        self._base.erase_prefix("")

    def _check_writable(self) -> None:
        if self.read_only:
            if isinstance(self.store, ForeignStore):
                raise ReadOnlyError(f"{self!r} cannot be changed: hierarchies of {self.store.format} are read only")
            raise ReadOnlyError(f"{self!r} was opened for reading only")

    def _change_metadata(self, change: Callable[[Any], Any]) -> Any:
        """Replace the stored document by a changed one, whatever others did to it meanwhile."""
        self._check_writable()
        changed: Any = None

        def rewrite(data: Buffer | None) -> bytes:
            nonlocal changed
            if data is None:
                raise not_found(self.store, self.path)
            changed = change(parse_node(data, document=key_prefix(self.path) + DOCUMENT, strict=False))
            return serialize(changed)

        drop_copies(self.store, self.path)
        self._base.update(DOCUMENT, rewrite)
        return changed


class Attributes(MutableMapping[str, Json]):
    """The attributes of a node; every change is written at once."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def asdict(self) -> dict[str, Json]:
        """A copy."""
        return dict(self._node.metadata.attributes or {})

    def put(self, attributes: Mapping[str, Json]) -> None:
        """Replace all attributes."""
        self._change(lambda old: dict(attributes))

    def __getitem__(self, key: str) -> Json:
        return (self._node.metadata.attributes or {})[key]

    def __setitem__(self, key: str, value: Json) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._change(lambda old: {k: v for k, v in old.items() if k != key})

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add or replace several attributes in one write."""
        new = dict(*args, **kwargs)
        self._change(lambda old: {**old, **new})

    def __iter__(self) -> Iterator[str]:
        return iter(self._node.metadata.attributes or {})

    def __len__(self) -> int:
        return len(self._node.metadata.attributes or {})

    def __repr__(self) -> str:
        return f"Attributes({self.asdict()!r})"

    def _change(self, change: Callable[[dict[str, Json]], dict[str, Json]]) -> None:
        def changed(metadata: Any) -> Any:
            attributes = change(dict(metadata.attributes or {}))
            # what is kept is what a reader will see: text for names, lists for tuples
            return metadata.with_attributes(load_json(dump_json(attributes), "attributes"))

        written = self._node._change_metadata(changed)
        self._node.metadata = self._node.metadata.with_attributes(written.attributes)
