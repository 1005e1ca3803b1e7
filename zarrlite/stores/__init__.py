"""Stores: where keys and values live; what reading from a disk does without loads when it is first used."""

import importlib
from typing import TYPE_CHECKING, Any

from zarrlite.stores.base import Listing, Store, Update, check_key, check_prefix, overwrite
from zarrlite.stores.local import LocalStore
from zarrlite.stores.open import StoreLike, open_store
from zarrlite.stores.views import PrefixStore, ReadOnlyStore

if TYPE_CHECKING:
    from zarrlite.stores import atomic, filelock, memory, tmpfile
    from zarrlite.stores.memory import MappingStore, MemoryStore

__all__ = [
    "Listing",
    "LocalStore",
    "MappingStore",
    "MemoryStore",
    "PrefixStore",
    "ReadOnlyStore",
    "Store",
    "StoreLike",
    "Update",
    "atomic",
    "check_key",
    "check_prefix",
    "filelock",
    "memory",
    "open_store",
    "overwrite",
    "tmpfile",
]


def __getattr__(name: str) -> Any:
    """A module that loads when it is first used, or what is in one."""
    if name in ("MappingStore", "MemoryStore"):
        return getattr(importlib.import_module("zarrlite.stores.memory"), name)
    if name in ("atomic", "filelock", "memory", "tmpfile"):
        return importlib.import_module(f"zarrlite.stores.{name}")
    raise AttributeError(f"module 'zarrlite.stores' has no attribute {name!r}")
