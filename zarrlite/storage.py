"""The stores under the module name of zarr-python: `zarrlite.storage.LocalStore`."""

from zarrlite.stores import LocalStore, MemoryStore, Store, StoreLike, ZipStore

__all__ = ["LocalStore", "MemoryStore", "Store", "StoreLike", "ZipStore"]
