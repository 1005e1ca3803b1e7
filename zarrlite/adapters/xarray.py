"""The xarray engine `zarrlite`: datasets and trees from any hierarchy that zarrlite can open.

Rules
- Reading is lazy: opening reads metadata only. Variables can be pickled and read by several threads and processes.
- The results are the same as with `engine="zarr"`. This includes dimensions, attributes and, for Zarr v2, fill values,
  which become `_FillValue`.
- `preferred_chunks` are the shards of a sharded array, so that `chunks={}` reads each shard in a single task.
- `encoding` contains chunks, shards, fill value and codecs in the form that `Dataset.to_zarr` accepts. Zarr v2 codecs
  are omitted, because `to_zarr` does not convert codecs from one version to the other.
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from xarray import Dataset, DataTree, Variable
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.core import indexing
from xarray.core.utils import FrozenDict

from zarrlite.errors import MetadataError, NodeNotFoundError
from zarrlite.formats.v2 import MEMBER as VERSION_2
from zarrlite.nodes.array import Array
from zarrlite.nodes.group import Group
from zarrlite.nodes.opening import open_group
from zarrlite.stores.base import Store
from zarrlite.stores.open import open_store


class ZarrliteBackend(BackendEntrypoint):
    """An xarray backend that opens Zarr data with zarrlite.

    Examples
    --------
    >>> import tempfile, numpy as np, xarray as xr, zarrlite
    >>> root = zarrlite.create_group(tempfile.mkdtemp())
    >>> _ = root.create_array("t", data=np.arange(3), dimension_names=["time"], attributes={"units": "K"})
    >>> xr.open_dataset(root.store.root, engine="zarrlite")["t"].attrs
    {'units': 'K'}
    """

    description = "Open Zarr data with zarrlite"
    supports_groups = True
    open_dataset_parameters: ClassVar[tuple[str, ...] | None] = None  # None: xarray reads the names from the signature

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return False: the engine is used only if a caller names it, because other engines read the same files."""
        return False

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str | None = None,
        consolidated: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
        strict: bool = True,
    ) -> Dataset:
        """Open a group as a dataset.

        Parameters
        ----------
        filename_or_obj : str, os.PathLike or Store
            A path, a URL, or anything else that `zarrlite.open_group` accepts.
        mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, decode_timedelta : optional
            How values are decoded, as for every engine (`xarray.open_dataset`).
        drop_variables : str or iterable of str, optional
            Variables to omit.
        group : str, optional
            The path of the group. The default is the root.
        consolidated : bool, optional
            Whether to require (true) or ignore (false) consolidated metadata. By default it is used if it exists.
        storage_options : mapping, optional
            Options for a remote store.
        strict : bool, optional
            Whether documents must follow the specification strictly, as in `zarrlite.open_group`.

        Returns
        -------
        xarray.Dataset
            The arrays of the group as variables.
        """
        decoders = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "drop_variables": drop_variables,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        root = _open(filename_or_obj, group, consolidated, storage_options, strict)
        return _dataset(root, decoders)

    def open_groups_as_dict(
        self, filename_or_obj: Any, *, group: str | None = None, **keywords: Any
    ) -> dict[str, Dataset]:
        """Open a group and all groups below it as datasets, keyed by their paths.

        Parameters
        ----------
        filename_or_obj : str, os.PathLike or Store
            As in `open_dataset`.
        group : str, optional
            The path of the group that becomes the root.
        **keywords
            As in `open_dataset`.

        Returns
        -------
        dict of str to xarray.Dataset
            The datasets; the first one is that of the group itself, "/".
        """
        opening = {name: keywords.pop(name, None) for name in ("consolidated", "storage_options")}
        root = _open(filename_or_obj, group, **opening, strict=keywords.pop("strict", True))
        return {path: _dataset(node, keywords) for path, node in _groups(root, "/")}

    def open_datatree(self, filename_or_obj: Any, **keywords: Any) -> DataTree:
        """Open a group and all groups below it as a tree.

        Parameters
        ----------
        filename_or_obj : str, os.PathLike or Store
            As in `open_dataset`.
        **keywords
            As in `open_groups_as_dict`.

        Returns
        -------
        xarray.DataTree
            The tree of datasets.
        """
        return DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **keywords))


