"""Groups: a mapping from names to arrays and groups.

Rules
- Members are found by listing; only what is asked for is read and parsed.
- Consolidated metadata is believed by groups opened for reading. It is dropped from the groups above when a node is
  created, changed or removed here; what others change meanwhile it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from zarrlite.chunks.single import ArrayOptions
from zarrlite.errors import ArgumentError, MetadataError, NodeExistsError, NodeNotFoundError, ZarrliteError
from zarrlite.extensions.config import Json, escape
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata, Metadata, parse_node, serialize
from zarrlite.names import DOCUMENT, key_prefix, name_fault, normalize_path
from zarrlite.nodes.array import Array
from zarrlite.nodes.node import Node, load, not_found, write_new
from zarrlite.stores import Store

if TYPE_CHECKING:
    from zarrlite.nodes.info import Info, Tree


class Group(Node):
    """A Zarr group."""

    metadata: GroupMetadata

    def __init__(
        self,
        store: Store,
        path: str,
        metadata: GroupMetadata,
        *,
        options: ArrayOptions = ArrayOptions(),
        strict: bool = True,
        use_consolidated: bool = True,
    ) -> None:
        super().__init__(store, path)
        self.metadata = metadata
        self.options = options  # of the arrays opened through this group
        self._strict = strict
        self._use_consolidated = use_consolidated

    def __reduce__(self) -> tuple[Any, ...]:
        keywords = {"options": self.options, "strict": self._strict, "use_consolidated": self._use_consolidated}
        return _rebuild, (self.store, self.path, self.metadata, keywords)

    def __repr__(self) -> str:
        return f"<Group {self.name}>"

    # members

    def __getitem__(self, path: str) -> Array | Group:
        path = normalize_path(path)
        if not path:
            return self
        full = key_prefix(self.path) + path
        metadata = self._consolidated(path) if self._is_consolidated else load(self.store, full, strict=self._strict)
        if metadata is None:
            raise not_found(self.store, full)
        return self._node(full, metadata)

    def _node(self, path: str, metadata: Metadata) -> Array | Group:
        if isinstance(metadata, ArrayMetadata):
            return Array(self.store, path, metadata, self.options)
        return Group(
            self.store,
            path,
            metadata,
            options=self.options,
            strict=self._strict,
            use_consolidated=self._use_consolidated,
        )

    @property
    def _is_consolidated(self) -> bool:
        return self._use_consolidated and self.read_only and self.metadata.consolidated is not None

    def _consolidated(self, path: str) -> Metadata | None:
        """The metadata of a node below, from the document of this group; a group gets its own part of it."""
        documents = self.metadata.consolidated or {}
        if path not in documents:
            return None
        content = documents[path]
        pointer = f"/consolidated_metadata/metadata/{escape(path)}"
        try:
            metadata = parse_node(content, strict=self._strict)
        except MetadataError as error:
            raise error.under(pointer, key_prefix(self.path) + DOCUMENT) from None
        if isinstance(metadata, GroupMetadata):
            below = {p[len(path) + 1 :]: d for p, d in documents.items() if p.startswith(path + "/")}
            metadata = GroupMetadata(metadata.attributes, below, metadata.extra)
        return metadata

    def _child_names(self) -> Iterator[str]:
        """The names of the nodes directly below; nothing is parsed."""
        if self._is_consolidated:
            yield from sorted(path for path in self.metadata.consolidated or () if "/" not in path)
            return
        for name in self._prefixes():
            if self._base.size(f"{name}/{DOCUMENT}") is not None:
                yield name

    def _prefixes(self) -> Iterator[str]:
        """The names directly below that a node may have; whether there is one is not known."""
        _, prefixes = self._base.list_dir("")
        return (name for name in sorted(prefix[:-1] for prefix in prefixes) if not name_fault(name))

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        try:
            path = normalize_path(path)
        except ArgumentError:
            return False
        if self._is_consolidated:
            return not path or path in (self.metadata.consolidated or ())
        return self._base.size(key_prefix(path) + DOCUMENT) is not None

    def __iter__(self) -> Iterator[str]:
        return self._child_names()

    def __len__(self) -> int:
        return sum(1 for _ in self._child_names())

    def keys(self) -> Iterator[str]:
        return self._child_names()

    def values(self) -> Iterator[Array | Group]:
        return (node for _, node in self.items())

    def items(self) -> Iterator[tuple[str, Array | Group]]:
        if self._is_consolidated:
            yield from ((name, self[name]) for name in self._child_names())
            return
        for name in self._prefixes():
            path = key_prefix(self.path) + name
            metadata = load(self.store, path, strict=self._strict)
            if metadata is not None:
                yield name, self._node(path, metadata)

    def get(self, path: str, default: Any = None) -> Any:
        """A member, or the default."""
        try:
            return self[path]
        except NodeNotFoundError:
            return default

    def arrays(self) -> Iterator[tuple[str, Array]]:
        return ((name, node) for name, node in self.items() if isinstance(node, Array))

    def groups(self) -> Iterator[tuple[str, Group]]:
        return ((name, node) for name, node in self.items() if isinstance(node, Group))

    def array_keys(self) -> Iterator[str]:
        return (name for name, _ in self.arrays())

    def group_keys(self) -> Iterator[str]:
        return (name for name, _ in self.groups())

    def members(self, max_depth: int | None = 0) -> Iterator[tuple[str, Array | Group]]:
        """Nodes below with their paths relative to this group; `max_depth` 0 is the direct ones, None all."""
        pending = [("", iter(self.items()))]
        while pending:
            prefix, nodes = pending[-1]
            name, node = next(nodes, (None, None))
            if name is None or node is None:
                pending.pop()
                continue
            yield prefix + name, node
            if isinstance(node, Group) and (max_depth is None or len(pending) <= max_depth):
                pending.append((f"{prefix}{name}/", iter(node.items())))

    def nmembers(self, max_depth: int | None = 0) -> int:
        return sum(1 for _ in self.members(max_depth))

    def tree(self, level: int | None = None) -> Tree:
        """The hierarchy as text."""
        from zarrlite.nodes.info import draw_tree  # late: keeps the import light

        if level is not None and level <= 0:
            return draw_tree(self.name, ())
        members = self.members(None if level is None else level - 1)
        return draw_tree(self.name, ((path, node.metadata) for path, node in members))

    @property
    def info(self) -> Info:
        """A summary that prints well."""
        from zarrlite.nodes.info import group_info  # late: keeps the import light

        return group_info(self, [self._kind_of(name) for name in self])

    def _kind_of(self, name: str) -> str:
        """Return the node type of a member, or "refused" if it cannot be opened."""
        try:
            return self[name].metadata.node_type
        except ZarrliteError:
            return "refused"

    # changing

    def __delitem__(self, path: str) -> None:
        path = normalize_path(path)
        if not path:
            raise ArgumentError("a group cannot delete itself as its own member; use delete()")
        self[path].delete()

    def __setitem__(self, path: str, value: Any) -> None:
        """Store an array under a name, in place of what is there."""
        self.create_array(path, data=value, overwrite=True)

    def create_group(
        self, name: str, *, attributes: Mapping[str, Json] | None = None, overwrite: bool = False
    ) -> Group:
        """A new group below this one."""
        full = self._below(name)
        return create_group_at(self.store, full, attributes, overwrite=overwrite, options=self.options)

    def require_group(self, name: str) -> Group:
        """The group at this path, made if there is none."""
        node = self.get(name)
        if node is None:
            return self.create_group(name)
        if not isinstance(node, Group):
            raise NodeExistsError(f"{node.path!r} is an array, not a group", path=node.path)
        return node

    def create_array(self, name: str, **kwargs: Any) -> Array:
        """A new array below this group; takes what `zarrlite.create_array` takes."""
        from zarrlite.nodes.creation import create_array_at  # late: keeps the import light

        return create_array_at(self.store, self._below(name), behaviour=self.options, **kwargs)

    def require_array(self, name: str, *, shape: Any, dtype: Any, **kwargs: Any) -> Array:
        """The array at this path, made if there is none; one that is there must have this shape and data type."""
        from zarrlite.nodes.creation import array_metadata  # late: keeps the import light

        node = self.get(name)
        if node is None:
            return self.create_array(name, shape=shape, dtype=dtype, **kwargs)
        wanted = array_metadata(shape, dtype)
        if not isinstance(node, Array) or (node.shape, node.dtype) != (wanted.shape, wanted.data_type.dtype):
            raise NodeExistsError(
                f"{node!r} is not an array of shape {wanted.shape} and {wanted.data_type.name}", path=node.path
            )
        return node

    def _below(self, path: str) -> str:
        self._check_writable()
        path = normalize_path(path)
        if not path:
            raise ArgumentError("a member needs a name")
        return key_prefix(self.path) + path

    def consolidate_metadata(self) -> Group:
        """Copy the documents of everything below into the document of this group, anew."""
        plain = Group(self.store, self.path, GroupMetadata(), strict=self._strict, use_consolidated=False)
        documents = {path: _without_consolidated(node.metadata) for path, node in plain.members(None)}

        def consolidated(metadata: GroupMetadata) -> GroupMetadata:
            return GroupMetadata(metadata.attributes, documents, metadata.extra)

        self.metadata = self._change_metadata(consolidated)
        return self


def _without_consolidated(metadata: Metadata) -> Json:
    if isinstance(metadata, GroupMetadata):
        metadata = metadata.without_consolidated()
    return metadata.to_json()


def _rebuild(store: Store, path: str, metadata: GroupMetadata, keywords: dict[str, Any]) -> Group:
    return Group(store, path, metadata, **keywords)


def create_group_at(
    store: Store,
    path: str,
    attributes: Mapping[str, Json] | None,
    *,
    overwrite: bool,
    options: ArrayOptions = ArrayOptions(),
) -> Group:
    """Create a group at a path of a store."""
    metadata = GroupMetadata(attributes=dict(attributes or {}))
    serialize(metadata)
    write_new(store, path, metadata, overwrite=overwrite)
    return Group(store, path, metadata, options=options)
