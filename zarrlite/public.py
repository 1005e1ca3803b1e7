"""The public names of zarrlite, which `zarrlite` shows as its own; those that are not always needed load when used."""

import importlib
from typing import TYPE_CHECKING, Any

from zarrlite.buffers.ranges import ByteRange
from zarrlite.errors import (
    ArgumentError,
    ChecksumError,
    DataError,
    DependencyError,
    KeyRefusedError,
    MetadataError,
    MetadataWarning,
    MissingChunkError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    SelectionError,
    ShardError,
    StoreError,
    TruncatedError,
    UnknownExtensionError,
    ZarrliteError,
)
from zarrlite.extensions.extension import Extension, runtime
from zarrlite.extensions.registry import register
from zarrlite.metadata.documents import ArrayMetadata, GroupMetadata
from zarrlite.nodes.array import Array
from zarrlite.nodes.opening import (
    consolidate_metadata,
    copy,
    create_array,
    create_group,
    open,  # noqa: A004
    open_array,
    open_group,
)
from zarrlite.stores import LocalStore, Store

if TYPE_CHECKING:
    from zarrlite.metadata.validation import validate
    from zarrlite.nodes.group import Group
    from zarrlite.stores import MemoryStore

_LATER = {"Group": "nodes.group", "MemoryStore": "stores.memory", "validate": "metadata.validation"}

__all__ = [
    "ArgumentError",
    "Array",
    "ArrayMetadata",
    "ByteRange",
    "ChecksumError",
    "DataError",
    "DependencyError",
    "Extension",
    "Group",
    "GroupMetadata",
    "KeyRefusedError",
    "LocalStore",
    "MemoryStore",
    "MetadataError",
    "MetadataWarning",
    "MissingChunkError",
    "NodeExistsError",
    "NodeNotFoundError",
    "ReadOnlyError",
    "SelectionError",
    "ShardError",
    "Store",
    "StoreError",
    "TruncatedError",
    "UnknownExtensionError",
    "ZarrliteError",
    "consolidate_metadata",
    "copy",
    "create_array",
    "create_group",
    "open",
    "open_array",
    "open_group",
    "register",
    "runtime",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"zarrlite.{_LATER[name]}"), name)
    raise AttributeError(f"module 'zarrlite.public' has no attribute {name!r}")