def _open(
    place: Any, group: str | None, consolidated: bool | None, storage_options: Mapping[str, Any] | None, strict: bool
) -> Group:
    if not isinstance(place, Store) and isinstance(place, os.PathLike):
        place = os.fspath(place)
    options: Any = {"mode": "r", "strict": strict, "use_consolidated": consolidated}
    store = open_store(place, read_only=True, storage_options=storage_options)
    path = (group or "").strip("/")
    if path and consolidated is not False:  # the metadata of all groups is often consolidated in the root
        try:
            found = open_group(store, **options).get(path)
        except NodeNotFoundError:
            found = None
        if isinstance(found, Group):
            return found
    return open_group(store, path=path, **options)


def _groups(group: Group, path: str) -> Iterator[tuple[str, Group]]:
    yield path, group
    for name, child in group.groups():
        yield from _groups(child, f"{path.rstrip('/')}/{name}")


def _dataset(group: Group, decoders: Mapping[str, Any]) -> Dataset:
    return StoreBackendEntrypoint().open_dataset(GroupStore(group), **decoders)


class GroupStore(AbstractDataStore):
    """The arrays of a group as variables that have not been decoded yet."""

    def __init__(self, group: Group) -> None:
        self.group = group

    def get_variables(self) -> Any:
        return FrozenDict((name, _variable(array)) for name, array in self.group.arrays())

    def get_attrs(self) -> Any:
        return {k: v for k, v in self.group.attrs.items() if not k.lower().startswith("_nc")}


def _variable(array: Array) -> Variable:
    names = array.metadata.dimension_names or ()
    if len(names) != array.ndim or None in names:
        message = f"{array.name} must have dimension_names for all dimensions to be an xarray variable, not {names!r}"
        raise MetadataError(message)
    attributes = array.attrs.asdict()
    version_2 = array.metadata.extra.get(VERSION_2)
    if isinstance(version_2, dict):
        attributes = {k: v for k, v in attributes.items() if not k.lower().startswith("_nc")}
        if version_2.get("fill_value") is not None:
            attributes["_FillValue"] = array.fill_value
    elif "_FillValue" in attributes:
        attributes["_FillValue"] = _decode_fill_value(attributes["_FillValue"], array)
    data = indexing.LazilyIndexedArray(LazyArray(array))
    return Variable(names, data, attributes, _encoding(array, names, isinstance(version_2, dict)))


def _encoding(array: Array, names: Any, version_2: bool) -> dict[str, Any]:
    """Return how the array is stored, in the form that `Dataset.to_zarr` accepts."""
    chunks: Any = array.chunks
    shards: Any = array.shards
    if not array.metadata.chunk_grid.uniform and shards is None:
        chunks = array.write_chunk_sizes
    elif not array.metadata.chunk_grid.uniform:
        shards = array.write_chunk_sizes
    encoding: dict[str, Any] = {
        "chunks": chunks,
        "preferred_chunks": dict(zip(names, shards or chunks, strict=True)),
        "shards": shards,
    }
    if array.dtype.kind == "T":
        encoding["dtype"] = array.dtype
    if not version_2:
        encoding["fill_value"] = array.fill_value
        encoding["compressors"] = tuple(codec.to_json() for codec in array.compressors)
        encoding["filters"] = tuple(codec.to_json() for codec in array.filters)
        encoding["serializer"] = array.serializer.to_json()
    return encoding


def _decode_fill_value(value: Any, array: Array) -> Any:
    """Decode a `_FillValue` attribute: xarray encodes floats, complex numbers and bytes as base64."""
    kind = array.dtype.kind
    if kind == "f" and isinstance(value, str):
        return _decode_float(value)
    if kind == "c" and isinstance(value, list):
        return complex(*map(_decode_float, value))
    if kind in "SV" and isinstance(value, str):
        return base64.standard_b64decode(value)
    return value


def _decode_float(text: str) -> float:
    (number,) = struct.unpack("<d", base64.standard_b64decode(text))
    return float(number)


class LazyArray(BackendArray):
    """An array that is read when it is indexed."""

    def __init__(self, array: Array) -> None:
        self._array = array  # not named `array`, which xarray would take for data in memory
        self.shape = array.shape
        self.dtype = array.dtype

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        return await asyncio.to_thread(self.__getitem__, key)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        methods: list[tuple[type, Callable[[Any], Any]]] = [
            (indexing.BasicIndexer, self._array.__getitem__),
            (indexing.OuterIndexer, self._array.oindex.__getitem__),
            (indexing.VectorizedIndexer, self._array.vindex.__getitem__),
        ]
        method = next(method for kind, method in methods if isinstance(key, kind))
        support = indexing.IndexingSupport.VECTORIZED
        found = indexing.explicit_indexing_adapter(key, self.shape, support, method)
        return np.asarray(found, self.dtype) if isinstance(found, str) else found
