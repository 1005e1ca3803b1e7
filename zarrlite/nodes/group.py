"""Groups: mappings from names to arrays and groups.

Rules
- Members are found by listing the store. Only the documents that are needed are read and parsed.
- Groups opened for reading rely on consolidated metadata. Changes made through this library update it; changes made by
  other programs do not.
- A member whose document is refused does not stop an iteration over the members: a warning names the member, and
  opening it raises the error.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

import numpy.typing as npt

from zarrlite import threads
from zarrlite.chunks.chunks import ArrayOptions
from zarrlite.errors import (
    ArgumentError,
    KeyRefusedError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    ZarrliteError,
)
from zarrlite.extensions.config import Json, dump_json, escape, load_json
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata, Metadata, Options
from zarrlite.names import DOCUMENT, key_prefix, name_fault, normalize_path
from zarrlite.nodes.arguments import (
    ArrayKeywords,
    ChunkKeyEncodingLike,
    ChunksLike,
    CodecLike,
    CompressorLike,
    ConfigLike,
    DTypeLike,
    FilterLike,
    MemoryOrder,
    MissingChunks,
    SerializerLike,
    ShapeLike,
    ShardsLike,
    StorageTransformerLike,
    check_keywords,
    suggest_keywords,
)
from zarrlite.nodes.array import Array
from zarrlite.nodes.consolidated_view import Consolidated
from zarrlite.nodes.node import Node, load, not_found, parse_copy, remove, write_new
from zarrlite.stores import Store
from zarrlite.stores.base import place_of

if TYPE_CHECKING:
    from zarrlite.nodes.info import Info, Tree

Default = TypeVar("Default")


class Group(Node):
    """A Zarr group: a mapping from names to arrays and groups.

    `create_group`, `open_group` and the methods of `Group` return groups. Calling the class directly neither reads
    nor checks anything in the store. Members are looked up in the store each time; a path such as `"a/b"` leads to a
    member of a member.

    Parameters
    ----------
    store : Store
        The store that holds the hierarchy.
    path : str
        Path of the group in the store, without a leading slash; empty for the root.
    metadata : GroupMetadata
        The metadata of the group.
    options : ArrayOptions, optional
        Runtime options for the arrays that are opened and created through this group.
    strict : bool, optional
        Whether the documents of members must follow the specification strictly, as for `open`.
    use_consolidated : bool, optional
        Whether members are taken from consolidated metadata, if it exists and the group is read-only.

    Attributes
    ----------
    metadata : GroupMetadata
        The parsed metadata document, as it was when the group was opened or last changed through this object.
    options : ArrayOptions
        Runtime options for the arrays that are opened and created through this group.

    Examples
    --------
    >>> import zarrlite
    >>> group = zarrlite.create_group("memory://")
    >>> group["a/b"] = [1, 2, 3]
    >>> group["a"]
    <Group /a>
    >>> group["a/b"][...]
    array([1, 2, 3])
    >>> list(group), "a/b" in group
    (['a'], True)
    """

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
        self.options = options
        self._strict = strict
        self._use_consolidated = use_consolidated

    def __eq__(self, other: object) -> bool:
        """Whether the other object is the same group in the same store, with the same metadata."""
        if not isinstance(other, Group):
            return NotImplemented
        return (self.store, self.path, self.metadata) == (other.store, other.path, other.metadata)

    def __hash__(self) -> int:
        return hash((self.store, self.path))

    def __reduce__(self) -> tuple[Any, ...]:
        options = self.options._replace(progress=None)  # other processes cannot call the callback
        keywords = {"options": options, "strict": self._strict, "use_consolidated": self._use_consolidated}
        return _rebuild, (self.store, self.path, self.metadata, keywords)

    def __repr__(self) -> str:
        return f"<Group {self._where}>"

    # members

    def __getitem__(self, path: str) -> Array | Group:
        path = normalize_path(path)
        if not path:
            return self
        full_path = key_prefix(self.path) + path
        if self._is_consolidated:
            metadata = self._consolidated(path)
        else:
            metadata = load(self.store, full_path, strict=self._strict)
        if metadata is None:
            raise not_found(self.store, full_path)
        return self._node(full_path, metadata)

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
        """Return the metadata of a node below this group, from the group's document. Returns None if there is no node.

        If the node is a group, its metadata includes the consolidated metadata of the nodes below it.
        """
        documents = self._copies()
        if path not in documents:
            return None
        pointer = f"/consolidated_metadata/metadata/{escape(path)}"
        try:
            metadata = parse_copy(documents[path], strict=self._strict)
        except MetadataError as error:
            raise error.under(pointer, key_prefix(self.path) + DOCUMENT) from None
        if isinstance(metadata, GroupMetadata):
            metadata = GroupMetadata(metadata.attributes, documents.below(path), metadata.extra)
        return metadata

    def _copies(self) -> Consolidated:
        """Return the consolidated metadata, and cache its index of names for the next call."""
        documents = self.metadata.consolidated
        if not isinstance(documents, Consolidated):
            documents = Consolidated(documents or {})
            self.metadata = GroupMetadata(self.metadata.attributes, documents, self.metadata.extra)
        return documents

    def _child_names(self) -> Iterator[str]:
        """Yield the names of the nodes directly below this group, without parsing their documents."""
        if self._is_consolidated:
            yield from self._copies().names()
            return
        for name, is_node in threads.ahead(self._is_node, self._prefixes(), place_of(self.store)):
            if is_node:
                yield name

    def _is_node(self, name: str) -> tuple[str, bool]:
        try:
            return name, self._base.size(f"{name}/{DOCUMENT}") is not None
        except KeyRefusedError:
            return name, True  # opening the node raises the error again

    def _prefixes(self) -> Iterator[str]:
        """Yield the prefixes directly below this group that are valid node names, whether or not they are nodes."""
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
        """Iterate over the names of the members. No document is read.

        Returns
        -------
        iterator of str
            The names, sorted.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["b"] = group["a"] = 1
        >>> list(group.keys())
        ['a', 'b']
        """
        return self._child_names()

    def values(self) -> Iterator[Array | Group]:
        """Iterate over the members. Each document is read when the iteration reaches it.

        Returns
        -------
        iterator of Array or Group
            The members, sorted by name.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = 1
        >>> list(group.values())
        [<Array /a shape=() dtype=int64>]
        """
        return (node for _, node in self.items())

    def items(self) -> Iterator[tuple[str, Array | Group]]:
        """Iterate over the members with their names. Each document is read when the iteration reaches it.

        Yields
        ------
        str
            The name of a member.
        Array or Group
            The member.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = 1
        >>> dict(group.items())
        {'a': <Array /a shape=() dtype=int64>}
        """
        for name, node in self._open_members():
            if isinstance(node, ZarrliteError):
                warnings.warn(f"{self.name}: the member {name!r} is skipped: {node}", stacklevel=2)
            else:
                yield name, node

    def _open_members(self) -> Iterator[tuple[str, Array | Group | ZarrliteError]]:
        """Yield the name of each member with the member, or with the error if it is refused."""
        if self._is_consolidated:
            names: Iterable[str] = self._copies().names()
            place = None  # the members come from the group's document, without requests
        else:
            names, place = self._prefixes(), place_of(self.store)
        for name, node in threads.ahead(self._open_member, names, place):
            if node is not None:
                yield name, node

    def _open_member(self, name: str) -> tuple[str, Array | Group | ZarrliteError | None]:
        try:
            return name, self[name]
        except NodeNotFoundError:
            return name, None  # a prefix without a node
        except (MetadataError, KeyRefusedError) as error:
            return name, error

    @overload
    def get(self, path: str) -> Array | Group | None: ...

    @overload
    def get(self, path: str, default: Default) -> Array | Group | Default: ...

    def get(self, path: str, default: Any = None) -> Any:
        """Return a member, or a default if it does not exist.

        Parameters
        ----------
        path : str
            Path of the member, relative to this group.
        default : object, optional
            The result if there is no such member.

        Returns
        -------
        Array, Group or object
            The member, or the default.

        Raises
        ------
        ArgumentError
            If the path is not a valid path of a node.
        MetadataError
            If the document of the node is refused.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group.get("a") is None
        True
        """
        try:
            return self[path]
        except NodeNotFoundError:
            return default

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Iterate over the members that are arrays, with their names.

        Returns
        -------
        iterator of (str, Array)
            The names and the arrays, sorted by name.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = group["g/b"] = 1
        >>> list(group.arrays())
        [('a', <Array /a shape=() dtype=int64>)]
        """
        return ((name, node) for name, node in self.items() if isinstance(node, Array))

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Iterate over the members that are groups, with their names.

        Returns
        -------
        iterator of (str, Group)
            The names and the groups, sorted by name.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = group["g/b"] = 1
        >>> list(group.groups())
        [('g', <Group /g>)]
        """
        return ((name, node) for name, node in self.items() if isinstance(node, Group))

    def array_keys(self) -> Iterator[str]:
        """Iterate over the names of the members that are arrays.

        Returns
        -------
        iterator of str
            The names, sorted.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = group["g/b"] = 1
        >>> list(group.array_keys())
        ['a']
        """
        return (name for name, _ in self.arrays())

    def array_values(self) -> Iterator[Array]:
        """Yield the arrays directly below the group.

        Yields
        ------
        Array
            An array.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> _ = group.create_array("a", shape=3, dtype="int8")
        >>> list(group.array_values())
        [<Array /a shape=(3,) dtype=int8>]
        """
        return (array for _, array in self.arrays())

    def group_values(self) -> Iterator[Group]:
        """Yield the groups directly below the group.

        Yields
        ------
        Group
            A group.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> _ = group.create_group("g")
        >>> list(group.group_values())
        [<Group /g>]
        """
        return (group for _, group in self.groups())

    def group_keys(self) -> Iterator[str]:
        """Iterate over the names of the members that are groups.

        Returns
        -------
        iterator of str
            The names, sorted.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = group["g/b"] = 1
        >>> list(group.group_keys())
        ['g']
        """
        return (name for name, _ in self.groups())

    def members(self, max_depth: int | None = 0) -> Iterator[tuple[str, Array | Group]]:
        """Iterate over the nodes below this group, each group before its members.

        Parameters
        ----------
        max_depth : int or None, optional
            How many levels of groups to enter: 0 yields only the members of this group, 1 adds their members, and None
            yields all nodes.

        Yields
        ------
        str
            The path of a node, relative to this group.
        Array or Group
            The node.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = group["g/b"] = 1
        >>> [path for path, node in group.members(max_depth=None)]
        ['a', 'g', 'g/b']
        """
        for path, node in self._walk(max_depth):
            if isinstance(node, ZarrliteError):
                warnings.warn(f"{self.name}: the node {path!r} is skipped: {node}", stacklevel=2)
            else:
                yield path, node

    def _walk(self, max_depth: int | None) -> Iterator[tuple[str, Array | Group | ZarrliteError]]:
        """Yield the same as `members`, but with the error in place of a refused node."""
        pending = [("", self._open_members())]
        while pending:
            prefix, nodes = pending[-1]
            name, node = next(nodes, (None, None))
            if name is None or node is None:
                pending.pop()
                continue
            yield prefix + name, node
            if isinstance(node, Group) and (max_depth is None or len(pending) <= max_depth):
                pending.append((f"{prefix}{name}/", node._open_members()))

    def nmembers(self, max_depth: int | None = 0) -> int:
        """Count the nodes below this group.

        Parameters
        ----------
        max_depth : int or None, optional
            How many levels of groups to enter, as for `members`.

        Returns
        -------
        int
            The number of nodes.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = group["g/b"] = 1
        >>> group.nmembers(), group.nmembers(max_depth=None)
        (2, 3)
        """
        return sum(1 for _ in self.members(max_depth))

    def tree(self, level: int | None = None) -> Tree:
        """Draw the hierarchy below this group as text.

        Parameters
        ----------
        level : int or None, optional
            The number of levels to show; None shows all.

        Returns
        -------
        Tree
            The text, one line per node. An interactive session shows it without quotes.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = group["g/b"] = 1
        >>> group.tree()
        /
        ├── a () int64
        └── g
            └── b () int64
        """
        from zarrlite.nodes.info import draw_tree  # imported here: keeps `import zarrlite` light

        if level is not None and level <= 0:
            return draw_tree(self.name, ())
        nodes = self._walk(None if level is None else level - 1)
        shown = ((path, node if isinstance(node, ZarrliteError) else node.metadata) for path, node in nodes)
        return draw_tree(self.name, shown)

    @property
    def info(self) -> Info:
        """A printable summary. Each access lists the members and reads their documents.

        Members whose documents are refused are counted in a separate row.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = group["g/b"] = 1
        >>> group.info
        Type      : Group
        Name      : /
        Store     : MemoryStore(6 keys)
        Read-only : False
        Arrays    : 1
        Groups    : 1
        """
        from zarrlite.nodes.info import group_info  # imported here: keeps `import zarrlite` light

        return group_info(self, [self._kind_of(name) for name in self])

    def info_complete(self) -> Info:
        """Return the summary together with the total number of nodes below the group, found by listing the store.

        Returns
        -------
        Info
            The printable summary.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_group("memory://").info_complete().items()[-1]
        ('Nodes below', 0)
        """
        from zarrlite.nodes.info import Info  # imported here: keeps `import zarrlite` light

        return Info([*self.info.items(), ("Nodes below", self.nmembers(None))])

    def _kind_of(self, name: str) -> str:
        """Return the node type of a member, or "refused" if it cannot be opened."""
        try:
            return self[name].metadata.node_type
        except ZarrliteError:
            return "refused"

    # changes

    def __delitem__(self, path: str) -> None:
        path = normalize_path(path)
        if not path:
            raise ArgumentError("a group cannot delete itself as its own member; use delete()")
        self._check_writable()
        full_path = key_prefix(self.path) + path
        if not remove(self.store, full_path):  # without opening it: its document may be invalid
            raise not_found(self.store, full_path)

    def __setitem__(self, path: str, value: npt.ArrayLike) -> None:
        """Store an array at a path, replacing any existing node."""
        self.create_array(path, data=value, overwrite=True)

    def create_group(
        self, name: str, *, attributes: Mapping[str, Json] | None = None, overwrite: bool = False
    ) -> Group:
        """Create a group below this one, and any missing groups between them.

        Parameters
        ----------
        name : str
            Path of the new group, relative to this group.
        attributes : mapping, optional
            The attributes of the new group; values are JSON.
        overwrite : bool, optional
            Whether to first remove an existing array or group, with everything below it.

        Returns
        -------
        Group
            The new group.

        Raises
        ------
        ArgumentError
            If the name is not a valid path of a node, or an attribute is not JSON. Nothing is changed.
        NodeExistsError
            If the node already exists and `overwrite` is not set, or the path leads through an array.
        ReadOnlyError
            If this group is read-only.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_group("memory://").create_group("a/b", attributes={"units": "K"})
        <Group /a/b>
        """
        path = self._path_below(name)
        return create_group_at(self.store, path, attributes, overwrite=overwrite, options=self.options)

    def require_group(self, name: str) -> Group:
        """Return the group at a path below this one. Creates the group if there is no node.

        Parameters
        ----------
        name : str
            Path of the group, relative to this group.

        Returns
        -------
        Group
            The existing or new group.

        Raises
        ------
        NodeExistsError
            If the node is an array.
        ReadOnlyError
            If there is no node, and this group is read-only.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group.require_group("a")
        <Group /a>
        >>> group.require_group("a")
        <Group /a>
        """
        node = self.get(name)
        if node is None:
            try:
                return self.create_group(name)
            except NodeExistsError:  # another writer was faster, or the path leads through an array
                node = self.get(name)
                if node is None:
                    raise
        if not isinstance(node, Group):
            raise NodeExistsError(f"{node.path!r} is an array, not a group", path=node.path)
        return node

    @suggest_keywords
    def create_array(
        self,
        name: str,
        *,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        data: npt.ArrayLike | None = None,
        chunks: ChunksLike | Literal["auto"] | bool | None = "auto",
        shards: ShardsLike = None,
        filters: FilterLike | Sequence[FilterLike] | None = "auto",
        serializer: SerializerLike = "auto",
        compressors: CompressorLike | Sequence[CompressorLike] | None = "auto",
        codecs: Sequence[CodecLike] | None = None,
        fill_value: Any = None,
        attributes: Mapping[str, Json] | None = None,
        chunk_key_encoding: ChunkKeyEncodingLike | None = None,
        dimension_names: Sequence[str | None] | None = None,
        storage_transformers: Sequence[StorageTransformerLike] | None = None,
        options: Options | None = None,
        missing_chunks: MissingChunks | None = None,
        write_empty_chunks: bool | None = None,
        max_chunk_bytes: int | None = None,
        write_data: bool = True,
        overwrite: bool = False,
        config: ConfigLike | None = None,
        order: MemoryOrder | None = None,
        zarr_format: Literal[3] | None = 3,
        storage_options: None = None,
    ) -> Array:
        """Create an array below this group, and any missing groups between them.

        `zarrlite.create_array` describes the keywords in detail.

        Parameters
        ----------
        name : str
            Path of the new array, relative to this group.
        shape : int or sequence of int, optional
            The length of each dimension; taken from `data` if omitted.
        dtype : data type, optional
            A numpy dtype, a Python type, a name, or JSON as in zarr.json; taken from `data` if omitted.
        data : array_like, optional
            The elements to store.
        chunks : int, sequence of int or of lists, "auto", bool or None, optional
            The shape of a chunk, or of an inner chunk if there are shards.
        shards : int, sequence of int or of lists, "auto" or None, optional
            The shape of a shard; None for an array without shards.
        filters, serializer, compressors : codec, name, JSON, list of them, "auto" or None, optional
            The codecs, by kind.
        codecs : sequence of codec, name or JSON, optional
            The whole codec chain, instead of `shards`, `filters`, `serializer` and `compressors`.
        fill_value : scalar, optional
            The value of elements that were never written; the zero of the data type if omitted.
        attributes : mapping, optional
            The attributes; values are JSON.
        chunk_key_encoding : chunk key encoding, name or JSON, optional
            How chunk coordinates become keys; "default" if omitted.
        dimension_names : sequence of str or None, optional
            A name, or None, for each dimension.
        storage_transformers : sequence of storage transformer, name or JSON, optional
            The storage transformers between the array and the store, in this order.
        options : mapping, optional
            Runtime options of extensions by JSON pointer; they are not stored.
        missing_chunks : {"fill", "error"}, optional
            Whether a missing chunk reads as the fill value or is an error; this group's option if omitted.
        write_empty_chunks : bool, optional
            Whether to store chunks that contain only the fill value; this group's option if omitted.
        max_chunk_bytes : int, optional
            The largest chunk that the returned array reads and writes; this group's option if omitted.
        write_data : bool, optional
            Whether to store `data`. False uses only its shape and data type.
        overwrite : bool, optional
            Whether to first remove an existing array or group, with everything below it.
        config, order, zarr_format, storage_options : optional
            Keywords of zarr-python.

        Returns
        -------
        Array
            The new array.

        Raises
        ------
        ArgumentError
            If an argument is invalid, or a keyword is unknown. Nothing is changed.
        MetadataError
            If the extensions are incompatible with each other. Nothing is changed.
        NodeExistsError
            If the node already exists and `overwrite` is not set, or the path leads through an array.
        ReadOnlyError
            If this group is read-only.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group.create_array("deep/a", shape=(4, 6), dtype="float32", chunks=(2, 3))
        <Array /deep/a shape=(4, 6) dtype=float32>
        """
        from zarrlite.nodes.creation import create_array_at  # imported here: keeps `import zarrlite` light

        return create_array_at(
            self.store,
            self._path_below(name),
            array_options=self.options,
            shape=shape,
            dtype=dtype,
            data=data,
            chunks=chunks,
            shards=shards,
            filters=filters,
            serializer=serializer,
            compressors=compressors,
            codecs=codecs,
            fill_value=fill_value,
            attributes=attributes,
            chunk_key_encoding=chunk_key_encoding,
            dimension_names=dimension_names,
            storage_transformers=storage_transformers,
            options=options,
            missing_chunks=missing_chunks,
            write_empty_chunks=write_empty_chunks,
            max_chunk_bytes=max_chunk_bytes,
            write_data=write_data,
            overwrite=overwrite,
            config=config,
            order=order,
            zarr_format=zarr_format,
            storage_options=storage_options,
        )

    def require_array(
        self, name: str, *, shape: ShapeLike, dtype: DTypeLike, **keywords: Unpack[ArrayKeywords]
    ) -> Array:
        """Return the array at a path below this group. Creates the array if there is no node.

        Parameters
        ----------
        name : str
            Path of the array, relative to this group.
        shape : int or sequence of int
            The length of each dimension; an existing array must have this shape.
        dtype : data type
            The data type; an existing array must have this data type.
        **keywords
            The other keywords of `create_array`. They apply only to a new array.

        Returns
        -------
        Array
            The existing or new array.

        Raises
        ------
        ArgumentError
            If an argument is invalid, or a keyword is unknown. Nothing is changed.
        NodeExistsError
            If the node is a group, or an array with a different shape or data type.
        ReadOnlyError
            If there is no node, and this group is read-only.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group.require_array("a", shape=4, dtype="int8", chunks=2)[0] = 1
        >>> group.require_array("a", shape=4, dtype="int8")[...]
        array([1, 0, 0, 0], dtype=int8)
        """
        from zarrlite.nodes.creation import array_metadata  # imported here: keeps `import zarrlite` light

        check_keywords("require_array", keywords, ArrayKeywords.__optional_keys__)
        node = self.get(name)
        if node is None:
            try:
                return self.create_array(name, shape=shape, dtype=dtype, **keywords)
            except NodeExistsError:  # another writer was faster, or the path leads through an array
                node = self.get(name)
                if node is None:
                    raise
        required = array_metadata(shape, dtype)
        if not isinstance(node, Array) or (node.shape, node.dtype) != (required.shape, required.data_type.dtype):
            kind = f"an array of shape {required.shape} and data type {required.data_type.name}"
            raise NodeExistsError(f"{node!r} already exists and is not {kind}", path=node.path)
        return node

    def require_groups(self, *names: str) -> tuple[Group, ...]:
        """Return several groups below this one. Creates those that do not exist.

        Parameters
        ----------
        *names : str
            Paths, relative to this group.

        Returns
        -------
        tuple of Group
            The groups, in the same order.

        Examples
        --------
        >>> import zarrlite
        >>> zarrlite.create_group("memory://").require_groups("a", "b/c")
        (<Group /a>, <Group /b/c>)
        """
        return tuple(self.require_group(name) for name in names)

    def create_hierarchy(
        self, nodes: Mapping[str, Metadata], *, overwrite: bool = False
    ) -> Iterator[tuple[str, Array | Group]]:
        """Create several nodes below this group from their metadata, as `zarrlite.create_hierarchy` does.

        Parameters
        ----------
        nodes : mapping of str to GroupMetadata or ArrayMetadata
            The metadata by path, relative to this group.
        overwrite : bool, optional
            Whether to replace existing nodes at these paths.

        Yields
        ------
        tuple of str and (Array or Group)
            The path of each node, relative to this group, and the node.

        Examples
        --------
        >>> import zarrlite
        >>> list(zarrlite.create_group("memory://").create_hierarchy({"a": zarrlite.GroupMetadata()}))
        [('a', <Group /a>)]
        """
        from zarrlite.nodes.convenience import create_hierarchy  # imported here: keeps `import zarrlite` light

        paths = {self._path_below(path): path for path in nodes}
        wanted = {below: nodes[path] for below, path in paths.items()}
        for path, node in create_hierarchy(store=self.store, nodes=wanted, overwrite=overwrite):
            yield paths[path], node

    def move(self, source: str, dest: str) -> None:
        """Move a node below this group to another path. Its values are copied, then removed at the old path.

        After a crash between the two steps, there are nodes at both paths: the old one may be partly removed, but the
        new one is complete.

        Parameters
        ----------
        source, dest : str
            The old and the new path, relative to this group.

        Raises
        ------
        NodeNotFoundError
            If there is no node at `source`.
        NodeExistsError
            If there is a node at `dest` already. Nothing is changed.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> _ = group.create_array("a", data=[1, 2])
        >>> group.move("a", "b/c")
        >>> group["b/c"][...]
        array([1, 2])
        """
        from zarrlite.nodes.opening import copy  # imported here: that module imports this one

        path = self._path_below(dest)
        node = self[source]
        copy(node, self.store, path)
        node.delete()

    def _path_below(self, path: str) -> str:
        """Return the path of a new node below this group, relative to the root of the store."""
        self._check_writable()
        path = normalize_path(path)
        if not path:
            raise ArgumentError("the name of a member must not be empty")
        return key_prefix(self.path) + path

    def consolidate_metadata(self) -> Group:
        """Copy the documents of all nodes below this group into the document of the group.

        Readers then find the whole hierarchy in one document. The copies are collected and written atomically, under
        the lock of that document. When this library changes a node, it removes the copies first and restores updated
        copies after the change; if the change is interrupted, the copies are missing. The copies in a document larger
        than 4 MiB are removed but not restored. Changes made by other programs do not update the copies. A node whose
        document is refused is skipped, with a warning.

        Returns
        -------
        Group
            This group.

        Raises
        ------
        MetadataError
            If the document of this group is refused, or if it would be too large or too deeply nested to be read back
            together with the copies. Nothing is changed.
        ReadOnlyError
            If this group is read-only.

        Examples
        --------
        >>> import zarrlite
        >>> group = zarrlite.create_group("memory://")
        >>> group["a"] = group["g/b"] = 1
        >>> list(group.consolidate_metadata().metadata.consolidated)
        ['a', 'g', 'g/b']
        """
        direct = Group(self.store, self.path, GroupMetadata(), strict=self._strict, use_consolidated=False)

        # core spec, Additional fields: documents "may contain an additional field named consolidated_metadata"
        def consolidated(metadata: GroupMetadata) -> GroupMetadata:
            # runs under the lock of the document, which writers acquire before they change nodes below
            documents = {path: _without_consolidated(node.metadata) for path, node in direct.members(None)}
            return GroupMetadata(metadata.attributes, documents, metadata.extra)

        try:
            self.metadata = self._rewrite(consolidated)
        except MetadataError as error:
            if error.kind != "limit":
                raise
            message = f"{error.message}, including consolidated metadata; consolidate the groups below it instead"
            raise MetadataError(message, kind="limit", document=error.document) from None
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
    """Create a group at a path in a store."""
    metadata = GroupMetadata(attributes=load_json(dump_json(dict(attributes or {})), "attributes"))
    write_new(store, path, metadata, overwrite=overwrite)
    return Group(store, path, metadata, options=options)
