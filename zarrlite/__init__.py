"""zarrlite: a small, complete Zarr v3 library in pure Python.

Rules
- `_MODULES` maps every public name to the module that defines it. A name is imported when it is first used, so that
  `zarrlite --help` loads neither numpy nor the rest of the library.
- Type checkers read the import statements below the table; a test checks that the table and the imports agree.
"""

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# public name -> module of zarrlite that defines it
_MODULES = {
    "AccessError": "errors",
    "ArgumentError": "errors",
    "Array": "nodes.array",
    "ArrayMetadata": "metadata.documents",
    "BucketNotFoundError": "errors",
    "ByteRange": "buffers.ranges",
    "CachedStore": "stores.cached",
    "ChecksumError": "errors",
    "CredentialsError": "errors",
    "DataError": "errors",
    "DependencyError": "errors",
    "Extension": "extensions.extension",
    "FsspecStore": "stores.filesystem",
    "Group": "nodes.group",
    "GroupMetadata": "metadata.documents",
    "KeyRefusedError": "errors",
    "LocalStore": "stores.local",
    "MemoryStore": "stores.memory",
    "MetadataError": "errors",
    "MetadataWarning": "errors",
    "MissingChunkError": "errors",
    "NodeExistsError": "errors",
    "NodeNotFoundError": "errors",
    "ObjectStore": "stores.object",
    "ReadOnlyError": "errors",
    "SelectionError": "errors",
    "ShardError": "errors",
    "Store": "stores.base",
    "StoreError": "errors",
    "TruncatedError": "errors",
    "UnknownExtensionError": "errors",
    "ZarrliteError": "errors",
    "ZipStore": "stores.zip",
    "array": "nodes.convenience",
    "config": "nodes.settings",
    "consolidate_metadata": "nodes.opening",
    "copy": "nodes.opening",
    "copy_all": "nodes.convenience",
    "copy_store": "nodes.convenience",
    "create": "nodes.convenience",
    "create_array": "nodes.opening",
    "create_group": "nodes.opening",
    "create_hierarchy": "nodes.convenience",
    "empty": "nodes.convenience",
    "empty_like": "nodes.convenience",
    "from_array": "nodes.convenience",
    "from_dask": "adapters.dask",
    "full": "nodes.convenience",
    "full_like": "nodes.convenience",
    "group": "nodes.convenience",
    "load": "nodes.convenience",
    "ones": "nodes.convenience",
    "ones_like": "nodes.convenience",
    "open": "nodes.opening",
    "open_array": "nodes.opening",
    "open_consolidated": "nodes.convenience",
    "open_group": "nodes.opening",
    "open_like": "nodes.convenience",
    "plain": "adapters.plain",
    "print_debug_info": "nodes.convenience",
    "reencode": "tools.transfer.reencoding",
    "register": "extensions.registry",
    "runtime": "extensions.extension",
    "save": "nodes.convenience",
    "save_array": "nodes.convenience",
    "save_group": "nodes.convenience",
    "store_dask": "adapters.dask",
    "tree": "nodes.convenience",
    "validate": "metadata.validation",
    "zeros": "nodes.convenience",
    "zeros_like": "nodes.convenience",
}
# submodules that are available as attributes without an explicit import: `zarrlite.codecs.Zstd`
_ROOMS = (
    "chunk_grids",
    "chunk_key_encodings",
    "codecs",
    "data_types",
    "errors",
    "storage_transformers",
    "stores",
)
# further submodules that are attributes at run time. They import this module and are therefore not imported below, so
# type checkers know them only after an explicit import.
_TOOLS = ("bridge", "core", "dtype", "layout", "n5", "storage", "testing", "tiff")
__all__ = list(_MODULES)

