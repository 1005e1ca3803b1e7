"""Stores, which map keys to values. The module of `ZipStore` is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zarrlite.stores.base import InPlace, Limits, Listing, Store, check_key, check_prefix, overwrite
from zarrlite.stores.local import LocalStore
from zarrlite.stores.memory import MappingStore, MemoryStore
from zarrlite.stores.open import StoreLike, open_store
from zarrlite.stores.views import PrefixStore, ReadOnlyStore

if TYPE_CHECKING:
    from zarrlite.stores.zip import ZipStore

__all__ = [
    "InPlace",
    "Limits",
    "Listing",
    "LocalStore",
    "MappingStore",
    "MemoryStore",
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
    if name == "ZipStore":
        from zarrlite.stores.zip import ZipStore

        return ZipStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
