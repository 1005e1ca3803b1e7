"""The public names of zarrlite, which `zarrlite` shows as its own."""

from zarrlite.api import (
    consolidate_metadata,
    copy,
    create_array,
    create_group,
    open,  # noqa: A004
    open_array,
    open_group,
)
from zarrlite.array import Array
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
from zarrlite.extension import Extension, runtime
from zarrlite.group import Group
from zarrlite.metadata import ArrayMetadata, GroupMetadata
from zarrlite.ranges import ByteRange
from zarrlite.registry import register
from zarrlite.stores import LocalStore, MemoryStore, Store
from zarrlite.validation import validate

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