if TYPE_CHECKING:
    from zarrlite import chunk_grids as chunk_grids
    from zarrlite import chunk_key_encodings as chunk_key_encodings
    from zarrlite import codecs as codecs
    from zarrlite import data_types as data_types
    from zarrlite import errors as errors
    from zarrlite import storage_transformers as storage_transformers
    from zarrlite import stores as stores
    from zarrlite.adapters.dask import from_dask as from_dask
    from zarrlite.adapters.dask import store_dask as store_dask
    from zarrlite.adapters.plain import plain as plain
    from zarrlite.buffers.ranges import ByteRange as ByteRange
    from zarrlite.errors import AccessError as AccessError
    from zarrlite.errors import ArgumentError as ArgumentError
    from zarrlite.errors import BucketNotFoundError as BucketNotFoundError
    from zarrlite.errors import ChecksumError as ChecksumError
    from zarrlite.errors import CredentialsError as CredentialsError
    from zarrlite.errors import DataError as DataError
    from zarrlite.errors import DependencyError as DependencyError
    from zarrlite.errors import KeyRefusedError as KeyRefusedError
    from zarrlite.errors import MetadataError as MetadataError
    from zarrlite.errors import MetadataWarning as MetadataWarning
    from zarrlite.errors import MissingChunkError as MissingChunkError
    from zarrlite.errors import NodeExistsError as NodeExistsError
    from zarrlite.errors import NodeNotFoundError as NodeNotFoundError
    from zarrlite.errors import ReadOnlyError as ReadOnlyError
    from zarrlite.errors import SelectionError as SelectionError
    from zarrlite.errors import ShardError as ShardError
    from zarrlite.errors import StoreError as StoreError
    from zarrlite.errors import TruncatedError as TruncatedError
    from zarrlite.errors import UnknownExtensionError as UnknownExtensionError
    from zarrlite.errors import ZarrliteError as ZarrliteError
    from zarrlite.extensions.extension import Extension as Extension
    from zarrlite.extensions.extension import runtime as runtime
    from zarrlite.extensions.registry import register as register
    from zarrlite.metadata.documents import ArrayMetadata as ArrayMetadata
    from zarrlite.metadata.documents import GroupMetadata as GroupMetadata
    from zarrlite.metadata.validation import validate as validate
    from zarrlite.nodes.array import Array as Array
    from zarrlite.nodes.convenience import array as array
    from zarrlite.nodes.convenience import copy_all as copy_all
    from zarrlite.nodes.convenience import copy_store as copy_store
    from zarrlite.nodes.convenience import create as create
    from zarrlite.nodes.convenience import create_hierarchy as create_hierarchy
    from zarrlite.nodes.convenience import empty as empty
    from zarrlite.nodes.convenience import empty_like as empty_like
    from zarrlite.nodes.convenience import from_array as from_array
    from zarrlite.nodes.convenience import full as full
    from zarrlite.nodes.convenience import full_like as full_like
    from zarrlite.nodes.convenience import group as group
    from zarrlite.nodes.convenience import load as load
    from zarrlite.nodes.convenience import ones as ones
    from zarrlite.nodes.convenience import ones_like as ones_like
    from zarrlite.nodes.convenience import open_consolidated as open_consolidated
    from zarrlite.nodes.convenience import open_like as open_like
    from zarrlite.nodes.convenience import print_debug_info as print_debug_info
    from zarrlite.nodes.convenience import save as save
    from zarrlite.nodes.convenience import save_array as save_array
    from zarrlite.nodes.convenience import save_group as save_group
    from zarrlite.nodes.convenience import tree as tree
    from zarrlite.nodes.convenience import zeros as zeros
    from zarrlite.nodes.convenience import zeros_like as zeros_like
    from zarrlite.nodes.group import Group as Group
    from zarrlite.nodes.opening import consolidate_metadata as consolidate_metadata
    from zarrlite.nodes.opening import copy as copy
    from zarrlite.nodes.opening import create_array as create_array
    from zarrlite.nodes.opening import create_group as create_group
    from zarrlite.nodes.opening import open as open  # noqa: A004
    from zarrlite.nodes.opening import open_array as open_array
    from zarrlite.nodes.opening import open_group as open_group
    from zarrlite.nodes.settings import config as config
    from zarrlite.stores.base import Store as Store
    from zarrlite.stores.cached import CachedStore as CachedStore
    from zarrlite.stores.filesystem import FsspecStore as FsspecStore
    from zarrlite.stores.local import LocalStore as LocalStore
    from zarrlite.stores.memory import MemoryStore as MemoryStore
    from zarrlite.stores.object import ObjectStore as ObjectStore
    from zarrlite.stores.zip import ZipStore as ZipStore
    from zarrlite.tools.transfer.reencoding import reencode as reencode
else:  # hidden from type checkers, which would accept every attribute of a module with `__getattr__`

    def __getattr__(name):
        """Import a public name or a submodule when it is first used."""
        if name in _MODULES:
            value = getattr(importlib.import_module(f"zarrlite.{_MODULES[name]}"), name)
            return globals().setdefault(name, value)
        if name in _ROOMS or name in _TOOLS:
            return importlib.import_module(f"zarrlite.{name}")
        raise AttributeError(f"module 'zarrlite' has no attribute {name!r}")

    def __dir__():
        return [*__all__, "__version__"]
