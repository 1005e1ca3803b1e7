"""zarr-python's convenience functions: each makes a few calls to the functions in opening.py.

Rules
- The names and the order of arguments are zarr-python's, so that a script works with `import zarrlite as zarr`. Further
  keywords are those of `create_array`.
- An array created like another one has the shape, data type, chunks, shards, codecs and fill value of that array.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError
from typing import Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from zarrlite import threads
from zarrlite.errors import ArgumentError, NodeExistsError
from zarrlite.extensions.config import Json
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata
from zarrlite.names import key_prefix, normalize_path
from zarrlite.nodes.arguments import (
    ArrayKeywords,
    CreationKeywords,
    DTypeLike,
    ShapeLike,
    StoringKeywords,
    check_keywords,
)
from zarrlite.nodes.array import Array
from zarrlite.nodes.creation import create_array_at
from zarrlite.nodes.group import Group, create_group_at
from zarrlite.nodes.info import Tree
from zarrlite.nodes.node import write_new
from zarrlite.nodes.opening import Mode, copy, open_array, open_group
from zarrlite.nodes.opening import open as open_node
from zarrlite.nodes.settings import array_options
from zarrlite.stores import StoreLike, open_store
from zarrlite.stores.base import place_of, slowest_place

NDArray = np.ndarray[Any, Any]
IfExists = Literal["raise", "replace", "skip"]


def create(
    shape: ShapeLike,
    *,
    dtype: DTypeLike = "float64",
    store: StoreLike = None,
    path: str | None = None,
    mode: Mode = "a",
    **keywords: Unpack[ArrayKeywords],
) -> Array:
    """Create an array.

    Parameters
    ----------
    shape : int or sequence of int
        The length of each dimension.
    dtype : data type, optional
        As for `create_array`.
    store : Store, path, URI, mapping or None, optional
        The location of the hierarchy, as for `open`; by default a new store in memory.
    path : str or None, optional
        Path of the new array in the store; the root if omitted.
    mode : {"a", "w", "w-"}, optional
        "w" replaces an existing node.
    **keywords
        As for `create_array`.

    Returns
    -------
    Array
        The new array.

    Raises
    ------
    NodeExistsError
        If the node already exists, and neither `mode` nor `overwrite` asks to replace it.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.create((2, 3), dtype="int16", chunks=(1, 3))
    <Array / shape=(2, 3) dtype=int16>
    """
    check_keywords("create", keywords, ArrayKeywords.__optional_keys__)
    keywords["overwrite"] = keywords.get("overwrite", False) or mode == "w"
    place, where = open_store(store), normalize_path(path)
    return create_array_at(place, where, shape=shape, dtype=dtype, array_options=array_options(), **keywords)


def array(
    data: npt.ArrayLike | Array,
    *,
    store: StoreLike = None,
    path: str | None = None,
    **keywords: Unpack[StoringKeywords],
) -> Array:
    """Create an array from data.

    Parameters
    ----------
    data : array_like or Array
        The elements. If this is an Array, its chunks and codecs are kept, unless keywords change them.
    store : Store, path, URI, mapping or None, optional
        The location of the hierarchy, as for `open`; by default a new store in memory.
    path : str or None, optional
        Path of the new array in the store; the root if omitted.
    **keywords
        As for `create_array`.

    Returns
    -------
    Array
        The new array.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.array([1, 2, 3], chunks=2)[1:]
    array([2, 3])
    """
    check_keywords("array", keywords, StoringKeywords.__optional_keys__)
    if isinstance(data, Array):
        keywords = {**_kept(data), **keywords}
    place, where = open_store(store), normalize_path(path)
    return create_array_at(place, where, data=data, array_options=array_options(), **keywords)


def _kept(source: Array) -> StoringKeywords:
    """Return the keywords that create an array stored in the same way as another one."""
    return {
        "chunks": source.chunks,
        "shards": source.shards,
        "filters": source.filters,
        "serializer": source.serializer,
        "compressors": source.compressors,
        "fill_value": source.fill_value,
        "attributes": dict(source.attrs),
        "chunk_key_encoding": source.metadata.chunk_key_encoding,
        "dimension_names": source.metadata.dimension_names,
    }


def from_array(
    store: StoreLike,
    *,
    data: npt.ArrayLike | Array,
    name: str | None = None,
    **keywords: Unpack[StoringKeywords],
) -> Array:
    """Create an array in a store from data.

    Parameters
    ----------
    store : Store, path, URI, mapping or None
        The location of the hierarchy, as for `open`.
    data : array_like or Array
        The elements. If this is an Array, its chunks and codecs are kept, unless keywords change them; a keyword with
        the value "keep" changes nothing.
    name : str or None, optional
        Path of the new array in the store; the root if omitted.
    **keywords
        As for `create_array`.

    Returns
    -------
    Array
        The new array.

    Examples
    --------
    >>> import zarrlite
    >>> a = zarrlite.array([1, 2, 3, 4], chunks=2)
    >>> zarrlite.from_array("memory://", data=a, chunks="keep").chunks
    (2,)
    """
    check_keywords("from_array", keywords, StoringKeywords.__optional_keys__)
    changed: Any = {key: value for key, value in keywords.items() if not (isinstance(value, str) and value == "keep")}
    return array(data, store=store, path=name, **changed)


def full(  # type: ignore[misc]  # a parameter shares its name with a keyword
    shape: ShapeLike, fill_value: Any, **keywords: Unpack[CreationKeywords]
) -> Array:
    """Create an array with a fill value.

    Parameters
    ----------
    shape : int or sequence of int
        The length of each dimension.
    fill_value : scalar
        The value of every element that was never written.
    **keywords
        As for `create`.

    Returns
    -------
    Array
        The new array. Only its document is stored.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.full(3, 7, dtype="int8")[...]
    array([7, 7, 7], dtype=int8)
    """
    return _create("full", keywords, {"shape": shape, "fill_value": fill_value})


def zeros(shape: ShapeLike, **keywords: Unpack[CreationKeywords]) -> Array:
    """Create an array with the fill value 0.

    Parameters
    ----------
    shape : int or sequence of int
        The length of each dimension.
    **keywords
        As for `create`.

    Returns
    -------
    Array
        The new array. Only its document is stored.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.zeros((2, 2), chunks=(1, 1))[0]
    array([0., 0.])
    """
    return _create("zeros", keywords, {"shape": shape})


def ones(shape: ShapeLike, **keywords: Unpack[CreationKeywords]) -> Array:
    """Create an array with the fill value 1.

    Parameters
    ----------
    shape : int or sequence of int
        The length of each dimension.
    **keywords
        As for `create`.

    Returns
    -------
    Array
        The new array. Only its document is stored.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.ones(2)[...]
    array([1., 1.])
    """
    return _create("ones", keywords, {"shape": shape, "fill_value": 1})


def empty(shape: ShapeLike, **keywords: Unpack[CreationKeywords]) -> Array:
    """Create an array whose initial values do not matter; all elements have the fill value.

    Parameters
    ----------
    shape : int or sequence of int
        The length of each dimension.
    **keywords
        As for `create`.

    Returns
    -------
    Array
        The new array.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.empty(2).shape
    (2,)
    """
    return _create("empty", keywords, {"shape": shape})


def _create(
    function: str, keywords: Mapping[str, Any], fixed: Mapping[str, Any], default: Mapping[str, Any] | None = None
) -> Array:
    """Create an array for a function such as `zeros`. `fixed` overrides `keywords`, which override `default`."""
    check_keywords(function, keywords, CreationKeywords.__optional_keys__)
    merged: dict[str, Any] = {**(default or {}), **keywords, **fixed}
    return create(**merged)


def _like(data: Any) -> dict[str, Any]:
    """Return the keywords with which `create` makes an array like another one, or like other array-like data."""
    if isinstance(data, Array):
        return {**_kept(data), "shape": data.shape, "dtype": data.metadata.data_type}
    values = data if hasattr(data, "shape") else np.asarray(data)
    return {"shape": values.shape, "dtype": values.dtype}


def full_like(  # type: ignore[misc]  # a parameter shares its name with a keyword
    a: npt.ArrayLike | Array, fill_value: Any = None, **keywords: Unpack[CreationKeywords]
) -> Array:
    """Create an array like another one, with a fill value.

    Parameters
    ----------
    a : array_like or Array
        The array that determines the shape, the data type and, if it is an Array, the chunks and codecs.
    fill_value : scalar, optional
        The fill value; by default that of `a` if it is an Array, and 0 otherwise.
    **keywords
        As for `create`.

    Returns
    -------
    Array
        The new array.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.full_like([1, 2], 5)[...]
    array([5, 5])
    """
    filled = {} if fill_value is None else {"fill_value": fill_value}
    return _create("full_like", keywords, filled, _like(a))


def zeros_like(a: npt.ArrayLike | Array, **keywords: Unpack[CreationKeywords]) -> Array:
    """Create an array like another one, with the fill value 0.

    Parameters
    ----------
    a : array_like or Array
        As for `full_like`.
    **keywords
        As for `create`.

    Returns
    -------
    Array
        The new array.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.zeros_like([1, 2])[...]
    array([0, 0])
    """
    return _create("zeros_like", keywords, {"fill_value": None}, _like(a))


def ones_like(a: npt.ArrayLike | Array, **keywords: Unpack[CreationKeywords]) -> Array:
    """Create an array like another one, with the fill value 1.

    Parameters
    ----------
    a : array_like or Array
        As for `full_like`.
    **keywords
        As for `create`.

    Returns
    -------
    Array
        The new array.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.ones_like([5, 2])[...]
    array([1, 1])
    """
    return _create("ones_like", keywords, {"fill_value": 1}, _like(a))


def empty_like(a: npt.ArrayLike | Array, **keywords: Unpack[CreationKeywords]) -> Array:
    """Create an array like another one; its initial values do not matter.

    Parameters
    ----------
    a : array_like or Array
        As for `full_like`.
    **keywords
        As for `create`.

    Returns
    -------
    Array
        The new array.

    Examples
    --------
    >>> import numpy as np, zarrlite
    >>> zarrlite.empty_like(np.zeros((2, 3), "int8")).dtype
    dtype('int8')
    """
    return _create("empty_like", keywords, {}, _like(a))


def open_like(  # type: ignore[misc]  # a parameter shares its name with a keyword
    a: npt.ArrayLike | Array, path: str | None = None, **keywords: Unpack[CreationKeywords]
) -> Array:
    """Open an array, or create it like another one if it does not exist.

    Parameters
    ----------
    a : array_like or Array
        As for `full_like`.
    path : str or None, optional
        Path of the array in the store, or the location of the array if no `store` is passed.
    **keywords
        As for `create`; `store` is the location of the hierarchy.

    Returns
    -------
    Array
        The array.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.open_like([1, 2], "x", store={}).shape
    (2,)
    """
    check_keywords("open_like", keywords, CreationKeywords.__optional_keys__)
    known: Any = {**_like(a), **keywords}
    store = known.pop("store", None)
    return open_array(path, **known) if store is None else open_array(store, path=path, **known)


def group(
    store: StoreLike = None,
    *,
    overwrite: bool = False,
    path: str | None = None,
    attributes: Mapping[str, Json] | None = None,
    zarr_format: Literal[3] | None = 3,
) -> Group:
    """Open a group, or create it.

    Parameters
    ----------
    store : Store, path, URI, mapping or None, optional
        The location of the hierarchy, as for `open`; by default a new store in memory.
    overwrite : bool, optional
        Whether to replace an existing node.
    path : str or None, optional
        Path of the group in the store; the root if omitted.
    attributes : mapping, optional
        The attributes of a new group.
    zarr_format : {3}, optional
        zarr-python's `zarr_format`.

    Returns
    -------
    Group
        The group, opened for reading and writing.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.group(attributes={"a": 1}).attrs
    Attributes({'a': 1})
    """
    mode: Mode = "w" if overwrite else "a"
    return open_group(store, mode=mode, path=path, attributes=attributes, zarr_format=zarr_format)


def open_consolidated(store: StoreLike, *, path: str | None = None, mode: Literal["r"] = "r") -> Group:
    """Open a group with its consolidated metadata.

    Parameters
    ----------
    store : Store, path, URI, mapping or None
        The location of the hierarchy, as for `open`.
    path : str or None, optional
        Path of the group in the store; the root if omitted.
    mode : {"r"}, optional
        Writers do not use consolidated metadata, so only "r" is possible.

    Returns
    -------
    Group
        The group, opened for reading.

    Raises
    ------
    ArgumentError
        If the group has no consolidated metadata.

    Examples
    --------
    >>> import zarrlite
    >>> store = zarrlite.create_array("memory://", name="a", shape=3, dtype="int8").store
    >>> _ = zarrlite.consolidate_metadata(store)
    >>> list(zarrlite.open_consolidated(store))
    ['a']
    """
    return open_group(store, mode=mode, path=path, use_consolidated=True)


def save(store: StoreLike, *arrays: npt.ArrayLike, path: str | None = None, **named: npt.ArrayLike) -> None:
    """Store one array, or a group of arrays, replacing existing nodes.

    Parameters
    ----------
    store : Store, path, URI, mapping or None
        The location of the hierarchy, as for `open`.
    *arrays : array_like
        One array, or several arrays that become the members `arr_0`, `arr_1` ... of a group.
    path : str or None, optional
        Path in the store; the root if omitted.
    **named : array_like
        Arrays that become members of a group, by name.

    Examples
    --------
    >>> import zarrlite
    >>> store = {}
    >>> zarrlite.save(store, [1, 2, 3])
    >>> zarrlite.load(store)
    array([1, 2, 3])
    """
    if len(arrays) == 1 and not named:
        save_array(store, arrays[0], path=path)
    else:
        save_group(store, *arrays, path=path, **named)


def save_array(
    store: StoreLike, arr: npt.ArrayLike, *, path: str | None = None, **keywords: Unpack[StoringKeywords]
) -> None:
    """Store an array, replacing any existing node.

    Parameters
    ----------
    store : Store, path, URI, mapping or None
        The location of the hierarchy, as for `open`.
    arr : array_like
        The elements.
    path : str or None, optional
        Path in the store; the root if omitted.
    **keywords
        As for `create_array`.

    Examples
    --------
    >>> import zarrlite
    >>> store = {}
    >>> zarrlite.save_array(store, [1, 2, 3], path="a", chunks=2)
    >>> zarrlite.load(store, "a")
    array([1, 2, 3])
    """
    check_keywords("save_array", keywords, StoringKeywords.__optional_keys__)
    keywords["overwrite"] = True
    array(arr, store=store, path=path, **keywords)


def save_group(store: StoreLike, *arrays: npt.ArrayLike, path: str | None = None, **named: npt.ArrayLike) -> None:
    """Store several arrays in a group, replacing members with the same names.

    Parameters
    ----------
    store : Store, path, URI, mapping or None
        The location of the hierarchy, as for `open`.
    *arrays : array_like
        Arrays that become the members `arr_0`, `arr_1` ...
    path : str or None, optional
        Path of the group in the store; the root if omitted.
    **named : array_like
        Arrays that become members, by name.

    Raises
    ------
    ArgumentError
        If no array is passed.

    Examples
    --------
    >>> import zarrlite
    >>> store = {}
    >>> zarrlite.save_group(store, [1, 2], b=[3])
    >>> sorted(zarrlite.load(store))
    ['arr_0', 'b']
    """
    members = {f"arr_{i}": values for i, values in enumerate(arrays)} | named
    if not members:
        raise ArgumentError("save_group() needs at least one array")
    root = open_group(store, mode="a", path=path)
    for name, values in members.items():
        root.create_array(name, data=values, overwrite=True)


def load(store: StoreLike, path: str | None = None) -> NDArray | dict[str, NDArray]:
    """Read an array, or all arrays of a group, into memory.

    Parameters
    ----------
    store : Store, path, URI, mapping or None
        The location of the hierarchy, as for `open`.
    path : str or None, optional
        Path in the store; the root if omitted.

    Returns
    -------
    numpy.ndarray or dict of str to numpy.ndarray
        The elements of the array, or the elements of each array of the group by name.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.load(zarrlite.array([1, 2]).store)
    array([1, 2])
    """
    node = open_node(store, mode="r", path=path)
    if isinstance(node, Array):
        return np.asarray(node)
    return {name: np.asarray(member) for name, member in node.arrays()}


def tree(grp: Group, *, level: int | None = None) -> Tree:
    """Draw a hierarchy, as `Group.tree` does.

    Parameters
    ----------
    grp : Group
        The group.
    level : int, optional
        How many levels to show; all if omitted.

    Returns
    -------
    Tree
        The drawing, as text.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.tree(zarrlite.create_array("memory://", name="a", shape=3, dtype="int8").store and zarrlite.group())
    /
    """
    return grp.tree(level)


def print_debug_info() -> None:
    """Print the versions of this library, Python, numpy and the optional packages that are installed.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.print_debug_info()  # doctest: +ELLIPSIS
    platform: ...
    """
    import platform
    from importlib.metadata import requires, version

    print(f"platform: {platform.platform()}")
    print(f"python: {platform.python_version()}")
    needed = {re.match(r"[\w-]+", requirement)[0] for requirement in requires("zarrlite") or ()}  # type: ignore[index]
    for package in ("zarrlite", *sorted(needed, key=str.lower)):
        with contextlib.suppress(PackageNotFoundError):
            print(f"{package}: {version(package)}")


def create_hierarchy(
    *, store: StoreLike, nodes: Mapping[str, GroupMetadata | ArrayMetadata], overwrite: bool = False
) -> Iterator[tuple[str, Array | Group]]:
    """Create several nodes, and any missing groups above them, from their metadata.

    Parameters
    ----------
    store : Store, path, URI, mapping or None
        The location of the hierarchy, as for `open`.
    nodes : mapping of str to GroupMetadata or ArrayMetadata
        The metadata by path; an empty path is the root.
    overwrite : bool, optional
        Whether to replace existing nodes at these paths.

    Yields
    ------
    tuple of str and (Array or Group)
        The path of each node in `nodes`, and the new node.

    Raises
    ------
    NodeExistsError
        If a node already exists and `overwrite` is not set.

    Examples
    --------
    >>> import zarrlite
    >>> nodes = {"a/b": zarrlite.GroupMetadata(attributes={"x": 1})}
    >>> dict(zarrlite.create_hierarchy(store=zarrlite.MemoryStore(), nodes=nodes))
    {'a/b': <Group /a/b>}
    """
    place = open_store(store)
    for path, metadata in sorted(nodes.items(), key=lambda item: item[0].count("/") + bool(item[0])):
        where = normalize_path(path)
        if isinstance(metadata, ArrayMetadata):
            created = Array(place, where, metadata)
            write_new(place, where, metadata, overwrite=overwrite, chunks=created._chunks)
            yield path, created
        else:
            yield path, create_group_at(place, where, metadata.attributes, overwrite=overwrite)


def copy_all(
    source: Group, dest: Group, *, if_exists: IfExists = "raise", dry_run: bool = False
) -> tuple[int, int, int]:
    """Copy all members of a group to another group.

    Parameters
    ----------
    source, dest : Group
        The groups.
    if_exists : {"raise", "replace", "skip"}, optional
        What to do with members that already exist.
    dry_run : bool, optional
        Whether to only count, without copying anything.

    Returns
    -------
    tuple of int
        The number of members copied, the number of members skipped, and the number of bytes copied.

    Raises
    ------
    NodeExistsError
        If a member already exists and `if_exists` is "raise". Nothing is changed.

    Examples
    --------
    >>> import zarrlite
    >>> source, dest = zarrlite.group(), zarrlite.group()
    >>> _ = source.create_array("a", data=[1, 2])
    >>> zarrlite.copy_all(source, dest)[:2]
    (1, 0)
    """
    members = dict(source.members())
    existing = {name for name in members if name in dest}
    if existing and if_exists == "raise":
        raise NodeExistsError(f"{min(existing)!r} already exists in {dest!r}; use if_exists='replace' or 'skip'")
    chosen = {name: node for name, node in members.items() if name not in existing or if_exists == "replace"}
    nbytes = 0
    for name, node in chosen.items():
        keys = list(source.store.list_prefix(key_prefix(node.path)))
        nbytes += sum(size or 0 for size in threads.gather(source.store.size, keys, place_of(source.store)))
        if not dry_run:
            copy(node, dest.store, key_prefix(dest.path) + name, overwrite=True)
    return len(chosen), len(members) - len(chosen), nbytes


def copy_store(
    source: StoreLike,
    dest: StoreLike,
    source_path: str = "",
    dest_path: str = "",
    *,
    if_exists: IfExists = "raise",
    dry_run: bool = False,
) -> tuple[int, int, int]:
    """Copy values from one store to another, without interpreting them.

    Parameters
    ----------
    source, dest : Store, path, URI or mapping
        The stores, as for `open`.
    source_path, dest_path : str, optional
        Only keys below `source_path` are copied, to keys below `dest_path`.
    if_exists : {"raise", "replace", "skip"}, optional
        What to do with keys that already exist.
    dry_run : bool, optional
        Whether to only count, without copying anything.

    Returns
    -------
    tuple of int
        The number of values copied, the number of values skipped, and the number of bytes copied.

    Raises
    ------
    NodeExistsError
        If a key already exists and `if_exists` is "raise". Nothing is changed.

    Examples
    --------
    >>> import zarrlite
    >>> zarrlite.copy_store({"a": b"123"}, {}, dest_path="b")
    (1, 0, 3)
    """
    origin, target = open_store(source), open_store(dest)
    below, prefix = key_prefix(normalize_path(source_path)), key_prefix(normalize_path(dest_path))
    keys = {key: prefix + key[len(below) :] for key in origin.list_prefix(below)}
    sizes = threads.gather(target.size, [*keys.values()], place_of(target))
    existing = {key for key, size in zip(keys, sizes, strict=True) if size is not None}
    if existing and if_exists == "raise":
        raise NodeExistsError(f"{min(existing)!r} already exists in {target!r}; use if_exists='replace' or 'skip'")

    def copy_value(key: str) -> None:
        value = origin.get(key)
        if value is not None:
            target.set(keys[key], value)

    chosen = [key for key in keys if key not in existing or if_exists != "skip"]
    lengths = [size or 0 for size in threads.gather(origin.size, chosen, place_of(origin))]
    if not dry_run:
        threads.run(copy_value, chosen, 0, slowest_place(origin, target), max(lengths, default=0))
    return len(chosen), len(keys) - len(chosen), sum(lengths)
