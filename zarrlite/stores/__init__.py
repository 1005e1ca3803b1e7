"""Stores, which map keys to values."""

from zarrlite.stores.base import InPlace, Limits, Listing, Store, check_key, check_prefix, overwrite
from zarrlite.stores.local import LocalStore
from zarrlite.stores.memory import MappingStore, MemoryStore
from zarrlite.stores.open import StoreLike, open_store
from zarrlite.stores.views import PrefixStore, ReadOnlyStore

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
    "check_key",
    "check_prefix",
    "open_store",
    "overwrite",
]
