"""Stores, which map keys to values. The classes in `_LATE` are loaded when they are first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zarrlite.stores.base import InPlace, Limits, Listing, Store, check_key, check_prefix, overwrite
from zarrlite.stores.local import LocalStore
from zarrlite.stores.memory import MappingStore, MemoryStore
from zarrlite.stores.open import StoreLike, open_store
from zarrlite.stores.views import PrefixStore, ReadOnlyStore

if TYPE_CHECKING:
    from zarrlite.stores.cached import CachedStore
    from zarrlite.stores.filesystem import FsspecStore
    from zarrlite.stores.object import ObjectStore
    from zarrlite.stores.zip import ZipStore

# class -> its module
_LATE = {"CachedStore": "cached", "FsspecStore": "filesystem", "ObjectStore": "object", "ZipStore": "zip"}

__all__ = [
    "CachedStore",
    "FsspecStore",
    "InPlace",
    "Limits",
    "Listing",
    "LocalStore",
    "MappingStore",
    "MemoryStore",
    "ObjectStore",
    "PrefixStore",
    "ReadOnlyStore",
    "Store",
    "StoreLike",
    "ZipStore",
    "check_key",
    "check_prefix",
    "open_store",
    "overwrite",
]


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(importlib.import_module(f"zarrlite.stores.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
